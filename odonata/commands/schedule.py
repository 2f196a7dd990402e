"""`odonata schedule`: run the jobs of a trace under one discipline, or several side by side."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odonata.commands.group import SETTINGS
from odonata.commands.options import Quantity, json_option, plot_option, plugin_option
from odonata.commands.output import beside, command_seconds, print_json
from odonata.commands.schedule_asked import (
    PARTS,
    check_outputs,
    label,
    machine_of,
    part_of,
    powers_of,
    several,
)
from odonata.experiment.terminal import plain_console
from odonata.experiment.units import show_count, show_duration, time_us
from pdes import launcher
from pdes.errors import Fault, Refused

if TYPE_CHECKING:
    from odonata.cluster.model import Cluster
    from odonata.jobs.metering import PowerRecord
    from odonata.jobs.schedule import Schedule
    from odonata.results.power_measures import PowerMeasures
    from odonata.results.recorded import Reproduction
    from odonata.results.schedule_measures import Measures
    from odonata.traces.trace import Trace
    from pdes.driver import Result

DURATION = Quantity("TIME", time_us)


@click.command("schedule", context_settings=SETTINGS)
@click.argument("trace", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--model", type=click.STRING, help="A model that makes jobs, in place of TRACE: "
              "poisson, lublin, mira, or rmap-small, -large or -random.")  # fmt: skip
@click.option("--jobs", type=int, help="How many jobs the model makes.")
@click.option("--nodes", type=int, help="Nodes of the machine; larger jobs are dropped.  [default: "
              "the machine's, or those that the trace tells of]")  # fmt: skip
@click.option("--scheduling", default="easy", show_default=True, metavar="NAMES",
              help="Which waiting jobs start; several with commas. Parameters follow a colon: "
              "wfp:backfill=none. `odonata policies` lists them.")  # fmt: skip
@click.option("--machine", metavar="PRESET", help="Place jobs on this dragonfly: a preset, or "
              "p,a,h,g (nodes per router, routers per group, global links per router, groups)."
              )  # fmt: skip
@click.option("--allocation", metavar="NAMES", help="The policy that places jobs on it; several "
              "with commas.  [default: level-spread]")  # fmt: skip
@click.option("--power", metavar="NAMES", help="Simulate power, with this policy; several with "
              "commas. none: it is only measured.")  # fmt: skip
@click.option("--cap", metavar="POWER", help="What all nodes together may draw, such as 3000kW, or "
              "a CSV file of times and watts.")  # fmt: skip
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE", help="A key of the section "
              "[power], such as idle='90 W'; repeatable. `odonata schema` has them.")  # fmt: skip
@click.option("--overrun", default="kill", show_default=True, metavar="WORD",
              help="A job that runs for longer than requested: kill, or extend.")  # fmt: skip
@click.option("--requests", default="recorded", show_default=True, metavar="WORD",
              help="Requested times: recorded, or exact.")  # fmt: skip
@click.option("--first", type=int, help="Only so many jobs, from the beginning.")
@click.option("--load", type=float, help="Rescale gaps between submissions to this offered load.")
@click.option("--format", "kind", metavar="NAME", help="The format of TRACE, where it is not "
              "found: swf, batsim, sacct or karelian.")  # fmt: skip
@click.option("--epoch", metavar="DATE", help="The date of time 0 of the trace, such as "
              "2026-03-02T00:00+01:00.  [default: what the trace tells]")  # fmt: skip
@click.option("--timezone", metavar="ZONE", help="The time zone of the trace, such as "
              "Europe/Stockholm or +01:00.  [default: what the trace tells]")  # fmt: skip
@click.option("--warmup", type=DURATION, default="0 s", help="Leave out jobs submitted in the "
              "first TIME, such as 7d.")  # fmt: skip
@click.option("--cooldown", type=DURATION, default="0 s", help="Leave out jobs submitted in the "
              "last TIME.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True,
              help="Seed of a model, and of allocations that draw at random.")  # fmt: skip
@click.option("--by", type=Quantity("WORD", part_of), multiple=True,
              help="Also show mean waits, or turnarounds of moldable jobs, by size of job, user, "
              "project (account and group are the same) or application; repeatable.")  # fmt: skip
@click.option("--recorded", is_flag=True, help="Also compare waits with those that TRACE has "
              "recorded: does it behave like the real machine?")  # fmt: skip
@click.option("--csv", type=click.Path(path_type=Path, dir_okay=False),
              help="Write the jobs with Batsim's columns.")  # fmt: skip
@click.option("--swf", type=click.Path(path_type=Path, dir_okay=False),
              help="Write the trace with the wait times of the simulation.")  # fmt: skip
@plot_option
@plugin_option
@json_option
def command(trace: Path | None, plugins: tuple[Path, ...], as_json: bool, **asked: Any) -> None:
    """Run the jobs of TRACE on a machine: months in a second, without packets."""
    from policies.register import load_plugin

    for path in plugins:
        load_plugin(path)
    schedule(trace, as_json=as_json, **asked)


@dataclass(frozen=True)
class Ran:
    """One discipline's run."""

    label: str
    model: Cluster
    schedule: Schedule
    result: Result
    power: PowerRecord | None
    measures: Measures
    seconds: float
    """From the trace's file to the last measure: reading, building the machine, simulating and
    measuring. Importing Python's packages and compiling or loading kernels are not among it."""
    read_seconds: float
    """To read the trace, or to make it."""

    @cached_property
    def power_measures(self) -> PowerMeasures | None:
        """Returns the measures of power, None where it was not simulated."""
        from odonata.results.power_measures import power_measures

        if self.power is None or self.model.power is None:
            return None
        price, carbon = (self.model.steps(name) for name in ("price", "carbon"))
        return power_measures(self.power, self.model.trace, price, carbon)

    def facts(self) -> dict[str, Any]:
        from odonata.results.facts import facts_of, jobs_per_second

        model = self.model
        placed = model.allocation if model.machine else None
        watts = self.power_measures
        facts = facts_of(self.schedule, self.measures, model.scheduling, placed)
        if model.power is not None and watts is not None:
            facts |= {"power": model.power.policy, **watts.facts()}
        facts["label"] = self.label
        result = self.result
        return facts | {
            "seconds": self.seconds, "read_seconds": self.read_seconds,
            "compile_seconds": result.compile_seconds, "wall_seconds": result.wall_seconds,
            "jobs_per_second": jobs_per_second(result), "events": result.events,
            "digest": result.digest,
        }  # fmt: skip


def schedule(
    trace: Path | None,
    *,
    model: str | None,
    jobs: int | None,
    nodes: int | None,
    scheduling: str,
    machine: str | None,
    allocation: str | None,
    power: str | None,
    cap: str | None,
    changes: Sequence[str],
    overrun: str,
    requests: str,
    first: int | None,
    load: float | None,
    kind: str | None,
    epoch: str | None,
    timezone: str | None,
    warmup: int,
    cooldown: int,
    seed: int,
    by: Sequence[str],
    recorded: bool,
    csv: Path | None,
    swf: Path | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Run all that was asked for, and print and draw it."""
    from odonata.traces.source import Source

    if allocation and not machine:
        raise Refused(f"--allocation {allocation}: on which machine? --machine PRESET")
    if recorded and load is not None:
        raise Refused(f"--load {load:g}: waits were recorded at the load of the trace itself, so "
                      "--recorded has nothing to compare with: leave out one of them")  # fmt: skip
    dragonfly = machine_of(machine) if machine else None
    check_outputs(csv, swf, plot)
    for module in ("changing", "reading", "lublin", "mira", "poisson", "rmap"):
        import_module(f"odonata.traces.{module}")  # which is not part of reading a trace
    source = Source("" if trace is None else str(trace), model, kind, jobs, nodes, first, load,
                    requests=requests, overrun=overrun, epoch=epoch, timezone=timezone)  # fmt: skip
    powers = powers_of(power, cap, changes, "mira" if model == "mira" else "constant")
    measured = next((watts.measured for watts in powers.values() if watts), {})
    began = time.perf_counter()
    read, size = source.trace(dragonfly.n_nodes if dragonfly else None, seed, measured)
    reading = time.perf_counter() - began
    from odonata.cluster.model import Cluster

    places = several(allocation or "level-spread", "allocation", "--allocation")
    asked = [(named, placed, watts) for named in several(scheduling, "order", "--scheduling")
             for placed in places for watts in powers]  # fmt: skip
    from odonata.cluster.admission import admitted

    models: dict[str, Cluster] = {}
    failed: dict[str, Fault | Refused] = {}
    for one in asked:
        name = label(one, asked)
        made = Cluster(read, size, *one[0], dragonfly, *one[1], overrun, seed,
                       power=powers[one[2]], applications=measured)  # fmt: skip
        try:
            models[name] = admitted(made)
        except Refused as refusal:  # it can start none of the jobs, and others may
            failed[name] = refusal
    cut = {"warmup_us": warmup, "cooldown_us": cooldown}
    runs = simulated(models, reading, cut, failed)
    if not runs:
        raise next(iter(failed.values()))
    if not all(one.measures.jobs for one in runs):
        raise Refused(f"--warmup, --cooldown: none of {len(read):,} jobs is left to be measured; "
                      f"they are submitted within {show_duration(read.span_us / 1e6)}")  # fmt: skip
    if launcher.rank() > 0:
        return
    from odonata.results.recorded import reproduction

    beside = {it.label: reproduction(it.schedule, **cut) for it in runs if recorded}
    write_files(runs, csv, swf, None if beside else plot)
    if beside and plot is not None:
        from odonata.figures.recorded import draw_reproductions

        draw_reproductions({it.label: it.schedule for it in runs}, beside, plot)
    if as_json:
        facts = [one.facts() for one in runs]
        for known in facts if beside else ():
            known["recorded"] = beside[known["label"]].facts()
        print_json(facts[0] if len(facts) == 1 else {"runs": facts})
    else:
        show(runs, by, beside)
    for name, why in failed.items():  # when all others have been told
        raise type(why)(f"{name}: {why}")


def simulated(
    models: dict[str, Cluster], reading: float, cut: dict[str, int],
    failed: dict[str, Fault | Refused],
) -> list[Ran]:  # fmt: skip
    """Returns the runs; those that failed go to `failed`, by their labels. On several ranks each
    rank has some of them, and the first gets all."""
    from odonata.cluster.simulation import simulate
    from odonata.experiment.progress import ProgressLine
    from odonata.results.schedule_measures import measures
    from pdes.transport import Serial, world

    transport = world()
    if transport.size > len(models) and transport.rank == 0:
        print(f"odonata: {len(models)} run{'s' * (len(models) > 1)} on {transport.size} ranks: a "
              "run is not divided, so the others have nothing to do", file=sys.stderr)  # fmt: skip
    made: list[Any] = []
    for number, model in enumerate(models.values()):
        if number % transport.size != transport.rank:
            continue
        line = ProgressLine(None, model.tick)
        began = time.perf_counter()
        try:
            found, result, power = simulate(model, progress=line, transport=Serial())
        except (Fault, Refused) as error:
            made.append((number, error))
            continue
        finally:
            line.close()
        measured = measures(found, **cut)
        seconds = time.perf_counter() - began - result.compile_seconds + reading
        made.append((number, found, result, power, measured, seconds, reading))
    named = list(models.items())
    gathered = sorted((one for part in transport.everyone(made) for one in part),
                      key=lambda it: it[0])  # fmt: skip
    failed |= {named[one[0]][0]: one[1] for one in gathered if len(one) == 2}
    return [Ran(*named[one[0]], *one[1:]) for one in gathered if len(one) > 2]


# -- what a user reads


def write_files(runs: Sequence[Ran], csv: Path | None, swf: Path | None, plot: Path | None) -> None:
    """Write the files that were asked for; with several runs, one for each, named by it."""
    from odonata.results.job_table import write_csv, write_swf

    for one in runs:
        if csv is not None:
            path = beside(csv, one.label) if len(runs) > 1 else csv
            taken = None if one.power is None else one.power.by_job
            write_csv(one.schedule, path, one.model.trace.name, taken)
        if swf is not None:
            path = beside(swf, one.label) if len(runs) > 1 else swf
            write_swf(one.schedule, path, [f"Scheduling: {one.label}"])
    if plot is not None:
        from odonata.figures.comparison import draw_schedules
        from odonata.figures.schedule import write_overview

        if len(runs) > 1:
            power = {one.label: one.power for one in runs if one.power is not None}
            draw_schedules({one.label: one.schedule for one in runs}, plot, power)
        else:
            from odonata.figures.power import Watts

            one = runs[0]
            price, carbon = (one.model.steps(name) for name in ("price", "carbon"))
            write_overview(one.schedule, plot, Watts.of(one.schedule, one.power, price, carbon))


def show(
    runs: Sequence[Ran], by: Sequence[str] = (), beside: Mapping[str, Reproduction] | None = None
) -> None:
    """Print the trace, and tables of so many runs as the terminal is wide for; also what was
    recorded `beside` them, by their labels."""
    from rich.text import Text

    from odonata.commands.recorded import show as show_recorded
    from odonata.results.summary_rows import account_of

    console = plain_console(highlight=False)
    if not console.is_terminal:  # a file or a pipe is as wide as it must be
        console.width = 100_000
    first = runs[0].model
    heading, *about = account_of(read_by_all(runs), first.nodes, first.machine, first.overrun)
    about += [*differences(runs), *left_out_words(runs[0])]
    for line in (Text(heading, "bold"), *(Text(line, "dim") for line in about)):
        console.print(line, soft_wrap=True)
    widest = max(12, *(len(one.label) for one in runs)) + 2
    each = max(1, (console.width - NAMES_WIDTH) // widest)
    for at in range(0, len(runs), each):
        console.print()
        console.print(table(runs[at : at + each]))
        for what in by:
            console.print()
            console.print(parts_table(runs[at : at + each], what))
    if beside:
        show_recorded(console, beside)
    console.print()
    console.print(Text(time_words(runs), "dim"), soft_wrap=True)


def left_out_words(one: Ran) -> list[str]:
    """Returns what --warmup and --cooldown leave out, which is the same in all runs."""
    if not one.measures.left_out:
        return []
    whole = "the makespan is" if one.power is None else "the makespan, energy and power are"
    return [f"{one.measures.left_out:,} jobs are left out, as they are submitted in the warm-up or "
            f"the cool-down; {whole} of the whole run"]  # fmt: skip


def time_words(runs: Sequence[Ran]) -> str:
    """Returns what took time besides the simulations."""
    loaded = sum(one.result.compile_seconds for one in runs)
    words = (f"trace read in {show_duration(runs[0].read_seconds)}, kernels compiled or loaded in "
             f"{show_duration(loaded)}")  # fmt: skip
    whole = command_seconds()
    return words if whole is None else f"{words}; the whole command took {show_duration(whole)}"


def read_by_all(runs: Sequence[Ran]) -> Trace:
    """Returns the trace of the run with the most jobs, with the account that all runs share."""
    from odonata.traces.trace import Account

    accounts = [one.model.trace.account for one in runs]

    def shared(name: str) -> dict[str, int]:
        return {reason: count for reason, count in getattr(accounts[0], name).items()
                if all(getattr(it, name).get(reason) == count for it in accounts)}  # fmt: skip

    account = Account(accounts[0].records, *map(shared, ("dropped", "repaired", "noted")))
    return replace(max((one.model.trace for one in runs), key=len), account=account)


def differences(runs: Sequence[Ran]) -> list[str]:
    """Returns sentences on what became of jobs in some of the runs only; where not all of them run
    the same jobs, that is said."""
    shared, found = {*read_by_all(runs).account.lines()}, dict[str, list[str]]()
    for one in runs:
        for line in one.model.trace.account.lines():
            if line not in shared:
                found.setdefault(line, []).append(one.label)
    lines = [f"{', '.join(labels)}: {line}" for line, labels in found.items()]
    if len({len(one.model.trace) for one in runs}) > 1:
        lines.append("Not all columns are of the same jobs: those that drop some are not to be "
                     "compared with the others.")  # fmt: skip
    return lines


FIELD = {"measured_jobs": "jobs"}
"""The figures that `Measures` calls by another name."""
NAMES_WIDTH = 26
"""Letters that the names of measures take."""


def table(runs: Sequence[Ran]) -> Any:
    """Returns a column per run."""
    from rich.table import Table
    from rich.text import Text

    from odonata.results.facts import jobs_per_second
    from odonata.results.summary_rows import (
        OF_SCHEDULES,
        STATES_SHOWN,
        fewest_rows,
        molded_rows,
        spread_rows,
    )

    shown = Table(box=None, pad_edge=False, header_style="bold")
    shown.add_column("", no_wrap=True, style="dim")
    for one in runs:
        shown.add_column(Text(one.label), justify="right", no_wrap=True)
    for at, figure in enumerate(OF_SCHEDULES):
        if at == STATES_SHOWN and any(one.schedule.molds is not None for one in runs):
            shown.add_row("molded", *(dict(it[:2] for it in molded_rows(one.schedule)).get(
                "molded", "-") for one in runs))  # fmt: skip
        shown.add_row(
            figure.name,
            *(
                figure.text(getattr(one.measures, FIELD.get(figure.path, figure.path)))
                for one in runs
            ),
        )
    for rows in zip(*(spread_rows(one.schedule) for one in runs), strict=True):
        shown.add_row(rows[0][0], *(row[1] for row in rows))
    for fewest in zip(*(fewest_rows(one.schedule) for one in runs), strict=True):
        shown.add_row(fewest[0][0], *(row[1] for row in fewest))
    for watts in watts_rows(runs):
        shown.add_row(*watts)
    shown.add_row("simulated in", *(show_duration(one.result.wall_seconds) for one in runs))
    shown.add_row("jobs per second", *(show_count(jobs_per_second(it.result)) for it in runs))
    shown.add_row("digest", *(one.result.digest[:12] for one in runs))
    return shown


def watts_rows(runs: Sequence[Ran]) -> list[list[str]]:
    """Returns the measures of power, a column per run; none where it was not simulated."""
    from odonata.results.power_measures import power_rows

    found = [power_rows(one.power_measures) if one.power_measures else [] for one in runs]
    names = dict.fromkeys(row[0] for rows in found for row in rows)
    of = [{row[0]: row[1] for row in rows} for rows in found]
    return [[name, *(rows.get(name, "-") for rows in of)] for name in names]


def parts_table(runs: Sequence[Ran], by: str) -> Any:
    """Returns mean waits by one of PARTS, a column per run; turnarounds where jobs are moldable,
    whose run times depend on the policy."""
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False, header_style="bold")
    what = "turnaround" if any(one.schedule.molds is not None for one in runs) else "wait"
    shown.add_column(f"mean {what}, by {'nodes' if by == 'size' else by}", style="dim",
                     no_wrap=True)  # fmt: skip
    shown.add_column("jobs", justify="right", style="dim")
    for one in runs:
        shown.add_column(Text(one.label), justify="right", no_wrap=True)
    parts = [{part.name: part for part in getattr(one.measures, f"by_{PARTS[by]}")} for one in runs]
    for name in dict.fromkeys(name for of in parts for name in of):
        rows = [of.get(name) for of in parts]
        jobs = max(part.jobs for part in rows if part is not None)  # a run may drop some
        if jobs:
            means = (None if part is None else getattr(part, f"mean_{what}_s") for part in rows)
            shown.add_row(name or "unknown", f"{jobs:,}", *map(show_duration, means))
    return shown
