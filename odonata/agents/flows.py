"""The flows of a network over time: what is generated, injected and delivered in each span.

From them `odonata.results.steadiness` tells whether a network had come to a steady state. Each
group counts by itself, in SPANS spans of equal length, 2**bits picoseconds; when time goes beyond
the last, neighbours are added up, so that there are half as many of twice the length. Memory does
not grow with the run, at least half of the spans are in use from the first nanosecond on, and what
all groups counted can be added up (`total`) whichever of them has come how far.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from odonata.agents.layout import FLOW, SPANS
from pdes.clock import LATEST
from pdes.events import Rows
from pdes.jit import kernel

FIRST_BITS = 10
"""Spans are of 2**10 ps, about a nanosecond, at first."""
LEVELS = LATEST.bit_length() - FIRST_BITS - SPANS.bit_length() + 2
"""The lengths that spans may have in a run of any length."""


def arrays(groups: int) -> dict[str, Any]:
    """Returns the arrays of `State` that are about flows, before anything has flowed."""
    return {
        "flows": np.zeros((groups, SPANS, len(FLOW)), np.int64),
        "span_bits": np.full(groups, FIRST_BITS, np.int64),
    }


@kernel
def span_at(state: Any, row: int, time: int) -> int:
    """Returns which span of a row of `State.flows` a time is in, which may be the latest so far, or
    before."""
    while time >> state.span_bits[row] >= SPANS:
        flows = state.flows[row]
        for i in range(SPANS // 2):
            for word in range(flows.shape[1]):
                flows[i, word] = flows[2 * i, word] + flows[2 * i + 1, word]
        flows[SPANS // 2 :] = 0
        state.span_bits[row] += 1
    return time >> state.span_bits[row]  # type: ignore[no-any-return]


def by_level(flows: Rows, span_bits: Rows) -> Rows:
    """Returns flows added up over groups whose spans are of equal length: by level (the logarithm
    of that length, from FIRST_BITS on), span and word. These may be added up over ranks."""
    found = np.zeros((LEVELS, SPANS, len(FLOW)), np.int64)
    np.add.at(found, span_bits - FIRST_BITS, flows)
    return found


def total(levels: Rows) -> tuple[Rows, int]:
    """Returns the flows of all groups by span and word, and the length of a span, in ps."""
    last = int(np.flatnonzero(levels.any(axis=(1, 2))).max(initial=0))
    found = levels[0]
    for level in range(1, last + 1):
        folded = np.zeros_like(found)
        folded[: SPANS // 2] = found[0::2] + found[1::2]
        found = folded + levels[level]
    return found, 1 << (last + FIRST_BITS)
