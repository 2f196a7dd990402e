"""Several runs in one figure, each in its colour: of packets their network over time, of months of
jobs their schedules; and of both what was measured of power."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, PercentFormatter

from odonata.experiment.units import show_duration, show_time
from odonata.figures import network as figures
from odonata.figures.clock import Clock, clock_of
from odonata.figures.power import changes, merged, unit_of
from odonata.figures.schedule import (
    COUNTS,
    SHORTEST_S,
    slowdown_curve,
    wait_curve,
)
from odonata.figures.style import (
    DASHES,
    GREY,
    INK,
    RUN_COLOURS,
    Floats,
    canvas,
    check_name,
    dress,
    from_zero,
    keyed,
    remark,
    save,
    style,
    thousands,
    top,
)
from odonata.jobs.metering import PowerRecord
from odonata.jobs.schedule import Schedule
from odonata.results.register import number
from odonata.results.run import Run
from odonata.results.schedule_measures import Measures, job_times, measures
from odonata.results.schedule_series import Steps, binned, first_us, fragmentation, steps
from odonata.results.statistics import interval
from odonata.traces.trace import SECOND, Whole
from pdes.errors import Refused

COMPARED_STEPS = 240
"""The number of steps of each curve over time."""
MOST_JOBS = 24
"""How many names of jobs have room in one panel."""


def comparison(
    schedules: Mapping[str, Schedule], power: Mapping[str, PowerRecord] | None = None
) -> Figure:
    """Returns a figure of several schedules by name: nodes in use and the queue over time,
    distributions of waits and slowdowns, and their means; where `power` has something measured of
    any, what it drew and its cap over time; where all are placed, also over how many groups and
    routers their jobs are spread."""
    placed = all(schedule.labels is not None for schedule in schedules.values())
    watts = {name: it for name, it in (power or {}).items() if len(it.time)}
    inches = {"over time": 5.7 + 2.9 * bool(watts), "jobs": 3.5, "spread": 4.6 * placed}
    shown = {name: high for name, high in inches.items() if high}
    figure = canvas((12.0, sum(shown.values())))
    made: Any = figure.subfigures(len(shown), 1, height_ratios=[*shown.values()])
    parts = dict(zip(shown, made, strict=True))
    above, below, *drawn = parts["over time"].subplots(2 + bool(watts), 1, sharex=True)
    waits, slowdowns, bars_wait, bars_slowdown = parts["jobs"].subplots(
        1, 4, width_ratios=(3, 3, 2, 2)
    )
    clocks = [clock_of(schedule) for schedule in schedules.values()]
    clock = Clock(0, max((it.end_us - it.origin_us for it in clocks), default=1))
    found: dict[str, Measures] = {}
    for at, (name, schedule) in enumerate(schedules.items()):
        look = _look(at)
        found[name] = measures(schedule)
        series = _rebased(steps(schedule), first_us(schedule))
        edges, mean, _ = _few(clock, series, series.busy)
        above.stairs(mean / schedule.nodes, edges, baseline=None, **look, label=keyed(name))
        edges, mean, _ = _few(clock, series, series.queue)
        below.stairs(mean, edges, baseline=None, **look)
        times, done = job_times(schedule), schedule.done
        seconds = np.maximum(times.wait_us[done] / SECOND, SHORTEST_S)
        wait_curve(waits, seconds, look, narrow=True)
        slowdown_curve(slowdowns, times.bounded_slowdown[done], look)
    above.set_ylim(0, 1.03)
    above.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    above.set_ylabel("nodes in use")
    below.set_ylim(0)
    below.yaxis.set_major_locator(COUNTS())
    below.yaxis.set_major_formatter(FuncFormatter(thousands))
    below.set_ylabel("jobs in the queue")
    clock.dress(above, label=False)
    clock.dress(below, label=not watts)
    slowdowns.set_ylabel("")
    remark(
        above, f"a step is the mean over {show_duration(clock.end_us / COMPARED_STEPS / SECOND)}"
    )
    above.legend(ncols=min(len(schedules), 6), loc="lower left", bbox_to_anchor=(0.0, 1.0),
                 borderaxespad=0.2, handlelength=1.6)  # fmt: skip
    _bars(
        bars_wait, "mean wait", {name: it.mean_wait_s for name, it in found.items()}, show_duration
    )
    _bars(bars_slowdown, "mean bounded slowdown",
          {name: it.mean_bounded_slowdown for name, it in found.items()},
          number)  # fmt: skip
    traces = {(it.trace.name, len(it.trace), it.nodes) for it in schedules.values()}
    if len(traces) == 1:
        one = next(iter(schedules.values()))
        load = one.trace.load(one.nodes)
        at_load = f", offered load {load:.2f}" if load == load else ""
        title = f"{one.trace.name}: {len(one.trace):,} jobs on {one.nodes:,} nodes{at_load}"
        figure.suptitle(title, x=0.01, ha="left", weight="bold")
    if watts:
        origins = {name: first_us(schedule) for name, schedule in schedules.items()}
        looks = {name: _look(at) for at, name in enumerate(schedules)}
        _power(watts, origins, looks, clock.at, drawn[0])
        clock.dress(drawn[0])
    if placed:
        _spread(schedules, clock, parts["spread"].subplots(2, 1, sharex=True))
    return figure


def _look(at: int) -> dict[str, Any]:
    """Returns how the curves of a schedule look."""
    return {"color": RUN_COLOURS[at % len(RUN_COLOURS)], "lw": 1.2,
            "ls": "-" if at < len(RUN_COLOURS) else DASHES}  # fmt: skip


def _power(
    watts: Mapping[str, PowerRecord], origins: Mapping[str, int],
    looks: Mapping[str, dict[str, Any]], at: Callable[[Whole], Floats], axes: Axes,
) -> None:  # fmt: skip
    """Draw what machines drew, each in its look, and their caps: one line where all have the same,
    else dashed in those colours. `at` is where the axis has a time since the origin of a run, in
    its ticks."""
    capped = {name: it for name, it in watts.items() if it.capped}
    longest = max(capped, key=lambda name: len(capped[name].time), default="")
    one_cap = all(_same_cap(it, capped[longest]) for it in capped.values())
    size, unit = unit_of(max(float(top(it.power_w)) for it in watts.values()))
    seconds = 0.0
    for name, record in watts.items():
        begins = np.maximum(np.append(0, record.time) - origins[name], 0)
        drew = merged(begins, record.power_w, COMPARED_STEPS)
        axes.stairs(drew.mean / size, at(drew.edges_us), baseline=None, **looks[name])
        seconds = max(seconds, float(np.diff(drew.edges_us).max()) * record.tick_s)
        if name == longest or (record.capped and not one_cap):
            edges, cap = changes(begins, np.where(np.isfinite(record.cap_w), record.cap_w, np.nan))
            look = looks[name] | {"ls": DASHES} | ({"color": INK, "lw": 1.5} if one_cap else {})
            axes.stairs(cap / size, at(edges), baseline=None, zorder=4, **look)
    axes.set_ylim(0)
    axes.yaxis.set_major_formatter(FuncFormatter(thousands))
    axes.set_ylabel(f"power ({unit})")
    words = f"; dashed: {'the cap' if one_cap else 'their caps'}" if capped else ""
    step = show_duration(seconds) if seconds >= 1 else show_time(round(seconds * 1e12))
    remark(axes, f"a step is the mean over {step} or less{words}")


def _same_cap(one: PowerRecord, longest: PowerRecord) -> bool:
    """Tells whether two machines had the same cap for as long as the first of them ran, but for the
    rounding of means over intervals."""
    n = len(one.time)
    times = np.array_equal(one.time, longest.time[:n])
    return times and np.allclose(one.cap_w, longest.cap_w[:n], rtol=1e-9, atol=0.0)


def _spread(schedules: Mapping[str, Schedule], clock: Clock, panels: Sequence[Axes]) -> None:
    """Draw over how many groups and routers running jobs are spread, and the fewest possible, of
    the first schedule."""
    edges_us = np.unique(np.linspace(0, clock.end_us, COMPARED_STEPS + 1).astype(np.int64))
    for at, schedule in enumerate(schedules.values()):
        found, origin = fragmentation(schedule), first_us(schedule)
        assert found is not None
        sums = [(panels[0], found.sum_groups, found.sum_fewest_groups),
                (panels[1], found.sum_routers, found.sum_fewest_routers)]  # fmt: skip
        for axes, actual, fewest in sums:
            for values, look in ((actual, {"color": RUN_COLOURS[at % len(RUN_COLOURS)]}),
                                 (fewest, {"color": GREY, "ls": DASHES})):  # fmt: skip
                if values is fewest and at > 0:
                    continue
                above, jobs = (
                    binned(found.time_us - origin, series, found.until_us - origin, edges_us)[0]
                    for series in (values, found.running)
                )
                mean = np.divide(above, jobs, np.full(len(jobs), np.nan), where=jobs > 0)
                axes.stairs(mean, clock.at(edges_us), baseline=None, lw=1.2, **look)
    for axes, word in zip(panels, ("groups", "routers"), strict=True):
        axes.set_ylim(0)
        axes.set_ylabel(f"{word} per running job")
        clock.dress(axes, label=word == "routers")
    remark(panels[0], "dashed: the fewest that would hold them")


def _few(clock: Clock, series: Steps, values: Whole) -> tuple[Floats, Floats, Floats | None]:
    edges = np.unique(np.linspace(0, clock.end_us, COMPARED_STEPS + 1).astype(np.int64))
    mean, most = binned(series.time_us, values, series.until_us, edges)
    return clock.at(edges), mean, most


def _rebased(series: Steps, origin_us: int) -> Steps:
    """Returns the same with time from the first submission."""
    return Steps(series.time_us - origin_us, series.busy, series.running, series.queue,
                 series.waiting_nodes, series.until_us - origin_us)  # fmt: skip


def _bars(
    axes: Axes, title: str, values: Mapping[str, float | None], text: Callable[[Any], str]
) -> None:
    heights = [value or 0.0 for value in values.values()]
    colours = [RUN_COLOURS[at % len(RUN_COLOURS)] for at in range(len(heights))]
    hatches = ["" if at < len(RUN_COLOURS) else "////" for at in range(len(heights))]
    axes.bar(range(len(heights)), heights, color=colours, width=0.66, hatch=hatches,
             edgecolor="white", lw=0)  # fmt: skip
    for at, (height, value) in enumerate(zip(heights, values.values(), strict=True)):
        axes.annotate(text(value), (at, height), (0, 2), textcoords="offset points", ha="center",
                      fontsize=8, rotation=0 if len(heights) <= 3 else 90, va="bottom")  # fmt: skip
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_xlim(-0.6, max(len(heights), 3) - 0.4)
    axes.set_ylim(0, top(heights) * (1.06 if len(heights) <= 3 else 1.25))
    axes.set_xlabel(title)
    dress(axes)
    axes.spines["left"].set_visible(False)


# -- runs of packets


def of_packets(groups: Mapping[str, Sequence[Run]]) -> Figure:
    """Returns a figure of load, latency and global links over time, and of the latencies of all
    packets; where all have jobs, also of the run time of each job; and of power, where it was
    simulated. Each group of runs has a colour."""
    every = [run for runs in groups.values() for run in runs]
    jobs = all(run.has("jobs") for run in every)
    watts = {f"{label} {at}": run.power for label, runs in groups.items()
             for at, run in enumerate(runs) if run.power is not None}  # fmt: skip
    watts = {name: record for name, record in watts.items() if len(record.time)}
    high = 7.4 + 3.2 * jobs + 3.2 * bool(watts)
    figure = canvas((11.5, high))
    shape: Any = [["load", "latency"], ["links", "tail"], *[["jobs", "jobs"]] * jobs,
                  *[["power", "power"]] * bool(watts)]  # fmt: skip
    panels = figure.subplot_mosaic(shape)
    four = [panels[name] for name in ("load", "latency", "links", "tail")]
    keys, looks = [], {}
    for (label, runs), colour in zip(groups.items(), RUN_COLOURS, strict=False):
        state = "" if all(run.complete for run in runs) else " (incomplete)"
        keys.append(Line2D([], [], color=colour, lw=2, label=label + state))
        for at, run in enumerate(runs):
            figures.overlay(run, four, colour)
            looks[f"{label} {at}"] = {"color": colour, "lw": 1.2}
    figures.finish_overlay(every, four)
    if jobs:
        _job_times(groups, panels["jobs"])
    if watts:
        _power(watts, dict.fromkeys(watts, 0), looks, lambda ps: ps / 1e6, panels["power"])
        panels["power"].set_xlabel("simulated time (µs)")
        dress(panels["power"])
    taken, made = ("received", "sent") if jobs else ("accepted", "offered")
    keys += [Line2D([], [], color=INK, lw=1.4, label=f"{taken}, mean"),
             Line2D([], [], color=INK, lw=0.9, ls=DASHES, label=f"{made}, 99 %")]  # fmt: skip
    figure.legend(keys, [str(handle.get_label()) for handle in keys],
                  loc="outside upper center", ncols=min(6, len(keys)))  # fmt: skip
    return figure


def _job_times(groups: Mapping[str, Sequence[Run]], axes: Axes) -> None:
    """Draw the run time of each job: the mean of the runs of a group, with its 95 % confidence
    interval where there are several."""
    names = [*dict.fromkeys(it.name for runs in groups.values() for run in runs
                            for it in run.job_records)][:MOST_JOBS]  # fmt: skip
    coloured = zip(groups.values(), RUN_COLOURS, strict=False)
    for at, (runs, colour) in enumerate(coloured):
        shift = (at - (len(groups) - 1) / 2) * 0.7 / max(2, len(groups))
        for place, name in enumerate(names):
            times = [it.run_time_ps for run in runs for it in run.job_records if it.name == name]
            made = interval(times)
            if made.of:
                half = 0.0 if np.isnan(made.half) else made.half / 1e6
                axes.errorbar([place + shift], [made.mean / 1e6], [half], fmt="o", ms=5, capsize=3,
                              color=colour)  # fmt: skip
    crowded = len(names) > 8
    axes.set_xticks(range(len(names)), names, rotation=30 if crowded else 0,
                    ha="right" if crowded else "center")  # fmt: skip
    from_zero(axes)
    axes.set_ylabel("run time of jobs (µs)")
    dress(axes)


# -- files


def draw_runs(groups: Mapping[str, Mapping[str, Run]], path: Path) -> None:
    """Draw groups of runs over each other, by the label of each group and of each run in it, in the
    format that the name of the file ends in."""
    every = {label: run for runs in groups.values() for label, run in runs.items()}
    if all(run.has("network") for run in every.values()):
        if len(groups) > len(RUN_COLOURS):
            raise Refused(f"--plot: {len(groups)} runs: at most {len(RUN_COLOURS)} can be "
                          "distinguished")  # fmt: skip
        with style():
            drawn = of_packets({label: [*runs.values()] for label, runs in groups.items()})
            save(drawn, path, path.suffix.lstrip(".").lower())
        return
    power = {label: run.power for label, run in every.items() if run.power is not None}
    draw_schedules({label: run.schedule for label, run in every.items()}, path, power)


def draw_schedules(
    schedules: Mapping[str, Schedule],
    path: str | Path,
    power: Mapping[str, PowerRecord] | None = None,
) -> None:
    """Save a comparison to a file, in the format that its name ends in: .png, .svg or .pdf. `power`
    has, by the same names, what was measured of power."""
    path = Path(path)
    check_name(path)
    if not schedules:
        raise Refused(f"{path}: no schedule to draw")
    with style():
        save(comparison(schedules, power), path)
