"""The bid of AQA: a descent along the gradient of what a bid costs, with a price on late jobs.

What a bid costs is that of Zhang, Coskun et al. (AQA), eq. 24: the energy less what the reserve
earns, an estimate of what errors cost, and for each type of jobs a penalty that is nearly 0 while
few of its jobs come late. How many come late follows from theta (`policies.bidding.delays`) and
from alpha, which is fitted anew to each hour that is simulated. The gradient is that of appendix B.

Read `Problem` and `cost`, then `Descent`, which asks for simulated hours and is told how long jobs
waited in them. Powers are in watts, times in seconds, prices per kWh, costs in money of an hour
that is bid for. A **type is stable** if less of its work comes than its share of servers does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from pdes.clock import TICKS
from policies.bidding import delays
from policies.bidding.delays import Given, Numbers
from policies.views import Bid, Market

STEEP = 50.0
"""Rho, how sharply the penalty begins, which is not printed."""

HOUR_S = 3600.0


class Problem(NamedTuple):
    """What a cost depends on beside the bid. The arrays have an entry for each type of jobs."""

    rate: Numbers
    """Jobs per second."""
    seconds: Numbers
    """How long a job takes at full power."""
    nodes: Numbers
    """The nodes that it needs."""
    watts: Numbers
    """What a node draws at full power: more than an idle one."""
    longest: Numbers
    """The wait at which a job is late, in seconds; infinite where none is."""
    nodes_all: int
    """Counts the nodes of the machine."""
    idle_w: float
    """What an idle node draws."""
    spread: float
    """The standard deviation of the signal."""
    energy_price: float
    reserve_price: float
    error_price: float
    hours: float
    """How long the bid holds."""
    late: float
    """Which part of the jobs of a type may be late."""
    beta: float
    """The weight of the penalties, in money."""
    rho: float
    """How sharply a penalty begins where more jobs are late than may be."""

    @property
    def work(self) -> Numbers:
        """Returns the node-seconds of a job at full power."""
        return self.nodes * self.seconds

    @property
    def lowest_w(self) -> float:
        """Returns what the machine draws while all nodes are idle."""
        return self.nodes_all * self.idle_w

    @property
    def highest_w(self) -> float:
        """Returns what it draws if jobs that draw most are on all nodes."""
        return self.nodes_all * float(self.watts.max())

    @property
    def offered_w(self) -> float:
        """Returns what it draws on average if all work that comes is done: with an average that is
        not above, no weights make all types stable."""
        return self.lowest_w + float(self.rate * self.work @ (self.watts - self.idle_w))


class Cost(NamedTuple):
    """What a bid costs, and how that changes with it."""

    value: float
    """The cost in money."""
    d_average: float
    """Its derivative by the average, in money per watt."""
    d_reserve: float
    """Its derivative by the reserve, in money per watt."""
    d_weights: Numbers
    """Its derivative by each weight, as if each could be changed alone."""
    theta: Numbers
    """How fast the share of jobs that wait longer falls with the wait, by type, per second."""
    probability: Numbers
    """The share of jobs that are late, by type."""


def falls(problem: Problem, average_w: float, reserve_w: float, weights: Given) -> delays.Fall:
    """Returns theta of each type with a bid, and where it is reached."""
    served = delays.served(average_w, reserve_w, weights, problem.watts, problem.nodes_all,
                           problem.idle_w, problem.spread)  # fmt: skip
    return delays.fall(problem.rate, problem.work, weights, *served)


def cost(
    problem: Problem, alpha: Given, average_w: float, reserve_w: float, weights: Given
) -> Cost:
    """Returns what a bid costs, alpha of each type being known, and the gradient of that.

    The share of late jobs is 1 for a type that is not stable and 0 for one that is never late or of
    which no jobs come, and has no gradient there, nor where alpha is so large that it would exceed
    1.
    """
    alpha, weights = (np.asarray(each, float) for each in (alpha, weights))
    found = falls(problem, average_w, reserve_w, weights)
    with np.errstate(invalid="ignore", over="ignore"):
        share = alpha * np.exp(-problem.longest * found.theta)
    share = np.where(found.theta > 0, share, 1.0)
    share = np.where(np.isinf(problem.longest) | np.isinf(found.theta), 0.0, share)
    moves = (share > 0) & (share < 1)
    probability = np.minimum(share, 1.0)

    d_share = np.zeros((2 + len(weights), len(weights)))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        d_theta = _slopes(problem, found, average_w, reserve_w, weights)
        d_share[:, moves] = -(problem.longest * share * d_theta)[:, moves]
    too_late = problem.rho * (probability - problem.late)
    penalty = problem.beta * float(np.logaddexp(0.0, too_late).sum())
    logistic = np.exp(-np.logaddexp(0.0, -too_late))
    gradient = problem.beta * problem.rho * d_share @ logistic

    per_w = problem.hours / 1000
    value = per_w * (
        problem.energy_price * average_w
        - problem.reserve_price * reserve_w
        + problem.error_price * (average_w - problem.offered_w)
    )
    gradient[0] += per_w * (problem.energy_price + problem.error_price)
    gradient[1] -= per_w * problem.reserve_price
    return Cost(value + penalty, float(gradient[0]), float(gradient[1]), gradient[2:], found.theta,
                probability)  # fmt: skip


def _slopes(problem: Problem, found: delays.Fall, average_w: float, reserve_w: float,
            weights: Numbers) -> Numbers:  # fmt: skip
    """Returns the derivatives of each theta (columns) by the average, the reserve and each weight
    (rows): in a stable type of which jobs come. Elsewhere they mean nothing."""
    above = average_w - problem.lowest_w
    count = len(weights)
    # At the top theta is (n_mu/n_sigma)²/2, which does not depend on weights.
    at_top = np.zeros((2 + count, count))
    at_top[0] = 2 * found.theta / above
    at_top[1] = -2 * found.theta / reserve_w if reserve_w else 0.0

    # Elsewhere it is rate·(exp(x) - 1) at the x where that is load·x - bend·x²/2.
    work = problem.work
    more_w = float(weights @ problem.watts) - problem.idle_w
    n_mu, n_sigma = above / more_w, problem.spread * reserve_w / more_w
    x, per_weight = found.equal, n_mu / (problem.rate * work)
    load, bend = per_weight * weights, (n_sigma * weights / work) ** 2 / problem.rate
    swing = (problem.spread * weights / (more_w * work)) ** 2 / problem.rate
    d_load, d_bend = np.zeros((2, 2 + count, count))
    d_load[0] = load / above
    d_bend[1] = 2 * reserve_w * swing
    d_load[2:] = np.diag(per_weight) - np.outer(problem.watts / more_w, load)
    d_bend[2:] = np.diag(2 * bend / weights) - np.outer(2 * problem.watts / more_w, bend)
    # The slope of their difference, exp(x) - load + bend·x, is never below x·(1 + bend)/2: only
    # rounding would make it so, where the two curves hardly part.
    slope = np.maximum(np.expm1(x) - (load - 1) + bend * x, x * (1 + bend) / 2)
    elsewhere = problem.rate * np.exp(x) * x * (d_load - d_bend * x / 2) / slope
    return np.where(found.top, at_top, elsewhere)


def onto_simplex(weights: Given, least: Given | None = None) -> Numbers:
    """Returns the nearest weights that sum to 1 and of which none is below 0, or below its entry
    of `least`. Where these sum to more than 1, they are the answer, scaled to sum to 1."""
    weights = np.asarray(weights, float)
    least = np.zeros_like(weights) if least is None else np.asarray(least, float)
    rest = 1 - least.sum()
    if rest <= 0:
        return np.asarray(least / least.sum())
    # All are lowered by one number, but none below its least: the largest ones stay above it.
    over = weights - least
    sorted_over = np.sort(over)[::-1]
    lowered = (sorted_over.cumsum() - rest) / np.arange(1, len(over) + 1)
    last = np.flatnonzero(sorted_over >= lowered)[-1]
    return np.asarray(least + np.maximum(over - lowered[last], 0.0))


def problem_of(market: Market, mean_w: float) -> Problem:
    """Returns the problem of a market whose jobs have types. `mean_w` is what the machine draws on
    average as jobs come; the penalties weigh as much as that costs or, if that is more, as such a
    reserve earns."""
    second = TICKS[market.tick] * 1e-12
    types = market.types
    seconds = np.array([it.time * second for it in types])
    threshold = np.array([it.threshold for it in types])
    strict = np.isfinite(threshold)
    hours = market.hour * second / HOUR_S
    price = max(abs(market.energy_price), abs(market.reserve_price))
    return Problem(
        rate=np.array([it.arrivals / HOUR_S for it in types]),
        seconds=seconds,
        nodes=np.array([it.nodes for it in types], float),
        watts=np.array([max(it.most_w, market.idle_w + 1e-9) for it in types]),
        longest=np.where(strict, np.where(strict, threshold, 0.0) * seconds, np.inf),
        nodes_all=market.nodes,
        idle_w=market.idle_w,
        spread=market.spread,
        energy_price=market.energy_price,
        reserve_price=market.reserve_price,
        error_price=market.error_price,
        hours=hours,
        late=market.late,
        beta=price * mean_w / 1000 * hours or 1.0,
        rho=STEEP,
    )


class Descent:
    """The search of AQA: a bid is tried in a simulated hour, alpha fitted to how long jobs waited
    there, and a step made down the gradient of the cost; then the next.

    It asks for one bid at a time and is told one tail for each type:

        while not descent.finished:
            descent.tell([{name: tail_of(waits) ...} for bid in descent.ask()])

    The variables are average and reserve, as parts of `mean_w`, and the weights. It starts with
    `mean_w`, a reserve of half of what that has above all idle, and equal weights. Where a type is
    not stable its penalty has no gradient, so that a descent from there would only save energy. So
    weights stay where all types are stable, if they can be with the average at hand; so does the
    average, if the machine can draw as much, unless `stable` is False: then all that the machine
    can draw is allowed.
    """

    def __init__(
        self,
        market: Market,
        mean_w: float,
        alpha_first: float = 1.0,
        candidates: int = 200,
        step: float = 0.02,
        stable: bool = True,
    ) -> None:
        if not market.types:
            raise ValueError("market.types is empty: a descent needs types of jobs")
        self.problem = problem_of(market, mean_w)
        """What the cost depends on."""
        self.candidates = candidates
        """Counts the bids that it tries."""
        self.history: list[tuple[Bid, float]] = []
        """The bids that were tried, and their costs."""
        self._step = step
        self._names = [it.name for it in market.types]
        lowest_w, highest_w = self.problem.lowest_w, self.problem.highest_w
        enough_w = lowest_w + delays.STABLE * (self.problem.offered_w - lowest_w)
        self._range_w = min(enough_w if stable else lowest_w, highest_w), highest_w
        self._unit_w = mean_w if mean_w > 0 else highest_w
        self._alpha = np.full(len(self._names), float(alpha_first))
        self._move(mean_w, (mean_w - lowest_w) / 2, np.full(len(self._names), 1.0))

    @property
    def finished(self) -> bool:
        """Says whether all bids have been tried."""
        return len(self.history) >= self.candidates

    @property
    def alpha(self) -> Mapping[str, float]:
        """Returns alpha by type, as it was fitted last."""
        return dict(zip(self._names, self._alpha.tolist(), strict=True))

    def ask(self) -> list[Bid]:
        """Returns the bid to try next."""
        weights = dict(zip(self._names, self._weights.tolist(), strict=True))
        return [Bid(self._average_w, self._reserve_w, weights)]

    def tell(self, tails: Sequence[Mapping[str, delays.Tail | None]]) -> None:
        """Takes how long the jobs of each type waited with the bid that was asked for. Where that
        is None, or the type is left out, its last alpha stands."""
        (found,) = tails
        at = self._average_w, self._reserve_w, self._weights
        for index, theta in enumerate(falls(self.problem, *at).theta.tolist()):
            tail = found.get(self._names[index])
            if tail is not None and np.isfinite(theta):
                self._alpha[index] = tail.alpha(theta)
        it = cost(self.problem, self._alpha, *at)
        self.history.append((self.ask()[0], it.value))

        unit = self._unit_w
        slope = np.array([it.d_average * unit, it.d_reserve * unit, *it.d_weights])
        slope /= self.problem.beta
        down = self._step / np.sqrt(len(self.history)) * slope / max(1.0, np.linalg.norm(slope))
        self._move(self._average_w - unit * down[0], self._reserve_w - unit * down[1],
                   self._weights - down[2:])  # fmt: skip

    def _move(self, average_w: float, reserve_w: float, weights: Numbers) -> None:
        """Goes to the nearest bid that is allowed."""
        self._average_w = float(np.clip(average_w, *self._range_w))
        self._reserve_w = float(np.clip(reserve_w, 0.0, self._average_w))
        self._weights = stable_weights(self.problem, self._average_w, weights)


def stable_weights(problem: Problem, average_w: float, weights: Numbers) -> Numbers:
    """Returns weights that sum to 1, near those given, with which all types are stable; where none
    do, weights in proportion to the work that comes.

    The weight that a type needs grows with what a node draws more because it works, D, and that
    depends on the weights. D is bracketed: the least weights for a D too small lead to a larger
    one, and those for the largest D there is do not.
    """
    arriving = problem.rate * problem.work
    above = average_w - problem.lowest_w
    found = onto_simplex(weights)
    if not arriving.any():
        return found
    if above <= 0:
        return np.asarray(arriving / arriving.sum())
    per_watt = delays.STABLE * arriving / above

    def more_w(weights: Numbers) -> float:
        return float(weights @ problem.watts) - problem.idle_w

    if np.all(found >= per_watt * more_w(found)):
        return found
    low, high = float(problem.watts.min()) - problem.idle_w, problem.watts.max() - problem.idle_w
    for _ in range(delays.HALVINGS):
        middle = (low + high) / 2
        enough = more_w(onto_simplex(weights, per_watt * middle)) <= middle
        low, high = (low, middle) if enough else (middle, high)
    return onto_simplex(weights, per_watt * high)
