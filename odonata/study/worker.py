"""A worker process, which does tasks one after the other. It imports this module first, and so this
imports nothing that takes long."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import Any

from pdes.errors import Fault
from pdes.signals import STOPPING

Work = Callable[[Any], Any]
"""A function of a module: processes import it."""


class Failure(str):
    """Why there is no answer, in a line."""


def attempt(work: Work, task: Any) -> Any:
    """Returns an answer, or a Failure: for a process that has to send it to another."""
    try:
        return work(task)
    except Fault as fault:
        return Failure(fault)
    except Exception as error:
        return Failure(
            f"{task}: {type(error).__name__}: {error} (one process, --jobs 1, tells where)"
        )


class Worker:
    """A process that does tasks, one after the other, until its pipe is closed."""

    def __init__(self, work: Work) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, self._far = context.Pipe()
        self._process = context.Process(target=_work, args=(work, self._far), daemon=True)
        self.task: Any = None
        """The task that it was given last."""
        self.dead = False

    def start(self) -> None:
        with deaf():
            self._process.start()
        self._far.close()  # so that the end of the process is the end of the pipe

    def give(self, task: Any) -> None:
        self.task = task
        with suppress(OSError):  # it is dead, and `answer` will say so
            self.pipe.send(task)

    def answer(self) -> Any:
        """Returns the answer, after waiting for it; a Failure, if the process has died."""
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            self._process.join()
            self.dead = True
            return Failure(
                f"{self.task}: its process died (exit status {self._process.exitcode}); if for "
                "want of memory, fewer --jobs need less"
            )

    def end(self) -> None:
        """End the process, whatever it is doing."""
        self.pipe.close()
        if self._process.pid is not None:
            self._process.kill()
            self._process.join()


FOR_THE_PARENT = {*STOPPING, signal.SIGINT}
"""Signals that a terminal (Ctrl-C) or Slurm sends to all processes alike: the parent heeds them and
ends the others."""


def _work(work: Work, pipe: Connection) -> None:
    for number in FOR_THE_PARENT:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, FOR_THE_PARENT)
    while True:
        try:
            pipe.send(attempt(work, pipe.recv()))
        except (EOFError, OSError):  # nobody is there any more
            return


@contextmanager
def deaf() -> Iterator[None]:
    """Start processes in this context: until they ignore what is for their parent, it is blocked,
    and the parent receives it afterwards. (Were it ignored meanwhile, it would be lost.)"""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    resource_tracker.ensure_running()  # which unblocks SIGINT and SIGTERM when it is started
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, FOR_THE_PARENT)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
