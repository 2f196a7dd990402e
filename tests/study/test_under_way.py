"""A study tells how far it is while it goes on, and `odonata watch` shows it."""

from __future__ import annotations

import json
import os
import platform
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from dice import LOADED, Dice, DicePlan, Roll, Shown

from odonata.commands.cli import cli
from odonata.study import under_way
from odonata.study.filling import fill
from odonata.study.under_way import CUT, OVER, RUNNING, Told, told_in
from pdes.errors import Fault

TOLD = Told("mine", RUNNING, 8, 3, 1, 1, 0.25, 0.0, 0.0, ("a = 4", "a = 5"), platform.node(),
            os.getpid())  # fmt: skip


def shown(place: Path) -> str:
    done = CliRunner(env={"COLUMNS": "200"}).invoke(cli, ["watch", str(place)])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory of a study with three outcomes of its eight."""
    lines = [{"study": "mine", "format": 1}]
    lines += [{"key": str(a), "point": {"a": a, "of": 8}, "found": a / 4} for a in range(3)]  # type: ignore[dict-item]
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path


def told(place: Path, **changes: object) -> None:
    now = time.time()
    it = replace(TOLD, **{"began": now - 20, "now": now, **changes})  # type: ignore[arg-type]
    (place / "progress.json").write_text(json.dumps(asdict(it)))


def test_a_study_that_goes_on_is_shown_with_what_it_does_now(place: Path) -> None:
    told(place)
    text = shown(place)
    assert "mine in" in text
    assert "running" in text
    assert "3 of 8 points  0.1/s  60 s left" in text
    assert "1 failed" in text
    assert "under way: a = 4; a = 5" in text
    assert [line.split() for line in text.splitlines()[-4:]] == [
        ["a", "found"], ["0", "0"], ["1", "0.25"], ["2", "0.5"]
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"state": OVER, "wanted": 3}, "complete"),
        ({"state": CUT}, "stopped; the same command goes on"),
        ({"pid": 2**22 + 1}, "died; the same command goes on"),
        ({"pid": 2**22 + 1, "host": "another"}, "running"),
        ({"now": 1000.0, "began": 0.0}, "in a long simulation, or dead"),
    ],
)
def test_how_a_study_ended_is_told(place: Path, changes: dict[str, object], words: str) -> None:
    told(place, **changes)
    assert words in shown(place)


def test_a_study_of_before_that_tells_nothing_is_shown_all_the_same(place: Path) -> None:
    text = shown(place)
    assert "whether it goes on is not known" in text
    assert "3 points" in text
    (place / "progress.json").write_text("{")
    assert shown(place) == text


def test_shares_of_a_study_are_shown_together(place: Path) -> None:
    told(place)
    for number in (1, 2):
        path = place / f"results-000{number}-of-0002.jsonl"
        path.write_text((place / "results.jsonl").read_text())
        (place / "progress.json").replace(place / f"progress-000{number}-of-0002.json")
        told(place)
    (place / "results.jsonl").unlink()
    (place / "progress.json").unlink()
    assert "6 of 16 points  0.2/s  60 s left" in shown(place)


def test_while_it_goes_on_a_study_tells_what_is_there_and_what_is_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = list[Told]()

    def watched(self: Dice, case: Roll) -> Shown:
        seen.extend(told_in(tmp_path))
        return Shown(case.seed)

    monkeypatch.setattr(under_way, "EVERY", 0.0)
    monkeypatch.setattr(Dice, "mark", lambda self: "abc")
    monkeypatch.setattr(Dice, "simulate", watched)
    fill(Dice(), DicePlan(2), tmp_path, 1)
    assert [(it.state, it.wanted, it.there, it.under_way) for it in seen] == [
        (RUNNING, 4, number, (f"roll {number % 2} of {sides} sides",))
        for number, sides in enumerate((6, 6, 20, 20))
    ]
    (last,) = told_in(tmp_path)
    assert (last.state, last.there, last.kept, last.under_way) == (OVER, 4, 0, ())
    assert "complete" in shown(tmp_path)


def test_what_failed_leaves_a_study_that_was_cut_short(tmp_path: Path) -> None:
    with pytest.raises(Fault):
        fill(Dice(), DicePlan(1, sides=(6, LOADED)), tmp_path, 1)
    (last,) = told_in(tmp_path)
    assert (last.state, last.wanted, last.there) == (CUT, 2, 1)
