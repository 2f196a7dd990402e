"""Simulated schedules beside the recorded one: waits and their quantiles, errors by size of job,
waits week by week, and nodes in use."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, PercentFormatter

from odonata.figures.clock import Clock, clock_of
from odonata.figures.schedule import SHORTEST_S, room_for, wait_curve
from odonata.figures.style import (
    DASHES,
    INK,
    RUN_COLOURS,
    Floats,
    check_name,
    dress,
    remark,
    save,
    style,
    thousands,
)
from odonata.jobs.schedule import Schedule
from odonata.results.recorded import NAME, Reproduction, recorded
from odonata.results.schedule_series import binned, steps
from odonata.traces.trace import SECOND, UNKNOWN
from odonata.traces.windows import DAY_US

HOUR_S = 3600
RECORDED: dict[str, Any] = {"color": INK, "lw": 1.6, "ls": DASHES, "zorder": 4}


def draw_reproductions(
    schedules: Mapping[str, Schedule], found: Mapping[str, Reproduction], path: Path
) -> None:
    """Save a figure of schedules of the same trace, by name, and of how well each reproduces what
    was recorded."""
    check_name(path)
    with style():
        figure = Figure(figsize=(12.0, 9.0), facecolor="white", layout="constrained")
        FigureCanvasAgg(figure)
        parts: Any = figure.subfigures(2, 1, height_ratios=[5, 4])
        above, below = parts
        waits, quantiles, sizes = above.subplots(1, 3)
        weeks, used = below.subplots(2, 1)
        real = recorded(*_first(schedules))
        looks = {name: {"color": RUN_COLOURS[at % len(RUN_COLOURS)], "lw": 1.3}
                 for at, name in enumerate(schedules)}  # fmt: skip
        _waits(waits, schedules, looks)
        _quantiles(quantiles, found, looks)
        _errors(sizes, found, looks)
        _weeks(weeks, found, looks)
        _in_use(used, {NAME: real, **schedules}, {NAME: RECORDED, **looks}, clock_of(real))
        figure.suptitle(f"{real.trace.name}: recorded and simulated waits of "
                        f"{len(real.trace):,} jobs", x=0.01, ha="left", weight="bold")  # fmt: skip
        waits.legend(loc="lower right")
        save(figure, path)


def _first(schedules: Mapping[str, Schedule]) -> tuple[Any, int]:
    one = next(iter(schedules.values()))
    return one.trace, one.nodes


def _waits(axes: Axes, schedules: Mapping[str, Schedule], looks: Mapping[str, Any]) -> None:
    """Draw the part of jobs that wait for at most some time."""
    for name, schedule in schedules.items():
        trace = schedule.trace
        there = (trace.wait_us != UNKNOWN) & (schedule.start_us >= 0)
        if name == next(iter(schedules)):
            real = np.maximum(trace.wait_us[there] / SECOND, SHORTEST_S)
            wait_curve(axes, real, {**RECORDED, "label": NAME}, narrow=True)
        made = (schedule.start_us - trace.submit_us)[there] / SECOND
        wait_curve(axes, np.maximum(made, SHORTEST_S), {**looks[name], "label": name}, narrow=True)


def _quantiles(axes: Axes, found: Mapping[str, Reproduction], looks: Mapping[str, Any]) -> None:
    """Draw quantiles of simulated waits over those of recorded ones."""
    every = [1.0]
    for name, one in found.items():
        both = np.array([(it.recorded_s, it.simulated_s) for it in one.quantiles], np.float64)
        both = np.maximum(both, SHORTEST_S)
        axes.plot(*both.T, "o-", ms=4, **looks[name])
        every += both.ravel().tolist()
    most = max(every) * 1.4
    axes.plot([SHORTEST_S, most], [SHORTEST_S, most], **RECORDED)
    for which in "xy":
        room_for(axes, which, np.array(every), narrow=True)
    axes.set_xlabel("quantile of recorded waits")
    axes.set_ylabel("the same of simulated ones")
    dress(axes)
    labels = [it.name for it in next(iter(found.values())).quantiles]
    remark(axes, " ".join(labels))


def _errors(axes: Axes, found: Mapping[str, Reproduction], looks: Mapping[str, Any]) -> None:
    """Draw by how much mean waits are too long, by size of job, with intervals."""
    names = [it.name for it in next(iter(found.values())).by_size]
    for at, (name, one) in enumerate(found.items()):
        shift = (at - (len(found) - 1) / 2) * 0.7 / len(found)
        rows = [(names.index(it.name) + shift, it.error_s) for it in one.by_size
                if it.name in names and it.error_s is not None]  # fmt: skip
        x = np.array([place for place, _ in rows])
        values: Floats = np.array([tuple(it)[:3] for _, it in rows], np.float64) / HOUR_S
        mean, low, high = values.T
        around = np.nan_to_num(np.stack([mean - low, high - mean]))
        axes.errorbar(x, mean, around, fmt="o", ms=4, capsize=2, **looks[name])
    axes.axhline(0, **RECORDED)
    axes.set_xticks(range(len(names)), names, rotation=90 if len(names) > 6 else 0)
    axes.set_xlabel("nodes of a job")
    axes.set_ylabel("mean wait, simulated less recorded (h)")
    dress(axes)


def _weeks(axes: Axes, found: Mapping[str, Reproduction], looks: Mapping[str, Any]) -> None:
    """Draw mean waits by week of submission."""
    for at, (name, one) in enumerate(found.items()):
        x = [int(it.name) for it in one.by_week]
        if at == 0:
            real = [it.recorded_s / HOUR_S for it in one.by_week]
            axes.step(x, real, where="mid", **RECORDED)
        made = [it.simulated_s / HOUR_S for it in one.by_week]
        axes.step(x, made, where="mid", **looks[name])
    axes.set_ylim(0)
    axes.set_xlabel("week of submission")
    axes.set_ylabel("mean wait (h)")
    axes.xaxis.set_major_formatter(FuncFormatter(thousands))
    dress(axes)


def _in_use(
    axes: Axes, schedules: Mapping[str, Schedule], looks: Mapping[str, Any], clock: Clock
) -> None:
    """Draw the part of the nodes that is in use, day by day."""
    edges = np.arange(clock.origin_us, clock.end_us + DAY_US, DAY_US)
    for name, schedule in schedules.items():
        series = steps(schedule)
        begins = edges[edges >= series.time_us[0]]
        mean, _ = binned(series.time_us, series.busy, series.until_us, begins)
        axes.stairs(mean / schedule.nodes, clock.at(begins), baseline=None, **looks[name])
    axes.set_ylim(0)
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.set_ylabel("nodes in use, daily")
    clock.dress(axes)
