"""Independent tasks, executed in parallel: by worker processes, by the ranks of an MPI job, or
here.

An **agenda** knows which tasks are to be done and which answers have arrived. One process deals: it
asks the agenda for a task whenever a worker is idle, and hands it every answer as it arrives. Under
mpiexec that is rank 0; as dealing takes no time, it keeps a process of its own at work too, so that
as many tasks are under way as there are ranks.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple, Protocol

from odonata.experiment.progress import Bar, time_left
from odonata.study.worker import Failure, Work, Worker, attempt
from pdes.driver import LOST_SECONDS, explain
from pdes.errors import Fault, require
from pdes.transport import Transport, world

PAUSE = 0.001
"""Seconds between two looks of rank 0 at what the other ranks have sent."""
LOOK = 1.0
"""Seconds after which processes are no longer waited for in silence."""


class Agenda(Protocol):
    """The tasks that are to be done, asked on one process only. A task names itself with `str`."""

    def take(self) -> Any:
        """Returns the next task. None: there is none, or not before another answer is noted."""

    def note(self, answer: Any) -> None: ...

    def excuse(self, task: Any, failure: Failure) -> bool:
        """Tells whether the other tasks are done though this one failed."""

    @property
    def missing(self) -> int:
        """Returns how many answers are not noted yet, as far as is known; at 0, tasks under way are
        dropped."""

    @property
    def done(self) -> float:
        """Returns the fraction of all the work that is done, 0 .. 1."""


class Last(NamedTuple):
    """Sent instead of a task to a rank that gets no more."""

    failure: Failure | None


def share(
    agenda: Agenda | None, work: Work, jobs: int = 1, unit: str = "tasks",
    tell: Callable[[], None] | None = None,
) -> None:  # fmt: skip
    """Do all tasks: on the ranks there are, on so many processes, or in this process.

    Called on all ranks; only rank 0's agenda is asked, and the others need none. A task that fails
    ends all, with a Fault that names it, unless the agenda excuses it. `tell` is called all the
    while, to tell others how far it is. A script that wants processes must not do anything when it
    is imported (multiprocessing starts them afresh).
    """
    require(jobs >= 1, f"jobs = {jobs}: at least 1")
    transport = world()
    line = CountLine(agenda, unit, transport.rank == 0, tell)
    try:
        if transport.size > 1:
            _on_ranks(agenda, work, transport, line)
            return
        assert agenda is not None
        if jobs > 1:
            _on_processes(agenda, work, min(jobs, max(1, agenda.missing)), line)
        else:
            while (task := agenda.take()) is not None:
                line.show()
                try:
                    answer = work(task)
                except Fault as fault:
                    if not agenda.excuse(task, Failure(fault)):
                        raise
                else:
                    line.note(answer)
    finally:
        line.close()


def workers(jobs: int) -> int:
    """Returns how many tasks `share` has under way at a time."""
    return world().size if world().size > 1 else jobs


# -- on processes


def _on_processes(agenda: Agenda, work: Work, jobs: int, line: CountLine) -> None:
    """Give the next task to whichever process is idle. Tasks that are no longer needed are not
    waited for."""
    idle = [Worker(work) for _ in range(jobs)]
    every, busy = list(idle), dict[Connection, Worker]()
    try:
        for worker in every:
            worker.start()
        while agenda.missing:
            while idle and (task := agenda.take()) is not None:
                worker = idle.pop()
                worker.give(task)
                busy[worker.pipe] = worker
            if not busy:
                break
            line.show()
            for pipe in wait(list(busy), LOOK):
                assert isinstance(pipe, Connection)
                worker = busy.pop(pipe)
                answer = worker.answer()
                if not isinstance(answer, Failure):
                    line.note(answer)
                elif not agenda.excuse(worker.task, answer):
                    raise Fault(answer)
                elif worker.dead:
                    worker.end()
                    worker = Worker(work)
                    every.append(worker)
                    worker.start()
                idle.append(worker)
    finally:
        for worker in every:
            worker.end()


# -- on ranks


def _on_ranks(agenda: Agenda | None, work: Work, transport: Transport, line: CountLine) -> None:
    """Do the tasks on ranks, which fail together: a task that fails is reported to all, and a rank
    that dies ends the others."""
    try:
        with transport.watching():
            if transport.rank == 0:
                assert agenda is not None
                failure = _deal(agenda, work, transport, line)
                for peer in range(1, transport.size):
                    transport.tell(peer, Last(failure))
            else:
                failure = _serve(work, transport)
    except KeyboardInterrupt:
        transport.fail("interrupted", status=130)
    except transport.Lost as error:
        transport.fail(f"MPI failed: {error}", patience=LOST_SECONDS)
    except Exception as error:
        transport.fail(explain(error))
    if failure is not None:
        raise Fault(failure)


def _deal(agenda: Agenda, work: Work, transport: Transport, line: CountLine) -> Failure | None:
    """Deal until all is done and every rank is idle. Raises what went wrong first."""
    own, idle, failure = Worker(work), list(range(transport.size)), None
    given: dict[int, Any] = {}
    try:
        own.start()
        while True:
            wanted = agenda.missing and not failure
            while wanted and idle and (task := agenda.take()) is not None:
                rank = idle.pop()
                given[rank] = task
                if rank == 0:
                    own.give(task)
                else:
                    transport.tell(rank, task)
            line.show()
            others = sum(rank not in idle for rank in range(1, transport.size))
            if not others and (0 in idle or not wanted):
                return failure
            answers = transport.hear(wait=False)
            if own.pipe.poll(0 if answers else PAUSE):
                answers.append((0, own.answer()))
            for rank, answer in answers:
                idle.append(rank)
                if not isinstance(answer, Failure):
                    line.note(answer)
                elif not agenda.excuse(given[rank], answer):
                    failure = failure or answer
                elif rank == 0 and own.dead:
                    own.end()
                    own = Worker(work)
                    own.start()
    finally:
        own.end()


def _serve(work: Work, transport: Transport) -> Failure | None:
    while True:
        for _, task in transport.hear(wait=True):
            if isinstance(task, Last):
                return task.failure
            transport.tell(0, attempt(work, task))


# -- how far it is


class CountLine:
    """Show how much is done, how fast, and how long it may still take."""

    def __init__(
        self, agenda: Agenda | None, unit: str, wanted: bool,
        tell: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        self._agenda, self._unit, self._tell = agenda, unit, tell
        self._bar = Bar() if wanted else None
        self._began, self._before, self._count = time.perf_counter(), 0.0, 0
        if agenda is not None and wanted:
            self._before = agenda.done

    def note(self, answer: Any) -> None:
        """Hand an answer to the agenda."""
        assert self._agenda is not None
        self._agenda.note(answer)
        self._count += 1
        self.show()

    def show(self) -> None:
        """Show it, if it is time to."""
        if self._tell is not None:
            self._tell()
        if self._agenda is None or self._bar is None or not self._bar.due:
            return
        done, seconds = self._agenda.done, max(1e-9, time.perf_counter() - self._began)
        left = time_left(seconds, self._before, done)
        self._bar.show(done, f"{self._agenda.missing:,} {self._unit} to go  "
                       f"{self._count / seconds:.2g}/s  {left}".rstrip())  # fmt: skip

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
