"""The scheduler of a run of packets: a machine that is told by messages, and its ledger of power.

What nodes draw is known a launch latency after they read their meters, and a job starts, or a cap
reaches its nodes, a launch latency after the decision. All that is decided is kept in a `Decided`,
which `odonata.agents.commands` turns into events.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from odonata.agents.decided import Decided, Start, Supply
from odonata.jobs import board as b
from odonata.jobs.asking import Policies, locked
from odonata.jobs.board import Board, Ledger, Words
from odonata.jobs.machine import AGAIN, CAP, JOBS, PATIENCE, READING, TARGET, Machine, Watts
from odonata.jobs.metering import WITHIN, cause_of, lowers, violates
from odonata.jobs.passes import Passes
from policies.allocation import AllocationPolicy
from policies.memory import Buffer, Layout, Sizes, remembered
from policies.power import Mold
from policies.scheduling import SchedulingPolicy
from policies.views import (
    NEVER,
    Configuration,
    Counters,
    Ended,
    Labels,
    PowerDesk,
    Readings,
    Request,
    Running,
)
from topology.dragonfly import Dragonfly

if TYPE_CHECKING:
    from odonata.agents.following import Dealings, Exchange

SECOND = 1e-12
"""A picosecond, in s."""

Reported = Callable[[], Counters | None]
"""Returns what the network has reported, when it is asked for."""


def nothing() -> None:
    """Returns what is known of the network where nothing is reported."""
    return None


@dataclass(frozen=True, eq=False)
class Scheduler:
    """The scheduler of one run. A job starts `launch` after the decision, with `tasks_per_node`
    tasks on each of its nodes. Times are picoseconds."""

    machine: Dragonfly
    requests: Sequence[Request]
    allocation: AllocationPolicy
    discipline: SchedulingPolicy
    seed: int
    launch: int
    tasks_per_node: int = 1
    power: Supply | None = None
    market: Exchange | None = None
    """The market in which the machine takes part; None: in none."""

    @cached_property
    def by_submission(self) -> Words:
        """Returns the numbers of the jobs, in the order in which they join the queue."""
        return np.argsort([request.submit for request in self.requests], kind="stable")

    @cached_property
    def submitted(self) -> Words:
        """Returns the times at which the jobs of `by_submission` join the queue."""
        return np.array([self.requests[n].submit for n in self.by_submission], np.int64)

    @cached_property
    def first_place(self) -> Words:
        """Returns where in `Board.labels` the nodes of each job begin."""
        return np.concatenate(([0], np.cumsum([r.nodes for r in self.requests])))

    def places(self, number: int) -> slice:
        """Returns where in `Board.labels` a job's nodes are."""
        return slice(int(self.first_place[number]), int(self.first_place[number + 1]))

    @cached_property
    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Returns the columns of a desk that never change."""
        jobs = self.requests
        asked = [NEVER if job.requested is None else job.requested for job in jobs]
        none = np.full(len(jobs), -1)
        return {name: locked(np.array(values, np.int64)) for name, values in (
            ("nodes", [job.nodes for job in jobs]), ("requested", asked),
            ("submit", [job.submit for job in jobs]), ("mold", none), ("application", none),
            ("suspended", np.zeros(len(jobs))),
        )}  # fmt: skip

    @cached_property
    def _memory(self) -> tuple[Buffer, tuple[Layout | None, ...]]:
        m, requests = self.machine, self.requests
        users, projects, alike = (
            1 + max(getattr(request, name) for request in requests)
            for name in ("user_number", "project_number", "alike")
        )
        running = min(len(requests), m.n_nodes // min(request.nodes for request in requests))
        sizes = Sizes(len(requests), m.n_nodes, m.groups, m.n_routers, users, projects, alike,
                      max(1, running))  # fmt: skip
        asked = (self.allocation, self.discipline, *([self.power.policy] if self.power else []),
                 *([self.market.policy] if self.market else []))  # fmt: skip
        return remembered(asked, sizes)

    @cached_property
    def passes(self) -> Passes:
        """Returns who asks the policies."""
        of_allocation, of_discipline, *others = self._memory[1]
        power, of_power, of_bidding = self.power, *(*others, None, None)[:2]
        layouts = (of_discipline, of_allocation, of_power, of_bidding)
        policies = Policies(self.discipline, self.allocation, power.policy if power else None,
                            layouts, self.market.policy if self.market else None)  # fmt: skip
        return Passes(policies, self.machine, self.seed,
                      by_interval=power is not None and power.by_interval)  # fmt: skip

    def fresh_board(self) -> Board:
        """Returns the board before the first job has arrived."""
        return Board(
            np.zeros((len(self.requests), len(b.JOB)), np.int64),
            np.full(self.machine.n_nodes, -1),
            np.full(int(self.first_place[-1]), -1),
            self._memory[0].copy(),
        )

    def fresh_ledger(self) -> Ledger:
        """Returns the ledger before anything was measured: all nodes are idle."""
        assert self.power is not None
        ledger = Ledger.fresh(len(self.requests), self.machine.n_nodes)
        ledger.measured_w[b.LAST_W] = self.machine.n_nodes * self.power.idle_w
        ledger.measured_w[b.MACHINE_CAP_W] = self.power.cap_at(0)
        return ledger

    def decide(
        self,
        board: Board,
        time: int,
        reported: Reported = nothing,
        ledger: Ledger | None = None,
        serial: int = 0,
        dealings: Dealings | None = None,
        begins: bool = False,
    ) -> Decided:
        """Find out what has happened, and do what follows from it: free the nodes of jobs that are
        done, start those that can start and, where there is a ledger, have the power policy asked.
        Asked again at the same time, it does no more. `serial` is the number of the policy's
        request to be asked again that this comes from, if it does: a later one takes its place.
        `dealings` are about the market, of which an hour may begin now."""
        told = MessageMachine(self, board, ledger, time, reported)
        if self.market is not None and dealings is not None and ledger is not None:
            told = self.market.machine(self, board, ledger, time, reported, dealings)
        stale = ledger is not None and serial and serial != ledger.ledger[b.AGAINS]
        if stale and ledger is not None and not ledger.ledger[b.READ]:
            return told.decided
        told.free_ended()
        if ledger is None:
            self.passes.respond(told, JOBS)
        else:
            self._decide_on_power(told, ledger, serial, begins)
        found = told.decided
        found.caps = dict(sorted(found.caps.items()))
        found.log += [("caps", (job, cap_w)) for job, cap_w in found.caps.items()]
        found.log += [("caps", (job, word)) for job, word in found.moves.items()]
        return found

    def _decide_on_power(
        self, told: MessageMachine, ledger: Ledger, serial: int, begins: bool
    ) -> None:
        assert self.power is not None
        words, time, found = ledger.ledger, told.time, told.decided
        if words[b.UNMETERED]:
            self.passes.learn(told)
            return
        read = bool(words[b.READ])
        happened = CAP * told.note_cap() | READING * read | AGAIN * (serial > 0)
        happened |= JOBS * (len(found.ended) > 0 or told.since_asked()[0] > 0)
        if read:
            told.measure()
        if (told.board.jobs[:, b.STATUS] == b.DONE).all():
            self.passes.learn(told)
            words[b.UNMETERED], found.ends_metering = 1, True
            return
        if begins:
            told.begin_hour(self.passes)
            happened |= TARGET
        if told.regulate(self.passes, read or (begins and time == 0)):
            told.wait_on(read)
            return
        happened |= TARGET * (read and self.market is not None)
        if words[b.ASKED_AT] == time and not (found.ended or read or begins):
            return  # of this instant all is known already
        words[b.PASSES] = words[b.PASSES] + 1 if words[b.ASKED_AT] == time else 0
        self.passes.respond(told, happened)
        if read or serial or not self.power.by_interval:
            told.asked()
        told.wait_on(read or serial > 0)


class MessageMachine(Machine):
    """The machine as its scheduler knows it at one instant, and what it is told."""

    tick = "ps"

    def __init__(
        self,
        scheduler: Scheduler,
        board: Board,
        ledger: Ledger | None,
        time: int,
        reported: Reported = nothing,
    ) -> None:
        self.scheduler, self.board, self.time, self.memory = scheduler, board, time, board.memory
        self.decided = Decided()
        self.log = self.decided.log
        self.counters = reported  # type: ignore[method-assign]
        self._ledger = ledger
        self._read: Readings | None = None

    @property
    def ledger(self) -> Ledger:
        """Returns what is known of power; there is some."""
        assert self._ledger is not None
        return self._ledger

    @property
    def power(self) -> Supply:
        """Returns the power of the machine; there is some."""
        assert self.scheduler.power is not None
        return self.scheduler.power

    # -- what is known

    @property
    def free(self) -> int:
        return int(np.count_nonzero(self.board.owner < 0))

    @property
    def busy(self) -> int:
        return len(self.board.owner) - self.free

    @property
    def queued(self) -> int:
        return len(self._waiting())

    def idle(self) -> npt.NDArray[np.bool_]:
        return self.board.owner < 0

    def request(self, number: int) -> Request:
        return self.scheduler.requests[number]

    def _waiting(self) -> Words:
        """Returns the numbers of the waiting jobs, in the order in which they joined the queue."""
        submitted = np.searchsorted(self.scheduler.submitted, self.time, "right")
        arrived = self.scheduler.by_submission[:submitted]
        return arrived[self.board.jobs[arrived, b.STATUS] == b.QUEUED]  # type: ignore[no-any-return]

    def waiting(self) -> list[Request]:
        return [self.request(number) for number in self._waiting().tolist()]

    def _runs(self) -> Words:
        return np.flatnonzero(self.board.jobs[:, b.STATUS] == b.RUNNING)

    def running(self) -> list[Running]:
        jobs, labels = self.board.jobs, locked(self.board.labels.copy())
        return [Running(self.request(n), int(jobs[n, b.BEGAN]), labels[self.scheduler.places(n)])
                for n in self._runs().tolist()]  # fmt: skip

    def free_ended(self) -> None:
        """Free the nodes of jobs that are done, and note what they took."""
        board = self.board
        over = (board.owner >= 0) & (board.jobs[board.owner, b.STATUS] == b.DONE)
        self.decided.ended += np.unique(board.owner[over]).tolist()
        board.owner[over] = -1
        for number in self.decided.ended if self._ledger else ():
            labels = board.labels[self.scheduler.places(number)]
            account, readings = self.ledger.accounts[number], self.ledger.readings
            account[b.JOB_ENERGY_J] = _sum(readings[labels, b.OF_JOB_J])
            account[b.JOB_BYTES] = _sum(readings[labels, b.OF_JOB_BYTES])
            self.ledger.ledger[b.ENDS] += 1

    def ended(self) -> list[Ended]:
        jobs, labels = self.board.jobs, self.board.labels
        return [Ended(self.request(n), int(jobs[n, b.BEGAN]), int(jobs[n, b.OVER]),
                      labels[self.scheduler.places(n)].copy())
                for n in self.decided.ended]  # fmt: skip

    # -- what is known of power

    def watts(self) -> Watts:
        power, meter = self.power, self.ledger.measured_w
        return Watts(power.idle_w, power.least_w, power.most_w, float(meter[b.MACHINE_CAP_W]),
                     float(meter[b.LAST_W]))  # fmt: skip

    def readings(self) -> Readings:
        assert self._read is not None
        return self._read

    def desk(self, shown: Any = None) -> PowerDesk:
        columns, accounts, jobs = self.scheduler.columns, self.ledger.accounts, self.board.jobs
        runs = self._runs()
        start = np.where(jobs[:, b.STATUS] == b.QUEUED, -1, jobs[:, b.BEGAN])
        asked = columns["requested"]
        due = np.where((start >= 0) & (asked < NEVER), start + np.minimum(asked, NEVER // 2), NEVER)
        queue = self._waiting() if shown is None else shown
        return PowerDesk(
            queue=locked(queue), running=locked(runs[np.argsort(due[runs], kind="stable")]),
            due=locked(due), start=locked(start), cap_w=locked(accounts[:, b.JOB_CAP_W]),
            measured_w=locked(accounts[:, b.READ_W]), served=self._served,
            forced=locked(accounts[:, b.FORCED] != 0.0), **columns,
        )  # fmt: skip

    def mold_of(self, number: int) -> None:
        return None

    def since_asked(self) -> tuple[int, int]:
        words, submitted = self.ledger.ledger, self.scheduler.submitted
        before, now = np.searchsorted(submitted, [words[b.ASKED_AT], self.time], "right")
        return int(now - before), int(words[b.ENDS])

    def work(self) -> float:
        desk = self.desk()
        rows = np.concatenate([desk.queue, desk.running])
        asked = desk.requested[rows]
        if (asked >= NEVER).any():
            return -1.0
        return float(np.maximum(0.0, asked - self._served()[rows]).sum())

    def _served(self) -> npt.NDArray[np.float64]:
        runs, served = self._runs(), np.zeros(len(self.board.jobs))
        served[runs] = np.maximum(0, self.time - self.board.jobs[runs, b.BEGAN])
        return locked(served)

    def _drawn_w(self) -> float:
        """Returns what all nodes draw now, as far as is known: jobs what was last measured of them
        or, before that, the most that they may."""
        runs, accounts = self._runs(), self.ledger.accounts
        nodes, read = self.scheduler.columns["nodes"][runs], accounts[runs, b.READ_W]
        most = np.minimum(self.power.most_w, accounts[runs, b.JOB_CAP_W])
        drawn = nodes * np.where(read > 0.0, read, most)
        return self.free * self.power.idle_w + _sum(drawn)

    def begin_hour(self, passes: Passes) -> None:
        """Have a bid be made for the hour of the market that begins now."""
        raise AssertionError("an hour begins, and there is no market")

    def regulate(self, passes: Passes, due: bool) -> bool:
        """Have a policy that regulates by type steer the machine, where there is one and control is
        due. Returns whether there is one: then nobody else is asked."""
        return False

    @property
    def gets_on(self) -> bool:
        """Tells whether a job runs that is not suspended."""
        return bool(len(self._runs()))

    def note_cap(self) -> bool:
        """Note the cap of the machine. Returns whether it has changed."""
        meter = self.ledger.measured_w
        before, now = float(meter[b.MACHINE_CAP_W]), self.power.cap_at(self.time)
        if now == before:
            return False
        if lowers(before, now, self._drawn_w()):
            self.ledger.ledger[b.LOWERED] = self.time
        meter[b.MACHINE_CAP_W] = now
        self.log.append(("caps", (-1, now)))
        return True

    def measure(self) -> tuple[int, int, float]:
        """Note what was measured a launch latency ago. Returns when the interval began and ended,
        and the energy of all nodes in it, in J."""
        words, meter, power = self.ledger.ledger, self.ledger.measured_w, self.power
        began, until = int(words[b.MEASURED]), self.time - self.scheduler.launch
        seconds = (until - began) * SECOND
        total = _sum(self.ledger.readings[:, b.OF_NODE_J])
        joules = total - float(meter[b.TOTAL_J])
        allowed_w = math.inf
        if power.cap is not None:
            allowed_w = power.cap.integral(began, until) / (until - began)
        violated = violates(joules, allowed_w, seconds)
        lowered = 0 <= words[b.LOWERED] < until
        cause = cause_of(violated, power.policy.controls, self._forced(began, until), lowered)
        meter[b.TOTAL_J], meter[b.LAST_W] = total, joules / seconds
        words[b.MEASURED], words[b.READ] = until, 0
        jobs, watts = [], []
        for run in self.running():
            number = run.request.number
            ran = (until - max(began, run.start)) * SECOND
            if ran <= 0.0:
                continue  # it was to start later
            account = self.ledger.accounts[number]
            drawn = _sum(self.ledger.readings[run.labels, b.OF_JOB_J])
            account[b.READ_W] = (drawn - account[b.READ_J]) / ran / run.request.nodes
            account[b.READ_J] = drawn
            jobs.append(number)
            watts.append(float(account[b.READ_W]))
        if cause == WITHIN and self._drawn_w() <= meter[b.MACHINE_CAP_W]:
            words[b.LOWERED] = -1
        self._read = Readings(np.array(jobs, np.int64), np.array(watts))
        self.log.append(("power", (joules / seconds, allowed_w, cause)))
        return began, until, joules

    def _forced(self, began: int, until: int) -> bool:
        """Tells whether a job that may break the cap ran in an interval."""
        jobs = self.board.jobs
        ran = (jobs[:, b.STATUS] == b.RUNNING) | (
            (jobs[:, b.STATUS] == b.DONE) & (jobs[:, b.OVER] > began)
        )
        forced = self.ledger.accounts[:, b.FORCED] != 0.0
        return bool((ran & (jobs[:, b.BEGAN] < until) & forced).any())

    # -- what is done

    def configure(self, number: int, how: Configuration, mold: Mold | None = None) -> None:
        self.ledger.accounts[number, [b.JOB_CAP_W, b.FORCED]] = how.cap_w, how.forced

    def start(self, job: Request, labels: Labels | None) -> None:
        number, board, begin = job.number, self.board, self.time + self.scheduler.launch
        assert labels is not None
        board.owner[labels] = number
        board.labels[self.scheduler.places(number)] = labels
        board.jobs[number, [b.STATUS, b.LEFT, b.BEGAN]] = (
            b.RUNNING, job.nodes * self.scheduler.tasks_per_node, begin
        )  # fmt: skip
        self.decided.starts.append(Start(number, labels, begin))
        if self._ledger is None:
            return
        readings, account = self.ledger.readings, self.ledger.accounts[number]
        readings[labels, b.OF_JOB_J] = readings[labels, b.OF_JOB_BYTES] = 0.0
        account[[b.READ_J, b.READ_W]] = 0.0
        if account[b.JOB_CAP_W] < math.inf:
            self.decided.caps[number] = float(account[b.JOB_CAP_W])

    def cap(self, rows: npt.NDArray[np.int64], cap_w: npt.NDArray[np.float64]) -> None:
        accounts, given = self.ledger.accounts, self.decided.caps
        started = {start.job for start in self.decided.starts}
        for number, watts in zip(rows.tolist(), cap_w.tolist(), strict=True):
            if watts == watts and accounts[number, b.JOB_CAP_W] != watts:
                given[number] = accounts[number, b.JOB_CAP_W] = watts
            if number in started and watts == math.inf:
                given.pop(number, None)  # which it starts with

    def asked(self) -> None:
        self.ledger.ledger[[b.ASKED_AT, b.ENDS]] = self.time, 0

    def ask_again(self, time: int) -> None:
        words = self.ledger.ledger
        if words[b.AGAIN_AT] != time:
            words[b.AGAINS] += 1
            words[b.AGAIN_AT] = self.decided.again = time

    def wait_on(self, counts: bool) -> None:
        """Find out whether it is in vain to go on: for long no job has run, and neither another one
        nor another cap is to come. Only what `counts` does."""
        words, time = self.ledger.ledger, self.time
        to_come = self.scheduler.submitted[-1] > time or self.power.changes_after(time)
        if to_come or self.gets_on:
            words[b.STILL] = 0
            return
        words[b.STILL] += counts
        if words[b.STILL] >= PATIENCE:
            words[b.UNMETERED], self.decided.ends_metering, self.decided.again = 1, True, None


def _sum(values: Any) -> float:
    """Returns the sum of floats, rounded once: the same in whatever order they are."""
    return math.fsum(values.tolist())
