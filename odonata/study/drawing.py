"""Draws the figures of a study, those that there are outcomes for, in one look."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from odonata.figures.network import FAINT, GRID, save, style


def draw_all(
    makers: Mapping[str, Callable[[Any], Any]], measured: Any, directory: Path, pdf: bool
) -> list[Path]:
    """Draw what each maker makes of what was measured, under its name; one that returns None has
    nothing to draw. Returns where the figures are, in a directory that is made if it is needed."""
    drawn = []
    with style():
        for name, make in makers.items():
            figure = make(measured)
            if figure is None:
                continue
            directory.mkdir(parents=True, exist_ok=True)
            for kind in ("png", "pdf") if pdf else ("png",):
                drawn.append(directory / f"{name}.{kind}")
                save(figure, drawn[-1], kind)
    return drawn


def panels_of(
    wide: float, high: float, rows: int = 1, columns: int = 1,
    height_ratios: tuple[float, ...] | None = None,
    width_ratios: tuple[float, ...] | None = None, **margins: float,
) -> tuple[Figure, Any]:  # fmt: skip
    """Returns a figure of this size in inches, and its panels as an array of rows and columns."""
    figure = Figure(figsize=(wide, high), facecolor="white")
    FigureCanvasAgg(figure)
    panels = figure.subplots(rows, columns, squeeze=False, height_ratios=height_ratios,
                             width_ratios=width_ratios)  # fmt: skip
    figure.subplots_adjust(**margins)
    return figure, panels


def dress_small(axes: Axes, upright: bool = True) -> None:
    """Give a panel of a figure with several of them its grid (without `upright` lines, where x is
    no number) and small labels, and take away the lines above and on the right."""
    axes.grid(color=GRID, lw=0.7)
    if not upright:
        axes.grid(axis="x", visible=False)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8, length=2.5, color=FAINT)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
