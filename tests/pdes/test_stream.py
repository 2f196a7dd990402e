"""What is streamed is what happened: to the last flush if the run dies, to the last byte if not."""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from conftest import PATIENCE, clean_environment, examples
from hypothesis import given
from hypothesis import strategies as st

from pdes import checkpoint, stream
from pdes.driver import run
from pdes.errors import Fault, Refused
from pdes.join import join, ranks_of, status_of
from pdes.past import Past
from pdes.phold import Phold
from pdes.stream import (
    COMPLETE,
    FAILED,
    RUNNING,
    STOPPED,
    Column,
    Progress,
    Recorder,
    Recording,
    Series,
    Table,
)

US = 10**6
MODEL = Phold(processes=64, population=4, seed=9)


def recording(path: Path, interval: int = 3 * US, **given: Any) -> Recording:
    return Recording(path, interval, ("processes",), **given)


def read(path: Path, name: str) -> Any:
    with h5py.File(path / "rank-0000.h5", "r", swmr=True) as file:
        return file[name][:]


def test_every_sample_is_what_a_run_to_that_time_counts(tmp_path: Path) -> None:
    run(MODEL, 20 * US, record=recording(tmp_path))
    times, handled = read(tmp_path, "time_ps"), read(tmp_path, "processes/handled")
    assert times.tolist() == [3 * US, 6 * US, 9 * US, 12 * US, 15 * US, 18 * US, 20 * US]
    for time, so_far in zip(times.tolist(), handled.cumsum(axis=0), strict=True):
        assert (run(MODEL, time).outcome["handled"] == so_far).all()


def test_recording_changes_nothing(tmp_path: Path) -> None:
    recorded = run(MODEL, 20 * US, record=recording(tmp_path, 7 * US))
    assert recorded.digest == run(MODEL, 20 * US).digest
    assert recorded.seconds["metrics"] > 0


def test_the_engine_tells_of_itself(tmp_path: Path) -> None:
    result = run(MODEL, 20 * US, record=recording(tmp_path))
    assert read(tmp_path, "engine/events").sum() == result.events
    assert 0 < read(tmp_path, "engine/wall_s").sum() <= result.wall_seconds


def test_what_is_not_there_cannot_be_recorded(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="phold streams processes, not ports"):
        run(MODEL, US, record=Recording(tmp_path, US, ("ports",)))


def test_a_run_says_how_it_ended(tmp_path: Path) -> None:
    run(MODEL, 20 * US, record=recording(tmp_path / "whole"))
    assert status_of(tmp_path / "whole")[0] == COMPLETE

    def interrupt(reached: int, events: int, tally: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    def fail(reached: int, events: int, tally: object) -> None:
        raise OSError(errno.EIO, "a cosmic ray")

    model = Phold(seed=2)
    run(model, 400 * US, record=recording(tmp_path / "stopped"), checkpoint_dir=tmp_path / "c",
        progress=interrupt)  # fmt: skip
    assert status_of(tmp_path / "stopped")[0] == STOPPED
    with pytest.raises(OSError, match="a cosmic ray"):
        run(model, 400 * US, record=recording(tmp_path / "failed"), progress=fail)
    assert status_of(tmp_path / "failed")[0] == FAILED
    assert len(read(tmp_path / "stopped", "time_ps")) > 0


@pytest.mark.parametrize("every", [7 * US, 9 * US])
def test_a_resumed_recording_is_that_of_an_undisturbed_run(tmp_path: Path, every: int) -> None:
    """Whether or not the checkpoint lies at a sample."""
    ours, theirs = recording(tmp_path / "a"), recording(tmp_path / "b")
    run(MODEL, 40 * US, record=theirs)
    run(MODEL, 31 * US, record=ours, checkpoint_dir=tmp_path / "c", checkpoint_every=every)
    run(MODEL, 40 * US, record=ours, checkpoint_dir=tmp_path / "c", resume=tmp_path / "c")
    for name in ("time_ps", "processes/handled"):
        one, other = read(tmp_path / "a", name), read(tmp_path / "b", name)
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes()


def test_to_resume_what_was_never_recorded_is_an_error(tmp_path: Path) -> None:
    run(MODEL, 8 * US, checkpoint_dir=tmp_path, checkpoint_every=7 * US)
    with pytest.raises(Refused, match=r"rank-0000\.h5: the metrics to go on with are not there"):
        run(MODEL, 20 * US, record=recording(tmp_path / "out"), resume=tmp_path)


# -- the recorder, fed by hand


@dataclass
class Source:
    """A model's tables that tell whatever `values` are."""

    shape: tuple[int, ...]
    dtype: str = "i4"
    tile: int = 0

    def __post_init__(self) -> None:
        self.values = np.zeros(self.shape, np.int64)

    def tables(self) -> dict[str, Table]:
        dims = tuple("xyz"[: len(self.shape)])
        series = (Series("t/counted", dims, "1", "a count", self.dtype, tile=self.tile),
                  Series("t/level", dims, "1", "a level", "i8", level=True))  # fmt: skip
        return {"t": Table(series, lambda state, time: [self.values, self.values])}

    def recorder(self, path: Path, **given: Any) -> Recorder:
        about = {"ranks": 1, "first_unit": 0, "last_unit": 1}
        return Recorder(Recording(path, 1, ("t",), **given), self.tables(), 0, about)


def take(recorder: Recorder, at: int) -> None:
    recorder.take(None, at, Progress(at, 1, float(at)))


shapes = st.lists(st.integers(1, 9), min_size=1, max_size=3).map(tuple)


@examples(10)
@given(
    shape=shapes,
    tile=st.integers(0, 4),
    samples=st.integers(0, 80),
    flushes=st.sets(st.integers(0, 80)),
    dies=st.booleans(),
    seed=st.integers(0, 99),
)
def test_a_file_has_what_was_flushed(
    tmp_path_factory: pytest.TempPathFactory, shape: tuple[int, ...], tile: int, samples: int,
    flushes: set[int], dies: bool, seed: int,
) -> None:  # fmt: skip
    """Whatever the shape, the chunks, and when it is flushed; and if nobody closes it, too."""
    path = tmp_path_factory.mktemp("s")
    source, random = Source(shape, tile=tile), np.random.default_rng(seed)
    recorder = source.recorder(path, flush_s=1e9)
    recorder.start(None)
    increases = random.integers(0, 3, (samples, *shape)) * random.integers(0, 2, (samples, *shape))
    increases *= random.integers(0, 2, (samples,) + (1,) * len(shape))
    flushed = 0
    for at in range(samples):
        source.values += increases[at]
        take(recorder, at + 1)
        if at in flushes or (at + 1) % stream.MOST_SAMPLES == 0:
            recorder.flush()
            flushed = at + 1
    if not dies:
        recorder.flush()
        recorder.close(COMPLETE)
        flushed = samples
    assert read(path, "time_ps").tolist() == [*range(1, flushed + 1)]
    assert (read(path, "t/counted") == increases[:flushed]).all()
    assert (read(path, "t/level") == increases.cumsum(axis=0)[:flushed]).all()
    assert status_of(path)[0] == (RUNNING if dies else COMPLETE)
    recorder.close()


@examples(8)
@given(samples=st.integers(1, 70), cut=st.integers(0, 70), seed=st.integers(0, 99))
def test_a_file_that_is_gone_on_with_forgets_what_was_beyond_the_cut(
    tmp_path_factory: pytest.TempPathFactory, samples: int, cut: int, seed: int
) -> None:
    path, shape = tmp_path_factory.mktemp("s"), (5, 3)
    cut = min(cut, samples)
    increases = np.random.default_rng(seed).integers(0, 9, (samples, *shape))
    source = Source(shape)
    recorder = source.recorder(path)
    recorder.start(None)
    for at in range(samples):
        source.values += increases[at]
        take(recorder, at + 1)
    recorder.flush()  # and it is not closed: its process died
    source.values = increases[:cut].sum(axis=0)
    again = source.recorder(path)
    assert again.resume(None, cut, Past([again.path])) == (cut, 1 if cut else None)
    for at in range(cut, samples):
        source.values += increases[at]
        take(again, at + 1)
    again.flush()
    again.close(COMPLETE)
    assert (read(path, "t/counted") == increases).all()
    assert read(path, "time_ps").tolist() == [*range(1, samples + 1)]
    assert [p.name for p in path.iterdir()] == ["rank-0000.h5"]
    recorder.close()


@pytest.mark.parametrize("at", ["checked_scalar", "seal", "os.open"])
def test_who_is_interrupted_while_a_file_is_created_again_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    recorder = Source((5, 3)).recorder(tmp_path)
    recorder.start(None)
    take(recorder, 1)
    recorder.flush()
    recorder.close()
    again = Source((5, 3)).recorder(tmp_path)

    def interrupted(*words: object, **others: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(f"pdes.stream.{at}", interrupted)
        with pytest.raises(KeyboardInterrupt):
            again.resume(None, 1, Past([again.path]))
    assert [p.name for p in tmp_path.iterdir()] == ["rank-0000.h5"]
    assert read(tmp_path, "time_ps").tolist() == [1]


def test_what_has_waited_long_enough_is_flushed(tmp_path: Path) -> None:
    source = Source((4,))
    recorder = source.recorder(tmp_path, flush_s=0.0)
    recorder.start(None)
    for at in range(3):
        take(recorder, at + 1)
        assert len(read(tmp_path, "time_ps")) == at + 1
    recorder.close()


def test_a_file_whose_samples_came_slowly_is_packed_in_the_end(tmp_path: Path) -> None:
    sizes = {}
    for name, flush_s in (("slow", 0.0), ("quick", 1e9)):
        source, random = Source((900,)), np.random.default_rng(1)
        recorder = source.recorder(tmp_path / name, flush_s=flush_s)
        recorder.start(None)
        for at in range(3 * stream.MOST_SAMPLES + 2):
            source.values += random.integers(0, 2**20, 900)
            take(recorder, at + 1)
        before = recorder.path.stat().st_size
        recorder.finish(COMPLETE)
        sizes[name] = recorder.path.stat().st_size
        assert before > 3 * sizes[name] or name == "quick"
    assert sizes["slow"] < 1.1 * sizes["quick"]
    for name in ("t/counted", "t/level", "time_ps"):
        assert (read(tmp_path / "slow", name) == read(tmp_path / "quick", name)).all()
    assert status_of(tmp_path / "slow")[0] == COMPLETE
    assert [p.name for p in (tmp_path / "slow").iterdir()] == ["rank-0000.h5"]


def test_a_file_that_cannot_be_packed_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(stream, "repack", fail)
    source = Source((900,))
    recorder = source.recorder(tmp_path, flush_s=0.0)
    recorder.start(None)
    for at in range(5):
        source.values += at
        take(recorder, at + 1)
    recorder.finish(COMPLETE)
    assert status_of(tmp_path)[0] == COMPLETE
    assert len(read(tmp_path, "time_ps")) == 5


@pytest.mark.parametrize("damage", ["truncated", "nonsense", "empty"])
def test_metrics_that_are_damaged_are_refused_and_not_waited_for(
    tmp_path: Path, damage: str
) -> None:
    """Also those that look as if somebody were writing to them."""
    ours, saved = recording(tmp_path / "out"), tmp_path / "saved"
    run(MODEL, 20 * US, record=ours, checkpoint_dir=saved, checkpoint_every=7 * US)
    path = tmp_path / "out" / "rank-0000.h5"
    whole = bytearray(path.read_bytes())
    whole[11] = 5
    path.write_bytes(
        {"truncated": bytes(whole[:9000]), "nonsense": b"x" * 999, "empty": b""}[damage]
    )
    with pytest.raises(Refused, match=r"rank-0000\.h5: is not a whole HDF5 file"):
        run(MODEL, 40 * US, record=ours, resume=saved)
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["rank-0000.h5"]


def test_samples_that_are_damaged_are_refused_by_a_run_that_is_resumed(tmp_path: Path) -> None:
    ours, saved = recording(tmp_path / "out"), tmp_path / "saved"
    run(MODEL, 20 * US, record=ours, checkpoint_dir=saved, checkpoint_every=7 * US)
    path = tmp_path / "out" / "rank-0000.h5"
    with h5py.File(path) as file:
        chunk = file["engine/events"].id.get_chunk_info(0)
    content = bytearray(path.read_bytes())
    content[chunk.byte_offset + chunk.size // 2] ^= 9
    path.write_bytes(content)
    with pytest.raises(Refused, match=r"rank-0000\.h5: is damaged: .*; restore it from a copy"):
        run(MODEL, 40 * US, record=ours, resume=saved)
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["rank-0000.h5"]


def test_the_clock_of_a_resumed_run_goes_forward(tmp_path: Path) -> None:
    ours, saved = recording(tmp_path / "out"), tmp_path / "saved"
    run(MODEL, 20 * US, record=ours, checkpoint_dir=saved, checkpoint_every=7 * US)
    result = run(MODEL, 40 * US, record=ours, resume=saved)
    spent = read(tmp_path / "out", "engine/wall_s")[:, 0]
    assert (spent > 0).all()
    assert spent[5:].sum() <= result.wall_seconds


def test_samples_are_on_the_disk_before_a_checkpoint_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = []
    sync, save = os.fsync, checkpoint.save
    monkeypatch.setattr(stream.os, "fsync", lambda fd: (order.append("sync"), sync(fd))[1])
    monkeypatch.setattr(checkpoint, "save", lambda *a: (order.append("save"), save(*a))[1])
    run(MODEL, 8 * US, record=recording(tmp_path / "out"), checkpoint_dir=tmp_path / "saved",
        checkpoint_every=7 * US)  # fmt: skip
    assert order[: order.index("save") + 1] == ["sync", "save"]


def test_chunks_of_a_large_machine_stay_small(tmp_path: Path) -> None:
    source = Source((5 * 10**5, 3))
    recorder = source.recorder(tmp_path)
    recorder.start(None)
    source.values += 1
    take(recorder, 1)
    recorder.flush()
    recorder.close(COMPLETE)
    with h5py.File(tmp_path / "rank-0000.h5") as file:
        assert np.prod(file["t/counted"].chunks) * 4 <= stream.CHUNK_BYTES
        assert file["t/counted"][0].sum() == 15 * 10**5


def test_metrics_that_end_before_the_checkpoint_are_refused(tmp_path: Path) -> None:
    """They are of another run, or somebody has put an older file there."""
    ours, saved = recording(tmp_path / "out"), tmp_path / "saved"
    run(MODEL, 8 * US, record=ours)
    run(MODEL, 31 * US, checkpoint_dir=saved, checkpoint_every=15 * US)
    with pytest.raises(Refused, match="its metrics end at 8000000 ps, before the checkpoint at 30"):
        run(MODEL, 40 * US, record=ours, resume=saved)


def test_zeros_take_no_room(tmp_path: Path) -> None:
    source = Source((64, 64), tile=16)
    recorder = source.recorder(tmp_path)
    recorder.start(None)
    source.values[5, 17] = 1
    take(recorder, 1)
    recorder.flush()
    recorder.close(COMPLETE)
    with h5py.File(tmp_path / "rank-0000.h5") as file:
        assert file["t/counted"].id.get_num_chunks() == 1
        assert file["t/counted"].compression == "gzip"
        assert file["t/counted"][0].sum() == 1


def test_an_increase_that_does_not_fit_is_not_cut_off(tmp_path: Path) -> None:
    source = Source((4,), "i4")
    recorder = source.recorder(tmp_path)
    recorder.start(None)
    source.values[2] = 2**31
    with pytest.raises(Fault, match=r"t/counted: .* does not fit into int32: a shorter"):
        take(recorder, 1)
    recorder.close()


def test_everything_is_described(tmp_path: Path) -> None:
    run(MODEL, 5 * US, record=recording(tmp_path, attributes={"experiment": "mine"}))
    with h5py.File(tmp_path / "rank-0000.h5") as file:
        assert file.attrs["experiment"] == "mine"
        assert file.attrs["interval_ps"] == 3 * US

        def check(name: str, thing: Any) -> None:
            if isinstance(thing, h5py.Dataset):
                assert {"unit", "about"} <= {*thing.attrs}, name
                assert all(dim.label for dim in thing.dims), name

        file.visititems(check)


# -- joining


def test_joined_is_what_the_ranks_have_in_the_order_of_the_machine(tmp_path: Path) -> None:
    for rank, first in ((0, 2), (1, 0)):  # the later part of the machine on the first rank
        source = Source((2, 3))
        about = {"ranks": 2, "first_unit": first, "last_unit": first + 2}
        recorder = Recorder(Recording(tmp_path, 1, ("t",)), source.tables(), rank, about)
        recorder.start(None)
        for at in range(3 + rank):
            source.values += 10 * rank + at
            take(recorder, at + 1)
        recorder.flush()
        recorder.close(COMPLETE)
    join(tmp_path, tmp_path / "run.h5", {"digest": "d"})
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for path in tmp_path.glob("*.h5"):
        path.rename(moved / path.name)
    with h5py.File(moved / "run.h5") as file:
        assert file["time_ps"][:].tolist() == [1, 2, 3]
        assert file["t/counted"].is_virtual
        assert file["t/counted"][1].tolist() == [[11] * 3] * 2 + [[1] * 3] * 2
        assert file.attrs["complete"]
        assert file.attrs["digest"] == "d"
        assert "rank" not in file.attrs


def test_what_one_rank_has_alone_is_joined_with_the_nothing_of_the_others(tmp_path: Path) -> None:
    for rank, rows in ((0, 3), (1, 0)):
        source = Source((rows,))
        names = Column(
            "t/name", "x", "", "a name", lambda state, n=rows: np.array([b"ab"] * n, "S2")
        )
        tables = {"t": source.tables()["t"]._replace(columns=(names,))}
        about = {"ranks": 2, "first_unit": rank, "last_unit": rank + 1}
        recorder = Recorder(Recording(tmp_path, 1, ("t",)), tables, rank, about)
        recorder.start(None)
        for at in (1, 2):
            source.values += at
            take(recorder, at)
        recorder.flush()
        recorder.close(COMPLETE)
    join(tmp_path, tmp_path / "run.h5")
    with h5py.File(tmp_path / "run.h5") as file:
        assert file["t/counted"][:].tolist() == [[1] * 3, [2] * 3]
        assert file["t/level"][:].tolist() == [[1] * 3, [3] * 3]
        assert file["t/name"][:].tolist() == [b"ab"] * 3


def test_runs_below_a_directory_without_one_are_named(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"holds no run \(rank-0000.h5 is not there\)$"):
        ranks_of(tmp_path)
    for seed, words in ((1, "there is a run below it: name {}/seed-0001$"),
                        (3, "there are 2 runs below it: name one, {0}/seed-0001 to {0}/seed-0003$")
                        ):  # fmt: skip
        (tmp_path / f"seed-000{seed}").mkdir()
        (tmp_path / f"seed-000{seed}" / "rank-0000.h5").touch()
        with pytest.raises(Refused, match=words.format(re.escape(str(tmp_path)))):
            ranks_of(tmp_path)


def test_a_rank_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="holds no run"):
        ranks_of(tmp_path)
    source = Source((2,))
    about = {"ranks": 2, "first_unit": 0, "last_unit": 1}
    recorder = Recorder(Recording(tmp_path, 1, ("t",)), source.tables(), 0, about)
    recorder.start(None)
    recorder.close(COMPLETE)
    with pytest.raises(Refused, match=r"rank-0001.h5: is missing; the run had 2 ranks"):
        ranks_of(tmp_path)
    (tmp_path / "rank-0001.h5").write_bytes(b"nonsense")
    with pytest.raises(Refused, match=r"rank-0001.h5: is not a whole HDF5 file"):
        ranks_of(tmp_path)


@pytest.mark.parametrize("dies", [True, pytest.param(False, marks=pytest.mark.long)])
def test_a_file_that_is_cut_off_is_refused_and_not_waited_for(tmp_path: Path, dies: bool) -> None:
    source = Source((50,))
    recorder = source.recorder(tmp_path)
    recorder.start(None)
    for at in range(40):
        source.values += at
        take(recorder, at + 1)
    recorder.flush()
    if not dies:
        recorder.close(COMPLETE)
    whole = recorder.path.read_bytes()
    for size in (0, 7, 60, len(whole) // 2, len(whole) - 1):
        recorder.path.write_bytes(whole[:size])
        with pytest.raises(Refused, match=r"rank-0000.h5: is not a whole HDF5 file"):
            ranks_of(tmp_path)
    recorder.path.write_bytes(whole)
    assert status_of(tmp_path)[0] == (RUNNING if dies else COMPLETE)
    recorder.close()


def test_a_write_that_fails_is_told_in_a_line_and_what_was_written_stays(tmp_path: Path) -> None:
    """As HDF5 meets it, with no room reserved: here by a limit on the size of files."""
    done = subprocess.run(
        ["sh", "-c", f"ulimit -f 500; exec {sys.executable} -c '{FILL}' {tmp_path}"],
        capture_output=True, text=True, env=clean_environment(), timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("OSError: [Errno 27] File too large: ")
    times, handled = read(tmp_path, "time_ps"), read(tmp_path, "processes/handled")
    assert 0 < len(times) <= len(handled)  # those beyond have no time: they are not there
    assert (handled[: len(times)].sum(axis=1) > 0).all()


# -- a disk that is full


FILL = """
import sys
from pathlib import Path
from pdes.driver import run
from pdes.phold import Phold
from pdes.stream import Recording
run(Phold(processes=20000, population=1), 10**12,
    record=Recording(Path(sys.argv[1]), 10**6, ("processes",), 0.05), show_compiling=False)
"""


def test_a_full_disk_ends_the_run_with_that_reason_and_what_was_written_stays(
    small_disk: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FILL, str(small_disk)],
        capture_output=True, text=True, env=clean_environment(), timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert f"No space left on device: '{small_disk / 'rank-0000.h5'}'" in done.stderr
    times, handled = read(small_disk, "time_ps"), read(small_disk, "processes/handled")
    assert len(times) == len(handled) > 10
    assert (handled.sum(axis=1) > 0).all()
    assert status_of(small_disk)[0] == FAILED


@pytest.mark.parametrize("how", ["removed", "moved"])
def test_a_directory_that_goes_while_a_run_writes_there_ends_it_at_the_next_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    place, taken, take = tmp_path / "out", [], Recorder.take

    def lose(recorder: Recorder, state: Any, now: int, *rest: Any) -> None:
        take(recorder, state, now, *rest)
        taken.append(now)
        if len(taken) == 3:
            if how == "moved":
                place.rename(tmp_path / "elsewhere")
            else:
                shutil.rmtree(place)

    monkeypatch.setattr(Recorder, "take", lose)
    with pytest.raises(Fault, match=r"out/rank-0000\.h5: was removed, moved or replaced while"):
        run(MODEL, 60 * US, record=recording(place, US, flush_s=0.0))
    assert len(taken) < 6
