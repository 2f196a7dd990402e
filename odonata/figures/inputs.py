"""Figures of what waits inside of routers, where these have crossbars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from odonata.figures.network import span_ps
from odonata.figures.style import BLUE, ORANGE, PURPLE, dress, legend_above
from odonata.results.derived import input_counters
from odonata.results.input_waits import CAUSES, input_waits

if TYPE_CHECKING:
    from odonata.results.run import Run

COLOURS = dict(zip(CAUSES.values(), (BLUE, ORANGE, PURPLE), strict=True))


def causes(run: Run, axes: Axes) -> None:
    """Draw what first packets waited for, by class of their input."""
    found = input_waits(run.network, input_counters(run), span_ps(run)).by_class
    left = np.zeros(len(found))
    for cause, colour in COLOURS.items():
        parts = np.array([some[cause] for some in found.values()])
        axes.barh(range(len(found)), parts, left=left, height=0.6, color=colour, label=cause)
        left += parts
    axes.set_yticks(range(len(found)), [*found])
    axes.invert_yaxis()
    axes.set_xlim(0, max(0.01, 1.05 * float(left.max())))
    axes.set_xlabel("first packets that wait, mean per input")
    axes.set_ylabel("input port")
    dress(axes)
    legend_above(axes, ncols=3)


def longest(run: Run, axes: Axes) -> None:
    """Draw the longest wait for the crossbar by input port: over all routers, and the median."""
    waits: Any = input_counters(run)[:, :, -1] / 1e6
    port = np.arange(waits.shape[1])
    axes.bar(port, waits.max(axis=0), width=0.8, color=BLUE, label="worst router")
    axes.plot(port, np.median(waits, axis=0), ls="", marker="_", ms=max(4, 160 / len(port)), mew=2,
              color=ORANGE, label="median router")  # fmt: skip
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlim(-0.6, len(port) - 0.4)
    axes.set_ylim(0, max(1e-6, 1.05 * float(waits.max())))
    m = run.network.machine
    nodes, local = m.nodes, m.nodes + m.routers - 1
    axes.set_xlabel(
        f"input port (0 .. {nodes - 1}: from nodes, then local, from {local} on: global)"
    )
    axes.set_ylabel("longest wait for the crossbar (us)")
    dress(axes)
    legend_above(axes, ncols=2)
