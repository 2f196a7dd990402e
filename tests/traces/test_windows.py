"""Weeks of a trace drawn anew."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from odonata.traces.poisson import poisson
from odonata.traces.source import Source
from odonata.traces.trace import Trace
from odonata.traces.windows import DAY_US, WEEK_US, resampled
from pdes.errors import Refused

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture
def experiment(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script that tries intervals on traces whose true means are known."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return importlib.import_module("trace_intervals")


@pytest.fixture(scope="module")
def trace() -> Trace:
    """Six weeks and a day, each job marked by the week in which it was submitted: a job of week 3
    runs for 3 s and some microseconds, which are its own."""
    made = poisson(2400, 64, load=0.5, seed=3)
    submit = np.sort(np.random.default_rng(1).integers(0, 6 * WEEK_US + DAY_US, len(made)))
    run_us = submit // WEEK_US * 10**6 + np.arange(len(made))
    return made.where(slice(None), submit_us=submit, run_us=run_us)


def original(trace: Trace, made: Trace) -> np.ndarray:
    """Returns when each job of a replicate was submitted in the trace."""
    found: np.ndarray = trace.submit_us[made.run_us % 10**6]
    return found


@pytest.mark.parametrize("days", [1, 3, 7, 10, 14, 42])
def test_a_replicate_is_made_of_whole_blocks_at_their_time_of_the_week(
    trace: Trace, days: int
) -> None:
    made = resampled(trace, days * DAY_US, 5)
    before = original(trace, made)
    assert (made.submit_us % WEEK_US == before % WEEK_US).all()
    assert made.submit_us[-1] < 6 * WEEK_US
    assert before.max() < 6 * WEEK_US  # of the day that is left over there is nothing
    block = made.submit_us // (days * DAY_US)
    for number in np.unique(block):
        moved = (made.submit_us - before)[block == number] % (6 * WEEK_US)
        assert len({*moved.tolist()}) == 1, "a block is moved as one"
        at = number * days * DAY_US
        length = min(days * DAY_US, 6 * WEEK_US - at)
        source = (at - moved[0] + np.array([0, length])) % (6 * WEEK_US)
        times = trace.submit_us[trace.submit_us < 6 * WEEK_US]
        inside = (times - source[0]) % (6 * WEEK_US) < length
        assert inside.sum() == (block == number).sum(), "and nothing of it is left out"


def test_every_week_is_drawn_as_often_as_any_other_whatever_the_length_of_a_block(
    trace: Trace,
) -> None:
    for days in (3, 7, 14):
        drawn = np.concatenate([original(trace, resampled(trace, days * DAY_US, seed)) // WEEK_US
                                for seed in range(300)])  # fmt: skip
        there = np.bincount(trace.submit_us // WEEK_US)[:6]
        often = np.bincount(drawn, minlength=6) / there / 300
        assert often == pytest.approx(np.ones(6), abs=0.25)
        assert often.mean() == pytest.approx(1, abs=0.02)


def test_a_seed_is_a_replicate_and_says_where_it_comes_from(trace: Trace) -> None:
    first, again, other = (resampled(trace, WEEK_US, seed) for seed in (1, 1, 2))
    assert (first.submit_us == again.submit_us).all()
    assert len(first) != len(other) or (first.run_us != other.run_us).any()
    assert first.number.tolist() == [*range(1, len(first) + 1)]
    assert first.account.lines() == [f"{len(first):,} drawn anew, from 6 weeks in blocks of 7 d"]


def test_weeks_are_counted_from_time_0_or_from_a_late_first_submission(trace: Trace) -> None:
    late = trace.where(slice(None), submit_us=trace.submit_us + 100 * DAY_US)
    one, other = resampled(trace, WEEK_US, 4), resampled(late, WEEK_US, 4)
    begin = int(late.submit_us[0])
    assert other.submit_us[0] >= begin
    assert len(one) == pytest.approx(len(other), rel=0.02)
    soon = trace.where(trace.submit_us >= DAY_US)  # the first day is part of the first week
    assert (resampled(soon, WEEK_US, 4).submit_us % WEEK_US >= 0).all()
    assert resampled(soon, WEEK_US, 4).submit_us[0] >= 0


def test_what_cannot_be_drawn_is_refused(trace: Trace) -> None:
    short = trace.where(trace.submit_us < 13 * DAY_US)
    with pytest.raises(Refused, match=r"7 d are drawn .* of which there are 1: at least 2"):
        resampled(short, WEEK_US, 1)
    with pytest.raises(Refused, match=r"blocks of 49 d are drawn .* of which there are 6: "):
        resampled(trace, 49 * DAY_US, 1)
    with pytest.raises(Refused, match=r"resample = 168 h: of a file, .* made by lublin"):
        Source(model="lublin", resample_ps=7 * 86400 * 10**12)
    with pytest.raises(Refused, match=r"resample = .* ps: at least 1 h, or none"):
        Source(file="a.swf", resample_ps=10**12)


def test_intervals_of_replicates_have_the_true_mean_and_those_of_their_mean_have_not(
    experiment: Any,
) -> None:
    case = experiment.Case("poisson", 0.6, weeks=16, traces=24, replicates=6)
    truth, parts, widths = experiment.covered(case)
    assert truth[2] == pytest.approx(0.6, rel=0.02)
    assert all(experiment.allowed(part, 24) for part in parts)
    assert parts.mean() >= 0.9
    assert (widths < 0.5).all()
    _, too_few, _ = experiment.covered(case, "t")  # more replicates would make it worse
    assert too_few.mean() < 0.7


@pytest.mark.long
@pytest.mark.parametrize(
    ("model", "load", "weeks"), [("poisson", 0.85, 26), ("lublin", 0.6, 26), ("lublin", 0.75, 52)]
)
def test_nine_to_ten_of_ten_intervals_have_the_true_mean(
    experiment: Any, model: str, load: float, weeks: int
) -> None:
    _, parts, _ = experiment.covered(experiment.Case(model, load, weeks, traces=60, replicates=10))
    assert all(experiment.allowed(part, 60) for part in parts)
