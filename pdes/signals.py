"""SIGTERM and SIGUSR1 (what Slurm sends before it kills) ask a run to stop where it can resume."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Self

from pdes import watchman

STOPPING = (signal.SIGTERM, signal.SIGUSR1)


class StopSignals:
    """While entered (and asked to listen), remembers such a signal instead of dying of it; if
    `later`, only from `begin` on: ranks that still compile have nothing to save, and end at
    once."""

    def __init__(self, listen: bool, later: bool = False) -> None:
        self._later = later
        self._listen = listen and threading.current_thread() is threading.main_thread()
        self.received: str | None = None
        self._before: dict[signal.Signals, Any] = {}

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.received = signal.Signals(number).name

    def begin(self) -> None:
        if self._listen and not self._before:
            self._tell(True)  # first: a signal that comes between the two ends the rank by itself
            self._before = {s: signal.signal(s, self._note) for s in STOPPING}

    def _tell(self, listens: bool) -> None:
        if mine := watchman.begin():
            mine.listen(listens)

    def __enter__(self) -> Self:
        if not self._later:
            self.begin()
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if self._before:
            self._tell(False)
        self._before = {}
