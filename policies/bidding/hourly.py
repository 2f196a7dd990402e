"""Bids for jobs that run for hours: `fh` and `fes`, which are the same every hour, and `adaptive`,
which goes by the jobs that are there. docs/bidding.md says exactly how.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from policies.bidding.base import BiddingPolicy, bidding
from policies.bidding.judging import Judged, judge
from policies.bidding.known import HOUR_S, OTHERWISE, mean_w, require_types, seconds, unknown
from policies.memory import Memory, Sizes
from policies.parameters import parameter
from policies.policy import Arrays
from policies.views import Bid, Market

ZHANG = "Y. Zhang: Intelligent middleware for HPC systems, thesis, Boston University 2021, 2.8.2"


def between(least_w: float, most_w: float) -> Bid:
    """Returns the bid that moves a machine from the least to the most that it can draw."""
    return Bid((most_w + least_w) / 2.0, (most_w - least_w) / 2.0)


@bidding("fh", about="what the jobs can be moved by that there are on average", source=ZHANG)
class LongTerm(BiddingPolicy):
    """As many nodes are taken to be busy as jobs that come keep busy on average, and each of them
    to draw between the mean of what types draw under the lowest cap, and without one. As long as
    jobs are expected as often, it bids the same."""

    by_types = True

    def bid(self, market: Market) -> Bid:
        require_types(self, market)
        if unknown(market):
            return Bid(mean_w(market), 0.0)
        types = market.types
        busy = sum(it.arrivals * it.nodes * seconds(market, it.time) / HOUR_S for it in types)
        busy = min(busy, market.nodes)
        idle_w = (market.nodes - busy) * market.idle_w
        least, most = (float(np.mean([getattr(it, name) for it in types]))
                       for name in ("least_w", "most_w"))  # fmt: skip
        return between(idle_w + busy * min(least, most), idle_w + busy * most)


@bidding("adaptive", about="what the jobs can be moved by that are there", source=ZHANG)
class Adaptive(BiddingPolicy):
    """The jobs count that hold nodes and, in order of arrival, those that wait, as far as there are
    nodes for them. Each of their nodes can be moved between what it draws under the lowest cap and
    without one; those of a job that is late always draw the most."""

    by_types = True

    def bid(self, market: Market) -> Bid:
        require_types(self, market)
        jobs, types = market.jobs, market.types
        assert jobs is not None
        least = most = 0.0
        left = market.nodes
        for kind, nodes, late in zip(jobs.kind.tolist(), jobs.nodes.tolist(),
                                     jobs.degradation.tolist(), strict=True):  # fmt: skip
            if nodes > left:
                continue
            left -= nodes
            it = types[kind]
            most += nodes * it.most_w
            least += nodes * (it.most_w if late > it.threshold else min(it.least_w, it.most_w))
        idle_w = left * market.idle_w
        return between(idle_w + least, idle_w + most)


@bidding("fes", about="the cheapest of a grid of bids, each simulated over days", source=ZHANG)
class Exhaustive(BiddingPolicy):
    """Each bid of a grid is held in simulated days, with jobs that come as often as is expected.
    The cheapest of those that keep the tracking rule and the QoS of all types, each over all that
    is simulated after a warm-up, is bid in every hour from then on. Where none does, it bids the
    one that is nearest to that or, if asked to, nothing."""

    by_types = True
    tries = True
    steps: int = parameter(12, about="steps of averages, and of reserves for each, that are tried",
                           least=2, most=200)  # fmt: skip
    width: float = parameter(
        0.25, about="averages are tried up to this part off what jobs draw on average, and "
        "reserves of up to this part of each", least=1e-6, most=1.0,
    )  # fmt: skip
    hours: int = parameter(24, unit="hours", about="for how long each bid counts", least=1,
                           most=100_000)  # fmt: skip
    warmup: int = parameter(96, unit="hours", about="for how long it is held before", least=0,
                            most=100_000)  # fmt: skip
    days: int = parameter(1, about="how many such spans each bid is tried in", least=1, most=1000)
    after: int = parameter(
        0, unit="hours", about="nothing is offered, and nothing is tried, before that", least=0
    )
    otherwise: str = parameter(
        "nearest", about="what is bid where no bid keeps the rules", words=OTHERWISE
    )

    def remembers(self, sizes: Sizes) -> Arrays:
        return {"found": np.zeros(1, np.bool_), "bid": np.zeros(2)}

    def bid(self, market: Market) -> Bid:
        require_types(self, market)
        memory = market.memory
        assert memory is not None
        if memory.found[0]:
            return Bid(*memory.bid.tolist())
        if unknown(market) or market.time < self.after * market.hour:
            return Bid(mean_w(market), 0.0)
        return self._keep(memory, self.searched(market))

    def _keep(self, memory: Memory, bid: Bid) -> Bid:
        memory.found[0], memory.bid = True, [bid.average_w, bid.reserve_w]
        return bid

    def searched(self, market: Market) -> Bid:
        """Returns the best bid of the grid."""
        found, least = Bid(mean_w(market), 0.0), (math.inf, math.inf)
        for bid in self.grid(market):
            every = [*self._tried(market, bid, least[0] <= 0.0)]
            broken = math.fsum(it.violation for it in every)
            cost = float(np.mean([it.cost for it in every]))
            value = (0.0, cost) if all(it.kept for it in every) else (max(broken, 1e-9), cost)
            if value < least and (value[0] <= 0.0 or self.otherwise == "nearest"):
                found, least = bid, value
        return found

    def grid(self, market: Market) -> Iterator[Bid]:
        """Yields the bids: averages around what jobs draw on average, and for each reserves."""
        for at in range(self.steps + 1):
            average = mean_w(market) * (1.0 + self.width * (2.0 * at / self.steps - 1.0))
            for part in range(1, self.steps + 1):
                yield Bid(average, average * self.width * part / self.steps)

    def _tried(self, market: Market, bid: Bid, only_good: bool) -> Iterator[Judged]:
        """Yields what a bid came to, day by day; where only bids that keep all rules are wanted,
        up to the first in which it does not."""
        assert market.trial is not None
        for day in range(self.days):
            trial = market.trial(bid, day, give_up=only_good,
                                 span=(self.warmup + self.hours) * market.hour,
                                 since=self.warmup * market.hour)  # fmt: skip
            judged = judge(market, bid, trial)
            yield judged
            if only_good and not judged.kept:
                return
