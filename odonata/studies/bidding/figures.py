"""The figures of the study, from what its store has; those that it has nothing for are left out."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from odonata.figures.style import BLUE, GREEN, GREY, ORANGE, PURPLE, dress_small, panels_of
from odonata.studies.bidding import cases
from odonata.studies.bidding.claims import named
from odonata.studies.bidding.found import SHARE, THRESHOLD, Measured, mean, worst
from odonata.studies.bidding.simulation import FES

COLOURS = {"qoscap": BLUE, "energy-qare": ORANGE}
MARKS = {"fh": "s", FES: "D", "adaptive": "o"}
LEAST_OFF, LEAST_Q = 2e-3, 2e-2
"""Where what is less is drawn."""
KW = 1000.0
OFF_TICKS, Q_TICKS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0), (0.1, 0.5, 1.0, 2.0, 5.0, 20.0)
SHOWN = (("energy-qare", FES), ("qoscap", "adaptive"), ("energy-qare", "adaptive"))
"""The combinations of figure 2.34."""


def rules(m: Measured) -> Figure | None:
    """Draw how far each day of each combination is off its target, and how late its jobs are."""
    rows = [some for some in (cases.TABLE, cases.BUSY) if m.days(some[0], "qoscap", "adaptive")]
    if not rows:
        return None
    figure, panels = panels_of(9.6, 0.9 + 3.1 * len(rows), len(rows), 3, left=0.07, right=0.985,
                               top=0.86 if len(rows) == 1 else 0.9, bottom=0.09, wspace=0.2,
                               hspace=0.34)  # fmt: skip
    for some, line in zip(rows, panels, strict=True):
        for workload, axes in zip(some, line, strict=True):
            _days(m, workload, axes)
        line[0].set_ylabel("largest mean Q of a type", fontsize=8)
    for axes in panels[-1]:
        axes.set_xlabel("part of the day off the target", fontsize=8)
    handles = [Line2D([], [], color=COLOURS[policy], marker=MARKS[bid], ls="", ms=6,
                      label=named(policy, bid))
               for policy, bid in product(cases.POLICIES, cases.BIDS)]  # fmt: skip
    figure.legend(handles=handles, ncols=6, fontsize=7.5, loc="upper center", frameon=False)
    return figure


def _days(m: Measured, workload: Any, axes: Axes) -> None:
    dress_small(axes)
    axes.set_title(workload.name, fontsize=9, loc="left")
    axes.fill_between([LEAST_OFF / 2, SHARE], LEAST_Q / 2, THRESHOLD, color=GREEN, alpha=0.1, lw=0)
    axes.axvline(SHARE, color=GREY, lw=0.8, ls="--")
    axes.axhline(THRESHOLD, color=GREY, lw=0.8, ls="--")
    for policy, bid in product(cases.POLICIES, cases.BIDS):
        days = m.days(workload, policy, bid)
        axes.plot([max(LEAST_OFF, day.off or 0.0) for day in days],
                  [max(LEAST_Q, day.worst) for day in days], MARKS[bid], color=COLOURS[policy],
                  mfc="none" if bid != "adaptive" else COLOURS[policy], ms=5,
                  alpha=0.85)  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis, ticks in ((axes.xaxis, OFF_TICKS), (axes.yaxis, Q_TICKS)):
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda part, _: f"{100 * part:g} %"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda q, _: f"{q:g}"))
    axes.set_xlim(LEAST_OFF * 0.9, 1.05)
    axes.set_ylim(LEAST_Q * 0.9, 40)


def day(m: Measured) -> Figure | None:
    """Draw target and power of a day, as in figure 2.34."""
    for workload in (cases.TABLE[1], cases.BUSY[1]):
        every = [m.days(workload, policy, bid) for policy, bid in SHOWN]
        if all(every) and all(days[0].track for days in every):
            break
    else:
        return None
    figure, panels = panels_of(9.6, 6.2, 3, 1, left=0.07, right=0.985, top=0.95, bottom=0.08,
                               hspace=0.42)  # fmt: skip
    for (policy, bid), days, axes in zip(SHOWN, every, panels[:, 0], strict=True):
        first = days[0]
        hours = np.arange(len(first.track["target_w"])) / 60.0
        dress_small(axes)
        axes.plot(hours, np.array(first.track["target_w"]) / KW, color=PURPLE, lw=0.8,
                  label="target")  # fmt: skip
        axes.plot(hours, np.array(first.track["power_w"]) / KW, color=COLOURS[policy], lw=0.8,
                  label="power")  # fmt: skip
        axes.set_title(f"{named(policy, bid)}: off {first.off or 0.0:.1%} of the day, largest mean "
                       f"Q of a type {first.worst:.2f}", fontsize=9, loc="left")  # fmt: skip
        axes.set_ylabel("kW", fontsize=8)
        axes.set_xlim(0, 24)
        axes.set_xticks(range(0, 25, 3))
    panels[0, 0].legend(fontsize=8, ncols=2, loc="upper right", frameon=False)
    panels[-1, 0].set_xlabel(f"hour of the day ({workload.name}, means of a minute)", fontsize=8)
    return figure


def causes(m: Measured) -> Figure | None:
    """Draw how late jobs are over the load, by how unevenly they come."""
    if not m.days(cases.CAUSES[0], "qoscap", "adaptive"):
        return None
    figure, panels = panels_of(9.6, 3.3, 1, len(cases.BURSTS), left=0.07, right=0.985, top=0.82,
                               bottom=0.15, wspace=0.2)  # fmt: skip
    for burst, axes in zip(cases.BURSTS, panels[0], strict=True):
        dress_small(axes)
        some = [it for it in cases.CAUSES if it.burst == burst]
        for policy, bid, colour in LINES:
            each = [m.days(workload, policy, bid) for workload in some]
            if all(each):
                its = [mean(days, worst) for days in each]
                axes.errorbar(cases.LOADS, [it.mean for it in its], [it.half for it in its],
                              fmt="o-", color=colour, ms=4, lw=1.2, capsize=2,
                              label=named(policy, bid))  # fmt: skip
        axes.axhline(THRESHOLD, color=GREY, lw=0.8, ls="--")
        axes.set_title("jobs come one by one" if burst == 1.0 else
                       f"in groups of {burst:g}, by day", fontsize=9, loc="left")  # fmt: skip
        axes.set_xlabel("load", fontsize=8)
        axes.set_ylim(bottom=0)
    panels[0, 0].set_ylabel("largest mean Q of a type", fontsize=8)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, ncols=3, fontsize=8, loc="upper center", frameon=False)
    return figure


LINES: tuple[tuple[str, Any, str], ...] = (
    ("qoscap", "adaptive", BLUE),
    ("energy-qare", "adaptive", ORANGE),
    ("energy-qare", cases.NOTHING, GREY),
)
"""The combinations of the last figure; whoever offers nothing starts jobs in order of arrival."""
FIGURES = {"rules": rules, "day": day, "causes": causes}
