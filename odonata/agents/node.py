"""A node's network interface: it generates messages of open-loop traffic, and packets are delivered
to it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from odonata.agents import layout as w
from odonata.agents import packet as p
from odonata.agents.flows import span_at
from odonata.agents.layout import next_draw, nic_row, node_at_key
from odonata.agents.link import another, block
from odonata.agents.packet import address
from odonata.agents.traffic import ADVERSARIAL, HOTSPOT, OWN, PARTNER
from pdes.events import port_of
from pdes.jit import entry, kernel, rebound
from pdes.loop import Sim, new_parcel, schedule
from pdes.random import U64, below, draw, exponential

GOLDEN = U64(0x9E3779B97F4A7C15)


@kernel
def gap(traffic: Any, pace: float, w0: Any, w1: Any) -> int:
    """Returns the picoseconds until a node's next message."""
    if traffic[w.SLOT] == 0:
        return np.int64(exponential(w0, w1) * pace + 0.5)  # type: ignore[return-value]
    slots = 1 + np.int64(exponential(w0, w1) * pace)
    return slots * traffic[w.SLOT]  # type: ignore[no-any-return]


@kernel
def of_no_plugin(how: int, node: int, nodes: int, group_nodes: int, word: Any) -> int:
    """Stands for the patterns of plug-ins, where there are none."""
    return node


own_target: Callable[..., int] = of_no_plugin  # bound by `generator`: a chain of `_own_target`


def target(state: Any, source: int, node: int, row: int, word: Any) -> int:
    """Returns the node that a message goes to."""
    traffic = state.traffic[source]
    how = traffic[w.HOW]
    if how == PARTNER:
        return state.partners[source, row]  # type: ignore[no-any-return]
    if how == ADVERSARIAL:
        first = (node // traffic[w.GROUP_NODES] + traffic[w.STRIDE]) * traffic[w.GROUP_NODES]
        return (first + below(word, traffic[w.GROUP_NODES])) % traffic[w.TOTAL]  # type: ignore[no-any-return]
    if how >= OWN:
        return own_target(how, node, traffic[w.TOTAL], traffic[w.GROUP_NODES], word)
    if how == HOTSPOT and np.int64(another(word, 0)) < traffic[w.HOT]:
        hot = below(word, (traffic[w.TOTAL] + traffic[w.HOT_EVERY] - 1) // traffic[w.HOT_EVERY])
        if hot * traffic[w.HOT_EVERY] != node:
            return hot * traffic[w.HOT_EVERY]  # type: ignore[no-any-return]
        word = another(word, 1)
    other = below(word, traffic[w.TOTAL] - 1)
    return other + (1 if other >= node else 0)


@kernel
def note_generated(state: Any, tally: Any, group: int, time: int, size: int) -> None:
    """Count the bytes and the packets of a message that a node generates, if they are measured, and
    in the flows of its group."""
    packets = (size + state.largest[0] - 1) // state.largest[0]
    own = group - state.shape[w.FIRST_GROUP]
    span = span_at(state, own, time)
    state.flows[own, span, w.F_GENERATED] += size
    state.flows[own, span, w.F_PACKETS] += packets
    if state.measured[0] <= time < state.measured[1]:
        tally[w.OFFERED] += size
        tally[w.MEASURED_GENERATED] += packets


def generate(sim: Sim, state: Any, time: int, key: int) -> bool:
    """Generate a message, chain it to the source queue, and schedule the next. Returns whether it
    is the first there, and may go at once."""
    shape, source = state.shape, port_of(key)
    traffic = state.traffic[source]
    group, index, row = node_at_key(shape, key)
    tally = state.nodes[row]
    node = group * traffic[w.GROUP_NODES] + index
    count = next_draw(state, source, row)
    w0, w1, w2, w3 = draw(traffic[w.SEED], (source << w.STREAM_BITS) + node, count)
    to = target(state, source, node, row, w2)
    following = time + gap(traffic, state.pace[source], w0, w1)
    goes_on = following < traffic[w.STOP]
    if goes_on and count != traffic[w.LIMIT]:
        schedule(sim, following, key, 0, 0)
    if to == node:
        return False
    tally[w.GENERATED] += 1
    size = traffic[w.MESSAGE_BYTES]
    tally[w.GENERATED_BYTES] += size
    number = new_parcel(sim)
    message = sim.pool.rows[number]
    to_group = to // traffic[w.GROUP_NODES]
    to_index = to - to_group * traffic[w.GROUP_NODES]
    here = address(group, index // shape[w.NODES], index % shape[w.NODES])
    there = address(to_group, to_index // shape[w.NODES], to_index % shape[w.NODES])
    message[p.ENDS], message[p.BORN], message[p.SIZE] = (here << 32) | there, time, size
    message[p.PATH], message[p.CAME], message[p.TAIL] = 0, -1, 0
    message[p.RANDOM] = np.int64(w3) | p.OPEN_LOOP
    note_generated(state, tally, group, time, size)
    nic = nic_row(shape, group, index)
    block(sim, state, nic, 0, number, time)
    return state.ports[nic, 1, w.HEAD] == number  # type: ignore[no-any-return]


@lru_cache
def generator(own: tuple[Any, ...]) -> Any:
    """Returns `generate` for the traffic patterns of plug-ins, numbered from OWN: kernels
    `destination(node, nodes, group_nodes, word)`."""
    chain = of_no_plugin
    for number, destination in enumerate(own, OWN):
        names = {"NUMBER": number, "destination": destination, "others": chain}
        chain = kernel(rebound(_own_target, "own_target", **names))
    found = kernel(rebound(target, "target", own_target=chain))
    return kernel(rebound(generate, "generate", target=found))


# Bound by `generator`, for each plug-in's pattern:
NUMBER: int = 0  # its number, from OWN on
destination: Callable[..., int] = of_no_plugin  # its kernel
others: Callable[..., int] = of_no_plugin  # `_own_target` for those before it


def _own_target(how: int, node: int, nodes: int, group_nodes: int, word: Any) -> int:
    if how == NUMBER:
        to = destination(node, nodes, group_nodes, int(word))
        return to if 0 <= to < nodes else node
    return others(how, node, nodes, group_nodes, word)


@kernel
def deliver(sim: Sim, state: Any, time: int, key: int, number: int) -> int:
    """Count a packet whose tail has arrived at its node. Returns the bin of its latency, or -1 if
    it is not measured."""
    shape = state.shape
    group, _, row = node_at_key(shape, key)
    tally, packet = state.nodes[row], sim.pool.rows[number]
    size, born = packet[p.SIZE], packet[p.BORN]
    latency = time - born
    tally[w.DELIVERED] += 1
    tally[w.DELIVERED_BYTES] += size
    tally[w.LAST_IN] = time
    tally[w.LATENCY_SUM] += latency
    tally[w.HOPS] += (packet[p.PATH] >> p.VISIT_SHIFT) & p.VISIT_MASK
    source = ((packet[p.ENDS] >> 32) & p.ADDRESS) >> p.GROUP_SHIFT
    state.received[group - shape[w.FIRST_GROUP], source] += size
    mixed = U64(time) ^ (U64(packet[p.ENDS]) * GOLDEN) ^ (U64(born) << U64(20)) ^ U64(size)
    state.history[row] = (state.history[row] ^ mixed) * GOLDEN
    own = group - shape[w.FIRST_GROUP]
    state.flows[own, span_at(state, own, time), w.F_DELIVERED] += size
    span = span_at(state, own, born)
    state.flows[own, span, w.F_ARRIVED] += 1
    state.flows[own, span, w.F_LATENCY] += latency
    if state.measured[0] <= time < state.measured[1]:
        tally[w.ACCEPTED] += size
    if state.measured[0] <= born < state.measured[1]:
        tally[w.MEASURED] += 1
        tally[w.MEASURED_LATENCY] += latency
        tally[w.LONGEST] = max(tally[w.LONGEST], latency)
        place = (np.float64(latency).view(np.int64) >> w.BIN_BITS) - w.BIN_ONE
        which = max(0, min(place, w.BINS - 1))
        state.histogram[group - shape[w.FIRST_GROUP], which] += 1
        return which  # type: ignore[return-value]
    return -1


@entry
def first_messages(state: Any, source: int, rows: Any, keys: Any, first_node: int) -> None:
    """Fill in the events of every node's first message of one traffic."""
    traffic = state.traffic[source]
    for i in range(rows.shape[0]):
        node = first_node + i
        count = next_draw(state, source, i)
        w0, w1, _, _ = draw(traffic[w.SEED], (source << w.STREAM_BITS) + node, count)
        rows[i, 0] = gap(traffic, state.pace[source], w0, w1)
        rows[i, 1] = keys[i]
