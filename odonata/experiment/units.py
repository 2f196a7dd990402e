"""Quantities with units, as users write them, to the integers we compute with, and back."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

from pdes.clock import LATEST

PICOSECONDS = {
    "ps": Decimal(1),
    "ns": Decimal(10**3),
    "us": Decimal(10**6),
    "µs": Decimal(10**6),
    "ms": Decimal(10**9),
    "s": Decimal(10**12),
    "min": Decimal(60 * 10**12),
    "h": Decimal(3600 * 10**12),
    "d": Decimal(86400 * 10**12),
}
LONGEST = LATEST
"""The largest time in ps: half of what int64 holds, so that a sum of two times cannot overflow: 53
days."""

LONGEST_US = 1000 * 365 * 86400 * 10**6
ACCEPTED_TIMES = "ps, ns, us, ms, s, min, h, d"

_QUANTITY = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([^\d\s]*)\s*")


def _exact(text: str, units: Mapping[str, Decimal], what: str, accepted: str) -> Decimal:
    """Returns a number times its unit, or infinity where that is too large for any purpose."""
    match = _QUANTITY.fullmatch(text)
    unit = match and units.get(match[2].replace("μ", "µ"))
    if not match or unit is None:
        raise ValueError(f"{text!r} is not a {what}: a number and one of {accepted}")
    try:
        return Decimal(match[1]) * unit
    except ArithmeticError:
        return Decimal("Infinity")


def _whole(
    text: str, exact: Decimal, what: str, longest: str, unit: str, most: int = LONGEST
) -> int:
    if exact < 0:
        raise ValueError(f"{text!r}: a {what} is not negative")
    if exact > most:
        raise ValueError(f"{text!r}: the {longest}")
    if exact != exact.to_integral_value():
        raise ValueError(f"{text!r}: a {what} is a whole number of {unit}")
    return int(exact)


def time_ps(text: str) -> int:
    """Returns picoseconds from '500ns', '1.5 us', '2e-3 s'. Raises ValueError saying what is
    accepted."""
    exact = _exact(text, PICOSECONDS, "time", ACCEPTED_TIMES)
    longest = f"longest time is {show_time(LONGEST)}"
    return _whole(text, exact, "time", longest, "picoseconds")


def long_time_ps(text: str) -> int:
    """Returns picoseconds likewise, for a model whose tick is a microsecond: a whole number of
    these, to 1,000 years."""
    exact = _exact(text, PICOSECONDS, "time", ACCEPTED_TIMES)
    us = _whole(text, exact / PICOSECONDS["us"], "time", "longest time is 1,000 years",
                "microseconds", LONGEST_US)  # fmt: skip
    return us * int(PICOSECONDS["us"])


def time_us(text: str) -> int:
    """Returns microseconds from '90 s', '1.5 h', '7 d'."""
    return long_time_ps(text) // int(PICOSECONDS["us"])


def show_duration(seconds: float | None) -> str:
    """Returns a time as '3.2 h' for people, with two or three digits; '-' where there is none."""
    if seconds is None:
        return "-"
    for size, unit in ((86400 * 2, "days"), (3600, "h"), (60, "min")):
        if seconds >= size:
            value = seconds / (86400 if unit == "days" else size)
            return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"
    return f"{seconds:.3g} s"


def show_time(ps: int) -> str:
    """Returns a time as '1.5 us': exact, in the largest unit that is not above the time."""
    for unit in ("s", "ms", "us", "ns"):
        if ps >= PICOSECONDS[unit]:
            return f"{(Decimal(ps) / PICOSECONDS[unit]).normalize():f} {unit}"
    return f"{ps} ps"


def show_simulated(ps: int, tick: str) -> str:
    """Returns a simulated time for people: exact where packets are simulated, and else, where a
    tick is longer than a picosecond, in the unit that fits, up to days."""
    return show_time(ps) if tick == "ps" else show_duration(ps / 1e12)


def show_count(value: float) -> str:
    """Returns a count as '15.2 M': three figures and a prefix."""
    for size, prefix in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:.3g}{prefix}"
    return f"{value:.3g}"


PREFIXES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12,
            "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}  # fmt: skip
BYTES = {f"{prefix}B": Decimal(size) for prefix, size in PREFIXES.items()}
BANDWIDTHS = {f"{unit}/s": size for unit, size in BYTES.items()} | {
    f"{prefix}bit/s": Decimal(size) / 8 for prefix, size in PREFIXES.items()
}


def bandwidth(text: str) -> float:
    """Returns bytes per second from '8 Gbit/s', '25 GB/s', '5.25 GiB/s'."""
    accepted = "Gbit/s, GB/s, GiB/s, or these with k, M or T for G"
    value = float(_exact(text, BANDWIDTHS, "bandwidth", accepted))
    if not 0 < value < math.inf:
        raise ValueError(f"{text!r}: a bandwidth is more than zero, and finite")
    return value


def size_bytes(text: str) -> int:
    """Returns bytes from '4 KiB', '2048 B', '1.5 kB'."""
    exact = _exact(text, BYTES, "size", "B, kB, KiB, MB, MiB, GB, GiB")
    return _whole(text, exact, "size", f"largest size is {LONGEST} B", "bytes")


def signed_bytes(text: str) -> int:
    """Returns bytes as `size` does, and accepts '-4 KiB' too."""
    negative = text.lstrip().startswith("-")
    size = size_bytes(text.replace("-", "", 1) if negative else text)
    return -size if negative else size


def show_size(size: int) -> str:
    """Returns bytes as '4 KiB': exact, in the largest unit of which it is a whole number."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if size and size % int(BYTES[unit]) == 0:
            return f"{size // int(BYTES[unit])} {unit}"
    return f"{size} B"


def exact_bandwidth(bytes_per_second: float) -> str:
    """Returns a bandwidth as '5.25 GiB/s': the shortest text that reads back as the same number."""
    value = Decimal(repr(bytes_per_second))
    shown = [(value / BANDWIDTHS[unit], unit) for unit in ("GB/s", "GiB/s", "MB/s", "B/s")]
    texts = [f"{number.normalize():f} {unit}" for number, unit in shown]
    return min((text for text in texts if bandwidth(text) == bytes_per_second), key=len)


def show_bandwidth(bytes_per_second: float) -> str:
    """Returns a bandwidth as '5.637 GB/s': four figures."""
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if bytes_per_second >= size:
            return f"{bytes_per_second / size:.4g} {prefix}B/s"
    return f"{bytes_per_second:.4g} B/s"


WATTS = {"mW": Decimal("0.001"), "W": Decimal(1), "kW": Decimal(10**3), "MW": Decimal(10**6),
         "GW": Decimal(10**9)}  # fmt: skip
JOULES = {"mJ": Decimal("0.001"), "J": Decimal(1), "kJ": Decimal(10**3), "MJ": Decimal(10**6),
          "GJ": Decimal(10**9)} | {
    f"{watt}h": size * 3600 for watt, size in WATTS.items() if watt != "mW"
}  # fmt: skip


def power_w(text: str) -> float:
    """Returns watts from '3000kW', '4.8 MW', '90 W'; 'mW' are thousandths, 'MW' millions."""
    exact = _exact(text, WATTS, "power", "W, kW, MW, GW, mW")
    return _sound(float(exact), "power", repr(text))


def energy_j(text: str) -> float:
    """Returns joules from '300 J', '5 kJ', '2 kWh', '1.2 MWh'."""
    exact = _exact(text, JOULES, "quantity of energy", "J, kJ, MJ, GJ, mJ, Wh, kWh, MWh, GWh")
    return _sound(float(exact), "quantity of energy", repr(text))


def exact_power(w: float) -> str:
    """Returns a power as '3000 kW': the shortest text that reads back as the same number of W."""
    _sound(w, "power", f"{w} W")
    return _shortest(w, WATTS, ("W", "kW", "MW", "GW", "mW"), power_w)


def exact_energy(j: float) -> str:
    """Returns an energy as '2 kWh': the shortest text that reads back as the same number of J."""
    _sound(j, "quantity of energy", f"{j} J")
    return _shortest(j, JOULES, ("J", "kWh", "MWh", "GWh", "kJ", "MJ", "GJ", "mJ"), energy_j)


def show_power(w: float) -> str:
    """Returns a power as '3,000 kW' for people: up to four figures, in the unit in which it is
    below 10,000, as machine rooms tell it."""
    _sound(w, "power", f"{w} W")
    if 0 < w < 0.99995:
        return f"{w * 1e3:.4g} mW"
    for size, unit in ((1.0, "W"), (1e3, "kW"), (1e6, "MW")):
        if w / size < 9999.5:
            return f"{w / size:,.4g} {unit}"
    return f"{w / 1e9:,.4g} GW"


def show_energy(j: float) -> str:
    """Returns an energy as '12.3 MWh' for people: three figures; joules below a kWh."""
    _sound(j, "quantity of energy", f"{j} J")
    for size, unit, below in ((1.0, "J", 999.5), (1e3, "kJ", 3600.0), (3.6e6, "kWh", 999.5),
                              (3.6e9, "MWh", 999.5)):  # fmt: skip
        if j / size < below:
            return _three_figures(j / size, unit)
    return _three_figures(j / 3.6e12, "GWh")


def _three_figures(value: float, unit: str) -> str:
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def _sound(value: float, what: str, shown: str) -> float:
    """Returns a value that is not negative and finite, 0 without a sign; raises ValueError for
    any other."""
    if not 0 <= value < math.inf:
        raise ValueError(f"{shown}: a {what} is not negative, and finite")
    return value + 0.0


def _shortest(
    value: float, sizes: Mapping[str, Decimal], units: Sequence[str], read: Callable[[str], float]
) -> str:
    """Returns the shortest text that `read` reads back as the same value, the first of several."""
    exact = Decimal(repr(float(value) + 0.0))
    texts = [f"{(exact / sizes[unit]).normalize():f} {unit}" for unit in units]
    return min((text for text in texts if read(text) == value), key=len)
