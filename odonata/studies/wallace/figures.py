"""The figures of the study, after the paper's, of the first year; those that there is nothing for
are left out. Figures 1, 2 and 4 show the jobs of that year, the others what became of them.

A policy looks the same everywhere: the learner is red, the naive one blue, no control grey; the cap
is a dark line.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

from odonata.figures.style import BLUE, FAINT, GREY, INK, dress_small, panels_of
from odonata.studies.wallace import figures_of_jobs, simulation
from odonata.studies.wallace.cases import CAPS, MIDDLE, ORDERS
from odonata.studies.wallace.claims import LEARNED, LEARNED_DAY
from odonata.studies.wallace.found import (
    UTILISATION,
    WAIT,
    Floats,
    Measured,
    change,
    learning_rate,
    sets_known,
)

RED = "#c8321f"
LOOKS = {simulation.NAIVE: ("naive", BLUE), simulation.LEARNER: ("learner, window, knapsack", RED)}
TOP_MW = 4.4


# -- over the year


def figure_5(m: Measured) -> Figure | None:
    """Draw the learning rate, of jobs that start and of sets of jobs alike."""
    ran = {order: m.of(m.asked.part(order, simulation.LEARNER, MIDDLE)) for order in ORDERS}
    if not any(ran.values()):
        return None
    figure, ((axes,),) = panels_of(8, 3.4, left=0.08, right=0.98, top=0.94, bottom=0.15)
    for order, dashes in zip(ORDERS, ("-", (0, (4, 2))), strict=True):
        one = ran[order]
        if one is None:
            continue
        days = np.arange(1, len(one.known) + 1)
        axes.plot(days, learning_rate(one), color=RED, ls=dashes, lw=1.7,
                  label=f"jobs that have started, {order.upper()}")  # fmt: skip
        axes.plot(days, sets_known(one), color=GREY, ls=dashes, lw=1.2,
                  label=f"sets of jobs alike, {order.upper()}")  # fmt: skip
    axes.plot(LEARNED_DAY, LEARNED, "o", ms=7, mfc="none", mec=INK, mew=1.5, zorder=4)
    axes.annotate("the paper: 94 % after 26 days", (LEARNED_DAY, LEARNED), (14, -22),
                  fontsize=8.5, textcoords="offset points",
                  arrowprops={"arrowstyle": "-", "color": FAINT})  # fmt: skip
    axes.set(xlim=(0, m.asked.days), ylim=(0.5, 1.005), xlabel="day", ylabel="profile known")
    axes.yaxis.set_major_formatter(PercentFormatter(1, 0))
    axes.legend(loc="lower right", ncols=2)
    dress_small(axes)
    return figure


def figure_6(m: Measured) -> Figure | None:
    """Draw power with and without control, and a cap of 3,000 kW."""
    levels = np.full(2, float(MIDDLE.split()[0]) / 1000)
    return _power(m, MIDDLE, np.array([0.0, m.asked.days]), levels)


def figure_7(m: Measured) -> Figure | None:
    """Draw the same with the cap that changes three times."""
    edges = np.linspace(0, m.asked.days, len(simulation.LEVELS_KW) + 1)
    levels = np.array([*simulation.LEVELS_KW, simulation.LEVELS_KW[-1]]) / 1000
    return _power(m, simulation.VARIABLE, edges, levels)


def _power(m: Measured, cap: str, days: Floats, levels_mw: Floats) -> Figure | None:
    """Draw the mean power of each 3 hours, and the readings above the cap as points, the highest of
    each 3 hours."""
    order = ORDERS[0]
    ours, without = (m.of(m.asked.part(order, policy, which)) for policy,
                     which in ((simulation.LEARNER, cap), (simulation.NONE, MIDDLE)))  # fmt: skip
    if ours is None:
        return None
    figure, ((axes,),) = panels_of(9, 3.5, left=0.065, right=0.985, top=0.89, bottom=0.14)
    keys: list[Any] = []
    if without is not None:
        at = _day(without)
        axes.fill_between(at, _mw(without.mean_kw), color=FAINT, lw=0, alpha=0.75, step="mid",
                          rasterized=True)  # fmt: skip
        keys.append(Patch(facecolor=FAINT, label="no control"))
    at = _day(ours)
    axes.plot(at, _mw(ours.mean_kw), color=RED, lw=0.55, rasterized=True)
    keys.append(Line2D([], [], color=RED, lw=1.4, label="learner, window, knapsack"))
    axes.step(days, levels_mw, color=INK, lw=1.5, where="post")
    keys.append(Line2D([], [], color=INK, lw=1.5, label="cap"))
    highest = _mw(ours.highest_kw)
    here = levels_mw[np.clip(np.searchsorted(days, at, "right") - 1, 0, len(levels_mw) - 1)]
    over = highest > here * 1.0005
    axes.plot(at[over], highest[over], ".", color=RED, ms=4, mec="none", alpha=0.9)
    keys.append(Line2D([], [], color=RED, marker=".", ls="", ms=6, label="readings above it"))
    axes.set(xlim=(0, m.asked.days), ylim=(0, TOP_MW), xlabel="day", ylabel="power (MW)")
    figure.legend(handles=keys, ncols=len(keys), loc="upper center", bbox_to_anchor=(0.52, 1.0))
    dress_small(axes)
    return figure


def _day(outcome: simulation.WallaceOutcome) -> Floats:
    return (np.arange(len(outcome.mean_kw),
                      dtype=np.float64) + 0.5) * (simulation.BIN_US / simulation.DAY_US
    )  # fmt: skip


def _mw(kw: tuple[int, ...]) -> Floats:
    return np.array(kw, np.float64) / 1000


# -- by month


def _months(m: Measured, name: str, label: str) -> Figure | None:
    """Draw the change of every month, a row per order and a column per cap. EASY without a cap is a
    dash."""
    found = {
        (order, cap, policy): change(m, name, order, policy, cap)
        for order in ORDERS
        for cap in CAPS
        for policy in LOOKS
    }
    if not any(np.isfinite(values).any() for values in found.values()):
        return None
    figure, panels = panels_of(11, 5, 2, 3, left=0.085, right=0.99, top=0.89, bottom=0.09,
                               wspace=0.2, hspace=0.2)  # fmt: skip
    at = np.arange(1, m.asked.months + 1)
    for i, order in enumerate(ORDERS):
        easy = change(m, name, order, simulation.NONE, backfill="easy")
        for j, cap in enumerate(CAPS):
            axes = panels[i, j]
            for k, (policy, (_, colour)) in enumerate(LOOKS.items()):
                axes.bar(at + 0.4 * (k - 0.5), found[order, cap, policy], 0.38, color=colour)
            axes.plot(at, easy, "_", color=INK, ms=9, mew=1.3)
            axes.axhline(0, color=INK, lw=0.8)
            axes.yaxis.set_major_formatter(FuncFormatter(_percent))
            axes.yaxis.set_major_locator(MaxNLocator(5))
            axes.xaxis.set_major_locator(MaxNLocator(13, integer=True, steps=[1, 2, 5, 10]))
            axes.set_xlim(0.4, m.asked.months + 0.6)
            if i == 0:
                axes.set_title(f"cap {int(cap.split()[0]):,} kW", fontweight="bold")
            else:
                axes.set_xlabel("month")
            dress_small(axes, upright=False)
        panels[i, 0].set_ylabel(f"{label}, {order.upper()}")
    for column in panels.T:
        _same_limits(column)
    keys: list[Any] = [Patch(facecolor=colour, label=words) for words, colour in LOOKS.values()]
    keys.append(Line2D([], [], color=INK, marker="_", ls="", ms=9, mew=1.3, label="EASY, no cap"))
    figure.legend(handles=keys, ncols=3, loc="upper center", bbox_to_anchor=(0.53, 1.0))
    return figure


def _percent(value: float, _: Any) -> str:
    return "0" if abs(value) < 1e-9 else f"{100 * value:+,.3g} %" if abs(value) < 10 else (
        f"{100 * value:+,.0f} %"
    )  # fmt: skip


# -- how they look


def _same_limits(column: Any) -> None:
    low, high = (
        pick(axes.get_ylim()[end] for axes in column) for end, pick in ((0, min), (1, max))
    )
    for axes in column:
        axes.set_ylim(low, high)


FIGURES: dict[str, Callable[[Measured], Figure | None]] = {
    "1-2-power-of-jobs": figures_of_jobs.figure_1_2,
    "4-sizes": figures_of_jobs.figure_4,
    "5-learning-rate": figure_5,
    "6-power": figure_6,
    "7-variable-cap": figure_7,
    "8-9-wait": partial(_months, name=WAIT, label="change of mean wait"),
    "10-11-utilisation": partial(_months, name=UTILISATION, label="change of utilisation"),
}
