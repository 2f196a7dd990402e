"""The scheduler: it keeps the queue and the board, asks policies, and answers with Starts.

It knows neither packets nor events. A model of either fidelity calls `decide` whenever a job
arrives or ends, and turns the Starts into its own kind of start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from odonata.jobs.asking import Asked, Holders
from odonata.jobs.board import (
    BEGAN,
    BOARD_WORDS,
    DONE,
    LEFT,
    OVER,
    QUEUED,
    RUNNING,
    STATUS,
    Board,
    Words,
)
from policies.allocation import AllocationPolicy
from policies.memory import Buffer, Layout, Sizes, memory_of, remembered
from policies.scheduling import SchedulingPolicy, select
from policies.views import Ended, Request, Running, Sight, View
from topology.dragonfly import Dragonfly


class Start(NamedTuple):
    """A job is to start at a time, on these nodes."""

    job: int
    labels: Words
    time: int


class Decided(NamedTuple):
    """The outcome of a decision: jobs that start, and the numbers of those found to have ended."""

    starts: list[Start]
    ended: list[int]


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
        m, users = self.machine, 1 + max(request.user_number for request in self.requests)
        sizes = Sizes(len(self.requests), m.n_nodes, m.groups, m.n_routers, users)
        return remembered((self.allocation, self.discipline), sizes)

    @cached_property
    def _asked(self) -> Asked:
        of_allocation, of_discipline = self._memory[1]
        return Asked(self.discipline, self.allocation, (of_discipline, of_allocation))

    def fresh_board(self) -> Board:
        """Returns the board before the first job has arrived."""
        return Board(
            np.zeros((len(self.requests), BOARD_WORDS), np.int64),
            np.full(self.machine.n_nodes, -1),
            np.full(int(self.first_place[-1]), -1),
            self._memory[0].copy(),
        )

    def decide(self, board: Board, time: int) -> Decided:
        """Free the nodes of jobs that are done, and start the jobs that can start. Asked again at
        the same time, it starts no more."""
        over = (board.owner >= 0) & (board.jobs[board.owner, STATUS] == DONE)
        ended = np.unique(board.owner[over]).tolist()
        self._learn(board, ended)
        board.owner[over] = -1
        return Decided(self._starts(board, time), ended)

    def _starts(self, board: Board, time: int) -> list[Start]:
        """Start the jobs that can start."""
        jobs, owner = board.jobs, board.owner
        arrived = self.by_submission[: np.searchsorted(self.submitted, time, "right")]
        waiting = arrived[jobs[arrived, STATUS] == QUEUED].tolist()
        if not self.discipline.always and (not waiting or (owner >= 0).all()):
            return []
        queue = [self.requests[number] for number in waiting]
        sight = Sight(self.machine, owner < 0)
        mine = memory_of(self._memory[1][1], board.memory)
        running = Holders(lambda: self.holders(board))
        view = View(time, queue, running, sight.free, sight, memory=mine)
        return [self._start(board, self.requests[number], time + self.launch)
                for number in select(self.discipline, view)]  # fmt: skip

    def _start(self, board: Board, request: Request, time: int) -> Start:
        number = request.number
        labels = self._asked.place(self.machine, board.owner < 0, request, self.seed, board.memory)
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
