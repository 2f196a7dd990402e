"""Asks the power policy of a scheduler that hears of power by messages, and keeps its ledger.

What nodes draw is known a launch latency after they read their meters, and a cap reaches them a
launch latency after the decision. (The job model, where nothing takes time, asks its policy in
`odonata.cluster.powering`, in the same order.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from odonata.jobs.asking import Holders
from odonata.jobs.board import (
    BEGAN,
    DONE,
    ENDS,
    FORCED,
    JOB_BYTES,
    JOB_CAP_W,
    JOB_ENERGY_J,
    LAST_W,
    LOWERED,
    MACHINE_CAP_W,
    MEASURED,
    OF_JOB_BYTES,
    OF_JOB_J,
    OF_NODE_J,
    OVER,
    PASSED,
    READ,
    READ_J,
    READ_W,
    RUNNING,
    STATUS,
    TOTAL_J,
    WISHED,
    WISHES,
    Board,
    Ledger,
    Words,
)
from odonata.jobs.metering import (
    DEADLOCK,
    ESTIMATE,
    LOWERED_CAP,
    TOLERANCE,
    UNCONTROLLED,
    WITHIN,
)
from pdes.errors import Fault
from policies.memory import Layout, memory_of
from policies.power import Configuration, Powered, PowerPolicy, PowerView, Readings
from policies.power.base import admit, caps, configuration, observe
from policies.scheduling import Discipline, SchedulingPolicy
from policies.scheduling.compiled import Compiled
from policies.views import Budget, Request, Running

if TYPE_CHECKING:
    from odonata.jobs.series import Steps

SECOND = 1e-12
"""A picosecond, in s."""
ORDERED = ("strict", "first-fit", "easy", "easy-strict")
"""The rules of compiled disciplines that are an order, whoever may pass."""

Logged = tuple[str, Sequence[Any]]


def has_order(discipline: SchedulingPolicy) -> bool:
    """Tells whether a discipline is an order in which waiting jobs are tried, which power policies
    that select need."""
    if isinstance(discipline, Compiled):
        return discipline.order_and_rule()[1] in ORDERED
    return isinstance(discipline, Discipline)


@dataclass(frozen=True, eq=False)
class Powering:
    """Asks one policy, and has what all measurements of a run have in common. Times are
    picoseconds."""

    policy: PowerPolicy
    cap: Steps | None
    """What all nodes together may draw, over time; None: as much as they like."""
    idle_w: float
    least_w: float
    """Below what not even the least efficient node can be held."""
    most_w: float
    by_interval: bool
    """Whether jobs start only when power was measured."""
    launch: int

    def cap_at(self, time: int) -> float:
        """Returns the cap of the machine at a time."""
        return math.inf if self.cap is None else self.cap.at(time)

    def changes_after(self, time: int) -> bool:
        """Tells whether the cap of the machine changes after a time."""
        return self.cap is not None and bool(self.cap.changes) and self.cap.changes[-1] > time

    # -- what is known

    def note_cap(self, ledger: Ledger, board: Board, time: int) -> list[Logged]:
        """Note the cap of the machine. Returns the row of the log, if it has changed."""
        before, now = float(ledger.measured_w[MACHINE_CAP_W]), self.cap_at(time)
        if now == before:
            return []
        if now < before and (board.jobs[:, STATUS] == RUNNING).any():
            ledger.ledger[LOWERED] = time
        ledger.measured_w[MACHINE_CAP_W] = now
        return [("caps", (-1, now))]

    def close(self, ledger: Ledger, job: int, labels: Words) -> None:
        """Note what a job took that has ended, as the nodes have reported it."""
        ledger.accounts[job, JOB_ENERGY_J] = _sum(ledger.readings[labels, OF_JOB_J])
        ledger.accounts[job, JOB_BYTES] = _sum(ledger.readings[labels, OF_JOB_BYTES])
        ledger.ledger[ENDS] += 1

    def open(self, ledger: Ledger, job: int, labels: Words) -> None:
        """Note that a job starts on these nodes."""
        ledger.readings[labels, OF_JOB_J] = ledger.readings[labels, OF_JOB_BYTES] = 0.0
        ledger.accounts[job, [READ_J, READ_W]] = 0.0

    def measure(
        self, ledger: Ledger, board: Board, time: int, holders: Sequence[Running]
    ) -> tuple[Readings, list[Logged]]:
        """Note what was measured a launch latency ago. Returns it by job, and the row of the
        log."""
        words, meter = ledger.ledger, ledger.measured_w
        began, until = int(words[MEASURED]), time - self.launch
        seconds = (until - began) * SECOND
        total = _sum(ledger.readings[:, OF_NODE_J])
        joules = total - float(meter[TOTAL_J])
        allowed_w = math.inf
        if self.cap is not None:
            allowed_w = self.cap.integral(began, until) / (until - began)
        violated = joules > allowed_w * seconds * (1.0 + TOLERANCE)
        cause = self._cause(ledger, board, began, until, violated)
        meter[TOTAL_J], meter[LAST_W] = total, joules / seconds
        words[MEASURED], words[READ] = until, 0
        jobs, watts = [], []
        for run in holders:
            number = run.request.number
            ran = (until - max(began, run.start)) * SECOND
            if ran <= 0.0:
                continue  # it was to start later
            account = ledger.accounts[number]
            drawn = _sum(ledger.readings[run.labels, OF_JOB_J])
            account[READ_W] = (drawn - account[READ_J]) / ran / run.request.nodes
            account[READ_J] = drawn
            jobs.append(number)
            watts.append(float(account[READ_W]))
        row = (joules / seconds, allowed_w, cause)
        return Readings(np.array(jobs, np.int64), np.array(watts)), [("power", row)]

    def _cause(self, ledger: Ledger, board: Board, began: int, until: int, violated: bool) -> int:
        """Returns why an interval took more energy than the cap allows, or that it did not."""
        words, jobs = ledger.ledger, board.jobs
        lowered = 0 <= words[LOWERED] < until
        if not violated:
            if 0 <= words[LOWERED] <= began:
                words[LOWERED] = -1
            return WITHIN
        if not self.policy.controls:
            return UNCONTROLLED
        ran = (jobs[:, STATUS] == RUNNING) | ((jobs[:, STATUS] == DONE) & (jobs[:, OVER] > began))
        if (ran & (jobs[:, BEGAN] < until) & (ledger.accounts[:, FORCED] != 0.0)).any():
            return DEADLOCK
        return LOWERED_CAP if lowered else ESTIMATE


@dataclass(frozen=True, eq=False)
class Asking:
    """Asks the policy at one instant."""

    powering: Powering
    ledger: Ledger
    board: Board
    layout: Layout | None
    time: int
    arrived: int
    """Counts the jobs that have arrived since the policy was asked for caps."""
    waiting: Callable[[], list[Request]]
    holders: Callable[[], list[Running]]

    def view(self, queue: Sequence[Request] | None = None, **more: Any) -> PowerView:
        """Returns the machine as the policy sees it."""
        how, meter = self.powering, self.ledger.measured_w
        free = int(np.count_nonzero(self.board.owner < 0))
        return PowerView(
            self.time, Holders(self.waiting) if queue is None else queue,
            Holders(self._powered), free, how.idle_w,
            Budget(float(meter[MACHINE_CAP_W]), float(meter[LAST_W])), {},
            memory_of(self.layout, self.board.memory), how.least_w, how.most_w,
            busy=len(self.board.owner) - free, arrived=self.arrived,
            ended=int(self.ledger.ledger[ENDS]), work=self._work, **more,
        )  # fmt: skip

    def _powered(self) -> list[Powered]:
        found = []
        for run in self.holders():
            nodes, account = run.request.nodes, self.ledger.accounts[run.request.number]
            how = Configuration(nodes, 0, float(account[JOB_CAP_W]), bool(account[FORCED]))
            found.append(Powered(run, how, nodes * float(account[READ_W])))
        return found

    def _work(self) -> float:
        """Returns the work that is left, as far as was requested; -1 where a job did not say."""
        waiting = [(job.requested, 0) for job in self.waiting()]
        running = [(run.request.requested, max(0, self.time - run.start)) for run in self.holders()]
        if any(requested is None for requested, _ in waiting + running):
            return -1.0
        return float(sum(max(0, (asked or 0) - done) for asked, done in waiting + running))

    def observe(self, readings: Readings) -> list[Logged]:
        """Tell the policy what was measured. Returns the row of the log of its figures."""
        values = observe(self.powering.policy, self.view(readings=readings))
        return [("learned", values)] if values else []

    def select(self, in_order: Callable[[], list[Request]]) -> list[int]:
        """Have the policy choose among the first waiting jobs. Returns their numbers."""
        policy = self.powering.policy
        queue = in_order()[: policy.shown or None]
        found = admit(policy, self.view(queue))
        for number in found.numbers:
            self._configured(number, Configuration(0, forced=number in found.forced))
        return [*found.numbers]

    def configure(self, chosen: Sequence[Request]) -> list[int]:
        """Ask what each of the chosen jobs starts with. Returns the numbers of those before the
        first that has to wait."""
        view, numbers = self.view(), []
        for job in chosen:
            found = configuration(self.powering.policy, view, job)
            if found is None:
                break
            self._configured(job.number, found)
            view = view._replace(free=view.free - job.nodes, busy=view.busy + job.nodes)
            numbers.append(job.number)
        return numbers

    def _configured(self, number: int, how: Configuration) -> None:
        self.ledger.accounts[number, [JOB_CAP_W, FORCED]] = how.cap_w, how.forced

    def caps(self, started: Sequence[int]) -> tuple[dict[int, float], int | None]:
        """Ask for caps, when these jobs have just been started. Returns those that nodes have to
        hear of, by job, and when the policy wants to be asked again, if it does."""
        policy, words, accounts = self.powering.policy, self.ledger.ledger, self.ledger.accounts
        given = {n: float(accounts[n, JOB_CAP_W]) for n in started}
        given = {n: cap_w for n, cap_w in given.items() if cap_w < math.inf}
        answer = caps(policy, self.view())
        words[ENDS], words[PASSED] = 0, self.time
        if answer.suspend or answer.resume:
            raise Fault(f"power {policy.name}: it suspends or resumes job "
                        f"{[*answer.suspend, *answer.resume][0]}, which only a run with "
                        'fidelity = "job" can do')  # fmt: skip
        if answer.speed is not None:
            raise Fault(f"power {policy.name}: it sets a service rate, which only a run with "
                        'fidelity = "job" can do')  # fmt: skip
        for number, cap_w in answer.cap_w.items():
            if accounts[number, JOB_CAP_W] != cap_w:
                given[number] = accounts[number, JOB_CAP_W] = float(cap_w)
            if number in given and number in started and cap_w == math.inf:
                del given[number]  # which it starts with
        if answer.again is None or words[WISHED] == answer.again:
            return given, None
        words[WISHES] += 1
        words[WISHED] = answer.again
        return given, answer.again


def _sum(values: Any) -> float:
    """Returns the sum of floats, rounded once: the same in whatever order they are."""
    return math.fsum(values.tolist())
