"""Steps as an experiment gives them: one value, a list of pairs [time, value], or a CSV file of two
columns.

The units are spelled out here, since this folder stands below the one of experiments.
"""

from __future__ import annotations

import csv
import math
import os
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from odonata.jobs.series import Steps
from odonata.jobs.series_dates import Period, Row, gaps_of, overlapping, placed, space
from odonata.jobs.series_repair import REPAIR, Repairs
from odonata.traces.clock import parse_date
from odonata.traces.lines import Where, pieces
from pdes.clock import LATEST, TICKS, show_ticks
from pdes.errors import Refused

PS = {"ps": Decimal(1), "ns": Decimal(10**3), "us": Decimal(10**6), "µs": Decimal(10**6),
      "ms": Decimal(10**9), "s": Decimal(10**12), "min": Decimal(60 * 10**12),
      "h": Decimal(3600 * 10**12), "d": Decimal(86400 * 10**12)}  # fmt: skip
WRITTEN_TIMES = ("d", "h", "min", "s", "ms", "us", "ns", "ps")
TIMES: Mapping[str, Decimal | None] = {"time": None} | {
    f"time_{unit}": PS[unit] for unit in reversed(WRITTEN_TIMES)
}
"""Columns of times: a bare number of this unit, or a time with its unit, or a date."""
LONGEST_PS = 1000 * 365 * 86400 * 10**12
"""A thousand years: a time beyond it is a mistake."""
FILES = (".csv", ".csv.gz")
NONE = "none"
"""The word for hours in which there is no cap."""
SYNTHETIC = "synthetic"
"""The word for a signal that is made."""
REFUSE, HOLD = "refuse", "hold"
"""What becomes of a gap in a file: it is refused, or the last value holds until the next one."""


class Kind(NamedTuple):
    """What a series may be of, and how its values are written."""

    noun: str
    units: Mapping[str, Decimal]
    """The size of each unit, in that of the model."""
    written: tuple[str, ...]
    """The units in which values are written, the model's first."""
    columns: Mapping[str, Decimal | None]
    """Names of a file's column: bare numbers of this size, or values as in an experiment file."""
    bare: bool = False
    """Whether a bare number is a value, in the unit of the model."""
    signed: bool = False
    limit: bool = False
    """Whether it is a limit, of which there may be none for some time."""
    word: str = ""
    """A word that stands for a series of its own, which is not read here."""

    @property
    def accepted(self) -> str:
        """What is accepted, for a sentence."""
        if not self.units:
            return "a number"
        bare = "alone or with" if self.bare else "and"
        return f"a number {bare} one of {', '.join(self.written)}" + f", or {NONE}" * self.limit


KINDS = {
    "power": Kind(
        "a power",
        {"mW": Decimal("0.001"), "W": Decimal(1), "kW": Decimal(10**3), "MW": Decimal(10**6),
         "GW": Decimal(10**9)},
        ("W", "kW", "MW", "GW", "mW"),
        {"watts": Decimal(1), "kw": Decimal(10**3), "mw": Decimal(10**6), "power": None},
        limit=True,
    ),
    "price": Kind(
        "a price of electricity",
        {"per kWh": Decimal(1), "/kWh": Decimal(1), "per MWh": Decimal("0.001"),
         "/MWh": Decimal("0.001")},
        ("per kWh", "per MWh"),
        {"price_per_kwh": Decimal(1), "price_per_mwh": Decimal("0.001"), "price": None},
        bare=True, signed=True,
    ),
    "carbon": Kind(
        "a carbon intensity",
        {"g/kWh": Decimal(1), "g per kWh": Decimal(1), "kg/MWh": Decimal(1),
         "kg per MWh": Decimal(1), "kg/kWh": Decimal(10**3), "kg per kWh": Decimal(10**3)},
        ("g/kWh", "kg/kWh"),
        {"carbon_g_per_kwh": Decimal(1), "carbon": None},
        bare=True,
    ),
    "signal": Kind("a signal", {}, (), {"signal": None}, bare=True, signed=True, word=SYNTHETIC),
}  # fmt: skip
"""By name: W, currency per kWh (which may be below 0), g of CO2 per kWh, a part of a reserve."""
ENERGIES = ("J", "kJ", "MJ", "GJ", "Wh", "kWh", "MWh", "GWh")
OTHERS = {unit: kind.noun for kind in KINDS.values() for unit in kind.units} | {
    unit: noun for noun, units in (("a time", PS), ("an energy", ENERGIES)) for unit in units
}
"""What a unit measures."""

_QUANTITY = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*(.*)")
_DATE = re.compile(r"[0-9]{4}-")


def read_steps(
    given: object, unit: str, tick_ps: int, where: str, *, folder: Where = "",
    period: Period | None = None, gaps: str = REFUSE, repair: str | None = None,
    alone: bool = False,
) -> Steps:  # fmt: skip
    """Returns the steps that an experiment file gives: a value, a list of pairs [time, value], or
    the name of a CSV file, which is looked for in `folder`. Whatever is wrong is refused.

    `unit` is one of KINDS; `tick_ps` is the tick of the model in ps; `where` names the key that
    gives it. Times are such with a unit, which count from time 0 of the run, or dates, which have
    their place in its `period`. `gaps`: "hold" lets the last value hold where a file has a gap, and
    the first one before its date. `repair`, of a signal: "refuse" refuses values that are missing,
    repeated or beyond -1 and 1, "repair" repairs them, aloud; None: it may be beyond these.
    `alone`: there is no run, and dates count from the first.
    """
    path = f"{where}: " if where else ""
    repairs = None if repair is None else Repairs(f"{path}{_name(given)}", repair == REPAIR)
    rules = _Rules(KINDS[unit], tick_ps, path, gaps, repairs)
    rows = _rows(given, rules, folder)
    if isinstance(rows, Steps):
        return rows
    _require_alike(rows)
    dated = rows[0].date is not None
    if dated:
        period = Period.beginning(rows[0]) if alone else period
        rows = placed(rows, period)
    if repairs is not None:
        rows = repairs.mended(rows, alone=isinstance(given, list | tuple))
    _require_ascending(rows)
    hold = gaps == HOLD
    if repairs is not None and hold and isinstance(given, str):
        repairs.held(rows)
    if dated and period is not None:
        rows = overlapping(rows, period, hold)
    found = _steps(rows, rules, regular=isinstance(given, str) and not hold)
    if repairs is not None:
        repairs.say()
    return found


def check_steps(
    given: object, unit: str, tick_ps: int, where: str, *, folder: Where = "", gaps: str = REFUSE
) -> None:
    """Refuse what is wrong with steps, whichever the period of the run may be: where dates have
    their place is not known yet. What could be repaired of a signal is left to `read_steps`."""
    kind = KINDS[unit]
    if kind.word and given == kind.word:
        return
    repairs = Repairs("", True) if unit == "signal" else None
    rules = _Rules(kind, tick_ps, f"{where}: " if where else "", gaps, repairs)
    rows = _rows(given, rules, folder)
    if isinstance(rows, Steps):
        return
    _require_alike(rows)
    if rows[0].date is None:
        if repairs is not None:
            rows = repairs.mended(rows)
        _require_ascending(rows)
        _steps(rows, rules, regular=isinstance(given, str) and gaps != HOLD)


def _rows(given: object, rules: _Rules, folder: Where) -> list[Row] | Steps:
    """Returns the rows of a file or of pairs; the steps of a value that holds for ever."""
    if isinstance(given, str) and given.lower().endswith(FILES):
        return _file_rows(Path(folder) / given, rules)
    if isinstance(given, list | tuple):
        return _pair_rows(given, rules)
    try:
        return Steps.constant(_value(given, rules.kind))
    except ValueError as error:
        word = f"{rules.kind.word}, " if rules.kind.word else ""
        also = f"; or {word}pairs [time, value], or the name of a .csv file"
        raise Refused(f"{rules.where}{error}{also}") from None


class _Rules(NamedTuple):
    kind: Kind
    tick_ps: int
    where: str
    gaps: str
    repairs: Repairs | None = None


def _name(given: object) -> str:
    """Returns the name of a file, or what else a series is given as, for a sentence."""
    return given if isinstance(given, str) else "its pairs"


def _shown(given: object) -> str:
    text = repr(given)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _parted(text: str) -> tuple[Decimal, str] | None:
    """Returns a number and its unit; None where there is no number."""
    found = _QUANTITY.fullmatch(text.strip())
    if not found:
        return None
    try:
        return Decimal(found[1]), " ".join(found[2].replace("μ", "µ").split())
    except ArithmeticError:  # an exponent beyond all
        return Decimal("Infinity"), " ".join(found[2].split())


def _sized(given: object, number: Decimal, size: Decimal, kind: Kind) -> float:
    try:
        value = float(number * size) + 0.0
    except ArithmeticError:
        value = math.inf
    if not math.isfinite(value):
        raise ValueError(f"{_shown(given)}: {kind.noun} is finite")
    if value < 0 and not kind.signed:
        raise ValueError(f"{_shown(given)}: {kind.noun} is not negative")
    return value


def _is_none(given: object, kind: Kind) -> bool:
    return kind.limit and isinstance(given, str) and given.strip().lower() == NONE


def _value(given: object, kind: Kind) -> float:
    """Returns a value as an experiment file has it; infinity where a limit is none."""
    if _is_none(given, kind):
        return math.inf
    if isinstance(given, int | float) and not isinstance(given, bool):
        if not kind.bare:
            raise ValueError(f"{_shown(given)} is a bare number: {kind.noun} is {kind.accepted}")
        return _sized(given, Decimal(given), Decimal(1), kind)
    parts = _parted(given) if isinstance(given, str) else None
    if parts is None:
        raise ValueError(f"{_shown(given)} is not {kind.noun}: {kind.accepted}")
    number, unit = parts
    if not unit and not kind.bare:
        raise ValueError(f"{_shown(given)} is a bare number: {kind.noun} is {kind.accepted}")
    size = kind.units.get(unit) if unit else Decimal(1)
    if size is None:
        is_other = f"is {OTHERS[unit]}, not" if unit in OTHERS else "is not"
        raise ValueError(f"{_shown(given)} {is_other} {kind.noun}: {kind.accepted}")
    return _sized(given, number, size, kind)


def _cell(text: str, size: Decimal | None, column: str, kind: Kind) -> float:
    """Returns the value of a file's cell; `size` is that of a column of bare numbers."""
    if size is None or _is_none(text, kind):
        return _value(text, kind)
    parts = _parted(text)
    if parts is None:
        other = f", or {NONE}" * kind.limit
        raise ValueError(f"{_shown(text)} is not a number: {column} has finite numbers{other}")
    if parts[1]:
        other = OTHERS.get(parts[1], "")
        is_other = f" is {other}, and" if other not in ("", kind.noun) else ":"
        any_unit = next(name for name, each in kind.columns.items() if each is None)
        raise ValueError(f"{_shown(text)}{is_other} the column {column} has numbers without a unit;"
                         f" name it {any_unit} for values with units")  # fmt: skip
    return _sized(text, parts[0], size, kind)


def _time(given: object, size: Decimal | None, tick_ps: int) -> tuple[int, datetime | None]:
    """Returns a time in ps, or a date; `size` is that of a column of bare numbers."""
    text = given.isoformat() if isinstance(given, date) else given
    accepted = "a number and one of ps, ns, us, ms, s, min, h, d, or a date like 2014-01-31T12:00Z"
    if size is None and isinstance(text, str) and _DATE.match(text.strip()):
        try:
            return 0, parse_date(text)
        except ValueError as error:
            raise ValueError(f"{_shown(text)} is {error}") from None
    parts = _parted(text) if isinstance(text, str) else None
    if size is not None:
        if parts is None or parts[1]:
            raise ValueError(f"{_shown(given)} is not a number: name the column time for times "
                             "with units, or dates")  # fmt: skip
    elif parts is None or not parts[1]:
        bare = "is a bare number" if parts or isinstance(given, int | float) else "is not a time"
        raise ValueError(f"{_shown(given)} {bare}: a time is {accepted}")
    else:
        size = PS.get(parts[1])
        if size is None:
            is_other = f"is {OTHERS[parts[1]]}, not" if parts[1] in OTHERS else "is not"
            raise ValueError(f"{_shown(given)} {is_other} a time: {accepted}")
    if parts[0] < 0:
        raise ValueError(f"{_shown(given)}: a time is not negative")
    return _whole(given, parts[0], size, tick_ps), None


def _whole(given: object, number: Decimal, size: Decimal, tick_ps: int) -> int:
    most = min(LATEST * tick_ps, LONGEST_PS)
    if number > most / size:
        raise ValueError(f"{_shown(given)}: the longest time is {show_ticks(most, 'ps')}")
    ps = number * size
    if ps % tick_ps:
        tick = next((name for name, each in TICKS.items() if each == tick_ps), f"{tick_ps} ps")
        raise ValueError(f"{_shown(given)}: a time is a whole number of {tick}")
    return int(ps)


def _pair_rows(pairs: Sequence[Any], rules: _Rules) -> list[Row]:
    if not pairs:
        raise Refused(f"{rules.where}an empty list: pairs [time, value] are needed")
    rows = []
    for number, pair in enumerate(pairs, 1):
        place = f"{rules.where}pair {number}"
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise Refused(f"{place}: {_shown(pair)}: a pair [time, value] is needed")
        try:
            ps, date = _time(pair[0], None, rules.tick_ps)
            rows.append(Row(place, str(pair[0]), ps, date, _value(pair[1], rules.kind)))
        except ValueError as error:
            raise Refused(f"{place}: {error}") from None
    return rows


def _file_rows(path: Path, rules: _Rules) -> list[Row]:
    file = f"{rules.where}{os.fspath(path)}"
    table = _table(path, rules.where)
    if not table:
        raise Refused(f"{file}: it is empty: a header of two columns is needed, then rows")
    (first, header), *body = table
    at, since, size = _header(header, f"{file}: line {first}", rules.kind)
    if not body:
        raise Refused(f"{file}: it has a header only, in line {first}: rows must follow")
    rows: list[Row] = []
    for line, cells in body:
        place = f"{file}: line {line}"
        if len(cells) != 2:
            raise Refused(f"{place}: {_shown(','.join(cells))}: 2 columns are needed, separated by "
                          f"a comma, and there {_are(len(cells))}")  # fmt: skip
        time, value = cells[at], cells[1 - at]
        column = header[at]
        told = rules.repairs is not None and rules.repairs.repair
        if not value and time and rules.gaps == HOLD and rows and not told:
            if rules.repairs is not None:
                rules.repairs.skip(place, rows[-1])
            continue
        try:
            ps, date = _time(time, since, rules.tick_ps)
            column = header[1 - at]
            if rules.repairs is not None and rules.repairs.missing(value, place, not rows):
                rows.append(Row(place, time, ps, date, rows[-1].value))
                continue
            if not value:
                raise ValueError("an empty cell is a gap: give the value"
                                 + _or_hold(not rows))  # fmt: skip
            rows.append(Row(place, time, ps, date, _cell(value, size, column, rules.kind)))
        except ValueError as error:
            raise Refused(f"{place}, column {column}: {error}") from None
    return rows


def _are(columns: int) -> str:
    return "is 1" if columns == 1 else f"are {columns}"


def _or_hold(first: bool = False) -> str:
    return "" if first else f', or let the last value hold with gaps = "{HOLD}"'


def _table(path: Path, where: str) -> list[tuple[int, list[str]]]:
    """Returns the rows of a CSV file, each with the number of its line, without those that are
    blank or begin with #."""
    try:
        data = b"".join(pieces(path))
    except Refused as error:
        raise Refused(f"{where}{error}") from None
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Refused(f"{where}{os.fspath(path)}: line {line}: it is not UTF-8: save it as CSV in "
                      "UTF-8") from None  # fmt: skip
    table = []
    for number, row in enumerate(re.split(r"\r\n|\n|\r", text), 1):
        if not row.strip() or row.startswith("#"):
            continue
        try:
            (cells,) = csv.reader([row], strict=True)
        except csv.Error as error:
            raise Refused(f"{where}{os.fspath(path)}: line {number}: {_shown(row)}: {error}; a row "
                          "is a time and a value, separated by a comma") from None  # fmt: skip
        table.append((number, [cell.strip() for cell in cells]))
    return table


def _header(
    header: Sequence[str], place: str, kind: Kind
) -> tuple[int, Decimal | None, Decimal | None]:
    """Returns which column is that of times, and the sizes of times and of values."""

    def refuse(words: str) -> NoReturn:
        raise Refused(f"{place}: {words}: the header is a time ({', '.join(TIMES)}) and "
                      f"{kind.noun} ({', '.join(kind.columns)})")  # fmt: skip

    if len(header) != 2:
        refuse(f"{_shown(','.join(header))} has not two columns")
    # mW would be thousandths of a watt, and mw are millions
    names = [name if name == "mW" else name.lower() for name in header]
    at = 0 if names[0] in TIMES else 1
    if names[at] not in TIMES:
        refuse(f"{_shown(','.join(header))} has no column of times")
    if (name := names[1 - at]) not in kind.columns:
        others = [each.noun for each in KINDS.values() if name in each.columns]
        refuse(f"the column {_shown(header[1 - at])} is " + (
            f"{others[0]}, not {kind.noun}" if others else f"not {kind.noun}"))  # fmt: skip
    return at, TIMES[names[at]], kind.columns[name]


def _require_alike(rows: Sequence[Row]) -> None:
    for before, row in pairwise(rows):
        if row.scale != before.scale:
            raise Refused(f"{row.place}: {row.text!r} is a {row.scale}, and {before.text!r} before "
                          f"it a {before.scale}: all must be alike")  # fmt: skip


def _require_ascending(rows: Sequence[Row]) -> None:
    for before, row in pairwise(rows):
        if row.ps == before.ps:
            raise Refused(f"{row.place}: {row.text!r} is the same time as {before.text!r} before "
                          "it: times ascend, with one value each")  # fmt: skip
        if row.ps < before.ps:
            raise Refused(f"{row.place}: {row.text!r} is earlier than {before.text!r} before it: "
                          "times ascend; sort the rows")  # fmt: skip


def _steps(rows: Sequence[Row], rules: _Rules, *, regular: bool) -> Steps:
    """Returns the steps of rows; what was before time 0 is cut off. `regular`: where the rows are
    evenly spaced, none may be missing."""
    first = rows[0]
    if first.ps > 0:
        raise Refused(f"{first.place}: the first time, {first.text!r}, is after 0: nothing is "
                      "known before it; give the value since 0")  # fmt: skip
    if regular:
        _refuse_gaps(rows)
    ticks = [_tick(row, rules.tick_ps) for row in rows]
    begun = bisect_right(ticks, 0) - 1
    return Steps((0, *ticks[begun + 1 :]), tuple(row.value for row in rows[begun:]))


def _tick(row: Row, tick_ps: int) -> int:
    try:
        return _whole(row.text, Decimal(max(row.ps, 0)), Decimal(1), tick_ps) // tick_ps
    except ValueError as error:
        raise Refused(f"{row.place}: {error}") from None


def _refuse_gaps(rows: Sequence[Row]) -> None:
    """Refuse rows of which some are missing."""
    found, least = gaps_of(rows)
    if not found:
        return
    before, row = rows[found[0] - 1], rows[found[0]]
    missing = space(before, row) // least - 1
    others = f" (the first of {len(found):,} gaps)" if len(found) > 1 else ""
    raise Refused(f"{row.place}: a gap of {show_ticks(row.ps - before.ps, 'ps')} from "
                  f"{before.text!r} to {row.text!r}, where rows are "
                  f"{show_ticks(least, 'ps')} apart: {missing:,} missing{others}; add what is "
                  f"missing{_or_hold()}")  # fmt: skip


# -- writing


def steps_to_toml(steps: Steps, unit: str, tick_ps: int) -> list[list[str]]:
    """Returns pairs of texts that `read_steps` reads back as equal steps."""
    kind = KINDS[unit]
    return [[_show_time(begin * tick_ps), _show_value(level, kind)]
            for begin, level in zip(steps.begins, steps.levels, strict=True)]  # fmt: skip


def _show_time(ps: int) -> str:
    units = (unit for unit in WRITTEN_TIMES if ps % int(PS[unit]) == 0)
    return f"{ps // int(PS[unit])} {unit}" if (unit := next(units)) and ps else "0 s"


def _show_value(value: float, kind: Kind) -> str:
    """Returns the shortest text that reads back as the same value, the first of several."""
    if value == math.inf:
        return NONE
    exact = Decimal(repr(value))
    texts = [f"{(exact / kind.units[unit]).normalize():f} {unit}" for unit in kind.written]
    texts += [] if texts else [f"{exact.normalize():f}"]
    return min((text for text in texts if _value(text, kind) == value), key=len)
