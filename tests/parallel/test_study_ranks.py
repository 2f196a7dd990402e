"""Work shared out over as many ranks as these tests are run on."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from dice import LOADED, Dice, DicePlan, UntilSix

from odonata.study import pool, store
from odonata.study.filling import fill
from odonata.study.worker import Failure
from pdes.errors import Fault, Refused
from pdes.transport import world

pytestmark = pytest.mark.mpi(min_size=2)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The same for all."""
    return Path(world().everyone(str(tmp_path))[0])


class Listed:
    def __init__(self, tasks: list[int]) -> None:
        self.tasks, self.missing, self.answers = tasks, len(tasks), list[Any]()

    def take(self) -> int | None:
        return self.tasks.pop(0) if self.tasks else None

    def note(self, answer: Any) -> None:
        self.answers.append(answer)
        self.missing -= 1

    def excuse(self, task: Any, failure: Failure) -> bool:
        return False

    @property
    def done(self) -> float:
        return 0.0


def who(number: int) -> tuple[int, int]:
    return number, os.getpid()


def refuse_seven(number: int) -> int:
    if number == 7:
        raise Fault("seven is not served")
    return number


def test_all_ranks_work_and_rank_0_hears_all_answers() -> None:
    agenda = Listed(list(range(60)))
    pool.share(agenda, who)
    if world().rank == 0:
        assert sorted(number for number, _ in agenda.answers) == list(range(60))
        assert len({pid for _, pid in agenda.answers}) == world().size
    else:
        assert not agenda.answers
    assert pool.workers(1) == world().size


def test_a_task_that_fails_fails_on_all_ranks_alike() -> None:
    with pytest.raises(Fault, match="seven is not served"):
        pool.share(Listed(list(range(20))), refuse_seven)
    pool.share(Listed([1, 2, 3]), refuse_seven)  # and nothing is left over


def test_nothing_to_do_is_done_at_once() -> None:
    pool.share(Listed([]), who)


def test_a_study_is_filled_once_by_all_and_refused_by_all(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study, asked = Dice(), DicePlan(rolls=4)
    ran, kept = fill(study, asked, place, 1)
    assert (ran.simulated, ran.missing) == (8, 0)
    assert ran.workers == min(8, world().size)
    assert len(kept.outcomes) == (8 if world().rank == 0 else 0)
    lines = store.path_in(place).read_text().splitlines()
    assert len(lines) == 9
    assert len({json.loads(line)["key"] for line in lines[1:]}) == 8
    assert fill(study, asked, place, 1)[0].simulated == 0
    monkeypatch.setattr(Dice, "mark", lambda self: "xyz")
    with pytest.raises(Refused, match="answers otherwise"):
        fill(study, asked, place, 1)


def test_a_sequential_study_ends_on_all_ranks_where_its_outcomes_say() -> None:
    study, asked = UntilSix(), DicePlan(rolls=500)
    ran, kept = fill(study, asked, None, 1)
    assert ran.missing == 0
    if world().rank == 0:
        shown = [kept.outcomes[roll.key].value for roll in study.cases(asked, kept.outcomes)]
        assert shown.index(6) == len(shown) - 1


def test_a_case_that_fails_is_named_on_all_ranks() -> None:
    with pytest.raises(Fault, match=r"roll \d of 13 sides: this die is loaded"):
        fill(Dice(), DicePlan(3, sides=(6, LOADED)), None, 1)
