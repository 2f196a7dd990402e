"""A task: it has a slot on a node, and goes through the phases of its job's pattern.

It **starts** when the scheduler's command arrives. In each phase it is **pausing** (it computes, or
its first message is being prepared by the NIC), **sending** (one message after the other: the next
goes to the NIC when the last packet of the one before has left, or, where the task waits for
nothing, when it has been prepared), then **awaiting** what its stage waits for: the messages of
that phase, or the replies to its own, which the NICs of other nodes give; after the last phase it
has **ended**, and a notice of that goes to the scheduler. If there are messages that no phase waits
for, it waits for those in a last phase of its own.

A message is matched when it is complete, by the phase it is for; its packets may arrive in any
order. For messages that arrive before their task is in that phase, only the number of bytes per
phase is kept, so no task need know how far ahead others are.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from odonata.agents import layout as w
from odonata.agents import packet as p
from odonata.agents import patterns
from odonata.agents.layout import next_draw, nic_row, node_at_key
from odonata.agents.link import block, wake
from odonata.agents.node import note_generated
from odonata.agents.packet import address
from odonata.agents.patterns import (
    NO_MORE,
    NOBODY,
    apart,
    awaited,
    label,
    longer,
    peer,
    stage_at,
    step_of,
)
from odonata.jobs.board import DONE, LEFT, OVER, STATUS
from pdes.events import Rows, agent_of, key_of, port_of
from pdes.jit import kernel, rebound
from pdes.loop import Sim, drop_parcel, new_parcel, schedule
from pdes.parcels import NEXT
from pdes.random import draw

MOST_TASKS = p.SLOT_MASK + 1
"""The largest number of tasks that a node can run."""
REPLIES = w.WITHIN + MOST_TASKS
"""A node's deliveries at ports from here on are replies to a task of the same node."""


@kernel
def inject(sim: Sim, state: Any, time: int, key: int, number: int) -> bool:
    """Count a message and chain it to the queue of its node's NIC. Returns whether it is the first
    there and may leave at once."""
    group, index, row = node_at_key(state.shape, key)
    tally, size = state.nodes[row], sim.pool.rows[number, p.SIZE]
    tally[w.GENERATED] += 1
    tally[w.GENERATED_BYTES] += size
    note_generated(state, tally, group, time, size)
    nic = nic_row(state.shape, group, index)
    block(sim, state, nic, 0, number, time)
    return state.ports[nic, 1, w.HEAD] == number  # type: ignore[no-any-return]


@kernel
def word_for(state: Any, key: int) -> Any:
    """Returns the random word of the next message of a node's tasks, 32 bits, and its number among
    those of the node, as `complete` needs it."""
    traffic = state.traffic[0]
    group, index, row = node_at_key(state.shape, key)
    stream = state.nic[w.STREAM]
    count = next_draw(state, stream, row)
    node = group * traffic[w.GROUP_NODES] + index
    _, _, _, word = draw(traffic[w.SEED], (stream << w.STREAM_BITS) + node, count)
    return int(word), (count & p.SERIAL_MASK) << p.SERIAL_SHIFT


@kernel
def post(sim: Sim, state: Any, time: int, key: int, to: int, more: int) -> bool:
    """Give a message to the NIC; `more`: there are others to send in this phase. Returns whether it
    is the first in the queue and may leave at once. A message to another task of this node does not
    pass through the network and is not counted there."""
    shape, agent, slot = state.shape, agent_of(key), port_of(key)
    group, index, row = node_at_key(shape, key)
    me = state.slots[row, slot]
    stage = state.stages[me[w.STAGE]]
    word, serial = word_for(state, key)
    size, place = stage[w.MESSAGE], state.places[state.jobs[me[w.JOB], w.BASE] + to]
    number = new_parcel(sim)
    message = sim.pool.rows[number]
    here = address(group, index // shape[w.NODES], index % shape[w.NODES])
    message[p.ENDS], message[p.BORN] = (here << 32) | (place >> w.PLACE_BITS), time
    message[p.SIZE] = size
    message[p.PATH], message[p.TAIL] = (slot << p.SENDER_SHIFT) | serial, 0
    message[p.CAME] = p.POSTED - (2 * slot + more)
    message[p.RANDOM] = (
        word | (label(stage, me[w.PHASE]) << p.LABEL_SHIFT) | ((place & p.SLOT_MASK) << p.TO_SHIFT)
    )
    if stage[w.WAITS] == w.FOR_REPLIES:
        message[p.RANDOM] |= p.REQUEST
    inside = here == place >> w.PLACE_BITS
    if inside or stage[w.WAITS] == w.FOR_NOTHING:
        message[p.CAME] = -1
        schedule(sim, time + stage[w.PREPARE] * more, key_of(w.STEP, agent, slot), w.SENT, 0)
    if inside:
        schedule(sim, time, key_of(w.DELIVER, agent, w.WITHIN + slot), number, 0)
        return False
    return inject(sim, state, time, key, number)


def following(state: Any, me: Any) -> int:
    """Returns the task that the next message of this one goes to, or NO_MORE."""
    while True:
        to = peer(state, me[w.STAGE], me[w.TASK], me[w.PHASE], me[w.SENT_COUNT])
        if to != NOBODY:
            return to
        me[w.SENT_COUNT] += 1


@kernel
def label_of(packet: Any) -> int:
    """Returns the phase that a packet is for."""
    return (packet[p.RANDOM] >> p.LABEL_SHIFT) & p.LABEL_MASK  # type: ignore[no-any-return]


@kernel
def pausing(sim: Sim, state: Any, time: int, key: int, pause: int, work: int) -> int:
    """Have a task compute, and then its NIC prepare a message. Returns how long that takes, in ps;
    below 0: its end is a matter of others (`odonata.agents.power`)."""
    return pause + work


@kernel
def coming(sim: Sim, state: Any, time: int, key: int, job: int) -> None:
    """Called when a task of a job is about to start (`odonata.agents.power.come`)."""


@kernel
def leaving(sim: Sim, state: Any, time: int, key: int) -> None:
    """Called when a task has ended (`odonata.agents.power.leave`)."""


def enter(sim: Sim, state: Any, time: int, key: int, me: Any) -> int:
    """Begin a phase: compute the bytes that are to come in it, less those that have arrived.
    Returns for how long the task pauses, as `pausing` does."""
    number, phase, rows = me[w.JOB], me[w.PHASE], sim.pool.rows
    me[w.SENT_COUNT], me[w.TURN], me[w.SENDING] = 0, time, 0
    if state.jobs[number, w.ENDS_APART] and phase == state.jobs[number, w.LAST] - 1:
        me[w.STAGE] = -1
        me[w.DUE] = apart(state, number, me[w.TASK]) - me[w.APART]
        me[w.READY] = me[w.APART_READY]
        return 0
    me[w.STAGE], me[w.READY] = stage_at(state, number, phase), 0
    me[w.DUE] = awaited(state, me[w.STAGE], me[w.TASK], phase)
    stage, first = state.stages[me[w.STAGE]], me[w.EARLY]
    if first >= 0 and label_of(rows[first]) == phase:
        me[w.DUE] -= rows[first, p.SIZE]
        me[w.READY] = rows[first, p.TAIL]
        me[w.EARLY] = rows[first, NEXT]
        drop_parcel(sim, first)
    pause = stage[w.PREPARE] if following(state, me) != NO_MORE else 0
    work = 0
    if step_of(stage, phase) == 0:
        work = stage[w.COMPUTE]
        if stage[w.IMBALANCE] > 0:
            work += longer(stage, me[w.TASK], phase)
    return pausing(sim, state, time, key, pause, work)


@kernel
def spend(state: Any, me: Any, time: int, pause: int) -> None:
    """Count how long a task has computed, and its overhead; since then its first message took
    `pause` to be prepared."""
    stage, spent = state.stages[me[w.STAGE]], state.spent[me[w.STAGE]]
    took = time - me[w.TURN] - pause
    overhead = 0
    if stage[w.OVERHEAD] > 0:
        work = 0
        if step_of(stage, me[w.PHASE]) == 0:
            work = stage[w.COMPUTE]
            if stage[w.IMBALANCE] > 0:
                work += longer(stage, me[w.TASK], me[w.PHASE])
        if work > 0:
            overhead = stage[w.OVERHEAD]
            if took != work:
                overhead = int(took * (stage[w.OVERHEAD] / work))
    spent[w.COMPUTED_PS] += took - overhead
    spent[w.OVERHEAD_PS] += overhead
    me[w.TURN] = time - pause


@kernel
def turn(state: Any, me: Any, time: int, what: int) -> None:
    """Count how long a task has sent, or waited."""
    row = me[w.STAGE]
    if row < 0:
        row = state.jobs[me[w.JOB], w.FIRST_STAGE] + state.jobs[me[w.JOB], w.STAGES] - 1
    state.spent[row, what] += time - me[w.TURN]
    me[w.TURN] = time


def proceed(sim: Sim, state: Any, time: int, key: int) -> bool:
    """Advance a task as far as possible. Returns whether it has a message that may leave."""
    _, _, row = node_at_key(state.shape, key)
    me = state.slots[row, port_of(key)]
    while True:
        if me[w.SENT_COUNT] != w.AWAITING:
            to = following(state, me)
            if me[w.SENDING] == 0:
                me[w.SENDING] = 1
                if me[w.STAGE] >= 0:
                    pause = state.stages[me[w.STAGE], w.PREPARE] if to != NO_MORE else 0
                    spend(state, me, time, pause)
            if to != NO_MORE:
                me[w.SENT_COUNT] += 1
                more = 1 if following(state, me) != NO_MORE else 0
                return post(sim, state, time, key, to, more)
            me[w.SENT_COUNT] = w.AWAITING
            turn(state, me, time, w.SENT_PS)
        if me[w.DUE] > 0:
            return False
        if me[w.READY] > time:
            schedule(sim, me[w.READY], key_of(w.STEP, agent_of(key), port_of(key)), w.PAUSED, 0)
            return False
        turn(state, me, time, w.WAITED_PS)
        me[w.PHASE] += 1
        if me[w.PHASE] == state.jobs[me[w.JOB], w.LAST]:
            heard = time + state.nic[w.LAUNCH]
            schedule(sim, heard, key_of(w.ENDED, w.SCHEDULER, 0), me[w.JOB], time)
            leaving(sim, state, time, key)
            me[w.JOB] = -1
            return False
        pause = enter(sim, state, time, key, me)
        if pause > 0:
            schedule(sim, time + pause, key_of(w.STEP, agent_of(key), port_of(key)), w.PAUSED, 0)
        if pause != 0:
            return False


@kernel
def complete(sim: Sim, me: Any, number: int, whole: int) -> int:
    """Add a packet to the message that it is a part of. Returns the parcel of the message if that
    is complete, with its bytes, and otherwise -1. A message is known by the task that sent it and
    by when."""
    rows = sim.pool.rows
    packet = rows[number]
    if packet[p.SIZE] == whole:
        return number
    before, at = -1, me[w.PARTS]
    while at >= 0 and not (
        rows[at, p.BORN] == packet[p.BORN]
        and rows[at, p.ENDS] == packet[p.ENDS]
        and rows[at, p.PATH] >> p.SENDER_SHIFT == packet[p.PATH] >> p.SENDER_SHIFT
        and rows[at, p.RANDOM] >> p.LABEL_SHIFT == packet[p.RANDOM] >> p.LABEL_SHIFT
    ):
        before, at = at, rows[at, NEXT]
    if at < 0:
        packet[NEXT] = me[w.PARTS]
        me[w.PARTS] = number
        return -1
    rows[at, p.SIZE] += packet[p.SIZE]
    drop_parcel(sim, number)
    if rows[at, p.SIZE] < whole:
        return -1
    if before < 0:
        me[w.PARTS] = rows[at, NEXT]
    else:
        rows[before, NEXT] = rows[at, NEXT]
    return at  # type: ignore[no-any-return]


@kernel
def keep(sim: Sim, me: Any, number: int, there: int, hand: int) -> None:
    """Keep a message that arrived before its phase: add it to the task's chain, which has one
    parcel per phase, in order, with the bytes that arrived and when they will have been handed
    over. The host has this one from `there` on and needs `hand` for it."""
    rows = sim.pool.rows
    phase, before, at = label_of(rows[number]), -1, me[w.EARLY]
    if at >= 0 and label_of(rows[me[w.LATEST_EARLY]]) < phase:
        before, at = me[w.LATEST_EARLY], -1
    while at >= 0 and label_of(rows[at]) < phase:
        before, at = at, rows[at, NEXT]
    if at >= 0 and label_of(rows[at]) == phase:
        rows[at, p.SIZE] += rows[number, p.SIZE]
        rows[at, p.TAIL] = max(rows[at, p.TAIL], there) + hand
        drop_parcel(sim, number)
        return
    rows[number, p.TAIL], rows[number, NEXT] = there + hand, at
    if at < 0:
        me[w.LATEST_EARLY] = number
    if before < 0:
        me[w.EARLY] = number
    else:
        rows[before, NEXT] = number


@kernel
def drop(
    sim: Sim, state: Any, time: int, key: int, number: int, slot: int, asks: bool, reply: int
) -> None:
    """Have done with a message that has come for the task in a slot; but if it asks for a reply,
    the NIC turns it into one of so many bytes, without the task."""
    if not asks:
        drop_parcel(sim, number)
        return
    message = sim.pool.rows[number]
    asker = (message[p.PATH] >> p.SENDER_SHIFT) & p.SLOT_MASK
    there, here = (message[p.ENDS] >> 32) & p.ADDRESS, message[p.ENDS] & p.ADDRESS
    message[p.ENDS], message[p.BORN], message[p.SIZE] = (here << 32) | there, time, reply
    word, serial = word_for(state, key)
    message[p.RANDOM] = word | (label_of(message) << p.LABEL_SHIFT) | (asker << p.TO_SHIFT)
    message[p.PATH], message[p.TAIL], message[p.CAME] = (slot << p.SENDER_SHIFT) | serial, 0, -1
    if here == there:
        schedule(sim, time, key_of(w.DELIVER, agent_of(key), REPLIES + asker), number, 0)
    elif inject(sim, state, time, key, number):
        group, index, _ = node_at_key(state.shape, key)
        nic = nic_row(state.shape, group, index)
        wake(sim, state, nic, 0, time, key_of(w.CREDIT_DUE, agent_of(key), 0))


@kernel
def match(sim: Sim, state: Any, time: int, key: int, number: int) -> None:
    """Match the message of a packet that has arrived, if it is complete. If its task was waiting
    for it, the task goes on."""
    _, _, row = node_at_key(state.shape, key)
    word = sim.pool.rows[number, p.RANDOM]
    slot, asks = (word >> p.TO_SHIFT) & p.SLOT_MASK, word & p.REQUEST != 0
    me = state.slots[row, slot]
    stage = state.stages[stage_at(state, me[w.JOB], label_of(sim.pool.rows[number]))]
    replies = stage[w.WAITS] == w.FOR_REPLIES
    number = complete(sim, me, number, stage[w.REPLY] if replies and not asks else stage[w.MESSAGE])
    if number < 0:
        return
    if replies:
        there, hand = time + (0 if asks else state.nic[w.HOST]), 0
    else:
        matched = max(time, state.matching[row]) + state.nic[w.MATCH]
        state.matching[row] = matched
        there, hand = matched + state.nic[w.HOST], stage[w.HAND]
    message = sim.pool.rows[number]
    if asks or (not replies and stage[w.WAITS] != w.FOR_MESSAGES):
        me[w.APART] += message[p.SIZE]
        me[w.APART_READY] = max(me[w.APART_READY], there) + hand
        if me[w.STAGE] >= 0:
            drop(sim, state, time, key, number, slot, asks, stage[w.REPLY])
            return
        me[w.READY] = me[w.APART_READY]
    elif label_of(message) != me[w.PHASE]:
        keep(sim, me, number, there, hand)
        return
    else:
        me[w.READY] = max(me[w.READY], there) + hand
    me[w.DUE] -= message[p.SIZE]
    drop(sim, state, time, key, number, slot, asks, stage[w.REPLY])
    if me[w.DUE] == 0 and me[w.SENT_COUNT] == w.AWAITING:
        schedule(sim, me[w.READY], key_of(w.STEP, agent_of(key), slot), w.PAUSED, 0)


def command(sim: Sim, state: Any, time: int, key: int, a: int, b: int) -> None:
    """Start task `b` of job `a` in a slot of this node, as the scheduler commands."""
    _, _, row = node_at_key(state.shape, key)
    me = state.slots[row, port_of(key)]
    me[w.JOB], me[w.TASK], me[w.PHASE], me[w.EARLY], me[w.PARTS] = a, b, 0, -1, -1
    me[w.APART], me[w.APART_READY] = 0, 0
    coming(sim, state, time, key, a)
    pause = enter(sim, state, time, key, me)
    if pause >= 0:
        schedule(sim, time + pause, key_of(w.STEP, agent_of(key), port_of(key)), w.PAUSED, 0)


@kernel
def learn(sim: Sim, state: Any, number: int, first: int) -> None:
    """Note where some tasks of a job are."""
    for i in range(w.PLACES):
        place = sim.pool.rows[number, 1 + i]
        if place >= 0:
            state.places[first + i] = place
    drop_parcel(sim, number)


@kernel
def hear(sim: Sim, state: Any, time: int, key: int, job: int, ended: int) -> None:
    """Count a task that has ended, for the scheduler; after the last task of a job it has to
    decide."""
    board = state.board[job]
    board[LEFT] -= 1
    board[OVER] = max(board[OVER], ended)
    if board[LEFT] == 0:
        board[STATUS] = DONE
        schedule(sim, time, key_of(w.DECIDE, w.SCHEDULER, 0), 0, 0)


class Kernels(NamedTuple):
    """The kernels of tasks, for one set of patterns."""

    proceed: Any
    command: Any


class Hooks(NamedTuple):
    """What else happens when a task computes, comes and leaves: these take the place of the
    functions of those names above."""

    pausing: Any
    coming: Any
    leaving: Any


@lru_cache
def kernels(own: tuple[Any, ...], hooks: Hooks | None = None) -> Kernels:
    """Returns the kernels of tasks; `own` are the patterns of plug-ins (`patterns.kernels`)."""
    pair = patterns.kernels(own)
    names: dict[str, Any] = pair._asdict()
    names |= hooks._asdict() if hooks else {}
    names["following"] = kernel(rebound(following, "following", **names))
    names["enter"] = kernel(rebound(enter, "enter", **names))
    return Kernels(
        kernel(rebound(proceed, "proceed", **names)), kernel(rebound(command, "command", **names))
    )


def check_slots(slots: Rows) -> None:
    """Raise AssertionError where a task was sent something that it does not wait for."""
    idle = slots[:, :, w.JOB] < 0
    left = slots[idle][:, [w.EARLY, w.PARTS]]
    assert (left < 0).all(), "a packet came for a task that has ended"
    assert (slots[:, :, w.DUE] >= 0).all(), "a task was sent more than it waits for"
