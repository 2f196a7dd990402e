"""What a bidding policy makes of what it knows: what the machine draws on average and at most, and
whether anything is known of the jobs that come."""

from __future__ import annotations

import numpy as np

from pdes.clock import TICKS
from pdes.errors import Fault
from policies.bidding.base import BiddingPolicy
from policies.views import Market

OTHERWISE = ("nearest", "nothing")
"""What may be bid where no bid keeps the rules."""
HOUR_S = 3600.0


def mean_w(market: Market) -> float:
    """Returns what the machine draws on average in the hour, if nobody is capped: as jobs come on
    average or, where more are there now than that keeps busy, with these."""
    parts = [it.arrivals * it.nodes * seconds(market, it.time) / HOUR_S for it in market.types]
    there = [it.present for it in market.types]
    parts = parts if sum(parts) >= sum(there) else there
    if not sum(parts):
        return market.nodes * market.idle_w
    watts = np.average([it.most_w for it in market.types], weights=parts)
    busy = min(sum(parts), market.nodes)
    return float(busy * watts + (market.nodes - busy) * market.idle_w)


def most_w(market: Market) -> float:
    """Returns what the machine draws at most."""
    return market.nodes * max((it.most_w for it in market.types), default=market.most_w)


def unknown(market: Market) -> bool:
    """Tells whether nobody knows which jobs come: a trace has had no time to show it."""
    return market.time == 0 and not any(it.arrivals for it in market.types)


def seconds(market: Market, time: float) -> float:
    """Returns ticks as seconds."""
    return time * (TICKS[market.tick] * 1e-12)


def require_types(policy: BiddingPolicy, market: Market) -> None:
    """Raise a Fault where nothing can be tried with jobs of types."""
    if not market.types or market.trial is None:
        raise Fault(f"bidding {policy.name}: it goes by types of jobs, and there are none: set "
                    "power.types, and a power policy that regulates by type")  # fmt: skip
