"""The cases of the study: every allocation with every power policy and every reserve, for queues of
jobs that are the same for all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from odonata.studies.together.simulation import ACTIVE_W, Offer, simulate
from odonata.study.contract import digest
from pdes.errors import require

ALLOCATIONS = ("simple", "level-spread", "nedd")
KNOWING = ("assumed", "metered", "by type", "by waiting")
PUBLISHED = ("aqa", "tracking-only")
"""The policies of papers, which the study has with the simple allocation only."""
RESERVES_W = (2000.0, 2500.0, 3000.0, 3500.0, 4000.0)
STEPS = frozenset([
    *((ALLOCATIONS[0], power) for power in KNOWING),
    *((allocation, KNOWING[-1]) for allocation in ALLOCATIONS),
])  # fmt: skip
"""The settings by which the study gets from knowing nothing to knowing all."""
MOST_REPETITIONS = 1000
LEAST_W, MOST_W = RESERVES_W[-1], 72 * ACTIVE_W


@dataclass(frozen=True)
class TogetherPlan:
    """What is asked for."""

    repetitions: int
    average_w: float
    waiting_w: float
    slower: float

    def __post_init__(self) -> None:
        require(1 <= self.repetitions <= MOST_REPETITIONS,
                f"repetitions = {self.repetitions}: 1 .. {MOST_REPETITIONS:,}")  # fmt: skip
        require(LEAST_W < self.average_w <= MOST_W,
                f"average = {self.average_w:g}: above {LEAST_W:g} W, the largest reserve that is "
                f"tried, and at most {MOST_W:g} W, which all nodes draw together")  # fmt: skip
        require(self.waiting_w >= 0.0, f"waiting = {self.waiting_w:g}: 0 W or more")
        require(1.0 <= self.slower <= 1000.0, f"slower = {self.slower:g}: 1 .. 1,000")

    def free(self, allocation: str, seed: int) -> Offer:
        """Returns the case in which nothing is offered."""
        return self.offer(allocation, KNOWING[0], seed, 0.0)

    def offer(self, allocation: str, power: str, seed: int, reserve_w: float) -> Offer:
        """Returns the case of an allocation, a power policy and a reserve."""
        return Offer(seed, allocation, power, reserve_w, self.average_w,
                     min(self.waiting_w, ACTIVE_W))  # fmt: skip

    @property
    def seeds(self) -> range:
        """Returns the seeds of the queues."""
        return range(1, self.repetitions + 1)


def settings() -> Iterator[tuple[str, str]]:
    """Yields every allocation with every power policy of the study."""
    for allocation in ALLOCATIONS:
        for power in (*KNOWING, *(PUBLISHED if allocation == ALLOCATIONS[0] else ())):
            yield allocation, power


def cases(asked: TogetherPlan) -> list[Offer]:
    """Returns each case once, a queue after the other: first all that the answer needs, and one
    step of knowing more after the other."""
    found = []
    every = [*settings()]
    for some in ([it for it in every if it in STEPS], [it for it in every if it not in STEPS]):
        for seed in asked.seeds:
            found += [asked.free(allocation, seed) for allocation in ALLOCATIONS]
            for allocation, power in some:
                found += [asked.offer(allocation, power, seed, watts) for watts in RESERVES_W]
    return [*dict.fromkeys(found)]


def mark() -> str:
    """Returns a digest of this simulator, of a short queue under every power policy."""
    few = [Offer(1, allocation, power, 3000.0, jobs=4) for allocation, power in settings()]
    return digest(simulate(case).digest for case in few)
