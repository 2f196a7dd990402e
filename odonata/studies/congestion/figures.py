"""The figures of the study, from what its store has; those that it has nothing for are left out.

They have the numbers of the thesis's and show what those do. Run times of an application are
divided by its median in setting I, except where a canary's are divided by those without congestors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from odonata.experiment.profiles import profile
from odonata.figures.style import (
    BLUE,
    DASHES,
    GREEN,
    GREY,
    LIGHT_TO_DARK,
    ORANGE,
    PURPLE,
    dress_small,
    panels_of,
)
from odonata.studies.congestion.cases import BUNDLED, REAL
from odonata.studies.congestion.claims import (
    Floats,
    Measure,
    Measured,
    correlation,
    impacts,
    of_setting,
)
from odonata.studies.congestion.gpcnet import CANARIES
from odonata.studies.congestion.simulation import ALONE_ON, NODES, SETTINGS, CongestionOutcome

Runs = Mapping[str, Sequence[CongestionOutcome]]
"""The runs of an application by setting; a setting without any is not there."""

NEAR = 1.5
"""Applications that never take more than so many times as long as alone have a panel of their own,
since their boxes would be lines beside those of others."""
WIDE_SPAN = 8.0
"""An axis is logarithmic where the largest value is more than so many times the smallest."""
MOST_COLUMNS = 4
STEPS = (1, 2, 5, 10)
"""The distance between two ticks of an axis is one of these numbers times a power of ten."""
DOT = 5.0
SETTING_LOOKS = {
    "I": (f"I: on {NODES} nodes in a row, alone", BLUE, "x"),
    "II": (f"II: on every other of {2 * NODES} nodes, alone", GREEN, "x"),
    "III": (f"III: as I, and GPCNeT on {NODES} other nodes", PURPLE, "+"),
    "IV": ("IV: as II, and GPCNeT on the nodes between", ORANGE, "+"),
}
"""In words, with colour and mark. I and III, which may lie on one another, differ in their mark."""
SIZE_LOOKS = {
    nodes: (LIGHT_TO_DARK(shade), mark)
    for nodes, shade, mark in zip(ALONE_ON, np.linspace(0.2, 1, len(ALONE_ON)), "osD^vP",
                                  strict=True)
}  # fmt: skip
PER_SECOND: dict[str, Measure] = {
    "network-tile stalls per second and router": lambda it: it.ntile_stalls_per_s,
    "processor-tile stalls per second and router": lambda it: it.ptile_stalls_per_s,
    "processor-tile flits per second and node": lambda it: it.ptile_flits_per_s,
}
RATIO = "network-tile stall-to-flit ratio"
RUN_TIME = "run time (median in I = 1)"


def _runs(m: Measured, profiles: str = BUNDLED) -> dict[str, Runs]:
    """Returns the runs of all applications that have some in setting I."""
    found = {name: {setting: runs for setting in SETTINGS
                    if (runs := of_setting(m, name, setting, profiles))}
             for name in m.asked.applications}  # fmt: skip
    return {name: runs for name, runs in found.items() if "I" in runs}


def _unit(runs: Runs) -> float:
    return float(np.median([it.run_time_s for it in runs["I"]]))


# -- figure 3.17: run time by setting


def figure_3_17(m: Measured, profiles: str = BUNDLED) -> Figure | None:
    """Draw run times by application and setting as boxes, with whiskers to the shortest and the
    longest; applications that reach further than others in a second panel."""
    found = {name: {setting: np.array([it.run_time_s for it in some]) / _unit(runs) for setting,
                    some in runs.items()} for name, runs in _runs(m, profiles).items()}  # fmt: skip
    if not found:
        return None
    near = [name for name in found if max(map(np.max, found[name].values())) <= NEAR]
    far = [name for name in found if name not in near]
    groups = {words: names for words, names in (
        (f"(a) up to {NEAR:g}", near), (f"(b) above {NEAR:g}", far)) if names}  # fmt: skip
    panel = (1.05 * len(found) / len(groups), 3.1)
    figure, panels = _canvas(1, len(groups), panel, (0.5, 0), below=0.3,
                             ratios=tuple(map(len, groups.values())))  # fmt: skip
    for axes, (words, names) in zip(panels[0], groups.items(), strict=True):
        for place, name in enumerate(names):
            _boxes(axes, found[name], place)
        dress_small(axes)
        _times_axis(axes, [value for name in names for some in found[name].values()
                           for value in some.tolist()])  # fmt: skip
        axes.set_xticks(range(len(names)), names)
        axes.set_xlim(-0.5, len(names) - 0.5)
        axes.tick_params(axis="x", length=0, labelsize=9)
        axes.grid(axis="x", visible=False)
        axes.set_title(words, loc="left")
    panels[0, 0].set_ylabel(RUN_TIME)
    _legend(figure, [Patch(facecolor=colour, alpha=0.6, label=words)
                     for words, colour, _ in SETTING_LOOKS.values()])  # fmt: skip
    return figure


def _boxes(axes: Axes, values: Mapping[str, Floats], place: int) -> None:
    for number, (setting, (_, colour, _)) in enumerate(SETTING_LOOKS.items()):
        if setting not in values:
            continue
        line = {"color": colour, "lw": 1.1, "solid_capstyle": "butt"}
        axes.boxplot([values[setting]], positions=[place + 0.2 * (number - 1.5)], widths=0.15,
                     capwidths=0.09, whis=(0, 100), patch_artist=True, manage_ticks=False,
                     boxprops={"facecolor": (colour, 0.35), "edgecolor": colour, "lw": 0.9},
                     medianprops=line | {"lw": 2.4}, whiskerprops=line, capprops=line)  # fmt: skip


# -- figures 3.18 and 3.19: run time over counters


def figure_3_18(m: Measured) -> Figure | None:
    """Draw run time over the stall-to-flit ratio of network tiles, a panel per application."""
    found = _runs(m)
    if not found:
        return None
    columns = min(MOST_COLUMNS, len(found))
    rows = -(-len(found) // columns)
    figure, panels = _canvas(rows, columns, (2.1, 1.75), (0.42, 0.5), below=0.5)
    for number, (axes, (name, runs)) in enumerate(zip(panels.flat, found.items(), strict=False)):
        _scatter(axes, runs, lambda it: it.stall_to_flit)
        axes.set_title(name, loc="left", fontweight="bold")
        if number + columns >= len(found):
            axes.set_xlabel(RATIO, fontsize=8.5)
        if number % columns == 0:
            axes.set_ylabel(RUN_TIME, fontsize=8.5)
    for axes in panels.flat[len(found) :]:
        axes.set_visible(False)
    _legend(figure, _scatter_keys(), 3)
    return figure


def figure_3_19(m: Measured) -> Figure | None:
    """Draw run time over what tiles count per second: a row per counter, and a column per
    application that suffers from congestion."""
    found = {name: runs for name, runs in _runs(m).items() if profile(name).sensitive}
    if not found:
        return None
    figure, panels = _canvas(len(PER_SECOND), len(found), (1.45, 1.45), (0.36, 0.62), below=0.52)
    for row, (words, of) in zip(panels, PER_SECOND.items(), strict=True):
        for axes, runs in zip(row, found.values(), strict=True):
            _scatter(axes, runs, of)
            axes.xaxis.set_major_formatter(EngFormatter(sep=" "))
        row[0].set_ylabel(RUN_TIME, fontsize=8.5)
        first, last = row[0].get_position(), row[-1].get_position()
        figure.text((first.x0 + last.x1) / 2, first.y0 - 0.32 / figure.get_figheight(), words,
                    ha="center", va="top")  # fmt: skip
    for axes, name in zip(panels[0], found, strict=True):
        axes.set_title(name, loc="left", fontweight="bold")
    _legend(figure, _scatter_keys(), 3)
    return figure


def _scatter(axes: Axes, runs: Runs, of: Measure) -> None:
    """Draw a point per run, a cross per setting (mean and standard errors), a line that fits all
    runs, and how they are correlated."""
    unit, known = _unit(runs), []
    for setting, (_, colour, mark) in SETTING_LOOKS.items():
        some = [it for it in runs.get(setting, ()) if np.isfinite(of(it))]
        if not some:
            continue
        x, y = np.array([(of(it), it.run_time_s / unit) for it in some]).T
        axes.plot(x, y, ".", color=colour, ms=DOT, mew=0, alpha=0.55, zorder=2)
        axes.errorbar(x.mean(), y.mean(), standard_error(y), standard_error(x), fmt=mark, ms=7.5,
                      mew=1.7, color=colour, elinewidth=1.1, capsize=2, zorder=4)  # fmt: skip
        known += some
    r = correlation(known, of)
    if not np.isnan(r):
        x, y = np.array([(of(it), it.run_time_s / unit) for it in known]).T
        ends = np.array([x.min(), x.max()])
        axes.plot(ends, y.mean() + r * y.std() / x.std() * (ends - x.mean()), color=GREY, lw=1,
                  ls=DASHES, zorder=3)  # fmt: skip
        at = 0.03 if r > 0 else 0.97
        axes.text(at, 0.97, f"r = {r:.2f}", transform=axes.transAxes, va="top", fontsize=8.5,
                  ha="left" if r > 0 else "right", zorder=5)  # fmt: skip
    axes.margins(0.1, 0.16)
    axes.xaxis.set_major_locator(MaxNLocator(3, steps=STEPS))
    axes.yaxis.set_major_locator(MaxNLocator(4, steps=STEPS))
    dress_small(axes)


def standard_error(values: Floats) -> float:
    """Returns the standard error of the mean, 0 of a single value.

    >>> standard_error(np.array([1.0, 3.0]))
    1.0
    """
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


# -- figure 3.20: GPCNeT alone


def figure_3_20(m: Measured) -> Figure | None:
    """Draw the impact on canaries over the stall-to-flit ratio, a point per pair of runs."""
    found = {canary: pairs for canary in CANARIES if (pairs := impacts(m, canary))}
    if not found:
        return None
    figure, panels = _canvas(1, len(found), (2.7, 2.6), (0.5, 0), below=0.5)
    for axes, (canary, pairs) in zip(panels[0], found.items(), strict=True):
        for nodes, (colour, mark) in SIZE_LOOKS.items():
            some = [(ratio, impact) for size, impact, ratio in pairs if size == nodes]
            if some:
                axes.plot(*np.array(some).T, mark, color=colour, ms=6.5, mec="white", mew=0.5)
        dress_small(axes)
        _times_axis(axes, [impact for _, impact, _ in pairs])
        axes.set_title(f"{canary} canary", loc="left", fontweight="bold")
        axes.set_xlabel(RATIO)
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=STEPS))
    panels[0, 0].set_ylabel("impact (times as long with congestors)")
    keys = [Line2D([], [], color=colour, marker=mark, ls="", ms=6.5, label=f"{nodes} nodes")
            for nodes, (colour, mark) in SIZE_LOOKS.items()]  # fmt: skip
    _legend(figure, keys, 3)
    return figure


# -- how they look


def _canvas(
    rows: int, columns: int, panel: tuple[float, float], gap: tuple[float, float], below: float,
    ratios: tuple[float, ...] | None = None,
) -> tuple[Figure, Any]:  # fmt: skip
    """Returns a figure and its panels, each of this width and height, in inches, with gaps between
    them and room for a legend above; wider where the legend needs it."""
    left, right, above = 0.62, 0.12, 0.72
    wide = max(8.4, left + right + columns * panel[0] + (columns - 1) * gap[0])
    high = above + below + rows * panel[1] + (rows - 1) * gap[1]
    inside = (wide - left - right - (columns - 1) * gap[0]) / columns
    return panels_of(wide, high, rows, columns, width_ratios=ratios, left=left / wide,
                     right=1 - right / wide, bottom=below / high, top=1 - above / high,
                     wspace=gap[0] / inside, hspace=gap[1] / panel[1])  # fmt: skip


def _times_axis(axes: Axes, values: Sequence[float]) -> None:
    """Make y the axis of values that say how many times as long something takes."""
    axes.axhline(1, color=GREY, lw=0.8, zorder=1)
    axes.yaxis.set_major_locator(MaxNLocator(8, steps=STEPS))
    if max(values) > WIDE_SPAN * min(values):
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(10, (1, 2, 5)))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _legend(figure: Figure, keys: Sequence[Any], columns: int = 2) -> None:
    figure.legend(handles=keys, ncols=columns, loc="upper center", bbox_to_anchor=(0.5, 1.0))


def _scatter_keys() -> list[Line2D]:
    crosses = [Line2D([], [], color=colour, marker=mark, ls="", ms=7.5, mew=1.7, label=words)
               for words, colour, mark in SETTING_LOOKS.values()]  # fmt: skip
    dot = Line2D([], [], color=GREY, marker=".", ls="", ms=DOT, mew=0, label="one run")
    fit = Line2D([], [], color=GREY, lw=1, ls=DASHES, label="linear fit of all runs")
    return [*crosses, dot, fit]


FIGURES: dict[str, Callable[[Measured], Figure | None]] = {
    "3.17": figure_3_17,
    "3.18": figure_3_18,
    "3.19": figure_3_19,
    "3.20": figure_3_20,
    "real": partial(figure_3_17, profiles=REAL),
}
