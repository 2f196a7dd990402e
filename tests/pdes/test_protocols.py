"""Several ranks in one process, over a wire whose timing hypothesis chooses: whatever it does, and
whichever rank is asked to stop, and whenever, the answer is that of one rank."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from models import Net
from threads import Thread, Wire, run_threads, stop_when_asked

from pdes.driver import LATEST, run
from pdes.events import FOREVER
from pdes.model import Model
from pdes.phold import Phold
from pdes.protocol import Channels, window
from pdes.transport import Serial


@pytest.fixture(autouse=True)
def stops(monkeypatch: pytest.MonkeyPatch) -> None:
    stop_when_asked(monkeypatch)


models = st.one_of(
    st.builds(
        Phold,
        processes=st.integers(6, 40),
        population=st.integers(0, 6),
        remote=st.sampled_from([0.0, 0.1, 1.0]),
        lookahead_ps=st.sampled_from([40_000, 500_000, 1_000_000]),
        seed=st.integers(0, 99),
    ),
    st.builds(
        Phold,
        processes=st.integers(6, 12),
        population=st.integers(0, 1),
        remote=st.sampled_from([0.0, 0.5]),
        lookahead_ps=st.just(100),
        mean_ps=st.sampled_from([300_000, 2_000_000]),
        seed=st.integers(0, 99),
    ),
    st.builds(  # what is sent arrives as soon as it may
        Phold,
        processes=st.integers(6, 12),
        population=st.just(1),
        remote=st.sampled_from([0.5, 1.0]),
        lookahead_ps=st.just(100_000),
        mean_ps=st.sampled_from([100_000, 101_000, 120_000]),
        seed=st.integers(0, 99),
    ),
    st.builds(Net, depth=st.integers(0, 4), delay=st.sampled_from([200_000, 600_000])),
)


timings = given(
    model=models,
    size=st.integers(2, 6),
    seed=st.integers(0, 2**32),
    protocol=st.sampled_from(["window", "null"]),
    every=st.sampled_from([None, 90_000, 700_001, 3_000_000]),
    stops=st.dictionaries(st.integers(0, 3), st.integers(0, 300), max_size=3),
)


@pytest.mark.parametrize("protocol", ["window", "null"])
@pytest.mark.parametrize("size", [2, 3, 6])
def test_what_takes_the_lookahead_and_no_tick_more_arrives_in_time(
    size: int, protocol: str
) -> None:
    """What the earliest event of all sends arrives at the horizon itself: a horizon, or a promise,
    of one tick more is too late for it."""
    model = Phold(6, 2, remote=1.0, lookahead_ps=100_000, mean_ps=100_000)
    alone = run(model, 1_000_000, transport=Serial())
    for result in run_threads(model, 1_000_000, size, 1, {}, protocol=protocol):
        assert (result.events, result.digest) == (alone.events, alone.digest)


class Scripted:
    """A rank alone whose earliest events are at these times, and which notes how far it is let."""

    transport, lookahead, reach, rounds, stop_requested = Serial(), 100, 100, 0, False

    def __init__(self, *times: int) -> None:
        self.times = [*times]
        self.horizons: list[int] = []

    def letters(self) -> tuple[Any, list[int]]:
        return np.array([[self.times[0], 0, 0, 0]]), [0, 1]

    def advance(self, horizon: int) -> None:
        self.horizons.append(horizon)
        self.times = [time for time in self.times if time >= horizon]

    def look(self) -> None: ...
    def deliver(self, letters: list[Any]) -> None: ...
    def report(self, reached: int, events: int) -> None: ...
    def lap(self, what: str) -> float:
        return 0.0


def test_a_window_ends_a_lookahead_after_the_earliest_event_or_at_the_cut() -> None:
    """An event at the end of one window is in the next."""
    engine = Scripted(7, 50, 106, 107, 300, 399, 400, 10**6)
    assert window(engine, 450) == (450, False)  # type: ignore[arg-type]
    assert engine.horizons == [107, 207, 400, 450]


@settings(max_examples=5)
@timings
def test_no_timing_and_no_stop_changes_the_answer(**case: Any) -> None:
    assert_the_same(**case)


@pytest.mark.long
@settings(max_examples=150)
@timings
def test_no_timing_and_no_stop_changes_the_answer_at_length(**case: Any) -> None:
    assert_the_same(**case)


def assert_the_same(
    model: Model, size: int, seed: int, protocol: str, every: int | None, stops: dict[int, int]
) -> None:
    end = 4_000_000
    alone = run(model, end, transport=Serial())
    with tempfile.TemporaryDirectory() as name:
        options: dict[str, Any] = {
            "protocol": protocol, "checkpoint_dir": Path(name), "checkpoint_every": every,
        }  # fmt: skip
        first = run_threads(model, end, size, seed, stops, **options)
        assert len({(r.time_ps, r.completed) for r in first}) == 1
        if not first[0].completed:
            first = run_threads(model, end, size, seed, {}, resume=Path(name), **options)
    for result in first:
        assert result.completed
        assert (result.events, result.digest) == (alone.events, alone.digest)


def test_what_ranks_agree_on_counts_the_events_that_a_rank_at_the_cut_still_has() -> None:
    """A rank at the cut is silent, so its last report may be older than what it has received. Its
    promise knows of that: it is one lookahead after its earliest event."""
    channels = Channels(3, 0, 0)
    channels.marks = [0, 1, 0]
    channels.reports[:] = 0
    channels.reports[:, 0] = 900, 400, 800
    channels.promise = [FOREVER, 250, 300]
    assert channels.agreed(lookahead=100) == 150, "not 250, not the 400 of an old report"
    channels.promise[1] = 2_000
    assert channels.agreed(lookahead=100) == 800, "the earliest event of those on the way"
    channels.reports[0, 1 + 2] = 1
    assert channels.agreed(lookahead=100) is None, "an event is on its way to rank 2"
    channels.reports[0, 1 + 2], channels.reports[0, 1 + 1] = 0, 1
    assert channels.agreed(lookahead=100) == 800, "what goes to the rank at the cut, it promises"
    channels.marks = [1, 1, 1]
    assert channels.agreed(lookahead=100) is None
    channels.reports[1, 1 + 3 + 0] = 1
    assert channels.agreed(lookahead=100) == 400


cuts = given(
    seed=st.integers(0, 2**32),
    size=st.integers(3, 6),
    mean=st.sampled_from([100_000, 101_000, 400_000]),
    every=st.sampled_from([70_000, 100_000, 130_000, 250_000]),
)


@settings(max_examples=5)
@cuts
def test_null_is_safe_from_cut_to_cut(seed: int, size: int, mean: int, every: int) -> None:
    assert_safe(seed, size, mean, every)


@pytest.mark.long
@settings(max_examples=150)
@cuts
def test_null_is_safe_from_cut_to_cut_at_length(
    seed: int, size: int, mean: int, every: int
) -> None:
    assert_safe(seed, size, mean, every)


def assert_safe(seed: int, size: int, mean: int, every: int) -> None:
    """A rank that is silent at a cut may have received what it will answer as soon as it may."""
    model = Phold(6, 1, remote=1.0, lookahead_ps=100_000, mean_ps=mean, seed=seed % 50)
    alone = run(model, 2_000_000, transport=Serial())
    with tempfile.TemporaryDirectory() as name:
        for result in run_threads(model, 2_000_000, size, seed, {}, protocol="null",
                                  checkpoint_dir=Path(name), checkpoint_every=every):  # fmt: skip
            assert (result.events, result.digest) == (alone.events, alone.digest)


@examples(8)
@given(seed=st.integers(0, 2**32), size=st.integers(2, 4), after=st.integers(1, 2000))
def test_a_stop_comes_before_the_end(seed: int, size: int, after: int) -> None:
    """Asked on one rank early in a long run, all stop at one cut, and it lies where they were."""
    model = Phold(processes=16, population=8, seed=1)
    with tempfile.TemporaryDirectory() as name:
        results = run_threads(
            model, 10**9, size, seed, {size - 1: after}, protocol="null", checkpoint_dir=Path(name)
        )
    (time,) = {r.time_ps for r in results}
    expected = run(model, time, transport=Serial())
    assert not any(r.completed for r in results)
    assert time < 10**9
    assert {r.events for r in results} == {expected.events}
    assert {r.digest for r in results} == {expected.digest}


@pytest.mark.parametrize("size", [2, 3, 6])
def test_null_skips_idle_time(size: int) -> None:
    """One lookahead per message, the way from one event to the next would be ten thousand. A rank
    writes to the others when it has handled or received something."""
    model = Phold(processes=8, population=1, lookahead_ps=100, mean_ps=1_000_000, seed=3)
    alone = run(model, 20_000_000, transport=Serial())
    for result in run_threads(model, 20_000_000, size, 1, {}, protocol="null"):
        assert result.rounds <= 2 * alone.events + 3 * size
        assert (result.events, result.digest) == (alone.events, alone.digest)


@examples(10)
@given(seed=st.integers(0, 2**32), size=st.integers(4, 6), number=st.integers(1, 12))
def test_null_skips_idle_time_beside_ranks_that_are_at_the_cut(
    seed: int, size: int, number: int
) -> None:
    """The cut lies within a lookahead after an event, so that some ranks are there, and silent,
    while the others have not yet heard of each other."""
    model = Phold(processes=6, population=1, lookahead_ps=100, mean_ps=1_000_000, seed=seed % 50)
    before, after = 0, 20_000_000
    while after - before > 1:
        middle = (before + after) // 2
        few = run(model, middle, transport=Serial()).events < number
        before, after = (middle, after) if few else (before, middle)
    end = after + 50
    alone = run(model, end, transport=Serial())
    for result in run_threads(model, end, size, seed, {}, protocol="null"):
        assert result.rounds <= 2 * alone.events + 3 * size
        assert (result.events, result.digest) == (alone.events, alone.digest)


def test_where_no_rank_has_an_event_null_is_at_the_end_at_once() -> None:
    results = run_threads(Phold(processes=8, population=0), LATEST, 3, 1, {}, protocol="null")
    assert all(result.completed and result.rounds < 10 for result in results)


def test_the_harness_finds_a_deadlock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("threads.PATIENCE", 0.1)
    rank = Thread(Wire(2), 0, 0, None)
    with pytest.raises(TimeoutError, match="deadlock"):
        rank.collect(wait=True)
