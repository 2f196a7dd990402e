"""The cost model of overprovisioning, and what a buyer's own prices buy."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import examples
from hypothesis import assume, given
from hypothesis import strategies as st

from odonata.provisioning.cost import (
    APPLICATIONS,
    HOPPER,
    PRINTED,
    RISING,
    Inputs,
    Rack,
    break_even,
    break_evens,
    cost_ratio,
    energy_cost,
    hundredth_up,
    limit_ratio,
    provision,
    r_c_bound,
    sweep,
    without_floors,
)
from odonata.provisioning.prices import (
    Application,
    Kind,
    Prices,
    curve_of,
    loss_of_scores,
    read_prices,
)
from odonata.provisioning.purchase import (
    SWEPT,
    compared,
    cost_per_job,
    job_time,
    machines,
    mix_time,
    price_sweep,
    remarks,
    running_cost,
    share_w,
    speedup,
)
from odonata.provisioning.scaling import Curve, Line, fitted_line
from odonata.provisioning.table import Point
from odonata.provisioning.table_checks import table_of_points
from pdes.errors import Refused

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE, PAGE = ROOT / "scripts" / "prices.toml", ROOT / "docs" / "buying.md"

inputs_of = st.builds(
    Inputs,
    r_c=st.floats(1.0, 3.0),
    r_p=st.floats(0.0, 0.6),
    power_w=st.floats(1000, 20_000),
    node_max_w=st.floats(200, 600),
    node_min_w=st.floats(80, 200),
)
lines = st.sampled_from([*APPLICATIONS.values()])
racks = st.builds(Rack, st.integers(1, 40), st.floats(0, 30_000))


# -- the thesis


@pytest.mark.parametrize("name", ["SPhot", "BT-MZ", "LU-MZ"])
def test_the_times_of_table_4_9_come_out_within_half_a_percent(name: str) -> None:
    found, printed = provision(Inputs(), APPLICATIONS[name]), PRINTED[name]
    assert (found.n_wc, found.n_ovp) == (printed.n_wc, printed.n_ovp) == (18, 30)
    assert found.c_wc == pytest.approx(printed.c_wc)
    assert found.t_ovp == pytest.approx(printed.t_ovp, rel=0.005)
    assert found.t_wc == pytest.approx(printed.t_wc, rel=0.005)
    assert found.s_ovp == pytest.approx(printed.t_wc / printed.t_ovp, rel=0.005)


def test_table_4_9_has_sp_mz_wrong_and_the_limit_of_140_w() -> None:
    found = provision(Inputs(), APPLICATIONS["SP-MZ"])
    assert (found.t_ovp, found.t_wc) == (pytest.approx(3.64), pytest.approx(3.638, abs=1e-3))
    assert found.n_lim == 38
    assert provision(Inputs(node_min_w=140), APPLICATIONS["SP-MZ"]).n_lim == 50


@pytest.mark.parametrize(
    ("name", "r_c", "r_p"),
    [("LU-MZ", 1.5, 0.402), ("SPhot", 1.73, 0.252), ("SP-MZ", 1.73, 0.27), ("BT-MZ", None, 0.114)],
)  # fmt: skip
def test_break_evens_with_whole_nodes_are_those_that_were_checked(
    name: str, r_c: float | None, r_p: float
) -> None:
    found = break_evens(Inputs(), APPLICATIONS[name])
    exact = found["r_c"].value
    assert (None if exact is None else hundredth_up(exact)) == r_c
    assert found["r_p"].value == pytest.approx(r_p, abs=5e-4)


def test_fractions_of_nodes_break_even_earlier() -> None:
    found = without_floors(Inputs(), APPLICATIONS["LU-MZ"])
    assert found["r_c"] == pytest.approx(1.431, abs=1e-3)
    assert found["r_p"] == pytest.approx(0.438, abs=1e-3)
    assert found["power_w"] == pytest.approx(5060.3, abs=0.1)
    assert without_floors(Inputs(), APPLICATIONS["BT-MZ"])["r_c"] is None


def test_watts_bound_the_cost_ratio_at_2_11() -> None:
    assert r_c_bound(Inputs()) == pytest.approx(38 / 18)
    for line in APPLICATIONS.values():
        beyond = [provision(Inputs(r_c=r_c), line).s_ovp for r_c in (38 / 18, 2.5, 9.0)]
        assert beyond[0] == beyond[1] == beyond[2]


def test_the_time_of_lu_mz_is_negative_at_48_nodes_and_has_no_answer_there() -> None:
    line = APPLICATIONS["LU-MZ"]
    assert line.time_s(48) < 0 < line.time_s(47)
    found = provision(Inputs(r_c=1.72, power_w=28 * 380), line)
    assert found.n_ovp == 48
    assert found.s_ovp is None
    assert "48 nodes is -0.086 s" in found.why_not


def test_a_sweep_stops_where_a_line_ends_and_says_so() -> None:
    swept = sweep(Inputs(), APPLICATIONS["SPhot"], "power_w")
    assert swept.stops == ((11_020.0, "49 nodes, and the line holds to 48"),)
    assert swept.valid[-1].high == 11_020
    negative = sweep(Inputs(power_w=28 * 380), APPLICATIONS["LU-MZ"], "r_c")
    ((at, why_not),) = negative.stops
    assert at == pytest.approx(48 / 28)
    assert why_not.endswith("-0.086 s")


def test_bt_mz_never_breaks_even_but_in_performance() -> None:
    found = break_evens(Inputs(), APPLICATIONS["BT-MZ"])
    assert [name for name, point in found.items() if point.value is not None] == ["r_p"]
    assert found["r_c"].why_none.startswith("s_ovp is at most 0.901")


def test_hungry_and_frugal_high_end_nodes_both_end_the_benefit() -> None:
    """At 368 W there are 19 of them; below 250 W watts bind the cheaper ones, at 38."""
    found = break_evens(Inputs(), APPLICATIONS["SPhot"])["node_max_w"]
    assert found.benefits == ((7000 / 28, 7000 / 19),)
    assert found.value == 7000 / 19


def test_effective_cost_ratios_are_those_of_the_racks() -> None:
    found = cost_ratio(64_800, 3300, 1700, Rack())
    assert found is not None
    assert (found.high_end_nodes, found.cheaper_nodes) == (16, 24)
    assert (found.high_end_each, found.cheaper_each) == (4050, 2700)
    assert found.cheaper_mean_of_racks == 2825
    assert round(4050 / round(found.cheaper_mean_of_racks, -2), 2) == 1.45
    assert found.by_node == 1.5
    assert round(limit_ratio(3300, 1700, Rack()), 2) == 1.65
    assert cost_ratio(10_000, 3300, 1700, Rack()) is None


def test_a_core_hour_of_hopper_costs_1_8_cents() -> None:
    assert HOPPER.per_year == 21_100_000
    assert HOPPER.core_hours == pytest.approx(1_142_275_968)
    assert round(HOPPER.per_core_hour, 3) == 0.018
    assert energy_cost(2.6e6, 0.10) == pytest.approx(2_277_600)


def test_passmark_scores_save_a_fifth_of_the_time_where_the_thesis_takes_27_percent() -> None:
    assert round(loss_of_scores(17_812, 13_985, "thesis"), 2) == 0.27
    assert loss_of_scores(17_812, 13_985) == pytest.approx(0.2149, abs=1e-4)


# -- what always holds


@given(inputs_of, lines, st.floats(0.0, 0.6))
def test_s_falls_with_the_performance_loss(inputs: Inputs, line: Line, other: float) -> None:
    less, more = sorted((inputs.r_p, other))
    high = provision(replace(inputs, r_p=less), line).s_ovp
    low = provision(replace(inputs, r_p=more), line).s_ovp
    assert (high is None) == (low is None)
    if high is not None and low is not None:
        assert low <= high


@given(inputs_of, lines)
def test_the_overprovisioned_machine_exceeds_neither_money_nor_watts(
    inputs: Inputs, line: Line
) -> None:
    found = provision(inputs, line)
    assert found.n_ovp <= found.n_wc * inputs.r_c + 1e-8
    assert found.n_ovp * inputs.node_min_w <= inputs.power_w + 1e-6
    assert found.n_wc * inputs.node_max_w <= inputs.power_w + 1e-6
    assert found.n_ovp + 1 > min(found.n_wc * inputs.r_c, inputs.power_w / inputs.node_min_w)


@examples(25)
@given(inputs_of, lines, st.sampled_from([*RISING]))
def test_a_sweep_is_the_model_at_every_value_of_it(inputs: Inputs, line: Line, name: str) -> None:
    for step in sweep(inputs, line, name).steps:
        value = 0.5 * step.low + 0.5 * step.high
        there = provision(replace(inputs, **{name: value}), line).s_ovp
        shown = None if step.s is None or step.s_end is None else (step.s + step.s_end) / 2
        assert there == (None if shown is None else pytest.approx(shown))


@examples(25)
@given(inputs_of, lines, st.sampled_from([*RISING]))
def test_at_a_break_even_s_passes_1(inputs: Inputs, line: Line, name: str) -> None:
    value = break_even(sweep(inputs, line, name), RISING[name]).value
    assume(value is not None)
    assert value is not None

    def at(share: float) -> float | None:
        return provision(replace(inputs, **{name: value * share}), line).s_ovp

    better, worse = (1 + 1e-7, 1 - 1e-7) if RISING[name] else (1 - 1e-7, 1 + 1e-7)
    good, bad = at(better), at(worse)
    assert good is not None
    assert good > 1 - 1e-5
    assert bad is None or bad < 1 + 1e-5
    assert name == "r_p" or bad is None or bad < 1


@given(inputs_of, lines)
def test_without_floors_s_is_1_at_a_break_even(inputs: Inputs, line: Line) -> None:
    for name, value in without_floors(inputs, line).items():
        if value is not None:
            there = provision(replace(inputs, **{name: value}), line, floors=False)
            assert there.t_wc == pytest.approx(there.t_ovp, rel=1e-6)


@given(st.floats(1, 1e6), st.floats(100, 9000), racks)
def test_money_is_never_exceeded_and_no_further_node_fits(
    money: float, price: float, rack: Rack
) -> None:
    nodes = rack.affordable(money, price)
    assert rack.cost(nodes, price) <= money + 1e-5
    assert rack.cost(nodes + 1, price) > money - 1e-5


@given(st.integers(1, 500), st.integers(1, 9000), st.integers(1, 40), st.integers(0, 30_000))
def test_exactly_the_cost_of_some_nodes_buys_them(
    nodes: int, price: int, size: int, empty: int
) -> None:
    rack = Rack(size, empty)
    assert rack.affordable(rack.cost(nodes, price), price) == nodes


@given(st.floats(-3, 3), st.floats(1, 99), st.lists(st.integers(1, 64), min_size=2, unique=True))
def test_a_line_is_found_again_from_its_points(slope: float, high: float, at: list[int]) -> None:
    line = Line(slope, high + 200, 64)
    found, error = fitted_line(at, [line.time_s(n) for n in at], 64)
    assert found.slope == pytest.approx(slope, abs=1e-9)
    assert found.intercept == pytest.approx(high + 200)
    assert error < 1e-9


def test_a_line_through_one_number_of_nodes_is_refused() -> None:
    with pytest.raises(Refused, match="two numbers of nodes or more"):
        fitted_line([4, 4], [3.0, 2.0], 4)


@pytest.mark.parametrize("wrong", [{"r_c": 0}, {"r_p": 1.0}, {"r_p": -0.1}, {"power_w": math.inf},
                                   {"node_max_w": math.nan}])  # fmt: skip
def test_inputs_without_sense_are_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(Refused, match=next(iter(wrong))):
        Inputs(**wrong)


# -- a buyer's prices


def told(**other: Any) -> Prices:
    high_end = Kind("new", 3300.0, 380.0, None, 24)
    cheaper = Kind("old", 1700.0, None, 180.0, 16)
    apps = {name: Application(line) for name, line in APPLICATIONS.items()}
    return replace(Prices("USD", 85_000.0, 7000.0, high_end, cheaper, 0.27, Rack(), apps), **other)


def test_the_example_buys_32_cheaper_nodes_or_18_others() -> None:
    prices = read_prices(EXAMPLE)
    worst, over, *others = machines(prices)
    assert (worst.nodes, worst.limited_by, worst.cost) == (18, "money and watts", 83_400)
    assert (over.nodes, over.limited_by, over.money_left) == (32, "money", 6600)
    assert (over.by_watts, over.watts_left) == (38, 7000 - 32 * 180)
    assert [one.nodes for one in others] == [18, 20]
    mix, _ = speedup(prices)
    assert mix == pytest.approx(1.203, abs=1e-3)


def test_every_key_is_in_the_example_or_on_the_page() -> None:
    from odonata.provisioning.prices import APPLICATION, SECTIONS

    text = EXAMPLE.read_text() + PAGE.read_text()
    keys = {name for keys in (*SECTIONS.values(), APPLICATION) for name in keys}
    assert [name for name in sorted(keys) if not re.search(rf"\b{name} = ", text)] == []


def test_the_money_of_18_high_end_nodes_gives_the_machines_of_the_thesis() -> None:
    """Without racks, and at its prices of 1.7 to 1."""
    prices = told(rack=Rack(1, 0.0), money=18 * 1.7 * 1000, high_end=Kind("", 1700, 380, None, 1),
                  cheaper=Kind("", 1000, None, 180, 1))  # fmt: skip
    for name, line in APPLICATIONS.items():
        found = provision(Inputs(), line)
        assert [one.nodes for one in machines(prices)] == [found.n_wc, found.n_ovp]
        assert speedup(prices, name)[0] == pytest.approx(found.s_ovp)


@given(st.floats(1, 3e5), st.floats(1, 2e4), racks)
def test_no_machine_takes_more_money_or_watts_than_there_are(
    money: float, power_w: float, rack: Rack
) -> None:
    for one in machines(told(money=money, power_w=power_w, rack=rack)):
        assert one.cost <= money + 1e-5
        assert one.watts_needed <= power_w + 1e-5
        assert one.money_left == pytest.approx(money - one.cost)


def check_sweep(prices: Prices, what: str) -> None:
    """Hold every step of a sweep against the answer at a value within it."""
    field = {"money": "money", "power_w": "power_w", "loss": "r_p"}.get(what)
    for step in price_sweep(prices, what).steps:
        value = 0.3 * step.low + 0.7 * step.high
        cheaper = replace(prices.cheaper, price=value)
        there = replace(prices, **{field: value}) if field else replace(prices, cheaper=cheaper)
        shown = None if step.s is None or step.s_end is None else 0.3 * step.s + 0.7 * step.s_end
        assert speedup(there)[0] == (None if shown is None else pytest.approx(shown))


@examples(25)
@given(st.floats(3e4, 2e5), st.floats(2e3, 1.5e4), st.sampled_from([*SWEPT]))
def test_a_sweep_of_prices_is_the_answer_at_every_value(
    money: float, power_w: float, what: str
) -> None:
    prices = told(money=money, power_w=power_w)
    prices = replace(prices, applications={"SPhot": prices.applications["SPhot"]})
    check_sweep(prices, what)


def test_the_price_at_which_cheaper_nodes_break_even_pays_for_what_is_needed() -> None:
    prices = read_prices(EXAMPLE)
    point = break_even(price_sweep(prices, "price", "LU-MZ"), SWEPT["price"])
    assert point.value == pytest.approx((85_000 - 2 * 12_000) / 25)


def test_jobs_at_once_share_a_machine_and_its_cost() -> None:
    prices = read_prices(EXAMPLE)
    one = machines(prices)[1]
    two = replace(prices.applications["SPhot"], jobs_at_once=2)
    alone, _ = job_time(prices, prices.applications["SPhot"], one)
    shared, _ = job_time(prices, two, one)
    assert alone == pytest.approx(73.07 - 1.114 * 32)
    assert shared == pytest.approx(73.07 - 1.114 * 16)
    both = replace(prices, applications={"SPhot": two})
    assert mix_time(both, one, "SPhot")[0] == pytest.approx((73.07 - 1.114 * 16) / 2)


def test_a_job_costs_its_part_of_a_year() -> None:
    prices = read_prices(EXAMPLE)
    one = machines(prices)[1]
    year = 78_400 / 4 + 7840 + 6 * 8760 * 0.10 + 5000
    running = running_cost(prices, one)
    assert running is not None
    assert running.per_year == pytest.approx(year)
    assert running.per_core_hour == pytest.approx(year / (32 * 16 * 0.85 * 8760))
    each = year * (73.07 - 1.114 * 32) / (0.85 * 8760 * 3600)
    assert cost_per_job(prices, one, "SPhot") == pytest.approx(each)
    assert cost_per_job(told(), machines(told())[1], "SPhot") is None


def test_more_nodes_than_a_line_holds_for_have_no_answer() -> None:
    s, why_not = speedup(told(money=1e6, power_w=1e5), "SPhot")
    assert s is None
    assert why_not == "new: 244 nodes, and the line holds to 48"


def test_below_its_first_number_of_nodes_a_line_has_no_answer() -> None:
    line = Line(-1.0, 60.0, 40, 19)
    assert [bool(line.why_not(n)) for n in (18, 19, 40, 41)] == [True, False, False, True]
    found = provision(Inputs(), line)
    assert (found.n_wc, found.s_ovp) == (18, None)
    assert found.why_not == "18 nodes, and the line holds from 19"
    assert without_floors(Inputs(), line)["r_c"] is None
    prices = told(applications={"A": Application(line)})
    assert speedup(prices, "A") == (None, "new: 18 nodes, and the line holds from 19")
    assert [at for at, _ in sweep(Inputs(), line, "power_w").stops] == [19 * 380, 25 * 380]


# -- measured tables


def measured(counts: tuple[int, ...] = (8, 16, 32)) -> Curve:
    """Seconds are 800 / nodes, and a quarter more with 120 W per node in place of 200."""
    points = [Point(n, 8, 115, 800 / n, n * 200) for n in counts]
    points += [Point(n, 8, 51, 1000 / n, n * 120) for n in counts]
    points += [Point(n, 4, 115, 3000 / n, n * 150) for n in counts]  # never the best
    return curve_of(table_of_points("A", points), counts[0], counts[-1])


def test_a_curve_goes_through_measured_times_and_keeps_a_power_law_between_them() -> None:
    curve = measured()
    assert curve.node_w[0] == (120, 200)
    for nodes in range(8, 33):
        assert curve.time_s(nodes) == pytest.approx(800 / nodes, rel=1e-5)
    assert curve.why_not(7) == "7 nodes, and its times are of 8 to 32"
    assert curve.why_not(33) == "33 nodes, and its times are of 8 to 32"
    assert curve.why_not(0) == "there is not one node"


def test_a_curve_within_a_bound_takes_what_a_node_may_draw() -> None:
    curve = replace(measured(), bound_w=24 * 150.0)
    assert curve.used(24) == (24, pytest.approx(1000 / 24, rel=1e-5))
    assert curve.used(18) == (18, pytest.approx(800 / 18, rel=1e-5))
    assert curve.used(31)[0] == 16  # 31 nodes have 116 W each, and 16 of them 200 W
    assert curve.time_s(31) == 800 / 16
    assert replace(curve, bound_w=8 * 120.0 - 1).why_not(9) == (
        "on 9 nodes or fewer nothing was measured within 959 W")  # fmt: skip


@given(st.integers(8, 32), st.floats(900, 9000), st.floats(1, 2))
def test_more_power_never_slows_a_curve_down(nodes: int, bound_w: float, more: float) -> None:
    low, high = (replace(measured(), bound_w=bound_w * by) for by in (1, more))
    assert high.time_s(nodes) <= low.time_s(nodes)
    assert low.time_s(nodes) >= measured().time_s(nodes)


def tabled(**other: Any) -> Prices:
    jobs, bound_w = other.pop("jobs_at_once", 1), other.pop("bound_w", None)
    app = Application(measured(), jobs_at_once=jobs, bound_w=bound_w)
    cheaper = Kind("old", 1700.0, 200.0, 120.0, 16)
    return told(applications={"A": app}, cheaper=cheaper, **other)


def test_each_machine_has_its_own_share_of_the_watts() -> None:
    prices = tabled(power_w=4500.0, jobs_at_once=2)
    worst, over = compared(prices)
    app = prices.applications["A"]
    assert (worst.nodes, over.nodes, over.at_full_power) == (11, 32, False)
    assert share_w(prices, app, worst) == math.inf
    assert share_w(prices, app, over) == 2250
    assert job_time(prices, app, over)[0] == pytest.approx(1000 / 16)  # 141 W each
    full = tabled(power_w=6400.0, jobs_at_once=2)
    assert compared(full)[1].at_full_power
    assert share_w(full, app, compared(full)[1]) == math.inf
    assert job_time(full, app, compared(full)[1])[0] == 800 / 16
    told_bound = replace(app, bound_w=1920.0)
    assert {share_w(full, told_bound, one) for one in compared(full)} == {1920.0}
    assert job_time(full, told_bound, compared(full)[1])[0] == pytest.approx(1000 / 16)


def test_nodes_that_a_job_leaves_unused_are_told() -> None:
    prices = tabled(bound_w=3200.0, jobs_at_once=1)
    assert remarks(prices, "A") == [
        f"a job that has {nodes} is fastest on 16, within 3,200 W" for nodes in ("18 new", "32 old")
    ]
    high = replace(prices, cheaper=replace(prices.cheaper, max_w=150.0))
    assert "nodes that draw 200 W, and cheaper.power_max_w is 150" in remarks(high, "A")[-1]
    assert remarks(tabled(jobs_at_once=2, money=82_000.0, power_w=9000.0), "A") == [
        "2 jobs at once have 8 new each, which leaves 1 of 17 without a job"
    ]


@examples(20)
@given(st.floats(3e4, 1.2e5), st.floats(2e3, 1.2e4), st.integers(1, 3), st.sampled_from([*SWEPT]))
def test_a_sweep_of_a_table_is_the_answer_at_every_value(
    money: float, power_w: float, jobs: int, what: str
) -> None:
    prices = tabled(money=money, power_w=power_w, jobs_at_once=jobs)
    check_sweep(prices, what)


def test_a_table_is_read_with_its_range_and_bound(tmp_path: Path) -> None:
    rows = ["application,nodes,cores,cap_w,seconds,watts"]
    for nodes in (8, 16, 24):
        rows += [f"mine,{nodes},8,115,{60 - nodes},{nodes * 200}", f"mine,{nodes},8,51,"
                 f"{70 - nodes},{nodes * 120}"]  # fmt: skip
    (tmp_path / "measured.csv").write_text("\n".join(rows) + "\n")
    text = re.sub(r"\[applications\.SPhot\].*?(?=\[running\])",
                  '[applications.A]\ntable = "measured.csv"\nmeasured = "mine"\nbound_w = 3300\n',
                  EXAMPLE.read_text(), flags=re.DOTALL)  # fmt: skip
    path = tmp_path / "prices.toml"
    path.write_text(text)
    found = read_prices(path).applications["A"]
    assert isinstance(found.line, Curve)
    assert (found.line.from_nodes, found.line.limit, found.bound_w) == (8, 24, 3300)
    within = replace(found.line, bound_w=3300.0)
    # 24 nodes without a cap draw 4,800 W, and with one they are slower than 16 without
    assert [within.used(n) for n in (8, 16, 24)] == [(8, 52), (16, 44), (16, 44)]
    shorter = read_prices(path, ["applications.A.from_nodes=10", "applications.A.limit=20"])
    assert [bool(shorter.applications["A"].line.why_not(n)) for n in (9, 10, 20, 21)] == [
        True, False, False, True]  # fmt: skip
    for wrong, words in (('measured="other"', "has no application other; it has mine"),
                         ("limit=25", "A.limit = 25: from 8 to 24, as was measured"),
                         ("from_nodes=7", "A.from_nodes = 7: from 8 to 24"),
                         ('table="none.csv"', "none.csv: No such file")):  # fmt: skip
        with pytest.raises(Refused, match=words):
            read_prices(path, [f"applications.A.{wrong}"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("budget.money=-5", "budget.money = -5: a number above 0"),
        ("budget.power_w='7 kW'", 'budget.power_w = "7 kW": a number above 0, without a unit'),
        ("budget.mony=5", "budget.mony: unknown; did you mean budget.money?"),
        ("rack.nodes=1.5", "rack.nodes = 1.5: a whole number from 1"),
        ("rack.price=true", "rack.price = true: a number, 0 or more"),
        ("high_end.power_max_w=3", "high_end.power_max_w = 3: give it or its parts, not both"),
        ("cheaper.power_min_w=400", "cheaper.power_min_w = 400: at most what the node draws"),
        ("performance.loss=0.2", "performance.loss = 0.2: give it or scores, not both"),
        ("performance.from_scores=x", 'performance.from_scores = "x": "time" or "thesis"'),
        ("cheaper.score=18000", "high_end.score = 17812: at least cheaper.score, 18000"),
        ("applications.X.slope=1", "applications.X: slope and intercept go together"),
        ("applications.X.weight=1", "applications.X: slope and intercept are needed, or a table"),
        ("applications.LU-MZ.table=a", "slope and intercept, or a table, not both"),
        ("applications.LU-MZ.bound_w=9", "applications.LU-MZ.bound_w: this goes with a table"),
        ("applications.SPhot.from_nodes=49", "SPhot.from_nodes = 49: at most limit, 48"),
        ("applications=3", "applications = 3: one section each"),
        ("running.utilisation=85", "running.utilisation = 85: a share above 0, up to 1"),
        ("running.maintenance=9", "running.maintenance = 9: give it or maintenance_share"),
        ("running.power_w=9000", "running.power_w = 9000: at most the budget's, 7000"),
        ("runing.years=3", "runing: unknown; did you mean running?"),
        ("currency=3", "currency = 3: text, not empty"),
        ("budget.money", "a key and its value are needed"),
        ("currency.x=3", "currency is no section"),
        ("budget.money=nan", "budget.money = nan: a number above 0"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_prices_is_named(change: str, words: str) -> None:
    with pytest.raises(Refused) as refusal:
        read_prices(EXAMPLE, [change])
    assert words in str(refusal.value)
    assert len(str(refusal.value).splitlines()) == 1


def test_all_that_is_missing_is_named_at_once(tmp_path: Path) -> None:
    path = tmp_path / "empty.toml"
    path.write_text("[running]\n")
    with pytest.raises(Refused) as refusal:
        read_prices(path)
    lines = str(refusal.value).splitlines()
    assert all(line.startswith(f"{path}: ") for line in lines)
    for key in ("budget.money", "budget.power_w", "high_end.price", "high_end.power_max_w",
                "cheaper.price", "cheaper.power_min_w", "performance.loss", "running.years",
                "cheaper.cores"):  # fmt: skip
        assert sum(f"{key} is missing" in line for line in lines) == 1
    assert any("applications: one section each" in line for line in lines)


def test_files_that_are_no_toml_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    for content, words in (
        (b"a = 1\nb = x", "line 2, column 5: "),
        (b"\n\xff", "line 2: not text in UTF-8"),
    ):
        path.write_bytes(content)
        with pytest.raises(Refused, match=words):
            read_prices(path)
    with pytest.raises(Refused, match="No such file"):
        read_prices(tmp_path / "none.toml")
