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

from odonata.agents import layout as w
from odonata.agents import packet as p
from odonata.agents.layout import port_row, router_row, where
from odonata.agents.link import (
    Links,
    collect_line,
    given_back,
    launch,
    refund,
    send,
    serialisation,
)
from odonata.agents.packet import group_at, vc_of
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

BUFFERED: bool = True
"""Bound by `kernels`: whether there are output buffers."""


@kernel
def arbitrate_at(sim: Sim, state: Any, router: int, agent: int, time: int) -> None:
    """Schedule the event at which a router arbitrates, unless an earlier one is scheduled."""
    if time < state.routers[router, w.R_WAKE]:
        state.routers[router, w.R_WAKE] = time
        schedule(sim, time, key_of(w.SWITCH, agent, 0), 0, 0)


@kernel
def relieve(state: Any, queue: Any, time: int) -> None:
    """Note that from `time` on there is room for the first packet of a queue."""
    lacked = time - queue[w.Q_LACKS]
    if (queue[w.Q_WANTS] >> w.VC_BITS) < state.shape[w.NODES]:
        queue[w.Q_EJECT] += lacked
    else:
        queue[w.Q_ROOM] += lacked
    queue[w.Q_LACKED] += lacked
    queue[w.Q_LACKS] = -1


def replenish(
    sim: Sim, state: Any, router: int, base: int, wants: int, now: int, needed: bool
) -> None:
    """Add the room that is free by `now` to a channel's, and note from when on there was room for
    the packets that lacked it. If none did, room that is not `needed` is left for later. `base` is
    the row of the router's port 0."""
    row, vc = base + (wants >> w.VC_BITS), wants & p.VC_MASK
    line = state.rooms[row, vc] if BUFFERED else state.ports[row, 1 + vc]
    if line[w.SOONEST] > now:
        return
    lacking = False
    for k in range(state.routers[router, w.R_COUNT]):
        which = state.requests[router, k]
        queue = state.queues[base + (which >> w.VC_BITS), which & p.VC_MASK]
        lacking = lacking or (queue[w.Q_WANTS] == wants and queue[w.Q_LACKS] >= 0)
    if not lacking:
        if needed:
            collect_line(sim, line, now)
        return
    while line[w.SOONEST] <= now:
        date = line[w.SOONEST] if lacking else now
        collect_line(sim, line, date)
        lacking = False
        for k in range(state.routers[router, w.R_COUNT]):
            which = state.requests[router, k]
            queue = state.queues[base + (which >> w.VC_BITS), which & p.VC_MASK]
            if queue[w.Q_WANTS] != wants or queue[w.Q_LACKS] < 0:
                continue
            if line[w.CREDIT] >= queue[w.Q_SIZE]:
                relieve(state, queue, date)
            else:
                lacking = True


@kernel
def assign(state: Any, base: int, which: int) -> None:
    """Assign to the first packet of a queue the output channel that it wants, which is free."""
    queue = state.queues[base + (which >> w.VC_BITS), which & p.VC_MASK]
    wants, channel = queue[w.Q_WANTS], queue[w.Q_CHANNEL]
    output = state.queues[base + (wants >> w.VC_BITS), wants & p.VC_MASK]
    output[w.C_FREE_AT + channel], output[w.C_LAST + channel] = FOREVER, which
    queue[w.Q_HOLDS] = 1


@kernel
def rank_of(state: Any, base: int, which: int, assigning: bool) -> int:
    """Returns the rank of a queue's first packet with the arbiter; the lowest comes first."""
    queue = state.queues[base + (which >> w.VC_BITS), which & p.VC_MASK]
    if state.shape[w.ARBITER] != w.ROUND_ROBIN:
        return queue[w.Q_RANK]  # type: ignore[no-any-return]
    wants = queue[w.Q_WANTS]
    out = base + (wants >> w.VC_BITS)
    last = state.crossing[out, w.OUT_LAST]
    if assigning:
        last = state.queues[out, wants & p.VC_MASK, w.C_LAST + queue[w.Q_CHANNEL]]
    behind = which - last - 1
    return behind if which > last else behind + (state.shape[w.RADIX] << w.VC_BITS)  # type: ignore[no-any-return]


def request(sim: Sim, state: Any, router: int, base: int, which: int, now: int) -> None:
    """Have the packet at the head of a queue be first there from now on."""
    queue = state.queues[base + (which >> w.VC_BITS), which & p.VC_MASK]
    packet = sim.pool.rows[queue[w.Q_HEAD]]
    wants = ((packet[p.CAME] >> OUT_SHIFT) << w.VC_BITS) | vc_of(packet[p.PATH])
    row, vc = base + (wants >> w.VC_BITS), wants & p.VC_MASK
    line = state.rooms[row, vc] if BUFFERED else state.ports[row, 1 + vc]
    if line[w.CREDIT] < packet[p.SIZE]:
        replenish(sim, state, router, base, wants, now, True)
    room = line[w.CREDIT]
    queue[w.Q_WANTS], queue[w.Q_SIZE], queue[w.Q_SINCE] = wants, packet[p.SIZE], now
    queue[w.Q_LACKS], queue[w.Q_LACKED] = now if room < packet[p.SIZE] else -1, 0
    queue[w.Q_HOLDS], queue[w.Q_CHANNEL] = state.delay[1] == 0, 0
    if (wants >> w.VC_BITS) < state.shape[w.NODES]:
        ends = packet[p.ENDS]
        queue[w.Q_CHANNEL] = group_at((ends >> 32) & p.ADDRESS) != group_at(ends & p.ADDRESS)
    arbiter = state.shape[w.ARBITER]
    rank = packet[p.BORN] if arbiter == w.AGE else 0
    queue[w.Q_RANK] = queue[w.Q_SERVED] if arbiter == w.LEAST_RECENT else rank


def next_at(state: Any, base: int, which: int) -> int:
    """Returns when the state of the packet at the head of a queue will next change by itself, in
    ps: it becomes first, its channel can be assigned, there is more room, or its input and its
    output are free. If that is not in the future it can be assigned its channel or can cross."""
    queue = state.queues[base + (which >> w.VC_BITS), which & p.VC_MASK]
    wants = queue[w.Q_WANTS]
    if wants < 0:
        return queue[w.Q_NEXT_AT]  # type: ignore[no-any-return]
    out, vc = base + (wants >> w.VC_BITS), wants & p.VC_MASK
    later = FOREVER
    if queue[w.Q_LACKS] >= 0:
        later = state.rooms[out, vc, w.SOONEST] if BUFFERED else state.ports[out, 1 + vc, w.SOONEST]
    if queue[w.Q_HOLDS] == 0:
        return min(later, state.queues[out, vc, w.C_FREE_AT + queue[w.Q_CHANNEL]])  # type: ignore[no-any-return]
    if queue[w.Q_LACKS] >= 0:
        return later  # type: ignore[no-any-return]
    into = state.crossing[base + (which >> w.VC_BITS), w.IN_UNTIL]
    return max(into, state.crossing[out, w.OUT_UNTIL])  # type: ignore[no-any-return]


def cross(sim: Sim, state: Any, router: int, base: int, k: int, now: int, agent: int) -> None:
    """Have the packet of the k-th request of a router begin to cross; there is room for it."""
    rows = sim.pool.rows
    which = state.requests[router, k]
    port, vc_in = which >> w.VC_BITS, which & p.VC_MASK
    queue = state.queues[base + port, vc_in]
    number = queue[w.Q_HEAD]
    packet, wants, size = rows[number], queue[w.Q_WANTS], queue[w.Q_SIZE]
    out, vc = wants >> w.VC_BITS, wants & p.VC_MASK
    replenish(sim, state, router, base, wants, now, False)
    crossed, whole = packet[p.TAIL], min(size, state.whole[0])
    if whole > 0:
        crossed += serialisation(state.rates[w.CROSSBAR], whole)
    crossed = max(now + serialisation(state.rates[w.CROSSBAR], size), crossed)
    waited = now - queue[w.Q_SINCE]
    queue[w.Q_WAITED] += waited
    queue[w.Q_LONGEST] = max(queue[w.Q_LONGEST], waited - queue[w.Q_LACKED])
    queue[w.Q_HEAD], queue[w.Q_WANTS], queue[w.Q_SERVED] = packet[NEXT], -1, now
    queue[w.Q_NEXT_AT] = crossed + state.delay[1]
    queue[w.Q_BYTES] -= size
    state.crossing[base + port, w.IN_UNTIL] = crossed
    state.crossing[base + out, w.OUT_UNTIL] = crossed
    state.crossing[base + out, w.OUT_LAST] = which
    channel, free_at = queue[w.Q_CHANNEL], crossed + state.delay[1]
    if state.delay[1] > 0:
        state.queues[base + out, vc, w.C_FREE_AT + channel] = free_at
    came = packet[p.CAME] & CAME_MASK
    packet[p.TAIL] = crossed
    if BUFFERED:
        packet[p.CAME] = 0
        state.rooms[base + out, vc, w.CREDIT] -= size
        send(sim, state, base + out, vc, number, now,
             key_of(w.CREDIT_DUE, agent, (out << w.VC_BITS) | vc))  # fmt: skip
    else:
        packet[p.CAME] = -1
        launch(sim, state, base + out, vc, vc, number, now, now)
    refund(sim, state, came, size, now, crossed, now)
    line = state.rooms[base + out, vc] if BUFFERED else state.ports[base + out, 1 + vc]
    for i in range(state.routers[router, w.R_COUNT]):
        other_which = state.requests[router, i]
        other = state.queues[base + (other_which >> w.VC_BITS), other_which & p.VC_MASK]
        if other[w.Q_WANTS] != wants:
            continue
        if other[w.Q_LACKS] < 0 and line[w.CREDIT] < other[w.Q_SIZE]:
            replenish(sim, state, router, base, wants, now, True)
        if other[w.Q_LACKS] < 0 and line[w.CREDIT] < other[w.Q_SIZE]:
            other[w.Q_LACKS] = now
            arbitrate_at(sim, state, router, agent, line[w.SOONEST])
        if other[w.Q_HOLDS] == 0 and other[w.Q_CHANNEL] == channel:
            arbitrate_at(sim, state, router, agent, free_at)
    if queue[w.Q_HEAD] >= 0:
        arbitrate_at(sim, state, router, agent, queue[w.Q_NEXT_AT])
    else:
        count = state.routers[router, w.R_COUNT] - 1
        state.requests[router, k] = state.requests[router, count]
        state.routers[router, w.R_COUNT] = count


def join(
    sim: Sim, state: Any, router: int, base: int, port: int, vc: int, number: int, now: int,
    agent: int,
) -> None:  # fmt: skip
    """Add a packet that has arrived to its queue. It crosses at once if it can."""
    queue, rows = state.queues[base + port, vc], sim.pool.rows
    rows[number, NEXT] = -1
    queue[w.Q_BYTES] += rows[number, p.SIZE]
    if queue[w.Q_HEAD] >= 0:
        rows[queue[w.Q_LAST], NEXT] = number
        queue[w.Q_LAST] = number
        return
    queue[w.Q_HEAD] = queue[w.Q_LAST] = number
    which, count = (port << w.VC_BITS) | vc, state.routers[router, w.R_COUNT]
    state.requests[router, count] = which
    state.routers[router, w.R_COUNT] = count + 1
    if queue[w.Q_NEXT_AT] > now:
        arbitrate_at(sim, state, router, agent, queue[w.Q_NEXT_AT])
        return
    request(sim, state, router, base, which, now)
    if queue[w.Q_HOLDS] == 0 and next_at(state, base, which) <= now:
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
    if time != state.routers[router, w.R_WAKE]:
        return
    state.routers[router, w.R_WAKE] = FOREVER
    crossings, assigning, again = 0, state.delay[1] > 0, True
    for k in range(state.routers[router, w.R_COUNT]):
        which = state.requests[router, k]
        queue = state.queues[base + (which >> w.VC_BITS), which & p.VC_MASK]
        if queue[w.Q_WANTS] < 0 and queue[w.Q_NEXT_AT] <= time:
            request(sim, state, router, base, which, time)
    while again:
        able, chosen, best, rank = 0, -1, 0, 0
        for k in range(state.routers[router, w.R_COUNT]):
            which = state.requests[router, k]
            queue = state.queues[base + (which >> w.VC_BITS), which & p.VC_MASK]
            if queue[w.Q_LACKS] >= 0:
                replenish(sim, state, router, base, queue[w.Q_WANTS], time, True)
            if (assigning and queue[w.Q_HOLDS] != 0) or next_at(state, base, which) > time:
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
    for k in range(state.routers[router, w.R_COUNT]):
        later = min(later, next_at(state, base, state.requests[router, k]))
    if later < FOREVER:
        arbitrate_at(sim, state, router, agent, later)


# -- what links do differently (`odonata.agents.link.kernels`)


@kernel
def router_at_row(shape: Any, row: int) -> Any:
    """Returns the row of the router that has the port of this row, or -1 for a node's; the row of
    its port 0; and its agent."""
    group = row // shape[w.GROUP_PORTS]
    index = (row - group * shape[w.GROUP_PORTS]) // shape[w.RADIX]
    if index >= shape[w.ROUTERS]:
        return -1, 0, 0
    agent = ((group + shape[w.FIRST_GROUP] + shape[w.OFFSET]) << shape[w.AGENT_BITS]) + index
    base = group * shape[w.GROUP_PORTS] + index * shape[w.RADIX]
    return group * shape[w.ROUTERS] + index, base, agent


@kernel
def expect(sim: Sim, state: Any, row: int, vc: int, due: int) -> None:
    """Have a router arbitrate when there is more room for a channel of its port, if packets that
    lack it wait."""
    router, base, agent = router_at_row(state.shape, row)
    if router < 0:
        return
    wants = ((row - base) << w.VC_BITS) | vc
    for k in range(state.routers[router, w.R_COUNT]):
        which = state.requests[router, k]
        queue = state.queues[base + (which >> w.VC_BITS), which & p.VC_MASK]
        if queue[w.Q_WANTS] == wants and queue[w.Q_LACKS] >= 0:
            arbitrate_at(sim, state, router, agent, due)
            return


def leave(
    sim: Sim, state: Any, row: int, vc: int, came: int, size: int, start: int, left: int, now: int
) -> None:
    """Give back the room in an output buffer of a packet that was granted the link."""
    date = given_back(state, start, left, size, state.rates[w.CROSSBAR])
    line, number = state.rooms[row, vc], new_parcel(sim)
    room = sim.pool.rows[number]
    room[NEXT], room[p.DUE], room[p.ROOM] = line[w.RETURNS], date, size
    line[w.RETURNS] = number
    line[w.SOONEST] = min(line[w.SOONEST], date)
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
        wants = ((row - base) << w.VC_BITS) | vc
        replenish_credit(sim, state, router, base, wants, now, True)


replenish_credit = kernel(rebound(replenish, "replenish_credit", BUFFERED=False))
replenish_room = kernel(rebound(replenish, "replenish_room", BUFFERED=True))


@kernel
def free_part(sim: Sim, state: Any, row: int, vc: int, now: int) -> float:
    """Returns which part of a channel's output buffer is free."""
    router, base, _ = router_at_row(state.shape, row)
    replenish_room(sim, state, router, base, ((row - base) << w.VC_BITS) | vc, now, True)
    return state.rooms[row, vc, w.CREDIT] / state.shape[w.OUT_CAPACITY]  # type: ignore[no-any-return]


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
