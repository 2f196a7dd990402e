"""SIGINT as a KeyboardInterrupt, for code that cleans up before it fails.

Python raises it between any two instructions of the main thread, and that may be in a place which
passes no exception on: a function that LLVM has called while it compiles a kernel, which is then
lost too, or one that Python calls when an object goes. There Python prints the exception and
forgets it. Within the compiler it is raised a moment later; where else it was lost, again.

A plug-in may raise a KeyboardInterrupt too, by mistake or because a library of its own does so:
that is an error of the plug-in's, and `by_signal` tells the two apart.
"""

from __future__ import annotations

import _thread
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

MOMENT_SECONDS = 0.01
CALLED_BY_COMPILER = "llvmlite.binding"


class Interrupted(KeyboardInterrupt):
    """SIGINT has come."""


def by_signal(error: BaseException) -> bool:
    """Tells whether an exception came of SIGINT. Outside of `interruptible` every KeyboardInterrupt
    is taken for that, unless SIGINT is ignored, as it is of what shells start in the background."""
    if not isinstance(error, KeyboardInterrupt):
        return False
    if isinstance(error, Interrupted):
        return True
    return signal.getsignal(signal.SIGINT) not in (_raise, signal.SIG_IGN)


@contextmanager
def interruptible(handler: Any = signal.default_int_handler) -> Iterator[None]:
    """In here, if this is the main thread and SIGINT so far went to `handler`, it is a
    KeyboardInterrupt."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) != handler:
        yield
        return
    told = sys.unraisablehook
    signal.signal(signal.SIGINT, _raise)
    sys.unraisablehook = lambda lost: _again() if _is_ours(lost) else told(lost)
    try:
        yield
    finally:
        sys.unraisablehook = told
        signal.signal(signal.SIGINT, handler)


def _raise(number: int, frame: FrameType | None) -> None:
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith(CALLED_BY_COMPILER):
            _again()
            return
        frame = frame.f_back
    raise Interrupted


def _again() -> None:
    """Have SIGINT come again, in a moment."""
    timer = threading.Timer(MOMENT_SECONDS, _thread.interrupt_main, [signal.SIGINT])
    timer.daemon = True
    timer.start()


def _is_ours(lost: Any) -> bool:
    """Tells whether an exception that nobody could pass on is an interrupt of the main thread."""
    main = threading.current_thread() is threading.main_thread()
    return main and issubclass(lost.exc_type, KeyboardInterrupt)
