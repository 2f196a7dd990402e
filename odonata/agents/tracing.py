"""Packets followed hop by hop: what is noted down of each, and the logs that this becomes.

A **packet number** is k * nodes + node for packet k of a node, counted from 0 in the order in which
the node's interface sends its packets: the same on any number of ranks. With `trace_packets` = N
the packets k of node n are traced for which k + n is divisible by N: every N-th of each node.

The kernels here take the place of those of links, crossbars and routers of the same names and call
these as `plain`, so a network whose packets are not traced has nothing of it. A traced network has
wider parcels, and a state of its own with room for the notes of `NOTED_EVERY` events; the engine
collects them at least as often.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from odonata.agents import layout as w
from odonata.agents import packet as p
from odonata.agents.layout import State, node_at_key
from odonata.agents.link import GRANTS, used_by
from odonata.agents.packet import group_at, node_at, router_at
from odonata.agents.switch import CROSSINGS
from pdes.events import agent_of, kind_of, port_of
from pdes.jit import kernel, rebound, record
from pdes.log import Appended, Block, Field, Log
from pdes.loop import Sim
from pdes.words import Row

TRACED = Row("Pool.rows, a packet of a traced network", after=p.PACKET)
NUMBER = TRACED.word("1", "its number, or -1 if it is not traced")
HERE = TRACED.word("ps", "when it came to where it is")
CROSSED = TRACED.word("ps", "when it began to cross there")
BEHIND = TRACED.word("ps", "for how long until then it was not first in its input queue")
LACKED = TRACED.word("ps", "for how long as the first it lacked room")
TRACED_PARCEL = len(TRACED)

NOTED_EVERY = 2048
"""Events after which notes are collected at the latest."""
HOPS_OF_AN_EVENT = max(GRANTS, CROSSINGS)
"""The largest number of packets that one event sends on their way."""

TRACING = Row("TracedState.tracing")
EVERY = TRACING.word("1", "N")
HOP_COUNT = TRACING.word("1", "how many rows of `hop_notes` there are")
DELIVERY_COUNT = TRACING.word("1", "how many of `delivery_notes`")

NOTES = ("tracing", "hop_notes", "delivery_notes")
"""The arrays that a traced network has in addition."""


def _with_notes() -> Any:
    return namedtuple("TracedState", (*State._fields, *NOTES))


TracedState = record(_with_notes())
"""The state of a network whose packets are traced: `State`, and the notes."""

LOGS = {
    "packet_hops": Log(
        (Field("packet", "1", "its number"),
         Field("hop", "1", "routers visited before; 0: it leaves its node", "i1"),
         Field("router", "1", "the router that it leaves; -1: its node", "i4"),
         Field("port", "1", "the port by which it leaves", "i2"),
         Field("vc", "1", "the virtual channel on which it travels", "i1"),
         Field("to_node", "1", "its destination", "i4"),
         Field("bytes", "B", "its size", "i4"),
         Field("arrived_ps", "ps", "when the router handled it: its head had passed the pipeline; "
               "at its node, when its message was generated"),
         Field("input_ps", "ps", "how long it was behind others in its input queue"),
         Field("room_ps", "ps", "how long it was first there, without room at its output"),
         Field("switch_ps", "ps", "how long it was first there, with room, and did not cross"),
         Field("behind_ps", "ps", "how long it was behind others in its output channel"),
         Field("credit_ps", "ps", "how long it was first there, without credit; the link was free"),
         Field("link_ps", "ps", "how long it was first there, and the link was busy"),
         Field("start_ps", "ps", "when its first byte was sent"),
         Field("left_ps", "ps", "when its last byte had been sent"),
         Field("next_ps", "ps", "when the next router handles it, or its last byte is at its "
               "destination")),
        "a row when a traced packet is granted a link",
    ),
    "packet_deliveries": Log(
        (Field("packet", "1", "its number"),
         Field("node", "1", "its destination", "i4"),
         Field("bytes", "B", "its size", "i4"),
         Field("generated_ps", "ps", "when its message was generated"),
         Field("hops", "1", "routers visited", "i1"),
         Field("non_minimal", "1", "1: its path was non-minimal", "i1"),
         Field("job", "1", "the job that it is of; -1: it is of open-loop traffic", "i4")),
        "a row when a traced packet is delivered",
    ),
}  # fmt: skip
"""The logs of traced packets. Of a hop, start = arrived + all the waits."""
HOP_WORDS, DELIVERY_WORDS = (2 + len(LOGS[name].columns) for name in LOGS)
"""Words of a note: its time, its agent, and the columns of its log."""


def traced(state: State, every: int) -> Any:
    """Returns the state of a network that traces every so many-th packet."""
    return TracedState(
        *state,
        tracing=np.array([every, 0, 0]),
        hop_notes=np.zeros((HOPS_OF_AN_EVENT * NOTED_EVERY, HOP_WORDS), np.int64),
        delivery_notes=np.zeros((NOTED_EVERY, DELIVERY_WORDS), np.int64),
    )


def notes(state: Any) -> Appended:
    """Returns the notes as rows of logs, and takes them out of the state."""
    _, hops, deliveries = state.tracing.tolist()
    if not hops and not deliveries:
        return ()
    state.tracing[[HOP_COUNT, DELIVERY_COUNT]] = 0
    found = state.hop_notes[:hops].copy(), state.delivery_notes[:deliveries].copy()
    return [(name, Block(rows[:, 0], tuple(rows[:, 2:].T), rows[:, 1]))
            for name, rows in zip(LOGS, found, strict=True)]  # fmt: skip


@kernel
def node_of(shape: Any, where: int) -> int:
    """Returns the node at an address."""
    router = group_at(where) * shape[w.ROUTERS] + router_at(where)
    return router * shape[w.NODES] + node_at(where)  # type: ignore[no-any-return]


def plain(*arguments: Any) -> int:
    """Bound to the kernel whose place one of these takes: by `kernels`, of links (launch) and of
    crossbars (cross) by theirs."""
    raise AssertionError("in the place of no kernel")


def launch(
    sim: Sim, state: Any, row: int, vc: int, lane: int, number: int, now: int, since: int
) -> int:
    """Grant the link to a packet, and note down the hop of one that is traced. In its node a packet
    is given its number now."""
    packet, shape = sim.pool.rows[number], state.shape
    group, inside = row // shape[w.GROUP_PORTS] + shape[w.FIRST_GROUP], row % shape[w.GROUP_PORTS]
    hop = (packet[p.PATH] >> p.VISIT_SHIFT) & p.VISIT_MASK
    index, router, out = inside // shape[w.RADIX], -1, 0
    if hop == 0:
        index = shape[w.ROUTERS] + inside - shape[w.ROUTERS] * shape[w.RADIX]
        node = group * shape[w.ROUTERS] * shape[w.NODES] + index - shape[w.ROUTERS]
        count = state.ports[row, 1, w.PACKETS]
        packet[NUMBER] = -1
        if (count + node) % state.tracing[EVERY] == 0:
            packet[NUMBER] = count * shape[w.GROUPS] * shape[w.ROUTERS] * shape[w.NODES] + node
        packet[HERE] = packet[CROSSED] = packet[p.BORN]
        packet[BEHIND] = packet[LACKED] = 0
    else:
        router, out = group * shape[w.ROUTERS] + index, inside - index * shape[w.RADIX]
    if packet[NUMBER] < 0:
        return plain(sim, state, row, vc, lane, number, now, since)
    port, before = state.ports[row, 0], state.ports[row, 1 + vc, w.STARTED]
    credit = 0
    if since < now:
        credit = (now - since) - (used_by(port, now) - state.slow[row, vc, w.MARK])
    start = plain(sim, state, row, vc, lane, number, now, since)
    link, crossed = start - max(since, before) - credit, packet[CROSSED]
    left = port[w.BUSY]
    there = left + port[w.LATENCY]
    if kind_of(port[w.FAR_KEY]) == w.ARRIVE:
        there += state.delay[0] - packet[p.TAIL]
    note = state.hop_notes[state.tracing[HOP_COUNT]]
    state.tracing[HOP_COUNT] += 1
    note[0] = now
    note[1] = ((group + shape[w.OFFSET]) << shape[w.AGENT_BITS]) + index
    note[2] = packet[NUMBER]
    note[3] = hop
    note[4] = router
    note[5] = out
    note[6] = lane
    note[7] = node_of(shape, packet[p.ENDS] & p.ADDRESS)
    note[8] = packet[p.SIZE]
    note[9] = packet[HERE]
    note[10] = packet[BEHIND]
    note[11] = packet[LACKED]
    note[12] = crossed - packet[HERE] - packet[BEHIND] - packet[LACKED]
    note[13] = start - crossed - credit - link
    note[14] = credit
    note[15] = link
    note[16] = start
    note[17] = left
    note[18] = there
    return start


def cross(sim: Sim, state: Any, router: int, base: int, k: int, now: int, agent: int) -> None:
    """Have a packet begin to cross, and remember what it has waited for until then."""
    which = state.requests[router, k]
    queue = state.queues[base + (which >> w.VC_BITS), which & p.VC_MASK]
    packet = sim.pool.rows[queue[w.Q_HEAD]]
    packet[CROSSED], packet[LACKED] = now, queue[w.Q_LACKED]
    packet[BEHIND] = queue[w.Q_SINCE] - packet[HERE]
    plain(sim, state, router, base, k, now, agent)


def arrive(sim: Sim, state: Any, time: int, key: int, number: int, summary: int) -> None:
    """Handle a packet at a router, and remember since when it is there."""
    packet = sim.pool.rows[number]
    packet[HERE] = packet[CROSSED] = time
    packet[BEHIND] = packet[LACKED] = 0
    plain(sim, state, time, key, number, summary)


def accept(sim: Sim, state: Any, time: int, key: int, number: int) -> None:
    """Have a node accept a packet, and note down that one that is traced has been delivered."""
    packet = sim.pool.rows[number]
    if port_of(key) < w.WITHIN and packet[NUMBER] >= 0:
        job, word = -1, packet[p.RANDOM]
        if word >= 0:
            _, _, row = node_at_key(state.shape, key)
            job = state.slots[row, (word >> p.TO_SHIFT) & p.SLOT_MASK, w.JOB]
        note = state.delivery_notes[state.tracing[DELIVERY_COUNT]]
        state.tracing[DELIVERY_COUNT] += 1
        note[0] = time
        note[1] = agent_of(key)
        note[2] = packet[NUMBER]
        note[3] = node_of(state.shape, packet[p.ENDS] & p.ADDRESS)
        note[4] = packet[p.SIZE]
        note[5] = packet[p.BORN]
        note[6] = (packet[p.PATH] >> p.VISIT_SHIFT) & p.VISIT_MASK
        note[7] = 1 if packet[p.PATH] & p.AVOIDS else 0
        note[8] = job
    plain(sim, state, time, key, number)


def kernels(arriving: Any, accepting: Any) -> dict[str, Any]:
    """Returns `arrive` and `accept` around these."""
    return {
        "arrive": kernel(rebound(arrive, "arrive", plain=arriving)),
        "accept": kernel(rebound(accept, "accept", plain=accepting)),
    }
