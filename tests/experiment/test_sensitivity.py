"""Whether congestion slows a job down: who says so, and what a run keeps of it."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

import odonata
from odonata.experiment import sensitivity
from odonata.experiment.reading import load, parse
from odonata.experiment.sensitivity import Known, Limits, read_table, reasons, write_table
from odonata.results.execution import RunOptions, execute
from pdes.errors import Refused

TABLE = """
[milc]
sensitive = false
how = "rule"
operations = { allreduce = 0.02 }

[ocean]
sensitive = true

["never heard of"]
sensitive = true
"""
STAGES = "[[stages]]\npattern = 'halo3d'\nmessage = '1 KiB'\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "table.toml").write_text(TABLE)
    (tmp_path / "mine.toml").write_text(STAGES)
    (tmp_path / "yours.toml").write_text(f"sensitive = false\n{STAGES}")
    return tmp_path


def resolved(place: Path, job: str, table: bool = True, *changes: str) -> bool | None:
    named = '[scheduler]\nsensitivity = "table.toml"\n' if table else ""
    made = parse(f"[[jobs]]\nnodes = 8\n{job}\n{named}", str(place / "demo.toml"), changes)
    assert made.model().scheduler.requests[0].sensitive is made.jobs[0].sensitive
    again = parse(made.to_toml(), "elsewhere/experiment.toml")
    assert again == made
    assert again.to_toml() == made.to_toml()
    return made.jobs[0].sensitive


def test_the_examples_in_docstrings_are_so() -> None:
    failed, tried = doctest.testmod(sensitivity)
    assert (failed, tried > 0) == (0, True)


@pytest.mark.parametrize(
    ("job", "by_table", "otherwise"),
    [
        ("profile = 'milc'\nsensitive = true", True, True),
        ("profile = 'milc'\nsensitive = 'unknown'", None, None),
        ("profile = 'milc'", False, True),
        ("profile = 'lammps'", True, True),
        ("profile = 'hpcg'", False, False),
        ("profile = 'hpcg'\napplication = 'ocean'", True, False),
        ("profile = 'yours.toml'", False, False),
        ("profile = 'mine.toml'", None, None),
        ("profile = 'gpcnet-all-to-all'", None, None),
        ("application = 'ocean'", True, None),
        ("application = 'air'", None, None),
        ("", None, None),
        ("name = 'milc'", None, None),
    ],
)
def test_a_job_says_it_or_the_table_or_its_profile(
    place: Path, job: str, by_table: bool | None, otherwise: bool | None
) -> None:
    assert resolved(place, job) is by_table
    assert resolved(place, job, table=False) is otherwise


def test_the_name_of_a_profile_in_a_file_is_that_of_the_file(place: Path) -> None:
    (place / "table.toml").write_text("[mine]\nsensitive = true")
    assert resolved(place, "profile = 'mine.toml'") is True


def test_the_file_is_found_beside_the_experiment_and_can_be_set(place: Path) -> None:
    (place / "demo.toml").write_text("[[jobs]]\nnodes = 8\nprofile = 'milc'")
    made = load(place / "demo.toml", ["scheduler.sensitivity=table.toml"])
    assert made.jobs[0].sensitive is False


def test_another_profile_is_not_what_the_first_was(place: Path) -> None:
    kept = parse("[[jobs]]\nnodes = 8\nprofile = 'milc'", "demo.toml").to_toml()
    assert "sensitive = true" in kept
    for change, sensitive in (("profile=hpcg", False), ("profile=gpcnet-allreduce", None)):
        assert parse(kept, "demo.toml", [f"jobs[0].{change}"]).jobs[0].sensitive is sensitive
    both = ["jobs[0].profile=hpcg", "jobs[0].sensitive=true"]
    assert parse(kept, "demo.toml", both).jobs[0].sensitive is True


def test_a_run_keeps_what_was_resolved(place: Path) -> None:
    file = place / "demo.toml"
    file.write_text("machine.preset = 'kim-72'\nnetwork.routing = 'adaptive'\n"
                    "scheduler.sensitivity = 'table.toml'\n"
                    "[[jobs]]\nnodes = 4\nprofile = 'yours.toml'\napplication = 'ocean'\n"
                    "[[jobs]]\nnodes = 4\nprofile = 'yours.toml'")  # fmt: skip
    assert execute(RunOptions(file, out=place / "out")) is not None
    for name in ("table.toml", "yours.toml", "demo.toml"):
        (place / name).unlink()
    assert "sensitivity" not in (place / "out" / "experiment.toml").read_text()
    with odonata.open(place / "out") as run:
        assert not run.missing
        assert [job.sensitive for job in run.experiment.jobs] == [True, False]


def test_a_run_of_before_opens_as_it_was() -> None:
    """Its file has the stages of a profile, and nothing about sensitivity."""
    made = parse("[[jobs]]\nnodes = 8\nprofile = 'milc'", "demo.toml")
    old = re.sub(r"\nsensitive = .*", "", made.to_toml())
    assert parse(old, "demo.toml").jobs[0].sensitive is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("milc = true", "milc = true: a table, [milc], with sensitive"),
        ("[milc]", "milc.sensitive: must be given: true or false"),
        ("[milc]\nsensitive = 'yes'", 'milc.sensitive = "yes": true or false'),
        ("[milc]\nsensitiv = true", "milc.sensitiv: unknown; did you mean sensitive?"),
        ("[milc]\nsensitive = true\nslowdown = 'much'", 'milc.slowdown = "much": a number'),
        ("[milc]\nsensitive = true\noperations = 3", "milc.operations = 3: a table"),
        ("[milc]\nsensitive = true\noperations = { wait = 2 }",
         "milc.operations.wait = 2: a number, 0 .. 1"),
        ("[milc]\nsensitive = true\noperations = { waits = 0.2 }",
         "milc.operations.waits: unknown; one of allreduce, bcast, p2p, wait, test, barrier, "
         "other"),
        ("[milc", "line 1: Expected"),
    ],
)  # fmt: skip
def test_a_wrong_table_is_refused_with_file_and_key(place: Path, text: str, words: str) -> None:
    (place / "table.toml").write_text(text)
    with pytest.raises(Refused) as refused:
        resolved(place, "")
    assert f'demo.toml: scheduler.sensitivity = "table.toml": {place}' in str(refused.value)
    assert f"{place / 'table.toml'}: {words}" in str(refused.value)


def test_a_table_that_is_not_there_is_refused(place: Path) -> None:
    (place / "table.toml").unlink()
    with pytest.raises(Refused, match=r"scheduler.sensitivity = .*table.toml: cannot be read"):
        resolved(place, "")
    with pytest.raises(Refused, match=r"scheduler.sensitivity .*there are no \[\[jobs\]\]"):
        parse("scheduler.sensitivity = 'table.toml'", "demo.toml")
    with pytest.raises(Refused, match=r'scheduler.sensitivity .*only with fidelity = "packet"'):
        parse("fidelity = 'job'\nscheduler.sensitivity = 'table.toml'", "demo.toml")


def test_a_table_is_written_and_read_again(tmp_path: Path) -> None:
    table = {
        "an application": Known(True, "slowdown", 'slower "by far"', 2.5),
        "milc": Known(
            False, "rule", "", None, 64, "aries-group", (("allreduce", 0.02), ("wait", 0.05))
        ),
    }
    path = tmp_path / "table.toml"
    write_table(path, table)
    assert read_table(path) == table
    first = path.read_bytes()
    write_table(path, dict(reversed(table.items())))
    assert path.read_bytes() == first
    assert [*tmp_path.iterdir()] == [path]


def test_the_limits_of_the_rule_are_not_sensitive_themselves() -> None:
    assert not reasons({"allreduce": 0.05, "p2p": 0.1})
    assert not reasons({"test": 0.9, "barrier": 0.9, "other": 0.9})
    assert reasons({"allreduce": 0.03, "bcast": 0.03})
    assert reasons({"p2p": 0.06, "wait": 0.06})
    assert not reasons({"p2p": 0.06, "wait": 0.06}, Limits(blocking=0.2))
