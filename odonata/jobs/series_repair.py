"""Faults in the file of a signal that can be repaired: values that are missing, repeated, or beyond
-1 and 1. Each is refused with its line, or repaired and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import pairwise

from odonata.jobs.series_dates import Row, gaps_of, space
from pdes import launcher
from pdes.errors import Refused
from pdes.shown import say

REPAIR = "repair"
"""The word that has faults repaired."""
CURE = f'repair = "{REPAIR}"'
MISSING = ("", "nan", "na", "n/a", "#n/a", "null", "none", "-")
"""What stands in a cell without a value, in lower case."""
SLIGHTLY = 0.05
"""By how much a sound signal may go beyond its ends: a day of PJM's RegD goes to 1.019."""


class Repairs:
    """The faults of one file, and whether they are repaired."""

    def __init__(self, source: str, repair: bool) -> None:
        self.source, self.repair = source, repair
        self._single: list[Row] = []
        self._missing: list[str] = []
        self._repeated: list[str] = []
        self._slight: list[Row] = []
        self._far: list[Row] = []
        self._early: list[Row] = []
        self._gaps: list[tuple[Row, Row, int]] = []
        """Rows with a gap between them, and how many rows are missing there."""
        self._skipped = Counter[str]()
        """The rows after which cells are empty, by place, and how many of them are."""

    @property
    def lines(self) -> tuple[str, ...]:
        """Returns what was repaired, a sentence each."""
        found = []
        if self._single:
            found.append(f"a single value, {self._single[0].value:g}: it holds for ever")
        if self._missing:
            found.append(f"{_are(self._missing, 'value is', 'values are')} missing "
                         f"({_first(self._missing)}): the last one holds")  # fmt: skip
        if self._gaps:
            before, row, _ = self._gaps[0]
            count, gaps = sum(missing for _, _, missing in self._gaps), len(self._gaps)
            where = f"before {_line(row.place)}"
            where = f"in {gaps:,} gaps, the first {where}" if gaps > 1 else where
            found.append(f"{count:,} row{'s are' if count > 1 else ' is'} missing {where}, from "
                         f"{before.text!r} to {row.text!r}: the last value holds")  # fmt: skip
        if self._early:
            found.append(f"it begins at {self._early[0].text!r}, later than the run: the first "
                         "value holds before it")  # fmt: skip
        if self._repeated:
            found.append(f"{_are(self._repeated, 'time comes', 'times come')} again "
                         f"({_first(self._repeated)}): the last value counts")  # fmt: skip
        if self._slight:
            found.append(f"{_beyond(self._slight)}: clipped, as a real signal's are")
        if self._far:
            found.append(f"{_beyond(self._far)}: clipped, but that is far: look at them, and divide"
                         " by the reserve if they are in watts, or by 100 if in per cent"
                         )  # fmt: skip
        return tuple(f"{self.source}: {line}" for line in found)

    def missing(self, text: str, place: str, first: bool) -> bool:
        """Tells whether a cell has no value, and the last one is to hold. `first`: there is none
        that could."""
        if text.lower() not in MISSING:
            return False
        shown = repr(text) if text else "an empty cell"
        if first:
            raise ValueError(f"{shown} is no value, and there is none before it that could hold: "
                             "give the first value")  # fmt: skip
        if not self.repair:
            raise ValueError(f"{shown} is no value: give it, or let the last one hold with {CURE}")
        self._missing.append(place)
        return True

    def skip(self, place: str, before: Row) -> None:
        """Note that a cell is empty, and the value of the row before it holds."""
        self._missing.append(place)
        self._skipped[before.place] += 1

    def held(self, rows: Sequence[Row]) -> None:
        """Note where rows are missing, and the value of the row before them holds; and where the
        first one does, before its date. Empty cells have been noted before."""
        found, least = gaps_of(rows)
        for place in found:
            before, row = rows[place - 1], rows[place]
            missing = space(before, row) // least - 1 - self._skipped[before.place]
            if missing > 0:
                self._gaps.append((before, row, missing))
        if rows[0].ps > 0 and rows[0].date is not None:
            self._early = [rows[0]]

    def mended(self, rows: Sequence[Row], alone: bool = True) -> list[Row]:
        """Returns placed rows, of equal times the last one, within -1 and 1. `alone`: there may be
        a single row."""
        if len(rows) == 1 and not alone:
            self._single = [*rows]
            if not self.repair:
                raise Refused(f"{rows[0].place}: a single value, which would hold for ever: give "
                              f"all of the signal, or signal = {rows[0].value:g} in place of the "
                              f"file, or let it hold with {CURE}")  # fmt: skip
        found = [*rows[:1]]
        for before, row in pairwise(rows):
            if row.ps == before.ps:
                if not self.repair:
                    raise Refused(f"{row.place}: {row.text!r} is the same time as {before.text!r} "
                                  "before it: times ascend, with one value each; remove one, or "
                                  f"let the last count with {CURE}")  # fmt: skip
                self._repeated.append(row.place)
                found.pop()
            found.append(row)
        beyond = [row for row in found if not -1.0 <= row.value <= 1.0]
        if not beyond:
            return found
        self._slight = [row for row in beyond if abs(row.value) <= 1.0 + SLIGHTLY]
        self._far = [row for row in beyond if abs(row.value) > 1.0 + SLIGHTLY]
        if not self.repair:
            raise Refused(f"{beyond[0].place}: {self._beyond(found, beyond)}")
        return [row._replace(value=min(1.0, max(-1.0, row.value))) for row in found]

    def _beyond(self, rows: Sequence[Row], beyond: Sequence[Row]) -> str:
        """Returns what is wrong with values beyond the ends, and the cure."""
        values = [row.value for row in rows]
        words = (f"{beyond[0].value:g} is beyond -1 and 1: the signal goes from {min(values):g} to "
                 f"{max(values):g}, {len(beyond):,} of {len(rows):,} values beyond")  # fmt: skip
        if not self._far:
            return f"{words} by at most {SLIGHTLY:g}, as a real signal's may be: clip with {CURE}"
        return (f"{words}: divide by the reserve if they are in watts, by 100 if in per cent; or "
                f"clip with {CURE}")  # fmt: skip

    def say(self) -> None:
        """Print on stderr what was repaired, once for each file and fault."""
        say_once(self.lines)


@cache
def say_once(lines: tuple[str, ...]) -> None:
    """Print on stderr what becomes of a file."""
    for line in lines if launcher.rank() == 0 else ():
        _SAY[-1](line)


_SAY: list[Callable[[str], None]] = [say]


@contextmanager
def unsaid() -> Iterator[None]:
    """While this lasts, nothing is printed of files: another process has said it."""
    _SAY.append(lambda line: None)
    try:
        yield
    finally:
        _SAY.pop()


def _are(places: Sequence[str], one: str, several: str) -> str:
    return f"1 {one}" if len(places) == 1 else f"{len(places):,} {several}"


def _first(places: Sequence[str]) -> str:
    place = _line(places[0])
    return place if len(places) == 1 else f"the first in {place}"


def _line(place: str) -> str:
    return place.rpartition(": ")[2]


def _beyond(rows: Sequence[Row]) -> str:
    worst = max(rows, key=lambda row: abs(row.value))
    count = f"{len(rows):,} value{'s' * (len(rows) > 1)}"
    far = f"{abs(worst.value) - 1.0:.3g}"
    return (f"{count} beyond -1 and 1 by up to {far} ({worst.value:g} in "
            f"{_line(worst.place)})")  # fmt: skip
