"""The figures of single nodes and of configurations, after those of the thesis's chapter 3: lines
and bars are our models, crosses what its text prints."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from odonata.figures.style import BLUE, GREEN, GREY, INK, ORANGE, dress_small, panels_of
from odonata.provisioning.applications import BASE_GHZ, TURBO_GHZ, UNCAPPED_W
from odonata.provisioning.fitted import RZMERL, tables
from odonata.provisioning.search import PACKED_MAX, search
from odonata.studies.rmap.changes import Measured
from odonata.studies.rmap.printed import at

RED, PALE = "#c8321f", "#b9c7d8"
PACKAGE = {("SPhot", 4): 44.6, ("SPhot", 16): 82.1, ("BT-MZ", 4): 54.5, ("BT-MZ", 16): 105.7}
MEMORY = {("SPhot", 4): 4.9, ("SPhot", 16): 5.7}
"""Printed, in W, by application and cores of a node without a cap."""
FASTER = {"SP-MZ": 0.213, "SPhot": 0.171}
"""Printed: by how much they are faster at 85 W than at 51 W, with 16 cores."""
PRINTED_GHZ = {1: 3.3, 8: 3.0}
"""Printed: the frequency without a cap with one busy core of a package, and with all."""
FIGURE_3_6_W = 4500.0
CORES = (4, 8, 12, 16)
COLOURS = dict(zip(CORES, (GREEN, ORANGE, BLUE, RED), strict=True))
PRINT_MARK: dict[str, Any] = {"marker": "x", "ls": "", "color": INK, "ms": 6, "mew": 1.6}


def node(m: Measured) -> Figure | None:
    """Draw what packages and memory draw (3.1), times over the cap (3.2), and turbo (3.3)."""
    if "printed" not in m.asked.parts:
        return None
    figure, panels = panels_of(10.6, 3.7, 1, 3, left=0.055, right=0.99, top=0.86, bottom=0.15,
                               wspace=0.22, width_ratios=(1.5, 1.1, 0.8))  # fmt: skip
    left, middle, right = panels[0]
    names = [*RZMERL]
    for cores, shift in ((4, -0.21), (16, 0.21)):
        x = np.arange(len(names)) + shift
        drawn = [at(RZMERL[name], 1, cores, UNCAPPED_W) for name in names]
        package = np.array([float(it.package_w[0]) for it in drawn])
        memory = np.array([float(it.dram_w[0]) for it in drawn])
        left.bar(x, package, 0.38, color=PALE if cores == 4 else BLUE)
        left.bar(x, memory, 0.38, bottom=package, color=ORANGE)
        for at_x, name in zip(x, names, strict=True):
            if (name, cores) in PACKAGE:
                left.plot(at_x, PACKAGE[name, cores], **PRINT_MARK)
            if (name, cores) in MEMORY:
                left.plot(at_x, PACKAGE[name, cores] + MEMORY[name, cores], marker="_", ls="",
                          color=INK, ms=8, mew=1.4)  # fmt: skip
    left.set_xticks(np.arange(len(names)), names)
    left.axhline(UNCAPPED_W, color=GREY, lw=1, ls=(0, (4, 3)))
    left.set(ylabel="a socket (W)", ylim=(0, 162))
    left.legend(handles=[
        Patch(facecolor=PALE, label="package, 4 cores"),
        Patch(facecolor=BLUE, label="package, 16 cores"), Patch(facecolor=ORANGE, label="memory"),
        Line2D([], [], label="printed package", **PRINT_MARK),
        Line2D([], [], marker="_", ls="", color=INK, ms=8, mew=1.4, label="printed with memory"),
    ], loc="upper right", ncols=2, fontsize=6.5)  # fmt: skip
    left.set_title("3.1: one node, no cap", loc="left")
    caps = np.arange(51.0, 101.0, 1.0)
    for name, colour in (("SP-MZ", RED), ("SPhot", INK)):
        for cores, dashes in ((4, (0, (4, 2))), (16, "-")):
            most = float(at(RZMERL[name], 1, cores, caps[0]).seconds[0])
            times = [float(at(RZMERL[name], 1, cores, it).seconds[0]) / most for it in caps]
            middle.plot(caps, times, color=colour, ls=dashes, lw=1.6,
                        label=f"{name}, {cores} cores")  # fmt: skip
            turbo = float(at(RZMERL[name], 1, cores, UNCAPPED_W).seconds[0]) / most
            middle.plot(UNCAPPED_W, turbo, marker="o" if cores == 16 else "s", color=colour, ms=4.5)
        middle.plot(85, 1 / (1 + FASTER[name]), **{**PRINT_MARK, "color": colour})
    middle.set(xlabel="cap of a package (W); dots: none, turbo", ylabel="time, to that at 51 W",
               ylim=(0.45, 1.06))  # fmt: skip
    middle.legend(loc="lower left", fontsize=7)
    middle.set_title("3.2: × printed, 16 cores", loc="left")
    busy = np.arange(1, 9)
    ghz = [next(it for most, it in TURBO_GHZ.items() if cores <= most) for cores in busy]
    right.step(2 * busy, ghz, where="mid", color=BLUE, lw=1.6)
    right.axhline(BASE_GHZ, color=GREY, lw=1, ls=(0, (4, 3)))
    right.annotate("without turbo", (16, BASE_GHZ), (0, 3), ha="right", fontsize=7, color=GREY,
                   textcoords="offset points")  # fmt: skip
    for cores, value in PRINTED_GHZ.items():
        right.plot(2 * cores, value, **PRINT_MARK)
    right.set(xlabel="busy cores of a node", ylabel="GHz, no cap", ylim=(2.5, 3.4))
    right.set_title("3.3: × printed", loc="left")
    for axes in panels[0]:
        dress_small(axes)
    left.grid(axis="x", visible=False)
    return figure


def configurations(m: Measured) -> Figure | None:
    """Draw every configuration of SP-MZ within 4,500 W (3.6), and those of one node (3.7)."""
    if "printed" not in m.asked.parts:
        return None
    figure, panels = panels_of(10.6, 3.9, 1, 3, left=0.05, right=0.99, top=0.88, bottom=0.14,
                               wspace=0.24, width_ratios=(1.5, 1, 1))  # fmt: skip
    _all_within(panels[0, 0])
    for axes, name in ((panels[0, 1], "SPhot"), (panels[0, 2], "LU-MZ")):
        for cores in CORES:
            caps = np.array([51.0, 65.0, 80.0, 95.0, UNCAPPED_W])
            found = [at(RZMERL[name], 1, cores, it) for it in caps]
            watts = [2 * float((it.package_w + it.dram_w)[0]) for it in found]
            seconds = [float(it.seconds[0]) for it in found]
            axes.plot(watts, seconds, color=COLOURS[cores], marker="o", ms=4, lw=1.3,
                      label=f"{cores} cores")  # fmt: skip
        axes.set(xlabel="the node draws (W), under each cap", ylabel="time (s)", ylim=(0, None))
        axes.set_title(f"3.7: {name}, one node", loc="left")
        axes.legend(loc="upper right" if name == "SPhot" else "lower left", fontsize=7)
        dress_small(axes)
    return figure


def _all_within(axes: Any) -> None:
    """Draw the five numbers of each configuration as a line from axis to axis."""
    table = tables("rzmerl")["SP-MZ"]
    found = search(table, FIGURE_3_6_W)
    within = table.watts <= FIGURE_3_6_W
    columns = {"nodes": table.nodes, "cores": table.cores, "cap (W)": table.cap_w,
               "power (W)": table.watts, "time (s)": table.seconds}  # fmt: skip
    ends = {name: (float(it[within].min()), float(it[within].max()))
            for name, it in columns.items()}  # fmt: skip
    x = np.arange(len(columns))

    def places(values: Any) -> Any:
        return [(value - low) / (high - low)
                for value, (low, high) in zip(values, ends.values(), strict=True)]  # fmt: skip

    for point in np.flatnonzero(within):
        values = [float(it[point]) for it in columns.values()]
        axes.plot(x, places(values), color=GREY, lw=0.4, alpha=0.25)
    for which, colour, words in ((found.forms[PACKED_MAX], RED, "packed-max"),
                                 (found.best, BLUE, "the best")):  # fmt: skip
        if which is None:
            continue
        values = [which.nodes, which.cores, which.cap_w, which.watts, which.seconds]
        axes.plot(x, places(values), color=colour, lw=2.2, marker="o", ms=5,
                  label=f"{words}: {which.name}, {which.seconds:.1f} s")  # fmt: skip
    axes.set_xticks(x, columns)
    for at_x, (low, high) in enumerate(ends.values()):
        for place, value in ((0.0, low), (1.0, high)):
            axes.annotate(f"{value:,.0f}", (at_x, place), (0, 4 if place else -11), fontsize=7,
                          ha="center", textcoords="offset points")  # fmt: skip
        axes.axvline(at_x, color=INK, lw=0.7)
    axes.set(ylim=(-0.12, 1.32), yticks=[])
    axes.set_title(f"3.6: SP-MZ within {FIGURE_3_6_W:,.0f} W", loc="left")
    axes.legend(loc="upper center", fontsize=7.5)
    dress_small(axes)
    axes.grid(visible=False)
