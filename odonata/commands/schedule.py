"""`odonata schedule`: run the jobs of a trace under one discipline, or several side by side."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odonata.commands.group import SETTINGS
from odonata.commands.options import Quantity, cores, json_option, plot_option, plugin_option
from odonata.commands.output import beside, command_seconds, print_json
from odonata.commands.schedule_asked import (
    PARTS,
    WHERE,
    draft_of,
    machine_of,
    part_of,
    power_keys,
    several,
)
from odonata.experiment.terminal import plain_console
from odonata.experiment.units import show_count, show_duration, time_us
from pdes.errors import Fault, Refused

if TYPE_CHECKING:
    from odonata.experiment.experiment import JobExperiment
    from odonata.results.market_memory import Traded
    from odonata.results.recorded import Reproduction
    from odonata.sweeps.drafts import Draft, WholeRun
    from odonata.sweeps.plan import Plan, Point
    from odonata.traces.trace import Trace

DURATION = Quantity("TIME", time_us)
EXPERIMENT = "schedule.toml"
"""The sweep in the directory of `-o`."""
MANY = 200_000
"""Jobs that are worth processes of their own."""


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
@click.option("--seeds", type=click.IntRange(1, 100_000), default=1, metavar="N",
              help="Simulate each with so many seeds, from --seed on, and show means with their "
              "95 % intervals.")  # fmt: skip
@click.option("--by", type=Quantity("WORD", part_of), multiple=True,
              help="Also show mean waits, or turnarounds of moldable jobs, by size of job, user, "
              "project (account and group are the same) or application; repeatable.")  # fmt: skip
@click.option("--recorded", is_flag=True, help="Also compare waits with those that TRACE has "
              "recorded: does it behave like the real machine?")  # fmt: skip
@click.option("--csv", type=click.Path(path_type=Path, dir_okay=False),
              help="Write the jobs with Batsim's columns.")  # fmt: skip
@click.option("--swf", type=click.Path(path_type=Path, dir_okay=False),
              help="Write the trace with the wait times of the simulation.")  # fmt: skip
@click.option("--write", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.toml",
              help="Write the experiment, for `odonata run`; of several runs for `odonata "
              "sweep`.")  # fmt: skip
@click.option("-o", "--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Keep the runs, each in a directory of DIR.")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Replace what is there.")
@click.option("--workers", type=click.IntRange(1), metavar="N", help="Runs at a time.  [default: "
              "one per core, if there is enough to do; under mpiexec one per rank]")  # fmt: skip
@plot_option
@plugin_option
@json_option
def command(trace: Path | None, plugins: tuple[Path, ...], as_json: bool, **asked: Any) -> None:
    """Run the jobs of TRACE on a machine: months in a second, without packets."""
    from policies.register import load_plugin

    for path in plugins:
        load_plugin(path)
    schedule(trace, plugins, as_json=as_json, **asked)


@dataclass(frozen=True)
class Column:
    """What was asked for with one combination of policies: its runs, one for each seed."""

    label: str
    experiment: JobExperiment
    """That of the first seed."""
    runs: Sequence[WholeRun]
    reading: float
    """Seconds to read the trace, or to make it."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """Returns all that is known of its first run."""
        return self.runs[0].facts

    @property
    def trace(self) -> Trace:
        return self.experiment.model().trace

    @property
    def named(self) -> Iterator[tuple[str, Traded]]:
        """Yields its runs with the words that tell each from all others."""
        for run in self.runs:
            yield self.label + f", seed {run.seed}" * (len(self.runs) > 1), run.derived

    def told(self) -> Iterator[dict[str, Any]]:
        """Yields its runs for JSON; of the engine's account only a part."""
        from odonata.sweeps.outcomes import OF_THE_HOST

        untold = (*OF_ENGINE, *OF_THE_HOST, "model", "time_ps", "name", "out")
        for run in self.runs:
            found = {name: value for name, value in run.facts.items() if name not in untold}
            known = {name: run.facts[name] for name in OF_ENGINE}
            found |= {"label": self.label} | ({"seed": run.seed} if len(self.runs) > 1 else {})
            seconds = {"seconds": run.seconds + self.reading, "read_seconds": self.reading}
            yield found | seconds | known


OF_ENGINE = ("compile_seconds", "wall_seconds", "jobs_per_second", "events", "digest")
"""What is told of the engine's account, in this order."""


def schedule(
    trace: Path | None, plugins: Sequence[Path] = (), *, model: str | None, jobs: int | None,
    nodes: int | None, scheduling: str, machine: str | None, allocation: str | None,
    power: str | None, cap: str | None, changes: Sequence[str], overrun: str, requests: str,
    first: int | None, load: float | None, kind: str | None, epoch: str | None,
    timezone: str | None, warmup: int, cooldown: int, seed: int, seeds: int, by: Sequence[str],
    recorded: bool, csv: Path | None, swf: Path | None, write: Path | None, out: Path | None,
    overwrite: bool, workers: int | None, plot: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Run all that was asked for, and print and draw it."""
    from odonata.sweeps.drafts import Kept, check_written, whole_runs, write_text
    from odonata.traces.source import Source
    from pdes.transport import world

    if allocation and not machine:
        raise Refused(f"--allocation {allocation}: on which machine? --machine PRESET")
    if recorded and load is not None:
        raise Refused(f"--load {load:g}: waits were recorded at the load of the trace itself, so "
                      "--recorded has nothing to compare with: leave out one of them")  # fmt: skip
    dragonfly = machine_of(machine) if machine else None
    check_written({"--csv": (csv, ""), "--swf": (swf, ""), "--write": (write, ".toml")}, out,
                  overwrite)  # fmt: skip
    if plot is not None:
        from odonata.figures.style import check_name

        check_name(plot)
    for module in ("changing", "reading", "lublin", "mira", "poisson", "rmap"):
        import_module(f"odonata.traces.{module}")  # which is not part of reading a trace
    source = Source("" if trace is None else str(trace), model, kind, jobs, nodes, first, load,
                    requests=requests, overrun=overrun, epoch=epoch, timezone=timezone,
                    warmup_ps=warmup * 10**6, cooldown_ps=cooldown * 10**6)  # fmt: skip
    given = power_keys(power, cap, changes)
    policies = {"scheduler.order": several(scheduling, "order", "--scheduling")}
    if machine:
        policies["scheduler.allocation"] = several(allocation or "level-spread", "allocation",
                                                   "--allocation")  # fmt: skip
    if power is not None:
        policies["power.policy"] = several(power, "power", "--power")
    draft = draft_of(source, dragonfly, policies, given, range(seed, seed + seeds), plugins)
    reading = read_seconds(source, dragonfly, seed)
    plan = planned(draft)
    usual = f"{policies['scheduler.order'][0]}"
    labels = {point.labels: ", ".join(point.labels) or usual for point in plan.points}
    kept = None
    if out is not None:
        names = {point.key: directory_of(labels[point.labels], point, plan)
                 for point in plan.points}  # fmt: skip
        kept = Kept(out, EXPERIMENT, names, overwrite)
    drawn = whole if any((csv, swf, plot, recorded)) else None
    runs = whole_runs(draft, plan, drawn, workers or enough(plan), kept)
    if world().rank > 0:
        return
    columns: list[Column] = []
    failed: dict[tuple[str, ...], Fault | Refused] = {
        which: Refused(in_words(why)) for which, why in plan.refused.items()
    }
    for which, found in runs.items():
        bad = [run.failed for run in found if run.failed]
        if bad:
            failed[which] = Fault(bad[0])
            continue
        made: Any = next(it for it in plan.points if it.labels == which).experiment()
        columns.append(Column(labels[which], made, found, reading))
    if not columns:
        raise next(iter(failed.values()))
    if not all(run.facts["measured_jobs"] for column in columns for run in column.runs):
        read = columns[0].trace
        raise Refused(f"--warmup, --cooldown: none of {len(read):,} jobs is left to be measured; "
                      f"they are submitted within {show_duration(read.span_us / 1e6)}")  # fmt: skip
    beside = reproductions(columns, warmup, cooldown, plot) if recorded else {}
    write_files(columns, csv, swf, None if beside else plot)
    if write is not None:
        write_text(write, draft.text)
    if as_json:
        tell(columns, plan, beside)
    else:
        show(columns, by, beside)
        for path in (write, out):
            if path is not None:
                print(f"written to {path}")
    for which, why in failed.items():  # when all others have been told
        raise type(why)(f"{', '.join(which)}: {why}")


def read_seconds(source: Any, machine: Any, seed: int) -> float:
    """Returns what it takes to read the trace, or to make it; the runs need not read it again.
    Refused where there is something wrong with it."""
    began = time.perf_counter()
    source.trace(machine.n_nodes if machine else None, seed)
    return time.perf_counter() - began


OF_TRACE = re.compile(rf'^{WHERE}: trace\.(?:file|nodes|jobs) = (?:"[^"]*"|\S+): ')
"""How a problem begins that is found when the jobs are read."""


def planned(draft: Draft) -> Plan:
    """Returns the plan of the sweep, on all ranks; with the columns that can be run."""
    from pdes.transport import together, world

    try:
        plan = together(world(), lambda: draft.plan(tolerant=True))
    except Refused as refusal:
        raise Refused(in_words(str(refusal))) from None
    size, count = world().size, len(plan.points)
    if size > count and world().rank == 0:
        print(f"odonata: {count} run{'s' * (count > 1)} on {size} ranks: a run is not divided, so "
              "the others have nothing to do", file=sys.stderr)  # fmt: skip
    return plan


def in_words(problems: str) -> str:
    """Returns the first problem of the experiment for who has not written it."""
    return OF_TRACE.sub("", problems.splitlines()[0]).removeprefix(f"{WHERE}: ")


def enough(plan: Plan) -> int:
    """Returns on how many processes it is worth while to simulate."""
    made: Any = plan.points[0].experiment()
    return cores() if len(made.model().trace) * len(plan.points) >= MANY else 1


def directory_of(label: str, point: Point, plan: Plan) -> str:
    """Returns the name of the directory of a run that is kept."""
    name = "-".join(re.findall(r"[\w.+-]+", label))
    return f"{name}-seed-{point.seed:04d}" if len(plan.seeds) > 1 else name


def whole(made: JobExperiment, found: Traded) -> Traded:
    """Returns what is drawn and written of a run."""
    return found


# -- what a user reads


def reproductions(
    columns: Sequence[Column], warmup_us: int, cooldown_us: int, plot: Path | None
) -> dict[str, Reproduction]:
    """Returns each run beside what the trace has recorded, by its label; drawn, if that is
    wanted."""
    from odonata.results.recorded import reproduction

    runs = {label: run.schedule for column in columns for label, run in column.named}
    found = {label: reproduction(schedule, warmup_us=warmup_us, cooldown_us=cooldown_us)
             for label, schedule in runs.items()}  # fmt: skip
    if plot is not None:
        from odonata.figures.recorded import draw_reproductions

        draw_reproductions(runs, found, plot)
    return found


def tell(columns: Sequence[Column], plan: Plan, beside: Mapping[str, Reproduction]) -> None:
    """Print all that is known of the runs, for programs; of several seeds also the means; and what
    was recorded `beside` them."""
    from odonata.commands.sweep import facts as means
    from odonata.sweeps.table import Swept

    runs = [one for column in columns for one in column.told()]
    for known, found_beside in zip(runs, beside.values(), strict=False):
        known["recorded"] = found_beside.facts()
    more = {}
    if len(plan.seeds) > 1:
        outcomes = {f"{column.label} {run.seed}": run for column in columns for run in column.runs}
        found = Swept({"policies": tuple(column.label for column in columns)}, plan.seeds,
                      tuple(outcomes), outcomes)  # fmt: skip
        more = {"results": means(found, found.figures, None, Path(), ())["results"]}
    print_json(runs[0] if len(runs) == 1 else {"runs": runs, **more})


def write_files(
    columns: Sequence[Column], csv: Path | None, swf: Path | None, plot: Path | None
) -> None:
    """Write the files that were asked for; with several runs, one for each, named by it."""
    from odonata.results.job_table import write_csv, write_swf

    if csv is plot is swf is None:
        return
    runs = [(label, column, run) for column in columns for label, run in column.named]
    for label, column, run in runs:
        if csv is not None:
            path = beside(csv, label) if len(runs) > 1 else csv
            taken = None if run.power is None else run.power.by_job
            write_csv(run.schedule, path, column.facts["trace"], taken)
        if swf is not None:
            path = beside(swf, label) if len(runs) > 1 else swf
            write_swf(run.schedule, path, [f"Scheduling: {label}"])
    if plot is None:
        return
    if len(runs) > 1:
        from odonata.figures import comparison

        power = {label: run.power for label, _, run in runs if run.power is not None}
        comparison.draw_schedules({label: run.schedule for label, _, run in runs}, plot, power)
        return
    from odonata.figures.power import Watts
    from odonata.figures.schedule import write_overview

    ((_, column, run),) = runs
    price, carbon = (column.experiment.model().steps(name) for name in ("price", "carbon"))
    write_overview(run.schedule, plot, Watts.of(run.schedule, run.power, price, carbon))


def show(
    columns: Sequence[Column], by: Sequence[str], recorded: Mapping[str, Reproduction]
) -> None:
    """Print the trace, and tables of so many columns as the terminal is wide for; also what was
    `recorded` beside them, by their labels."""
    from rich.text import Text

    from odonata.commands.recorded import show as show_recorded
    from odonata.results.statistics import CONFIDENCE
    from odonata.results.summary_rows import account_of

    console = plain_console(highlight=False)
    if not console.is_terminal:  # a file or a pipe is as wide as it must be
        console.width = 100_000
    model, seeds = columns[0].experiment.model(), len(columns[0].runs)
    heading, *about = account_of(read_by_all(columns), model.nodes, model.machine, model.overrun)
    about += [*differences(columns), *left_out_words(columns[0])]
    about += [f"± is half of the {100 * CONFIDENCE:g} % confidence interval of the mean over "
              f"{seeds} seeds (Student's t)."] * (seeds > 1)  # fmt: skip
    for line in (Text(heading, "bold"), *(Text(line, "dim") for line in about)):
        console.print(line, soft_wrap=True)
    texts = [texts_of(column) for column in columns]
    widest = max(
        12,
        *(len(one.label) for one in columns),
        *(len(text) for parts in texts for rows in parts for text in rows.values()),
    )
    each = max(1, (console.width - NAMES_WIDTH) // (widest + 2))
    for at in range(0, len(columns), each):
        console.print()
        console.print(table(columns[at : at + each], texts[at : at + each]))
        for what in by:
            console.print()
            console.print(parts_table(columns[at : at + each], what))
    if recorded:
        show_recorded(console, recorded)
    console.print()
    console.print(Text(time_words(columns), "dim"), soft_wrap=True)


def left_out_words(one: Column) -> list[str]:
    """Returns what --warmup and --cooldown leave out, which is the same in all runs."""
    if not one.facts["left_out"]:
        return []
    whole = "the makespan is" if "power" not in one.facts else "the makespan, energy and power are"
    return [f"{one.facts['left_out']:,} jobs are left out, as they are submitted in the warm-up or "
            f"the cool-down; {whole} of the whole run"]  # fmt: skip


def time_words(columns: Sequence[Column]) -> str:
    """Returns what took time besides the simulations."""
    loaded = sum(run.facts["compile_seconds"] for column in columns for run in column.runs)
    words = (f"trace read in {show_duration(columns[0].reading)}, kernels compiled or loaded in "
             f"{show_duration(loaded)}")  # fmt: skip
    every = command_seconds()
    return words if every is None else f"{words}; the whole command took {show_duration(every)}"


def read_by_all(columns: Sequence[Column]) -> Trace:
    """Returns the trace of the run with the most jobs, with the account that all runs share."""
    from odonata.traces.trace import Account

    accounts = [one.trace.account for one in columns]

    def shared(name: str) -> dict[str, int]:
        return {reason: count for reason, count in getattr(accounts[0], name).items()
                if all(getattr(it, name).get(reason) == count for it in accounts)}  # fmt: skip

    account = Account(accounts[0].records, *map(shared, ("dropped", "repaired", "noted")))
    return replace(max((one.trace for one in columns), key=len), account=account)


def differences(columns: Sequence[Column]) -> list[str]:
    """Returns sentences on what became of jobs in some of the runs only; where not all of them run
    the same jobs, that is said."""
    shared, found = {*read_by_all(columns).account.lines()}, dict[str, list[str]]()
    for one in columns:
        for line in one.trace.account.lines():
            if line not in shared:
                found.setdefault(line, []).append(one.label)
    lines = [f"{', '.join(labels)}: {line}" for line, labels in found.items()]
    if len({len(one.trace) for one in columns}) > 1:
        lines.append("Not all columns are of the same jobs: those that drop some are not to be "
                     "compared with the others.")  # fmt: skip
    return lines


NAMES_WIDTH = 26
"""Letters that the names of measures take."""


def texts_of(column: Column) -> list[dict[str, str]]:
    """Returns the texts of the figures of a column by their names, in three parts: of one run, or
    means with half of their intervals."""
    from odonata.results.statistics import interval

    facts = [run.facts for run in column.runs]
    if len(facts) == 1:
        return [*rows_of(facts[0]), engine_rows(facts[0])]
    means, halves = dict(facts[0]), dict(facts[0])
    for name in facts[0]:
        values = [one[name] for one in facts]
        if all(isinstance(value, int | float) for value in values):
            made = interval(values)
            means[name], halves[name] = made.mean, made.half
    both = zip(rows_of(means), rows_of(halves), strict=True)
    return [{name: text if text == "-" else f"{text} ± {half[name]}" for name, text in mean.items()}
            for mean, half in both]  # fmt: skip


def rows_of(facts: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    """Returns the measures of a schedule by their names, and those of its power."""
    from odonata.results.power_measures import PowerMeasures, power_rows
    from odonata.results.register import number
    from odonata.results.summary_rows import OF_SCHEDULES, STATES_SHOWN

    rows = {}
    for at, figure in enumerate(OF_SCHEDULES):
        if at == STATES_SHOWN:
            rows["molded"] = "-" if facts["molded_jobs"] is None else f"{facts['molded_jobs']:,}"
        rows[figure.name] = figure.text(facts[figure.path])
    for words, path in (("{} per job", "{}_per_job"), ("{}, at the fewest", "fewest_{}_per_job")):
        for of in ("groups", "routers"):
            if path.format(of) in facts:
                rows[words.format(of)] = number(facts[path.format(of)])
    if "power" not in facts:
        return rows, {}
    watts = PowerMeasures(**{one.name: facts[one.name] for one in fields(PowerMeasures)})
    return rows, {name: text for name, text, _ in power_rows(watts)}


def engine_rows(facts: Mapping[str, Any]) -> dict[str, str]:
    """Returns how fast a run was, and its digest."""
    return {"simulated in": show_duration(facts["wall_seconds"]),
            "jobs per second": show_count(facts["jobs_per_second"]),
            "digest": facts["digest"][:12]}  # fmt: skip


def table(columns: Sequence[Column], texts: Sequence[Sequence[Mapping[str, str]]]) -> Any:
    """Returns a table with a column for each combination of policies."""
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False, header_style="bold")
    shown.add_column("", no_wrap=True, style="dim")
    for one in columns:
        shown.add_column(Text(one.label), justify="right", no_wrap=True)
    for part in zip(*texts, strict=True):
        for name in dict.fromkeys(name for rows in part for name in rows):
            row = [rows.get(name, "-") for rows in part]
            if name != "molded" or {*row} != {"-"}:
                shown.add_row(name, *row)
    return shown


def parts_table(columns: Sequence[Column], by: str) -> Any:
    """Returns mean waits by one of PARTS, a column per run; turnarounds where jobs are moldable,
    whose run times depend on the policy."""
    from rich.table import Table
    from rich.text import Text

    from odonata.sweeps.table import mean_of

    shown = Table(box=None, pad_edge=False, header_style="bold")
    molded = any(one.facts["molded_jobs"] is not None for one in columns)
    what = "turnaround" if molded else "wait"
    shown.add_column(f"mean {what}, by {'nodes' if by == 'size' else by}", style="dim",
                     no_wrap=True)  # fmt: skip
    shown.add_column("jobs", justify="right", style="dim")
    for one in columns:
        shown.add_column(Text(one.label), justify="right", no_wrap=True)
    parts = [[{part["name"]: part for part in run.facts[f"by_{PARTS[by]}"]} for run in one.runs]
             for one in columns]  # fmt: skip
    for name in dict.fromkeys(name for column in parts for of in column for name in of):
        jobs = max(of[name]["jobs"] for column in parts for of in column if name in of)
        if jobs:  # a run may drop some
            means = (mean_of(of.get(name, {}).get(f"mean_{what}_s") for of in column)
                     for column in parts)  # fmt: skip
            shown.add_row(name or "unknown", f"{jobs:,}", *map(show_duration, means))
    return shown
