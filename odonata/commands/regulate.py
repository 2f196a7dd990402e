"""`odonata regulate`: what a machine saves that follows a regulation signal, and who waits."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odonata.commands.group import SETTINGS
from odonata.commands.options import cores, json_option, plot_option, plugin_option
from odonata.commands.output import print_json, print_table
from odonata.commands.regulate_asked import PRICES, SUFFIX, Asked
from odonata.experiment.units import show_duration, show_energy, show_power
from pdes import launcher
from pdes.errors import Refused

if TYPE_CHECKING:
    from odonata.experiment.experiment import JobExperiment
    from odonata.results.regulated import Regulated

EXPERIMENT = "regulate.toml"
"""The experiment in the directory of `-o`, with the first seed."""
TERMS = (
    "Q: the degradation, (turnaround - time) / time without a cap, on average, as the wait; jobs "
    "that are not over in the end count as if they went on without a cap then. late: the part of "
    "the jobs at the limit of Q or beyond. before: without demand response, that is, as jobs come "
    "and without caps."
)


@click.command("regulate", context_settings=SETTINGS)
@click.option("--workload", metavar="MIX", help="The jobs: a mix that `odonata types` lists, such "
              "as W4, or types of one of its tables, as bt or bt.C.16,cg.D.16.")  # fmt: skip
@click.option("--trace", type=click.Path(path_type=Path), metavar="FILE", help="The jobs of a "
              "trace of your own, in one run, in place of a mix.")  # fmt: skip
@click.option("--types", metavar="TABLE", help="The types of the jobs: aqa, qosg or a CSV file of "
              "your own.  [default: those of the mix]")  # fmt: skip
@click.option("--policy", default="energy-qare", show_default=True, metavar="NAME",
              help="Who starts and caps jobs; parameters follow a colon: energy-qare:limit=0.2. "
              "`odonata policies` lists them.")  # fmt: skip
@click.option("--bid", metavar="BID", help="What is offered, average and reserve, as 8434W,3435W; "
              "or the name of a bidding policy.  [default: the one that is called as the "
              "policy]")  # fmt: skip
@click.option("--hours", type=float, help="How many hours.  [default: 20; of a trace all in which "
              "jobs are submitted, from the first on]")  # fmt: skip
@click.option("--continuous", is_flag=True, help="One run of so many hours; without it each hour "
              "is a run of its own that starts empty, with the next seed.")  # fmt: skip
@click.option("--nodes", type=int, help="Nodes of the machine.  [default: those of the paper that "
              "the mix, or the table of its types, is from]")  # fmt: skip
@click.option("--load", type=float, help="The part of the nodes that is busy on average.  "
              "[default: that of the mix]")  # fmt: skip
@click.option("--standby", metavar="TYPE", help="The type of which there is always another job "
              "that starts when nothing else waits and power is left; none: there is none.  "
              "[default: ft, as in the thesis, where the workload is qosg]")  # fmt: skip
@click.option("--signal", default="synthetic", show_default=True, metavar="FILE",
              help="The grid's signal, -1 to 1: a CSV file, or synthetic.")  # fmt: skip
@click.option("--repair", is_flag=True, help="Repair values of the signal that are missing, "
              "repeated or beyond -1 and 1, aloud.")  # fmt: skip
@click.option("--repeat", is_flag=True, help="Have the signal begin anew when it has ended, as a "
              "day of it for a week.")  # fmt: skip
@click.option("--deviation", type=float, help="The standard deviation of a synthetic signal.  "
              "[default: 0.4]")  # fmt: skip
@click.option("--prices", metavar="E,R,D", help="Of energy, reserve and error, per kWh; numbers or "
              "CSV files.  [default: 0.1,0.1,0.1]")  # fmt: skip
@click.option("--epoch", metavar="DATE", help="The date of time 0, by which dated prices and "
              "signals are placed, such as 2026-03-02T00:00+01:00.  [default: what the trace "
              "tells]")  # fmt: skip
@click.option("--timezone", metavar="ZONE", help="The time zone of dates that have none, such as "
              "Europe/Stockholm or +01:00.  [default: what the trace tells]")  # fmt: skip
@click.option("--preemption", is_flag=True, help="Suspend jobs where all are held at their lowest "
              "cap and the machine still draws more.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True,
              help="The first seed.")  # fmt: skip
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE",
              help="A change to the experiment, as market.violation=0.5; repeatable.")  # fmt: skip
@click.option("--write", type=click.Path(path_type=Path), metavar="FILE.toml",
              help="Write the experiment of the first seed, for `odonata run`.")  # fmt: skip
@click.option(
    "--csv", type=click.Path(path_type=Path), metavar="FILE", help="Write a row per hour."
)
@click.option("-o", "--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Keep the runs, one directory per seed.")  # fmt: skip
@click.option(
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    default=cores,
    help="Runs at a time; by default one per core, under mpiexec one per rank.",
)
@click.option("--overwrite", is_flag=True, help="Replace what is there.")
@plot_option
@plugin_option
@json_option
def command(plugins: tuple[Path, ...], **options: Any) -> None:
    """Simulate hours in which a machine follows the signal of an electricity grid, and show what
    that saves, how well it follows, and which jobs wait for longer."""
    from policies.register import load_plugin

    for path in plugins:
        load_plugin(path)
    known = [one.name for one in fields(Asked)]
    asked = Asked(**{name: options.pop(name) for name in known})
    regulate(asked, plugins=plugins, **options)


def regulate(
    asked: Asked,
    *,
    write: Path | None = None,
    csv: Path | None = None,
    out: Path | None = None,
    overwrite: bool = False,
    plot: Path | None = None,
    jobs: int = 1,
    plugins: tuple[Path, ...] = (),
    as_json: bool = False,
) -> None:
    """Simulate the hours, and print, write and draw what they came to."""
    check_outputs(write, csv, out, overwrite, plot)
    if out is not None and (launcher.ranks() or 1) > 1:
        raise Refused(f"-o {out}: runs are kept one after the other: without mpiexec")
    made, text = asked.experiment()
    made.model()  # which tells what is wrong with its jobs, its types or its signal
    check_market(made)
    if write is not None and launcher.rank() == 0:
        write_text(write, text)
    found = simulated(text, asked, out, overwrite, jobs, plugins)
    if found is None:
        return
    if csv is not None:
        write_text(csv, csv_of(found))
    if plot is not None:
        from odonata.figures.market import write_hours

        write_hours(found, plot, heading(made, asked))
    if as_json:
        print_json(facts(found, made, asked))
        return
    print_table(*tables(found, made, asked), highlight=False)
    for path in (write, csv, plot, out):
        if path is not None:
            print(f"written to {path}")


def check_outputs(
    write: Path | None, csv: Path | None, out: Path | None, overwrite: bool, plot: Path | None
) -> None:
    """Refuse what cannot be written, before anything is simulated."""
    for option, path, suffix in (("--write", write, ".toml"), ("--csv", csv, SUFFIX)):
        if path is None:
            continue
        if path.suffix.lower() != suffix:
            raise Refused(f"{option} {path}: the name must end in {suffix}")
        if not path.absolute().parent.is_dir():
            raise Refused(f"{option} {path}: there is no directory {path.parent}")
        if path.exists() and not overwrite:
            raise Refused(f"{option} {path}: there is such a file: name another, or add "
                          "--overwrite")  # fmt: skip
    if out is not None and out.exists() and any(out.iterdir()) and not overwrite:
        raise Refused(f"-o {out}: there is something in it: name another, or add --overwrite")
    if plot is not None:
        from odonata.figures.machine import check_name

        check_name(plot)


def check_market(made: JobExperiment) -> None:
    """Refuse a policy that follows no target: its hours would be those of nobody in particular."""
    if made.model().regulates is None:
        assert made.power is not None
        raise Refused(f"--policy {made.power.policy}: it does not follow a target by types of "
                      "jobs: tracking-only, energy-qare and qosg do")  # fmt: skip


def write_text(path: Path, text: str) -> None:
    """Write a file, whole or not at all."""
    from pdes.replacing import replacing

    with replacing(path.resolve()) as part:  # a link stays one
        part.write_text(text, encoding="utf-8")


# -- the hours


def simulated(
    text: str, asked: Asked, out: Path | None, overwrite: bool, jobs: int,
    plugins: tuple[Path, ...],
) -> Regulated | None:  # fmt: skip
    """Returns the runs; those of `-o` are kept, each in a directory of its seed. None on all ranks
    but the first."""
    from odonata.commands.regulate_hours import Task, every
    from odonata.results.regulated import Regulated

    tasks = [Task(text, plugins, seed) for seed in asked.seeds]
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        file = out / EXPERIMENT
        write_text(file, text)
        tasks = [task._replace(file=file, out=out / f"seed-{task.seed:04d}", overwrite=overwrite)
                 for task in tasks]  # fmt: skip
    found = every(tasks, jobs)
    return Regulated(found) if found else None


# -- for programs


def facts(found: Regulated, made: JobExperiment, asked: Asked) -> dict[str, Any]:
    """Returns all that came of it, for JSON."""
    assert made.power is not None
    assert made.market is not None
    measures = found.measures.facts()
    del measures["types"]
    count = measures.pop("hours")
    return {
        "jobs_of": asked.workload or str(asked.trace), "nodes": made.model().nodes,
        "policy": made.power.policy, "bidding": made.market.bidding,
        "continuous": not asked.apart, "seeds": asked.seeds, "hours_count": count, **measures,
        "energy_without_kwh": found.energy_without_kwh, "cost_without": found.cost_without,
        "left_kwh": found.left_kwh, "left_without_kwh": found.left_without_kwh, "bill": found.bill,
        "hours": found.rows,
        "types": found.of_types(),
    }  # fmt: skip


def csv_of(found: Regulated) -> str:
    """Returns a row per hour, as CSV; those figures by type that say who was late have columns of
    their own."""
    text = io.StringIO()
    rows = []
    for row in found.rows:
        types = row.pop("types")
        some = ("jobs", "late_share", "mean_q", "mean_wait_s")
        of_types = {f"{name} {what}": of[what] for name, of in types.items() for what in some}
        rows.append(row | of_types)
    made = csv.DictWriter(text, list(dict.fromkeys(name for row in rows for name in row)),
                          lineterminator="\n")  # fmt: skip
    made.writeheader()
    made.writerows(rows)
    return text.getvalue()


# -- for people


def tables(found: Regulated, made: JobExperiment, asked: Asked) -> Sequence[Any]:
    """Returns what is shown: a heading, a table of the hours and one of the types."""
    from rich.text import Text

    notes = [Text(word, "bold") for word in [*notes_of(found, made), *firsts(made, asked)]]
    return (Text(heading(made, asked), "bold"), hours_table(found), *notes, Text(),
            types_table(found), Text(TERMS, "dim"))  # fmt: skip


def notes_of(found: Regulated, made: JobExperiment) -> list[str]:
    """Returns why a bid could not be followed to its end, where it could not."""
    model = made.model()
    assert model.power is not None  # with the types of the mix
    idle_w = model.nodes * model.power.idle
    bids = [hour for one in found.runs for hour in one.market.by_hour]
    low = [hour.average_w - hour.reserve_w for hour in bids if hour.reserve_w]
    below = sum(least < idle_w for least in low)
    notes = [f"{line}." for line in model.trace.account.lines()]
    it = found_below(bids)
    if it is not None:
        assert made.market is not None
        cure = "a lower bid is followed more easily"
        if made.market.standby is None:
            cure = f"standby jobs (--standby) fill it, and {cure}"
        notes.append("In hours that broke the rule the machine drew too little more often than too "
                     f"much ({it:.0%} of the error): {cure}.")  # fmt: skip
    if not below:
        return notes
    return [
        *notes,
        f"In {below} of {len(bids)} hours the bid goes down to less than the {show_power(idle_w)} "
        f"that idle nodes draw (to {show_power(min(low))}): nobody can follow it there.",
    ]


def firsts(made: JobExperiment, asked: Asked) -> list[str]:
    """Returns of what all hours have the first hour, where they are simulated apart: each begins at
    time 0."""
    trading = made.model().trading
    if len(asked.seeds) < 2 or trading is None:
        return []
    notes = []
    if asked.signal != "synthetic":
        notes.append(f"All hours follow the first hour of {asked.signal}; --continuous goes on "
                     "with it.")  # fmt: skip
    vary = [name for name in PRICES if len(trading.series[name].levels) > 1]
    if vary:
        notes.append(f"All hours have the prices of the first hour ({', '.join(vary)} "
                     f"change{'s' * (len(vary) == 1)} over time); --continuous goes on with "
                     "them.")  # fmt: skip
    return notes


def found_below(hours: Sequence[Any]) -> float | None:
    """Returns the part of the error that is too little power, where that is most of it and hours
    broke the tracking rule for it."""
    below = sum(hour.error_below or 0.0 for hour in hours if not hour.tracking_ok)
    above = sum(hour.error_above or 0.0 for hour in hours if not hour.tracking_ok)
    return below / (below + above) if below > above else None


def heading(made: JobExperiment, asked: Asked) -> str:
    """Returns what was simulated."""
    assert made.power is not None
    assert made.market is not None
    whose = asked.workload or str(asked.trace)
    if made.market.standby is not None:
        whose += f" and standby jobs ({made.market.standby})"
    count = asked.hours_each * len(asked.seeds)
    long = f"{count:,g} hour{'s' if count != 1 else ''}"
    first, last = asked.seeds[0], asked.seeds[-1]
    seeds = f"seeds {first} to {last}" if last > first else f"seed {first}"
    how = f"each from an empty machine, {seeds}" if asked.apart else f"in one run, {seeds}"
    bidding = made.market.bidding
    who = "" if bidding == made.power.policy else f", bids: {bidding}"
    return f"{whose} on {made.model().nodes:,} nodes, {made.power.policy}{who}: {long}, {how}"


def hours_table(found: Regulated) -> Any:
    """Returns what the hours came to."""
    from rich.table import Table

    from odonata.results.market_measures import KWH, money

    it, rules = found.measures, found.runs[0].market.rules
    hours = sum(hour.hours for one in found.runs for hour in one.market.by_hour)
    shown = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), show_header=False)
    shown.add_column(no_wrap=True, style="dim")
    shown.add_column(justify="right", no_wrap=True)
    shown.add_column()

    def number(value: float | None, how: Callable[[float], str]) -> str:
        return "-" if value is None else how(value)

    saving = number(it.saving, "{:.1%}".format)
    spread = ""
    if it.saving is not None and it.saving_high is not None:
        saving += f" ± {it.saving_high - it.saving:.1%}"
        spread = f"95 % interval over {len(found.runs)} runs; "
    split = [f"energy {money((it.cost_energy or 0) / hours)}",
             f"reserve {money((it.cost_reserve or 0) / hours)}"]  # fmt: skip
    split += [f"error {money(it.cost_error / hours)}"] if it.cost_error is not None else []
    split += [f"violations {money(it.cost_violation / hours)}"] if it.cost_violation else []
    drawn, before = it.energy_kwh * KWH / hours, found.energy_without_kwh * KWH / hours
    offered = f"offered in {it.hours_offered:,} of {it.hours:,} hours"
    rows = [
        ("average bid", number(it.average_w, show_power), ""),
        ("reserve bid", number(it.reserve_w, show_power),
         "to either side" if it.hours_offered == it.hours else offered),
        ("saving", saving, f"{spread}of what the average costs that was bid"),
        ("cost per hour", number(it.cost, lambda cost: money(cost / hours)), ", ".join(split)),
        ("cost before", money(found.cost_without / hours), "without demand response"),
        ("bill", number(found.bill, "{:+.1%}".format),
         "against before, each with the price of the work that is left"),
        ("work left", show_energy(found.left_kwh * KWH), f"in the end, above idle nodes; without "
         f"demand response {show_energy(found.left_without_kwh * KWH)}"),
        ("error, mean", number(it.error_mean, "{:.1%}".format), "of the reserve"),
        ("bad intervals", number(it.bad_share, "{:.1%}".format),
         f"off by more than {rules.limit:g} of the reserve"),
        ("kept the rule", f"{it.hours_kept} of {it.hours_offered}",
         f"hours with less than {rules.share:.0%} of bad intervals"),
        ("kept QoS", f"{it.hours_qos} of {it.hours}",
         f"hours with at most {rules.late:.0%} of each type late"),
        ("energy per hour", show_energy(drawn), f"without demand response {show_energy(before)}"),
    ]  # fmt: skip
    if it.standby_kwh and it.standby_started is not None:
        rows.append(("standby per hour", show_energy(it.standby_kwh * KWH / hours),
                     f"{it.standby_started / hours:,.0f} jobs started"))  # fmt: skip
    for row in rows:
        shown.add_row(*row)
    return shown


def _brief(seconds: float | None) -> str:
    """Returns a wait for people: less than a tenth of a second is none."""
    return show_duration(None if seconds is None else round(seconds, 1))


def types_table(found: Regulated) -> Any:
    """Returns how late the jobs of each type were, and who waits longer than before."""
    from rich.table import Table
    from rich.text import Text

    late = found.runs[0].market.rules.late
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    shown.add_column("type", no_wrap=True)
    titles = ("jobs", "limit", "late", "before", f"≤ {late:.0%}", "Q", "before", "wait", "before")
    for title in titles:
        shown.add_column(title, justify="right", no_wrap=True)
    for now, before in found.types:
        if not now.jobs:
            continue
        kept = "" if now.threshold is None else "yes" if now.qos_ok else "NO"
        limit = "" if now.threshold is None else f"{now.threshold:g}"
        shown.add_row(
            Text(now.type), f"{now.jobs:,}", limit, f"{now.late_share or 0:.1%}",
            f"{before.late_share or 0:.1%}", kept,
            f"{now.mean_q or 0:.2f}", f"{before.mean_q or 0:.2f}",
            _brief(now.mean_wait_s), _brief(before.mean_wait_s),
        )  # fmt: skip
    return shown
