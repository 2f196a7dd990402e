"""The points of the curves: every routing at every load, until the network is saturated.

A **curve** is the points of one routing, by increasing load, up to a few past the first that is not
steady. Points do not depend on each other, so they are simulated in parallel, each on one core;
how many at a time changes nothing that is printed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from functools import cached_property

from odonata.agents.network import Network
from odonata.experiment.units import show_time
from odonata.studies.loadlatency.simulation import (
    AtLoad,
    Point,
    mark,
    slot_ps,
    traffic_of,
    with_traffic,
)
from pdes.clock import LATEST
from pdes.errors import require
from topology.dragonfly import LinkClass

MOST_LOADS = 1000
BEYOND = 2
"""Points past the first that is not steady: they show whether throughput is flat there, or
falls."""
STRETCH = 16
"""How many times as long as at first a point is simulated at the most, where nobody says."""


# -- what is asked for


def parse_loads(text: str) -> tuple[float, ...]:
    """Returns increasing loads from '0.05:0.95:0.05' (first, last, step), '0.1,0.5' or '0.3'.

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
    measure at first, and `longest_ps` how long a run may be made. `everything`: also far beyond
    saturation. `kept`: outcomes are, and may meet another simulator's."""

    network: Network
    routings: tuple[str, ...]
    loads: tuple[float, ...]
    drain_ps: int
    longest_ps: int
    everything: bool = False
    kept: bool = False

    def __post_init__(self) -> None:
        require(bool(self.routings) and bool(self.loads), "a curve needs a routing and a load")
        for what, ps in (("phases", self.end_ps), ("the longest run", self.longest_ps)):
            require(
                ps <= LATEST,
                f"{what} of {show_time(ps)} {'together' if what == 'phases' else ''}: at most "
                f"{show_time(LATEST)}",
            )
        require(
            self.longest_ps >= self.end_ps,
            f"longest = {show_time(self.longest_ps)}: at least the first run's "
            f"{show_time(self.end_ps)}",
        )
        for routing in self.routings:  # what cannot be built is refused now
            self._network(routing, self.loads[0])

    def at(self, routing: str, load: float) -> AtLoad:
        if (routing, load) not in self._cases:
            own = mark(routing) if self.kept else ""
            network = self._network(routing, load)
            self._cases[routing, load] = AtLoad(network, self.end_ps, self.longest_ps, own)
        return self._cases[routing, load]

    def _network(self, routing: str, load: float) -> Network:
        traffic = replace(traffic_of(self.network), load=load)
        return with_traffic(self.network, traffic, routing=routing)

    @cached_property
    def _cases(self) -> dict[tuple[str, float], AtLoad]:
        return {}

    @property
    def end_ps(self) -> int:
        traffic = traffic_of(self.network)
        return traffic.warmup_ps + (traffic.measure_ps or 0) + self.drain_ps


def sweep(
    network: Network,
    routings: Sequence[str],
    loads: Sequence[float],
    *,
    warmup_ps: int | None = None,
    measure_ps: int | None = None,
    drain_ps: int | None = None,
    longest_ps: int | None = None,
    everything: bool = False,
    kept: bool = False,
) -> Sweep:
    """Returns a Sweep with phases that suit the machine (`phases`) where none are given. Where one
    is, runs are made no longer unless `longest_ps` says so. The network's own routing, load and
    number of messages do not matter."""
    usual = phases(network)
    own = warmup_ps is None and measure_ps is None and drain_ps is None
    warmup_ps, measure_ps, drain_ps = (
        usually if given is None else given
        for given, usually in zip((warmup_ps, measure_ps, drain_ps), usual, strict=True)
    )
    traffic = replace(
        traffic_of(network), messages=None, stop_ps=None, warmup_ps=warmup_ps, measure_ps=measure_ps
    )
    routings, loads = tuple(dict.fromkeys(routings)), tuple(sorted(set(loads)))
    if longest_ps is None:
        longest_ps = (warmup_ps + measure_ps + drain_ps) * (STRETCH if own else 1)
    return Sweep(
        with_traffic(network, traffic), routings, loads, drain_ps, longest_ps, everything, kept
    )


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
    local, across = (3, 2) if machine.groups > 1 else (1, 0)
    one = path_ps(network, local, across) + slot_ps(network)
    fill = 1e12 * (
        network.terminal_buffer / machine.terminal.bandwidth
        + network.local_buffer / machine.local.bandwidth * local
        + network.global_buffer / machine.global_.bandwidth * across
    )
    many = 5000 * slot_ps(network) / (0.05 * machine.n_nodes)
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
    size = min(network.packet_bytes, traffic_of(network).message_bytes)
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
    m, traffic = network.machine, traffic_of(network)
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


def title(asked: Sweep) -> str:
    """Returns the traffic and the machine in a line."""
    network = asked.network
    m, traffic = network.machine, traffic_of(network)
    size = f"packets of {min(network.packet_bytes, traffic.message_bytes)} B"
    if traffic.message_bytes > network.packet_bytes:
        size = f"messages of {traffic.message_bytes} B in {size}"
    return (
        f"{traffic.pattern} traffic, {size}, {m.n_nodes:,} nodes "
        f"(p={m.nodes} a={m.routers} h={m.global_links} g={m.groups})"
    )


# -- curves


@dataclass(frozen=True)
class Curve:
    """By increasing load."""

    routing: str
    points: tuple[Point, ...]

    @property
    def throughput(self) -> float | None:
        """Returns the largest accepted load of a point that has settled, None where none has; where
        no point is saturated, more may be possible."""
        return max((it.performance.throughput for it in self.points if it.settled), default=None)

    @property
    def saturated_at(self) -> float | None:
        """Returns the lowest saturated load above which none was steady."""
        lowest = None
        for point in reversed(self.points):
            if point.steady:
                break
            if point.saturated:
                lowest = point.load
        return lowest


def wanted(asked: Sweep, outcomes: Mapping[str, Point]) -> list[AtLoad]:
    """Returns the points of all curves as far as they are known to go; all curves go up together.

    The first point of each comes before all others, so that only one process compiles its kernels
    and the others find them. Whoever works on several points at a time runs ahead, and may find
    afterwards that a curve was at its end: `curves` leaves those out.
    """
    loads = asked.loads
    lengths = {routing: _length(asked, routing, outcomes) for routing in asked.routings}
    for routing in asked.routings:
        if asked.at(routing, loads[0]).key not in outcomes:
            lengths[routing] = 1
    return [
        asked.at(routing, load)
        for i, load in enumerate(loads[: max(lengths.values())])
        for routing in asked.routings
        if i < lengths[routing]
    ]


def curves(asked: Sweep, outcomes: Mapping[str, Point]) -> list[Curve]:
    """Returns the curves that have begun, each as far as all its points are there."""
    found = []
    for routing in asked.routings:
        points = []
        for load in asked.loads[: _length(asked, routing, outcomes)]:
            point = outcomes.get(asked.at(routing, load).key)
            if point is None:
                break
            points.append(point)
        if points:
            found.append(Curve(routing, tuple(points)))
    return found


def _length(asked: Sweep, routing: str, outcomes: Mapping[str, Point]) -> int:
    """Returns how many points a curve has, as far as is known: to the first that is not steady, and
    BEYOND more, none of which is."""
    running = 0
    for i, load in enumerate(asked.loads if not asked.everything else ()):
        point = outcomes.get(asked.at(routing, load).key)
        running = running + 1 if point is not None and not point.steady else 0
        if running > BEYOND:
            return i + 1
    return len(asked.loads)
