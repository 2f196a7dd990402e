"""The figures of the study, from what its store has; those that it has nothing for are left out."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from odonata.figures.style import BLUE, GREEN, GREY, ORANGE, PURPLE, dress_small, panels_of
from odonata.studies.together import cases
from odonata.studies.together.found import SHARE, Measured, Queued, Setting

COLOURS = {"assumed": ORANGE, "metered": PURPLE, "by type": GREEN, "by waiting": BLUE,
           "aqa": GREY, "tracking-only": "#b0b0b0"}  # fmt: skip
KW = 1000.0


def _line(m: Measured, setting: Setting, value: Callable[[Queued, float], float]) -> list[float]:
    """Returns the mean of something over the queues of a setting, by reserve."""
    return [m.mean(setting, lambda it, watts=watts: value(it, watts)).mean  # type: ignore[misc]
            for watts in cases.RESERVES_W]  # fmt: skip


def fronts(every: Measured) -> Figure | None:
    """Draw what is saved over how much longer jobs take, and over their time in the network, by
    allocation: a line through the reserves for each power policy."""
    m = every.of_all(product(cases.ALLOCATIONS, cases.KNOWING))
    if m is None:
        return None
    figure, panels = panels_of(9.6, 6.2, 2, len(cases.ALLOCATIONS), left=0.07, right=0.985,
                               top=0.88, bottom=0.08, wspace=0.2, hspace=0.34)  # fmt: skip
    for allocation, above, below in zip(cases.ALLOCATIONS, *panels, strict=True):
        _front(m, allocation, above, lambda it, watts: it.slower(watts))
        above.axvline(m.asked.slower, color=GREY, lw=0.8, ls="--")
        above.set_title(allocation, fontsize=9, loc="left")
        above.set_xlabel("times as long as where nothing is offered", fontsize=8)
        _front(m, allocation, below, lambda it, watts: it.offers[watts].network_us)
        below.set_xlabel("time of a job in the network (us)", fontsize=8)
    for line in panels:
        _alike(line)
        line[0].set_ylabel("saved (%)", fontsize=8)
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        ncols=6,
        fontsize=8,
        loc="upper center",
        frameon=False,
        title=f"means of {len(m.seeds)} queues; filled: the tracking rule is kept on average",
        title_fontsize=8,
    )
    return figure


def _front(m: Measured, allocation: str, axes: Axes,
           over: Callable[[Queued, float], float]) -> None:  # fmt: skip
    dress_small(axes)
    for power in cases.KNOWING:  # those of papers are far below, and in another figure
        setting = allocation, power
        x = _line(m, setting, over)
        y = _line(m, setting, lambda it, watts: 100 * (it.offers[watts].saving or 0.0))
        bad = _line(m, setting, lambda it, watts: it.offers[watts].bad or 0.0)
        axes.plot(x, y, color=COLOURS[power], lw=1.2, label=power)
        for each in zip(x, y, bad, strict=True):
            axes.plot(*each[:2], "o", ms=5, color=COLOURS[power],
                      mfc=COLOURS[power] if each[2] < SHARE else "white")  # fmt: skip


def _alike(some: Any) -> None:
    """Give panels the same limits."""
    for name in ("xlim", "ylim"):
        both = np.array([getattr(axes, f"get_{name}")() for axes in some])
        for axes in some:
            getattr(axes, f"set_{name}")(both[:, 0].min(), both[:, 1].max())


def tracking(every: Measured) -> Figure | None:
    """Draw, over the reserve, how often the machine is off its target, by how much on average, and
    how much longer jobs take; by the simple allocation."""
    some = [(cases.ALLOCATIONS[0], power) for power in (*cases.KNOWING, *cases.PUBLISHED)]
    m = every.of_all(some)
    if m is None:
        return None
    figure, panels = panels_of(9.6, 3.4, 1, 3, left=0.07, right=0.985, top=0.85, bottom=0.14,
                               wspace=0.26)  # fmt: skip
    for axes, value, title in zip(panels[0], VALUES, TITLES, strict=True):
        dress_small(axes)
        for setting in some:
            axes.plot(np.array(cases.RESERVES_W) / KW, _line(m, setting, value), "o-", ms=4, lw=1.2,
                      color=COLOURS[setting[1]], label=setting[1])  # fmt: skip
        axes.set_title(title, fontsize=9, loc="left")
        axes.set_xlabel("reserve (kW)", fontsize=8)
    panels[0][0].axhline(100 * SHARE, color=GREY, lw=0.8, ls="--")
    panels[0][1].axhline(0.0, color=GREY, lw=0.8, ls="--")
    panels[0][2].axhline(m.asked.slower, color=GREY, lw=0.8, ls="--")
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, ncols=6, fontsize=8, loc="upper center", frameon=False)
    return figure


VALUES: tuple[Callable[[Queued, float], float], ...] = (
    lambda it, watts: 100 * (it.offers[watts].bad or 0.0),
    lambda it, watts: it.offers[watts].bias_w / KW,
    lambda it, watts: it.slower(watts),
)
TITLES = ("bad intervals (%)", "above the target on average (kW)", "times as long")


def offers(every: Measured) -> Figure | None:
    """Draw how much can be offered, by setting, with its interval; and queue by queue."""
    m = every.of_all(product(cases.ALLOCATIONS, cases.KNOWING))
    if m is None:
        return None
    figure, panels = panels_of(9.6, 3.2, 1, 1, left=0.07, right=0.985, top=0.84, bottom=0.1)
    axes = panels[0][0]
    dress_small(axes)
    for at, allocation in enumerate(cases.ALLOCATIONS):
        for number, power in enumerate(cases.KNOWING):
            setting, x = (allocation, power), at + 0.2 * (number - 1.5)
            it = m.mean(setting, m.offered)
            axes.bar(x, it.mean / KW, 0.18, color=COLOURS[power], alpha=0.5,
                     label=power if not at else None)  # fmt: skip
            if it.half == it.half:
                axes.errorbar(x, it.mean / KW, it.half / KW, color=COLOURS[power], capsize=3)
            each = [m.offered(queue) / KW for queue in m.queues(setting).values()]
            places = x + np.linspace(-0.06, 0.06, len(each))
            axes.plot(places, each, "o", ms=3, color=COLOURS[power])
    axes.set_xticks(range(len(cases.ALLOCATIONS)), cases.ALLOCATIONS)
    axes.set_ylabel("can be offered (kW)", fontsize=8)
    axes.set_ylim(bottom=0.0)
    figure.legend(ncols=4, fontsize=8, loc="upper center", frameon=False)
    return figure


FIGURES = {"fronts": fronts, "tracking": tracking, "offers": offers}
