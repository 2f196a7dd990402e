"""SIGINT as a KeyboardInterrupt, for code that cleans up before it fails.

Python raises it between any two instructions of the main thread, and that may be in a place which
passes no exception on: a function that LLVM has called while it compiles a kernel, which is then
lost too, or one that Python calls when an object goes. There Python prints the exception and
forgets it. In such a place it is raised a moment later.
"""

from __future__ import annotations

import _thread
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

MOMENT_SECONDS = 0.01
CALLED_BY_COMPILER = "llvmlite.binding"
CALLED_FOR_OBJECTS = ("weakref", "_weakrefset")
"""Modules whose functions Python calls when an object goes; and so it does every `__del__`."""


@contextmanager
def interruptible(handler: Any = signal.default_int_handler) -> Iterator[None]:
    """In here, if this is the main thread and SIGINT so far went to `handler`, it is a
    KeyboardInterrupt."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) != handler:
        yield
        return
    signal.signal(signal.SIGINT, _raise)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _raise(number: int, frame: FrameType | None) -> None:
    while frame is not None:
        if _loses(frame):
            again = threading.Timer(MOMENT_SECONDS, _thread.interrupt_main, [number])
            again.daemon = True
            again.start()
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def _loses(frame: FrameType) -> bool:
    """Tells whether an exception that leaves this frame is lost."""
    module = frame.f_globals.get("__name__", "")
    called = module.startswith(CALLED_BY_COMPILER) or module in CALLED_FOR_OBJECTS
    return called or frame.f_code.co_name == "__del__"
