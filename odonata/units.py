"""Quantities with units, as users write them, to the integers we compute with, and back."""

from __future__ import annotations

import re
from decimal import Decimal

PICOSECONDS = {
    "ps": Decimal(1),
    "ns": Decimal(10**3),
    "us": Decimal(10**6),
    "µs": Decimal(10**6),
    "ms": Decimal(10**9),
    "s": Decimal(10**12),
}
LONGEST = 2**62
"""Picoseconds; half of what int64 holds, so that a sum of two times cannot overflow: 53 days."""

_QUANTITY = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([^\d\s]*)\s*")


def time_ps(text: str) -> int:
    """Picoseconds from '500ns', '1.5 us', '2e-3 s'. Raises ValueError saying what is accepted."""
    match = _QUANTITY.fullmatch(text)
    unit = match and PICOSECONDS.get(match[2].replace("μ", "µ"))
    if not match or unit is None:
        raise ValueError(f"{text!r} is not a time: a number and one of ps, ns, us, ms, s")
    try:
        exact = Decimal(match[1]) * unit
    except ArithmeticError:
        exact = Decimal("Infinity")
    if exact < 0:
        raise ValueError(f"{text!r}: a time is not negative")
    if exact > LONGEST:
        raise ValueError(f"{text!r}: the longest time is {show_time(LONGEST)}")
    if exact != exact.to_integral_value():
        raise ValueError(f"{text!r}: a time is a whole number of picoseconds")
    return int(exact)


def show_time(ps: int) -> str:
    """'1.5 us': exact, in the largest unit that is not above the time."""
    for unit in ("s", "ms", "us", "ns"):
        if ps >= PICOSECONDS[unit]:
            return f"{(Decimal(ps) / PICOSECONDS[unit]).normalize():f} {unit}"
    return f"{ps} ps"


def show_count(value: float) -> str:
    """'15.2 M': three figures and a prefix, for things that are counted."""
    for size, prefix in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:.3g}{prefix}"
    return f"{value:.3g}"
