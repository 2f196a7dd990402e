"""Files that are damaged are refused by name, at once; what is read is what was written."""

from __future__ import annotations

import random
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import h5py
import numpy as np
import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st

from pdes import hdf5
from pdes.errors import Refused
from pdes.hdf5 import SEAL, lookup3, opened, repack
from pdes.join import Joined, join, ranks_of, status_of
from pdes.stream import COMPLETE, Column, Progress, Recorder, Recording, Series, Table

SHAPE, SAMPLES = (5, 3), 40
TEXT = "an attribute that says how many: 1234567890 " * 4
NAMES = ("time_ps", "t/counted", "t/level", "t/size", "engine/events")
Values = dict[str, Any]


@pytest.fixture(autouse=True)
def guard() -> Iterator[None]:
    """What waits for ever fails."""

    def late(number: int, frame: FrameType | None) -> None:
        raise AssertionError("it waits")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(300)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def recorders(path: Path) -> list[Recorder]:
    """Those of two ranks, which have sampled."""
    made = []
    for rank in range(2):
        values = np.zeros(SHAPE, np.int64)

        def table(values: Any = values, rank: int = rank) -> Table:
            dims = ("x", "y")
            return Table(
                (Series("t/counted", dims, "1", "a count", "i4"),
                 Series("t/level", dims, "1", "a level", level=True)),
                lambda state, time: [values, values],
                (Column("t/size", "x", "1", "a size", lambda state: np.arange(5) + 100 * rank),),
            )  # fmt: skip

        about = {"ranks": 2, "first_unit": 5 * rank, "last_unit": 5 * rank + 5}
        attributes = {"experiment": TEXT, "id": "one run"}
        recording = Recording(path, 1, ("t",), attributes=attributes)
        recorder = Recorder(recording, {"t": table()}, rank, about)
        recorder.start(None)
        for at in range(SAMPLES):
            values += np.arange(15).reshape(SHAPE) * (at + rank)
            recorder.take(None, at + 1, Progress(at, 1, float(at)))
        recorder.flush()
        made.append(recorder)
    return made


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One that is complete, and one that died."""
    home = tmp_path_factory.mktemp("runs")
    open_ones = recorders(home / "complete")
    shutil.copytree(home / "complete", home / "died")
    for recorder in open_ones:
        recorder.finish(COMPLETE)
    join(home / "complete", home / "complete" / "run.h5", {"digest": "abc"})
    return {"complete": home / "complete", "died": home / "died"}


def everything(path: Path, scratch: Path) -> Values:
    """All that can be read of a run."""
    target = path / "run.h5"
    if not target.exists():
        join(path, target := scratch / "run.h5")
    status_of(path)
    joined = Joined(target)
    try:
        values = {name: joined.read(name).tolist() for name in NAMES}
        return values | {"text": joined.file.attrs["experiment"], "state": status_of(path)[0]}
    finally:
        joined.close()


def test_the_checksum_is_that_of_bob_jenkins() -> None:
    assert lookup3(b"Four score and seven years ago") == 0x17770551


@pytest.mark.parametrize("numbers", [
    pytest.param(range(32), id="some"),
    pytest.param(range(32, 80), id="more", marks=pytest.mark.long),
])  # fmt: skip
@pytest.mark.parametrize("state", ["complete", "died"])
def test_what_is_read_of_a_damaged_run_is_what_was_written_or_it_is_refused(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str,
    numbers: range,
) -> None:  # fmt: skip
    """Bytes flipped, blocks zeroed, tails cut off, everywhere in its files."""
    monkeypatch.setattr(hdf5, "PATIENCE", 0.02)
    usual, refused = everything(runs[state], tmp_path), 0
    for number in numbers:
        rng = random.Random(number)
        place = shutil.copytree(runs[state], tmp_path / "run")
        path = rng.choice(sorted(place.iterdir()))
        content = bytearray(path.read_bytes())
        if number % 4 == 0:
            del content[rng.randrange(len(content)) :]
        elif number % 4 == 1:
            at = rng.randrange(len(content)) // 64 * 64
            content[at : at + 512] = bytes(len(content[at : at + 512]))
        else:
            for _ in range(rng.choice([1, 8, 64])):
                content[rng.randrange(len(content))] ^= rng.randrange(1, 256)
        path.write_bytes(content)
        try:
            found, said = everything(place, tmp_path), ""
        except Refused as refusal:
            found, said = usual, str(refusal)
        assert found == usual, number
        assert said == "" or str(path) in said
        refused += said != ""
        shutil.rmtree(place)
    assert refused > len(numbers) / 2


def find(path: Path, what: bytes) -> int:
    at = path.read_bytes().find(what)
    assert at > 0
    return at


def overwrite(path: Path, at: int, what: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(what)


def test_text_that_was_altered_is_found(runs: dict[str, Path], tmp_path: Path) -> None:
    """HDF5 has no checksum of it."""
    place = shutil.copytree(runs["died"], tmp_path / "run")
    overwrite(place / "rank-0001.h5", find(place / "rank-0001.h5", b"1234567890"), b"1234567899")
    with h5py.File(place / "rank-0001.h5", "r", swmr=True) as file:
        assert "1234567899" in file.attrs["experiment"]
    with pytest.raises(Refused, match=r"rank-0001.h5: is damaged: its attributes or columns"):
        join(place, tmp_path / "run.h5")


def test_a_heap_that_leads_nowhere_is_not_followed(runs: dict[str, Path], tmp_path: Path) -> None:
    """HDF5 itself never comes back from it."""
    place = shutil.copytree(runs["complete"], tmp_path / "run")
    overwrite(place / "run.h5", find(place / "run.h5", b"GCOL") + 16, bytes(4000))
    with pytest.raises(Refused, match=r"run.h5: is damaged: .*remove it, and it is made anew"):
        everything(place, tmp_path)
    (place / "run.h5").unlink()
    assert everything(place, tmp_path) == everything(runs["complete"], tmp_path)


def test_a_damaged_length_is_not_read_to_its_end(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The length of a header stands before its checksum, and may come to gigabytes."""
    place = shutil.copytree(runs["died"], tmp_path / "run")
    path = place / "rank-0000.h5"
    flags = find(path, b"OHDR") + 5
    overwrite(path, flags, bytes([(path.read_bytes()[flags] ^ 0x20) & ~3 | 2]))
    read_on, most = hdf5._Guarded.readinto, 0

    def readinto(self: Any, buffer: Any) -> int:
        nonlocal most
        found = read_on(self, buffer)
        most = max(most, found)
        return found

    monkeypatch.setattr(hdf5._Guarded, "readinto", readinto)
    with pytest.raises(Refused, match=r"rank-0000.h5: is damaged"):
        join(place, tmp_path / "run.h5")
    assert 0 < most <= path.stat().st_size + hdf5.AHEAD


def test_a_mark_that_nobody_set_is_not_believed(runs: dict[str, Path], tmp_path: Path) -> None:
    place = shutil.copytree(runs["complete"], tmp_path / "run")
    overwrite(place / "rank-0000.h5", 11, b"\x05")
    with pytest.raises(Refused, match=r"rank-0000.h5: is not a whole HDF5 file"):
        status_of(place)


def test_parts_that_cannot_be_read_are_not_zeros(runs: dict[str, Path], tmp_path: Path) -> None:
    """As they are for HDF5, where the file behind a virtual dataset is not there."""
    place = shutil.copytree(runs["complete"], tmp_path / "run")
    (place / "rank-0001.h5").unlink()
    with h5py.File(place / "run.h5") as file:
        assert not file["t/level"][-1, 5:].any()
    joined = Joined(place / "run.h5")
    with pytest.raises(Refused, match=r"rank-0001.h5: No such file"):
        joined.read("t/level")
    joined.close()


def test_files_of_other_ranks_are_told_apart(runs: dict[str, Path], tmp_path: Path) -> None:
    place = shutil.copytree(runs["complete"], tmp_path / "run")
    shutil.copy(runs["complete"] / "rank-0000.h5", place / "rank-0001.h5")
    with pytest.raises(Refused, match=r"rank-0001.h5: is the file of rank 0 of 2"):
        ranks_of(place)


def test_files_of_earlier_versions_have_no_seal_and_are_read(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    usual = everything(runs["complete"], tmp_path)
    place = shutil.copytree(runs["complete"], tmp_path / "run")
    for path in place.iterdir():
        with h5py.File(path, "r+") as file:
            del file.attrs[SEAL]
    assert everything(place, tmp_path) == usual


def test_a_file_that_was_closed_for_its_writer_keeps_its_seal(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    usual = everything(runs["died"], tmp_path)
    place = shutil.copytree(runs["died"], tmp_path / "run")
    for path in ranks_of(place):
        repack(path)
        with opened(path) as file:
            assert SEAL in file.attrs
    assert everything(place, tmp_path) == usual


KEYS = st.one_of(
    st.integers(0, 2),
    st.builds(slice, st.integers(0, 4), st.integers(0, 12), st.integers(1, 3)),
    st.just(slice(None)),
)


@examples(25)
@given(key=st.lists(KEYS, max_size=3).map(tuple))
def test_parts_are_indexed_as_an_array_is(runs: dict[str, Path], key: tuple[Any, ...]) -> None:
    joined = Joined(runs["complete"] / "run.h5")
    whole = joined.file["t/counted"][:]
    assert whole.shape == (SAMPLES, 10, 3)
    assert np.array_equal(joined.read("t/counted", key), whole[key])
    assert joined.read("t/counted", (..., *key)).shape == whole[(..., *key)].shape
    joined.close()
