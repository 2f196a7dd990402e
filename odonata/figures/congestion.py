"""Congestion as an operator sees it: the stall-to-flit ratios of routers (those of
`odonata.results.operator_counters`), as a distribution and as a map of the machine.

In the map, a column is a group, a cell in it a router; electrical and optical tiles have a map
each. Where jobs ran, a strip at the right of a cell has a mark for each node, in the colour of its
job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection, QuadMesh
from matplotlib.colors import LinearSegmentedColormap, ListedColormap, LogNorm, to_rgb
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator, PercentFormatter

from odonata.figures.jobs import fullest
from odonata.figures.network import once
from odonata.figures.placement import FEW, IDLE, MOST_SQUARES, job_colours
from odonata.figures.style import (
    BLUE,
    DOT,
    FAINT,
    GREY,
    GROUP_TICKS,
    NO_CABLE,
    NOTHING,
    Floats,
    brief,
    cumulated,
    dress,
    keyed,
    say,
    thousands,
)
from odonata.results.derived import CLASSES
from odonata.results.operator_counters import MATERIALS

if TYPE_CHECKING:
    from odonata.results.run import Run
    from topology import Dragonfly

HEAT = LinearSegmentedColormap.from_list(
    "congestion", ["#fbe6b4", "#f6c46c", "#ee9440", "#d6522b", "#98211f", "#4a0d16"], N=48
)
"""From the least to the most of a panel; none at all is NOTHING. Colour bars of 50 steps and more
would be images, and those of two panels one and the same, with one name twice on a page."""
SPAN = 1000
"""How many times the least of a scale its most is, at most. What is less looks like the least."""
WIDTH = 12.0
"""The width of the figure, in inches."""
STRIP = 0.24
"""The part of a cell that has the marks of its nodes."""
MOST_MARKED = 10_000
"""The largest number of nodes that are marked: each is a shape on the page, in either panel."""
KEYS_PER_LINE = 7


def router_stalls(run: Run, axes: Axes) -> None:
    """Draw how the stall-to-flit ratios of routers in intervals are distributed."""
    counted = run.counters.stall_to_flit().reshape(-1)
    most = float(counted.max()) if len(counted) else 0.0
    if most <= 0:
        say(axes, "no stall in any sample")
        most = 1.0
    x, y = cumulated(counted) if len(counted) else (np.zeros(1), np.zeros(1))
    axes.step(x, y, where="post", lw=1.5, color=BLUE)
    axes.fill_between(x, y, step="post", color=BLUE, alpha=0.08, lw=0)
    axes.set_xlim(0, most * 1.2)
    axes.set_ylim(0, 1.015)
    for part, name in ((0.5, "median"), (0.99, "99 %")):
        if len(counted) and counted.max() > 0:
            value = float(np.quantile(counted, part, method="inverted_cdf"))
            axes.plot([value], [part], "o", ms=4.5, **DOT)
            axes.annotate(f"{name}: {value:.3g}", (value, part), (7, -10), fontsize=8,
                          textcoords="offset points")  # fmt: skip
    axes.yaxis.set_major_formatter(PercentFormatter(1))
    axes.set_ylabel("samples at or below")
    axes.set_xlabel("stall-to-flit ratio of a router (stalls a flit)")
    axes.set_title(f"{np.count_nonzero(counted):,} of {len(counted):,} samples have a stall",
                   loc="right", fontsize=8.5, color=GREY)  # fmt: skip
    dress(axes)


@once
def ratios(run: Run) -> dict[str, Floats]:
    """Returns the mean stall-to-flit ratio over the run by class and router, NaN for a router that
    has no tile of the class; without classes of which there are no tiles."""
    seen = run.counters
    found = {}
    for name in CLASSES:
        there = seen.of_class(name).any(axis=1)
        if there.any():
            by_router = seen.over_time(seen.stall_to_flit(classes=[name]))
            found[name] = np.where(there, by_router, np.nan)
    return found


def map_size(run: Run) -> tuple[float, float]:
    """Returns the size of the figure in inches: groups of many routers need height."""
    lines = -(-len(_keys(run)) // KEYS_PER_LINE)
    return WIDTH, panel_height(run.machine) + 0.9 + 0.26 * lines


def panel_height(machine: Dragonfly) -> float:
    """Returns the height of a panel, in inches."""
    return float(np.clip(0.075 * machine.routers, 2.4, 7.0))


def congestion_map(run: Run, axes: Axes) -> None:
    """Draw a map for each class of network tiles, in the place of these axes."""
    figure, place = axes.get_figure(), axes.get_subplotspec()
    assert figure is not None
    assert place is not None
    axes.set_axis_off()
    values = ratios(run)
    panels = place.subgridspec(1, max(1, len(values)))
    marks = _marks(run) if marked(run) else None
    for column, (name, of_routers) in enumerate(values.items()):
        panel = figure.add_subplot(panels[0, column])
        _heat(run.machine, panel, of_routers, f"{MATERIALS[name]} tiles ({name} links)")
        if marks is not None:
            strips(run.machine, panel, marks, WIDTH * 0.82 / len(values) / run.machine.groups)
    keys = _keys(run)
    if keys:
        figure.legend(handles=keys, loc="outside lower center", ncols=KEYS_PER_LINE,
                      handlelength=1.1, handleheight=1.1, columnspacing=1.8)  # fmt: skip


def _heat(machine: Dragonfly, axes: Axes, values: Floats, title: str) -> None:
    some = values[~np.isnan(values)]
    low, most = scale(some)
    picture = router_cells(machine, axes, values, (low, most))
    axes.set_title(title if some.any() else f"{title}: no stall counts")
    if some.any():
        below = bool(((some > 0) & (some < low)).any())
        colour_bar(picture, [axes], (low, most), below, "stalls per flit, mean over the run")


def router_cells(
    machine: Dragonfly, axes: Axes, values: Floats, ends: tuple[float, float]
) -> QuadMesh:
    """Draw a value for each router, NaN where there is none, on a logarithmic scale with these
    ends: a column is a group, a cell in it a router. 0 is NOTHING."""
    a, g = machine.routers, machine.groups
    cells = np.ma.masked_invalid(values.reshape(g, a).T)
    edges, fine = (np.arange(g + 1) - 0.5, np.arange(a + 1) - 0.5), g * a > MOST_SQUARES
    picture = axes.pcolormesh(*edges, cells, norm=LogNorm(*ends),  # it takes 0 for bad
                              cmap=HEAT.with_extremes(bad=NOTHING), rasterized=fine)  # fmt: skip
    absent = np.ma.getmaskarray(cells)
    if absent.any():
        axes.pcolormesh(*edges, np.ma.masked_equal(absent, 0), cmap=ListedColormap([NO_CABLE]),
                        rasterized=fine)  # fmt: skip
    axes.set_ylim(a - 0.5, -0.5)
    axes.set_xlabel("group")
    axes.set_ylabel("router of the group")
    axes.xaxis.set_major_locator(GROUP_TICKS())
    axes.yaxis.set_major_locator(GROUP_TICKS())
    axes.tick_params(length=2.5)
    for edge in np.arange(0.5, g - 1) if g <= 100 else ():
        axes.axvline(edge, color="white", lw=1.2 if g <= 40 else 0.5)
    for edge in np.arange(0.5, a - 1) if a <= 40 else ():
        axes.axhline(edge, color="white", lw=0.6)
    for spine in axes.spines.values():
        spine.set_color(FAINT)
    return picture


def colour_bar(
    picture: QuadMesh, panels: list[Axes], ends: tuple[float, float], below: bool, label: str
) -> None:
    """Draw the scale of `router_cells`, beside the panels that have it; `below` tells whether there
    is less than its lower end."""
    figure = panels[0].get_figure()
    assert figure is not None
    bar = figure.colorbar(picture, ax=panels, aspect=28, pad=0.02,
                          extend="min" if below else "neither")  # fmt: skip
    bar.set_label(label)
    bar.outline.set_visible(False)
    if bar.solids is not None:  # or thin lines would show between its steps
        bar.solids.set_edgecolor("face")
    bar.ax.yaxis.set_major_locator(FixedLocator(scale_ticks(*ends)))
    bar.ax.yaxis.set_minor_locator(NullLocator())
    bar.ax.yaxis.set_major_formatter(FuncFormatter(thousands))


def scale(values: Floats) -> tuple[float, float]:
    """Returns the ends of the logarithmic scale of these ratios: the least that is not 0 and the
    most, but no more than SPAN between them, and no less than 2, or routers that are much the same
    would look as if they were not."""
    some = values[values > 0]
    if not len(some):
        return 1 / SPAN, 1.0
    most = float(some.max())
    return min(max(float(some.min()), most / SPAN), most / 2), most


def scale_ticks(low: float, high: float) -> list[float]:
    """Returns round numbers, two to ten or so, for a scale of `scale`."""
    narrow = high < 10 * low
    steps = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8) if narrow else (1, 2, 5)
    decades = np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    each = (10.0 ** decades[:, None] * steps).reshape(-1)
    return [float(it) for it in each if low / (1 + 1e-9) <= it <= high * (1 + 1e-9)]


def marked(run: Run) -> bool:
    """Tells whether nodes are marked: there were jobs, and there are no more nodes than can be."""
    few = run.machine.n_nodes <= MOST_MARKED
    return few and bool(run.network.workload) and bool(fullest(run)[1])


def _marks(run: Run) -> Floats:
    """Returns a colour for each node, when the most jobs ran."""
    _, jobs = fullest(run)
    colours = np.tile(to_rgb(IDLE), (run.machine.n_nodes, 1))
    for it, colour in zip(jobs, job_colours(len(jobs)), strict=True):
        colours[list(it.labels)] = colour
    return colours


def strips(machine: Dragonfly, axes: Axes, colours: Any, wide: float, strip: float = STRIP) -> None:
    """Mark nodes at the right of the cell of their router, in a part of it: one above the other or,
    where cells are wider than high, side by side. `wide` is the width of a cell in inches."""
    p, a, g = machine.nodes, machine.routers, machine.groups
    stacked = wide < panel_height(machine) / a
    rows, columns = (p, 1) if stacked else (1, p)
    node = np.arange(p)
    x = 0.5 - strip + (node // rows) * strip / columns
    y = -0.5 + (node % rows) / rows
    size = np.array([strip / columns, 1 / rows])
    group, router = np.divmod(np.arange(g * a), a)
    corners = np.stack([group[:, None] + x, router[:, None] + y], axis=2).reshape(-1, 1, 2)
    shape = np.array([(0, 0), (1, 0), (1, 1), (0, 1)]) * size
    axes.add_collection(PolyCollection(list(corners + shape), facecolors=colours, lw=0.3,
                                       edgecolors="white" if a * p <= 200 else "none"))  # fmt: skip


def _keys(run: Run) -> list[Patch]:
    """Returns the legend: the jobs that are marked, as far as colours can be told apart."""
    if not marked(run):
        return []
    _, jobs = fullest(run)
    some = jobs if len(jobs) <= len(FEW) else jobs[: len(FEW) - 1]
    keys = [Patch(color=colour, label=keyed(brief(it.name)))
            for it, colour in zip(some, job_colours(len(jobs)), strict=False)]  # fmt: skip
    if len(some) < len(jobs):
        keys.append(Patch(fill=False, lw=0, label=f"and {len(jobs) - len(some):,} more jobs"))
    return [*keys, Patch(color=IDLE, label="idle node")]
