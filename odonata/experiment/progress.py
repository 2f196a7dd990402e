"""A line that says how far a run has come, on anything longer than a second."""

from __future__ import annotations

import sys
import time

from odonata.experiment.units import show_count, show_time
from pdes import launcher

FIRST, EVERY, EVERY_LINE = 1.0, 0.2, 5.0
"""Seconds: before the first word; between two on a terminal; between two elsewhere."""


class ProgressLine:
    """Called with the simulated time reached and the events handled. On a terminal one line is
    rewritten; elsewhere (where it was asked for) a line is added now and then."""

    def __init__(self, end: int | None) -> None:
        self._end = end
        self._terminal = launcher.terminal()
        self._began = time.perf_counter()
        self._next = self._began + FIRST
        self._width = 0
        self._first: tuple[float, int, int] | None = None

    def __call__(self, reached: int, events: int) -> None:
        now = time.perf_counter()
        if self._first is None:
            self._first = (now, reached, events)
        if now < self._next:
            return
        self._next = now + (EVERY if self._terminal else EVERY_LINE)
        self._show(self._line(now, reached, events))

    def _line(self, now: float, reached: int, events: int) -> str:
        assert self._first is not None
        then, reached_then, events_then = self._first
        seconds = max(now - then, 1e-9)
        pace = f"{show_count((events - events_then) / seconds)} events/s"
        if self._end is None:  # nobody knows
            return f"{show_time(reached // 1000 * 1000)} simulated  {pace}"
        done = min(1.0, reached / self._end) if self._end else 1.0
        speed = (reached - reached_then) / seconds
        left = (self._end - reached) / speed if speed > 0 else float("inf")
        bar = "━" * round(24 * done) + "╌" * (24 - round(24 * done))
        rest = "" if left == float("inf") else f"{left:.0f} s left"
        if 3600 <= left < float("inf"):
            rest = f"{left / 3600:.1f} h left"
        return (
            f"{bar} {done:4.0%}  {show_time(reached // 1000 * 1000)} of {show_time(self._end)}  "
            f"{pace}  {rest}"
        )

    def _show(self, line: str) -> None:
        if self._terminal:
            print("\r" + line.ljust(self._width), end="", file=sys.stderr, flush=True)
            self._width = len(line)
        else:
            print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        if self._terminal and self._width:
            print("\r" + " " * self._width + "\r", end="", file=sys.stderr, flush=True)
            self._width = 0


def wanted(asked: bool | None) -> bool:
    return launcher.terminal() if asked is None else asked
