"""The report of a run: one page that opens anywhere.

`page.html` is its template and `style.css` its style; this module says what is on it. Everything
that a user wrote is escaped. The same run makes the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from matplotlib.figure import Figure

from odonata.experiment.experiment import JobExperiment
from odonata.experiment.units import show_duration, show_simulated, show_time
from odonata.figures import contents as pictures
from odonata.figures import market, power, schedule
from odonata.figures import network as figures
from odonata.figures.picture import Picture
from odonata.figures.style import save, style
from odonata.results import job_network as network
from odonata.results import job_table as accounts
from odonata.results import seen as sights
from odonata.results.alone import slowdowns
from odonata.results.derived import busiest, recorded
from odonata.results.market_measures import market_rows
from odonata.results.measured import Measured
from odonata.results.network_power import energy_rows
from odonata.results.power_measures import power_rows
from odonata.results.register import number
from odonata.results.run import INCOMPLETE, Run
from odonata.results.schedule_measures import Measures, Part
from odonata.results.summary_rows import (
    EJECTED,
    Row,
    account_of,
    sections,
    still,
    summary,
)

HERE = Path(__file__).parent
WORST_LINKS = 8
MOST_JOBS = 500


@dataclass(frozen=True)
class Shown:
    """A figure on the page: a drawing (`svg`), or why there is none (`missing`), or a table of
    `rows`, which has `heads` where it is wide."""

    title: str
    caption: str = ""
    name: str = ""
    wide: bool = False
    svg: Markup | None = None
    missing: str = ""
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


@cache
def environment() -> Environment:
    """Returns where the templates of pages are; everything is escaped in them."""
    return Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined,
        keep_trailing_newline=True,
    )  # fmt: skip


def style_sheet() -> Markup:
    """Returns the style sheet of all pages."""
    return Markup((HERE / "style.css").read_text(encoding="utf-8"))


OF_PACKETS = (
    "Loads are parts of what the nodes' links carry. Latencies are from the generation of a message"
    "\nto the arrival of a packet's last byte, or until its node has drained it if that takes time."
    f"\n{EJECTED}"
)


OF_JOBS = (
    "A wait is from a job's submission to its first start, a turnaround to its end; slowdown is "
    "turnaround over the time for which it had nodes, bounded where that counts as 10 s at least."
)
OF_POWER = (
    "A reading is the mean power of all nodes over an interval; it is within the cap where the "
    "energy of that interval is at most what the cap allows."
)
OF_MARKET = (
    "The error is what the machine is off its target, to either side, as a part of the reserve; "
    "the saving is a part of what the average costs by itself."
)


def page(run: Run) -> str:
    """Returns the page, as HTML."""
    packets = run.has("network")
    return rendered(
        run,
        machine=_network(run) if packets else _cluster(run),
        reached=_reached(run),
        summary=_summary(run),
        sections=list(_sections(run).items()),
        provenance=_provenance(run),
        footer=Markup(OF_PACKETS) if packets else OF_JOBS,
    )


def _reached(run: Run) -> str:
    """Returns how far a run has come and, if it is incomplete, how far it was to come."""
    if not run.has("network"):
        return f"{show_duration(run.simulated_us / 1e6)} simulated"
    if run.complete:
        return show_time(run.simulated_ps)
    comma = ", " if run.experiment.run.end is None else " "
    return f"{show_time(run.reached_ps)}{comma}{still(run.experiment)}"


def rendered(run: Run, **parts: Any) -> str:
    """Returns a page: what all runs have, and these parts."""
    experiment = run.experiment
    return environment().get_template("page.html").render(
        name=experiment.name,
        about=experiment.about,
        version=str(run.attributes["odonata"]),
        style=style_sheet(),
        place=str(run.path),
        incomplete="" if run.complete else INCOMPLETE[run.state],
        missing=run.missing,
        digest=(run.digest or "")[:12],
        experiment=run.attributes["experiment"],
        **parts,
    )  # fmt: skip


def _summary(run: Run) -> list[list[Row]]:
    """Returns the rows in two parts. Of packets, links and power stand beside all else."""
    it = Measured.of_run(run)
    rows = summary(it, run.reached_ps, run.complete)
    if not run.has("network"):
        half = -(-len(rows) // 2)
        return [rows[:half], rows[half:]]
    energy = energy_rows(run) if run.power is not None else []
    (every,) = sections(it, run.reached_ps, run.complete, energy)
    beside = [row for row in every if row[0].endswith(" links") or row not in rows]
    return [some for some in ([row for row in every if row not in beside], beside) if some]


def _network(run: Run) -> str:
    m, network = run.machine, run.network
    nodes = f"{m.n_nodes:,} node{'s' * (m.n_nodes != 1)}"
    groups = f"{m.groups:,} group{'s' * (m.groups != 1)}"
    sent = [f"{part.pattern} traffic at load {part.load:g}" for part in network.traffic]
    if network.workload:
        load = network.workload
        sent.append(f"{len(load.jobs):,} jobs, placed by {load.allocation}, {load.order}")
    built = f"{nodes}, {m.n_routers:,} routers, {groups}"
    return " · ".join([built, f"{network.routing} routing", *sent])


def _cluster(run: Run) -> str:
    made = run.experiment
    assert isinstance(made, JobExperiment)
    regulated = made.power is not None and made.power.regulates  # then nobody is killed
    overrun = "extend" if regulated else made.trace.overrun
    heading, *about = account_of(run.trace, run.n_nodes, made.machine, overrun)
    policies = f"{made.scheduler.order} scheduling" + f", {made.scheduler.allocation}" * bool(
        made.machine
    )
    if made.power is not None:
        policies += f", {made.power.policy} as the power policy"
    return " · ".join([heading, policies, *about])


def albums(run: Run) -> list[tuple[Any, Sequence[Picture[Any]]]]:
    """Returns the pictures of a run, in reading order, each with those of one subject."""
    found: list[tuple[Any, Sequence[Picture[Any]]]] = []
    if run.has("network"):
        found.append((run, pictures.of(run)))
    else:
        found.append((run.schedule, schedule.of(run.schedule)))
    if (watts := power.Watts.of_run(run)) is not None:
        found.append((watts, power.of(watts)))
    if run.market is not None:
        found.append((market.of_market(run.market), market.PICTURES))
    return found


def every_name() -> list[str]:
    """Returns the names of all figures that a report may have."""
    every = (pictures.FIGURES, pictures.OF_JOBS, pictures.OF_TELEMETRY, pictures.OF_CROSSBARS,
             schedule.PICTURES, power.PICTURES, market.PICTURES)  # fmt: skip
    return [picture.name for some in every for picture in some]


ORDER = (schedule.TIME, power.POWER, market.MARKET, schedule.JOBS, schedule.PLACEMENT)
"""The sections of a run without packets, in reading order."""


def _sections(run: Run) -> dict[str, list[Shown]]:
    """Returns the figures by section, both in reading order, each section with its tables."""
    found: dict[str, list[Shown]] = {}
    with style():
        for subject, some in albums(run):
            for picture in some:
                found.setdefault(picture.section, []).append(_drawn(subject, picture))
    it = Measured.of_run(run)
    if it.power is not None and power.POWER in found:
        rows = Shown("In numbers", OF_POWER, "power-rows", rows=power_rows(it.power))
        found[power.POWER].insert(1, rows)
    if it.market is not None:
        rows = Shown("In numbers", OF_MARKET, "market-rows",
                     rows=market_rows(it.market.measures, it.market))  # fmt: skip
        found[market.MARKET].insert(1, rows)
    if not run.has("network"):
        found[schedule.JOBS] += _shares(it.measures)
        return {name: found[name] for name in ORDER if name in found}
    if run.has("jobs") and len(run.times):
        found[pictures.JOBS] += _tables(run)
    if recorded(run, "ports") and len(run.times):
        found.setdefault(pictures.LINKS, []).extend(_worst(run, *which) for which in WORST)
    return found


def _drawn(subject: Any, picture: Picture[Any]) -> Shown:
    about: dict[str, Any] = {"title": picture.title, "name": picture.name,
                             "wide": picture.wide(subject)}  # fmt: skip
    why = picture.missing(subject)
    if why:
        return Shown(missing=why, **about)
    alt = f"{picture.section}: {picture.title}"
    svg = inlined(picture.drawn(subject), picture.name, alt)
    return Shown(svg=svg, caption=picture.words(subject), **about)


def _shares(found: Measures) -> Iterator[Shown]:
    """Returns the tables of what jobs got, by size, user, project and application."""
    yield _parts("By size", "sizes", "nodes", found.by_size)
    for name in ("user", "project", "application"):
        parts = getattr(found, f"by_{name}")
        if name == "user" or len(parts) > 1:
            yield _parts(f"By {name}", f"{name}s", name, parts)


def _parts(title: str, name: str, head: str, parts: tuple[Part, ...]) -> Shown:
    """Returns a table of sizes, users, projects or applications."""
    heads = (head, "jobs", "node-hours", "wait, mean", "bounded slowdown, mean")
    rows = [(part.name, f"{part.jobs:,}", f"{part.node_hours:,.1f}",
             show_duration(part.mean_wait_s), number(part.mean_bounded_slowdown))
            for part in parts if part.jobs]  # fmt: skip
    return Shown(title, name=name, heads=heads, rows=rows)


def _tables(run: Run) -> Iterator[Shown]:
    """Returns the tables of jobs whose packets were simulated."""
    yield _jobs(run)
    if run.job_network:
        yield _packets(run)
    if placed := sights.placed(run):
        by = sights.quantity(run)
        rows = [sights.cells(job, by) for job in placed[:MOST_JOBS]]
        yield Shown(f"{by.name.capitalize()} where they were placed", sights.caption(run),
                    "job-traffic", wide=True, heads=sights.HEADS, rows=rows)  # fmt: skip


def _jobs(run: Run) -> Shown:
    """Returns the table of jobs."""
    records = run.job_records
    energy, heads = accounts.powered(records), accounts.heads(records)
    rows = [accounts.cells(run.machine, record, energy) for record in records[:MOST_JOBS]]
    more = len(records) - len(rows)
    caption = (
        "Groups and routers over which a job's nodes are spread; waited: from its "
        "arrival to its start; ran: from its start to its last task's end."
        + " Energy: of its nodes while they have tasks of it, also per byte that other nodes sent "
        "to these." * energy + (f" {more:,} more are in jobs.csv." if more else "")
    )  # fmt: skip
    return Shown("One by one", caption, "jobs", wide=True, heads=heads, rows=rows)


def _packets(run: Run) -> Shown:
    """Returns the table of what the network did for each job."""
    factors = slowdowns(run.job_records, run.alone_ps)
    jobs = zip(run.job_network, run.job_records, factors, run.job_stalls, strict=True)
    rows = [network.cells(job, record.name, factor, stalls) for job, record, factor, stalls in jobs]
    return Shown("Their packets", network.CAPTION, "job-packets", wide=True, heads=network.HEADS,
                 rows=rows[:MOST_JOBS])  # fmt: skip


WORST = (
    ("Busiest links", "busy_ps", "Between routers, over the run: the part of the time in use."),
    ("Links that stall most", "stall_ps", "The part of the time in which a packet waited at a free "
     "link without credit, summed over virtual channels."),
)  # fmt: skip


def _worst(run: Run, title: str, counter: str, caption: str) -> Shown:
    """Returns a table of the links that stand out."""
    rows = list(_worst_rows(run, counter))
    return Shown(
        title, f"{caption} " + ("Routers by number." if rows else "No link did."), rows=rows
    )


def _worst_rows(run: Run, counter: str) -> Iterator[Row]:
    per_group, span = run.machine.routers, figures.span_ps(run)
    for link in busiest(run, WORST_LINKS, counter):
        groups = f"group {link.router // per_group}"
        if link.kind == "global":
            groups += f" to {link.to_router // per_group}"
        part = link.utilisation if counter == "busy_ps" else link.stall_ps / span
        if part == 0:
            return
        words = f"{link.kind}, {groups}, port {link.port}"
        yield f"{link.router} → {link.to_router}", f"{part:.1%}", words


def inlined(figure: Figure, name: str, alt: str) -> Markup:
    """Returns a figure as part of a page: without what a file of its own has at its beginning, and
    with names that no other figure on the page has."""
    text = StringIO()
    save(figure, text, "svg")
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", svg)
    size = r'<svg width="[^"]*" height="[^"]*"|<svg height="[^"]*" width="[^"]*"'
    return Markup(re.sub(size, f'<svg role="img" aria-label="{escape(alt)}"', svg, count=1))


def _about_digest(run: Run) -> str:
    if run.digest:
        return "the same on any number of ranks"
    return "lost with run.h5" if run.complete else "none: the run is incomplete"


def _provenance(run: Run) -> list[Row]:
    """Returns where a run comes from, with the tables that it has."""
    if not run.has("network"):
        return provenance(run, ("system", "jobs", *["power"] * (run.power is not None)))
    kept = [name for name in ("ports", "channels") if recorded(run, name)]
    return provenance(run, [*kept, "nodes", "groups", *["jobs"] * run.has("jobs")])


def provenance(run: Run, kept: Sequence[str]) -> list[Row]:
    """Returns where a run comes from; `kept` are the tables that it has."""
    facts, ranks = run.attributes, int(run.attributes["ranks"])
    versions = {"Python": facts["python"], **{k: v for k, v in run.packages.items() if v}}
    interval = show_simulated(run.experiment.metrics.interval_ps, run.tick)
    return [
        ("digest", run.digest or "-", _about_digest(run)),
        ("odonata", str(facts["odonata"]), ", ".join(f"{k} {v}" for k, v in versions.items())),
        ("started", str(facts["started"]), ""),
        ("host", str(facts["host"]), str(facts["platform"])),
        ("ranks", f"{ranks}", f"{facts['protocol']} protocol"),
        ("seed", str(facts["seed"]), ""),
        ("samples", f"{len(run.time):,}", f"every {interval}, of {', '.join(kept)}"),
        ("command", str(facts["command"]), ""),
    ]  # fmt: skip
