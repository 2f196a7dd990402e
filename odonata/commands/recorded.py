"""`odonata schedule --recorded`: how well simulated waits reproduce those that a trace tells of."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from odonata.experiment.units import show_duration

if TYPE_CHECKING:
    from rich.console import Console

    from odonata.results.recorded import Beside, Reproduction
    from odonata.results.statistics import Interval

EACH_WIDTH, NAMES_WIDTH = 52, 30
"""Letters that the columns of a discipline take, and those before them."""


def show(console: Console, found: Mapping[str, Reproduction], weeks: bool = False) -> None:
    """Print tables of as many disciplines as there is room for beside each other; also by week, if
    that is asked for."""
    from rich.table import Table
    from rich.text import Text

    names = [*found]
    each = max(1, (console.width - NAMES_WIDTH) // EACH_WIDTH)
    for at in range(0, len(names), each):
        some = {name: found[name] for name in names[at : at + each]}
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("against what was recorded", no_wrap=True, style="dim")
        table.add_column("recorded", justify="right", no_wrap=True)
        for name in some:
            table.add_column(Text(name), justify="right", no_wrap=True)
            table.add_column("difference, 95 % interval", no_wrap=True, style="dim")
        every = [dict(_rows(one, weeks)) for one in some.values()]
        for row in dict.fromkeys(row for rows in every for row in rows):
            cells = [rows.get(row, ("-", "-", "")) for rows in every]
            table.add_row(row, cells[0][0], *(cell for it in cells for cell in it[1:]))
        console.print()
        console.print(table)
    one = next(iter(found.values()))
    console.print(f"{one.jobs:,} jobs have a recorded wait; intervals are of the moving-block "
                  f"bootstrap over {one.weeks:,} weeks of submission"
                  + ("" if one.weeks >= 4 else ", of which four are needed"),
                  style="dim", soft_wrap=True)  # fmt: skip


def _rows(one: Reproduction, weeks: bool) -> Iterator[tuple[str, tuple[str, str, str]]]:
    """Returns what was recorded, what was simulated, and by how much these differ, by name."""
    yield "wait, mean", _waits(one.mean)
    for it in one.quantiles:
        yield f"wait, {it.name}", _waits(it)
    for it in one.by_size:
        yield f"{it.name} node{'s' * (it.name != '1')} ({it.jobs:,} jobs)", _waits(it)
    for it in one.by_week if weeks else ():
        yield f"week {it.name} ({it.jobs:,} jobs)", _waits(it)
    used = one.recorded_utilisation, one.simulated_utilisation
    yield "nodes in use", (f"{used[0]:.1%}", f"{used[1]:.1%}",
                           f"{one.utilisation_error:.1%} hour by hour")  # fmt: skip
    yield "error of a wait, mean", ("", *_measure(one.absolute_error_s, show_duration))
    yield "mean wait × recorded", ("", *_measure(one.ratio))
    yield "Kolmogorov-Smirnov", ("", *_measure(one.ks))
    yield "correlation of logarithms", ("", *_measure(one.correlation))
    yield "correlation of ranks", ("", *_measure(one.rank_correlation))


def _waits(it: Beside) -> tuple[str, str, str]:
    error = it.error_s
    apart = "" if error is None else f"{_signed(error.mean)}{_limits(error, _signed)}"
    return show_duration(it.recorded_s), show_duration(it.simulated_s), apart


def _measure(it: Interval, text: Any = "{:.3g}".format) -> tuple[str, str]:
    return "-" if math.isnan(it.mean) else text(it.mean), _limits(it, text).strip()


def _limits(it: Interval, text: Any) -> str:
    return "" if math.isnan(it.low) else f" ({text(it.low)} … {text(it.high)})"


def _signed(seconds: float) -> str:
    return "0 s" if seconds == 0 else f"{'+-'[seconds < 0]}{show_duration(abs(seconds))}"
