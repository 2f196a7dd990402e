"""A machine that takes part in a market, with policies that follow its target and that bid."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from clusters import trace_of
from naive import Job

from odonata.cluster.model import Cluster
from odonata.jobs.market import MarketSettings
from odonata.jobs.power import Power
from odonata.traces.trace import Trace
from pdes.driver import Result, run
from pdes.transport import Serial
from policies.bidding import BIDDINGS, Bid, BiddingPolicy, bidding
from policies.power import POWERS, Caps, PowerPolicy, power
from policies.views import Market

IDLE, LEAST, MOST = 100.0, 162.0, 290.0
SIGNAL = (("0 s", 0.0), ("70 s", 1.0), ("110 s", -1.0), ("130 s", 0.25), ("290 s", -0.5))
MINUTE = 60 * 10**6
BIDS: list[tuple[Market, Bid]] = []
"""What bidding policies of tests were asked, and answered, in order."""


class Follow(PowerPolicy):
    """Gives all busy nodes one cap, by which the machine draws its target if it can."""

    def caps(self, view: Any) -> Caps:
        if view.target is None or not view.busy:
            return Caps()
        each_w = (view.target.watts - view.free * view.idle_w) / view.busy
        return Caps(np.full(len(view.desk.running), max(0.0, each_w)))


class Middle(BiddingPolicy):
    """Offers what the jobs that run can follow."""

    def remembers(self, sizes: Any) -> dict[str, Any]:
        return {"bids": np.zeros(1, np.int64)}

    def bid(self, market: Market) -> Bid:
        market.memory.bids += 1  # type: ignore[union-attr]
        busy = sum(job.configuration.nodes for job in market.running)
        idle_w = (market.nodes - busy) * IDLE
        found = Bid(idle_w + busy * (LEAST + MOST) / 2, busy * (MOST - LEAST) / 2, {"": 0.5})
        BIDS.append((market, found))
        return found


class Tries(Middle):
    """Bids the same, after it has tried half of it."""

    def bid(self, market: Market) -> Bid:
        found = super().bid(market)
        assert market.trial is not None
        TRIED.append(market.trial(found._replace(reserve_w=found.reserve_w / 2)))
        return found


TRIED: list[Any] = []


@pytest.fixture(autouse=True)
def market_policies() -> Iterator[None]:
    power("follow", about="a test's", source="ours")(Follow)
    for name, written in {"middle": Middle, "tries": Tries}.items():
        bidding(name, about="a test's", source="ours")(written)
    BIDS.clear()
    TRIED.clear()
    yield
    del POWERS["follow"], BIDDINGS["middle"], BIDDINGS["tries"]


def model_of(jobs: list[Job] | Trace, bids: str = "middle", nodes: int = 10, **how: Any) -> Cluster:
    """Hours are of two minutes here, and power is measured every 10 s."""
    settings = how.pop("settings", {})
    supply = Power("follow", interval_ps=10**13, demand="constant", **how.pop("supply", {}))
    named = {"bidding": bids, "signal": SIGNAL, "hour_ps": 120 * 10**12}
    market = MarketSettings(**named | settings)
    trace = jobs if isinstance(jobs, Trace) else trace_of(jobs)
    return Cluster(trace, nodes, power=supply, market=market, **how)


def logs_of(model: Cluster, go: Callable[..., Result] = run) -> tuple[dict[str, list[Any]], Result]:
    """Runs a model to its end. Returns the rows of its logs, each with its time, and the result."""
    found: dict[str, list[Any]] = {}

    def take(time: int, agent: int, rows: Any) -> None:
        for name, values in rows:
            columns = getattr(values, "columns", None)
            times = [time] if columns is None else values.times.tolist()
            each = [values] if columns is None else zip(*columns, strict=True)
            found.setdefault(name, []).extend(zip(times, each, strict=True))

    result = go(model, None, log=take, show_compiling=False, transport=Serial())
    return found, result
