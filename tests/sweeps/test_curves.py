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
from odonata.results.steadiness import SATURATED, STEADY, UNSETTLED
from odonata.study.filling import fill, simulate
from odonata.study.worker import Failure, Worker, attempt, deaf
from odonata.sweeps.curves import Asked, Bundle, asked, bundles, claims, parse_loads
from odonata.sweeps.empty import path_ps, phases, zero_load_ps
from odonata.sweeps.kept import open_sweep
from odonata.sweeps.limits import limit
from odonata.sweeps.older_curves import KEPT, Continued, continued
from odonata.sweeps.plan import planned
from odonata.sweeps.saturating import BEYOND, Saturating
from pdes.errors import Refused
from topology.presets import PRESETS

Run = Callable[..., subprocess.CompletedProcess[str]]

US = 10**6
OLD = Path(__file__).parent / "older_curves.jsonl"
"""What `odonata latency -o` kept before curves were sweeps: minimal routing and adversarial traffic
at loads of 0.1 and 0.2, with the phases of SHORT."""
SMALL = PRESETS["kim-72"].machine
SHORT = {"warmup_ps": 4 * US, "measure_ps": 6 * US, "drain_ps": 4 * US,
         "longest_ps": 14 * 8 * US}  # fmt: skip
COARSE: dict[str, Any] = {**SHORT, "resolution": 1.0}


def network(pattern: str = "uniform", **changes: Any) -> Network:
    return Network(SMALL, (Traffic(pattern),), **changes)


def wish(pattern: str, routing: str, loads: str, **how: Any) -> Asked:
    return asked(network(), [pattern], [routing], parse_loads(loads), **how)


def found_of(one: Asked) -> list[Bundle]:
    study = Saturating(one.plan())
    return bundles(one, study.curves(fill(study, study.plan, None, 1)[1].outcomes))


@cache
def curve(pattern: str, routing: str, loads: str) -> Bundle:
    (found,) = found_of(wish(pattern, routing, loads, **COARSE))
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
        zero = zero_load_ps(network(pattern))
        assert zero is not None
        (points,) = curve(pattern, "minimal", "0.01").rows
        assert points[0].figure("mean_latency_ns") == pytest.approx(zero / 1e3, rel=0.02)
    assert path_ps(network(), 2, 1) == 2 * 50_000 + 2 * 50_000 + 300_000 + 4 * 50_000 + 20_480
    stored = network(forwarding="store")
    assert path_ps(stored, 2, 1) == path_ps(network(), 2, 1) + 4 * 20_480
    assert zero_load_ps(network("permutation")) is None


def test_latency_grows_with_load() -> None:
    points = curve("uniform", "minimal", "0.1:0.9:0.2").curves[0].points
    for of in ("mean_latency_ns", "p99_latency_ns", "throughput"):
        values = [point.figure(of) for point in points]
        assert values == sorted(values)
        assert values[-1] > 1.2 * values[0]
    assert not any(point.outcome.verdict == SATURATED for point in points)


def test_minimal_routing_saturates_under_adversarial_traffic_at_one_over_ap() -> None:
    """Where one cable carries what all a·p nodes of a group send."""
    found = curve("adversarial", "minimal", "0.05:0.95:0.05")
    assert found.throughput.mean == pytest.approx(1 / (SMALL.routers * SMALL.nodes), rel=0.02)
    assert found.saturated_at == 0.15
    verdicts = [point.outcome.verdict for point in found.curves[0].points]
    assert verdicts == [STEADY] * 2 + [SATURATED] * (1 + BEYOND)


@pytest.mark.parametrize(
    "pattern", ["adversarial", pytest.param("hotspot", marks=pytest.mark.long)]
)
def test_the_saturation_load_is_that_of_theory(pattern: str) -> None:
    (found,) = found_of(wish(pattern, "minimal", "0.1,0.2,0.5", seeds=2, resolution=0.02))
    theory = limit(network(pattern), "minimal")
    assert theory is not None
    assert theory.exact
    assert found.saturation_load.mean == pytest.approx(theory.load, rel=0.03)
    assert found.saturation_load.of == 2


def test_a_network_that_still_fills_its_buffers_has_not_settled() -> None:
    """Just above saturation source queues stay empty for as long as there is room elsewhere."""
    one = wish("adversarial", "minimal", "0.14", warmup_ps=2 * US, measure_ps=8 * US,
               drain_ps=2 * US)  # fmt: skip
    (found,) = found_of(one)
    (point,) = found.curves[0].points
    assert point.figure("backlog_growth") < 0.01
    assert point.outcome.verdict == UNSETTLED
    assert "what is in the network still changes" in point.outcome.why
    assert (point.settled, point.stretch, found.throughput.of) == (False, 1, 0)


def saturation(preset: str, pattern: str, routing: str, load: float) -> tuple[float, float]:
    """Returns what is accepted at a load far above saturation, and the load that fills a link."""
    model = Network(PRESETS[preset].machine, (Traffic(pattern),))
    (found,) = found_of(asked(model, [pattern], [routing], [load], resolution=1.0))
    known = limit(model, routing)
    assert known is not None
    assert known.exact
    assert found.curves[0].points[0].outcome.verdict == SATURATED
    return found.throughput.mean, known.load


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
def test_a_settled_throughput_is_what_fills_the_first_link(
    pattern: str, routing: str, load: float
) -> None:
    ours, theory = saturation("kim-1056", pattern, routing, load)
    assert ours == pytest.approx(theory, rel=0.03)


def test_the_longest_run_is_at_least_the_first() -> None:
    with pytest.raises(Refused, match="longest = 10 us: at least the first run's 14 us"):
        wish("uniform", "minimal", "0.2", **{**SHORT, "longest_ps": 10 * US})


@pytest.mark.parametrize("preset", ["kim-72", "kim-1056", "codes-d", "frontier"])
def test_phases_suit_the_machine(preset: str) -> None:
    model = Network(PRESETS[preset].machine, (Traffic(),))
    warmup, measure, drain = phases(model)
    longest = path_ps(model, 3, 2)
    assert min(warmup, measure, drain) >= 5 * longest
    assert max(warmup, measure, drain) < 200 * longest
    assert 0.05 * measure * model.machine.n_nodes / model.traffic[0].slot_ps(model.machine) >= 5000
    assert all(phase % 10**5 == 0 for phase in (warmup, measure, drain))


def test_phases_wait_for_long_messages() -> None:
    long = Network(SMALL, (Traffic(message_bytes=2**20),))
    assert all(phase >= 5 * long.traffic[0].slot_ps(SMALL) for phase in phases(long))


def test_the_table_marks_latencies_of_saturated_points() -> None:
    from rich.console import Console

    one = wish("adversarial", "minimal", "0.05:0.95:0.05", **COARSE)
    console = Console(width=80, file=io.StringIO())
    console.print(curve_table(one, [curve("adversarial", "minimal", "0.05:0.95:0.05")]))
    lines = console.file.getvalue().splitlines()
    (steady,) = (line for line in lines if line.split()[:1] == ["0.1"])
    (full,) = (line for line in lines if line.split()[:1] == ["0.15"])
    assert steady.split()[-1] == "steady"
    assert "*" not in steady
    assert "saturated" in full
    assert full.count("*") == 3
    (where,) = (line for line in lines if line.split()[:3] == ["minimal", "0.1", "to"])
    assert where.split()[3:] == ["0.15", "0.125", "0.125"]
    assert not any("…" in line for line in lines)


def test_claims_are_held_against_the_structure_of_the_machine() -> None:
    one = wish("adversarial", "minimal", "0.05:0.95:0.05", **COARSE)
    found = curve("adversarial", "minimal", "0.05:0.95:0.05")
    load, full, empty = claims(one, [found])
    assert (load.name, load.paper) == ("minimal: saturation load", "0.125")
    assert (full.name, full.paper, full.holds) == ("minimal: saturation throughput", "0.125", True)
    assert (empty.paper, empty.holds) == ("670 ns", True)
    (only,) = found.curves
    slow = {"throughput": 0.1, "mean_latency_ns": 900.0}
    points = tuple(at._replace(outcome=replace(at.outcome, figures=at.outcome.figures | slow))
                   for at in only.points)  # fmt: skip
    _, *others = claims(one, [replace(found, curves=(replace(only, points=points),))])
    assert [claim.holds for claim in others] == [False, False]
    assert claims(one, []) == []


# -- as the file of a sweep


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"packet_bytes": 1024, "crossbar": 2.0, "seed": 7, "ejection": 5e9},
        {"machine": replace(SMALL, groups=5), "routing": "par", "threshold": 3.0},
        {"machine": PRESETS["kim-1056"].machine},
    ],
)
def test_the_file_of_a_sweep_is_short_and_has_the_same_points(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    model = replace(network(), **changes)
    one = asked(model, ["uniform", "hotspot"], ["minimal", "par"], (0.1, 0.5), seeds=2)
    path = tmp_path / "mine.toml"
    path.write_text(one.text(path))
    keys = [point.key for point in planned(path).points]
    assert keys == [point.key for point in one.plan().points]
    assert len(keys) == len({*keys}) == 16
    assert len(path.read_text().splitlines()) < 40
    made = planned(path).points[0].experiment()
    assert made.model() == one.at("uniform", "minimal")


def test_a_plug_in_is_named_relative_to_the_file(tmp_path: Path) -> None:
    plugin = tmp_path / "routings" / "mine.py"
    one = replace(wish("uniform", "minimal", "0.1", **SHORT), plugins=(str(plugin),))
    assert one.text(tmp_path / "a.toml").startswith('plugins = ["routings/mine.py"]\n')


# -- the command

WORDS = ("--preset", "kim-72", "--routing", "minimal,ugal-l", "--warmup", "4us", "--measure",
         "6us", "--drain", "4us")  # fmt: skip


def test_the_answer_is_the_same_on_one_process_on_two_ranks_and_as_a_sweep(
    odonata: Run, tmp_path: Path
) -> None:
    words = ("latency", *WORDS, "--traffic", "adversarial", "--loads", "0.1:0.6:0.1",
             "--resolution", "0.1")  # fmt: skip
    alone = odonata(*words, "--json", "--jobs", "1", "--plot", "curves.png", "-o", "kept")
    assert alone.returncode == 0, alone.stderr
    assert odonata(*words, "--json", ranks=2).stdout == alone.stdout
    found = json.loads(alone.stdout)
    points = [(point["routing"], point["load"]) for point in found["points"]]
    assert points[:4] == [("minimal", load) for load in (0.1, 0.2, 0.3, 0.4)]
    assert points[4:7] == [("ugal-l", load) for load in (0.1, 0.2, 0.3)]
    first = found["points"][0]
    assert (first["traffic"], first["seed"]) == ("adversarial", 1)
    assert len(first["digest"]) >= 32
    assert first["links"]["global"]["max_utilisation"] > 0.5
    assert isinstance(first["steadiness"]["latency_drift"], float)
    assert first["mean_latency_ns"] < first["p99_latency_ns"]
    assert found["network"]["machine.groups"] == 9
    assert found["network"]["traffic.warmup_ps"] == 4 * US
    assert found["drain_ps"] == 4 * US
    assert [entry["routing"] for entry in found["curves"]] == ["minimal", "ugal-l"]
    assert found["curves"][0]["theory"]["load"] == 0.125
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "curves.png").stat().st_size > 20_000

    summary = json.loads((tmp_path / "kept" / "summary.json").read_text())
    assert (summary["completed"], summary["figures"]) == (True, ["figures/curves.png"])
    again = odonata(*words, "--json", "-o", "kept")
    assert again.stdout == alone.stdout
    assert json.loads((tmp_path / "kept" / "summary.json").read_text())["ran"]["simulated"] == 0

    assert odonata(*words, "-o", "kept", "--write", "mine.toml").returncode == 0
    assert odonata("sweep", "mine.toml", "-o", "kept").returncode == 0
    swept = open_sweep(tmp_path / "kept")
    assert swept.saturation is not None
    (load, _) = swept.saturation.cells("saturation_load")
    assert load.values == (found["curves"][0]["saturation_load"]["mean"],)
    assert (tmp_path / "kept" / "saturation.csv").exists()


@pytest.mark.long
def test_the_page_shows_what_is_printed(odonata: Run) -> None:
    """Of its nine curves the one that is known exactly; all of them take minutes."""
    page = (Path(__file__).parents[2] / "docs" / "howto" / "saturation.md").read_text()
    done = odonata("latency", "--preset", "kim-72", "--routing", "minimal", "--traffic",
                   "adversarial", "--loads", "0.1:1:0.1", "--seeds", "5", "--resolution", "0.02",
                   "--longest", "204us")  # fmt: skip
    (row,) = (line for line in done.stdout.splitlines() if line.startswith("minimal  0."))
    shown = next(line for line in page.splitlines() if line.startswith("adversarial  minimal"))
    assert row.split() == shown.split()[1:]


def test_points_that_were_kept_before_curves_were_sweeps_are_taken_over(tmp_path: Path) -> None:
    one = wish("adversarial", "minimal", "0.1,0.2", **COARSE)
    study = Saturating(one.plan())
    _, store = fill(study, study.plan, tmp_path, 1)
    assert continued(study, tmp_path) is study
    (tmp_path / "results.jsonl").write_bytes(OLD.read_bytes())
    older = continued(study, tmp_path)
    assert not (tmp_path / "results.jsonl").exists()
    assert (tmp_path / KEPT).exists()
    assert isinstance(older, Continued)
    assert older.older.keys() == store.outcomes.keys()
    last = {key: was for key, was in older.older.items() if was.verdict != UNSETTLED}
    assert len(last) == 2
    for key, was in last.items():
        anew = store.outcomes[key]
        assert (was.digest, was.judged) == (anew.digest, anew.judged)
        assert was.figures.items() - {("events", was.figures["events"])} <= anew.figures.items()
    assert continued(study, tmp_path) == older


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--load", "0.3"], "--loads"),
        (["--loads", "0.3:0.1:0.1"], "goes up"),
        (["--routing", "minimal,fastest"], "routing = fastest: one of adaptive, minimal"),
        (["--plot", "x.gif"], "--plot x.gif: the name must end in .png, .svg, .pdf"),
        (["--write", "x.png"], "--write x.png: the name must end in .toml"),
        (["--plot", "nowhere/x.png"], "there is no directory nowhere"),
        (["--measure", "0ns"], "measure = 0 ps: above 0"),
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
    model = Network(SMALL, (Traffic(messages=3, load=0.7),))
    assert asked(model, ["uniform"], ["minimal"], [0.2]).network.traffic[0].messages is None


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
    assert "=valiant, traffic.pattern=uniform, traffic.load=1.0, seed 1: deadlock: " in lines[0]


def test_a_mistake_in_a_worker_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(*_: object, **__: object) -> None:
        raise AssertionError("a byte was lost")

    monkeypatch.setattr("odonata.sweeps.outcomes.simulated_facts", lose)
    study = Saturating(wish("uniform", "minimal", "0.1", **SHORT).plan())
    failure = attempt(partial(simulate, study), study.plan.points[0])
    assert isinstance(failure, Failure)
    assert "traffic.load=0.1, seed 1: AssertionError: a byte was lost" in failure
    with pytest.raises(AssertionError):
        fill(study, study.plan, None, 1)


def test_the_death_of_a_worker_is_told() -> None:
    one = wish("uniform", "minimal", "0.1", warmup_ps=0, measure_ps=10**15, drain_ps=0)
    study = Saturating(one.plan())
    worker = Worker(partial(simulate, study))
    worker.start()
    try:
        worker.give(study.plan.points[0])
        assert worker._process.pid is not None
        os.kill(worker._process.pid, signal.SIGKILL)
        failure = worker.answer()
    finally:
        worker.end()
    assert isinstance(failure, Failure)
    assert "traffic.load=0.1, seed 1: its process died (exit status -9)" in failure


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
