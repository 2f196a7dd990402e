"""Communication between ranks: over MPI, or none for one rank. The only module that imports mpi4py.

`world()` gives the one transport of this process. Without a launcher that is `Serial`, and no MPI
library is touched; under mpiexec or srun it is `Mpi`. Both have the same methods.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, NoReturn, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from pdes import launcher, watchman
from pdes.arrays import doubled, grown
from pdes.errors import Refused
from pdes.events import WORDS, Rows
from pdes.interrupt import interruptible
from pdes.mailbox import Mailbox, mailbox_bytes, place_bytes
from pdes.shown import say
from pdes.watchman import MPI_SECONDS, SAID_SECONDS

T = TypeVar("T")


class Transport(Protocol):
    rank: int
    size: int
    host_leader: bool
    """Whether this is the first rank of its host."""
    library: str
    Lost: type[Exception]
    """The exceptions that the other methods raise when another rank cannot be reached."""

    def carry(self, words: int) -> None:
        """Set the words per row, on all ranks, while nothing is on its way."""

    def exchange(self, letters: Rows, places: list[int]) -> list[Rows]:
        """Send every other rank r its letter, letters[places[r] : places[r + 1]], and receive one
        from each, in rank order. A letter is a head row, whose second word says how many event
        rows follow, and these. The answers are valid until the next call."""

    def post(self, peer: int, rows: Rows) -> None:
        """Send without waiting. Messages to one peer arrive in the order of their posting."""

    def collect(self, wait: bool) -> list[tuple[int, Rows]]:
        """Returns what was posted to this rank and has arrived, as (sender, rows); with `wait`, at
        least one message."""

    def gather(self, array: npt.NDArray[Any]) -> list[npt.NDArray[Any]] | None:
        """Returns every rank's array in rank order, on rank 0; None elsewhere. They have one type,
        and each a shape of its own."""

    def everyone(self, thing: T) -> list[T]:
        """Returns every rank's `thing`, on every rank. For small and rare things."""

    def tell(self, peer: int, thing: Any) -> None:
        """Send any object. Waits, if it is large, until the peer receives it."""

    def hear(self, wait: bool) -> list[tuple[int, Any]]:
        """Returns the objects that were sent to this rank and have arrived, as (sender, thing);
        with `wait`, at least one. It sleeps while it waits: for things that are rare."""

    def leader_first(self, action: Callable[[], T]) -> T:
        """Do it on one rank of every host, then on the others."""

    def fail(self, reason: str, patience: float = 0.0, status: int = 1) -> NoReturn:
        """End all ranks, giving the reason once; after a while, if another rank may have a better
        reason to give."""

    def watching(self) -> AbstractContextManager[None]:
        """Returns a context in which SIGINT is a KeyboardInterrupt, to be passed to `fail`."""


class Unreachable(Exception):
    """Stands for the loss of a rank, which one rank alone never meets: it is never raised."""


class Serial:
    rank, size, host_leader, library = 0, 1, True, "none (one rank)"
    Lost: type[Exception] = Unreachable

    def carry(self, words: int) -> None:
        return None

    def exchange(self, letters: Rows, places: list[int]) -> list[Rows]:
        return []

    def post(self, peer: int, rows: Rows) -> None:
        raise AssertionError("one rank has no peer")

    def collect(self, wait: bool) -> list[tuple[int, Rows]]:
        return []

    def gather(self, array: npt.NDArray[Any]) -> list[npt.NDArray[Any]] | None:
        return [array]

    def everyone(self, thing: T) -> list[T]:
        return [thing]

    def tell(self, peer: int, thing: Any) -> None:
        raise AssertionError("one rank has no peer")

    def hear(self, wait: bool) -> list[tuple[int, Any]]:
        return []

    def leader_first(self, action: Callable[[], T]) -> T:
        return action()

    def fail(self, reason: str, patience: float = 0.0, status: int = 1) -> NoReturn:
        say(reason)
        raise SystemExit(status)

    def watching(self) -> AbstractContextManager[None]:
        return interruptible()


class Mpi:
    TAG = 1
    ROOM = 64
    """The number of rows that a letter may have, at first, before it takes two messages."""

    def __init__(self, mpi: Any) -> None:
        self._mpi = mpi
        self.Lost = mpi.Exception
        self._comm = mpi.COMM_WORLD.Dup()
        self._host = self._comm.Split_type(mpi.COMM_TYPE_SHARED)
        self.rank: int = self._comm.rank
        self.size: int = self._comm.size
        self.host_leader = self._host.rank == 0
        self.library = mpi.Get_library_version().split("\n")[0].replace("\t", " ").strip("\0 ")
        self._peers = [peer for peer in range(self.size) if peer != self.rank]
        self._mailbox = self._shared_mailbox()
        self.carry(WORDS)
        self._waitall = mpi.Request.Waitall
        self._posted: list[tuple[Any, Rows]] = []
        self._watchman = watchman.begin()
        if self._watchman:
            self._watchman.has_mapped()
            self._watchman.before_leaving(self._leave)

    def carry(self, words: int) -> None:
        self._words = words
        self._rooms = [np.empty((self.ROOM, words), np.int64) for _ in range(self.size)]
        self._fits = [self.ROOM] * self.size
        if self._mailbox:
            self._mailbox.carry(words)

    def _shared_mailbox(self) -> Mailbox | None:
        """Returns the mailbox, where all ranks are on one host, and not too many."""
        size = self.size
        if self._host.size < size or not place_bytes(size):
            return None
        mine = mailbox_bytes(size) if self.rank == 0 else 0
        self._window = self._mpi.Win.Allocate_shared(mine, 8, comm=self._host)
        self._window.Lock_all()
        memory, _ = self._window.Shared_query(0)
        if self.rank == 0:
            np.frombuffer(memory, np.int64)[:] = 0
        self._window.Sync()
        self._host.Barrier()
        self._window.Sync()
        return Mailbox(memory, self.rank, size, self._window.Sync)

    def exchange(self, letters: Rows, places: list[int]) -> list[Rows]:
        if self._mailbox:
            return self._exchange_by_mailbox(self._mailbox, letters, places)
        comm, tag, rooms = self._comm, self.TAG, self._rooms
        requests = [comm.Irecv(rooms[peer], peer, tag) for peer in self._peers]
        for peer in self._peers:
            start, end = places[peer], places[peer + 1]
            requests.append(
                comm.Isend(letters[start : min(end, start + self._fits[peer])], peer, tag)
            )
        self._waitall(requests)
        arrived = []
        for peer in self._peers:
            length = int(rooms[peer][0, 1]) + 1
            if length > len(rooms[peer]) or places[peer + 1] - places[peer] > self._fits[peer]:
                self._exchange_rest(peer, letters[places[peer] : places[peer + 1]], length)
            arrived.append(rooms[peer][:length])
        return arrived

    def _exchange_by_mailbox(
        self, mailbox: Mailbox, letters: Rows, places: list[int]
    ) -> list[Rows]:
        arrived, requests = mailbox.exchange(letters, places), []
        for i, peer in enumerate(self._peers):
            length = int(arrived[i][0, 1]) + 1
            if length > mailbox.fits:
                whole = np.empty((length, letters.shape[1]), np.int64)
                whole[: mailbox.fits] = arrived[i]
                requests.append(self._comm.Irecv(whole[mailbox.fits :], peer, self.TAG))
                arrived[i] = whole
            rest = letters[places[peer] + mailbox.fits : places[peer + 1]]
            if len(rest):
                requests.append(self._comm.Isend(rest, peer, self.TAG))
            arrived[i] = arrived[i][:length]
        if requests:
            self._waitall(requests)
        return arrived

    def _exchange_rest(self, peer: int, letter: Rows, length: int) -> None:
        """Exchange what is left over of a letter of this pair that was longer than the room for it;
        both sides make more room, each knowing what the other saw."""
        fits, room = self._fits[peer], len(self._rooms[peer])
        requests = []
        if length > room:
            self._rooms[peer] = grown(self._rooms[peer], length, keep=room)
            requests.append(self._comm.Irecv(self._rooms[peer][room:length], peer, self.TAG))
        if len(letter) > fits:
            self._fits[peer] = doubled(fits, len(letter))
            requests.append(self._comm.Isend(letter[fits:], peer, self.TAG))
        self._waitall(requests)

    def post(self, peer: int, rows: Rows) -> None:
        while self._posted and self._posted[0][0].Test():
            self._posted.pop(0)
        self._posted.append((self._comm.Isend(rows, peer, self.TAG), rows))

    def collect(self, wait: bool) -> list[tuple[int, Rows]]:
        arrived = []
        status = self._mpi.Status()
        while True:
            message = self._comm.Improbe(self._mpi.ANY_SOURCE, self.TAG, status)
            if message is not None:
                words = self._words
                rows = np.empty((status.Get_count(self._mpi.INT64_T) // words, words), np.int64)
                message.Recv(rows)
                arrived.append((status.source, rows))
            elif arrived or not wait:
                return arrived
            else:
                os.sched_yield()

    def gather(self, array: npt.NDArray[Any]) -> list[npt.NDArray[Any]] | None:
        shapes = self._comm.gather(array.shape, 0)
        flat = np.ascontiguousarray(array)
        if shapes is None:
            self._comm.Send(flat.view(np.uint8).reshape(-1), 0, self.TAG + 1)
            return None
        arrays: list[npt.NDArray[Any]] = [flat]
        for peer in range(1, self.size):
            arrays.append(np.empty(shapes[peer], array.dtype))
            self._comm.Recv(arrays[peer].view(np.uint8).reshape(-1), peer, self.TAG + 1)
        return arrays

    def everyone(self, thing: T) -> list[T]:
        return self._comm.allgather(thing)  # type: ignore[no-any-return]

    def tell(self, peer: int, thing: Any) -> None:
        self._comm.send(thing, peer, self.TAG + 2)

    def hear(self, wait: bool) -> list[tuple[int, Any]]:
        heard: list[tuple[int, Any]] = []
        status = self._mpi.Status()
        while True:
            message = self._comm.improbe(self._mpi.ANY_SOURCE, self.TAG + 2, status)
            if message is not None:
                heard.append((status.source, message.recv()))
            elif heard or not wait:
                return heard
            else:
                time.sleep(0.001)

    def leader_first(self, action: Callable[[], T]) -> T:
        if not self.host_leader:
            self._meet_on_host()
        try:
            return action()
        finally:
            if self.host_leader:
                self._meet_on_host()

    def _meet_on_host(self) -> None:
        """Wait for the other ranks of this host. It sleeps meanwhile: a barrier would keep a core
        busy for as long as the leader compiles, and the leader may need that core."""
        request = self._host.Ibarrier()
        try:
            while not request.Test():
                time.sleep(0.005)
        except KeyboardInterrupt:
            self.fail("interrupted", status=130)

    def fail(self, reason: str, patience: float = 0.0, status: int = 1) -> NoReturn:
        """MPI is to end the others: a launcher that is left to find a rank gone may pass on the
        status of those that it kills itself. The watchman does it where MPI does not."""
        time.sleep(patience)
        if self._watchman is None or self._watchman.may_speak():
            say(f"rank {self.rank}: {reason}")
            sys.stdout.flush()
            time.sleep(SAID_SECONDS)
        else:
            time.sleep(MPI_SECONDS)  # the one that speaks ends us all
        with open(os.devnull, "w") as silence:  # nothing of what MPI says is news
            os.dup2(silence.fileno(), 2)
        signal.alarm(5)
        self._mpi.COMM_WORLD.Abort(status)
        os._exit(status)

    def watching(self) -> AbstractContextManager[None]:
        return self._watchman.interruptible() if self._watchman else interruptible()

    def _leave(self) -> None:
        """Finalise MPI, which waits for all ranks."""
        if not self._mpi.Is_finalized():
            self._mpi.Finalize()


def together(transport: Transport, action: Callable[[], T]) -> T:
    """Do it on every rank; what any of them refuses, all refuse, with the first one's reason. The
    action may not wait for others in a way that a refusal would cut short."""
    problem, result = None, None
    try:
        result = action()
    except Refused as refusal:
        problem = str(refusal)
    problems = [p for p in transport.everyone(problem) if p is not None]
    if problems:
        raise Refused(problems[0])
    return result  # type: ignore[return-value]


@cache
def world() -> Transport:
    """Returns this process's transport: MPI exactly where a launcher started more than one rank."""
    ranks = launcher.ranks()
    if ranks is None or ranks == 1:
        return Serial()
    watchman.begin()  # before MPI's start, which waits for all ranks
    try:
        import mpi4py

        mpi4py.rc.thread_level = "funneled"
        os.environ.setdefault("MPIR_CVAR_SUPPRESS_ABORT_MESSAGE", "1")
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise Refused(
            f"started as one of several ranks, but mpi4py cannot be loaded ({error}); "
            "install it with: pip install mpi4py mpich"
        ) from error
    if ranks > 1 and MPI.COMM_WORLD.size != ranks:
        raise Refused(
            f"the launcher started {ranks} ranks, but mpi4py sees {MPI.COMM_WORLD.size}: it was "
            "built for another MPI than this launcher's. Use that MPI's own mpiexec, or under srun "
            "try --mpi=pmi2 or --mpi=pmix, or rebuild it: "
            "pip install --no-binary=mpi4py --force-reinstall mpi4py"
        )
    return Serial() if MPI.COMM_WORLD.size == 1 else Mpi(MPI)
