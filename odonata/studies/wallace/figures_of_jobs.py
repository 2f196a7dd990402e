"""Figures 1, 2 and 4: what the jobs of a year draw, and their sizes and run times.

They need no simulation, and are drawn where there are outcomes of runs of a whole year.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from odonata.figures.style import BLUE, GREY, INK, ORANGE, dress_small, panels_of
from odonata.studies.wallace.found import Floats, Measured
from odonata.studies.wallace.jobs import racks_kw
from odonata.studies.wallace.simulation import year
from odonata.traces.trace import SECOND, Whole

SAMPLE, FEWEST, SEED = 6, 20, 1
"""Projects in figure 1, drawn with this seed among those of so many jobs or more; figure 2 shows
one of at least half as many users."""


def figure_1_2(m: Measured) -> Figure | None:
    """Draw the power of the jobs of some projects, and of the users of one."""
    if not _of_a_year(m):
        return None
    trace, kw = year(m.asked.seed, m.asked.load, m.asked.days)[0], racks_kw(m.asked.seed, m.asked)
    dice, jobs = np.random.default_rng(SEED), np.bincount(trace.project)
    many = np.flatnonzero(jobs >= FEWEST)
    some = np.sort(dice.choice(many, min(SAMPLE, len(many)), replace=False))
    users = {one: _groups(kw, trace.user, trace.project == one) for one in many.tolist()}
    several = [one for one, groups in users.items() if 2 * len(groups) >= SAMPLE] or many.tolist()
    if not several:
        return None
    one = int(dice.choice(several))
    figure, panels = panels_of(9.4, 3.6, 1, 2, left=0.075, right=0.985, top=0.9, bottom=0.2,
                               wspace=0.16)  # fmt: skip
    left, right = panels[0]
    _boxes(
        left,
        [kw[trace.project == project] for project in some.tolist()],
        [f"{trace.projects[project]}\n{jobs[project]:,}" for project in some.tolist()],
    )
    names = list(users[one])
    _boxes(right, list(users[one].values()),
           [f"{trace.users[user]}\n{len(users[one][user]):,}" for user in names])  # fmt: skip
    left.set(ylabel="power of a job (kW per rack)", xlabel="project, and its jobs")
    right.set(xlabel="user, and the jobs")
    left.set_title(f"{len(some)} projects", loc="left")
    right.set_title(f"the users of {trace.projects[one]}", loc="left")
    ends = [kw.min(), kw.max()]
    for axes in (left, right):
        axes.set_ylim(ends[0] - 3, ends[1] + 3)
        dress_small(axes, upright=False)
    return figure


def _of_a_year(m: Measured) -> bool:
    return any(one.known for one in m.outcomes.values())


def _groups(kw: Floats, of: Whole, here: npt.NDArray[np.bool_]) -> dict[int, Floats]:
    """Returns the power of these jobs by group, of groups that have five of them or more."""
    found = {one: kw[here & (of == one)] for one in np.unique(of[here]).tolist()}
    return {one: values for one, values in found.items() if len(values) >= 5}


def _boxes(axes: Axes, values: list[Floats], names: list[str]) -> None:
    axes.boxplot(values, tick_labels=names, widths=0.55, patch_artist=True,
                 boxprops={"facecolor": BLUE, "alpha": 0.35, "edgecolor": INK},
                 medianprops={"color": INK, "lw": 1.6}, whiskerprops={"color": INK},
                 capprops={"color": INK}, flierprops={"marker": ".", "ms": 3, "mec": GREY,
                                                      "mfc": GREY})  # fmt: skip


def figure_4(m: Measured) -> Figure | None:
    """Draw how many jobs there are of each size, and for how long they run on average."""
    if not _of_a_year(m):
        return None
    trace = year(m.asked.seed, m.asked.load, m.asked.days)[0]
    sizes, place = np.unique(trace.nodes, return_inverse=True)
    count = np.bincount(place)
    hours = np.bincount(place, trace.run_us / SECOND / 3600) / count
    figure, ((axes,),) = panels_of(7.4, 3.4, left=0.1, right=0.9, top=0.95, bottom=0.16)
    at = np.arange(len(sizes))
    axes.bar(at, count, 0.7, color=BLUE, alpha=0.6)
    axes.set_xticks(at, [f"{size:,}" for size in sizes.tolist()])
    axes.set(xlabel="nodes of a job", ylabel="jobs")
    for x, jobs in zip(at.tolist(), count.tolist(), strict=True):
        axes.annotate(f"{jobs:,}", (x, jobs), (0, 2), ha="center", fontsize=7.5, color=GREY,
                      textcoords="offset points")  # fmt: skip
    right: Any = axes.twinx()
    right.plot(at, hours, color=ORANGE, marker="o", ms=4, lw=1.6)
    right.set_ylim(0, 1.3 * float(hours.max()))
    right.set_ylabel("mean run time (h)", color=ORANGE)
    right.tick_params(colors=ORANGE, labelsize=8, length=2.5)
    dress_small(axes, upright=False)
    right.spines["top"].set_visible(False)
    return figure
