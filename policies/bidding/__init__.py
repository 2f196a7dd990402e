"""How much power the machine offers to the grid: average and reserve for the next hour.

Read `base`, the contract; docs/policies.md has a worked example.
"""

from __future__ import annotations

from policies.bidding.base import BIDDINGS, Bid, BiddingPolicy, bidding
from policies.views import Market

__all__ = ["BIDDINGS", "Bid", "BiddingPolicy", "Market", "bidding"]
