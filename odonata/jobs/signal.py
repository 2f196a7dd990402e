"""The grid's regulation signal: one that is made where nobody has a day of a real one, and what can
be said of any.

A signal is a part of the reserve, from -1 to 1, and holds from one sample to the next.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pdes.errors import Refused

Numbers = npt.NDArray[np.float64]

DEVIATION, MEMORY_S, INTERVAL_S = 0.40, (90.0, 20.0), 4.0
"""The default: the deviation that the papers print, two time constants that give about the
autocorrelation of a day of PJM's RegD, of which they print nothing, and how often their signal
changes."""
LEAST_DEVIATION, MOST_DEVIATION = 0.001, 0.999
DEVIATIONS = (f"{LEAST_DEVIATION:g} .. {MOST_DEVIATION:g}: what stays within -1 and 1 cannot "
              "deviate by more than 1, and near that it only jumps from end to end")  # fmt: skip
"""The deviations that a signal may be asked for, and why."""
DECIMALS = 6
"""The digits that are kept of a signal that is made: then the last bit of a function such as erf,
on which machines do not agree, does not matter."""
STREAM = 0x516A1
"""The part of the key of random numbers that is the signal's."""
LAGS_S = (10, 30, 60, 120, 180, 300)
"""At which distances an autocorrelation is told."""
END = 1.0 - 1e-9
"""From here on a value is at an end."""


# -- a signal that is made


def synthetic(
    seed: int,
    count: int,
    step_s: float = INTERVAL_S,
    deviation: float = DEVIATION,
    memory_s: tuple[float, float] = MEMORY_S,
) -> Numbers:
    """Returns `count` values, `step_s` apart: white noise through two first-order filters, one
    after the other, with these time constants (0: no filter), scaled and clipped to -1 and 1 so
    that the standard deviation after clipping is `deviation` and the mean 0, in theory: samples of
    some hours differ. It begins as it goes on, without a transient, and a longer signal begins with
    a shorter one of the same seed."""
    check(step_s, deviation, memory_s)
    g, h = (_gain(step_s, memory) for memory in memory_s)
    if count < 1:
        return np.zeros(0)
    rng = np.random.Generator(np.random.Philox(key=[seed, STREAM]))
    first, second, *noise = rng.standard_normal(count + 1).tolist()
    slow, both, final = _variances(g, h)
    # The first values of both filters are drawn as they are at any time: together.
    x = math.sqrt(slow) * first
    y = both / slow * x + math.sqrt(max(0.0, final - both * both / slow)) * second
    outputs = [y]
    for each in noise:
        x += g * (each - x)
        y += h * (x - y)
        outputs.append(y)
    scaled = np.array(outputs) * (_scale(deviation) / math.sqrt(final))
    found: Numbers = np.clip(scaled, -1.0, 1.0).round(DECIMALS) + 0.0
    return found


def check(step_s: float, deviation: float, memory_s: tuple[float, float]) -> None:
    """Refuse what no signal can have."""
    if not 0 < step_s < math.inf:
        raise Refused(f"interval = {step_s:g} s: more than 0")
    if not LEAST_DEVIATION <= deviation <= MOST_DEVIATION:
        raise Refused(f"deviation = {deviation:g}: {DEVIATIONS}")
    for each in memory_s:
        if not 0 <= each < math.inf:
            raise Refused(f"memory = {each:g} s: 0 s or more")


def _gain(step_s: float, memory_s: float) -> float:
    """Returns by which part of the way a filter comes nearer to its input in a step: as a resistor
    and a capacitor do, solved step by step (backward Euler), which at 4 s is nearer to RegD than
    the exponential."""
    return step_s / (memory_s + step_s)


def _variances(g: float, h: float) -> tuple[float, float, float]:
    """Returns, of white noise n of variance 1 through x += g (n - x) and y += h (x - y), where y
    goes by the new x: the variance of x, its covariance with y, and the variance of y."""
    x = g / (2.0 - g)
    both = h * x / (g + h - g * h)
    y = (h * x + 2.0 * (1.0 - h) * (1.0 - g) * both) / (2.0 - h)
    return x, both, y


def _scale(deviation: float) -> float:
    """Returns the deviation that a normal variable needs to have this one once it is clipped."""
    low, high = 0.0, 1e4
    while low < (middle := (low + high) / 2) < high:
        if _clipped(middle) < deviation * deviation:
            low = middle
        else:
            high = middle
    return high


def _clipped(scale: float) -> float:
    """Returns the variance of a normal variable of this deviation that is clipped to -1 and 1."""
    cut = 1.0 / (math.sqrt(2.0) * scale)
    inner = math.erf(cut) - 2.0 / math.sqrt(math.pi) * cut * math.exp(-cut * cut)
    return scale * scale * inner + math.erfc(cut)


# -- what can be said of a signal


@dataclass(frozen=True)
class Statistics:
    """What a signal is like. Where nothing can be said, as of the steps of a single value, it is
    nan."""

    hours: float
    """How long it is."""
    samples: int
    spacing_s: float
    """The median time between samples."""
    spacings_s: tuple[float, float]
    """The least and the longest."""
    mean: float
    deviation: float
    """The standard deviation, over time."""
    least: float
    most: float
    autocorrelation: Mapping[int, float]
    """By distance in s."""
    step_median: float
    """The size of steps from one sample to the next: the median."""
    step_p95: float
    step_most: float
    ramp_median: float
    """The same per second, 1/s."""
    ramp_p95: float
    ramp_most: float
    mileage: float
    """The sum of the sizes of all steps per hour, 1/h."""
    at_ends: float
    """The part of the time that it is at -1 or 1, or beyond."""


NAN = math.nan
REGD = Statistics(
    24.0, 43_201, 2.0, (2.0, 2.0), -0.01, 0.64, -1.006, 1.019,
    {10: 0.98, 30: 0.87, 60: 0.67, 120: 0.36, 180: 0.17, 300: 0.01}, 0.011, 0.053, 0.26, 0.011 / 2,
    0.053 / 2, 0.26 / 2, NAN, NAN,
)  # fmt: skip
"""A day of PJM's RegD, a sample every 2 s, as far as it was measured."""


def statistics(times_us: Any, values: Any, until_us: int) -> Statistics:
    """Returns what a signal is like whose values hold from their times, in us, each until the next,
    the last one until `until_us`. Means are over time, not over samples."""
    times, levels = np.asarray(times_us, np.int64), np.asarray(values, np.float64)
    if not len(times) or times.shape != levels.shape or until_us <= times[-1]:
        raise ValueError("a signal has a value for each time, one or more, and ends after the last")
    spans = np.diff(times, append=until_us).astype(np.float64)
    mean = float(np.average(levels, weights=spans))
    off = levels - mean
    variance = float(np.average(off * off, weights=spans))
    gaps_s = np.diff(times) / 1e6
    steps = np.abs(np.diff(levels))
    hours = (until_us - int(times[0])) / 3.6e9
    sizes, ramps = _sizes(steps), _sizes(steps / gaps_s)
    spacings = (float(gaps_s.min()), float(gaps_s.max())) if len(gaps_s) else (NAN, NAN)
    return Statistics(
        hours, len(levels), float(np.median(gaps_s)) if len(gaps_s) else NAN, spacings, mean,
        math.sqrt(variance), float(levels.min()), float(levels.max()),
        {lag: correlation(times, levels, until_us, lag) for lag in LAGS_S}, *sizes, *ramps,
        float(steps.sum()) / hours, float(np.average(np.abs(levels) >= END, weights=spans)),
    )  # fmt: skip


def _sizes(steps: Numbers) -> tuple[float, float, float]:
    if not len(steps):
        return NAN, NAN, NAN
    median, p95 = np.percentile(steps, (50, 95)).tolist()
    return median, p95, float(steps.max())


def correlation(times_us: Any, values: Any, until_us: int, lag_s: float) -> float:
    """Returns the autocorrelation of such a signal at a distance: exactly, over all the time at
    which there is a value then and one so much later; nan where there is none, or nothing varies.
    """
    times, levels = np.asarray(times_us, np.int64), np.asarray(values, np.float64)
    lag, begin = round(lag_s * 1e6), int(times[0])
    end = until_us - lag
    spans = np.diff(times, append=until_us).astype(np.float64)
    off = levels - np.average(levels, weights=spans)
    variance = float(np.average(off * off, weights=spans))
    if end <= begin or variance <= 1e-24:
        return NAN
    later = times - lag
    later = later[(later > begin) & (later < end)]
    cuts = np.sort(np.concatenate([times[times < end], later]), kind="stable")
    now = off[np.searchsorted(times, cuts, "right") - 1]
    then = off[np.searchsorted(times, cuts + lag, "right") - 1]
    found = np.average(now * then, weights=np.diff(cuts, append=end).astype(np.float64))
    return float(found) / variance
