"""`odonata slowdown`: how much longer each job of a run took than it would have alone."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from odonata.commands.group import SETTINGS
from odonata.commands.options import jobs_option, json_option, write_option
from odonata.commands.output import print_json, print_table
from pdes import launcher
from pdes.errors import Fault, Refused

if TYPE_CHECKING:
    from odonata.experiment.experiment import Experiment
    from odonata.jobs.record import JobRecord
    from odonata.sweeps.drafts import Draft


WHERE = "odonata slowdown"


@click.command("slowdown", context_settings=SETTINGS)
@click.argument("directory", type=click.Path(path_type=Path), metavar="DIR")
@jobs_option
@write_option
@json_option
def command(directory: Path, jobs: int, write: Path | None, as_json: bool) -> None:
    """Simulate each job of the run in DIR once more, alone on the nodes that it had, and keep how
    long that takes in DIR/alone.json. Reports and comparisons of the run then show slowdowns."""
    show(directory, jobs, write, as_json)


def show(directory: Path, jobs: int, write: Path | None, as_json: bool) -> None:
    """Measure slowdowns, and print them."""
    from odonata.experiment.experiment import Experiment
    from odonata.results.alone import keep, slowdowns
    from odonata.results.run import open as open_run
    from odonata.sweeps.drafts import check_written, write_text

    with open_run(directory) as run:
        if not (run.has("network") and run.has("jobs")):
            raise Refused(f"{directory}: ran no jobs with packets that could be slowed down")
        if run.missing:
            raise Refused(f"{run.path}: {run.missing}")
        check_written({"--write": (write, ".toml")})
        records, made = run.job_records, run.experiment
        assert isinstance(made, Experiment)
        draft = draft_of(made, records)
        if write is not None and launcher.rank() == 0:
            write_text(write, draft.text)
        alone = measured(draft, records, jobs)
        if launcher.rank() > 0:
            return
        keep(run, alone)
        factors = slowdowns(records, alone)
    if as_json:
        print_json({"out": str(directory), "jobs": [
            {"number": it.number, "name": it.name, "run_time_ps": it.run_time_ps,
             "alone_ps": ps if ps >= 0 else None, "slowdown": factor}
            for it, ps, factor in zip(records, alone, factors, strict=True)
        ]})  # fmt: skip
        return
    print_table(_table(records, alone, factors))


def draft_of(made: Experiment, records: Sequence[JobRecord]) -> Draft:
    """Returns the sweep over the jobs of a run that are done, each by itself."""
    from odonata.results.alone import alone
    from odonata.sweeps.axes import Axis, Value, toml
    from odonata.sweeps.drafts import Draft

    each = {record.number: alone(made, record).to_toml() for record in records
            if record.end_ps is not None}  # fmt: skip
    values = [Value(f"{number}", (f"jobs={toml(tomllib.loads(text)['jobs'])}",))
              for number, text in each.items()]  # fmt: skip
    axis = Axis("alone", tuple(values), labelled=True)
    return Draft(WHERE, next(iter(each.values()), ""), [axis], [made.run.seed])


def measured(draft: Draft, records: Sequence[JobRecord], jobs: int) -> list[int]:
    """Returns how long each job takes alone, in ps; -1 of those that are not done."""
    from odonata.study.filling import fill
    from odonata.sweeps.drafts import FEW
    from odonata.sweeps.study import Sweep

    if not draft.experiment:
        return [-1] * len(records)
    plan = draft.plan()
    _, store = fill(Sweep(plan), plan, None, jobs if len(plan.points) > FEW else 1)
    found = {}
    for point in plan.points if launcher.rank() == 0 else ():
        outcome = store.outcomes[point.key]
        if outcome.failed:
            raise Fault(f"{point}: {outcome.failed}")
        ((_, figures),) = outcome.jobs.items()
        found[int(point.labels[0])] = int(figures["run_time_ps"] or 0)
    return [found.get(record.number, -1) for record in records]


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
