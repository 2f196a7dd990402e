"""Figures of a sweep: a figure over one axis, in colours for another, in panels for the rest.

Over numbers, means are joined by lines; over words, they stand side by side. Bars are confidence
intervals of the means.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from odonata.figures.network import RUN_COLOURS, save, style
from odonata.study.drawing import dress_small, panels_of
from odonata.sweeps.axes import number_of
from odonata.sweeps.outcomes import JOBS, shown
from odonata.sweeps.table import Cell, Swept
from pdes.errors import Refused

JOB = "job"
MOST_PANELS = 24
MOST_COLOURS = len(RUN_COLOURS)


class Drawing(NamedTuple):
    """What is drawn: a figure, over an axis, in colours for another; "" for none."""

    figure: str
    x: str
    hue: str

    @property
    def name(self) -> str:
        return re.sub(r"[^A-Za-z0-9_.-]+", "-", "-".join(part for part in self if part))


def parsed(found: Swept, text: str) -> Drawing:
    """Returns what FIGURE:X or FIGURE:X:HUE stands for. Refused where there is no such figure or
    axis."""
    figure, *axes = (part.strip() for part in text.split(":"))
    if not 1 <= len(axes) <= 2:
        raise Refused(f"--plot {text}: FIGURE:X or FIGURE:X:HUE, as "
                      "mean_latency_ns:traffic.load:network.routing")  # fmt: skip
    figure = found.named(figure)
    there = [*found.axes, *[JOB] * figure.startswith(JOBS)]
    for axis in axes:
        if axis not in there:
            raise Refused(f"--plot {text}: {axis}: no axis of this sweep; there are "
                          f"{', '.join(there)}")  # fmt: skip
    return Drawing(figure, axes[0], axes[1] if len(axes) > 1 else "")


def draw(found: Swept, text: str, out: Path) -> Path:
    """Draw what FIGURE:X:HUE stands for into the directory of a sweep. Returns where it is."""
    drawing = parsed(found, text)
    path = out / f"{drawing.name}.png"
    with style():
        save(picture(found, drawing), path, "png")
    return path


def usual(found: Swept, figure: str) -> Drawing:
    """Returns how a figure is drawn where nobody says: over the first axis of numbers, or else that
    with the most values, in colours for the next."""
    axes = sorted(found.axes, key=lambda name: (not _numeric(found.axes[name]),
                                                -len(found.axes[name])))  # fmt: skip
    if not axes:
        return Drawing(figure, JOB if figure.startswith(JOBS) else "", "")
    hue = axes[1] if len(axes) > 1 and len(found.axes[axes[1]]) <= MOST_COLOURS else ""
    return Drawing(figure, axes[0], hue)


def picture(found: Swept, drawing: Drawing) -> Figure:
    """Returns the picture: a panel for each combination of the other axes."""
    cells = [cell for cell in found.cells(drawing.figure) if found.interval(cell).of]
    others = [name for name in (*found.axes, *[JOB] * drawing.figure.startswith(JOBS))
              if name not in (drawing.x, drawing.hue)]  # fmt: skip
    rows: dict[tuple[str, ...], list[Cell]] = {}
    for cell in cells:
        rows.setdefault(tuple(_label(found, cell, name) for name in others), []).append(cell)
    panels = [*rows.items()][:MOST_PANELS]
    columns = min(3, len(panels))
    high = -(-len(panels) // columns)
    figure, axes = panels_of(
        4.1 * columns + 0.6, 2.9 * high + 0.9, high, columns,
        left=0.75 / (4.1 * columns + 0.6), right=0.985, top=1 - 0.62 / (2.9 * high + 0.9),
        bottom=0.62 / (2.9 * high + 0.9), hspace=0.42, wspace=0.24,
    )  # fmt: skip
    hues = _labels(found, cells, drawing.hue) if drawing.hue else [""]
    if len(hues) > MOST_COLOURS:
        raise Refused(f"{drawing.hue}: {len(hues)} values; at most {MOST_COLOURS} colours can be "
                      "distinguished")  # fmt: skip
    ticks = _labels(found, cells, drawing.x)
    for place, panel in enumerate(axes.flat):
        if place >= len(panels):
            panel.set_visible(False)
            continue
        labels, some = panels[place]
        _panel(panel, found, drawing, some, ticks, hues)
        named = [label if name == JOB else f"{name} {label}"
                 for name, label in zip(others, labels, strict=True)]  # fmt: skip
        panel.set_title(", ".join(named), fontsize=9)
        if place % columns == 0:
            panel.set_ylabel(shown(drawing.figure).title)
        if place + columns >= len(panels):
            panel.set_xlabel(drawing.x)
    if drawing.hue:
        handles, words = axes.flat[0].get_legend_handles_labels()
        figure.legend(handles, words, loc="upper center", ncols=min(6, len(words)), frameon=False,
                      title=drawing.hue, fontsize=8, title_fontsize=8)  # fmt: skip
    return figure


def _panel(
    axes: Axes, found: Swept, drawing: Drawing, cells: Sequence[Cell], ticks: Sequence[str],
    hues: Sequence[str],
) -> None:  # fmt: skip
    numeric, scale = _numeric(ticks), shown(drawing.figure).scale
    for number, hue in enumerate(hues):
        some = [cell for cell in cells if not drawing.hue
                or _label(found, cell, drawing.hue) == hue]  # fmt: skip
        at, means, below, above = [], [], [], []
        for cell in some:
            made = found.interval(cell)
            label = _label(found, cell, drawing.x)
            shift = (number - (len(hues) - 1) / 2) * 0.6 / max(2, len(hues))
            at.append(float(number_of(label)) if numeric else ticks.index(label) + shift)
            means.append(made.mean * scale)
            below.append(0.0 if made.low != made.low else (made.mean - made.low) * scale)
            above.append(0.0 if made.high != made.high else (made.high - made.mean) * scale)
        axes.errorbar(at, means, (below, above), fmt="o-" if numeric else "o", ms=4.5, lw=1.2,
                      elinewidth=1.2, capsize=3, color=RUN_COLOURS[number], label=hue,
                      clip_on=False)  # fmt: skip
    if not numeric:
        axes.set_xticks(range(len(ticks)), ticks)
        axes.set_xlim(-0.6, len(ticks) - 0.4)
    axes.set_ylim(bottom=0)
    dress_small(axes)


def _label(found: Swept, cell: Cell, axis: str) -> str:
    if not axis:
        return ""
    return cell.job if axis == JOB else cell.labels[found.names.index(axis)]


def _labels(found: Swept, cells: Sequence[Cell], axis: str) -> list[str]:
    """Returns the values of an axis, in its order, that any of these cells has."""
    if not axis:
        return [""]
    there = {_label(found, cell, axis) for cell in cells}
    return [label for label in (found.kinds if axis == JOB else found.axes[axis])
            if label in there]  # fmt: skip


def _numeric(labels: Sequence[str]) -> bool:
    return all(label and not isinstance(number_of(label), str) for label in labels)
