"""A rank's side of the watchman, the process that ends the other ranks of a host if one goes.

MPI ranks in shared memory do not notice that another was killed: they wait. A rank that ends by
itself waits in MPI's own end for the others, and they for it. Some launchers clean up, some do not,
and none says on stderr which rank it was. So the first line of a command is `begin`: the ranks of
one launch on one host meet at a socket that is named after their launcher's process, and the first
of them starts the watchman there (`pdes.watch`). From then on to the end of the process, a rank
that goes takes the others with it, and one reason is given.

It is a process, not a thread, so that neither a busy kernel nor the launcher's clean-up can silence
it; and it is deaf to what a batch system sends to every process of a job so that ranks stop in
order.
"""

from __future__ import annotations

import atexit
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from pdes import launcher, watch
from pdes.interrupt import interruptible
from pdes.shown import say

ANSWER_SECONDS = 2.0
"""So long a watchman on a busy machine may take to answer, and a rank to act on a signal."""
MPI_SECONDS = 2.0
"""So long MPI may take to end all, after a rank that has given its reason."""
SAID_SECONDS = 0.3
"""Launchers drop what a rank says just before it ends."""


class Watchman:
    """This process's line to the watchman of its host."""

    def __init__(self, line: socket.socket, rank: int) -> None:
        self.rank = rank
        self._line, self._process = line, os.getpid()
        self._uncaught = self._stops = False
        self._before_leaving: Callable[[], None] = lambda: None

    def tell(self, word: int) -> None:
        if os.getpid() == self._process:  # and not in a child that it has forked
            with suppress(OSError):  # somebody killed it
                self._line.send(bytes([word]))

    def has_mapped(self) -> None:
        """Returns when the watchman has seen which shared memory this rank has mapped, which it
        could not any more if the rank were killed now."""
        self.tell(watch.MAPPED)
        self._answer(watch.SEEN)

    def _answer(self, *words: bytes) -> bytes:
        """Returns the first of these words that the watchman answers; nothing, if it does not."""
        until = time.monotonic() + ANSWER_SECONDS
        with suppress(OSError):
            while select.select([self._line], [], [], max(0.0, until - time.monotonic()))[0]:
                word = self._line.recv(1)
                if not word or word in words:
                    return word
        return b""

    def may_speak(self) -> bool:
        """A rank that is about to end asks before it gives the reason: the first of its host may,
        and from then on the watchman is silent."""
        self.tell(watch.SPEAK)
        return self._answer(watch.YES, watch.NO) != watch.NO

    def before_leaving(self, action: Callable[[], None]) -> None:
        """Done in an orderly end, while the watchman still watches: MPI's own end, which waits for
        all ranks."""
        self._before_leaving = action

    def leave(self) -> None:
        """The process ends in order, unless Python has printed an exception that nobody caught."""
        if os.getpid() != self._process:
            return
        if self._uncaught:
            self.may_speak()
            self.end_all(1)
        self._before_leaving()
        self.tell(watch.LEAVE)

    def leave_failed(self, status: int) -> None:
        """The process is about to end with a status other than 0: the others are given a while to
        do the same. Of several ranks that refuse the same, rank 0 has said why."""
        if self.rank == 0:
            self.may_speak()
        with suppress(OSError):
            self._line.send(bytes([watch.LEAVE_FAILED, status & 0xFF]))

    def notice_uncaught(self) -> None:
        """From now on an exception that nobody has caught, once it is printed, ends all ranks."""
        usual = sys.excepthook

        def hook(kind: type[BaseException], error: BaseException, trace: Any) -> None:
            self._uncaught = True
            usual(kind, error, trace)

        sys.excepthook = hook

    def fail(self, reason: str, status: int) -> NoReturn:
        """Ends all ranks with this status, giving the reason once."""
        if self.may_speak():
            say(f"rank {self.rank}: {reason}")
        self.end_all(status)

    def end_all(self, status: int) -> NoReturn:
        """Ends all ranks; the reason has been given."""
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        time.sleep(SAID_SECONDS)
        watch.abort(status)
        os._exit(status)

    def hear_signals(self) -> None:
        """From now on the watchman hears of every signal that reaches this process, even while it
        is inside a compiler or MPI; one that would end it ends all ranks, and in order. A program
        that has handlers of its own keeps them."""
        usual = (signal.SIG_DFL, signal.default_int_handler)
        ours = [number for number in watch.ENDING if signal.getsignal(number) in usual]
        for number in ours:
            signal.signal(number, self._end_by)
        self._stops = all(number in ours for number in watch.STOPPING)
        self.listen(False)
        if signal.SIGINT in ours:
            signal.set_wakeup_fd(self._line.fileno(), warn_on_full_buffer=False)
            os.register_at_fork(after_in_child=lambda: signal.set_wakeup_fd(-1))

    def listen(self, stops: bool) -> None:
        """Does this process act on signals that ask for a stop, and not end of them?"""
        self.tell(watch.LISTEN if stops or not self._stops else watch.DEAF)

    def _end_by(self, number: int, frame: FrameType | None) -> None:
        self.fail(watch.ENDING[signal.Signals(number)], 128 + number)

    def interruptible(self) -> AbstractContextManager[None]:
        """Returns a context in which SIGINT is a KeyboardInterrupt."""
        return interruptible(self._end_by)


_mine: Watchman | None = None


def begin() -> Watchman | None:
    """Returns this process's line to the watchman, if it is one of several ranks; on its first call
    a watchman is found or started. None where there is no launcher, or no process handles."""
    global _mine
    if _mine is None and (launcher.ranks() or 0) > 1 and not _is_worker():
        try:
            os.close(os.pidfd_open(os.getpid()))
            line = _line_to(*launcher.parent())
        except (AttributeError, OSError):
            return None
        _mine = Watchman(line, launcher.rank())
        if threading.current_thread() is threading.main_thread():
            _mine.hear_signals()
        _mine.notice_uncaught()
        atexit.register(_mine.leave)
    return _mine


def _is_worker() -> bool:
    """Was this process started by a rank, to work for it?"""
    processes = sys.modules.get("multiprocessing.process")
    return processes is not None and processes.parent_process() is not None


def _line_to(parent: int, started: str) -> socket.socket:
    """Returns a connection to the watchman of this launch, which is started if there is none."""
    name = f"\0odonata-{os.getuid()}-{parent}-{started}"
    while True:
        line = socket.socket(socket.AF_UNIX)
        with suppress(ConnectionRefusedError):
            line.connect(name)
            break
        line.close()
        door = socket.socket(socket.AF_UNIX)
        with suppress(OSError):  # another rank was quicker
            door.bind(name)
            door.listen(launcher.here() or launcher.ranks() or 1)
            line = socket.socket(socket.AF_UNIX)
            line.connect(name)  # waits at the door; the watchman finds somebody there
            _start(door, parent)
            door.close()
            break
        door.close()
    line.send(launcher.rank().to_bytes(4, "big"))
    line.setblocking(False)
    return line


def _start(door: socket.socket, parent: int) -> None:
    """A process of its own session, that has nothing open but the door and a way to the user."""
    stderr, last_words = launcher.stderr(), launcher.last_words()
    words = [door.fileno(), last_words, parent, launcher.here(), ANSWER_SECONDS, MPI_SECONDS,
             *launcher.launchers()]  # fmt: skip
    door.set_inheritable(True)
    os.set_inheritable(last_words, True)
    script = str(Path(__file__).with_name("watch.py"))
    os.posix_spawn(
        sys.executable,
        [sys.executable, "-I", "-S", script, *map(str, words)],
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_DUP2, stderr, 2),
        ],
        setsid=True,
        setsigmask=watch.ENDING,
    )
    for fd in {stderr, last_words} - {2}:
        os.close(fd)
