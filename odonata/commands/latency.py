"""`odonata latency`: latency over load, as a table, as JSON and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odonata.commands.group import SETTINGS
from odonata.commands.options import TIME, Quantity, cores, curve_options, json_option, plot_option
from odonata.commands.output import print_json, print_table
from odonata.experiment.units import show_time

if TYPE_CHECKING:
    from rich.console import Group

    from odonata.studies.loadlatency.cases import Curve, Sweep
    from odonata.studies.loadlatency.simulation import Point

LATE = 0.001
"""The fraction of the measured packets under way at the end above which latencies are too low."""


def _loads(text: str) -> Any:
    from odonata.studies.loadlatency.cases import parse_loads

    return parse_loads(text)


@click.command("latency", context_settings=SETTINGS)
@curve_options
@click.option("--loads", type=Quantity("LOADS", _loads), default="0.05:0.95:0.05",
              show_default=True, help="Offered loads, in parts of a node's link: start:stop:step, "
              "a list (0.1,0.5), or one.")  # fmt: skip
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
@click.option("--all", "everything", is_flag=True,
              help="Go on to the last load, however far beyond saturation.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(1), metavar="N", default=cores, help="Points at a "
              "time, by default one per core; under mpiexec one per rank.")  # fmt: skip
@click.option("-o", "--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Keep the points there, and simulate none that is there already; by default "
              "nothing is kept.")  # fmt: skip
@plot_option
@json_option
def latency(
    network: Any, routings: Any, loads: Any, jobs: int, out: Path | None, plot: Path | None,
    as_json: bool, **phases: Any,
) -> None:  # fmt: skip
    """How long packets take as the load grows, and where the network is saturated."""
    from odonata.studies.loadlatency import LoadLatency

    asked = LoadLatency().ask(network, routings, loads, kept=out is not None, **phases)
    report(asked, jobs, out, plot, as_json)


command = latency


def report(asked: Sweep, jobs: int, out: Path | None, plot: Path | None, as_json: bool) -> None:
    """Simulate, and print on one rank."""
    from odonata.studies.loadlatency import LoadLatency
    from odonata.studies.loadlatency.cases import curves
    from odonata.study.filling import fill
    from odonata.study.report import concluded
    from pdes.transport import world

    if plot is not None:
        from odonata.figures.style import check_name

        check_name(plot)  # before the work, not after it
    ran, kept = fill(LoadLatency(), asked, out, jobs)
    if world().rank > 0:
        return
    if out is not None:
        found = concluded(LoadLatency(), asked, out, kept, ran, pdf=False)
        if ran.stopped:
            print(found.to_json() if as_json else ran)
            return
    points = curves(asked, kept.outcomes)
    if plot is not None:
        from odonata.studies.loadlatency.figures import draw_curves

        draw_curves(asked, points, plot)
    if as_json:
        print_json(curve_facts(asked, points))
    else:
        print_table(curve_table(asked, points), highlight=False)


def curve_facts(asked: Sweep, found: Sequence[Curve]) -> dict[str, Any]:
    """Returns the network as it was at every point, the curves, and all figures of their points."""
    from odonata.studies.loadlatency.cases import zero_load_ps
    from odonata.studies.loadlatency.simulation import parameters, traffic_of

    network = asked.network
    common = parameters(network)
    del common["routing"], common["traffic.load"]
    zero = zero_load_ps(network)
    return {
        "network": common,
        "drain_ps": asked.drain_ps,
        "longest_ps": asked.longest_ps,
        "zero_load_ns": None if zero is None else zero / 1e3,
        "curves": [
            {
                "routing": curve.routing,
                "saturation_throughput": curve.throughput,
                "saturated_at": curve.saturated_at,
            }
            for curve in found
        ],
        "points": [
            {
                "routing": point.routing,
                "traffic": traffic_of(network).pattern,
                "load": point.load,
                "seed": network.seed,
                "stretch": point.stretch,
                **asdict(point.performance),
                "events": point.events,
                "digest": point.digest,
            }
            for curve in found
            for point in curve.points
        ],
    }


def curve_table(asked: Sweep, found: Sequence[Curve]) -> Group:
    """Returns the curves, not wider than 80 columns. Hops are routers visited."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from odonata.studies.loadlatency.cases import title

    rows = Table(box=None, pad_edge=False)
    for name in ("\nload", "ac-\ncepted", "mean\nns", "median\nns", "99 %\nns", "\nhops",
                 "busiest\nglobal", "link\nlocal"):  # fmt: skip
        rows.add_column(name, justify="right", no_wrap=True)
    rows.add_column("", no_wrap=True)
    for curve in found:
        rows.add_row()
        rows.add_row(Text(curve.routing, "bold", justify="left"))
        for point in curve.points:
            rows.add_row(*_cells(point))
    return Group(f"[bold]{title(asked)}[/bold]", "", rows, "", *_notes(asked, found))


def _cells(point: Point) -> list[str]:
    p = point.performance
    mark = "*" if not point.steady or point.late > LATE else " "
    times = [
        f"{ns:,.0f}{mark}" for ns in (p.mean_latency_ns, p.median_latency_ns, p.p99_latency_ns)
    ]
    if not p.measured_packets:
        times = ["-", "-", "-"]
    busy = [f"{min(1.0, p.links[kind]['max_utilisation']):.0%}" if kind in p.links else "-"
            for kind in ("global", "local")]  # fmt: skip
    verdict = point.verdict
    if point.steady and point.late > LATE:
        verdict = f"{point.late:.1%} late"
    if point.stretch > 1:
        verdict += f" ×{point.stretch}"
    accepted = f"{p.throughput:.3f}{' ' if point.settled else '*'}"
    return [f"{point.load:g}", accepted, *times, f"{p.mean_hops:.2f}", *busy, verdict]


def _notes(asked: Sweep, found: Sequence[Curve]) -> list[str]:
    from odonata.studies.loadlatency.cases import zero_load_ps
    from odonata.studies.loadlatency.simulation import traffic_of

    traffic, zero = traffic_of(asked.network), zero_load_ps(asked.network)
    notes = [
        f"warm-up {show_time(traffic.warmup_ps)}, "
        f"measurement {show_time(traffic.measure_ps or 0)}, drain {show_time(asked.drain_ps)}"
    ]
    if zero is not None:
        notes.append(f"minimal paths through an empty network: {zero / 1e3:.0f} ns on average")
    points = [point for curve in found for point in curve.points]
    if any(not point.steady or point.late > LATE for point in points):
        notes.append("* not of a steady state: of the measured packets that arrived in time")
    if any(point.stretch > 1 for point in points):
        notes.append("×2, ×4, ...: phases so many times as long, as it had not settled before")
    if any(not point.settled for point in points):
        notes.append(f"not settled, too short: even in {show_time(asked.longest_ps)}; a longer "
                     "--longest may settle it")  # fmt: skip
    return notes + [f"{curve.routing}: {concluded_of(curve)}" for curve in found]


def concluded_of(curve: Curve) -> str:
    """Returns where a curve is saturated, as far as points that have settled tell."""
    if curve.throughput is None:
        return "no point has settled, so that its throughput is not known"
    if curve.saturated_at is None:
        return f"not saturated; throughput {curve.throughput:.3f}"
    return (f"saturated at a load of {curve.saturated_at:g}; "
            f"saturation throughput {curve.throughput:.3f}")  # fmt: skip
