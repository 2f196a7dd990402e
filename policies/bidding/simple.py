"""Bids that are the same every hour."""

from __future__ import annotations

import math
from collections.abc import Sequence

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

    weights: str = parameter(
        "", about="shares of types, where the power policy divides nodes by them: fs=0.128 sc=0.212"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._weights()
        if self.reserve > self.average:
            raise Refused(f"reserve = {self.reserve:g}: at most average, {self.average:g}")

    @property
    def named(self) -> Sequence[str]:
        return [*self._weights()]

    def bid(self, market: Market) -> Bid:
        return Bid(self.average, self.reserve, self._weights())

    def _weights(self) -> dict[str, float]:
        """Returns the shares, by type."""
        found = {}
        for part in self.weights.replace(",", " ").split():
            name, equals, share = part.rpartition("=")
            try:
                found[name] = float(share)
            except ValueError:
                found[name] = -1.0
            if not (equals and name and 0.0 <= found[name] < math.inf):
                raise Refused(f"weights = {self.weights}: names and shares of at least 0, as "
                              "fs=0.128 sc=0.212")  # fmt: skip
        return found
