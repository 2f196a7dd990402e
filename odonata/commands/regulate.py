"""`odonata regulate`: what a machine saves that follows a regulation signal, and who waits."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odonata.commands.bid_file import other_than, read_bid
from odonata.commands.group import SETTINGS
from odonata.commands.options import jobs_option, json_option, plot_option, plugin_option
from odonata.commands.output import beside, print_json, print_table
from odonata.commands.regulate_asked import QOS_RULES, SUFFIX, Asked, followers
from odonata.commands.regulate_options import job_options, market_options
from pdes import launcher
from pdes.errors import Fault, Refused
from pdes.shown import say

if TYPE_CHECKING:
    from odonata.experiment.experiment import JobExperiment
    from odonata.results.regulated import Regulated
    from odonata.sweeps.drafts import Draft

EXPERIMENT = "regulate.toml"
"""The sweep in the directory of `-o`."""


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
              help="Write the experiment, with the first seed for `odonata run`, with all for "
              "`odonata sweep`.")  # fmt: skip
@click.option(
    "--csv", type=click.Path(path_type=Path), metavar="FILE", help="Write a row per hour."
)
@click.option("-o", "--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Keep the runs, one directory per seed.")  # fmt: skip
@jobs_option
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
    from odonata.sweeps.drafts import check_written, write_text

    check_written({"--write": (write, ".toml"), "--csv": (csv, SUFFIX)}, out, overwrite)
    if plot is not None:
        from odonata.figures.style import check_name

        check_name(plot)
    policies = {}
    for name, one in asked.by_policy.items():
        made, _ = one.experiment()
        made.model()  # which tells what is wrong with its jobs, its types or its signal
        check_market(made)
        policies[name] = made, one
    say_other(made, asked)
    draft = asked.draft()
    if write is not None and launcher.rank() == 0:
        write_text(write, draft.text)
    found = simulated(draft, jobs, out, overwrite)
    if not found:
        return
    several = len(policies) > 1
    if csv is not None:
        write_text(csv, csv_of(found))
    for name, (made, one) in policies.items() if plot is not None else ():
        from odonata.figures.market import write_hours

        assert plot is not None
        path = beside(plot, name) if several else plot
        write_hours(found[name], path, heading(made, one))
    if as_json:
        told = [facts(found[name], *policies[name]) for name in policies]
        print_json({"policies": told} if several else told[0])
        return
    for name, (made, one) in policies.items():
        print_table(*tables(found[name], made, one), *[""] * several, highlight=False)
    for written in (write, csv, plot, out):
        if written is not None:
            print(f"written to {written}")


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


def simulated(draft: Draft, jobs: int, out: Path | None, overwrite: bool) -> dict[str, Regulated]:
    """Returns the runs by their policies; those of `-o` are kept, each in a directory of its seed.
    Nothing on all ranks but the first."""
    from odonata.commands.regulate_asked import APART
    from odonata.results.regulated import Regulated, one_run, part_of
    from odonata.sweeps.drafts import Kept, whole_runs
    from pdes.transport import together, world

    plan = together(world(), draft.plan)
    kept = None
    if out is not None:
        several = len(plan.axes[0].labels) > 2
        names = {point.key: f"{point.labels[0]}-" * several + f"seed-{point.seed:04d}"
                 for point in plan.points if point.labels[0] != APART}  # fmt: skip
        kept = Kept(out, EXPERIMENT, names, overwrite)
    runs = whole_runs(draft, plan, part_of, jobs, kept)
    for run in (run for each in runs.values() for run in each):
        if run.failed:
            raise Fault(f"seed {run.seed}: {run.failed}")
    without = runs.pop((APART,), [])
    return {policy: Regulated([one_run(run.seed, run.digest, run.derived, apart.derived)
                               for run, apart in zip(each, without, strict=True)])
            for (policy,), each in runs.items()}  # fmt: skip


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


def csv_of(found: Mapping[str, Regulated]) -> str:
    """Returns a row per hour, as CSV; those figures by type that say who was late have columns of
    their own, and of several policies the first column names each."""
    text = io.StringIO()
    rows = []
    some = ("jobs", "late_share", "mean_q", "mean_wait_s")
    for policy, hours in found.items():
        named = {"policy": policy} if len(found) > 1 else {}
        for row in hours.rows:
            types = row.pop("types")
            of_types = {f"{name} {what}": of[what] for name, of in types.items() for what in some}
            rows.append(named | row | of_types)
    made = csv.DictWriter(text, list(dict.fromkeys(name for row in rows for name in row)),
                          lineterminator="\n")  # fmt: skip
    made.writeheader()
    made.writerows(rows)
    return text.getvalue()
