"""Slowdowns: a job against the same job alone; and the figures of jobs in every place that shows
them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import odonata
from odonata.commands.cli import cli
from odonata.figures import contents as pictures
from odonata.results.alone import FILE
from odonata.results.execution import RunOptions, execute
from odonata.sweeps.kept import sweep

ALONE = """
machine.preset = "kim-72"
network.routing = "adaptive"
[[jobs]]
name = "ring"
nodes = 20
pattern = "random-ring"
message = "8 KiB"
iterations = 5
compute = "1 us"
"""
CROWD = (
    ALONE
    + """
[[jobs]]
name = "crowd"
nodes = 30
pattern = "all-to-all"
message = "4 KiB"
[scheduler]
allocation = "rdn"
[[traffic]]
load = 0.1
stop = "50 us"
"""
)


def ran(text: str, place: Path) -> Path:
    file = place / "mine.toml"
    file.write_text(text)
    assert execute(RunOptions(file, out=place / "out")) is not None
    return place / "out"


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ran(CROWD, tmp_path_factory.mktemp("crowd"))


def asked(*arguments: Any) -> str:
    result = CliRunner().invoke(cli, [*map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_a_job_alone_has_a_slowdown_of_exactly_one(tmp_path: Path) -> None:
    out = ran(ALONE, tmp_path)
    (job,) = json.loads(asked("slowdown", out, "--json"))["jobs"]
    assert job["slowdown"] == 1.0
    with odonata.open(out) as run:
        assert run.jobs.slowdown.item() == 1.0
        assert run.jobs.alone_ps.item() == run.jobs.run_time_ps.item()


def test_what_is_written_takes_as_long(crowd: Path, tmp_path: Path) -> None:
    told = json.loads(asked("slowdown", crowd, "--json", "--write", tmp_path / "alone.toml"))
    found = sweep(tmp_path / "alone.toml")
    times = [it.values[0] for it in found.cells("jobs.run_time_ps")]
    assert times == [job["alone_ps"] for job in told["jobs"]]


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.long)])
def test_jobs_that_share_a_machine_are_slower_and_it_shows_everywhere(
    crowd: Path, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    """On a page that may lack the figures of the network, which take seconds to draw."""
    (crowd / FILE).unlink(missing_ok=True)
    if not whole:
        monkeypatch.setattr(pictures, "FIGURES", [])
    with odonata.open(crowd) as run:
        assert run.alone_ps is None
        assert run.jobs.slowdown.isnull().all()
    asked("slowdown", crowd)
    with odonata.open(crowd) as run:
        assert (run.jobs.slowdown > 1.0).all()
        assert run.jobs.packets.sum() < run.nodes.received_packets.sum()
        assert (run.jobs.p99_latency_ps >= run.jobs.median_latency_ps).all()
    page = crowd / "report.html"
    asked("report", crowd, "-o", page)
    assert "Their packets" in page.read_text()
    figures = json.loads(asked("compare", crowd, crowd, "--json"))
    assert "jobs.ring.p99_latency_ns" in json.dumps(figures)


def test_slowdowns_of_another_run_are_not_believed(crowd: Path) -> None:
    (crowd / FILE).write_text(json.dumps({"id": "another", "alone_ps": [1, 1]}))
    with odonata.open(crowd) as run:
        assert run.alone_ps is None
    (crowd / FILE).write_text("{")
    with odonata.open(crowd) as run:
        assert run.alone_ps is None


def test_a_run_tells_what_the_network_did_for_each_job(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(ALONE)
    facts = json.loads(asked("run", tmp_path / "mine.toml", "-o", tmp_path / "out", "--json"))
    (job,) = facts["jobs"]
    assert job["network"]["packets"] == facts["packets"]
    assert job["network"]["mean_latency_ps"] == pytest.approx(facts["mean_latency_ns"] * 1e3)
    assert 0 < job["network"]["communication"] < 1


def test_what_has_no_jobs_has_no_slowdowns(tmp_path: Path) -> None:
    out = ran("machine.preset = 'kim-72'\nrun.duration = '5 us'\n[traffic]\nload = 0.1", tmp_path)
    result = CliRunner().invoke(cli, ["slowdown", str(out)])
    assert result.exit_code != 0
    assert "ran no jobs" in str(result.exception)
