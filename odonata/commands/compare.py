"""`odonata compare`: runs side by side: their different settings, and their results."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import click

from odonata.commands import compare_packets, compare_schedules
from odonata.commands.group import SETTINGS
from odonata.commands.options import json_option
from odonata.commands.output import print_json, say_missing
from odonata.commands.side_by_side import (
    Column,
    Figure,
    Group,
    about_changes,
    comparison,
    each,
    grouped,
    labels_of,
    tables,
)
from odonata.experiment.terminal import plain_console
from odonata.results.opening import open as open_run
from odonata.results.run import Run
from odonata.results.schedule_run import ScheduleRun
from pdes import launcher
from pdes.errors import Refused


@click.command("compare", context_settings=SETTINGS)
@click.argument(
    "directories", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="DIR DIR..."
)
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The run, or one of the runs, that changes are against, in place of the first; also a "
    "run that is not among the others.",
)
@click.option(
    "--each",
    "apart",
    is_flag=True,
    help="Show every run by itself, also those that differ only in their seed.",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Draw them over each other, as .png, .svg or .pdf.",
)
@json_option
def command(
    directories: tuple[Path, ...], against: Path | None, apart: bool, plot: Path | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Compare runs: what was asked for, and what came of it. Runs that differ only in their seed
    are one column, with the mean of each figure and its 95 % confidence interval."""
    if launcher.rank() == 0:
        show(directories, against, apart, plot, as_json)


def show(
    directories: Sequence[Path], against: Path | None, apart: bool, plot: Path | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Compare runs, and print and draw the comparison."""
    if against is not None:
        wanted = against.resolve()
        rest = [path for path in directories if path.resolve() != wanted]
        directories = [against, *rest]
    if len(directories) < 2:
        raise Refused("compare: two runs at least: odonata compare DIR DIR")
    if plot is not None:
        from odonata.figures.style import check_name

        check_name(plot)
    with ExitStack() as stack:
        opened = [stack.enter_context(open_run(path)) for path in directories]
        say_missing(*opened)
        of_jobs = [run for run in opened if isinstance(run, ScheduleRun)]
        of_packets = [run for run in opened if isinstance(run, Run)]
        if of_jobs and of_packets:
            raise Refused(f"{of_jobs[0].path}: simulated jobs, and {of_packets[0].path} packets: "
                          "they have no figure in common")  # fmt: skip
        labels = labels_of(directories)
        columns: list[Column]
        figures: list[Figure]
        if of_jobs:
            columns, figures = compare_schedules.columns_of(labels, of_jobs)
        else:
            columns, figures = compare_packets.columns_of(labels, of_packets)
        groups = each(columns) if apart else grouped(columns)
        notes_of = compare_schedules.notes if of_jobs else compare_packets.notes
        notes = notes_of([column for group in groups for column in group.columns])
        if plot is not None:
            draw(groups, plot)
        if as_json:
            print_json(comparison(groups, figures, notes))
        else:
            _print(groups, figures, notes)


def _print(groups: Sequence[Group], figures: Sequence[Figure], notes: Sequence[str]) -> None:
    console = plain_console(highlight=False, markup=False)
    if not console.is_terminal:  # a file or a pipe is as wide as it must be
        console.width = 100_000
    for shown in tables(groups, figures, console):
        console.print(shown)
        console.print()
    for note in notes:
        console.print(note, style="bold", markup=False, soft_wrap=True)
    console.print(about_changes(groups), style="dim", markup=False, soft_wrap=True)


def draw(groups: Sequence[Group], path: Path) -> None:
    """Draw the runs over each other, those of a group in one colour."""
    first = groups[0].columns[0].run
    if isinstance(first, ScheduleRun):
        from odonata.figures.schedule_comparison import draw_schedules

        columns = [column for group in groups for column in group.columns]
        runs = {it.label: it.run for it in columns if isinstance(it.run, ScheduleRun)}
        power = {label: run.power for label, run in runs.items() if run.power is not None}
        draw_schedules({label: run.schedule for label, run in runs.items()}, path, power)
        return
    from odonata.figures.run_comparison import draw_runs

    draw_runs(
        {
            group.label: [column.run for column in group.columns if isinstance(column.run, Run)]
            for group in groups
        },
        path,
    )
