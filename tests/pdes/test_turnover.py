"""Wherever a run dies while its files become those of other ranks, nothing is lost."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from threads import bits, files, go

from pdes import turnover
from pdes.errors import Refused
from pdes.join import ranks_of
from pdes.phold import Phold
from pdes.stream import Recording

MODEL = Phold(processes=13, population=3, seed=5)
INTERVAL, END = 500_000, 4_000_000


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a directory with a checkpoint of three ranks and what they recorded; and a whole
    run."""
    place = tmp_path_factory.mktemp("turnover")
    go(MODEL, 2_200_000, 3, record=recording(place / "parts"), checkpoint_dir=place / "saved",
       checkpoint_every=1_000_000)  # fmt: skip
    go(MODEL, END, 1, record=recording(place / "whole"))
    return place


@pytest.fixture(scope="module")
def whole(begun: Path) -> dict[str, tuple[Any, bytes]]:
    return bits(begun / "whole")


def recording(place: Path) -> Recording:
    return Recording(place, INTERVAL, ("processes",))


DIES = """
import os, sys
from pathlib import Path

sys.path += [sys.argv[1], sys.argv[1] + "/pdes"]
from test_turnover import END, MODEL, go, recording
from pdes.turnover import NOTE

place, left, begun = Path(sys.argv[2]), int(sys.argv[3]), False


def hook(event, words):
    global left, begun
    if event in ("os.rename", "os.remove"):
        path = Path(os.fsdecode(words[event == "os.rename"]))
        begun = begun or path.name == NOTE
        if begun and path.parent == place / "parts":
            left -= 1
            if left < 0:
                os._exit(0)


sys.addaudithook(hook)
go(MODEL, END, 2, record=recording(place / "parts"), resume=place / "saved")
print("it has not died")
"""


@pytest.mark.parametrize(("step", "then"), [
    (0, (1,)), (1, (4, 1)), (2, (1,)), (3, (4, 1)), (4, (1,)),
    *(pytest.param(step, (4, 1), marks=pytest.mark.long) for step in (0, 2, 4)),
])  # fmt: skip
def test_a_run_that_dies_in_between_stays_readable_and_goes_on(
    begun: Path, whole: dict[str, Any], tmp_path: Path, step: int, then: tuple[int, ...],
    python: Callable[..., str],
) -> None:  # fmt: skip
    """Three ranks become two: the note takes its place, two files take theirs, one is removed, and
    the note is. The process dies before each of these."""
    place = Path(shutil.copytree(begun, tmp_path / "copy"))
    said = python(DIES, str(Path(__file__).parent.parent), str(place), str(step))
    assert said == ""
    assert len(ranks_of(place / "parts")) == (3 if step == 0 else 2)
    found = bits(place / "parts")
    for name in ("time_ps", "processes/handled"):
        upto = len(whole[name][1]) // 8 * 4  # of eight samples, as many as before the checkpoint
        assert found[name][1][:upto] == whole[name][1][:upto]
    for ranks in then:
        go(MODEL, END, ranks, record=recording(place / "parts"), resume=place / "saved")
        assert bits(place / "parts") == whole
        assert files(place / "parts") == [f"rank-{rank:04d}.h5" for rank in range(ranks)]


def test_what_is_left_half_written_is_removed(begun: Path, tmp_path: Path) -> None:
    place = Path(shutil.copytree(begun / "parts", tmp_path / "copy"))
    (place / ".rank-0007.h5.new").write_bytes(b"half")
    (place / ".ranks.new").write_bytes(b"")
    turnover.finish(place)
    assert files(place) == ["rank-0000.h5", "rank-0001.h5", "rank-0002.h5"]


def test_a_note_that_says_nothing_is_refused_by_name(begun: Path, tmp_path: Path) -> None:
    place = Path(shutil.copytree(begun / "parts", tmp_path / "copy"))
    (place / turnover.NOTE).write_text("")
    with pytest.raises(Refused, match=r"\.ranks: is damaged: the number of ranks is expected"):
        ranks_of(place)


def test_a_run_that_begins_anew_forgets_it(
    begun: Path, whole: dict[str, Any], tmp_path: Path
) -> None:
    place = Path(shutil.copytree(begun / "parts", tmp_path / "copy"))
    (place / turnover.NOTE).write_text("3\n")
    go(MODEL, END, 1, record=recording(place))
    assert bits(place) == whole
