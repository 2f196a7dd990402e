"""`odonata latency`: how long packets take as the load grows, until the network takes in no more.

A **point** is one routing at one load: a run of three phases. The network warms up; messages made
during the measurement are those whose latency counts; and while these drain the sources go on, so
that the last of them meets the same load as the first. A point is **steady**, or **saturated**: the
network takes in less than it is offered, and its latency is only that of the packets that made it.
A **curve** is the points of one routing, up to a few past the first that is saturated.

Points know nothing of each other, so they are simulated side by side, each on one core
(`odonata.study.pool`). How many at a time shows in nothing that is printed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from functools import partial

from odonata.agents.network import Network
from odonata.experiment.units import show_time
from odonata.results.performance import GROWTH, Performance, performance
from odonata.study import pool
from pdes.clock import LATEST
from pdes.driver import explain, run
from pdes.errors import Fault, require
from pdes.transport import Serial, world

MOST_LOADS = 1000
BEYOND = 2
"""Saturated points past the first: that throughput is flat there, or falls, is worth seeing, and it
tells saturation from queues that were still filling."""
SIGMAS = 3
"""Standard deviations that chance is allowed."""


# -- what is asked for


def parse_loads(text: str) -> tuple[float, ...]:
    """Increasing loads from '0.05:0.95:0.05' (first, last, step), '0.1,0.5' or '0.3'.

    Computed in decimals, so that the third of 0.05:0.95:0.05 is 0.15. Raises ValueError saying what
    is accepted.
    """
    loads = sorted({load for part in text.split(",") for load in _range(part, text)})
    if len(loads) > MOST_LOADS:
        raise ValueError(f"{text!r}: at most {MOST_LOADS} loads")
    for load in loads:
        if not 0 < load <= 1:
            raise ValueError(f"{text!r}: a load of {float(load):g} is not above 0 and at most 1")
    return tuple(float(load) for load in loads)


def _range(part: str, text: str) -> list[Decimal]:
    try:
        numbers = [Decimal(number.strip()) for number in part.split(":")]
    except InvalidOperation:
        numbers = []
    if len(numbers) not in (1, 3) or not all(number.is_finite() for number in numbers):
        raise ValueError(
            f"{text!r} are no loads: start:stop:step (0.05:0.95:0.05), a list (0.1,0.5), or one"
        )
    if len(numbers) == 1:
        return numbers
    start, stop, step = numbers
    if step <= 0 or stop < start:
        raise ValueError(f"{text!r}: start:stop:step goes up, by a step above 0")
    if stop - start > MOST_LOADS * step:
        raise ValueError(f"{text!r}: at most {MOST_LOADS} loads")
    return [start + i * step for i in range(int((stop - start) / step) + 1)]


@dataclass(frozen=True)
class Sweep:
    """Every routing at every load, on one network; its traffic says how long to warm up and to
    measure. `everything`: also far beyond saturation."""

    network: Network
    routings: tuple[str, ...]
    loads: tuple[float, ...]
    drain_ps: int
    everything: bool = False

    def __post_init__(self) -> None:
        require(bool(self.routings) and bool(self.loads), "a curve needs a routing and a load")
        require(self.end_ps <= LATEST, f"phases of {show_time(self.end_ps)} together: at most "
                f"{show_time(LATEST)}")  # fmt: skip
        for routing in self.routings:  # what cannot be built is refused now
            self.at(routing, self.loads[0])

    def at(self, routing: str, load: float) -> Network:
        return replace(
            self.network, routing=routing, traffic=(replace(self.network.traffic[0], load=load),)
        )

    @property
    def end_ps(self) -> int:
        traffic = self.network.traffic[0]
        return traffic.warmup_ps + (traffic.measure_ps or 0) + self.drain_ps


def sweep(
    network: Network,
    routings: Sequence[str],
    loads: Sequence[float],
    *,
    warmup_ps: int | None = None,
    measure_ps: int | None = None,
    drain_ps: int | None = None,
    everything: bool = False,
) -> Sweep:
    """With phases of the machine's own (`phases`) where none are given. The network's own routing,
    load and number of messages do not matter."""
    usual = phases(network)
    warmup_ps, measure_ps, drain_ps = (
        own if given is None else given
        for given, own in zip((warmup_ps, measure_ps, drain_ps), usual, strict=True)
    )
    traffic = replace(
        network.traffic[0], messages=None, stop_ps=None, warmup_ps=warmup_ps, measure_ps=measure_ps
    )
    network = replace(network, traffic=(traffic,))
    return Sweep(
        network, tuple(dict.fromkeys(routings)), tuple(sorted(set(loads))), drain_ps, everything
    )


def phases(network: Network) -> tuple[int, int, int]:
    """Picoseconds of warm-up, measurement and drain that suit a machine, whatever its routing and
    load, so that curves can be compared.

    The measure is the longest way a packet may go (local, global, local, global, local). Five times
    what that takes in an empty network lets queues that are shorter than buffers settle, and the
    time in which a link fills all the buffers on that way lets full ones settle too: that long the
    network warms up, and drains, since a packet may have to wait for all these buffers to empty.
    Measured are five such ways; but on small machines until 5,000 messages are made at a load of
    5 %, which gives their mean latency to a percent or so.
    """
    machine = network.machine
    local, across = (3, 2) if machine.groups > 1 else (1, 0)
    one = way_ps(network, local, across) + network.traffic[0].slot_ps(network.machine)
    fill = 1e12 * (
        network.terminal_buffer / machine.terminal.bandwidth
        + network.local_buffer / machine.local.bandwidth * local
        + network.global_buffer / machine.global_.bandwidth * across
    )
    many = 5000 * network.traffic[0].slot_ps(network.machine) / (0.05 * machine.n_nodes)
    return _round(5 * one + fill), _round(max(5 * one, many)), _round(5 * one + fill)


def _round(ps: float) -> int:
    """Up, to a tenth of a microsecond."""
    return math.ceil(ps / 1e5) * 10**5


def way_ps(network: Network, local: int, across: int) -> int:
    """What a packet takes through an empty network, by so many local and global hops.

    The latency of every link, the pipeline of every router, and the slowest link's serialisation;
    every link's where routers store and forward.
    """
    m = network.machine
    links = [m.terminal, *[m.local] * local, *[m.global_] * across, m.terminal]
    size = min(network.packet_bytes, network.traffic[0].message_bytes)
    takes = [network.serialisation(link, size) for link in links]
    pipelines = (len(links) - 1) * network.delay_ps
    wires = sum(link.latency_ps for link in links)
    return wires + pipelines + (sum(takes) if network.forwarding == "store" else max(takes))


def zero_load_ps(network: Network) -> float | None:
    """The mean latency of the straight way in an empty network; None where it depends on which
    routers talk to which, or where packets wait for others of their message.

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
        math.comb(2, local) * there**local * (1 - there) ** (2 - local) * way_ps(network, local, 1)
        for local in range(3)
    )
    if traffic.pattern == "adversarial":
        return outside
    near, group, every = m.nodes - 1, m.nodes * (m.routers - 1), m.n_nodes - 1
    inside = near * way_ps(network, 0, 0) + group * way_ps(network, 1, 0)
    return (inside + (every - near - group) * outside) / every


# -- what comes out


@dataclass(frozen=True)
class Point:
    """The verdict in its performance is that of `saturated`, which sees more than source queues."""

    routing: str
    load: float
    performance: Performance
    events: int
    digest: str

    @property
    def saturated(self) -> bool:
        return self.performance.saturated

    @property
    def late(self) -> float:
        """The part of the measured packets that was still under way at the end."""
        under_way = self.performance.undelivered_packets
        return under_way / max(1, self.performance.measured_packets + under_way)


@dataclass(frozen=True)
class Curve:
    """By increasing load."""

    routing: str
    points: tuple[Point, ...]

    @property
    def throughput(self) -> float:
        """The most that was taken in; where no point is saturated, more may be possible."""
        return max(point.performance.throughput for point in self.points)

    @property
    def saturated_at(self) -> float | None:
        """The lowest load that was too much, as all above it were."""
        lowest = None
        for point in reversed(self.points):
            if not point.saturated:
                break
            lowest = point.load
        return lowest

    def unsettled(self, point: Point) -> bool:
        """Did it look saturated only because queues were still filling? At low loads an adaptive
        routing turns to detours when the buffers on the straight way are full, which takes the
        longer the lower the load; a higher load that is steady gives it away."""
        return point.saturated and (self.saturated_at is None or point.load < self.saturated_at)


def saturated(network: Network, result: Performance) -> bool:
    """Does the network take in less than it is offered?

    Source queues that grow say so, but only once the buffers between them and the bottleneck are
    full, which just above saturation takes longer than any run. So what is taken in may not fall
    short by GROWTH either, and by more than chance: so many messages are under way when the
    measurement begins, and so many when it ends, that either number varies by about its root.
    """
    traffic = network.traffic[0]
    assert traffic.measure_ps is not None
    made = (
        result.offered
        * network.machine.n_nodes
        * traffic.measure_ps
        / network.traffic[0].slot_ps(network.machine)
    )
    under_way = made * result.mean_latency_ns * 1e3 / traffic.measure_ps
    missing = made * (1 - result.throughput / result.offered) if made else 0.0
    chance = SIGMAS * math.sqrt(2 * under_way)
    return result.saturated or missing > max(GROWTH * made, chance)


@dataclass(frozen=True)
class Task:
    """One point to simulate; `first` of its curve, and so the one that may have to compile."""

    network: Network
    end_ps: int
    first: bool

    @property
    def load(self) -> float:
        return self.network.traffic[0].load

    def __str__(self) -> str:
        return f"{self.network.routing} at load {self.load:g}"


def simulate(task: Task) -> Point:
    """On this core, whatever ranks there are."""
    network = task.network
    try:
        result = run(network, task.end_ps, transport=Serial(), show_compiling=task.first)
        told = performance(network, result)
    except (Fault, OSError, MemoryError) as error:
        raise Fault(f"{task}: {explain(error)}") from error
    told = replace(told, saturated=saturated(network, told))
    return Point(network.routing, task.load, told, result.events, result.digest)


attempt = partial(pool.attempt, simulate)
"""A point or, in a line, why there is none: for those who have to tell somebody else."""
_Worker = partial(pool.Worker, simulate)


@dataclass
class Agenda:
    """Which points are still to be simulated, and what has come of the others.

    All curves go up together. Of each the first point comes before all others, so that only one
    process compiles its kernels and the others find them. Whoever works on several points at a time
    runs ahead, and may find afterwards that a curve was at its end: `curves` leaves those out.
    """

    asked: Sweep
    dealt: dict[str, int] = field(default_factory=dict)
    found: dict[tuple[str, float], Point] = field(default_factory=dict)

    def take(self) -> Task | None:
        """None: there is nothing to do, or not before a point that was dealt is found."""
        sweep = self.asked
        open_ = [
            (self.dealt.get(routing, 0), routing)
            for routing in sweep.routings
            if self.dealt.get(routing, 0) < self._length(routing)
            and (routing not in self.dealt or (routing, sweep.loads[0]) in self.found)
        ]
        if not open_:
            return None
        index, routing = min(open_, key=lambda one: one[0])
        self.dealt[routing] = index + 1
        return Task(sweep.at(routing, sweep.loads[index]), sweep.end_ps, index == 0)

    def note(self, answer: Point) -> None:
        self.found[answer.routing, answer.load] = answer

    def _length(self, routing: str) -> int:
        """Points of a curve, as far as is known: to the first that is saturated like those before
        it, BEYOND of them."""
        loads, running = self.asked.loads, 0
        for i, load in enumerate(loads if not self.asked.everything else ()):
            point = self.found.get((routing, load))
            running = running + 1 if point is not None and point.saturated else 0
            if running > BEYOND:
                return i + 1
        return len(loads)

    @property
    def missing(self) -> int:
        """Points not found yet, as far as is known."""
        return sum(
            (routing, load) not in self.found
            for routing in self.asked.routings
            for load in self.asked.loads[: self._length(routing)]
        )

    def curves(self) -> list[Curve]:
        return [
            Curve(routing, tuple(self.found[routing, load]
                                 for load in self.asked.loads[: self._length(routing)]))
            for routing in self.asked.routings
        ]  # fmt: skip

    @property
    def done(self) -> float:
        return len(self.found) / max(1, len(self.found) + self.missing)


def curves(asked: Sweep, jobs: int = 1) -> list[Curve]:
    """Simulate all of it (`odonata.study.pool`): on the ranks there are, on so many processes, or
    right here. All ranks get it."""
    agenda = Agenda(asked)
    pool.share(agenda, simulate, jobs)
    agenda.found = world().everyone(agenda.found)[0]
    return agenda.curves()
