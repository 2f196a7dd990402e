"""Work that is shared out: one answer however many do it, and one line when it goes wrong."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import pytest
from conftest import PATIENCE
from tasks import FIRST_DIES, linger, perish, refuse_seven, square, stumble

from odonata.study import pool
from odonata.study.worker import Failure, Worker
from pdes.errors import Fault, Refused


class Listed:
    """A list of tasks, and the answers in the order they came."""

    def __init__(self, tasks: list[int], wanted: int | None = None) -> None:
        self.tasks, self.answers = list(tasks), list[Any]()
        self.wanted = len(tasks) if wanted is None else wanted

    def take(self) -> int | None:
        return self.tasks.pop(0) if self.tasks else None

    def note(self, answer: Any) -> None:
        self.answers.append(answer)

    def excuse(self, task: Any, failure: Failure) -> bool:
        return False

    @property
    def missing(self) -> int:
        return max(0, self.wanted - len(self.answers))

    @property
    def done(self) -> float:
        return len(self.answers) / max(1, self.wanted)


class Tolerant(Listed):
    """A list whose tasks may fail."""

    def __init__(self, tasks: list[int]) -> None:
        super().__init__(tasks)
        self.excused: list[tuple[int, str]] = []

    def excuse(self, task: Any, failure: Failure) -> bool:
        self.excused.append((task, str(failure)))
        return True


class Chained(Listed):
    """Every task but the first is known only when the one before is answered."""

    def take(self) -> int | None:
        return super().take() if len(self.tasks) + len(self.answers) == self.wanted else None


@pytest.mark.parametrize("jobs", [1, 3])
def test_every_task_is_done_once_on_any_number_of_processes(jobs: int) -> None:
    agenda = Listed(list(range(20)))
    pool.share(agenda, square, jobs)
    assert sorted(agenda.answers) == [n * n for n in range(20)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_task_may_wait_for_the_answer_to_another(jobs: int) -> None:
    agenda = Chained([3, 4, 5])
    pool.share(agenda, square, jobs)
    assert agenda.answers == [9, 16, 25]


@pytest.mark.parametrize("jobs", [1, 2])
def test_nothing_to_do_is_done_at_once(jobs: int) -> None:
    pool.share(Listed([]), square, jobs)


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_agenda_that_gives_out_no_more_is_left_unfinished(jobs: int) -> None:
    """As when a signal has come."""
    agenda = Listed([1, 2], wanted=9)
    pool.share(agenda, square, jobs)
    assert sorted(agenda.answers) == [1, 4]
    assert agenda.missing == 7


def test_what_nobody_needs_any_more_is_not_waited_for() -> None:
    agenda, began = Listed([0, 1], wanted=1), time.monotonic()
    pool.share(agenda, linger, 2)
    assert agenda.answers == [0]
    assert time.monotonic() - began < PATIENCE


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_task_that_fails_ends_all_with_its_own_words(jobs: int) -> None:
    with pytest.raises(Fault, match="number 7: seven is not served"):
        pool.share(Listed([5, 6, 7, 8]), refuse_seven, jobs)


def test_a_mistake_in_a_worker_names_its_task_and_says_how_to_see_more() -> None:
    with pytest.raises(Fault, match=r"^0: ZeroDivisionError: .* \(one process, --jobs 1, tells"):
        pool.share(Listed([1, 0]), stumble, 2)
    with pytest.raises(ZeroDivisionError):
        pool.share(Listed([1, 0]), stumble, 1)


def test_the_death_of_a_worker_is_told_with_what_it_was_doing() -> None:
    with pytest.raises(Fault, match=r"^-1: its process died \(exit status 9\)"):
        pool.share(Listed([4, FIRST_DIES]), perish, 2)


def test_workers_do_not_hear_what_their_parent_heeds() -> None:
    """Slurm sends SIGTERM and SIGUSR1 to all processes of a job alike."""
    worker = Worker(square)
    worker.start()
    try:
        worker.give(2)
        assert worker.answer() == 4  # it is past its beginning
        assert worker._process.pid is not None
        for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT):
            os.kill(worker._process.pid, number)
        worker.give(3)
        assert worker.answer() == 9
    finally:
        worker.end()
    assert not worker._process.is_alive()


def test_fewer_than_one_process_is_refused() -> None:
    with pytest.raises(Refused, match="jobs = 0: at least 1"):
        pool.share(Listed([1]), square, 0)
    assert pool.workers(3) == 3


def test_a_line_tells_what_is_left_and_how_long_it_takes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    agenda = Listed(list(range(10)))
    line = pool.CountLine(agenda, "simulations", True)
    line.note(0)
    assert capsys.readouterr().err == ""  # it may take no time
    now = 40.0
    line.note(1)
    line.close()
    assert "20%  8 simulations to go  0.05/s  2.7 min left" in capsys.readouterr().err
    assert agenda.answers == [0, 1]


def test_a_worker_that_is_only_starting_does_not_hear_what_its_parent_heeds() -> None:
    worker = Worker(square)
    worker.start()
    pid = worker._process.pid
    assert pid is not None
    os.kill(pid, signal.SIGTERM)  # it may not have come to ignore it yet
    worker.give(6)
    assert worker.answer() == 36
    worker.end()


@pytest.mark.parametrize("jobs", [1, 2])
def test_where_failures_are_excused_the_other_tasks_are_done(jobs: int) -> None:
    agenda = Tolerant([5, 7, 8, 7, 9])
    pool.share(agenda, refuse_seven, jobs)
    assert sorted(agenda.answers) == [5, 8, 9]
    assert agenda.excused == [(7, "number 7: seven is not served")] * 2
    assert agenda.missing == 2


def test_where_deaths_are_excused_another_process_takes_the_place() -> None:
    agenda = Tolerant([FIRST_DIES, 1, FIRST_DIES, 2, 3])
    pool.share(agenda, perish, 2)
    assert sorted(agenda.answers) == [1, 2, 3]
    assert [task for task, _ in agenda.excused] == [FIRST_DIES] * 2
    assert "exit status 9" in agenda.excused[0][1]
