"""What the scheduler saw: for some jobs, a map of the traffic that had been reported when the job
was placed, with the routers and nodes that it was given.

A column is a group, a cell in it a router; a strip at the right of a cell has a mark for each node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import FigureBase
from matplotlib.patches import Patch

from odonata.figures.congestion import (
    MOST_MARKED,
    WIDTH,
    colour_bar,
    panel_height,
    router_cells,
    scale,
    strips,
)
from odonata.figures.style import BLUE, FAINT, NOTHING, Floats, brief
from odonata.results.seen import (
    Quantity,
    Seen,
    Words,
    kind,
    longest,
    placed,
    policy_of,
    quantity,
    reads,
    unseen,
)
from policies.allocation import ALLOCATIONS

if TYPE_CHECKING:
    from odonata.results.run import Run
    from topology import Dragonfly

MOST = 6
"""The largest number of jobs that have a map."""
STRIP = 0.42
"""The part of a cell that has the marks of its nodes."""
HEIGHT = 1.4
"""How many times as high as a congestion map a map is: marks of nodes need room."""
BUSY, FREE = "#5c6770", "#e9edf1"


def size(run: Run) -> tuple[float, float]:
    """Returns the size of the figure in inches."""
    rows, _ = _grid(run)
    return WIDTH, rows * (HEIGHT * panel_height(run.machine) + 1.1) + 0.4


def _grid(run: Run) -> tuple[int, int]:
    """Returns the rows and columns of maps."""
    count = len(placed(run)[:MOST])
    columns = min(count, 2 if count == 4 else 3)
    return -(-count // columns), columns


def seen_maps(run: Run, axes: Axes) -> None:
    """Draw the maps, in the place of these axes."""
    figure, place = axes.get_figure(), axes.get_subplotspec()
    assert figure is not None
    assert place is not None
    axes.set_axis_off()
    some, (rows, columns) = placed(run)[:MOST], _grid(run)
    by = quantity(run)
    shown = [by.of(job) / by.unit for job in some]
    every = np.concatenate(shown)
    ends = scale(every)
    grid = place.subgridspec(rows, columns)
    panels = []
    for number, (job, values) in enumerate(zip(some, shown, strict=True)):
        panel = figure.add_subplot(grid[number // columns, number % columns])
        picture = router_cells(run.machine, panel, values, ends)
        _mark(
            run.machine, panel, job, values, WIDTH * 0.8 / columns / run.machine.groups, len(some)
        )
        _name(panel, job, by)
        panels.append(panel)
    if every.any():
        below = bool(((every > 0) & (every < ends[0])).any())
        colour_bar(picture, panels, ends, below, by.bar)
    _legend(figure, run.machine.n_nodes * len(some) <= MOST_MARKED, by.name)


def _name(panel: Axes, job: Seen, by: Quantity) -> None:
    mine, every = map(by.show, job.means(by.of(job)))
    panel.set_title(f"{brief(job.record.name, 24)}: {kind(job)}", fontweight="bold")
    panel.set_xlabel(
        f"group\ncounters {job.age_ps / 1e6:,.1f} us old; mean {by.name} of a router:\n"
        f"{mine} where the job is, {every} where nodes were idle", fontsize=7.8,
    )  # fmt: skip


def _mark(
    machine: Dragonfly, panel: Axes, job: Seen, values: Floats, wide: float, panels: int
) -> None:  # fmt: skip
    """Outline the routers of a job and, where there are not too many nodes, mark these, and outline
    the white cells of routers that have nothing to show."""
    if machine.n_nodes * panels <= MOST_MARKED:
        strips(machine, panel, _colours(job), wide, STRIP)
        _outline(machine, panel, np.flatnonzero(values == 0), FAINT, 0.5)
    _outline(machine, panel, job.routers, BLUE, 1.4)


def _outline(machine: Dragonfly, panel: Axes, routers: Words, colour: str, lw: float) -> None:
    group, router = np.divmod(routers, machine.routers)
    corners = np.stack([group, router], axis=1)[:, None]
    cell = np.array([(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)])
    panel.add_collection(PolyCollection(list(corners + cell), facecolors="none", edgecolors=colour,
                                        lw=lw, zorder=4))  # fmt: skip


def _colours(job: Seen) -> Floats:
    """Returns a colour for each node: of the job, busy before, or idle."""
    colours = np.where(job.idle[:, None], to_rgb(FREE), to_rgb(BUSY))
    colours[list(job.record.labels)] = to_rgb(BLUE)
    return colours


def _legend(figure: FigureBase, marked: bool, what: str) -> None:
    keys = [Patch(fill=False, ec=BLUE, lw=1.4, label="router of the job")]
    if marked:
        keys += [Patch(color=BLUE, label="node of the job"), Patch(color=BUSY, label="busy node"),
                 Patch(color=FREE, label="idle node")]  # fmt: skip
    keys.append(Patch(fc=NOTHING, ec=FAINT, label=f"router without {what}"))
    figure.legend(handles=keys, loc="outside lower center", ncols=len(keys), handlelength=1.1,
                  handleheight=1.1, columnspacing=1.8)  # type: ignore[call-arg]  # fmt: skip


def caption(run: Run) -> str:
    """Returns how to read the maps, and by which rule the jobs were placed."""
    found = placed(run)
    name = policy_of(run)
    rule = f" ({ALLOCATIONS.named(name).about})" if name in ALLOCATIONS else ""
    blind = ALLOCATIONS.known(name) and not reads(run)
    more = len(found) - MOST
    return (
        f"Where jobs were placed, and what the scheduler knew of the network at that moment: for "
        f"each router, {quantity(run).about}, in the last {longest(found)} that were "
        f"reported. A column is a group, a cell a router; the "
        f"strip at its right has a mark for each node. All maps have one scale, a logarithmic one. "
        f"Jobs that congestion slows down come first, each in order of their starts; a job whose "
        f"user named its nodes has no map. The allocation policy {name}{rule} chose among the "
        f"routers that had idle nodes{', without a look at the counters' * blind}.{unseen(run)}"
        + (f" {more:,} more jobs are in the table." if more > 0 else "")
    )  # fmt: skip


def missing(run: Run) -> str:
    """Returns why there are no maps, or an empty text."""
    if placed(run):
        return ""
    return f"No job was placed after the first report had reached the scheduler.{unseen(run)}"
