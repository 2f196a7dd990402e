"""Nodes that push back: a finite ejection buffer, drained at a rate, in the order of arrival.

A packet of a request that the NIC answers (`odonata.agents.task`) is drained no faster than its
part of the reply takes on the node's link: a node accepts requests only as fast as it can answer.

A node that drains whenever it can needs no event of its own: packets arrive at it by one link, so
when a packet will have been drained is known when it is granted that link. A half-duplex node
drains only while it has nothing to send; there a packet **reaches** the node, waits its turn, and
is delivered when it has been drained.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from odonata.agents import layout as w
from odonata.agents import packet as p
from odonata.agents.layout import nic_row, node_at_key
from odonata.agents.link import Links, channel_key, given_back, repay, serialisation, wake
from odonata.agents.patterns import stage_at
from pdes.events import agent_of, key_of
from pdes.jit import kernel, rebound
from pdes.loop import Sim, schedule
from pdes.parcels import NEXT

ALWAYS, FULL, HALF = range(3)
"""How nodes accept packets: every one at once; from a buffer that is drained at a rate; or so, but
only while there is nothing to send."""


@kernel
def draining(sim: Sim, state: Any, number: int, key: int) -> int:
    """Returns how long it takes to drain a packet, in ps. `key` is that of an event of its node."""
    packet = sim.pool.rows[number]
    took = serialisation(state.rates[w.EJECTION], packet[p.SIZE])
    word = packet[p.RANDOM]
    if word < 0 or word & p.REQUEST == 0:
        return took  # type: ignore[no-any-return]
    _, _, row = node_at_key(state.shape, key)
    slot, phase = (word >> p.TO_SHIFT) & p.SLOT_MASK, (word >> p.LABEL_SHIFT) & p.LABEL_MASK
    stage = state.stages[stage_at(state, state.slots[row, slot, w.JOB], phase)]
    answer = stage[w.REPLY] * packet[p.SIZE] // stage[w.MESSAGE]
    return max(took, serialisation(state.rates[0], answer))  # type: ignore[no-any-return]


def eject(sim: Sim, state: Any, row: int, number: int, there: int, now: int) -> int:
    """Returns when a packet whose last byte is at its node at `there` will have been drained, in
    ps, and returns credit for it to the port of the router."""
    port, size = state.ports[row, 0], sim.pool.rows[number, p.SIZE]
    start = max(there, port[w.DRAINED])
    drained = start + draining(sim, state, number, port[w.FAR_KEY])
    port[w.DRAINED] = drained
    due = given_back(state, start, drained, size, state.rates[0]) + state.latencies[0]
    repay(sim, state, row, 0, due, size, now)
    return drained  # type: ignore[no-any-return]


def drain(sim: Sim, state: Any, time: int, key: int) -> None:
    """Have a half-duplex node begin to drain its next packet, if it may. `key` is that of any event
    of the node."""
    group, index, row = node_at_key(state.shape, key)
    ejection, nic = state.ejection[row], nic_row(state.shape, group, index)
    number = ejection[w.E_HEAD]
    if number < 0 or ejection[w.E_BUSY] > time or state.ports[nic, 1, w.HEAD] >= 0:
        return
    size = sim.pool.rows[number, p.SIZE]
    ejection[w.E_HEAD] = sim.pool.rows[number, NEXT]
    ejection[w.E_BYTES] -= size
    drained = time + draining(sim, state, number, key)
    ejection[w.E_BUSY] = drained
    schedule(sim, drained, key_of(w.DELIVER, agent_of(key), 0), number, 0)
    port = state.ports[nic, 0, w.FAR]
    due = given_back(state, time, drained, size, state.rates[0]) + state.latencies[0]
    if repay(sim, state, port, 0, due, size, time):
        wake(sim, state, port, 0, due, channel_key(state.ports[nic, 0, w.FAR_KEY], 0))


def reach(sim: Sim, state: Any, time: int, key: int, number: int) -> None:
    """Keep a packet whose last byte has arrived at a half-duplex node until it is drained."""
    _, _, row = node_at_key(state.shape, key)
    ejection, rows = state.ejection[row], sim.pool.rows
    rows[number, NEXT] = -1
    if ejection[w.E_HEAD] >= 0:
        rows[ejection[w.E_LAST], NEXT] = number
    else:
        ejection[w.E_HEAD] = number
    ejection[w.E_LAST] = number
    ejection[w.E_BYTES] += rows[number, p.SIZE]
    drain(sim, state, time, key)


class Drains(NamedTuple):
    """The kernels of half-duplex nodes."""

    drain: Any
    reach: Any


@lru_cache
def kernels(links: Links) -> Drains:
    """Returns the kernels of half-duplex nodes, given those of links."""
    names: dict[str, Any] = links._asdict()
    names["drain"] = kernel(rebound(drain, "drain", **names))
    return Drains(names["drain"], kernel(rebound(reach, "reach", **names)))
