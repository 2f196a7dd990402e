"""Tables of configurations as CSV files: read, checked, repaired where that is asked for, written.

A file has a header of six columns in any order, by these names or by those of RMAP's
`job_details_table`:

    application,nodes,cores,cap_w,seconds,watts
    job_id,nodes,cores,pkg_cap,exec_time,tot_pkg

`cores` are those used per node, `cap_w` is per socket, `watts` are those of all nodes together. The
highest cap stands for none. What cannot be right is refused; what is odd is told.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from odonata.provisioning.table import Numbers, Point, Table, Whole, sorted_table
from pdes.errors import Refused, os_words

Where = str | os.PathLike[str]

COLUMNS = ("application", "nodes", "cores", "cap_w", "seconds", "watts")
ALIASES = {"job_id": "application", "pkg_cap": "cap_w", "exec_time": "seconds", "tot_pkg": "watts"}
RANGES = {"nodes": (1, 10**7), "cores": (1, 10**5), "cap_w": (1e-3, 1e9),
          "seconds": (1e-6, 1000 * 365 * 86400.0), "watts": (1e-3, 1e12)}  # fmt: skip
"""What is accepted of each column: beyond it, a number is a mistake."""
HEADER = f"a header of {','.join(COLUMNS)}, or {','.join({v: k for k, v in ALIASES.items()})}"
SEPARATORS = (",", ";", "\t")
TOLERANCE = 0.05
"""How far measurements may go against the rule (more cores do not draw less, a higher cap does not
slow down) before it is told: what noise and the control loop of a cap make of them."""
MEMORY_W = 30.0
"""How far the power of a socket may lie above its cap before it is told: its memory has no cap."""
DIGITS = 6
"""Significant figures of what is interpolated: more would not be true, and the last bits of
logarithms depend on the machine."""
COMMENTS = (
    "Time and power of applications in configurations: a row each, in any order.",
    "nodes: how many; cores: how many of each node are used; cap_w: W per socket, where the",
    "highest stands for no cap; seconds: the run time; watts: of all nodes together, on average.",
)


class Tables(NamedTuple):
    """The tables of a file by application, in the order of the file; and what was repaired in them,
    or is odd about them, in sentences."""

    tables: dict[str, Table]
    repairs: tuple[str, ...]


class _Row(NamedTuple):
    line: int
    point: Point


def read_tables(path: Where, repair: bool = False, sockets: int = 2) -> Tables:
    """Returns the tables in a CSV file, which may be gzip.

    Cells that are no sound numbers are refused, and so is a configuration that has two different
    results. `repair` takes the mean of such results; fills configurations that are missing between
    measured ones, by interpolation in logarithms; and makes times fall and power rise with the cap,
    by averaging neighbours that do not. `sockets` are those of a node.
    """
    name = os.fspath(path)
    told: list[str] = []
    rows = _rows(path, told)
    tables = {}
    for application, found in rows.items():
        points = _each_once(name, application, found, repair, told)
        table = _table(application, points)
        table = _without_holes(table, told) if repair else table
        table = _monotone(table, told) if repair else table
        tables[application] = table
    for table in tables.values():
        told += oddities(table, sockets)
    return Tables(tables, (*told, *_unlike(tables)))


def write_tables(path: Where, tables: Mapping[str, Table]) -> None:
    """Write tables by application to a CSV file that `read_tables` reads back as equal ones; .gz is
    compressed. A file that was there is replaced when all is written."""
    text = io.StringIO()
    text.writelines(f"# {line}\n" for line in COMMENTS)
    text.write(",".join(COLUMNS) + "\n")
    for application, table in tables.items():
        name = _quoted(application)
        columns = (table.nodes, table.cores, table.cap_w, table.seconds, table.watts)
        for row in zip(*(column.tolist() for column in columns), strict=True):
            cells = (repr(value).removesuffix(".0") for value in row)
            text.write(f"{name},{','.join(cells)}\n")
    data = text.getvalue().encode()
    packed = gzip.compress(data, mtime=0) if os.fspath(path).lower().endswith(".gz") else data
    whole = Path(path).resolve()  # a link stays one
    part = whole.with_name(f".part-{whole.name}")
    try:
        part.write_bytes(packed)
        part.replace(whole)
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise
    finally:
        part.unlink(missing_ok=True)


def _quoted(application: str) -> str:
    """Returns the name of an application as a cell; refuses one that would not read back."""
    if not application or application != application.strip() or not application.isprintable():
        raise Refused(f"the application {application!r}: its name cannot be written to a CSV file; "
                      "it has printable letters, and no space at either end")  # fmt: skip
    if set(application) & set('",#'):
        return '"' + application.replace('"', '""') + '"'
    return application


# -- the text


def _rows(path: Where, told: list[str]) -> dict[str, list[_Row]]:
    """Returns the rows of a file by application."""
    name, lines = os.fspath(path), _lines(path)
    if not lines:
        raise Refused(f"{name}: it is empty: {HEADER} is needed, then rows")
    separator = None
    if lines[0][1].strip().lower() in [f"sep={mark}" for mark in SEPARATORS]:  # for a spreadsheet
        separator = lines.pop(0)[1].strip()[-1]
    if not lines:
        raise Refused(f"{name}: it has no header: {HEADER} is needed, then rows")
    first, header = lines.pop(0)
    separator = separator or max(SEPARATORS, key=header.count)
    names = [cell.lower() for cell in _cells(name, first, header, separator)]
    places = _places(f"{name}: line {first}", names, told)
    table = [(line, _cells(name, line, row, separator)) for line, row in lines]
    for line, cells in table:
        if len(cells) != len(names):
            raise Refused(f"{name}: line {line}: {len(cells)} columns, and the header in line "
                          f"{first} has {len(names)}")  # fmt: skip
    commas = separator != "," and _has_decimal_commas(name, table, places, told)
    rows: dict[str, list[_Row]] = {}
    for line, cells in table:
        application, *texts = (cells[places[column]] for column in COLUMNS)
        if not application or not application.isprintable():
            column = names[places["application"]]
            raise Refused(f"{name}: line {line}, column {column}: {_shown(application)}: the name "
                          "of an application is needed")  # fmt: skip
        values = []
        for column, text in zip(COLUMNS[1:], texts, strict=True):
            try:
                values.append(_number(column, text, commas))
            except ValueError as error:
                raise Refused(f"{name}: line {line}, column {names[places[column]]}: "
                              f"{error}") from None  # fmt: skip
        nodes, cores, *rest = values
        rows.setdefault(application, []).append(_Row(line, Point(int(nodes), int(cores), *rest)))
    if not rows:
        raise Refused(f"{name}: it has a header only, in line {first}: rows must follow")
    return rows


def _bytes(path: Where) -> bytes:
    """Returns what is in a file, unpacked where it is gzip."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise Refused(os_words(error)) from error
    except ValueError as error:  # a null byte in the path
        raise Refused(f"{os.fspath(path)!r}: {error}; check the path") from error
    try:
        return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    except (OSError, EOFError, zlib.error):
        raise Refused(f"{os.fspath(path)}: the gzip file is damaged or cut off: fetch it "
                      "again") from None  # fmt: skip


def _lines(path: Where) -> list[tuple[int, str]]:
    """Returns the lines that are neither blank nor comments, with their numbers."""
    name, data = os.fspath(path), _bytes(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Refused(f"{name}: line {line}: it is not UTF-8: save it as CSV in UTF-8") from None
    if "\0" in text:
        raise Refused(f"{name}: line {text.count(chr(10), 0, text.index(chr(0))) + 1}: it is no "
                      "text: save it as CSV in UTF-8")  # fmt: skip
    lines = enumerate(re.split(r"\r\n|\n|\r", text), 1)
    return [(number, line) for number, line in lines
            if line.strip(" \t,;") and not line.lstrip().startswith("#")]  # fmt: skip


def _cells(name: str, line: int, row: str, separator: str) -> list[str]:
    try:
        (cells,) = csv.reader([row], delimiter=separator, strict=True)
    except csv.Error as error:
        raise Refused(f"{name}: line {line}: {_shown(row)}: {error}") from None
    return [cell.strip() for cell in cells]


def _places(where: str, names: Sequence[str], told: list[str]) -> dict[str, int]:
    """Returns where each column stands."""
    places: dict[str, int] = {}
    others = []
    for at, name in enumerate(names):
        column = ALIASES.get(name, name)
        if column in places:
            raise Refused(f"{where}: two columns of {column}, {names[places[column]]} and {name}: "
                          "one of each is needed")  # fmt: skip
        if column in COLUMNS:
            places[column] = at
        elif name:
            others.append(name)
    if missing := [column for column in COLUMNS if column not in places]:
        raise Refused(f"{where}: {_shown(','.join(names))} lacks {', '.join(missing)}: {HEADER} is "
                      "needed, in any order")  # fmt: skip
    if others := [name for name in others if name != "id"]:
        told.append(f"The file has columns that are not read: {', '.join(others)}.")
    return places


def _has_decimal_commas(
    name: str, table: Sequence[tuple[int, list[str]]], places: Mapping[str, int], told: list[str]
) -> bool:
    """Tells whether numbers have decimal commas, as where cells are separated by semicolons; some
    commas and some points are refused."""
    cells = [(line, row[places[column]]) for line, row in table for column in COLUMNS[1:]]
    comma = next(((line, text) for line, text in cells if "," in text), None)
    if comma is None:
        return False
    point = next(((line, text) for line, text in cells if "." in text), None)
    if point is not None:
        raise Refused(f"{name}: line {comma[0]}: {comma[1]!r} has a comma, and {point[1]!r} in "
                      f"line {point[0]} a point: which is the decimal sign? use one")  # fmt: skip
    told.append(f"Commas in numbers were read as decimal points: {comma[1]!r} in line {comma[0]} as"
                f" {comma[1].replace(',', '.')}.")  # fmt: skip
    return True


def _number(column: str, text: str, commas: bool) -> float:
    """Returns the value of a cell; raises ValueError with the reason against it."""
    low, high = RANGES[column]
    kind = "whole number" if column in ("nodes", "cores") else "number"
    accepted = f"{column} is a {kind} from {low:g} to {high:,g}, without a unit"
    if not text:
        raise ValueError(f"an empty cell: {accepted}; leave out the row of a configuration that "
                         "was not measured")  # fmt: skip
    try:
        if "_" in text:  # which Python would accept
            raise ValueError
        value = float(text.replace(",", ".") if commas else text)
    except ValueError:
        value = math.nan
    if column == "cap_w" and (math.isinf(value) or text.lower() in ("none", "turbo", "uncapped")):
        raise ValueError(f"{_shown(text)}: {accepted}; for runs without a cap write the power that "
                         "a socket is rated for, which must be the highest cap")  # fmt: skip
    if math.isnan(value):
        sign = "; its decimal sign must be a point" if "," in text else ""
        raise ValueError(f"{_shown(text)} is not a number: {accepted}{sign}")
    if not low <= value <= high or (kind == "whole number" and value != int(value)):
        raise ValueError(f"{_shown(text)}: {accepted}")
    return value


def _shown(text: str) -> str:
    shown = repr(text)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


# -- each configuration once


def _each_once(
    name: str, application: str, rows: Sequence[_Row], repair: bool, told: list[str]
) -> list[Point]:
    """Returns the points, each configuration once: of equal rows one, of unequal ones the mean if
    that is asked for."""
    by_configuration: dict[tuple[int, int, float], list[_Row]] = {}
    for row in rows:
        by_configuration.setdefault(row.point[:3], []).append(row)
    points, equal, widest = [], 0, (0.0, "")
    averaged = 0
    for same in by_configuration.values():
        first = same[0]
        if len({row.point for row in same}) == 1:
            points.append(first.point)
            equal += len(same) - 1
            continue
        other = next(row for row in same if row.point != first.point)
        if not repair:
            raise Refused(f"{name}: line {other.line}: {first.point.name} of {application} took "
                          f"{_results(other)}, and in line {first.line} {_results(first)}: give "
                          "one row per configuration, or repair, which takes the mean")  # fmt: skip
        averaged += 1
        seconds, watts = ([row.point[at] for row in same] for at in (3, 4))
        spread = max(max(values) / min(values) - 1.0 for values in (seconds, watts))
        if spread > widest[0]:
            widest = (spread, f"{first.point.name} in lines "
                      f"{', '.join(str(row.line) for row in same)}")  # fmt: skip
        points.append(first.point._replace(seconds=_rounded(sum(seconds) / len(same)),
                                           watts=_rounded(sum(watts) / len(same))))  # fmt: skip
    if equal:
        told.append(f"{application}: {_rows_are(equal)} given again, and kept once.")
    if averaged:
        told.append(f"{application}: {_configurations(averaged)} had several results, of which "
                    f"the mean was taken; they differ by up to {widest[0]:.1%}, at "
                    f"{widest[1]}.")  # fmt: skip
    return points


def _results(row: _Row) -> str:
    return f"{row.point.seconds:g} s at {row.point.watts:g} W"


def _rows_are(count: int) -> str:
    return "1 row is" if count == 1 else f"{count:,} rows are"


def _configurations(count: int) -> str:
    return "1 configuration" if count == 1 else f"{count:,} configurations"


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _table(application: str, points: Sequence[Point]) -> Table:
    nodes, cores, cap_w, seconds, watts = zip(*points, strict=True)
    return sorted_table(application, np.array(nodes, np.int64), np.array(cores, np.int64),
                        np.array(cap_w, np.float64), np.array(seconds, np.float64),
                        np.array(watts, np.float64))  # fmt: skip


# -- repairs


def _holes(table: Table) -> Iterator[tuple[int, int, float]]:
    """Yields the configurations of the grid (all nodes by all cores by all caps) that lack."""
    columns = (table.nodes.tolist(), table.cores.tolist(), table.cap_w.tolist())
    there = set(zip(*columns, strict=True))
    grid = product(*(sorted(set(column)) for column in columns))
    return (each for each in grid if each not in there)


def _hole_count(table: Table) -> int:
    sizes = (len(np.unique(column)) for column in (table.nodes, table.cores, table.cap_w))
    return math.prod(sizes) - len(table)


def _without_holes(table: Table, told: list[str]) -> Table:
    """Returns a table in which holes are filled: by the mean, over the axes along which a hole has
    neighbours on both sides, of the straight line between them in logarithms. A grid of which less
    than half was measured stays as it is."""
    if _hole_count(table) > len(table):
        return table
    columns = (table.nodes, table.cores, table.cap_w)
    logs = [np.log(column) for column in columns]
    results = (np.log(table.seconds), np.log(table.watts))
    filled: list[Point] = []
    for hole in _holes(table):
        estimates = []
        for axis in range(3):
            others = [columns[at] == hole[at] for at in range(3) if at != axis]
            line = np.flatnonzero(others[0] & others[1])
            above = int(np.searchsorted(columns[axis][line], hole[axis]))
            if 0 < above < len(line):
                low, high = line[above - 1], line[above]
                x = (math.log(hole[axis]) - logs[axis][low]) / (logs[axis][high] - logs[axis][low])
                estimates.append([(1 - x) * of[low] + x * of[high] for of in results])
        if estimates:
            mean = np.mean(estimates, axis=0)
            filled.append(Point(*hole, *(_rounded(math.exp(value)) for value in mean)))
    if not filled:
        return table
    told.append(f"{table.application}: {_configurations(len(filled))} that lacked between measured "
                f"ones {'was' if len(filled) == 1 else 'were'} interpolated, {filled[0].name} "
                "first.")  # fmt: skip
    return _table(table.application, [*map(table.point, range(len(table))), *filled])


def _monotone(table: Table, told: list[str]) -> Table:
    """Returns a table in which a higher cap takes no longer and draws no less: a higher cap can
    always be left unused, so what was measured otherwise is noise, and neighbours are pooled."""
    seconds, watts = np.empty_like(table.seconds), np.empty_like(table.watts)
    first = np.flatnonzero(np.append(True, np.diff(table.nodes) | np.diff(table.cores)))
    for begin, end in pairwise([*first.tolist(), len(table)]):
        seconds[begin:end] = -_rising(-table.seconds[begin:end])
        watts[begin:end] = _rising(table.watts[begin:end])
    for what, old, new in (("times", table.seconds, seconds), ("watts", table.watts, watts)):
        change = np.abs(new / old - 1.0)
        if (moved := new != old).any():
            at = table.point(int(np.argmax(change)))
            rule = "rose" if what == "times" else "fell"
            told.append(f"{table.application}: {what} that {rule} with the cap were averaged with "
                        f"their neighbours in {_configurations(int(moved.sum()))}, by up to "
                        f"{change.max():.1%}, at {at.name}.")  # fmt: skip
    return Table(table.application, table.nodes, table.cores, table.cap_w, seconds, watts)


def _rising(values: Numbers) -> Numbers:
    """Returns the nearest values that do not fall: adjacent ones that do are replaced by their
    mean, until none do."""
    pools: list[tuple[float, int]] = []
    for value in values.tolist():
        total, count = value, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            before = pools.pop()
            total, count = total + before[0], count + before[1]
        pools.append((total, count))
    return np.array([total / count for total, count in pools for _ in range(count)])


# -- what is odd


def oddities(table: Table, sockets: int = 2) -> list[str]:
    """Returns what is odd about a table and what follows from it, in sentences."""
    told: list[str] = []
    if len(table) < 2:
        told.append(f"{table.application}: a single configuration is known: there is no choice.")
    if holes := _hole_count(table):
        first = Point(*next(_holes(table)), 0, 0).name
        told.append(f"{table.application}: {holes:,} of {holes + len(table):,} configurations "
                    f"{'is' if holes == 1 else 'are'} missing, {first} first; what was not "
                    "measured is never chosen.")  # fmt: skip
    told += [check(table) for check in (_no_packed_max, _node_gap, _not_summed)]
    told += [_fall(table, axis) for axis in ("nodes", "cores", "cap_w")]
    told += [_slower(table), _above_caps(table, sockets)]
    return [words for words in told if words]


def _no_packed_max(table: Table) -> str:
    cores, cap_w = int(table.cores.max()), float(table.cap_w.max())
    if ((table.cores == cores) & (table.cap_w == cap_w)).any():
        return ""
    return (f"{table.application}: no configuration has both all {cores} cores and the highest cap,"
            f" {cap_w:g} W: packed-max and speed-ups over it are not known.")  # fmt: skip


def _node_gap(table: Table) -> str:
    nodes = np.unique(table.nodes)
    steps = np.diff(nodes)
    if len(steps) < 3 or 2 * (steps == steps.min()).sum() <= len(steps):
        return ""
    wide = np.flatnonzero((steps > steps.min()) & (steps % steps.min() == 0))
    if not len(wide) or (steps % steps.min()).any():
        return ""
    low, high = int(nodes[wide[0]]), int(nodes[wide[0] + 1])
    return (f"{table.application}: node counts are {int(steps.min())} apart, and between {low} and "
            f"{high} there are none.")  # fmt: skip


def _not_summed(table: Table) -> str:
    """Tells of watts that are as many on many nodes as on few."""
    few, many = _neighbours(table, "nodes")
    if not len(few):
        return ""
    growth = np.log(table.watts[many] / table.watts[few])
    if np.median(growth / np.log(table.nodes[many] / table.nodes[few])) > 0.3:
        return ""
    return (f"{table.application}: watts hardly grow with nodes: are they per node? Those of all "
            "nodes together are needed.")  # fmt: skip


def _neighbours(table: Table, axis: str) -> tuple[Whole, Whole]:
    """Returns the places of points next to each other along an axis, all else equal."""
    names = [name for name in ("nodes", "cores", "cap_w") if name != axis]
    columns: list[npt.NDArray[np.float64]] = [getattr(table, name) for name in (axis, *names)]
    order = np.lexsort(tuple(columns))
    same = np.ones(max(0, len(order) - 1), np.bool_)
    for column in columns[1:]:
        same &= np.diff(column[order]) == 0
    return order[:-1][same], order[1:][same]


def _fall(table: Table, axis: str) -> str:
    """Tells of power that falls where nodes, cores or the cap rise."""
    low, high = _neighbours(table, axis)
    rises = "the cap rises" if axis == "cap_w" else f"{axis} rise"
    fall = 1.0 - table.watts[high] / table.watts[low]
    return _worst(table, low, high, fall, lambda it: f"{it.watts:,.6g} W",
                  f"power falls where {rises}")  # fmt: skip


def _slower(table: Table) -> str:
    """Tells of times that rise with the cap. More cores may well slow down: memory is shared."""
    low, high = _neighbours(table, "cap_w")
    rise = table.seconds[high] / table.seconds[low] - 1.0
    return _worst(table, low, high, rise, lambda it: f"{it.seconds:.6g} s",
                  "time rises where the cap rises")  # fmt: skip


def _worst(
    table: Table, low: Whole, high: Whole, by: Numbers, show: Callable[[Point], str], what: str
) -> str:
    """Returns how often points go against a rule by more than the tolerance, and the worst case."""
    count = int((by > TOLERANCE).sum())
    if not count:
        return ""
    at = int(np.argmax(by))
    one, other = table.point(int(low[at])), table.point(int(high[at]))
    return (f"{table.application}: {what}, by more than {TOLERANCE:.0%} {_times(count)}; most from "
            f"{one.name}, {show(one)}, to {other.name}, {show(other)}.")  # fmt: skip


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _above_caps(table: Table, sockets: int) -> str:
    each = table.watts / (table.nodes * sockets)
    over = each - (table.cap_w + MEMORY_W)
    if not (over > 0).any():
        return ""
    at = int(np.argmax(over))
    return (f"{table.application}: {_configurations(int((over > 0).sum()))} with sockets more than "
            f"{MEMORY_W:g} W above their cap; most at {table.point(at).name}, {each[at]:.4g} W for "
            f"each of {sockets} sockets per node.")  # fmt: skip


def _unlike(tables: Mapping[str, Table]) -> list[str]:
    """Tells of applications that were not measured with all cores, or up to the highest cap, of the
    others: for them packed and max mean something else."""
    told = []
    for column, noun in (("cores", "cores per node"), ("cap_w", "W as a cap")):
        most = {name: float(getattr(table, column).max()) for name, table in tables.items()}
        highest = max(most.values())
        told += [f"{name}: at most {value:g} {noun}, where others have {highest:g}: packed-max is "
                 f"with {value:g}." for name, value in most.items() if value < highest]  # fmt: skip
    return told
