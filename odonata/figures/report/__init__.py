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

from odonata.experiment.units import show_simulated, show_time
from odonata.figures import contents as pictures
from odonata.figures import network as figures
from odonata.figures.style import save, style
from odonata.results import job_network as network
from odonata.results import job_table as accounts
from odonata.results import seen as sights
from odonata.results.alone import slowdowns
from odonata.results.derived import busiest, recorded, simulated, summary
from odonata.results.network_power import watts_rows
from odonata.results.opened import INCOMPLETE, Opened
from odonata.results.run import Run
from odonata.results.summary_rows import EJECTED, Row, of_run, still

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


FOOTER = (
    "Loads are parts of what the nodes' links carry. Latencies are from the generation of a message"
    "\nto the arrival of a packet's last byte, or until its node has drained it if that takes time."
    f"\n{EJECTED}"
)


def page(run: Run) -> str:
    """Returns the page, as HTML."""
    return rendered(
        run,
        machine=_machine(run),
        reached=show_time(simulated(run)) if run.complete else far(run),
        summary=_summary(run),
        sections=list(_sections(run).items()),
        provenance=_provenance(run),
        footer=Markup(FOOTER),
    )


def rendered(run: Opened, **parts: Any) -> str:
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


def far(run: Run) -> str:
    """Returns how far an incomplete run has come, and how far it was to come."""
    return f"{show_time(run.reached_ps)}{', ' if run.experiment.run.end is None else ' '}" \
           f"{still(run.experiment)}"  # fmt: skip


def summary_rows(run: Run) -> list[Row]:
    jobs = run.job_records if run.network.workload else ()
    rows = of_run(run.experiment, summary(run), run.reached_ps, run.complete, jobs)
    return [*rows, *watts_rows(run)]


def _summary(run: Run) -> list[list[Row]]:
    """Returns the rows in two parts: links and power stand beside all else."""
    rows, watts = summary_rows(run), watts_rows(run)
    beside = [row for row in rows if row[0].endswith(" links") or row in watts]
    return [some for some in ([row for row in rows if row not in beside], beside) if some]


def _machine(run: Run) -> str:
    m, network = run.machine, run.network
    nodes = f"{m.n_nodes:,} node{'s' * (m.n_nodes != 1)}"
    groups = f"{m.groups:,} group{'s' * (m.groups != 1)}"
    sent = [f"{part.pattern} traffic at load {part.load:g}" for part in network.traffic]
    if network.workload:
        load = network.workload
        sent.append(f"{len(load.jobs):,} jobs, placed by {load.allocation}, {load.order}")
    built = f"{nodes}, {m.n_routers:,} routers, {groups}"
    return " · ".join([built, f"{network.routing} routing", *sent])


def _sections(run: Run) -> dict[str, list[Shown]]:
    """Returns the figures by section, both in reading order."""
    sections: dict[str, list[Shown]] = {}
    with style():
        for picture in pictures.of(run):
            sections.setdefault(picture.section, []).append(_drawn(run, picture))
    if run.network.workload and len(run.time):
        sections[pictures.JOBS].append(_jobs(run))
        if run.job_network:
            sections[pictures.JOBS].append(_network(run))
        if placed := sights.placed(run):
            by = sights.quantity(run)
            rows = [sights.cells(job, by) for job in placed[:MOST_JOBS]]
            sections[pictures.JOBS].append(
                Shown(f"{by.name.capitalize()} where they were placed", sights.caption(run),
                      "job-traffic", wide=True, heads=sights.HEADS, rows=rows))  # fmt: skip
    if recorded(run, "ports") and len(run.time):
        sections.setdefault(pictures.LINKS, []).extend(_worst(run, *which) for which in WORST)
    return sections


def _drawn(run: Run, picture: pictures.Picture) -> Shown:
    about: dict[str, Any] = {"title": picture.title, "name": picture.name, "wide": picture.wide}
    why = picture.missing(run)
    if why:
        return Shown(missing=why, **about)
    svg = inlined(pictures.drawn(run, picture), picture.name, f"{picture.section}: {picture.title}")
    return Shown(svg=svg, caption=picture.caption(run), **about)


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


def _network(run: Run) -> Shown:
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


def _about_digest(run: Opened) -> str:
    if run.digest:
        return "the same on any number of ranks"
    return "lost with run.h5" if run.complete else "none: the run is incomplete"


def _provenance(run: Run) -> list[Row]:
    kept = [name for name in ("ports", "channels") if recorded(run, name)]
    return provenance(run, [*kept, "nodes", "groups", *["jobs"] * bool(run.network.workload)])


def provenance(run: Opened, kept: Sequence[str]) -> list[Row]:
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
