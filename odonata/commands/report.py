"""`odonata report`: a run on one page that opens anywhere, or its figures as files."""

from __future__ import annotations

from pathlib import Path

import click

from odonata.commands.group import SETTINGS
from odonata.commands.output import say_missing
from pdes import launcher
from pdes.errors import Refused

PAGE, FIGURES = "report.html", "figures"
"""The names of the page and of the figures in a run's directory."""


@click.command("report", context_settings=SETTINGS)
@click.argument("directory", type=click.Path(path_type=Path), metavar="DIR")
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="PATH",
              help="The page, or the directory of the figures.  [default: DIR/report.html, or "
              "DIR/figures]")  # fmt: skip
@click.option("--format", "kind", type=click.Choice(["html", "pdf", "png", "svg"]), default="html",
              show_default=True, help="One page to read, or figures for a paper.")  # fmt: skip
def command(directory: Path, out: Path | None, kind: str) -> None:
    """Make a page, or figures, of the run in DIR; finished or not."""
    if launcher.rank() == 0:
        print(write(directory, out, kind))


def write(directory: Path, out: Path | None, kind: str) -> Path:
    """Writes the page, or a directory of figures; returns where it is."""
    from odonata.results.run import open as open_run

    with open_run(directory) as run:
        say_missing(run)
        if kind == "html":
            target = out or directory / PAGE
            if target.is_dir():
                raise Refused(f"-o {target}: is a directory; for a page, name a file")
            _writable(target.absolute().parent)
            from odonata.figures.report import page

            text = page(run)
            target.write_text(text, encoding="utf-8")
            return target

        target = out or directory / FIGURES
        if target.exists() and not target.is_dir():
            raise Refused(f"-o {target}: is a file; figures go into a directory")
        if not len(run.time):
            raise Refused(f"{directory}: no sample has been written yet, so there is no figure")
        _writable(target.absolute().parent)
        target.mkdir(exist_ok=True)
        from odonata.figures.picture import write as write_pictures
        from odonata.figures.report import albums

        for subject, pictures in albums(run):
            write_pictures(pictures, subject, target, kind)
        return target


def _writable(directory: Path) -> None:
    if not directory.is_dir():
        raise Refused(f"{directory}: there is no such directory")
