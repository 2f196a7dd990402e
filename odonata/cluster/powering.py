"""Asks the power policy of a job run, on its state, and does what it answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from odonata.cluster.dispatch import (
    cap_now,
    entries_of,
    pace_now,
    readings_now,
    speed_now,
    work_now,
)
from odonata.cluster.layout import (
    AGAIN,
    AGAIN_AT,
    ARRIVED,
    CAP_W,
    CAPS_LEFT,
    CHANGE_TO,
    DEPARTED,
    FORCED,
    IDLE_W,
    LAST_W,
    LEAST_W,
    MACHINE_CAP_W,
    MEAN_W,
    MOLD,
    NEXT,
    PASS,
    PATIENCE,
    PAUSED,
    PEAK_W,
    READ,
    READ_W,
    RUN,
    SCHEDULER,
    SPREAD,
    STATUS,
    STILL,
)
from odonata.jobs.asking import Holders
from odonata.jobs.schedule import RUNNING as RUNS
from pdes.events import WORDS, pack
from policies.memory import Layout, Memory, memory_of
from policies.power import Choices, Configuration, Mold, Powered, PowerPolicy, PowerView, Readings
from policies.power.base import admit, caps, configuration, observe, start_cap_w
from policies.scheduling import Discipline, SchedulingPolicy
from policies.scheduling.compiled import Compiled
from policies.scheduling.desk import (
    ALL,
    CHOSEN,
    DUE,
    FIRST,
    FREE,
    LAST,
    NEVER,
    NODES,
    REQUESTED,
    RUNNING,
)
from policies.views import Budget, PowerDesk, Request, Running

if TYPE_CHECKING:
    Holding = Callable[[Any], list[Running]]

Logged = tuple[str, Sequence[Any]]
PASS_KEY = int(pack(PASS, SCHEDULER, 0))


class Waiting(Sequence[Request]):
    """The waiting jobs that a policy is shown, each looked up when it is asked for: a policy that
    goes by the desk asks for none. It is good until the policy has answered."""

    def __init__(self, rows: Any, request: Callable[[int], Request]) -> None:
        self._rows, self._request = rows, request

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Request]:
        return map(self._request, self._rows.tolist())

    def __getitem__(self, which: Any) -> Any:
        if isinstance(which, slice):
            return [*map(self._request, self._rows[which].tolist())]
        return self._request(int(self._rows[which]))


def _locked(array: Any) -> Any:
    """Returns a view of an array that nobody can write to."""
    found = array[:]
    found.flags.writeable = False
    return found


class Words(NamedTuple):
    """The arrays of a state: the memory of those of which single words are read, which Python does
    five times as fast; what the policy
    remembers; and for its desk, read-only, the columns of jobs, and who was chosen and runs."""

    state: Any
    ctl: Any
    meter: Any
    jobs: Any
    energy: Any
    memory: Memory | None
    columns: tuple[Any, ...]
    chosen: Any
    running: Any


@dataclass(frozen=True, eq=False)
class Powering:
    """Asks one policy. `request` and `holders` are those of the passes."""

    policy: PowerPolicy
    discipline: SchedulingPolicy
    layout: Layout | None
    tick: str
    request: Callable[[int], Request]
    holders: Holding
    worst: float = 1.0
    """The factor of the least efficient node that there may be."""
    choices: Mapping[str, Choices] = field(default_factory=dict)
    """What was measured of applications, whose jobs are moldable."""
    application: Any = None
    """[job]: its application, numbered in the order of `choices`, -1 if it is in none."""
    _cache: dict[str, Any] = field(default_factory=dict)

    # -- what the policy sees

    def _words(self, state: Any) -> Words:
        """Returns the arrays of a state as they are read here, made once per state."""
        found: Words | None = self._cache.get("words")
        if found is None or found.state is not state:
            jobs = state.jobs
            columns = tuple(_locked(jobs[:, word]) for word in (NODES, REQUESTED, DUE, MOLD))
            found = self._cache["words"] = Words(
                state, state.ctl.data, state.meter.data, jobs.data, state.energy.data,
                memory_of(self.layout, state.memory), (*columns, self.application),
                _locked(state.chosen), _locked(state.running),
            )  # fmt: skip
        return found

    def view(
        self, state: Any, time: int, queue: Sequence[Request], readings: Readings | None = None,
        desk: PowerDesk | None = None,
    ) -> PowerView:  # fmt: skip
        """Returns the machine as the policy sees it."""
        words = self._words(state)
        ctl, meter = words.ctl, words.meter
        free = ctl[FREE]
        return PowerView(
            time, queue, Holders(lambda: self._powered(state), ctl[RUNNING]), free, meter[IDLE_W],
            Budget(meter[MACHINE_CAP_W], meter[LAST_W]), self.choices, words.memory,
            meter[LEAST_W] * self.worst, meter[PEAK_W], readings, ctl[ARRIVED], ctl[DEPARTED],
            ctl[ALL] - free, lambda: float(work_now(state, time)), self.tick, desk,
        )  # fmt: skip

    def _powered(self, state: Any) -> list[Powered]:
        words, found = self._words(state), []
        jobs, energy = words.jobs, words.energy
        for run in self.holders(state):
            row = run.request.number
            nodes, due = jobs[row, NODES], jobs[row, DUE]
            found.append(Powered(
                run, Configuration(nodes, 0, energy[row, CAP_W]), nodes * energy[row, READ_W], None,
                jobs[row, PAUSED] != 0, self._mold(run.request, jobs[row, MOLD]),
                due if due < NEVER else None,
            ))  # fmt: skip
        return found

    def _mold(self, request: Request, at: int) -> Mold | None:
        return None if at < 0 else Mold(*self.choices[request.application][at][:3])

    def _desk(self, words: Words, rows: Any) -> PowerDesk | None:
        """Returns the jobs as arrays, of which those in `rows` are shown to the policy."""
        if self.application is None:
            return None
        return PowerDesk(*[*words.columns, rows, words.running[: words.ctl[RUNNING]]])

    def _waiting(self, state: Any) -> Holders[Request]:
        ctl = state.ctl
        rows = state.queue[ctl[FIRST] : ctl[LAST]]
        return Holders(lambda: [self.request(row) for row in rows.tolist()], len(rows))

    @cached_property
    def _room(self) -> dict[int, tuple[Any, Any]]:
        return {}

    def _readings(self, state: Any) -> Readings:
        size = len(state.running)
        jobs, watts = self._room.setdefault(size, (np.zeros(size, np.int64), np.zeros(size)))
        count = readings_now(state, jobs, watts)
        return Readings(jobs[:count], watts[:count])

    def _lasts(self, state: Any) -> bool:
        """Tells whether a job is to come, or another cap, or a job gets on; where for long none
        does, a policy is not asked again when it wants to be."""
        ctl = state.ctl
        rows = state.running[: ctl[RUNNING]]
        to_come = ctl[NEXT] < len(state.jobs) or ctl[CAPS_LEFT] > 0
        if to_come or (state.jobs[rows, PAUSED] == 0).any():
            return True
        ctl[STILL] += 1
        return bool(ctl[STILL] < PATIENCE)

    # -- asking

    @cached_property
    def _caps(self) -> bool:
        """Tells whether the policy has caps of its own to give."""
        return type(self.policy).caps is not PowerPolicy.caps

    def prepare(self, state: Any) -> None:
        """Have the policy compile what it will need, on a state in which nobody waits."""
        words = self._words(state)
        rows = words.chosen[:0]
        desk = self._desk(words, rows)
        self.policy.prepare(self.view(state, 0, Waiting(rows, self.request), None, desk))

    def observe(self, state: Any, time: int) -> list[Logged]:
        """Tell the policy what was measured at this instant, if anything was. Returns the row of
        the log of its figures."""
        if not state.ctl[READ]:
            return []
        state.ctl[READ] = 0
        view = self.view(state, time, self._waiting(state), self._readings(state))
        values = observe(self.policy, view)
        return [("learned", values)] if values else []

    def select(self, state: Any, time: int) -> list[Logged]:
        """Have the policy choose among the first waiting jobs; its choice is in `chosen`. Returns
        the rows of the log of what moldable ones start in."""
        words = self._words(state)
        ctl, jobs, energy = words.ctl, words.jobs, words.energy
        ctl[CHOSEN] = 0
        if ctl[FIRST] == ctl[LAST] or ctl[FREE] <= 0:
            return []
        rows = self._in_order(state, time)
        view = self.view(state, time, Waiting(rows, self.request), None, self._desk(words, rows))
        numbers, forced, molds = admit(self.policy, view)
        for at, row in enumerate(numbers):
            energy[row, CAP_W], jobs[row, FORCED], state.chosen[at] = inf, 0, row
        for row in forced:
            jobs[row, FORCED] = 1
        ctl[CHOSEN] = len(numbers)
        return [self._make(words, row, mold) for row, mold in molds.items()]

    def _make(self, words: Words, row: int, mold: Mold) -> Logged:
        """Have a moldable job run in one of its choices: it takes the time, and draws the watts,
        that were measured. Returns the row of the log."""
        choices = self.choices[self.request(row).application]
        at = choices.place(*mold[:3])
        nodes, cores, cap_w, watts, time = choices[at]
        job, energy = words.jobs, words.energy
        job[row, MOLD], job[row, NODES], job[row, RUN] = at, nodes, time
        if mold.limit is not None:
            job[row, REQUESTED] = min(mold.limit, NEVER)
        words.state.work[row] = time
        energy[row, MEAN_W] = watts / nodes
        energy[row, SPREAD], energy[row, CHANGE_TO] = 0.0, 1.0
        return "molds", (row, nodes, cores, cap_w, watts, job[row, REQUESTED])

    def _in_order(self, state: Any, time: int) -> Any:
        """Returns the rows of the waiting jobs that the policy is shown, which stand there until
        the next choice."""
        words, most = self._words(state), self.policy.shown
        ctl = words.ctl
        waiting = ctl[LAST] - ctl[FIRST]
        most = min(most, waiting) if most else waiting
        if isinstance(self.discipline, Compiled):
            return words.chosen[: entries_of(state).order(state, time, most)]
        assert isinstance(self.discipline, Discipline)
        rows = state.queue[ctl[FIRST] : ctl[LAST]].tolist()
        order = self.discipline.order([self.request(row) for row in rows])
        return _locked(np.array([rows[position] for position in order[:most]], np.int64))

    @cached_property
    def _foresees(self) -> bool:
        """Tells whether the policy says under which cap a job would start."""
        return type(self.policy).start_cap_w is not PowerPolicy.start_cap_w

    def foresee(self, state: Any, time: int) -> None:
        """Have the discipline know at which pace a job would run that starts now."""
        if self._foresees:
            cap_w = start_cap_w(self.policy, self.view(state, time, self._waiting(state)))
            pace_now(state, cap_w / self.worst)

    def configure(self, state: Any, time: int) -> None:
        """Ask what each of the chosen jobs starts with; the first that has to wait, and all behind
        it, are no longer chosen."""
        count = int(state.ctl[CHOSEN])
        if not count:
            return
        rows = state.chosen[:count].tolist()
        view = self.view(state, time, self._waiting(state))
        runs = state.jobs[rows, STATUS] == RUNS
        if self.discipline.preemptive:  # of the running jobs only these stay
            busy = int(state.jobs[rows, NODES][runs].sum())
            view = view._replace(free=view.free + view.busy - busy, busy=busy)
        admitted, waits = [], False
        for row, running in zip(rows, runs.tolist(), strict=True):
            if running:
                admitted.append(row)
                continue
            job = self.request(row)
            found = None if waits else configuration(self.policy, view, job)
            if found is None:
                waits = True
                continue
            state.energy[row, CAP_W], state.jobs[row, FORCED] = found.cap_w, found.forced
            view = view._replace(free=view.free - job.nodes, busy=view.busy + job.nodes)
            admitted.append(row)
        state.chosen[: len(admitted)] = admitted
        state.ctl[CHOSEN] = len(admitted)

    def caps(self, state: Any, time: int) -> list[Any]:
        """Ask for caps, and give them to jobs. Returns events, as rows: the new ends of jobs, and
        the pass at which the policy wants to be asked again."""
        ctl = state.ctl
        if not self._caps:
            return []
        answer = caps(self.policy, self.view(state, time, self._waiting(state)))
        ctl[ARRIVED] = ctl[DEPARTED] = 0
        rows: list[Any] = []
        numbers = [*answer.cap_w, *answer.suspend, *answer.resume]
        if numbers:
            watts = np.array([*answer.cap_w.values()] + [-1.0] * len(answer.suspend)
                             + [np.nan] * len(answer.resume))  # fmt: skip
            ends = np.zeros((len(numbers), WORDS), np.int64)
            rows.append(ends[: cap_now(state, time, np.array(numbers, np.int64), watts, ends)])
        if answer.speed is not None:
            ends = np.zeros((int(ctl[RUNNING]), WORDS), np.int64)
            rate, busy_w, idle_w = map(float, answer.speed)
            rows.append(ends[: speed_now(state, time, rate, busy_w, idle_w, ends)])
        if answer.again is not None and ctl[AGAIN_AT] != answer.again and self._lasts(state):
            ctl[AGAIN] += 1
            ctl[AGAIN_AT] = answer.again
            rows.append(np.array([[answer.again, PASS_KEY, 0, ctl[AGAIN]]]))
        return rows
