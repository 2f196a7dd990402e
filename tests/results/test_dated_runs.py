"""Runs of traces that have a wall clock: their files, tables, pictures and refusals have dates."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import pytest

from odonata.experiment.experiment import JobExperiment
from odonata.experiment.reading import parse
from odonata.figures.clock import clock_of
from odonata.results.run import Run
from odonata.results.run import open as open_run
from odonata.traces.clock import WallClock
from odonata.traces.reading import read
from pdes.errors import Refused

Odonata = Callable[..., Any]

SACCT = """JobID|Submit|ElapsedRaw|TimelimitRaw|NNodes|State
1|2026-03-28T14:37:00|7200|300|3|COMPLETED
2|2026-03-28T18:00:00|7200|300|3|COMPLETED
3|2026-03-29T16:30:00|7200|300|3|COMPLETED
"""
CAP = """time,watts
2026-03-27,none
2026-03-28T17:00,800
2026-03-28T20:00,none
2026-03-29T17:00,800
2026-03-29T20:00,none
"""
FILE = """
fidelity = "job"
trace.file = "a.sacct"
trace.nodes = 4
trace.timezone = "Europe/Stockholm"
power.policy = "uniform"
power.cap = "cap.csv"
power.price = [["2026-03-28T00:00", 0.1], [2026-03-29T00:00:00, 0.2]]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    for name, text in (("a.sacct", SACCT), ("cap.csv", CAP), ("a.toml", FILE)):
        (tmp_path / name).write_text(text)
    return tmp_path / "a.toml"


def made(file: Path, *changes: str) -> JobExperiment:
    found = parse(file.read_text(), str(file), changes)
    assert isinstance(found, JobExperiment)
    return found


def test_a_run_keeps_its_dates(odonata: Odonata, file: Path, tmp_path: Path) -> None:
    done = odonata("run", str(file), "-o", str(tmp_path / "out"), "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout, parse_constant=lambda it: pytest.fail(f"{it} is not JSON"))
    assert facts["epoch"] == "2026-03-28T14:37:00+01:00"
    assert facts["time_zone"] == "Europe/Stockholm"
    assert 0 < facts["capped_intervals"] < facts["intervals"]
    with h5py.File(tmp_path / "out" / "run.h5") as kept:
        assert kept.attrs["epoch"] == facts["epoch"]
    with open_run(tmp_path / "out") as run:
        assert isinstance(run, Run)
        clock = run.trace.clock
        assert clock == made(file).model().trace.clock
        assert clock_of(run.schedule).wall == clock
        assert run.power is not None
        times, jobs, caps = run.power.cap_changes
        of_machine = jobs == -1
        assert [*zip(clock.dates(times[of_machine]), caps[of_machine].tolist(), strict=True)] == [
            ("2026-03-28T17:00:00+01:00", 800.0), ("2026-03-28T20:00:00+01:00", float("inf")),
            ("2026-03-29T17:00:00+02:00", 800.0),
        ]  # fmt: skip
    rows = [*csv.DictReader((tmp_path / "out" / "jobs.csv").read_text().splitlines())]
    assert [row["submission_date"] for row in rows] == [
        "2026-03-28T14:37:00+01:00", "2026-03-28T18:00:00+01:00", "2026-03-29T16:30:00+02:00",
    ]  # fmt: skip
    assert all(row["finish_date"] > row["starting_date"] for row in rows)
    assert read(tmp_path / "out" / "jobs.swf").clock == clock
    report = odonata("report", str(tmp_path / "out"))
    assert report.returncode == 0, report.stderr


def test_what_is_wrong_with_dates_names_the_key_and_the_line(file: Path) -> None:
    def words(*changes: str) -> str:
        with pytest.raises(Refused) as refusal:
            made(file, *changes)
        return str(refusal.value)

    assert "power.cap" in words("trace.epoch=2030-01-01")
    assert "have no time in common" in words("trace.epoch=2030-01-01")
    early = words("trace.epoch=2026-03-26T12:00")
    assert "begin after those of the trace, 2026-03-26 12:00" in early
    assert "trace.epoch" in words("trace.file=", "trace.model=poisson", "trace.nodes=8")
    assert "trace.timezone=Mars: not a time zone" in words("trace.timezone=Mars")
    assert "trace.epoch=soon: not a date" in words("trace.epoch=soon")


def test_dates_of_toml_are_dates_of_traces(file: Path) -> None:
    dated = made(file, "trace.epoch=2026-03-28T00:00:00Z")
    assert dated.trace.epoch == "2026-03-28T00:00:00+00:00"
    assert made_again(dated) == dated
    clock = dated.model().trace.clock
    assert isinstance(clock, WallClock)
    assert clock.date(0) == "2026-03-28T01:00:00+01:00"


def made_again(one: JobExperiment) -> object:
    return parse(one.to_toml(), "again.toml")
