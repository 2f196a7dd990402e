"""`odonata bench`: run a known workload and measure the speed; what its commands have in common."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odonata.commands.group import SETTINGS, LazyGroup
from odonata.commands.options import TIME, debug_option, json_option, progress_option
from odonata.commands.output import print_json, print_table
from odonata.experiment.progress import ProgressLine
from odonata.experiment.units import show_count, show_time
from pdes.errors import Fault

if TYPE_CHECKING:
    from rich.table import Table

    from odonata.results.performance import Performance
    from pdes.driver import Result
    from pdes.model import Model

CHECKPOINTS = Path("odonata-checkpoint")


command = LazyGroup(
    "bench",
    context_settings=SETTINGS,
    help="Run a known workload and measure how fast it is simulated.",
    lines={
        "phold": "PHOLD, the benchmark of parallel discrete-event simulators.",
        "dragonfly": "A dragonfly, packet by packet, under open-loop traffic.",
    },
)


@dataclass(frozen=True)
class How:
    """The options of any run."""

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
    """The result of a run and, where a comparison was asked for, that of one rank alone."""

    result: Result
    alone: Result | None
    network: Performance | None = None

    @property
    def same(self) -> bool:
        assert self.alone is not None
        return self.alone.digest == self.result.digest


def measured(model: Model, how: How) -> Report:
    from pdes.driver import run
    from pdes.transport import Serial, world

    shown = how.progress
    line = None if shown is False else ProgressLine(how.end, model.tick, shown)
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


def run_options(command: Any) -> Any:
    """Add the options of any simulation to a command, which gets `How` in their place."""

    def with_how(**options: Any) -> None:
        names = ("end", "protocol", "debug", "checkpoint_dir", "checkpoint_every", "progress",
                 "compare")  # fmt: skip
        resume, known = options.pop("resume"), {name: options.pop(name) for name in names}
        if resume is not None:
            known["resume"] = Path(resume or known["checkpoint_dir"])
        command(how=How(**known), **options)

    with_how.__name__, with_how.__doc__ = command.__name__, command.__doc__
    with_how.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    for option in reversed(
        [
            click.option("--protocol", type=click.Choice(["window", "null"]), default="window",
                         show_default=True, help="How ranks agree on how far it is safe to go."),
            click.option("--checkpoint-every", type=TIME, help="Of simulated time."),
            click.option("--checkpoint-dir", type=click.Path(path_type=Path),
                         default="odonata-checkpoint", show_default=True,
                         help="Where those, and the one that SIGTERM or SIGUSR1 makes, are kept."),
            click.option("--resume", is_flag=False, flag_value="", metavar="[DIR]",
                         help="Go on from the newest checkpoint there (or in --checkpoint-dir), on "
                         "any number of ranks."),
            click.option("--compare", is_flag=True,
                         help="Run it on one rank too, afterwards, and compare."),
            debug_option,
            progress_option,
            json_option,
        ]
    ):  # fmt: skip
        with_how = option(with_how)
    return with_how


def show(how: How, report: Report, as_json: bool) -> None:
    """Print what a bench measured, on one rank."""
    from pdes.transport import world

    if world().rank > 0:
        return
    if as_json:
        print_json(bench_facts(report))
    else:
        print_table(bench_table(report))
    if not report.result.completed:
        print(f"odonata: stopped at {show_time(report.result.time_ps)}; go on with --resume "
              f"{how.checkpoint_dir}", file=sys.stderr)  # fmt: skip
    if report.alone and not report.same:
        raise Fault("one rank gave another digest: please report this")


def bench_facts(report: Report) -> dict[str, Any]:
    """Returns all but the arrays, which are for Python."""
    facts = {k: v for k, v in report.result.in_ps().items() if k != "outcome"}
    if report.network:
        facts |= asdict(report.network)
        facts["hops_per_second"] = report.network.packet_hops / report.result.wall_seconds
        facts["bytes_per_node"] = bytes_per_node(report)
    if report.alone:
        facts["alone_events_per_second"] = report.alone.events_per_second
        facts["alone_digest"] = report.alone.digest
    return facts


def bench_table(report: Report) -> Table:
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
    """Returns the memory per node over all ranks, the interpreter and the compiler included, in
    bytes."""
    assert report.network is not None
    return report.result.ranks * report.result.max_rss_mb * 2**20 / report.network.nodes


def _bar(share: float) -> str:
    return f"{'█' * round(20 * share)} {share:.0%}"


def _network(report: Report, figures: Performance) -> list[tuple[str, str, str]]:
    from odonata.results.summary_rows import of_network

    speed = figures.packet_hops / report.result.wall_seconds
    built = f"built in {report.result.build_seconds:.2f} s; {bytes_per_node(report) / 1024:.1f} KiB"
    packets, *rest = of_network(figures)
    return [
        ("machine", f"{figures.nodes:,} nodes", f"{built} per node"),
        packets,
        ("packet-hops", f"{show_count(speed)}/s", f"{figures.packet_hops:,}"),
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
