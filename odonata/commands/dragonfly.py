"""`odonata bench dragonfly`: packets on a dragonfly, under open-loop traffic."""

from __future__ import annotations

from dataclasses import replace

import click

from odonata.agents.network import Network
from odonata.commands.bench import How, measured, run_options, show
from odonata.commands.group import SETTINGS
from odonata.commands.options import TIME, network_options
from odonata.results.performance import performance


@click.command("dragonfly", context_settings=SETTINGS)
@network_options
@run_options
@click.option("--duration", "end", type=TIME, help="Of simulated time.  [default: 100us]")
def command(how: How, as_json: bool, network: Network) -> None:
    """A dragonfly, packet by packet, under open-loop traffic."""
    report = measured(network, how)
    if report.alone:
        performance(network, report.alone)
    show(how, replace(report, network=performance(network, report.result)), as_json)
