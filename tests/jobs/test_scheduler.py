"""The scheduler by itself: no packet, no event, no engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from machines import SMALL

from odonata.jobs.board import BEGAN, DONE, OVER, RUNNING, STATUS, Board
from odonata.jobs.scheduler import Scheduler
from pdes.errors import Fault
from policies.allocation import ALLOCATIONS, AllocationPolicy
from policies.memory import Sizes
from policies.scheduling import DISCIPLINES, SchedulingPolicy
from policies.views import Ended, Request, View

LAUNCH = 10


class Diary(SchedulingPolicy):
    """Starts whatever fits, and writes down what it hears."""

    name, about, source = "diary", "", ""

    def __init__(self) -> None:
        self.heard: list[Ended] = []
        self.views: list[View] = []
        self.running: list[list[int]] = []

    def remembers(self, sizes: Sizes) -> dict[str, Any]:
        return {"waits": np.zeros(sizes.users), "ended": np.zeros(1, np.int64)}

    def learn(self, ended: Ended, memory: Any) -> None:
        self.heard.append(ended)
        memory.waits[ended.request.user_number] += ended.wait
        memory.ended += 1

    def select(self, view: View) -> list[int]:
        self.views.append(view)
        self.running.append([one.request.number for one in view.running])
        chosen, free = [], view.free
        for job in view.queue:
            if job.nodes <= free:
                chosen.append(job.number)
                free -= job.nodes
        return chosen


def scheduler(*requests: Request, discipline: Any = None, allocation: Any = None) -> Scheduler:
    allocation = allocation or ALLOCATIONS.make("simple")
    discipline = discipline or DISCIPLINES.make("fcfs")
    return Scheduler(SMALL, requests, allocation, discipline, 1, LAUNCH, tasks_per_node=2)


def end(board: Board, job: int, time: int) -> None:
    """What whoever runs the job does."""
    board.jobs[job, [STATUS, OVER]] = DONE, time


FIRST = Request(0, 40, 5, requested=100, user="ann", user_number=0)
SECOND = Request(1, 50, 0, user="bob", user_number=1)
THIRD = Request(2, 20, 7, user="ann", user_number=0)


def test_a_job_is_not_seen_before_it_is_submitted() -> None:
    ours = scheduler(FIRST, SECOND, THIRD)
    board = ours.fresh_board()
    assert ours.submitted.tolist() == [0, 5, 7]
    assert [start.job for start in ours.decide(board, 0).starts] == [1]
    assert ours.decide(board, 4).starts == []


def test_a_start_says_when_and_where_and_is_on_the_board() -> None:
    ours = scheduler(FIRST, SECOND, THIRD)
    board = ours.fresh_board()
    (start,) = ours.decide(board, 0).starts
    assert (start.job, start.time) == (1, LAUNCH)
    assert start.labels.tolist() == list(range(50))
    assert (board.owner[:50] == 1).all()
    assert (board.owner[50:] == -1).all()
    assert board.labels[40:90].tolist() == list(range(50))
    assert board.jobs[1, [STATUS, BEGAN]].tolist() == [RUNNING, LAUNCH]


def test_what_has_ended_leaves_the_machine_and_is_told_once() -> None:
    ours = scheduler(FIRST, SECOND, THIRD)
    board = ours.fresh_board()
    ours.decide(board, 0)
    end(board, 1, 90)
    decided = ours.decide(board, 100)
    assert decided.ended == [1]
    assert [start.job for start in decided.starts] == [0, 2]
    assert ours.decide(board, 100) == ([], [])


def test_a_policy_that_remembers_learns_of_every_end_once() -> None:
    diary = Diary()
    ours = scheduler(FIRST, SECOND, THIRD, discipline=diary)
    board = ours.fresh_board()
    ours.decide(board, 7)
    end(board, 1, 90)
    ours.decide(board, 100)
    ours.decide(board, 100)
    (heard,) = diary.heard
    assert (heard.request, heard.start, heard.end) == (SECOND, 7 + LAUNCH, 90)
    assert heard.labels.tolist() == list(range(50))
    waits = np.frombuffer(board.memory[:16].tobytes(), np.float64)
    assert waits.tolist() == [0.0, 7 + LAUNCH]


def test_a_policy_sees_who_runs_and_until_when_at_most() -> None:
    diary = Diary()
    ours = scheduler(FIRST, SECOND, THIRD, discipline=diary)
    board = ours.fresh_board()
    ours.decide(board, 7)
    end(board, 1, 90)
    later = ours.holders(board)
    ours.decide(board, 100)
    first, second = diary.views
    assert [request.number for request in first.queue] == [1, 0, 2]
    assert [request.number for request in second.queue] == [0]
    assert (first.free, second.free) == (72, 52)
    assert diary.running == [[], [2]]
    assert [(one.request.number, one.requested_end) for one in later] == [(2, None)]
    with pytest.raises(ValueError, match="read-only"):
        later[0].labels[0] = 5


def test_an_allocation_that_answers_wrongly_is_named() -> None:
    class Greedy(AllocationPolicy):
        name, about, source = "greedy", "", ""

        def choose(self, sight: Any, job: Any, rng: Any) -> Any:
            return sight.labels

    ours = scheduler(FIRST, allocation=Greedy())
    with pytest.raises(Fault, match="allocation greedy, asked for 40 nodes: it chose 72"):
        ours.decide(ours.fresh_board(), 5)
