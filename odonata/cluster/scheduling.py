"""The machine of a job run, for the scheduler's pass: all of it is arrays, and happens at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from odonata.cluster import layout as w
from odonata.cluster.dispatch import (
    cap_now,
    choose_now,
    count_now,
    launch_now,
    note_held_now,
    order_now,
    pace_now,
    pause_now,
    serve_now,
    settle_now,
    speed_now,
    steering,
    work_now,
)
from odonata.cluster.market import Trading
from odonata.cluster.metrics import running_rows, waiting_rows
from odonata.jobs import machine as happened
from odonata.jobs.asking import Policies, locked
from odonata.jobs.floors import work_left
from odonata.jobs.machine import PATIENCE, Hour, Machine, Watts
from odonata.jobs.passes import Passes
from odonata.jobs.power import Power
from odonata.traces.trace import Trace
from pdes.events import pack
from pdes.jit import direct, explaining
from pdes.model import Decision, Event
from policies.memory import memory_of
from policies.power import Choices, Mold, PowerPolicy, Speed
from policies.power import floor as f
from policies.power.base import check_cap
from policies.power.steering import arrays_of, check_said, failed, given_of
from policies.scheduling.compiled import Compiled
from policies.scheduling.desk import NEVER, ORDER
from policies.scheduling.rules import USAGE
from policies.views import (
    Bid,
    Configuration,
    Ended,
    Labels,
    PowerDesk,
    Readings,
    Request,
    Running,
    Target,
    Trial,
)
from topology import Dragonfly

END_KEY, SLEEP_KEY, BID_KEY, PASS_KEY, CONTROL_KEY = (
    int(pack(kind, w.SCHEDULER, 0)) for kind in (w.END, w.SLEEP, w.BID, w.PASS, w.CONTROL)
)
WISHES = ((happened.AGAIN, w.AGAIN, w.AGAIN_AT), (happened.RETRY, w.RETRY, w.RETRY_AT))
"""Of a power and of a scheduling policy: what happens when it wanted to be asked again, and the
words of `State.ctl` that count its requests and tell for when the last one was."""
NOWHERE: Labels = locked(np.zeros(0, np.int64))
Slowdown = Callable[[Request, Labels], float]
"""Returns how many times as long as its run time a job takes on these nodes."""


class Requests:
    """The jobs of a trace as policies see them, each made when it is first asked for."""

    def __init__(self, trace: Trace) -> None:
        self._trace, self._made = trace, dict[int, Request]()
        self._columns = [column.tolist() for column in (
            trace.nodes, trace.submit_us, trace.requested_us, trace.user, trace.project,
            trace.application, trace.number, trace.alike,
        )]  # fmt: skip

    def __call__(self, row: int) -> Request:
        """Returns a job; its number is its place in the trace."""
        found = self._made.get(row)
        if found is None:
            trace = self._trace
            nodes, submit, requested, user, project, application, number, like = (
                column[row] for column in self._columns
            )
            found = self._made[row] = Request(
                row, nodes, submit, None if requested < 0 else requested, trace.users[user],
                trace.projects[project], trace.applications[application], str(number), user,
                project, like,
            )  # fmt: skip
        return found


class ArrayMachine(Machine):
    """The machine, on the arrays of a state. It is made once, and brought to each instant by
    `decide`."""

    def __init__(
        self,
        state: Any,
        trace: Trace,
        topology: Dragonfly | None,
        policies: Policies,
        tick: str,
        slowdown: Slowdown | None = None,
        power: Power | None = None,
        choices: Mapping[str, Choices] | None = None,
        trading: Trading | None = None,
    ) -> None:
        """`power` is what nodes draw; `choices` are what was measured of applications, whose jobs
        are moldable."""
        self.state, self.tick, self.time, self.memory = state, tick, 0, state.memory
        self._requests = Requests(trace)
        self.log, self.events = [], list[Event]()
        self._placed, self._slowdown = topology is not None, slowdown
        self._worst = 1.0 + power.variation if power else 1.0
        self._least_w = float(power.least_of_all) if power else 0.0
        self._served_column = locked(state.served)
        self._choices, self._trading = choices or {}, trading
        # The memory of arrays of which single words are read, which Python does five times as fast.
        self._ctl, self._meter = state.ctl.data, state.meter.data
        self._jobs, self._energy = state.jobs.data, state.energy.data
        self.paced = policies.power is not None and self._ctl[w.STRETCHES] != 0
        self._compiled = isinstance(policies.scheduling, Compiled)
        self._steers_types = policies.power is not None and policies.power.regulate is not None
        self._columns: dict[str, Any] | None = None
        self._latest: tuple[tuple[int, int, int], PowerDesk, Any, PowerDesk] | None = None
        powered = policies.power is not None or trading is not None
        if powered:
            self._columns = self._desk_columns(trace)
        self._power, self._steer = policies.power, None
        if self._steers_types:
            return  # no pass is made here
        self._settle, self._launch = direct(settle_now, state, 0), direct(launch_now, state, 0)
        if self._compiled:
            self._choose = direct(choose_now, state, 0)
            if policies.power is not None and policies.power.selects:
                self._order = direct(order_now, state, 0, 0)
        if policies.power is not None and policies.power.steer is None:
            self._cap = direct(cap_now, state, 0, np.zeros(0, np.int64), np.zeros(0))
        elif policies.power is not None:
            memory = arrays_of(memory_of(policies.layouts[2], self.memory))
            self._steered = memory, given_of(policies.power), np.full(len(state.jobs), np.nan)
            self._steer = self._compiled_steer(policies.power)

    def _compiled_steer(self, policy: PowerPolicy) -> Callable[..., tuple[int, int, int]]:
        """Returns what has the kernel of a policy give caps, compiled."""
        assert policy.steer is not None
        try:
            with explaining():
                return direct(steering(policy.steer), *self._asked_to_steer())  # type: ignore[no-any-return]
        except Exception as error:
            raise failed(policy, error) from error

    def _desk_columns(self, trace: Trace) -> dict[str, Any]:
        """Returns the columns of a desk, which are those of the state."""
        places = {name: place for place, name in enumerate(self._choices)}
        named = np.array([places.get(name, -1) for name in trace.applications], np.int64)
        jobs, energy = self.state.jobs, self.state.energy
        words = {
            "nodes": w.NODES, "requested": w.REQUESTED, "due": w.DUE, "mold": w.MOLD,
            "submit": w.SUBMIT, "start": w.START, "suspended": w.PAUSED, "forced": w.FORCED,
        }  # fmt: skip
        found = {name: jobs[:, word] for name, word in words.items()}
        found |= {"cap_w": energy[:, w.CAP_W], "measured_w": energy[:, w.READ_W],
                  "application": named[trace.application]}  # fmt: skip
        return {name: locked(column) for name, column in found.items()} | {"served": self._served}

    def _served(self) -> npt.NDArray[np.float64]:
        serve_now(self.state, self.time)
        return self._served_column

    # -- an instant

    def decide(self, passes: Passes, time: int, whose: int, serial: int) -> Decision:
        """Do what follows from what has happened. Where a policy, one of WISHES, wanted to be asked
        again, that has a serial number, and a later one takes its place."""
        ctl = self._ctl
        bit, count, _ = WISHES[whose]
        if serial and serial != ctl[count]:
            return Decision([])
        self.time, self.log, self.events = time, [], []
        what = ctl[w.HAPPENED] | (bit if serial else 0)
        ctl[w.PASSING] = ctl[w.CONTROLLING] = ctl[w.HAPPENED] = 0
        if passes.policies.power is not None and self._over(time):
            passes.learn(self)
        else:
            passes.respond(self, what)
        return Decision(self.events, self.log)

    def begin_hour(self, passes: Passes, time: int) -> Decision:
        """Have what is offered in the hour of the market that begins be bid."""
        assert self._trading is not None
        self.time, self.log, self.events = time, [], []
        until = self._ctl[w.RUN_UNTIL]
        goes_on = self._steers_types and until and time < until
        if not goes_on and (self._over(time) or self._ctl[w.STILL] >= PATIENCE):
            return Decision([])
        if until and time >= until:
            return Decision([])
        if self._steers_types:
            self._show()
        self.events.append((time + self._trading.length, BID_KEY, 0, 0))
        if time:
            self._trading.judge(self.state.market, time - self._trading.length, time)
        passes.bid(self)
        self._happen(happened.TARGET)
        return Decision(self.events, self.log)

    def _show(self) -> None:
        """Have the columns that policies see say what is so, where jobs have the clocks of their
        types: nothing else goes by these columns."""
        state, ctl, time = self.state, self.state.ctl, self.time
        waiting, running = waiting_rows(state), running_rows(state)
        ctl[[w.FIRST, w.LAST, w.RUNNING]] = 0, len(waiting), len(running)
        state.queue[: len(waiting)] = waiting
        kinds = state.kinds[state.rows[running, f.OF]]
        halted = state.progress[running, f.LEFT] >= 0.0
        left = work_left(state, running, time)
        state.work[running], state.jobs[running, w.COUNTED] = left, time
        state.pace[running] = np.where(halted, np.inf, kinds[:, f.PACE])
        state.energy[running, w.CAP_W] = np.where(kinds[:, f.RATIO] < 1, kinds[:, f.WATTS], np.inf)
        state.energy[running, w.READ_W] = np.where(halted, state.meter[w.IDLE_W],
                                                   kinds[:, f.WATTS])  # fmt: skip
        asked = state.jobs[running, w.REQUESTED]
        due = np.where(asked < NEVER, state.jobs[running, w.SINCE] + asked, NEVER)
        state.jobs[running, w.DUE] = due
        state.running[: len(running)] = running[np.argsort(due, kind="stable")]
        self._latest = None

    def _happen(self, what: int) -> None:
        """Have something be followed by a pass, or by control, at this instant."""
        ctl = self._ctl
        ctl[w.HAPPENED] |= what
        if ctl[w.PASSING]:
            return
        if what & ctl[w.PASS_AT]:
            ctl[w.PASSING] = 1
            self.events.append((self.time, PASS_KEY, 0, 0))
        elif what & ctl[w.CONTROL_AT] and not ctl[w.CONTROLLING]:
            ctl[w.CONTROLLING] = 1
            self.events.append((self.time, CONTROL_KEY, 0, 0))

    def _over(self, time: int) -> bool:
        """Tells whether all jobs were over before now."""
        return bool(self._ctl[w.DONE] == len(self.state.jobs) and time > self._ctl[w.LAST_END])

    def _alarm(self, time: int) -> None:
        """Set the alarm of a job's end, if one has to be set."""
        if time >= 0:
            self.events.append((time, END_KEY, 0, 0))

    # -- what is known

    @property
    def free(self) -> int:
        return self._ctl[w.FREE]  # type: ignore[no-any-return]

    @property
    def busy(self) -> int:
        return self._ctl[w.ALL] - self._ctl[w.FREE]  # type: ignore[no-any-return]

    @property
    def queued(self) -> int:
        return self._ctl[w.LAST] - self._ctl[w.FIRST]  # type: ignore[no-any-return]

    @property
    def pace(self) -> float:
        return float(self.state.start_pace[0])

    def idle(self) -> npt.NDArray[np.bool_] | None:
        return self.state.owner < 0 if self._placed else None

    def request(self, number: int) -> Request:
        return self._requests(number)

    def nodes_of(self, number: int) -> int:
        return self._jobs[number, w.NODES]  # type: ignore[no-any-return]

    def waiting(self) -> Sequence[Request]:
        rows = self.state.queue[self._ctl[w.FIRST] : self._ctl[w.LAST]].tolist()
        return [self.request(row) for row in rows]

    def running(self) -> list[Running]:
        rows, jobs = sorted(self.state.running[: self._ctl[w.RUNNING]].tolist()), self._jobs
        request, labels = self._requests, self._labels
        return [Running(request(row), jobs[row, w.SINCE], labels(row), jobs[row, w.DUE])
                for row in rows]  # fmt: skip

    def _labels(self, row: int) -> Labels:
        if not self._placed:
            return NOWHERE
        found, node = [], self._jobs[row, w.NODE]
        while node >= 0:
            found.append(node)
            node = int(self.state.after[node])
        return locked(np.array(found, np.int64)) if found else NOWHERE

    def ended(self) -> list[Ended]:
        count, words = self._ctl[w.ENDED], self._jobs
        if not count:
            return []
        self._ctl[w.ENDED] = 0
        return [Ended(self.request(row), words[row, w.START], words[row, w.OVER], self._labels(row))
                for row in self.state.ended[:count].tolist()]  # fmt: skip

    # -- what is known of power

    def watts(self) -> Watts:
        meter = self._meter
        return Watts(meter[w.IDLE_W], self._least_w, meter[w.PEAK_W],
                     meter[w.MACHINE_CAP_W], meter[w.LAST_W])  # fmt: skip

    def readings(self) -> Readings:
        rows = np.sort(self.state.running[: self._ctl[w.RUNNING]])
        return Readings(rows, self.state.energy[rows, w.READ_W])

    def desk(self, shown: Any = None) -> PowerDesk:
        assert self._columns is not None
        ctl, state = self._ctl, self.state
        if shown is not None:
            running = locked(state.running[: ctl[w.RUNNING]])
            return PowerDesk(queue=shown, running=running, **self._columns)
        there = ctl[w.FIRST], ctl[w.LAST], ctl[w.RUNNING]
        if self._latest is None or self._latest[0] != there:
            queue = locked(state.queue[there[0] : there[1]])
            running = state.running[: there[2]]
            desk = PowerDesk(queue=queue, running=locked(running), **self._columns)
            compiled = desk._replace(served=self._served_column)  # type: ignore[arg-type]
            self._latest = there, desk, running, compiled  # its arrays are those of the state
        return self._latest[1]

    def mold_of(self, number: int) -> Mold | None:
        at = self._jobs[number, w.MOLD]
        if at < 0:
            return None
        return Mold(*self._choices[self.request(number).application][at][:3])

    def since_asked(self) -> tuple[int, int]:
        return self._ctl[w.ARRIVED], self._ctl[w.DEPARTED]

    def work(self) -> float:
        return float(work_now(self.state, self.time))

    def target(self) -> Target | None:
        return None if self._trading is None else self._trading.target(self.state)

    def excluded(self) -> bool:
        assert self._trading is not None
        return self._trading.excluded(self.state.market, self.time)

    def hour(self) -> Hour:
        assert self._trading is not None
        return self._trading.hour(self.state, self.time)

    def tried(
        self, bid: Bid, hour: int = 0, give_up: float = 0.0, span: int = 0, since: int = 0
    ) -> Trial:
        assert self._trading is not None
        return self._trading.tried(self.state, self.time, bid, hour, give_up, span, since)

    # -- what is done

    def choose(self) -> Sequence[int] | None:
        if not self._compiled:
            return None
        self._choose(self.state, self.time)
        return self.state.chosen[: self._ctl[w.CHOSEN]].tolist()  # type: ignore[no-any-return]

    def first_in_order(self, most: int) -> Any:
        if not self._compiled:
            return None
        most = min(most, self.queued) if most else self.queued
        return locked(self.state.chosen[: self._order(self.state, self.time, most)])

    def note_starts(self) -> bool:
        if self._compiled and self.state.rule[ORDER] == USAGE:
            note_held_now(self.state, self.time)
        return self._compiled

    def foresee(self, cap_w: float) -> None:
        pace_now(self.state, cap_w / self._worst)

    def configure(self, number: int, how: Configuration, mold: Mold | None = None) -> None:
        self._energy[number, w.CAP_W], self._jobs[number, w.FORCED] = how.cap_w, how.forced
        if mold is not None:
            self._make(number, mold)

    def _make(self, row: int, mold: Mold) -> None:
        """Have a moldable job run in one of its choices: it takes the time, and draws the watts,
        that were measured."""
        choices = self._choices[self.request(row).application]
        at = choices.place(*mold[:3])
        nodes, cores, cap_w, watts, time = choices[at]
        job, energy = self._jobs, self._energy
        job[row, w.MOLD], job[row, w.NODES], job[row, w.RUN] = at, nodes, time
        if mold.limit is not None:
            job[row, w.REQUESTED] = min(mold.limit, NEVER)
        self.state.work[row] = time
        energy[row, w.MEAN_W] = watts / nodes
        energy[row, w.SPREAD], energy[row, w.CHANGE_TO] = 0.0, 1.0
        if self._worst == 1.0:
            self.log.append(("molds", (row, nodes, cores, cap_w, watts, job[row, w.REQUESTED])))

    def _differ(self, row: int, labels: Labels) -> None:
        """Have a moldable job take the time of its least efficient node, and draw what its nodes
        draw, where nodes differ. What it may take grows with what it takes."""
        choices, job = self._choices[self.request(row).application], self._jobs
        factors = self.state.node[labels, w.FACTOR_OF]
        nodes, cores, cap_w, _, usual = choices[job[row, w.MOLD]]
        time, watts = choices.on(job[row, w.MOLD], factors)
        if job[row, w.REQUESTED] < NEVER:
            job[row, w.REQUESTED] = min(NEVER, math.ceil(job[row, w.REQUESTED] * time / usual))
        job[row, w.RUN] = self.state.work[row] = time
        self._energy[row, w.MEAN_W] = watts / factors.sum()  # which each multiplies with its own
        self.log.append(("molds", (row, nodes, cores, cap_w, watts, job[row, w.REQUESTED])))

    def settle(self, chosen: Sequence[int]) -> Sequence[int]:
        self.state.chosen[: len(chosen)] = chosen
        self._ctl[w.CHOSEN] = len(chosen)
        suspended = self._settle(self.state, self.time)
        if suspended and self._ctl[w.SLEEP_AFTER] >= 0:
            self.events.append((self.time + self._ctl[w.SLEEP_AFTER], SLEEP_KEY, 0, 0))
        return self.state.chosen[: self._ctl[w.CHOSEN]].tolist()  # type: ignore[no-any-return]

    def start(self, job: Request, labels: Labels | None) -> None:
        if labels is None:
            return
        row, state = job.number, self.state
        state.owner[labels] = row
        state.after[labels[:-1]], state.after[labels[-1]] = labels[1:], -1
        self._jobs[row, w.NODE] = labels[0]
        if self._worst > 1.0 and self._jobs[row, w.MOLD] >= 0:
            self._differ(row, labels)
        if self._slowdown is not None:
            state.slowdown[row] = self._slowdown(job, labels)
        self.log.append(("placements", (row, labels)))

    def launch(self) -> None:
        self._alarm(self._launch(self.state, self.time))

    def cap(self, rows: npt.NDArray[np.int64], cap_w: npt.NDArray[np.float64]) -> None:
        if self._latest is not None and rows is self._latest[1].running:
            rows = self._latest[2]  # the same, of the type that was compiled
        if not cap_w.flags.carray:
            cap_w = cap_w.copy()
        self._alarm(self._cap(self.state, self.time, rows, cap_w))

    def steer(self) -> bool | None:
        if self._steer is None:
            return None
        assert self._power is not None
        try:
            alarm, said, wrong = self._steer(*self._asked_to_steer())
        except Exception as error:
            raise failed(self._power, error) from error
        tries = check_said(self._power, said)
        if wrong >= 0:
            check_cap(self._power, self.desk().running[wrong], self._steered[-1][wrong])
        self._alarm(alarm)
        return tries

    def _asked_to_steer(self) -> tuple[Any, ...]:
        """Returns what the kernel of a compiled power policy is called with."""
        self.desk()
        assert self._latest is not None
        return self.state, self.time, self._least_w, self._latest[3], *self._steered

    def suspend(self, numbers: Sequence[int]) -> None:
        self._alarm(pause_now(self.state, self.time, np.array(numbers, np.int64), 1))

    def resume(self, numbers: Sequence[int]) -> None:
        self._alarm(pause_now(self.state, self.time, np.array(numbers, np.int64), 0))

    def set_rate(self, speed: Speed) -> None:
        rate, busy_w, idle_w = map(float, speed)
        self._alarm(speed_now(self.state, self.time, rate, busy_w, idle_w))

    def offer(self, bid: Bid) -> None:
        assert self._trading is not None
        count_now(self.state, self.time)
        self.log.append(self._trading.offer(self.state, self.time, bid))

    def asked(self) -> None:
        self._ctl[w.ARRIVED] = self._ctl[w.DEPARTED] = 0

    def ask_again(self, time: int) -> None:
        self._wish(0, time)

    def retry(self, time: int | None) -> None:
        if time is not None:
            self._wish(1, time)
        elif self._ctl[w.RETRY_AT]:
            self._ctl[w.RETRY] += 1
            self._ctl[w.RETRY_AT] = 0

    def _wish(self, whose: int, time: int) -> None:
        """Have a policy be asked at a time, instead of when it last wanted to be."""
        ctl, (_, count, at) = self._ctl, WISHES[whose]
        if ctl[at] != time and self._lasts():
            ctl[count] += 1
            ctl[at] = time
            self.events.append((time, CONTROL_KEY, whose, ctl[count]))

    def _lasts(self) -> bool:
        """Tells whether a job is to come, or another cap, or a job gets on; where for long none
        does, a policy is not asked again when it wants to be."""
        ctl, jobs = self._ctl, self.state.jobs
        rows = self.state.running[: ctl[w.RUNNING]]
        if ctl[w.NEXT] < len(jobs) or ctl[w.CAPS_LEFT] > 0 or (jobs[rows, w.PAUSED] == 0).any():
            return True
        ctl[w.STILL] += 1
        return bool(ctl[w.STILL] < PATIENCE)


def rehearse(machine: ArrayMachine, passes: Passes) -> None:
    """Have the kernels of passes compiled, on a state in which nobody waits."""
    machine.choose()
    machine.settle([])
    machine.launch()
    power = passes.policies.power
    if power is not None:
        machine.first_in_order(0) if power.selects else None
        power.prepare(passes.power_view(machine))
