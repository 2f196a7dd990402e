"""One simulation of the study: all that it depends on, and what it gives."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from odonata.agents.network import Network
from odonata.agents.routers import ROUTERS
from odonata.study.contract import Case
from pdes.driver import run
from pdes.errors import Fault, Refused, require
from pdes.transport import Serial
from topology.dragonfly import BadMachine
from topology.presets import PRESETS

if TYPE_CHECKING:
    from topology.dragonfly import Dragonfly

KB = 1024
SMALL, LARGE = 0, 1
"""The names of a point's kinds of jobs."""
CLASSES = ("local", "global")
COUNTS = ("packets", "waiting_ps")
"""Counts at the output ports to links of either class: packets, and the time in which one waited,
for the link or for credit."""
FIVE = (0, 25, 50, 75, 100)
"""Percentiles that describe a distribution: a box and its whiskers."""

TASKS_PER_NODE = 2
FLIT = 8
NIC: Mapping[str, int] = {"send_ps": 50_000, "match_ps": 100_000, "host_ps": 150_000}
COPY = 1e12 / 344
"""Bytes per second of a copy that takes 344 ps per byte."""
HOSTS: Mapping[str, Mapping[str, float]] = {
    "none": {},
    "sst": {"send_setup_ps": 130_000, "send_copy": COPY, "match_ps": 150_000,
            "receive_setup_ps": 100_000},
    "firefly": {"send_setup_ps": 30_000 + 130_000 + 11_000 + 150_000, "send_copy": COPY,
                "receive_setup_ps": 150_000 + 100_000 + 3 * 30_000},
}  # fmt: skip
"""What hosts need for a message, beside the NIC or otherwise than it. sst: the setup and the copy
of SST's parameters, and their time to match in place of the NIC's. firefly: all that SST's model of
the host charges for a short message, read in its source: to enter the call, setup, header, copy and
the way to the NIC; to match it in the host too, setup, and to enter and leave calls. In either,
copying what was received is free, as the authors' parameters have it."""


LATER = ("router", "host", "crossbar", "sight", "detours", "broadcast_factor")
"""Fields of a point that its first version did not have."""


@dataclass(frozen=True)
class Jobs:
    """A number of jobs of one kind."""

    count: int
    nodes: int
    pattern: str
    message_bytes: int = KB


@dataclass(frozen=True)
class Point(Case):
    """One simulation. `kinds`: the small jobs, then the large; or one kind. They are allocated in
    this `order`, all before the first starts. `ratio` is that of a global link's bandwidth to a
    local one's, `terminal` that of a node's link. The seed is that of task mapping, routing and of
    policies that draw. What is simulated depends on nothing else, and neither does the `key`; which
    figures need it is not part of it, so that those that need the same share it. Fields that later
    versions added count in the key only where they are not the default: old keys stand."""

    kinds: tuple[Jobs, ...]
    allocation: str
    seed: int
    machine: str = "levelspread-272"
    ratio: float = 1.0
    order: str = "small-first"
    mapping: str = "random"
    iterations: int = 1
    exchange: str = "pairwise"
    broadcast: str = "tree-broadcast"
    """Which of the simulator's patterns a broadcast is."""
    routing: str = "adaptive"
    threshold: float | None = None
    packet_bytes: int = 1024
    buffer_bytes: int = 14336
    terminal: float = 1.0
    delay_ps: int = 100_000
    router: str = "ideal"
    """What is inside a router, by its name in ROUTERS. Output buffers have `buffer_bytes`."""
    host: str = "none"
    """What hosts need for a message, by its name in HOSTS."""
    crossbar: float | None = None
    """The crossbar's bandwidth in parts of a local link's. None: the router's own, in parts of the
    fastest link's between routers, as in the authors' scripts."""
    sight: str | None = None
    detours: bool | None = None
    """As in `odonata.agents.description`; None: the router's own."""
    broadcast_factor: int = 1
    """How many times the bytes of other patterns' messages those of a broadcast have: 8 in the
    authors' scripts, which count doubles there."""

    def fields(self) -> dict[str, Any]:
        later = {field.name: field.default for field in fields(self) if field.name in LATER}
        return {name: value for name, value in super().fields().items()
                if name not in later or value != later[name]}  # fmt: skip

    def __str__(self) -> str:
        jobs = " and ".join(f"{k.count} × {k.nodes} nodes {k.pattern}" for k in self.kinds)
        return (
            f"{jobs} on {self.machine}, ratio {self.ratio:g}, {self.allocation}, seed {self.seed}"
        )

    @property
    def weight(self) -> float:
        """Returns about how long it takes to simulate, in packets plus a constant."""
        packets = sum(k.count * _messages(k) * math.ceil(k.message_bytes / self.packet_bytes)
                      for k in self.kinds)  # fmt: skip
        return self.iterations * packets + 50 * machine_of(self).n_nodes


def _messages(jobs: Jobs) -> float:
    tasks = jobs.nodes * TASKS_PER_NODE
    each = {"all-to-all": tasks - 1, "broadcast": 1, "fft3d": 2 * math.sqrt(tasks),
            "halo2d": 4, "halo3d": 6, "halo3d26": 26}  # fmt: skip
    return tasks * each.get(jobs.pattern, math.log2(tasks))


@dataclass(frozen=True)
class LevelSpreadOutcome:
    """The outcome. `times_ps`: for each kind of jobs, the communication times of its jobs. `ports`:
    by class of link and count, the FIVE percentiles over the output ports to such links."""

    times_ps: tuple[tuple[int, ...], ...]
    ports: Mapping[str, Mapping[str, tuple[float, ...]]]
    events: int
    digest: str
    seconds: float
    """Wall-clock seconds."""

    def mean_ps(self, kind: int) -> float:
        return sum(self.times_ps[kind]) / len(self.times_ps[kind])


def machine_of(point: Point) -> Dragonfly:
    require(point.machine in PRESETS, f"machine = {point.machine!r}: `odonata topology --list` "
            "lists those there are")  # fmt: skip
    machine = PRESETS[point.machine].machine
    bandwidth = machine.local.bandwidth
    return replace(
        machine,
        global_=replace(machine.global_, bandwidth=bandwidth * point.ratio),
        terminal=replace(machine.terminal, bandwidth=bandwidth * point.terminal),
    )


def router_of(point: Point) -> dict[str, Any]:
    """Returns the fields of a network that say what is inside its routers."""
    require(point.router in ROUTERS, f"router = {point.router!r}: one of {', '.join(ROUTERS)}")
    inside = dict(ROUTERS[point.router])
    if inside.get("output_buffer") is not None:
        inside["output_buffer"] = point.buffer_bytes
    if "crossbar" in inside:
        inside["crossbar"] *= max(1.0, point.ratio)
    own = {"crossbar": point.crossbar, "sight": point.sight, "detours": point.detours}
    return inside | {name: value for name, value in own.items() if value is not None}


def network_of(point: Point) -> Network:
    from odonata.agents.workload import Workload
    from odonata.jobs.request import Job

    require(point.host in HOSTS, f"host = {point.host!r}: one of {', '.join(HOSTS)}")

    def job(kind: Jobs) -> Job:
        casts = kind.pattern == "broadcast"
        return Job(nodes=kind.nodes, pattern=point.broadcast if casts else kind.pattern,
                   message_bytes=kind.message_bytes * (point.broadcast_factor if casts else 1),
                   iterations=point.iterations, exchange=point.exchange, mapping=point.mapping
        )  # fmt: skip

    jobs = tuple(job(kind) for kind in point.kinds for _ in range(kind.count))
    load = Workload(
        jobs=jobs, allocation=point.allocation, order=point.order, tasks_per_node=TASKS_PER_NODE,
        **cast(dict[str, Any], {**NIC, **HOSTS[point.host]}),
    )  # fmt: skip
    return Network(machine_of(point), workload=load, routing=point.routing,
                   threshold=point.threshold, packet_bytes=point.packet_bytes, flit_bytes=FLIT,
                   terminal_buffer=point.buffer_bytes, local_buffer=point.buffer_bytes,
                   global_buffer=point.buffer_bytes, delay_ps=point.delay_ps, seed=point.seed,
                   **router_of(point))  # fmt: skip


def buildable(points: Iterable[Point]) -> None:
    """Refuse what no point could be built with, by one point of every pattern."""
    for point in {point.kinds[0].pattern: point for point in points}.values():
        try:
            network_of(point)
        except BadMachine as refusal:
            raise Refused(str(refusal)) from None


def simulate(point: Point, show_compiling: bool = False) -> LevelSpreadOutcome:
    """Simulate a point on this core, whatever ranks there are."""
    from odonata.agents.audit import conclude
    from odonata.results.performance import job_records

    began = time.perf_counter()
    network = network_of(point)
    result = run(network, None, transport=Serial(), show_compiling=show_compiling)
    cycle = conclude(network, result.outcome)
    records = job_records(network, result)
    if cycle or any(record.run_time_ps is None for record in records):
        raise Fault(f"deadlock: {cycle or 'a job did not end'}")
    if len({record.start_ps for record in records}) > 1:
        raise Fault("there was no room for all jobs at the same time")
    times = iter([record.run_time_ps or 0 for record in records])
    by_kind = tuple(tuple(next(times) for _ in range(kind.count)) for kind in point.kinds)
    ports = port_counts(network, result)
    seconds = time.perf_counter() - began
    return LevelSpreadOutcome(by_kind, ports, result.events, result.digest, seconds)


def port_counts(network: Network, result: Any) -> dict[str, dict[str, tuple[float, ...]]]:
    from odonata.agents.metrics import COUNTERS
    from odonata.results.performance import ports_by_class

    counters, counts = result.outcome["counters"].sum(axis=2), {}
    classes = ports_by_class(network)
    for kind in CLASSES:
        rows, _ = classes[kind]
        some = counters[:, rows].reshape(-1, len(COUNTERS))
        packets, stalled, waited = (
            some[:, COUNTERS.index(name)] for name in ("packets", "stall_ps", "wait_ps")
        )
        counts[kind] = {
            name: tuple(np.percentile(count, FIVE).tolist())
            for name, count in zip(COUNTS, (packets, stalled + waited), strict=True)
        }
    return counts
