"""What the days of a setting came to."""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import attrgetter
from typing import Any

from odonata.results.statistics import Interval, interval
from odonata.studies.bidding.cases import BiddingPlan, Workload
from odonata.studies.bidding.simulation import BiddingOutcome, Day
from odonata.study import measured

SHARE, THRESHOLD = 0.1, 2.0
"""The rules: the machine is off its target for less than this part of the day, and the mean
degradation of each type of jobs is below this."""


Measure = Callable[[BiddingOutcome], float]
worst: Measure = attrgetter("worst")
saving: Measure = attrgetter("saving")
cost: Measure = attrgetter("cost")
reserve: Measure = attrgetter("reserve_w")
average: Measure = attrgetter("average_w")


def off(day: BiddingOutcome) -> float:
    return math.nan if day.off is None else day.off


def keeps_rule(day: BiddingOutcome) -> bool:
    """Tells whether the machine was near its target for most of the day."""
    return day.off is None or day.off < SHARE


def keeps_qos(day: BiddingOutcome) -> bool:
    """Tells whether every type of jobs kept its QoS."""
    return day.worst < THRESHOLD


class Measured(measured.Measured[BiddingPlan, Day, BiddingOutcome]):
    """The outcomes of a plan."""

    def days(self, workload: Workload, policy: str, bid: Any, **more: Any) -> list[BiddingOutcome]:
        """Returns the days of a setting; none where not all of them are there."""
        return self.every(self.asked.of(workload, policy, bid, self.outcomes, **more))


def mean(days: list[BiddingOutcome], of: Measure) -> Interval:
    """Returns the mean of a measure over days, with its interval."""
    return interval([of(day) for day in days])


def difference(ones: list[BiddingOutcome], others: list[BiddingOutcome], of: Measure) -> Interval:
    """Returns the mean of differences between days of the same seed."""
    return interval([of(a) - of(b) for a, b in zip(ones, others, strict=True)])


def kept(days: list[BiddingOutcome], of: Callable[[BiddingOutcome], bool]) -> str:
    return f"{sum(map(of, days))} of {len(days)}"


def both(day: BiddingOutcome) -> bool:
    """Tells whether a day keeps both rules."""
    return keeps_rule(day) and keeps_qos(day)
