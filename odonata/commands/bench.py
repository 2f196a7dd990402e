"""`odonata bench ...`: run a known workload and say how fast, and what came out."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from odonata.experiment.progress import ProgressLine, wanted
from odonata.experiment.units import show_count, show_time
from odonata.results.summary_rows import of_network

if TYPE_CHECKING:
    from rich.table import Table

    from odonata.agents.network import Network
    from odonata.results.performance import Performance
    from pdes.driver import Result
    from pdes.model import Model

CHECKPOINTS = Path("odonata-checkpoint")


@dataclass(frozen=True)
class How:
    """How to run, whatever is run."""

    end: int
    protocol: str = "window"
    debug: bool = False
    checkpoint_dir: Path = CHECKPOINTS
    checkpoint_every: int | None = None
    resume: Path | None = None
    progress: bool | None = None
    compare: bool = False


@dataclass(frozen=True)
class Report:
    """What a run gave and, where a comparison was asked for, what one rank alone gave."""

    result: Result
    alone: Result | None
    network: Performance | None = None

    @property
    def same(self) -> bool:
        assert self.alone is not None
        return self.alone.digest == self.result.digest


def phold(
    how: How, *, lps: int, population: int, remote: float, lookahead: int, mean: int, seed: int
) -> Report:
    from pdes.phold import Phold

    return _run(Phold(lps, population, remote, lookahead, mean, seed), how)


def dragonfly(how: How, network: Network) -> Report:
    from odonata.results.performance import performance

    report = _run(network, how)
    if report.alone:
        performance(network, report.alone)
    return replace(report, network=performance(network, report.result))


def _run(model: Model, how: How) -> Report:
    from pdes.driver import run
    from pdes.transport import Serial, world

    line = ProgressLine(how.end, model.tick) if wanted(how.progress) else None
    try:
        result = run(
            model,
            how.end,
            protocol=how.protocol,
            checkpoint_dir=how.checkpoint_dir,
            checkpoint_every=how.checkpoint_every,
            resume=how.resume,
            debug=how.debug,
            progress=line,
        )
    finally:
        if line:
            line.close()
    alone = None
    if how.compare and result.completed and world().rank == 0:
        alone = run(model, how.end, transport=Serial())
    world().everyone(None)
    return Report(result, alone)


def to_json(report: Report) -> str:
    """All but the arrays, which are for Python."""
    told = {k: v for k, v in report.result.in_ps().items() if k != "outcome"}
    if report.network:
        told |= vars(report.network)
        told["hops_per_second"] = report.network.packet_hops / report.result.wall_seconds
        told["bytes_per_node"] = bytes_per_node(report)
    if report.alone:
        told["alone_events_per_second"] = report.alone.events_per_second
        told["alone_digest"] = report.alone.digest
    return json.dumps(told, indent=1)


def table(report: Report) -> Table:
    from rich.table import Table

    result = report.result
    ranks = f"{result.ranks} rank{'s' * (result.ranks > 1)}"
    shown = Table(
        title=f"{result.model} on {ranks}, {result.protocol} protocol", title_justify="left",
        show_header=False, min_width=64,
    )  # fmt: skip
    shown.add_column()
    shown.add_column(justify="right")
    shown.add_column(min_width=26)
    for name, value, note in [*_lines(result), *_comparison(report)]:
        shown.add_row(name, value, note)
    if report.network:
        shown.add_section()
        for name, value, note in _network(report, report.network):
            shown.add_row(name, value, note)
    shown.add_section()
    total = sum(result.seconds.values()) or 1.0
    for name, seconds in result.seconds.items():
        if seconds:
            shown.add_row(name, f"{seconds:.3f} s", _bar(seconds / total))
    if len(result.kinds) > 1:
        shown.add_section()
        for name, about in result.kinds.items():
            note = f"{_bar(about['share'])} of handlers"
            shown.add_row(f"{name} events", f"{about['events']:,}", note)
    return shown


def bytes_per_node(report: Report) -> float:
    """Of all ranks, the interpreter and the compiler included."""
    assert report.network is not None
    return report.result.ranks * report.result.max_rss_mb * 2**20 / report.network.nodes


def _bar(share: float) -> str:
    return f"{'█' * round(20 * share)} {share:.0%}"


def _network(report: Report, told: Performance) -> list[tuple[str, str, str]]:
    speed = told.packet_hops / report.result.wall_seconds
    built = f"built in {report.result.build_seconds:.2f} s; {bytes_per_node(report) / 1024:.1f} KiB"
    packets, *rest = of_network(told)
    return [
        ("machine", f"{told.nodes:,} nodes", f"{built} a node"),
        packets,
        ("packet-hops", f"{show_count(speed)}/s", f"{told.packet_hops:,}"),
        *rest,
    ]


def _lines(result: Result) -> list[tuple[str, str, str]]:
    since = "" if result.resumed_ps is None else f"resumed at {show_time(result.resumed_ps)}"
    stopped = "" if result.completed else "stopped by a signal"
    part = ", of this part" if since else ""
    lines = [
        ("simulated", show_time(result.time_ps), ", ".join(filter(None, (since, stopped)))),
        ("events", f"{result.events:,}", f"{result.peak_pending:,} at once on a rank, at most"),
        ("wall time", f"{result.wall_seconds:.3f} s", f"{result.rounds:,} rounds{part}"),
        ("speed", f"{show_count(result.events_per_second)}/s", f"events per second{part}"),
        ("memory", f"{result.max_rss_mb:.0f} MB", "largest rank"),
        ("digest", result.digest[:12], "final state of every agent"),
    ]
    if result.checkpoint:
        lines.append(("checkpoint", "", result.checkpoint))
    return lines


def _comparison(report: Report) -> list[tuple[str, str, str]]:
    if report.alone is None:
        return []
    ratio = report.result.events_per_second / report.alone.events_per_second
    verdict = "the same digest" if report.same else f"ANOTHER DIGEST: {report.alone.digest[:12]}"
    speed = f"{show_count(report.alone.events_per_second)}/s"
    return [("one rank", speed, f"{verdict}; {ratio:.2f} times as fast now")]
