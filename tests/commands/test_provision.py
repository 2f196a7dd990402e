"""`odonata provision`, and the page for the person who buys."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from odonata.commands.provision import command, price_facts
from odonata.provisioning.cost import BreakEven
from odonata.provisioning.prices import Prices, read_prices
from pdes.errors import Refused

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "scripts" / "prices.toml"


def run(*words: Any) -> str:
    result = CliRunner().invoke(command, [str(word) for word in words], env={"COLUMNS": "100"})
    if result.exception:
        raise result.exception
    return result.stdout


def facts_of(prices: Prices, near: float) -> dict[str, Any]:
    """Returns what the command does, without the searches for break-even points."""
    none = BreakEven(None, "not asked", ())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("odonata.provisioning.cost.break_even", lambda *_: none)
        patch.setattr("odonata.provisioning.purchase.price_sweep", lambda *_: None)
        return price_facts(prices, near)


def ask(*words: Any) -> dict[str, Any]:
    def refuse(number: str) -> None:
        raise AssertionError(f"{number} is not JSON")

    told: dict[str, Any] = json.loads(run(*words, "--json"), parse_constant=refuse)
    return told


def test_programs_get_the_thesis_with_what_it_prints() -> None:
    told = ask()
    assert list(told["applications"]) == ["SPhot", "SP-MZ", "BT-MZ", "LU-MZ"]
    for name in ("SPhot", "BT-MZ", "LU-MZ"):
        it = told["applications"][name]
        assert (it["n_wc"], it["n_lim"], it["n_ovp"], it["printed"]["n_lim"]) == (18, 38, 30, 50)
        for key in ("t_ovp", "t_wc"):
            assert it[key] == pytest.approx(it["printed"][key], rel=0.005)
        assert abs(it["difference"]["s_ovp_of_printed_times"]) < 0.005
    points = {name: it["break_even"] for name, it in told["applications"].items()}
    assert {name: it["r_c"] for name, it in points.items()} == {
        "SPhot": 1.73, "SP-MZ": 1.73, "BT-MZ": None, "LU-MZ": 1.5}  # fmt: skip
    assert points["LU-MZ"]["r_p"] == pytest.approx(0.402, abs=5e-4)
    assert points["BT-MZ"]["r_p"] == pytest.approx(0.114, abs=5e-4)
    assert set(points["BT-MZ"]["why_none"]) == {"r_c", "power_w", "node_max_w", "node_min_w"}
    assert round(told["cost_ratio"]["two_racks"], 2) == 1.45
    assert round(told["cost_ratio"]["many_racks"], 2) == 1.65
    assert f"{told['core_hour']['usd']:.4f}" == "0.0185"
    assert told["core_hour"]["printed"]["usd"] == 0.018


def test_other_inputs_have_nothing_printed_beside_them() -> None:
    told = ask("--set", "r_c=1.73", "--application", "SPhot")
    (it,) = told["applications"].values()
    assert it["n_ovp"] == 31
    assert it["s_ovp"] > 1
    assert it["printed"] is it["difference"] is None
    assert told["inputs"]["r_c"] == 1.73


def test_people_get_the_printed_value_beside_each() -> None:
    shown = run()
    assert re.search(r"SP-MZ +18 +38 +30 +3\.64 +3\.51 +\+3\.7%", shown)
    assert re.search(r"LU-MZ +1\.50 +40\.2%", shown)
    assert "180 W give 38" in shown


def test_a_buyer_is_told_how_many_nodes_of_which_kind() -> None:
    told = ask(EXAMPLE)
    over, worst = (told["machines"][key] for key in ("cheaper_overprovisioned",
                                                     "high_end_worst_case"))  # fmt: skip
    assert (over["nodes"], over["limited_by"], worst["nodes"]) == (32, "money", 18)
    assert over["cost"] + over["money_left"] == told["budget"]["money"]
    mix, times = told["mix"], told["applications"]
    mean = sum(it["weight"] * it["t_ovp"] for it in times.values()) / 6
    assert mix["t_ovp"] == pytest.approx(mean)
    assert mix["s_ovp"] == pytest.approx(mix["t_wc"] / mix["t_ovp"])
    assert mix["faster"] == "cheaper_overprovisioned"
    assert times["BT-MZ"]["faster"] == "high_end_worst_case"
    assert told["recommendation"]["buy"] == told["recommendation"]["fastest"]
    shown = " ".join(run(EXAMPLE).split())
    assert ("Buy 32 Sandy Bridge (overprovisioned), limited by money: the fastest for the mix and "
            "the cheapest per job.") in shown  # fmt: skip
    assert ("- 18 Ivy Bridge (worst case): 20% more time, 5,000 USD (6.4%) more to buy, 26% more "
            "per job: nothing speaks for it.") in shown  # fmt: skip
    assert "(at full power): " not in shown  # which are the same 18 Ivy Bridge
    alone = run(EXAMPLE, "--application", "BT-MZ")
    assert "Buy 18 Ivy Bridge (worst case)" in alone
    assert "the mix" not in alone


LARGE = """[budget]
money = 60_280_000
power_w = 1_400_000
[high_end]
name = "fast"
price = 30_000
power_max_w = 600
[cheaper]
name = "cheap"
price = 12_000
power_min_w = 270
power_max_w = 300
cores = 64
[performance]
loss = 0.0
[applications.large]
slope = -0.0000560224
intercept = 20.0114
limit = 6_000
"""


def test_the_best_of_all_columns_is_recommended_not_of_two(tmp_path: Path) -> None:
    """5,023 nodes with caps save 0.1 % of the time of 4,666 without, for 4.3 million."""
    (tmp_path / "large.toml").write_text(LARGE)
    told = ask(tmp_path / "large.toml")
    times = {key: round(it, 2) for key, it
             in told["applications"]["large"]["seconds_per_job"].items()}  # fmt: skip
    assert times == {"high_end_worst_case": 19.90, "cheaper_overprovisioned": 19.73,
                     "cheaper_worst_case": 19.75}  # fmt: skip
    advice = told["recommendation"]
    assert (advice["buy"], advice["fastest"]) == ("cheaper_worst_case", "cheaper_overprovisioned")
    assert (advice["near"], advice["of"]) == (0.01, "large")
    shown = " ".join(run(tmp_path / "large.toml").split())
    assert (
        "Buy 4,666 cheap (worst case), limited by watts: the cheapest of those that are within "
        "1.0% of the fastest for large, the cheapest to buy and the cheapest per job."
    ) in shown
    assert ("- 5,023 cheap (overprovisioned): 0.1% less time, 4,284,000 USD (7.7%) more to buy, "
            "7.5% more per job: nearly as fast, and dearer.") in shown  # fmt: skip
    assert "- 2,009 fast (worst case): 0.8% more time, " in shown
    assert ". 5,023 cheap have 279 W each" in shown
    told = ask(tmp_path / "large.toml", "--near", 0)
    assert told["recommendation"]["buy"] == "cheaper_overprovisioned"
    with pytest.raises(Refused, match=r"--near 0\.1: which machine to buy is asked with a file"):
        run("--near", 0.1)


@settings(max_examples=40, deadline=None)
@given(st.integers(30_000, 300_000), st.integers(6_000, 20_000), st.integers(900, 3_000),
       st.sampled_from((0.0, 0.01, 0.1)))  # fmt: skip
def test_no_recommended_purchase_is_dominated_in_its_table(
    money: int, watts: int, price: int, near: float
) -> None:
    """By a column that is at most as slow and cheaper."""
    told = read_prices(EXAMPLE, [f"budget.money={money}", f"budget.power_w={watts}",
                                 f"cheaper.price={price}"])  # fmt: skip
    facts = facts_of(told, near)
    found = facts["recommendation"]
    if found is None:
        return
    machines = {key: (seconds, facts["machines"][key]["cost"])
                for key, seconds in facts["mix"]["seconds_per_job"].items()
                if seconds is not None}  # fmt: skip
    time, cost = machines[found["buy"]]
    assert not any(other <= time and less < cost for other, less in machines.values())
    assert not any(other < time and less <= cost for other, less in machines.values())
    assert time <= min(other for other, _ in machines.values()) * (1 + near)


def test_nodes_that_have_hardly_more_than_their_least_power_are_warned_of() -> None:
    assert ask(EXAMPLE)["warning"] is None
    told = ask(EXAMPLE, "--set", "budget.money=200000")
    assert told["machines"]["cheaper_overprovisioned"]["limited_by"] == "watts"
    assert told["warning"].startswith("38 Sandy Bridge have 184 W each, and need 180 W at least")
    assert "; 36 Ivy Bridge have 194 W each, and need 190 W at least: can" in told["warning"]
    shown = run(EXAMPLE, "--set", "budget.money=200000")
    assert (
        "Buy 36 Ivy Bridge (overprovisioned), limited by watts: the fastest for the mix." in shown
    )
    assert "But 38 Sandy Bridge" in shown


def test_budgets_that_buy_nothing_are_answered_with_the_reason() -> None:
    told = ask(EXAMPLE, "--set", "budget.money=9")
    assert told["mix"]["s_ovp"] is None
    shown = run(EXAMPLE, "--set", "budget.money=9")
    assert "No answer for the mix, as there is none for SPhot, BT-MZ, LU-MZ:\nSPhot: " in shown
    assert "SPhot: Ivy Bridge: there is not one node: more money or more watts are" in shown


TABLED = """[budget]
money = 2_000_000
power_w = {}
[high_end]
name = "new"
price = 9_000
power_max_w = 900
[cheaper]
name = "old"
price = 4_500
power_min_w = 350
power_max_w = 700
[performance]
loss = 0.25
[rack]
nodes = 32
price = 30_000
[applications.climate]
table = "mine.csv"
jobs_at_once = {}
[applications.cfd]
table = "mine.csv"
jobs_at_once = {}
"""


def tabled(folder: Path, power_w: int, jobs: int) -> Path:
    """Two applications whose times fall with nodes almost as they can, on 8 to 64 nodes; half the
    watts take a third more time."""
    rows = ["application,nodes,cores,cap_w,seconds,watts"]
    for name in ("climate", "cfd"):
        for nodes in (8, 16, 32, 48, 64):
            rows += [f"{name},{nodes},32,250,{20 + 18_000 / nodes},{nodes * 700}",
                     f"{name},{nodes},32,120,{1.33 * (20 + 18_000 / nodes)},"
                     f"{nodes * 370}"]  # fmt: skip
    (folder / "mine.csv").write_text("\n".join(rows) + "\n")
    path = folder / "prices.toml"
    path.write_text(TABLED.format(power_w, jobs, jobs))
    return path


def test_good_scaling_in_a_table_is_no_miracle(tmp_path: Path) -> None:
    """60 old for 33 new; a straight line, half of it wrong, made this 5.5 times as fast."""
    told = ask(tabled(tmp_path, 400_000, 6))
    climate = told["applications"]["climate"]
    assert (climate["n_wc"], climate["n_ovp"]) == (33, 60)
    assert told["mix"]["s_ovp"] == pytest.approx(0.75 * (20 + 18_000 / 33) / (20 + 18_000 / 60),
                                                 rel=0.01)  # fmt: skip
    assert climate["measured"]["64"] == 20 + 18_000 / 64
    assert climate["line_not_used"]["error"] > 0.4
    shown = " ".join(run(tmp_path / "prices.toml").split())
    assert "climate: the best times that were measured, on 8 to 64 nodes, interpolated" in shown
    assert "climate: 6 jobs at once have 60 old each, which leaves 4 of 364 without a job." in shown
    assert shown.count("above their cap") == 1


def test_nodes_that_all_have_their_most_are_not_called_overprovisioned(tmp_path: Path) -> None:
    shown = " ".join(run(tabled(tmp_path, 400_000, 6)).split())
    assert "Buy 364 old (at full power), limited by money" in shown
    assert ("This is not overprovisioned: all are at full power, and 145,200 W are left that this "
            "money cannot use.") in shown  # fmt: skip
    shown = run(tabled(tmp_path, 130_000, 6))
    assert "Buy 364 old (overprovisioned), limited by money" in shown
    assert "at full power" not in shown


def test_without_an_answer_there_is_no_break_even_but_a_cure(tmp_path: Path) -> None:
    told = ask(tabled(tmp_path, 400_000, 1))
    climate = told["applications"]["climate"]
    assert climate["cure"] == "set jobs_at_once to 6 or more, up to 24"
    for it in (climate, told["mix"]):
        assert it["s_ovp"] is None
        assert [it["break_even"][what] for what in ("money", "power_w", "price", "loss")] == (
            [None] * 4)  # fmt: skip
        assert not any(it["break_even"]["benefits"].values())
    shown = run(tmp_path / "prices.toml")
    assert ("climate: new: 198 nodes, and its times are of 8 to 64: set jobs_at_once to 6 or more, "
            "up to 24.") in shown  # fmt: skip
    assert "147,000" not in shown
    for jobs in (6, 24):
        assert ask(tabled(tmp_path, 400_000, jobs))["mix"]["s_ovp"] is not None
    for jobs, words in ((5, "to 6 or more"), (25, "to 24 or less")):
        found = ask(tabled(tmp_path, 400_000, jobs))["applications"]["cfd"]
        assert words in found["cure"]


@pytest.mark.long
def test_figures_are_drawn_where_they_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small ones, which take less time."""

    def save(figure: Any, path: Path, kind: str) -> None:
        figure.savefig(path, format=kind, dpi=50)

    monkeypatch.setattr("odonata.figures.style.save", save)
    first = ask("-o", tmp_path / "thesis", "--application", "LU-MZ")
    second = ask(EXAMPLE, "-o", tmp_path / "mine", "--application", "LU-MZ")
    drawn = [Path(path) for path in first["figures"] + second["figures"]]
    assert [path.name for path in drawn] == ["sweeps.png", "sweeps.png", "budgets.png"]
    assert all(path.stat().st_size > 8_000 for path in drawn)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--set", "r_x=1"), "--set r_x=1: without a file of prices, one of r_c, r_p"),
        (("--set", "r_c=much"), "--set r_c=much: a number is needed"),
        (("--set", "r_p=1"), "r_p = 1: a share from 0 to below 1"),
        (("--application", "XX"), "--application XX: one of SPhot, SP-MZ, BT-MZ, LU-MZ"),
        ((EXAMPLE, "--application", "XX"), "--application XX: one of SPhot, BT-MZ, LU-MZ"),
        (("none.toml",), "none.toml: No such file"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(words: tuple[Any, ...], reason: str) -> None:
    with pytest.raises(Refused, match=re.escape(reason)):
        run(*words)
