"""The simulations of the study, by the question that they answer.

A **cell** is the runs of all months under one order, policy and cap: twelve runs, or one run of the
year that is divided into months afterwards. Where the paper is silent, the choice is ours and
explained in docs/power-wallace.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

from odonata.studies.wallace import simulation
from odonata.study.contract import digest
from pdes.errors import require

ORDERS = ("fcfs", "wfp")
CAPS = ("2000 kW", "3000 kW", "4000 kW")
LOW, MIDDLE, HIGH = CAPS
PEAK = "4800 kW"
"""A cap that no run can exceed: what is left of the policy is its window."""
LOADS = (0.6, 0.95, 1.1)
"""Other loads than the study's: the paper does not give the load of its trace."""
CAUSES, SOME = ("fcfs",), 3
"""The orders whose causes are measured, in the first year: one is enough; and the months: every
third is."""


@dataclass(frozen=True)
class WallacePlan:
    """The extent of the study: which of PARTS, one of RUNS, and the years: the seed of the first,
    their load, their days, how many equal months each has, and how many there are."""

    parts: tuple[str, ...]
    runs: str
    seed: int
    load: float
    days: int
    months: int
    years: int = 1

    def __post_init__(self) -> None:
        require(1 <= self.years <= 100, f"years = {self.years}: 1 .. 100")
        require(0 <= self.seed < 2**62, f"seed = {self.seed}: 0 .. 2**62 - 1")
        require(0 < self.load <= 1.2, f"load = {self.load}: above 0, and at most 1.2")
        require(4 <= self.days <= 3650, f"days = {self.days}: 4 .. 3650")
        most = min(self.days // 2, 120)
        require(1 <= self.months <= most, f"months = {self.months}: 1 .. {most}, of 2 days or more")

    @property
    def seeds(self) -> range:
        """Returns the seed of each year."""
        return range(self.seed, self.seed + self.years)

    def part(self, order: str, policy: str, cap: str, **how: Any) -> simulation.Part:
        """Returns one run, of the first year unless a seed, and of all of it unless a month is
        given."""
        usual = {"seed": self.seed, "load": self.load, "days": self.days, "months": self.months}
        return simulation.Part(order, policy, cap, **usual | how)

    def cell(
        self, order: str, policy: str, cap: str = MIDDLE, every: int = 1, **how: Any
    ) -> tuple[simulation.Part, ...]:
        """Returns the runs of all months, or of every third, say. What is not capped is counted
        against 3,000 kW."""
        if self.runs == "year":
            return (self.part(order, policy, cap, **how),)
        months = range(0, self.months, every)
        return tuple(self.part(order, policy, cap, month=month, **how) for month in months)


VARIANTS: dict[str, dict[str, Any]] = {
    "learner, window of 1": {"policy": simulation.LEARNER, "window": 1},
    "learner, every job a stranger": {"policy": simulation.LEARNER, "strangers": True},
    "naive, and whoever fits may pass": {"policy": simulation.NAIVE, "backfill": "first-fit"},
}
"""The policies between naive and learner, each with a part of what distinguishes them."""


def _caps(asked: WallacePlan) -> Iterator[simulation.Part]:
    for seed, order in product(asked.seeds, ORDERS):
        yield from asked.cell(order, simulation.NONE, seed=seed)
        yield from asked.cell(order, simulation.NONE, backfill="easy", seed=seed)
        for cap in CAPS:
            for policy in (simulation.NAIVE, simulation.LEARNER):
                yield from asked.cell(order, policy, cap, seed=seed)


def _year(asked: WallacePlan) -> Iterator[simulation.Part]:
    for seed, order in product(asked.seeds, ORDERS):
        yield asked.part(order, simulation.LEARNER, simulation.VARIABLE, seed=seed)
        yield asked.part(order, simulation.LEARNER, MIDDLE, seed=seed)
        yield asked.part(order, simulation.NONE, MIDDLE, seed=seed)


def _causes(asked: WallacePlan) -> Iterator[simulation.Part]:
    for order in CAUSES:
        yield from asked.cell(order, simulation.NONE, every=SOME)
        yield from asked.cell(order, simulation.NONE, every=SOME, backfill="easy")
        yield from asked.cell(order, simulation.LEARNER, PEAK, SOME)
        for cap in CAPS:
            for policy in (simulation.NAIVE, simulation.LEARNER):
                yield from asked.cell(order, policy, cap, SOME)
            for variant in VARIANTS.values():
                yield from asked.cell(order, cap=cap, every=SOME, **variant)
        for load in LOADS:
            yield from asked.cell(order, simulation.NONE, every=SOME, load=load)
            for cap in CAPS:
                for policy in (simulation.NAIVE, simulation.LEARNER):
                    yield from asked.cell(order, policy, cap, SOME, load=load)


PARTS: dict[str, Callable[[WallacePlan], Iterator[simulation.Part]]] = {
    "year": _year,
    "caps": _caps,
    "causes": _causes,
}
"""In the order in which they are simulated: the longest runs first."""


@lru_cache(maxsize=4)
def cases(asked: WallacePlan) -> tuple[simulation.Part, ...]:
    """Returns each run once, or refuses what cannot be built: a load that the year cannot have."""
    every = [part for name, make in PARTS.items() if name in asked.parts for part in make(asked)]
    first = {(part.load, part.seed): part for part in reversed(every)}
    for part in first.values():
        simulation.year(part.seed, part.load, part.days)
    return tuple(dict.fromkeys(every))


def mark() -> str:
    """Returns a digest over a few days with all that the study uses. It compiles what the study
    needs."""
    short: dict[str, Any] = {"days": 4, "months": 2}
    tried = [simulation.Part(order, policy, cap, **short) for order in ORDERS for policy,
             cap in ((simulation.NONE, MIDDLE), (simulation.NAIVE, LOW), (simulation.LEARNER, LOW),
                     (simulation.LEARNER, simulation.VARIABLE))]  # fmt: skip
    tried.append(simulation.Part("fcfs", simulation.LEARNER, LOW, month=1, strangers=True, window=2,
                                 **short))  # fmt: skip
    tried += [simulation.Part("fcfs", simulation.NAIVE, LOW, month=0, backfill=rule, **short)
              for rule in ("easy", "first-fit")]  # fmt: skip
    found = map(simulation.simulate, tried)
    return digest(f"{one.digest} {one.wait_s} {one.violations}" for one in found)
