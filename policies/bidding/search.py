"""A search for a bid: average, reserve and weights that cost least while an hour keeps its rules.

An **optimiser** is asked for bids and told what they came to, batch by batch; who tries them, and
on how many processes, it does not know, so that it suggests the same whatever that is. `Search` is
CMA-ES (N. Hansen: The CMA evolution strategy, a tutorial, 2016), of the library cmaes; `descent`
has the other one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from policies.bidding.descent import Descent
from policies.bidding.judging import Judged
from policies.bidding.known import HOUR_S, mean_w, most_w, seconds
from policies.views import Bid, Market

GRADIENT = "gradient"
OPTIMISERS = ("search", GRADIENT)
MOST_STEPS = 200
"""Steps of the descent, as printed."""
FIRST_AVERAGE = 1.1
"""The average that the search begins with, as a part of what the machine draws on average."""
FIRST_STEP = 0.15
"""The standard deviation of the first bids that are tried: of averages and reserves as a part of
what the machine draws on average, of logarithms of weights by SCALE times as much."""
SCALE = 10.0
WEIGHTS = 5.0
"""The logarithm of a weight goes from minus this to this, before all are scaled to a sum of 1."""
LEAST_RESERVE = 0.01
"""The least reserve, as a part of what the machine draws on average."""
BROKEN, MISSED = 1.0, 3.0
"""What the value of a bid grows by: where an hour is broken, and by its violation times this. One
is what the machine's average power costs."""


class Candidate(NamedTuple):
    """A bid that was tried, and what it came to in each hour."""

    bid: Bid
    judged: tuple[Judged, ...]

    @property
    def cost(self) -> float:
        """Returns what an hour costs on average."""
        return float(np.mean([it.cost for it in self.judged]))

    @property
    def nothing(self) -> float:
        """Returns what the same work would cost if nothing were offered."""
        return float(np.mean([it.nothing for it in self.judged]))

    def broken(self, risk: float = 0.0) -> Sequence[float]:
        """Returns the violations of the hours that are broken, from small to large, but for as many
        of the largest as may be broken at a risk."""
        some = sorted(it.violation for it in self.judged if it.violation > 0.0)
        return some[: max(0, len(some) - math.floor(risk * len(self.judged) + 1e-9))]

    def value(self, market: Market, risk: float = 0.0) -> float:
        """Returns what is to be least: the cost, of which one is that of the average power, and the
        violations."""
        some = self.broken(risk)
        missed = (BROKEN * len(some) + MISSED * sum(some)) / len(self.judged)
        return self.cost / scale_of(market) + missed

    def rank(self, market: Market, risk: float = 0.0) -> tuple[bool, float]:
        """Returns what the best bid has least: kept hours first."""
        return bool(self.broken(risk)), self.value(market, risk)


def scale_of(market: Market) -> float:
    """Returns what the power costs in an hour that the machine draws on average, or what is earned
    by as much reserve, if that is more."""
    price = max(abs(market.energy_price), abs(market.reserve_price))
    found = price * mean_w(market) / 1e3 * seconds(market, market.hour) / HOUR_S
    return found or 1.0


class Optimiser(Protocol):
    """Suggests bids, batch by batch."""

    @property
    def finished(self) -> bool:
        """Tells whether no other bids are wanted."""

    def ask(self) -> Sequence[Bid]:
        """Returns the next bids to try."""

    def tell(self, tried: Sequence[Candidate]) -> None:
        """Take notice of what these bids came to."""


DIGITS = 9
"""The digits that points are rounded to: libraries of linear algebra differ in the last ones."""


def _cma(mean: Any, sigma: float, bounds: Any, seed: int) -> Any:
    """Returns CMA-ES whose points do not go by the basis in which the library of linear algebra
    gives eigenvectors: the square root of the covariance is the symmetric one."""
    from cmaes import CMA

    class Steady(CMA):  # type: ignore[misc]
        def _sample_solution(self) -> Any:
            basis, roots = self._eigen_decomposition()
            drawn = (basis * roots) @ (basis.T @ self._rng.randn(self._n_dim))
            return np.round(self._mean + self._sigma * drawn, DIGITS)

    return Steady(mean=mean, sigma=sigma, bounds=bounds, seed=seed)


class Search:
    """CMA-ES over the average, the reserve and the logarithms of the weights."""

    def __init__(self, market: Market, candidates: int, risk: float = 0.0, seed: int = 1) -> None:
        self._market, self._risk, self._left = market, risk, candidates
        self._unit_w = mean_w(market) or most_w(market)
        low, high = market.nodes * market.idle_w, most_w(market)
        self._names = [it.name for it in market.types]
        average = min(FIRST_AVERAGE * self._unit_w, (self._unit_w + high) / 2.0)
        reserve = max(2.0 * LEAST_RESERVE * self._unit_w, min(average - low, high - average) / 2.0)
        first = np.array([average / self._unit_w, reserve / self._unit_w])
        bounds = [[low / self._unit_w, high / self._unit_w],
                  [LEAST_RESERVE, high / self._unit_w]]  # fmt: skip
        count = len(self._names) if len(self._names) > 1 else 0
        bounds += [[-WEIGHTS / SCALE, WEIGHTS / SCALE]] * count
        first = np.append(first, np.zeros(count))
        limits = np.array(bounds)
        first = np.clip(first, limits[:, 0], limits[:, 1])
        self._cma = _cma(first, FIRST_STEP, limits, seed)
        self._points: list[Any] = []

    @property
    def finished(self) -> bool:
        return self._left <= 0 or self._cma.should_stop()

    def ask(self) -> Sequence[Bid]:
        count = self._cma.population_size
        self._points = [self._cma.ask() for _ in range(count)]
        return [self._bid(point) for point in self._points]

    def tell(self, tried: Sequence[Candidate]) -> None:
        values = [each.value(self._market, self._risk) for each in tried]
        self._cma.tell(list(zip(self._points, values, strict=True)))
        self._left -= len(tried)

    def _bid(self, point: Any) -> Bid:
        average, reserve = (self._unit_w * float(it) for it in point[:2])
        logs = SCALE * point[2:] if len(point) > 2 else np.zeros(len(self._names))
        parts = np.exp(logs - logs.max()) if len(logs) else logs
        return Bid(average, min(reserve, average), weights_of(self._names, parts))


def weights_of(names: Sequence[str], parts: Any) -> Mapping[str, float]:
    """Returns parts as weights that sum to 1."""
    total = float(np.sum(parts))
    return {name: float(part) / total for name, part in zip(names, parts, strict=True)}


class Descended:
    """The descent, told of one hour for each bid."""

    def __init__(self, market: Market, candidates: int) -> None:
        self._descent = Descent(market, mean_w(market), candidates=min(candidates, MOST_STEPS))

    @property
    def finished(self) -> bool:
        return self._descent.finished

    def ask(self) -> Sequence[Bid]:
        return self._descent.ask()

    def tell(self, tried: Sequence[Candidate]) -> None:
        self._descent.tell([each.judged[0].tails for each in tried])


def optimiser_of(
    name: str, market: Market, candidates: int, risk: float = 0.0, seed: int = 1
) -> Optimiser:
    """Returns an optimiser by its name."""
    if name == GRADIENT:
        return Descended(market, candidates)
    return Search(market, candidates, risk, seed)
