"""The wall clock of a trace: which date its time 0 has, and what clocks there show at other times.

Three things may be known. The instant of time 0, and the time zone in which clocks are read: then
any date has its place. The instant, and no zone: then dates need a zone of their own. Or what local
clocks showed at time 0 and no zone, as in what `sacct` prints: then dates without a zone have their
place, as if clocks were never changed.

**When clocks are changed.** A local time that clocks skip stands for the moment at which they skip
it. Of a local time that comes twice the first is meant, unless that is not after what stands before
it in its file.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

import numpy as np

from odonata.traces.trace import SECOND, Whole

DAY = 86400
"""Seconds."""
QUARTER = 900
"""Seconds: clocks are changed at whole quarters of an hour."""
EARLIEST, LATEST = 1971, 8999
"""The years in which a trace may begin; a thousand years, the longest time of one, go on top."""
LATEST_US = (datetime(LATEST, 12, 31) - datetime(1970, 1, 1)).days * DAY * SECOND
"""The latest time 0 of a trace, since 1970."""
SINCE_1970_US = 315_532_800 * SECOND
"""The time of 1980 since 1970. A trace whose first job is as late has times that count from 1970:
no log has ten years without a job before its first."""
UNKNOWN_ZONE = "local time"
"""The name of a zone that nobody told."""

_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])([0-9]{2}):?([0-9]{2})(?::?([0-9]{2}))?", re.ASCII)
_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True)
class WallClock:
    """The date and the time of day of every time of a trace."""

    begin_us: int
    """Time 0 of the trace, in us since the beginning of 1970: of UTC or, where it is `local`, as
    clocks there showed it."""
    zone: str | None = None
    """The time zone in which clocks are read: a name of the IANA, or an offset as +01:00; None
    where nobody tells it."""
    local: bool = False
    """Whether only what clocks showed is known, and not in which zone."""

    @property
    def name(self) -> str:
        """Returns the name of the zone in which times are shown."""
        return self.zone or (UNKNOWN_ZONE if self.local else "UTC")

    @property
    def tz(self) -> tzinfo:
        """Returns the zone in which times are shown."""
        return zone_of(self.zone) if self.zone else UTC

    def local_s(self, times_us: Whole) -> Whole:
        """Returns what clocks show at these times of the trace, in seconds since a midnight: that
        of 1 January 1970."""
        seconds = (times_us + self.begin_us) // SECOND
        quarters, of = np.unique(seconds // QUARTER, return_inverse=True)
        shift = [self._shift_s(int(quarter) * QUARTER) for quarter in quarters]
        found: Whole = seconds + np.array(shift, np.int64)[of.ravel()]
        return found

    def _shift_s(self, at_s: int) -> int:
        there = (_EPOCH + timedelta(seconds=at_s)).replace(tzinfo=UTC).astimezone(self.tz)
        return int((there.utcoffset() or timedelta()).total_seconds())

    def words(self, times_us: Whole) -> list[str]:
        """Returns dates and times of day: "1993-10-01 00:00"."""
        return [f"{_EPOCH + timedelta(seconds=at):%Y-%m-%d %H:%M}"
                for at in self.local_s(times_us).tolist()]  # fmt: skip

    def dates(self, times_us: Whole) -> list[str]:
        """Returns dates as ISO 8601 has them, to the second, with the offset of the zone where one
        is known: "1993-10-01T00:00:03-07:00"."""
        seconds = (times_us + self.begin_us) // SECOND
        shown = self.local_s(times_us)
        shifts = (shown - seconds).tolist()
        ends = {it: "" if self.local else _offset(timedelta(seconds=it)) for it in {*shifts}}
        return [f"{(_EPOCH + timedelta(seconds=at)).isoformat()}{ends[shift]}"
                for at, shift in zip(shown.tolist(), shifts, strict=True)]  # fmt: skip

    def date(self, time_us: int) -> str:
        """Returns the same of one time."""
        return self.dates(np.array([time_us], np.int64))[0]

    def moved(self, by_us: int) -> WallClock:
        """Returns the clock of the same trace when all its times are earlier by so much."""
        return replace(self, begin_us=self.begin_us + by_us)

    def instant_us(self, given: datetime, after_us: int | None = None) -> int:
        """Returns the place of a date on this clock, in us since the beginning of 1970, as
        `begin_us` counts; of a time that comes twice, the first that is after `after_us`. A
        ValueError says what would have to be known."""
        if given.tzinfo is not None and self.local:
            raise ValueError("has a time zone, and the dates of the trace have none: give the "
                             "zone of the trace, trace.timezone (--timezone)")  # fmt: skip
        if given.tzinfo is None and not self.local and self.zone is None:
            raise ValueError("has no time zone, and the trace does not tell its own: give the "
                             "zone of the trace, trace.timezone (--timezone), or write a zone "
                             "into each date")  # fmt: skip
        return instant_us(given, None if self.local else self.tz, after_us)

    def skips(self, given: datetime) -> bool:
        """Tells whether a date is one that clocks skip."""
        return not self.local and given.tzinfo is None and skips(given, self.tz)


def clock_given(told: WallClock | None, epoch: str | None, zone: str | None) -> WallClock | None:
    """Returns the clock of a trace that tells of one itself, or of none, with what a user gives:
    the date of its time 0, and its zone."""
    given = None if zone is None else str(zone_of(zone))
    zone = given or (told.zone if told else None)
    if epoch is not None:
        begin = parse_epoch(epoch)
        if begin.tzinfo is None:
            known = zone_of(zone) if zone else None
            return WallClock(instant_us(begin, known), zone, local=known is None)
        return WallClock(instant_us(begin, None), zone or str(timezone_of(begin)))
    if told is None or given is None:
        return told
    if told.local:
        begin = _EPOCH + timedelta(microseconds=told.begin_us)
        return WallClock(instant_us(begin, zone_of(given)), given)
    return replace(told, zone=given)


def timezone_of(given: datetime) -> tzinfo:
    """Returns the zone of a date that has one: the offset that it has at all times."""
    return timezone(given.utcoffset() or timedelta())


def _offset(offset: timedelta) -> str:
    """Returns an offset from UTC as ISO 8601 has it: +01:00."""
    text = datetime(2000, 1, 1, tzinfo=timezone(offset)).isoformat()
    return text[19:]


# -- text


@cache
def zone_of(name: str) -> tzinfo:
    """Returns a time zone by its name in the database of the IANA, or by its offset from UTC; a
    ValueError says what is accepted."""
    if found := _OFFSET.fullmatch(name):
        sign, *parts = found.groups()
        hours, minutes, seconds = (int(part or 0) for part in parts)
        offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        if offset < timedelta(days=1) and minutes < 60 and seconds < 60:
            return timezone(-offset if sign == "-" else offset)
    elif name in ("Z", "UTC"):
        return UTC
    else:
        try:
            return ZoneInfo(name)
        except (OSError, ValueError, KeyError):
            pass
    near = difflib.get_close_matches(name, sorted(available_timezones()), 1)
    meant = f"; did you mean {near[0]}?" if near else ""
    raise ValueError("not a time zone: a name of the IANA's database, as Europe/Stockholm, or an "
                     f"offset from UTC, as +01:00{meant}")  # fmt: skip


def parse_date(given: str | date) -> datetime:
    """Returns a date of ISO 8601, with its zone if it has one; a ValueError says what is
    accepted."""
    text = given if isinstance(given, str) else given.isoformat()
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError("not a date: one like 2026-03-02T00:00, or 2026-03-02T00:00+01:00 with a "
                         "time zone") from None  # fmt: skip
    if not 1 < found.year <= LATEST:
        raise ValueError(f"a date of the years 2 to {LATEST:,} is needed")
    return found


def parse_epoch(given: str | date) -> datetime:
    """Returns the same of a date at which a trace may begin."""
    found = parse_date(given)
    if found.year < EARLIEST:
        raise ValueError(f"a trace begins in the years {EARLIEST} to {LATEST}")
    return found


# -- local times and instants


def instant_us(given: datetime, zone: tzinfo | None, after_us: int | None = None) -> int:
    """Returns a date in us since the beginning of 1970, UTC; without any zone, as its clocks have
    it. Of a local time that comes twice it is the first that is after `after_us`; one that clocks
    skip is the moment at which they do."""
    if given.tzinfo is not None:
        return _us(given.replace(tzinfo=None)) - _shift_us(given)
    if zone is None:
        return _us(given)
    early, late = (_shift_us(given.replace(tzinfo=zone, fold=fold)) for fold in (0, 1))
    there = _us(given)
    if early == late:
        return there - early
    if early > late:  # it comes twice
        first = there - early
        return first if after_us is None or first > after_us else there - late
    # They skip it between these, at a whole second.
    low, high = (there - late) // SECOND * SECOND, -(-(there - early) // SECOND) * SECOND
    while high - low > SECOND:
        middle = low + (high - low) // (2 * SECOND) * SECOND
        now = (_EPOCH + timedelta(microseconds=middle)).replace(tzinfo=UTC).astimezone(zone)
        low, high = (low, middle) if _shift_us(now) == late else (middle, high)
    return high


def skips(given: datetime, zone: tzinfo) -> bool:
    """Tells whether clocks of a zone skip a local time."""
    early, late = (_shift_us(given.replace(tzinfo=zone, fold=fold)) for fold in (0, 1))
    return early < late


def _us(given: datetime) -> int:
    since = given - _EPOCH
    return (since.days * DAY + since.seconds) * SECOND + since.microseconds


def _shift_us(given: datetime) -> int:
    offset = given.utcoffset() or timedelta()
    return (offset.days * DAY + offset.seconds) * SECOND + offset.microseconds
