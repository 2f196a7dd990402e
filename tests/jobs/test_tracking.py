"""Target, error, tracking rule, cost and saving, as docs/demand-response.md defines them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.views.tracking import (
    bad_share,
    cost,
    errors,
    keeps_rule,
    mean_error,
    saving,
    target_w,
)

WATTS = st.floats(0.0, 1e9)
PRICES = st.floats(0.0, 10.0)


def test_the_target_is_the_average_plus_a_part_of_the_reserve() -> None:
    assert target_w(1000.0, 400.0, -0.5) == 800.0
    assert target_w(1000.0, 400.0, np.array([-1.0, 0.0, 1.0])).tolist() == [600.0, 1000.0, 1400.0]


def test_the_error_counts_both_sides() -> None:
    found = errors([900.0, 1100.0, 1000.0], 1000.0, 400.0)
    assert found.tolist() == [0.25, 0.25, 0.0]


def test_without_a_reserve_there_is_no_error_and_no_rule_to_break() -> None:
    found = errors([900.0, 1100.0], [1000.0, 1000.0], [0.0, 200.0])
    assert math.isnan(found[0])
    assert found[1] == 0.5
    assert bad_share(found, 0.3) == 1.0
    assert mean_error(found) == 0.5
    none = errors([900.0], [1000.0], [0.0])
    assert math.isnan(bad_share(none, 0.3))
    assert math.isnan(mean_error(none))
    assert keeps_rule(none, 0.3, 0.1)
    assert keeps_rule([], 0.3, 0.1)


@pytest.mark.parametrize(("bad", "kept"), [(0, True), (359, True), (360, False), (3600, False)])
def test_a_tenth_of_the_intervals_is_no_longer_below_a_tenth(bad: int, kept: bool) -> None:
    found = np.full(3600, 0.3)
    found[:bad] = 0.30001
    assert bad_share(found, 0.3) == bad / 3600
    assert keeps_rule(found, 0.3, 0.1) == kept


def test_an_error_at_the_limit_is_not_bad() -> None:
    assert bad_share([0.3, 0.30000001], 0.3) == 0.5


def test_an_hour_costs_what_the_papers_hour_costs() -> None:
    """Zhang's thesis prints $3931 for P 20.6 kW, R 10.111 kW and an error of 4.3 %, which is $1.092
    by the second instead of by the hour."""
    found = cost(20_600.0, 10_111.0, 0.043, 1.0, 0.1, 0.1, 0.1)
    assert found == pytest.approx(1.092, abs=5e-4)
    assert found * 3600 == pytest.approx(3931, rel=1e-3)
    assert saving(found, 20_600.0, 1.0, 0.1) == pytest.approx(10_111 / 20_600 * (1 - 0.043))


def test_a_violation_is_paid_once_per_hour_that_broke_the_rule() -> None:
    plain = cost(1000.0, 500.0, 0.5, 2.0, 0.1, 0.1, 0.1)
    assert cost(1000.0, 500.0, 0.5, 2.0, 0.1, 0.1, 0.1, False, 7.0) == plain
    assert cost(1000.0, 500.0, 0.5, 2.0, 0.1, 0.1, 0.1, True, 7.0) == plain + 7.0


def test_without_a_reserve_only_the_average_is_paid() -> None:
    found = cost(1000.0, 0.0, math.nan, 1.0, 0.1, 0.2, 0.3)
    assert found == pytest.approx(0.1)
    assert saving(found, 1000.0, 1.0, 0.1) == pytest.approx(0.0)


@pytest.mark.parametrize(("average_w", "price"), [(0.0, 0.1), (1000.0, 0.0), (1000.0, -0.1)])
def test_of_what_costs_nothing_no_part_can_be_saved(average_w: float, price: float) -> None:
    assert math.isnan(saving(1.0, average_w, 1.0, price))


@given(WATTS, st.floats(0.0, 1.0), st.floats(0.0, 10.0), st.floats(0.01, 100.0), PRICES, PRICES,
       PRICES)  # fmt: skip
def test_the_cost_is_the_formula_of_the_docs(
    average_w: float, part: float, error: float, hours: float, energy: float, reserve: float,
    off: float,
) -> None:  # fmt: skip
    offered = average_w * part
    expected = hours * (energy * average_w / 1e3 - reserve * offered / 1e3
                        + off * offered / 1e3 * error)  # fmt: skip
    found = cost(average_w, offered, error, hours, energy, reserve, off)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9 * hours * average_w)


@given(st.lists(st.tuples(WATTS, WATTS, st.floats(1.0, 1e6)), min_size=1, max_size=20))
def test_the_error_is_the_formula_of_the_docs(rows: list[tuple[float, float, float]]) -> None:
    found = errors(*map(list, zip(*rows, strict=True)))
    assert found.tolist() == [abs(power - target) / reserve for power, target, reserve in rows]
