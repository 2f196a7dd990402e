"""`odonata latency`: loads, phases, verdicts, and one answer however the points are shared out."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from conftest import PATIENCE, clean_environment, command
from hypothesis import given
from hypothesis import strategies as st

from odonata.agents.network import Network
from odonata.agents.traffic import Traffic
from odonata.commands.latency import curve_table
from odonata.results.steadiness import SATURATED, UNSETTLED, Steadiness
from odonata.studies.loadlatency import LoadLatency
from odonata.studies.loadlatency.cases import (
    BEYOND,
    Curve,
    Sweep,
    curves,
    parse_loads,
    path_ps,
    phases,
    sweep,
    wanted,
    zero_load_ps,
)
from odonata.studies.loadlatency.claims import claims
from odonata.studies.loadlatency.limits import limit
from odonata.studies.loadlatency.simulation import Point, mark, slot_ps, traffic_of
from odonata.studies.loadlatency.simulation import simulate as at_load
from odonata.study.filling import fill, simulate
from odonata.study.store import Answer, from_line, to_line
from odonata.study.worker import Failure, Worker, attempt, deaf
from pdes.errors import Refused
from topology.presets import PRESETS

Run = Callable[..., subprocess.CompletedProcess[str]]

US = 10**6
SMALL = PRESETS["kim-72"].machine
STUDY = LoadLatency()
SHORT = {"warmup_ps": 4 * US, "measure_ps": 6 * US, "drain_ps": 4 * US,
         "longest_ps": 14 * 8 * US}  # fmt: skip


def network(pattern: str = "uniform", **changes: Any) -> Network:
    return Network(SMALL, Traffic(pattern), **changes)


def simulated(asked: Sweep) -> dict[str, Point]:
    return fill(STUDY, asked, None, 1)[1].outcomes


@cache
def curve(pattern: str, routing: str, loads: str) -> Curve:
    asked = sweep(network(pattern), [routing], parse_loads(loads), **SHORT)
    (found,) = curves(asked, simulated(asked))
    return found


# -- loads


def test_loads_are_a_range_a_list_or_one() -> None:
    assert parse_loads("0.05:0.2:0.05") == (0.05, 0.1, 0.15, 0.2)
    assert parse_loads("0.1:0.95:0.4") == (0.1, 0.5, 0.9)
    assert parse_loads("0.5, 0.1,0.5") == (0.1, 0.5)
    assert parse_loads("0.1,0.8:1:0.1") == (0.1, 0.8, 0.9, 1.0)
    assert parse_loads("1") == (1.0,)


@given(st.integers(1, 999), st.integers(1, 200), st.integers(0, 60))
def test_a_range_is_exact_decimals_in_order_and_within_its_bounds(
    start: int, step: int, steps: int
) -> None:
    stop = min(1000, start + step * steps)
    loads = parse_loads(f"{start / 1000}:{stop / 1000}:{step / 1000}")
    assert loads == tuple(float(f"{i / 1000:.3f}") for i in range(start, stop + 1, step))
    assert list(loads) == sorted(set(loads))
    assert all(start / 1000 <= load <= stop / 1000 for load in loads)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "start:stop:step"),
        ("fast", "start:stop:step"),
        ("0.1:0.5", "start:stop:step"),
        ("0.1,,0.5", "start:stop:step"),
        ("nan", "start:stop:step"),
        ("0.1:inf:0.1", "start:stop:step"),
        ("0:1:0.1", "a load of 0 is not above 0 and at most 1"),
        ("0.5:1.1:0.1", "a load of 1.1 is not above 0 and at most 1"),
        ("-0.5", "not above 0"),
        ("0.5:0.1:0.1", "goes up"),
        ("0.1:0.5:0", "goes up"),
        ("0.1:0.5:-0.1", "goes up"),
        ("0.1:0.9:1e-9", "at most 1000 loads"),
    ],
)
def test_what_are_no_loads_is_told_so(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_loads(text)


# -- latency and verdicts


def test_an_almost_empty_network_takes_what_the_formula_says() -> None:
    for pattern in ("uniform", "adversarial"):
        model = network(pattern)
        zero = zero_load_ps(model)
        assert zero is not None
        mean = curve(pattern, "minimal", "0.01").points[0].performance.mean_latency_ns
        assert mean == pytest.approx(zero / 1e3, rel=0.02)
    assert path_ps(network(), 2, 1) == 2 * 50_000 + 2 * 50_000 + 300_000 + 4 * 50_000 + 20_480
    stored = network(forwarding="store")
    assert path_ps(stored, 2, 1) == path_ps(network(), 2, 1) + 4 * 20_480
    assert zero_load_ps(network("permutation")) is None


def test_latency_grows_with_load() -> None:
    points = curve("uniform", "minimal", "0.1:0.9:0.2").points
    for of in ("mean_latency_ns", "p99_latency_ns", "throughput"):
        values = [getattr(point.performance, of) for point in points]
        assert values == sorted(values)
        assert values[-1] > 1.2 * values[0]
    assert not any(point.saturated for point in points)


def test_minimal_routing_saturates_under_adversarial_traffic_at_one_over_ap() -> None:
    """Where one cable carries what all a·p nodes of a group send."""
    found = curve("adversarial", "minimal", "0.05:0.95:0.05")
    assert found.throughput == pytest.approx(1 / (SMALL.routers * SMALL.nodes), rel=0.02)
    assert found.saturated_at == 0.15


def test_a_curve_ends_soon_after_it_is_saturated_unless_all_of_it_is_wanted() -> None:
    found = curve("adversarial", "minimal", "0.05:0.95:0.05")
    assert [point.saturated for point in found.points] == [False, False] + [True] * (1 + BEYOND)
    asked = sweep(network("adversarial"), ["minimal"], parse_loads("0.1:0.9:0.2"),
                  everything=True, **SHORT)  # fmt: skip
    (whole,) = curves(asked, simulated(asked))
    assert [point.load for point in whole.points] == [0.1, 0.3, 0.5, 0.7, 0.9]


def test_a_network_that_still_fills_its_buffers_has_not_settled() -> None:
    """Just above saturation source queues stay empty for as long as there is room elsewhere."""
    asked = sweep(network("adversarial"), ["minimal"], [0.14], warmup_ps=2 * US,
                  measure_ps=8 * US, drain_ps=2 * US)  # fmt: skip
    (found,) = curves(asked, simulated(asked))
    (point,) = found.points
    assert point.performance.backlog_growth < 0.01
    assert point.verdict == UNSETTLED
    assert "what is in the network still changes" in point.performance.steadiness.why
    assert (point.settled, point.stretch, found.throughput) == (False, 1, None)


def test_a_run_is_made_twice_as_long_until_it_has_settled() -> None:
    asked = sweep(network("adversarial"), ["minimal"], [0.2], **SHORT)
    (found,) = curves(asked, simulated(asked))
    (point,) = found.points
    assert (point.verdict, point.stretch > 1) == (SATURATED, True)
    once = sweep(network("adversarial"), ["minimal"], [0.2], warmup_ps=4 * US * point.stretch,
                 measure_ps=6 * US * point.stretch, drain_ps=4 * US * point.stretch)  # fmt: skip
    assert once.longest_ps == once.end_ps
    (same,) = simulated(once).values()
    assert (same.digest, same.performance) == (point.digest, point.performance)
    assert point.events > same.events


@pytest.mark.parametrize(("load", "steady"), [(0.12, True), (0.127, False)])
def test_just_above_what_fills_a_link_no_point_is_steady(load: float, steady: bool) -> None:
    """The queue of a link that is nearly full grows slowly: a run of a few microseconds is steady
    by itself, and one of twice the length has another mean latency."""
    point = at_load(sweep(network("adversarial"), ["minimal"], [load]).at("minimal", load))
    assert point.steady == steady
    assert point.stretch > 1


def saturation(preset: str, pattern: str, routing: str, load: float) -> tuple[float, float]:
    """Returns what is accepted at a load far above saturation, and the load that fills a link."""
    model = Network(PRESETS[preset].machine, Traffic(pattern))
    asked = sweep(model, [routing], [load])
    (found,) = curves(asked, simulated(asked))
    known = limit(model, routing)
    assert known is not None
    assert known.exact
    assert found.points[0].verdict == SATURATED, found.points[0].performance.steadiness
    assert found.throughput is not None
    return found.throughput, known.load


@pytest.mark.parametrize(("pattern", "load"), [("adversarial", 0.3), ("hotspot", 0.6)])
def test_a_settled_throughput_is_what_fills_the_first_link(pattern: str, load: float) -> None:
    ours, theory = saturation("kim-72", pattern, "minimal", load)
    assert ours == pytest.approx(theory, rel=0.03)


@pytest.mark.long
@pytest.mark.parametrize(
    ("pattern", "routing", "load"),
    [
        ("hotspot", "minimal", 0.35),
        ("hotspot", "minimal", 0.5),
        ("hotspot", "valiant", 0.5),
        ("adversarial", "minimal", 0.05),
        ("adversarial", "valiant", 0.6),
        ("uniform", "valiant", 0.6),
    ],
)
def test_on_1056_nodes_too(pattern: str, routing: str, load: float) -> None:
    ours, theory = saturation("kim-1056", pattern, routing, load)
    assert ours == pytest.approx(theory, rel=0.03)


def test_the_longest_run_is_at_least_the_first() -> None:
    with pytest.raises(Refused, match="longest = 10 us: at least the first run's 14 us"):
        sweep(network(), ["minimal"], [0.2], **{**SHORT, "longest_ps": 10 * US})


@pytest.mark.parametrize("preset", ["kim-72", "kim-1056", "codes-d", "frontier"])
def test_phases_suit_the_machine(preset: str) -> None:
    model = Network(PRESETS[preset].machine, Traffic())
    warmup, measure, drain = phases(model)
    longest = path_ps(model, 3, 2)
    assert min(warmup, measure, drain) >= 5 * longest
    assert max(warmup, measure, drain) < 200 * longest
    assert 0.05 * measure * model.machine.n_nodes / slot_ps(model) >= 5000
    assert all(phase % 10**5 == 0 for phase in (warmup, measure, drain))


def test_phases_wait_for_long_messages() -> None:
    long = Network(SMALL, Traffic(message_bytes=2**20))
    assert all(phase >= 5 * slot_ps(long) for phase in phases(long))


def test_the_table_marks_latencies_of_saturated_points() -> None:
    from rich.console import Console

    asked = sweep(network("adversarial"), ["minimal"], parse_loads("0.05:0.95:0.05"), **SHORT)
    console = Console(width=80, file=io.StringIO())
    console.print(curve_table(asked, [curve("adversarial", "minimal", "0.05:0.95:0.05")]))
    lines = console.file.getvalue().splitlines()
    (steady,) = (line for line in lines if line.split()[:1] == ["0.1"])
    (full,) = (line for line in lines if line.split()[:1] == ["0.15"])
    assert steady.split()[-1] == "steady"
    assert "*" not in steady
    assert "saturated" in full
    assert full.count("*") == 3
    assert any("saturation throughput 0.125" in line for line in lines)
    assert not any("…" in line for line in lines)


# -- as a study


def test_curves_go_up_together_and_end_past_saturation() -> None:
    asked = sweep(network("adversarial"), ["minimal", "ugal-l"], parse_loads("0.1:0.9:0.1"),
                  **SHORT)  # fmt: skip
    assert [str(case) for case in wanted(asked, {})] == [
        "minimal at load 0.1", "ugal-l at load 0.1"]  # fmt: skip
    point = curve("uniform", "minimal", "0.1:0.9:0.2").points[0]
    judged = Steadiness(SATURATED, "it is full")
    full = replace(point, performance=replace(point.performance, steadiness=judged))
    known = {asked.at("minimal", load).key: full for load in (0.1, 0.2)}
    assert len(wanted(asked, known)) == 9 + 1
    known |= {asked.at("minimal", load).key: full for load in (0.3, 0.6)}
    assert [case.load for case in wanted(asked, known)] == [0.1, 0.1, 0.2, 0.3]
    (only,) = curves(asked, known)
    assert (only.routing, len(only.points)) == ("minimal", 3)


def test_a_point_survives_being_written_down() -> None:
    point = curve("uniform", "minimal", "0.1:0.9:0.2").points[0]
    case = sweep(network(), ["minimal"], [0.1], **SHORT).at("minimal", 0.1)
    assert from_line(to_line(Answer(case, point)), STUDY) == (case.key, point)


def test_a_key_depends_on_the_network_the_load_the_phases_and_the_simulator() -> None:
    def key(model: Network, load: float = 0.1, **how: Any) -> str:
        return sweep(model, ["minimal"], [load], **{**SHORT, **how}).at("minimal", load).key

    keys = [key(network()), key(network(), 0.2), key(network("adversarial")), key(network(seed=2)),
            key(network(packet_bytes=256)), key(network(), drain_ps=US),
            key(network(), kept=True)]  # fmt: skip
    assert len(set(keys)) == len(keys)
    assert key(network(routing="minimal")) == key(network(routing="valiant"))  # which is not used
    assert mark("minimal") == mark.__wrapped__("minimal") != mark("ugal-l")


def test_claims_are_held_against_the_structure_of_the_machine() -> None:
    asked = sweep(network("adversarial"), ["minimal"], parse_loads("0.05:0.95:0.05"), **SHORT)
    points = curve("adversarial", "minimal", "0.05:0.95:0.05").points
    known = {asked.at("minimal", point.load).key: point for point in points}
    full, empty = claims(asked, known)
    assert (full.name, full.paper, full.holds) == ("minimal: saturation throughput", "0.125", True)
    assert (empty.paper, empty.holds) == ("670 ns", True)
    slow = [replace(p, performance=replace(p.performance, throughput=0.1, mean_latency_ns=900.0))
            for p in points]  # fmt: skip
    known = {asked.at("minimal", point.load).key: point for point in slow}
    assert [claim.holds for claim in claims(asked, known)] == [False, False]
    assert claims(asked, {}) == []


# -- the command

WORDS = ("--preset", "kim-72", "--routing", "minimal,ugal-l", "--warmup", "4us", "--measure",
         "6us", "--drain", "4us")  # fmt: skip


@pytest.mark.long  # of any study: tests/study
def test_the_answer_is_the_same_on_one_process_on_two_and_on_two_ranks(
    odonata: Run, tmp_path: Path
) -> None:
    words = ("latency", *WORDS, "--traffic", "adversarial", "--loads", "0.1:0.6:0.1", "--json")
    alone = odonata(*words, "--jobs", "1", "--plot", "curves.png")
    assert alone.returncode == 0, alone.stderr
    assert odonata(*words, "--jobs", "2").stdout == alone.stdout
    assert odonata(*words, ranks=2).stdout == alone.stdout

    found = json.loads(alone.stdout)
    points = [(point["routing"], point["load"]) for point in found["points"]]
    assert points[:4] == [("minimal", load) for load in (0.1, 0.2, 0.3, 0.4)]
    assert points[4:7] == [("ugal-l", load) for load in (0.1, 0.2, 0.3)]
    first = found["points"][0]
    assert first["traffic"] == "adversarial"
    assert first["seed"] == 1
    assert len(first["digest"]) >= 32
    assert first["links"]["global"]["max_utilisation"] > 0.5
    assert first["mean_latency_ns"] < first["p99_latency_ns"]
    assert found["network"]["machine.groups"] == 9
    assert found["network"]["traffic.warmup_ps"] == 4 * US
    assert found["drain_ps"] == 4 * US
    assert [entry["routing"] for entry in found["curves"]] == ["minimal", "ugal-l"]
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "curves.png").stat().st_size > 50_000


@pytest.mark.long
def test_kept_points_are_not_simulated_again_and_the_answer_is_the_same(
    odonata: Run, tmp_path: Path
) -> None:
    words = ("latency", *WORDS, "--traffic", "adversarial", "--loads", "0.1:0.5:0.2", "--json")
    memory = odonata(*words, "--jobs", "1")
    first = odonata(*words, "--jobs", "2", "-o", "kept")
    assert first.returncode == 0, first.stderr
    lines = (tmp_path / "kept" / "results.jsonl").read_text().splitlines(keepends=True)
    assert len(lines) == 1 + 6
    (tmp_path / "kept" / "results.jsonl").write_text("".join(lines[:3]))
    again = odonata(*words, "-o", "kept", ranks=2)
    assert again.returncode == 0, again.stderr
    assert memory.stdout == first.stdout == again.stdout
    found = json.loads((tmp_path / "kept" / "summary.json").read_text())
    assert found["ran"]["simulated"] == 4
    assert found["completed"]
    assert found["figures"] == ["figures/curves.png"]
    assert [claim["name"] for claim in found["claims"]] == [
        "minimal: saturation throughput", "ugal-l: saturation throughput"]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--load", "0.3"], "--loads"),
        (["--loads", "0.3:0.1:0.1"], "goes up"),
        (["--routing", "minimal,fastest"], "routing = 'fastest': one of adaptive, minimal"),
        (["--plot", "x.gif"], "--plot x.gif: the name must end in .png, .svg, .pdf"),
        (["--plot", "nowhere/x.png"], "there is no directory nowhere"),
        (["--measure", "0ns"], "measurement of 0 ps: above 0"),
        (["--warmup", "4e6s", "--drain", "4e6 s"], "together: at most"),
        (["--jobs", "0"], "--jobs"),
    ],
)
def test_nonsense_is_refused_before_anything_is_simulated(words: list[str], message: str) -> None:
    from click.testing import CliRunner

    from odonata.commands.latency import latency

    result = CliRunner().invoke(latency, words)
    assert message in (str(result.exception) if isinstance(result.exception, Refused)
                       else result.output)  # fmt: skip


def test_a_presets_own_number_of_messages_does_not_cut_a_curve_short() -> None:
    model = Network(SMALL, Traffic(messages=3, load=0.7))
    asked = sweep(model, ["minimal"], [0.2])
    assert traffic_of(asked.at("minimal", 0.2).network).messages is None


# -- what goes wrong


@pytest.mark.parametrize("how", [{"ranks": 1}, pytest.param({"ranks": 2}, marks=pytest.mark.long)])
def test_what_goes_wrong_at_a_point_is_one_line_that_names_it(
    odonata: Run, how: dict[str, int]
) -> None:
    done = odonata("latency", *WORDS[:2], "--routing", "valiant", "--vcs", "one", "--loads", "1",
                   "--local-buffer", "512B", "--global-buffer", "512B", "--jobs", "2",
                   **how)  # fmt: skip
    assert done.returncode == 1, done.stdout
    lines = [line for line in done.stderr.splitlines() if "compil" not in line]
    assert len(lines) == 1
    assert lines[0].startswith("odonata: valiant at load 1: deadlock: ")


def test_a_mistake_in_a_worker_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(*_: object, **__: object) -> None:
        raise AssertionError("a byte was lost")

    monkeypatch.setattr("odonata.studies.loadlatency.simulation.performance", lose)
    asked = sweep(network(), ["minimal"], [0.1], **SHORT)
    failure = attempt(partial(simulate, STUDY), asked.at("minimal", 0.1))
    assert isinstance(failure, Failure)
    assert failure.startswith("minimal at load 0.1: AssertionError: a byte was lost")
    with pytest.raises(AssertionError):
        simulated(asked)


def test_the_death_of_a_worker_is_told() -> None:
    asked = sweep(network(), ["minimal"], [0.1], warmup_ps=0, measure_ps=10**15, drain_ps=0)
    worker = Worker(partial(simulate, STUDY))
    worker.start()
    try:
        worker.give(asked.at("minimal", 0.1))
        assert worker._process.pid is not None
        os.kill(worker._process.pid, signal.SIGKILL)
        failure = worker.answer()
    finally:
        worker.end()
    assert isinstance(failure, Failure)
    assert failure.startswith("minimal at load 0.1: its process died (exit status -9)")


def test_an_interruption_while_processes_start_is_not_lost() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
    try:
        with pytest.raises(KeyboardInterrupt), deaf():  # noqa: PT012
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.1)  # it is held back
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.long
def test_interrupted_it_ends_quietly_and_leaves_nobody_behind() -> None:
    """Whoever was left would keep stderr open, and this waiting."""
    words = command("latency", *WORDS, "--loads", "0.1:0.4:0.1", "--measure", "1s", "--jobs", "2")
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env=clean_environment(), start_new_session=True,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
                               )  # fmt: skip  # where tests run in the background, it is ignored
    time.sleep(2.5)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert out == ""
    assert "Traceback" not in err
