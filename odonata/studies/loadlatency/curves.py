"""Load–latency curves as a table, as JSON and as a picture."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odonata.experiment.units import show_time
from odonata.studies.loadlatency.sweep import Curve, Point, Sweep, curves, zero_load_ps
from pdes.errors import Refused
from pdes.transport import world

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Group

LATE = 0.001
"""Of the measured packets: where more are under way at the end, latencies are too low."""
HIGHEST = 6
"""Times the lowest latency: beyond that a network is saturated, and what it is matters no more."""
COLOURS = ("#30638e", "#d1495b", "#e0a030", "#3a9d5d", "#7b4fa3", "#5c6b73", "#c2529b", "#00798c")
MARKS = "osD^vPX*"
INK, GREY, FAINT = "#22303c", "#7d8b97", "#c9d1d8"


def report(asked: Sweep, jobs: int, plot: Path | None, as_json: bool) -> None:
    """What the command does; of several ranks one speaks."""
    if plot is not None:
        check_name(plot)  # before the work, not after it
    found = curves(asked, jobs)
    if world().rank > 0:
        return
    if plot is not None:
        draw(asked, found, plot)
    if as_json:
        print(to_json(asked, found))
    else:
        from rich.console import Console

        Console(highlight=False).print(table(asked, found))


def to_json(asked: Sweep, found: Sequence[Curve]) -> str:
    """The network as it was at every point, the curves, and their points with all they have."""
    network = asked.network
    common = network.parameters()
    del common["routing"], common["traffic.load"]
    zero = zero_load_ps(network)
    return json.dumps(
        {
            "network": common,
            "drain_ps": asked.drain_ps,
            "zero_load_ns": None if zero is None else zero / 1e3,
            "curves": [
                {
                    "routing": curve.routing,
                    "saturation_throughput": curve.throughput,
                    "saturated_at": curve.saturated_at,
                }
                for curve in found
            ],
            "points": [
                {
                    "routing": point.routing,
                    "traffic": network.traffic[0].pattern,
                    "load": point.load,
                    "seed": network.seed,
                    **asdict(point.performance),
                    "events": point.events,
                    "digest": point.digest,
                }
                for curve in found
                for point in curve.points
            ],
        },
        indent=1,
    )


def table(asked: Sweep, found: Sequence[Curve]) -> Group:
    """Not wider than 80 columns. Hops are routers visited."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    rows = Table(box=None, pad_edge=False)
    for name in ("\nload", "taken\nin", "mean\nns", "median\nns", "99 %\nns", "\nhops",
                 "busiest\nglobal", "link\nlocal"):  # fmt: skip
        rows.add_column(name, justify="right", no_wrap=True)
    rows.add_column("", no_wrap=True)
    for curve in found:
        rows.add_row()
        rows.add_row(Text(curve.routing, "bold", justify="left"))
        for point in curve.points:
            rows.add_row(*_cells(curve, point))
    return Group(f"[bold]{title(asked)}[/bold]", "", rows, "", *_notes(asked, found))


def title(asked: Sweep) -> str:
    network = asked.network
    m, traffic = network.machine, network.traffic[0]
    size = f"packets of {min(network.packet_bytes, traffic.message_bytes)} B"
    if traffic.message_bytes > network.packet_bytes:
        size = f"messages of {traffic.message_bytes} B in {size}"
    return (
        f"{traffic.pattern} traffic, {size}, {m.n_nodes:,} nodes "
        f"(p={m.nodes} a={m.routers} h={m.global_links} g={m.groups})"
    )


def _cells(curve: Curve, point: Point) -> list[str]:
    p = point.performance
    mark = "*" if point.saturated or point.late > LATE else " "
    times = [
        f"{ns:,.0f}{mark}" for ns in (p.mean_latency_ns, p.median_latency_ns, p.p99_latency_ns)
    ]
    if not p.measured_packets:
        times = ["-", "-", "-"]
    busy = [f"{min(1.0, p.links[kind]['max_utilisation']):.0%}" if kind in p.links else "-"
            for kind in ("global", "local")]  # fmt: skip
    verdict = "saturated" if point.saturated else "steady"
    if not point.saturated and point.late > LATE:
        verdict = f"{point.late:.1%} late"
    if not p.measured_packets and not point.saturated:
        verdict = "too short"
    if curve.unsettled(point):
        verdict = "unsettled"
    return [f"{point.load:g}", f"{p.throughput:.3f}", *times, f"{p.mean_hops:.2f}", *busy, verdict]


def _notes(asked: Sweep, found: Sequence[Curve]) -> list[str]:
    traffic, zero = asked.network.traffic[0], zero_load_ps(asked.network)
    notes = [
        f"warm-up {show_time(traffic.warmup_ps)}, "
        f"measurement {show_time(traffic.measure_ps or 0)}, drain {show_time(asked.drain_ps)}"
    ]
    if zero is not None:
        notes.append(f"the straight way through an empty network: {zero / 1e3:.0f} ns on average")
    points = [point for curve in found for point in curve.points]
    if any(point.saturated or point.late > LATE for point in points):
        notes.append("* only of the measured packets that arrived in time")
    if any(curve.unsettled(point) for curve in found for point in curve.points):
        notes.append("unsettled: queues were still filling; a longer --warmup settles it")
    for curve in found:
        if curve.saturated_at is None:
            notes.append(f"{curve.routing}: not saturated; throughput {curve.throughput:.3f}")
        else:
            notes.append(f"{curve.routing}: saturated at a load of {curve.saturated_at:g}; "
                         f"saturation throughput {curve.throughput:.3f}")  # fmt: skip
    return notes


# -- the picture


def check_name(path: Path) -> None:
    """Refuse what cannot be drawn to."""
    from odonata.figures.machine import FORMATS

    if path.suffix.lstrip(".").lower() not in FORMATS:
        raise Refused(f"--plot {path}: the name must end in .{', .'.join(FORMATS)}")
    if not path.absolute().parent.is_dir():
        raise Refused(f"--plot {path}: there is no directory {path.parent}")


def draw(asked: Sweep, found: Sequence[Curve], path: Path) -> None:
    """Latency over load on the left, throughput on the right."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    check_name(path)
    with mpl.rc_context({"font.family": "DejaVu Sans", "font.size": 10.5, "svg.hashsalt": "odonata",
                         "axes.edgecolor": INK, "text.color": INK, "axes.labelcolor": INK,
                         "xtick.color": INK, "ytick.color": INK}):  # fmt: skip
        figure = Figure(figsize=(12.5, 5.9), facecolor="white")
        FigureCanvasAgg(figure)
        left, right = figure.subplots(1, 2)
        figure.subplots_adjust(left=0.065, right=0.985, top=0.845, bottom=0.2, wspace=0.18)
        figure.text(0.5, 0.965, "Latency and throughput over load", ha="center", va="top",
                    fontsize=15, fontweight="bold")  # fmt: skip
        figure.text(0.5, 0.905, title(asked), ha="center", va="top", fontsize=10.5)
        reach = _reach(found)
        _latencies(left, asked, found, reach)
        _throughputs(right, found, reach)
        _legend(figure, found)
        figure.savefig(path, dpi=150)


def _latencies(axes: Any, asked: Sweep, found: Sequence[Curve], reach: float) -> None:
    """Lines go out of the picture where a network saturates."""
    from matplotlib.ticker import StrMethodFormatter

    zero = zero_load_ps(asked.network)
    if zero is not None:
        axes.axhline(zero / 1e3, color=FAINT, lw=1.2, zorder=1)
        axes.annotate("empty network, straight", (1, zero / 1e3), (-4, -4), color=GREY,
                      xycoords=("axes fraction", "data"), textcoords="offset points",
                      ha="right", va="top", fontsize=9)  # fmt: skip
    lowest = []
    for i, curve in enumerate(found):
        points = [point for point in curve.points if point.performance.measured_packets]
        loads = [point.load for point in points]
        means = [point.performance.mean_latency_ns for point in points]
        tails = [point.performance.p99_latency_ns for point in points]
        colour = COLOURS[i % len(COLOURS)]
        axes.plot(loads, tails, color=colour, lw=0.9, ls=(0, (4, 3)), alpha=0.85, zorder=2)
        _line(axes, loads, means, points, i)
        lowest += means
    if lowest:
        axes.set_ylim(0, HIGHEST * min(lowest))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    _dress(axes, reach, "latency (ns)")


def _throughputs(axes: Any, found: Sequence[Curve], reach: float) -> None:
    axes.plot([0, 1], [0, 1], color=FAINT, lw=1.2, zorder=1)
    axes.annotate("all that is offered", (reach * 0.4, reach * 0.4), (-8, 6), color=GREY,
                  textcoords="offset points", ha="right", fontsize=9)  # fmt: skip
    for i, curve in enumerate(found):
        loads = [point.load for point in curve.points]
        taken = [point.performance.throughput for point in curve.points]
        _line(axes, loads, taken, curve.points, i)
    axes.set_ylim(0, reach)
    _dress(axes, reach, "throughput (parts of a node's link)")


def _line(
    axes: Any, x: Sequence[float], y: Sequence[float], points: Sequence[Point], which: int
) -> None:
    """With a mark at every point, hollow where it is saturated."""
    colour = COLOURS[which % len(COLOURS)]
    axes.plot(x, y, color=colour, lw=1.9, zorder=3)
    faces = ["white" if point.saturated else colour for point in points]
    axes.scatter(x, y, s=30, marker=MARKS[which % len(MARKS)], facecolors=faces, edgecolors=colour,
                 linewidths=1.4, zorder=4)  # fmt: skip


def _legend(figure: Figure, found: Sequence[Curve]) -> None:
    from matplotlib.lines import Line2D

    keys = []
    for i, curve in enumerate(found):
        top = f"saturated: {curve.throughput:.3f}"
        if curve.saturated_at is None:
            top = "not saturated"
        keys.append(Line2D([], [], color=COLOURS[i % len(COLOURS)], marker=MARKS[i % len(MARKS)],
                           ms=6, lw=1.9, label=f"{curve.routing} ({top})"))  # fmt: skip
    style = [
        Line2D([], [], color=INK, lw=1.9, label="mean"),
        Line2D([], [], color=INK, lw=0.9, ls=(0, (4, 3)), label="99th percentile"),
        Line2D([], [], color=INK, marker="o", mfc="white", mew=1.4, ms=6, ls="",
               label="saturated: latency of what arrived in time"),
    ]  # fmt: skip
    common: dict[str, Any] = {"loc": "lower center", "frameon": False, "columnspacing": 2.2}
    figure.legend(handles=keys, ncols=min(6, len(keys)), bbox_to_anchor=(0.5, 0.045), **common)
    figure.legend(handles=style, ncols=3, bbox_to_anchor=(0.5, 0.002), fontsize=9.5, **common)


def _reach(found: Sequence[Curve]) -> float:
    """The end of the axis of loads: a tenth beyond the last."""
    last = max(point.load for curve in found for point in curve.points)
    return min(1.02, last * 1.1)


def _dress(axes: Any, reach: float, label: str) -> None:
    axes.set_xlim(0, reach)
    axes.set_xlabel("offered load (parts of a node's link)")
    axes.set_ylabel(label)
    axes.grid(color="#e6eaee", lw=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
