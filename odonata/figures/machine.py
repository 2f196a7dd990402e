"""A machine as a picture: its groups in a circle, their routers, and the cables between them.

Group 0 is at the top. Its cables have the colour of the router they leave from, those of all
other groups are faint. Where a group is too small on the page to be legible, it is a disc, cables
between two groups become one line, and group 0 is drawn in full beside the machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.collections import EllipseCollection, LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from odonata.figures.style import FAINT, INK, Floats, canvas, check_name
from topology import Dragonfly

MOST_GROUPS, MOST_ROUTERS = 40, 1500
"""The largest number of routers of a machine that is drawn router by router."""
LARGEST_RING = 24
"""The largest number of routers of a group that are legible without a panel of their own."""
MOST_LINES, MOST_COPIES, MOST_CHORDS = 6000, 6, 60_000
"""The largest numbers of faint lines, of cables between two groups that are drawn separately, and
of local cables."""
OWN, LOCAL, NODE = "#d1495b", "#7d93a8", "#9fb1c1"


def draw(machine: Dragonfly, path: Path) -> None:
    """Refuse a name that does not end in one of FORMATS."""
    check_name(path)
    bundled = machine.groups > MOST_GROUPS or machine.n_routers > MOST_ROUTERS
    panel = bundled or machine.routers > LARGEST_RING
    with mpl.rc_context({"font.family": "DejaVu Sans", "svg.hashsalt": "odonata"}):
        figure = canvas((17, 10.4) if panel else (10, 10.8), None)
        width = 10 / 17 if panel else 1.0
        whole = _axes(figure, (0.0, 0.07, width, 0.85))
        legend = _bundles(whole, machine) if bundled else _routers(whole, machine)
        if panel:
            side = _axes(figure, (width, 0.09, 0.97 - width, 0.79))
            _group(side, machine)
        _title(figure, machine)
        figure.legend(handles=legend, loc="lower center", ncols=len(legend), frameon=False,
                      fontsize=10, labelcolor=INK, handlelength=2.2, columnspacing=2.4,
                      bbox_to_anchor=(0.5, 0.015))  # fmt: skip
        figure.savefig(path, dpi=150)


def _routers(axes: Any, machine: Dragonfly) -> list[Line2D]:
    """Draw every router, local cable and global cable; and the nodes, where there is room."""
    a, p, g = machine.routers, machine.nodes, machine.groups
    centres, radius = _circle(g), _room(g)
    ring = radius * (0.62 if a * p <= 200 else 0.84)
    spots = _rings(machine, centres, ring)
    colours = _colours(a)
    few = a * p <= 200
    if few:
        _nodes(axes, machine, centres, spots, ring, radius, 2600 / max(900, machine.n_nodes))
    chords = spots[:, _pairs(a, MOST_CHORDS // g)].reshape(-1, 2, 2)
    _lines(axes, chords, LOCAL, 0.7 if a <= LARGEST_RING else 0.12, 0.75 if a <= 16 else 0.35, 1)
    cables = machine.global_cables()
    if len(cables):
        h = machine.global_links
        ends = spots[cables[:, 0], cables[:, 1] // h], spots[cables[:, 2], cables[:, 3] // h]
        ours = cables[:, 0] == 0
        faint = np.flatnonzero(~ours)
        _lines(axes, _bend(ends[0][faint], ends[1][faint]), FAINT, 0.55,
               float(np.clip(500 / (1 + len(faint)), 0.12, 0.7)), 0)  # fmt: skip
        _lines(axes, _bend(ends[0][ours], ends[1][ours]), colours[cables[ours, 1] // h],
               1.5 if ours.sum() < 100 else 0.45, 0.95 if ours.sum() < 100 else 0.6, 3)  # fmt: skip
    size = float(np.clip((ring * 560 / max(a, 6)) ** 2 * 0.55, 1.5, 110))
    flat = spots.reshape(-1, 2)
    axes.scatter(*flat[a:].T, s=size, c=INK, lw=0, zorder=4)
    axes.scatter(*flat[:a].T, s=size * 1.35, c=colours, lw=0, zorder=5)
    _labels(axes, centres, radius, g)
    dots = [_key(NODE, "node", 5)] if few else []
    return [_key(INK, "router", 8), *dots, Line2D([], [], color=LOCAL, lw=1.2, label="local cable"),
            Line2D([], [], color=FAINT, lw=1.2, label="global cable"),
            Line2D([], [], color=colours[0], lw=2,
                   label="global cable of group 0, in the colour of its router")]  # fmt: skip


def _bundles(axes: Any, machine: Dragonfly) -> list[Line2D]:
    """Draw groups as discs, and all cables of two groups as one line."""
    g = machine.groups
    centres = _circle(g)
    size = min(0.06, _room(g) * 0.85)
    i, j = np.triu_indices(g, 1)
    others = np.flatnonzero(i > 0)
    if len(others) > MOST_LINES:
        others = others[:: -(-len(others) // MOST_LINES)]
    _lines(axes, _bend(centres[i[others]], centres[j[others]]), FAINT, 0.5,
           float(np.clip(500 / max(1, len(others)), 0.10, 0.5)), 0)  # fmt: skip
    copies = min(machine.copies, MOST_COPIES)
    holder = machine.gates()[0, 1:, :copies] // machine.global_links
    colours = _colours(machine.routers)
    there = np.repeat(centres[1:], copies, 0)
    lean = np.tile(0.09 * (np.arange(copies) - (copies - 1) / 2), g - 1)
    ours = _bend(np.broadcast_to(centres[:1], there.shape), there, lean)
    many = len(ours) > 200
    _lines(axes, ours, colours[holder.ravel()], 0.6 if many else 1.2, 0.65 if many else 0.9, 2)
    discs = {"units": "xy", "transOffset": axes.transData, "angles": 0, "lw": 0, "zorder": 4}
    wide = [2 * size] * (g - 1)
    axes.add_collection(EllipseCollection(wide, wide, offsets=centres[1:], facecolors=INK, **discs))
    own = max(size * 1.3, 0.018)
    axes.add_collection(EllipseCollection([2 * own], [2 * own], offsets=centres[:1],
                                          facecolors=OWN, **discs))  # fmt: skip
    _labels(axes, centres, max(size, 0.02), g)
    every = (g - 1) * (g - 2) // 2
    shown = f", {len(others):,} of {every:,} shown" if len(others) < every else ""
    k = machine.copies
    ours_shown = f", {copies} of {k} a pair shown" if copies < k else ""
    return [_key(INK, "group", 8), _key(OWN, "group 0, in full on the right", 8),
            Line2D([], [], color=FAINT, lw=1.2,
                   label=f"{'all global cables' if k > 1 else 'the global cable'} "
                         f"of two groups{shown}"),
            Line2D([], [], color=colours[0], lw=2,
                   label=f"cable of group 0, in the colour of its router{ours_shown}")]  # fmt: skip


def _group(axes: Any, machine: Dragonfly) -> None:
    """Draw group 0 alone: nodes within their routers' spokes, and where its global cables begin."""
    a, h = machine.routers, machine.global_links
    centre = np.zeros((1, 2))
    ring = 0.62
    spots = _rings(machine, centre, ring)[0]
    colours = _colours(a)
    out = spots / ring
    chords = _pairs(a, MOST_CHORDS // 5)
    _lines(
        axes,
        spots[chords],
        LOCAL,
        0.35 if a > 40 else 0.5,
        0.22 if a > 40 else 0.5,
        0,
    )
    side = out[:, ::-1] * (1, -1)
    lit = (machine.far()[0] >= 0).reshape(a, h) if h else np.zeros((a, 0), bool)
    fan = (np.arange(h) - (h - 1) / 2) / max(h, 2) * 2 * np.pi * ring / a * 0.75
    tips = out[:, None] * 0.99 + side[:, None] * fan[None, :, None] * 1.6
    roots = np.broadcast_to((out * 0.80)[:, None], tips.shape) + side[:, None] * fan[None, :, None]
    begun = np.stack([roots, tips], 2)
    colour = np.repeat(colours[:, None], h, 1)
    _lines(axes, begun[lit], colour[lit], 1.0 if a <= 40 else 0.35, 0.95, 2)
    _lines(axes, begun[~lit], "#d8dde2", 0.8 if a <= 40 else 0.5, 0.9, 1)
    p = machine.nodes
    rows = max(1, int(np.ceil(np.sqrt(p))))
    column, row = np.divmod(np.arange(p), rows)
    columns = int(column.max()) + 1
    step = min(0.14 / rows, 2 * np.pi * ring / a * 0.8 / columns)
    at = out[:, None] * (ring + 0.035 + row * step)[None, :, None] \
        + side[:, None] * ((column - (columns - 1) / 2) * step)[None, :, None]  # fmt: skip
    dot = float(np.clip((step * 300) ** 2 * 0.35, 0.8, 26))
    axes.scatter(*at.reshape(-1, 2).T, s=dot, c=NODE, lw=0, zorder=2)
    axes.scatter(
        *spots.T, s=float(np.clip((ring * 560 / a) ** 2, 10, 140)), c=colours, lw=0, zorder=4
    )
    every = 1 if a <= 40 else 8
    for r in range(0, a, every):
        axes.text(*(out[r] * (ring - 0.055)), str(r), ha="center", va="center", fontsize=8,
                  color=INK, zorder=5, bbox={"boxstyle": "round,pad=0.15", "fc": "white",
                                             "ec": "none", "alpha": 0.8})  # fmt: skip
    thinned = f" ({len(chords):,} drawn)" if len(chords) < a * (a - 1) // 2 else ""
    dark = f", {machine.dark:,} of them dark (grey)" if machine.dark else ""
    axes.set_title(f"group 0 in full: {a} routers, {a * p:,} nodes (dots), "
                   f"{a * (a - 1) // 2:,} local cables{thinned},\n{a * h:,} global ports{dark}",
                   fontsize=11, color=INK)  # fmt: skip


def _title(figure: Figure, machine: Dragonfly) -> None:
    figure.text(0.5, 0.975, f"Dragonfly of {machine.n_nodes:,} nodes", ha="center", va="top",
                fontsize=19, fontweight="bold", color=INK)  # fmt: skip
    k = machine.copies
    words = (f"p = {machine.nodes} nodes a router", f"a = {machine.routers} routers a group",
             f"h = {machine.global_links} global links a router", f"g = {machine.groups} groups",
             f"{machine.cabling} cabling, {k} cable{'s' * (k != 1)} a pair")  # fmt: skip
    figure.text(0.5, 0.938, "   ·   ".join(words), ha="center", va="top", fontsize=10.5, color=INK)


def _axes(figure: Figure, place: tuple[float, float, float, float]) -> Any:
    axes = figure.add_axes(place)
    axes.set_aspect("equal")
    axes.set_xlim(-1.06, 1.06)
    axes.set_ylim(-1.06, 1.06)
    axes.axis("off")
    return axes


def _circle(groups: int) -> Floats:
    """Returns the centres of the groups: group 0 at the top, and clockwise; the discs of `_room`
    just fit into the unit circle."""
    if groups == 1:
        return np.zeros((1, 2))
    turn = np.pi / 2 - 2 * np.pi * np.arange(groups) / groups
    return (0.98 - _room(groups)) * np.stack([np.cos(turn), np.sin(turn)], 1)


def _room(groups: int) -> float:
    """Returns the radius of a disc that leaves a small gap between neighbours."""
    if groups == 1:
        return 0.9
    reach = 0.9 * np.sin(np.pi / groups)
    return float(0.98 * reach / (1 + reach))


def _rings(machine: Dragonfly, centres: Floats, ring: float) -> Floats:
    """Returns [groups, a, 2]: router 0 of a group points away from the centre of the machine."""
    start = np.arctan2(centres[:, 1], centres[:, 0]) if len(centres) > 1 else np.array([np.pi / 2])
    turn = start[:, None] - 2 * np.pi * np.arange(machine.routers) / machine.routers
    size = ring if machine.routers > 1 else 0.0
    return centres[:, None] + size * np.stack([np.cos(turn), np.sin(turn)], 2)


def _nodes(axes: Any, machine: Dragonfly, centres: Floats, spots: Floats, ring: float,
           radius: float, scale: float) -> None:  # fmt: skip
    """Draw nodes as dots on an outer arc, each joined to its router."""
    p, a = machine.nodes, machine.routers
    arms = spots - centres[:, None]
    heading = np.arctan2(arms[..., 1], arms[..., 0])
    fan = (np.arange(p) - (p - 1) / 2) * 2 * np.pi / (a * p) * (0.8 if a > 1 else 1)
    turn = heading[..., None] + fan
    at = centres[:, None, None] + radius * 0.92 * np.stack([np.cos(turn), np.sin(turn)], 3)
    root = np.broadcast_to(spots[:, :, None], at.shape)
    _lines(axes, np.stack([root, at], 3).reshape(-1, 2, 2), NODE, 0.5 * min(1.5, scale), 0.8, 1)
    dot = float(np.clip((radius * 500 / max(8, a * p)) ** 2 * 1.1, 1.2, 40))
    axes.scatter(*at.reshape(-1, 2).T, s=dot, c=NODE, lw=0, zorder=2)


def _pairs(routers: int, most: int) -> npt.NDArray[np.int64]:
    """Returns the local cables of a group; thinned out evenly where they are too many to be
    distinguished."""
    pairs = np.stack(np.triu_indices(routers, 1), 1)
    return pairs[:: max(1, -(-len(pairs) // most))]


def _bend(start: Floats, end: Floats, lean: float | Floats = 0.0) -> Floats:
    """Returns curves that lean towards the centre, the more the further they go; `lean` separates
    parallel ones."""
    apart = np.hypot(*(end - start).T) / 2
    control = (start + end) / 2 * (1 - 0.75 * np.minimum(1, 1.4 * apart) + lean)[:, None]
    t = np.linspace(0, 1, 22)[None, :, None]
    curves: Floats = (1 - t) ** 2 * start[:, None] + t**2 * end[:, None]
    curves += 2 * t * (1 - t) * control[:, None]
    return curves


def _lines(axes: Any, lines: Floats, colour: Any, width: float, alpha: float, layer: int) -> None:
    if len(lines):
        axes.add_collection(
            LineCollection(list(lines), colors=colour, linewidths=width, alpha=alpha, zorder=layer)
        )


def _colours(routers: int) -> npt.NDArray[Any]:
    """Returns a colour per router: distinct where they are few, else around the colour wheel."""
    if routers <= 8:
        few = [
            "#d1495b",
            "#00798c",
            "#edae49",
            "#30638e",
            "#7b4fa3",
            "#3a9d5d",
            "#e07a2f",
            "#c2529b",
        ]
        return np.array([mpl.colors.to_rgba(colour) for colour in few[:routers]])
    return np.asarray(mpl.colormaps["turbo"](np.linspace(0.04, 0.96, routers)))


def _labels(axes: Any, centres: Floats, radius: float, groups: int) -> None:
    if groups == 1:
        return
    every = 1 if groups <= 80 else -(-groups // 48)
    for group in range(0, groups, every):
        place = centres[group] * (1 + (radius + 0.03) / np.hypot(*centres[group]))
        axes.text(*place, str(group), ha="center", va="center", color=INK,
                  fontsize=10 if groups <= 40 else 7.5,
                  fontweight="bold" if group == 0 else "normal")  # fmt: skip


def _key(colour: str, label: str, size: float) -> Line2D:
    return Line2D([], [], color=colour, marker="o", ls="", ms=size, label=label)
