"""Means, confidence intervals and significance: against formulas, tables and chance."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from odonata.results import statistics
from odonata.results.statistics import (
    METHODS,
    RESAMPLED,
    Interval,
    difference,
    interval,
    moving_block,
    ratio,
)

values = st.lists(st.floats(-1e6, 1e6).map(lambda value: round(value, 6)), min_size=2, max_size=30)
"""Samples of numbers that scipy can compute with, too: none is as small as 1e-300."""


@given(values, st.floats(0.5, 0.999))
def test_an_interval_of_students_t_is_that_of_scipy(sample: list[float], confidence: float) -> None:
    made = interval(sample, confidence)
    assert made.mean == pytest.approx(np.mean(sample), abs=1e-6)
    if np.ptp(sample) > 1e-3:
        low, high = stats.t.interval(confidence, len(sample) - 1, np.mean(sample),
                                     stats.sem(sample))  # fmt: skip
        assert (made.low, made.high) == pytest.approx((low, high), rel=1e-6, abs=1e-6)
        assert made.half == pytest.approx((high - low) / 2, rel=1e-6, abs=1e-6)


def test_the_bootstrap_is_that_of_scipy() -> None:
    sample = np.random.default_rng(3).exponential(size=40)
    made = interval(sample.tolist(), method="bootstrap")
    theirs = stats.bootstrap((sample,), np.mean, confidence_level=0.95, n_resamples=10_000,
                             method="BCa", random_state=np.random.default_rng(1))  # fmt: skip
    low, high = theirs.confidence_interval
    assert (made.low, made.high) == pytest.approx((low, high), rel=0.02)


def test_the_bootstrap_takes_means_that_are_equal_for_equal() -> None:
    """Those of 0.1, 0.2, 0.3 differ in their last digits, those of 1, 2, 3 do not."""
    small, whole = (interval([n * unit for n in (1, 2, 3)], method="bootstrap")
                    for unit in (0.1, 1.0))  # fmt: skip
    assert (small.low, small.high) == pytest.approx((whole.low / 10, whole.high / 10))


def test_the_bootstrap_of_many_values_does_not_fill_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = np.random.default_rng(5).normal(size=300).tolist()
    whole = interval(values, method="bootstrap", confidence=0.9)
    monkeypatch.setattr(statistics, "DRAWN", 1000)
    statistics._interval.cache_clear()
    assert interval(values, method="bootstrap", confidence=0.9) == whole


def test_pairs_are_compared_by_the_method_that_is_asked_for() -> None:
    first, second = [1.0, 2.0, 4.0, 8.0], [2.0, 3.0, 9.0, 9.0]
    for compare in (lambda **how: difference(first, second, True, **how),
                    lambda **how: ratio(first, second, **how)):  # fmt: skip
        assert compare(method="bootstrap").mean == compare().mean
        assert compare(method="bootstrap").high < compare().high


@pytest.mark.parametrize("method", METHODS)
def test_values_that_are_all_the_same_have_an_interval_of_no_width(method: str) -> None:
    assert interval([4.0] * 5, method=method) == Interval(4.0, 4.0, 4.0, 5)
    assert not interval([0.0] * 5, method=method).excludes_zero


def test_what_is_not_known_is_left_out_and_counted() -> None:
    assert interval([1.0, None, 3.0, math.nan]) == interval([1.0, 3.0])
    assert interval([1.0, None]).of == 1
    assert math.isnan(interval([1.0]).half)
    assert interval([None]).of == 0
    assert math.isnan(interval([]).mean)
    assert not interval([5.0]).excludes_zero


def test_a_difference_between_pairs_is_seen_where_one_between_groups_is_not() -> None:
    first = [100.0, 200.0, 300.0, 400.0]
    second = [101.0, 202.0, 301.5, 401.5]
    assert difference(first, second, paired=True).excludes_zero
    assert not difference(first, second, paired=False).excludes_zero
    assert difference(first, [None, *second[1:]], paired=True).of == 3


@given(values, values)
def test_groups_are_compared_as_welch_does(first: list[float], second: list[float]) -> None:
    made = difference(first, second, paired=False)
    assert made.mean == pytest.approx(np.mean(second) - np.mean(first), abs=1e-6)
    if min(np.ptp(first), np.ptp(second)) > 1e-3:
        theirs = stats.ttest_ind(second, first, equal_var=False).confidence_interval(0.95)
        assert (made.low, made.high) == pytest.approx((theirs.low, theirs.high), rel=1e-5, abs=1e-5)


def test_a_ratio_is_taken_seed_by_seed() -> None:
    made = ratio([1.0, 2.0, 0.0, None], [2.0, 4.0, 7.0, 1.0])
    assert (made.mean, made.low, made.of) == (2.0, 2.0, 2)


def test_intervals_have_the_true_mean_as_often_as_they_say() -> None:
    draws = np.random.default_rng(5).normal(7.0, 2.0, (2000, 5))
    hits = [made.low <= 7.0 <= made.high for made in map(interval, draws.tolist())]
    assert np.mean(hits) == pytest.approx(0.95, abs=0.015)


def test_the_interval_of_replicates_is_their_spread_however_many_there_are() -> None:
    drawn = np.exp(np.random.default_rng(4).normal(1.0, 0.3, 400))
    for count in (20, 400):
        made = interval(drawn[:count].tolist(), method=RESAMPLED)
        assert made.mean == pytest.approx(drawn[:count].mean())
        logs, t = np.log(drawn[:count]), stats.t.ppf(0.975, count - 1)
        assert math.log(made.low) == pytest.approx(logs.mean() - t * logs.std(ddof=1))
        assert math.log(made.high) == pytest.approx(logs.mean() + t * logs.std(ddof=1))
    apart = difference(drawn[:20], drawn[20:40], paired=True, method=RESAMPLED)
    signed = drawn[20:40] - drawn[:20]
    assert apart.half == pytest.approx(stats.t.ppf(0.975, 19) * signed.std(ddof=1))
    alone = difference(drawn[:20], drawn[20:400], paired=False, method=RESAMPLED)
    assert alone.half > difference(drawn[:20], drawn[20:400], paired=False).half * 4
    assert interval([4.0] * 5, method=RESAMPLED) == Interval(4.0, 4.0, 4.0, 5)


def test_blocks_of_a_series_that_remembers_give_intervals_that_have_its_mean() -> None:
    """Returns 64 values, each of which is half of the one before and something new."""
    rng, hits = np.random.default_rng(8), []
    for _ in range(200):
        noise, series = rng.normal(size=164), np.zeros(164)
        for at in range(1, 164):
            series[at] = 0.5 * series[at - 1] + noise[at]
        (made,) = moving_block(lambda times, of=series[100:]: np.array([times @ of / 64]), 64)
        hits.append(made.low < 0 < made.high)
        assert made.mean == pytest.approx(series[100:].mean())
    assert 0.88 <= np.mean(hits) <= 0.98


def test_a_statistic_that_few_draws_have_gets_no_interval() -> None:
    def only_with_the_first(times: np.ndarray) -> np.ndarray:
        return np.array([1.0 if times[0] > 1 else math.nan, times @ np.arange(10.0)])

    rare, mean = moving_block(only_with_the_first, 10)
    assert math.isnan(rare.low)
    assert mean.low < mean.mean == 45 < mean.high
    assert math.isnan(moving_block(lambda times: times @ np.ones((3, 1)), 3)[0].low)
