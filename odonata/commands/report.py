"""`odonata report`: a run on one page that opens anywhere, or its figures as files."""

from __future__ import annotations

from pathlib import Path

from odonata.results.run import open as open_run
from pdes.errors import Refused

PAGE, FIGURES = "report.html", "figures"
"""Where they go in a run's directory."""


def write(directory: Path, out: Path | None, kind: str) -> Path:
    """Writes the page, or a directory of figures; returns where it is."""
    with open_run(directory) as run:
        if kind == "html":
            target = out or directory / PAGE
            if target.is_dir():
                raise Refused(f"-o {target}: is a directory; for a page, name a file")
            _writable(target.absolute().parent)
            from odonata.figures.report import page

            target.write_text(page(run), encoding="utf-8")
            return target
        from odonata.figures import contents as pictures

        target = out or directory / FIGURES
        if target.exists() and not target.is_dir():
            raise Refused(f"-o {target}: is a file; figures go into a directory")
        if not len(run.time):
            raise Refused(f"{directory}: no sample has been written yet, so there is no figure")
        _writable(target.absolute().parent)
        target.mkdir(exist_ok=True)
        pictures.write(run, target, kind)
        return target


def _writable(directory: Path) -> None:
    if not directory.is_dir():
        raise Refused(f"{directory}: there is no such directory")
