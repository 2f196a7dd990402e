"""A model whose every event is a decision and whose tick is a microsecond: years of Python, and
still it answers signals, shows progress, is checked, and can be resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import PATIENCE, clean_environment, code_on_ranks
from models import Office, Rogue
from probe import YEAR, Probe

from pdes.clock import LATEST, TICKS
from pdes.driver import run as run_ranks
from pdes.errors import Fault, Refused
from pdes.events import pack
from pdes.transport import Serial

HERE = Path(__file__).parent.parent
BUSY = Probe(mean=Probe.mean // 15)
"""300,000 decisions in ten years."""


def run(model: Any, end: int | None = 10 * YEAR, **how: Any) -> Any:
    return run_ranks(model, end, transport=Serial(), **how)


# -- ticks


def test_a_model_in_microseconds_runs_for_a_century() -> None:
    result = run(replace(Probe(), mean=YEAR), 100 * YEAR)
    assert result.completed
    assert (result.tick, result.time) == ("us", 100 * YEAR)
    assert result.time_ps == 100 * YEAR * 10**6
    assert result.time_ps > LATEST, "more than picoseconds could count"


def test_facts_of_a_run_are_in_picoseconds_by_the_names_they_had(tmp_path: Path) -> None:
    run(Probe(), 2 * YEAR, checkpoint_dir=tmp_path, checkpoint_every=YEAR)
    facts = run(Probe(), 2 * YEAR, resume=tmp_path).in_ps()
    assert facts["time_ps"] == 2 * YEAR * TICKS["us"]
    assert facts["resumed_ps"] == YEAR * TICKS["us"]
    assert not {"time", "resumed", "tick"} & {*facts}


def test_a_tick_that_is_no_unit_is_refused() -> None:
    class Odd(Rogue):
        tick = "week"

    with pytest.raises(Refused, match="rogue: tick = 'week': must be one of ps, ns, us, ms, s"):
        run(Odd(), 1)


def test_messages_have_the_unit_of_the_model(tmp_path: Path) -> None:
    class Hasty(Rogue):
        tick = "ms"

    with pytest.raises(Fault, match=r"'tick' at agent 0 port 0, 0 ms .* negative delay \(-3 ms\)"):
        run(Hasty(delay=-3), 1)
    with pytest.raises(Refused, match="end = -1 us"):
        run(Probe(), -1)
    run(Probe(), 2 * YEAR, checkpoint_dir=tmp_path, checkpoint_every=YEAR)
    with pytest.raises(Refused, match=f"was made at {YEAR} us, after the end at 5 us"):
        run(Probe(), 5, resume=tmp_path)


def test_a_checkpoint_of_another_tick_is_refused_by_name(tmp_path: Path) -> None:
    class Coarse(Probe):
        tick = "s"

    class Fine(Probe):
        tick = "ps"

    run(Fine(), 2 * YEAR, checkpoint_dir=tmp_path, checkpoint_every=YEAR)
    (manifest,) = tmp_path.glob("*/*/manifest.json")
    assert json.loads(manifest.read_text())["time_ps"] == YEAR
    assert "tick" not in json.loads(manifest.read_text())["identity"], "as it always was"
    with pytest.raises(Refused, match="was made with tick = ps, this run has tick = s"):
        run(Coarse(), 2 * YEAR, resume=tmp_path)


# -- ten years of decisions


def test_a_restart_leaves_no_trace(tmp_path: Path) -> None:
    whole = run(Probe())
    run(Probe(), 9 * YEAR, checkpoint_dir=tmp_path, checkpoint_every=4 * YEAR)
    resumed = run(Probe(), resume=tmp_path)
    assert whole.events > 19_900
    assert resumed.resumed == 8 * YEAR
    assert (resumed.events, resumed.digest) == (whole.events, whole.digest)


@pytest.mark.alone
def test_sigterm_is_answered_within_a_second_with_a_checkpoint(tmp_path: Path) -> None:
    """From the signal to the line that says how the run ended; h5py has been imported by then. On
    a busy machine an attempt may wait for a processor: it is tried again. (What follows a signal is
    the rest of the run: `test_checkpoint.py`.)"""
    assert any(stopped(tmp_path / name) < 1 for name in ("first", "second", "third"))


def stopped(directory: Path) -> float:
    """Returns the seconds that a run takes to stop at a checkpoint."""
    code = (
        f"import sys; sys.path.insert(0, {str(HERE)!r}); from probe import *; import h5py; "
        "from pathlib import Path; from pdes.driver import run; "
        f"r = run({BUSY!r}, 10 * YEAR, checkpoint_dir=Path({str(directory)!r}), "
        "progress=lambda *_: print('on its way', flush=True)); "
        "print(r.completed, r.checkpoint is not None, flush=True)"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=clean_environment()
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "on its way\n"
    began = time.perf_counter()
    child.send_signal(signal.SIGTERM)
    last = next(line for line in child.stdout if line != "on its way\n")
    took = time.perf_counter() - began
    child.communicate(timeout=PATIENCE)
    assert (child.returncode, last) == (0, "False True\n")
    return took


def test_progress_is_shown_on_the_way() -> None:
    shown: list[tuple[int, int]] = []
    run(BUSY, progress=lambda *news: shown.append(news[:2]))
    on_the_way = [events for reached, events in shown if 0 < reached < 10 * YEAR]
    assert len(on_the_way) >= 3
    assert on_the_way == sorted({*on_the_way})


class Slow(Probe):
    decided = 0

    def decide(self, state: Any, time_us: int, key: int, a: int, b: int) -> Any:
        time.sleep(0.01)
        Slow.decided += 1
        return super().decide(state, time_us, key, a, b)


def test_slow_decisions_do_not_keep_a_signal_waiting(tmp_path: Path) -> None:
    """The budget of events would last for ten minutes, which is some 60,000 decisions. Decisions
    are counted, not seconds: on a busy machine writing a checkpoint may take one."""

    def interrupt(reached: int, events: int, tally: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    stopped = run(Slow(), checkpoint_dir=tmp_path, progress=interrupt)
    assert not stopped.completed
    assert 0 < Slow.decided < 200


@pytest.mark.parametrize("made", ["Probe", "Office"])
def test_under_debug_the_model_is_checked_after_every_decision(
    made: str, python: Callable[..., str]
) -> None:
    """The model is checked after every decision and once at the end, also where decisions and
    compiled events take turns."""
    code = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
from models import *
from probe import *
from pdes.driver import run
from pdes.model import Audits
class Audited({made}, Audits):
    def check(self, state, pending, parcels): seen.append(len(pending))
seen = []
result = run(Audited(), YEAR // 20, debug=True)
print(result.events, len(seen), set(seen[:-1]), result.digest)
"""
    printed = python(code)
    events, checks = map(int, printed.split()[:2])
    assert checks == events + 1 > 20
    if made == "Probe":
        assert "{8}" in printed, "what a decision made is pending when it is checked"
        assert printed.split()[-1] == run(Probe(), YEAR // 20).digest


# -- the forms that a decision's events may have


def one_in_a_list(event: Any) -> Any:
    return [event]


def as_rows(event: Any) -> Any:
    return np.array([event])


def as_columns(event: Any) -> Any:
    return np.array([event, event]).T.copy().T[:1]


def as_numpy_words(event: Any) -> Any:
    return tuple(np.array(event))


@pytest.mark.parametrize("form", [one_in_a_list, as_rows, as_columns, as_numpy_words])
def test_one_event_is_the_same_in_every_form(form: Callable[[Any], Any]) -> None:
    class Formed(Probe):
        def decide(self, state: Any, time: int, key: int, a: int, b: int) -> Any:
            return form(super().decide(state, time, key, a, b))

    assert run(Formed(), YEAR).digest == run(Probe(), YEAR).digest


def test_several_events_may_be_a_list_of_tuples() -> None:
    class Doubling(Probe):
        """Every visit makes two, down to the tenth generation."""

        def decide(self, state: Any, time: int, key: int, a: int, b: int) -> Any:
            event = super().decide(state, time, key, a, b)
            return [event, event] if b < 9 else []

    assert run(Doubling(agents=1), None).events == 2**10 - 1


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ((5, 0, 0), r"`decide` returned \(5, 0, 0\): an event is a tuple \(time, key, a, b\)"),
        ((5, 0, 0, 2**63), "an event is a tuple"),
        ((5.5, 0, 0, 0), "an event is a tuple"),
        ((5, pack(0, 99, 0), 0, 2**64), "an event is a tuple"),
        ([(5, 0, 0, 0), (5, 0, 0)], r"returned \(5, 0, 0\)"),
        (None, "`decide` returned None"),
        (np.zeros((1, 3), np.int64), "an array of rows of 4 words"),
        ((0, 0, 0, 0), r"made 'visit' at agent 0 port 0, 0 us: a negative delay \(-1 us\)"),
        ((5, pack(0, 99, 0), 0, 0), "there are only 8 agents"),
        ([(5, 0, 0, 0), (0, 0, 0, 0)], r"a negative delay \(-1 us\)"),
    ],
)
def test_what_is_no_event_is_named(event: Any, words: str) -> None:
    class Wrong(Probe):
        def decide(self, state: Any, time: int, key: int, a: int, b: int) -> Any:
            return event

    with pytest.raises(Fault, match=words):
        run(Wrong())


def test_an_event_that_bears_a_parcel_is_no_tuple() -> None:
    class Light(Office):
        def decide(self, state: Any, time: int, key: int, a: int, b: int) -> Any:
            return time + 5, pack(1, 0, 0), 0, 0

    with pytest.raises(Fault, match=r"'work' at agent 0 port 0, 5 ps as a tuple: .* bear a parcel"):
        run(Light())


def test_on_two_ranks_a_visit_sooner_than_promised_ends_both() -> None:
    done = code_on_ranks(
        2,
        f"import sys; sys.path.insert(0, {str(HERE)!r}); from probe import *; "
        "from pdes.driver import run; "
        "Probe.lookahead = lambda self, partition: Lookahead(YEAR, 'a visit'); "
        "run(Probe(), YEAR)",
    )
    assert done.returncode == 1
    assert done.stderr.count(f"less than the lookahead of {YEAR} us that the model promised") == 1
