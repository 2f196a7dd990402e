"""The scheduler: it keeps the queue and the board, asks policies, and answers with Starts.

It knows no packet and no event. What runs a job, in either fidelity, calls `decide` whenever a job
arrives or ends, and turns the Starts into whatever a start is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from odonata.jobs.board import BEGAN, DONE, LEFT, QUEUED, RUNNING, STATUS, Board, Words
from policies.allocation import AllocationPolicy, Floor, allocate, rng_for
from policies.scheduling import SchedulingPolicy, Waiting, order_of
from topology.dragonfly import Dragonfly


class Start(NamedTuple):
    """A job is to start at a time, on these nodes."""

    job: int
    labels: Words
    time: int


@dataclass(frozen=True)
class Scheduler:
    """Times are ticks of the model that has it; a job starts `launch` after the decision. Its tasks
    are `tasks_per_node` times its nodes."""

    machine: Dragonfly
    requests: Sequence[Waiting]
    allocation: AllocationPolicy
    discipline: SchedulingPolicy
    seed: int
    launch: int
    tasks_per_node: int = 1

    @cached_property
    def by_submission(self) -> Words:
        """Numbers of jobs, in the order in which they join the queue."""
        return np.argsort([request.arrival_ps for request in self.requests], kind="stable")

    @cached_property
    def submitted(self) -> Words:
        """When those join it."""
        return np.array([self.requests[n].arrival_ps for n in self.by_submission], np.int64)

    @cached_property
    def first_place(self) -> Words:
        """Where in `Board.labels` the nodes of each job begin."""
        return np.concatenate(([0], np.cumsum([r.nodes for r in self.requests])))

    def decide(self, board: Board, time: int) -> list[Start]:
        """Take the jobs that are done off the machine, and start those that can be. Asked again at
        the same time, it starts no more."""
        jobs, owner = board.jobs, board.owner
        owner[(owner >= 0) & (jobs[owner, STATUS] == DONE)] = -1
        arrived = self.by_submission[: np.searchsorted(self.submitted, time, "right")]
        waiting = arrived[jobs[arrived, STATUS] == QUEUED].tolist()
        queue = [self.requests[number] for number in waiting]
        if not queue or (owner >= 0).all():
            return []
        starts = []
        for place in order_of(self.discipline, queue):
            request = queue[place]
            floor = Floor(self.machine, owner < 0)
            if request.nodes > floor.free:
                if self.discipline.strict:
                    break
                continue
            starts.append(self._start(board, request, floor, time + self.launch))
        return starts

    def _start(self, board: Board, request: Waiting, floor: Floor, time: int) -> Start:
        number, rng = request.number, rng_for(self.seed, request.number)
        labels = allocate(self.allocation, floor, request.nodes, rng)
        board.owner[labels] = number
        first = int(self.first_place[number])
        board.labels[first : first + request.nodes] = labels
        board.jobs[number, [STATUS, LEFT, BEGAN]] = (
            RUNNING, request.nodes * self.tasks_per_node, time
        )  # fmt: skip
        return Start(number, labels, time)
