"""Whatever is wrong with a run's files, every command ends with a sentence that names the file."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from odonata.commands.cli import cli
from odonata.results.execution import RunOptions, execute
from odonata.results.run import open as open_run
from pdes.errors import Refused

EXPERIMENT = """
name = "damaged"
[machine]
preset = "kim-72"
[traffic]
load = 0.4
[run]
duration = "20 us"
checkpoint_every = "8 us"
[metrics]
interval = "5 us"
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("whole")
    (home / "experiment.toml").write_text(EXPERIMENT)
    execute(RunOptions(home / "experiment.toml", home / "out", progress=False))
    return home / "out"


def said(*words: Any) -> str:
    """What a command says where it ends in order, or why it refuses."""
    try:
        done = CliRunner().invoke(cli, [str(word) for word in words], catch_exceptions=False)
    except Refused as refusal:
        return f"refused: {refusal}"
    assert done.exit_code == 0, done.output
    return done.output


def flip(path: Path, at: int = 60) -> None:
    """Flip bits of one byte: by default one in the header of an HDF5 file."""
    content = bytearray(path.read_bytes())
    content[at] ^= 0x5A
    path.write_bytes(content)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:2000])


COMMANDS: dict[str, Callable[[Path, Path], str]] = {
    "report": lambda run, whole: said("report", run),
    "watch": lambda run, whole: said("watch", run, "--once"),
    "diff": lambda run, whole: said("diff", run, whole),
    "compare": lambda run, whole: said("compare", run, whole, "--json"),
    "counters": lambda run, whole: said("counters", run),
    "mend": lambda run, whole: said("mend", run),
    "resume": lambda run, whole: said("run", "--resume", "-o", run),
}


@pytest.mark.parametrize("damage", [cut, flip, Path.unlink])
@pytest.mark.parametrize("command", [*COMMANDS])
def test_metrics_that_are_damaged_are_named(
    whole: Path, tmp_path: Path, command: str, damage: Callable[[Path], None]
) -> None:
    run = shutil.copytree(whole, tmp_path / "run")
    damage(run / "rank-0000.h5")
    words = COMMANDS[command](run, whole)
    assert words.startswith("refused: ")
    assert "rank-0000.h5" in words


def test_what_is_left_of_a_run_without_a_checkpoint_is_not_removed(
    whole: Path, tmp_path: Path
) -> None:
    run = shutil.copytree(whole, tmp_path / "run")
    shutil.rmtree(run / "checkpoint")
    (run / "rank-0000.h5").unlink()
    assert "rank-0000.h5: is missing" in COMMANDS["resume"](run, whole)
    (run / "run.h5").rename(run / "rank-0001.h5")
    assert "rank-0000.h5: is missing" in COMMANDS["resume"](run, whole)
    assert (run / "rank-0001.h5").exists()


def test_a_joined_file_that_is_damaged_is_named_and_mended(whole: Path, tmp_path: Path) -> None:
    run = shutil.copytree(whole, tmp_path / "run")
    flip(run / "run.h5")
    for command in ("report", "watch", "diff", "compare", "resume"):
        assert f"{run / 'run.h5'}: is damaged" in COMMANDS[command](run, whole)
    assert "nothing was left open" in COMMANDS["mend"](run, whole)
    assert COMMANDS["diff"](run, whole).startswith("the same, bit for bit")


def test_an_experiment_that_was_altered_is_not_gone_on_with(whole: Path, tmp_path: Path) -> None:
    run = shutil.copytree(whole, tmp_path / "run")
    kept = run / "experiment.toml"
    kept.write_text(kept.read_text().replace('"20 us"', '"30 us"'))
    assert 'was begun with run.duration = "20 us", not "30 us"' in COMMANDS["resume"](run, whole)
    kept.write_bytes(b"\0\xff" + kept.read_bytes()[2:])
    assert f"refused: {kept}: line 1" in COMMANDS["resume"](run, whole)


@pytest.mark.parametrize("places", [10, pytest.param(25, marks=pytest.mark.long)])
def test_a_value_that_was_altered_on_disk_is_refused_when_it_is_read(
    whole: Path, tmp_path: Path, places: int
) -> None:
    """Samples are read when they are used: here at some places of the file."""
    with open_run(whole) as run:
        usual = {name: run.ports[name].data.tobytes() for name in run.ports.data_vars}
    place, outcomes = shutil.copytree(whole, tmp_path / "run"), set()
    size = (whole / "rank-0000.h5").stat().st_size
    for at in range(60, size, size // places):
        shutil.copy(whole / "rank-0000.h5", place / "rank-0000.h5")
        flip(place / "rank-0000.h5", at)
        try:
            with open_run(place) as run:
                found = {name: run.ports[name].data.tobytes() for name in usual}
        except Refused as refusal:
            outcomes.add("refused" if "rank-0000.h5: is damaged" in str(refusal) else "unnamed")
        else:
            outcomes.add("same" if found == usual else "wrong")
    assert outcomes <= {"refused", "same"}
    assert "refused" in outcomes
