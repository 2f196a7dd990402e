"""The units in which a model may count time, and the latest time there is.

A model counts time in **ticks** (`Model.tick`), int64. This module imports nothing, so that what
only reads times need not load the engine.
"""

from __future__ import annotations

TICKS = {"ps": 1, "ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}
"""Picoseconds in a tick, by the unit that a model names."""

LATEST = 2**62
"""The latest time, in ticks: half of what int64 holds, so that a delay beyond it does not overflow.
53 days in picoseconds, 146,000 years in microseconds."""


def show_ticks(ticks: int, tick: str) -> str:
    """Returns a time as '90 ns': exact, in the largest unit that is not above the time."""
    ps = ticks * TICKS[tick]
    unit = max((unit for unit in TICKS if TICKS[unit] <= ps), key=TICKS.__getitem__, default=tick)
    whole, rest = divmod(ps, TICKS[unit])
    digits = f"{rest:0{len(str(TICKS[unit])) - 1}d}".rstrip("0") if rest else ""
    return f"{whole:,}{'.' * bool(digits)}{digits} {unit}"
