"""What the days of a setting came to."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from odonata.results.statistics import Interval, interval
from odonata.studies.bidding.cases import BiddingPlan, Outcomes, Workload
from odonata.studies.bidding.simulation import DayOutcome

SHARE, THRESHOLD = 0.1, 2.0
"""The rules: the machine is off its target for less than this part of the day, and the mean
degradation of each type of jobs is below this."""


def off(day: DayOutcome) -> float:
    return math.nan if day.off is None else day.off


def worst(day: DayOutcome) -> float:
    return day.worst


def saving(day: DayOutcome) -> float:
    return day.saving


def cost(day: DayOutcome) -> float:
    return day.cost


def reserve(day: DayOutcome) -> float:
    return day.reserve_w


def average(day: DayOutcome) -> float:
    return day.average_w


def keeps_rule(day: DayOutcome) -> bool:
    """Tells whether the machine was near its target for most of the day."""
    return day.off is None or day.off < SHARE


def keeps_qos(day: DayOutcome) -> bool:
    """Tells whether every type of jobs kept its QoS."""
    return day.worst < THRESHOLD


@dataclass(frozen=True)
class Measured:
    """The outcomes of a plan."""

    asked: BiddingPlan
    outcomes: Outcomes

    def days(self, workload: Workload, policy: str, bid: Any, **more: Any) -> list[DayOutcome]:
        """Returns the days of a setting; none where not all of them are there."""
        cases = self.asked.of(workload, policy, bid, self.outcomes, **more)
        if not cases or any(case.key not in self.outcomes for case in cases):
            return []
        return [self.outcomes[case.key] for case in cases]


def mean(days: list[DayOutcome], of: Callable[[DayOutcome], float]) -> Interval:
    """Returns the mean of a measure over days, with its interval."""
    return interval([of(day) for day in days])


def difference(
    ones: list[DayOutcome], others: list[DayOutcome], of: Callable[[DayOutcome], float]
) -> Interval:
    """Returns the mean of differences between days of the same seed."""
    return interval([of(a) - of(b) for a, b in zip(ones, others, strict=True)])


def kept(days: list[DayOutcome], of: Callable[[DayOutcome], bool]) -> str:
    return f"{sum(map(of, days))} of {len(days)}"


def both(day: DayOutcome) -> bool:
    """Tells whether a day keeps both rules."""
    return keeps_rule(day) and keeps_qos(day)
