"""Which part of their time jobs of a type compute, as their scheduler finds out from what nodes
drew: a node whose job waits for the network draws less than one whose job computes.
docs/together.md says exactly what is concluded from a reading.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from policies.power import floor as f

TOLD = 0.01
"""A reading tells nothing where waiting draws less than computing by no more than this part."""


def conclude(dealings: Any, kind: int, node_w: float, node_ticks: float, before: float) -> None:
    """Count what a reading says of the jobs of a type: of a job whose nodes drew `node_w` each, for
    so much node time in all. In the part `before` of it the cap was in force that the type had
    before the last decision, and then that of this decision."""
    of, parts = dealings.kinds[kind], np.array([before, 1.0 - before])
    ratios = of[[f.BEFORE, f.RATIO]]
    most, low = of[f.MOST_W], of[f.LOW_W]
    watts = low + ratios * (most - low)
    paces = 1.0 + (of[f.SLOWDOWN] - 1.0) * (1.0 - ratios) if most > low else np.ones(2)
    computes_w, pace = float(parts @ watts), float(parts @ paces)
    waits_w = float(parts @ np.minimum(dealings.sums[f.WAITS_W], watts))
    if not computes_w - waits_w > TOLD * computes_w:
        return
    computed = min(1.0, max(0.0, (node_w - waits_w) / (computes_w - waits_w)))
    of[f.WORKED] += computed * node_ticks / pace
    of[f.WAITED] += (1.0 - computed) * node_ticks
