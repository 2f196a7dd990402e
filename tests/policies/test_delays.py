"""How long jobs wait in a machine whose power follows a signal, and the reserve it can offer."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from conftest import examples
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize_scalar

from policies.bidding.delays import (
    Kinds,
    averages,
    delay_rate,
    fall,
    fit_alpha,
    largest_reserve,
    least_weights,
    served,
    tail,
    tail_of,
    theta_star,
    weights_for,
)

Numbers = npt.NDArray[np.float64]

NODES, IDLE_W, SPREAD = 100, 90.0, 0.40
SHORTEST_S = np.array([97.6, 52.6, 108.5, 62.8, 132.6, 99.9])
"""Zhang's table 2.2, of fs sc bt lu mg sp."""
WATTS = np.array([142.0, 221.0, 279.0, 262.0, 309.0, 290.0])
DELAY_RATES = np.array([0.0196, 0.311, 0.0163, 0.449, 0.0099, 0.038])
"""What the printed optimum implies; the table of thresholds is lost."""
PRINTED = np.array([0.128, 0.212, 0.127, 0.271, 0.124, 0.140])
PRINTED_AVERAGE_W, PRINTED_RESERVE_W = 20600.0, 10111.0


def zhang(utilisation: float = 0.5) -> Kinds:
    rate = utilisation * NODES / (len(WATTS) * SHORTEST_S)
    return Kinds(rate, SHORTEST_S, WATTS, DELAY_RATES)


def some_points(rng: np.random.Generator, count: int) -> tuple[Numbers, ...]:
    """Returns rates, works, weights, n_mu and n_sigma of queues of which most are stable."""

    def between(low: float, high: float) -> Numbers:
        return np.exp(rng.uniform(np.log(low), np.log(high), count))

    rate, work, weight = between(1e-3, 1.0), between(1.0, 3e3), between(1e-2, 1.0)
    n_mu = rate * work / weight * between(0.9, 30.0)
    return rate, work, weight, n_mu, n_mu * between(0.01, 10.0)


def at_top(rate: Any, work: Any, weight: Any, n_mu: Any, n_sigma: Any) -> Any:
    """Says, as is printed (2.53), where the supremum is at the top of the parabola."""
    return weight > n_mu * work / (n_sigma**2 * np.log1p(n_mu**2 / (2 * n_sigma**2 * rate)))


def supremum(rate: float, work: float, weight: float, n_mu: float, n_sigma: float) -> float:
    """Returns theta by its definition (2.8): the parabola's largest value at any t allowed."""

    def parabola(t: float) -> float:
        return n_mu * weight * t - (n_sigma * weight * t) ** 2 / 2

    def difference(t: float) -> float:
        return float(rate * np.expm1(work * t) - parabola(t))

    if rate * work >= n_mu * weight:
        return 0.0
    least = minimize_scalar(difference, bounds=(0.0, 60.0 / work), method="bounded",
                            options={"xatol": 1e-9 / work}).x  # fmt: skip
    last = brentq(difference, least, 60.0 / work, xtol=1e-15 / work)
    best = minimize_scalar(lambda t: -parabola(t), bounds=(0.0, last), method="bounded",
                           options={"xatol": 1e-10 * last})  # fmt: skip
    return max(parabola(best.x), parabola(last))


def test_theta_is_the_supremum_that_it_is_defined_by() -> None:
    points = some_points(np.random.default_rng(1), 1500)
    found = theta_star(*points)
    expected = [supremum(*map(float, point)) for point in zip(*points, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    stable, top = found > 0, at_top(*points)
    counts = (~stable).sum(), (stable & top).sum(), (stable & ~top).sum()
    assert min(counts) >= 30
    assert min(counts[1:]) >= 300

    where = fall(*points)
    assert np.array_equal(where.top, stable & top)
    assert np.array_equal(np.isfinite(where.equal), stable & ~top)
    rate, work, weight, n_mu, n_sigma = (each[stable & ~top] for each in points)
    t = where.equal[stable & ~top] / work
    np.testing.assert_allclose(rate * np.expm1(work * t), found[stable & ~top], rtol=1e-12)
    served_by_t = n_mu * weight * t - (n_sigma * weight * t) ** 2 / 2
    np.testing.assert_allclose(served_by_t, found[stable & ~top], rtol=1e-9)


def test_theta_without_a_signal_is_where_work_and_service_are_equal() -> None:
    rate, work, weight, n_mu, _ = some_points(np.random.default_rng(2), 300)
    found = theta_star(rate, work, weight, n_mu, 0.0)
    expected = [supremum(*map(float, point), 0.0)
                for point in zip(rate, work, weight, n_mu, strict=True)]  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    nearly = theta_star(rate, work, weight, n_mu, 1e-9 * n_mu)
    np.testing.assert_allclose(nearly, found, rtol=1e-9)


@pytest.mark.parametrize("load", [1 + 1e-9, 1 + 1e-4, 2.0, 1e3, 1e12, 1e150])
@pytest.mark.parametrize("bend", [0.0, 1e-6, 1.0, 1e6])
def test_theta_is_found_however_busy_the_queue_is(load: float, bend: float) -> None:
    # With a rate, a work and a weight of 1, n_mu is the load and n_sigma² the bend.
    found = float(theta_star(1.0, 1.0, 1.0, load, np.sqrt(bend)))
    assert 0 < found < np.inf
    if load < 1.01:
        assert found == pytest.approx(2 * (load - 1) / (1 + bend), rel=1e-3)
    elif not bend or not at_top(1.0, 1.0, 1.0, load, np.sqrt(bend)):
        root = np.log1p(found)
        assert found == pytest.approx(load * root - bend * root**2 / 2, rel=1e-9)


def test_many_queues_at_once_have_the_thetas_of_one_at_a_time() -> None:
    rng = np.random.default_rng(4)
    load = 1 + 10.0 ** rng.uniform(-8, 12, 2000)
    n_sigma = load * 10.0 ** rng.uniform(-8, 1, 2000)
    found = theta_star(1.0, 1.0, 1.0, load, n_sigma)
    alone = [float(theta_star(1.0, 1.0, 1.0, *each)) for each in zip(load, n_sigma, strict=True)]
    np.testing.assert_allclose(found, alone, rtol=1e-6)
    root = np.minimum(np.log1p(found), load / n_sigma**2)
    np.testing.assert_allclose(load * root - (n_sigma * root) ** 2 / 2, found, rtol=1e-6)


def test_jobs_that_come_as_fast_as_they_go_wait_for_ever_and_jobs_that_never_come_do_not() -> None:
    assert theta_star(0.5, 100.0, 0.5, 100.0, 10.0) == 0
    assert theta_star(0.5, 100.0, 0.5, 100.01, 10.0) > 0
    assert theta_star(0.5, 100.0, 0.5, -20.0, 10.0) == 0
    assert theta_star(0.0, 100.0, 0.5, 100.0, 10.0) == np.inf
    assert tail(0.0, 0.7, 1e9) == 0.7
    assert tail(np.inf, 0.7, 1.0) == 0
    assert tail(np.inf, 0.7, 0.0) == 0.7


def test_the_least_weight_is_just_where_theta_is_large_enough() -> None:
    rng = np.random.default_rng(3)
    points = some_points(rng, 10_000)
    rate, work, weight, n_mu, n_sigma = points
    theta = theta_star(*points)
    # A third each: anything; theta, up to a little; and what makes the weight the least one.
    off = rng.choice([-1, 1], len(theta)) * 10.0 ** rng.uniform(-7, -1, len(theta))
    least = np.exp(rng.uniform(np.log(1e-4), np.log(10.0), len(theta)))
    near = np.arange(len(theta)) % 3
    least = np.where((near > 0) & (theta > 0), theta * (1 + off), least)
    needed = least_weights(rate, work, least, n_mu, n_sigma)
    moved = (near == 2) & np.isfinite(needed)
    weight = np.where(moved, needed * (1 + off), weight)
    theta = theta_star(rate, work, weight, n_mu, n_sigma)
    clear = np.abs(theta / least - 1) > 1e-12

    kept = (n_sigma <= n_mu / np.sqrt(2 * least)) & (weight >= needed)
    assert np.array_equal(kept[clear], (theta >= least)[clear])
    assert clear.mean() > 0.99
    top = at_top(rate, work, weight, n_mu, n_sigma)
    close = np.abs(theta / least - 1) < 1e-3
    counts = [(regime & answer & close).sum() for regime in (top, ~top) for answer in (kept, ~kept)]
    print("near the boundary: at the top, kept and not; below it, kept and not:", counts)
    assert min(counts) > 200
    assert np.array_equal(np.isfinite(needed), n_sigma <= n_mu / np.sqrt(2 * least))
    assert np.all(needed > 0)
    # Where no weight suffices, not even a large one does.
    assert np.all(theta_star(rate, work, 1e9, n_mu, n_sigma)[np.isinf(needed)]
                  < least[np.isinf(needed)])  # fmt: skip


def test_a_kind_without_a_condition_still_has_to_be_stable() -> None:
    for least in (1e-30, 0.0, -0.3, -np.inf):
        weight = float(least_weights(0.1, 50.0, least, 40.0, 30.0))
        assert weight == pytest.approx(0.1 * 50 / 40, rel=1e-5)
        assert theta_star(0.1, 50.0, weight, 40.0, 30.0) > 0
    assert least_weights(0.1, 50.0, 1e-9, 40.0, 30.0) == pytest.approx(0.1 * 50 / 40, rel=1e-5)
    rate, work, _, n_mu, n_sigma = some_points(np.random.default_rng(6), 1000)
    weight = least_weights(rate, work, -1.0, n_mu, n_sigma)
    assert np.all(theta_star(rate, work, weight, n_mu, n_sigma) > 0)
    assert least_weights(0.1, 50.0, 0.1, 0.0, 0.0) == np.inf
    assert least_weights(0.1, 50.0, 0.1, -5.0, 3.0) == np.inf
    assert least_weights(0.1, 50.0, -0.1, -5.0, 0.0) == np.inf
    assert least_weights(0.1, 50.0, np.inf, 40.0, 0.0) == np.inf
    assert least_weights(0.0, 50.0, 0.1, 40.0, 1e6) == 0


def test_the_least_theta_leaves_just_as_many_late_as_may_be() -> None:
    alpha, shortest_s = np.array([0.5, 1.0, 30.0]), np.array([97.6, 52.6, 108.5])
    least = delay_rate(alpha, 0.1, 0.8, shortest_s)
    np.testing.assert_allclose(tail(least, alpha, 0.8 * shortest_s), 0.1, rtol=1e-12)
    assert delay_rate(0.05, 0.1, 0.8, 97.6) < 0
    assert delay_rate(0.1, 0.1, 0.0, 97.6) == 0
    assert delay_rate(1.0, 0.1, 0.0, 97.6) == np.inf
    assert delay_rate(1.0, 0.1, np.inf, 97.6) == 0
    assert tail(0.01, 30.0, 1.0) == 1


def test_the_printed_weights_follow_from_the_printed_bid() -> None:
    found = weights_for(PRINTED_AVERAGE_W, PRINTED_RESERVE_W, zhang(), NODES, IDLE_W, SPREAD)
    assert found is not None
    print("least weights", (100 * found.least).round(2), "of", found.total)
    np.testing.assert_allclose(found.least, PRINTED, atol=0.002)
    np.testing.assert_allclose(found.weights, PRINTED, atol=0.002)
    assert found.total == pytest.approx(1.0, abs=0.002)
    assert found.weights.sum() == pytest.approx(1.0, abs=1e-12)


def test_the_printed_reserve_is_the_largest_one() -> None:
    found = largest_reserve(PRINTED_AVERAGE_W, zhang(), NODES, IDLE_W, SPREAD)
    assert found is not None
    print("largest reserve", found.reserve_w)
    assert found.reserve_w == pytest.approx(PRINTED_RESERVE_W, rel=0.01)
    assert found.shares.total == pytest.approx(1.0, abs=1e-6)


def test_the_printed_bid_is_a_whole_percentage_of_what_tracking_alone_would_bid() -> None:
    """Zhang 2021, 2.5.1: by which steps of 1 % the printed optimum was found is not said."""
    average_w = 0.5 * NODES * WATTS.mean() + 0.5 * NODES * IDLE_W
    assert int(1.21 * average_w) == PRINTED_AVERAGE_W
    assert int(1.26 * (average_w - NODES * IDLE_W)) == PRINTED_RESERVE_W


def iterated(average_w: float, reserve_w: float, kinds: Kinds) -> Numbers:
    """Returns the weights that stand still when each round finds them from those before."""
    weights = np.full(len(kinds.rate), 1 / len(kinds.rate))
    for _ in range(50):
        how = served(average_w, reserve_w, weights, kinds.watts, NODES, IDLE_W, SPREAD)
        least = least_weights(kinds.rate, kinds.work, kinds.delay_rate, *how)
        weights = least / least.sum()
    return weights


@pytest.mark.parametrize("utilisation", [0.1, 0.5, 0.9])
def test_the_weights_stand_still(utilisation: float) -> None:
    kinds = zhang(utilisation)
    found = weights_for(20600.0, 8000.0, kinds, NODES, IDLE_W, SPREAD)
    assert found is not None
    np.testing.assert_allclose(found.weights, iterated(20600.0, 8000.0, kinds), rtol=1e-12)
    again = served(20600.0, 8000.0, found.weights, WATTS, NODES, IDLE_W, SPREAD)
    assert found.served == again
    least = least_weights(kinds.rate, kinds.work, kinds.delay_rate, *again)
    np.testing.assert_allclose(found.least, least, rtol=1e-12)


@st.composite
def some_kinds(draw: st.DrawFn) -> Kinds:
    """Draws one to five kinds that keep 20 to 80 % of a hundred nodes busy."""
    count = draw(st.integers(1, 5))

    def column(low: float, high: float) -> Numbers:
        return np.array(draw(st.lists(st.floats(low, high), min_size=count, max_size=count)))

    work, parts = column(10.0, 3000.0), column(0.1, 1.0)
    rate = draw(st.floats(0.2, 0.8)) * NODES * parts / parts.sum() / work
    return Kinds(rate, work, column(120.0, 400.0), column(-0.01, 0.3))


def meets(weights: Numbers, average_w: float, reserve_w: float, kinds: Kinds) -> Any:
    """Says whether each kind waits no longer than it may, by its theta."""
    how = served(average_w, reserve_w, weights, kinds.watts, NODES, IDLE_W, SPREAD)
    theta = theta_star(kinds.rate, kinds.work, weights, *how)
    return np.all((theta >= kinds.delay_rate * (1 - 1e-9)) & (theta > 0))


@examples(100)
@given(some_kinds(), st.floats(0.05, 1.0), st.floats(0.0, 0.6), st.integers(0, 2**32 - 1))
def test_enough_means_that_some_weights_do(
    kinds: Kinds, high: float, part: float, seed: int
) -> None:
    average_w = NODES * (IDLE_W + high * (kinds.watts.max() - IDLE_W))
    reserve_w = part * average_w
    found = weights_for(average_w, reserve_w, kinds, NODES, IDLE_W, SPREAD)
    if found is not None and found.enough:
        assert meets(found.weights, average_w, reserve_w, kinds)
        return
    assume(found is None or found.total > 1 + 1e-5)
    rng = np.random.default_rng(seed)
    others = rng.dirichlet(np.ones(len(kinds.rate)), 50)
    if found is not None:
        others = np.vstack([found.weights, others])
    assert not any(meets(weights, average_w, reserve_w, kinds) for weights in others)


@examples(100)
@given(some_kinds(), st.floats(0.1, 0.9), st.floats(0.0, 0.4), st.floats(1.01, 1.5))
def test_least_weights_fall_with_the_average_and_grow_with_the_reserve(
    kinds: Kinds, high: float, part: float, more: float
) -> None:
    average_w = NODES * (IDLE_W + high * (kinds.watts.max() - IDLE_W))
    reserve_w = part * average_w

    def per_server(average_w: float, reserve_w: float) -> Numbers:
        n_mu, n_sigma = served(average_w, reserve_w, [1.0], [200.0], NODES, IDLE_W, SPREAD)
        return least_weights(kinds.rate, kinds.work, kinds.delay_rate, n_mu, n_sigma)

    least = per_server(average_w, reserve_w)
    assume(np.all(np.isfinite(least)))
    assert np.all(per_server(more * average_w, reserve_w) < least)
    larger = per_server(average_w, more * reserve_w)
    assert np.all(larger >= least)
    if reserve_w > 0.01 * average_w:
        assert np.all((larger > least)[kinds.delay_rate > 1e-3])
    totals = [weights_for(average_w, each, kinds, NODES, IDLE_W, SPREAD)
              for each in (reserve_w, more * reserve_w)]  # fmt: skip
    assert totals[0] is not None
    assert totals[1] is None or totals[1].total >= totals[0].total * (1 - 1e-12)


@examples(200)
@given(some_kinds(), st.floats(0.05, 0.95))
def test_a_larger_reserve_than_the_largest_would_not_do(kinds: Kinds, high: float) -> None:
    most_w = kinds.watts.max()
    average_w = NODES * (IDLE_W + high * (most_w - IDLE_W))
    limit = min(NODES * most_w - average_w, average_w - NODES * IDLE_W, average_w)

    def enough(reserve_w: float) -> bool:
        found = weights_for(average_w, reserve_w, kinds, NODES, IDLE_W, SPREAD)
        return found is not None and found.enough

    found = largest_reserve(average_w, kinds, NODES, IDLE_W, SPREAD)
    if found is None:
        assert not enough(1e-6 * limit)
        return
    assert 0 < found.reserve_w <= limit
    assert meets(found.shares.weights, average_w, found.reserve_w, kinds)
    assert found.reserve_w == limit or not enough(1.001 * found.reserve_w)


def test_each_of_the_limits_of_the_reserve_can_be_the_one_that_holds() -> None:
    easy = zhang(0.05)._replace(delay_rate=np.full(6, 1e-4))

    def largest(average_w: float, kinds: Kinds) -> float:
        found = largest_reserve(average_w, kinds, NODES, IDLE_W, SPREAD)
        assert found is not None
        return found.reserve_w

    assert largest(25000.0, easy) == NODES * 309.0 - 25000.0
    assert largest(15000.0, easy) == 15000.0 - NODES * IDLE_W
    assert largest(20600.0, zhang()) < min(NODES * 309.0 - 20600.0, 20600.0 - NODES * IDLE_W)
    # One kind with plenty of servers, whose jobs may hardly wait: what holds is the swing alone.
    one = Kinds(np.array([0.01]), np.array([5.0]), np.array([250.0]), np.array([10.0]))
    swing = (17000.0 - NODES * IDLE_W) / np.sqrt(2 * 10.0) / SPREAD
    assert largest(17000.0, one) == pytest.approx(swing, rel=1e-9)
    assert weights_for(17000.0, 1.001 * swing, one, NODES, IDLE_W, SPREAD) is None


def test_without_enough_power_there_is_no_reserve() -> None:
    for average_w in (0.0, NODES * IDLE_W, 15000.0, NODES * 309.0, 40000.0):
        assert largest_reserve(average_w, zhang(), NODES, IDLE_W, SPREAD) is None
    with pytest.raises(ValueError, match="draws more than an idle one"):
        weights_for(20600.0, 0.0, zhang(), NODES, 142.0, SPREAD)


def test_weights_are_shared_equally_where_no_job_comes() -> None:
    found = weights_for(20600.0, 1e4, zhang(0.0), NODES, IDLE_W, SPREAD)
    assert found is not None
    assert found.enough
    np.testing.assert_allclose(found.weights, 1 / 6)
    assert weights_for(NODES * IDLE_W, 0.0, zhang(0.0), NODES, IDLE_W, SPREAD) is None


def test_averages_are_the_inner_steps_of_a_hundred() -> None:
    found = averages(NODES, IDLE_W, 309.0)
    assert len(found) == 99
    np.testing.assert_allclose(found, 9000.0 + 219.0 * np.arange(1, 100))
    assert averages(10, 100.0, 300.0, 0.25).tolist() == [1500.0, 2000.0, 2500.0]
    assert averages(10, 100.0, 300.0, 0.4) == pytest.approx([1800.0, 2600.0])


def quantiles(alpha: float, theta: float, count: int) -> Numbers:
    """Returns delays of which a share of alpha·exp(-theta·d) is at least d, without chance."""
    at_least = (np.arange(count) + 0.5) / count
    return np.maximum(0.0, np.log(alpha / at_least) / theta)


@pytest.mark.parametrize("alpha", [0.05, 0.3, 1.0, 7.0])
@pytest.mark.parametrize("theta", [0.002, 0.1, 3.0])
def test_alpha_is_recovered_from_delays_with_a_known_tail(alpha: float, theta: float) -> None:
    delays = quantiles(alpha, theta, 20_000)
    assert (delays > 0).mean() == pytest.approx(min(alpha, 1.0), abs=1e-3)
    assert fit_alpha(delays, theta) == pytest.approx(alpha, rel=0.01)
    drawn = np.maximum(0.0, np.random.default_rng(5).exponential(1.0, 20_000) + np.log(alpha))
    assert fit_alpha(drawn / theta, theta) == pytest.approx(alpha, rel=0.1)


def test_alpha_is_that_of_long_delays_where_short_ones_fall_otherwise() -> None:
    # Nine in ten jobs that wait do so for about a second, the others for about 100.
    delays = np.concatenate([quantiles(1.0, 1.0, 9000), quantiles(1.0, 0.01, 10_000)])
    delays = np.concatenate([delays, np.zeros(11_000)])
    assert fit_alpha(delays, 0.01) == pytest.approx(1 / 3, rel=0.03)


def test_alpha_goes_by_counts_as_by_jobs_one_by_one() -> None:
    delays, counts = np.array([0.0, 3.0, 9.0, 20.0]), np.array([7, 4, 2, 1])
    one_by_one = fit_alpha(np.repeat(delays, counts), 0.1)
    assert fit_alpha(delays, 0.1, counts) == one_by_one
    assert fit_alpha(delays[::-1], 0.1, counts[::-1]) == one_by_one
    # Seven of fourteen waited; at least 9 s three of them, at least 20 s one.
    logs = np.log([3 / 14, 1 / 14]) + 0.1 * np.array([9.0, 20.0])
    assert one_by_one == pytest.approx(np.exp((3 * logs[0] + logs[1]) / 4))


def test_a_tail_is_what_alpha_of_any_theta_is_fitted_to() -> None:
    found = tail_of([0.0, 3.0, 9.0, 20.0], [7, 4, 2, 1])
    assert found is not None
    assert found.log_share == pytest.approx((3 * np.log(3 / 14) + np.log(1 / 14)) / 4)
    assert found.delay_s == pytest.approx((3 * 9.0 + 20.0) / 4)
    for theta in (0.0, 0.1, 2.0, 1e9):
        assert fit_alpha([0.0, 3.0, 9.0, 20.0], theta, [7, 4, 2, 1]) == found.alpha(theta)
    assert found.alpha(0.1) == pytest.approx(np.exp(found.log_share + 0.1 * found.delay_s))
    assert tail_of([1.0, 2.0, 3.0, 4.0]) is None
    assert tail_of(np.zeros(50)) is None


def test_alpha_is_not_fitted_to_few_jobs_or_to_jobs_that_did_not_wait() -> None:
    assert fit_alpha([1.0, 2.0, 3.0, 4.0], 0.1) is None
    assert fit_alpha([1.0, 2.0, 3.0, 4.0, 5.0], 0.1) is not None
    assert fit_alpha([1.0, 2.0], 0.1, [2, 3]) is not None
    assert fit_alpha([1.0, 2.0], 0.1, [4, 0]) is None
    assert fit_alpha([], 0.1) is None
    assert fit_alpha(np.zeros(50), 0.1) is None
    assert fit_alpha([0.0] * 9 + [10.0], 0.1) == pytest.approx(0.1 * np.e)
    assert fit_alpha([1e6] * 5, 0.5) is not None
