"""`odonata profile`: the part of time in each kind of operation, and what follows from it."""

from __future__ import annotations

import doctest
import json
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner

from odonata.commands import profile as profiling
from odonata.commands.cli import cli
from odonata.commands.measured import draft_of
from odonata.experiment.reading import parse
from odonata.experiment.sensitivity import USUAL, read_table
from odonata.results import job_network
from odonata.studies.congestion.gpcnet import CANARIES
from odonata.studies.congestion.simulation import NONE, Point, experiment_of, simulate
from odonata.sweeps.plan import planned
from pdes.errors import Refused

QUICK = ("--repetitions", "1")
MINE = """
iterations = 2
tasks_per_node = 2

[[stages]]
pattern = "allreduce"
message = "8 B"
compute = "{compute}"

[[stages]]
pattern = "halo3d"
exchange = "pairwise"
message = "64 B"

[[stages]]
pattern = "allreduce"
name = "barrier"
"""


def profiled(*words: Any) -> Any:
    command = ["profile", *map(str, words), *QUICK]
    result = CliRunner().invoke(cli, command, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.output) if "--json" in words else result.output


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("mine")
    for name, compute in (("eager", "1 us"), ("lazy", "1 ms")):
        (place / f"{name}.toml").write_text(MINE.format(compute=compute))
    return place


@pytest.mark.parametrize("module", [profiling, job_network])
def test_examples_in_docstrings_are_so(module: ModuleType) -> None:
    failed, tried = doctest.testmod(module)
    assert (failed, tried > 0) == (0, True)


def test_the_defaults_of_the_options_are_the_limits_of_the_rule() -> None:
    named = {option.name: option for option in profiling.command.params}
    limits = [profiling.part(named[name].default) for name in ("collectives", "blocking")]
    assert (*limits, named["slower"].default) == (
        USUAL.collectives, USUAL.blocking, USUAL.slower)  # fmt: skip


@pytest.mark.long
def test_the_shares_are_those_of_the_application_in_setting_one() -> None:
    (found,) = profiled("qmcpack", "--json")
    assert found["application"] == "qmcpack"
    assert (found["sensitive"], found["profile_says"], found["slowdown"]) == (True, True, None)
    seen = simulate(Point("qmcpack", "I", 0, NONE))
    assert found["operations"] == {"allreduce": round(seen.operations["allreduce"], 4),
                                   "wait": round(seen.operations["send"], 4)}  # fmt: skip
    assert found["why"] == f"allreduce + bcast {found['operations']['allreduce']:.1%} > 5%"


@pytest.mark.long
def test_an_application_of_ones_own_is_profiled_and_the_table_is_read(mine: Path) -> None:
    files, table = [mine / "eager.toml", mine / "lazy.toml"], mine / "table.toml"
    table.write_text("[other]\nsensitive = true\n[lazy]\nsensitive = true\nslowdown = 9\n")
    shown = profiled(*files, "--nodes", 4, "-o", table)
    assert all(word in shown for word in ("eager", "lazy", "allreduce", "p2p", "barrier", "yes"))
    known = read_table(table)
    assert [*known] == ["eager", "lazy", "other"]
    assert {name: it.sensitive for name, it in known.items()} == {
        "eager": True, "lazy": False, "other": True}  # fmt: skip
    assert known["lazy"].slowdown is None, "it is what was found last"
    assert [kind for kind, _ in known["eager"].operations] == ["allreduce", "p2p", "barrier"]
    first = table.read_bytes()
    assert tomllib.loads(first.decode())["eager"]["how"] == "rule"
    profiled(*reversed(files), "--nodes", 4, "-o", table)
    assert table.read_bytes() == first
    for name, sensitive in (("eager", True), ("lazy", False)):
        text = f"scheduler.sensitivity = 'table.toml'\n[[jobs]]\nnodes = 4\nprofile = '{name}.toml'"
        assert parse(text, str(mine / "demo.toml")).jobs[0].sensitive is sensitive


def test_the_limits_can_be_given(mine: Path, go: Callable[..., str]) -> None:
    """Not compiled: jobs through crossbars would be for this alone."""
    limits = ("--collectives", "99%", "--blocking", "0.99")
    asked = ("profile", mine / "eager.toml", "--nodes", 4, "--json", *QUICK)
    (found,) = json.loads(go(*asked, *limits, ODONATA_JIT="0"))
    assert (found["sensitive"], found["why"]) == (False, "")


@pytest.mark.long
def test_a_slowdown_is_measured_beside_gpcnet(mine: Path) -> None:
    asked = (mine / "eager.toml", "--slowdown", "--nodes", 16, "--json")
    (found,) = profiled(*asked)
    assert (found["how"], found["operations"]) == ("slowdown", {})
    assert found["slowdown"] >= 1
    assert found["sensitive"] is (found["slowdown"] > 1.1)
    (below,) = profiled(*asked, "--slower", "0.5")
    assert below["sensitive"]
    assert f"{found['slowdown']:.2f} times as long" in below["why"]
    assert "times as long" in profiled(*asked[:-1])


def test_what_is_written_are_the_runs_of_the_study(tmp_path: Path) -> None:
    """Those of GPCNeT with each canary, and of an application beside it and without."""
    points = {f"{seed}": Point("", NONE, 0, "rma-incast", "bandwidth", 16, seed=seed)
              for seed in (0, 1)}  # fmt: skip
    shifts = {f"{shift}": Point("milc", "IV", shift, "rma-incast", nodes=16)
              for shift in (0, 1)}  # fmt: skip
    for draft, asked, quiet in (
        (draft_of("a test", "choice", points, True, [*CANARIES]), points, {}),
        (draft_of("a test", "shift", shifts, True), shifts, {"setting": "II"}),
    ):
        (tmp_path / "all.toml").write_text(draft.text)
        for point in planned(tmp_path / "all.toml").points:
            *canary, which, how = point.labels
            alone = {"congestor": NONE, **quiet} if how == "alone" else {}
            one = replace(asked[which], canary=canary[0] if canary else NONE, **alone)
            assert point.experiment() == experiment_of(one.jobs(), one.tasks, one.machine)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["milk"], "did you mean milc?"),
        (["milc", "milc"], "milc: named twice"),
        (["milc", "--nodes", "200"], "milc on 200 nodes: 1 .. 128, at most a third of aries-group"),
        (["milc", "--nodes", "4", "--slowdown"], "milc on 4 nodes: 10 .. 128"),
        (["milc", "--machine", "aries"], "machine aries: one of"),
        (["milc", "--repetitions", "11"], "repetitions = 11: 1 .. 10"),
        (["gpcnet-rma-broadcast"], "its 100,000 iterations are those of a congestor"),
        (["milc", "--slower", "0"], "slower = 0: above 0"),
        (["milc", "-o", "nowhere/table.toml"], "nowhere/table.toml: there is no such directory"),
        (["odd.toml"], "stages[0].grid = 3 × 3: it has 9 places"),
        (["milc", "-o", "odd.toml"], "odd.toml: stages = a list: a table"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], problem: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd.toml").write_text("[[stages]]\npattern = 'halo2d'\ngrid = [3, 3]")
    with pytest.raises(Refused) as refused:
        CliRunner().invoke(cli, ["profile", *words], catch_exceptions=False)
    assert problem in str(refused.value)


def test_a_part_is_of_one() -> None:
    for text, problem in (("5", "not from 0% to 100%"), ("much", "not a part of the time")):
        result = CliRunner().invoke(cli, ["profile", "milc", "--blocking", text])
        assert result.exit_code == 2
        assert problem in result.output
