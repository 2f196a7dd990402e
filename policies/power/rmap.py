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
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from pdes.errors import Fault, Refused
from policies.parameters import parameter
from policies.power.base import Admitted, PowerPolicy, power
from policies.power.prediction import MOST_W, SAMPLINGS, predicted_choices
from policies.power.rmap_compiled import (
    ADAPTIVE,
    BACKFILLS,
    NAIVE,
    TRADITIONAL,
    Machine,
    Rule,
    Shelf,
    Table,
    compiled_pass,
    room_for,
    shelf_of,
    table_of,
    table_of_one,
)
from policies.views import Choices, Mold, PowerView, Request

PATKI = (
    "T. Patki: The case for hardware overprovisioned supercomputers, thesis, Arizona 2015, "
    "chapter 5"
)
KNOWLEDGE, SHORTAGES = ("oracle", "model"), ("power", "either")
OWNERS = ("project", "user", "application")
LEAST_WEIGHT = 1e-6
"""The least weight of a fair share; its inverse is the most."""


@dataclass(frozen=True)
class Rmap(PowerPolicy):
    """What the three policies have in common: first-fit backfilling with two resources, nodes and
    power, in the order of the discipline. The first job that cannot start gets a reservation at the
    earliest time at which both are free for it; a later one may start if it ends before, or leaves
    both free."""

    selects = True
    molds = True
    reads = False
    kind: ClassVar[int]
    """Which of the three it is, for the compiled pass."""
    # What one has that has no such parameter:
    strict = False
    threshold = 0.0
    short_of = SHORTAGES[0]

    weight: float = parameter(
        1.0, about="of a job's fair share of the power", least=LEAST_WEIGHT, most=1e6
    )
    priorities: str = parameter(
        "", about="by how much more the fair shares of some count, as `gold 2; silver 0.5`"
    )
    priority_of: str = parameter("project", about="whose names these are", words=OWNERS)
    small: int = parameter(
        0, unit="nodes", about="jobs that ask for no more run in a partition of their own, as "
        "under rmap-traditional; 0: none do", least=0,
    )  # fmt: skip
    small_nodes: int = parameter(
        0, unit="nodes", about="of that partition, with as large a part of the power", least=0
    )
    knowledge: str = parameter(
        "oracle", about="all measured configurations, or a model trained on some",
        words=KNOWLEDGE,
    )  # fmt: skip
    trained: float = parameter(
        0.1, about="the share of measurements that the model is trained on", least=0, most=1
    )
    training: int = parameter(1, about="the seed that says which these are", least=0)
    sampling: str = parameter(
        "random", about="whether these are drawn at random or cover all corners",
        words=SAMPLINGS,
    )  # fmt: skip
    margin: float = parameter(
        0.0, about="the share of the bound that is kept free, for watts predicted too low", least=0,
        most=0.99,
    )  # fmt: skip
    grace: float = parameter(
        0.33, about="by how much a job may exceed its predicted time before it is ended", least=0,
        most=100,
    )  # fmt: skip
    backfill: str = parameter(
        "easy", about="who may overtake: who breaks no reservation, who fits, nobody",
        words=BACKFILLS,
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        self._priorities  # noqa: B018 which may make no sense
        if bool(self.small) != bool(self.small_nodes) or self.small > self.small_nodes:
            raise Refused(f"small = {self.small}, small_nodes = {self.small_nodes}: both 0, or a "
                          "partition of as many nodes as its jobs may ask for, or more"
                          )  # fmt: skip

    def prepare(self, view: PowerView) -> None:
        compiled_pass()

    def select(self, view: PowerView) -> Admitted:
        if view.desk is None:
            raise Fault(f"power {self.name}: its view has no desk, whose arrays it works on")
        table, weights = table_of(view.desk), np.full(len(view.desk.queue), float(self.weight))
        if self._priorities:
            weights *= [self._priority(job) for job in view.queue]
        if self.small:
            rows = self._partitioned(view, table, weights)
        else:
            rows = self._started(view, table, weights, view.free)
        _, choices = self._known(view)
        molds = {row: Mold._make((*choices[which][at][:3], limit))
                 for row, which, at, limit in rows if which >= 0}  # fmt: skip
        return Admitted([row[0] for row in rows], (), molds)

    def never_starts(self, view: PowerView, job: Request) -> bool:
        names = [*view.choices]
        application = names.index(job.application) if job.application in names else -1
        table, weights = table_of_one(job, application), np.full(1, float(self.weight))
        return not self._started(view, table, weights, None, self._is_small(job))

    def _partitioned(self, view: PowerView, table: Table, weights: Any) -> list[list[int]]:
        """Returns the same where small jobs have a partition: a pass over each of the two."""
        asked = {held.run.request.number: held.run.request for held in view.running}
        runs = np.array([self._is_small(asked[row]) for row in table.running.tolist()], np.bool_)
        waits = np.array([self._is_small(job) for job in view.queue], np.bool_)
        found: list[list[int]] = []
        for small in (True, False):
            running = table.running[runs == small]
            part = table._replace(queue=_locked(table.queue[waits == small]),
                                  running=_locked(running))  # fmt: skip
            free = self._nodes(view, small) - int(table.nodes[running].sum())
            found += self._started(view, part, weights[waits == small], free, small)
        return found

    def _is_small(self, job: Request) -> bool:
        return job.nodes <= self.small

    def _nodes(self, view: PowerView, small: bool) -> int:
        """Returns the nodes of a partition, or of the machine where there is none."""
        nodes = view.free + view.busy
        if self.small_nodes >= nodes:
            raise Fault(f"power {self.name}: small_nodes = {self.small_nodes}: fewer than the "
                        f"{nodes} nodes of the machine")  # fmt: skip
        return self.small_nodes if small else nodes - self.small_nodes

    def _started(
        self, view: PowerView, table: Table, weights: Any, free: int | None, small: bool = False
    ) -> list[list[int]]:
        """Returns what the compiled pass says of the jobs that start now, in the partition of small
        jobs or in the other, or on the machine where there is none. `free`: its idle nodes; None:
        all of them are."""
        shelf, _ = self._known(view)
        nodes, own = view.free + view.busy, self._nodes(view, small)
        bound_w = min(view.budget.cap_w, MOST_W) * (1.0 - self.margin)
        uw = round((bound_w - nodes * view.idle_w) * 1e6)
        of_small = round(uw * self.small_nodes / nodes) if self.small else 0
        uw = of_small if small else uw - of_small
        machine = Machine(own, uw, view.idle_w, view.most_w, view.time)
        ends, started = room_for(len(table.queue), len(table.running))
        rule = self._rule._replace(policy=TRADITIONAL, strict=False) if small else self._rule
        count = compiled_pass()(table, shelf, rule, machine, own if free is None else free,
                                weights, ends, started)  # fmt: skip
        return started[:count].tolist() if count else []

    @cached_property
    def _rule(self) -> Rule:
        return Rule(self.kind, BACKFILLS.index(self.backfill), self.strict,
                    self.short_of == "either", float(self.threshold))  # fmt: skip

    @cached_property
    def _priorities(self) -> Mapping[str, float]:
        """Returns the priorities by name."""
        found = {}
        for words in filter(str.strip, self.priorities.split(";")):
            name, _, number = words.strip().rpartition(" ")
            try:
                found[name.strip()] = float(number)
            except ValueError:
                found[name] = math.nan
            if not (name and LEAST_WEIGHT <= found[name.strip()] <= 1 / LEAST_WEIGHT):
                raise Refused(f"priorities = {self.priorities!r}: a name, a space and a number "
                              f"above 0, with semicolons between, as 'gold 2; silver 0.5'"
                              )  # fmt: skip
        return found

    def _priority(self, job: Request) -> float:
        return self._priorities.get(str(getattr(job, self.priority_of)), 1.0)

    def _known(self, view: PowerView) -> tuple[Shelf, tuple[Choices, ...]]:
        """Returns what is known of all applications, and their choices as known; found once."""
        found = self.__dict__.get("_found")
        if found is None or found[0] is not view.choices or found[1] != view.idle_w:
            known = true = tuple(view.choices.values())
            grace = 0.0
            if self.knowledge == "model":
                known = tuple(predicted_choices(*each, self.trained, self.training, self.sampling)
                              for each in view.choices.items())  # fmt: skip
                grace = self.grace
            shelf = shelf_of(known, true, view.idle_w, grace)
            found = self.__dict__["_found"] = view.choices, view.idle_w, (shelf, known)
        return found[2]  # type: ignore[no-any-return]


@power("rmap-traditional", about="all cores of the nodes asked for, uncapped; waits for the power",
       source=PATKI)  # fmt: skip
class Traditional(Rmap):
    """A job runs on the nodes that it asked for, or on the largest number up to these that was
    measured, with all cores and without a cap; if that exceeds the bound, on as many as do not. No
    share of the power is fair."""

    kind = TRADITIONAL


@power("rmap-naive", about="the fastest configuration within a fair share of the power",
       source=PATKI)  # fmt: skip
@dataclass(frozen=True)
class Naive(Rmap):
    """A job waits for the fastest configuration within its fair share of the power, on any number
    of nodes, and starts in no other. One whose share is too small for any waits for that which
    draws least."""

    kind = NAIVE

    strict: bool = parameter(
        False, about="whether it waits for all of its share, and not only for what it draws"
    )


@power("rmap-adaptive", about="as rmap-naive, or slower at once if power is short",
       source=PATKI)  # fmt: skip
@dataclass(frozen=True)
class Adaptive(Rmap):
    """A job whose fair share of the power is free runs as under `rmap-naive`. One whose share is
    not starts at once in the fastest configuration within what is free, unless it would then take
    longer than its user asked for and tolerates: that is power-aware backfilling."""

    kind = ADAPTIVE

    threshold: float = parameter(
        0.0, about="by how much a job may exceed its requested time; -1: by any", least=-1,
        most=1e6,
    )  # fmt: skip
    short_of: str = parameter(
        "power", about="what has to be short before it runs slower: power, or nodes as well",
        words=SHORTAGES,
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if -1.0 < self.threshold < 0.0:
            raise Refused(f"threshold = {self.threshold:g}: 0 or more, or -1: unbounded")


def _locked(rows: Any) -> Any:
    rows.flags.writeable = False
    return rows
