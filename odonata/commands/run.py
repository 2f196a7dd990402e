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

    from odonata.experiment.experiment import Experiment, JobExperiment
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
        from odonata.figures.contents import FIGURES, OF_JOBS, OF_TELEMETRY
        from odonata.figures.market import PICTURES as OF_MARKET
        from odonata.figures.power import PICTURES as OF_POWER
        from odonata.figures.schedule import PICTURES

        names = [picture.name for picture in (*FIGURES, *OF_JOBS, *OF_TELEMETRY)]
        names += [picture.name for picture in PICTURES] + [picture.name for picture in OF_POWER]
        names += [picture.name for picture in OF_MARKET]
        for name in names:
            for kind in ("png", "svg", "pdf"):
                (drawn / f"{name}.{kind}").unlink(missing_ok=True)


def tables(summary: Summary) -> list[Any]:
    """Returns what people read of a run."""
    from odonata.experiment.experiment import JobExperiment
    from odonata.results.job_network import network_table
    from odonata.results.job_table import job_table

    made, jobs = summary.experiment, summary.jobs
    if isinstance(made, JobExperiment):
        return schedule_table(summary, made)
    shown: list[Any] = [run_table(summary, made)]
    shown += [job_table(made.machine, jobs)] if jobs else []
    if summary.networks:
        shown.append(network_table(summary.networks, [job.name for job in jobs]))
        shown += _seen(summary, made)
    return shown


def schedule_table(summary: Summary, made: JobExperiment) -> list[Any]:
    """Returns the heading and the table of a run of the job fidelity."""
    from rich.table import Table
    from rich.text import Text

    from odonata.results.market_measures import market_rows
    from odonata.results.power_measures import power_rows
    from odonata.results.schedule_rows import account_of, rows_of
    from odonata.results.schedule_run import ScheduleRun

    model = made.model()
    heading, *about = account_of(model.trace, model.nodes, model.machine, model.overrun)
    how = f"{made.name}: {model.scheduling}" + f", {model.allocation}" * bool(model.machine)
    how += f", {made.power.policy}" if made.power is not None else ""
    shown = Table(title=how, title_justify="left", show_header=False, min_width=64)
    shown.add_column()
    shown.add_column(justify="right")
    shown.add_column(min_width=26)
    if summary.metrics:
        with ScheduleRun(summary.out) as run:
            for row in rows_of(run.measures, run.schedule):
                shown.add_row(*row)
            if run.power_measures is not None:
                shown.add_section()
                for row in power_rows(run.power_measures):
                    shown.add_row(*row)
            if run.market is not None:
                shown.add_section()
                for row in market_rows(run.market.measures, run.market):
                    shown.add_row(*row)
        shown.add_section()
    _add_engine(shown, summary, f"{show_count(summary.speed or 0.0)} jobs/s")
    return [Text(heading, "bold"), *(Text(line, "dim") for line in about), shown]


def show(finished: Finished | None, options: RunOptions, as_json: bool) -> None:
    """Print the results of a run, on one rank."""
    from odonata.results.kept_summary import Summary
    from odonata.results.run_facts import run_facts
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
    from odonata.experiment.experiment import JobExperiment

    plain = {"highlight": False} if isinstance(summary.experiment, JobExperiment) else {}
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


def run_table(summary: Summary, experiment: Experiment) -> Table:
    """Returns a dozen rows; the report has the rest."""
    from rich.table import Table

    from odonata.results.summary_rows import explained, of_run

    known, measured = summary.known, summary.measured
    assert measured is not None
    ranks = f"{known['ranks']} rank{'s' * (known['ranks'] > 1)}"
    shown = Table(title=f"{experiment.name} on {ranks}", title_justify="left",
                  show_header=False, min_width=64)  # fmt: skip
    shown.add_column()
    shown.add_column(justify="right")
    shown.add_column(min_width=26)
    for row in of_run(experiment, measured, known["time_ps"], known["completed"], summary.jobs):
        shown.add_row(*row)
    shown.caption = explained(measured) or None
    shown.caption_justify = "left"
    for row in _watts(summary):
        shown.add_row(*row)
    shown.add_section()
    _add_engine(shown, summary, f"{show_count(known.get('events_per_second', 0.0))}/s events")
    return shown


def _watts(summary: Summary) -> list[tuple[str, str, str]]:
    """Returns what was measured of power in a run of packets, where it was kept."""
    if summary.experiment.power is None or not summary.metrics:
        return []
    from odonata.results.network_power import watts_rows
    from odonata.results.run import Run

    with Run(summary.out) as run:
        return watts_rows(run)


def _seen(summary: Summary, made: Experiment) -> list[Table]:
    """Returns the table of what the scheduler saw of the network, where that was kept."""
    if made.model().telemetry is None or not summary.metrics:
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
