"""What bids came to in the simulated hours in which they were tried."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from policies.bidding.delays import Tail, tail_of
from policies.bidding.known import HOUR_S, mean_w, seconds
from policies.views import Bid, Market, Trial, tracking

NONE = np.zeros(0)


class Worth(NamedTuple):
    """What a bid comes to, on average over the hours in which it was tried."""

    cost: float
    nothing: float
    """What the work would cost that was done, if nothing were offered: at most what jobs need on
    average, as standby jobs are nobody's work."""
    bad: float
    """The share of bad intervals."""
    broken: float
    """The share of hours that broke the tracking rule."""


def worth(market: Market, bid: Bid, trials: Sequence[Trial]) -> Worth:
    """Returns what a bid comes to, from hours in which it was tried."""
    hours = seconds(market, market.hour) / HOUR_S
    prices = market.energy_price, market.reserve_price, market.error_price
    error, drawn_w = (float(np.mean([getattr(it, name) for it in trials]))
                      for name in ("error", "drawn_w"))  # fmt: skip
    bad = [it.bad(market.limit) for it in trials]
    broken = float(np.mean([each >= market.share for each in bad]))
    found = tracking.cost(bid.average_w, bid.reserve_w, error, hours, *prices)
    nothing = tracking.cost(min(mean_w(market), drawn_w), 0.0, 0.0, hours, *prices)
    return Worth(found + broken * market.violation, nothing, float(np.mean(bad)), broken)


def lateness(market: Market, trial: Trial) -> float:
    """Returns the mean degradation of the jobs of an hour, as a part of their thresholds; of those
    that have one."""
    found = [trial.degradations[it.name] / it.threshold for it in market.types
             if it.threshold < np.inf and it.name in trial.degradations]  # fmt: skip
    every = np.concatenate([np.zeros(0), *found])
    return float(every.mean()) if len(every) else 0.0


TRACKING = "tracking rule"
"""What stands for the tracking rule where constraints have names; the others are names of types."""
HAIR = 1e-9
"""Shares of jobs that differ by no more than this are equal."""


class Judged(NamedTuple):
    """What a bid came to in one hour, as `judge` found it."""

    cost: float
    """What the hour costs, with what a broken tracking rule costs."""
    paid: float
    """What the average costs alone."""
    nothing: float
    """What the work would cost that was done, if nothing were offered (`Worth.nothing`)."""
    error: float
    bad: float
    """The share of bad intervals."""
    late: Mapping[str, float]
    """The share of late jobs by type, of types that have jobs and a threshold."""
    kept_rule: bool
    """Whether the tracking rule was kept, in a whole hour."""
    kept_qos: bool
    """Whether no type has more late jobs than may be."""
    ratios: Mapping[str, float]
    """The value that decides about each constraint, as a multiple of its limit, with the margin: of
    errors, or of a type's degradations, the largest that counts."""
    part: float
    """Which part of the hour was simulated."""
    tails: Mapping[str, Tail | None]
    """How waits of each type fall off, if that was wanted: alpha is fitted to it."""

    @property
    def kept(self) -> bool:
        """Tells whether all rules were kept."""
        return self.kept_rule and self.kept_qos

    @property
    def saving(self) -> float | None:
        """Returns which part is saved of what the average costs; None where that is nothing, or
        less."""
        return saving_of(self.cost, self.paid)

    @property
    def violation(self) -> float:
        """Returns by how much the constraints are broken: the sum of the logarithms of the ratios
        above 1, and of how much of the hour is missing."""
        over = (math.log(it) + HAIR for it in self.ratios.values() if it >= 1.0)
        return sum(over) + 2.0 * (1.0 - self.part)


def saving_of(cost: float, paid: float) -> float | None:
    """Returns which part of a price is saved; None where there is none, or less."""
    return 1.0 - cost / paid if paid > 0.0 else None


def judge(
    market: Market, bid: Bid, trial: Trial, margin: float = 0.0, tails: bool = False
) -> Judged:
    """Returns what a trial says of a bid. With a margin, the ratios are those of constraints that
    are stricter by that part of 1: the shares of intervals and of jobs that may be bad. `tails`:
    whether they are wanted. Where no reserve is offered what is drawn is paid for."""
    prices = market.energy_price, market.reserve_price, market.error_price
    hours, errors = seconds(market, market.hour) / HOUR_S, trial.errors
    error, bad = (0.0 if math.isnan(it) else it for it in (
        tracking.mean_error(errors), tracking.bad_share(errors, market.limit)
    ))  # fmt: skip
    average_w = bid.average_w if bid.reserve_w > 0.0 else trial.drawn_w
    broken = bad >= market.share
    cost = tracking.cost(average_w, bid.reserve_w, error, hours, *prices, broken, market.violation)
    paid = tracking.cost(average_w, 0.0, 0.0, hours, *prices)
    nothing = tracking.cost(min(mean_w(market), trial.drawn_w), 0.0, 0.0, hours, *prices)
    late, ratios, strict = {}, {}, 1.0 - margin
    qos, kept_qos = tracking.Qos(market.late, market.qos), True
    count = round(len(errors) / trial.part) if trial.part else 0
    may = max(0, math.ceil(market.share * strict * count - HAIR) - 1)
    ratios[TRACKING] = tracking.largest(errors, may) / (market.limit + 2.0 * tracking.HAIR)
    for it in market.types:
        found = trial.degradations.get(it.name, NONE)
        if it.threshold < math.inf and len(found):
            late[it.name] = float((found >= it.threshold).mean())
            ratios[it.name] = max(0.0, qos.deciding(found, margin) / it.threshold)
            kept_qos = kept_qos and qos.kept(found, it.threshold)
    return Judged(
        cost, paid, nothing, error, bad, late, not broken and trial.part >= 1.0,
        kept_qos, ratios, trial.part,
        {it.name: tail_of(trial.waits.get(it.name, NONE)) for it in market.types if tails},
    )  # fmt: skip
