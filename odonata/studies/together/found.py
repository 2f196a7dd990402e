"""What the queues of a setting came to, which is an allocation with a power policy; and how much of
its power a machine can offer under it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from odonata.results.statistics import Interval, interval
from odonata.studies.together.cases import ALLOCATIONS, RESERVES_W, TogetherPlan
from odonata.studies.together.simulation import Offer, TogetherOutcome
from odonata.study import measured

SHARE = 0.1
"""The tracking rule: the part of the intervals that are bad is below this."""
MIDDLE_W = 3000.0
"""The reserve at which settings are compared one by one."""
Setting = tuple[str, str]
"""An allocation and a power policy."""


class Queued(NamedTuple):
    """What one queue came to under a setting."""

    blind: TogetherOutcome
    """By the first allocation, with nothing offered."""
    free: TogetherOutcome
    """By its own allocation, with nothing offered."""
    offers: Mapping[float, TogetherOutcome]
    """By reserve, in W."""

    def slower(self, reserve_w: float) -> float:
        """Returns how many times as long jobs took, from arrival to end, as where nothing is
        offered, by the first allocation."""
        return self.offers[reserve_w].turnaround_us / self.blind.turnaround_us

    def keeps(self, reserve_w: float, slower: float) -> bool:
        """Tells whether it kept the tracking rule, and its jobs took no longer than they may."""
        bad = self.offers[reserve_w].bad
        return bad is not None and bad < SHARE and self.slower(reserve_w) <= slower

    def offered_w(self, slower: float) -> float:
        """Returns the largest reserve with which it does so; 0: there is none."""
        return max((watts for watts in self.offers if self.keeps(watts, slower)), default=0.0)

    @property
    def saving(self) -> float:
        """Returns which part of the price of the average was saved, on average over reserves."""
        return sum(it.saving or 0.0 for it in self.offers.values()) / len(self.offers)


@dataclass(frozen=True)
class Measured(measured.Measured[TogetherPlan, Offer, TogetherOutcome]):
    """The outcomes of a plan, by setting; of all its queues, or of some."""

    some: tuple[int, ...] | None = None

    @property
    def seeds(self) -> Sequence[int]:
        return self.asked.seeds if self.some is None else self.some

    def of_all(self, settings: Iterable[Setting]) -> Measured | None:
        """Returns what there is of those queues alone that all these settings have, so that they
        can stand side by side; None: there is none."""
        found = set(self.seeds)
        for setting in settings:
            found &= set(self.queues(setting))
        return replace(self, some=tuple(sorted(found))) if found else None

    def queues(self, setting: Setting) -> Mapping[int, Queued]:
        """Returns what the queues of a setting came to, by seed: those that have all outcomes."""
        allocation, power = setting
        found = {}
        for seed in self.seeds:
            every = [self.asked.free(ALLOCATIONS[0], seed), self.asked.free(allocation, seed),
                     *(self.asked.offer(allocation, power, seed, it)
                       for it in RESERVES_W)]  # fmt: skip
            if there := self.every(every):
                offers = dict(zip(RESERVES_W, there[2:], strict=True))
                found[seed] = Queued(there[0], there[1], offers)
        return found

    def mean(self, setting: Setting, value: Callable[[Queued], float]) -> Interval:
        """Returns the mean of something over the queues of a setting."""
        return interval([value(it) for it in self.queues(setting).values()])

    def change(self, before: Setting, after: Setting, value: Callable[[Queued], float]) -> Interval:
        """Returns by how much more it is under another setting, of the same queues."""
        one, other = self.queues(before), self.queues(after)
        both = [seed for seed in one if seed in other]
        return interval([value(other[seed]) - value(one[seed]) for seed in both])

    def offered(self, queue: Queued) -> float:
        """Returns the largest reserve of a queue that keeps what is asked, in W."""
        return queue.offered_w(self.asked.slower)
