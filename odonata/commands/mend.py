"""`odonata mend`: close what a run that died left open."""

from __future__ import annotations

from pathlib import Path

import click

from odonata.commands.group import SETTINGS


@click.command("mend", context_settings=SETTINGS)
@click.argument("path", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
def command(path: Path) -> None:
    """Close the files that a run which died left open, so that any program reads them.

    Odonata itself needs none of it, and --resume does the same.
    """
    from odonata.results.execution import mended

    files = mended(path)
    print(f"{path}: " + (f"closed {', '.join(file.name for file in files)}" if files
                         else "nothing was left open"))  # fmt: skip
