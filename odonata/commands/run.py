"""`odonata run`: run an experiment, and print its results."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odonata.commands.group import SETTINGS
from odonata.commands.options import (
    debug_option,
    json_option,
    plugin_option,
    progress_option,
)
from odonata.commands.output import print_json, print_table
from odonata.experiment.units import show_count, show_simulated

if TYPE_CHECKING:
    from rich.table import Table

    from odonata.results.execution import Finished, RunOptions
    from odonata.results.kept_summary import Summary


@click.command("run", context_settings=SETTINGS)
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option("-o", "--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="The directory of its results.  [default: out/NAME]")  # fmt: skip
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE",
              help="A change to the file: machine.groups=33, jobs[0].nodes=32, jobs[1]=none to "
              "drop a job, 'jobs[+]={nodes=8}' to add one; repeatable.")  # fmt: skip
@plugin_option
@click.option("--resume", is_flag=True, help="Go on with the run in DIR from its last checkpoint, "
              "on any number of ranks (or from the beginning, if there is none).")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace the run in DIR.")
@click.option("--metrics/--no-metrics", default=True,
              help="Keep what is measured, or only print the sums.")  # fmt: skip
@click.option("--check", is_flag=True, help="Only say what would be run, or what is wrong.")
@click.option("--dedicated-scheduler", is_flag=True,
              help="Give rank 0 the scheduler and no groups.")  # fmt: skip
@click.option("--trace-packets", type=click.IntRange(1), metavar="N",
              help="Keep the path of every N-th packet of each node, with the times of each hop "
              "(`odonata packet` shows them).")  # fmt: skip
@debug_option
@progress_option
@json_option
def command(check: bool, as_json: bool, **options: Any) -> None:
    """Run an experiment FILE, and keep what it measures."""
    from odonata.results.execution import RunOptions, execute

    asked = RunOptions(**options)
    if check:
        show_plan(asked, as_json)
    else:
        show(execute(asked, forget_report), asked, as_json)


def forget_report(out: Path) -> None:
    """Removes the report of the run that was there, and nothing else."""
    (out / "report.html").unlink(missing_ok=True)
    drawn = out / "figures"
    if drawn.is_dir():
        from odonata.figures.report import every_name

        for name in every_name():
            for kind in ("png", "svg", "pdf"):
                (drawn / f"{name}.{kind}").unlink(missing_ok=True)


def tables(summary: Summary) -> list[Any]:
    """Returns what people read of a run."""
    from rich.text import Text

    from odonata.results.job_network import network_table
    from odonata.results.job_table import MOST_SHOWN, job_table
    from odonata.results.summary_rows import account_of

    it = summary.measured
    if it.performance is None:
        model = it.cluster
        heading, *about = account_of(model.trace, model.nodes, model.machine, model.overrun)
        return [Text(heading, "bold"), *(Text(line, "dim") for line in about), run_table(summary)]
    shown: list[Any] = [run_table(summary)]
    shown += [job_table(it.network.machine, it.records)] if it.records else []
    if it.networks and len(it.records) <= MOST_SHOWN:
        shown.append(network_table(it.networks, [job.name for job in it.records]))
        shown += _seen(summary)
    return shown


def show(finished: Finished | None, options: RunOptions, as_json: bool) -> None:
    """Print the results of a run, on one rank."""
    from odonata.results.facts import run_facts
    from odonata.results.kept_summary import Summary
    from pdes.transport import world

    if world().rank > 0:
        return
    if finished is None:
        show_complete(options, as_json)
        return
    if as_json:
        print_json(run_facts(finished))
    else:
        _print(Summary.of(finished))
    if not finished.result.completed:
        ranks = world().size
        on_ranks = f"mpiexec -n {ranks} " if ranks > 1 else ""
        without = "" if options.metrics else " --no-metrics"
        reached = show_simulated(finished.result.time_ps, finished.result.tick)
        print(f"odonata: stopped at {reached}; go on with: {on_ranks}odonata run --resume "
              f"-o {finished.out}{without}", file=sys.stderr)  # fmt: skip


def show_complete(options: RunOptions, as_json: bool) -> None:
    """Print the results of a run that had come to its end before: what it printed then."""
    from odonata.results.execution import asked
    from odonata.results.kept_summary import Summary, kept

    experiment, out = asked(options)
    print(f"odonata: {out}: is complete already; this is its summary", file=sys.stderr)
    if as_json:
        print_json(kept(out, experiment))
    else:
        _print(Summary.of_files(out, experiment))


def _print(summary: Summary) -> None:
    """Print the tables of a run."""
    plain = {} if summary.measured.performance is not None else {"highlight": False}
    print_table(*tables(summary), markup=False, **plain)


def show_plan(options: RunOptions, as_json: bool) -> None:
    """Print what would be run."""
    from odonata.experiment.experiment import JobExperiment
    from odonata.results.execution import asked
    from pdes.transport import together, world

    experiment, out = together(world(), lambda: asked(options))
    if world().rank > 0:
        return
    end = experiment.run.end
    samples = None if end is None else -(-end // experiment.metrics.interval_ps)
    facts: dict[str, Any] = {"name": experiment.name, "out": str(out)}
    if isinstance(experiment, JobExperiment):
        model = experiment.model()
        facts |= {"nodes": model.nodes, "jobs": len(model.trace)}
        parts = [f"{len(model.trace):,} jobs on {model.nodes:,} nodes"]
    else:
        m = experiment.machine
        facts |= {"nodes": m.n_nodes, "routers": m.n_routers}
        parts = [f"{m.n_nodes:,} nodes", f"{m.n_routers:,} routers"]
        parts += (
            [f"{len(experiment.jobs):,} job{'s' * (len(experiment.jobs) > 1)}"]
            if experiment.jobs
            else []
        )
    if as_json:
        print_json(facts | {"samples": samples, "parameters": experiment.model().parameters()})
        return
    print(experiment.to_toml(), end="", flush=True)
    parts += [] if samples is None else [f"{samples:,} samples"]
    print(f"odonata: this can be run: {', '.join(parts)}, into {out}", file=sys.stderr)


def run_table(summary: Summary) -> Table:
    """Returns a dozen rows; the report has the rest."""
    from rich.table import Table

    from odonata.results.summary_rows import explained, sections

    it, known = summary.measured, summary.known
    shown = Table(title=_title(summary), title_justify="left", show_header=False, min_width=64)
    shown.add_column(no_wrap=True)
    shown.add_column(justify="right")
    shown.add_column(min_width=26)
    energy = _energy(summary)
    for rows in sections(it, known["time_ps"], known["completed"], energy):
        for row in rows:
            shown.add_row(*row)
        shown.add_section()
    speed = f"{show_count(summary.speed or 0.0)} jobs/s"
    if it.performance is not None:
        speed = f"{show_count(known.get('events_per_second', 0.0))}/s events"
        shown.caption = explained(it.performance) or None
        shown.caption_justify = "left"
    _add_engine(shown, summary, speed)
    return shown


def _title(summary: Summary) -> str:
    it, ranks = summary.measured, summary.known["ranks"]
    made = it.experiment
    if it.performance is not None:
        return f"{made.name} on {ranks} rank{'s' * (ranks > 1)}"
    parts = [it.cluster.scheduling, *[it.cluster.allocation] * bool(it.cluster.machine)]
    parts += [] if made.power is None else [made.power.policy]
    return f"{made.name}: {', '.join(parts)}"


def _energy(summary: Summary) -> list[tuple[str, str, str]]:
    """Returns a row on the energy of the network, where power was simulated and its ports kept."""
    it = summary.measured
    if it.performance is None or it.power is None:
        return []
    from odonata.results.network_power import energy_rows
    from odonata.results.run import Run

    with Run(summary.out) as run:
        return energy_rows(run)


def _seen(summary: Summary) -> list[Table]:
    """Returns the table of what the scheduler saw of the network, where that was kept."""
    if summary.measured.network.telemetry is None or not summary.metrics:
        return []
    from odonata.results.run import Run
    from odonata.results.seen import seen_table, unseen

    with Run(summary.out) as run:
        return [seen_table(run)] if any(run.seen) or unseen(run) else []


def _add_engine(shown: Table, summary: Summary, speed: str) -> None:
    """Add what is to be known of the run itself, as far as it was kept."""
    known = summary.known
    if "wall_seconds" in known:
        shown.add_row("wall time", f"{known['wall_seconds']:.2f} s", speed)
        seconds = known["seconds"]
        if part := seconds["metrics"] / (sum(seconds.values()) or 1.0):
            where = f"{_size(summary.out)} in {summary.out}"
            shown.add_row("metrics", f"{part:.1%}", f"of that; {where}")
    about = "the same on any number of ranks" if known["completed"] else "of the state at the stop"
    shown.add_row("digest", (known["digest"] or "-")[:12], about)


def _size(out: Path) -> str:
    return f"{sum(path.stat().st_size for path in out.glob('*.h5')) / 1e6:.1f} MB"
