"""Simulate the cases of a study that have no outcome yet, on processes or on MPI ranks."""

from __future__ import annotations

import time
from collections import deque
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Generic

from odonata.experiment.progress import show_seconds
from odonata.study import pool, store, under_way
from odonata.study.contract import C, O, P, Study
from odonata.study.store import Answer, Store
from odonata.study.worker import Failure
from pdes.driver import explain
from pdes.errors import Fault
from pdes.shown import say
from pdes.signals import StopSignals
from pdes.transport import together, world

HEAVY = 10
"""Cases that take so many times the mean are simulated first, the longest before all others: at the
end nobody waits long for the last. The rest stay in order, so that what is cut short has whole
workloads."""


@dataclass(frozen=True)
class Ran:
    """What was simulated just now."""

    simulated: int
    missing: int
    seconds: float
    workers: int
    stopped: str | None
    """The signal that stopped it."""
    failures: tuple[str, ...] = ()
    """Why cases have no outcome, where the others were simulated all the same."""
    kept: int = 0
    """Cases that had been simulated before."""

    def __str__(self) -> str:
        if not self.simulated:
            return "nothing was left to simulate"
        before = f"; {self.kept:,} were there already" if self.kept else ""
        workers = f"{self.workers} worker{'s' * (self.workers > 1)}"
        return (
            f"{self.simulated:,} simulations in {show_seconds(self.seconds)} on {workers}: "
            f"{self.simulated / self.seconds:.3g} per second{before}"
        )


class Agenda(Generic[P, C, O]):
    """The cases that have no outcome yet. After a signal to stop it gives out no more."""

    def __init__(self, study: Study[P, C, O], asked: P, kept: Store[O], stop: StopSignals) -> None:
        self._study, self._asked, self._kept, self._stop = study, asked, kept, stop
        self._given: set[str] = set()
        self.under_way = dict[str, C]()
        """The cases that are simulated now."""
        self.failures: list[str] = []
        """Why cases have no outcome, of a study that goes on without them."""
        self._done = 0.0
        self.noted = 0
        self._look()
        self.kept = self.wanted - self.missing
        """Cases that had an outcome before."""

    def _look(self) -> None:
        """Ask the study which cases it needs."""
        wanted = self._study.cases(self._asked, self._kept.outcomes)
        todo = [case for case in wanted if case.key not in self._kept.outcomes]
        self.wanted, self.missing = len(wanted), len(todo)
        self._left = sum(case.weight for case in todo)
        heavy = HEAVY * self._left / max(1, len(todo))
        todo = [case for case in todo if case.key not in self._given]
        self._todo = deque(sorted(todo, key=lambda c: -c.weight if c.weight > heavy else 0.0))

    def take(self) -> C | None:
        if not self._todo or self._stop.received:
            return None
        case = self._todo.popleft()
        self._given.add(case.key)
        self.under_way[case.key] = case
        return case

    def note(self, answer: Answer) -> None:
        self._kept.add(answer)
        self.under_way.pop(answer.case.key, None)
        self.noted += 1
        self._done += answer.case.weight
        if self._study.sequential:
            self._look()
        else:
            self.missing -= 1
            self._left -= answer.case.weight

    def excuse(self, task: C, failure: Failure) -> bool:
        self.under_way.pop(task.key, None)
        if self._study.tolerant:
            self.failures.append(str(failure))
        return self._study.tolerant

    @property
    def done(self) -> float:
        whole = self._done + self._left
        return self._done / whole if whole else 1.0


def fill(study: Study[P, C, O], asked: P, out: Path | None, jobs: int) -> tuple[Ran, Store[O]]:
    """Simulate all cases for which the store in `out` has no outcome; all cases, and nothing is
    kept, where `out` is None. Called on all ranks; rank 0 gets the store, the others an empty one.

    SIGTERM and SIGUSR1 let what is under way finish, if it is kept.
    """
    transport = world()
    leads = transport.rank == 0
    together(transport, lambda: study.cases(asked, {}) if leads else ())  # refused now, or never
    with StopSignals(listen=out is not None) as stop, ExitStack() as stack:
        kept, agenda = Store[O](), None
        if out is not None:
            mark, place = transport.leader_first(study.mark), store.opened
            kept = together(transport, lambda: (
                stack.enter_context(place(out, study, mark)) if leads else kept
            ))  # fmt: skip
        began = time.perf_counter()
        if leads and out is not None:
            study.begin(asked, out)
        told = None
        if leads:
            agenda = Agenda(study, asked, kept, stop)
            told = None if out is None else under_way.Telling(out, study, agenda, kept)
        try:
            pool.share(agenda, partial(simulate, study), jobs, "simulations", told)
        finally:
            if told is not None:
                told.end()
            for failure in agenda.failures if agenda else ():
                say(failure)
            if agenda and agenda.missing and out is not None:
                say(
                    f"{agenda.missing:,} of {agenda.wanted:,} simulations are missing; "
                    f"what there is is kept in {out}, and the same command goes on from there"
                )
        ran = Ran(0, 0, 0.0, 1, None)
        if agenda:
            ran = Ran(agenda.noted, agenda.missing, time.perf_counter() - began,
                      min(pool.workers(jobs), max(1, agenda.noted)), stop.received,
                      tuple(agenda.failures), agenda.kept)  # fmt: skip
    return transport.everyone(ran)[0], kept


def simulate(study: Study[P, C, O], case: C) -> Answer:
    """Simulate one case. Raises Fault, naming the case, where it cannot be simulated."""
    try:
        return Answer(case, study.simulate(case))
    except (Fault, OSError, MemoryError) as error:
        raise Fault(f"{case}: {explain(error)}") from error
