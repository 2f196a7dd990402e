"""The descent of AQA: its cost, the gradient of that, its projections, and its steps."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize, minimize_scalar

from policies.bidding.delays import STABLE, Tail, fit_alpha, tail_of
from policies.bidding.descent import (
    Descent,
    Problem,
    cost,
    falls,
    onto_simplex,
    problem_of,
    stable_weights,
)
from policies.views import JobKind, Market

Numbers = npt.NDArray[np.float64]
Point = tuple[float, float, Numbers]

TINY = 1e-40
"""The complex step."""


def expm1(z: complex) -> complex:
    return 2 * cmath.exp(z / 2) * cmath.sinh(z / 2)


def parts(problem: Problem, average: Any, reserve: Any, weights: Any) -> tuple[Any, Any]:
    """Returns n_mu and n_sigma, eq. 21 and 22, of real or complex numbers."""
    more = sum(w * p for w, p in zip(weights, problem.watts.tolist(), strict=True)) - problem.idle_w
    return ((average - problem.idle_w * problem.nodes_all) / more,
            problem.spread * reserve / more)  # fmt: skip


def real_root(rate: float, work: float, weight: float, n_mu: float, n_sigma: float) -> float:
    """Returns where arriving work and service are equal, beside 0, by bisection from where their
    difference is least."""

    def difference(t: float) -> float:
        return rate * math.expm1(work * t) - n_mu * weight * t + (n_sigma * weight * t) ** 2 / 2

    def slope(t: float) -> float:
        return rate * work * math.exp(work * t) - n_mu * weight + (n_sigma * weight) ** 2 * t

    least = brentq(slope, 0.0, math.log(n_mu * weight / (rate * work)) / work, rtol=1e-3)
    high = least
    while difference(high) <= 0:
        high *= 2
    return float(brentq(difference, least, high, xtol=1e-300))


def regime(problem: Problem, index: int, point: Point) -> str:
    """Says whether a type is unstable, at the top of the parabola (I) or not (II), eq. 40, 41."""
    n_mu, n_sigma = map(float, parts(problem, *point))
    rate, work = float(problem.rate[index]), float(problem.nodes[index] * problem.seconds[index])
    weight = float(point[2][index])
    if n_mu * weight <= rate * work:
        return "unstable"
    if not n_sigma:
        return "II"
    enough = n_mu * work / (n_sigma**2 * math.log1p(n_mu**2 / (2 * n_sigma**2 * rate)))
    return "I" if weight > enough else "II"


class Twin:
    """The cost, eq. 24 and 29, once more: of complex numbers, type by type."""

    def __init__(self, problem: Problem, alpha: Numbers, point: Point) -> None:
        self.problem, self.alpha = problem, alpha
        self.work = (problem.nodes * problem.seconds).tolist()
        self.kinds = [regime(problem, index, point) for index in range(len(problem.rate))]
        n_mu, n_sigma = map(float, parts(problem, *point))
        self.roots = [
            real_root(float(problem.rate[at]), self.work[at], float(point[2][at]), n_mu, n_sigma)
            if kind == "II" else 0.0
            for at, kind in enumerate(self.kinds)
        ]  # fmt: skip

    def theta(self, index: int, weight: complex, n_mu: complex, n_sigma: complex) -> complex:
        if self.kinds[index] == "unstable":
            return 0.0
        if self.kinds[index] == "I":
            return n_mu**2 / (2 * n_sigma**2)
        rate, work, at = float(self.problem.rate[index]), self.work[index], self.roots[index]
        t: complex = at
        swing = (n_sigma * weight) ** 2 * t
        off = rate * expm1(work * t) - n_mu * weight * t + swing * t / 2
        t -= off / (rate * work * cmath.exp(work * t) - n_mu * weight + swing)
        return rate * expm1(work * t)

    def value(self, average: complex, reserve: complex, weights: list[complex]) -> complex:
        problem = self.problem
        n_mu, n_sigma = parts(problem, average, reserve, weights)
        useful = problem.idle_w * problem.nodes_all
        penalty: complex = 0.0
        for index, weight in enumerate(weights):
            rate, watts = float(problem.rate[index]), float(problem.watts[index])
            useful += rate * self.work[index] * (watts - problem.idle_w)
            theta = self.theta(index, weight, n_mu, n_sigma)
            share = float(self.alpha[index]) * cmath.exp(-float(problem.longest[index]) * theta)
            if self.kinds[index] == "unstable" or share.real >= 1:
                share = 1.0
            penalty += cmath.log(1 + cmath.exp(problem.rho * (share - problem.late)))
        money = (
            problem.energy_price * average
            - problem.reserve_price * reserve
            + problem.error_price * (average - useful)
        )
        return money / 1000 * problem.hours + problem.beta * penalty

    def gradient(self, average: float, reserve: float, weights: Numbers) -> Numbers:
        at = [average, reserve, *weights.tolist()]
        found = []
        for index in range(len(at)):
            moved: list[complex] = list(at)
            moved[index] += TINY * 1j
            found.append(self.value(moved[0], moved[1], moved[2:]).imag / TINY)
        return np.array(found)


def some_problem(rng: np.random.Generator, count: int = 3) -> tuple[Problem, Numbers, Point]:
    """Returns a problem, alphas and a bid. Most types are stable, with anything from few to all of
    their jobs late; in a third of the problems there are no prices, so that all that the bid costs
    is penalties."""
    nodes_all, idle_w = int(rng.integers(50, 5000)), rng.uniform(20, 150)
    weights = rng.dirichlet(np.full(count, 3.0))
    watts = idle_w + rng.uniform(20, 300, count)
    high = idle_w * nodes_all + rng.uniform(0.1, 0.9) * nodes_all * (weights @ watts - idle_w)
    spread, ratio = rng.uniform(0.1, 0.6), 10 ** rng.uniform(-2, 1)  # of n_sigma to n_mu
    reserve = ratio * (high - idle_w * nodes_all) / spread
    nodes, seconds = rng.integers(1, 17, count).astype(float), np.exp(rng.uniform(1, 7, count))
    prices = rng.uniform(0.01, 0.5, 3) * (rng.random() < 2 / 3)
    problem = Problem(np.zeros(count), seconds, nodes, watts, np.ones(count), nodes_all, idle_w,
                      spread, *prices.tolist(), rng.uniform(0.1, 2.0), 0.1,
                      10.0 ** rng.uniform(-2, 2), rng.choice([5.0, 50.0]))  # fmt: skip
    load = np.where(rng.random(count) < 0.1, 0.9, 1 + 10 ** rng.uniform(-2, 1, count))
    n_mu = parts(problem, high, reserve, weights)[0]
    problem = problem._replace(rate=n_mu * weights / (nodes * seconds * load))
    alpha = np.exp(rng.uniform(-2, 3, count))
    # Theta, roughly: where exp(x) - 1 is load·x - bend·x²/2, or at the top of the parabola.
    bend = (ratio * load) ** 2 * problem.rate
    x = np.minimum(2 * np.log(load), 2 * (load - 1) / (1 + bend))
    theta = np.minimum(problem.rate * np.expm1(x), 1 / (2 * ratio**2))
    wanted = np.log(alpha) + 10 ** rng.uniform(-2, 1, count)  # what makes exp(-0.01 ... -10) late
    longest = np.where(theta > 0, np.maximum(wanted, 0.05) / np.maximum(theta, 1e-300), 100.0)
    return problem._replace(longest=longest), alpha, (float(high), float(reserve), weights)


def test_the_gradient_is_that_of_a_complex_step() -> None:
    rng = np.random.default_rng(11)
    counts = {"unstable": 0, "I": 0, "II": 0}
    moving = dict(counts)
    worst, worst_value = 0.0, 0.0
    for _ in range(2000):
        problem, alpha, point = some_problem(rng, 2)
        twin = Twin(problem, alpha, point)
        found = cost(problem, alpha, *point)
        expected = twin.gradient(*point)
        gradient = np.array([found.d_average, found.d_reserve, *found.d_weights])
        # Where the top of the parabola is reached, the twin's derivatives by weights are what
        # rounding leaves of 0: below 1e-12 of the penalties' weight for all of a variable.
        size = problem.beta / np.array([point[0], point[1], *np.ones(len(alpha))])
        off = np.abs(gradient - expected) / np.maximum(np.abs(expected), 1e-3 * size)
        if {*twin.kinds} <= {"I", "unstable"}:
            assert not found.d_weights.any()
        worst = max(worst, float(off.max()))
        value = twin.value(point[0], point[1], point[2].tolist()).real
        worst_value = max(worst_value, abs(found.value - value) / max(abs(value), problem.beta))
        for index, kind in enumerate(twin.kinds):
            counts[kind] += 1
            moving[kind] += bool(0 < found.probability[index] < 1)
    print(f"types by regime: {counts}, of which some jobs but not all are late: {moving}")
    print(f"worst relative error of the gradient: {worst:.1e}, of the cost: {worst_value:.1e}")
    assert worst < 1e-9
    assert worst_value < 1e-11
    assert min(moving["I"], moving["II"], counts["unstable"]) >= 200
    assert moving["unstable"] == 0


def test_theta_is_the_supremum_that_it_is_defined_by() -> None:
    rng = np.random.default_rng(12)
    kinds, worst = [], 0.0
    for _ in range(110):
        problem, _, point = some_problem(rng)
        n_mu, n_sigma = map(float, parts(problem, *point))
        found = falls(problem, *point).theta
        for index in range(3):
            rate, weight = float(problem.rate[index]), float(point[2][index])
            work = float(problem.nodes[index] * problem.seconds[index])
            expected = supremum(rate, work, weight, n_mu, n_sigma)
            worst = max(worst, abs(found[index] - expected) / max(expected, 1e-30))
            kinds.append(regime(problem, index, point))
    print(f"worst relative error of theta: {worst:.1e}, regimes {[*map(kinds.count, set(kinds))]}")
    assert worst < 1e-6
    assert min(kinds.count(kind) for kind in ("unstable", "I", "II")) >= 20


def supremum(rate: float, work: float, weight: float, n_mu: float, n_sigma: float) -> float:
    """Returns the largest value of the parabola on a grid where it exceeds what arrives, and on
    finer grids around the best, twice."""
    low, high = 0.0, 2 * math.log(max(n_mu * weight / (rate * work), 1.001)) / work
    best = 0.0
    for _ in range(3):
        t = np.linspace(low, high, 2001)[1:]
        parabola = n_mu * weight * t - (n_sigma * weight * t) ** 2 / 2
        allowed = np.flatnonzero(parabola > rate * np.expm1(work * t))
        if not len(allowed):
            return best
        at = allowed[parabola[allowed].argmax()]
        best = float(parabola[at])
        low, high = float(t[max(at - 1, 0)]), float(t[min(at + 1, len(t) - 1)])
    found = minimize_scalar(
        lambda t: -(n_mu * weight * t - (n_sigma * weight * t) ** 2 / 2),
        bounds=(low, float(t[allowed].max())),
        method="bounded",
        options={"xatol": 1e-12 / work},
    )
    return max(best, -float(found.fun))


def one_type(**changes: Any) -> tuple[Problem, Numbers, Point]:
    """Returns a problem of one type of jobs, which half of a hundred nodes would do."""
    problem = Problem(np.array([0.5]), np.array([50.0]), np.array([2.0]), np.array([300.0]),
                      np.array([100.0]), 100, 100.0, 0.4, 0.1, 0.1, 0.1, 1.0, 0.1, 5.0,
                      50.0)  # fmt: skip
    return problem._replace(**changes), np.array([1.0]), (26_000.0, 5000.0, np.array([1.0]))


def penalty_of(problem: Problem, alpha: Numbers, point: Point) -> Any:
    """Returns the cost without prices."""
    free = problem._replace(energy_price=0.0, reserve_price=0.0, error_price=0.0)
    return cost(free, alpha, *point)


@pytest.mark.parametrize(
    ("changes", "alpha", "average", "late"),
    [
        ({}, 0.01, 18_000.0, 1.0),  # unstable, whatever alpha is
        ({}, 0.01, 9000.0, 1.0),  # less than all idle
        ({}, 1e300, 26_000.0, 1.0),  # alpha too large
        ({"longest": np.array([np.inf])}, 1.0, 26_000.0, 0.0),
        ({"longest": np.array([np.inf])}, 1.0, 18_000.0, 0.0),  # never late, even so
        ({"longest": np.array([0.0])}, 0.3, 26_000.0, 0.3),
        ({"longest": np.array([1e300])}, 1.0, 26_000.0, 0.0),
        ({"rate": np.array([0.0])}, 1.0, 26_000.0, 0.0),
        ({"rate": np.array([0.0]), "longest": np.array([0.0])}, 1.0, 9000.0, 0.0),
        ({"seconds": np.array([0.0])}, 1.0, 26_000.0, 0.0),
        ({"rate": np.array([1e-300])}, 1.0, 26_000.0, 0.0),
    ],
)
def test_where_the_share_of_late_jobs_cannot_move_it_has_no_gradient(
    changes: dict[str, Any], alpha: float, average: float, late: float
) -> None:
    problem, _, (_, reserve, weights) = one_type(**changes)
    for swing in (reserve, 0.0):
        found = penalty_of(problem, np.array([alpha]), (average, swing, weights))
        assert found.probability.tolist() == [late]
        assert found.d_average == found.d_reserve == 0
        assert found.d_weights.tolist() == [0.0]
        expected = problem.beta * math.log1p(math.exp(problem.rho * (late - problem.late)))
        assert found.value == pytest.approx(expected, rel=1e-12)


def test_a_cost_is_in_money_of_the_hours_bid_for() -> None:
    problem, alpha, point = one_type(
        longest=np.array([np.inf]), beta=0.0, hours=2.0, reserve_price=0.03, error_price=0.5
    )
    found = cost(problem, alpha, *point)
    # 26 kW for two hours, 5 kW of reserve, and the error: all idle draw 10 kW, 50 nodes 10 more.
    assert problem.offered_w == 20_000
    assert found.value == pytest.approx(2 * (26 * 0.1 - 5 * 0.03 + (26 - 20) * 0.5))
    assert found.d_average == pytest.approx(2 * 0.6e-3)
    assert found.d_reserve == pytest.approx(-2 * 0.03e-3)


def test_penalties_far_from_where_they_begin_are_finite() -> None:
    problem, alpha, point = one_type(rho=1e6)
    low = penalty_of(problem, alpha, point)
    assert 0 <= low.value < 1e-300
    high = penalty_of(problem, alpha, (18_000.0, *point[1:]))
    assert high.value == pytest.approx(problem.beta * 0.9e6)


def test_where_the_queue_hardly_shrinks_the_gradient_is_finite() -> None:
    problem, alpha, (_, reserve, weights) = one_type()
    for more in 10.0 ** np.arange(-16, -2):
        found = penalty_of(problem, alpha, (20_000 * (1 + more), reserve, weights))
        assert np.all(np.isfinite([found.d_average, found.d_reserve, *found.d_weights]))
        assert found.d_average <= 0 <= found.d_reserve


@pytest.mark.parametrize("alpha", [0.3, 1.0, 7.0])
def test_a_tail_gives_alpha_of_any_theta(alpha: float) -> None:
    at_least = (np.arange(20_000) + 0.5) / 20_000
    delays = np.maximum(0.0, np.log(alpha / at_least) / 0.02)
    found = tail_of(delays)
    assert found is not None
    assert found.alpha(0.02) == pytest.approx(alpha, rel=0.01)
    for theta in (0.0, 0.003, 1.0):
        assert found.alpha(theta) == fit_alpha(delays, theta)
    assert found.alpha(0.0) == pytest.approx(np.exp(found.log_share))
    assert 0 < found.alpha(1e9) < np.inf


vectors = st.lists(st.floats(-5.0, 5.0), min_size=1, max_size=6)


@examples(150)
@given(vectors, st.integers(0, 2**32 - 1), st.floats(0.0, 2.0))
def test_a_projection_onto_the_simplex_is_nearer_than_any_other_point(
    values: list[float], seed: int, sum_least: float
) -> None:
    rng = np.random.default_rng(seed)
    wanted = np.array(values)
    least = rng.dirichlet(np.ones(len(wanted))) * sum_least
    found = onto_simplex(wanted, least)
    assert found.sum() == pytest.approx(1.0, abs=1e-12)
    if sum_least >= 1:
        np.testing.assert_allclose(found, least / least.sum(), atol=1e-12)
        return
    assert np.all(found >= least)
    others = least + (1 - least.sum()) * rng.dirichlet(np.ones(len(wanted)), 30)
    # The angle to any other point is at least a right one, which only the nearest point has.
    assert np.all((others - found) @ (wanted - found) <= 1e-9)


def test_a_projection_is_where_a_general_optimizer_finds_it() -> None:
    rng = np.random.default_rng(13)
    for count in (2, 3, 5, 5):
        wanted, least = rng.normal(0.3, 1.0, count), rng.dirichlet(np.ones(count)) * 0.4
        expected = minimize(lambda w, wanted=wanted: ((w - wanted) ** 2).sum(), np.full(count, 0.5),
                            jac=lambda w, wanted=wanted: 2 * (w - wanted), method="SLSQP",
                            bounds=[(low, None) for low in least], options={"ftol": 1e-15},
                            constraints={"type": "eq", "fun": lambda w: w.sum() - 1})  # fmt: skip
        np.testing.assert_allclose(onto_simplex(wanted, least), expected.x, atol=1e-6)
    np.testing.assert_array_equal(onto_simplex([0.2, 0.3, 0.5]), [0.2, 0.3, 0.5])
    np.testing.assert_allclose(onto_simplex([3.0, -1.0]), [1.0, 0.0])


def test_stable_weights_are_stable_wherever_some_are() -> None:
    rng = np.random.default_rng(14)
    moved = 0
    for _ in range(150):
        problem, _, (_, reserve, weights) = some_problem(rng, 4)
        average = problem.lowest_w + rng.choice([1 + 2e-6, 1.01, 1.3]) * (
            problem.offered_w - problem.lowest_w
        )
        found = stable_weights(problem, average, weights)
        assert found.sum() == pytest.approx(1.0, abs=1e-12)
        assert np.all(falls(problem, average, reserve, found).theta > 0)
        moved += not np.array_equal(found, onto_simplex(weights))
        less = problem.lowest_w + 0.9 * (problem.offered_w - problem.lowest_w)
        arriving = problem.rate * problem.work
        for each in (less, problem.lowest_w, 0.0):
            found = stable_weights(problem, each, weights)
            np.testing.assert_allclose(found, arriving / arriving.sum(), rtol=1e-9)
    assert 50 < moved < 150


def market(**changes: Any) -> Market:
    """Returns a market of a hundred nodes and three types of jobs, which keep half of them busy."""
    types = [
        JobKind(name, nodes, time * 1e6, watts, 120.0, 2.0, threshold, None, arrivals)
        for name, nodes, time, watts, threshold, arrivals in [
            ("short", 1.0, 60.0, 220.0, 2.0, 1000.0),
            ("wide", 8.0, 120.0, 300.0, 3.0, 62.5),
            ("long", 2.0, 600.0, 180.0, 1.0, 50.0),
        ]
    ]
    found = Market(0, 3600 * 10**6, 100, 90.0, [], [], {}, {}, 0.1, 0.1, 0.1, types=types,
                   spread=0.4)  # fmt: skip
    return found._replace(**changes)


def offered(market: Market) -> float:
    return problem_of(market, 1.0).offered_w


def run(descent: Descent, tails: Callable[[int], Mapping[str, Tail | None]]) -> Descent:
    while not descent.finished:
        (bid,) = descent.ask()
        assert bid == descent.ask()[0]
        assert 100 * 90.0 <= bid.average_w <= 100 * 300.0
        assert 0 <= bid.reserve_w <= bid.average_w
        assert sum(bid.weights.values()) == pytest.approx(1.0, abs=1e-9)
        assert min(bid.weights.values()) >= 0
        descent.tell([tails(len(descent.history))])
        assert descent.history[-1][0] == bid
    assert np.all(np.isfinite([value for _, value in descent.history]))
    return descent


def no_tails(_: int) -> Mapping[str, Tail | None]:
    return {"short": None}


def test_a_market_is_taken_in_seconds_watts_and_money() -> None:
    found = problem_of(market(), 20_000.0)
    np.testing.assert_allclose(found.rate * 3600, [1000.0, 62.5, 50.0])
    np.testing.assert_allclose(found.work, [60.0, 960.0, 1200.0])
    np.testing.assert_allclose(found.longest, [120.0, 360.0, 600.0])
    assert found.hours == pytest.approx(1.0)
    assert found.beta == pytest.approx(0.1 * 20)
    assert found.late == 0.1
    assert problem_of(market(energy_price=0.0, reserve_price=0.2), 20_000.0).beta == pytest.approx(
        4.0
    )
    any_wait = [it._replace(threshold=np.inf, time=0.0) for it in market().types]
    assert np.all(np.isinf(problem_of(market(types=any_wait), 1.0).longest))
    with pytest.raises(ValueError, match="needs types of jobs"):
        Descent(market(types=[]), 1.0)


def test_a_descent_starts_at_the_mean_power_with_equal_weights() -> None:
    mean_w = 1.2 * offered(market())
    (bid,) = Descent(market(), mean_w).ask()
    assert bid.average_w == mean_w
    assert bid.reserve_w == pytest.approx((mean_w - 9000.0) / 2)
    assert bid.weights == pytest.approx(dict.fromkeys(("short", "wide", "long"), 1 / 3))


@pytest.mark.parametrize("more", [1.0, 1.3])
def test_a_descent_lowers_the_cost_and_lets_few_jobs_be_late(more: float) -> None:
    mean_w = more * offered(market())
    found = run(Descent(market(), mean_w), no_tails)
    first, last = found.history[0], found.history[-1]
    print(f"cost {first[1]:.2f} to {last[1]:.2f}, {first[0]} to {last[0]}")
    assert last[1] < 0.7 * first[1]
    at = cost(found.problem, 1.0, *last[0][:2], [*last[0].weights.values()])
    assert np.all(at.probability < 0.2)
    assert len(found.history) == 200
    again = run(Descent(market(), mean_w, candidates=40), no_tails)
    assert found.history[:40] == again.history


def test_steps_shrink_and_are_never_longer_than_told() -> None:
    mean_w = 1.3 * offered(market())
    found = run(Descent(market(), mean_w, candidates=50, step=0.05), no_tails).history
    assert len(found) == 50
    at = np.array([[bid.average_w / mean_w, bid.reserve_w / mean_w, *bid.weights.values()]
                   for bid, _ in found])  # fmt: skip
    lengths = np.linalg.norm(np.diff(at, axis=0), axis=1)
    assert np.all(lengths <= 0.05 / np.sqrt(np.arange(1, 50)) * (1 + 1e-9))
    assert lengths[0] == pytest.approx(0.05)


def test_types_stay_stable_where_they_can() -> None:
    it = run(Descent(market(), offered(market())), no_tails)
    for bid, _ in it.history:
        theta = falls(it.problem, *bid[:2], [*bid.weights.values()]).theta
        assert np.all(theta > 0)
    assert it.history[0][0].average_w < it.history[-1][0].average_w
    start = it.history[0][0].average_w - it.problem.lowest_w
    assert start == pytest.approx(STABLE * (it.problem.offered_w - it.problem.lowest_w), rel=1e-12)
    # From just below, without that, it only saves energy and sells reserve.
    free = run(Descent(market(), 0.99 * offered(market()), candidates=50, stable=False), no_tails)
    assert free.history[-1][0].average_w < free.history[0][0].average_w
    assert free.history[-1][0].average_w < 0.9 * offered(market())


def test_alpha_follows_the_last_hour_that_shows_it() -> None:
    descent = Descent(market(), 1.3 * offered(market()), alpha_first=2.0)
    assert descent.alpha == {"short": 2.0, "wide": 2.0, "long": 2.0}
    (bid,) = descent.ask()
    theta = falls(descent.problem, *bid[:2], [*bid.weights.values()]).theta
    descent.tell([{"short": Tail(-1.0, 30.0), "wide": None}])
    expected = math.exp(-1.0 + 30 * theta[0])
    assert descent.alpha == pytest.approx({"short": expected, "wide": 2.0, "long": 2.0})
    at = cost(descent.problem, [expected, 2.0, 2.0], *bid[:2], [*bid.weights.values()])
    assert descent.history == [(bid, at.value)]
    descent.tell([{}])
    assert descent.alpha["short"] == pytest.approx(expected)


ODD_MARKETS = {
    "no jobs come": {"types": [it._replace(arrivals=0.0) for it in market().types]},
    "a type has no jobs": {
        "types": [it._replace(arrivals=it.arrivals * (it.name != "wide")) for it in market().types]
    },
    "more comes than can be done": {
        "types": [it._replace(arrivals=5 * it.arrivals) for it in market().types]
    },
    "no signal": {"spread": 0.0},
    "no prices": {"energy_price": 0.0, "reserve_price": 0.0, "error_price": 0.0},
    "one type": {"types": market().types[:1]},
    "no thresholds": {"types": [it._replace(threshold=np.inf) for it in market().types]},
    "thresholds of 0": {"types": [it._replace(threshold=0.0) for it in market().types]},
}


@pytest.mark.parametrize(
    ("odd", "stable"), [*((odd, True) for odd in ODD_MARKETS), ("no signal", False)]
)
def test_a_descent_stays_finite_whatever_the_hours_show(odd: str, stable: bool) -> None:
    there = market(**ODD_MARKETS[odd])
    rng = np.random.default_rng(15)
    drawn = [tail_of(rng.exponential(scale, 40)) for scale in (0.1, 3.0, 30.0, 300.0, 3000.0)]

    def tails(_: int) -> Mapping[str, Tail | None]:
        return {it.name: [None, *drawn][rng.integers(6)] for it in there.types}

    mean_w = float(np.clip(offered(there), 9000.0, 30_000.0))
    descent = Descent(there, mean_w, stable=stable)
    assert {*descent.ask()[0].weights} == {it.name for it in there.types}
    assert len(run(descent, tails).history) == 200
    assert np.all(np.isfinite([*descent.alpha.values()]))
