"""What packets take through an empty network, and for how long a network is simulated so that it
may settle: the phases of a load-latency curve."""

from __future__ import annotations

import math

from odonata.agents.network import Network
from topology.dragonfly import LinkClass


def phases(network: Network) -> tuple[int, int, int]:
    """Returns the picoseconds of warm-up, measurement and drain that suit a machine, whatever its
    routing and load, so that curves can be compared.

    The yardstick is the longest path a packet may take (local, global, local, global, local). Five
    times what that takes in an empty network lets queues that are shorter than buffers settle, and
    the time in which a link fills all the buffers on that path lets full ones settle too: that long
    the network warms up, and drains, since a packet may have to wait for all these buffers to
    empty. The measurement takes five such paths; but on small machines until 5,000 messages are
    generated at a load of 5 %, which gives their mean latency to a percent or so.
    """
    machine = network.machine
    slot = network.traffic[0].slot_ps(machine)
    local, across = (3, 2) if machine.groups > 1 else (1, 0)
    one = path_ps(network, local, across) + slot
    fill = 1e12 * (
        network.terminal_buffer / machine.terminal.bandwidth
        + network.local_buffer / machine.local.bandwidth * local
        + network.global_buffer / machine.global_.bandwidth * across
    )
    many = 5000 * slot / (0.05 * machine.n_nodes)
    return _round(5 * one + fill), _round(max(5 * one, many)), _round(5 * one + fill)


def _round(ps: float) -> int:
    """Returns a time rounded up to a tenth of a microsecond."""
    return math.ceil(ps / 1e5) * 10**5


def path_ps(network: Network, local: int, across: int) -> int:
    """Returns what a packet takes through an empty network, by so many local and global hops, in
    picoseconds.

    With ideal routers these are the latency of every link, the pipeline of every router, and the
    slowest link's serialisation; every link's where routers store and forward.
    """
    m = network.machine
    links = [m.terminal, *[m.local] * local, *[m.global_] * across, m.terminal]
    size = min(network.packet_bytes, network.traffic[0].message_bytes)
    first = min(size, network.first_bytes)
    inside = network.crossbar and LinkClass(network.crossbar * m.local.bandwidth, 0)
    head = tail = left = 0
    for number, link in enumerate(links):
        if number and inside:
            after = network.serialisation(inside, first) if first else 0
            tail = max(head + network.serialisation(inside, size), tail + after)
        left = max(head + network.serialisation(link, size), tail) + link.latency_ps
        if 0 < first < size:
            head += network.serialisation(link, first)
        head = left if first == size else head + link.latency_ps
        head, tail = head + network.delay_ps, left + network.delay_ps
    return left


def zero_load_ps(network: Network) -> float | None:
    """Returns the mean latency of minimal paths in an empty network, in ps; None where it depends
    on which routers communicate, or where packets wait for others of their message.

    Every cable between two groups begins and ends at one router of each, so that a packet between
    random nodes of them needs a local hop on either side with a probability of (a - 1) / a.
    """
    m, traffic = network.machine, network.traffic[0]
    if traffic.message_bytes > network.packet_bytes:
        return None
    if traffic.pattern not in ("uniform", "adversarial"):
        return None
    there = (m.routers - 1) / m.routers
    outside = sum(
        math.comb(2, local) * there**local * (1 - there) ** (2 - local) * path_ps(network, local, 1)
        for local in range(3)
    )
    if traffic.pattern == "adversarial":
        return outside
    near, group, every = m.nodes - 1, m.nodes * (m.routers - 1), m.n_nodes - 1
    inside = near * path_ps(network, 0, 0) + group * path_ps(network, 1, 0)
    return (inside + (every - near - group) * outside) / every
