"""Values that change over time in steps: a power cap, a price, a carbon intensity."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from pdes.clock import LATEST


@dataclass(frozen=True)
class Steps:
    """A value over time: `levels[i]` holds from `begins[i]`, in ticks of the model, until
    `begins[i + 1]`; the last one for ever. The first begins at 0. A level may be infinite: that of
    a cap where there is none."""

    begins: tuple[int, ...]
    levels: tuple[float, ...]

    def __post_init__(self) -> None:
        begins, levels = self.begins, self.levels
        if not begins or begins[0] != 0 or len(begins) != len(levels):
            raise ValueError("steps begin at time 0, and have a level each")
        if any(late <= early for early, late in pairwise(begins)):
            raise ValueError("the times of steps are ascending")
        if begins[-1] > LATEST or not all(level > -math.inf for level in levels):
            raise ValueError(f"the times of steps are at most {LATEST:,}, the levels numbers")

    @classmethod
    def of(cls, times: Sequence[int] | Any, values: Sequence[float] | Any) -> Steps:
        """Returns the steps of two sequences or arrays."""
        return cls(tuple(map(int, times)), tuple(map(float, values)))

    @classmethod
    def constant(cls, value: float) -> Steps:
        """Returns one value that holds for ever."""
        return cls((0,), (float(value),))

    @cached_property
    def times(self) -> npt.NDArray[np.int64]:
        """When each value begins, as an array that is only read."""
        return _read_only(np.array(self.begins, np.int64))

    @cached_property
    def values(self) -> npt.NDArray[np.float64]:
        """The values, as an array that is only read."""
        return _read_only(np.array(self.levels, np.float64))

    @property
    def changes(self) -> tuple[int, ...]:
        """The times after 0 at which another value begins."""
        return self.begins[1:]

    @property
    def least(self) -> float:
        """The least value of all times."""
        return min(self.levels)

    @property
    def most(self) -> float:
        """The largest value of all times."""
        return max(self.levels)

    def at(self, time: int) -> float:
        """Returns the value at a time, that of a step from the tick on in which it begins."""
        if time < 0:
            raise ValueError(f"time = {time}: steps are known from 0 on")
        return self.levels[bisect_right(self.begins, time) - 1]

    def between(self, t0: int, t1: int) -> Iterator[tuple[int, int, float]]:
        """Yields (begin, end, value) of each step between two times, cut off at these."""
        _require_span(t0, t1)
        place = bisect_right(self.begins, t0) - 1
        while t0 < t1:
            end = self.begins[place + 1] if place + 1 < len(self.begins) else t1
            yield t0, min(end, t1), self.levels[place]
            t0, place = end, place + 1

    def integral(self, t0: int, t1: int) -> float:
        """Returns the sum of value times ticks between two times. Each product is rounded, and the
        sum of them once (`math.fsum`), in whatever order they are."""
        return math.fsum(value * (end - begin) for begin, end, value in self.between(t0, t1))

    def integral_with(self, times: Any, levels: Any, t0: int, t1: int) -> float:
        """Returns the integral of the product with other steps, given as two arrays: level i holds
        from time i until the next, the last one to the end; of equal times the last one counts.

        A price per kWh with a power in W gives, over ticks per hour and over 1000, what it costs.
        """
        _require_span(t0, t1)
        times, levels = np.asarray(times, np.int64), np.asarray(levels, np.float64)
        if times.ndim != 1 or times.shape != levels.shape or not len(times):
            raise ValueError("the other steps are two arrays of the same length, not empty")
        if times[0] > t0 or (times[1:] < times[:-1]).any():
            raise ValueError(f"the times of the other steps ascend, from {t0} or before")
        ours, theirs = (each[slice(*np.searchsorted(each, (t0 + 1, t1)))]
                        for each in (self.times, times))  # fmt: skip
        begins = np.sort(np.concatenate(([t0], ours, theirs)), kind="stable")
        product = self.values[np.searchsorted(self.times, begins, "right") - 1]
        product = product * levels[np.searchsorted(times, begins, "right") - 1]
        return math.fsum((product * np.diff(begins, append=t1)).tolist())


def _require_span(t0: int, t1: int) -> None:
    if not 0 <= t0 <= t1:
        raise ValueError(f"from {t0} to {t1}: a span begins at 0 or later, and ends after that")


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.flags.writeable = False
    return array
