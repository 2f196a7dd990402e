"""What the scheduler does when something has happened, on a machine of either fidelity.

**A pass** (observe, choose, configure, place, cap) follows when jobs have arrived or ended.
**Control** (observe, cap) follows when power was measured, when the cap or the target of the
machine has changed, and when the power policy wanted to be asked. Nothing is scheduled then, unless
the policy has jobs wait for power and tries them again (`PowerPolicy.retries`), or asks for it
(`Caps.schedule`). Before either, policies learn of the jobs that have ended. Every rule about that
is here, and the machine (`odonata.jobs.machine`) has none.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from odonata.jobs.asking import Lazy, Policies, Shown
from odonata.jobs.machine import AGAIN, CAP, JOBS, READING, RETRY, TARGET, Machine
from odonata.jobs.series import Steps
from odonata.jobs.trading import NOTHING
from pdes.errors import Fault
from policies.bidding.base import bid
from policies.memory import Memory, memory_of
from policies.power import Choices, PowerPolicy
from policies.power.base import admit, caps, configuration, observe, start_cap_w
from policies.scheduling import again, comes_again, in_order, select
from policies.views import (
    NEVER,
    Ahead,
    Budget,
    Configuration,
    Course,
    Market,
    PowerDesk,
    Powered,
    PowerView,
    Readings,
    Request,
    Sight,
    View,
)
from topology import Dragonfly


@dataclass(frozen=True, eq=False)
class Passes:
    """Asks the policies of one run, of whatever machine they are for."""

    policies: Policies
    topology: Dragonfly | None
    """Where jobs are placed; None: nodes are only counted."""
    seed: int
    choices: Mapping[str, Choices] = field(default_factory=dict)
    """What was measured of applications, whose jobs are moldable."""
    by_interval: bool = False
    """Whether jobs start only when power was measured."""
    known: Callable[[str], Steps | None] | None = None
    """Returns the price, the carbon intensity or the cap over time, by name, None where there is
    none; None where power is not simulated."""
    _courses: dict[str, Steps | None] = field(default_factory=dict)
    _memories: dict[int, tuple[Any, Memory | None]] = field(default_factory=dict)

    # -- when what is asked

    @cached_property
    def _comes_again(self) -> bool:
        """Tells whether the scheduling policy may want a pass at a time."""
        return not self.by_interval and comes_again(self.policies.scheduling)

    @cached_property
    def pass_at(self) -> int:
        """Returns what makes a pass, as bits of `odonata.jobs.machine`."""
        power = self.policies.power
        own = RETRY * self._comes_again
        if self.by_interval:
            return READING
        if power is None or not (power.retries and _admits(power)):
            return JOBS | own
        return own | JOBS | CAP | AGAIN | TARGET | (READING if power.reads else 0)

    @cached_property
    def control_at(self) -> int:
        """Returns what has the power policy asked for caps, likewise."""
        power = self.policies.power
        if power is None or (type(power).caps is PowerPolicy.caps and power.steer is None):
            return 0
        if self.by_interval:
            return READING | AGAIN | TARGET
        return (
            RETRY * self._comes_again
            | JOBS
            | CAP
            | AGAIN
            | TARGET
            | (READING if power.reads else 0)
        )

    @cached_property
    def observe_at(self) -> int:
        """Returns what the power policy hears of, likewise."""
        power = self.policies.power
        if power is None or type(power).observe is PowerPolicy.observe:
            return 0
        return READING if power.reads or self.by_interval else 0

    def respond(self, machine: Machine, happened: int) -> None:
        """Do what follows from what has happened at this instant, as bits."""
        self.learn(machine)
        if happened & self.observe_at:
            self._observe(machine)
        held = machine.busy
        if happened & self.pass_at:
            self._schedule(machine)
        asks = happened & self.control_at
        if asks and not (asks == JOBS and self._as_before(machine, held)):
            self._control(machine)
        elif self.policies.power is not None and not (self.by_interval and happened == JOBS):
            machine.asked()  # there was nothing to ask for

    def _as_before(self, machine: Machine, held: int) -> bool:
        """Tells whether nothing has changed for a power policy whose caps do not go by who waits:
        as many nodes are held as before a pass that no end brought about."""
        power = self.policies.power
        assert power is not None
        moves = power.by_queue or self.policies.scheduling.preemptive
        return not (moves or machine.busy != held or machine.since_asked()[1])

    def learn(self, machine: Machine) -> None:
        """Have the policies that remember learn of the jobs that have ended."""
        remember = any(self.policies.layouts)
        for ended in machine.ended():
            if remember:
                self.policies.teach(ended, machine.memory)

    # -- what policies see

    def _memory(self, machine: Machine, which: int) -> Memory | None:
        """Returns what one of the policies remembers: the arrays are found once per buffer."""
        held = machine.memory
        kept = self._memories.get(which)
        if kept is None or kept[0] is not held:
            kept = self._memories[which] = held, memory_of(self.policies.layouts[which], held)
        return kept[1]

    def _view(self, machine: Machine) -> View:
        idle = machine.idle()
        sight = None
        if self.topology is not None and idle is not None:
            sight = Sight(self.topology, idle, machine.counters())
        return View(
            machine.time, machine.waiting(), Lazy(machine.running), machine.free, sight,
            memory=self._memory(machine, 0), tick=machine.tick, pace=machine.pace,
            ahead=None if self.known is None else partial(self._ahead, machine),
        )  # fmt: skip

    def _ahead(self, machine: Machine, ticks: int) -> Ahead:
        """Returns what a scheduler knows of the hours to come, up to so many ticks from now."""
        assert self.known is not None
        if not self._courses:
            self._courses.update({name: self.known(name) for name in ("price", "carbon", "cap")})
        now, watts = machine.time, machine.watts()
        price, carbon, cap = (None if steps is None else _course(steps, now, now + ticks)
                              for steps in self._courses.values())  # fmt: skip
        return Ahead(now + ticks, price, carbon, cap, watts.idle_w, watts.most_w)

    def power_view(
        self,
        machine: Machine,
        desk: PowerDesk | None = None,
        queue: Sequence[Request] | None = None,
        readings: Readings | None = None,
    ) -> PowerView:
        """Returns the machine as the power policy sees it."""
        idle_w, least_w, most_w, cap_w, measured_w = machine.watts()
        if desk is None:
            desk = machine.desk()
        if queue is None:
            queue = Lazy(machine.waiting, len(desk.queue))
        running = Lazy(partial(self._powered, machine, desk), len(desk.running))
        arrived, ended = machine.since_asked()
        return PowerView(
            machine.time, queue, running, machine.free, idle_w, Budget(cap_w, measured_w),
            self.choices, self._memory(machine, 2), least_w, most_w, readings, arrived, ended,
            machine.busy, machine.work, machine.tick, desk, machine.target(),
        )  # fmt: skip

    def _powered(self, machine: Machine, desk: PowerDesk) -> list[Powered]:
        runs = machine.running()
        rows = [run.request.number for run in runs]
        columns = (column[rows].tolist() for column in (
            desk.nodes, desk.cap_w, desk.forced, desk.measured_w, desk.suspended, desk.due
        ))  # fmt: skip
        return [
            Powered(run, Configuration(nodes, 0, cap_w, forced != 0), nodes * read_w, None,
                    paused != 0, machine.mold_of(row), due if due < NEVER else None)
            for run, row, nodes, cap_w, forced, read_w, paused, due in zip(
                runs, rows, *columns, strict=True)
        ]  # fmt: skip

    def market(self, machine: Machine) -> Market:
        """Returns the market as the bidding policy sees it."""
        (idle_w, least_w, most_w, *_), desk = machine.watts(), machine.desk()
        return Market(
            machine.time, nodes=machine.free + machine.busy, idle_w=idle_w,
            queue=Lazy(machine.waiting, len(desk.queue)),
            running=Lazy(partial(self._powered, machine, desk), len(desk.running)),
            choices=self.choices,
            memory=self._memory(machine, 3), least_w=least_w, most_w=most_w, tick=machine.tick,
            trial=machine.tried, **machine.hour()._asdict(),
        )  # fmt: skip

    # -- asking

    def bid(self, machine: Machine) -> None:
        """Have the bidding policy offer an average and a reserve for the hour that begins, unless
        that is excluded."""
        assert self.policies.bidding is not None
        if machine.excluded():
            machine.offer(NOTHING)
        else:
            machine.offer(bid(self.policies.bidding, self.market(machine)))

    def _observe(self, machine: Machine) -> None:
        """Tell the power policy what was measured."""
        assert self.policies.power is not None
        view = self.power_view(machine, readings=machine.readings())
        values = observe(self.policies.power, view)
        if values:
            machine.log.append(("learned", values))

    def _schedule(self, machine: Machine) -> None:
        """Choose, configure and place the jobs that start now."""
        scheduling, power = self.policies.scheduling, self.policies.power
        nobody = not machine.queued or machine.free <= 0
        if power is not None and power.selects:
            if not nobody:
                self.place(machine, self._admitted(machine))
            if not machine.note_starts():
                scheduling.note_starts(self._view(machine))
            return
        there = scheduling.preemptive and (machine.queued or machine.busy)
        if nobody and not (scheduling.always or there):
            return
        chosen = self._chosen(machine)
        if power is not None and chosen:
            chosen = self._configured(machine, chosen)
        self.place(machine, chosen)

    def _chosen(self, machine: Machine) -> Sequence[int]:
        """Returns the numbers of the jobs that the scheduling policy chooses."""
        power = self.policies.power
        if machine.paced and power is not None and self._foresees:
            machine.foresee(start_cap_w(power, self.power_view(machine)))
        chosen = machine.choose()
        if chosen is not None:
            return chosen
        view = self._view(machine)
        numbers = select(self.policies.scheduling, view)
        if self._comes_again:
            machine.retry(again(self.policies.scheduling, view))
        return numbers

    @cached_property
    def _foresees(self) -> bool:
        """Tells whether the power policy says under which cap a job would start."""
        power = self.policies.power
        return power is not None and type(power).start_cap_w is not PowerPolicy.start_cap_w

    def _configured(self, machine: Machine, chosen: Sequence[int]) -> list[int]:
        """Ask what each of the chosen jobs starts with. Returns the numbers of those before the
        first that has to wait and, where running jobs may be chosen as well, of these."""
        power, waits, found = self.policies.power, False, []
        assert power is not None
        view, runs = self.power_view(machine), frozenset[int]()
        if self.policies.scheduling.preemptive:  # of the running jobs only these stay
            desk = machine.desk()
            nodes, runs = desk.nodes, frozenset(desk.running.tolist()) & {*chosen}
            busy = sum(int(nodes[row]) for row in runs)
            view = view._replace(free=view.free + view.busy - busy, busy=busy)
        for number in chosen:
            if number in runs:
                found.append(number)
                continue
            job = machine.request(number)
            how = None if waits else configuration(power, view, job)
            if how is None:
                waits = True
                continue
            machine.configure(number, how)
            view = view._replace(free=view.free - job.nodes, busy=view.busy + job.nodes)
            found.append(number)
        return found

    def _admitted(self, machine: Machine) -> list[int]:
        """Have a power policy that selects choose among the first waiting jobs, in the order of the
        scheduling policy. Returns their numbers."""
        power = self.policies.power
        assert power is not None
        rows = machine.first_in_order(power.shown)
        if rows is None:
            first = in_order(self.policies.scheduling, self._view(machine), power.shown)
            rows = np.array(first, np.int64)
            rows.flags.writeable = False
        view = self.power_view(machine, machine.desk(rows), Shown(rows, machine.request))
        numbers, forced, molds = admit(power, view)
        for number in numbers:
            machine.configure(number, Configuration(0, forced=number in forced), molds.get(number))
        return [*numbers]

    def place(self, machine: Machine, chosen: Sequence[int]) -> None:
        """Start the chosen jobs, each where the allocation wants it. A job whose user named its
        nodes waits while one of them is busy, and so do those behind it, which might take the
        others."""
        for number in machine.settle(chosen):
            job, labels = machine.request(number), None
            if self.topology is not None:
                idle = machine.idle()
                assert idle is not None
                if job.on and not idle[[*job.on]].all():
                    break
                job = job._replace(nodes=machine.nodes_of(number))
                labels = self.policies.place(self.topology, idle, job, self.seed, machine.memory,
                                             machine.counters())  # fmt: skip
            machine.start(job, labels)
        machine.launch()

    def _control(self, machine: Machine, again: bool = True) -> None:
        """Ask for caps and whatever else the power policy can have a machine do, and do it."""
        tries = machine.steer()
        if tries is None:
            tries = self._capped(machine)
        machine.asked()
        if tries and again and not self.by_interval:
            self._schedule(machine)
            self._control(machine, again=False)

    def _capped(self, machine: Machine) -> bool:
        """Ask through a view, and do what is answered. Returns whether jobs are to be tried."""
        power = self.policies.power
        assert power is not None
        desk = machine.desk()
        answer = caps(power, self.power_view(machine, desk))
        if isinstance(answer.cap_w, np.ndarray):
            machine.cap(desk.running, answer.cap_w)
        elif answer.cap_w:
            machine.cap(np.array([*answer.cap_w], np.int64),
                        np.array([*answer.cap_w.values()], np.float64))  # fmt: skip
        try:
            if len(answer.suspend):
                machine.suspend([*answer.suspend])
            if len(answer.resume):
                machine.resume([*answer.resume])
            if answer.speed is not None:
                machine.set_rate(answer.speed)
        except Fault as fault:
            raise Fault(f"power {power.name}: {fault}") from None
        if answer.again is not None:
            machine.ask_again(answer.again)
        return answer.schedule


def _admits(power: PowerPolicy) -> bool:
    """Tells whether a power policy has a say in which jobs start."""
    return power.selects or type(power).configure is not PowerPolicy.configure


def _course(steps: Steps, now: int, until: int) -> Course:
    """Returns the steps from now on that begin before a time."""
    first, last = bisect_right(steps.begins, now), bisect_left(steps.begins, until)
    return Course((now, *steps.begins[first:last]), steps.levels[first - 1 : max(first, last)])
