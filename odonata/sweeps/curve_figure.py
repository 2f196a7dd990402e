"""Load-latency curves as a picture for a paper: above, at which load each routing is saturated;
below, latency and what is accepted over the offered load; a column for each pattern of traffic.

The axis of latency ends at a few times that of an empty network. A curve ends at its saturation
load, where it goes out of the picture: beyond, latency has no mean. Points that are not of a steady
state are hollow. Lines that lie on each other are seen: each is narrower than the one below it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import StrMethodFormatter

from odonata.figures.style import (
    FAINT,
    INK,
    RUN_COLOURS,
    dress_small,
    panels_of,
    save,
    style,
)
from odonata.results.statistics import interval
from odonata.study.verdicts import limits
from odonata.sweeps.curves import Asked, Bundle, mean

HIGHEST = 6
"""Times the lowest latency: the end of the axis."""
MARKS = "osD^vPX*"
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.6)), (0, (1.2, 1.4)), (0, (6, 1.5, 1.2, 1.5)))
ONE, SEVERAL = 3.4, 2.3
"""The width of a picture of one pattern, that of a column of a paper, and of each of several; in
inches."""


def draw_curves(asked: Asked, found: Sequence[Bundle], path: Path) -> None:
    with style():
        save(picture(asked, found), path, path.suffix.lstrip(".").lower())


def picture(asked: Asked, found: Sequence[Bundle]) -> Figure:
    patterns = [*dict.fromkeys(bundle.pattern for bundle in found)]
    routings = [*dict.fromkeys(bundle.routing for bundle in found)]
    columns, strip = len(patterns), 0.13 * len(routings) + 0.1
    wide = ONE if columns == 1 else 0.4 + SEVERAL * columns
    lines = -(-len(routings) // (4 if columns == 1 else 8))  # of the legend
    above = 0.28 + 0.17 * lines
    high = 3.0 + strip + above
    figure, axes = panels_of(
        wide, high, 3, columns, height_ratios=(strip, 1.75, 0.85), left=0.52 / wide,
        right=1 - 0.1 / wide, bottom=0.4 / high, top=1 - above / high, hspace=0.12, wspace=0.1,
    )  # fmt: skip
    lowest = min((row.mean for bundle in found for row in
                  (mean(points, "mean_latency_ns") for points in bundle.rows)
                  if not math.isnan(row.mean)), default=1.0)  # fmt: skip
    reach = min(1.03, 1.08 * max(bundle.reached for bundle in found))
    for column, pattern in enumerate(patterns):
        own = [bundle for bundle in found if bundle.pattern == pattern]
        _strip(axes[0, column], asked, own, routings)
        _latencies(axes[1, column], own, routings, HIGHEST * lowest)
        _accepted(axes[2, column], own, routings, reach)
        axes[0, column].set_title(pattern, fontsize=8.5, pad=3)
        for panel in axes[:, column]:
            panel.set_xlim(0, reach)
            panel.tick_params(labelsize=7, length=2, pad=2)
            if column:
                panel.tick_params(labelleft=False)
        for panel in axes[:2, column]:
            panel.tick_params(labelbottom=False)
    axes[0, 0].set_ylabel("sat.\nload", fontsize=7.5, rotation=0, ha="right", va="center",
                          labelpad=3)  # fmt: skip
    axes[1, 0].set_ylabel("mean latency (ns)", fontsize=7.5, labelpad=2)
    axes[2, 0].set_ylabel("accepted load", fontsize=7.5, labelpad=2)
    figure.supxlabel("offered load (fraction of a node's link)", fontsize=7.5, y=0.02)
    figure.legend(handles=[_key(place, name) for place, name in enumerate(routings)],
                  loc="upper center", ncols=-(-len(routings) // lines), frameon=False, fontsize=7.5,
                  handlelength=2.6, columnspacing=1.4, borderaxespad=0.2)  # fmt: skip
    return figure


def _look(place: int) -> dict[str, Any]:
    """Returns colour, dashes, width and mark of a routing, by its place."""
    return {"color": RUN_COLOURS[place % len(RUN_COLOURS)], "ls": DASHES[place % len(DASHES)],
            "lw": max(0.8, 2.4 - 0.8 * place), "marker": MARKS[place % len(MARKS)],
            "ms": max(2.2, 6.2 - 1.9 * place), "mew": 0.8}  # fmt: skip


def _key(place: int, name: str) -> Line2D:
    return Line2D([], [], label=name, **_look(place))


def _strip(axes: Axes, asked: Asked, found: Sequence[Bundle], routings: Sequence[str]) -> None:
    """Draw the saturation load of each routing with its interval, and that of theory."""
    for bundle in found:
        place, made = routings.index(bundle.routing), bundle.saturation_load
        look = _look(place) | {"ls": "", "clip_on": False, "ms": 3.8}
        bound = asked.limit(bundle.pattern, bundle.routing)
        if bound is not None and bound.exact:
            axes.plot([bound.load], [place], marker="|", ms=8, mew=1.1, color=INK, ls="", zorder=2)
        if made.of:
            low, high = limits(made)
            axes.plot([low, high], [place, place], color=look["color"], lw=1.4, zorder=3)
            axes.plot([made.mean], [place], zorder=4, **look)
        else:
            axes.plot([bundle.reached], [place], **look | {"marker": ">", "mfc": "white"})
    axes.set_ylim(len(routings) - 0.4, -0.6)
    axes.set_yticks([])
    dress_small(axes)
    axes.spines["left"].set_visible(False)


def _latencies(
    axes: Axes, found: Sequence[Bundle], routings: Sequence[str], highest: float
) -> None:
    for bundle in found:
        look = _look(routings.index(bundle.routing))
        steady = [points for points in bundle.rows if all(at.steady for at in points)]
        others = [points for points in bundle.rows if not all(at.steady for at in points)]
        x = [points[0].load for points in steady]
        made = [mean(points, "mean_latency_ns") for points in steady]
        last = [max((at for at in (*curve.points, *curve.searched) if at.steady), default=None)
                for curve in bundle.curves]  # fmt: skip
        if bundle.saturation_load.of and all(last):
            x.append(float(interval([at.load for at in last if at]).mean))
            made.append(interval([at.figure("mean_latency_ns") for at in last if at]))
        order = sorted(range(len(x)), key=x.__getitem__)
        x, made = [x[n] for n in order], [made[n] for n in order]
        y = [it.mean for it in made]
        below, top = zip(*[_reach(it) for it in made], strict=True) if made else ((), ())
        axes.errorbar(x, y, (below, top), capsize=1.5, elinewidth=0.7, zorder=3, **look)
        if bundle.saturation_load.of and x:
            end = max(bundle.saturation_load.mean, x[-1])
            axes.plot([x[-1], end, end], [y[-1], max(y[-1], 0.7 * highest), 2 * highest],
                      **look | {"marker": "", "lw": 0.9}, zorder=2)  # fmt: skip
        axes.plot([points[0].load for points in others],
                  [mean(points, "mean_latency_ns").mean for points in others], zorder=4,
                  **look | {"ls": "", "mfc": "white"})  # fmt: skip
    axes.set_ylim(0, highest)
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    dress_small(axes)


def _accepted(axes: Axes, found: Sequence[Bundle], routings: Sequence[str], reach: float) -> None:
    axes.plot([0, reach], [0, reach], color=FAINT, lw=0.8, zorder=1)
    for bundle in found:
        look, rows = _look(routings.index(bundle.routing)), [*bundle.rows]
        x = [points[0].load for points in rows]
        made = [mean(points, "throughput") for points in rows]
        below, top = zip(*[_reach(it) for it in made], strict=True) if made else ((), ())
        axes.errorbar(x, [it.mean for it in made], (below, top), capsize=1.5, elinewidth=0.7,
                      zorder=3, **look | {"marker": ""})  # fmt: skip
        for hollow in (False, True):
            some = [(at, it.mean) for at, it, points in zip(x, made, rows, strict=True)
                    if hollow != all(point.settled for point in points)]  # fmt: skip
            if some:
                axes.plot(*zip(*some, strict=True), zorder=4,
                          **look | {"ls": "", **({"mfc": "white"} if hollow else {})})  # fmt: skip
    axes.set_ylim(0, reach)
    dress_small(axes)


def _reach(made: Any) -> tuple[float, float]:
    """Returns how far an interval reaches below and above its mean."""
    low, high = limits(made)
    return made.mean - low, high - made.mean
