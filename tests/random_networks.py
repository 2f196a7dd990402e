"""Random networks of packets: any machine, routing, traffic and jobs, and whatever can be inside
routers and nodes."""

from __future__ import annotations

import dataclasses
import random
from contextlib import suppress
from typing import Any

from odonata.agents.layout import ARBITERS
from odonata.agents.network import Network
from odonata.agents.traffic import Traffic
from odonata.agents.workload import Workload
from odonata.jobs.request import WAITS, Job, Stage
from pdes.errors import Refused
from topology import Dragonfly, LinkClass

ROUTINGS = ("minimal", "valiant", "ugal-l", "ugal-g", "par", "adaptive")
BANDWIDTHS = (1e9, 2.5e9, 4e9, 8e9, 12.5e9, 25e9, 3.3e9)
LATENCIES = (0, 1, 700, 7_000, 20_000, 50_000, 120_000)
PATTERNS = (
    "all-to-all", "broadcast", "halo2d", "halo3d", "fft3d", "incast", "tree-broadcast", "allreduce",
    "random-ring", "permutation", "uniform", "halo3d26", "all-to-all", "halo2d",
)  # fmt: skip
ROUND_BANDWIDTHS, ROUND_LATENCIES = (1e9, 1e9, 2e9, 0.5e9), (0, 8_000, 16_000, 48_000)
"""With these, in a `coarse` network, much happens at the same picosecond."""


def random_machine(rng: random.Random, coarse: bool) -> Dragonfly:
    bandwidths, latencies = BANDWIDTHS, LATENCIES
    if coarse:
        bandwidths, latencies = ROUND_BANDWIDTHS, ROUND_LATENCIES
    while True:
        groups, routers, nodes = rng.randint(1, 9), rng.randint(1, 4), rng.randint(1, 3)
        links = rng.randint(0 if groups == 1 else 1, 3)
        ports, others = routers * links, groups - 1
        if ports < others or groups * routers * nodes < 2 or groups * routers * nodes > 60:
            continue
        pairs = None
        if others and (ports % others or rng.random() < 0.3):
            pairs = rng.randint(1, ports // others)
        same = rng.random() < 0.3
        classes = [LinkClass(rng.choice(bandwidths), rng.choice(latencies)) for _ in range(3)]
        if same:
            classes = [LinkClass(classes[0].bandwidth, each.latency_ps) for each in classes]
        cabling = rng.choice(("absolute", "relative", "circulant"))
        return Dragonfly(nodes, routers, links, groups, cabling, pairs, *classes)


def random_traffic(
    rng: random.Random, machine: Dragonfly, packet: int, coarse: bool
) -> tuple[Traffic, ...]:
    found = []
    sizes = (1, packet, rng.randint(1, packet), rng.randint(1, 5 * packet))
    size = packet * rng.randint(1, 3) if coarse else rng.choice(sizes)
    for _ in range(rng.choice((1, 1, 1, 2))):
        pattern = rng.choice(("uniform", "uniform", "adversarial", "permutation", "transpose",
                              "hotspot", "hotspot"))  # fmt: skip
        if pattern == "adversarial" and machine.groups == 1:
            pattern = "uniform"
        found.append(
            Traffic(
                pattern,
                rng.choice((0.05, 0.3, 0.7, 1.0, rng.uniform(0.05, 1))),
                "bernoulli" if coarse else rng.choice(("poisson", "bernoulli")),
                size,
                messages=rng.choice((None, None, rng.randint(0, 30))),
                stride=rng.randint(1, max(1, machine.groups - 1)),
                hot=rng.choice((0.1, 0.5, 1.0)),
                hot_every=rng.choice((4, 32, machine.n_nodes)),
                stop_ps=rng.choice((None, None, rng.randint(1, 5_000_000))),
            )
        )
        size = size if coarse else rng.choice((size, rng.randint(1, 3 * packet)))
    return tuple(found)


def random_workload(rng: random.Random, machine: Dragonfly, packet: int, coarse: bool) -> Workload:
    each, step = rng.randint(1, 3), 8_000 if coarse else 1
    jobs = []

    def time(most: int) -> int:
        return rng.choice((0, rng.randint(0, most // step) * step))

    for _ in range(rng.randint(1, 3)):
        nodes = rng.randint(min(machine.n_nodes, 2), max(2, min(machine.n_nodes, 12 // each)))
        pattern = rng.choice(PATTERNS)
        jobs.append(
            Job(
                min(nodes, machine.n_nodes),
                pattern,
                packet
                if coarse
                else rng.choice(
                    (1, packet, rng.randint(1, 2 * packet), rng.randint(1, 5 * packet))
                ),
                rng.randint(1, 3),
                rng.choice(("posted", "pairwise")),
                time(300_000),
                rng.choice((0, time(3_000_000))),
                mapping=rng.choice(("linear", "random")),
            )
        )
    times = {name: time(100_000) for name in ("send_ps", "match_ps", "host_ps")}
    copy = (None, 1e9 if coarse else rng.uniform(1e9, 1e10))
    host = {"send_setup_ps": time(100_000), "send_copy": rng.choice(copy),
            "receive_setup_ps": time(100_000), "receive_copy": rng.choice(copy)}  # fmt: skip
    if rng.random() < 0.5:
        host = {}
    return Workload(tuple(jobs), allocation=rng.choice(("simple", "rdn")), tasks_per_node=each,
                    launch_ps=rng.choice((0, 96_000, 480_000)), **times, **host)  # fmt: skip


def in_stages(
    rng: random.Random, workload: Workload, machine: Dragonfly, packet: int, coarse: bool
) -> Workload:
    """Returns the workload with jobs of several stages, on nodes that they may have named."""
    each, step, jobs = workload.tasks_per_node, 8_000 if coarse else 1, []

    def time(most: int) -> int:
        return rng.choice((0, 0, rng.randint(0, most // step) * step))

    def size() -> int:
        if coarse:
            return packet * rng.randint(1, 3)
        return rng.choice((1, packet, rng.randint(1, 2 * packet), rng.randint(1, 5 * packet)))

    for job in workload.jobs:
        stages = [
            Stage(
                rng.choice((*PATTERNS, "halo4d", "uniform")),
                size(),
                rng.choice(("posted", "pairwise")),
                rng.choice((*WAITS, "replies")),
                size(),
                time(300_000),
                rng.choice((0, 0.1, 1, 2.5)),
                time(100_000),
                rng.choice((1, 1, 2, 3)),
            )
            for _ in range(rng.randint(1, 4))
        ]
        changes: dict[str, Any] = {"stages": tuple(stages)}
        if rng.random() < 0.2:
            changes = {}
        nodes = rng.choice((job.nodes, job.nodes, 1 + (each == 1)))
        if rng.random() < 0.3:
            changes["on"] = tuple(rng.sample(range(machine.n_nodes), nodes))
        if rng.random() < 0.2:
            changes["mapping"] = tuple(rng.sample(range(nodes * each), nodes * each))
        changes["background"] = bool(jobs) and rng.random() < 0.2
        jobs.append(dataclasses.replace(job, nodes=nodes, **changes))
    if rng.random() < 0.2:
        numbers = rng.sample(range(1000), len(jobs))
        jobs = [dataclasses.replace(job, number=number)
                for job, number in zip(jobs, numbers, strict=True)]  # fmt: skip
    return dataclasses.replace(workload, jobs=tuple(jobs))


def random_router(rng: random.Random, packet: int, coarse: bool) -> dict[str, Any]:
    """Returns what is inside routers and nodes."""

    def buffer() -> int:
        return rng.choice((packet, packet + rng.randint(0, packet), 2 * packet, 4 * packet))

    found: dict[str, Any] = {
        "credits": rng.choice(("packet", "packet", "flit", "head")),
        "credit_delay_ps": rng.choice((0, 0, 8_000 if coarse else rng.randint(1, 50_000))),
    }
    if rng.random() < 0.7:
        found |= {
            "crossbar": rng.choice(
                (0.5, 1, 2, 1.5, 1.0, rng.uniform(0.3, 3))[: 3 + 3 * (not coarse)]
            ),
            "arbiter": rng.choice(ARBITERS),
            "output_buffer": rng.choice((None, buffer(), buffer())),
        }
        if rng.random() < 0.4:
            found["allocation_ps"] = 8_000 if coarse else rng.randint(1, 30_000)
        if found["output_buffer"] is not None and rng.random() < 0.5:
            found["sight"] = "output"
    found["detours"] = rng.random() < 0.4
    if rng.random() < 0.5:
        rates = ROUND_BANDWIDTHS if coarse else (*BANDWIDTHS, rng.uniform(1e9, 30e9))
        found |= {"ejection": rng.choice(rates),
                  "ejection_buffer": buffer(),
                  "duplex": rng.choice(("full", "full", "half"))}  # fmt: skip
    return found


def random_network(
    seed: int, what: str = "any", inside: bool = True, stages: bool | None = None, **given: Any
) -> Network:
    """Draw a network with `what`: "traffic", "jobs", "both", or any of these. Not `inside`: routers
    and nodes are ideal. `stages`: whether jobs have several; None: in a third of the networks.
    `given` are fields that are not drawn."""
    rng = random.Random(seed)
    coarse = rng.random() < 0.35
    machine = random_machine(rng, coarse)
    packet = 64 if coarse else rng.choice((64, 512, 100, rng.randint(1, 600)))

    def buffer() -> int:
        return rng.choice((packet, packet + rng.randint(0, packet), 2 * packet, 8 * packet))

    drawn = rng.choice(("traffic", "traffic", "jobs", "both"))
    what = drawn if what == "any" else what
    traffic = random_traffic(rng, machine, packet, coarse)
    workload = random_workload(rng, machine, packet, coarse)
    other = random.Random(f"stages {seed}")
    if other.random() < (1 / 3 if stages is None else stages):
        with suppress(Refused):  # two jobs of the same node, one of which never ends
            workload = in_stages(other, workload, machine, packet, coarse)
    fields: dict[str, Any] = {
        "traffic": () if what == "jobs" else traffic,
        "workload": None if what == "traffic" else workload,
        "routing": rng.choice(ROUTINGS),
        "via": rng.choice(("group", "router", "anywhere")),
        "threshold": rng.choice((None, None, 1.0, 0.5)),
        "bias": rng.choice((None, 0, -packet, packet)),
        "packet_bytes": packet,
        "flit_bytes": rng.choice((1, 8, 16, 64)),
        "terminal_buffer": buffer(),
        "local_buffer": buffer(),
        "global_buffer": buffer(),
        "delay_ps": rng.choice((0, 16_000) if coarse else (0, 1, 20_000, 50_000)),
        "forwarding": rng.choice(("cut-through", "cut-through", "flit", "store")),
        "vcs": rng.choice(("hops",) * 9 + ("one",)),
        "seed": rng.randint(0, 2**63 - 1),
    }
    router = random_router(rng, packet, coarse) if rng.random() < 0.8 else {}
    router = router if inside else {}
    network = nearer(Network(machine, **{**fields, **router, **given}), 150)
    if not router or network.duplex == "half" or rng.random() < 0.3:
        return network
    return dataclasses.replace(network, injection_channels=rng.randint(1, network.channels))


def packets_per_ps(network: Network) -> float:
    """Returns how many packets of open-loop traffic all nodes generate, on average."""
    m = network.machine
    return sum(
        m.n_nodes * -(-t.message_bytes // network.packet_bytes) * t.load / t.slot_ps(m)
        for t in network.traffic
    )


def long_way(network: Network) -> int:
    """Returns about how long the longest paths are, in ps, without serialisation."""
    m = network.machine
    latencies = 2 * m.terminal.latency_ps + 3 * m.local.latency_ps + 2 * m.global_.latency_ps
    return latencies + 6 * network.delay_ps


def nearer(network: Network, most: int) -> Network:
    """Returns the network with links so short that while a packet is on its way no more than so
    many are generated."""
    under_way = packets_per_ps(network) * long_way(network)
    if under_way <= most:
        return network
    m, factor = network.machine, most / under_way
    classes = {
        name: LinkClass(link.bandwidth, int(link.latency_ps * factor))
        for name, link in (("terminal", m.terminal), ("local", m.local), ("global_", m.global_))
    }
    machine = dataclasses.replace(m, **classes)
    delay = int(network.delay_ps * factor)
    return dataclasses.replace(network, machine=machine, delay_ps=delay)


def duration(network: Network, seed: int, packets: int) -> int:
    """Returns until when to simulate, in ps: about so many packets of open-loop traffic."""
    rate = packets_per_ps(network)
    longest = 60_000_000 if network.workload else 20_000_000
    most = longest if rate == 0 else min(longest, packets / rate)
    return 1 + int(most * random.Random(seed).uniform(0.3, 1))
