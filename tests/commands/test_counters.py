"""`odonata counters`, on small runs of a 72-node machine."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Callable
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

from odonata.commands.cli import cli
from odonata.jobs.record import JobRecord
from odonata.results.execution import RunOptions, execute
from odonata.results.operator_counters import JobCounters, counters_of, cumulative, job_counters
from odonata.results.operator_table import COLUMNS, JOB_COLUMNS, MOST_SHOWN, job_rows, job_table
from odonata.results.run import Run
from odonata.results.run import open as open_run
from pdes.errors import Refused
from pdes.stream import RUNNING
from topology import Dragonfly

TRAFFIC = """
name = "load [red]"
[machine]
preset = "kim-72"
[network]
routing = "minimal"
[traffic]
pattern = "adversarial"
load = 0.4
[run]
duration = "5500 ns"
[metrics]
interval = "1 us"
"""
JOBS = """
name = "jobs"
[machine]
preset = "kim-72"
[network]
routing = "adaptive"
[[jobs]]
name = "one, two"
nodes = 30
pattern = "fft3d"
[[jobs]]
name = "later"
nodes = 72
pattern = "incast"
[metrics]
interval = "1 us"
"""

Make = Callable[..., Path]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    home = tmp_path_factory.mktemp("runs")

    def made(name: str, text: str, *changes: str) -> Path:
        if not (home / name).exists():
            (home / "file.toml").write_text(text)
            execute(RunOptions(home / "file.toml", home / name, changes, progress=False))
        return home / name

    return made


@pytest.fixture(scope="module")
def traffic(make: Make) -> Path:
    return make("traffic", TRAFFIC)


@pytest.fixture(scope="module")
def jobs(make: Make) -> Path:
    return make("jobs", JOBS)


def said(*words: Any) -> str:
    done = CliRunner().invoke(cli, ["counters", *map(str, words)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def opened(path: Path) -> Run:
    run = open_run(path)
    assert isinstance(run, Run)
    return run


def test_the_table_has_the_most_congested_routers_first(traffic: Path) -> None:
    text = said(traffic)
    assert "load [red], 5.5 us: the most congested of 36 routers" in text
    rows = [line.split() for line in text.splitlines() if re.match(r" +\d+ +\d+ +\d", line)]
    assert len(rows) == MOST_SHOWN
    seen = counters_of(opened(traffic))
    mean = seen.over_time(seen.stall_to_flit())
    ratios = [float(row[2]) for row in rows]
    assert ratios == sorted(ratios, reverse=True)
    assert ratios[0] == pytest.approx(mean.max(), abs=6e-4)
    for row in rows:
        assert float(row[2]) == pytest.approx(mean[int(row[0])], abs=6e-4)
        assert int(row[1]) == int(row[0]) // 4
    assert max(map(len, text.splitlines())) <= 80


def test_the_file_has_what_a_monitor_reads_at_every_sample(traffic: Path, tmp_path: Path) -> None:
    file = tmp_path / "ldms.csv"
    assert said(traffic, "-o", file) == f"{file}\n"
    assert [it.name for it in tmp_path.iterdir()] == ["ldms.csv"]
    lines = file.read_text().splitlines()
    assert lines[0] == ",".join(COLUMNS)
    assert lines[0].startswith("#Time,component_id,N_FLIT_electrical,N_FLIT_optical,")
    rows = list(csv.DictReader(lines))
    run = opened(traffic)
    seen, routers = counters_of(run), run.machine.n_routers
    assert len(rows) == len(run.time) * routers
    times = [Decimal(row["#Time"]) * 10**12 for row in rows[::routers]]
    assert times == run.time.data.tolist()
    assert [int(row["component_id"]) for row in rows[:routers]] == [*range(routers)]
    table = {name: np.array([float(row[name]) for row in rows]).reshape(-1, routers)
             for name in COLUMNS[2:]}  # fmt: skip
    for name in COLUMNS[2:-1]:
        assert (np.diff(table[name], axis=0, prepend=0) >= 0).all(), name
    assert (table["N_FLIT_optical"] == cumulative(seen.class_flits("global"))).all()
    assert (table["P_REQ_FLIT"].sum(axis=1) == cumulative(seen.p_flit.sum(axis=1))).all()
    for kind in ("all", "credit"):
        for made, name in (("electrical", "local"), ("optical", "global")):
            cycles = cumulative(seen.class_stall_ps(name, kind)) / seen.cycle_ps(name)
            assert (table[f"{kind}_stalls_{made}"] == np.floor(cycles)).all()
    assert (table["stall_to_flit"] == seen.stall_to_flit()).all()
    assert table["stall_to_flit"].any()


def test_an_operator_finds_the_same_ratios_in_the_file(make: Make, tmp_path: Path) -> None:
    """A machine whose routers have one network tile of a class shows it: there the differences of
    the file's counters are the ratio."""
    pair = make("pair", TRAFFIC, "machine.groups=1", "machine.routers=2", "machine.global_links=0",
                "traffic.pattern=uniform", "traffic.load=0.9")  # fmt: skip
    said(pair, "-o", tmp_path / "x.csv", "--threshold", "0")
    rows = list(csv.DictReader((tmp_path / "x.csv").read_text().splitlines()))
    for router in (0, 1):
        own = [row for row in rows if int(row["component_id"]) == router]
        flits, stalls = (np.diff([int(row[name]) for row in own], prepend=0)
                         for name in ("N_FLIT_electrical", "all_stalls_electrical"))  # fmt: skip
        ratio = [float(row["stall_to_flit"]) for row in own]
        assert (flits > 0).all()
        np.testing.assert_allclose(stalls / flits, ratio, atol=1 / flits.min())
        assert max(ratio) > 0


def test_json_has_every_router_and_the_thresholds(traffic: Path) -> None:
    facts = json.loads(said(traffic, "--json"))
    run = opened(traffic)
    seen = counters_of(run)
    assert (facts["samples"], facts["time_ps"], facts["complete"]) == (6, 5_500_000, True)
    assert [*facts["thresholds"].values()] == [*seen.thresholds().values()]
    assert [it["router"] for it in facts["routers"]] == [*range(36)]
    assert sum(it["N_FLIT_electrical"] + it["N_FLIT_optical"] for it in facts["routers"]) \
        == seen.n_flit.sum()  # fmt: skip


def test_stalls_and_thresholds_are_those_asked_for(traffic: Path) -> None:
    seen = counters_of(opened(traffic))
    for words, kind, threshold in (
        (("--stalls", "credit"), "credit", "median"),
        (("--threshold", "0"), "all", 0),
        (("--threshold", "5e6,933", "--stalls", "credit"), "credit",
         {"local": 5e6, "global": 933}),
    ):  # fmt: skip
        facts = json.loads(said(traffic, "--json", *words))
        assert facts["stalls"] == kind
        expected = seen.over_time(seen.stall_to_flit(threshold, kind))
        assert [it["stall_to_flit"] for it in facts["routers"]] == pytest.approx(expected.tolist())
    assert "leave out no tile" in said(traffic, "--threshold", "0")


@pytest.mark.parametrize("text", ["mean", "1,2,3", "-1", "nan", "inf", "", "1,"])
def test_a_threshold_that_is_none_is_refused(traffic: Path, text: str) -> None:
    done = CliRunner().invoke(cli, ["counters", str(traffic), f"--threshold={text}"])
    assert done.exit_code == 2
    assert "median, or one or two numbers" in done.stderr


def test_jobs_have_a_row_each(jobs: Path, tmp_path: Path) -> None:
    found = job_counters(opened(jobs))
    text = said(jobs, "--jobs")
    assert "jobs, " in text
    for name, it in zip(("one, two", "later"), found, strict=True):
        row = next(line for line in text.splitlines() if line.strip().startswith(name))
        assert row.removeprefix(f" {name}").split()[2:6] == [
            f"{it.stall_to_flit:.3f}", f"{it.stall_to_flit_median:.3f}",
            f"{it.stall_to_flit_largest:.3f}", str(it.largest_router),
        ]  # fmt: skip
    said(jobs, "--jobs", "-o", tmp_path / "jobs.csv")
    rows = list(csv.DictReader((tmp_path / "jobs.csv").read_text().splitlines()))
    assert tuple(rows[0]) == JOB_COLUMNS
    assert [row["name"] for row in rows] == ["one, two", "later"]
    facts = json.loads(said(jobs, "--jobs", "--json"))["jobs"]
    for row, fact, it in zip(rows, facts, found, strict=True):
        assert float(row["stall_to_flit"]) == fact["stall_to_flit"] == it.stall_to_flit
        assert float(row["stall_to_flit_median"]) == fact["stall_to_flit_median"]
        assert fact["stall_to_flit_median"] == it.stall_to_flit_median
        assert float(row["stall_to_flit_largest"]) == fact["stall_to_flit_largest"]
        assert fact["stall_to_flit_largest"] == it.stall_to_flit_largest
        assert int(row["largest_router"]) == fact["largest_router"] == it.largest_router
        assert float(row["ptile_flits_per_s"]) == it.ptile_flits_per_s > 0
    assert rows[1]["routers"] == "36"


def test_a_table_of_jobs_fits_80_letters_and_cuts_names_not_numbers() -> None:
    counters = JobCounters(123.4567, 123.4567, 1234.567, 98_765, 1.23e9, 1.23e9, 1.23e9)
    record = JobRecord(0, "a long name of many words [red]", 98_765, "", 0, 0, None, (0,))
    page = StringIO()
    console = Console(width=80, file=page)
    console.print(job_table(job_rows(Dragonfly(1, 1, 0, 1), [record], [counters])))
    lines = page.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    row = next(line for line in lines if "a long" in line)
    assert "…" in row
    assert row.partition("…")[2].split() == ["98,765", "1", "123.457", "123.457", "1234.567",
        "98,765", "1.23", "G", "1.23", "G", "1.23", "G"]  # fmt: skip


def cut(directory: Path, target: Path, samples: int) -> Path:
    """A run that died after so many samples."""
    shutil.copytree(directory, target)
    (target / "run.h5").unlink()
    with h5py.File(target / "rank-0000.h5", "r+") as file:
        file["time_ps"].resize(samples, 0)
        file["status"][()] = RUNNING
    return target


def test_a_run_that_is_not_over_shows_what_there_is(
    traffic: Path, jobs: Path, tmp_path: Path
) -> None:
    text = said(cut(traffic, tmp_path / "died", 2))
    assert "2 us (it died)" in text
    died = cut(jobs, tmp_path / "early", 1)
    facts = json.loads(said(died, "--jobs", "--json"))["jobs"]
    assert facts[1]["stall_to_flit"] is None, "it waits"
    assert facts[1]["stall_to_flit_largest"] is facts[1]["largest_router"] is None
    assert " - " in said(died, "--jobs")
    with pytest.raises(Refused, match="no sample has been written yet"):
        said(cut(traffic, tmp_path / "none", 0))


def test_what_cannot_be_shown_is_refused_with_the_reason(
    make: Make, traffic: Path, tmp_path: Path
) -> None:
    with pytest.raises(Refused, match="ran no jobs"):
        said(traffic, "--jobs")
    with pytest.raises(Refused, match="there is no such directory"):
        said(tmp_path / "nowhere")
    with pytest.raises(Refused, match="there is no directory"):
        said(traffic, "-o", tmp_path / "no" / "x.csv")
    with pytest.raises(Refused, match="ports were not recorded"):
        said(make("no-ports", TRAFFIC, "metrics.ports=false"))
    months = (
        'fidelity = "job"\n[machine]\npreset = "kim-72"\n[trace]\nmodel = "poisson"\njobs = 9\n'
    )
    with pytest.raises(Refused, match="there are no packets to count"):
        said(make("months", months))


def test_a_file_that_cannot_be_written_leaves_the_old_one(
    traffic: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "x.csv"
    file.write_text("old")

    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("odonata.results.operator_table.seconds", fail)
    with pytest.raises(OSError, match="No space left"):
        said(traffic, "-o", file)
    assert file.read_text() == "old"
    assert [it.name for it in tmp_path.iterdir()] == ["x.csv"]
