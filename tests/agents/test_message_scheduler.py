"""The scheduler of a run of packets by itself: no packet, no event, no engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from machines import SMALL

from odonata.agents import scheduling
from odonata.agents.decided import Decided, Supply
from odonata.agents.scheduling import Scheduler
from odonata.jobs.board import (
    BEGAN,
    DONE,
    OF_JOB_J,
    OF_NODE_J,
    OVER,
    READ,
    RUNNING,
    STATUS,
    Board,
    Ledger,
)
from odonata.jobs.metering import ESTIMATE, WITHIN
from odonata.jobs.series import Steps
from pdes.errors import Fault
from policies.allocation import ALLOCATIONS, AllocationPolicy
from policies.memory import Sizes
from policies.power import Caps, Configuration, PowerPolicy
from policies.scheduling import SCHEDULINGS, SchedulingPolicy, has_order
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
    discipline = discipline or SCHEDULINGS.make("fcfs")
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
    assert ours.decide(board, 100) == Decided()


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
    ours.decide(board, 100)
    first, second = diary.views
    assert [request.number for request in first.queue] == [1, 0, 2]
    assert [request.number for request in second.queue] == [0]
    assert (first.free, second.free) == (72, 52)
    assert diary.running == [[], [2]]
    (one,) = second.running
    assert (one.request.number, one.requested_end) == (2, None)
    with pytest.raises(ValueError, match="read-only"):
        one.labels[0] = 5


def test_an_allocation_that_answers_wrongly_is_named() -> None:
    class Greedy(AllocationPolicy):
        name, about, source = "greedy", "", ""

        def choose(self, sight: Any, job: Any, rng: Any) -> Any:
            return sight.labels

    ours = scheduler(FIRST, allocation=Greedy())
    with pytest.raises(Fault, match="allocation greedy, asked for 40 nodes: it chose 72"):
        ours.decide(ours.fresh_board(), 5)


# -- power


class Watcher(PowerPolicy):
    """Writes down what it is shown; gives every job 200 W per node, later 150 W."""

    name, about, source = "watcher", "", ""
    figures = ("seen",)

    def __init__(self, waits: int = 0, again: int | None = None) -> None:
        self.told: list[tuple[str, Any]] = []
        self.waits, self.again = waits, again

    def observe(self, view: Any) -> tuple[float]:
        told = (view.readings.jobs.tolist(), view.readings.watts.tolist())
        self.told.append(("observe", told))
        return (1.0,)

    def configure(self, view: Any, job: Any) -> Configuration | None:
        self.told.append(("configure", (job.number, view.free, view.busy)))
        return None if job.nodes == self.waits else Configuration(job.nodes, cap_w=200.0)

    def caps(self, view: Any) -> Caps:
        self.told.append(("caps", (view.arrived, view.ended, view.free, view.budget.measured_w)))
        late = {job.run.request.number: 150.0 for job in view.running if view.time >= 50}
        return Caps(late, again=self.again)


def powered(policy: PowerPolicy, *requests: Request, cap: Steps | None = None, **how: Any) -> Any:
    requests = tuple(job._replace(number=number) for number, job in enumerate(requests))
    ours = Scheduler(
        SMALL, requests, ALLOCATIONS.make("simple"), SCHEDULINGS.make("fcfs"), 1, LAUNCH,
        power=Supply(policy, cap, 100.0, 162.0, 290.0, how.get("by_interval", False)),
    )  # fmt: skip
    return ours, ours.fresh_board(), ours.fresh_ledger()


def report(ledger: Ledger, joules: float, labels: Any = (), of_job: float = 0.0) -> None:
    """What nodes do: each tells what it has drawn."""
    ledger.readings[:, OF_NODE_J] = joules
    ledger.readings[labels, OF_JOB_J] = of_job
    ledger.ledger[READ] = 1


def test_a_power_policy_is_asked_in_order_and_its_configuration_is_told_to_nodes() -> None:
    policy = Watcher()
    ours, board, ledger = powered(policy, SECOND, THIRD, FIRST._replace(submit=7))
    decided = ours.decide(board, 7, ledger=ledger)
    assert [start.job for start in decided.starts] == [0, 1]
    assert decided.caps == {0: 200.0, 1: 200.0}
    assert policy.told == [
        ("configure", (0, 72, 0)), ("configure", (1, 22, 50)), ("caps", (3, 0, 2, 7200.0)),
    ]  # fmt: skip
    assert ours.decide(board, 7, ledger=ledger) == Decided()
    assert len(policy.told) == 3  # of one instant it is asked once


def test_who_has_to_wait_holds_up_all_behind_it() -> None:
    policy = Watcher(waits=SECOND.nodes)
    small = THIRD._replace(submit=0)
    ours, board, ledger = powered(policy, small, SECOND, small)
    assert [start.job for start in ours.decide(board, 0, ledger=ledger).starts] == [0]


def test_a_measurement_is_of_a_launch_ago_and_of_jobs_that_had_started_then() -> None:
    policy, cap = Watcher(), Steps.of([0, 30], [20_000.0, 8_000.0])
    ours, board, ledger = powered(policy, SECOND, THIRD._replace(submit=45), cap=cap)
    ours.decide(board, 0, ledger=ledger)
    ours.decide(board, 45, ledger=ledger)
    report(ledger, 40 * 1e-12 * 250.0, range(50), 30 * 1e-12 * 290.0)
    decided = ours.decide(board, 40 + LAUNCH, ledger=ledger)
    (row,) = [values for name, values in decided.log if name == "power"]
    assert row[0] == pytest.approx(72 * 250.0)
    assert row[1:] == (pytest.approx(17_000.0), ESTIMATE if 72 * 250 > 17_000 else WITHIN)
    (told,) = [what for name, what in policy.told if name == "observe"]
    assert told == ([0], [pytest.approx(290.0)])  # the other was to start at 55
    assert decided.caps == {0: 150.0, 1: 150.0}
    assert ("learned", (1.0,)) in decided.log


def test_a_policy_is_asked_again_once_and_when_it_said_last() -> None:
    policy = Watcher(again=30)
    ours, board, ledger = powered(policy, SECOND)
    assert ours.decide(board, 0, ledger=ledger).again == 30
    policy.again = 20
    report(ledger, 1e-9)
    assert ours.decide(board, LAUNCH + 5, ledger=ledger).again == 20
    policy.again = None
    asked = len(policy.told)
    assert ours.decide(board, 20, ledger=ledger, serial=2).again is None
    assert len(policy.told) == asked + 1
    ours.decide(board, 30, ledger=ledger, serial=1)
    assert len(policy.told) == asked + 1


def test_measuring_ends_when_all_is_done_and_when_nobody_will_ever_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scheduling, "PATIENCE", 50)
    ours, board, ledger = powered(Watcher(), SECOND)
    ours.decide(board, 0, ledger=ledger)
    end(board, 0, 90)
    assert ours.decide(board, 100, ledger=ledger).ends_metering
    assert not ours.decide(board, 101, ledger=ledger).ends_metering
    stubborn, board, ledger = powered(Watcher(waits=50), SECOND)
    for turn in range(1, 51):
        report(ledger, turn * 1e-9)
        decided = stubborn.decide(board, LAUNCH + 10 * turn, ledger=ledger)
        assert decided.ends_metering == (turn == 50)


def test_an_order_is_what_a_policy_that_selects_needs() -> None:
    names = ("fcfs", "wfp", "easy", "small-first", "conservative", "fair-share")
    ordered = {name: has_order(SCHEDULINGS.make(name)) for name in names if name in SCHEDULINGS}
    assert ordered.pop("conservative") is False
    assert all(ordered.values())
