"""Work shared out over as many ranks as these tests are run on."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from odonata.studies.levelspread import store, sweep
from odonata.studies.levelspread.cases import Asked
from odonata.studies.levelspread.simulation import Answer, Outcome, Point
from odonata.study import pool
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


def invent(point: Point) -> Answer:
    """An outcome that only the point decides."""
    times = tuple((int(point.key[:6], 16),) * kind.count for kind in point.kinds)
    five = (0.0, 1.0, 2.0, 3.0, 4.0)
    ports = {kind: {"packets": five, "stall_ps": five} for kind in ("local", "global")}
    return Answer(point, Outcome(times, ports, 1, point.key, 0.0))


def test_a_study_is_filled_once_by_all_and_refused_by_all(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "mark", lambda: "abc")
    monkeypatch.setattr(sweep, "simulate", invent)
    asked = Asked(workloads=2, repeat=1)
    ran = sweep.fill(asked, ("jokanovic",), place, 1)
    assert (ran.simulated, ran.missing, ran.workers) == (8, 0, world().size)
    lines = store.path_in(place).read_text().splitlines()
    assert len(lines) == 9
    assert len({json.loads(line)["key"] for line in lines[1:]}) == 8
    assert sweep.fill(asked, ("jokanovic",), place, 1).simulated == 0
    monkeypatch.setattr(sweep, "mark", lambda: "xyz")
    with pytest.raises(Refused, match="answers otherwise"):
        sweep.fill(asked, ("jokanovic",), place, 1)
