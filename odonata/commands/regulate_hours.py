"""The runs of `odonata regulate`, one for each seed: in processes, on ranks, or here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from odonata.study import pool
from odonata.study.worker import Failure

if TYPE_CHECKING:
    from odonata.results.regulated import OneRun

FEW = 4
"""So few runs are done here: to start processes would take longer."""


class Task(NamedTuple):
    """A run that is to be done: its experiment, as text, with the seed in place of the text's."""

    text: str
    seed: int
    file: Path | None = None
    """The file that has the text, and the directory of this run, where it is kept."""
    out: Path | None = None
    overwrite: bool = False

    def __str__(self) -> str:
        return f"seed {self.seed}"


def work(task: Task) -> OneRun:
    """Returns what comes of a run."""
    from odonata.experiment.experiment import JobExperiment
    from odonata.experiment.reading import parse
    from odonata.jobs.series_repair import unsaid
    from odonata.results.regulated import in_memory, kept, seeded

    with unsaid():  # as the command has read the signal before
        made = parse(task.text, str(task))
        assert isinstance(made, JobExperiment)
        made = seeded(made, task.seed)
        if task.file is None or task.out is None:
            return in_memory(made)
        return kept(made, task.file, task.out, task.overwrite)


class Agenda:
    """The runs that are left, and those that are done, by their seeds."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks, self._left = [*reversed(tasks)], [*reversed(tasks)]
        self.found: dict[int, OneRun] = {}

    def take(self) -> Task | None:
        return self._left.pop() if self._left else None

    def note(self, answer: OneRun) -> None:
        self.found[answer.seed] = answer

    def excuse(self, task: Task, failure: Failure) -> bool:
        return False

    @property
    def missing(self) -> int:
        return len(self._tasks) - len(self.found)

    @property
    def done(self) -> float:
        return len(self.found) / max(1, len(self._tasks))


def every(tasks: Sequence[Task], jobs: int) -> list[OneRun]:
    """Returns all runs in order of their seeds, so many at a time. Called on all ranks; only the
    first gets them."""
    from pdes.transport import world

    agenda = Agenda(tasks) if world().rank == 0 else None
    here = len(tasks) < FEW or any(task.out is not None for task in tasks)
    pool.share(agenda, work, 1 if here else jobs, "runs")
    return [] if agenda is None else [agenda.found[task.seed] for task in tasks]
