"""Bids that are the same every hour."""

from __future__ import annotations

from policies.bidding.base import BiddingPolicy, bidding
from policies.parameters import parameter
from policies.views import Bid, Market


@bidding("fixed", about="the same average and reserve every hour", source="ours")
class Fixed(BiddingPolicy):
    """Whoever offers nothing bids a reserve of 0 W."""

    average: float = parameter(0.0, about="the watts of the whole machine, on average", least=0)
    reserve: float = parameter(
        0.0, about="the watts by which the signal may move that to either side", least=0
    )

    def bid(self, market: Market) -> Bid:
        return Bid(self.average, self.reserve)
