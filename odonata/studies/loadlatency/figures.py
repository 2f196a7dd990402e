"""Latency and throughput over load, as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odonata.figures.style import check_name
from odonata.studies.loadlatency.cases import Curve, Sweep, curves, title, zero_load_ps
from odonata.studies.loadlatency.simulation import Point

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HIGHEST = 6
"""Times the lowest latency: the end of the axis, beyond which a network is saturated."""
COLOURS = ("#30638e", "#d1495b", "#e0a030", "#3a9d5d", "#7b4fa3", "#5c6b73", "#c2529b", "#00798c")
MARKS = "osD^vPX*"
INK, GREY, FAINT = "#22303c", "#7d8b97", "#c9d1d8"


def draw(asked: Sweep, outcomes: Mapping[str, Point], directory: Path, pdf: bool) -> list[Path]:
    """Draw the curves, if there are points, into a directory that is made if it is needed. Returns
    where they are."""
    found = curves(asked, outcomes)
    if not found:
        return []
    directory.mkdir(parents=True, exist_ok=True)
    paths = [directory / f"curves.{kind}" for kind in (("png", "pdf") if pdf else ("png",))]
    for path in paths:
        draw_curves(asked, found, path)
    return paths


def draw_curves(asked: Sweep, found: Sequence[Curve], path: Path) -> None:
    """Draw latency over load on the left, throughput on the right."""
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
    """Lines go out of the picture where a network saturates; the points there are at its edge."""
    from matplotlib.ticker import StrMethodFormatter

    zero = zero_load_ps(asked.network)
    if zero is not None:
        axes.axhline(zero / 1e3, color=FAINT, lw=1.2, zorder=1)
        axes.annotate("empty network, minimal paths", (1, zero / 1e3), (-4, -4), color=GREY,
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
        for i, curve in enumerate(found):
            _beyond(axes, curve, HIGHEST * min(lowest), i)
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    _dress(axes, reach, "latency (ns)")


def _throughputs(axes: Any, found: Sequence[Curve], reach: float) -> None:
    axes.plot([0, 1], [0, 1], color=FAINT, lw=1.2, zorder=1)
    axes.annotate("all that is offered", (reach * 0.4, reach * 0.4), (-8, 6), color=GREY,
                  textcoords="offset points", ha="right", fontsize=9)  # fmt: skip
    for i, curve in enumerate(found):
        loads = [point.load for point in curve.points]
        accepted = [point.performance.throughput for point in curve.points]
        _line(axes, loads, accepted, curve.points, i)
    axes.set_ylim(0, reach)
    _dress(axes, reach, "throughput (parts of a node's link)")


def _line(
    axes: Any, x: Sequence[float], y: Sequence[float], points: Sequence[Point], which: int
) -> None:
    """Draw a curve with a mark at every point, hollow where it is not steady."""
    colour = COLOURS[which % len(COLOURS)]
    axes.plot(x, y, color=colour, lw=1.9, zorder=3)
    faces = ["white" if not point.steady else colour for point in points]
    axes.scatter(x, y, s=30, marker=MARKS[which % len(MARKS)], facecolors=faces, edgecolors=colour,
                 linewidths=1.4, zorder=4)  # fmt: skip


def _beyond(axes: Any, curve: Curve, top: float, which: int) -> None:
    """Mark the points whose latency is above the axis, on its upper edge and with an arrow."""
    colour = COLOURS[which % len(COLOURS)]
    for point in curve.points:
        if point.performance.measured_packets and point.performance.mean_latency_ns > top:
            axes.annotate("", (point.load, top), (0, 15), textcoords="offset points", zorder=3,
                          annotation_clip=False,
                          arrowprops={"arrowstyle": "<-", "color": colour, "lw": 1.2})  # fmt: skip
            axes.scatter([point.load], [top], s=30, marker=MARKS[which % len(MARKS)], zorder=4,
                         facecolors=colour if point.steady else "white", edgecolors=colour,
                         linewidths=1.4, clip_on=False)  # fmt: skip


def _legend(figure: Figure, found: Sequence[Curve]) -> None:
    from matplotlib.lines import Line2D

    keys = []
    for i, curve in enumerate(found):
        top = "not saturated" if curve.throughput is not None else "not settled"
        if curve.saturated_at is not None:
            top = f"saturated: {curve.throughput:.3f}"
        keys.append(Line2D([], [], color=COLOURS[i % len(COLOURS)], marker=MARKS[i % len(MARKS)],
                           ms=6, lw=1.9, label=f"{curve.routing} ({top})"))  # fmt: skip
    style = [
        Line2D([], [], color=INK, lw=1.9, label="mean"),
        Line2D([], [], color=INK, lw=0.9, ls=(0, (4, 3)), label="99th percentile"),
        Line2D([], [], color=INK, marker="o", mfc="white", mew=1.4, ms=6, ls="",
               label="not of a steady state: latency of what arrived in time"),
        Line2D([], [], color=INK, marker="$\\uparrow$", ms=8, ls="", label="above the axis"),
    ]  # fmt: skip
    common: dict[str, Any] = {"loc": "lower center", "frameon": False, "columnspacing": 2.2}
    figure.legend(handles=keys, ncols=min(6, len(keys)), bbox_to_anchor=(0.5, 0.045), **common)
    figure.legend(handles=style, ncols=4, bbox_to_anchor=(0.5, 0.002), fontsize=9.5, **common)


def _reach(found: Sequence[Curve]) -> float:
    """Returns the end of the axis of loads: a tenth beyond the last."""
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
