"""Experiments of the job fidelity: from a file to results, stopped, resumed, opened, compared."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import PATIENCE, clean_environment

from odonata.experiment.experiment import Experiment, JobExperiment
from odonata.experiment.reading import parse
from odonata.results.run import Run
from odonata.results.run import open as open_run
from odonata.traces.reading import read
from pdes.errors import Refused

Odonata = Callable[..., Any]

MONTH = """
fidelity = "job"
about = "a month, made"
[trace]
model = "lublin"
jobs = 400
nodes = 64
load = 0.8
[scheduler]
order = "easy"
[metrics]
interval = "1 d"
"""


@pytest.fixture
def month(tmp_path: Path) -> Path:
    path = tmp_path / "month.toml"
    path.write_text(MONTH)
    return path


def made(text: str, *changes: str) -> JobExperiment:
    found = parse(text, "month.toml", changes)
    assert isinstance(found, JobExperiment)
    return found


# -- the file


def test_a_file_is_of_packets_unless_it_says_otherwise() -> None:
    assert isinstance(parse("", "x.toml"), Experiment)
    assert isinstance(parse('fidelity = "packet"', "x.toml"), Experiment)


def test_what_is_written_reads_back_as_the_same_experiment() -> None:
    for changes in ((), ("machine.preset=kim-1056", "scheduler.allocation=rdn"),
                    ("run.duration=300 d", "scheduler.order.name=wfp",
                     "scheduler.order.backfill=none")):  # fmt: skip
        one = made(MONTH, *changes)
        assert made(one.to_toml()) == one


def test_the_keys_of_either_fidelity_are_refused_in_the_other() -> None:
    with pytest.raises(Refused) as refused:
        parse('fidelity = "job"\n[trace]\nmodel = "mira"\n[network]\nrouting = "minimal"\n[nic]\n'
              'send = "1 ns"\n[[jobs]]\nnodes = 4\n[metrics]\nports = false', "x.toml")  # fmt: skip
    lines = str(refused.value).splitlines()
    assert len(lines) == 4
    assert all('only with fidelity = "packet"' in line for line in lines)
    with pytest.raises(Refused, match=r'trace\.first = 3: only with fidelity = "job"'):
        parse("[trace]\nfirst = 3", "x.toml")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ("trace.file=none.swf", "none.swf"),
        ("trace.model=none", "which jobs"),
        ("trace.load=-1", "trace.load=-1: above 0, at most 20, or as it is"),
        ("trace.nodes=0", "trace.nodes=0: 1 .. "),
        ("scheduler.order=esay", "did you mean easy"),
        ("scheduler.order.name=wfp", None),
        ("run.duration=0.5 us", "whole number of microseconds"),
        ("run.duration=2000000 d", "1,000 years"),
        ("machine.preset=kim-72", None),
        ("trace.nodes=100", None),
        ("scheduler.allocation=simple", "there is no .machine."),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_simulated(
    change: str, complaint: str | None
) -> None:
    changes = [change]
    if change.startswith("trace.file"):
        changes += ["trace.model=none", "trace.jobs=auto"]
    if complaint is None:
        made(MONTH, *changes)
        return
    with pytest.raises(Refused, match=complaint):
        made(MONTH, *changes)


def test_a_machine_that_is_smaller_than_the_nodes_asked_for_is_refused() -> None:
    with pytest.raises(Refused, match="nodes = 100: the machine has 72"):
        made(MONTH, "machine.preset=kim-72", "trace.nodes=100")


def test_a_packet_run_refuses_a_discipline_that_preempts() -> None:
    text = '[[jobs]]\nnodes = 4\n[scheduler]\norder = "lcfs-pr"'
    with pytest.raises(Refused, match=r"order = .lcfs-pr.: it preempts running jobs"):
        parse(text, "x.toml")
    parse(text.replace("lcfs-pr", "spf"), "x.toml")
    with pytest.raises(Refused, match="it preempts running jobs"):
        parse(text.replace('"lcfs-pr"', '{ name = "spf", printed = true }'), "x.toml")


def test_every_discipline_runs_jobs_with_packets_too() -> None:
    """The same names and parameters serve both fidelities."""
    text = """
    [machine]
    preset = "kim-72"
    [network]
    routing = "adaptive"
    [[jobs]]
    nodes = 40
    count = 4
    message = "64 B"
    requested = "1 ms"
    """
    for order in ("easy", "conservative", "wfp", "fair-share", "spf"):
        found = parse(text, "x.toml", [f"scheduler.order={order}"])
        assert isinstance(found, Experiment)
        from pdes.driver import run

        done = run(found.model(), None, show_compiling=False)
        assert done.completed


# -- the run


def test_a_run_leaves_what_it_measured(go: Callable[..., str], month: Path, tmp_path: Path) -> None:
    facts = json.loads(go("run", month, "-o", "out", "--json"))
    assert facts["jobs"] == facts["finished"] + facts["killed"] == 400
    with open_run(tmp_path / "out") as run:
        assert isinstance(run, Run)
        assert run.complete
        assert run.digest == facts["digest"]
        assert run.measures.mean_wait_s == facts["mean_wait_s"]
        jobs = run.jobs
        assert (jobs.wait_us == jobs.start_us - jobs.submit_us).all()
        assert float(jobs.wait_us.mean()) / 1e6 == pytest.approx(facts["mean_wait_s"])
        assert run.system.queue.max() <= facts["max_queue_length"]
        assert set(run.system.busy_nodes.data.ravel()) <= set(range(65))
        waits = run.schedule.start_us - run.trace.submit_us
    back = read(tmp_path / "out" / "jobs.swf")
    assert (back.wait_us == waits).all()
    table = (tmp_path / "out" / "jobs.csv").read_text().splitlines()
    assert len(table) == 401
    assert table[0].startswith("job_id,workload_name")
    assert "finished" in go("watch", "out", "--once")
    page = Path(tmp_path, go("report", "out").strip()).read_text()
    assert "easy scheduling" in page
    assert page.count("<svg") == 4
    assert "over-time.png" in {it.name for it in Path(
        tmp_path, go("report", "out", "--format", "png").strip()).iterdir()}  # fmt: skip


WITHOUT = """
import sys
from odonata.commands.cli import cli
cli.main(["run", *sys.argv[1:]], standalone_mode=False)
print(sorted({"xarray", "pandas", "matplotlib"} & set(sys.modules)))
"""


def test_a_run_writes_its_results_without_what_takes_long_to_import(
    month: Path, tmp_path: Path
) -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT, str(month), "-o", "out"], cwd=tmp_path,
                          text=True, capture_output=True, check=True, timeout=PATIENCE,
                          env=clean_environment())  # fmt: skip
    assert done.stdout.splitlines()[-1] == "[]"
    assert (tmp_path / "out" / "jobs.csv").exists()


@pytest.mark.long
def test_runs_are_compared_by_their_measures(
    go: Callable[..., str], odonata: Odonata, month: Path, tmp_path: Path
) -> None:
    go("run", month, "-o", "a")
    go("run", month, "-o", "b", "--set", "scheduler.order=fcfs")
    found = json.loads(go("compare", "a", "b", "--json", "--plot", "both.png"))
    easy, fcfs = (run["figures"]["mean_wait_s"] for run in found["runs"])
    assert easy < fcfs
    assert found["differences"] == {"scheduler.order": ["easy", "fcfs"]}
    assert found["runs"][1]["change"]["mean_wait_s"] == pytest.approx(fcfs / easy - 1)
    assert (tmp_path / "both.png").stat().st_size > 20_000
    assert "wait, mean" in go("compare", "a", "b")
    differ = odonata("diff", "a", "b")
    assert differ.returncode == 1
    assert "starts/time_us" in differ.stdout


@pytest.mark.long
def test_a_run_on_ranks_gives_the_same_bits_and_without_the_compiler_too(
    go: Callable[..., str], month: Path
) -> None:
    few = ("--set", "trace.jobs=60", "--set", "machine.preset=kim-72")
    for out, how in (("one", {}), ("two", {"ranks": 2}), ("plain", {"ODONATA_JIT": "0"})):
        go("run", month, "-o", out, *few, **how)
        assert go("diff", "one", out).startswith("the same, bit for bit")


STOPS = """
import os, signal
from odonata import scheduling

@scheduling("stops", about="FCFS that is asked to stop", source="a test")
def stops(view):
    if 200 <= view.queue[-1].number and not os.environ.get("GO_ON"):
        os.kill(os.getpid(), signal.SIGTERM)
    free, chosen = view.free, []
    for job in view.queue:
        if job.nodes > free:
            break
        free -= job.nodes
        chosen.append(job.number)
    return chosen
"""


def test_sigterm_in_the_middle_stops_at_a_checkpoint_and_the_rest_gives_the_same_bits(
    go: Callable[..., str], month: Path, tmp_path: Path
) -> None:
    (tmp_path / "stops.py").write_text(STOPS)
    words = ("run", month, "--plugin", "stops.py", "--set", "scheduler.order=stops")
    stopped = json.loads(go(*words, "-o", "out", "--json"))
    assert not stopped["completed"]
    assert 0 < stopped["finished"] < 400
    assert stopped["running"] + stopped["waiting"] > 0
    assert "INCOMPLETE" in go("report", "out") + (tmp_path / "out" / "report.html").read_text()
    go("run", "--resume", "-o", "out", GO_ON="1")
    go("run", *words[1:], "-o", "whole", GO_ON="1")
    assert go("diff", "out", "whole").startswith("the same, bit for bit")
    with open_run(tmp_path / "out") as one, open_run(tmp_path / "whole") as other:
        assert one.digest == other.digest
    assert (tmp_path / "out" / "jobs.csv").read_text() == (
        tmp_path / "whole" / "jobs.csv").read_text()  # fmt: skip


STOPPED = """
import os, signal, sys
from pdes.stream import Recorder
take, taken = Recorder.take, []

def third(self, *words):
    take(self, *words)
    taken.append(words)
    if len(taken) == 3:
        os.kill(os.getpid(), signal.SIGTERM)

Recorder.take = third
sys.argv = ["odonata", "run", *sys.argv[1:]]
from odonata.commands.cli import main
main()
"""
"""A run that is asked to stop when it has taken its third sample."""


@pytest.mark.long
def test_a_compiled_run_is_stopped_by_a_signal_and_resumed(
    go: Callable[..., str], month: Path, tmp_path: Path
) -> None:
    changes = ("trace.model=poisson", "trace.jobs=60000", "trace.load=0.9",
               "metrics.interval=5 d")  # fmt: skip
    big = [word for change in changes for word in ("--set", change)]
    out = tmp_path / "out"
    stopped = subprocess.run(
        [sys.executable, "-c", STOPPED, str(month), "-o", str(out), *big], cwd=tmp_path, text=True,
        capture_output=True, check=False, timeout=PATIENCE, env=clean_environment(),
    )  # fmt: skip
    assert stopped.returncode == 0, stopped.stderr
    assert f"go on with: odonata run --resume -o {out}" in stopped.stderr
    with open_run(out) as run:
        assert isinstance(run, Run)
        begun = run.schedule
    done = begun.done
    assert done.any()
    assert not done.all()
    go("run", "--resume", "-o", out)
    go("run", month, "-o", "whole", *big)
    assert go("diff", out, "whole").startswith("the same, bit for bit")
    with open_run(out) as run:
        assert isinstance(run, Run)
        assert run.schedule.done.all()
        assert (run.schedule.end_us[done] == begun.end_us[done]).all()
        assert np.array_equal(np.sort(run.schedule.segment_job), np.arange(60_000))


def test_a_full_disk_ends_a_job_run_in_a_line(
    odonata: Odonata, month: Path, small_disk: Path
) -> None:
    big = ("--set", "trace.jobs=60000")
    done = odonata("run", str(month), "-o", str(small_disk / "out"), *big)
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_killed_run_is_read_as_far_as_it_came(go: Callable[..., str], month: Path) -> None:
    """What an experiment asks for does not depend on where its trace is: a run opens without it."""
    go("run", month, "-o", "out")
    with open_run(month.parent / "out") as run:
        assert isinstance(run, Run)
        assert run.trace.users[0].startswith("user")
        assert "complete" in repr(run)
