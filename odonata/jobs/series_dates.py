"""Places the rows of a dated series on the time of a run, by the wall clock of its trace."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from odonata.traces.clock import WallClock, clock_given
from odonata.traces.trace import Trace
from pdes.errors import Refused

PS = 10**6
"""Picoseconds of a microsecond."""


class Row(NamedTuple):
    """One step as it was given: where, and since when, as text, and as ps since time 0 of the run
    or as a date."""

    place: str
    text: str
    ps: int
    date: datetime | None
    value: float

    @property
    def scale(self) -> str:
        """What its time counts from, in words."""
        if self.date is None:
            return "time"
        return "date" if self.date.tzinfo else "date without a zone"


class Period(NamedTuple):
    """When a run of jobs takes place: the wall clock of its trace, None where nobody tells its
    date, and the last submission, in us."""

    clock: WallClock | None
    last_us: int

    @classmethod
    def of(cls, trace: Trace) -> Period:
        return cls(trace.clock, int(trace.submit_us[-1]))

    @classmethod
    def beginning(cls, first: Row) -> Period:
        """Returns that of a series alone, whose time 0 is the date of its first row."""
        try:
            return cls(clock_given(None, first.text, None), 0)
        except ValueError as error:
            raise Refused(f"{first.place}: {first.text!r}: {error}") from None

    def words(self) -> str:
        """Returns the first and the last date."""
        assert self.clock is not None
        return _range(self.clock, 0, self.last_us)


def placed(rows: Sequence[Row], period: Period | None) -> list[Row]:
    """Returns dated rows with their place on the time of a run, which may be before its beginning.
    A row whose local time clocks skip stands where they do, and is left out where another is
    there. `period` None: the run has no dates."""
    first = rows[0]
    if period is None:
        raise Refused(f"{first.place}: {first.text!r} is a date, and only a run of jobs has dates, "
                      'with fidelity = "job": give times, as 20 us')  # fmt: skip
    clock = period.clock
    if clock is None:
        raise Refused(f"{first.place}: {first.text!r} is a date, and nothing tells that of the "
                      "trace: give the date of its time 0, as trace.epoch (--epoch) = "
                      f'"{first.text}"')  # fmt: skip
    found: list[Row] = []
    before, skipped = None, False
    for row in rows:
        assert row.date is not None
        try:
            instant = clock.instant_us(row.date, before)
        except ValueError as error:
            raise Refused(f"{row.place}: {row.text!r} {error}") from None
        if skipped and instant == before:
            found.pop()
        skipped, before = clock.skips(row.date), instant
        found.append(row._replace(ps=(instant - clock.begin_us) * PS))
    return found


def overlapping(rows: Sequence[Row], period: Period, hold: bool) -> list[Row]:
    """Returns placed rows that say what holds from the beginning of the run on; refused where they
    do not. With `hold` the first value holds before its date, and the last one after its own."""
    first, last = rows[0], rows[-1]
    clock = period.clock
    assert clock is not None
    ours = _range(clock, first.ps // PS, last.ps // PS)
    if first.ps > period.last_us * PS or (last.ps < 0 and not hold):
        raise Refused(f"{first.place}: its dates, {ours}, and those of the trace, "
                      f"{period.words()} ({clock.name}), have no time in common: give the values "
                      "of those days, or another date of the trace's time 0, trace.epoch "
                      "(--epoch)")  # fmt: skip
    if first.ps <= 0:
        return [*rows]
    if not hold:
        raise Refused(f"{first.place}: its dates, {ours}, begin after those of the trace, "
                      f"{period.words()} ({clock.name}), and nothing is known before them: give "
                      'the value since then, or let the first one hold with gaps = "hold"'
                      )  # fmt: skip
    return [first._replace(ps=0), *rows[1:]]


def space(early: Row, late: Row) -> int:
    """Returns the time between two placed rows, in ps: by the clocks where that is less, so that
    rows at every hour of the day are evenly spaced when an hour is skipped or comes twice."""
    apart = late.ps - early.ps
    if early.date is None or late.date is None or early.date.tzinfo or late.date.tzinfo:
        return apart
    shown = late.date - early.date
    us = (shown.days * 86400 + shown.seconds) * 10**6 + shown.microseconds
    return min(apart, us * PS) if us > 0 else apart


def gaps_of(rows: Sequence[Row]) -> tuple[list[int], int]:
    """Returns the places of rows before which others are missing, and how far rows are apart, in
    ps: most of them evenly, and these whole multiples of that; no place where they are not."""
    spaces = [space(early, late) for early, late in pairwise(rows)]
    least = min(spaces, default=0)
    even = spaces.count(least)
    if even < 2 or 2 * even <= len(spaces) or any(each % least for each in spaces):
        return [], least
    return [place for place, each in enumerate(spaces, 1) if each > least], least


def _range(clock: WallClock, begin_us: int, end_us: int) -> str:
    return " to ".join(clock.words(np.array([begin_us, end_us], np.int64)))
