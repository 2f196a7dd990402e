"""The bids of AQA: average, reserve and weights, optimised in simulated hours."""

from __future__ import annotations

from collections.abc import Sequence

from policies.bidding.base import BiddingPolicy, bidding
from policies.bidding.judging import judge
from policies.bidding.known import OTHERWISE, mean_w, require_types, unknown
from policies.bidding.search import GRADIENT, OPTIMISERS, Candidate, optimiser_of
from policies.parameters import parameter
from policies.views import Bid, Market

PAPER = "Y. Zhang et al.: HPC data center participation in demand response, 2021, 3.5"
CUT = 3.0
"""A trial ends when it has so many times as many bad measurements as an hour may have, unless waits
are to be learnt from: those of an hour that is cut short are too short."""


def tried(
    market: Market, bid: Bid, hours: Sequence[int], margin: float = 0.0, tails: bool = False
) -> Candidate:
    """Returns what a bid comes to in these hours."""
    assert market.trial is not None
    trials = (market.trial(bid, hour, give_up=0.0 if tails else CUT) for hour in hours)
    return Candidate(bid, tuple(judge(market, bid, trial, margin, tails) for trial in trials))


@bidding("aqa", about="average, reserve and weights that cost least while rules are kept",
         source=PAPER)  # fmt: skip
class Optimised(BiddingPolicy):
    """A search, or the paper's descent, tries bids in simulated hours: the same ones for every bid.
    It bids the cheapest that keeps the tracking rule and the QoS of every type in all of them, with
    a margin, or in all but the part that `risk` allows. Where none does it bids the one that is
    nearest to that; and it offers nothing where the same work is cheaper so."""

    by_types = True
    tries = True
    optimiser: str = parameter("search", about="who suggests bids", words=OPTIMISERS)
    hours: int = parameter(
        6,
        about="hours in which each bid is tried; the gradient learns from one",
        least=1,
        most=1000,
    )
    candidates: int = parameter(
        500,
        about="bids that are tried, in whole batches; of the gradient 200 at most",
        least=1,
        most=10**6,
    )
    margin: float = parameter(
        0.4, about="by which part the shares that may be bad are smaller in trials", least=0.0,
        most=0.99,
    )  # fmt: skip
    risk: float = parameter(
        0.0, about="the part of the hours that may break a rule", least=0.0, most=0.99
    )
    otherwise: str = parameter(
        "nearest", about="what is bid where no bid keeps the rules", words=OTHERWISE
    )

    def bid(self, market: Market) -> Bid:
        require_types(self, market)
        nothing = Bid(mean_w(market), 0.0)
        if unknown(market):
            return nothing
        best = self.best(market, range(1, self.hours + 1))
        if best.cost >= best.nothing or (best.broken(self.risk) and self.otherwise == "nothing"):
            return nothing
        return best.bid

    def best(self, market: Market, hours: Sequence[int]) -> Candidate:
        """Returns the best of the bids that are suggested, tried in these hours."""
        asked = optimiser_of(self.optimiser, market, self.candidates, self.risk)
        found: Candidate | None = None
        while not asked.finished:
            batch = [tried(market, bid, hours, self.margin, self.optimiser == GRADIENT)
                     for bid in asked.ask()]  # fmt: skip
            asked.tell(batch)
            every = batch if found is None else [found, *batch]
            found = min(every, key=lambda it: it.rank(market, self.risk))
        assert found is not None
        return found
