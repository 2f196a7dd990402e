"""`odonata topology`: a machine in figures, for people and for programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from odonata.commands.group import SETTINGS
from odonata.commands.options import json_option, machine_options, plot_option
from odonata.commands.output import print_json, print_table
from pdes import launcher


@click.command("topology", context_settings=SETTINGS)
@machine_options
@click.argument("name", required=False)
@click.option("--list", "list_all", is_flag=True, help="The presets, and where they come from.")
@click.option("--ranks", type=int, help="Say how this many ranks would share it.")
@plot_option
@click.option("--graphml", type=click.Path(path_type=Path, dir_okay=False),
              help="Write it as a graph, nodes included.")  # fmt: skip
@json_option
def command(list_all: bool, as_json: bool, **request: Any) -> None:
    """Describe, draw or export a machine: a preset NAME, or one of your own."""
    from odonata.commands.topology_shown import describe, preset_facts, preset_table

    if launcher.rank() > 0:
        return
    if not list_all:
        describe(as_json=as_json, **request)
    elif as_json:
        print_json(preset_facts())
    else:
        print_table(preset_table())
