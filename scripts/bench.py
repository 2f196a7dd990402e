"""How fast the engine is: PHOLD on one rank and on several, and where the time goes.

    python scripts/bench.py [--ranks 1,2] [--protocol window,null] [--repeat 5] [--json]
    python scripts/bench.py --metrics [--ranks 1,2] [--repeat 5]     # what streaming costs
    python scripts/bench.py --telemetry [--ranks 1,2] [--repeat 5]   # what counters cost
    python scripts/bench.py --decisions [--repeat 5]                 # a million made in Python

Runs of the different kinds take turns, so that a machine that is shared slows all of them alike;
the median of each kind is shown, and ratios are between medians of one session.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from odonata.agents.reports import USUAL_INTERVAL_PS
from odonata.commands.doctor import find_mpiexec

HERE = Path(__file__).parent
STREAMED = HERE / "experiments" / "uniform.toml"
TOLD = HERE / "experiments" / "jobs.toml"
TEN_TIMES = " ".join(
    f"--set jobs[{job}].iterations={many}" for job, many in enumerate((40, 200, 60, 300, 20))
)
"""Ten times as many iterations as the jobs of TOLD have: a run of seconds."""
WORKLOAD = (
    "--lps 1024 --population 16 --remote 0.25 --lookahead 500ns --mean 1us --end 300us --seed 7"
)
ROSS = 0.87e6
"""Events/s of ROSS (C, sequential) on this workload, measured on a Neoverse-N1 core; on another
kind of core the ratio below compares two machines and says little."""


def odonata(words: str, ranks: int) -> Any:
    prefix = [find_mpiexec() or "mpiexec", "-n", str(ranks)] if ranks > 1 else []
    command = [*prefix, sys.executable, "-m", "odonata", *words.split(), "--no-progress"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def measure(kinds: list[tuple[int, str]], repeat: int) -> dict[tuple[int, str], list[Any]]:
    runs: dict[tuple[int, str], list[Any]] = {kind: [] for kind in kinds}
    for turn in range(repeat + 1):
        for ranks, protocol in kinds:
            run = odonata(f"bench phold {WORKLOAD} --protocol {protocol} --json", ranks)
            if turn:  # the first turn warms caches, of kernels and of files
                runs[ranks, protocol].append(run)
    return runs


def typical(runs: list[Any]) -> Any:
    """Returns the run of median speed."""
    return sorted(runs, key=lambda run: run["events_per_second"])[len(runs) // 2]


def show(runs: dict[tuple[int, str], list[Any]]) -> None:
    kinds = {kind: typical(several) for kind, several in runs.items()}
    alone = next((run for (ranks, _), run in kinds.items() if ranks == 1), None)
    table = Table(title=f"odonata bench phold {WORKLOAD}", title_justify="left")
    for column in ("ranks", "protocol", "events/s", "spread", "vs 1 rank", "vs ROSS",
                   "handlers", "queue", "exchange", "waiting", "MB"):  # fmt: skip
        table.add_column(column, justify="left" if column == "protocol" else "right")
    for (ranks, protocol), run in kinds.items():
        speeds = [one["events_per_second"] for one in runs[ranks, protocol]]
        spread = (max(speeds) - min(speeds)) / statistics.median(speeds)
        speed = run["events_per_second"]
        seconds = run["seconds"]
        table.add_row(
            str(ranks), protocol, f"{speed / 1e6:.2f} M", f"{spread:.0%}",
            f"{speed / alone['events_per_second']:.2f}×" if alone else "",
            f"{speed / ROSS:.1f}×",
            *(f"{seconds[what]:.3f} s" for what in ("handlers", "queue", "exchange", "waiting")),
            f"{run['max_rss_mb']:.0f}",
        )  # fmt: skip
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(table)
    digests = {run["digest"] for several in runs.values() for run in several}
    console.print("one digest for all runs" if len(digests) == 1 else f"DIGESTS DIFFER: {digests}")
    console.print(f"{platform.machine()}, {os.cpu_count()} cores; ROSS: 0.87 M/s on a Neoverse-N1")


def measure_pairs(
    experiment: Path, options: tuple[str, str], ranks: int, repeat: int
) -> tuple[list[Any], list[Any]]:
    """Run an experiment with one and with the other options, in turns."""
    runs: tuple[list[Any], list[Any]] = ([], [])
    with tempfile.TemporaryDirectory() as out:
        for turn in range(repeat + 1):
            for some, words in zip(runs, options, strict=True):
                run = odonata(f"run {experiment} -o {out}/a --overwrite --json {words}", ranks)
                if turn:
                    some.append(run)
    return runs


def show_pairs(
    experiment: Path, options: tuple[str, str], what: str, ranks: list[int], repeat: int
) -> None:
    """Show what something costs: runs without it and with it, whose jobs and packets are the
    same."""
    table = Table(title=f"odonata run {experiment.relative_to(HERE.parent)}", title_justify="left")
    for column in ("ranks", f"without {what}", "with", "ratio", "of each pair", "events"):
        table.add_column(column, justify="right")
    for n in ranks:
        runs = measure_pairs(experiment, options, n, repeat)
        times = {run["time_ps"] for some in runs for run in some}
        assert len(times) == 1, f"runs end at {times} ps"
        walls = [[run["wall_seconds"] for run in some] for some in runs]
        without, with_it = map(statistics.median, walls)
        pairs = sorted(b / a for a, b in zip(*walls, strict=True))
        events = runs[1][0]["events"] / runs[0][0]["events"]
        table.add_row(str(n), f"{without:.3f} s", f"{with_it:.3f} s", f"{with_it / without:.3f}",
                      f"{pairs[0]:.3f} .. {pairs[-1]:.3f}", f"{events:.3f}")  # fmt: skip
    Console(width=None if sys.stdout.isatty() else 100).print(table)


def show_metrics(ranks: list[int], repeat: int) -> None:
    show_pairs(STREAMED, ("--no-metrics", ""), "metrics", ranks, repeat)


def show_telemetry(ranks: list[int], repeat: int) -> None:
    untold = f"--no-metrics {TEN_TIMES}"
    told = f"{untold} --set scheduler.telemetry={USUAL_INTERVAL_PS}ps"
    show_pairs(TOLD, (untold, told), "telemetry", ranks, repeat)


def show_decisions(repeat: int) -> None:
    """Run a million decisions over ten simulated years, each of which schedules one event, on one
    rank: the probe of the tests."""
    sys.path.insert(0, str(HERE.parent / "tests"))
    from probe import YEAR, Probe

    from pdes.driver import run
    from pdes.transport import Serial

    model = Probe(mean=Probe.mean // 50)
    runs, per_cpu = [], []
    for _ in range(repeat):
        began = time.process_time()
        runs.append(run(model, 10 * YEAR, transport=Serial()))
        per_cpu.append(runs[-1].events / (time.process_time() - began))
    assert len({one.digest for one in runs}) == 1, "digests differ"
    speeds = sorted(one.events_per_second for one in runs)
    print(
        f"{runs[0].events:,} decisions over ten simulated years: "
        f"{statistics.median(speeds):,.0f} decisions/s ({speeds[0]:,.0f} .. {speeds[-1]:,.0f}), "
        f"{statistics.median(per_cpu):,.0f} per second of CPU time"
    )


def show_start() -> None:
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "odonata", "--help"], stdout=subprocess.DEVNULL, check=True
    )
    helped = time.perf_counter()
    run = odonata("bench phold --lps 64 --end 1.4us --json", 1)
    print(
        f"odonata --help: {helped - began:.2f} s; {run['events']} events from start to finish: "
        f"{time.perf_counter() - helped:.2f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ranks", default="1,2", help="numbers of ranks (default 1,2)")
    parser.add_argument("--protocol", default="window,null", help="default window,null")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each kind (default 5)")
    parser.add_argument(
        "--metrics", action="store_true", help="time an experiment with and without"
    )
    parser.add_argument(
        "--telemetry", action="store_true", help="time jobs with and without reports of counters"
    )
    parser.add_argument(
        "--decisions", action="store_true", help="time a model whose every event is a decision"
    )
    parser.add_argument("--json", action="store_true", help="every run, as one JSON list")
    asked = parser.parse_args()
    for wanted, shown in ((asked.metrics, show_metrics), (asked.telemetry, show_telemetry)):
        if wanted:
            shown([*map(int, asked.ranks.split(","))], asked.repeat)
            return
    if asked.decisions:
        show_decisions(asked.repeat)
        return
    kinds = [
        (ranks, protocol)
        for ranks in map(int, asked.ranks.split(","))
        for protocol in asked.protocol.split(",")
        if ranks > 1 or protocol == asked.protocol.split(",")[0]
    ]
    runs = measure(kinds, asked.repeat)
    if asked.json:
        print(json.dumps([run for several in runs.values() for run in several], indent=1))
        return
    show(runs)
    show_start()


if __name__ == "__main__":
    main()
