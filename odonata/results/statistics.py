"""Means of runs, their confidence intervals, and which differences are significant.

Runs that differ only in their seed are a sample. `interval` gives the mean of a figure over them,
and limits between which the true mean is with this confidence: Student's t, which is exact where
values are normally distributed and good where they are means over many packets; or the bootstrap
(bias-corrected and accelerated, Efron 1987), which assumes no distribution but is too narrow for
fewer than some twenty values.

Runs of replicates of one trace (`odonata.traces.windows`) are not independent: they tell how far
the figure of that trace may be from the truth, and their own spread is the interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

METHODS = ("t", "bootstrap")
"""How the interval of a mean of independent runs is computed."""
RESAMPLED = "resampled"
"""The interval of a figure that replicates of one trace have (`trace.resample`)."""
RESAMPLES = 10_000
SEED = 20_210_517
"""The seed of the bootstrap: the same values have the same interval."""
CONFIDENCE = 0.95
KEPT = 100_000
"""Intervals that are kept, as a table, a page and a picture ask for the same ones."""
DRAWN = 2**20
"""Values that the bootstrap draws at a time."""
DRAWS = 400
"""How often the moving-block bootstrap draws a series anew."""

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]


class Interval(NamedTuple):
    """A mean and its confidence interval. `of` is how many values it is the mean of; with fewer
    than two there is no interval, and with none no mean: these are NaN."""

    mean: float
    low: float
    high: float
    of: int

    @property
    def half(self) -> float:
        """Returns half of its width: the number behind ±."""
        return (self.high - self.low) / 2

    @property
    def excludes_zero(self) -> bool:
        """Tells whether the mean is significantly different from 0, as far as is known."""
        return self.low > 0 or self.high < 0


def known(values: Sequence[float | None]) -> Floats:
    """Returns the values that there are: neither None nor NaN."""
    found = np.array([math.nan if value is None else value for value in values], np.float64)
    return found[~np.isnan(found)]


def interval(
    values: Sequence[float | None], confidence: float = CONFIDENCE, method: str = "t"
) -> Interval:
    """Returns the mean of those values that are known, and its confidence interval.

    >>> made = interval([9.0, 10.0, 11.0])
    >>> made.mean, round(made.low, 3), round(made.high, 3), made.of
    (10.0, 7.516, 12.484, 3)
    """
    return _interval(tuple(values), confidence, method)


@lru_cache(KEPT)
def _interval(values: tuple[float | None, ...], confidence: float, method: str) -> Interval:
    found = known(values)
    if not len(found):
        return Interval(math.nan, math.nan, math.nan, 0)
    mean = float(found.mean())
    if len(found) < 2:
        return Interval(mean, math.nan, math.nan, 1)
    if (found == found[0]).all():  # of which a computed mean may differ in its last digit
        return Interval(float(found[0]), float(found[0]), float(found[0]), len(found))
    if method == "bootstrap":
        return Interval(mean, *_bootstrapped(found, confidence), len(found))
    if method == RESAMPLED:
        return Interval(mean, *_of_spread(found, len(found) - 1, confidence), len(found))
    half = _quantile(len(found) - 1, confidence) * _standard_error(found)
    return Interval(mean, mean - half, mean + half, len(found))


def difference(
    first: Sequence[float | None],
    second: Sequence[float | None],
    paired: bool,
    confidence: float = CONFIDENCE,
    method: str = "t",
) -> Interval:
    """Returns the mean of `second` less that of `first`, and its interval. `paired` values, one of
    each at the same place, are of runs with the same seed: what both have in common cancels out.
    Others are compared as Welch does; the spread of replicates is their standard error."""
    if paired:
        pairs = [(a, b) for a, b in zip(first, second, strict=True) if _is(a) and _is(b)]
        return interval([b - a for a, b in pairs], confidence, method)  # type: ignore[operator]
    one, other = known(first), known(second)
    if not len(one) or not len(other):
        return Interval(math.nan, math.nan, math.nan, 0)
    apart = float(other.mean() - one.mean())
    if len(one) < 2 or len(other) < 2:
        return Interval(apart, math.nan, math.nan, min(len(one), len(other)))
    a, b = (_standard_error(of) ** 2 * (len(of) if method == RESAMPLED else 1)
            for of in (one, other))  # fmt: skip
    if a + b == 0:
        return Interval(apart, apart, apart, min(len(one), len(other)))
    part = a / (a + b)
    freedom = 1 / (part**2 / (len(one) - 1) + (1 - part) ** 2 / (len(other) - 1))
    half = _quantile(freedom, confidence) * math.sqrt(a + b)
    return Interval(apart, apart - half, apart + half, min(len(one), len(other)))


def ratio(
    first: Sequence[float | None],
    second: Sequence[float | None],
    confidence: float = CONFIDENCE,
    method: str = "t",
) -> Interval:
    """Returns the mean of `second` over `first`, seed by seed, and its interval: a slowdown, if
    `first` is the run alone."""
    return interval([b / a for a, b in zip(first, second, strict=True)  # type: ignore[operator]
                     if _is(a) and _is(b) and a != 0], confidence, method)  # fmt: skip


def moving_block(
    statistic: Callable[[Whole], Floats], count: int, confidence: float = CONFIDENCE
) -> list[Interval]:
    """Returns what `statistic` gives of a series of so many parts, such as the weeks of a trace,
    and an interval for each: it is told how many times each part counts, and that is once here.

    Parts that follow each other depend on each other, so blocks of them are drawn: the moving-block
    bootstrap (Künsch 1989, Liu & Singh 1992), where the last part is followed by the first (Politis
    & Romano 1992). A block has as many parts as the cube root of `count`, which is best for a
    variance (Hall, Horowitz & Jing 1995). An interval is as wide as the spread of what is drawn
    times the quantile of Student's t, with one degree of freedom less than there are blocks. With
    fewer than four parts there is none, nor for what most draws do not have.
    """
    found = statistic(np.ones(count, np.int64))
    if count < 4:
        return [Interval(float(value), math.nan, math.nan, count) for value in found]
    length = round(count ** (1 / 3))
    begins = np.random.default_rng(SEED).integers(0, count, (DRAWS, -(-count // length)))
    parts = (begins[:, :, None] + np.arange(length)).reshape(DRAWS, -1)[:, :count] % count
    drawn = np.array([statistic(np.bincount(row, minlength=count)) for row in parts])
    made = []
    for value, column in zip(found.tolist(), drawn.T, strict=True):
        of = known(column)
        limits = (math.nan, math.nan)
        if len(of) > DRAWS / 2 and not math.isnan(value):
            limits = _of_spread(of, count / length - 1, confidence, value)
        made.append(Interval(value, *limits, count))
    return made


def _is(value: float | None) -> bool:
    return value is not None and not math.isnan(value)


def _standard_error(values: Floats) -> float:
    return float(values.std(ddof=1)) / math.sqrt(len(values))


def _quantile(freedom: float, confidence: float) -> float:
    """Returns the quantile of Student's t for an interval with two equal tails."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + confidence) / 2))


def _of_spread(
    values: Floats, freedom: float, confidence: float, centre: float | None = None
) -> tuple[float, float]:
    """Returns limits about a figure, or about the mean of these values of it, which were drawn anew
    from the same data: their spread is the standard error of the figure (Künsch 1989), and does not
    become less with more of them. Of figures above 0 it is that of logarithms, as waits err by a
    factor and not by a sum."""
    positive = bool((values > 0).all() and (centre is None or centre > 0))
    scale = np.log(values) if positive else values
    if centre is None:
        centre = float(scale.mean())
    elif positive:
        centre = math.log(centre)
    half = _quantile(freedom, confidence) * float(scale.std(ddof=1))
    low, high = centre - half, centre + half
    return (math.exp(low), math.exp(high)) if positive else (low, high)


def _bootstrapped(values: Floats, confidence: float) -> tuple[float, float]:
    from scipy.special import ndtr, ndtri

    means, mean = np.sort(_resampled_means(values)), values.mean()
    same = np.abs(means - mean) <= 1e-12 * np.abs(values).max()  # but for the last digits
    below = np.count_nonzero((means < mean) & ~same) + 0.5 * np.count_nonzero(same)
    bias = ndtri(below / RESAMPLES)
    left_out = (values.sum() - values) / (len(values) - 1)
    skew: Any = left_out.mean() - left_out
    spread = (skew**2).sum() ** 1.5
    acceleration = (skew**3).sum() / (6 * spread) if spread else 0.0
    tails = ndtri(np.array([(1 - confidence) / 2, (1 + confidence) / 2]))
    parts = ndtr(bias + (bias + tails) / (1 - acceleration * (bias + tails)))
    low, high = np.quantile(means, parts)
    return float(low), float(high)


def _resampled_means(values: Floats) -> Floats:
    """Returns the means of samples of the same size, drawn from the values with replacement; some
    samples at a time, as those of many seeds would not fit into memory."""
    dice, size = np.random.default_rng(SEED), len(values)
    rows = max(1, DRAWN // size)
    return np.concatenate([
        values[dice.integers(0, size, (min(rows, RESAMPLES - at), size))].mean(axis=1)
        for at in range(0, RESAMPLES, rows)
    ])  # fmt: skip
