"""Figures of a sweep: a figure over one axis, in colours for another, in panels for the rest.

Over numbers, means are joined by lines; over words, they stand side by side. Bars are confidence
intervals of the means, and hollow points are no means of a steady state.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from odonata.experiment.experiment import BY_PATH, SEED
from odonata.experiment.keys import READERS
from odonata.figures.style import (
    COLUMN,
    GREY,
    INK,
    RUN_COLOURS,
    TEXT,
    canvas,
    curves,
    dress_small,
    from_zero,
    keyed,
    log_ticks,
    save,
    style,
    thousands,
)
from odonata.results.register import figure as figure_of
from odonata.results.statistics import Interval
from odonata.sweeps.axes import number_of
from odonata.sweeps.outcomes import JOBS
from odonata.sweeps.table import Baseline, Cell, Swept
from pdes.errors import Refused

JOB = "job"
MOST_PANELS = 24
LETTERS_PER_INCH = 13
"""Letters below a panel, those of all its values, that stand side by side; of more, values are
turned."""
MOST_COLOURS = len(RUN_COLOURS)
MOST_TICKS = 6
"""As many values are all marked on a logarithmic axis."""
SHAPES: dict[str, tuple[int, float, float]] = {
    "screen": (3, 4.1, 2.9), "column": (1, COLUMN, 2.5), "text": (2, TEXT / 2, 2.4),
}  # fmt: skip
"""The panels beside each other, and the width and height of one in inches."""
WORDS = {
    "traffic.load": "offered load",
    "network.routing": "routing",
    "traffic.pattern": "traffic",
    "scheduler.allocation": "allocation",
    "scheduler.order": "scheduling",
    SEED: "seed",
}
"""What axes are called whose names say less."""
PARTS = {"traffic.load": "part of the nodes' links"}
"""What axes are parts of."""


class Drawing(NamedTuple):
    """What is drawn: a figure, over an axis, in colours for another; "" for none. As ratios to a
    baseline, if there is one; on these logarithmic axes; for a screen or a paper."""

    figure: str
    x: str
    hue: str
    baseline: Baseline | None = None
    log: str = ""
    width: str = "screen"

    @property
    def name(self) -> str:
        ratio = "ratio" * bool(self.baseline)
        parts = (self.figure, self.x, self.hue, ratio)
        return re.sub(r"[^A-Za-z0-9_.-]+", "-", "-".join(part for part in parts if part))

    @property
    def title(self) -> str:
        """Returns what stands beside its y axis."""
        figure = figure_of(self.figure)
        ratio = f"{figure.name} (× that of {self.baseline.label})" if self.baseline else ""
        return ratio or figure.title


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


def draw(found: Swept, text: str, out: Path, kind: str = "png", **how: Any) -> Path:
    """Draw what FIGURE:X:HUE stands for into the directory of a sweep, as a file of this kind; more
    of its `Drawing` is in `how`. Returns where it is."""
    drawing = parsed(found, text)._replace(**how)
    if (count := len(panels(found, drawing))) > MOST_PANELS:
        raise Refused(f"--plot {text}: {count} panels, at most {MOST_PANELS}: name one more axis, "
                      "behind a colon, or --set one to fewer values")  # fmt: skip
    path = out / f"{drawing.name}.{kind}"
    with style(printed=drawing.width != "screen"):
        save(picture(found, drawing), path)
    return path


def usual(found: Swept, figure: str) -> Drawing:
    """Returns how a figure is drawn where nobody says: over the first axis of numbers, or else that
    with the most values, in colours for the next."""
    axes = sorted(found.axes, key=lambda name: (not scale_of(name, found.axes[name]).numeric,
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
    for cell in _means(found, drawing):
        labels = {name: _label(found, cell, name) for name in others}
        words = [label if name == JOB else f"{words_of(name)} {label}"
                 for name, label in labels.items()]  # fmt: skip
        made.setdefault(", ".join(words), []).append(cell)
    return made


def _means(found: Swept, drawing: Drawing) -> dict[Cell, Interval]:
    """Returns what is drawn of each cell that has anything: its mean or its ratio, as people read
    it."""
    figure, baseline = drawing.figure, drawing.baseline
    if baseline is not None:
        made = {cell: it.ratio for cell, it in found.against(figure, baseline).items()}
    else:
        scale = figure_of(figure).scale
        made = {cell: Interval(it.mean * scale, it.low * scale, it.high * scale, it.of)
                for cell in found.cells(figure) for it in [found.interval(cell)]}  # fmt: skip
    return {cell: it for cell, it in made.items() if it.of}


def picture(found: Swept, drawing: Drawing) -> Figure:
    """Returns the picture: as many panels as can be shown."""
    shown = [*panels(found, drawing).items()][:MOST_PANELS]
    cells = [cell for _, some in shown for cell in some]
    ticks, hues = _labels(found, cells, drawing.x), _labels(found, cells, drawing.hue)
    if len(hues) > MOST_COLOURS:
        raise Refused(f"{drawing.hue}: {len(hues)} values; at most {MOST_COLOURS} colours can be "
                      "distinguished")  # fmt: skip
    beside, wide, high = SHAPES[drawing.width]
    columns = min(beside, len(shown)) or 1
    rows = -(-len(shown) // columns) or 1
    scale = scale_of(drawing.x, ticks)
    turned = not scale.numeric and sum(len(it) + 2 for it in ticks) > LETTERS_PER_INCH * wide
    below = 0.055 * max(map(len, ticks)) if turned else 0.0
    figure = canvas((wide * columns, (high + below) * rows + 0.4 * bool(drawing.hue)))
    panel_of = figure.subplots(rows, columns, squeeze=False).ravel()
    looks = _looks(found, drawing.hue, hues)
    means = _means(found, drawing)
    for place, axes in enumerate(panel_of):
        if place >= len(shown):
            axes.set_visible(False)
            continue
        title, some = shown[place]
        for number, (hue, look) in enumerate(looks.items()):
            mine = {cell: means[cell] for cell in some
                    if not drawing.hue or _label(found, cell, drawing.hue) == hue}  # fmt: skip
            shift = (number - (len(looks) - 1) / 2) * 0.6 / max(2, len(looks))
            x = [scale.at[_label(found, cell, drawing.x)] + shift * (not scale.numeric)
                 for cell in mine]  # fmt: skip
            hollow = [_misleads(found, drawing, cell) for cell in mine]
            _curve(axes, x, [*mine.values()], hollow, look if scale.numeric else
                   {**look, "ls": "none"})  # fmt: skip
        _dress(axes, drawing, scale, turned)
        axes.set_title(title, fontsize=9 if drawing.width == "screen" else None)
        if place % columns == 0:
            axes.set_ylabel(drawing.title)
        if place + columns >= len(shown) and drawing.x:
            axes.set_xlabel(words_of(drawing.x, scale.unit or PARTS.get(drawing.x, "")))
    _legend(figure, found, drawing, looks, columns * wide)
    return figure


def _looks(found: Swept, axis: str, hues: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Returns how the curve of each value looks: the same in all pictures of a sweep, if there are
    enough colours."""
    every = [*found.axes.get(axis, hues)]
    every = every if len(every) <= MOST_COLOURS else [*hues]
    looks = dict(zip(every, curves(len(every)), strict=True))
    return {hue: looks[hue] for hue in hues}


def _curve(
    axes: Axes, x: Sequence[float], means: Sequence[Interval], hollow: Sequence[bool],
    look: Mapping[str, Any],
) -> None:  # fmt: skip
    """Draw means with their intervals, some of them hollow."""
    y = [it.mean for it in means]
    bars = ([0.0 if it.low != it.low else it.mean - it.low for it in means],
            [0.0 if it.high != it.high else it.high - it.mean for it in means])  # fmt: skip
    axes.errorbar(x, y, bars, elinewidth=1.1, capsize=2.5, clip_on=False, **look)
    some = [(at, mean) for at, mean, is_hollow in zip(x, y, hollow, strict=True) if is_hollow]
    if some:
        on_top = {**look, "ls": "none", "zorder": look["zorder"] + 0.5}
        axes.plot(*zip(*some, strict=True), **on_top, mfc="white", mew=1.1, clip_on=False)


def _misleads(found: Swept, drawing: Drawing, cell: Cell) -> bool:
    """Tells whether a point is of runs of no steady state, its baseline's among them."""
    base = drawing.baseline
    other = tuple(base.label if base and name == base.axis else label
                  for name, label in zip(found.names, cell.labels, strict=True))  # fmt: skip
    return any(found.misleads(drawing.figure, labels) for labels in {cell.labels, other})


def _dress(axes: Axes, drawing: Drawing, scale: Scale, turned: bool) -> None:
    """Set the axes of a panel: their scales, ticks and ends."""
    dress_small(axes)
    if not scale.numeric:
        axes.set_xticks([*scale.at.values()], [*scale.at])
        for words in axes.get_xticklabels() if turned else ():
            words.set(rotation=30, ha="right", rotation_mode="anchor")
        axes.set_xlim(-0.6, len(scale.at) - 0.4)
    for axis in (axes.xaxis, axes.yaxis) if scale.numeric else (axes.yaxis,):
        axis.set_major_locator(MaxNLocator(7, steps=[1, 2, 2.5, 5, 10]))
        axis.set_major_formatter(FuncFormatter(thousands))
    y: list[float] = []
    for line in axes.lines:
        y += np.asarray(line.get_ydata(), float).tolist()
    for which, values in (("x", [*scale.at.values()]), ("y", y)):
        if which not in drawing.log:
            continue
        if min(values, default=1.0) <= 0 or (which == "x" and not scale.numeric):
            raise Refused(f"--log {which}: not all values are numbers above 0")
        getattr(axes, f"set_{which}scale")("log")
        log_ticks(axes, which)
        if which == "x" and len(values) <= MOST_TICKS:
            axes.set_xticks(values)
    if drawing.baseline is not None:
        axes.axhline(1.0, color=INK, lw=0.9, zorder=2)
    elif "y" not in drawing.log:
        from_zero(axes)


def _legend(
    figure: Figure, found: Swept, drawing: Drawing, looks: Mapping[str, Any], wide: float
) -> None:
    """Say what colours are, and hollow points where there are any."""
    keys = [Line2D([], [], **look, label=keyed(hue))
            for hue, look in looks.items() if drawing.hue]  # fmt: skip
    if any(_misleads(found, drawing, cell) for cell in _means(found, drawing)):
        keys.append(Line2D([], [], marker="o", ls="none", mec=GREY, mfc="white", ms=5,
                           label="not steady"))  # fmt: skip
    if keys:
        letters = max(len(str(key.get_label())) for key in keys) + 6
        figure.legend(handles=keys, loc="outside upper center", title=words_of(drawing.hue),
                      ncols=max(1, min(len(keys), int(LETTERS_PER_INCH * wide / letters)))
                      )  # fmt: skip


# -- axes of numbers and of words


class Scale(NamedTuple):
    """Where the values of an axis are: at numbers, of a unit, or beside each other if they are
    words."""

    at: dict[str, float]
    numeric: bool
    unit: str = ""


def scale_of(name: str, labels: Sequence[str]) -> Scale:
    """Returns where the values of an axis are. Quantities, such as "4 KiB", are in the unit of the
    least of them."""
    numbers = [number_of(label) for label in labels]
    if labels and not any(isinstance(number, str) for number in numbers):
        return Scale(dict(zip(labels, map(float, numbers), strict=True)), True)
    key = BY_PATH.get(re.sub(r"\[\d+\]", "", name))
    read = READERS.get(key.kind) if key else None
    try:
        values = {label: float(read(label)) for label in labels} if read else {}
    except ValueError:
        values = {}
    least = min((label for label in values if values[label] > 0), key=values.get, default="")  # type: ignore[arg-type]
    if number := re.match(r"\s*[-+.\deE]*\d", least):
        size = values[least] / float(number[0])
        at = {label: value / size for label, value in values.items()}
        return Scale(at, True, least[number.end() :].strip())
    return Scale({label: float(place) for place, label in enumerate(labels)}, False)


def words_of(name: str, unit: str = "") -> str:
    """Returns what an axis is called, with the unit of its values."""
    _, _, seeded = name.partition(f"{SEED}.")
    section, _, key = name.partition("].")
    words = f"{key} of {section}]" if key else name.replace(".", " ")
    words = WORDS.get(name, f"seed of {seeded}" if seeded else words)
    return words.replace("_", " ") + (f" ({unit})" if unit else "")


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
