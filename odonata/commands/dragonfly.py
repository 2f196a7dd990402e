"""`odonata bench dragonfly`: packets on a dragonfly, under open-loop traffic."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from odonata.commands.bench import How, measured, run_options, show
from odonata.commands.group import SETTINGS
from odonata.commands.options import TIME, network_options

if TYPE_CHECKING:
    from odonata.agents.network import Network


@click.command("dragonfly", context_settings=SETTINGS)
@network_options
@run_options
@click.option("--duration", "end", type=TIME, help="Of simulated time.  [default: 100us]")
def command(how: How, as_json: bool, network: Network) -> None:
    """A dragonfly, packet by packet, under open-loop traffic."""
    from odonata.results.performance import performance

    report = measured(network, how)
    if report.alone:
        performance(network, report.alone)
    show(how, replace(report, network=performance(network, report.result)), as_json)
