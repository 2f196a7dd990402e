"""The figures of a run's jobs: when they ran, their run times, and the nodes in use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from odonata.figures.network import once
from odonata.figures.style import (
    BLUE,
    DASHES,
    FAINT,
    GREEN,
    GREY,
    GROUP_TICKS,
    INK,
    ORANGE,
    PURPLE,
    Floats,
    brief,
    dress,
    legend_above,
    thousands,
    top,
)

if TYPE_CHECKING:
    from odonata.jobs.record import JobRecord
    from odonata.results.run import Run

FEW_PATTERNS = (BLUE, ORANGE, GREEN, PURPLE, "#b8a000", "#c0392b", "#4fb0d9", "#c2529b", "#7a4a21",
                "#8fbf3a", "#1f2f6f", "#5c6b73")  # fmt: skip
MOST_NAMED, MOST_BARS = 60, 2000
"""The largest number of jobs that have their names beside their bars; and of bars, beyond which
they are drawn as pixels."""


def pattern_colours(run: Run) -> dict[str, str]:
    """Returns the colours of patterns, in the order in which these appear in the workload."""
    names = dict.fromkeys(job.does for job in run.network.jobs)
    return dict(zip(names, FEW_PATTERNS * 2, strict=False))


def timeline_size(run: Run) -> tuple[float, float]:
    jobs = len(run.network.jobs)
    return 12.0, float(np.clip(1.1 + 0.2 * jobs, 2.2, 9.0))


def timeline(run: Run, axes: Axes) -> None:
    """Draw a bar per job, from its start to its end or, paler, to the time that the run has
    reached; before it a thin line for its wait time."""
    records, colours = run.job_records, pattern_colours(run)
    reached = run.reached_ps / 1e6
    rows = np.arange(len(records))
    arrived, start, end = _job_times(run)
    many = len(records) > MOST_BARS
    waits = arrived < start
    axes.hlines(rows[waits], arrived[waits], start[waits], color=GREY, lw=1.0, rasterized=many)
    ran = start < end
    corners = [(start, rows - 0.38), (end, rows - 0.38), (end, rows + 0.38), (start, rows + 0.38)]
    bars = np.array(corners).transpose(2, 0, 1)[ran]
    shades = [to_rgba(colours[it.pattern], 0.45 if it.end_ps is None else 1.0) for it in records]
    axes.add_collection(PolyCollection(list(bars), facecolors=np.array(shades)[ran], lw=0,
                                       rasterized=many))  # fmt: skip
    ends = [it.end_ps for it in records if it.end_ps is not None]
    done = len(ends) == len(records)
    axes.set_xlim(0, max(ends) / 1e6 * 1.01 if done else max(reached, 1e-6))
    axes.set_ylim(len(records) - 0.4, -0.6)
    axes.set_xlabel("simulated time (µs)")
    if len(records) <= MOST_NAMED:
        points = float(np.clip(380 / len(records), 5.0, 8.5))
        axes.set_yticks(range(len(records)), [brief(it.name) for it in records], fontsize=points)
        axes.tick_params("y", length=0)
    else:
        axes.set_ylabel("job")
        axes.yaxis.set_major_locator(GROUP_TICKS())
    dress(axes)
    axes.grid(visible=False, axis="y")
    keys: list[Any] = [Patch(color=colour, label=name) for name, colour in colours.items()]
    keys.append(Line2D([], [], color=GREY, lw=1.0, label="waits"))
    legend_above(axes, "left", handles=keys, ncols=7, handlelength=1.2)


def _job_times(run: Run) -> tuple[Floats, Floats, Floats]:
    """Returns arrival, start and end of each job, in microseconds. What has not happened yet, or is
    not known, has the time of now; no job ends before it starts."""
    now = run.reached_ps
    times = [(it.arrival_ps, now if it.start_ps is None else it.start_ps,
             now if it.end_ps is None else it.end_ps) for it in run.job_records]  # fmt: skip
    arrived, start, end = np.minimum(np.array(times), now).T / 1e6
    return arrived, start, end


def talk(run: Run, axes: Axes) -> None:
    """Draw the run time of each job that is done, by pattern."""
    colours = pattern_colours(run)
    times: dict[str, list[float]] = {}
    for it in run.job_records:
        if it.run_time_ps is not None:
            times.setdefault(it.pattern, []).append(it.run_time_ps / 1e6)
    named = [name for name in colours if name in times]
    for row, name in enumerate(named):
        values = np.array(times[name])
        axes.plot(values, np.full(len(values), row), "o", ms=5.5, color=colours[name], mec="white",
                  mew=0.5, alpha=0.75, clip_on=False, zorder=3)  # fmt: skip
        axes.plot([values.mean()] * 2, [row - 0.32, row + 0.32], color=INK, lw=1.6, zorder=4)
    counts = [f"{name} ({len(times[name])})" for name in named]
    axes.set_yticks(range(len(named)), counts)
    axes.tick_params("y", length=0)
    axes.set_ylim(len(named) - 0.4, -0.6)
    axes.set_xlim(0, top(*times.values()))
    axes.set_xlabel("run time of a job (µs)")
    dress(axes)
    axes.grid(visible=False, axis="y")


def held(run: Run, axes: Axes) -> None:
    """Draw the nodes that jobs have, and those that jobs in the queue are waiting for."""
    nodes = np.array([it.nodes for it in run.job_records])
    arrived, start, end = _job_times(run)
    us = np.unique(np.concatenate(([0.0, run.reached_ps / 1e6], arrived, start, end)))
    want, have = np.zeros(len(us), np.int64), np.zeros(len(us), np.int64)
    for series, begin, over in ((want, arrived, start), (have, start, end)):
        np.add.at(series, np.searchsorted(us, begin), nodes)
        np.add.at(series, np.searchsorted(us, over), -nodes)
        np.cumsum(series, out=series)
    axes.stairs(want[:-1], us, baseline=None, color=FAINT, lw=1.8, label="waited for")
    axes.stairs(have[:-1], us, fill=True, color="#8fbbd9", lw=0)
    axes.stairs(have[:-1], us, baseline=None, color=BLUE, lw=1.2, label="in use")
    axes.axhline(run.machine.n_nodes, color=GREY, lw=0.9, ls=DASHES, label="all there are")
    axes.set_ylim(0, top(want, [run.machine.n_nodes]))
    axes.set_xlim(0, us[-1])
    axes.set_ylabel("nodes")
    axes.set_xlabel("simulated time (µs)")
    axes.yaxis.set_major_formatter(FuncFormatter(thousands))
    dress(axes)
    legend_above(axes, ncols=3)


@once
def fullest(run: Run) -> tuple[int, list[JobRecord]]:
    """Returns the first moment at which the largest number of jobs ran, and those jobs."""
    begun = [it for it in run.job_records if it.start_ps is not None]
    starts = np.array([it.start_ps for it in begun], np.int64)
    never = np.iinfo(np.int64).max
    ends = np.array([never if it.end_ps is None else it.end_ps for it in begun], np.int64)
    times = np.unique(starts)
    if not len(times):
        return 0, []
    running = np.searchsorted(np.sort(starts), times, "right") - np.searchsorted(
        np.sort(ends), times, "right"
    )
    time = int(times[running.argmax()])
    there = np.flatnonzero((starts <= time) & (ends > time))
    return time, [begun[i] for i in there]
