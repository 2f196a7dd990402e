"""A node's network interface: it makes messages and takes in the packets that come."""

from __future__ import annotations

from typing import Any

import numpy as np

from odonata.agents.link import HEAD, another, block
from odonata.agents.packet import (
    ADDRESS,
    BORN,
    CAME,
    ENDS,
    GROUP_SHIFT,
    LUCK,
    PATH,
    SIZE,
    TAIL,
    VISIT_MASK,
    VISIT_SHIFT,
    address,
)
from odonata.agents.router import AGENT_BITS, FIRST_GROUP, GROUP_PORTS, NODES, RADIX, ROUTERS
from odonata.agents.traffic import ADVERSARIAL, HOTSPOT, PARTNER
from pdes.events import agent_of
from pdes.jit import entry, kernel
from pdes.loop import Sim, new_parcel, schedule
from pdes.random import U64, below, draw, exponential

SEED, HOW, TOTAL, GROUP_NODES, STRIDE, MESSAGE, LIMIT, STOP, SLOT, HOT, HOT_EVERY = range(11)
"""Words of `State.traffic`; SLOT is 0 for a Poisson process, HOT a threshold for 32 random bits."""

(DRAWS, MADE, MADE_BYTES, GOT, GOT_BYTES, LATENCY_SUM, LONGEST, HOPS, OFFERED, INJECTED, ACCEPTED,
 MEASURED, MEASURED_LATENCY, MEASURED_MADE, LAST_IN) = range(15)  # fmt: skip
"""Words of a node: random numbers drawn; messages made, and bytes; packets taken in, their bytes,
latencies, largest latency (of those measured), routers visited. Then, of the measurement: bytes
offered, bytes whose sending began, bytes taken in, all three within it; packets made within it that
were taken in, and their latencies; packets made within it. And when the last packet was taken in.
"""
NODE_WORDS = 15

GOLDEN = U64(0x9E3779B97F4A7C15)
OCTAVE = 64
BINS = 40 * OCTAVE
"""Latencies are counted in 64 bins an octave, up to 2**40 ps."""
BIN_BITS = 46
BIN_ONE = 1023 << 6


@kernel
def node_row(shape: Any, group: int, index: int) -> int:
    """Of a node in the arrays of nodes, given its number in the group."""
    return (group - shape[FIRST_GROUP]) * shape[ROUTERS] * shape[NODES] + index  # type: ignore[no-any-return]


@kernel
def nic_row(shape: Any, group: int, index: int) -> int:
    """The port of a node's interface: behind those of its group's routers."""
    base = (group - shape[FIRST_GROUP]) * shape[GROUP_PORTS]
    return base + shape[ROUTERS] * shape[RADIX] + index  # type: ignore[no-any-return]


@kernel
def gap(state: Any, w0: Any, w1: Any) -> int:
    """Until the next message."""
    if state.traffic[SLOT] == 0:
        return np.int64(exponential(w0, w1) * state.pace[0] + 0.5)  # type: ignore[return-value]
    slots = 1 + np.int64(exponential(w0, w1) * state.pace[0])
    return slots * state.traffic[SLOT]  # type: ignore[no-any-return]


@kernel
def target(state: Any, node: int, row: int, word: Any) -> int:
    """The node that a message goes to."""
    traffic = state.traffic
    how = traffic[HOW]
    if how == PARTNER:
        return state.partners[row]  # type: ignore[no-any-return]
    if how == ADVERSARIAL:
        first = (node // traffic[GROUP_NODES] + traffic[STRIDE]) * traffic[GROUP_NODES]
        return (first + below(word, traffic[GROUP_NODES])) % traffic[TOTAL]  # type: ignore[no-any-return]
    if how == HOTSPOT and np.int64(another(word, 0)) < traffic[HOT]:
        hot = below(word, (traffic[TOTAL] + traffic[HOT_EVERY] - 1) // traffic[HOT_EVERY])
        if hot * traffic[HOT_EVERY] != node:
            return hot * traffic[HOT_EVERY]  # type: ignore[no-any-return]
        word = another(word, 1)
    other = below(word, traffic[TOTAL] - 1)
    return other + (1 if other >= node else 0)


@kernel
def generate(sim: Sim, state: Any, time: int, key: int) -> bool:
    """Make a message, chain it to the source queue, and see to the next. Returns whether it is the
    first there, and may go at once."""
    shape, traffic, agent = state.shape, state.traffic, agent_of(key)
    group = agent >> shape[AGENT_BITS]
    index = (agent & ((1 << shape[AGENT_BITS]) - 1)) - shape[ROUTERS]
    row = node_row(shape, group, index)
    tally = state.nodes[row]
    node = group * traffic[GROUP_NODES] + index
    w0, w1, w2, w3 = draw(traffic[SEED], node, tally[DRAWS])
    to = target(state, node, row, w2)
    tally[DRAWS] += 1
    tally[MADE] += 1
    size = traffic[MESSAGE]
    tally[MADE_BYTES] += size
    number = new_parcel(sim)
    message = sim.pool.rows[number]
    to_group = to // traffic[GROUP_NODES]
    to_index = to - to_group * traffic[GROUP_NODES]
    here = address(group, index // shape[NODES], index % shape[NODES])
    there = address(to_group, to_index // shape[NODES], to_index % shape[NODES])
    message[ENDS], message[BORN], message[SIZE] = (here << 32) | there, time, size
    message[PATH], message[CAME], message[TAIL], message[LUCK] = 0, -1, 0, np.int64(w3)
    if state.measured[0] <= time < state.measured[1]:
        tally[OFFERED] += size
        tally[MEASURED_MADE] += (size + state.largest[0] - 1) // state.largest[0]
    nic = nic_row(shape, group, index)
    block(sim, state, nic, 0, number, time)
    following = time + gap(state, w0, w1)
    if following < traffic[STOP] and tally[MADE] != traffic[LIMIT]:
        schedule(sim, following, key, 0, 0)
    return state.ports[nic, 1, HEAD] == number  # type: ignore[no-any-return]


@kernel
def deliver(sim: Sim, state: Any, time: int, key: int, number: int) -> None:
    """The tail of a packet is in: count it."""
    shape, agent = state.shape, agent_of(key)
    group = agent >> shape[AGENT_BITS]
    index = (agent & ((1 << shape[AGENT_BITS]) - 1)) - shape[ROUTERS]
    row = node_row(shape, group, index)
    tally, packet = state.nodes[row], sim.pool.rows[number]
    size, born = packet[SIZE], packet[BORN]
    latency = time - born
    tally[GOT] += 1
    tally[GOT_BYTES] += size
    tally[LAST_IN] = time
    tally[LATENCY_SUM] += latency
    tally[HOPS] += (packet[PATH] >> VISIT_SHIFT) & VISIT_MASK
    source = ((packet[ENDS] >> 32) & ADDRESS) >> GROUP_SHIFT
    state.received[group - shape[FIRST_GROUP], source] += size
    mixed = U64(time) ^ (U64(packet[ENDS]) * GOLDEN) ^ (U64(born) << U64(20)) ^ U64(size)
    state.history[row] = (state.history[row] ^ mixed) * GOLDEN
    if state.measured[0] <= time < state.measured[1]:
        tally[ACCEPTED] += size
    if state.measured[0] <= born < state.measured[1]:
        tally[MEASURED] += 1
        tally[MEASURED_LATENCY] += latency
        tally[LONGEST] = max(tally[LONGEST], latency)
        which = (np.float64(latency).view(np.int64) >> BIN_BITS) - BIN_ONE
        state.histogram[group - shape[FIRST_GROUP], max(0, min(which, BINS - 1))] += 1


@entry
def first_messages(state: Any, rows: Any, keys: Any, first_node: int) -> None:
    """The events of every node's first message."""
    for i in range(rows.shape[0]):
        w0, w1, _, _ = draw(state.traffic[SEED], first_node + i, 0)
        state.nodes[i, DRAWS] = 1
        rows[i, 0] = gap(state, w0, w1)
        rows[i, 1] = keys[i]
