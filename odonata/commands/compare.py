"""`odonata compare`: runs side by side: their different settings, and their results."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import click

from odonata.commands.group import SETTINGS
from odonata.commands.options import json_option
from odonata.commands.output import print_json, say_missing
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
    from odonata.commands import side_by_side as beside
    from odonata.results.run import open as open_run

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
        packets = [run for run in opened if run.has("network")]
        jobs = [run for run in opened if run not in packets]
        if jobs and packets:
            raise Refused(f"{jobs[0].path}: simulated jobs, and {packets[0].path} packets: "
                          "they have no figure in common")  # fmt: skip
        columns, figures = beside.columns_of(beside.labels_of(directories), opened)
        groups = beside.each(columns) if apart else beside.grouped(columns)
        notes = beside.notes([column for group in groups for column in group.columns])
        if plot is not None:
            from odonata.figures.comparison import draw_runs

            draw_runs({group.label: {it.label: it.run for it in group.columns}
                       for group in groups}, plot)  # fmt: skip
        if as_json:
            print_json(beside.comparison(groups, figures, notes))
        else:
            beside.show(groups, figures, notes)
