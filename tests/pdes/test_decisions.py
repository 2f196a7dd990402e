"""Events that are decided in Python, and runs that end when nothing is left."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import PATIENCE, model_on_two_ranks
from models import Burst, Office, Rogue, Tree

from pdes.clock import LATEST
from pdes.driver import FIRST_LOOK, _look, run
from pdes.errors import Fault, Refused
from pdes.events import Rows, no_rows
from pdes.model import Decides, Ends
from pdes.phold import Phold
from pdes.transport import Serial

HERE = Path(__file__).parent.parent


def alone(model: Any, end: int | None = None, **how: Any) -> Any:
    return run(model, end, transport=Serial(), show_compiling=False, **how)


# -- decisions


@pytest.mark.parametrize(
    "model",
    [
        Office(),
        Office(clerk=4),
        Office(delay=0),
        Office(delay=0, way=0),
        Office(orders=1, rounds=40),
        Office(orders=5000, rounds=3),
        Office(agents=1, orders=3),
    ],
    ids=["plain", "clerk-4", "at-once", "all-at-once", "one-by-one", "many", "by-itself"],
)
def test_every_question_is_decided_and_every_order_carried_out(model: Office) -> None:
    result = alone(model, 10**9)
    assert result.kinds["ask"]["events"] == model.rounds
    assert result.kinds["work"]["events"] == model.rounds * model.orders
    assert result.outcome["asked"].tolist() == [
        model.rounds * (agent == model.clerk) for agent in range(model.agents)
    ]
    orders = np.arange(model.rounds * model.orders) % model.agents
    expected = np.bincount(orders, minlength=model.agents)
    assert result.outcome["seen"].tolist() == expected.tolist()


def test_decisions_are_made_at_their_time() -> None:
    """An order takes 1000, and so does the next question."""
    for rounds in range(1, 5):
        end = 2000 * (rounds - 1)
        assert alone(Office(rounds=4), end).kinds.get("ask", {"events": 0})["events"] == rounds - 1
        assert alone(Office(rounds=4), end + 1).kinds["ask"]["events"] == rounds


class Watching(Office):
    """Remembers what it was asked."""

    asked: list[tuple[int, int, int, int]]

    def decide(self, state: Any, time: int, key: int, a: int, b: int) -> Rows:
        self.asked.append((time, key, a, b))
        return super().decide(state, time, key, a, b)


def test_who_decides_is_given_the_event_as_plain_integers() -> None:
    model = Watching(rounds=3)
    object.__setattr__(model, "asked", [])
    alone(model)
    assert [(time, a, b) for time, _, a, b in model.asked] == [
        (0, -1, 3),
        (2000, 4, 2),
        (4000, 2, 1),
    ]
    assert all(type(word) is int for event in model.asked for word in event)


class Silent(Office):
    def decide(self, state: Any, time: int, key: int, a: int, b: int) -> Rows:
        return no_rows(8)


def test_nothing_may_come_of_it() -> None:
    result = alone(Silent(), 10**6)
    assert result.events == 1


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (
            Office(delay=-300),
            r"'ask' at agent 0 .* made 'work' at agent 0 .* \(-300 ps\), into the",
        ),
        (Office(target=77), r"made 'work' at agent 77 port 0, 1000 ps: there are only 7 agents"),
        (Office(target=77, delay=-5), r"a negative delay \(-5 ps\)"),
    ],
)
def test_a_decision_that_breaks_a_rule_is_named(model: Office, words: str) -> None:
    with pytest.raises(Fault, match=words):
        alone(model, 10**9)


def on_two_ranks(parameters: str, protocol: str) -> subprocess.CompletedProcess[str]:
    return model_on_two_ranks(f"Office({parameters})", None, protocol)


@pytest.mark.parametrize(
    ("parameters", "protocol", "reason"),
    [
        ("delay=999", "window", "after 999 ps: less than the lookahead of 1000 ps"),
        pytest.param(
            "delay=999",
            "null",
            "after 999 ps: less than the lookahead of 1000 ps",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "delay=-1",
            "null",
            "a negative delay (-1 ps), into the past",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "clerk=6, target=77", "window", "there are only 7 agents", marks=pytest.mark.long
        ),
    ],
)
def test_on_one_of_two_ranks_it_ends_both(parameters: str, protocol: str, reason: str) -> None:
    done = on_two_ranks(parameters, protocol)
    assert done.returncode == 1
    assert done.stderr.count(reason) == 1
    assert done.stderr.count("odonata: rank") == 1


@pytest.mark.long
def test_for_an_agent_of_its_own_rank_an_order_may_be_sooner_than_the_lookahead() -> None:
    assert on_two_ranks("delay=0, target=0", "window").returncode == 0


def test_a_model_that_cannot_decide_says_so() -> None:
    class Unsaid(Rogue):
        decisions = (0,)

    class Undecided(Unsaid, Decides):
        pass

    with pytest.raises(Refused, match="has `decisions`, so its class must inherit"):
        alone(Unsaid(), 1)
    with pytest.raises(Refused, match="rogue: has decisions, and no `decide` to make them"):
        alone(Undecided(), 1)


def test_a_kind_beyond_the_bits_of_a_word_is_refused() -> None:
    class Far(Rogue, Decides):
        decisions = (63,)

    with pytest.raises(Refused, match="decisions are kinds up to 62"):
        alone(Far(), 1)


@pytest.mark.long
def test_without_the_compiler_decisions_are_the_same(python: Callable[..., str]) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(HERE)!r}); from models import Office; "
        "from pdes.driver import run; print(run(Office(), None, debug=True).digest)"
    )
    assert python(code).strip() == alone(Office()).digest


@pytest.mark.parametrize("cut", [1, 1000, 2000, 2001, 5500])
def test_a_run_cut_between_a_question_and_its_orders_goes_on_as_if_it_were_not(
    cut: int, tmp_path: Path
) -> None:
    alone(Office(), cut + 1, checkpoint_dir=tmp_path, checkpoint_every=cut)
    resumed = alone(Office(), resume=tmp_path)
    assert resumed.resumed_ps == cut
    assert (resumed.digest, resumed.events) == (alone(Office()).digest, alone(Office()).events)


# -- until nothing is left


def test_a_run_without_an_end_stops_when_nothing_is_left() -> None:
    result = alone(Office())
    assert result.completed
    assert result.time_ps == FIRST_LOOK
    assert result.digest == alone(Office(), 10**9).digest


def test_it_is_looked_for_half_as_far_again_each_time() -> None:
    assert [_look(0), _look(FIRST_LOOK - 1), _look(FIRST_LOOK)] == [10**7, 10**7, 15 * 10**6]
    time = 0
    while time < LATEST:
        assert time < _look(time) <= max(FIRST_LOOK, time + time // 2 + 1, time + 1)
        assert _look(_look(time) - 1) == _look(time), "the same times, wherever it begins"
        time = _look(time)
    assert _look(LATEST - 1) == LATEST
    assert _look(0, 2 * FIRST_LOOK) == _look(_look(FIRST_LOOK)) >= 2 * FIRST_LOOK, "one of them"


class Content(Rogue, Ends):
    """Ticks for ever, but has had enough after 25 ticks."""

    def left(self, state: Any, pending: Callable[[], Rows]) -> int:
        return max(0, 25 - int(state.handled.sum()))


def test_what_goes_on_for_ever_does_not_keep_it_if_the_model_has_nothing_left() -> None:
    """Looked for at 10, 15, 22.5 and 33.75 us."""
    result = alone(Content(delay=10**6))
    assert (result.time_ps, result.events) == (33_750_000, 34)
    assert alone(Content(delay=10**6), result.time_ps).digest == result.digest


@pytest.mark.parametrize(
    ("model", "events"), [(Tree(depth=3), 15), (Phold(processes=5, population=0), 0)]
)
def test_where_there_is_no_event_it_stops_whatever_the_model_says(model: Any, events: int) -> None:
    result = alone(model)
    assert result.completed
    assert result.events == events
    assert result.time_ps == FIRST_LOOK


def test_a_single_event_far_ahead_is_waited_for() -> None:
    result = alone(Rogue(first_time=10**15, copies=0))
    assert result.events == 1
    assert 10**15 < result.time_ps <= 1.5 * 10**15 + FIRST_LOOK


def test_a_signal_stops_a_run_that_has_no_end(tmp_path: Path) -> None:
    def interrupt(reached: int, events: int, tally: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    stopped = alone(Burst(), checkpoint_dir=tmp_path, progress=interrupt)
    assert not stopped.completed
    assert stopped.checkpoint


@pytest.fixture
def impatient() -> Iterator[None]:
    def late(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("impatient")
def test_a_run_without_an_end_ends_at_the_latest_time_there_is() -> None:
    assert alone(Rogue(delay=2**61)).time_ps <= LATEST
