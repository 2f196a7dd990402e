"""Bids that are trained on some hours and judged on others.

An hour has a number. Those with one number have the same jobs and the same signal for every bid,
and those with different numbers have nothing in common: hours that are judged have numbers that no
bid was trained on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from odonata.bids.asking import Steps, Wanted, found_here, simulated
from policies.bidding.aqa import Optimised
from policies.bidding.judging import TRACKING, Judged, saving_of
from policies.bidding.known import HOUR_S, mean_w, seconds
from policies.bidding.search import GRADIENT, Candidate, optimiser_of
from policies.views import Bid, Market, tracking

TRAIN, CHOOSE, JUDGE, FRESH = 1, 100_001, 200_001, 300_001
"""The first numbers of hours that bids are trained on, chosen by, judged on; and of others still.
"""


class Step(NamedTuple):
    """A bid that was suggested, as a figure of the search shows it."""

    average_w: float
    reserve_w: float
    cost: float
    """What an hour costs on average."""
    violation: float
    """The mean over the hours."""
    kept: int
    """The hours in which it kept all rules, with the margin."""


@dataclass(frozen=True)
class Trained:
    """The bid that a search ended with, and all that it tried, in order."""

    best: Candidate
    steps: Sequence[Step]
    every: Sequence[Candidate] = ()


def train(market: Market, how: Optimised, hours: Sequence[int]) -> Trained:
    """Returns what the optimiser of a policy finds on these hours."""
    return found_here(market, training(market, how, hours))


def training(market: Market, how: Optimised, hours: Sequence[int]) -> Steps[Trained]:
    """The steps of `train`: a batch of bids after the other."""
    tails = how.optimiser == GRADIENT
    asked = optimiser_of(how.optimiser, market, how.candidates, how.risk)
    every: list[Candidate] = []
    while not asked.finished:
        bids = asked.ask()
        heard = yield [Wanted(bid, hours, True, how.margin, tails) for bid in bids]
        batch = [Candidate(bid, tuple(found)) for bid, found in zip(bids, heard, strict=True)]
        asked.tell(batch)
        every += batch
    best = min(every, key=lambda it: it.rank(market, how.risk))
    return Trained(best, [step_of(it) for it in every], every)


def best_so_far(market: Market, every: Sequence[Candidate], risk: float = 0.0) -> list[int]:
    """Returns, for each of the bids in the order in which they were tried, which was the best then:
    its place."""
    ranks, best = [it.rank(market, risk) for it in every], list[int]()
    for at in range(len(every)):
        best.append(at if not best or ranks[at] < ranks[best[-1]] else best[-1])
    return best


def step_of(it: Candidate) -> Step:
    """Returns what a figure shows of a bid."""
    missed = float(np.mean([one.violation for one in it.judged]))
    kept = sum(not one.violation for one in it.judged)
    return Step(it.bid.average_w, it.bid.reserve_w, it.cost, missed, kept)


def judged(market: Market, bid: Bid, hours: Sequence[int]) -> list[Judged]:
    """Returns what a bid comes to in these hours, each of them whole."""
    return simulated(market, Wanted(bid, hours))


class Report(NamedTuple):
    """What a bid came to in some hours."""

    hours: int
    kept: int
    """The hours in which the tracking rule and the QoS of every type were kept."""
    kept_rule: int
    kept_qos: int
    saving: float | None
    """1 - the sum of the costs / the sum of what the averages cost; None where that is nothing, or
    less."""
    cost: float
    """What sixty minutes cost on average; `nothing` is of as long."""
    nothing: float
    """What the jobs that come cost if nothing is offered, on average; the same for all bids."""
    error: float
    bad: float
    """The share of bad intervals."""
    late: Mapping[str, float]
    """The share of late jobs by type, as the mean over the hours."""
    fails: Mapping[str, tuple[int, float]]
    """The constraints that fail: each with the number of hours, and by what part of its limit the
    value that decides exceeds it there, on average."""


def report(market: Market, found: Sequence[Judged]) -> Report:
    """Returns what a bid came to, of whole hours that were judged without a margin."""
    hours = seconds(market, market.hour) / HOUR_S
    late = {name: float(np.mean([it.late[name] for it in found if name in it.late]))
            for name in dict.fromkeys(name for it in found for name in it.late)}  # fmt: skip
    return Report(
        len(found), sum(it.kept for it in found), sum(it.kept_rule for it in found),
        sum(it.kept_qos for it in found), whole_saving(found),
        float(np.mean([it.cost for it in found])) / hours,
        tracking.cost(mean_w(market), 0.0, 0.0, 1.0, market.energy_price, 0.0, 0.0),
        float(np.mean([it.error for it in found])), float(np.mean([it.bad for it in found])), late,
        dict(_fails(market, found)),
    )  # fmt: skip


def whole_saving(found: Sequence[Judged]) -> float | None:
    """Returns what is saved in all hours together of what their averages cost."""
    return saving_of(sum(it.cost for it in found), sum(it.paid for it in found))


def _fails(market: Market, found: Sequence[Judged]) -> Iterator[tuple[str, tuple[int, float]]]:
    for name in (TRACKING, *(it.name for it in market.types)):
        over = [it.ratios[name] - 1.0 for it in found if it.ratios.get(name, 0.0) >= 1.0]
        if over:
            yield name, (len(over), float(np.mean(over)))
