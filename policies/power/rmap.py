"""RMAP: a job's share of the power, and the configuration in which it makes the most of it.

Power is counted above that of idle nodes: a configuration of n nodes that draw w watts takes
w - n·idle, and the machine has its cap less what it would draw if all of it were idle. Where idle
power is not counted (0 W), this is as in the thesis. It is counted in whole microwatts (**uw**), so
that sums are exact and a job that needs all there is gets it when all is free. Jobs whose
application nobody measured are rigid: they run on the nodes that they asked for, and may draw the
most that nodes can. So are jobs that ask for fewer nodes than their application was measured on.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from pdes.errors import Refused
from policies.parameters import parameter
from policies.power.base import Admitted, PowerPolicy, power
from policies.power.prediction import MOST_W, SAMPLINGS, predicted_choices
from policies.power.rmap_compiled import (
    BACKFILLS,
    POLICIES,
    Known,
    Machine,
    Rule,
    Shelf,
    compiled_pass,
    known_of,
    room_for,
    shelf_of,
    table_of,
)
from policies.views import Choice, Choices, Mold, PowerDesk, PowerView, Request

PATKI = (
    "T. Patki: The case for hardware overprovisioned supercomputers, thesis, Arizona 2015, "
    "chapter 5"
)
KNOWLEDGE, SHORTAGES = ("oracle", "model"), ("power", "either")


class Plan(NamedTuple):
    """What a job would start in: its nodes, its microwatts above idle, after how long it may be
    ended (None: never), and its mold if it is moldable."""

    nodes: int
    uw: int
    limit: int | None
    mold: Mold | None


class Reservation(NamedTuple):
    """The time at which the first waiting job can start at the latest, and the nodes and microwatts
    that it leaves then."""

    time: float
    nodes: int
    uw: int


ANYTHING = Reservation(math.inf, 1 << 62, 1 << 62)


@dataclass(frozen=True)
class Rmap(PowerPolicy):
    """What the three policies have in common: first-fit backfilling with two resources, nodes and
    power, in the order of the discipline. The first job that cannot start gets a reservation at the
    earliest time at which both are free for it; a later one may start if it ends before, or leaves
    both free."""

    selects = True
    reads = False

    weight: float = parameter(1.0, about="of a job's fair share of the power", least=1e-6, most=1e6)
    knowledge: str = parameter(
        "oracle", about="all measured configurations, or a model trained on some: oracle, model"
    )
    trained: float = parameter(
        0.1, about="the share of measurements that the model is trained on", least=0, most=1
    )
    training: int = parameter(1, about="the seed that says which these are", least=0)
    sampling: str = parameter(
        "random", about="whether these are drawn at random or cover all corners: random, spread"
    )
    margin: float = parameter(
        0.0, about="the share of the bound that is kept free, for watts predicted too low", least=0,
        most=0.99,
    )  # fmt: skip
    grace: float = parameter(
        0.33, about="by how much a job may exceed its predicted time before it is ended", least=0,
        most=100,
    )  # fmt: skip
    backfill: str = parameter(
        "easy", about="who may overtake: who breaks no reservation, who fits, nobody: easy, "
        "first-fit, none",
    )  # fmt: skip

    def __post_init__(self) -> None:
        _one_of("knowledge", self.knowledge, KNOWLEDGE)
        _one_of("backfill", self.backfill, BACKFILLS)
        _one_of("sampling", self.sampling, SAMPLINGS)

    # -- what each of the three decides

    @abstractmethod
    def wanted(self, job: Request, machine: Machine, known: Known) -> int:
        """Returns the place of the choice that a moldable job waits for, -1 if there is none."""

    def planned(
        self, job: Request, machine: Machine, known: Known, nodes: int, uw: int,
        reserved: Reservation,
    ) -> int:  # fmt: skip
        """Returns the place of the choice in which a moldable job may start now, when so many nodes
        and microwatts are free; -1: it waits."""
        at = self._wanted(job, machine, known)
        return at if at >= 0 and self._needs(job, machine, known, at) <= uw else -1

    def _needs(self, job: Request, machine: Machine, known: Known, at: int) -> int:
        """Returns the microwatts that have to be free before a job starts in the choice that it
        waits for."""
        return known.uw_list[at]

    # -- what is common

    def select(self, view: PowerView) -> Admitted:
        machine = self._machine(view)
        uw = machine.uw
        if uw < 0:
            return Admitted(())
        if view.desk is not None and self._rule is not None:
            return self._compiled(view, view.desk, self._rule, machine)
        running = self._running(view, machine)
        free, left = view.free, uw - sum(each for _, _, each in running)
        reserved: Reservation | None = None
        started: dict[int, Mold | None] = {}
        for job in view.queue:
            if free == 0:
                break
            plan = self._plan(job, view, machine, free, left, reserved or ANYTHING)
            if plan is not None:
                free, left = free - plan.nodes, left - plan.uw
                end = math.inf if plan.limit is None else view.time + plan.limit
                running.append((end, plan.nodes, plan.uw))
                started[job.number] = plan.mold
                if reserved is not None and end > reserved.time:
                    reserved = Reservation(reserved.time, reserved.nodes - plan.nodes,
                                           reserved.uw - plan.uw)  # fmt: skip
            elif self.backfill == "none":
                break
            elif self.backfill == "easy" and reserved is None:
                reserved = self._reserve(job, view, machine, free, left, running)
        return Admitted([*started], (), {number: mold for number, mold in started.items()
                                         if mold is not None})  # fmt: skip

    def never_starts(self, view: PowerView, job: Request) -> bool:
        machine, known = self._machine(view), self._known(job, view)
        if machine.uw < 0:
            return True
        if known is None:
            return _rigid(job, machine).uw > machine.uw
        return self.wanted(job, machine, known) < 0

    def _machine(self, view: PowerView) -> Machine:
        total = view.free + view.busy
        cap_w = min(view.budget.cap_w, MOST_W)
        uw = _micro(cap_w * (1.0 - self.margin) - total * view.idle_w)
        return Machine(total, uw, view.idle_w, view.most_w, view.time)

    def _running(self, view: PowerView, machine: Machine) -> list[tuple[float, int, int]]:
        """Returns when each running job ends at the latest, its nodes, and the microwatts that it
        was given."""
        found = []
        for job in view.running:
            mold = job.mold
            if mold is None:
                nodes = job.configuration.nodes
                uw = _micro(nodes * (machine.most_w - machine.idle_w))
            else:
                known = self._of_application(job.run.request.application, view)
                assert known is not None
                nodes, uw = mold.nodes, known.uw_list[known.choices.place(*mold[:3])]
            found.append((math.inf if job.due is None else job.due, nodes, uw))
        return found

    def _plan(
        self, job: Request, view: PowerView, machine: Machine, nodes: int, uw: int,
        reserved: Reservation,
    ) -> Plan | None:  # fmt: skip
        """Returns what a job starts in now, None if it waits."""
        known = self._known(job, view)
        if known is None:
            plan = _rigid(job, machine)
        else:
            at = self.planned(job, machine, known, nodes, uw, reserved)
            if at < 0:
                return None
            plan = _molded(job, known, at)
        fits = plan.nodes <= nodes and plan.uw <= uw
        return plan if fits and _allows(reserved, plan, machine.time) else None

    def _reserve(
        self, job: Request, view: PowerView, machine: Machine, nodes: int, uw: int,
        running: list[tuple[float, int, int]],
    ) -> Reservation:  # fmt: skip
        """Returns the reservation of the first job that waits; one that stops nobody, if no time is
        known at which it can start."""
        known = self._known(job, view)
        if known is None:
            plan = _rigid(job, machine)
            needed, wanted = plan.nodes, plan.uw
        else:
            at = self._wanted(job, machine, known)
            if at < 0:
                return ANYTHING
            needed, wanted = int(known.nodes[at]), self._needs(job, machine, known, at)
        ends = sorted(running)
        at = 0
        while nodes < needed or uw < wanted:
            if at == len(ends) or ends[at][0] == math.inf:
                return ANYTHING
            time = ends[at][0]
            while at < len(ends) and ends[at][0] == time:
                nodes, uw = nodes + ends[at][1], uw + ends[at][2]
                at += 1
        else:
            time = ends[at - 1][0] if at else machine.time
        return Reservation(time, nodes - needed, uw - wanted)

    # -- the same, compiled

    @cached_property
    def _rule(self) -> Rule | None:
        """Returns which policy it is and its parameters; None where another is derived from it."""
        if type(self) not in (Traditional, Naive, Adaptive):
            return None
        return Rule(
            POLICIES.index(self.name), BACKFILLS.index(self.backfill),
            bool(getattr(self, "strict", False)), getattr(self, "short_of", "power") == "either",
            float(self.weight), float(getattr(self, "threshold", 0.0)),
        )  # fmt: skip

    def prepare(self, view: PowerView) -> None:
        if view.desk is not None and self._rule is not None:
            compiled_pass()

    def _compiled(
        self, view: PowerView, desk: PowerDesk, rule: Rule, machine: Machine
    ) -> Admitted:  # fmt: skip
        """Returns what `select` does, found by a kernel."""
        shelf, choices = self._shelf(view)
        ends, started = room_for(len(desk.queue), len(desk.running))
        count = compiled_pass()(table_of(desk), shelf, rule, machine, view.free, ends, started)
        if not count:
            return Admitted(())
        rows = started[:count].tolist()
        molds = {row: Mold._make((*choices[which][at][:3], limit))
                 for row, which, at, limit in rows if which >= 0}  # fmt: skip
        return Admitted([row[0] for row in rows], (), molds)

    def _shelf(self, view: PowerView) -> tuple[Shelf, tuple[Choices, ...]]:
        """Returns what is known of all applications, and their choices as known."""
        found = self._seen.get(None)
        if found is None or found[0] is not view.choices or found[1] != view.idle_w:
            true = tuple(view.choices.values())
            known = true
            if self.knowledge == "model":
                known = tuple(self._predicted(*each) for each in view.choices.items())
            shelf = shelf_of(known, true, view.idle_w, self._grace), known
            found = self._seen[None] = (view.choices, view.idle_w, shelf)
        return found[2]  # type: ignore[no-any-return]

    # -- what it knows, found once

    @cached_property
    def _seen(self) -> dict[Any, Any]:
        return {}

    def _known(self, job: Request, view: PowerView) -> Known | None:
        """Returns what is known of a waiting job, None if it is rigid."""
        choices = view.choices.get(job.application)
        if choices is None or job.nodes < choices.fewest:
            return None
        return self._of_application(job.application, view)

    def _of_application(self, application: str, view: PowerView) -> Known | None:
        choices = view.choices.get(application)
        if choices is None:
            return None
        found = self._seen.get(application)
        if found is None or found[0] is not choices or found[1] != view.idle_w:
            known = self._learned(application, choices, view.idle_w)
            found = self._seen[application] = (choices, view.idle_w, known)
        return found[2]  # type: ignore[no-any-return]

    def _learned(self, application: str, choices: Choices, idle_w: float) -> Known:
        if self.knowledge == "model":
            choices = self._predicted(application, choices)
        return known_of(choices, idle_w, self._grace)

    def _predicted(self, application: str, choices: Choices) -> Choices:
        return predicted_choices(application, choices, self.trained, self.training, self.sampling)

    @property
    def _grace(self) -> float:
        return self.grace if self.knowledge == "model" else 0.0

    def _wanted(self, job: Request, machine: Machine, known: Known) -> int:
        key = (id(known.uw), job.nodes, machine.nodes, machine.uw)
        found = self._seen.get(key)
        if found is None:
            found = self._seen[key] = self.wanted(job, machine, known)
        return found  # type: ignore[no-any-return]

    def _fair(self, job: Request, machine: Machine) -> int:
        """Returns the microwatts that a job is entitled to: as large a part of the machine's as its
        nodes are of the machine's nodes."""
        return min(machine.uw, round(self.weight * job.nodes / machine.nodes * machine.uw))


@power("rmap-traditional", about="all cores of the nodes asked for, uncapped; waits for the power",
       source=PATKI)  # fmt: skip
class Traditional(Rmap):
    """A job runs on the nodes that it asked for, or on the largest number up to these that was
    measured, with all cores and without a cap; if that exceeds the bound, on as many as do not. No
    share of the power is fair."""

    def wanted(self, job: Request, machine: Machine, known: Known) -> int:
        nodes = known.nodes[known.packed]
        asked = known.packed[: int((nodes <= job.nodes).sum())]
        fits = np.flatnonzero((known.uw[asked] <= machine.uw)
                              & (known.nodes[asked] <= machine.nodes))  # fmt: skip
        return int(asked[fits[-1]]) if len(fits) else -1


class FairShare(Rmap):
    """A job waits for the fastest configuration within its fair share of the power, on any number
    of nodes. One whose share is too small for any waits for that which draws least."""

    def wanted(self, job: Request, machine: Machine, known: Known) -> int:
        at = _fastest(known, machine.nodes, self._fair(job, machine))
        if at >= 0:
            return at
        least = np.lexsort((known.time, known.uw))
        least = least[known.nodes[least] <= machine.nodes]
        fits = len(least) and known.uw[least[0]] <= machine.uw
        return int(least[0]) if fits else -1


@power("rmap-naive", about="the fastest configuration within a fair share of the power",
       source=PATKI)  # fmt: skip
@dataclass(frozen=True)
class Naive(FairShare):
    """A job starts in the configuration that it waits for, and in no other."""

    strict: bool = parameter(
        False, about="whether it waits for all of its share, and not only for what it draws"
    )

    def _needs(self, job: Request, machine: Machine, known: Known, at: int) -> int:
        needs = known.uw_list[at]
        return max(needs, self._fair(job, machine)) if self.strict else needs


@power("rmap-adaptive", about="as rmap-naive, or slower at once if power is short",
       source=PATKI)  # fmt: skip
@dataclass(frozen=True)
class Adaptive(FairShare):
    """A job whose fair share of the power is free runs as under `rmap-naive`. One whose share is
    not starts at once in the fastest configuration within what is free, unless it would then take
    longer than its user asked for and tolerates: that is power-aware backfilling."""

    threshold: float = parameter(
        0.0, about="by how much a job may exceed its requested time; -1: by any", least=-1,
        most=1e6,
    )  # fmt: skip
    short_of: str = parameter(
        "power", about="what has to be short before it runs slower: power, or nodes as well: "
        "power, either",
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        _one_of("short_of", self.short_of, SHORTAGES)
        if -1.0 < self.threshold < 0.0:
            raise Refused(f"threshold = {self.threshold:g}: 0 or more, or -1: unbounded")

    def planned(
        self, job: Request, machine: Machine, known: Known, nodes: int, uw: int,
        reserved: Reservation,
    ) -> int:  # fmt: skip
        fair = self._fair(job, machine)
        if fair <= uw:
            at = self._wanted(job, machine, known)
            enough = at < 0 or known.nodes[at] <= nodes
            if enough or self.short_of == "power":
                return at
        at = _fastest(known, nodes, min(uw, fair), job, reserved, machine.time)
        return at if at >= 0 and self._tolerates(job, known, at) else -1

    def _tolerates(self, job: Request, known: Known, at: int) -> bool:
        if self.threshold < 0 or job.requested is None:
            return True
        return bool(known.time[at] <= (1.0 + self.threshold) * job.requested)

    def _needs(self, job: Request, machine: Machine, known: Known, at: int) -> int:
        needs = known.uw_list[at]
        return needs if self._tolerates(job, known, at) else max(needs, self._fair(job, machine))


def _fastest(
    known: Known, nodes: int, uw: int, job: Request | None = None,
    reserved: Reservation = ANYTHING, now: int = 0,
) -> int:  # fmt: skip
    """Returns the place of the fastest choice within these nodes and microwatts that breaks no
    reservation, -1 if there is none."""
    fits = (known.uw <= uw) & (known.nodes <= nodes)
    if job is not None and reserved.time < math.inf:
        ends = known.latest if job.requested is None else np.maximum(known.latest, job.requested)
        leaves = (known.nodes <= reserved.nodes) & (known.uw <= reserved.uw)
        fits &= (ends + now <= reserved.time) | leaves
    at = int(fits.argmax())
    return at if fits[at] else -1


def _rigid(job: Request, machine: Machine) -> Plan:
    uw = _micro(job.nodes * (machine.most_w - machine.idle_w))
    return Plan(job.nodes, uw, job.requested, None)


def _molded(job: Request, known: Known, at: int) -> Plan:
    choice: Choice = known.choices[at]
    limit = max(int(known.latest[at]), job.requested or 0)
    mold = Mold(choice.nodes, choice.cores, choice.cap_w, limit)
    return Plan(choice.nodes, known.uw_list[at], limit, mold)


def _allows(reserved: Reservation, plan: Plan, now: int) -> bool:
    if plan.limit is not None and now + plan.limit <= reserved.time:
        return True
    return plan.nodes <= reserved.nodes and plan.uw <= reserved.uw


def _micro(watts: float) -> int:
    return round(watts * 1e6)


def _one_of(name: str, value: str, words: tuple[str, ...]) -> None:
    if value not in words:
        raise Refused(f"{name} = {value}: one of {', '.join(words)}")
