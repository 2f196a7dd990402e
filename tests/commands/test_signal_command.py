"""`odonata signal`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from odonata.commands.signal import command
from odonata.jobs.market import MarketSettings
from odonata.jobs.signal import synthetic
from pdes.errors import Refused

S = 10**6
HOUR = ("--synthetic", "--hours", "1")


def run(*words: Any) -> str:
    result = CliRunner().invoke(command, [str(word) for word in words])
    if result.exception:
        raise result.exception
    return result.stdout


def ask(*words: Any) -> dict[str, Any]:
    def refuse(number: str) -> None:
        raise AssertionError(f"{number} is not JSON")

    told: dict[str, Any] = json.loads(run(*words, "--json"), parse_constant=refuse)
    return told


@pytest.fixture
def day(tmp_path: Path) -> Path:
    path = tmp_path / "day.csv"
    values = synthetic(5, 900, 2.0)
    path.write_text("time_s,signal\n" + "".join(f"{2 * at},{1.02 * it:.4f}\n"
                                                for at, it in enumerate(values)))  # fmt: skip
    return path


def test_it_stands_beside_the_default_and_a_real_day() -> None:
    told = run(*HOUR)
    assert "synthetic, seed 1: 1 h, 900 values, 4 s apart" in told
    lines = {line[:26].strip(): line[26:].split() for line in told.splitlines()}
    assert lines["standard deviation"][-1] == "0.640"
    assert lines["autocorrelation at 60 s"][-1] == "0.670"


def test_what_is_unlike_the_default_is_marked() -> None:
    assert "*" not in run("--synthetic").partition("default: the")[0]
    told = run(*HOUR, "--memory", "0 s, 0 s").splitlines()
    (line,) = [line for line in told if line.startswith("autocorrelation at 30 s")]
    assert "*" in line


def test_programs_get_all_of_it() -> None:
    told = ask(*HOUR, "--seed", 7, "--deviation", 0.4)
    assert told["source"] == "synthetic, seed 7"
    assert told["signal"]["samples"] == 900
    assert told["signal"]["deviation"] == pytest.approx(synthetic(7, 900, deviation=0.4).std())
    assert told["regd"]["autocorrelation"]["60"] == 0.67
    assert len(told["default"]) == 20


def test_a_signal_of_one_value_has_no_steps(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("time_s,signal\n0,0.5\n")
    told = ask(tmp_path / "one.csv", "--repair")
    assert told["signal"]["step_median"] is None
    assert told["signal"]["mean"] == 0.5


def test_a_file_is_repaired_if_asked_and_written(day: Path, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"is beyond -1 and 1: .* clip with --repair$"):
        run(day)
    out = tmp_path / "out.csv"
    assert f"written to {out}" in run(day, "--repair", "--csv", out)
    found = MarketSettings(signal=str(out)).steps("signal", S)
    assert (found.least, found.most) == (-1.0, 1.0)
    assert len(found.levels) == 900
    with pytest.raises(Refused, match="there is such a file: name another, or add --overwrite"):
        run(day, "--repair", "--csv", out)
    run(day, "--repair", "--csv", out, "--overwrite")


def test_what_is_written_reads_back_as_what_a_run_makes(tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    run(*HOUR, "--seed", 3, "--interval", "2500 ms", "--csv", out)
    made = MarketSettings(signal="synthetic", signal_interval_ps=25 * 10**11)
    expected = made.steps("signal", S, seed=3, until=3600 * S)
    assert MarketSettings(signal=str(out)).steps("signal", S) == expected


def test_a_file_with_dates_begins_with_its_first(tmp_path: Path) -> None:
    path = tmp_path / "dated.csv"
    path.write_text("time,signal\n2026-03-02T10:00:00,0.5\n2026-03-02T10:00:02,0\n"
                    "2026-03-02T10:00:04,-0.5\n")  # fmt: skip
    assert ask(path)["signal"]["spacing_s"] == 2.0
    assert ask(path)["signal"]["mean"] == 0.0


def test_gaps_may_be_held(tmp_path: Path) -> None:
    path = tmp_path / "gap.csv"
    path.write_text("time_s,signal\n0,0.5\n2,0\n4,0.5\n8,0\n10,0.1\n")
    with pytest.raises(Refused, match=r"line 5: a gap of 4 s .* with --gaps hold$"):
        run(path)
    assert ask(path, "--gaps", "hold")["signal"]["spacings_s"] == [2.0, 4.0]


@pytest.mark.parametrize(
    "kind", ["png", *(pytest.param(kind, marks=pytest.mark.long) for kind in ("svg", "pdf"))]
)
def test_it_is_drawn(day: Path, tmp_path: Path, kind: str) -> None:
    out = tmp_path / f"it.{kind}"
    run(day, "--repair", "--plot", out)
    assert out.stat().st_size > 10_000


@pytest.mark.parametrize(
    ("words", "told"),
    [((), "which signal? a FILE.csv, or --synthetic"),
     (("a.csv", "--synthetic"), "name a file, or have a signal made, not both"),
     (("a.csv", "--seed", "2"), "--seed: only with --synthetic"),
     (("--synthetic", "--repair"), "--repair: of which file"),
     (("a.xlsx",), "a.xlsx: the name must end in .csv"),
     (("none.csv",), "none.csv: No such file"),
     (("--synthetic", "--deviation", "1"), "--deviation = 1: 0.001 .. 0.999"),
     (("--synthetic", "--interval", "0 s"), "--interval = 0 ps: above 0"),
     (("--synthetic", "--interval", "5 ns"), "--interval = 5000 ps: a whole number of"),
     (("--synthetic", "--hours", "0"), "--hours 0: more than 0"),
     (("--synthetic", "--overwrite"), "--overwrite: of which file"),
     (("--synthetic", "--csv", "a.txt"), "--csv a.txt: the name must end in .csv"),
     (("--synthetic", "--plot", "a.gif"), "--plot a.gif: the name must end in .png")],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_in_a_line(words: tuple[str, ...], told: str) -> None:
    with pytest.raises(Refused) as refused:
        run(*words)
    assert told in str(refused.value)
