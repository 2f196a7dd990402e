"""`odonata papers`: every printed number of the papers beside ours, from the studies' results."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from odonata.commands.group import SETTINGS
from odonata.commands.output import print_json, print_table


@click.command("papers", context_settings=SETTINGS)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True,
                type=click.Path(exists=True, path_type=Path))  # fmt: skip
@click.option("--markdown", is_flag=True, help="All of it as Markdown: the tables of a page.")
@click.option("--json", "as_json", is_flag=True, help="All of it as a JSON list.")
def command(paths: tuple[Path, ...], markdown: bool, as_json: bool) -> None:
    """Count which printed numbers of the papers hold, from results of `odonata study`.

    A PATH is the directory of a study, or a copy of its summary.json. Numbers that a model was
    calibrated to are no evidence, and are counted apart.
    """
    from odonata.study import papers
    from pdes.shown import say

    for warning in papers.warnings(paths):
        say(warning)
    summaries = [papers.summary(path) for path in paths]
    every = papers.printed(summaries)
    if as_json:
        print_json([{"study": one.study, "counted_as": one.column, **asdict(one.claim)}
                    for one in every])  # fmt: skip
    elif markdown:
        print(papers.page(summaries), end="")
    else:
        from rich.table import Table

        rows = Table(box=None, pad_edge=False)
        rows.add_column("")
        for column in papers.COLUMNS:
            rows.add_column(column, justify="right")
        named = [(name, [one for one in every if one.paper == name]) for name in papers.PAPERS]
        for name, mine in (*named, ("all", every)):
            if mine:
                count = papers.counted(mine)
                rows.add_row(name, *(f"{count[column]}" for column in papers.COLUMNS))
        print_table(rows, highlight=False, markup=False)
