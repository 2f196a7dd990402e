"""`odonata run`: run an experiment, and say what it did."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from odonata.experiment.units import show_count, show_time
from odonata.results import job_table as accounts
from odonata.results.execution import Finished, Request, asked
from odonata.results.performance import performance
from odonata.results.summary_rows import of_run
from pdes.transport import together, world

UNTOLD = ("outcome", "parameters")
"""Of a result: in the files, and in the experiment."""
OF_TRAFFIC = ("offered", "backlog_growth", "saturated")
"""Of a performance: what means nothing where jobs send when they are ready to."""


def forget_report(out: Path) -> None:
    """Removes the report of the run that was there, and nothing else."""
    (out / "report.html").unlink(missing_ok=True)
    drawn = out / "figures"
    if drawn.is_dir():
        from odonata.figures.contents import FIGURES, OF_JOBS

        for picture in (*FIGURES, *OF_JOBS):
            for kind in ("png", "svg", "pdf"):
                (drawn / f"{picture.name}.{kind}").unlink(missing_ok=True)


def to_json(finished: Finished) -> str:
    network = finished.experiment.network
    told = {
        "name": finished.experiment.name,
        "out": str(finished.out),
        **{k: v for k, v in finished.result.in_ps().items() if k not in UNTOLD},
        **{k: v for k, v in vars(performance(network, finished.result)).items()
           if not (network.workload and k in OF_TRAFFIC)},
    }  # fmt: skip
    if network.workload:
        told["jobs"] = accounts.to_json(network.machine, finished.jobs)
    return json.dumps(told, indent=1)


def show(finished: Finished | None, request: Request, as_json: bool) -> None:
    """Of several ranks one speaks."""
    if world().rank > 0:
        return
    if finished is None:
        print(f"odonata: {request.out}: is complete already", file=sys.stderr)
        if as_json:
            print(json.dumps({"out": str(request.out), "completed": True}))
        return
    if as_json:
        print(to_json(finished))
    else:
        console = Console(markup=False)
        console.print(table(finished))
        if finished.jobs:
            console.print(accounts.table(finished.experiment.network.machine, finished.jobs))
    if not finished.result.completed:
        print(f"odonata: stopped at {show_time(finished.result.time_ps)}; go on with: odonata "
              f"run --resume -o {finished.out}", file=sys.stderr)  # fmt: skip


def show_plan(request: Request, as_json: bool) -> None:
    experiment, out = together(world(), lambda: asked(request))
    if world().rank > 0:
        return
    m, end = experiment.network.machine, experiment.end
    samples = None if end is None else -(-end // experiment.metrics.interval_ps)
    if as_json:
        print(json.dumps({"name": experiment.name, "out": str(out), "nodes": m.n_nodes,
                          "routers": m.n_routers, "samples": samples,
                          "parameters": experiment.network.parameters()}, indent=1))  # fmt: skip
        return
    print(experiment.to_toml(), end="", flush=True)
    parts = [f"{m.n_nodes:,} nodes", f"{m.n_routers:,} routers"]
    if experiment.network.workload:
        parts.append(f"{len(experiment.network.workload.jobs):,} jobs")
    parts += [] if samples is None else [f"{samples:,} samples"]
    print(f"odonata: this can be run: {', '.join(parts)}, into {out}", file=sys.stderr)


def table(finished: Finished) -> Table:
    """A dozen lines; the report has the rest."""
    result, experiment = finished.result, finished.experiment
    told = performance(experiment.network, result)
    ranks = f"{result.ranks} rank{'s' * (result.ranks > 1)}"
    shown = Table(title=f"{experiment.name} on {ranks}", title_justify="left",
                  show_header=False, min_width=64)  # fmt: skip
    shown.add_column()
    shown.add_column(justify="right")
    shown.add_column(min_width=26)
    for row in of_run(experiment, told, result.time_ps, result.completed, finished.jobs):
        shown.add_row(*row)
    shown.add_section()
    speed = f"{show_count(result.events_per_second)}/s"
    shown.add_row("wall time", f"{result.wall_seconds:.2f} s", f"{speed} events")
    if part := result.seconds["metrics"] / (sum(result.seconds.values()) or 1.0):
        shown.add_row("metrics", f"{part:.1%}", f"of that; {_size(finished.out)} in {finished.out}")
    shown.add_row("digest", result.digest[:12], "the same on any number of ranks")
    return shown


def _size(out: Path) -> str:
    return f"{sum(path.stat().st_size for path in out.glob('*.h5')) / 1e6:.1f} MB"
