"""`odonata run`, as a user meets it: real processes, real mpiexec, real kills."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import h5py
import pytest
from conftest import PATIENCE, clean_environment, command, pids, start

from odonata.experiment.experiment import JobExperiment
from odonata.experiment.reading import load, parse
from odonata.results.run import open as open_run

Odonata = Callable[..., subprocess.CompletedProcess[str]]

SMALL = """
name = "small"
[machine]
preset = "kim-72"
[traffic]
pattern = "uniform"
load = 0.4
[run]
duration = "60 us"
checkpoint_every = "17 us"
[metrics]
interval = "5 us"
flush = "20 ms"
"""
ENDLESS = [
    "--set", "run.duration=8 s", "--set", "metrics.interval=100 us", "--set",
    "run.checkpoint_every=100 us",
]  # fmt: skip
LONG = "run.duration=200 us"
PAUSED = """
import sys, time
from pdes.engine import Engine
lap = Engine.lap

def pause(engine, what):
    while engine.reached > 150_000_000:
        time.sleep(1)
    return lap(engine, what)

Engine.lap = pause
sys.argv = ["odonata", "run", *sys.argv[1:]]
from odonata.commands.cli import main
main()
"""
"""A run that waits after 150 us, so that it cannot end before it is killed, however late a busy
machine lets that be."""
EXPERIMENTS = sorted((Path(__file__).parents[2] / "scripts" / "experiments").glob("*.toml"))
LARGE = ("booksim", "congestion", "frontier", "theta")
"""Experiments of which a microsecond, or a tenth of one without the compiler, takes seconds; or
whose kernels no other test needs."""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


@pytest.mark.long
def test_one_two_and_three_ranks_leave_the_same_bits(
    odonata: Odonata, go: Callable[..., str], small: Path, tmp_path: Path
) -> None:
    for ranks in (1, 2, 3):
        printed = json.loads(go("run", small, "-o", f"r{ranks}", "--json", ranks=ranks))
        assert printed["completed"]
        assert printed["ranks"] == ranks
    go("run", small, "-o", "null", "--set", "run.protocol=null", ranks=2)
    assert "r2: is complete already" in odonata("run", "--resume", "-o", "r2").stderr
    for other in ("r2", "r3", "null"):
        assert go("diff", "r1", other).startswith("the same, bit for bit: ")
    with h5py.File(tmp_path / "r3" / "run.h5") as file:
        assert file["ports/flits"].is_virtual
        assert len(file["ports/flits"].virtual_sources()) == 3
    go("run", small, "-o", "other", "--set", "run.seed=2")
    differing = odonata("diff", "r1", "other", "--json")
    assert differing.returncode == 1
    assert not json.loads(differing.stdout)["same"]


@pytest.mark.long
def test_without_the_compiler_the_bits_are_the_same(go: Callable[..., str], small: Path) -> None:
    short = (
        "--set=run.duration=400 ns",
        "--set=metrics.interval=100 ns",
    )
    go("run", small, "-o", "plain", "--debug", *short)
    go("run", small, "-o", "compiled", *short)
    assert go("diff", "plain", "compiled").startswith("the same, bit for bit: 29 datasets")


def test_a_table_tells_what_was_run_and_what_came_out(go: Callable[..., str], small: Path) -> None:
    printed = go("run", small, "-o", "out", "--set=run.duration=10 us")
    for word in ("small on 1 rank", "72 nodes", "latency, mean", "global links", "digest"):
        assert printed.count(word) == 1
    assert "complete" in go("watch", "out")


def paused(*words: str, ranks: int = 1, cwd: Path) -> subprocess.Popen[str]:
    """Start a run that waits after 150 us."""
    *before, python, _, _ = command(ranks=ranks)
    return subprocess.Popen([*before, python, "-c", PAUSED, *words], text=True, cwd=cwd,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            env=clean_environment())  # fmt: skip


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)


def reached(out: Path) -> int:
    """In samples that all ranks have written."""
    if not (out / "rank-0001.h5").exists() or not [*out.glob("checkpoint/*/at-*")]:
        return 0
    with open_run(out) as run:
        return len(run.time)


def kill_all(process: subprocess.Popen[str], out: Path) -> None:
    """Every rank at once: nobody gets to close anything."""
    ranks = pids(str(out))
    assert len(ranks) == 2
    for pid in ranks:
        os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=PATIENCE)
    assert process.returncode != 0


@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=pytest.mark.long)])
def test_a_killed_run_stays_readable_and_resumes_to_the_same_bits(
    go: Callable[..., str], small: Path, tmp_path: Path, ranks: int
) -> None:
    """Two ranks are killed, and one or two go on; `tests/parallel` has other restarts on ranks."""
    out = tmp_path / "killed"
    end = [f"--set={LONG}", "--set=run.checkpoint_every=70 us"]
    process = paused(str(small), "-o", str(out), *end, ranks=2, cwd=tmp_path)
    wait_for(lambda: reached(out) > 20, process)
    kill_all(process, out)
    before = reached(out)
    assert before > 20
    for rank in (0, 1):
        with h5py.File(out / f"rank-{rank:04d}.h5", "r", swmr=True) as file:
            assert len(file["time_ps"]) >= before
            assert file["ports/flits"][: before // 2].any()
    with open_run(out) as run:
        assert not run.complete
    mended = shutil.copytree(out, tmp_path / "mended")
    assert "closed rank-0000.h5, rank-0001.h5" in go("mend", mended)
    assert "nothing was left open" in go("mend", mended)
    with h5py.File(mended / "run.h5") as file:
        assert not file.attrs["complete"]
        assert len(file["time_ps"]) == before
    assert go("diff", out, mended).startswith("the same")
    printed = json.loads(go("run", "--resume", "-o", out, "--json", ranks=ranks))
    assert printed["completed"]
    assert printed["resumed_ps"] >= 70_000_000
    go("run", small, "-o", "whole", *end)
    assert "the same, bit for bit" in go("diff", out, "whole")


def test_a_run_without_a_checkpoint_resumes_from_the_beginning(
    go: Callable[..., str], small: Path, tmp_path: Path
) -> None:
    out, never = tmp_path / "killed", ["--set=run.checkpoint_every=never", f"--set={LONG}"]
    words = (str(small), "-o", str(out), *never)
    process = paused(*words, cwd=tmp_path)
    wait_for((out / "rank-0000.h5").exists, process)
    process.kill()
    process.communicate()
    printed = json.loads(go("run", *words, "--resume", "--json"))
    assert printed["resumed_ps"] is None
    go("run", small, "-o", "whole", *never)
    assert "the same, bit for bit" in go("diff", out, "whole")


@pytest.mark.long
def test_sigterm_stops_at_a_checkpoint_and_says_how_to_go_on(
    odonata: Odonata, small: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    process = start("run", str(small), "-o", str(out), *ENDLESS, ranks=2, cwd=tmp_path)
    wait_for(lambda: reached(out) > 2, process)
    process.terminate()
    printed, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said
    assert f"go on with: mpiexec -n 2 odonata run --resume -o {out}" in said
    assert "INCOMPLETE" in printed
    watched = odonata("watch", str(out)).stdout
    assert "stopped at a checkpoint" in watched


LATE = """
import os, signal, sys
from odonata.results import execution
write = execution.join

def join(*words):
    os.kill(os.getpid(), signal.SIGTERM)
    write(*words)

execution.join = join
sys.argv = ["odonata", "run", sys.argv[1], "-o", "out", "--set", "run.duration=2 us"]
from odonata.commands.cli import main
main()
"""


@pytest.mark.long
def test_a_signal_while_the_results_are_written_takes_nothing_from_them(
    small: Path, tmp_path: Path
) -> None:
    done = subprocess.run([sys.executable, "-c", LATE, str(small)], cwd=tmp_path, text=True,
                          env={**os.environ, "ODONATA_JIT": "0"}, capture_output=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    with open_run(tmp_path / "out") as run:
        assert run.complete
        assert run.digest
        assert run.digest[:12] in done.stdout


def test_a_directory_belongs_to_one_run(odonata: Odonata, small: Path, tmp_path: Path) -> None:
    def refused(*words: str) -> str:
        done = odonata("run", *words)
        assert done.returncode == 2
        assert done.stdout == ""
        return done.stderr

    first = odonata("run", str(small), "-o", "out", "--json")
    assert first.returncode == 0, first.stderr
    assert "out: holds a run already; --resume goes on" in refused(str(small), "-o", "out")
    differs = refused(str(small), "-o", "out", "--resume", "--set", "traffic.load=0.5")
    assert "traffic.load = 0.4, not 0.5" in differs
    complete = odonata("run", "-o", "out", "--resume", "--json")
    assert (complete.returncode, complete.stdout) == (0, first.stdout)
    assert "out: is complete already" in complete.stderr
    assert (tmp_path / "out" / "run.h5").exists()
    again = json.loads(odonata("run", str(small), "-o", "out", "--overwrite", "--json").stdout)
    assert again["digest"] == json.loads(first.stdout)["digest"]
    assert "which experiment?" in refused("-o", "out")
    assert "nowhere: holds no run" in refused("--resume", "-o", "nowhere")
    process = start("run", str(small), "-o", "busy", *ENDLESS, cwd=tmp_path)
    wait_for((tmp_path / "busy" / "rank-0000.h5").exists, process)
    assert "busy: another run is writing there" in odonata("mend", "busy").stderr
    assert "busy: another run is writing there" in refused(str(small), "-o", "busy", "--overwrite")
    process.kill()
    process.communicate()


def test_a_directory_of_a_run_without_metrics_is_a_run_too(
    odonata: Odonata, go: Callable[..., str], small: Path, tmp_path: Path
) -> None:
    """And a name that a terminal would take for markup, or a file that is its own copy."""
    place = tmp_path / "[red]r[b]"
    place.mkdir()
    file = small.rename(place / "experiment.toml")
    printed = go("run", file, "-o", place, "--no-metrics")
    assert "metrics" not in printed
    assert file.read_text() == SMALL
    refused = odonata("run", str(file), "-o", str(place), "--no-metrics", "--set=run.seed=5")
    assert refused.returncode == 2
    assert "holds a run already" in refused.stderr
    refused = odonata("run", "--resume", "-o", str(place))
    assert refused.returncode == 2
    assert "rank-0000.h5: is missing" in refused.stderr
    assert json.loads(go("run", "--resume", "-o", place, "--no-metrics", "--json"))["resumed_ps"]
    go("run", file, "-o", place, "--overwrite", "--set=run.seed=5")
    assert "seed = 5" in file.read_text()
    refused = odonata("run", "--resume", "-o", str(place), "--no-metrics")
    assert refused.returncode == 2
    assert "was begun with metrics" in refused.stderr
    file.write_text(SMALL)
    assert "in [red]r[b]" in go("run", file, "-o", place.name, "--overwrite")
    assert file.read_text() == SMALL


JOBS = """
name = "jobs"
[machine]
preset = "kim-72"
[network]
routing = "adaptive"
[[jobs]]
nodes = 24
pattern = "all-to-all"
message = "2 KiB"
[[jobs]]
nodes = 30
pattern = "halo3d"
message = "1 KiB"
iterations = 20
[[jobs]]
nodes = 40
pattern = "allreduce"
iterations = 10
arrival = "12 us"
[run]
dedicated_scheduler = true
[metrics]
interval = "3 us"
"""

STOPPED = """
import os, signal, sys
from pdes.engine import Engine
lap = Engine.lap

def stop(engine, what):
    if engine.transport.rank == 1 and engine.reached > 15_000_000:
        os.kill(os.getpid(), signal.SIGTERM)
    return lap(engine, what)

Engine.lap = stop
sys.argv = ["odonata", "run", *sys.argv[1:]]
from odonata.commands.cli import main
main()
"""
"""A run whose second rank is asked to stop after 15 us."""


@pytest.mark.long
@pytest.mark.parametrize("ranks", [1, 3])
def test_a_stopped_run_goes_on_with_any_number_of_ranks(
    odonata: Odonata, go: Callable[..., str], tmp_path: Path, ranks: int
) -> None:
    """Jobs on two ranks, one of which only the scheduler has; then on one, or on three that share
    the groups, by the other protocol."""
    file, out = tmp_path / "jobs.toml", tmp_path / "out"
    file.write_text(JOBS)
    words = [*command(ranks=2)[:4], "-c", STOPPED, str(file), "-o", str(out)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=False,
                          cwd=tmp_path, env=clean_environment())  # fmt: skip
    assert "go on with: mpiexec -n 2 odonata run --resume" in done.stderr
    assert done.returncode == 0
    go("run", file, "-o", "whole")
    shared = ranks > 1
    changes = ["--set=run.dedicated_scheduler=false", "--set=run.protocol=null"] * shared
    printed = json.loads(go("run", "--resume", "-o", out, "--json", *changes, ranks=ranks))
    assert printed["ranks"] == ranks
    assert printed["resumed_ps"] > 15_000_000
    assert go("diff", out, "whole").startswith("the same, bit for bit")
    assert (out / "jobs.csv").read_bytes() == (tmp_path / "whole" / "jobs.csv").read_bytes()
    assert len([*out.glob("rank-*.h5")]) == ranks
    assert "is complete already" in odonata("run", "--resume", "-o", str(out), *changes).stderr
    with open_run(out) as run, open_run(tmp_path / "whole") as whole:
        assert run.digest == whole.digest
        assert run.engine.events.shape[1] == ranks
        assert run.experiment.run.dedicated_scheduler != shared


def test_a_bad_file_is_refused_whole_before_anything_is_touched(
    odonata: Odonata, tmp_path: Path
) -> None:
    (tmp_path / "bad.toml").write_text(
        "[machine]\ngroup = 9\n[traffic]\nload = 2\n[run]\nseed = -1"
    )
    for ranks in (1, 2):
        done = odonata("run", "bad.toml", "-o", "out", ranks=ranks)
        assert done.returncode == 2
        assert done.stdout == ""
        lines = done.stderr.strip().split("\n")
        assert len(lines) == 3, done.stderr
        for part in ("machine.groups?", "traffic.load = 2", "run.seed = -1"):
            assert part in done.stderr
    assert not (tmp_path / "out").exists()


def test_check_says_what_would_be_run(go: Callable[..., str], small: Path, tmp_path: Path) -> None:
    text = go("run", small, "--check", "--set", "network.routing=par")
    assert parse(text, "said").network.routing == "par"
    assert [*tmp_path.iterdir()] == [small]


def test_every_ready_made_experiment_can_be_built() -> None:
    assert len(EXPERIMENTS) > 15
    for path in EXPERIMENTS:
        assert load(path).model(), path


@pytest.mark.parametrize("path", [
    pytest.param(path, id=path.stem, marks=[pytest.mark.long] * (path.stem in LARGE))
    for path in EXPERIMENTS])  # fmt: skip
def test_every_ready_made_experiment_runs(
    go: Callable[..., str], path: Path, tmp_path: Path
) -> None:
    """Shortened, and on the shortest way, which need not be compiled anew; or with jobs, which
    need some time before they talk. Crossbars would be compiled for this alone, and are not."""
    made, counted, jit = load(path), "packets", "1"
    unit = {"booksim": 30_000, "frontier": 500_000}.get(path.stem, 10**6)
    changes = [f"run.duration={3 * unit} ps", "traffic.warmup=0 s", f"metrics.interval={unit} ps",
               "network.routing=minimal", "traffic.messages=any"]  # fmt: skip
    if path.stem == "booksim":
        jit = "0"
    if isinstance(made, JobExperiment):
        changes, unit = ["run.duration=3 d", "metrics.interval=1 d"], 86400 * 10**6
        counted = "finished"
        if made.trace.model == "mira":
            changes.append("trace.first=200")
        if made.trace.model == "rmap-large":  # whose jobs take an hour
            changes, unit = ["run.duration=45 min", "metrics.interval=15 min"], 900 * 10**6
        if made.market is not None:  # which tries hundreds of bids every hour
            changes, unit = ["run.duration=1 h", "metrics.interval=20 min"], 1200 * 10**6
    elif made.jobs:
        changes, unit = ["run.duration=30 us", "metrics.interval=10 us"], 10**7
    words = [word for change in changes for word in ("--set", change)]
    printed = json.loads(go("run", path, "-o", "out", "--json", *words, ODONATA_JIT=jit))
    assert printed[counted] > 0
    with open_run(tmp_path / "out") as run:
        assert run.experiment == load(path, changes)
        assert run.time.data.tolist() == [unit, 2 * unit, 3 * unit]


# -- a disk that is full


@pytest.mark.long  # on one rank: tests/pdes/test_stream.py and test_log.py
def test_a_full_disk_ends_a_run_on_two_ranks_and_what_was_written_stays(
    small: Path, small_disk: Path, tmp_path: Path
) -> None:
    out = small_disk / "out"
    changes = ("run.duration=90 ms", "run.checkpoint_every=never", "metrics.channels=true")
    words = ("run", str(small), "-o", str(out), *(f"--set={change}" for change in changes))
    done = subprocess.run(command(*words, ranks=2), capture_output=True, text=True, check=False,
                          timeout=PATIENCE, env=clean_environment(), cwd=tmp_path)  # fmt: skip
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    with open_run(out) as run:
        assert not run.complete
        assert len(run.time) > 3
        assert run.ports.flits[: len(run.time)].any()
