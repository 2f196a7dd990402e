"""`odonata regulate`: what a machine saves that follows a regulation signal, and who waits."""

from __future__ import annotations

import csv
import io
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odonata.commands.bid_file import other_than, read_bid
from odonata.commands.group import SETTINGS
from odonata.commands.options import cores, json_option, plot_option, plugin_option
from odonata.commands.output import print_json, print_table
from odonata.commands.regulate_asked import QOS_RULES, SUFFIX, Asked, followers
from odonata.commands.regulate_options import job_options, market_options
from pdes import launcher
from pdes.errors import Refused
from pdes.shown import say

if TYPE_CHECKING:
    from odonata.experiment.experiment import JobExperiment
    from odonata.results.regulated import Regulated

EXPERIMENT = "regulate.toml"
"""The experiment in the directory of `-o`, with the first seed."""


@click.command("regulate", context_settings=SETTINGS)
@job_options("energy-qare")
@click.option("--bid", metavar="BID", help="What is offered, average and reserve, as 8434W,3435W; "
              "or a file that `odonata bid` wrote, as mine/bid.json; or a bidding policy, with "
              "parameters as energy-qare:rule=cost:hours=6.  [default: the one that goes with "
              "the policy, which is called as it, but for qoscap: adaptive]")  # fmt: skip
@click.option("--hours", type=float, help="How many hours.  [default: 20; of a trace all in which "
              "jobs are submitted, from the first on]")  # fmt: skip
@click.option("--continuous", is_flag=True, help="One run of so many hours; without it each hour "
              "is a run of its own that starts empty, with the next seed.")  # fmt: skip
@click.option("--warm-up", metavar="TIME", help="Simulate so long before what is judged, as 96h; "
              "--hours come after it.  [default: none]")  # fmt: skip
@click.option("--qos", type=click.Choice(QOS_RULES), default=QOS_RULES[0], show_default=True,
              help="When a type of jobs keeps its QoS: if few of its jobs are at their threshold "
              "or beyond it (share), or if their mean degradation is below it "
              "(mean).")  # fmt: skip
@market_options
@click.option("--carbon", metavar="G", help="Grams of CO2 per kWh: a number or a CSV file.")
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
def command(**options: Any) -> None:
    """Simulate hours in which a machine follows the signal of an electricity grid, and show what
    that saves, how well it follows, and which jobs wait for longer."""
    from policies.register import load_plugin

    for path in options["plugins"]:
        load_plugin(path)
    known = [one.name for one in fields(Asked)]
    asked = Asked(**{name: options.pop(name) for name in known})
    regulate(asked, **options)


def regulate(
    asked: Asked,
    *,
    write: Path | None = None,
    csv: Path | None = None,
    out: Path | None = None,
    overwrite: bool = False,
    plot: Path | None = None,
    jobs: int = 1,
    as_json: bool = False,
) -> None:
    """Simulate the hours, and print, write and draw what they came to."""
    from odonata.commands.regulate_shown import heading, tables

    check_outputs(write, csv, out, overwrite, plot)
    if out is not None and (launcher.ranks() or 1) > 1:
        raise Refused(f"-o {out}: runs are kept one after the other: without mpiexec")
    made, text = asked.experiment()
    made.model()  # which tells what is wrong with its jobs, its types or its signal
    check_market(made)
    say_other(made, asked)
    if write is not None and launcher.rank() == 0:
        write_text(write, text)
    found = simulated(text, asked, out, overwrite, jobs)
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
        from odonata.figures.style import check_name

        check_name(plot)


def check_market(made: JobExperiment) -> None:
    """Refuse a policy that follows no target: its hours would be those of nobody in particular."""
    if made.model().regulates is None:
        assert made.power is not None
        raise no_target(made.power.policy)


def no_target(policy: str) -> Refused:
    """Returns the refusal of a policy that follows no target."""
    return Refused(f"--policy {policy}: it does not follow a target by types of jobs: "
                   f"{', '.join(followers())} do")  # fmt: skip


def say_other(made: JobExperiment, asked: Asked) -> None:
    """Say on stderr where the bid of a file was made for something else, or keeps no risk."""
    if asked.bid_file is None or launcher.rank() > 0:
        return
    found = read_bid(asked.bid_file)
    if found.get("keeps_risk") is False:
        say(f"warning: --bid {asked.bid}: it fails more often than the risk that was asked for")
    other = other_than(found, for_what(made, asked))
    if other:
        say(f"warning: --bid {asked.bid}: it was made for something else: {other}")


def for_what(made: JobExperiment, asked: Asked) -> dict[str, Any]:
    """Returns what a bid is made for."""
    assert made.market is not None
    return {"workload": asked.workload or str(asked.trace), "nodes": made.model().nodes,
            "standby": made.market.standby, "policy": asked.policy, "load": asked.load,
            "preemption": asked.preemption, "types": asked.types, "prices": asked.prices,
            "deviation": (made.market.signal_deviation if asked.signal == "synthetic"
                          else asked.signal),
            }  # fmt: skip


def write_text(path: Path, text: str) -> None:
    """Write a file, whole or not at all."""
    from pdes.replacing import replacing

    with replacing(path.resolve()) as part:  # a link stays one
        part.write_text(text, encoding="utf-8")


# -- the hours


def simulated(
    text: str, asked: Asked, out: Path | None, overwrite: bool, jobs: int
) -> Regulated | None:
    """Returns the runs; those of `-o` are kept, each in a directory of its seed. None on all ranks
    but the first."""
    from odonata.commands.regulate_hours import Task, every
    from odonata.results.regulated import Regulated

    tasks = [Task(text, seed) for seed in asked.seeds]
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
        "continuous": not asked.apart, "seeds": asked.seeds, "hours_count": count,
        "warm_up_s": made.market.warmup_ps * 1e-12, "qos": made.market.qos, **measures,
        "carbon_without_kg": found.carbon_without_kg,
        "energy_without_kwh": found.energy_without_kwh, "cost_without": found.cost_without,
        "left_kwh": found.left_kwh, "left_without_kwh": found.left_without_kwh, "bill": found.bill,
        "bill_standby": found.bill_standby,
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
