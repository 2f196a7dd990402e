"""`odonata latency`: latency over load, as a table, as JSON and as a picture. It writes a sweep,
which `odonata sweep` runs as well, and says where each curve is saturated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odonata.commands.group import SETTINGS
from odonata.commands.options import (
    TIME,
    Quantity,
    curve_options,
    jobs_option,
    json_option,
    plot_option,
    write_option,
)
from odonata.commands.output import print_json, print_table
from odonata.experiment.units import show_time
from pdes.errors import Fault

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

    from odonata.results.statistics import Interval
    from odonata.study.filling import Ran
    from odonata.study.report import Report
    from odonata.sweeps.curves import Asked, Bundle
    from odonata.sweeps.plan import Plan
    from odonata.sweeps.saturating import AtLoad

LATE = 0.001
"""The fraction of the measured packets under way at the end above which latencies are too low."""


def _loads(text: str) -> Any:
    from odonata.sweeps.curves import parse_loads

    return parse_loads(text)


@click.command("latency", context_settings=SETTINGS)
@curve_options
@click.option("--loads", type=Quantity("LOADS", _loads), default="0.05:0.95:0.05",
              show_default=True, help="Offered loads, in parts of a node's link: start:stop:step, "
              "a list (0.1,0.5), or one.")  # fmt: skip
@click.option("--seeds", type=click.IntRange(1, 1_000_000), metavar="N", default=1,
              show_default=True, help="Simulate each curve with so many seeds, from --seed on: "
              "means and saturation loads then have intervals of 95 %.")  # fmt: skip
@click.option("--resolution", type=click.FloatRange(0, 1, min_open=True), metavar="PART",
              default=0.01, show_default=True, help="How finely the saturation load is looked for "
              "between two loads, as a part of it; 1: not at all.")  # fmt: skip
@click.option("--warmup", "warmup_ps", type=TIME,
              help="Time before the measurement, in which nothing is measured.")  # fmt: skip
@click.option("--measure", "measure_ps", type=TIME,
              help="Packets generated in this time are measured.")  # fmt: skip
@click.option("--drain", "drain_ps", type=TIME,
              help="Time after the measurement in which measured packets may arrive, under the "
              "same load; by default all three suit the machine.")  # fmt: skip
@click.option("--longest", "longest_ps", type=TIME,
              help="A run that has not settled is made again, twice as long, up to this; by "
              "default 16 times the first one, or not at all where one of the three phases is "
              "given.")  # fmt: skip
@click.option("--all", "beyond", is_flag=True,
              help="Go on to the last load, however far beyond saturation.")  # fmt: skip
@jobs_option
@click.option("-o", "--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Keep the points there, and simulate none that is there already; by default "
              "nothing is kept.")  # fmt: skip
@write_option
@plot_option
@json_option
def latency(
    network: Any, patterns: Any, routings: Any, loads: Any, jobs: int, out: Path | None,
    write: Path | None, plot: Path | None, as_json: bool, **how: Any,
) -> None:  # fmt: skip
    """How long packets take as the load grows, and at which load the network saturates."""
    from odonata.sweeps.curves import asked
    from odonata.sweeps.drafts import check_written, write_text
    from pdes.transport import together, world

    if plot is not None:
        from odonata.figures.style import check_name

        check_name(plot)  # before the work, not after it
    check_written({"--write": (write, ".toml")})
    wish = asked(network, patterns, routings, loads, **how)
    plan = together(world(), wish.plan)
    if write is not None and world().rank == 0:
        write_text(write, wish.text(write))
    report(wish, plan, jobs, out, plot, as_json)


command = latency


def report(
    asked: Asked, plan: Plan, jobs: int, out: Path | None, plot: Path | None, as_json: bool
) -> None:
    """Simulate, and print on one rank."""
    from odonata.study.filling import fill
    from odonata.sweeps.curves import bundles
    from odonata.sweeps.older_curves import continued
    from odonata.sweeps.saturating import Saturating
    from pdes.transport import together, world

    def prepared() -> Saturating:
        study = Saturating(plan)
        return study if out is None or world().rank > 0 else continued(study, out)

    study = world().everyone(together(world(), prepared))[0]
    ran, kept = fill(study, study.plan, out, jobs)
    if world().rank > 0:
        return
    failed = [f"{at.point}: {at.outcome.failed}" for curve in study.curves(kept.outcomes)
              for at in (*curve.points, *curve.searched) if at.outcome.failed]  # fmt: skip
    if failed or ran.failures:
        raise Fault((failed or [*ran.failures])[0])
    found = bundles(asked, study.curves(kept.outcomes))
    if out is not None:
        study.conclude(kept.outcomes, out)
        summary = conclude(asked, found, kept.head, ran, out)
        if ran.stopped:
            print(summary.to_json() if as_json else ran)
            return
    if plot is not None:
        from odonata.sweeps.curve_figure import draw_curves

        draw_curves(asked, found, plot)
    if as_json:
        print_json(curve_facts(asked, found))
    else:
        print_table(curve_table(asked, found), least=100, highlight=False)


def conclude(asked: Asked, found: Sequence[Bundle], head: Any, ran: Ran, out: Path) -> Report:
    """Write the summary and draw the curves, in `out`; neither after a signal to stop."""
    from odonata.study.report import FIGURES, SUMMARY, Report
    from odonata.sweeps.curve_figure import draw_curves
    from odonata.sweeps.curves import claims

    path = out / FIGURES / "curves.png"
    said = [] if ran.stopped else claims(asked, found)
    made = Report("load-latency", asdict(asked), head, ran, not ran.missing, said,
                  [str(path.relative_to(out))] if said else [])  # fmt: skip
    if said:
        path.parent.mkdir(exist_ok=True)
        draw_curves(asked, found, path)
        (out / SUMMARY).write_text(made.to_json() + "\n")
    return made


# -- for programs


def curve_facts(asked: Asked, found: Sequence[Bundle]) -> dict[str, Any]:
    """Returns the network as it was at every point, the curves, and all figures of their points."""
    common = {name.replace("traffic.0.", "traffic."): value
              for name, value in asked.at(asked.patterns[0], asked.routings[0]).parameters().items()
              if name not in ("routing", "traffic.0.load")}  # fmt: skip
    zero = {pattern: asked.zero_load_ps(pattern) for pattern in asked.patterns}
    if len(asked.patterns) > 1:
        del common["traffic.pattern"]
    return {
        "network": common,
        "drain_ps": asked.drain_ps,
        "longest_ps": asked.longest_ps,
        "zero_load_ns": _ns(zero[asked.patterns[0]]),
        "curves": [
            {
                "routing": it.routing,
                "traffic": it.pattern,
                "saturation_throughput": _known(it.throughput)["mean"],
                "saturated_at": it.saturated_at,
                "saturation_load": _known(it.saturation_load),
                "saturation_throughput_interval": _known(it.throughput),
                "theory": _theory(asked, it),
                "zero_load_ns": _ns(zero[it.pattern]),
                "seeds": [
                    {"seed": curve.seed, "gap": curve.gap, "saturation_load": curve.saturation_load,
                     "saturation_throughput": curve.throughput,
                     "searched": [{"load": at.load, "verdict": at.outcome.verdict,
                                   "stretch": at.stretch} for at in curve.searched]}
                    for curve in it.curves
                ],
            }
            for it in found
        ],
        "points": [_point(it, curve.seed, at) for it in found for curve in it.curves
                   for at in curve.points],
    }  # fmt: skip


def _ns(ps: float | None) -> float | None:
    return None if ps is None else ps / 1e3


def _known(made: Interval) -> dict[str, Any]:
    """Returns an interval for JSON, with null for what is not known."""
    return {name: None if value != value else value for name, value in made._asdict().items()}


def _theory(asked: Asked, bundle: Bundle) -> dict[str, Any] | None:
    bound = asked.limit(bundle.pattern, bundle.routing)
    return None if bound is None else bound._asdict()


def _point(bundle: Bundle, seed: int, at: AtLoad) -> dict[str, Any]:
    """Returns all figures of a point, by the names that they have in `Performance`."""
    from odonata.results.performance import Performance

    tree: dict[str, Any] = {"steadiness": at.outcome.judged, "links": {}, "inputs": {}}
    for path, value in at.outcome.figures.items():
        *parents, name = path.split(".")
        inner = tree
        for parent in parents:
            inner = inner.setdefault(parent, {})
        inner[name] = value
    made: dict[str, Any] = {"int": int, "bool": bool, "float": lambda it: it or 0.0}
    found = {one.name: made.get(str(one.type), lambda it: it)(tree[one.name])
             for one in fields(Performance)}  # fmt: skip
    judged = {"verdict": at.outcome.verdict, "why": at.outcome.why, **at.outcome.judged}
    return {"routing": bundle.routing, "traffic": bundle.pattern, "load": at.load, "seed": seed,
            "stretch": at.stretch, **found, "steadiness": judged, "events": int(at.events),
            "digest": at.outcome.digest}  # fmt: skip


# -- for people


def curve_table(asked: Asked, found: Sequence[Bundle]) -> Group:
    """Returns the curves of each pattern, not wider than 80 columns, and where they are saturated.
    Hops are routers visited."""
    from rich.console import Group

    parts: list[Any] = []
    for pattern in asked.patterns:
        own = [bundle for bundle in found if bundle.pattern == pattern]
        zero = asked.zero_load_ps(pattern)
        empty = "" if zero is None else (
            f"minimal paths through an empty network: {zero / 1e3:.0f} ns on average")  # fmt: skip
        parts += [f"[bold]{asked.title(pattern)}[/bold]", "", _rows(asked, own), ""]
        parts += [empty, ""] if empty else []
    return Group(*parts, _saturation(asked, found), "", *_notes(asked, found))


def _rows(asked: Asked, found: Sequence[Bundle]) -> Table:
    from rich.table import Table
    from rich.text import Text

    rows = Table(box=None, pad_edge=False)
    for name in ("\nload", "ac-\ncepted", "mean\nns", "median\nns", "99 %\nns", "\nhops",
                 "busiest\nglobal", "link\nlocal"):  # fmt: skip
        rows.add_column(name, justify="right", no_wrap=True)
    rows.add_column("", no_wrap=True)
    for bundle in found:
        rows.add_row()
        rows.add_row(Text(bundle.routing, "bold", justify="left"))
        for points in bundle.rows:
            rows.add_row(*_cells(points))
    return rows


def _cells(points: Sequence[AtLoad]) -> list[str]:
    """Returns the means of all seeds at a load."""
    from odonata.sweeps.curves import mean

    def of(figure: str) -> Interval:
        return mean(points, figure)

    mark = "*" if _starred(points) else " "
    times = [f"{of(name).mean:,.0f}{mark}" if of(name).of else "-" for name in
             ("mean_latency_ns", "median_latency_ns", "p99_latency_ns")]  # fmt: skip
    if of("mean_latency_ns").of > 1:
        ns = of("mean_latency_ns")
        times[0] = f"{ns.mean:,.0f} ± {ns.half:,.{0 if ns.half >= 10 else 1}f}{mark}"
    links = (of(f"links.{kind}.max_utilisation") for kind in ("global", "local"))
    busy = [f"{min(1.0, it.mean):.0%}" if it.of else "-" for it in links]
    verdicts = Counter(_verdict(at) for at in points)
    (verdict, count), *others = verdicts.most_common()
    verdict += f", {count} of {len(points)}" * bool(others)
    longest = max(at.stretch for at in points)
    verdict += f" ×{longest}" * (longest > 1)
    settled = all(at.settled for at in points)
    accepted = f"{of('throughput').mean:.3f}{' ' if settled else '*'}"
    return [f"{points[0].load:g}", accepted, *times, f"{of('mean_hops').mean:.2f}", *busy, verdict]


def _starred(points: Sequence[AtLoad]) -> bool:
    return any(not at.steady or _late(at) > LATE for at in points)


def _verdict(at: AtLoad) -> str:
    late = at.steady and _late(at) > LATE
    return f"{_late(at):.1%} late" if late else at.outcome.verdict


def _late(at: AtLoad) -> float:
    """Returns the fraction of the measured packets that was still under way at the end."""
    under_way = at.figure("undelivered_packets")
    return under_way / max(1.0, at.figure("measured_packets") + under_way)


def _saturation(asked: Asked, found: Sequence[Bundle]) -> Table:
    """Returns where each curve is saturated, and what theory says of it."""
    from rich.table import Table

    from odonata.sweeps.outcomes import plus_minus

    rows = Table(box=None, pad_edge=False)
    several = len(asked.patterns) > 1
    heads = ["traffic"] * several + ["routing"]
    for place, name in enumerate([*heads, "saturation load", "theory", "saturation throughput"]):
        rows.add_column(name, justify="left" if place < len(heads) else "right", no_wrap=True)
    for bundle in found:
        load, most = bundle.saturation_load, bundle.throughput
        bound = asked.limit(bundle.pattern, bundle.routing)
        words = plus_minus(load.mean, load.half)
        if not load.of:
            words = f"above {bundle.reached:g}" if most.of else "not settled"
        elif load.of == 1 or not load.half:  # what the resolution leaves open
            gap = next(curve.gap for curve in bundle.curves if curve.gap)
            words = f"{gap[0]:.4g} to {gap[1]:.4g}"
        if load.of < len(bundle.curves) and load.of:
            words += f" ({load.of} of {len(bundle.curves)})"
        most_words = f"{most.mean:.3f}" if most.of == 1 else plus_minus(most.mean, most.half)
        if most.of and not load.of:
            most_words = f"at least {most_words}"
        theory = "-" if bound is None else str(bound)
        rows.add_row(*[bundle.pattern] * several, bundle.routing, words, theory, most_words)
    return rows


def _notes(asked: Asked, found: Sequence[Bundle]) -> list[str]:
    (traffic,) = asked.network.traffic
    notes = [
        f"warm-up {show_time(traffic.warmup_ps)}, "
        f"measurement {show_time(traffic.measure_ps or 0)}, drain {show_time(asked.drain_ps)}"
    ]
    points = [at for bundle in found for curve in bundle.curves for at in curve.points]
    if asked.seeds > 1:
        notes.append(f"±: half of the 95 % interval of the mean over {asked.seeds} seeds "
                     "(Student's t)")  # fmt: skip
    if _starred(points):
        notes.append("* not of a steady state: of the measured packets that arrived in time")
    if any(at.stretch > 1 for at in points):
        notes.append("×2, ×4, ...: phases so many times as long, as it had not settled before")
    if any(not at.settled for at in points):
        notes.append(f"not settled, too short: even in {show_time(asked.longest_ps)}; a longer "
                     "--longest may settle it")  # fmt: skip
    return notes
