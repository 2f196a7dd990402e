"""What repetitions say of a median and of a correlation: the value, and how sure it is.

The thesis prints medians of ten runs, and ratios of them. Here each repetition has a ratio of its
own, of two runs on the same nodes where there are such, and what is compared is their median. Its
interval is from order statistics, so it assumes nothing of how they are distributed: of ten values
it reaches from the second to the ninth (97.9 %). Of fewer than six there is none of 95 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from odonata.results.statistics import CONFIDENCE, Interval, known
from odonata.study.verdicts import limits


def median_of(values: Sequence[float]) -> Interval:
    """Returns the median of those values that are known, in the place of the mean, and its
    interval.

    >>> median_of([float(value) for value in range(1, 11)])
    Interval(mean=5.5, low=2.0, high=9.0, of=10)
    >>> median_of([1.0, 2.0, 4.0])
    Interval(mean=2.0, low=nan, high=nan, of=3)
    """
    found = np.sort(known(values))
    count = len(found)
    if not count:
        return Interval(math.nan, math.nan, math.nan, 0)
    outside = _outside(count)
    low, high = (found[outside - 1], found[-outside]) if outside else (math.nan, math.nan)
    return Interval(float(np.median(found)), float(low), float(high), count)


def _outside(count: int) -> int:
    """Returns which of so many values, in order, is the lower end of the interval; 0: none is."""
    tail, place = 0.0, 0
    while True:
        tail += math.comb(count, place) / 2**count
        if 2 * tail > 1 - CONFIDENCE:
            return place
        place += 1


def inside(it: Interval, low: float, high: float) -> bool:
    """Tells whether a whole interval is between two limits."""
    return bool(low < it.low and it.high < high)


def over(it: Interval, limit: float) -> bool:
    """Tells whether something is above a limit as far as is known: an interval as a whole, or the
    value where there is none. That is the direction, and no more."""
    return limits(it)[0] > limit


def less(it: Interval, by: float) -> Interval:
    """Returns an interval of what is less by so much.

    >>> less(Interval(1.5, 1.25, 2.0, 10), 1.0)
    Interval(mean=0.5, low=0.25, high=1.0, of=10)
    """
    return Interval(it.mean - by, it.low - by, it.high - by, it.of)


def times(it: Interval) -> str:
    """Returns how many times as much, with the ends of its interval.

    >>> times(Interval(1.5, 1.25, 2.0, 10)), times(Interval(2.0, math.nan, math.nan, 3))
    ('1.50 times (1.25 to 2.00)', '2.00 times')
    """
    ends = "" if math.isnan(it.low) else f" ({it.low:.2f} to {it.high:.2f})"
    return f"{it.mean:.2f} times{ends}"
