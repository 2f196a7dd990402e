"""A run goes on with another number of ranks, as often as it is stopped: its answer, its series and
its logs are those of one rank that nobody disturbed."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import h5py
import pytest
from conftest import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from models import Net, Office
from probe import YEAR, Diary
from threads import bits, files, go, stop_when_asked

from pdes import checkpoint
from pdes.driver import Result, run
from pdes.engine import Engine
from pdes.errors import Refused
from pdes.model import Model
from pdes.phold import Phold
from pdes.stream import Recording, Series, Table
from pdes.transport import Serial


@pytest.fixture(autouse=True)
def stops(monkeypatch: pytest.MonkeyPatch) -> None:
    stop_when_asked(monkeypatch)


models = st.one_of(
    st.builds(
        Phold,
        processes=st.integers(6, 40),
        population=st.integers(0, 6),
        remote=st.sampled_from([0.1, 1.0]),
        lookahead_ps=st.sampled_from([100, 40_000, 500_000]),
        seed=st.integers(0, 99),
    ),
    st.builds(Net, depth=st.integers(0, 4), delay=st.sampled_from([200_000, 600_000])),
    st.builds(Office),
)
legs = st.lists(
    st.tuples(
        st.integers(1, 6),
        st.sampled_from(["window", "null"]),
        st.dictionaries(st.integers(0, 5), st.integers(0, 300), min_size=1, max_size=2),
    ),
    min_size=2,
    max_size=4,
)


def assert_goes_on(model: Model, legs: list[tuple[int, str, dict[int, int]]], seed: int) -> None:
    end = 4_000_000
    alone = run(model, end, transport=Serial())
    with tempfile.TemporaryDirectory() as name:
        place, resume = Path(name), None
        for ranks, protocol, stops in legs:
            ran = go(model, end, ranks, seed, protocol=protocol, checkpoint_dir=place,
                     resume=resume, stops=stops)  # fmt: skip
            resume = place
            if ran.completed:
                break
        else:
            ran = go(model, end, legs[0][0] % 6 + 1, seed, resume=place)
    assert ran.completed
    assert (ran.events, ran.digest) == (alone.events, alone.digest)


@examples(20)
@given(model=models, legs=legs, seed=st.integers(0, 2**32))
def test_any_ranks_after_any_other_give_the_same_answer(
    model: Model, legs: list[tuple[int, str, dict[int, int]]], seed: int
) -> None:
    assert_goes_on(model, legs, seed)


@pytest.mark.long
@settings(max_examples=400)
@given(model=models, legs=legs, seed=st.integers(0, 2**32))
def test_any_ranks_after_any_other_give_the_same_answer_at_length(
    model: Model, legs: list[tuple[int, str, dict[int, int]]], seed: int
) -> None:
    assert_goes_on(model, legs, seed)


# -- what is recorded


@examples(1)  # the search is for make test-long
@example(ranks=[3, 2], every=700_000)
@example(ranks=[1, 4, 2], every=1_000_000)
@given(
    ranks=st.lists(st.integers(1, 4), min_size=2, max_size=3),
    every=st.sampled_from([700_000, 1_000_000, 1_300_000]),
)
def test_series_go_on_as_if_nothing_had_happened(ranks: list[int], every: int) -> None:
    """Whether or not a checkpoint lies at a sample, and also where no new one was written before
    the run was stopped again."""
    model = Phold(processes=13, population=3, seed=5)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        record = Recording(place / "parts", 500_000, ("processes",))
        for leg, size in enumerate(ranks):
            last = leg == len(ranks) - 1
            ran = go(model, 4_000_000 if last else 1_500_000 + leg, size, record=record,
                     checkpoint_dir=place / "saved", checkpoint_every=every,
                     resume=place / "saved" if leg else None)  # fmt: skip
        alone = go(model, 4_000_000, 1, record=Recording(place / "one", 500_000, ("processes",)))
        assert ran.digest == alone.digest
        assert bits(place / "parts") == bits(place / "one")
        assert files(place / "parts") == [f"rank-{rank:04d}.h5" for rank in range(ranks[-1])]
        with h5py.File(place / "parts" / "run.h5") as file:
            assert file["engine/events"].shape == (8, ranks[-1])
            assert file["engine/events"][:].sum() == alone.events
            assert (file["engine/wall_s"][:].sum(axis=0) > 0).all()


@examples(1)  # the search is for make test-long
@example(ranks=[3, 2])
@given(ranks=st.lists(st.integers(1, 4), min_size=2, max_size=3))
def test_logs_go_on_as_if_nothing_had_happened(ranks: list[int]) -> None:
    """Agents of several ranks write rows at one instant; the clock is another than picoseconds."""
    with tempfile.TemporaryDirectory() as name:
        place, end = Path(name), YEAR // 4
        logs = ("visits", "moves", "never")
        record = Recording(place / "parts", YEAR // 12, (), logs=logs)
        for leg, size in enumerate(ranks):
            until = end * (leg + 1) // len(ranks)
            go(Diary(), until, size, record=record, checkpoint_dir=place / "saved",
               checkpoint_every=YEAR // 28, resume=place / "saved" if leg else None)  # fmt: skip
        go(Diary(), end, 1, record=Recording(place / "one", YEAR // 12, (), logs=logs))
        alone = bits(place / "one")
        assert bits(place / "parts") == alone
        assert alone["visits/agent"][0][0][0] > 400


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_run_in_which_nothing_happens_any_more_goes_on_with_its_series(
    tmp_path: Path, ranks: int
) -> None:
    """By itself PHOLD says that something is always left; but there are no events."""
    model = Phold(processes=8, population=0)
    record = Recording(tmp_path / "parts", 500_000, ("processes",))
    go(model, 3_500_000, 1, record=record, checkpoint_dir=tmp_path, checkpoint_every=3_000_000)
    go(model, 4_000_000, ranks, record=record, resume=tmp_path)
    go(model, 4_000_000, 1, record=Recording(tmp_path / "one", 500_000, ("processes",)))
    assert bits(tmp_path / "parts") == bits(tmp_path / "one")


def test_what_was_not_recorded_to_the_checkpoint_is_refused_and_stays(tmp_path: Path) -> None:
    model = Phold(processes=13, population=3, seed=5)
    record = Recording(tmp_path / "parts", 500_000, ("processes",))
    go(model, 1_500_000, 3, record=record)
    go(model, 3_500_000, 2, checkpoint_dir=tmp_path, checkpoint_every=3_000_000)
    before = bits(tmp_path / "parts")
    for ranks in (1, 2, 5):
        with pytest.raises(Refused, match="its metrics end at 1500000 ps, before the checkpoint"):
            go(model, 4_000_000, ranks, record=record, resume=tmp_path)
        assert bits(tmp_path / "parts") == before
        assert files(tmp_path / "parts") == [f"rank-{rank:04d}.h5" for rank in range(3)]


class ByRank(Phold):
    """Records one number per rank."""

    def tables(self, interval: int) -> dict[str, Table]:
        total = Series("processes/total", ("rank",), "1", "events handled")
        return {
            "processes": Table((total,), lambda state, time: [state.handled.sum(keepdims=True)])
        }


def test_a_series_by_rank_goes_on_only_with_as_many_ranks(tmp_path: Path) -> None:
    model = ByRank(processes=13, population=3, seed=5)
    record = Recording(tmp_path / "parts", 500_000, ("processes",))
    go(model, 1_500_000, 2, record=record, checkpoint_dir=tmp_path, checkpoint_every=1_000_000)
    with pytest.raises(Refused, match=r"processes/total has 2 columns, .* 3: .* only with 2 ranks"):
        go(model, 4_000_000, 3, record=record, resume=tmp_path)
    assert go(model, 4_000_000, 2, record=record, resume=tmp_path).completed


# -- which checkpoint


def manifest_of(place: Path) -> Path:
    (found,) = place.glob("*/at-*/manifest.json")
    return found


@pytest.mark.parametrize("ranks", [2, 3])
def test_a_checkpoint_of_an_earlier_version_goes_on(tmp_path: Path, ranks: int) -> None:
    """It was named by its ranks too, and did not say how units were dealt."""
    model = Phold(processes=13, population=3, seed=5)
    go(model, 2_500_000, 2, checkpoint_dir=tmp_path, checkpoint_every=1_000_000)
    path = manifest_of(tmp_path)
    manifest = json.loads(path.read_text())
    del manifest["first_units"], manifest["checksum"]
    manifest["checksum"] = checkpoint._checksum(manifest)
    path.write_text(json.dumps(manifest))
    path.parent.parent.rename(tmp_path / "phold-01234567")
    go(Phold(processes=13, seed=6), 900_000, 1, checkpoint_dir=tmp_path, checkpoint_every=800_000)
    resumed = go(model, 4_000_000, ranks, resume=tmp_path)
    assert resumed.resumed == 2_000_000
    assert resumed.digest == go(model, 4_000_000, 1).digest


def test_checkpoints_of_one_run_on_any_ranks_are_of_one_name(tmp_path: Path) -> None:
    model = Phold(processes=13, population=3, seed=5)
    for ranks, end in ((2, 1_500_000), (3, 2_500_000), (1, 3_500_000)):
        resume = tmp_path if ranks != 2 else None
        go(model, end, ranks, checkpoint_dir=tmp_path, checkpoint_every=1_000_000, resume=resume)
    assert manifest_of(tmp_path).parent.name == "at-0000000000003000000"


def test_more_ranks_than_partitions_are_refused_as_ever(tmp_path: Path) -> None:
    model = Phold(processes=3, seed=5)
    go(model, 1_500_000, 2, checkpoint_dir=tmp_path, checkpoint_every=1_000_000)
    with pytest.raises(Refused, match=r"4 ranks: this model has 3 partitions, .* at most 3 ranks"):
        go(model, 4_000_000, 4, resume=tmp_path)


def test_a_part_that_is_damaged_is_refused_on_whichever_rank_needs_it(tmp_path: Path) -> None:
    model = Phold(processes=13, population=3, seed=5)
    go(model, 1_500_000, 2, checkpoint_dir=tmp_path, checkpoint_every=1_000_000)
    part = manifest_of(tmp_path).with_name("rank-0001.h5")
    part.write_bytes(part.read_bytes()[:-100])
    for ranks in (1, 3):
        with pytest.raises(Refused, match=r"rank-0001\.h5: does not match its checksum"):
            go(model, 4_000_000, ranks, resume=tmp_path)


@pytest.mark.parametrize(("ranks", "protocol"), [
    (1, "window"), (3, "null"),
    *(pytest.param(*one, marks=pytest.mark.long)
      for one in ((1, "null"), (2, "window"), (2, "null"), (3, "window"))),
])  # fmt: skip
def test_a_stop_at_the_time_of_a_sample_does_not_sample_twice(
    ranks: int, protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signal comes while a checkpoint is written, and the next event is due at that very time:
    so the cut of the stop is that of the checkpoint, which is also that of a sample. The next runs
    are asked to stop as soon as they go on."""
    model, saved = Diary(agents=6), tmp_path / "saved"
    step = model.mean // 8
    asked: list[bool] = []
    monkeypatch.setattr(Engine, "stop_requested", property(lambda engine: any(asked)))
    write = checkpoint.save

    def save(*of: Any) -> Path:
        place, (cut, arrays) = write(*of), of[3:5]
        asked.extend(arrays["pending"][:, 0] == cut.time)
        return place

    def leg(name: str, size: int, **how: Any) -> Result:
        record = Recording(tmp_path / name, step, (), logs=("visits",))
        return go(model, 90 * step, size, protocol=protocol, record=record, **how)

    leg("whole", 1)
    monkeypatch.setattr(checkpoint, "save", save)
    stopped = leg("ours", ranks, checkpoint_dir=saved, checkpoint_every=5 * step)
    assert stopped.time % (5 * step) == 0
    for size in (ranks, ranks % 3 + 1):
        assert not leg("ours", size, checkpoint_dir=saved, resume=saved).completed
    monkeypatch.setattr(checkpoint, "save", write)
    asked.clear()
    assert leg("ours", ranks, resume=saved).completed
    assert bits(tmp_path / "ours") == bits(tmp_path / "whole")


def test_a_run_that_goes_on_from_its_very_end_does_not_sample_it_twice(tmp_path: Path) -> None:
    model, saved = Phold(processes=13, population=3, seed=5), tmp_path / "saved"
    for name, legs in (("ours", (1_500_000, 1_000_000)), ("whole", (1_000_000,))):
        record = Recording(tmp_path / name, 500_000, ("processes",))
        for number, end in enumerate(legs):
            go(model, end, 1, record=record, checkpoint_dir=saved, checkpoint_every=1_000_000,
               resume=saved if number else None)  # fmt: skip
    assert bits(tmp_path / "ours") == bits(tmp_path / "whole")
