"""The claim of validate.py about BookSim: routers like its own over a grid of packets and buffers,
and ideal routers where those agree. docs/validation.md explains the numbers."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from validation import (
    COLOURS,
    How,
    Row,
    Way,
    empty_ps,
    minimal_paths,
    picture,
    simulate,
)

from odonata import (
    Dragonfly,
    LinkClass,
    Network,
    Performance,
    Traffic,
    traffic_pattern,
)
from odonata.agents.routers import ROUTERS
from policies.routing import Outlook
from policies.routing import routing as routing_of


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


HELD = {
    (Setting(342, 2, 2, 256), 1.0): 0.9568,
    (Setting(72, 1, 8, 256), 0.45): 149.8,
    (Setting(72, 1, 8, 256), 1.0): 0.6203,
}
"""Settings and loads (1: saturation) at which the two differ by more than they may, because in
BookSim flits of several packets take turns at the crossbar. They are shown, and what is judged is
this: BookSim's accepted load or latency when its switch is held for a packet
(`hold_switch_for_packet = 1`), as ours is."""


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
        machine_of(setting.nodes, (1, 10, 100)), traffic, "minimal",
        packet_bytes=size, flit_bytes=FLIT,
        terminal_buffer=buffer, local_buffer=buffer, global_buffer=buffer,
        delay_ps=2 * CYCLE // steps, credit_delay_ps=CYCLE * (3 + steps) // 2, **inside,
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
            judged = load == 1 or load <= JUDGED * full
            held = HELD.get((setting, load))
            if held is not None and not near:
                rows.append(Row(what, *numbers, f"{tolerance}: not met", None, unit))
                mine = numbers[0]
                near = abs(mine - held) <= FULL if load == 1 else abs(mine / held - 1) <= NEAR
                what, numbers = f"{what}; its switch held for a packet", (mine, held)
            rows.append(Row(what, *numbers, tolerance, near if judged else None, unit))
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
