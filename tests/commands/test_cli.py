"""The command, as a user meets it: real processes, real mpiexec, real signals."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import PATIENCE, clean_environment, pids, start

from odonata.commands.cli import cli
from odonata.commands.options import declared, offered
from odonata.studies import STUDIES

Run = Callable[..., subprocess.CompletedProcess[str]]
Phold = Callable[..., Any]

SHORT = ("--lps", "128", "--end", "30us", "--seed", "7")
LONG = ("--lps", "1024", "--end", "40s", "--seed", "7", "--progress")
"""Hours; a test that uses it ends it."""


@pytest.mark.alone
def test_help_is_instant(odonata: Run) -> None:
    best = 9.0
    for _ in range(15):  # on a busy machine some of them wait
        began = time.perf_counter()
        done = odonata("--help")
        best = min(best, time.perf_counter() - began)
        if best < 0.3:
            break
    assert done.returncode == 0
    assert "bench" in done.stdout
    assert best < 0.3


FORKED = """
import os, sys, traceback
from odonata.commands.cli import cli

HEAVY = {"numpy", "numba", "h5py", "mpi4py", "rich", "scipy", "jinja2", "matplotlib", "xarray",
         "pandas", "networkx", "optuna"}

def show(name):
    status = 1
    try:
        print(">>>")
        cli.main([*name.split(), "--help"], prog_name="odonata")
    except SystemExit as ending:
        status = ending.code
    except Exception:
        traceback.print_exc()
    if loaded := HEAVY & {*sys.modules}:
        print(f"{name} --help imports {loaded}", file=sys.stderr)
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)

for name in sys.argv[1:]:
    if not os.fork():
        show(name)
    _, status = os.wait()
    if status:
        sys.exit(1)
"""
"""Each command in a process that has imported no other."""


def test_help_of_every_command_is_there_and_imports_nothing_heavy() -> None:
    names = [*cli.lines, "bench phold", "bench dragonfly", *(f"study {name}" for name in STUDIES)]
    done = subprocess.run([sys.executable, "-c", FORKED, *names], check=False, text=True,
                          env=clean_environment(), capture_output=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    helps = done.stdout.split(">>>\n")[1:]
    for name, text in zip(names, helps, strict=True):
        assert f" {name} " in text.splitlines()[0] or name == "study load-latency"


def test_options_that_stand_for_keys_are_kept_as_the_keys_have_them() -> None:
    assert declared() == offered(), "python scripts/options.py --write"


def test_a_command_that_does_not_exist_is_refused_by_name(odonata: Run) -> None:
    done = odonata("rnu")
    assert done.returncode == 2
    assert "No such command 'rnu'" in done.stderr


@pytest.mark.alone
def test_a_thousand_events_take_under_two_seconds_warm(phold: Phold) -> None:
    words = ("--lps", "64", "--population", "16", "--end", "1.4us")
    phold(*words)
    best = 9.0
    for _ in range(10):  # on a busy machine some of them wait
        began = time.perf_counter()
        assert 900 < phold(*words)["events"] < 1100
        best = min(best, time.perf_counter() - began)
        if best < 2:
            break
    assert best < 2


def test_version(odonata: Run) -> None:
    import odonata as package

    assert odonata("--version").stdout == f"odonata, version {package.__version__}\n"


def test_colorama_leaves_nothing_behind_the_json() -> None:
    """Numba calls its `init`, which at exit resets the colours of a stdout that is a terminal, as
    that of a rank is under Open MPI, whatever mpirun's own output goes to."""
    code = "import pdes.jit, colorama; colorama.init(); print('{}')"
    ours, theirs = os.openpty()
    subprocess.run([sys.executable, "-c", code], stdout=theirs, env=clean_environment(), check=True)
    os.close(theirs)
    assert os.read(ours, 100) == b"{}\r\n"
    os.close(ours)


def test_json_has_what_was_promised(phold: Phold) -> None:
    printed = phold(*SHORT)
    assert {"events", "digest", "events_per_second", "ranks", "protocol", "wall_seconds"} <= set(
        printed
    )
    assert printed["ranks"] == 1
    assert re.fullmatch("[0-9a-f]{32}", printed["digest"])


def test_the_table_shows_the_same_run(odonata: Run, phold: Phold) -> None:
    shown = odonata("bench", "phold", *SHORT).stdout
    printed = phold(*SHORT)
    assert f"{printed['events']:,}" in shown
    assert printed["digest"][:12] in shown


@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("protocol", ["window", "null"])
def test_ranks_and_protocol_change_nothing(phold: Phold, ranks: int, protocol: str) -> None:
    """That two ranks and null messages do not, a run that was stopped shows below; that models and
    ranks of either protocol do not, `tests/parallel`."""
    alone, together = phold(*SHORT), phold(*SHORT, "--protocol", protocol, ranks=ranks)
    assert together["ranks"] == ranks
    assert (together["events"], together["digest"]) == (alone["events"], alone["digest"])


@pytest.mark.long
def test_the_compiler_changes_nothing(phold: Phold) -> None:
    short = ("--lps", "32", "--end", "3us", "--seed", "3")
    runs = phold(*short), phold(*short, "--debug"), phold(*short, ODONATA_JIT="0")
    assert runs[0]["events"] > 500
    assert len({run["digest"] for run in runs}) == 1


@pytest.mark.long
@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("protocol", ["window", "null"])
def test_a_checkpoint_and_a_restart_change_nothing(phold: Phold, ranks: int, protocol: str) -> None:
    words = (*SHORT, "--protocol", protocol)
    first = phold(*words, "--checkpoint-every", "7us", ranks=ranks)
    second = phold(*words, "--resume", ranks=ranks)
    assert first["checkpoint"].endswith("at-0000000000028000000")
    assert first["digest"] == second["digest"] == phold(*SHORT)["digest"]
    assert first["events"] == second["events"]


@pytest.mark.long
def test_a_comparison_with_one_rank_is_shown(odonata: Run) -> None:
    done = odonata("bench", "phold", *SHORT, "--compare", ranks=2)
    assert done.returncode == 0
    assert "the same digest" in done.stdout


def test_a_resumed_run_says_from_when(odonata: Run, phold: Phold) -> None:
    phold(*SHORT, "--checkpoint-every", "7us")
    assert "resumed at 28 us" in odonata("bench", "phold", *SHORT, "--resume").stdout


@pytest.mark.long
def test_a_checkpoint_goes_on_with_another_number_of_ranks(phold: Phold) -> None:
    phold(*SHORT, "--checkpoint-every", "7us")
    resumed = phold(*SHORT, "--resume", ranks=2)
    assert (resumed["ranks"], resumed["resumed_ps"]) == (2, 28_000_000)
    assert resumed["digest"] == phold(*SHORT)["digest"]


def running(process: subprocess.Popen[str]) -> None:
    """Wait until a run says how far it is."""
    assert process.stderr
    for line in process.stderr:
        if "events/s" in line:
            return
    raise AssertionError("it ended before it began")


@pytest.mark.parametrize(
    ("victim", "protocol"),
    [(1, "null"), *(pytest.param(*case, marks=pytest.mark.long)
                    for case in ((0, "window"), (0, "null"), (1, "window")))],
)  # fmt: skip
def test_a_killed_rank_ends_all_with_one_reason(tmp_path: Path, victim: int, protocol: str) -> None:
    token = f"--seed={os.getpid()}{victim}{len(protocol)}"
    words = ("bench", "phold", *LONG[:-3], token, "--progress", "--protocol", protocol)
    process = start(*words, ranks=2, cwd=tmp_path)
    running(process)
    ranks = pids(token)
    assert len(ranks) == 2
    os.kill(ranks[victim], signal.SIGKILL)
    began = time.perf_counter()
    _, stderr = process.communicate(timeout=PATIENCE)
    while pids(token):
        assert time.perf_counter() - began < PATIENCE
        time.sleep(0.05)
    assert process.returncode != 0
    reasons = [line for line in stderr.splitlines() if line.startswith("odonata:")]
    assert len(reasons) == 1
    assert f"rank {victim} (process {ranks[victim]} on " in reasons[0]


@pytest.mark.parametrize(
    ("ranks", "protocol", "number"),
    [
        pytest.param(1, "window", signal.SIGTERM, marks=pytest.mark.long),
        (2, "null", signal.SIGUSR1),
        pytest.param(2, "window", signal.SIGTERM, marks=pytest.mark.long),
        pytest.param(2, "null", signal.SIGTERM, marks=pytest.mark.long),
        pytest.param(2, "window", signal.SIGUSR1, marks=pytest.mark.long),
        pytest.param(3, "null", signal.SIGUSR1, marks=pytest.mark.long),
    ],
)
def test_a_stopped_run_resumes_to_the_same_end(
    phold: Phold, tmp_path: Path, ranks: int, protocol: str, number: signal.Signals
) -> None:
    words = ("--seed", "5", "--lps", "512", "--protocol", protocol)
    process = start(
        "bench", "phold", "--json", *words, "--end", "40s", "--progress", ranks=ranks, cwd=tmp_path
    )
    running(process)
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, stderr
    stopped = json.loads(stdout)
    assert not stopped["completed"]
    assert "--resume odonata-checkpoint" in stderr
    end = f"{stopped['time_ps'] + 50_000_000}ps"
    resumed = phold(*words, "--end", end, "--resume", ranks=ranks)
    assert resumed["completed"]
    assert resumed["digest"] == phold(*words, "--end", end)["digest"]


@pytest.mark.parametrize(
    ("ranks", "protocol"),
    [(2, "window"), *(pytest.param(3, it, marks=pytest.mark.long) for it in ("window", "null"))],
)
def test_a_signal_to_one_rank_stops_all(tmp_path: Path, ranks: int, protocol: str) -> None:
    token = f"--seed={os.getpid()}"
    words = ("bench", "phold", "--json", "--lps", "64", token, "--end", "40s", "--progress")
    process = start(*words, "--protocol", protocol, ranks=ranks, cwd=tmp_path)
    running(process)
    os.kill(pids(token)[-1], signal.SIGUSR1)
    stdout, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, stderr
    assert json.loads(stdout)["completed"] is False


@pytest.mark.parametrize(
    ("words", "ranks", "reason"),
    [
        pytest.param(("--lookahead", "0ns"), 2, "process 511 to 512 may take 0 ps",
                     marks=pytest.mark.long),
        (("--lps", "1"), 2, "2 ranks: this model has 1 partition, "
         "and a rank needs at least one; use at most 1 rank"),
        pytest.param(("--lps", "2"), 3, "3 ranks: this model has 2 partitions",
                     marks=pytest.mark.long),
        (("--lookahead", "2us"), 1, "0 <= lookahead <= mean"),
        (("--end", "soon"), 2, "'soon' is not a time"),
        (("--protocol", "optimistic"), 1, "'optimistic' is not one of"),
        (("--debug",), 2, "debug runs on one rank"),
        pytest.param(("--resume", "nowhere"), 2, "nowhere: there is no such checkpoint directory",
                     marks=pytest.mark.long),
    ],
)  # fmt: skip
def test_what_cannot_run_is_refused_once_and_without_a_traceback(
    odonata: Run, words: tuple[str, ...], ranks: int, reason: str
) -> None:
    done = odonata("bench", "phold", *words, ranks=ranks)
    assert done.returncode == 2
    assert done.stderr.count(reason) == 1
    assert "Traceback" not in done.stderr


@pytest.mark.long
def test_a_checkpoint_that_cannot_be_written_ends_all_with_the_reason(
    odonata: Run, tmp_path: Path
) -> None:
    (tmp_path / "taken").write_text("a file, not a directory")
    words = (*SHORT, "--checkpoint-every", "7us", "--checkpoint-dir", "taken")
    for ranks in (1, 2, 4):
        done = odonata("bench", "phold", *words, ranks=ranks)
        assert done.returncode == 1
        assert done.stderr.count("taken") == done.stderr.count("\n") == 1
        assert "Traceback" not in done.stderr


def test_zero_lookahead_is_fine_on_one_rank(phold: Phold) -> None:
    assert phold(*SHORT, "--lookahead", "0ns")["events"] > 0


@pytest.mark.long
def test_a_cold_compile_says_so_and_a_warm_start_does_not(odonata: Run, tmp_path: Path) -> None:
    words = ("bench", "phold", "--lps", "8", "--end", "1us")
    cold = odonata(*words, ranks=2, ODONATA_CACHE_DIR=str(tmp_path / "cache"))
    warm = odonata(*words, ranks=2, ODONATA_CACHE_DIR=str(tmp_path / "cache"))
    assert cold.stderr.count("compiling kernels") == 1
    assert "compiling" not in warm.stderr


def test_ranks_without_a_common_mpi_are_refused(odonata: Run) -> None:
    """A launcher of one MPI and an mpi4py of another make N runs of one rank each; say so."""
    done = odonata("bench", "phold", *SHORT, PMI_SIZE="1", SLURM_STEP_NUM_TASKS="1")
    assert done.returncode == 0
    done = odonata("bench", "phold", *SHORT, SLURM_STEP_NUM_TASKS="4", SLURM_PROCID="0")
    assert done.returncode == 2
    assert "the launcher started 4 ranks, but mpi4py sees 1" in done.stderr


def test_doctor_finds_this_installation_well(odonata: Run) -> None:
    done = odonata("doctor", "--json")
    assert done.returncode == 0, done.stdout
    findings = {f["what"]: f for f in json.loads(done.stdout)["findings"]}
    assert findings["two ranks"]["ok"] is True
    assert findings["cores"]["found"]


@pytest.mark.long
def test_doctor_says_what_is_ill(odonata: Run) -> None:
    own = str(Path(sys.executable).parent)  # where no launcher of a cluster is
    done = odonata("doctor", ODONATA_CACHE_DIR="/proc/nowhere", PATH=own)
    assert done.returncode == 1
    (cache,) = re.findall("compiler cache.*?(?=one rank)", done.stdout, re.DOTALL)
    assert "fails" in cache
    assert "ODONATA_CACHE_DIR" in cache
    assert re.search("MPI .* works ", done.stdout)
