"""A picture: one figure of a report, with its title and caption; and how pictures are drawn and
saved, whatever they are of.

A caption says how to read a figure and what was measured. Where there is nothing to draw, a
sentence says why instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from matplotlib.figure import Figure

from odonata.figures.style import canvas, save, style

S = TypeVar("S")
Size = tuple[float, float]
WIDE = 10.0
"""Inches from which a figure takes the full width of a page."""


@dataclass(frozen=True)
class Picture(Generic[S]):
    """A figure of a subject: a run, a schedule, what was measured of power, hours of a market."""

    name: str
    section: str
    title: str
    draw: Callable[[S, Any], None]
    """Draws it on one Axes, on a list of several (`panels`), or on a whole figure."""
    caption: str | Callable[[S], str]
    missing: Callable[[S], str]
    """Returns why there is no such figure, or an empty text."""
    size: Size | Callable[[S], Size]
    panels: tuple[int, int] | None = (1, 1)
    """Rows and columns of Axes; None: it is given the figure itself."""
    always_wide: bool = False

    def inches(self, subject: S) -> Size:
        return self.size(subject) if callable(self.size) else self.size

    def words(self, subject: S) -> str:
        return self.caption(subject) if callable(self.caption) else self.caption

    def wide(self, subject: S) -> bool:
        """Tells whether it takes the full width of a page."""
        return self.always_wide or self.inches(subject)[0] >= WIDE

    def drawn(self, subject: S) -> Figure:
        """Draw it, within `style`, and only where nothing is `missing`."""
        figure = canvas(self.inches(subject))
        if self.panels is None:
            self.draw(subject, figure)
        else:
            panels = figure.subplots(*self.panels)
            self.draw(subject, panels if self.panels == (1, 1) else panels.ravel().tolist())
        return figure


def write(pictures: Iterable[Picture[S]], subject: S, directory: Path, kind: str) -> list[Path]:
    """Save all pictures for which a subject has something, each in a file; returns the files."""
    paths = []
    with style():
        for picture in pictures:
            if not picture.missing(subject):
                paths.append(directory / f"{picture.name}.{kind}")
                save(picture.drawn(subject), paths[-1], kind)
    return paths
