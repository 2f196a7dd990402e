"""`odonata bench ...`: run a known workload and say how fast, and what came out."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from odonata.progress import ProgressLine, wanted
from odonata.units import show_count, show_time

if TYPE_CHECKING:
    from rich.table import Table

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


def phold(
    how: How, *, lps: int, population: int, remote: float, lookahead: int, mean: int, seed: int
) -> Result:
    _prepare(how)
    from pdes.phold import Phold

    return _run(Phold(lps, population, remote, lookahead, mean, seed), how)


def _prepare(how: How) -> None:
    """What must be settled before the first kernel is imported."""
    if how.debug:
        os.environ["ODONATA_JIT"] = "0"


def _run(model: Model, how: How) -> Result:
    from pdes.driver import run

    line = ProgressLine(how.end) if wanted(how.progress) else None
    try:
        return run(
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


def to_json(result: Result) -> str:
    return json.dumps(asdict(result), indent=1)


def table(result: Result) -> Table:
    from rich.table import Table

    ranks = f"{result.ranks} rank{'s' * (result.ranks > 1)}"
    shown = Table(
        title=f"{result.model} on {ranks}, {result.protocol} protocol", title_justify="left",
        show_header=False, min_width=64,
    )  # fmt: skip
    shown.add_column()
    shown.add_column(justify="right")
    shown.add_column(min_width=26)
    for name, value, note in _lines(result):
        shown.add_row(name, value, note)
    shown.add_section()
    total = sum(result.seconds.values()) or 1.0
    for name, seconds in result.seconds.items():
        if seconds:
            share = seconds / total
            shown.add_row(name, f"{seconds:.3f} s", f"{'█' * round(20 * share)} {share:.0%}")
    return shown


def _lines(result: Result) -> list[tuple[str, str, str]]:
    lines = [
        ("simulated", show_time(result.time_ps), "" if result.completed else "stopped by a signal"),
        ("events", f"{result.events:,}", f"{result.peak_pending:,} pending at most"),
        ("wall time", f"{result.wall_seconds:.3f} s", f"{result.rounds:,} rounds"),
        ("speed", f"{show_count(result.events_per_second)}/s", "events per second"),
        ("memory", f"{result.max_rss_mb:.0f} MB", "largest rank"),
        ("digest", result.digest[:12], "final state of every process"),
    ]
    if result.checkpoint:
        lines.append(("checkpoint", "", result.checkpoint))
    return lines
