"""Passes of the scheduler in Python: where a discipline is not compiled, or jobs are placed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from odonata.cluster.dispatch import choose_now, entries_of, launch_now, settle_now
from odonata.cluster.layout import (
    AGAIN,
    BY_INTERVAL,
    DONE,
    ENDED,
    LAST_END,
    MEASURED,
    NODE,
    OVER,
    PASSING,
    SCHEDULER,
    SLEEP,
    SLEEP_AFTER,
    START,
)
from odonata.cluster.powering import Powering
from odonata.jobs.asking import Asked, Holders
from odonata.traces.trace import Trace
from pdes.events import WORDS, pack
from pdes.model import Decision
from policies.memory import memory_of
from policies.scheduling import select
from policies.scheduling.compiled import Compiled
from policies.scheduling.desk import CHOSEN, DUE, FIRST, FREE, LAST, NODES, RUNNING, SINCE
from policies.views import Choices, Ended, Labels, Request, Running, Sight, View
from topology import Dragonfly

SLEEP_KEY = int(pack(SLEEP, SCHEDULER, 0))
NOWHERE: Labels = np.zeros(0, np.int64)
NOWHERE.flags.writeable = False
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
    worst: float = 1.0
    """By how much the least efficient node may exceed the most efficient one in power."""
    choices: Mapping[str, Choices] = field(default_factory=dict)
    """What was measured of applications, whose jobs are moldable."""

    def decide(self, state: Any, time: int, serial: int) -> Decision:
        """Make one pass. Returns the ends of the jobs that it starts, and where these are. One that
        a power policy asked for has a serial number: a later one takes its place."""
        ctl = state.ctl
        if serial and serial != ctl[AGAIN] and not ctl[PASSING]:
            return Decision([])
        self._learn(state)
        over = ctl[DONE] == len(state.jobs) and time > ctl[LAST_END]
        if self.powering is not None and over:
            ctl[PASSING] = 0
            return Decision([])
        if self.powering is None:
            return self._pass(state, time)
        log: list[Any] = [*self.powering.observe(state, time)]
        started = self._pass(state, time)
        rows = self.powering.caps(state, time)
        if not rows:
            return Decision(started.events, [*log, *started.log]) if log else started
        first = started.events
        if isinstance(first, tuple):
            first = [first]
        events = np.concatenate([np.reshape(np.array(first, np.int64), (-1, WORDS)), *rows])
        return Decision(events, [*log, *started.log])

    @cached_property
    def powering(self) -> Powering | None:
        """Returns who asks the power policy, if there is one."""
        asked = self.asked
        if asked.power is None:
            return None
        return Powering(asked.power, asked.discipline, asked.layouts[2], self.tick, self.request,
                        self.holders, self.worst, self.choices, self._applications)  # fmt: skip

    @property
    def _applications(self) -> Any:
        """Returns the application of each job, numbered in the order of the choices, -1 if it is in
        none."""
        places = {name: place for place, name in enumerate(self.choices)}
        named = np.array([places.get(name, -1) for name in self.trace.applications], np.int64)
        found = named[self.trace.application]
        found.flags.writeable = False
        return found

    def _pass(self, state: Any, time: int) -> Decision:
        ctl = state.ctl
        between = ctl[BY_INTERVAL] and (time == 0 or ctl[MEASURED] != time)
        if between or (ctl[FIRST] == ctl[LAST] and not self._always):
            ctl[PASSING] = 0
            return Decision([])
        entries = entries_of(state)
        log: list[Any] = []
        if self.powering is not None and self.powering.policy.selects:
            log = self.powering.select(state, time)
        else:
            if self.powering is not None:
                self.powering.foresee(state, time)
            if isinstance(self.asked.discipline, Compiled):
                entries.choose(state, time)
            else:
                self._ask(state, time)
            if self.powering is not None:
                self.powering.configure(state, time)
        extra = []
        if entries.settle(state, time) and ctl[SLEEP_AFTER] >= 0:
            extra.append((time + int(ctl[SLEEP_AFTER]), SLEEP_KEY, 0, 0))
        count = int(state.ctl[CHOSEN])
        if not count:
            return Decision(extra)
        for row in state.chosen[:count].tolist() if self.machine else ():
            log.append(("placements", (row, self._place(state, row))))
        rows = np.zeros((count, WORDS), np.int64)
        ends = entries.launch(state, time, rows)
        if ends == 1 and not extra:
            return Decision(tuple(rows[0].tolist()), log)
        more = np.array(extra, np.int64).reshape(-1, WORDS)
        return Decision(np.concatenate([rows[:ends], more]), log)

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
            view = View(time, queue, running, free, sight, memory=mine, tick=self.tick,
                        pace=float(state.start_pace[0]))  # fmt: skip
            chosen = select(self.asked.discipline, view)
        state.chosen[: len(chosen)] = chosen
        ctl[CHOSEN] = len(chosen)

    def _place(self, state: Any, row: int) -> Labels:
        assert self.machine is not None
        request = self.request(row)._replace(nodes=int(state.jobs[row, NODES]))
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
        wanted = (t.nodes, t.submit_us, t.requested_us, t.user, t.project, t.application, t.number,
                  t.alike)  # fmt: skip
        return tuple(column.tolist() for column in wanted)

    def request(self, row: int) -> Request:
        """Returns a job as policies see it; its number is its place in the trace."""
        found = self._requests.get(row)
        if found is None:
            trace = self.trace
            nodes, submit, requested, user, project, application, number, like = (
                column[row] for column in self._columns
            )
            found = self._requests[row] = Request(
                row, nodes, submit, None if requested < 0 else requested, trace.users[user],
                trace.projects[project], trace.applications[application], str(number), user,
                project, like,
            )  # fmt: skip
        return found

    def holders(self, state: Any) -> list[Running]:
        """Returns the jobs that hold nodes, by number."""
        rows = sorted(state.running[: state.ctl[RUNNING]].tolist())
        words = state.jobs.data  # of which Python reads a word five times as fast
        return [Running(self.request(row), words[row, SINCE], self._labels(state, row),
                        words[row, DUE]) for row in rows]  # fmt: skip

    def _labels(self, state: Any, row: int) -> Labels:
        found, node = [], int(state.jobs[row, NODE]) if self.machine else -1
        while node >= 0:
            found.append(node)
            node = int(state.after[node])
        if not found:
            return NOWHERE
        labels = np.array(found, np.int64)
        labels.flags.writeable = False
        return labels


def rehearse(state: Any, passes: Passes | None = None) -> None:
    """Have the kernels of a pass compiled, on a state in which nobody waits."""
    choose_now(state, 0)
    settle_now(state, 0)
    launch_now(state, 0, np.zeros((0, WORDS), np.int64))
    if passes is not None and passes.powering is not None:
        passes.powering.prepare(state)
