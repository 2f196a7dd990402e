"""`odonata bench phold`: the benchmark of parallel discrete-event simulators."""

from __future__ import annotations

import click

from odonata.commands.bench import How, measured, run_options, show
from odonata.commands.group import SETTINGS
from odonata.commands.options import TIME


@click.command("phold", context_settings=SETTINGS)
@run_options
@click.option("--lps", default=1024, show_default=True, help="Logical processes.")
@click.option("--population", default=16, show_default=True, help="Events at each, always.")
@click.option("--remote", default=0.25, show_default=True,
              help="Probability that an event goes to a uniformly random process.")  # fmt: skip
@click.option("--lookahead", type=TIME, default="500ns", show_default=True, help="Least delay.")
@click.option("--mean", type=TIME, default="1us", show_default=True, help="Of the whole delay.")
@click.option("--end", type=TIME, default="300us", show_default=True, help="Of simulated time.")
@click.option("--seed", default=1, show_default=True)
def command(
    how: How, as_json: bool, lps: int, population: int, remote: float, lookahead: int, mean: int,
    seed: int,
) -> None:  # fmt: skip
    """PHOLD, the benchmark of parallel discrete-event simulators."""
    from pdes.phold import Phold

    show(how, measured(Phold(lps, population, remote, lookahead, mean, seed), how), as_json)
