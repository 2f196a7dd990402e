"""Which of the machines that a buyer's prices allow to buy, and what is to be said of the others.

The fastest machine is recommended, or the cheapest of those that are **nearly as fast**: whose time
is longer than the fastest one's by no more than a share of it, which the buyer chooses. So no other
machine is at most as slow as the one that is recommended and costs less; of the others each is told
by how much it is slower and cheaper, and one that is neither faster nor cheaper is **dominated**.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pdes.errors import Refused

NEAR = 0.01
"""The share of the fastest machine's time by which another may be slower and is still nearly as
fast: 1 %, where nobody says otherwise. Times of jobs differ by as much from run to run (Patki,
section 5.4)."""


@dataclass(frozen=True)
class Offer:
    """A machine that can be bought: its key, the seconds per job, the cost of its purchase, and
    what a job costs (None where running costs are not told)."""

    key: str
    seconds: float
    cost: float
    per_job: float | None = None

    def dominates(self, other: Offer) -> bool:
        """Tells whether it is at most as slow and costs at most as much, and is not equal."""
        mine, others = (self.seconds, self.cost), (other.seconds, other.cost)
        return mine != others and mine[0] <= others[0] and mine[1] <= others[1]


@dataclass(frozen=True)
class Rival:
    """How another machine compares with the one that is recommended: shares of that one's, as 0.2
    for 20 % more and -0.2 for 20 % less."""

    key: str
    longer: float
    dearer: float
    dearer_per_job: float
    """The cost per job goes by the purchase alone where running costs are not told."""
    nearly_as_fast: bool
    """Whether the two times differ by no more than the share that the buyer chose."""
    dominated: bool
    """Whether it is neither faster nor cheaper than the one that is recommended, to buy or per
    job."""


@dataclass(frozen=True)
class Recommendation:
    """The machine to buy, and the others, the fastest first."""

    buy: str
    fastest: str
    cheapest: str
    cheapest_per_job: str
    near: float
    rivals: tuple[Rival, ...]


def recommended(offers: Sequence[Offer], near: float = NEAR) -> Recommendation | None:
    """Returns what to buy of these; None where there are none."""
    if not 0.0 <= near < 1.0:
        raise Refused(f"near = {near:g}: a share of the time, from 0 to below 1, as 0.01 for 1 %")
    if not offers:
        return None
    if any(it.per_job is None for it in offers):  # known of some only, nothing can be compared
        offers = [replace(it, per_job=None) for it in offers]
    fastest = min(offers, key=lambda it: (it.seconds, it.cost))
    within = [it for it in offers if it.seconds <= fastest.seconds * (1.0 + near)]
    best = min(within, key=lambda it: (it.cost, it.seconds))
    rivals = sorted((it for it in offers if it is not best), key=lambda it: (it.seconds, it.cost))
    return Recommendation(
        best.key, fastest.key, min(offers, key=lambda it: (it.cost, it.seconds)).key,
        min(offers, key=lambda it: (_per_job(it), it.seconds)).key, near,
        tuple(_compared(it, best, near) for it in rivals),
    )  # fmt: skip


def _per_job(offer: Offer) -> float:
    """Returns what a job costs or, where that is not known, a number in proportion to its part of
    the purchase: all machines are used for as long."""
    return offer.seconds * offer.cost if offer.per_job is None else offer.per_job


def _compared(other: Offer, best: Offer, near: float) -> Rival:
    fast, slow = sorted((other.seconds, best.seconds))
    return Rival(
        other.key, other.seconds / best.seconds - 1.0, other.cost / best.cost - 1.0,
        _per_job(other) / _per_job(best) - 1.0, slow <= fast * (1.0 + near),
        best.dominates(other) and _per_job(other) >= _per_job(best),
    )  # fmt: skip
