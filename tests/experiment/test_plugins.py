"""Policies in an experiment file: their parameters, and plug-ins that bring them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from files import conforms, forget_plugins, refusal

from odonata.experiment.experiment import Experiment
from odonata.experiment.reading import load, parse
from pdes.errors import Refused
from policies.register import PLUGINS

DOC = (Path(__file__).parents[2] / "docs" / "policies.md").read_text()
PLUGIN = """
from odonata import allocation, discipline
from policies.parameters import parameter


@allocation("backwards", about="the last that are idle", source="a test")
def backwards(sight, job, rng, *,
              spare=parameter(0, unit="nodes", about="left idle", least=0),
              pause=parameter(0, unit="time", about="between two"),
              share=0.5, loud=False, tag="x"):
    return sight.labels[::-1][: job.nodes]


@discipline("newest", about="the newest first", source="a test", strict=False)
def newest(queue):
    return list(range(len(queue)))[::-1]
"""
FILE = """
plugins = ["mine.py"]
[[jobs]]
nodes = 4
[scheduler]
order = "newest"
[scheduler.allocation]
name = "backwards"
spare = 2
pause = "5 us"
share = 1
loud = true
tag = "y"
"""
GIVEN = (("spare", 2), ("pause", 5 * 10**6), ("share", 1.0), ("loud", True), ("tag", "y"))


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "mine.py").write_text(PLUGIN)
    (tmp_path / "mine.toml").write_text(FILE)
    yield tmp_path / "mine.toml"
    forget_plugins("backwards", "newest")


def refusals(path: Path, *changes: str) -> list[str]:
    with pytest.raises(Refused) as refused:
        load(path, changes)
    return str(refused.value).replace(f"{path}: ", "").split("\n")


def test_a_plugin_beside_the_file_brings_policies_with_parameters(file: Path) -> None:
    made = load(file)
    assert made.plugins == (str(file.parent / "mine.py"),)
    assert (made.scheduler.allocation, made.scheduler.order) == ("backwards", "newest")
    assert made.scheduler.allocation_parameters == GIVEN
    assert made.model().workload.allocation_parameters == GIVEN  # type: ignore[union-attr]
    assert 'allocation = { name = "backwards", spare = 2, pause = "5 us"' in made.to_toml()
    assert parse(made.to_toml(), "elsewhere/mine.toml") == made


def test_a_plugin_may_be_given_beside_the_file(file: Path) -> None:
    alone = FILE.replace('plugins = ["mine.py"]', "")
    (file.parent / "alone.toml").write_text(alone)
    assert load(file.parent / "alone.toml", ["name=mine"], [file.parent / "mine.py"]) == load(file)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ("spar=3", "unknown; backwards has spare, pause, share, loud, tag; did you mean spare?"),
        ("spare=-1", "a whole number of nodes, at least 0"),
        ("spare=two", "a whole number"),
        ("pause=5", 'a bare number; a time with its unit, as "1.5 us"'),
        ("pause=5 parsecs", "not a time: a number and one of ps, ns, us, ms, s"),
        ("loud=1", "true or false"),
    ],
)
def test_a_wrong_parameter_is_told_with_what_is_accepted(
    file: Path, change: str, line: str
) -> None:
    change = f"scheduler.allocation.{change}"
    assert refusals(file, change) == [f"--set {change}: {line}"]


def test_problems_of_a_table_are_told_with_the_file(file: Path) -> None:
    file.write_text(FILE.replace("spare = 2", "spare = 2.5").replace("tag", "tg"))
    assert refusals(file) == [
        "scheduler.allocation.tg: unknown; backwards has spare, pause, share, loud, tag; did you "
        "mean tag?",
        "scheduler.allocation.spare = 2.5: a whole number",
    ]
    assert refusal("[[jobs]]\nnodes = 2\n[scheduler.allocation]\nname = 'rdn'\nwidth = 3") == [
        "demo.toml: scheduler.allocation.width: unknown; rdn has no parameters"
    ]
    (line,) = refusal("[[jobs]]\nnodes = 2\n[scheduler.order]\nwidth = 3")
    assert line.startswith("demo.toml: scheduler.order = a table: its name is missing: one of fcfs")


def test_another_policy_takes_nothing_of_the_parameters_of_the_one_it_replaces(file: Path) -> None:
    made = load(file, ["scheduler.allocation=rdn"])
    assert (made.scheduler.allocation, made.scheduler.allocation_parameters) == ("rdn", ())
    whole = load(file, ["scheduler.allocation={name = 'backwards', spare = 7}"])
    assert whole.scheduler.allocation_parameters == (("spare", 7),)


def test_a_parameter_of_the_usual_policy_can_be_set_or_is_refused_too() -> None:
    change = "scheduler.allocation.width=8"
    assert refusal("[[jobs]]\nnodes = 2", change) == [
        f"--set {change}: unknown; level-spread has no parameters"
    ]
    assert refusal("", change) == [f"--set {change}: unknown; level-spread has no parameters"]


def test_a_plugin_that_cannot_be_loaded_is_told_once_with_its_line(file: Path) -> None:
    (file.parent / "mine.py").write_text("import os\n1 / 0\n")
    (line,) = refusals(file)
    assert line == (f'plugins = ["mine.py"]: plug-in {file.parent / "mine.py"}, line 2: '
                    "ZeroDivisionError: division by zero")  # fmt: skip


def test_what_a_run_left_is_read_without_the_plugin_and_says_what_is_missing(file: Path) -> None:
    text = load(file).to_toml()
    (file.parent / "mine.py").unlink()
    forget_plugins("backwards", "newest")
    made = parse(text, "out", stand_in=True)
    assert made.missing == ("allocation 'backwards'", "scheduling 'newest'")
    assert made.model().workload.allocation == "backwards"  # type: ignore[union-attr]
    assert made.to_toml() == text
    assert not PLUGINS
    with pytest.raises(Refused, match="No such file"):
        parse(text, "out")
    with pytest.raises(Refused, match=r'scheduler\.allocation = "backwards": one of'):
        parse(text.replace(f'"{file.parent / "mine.py"}"', ""), "out")


def test_an_experiment_that_needs_no_plugin_misses_none(file: Path) -> None:
    made: Experiment = parse(load(file).to_toml(), "out", stand_in=True)
    assert made.missing == ()
    conforms(tomllib.loads(FILE.replace("backwards", "rdn").replace("newest", "fcfs")))


def test_a_plugin_that_was_changed_is_another_run(file: Path) -> None:
    """Its checkpoints are not gone on with."""
    before = load(file).model().parameters()
    (file.parent / "mine.py").write_text(PLUGIN.replace("[::-1]", "[::-1].copy()"))
    after = load(file).model().parameters()
    assert set(json.loads(str(before["plugins"]))) == {"allocation backwards", "scheduling newest"}
    assert {**before, "plugins": ""} == {**after, "plugins": ""}
    assert before["plugins"] != after["plugins"]


def test_a_plugin_of_four_kinds_runs_on_two_ranks_and_its_run_is_read_without_it(
    odonata: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """The example of docs/policies.md; with the JIT off, so that nothing need be compiled."""
    code = next(it for it in re.findall(r"```python\n(.*?)```", DOC, re.DOTALL) if "mine.py" in it)
    policies = code.split("\n\n\n")[1:]
    assert [re.search(r"@(\w+)\(", it)[1] for it in policies] == [  # type: ignore[index]
        "routing", "allocation", "discipline", "pattern"
    ]  # fmt: skip
    assert all(len(it.splitlines()) < 25 for it in policies)
    (tmp_path / "mine.py").write_text(code)
    file = next(it for it in re.findall(r"```toml\n(.*?)```", DOC, re.DOTALL) if "kim-72" in it)
    (tmp_path / "mine.toml").write_text(file)
    words = ("run", "mine.toml", "--plugin", "mine.py", "--set", "jobs[0].message=64 B", "--json")
    ran = [odonata(*words, "-o", f"out-{ranks}", ranks=ranks, ODONATA_JIT="0") for ranks in (2, 1)]
    assert [done.returncode for done in ran] == [0, 0], [done.stderr for done in ran]
    digests = [json.loads(done.stdout)["digest"] for done in ran]
    assert digests[0] == digests[1]

    (tmp_path / "mine.py").unlink()
    four = "routing 'mine', pattern 'mine', allocation 'mine', scheduling 'mine'"
    for command in (("report", "out-2"), ("compare", "out-2", "out-1"), ("diff", "out-2", "out-1")):
        done = odonata(*command)
        assert done.returncode == 0, done.stderr
        said = [line for line in done.stderr.splitlines() if "missing" in line]
        assert len(said) == len(command) - 1
        assert all(f"mine.py) of {four} is missing" in line for line in said), said
    assert "is missing; all that was" in " ".join(odonata("watch", "out-2").stdout.split())
    read = "import odonata; run = odonata.open('out-2'); print(run, len(run.job_records))"
    opened = subprocess.run([sys.executable, "-c", read], cwd=tmp_path, capture_output=True,
                            text=True, check=True)  # fmt: skip
    assert f"the plug-in of {four} is missing" in opened.stdout
    assert opened.stdout.endswith(" 4\n")
