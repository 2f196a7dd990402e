"""Events and packets of a network in words, for `odonata debug`: what happens where, to which
packet, where that goes next, and what waits there. All of it is read from the state of one rank
that has the whole network, with the compiler off."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from odonata.agents import layout as w
from odonata.agents import packet as p
from odonata.agents.layout import nic_row, port_row, where
from odonata.agents.link import UNLIMITED
from odonata.agents.network import Network
from odonata.agents.packet import (
    destination,
    group_at,
    intermediate,
    node_at,
    random_of,
    router_at,
    vc_of,
)
from odonata.agents.router import step
from odonata.agents.tracing import NUMBER, node_of
from odonata.experiment.units import show_time
from pdes.events import kind_of, port_of
from pdes.parcels import NEXT
from policies.routing import ROUTINGS

HAPPENS = {
    w.ARRIVE: "a packet arrives at",
    w.REACH: "a packet reaches",
    w.DELIVER: "a packet is delivered to",
    w.CREDIT_DUE: "credit has returned to",
    w.SWITCH: "the crossbar arbitrates in",
    w.GENERATE: "a message is generated at",
    w.STEP: "a task takes its next step on",
    w.START: "a task starts on",
}
"""What an event of each kind is, before the name of its place; of others the engine has a word."""
MOST_QUEUES = 8
"""The largest number of channels that are listed."""


class Place(NamedTuple):
    """Where an event is: a router, a node, or the scheduler."""

    name: str
    router: int = -1
    node: int = -1


def place_of(network: Network, state: Any, key: int) -> Place:
    """Returns where an event is."""
    m = network.machine
    group, index = where(state.shape, key)
    if group < 0:
        return Place("the scheduler")
    if index < m.routers:
        router = int(group * m.routers + index)
        return Place(f"router {router} (group {group})", router=router)
    node = int(group * m.routers * m.nodes + index - m.routers)
    return Place(f"node {node} (router {node // m.nodes}, group {group})", node=node)


def event_words(
    network: Network, sim: Any, state: Any, time: int, key: int, a: int
) -> Iterator[str]:
    """Yields lines about an event that is about to be handled."""
    kind, place = kind_of(key), place_of(network, state, key)
    happens = HAPPENS.get(kind, f"{network.kinds[kind]!r} at")
    line = f"{show_time(time)}: {happens} {place.name}"
    if kind == w.ARRIVE:
        port, vc = port_of(key), vc_of(sim.pool.rows[a, p.PATH])
        line += f" by port {port} (from {far_end(network, place.router, port)}) on VC {vc}"
    elif kind == w.CREDIT_DUE:
        line += f", port {port_of(key) >> w.VC_BITS}, VC {port_of(key) & p.VC_MASK}"
    elif kind in (w.STEP, w.START):
        line += f", slot {port_of(key)}"
    yield line
    if kind in (w.ARRIVE, w.REACH, w.DELIVER):
        yield from packet_words(network, sim, state, a, time)
    if kind == w.ARRIVE:
        yield next_words(network, sim, state, key, a)
    elif kind == w.STEP and place.node >= 0:
        yield task_words(network, state, place.node, port_of(key))
    elif kind == w.GENERATE:
        yield f"it is message {state.nodes[place.node, w.GENERATED]} of the node, counted from 0"
    if place.router >= 0 or place.node >= 0:
        yield from queue_words(network, sim, state, place, time)


def far_end(network: Network, router: int, port: int) -> str:
    """Returns what is at the other end of a router's link."""
    m = network.machine
    if port < m.nodes:
        return f"node {router * m.nodes + port}"
    return f"router {m.ends()[router, port - m.nodes] // m.radix}"


def packet_words(
    network: Network, sim: Any, state: Any, number: int, time: int
) -> Iterator[str]:  # fmt: skip
    """Yields lines about a packet: which it is, whose, since when, and on what path."""
    packet = sim.pool.rows[number]
    ends, born = packet[p.ENDS], int(packet[p.BORN])
    source, target = (node_of(state.shape, (ends >> shift) & p.ADDRESS) for shift in (32, 0))
    yield (f"packet {packet[NUMBER]}: {packet[p.SIZE]:,} B from node {source} to node {target}, "
           f"generated at {show_time(born)}, {show_time(time - born)} ago")  # fmt: skip
    visited = int(packet[p.PATH] >> p.VISIT_SHIFT) & p.VISIT_MASK
    routers = f"{visited} router{'s' * (visited != 1)} visited before"
    path = "minimal path" if not packet[p.PATH] & p.AVOIDS else "non-minimal path"
    if packet[p.PATH] & p.TO_INTERMEDIATE:
        mid = intermediate(packet)
        path += f" through group {group_at(mid)}"
    yield f"{routers}, on a {path}; {_whose(network, state, packet, target)}"


def _whose(network: Network, state: Any, packet: Any, target: int) -> str:
    """Returns which message a packet is of, as far as it knows."""
    word = int(packet[p.RANDOM])
    if word < 0:
        return "of open-loop traffic"
    slot = (word >> p.TO_SHIFT) & p.SLOT_MASK
    sender = (packet[p.PATH] >> p.SENDER_SHIFT) & p.SLOT_MASK
    job = int(state.slots[target, slot, w.JOB])
    name = network.jobs[job].name or f"job {job}" if job >= 0 else "a job that has ended"
    return (f"of {name}, from slot {sender} to slot {slot}, for phase "
            f"{(word >> p.LABEL_SHIFT) & p.LABEL_MASK}")  # fmt: skip


def next_words(network: Network, sim: Any, state: Any, key: int, number: int) -> str:
    """Returns where a packet goes from the router at which it arrives, if its path stays as it is:
    the routing may still choose another."""
    packet = sim.pool.rows[number]
    group, router = where(state.shape, key)
    path, target = packet[p.PATH] & ((1 << p.SENDER_SHIFT) - 1), destination(packet)
    if path & p.TO_INTERMEDIATE:
        mid = intermediate(packet)
        if group_at(mid) != group or (network.via != "group" and router_at(mid) != router):
            target = mid
    if group_at(target) == group and router_at(target) == router:
        return f"next: by port {node_at(target)} to its node"
    port, vc, _ = step(state.shape, state.gates, group, router, target, path, random_of(packet))
    here = int(group * network.machine.routers + router)
    routing = ROUTINGS.named(network.routing)
    chooses = not routing.always_minimal and not path & p.TO_INTERMEDIATE
    revises = routing.revises and path & p.LEG == p.MINIMAL
    chooses &= port_of(key) < network.machine.nodes or revises
    unless = ", unless the routing chooses another path" if chooses else ""
    return f"next{unless}: by port {port} to {far_end(network, here, int(port))} on VC {vc}"


def task_words(network: Network, state: Any, node: int, slot: int) -> str:
    """Returns which task is in a slot of a node, and how far it is."""
    me = state.slots[node, slot]
    if me[w.JOB] < 0:
        return "no task has this slot"
    name = network.jobs[me[w.JOB]].name or f"job {me[w.JOB]}"
    return f"task {me[w.TASK]} of {name}, phase {me[w.PHASE]}"


def queue_words(
    network: Network, sim: Any, state: Any, place: Place, time: int
) -> Iterator[str]:  # fmt: skip
    """Yields lines about what waits at a router or a node."""
    m, lines = network.machine, []
    local = m.routers * m.nodes
    if place.router >= 0:
        base = port_row(state.shape, *divmod(place.router, m.routers))
        rows = range(base, base + m.radix)
    else:
        base = nic_row(state.shape, *divmod(place.node, local))
        rows = range(base, base + 1)
        if len(state.ejection) and state.ejection[place.node, w.E_BYTES]:
            lines.append(f"  {state.ejection[place.node, w.E_BYTES]:,} B wait to be drained")
    for row in rows:
        port, busy = row - base, int(state.ports[row, 0, w.BUSY]) - time
        to = far_end(network, place.router, port) if place.router >= 0 else "its router"
        link = f"; link reserved for {show_time(busy)}" if busy > 0 else ""
        for vc in range(state.slow.shape[1]):
            waiting = int(state.slow[row, vc, w.WAITING])
            inside = int(state.queues[row, vc, w.Q_BYTES]) if len(state.queues) else 0
            if inside:
                lines.append(f"  input port {port}, VC {vc}: {inside:,} B wait to cross")
            if waiting:
                credit = int(state.ports[row, 1 + vc, w.CREDIT])
                free = "" if credit >= UNLIMITED // 2 else f", credit for {credit:,} B"
                many = _chained(sim, int(state.ports[row, 1 + vc, w.HEAD]))
                lines.append(f"  port {port} (to {to}), VC {vc}: {many} wait, {waiting:,} B"
                             f"{free}{link}")  # fmt: skip
        if link and not any(f"  port {port} " in line for line in lines):
            lines.append(f"  port {port} (to {to}): nothing waits{link}")
    yield "queues here:" if lines else "queues here: all empty, no link in use"
    yield from lines[:MOST_QUEUES]
    if len(lines) > MOST_QUEUES:
        yield f"  and {len(lines) - MOST_QUEUES} more"


def _chained(sim: Any, number: int) -> int:
    count = 0
    while number >= 0:
        count, number = count + 1, int(sim.pool.rows[number, NEXT])
    return count
