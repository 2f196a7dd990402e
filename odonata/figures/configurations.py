"""The figures of configurations within power bounds, as in figures 3.4, 3.5 and 4.1 of the thesis
that they come from: what the best is worth, how the canonical ones compare, and what more nodes do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from odonata.experiment.units import show_power
from odonata.figures.style import (
    BLUE,
    FAINT,
    GREEN,
    GREY,
    INK,
    LIGHT_TO_DARK,
    ORANGE,
    PURPLE,
    brief,
    canvas,
    dress,
    legend_above,
    save,
    style,
    thousands,
    top,
)
from odonata.provisioning.search import FORMS, Found, best_at_each_n
from odonata.provisioning.table import Table

COLOURS = dict(zip(FORMS, (ORANGE, "#f0b98a", GREEN, "#9fd3c0"), strict=True))
"""The colours of the canonical forms: packed and spread differ, and a low cap is paler."""
WIDEST = 60.0
"""Inches, however many applications there are."""
MOST_COLUMNS = 4


def draw(found: Sequence[Found], tables: Mapping[str, Table], directory: Path) -> list[Path]:
    """Draw all figures of what a search found, for each application within each bound, to a
    directory that is made if it is needed. Returns where they are."""
    directory.mkdir(parents=True, exist_ok=True)
    drawn = []
    with style():
        figures = {"speedup": speedups(found), "canonical": canonical(found)}
        for bound_w in _bounds(found):
            mine = [each for each in found if each.bound_w == bound_w]
            figures[f"nodes-{file_words(bound_w)}"] = over_nodes(mine, tables)
        for name, figure in figures.items():
            drawn.append(directory / f"{name}.png")
            save(figure, drawn[-1], "png")
    return drawn


def words(bound_w: float) -> str:
    """Returns a bound for people."""
    return "unlimited power" if math.isinf(bound_w) else show_power(bound_w)


def file_words(bound_w: float) -> str:
    """Returns a bound as a part of a file's name."""
    return "unlimited" if math.isinf(bound_w) else f"{bound_w:.15g}W"


def _bounds(found: Sequence[Found]) -> list[float]:
    return list(dict.fromkeys(each.bound_w for each in found))


def _applications(found: Sequence[Found]) -> list[str]:
    return list(dict.fromkeys(each.application for each in found))


def _figure(wide: float, high: float) -> Figure:
    figure = canvas((min(wide, WIDEST), high))
    return figure


def _bars(axes: Axes, values: Any, colours: Sequence[Any], labels: Sequence[str]) -> None:
    """Draw bars in groups, [series, group]; NaN is marked with a dash, since there is none."""
    series, groups = values.shape
    width = 0.8 / series
    for at in range(series):
        x = np.arange(groups) + (at - (series - 1) / 2) * width
        axes.bar(x, np.nan_to_num(values[at]), width * 0.94, color=colours[at], label=labels[at],
                 zorder=2)  # fmt: skip
        for place in x[np.isnan(values[at])]:
            axes.text(place, 0, "–", ha="center", va="bottom", fontsize=9, color=GREY)
    axes.set_xlim(-0.55, groups - 0.45)
    dress(axes)
    axes.grid(visible=False, axis="x")
    axes.tick_params("x", length=0)


# -- what the best is worth


def speedups(found: Sequence[Found]) -> Figure:
    """Returns the speed-up of the best configuration over packed-max, by application and bound."""
    applications, bounds = _applications(found), _bounds(found)
    values = np.full((len(bounds), len(applications)), np.nan)
    for each in found:
        value = each.speedup("best")
        place = bounds.index(each.bound_w), applications.index(each.application)
        values[place] = np.nan if value is None else value
    group = max(0.9, 0.17 * len(bounds))
    figure = _figure(max(6.4, 1.2 + group * len(applications)), 3.9)
    axes = figure.subplots()
    shades = LIGHT_TO_DARK(np.linspace(0.12, 0.92, len(bounds))) if len(bounds) > 1 else [BLUE]
    _bars(axes, values, list(shades), [words(bound_w) for bound_w in bounds])
    axes.axhline(1.0, color=INK, lw=0.9, zorder=3)
    axes.set_ylim(0, top(np.nan_to_num(values), least=1.2))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}×"))
    axes.set_xticks(range(len(applications)), [brief(name) for name in applications])
    axes.set_ylabel("speed-up of the best over packed-max")
    figure.legend(ncols=6, loc="outside upper right", handlelength=1.2, columnspacing=1.3)
    return figure


# -- the canonical configurations


def canonical(found: Sequence[Found]) -> Figure:
    """Returns the performance of the canonical configurations in parts of the best one's: a panel
    per bound, with the best configuration below each application."""
    bounds = _bounds(found)
    most = max(sum(each.bound_w == bound_w for each in found) for bound_w in bounds)
    figure = _figure(max(6.4, 1.0 + 1.15 * most), 0.4 + 2.35 * len(bounds))
    panels: Any = figure.subplots(len(bounds), 1, squeeze=False)[:, 0]
    for axes, bound_w in zip(panels, bounds, strict=True):
        mine = [each for each in found if each.bound_w == bound_w]
        parts = [[each.speedup(form, "best") for each in mine] for form in FORMS]
        values = np.array(parts, float)
        _bars(axes, values, list(COLOURS.values()), FORMS)
        axes.axhline(1.0, color=BLUE, lw=1.1, zorder=3)
        axes.set_ylim(0, 1.05)
        axes.yaxis.set_major_locator(MaxNLocator(5))
        axes.set_xticks(range(len(mine)), [_with_best(each) for each in mine], fontsize=8)
        axes.set_title(words(bound_w), loc="left", fontweight="bold")
    figure.supylabel("performance, in parts of the best", fontsize=9.5)
    legend_above(panels[0], ncols=4)
    return figure


def _with_best(each: Found) -> str:
    best = each.best
    below = "nothing fits" if best is None else f"{best.name}\n{seconds_text(best.seconds)}"
    return f"{brief(each.application)}\n{below}"


def seconds_text(seconds: float) -> str:
    """Returns a time with three figures or more."""
    return f"{seconds:,.0f} s" if seconds >= 100 else f"{seconds:.3g} s"


# -- more nodes


def over_nodes(found: Sequence[Found], tables: Mapping[str, Table]) -> Figure:
    """Returns the least time within a bound on each number of nodes: a panel per application, with
    the best, packed-max and the absolute worst case marked."""
    rows = -(-len(found) // MOST_COLUMNS)
    columns = -(-len(found) // rows)
    figure = _figure(max(4.6, 2.9 * columns), 0.7 + 2.35 * rows)
    panels: Any = figure.subplots(rows, columns, squeeze=False).ravel()
    for at, axes in enumerate(panels):
        if at >= len(found):
            axes.set_visible(False)
            continue
        _panel(axes, found[at], tables[found[at].application])
        if at % columns == 0:
            axes.set_ylabel("seconds")
        if at + columns >= len(found):
            axes.set_xlabel("nodes")
    figure.align_ylabels()
    marks = [Line2D([], [], label=label, ls="-" if name == "each" else "", lw=1.1,
                    color=FAINT, **_MARKS[name]) for name, label in _LABELS.items()]  # fmt: skip
    figure.legend(handles=marks, ncols=4 if columns > 2 else 2, loc="outside upper right")
    figure.suptitle(words(found[0].bound_w), x=0.01, ha="left", fontsize=9.5, fontweight="bold")
    return figure


_LABELS = {"each": "the best on so many nodes", "best": "the best of all",
           "packed-max": "packed-max", "worst-case": "absolute worst case"}  # fmt: skip
_MARKS: dict[str, dict[str, Any]] = {
    "each": {"marker": "o", "ms": 4.5, "mfc": "white", "mec": INK, "mew": 0.9},
    "best": {"marker": "o", "ms": 7.5, "mfc": BLUE, "mec": "white", "mew": 0.8},
    "packed-max": {"marker": "^", "ms": 9.5, "mfc": ORANGE, "mec": "white", "mew": 0.8},
    "worst-case": {"marker": "s", "ms": 11, "mfc": "none", "mec": PURPLE, "mew": 1.6},
}


def _panel(axes: Axes, each: Found, table: Table) -> None:
    line = best_at_each_n(table, each.bound_w)
    axes.plot([it.nodes for it in line], [it.seconds for it in line], color=FAINT, lw=1.1,
              zorder=2, **_MARKS["each"])  # fmt: skip
    heights = [it.seconds for it in line]
    for order, name in enumerate(("packed-max", "best", "worst-case")):
        point = each.points[name]
        if point is not None:
            axes.plot([point.nodes], [point.seconds], ls="", zorder=3 + order, clip_on=False,
                      **_MARKS[name])  # fmt: skip
            heights.append(point.seconds)
    axes.set_ylim(0, top(heights))
    span = int(table.nodes.max() - table.nodes.min()) if len(table) else 0
    margin = max(1.0, 0.06 * span)
    axes.set_xlim(float(table.nodes.min()) - margin, float(table.nodes.max()) + margin)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True, steps=[1, 2, 4, 8, 10]))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(thousands))
    dress(axes)
    axes.set_title(brief(each.application), loc="left")
    best = "nothing fits" if each.best is None else f"best {each.best.name}"
    axes.set_title(best, loc="right", fontsize=8.5, color=GREY)
