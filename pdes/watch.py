"""The watchman: a small process beside the ranks of one host, run as a script by `pdes.watchman`.

It needs nothing but the standard library, so that it is there some milliseconds after the first
rank's first line. Ranks connect to its socket, say which rank they are, and write one byte for each
thing that it must know (those below; all other bytes are the numbers of signals that have reached
the rank, written by Python's C handler even while the rank is inside a compiler or MPI). It sleeps
on the ranks' process handles, on those of their launcher, and on these bytes:

* a rank goes without having said that it leaves: it is named, and the others are killed. The
  launcher may be quicker and kill them itself, so that several are gone when the watchman looks:
  the one that went first is named, as epoll tells of files in the order in which they became
  ready;
* a launcher goes before its ranks have left: it is named, and they are killed;
* a rank gives its reason itself: the watchman says nothing, and gives MPI a while to end the rest;
* a signal that ends a rank has reached one that cannot act on it: the watchman gives the reason,
  and asks the launcher to end all ranks;
* a rank leaves with a status other than 0: the others have a while to do the same.

In the end it removes what dead ranks had in shared memory and nobody has any more. MPI makes its
files there while it starts, and a rank may be killed before it can tell of them: so the watchman is
told by the kernel (inotify) when there is a new file, and looks which of its ranks has it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from functools import partial

SPEAK, LISTEN, DEAF, MAPPED, LEAVE, LEAVE_FAILED = range(0x80, 0x86)
"""What a rank writes: it asks whether it may give a reason (answered with YES or NO); from now on,
or no longer, it handles the signals that ask for a stop; it has mapped shared memory (answered with
SEEN); it leaves, with status 0, or with the status that the next byte is."""
YES, NO, SEEN = b"y", b"n", b"s"
ENDING = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated", signal.SIGUSR1: "terminated"}
"""Signals that end a rank which does not handle them, and what is then said."""
STOPPING = (signal.SIGTERM, signal.SIGUSR1)
SHARED = "/dev/shm/"
PEER = 17
"""SO_PEERCRED, which the socket module does not name everywhere."""
EXITING = 0x4
"""PF_EXITING, the kernel's flag of a process that has begun to end."""
CREATED = 0x100
"""IN_CREATE of inotify."""
NEVER = float("inf")


def ends(pid: int) -> bool:
    """Tells whether a process is gone or has begun to end."""
    words = stat(pid)
    return not words or words[0] in "ZX" or bool(int(words[6]) & EXITING)


def was_killed(pid: int) -> bool:
    """Tells whether a signal ends a process, or has ended it, as far as that can still be read."""
    words = stat(pid)
    return bool(words) and ends(pid) and int(words[-1]) & 127 > 0


def stat(pid: int) -> list[str]:
    """Returns what the kernel tells of a process from its state on: the seventh are its flags, and
    the last is with what it ends. Nothing where it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            about = file.read()
    except OSError:
        return []
    return about[about.rindex(")") + 2 :].split()


class Rank:
    """One process, known by its handle; it may not have connected yet, and be known only as a child
    of the launcher's."""

    def __init__(self, number: int, pid: int, line: socket.socket | None = None) -> None:
        self.number, self.pid, self.line = number, pid, line
        self.listens = self.left = False
        self.handle = handle_of(pid)
        self.went: float = NEVER
        """The place of the first sign that it goes among all such signs."""

    def files(self) -> list[int]:
        """Returns the file descriptors that tell of it."""
        line = None if self.line is None else self.line.fileno()
        return [fd for fd in (self.handle, line) if fd is not None]

    def is_dying(self) -> bool:
        """Tells whether the process is on its way out, though its handle does not say so yet: a
        process closes its files first, so that the launcher may know, and kill the other ranks,
        before it is gone itself."""
        return not self.left and self.handle is not None and ends(self.pid)

    def __str__(self) -> str:
        return f"rank {self.number} (process {self.pid} on {socket.gethostname()})"


class Watch:
    """`parent` is the process that started the ranks of this host, and `launchers` are those whose
    end before that of the ranks ends the run. `last_words` is a file for what is said when one of
    them is gone, with whom the way to the user may be gone."""

    def __init__(
        self, door: socket.socket, parent: int, ranks: int, answer: float, patience: float,
        launchers: tuple[int, ...] = (), last_words: int = 2,
    ) -> None:  # fmt: skip
        self.door, self.parent, self.expected = door, parent, ranks
        self.answer, self.patience, self.last_words = answer, patience, last_words
        self.ranks: dict[int, Rank] = {}
        self.spoken = False
        self.deadline = NEVER
        self.due: Callable[[], None] = lambda: None
        """What is done at the deadline."""
        self.segments: set[str] = set()
        door.setblocking(False)
        self.poll = select.epoll()
        self.poll.register(door, select.EPOLLIN)
        self.signs = 0
        """How many signs of an end there were."""
        self.launchers: dict[int, tuple[int, str]] = {}
        """The process of each and what it is called, by its handle, the outermost last."""
        for pid in launchers:
            if (handle := handle_of(pid)) is not None:
                about = f"{name_of(pid)} (process {pid} on {socket.gethostname()})"
                self.launchers[handle] = (pid, about)
                self.poll.register(handle, select.EPOLLIN)
        self.created = notices()
        if self.created is not None:
            self.poll.register(self.created, select.EPOLLIN)

    def run(self) -> None:
        """The first rank is at the door already."""
        while True:
            wait = None if self.deadline == NEVER else max(0.0, self.deadline - time.monotonic())
            ready = dict(self.poll.poll(wait))
            while self._greet():
                pass
            launcher, when = self._note_signs(ready)
            for rank in list(self.ranks.values()):
                self._hear(rank)
            if self.created in ready:
                self._see_created()
            gone = [rank for rank in self.ranks.values() if rank.handle in {None, *ready}]
            died = [rank for rank in gone if not rank.left]
            if died or launcher:  # and perhaps at the launcher's hand, as another went before
                died = [rank for rank in self.ranks.values() if rank in died or rank.is_dying()]
            for rank in gone:
                self._forget(rank)
            first = min(died, key=lambda rank: rank.went, default=None)
            if launcher and all(rank.left for rank in self.ranks.values()):
                self._end("")  # it had nothing more to wait for, or they have nothing more to do
            elif launcher and (first is None or when < first.went):
                self._end(f"{launcher} died; the run ends here", to=self.last_words)
            elif first:
                self._end(f"{first} died; the run ends here")
            elif time.monotonic() >= self.deadline:
                self.due()
            if all(rank.handle is None for rank in self.ranks.values()):
                self._clean()
                return

    def _note_signs(self, ready: dict[int, int]) -> tuple[str, float]:
        """Note in which order ranks went. Returns the launcher that is gone, if one is, and its
        place in this order. Where one launcher is gone because another is, it is the outermost that
        has begun to end: what it started may be gone before. So may ranks, whose launcher does not
        wait for its own end to end them; but who is killed by a signal did not end because of
        them."""
        launcher, when = "", NEVER
        killed = [about for pid, about in self.launchers.values() if was_killed(pid)]
        if killed:
            launcher, when = killed[-1], 0.0
        elif any(fd in self.launchers for fd in ready):
            launcher = [about for fd, (pid, about) in self.launchers.items()
                        if fd in ready or ends(pid)][-1]  # fmt: skip
        by_file = {fd: rank for rank in self.ranks.values() for fd in rank.files()}
        for fd, what in ready.items():
            self.signs += 1
            if fd in self.launchers:
                self.poll.unregister(fd)
                del self.launchers[fd]
                when = min(when, self.signs)
            elif fd in by_file and (fd == by_file[fd].handle or what & select.EPOLLHUP):
                by_file[fd].went = min(by_file[fd].went, self.signs)
        return launcher, when

    def _see_created(self) -> None:
        """There is a new file in shared memory: perhaps a rank has made it."""
        assert self.created is not None
        with contextlib.suppress(OSError):
            while os.read(self.created, 1 << 16):
                pass
        for rank in self.ranks.values():
            if rank.handle is not None:
                self.segments |= mapped(rank.pid) | opened(rank.pid)

    def _greet(self) -> bool:
        """Was somebody at the door?"""
        try:
            line = self.door.accept()[0]
        except BlockingIOError:
            return False
        with contextlib.suppress(OSError):
            pid, user, _ = struct.unpack("3i", line.getsockopt(socket.SOL_SOCKET, PEER, 12))
            line.settimeout(self.answer)
            number = line.recv(4)
            line.setblocking(False)
            if user == os.getuid() and len(number) == 4:
                self._know(Rank(int.from_bytes(number, "big"), pid, line))
            self._find_others()
        return True

    def _know(self, rank: Rank) -> None:
        before = self.ranks.get(rank.number)
        if before:
            self._hear(before)
            if before.line and rank.line and not before.left:  # a rank has started a command
                rank.line.close()
                return
            self._forget(before)
        self.ranks[rank.number] = rank
        for fd in rank.files():
            self.poll.register(fd, select.EPOLLIN)

    def _forget(self, rank: Rank) -> None:
        if rank.line is not None:
            self.poll.unregister(rank.line)
            rank.line.close()
            rank.line = None
        if rank.handle is not None:
            self.poll.unregister(rank.handle)
            os.close(rank.handle)
            rank.handle = None

    def _find_others(self) -> None:
        """Ranks that have not come to their first line: the launcher's other children."""
        if len(self.ranks) >= self.expected:
            return
        for pid, parent in processes():
            if parent == self.parent:
                number = rank_of(pid)
                if number is not None and number not in self.ranks:
                    self._know(Rank(number, pid))
        if len(self.ranks) < self.expected:
            self._later(self.answer, self._miss)

    def _miss(self) -> None:
        """One that nobody has seen died before there was a watchman."""
        self.deadline = NEVER
        if len(self.ranks) < self.expected:
            self._end("a rank died before its first line; the run ends here")

    def _hear(self, rank: Rank) -> None:
        """What it has written, if anything."""
        if rank.line is None:
            return
        try:
            words = rank.line.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            words = b""
        if not words:  # its handle tells what has become of it
            self.poll.unregister(rank.line)
            rank.line.close()
            rank.line = None
        it = iter(words)
        for word in it:
            if word == SPEAK:
                with contextlib.suppress(OSError):
                    rank.line.send(NO if self.spoken else YES)  # type: ignore[union-attr]
                self.spoken = True
                self._later(self.answer + self.patience, partial(self._end, ""))
            elif word in (LISTEN, DEAF):
                rank.listens = word == LISTEN
            elif word == MAPPED:
                self.segments |= mapped(rank.pid)
                with contextlib.suppress(OSError):
                    rank.line.send(SEEN)  # type: ignore[union-attr]
            elif word in (LEAVE, LEAVE_FAILED):
                rank.left = True
                if word == LEAVE_FAILED:
                    status = next(it, 1)
                    why = f"rank {rank.number} ended with status {status} before the others"
                    self._later(self.answer + self.patience, partial(self._end, why, status))
            elif word in ENDING and not (rank.listens and word in STOPPING):
                why = f"rank {rank.number}: {ENDING[signal.Signals(word)]}"
                self._later(self.answer, partial(self._end, why, 128 + word))

    def _later(self, seconds: float, due: Callable[[], None]) -> None:
        """The first of these counts, but a rank that speaks has more time."""
        if self.deadline == NEVER or self.spoken:
            self.deadline, self.due = time.monotonic() + seconds, due

    def _end(self, reason: str, status: int = 0, to: int = 2) -> None:
        """Say it, unless a rank has; have all ranks end, by the launcher, by MPI, or here."""
        alive = [rank for rank in self.ranks.values() if rank.handle is not None]
        for rank in alive:
            self.segments |= mapped(rank.pid)
        if not self.spoken and reason:
            with contextlib.suppress(OSError):  # nobody is there any more to read it
                os.write(to, f"odonata: {reason}\n".encode())
        if status:
            abort(status)
        until = time.monotonic() + (self.patience if self.spoken or status else 0)
        while alive and time.monotonic() < until:
            ready = dict(self.poll.poll(0.1))
            for rank in [rank for rank in alive if rank.handle in ready]:
                self._forget(rank)
                alive.remove(rank)
        for rank in alive:
            assert rank.handle is not None
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(rank.handle, signal.SIGKILL)
        for rank in alive:
            assert rank.handle is not None
            select.select([rank.handle], [], [], self.patience)
            self._forget(rank)
        self._clean()

    def _clean(self) -> None:
        """Remove the shared memory that dead ranks had mapped and that no process maps any more."""
        left = {path for path in self.segments if os.path.exists(path)}
        if left:
            for pid, _ in processes():
                left -= mapped(pid) | opened(pid)
        for path in left:
            with contextlib.suppress(OSError):
                os.unlink(path)


def handle_of(pid: int) -> int | None:
    """Returns a handle of a process, None where it is gone."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return None


def name_of(pid: int) -> str:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/comm") as file:
        return file.read().strip()
    return "the launcher"


def notices() -> int | None:
    """Returns a file descriptor that can be read when there is a new file in shared memory; None
    where the system has no inotify."""
    try:
        system = ctypes.CDLL(None)
        fd = int(system.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        watches = fd >= 0 and system.inotify_add_watch(fd, SHARED.encode(), CREATED) >= 0
    except (OSError, AttributeError):
        return None
    return fd if watches else None


def processes() -> list[tuple[int, int]]:
    """Returns (process, parent) of every one that is alive."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/stat") as file:
            about = file.read()
            state, parent = about[about.rindex(")") + 2 :].split()[:2]
            if state not in "ZX":
                found.append((int(pid), int(parent)))
    return found


def rank_of(pid: int) -> int | None:
    """Returns the rank that the launcher has given to a process, as far as is known."""
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/environ", "rb") as file:
        for word in file.read().split(b"\0"):
            name, _, value = word.partition(b"=")
            if name in (b"PMI_RANK", b"PMIX_RANK", b"OMPI_COMM_WORLD_RANK", b"SLURM_PROCID"):
                return int(value)
    return None


def mapped(pid: int) -> set[str]:
    """Returns the files in shared memory that a process has mapped."""
    found = set()
    with contextlib.suppress(OSError), open(f"/proc/{pid}/maps") as file:
        for line in file:
            path = line[line.find("/") :].rstrip("\n")
            if path.startswith(SHARED) and not path.endswith(" (deleted)"):
                found.add(path)
    return found


def opened(pid: int) -> set[str]:
    """Returns the files in shared memory that a process has opened."""
    found = set()
    with contextlib.suppress(OSError):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                found.add(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return {path for path in found if path.startswith(SHARED) and not path.endswith(" (deleted)")}


def abort(status: int) -> None:
    """Has the launcher end all ranks with this status, where it speaks MPICH's language (PMI-1)."""
    if "PMI_FD" in os.environ:
        with contextlib.suppress(OSError, ValueError):
            os.write(int(os.environ["PMI_FD"]), f"cmd=abort exitcode={status}\n".encode())


def main() -> None:
    for meant_for_ranks in ENDING:
        signal.signal(meant_for_ranks, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    door, last_words, parent, ranks, answer, patience, *launchers = map(float, sys.argv[1:])
    kept = {0, 1, 2, int(door), int(last_words), int(os.environ.get("PMI_FD", 2))}
    for fd in os.listdir("/proc/self/fd"):
        if int(fd) not in kept:
            with contextlib.suppress(OSError):
                os.close(int(fd))
    Watch(socket.socket(fileno=int(door)), int(parent), int(ranks), answer, patience,
          tuple(map(int, launchers)), int(last_words)).run()  # fmt: skip


if __name__ == "__main__":
    main()
