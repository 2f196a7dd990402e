"""The progress of runs and of studies: a bar on a terminal, elsewhere a line now and then."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from odonata.experiment.terminal import plain_console
from odonata.experiment.units import show_count, show_simulated
from pdes import launcher
from pdes.clock import TICKS
from pdes.shown import plain

if TYPE_CHECKING:
    from rich.progress import Progress

    from pdes.model import Tally

FIRST, EVERY, EVERY_LINE = 1.0, 0.2, 5.0
"""Seconds: before the first output; between two on a terminal; between two elsewhere, if they are
asked for."""
SELDOM, MOST_SELDOM, PART = 30.0, 900.0, 0.1
"""Seconds between two lines in a file or a pipe, where nobody has asked for them: a part of the
time that has passed, within these bounds."""


class Bar:
    """One line on stderr: how much is done, and words about it. On a terminal it is rewritten, and
    gone when it is closed; elsewhere a line is added now and then, and seldom unless they are
    `asked` for."""

    def __init__(self, asked: bool | None = None) -> None:
        self._terminal, self._seldom = launcher.terminal(), not asked
        self._began = time.perf_counter()
        self._next = self._began + (FIRST if self._terminal or asked else SELDOM)
        self._progress: Progress | None = None

    @property
    def due(self) -> bool:
        """Tells whether it is time for another update: what is shown need not be computed more
        often."""
        return time.perf_counter() >= self._next

    def show(self, done: float | None, words: str) -> None:
        """Show progress. `done`: 0 .. 1, or None where the total is not known."""
        now = time.perf_counter()
        lines = min(max(SELDOM, PART * (now - self._began)), MOST_SELDOM)
        self._next = now + (EVERY if self._terminal else lines if self._seldom else EVERY_LINE)
        share = "" if done is None else f"{done:4.0%}  "
        if not self._terminal:
            print(plain(f"{share}{words}".strip()), file=sys.stderr, flush=True)
            return
        if self._progress is None:
            self._progress = _opened()
        (task,) = self._progress.task_ids
        self._progress.update(task, total=None if done is None else 1.0, completed=done or 0.0,
                              description=share + words, refresh=True)  # fmt: skip

    def close(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


def _opened() -> Progress:
    """Returns the console. Under a launcher stderr is a pipe to a terminal, which rich would not
    take for one. The cursor stays visible: a run that is killed could not bring it back."""
    from rich.progress import BarColumn, Progress, TextColumn

    console = plain_console(file=sys.stderr, force_terminal=True)
    columns = BarColumn(bar_width=20), TextColumn("{task.description}", markup=False)
    progress = Progress(*columns, console=console, auto_refresh=False, transient=True,
                        redirect_stdout=False, redirect_stderr=False)  # fmt: skip
    progress.add_task("", total=None)
    progress.start()
    console.show_cursor(True)
    return progress


class ProgressLine:
    """Shows how far a run has come: called with the simulated time reached, the number of events
    handled, and how many jobs are done, if there are any. Times are in ticks of the model. A run
    without an end is done when its jobs are, so these tell how long it may still take."""

    def __init__(self, end: int | None, tick: str = "ps", asked: bool | None = None) -> None:
        self._end, self._tick = end, tick
        self._bar = Bar(asked)
        self._first: tuple[float, int, int, int] | None = None
        """When it was first called, and with what."""

    def __call__(self, reached: int, events: int, tally: Tally | None = None) -> None:
        if self._first is None:
            self._first = (time.perf_counter(), reached, events, tally.done if tally else 0)
        if not self._bar.due:
            return
        then, reached_then, events_then, counted_then = self._first
        seconds = max(time.perf_counter() - then, 1e-9)
        ps = TICKS[self._tick]
        words = [show_simulated(reached * ps // 1000 * 1000, self._tick)]
        done, before = None, 0.0
        if self._end is not None:
            words[0] += f" of {show_simulated(self._end * ps, self._tick)}"
            done, before = (min(1.0, at / self._end) if self._end else 1.0
                            for at in (reached, reached_then))  # fmt: skip
        else:
            words[0] += " simulated"
        if tally is not None:
            words.append(f"{tally.done:,} of {tally.of:,} {tally.what} done")
            if self._end is None and tally.of:  # the best guess that there is
                done, before = tally.done / tally.of, counted_then / tally.of
        words.append(f"{show_count((events - events_then) / seconds)} events/s")
        if done is not None:
            words.append(time_left(seconds, before, done))
        self._bar.show(done, "  ".join(words).rstrip())

    def close(self) -> None:
        self._bar.close()


def bar(done: float) -> str:
    """Returns how much is done, 0 .. 1, as a bar and per cent."""
    return "━" * round(30 * done) + "╌" * (30 - round(30 * done)) + f" {done:4.0%}"


def time_left(seconds: float, before: float, done: float) -> str:
    """Returns how long the rest takes, where so many seconds took it from `before` to `done`; ""
    where nothing was done yet."""
    if done <= before:
        return ""
    return f"{show_seconds(seconds * (1 - done) / (done - before))} left"


def show_seconds(seconds: float) -> str:
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"
