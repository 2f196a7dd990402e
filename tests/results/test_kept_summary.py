"""A run that is complete already is shown again as it was: a job that Slurm has put back into the
queue once more does not lose its summary."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from conftest import code_on_ranks

from odonata.commands.cli import cli
from pdes.checksum import with_checksum

PACKETS = """
[machine]
preset = "kim-72"
[network]
routing = "adaptive"
[metrics]
interval = "5 us"
ports = false
[run]
duration = "done"
[[jobs]]
nodes = 8
pattern = "all-to-all"
"""
MONTH = """
fidelity = "job"
[trace]
model = "lublin"
jobs = 60
nodes = 64
[power]
policy = "none"
[metrics]
interval = "1 d"
"""
OF_THE_HOST = ("wall_seconds", "events", "seconds", "max_rss_mb", "mpi")
"""Some of what nobody can tell from the metrics."""

CHANGED = "as it was, but for a number"
TEXTS = (None, "{", "[1]", with_checksum('{"digest": "of another run"}'), CHANGED)
"""What may be in place of a summary."""


def ask(*words: Any) -> Result:
    done = CliRunner().invoke(cli, ["run", *map(str, words), "--no-progress"])
    assert done.exception is None, done.exception
    return done


def same(found: Any) -> str:
    """Returns facts as a text, in which NaN equals NaN."""
    return json.dumps(found)


@pytest.fixture(params=[PACKETS, MONTH], ids=["packets", "jobs"])
def file(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mine.toml"
    path.write_text(request.param)
    return path


def test_a_complete_run_is_shown_again_as_it_was(file: Path, tmp_path: Path) -> None:
    printed = ask(file, "-o", "one", "--json").stdout
    again = ask("-o", "one", "--resume", "--json")
    assert again.stdout == printed
    assert "one: is complete already; this is its summary" in again.stderr
    table = ask(file, "-o", "two").stdout
    assert ask("-o", "two", "--resume").stdout == table
    assert "digest" in table
    (tmp_path / "one").rename(tmp_path / "moved")
    moved = json.loads(ask("-o", "moved", "--resume", "--json").stdout)
    assert moved["out"] == "moved"
    assert same(moved | {"out": "one"}) == same(json.loads(printed))
    (tmp_path / "out").mkdir()
    (tmp_path / "moved").rename(tmp_path / "out" / "mine")  # where it is without -o
    assert "out/mine: is complete already" in ask(file, "--resume").stderr  # and not "None"


@pytest.mark.parametrize(
    ("file", "texts"),
    [
        pytest.param(PACKETS, TEXTS, id="packets"),
        pytest.param(MONTH, TEXTS[:1], id="jobs"),
        pytest.param(MONTH, TEXTS[1:], id="jobs, damaged", marks=pytest.mark.long),
    ],
    indirect=["file"],
)
def test_without_its_summary_a_run_is_shown_from_its_metrics(
    file: Path, tmp_path: Path, texts: Sequence[str | None]
) -> None:
    first = json.loads(ask(file, "-o", "out", "--json").stdout)
    kept = tmp_path / "out" / "summary.json"
    changed = re.sub(r'"wall_seconds": \d', '"wall_seconds": 77', kept.read_text())
    for text in texts:
        kept.unlink(missing_ok=True)
        if text is not None:
            kept.write_text(changed if text == CHANGED else text)
        half = kept.with_name(".part-host-1-summary.json")  # of a run that was killed
        half.write_text("{")
        found = json.loads(ask("-o", "out", "--resume", "--json").stdout)
        assert found["completed"] is True
        assert not half.exists()
        assert not found.keys() & {*OF_THE_HOST}
        for name in ("digest", "time_ps", "mean_latency_ns", "jobs", "mean_wait_s", "energy_kwh"):
            if name in first and not (name == "jobs" and isinstance(first[name], list)):
                assert found[name] == first[name], name
    assert "digest" in ask("-o", "out", "--resume").stdout


def test_what_a_new_run_replaces_is_not_shown_of_it(file: Path, tmp_path: Path) -> None:
    ask(file, "-o", "out")
    ask(file, "-o", "out", "--overwrite", "--no-metrics")
    assert not (tmp_path / "out" / "summary.json").exists()


def resuming(file: Path, out: Path) -> str:
    """Returns the code that goes on with a run, or begins it."""
    words = ["odonata", "run", str(file), "-o", str(out), "--resume", "--json", "--no-progress"]
    return f"import sys; sys.argv = {words!r}; from odonata.commands.cli import main; main()"


@pytest.mark.long
def test_on_two_ranks_the_summary_is_printed_once(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(MONTH)
    out = tmp_path / "out"
    first = ask(file, "-o", out, "--json")
    again = code_on_ranks(2, resuming(file, out))
    assert again.returncode == 0, again.stderr
    assert again.stdout == first.stdout


@pytest.mark.long
def test_on_two_ranks_the_summary_is_that_of_two_ranks(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(MONTH)
    first, again = (code_on_ranks(2, resuming(file, tmp_path / "out")) for _ in range(2))
    assert (first.returncode, again.returncode) == (0, 0), first.stderr + again.stderr
    assert json.loads(first.stdout)["ranks"] == 2
    assert again.stdout == first.stdout
