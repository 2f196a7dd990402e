"""The search for configurations within a power bound."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odonata.provisioning.search import (
    FORMS,
    MACHINES,
    UNLIMITED,
    best,
    best_at_each_n,
    canonical,
    packed_max,
    packed_min,
    peak_w,
    search,
    spread_max,
    spread_min,
    why_none,
    worst_case,
    worst_case_nodes,
)
from odonata.provisioning.table import Point, Table, sorted_table
from pdes.errors import Refused


def table_of(*points: tuple[float, ...], application: str = "A") -> Table:
    kinds = (np.int64, np.int64, np.float64, np.float64, np.float64)
    columns = [np.array([point[at] for point in points], kind) for at, kind in enumerate(kinds)]
    return sorted_table(application, *columns)


PRINTED = table_of(
    (12, 16, 115, 13.9, 1975),
    (20, 16, 115, 9.1, 3240),
    (22, 16, 115, 8.5, 3560),
    (26, 12, 80, 3.6, 3497),
    (32, 4, 51, 5.0, 2900),
    (32, 4, 115, 4.8, 3200),
    (32, 14, 115, 2.2, 5600),
    application="SP-MZ",
)
"""Some points of SP-MZ, those of table 4.2 among them."""


# -- a twin in plain loops


def twin_form(table: Table, form: str, bound_w: float, most: float = math.inf) -> Point | None:
    points = [table.point(at) for at in range(len(table))]
    cores = [it.cores for it in points]
    caps = [it.cap_w for it in points]
    chosen = None
    for point in points:
        wanted = max(cores) if form[:6] == "packed" else min(cores)
        cap_w = max(caps) if form[-3:] == "max" else min(caps)
        fits = point.watts <= bound_w and point.nodes <= most
        if (
            point.cores == wanted
            and point.cap_w == cap_w
            and fits
            and (chosen is None or point.nodes > chosen.nodes)
        ):
            chosen = point
    return chosen


def twin_best(points: list[Point], bound_w: float) -> Point | None:
    chosen = None
    for point in points:
        if point.watts > bound_w:
            continue
        if chosen is None or (point.seconds, point.watts, *point[:3]) < (
            chosen.seconds,
            chosen.watts,
            *chosen[:3],
        ):
            chosen = point
    return chosen


whole = st.integers(1, 6)
tables = st.lists(
    st.tuples(whole, whole, whole, whole, st.integers(1, 30)),
    min_size=1,
    max_size=40,
    unique_by=lambda it: it[:3],
).map(lambda points: table_of(*points))
"""Small numbers, so that there are many ties."""
bounds = st.one_of(st.integers(1, 32).map(float), st.floats(0.5, 32), st.just(UNLIMITED))


@given(tables, bounds)
def test_the_search_finds_what_plain_loops_find(table: Table, bound_w: float) -> None:
    found = search(table, bound_w, node_w=3.0)
    points = [table.point(at) for at in range(len(table))]
    assert found.forms == {form: twin_form(table, form, bound_w) for form in FORMS}
    assert found.best == twin_best(points, bound_w)
    each = [twin_best([it for it in points if it.nodes == n], bound_w) for n in range(1, 7)]
    assert best_at_each_n(table, bound_w) == [it for it in each if it is not None]
    nodes = math.inf if math.isinf(bound_w) else math.floor(bound_w / 3.0)
    assert found.worst_case_nodes == nodes
    largest = twin_form(table, "packed-max", UNLIMITED, nodes)
    fits = largest is not None and largest.watts <= bound_w
    assert found.worst_case == (largest if fits else None)


@given(tables, bounds)
def test_nothing_is_above_the_bound_and_nothing_is_faster_than_the_best(
    table: Table, bound_w: float
) -> None:
    found = search(table, bound_w, node_w=3.0)
    there = [point for point in found.points.values() if point is not None]
    assert all(point.watts <= bound_w for point in there)
    if found.best is None:
        assert there == []
        assert (table.watts > bound_w).all()
    else:
        assert all(found.best.seconds <= point.seconds for point in there)
        assert min(it.seconds for it in best_at_each_n(table, bound_w)) == found.best.seconds
        assert (found.speedup("best") or 1.0) >= 1.0


@given(tables, st.floats(0.5, 32), st.floats(0, 32))
def test_more_power_never_slows_the_best_nor_takes_nodes_from_a_form(
    table: Table, bound_w: float, more_w: float
) -> None:
    few, many = search(table, bound_w), search(table, bound_w + more_w)
    if few.best is not None:
        assert many.best is not None
        assert many.best.seconds <= few.best.seconds
    for form in FORMS:
        one, other = few.forms[form], many.forms[form]
        assert one is None or (other is not None and other.nodes >= one.nodes)


@given(tables, bounds)
def test_there_is_a_reason_for_every_none_and_for_nothing_else(
    table: Table, bound_w: float
) -> None:
    for name, point in search(table, bound_w, 3.0).points.items():
        assert bool(why_none(table, name, bound_w, 3.0)) == (point is None)


# -- as the thesis has it


def test_the_printed_points_of_sp_mz_come_out_at_3500_w() -> None:
    found = search(PRINTED, 3500.0)
    assert found.forms["packed-max"] == Point(20, 16, 115, 9.1, 3240)
    assert found.best == Point(26, 12, 80, 3.6, 3497)
    assert found.best.name == "(26×12, 80)"
    assert found.worst_case == Point(12, 16, 115, 13.9, 1975)
    assert found.worst_case_nodes == 12
    assert found.degree == 26 / 12
    assert found.speedup("best") == pytest.approx(2.53, abs=0.005)
    assert found.speedup("best", "worst-case") == pytest.approx(3.86, abs=0.005)
    assert found.wasted("worst-case") == pytest.approx(0.436, abs=0.0005)
    assert found.wasted("best") == pytest.approx(0.0009, abs=0.0001)


def test_with_unlimited_power_spread_stays_on_the_fewest_cores() -> None:
    found = search(PRINTED, UNLIMITED)
    assert found.forms["spread-max"] == Point(32, 4, 115, 4.8, 3200)
    assert found.best == Point(32, 14, 115, 2.2, 5600)
    assert found.worst_case == Point(22, 16, 115, 8.5, 3560)
    assert (found.degree, found.wasted("best")) == (None, None)


@pytest.mark.parametrize(
    ("bound_w", "nodes"),
    [(2500, 8), (3000, 10), (3500, 12), (4000, 13), (4500, 15), (289.9, 0), (290, 1)],
)
def test_the_worst_case_powers_as_many_nodes_as_all_could_draw_their_peak(
    bound_w: float, nodes: int
) -> None:
    assert worst_case_nodes(bound_w) == nodes  # at 4500 W the thesis says 16, which needs 4640


def test_cab_is_whole_at_its_last_bound() -> None:
    cab = MACHINES["cab"]
    assert (peak_w(), cab.node_w) == (290, 230)
    assert worst_case_nodes(cab.bounds_w[-1], cab.node_w) == 64


def test_the_worst_case_takes_the_next_smaller_number_that_was_measured() -> None:
    assert worst_case(PRINTED, 4500.0) == Point(12, 16, 115, 13.9, 1975)  # for 15 nodes
    assert search(PRINTED, 4500.0).worst_case_nodes == 15


def test_ties_go_to_less_power_then_fewer_nodes() -> None:
    tied = table_of((9, 4, 51, 5, 90), (8, 6, 80, 5, 80), (7, 8, 51, 5, 80), (6, 2, 51, 6, 10))
    assert best(tied, 100.0) == Point(7, 8, 51, 5, 80)


def test_each_form_has_a_function_of_its_own() -> None:
    functions = (packed_max, packed_min, spread_max, spread_min)
    for form, function in zip(FORMS, functions, strict=True):
        assert function(PRINTED, 3500.0) == canonical(PRINTED, form, 3500.0)
    assert packed_min(PRINTED, 3500.0) is None  # no point has all cores under the lowest cap


# -- reasons and refusals


def test_the_reason_names_what_was_measured() -> None:
    reasons = {
        ("best", 1000.0): "the least that was measured of SP-MZ is 1,975 W, by (12×16, 115)",
        ("spread-max", 3100.0): "the least that was measured of SP-MZ with 4 cores and a cap of "
        "115 W is 3,200 W, by (32×4, 115)",
        ("packed-min", 3500.0): "no configuration of SP-MZ with 16 cores and a cap of 51 W was "
        "measured",
        ("worst-case", 3000.0): "10 nodes could draw their peak at once, and with 16 cores and a "
        "cap of 115 W SP-MZ was measured on 12 or more",
    }
    for (name, bound_w), words in reasons.items():
        assert why_none(PRINTED, name, bound_w) == words
    assert why_none(PRINTED, "worst-case", 2000.0, 100.0) == (
        "(20×16, 115) of SP-MZ draws 3,240 W, so a node draws more at its peak than was assumed"
    )


def test_an_empty_table_has_nothing_and_says_so() -> None:
    empty = table_of()
    found = search(empty, 3500.0)
    assert set(found.points.values()) == {None}
    assert best_at_each_n(empty, 3500.0) == []
    assert why_none(empty, "best", 3500.0) == "the table of A is empty"


@pytest.mark.parametrize("bound_w", [0.0, -1.0, math.nan, -math.inf])
def test_a_bound_that_is_none_is_refused(bound_w: float) -> None:
    with pytest.raises(Refused, match=r"a power bound of .* W: it must be above 0"):
        search(PRINTED, bound_w)


@pytest.mark.parametrize("node_w", [0.0, -1.0, math.nan, math.inf])
def test_a_node_without_a_peak_is_refused(node_w: float) -> None:
    with pytest.raises(Refused, match=r"a node that draws .* W at most: it must be above 0"):
        worst_case_nodes(3500.0, node_w)
