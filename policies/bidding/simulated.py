"""Bids for a machine whose jobs have types: by a formula, by trying a grid of bids, and by what is
known of delays where nodes are divided by weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from policies.bidding import delays
from policies.bidding.base import BiddingPolicy, bidding
from policies.bidding.judging import lateness, worth
from policies.bidding.known import (
    HOUR_S,
    OTHERWISE,
    mean_w,
    most_w,
    require_types,
    seconds,
    unknown,
)
from policies.parameters import parameter
from policies.views import Bid, Market, Trial

THESIS = "Y. Zhang: Intelligent middleware for HPC systems, thesis, Boston University 2021"
RULES = ("quality", "cost")
LEAST_RESERVE = 1e-3
"""The least reserve that counts as one, as a part of the range of powers."""


@bidding("tracking-only", about="what the machine draws on average, and all that it can move",
         source=f"{THESIS}, 2.5.1")  # fmt: skip
class MeanPower(BiddingPolicy):
    """The average is what the machine would draw as jobs come or, if that is more, with those that
    are there, if nobody had a cap. The reserve goes from there to all idle, or to all busy with the
    jobs that draw most, whichever is nearer."""

    by_types = True

    def bid(self, market: Market) -> Bid:
        require_types(self, market)
        average = mean_w(market)
        if unknown(market):
            return Bid(average, 0.0)
        room = min(average - market.nodes * market.idle_w, most_w(market) - average, average)
        return Bid(average, max(0.0, room))


@bidding("energy-qare", about="the best of a grid of bids that are tried in simulated hours",
         source=f"{THESIS}, 2.5.1 and 2.7")  # fmt: skip
class Grid(BiddingPolicy):
    """A bid counts if it keeps the tracking rule in all hours in which it is tried, and is cheaper
    than the same work without an offer. Of those it bids the one with the least degradation of
    jobs, or the cheapest. Where none counts, it bids the one that was off its target for the least
    part of the time, if that is cheaper than no offer; or, if asked to, nothing."""

    by_types = True
    tries = True
    rule: str = parameter("quality", about="what is least", words=RULES)
    hours: int = parameter(3, about="hours in which each bid is tried", least=1, most=1000)
    steps: int = parameter(12, about="averages, and reserves for each, that are tried", least=2,
                           most=200)  # fmt: skip

    otherwise: str = parameter(
        "nearest", about="what is bid where no bid keeps the rule", words=OTHERWISE
    )

    def bid(self, market: Market) -> Bid:
        require_types(self, market)
        if unknown(market):
            return Bid(mean_w(market), 0.0)
        found, least = None, np.inf
        for bid in self._grid(market):
            trials = list(self._tried(market, bid))
            if len(trials) < self.hours or trials[-1].bad(market.limit) >= market.share:
                continue
            it = worth(market, bid, trials)
            value = it.cost
            if self.rule == "quality":
                value = float(np.mean([lateness(market, trial) for trial in trials]))
            if value < least and it.cost < it.nothing:
                found, least = bid, value
        return self._nearest(market) if found is None else found

    def _nearest(self, market: Market) -> Bid:
        """Returns the bid that is off its target for the least part of the time, of those that are
        cheaper than none."""
        assert market.trial is not None
        found, least = Bid(mean_w(market), 0.0), np.inf
        if self.otherwise == "nothing":
            return found
        for bid in self._grid(market):
            it = worth(market, bid, [market.trial(bid, hour) for hour in range(self.hours)])
            if it.bad < least and it.cost < it.nothing:
                found, least = bid, it.bad
        return found

    def _grid(self, market: Market) -> Iterator[Bid]:
        low, high = market.nodes * market.idle_w, most_w(market)
        for at in range(1, self.steps):
            average = low + (high - low) * at / self.steps
            room = min(average - low, high - average, average)
            for part in range(1, self.steps + 1):
                yield Bid(average, room * part / self.steps)

    def _tried(self, market: Market, bid: Bid) -> Iterator[Trial]:
        assert market.trial is not None
        for hour in range(self.hours):
            trial = market.trial(bid, hour, give_up=True)
            yield trial
            if not trial.kept_on or trial.bad(market.limit) >= market.share:
                return


@bidding("qosg", about="the cheapest average, reserve and weights by which few jobs come late",
         source=f"{THESIS}, 2.4.5")  # fmt: skip
class Guaranteed(BiddingPolicy):
    """For each average it takes the largest reserve, with weights, by which the share of jobs that
    wait too long falls fast enough with the wait. An hour is simulated with each for its error, and
    the cheapest is bid: of those that keep the tracking rule, if any does. Where none is cheaper
    than the same work without an offer, nothing is offered."""

    by_types = True
    tries = True
    stated: bool = parameter(
        True, about="take how fast it has to fall from the table of types, where that has it"
    )
    step: float = parameter(
        0.01, about="between averages, of the way from all idle to all busy", least=1e-4, most=0.5
    )
    hours: int = parameter(1, about="hours in which each bid is tried", least=1, most=1000)

    def bid(self, market: Market) -> Bid:
        require_types(self, market)
        kinds = self._kinds(market)
        found, least = Bid(mean_w(market), 0.0), (True, np.inf)
        if unknown(market):
            return found
        highest = float(kinds.watts.max())
        for average in delays.averages(market.nodes, market.idle_w, highest, self.step).tolist():
            offer = delays.largest_reserve(average, kinds, market.nodes, market.idle_w,
                                           market.spread)  # fmt: skip
            room = market.nodes * (highest - market.idle_w)
            if offer is None or offer.reserve_w < LEAST_RESERVE * room:
                continue
            bid = Bid(
                average, offer.reserve_w, self._weights(market, offer.shares.weights.tolist())
            )
            assert market.trial is not None
            it = worth(market, bid, [market.trial(bid, hour) for hour in range(self.hours)])
            value = it.broken > 0.0, it.cost
            if value < least and it.cost < it.nothing:
                found, least = bid, value
        return found

    def _weights(self, market: Market, weights: Sequence[float]) -> dict[str, float]:
        names = (each.name for each in market.types)
        return dict(zip(names, map(float, weights), strict=True))

    def _kinds(self, market: Market) -> delays.Kinds:
        """Returns the types as the conditions on delays need them."""
        types = market.types
        rate = np.array([it.arrivals / HOUR_S for it in types])
        times_s = np.array([seconds(market, it.time) for it in types])
        watts = np.array([max(it.most_w, market.idle_w + 1e-9) for it in types])
        work = times_s * np.array([it.nodes for it in types])
        known = [it.delay_rate if self.stated else None for it in types]
        rates = np.array([np.nan if it is None else it for it in known])
        kinds = delays.Kinds(rate, work, watts, np.nan_to_num(rates))
        if np.isnan(rates).any():
            fitted = self._fitted(market, kinds, times_s)
            kinds = kinds._replace(delay_rate=np.where(np.isnan(rates), fitted, rates))
        return kinds

    def _fitted(
        self, market: Market, kinds: delays.Kinds, times_s: delays.Numbers
    ) -> delays.Numbers:
        """Returns how fast the share of jobs that wait has to fall, from how they wait in an hour
        in which an average well above what jobs need is bid, and half of the reserve that it has
        room for."""
        low, high = market.nodes * market.idle_w, most_w(market)
        average = min(low + 1.3 * (mean_w(market) - low), low + 0.9 * (high - low))
        reserve = 0.5 * min(average - low, high - average)
        shares = kinds.rate * kinds.work
        weights = shares / shares.sum() if shares.sum() else np.full(len(shares), 1 / len(shares))
        served = delays.served(average, reserve, weights, kinds.watts, market.nodes, market.idle_w,
                               market.spread)  # fmt: skip
        theta = delays.theta_star(kinds.rate, kinds.work, weights, *served)
        assert market.trial is not None
        trial = market.trial(Bid(average, reserve, self._weights(market, weights.tolist())))
        found = []
        for at, it in enumerate(market.types):
            waits = trial.waits.get(it.name, np.zeros(0))
            alpha = None
            if np.isfinite(theta[at]) and len(waits):
                alpha = delays.fit_alpha(waits, float(theta[at]))
            least = 0.0
            if it.threshold < np.inf:
                alpha = 1.0 if alpha is None else alpha
                least = float(delays.delay_rate(alpha, market.late, it.threshold, times_s[at]))
            found.append(max(0.0, least))
        return np.array(found)
