"""The nodes that jobs had, as ranges.

Where nodes were only counted, ranges are of virtual nodes: whoever gets nodes gets the lowest
numbers that are free.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from odonata.jobs.schedule import Schedule
from odonata.results.schedule_series import LABELS_AT_ONCE, steps
from odonata.traces.trace import Whole
from pdes.jit import entry, kernel


@dataclass(frozen=True, eq=False)
class Ranges:
    """The nodes of every segment as ranges, ascending: those of segment s are at positions
    `first[s]` to `first[s + 1]` of `low` and `high`, which is the last node of a range."""

    first: Whole
    low: Whole
    high: Whole
    virtual: bool
    """Whether these are virtual nodes, as nodes were only counted."""


def ranges(schedule: Schedule) -> Ranges:
    """Returns the nodes of every segment."""
    if schedule.labels is None:
        return _virtual(schedule)
    sizes = schedule.held
    ends = np.cumsum(sizes)
    counts, lows, highs = [], [], []
    begin = 0
    while begin < len(sizes):
        before = int(ends[begin - 1]) if begin else 0
        beyond = max(begin + 1, int(np.searchsorted(ends, before + LABELS_AT_ONCE, "right")))
        segment = np.repeat(np.arange(beyond - begin), sizes[begin:beyond])
        stride = schedule.nodes + 1  # so that no range reaches into the next segment
        keys = np.sort(segment * stride + schedule.labels[before : ends[beyond - 1]], kind="stable")
        breaks = np.diff(keys) != 1
        starts = np.flatnonzero(np.concatenate(([True], breaks)))
        stops = np.flatnonzero(np.concatenate((breaks, [True])))
        of, low = np.divmod(keys[starts], stride)
        counts.append(np.bincount(of, minlength=beyond - begin))
        lows.append(low)
        highs.append(keys[stops] % stride)
        begin = beyond
    first = np.concatenate([np.zeros(1, np.int64), *counts]).cumsum()
    none = np.zeros(0, np.int64)
    return Ranges(first, np.concatenate([none, *lows]), np.concatenate([none, *highs]), False)


def _virtual(schedule: Schedule) -> Ranges:
    """Returns the virtual nodes of every segment. They go beyond the size of the machine only where
    a schedule that was recorded elsewhere holds more than there are."""
    begins, ends = np.array(schedule.segment_from_us), np.array(schedule.segment_to_us)
    ends[ends < 0] = np.iinfo(np.int64).max
    sizes = schedule.held
    instant = sizes[begins == ends]
    most = max(schedule.nodes, int(steps(schedule).busy.max(initial=0)))
    most += int(instant.max(initial=0))  # they are there in no step
    by_end = np.flatnonzero(begins < ends)
    by_end = by_end[np.argsort(ends[by_end], kind="stable")]
    first = np.zeros(len(sizes) + 1, np.int64)
    out = np.empty((2 * len(sizes) + 16, 2), np.int64)
    free = np.empty((most + 2, 2), np.int64)
    free[0] = 0, most - 1
    state = np.array([0, 0, 1 if most else 0])
    while seat(begins, ends, sizes, by_end, first, out, free, state):
        out = np.concatenate((out, np.empty_like(out)))
    low, high = out[: first[-1]].T.copy()
    return Ranges(first, low, high, True)


@entry
def seat(
    begins: Any, ends: Any, sizes: Any, by_end: Any, first: Any, out: Any, free: Any, state: Any
) -> int:
    """Give each segment the lowest virtual nodes that are free when it begins, as ranges in `out`
    from `first` on. Returns 1 where there is no room in `out`; then it goes on with more.

    `free` has the free ranges, the lowest at the end, so that taking from it moves nothing.
    `state`: the next segment, the next of those in order of their end, the number of free ranges.
    """
    segment, over, count = state[0], state[1], state[2]
    while segment < len(sizes):
        while over < len(by_end) and ends[by_end[over]] <= begins[segment]:
            gone = by_end[over]
            for at in range(first[gone], first[gone + 1]):
                count = _free(free, count, out[at, 0], out[at, 1])
            over += 1
        state[0], state[1], state[2] = segment, over, count
        if first[segment] + count > len(out):
            return 1
        at, left = first[segment], sizes[segment]
        while left > 0 and count > 0:
            low, high = free[count - 1, 0], free[count - 1, 1]
            taken = min(left, high - low + 1)
            out[at, 0], out[at, 1] = low, low + taken - 1
            at += 1
            left -= taken
            if low + taken > high:
                count -= 1
            else:
                free[count - 1, 0] = low + taken
        first[segment + 1] = at
        if ends[segment] == begins[segment]:
            for back in range(first[segment], at):
                count = _free(free, count, out[back, 0], out[back, 1])
        segment += 1
    state[0], state[1], state[2] = segment, over, count
    return 0


@kernel
def _free(free: Any, count: int, low: int, high: int) -> int:
    """Add a range to those that are free, joined to its neighbours. Returns how many there are."""
    before, after = 0, count  # free[before] is the first one below the range
    while before < after:
        middle = (before + after) // 2
        if free[middle, 0] > low:
            before = middle + 1
        else:
            after = middle
    joins_above = before > 0 and free[before - 1, 0] == high + 1
    joins_below = before < count and free[before, 1] == low - 1
    if joins_above and joins_below:
        free[before - 1, 0] = free[before, 0]
        for at in range(before, count - 1):
            free[at, 0], free[at, 1] = free[at + 1, 0], free[at + 1, 1]
        return count - 1
    if joins_above:
        free[before - 1, 0] = low
        return count
    if joins_below:
        free[before, 1] = high
        return count
    for at in range(count, before, -1):
        free[at, 0], free[at, 1] = free[at - 1, 0], free[at - 1, 1]
    free[before, 0], free[before, 1] = low, high
    return count + 1
