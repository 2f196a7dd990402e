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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from odonata.provisioning.table import Point, Table
from odonata.provisioning.table_checks import (
    configurations,
    monotone,
    oddities,
    rounded,
    table_of_points,
    unlike,
    without_holes,
)
from pdes.errors import Refused, os_words
from pdes.replacing import replacing
from pdes.shown import csv_cell, csv_text
from topology.settings import Setting

Where = str | os.PathLike[str]

COLUMNS = ("application", "nodes", "cores", "cap_w", "seconds", "watts")
ALIASES = {"job_id": "application", "pkg_cap": "cap_w", "exec_time": "seconds", "tot_pkg": "watts"}
RANGES = {
    "nodes": Setting("whole", "", least=1, most=10**7),
    "cores": Setting("whole", "", least=1, most=10**5),
    "cap_w": Setting("number", "", least=1e-3, most=1e9),
    "seconds": Setting("number", "", least=1e-6, most=1000 * 365 * 86400.0),
    "watts": Setting("number", "", least=1e-3, most=1e12),
}
"""What is accepted of each column: beyond it, a number is a mistake."""
HEADER = f"a header of {','.join(COLUMNS)}, or {','.join({v: k for k, v in ALIASES.items()})}"
SEPARATORS = (",", ";", "\t")
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
        table = table_of_points(application, points)
        table = without_holes(table, told) if repair else table
        table = monotone(table, told) if repair else table
        tables[application] = table
    for table in tables.values():
        told += oddities(table)
    return Tables(tables, (*told, *unlike(tables, sockets)))


def write_tables(path: Where, tables: Mapping[str, Table]) -> None:
    """Write tables by application to a CSV file that `read_tables` reads back as equal ones; .gz is
    compressed. A file that was there is replaced when all is written."""
    text = io.StringIO()
    text.writelines(f"# {line}\n" for line in COMMENTS)
    text.write(",".join(COLUMNS) + "\n")
    for application, table in tables.items():
        name = _quoted(csv_cell(application))
        columns = (table.nodes, table.cores, table.cap_w, table.seconds, table.watts)
        for row in zip(*(column.tolist() for column in columns), strict=True):
            cells = (repr(value).removesuffix(".0") for value in row)
            text.write(f"{name},{','.join(cells)}\n")
    data = text.getvalue().encode()
    packed = gzip.compress(data, mtime=0) if os.fspath(path).lower().endswith(".gz") else data
    with replacing(Path(path).resolve()) as part:  # a link stays one
        part.write_bytes(packed)


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
        application = csv_text(application)
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
    how = RANGES[column]
    accepted = f"{column} is {how.all_accepted}, without a unit"
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
    whole = how.kind == "whole" and value.is_integer()
    if how.wrong(int(value) if whole else value):
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
        points.append(first.point._replace(seconds=rounded(sum(seconds) / len(same)),
                                           watts=rounded(sum(watts) / len(same))))  # fmt: skip
    if equal:
        told.append(f"{application}: {_rows_are(equal)} given again, and kept once.")
    if averaged:
        told.append(f"{application}: {configurations(averaged)} had several results, of which "
                    f"the mean was taken; they differ by up to {widest[0]:.1%}, at "
                    f"{widest[1]}.")  # fmt: skip
    return points


def _results(row: _Row) -> str:
    return f"{row.point.seconds:g} s at {row.point.watts:g} W"


def _rows_are(count: int) -> str:
    return "1 row is" if count == 1 else f"{count:,} rows are"
