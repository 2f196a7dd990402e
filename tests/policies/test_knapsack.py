"""Which waiting jobs fill the most nodes within the free power."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.power.knapsack import best_fill

POWERS = st.integers(0, 40)
WINDOWS = st.lists(st.tuples(st.integers(1, 12), POWERS), max_size=10)


def fill(jobs: Any, free_nodes: int, free_w: float) -> list[int]:
    """Asks for jobs that are given as pairs of nodes and watts."""
    nodes = np.array([nodes for nodes, _ in jobs], np.int64)
    watts = np.array([watts for _, watts in jobs], np.float64)
    return best_fill(nodes, watts, free_nodes, free_w)


def taken(jobs: Any, chosen: Any) -> int:
    return sum(jobs[at][0] for at in chosen)


def exhaustive_fill(jobs: Any, free_nodes: int, free_w: float) -> list[int]:
    """Returns the best of all sets, of equal ones that with the oldest jobs."""
    best: tuple[int, tuple[int, ...]] = (0, (0,) * len(jobs))
    for taken_or_not in product((0, 1), repeat=len(jobs)):
        nodes = sum(x * n for x, (n, _) in zip(taken_or_not, jobs, strict=True))
        watts = sum(x * w for x, (_, w) in zip(taken_or_not, jobs, strict=True))
        if nodes <= free_nodes and watts <= free_w:
            best = max(best, (nodes, taken_or_not))
    return [at for at, x in enumerate(best[1]) if x]


def printed_fill(jobs: Any, free_nodes: int, free_w: int) -> int:
    """Returns how many nodes the recurrence of the paper (its equation 2) fills."""
    best = [0] * (free_w + 1)
    for nodes, watts in jobs:
        before = best.copy()
        for level in range(watts, free_w + 1):
            potential = nodes + before[level - watts]
            if potential <= free_nodes:
                best[level] = max(before[level], potential)
    return best[free_w]


def test_wallaces_example_takes_the_second_and_the_third_job() -> None:
    racks, kw_per_rack = np.array([3, 1, 5, 4]), np.array([60.0, 50.0, 30.0, 40.0])
    chosen = best_fill(racks, racks * kw_per_rack, 6, 230.0)
    assert chosen == [1, 2]
    assert racks[chosen].sum() == 6
    assert (racks * kw_per_rack)[chosen].sum() == 200.0


def test_it_finds_five_nodes_where_the_printed_recurrence_finds_four() -> None:
    jobs = [(4, 10), (3, 10), (2, 10)]
    assert fill(jobs, 5, 1000) == [1, 2]
    assert printed_fill(jobs, 5, 1000) == 4


@given(WINDOWS, st.integers(0, 40), st.integers(0, 120))
def test_it_equals_exhaustive_search_with_the_oldest_jobs_among_equals(
    jobs: list[tuple[int, int]], free_nodes: int, free_w: int
) -> None:
    assert fill(jobs, free_nodes, free_w) == exhaustive_fill(jobs, free_nodes, free_w)


@given(
    st.lists(st.tuples(st.sampled_from([2, 4, 6]), st.sampled_from([0, 5, 10])), max_size=10),
    st.integers(0, 30),
    st.sampled_from([0, 10, 20, 25]),
)
def test_so_it_does_where_most_sets_tie(
    jobs: list[tuple[int, int]], free_nodes: int, free_w: int
) -> None:
    assert fill(jobs, free_nodes, free_w) == exhaustive_fill(jobs, free_nodes, free_w)


@given(WINDOWS, st.integers(0, 40), st.integers(0, 120))
def test_the_printed_recurrence_never_fills_more(
    jobs: list[tuple[int, int]], free_nodes: int, free_w: int
) -> None:
    chosen = fill(jobs, free_nodes, free_w)
    assert printed_fill(jobs, free_nodes, free_w) <= taken(jobs, chosen)


@given(
    st.lists(st.tuples(st.integers(1, 8), st.integers(1, 30)), min_size=1, max_size=10),
    st.data(),
)
def test_a_set_that_fits_to_the_last_watt_is_found_whatever_the_rounding(
    jobs: list[tuple[int, int]], data: st.DataObject
) -> None:
    jobs_w = [(nodes, tenths * 0.1) for nodes, tenths in jobs]
    some = data.draw(st.sets(st.sampled_from(range(len(jobs)))))
    free_nodes = taken(jobs, some)
    free_w = math.fsum(jobs_w[at][1] for at in some)
    chosen = fill(jobs_w, free_nodes, math.nextafter(free_w, math.inf))
    assert taken(jobs, chosen) == free_nodes
    assert math.fsum(jobs_w[at][1] for at in chosen) <= free_w * (1 + 1e-12)


@given(
    st.lists(st.tuples(st.integers(1, 5), st.floats(0, 1e308)), max_size=10),
    st.integers(0, 20),
    st.floats(0, 1e308),
)
def test_the_power_of_the_chosen_exceeds_the_free_power_by_a_trillionth_at_most(
    jobs: list[tuple[int, float]], free_nodes: int, free_w: float
) -> None:
    chosen = fill(jobs, free_nodes, free_w)
    assert math.fsum(jobs[at][1] for at in chosen) <= free_w * (1 + 1e-12)
    assert taken(jobs, chosen) <= free_nodes


@pytest.mark.parametrize("seed", range(25))
def test_integer_programming_agrees_on_windows_of_twenty(seed: int) -> None:
    from scipy.optimize import Bounds, LinearConstraint, milp

    rng = np.random.default_rng(seed)
    midplanes = rng.choice([1, 1, 2, 4, 8, 16, 24, 32, 48, 96], 20)
    watts = midplanes * 512 * rng.uniform(30.0, 97.0, 20).round(2)
    free, free_w = int(rng.integers(1, 97)), float(rng.uniform(0.05, 4.0) * 1e6)
    exact = milp(
        -midplanes.astype(float),
        integrality=np.ones(20),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(np.array([midplanes, watts / 1e6]), ub=[free, free_w / 1e6]),
    )
    chosen = best_fill(midplanes * 512, watts, free * 512 + 511, free_w)
    assert midplanes[chosen].sum() == round(-exact.fun)


def test_without_nodes_or_power_nothing_starts_but_what_needs_none() -> None:
    jobs = [(1, 0.0), (2, 5.0), (1, 0.0)]
    assert fill(jobs, 0, 100.0) == []
    assert fill(jobs, 9, 0.0) == [0, 2]
    assert fill(jobs, 9, -1.0) == []
    assert fill([], 9, 100.0) == []


def test_a_job_whose_power_is_no_power_never_starts() -> None:
    jobs = [(1, math.inf), (1, math.nan), (1, -3.0), (1, 7.0)]
    assert fill(jobs, 9, 100.0) == [3]
    assert fill(jobs, 9, math.inf) == [3]
    assert fill(jobs, 9, math.nan) == []


def test_a_job_that_exceeds_the_machine_leaves_the_others_their_turn() -> None:
    assert fill([(1024, 1.0), (512, 1.0), (512, 1.0)], 1023, 10.0) == [1]


def test_two_jobs_that_exceed_the_free_power_by_a_nanowatt_do_not_both_start() -> None:
    assert fill([(1, 50.0), (1, 50.0)], 9, 100.0) == [0, 1]
    assert fill([(1, 50.0), (1, 50.000000001)], 9, 100.0) == [0]
