"""SIGTERM and SIGUSR1 (what Slurm sends before it kills) ask a run to stop where it can resume."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Self

STOPPING = (signal.SIGTERM, signal.SIGUSR1)


class StopSignals:
    """While entered (and told to listen), remembers such a signal instead of dying of it."""

    def __init__(self, listen: bool) -> None:
        self._listen = listen and threading.current_thread() is threading.main_thread()
        self.received: str | None = None
        self._before: dict[signal.Signals, Any] = {}

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.received = signal.Signals(number).name

    def __enter__(self) -> Self:
        if self._listen:
            self._before = {s: signal.signal(s, self._note) for s in STOPPING}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
