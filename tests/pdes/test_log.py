"""A log has every row once, in one order, whatever becomes of the run."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from conftest import PATIENCE, clean_environment
from probe import YEAR, Diary

import pdes.hdf5
import pdes.join
from pdes import log
from pdes.driver import run as run_ranks
from pdes.errors import Fault, Refused
from pdes.join import join, status_of
from pdes.log import Field, Log
from pdes.model import Decision
from pdes.stream import COMPLETE, FAILED, Recorder, Recording
from pdes.transport import Serial

HERE = Path(__file__).parent.parent
LOGS = ("visits", "moves", "never")
MODEL = Diary(agents=6)
END = 2 * YEAR


def recording(path: Path, interval: int = YEAR // 3, **given: Any) -> Recording:
    return Recording(path, interval, (), **{"logs": LOGS, **given})


def run(model: Any, end: int = END, **how: Any) -> Any:
    return run_ranks(model, end, transport=Serial(), **how)


def read(path: Path) -> dict[str, Any]:
    """Every dataset of the logs, by name; times first, as they are written last: a row is there
    when its time is, in whatever is opened, or refreshed, after that."""
    found: dict[str, Any] = {}

    def note(name: str, thing: Any) -> None:
        if isinstance(thing, h5py.Dataset) and name.startswith(LOGS):
            found[name] = thing

    written_to = path.name.startswith("rank")
    with h5py.File(path, "r", swmr=written_to) as file:
        file.visititems(note)
        for name in sorted(found, key=lambda it: "time" not in it):
            if written_to:
                found[name].refresh()
            found[name] = found[name][:]
    return found


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return {*one} == {*other} and all(
        one[name].dtype == other[name].dtype and one[name].tobytes() == other[name].tobytes()
        for name in one
    )


SEEN: list[Any] = []


class Witness(Diary):
    """Notes what it appends."""

    def decide(self, state: Any, time: int, key: int, a: int, b: int) -> Any:
        made = super().decide(state, time, key, a, b)
        SEEN.extend((name, time, *values) for name, values in made.log)
        return made


def test_a_log_has_what_decisions_appended_by_time_and_agent(tmp_path: Path) -> None:
    SEEN.clear()
    result = run(Witness(agents=6), record=recording(tmp_path))
    visits = [row for row in SEEN if row[0] == "visits"]
    rows = sorted(visits, key=lambda row: row[1:3])
    found = read(tmp_path / "rank-0000.h5")
    assert len(rows) == result.events > 2000
    assert rows != visits, "agents share instants, and do not decide in their order"
    assert found["visits/time_us"].tolist() == [row[1] for row in rows]
    assert found["visits/agent"].tolist() == [row[2] for row in rows]
    assert found["visits/luck"].tolist() == [row[3] for row in rows]
    ends = found["visits/guests_count"].cumsum()[:-1]
    guests = np.split(found["visits/guests"], ends)
    assert [part.tolist() for part in guests] == [[*row[4]] for row in rows]
    assert found["visits/agent"].dtype == np.int32
    assert len(found["moves/to"]) == len(SEEN) - len(visits) > 10


def test_a_log_without_rows_is_there_and_empty(tmp_path: Path) -> None:
    run(MODEL, record=recording(tmp_path))
    join(tmp_path, tmp_path / "run.h5")
    for name in ("rank-0000.h5", "run.h5"):
        found = read(tmp_path / name)
        assert found["never/agent"].shape == found["never/time_us"].shape == (0,)


def test_logging_changes_nothing_and_without_a_recording_rows_are_dropped(tmp_path: Path) -> None:
    logged, plain = run(MODEL, record=recording(tmp_path)), run(MODEL)
    assert (logged.digest, logged.events) == (plain.digest, plain.events)


def test_only_what_is_asked_for_is_kept(tmp_path: Path) -> None:
    run(MODEL, record=recording(tmp_path, logs=("moves",)))
    assert {name.partition("/")[0] for name in read(tmp_path / "rank-0000.h5")} == {"moves"}
    with pytest.raises(Refused, match="diary logs visits, moves, never, not jobs"):
        run(MODEL, record=recording(tmp_path, logs=("jobs",)))


def test_everything_is_described(tmp_path: Path) -> None:
    run(MODEL, record=recording(tmp_path))
    join(tmp_path, tmp_path / "run.h5")
    for name in ("rank-0000.h5", "run.h5"):
        with h5py.File(tmp_path / name) as file:
            assert file.attrs["tick"] == "us"
            assert file.attrs["interval_us"] == YEAR // 3
            assert file["visits"].attrs["about"] == "every visit"
            for column in file["visits"].values():
                assert {"unit", "about"} <= {*column.attrs}
                assert column.dims[0].label in ("visits", "guests")


@pytest.mark.parametrize("every", [YEAR // 3, YEAR // 5, MODEL.mean // 8 * 700])
def test_a_resumed_log_is_that_of_an_undisturbed_run(tmp_path: Path, every: int) -> None:
    """Wherever the checkpoint lies; what was logged beyond it is logged again, once."""
    saved = tmp_path / "saved"
    run(MODEL, record=recording(tmp_path / "whole"))
    run(MODEL, END - YEAR // 9, record=recording(tmp_path / "parts"), checkpoint_dir=saved,
        checkpoint_every=every)  # fmt: skip
    run(MODEL, record=recording(tmp_path / "parts"), resume=saved)
    assert same(*(read(tmp_path / part / "rank-0000.h5") for part in ("whole", "parts")))


def test_to_resume_without_the_log_is_refused(tmp_path: Path) -> None:
    saved, ours = tmp_path / "saved", tmp_path / "ours"
    run(MODEL, record=recording(ours, logs=("moves",)), checkpoint_dir=saved, checkpoint_every=YEAR)
    with pytest.raises(Refused, match=r"rank-0000.h5: the log visits to go on with is not there"):
        run(MODEL, record=recording(ours), resume=saved)
    run(MODEL, YEAR // 2, record=recording(ours, YEAR))
    with pytest.raises(Refused, match=f"logs end at {YEAR // 2 + 1} us, before the checkpoint at"):
        run(MODEL, record=recording(ours, YEAR), resume=saved)


# -- while the run goes on


FOLLOWED = f"""
import sys, time
sys.path.insert(0, {str(HERE)!r})
from pathlib import Path
from probe import *
from pdes.driver import run
from pdes.stream import Recording

class Slow(Diary):
    def decide(self, *given):
        time.sleep(0.002)
        return super().decide(*given)

run(Slow(agents=6), 10 * YEAR, show_compiling=False,
    record=Recording(Path(sys.argv[1]), 10 * YEAR, (), 0.1, logs={LOGS!r}))
"""


def follow(path: Path, child: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Wait until the log has some rows, and read it."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and child.poll() is None:
        time.sleep(0.1)
        if (path / "rank-0000.h5").exists():
            found = read(path / "rank-0000.h5")
            if len(found["visits/time_us"]) > 100:
                return found
    raise AssertionError("no row was seen")


def test_rows_can_be_read_while_the_run_goes_on_and_after_it_is_killed(tmp_path: Path) -> None:
    """They are flushed after their time, although no sample is due for years."""
    run(MODEL, record=recording(tmp_path / "whole"))
    whole = read(tmp_path / "whole" / "rank-0000.h5")
    child = subprocess.Popen(
        [sys.executable, "-c", FOLLOWED, str(tmp_path)], env=clean_environment()
    )
    live = follow(tmp_path, child)
    child.kill()
    child.wait()
    dead = read(tmp_path / "rank-0000.h5")
    assert len(dead["visits/time_us"]) >= len(live["visits/time_us"])
    for found in (live, dead):
        n = len(found["visits/time_us"])
        for name in ("time_us", "agent", "luck", "guests_count"):
            assert (found[f"visits/{name}"][:n] == whole[f"visits/{name}"][:n]).all()
        guests = int(found["visits/guests_count"][:n].sum())
        assert (found["visits/guests"][:guests] == whole["visits/guests"][:guests]).all()
    join(tmp_path, tmp_path / "run.h5")
    assert same(read(tmp_path / "run.h5"), dead)


def test_a_run_that_is_stopped_has_logged_up_to_where_it_stopped(tmp_path: Path) -> None:
    def interrupt(reached: int, events: int, tally: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    model, saved, ours = Diary(agents=6, mean=MODEL.mean // 40), tmp_path / "c", tmp_path / "ours"
    stopped = run(model, 10 * YEAR, record=recording(ours), checkpoint_dir=saved,
                  progress=interrupt)  # fmt: skip
    assert not stopped.completed
    assert len(read(ours / "rank-0000.h5")["visits/agent"]) == stopped.events


@pytest.mark.long
def test_many_rows_do_not_wait_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "MOST_ROWS", 500)
    written = []
    write = log.Book.write
    monkeypatch.setattr(
        log.Book, "write", lambda book, *how: (written.append(book._gathered), write(book, *how))
    )
    run(Diary(agents=6, mean=MODEL.mean // 20), record=recording(tmp_path, END, flush_s=1e9))
    assert len(written) > 3
    assert max(written[:-1]) >= 500
    monkeypatch.undo()
    run(Diary(agents=6, mean=MODEL.mean // 20), record=recording(tmp_path / "b", END))
    assert same(read(tmp_path / "rank-0000.h5"), read(tmp_path / "b" / "rank-0000.h5"))


def test_rows_of_an_instant_that_is_not_over_are_not_written(tmp_path: Path) -> None:
    """For one of an earlier agent may still come."""
    logs = {"l": Log((Field("x", "1", "a number"),))}
    about = {"ranks": 1, "first_unit": 0, "last_unit": 1}
    recorder = Recorder(Recording(tmp_path, 1, (), logs=("l",)), {}, 0, about, "us", logs)
    recorder.start(None)
    for now, agent, x in ((1, 0, 10), (2, 5, 25), (2, 3, 23)):
        recorder.book.append(now, agent, [("l", (x,))])
    recorder.write_logs(2)
    with h5py.File(recorder.path, "r", swmr=True) as file:
        assert file["l/x"][:].tolist() == [10]
        assert file["logged_us"][()] == 2
    recorder.book.append(2, 1, [("l", (21,))])
    recorder.finish(COMPLETE, 3)
    with h5py.File(recorder.path) as file:
        assert file["l/x"][:].tolist() == [10, 21, 23, 25]
        assert file["l/time_us"][:].tolist() == [1, 2, 2, 2]


def test_joined_is_what_no_rank_misses_in_order_of_time_and_then_of_ranks(tmp_path: Path) -> None:
    logs = {"l": Log((Field("x", "1", "a number"), Field("s", "1", "some", "i4", several=True)))}
    for rank, rows, final in ((0, (1, 3, 3, 9), 10), (1, (0, 3, 5, 6), 6)):
        about = {"ranks": 2, "first_unit": rank, "last_unit": rank + 1}
        recorder = Recorder(Recording(tmp_path, 1, (), logs=("l",)), {}, rank, about, "us", logs)
        recorder.start(None)
        for i, now in enumerate(rows):
            recorder.book.append(now, rank, [("l", (10 * rank + i, [rank] * i))])
        recorder.write_logs(final)
        recorder.close(COMPLETE)
    join(tmp_path, tmp_path / "run.h5")
    with h5py.File(tmp_path / "run.h5") as file:
        assert file["l/time_us"][:].tolist() == [0, 1, 3, 3, 3, 5]
        assert file["l/x"][:].tolist() == [10, 0, 1, 2, 11, 12]
        assert file["l/s_count"][:].tolist() == [0, 0, 1, 2, 1, 2]
        assert file["l/s"][:].tolist() == [0, 0, 0, 1, 1, 1]
        assert file["l/s"].dtype == np.int32


WRITER = """
import sys
from pathlib import Path
from pdes.log import Field, Log
from pdes.stream import COMPLETE, Recorder, Recording

logs = {"l": Log((Field("x", "1", "a number"), Field("s", "1", "some", "i4", several=True)))}
about = {"ranks": 1, "first_unit": 0, "last_unit": 1}
for line in sys.stdin:
    path, first, last, over = line.split()
    if first == "0":
        recorder = Recorder(Recording(Path(path), 1, (), logs=("l",)), {}, 0, about, "us", logs)
        recorder.start(None)
    for i in range(int(first), int(last)):
        recorder.book.append(i, 0, [("l", (i * i, [i] * (i % 3)))])
    recorder.write_logs(int(last))
    if over == "True":
        recorder.finish(COMPLETE, int(last))
    print("written", flush=True)
"""


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("over", [False, True], ids=["it goes on", "it ends"])
def test_what_a_rank_writes_while_its_file_is_joined_disturbs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, over: bool, step: int
) -> None:
    """At whichever of its reads that is, every row is there that was there before, and no part of
    one; and if the run is said to be complete, all are."""
    few, all_of_them = 100, 1500  # which takes chunks behind what was the end of the file
    until = 0
    read_on = pdes.hdf5._Guarded.readinto

    def write(*what: object) -> None:
        print(*what, file=writer.stdin, flush=True)
        assert writer.stdout is not None
        assert writer.stdout.readline() == "written\n"

    def readinto(self: Any, buffer: Any) -> int:
        nonlocal until
        until -= 1
        if until == 0:
            write(tmp_path / str(moment), few, all_of_them, over)
        return read_on(self, buffer)

    monkeypatch.setattr(pdes.hdf5._Guarded, "readinto", readinto)
    writer = subprocess.Popen([sys.executable, "-c", WRITER], env=clean_environment(), text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # fmt: skip
    with writer:
        for moment in itertools.count(1, step):
            here = tmp_path / str(moment)
            write(here, 0, few, False)
            until = moment
            join(here, here / "run.h5")
            with h5py.File(here / "run.h5") as file:
                rows, complete = len(file["l/x"]), file.attrs["complete"]
                assert rows == all_of_them if complete else rows in (few, all_of_them)
                assert file["l/time_us"][:].tolist() == [*range(rows)]
                assert file["l/x"][:].tolist() == [i * i for i in range(rows)]
                assert file["l/s"][:].tolist() == [i for i in range(rows) for _ in range(i % 3)]
            if until > 0:
                break
        assert writer.stdin is not None
        writer.stdin.close()
    assert moment > 50


def written(path: Path) -> Recorder:
    """Returns the recorder of a run that goes on, of which there are 50 rows."""
    logs = {"l": Log((Field("x", "1", "a number"),))}
    about = {"ranks": 1, "first_unit": 0, "last_unit": 1}
    recorder = Recorder(Recording(path, 1, (), logs=("l",)), {}, 0, about, "us", logs)
    recorder.start(None)
    for i in range(50):
        recorder.book.append(i, 0, [("l", (i,))])
    recorder.write_logs(50)
    return recorder


def test_what_is_read_half_written_is_read_again_also_if_the_file_is_closed_by_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder, read_on, reads = written(tmp_path), pdes.hdf5._Guarded.readinto, 0

    def readinto(self: Any, buffer: Any) -> int:
        nonlocal reads
        found, reads = read_on(self, buffer), reads + 1
        if reads == 30:
            memoryview(buffer).cast("B")[:] = bytes(found)
            recorder.finish(COMPLETE, 50)
        return found

    monkeypatch.setattr(pdes.hdf5._Guarded, "readinto", readinto)
    join(tmp_path, tmp_path / "run.h5")
    assert reads > 30
    with h5py.File(tmp_path / "run.h5") as file:
        assert file["l/x"][:].tolist() == [*range(50)]


@pytest.mark.parametrize(("what", "words"), [
    ("logged_us", r"rank-0000.h5: is damaged: .*logged_us"),
    ("l/x", r"rank-0000.h5: has fewer values of l/x than rows"),
])  # fmt: skip
def test_a_log_of_which_a_part_is_missing_is_refused(tmp_path: Path, what: str, words: str) -> None:
    written(tmp_path).finish(COMPLETE, 50)
    with h5py.File(tmp_path / "rank-0000.h5", "r+") as file:
        del file.attrs["seal"]
        if what == "l/x":
            file[what].resize(10, 0)
        else:
            del file[what]
    with pytest.raises(Refused, match=words):
        join(tmp_path, tmp_path / "run.h5")


def test_a_run_that_is_begun_again_while_it_is_joined_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path).finish(COMPLETE, 50)
    usual, calls = pdes.join._reached, 0

    def reached(file: Any) -> Any:
        nonlocal calls
        calls += 1
        found = usual(file)
        return found if calls == 1 else found._replace(logged=20)

    monkeypatch.setattr(pdes.join, "_reached", reached)
    with pytest.raises(Refused, match=r"rank-0000.h5: the run was begun again meanwhile"):
        join(tmp_path, tmp_path / "run.h5")


# -- what is no row


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (("jobs", (1,)), "a row for the log 'jobs': the model logs visits, moves, never"),
        (("moves", (1,)), r"moves: a row of 1 values, \(1,\), for the columns agent, to"),
        (("moves", (1, 2**31)), "moves/to: .* not all int32"),
        (("moves", (1, 2.5)), "moves/to: .* not all int32"),
        (("moves", (1, None)), "moves/to: .* not all int32"),
        (("visits", (1, "x", [])), "visits/luck: .* not all float64"),
        (("visits", (1, 1, [2**70])), "visits/guests: .* not all int64"),
    ],
)
def test_what_is_no_row_is_named(tmp_path: Path, row: Any, words: str) -> None:
    class Wrong(Diary):
        def decide(self, *given: Any) -> Any:
            return Decision([], [row])

    with pytest.raises(Fault, match=words):
        run(Wrong(), record=recording(tmp_path))
    assert status_of(tmp_path)[0] == FAILED
    run(Wrong())


def test_a_name_of_both_a_table_and_a_log_is_refused(tmp_path: Path) -> None:
    logs = {"engine": Log((Field("x", "1", "a number"),))}
    recorder = Recorder(Recording(tmp_path, 1, (), logs=("engine",)), {}, 0, {}, "us", logs)
    with pytest.raises(Refused, match="engine: is the name of a log and of a table"):
        recorder.start(None)


FILL = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
from pathlib import Path
from probe import *
from pdes.driver import run
from pdes.stream import Recording
run(Diary(mean=Diary.mean // 64), 1000 * YEAR, show_compiling=False,
    record=Recording(Path(sys.argv[1]), 1000 * YEAR, (), 0.05, logs={LOGS!r}))
"""


@pytest.mark.long
def test_a_full_disk_ends_the_run_with_that_reason_and_what_was_written_stays(
    small_disk: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FILL, str(small_disk)],
        capture_output=True, text=True, env=clean_environment(), timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert f"No space left on device: '{small_disk / 'rank-0000.h5'}'" in done.stderr
    found = read(small_disk / "rank-0000.h5")
    n = len(found["visits/time_us"])
    assert n > 10_000
    assert (np.diff(found["visits/time_us"]) >= 0).all()
    assert {len(found[f"visits/{name}"]) for name in ("agent", "luck", "guests_count")} == {n}
    assert found["visits/guests_count"].sum() == len(found["visits/guests"])
    assert status_of(small_disk)[0] == FAILED
