"""`odonata schema`: what an experiment file may hold, for people, for editors, and as a file."""

from __future__ import annotations

import click

from odonata.commands.group import SETTINGS
from odonata.commands.output import print_json, print_table
from pdes import launcher


@click.command("schema", context_settings=SETTINGS)
@click.option("--json", "as_json", is_flag=True, help="As a JSON Schema, for editors.")
@click.option("--toml", "as_toml", is_flag=True, help="As a file to start from.")
def command(as_json: bool, as_toml: bool) -> None:
    """Show what an experiment file may hold."""
    from odonata.commands.schema_shown import json_schema, key_table, template

    if launcher.rank() > 0:
        return
    if as_json:
        print_json(json_schema())
    elif as_toml:
        print(template(), end="")
    else:
        print_table(key_table())
