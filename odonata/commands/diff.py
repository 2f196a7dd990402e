"""`odonata diff`: whether two runs measured the same, bit for bit."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

import click

from odonata.commands.group import SETTINGS
from odonata.commands.options import json_option
from odonata.commands.output import print_json, say_missing


@click.command("diff", context_settings=SETTINGS)
@click.argument("a", type=click.Path(path_type=Path, file_okay=False))
@click.argument("b", type=click.Path(path_type=Path, file_okay=False))
@json_option
def command(a: Path, b: Path, as_json: bool) -> None:
    """Are the metrics of the runs A and B the same, bit for bit? If not, where? (status 1)"""
    from odonata.results import diff as differences
    from odonata.results.run import open as open_run

    with open_run(a) as one, open_run(b) as other:
        say_missing(one, other)
        verdict = differences.compare(one, other)
        if as_json:
            print_json({"same": verdict.same, **asdict(verdict)})
        else:
            print(differences.words_for(verdict, one, other))
    sys.exit(0 if verdict.same else 1)
