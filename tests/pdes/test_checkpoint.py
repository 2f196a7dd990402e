"""What was laid down is taken up again unchanged, or refused by name."""

from __future__ import annotations

import errno
import json
import os
import signal
from pathlib import Path

import pytest

from pdes import checkpoint
from pdes.driver import run
from pdes.engine import Engine
from pdes.errors import Fault, Refused
from pdes.phold import Phold
from pdes.protocol import PROTOCOLS, Arrival

MODEL = Phold(processes=64, population=4, seed=9)
END = 40_000_000


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A directory with a checkpoint at 30 us."""
    run(MODEL, 35_000_000, checkpoint_dir=tmp_path, checkpoint_every=10_000_000)
    return tmp_path


def only(directory: Path) -> Path:
    (place,) = directory.glob("*/at-*")
    return place


def test_a_resumed_run_ends_like_an_undisturbed_one(saved: Path) -> None:
    assert only(saved).name == "at-0000000000030000000"
    undisturbed, resumed = run(MODEL, END), run(MODEL, END, resume=saved)
    assert resumed.digest == undisturbed.digest
    assert resumed.events == undisturbed.events


def test_checkpoints_on_the_way_change_nothing(tmp_path: Path) -> None:
    often = run(MODEL, END, checkpoint_dir=tmp_path, checkpoint_every=999_983)
    assert often.digest == run(MODEL, END).digest
    assert list(only(tmp_path).parent.iterdir()) == [only(tmp_path)]


def test_a_signal_makes_a_checkpoint_and_the_rest_follows(tmp_path: Path) -> None:
    def interrupt(reached: int, events: int, tally: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    model, end = Phold(seed=2), 400_000_000
    stopped = run(model, end, checkpoint_dir=tmp_path, progress=interrupt)
    assert not stopped.completed
    assert 0 < stopped.time_ps < end
    assert stopped.checkpoint == str(only(tmp_path))
    resumed = run(model, end, resume=tmp_path)
    assert resumed.completed
    assert resumed.digest == run(model, end).digest
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_wherever_a_stop_comes_only_a_complete_run_is_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From before the first event to after the last; cuts of checkpoints lie between."""
    whole, after = run(MODEL, END), 0
    monkeypatch.setattr(Engine, "stop_requested", property(lambda engine: engine.events >= after))
    monkeypatch.setattr("pdes.engine.BUDGET_EVENTS", 64)
    completed = []
    for after in range(0, whole.events + 700, 350):
        place = tmp_path / str(after)
        ran = run(MODEL, END, checkpoint_dir=place, checkpoint_every=7_000_000)
        same = (ran.time, ran.events, ran.digest) == (whole.time, whole.events, whole.digest)
        assert ran.completed == same
        assert ran.completed or ran.events < whole.events
        completed.append(ran.completed)
    assert set(completed) == {False, True}


def test_an_event_left_behind_at_a_cut_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were a protocol wrong about how far all ranks have come, nothing would be called complete."""
    monkeypatch.setitem(PROTOCOLS, "window", lambda engine, cut: Arrival(cut, False))
    with pytest.raises(Fault, match="was not handled before 40000000: please report this"):
        run(MODEL, END)


def test_a_run_that_dies_between_two_renames_has_a_checkpoint(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of the same moment is moved aside, and there it is found."""
    place, rename = only(saved), Path.rename

    class Died(Exception):
        pass

    def die(path: Path, target: Path) -> Path:
        if path == place:
            rename(path, target)
            raise Died
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", die)
    with pytest.raises(Died):
        run(MODEL, 35_000_000, checkpoint_dir=saved, checkpoint_every=30_000_000)
    monkeypatch.undo()
    assert not place.exists()
    resumed = run(MODEL, END, resume=saved, checkpoint_dir=saved, checkpoint_every=10_000_000)
    assert resumed.resumed == 30_000_000
    assert resumed.digest == run(MODEL, END).digest
    run(MODEL, 35_000_000, checkpoint_dir=saved, checkpoint_every=30_000_000)
    assert only(saved) == place


@pytest.mark.parametrize("name", ["rank-0000.h5", "manifest.json"])
@pytest.mark.parametrize("damage", ["truncated", "altered", "emptied"])
def test_a_damaged_checkpoint_is_refused_by_name(saved: Path, name: str, damage: str) -> None:
    path = only(saved) / name
    whole = path.read_bytes()
    middle = len(whole) // 2
    path.write_bytes(
        {
            "truncated": whole[:middle],
            "altered": whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :],
            "emptied": b"",
        }[damage]
    )
    with pytest.raises(Refused, match=f"{path}: does not match its checksum.* begun again"):
        run(MODEL, END, resume=saved)


def test_a_missing_part_is_refused_by_name(saved: Path) -> None:
    path = only(saved) / "rank-0000.h5"
    path.unlink()
    with pytest.raises(Refused, match=f"{path}: this rank's part .* is missing.* begun again"):
        run(MODEL, END, resume=saved)


def test_the_checkpoint_of_another_run_is_refused_by_what_differs(saved: Path) -> None:
    other = Phold(processes=64, population=4, seed=10)
    with pytest.raises(Refused, match="made with seed = 9, this run has seed = 10"):
        run(other, END, resume=saved)


def test_another_run_leaves_it_alone(saved: Path) -> None:
    other = Phold(processes=64, population=4, seed=10)
    run(other, END, checkpoint_dir=saved, checkpoint_every=30_000_000)
    assert len(list(saved.glob("*/at-0000000000030000000"))) == 2
    assert run(MODEL, END, resume=saved).digest == run(MODEL, END).digest
    assert run(other, END, resume=saved).digest == run(other, END).digest


def test_beginning_again_keeps_a_later_one(saved: Path) -> None:
    run(MODEL, 8_000_000, checkpoint_dir=saved, checkpoint_every=7_000_000)
    assert run(MODEL, END, resume=saved).resumed_ps == 30_000_000


def test_a_parameter_named_like_one_of_ours_hides_nothing(tmp_path: Path) -> None:
    class Named(Phold):
        def parameters(self) -> dict[str, int | float | str]:
            return {"ranks": 64, "model": "phold"}

    run(Named(processes=8), 10_000_000, checkpoint_dir=tmp_path, checkpoint_every=7_000_000)
    manifest = json.loads((only(tmp_path) / "manifest.json").read_text())
    assert manifest["identity"]["ranks"] == 1


def test_a_full_disk_is_said_plainly_and_leaves_the_one_before(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes) -> None:
        path.touch()
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match=r"No space left on device.*rank-0000\.h5"):
        run(MODEL, END, resume=saved, checkpoint_dir=saved, checkpoint_every=7_000_000)
    monkeypatch.undo()
    assert list(only(saved).parent.iterdir()) == [only(saved)]
    assert run(MODEL, END, resume=saved).digest == run(MODEL, END).digest


def test_a_checkpoint_of_another_format_is_refused(saved: Path) -> None:
    path = only(saved) / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest.pop("checksum")
    manifest["format"] = 99
    manifest["checksum"] = checkpoint._checksum(manifest)
    path.write_text(json.dumps(manifest))
    with pytest.raises(Refused, match="checkpoint format 99, this version reads 1"):
        run(MODEL, END, resume=saved)


def test_an_end_before_the_checkpoint_is_refused(saved: Path) -> None:
    with pytest.raises(Refused, match="made at 30000000 ps, after the end at 1000 ps"):
        run(MODEL, 1000, resume=saved)


def test_nothing_to_resume_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="holds no complete checkpoint"):
        run(MODEL, END, resume=tmp_path)
    with pytest.raises(Refused, match="no such checkpoint directory"):
        run(MODEL, END, resume=tmp_path / "nowhere")


def test_a_half_written_checkpoint_does_not_count(saved: Path) -> None:
    partial = only(saved).parent / f"{checkpoint.PARTIAL}-1"
    partial.mkdir()
    (partial / "rank-0000.h5").write_bytes(b"half")
    assert run(MODEL, END, resume=saved).digest == run(MODEL, END).digest
