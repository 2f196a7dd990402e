"""Bids that are the same every hour."""

from __future__ import annotations

from pdes.errors import Refused
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

    def __post_init__(self) -> None:
        if self.reserve > self.average:
            raise Refused(f"reserve = {self.reserve:g}: at most average, {self.average:g}")

    def bid(self, market: Market) -> Bid:
        return Bid(self.average, self.reserve)
