"""The crossbar of a router: input queues, an arbiter, and output buffers.

A packet joins the queue of its input port and VC. The **first** packet of a queue can cross when
its input and its output are free and there is room for it: in the output buffer of its channel, or
without output buffers at the far end of its link. Room is kept as credit is: what is free now, and
a chain of what will be, each with its date.

Everything that ends has a date that is known when it begins, so a router has one event scheduled,
for the next moment at which a packet that waits may be able to cross (SWITCH). A packet that finds
everything free when it arrives needs none.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from odonata.agents.layout import (
    AGE,
    AGENT_BITS,
    ARBITER,
    C_FREE_AT,
    C_LAST,
    CREDIT,
    CREDIT_DUE,
    CROSSBAR,
    FIRST_GROUP,
    GROUP_PORTS,
    IN_UNTIL,
    LEAST_RECENT,
    NODES,
    OFFSET,
    OUT_CAPACITY,
    OUT_LAST,
    OUT_UNTIL,
    Q_BYTES,
    Q_CHANNEL,
    Q_EJECT,
    Q_HEAD,
    Q_HOLDS,
    Q_LACKED,
    Q_LACKS,
    Q_LAST,
    Q_LONGEST,
    Q_NEXT_AT,
    Q_RANK,
    Q_ROOM,
    Q_SERVED,
    Q_SINCE,
    Q_SIZE,
    Q_WAITED,
    Q_WANTS,
    R_COUNT,
    R_WAKE,
    RADIX,
    RETURNS,
    ROUND_ROBIN,
    ROUTERS,
    SOONEST,
    SWITCH,
    VC_BITS,
    port_row,
    router_row,
    where,
)
from odonata.agents.link import (
    Links,
    collect_line,
    given_back,
    launch,
    refund,
    send,
    serialisation,
)
from odonata.agents.packet import (
    ADDRESS,
    BORN,
    CAME,
    DUE,
    ENDS,
    PATH,
    ROOM,
    SIZE,
    TAIL,
    VC_MASK,
    group_at,
    vc_of,
)
from pdes.events import FOREVER, agent_of, key_of
from pdes.jit import kernel, rebound
from pdes.loop import Sim, new_parcel, schedule
from pdes.parcels import NEXT

OUT_SHIFT = 44
"""While a packet is in an input queue, the bits of its word CAME from here on are the output port
that it goes to."""
CAME_MASK = (1 << OUT_SHIFT) - 1

CROSSINGS = 8
"""The largest number of packets that begin to cross in one event; if more can, a further event at
the same instant has them do so."""

BUFFERED = True
"""Stands for whether there are output buffers."""


@kernel
def arbitrate_at(sim: Sim, state: Any, router: int, agent: int, time: int) -> None:
    """Schedule the event at which a router arbitrates, unless an earlier one is scheduled."""
    if time < state.routers[router, R_WAKE]:
        state.routers[router, R_WAKE] = time
        schedule(sim, time, key_of(SWITCH, agent, 0), 0, 0)


@kernel
def relieve(state: Any, queue: Any, time: int) -> None:
    """Note that from `time` on there is room for the first packet of a queue."""
    lacked = time - queue[Q_LACKS]
    if (queue[Q_WANTS] >> VC_BITS) < state.shape[NODES]:
        queue[Q_EJECT] += lacked
    else:
        queue[Q_ROOM] += lacked
    queue[Q_LACKED] += lacked
    queue[Q_LACKS] = -1


def replenish(
    sim: Sim, state: Any, router: int, base: int, wants: int, now: int, needed: bool
) -> None:
    """Add the room that is free by `now` to a channel's, and note from when on there was room for
    the packets that lacked it. If none did, room that is not `needed` is left for later. `base` is
    the row of the router's port 0."""
    row, vc = base + (wants >> VC_BITS), wants & VC_MASK
    line = state.rooms[row, vc] if BUFFERED else state.ports[row, 1 + vc]
    if line[SOONEST] > now:
        return
    lacking = False
    for k in range(state.routers[router, R_COUNT]):
        which = state.requests[router, k]
        queue = state.queues[base + (which >> VC_BITS), which & VC_MASK]
        lacking = lacking or (queue[Q_WANTS] == wants and queue[Q_LACKS] >= 0)
    if not lacking:
        if needed:
            collect_line(sim, line, now)
        return
    while line[SOONEST] <= now:
        date = line[SOONEST] if lacking else now
        collect_line(sim, line, date)
        lacking = False
        for k in range(state.routers[router, R_COUNT]):
            which = state.requests[router, k]
            queue = state.queues[base + (which >> VC_BITS), which & VC_MASK]
            if queue[Q_WANTS] != wants or queue[Q_LACKS] < 0:
                continue
            if line[CREDIT] >= queue[Q_SIZE]:
                relieve(state, queue, date)
            else:
                lacking = True


@kernel
def assign(state: Any, base: int, which: int) -> None:
    """Assign to the first packet of a queue the output channel that it wants, which is free."""
    queue = state.queues[base + (which >> VC_BITS), which & VC_MASK]
    wants, channel = queue[Q_WANTS], queue[Q_CHANNEL]
    output = state.queues[base + (wants >> VC_BITS), wants & VC_MASK]
    output[C_FREE_AT + channel], output[C_LAST + channel] = FOREVER, which
    queue[Q_HOLDS] = 1


@kernel
def rank_of(state: Any, base: int, which: int, assigning: bool) -> int:
    """Returns the rank of a queue's first packet with the arbiter; the lowest comes first."""
    queue = state.queues[base + (which >> VC_BITS), which & VC_MASK]
    if state.shape[ARBITER] != ROUND_ROBIN:
        return queue[Q_RANK]  # type: ignore[no-any-return]
    wants = queue[Q_WANTS]
    out = base + (wants >> VC_BITS)
    last = state.crossing[out, OUT_LAST]
    if assigning:
        last = state.queues[out, wants & VC_MASK, C_LAST + queue[Q_CHANNEL]]
    return which - last - 1 if which > last else which - last - 1 + (state.shape[RADIX] << VC_BITS)  # type: ignore[no-any-return]


def request(sim: Sim, state: Any, router: int, base: int, which: int, now: int) -> None:
    """Have the packet at the head of a queue be first there from now on."""
    queue = state.queues[base + (which >> VC_BITS), which & VC_MASK]
    packet = sim.pool.rows[queue[Q_HEAD]]
    wants = ((packet[CAME] >> OUT_SHIFT) << VC_BITS) | vc_of(packet[PATH])
    row, vc = base + (wants >> VC_BITS), wants & VC_MASK
    line = state.rooms[row, vc] if BUFFERED else state.ports[row, 1 + vc]
    if line[CREDIT] < packet[SIZE]:
        replenish(sim, state, router, base, wants, now, True)
    room = line[CREDIT]
    queue[Q_WANTS], queue[Q_SIZE], queue[Q_SINCE] = wants, packet[SIZE], now
    queue[Q_LACKS], queue[Q_LACKED] = now if room < packet[SIZE] else -1, 0
    queue[Q_HOLDS], queue[Q_CHANNEL] = state.delay[1] == 0, 0
    if (wants >> VC_BITS) < state.shape[NODES]:
        ends = packet[ENDS]
        queue[Q_CHANNEL] = group_at((ends >> 32) & ADDRESS) != group_at(ends & ADDRESS)
    arbiter = state.shape[ARBITER]
    queue[Q_RANK] = (
        queue[Q_SERVED] if arbiter == LEAST_RECENT else packet[BORN] if arbiter == AGE else 0
    )


def next_at(state: Any, base: int, which: int) -> int:
    """Returns when the state of the packet at the head of a queue will next change by itself, in
    ps: it becomes first, its channel can be assigned, there is more room, or its input and its
    output are free. If that is not in the future it can be assigned its channel or can cross."""
    queue = state.queues[base + (which >> VC_BITS), which & VC_MASK]
    wants = queue[Q_WANTS]
    if wants < 0:
        return queue[Q_NEXT_AT]  # type: ignore[no-any-return]
    out, vc = base + (wants >> VC_BITS), wants & VC_MASK
    later = FOREVER
    if queue[Q_LACKS] >= 0:
        later = state.rooms[out, vc, SOONEST] if BUFFERED else state.ports[out, 1 + vc, SOONEST]
    if queue[Q_HOLDS] == 0:
        return min(later, state.queues[out, vc, C_FREE_AT + queue[Q_CHANNEL]])  # type: ignore[no-any-return]
    if queue[Q_LACKS] >= 0:
        return later  # type: ignore[no-any-return]
    into = state.crossing[base + (which >> VC_BITS), IN_UNTIL]
    return max(into, state.crossing[out, OUT_UNTIL])  # type: ignore[no-any-return]


def cross(sim: Sim, state: Any, router: int, base: int, k: int, now: int, agent: int) -> None:
    """Have the packet of the k-th request of a router begin to cross; there is room for it."""
    rows = sim.pool.rows
    which = state.requests[router, k]
    port, vc_in = which >> VC_BITS, which & VC_MASK
    queue = state.queues[base + port, vc_in]
    number = queue[Q_HEAD]
    packet, wants, size = rows[number], queue[Q_WANTS], queue[Q_SIZE]
    out, vc = wants >> VC_BITS, wants & VC_MASK
    replenish(sim, state, router, base, wants, now, False)
    crossed, whole = packet[TAIL], min(size, state.whole[0])
    if whole > 0:
        crossed += serialisation(state.rates[CROSSBAR], whole)
    crossed = max(now + serialisation(state.rates[CROSSBAR], size), crossed)
    waited = now - queue[Q_SINCE]
    queue[Q_WAITED] += waited
    queue[Q_LONGEST] = max(queue[Q_LONGEST], waited - queue[Q_LACKED])
    queue[Q_HEAD], queue[Q_WANTS], queue[Q_SERVED] = packet[NEXT], -1, now
    queue[Q_NEXT_AT] = crossed + state.delay[1]
    queue[Q_BYTES] -= size
    state.crossing[base + port, IN_UNTIL] = crossed
    state.crossing[base + out, OUT_UNTIL] = crossed
    state.crossing[base + out, OUT_LAST] = which
    channel, free_at = queue[Q_CHANNEL], crossed + state.delay[1]
    if state.delay[1] > 0:
        state.queues[base + out, vc, C_FREE_AT + channel] = free_at
    came = packet[CAME] & CAME_MASK
    packet[TAIL] = crossed
    if BUFFERED:
        packet[CAME] = 0
        state.rooms[base + out, vc, CREDIT] -= size
        send(sim, state, base + out, vc, number, now,
             key_of(CREDIT_DUE, agent, (out << VC_BITS) | vc))  # fmt: skip
    else:
        packet[CAME] = -1
        launch(sim, state, base + out, vc, vc, number, now, now)
    refund(sim, state, came, size, now, crossed, now)
    line = state.rooms[base + out, vc] if BUFFERED else state.ports[base + out, 1 + vc]
    for i in range(state.routers[router, R_COUNT]):
        other_which = state.requests[router, i]
        other = state.queues[base + (other_which >> VC_BITS), other_which & VC_MASK]
        if other[Q_WANTS] != wants:
            continue
        if other[Q_LACKS] < 0 and line[CREDIT] < other[Q_SIZE]:
            replenish(sim, state, router, base, wants, now, True)
        if other[Q_LACKS] < 0 and line[CREDIT] < other[Q_SIZE]:
            other[Q_LACKS] = now
            arbitrate_at(sim, state, router, agent, line[SOONEST])
        if other[Q_HOLDS] == 0 and other[Q_CHANNEL] == channel:
            arbitrate_at(sim, state, router, agent, free_at)
    if queue[Q_HEAD] >= 0:
        arbitrate_at(sim, state, router, agent, queue[Q_NEXT_AT])
    else:
        count = state.routers[router, R_COUNT] - 1
        state.requests[router, k] = state.requests[router, count]
        state.routers[router, R_COUNT] = count


def join(
    sim: Sim, state: Any, router: int, base: int, port: int, vc: int, number: int, now: int,
    agent: int,
) -> None:  # fmt: skip
    """Add a packet that has arrived to its queue. It crosses at once if it can."""
    queue, rows = state.queues[base + port, vc], sim.pool.rows
    rows[number, NEXT] = -1
    queue[Q_BYTES] += rows[number, SIZE]
    if queue[Q_HEAD] >= 0:
        rows[queue[Q_LAST], NEXT] = number
        queue[Q_LAST] = number
        return
    queue[Q_HEAD] = queue[Q_LAST] = number
    which, count = (port << VC_BITS) | vc, state.routers[router, R_COUNT]
    state.requests[router, count] = which
    state.routers[router, R_COUNT] = count + 1
    if queue[Q_NEXT_AT] > now:
        arbitrate_at(sim, state, router, agent, queue[Q_NEXT_AT])
        return
    request(sim, state, router, base, which, now)
    if queue[Q_HOLDS] == 0 and next_at(state, base, which) <= now:
        assign(state, base, which)
    later = next_at(state, base, which)
    if later > now:
        arbitrate_at(sim, state, router, agent, later)
    else:
        cross(sim, state, router, base, count, now, agent)


def switch(sim: Sim, state: Any, time: int, key: int) -> None:
    """Have a router arbitrate: of the first packets to which a channel can be assigned, the
    arbiter's first gets its channel, until none can; and likewise, of those that can cross, the
    first crosses. Then schedule the next time."""
    shape, agent = state.shape, agent_of(key)
    group, index = where(shape, key)
    router, base = router_row(shape, group, index), port_row(shape, group, index)
    if time != state.routers[router, R_WAKE]:
        return
    state.routers[router, R_WAKE] = FOREVER
    crossings, assigning, again = 0, state.delay[1] > 0, True
    for k in range(state.routers[router, R_COUNT]):
        which = state.requests[router, k]
        queue = state.queues[base + (which >> VC_BITS), which & VC_MASK]
        if queue[Q_WANTS] < 0 and queue[Q_NEXT_AT] <= time:
            request(sim, state, router, base, which, time)
    while again:
        able, chosen, best, rank = 0, -1, 0, 0
        for k in range(state.routers[router, R_COUNT]):
            which = state.requests[router, k]
            queue = state.queues[base + (which >> VC_BITS), which & VC_MASK]
            if queue[Q_LACKS] >= 0:
                replenish(sim, state, router, base, queue[Q_WANTS], time, True)
            if (assigning and queue[Q_HOLDS] != 0) or next_at(state, base, which) > time:
                continue
            able += 1
            ours = rank_of(state, base, which, assigning)
            if chosen < 0 or ours < rank or (ours == rank and which < best):
                chosen, best, rank = k, which, ours
        again = able > 1
        if chosen >= 0 and assigning:
            assign(state, base, best)
        elif chosen >= 0:
            cross(sim, state, router, base, chosen, time, agent)
            crossings += 1
            if again and crossings == CROSSINGS:
                arbitrate_at(sim, state, router, agent, time)
                return
        if assigning and not again:
            assigning, again = False, True
    later = FOREVER
    for k in range(state.routers[router, R_COUNT]):
        later = min(later, next_at(state, base, state.requests[router, k]))
    if later < FOREVER:
        arbitrate_at(sim, state, router, agent, later)


# -- what links do differently (`odonata.agents.link.kernels`)


@kernel
def router_at_row(shape: Any, row: int) -> Any:
    """Returns the row of the router that has the port of this row, or -1 for a node's; the row of
    its port 0; and its agent."""
    group = row // shape[GROUP_PORTS]
    index = (row - group * shape[GROUP_PORTS]) // shape[RADIX]
    if index >= shape[ROUTERS]:
        return -1, 0, 0
    agent = ((group + shape[FIRST_GROUP] + shape[OFFSET]) << shape[AGENT_BITS]) + index
    base = group * shape[GROUP_PORTS] + index * shape[RADIX]
    return group * shape[ROUTERS] + index, base, agent


@kernel
def expect(sim: Sim, state: Any, row: int, vc: int, due: int) -> None:
    """Have a router arbitrate when there is more room for a channel of its port, if packets that
    lack it wait."""
    router, base, agent = router_at_row(state.shape, row)
    if router < 0:
        return
    wants = ((row - base) << VC_BITS) | vc
    for k in range(state.routers[router, R_COUNT]):
        which = state.requests[router, k]
        queue = state.queues[base + (which >> VC_BITS), which & VC_MASK]
        if queue[Q_WANTS] == wants and queue[Q_LACKS] >= 0:
            arbitrate_at(sim, state, router, agent, due)
            return


def leave(
    sim: Sim, state: Any, row: int, vc: int, came: int, size: int, start: int, left: int, now: int
) -> None:
    """Give back the room in an output buffer of a packet that was granted the link."""
    date = given_back(state, start, left, size, state.rates[CROSSBAR])
    line, number = state.rooms[row, vc], new_parcel(sim)
    room = sim.pool.rows[number]
    room[NEXT], room[DUE], room[ROOM] = line[RETURNS], date, size
    line[RETURNS] = number
    line[SOONEST] = min(line[SOONEST], date)
    expect(sim, state, row, vc, date)


def expected(sim: Sim, state: Any, row: int, vc: int, due: int) -> None:
    """Do the same for credit, where there are no output buffers."""
    expect(sim, state, row, vc, due)


def collect(sim: Sim, state: Any, row: int, vc: int, now: int) -> None:
    """Add the credits that have arrived by `now` to a channel's credit, where packets that lack it
    may wait in input queues."""
    router, base, _ = router_at_row(state.shape, row)
    if router < 0:
        collect_line(sim, state.ports[row, 1 + vc], now)
    else:
        wants = ((row - base) << VC_BITS) | vc
        replenish_credit(sim, state, router, base, wants, now, True)


replenish_credit = kernel(rebound(replenish, "replenish_credit", BUFFERED=False))
replenish_room = kernel(rebound(replenish, "replenish_room", BUFFERED=True))


@kernel
def free_part(sim: Sim, state: Any, row: int, vc: int, now: int) -> float:
    """Returns which part of a channel's output buffer is free."""
    router, base, _ = router_at_row(state.shape, row)
    replenish_room(sim, state, router, base, ((row - base) << VC_BITS) | vc, now, True)
    return state.rooms[row, vc, CREDIT] / state.shape[OUT_CAPACITY]  # type: ignore[no-any-return]


BUFFERS: tuple[Any, ...] = (leave,)
NO_BUFFERS: tuple[Any, ...] = (collect, expected)
"""What takes the place of the functions of links of the same names, with output buffers and
without."""


class Switches(NamedTuple):
    """The kernels of crossbars."""

    join: Any
    switch: Any


@lru_cache
def kernels(links: Links, buffered: bool, around: tuple[Callable[..., Any], ...] = ()) -> Switches:
    """Returns the kernels of crossbars, given those of links; `around` is as for those."""
    names: dict[str, Any] = {**links._asdict(), "BUFFERED": buffered}
    for template in (replenish, request, next_at, cross, join, switch):
        name = template.__name__
        names[name] = kernel(rebound(template, name, **names))
        for each in around:
            if each.__name__ == name:
                names[name] = kernel(rebound(each, name, plain=names[name]))
    return Switches(names["join"], names["switch"])
