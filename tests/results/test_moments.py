"""Signals at every moment at which a run touches a file: after a resume on another number of ranks
its digest, its metrics and its tables are those of a run that nobody disturbed."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

import moments
import pytest
from conftest import NEEDED, PATIENCE, clean_environment
from zygote import Zygote

from odonata.commands.doctor import find_mpiexec
from odonata.results.run import open as open_run

PACKET = """
[machine]
groups = 3
routers = 2
nodes = 2
global_links = 1
[network]
routing = "adaptive"
[[jobs]]
nodes = 4
pattern = "all-to-all"
message = "256 B"
iterations = 1
[[jobs]]
nodes = 6
pattern = "allreduce"
iterations = 1
arrival = "3 us"
[power]
idle = "100 W"
active = "300 W"
interval = "5 us"
[run]
duration = "15 us"
checkpoint_every = "6 us"
[metrics]
interval = "3 us"
flush = "60 s"
"""
JOB = """
fidelity = "job"
[trace]
model = "lublin"
jobs = 12
nodes = 72
load = 0.9
[machine]
preset = "kim-72"
[scheduler]
order = "easy"
allocation = "simple"
[power]
idle = "100 W"
active = "300 W"
interval = "30 min"
[run]
checkpoint_every = "2 h"
[metrics]
interval = "1 h"
flush = "60 s"
"""
EXPERIMENTS = {"packet": PACKET, "job": JOB}
TABLES = ("jobs.csv", "jobs.swf")
SIGNALS = ("SIGTERM", "SIGUSR1", "SIGINT", "SIGKILL")
STATUSES = {
    "SIGTERM": (0, 143, -15),
    "SIGUSR1": (0, 138, -10),
    "SIGINT": (0, 130, -2),
    "SIGKILL": (9, -9),
}
"""With which status a run may end: 0 where it could stop at a checkpoint, or had nothing left."""


@pytest.fixture(autouse=True)
def heeded() -> Iterator[None]:
    """Have processes heed SIGINT, also where these tests were started with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class Bench:
    """Runs of one experiment, with the JIT off, and what an undisturbed one gives."""

    def __init__(self, place: Path, zygote: Zygote, fidelity: str) -> None:
        self.place, self._zygote = place, zygote
        (place / "mine.toml").write_text(f'name = "mine"\n{EXPERIMENTS[fidelity]}')
        self.go("run", "mine.toml", "-o", "whole")

    def run(
        self, *words: str, ranks: int = 1, order: Sequence[str] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Run `odonata`, by order of `moments` if there is one."""
        environment = {**clean_environment(), "ODONATA_JIT": "0"}
        if ranks == 1:
            if order:
                words = ("-c", "import sys, moments; moments.run(*sys.argv[1:])", *order, *words)
            return self._zygote.run(words, self.place, environment, PATIENCE)
        mpiexec = find_mpiexec()
        assert mpiexec, NEEDED
        program = [moments.__file__, *order] if order else ["-m", "odonata"]
        return subprocess.run(
            [mpiexec, "-n", str(ranks), sys.executable, *program, *words],
            capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=self.place,
            env=environment,
        )  # fmt: skip

    def go(self, *words: str, ranks: int = 1) -> str:
        done = self.run(*words, ranks=ranks)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def clear(self) -> None:
        shutil.rmtree(self.place / "out", ignore_errors=True)

    def steps(self, ranks: int, *words: str) -> list[list[str]]:
        """Returns the steps of each rank in a run into `out` that nobody disturbs."""
        done = self.run(*words, ranks=ranks, order=("list", str(self.place / "steps")))
        assert done.returncode == 0, done.stderr
        return [(self.place / f"steps.{rank}").read_text().splitlines() for rank in range(ranks)]

    def disturbed(
        self, number: str, rank: int, step: int | str, ranks: int, *words: str
    ) -> list[str]:
        """Send a signal in a run into `out`. Returns what is wrong with its end."""
        done = self.run(*words, ranks=ranks, order=(f"{number}:{rank}:{step}",))
        said = done.stderr
        reasons = [line for line in said.splitlines() if line.startswith("odonata:")
                   and not line.startswith("odonata: warning")]  # fmt: skip
        wrong = []
        if done.returncode not in STATUSES[number]:
            wrong.append(f"status {done.returncode}: {said}")
        if "Traceback" in said:
            wrong.append(f"a traceback: {said}")
        if ranks > 1 and done.returncode and len(reasons) != 1:
            wrong.append(f"{len(reasons)} reasons: {said}")
        return wrong

    def different(self, ranks: int) -> list[str]:
        """Go on with what is in `out`. Returns in what it then is not as if undisturbed."""
        begun = (self.place / "out" / "experiment.toml").exists()
        words = () if begun else ("mine.toml",)
        done = self.run("run", *words, "--resume", "-o", "out", ranks=ranks)
        if done.returncode or "Traceback" in done.stderr:
            return [f"the resume ends with {done.returncode}: {done.stderr}"]
        compared = self.run("diff", "out", "whole")
        wrong = [] if compared.stdout.startswith("the same") else [compared.stdout]
        with open_run(self.place / "out") as ours, open_run(self.place / "whole") as theirs:
            if not ours.complete or ours.digest != theirs.digest:
                wrong.append(f"digest {ours.digest}, not {theirs.digest}")
        for name in TABLES:
            ours_at, theirs_at = (self.place / it / name for it in ("out", "whole"))
            if theirs_at.exists() and ours_at.read_text() != theirs_at.read_text():
                wrong.append(f"{name} is another")
        left = [path.name for path in (self.place / "out").iterdir()
                if path.name.startswith((".part", ".rank", ".ranks", ".run"))]  # fmt: skip
        return wrong + [f"left behind: {name}" for name in left]


@pytest.fixture(scope="module")
def benches(
    tmp_path_factory: pytest.TempPathFactory, zygotes: dict[str, Zygote]
) -> Callable[[str], Bench]:
    return cache(lambda fidelity: Bench(tmp_path_factory.mktemp(fidelity), zygotes["0"], fidelity))


@pytest.fixture
def bench(benches: Callable[[str], Bench]) -> Callable[[str], Bench]:
    def cleared(fidelity: str) -> Bench:
        found = benches(fidelity)
        for name in ("out", "begun"):
            shutil.rmtree(found.place / name, ignore_errors=True)
        return found

    return cleared


def chosen(steps: Sequence[str], most: int) -> list[int]:
    """Returns steps of every kind: the first of its name, whatever numbers it has, and others that
    are spread over all of that name."""
    places: dict[str, list[int]] = {}
    for place, step in enumerate(steps):
        places.setdefault(re.sub(r"\d+", "", step), []).append(place)
    return sorted({found[i * (len(found) - 1) // max(1, most - 1)]
                   for found in places.values() for i in range(most)})  # fmt: skip


def attack(
    bench: Bench, ranks: int, then: int, signals: Sequence[str], most: int, begun: str = ""
) -> None:
    """Send signals, one after the other, at steps of each rank, and go on with other ranks. With
    `begun` the run that is disturbed is one that goes on: its first part was killed before the last
    step of that name, on `then` ranks."""
    words: tuple[str, ...] = ("run", "mine.toml", "-o", "out")
    if begun:
        steps = bench.steps(then, *words)[0]
        bench.clear()
        last = max(place for place, step in enumerate(steps) if step.startswith(begun))
        bench.disturbed("SIGKILL", 0, last, then, *words)
        shutil.copytree(bench.place / "out", bench.place / "begun")
        words = ("run", "--resume", "-o", "out")
    failed, turn = [], 0
    for rank, steps in enumerate(bench.steps(ranks, *words)):
        for step in chosen(steps, most):
            number = signals[turn % len(signals)]
            turn += 1
            bench.clear()
            if begun:
                shutil.copytree(bench.place / "begun", bench.place / "out")
            wrong = bench.disturbed(number, rank, step, ranks, *words) + bench.different(then)
            case = f"{number} to rank {rank} of {ranks} before step {step} ({steps[step]})"
            failed += [f"{case}: {it}" for it in wrong]
            print(f"{case}, then {then} ranks: {wrong or 'kept'}", flush=True)
    assert not failed, "\n".join(failed)


# -- what is tried each time


def test_a_stop_while_a_checkpoint_is_put_in_place(bench: Callable[[str], Bench]) -> None:
    """The stop comes at the time of a sample; power is measured then too, as the next event."""
    runs, words = bench("job"), ("run", "mine.toml", "-o", "out")
    assert runs.disturbed("SIGTERM", 0, "rename .partial", 1, *words) == []
    assert runs.different(1) == []


@pytest.mark.parametrize("number", ["SIGTERM", pytest.param("SIGKILL", marks=pytest.mark.long)])
def test_a_run_stopped_before_its_first_sample_can_be_looked_at(
    bench: Callable[[str], Bench], number: str
) -> None:
    runs, words = bench("job"), ("run", "mine.toml", "-o", "out")
    assert runs.disturbed(number, 0, "seal: done", 1, *words) == []
    if number == "SIGTERM":
        for command in (("report", "out"), ("compare", "out", "whole"), ("watch", "out")):
            done = runs.run(*command)
            assert done.returncode == 0, done.stderr
            assert done.stderr == ""
    assert runs.different(1) == []


def test_ranks_killed_while_they_create_their_files_begin_anew(
    bench: Callable[[str], Bench],
) -> None:
    """There is no checkpoint, and one file of two."""
    runs, words = bench("packet"), ("run", "mine.toml", "-o", "out")
    assert runs.disturbed("SIGKILL", 1, "rename .rank-0001", 2, *words) == []
    assert runs.different(1) == []


# -- what is tried at length


@pytest.mark.long
@pytest.mark.parametrize("number", ["SIGTERM", "SIGINT", "SIGKILL"])
@pytest.mark.parametrize("fidelity", EXPERIMENTS)
def test_one_rank_at_every_moment(
    bench: Callable[[str], Bench], fidelity: str, number: str
) -> None:
    attack(bench(fidelity), 1, 1, (number,), 3)


@pytest.mark.long
@pytest.mark.parametrize(("ranks", "then"), [(1, 2), (2, 1), (3, 1), (2, 3)])
@pytest.mark.parametrize("fidelity", EXPERIMENTS)
def test_ranks_at_every_moment(
    bench: Callable[[str], Bench], fidelity: str, ranks: int, then: int
) -> None:
    attack(bench(fidelity), ranks, then, SIGNALS, 1)


@pytest.mark.long
@pytest.mark.parametrize(("ranks", "then"), [(1, 1), (2, 1), (1, 2)])
@pytest.mark.parametrize("begun", ["sample", "rename .run.h5"])
@pytest.mark.parametrize("fidelity", EXPERIMENTS)
def test_a_run_that_goes_on_at_every_moment(
    bench: Callable[[str], Bench], fidelity: str, begun: str, ranks: int, then: int
) -> None:
    attack(bench(fidelity), ranks, then, SIGNALS, 1, begun)
