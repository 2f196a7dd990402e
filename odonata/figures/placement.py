"""A placement as a picture: a panel per group, in it a row per router, in that a cell per node.

Cells have the colour of their job. Where they are large enough they also have a number: the node's
label or, where there are too many jobs to distinguish them by colour, the job's number.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import hsv_to_rgb, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Patch

from odonata.figures.style import GREY, INK, Floats, brief, canvas, keyed, save, style
from odonata.jobs.placement import Placement
from topology import Dragonfly

FEW = ("#0067a5", "#e08214", "#2a8c6e", "#c0392b", "#8e5aa8", "#d4a900", "#4fb0d9", "#c2529b",
       "#7a4a21", "#8fbf3a", "#1f2f6f", "#f0a3b0")  # fmt: skip
IDLE, BUSY, PANEL = "#e9edf1", "#8b97a2", "#f7f9fa"
WIDTH, TALLEST, SHAPE = 12.0, 15.0, 1.7
"""The width of the page, in inches; and how much wider than high the panels should be together."""
MOST_SQUARES = 20_000
"""The largest number of nodes that are drawn as cells; beyond it they are pixels of an image."""
MOST_KEYS = 32
"""The largest number of jobs in the legend."""
GAP_X, GAP_Y = 0.9, 1.5
"""The gap between small panels, in cells."""


class _Page:
    """Panels on a page. Lengths are in cells, y grows downwards."""

    def __init__(self, machine: Dragonfly, keys: int) -> None:
        p, a, g = machine.nodes, machine.routers, machine.groups
        scale = max(1.0, min(p, a) / 6)
        self.gap_x, self.gap_y = GAP_X * scale, GAP_Y * scale
        columns = np.arange(1, g + 1)
        wide = columns * (p + self.gap_x)
        high = -(-g // columns) * (a + self.gap_y)
        empty = -g % columns / g
        self.columns = int(columns[(np.abs(np.log(wide / high / SHAPE)) + empty).argmin()])
        self.rows = -(-g // self.columns)
        self.wide = self.columns * (p + self.gap_x)
        self.high = self.rows * (a + self.gap_y)
        lines = -(-keys // 5)
        self.per_row = -(-keys // lines)
        self.top, self.bottom = 0.85, 0.3 + 0.26 * lines
        room = WIDTH - 1.0
        self.cell = min(room / self.wide, (TALLEST - self.top - self.bottom) / self.high, 0.6)
        """Returns the width and height of the page, in inches."""
        self.size = (WIDTH, self.top + self.bottom + self.cell * self.high)

    def corners(self, machine: Dragonfly) -> Floats:
        """Returns [g, 2]: the upper left cell of each panel."""
        row, column = np.divmod(np.arange(machine.groups), self.columns)
        return np.stack(
            [column * (machine.nodes + self.gap_x), row * (machine.routers + self.gap_y)], 1
        )

    def cells(self, machine: Dragonfly) -> Floats:
        """Returns [nodes, 2]: the upper left corner of each cell."""
        r, k = np.divmod(np.arange(machine.routers * machine.nodes), machine.nodes)
        corners = self.corners(machine)[:, None] + np.stack([k, r], 1)[None]
        return np.asarray(corners.reshape(-1, 2), np.float64)


def draw(placed: Placement, path: Path) -> None:
    """Draw a placement to a file, in the format that its name ends in: .png, .svg or .pdf."""
    machine = placed.machine
    colours = _all_colours(placed)
    keys = _keys(placed, colours)
    page = _Page(machine, len(keys))
    with style():
        figure = canvas(page.size, None)
        wide, high = page.size
        inches = (page.wide * page.cell, page.high * page.cell)
        left = (wide - inches[0]) / 2
        axes = figure.add_axes(
            (left / wide, page.bottom / high, inches[0] / wide, inches[1] / high)
        )
        _fill(axes, placed, page, colours)
        _title(figure, placed, page)
        figure.legend(handles=keys, loc="lower center", ncols=page.per_row, fontsize=9,
                      handlelength=1.1, handleheight=1.1, columnspacing=2.0, labelcolor=INK,
                      bbox_to_anchor=(0.5, 0.08 / high), borderaxespad=0)  # fmt: skip
        save(figure, path)


def size(machine: Dragonfly, jobs: int) -> tuple[float, float]:
    """Returns the size of a figure that `panels` has to itself, in inches."""
    page = _Page(machine, min(jobs, MOST_KEYS) + 1)
    return page.size[0], page.size[1] - page.top + 0.1


def panels(placed: Placement, names: Sequence[str], axes: Axes) -> None:
    """Draw a placement as part of a larger figure: without a title, and jobs have names."""
    colours = _all_colours(placed)
    page = _Page(placed.machine, min(len(names), MOST_KEYS) + 1)
    _fill(axes, placed, page, colours)
    axes.set_aspect("equal")
    numbered = _by_job(placed)
    keys = _keys(placed, colours)
    some = names if len(names) <= MOST_KEYS else names[: MOST_KEYS - 1]
    for position, (key, name) in enumerate(zip(keys, some, strict=False)):
        _, _, where = str(key.get_label()).rpartition(", ")
        label = f"{position + 1}: " * numbered + f"{brief(name, 20)} · {where}"
        key.set_label(keyed(label))
    axes.legend(handles=list(keys), loc="upper center", bbox_to_anchor=(0.5, 0.0), fontsize=9,
                ncols=page.per_row, handlelength=1.1, handleheight=1.1, columnspacing=2.0,
                labelcolor=INK, borderaxespad=0.2)  # fmt: skip


def _all_colours(placed: Placement) -> Floats:
    return np.array([to_rgb(IDLE), to_rgb(BUSY), *job_colours(len(placed.jobs))])


def _fill(axes: Any, placed: Placement, page: _Page, colours: Floats) -> None:
    machine, holder = placed.machine, _holders(placed)
    axes.set_xlim(-page.gap_x / 2, page.wide - page.gap_x / 2)
    axes.set_ylim(page.high - page.gap_y * 0.8, -page.gap_y * 0.8)
    axes.axis("off")
    _panels(axes, machine, page)
    if machine.n_nodes <= MOST_SQUARES:
        _squares(axes, page.cells(machine), colours[holder], page.cell)
        _numbers(axes, placed, page, holder, colours)
    else:
        _mosaic(axes, machine, page, colours[holder])


def _holders(placed: Placement) -> npt.NDArray[np.int64]:
    """Returns a number by node: 0 idle, 1 busy before, 2 and more the jobs."""
    holder = placed.busy.astype(np.int64)
    for position, labels in enumerate(placed.jobs):
        holder[labels] = position + 2
    return holder


def job_colours(jobs: int) -> list[Any]:
    """Returns a colour per job such that neighbours differ: where the named colours run out, steps
    of the golden angle around the colour wheel, alternately darker and lighter."""
    if jobs <= len(FEW):
        return [to_rgb(colour) for colour in FEW[:jobs]]
    i = np.arange(jobs)
    hue = (0.58 + i * 0.618034) % 1
    wheel = np.stack(
        [hue, np.choose(i % 3, [0.80, 0.50, 0.95]), np.choose(i % 3, [0.70, 0.88, 0.50])]
    )
    return list(hsv_to_rgb(wheel.T))


def _panels(axes: Any, machine: Dragonfly, page: _Page) -> None:
    p, a = machine.nodes, machine.routers
    pad = 0.14 * page.gap_x
    fits = p * page.cell >= 0.55
    points = float(np.clip(page.cell * page.gap_y * 30, 5, 9.5))
    for group, (x, y) in enumerate(page.corners(machine)):
        axes.add_patch(FancyBboxPatch((x, y), p, a, boxstyle=f"round,pad={pad},rounding_size={pad}",
                                      fc=PANEL, ec="#d5dbe1", lw=0.6, zorder=0))  # fmt: skip
        axes.text(x, y - 1.8 * pad, f"group {group}" if fits else f"{group}", ha="left",
                  va="bottom", fontsize=points, color=INK)  # fmt: skip
    if page.cell >= 0.13:
        for row in range(page.rows):
            for r in range(0, a, 1 if a <= 32 else 8):
                axes.text(-2.2 * pad, row * (a + page.gap_y) + r + 0.5, f"{r}", ha="right",
                          va="center", fontsize=min(7.5, page.cell * 40), color=GREY)  # fmt: skip


def _squares(axes: Any, corners: Floats, colours: Floats, inches: float) -> None:
    """Returns the gaps between cells; where there is no room for these, only between routers."""
    roomy = inches >= 0.1
    x, y = (0.05, 0.05) if roomy else (0.0, 0.07)
    square = np.array([(x, y), (1 - x, y), (1 - x, 1 - y), (x, 1 - y)])
    cells = corners[:, None] + square[None]
    axes.add_collection(
        PolyCollection(list(cells), facecolors=colours, edgecolors="none", antialiased=roomy,
                       zorder=1)
    )  # fmt: skip


def _mosaic(axes: Any, machine: Dragonfly, page: _Page, colours: Floats) -> None:
    p, a = machine.nodes, machine.routers
    panels = colours.reshape(machine.groups, a, p, 3)
    for (x, y), panel in zip(page.corners(machine), panels, strict=True):
        axes.imshow(panel, extent=(x, x + p, y + a, y), interpolation="nearest", aspect="auto",
                    zorder=1)  # fmt: skip


def _numbers(
    axes: Any, placed: Placement, page: _Page, holder: npt.NDArray[np.int64], colours: Floats
) -> None:
    """Write numbers into the cells, where these can be read."""
    by_job = _by_job(placed)
    largest = len(placed.jobs) if by_job else placed.machine.n_nodes - 1
    points = min(8.0, page.cell * 72 * 0.86 / (0.64 * len(str(largest))))
    if points < 4.2:
        return
    dark = colours @ (0.299, 0.587, 0.114) < 0.62
    for label, (x, y) in enumerate(page.cells(placed.machine)):
        who = holder[label]
        if by_job and who < 2:
            continue
        ink = "white" if dark[who] else GREY if who == 0 else INK
        axes.text(x + 0.5, y + 0.52, f"{who - 1 if by_job else label}", ha="center", va="center",
                  fontsize=points, color=ink, zorder=2)  # fmt: skip


def _by_job(placed: Placement) -> bool:
    return len(placed.jobs) > len(FEW)


def _title(figure: Figure, placed: Placement, page: _Page) -> None:
    machine, jobs = placed.machine, len(placed.jobs)
    high = page.size[1]
    name = f"{placed.policy.name}: {_plural(jobs, 'job')} on {_plural(machine.n_nodes, 'node')}"
    figure.text(0.5, 1 - 0.16 / high, name, ha="center", va="top", fontsize=16, fontweight="bold")
    words = (f"{_plural(machine.groups, 'group')} (panels)",
             f"{_plural(machine.routers, 'router')} a group (rows)",
             f"{_plural(machine.nodes, 'node')} a router (cells)",
             f"{placed.free:,} idle afterwards")  # fmt: skip
    figure.text(0.5, 1 - 0.53 / high, "   ·   ".join(words), ha="center", va="top", fontsize=9.5,
                color=GREY)  # fmt: skip


def _keys(placed: Placement, colours: Floats) -> Sequence[Patch]:
    machine = placed.machine
    keys = []
    jobs = placed.jobs if len(placed.jobs) <= MOST_KEYS else placed.jobs[: MOST_KEYS - 1]
    for position, labels in enumerate(jobs):
        groups = len(np.unique(labels // (machine.routers * machine.nodes)))
        routers = len(np.unique(labels // machine.nodes))
        where = _plural(groups, "group") if routers > 1 else "1 router"
        label = f"job {position + 1}: {_plural(len(labels), 'node')}, {where}"
        keys.append(Patch(color=colours[position + 2], label=label))
    if len(jobs) < len(placed.jobs):
        keys.append(Patch(fill=False, lw=0, label=f"and {len(placed.jobs) - len(jobs)} more jobs"))
    if placed.busy.any():
        keys.append(Patch(color=BUSY, label="busy before"))
    return [*keys, Patch(color=IDLE, label="idle")]


def _plural(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"
