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

from odonata.figures.style import RUN_COLOURS, dress_small, panels_of, save, style
from odonata.results.register import figure as figure_of
from odonata.sweeps.axes import number_of
from odonata.sweeps.outcomes import JOBS
from odonata.sweeps.table import Cell, Swept
from pdes.errors import Refused

JOB = "job"
MOST_PANELS = 24
MOST_LETTERS = 52
"""Letters below a panel, those of all its values, that stand side by side; of more, values are
turned."""
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
    if (count := len(panels(found, drawing))) > MOST_PANELS:
        raise Refused(f"--plot {text}: {count} panels, at most {MOST_PANELS}: name one more axis, "
                      "behind a colon, or --set one to fewer values")  # fmt: skip
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


def panels(found: Swept, drawing: Drawing) -> dict[str, list[Cell]]:
    """Returns the cells of each panel, by its title: there is one for each combination of the axes
    that are neither drawn over nor in colours."""
    others = [name for name in (*found.axes, *[JOB] * drawing.figure.startswith(JOBS))
              if name not in (drawing.x, drawing.hue)]  # fmt: skip
    made: dict[str, list[Cell]] = {}
    for cell in found.cells(drawing.figure):
        if found.interval(cell).of:
            labels = {name: _label(found, cell, name) for name in others}
            words = [label if name == JOB else f"{name} {label}" for name, label in labels.items()]
            made.setdefault(", ".join(words), []).append(cell)
    return made


def picture(found: Swept, drawing: Drawing) -> Figure:
    """Returns the picture: as many panels as can be shown."""
    shown_panels = [*panels(found, drawing).items()][:MOST_PANELS]
    cells = [cell for _, some in shown_panels for cell in some]
    ticks = _labels(found, cells, drawing.x)
    columns = min(3, len(shown_panels))
    rows = -(-len(shown_panels) // columns)
    below = 0.055 * max(map(len, ticks)) if _turned(ticks) else 0.0
    wide, high = 4.1 * columns + 0.6, (2.9 + below) * rows + 0.9
    figure, axes = panels_of(
        wide, high, rows, columns, left=0.75 / wide, right=0.985, top=1 - 0.62 / high,
        bottom=(0.62 + below) / high, hspace=0.42 + below / 2.2, wspace=0.24,
    )  # fmt: skip
    hues = _labels(found, cells, drawing.hue) if drawing.hue else [""]
    if len(hues) > MOST_COLOURS:
        raise Refused(f"{drawing.hue}: {len(hues)} values; at most {MOST_COLOURS} colours can be "
                      "distinguished")  # fmt: skip
    for place, panel in enumerate(axes.flat):
        if place >= len(shown_panels):
            panel.set_visible(False)
            continue
        title, some = shown_panels[place]
        _panel(panel, found, drawing, some, ticks, hues)
        panel.set_title(title, fontsize=9)
        if place % columns == 0:
            panel.set_ylabel(figure_of(drawing.figure).title)
        if place + columns >= len(shown_panels):
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
    numeric, scale = _numeric(ticks), figure_of(drawing.figure).scale
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
        hollow = [n for n, cell in enumerate(some) if found.misleads(drawing.figure, cell.labels)]
        axes.scatter([at[n] for n in hollow], [means[n] for n in hollow], s=14, zorder=4,
                     facecolors="white", edgecolors=RUN_COLOURS[number], clip_on=False)  # fmt: skip
        axes.errorbar(at, means, (below, above), fmt="o-" if numeric else "o", ms=4.5, lw=1.2,
                      elinewidth=1.2, capsize=3, color=RUN_COLOURS[number], label=hue,
                      clip_on=False)  # fmt: skip
    if not numeric:
        axes.set_xticks(range(len(ticks)), ticks)
        if _turned(ticks):
            for words in axes.get_xticklabels():
                words.set(rotation=30, ha="right", rotation_mode="anchor")
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


def _turned(ticks: Sequence[str]) -> bool:
    """Tells whether values are too long to stand side by side below a panel."""
    return not _numeric(ticks) and sum(len(tick) + 2 for tick in ticks) > MOST_LETTERS


def _numeric(labels: Sequence[str]) -> bool:
    return all(label and not isinstance(number_of(label), str) for label in labels)
