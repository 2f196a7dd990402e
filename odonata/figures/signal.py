"""A regulation signal as one picture: its first hour, which values it has, how long it remembers,
and how fast it changes; beside the default, and what is known of a day of PJM's RegD."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, PercentFormatter

from odonata.experiment.units import show_duration
from odonata.figures.style import (
    BLUE,
    DASHES,
    GREEN,
    GREY,
    INK,
    ORANGE,
    Floats,
    canvas,
    cumulated,
    dress,
    save,
    style,
    title,
)
from odonata.jobs.series import Steps
from odonata.jobs.signal import INTERVAL_S, REGD, correlation, synthetic

HOUR_S = 3600.0
DEFAULT_H = 144.0
"""How much of the default is drawn: its curves then hardly depend on the seed."""
BINS = np.linspace(-1.0, 1.0, 41)
LAGS_S = (0.0, 2.0, *range(5, 301, 5))
LEAST_RAMP = 1e-5
"""What changes more slowly is drawn here, 1/s: most of a signal that stays where it is."""
THIS: dict[str, Any] = {"color": BLUE, "lw": 1.3}
DEFAULT: dict[str, Any] = {"color": ORANGE, "lw": 1.3, "ls": DASHES}
REAL: dict[str, Any] = {"color": GREEN, "ls": "", "marker": "o", "ms": 6, "mec": "white"}
LONGEST_NAME = 60


class Signal(NamedTuple):
    """When each value begins, in us, the values, and when the last one ends."""

    times: Any
    values: Floats
    until_us: int

    @property
    def spans(self) -> Floats:
        """Returns for how long each value holds, in s."""
        found: Floats = np.diff(self.times, append=self.until_us) / 1e6
        return found

    @property
    def ramps(self) -> Floats:
        """Returns the size of each step, per second."""
        found: Floats = np.abs(np.diff(self.values)) / (np.diff(self.times) / 1e6)
        return found


def usual() -> Signal:
    """Returns some days of the signal that is made by default."""
    values = synthetic(1, round(DEFAULT_H * HOUR_S / INTERVAL_S))
    times = np.arange(len(values)) * round(INTERVAL_S * 1e6)
    return Signal(times, values, int(times[-1]) + round(INTERVAL_S * 1e6))


def first_hour(it: Signal, axes: Axes) -> None:
    """Draw the signal over its first hour, or all of it."""
    end_s = min(HOUR_S, float(it.until_us) / 1e6)
    shown = it.times / 1e6 < end_s
    minute = end_s > 300
    unit = 60.0 if minute else 1.0
    axes.stairs(it.values[shown], np.append(it.times[shown] / 1e6, end_s) / unit, baseline=None,
                color=BLUE, lw=1.1)  # fmt: skip
    axes.axhline(0, color=GREY, lw=0.8)
    axes.set_xlim(0, end_s / unit)
    axes.set_ylim(-1.06, 1.06)
    axes.set_xlabel("time (min)" if minute else "time (s)")
    axes.set_ylabel("signal")
    whole = it.until_us / 1e6 <= HOUR_S
    title(axes, "The signal" if whole else "The first hour")
    dress(axes)


def distribution(it: Signal, other: Signal, axes: Axes) -> None:
    """Draw for which part of the time the signal has each value; those at the ends are a bar of
    their own, at the end."""
    for one, how in ((it, THIS), (other, DEFAULT)):
        values = np.clip(one.values, -1.0, 1.0)
        parts, _ = np.histogram(values, BINS, weights=one.spans)
        axes.stairs(parts / one.spans.sum(), BINS, color=how["color"], lw=1.3,
                    ls=how.get("ls", "-"))  # fmt: skip
    axes.set_xlim(-1.03, 1.03)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.set_xlabel("signal")
    axes.set_ylabel(f"share of time, per {BINS[1] - BINS[0]:.2g}")
    title(axes, "Which values it has")
    dress(axes)


def memory(it: Signal, other: Signal, axes: Axes) -> None:
    """Draw the autocorrelation over the distance in time."""
    for one, how in ((it, THIS), (other, DEFAULT)):
        axes.plot(LAGS_S, [correlation(*one, lag) for lag in LAGS_S], **how)
    real = REGD.autocorrelation
    axes.plot([*real], [*real.values()], clip_on=False, zorder=4, **REAL)
    axes.axhline(0, color=GREY, lw=0.8)
    axes.set_xlim(0, LAGS_S[-1])
    axes.set_ylim(top=1.03)
    axes.set_xticks(range(0, 301, 60))
    axes.set_xlabel("distance in time (s)")
    axes.set_ylabel("autocorrelation")
    title(axes, "How long it remembers")
    dress(axes)


def steps(it: Signal, other: Signal, axes: Axes) -> None:
    """Draw the distribution of the sizes of steps between samples, per second."""
    for one, how in ((it, THIS), (other, DEFAULT)):
        if len(one.ramps):
            axes.step(*cumulated(np.maximum(one.ramps, LEAST_RAMP)), where="post", **how)
    real = (REGD.ramp_median, REGD.ramp_p95, REGD.ramp_most)
    axes.plot(real, (0.5, 0.95, 1.0), clip_on=False, zorder=4, **REAL)
    axes.set_xscale("log")
    axes.set_xlim(left=1e-4)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_ylim(0, 1.03)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.set_xlabel("step per second (1/s)")
    axes.set_ylabel("steps at or below")
    title(axes, "How fast it changes")
    dress(axes)


def picture(name: str, series: Steps, until_us: int) -> Figure:
    """Returns the picture of a signal whose ticks are us; within `style`."""
    figure = canvas((12.0, 7.0))
    parts: Any = figure.subfigures(2, 1, height_ratios=(1.0, 1.15), hspace=0.04)
    above, below = parts
    it, other = Signal(series.times, series.values, until_us), usual()
    first_hour(it, above.subplots())
    left, middle, right = below.subplots(1, 3)
    distribution(it, other, left)
    memory(it, other, middle)
    steps(it, other, right)
    middle.plot([], [], label="this one", **THIS)
    middle.plot([], [], label="the default, synthetic", **DEFAULT)
    middle.plot([], [], label="a day of PJM's RegD", **REAL)
    middle.legend(loc="upper right", handlelength=1.8)
    shown = name if len(name) <= LONGEST_NAME else f"…{name[1 - LONGEST_NAME :]}"
    span = show_duration((until_us - int(series.times[0])) / 1e6)
    values = "value" if len(series.levels) == 1 else "values"
    figure.suptitle(f"{shown}: {span}, {len(series.levels):,} {values}", x=0.01, ha="left",
                    fontsize=12, fontweight="bold", color=INK)  # fmt: skip
    return figure


def write(name: str, series: Steps, until_us: int, path: Path) -> None:
    """Save the picture of a signal to a file, in the format that its name ends in: .png, .svg or
    .pdf."""
    with style():
        save(picture(name, series, until_us), path)
