"""`odonata slowdown`: how much longer each job of a run took than it would have alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from odonata.commands.group import SETTINGS
from odonata.commands.options import json_option
from odonata.commands.output import print_json, print_table
from pdes import launcher
from pdes.errors import Refused


@click.command("slowdown", context_settings=SETTINGS)
@click.argument("directory", type=click.Path(path_type=Path), metavar="DIR")
@json_option
def command(directory: Path, as_json: bool) -> None:
    """Simulate each job of the run in DIR once more, alone on the nodes that it had, and keep how
    long that takes in DIR/alone.json. Reports and comparisons of the run then show slowdowns."""
    if launcher.rank() == 0:
        show(directory, as_json)


def show(directory: Path, as_json: bool) -> None:
    """Measure slowdowns, and print them."""
    from odonata.results.alone import measure, slowdowns
    from odonata.results.run import open as open_run

    with open_run(directory) as run:
        if not (run.has("network") and run.has("jobs")):
            raise Refused(f"{directory}: ran no jobs with packets that could be slowed down")
        alone = measure(run)
        records = run.job_records
        factors = slowdowns(records, alone)
    if as_json:
        print_json({"out": str(directory), "jobs": [
            {"number": it.number, "name": it.name, "run_time_ps": it.run_time_ps,
             "alone_ps": ps if ps >= 0 else None, "slowdown": factor}
            for it, ps, factor in zip(records, alone, factors, strict=True)
        ]})  # fmt: skip
        return
    print_table(_table(records, alone, factors))


def _table(records: Any, alone: list[int], factors: list[float | None]) -> Any:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for head in ("job", "pattern", "took (us)", "alone (us)", "slowdown"):
        shown.add_column(head, justify="left" if head in ("job", "pattern") else "right")
    for it, ps, factor in zip(records, alone, factors, strict=True):
        took = "-" if it.run_time_ps is None else f"{it.run_time_ps / 1e6:,.2f}"
        shown.add_row(Text(it.name), Text(it.pattern), took, "-" if ps < 0 else f"{ps / 1e6:,.2f}",
                      "-" if factor is None else f"{factor:.2f}")  # fmt: skip
    return shown
