"""The figures of a schedule: nodes in use and the queue over time, who had which nodes, waits and
slowdowns, how jobs are spread over the machine; and several schedules side by side.

Each function draws one figure on the Axes that it is given; call it within `style`. `write` saves
all for which a schedule has something.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.lines import Line2D
from matplotlib.ticker import (
    FuncFormatter,
    MaxNLocator,
    NullLocator,
    PercentFormatter,
)

from odonata.experiment.units import show_duration
from odonata.figures import power
from odonata.figures.clock import Clock, clock_of
from odonata.figures.picture import Picture
from odonata.figures.placement import FEW
from odonata.figures.style import (
    BLUE,
    DASHES,
    DOT,
    FAINT,
    INK,
    ORANGE,
    Floats,
    canvas,
    cumulated,
    dress,
    duration_axis,
    legend_above,
    remark,
    save,
    style,
    thousands,
    top,
)
from odonata.jobs.schedule import Schedule
from odonata.results.node_ranges import ranges
from odonata.results.register import number
from odonata.results.schedule_measures import job_times, measures, size_classes
from odonata.results.schedule_series import (
    Fragmentation,
    binned,
    first_us,
    fragmentation,
    segment_ends_us,
    steps,
    until_us,
)
from odonata.traces.trace import SECOND, Whole

MOST_BARS, COLUMNS, ROWS = 3000, 1800, 700
"""The largest number of rectangles of a Gantt chart, beyond which it is an image, and the largest
size of this in pixels."""
MOST_DOTS = 4000
SHORTEST_S = 1.0
"""What is shorter, such as no wait at all, is drawn here on logarithmic axes."""
TICKS = {1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min", 3600: "1 h", 6 * 3600: "6 h",
         86400: "1 day", 7 * 86400: "1 week", 30 * 86400: "30 days",
         365 * 86400: "1 year"}  # fmt: skip
SHORT_TICKS = {1: "1 s", 60: "1 min", 3600: "1 h", 86400: "1 day", 30 * 86400: "30 days"}
"""For narrow panels."""
COUNTS = partial(MaxNLocator, 7, integer=True, min_n_ticks=1, steps=[1, 2, 5, 10])


# -- over time


def _shown(
    clock: Clock, time_us: Whole, values: Any, until: int
) -> tuple[Floats, Floats, Floats | None]:
    """Returns the edges of steps on the axis, their means, and their maxima where several changes
    are merged into a step."""
    edges = clock.edges_us(len(time_us))
    if edges is None:
        ends = np.append(time_us, max(until, int(time_us[-1]) if len(time_us) else until))
        return clock.at(ends), np.asarray(values, float), None
    mean, most = binned(time_us, values, until, edges)
    return clock.at(edges), mean, most


def _merged(clock: Clock, changes: int) -> str:
    """Returns what a step is, in words, where changes are merged."""
    edges = clock.edges_us(changes)
    if edges is None:
        return ""
    return (
        f"; a step is the mean over {show_duration((edges[-1] - edges[0]) / len(edges) / SECOND)}"
    )


def over_time(schedule: Schedule, panels: Sequence[Axes]) -> None:
    """Draw the part of the nodes that is in use, and below it the number of jobs in the queue."""
    series, clock, found = steps(schedule), clock_of(schedule), measures(schedule)
    above, below = panels
    edges, mean, _ = _shown(clock, series.time_us, series.busy, series.until_us)
    above.stairs(mean / schedule.nodes, edges, fill=True, color="#b5d3e6", lw=0)
    above.stairs(mean / schedule.nodes, edges, baseline=None, color=BLUE, lw=0.7)
    if found.utilisation is not None:
        above.axhline(found.utilisation, color=ORANGE, lw=1.2, ls=DASHES)
        remark(above, f"{found.utilisation:.1%} of node-time in use (dashed)"
                       f"{_merged(clock, len(series.time_us))}")  # fmt: skip
    above.set_ylim(0, max(1.0, top(mean / schedule.nodes)))
    above.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    above.set_ylabel(f"of {schedule.nodes:,} nodes in use")
    clock.dress(above, label=False)
    above.tick_params("x", labelbottom=False)
    edges, mean, most = _shown(clock, series.time_us, series.queue, series.until_us)
    pale = "" if most is None else "; pale: the longest within a step"
    if most is not None:
        below.stairs(most, edges, fill=True, color=FAINT, alpha=0.7, lw=0)
    below.stairs(mean, edges, baseline=None, color=BLUE, lw=0.9)
    below.set_ylim(0, top(mean if most is None else most, least=1.0))
    below.yaxis.set_major_locator(COUNTS())
    below.yaxis.set_major_formatter(FuncFormatter(thousands))
    below.set_ylabel("jobs in the queue")
    if found.mean_queue_length is not None:
        remark(below, f"mean {number(found.mean_queue_length)}, at most "
                       f"{found.max_queue_length:,}{pale}")  # fmt: skip
    clock.dress(below)


def gantt(schedule: Schedule, axes: Axes) -> None:
    """Draw who had which nodes when: a rectangle per range of nodes of a job or, where there are
    many, an image of whose pixels each shows the job that had its middle."""
    held, clock = ranges(schedule), clock_of(schedule)
    count = np.diff(held.first)
    begin = np.repeat(schedule.segment_from_us, count)
    end = np.repeat(segment_ends_us(schedule), count)
    job = np.repeat(schedule.segment_job, count)
    colours = np.array([to_rgba(colour) for colour in FEW])[job % len(FEW)]
    high = max(schedule.nodes, int(held.high.max(initial=0)) + 1)
    as_image = len(job) > MOST_BARS
    if as_image:
        image = _raster(clock, (begin, end, held.low, held.high + 1), colours, high)
        axes.imshow(image, aspect="auto", interpolation="nearest", origin="lower", zorder=2,
                    extent=(*clock.at([clock.origin_us, clock.end_us]), 0, high))  # fmt: skip
    else:
        left, right = clock.at(begin), clock.at(end)
        corners = [(left, held.low), (right, held.low), (right, held.high + 1),
                   (left, held.high + 1)]  # fmt: skip
        bars = np.array(corners, float).transpose(2, 0, 1)
        axes.add_collection(PolyCollection(list(bars), facecolors=colours, edgecolors="white",
                                           lw=0.4 if len(bars) < 600 else 0.15))  # fmt: skip
    clock.dress(axes)
    axes.grid(visible=False)
    axes.set_ylim(0, high)
    axes.yaxis.set_major_locator(COUNTS())
    axes.yaxis.set_major_formatter(FuncFormatter(thousands))
    axes.set_ylabel("virtual node" if held.virtual else "node")
    words = [f"{len(np.unique(job)):,} jobs, coloured by job"]
    if held.virtual:
        words.append("nodes were only counted: each gets the lowest free")
    if as_image:
        words.append("a pixel has the job that held its middle, so that short jobs may be missing")
    remark(axes, "; ".join(words))


def _raster(clock: Clock, boxes: tuple[Any, ...], colours: Floats, high: int) -> Any:
    """Returns the image of rectangles: from, to, lowest node and the one after the highest."""
    rows = min(high, ROWS)
    image = np.ones((rows, COLUMNS, 4), np.float32)
    long = clock.end_us - clock.origin_us

    def first_middle(values: Any, length: float, pixels: int) -> Whole:
        """Returns the first pixel whose middle is not before a value."""
        at: Whole = np.ceil(np.asarray(values) / length * pixels - 0.5).astype(np.int64)
        return np.clip(at, 0, pixels)

    left, right = (first_middle(it - clock.origin_us, long, COLUMNS) for it in boxes[:2])
    low, over = (first_middle(it, high, rows) for it in boxes[2:])
    seen = np.flatnonzero((left < right) & (low < over))
    where = zip(*(it[seen].tolist() for it in (left, right, low, over)), colours[seen], strict=True)
    for x, x_end, y, y_end, colour in where:
        image[y:y_end, x:x_end] = colour
    return image


def spread(schedule: Schedule, panels: Sequence[Axes]) -> None:
    """Draw over how many groups and routers the running jobs are spread, against the fewest."""
    found, clock = fragmentation(schedule), clock_of(schedule)
    assert found is not None
    facts = found.facts()
    both = (
        ("groups", found.sum_groups, found.sum_fewest_groups),
        ("routers", found.sum_routers, found.sum_fewest_routers),
    )
    for axes, (name, actual, fewest) in zip(panels, both, strict=True):
        edges, mean = _per_job(clock, found, actual)
        _, least = _per_job(clock, found, fewest)
        axes.stairs(mean, edges, baseline=None, color=BLUE, lw=1.0, label="as placed")
        axes.stairs(least, edges, baseline=None, color=ORANGE, lw=1.0, label="the fewest possible")
        axes.set_ylim(0, top(mean, least, least=1.0))
        axes.set_ylabel(f"{name} per running job")
        remark(axes, f"mean over time and jobs: {facts[f'{name}_per_job'] or 0:.3g}, at the "
                      f"fewest {facts[f'fewest_{name}_per_job'] or 0:.3g}", "left")  # fmt: skip
        clock.dress(axes, label=name == "routers")
    panels[0].tick_params("x", labelbottom=False)
    legend_above(panels[0], ncols=2)


def _per_job(clock: Clock, found: Fragmentation, sums: Whole) -> tuple[Floats, Floats]:
    """Returns the mean of something over running jobs, by step; NaN where none runs."""
    edges, above, _ = _shown(clock, found.time_us, sums, found.until_us)
    _, jobs, _ = _shown(clock, found.time_us, found.running, found.until_us)
    return edges, np.divide(above, jobs, np.full(len(jobs), np.nan), where=jobs > 0)


# -- of jobs


def waits_by_size(schedule: Schedule, axes: Axes) -> None:
    """Draw the waits of the jobs that are done, by class of size: a dot per job, and boxes from the
    first quartile to the third with the median in them."""
    names, classes = size_classes(schedule)
    done = np.flatnonzero(schedule.done)
    waits = np.maximum(job_times(schedule).wait_us[done] / SECOND, SHORTEST_S)
    mine = classes[done]
    rng = np.random.default_rng(1)
    shown = done if len(done) <= MOST_DOTS else np.sort(rng.choice(done, MOST_DOTS, replace=False))
    at = np.searchsorted(done, shown)
    there = [one for one in range(len(names)) if (mine == one).any()]
    place = np.full(len(names), 0)
    place[there] = np.arange(len(there))
    shift = rng.uniform(-0.32, 0.32, len(at))
    few = len(at) < 300
    axes.plot(place[mine[at]] + shift, waits[at], "o", ms=4.0 if few else 2.2, mew=0, color=BLUE,
              alpha=0.6 if few else 0.3, rasterized=True, zorder=2)  # fmt: skip
    for x, one in enumerate(there):
        low, middle, high = np.quantile(waits[mine == one], (0.25, 0.5, 0.75))
        axes.fill_between([x - 0.36, x + 0.36], low, high, facecolor="none", edgecolor=INK, lw=1.0,
                          zorder=3)  # fmt: skip
        axes.plot([x - 0.36, x + 0.36], [middle, middle], color=ORANGE, lw=2.4, zorder=4,
                  solid_capstyle="butt")  # fmt: skip
    counts = [f"{names[one]}\n{int((mine == one).sum()):,}" for one in there]
    axes.set_xticks(range(len(there)), counts)
    axes.tick_params("x", length=0)
    axes.set_xlim(-0.6, len(there) - 0.4)
    axes.set_xlabel("nodes of a job, and how many such jobs are done")
    room_for(axes, "y", waits)
    axes.set_ylabel("wait")
    dress(axes)
    axes.grid(visible=False, axis="x")
    keys = [Line2D([], [], color=ORANGE, lw=2.4, label="median"),
            Line2D([], [], marker="s", ls="", mfc="none", mec=INK, label="middle half"),
            Line2D([], [], marker="o", ls="", ms=3, mew=0, color=BLUE, alpha=0.6,
                   label="a job" if len(at) == len(done) else "a job (a sample)")]  # fmt: skip
    legend_above(axes, handles=keys, ncols=3)


def distributions(schedule: Schedule, panels: Sequence[Axes], narrow: bool = False) -> None:
    """Draw the cumulative distributions of waits and of bounded slowdowns."""
    times, done = job_times(schedule), schedule.done
    waits = np.maximum(times.wait_us[done] / SECOND, SHORTEST_S)
    slowdowns = times.bounded_slowdown[done]
    look: dict[str, Any] = {"color": BLUE, "lw": 1.5}
    wait_curve(panels[0], waits, look, narrow)
    slowdown_curve(panels[1], slowdowns, look)
    brief: tuple[Callable[[float], str], ...] = (show_duration, number)
    for axes, values, text in zip(panels, (waits, slowdowns), brief, strict=True):
        for part, name in ((0.5, "median"), (0.95, "95 %")):
            value = float(np.quantile(values, part, method="inverted_cdf"))
            right = value > np.sqrt(np.prod(axes.get_xlim()))
            axes.plot([value], [part], "o", ms=4.5, **DOT)
            shown = f"at most {text(value)}" if value <= SHORTEST_S else text(value)
            axes.annotate(f"{name}: {shown}", (value, part), (-7 if right else 7, 4 if right else
                          -10), fontsize=8, textcoords="offset points",
                          ha="right" if right else "left")  # fmt: skip


def wait_curve(axes: Axes, waits: Floats, look: dict[str, Any], narrow: bool = False) -> None:
    _curve(axes, waits, look)
    room_for(axes, "x", waits, narrow)
    axes.set_xlabel("wait" + (f" (at most {SHORTEST_S:.0f} s: at the left)"
                              if len(waits) and waits.min() <= SHORTEST_S else ""))  # fmt: skip


def slowdown_curve(axes: Axes, slowdowns: Floats, look: dict[str, Any]) -> None:
    _curve(axes, slowdowns, look)
    axes.set_xscale("log")
    axes.set_xlim(0.9, max(axes.get_xlim()[1] if axes.get_xlim()[0] == 0.9 else 0.0,
                           top(slowdowns, least=11.0)))  # fmt: skip
    axes.xaxis.set_major_formatter(FuncFormatter(thousands))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("bounded slowdown")


def _curve(axes: Axes, values: Floats, look: dict[str, Any]) -> None:
    if len(values):
        x, y = cumulated(values)
        axes.step(x, y, where="post", **look)
    axes.set_ylim(0, 1.015)
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.set_ylabel("jobs at or below")
    dress(axes)


def room_for(axes: Axes, which: str, seconds: Floats, narrow: bool = False) -> None:
    """Make an axis one of durations, logarithmic, with room for these and what it had."""
    ticks = SHORT_TICKS if narrow else TICKS
    axis = axes.xaxis if which == "x" else axes.yaxis
    before = axis.get_view_interval()[1] if axis.get_scale() == "log" else 0.0
    most = max(before, float(seconds.max(initial=10.0)) * 1.4)
    duration_axis(axes, which, SHORTEST_S * 0.8, most, ticks)


# -- all of them


def _none_there(schedule: Schedule) -> str:
    begun = len(schedule) and until_us(schedule) > first_us(schedule)
    return "" if begun else "No time has passed since the first job was submitted."


def _none_begun(schedule: Schedule) -> str:
    return "" if len(schedule.segment_job) else "No job has been started yet."


def _none_done(schedule: Schedule) -> str:
    return "" if schedule.done.any() else "No job is done yet."


def _none_placed(schedule: Schedule) -> str:
    counted = schedule.labels is None
    return _none_begun(schedule) or "Nodes were only counted: no job has a place." * counted


TIME, JOBS, PLACEMENT = "Over time", "Jobs", "Placement"
PICTURES: Sequence[Picture[Schedule]] = (
    Picture("over-time", TIME, "Nodes in use and the queue", over_time, "Above, the part of all "
            "nodes that jobs hold; below, the jobs that have arrived and hold none.", _none_there,
            (12.0, 5.2), (2, 1)),
    Picture("gantt", TIME, "Who had which nodes", gantt, "Each job on its nodes, from its start to "
            "its end; colours tell neighbours apart and mean nothing else. Where nodes were only "
            "counted, each job is drawn on the lowest that were free.", _none_begun, (12.0, 4.8)),
    Picture("waits", JOBS, "Wait by size", waits_by_size, "A dot per job; a box from the first to "
            "the third quartile, with the median.", _none_done, (12.0, 4.2)),
    Picture("distributions", JOBS, "Waits and slowdowns", distributions, "The part of all jobs "
            "that waited no longer, or were slowed down no more.", _none_done, (10.0, 3.6),
            (1, 2)),
    Picture("spread", PLACEMENT, "Spread over groups and routers", spread, "Over how many groups "
            "and routers a running job's nodes are spread, mean over the jobs that run at a time; "
            "and the fewest that would hold them.", _none_placed, (12.0, 5.0), (2, 1)),
)  # fmt: skip
"""In reading order."""


def of(schedule: Schedule) -> list[Picture[Schedule]]:
    """Returns the pictures of a schedule: that of the spread only where jobs are placed."""
    return [it for it in PICTURES if it.section != PLACEMENT or schedule.machine is not None]


def write_overview(schedule: Schedule, path: Path, watts: power.Watts | None = None) -> None:
    """Save one figure with the most important of a schedule and, with `watts`, of its power, in the
    format that its name ends in: .png, .svg or .pdf."""
    placed = schedule.labels is not None
    powered = watts is not None and not power.PICTURES[0].missing(watts)
    inches = {"over time": 5.3, "power": 4.0 * powered, "jobs": 3.5, "spread": 4.4 * placed}
    shown = {name: high for name, high in inches.items() if high}
    with style():
        figure = canvas((12.0, sum(shown.values())))
        made: Any = figure.subfigures(len(shown), 1, height_ratios=[*shown.values()])
        parts = dict(zip(shown, made, strict=True))
        over_time(schedule, parts["over time"].subplots(2, 1))
        if watts is not None and powered:
            power.power(watts, parts["power"])
        waits, *rest = parts["jobs"].subplots(1, 3, width_ratios=(2.2, 1.0, 1.0))
        if schedule.done.any():
            waits_by_size(schedule, waits)
            waits.tick_params("x", labelsize=7)  # nine classes of five digits
            distributions(schedule, rest, narrow=True)
        if placed:
            spread(schedule, parts["spread"].subplots(2, 1))
        save(figure, path)
