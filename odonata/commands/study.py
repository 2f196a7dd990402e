"""`odonata study`: simulate all that a paper's question takes, and draw its figures.

Nothing heavy is imported before a study is asked for.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import click

from odonata.commands.group import SETTINGS
from odonata.commands.options import Quantity, cores
from odonata.commands.output import print_json, print_table
from odonata.studies import STUDIES, named
from odonata.study.contract import Option, Study
from pdes import launcher

OWN = {"load-latency": "odonata.commands.latency"}
"""What is listed here too, and is a command of its own."""
ABOUT = {"load-latency": "Latency and throughput over the offered load, for any machine, routing "
         "and traffic: `odonata latency`"}  # fmt: skip


class Studies(click.Group):
    """One command per study, made of what it can be asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*STUDIES, *OWN]

    def get_command(self, ctx: click.Context, name: str) -> click.Command:
        if name in OWN:
            own: click.Command = importlib.import_module(OWN[name]).command
            return own
        return _command(named(name))


@click.command("study", cls=Studies, invoke_without_command=True, context_settings=SETTINGS)
@click.option("--json", "as_json", is_flag=True, help="List the studies as JSON.")
@click.pass_context
def study(ctx: click.Context, as_json: bool) -> None:
    """Simulate all that a paper's question takes, and draw its figures.

    Without a NAME, list the studies there are.
    """
    if ctx.invoked_subcommand is not None or launcher.rank() > 0:
        return
    every = {name: named(name).about for name in STUDIES} | ABOUT
    if as_json:
        print_json([{"name": name, "about": about} for name, about in every.items()])
        return
    from rich.table import Table

    rows = Table(box=None, pad_edge=False, show_header=False)
    rows.add_column(no_wrap=True, style="bold")
    rows.add_column()
    for name, about in every.items():
        rows.add_row(name, about)
    print_table(rows, highlight=False, markup=False)


command = study


def _command(asked: Study[Any, Any, Any]) -> click.Command:
    """Returns the command of one study: its own options, and those that all studies have."""

    def run(out: Path, jobs: int, only: bool, pdf: bool, as_json: bool, **options: Any) -> None:
        from odonata.study.report import report

        report(asked, asked.ask(**options), out, jobs, only=only, pdf=pdf, as_json=as_json)

    common = [
        click.Option(["-o", "--out"], type=click.Path(path_type=Path, file_okay=False),
                     metavar="DIR", default=f"out/study-{asked.name}", show_default=True,
                     help="Where results go; what is there already is not simulated again."),
        click.Option(["--jobs"], type=click.IntRange(1), metavar="N", default=cores,
                     help="Simulations at a time, by default one per core; under mpiexec one per "
                     "rank."),
        click.Option(["--report", "only"], is_flag=True,
                     help="Simulate nothing: tell and draw what is in DIR."),
        click.Option(["--pdf"], is_flag=True, help="Figures as .pdf too."),
        click.Option(["--json", "as_json"], is_flag=True, help="One JSON object on stdout."),
    ]  # fmt: skip
    about = f"{asked.about}\n\nA run that was cut short goes on with the same command."
    params: list[click.Parameter] = [*map(_option, asked.options), *common]
    return click.Command(asked.name, callback=run, params=params, help=about)


def _option(option: Option) -> click.Option:
    kind: Any = Quantity(option.metavar, option.parse)
    if option.choices:
        kind = click.Choice(option.choices)
    elif option.parse in (int, float, str):
        kind = option.parse
    return click.Option(
        [f"--{(option.flag or option.name).replace('_', '-')}", option.name],
        type=kind, default=option.default, multiple=option.several,
        show_default=option.default not in (None, ()), metavar=option.metavar or None,
        help=option.about + " Repeatable." * option.several,
    )  # fmt: skip
