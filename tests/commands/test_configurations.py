"""`odonata configurations`."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from odonata.commands.configurations import command, parse_bounds
from odonata.provisioning.search import MACHINES
from odonata.provisioning.table_file import read_tables
from pdes.errors import Refused

TABLE = """application,nodes,cores,cap_w,seconds,watts
SP-MZ,12,16,115,13.9,1975
SP-MZ,20,16,115,9.1,3240
SP-MZ,26,12,80,3.6,3497
SP-MZ,32,4,51,5.0,2900
[bold]LU,12,16,115,25.3,2228
[bold]LU,18,16,115,16.5,3308
[bold]LU,32,8,95,9.4,3497
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.csv"
    path.write_text(TABLE)
    return path


def invoke(*words: Any) -> Any:
    result = CliRunner().invoke(command, [str(word) for word in words])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def ask(*words: Any) -> dict[str, Any]:
    def refuse(number: str) -> None:
        raise AssertionError(f"{number} is not JSON")

    told: dict[str, Any] = json.loads(invoke(*words, "--json").stdout, parse_constant=refuse)
    return told


def test_programs_get_all_of_it(table: Path) -> None:
    told = ask(table, "--bound", "3500 W", "--bound", "unlimited,1 kW", "--node-power", "290 W")
    assert (told["source"], told["node_w"], told["written"]) == (str(table), 290, [])
    assert list(told["applications"]) == ["SP-MZ", "[bold]LU"]
    mine = told["applications"]["SP-MZ"]
    assert mine["configurations"] == 4
    low, middle, none = mine["bounds"]
    assert [it["bound_w"] for it in mine["bounds"]] == [1000, 3500, None]
    assert middle["best"] == {
        "nodes": 26, "cores": 12, "cap_w": 80, "seconds": 3.6, "watts": 3497,
        "speedup_over_packed_max": 9.1 / 3.6, "speedup_over_worst_case": 13.9 / 3.6,
        "wasted": 1 - 3497 / 3500,
    }  # fmt: skip
    assert middle["packed_max"]["nodes"] == 20
    assert (middle["worst_case"]["nodes"], middle["worst_case_nodes"]) == (12, 12)
    assert middle["degree"] == 26 / 12
    assert middle["packed_min"] is None
    assert set(middle["why_none"]) == {"packed_min", "spread_max"}
    assert low["best"] is None
    assert low["why_none"]["best"] == "the least that was measured of SP-MZ is 1,975 W, by " + (
        "(12×16, 115)"
    )
    assert (none["best"]["wasted"], none["worst_case_nodes"], none["degree"]) == (None, None, None)


def test_what_is_odd_is_told_on_stderr_and_to_programs(table: Path) -> None:
    done = invoke(table, "--bound", "3500 W")
    assert f"odonata: {table}: SP-MZ: 32 of 36 configurations are missing" in done.stderr
    repairs = ask(table)["repairs"]
    assert any("SP-MZ: 32 of 36 configurations are missing" in words for words in repairs)


def test_people_get_a_table_per_bound(table: Path) -> None:
    shown = invoke(
        table, "--bound", "3500 W", "--bound", "unlimited", "--node-power", "290 W"
    ).stdout
    assert all(len(line) <= 80 for line in shown.splitlines() if str(table) not in line)
    words = " ".join(shown.split())
    for some in (
        "7 configurations of 2 applications, as (nodes × cores, W of cap per socket); a node draws "
        "at most 290 W (--node-power)",
        "3,500 W; worst case 12 nodes",
        "SP-MZ (26×12, 80) 3.6 3,497 20 2.53× 3.86× 2.17",
        "[bold]LU (32×8, 95) 9.4 3,497 18 1.76× 2.69× 2.67",
        "mean speed-up of the best over packed-max: 2.14×, at most 2.53×",
        "unlimited nodes of speed-up over the application best s W packed-max over it worst degree",
    ):
        assert some in words


def test_detail_shows_all_six_configurations_and_why_some_are_missing(table: Path) -> None:
    shown = invoke(table, "--bound", "3500 W", "--application", "sp-mz", "--detail",
                   "--node-power", "290 W").stdout  # fmt: skip
    words = " ".join(shown.split())
    for some in (
        "4 configurations of 1 application,",
        "SP-MZ packed-max (20×16, 115) 9.1 3,240 7.4% 1.00× packed-min - - - - - spread-max - - - -"
        " - spread-min (32×4, 51) 5 2,900 17.1% 1.82× worst case (12×16, 115) 13.9 1,975 43.6% "
        "0.65× best (26×12, 80) 3.6 3,497 0.1% 2.53× 2.17",
        "no packed-min: no configuration of SP-MZ with 16 cores and a cap of 51 W was measured",
    ):
        assert some in words


def test_a_bound_below_all_says_what_the_least_is(table: Path) -> None:
    words = " ".join(invoke(table, "--bound", "1 kW").stdout.split())
    assert "no best: the least that was measured of SP-MZ is 1,975 W, by (12×16, 115)" in words
    assert "no packed-max" not in words


def test_the_peak_of_a_node_decides_the_worst_case(table: Path) -> None:
    told = ask(table, "--bound", "3500 W", "--node-power", "175 W", "--application", "SP-MZ")
    (found,) = told["applications"]["SP-MZ"]["bounds"]
    assert (told["node_w"], found["worst_case_nodes"]) == (175, 20)
    assert found["worst_case"]["nodes"] == 20


def test_a_node_of_a_table_draws_at_most_what_was_measured(table: Path) -> None:
    told = ask(table, "--bound", "3308 W", "--application", "SP-MZ")
    (found,) = told["applications"]["SP-MZ"]["bounds"]
    assert told["node_w"] == 2228 / 12  # of the other application: nodes are the same
    assert found["worst_case_nodes"] == 17
    words = " ".join(invoke(table).stdout.split())
    assert "a node draws at most 185.7 W, the most in this table (or --node-power)" in words
    assert "degree: nodes of the best for each node of the worst case" in words
    assert "a node draws at most 290 W 2,500 W" in " ".join(
        invoke("--bound", "2500 W").stdout.split())  # fmt: skip


def test_bounds_of_an_unknown_machine_suit_what_was_measured(table: Path) -> None:
    bounds = ask(table)["applications"]["SP-MZ"]["bounds"]
    assert [it["bound_w"] for it in bounds] == [1700, 2600, None]


def test_tables_are_written_repaired_and_chosen(table: Path, tmp_path: Path) -> None:
    table.write_text(TABLE + "SP-MZ,12,16,115,14.1,1975\n")
    with pytest.raises(Refused, match="or repair, which takes the mean"):
        invoke(table)
    out = tmp_path / "mended.csv"
    done = invoke(table, "--repair", "--csv", out, "--application", "SP-MZ")
    assert "1 configuration had several results" in done.stderr
    assert f"written to {out}" in done.stdout
    found = read_tables(out).tables
    assert list(found) == ["SP-MZ"]
    assert found["SP-MZ"].seconds[0] == 14.0
    with pytest.raises(Refused, match="there is such a file: name another, or add --overwrite"):
        invoke(table, "--repair", "--csv", out)
    assert ask(table, "--repair", "--csv", out, "--overwrite")["written"] == [str(out)]


def test_figures_are_drawn_even_where_nothing_fits(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "figures"
    written = ask(table, "--bound", "1 kW,3500 W", "--application", "SP-MZ", "-o", out)["written"]
    names = ("speedup", "canonical", "nodes-1000W", "nodes-3500W")
    assert written == [str(out / f"{name}.png") for name in names]
    from matplotlib.image import imread

    for path in written:
        red = np.rint(imread(path)[:, :, 0] * 255).astype(np.int64)
        assert np.count_nonzero(np.bincount(red.ravel())) > 20, path


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("TABLE", "--machine", "cab"), "name a table or a machine, not both"),
        (("--machine", "hopper"), "--machine hopper: one of rzmerl, cab"),
        (("--repair",), "--repair: of which table?"),
        (("TABLE", "--node-power", "0 W"), "--node-power 0 W: it must be above 0"),
        (("TABLE", "--application", "SPMZ"),
         r"--application SPMZ: one of SP-MZ, \[bold\]LU; did you mean SP-MZ\?"),
        (("TABLE", "--csv", "t.txt"), r"--csv t.txt: the name must end in \.csv or \.csv\.gz"),
        (("TABLE", "--csv", "none/t.csv"), "there is no directory none"),
        (("TABLE", "--overwrite"), "--overwrite: of which file"),
        (("TABLE", "-o", "TABLE"), "this is a file: name a directory"),
        (("none.csv",), "none.csv: No such file"),
    ],
)  # fmt: skip
def test_what_does_not_belong_together_is_refused(
    table: Path, words: tuple[str, ...], why: str
) -> None:
    with pytest.raises(Refused, match=why):
        invoke(*(table if word == "TABLE" else word for word in words))


def test_bounds_are_read_with_units() -> None:
    assert parse_bounds("6.5 kW, 8000 W,unlimited") == [6500, 8000, math.inf]
    for text, why in (
        ("3500", "'3500' is not a power: a number and one of W, kW, MW, GW, mW; or unlimited"),
        ("0 W", "'0 W': a power bound is above 0; or unlimited"),
        ("-1 W", "'-1 W': a power is not negative, and finite; or unlimited"),
    ):
        with pytest.raises(ValueError, match="or unlimited") as error:
            parse_bounds(text)
        assert str(error.value) == why


@pytest.mark.parametrize("machine", list(MACHINES))
def test_the_benchmarks_of_a_machine_are_searched_under_the_bounds_of_the_thesis(
    machine: str, tmp_path: Path
) -> None:
    pytest.importorskip("odonata.provisioning.fitted")
    out = tmp_path / "pattern.csv"
    told = ask("--machine", machine, "--csv", out)
    names = ["SPhot", "BT-MZ", "SP-MZ", "LU-MZ", "SC", "NSC", "SM", "NSM"]
    assert sorted(told["applications"]) == sorted(names)
    asked = [None if math.isinf(it) else it for it in MACHINES[machine].bounds_w]
    for one in told["applications"].values():
        assert [it["bound_w"] for it in one["bounds"]] == asked
        assert all(it["best"] is not None for it in one["bounds"])
    again = ask(out, "--bound", "unlimited")["applications"]
    for name, one in told["applications"].items():
        assert again[name]["configurations"] == one["configurations"]
