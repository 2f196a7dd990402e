"""The scheduler: it keeps the queue and the board, asks policies, and answers with Starts.

It knows neither packets nor events. A model of either fidelity calls `decide` whenever a job
arrives or ends, and turns the Starts into its own kind of start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from odonata.jobs.asking import Asked, Holders
from odonata.jobs.board import (
    BEGAN,
    BOARD_WORDS,
    DONE,
    IN_VAIN,
    LAST_W,
    LEFT,
    MACHINE_CAP_W,
    OVER,
    PASSED,
    PASSES,
    QUEUED,
    READ,
    RESTS,
    RUNNING,
    STATUS,
    WISHES,
    Board,
    Ledger,
    Words,
)
from odonata.jobs.powering import Asking, Logged, Powering
from policies.allocation import AllocationPolicy
from policies.memory import Buffer, Layout, Sizes, memory_of, remembered
from policies.scheduling import SchedulingPolicy, select
from policies.views import Counters, Ended, Request, Running, Sight, View
from topology.dragonfly import Dragonfly


class Start(NamedTuple):
    """A job is to start at a time, on these nodes."""

    job: int
    labels: Words
    time: int


Reported = Callable[[], Counters | None]
"""Returns what the network has reported, when it is asked for."""


def nothing() -> None:
    """Returns what is known of the network where nothing is reported."""
    return None


class Decided(NamedTuple):
    """The outcome of a decision: jobs that start, and the numbers of those found to have ended."""

    starts: list[Start]
    ended: list[int]


class DecidedOnPower(NamedTuple):
    """The outcome of a decision in which a power policy had its say."""

    starts: list[Start]
    ended: list[int]
    log: Sequence[Logged] = ()
    """The rows of logs about power."""
    caps: Mapping[int, float] = MappingProxyType({})
    """Watts per node that nodes are told a launch latency from now, by job, in order of their
    numbers."""
    again: int | None = None
    """When the power policy wants to be asked next."""
    rests: bool = False
    """Whether power need not be measured any more."""


PATIENCE = 1000
"""Measurements after which a power policy is given up that leaves all jobs waiting, while nothing
else can change."""


@dataclass(frozen=True)
class Scheduler:
    """The scheduler of one run. Times are ticks of the model that runs it; a job starts `launch`
    after the decision, with `tasks_per_node` tasks on each of its nodes."""

    machine: Dragonfly
    requests: Sequence[Request]
    allocation: AllocationPolicy
    discipline: SchedulingPolicy
    seed: int
    launch: int
    tasks_per_node: int = 1
    power: Powering | None = None

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
        asked = (self.allocation, self.discipline, *([self.power.policy] if self.power else []))
        return remembered(asked, sizes)

    @cached_property
    def _asked(self) -> Asked:
        of_allocation, of_discipline, *of_power = self._memory[1]
        layouts = (of_discipline, of_allocation, of_power[0] if of_power else None)
        return Asked(self.discipline, self.allocation, layouts,
                     self.power.policy if self.power else None)  # fmt: skip

    def fresh_board(self) -> Board:
        """Returns the board before the first job has arrived."""
        return Board(
            np.zeros((len(self.requests), BOARD_WORDS), np.int64),
            np.full(self.machine.n_nodes, -1),
            np.full(int(self.first_place[-1]), -1),
            self._memory[0].copy(),
        )

    def fresh_ledger(self) -> Ledger:
        """Returns the ledger before anything was measured: all nodes are idle."""
        assert self.power is not None
        ledger = Ledger.fresh(len(self.requests), self.machine.n_nodes)
        ledger.measured_w[LAST_W] = self.machine.n_nodes * self.power.idle_w
        ledger.measured_w[MACHINE_CAP_W] = self.power.cap_at(0)
        return ledger

    def decide(self, board: Board, time: int, reported: Reported = nothing) -> Decided:
        """Free the nodes of jobs that are done, and start the jobs that can start, given what the
        network has reported. Asked again at the same time, it starts no more."""
        ended = self._freed(board)
        return Decided(self._starts(board, time, None, reported), ended)

    def decide_on_power(
        self,
        board: Board,
        ledger: Ledger,
        time: int,
        wish: int = 0,
        reported: Reported = nothing,
    ) -> DecidedOnPower:
        """Do the same where a power policy has its say, and tell it of a measurement. `wish` is the
        number of the policy's wish that this comes from, if it does: a later one takes its place.
        """
        power, words = self.power, ledger.ledger
        assert power is not None
        if wish and wish != words[WISHES] and not words[READ]:
            return DecidedOnPower([], [])
        ended = self._freed(board, ledger)
        if words[RESTS]:
            return DecidedOnPower([], ended)
        log, read = power.note_cap(ledger, board, time), bool(words[READ])
        if (board.jobs[:, STATUS] == DONE).all():
            words[RESTS] = 1
            log += power.measure(ledger, board, time, [])[1] if read else []
            return DecidedOnPower([], ended, log, rests=True)
        if words[PASSED] == time and not ended and not read:
            return DecidedOnPower([], ended, log)  # of this instant all is known already
        words[PASSES] = words[PASSES] + 1 if words[PASSED] == time else 0
        asking = self._asking(board, ledger, time)
        if read:
            readings, rows = power.measure(ledger, board, time, self.holders(board))
            log += rows + asking.observe(readings)
        if power.by_interval and not read and not wish:
            return DecidedOnPower([], ended, log)
        starts = self._starts(board, time, asking, reported)
        for start in starts:
            power.open(ledger, start.job, start.labels)
        caps, again = asking.caps([start.job for start in starts])
        log += [("caps", (job, caps[job])) for job in sorted(caps)]
        rests = read and self._in_vain(board, ledger, time, again)
        return DecidedOnPower(starts, ended, log, dict(sorted(caps.items())), again, rests)

    def _asking(self, board: Board, ledger: Ledger, time: int) -> Asking:
        assert self.power is not None
        before, now = np.searchsorted(self.submitted, [ledger.ledger[PASSED], time], "right")
        return Asking(
            self.power, ledger, board, self._asked.layouts[2], time, int(now - before),
            lambda: self._waiting(board, time), lambda: self.holders(board),
        )  # fmt: skip

    def _in_vain(self, board: Board, ledger: Ledger, time: int, again: int | None) -> bool:
        """Tells whether power was measured for the last time, since no job will ever start."""
        words, power = ledger.ledger, self.power
        assert power is not None
        idle = not (board.jobs[:, STATUS] == RUNNING).any() and again is None
        come = self.submitted[-1] <= time and not power.changes_after(time)
        words[IN_VAIN] = words[IN_VAIN] + 1 if idle and come else 0
        if words[IN_VAIN] < PATIENCE:
            return False
        words[RESTS] = 1
        return True

    def _freed(self, board: Board, ledger: Ledger | None = None) -> list[int]:
        """Free the nodes of jobs that are done. Returns their numbers."""
        over = (board.owner >= 0) & (board.jobs[board.owner, STATUS] == DONE)
        ended: list[int] = np.unique(board.owner[over]).tolist()
        if ledger is not None:
            assert self.power is not None
            for number in ended:
                self.power.close(ledger, number, board.labels[self._places(number)])
        self._learn(board, ended)
        board.owner[over] = -1
        return ended

    def _waiting(self, board: Board, time: int) -> list[Request]:
        """Returns the jobs that wait, in the order in which they joined the queue."""
        arrived = self.by_submission[: np.searchsorted(self.submitted, time, "right")]
        waiting = arrived[board.jobs[arrived, STATUS] == QUEUED].tolist()
        return [self.requests[number] for number in waiting]

    def _starts(
        self, board: Board, time: int, asking: Asking | None, reported: Reported
    ) -> list[Start]:
        """Start the jobs that can start."""
        queue, full = self._waiting(board, time), (board.owner >= 0).all()
        nobody = not queue or full
        counters = None if nobody else reported()
        if not self.discipline.always and nobody:
            return []
        if asking is not None and asking.powering.policy.selects:
            in_order = partial(self._in_order, board, time, queue)
            numbers = [] if nobody else asking.select(in_order)
        else:
            numbers = [*select(self.discipline, self._view(board, time, queue, counters))]
            if asking is not None:
                numbers = asking.configure([self.requests[number] for number in numbers])
        begun = []
        for number in numbers:
            if not self._may(board, number):
                break
            request = self.requests[number]
            begun.append(self._start(board, request, time + self.launch, counters))
        return begun

    def _may(self, board: Board, number: int) -> bool:
        """Tells whether a job may start where its user wants it: a job that named its nodes goes on
        waiting while one of them is busy, and so do those that the discipline has behind it, which
        might take the others."""
        on = self.requests[number].on
        return not on or bool((board.owner[list(on)] < 0).all())

    def _view(
        self,
        board: Board,
        time: int,
        queue: list[Request],
        counters: Counters | None = None,
        **changed: Any,
    ) -> View:
        sight = Sight(self.machine, board.owner < 0, counters)
        mine = memory_of(self._memory[1][1], board.memory)
        running = Holders(lambda: self.holders(board))
        return View(time, queue, running, sight.free, sight, memory=mine)._replace(**changed)

    def _in_order(self, board: Board, time: int, queue: list[Request]) -> list[Request]:
        """Returns the waiting jobs in the order of the discipline: that in which it would start
        them on a machine where all of them fit. What it remembers stays as it is."""
        room = sum(job.nodes for job in queue)
        copy = memory_of(self._memory[1][1], board.memory.copy())
        view = self._view(board, time, queue, free=room, sight=None, memory=copy)
        return [self.requests[number] for number in select(self.discipline, view)]

    def _start(self, board: Board, request: Request, time: int, counters: Counters | None) -> Start:
        number, idle = request.number, board.owner < 0
        labels = self._asked.place(self.machine, idle, request, self.seed, board.memory, counters)
        board.owner[labels] = number
        board.labels[self._places(number)] = labels
        board.jobs[number, [STATUS, LEFT, BEGAN]] = (
            RUNNING, request.nodes * self.tasks_per_node, time
        )  # fmt: skip
        return Start(number, labels, time)

    def _places(self, number: int) -> slice:
        """Returns where in `Board.labels` a job's nodes are."""
        return slice(int(self.first_place[number]), int(self.first_place[number + 1]))

    def _learn(self, board: Board, numbers: Sequence[int]) -> None:
        """Pass the jobs that have ended on to the policies that remember."""
        if not any(self._asked.layouts):
            return
        for number in numbers:
            start, end = board.jobs[number, [BEGAN, OVER]].tolist()
            labels = board.labels[self._places(number)].copy()
            self._asked.teach(Ended(self.requests[number], start, end, labels), board.memory)

    def holders(self, board: Board) -> list[Running]:
        """Returns the jobs that hold nodes, by number."""
        numbers = np.flatnonzero(board.jobs[:, STATUS] == RUNNING).tolist()
        labels = board.labels.copy()
        labels.flags.writeable = False
        return [Running(self.requests[n], int(board.jobs[n, BEGAN]), labels[self._places(n)])
                for n in numbers]  # fmt: skip
