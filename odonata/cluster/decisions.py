"""Passes of the scheduler in Python: where a discipline is not compiled, or jobs are placed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from odonata.cluster.dispatch import choose_now, launch_now, settle_now
from odonata.cluster.layout import ENDED, NODE, OVER, PASSING, START
from odonata.jobs.asking import Asked, Holders
from odonata.traces.trace import Trace
from pdes.events import WORDS
from pdes.model import Decision
from policies.memory import memory_of
from policies.scheduling import select
from policies.scheduling.compiled import Compiled
from policies.scheduling.desk import CHOSEN, FIRST, FREE, LAST, RUNNING, SINCE
from policies.views import Ended, Labels, Request, Running, Sight, View
from topology import Dragonfly

Slowdown = Callable[[Request, Labels], float]
"""Returns how many times as long as its run time a job takes on these nodes."""


@dataclass(frozen=True, eq=False)
class Passes:
    """Asks the policies of one run, on its state. Times are ticks."""

    trace: Trace
    machine: Dragonfly | None
    asked: Asked
    seed: int
    tick: str
    slowdown: Slowdown | None = None

    def decide(self, state: Any, time: int) -> Decision:
        """Make one pass. Returns the ends of the jobs that it starts, and where these are."""
        self._learn(state)
        ctl = state.ctl
        if ctl[FIRST] == ctl[LAST] and not self._always:
            ctl[PASSING] = 0
            return Decision([])
        if isinstance(self.asked.discipline, Compiled):
            choose_now(state, time)
        else:
            self._ask(state, time)
        settle_now(state, time)
        count = int(state.ctl[CHOSEN])
        log = []
        for row in state.chosen[:count].tolist() if self.machine else ():
            log.append(("placements", (row, self._place(state, row))))
        if not count:
            return Decision([])
        rows = np.zeros((count, WORDS), np.int64)
        launch_now(state, time, rows)
        ends: Any = rows if count > 1 else tuple(rows[0].tolist())
        return Decision(ends, log)

    @property
    def _always(self) -> bool:
        """Whether the discipline is asked though nobody waits, or no node is idle."""
        return self.asked.discipline.preemptive or self.asked.discipline.always

    def _ask(self, state: Any, time: int) -> None:
        ctl = state.ctl
        waiting = state.queue[ctl[FIRST] : ctl[LAST]].tolist()
        free, chosen = int(ctl[FREE]), []
        if self._always or (waiting and free):
            queue = [self.request(row) for row in waiting]
            sight = None if self.machine is None else Sight(self.machine, state.owner < 0)
            mine = memory_of(self.asked.layouts[0], state.memory)
            running = Holders(lambda: self.holders(state))
            view = View(time, queue, running, free, sight, memory=mine, tick=self.tick)
            chosen = select(self.asked.discipline, view)
        state.chosen[: len(chosen)] = chosen
        ctl[CHOSEN] = len(chosen)

    def _place(self, state: Any, row: int) -> Labels:
        assert self.machine is not None
        request = self.request(row)
        labels = self.asked.place(self.machine, state.owner < 0, request, self.seed, state.memory)
        state.owner[labels] = row
        state.after[labels[:-1]], state.after[labels[-1]] = labels[1:], -1
        state.jobs[row, NODE] = labels[0]
        if self.slowdown is not None:
            state.slowdown[row] = self.slowdown(request, labels)
        return labels

    def _learn(self, state: Any) -> None:
        """Pass the jobs that have ended on to the policies that remember."""
        count, state.ctl[ENDED] = int(state.ctl[ENDED]), 0
        for row in state.ended[:count].tolist() if any(self.asked.layouts) else ():
            start, end = state.jobs[row, [START, OVER]].tolist()
            ended = Ended(self.request(row), start, end, self._labels(state, row))
            self.asked.teach(ended, state.memory)

    # -- what policies see

    @cached_property
    def _requests(self) -> dict[int, Request]:
        return {}

    @cached_property
    def _columns(self) -> tuple[list[int], ...]:
        t = self.trace
        wanted = (t.nodes, t.submit_us, t.requested_us, t.user, t.project, t.application, t.number)
        return tuple(column.tolist() for column in wanted)

    def request(self, row: int) -> Request:
        """Returns a job as policies see it; its number is its place in the trace."""
        found = self._requests.get(row)
        if found is None:
            trace = self.trace
            nodes, submit, requested, user, project, application, number = (
                column[row] for column in self._columns
            )
            found = self._requests[row] = Request(
                row, nodes, submit, None if requested < 0 else requested, trace.users[user],
                trace.projects[project], trace.applications[application], str(number), user,
            )  # fmt: skip
        return found

    def holders(self, state: Any) -> list[Running]:
        """Returns the jobs that hold nodes, by number."""
        rows = np.sort(state.running[: state.ctl[RUNNING]]).tolist()
        return [Running(self.request(row), int(state.jobs[row, SINCE]), self._labels(state, row))
                for row in rows]  # fmt: skip

    def _labels(self, state: Any, row: int) -> Labels:
        found, node = [], int(state.jobs[row, NODE]) if self.machine else -1
        while node >= 0:
            found.append(node)
            node = int(state.after[node])
        labels = np.array(found, np.int64)
        labels.flags.writeable = False
        return labels


def rehearse(state: Any) -> None:
    """Have the kernels of a pass compiled, on a state in which nobody waits."""
    choose_now(state, 0)
    settle_now(state, 0)
    launch_now(state, 0, np.zeros((0, WORDS), np.int64))
