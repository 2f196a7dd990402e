"""A bid that knows its risk: the cheapest one for which the chance of a failed hour, one that
breaks the tracking rule or the QoS of a type, is below a stated one.

It takes three sets of hours, as whoever chooses by some hours sees too few of those fail. On the
first bids are **trained**: the search lets a part of the hours fail. Of what it tried the cheapest
bid is kept for each number of hours that failed, and each of these also with smaller reserves. By
the second set one of these is **chosen**: the cheapest of which so few hours failed that the chance
of a single bid would be below the stated one at 95 % confidence. As the best of several, it may be
above. On the third set it is **judged**: the interval of its chance is from these hours alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from odonata.bids.asking import Steps, Wanted, found_here
from odonata.bids.chance import Chance
from odonata.bids.training import CHOOSE, JUDGE, TRAIN, Trained, training, whole_saving
from policies.bidding.aqa import Optimised
from policies.bidding.judging import TRACKING, Judged
from policies.bidding.search import Candidate
from policies.views import Bid, Market

SMALLER = (1.0, 0.9, 0.8, 0.65, 0.5)
"""The parts of a reserve that are tried in its place."""
MOST = 12
"""Bids that are kept of a search, each with every reserve."""


class Point(NamedTuple):
    """A bid of the front, as the hours show it by which one is chosen."""

    bid: Bid
    failed: Chance
    saving: float | None
    worst: float
    """The worst type's degradation, as a part of its threshold: of that type for which the value
    that decides about its QoS is largest, in the mean over the hours."""
    cost: float


class AtRisk(NamedTuple):
    """The bid for a risk. `front` has all bids from which it was chosen. `passed` says whether no
    more of the hours that it was chosen by failed than may be, of a bid that nobody chose, for its
    chance to be below the stated one at 95 %. What the chance is `judged` says."""

    risk: float
    chosen: Point
    passed: bool
    judged: Point
    front: Sequence[Point]
    trained: Trained


def at_risk(
    market: Market, how: Optimised, risk: float, train_on: int = 40, choose_by: int = 200,
    judge_on: int = 400,
) -> AtRisk:  # fmt: skip
    """Returns the bid for a risk, from so many hours of each kind."""
    return found_here(market, at_risk_steps(market, how, risk, train_on, choose_by, judge_on))


def at_risk_steps(
    market: Market, how: Optimised, risk: float, train_on: int, choose_by: int, judge_on: int
) -> Steps[AtRisk]:
    """The steps of `at_risk`: those of the training, then all bids of the front at once, and the
    one that is chosen."""
    risky = replace(cast(Any, how), risk=risk)
    trained = yield from training(market, risky, range(TRAIN, TRAIN + train_on))
    bids, hours = shortlist(trained.every), range(CHOOSE, CHOOSE + choose_by)
    heard = yield [Wanted(bid, hours) for bid in bids]
    front = [point(bid, found) for bid, found in zip(bids, heard, strict=True)]
    sure = [it for it in front if it.failed.below <= risk]
    chosen = (min(sure, key=lambda it: it.cost) if sure
              else min(front, key=lambda it: (it.failed.share, it.cost)))  # fmt: skip
    (last,) = yield [Wanted(chosen.bid, range(JUDGE, JUDGE + judge_on))]
    return AtRisk(risk, chosen, bool(sure), point(chosen.bid, last), front, trained)


def shortlist(every: Sequence[Candidate]) -> list[Bid]:
    """Returns the cheapest bid for each number of hours that failed, beginning with the least, and
    each with smaller reserves."""
    best: dict[int, Candidate] = {}
    for it in every:
        failed = sum(one.violation > 0.0 for one in it.judged)
        if failed not in best or it.cost < best[failed].cost:
            best[failed] = it
    some = [best[count].bid for count in sorted(best)[:MOST]]
    return [bid._replace(reserve_w=part * bid.reserve_w) for bid in some for part in SMALLER]


def undominated(front: Sequence[Point]) -> list[Point]:
    """Returns the bids that no other beats both in cost, by which one is chosen, and in chance, the
    safest first."""
    best, found = float("inf"), []
    for it in sorted(front, key=lambda it: (it.failed.share, it.cost)):
        if it.cost < best:
            best = it.cost
            found.append(it)
    return found


def point(bid: Bid, found: Sequence[Judged]) -> Point:
    """Returns what hours say of a bid."""
    by_type: dict[str, list[float]] = {}
    for it in found:
        for name, ratio in it.ratios.items():
            if name != TRACKING:
                by_type.setdefault(name, []).append(ratio)
    return Point(
        bid, Chance(sum(not it.kept for it in found), len(found)),
        whole_saving(found),
        max((float(np.mean(values)) for values in by_type.values()), default=0.0),
        float(np.mean([it.cost for it in found])),
    )  # fmt: skip
