"""The figures of the study, from what its store has; those that it has nothing for are left out.

A policy looks the same everywhere: Level-Spread is a green star, compact policies are warm
diamonds, spreading ones cool circles.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullFormatter, NullLocator

from odonata.figures.style import BLUE, GREY, INK, dress_small, panels_of
from odonata.studies.levelspread import cases
from odonata.studies.levelspread.claims import fraction
from odonata.studies.levelspread.measures import Measured, mean, means, quadrants, relative
from odonata.studies.levelspread.simulation import LARGE, SMALL, Point


class Look(NamedTuple):
    name: str
    colour: str
    mark: str
    size: float


LOOKS = {
    cases.LEVEL_SPREAD: Look("Level-Spread", "#159a4a", "*", 14),
    "simple": Look("Simple", "#c0271e", "D", 9),
    "slurm": Look("Slurm", "#ec7a1c", "D", 6.8),
    "rdg": Look("RDG", "#f2b705", "D", 4.8),  # the three often coincide: one within the other
    "rdr": Look("RDR", "#3d2f8f", "o", 7.5),
    "rrr": Look("RRR", "#2b6fc4", "o", 7.5),
    "rdn": Look("RDN", "#2fa9c7", "o", 7.5),
    "rrn": Look("RRN", "#8ecbe8", "o", 7.5),
    cases.JOKANOVIC: Look("Jokanovic", "#7d4a9e", "s", 6.5),
}
GREEN = LOOKS[cases.LEVEL_SPREAD].colour
TITLES = {"all-to-all": "All-to-all", "broadcast": "Broadcast", "fft3d": "FFT3d",
          "halo2d": "Halo2d", "halo3d": "Halo3d", "halo3d26": "Halo3d26"}  # fmt: skip
US = 1e6

Row = tuple[str, Mapping[str, Any]]
"""A row of a figure: its name, and where its cells are."""
BY_RATIO = [(f"ratio {fraction(ratio)}", {"ratio": ratio}) for ratio in cases.RATIOS]
BY_MACHINE = [(f"{cases.nodes_of(machine):,} nodes", {"machine": machine})
              for machine in cases.LARGER]  # fmt: skip
BY_MESSAGES = [(f"{row[0]} : {row[1]} KB", {"messages": row}) for row in cases.MESSAGES]
OF_QUARTERS = [(f"{cases.nodes_of(machine):,} nodes\nratio {fraction(ratio)}",
                {"nodes": nodes, "ratio": ratio, "machine": machine})
               for machine, nodes, ratio in cases.quarters()]  # fmt: skip


# -- bars


def figure_3_2(m: Measured) -> Figure | None:
    """Draw both workloads, both policies, every pattern."""
    workloads = ((False, "17 jobs of 16 nodes"), (True, "4 jobs of 68 nodes"))
    figure, panels = panels_of(9.2, 3.3, 1, 2, left=0.075, right=0.99, top=0.82, bottom=0.09,
                               wspace=0.16)  # fmt: skip
    there = 0
    for axes, (large, title) in zip(panels[0], workloads, strict=True):
        for i, policy in enumerate(("rdg", "rdn")):
            for x, pattern in enumerate(cases.PATTERNS):
                base = mean(m, cases.motivation(m.asked, large, pattern, "rdg"))
                values = means(m, cases.motivation(m.asked, large, pattern, policy), SMALL) / base
                if len(values):
                    there |= 1 << large
                    _bar(axes, x + 0.38 * (i - 0.5), 0.36, values, LOOKS[policy].colour)
        axes.set_xticks(range(len(cases.PATTERNS)), [TITLES[pattern] for pattern in cases.PATTERNS])
        axes.set_title(title, fontweight="bold")
        dress_small(axes, upright=False)
    panels[0, 0].set_ylabel("communication time\n(RDG = 1)")
    _legend(figure, ("rdg", "rdn"), bars=True, top=True)
    return figure if there == 3 else None


def _bars(m: Measured, rows: Sequence[Row], **where: Any) -> Figure | None:
    """Draw a row for each, a column for each pattern; Simple is 1."""
    rows = [(name, {**where, **own}) for name, own in rows]
    rows = _known(m, rows, cases.homogeneous)
    if not rows:
        return None
    figure, panels = _rows(rows)
    for (_, own), line in zip(rows, panels, strict=True):
        for pattern, axes in zip(cases.PATTERNS, line, strict=True):
            cells = partial(cases.homogeneous, m.asked, pattern=pattern, **own)
            base = mean(m, cells(policy="simple"))
            for x, policy in enumerate(cases.POLICIES):
                values = means(m, cells(policy=policy), SMALL) / base
                if len(values):
                    _bar(axes, x, 0.82, values, LOOKS[policy].colour)
            axes.axhline(1, color=GREY, lw=0.7, ls=(0, (4, 3)), zorder=1)
            axes.set_xticks([])
            axes.set_xlim(-0.7, len(cases.POLICIES) - 0.3)
            dress_small(axes)
        _from_zero(line)
    _label_y(figure, panels, "communication time (Simple = 1)")
    _legend(figure, cases.POLICIES, bars=True)
    return figure


def _bar(axes: Axes, x: float, width: float, values: Any, colour: str) -> None:
    axes.bar(x, values.mean(), width, color=colour, zorder=2)
    if len(values) > 1:
        axes.errorbar(x, values.mean(), values.std(ddof=1), color=INK, lw=0.9, capsize=2,
                      capthick=0.9, zorder=3)  # fmt: skip


# -- boxes


def _boxes(m: Measured, nodes: int) -> Figure | None:
    """Returns least, quartiles and most over all ports of a class; each the mean of the
    repetitions."""
    cells = {name: cases.homogeneous(m.asked, nodes, "all-to-all", 1.0, name)
             for name in cases.POLICIES}  # fmt: skip
    found = {name: [m.outcomes[point.key] for point in cell if point.key in m.outcomes]
             for name, cell in cells.items()}  # fmt: skip
    found = {name: some for name, some in found.items() if some}
    if not found:
        return None
    figure, panels = panels_of(9.2, 5.4, 2, 2, left=0.08, right=0.99, top=0.94, bottom=0.09,
                               wspace=0.17, hspace=0.28)  # fmt: skip
    kinds = (("packets", 1.0, "packets of a port"), ("waiting_ps", US, "waiting at a port (µs)"))
    for line, link in zip(panels, ("global", "local"), strict=True):
        for axes, (count, unit, label) in zip(line, kinds, strict=True):
            for x, (name, some) in enumerate(found.items()):
                five = np.mean([outcome.ports[link][count] for outcome in some], axis=0) / unit
                keys = ("whislo", "q1", "med", "q3", "whishi")
                _box(axes, x, dict(zip(keys, five, strict=True)), LOOKS[name].colour)
            axes.set_xticks(
                range(len(found)), [LOOKS[name].name.replace("-", "-\n") for name in found]
            )
            axes.set_xlim(-0.6, len(found) - 0.4)
            axes.set_ylim(0)
            axes.set_ylabel(label)
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
            dress_small(axes, upright=False)
        line[0].set_title(f"output ports to {link} links", loc="left", fontweight="bold")
    return figure


def _box(axes: Axes, x: float, box: dict[str, float], colour: str) -> None:
    line = {"color": INK, "lw": 0.9}
    axes.bxp([{**box, "fliers": []}], [x], widths=0.56, showfliers=False, patch_artist=True,
             boxprops={"facecolor": colour, "edgecolor": INK, "lw": 0.9}, whiskerprops=line,
             capprops=line, medianprops={"color": INK, "lw": 1.8}, manage_ticks=False)  # fmt: skip


# -- small jobs against large ones


def _against(m: Measured, rows: Sequence[Row]) -> Figure | None:
    """Draw a row for each, a column for each pattern; Simple is at (1, 1)."""
    rows = _known(m, rows, cases.heterogeneous)
    if not rows:
        return None
    figure, panels = _rows(rows, bottom=0.62)
    for (_, own), line in zip(rows, panels, strict=True):
        for pattern, axes in zip(cases.PATTERNS, line, strict=True):
            cells = partial(cases.heterogeneous, m.asked, pattern, **own)
            base = [mean(m, cells(policy="simple"), kind) for kind in (SMALL, LARGE)]
            for policy in (*cases.BASELINES, cases.LEVEL_SPREAD):
                x, y = (mean(m, cells(policy=policy), kind) / base[kind] for kind in (SMALL, LARGE))
                _dot(axes, policy, x, y)
            dress_small(axes)
        for which in "xy":
            _log_limits(line, which)
    _label_y(figure, panels, "communication time of large jobs (Simple = 1)")
    figure.text(0.5, 0.36 / figure.get_figheight(), "communication time of small jobs (Simple = 1)",
                ha="center", va="bottom")  # fmt: skip
    _legend(figure, cases.POLICIES)
    return figure


def _dot(axes: Axes, policy: str, x: float, y: float) -> None:
    look = LOOKS[policy]
    axes.plot([x], [y], look.mark, ms=look.size, color=look.colour, mec="white", mew=0.7,
              zorder=5 if policy == cases.LEVEL_SPREAD else 4, clip_on=False)  # fmt: skip


# -- random workloads


def figure_3_9(m: Measured) -> Figure | None:
    """Draw the workloads that were asked for; nothing where none of them was simulated."""
    if not np.isfinite(relative(m, [*cases.BASELINES, cases.JOKANOVIC])["simple"]).any():
        return None
    sizes: Counter[int] = Counter()
    for which in range(m.asked.workloads):
        for kind in cases.random_kinds(m.asked.seed, which):
            sizes[kind.nodes] += kind.count
    figure, panels = panels_of(6.2, 3.1, 1, 1, left=0.125, right=0.985, top=0.96, bottom=0.155)
    axes = panels[0, 0]
    axes.bar(list(sizes), list(sizes.values()), 0.9, color=BLUE, zorder=2)
    axes.set_yscale("log")
    axes.set_xlim(0, cases.nodes_of(cases.MACHINE) // 2 + 1)
    axes.set_xlabel("nodes of a job")
    axes.set_ylabel(f"jobs in {m.asked.workloads:,} workloads")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axes.xaxis.set_major_locator(FixedLocator([1, 17, 34, 68, 102, 136]))
    dress_small(axes, upright=False)
    return figure


def _cloud(m: Measured, names: Sequence[str], *, large_first: bool) -> Figure | None:
    """Draw every workload under every baseline; Level-Spread is at (1, 1)."""
    ratios = relative(m, names, large_first=large_first)
    share = quadrants(ratios)
    if share is None:
        return None
    figure, panels = panels_of(5.6, 5.4, 1, 1, left=0.125, right=0.975, top=0.925, bottom=0.1)
    axes = panels[0, 0]
    rows = [(i, x, y) for i, name in enumerate(names) for x, y in ratios[name] if np.isfinite(x)]
    which, x, y = np.array(rows).T
    mixed = np.random.default_rng(1).permutation(len(rows))  # or the last policy would hide others
    colours = np.array([LOOKS[name].colour for name in names])[which.astype(int)]
    for mark in sorted({LOOKS[name].mark for name in names}):
        own = [i for i in mixed if LOOKS[names[int(which[i])]].mark == mark]
        axes.scatter(x[own], y[own], s=11, marker=mark, c=colours[own], alpha=0.7, lw=0, zorder=2,
                     rasterized=True)  # fmt: skip
    for at in (axes.axhline, axes.axvline):
        at(1, color=GREEN, lw=1.3, ls=(0, (5, 3)), zorder=3)
    for which_axis in "xy":
        _log_limits([axes], which_axis)
    _dot(axes, cases.LEVEL_SPREAD, 1, 1)
    corners = ((0.97, 0.965, share.better), (0.03, 0.03, share.worse),
               (0.97, 0.03, share.small_only), (0.03, 0.965, share.large_only))  # fmt: skip
    for left, up, part in corners:
        axes.text(left, up, f"{100 * part:.0f} %", transform=axes.transAxes, color=BLUE,
                  fontsize=13, fontweight="bold", ha="right" if left > 0.5 else "left",
                  va="top" if up > 0.5 else "bottom", zorder=5,
                  bbox={"facecolor": "white", "alpha": 0.5, "lw": 0, "pad": 1.0})  # fmt: skip
    axes.set_xlabel("communication time of small jobs (Level-Spread = 1)")
    axes.set_ylabel("communication time of large jobs (Level-Spread = 1)")
    dress_small(axes)
    if share.ties > 0.005:
        axes.set_title(
            f"{100 * share.ties:.0f} % on a dashed line", loc="right", fontsize=8, color=GREY, pad=3
        )
    _legend(figure, (cases.LEVEL_SPREAD, *names), top=True)
    return figure


# -- how they look


def _rows(rows: Sequence[Row], bottom: float = 0.42) -> tuple[Figure, Any]:
    """Returns a panel for every pattern of every row, with names; `bottom` inches below them."""
    high = 0.3 + 1.62 * len(rows) + bottom
    figure, panels = panels_of(11, high, len(rows), len(cases.PATTERNS), left=0.075, right=0.955,
                               top=1 - 0.3 / high, bottom=(bottom + 0.18) / high, wspace=0.24,
                               hspace=0.26)  # fmt: skip
    for axes, pattern in zip(panels[0], cases.PATTERNS, strict=True):
        axes.set_title(TITLES[pattern], fontweight="bold")
    for (name, _), line in zip(rows, panels, strict=True):
        line[-1].text(1.06, 0.5, name, transform=line[-1].transAxes, rotation=270, va="center",
                      ha="left", fontweight="bold", linespacing=1.3)  # fmt: skip
    return figure, panels


def _label_y(figure: Figure, panels: Any, label: str) -> None:
    box = [axes.get_position() for axes in panels[:, 0]]
    figure.text(0.008, (box[0].y1 + box[-1].y0) / 2, label, rotation=90, ha="left", va="center")


def _known(m: Measured, rows: Sequence[Row], cells: Callable[..., tuple[Point, ...]]) -> list[Row]:
    """Returns the rows of which there is anything."""
    return [(name, own) for name, own in rows if any(m.of(point) for pattern in cases.PATTERNS
            for point in cells(m.asked, pattern=pattern, policy="simple", **own))]  # fmt: skip


def _from_zero(line: Sequence[Axes]) -> None:
    """Set the same limits for all."""
    high = max(axes.dataLim.y1 for axes in line if axes.has_data())
    for axes in line:
        axes.set_ylim(0, max(1.0, high) * 1.06)
        axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10], min_n_ticks=3))


def _log_limits(line: Sequence[Axes], which: str) -> None:
    """Set logarithmic axes, the same for all, with room around the values, and round ticks."""
    values = [np.asarray(getattr(axes.dataLim, f"interval{which}")) for axes in line]
    for axes in line:
        for collection in axes.collections:
            offsets = np.asarray(collection.get_offsets())
            values.append(offsets[:, 0 if which == "x" else 1])
    every = np.concatenate([value[np.isfinite(value) & (value > 0)] for value in values])
    low, high = min(0.9, float(every.min())), max(1.1, float(every.max()))
    room = (high / low) ** 0.08
    ticks = _ticks(low / room, high * room)
    for axes in line:
        axes.set(**{f"{which}scale": "log", f"{which}lim": (low / room, high * room)})
        axis = axes.xaxis if which == "x" else axes.yaxis
        axis.set_major_locator(FixedLocator(ticks))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
        axis.set_minor_locator(NullLocator())
        axis.set_minor_formatter(NullFormatter())


def _ticks(low: float, high: float) -> list[float]:
    """Returns three to five ticks, 1 among them."""
    for steps in ((1, 10), (1, 3, 10), (1, 2, 5), (1, 1.5, 2, 3, 5, 7), (0.6, 0.8, 1, 1.2, 1.5, 2),
                  (0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.4), (0.8, 0.9, 0.95, 1, 1.05, 1.1)):  # fmt: skip
        decades = (0.01, 0.1, 1, 10, 100) if steps[0] == 1 else (1,)
        ticks = sorted({step * decade for step in steps for decade in decades})
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) >= 3:
            break
    return ticks


def _legend(figure: Figure, names: Sequence[str], *, bars: bool = False, top: bool = False) -> None:
    looks = [LOOKS[name] for name in names]
    keys: list[Any] = [Patch(facecolor=look.colour, label=look.name) if bars
                       else Line2D([], [], ls="", marker=look.mark, ms=0.8 * look.size,
                                   color=look.colour, mec="white", mew=0.6, label=look.name)
                       for look in looks]  # fmt: skip
    where: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 0.004)}
    if top:
        where = {"loc": "upper center", "bbox_to_anchor": (0.53, 0.995)}
    figure.legend(handles=keys, ncols=len(keys), columnspacing=0.8, handletextpad=0.4,
                  handlelength=1.1, borderaxespad=0.2, **where)  # fmt: skip


FIGURES: dict[str, Callable[[Measured], Figure | None]] = {
    "3.2": figure_3_2,
    "3.4a": partial(_bars, rows=BY_RATIO, nodes=cases.SMALL_NODES),
    "3.4b": partial(_bars, rows=BY_RATIO, nodes=cases.LARGE_NODES),
    "quarters": partial(_bars, rows=OF_QUARTERS),
    "3.5": partial(_boxes, nodes=cases.SMALL_NODES),
    "3.6": partial(_boxes, nodes=cases.LARGE_NODES),
    "3.7a": partial(_against, rows=BY_RATIO),
    "3.7b": partial(_against, rows=BY_MACHINE),
    "3.8": partial(_against, rows=BY_MESSAGES),
    "3.9": figure_3_9,
    "3.10": partial(_cloud, names=cases.BASELINES, large_first=False),
    "3.11": partial(_cloud, names=cases.BASELINES, large_first=True),
    "3.12": partial(_cloud, names=(cases.JOKANOVIC,), large_first=False),
    "3.13": partial(_cloud, names=(cases.JOKANOVIC,), large_first=True),
}
