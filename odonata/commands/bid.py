"""`odonata bid`: what a machine may offer for an hour, and how sure that is."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odonata.commands.group import SETTINGS
from odonata.commands.options import cores, json_option, plot_option, plugin_option
from odonata.commands.output import print_json, print_table
from odonata.commands.regulate_asked import Asked, named
from odonata.commands.regulate_options import job_options, market_options
from pdes.errors import Refused

if TYPE_CHECKING:
    from odonata.bids.plan import BidPlan, Found
    from odonata.bids.risk import Point
    from odonata.bids.searching import BidSearch
    from odonata.bids.training import Report
    from odonata.experiment.experiment import JobExperiment
    from odonata.study.filling import Ran

BID, SEARCH, RESULTS = "bid.json", "search.json", "results.jsonl"
"""The files of `-o`: the bid, what is looked for, and what every bid that was tried came to."""
TRAINS, TRAINS_ONE, TRAINS_AT_RISK, JUDGES, JUDGES_AT_RISK, CHOOSES = 6, 1, 40, 20, 400, 200
MARGIN = 0.4
MOST_HOURS = 100_000
"""Hours of one kind: those of the next kind have the numbers from there."""
FEW = 1000
"""Hours that are worth a process of their own."""
ALIKE = ("identity", "optimiser", "margin", "train", "choose", "risk")
"""What is the same of two searches where one goes on with the other."""
LEVEL = 0.95


@click.command("bid", context_settings=SETTINGS)
@job_options("aqa")
@market_options
@click.option("--optimiser", default="search", show_default=True, metavar="NAME",
              help="Who suggests bids: search, or gradient, the descent of the paper.")  # fmt: skip
@click.option("--candidates", type=int, default=500, show_default=True, metavar="N",
              help="How many bids are tried, in whole batches; of the gradient 200 at "
              "most.")  # fmt: skip
@click.option("--train", type=int, metavar="N", help="Hours in which each bid is tried.  "
              f"[default: {TRAINS}; of the gradient {TRAINS_ONE}; with --risk "
              f"{TRAINS_AT_RISK}]")  # fmt: skip
@click.option("--judge", type=int, metavar="N", help="Other hours, in which the bid is judged "
              f"that was found.  [default: {JUDGES}; with --risk {JUDGES_AT_RISK}]")  # fmt: skip
@click.option("--margin", type=float, help="How much stricter training is: with 0.4 only 6 % of "
              "the time, and of the jobs of a type, may be bad and not 10 %.  [default: "
              f"{MARGIN}; with --risk 0]")  # fmt: skip
@click.option("--risk", type=float, metavar="CHANCE", help="Look for the cheapest bid with which "
              "the chance of a failed hour is below this, such as 0.1.")  # fmt: skip
@click.option("--choose", type=int, metavar="N", help="Hours in which the best bids are "
              f"compared, with --risk.  [default: {CHOOSES}]")  # fmt: skip
@click.option("-o", "--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Keep the bid, and what every bid came to that was tried; the same command "
              "goes on where it was cut short.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Processes.  [default: one per "
              "core, if there is enough to do; under mpiexec one per rank]")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Begin anew, whatever search is in DIR.")
@plot_option
@plugin_option
@json_option
def command(**options: Any) -> None:
    """Look for the bid that costs least while an hour keeps the tracking rule and jobs are in time,
    in simulated hours; and judge it in others."""
    from policies.register import load_plugin

    for path in options["plugins"]:
        load_plugin(path)
    known = [one.name for one in fields(Asked)]
    jobs = {name: options.pop(name) for name in known if name in options}
    if jobs["trace"] is not None:
        raise Refused(f"--trace {jobs['trace']}: of a trace nothing is known before it begins: bid "
                      "during the run, by odonata regulate --trace FILE --types TABLE "
                      "--bid aqa")  # fmt: skip
    if jobs["signal"] != "synthetic":
        raise Refused(f"--signal {jobs['signal']}: hours that are tried before a run have a signal "
                      "that is made: give --deviation; odonata signal FILE tells that of "
                      "yours")  # fmt: skip
    wish = {name: options.pop(name) for name in WISHES}
    bid(Asked(hours=1, continuous=False, bid="aqa", **jobs), wish, **options)


WISHES = ("optimiser", "candidates", "train", "judge", "margin", "risk", "choose")


def bid(
    asked: Asked,
    wish: Mapping[str, Any],
    *,
    out: Path | None = None,
    overwrite: bool = False,
    plot: Path | None = None,
    jobs: int | None = None,
    as_json: bool = False,
) -> None:
    """Look for the bid, and print, write and draw what came of it."""
    from odonata.bids.searching import BidSearch
    from odonata.commands.bid_shown import heading, tables
    from odonata.commands.regulate import for_what
    from odonata.study.filling import fill
    from odonata.sweeps.drafts import write_text
    from pdes.transport import together, world

    made, plan = planned(asked, wish)
    if plot is not None:
        from odonata.figures.style import check_name

        check_name(plot)
    if out is not None:
        together(world(), lambda: prepare(out, plan, overwrite) if world().rank == 0 else None)
    study = BidSearch(plan)
    ran, _ = fill(study, plan, out, jobs or enough(plan))
    if world().rank > 0:
        return
    if study.found is None:
        _tell_stopped(study, ran, out, as_json)
        return
    found, what = study.found, for_what(made, asked)
    if out is not None:
        write_text(out / BID, json.dumps(file_of(found, plan, what), indent=1) + "\n")
    if plot is not None:
        from odonata.bids.drawing import write

        write(study.market, plan, found, plot, heading(made, asked, plan))
    if as_json:
        print_json(facts(found, plan, what) | ({"out": str(out)} if out is not None else {}))
        return
    print_table(*tables(study.market, found, made, asked, plan), highlight=False)
    print(ran)
    if out is not None:
        standby = what["standby"] or "none"
        print(f"written to {out / BID}; to offer it: odonata regulate --workload "
              f"{what['workload']} --policy {what['policy']} --standby {standby} --bid "
              f"{out / BID}")  # fmt: skip
    if plot is not None:
        print(f"written to {plot}")


# -- what is looked for


def planned(asked: Asked, wish: Mapping[str, Any]) -> tuple[JobExperiment, BidPlan]:
    """Returns the experiment and what is looked for. Refused with what makes no sense of it, before
    anything is simulated."""
    from odonata.bids.plan import BidPlan
    from odonata.commands.regulate import no_target
    from odonata.sweeps.plan import identities
    from policies.bidding.known import unknown
    from policies.register import REGISTERS

    how = with_defaults(wish)
    policy = named(asked.policy, "power", "--policy")["name"]
    if getattr(REGISTERS["power"][policy].build, "regulate", None) is None:
        raise no_target(policy)
    for change in asked.changes:
        if change.partition("=")[0].strip() == "market.bidding":
            raise Refused(f"--set {change}: nobody bids in the hours that are tried here")
    made, text = asked.experiment()
    if unknown(made.model().first_market()):
        raise Refused(f"--workload {asked.workload}: no jobs come, and there is nothing to bid for")
    (identity,) = identities(made, [asked.seed])
    return made, BidPlan(text, identity, **how)


def with_defaults(wish: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the numbers of the search. Refused where one of them cannot be."""
    from policies.bidding.search import OPTIMISERS

    risk, margin = wish["risk"], wish["margin"]
    if margin is None:
        margin = MARGIN if risk is None else 0.0
    if risk is not None and not 0.0 < risk < 1.0:
        raise Refused(f"--risk {risk:g}: a chance between 0 and 1, such as 0.1")
    if not 0.0 <= margin < 1.0:
        raise Refused(f"--margin {margin:g}: from 0 to less than 1")
    if wish["optimiser"] not in OPTIMISERS:
        raise Refused(f"--optimiser {wish['optimiser']}: {' or '.join(OPTIMISERS)}")
    if wish["candidates"] < 1:
        raise Refused(f"--candidates {wish['candidates']}: at least one bid")
    alone = TRAINS_ONE if wish["optimiser"] == "gradient" else TRAINS
    usual = {"train": alone if risk is None else TRAINS_AT_RISK,
             "judge": JUDGES if risk is None else JUDGES_AT_RISK, "choose": CHOOSES}  # fmt: skip
    hours = {name: wish[name] if wish[name] is not None else usual[name] for name in usual}
    for name, count in hours.items():
        if not 1 <= count <= MOST_HOURS:
            raise Refused(f"--{name} {count}: at least one hour, and at most {MOST_HOURS:,}")
    if risk is None and wish["choose"] is not None:
        raise Refused(f"--choose {wish['choose']}: bids are chosen only with --risk")
    least = math.ceil(math.log1p(-LEVEL) / math.log1p(-risk)) if risk is not None else 0
    if hours["choose"] < least:
        raise Refused(f"--risk {risk:g}: {hours['choose']} hours are too few to show that, even if "
                      f"none fails: --choose {least} or more")  # fmt: skip
    return {**wish, "margin": margin, **hours, **({} if risk is not None else {"choose": 0})}


def enough(plan: BidPlan) -> int:
    """Returns on how many processes it is worth while to simulate."""
    hours = plan.candidates * plan.train + plan.choose * 60 + plan.judge
    return max(1, min(cores(), hours // FEW))


def prepare(out: Path, plan: BidPlan, overwrite: bool) -> None:
    """Refuse a directory with another search in it, and write what is looked for into it."""
    from pdes.replacing import write_whole

    said = {name: value for name, value in asdict(plan).items() if name != "text"}
    there = out / SEARCH
    if there.exists() and not overwrite:
        try:
            before = json.loads(there.read_text(encoding="utf-8"))
            same = all(before[name] == said[name] for name in ALIKE)
        except (OSError, ValueError, LookupError, TypeError):
            same = False
        if not same:
            raise Refused(f"-o {out}: another search is there: name another directory, or add "
                          "--overwrite")  # fmt: skip
    elif out.exists() and any(out.iterdir()) and not there.exists():
        raise Refused(f"-o {out}: there is something in it, and no search: name another")
    out.mkdir(parents=True, exist_ok=True)
    if overwrite:
        for name in (BID, RESULTS):
            (out / name).unlink(missing_ok=True)
    write_whole(there, json.dumps({**said, "experiment": plan.text}, indent=1) + "\n")


def _tell_stopped(study: BidSearch, ran: Ran, out: Path | None, as_json: bool) -> None:
    """Print how far a search was that was stopped."""
    if as_json:
        print_json({"out": str(out), **asdict(ran), "bid": None})
        return
    print(f"stopped by {ran.stopped}: the search has not found its bid yet; the same command goes "
          "on")  # fmt: skip


# -- for programs


def file_of(found: Found, plan: BidPlan, what: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what the file of the bid says, which `bid_file` reads."""
    how = {name: getattr(plan, name) for name in WISHES}
    after = found.after
    return {
        **found.bid._asdict(), "made_for": {**what, **how},
        "keeps_risk": None if found.at_risk is None else found.at_risk.passed,
        "judged": {"hours": after.hours, "kept": after.kept, "saving": after.saving},
    }  # fmt: skip


def facts(found: Found, plan: BidPlan, what: Mapping[str, Any]) -> dict[str, Any]:
    """Returns all that came of it, for JSON."""
    trained, risky = found.trained, found.at_risk
    told: dict[str, Any] = {
        "asked": {**what, **{name: getattr(plan, name) for name in WISHES}},
        "bid": found.bid._asdict(),
        "kept_in_training": not trained.best.broken(plan.risk or 0.0),
        "tried": len(trained.every),
        "before": report_facts(found.before), "after": report_facts(found.after),
        "steps": [it._asdict() for it in trained.steps],
    }  # fmt: skip
    if risky is not None:
        told["at_risk"] = {
            "risk": risky.risk, "passed_choice": risky.passed, "chosen": point_facts(risky.chosen),
            "judged": point_facts(risky.judged), "upper_limit": risky.judged.failed.below,
            "next_200": risky.judged.failed.next(200),
            "front": [point_facts(it) for it in risky.front],
        }  # fmt: skip
    return told


def report_facts(it: Report) -> dict[str, Any]:
    """Returns what a bid came to in some hours, with the chance of a failed one."""
    from odonata.bids.chance import Chance

    chance = Chance(it.hours - it.kept, it.hours)
    fails = {name: {"hours": count, "by": by} for name, (count, by) in it.fails.items()}
    return {**it._asdict(), "fails": fails, "chance_of_failure": chance.share,
            "chance_interval": chance.interval}  # fmt: skip


def point_facts(it: Point) -> dict[str, Any]:
    """Returns a bid of the front."""
    return {
        **it.bid._asdict(), "saving": it.saving, "cost": it.cost, "worst": it.worst,
        "failed": it.failed.seen, "hours": it.failed.trials, "chance": it.failed.share,
        "interval": it.failed.interval,
    }  # fmt: skip
