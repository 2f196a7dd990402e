"""A trace as one picture: when jobs are submitted and what load they are, how large they are and
how long they run, and whose they are.

Each function draws one panel on the Axes that it is given; call it within `style`.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    MaxNLocator,
    NullLocator,
)

from odonata.experiment.units import show_duration
from odonata.figures.style import (
    BLUE,
    DASHES,
    FAINT,
    INK,
    LIGHT_TO_DARK,
    ORANGE,
    Floats,
    brief,
    canvas,
    cumulated,
    dress,
    duration_axis,
    legend_above,
    remark,
    save,
    say,
    style,
    thousands,
    title,
    top,
)
from odonata.results.trace_facts import DAY, HOUR, busiest_users, node_seconds
from odonata.traces.trace import SECOND, UNKNOWN, Trace, Whole

PALE = "#8fbbd9"
MOST_BARS = 210
STEPS = {1: "second", 60: "minute", HOUR: "hour", DAY: "day", 7 * DAY: "week", 30 * DAY: "30 days"}
"""What submissions are counted by, in seconds: the shortest with at most MOST_BARS bars."""
SHORTEST_S = 1.0
"""What is shorter is drawn here on logarithmic axes."""
TICKS = {1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min", HOUR: "1 h", 10 * HOUR: "10 h",
         2 * DAY: "2 d", 10 * DAY: "10 d", 100 * DAY: "100 d", 1000 * DAY: "1,000 d"}  # fmt: skip
FEW_JOBS = 400
"""As many jobs as this are dots; more are counted."""
ROUND = partial(MaxNLocator, 5, steps=[1, 2, 5, 10])
PERCENT = FuncFormatter(lambda value, _: f"{100 * value:.6g}%")
LONGEST_NAME, LONGEST_TITLE = 18, 60
"""Letters that are shown of a user's name and of a trace's."""


# -- over time


def step_of(span_s: float) -> tuple[int, str]:
    """Returns what submissions are counted by: a number of seconds, and its name."""
    for step, name in STEPS.items():
        if span_s <= step * MOST_BARS:
            return step, name
    days = -(-int(span_s) // (DAY * MOST_BARS))
    return days * DAY, f"{days:,} days"


def bars_of(at_s: Whole, step: int) -> Whole:
    """Returns the edges of bars: whole hours or midnights, but the first submission and the last at
    the ends. A bar at an end that would be shorter than half a step is part of its neighbour."""
    begin, end = int(at_s[0]), int(at_s[-1])
    inner = np.arange(begin // step + 1, -(-end // step)) * step
    inner = inner[(inner - begin >= step / 2) & (end - inner >= step / 2)]
    return np.concatenate(([begin], inner, [end]))


def over_time(trace: Trace, nodes: int, above: Axes, below: Axes) -> None:
    """Draw the rate at which jobs are submitted, by hour, day or week, and what load they are:
    their node-time over that of the machine."""
    title(above, "Submissions")
    guessed = ", as many as the largest job has" if trace.machine_nodes is None else ""
    title(below, f"Offered load on {nodes:,} nodes{guessed}")
    step, name = step_of(trace.span_us / SECOND)
    clock, at_s = trace.clock, _local_s(trace)
    order = np.argsort(at_s, kind="stable")  # in autumn an hour comes twice
    at_s = at_s[order]
    if at_s[0] == at_s[-1]:
        say(above, "all jobs are submitted within a second", alone=True)
        say(below, "too short a time for a load", alone=True)
        return
    ends = bars_of(at_s, step)
    bar = np.minimum(np.searchsorted(ends, at_s, "right") - 1, len(ends) - 2)
    length, edges = np.diff(ends), ends / DAY
    jobs = np.bincount(bar, minlength=len(length)) * (step / length)
    load = np.bincount(bar, node_seconds(trace)[order], len(length)) / (float(nodes) * length)
    _bars(above, jobs, edges)
    above.yaxis.set_major_formatter(FuncFormatter(thousands))
    above.set_ylabel(f"jobs per {name}")
    above.tick_params("x", labelbottom=False)
    _bars(below, load, edges)
    below.yaxis.set_major_formatter(FuncFormatter(thousands))
    below.set_ylabel(f"load, by {name}")
    mean = trace.load(nodes)
    if np.isfinite(mean):
        below.axhline(mean, color=ORANGE, lw=1.3, ls=DASHES)
        below.set_ylim(0, top(load, mean))
        remark(below, f"dashed: {mean:.3g}, over all")
    for axes in (above, below):
        axes.set_xlim(edges[0], edges[-1])
        dress(axes)
    if clock is not None:
        for axes in (above, below):
            locator: Any = AutoDateLocator  # which has no types
            formatter: Any = ConciseDateFormatter
            dates = locator(minticks=4, maxticks=9)
            axes.xaxis.set_major_locator(dates)
            axes.xaxis.set_major_formatter(formatter(dates, show_offset=False))
        begin, end = clock.words(trace.submit_us[[0, -1]])
        below.set_xlabel(f"time of submission, {begin} to {end} ({clock.name})")
        return
    unit, word = next(it for it in ((DAY, "days"), (HOUR, "hours"), (60, "minutes"), (1, "s"))
                      if it[0] <= step)  # fmt: skip
    round_ones = MaxNLocator(9, steps=[1, 2, 5, 10])
    ticks = np.asarray(round_ones.tick_values(ends[0] / unit, ends[-1] / unit))
    ticks = ticks[(ticks * unit >= ends[0]) & (ticks * unit <= ends[-1])]
    for axes in (above, below):
        axes.set_xticks(ticks * unit / DAY, [thousands(round(tick, 6)) for tick in ticks])
    below.set_xlabel(f"time of submission ({word})")


def _local_s(trace: Trace) -> Whole:
    """[job]: when it is submitted, in seconds since a midnight, as far as the trace tells."""
    clock = trace.clock
    return trace.submit_us // SECOND if clock is None else clock.local_s(trace.submit_us)


def _bars(axes: Axes, heights: Any, edges: Floats) -> None:
    axes.stairs(heights, edges, fill=True, color=PALE, lw=0)
    axes.stairs(heights, edges, color=BLUE, lw=0.6)
    axes.set_ylim(0, top(heights))
    axes.yaxis.set_major_locator(ROUND())


def by_hour(trace: Trace, axes: Axes, rescaled: bool = False) -> None:
    """Draw the share of jobs that is submitted in each hour of the day."""
    clock = trace.clock
    share = np.bincount(_local_s(trace) % DAY // HOUR, minlength=24) / max(1, len(trace))
    _bars(axes, share, np.arange(25.0))
    if trace.span_us >= DAY * SECOND:
        axes.axhline(1 / 24, color=ORANGE, lw=1.3, ls=DASHES)
        remark(axes, "dashed: all hours alike")
    axes.set_xlim(0, 24)
    axes.set_xticks(range(0, 25, 4))
    axes.yaxis.set_major_formatter(PERCENT)
    axes.set_ylabel("jobs submitted")
    zone = ", from time 0 of the trace" if clock is None else f" ({clock.name})"
    axes.set_xlabel("hour of the day" + (" (gaps were rescaled)" if rescaled else zone))
    title(axes, "Time of day")
    dress(axes)


# -- sizes and times


def classes(nodes: Whole) -> Whole:
    """[job]: log2 of its size, rounded up: 1, 2, 3 to 4, 5 to 8 …"""
    return np.frexp((nodes - 1).astype(np.float64))[1].astype(np.int64)


def sizes(trace: Trace, axes: Axes) -> None:
    """Draw the shares of jobs, and of node-time, by class of size."""
    of = classes(trace.nodes)
    low, high = int(of.min()), int(of.max())
    work = node_seconds(trace)
    shares = (("of jobs", np.ones(len(trace)), PALE), ("of node-time", work, BLUE))
    place = np.arange(low, high + 1)
    tallest = 0.0
    for side, (name, weight, colour) in enumerate(shares):
        share = np.bincount(of, weight, high + 1)[low:] / (weight.sum() or 1.0)
        tallest = max(tallest, float(share.max()))
        axes.bar(place + 0.41 * (side - 0.5), share, 0.41, color=colour, label=name)
    names = [_class_name(one) for one in place.tolist()]
    steep = sum(map(len, names)) > 24
    axes.set_xticks(place, names, rotation=45 if steep else 0, ha="right" if steep else "center",
                    rotation_mode="anchor" if steep else "default",
                    fontsize=8 if steep else None)  # fmt: skip
    axes.set_xlim(min(low - 0.6, (low + high) / 2 - 2), max(high + 0.6, (low + high) / 2 + 2))
    axes.tick_params("x", length=0)
    axes.set_ylim(0, tallest * 1.06)
    axes.yaxis.set_major_locator(ROUND())
    axes.yaxis.set_major_formatter(PERCENT)
    axes.set_ylabel("share")
    axes.set_xlabel("nodes of a job")
    title(axes, "Sizes")
    dress(axes)
    axes.grid(visible=False, axis="x")
    legend_above(axes, ncols=2, handlelength=1.2)


def _class_name(one: int) -> str:
    """Returns "5–8", and large ones in units of 1,024: "2k–4k" are 2,049 to 4,096."""
    if one < 2:
        return f"{2**one}"
    low, high = 2 ** (one - 1), 2**one
    if high < 1024:
        return f"{low + 1}–{high}"
    for shift, letter in ((30, "G"), (20, "M"), (10, "k")):
        if low >= 2**shift:
            return f"{low >> shift}{letter}–{high >> shift}{letter}"
    return "513–1k"


def times(trace: Trace, axes: Axes) -> None:
    """Draw the cumulative distributions of run times and of requested times."""
    asked = trace.requested_us[trace.requested_us != UNKNOWN]
    least, most = np.inf, SHORTEST_S
    for name, of, colour, dashes in (("run", trace.run_us, BLUE, "-"),
                                     ("requested", asked, ORANGE, DASHES)):  # fmt: skip
        if len(of):
            seconds = np.maximum(of / SECOND, SHORTEST_S)
            least, most = min(least, float(seconds.min())), max(most, float(seconds.max()))
            median = show_duration(float(np.median(of)) / SECOND)
            axes.step(*cumulated(seconds), where="post", color=colour, ls=dashes, lw=1.5,
                      label=f"{name}, median {median}")  # fmt: skip
    axes.set_ylim(0, 1.015)
    axes.yaxis.set_major_formatter(PERCENT)
    axes.set_ylabel("jobs at or below")
    duration_axis(axes, "x", *duration_limits(least, most), TICKS)
    axes.set_xlabel("run time or requested time" if len(asked)
                    else "run time (no time was requested)")  # fmt: skip
    title(axes, "Times")
    dress(axes)
    axes.legend(loc="upper left", handlelength=1.8)


def size_and_time(trace: Trace, axes: Axes) -> None:
    """Draw the run time over the size: a dot per job, or how many jobs there are in each cell."""
    seconds = np.maximum(trace.run_us / SECOND, SHORTEST_S)
    ends_s = float(seconds.min()), float(seconds.max())
    least, most = int(trace.nodes.min()), int(trace.nodes.max())
    low, high = least / 1.3, most * 1.3
    axes.set_xscale("log", base=2)
    if len(trace) <= FEW_JOBS:
        axes.plot(trace.nodes, seconds, "o", ms=4, mew=0, color=BLUE, alpha=0.5)
    else:
        steps = 4 if most <= 64 * least else 2  # per octave
        first, last = np.rint(steps * np.log2([least, most]))
        across = 2 ** ((np.arange(first, last + 2) - 0.5) / steps)
        low, high = min(low, across[0]), max(high, across[-1])
        up = np.geomspace(*duration_limits(*ends_s), 41)
        counts = np.histogram2d(trace.nodes, seconds, (across, up))[0].T
        colours = LogNorm(1, max(2.0, float(counts.max())))
        cells = axes.pcolormesh(across, up, np.ma.masked_equal(counts, 0), cmap=LIGHT_TO_DARK,
                                norm=colours, rasterized=True)  # fmt: skip
        figure = axes.get_figure()
        assert figure is not None
        bar = figure.colorbar(cells, ax=axes, aspect=24, pad=0.02)
        bar.set_label("jobs in a cell")
        bar.outline.set_visible(False)
        bar.ax.yaxis.set_major_formatter(FuncFormatter(thousands))
        bar.ax.yaxis.set_minor_formatter(FuncFormatter(lambda *_: ""))
    axes.set_xlim(min(low, most / 3), max(high, least * 3))
    duration_axis(axes, "y", *duration_limits(*ends_s), TICKS)
    octaves = np.arange(31)[:: 1 if most < 2**12 * least else 2]
    axes.xaxis.set_major_locator(FixedLocator((2**octaves).tolist()))
    axes.xaxis.set_major_formatter(FuncFormatter(thousands))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("nodes of a job")
    axes.set_ylabel("run time")
    title(axes, "Size and run time")
    dress(axes)


def duration_limits(least_s: float, most_s: float) -> tuple[float, float]:
    """Returns the ends of a logarithmic axis with room for these."""
    return least_s / 1.3, max(most_s, 10 * least_s) * 1.3


# -- users


def users(trace: Trace, axes: Axes) -> None:
    """Draw the shares of node-time of the users that have the most of it, and of the others."""
    title(axes, "Node-time by user")
    named = [user for user in busiest_users(trace) if user.share is not None]
    if not named:
        known = any(trace.users[at] for at in np.unique(trace.user).tolist())
        say(axes, "no job needs any time" if known else "no users are recorded", alone=True)
        return
    names = [brief(user.name) for user in named]
    shares = [user.share or 0.0 for user in named]
    colours = [BLUE] * len(named)
    if (rest := 1 - sum(shares)) > 1e-9:
        names, shares, colours = [*names, "all others"], [*shares, rest], [*colours, FAINT]
    place = range(len(names))
    axes.barh(place, shares, 0.72, color=colours)
    for at, share in zip(place, shares, strict=True):
        axes.annotate(f"{share:.1%}", (share, at), (3, 0), textcoords="offset points",
                      va="center", fontsize=8)  # fmt: skip
    axes.set_yticks(place, names)
    axes.tick_params("y", length=0)
    axes.set_ylim(max(len(names), 6) - 0.4, -0.6)
    axes.set_xlim(0, top(shares) * 1.16)
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(PERCENT)
    axes.set_xlabel("share of the node-time")
    dress(axes)
    axes.grid(visible=False, axis="y")


# -- the picture


def picture(trace: Trace, nodes: int, rescaled: bool = False) -> Figure:
    """Returns the picture of a trace with at least one job; within `style`. `nodes` is the size of
    the machine that its load is on; `rescaled`, whether gaps between submissions were changed."""
    figure = canvas((12.0, 11.2))
    parts: Any = figure.subfigures(3, 1, height_ratios=(1.15, 1.0, 1.15), hspace=0.04)
    over_time(trace, nodes, *parts[0].subplots(2, 1))
    left, middle, right = parts[1].subplots(1, 3)
    by_hour(trace, left, rescaled)
    sizes(trace, middle)
    times(trace, right)
    left, right = parts[2].subplots(1, 2, width_ratios=(1.9, 1.0))
    size_and_time(trace, left)
    users(trace, right)
    jobs = f"{len(trace):,} job{'s' * (len(trace) > 1)}"
    words = f"{jobs}, submitted within {show_duration(trace.span_us / SECOND)}"
    figure.suptitle(f"{brief(trace.name, LONGEST_TITLE)}: {words}", x=0.01, ha="left",
                    fontsize=12, fontweight="bold", color=INK)  # fmt: skip
    return figure


def write(trace: Trace, nodes: int, path: Path, rescaled: bool = False) -> None:
    """Save the picture of a trace to a file, in the format that its name ends in: .png, .svg or
    .pdf."""
    with style():
        save(picture(trace, nodes, rescaled), path)
