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

from odonata.agents import patterns
from odonata.agents.layout import (
    APART,
    APART_READY,
    AWAITING,
    BASE,
    COMPUTE,
    COMPUTED_PS,
    CREDIT_DUE,
    DECIDE,
    DELIVER,
    DUE,
    EARLY,
    ENDED,
    ENDS_APART,
    FIRST_STAGE,
    FOR_MESSAGES,
    FOR_NOTHING,
    FOR_REPLIES,
    GENERATED,
    GENERATED_BYTES,
    GROUP_NODES,
    HAND,
    HEAD,
    HOST,
    IMBALANCE,
    JOB,
    LAST,
    LATEST_EARLY,
    LAUNCH,
    MATCH,
    MESSAGE,
    NODES,
    OVERHEAD,
    OVERHEAD_PS,
    PARTS,
    PAUSED,
    PHASE,
    PLACE_BITS,
    PLACES,
    PREPARE,
    READY,
    REPLY,
    SCHEDULER,
    SEED,
    SENDING,
    SENT,
    SENT_COUNT,
    SENT_PS,
    STAGE,
    STAGES,
    STEP,
    STREAM,
    STREAM_BITS,
    TASK,
    TURN,
    WAITED_PS,
    WAITS,
    WITHIN,
    next_draw,
    nic_row,
    node_at_key,
)
from odonata.agents.link import block, wake
from odonata.agents.node import note_generated
from odonata.agents.packet import (
    ADDRESS,
    BORN,
    CAME,
    ENDS,
    LABEL_MASK,
    LABEL_SHIFT,
    PATH,
    POSTED,
    RANDOM,
    REQUEST,
    SENDER_SHIFT,
    SERIAL_MASK,
    SERIAL_SHIFT,
    SIZE,
    SLOT_MASK,
    TAIL,
    TO_SHIFT,
    address,
)
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

MOST_TASKS = SLOT_MASK + 1
"""The largest number of tasks that a node can run."""
REPLIES = WITHIN + MOST_TASKS
"""A node's deliveries at ports from here on are replies to a task of the same node."""


@kernel
def inject(sim: Sim, state: Any, time: int, key: int, number: int) -> bool:
    """Count a message and chain it to the queue of its node's NIC. Returns whether it is the first
    there and may leave at once."""
    group, index, row = node_at_key(state.shape, key)
    tally, size = state.nodes[row], sim.pool.rows[number, SIZE]
    tally[GENERATED] += 1
    tally[GENERATED_BYTES] += size
    note_generated(state, tally, group, time, size)
    nic = nic_row(state.shape, group, index)
    block(sim, state, nic, 0, number, time)
    return state.ports[nic, 1, HEAD] == number  # type: ignore[no-any-return]


@kernel
def word_for(state: Any, key: int) -> Any:
    """Returns the random word of the next message of a node's tasks, 32 bits, and its number among
    those of the node, as `complete` needs it."""
    traffic = state.traffic[0]
    group, index, row = node_at_key(state.shape, key)
    stream = state.nic[STREAM]
    count = next_draw(state, stream, row)
    node = group * traffic[GROUP_NODES] + index
    _, _, _, word = draw(traffic[SEED], (stream << STREAM_BITS) + node, count)
    return int(word), (count & SERIAL_MASK) << SERIAL_SHIFT


@kernel
def post(sim: Sim, state: Any, time: int, key: int, to: int, more: int) -> bool:
    """Give a message to the NIC; `more`: there are others to send in this phase. Returns whether it
    is the first in the queue and may leave at once. A message to another task of this node does not
    pass through the network and is not counted there."""
    shape, agent, slot = state.shape, agent_of(key), port_of(key)
    group, index, row = node_at_key(shape, key)
    me = state.slots[row, slot]
    stage = state.stages[me[STAGE]]
    word, serial = word_for(state, key)
    size, place = stage[MESSAGE], state.places[state.jobs[me[JOB], BASE] + to]
    number = new_parcel(sim)
    message = sim.pool.rows[number]
    here = address(group, index // shape[NODES], index % shape[NODES])
    message[ENDS], message[BORN], message[SIZE] = (here << 32) | (place >> PLACE_BITS), time, size
    message[PATH], message[TAIL] = (slot << SENDER_SHIFT) | serial, 0
    message[CAME] = POSTED - (2 * slot + more)
    message[RANDOM] = (
        word | (label(stage, me[PHASE]) << LABEL_SHIFT) | ((place & SLOT_MASK) << TO_SHIFT)
    )
    if stage[WAITS] == FOR_REPLIES:
        message[RANDOM] |= REQUEST
    inside = here == place >> PLACE_BITS
    if inside or stage[WAITS] == FOR_NOTHING:
        message[CAME] = -1
        schedule(sim, time + stage[PREPARE] * more, key_of(STEP, agent, slot), SENT, 0)
    if inside:
        schedule(sim, time, key_of(DELIVER, agent, WITHIN + slot), number, 0)
        return False
    return inject(sim, state, time, key, number)


def following(state: Any, me: Any) -> int:
    """Returns the task that the next message of this one goes to, or NO_MORE."""
    while True:
        to = peer(state, me[STAGE], me[TASK], me[PHASE], me[SENT_COUNT])
        if to != NOBODY:
            return to
        me[SENT_COUNT] += 1


@kernel
def label_of(packet: Any) -> int:
    """Returns the phase that a packet is for."""
    return (packet[RANDOM] >> LABEL_SHIFT) & LABEL_MASK  # type: ignore[no-any-return]


@kernel
def pausing(sim: Sim, state: Any, time: int, key: int, pause: int, work: int) -> int:
    """Have a task compute, and then its NIC prepare a message. Returns how long that takes, in ps;
    below 0: its end is a matter of others (`odonata.agents.power`)."""
    return pause + work


@kernel
def coming(sim: Sim, state: Any, time: int, key: int, job: int) -> None:
    """Called when a task of a job is about to start."""


@kernel
def leaving(sim: Sim, state: Any, time: int, key: int) -> None:
    """Called when a task has ended."""


def enter(sim: Sim, state: Any, time: int, key: int, me: Any) -> int:
    """Begin a phase: compute the bytes that are to come in it, less those that have arrived.
    Returns for how long the task pauses, as `pausing` does."""
    number, phase, rows = me[JOB], me[PHASE], sim.pool.rows
    me[SENT_COUNT], me[TURN], me[SENDING] = 0, time, 0
    if state.jobs[number, ENDS_APART] and phase == state.jobs[number, LAST] - 1:
        me[STAGE] = -1
        me[DUE] = apart(state, number, me[TASK]) - me[APART]
        me[READY] = me[APART_READY]
        return 0
    me[STAGE], me[READY] = stage_at(state, number, phase), 0
    me[DUE] = awaited(state, me[STAGE], me[TASK], phase)
    stage, first = state.stages[me[STAGE]], me[EARLY]
    if first >= 0 and label_of(rows[first]) == phase:
        me[DUE] -= rows[first, SIZE]
        me[READY] = rows[first, TAIL]
        me[EARLY] = rows[first, NEXT]
        drop_parcel(sim, first)
    pause = stage[PREPARE] if following(state, me) != NO_MORE else 0
    work = 0
    if step_of(stage, phase) == 0:
        work = stage[COMPUTE]
        if stage[IMBALANCE] > 0:
            work += longer(stage, me[TASK], phase)
    return pausing(sim, state, time, key, pause, work)


@kernel
def spend(state: Any, me: Any, time: int, pause: int) -> None:
    """Count how long a task has computed, and its overhead; since then its first message took
    `pause` to be prepared."""
    stage, spent = state.stages[me[STAGE]], state.spent[me[STAGE]]
    took = time - me[TURN] - pause
    overhead = 0
    if stage[OVERHEAD] > 0:
        work = 0
        if step_of(stage, me[PHASE]) == 0:
            work = stage[COMPUTE]
            if stage[IMBALANCE] > 0:
                work += longer(stage, me[TASK], me[PHASE])
        if work > 0:
            overhead = stage[OVERHEAD]
            if took != work:
                overhead = int(took * (stage[OVERHEAD] / work))
    spent[COMPUTED_PS] += took - overhead
    spent[OVERHEAD_PS] += overhead
    me[TURN] = time - pause


@kernel
def turn(state: Any, me: Any, time: int, what: int) -> None:
    """Count how long a task has sent, or waited."""
    row = me[STAGE]
    if row < 0:
        row = state.jobs[me[JOB], FIRST_STAGE] + state.jobs[me[JOB], STAGES] - 1
    state.spent[row, what] += time - me[TURN]
    me[TURN] = time


def proceed(sim: Sim, state: Any, time: int, key: int) -> bool:
    """Advance a task as far as possible. Returns whether it has a message that may leave."""
    _, _, row = node_at_key(state.shape, key)
    me = state.slots[row, port_of(key)]
    while True:
        if me[SENT_COUNT] != AWAITING:
            to = following(state, me)
            if me[SENDING] == 0:
                me[SENDING] = 1
                if me[STAGE] >= 0:
                    spend(state, me, time, state.stages[me[STAGE], PREPARE] if to != NO_MORE else 0)
            if to != NO_MORE:
                me[SENT_COUNT] += 1
                more = 1 if following(state, me) != NO_MORE else 0
                return post(sim, state, time, key, to, more)
            me[SENT_COUNT] = AWAITING
            turn(state, me, time, SENT_PS)
        if me[DUE] > 0:
            return False
        if me[READY] > time:
            schedule(sim, me[READY], key_of(STEP, agent_of(key), port_of(key)), PAUSED, 0)
            return False
        turn(state, me, time, WAITED_PS)
        me[PHASE] += 1
        if me[PHASE] == state.jobs[me[JOB], LAST]:
            heard = time + state.nic[LAUNCH]
            schedule(sim, heard, key_of(ENDED, SCHEDULER, 0), me[JOB], time)
            leaving(sim, state, time, key)
            me[JOB] = -1
            return False
        pause = enter(sim, state, time, key, me)
        if pause > 0:
            schedule(sim, time + pause, key_of(STEP, agent_of(key), port_of(key)), PAUSED, 0)
        if pause != 0:
            return False


@kernel
def complete(sim: Sim, me: Any, number: int, whole: int) -> int:
    """Add a packet to the message that it is a part of. Returns the parcel of the message if that
    is complete, with its bytes, and otherwise -1. A message is known by the task that sent it and
    by when."""
    rows = sim.pool.rows
    packet = rows[number]
    if packet[SIZE] == whole:
        return number
    before, at = -1, me[PARTS]
    while at >= 0 and not (
        rows[at, BORN] == packet[BORN]
        and rows[at, ENDS] == packet[ENDS]
        and rows[at, PATH] >> SENDER_SHIFT == packet[PATH] >> SENDER_SHIFT
        and rows[at, RANDOM] >> LABEL_SHIFT == packet[RANDOM] >> LABEL_SHIFT
    ):
        before, at = at, rows[at, NEXT]
    if at < 0:
        packet[NEXT] = me[PARTS]
        me[PARTS] = number
        return -1
    rows[at, SIZE] += packet[SIZE]
    drop_parcel(sim, number)
    if rows[at, SIZE] < whole:
        return -1
    if before < 0:
        me[PARTS] = rows[at, NEXT]
    else:
        rows[before, NEXT] = rows[at, NEXT]
    return at  # type: ignore[no-any-return]


@kernel
def keep(sim: Sim, me: Any, number: int, there: int, hand: int) -> None:
    """Keep a message that arrived before its phase: add it to the task's chain, which has one
    parcel per phase, in order, with the bytes that arrived and when they will have been handed
    over. The host has this one from `there` on and needs `hand` for it."""
    rows = sim.pool.rows
    phase, before, at = label_of(rows[number]), -1, me[EARLY]
    if at >= 0 and label_of(rows[me[LATEST_EARLY]]) < phase:
        before, at = me[LATEST_EARLY], -1
    while at >= 0 and label_of(rows[at]) < phase:
        before, at = at, rows[at, NEXT]
    if at >= 0 and label_of(rows[at]) == phase:
        rows[at, SIZE] += rows[number, SIZE]
        rows[at, TAIL] = max(rows[at, TAIL], there) + hand
        drop_parcel(sim, number)
        return
    rows[number, TAIL], rows[number, NEXT] = there + hand, at
    if at < 0:
        me[LATEST_EARLY] = number
    if before < 0:
        me[EARLY] = number
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
    asker = (message[PATH] >> SENDER_SHIFT) & SLOT_MASK
    there, here = (message[ENDS] >> 32) & ADDRESS, message[ENDS] & ADDRESS
    message[ENDS], message[BORN], message[SIZE] = (here << 32) | there, time, reply
    word, serial = word_for(state, key)
    message[RANDOM] = word | (label_of(message) << LABEL_SHIFT) | (asker << TO_SHIFT)
    message[PATH], message[TAIL], message[CAME] = (slot << SENDER_SHIFT) | serial, 0, -1
    if here == there:
        schedule(sim, time, key_of(DELIVER, agent_of(key), REPLIES + asker), number, 0)
    elif inject(sim, state, time, key, number):
        group, index, _ = node_at_key(state.shape, key)
        nic = nic_row(state.shape, group, index)
        wake(sim, state, nic, 0, time, key_of(CREDIT_DUE, agent_of(key), 0))


@kernel
def match(sim: Sim, state: Any, time: int, key: int, number: int) -> None:
    """Match the message of a packet that has arrived, if it is complete. If its task was waiting
    for it, the task goes on."""
    _, _, row = node_at_key(state.shape, key)
    word = sim.pool.rows[number, RANDOM]
    slot, asks = (word >> TO_SHIFT) & SLOT_MASK, word & REQUEST != 0
    me = state.slots[row, slot]
    stage = state.stages[stage_at(state, me[JOB], label_of(sim.pool.rows[number]))]
    replies = stage[WAITS] == FOR_REPLIES
    number = complete(sim, me, number, stage[REPLY] if replies and not asks else stage[MESSAGE])
    if number < 0:
        return
    if replies:
        there, hand = time + (0 if asks else state.nic[HOST]), 0
    else:
        matched = max(time, state.matching[row]) + state.nic[MATCH]
        state.matching[row] = matched
        there, hand = matched + state.nic[HOST], stage[HAND]
    message = sim.pool.rows[number]
    if asks or (not replies and stage[WAITS] != FOR_MESSAGES):
        me[APART] += message[SIZE]
        me[APART_READY] = max(me[APART_READY], there) + hand
        if me[STAGE] >= 0:
            drop(sim, state, time, key, number, slot, asks, stage[REPLY])
            return
        me[READY] = me[APART_READY]
    elif label_of(message) != me[PHASE]:
        keep(sim, me, number, there, hand)
        return
    else:
        me[READY] = max(me[READY], there) + hand
    me[DUE] -= message[SIZE]
    drop(sim, state, time, key, number, slot, asks, stage[REPLY])
    if me[DUE] == 0 and me[SENT_COUNT] == AWAITING:
        schedule(sim, me[READY], key_of(STEP, agent_of(key), slot), PAUSED, 0)


def command(sim: Sim, state: Any, time: int, key: int, a: int, b: int) -> None:
    """Start task `b` of job `a` in a slot of this node, as the scheduler commands."""
    _, _, row = node_at_key(state.shape, key)
    me = state.slots[row, port_of(key)]
    me[JOB], me[TASK], me[PHASE], me[EARLY], me[PARTS] = a, b, 0, -1, -1
    me[APART], me[APART_READY] = 0, 0
    coming(sim, state, time, key, a)
    pause = enter(sim, state, time, key, me)
    if pause >= 0:
        schedule(sim, time + pause, key_of(STEP, agent_of(key), port_of(key)), PAUSED, 0)


@kernel
def learn(sim: Sim, state: Any, number: int, first: int) -> None:
    """Note where some tasks of a job are."""
    for i in range(PLACES):
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
        schedule(sim, time, key_of(DECIDE, SCHEDULER, 0), 0, 0)


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
    idle = slots[:, :, JOB] < 0
    left = slots[idle][:, [EARLY, PARTS]]
    assert (left < 0).all(), "a packet came for a task that has ended"
    assert (slots[:, :, DUE] >= 0).all(), "a task was sent more than it waits for"
