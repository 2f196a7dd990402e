"""`odonata study`: the studies there are, and one command for each."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from conftest import clean_environment
from dice import Dice

import odonata.commands.study as command
from odonata.commands.cli import cli
from odonata.studies import STUDIES, named
from odonata.study.contract import Study
from pdes.errors import Refused

Run = Callable[..., subprocess.CompletedProcess[str]]


def invoke(*words: str) -> str:
    result = CliRunner().invoke(cli, list(words), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_studies_are_listed_by_name_with_what_they_are_about() -> None:
    shown = invoke("study")
    listed = json.loads(invoke("study", "--json"))
    assert [one["name"] for one in listed] == [*STUDIES, "load-latency"]
    for one in listed:
        assert one["name"] in shown
        assert one["about"].split()[0] in shown


def test_every_study_has_a_name_and_is_sent_to_other_processes_by_it() -> None:
    import pickle

    for name in STUDIES:
        study = named(name)
        assert isinstance(study, Study)
        assert study.name == name
        assert type(pickle.loads(pickle.dumps(study))) is type(study)
        assert invoke("study", name, "--help")


def test_a_study_that_is_not_there_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(Refused, match=r"one of level-spread, .*; did you mean level-spread"):
        invoke("study", "levelspread")


def test_to_list_them_loads_nothing_heavy() -> None:
    code = (
        "import sys; from odonata.commands.cli import cli; "
        "cli.main(['study', 'level-spread', '--help'], standalone_mode=False); "
        "sys.exit(any(name in sys.modules for name in ('numpy', 'numba', 'matplotlib', 'rich')))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=clean_environment(),
                   capture_output=True)  # fmt: skip


def test_options_are_those_of_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "named", lambda name: Dice())
    assert "Rolls of each die.  [default: 10]" in invoke("study", "dice", "--help")
    words = ("study", "dice", "-o", str(tmp_path / "d"), "--jobs", "1", "--json")
    found = json.loads(invoke(*words, "--rolls", "3"))
    assert found["ran"]["simulated"] == 6
    assert json.loads(invoke(*words, "--rolls", "4", "--report"))["completed"] is False
    with pytest.raises(Refused, match="rolls = 0: at least 1"):
        invoke(*words, "--rolls", "0")
