"""The figures of the study, from what its store has; those that it has nothing for are left out.

Figure 3.24 shows what the thesis's does; those about sets, queues and old counters are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    MaxNLocator,
    NullLocator,
    PercentFormatter,
)

from odonata.figures.style import BLUE, DASHES, GREEN, GREY, ORANGE, PURPLE, dress_small, panels_of
from odonata.studies.nedd import cases, claims

RED = "#c0392b"
COLOURS = {"low-traffic-router": BLUE, "fewer-router": GREEN, "random": ORANGE,
           "level-spread": PURPLE, "nedd": BLUE, "simple": GREY}  # fmt: skip
MOST_COLUMNS = 3


# -- figure 3.24: an application beside a congestor


def figure_3_24(m: claims.Measured) -> Figure | None:
    """Draw run times by allocation, a panel per application: from the shortest to the longest, a
    box from the first to the third quartile, with median and mean."""
    found = {name: times for name in m.asked.applications
             if (times := {by: [*some.values()] for by in cases.RIVALS
                           if (some := claims.alone(m, name, by))})}  # fmt: skip
    if not found:
        return None
    columns = min(MOST_COLUMNS, len(found))
    rows = -(-len(found) // columns)
    wide, high = 0.9 + 3.2 * columns, 1.1 + 2.6 * rows
    figure, panels = panels_of(wide, high, rows, columns, left=0.85 / wide, right=1 - 0.1 / wide,
                               bottom=1.05 / high, top=1 - 0.55 / high, wspace=0.2,
                               hspace=0.25)  # fmt: skip
    for number, (axes, (name, times)) in enumerate(zip(panels.flat, found.items(), strict=False)):
        _boxes(axes, [[value * 1e3 for value in some] for some in times.values()])
        dress_small(axes)
        last = number + columns >= len(found)
        axes.set_xticks(range(len(times)), [*times] if last else [""] * len(times), rotation=35,
                        ha="right", fontsize=8.5)  # fmt: skip
        axes.grid(axis="x", visible=False)
        axes.set_ylim(0)
        axes.set_title(name, loc="left", fontweight="bold")
        if number % columns == 0:
            axes.set_ylabel("run time (ms)")
    for axes in panels.flat[len(found) :]:
        axes.set_visible(False)
    _legend(figure, [Line2D([], [], color=GREY, lw=1.1, label="shortest to longest"),
                     Patch(facecolor=BLUE, alpha=0.35, label="first to third quartile"),
                     Line2D([], [], color="black", ls=DASHES, lw=1.4, label="median"),
                     Line2D([], [], color=RED, marker="o", ls="", ms=4.5, label="mean")], 4
    )  # fmt: skip
    return figure


def _boxes(axes: Axes, values: Sequence[Sequence[float]]) -> None:
    line = {"color": GREY, "lw": 1.1}
    axes.boxplot([*values], positions=range(len(values)), widths=0.55, whis=(0, 100),
                 patch_artist=True, manage_ticks=False, showmeans=True, whiskerprops=line,
                 capprops=line, boxprops={"facecolor": (BLUE, 0.35), "edgecolor": "none"},
                 medianprops={"color": "black", "ls": DASHES, "lw": 1.4},
                 meanprops={"marker": "o", "markerfacecolor": RED, "markeredgecolor": RED,
                            "markersize": 4.5})  # fmt: skip


# -- in how many sets idle nodes are


def figure_sets(m: claims.Measured) -> Figure | None:
    """Draw mean run times over the number of sets, and how much fewer-router is behind."""
    found = {by: means for by in cases.SETS_BY
             if (means := {sets: claims.mean(some) * 1e3 for sets in cases.SETS
                           if (some := claims.alone(m, cases.SETS_OF, by, sets))})}  # fmt: skip
    if len(found) < len(cases.SETS_BY) or any(len(means) < 2 for means in found.values()):
        return None
    figure, panels = panels_of(8.4, 3.3, 1, 2, left=0.08, right=0.98, bottom=0.17, top=0.82,
                               wspace=0.25)  # fmt: skip
    times, behind = panels[0]
    for by, means in found.items():
        times.plot(means.keys(), means.values(), "o-", color=COLOURS[by], label=by)
    times.set_ylabel(f"mean run time of {cases.SETS_OF} (ms)")
    times.set_ylim(0)
    low, fewer = ({sets: claims.alone(m, cases.SETS_OF, by, sets) for sets in found[by]}
                  for by in ("low-traffic-router", "fewer-router"))  # fmt: skip
    parts = np.array([claims.change(fewer[sets], low[sets]) for sets in fewer])
    behind.errorbar([*fewer], parts[:, 0], parts[:, 1], fmt="o-", color=GREEN, capsize=3)
    behind.axhline(0, color=GREY, lw=0.8)
    behind.yaxis.set_major_formatter(PercentFormatter(1, 0))
    behind.set_ylabel("fewer-router: longer than\nlow-traffic-router by")
    for axes in panels[0]:
        dress_small(axes)
        axes.set_xticks(cases.SETS)
        axes.set_xlabel("contiguous sets of the 200 idle nodes")
    _legend(figure, times.get_legend_handles_labels()[0], 3)
    return figure


# -- a queue


def figure_queue(m: claims.Measured) -> Figure | None:
    """Draw by how much jobs take longer under each allocation than under nedd, with confidence
    intervals: from submission to end of sensitive jobs, and in run time of the others."""
    rows: list[tuple[str, str, str]] = [(by, by, "fcfs") for by in cases.QUEUED if by != "nedd"]
    rows.append((f"nedd, {cases.FIRST}", "nedd", cases.FIRST))
    shown = {}
    for words, by, order in rows:
        parts = [claims.change(claims.queued(m, by, of, order), claims.queued(m, "nedd", of))
                 for of in (claims.response_s(True), claims.running_s(False))]  # fmt: skip
        if not np.isnan(parts[0][0]):
            shown[words] = parts
    if not shown:
        return None
    figure, panels = panels_of(9.2, 1.3 + 0.32 * len(shown), 1, 2, left=0.19, right=0.98,
                               bottom=0.2, top=0.88, wspace=0.08)  # fmt: skip
    titles = ("sensitive jobs: submission to end", "insensitive jobs: run time")
    for which, (axes, title) in enumerate(zip(panels[0], titles, strict=True)):
        for place, parts in enumerate(shown.values()):
            middle, half = parts[which]
            axes.errorbar(middle, place, xerr=None if np.isnan(half) else half, fmt="o",
                          color=(BLUE, ORANGE)[which], capsize=3)  # fmt: skip
        axes.axvline(0, color=GREY, lw=0.9)
        dress_small(axes)
        axes.set_ylim(len(shown) - 0.5, -0.5)
        axes.set_yticks(range(len(shown)), [*shown] if not which else [""] * len(shown))
        axes.xaxis.set_major_formatter(PercentFormatter(1, None))
        axes.xaxis.set_major_locator(MaxNLocator(6))
        axes.set_xlabel("longer than under nedd")
        axes.set_title(title, loc="left", fontweight="bold")
    return figure


# -- old counters


def figure_age(m: claims.Measured) -> Figure | None:
    """Draw how many times as long as without congestors applications take under nedd, over the age
    of counters, with the allocations that read none as lines; bars are confidence intervals."""
    points = {delay: claims.mean_of(some) for delay in cases.DELAYS_US
              if (some := claims.slowdowns(m, "nedd", delay))}  # fmt: skip
    if len(points) < 2:
        return None
    figure, panels = panels_of(6.6, 3.8, left=0.12, right=0.79, bottom=0.16, top=0.95)
    axes = panels[0, 0]
    x = [(delay + cases.OFTEN_US / 2) / cases.STAY_US for delay in points]
    middle, half = np.array([*points.values()]).T
    axes.errorbar(x, middle, half, fmt="o-", color=BLUE, capsize=3, zorder=3)
    axes.annotate("nedd", (x[0], middle[0]), (6, -4), textcoords="offset points", color=BLUE,
                  va="top", fontsize=9)  # fmt: skip
    for by in cases.BLIND:
        if some := claims.slowdowns(m, by, cases.DELAYS_US[0]):
            level, width = claims.mean_of(some)
            axes.axhline(level, color=COLOURS[by], lw=1.2, ls=DASHES)
            axes.text(1.01, level, by, color=COLOURS[by], va="center", fontsize=9,
                      transform=axes.get_yaxis_transform())  # fmt: skip
            if width > 0:
                axes.axhspan(level - width, level + width, color=COLOURS[by], alpha=0.08, lw=0)
    dress_small(axes)
    axes.set_ylim(min(1.0, axes.get_ylim()[0]))
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator([0.05, 0.1, 0.25, 0.5, 1, 2, 4]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel("mean age of counters (times that a congestor stays)")
    axes.set_ylabel("run time (without congestors = 1)")
    return figure


def _legend(figure: Figure, keys: Sequence[Any], columns: int) -> None:
    figure.legend(handles=keys, ncols=columns, loc="upper center", bbox_to_anchor=(0.5, 1.0))


FIGURES: Mapping[str, Callable[[claims.Measured], Figure | None]] = {
    "3.24": figure_3_24,
    "sets": figure_sets,
    "queue": figure_queue,
    "age": figure_age,
}
