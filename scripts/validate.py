"""Checks the simulated network against formulas, queueing theory, the known limits of a dragonfly,
and BookSim.

    python scripts/validate.py [--quick] [--only NAME] [--plots DIR] [--json]

Every claim gives rows: what was measured, what is expected, and the tolerance. Exits 1 unless all
hold. What is compared with what, and why it may differ, is in docs/validation.md.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from odonata import (
    Dragonfly,
    LinkClass,
    Network,
    Performance,
    Traffic,
    performance,
    run,
    traffic_pattern,
)
from odonata.agents.layout import DELIVERED, HOPS, LATENCY_SUM
from odonata.agents.network import COUNTERS
from odonata.agents.node import LONGEST
from odonata.agents.routers import ROUTERS
from policies.routing import Outlook
from policies.routing import routing as routing_of

US = 1_000_000
COLOURS = ("#30638e", "#d1495b", "#e0a030", "#3a9d5d", "#7b4fa3")


@dataclass(frozen=True)
class Row:
    what: str
    ours: float
    reference: float
    tolerance: str
    holds: bool | None
    """Whether the row holds; None: it is only shown, because the two models are known to differ
    there."""
    unit: str = ""


@dataclass(frozen=True)
class How:
    quick: bool
    plots: Path | None


def simulate(network: Network, after: int = 0) -> Performance:
    """Run through warm-up and measurement and so many picoseconds more, in which packets generated
    in the measurement may still be delivered."""
    traffic = network.traffic[0]
    assert traffic.measure_ps is not None
    end = traffic.warmup_ps + traffic.measure_ps + after
    return performance(network, run(network, end, show_compiling=False))


def within(what: str, ours: float, reference: float, part: float, unit: str = "") -> Row:
    holds = abs(ours - reference) <= part * reference
    return Row(what, ours, reference, f"± {part:.0%}", holds, unit)


# -- an empty network


@dataclass(frozen=True)
class Way:
    """The links between routers on a packet's path, and the name of such a path."""

    local: int
    across: int
    name: str = ""


def minimal_paths(machine: Dragonfly) -> tuple[Any, Any]:
    """Returns [routers, routers]: local and global links of the minimal path, where there is one
    cable between two groups."""
    assert machine.copies <= 1
    router = np.arange(machine.n_routers)
    group, place = router // machine.routers, router % machine.routers
    here, there = np.ix_(group, group)
    apart = here != there
    gate = (machine.gates()[:, :, 0] // machine.global_links)[np.ix_(group, group)]
    away = (gate != place[:, None]) & apart
    landed = (place[None, :] != gate.T) & apart
    near = ~apart & (router[:, None] != router[None, :])
    return away.astype(int) + landed + near, apart.astype(int)


def empty_ps(network: Network, way: Way) -> int:
    """Returns the latency of a packet alone: the links' latencies, the routers' pipelines, and the
    slowest link's serialisation; every link's where routers store and forward."""
    m = network.machine
    links = [m.terminal, *[m.local] * way.local, *[m.global_] * way.across, m.terminal]
    size = min(network.packet_bytes, network.traffic[0].message_bytes)
    takes = [round(size * 1e12 / link.bandwidth) for link in links]
    wires = sum(link.latency_ps for link in links) + (len(links) - 1) * network.delay_ps
    return wires + (sum(takes) if network.forwarding == "store" else max(takes))


SLOW_INSIDE = dict(  # noqa: C408
    terminal=LinkClass(25e9, 30_000),
    local=LinkClass(16e9, 70_000),
    global_=LinkClass(20e9, 400_001),
)
SLOW_OUTSIDE = dict(  # noqa: C408
    terminal=LinkClass(25e9, 30_000), local=LinkClass(20e9, 70_000), global_=LinkClass(12.5e9, 999)
)
EMPTY: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "cut-through": ({}, {}),
    "slow local links, relative": ({**SLOW_INSIDE, "cabling": "relative"}, {}),
    "slow global links, circulant": ({**SLOW_OUTSIDE, "cabling": "circulant"}, {}),
    "store and forward": (SLOW_OUTSIDE, {"forwarding": "store"}),
    "ugal-l": ({}, {"routing": "ugal-l"}),
    "ugal-g": ({}, {"routing": "ugal-g"}),
    "par": ({}, {"routing": "par"}),
    "adaptive": ({}, {"routing": "adaptive"}),
    "valiant by a group": (SLOW_OUTSIDE, {"routing": "valiant"}),
    "valiant by a router": (SLOW_INSIDE, {"routing": "valiant", "via": "router"}),
    "messages of 4 packets": ({}, {}),
}


def zero_load(how: How) -> list[Row]:
    """One message per node goes to a fixed partner, so rarely that none meets another (no counter
    shows any waiting): each latency is the formula's, to the picosecond."""
    rows, measured = [], {}
    for name, (links, settings) in EMPTY.items():
        if how.quick and settings.get("routing", "valiant") != "valiant":
            continue
        machine = Dragonfly(2, 4, 2, 9, **links)
        pieces = 4 if "messages" in name else 1
        found = alone(machine, settings, pieces, seeds=2 if how.quick else 30)
        for way, (ours, formula) in sorted(found.items(), key=lambda one: in_order(one[0])):
            wrong = np.flatnonzero(ours != formula)
            shown = ours[wrong[0]] if len(wrong) else ours[0]
            what = f"{name}: {way.name}, {len(ours)} pairs"
            rows.append(Row(what, float(shown), float(formula), "exact", not len(wrong), "ps"))
        measured[name] = found
    if how.plots:
        draw_zero_load(measured, how.plots / "zero-load.png")
    return rows


def in_order(way: Way) -> tuple[int, int, str]:
    return way.across, way.local, way.name


def name_of(local: int, across: int, leaves: bool) -> str:
    """Returns the kind of a minimal path; `leaves`: the source's own router has the cable."""
    if not across:
        return "same group" if local else "same router"
    if local == 1:
        return "global, local" if leaves else "local, global"
    return "local, global, local" if local else "global"


def alone(
    machine: Dragonfly, settings: dict[str, Any], pieces: int, seeds: int
) -> dict[Way, tuple[Any, int]]:
    """Returns, by kind of path, the sum of the latencies of each message's packets, and the
    expected one."""
    local, across = minimal_paths(machine)
    sums: dict[Way, list[int]] = {}
    for seed in range(1, seeds + 1):
        traffic = Traffic("permutation", load=1e-7 * pieces, message_bytes=512 * pieces, messages=1)
        network = Network(machine, traffic, seed=seed, **settings)
        end = round(40 * network.traffic[0].slot_ps(network.machine) / traffic.load)
        outcome = run(network, end, show_compiling=False).outcome
        waited = outcome["counters"][..., COUNTERS.index("stall_ps") :]
        nics = machine.routers * machine.radix
        assert not waited[:, :nics].any(), "packets met, and waited for each other"
        partners = traffic.partners(machine, seed, 0, machine.n_nodes)
        routers = np.arange(machine.n_nodes) // machine.nodes
        tally = outcome["nodes"][partners]
        assert (tally[:, DELIVERED] == pieces).all()
        for source, (got, to) in enumerate(zip(tally, partners // machine.nodes, strict=True)):
            start = routers[source]
            hops = int(local[start, to]), int(across[start, to])
            gate = machine.gates()[start // machine.routers, to // machine.routers, 0]
            own = gate // machine.global_links == start % machine.routers
            way = Way(*hops, name_of(*hops, own))
            visited = got[HOPS] // pieces
            if settings.get("routing") == "valiant" and way.across:
                way = Way(int(visited) - 3, 2, f"{visited - 3} local, 2 global")
            assert visited == way.local + way.across + 1, "a packet went astray"
            assert pieces > 1 or got[LONGEST] == got[LATENCY_SUM]
            sums.setdefault(way, []).append(int(got[LATENCY_SUM]))
    one = network.serialisation(machine.terminal, network.packet_bytes)
    queued = one * pieces * (pieces - 1) // 2
    single = replace(network, traffic=replace(traffic, message_bytes=512))
    return {way: (np.array(some), pieces * empty_ps(single, way) + queued)
            for way, some in sums.items()}  # fmt: skip


# -- a single queue


def mean_wait(load: float) -> float:
    """Returns the mean wait of M/D/1, in service times: Poisson arrivals, one server, constant
    service."""
    return load / (2 * (1 - load))


def queue(how: How) -> list[Row]:
    """256 nodes of one router send to a partner each. Where a message waits for its node's link is
    the only queue: packets leave it one at a time, and each output has one source."""
    loads = (0.3, 0.6) if how.quick else (0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9)
    machine = Dragonfly(256, 1, 0, 1)
    rows, waits = [], []
    for load in loads:
        several = []
        for seed in range(1, 4 if how.quick else 7):
            span = round(US * (60 if how.quick else 250) * max(1.0, 0.04 / (1 - load) ** 2))
            traffic = Traffic("permutation", load, warmup_ps=span // 4, measure_ps=span)
            network = Network(machine, traffic, seed=seed)
            latency = simulate(network, after=20 * US).mean_latency_ns * 1e3
            several.append(
                (latency - empty_ps(network, Way(0, 0)))
                / network.traffic[0].slot_ps(network.machine)
            )
        ours = statistics.mean(several)
        error = statistics.stdev(several) / len(several) ** 0.5
        waits.append((ours, error))
        what = f"wait at load {load}, ± {error / ours:.1%} by chance"
        rows.append(within(what, ours, mean_wait(load), 0.02, "services"))
    if how.plots:
        draw_queue(loads, waits, how.plots / "queue.png")
    return rows


# -- BookSim


@routing_of(
    "booksim-ugal",
    sees="port",
    threshold=2.0,
    bias=30,
    about="UGAL by used credits: what is on the wire counts",
    source="Jiang et al., ISPASS 2013 (BookSim 2)",
)
def by_credits(minimal: Outlook, valiant: Outlook, threshold: float, bias: int, word: int) -> bool:
    return minimal.used > threshold * valiant.used + bias  # type: ignore[no-any-return]


@traffic_pattern(
    "booksim-uniform",
    about="to any node, the own one included; that message goes to another node of its router",
    source="Jiang et al., ISPASS 2013 (BookSim 2)",
)
def to_any(node: int, nodes: int, group_nodes: int, word: int) -> int:
    to = (word * nodes) >> 32
    if to != node:
        return to
    per_router = 1
    while 2 * per_router * per_router < group_nodes:
        per_router += 1
    return node - node % per_router + (node + 1) % per_router


CYCLE, FLIT = 1000, 16
"""A cycle in picoseconds; a flit in bytes."""
FLITS = FLIT * 1e12 / CYCLE
"""A flit per cycle, the bandwidth of all links."""
GRID = Path(__file__).with_name("booksim.csv")
JUDGED, NEAR, FULL = 0.8, 0.05, 0.03
"""Latency is judged up to this part of BookSim's saturation, and may differ by this part of
BookSim's; the accepted load at saturation by so much."""


@dataclass(frozen=True)
class Setting:
    """A configuration of BookSim: its number of nodes and `internal_speedup`, and the flits of a
    packet and of the buffer of a virtual channel."""

    nodes: int
    speedup: int
    packet: int
    buffer: int

    def __str__(self) -> str:
        flits = f"{self.packet} flit{'s' * (self.packet > 1)}"
        return f"{self.nodes} nodes, x{self.speedup}, {flits}, buffers of {self.buffer}"


DIFFERENT = {
    (Setting(72, 2, 8, 8), 0.027),
    (Setting(342, 2, 8, 8), 0.0259),
    (Setting(72, 2, 1, 256), 1.0),
    (Setting(342, 2, 2, 256), 1.0),
    (Setting(72, 1, 2, 256), 1.0),
    (Setting(72, 1, 8, 256), 0.45),
    (Setting(72, 1, 8, 256), 1.0),
}
"""Settings and loads (1: saturation) at which the two are known to differ by more than they may.
They are shown, not judged; docs/validation.md says what we found out about why."""


@dataclass(frozen=True)
class Point:
    """What BookSim measured: mean latency in cycles, and its standard error (none where every node
    offers all it can); accepted load; and in which cycles."""

    latency: float | None
    error: float | None
    accepted: float
    warmup: int
    sample: int


Curve = dict[float, Point]
"""By load, as a fraction of the injection bandwidth."""


def read_grid() -> dict[Setting, Curve]:
    """Returns BookSim's results with minimal routing and uniform traffic."""
    grid: dict[Setting, Curve] = {}
    lines = [line for line in GRID.read_text().splitlines() if not line.startswith("#")]
    for row in csv.DictReader(lines):
        names = ("nodes", "speedup", "packet_flits", "buffer_flits")
        setting = Setting(*(int(row[name]) for name in names))
        latency, error = (float(row[name]) if row[name] else None for name in ("latency", "error"))
        point = Point(
            latency, error, float(row["accepted"]), int(row["warmup"]), int(row["sample"])
        )
        grid.setdefault(setting, {})[float(row["load"])] = point
    return grid


def machine_of(nodes: int, cycles: tuple[float, float, float]) -> Dragonfly:
    """Returns BookSim's dragonfly of that many nodes, with the latency of a node's, a local and a
    global link in cycles."""
    p = {72: 2, 342: 3, 1056: 4}[nodes]
    links = [LinkClass(FLITS, round(n * CYCLE)) for n in cycles]
    return Dragonfly(p, 2 * p, p, 2 * p**2 + 1, terminal=links[0], local=links[1], global_=links[2])


def like_booksim(setting: Setting, load: float, warmup: int, measure: int) -> Network:
    """Returns a network with BookSim's routers. All times follow from its clock
    (docs/validation.md)."""
    steps, size = setting.speedup, FLIT * setting.packet
    traffic = Traffic("booksim-uniform", load, "bernoulli", size, trial_ps=CYCLE,
                      warmup_ps=warmup * CYCLE, measure_ps=measure * CYCLE)  # fmt: skip
    buffer = FLIT * setting.buffer
    inside = {**ROUTERS["booksim"], "crossbar": float(steps), "allocation_ps": CYCLE // steps}
    return Network(
        machine_of(setting.nodes, (1.5, 11, 101)), traffic, "minimal",
        packet_bytes=size, flit_bytes=FLIT,
        terminal_buffer=buffer, local_buffer=buffer, global_buffer=buffer,
        delay_ps=2 * CYCLE // steps, credit_delay_ps=CYCLE * (1 + steps) // 2, **inside,
    )  # fmt: skip


def measured(setting: Setting, load: float, theirs: Point, part: float, quick: bool) -> Point:
    """Returns what we measure at a load that is this part of BookSim's saturation."""
    if theirs.latency is None:
        network = like_booksim(setting, load, theirs.warmup, theirs.sample)
        return Point(None, None, simulate(network).throughput, theirs.warmup, theirs.sample)
    packets = (20_000 if quick else 40_000) * (1 if part < 0.6 else 4)
    sample = max(1_500, round(packets * setting.packet / setting.nodes / load))
    warmup = max(1_500, sample // 4)
    network = like_booksim(setting, load, warmup, sample)
    found = simulate(network, after=round(20 * theirs.latency) * CYCLE)
    latency = found.mean_latency_ns * 1e3 / CYCLE
    return Point(latency, None, found.throughput, warmup, sample)


def grid_of_routers(how: How) -> tuple[list[Row], dict[Setting, Curve]]:
    """Returns the rows of all settings, and what we measured."""
    rows: list[Row] = []
    ours: dict[Setting, Curve] = {}
    for setting, theirs in read_grid().items():
        if how.quick and (setting.nodes, setting.speedup, setting.buffer) != (72, 2, 32):
            continue
        full = theirs[1.0].accepted
        ours[setting] = {}
        for load, point in theirs.items():
            got = ours[setting][load] = measured(setting, load, point, load / full, how.quick)
            if got.latency is None or point.latency is None:
                apart = got.accepted - full
                what, near = f"{setting}, saturation: {apart:+.3f}", abs(apart) <= FULL
                numbers, tolerance, unit = (got.accepted, full), f"± {FULL}", ""
            else:
                more = got.latency / point.latency - 1
                what = f"{setting}, load {load} ({load / full:.2f} of saturation): {more:+.1%}"
                near = abs(more) <= NEAR
                numbers, tolerance, unit = (got.latency, point.latency), f"± {NEAR:.0%}", "cycles"
            holds: bool | None = near if load == 1 or load <= JUDGED * full else None
            if holds is False and (setting, load) in DIFFERENT:
                holds, tolerance = None, f"{tolerance}: not met"
            rows.append(Row(what, *numbers, tolerance, holds, unit))
    return rows, ours


BOOKSIM = {
    ("uniform", "minimal"): {0.1: 112.5, 0.3: 113.0, 0.5: 114.2, 0.7: 117.3, 0.8: 125.3},
    ("uniform", "valiant"): {0.1: 196.4, 0.3: 198.5, 0.5: 206.8},
    ("uniform", "booksim-ugal"): {0.1: 112.4, 0.3: 131.8, 0.5: 134.9, 0.7: 142.7},
    ("adversarial", "minimal"): {0.1: 126.7, 0.12: 134.6},
    ("adversarial", "valiant"): {0.1: 219.5, 0.3: 221.8, 0.4: 225.0, 0.5: 239.1},
}
"""Mean latency in cycles by load; 72 nodes, one flit per packet, as we measured it."""
BOOKSIM_LARGE = {"minimal": 125.4}
"""Mean latency in cycles of 1,056 nodes, uniform traffic, load 0.3."""
BELOW, PIPELINE = 0.7, 2
"""Loads from here on are not judged; cycles per router, as derived from BookSim's own results
(`router_cycles`)."""
APART, SAME = 1.0, 1.5
"""Cycles by which we may differ at load 0.1, and by which that may change as the load grows."""


def ideal_network(pattern: str, routing: str, load: float, nodes: int, measure: int) -> Network:
    """Returns a network of ideal routers with channels of 1, 10 and 100 cycles and buffers of 256
    flits."""
    traffic = Traffic(
        pattern, load, "bernoulli", FLIT, warmup_ps=10_000 * CYCLE, measure_ps=measure * CYCLE
    )
    return Network(
        machine_of(nodes, (1, 10, 100)), traffic, routing, via="anywhere",
        packet_bytes=FLIT, flit_bytes=FLIT,
        terminal_buffer=256 * FLIT, local_buffer=256 * FLIT, global_buffer=256 * FLIT,
        delay_ps=PIPELINE * CYCLE,
    )  # fmt: skip


def as_booksim_counts(network: Network, found: Performance) -> float:
    """Returns our mean latency in cycles, as BookSim would count it: its uniform traffic includes
    messages of a node to itself, one in n, which visit one router."""
    cycles = found.mean_latency_ns * 1e3 / CYCLE
    if network.traffic[0].pattern == "uniform":
        itself = empty_ps(network, Way(0, 0)) / CYCLE
        cycles += (itself - cycles) / network.machine.n_nodes
    return cycles


def router_cycles() -> float:
    """Returns the cycles of BookSim's router: how much longer VAL takes than MIN at load 0.1, less
    the channels, divided by how many more routers it visits. Means over all pairs, and intermediate
    nodes."""
    machine = machine_of(72, (1, 10, 100))
    local, across = minimal_paths(machine)
    group = np.arange(machine.n_routers) // machine.routers
    means = []
    for links in (local, across):
        by = links[:, :, None] + links[None, :, :]  # source, intermediate, destination
        minimal = np.broadcast_to(links[:, None, :], by.shape)
        near = (group[:, None, None] == group[None, :, None]) | (
            group[:, None, None] == group[None, None, :]
        )
        means.append(float(np.where(near, minimal, by).mean() - links.mean()))
    longer = BOOKSIM["uniform", "valiant"][0.1] - BOOKSIM["uniform", "minimal"][0.1]
    return (longer - 10 * means[0] - 100 * means[1]) / sum(means)


def ideal_routers(how: How) -> tuple[list[Row], dict[tuple[str, str], dict[float, float]]]:
    """Returns the rows of ideal routers with several routings and patterns, and what we measured.
    Our latency is BookSim's, at every load below 0.7 alike."""
    rows = [
        Row("cycles a router, of BookSim", PIPELINE, router_cycles(), "± 0.1",
            abs(PIPELINE - router_cycles()) <= 0.1, "cycles"),
    ]  # fmt: skip
    curves: dict[tuple[str, str], dict[float, float]] = {}
    flits = 3_000 if how.quick else 12_000  # a node's, in a measurement
    for (pattern, routing), theirs in BOOKSIM.items():
        if how.quick and (pattern, routing) != ("uniform", "minimal"):
            continue
        ours = {}
        for load in theirs:
            network = ideal_network(pattern, routing, load, 72, round(flits / load))
            ours[load] = as_booksim_counts(network, simulate(network, after=10_000 * CYCLE))
        curves[pattern, routing] = ours
        first = ours[0.1] - theirs[0.1]
        for load in theirs:
            apart = ours[load] - theirs[load]
            what = f"ideal routers, {pattern}, {routing}, load {load}: apart {apart:+.2f}"
            holds: bool | None = abs(first) <= APART and abs(apart - first) <= SAME
            if load >= BELOW:
                holds = None
            tolerance = f"{first:+.1f} ± {SAME}" if load > 0.1 else f"± {APART}"
            rows.append(Row(what, ours[load], theirs[load], tolerance, holds, "cycles"))
    for routing, latency in () if how.quick else BOOKSIM_LARGE.items():
        network = ideal_network("uniform", routing, 0.3, 1056, flits // 3)
        got = as_booksim_counts(network, simulate(network, after=10_000 * CYCLE))
        what = (
            f"ideal routers, 1,056 nodes, uniform, {routing}, load 0.3: apart {got - latency:+.2f}"
        )
        near = abs(got - latency) <= SAME
        rows.append(Row(what, got, latency, f"± {SAME}", near, "cycles"))
    return rows, curves


def booksim(how: How) -> list[Row]:
    """With routers like BookSim's, our latency and our saturation are BookSim's; with ideal
    routers, our latency is at every load below 0.7 alike."""
    rows, grid = grid_of_routers(how)
    more, curves = ideal_routers(how)
    if how.plots:
        draw_grid(grid, how.plots / "booksim.png")
        draw_ideal(curves, how.plots / "booksim-ideal.png")
    return rows + more


# -- saturation

LARGE = Dragonfly(4, 8, 4, 33)


def accepted(pattern: str, routing: str, load: float, **settings: Any) -> float:
    """Loads as fractions of the injection bandwidth; the measurement begins when buffers have
    filled."""
    traffic = Traffic(pattern, load, warmup_ps=30 * US, measure_ps=20 * US)
    return simulate(Network(LARGE, traffic, routing, **settings)).throughput


def saturation(how: How) -> list[Row]:
    """Measure the accepted load when every node offers all it can, and check that slightly less
    than that is accepted in full."""
    m, rows = LARGE, []
    direct = 1 / (m.nodes * m.routers)
    full: dict[tuple[str, str], float] = {}

    def flood(pattern: str, routing: str) -> float:
        full[pattern, routing] = accepted(pattern, routing, 1.0)
        return full[pattern, routing]

    def steady(pattern: str, routing: str, load: float) -> None:
        ours = accepted(pattern, routing, load)
        rows.append(within(f"{pattern}, {routing}, offered {load:.3f}", ours, load, 0.02))

    ours = flood("adversarial", "minimal")
    rows.append(within("adversarial, minimal: 1/(a·p)", ours, direct, 0.03))
    steady("adversarial", "minimal", 0.9 * direct)
    if how.quick:
        return rows
    ours, half = flood("adversarial", "valiant"), 0.5 * (m.groups - 2) / (m.groups - 1)
    rows.append(Row("adversarial, valiant", ours, 0.5, "0.45 … 0.5", 0.45 <= ours <= 0.5))
    rows.append(within("adversarial, valiant: (g-2)/(g-1)/2", ours, half, 0.01))
    steady("adversarial", "valiant", 0.95 * half)
    ours = flood("uniform", "minimal")
    rows.append(Row("uniform, minimal", ours, 1.0, "> 0.8", ours > 0.8))
    outside = (m.n_nodes - m.nodes * m.routers) / (m.n_nodes - 1)
    rows.append(within("uniform, valiant: half, and what stays in its group",
                       flood("uniform", "valiant"), 0.5 / outside, 0.01))  # fmt: skip
    for routing in ("ugal-l", "ugal-g", "par"):
        for pattern in ("uniform", "adversarial"):
            best = max(full[pattern, "minimal"], full[pattern, "valiant"])
            ours = flood(pattern, routing)
            what = f"{pattern}, {routing}: the better of minimal and valiant"
            rows.append(Row(what, ours, best, "> 90 %", ours >= 0.9 * best))
            steady(pattern, routing, round(0.9 * best, 3))
    if how.plots:
        draw_saturation(full, how.plots / "saturation.png")
    return rows


# -- pictures


def picture(path: Path, title: str, draw: Callable[[Any], None], width: float = 9) -> None:
    figure = Figure(figsize=(width, 5.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    draw(axes)
    axes.set_title(title, loc="left", fontweight="bold")
    axes.grid(color="#e6eaee", lw=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def draw_zero_load(measured: dict[str, dict[Way, tuple[Any, int]]], path: Path) -> None:
    def draw(axes: Any) -> None:
        singles = {name: found for name, found in measured.items() if "messages" not in name}
        ways = sorted({way for found in singles.values() for way in found}, key=in_order)
        for i, (name, found) in enumerate(singles.items()):
            x = np.array([ways.index(way) for way in found]) + (i - len(singles) / 2) * 0.07
            colour = f"C{i}"
            formulas = [formula / 1e3 for _, formula in found.values()]
            axes.scatter(x, formulas, marker="_", s=260, color=colour, lw=1.5, label=name)
            for at, (ours, _) in zip(x, found.values(), strict=True):
                axes.scatter([at] * len(ours), ours / 1e3, s=14, color=colour, zorder=3)
        axes.set_xticks(range(len(ways)), [way.name.replace(", ", "\n") for way in ways])
        axes.set_ylabel("latency (ns)")
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=8, frameon=False, ncols=2)

    picture(path, "Alone in the network: every packet (dots), the formula (bars)", draw, 11)


def draw_queue(loads: Sequence[float], waits: Sequence[tuple[float, float]], path: Path) -> None:
    def draw(axes: Any) -> None:
        x = np.linspace(0.02, max(loads) + 0.02, 200)
        axes.plot(x, mean_wait(x), color=COLOURS[0], label="M/D/1")
        means, errors = zip(*waits, strict=True)
        axes.errorbar(loads, means, [2 * error for error in errors], fmt="o", color=COLOURS[1],
                      capsize=4, label="Odonata, ± 2 standard errors")  # fmt: skip
        axes.set_xlabel("load")
        axes.set_ylabel("mean wait (service times)")
        axes.legend(frameon=False)

    picture(path, "One link, Poisson arrivals", draw)


def draw_grid(ours: dict[Setting, Curve], path: Path) -> None:
    """Draw latency over the load as a part of BookSim's saturation: a row of panels for each
    machine and speed-up, a column for each size of packets."""
    theirs = read_grid()
    lines = list(dict.fromkeys((one.nodes, one.speedup) for one in ours))
    packets = sorted({one.packet for one in ours})
    figure = Figure(figsize=(4.2 * len(packets), 3.5 * len(lines) + 0.4), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(lines), len(packets), squeeze=False, sharex=True, sharey=True)
    colours = {8: COLOURS[1], 32: COLOURS[2], 256: COLOURS[0]}
    for setting, curve in sorted(ours.items(), key=lambda one: one[0].buffer):
        axes = panels[lines.index((setting.nodes, setting.speedup)), packets.index(setting.packet)]
        full, colour = theirs[setting][1.0].accepted, colours[setting.buffer]
        label = f"{setting.buffer}: {full:.3f}, {curve[1.0].accepted:.3f}"
        for points, style in ((theirs[setting], {"ls": "-", "marker": ".", "ms": 5, "lw": 1.4}),
                              (curve, {"ls": "", "marker": "o", "ms": 7, "mfc": "none", "mew": 1.5,
                                       "label": label})):  # fmt: skip
            some = sorted((load / full, at.latency) for load, at in points.items() if at.latency)
            axes.plot(*zip(*some, strict=True), color=colour, **style)
    for (nodes, speedup), line in zip(lines, panels, strict=True):
        for packet, axes in zip(packets, line, strict=True):
            axes.axvline(JUDGED, color="#9fb1c1", lw=1, ls="--")
            flits = f"{packet} flit{'s' * (packet > 1)}"
            axes.set_title(f"{nodes} nodes, speed-up {speedup}, {flits}", loc="left", fontsize=10)
            axes.legend(frameon=False, fontsize=8, loc="upper left",
                        title="buffer: saturation, ours", title_fontsize=8)  # fmt: skip
            axes.set_yscale("log")
            axes.set_ylim(100, 900)
            axes.set_yticks([100, 200, 400, 800], ["100", "200", "400", "800"])
            axes.minorticks_off()
            axes.grid(color="#e6eaee", lw=0.8)
            axes.set_axisbelow(True)
            axes.spines[["top", "right"]].set_visible(False)
        line[0].set_ylabel("mean latency (cycles)")
    for axes in panels[-1]:
        axes.set_xlabel("load / BookSim's saturation")
    figure.suptitle("BookSim (lines), Odonata (circles); judged left of the dashes",
                    x=0.01, ha="left", fontweight="bold")  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def draw_ideal(curves: dict[tuple[str, str], dict[float, float]], path: Path) -> None:
    def draw(axes: Any) -> None:
        for i, (name, ours) in enumerate(curves.items()):
            theirs = BOOKSIM[name]
            axes.plot(list(theirs), list(theirs.values()), ".-", color=COLOURS[i], lw=1.4, ms=5)
            axes.scatter(list(ours), list(ours.values()), s=42, facecolors="none", lw=1.6,
                         edgecolors=COLOURS[i], zorder=3, label=", ".join(name))  # fmt: skip
        axes.axvline(BELOW, color="#9fb1c1", lw=1, ls="--")
        axes.set_xlabel("offered load")
        axes.set_ylabel("mean latency (cycles)")
        axes.set_ylim(90, 270)
        axes.legend(frameon=False, ncols=2)

    picture(path, "BookSim (lines), ideal routers (circles); compared left of the dashes", draw)


def draw_saturation(full: dict[tuple[str, str], float], path: Path) -> None:
    def draw(axes: Any) -> None:
        routings = list(dict.fromkeys(routing for _, routing in full))
        for i, pattern in enumerate(("uniform", "adversarial")):
            x = np.arange(len(routings)) + (i - 0.5) * 0.38
            bars = axes.bar(x, [full[pattern, routing] for routing in routings], 0.36,
                            color=COLOURS[i], label=pattern)  # fmt: skip
            axes.bar_label(bars, fmt="%.3f", fontsize=9)
            best = max(full[pattern, "minimal"], full[pattern, "valiant"])
            axes.axhline(0.9 * best, color=COLOURS[i], lw=1, ls="--")
        axes.set_xticks(range(len(routings)), routings)
        axes.set_ylabel("accepted (parts of injection bandwidth)")
        axes.set_ylim(0, 1.12)
        axes.legend(frameon=False, ncols=2, loc="upper right")

    picture(
        path, "1,056 nodes, all that can be offered; dashes: 90 % of the better oblivious", draw
    )


CLAIMS = {"zero-load": zero_load, "queue": queue, "booksim": booksim, "saturation": saturation}


def about(claim: Callable[..., Any]) -> str:
    return " ".join((claim.__doc__ or "").split())


def show(found: dict[str, list[Row]]) -> None:
    console = Console(width=None if sys.stdout.isatty() else 120)
    for name, rows in found.items():
        table = Table(title=f"{name}: {about(CLAIMS[name])}", title_justify="left", min_width=100)
        for column in ("what", "ours", "should be", "tolerance", "unit", ""):
            table.add_column(column, justify="right" if column in ("ours", "should be") else "left")
        for row in rows:
            digits = ".0f" if row.unit == "ps" else ".2f" if row.unit == "cycles" else ".4f"
            verdict = {True: "holds", False: "[red]FAILS[/red]", None: "shown"}[row.holds]
            numbers = (f"{value:,{digits}}" for value in (row.ours, row.reference))
            table.add_row(row.what, *numbers, row.tolerance, row.unit, verdict)
        console.print(table)
    rows = [row for some in found.values() for row in some if row.holds is not None]
    failed = [row.what for row in rows if row.holds is False]
    console.print(f"{len(rows) - len(failed)} of {len(rows)} hold")
    for what in failed:
        console.print(f"does not hold: {what}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="less of it, in half a minute")
    parser.add_argument("--only", choices=CLAIMS, help="one claim")
    parser.add_argument("--plots", type=Path, metavar="DIR", help="leave pictures (PNG) there")
    parser.add_argument("--json", action="store_true", help="the rows, for machines")
    asked = parser.parse_args()
    names = [asked.only] if asked.only else list(CLAIMS)
    found = {name: CLAIMS[name](How(asked.quick, asked.plots)) for name in names}
    if asked.json:
        report = {name: [asdict(row) for row in rows] for name, rows in found.items()}
        print(json.dumps(report, indent=1, ensure_ascii=False))
    else:
        show(found)
    sys.exit(any(row.holds is False for rows in found.values() for row in rows))


if __name__ == "__main__":
    main()
