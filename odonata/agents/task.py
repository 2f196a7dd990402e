"""A task: it has a slot on a node, and goes through the phases of its job's pattern.

It **starts** when the scheduler's command comes. In each phase it is **pausing** (it computes, or
its first message is on its way through the NIC), **sending** (one message after the other: the next
is seen to when the last packet of the one before leaves), then **waiting** for what comes to it in
that phase; after the last it has **ended**, and tells the scheduler.

A packet is matched by the phase it is for. Of those that come before their task is there, only how
many bytes came for which phase is kept, so nobody need know how far ahead others are; a message is
complete when the bytes of its phase are, in whatever order they come.
"""

from __future__ import annotations

from typing import Any

from odonata.agents.link import (
    DECIDE,
    DELIVER,
    ENDED,
    GENERATE,
    HEAD,
    HOST,
    LAUNCH,
    MATCH,
    SEND,
    block,
)
from odonata.agents.node import (
    DRAWS,
    GROUP_NODES,
    MADE,
    MADE_BYTES,
    MEASURED_MADE,
    OFFERED,
    nic_row,
    node_row,
)
from odonata.agents.node import SEED as SEED_OF_ALL
from odonata.agents.packet import (
    BORN,
    CAME,
    ENDS,
    LABEL_MASK,
    LABEL_SHIFT,
    LUCK,
    MORE,
    PARCEL,
    PATH,
    POSTED,
    SIZE,
    SLOT_MASK,
    TAIL,
    TO_SHIFT,
    address,
)
from odonata.agents.patterns import (
    BASE,
    COMPUTE,
    LAST,
    MESSAGE,
    NO_MORE,
    NOBODY,
    PATTERN,
    PHASES,
    UNIFORM,
    incoming,
    label,
    peer,
)
from odonata.agents.router import AGENT_BITS, NODES, ROUTERS
from pdes.events import Rows, agent_of, key_of, port_of
from pdes.jit import kernel
from pdes.loop import Sim, drop_parcel, new_parcel, schedule
from pdes.parcels import NEXT
from pdes.random import draw

JOB, TASK, PHASE, SENT, DUE, READY, EARLY, LATEST = range(8)
"""Words of a slot: its task's job, or -1; its number there; the phase it is in; messages of it that
were seen to, or WAITING; bytes that are still to come in it; when what has come will have been
handed over; what came before its phase, as a chain, and the last of that, if there is any."""
SLOT_WORDS = 8
WAITING = -1
MOST_TASKS = SLOT_MASK + 1
"""Of a node."""

STATUS, LEFT, BEGAN, OVER = range(4)
"""Words of a job on the scheduler's board: below; tasks that have not yet ended, as far as it
knows; when it was to start; when its last task ended."""
BOARD_WORDS = 4
QUEUED, RUNNING, DONE = range(3)
"""A job is queued (or yet to come), runs, or is done."""

WITHIN = 1
"""By the ports from here on comes what is from the same node: another for each slot, as two of them
may send at one instant."""

PLACE_BITS = 7
"""An entry of `State.places` is a node's address, shifted, plus the slot there."""
PLACES = PARCEL - 1
"""How many of these an event of kind PLACE brings."""


@kernel
def scheduler_agent(shape: Any) -> int:
    """Behind the nodes of group 0."""
    return shape[ROUTERS] * (1 + shape[NODES])  # type: ignore[no-any-return]


@kernel
def post(sim: Sim, state: Any, time: int, key: int, to: int, more: int) -> bool:
    """Give a message to the NIC; are there `more` to send in this phase? Returns whether it is the
    first there, and may go at once. To another task of this node it does not go through the
    network, and is not counted there."""
    shape, traffic, agent, slot = state.shape, state.traffic, agent_of(key), port_of(key)
    group = agent >> shape[AGENT_BITS]
    index = (agent & ((1 << shape[AGENT_BITS]) - 1)) - shape[ROUTERS]
    row = node_row(shape, group, index)
    me, tally = state.slots[row, slot], state.nodes[row]
    job = state.jobs[me[JOB]]
    _, _, _, luck = draw(traffic[SEED_OF_ALL], group * traffic[GROUP_NODES] + index, tally[DRAWS])
    size, place = job[MESSAGE], state.places[job[BASE] + to]
    tally[DRAWS] += 1
    number = new_parcel(sim)
    message = sim.pool.rows[number]
    here = address(group, index // shape[NODES], index % shape[NODES])
    message[ENDS], message[BORN], message[SIZE] = (here << 32) | (place >> PLACE_BITS), time, size
    message[PATH], message[CAME], message[TAIL] = 0, POSTED - (2 * slot + more), 0
    message[LUCK] = (
        int(luck) | (label(job, me[PHASE]) << LABEL_SHIFT) | ((place & SLOT_MASK) << TO_SHIFT)
    )
    if here == place >> PLACE_BITS:
        schedule(sim, time, key_of(DELIVER, agent, WITHIN + slot), number, 0)
        schedule(sim, time + state.nic[SEND] * more, key, 0, 0)
        return False
    tally[MADE] += 1
    tally[MADE_BYTES] += size
    tally[OFFERED] += size
    tally[MEASURED_MADE] += (size + state.largest[0] - 1) // state.largest[0]
    nic = nic_row(shape, group, index)
    block(sim, state, nic, 0, number, time)
    return state.ports[nic, 1, HEAD] == number  # type: ignore[no-any-return]


@kernel
def following(state: Any, me: Any) -> int:
    """Whom its next message goes to, or NO_MORE."""
    to = peer(state, me[JOB], me[TASK], me[PHASE], me[SENT])
    while to == NOBODY:
        me[SENT] += 1
        to = peer(state, me[JOB], me[TASK], me[PHASE], me[SENT])
    return to


@kernel
def label_of(packet: Any) -> int:
    """The phase that a packet is for."""
    return (packet[LUCK] >> LABEL_SHIFT) & LABEL_MASK  # type: ignore[no-any-return]


@kernel
def enter(sim: Sim, state: Any, me: Any) -> int:
    """Begin a phase: what is to come in it, less what has come. Returns for how long it pauses."""
    job, phase, rows = state.jobs[me[JOB]], me[PHASE], sim.pool.rows
    me[DUE] = incoming(state, me[JOB], me[TASK], phase) * job[MESSAGE]
    me[SENT], me[READY] = 0, 0
    first = me[EARLY]
    if first >= 0 and label_of(rows[first]) == phase:
        me[DUE] -= rows[first, SIZE]
        me[READY] = rows[first, TAIL]
        me[EARLY] = rows[first, NEXT]
        drop_parcel(sim, first)
    pause = state.nic[SEND] if following(state, me) != NO_MORE else 0
    works = phase % job[PHASES] == 0 and not (job[PATTERN] == UNIFORM and phase == job[LAST] - 1)
    return pause + (job[COMPUTE] if works else 0)  # type: ignore[no-any-return]


@kernel
def proceed(sim: Sim, state: Any, time: int, key: int) -> bool:
    """A task goes on, as far as it can. Returns whether it has a message that may go at once."""
    shape, agent = state.shape, agent_of(key)
    index = (agent & ((1 << shape[AGENT_BITS]) - 1)) - shape[ROUTERS]
    me = state.slots[node_row(shape, agent >> shape[AGENT_BITS], index), port_of(key)]
    while True:
        if me[SENT] != WAITING:
            to = following(state, me)
            if to != NO_MORE:
                me[SENT] += 1
                more = 1 if following(state, me) != NO_MORE else 0
                return post(sim, state, time, key, to, more)
            me[SENT] = WAITING
        if me[DUE] > 0:
            return False
        if me[READY] > time:
            schedule(sim, me[READY], key, 0, 0)
            return False
        me[PHASE] += 1
        if me[PHASE] == state.jobs[me[JOB], LAST]:
            told = key_of(ENDED, scheduler_agent(shape), 0)
            schedule(sim, time + state.nic[LAUNCH], told, me[JOB], time)
            me[JOB] = -1
            return False
        pause = enter(sim, state, me)
        if pause > 0:
            schedule(sim, time + pause, key, 0, 0)
            return False


@kernel
def keep(sim: Sim, me: Any, number: int) -> None:
    """A packet has come before its phase: put it on the task's chain, which has one parcel a phase,
    with the bytes that came and when they will have been handed over, in order."""
    rows = sim.pool.rows
    phase, before, at = label_of(rows[number]), -1, me[EARLY]
    if at >= 0 and label_of(rows[me[LATEST]]) < phase:
        before, at = me[LATEST], -1
    while at >= 0 and label_of(rows[at]) < phase:
        before, at = at, rows[at, NEXT]
    if at >= 0 and label_of(rows[at]) == phase:
        rows[at, SIZE] += rows[number, SIZE]
        rows[at, TAIL] = max(rows[at, TAIL], rows[number, TAIL])
        drop_parcel(sim, number)
        return
    rows[number, NEXT] = at
    if at < 0:
        me[LATEST] = number
    if before < 0:
        me[EARLY] = number
    else:
        rows[before, NEXT] = number


@kernel
def take_in(sim: Sim, state: Any, time: int, key: int, number: int) -> None:
    """A packet has come: match it. If it is what its task was waiting for, that goes on."""
    shape, agent, packet = state.shape, agent_of(key), sim.pool.rows[number]
    index = (agent & ((1 << shape[AGENT_BITS]) - 1)) - shape[ROUTERS]
    row = node_row(shape, agent >> shape[AGENT_BITS], index)
    slot = (packet[LUCK] >> TO_SHIFT) & SLOT_MASK
    me = state.slots[row, slot]
    matched = max(time, state.matching[row])
    if not packet[LUCK] & MORE:
        matched += state.nic[MATCH]
        state.matching[row] = matched
    there = matched + state.nic[HOST]
    if label_of(packet) != me[PHASE]:
        packet[TAIL] = there
        keep(sim, me, number)
        return
    me[DUE] -= packet[SIZE]
    me[READY] = max(me[READY], there)
    drop_parcel(sim, number)
    if me[DUE] == 0 and me[SENT] == WAITING:
        schedule(sim, me[READY], key_of(GENERATE, agent, slot), 0, 0)


@kernel
def command(sim: Sim, state: Any, time: int, key: int, a: int, b: int) -> None:
    """What the scheduler tells a node: that task `b` of job `a` starts in a slot of it."""
    shape, agent, slot = state.shape, agent_of(key), port_of(key)
    index = (agent & ((1 << shape[AGENT_BITS]) - 1)) - shape[ROUTERS]
    me = state.slots[node_row(shape, agent >> shape[AGENT_BITS], index), slot]
    me[JOB], me[TASK], me[PHASE], me[EARLY] = a, b, 0, -1
    pause = enter(sim, state, me)
    schedule(sim, time + pause, key_of(GENERATE, agent, slot), 0, 0)


@kernel
def learn(sim: Sim, state: Any, number: int, first: int) -> None:
    """Where some tasks are."""
    for i in range(PLACES):
        place = sim.pool.rows[number, 1 + i]
        if place >= 0:
            state.places[first + i] = place
    drop_parcel(sim, number)


@kernel
def hear(sim: Sim, state: Any, time: int, key: int, job: int, ended: int) -> None:
    """The scheduler hears that a task has ended; after the last of a job it has to decide."""
    board = state.board[job]
    board[LEFT] -= 1
    board[OVER] = max(board[OVER], ended)
    if board[LEFT] == 0:
        board[STATUS] = DONE
        schedule(sim, time, key_of(DECIDE, agent_of(key), 0), 0, 0)


def check_slots(slots: Rows) -> None:
    """Raise AssertionError where a task was sent something that it does not wait for."""
    idle = slots[:, :, JOB] < 0
    assert (slots[idle][:, EARLY] < 0).all(), "a packet came for a task that has ended"
    assert (slots[:, :, DUE] >= 0).all(), "a task was sent more than it waits for"
