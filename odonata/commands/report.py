"""`odonata report`: a run on one page that opens anywhere, or its figures as files.

The page is one file without scripts and without a reference to anything outside it. Everything that
a user wrote is escaped. The same run makes the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from io import StringIO
from pathlib import Path

from odonata.experiment.units import show_time
from odonata.results import job_table as accounts
from odonata.results.derived import busiest, recorded, summary
from odonata.results.run import INCOMPLETE, Run
from odonata.results.run import open as open_run
from odonata.results.summary_rows import Row, of_run, still
from pdes.errors import Refused

WORST_LINKS = 8
MOST_JOBS = 500
PAGE, FIGURES = "report.html", "figures"
"""Where they go in a run's directory."""


def write(directory: Path, out: Path | None, kind: str) -> Path:
    """The page, or a directory of figures; returns where it is."""
    with open_run(directory) as run:
        if kind == "html":
            target = out or directory / PAGE
            if target.is_dir():
                raise Refused(f"-o {target}: is a directory; for a page, name a file")
            _writable(target.absolute().parent)
            target.write_text(page(run), encoding="utf-8")
            return target
        from odonata.figures import contents as pictures

        target = out or directory / FIGURES
        if target.exists() and not target.is_dir():
            raise Refused(f"-o {target}: is a file; figures go into a directory")
        if not len(run.time):
            raise Refused(f"{directory}: no sample has been written yet, so there is no figure")
        _writable(target.absolute().parent)
        target.mkdir(exist_ok=True)
        pictures.write(run, target, kind)
        return target


def _writable(directory: Path) -> None:
    if not directory.is_dir():
        raise Refused(f"{directory}: there is no such directory")


def far(run: Run) -> str:
    """How far an incomplete run has come, and how far it should have."""
    return f"{show_time(run.reached_ps)}{', ' if run.experiment.end is None else ' '}" \
           f"{still(run.experiment)}"  # fmt: skip


def summary_rows(run: Run) -> list[Row]:
    jobs = run.job_records if run.network.workload else ()
    return of_run(run.experiment, summary(run), run.reached_ps, run.complete, jobs)


# -- the page


def page(run: Run) -> str:
    """All of it. Only `_svg` and the words of this module go in as they are."""
    experiment = run.experiment
    state = "" if run.complete else (
        f'<p class="banner" role="alert"><strong>INCOMPLETE: {far(run)}</strong>; '
        f"{INCOMPLETE[run.state]}. What follows is "
        f"what had been written by then.</p>")  # fmt: skip
    about = f'<p class="about">{escape(experiment.about)}</p>' if experiment.about else ""
    return _PAGE.format(
        title=escape(experiment.name),
        style=_STYLE,
        about=about,
        machine=escape(_machine(run)),
        place=escape(str(run.path)),
        state=state,
        told=_state(run),
        summary=_summary(run),
        sections="\n".join(_sections(run)),
        experiment=escape(run.attributes["experiment"]),
        provenance=_table(_provenance(run), wide=True),
        version=escape(str(run.attributes["odonata"])),
    )


def _state(run: Run) -> str:
    if not run.complete:
        return '<strong class="incomplete">incomplete</strong>'
    digest = escape((run.digest or "")[:12])
    return f"<strong>complete</strong> · {show_time(run.reached_ps)} · digest {digest}"


def _summary(run: Run) -> str:
    """Links beside all else."""
    rows = summary_rows(run)
    links = [row for row in rows if row[0].endswith(" links")]
    tables = [[row for row in rows if row not in links], links]
    return "".join(f'<div class="scroll">{_table(some)}</div>' for some in tables if some)


def _machine(run: Run) -> str:
    m, network = run.machine, run.network
    nodes = f"{m.n_nodes:,} node{'s' * (m.n_nodes != 1)}"
    groups = f"{m.groups:,} group{'s' * (m.groups != 1)}"
    sent = f"{len(network.workload.jobs):,} jobs" if network.workload else (
        f"{network.traffic[0].pattern} traffic at load {network.traffic[0].load:g}")  # fmt: skip
    if network.workload:
        sent += f", placed by {network.workload.allocation}, {network.workload.order}"
    return f"{nodes}, {m.n_routers:,} routers, {groups} · {network.routing} routing · {sent}"


def _sections(run: Run) -> Iterable[str]:
    from odonata.figures import contents as pictures
    from odonata.figures import network as figures

    drawn: dict[str, list[str]] = {}
    with figures.style():
        for picture in pictures.of(run):
            why = picture.missing(run)
            if why:
                body = f'<p class="missing">{escape(why)}</p>'
            else:
                alt = escape(f"{picture.section}: {picture.title}")
                svg = _svg(pictures.drawn(run, picture), picture.name, alt)
                body = f'<div class="card">{svg}</div>' \
                       f"<figcaption>{escape(picture.caption(run))}</figcaption>"  # fmt: skip
            drawn.setdefault(picture.section, []).append(
                f'<figure id="{picture.name}"{_WIDE * picture.wide}><h3>{escape(picture.title)}'
                f"</h3>{body}</figure>"
            )
    if run.network.workload and len(run.time):
        drawn[pictures.JOBS].append(_jobs(run))
    if recorded(run, "ports") and len(run.time):
        drawn.setdefault(pictures.LINKS, []).extend(_worst(run, *which) for which in WORST)
    for section, parts in drawn.items():
        yield (f'<section><h2>{escape(section)}</h2><div class="figures">'
               + "\n".join(parts) + "</div></section>")  # fmt: skip


_WIDE = ' class="wide"'


def _jobs(run: Run) -> str:
    """The table of jobs, as a figure."""
    records = run.job_records
    rows = [accounts.cells(run.machine, it) for it in records[:MOST_JOBS]]
    heads = "".join(f'<th scope="col">{head}</th>' for head in accounts.HEADS)
    body = "\n".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
                     for row in rows)  # fmt: skip
    more = len(records) - len(rows)
    rest = f" {more:,} more are in jobs.csv." if more else ""
    return (f'<figure id="jobs" class="wide"><h3>One by one</h3><div class="listed"><table><thead>'
            f"<tr>{heads}</tr></thead><tbody>{body}</tbody></table></div><figcaption>Groups and "
            "routers that a job sat on; waited: from its arrival to its start; communication: from "
            f"its start to its last task's end.{rest}</figcaption></figure>")  # fmt: skip


WORST = (
    ("Busiest links", "busy_ps", "Between routers, over the run: the part of the time in use."),
    ("Links that stall most", "stall_ps", "The part of the time in which a packet waited at a free "
     "link without credit, summed over virtual channels."),
)  # fmt: skip


def _worst(run: Run, title: str, counter: str, caption: str) -> str:
    """A table of the links that stand out, as a figure."""
    from odonata.figures.network import span_ps

    per_group, span = run.machine.routers, span_ps(run)
    rows = []
    for link in busiest(run, WORST_LINKS, counter):
        groups = f"group {link.router // per_group}"
        if link.kind == "global":
            groups += f" to {link.to_router // per_group}"
        part = link.utilisation if counter == "busy_ps" else link.stall_ps / span
        words = f"{link.kind}, {groups}, port {link.port}"
        rows.append((f"{link.router} → {link.to_router}", f"{part:.1%}", words))
    return (f'<figure><h3>{title}</h3><div class="tabled">{_table(rows)}</div>'
            f"<figcaption>{caption} Routers by number.</figcaption></figure>")  # fmt: skip


def _svg(figure: object, name: str, alt: str) -> str:
    """A figure as part of a page: without what a file of its own has at its beginning, and with
    names that no other figure on the page has."""
    from odonata.figures import network as figures

    text = StringIO()
    figures.save(figure, text, "svg")  # type: ignore[arg-type]
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", svg)
    return re.sub(r'<svg width="[^"]*" height="[^"]*"|<svg height="[^"]*" width="[^"]*"',
                  f'<svg role="img" aria-label="{alt}"', svg, count=1)  # fmt: skip


def _table(rows: Iterable[Row], wide: bool = False) -> str:
    """`wide`: a figure that needs no words has their room too."""
    told = []
    for name, value, meaning in rows:
        both = wide and not meaning
        figure = f'<td class="figure"{" colspan=2" * both}>{escape(value)}</td>'
        words = "" if both else f"<td>{escape(meaning)}</td>"
        told.append(f'<tr><th scope="row">{escape(name)}</th>{figure}{words}</tr>')
    return "<table>" + "\n".join(told) + "</table>"


def _provenance(run: Run) -> list[Row]:
    told, ranks = run.attributes, int(run.attributes["ranks"])
    versions = {"Python": told["python"], **{k: v for k, v in run.packages.items() if v}}
    kept = [name for name in ("ports", "channels") if recorded(run, name)]
    interval = show_time(run.experiment.metrics.interval_ps)
    return [
        ("digest", run.digest or "-", "the same on any number of ranks" if run.digest
         else "none: the run is incomplete"),
        ("odonata", str(told["odonata"]), ", ".join(f"{k} {v}" for k, v in versions.items())),
        ("started", str(told["started"]), ""),
        ("host", str(told["host"]), str(told["platform"])),
        ("ranks", f"{ranks}", f"{told['protocol']} protocol"),
        ("seed", str(told["seed"]), ""),
        ("samples", f"{len(run.time):,}", f"every {interval}, of "
         + ", ".join([*kept, "nodes", "groups", *["jobs"] * bool(run.network.jobs)])),
        ("command", str(told["command"]), ""),
    ]  # fmt: skip


_STYLE = """
:root { color-scheme: light dark; --ink: #22303c; --soft: #5b6874; --line: #dfe4e9; --back: #f5f7f9;
  --card: #fff; --accent: #0067a5; --warn: #8a2a12; --warn-back: #fdece6; }
@media (prefers-color-scheme: dark) { :root { --ink: #e3e9ee; --soft: #9dabb7; --line: #34414d;
  --back: #161d24; --card: #1e2831; --accent: #6db7e6; --warn: #ffd3c4; --warn-back: #5a1f0e; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink); line-height: 1.5;
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "Helvetica Neue", Arial, sans-serif; }
main { max-width: 1240px; margin: 0 auto; padding: 36px 28px 48px; }
header { border-bottom: 1px solid var(--line); padding-bottom: 18px; margin-bottom: 22px; }
.kind { margin: 0; color: var(--accent); font-size: 12px; letter-spacing: .09em; font-weight: 600;
  text-transform: uppercase; }
h1 { margin: 2px 0 4px; font-size: 30px; line-height: 1.2; overflow-wrap: anywhere; }
h2 { margin: 34px 0 12px; font-size: 19px; }
h3 { margin: 0 0 8px; font-size: 15px; font-weight: 600; }
p { margin: 0; }
.about { font-size: 17px; overflow-wrap: anywhere; white-space: pre-line; }
.machine { color: var(--soft); margin-top: 4px; }
.incomplete { color: var(--warn); }
.banner { background: var(--warn-back); color: var(--warn); border-left: 5px solid #c4451f;
  padding: 12px 16px; margin: 0 0 22px; font-size: 16px; border-radius: 4px; }
.tabled .figure { white-space: nowrap; }
.summary { align-items: start; }
.scroll { overflow-x: auto; background: var(--card); border: 1px solid var(--line);
  border-radius: 8px; padding: 6px 16px; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 6px 14px 6px 0; }
tr + tr > * { border-top: 1px solid var(--line); }
th { font-weight: 500; color: var(--soft); white-space: nowrap; width: 9.5em; }
td { overflow-wrap: anywhere; }
td.figure { font-variant-numeric: tabular-nums; font-weight: 600; }
.summary td.figure { text-align: right; white-space: nowrap; width: 7em; }
.summary th { width: 7.5em; }
.origin td.figure { width: 38%; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 480px), 1fr));
  gap: 20px; }
figure { margin: 0; min-width: 0; background: var(--card); border: 1px solid var(--line);
  border-radius: 8px; padding: 14px 16px 16px; }
.card { background: #fff; border-radius: 5px; padding: 6px; }
.card svg { display: block; width: 100%; max-width: 680px; height: auto; margin: 0 auto; }
.wide { grid-column: 1 / -1; } .wide .card svg { max-width: none; }
.listed { overflow: auto; max-height: 560px; } .listed td { font-variant-numeric: tabular-nums; }
.listed th { position: sticky; top: 0; background: var(--card); width: auto; }
.listed th:nth-child(n+4), .listed td:nth-child(n+4), .listed th:nth-child(2),
.listed td:nth-child(2) { text-align: right; } .listed td { padding-top: 3px; padding-bottom: 3px; }
figcaption { margin-top: 10px; font-size: 13.5px; line-height: 1.45; color: var(--soft); }
.missing { color: var(--soft); font-style: italic; padding: 28px 0; text-align: center; }
details { margin-top: 34px; } summary { cursor: pointer; font-size: 19px; font-weight: 600; }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: 14px 16px; overflow-x: auto;
  font: 13px/1.5 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
footer { margin-top: 36px; color: var(--soft); font-size: 13px; }
@media (max-width: 560px) { main { padding: 20px 12px; } h1 { font-size: 24px; }
  .scroll, figure { padding-left: 10px; padding-right: 10px; }
  th { white-space: normal; width: auto; } .summary td.figure { width: auto; } }
@media print { :root { color-scheme: light; --ink: #000; --soft: #444; --line: #ccc;
  --back: #fff; --card: #fff; --accent: #0067a5; --warn: #8a2a12; --warn-back: #fdece6; }
  @page { margin: 14mm; } body { font-size: 11px; } main { padding: 0; max-width: none; }
  .listed { max-height: none; }
  figure, tr, .banner { break-inside: avoid; } h2 { break-after: avoid; }
  .figures { grid-template-columns: 1fr 1fr; gap: 10px; } figcaption { font-size: 10px; } }
"""

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="Odonata {version}">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>{title} · Odonata</title>
<style>{style}</style>
</head>
<body>
<main>
<header>
<p class="kind">Odonata run</p>
<h1>{title}</h1>
{about}
<p class="machine">{machine}</p>
<p class="machine">{told} · {place}</p>
</header>
{state}
<section class="summary figures">{summary}</section>
{sections}
<details><summary>The experiment</summary>
<pre>{experiment}</pre></details>
<section class="origin"><h2>Where it comes from</h2><div class="scroll">{provenance}</div></section>
<footer>Loads are parts of what the nodes' links carry. Latencies are from the making
of a message to the arrival of a packet's last byte. The same experiment and seed give the same
digest.</footer>
</main>
</body>
</html>
"""  # noqa: E501
