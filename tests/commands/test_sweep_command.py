"""`odonata sweep`, as a user calls it: kept, resumed, shared out, and the same however it ran."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from conftest import PATIENCE, start

import odonata
from odonata.commands.cli import cli
from odonata.results.execution import RunOptions, execute
from odonata.results.facts import run_facts
from pdes.checksum import with_checksum
from pdes.errors import Fault, Refused

Go = Callable[..., str]

FILE = """
[machine]
preset = "kim-72"
[traffic]
load = 0.2
[run]
duration = "2 us"
[sweep]
seeds = 3
network.routing = ["minimal", "valiant"]
traffic.load = [0.1, 0.3]
against = "network.routing=minimal"
plot = "mean_latency_ns:traffic.load:network.routing"
"""
TABLES = ("points.csv", "summary.csv")
BRIEFLY = ("--figure", "throughput", "--plot", "")
"""One picture on the page and none beside it, for what is about something else: tables always have
every figure."""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sweep") / "mine.toml"
    path.write_text(FILE)
    return path


def texts(out: Path) -> list[str]:
    return [(out / name).read_text() for name in TABLES]


def invoke(*words: object) -> str:
    found = CliRunner().invoke(cli, ["sweep", *map(str, words)], catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return found.output


@pytest.fixture(scope="module")
def swept(file: Path) -> tuple[Path, str]:
    """The whole sweep, on one process, and what it showed."""
    out = file.with_name("whole")
    return out, invoke(file, "-o", out, "--jobs", 1)


@pytest.fixture(scope="module")
def swept_once(file: Path) -> Path:
    """The sweep with one seed."""
    out = file.with_name("once")
    invoke(file, "-o", out, "--jobs", 1, "--seeds", 1, *BRIEFLY)
    return out


@pytest.fixture
def once(swept_once: Path, tmp_path: Path) -> Path:
    """A copy of it, to be altered."""
    return shutil.copytree(swept_once, tmp_path / "s")


def test_it_leaves_tables_a_picture_and_a_page(
    swept: tuple[Path, str], file: Path, tmp_path: Path
) -> None:
    made, shown = swept
    assert "× minimal" in shown
    assert "12 simulations" in shown
    out = shutil.copytree(made, tmp_path / "s")
    left = {path.name for path in out.iterdir()}
    assert left == {*TABLES, "sweep.json", "progress.json", "results.jsonl", "report.html",
                    "mean_latency_ns-traffic.load-network.routing.png"}  # fmt: skip
    invoke("--report", "-o", out)
    assert texts(out) == texts(made)
    assert "nothing was left to simulate" in invoke(file, "-o", out, "--jobs", 1, *BRIEFLY)
    assert texts(out) == texts(made)
    facts = json.loads(invoke("--report", "-o", out, "--json", "--figure", "throughput"))
    assert {row["figure"] for row in facts["results"]} == {"throughput"}
    assert len(facts["results"]) == 4
    assert "mean_hops" in invoke("--report", "-o", out, "--figures").splitlines()


def test_figures_are_listed_without_simulating_the_sweep(file: Path, tmp_path: Path) -> None:
    listed = invoke(file, "-o", tmp_path / "s", "--jobs", 1, "--figures").splitlines()
    assert {"mean_hops", "links.global.utilisation", "throughput"} <= {*listed}
    assert not (tmp_path / "s").exists()


def test_a_figure_that_is_not_there_costs_nothing_but_the_asking(
    file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "s"
    words = ["sweep", str(file), "-o", str(out), "--jobs", "1", "--seeds", "1"]
    with pytest.raises(Refused, match=r"all that was simulated is kept: odonata sweep --report"):
        CliRunner().invoke(cli, [*words, "--figure", "lateness"], catch_exceptions=False,
                           standalone_mode=False)  # fmt: skip
    assert "nothing was left" in invoke(*words[1:], "--figure", "throughput")


def test_a_drawing_that_is_refused_takes_nothing_else_away(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "s"
    words = ["sweep", str(file), "-o", str(out), "--jobs", "1", "--seeds", "1", *BRIEFLY[:2]]
    found = CliRunner().invoke(cli, [*words, "--plot", "lateness:traffic.load"])
    assert "lateness: no figure of this sweep" in str(found.exception)
    assert "× minimal" in found.output
    assert (out / "report.html").exists()
    assert "× minimal" in invoke("--report", "-o", out, "--plot", "")


@pytest.mark.parametrize(
    ("name", "value"),
    [("wanted", {}), ("points", ["a"]), ("axes", {"x": 3}), ("axes", []), ("seeds", ["1"])],
)
def test_a_damaged_plan_is_refused(once: Path, name: str, value: object) -> None:
    facts = json.loads((once / "sweep.json").read_text())
    (once / "sweep.json").write_text(json.dumps({**facts, name: value}))
    with pytest.raises(Refused, match="holds no sweep"):
        odonata.open_sweep(once)


def test_a_changed_digit_of_a_plan_is_not_believed(file: Path, once: Path) -> None:
    out = once
    text = (out / "sweep.json").read_text()
    assert json.loads(text)["seeds"] == [1]
    (out / "sweep.json").write_text(re.sub(r'("seeds": \[\s*)1', r"\g<1>2", text))
    with pytest.raises(Refused, match="or damaged; the command that made the sweep"):
        odonata.open_sweep(out)
    invoke(file, "-o", out, "--jobs", 1, "--seeds", 1, *BRIEFLY)
    assert (out / "sweep.json").read_text() == text
    bare = {name: value for name, value in json.loads(text).items() if name != "crc32"}
    (out / "sweep.json").write_text(json.dumps(bare))  # as before there were checksums
    assert odonata.open_sweep(out).seeds == (1,)


def otherwise(head: str) -> str:
    """Returns the first line of a store as another simulator writes it."""
    fields = {name: value for name, value in json.loads(head).items() if name != "crc32"}
    return with_checksum(json.dumps({**fields, "mark": "another"}))


def test_results_of_two_simulators_are_not_shown_as_one(once: Path) -> None:
    out = once
    head, *rest = (out / "results.jsonl").read_text().splitlines()
    other = otherwise(head)
    (out / "results-0001-of-0002.jsonl").write_text("\n".join([other, *rest]) + "\n")
    with pytest.raises(Refused, match="made by another simulator than"):
        odonata.open_sweep(out)
    (out / "results-0001-of-0002.jsonl").write_text("nonsense\n")
    with pytest.raises(Refused, match="no results of a study that can be read"):
        odonata.open_sweep(out)


def test_a_sweep_of_seeds_alone_is_shown_too(tmp_path: Path) -> None:
    file, out = tmp_path / "mine.toml", tmp_path / "s"
    file.write_text(FILE.partition("[sweep]")[0])
    shown = invoke(file, "-o", out, "--jobs", 1, "--seeds", 3)
    assert "throughput" in shown
    assert (out / "report.html").read_text().count("<svg") == 3


def test_a_sweep_that_is_refused_leaves_the_one_that_is_there_as_it_was(
    file: Path, once: Path
) -> None:
    out = once
    kept, plan = out / "results.jsonl", (out / "sweep.json").read_bytes()
    head, *rest = kept.read_text().splitlines()
    other = otherwise(head)
    kept.write_text("\n".join([other, *rest]) + "\n")
    words = ["sweep", str(file), "-o", str(out), "--jobs", "1", "--seeds", "2"]
    with pytest.raises(Refused, match="made by a simulator that answers otherwise"):
        CliRunner().invoke(cli, words, catch_exceptions=False, standalone_mode=False)
    assert (out / "sweep.json").read_bytes() == plan


def test_a_point_gives_what_run_gives(file: Path, tmp_path: Path) -> None:
    found = odonata.sweep(file, seeds=1)
    changes = ["network.routing=valiant", "traffic.load=0.3"]
    ran = execute(RunOptions(file, tmp_path / "run", changes, metrics=False))
    assert ran is not None
    facts = run_facts(ran)
    at = found.data.sel({"network.routing": "valiant", "traffic.load": 0.3}).squeeze()
    for name in ("events", "mean_latency_ns", "p99_latency_ns", "throughput", "packets"):
        assert float(at[name]) == facts[name]
    assert float(at["links.global.utilisation"]) == facts["links"]["global"]["utilisation"]


def test_what_is_asked_for_in_addition_is_all_that_is_simulated(file: Path, once: Path) -> None:
    out = once
    words = (file, "-o", out, "--jobs", 1, "--seeds", 2, *BRIEFLY)
    assert "4 simulations" in invoke(*words)
    assert "4 simulations" in invoke(*words, "--set", "traffic.load=0.1,0.2,0.3")
    assert odonata.open_sweep(out).axes["traffic.load"] == ("0.1", "0.2", "0.3")


def test_one_answer_on_processes_on_ranks_and_in_shares(
    go: Go, swept: tuple[Path, str], file: Path, tmp_path: Path
) -> None:
    go("sweep", file, "-o", tmp_path / "two", "--jobs", 2, *BRIEFLY)
    go("sweep", file, "-o", tmp_path / "ranks", *BRIEFLY, ranks=2)
    for share in ("1/2", "2/2"):
        invoke(file, "-o", tmp_path / "shares", "--share", share, "--jobs", 1, *BRIEFLY)
    for other in ("two", "ranks", "shares"):
        assert texts(tmp_path / other) == texts(swept[0]), other


def test_a_killed_sweep_goes_on_and_repeats_nothing(tmp_path: Path, go: Go) -> None:
    file, out = tmp_path / "mine.toml", tmp_path / "s"
    file.write_text(FILE.replace("2 us", "40 us").replace("seeds = 3", "seeds = 5"))
    words = (str(file), "-o", str(out), "--jobs", "2", *BRIEFLY)
    running = start("sweep", *words)
    kept = out / "results.jsonl"
    until = time.monotonic() + PATIENCE
    while not (kept.exists() and kept.read_text().count("\n") > 3):
        assert time.monotonic() < until
        assert running.poll() is None
        time.sleep(0.02)
    running.kill()
    running.communicate()
    there = [json.loads(line)["key"] for line in kept.read_text().splitlines()[1:]
             if line.endswith("}")]  # fmt: skip
    assert 0 < len(there) < 20
    found = go("sweep", *words)
    done = [json.loads(line)["key"] for line in kept.read_text().splitlines()[1:]]
    assert len(done) == len(set(done)) == 20
    assert set(there) <= set(done)
    assert f"{20 - len(there)} simulations" in found


DEADLOCKED = """
[machine]
preset = "kim-72"
[network]
vcs = "one"
routing = "valiant"
packet = "1 KiB"
[traffic]
load = 1.0
pattern = "adversarial"
[run]
duration = "20 us"
[sweep]
network.vcs = ["hops", "one"]
"""


def test_a_point_that_fails_is_named_and_the_others_are_there(tmp_path: Path) -> None:
    file, out = tmp_path / "mine.toml", tmp_path / "s"
    file.write_text(DEADLOCKED)
    words = ["sweep", str(file), "-o", str(out), "--jobs", "1"]
    with pytest.raises(Fault, match="1 of 2 points have failed"):
        CliRunner().invoke(cli, words, catch_exceptions=False, standalone_mode=False)
    found = odonata.open_sweep(out)
    (failure,) = found.failures
    assert failure.startswith("network.vcs=one, seed 1: deadlock: router ")
    assert len(found.known) == 1
    assert (out / "report.html").read_text().count("deadlock: router") == 1


@pytest.mark.long
def test_a_point_whose_process_was_killed_is_named_and_simulated_the_next_time(
    tmp_path: Path, go: Go
) -> None:
    file, out = tmp_path / "mine.toml", tmp_path / "s"
    file.write_text(FILE.replace("2 us", "60 us").replace("seeds = 3", "seeds = 4"))
    running = start("sweep", str(file), "-o", str(out), "--jobs", "2")
    kept, until = out / "results.jsonl", time.monotonic() + PATIENCE
    while not (kept.exists() and kept.read_text().count("\n") > 2):
        assert time.monotonic() < until
        assert running.poll() is None
        time.sleep(0.02)
    os.kill(workers_of(running.pid)[-1], signal.SIGKILL)
    _, told = running.communicate(timeout=PATIENCE)
    assert running.returncode == 1
    (line,) = (line for line in told.splitlines() if "its process died" in line)
    assert line.startswith("odonata: network.routing=")
    assert "(exit status -9)" in line
    assert kept.read_text().count("\n") == 1 + 15
    assert "1 simulations" in go("sweep", file, "-o", out, "--jobs", "2")


def workers_of(pid: int) -> list[int]:
    """Returns the processes that a sweep has started to simulate."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children
            if "spawn_main" in Path(f"/proc/{child}/cmdline").read_text()]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "which experiment?"),
        (("--report",), "which sweep?"),
        (("--report", "-o", "nowhere"), "holds no sweep"),
        (("FILE", "--against", "network.routing=par"), "an axis and one of its values"),
        (("FILE", "--plot", "throughput"), "FIGURE:X"),
        (("FILE", "--figure", "lateness"), "no figure of this sweep"),
    ],
)
def test_what_cannot_be_shown_is_refused(
    file: Path, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    given = [str(file) if word == "FILE" else word for word in words]
    if "FILE" in words:
        given += ["-o", str(tmp_path / "s"), "--jobs", "1", "--seeds", "1"]
    with pytest.raises(Refused, match=said.replace("?", r"\?")):
        CliRunner().invoke(cli, ["sweep", *given], catch_exceptions=False, standalone_mode=False)


LAST = """
from odonata import allocation

@allocation("last", about="the last idle nodes", source="here")
def last(sight, job, rng):
    return sight.labels[-job.nodes :]
"""
PLACED = """
plugins = ["last.py"]
[machine]
preset = "kim-72"
[network]
routing = "adaptive"
[[jobs]]
nodes = 4
pattern = "all-to-all"
[sweep]
seeds = 1
scheduler.allocation = ["last", "simple"]
"""


def test_worker_processes_have_the_plug_ins_of_the_experiment(go: Go, tmp_path: Path) -> None:
    (tmp_path / "last.py").write_text(LAST)
    file = tmp_path / "placed.toml"
    file.write_text(PLACED)
    words = ("sweep", file, "--plot", "", "--figure", "makespan_ps")
    for jobs in (1, 2):
        go(*words, "-o", tmp_path / str(jobs), "--jobs", jobs)
    assert texts(tmp_path / "1") == texts(tmp_path / "2")
    assert "last" in texts(tmp_path / "2")[0]


def test_a_sweep_is_followed_with_its_last_results(swept: tuple[Path, str]) -> None:
    done = CliRunner(env={"COLUMNS": "200"}).invoke(cli, ["watch", str(swept[0])])
    assert re.search(r"sweep in \S+  complete\n.* 100%  12 of 12 points", done.output)
    *_, head, _, _, _, _, last = done.output.splitlines()
    assert head.split()[:4] == ["network.routing", "traffic.load", "seed", "throughput"]
    assert last.split()[0] == "valiant"
