"""How much power the machine offers to the grid: average and reserve for the next hour.

Read `base`, the contract; `simple`, the bids that are the same every hour; `hourly`, those for jobs
that run for hours; `simulated`, those that are tried in simulated hours, and `delays`, how long
jobs wait; docs/policies.md has a worked example.
"""

from __future__ import annotations

from policies.bidding import aqa as aqa
from policies.bidding import hourly as hourly
from policies.bidding import simple as simple
from policies.bidding import simulated as simulated
from policies.bidding.base import BIDDINGS, BiddingPolicy, bidding
from policies.views import Bid, Market, Trial

__all__ = ["BIDDINGS", "Bid", "BiddingPolicy", "Market", "Trial", "bidding"]
