"""One rank: the right events in the right order, and every broken rule by name."""

from __future__ import annotations

import heapq
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from models import Burst, Net, Rogue, Tree

from pdes import jit, random
from pdes.driver import run
from pdes.engine import Engine
from pdes.errors import Fault, Refused
from pdes.phold import GOLDEN, Phold
from pdes.signals import StopSignals
from pdes.transport import Serial

SMALL = Phold(processes=40, population=3, seed=11)
END = 20_000_000


def twin(model: Phold, end: int) -> Any:
    """PHOLD once more, in the plainest Python: a heapq, a dict and the generator."""
    handled = [0] * model.processes
    draws = [0] * model.processes
    history = [0] * model.processes

    def hop(process: int) -> tuple[int, int]:
        w0, w1, w2, w3 = random.draw(model.seed, process, draws[process])
        draws[process] += 1
        away = int(w0) < round(model.remote * 2**32)
        target = int(w1) * model.processes >> 32 if away else process
        spread = model.mean_ps - model.lookahead_ps
        return target, model.lookahead_ps + int(random.exponential(w2, w3) * spread + 0.5)

    heap = []
    for process in range(model.processes):
        for _ in range(model.population):
            heapq.heappush(heap, (hop(process)[1], process, process))
    while heap and heap[0][0] < end:
        time, process, sender = heapq.heappop(heap)
        handled[process] += 1
        history[process] = (history[process] ^ time ^ sender << 40) * int(GOLDEN) % 2**64
        target, delay = hop(process)
        heapq.heappush(heap, (time + delay, target, process))
    return np.column_stack((np.array(handled, np.uint64), np.array(history, np.uint64)))


def test_phold_does_what_its_definition_says() -> None:
    import hashlib

    expected = twin(SMALL, END)
    result = run(SMALL, END)
    assert result.events == expected[:, 0].sum()
    assert result.digest == hashlib.blake2b(expected.tobytes(), digest_size=16).hexdigest()


def test_phold_handles_as_many_events_as_theory_says() -> None:
    """Each of N events happens once per mean delay: N * end / mean, less half a delay each for the
    start (the first delay is no residual life), give or take."""
    model = Phold(processes=256, population=16, seed=5)
    expected = 256 * 16 * (100 - 0.375)
    assert abs(run(model, 100_000_000).events - expected) < 5 * np.sqrt(256 * 16 * 100 * 0.25)


def test_another_seed_is_another_history() -> None:
    digests = {run(Phold(processes=40, seed=seed), END).digest for seed in range(5)}
    assert len(digests) == 5


def test_the_digest_changes_with_any_process() -> None:
    engine = Engine(SMALL, Serial(), StopSignals(listen=False), 16, False, None)
    engine.start()
    before = engine.digest()
    engine.state.history[17] += np.uint64(1)
    assert engine.digest() != before


def test_both_protocols_are_one_on_one_rank() -> None:
    assert run(SMALL, END).digest == run(SMALL, END, protocol="null").digest


def test_nothing_happens_at_or_after_the_end() -> None:
    ticks = Rogue(delay=1000)
    assert run(ticks, 0).events == 0
    assert run(ticks, 1).events == 1
    assert run(ticks, 1000).events == 1
    assert run(ticks, 1001).events == 2


def test_an_event_of_the_same_instant_is_handled_in_it() -> None:
    """`Net` asks, tells and passes on without delay: all three at time 0, then the next at 1000."""
    at_once = run(Net(depth=1), 1)
    assert at_once.events >= 2 * Net().units()[-1]
    assert run(Net(depth=1), 1000).events < run(Net(depth=1), 1100).events


@pytest.mark.parametrize("made", [2, pytest.param(3, marks=pytest.mark.long), 40])
def test_one_event_more_than_the_fanout_is_too_many(made: int) -> None:
    class Generous(Rogue):
        fanout = made

    assert run(Generous(copies=made), 2000).events == 1 + made
    with pytest.raises(Fault, match=f"more events than its fanout of {made}"):
        run(Generous(copies=made + 1), 2000)


def test_a_signal_is_heard_in_the_middle_of_a_dense_phase(tmp_path: Path) -> None:
    """Sparse at first, so that nothing is suspected; then without an end in sight."""

    def interrupt(reached: int, events: int, tally: object) -> None:
        if events > 80:
            os.kill(os.getpid(), signal.SIGUSR1)

    stopped = run(Burst(), 2**62, checkpoint_dir=tmp_path, progress=interrupt)
    assert not stopped.completed
    assert stopped.events > 80
    assert stopped.time_ps == 80 * 10**9 + (stopped.events - 80)


def test_a_million_pending_events_come_from_room_for_sixteen() -> None:
    result = run(Tree(depth=20), 10**9, capacity=16)
    assert result.events == 2**21 - 1
    assert result.peak_pending >= 2**20


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (Rogue(delay=-300), r"'tick' at agent 0 .* made .* a negative delay \(-300 ps\)"),
        (Rogue(target=77), r"'tick' at agent 77 .* there are only 4 agents"),
        (Rogue(copies=5), r"more events than its fanout of 1"),
    ],
)
def test_a_handler_that_breaks_a_rule_is_named(model: Rogue, words: str) -> None:
    with pytest.raises(Fault, match=words):
        run(model, 10**9)


def test_a_first_event_in_the_past_is_refused() -> None:
    with pytest.raises(Refused, match=r"first event 'tick' at agent 0 .* -5 ps is in the past"):
        run(Rogue(first_time=-5), 10**6)


def test_a_first_event_at_a_foreign_agent_is_refused() -> None:
    with pytest.raises(Refused, match=r"at agent 9 .* not at one of the agents asked for, 0 to 3"):
        run(Rogue(first_agent=9), 10**6)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"protocol": "optimistic"}, "protocol = optimistic: must be one of window, null"),
        ({"end": -1}, "end = -1 ps"),
        ({"end": 2**62 + 1}, "must be 0 .. 4611686018427387904"),
        ({"checkpoint_every": 0, "checkpoint_dir": "x"}, "checkpoint every 0 ps"),
        ({"checkpoint_every": 5}, "into which directory"),
    ],
)
def test_impossible_runs_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(Refused, match=words):
        run(SMALL, **{"end": END, **options})


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"processes": 0}, "0 processes"),
        ({"population": -1}, "population of -1"),
        ({"remote": 1.5}, "remote = 1.5"),
        ({"lookahead_ps": 2_000_000}, "0 <= lookahead <= mean"),
        ({"seed": -1}, "seed = -1"),
    ],
)
def test_impossible_pholds_are_refused(parameters: dict[str, Any], words: str) -> None:
    with pytest.raises(Refused, match=words):
        Phold(**parameters)


def test_debug_is_refused_while_the_compiler_is_on() -> None:
    assert jit.ENABLED
    with pytest.raises(Refused, match="ODONATA_JIT=0"):
        run(SMALL, END, debug=True)


@pytest.mark.alone
def test_where_the_time_went_adds_up_to_the_wall_time() -> None:
    result = run(Phold(seed=3), 50_000_000)
    assert sum(result.seconds.values()) == pytest.approx(result.wall_seconds, rel=1e-6)
    assert result.seconds["queue"] > 0.1 * result.wall_seconds
    assert result.seconds["handlers"] > 0.1 * result.wall_seconds


def test_progress_is_told_of_growing_time_and_events() -> None:
    calls: list[tuple[int, int]] = []
    run(Phold(seed=3), 1_000_000_000, progress=lambda *news: calls.append(news))
    assert len(calls) >= 2
    assert calls == sorted(calls)
    assert calls[-1][0] <= 1_000_000_000
