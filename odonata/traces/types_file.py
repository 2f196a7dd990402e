"""Tables of types of jobs: those that come with this package, CSV files, and rows in an experiment.

The columns, which may be in any order, are those of `odonata.traces.job_type.COLUMNS`; lines that
begin with # are comments. What cannot be right is refused, with its place and what is accepted.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from odonata.traces.job_type import COLUMNS, IDLE, MOST_NODES, NUMBERS, JobType, accepts
from odonata.traces.lines import pieces
from pdes.errors import Findings, Refused, os_words
from pdes.shown import csv_cell, csv_text

HOME = Path(__file__).resolve().parent / "data"
"""The directory of the tables that come with this package."""
BUILT_IN = ("aqa", "qosg", "meggie-like", "emmy-like")
FILE = ".csv"
SIZES = re.compile(r"(\d{1,10})(?:-(\d{1,10}))?|>=(\d{1,10})|<=(\d{1,10})", re.ASCII)


class Read(NamedTuple):
    """A table as it was read: its types, and what a node without a job draws, if it says so."""

    types: tuple[JobType, ...]
    idle_w: float | None


def path_of(name: str) -> Path:
    """Returns the file of a table: one that comes with this package, or a user's."""
    if name in BUILT_IN:
        return HOME / f"{name}{FILE}"
    if not name.endswith(FILE):
        raise Refused(f"{name}: one of {', '.join(BUILT_IN)}, or a file that ends in {FILE}")
    return Path(name)


def of_file(name: str) -> Read:
    path = path_of(name)
    try:
        told = path.stat()
    except OSError as error:
        raise Refused(os_words(error)) from None
    except ValueError as error:  # a null byte in the path
        raise Refused(f"{name!r}: {error}; check the path") from None
    return _version(name, str(path), (told.st_mtime_ns, told.st_size))


@cache
def _version(name: str, path: str, version: tuple[int, int]) -> Read:
    """Returns the table in a version of a file, read once."""
    try:
        text = b"".join(pieces(path)).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Refused(f"{path}: not text in UTF-8: save it as CSV in UTF-8") from None
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1)
             if line.strip(" \t,;") and not line.lstrip().startswith("#")]  # fmt: skip
    if not lines:
        raise Refused(f"{path}: it is empty: a header of {', '.join(COLUMNS)}, or some of them, is "
                      "needed, then rows")  # fmt: skip
    first, header = lines[0]
    separator = max((",", ";", "\t"), key=header.count)
    columns = [cell.strip().lower() for cell in next(csv.reader([header], delimiter=separator))]
    _check_columns(f"{path}: line {first}", columns, whole=True)
    rows = []
    for line, row in lines[1:]:
        cells = [csv_text(cell.strip()) for cell in next(csv.reader([row], delimiter=separator))]
        if len(cells) != len(columns):
            raise Refused(f"{path}: line {line}: {len(cells)} columns, and the header in line "
                          f"{first} has {len(columns)}")  # fmt: skip
        rows.append((f"{path}: line {line}, column", dict(zip(columns, cells, strict=True))))
    return _table(name, rows)


def csv_of(types: Sequence[JobType], idle_w: float | None) -> str:
    """Returns the text of a file that is read back as these types; columns that would be empty are
    left out."""
    rows: list[dict[str, Any]] = []
    if idle_w is not None:
        rows.append({"type": IDLE, "by": IDLE, "power_max_w": idle_w})
    for one in types:
        row = {
            "type": one.name, "by": one.by, "nodes": one.nodes, "time_min_s": one.shortest_s,
            "power_max_w": one.most_w, "power_min_w": one.least_w,
            "delay_rate_per_s": one.delay_rate,
            "q_threshold": None if one.threshold == math.inf else one.threshold,
        }  # fmt: skip
        longest = None if one.shortest_s is None else round(one.shortest_s * one.slowdown, 6)
        if longest is not None and longest / (one.shortest_s or 1) == one.slowdown:
            row["time_max_s"] = longest
        else:  # which is exact
            row["slowdown"] = one.slowdown
        rows.append(row)
    columns = [it for it in COLUMNS if any(row.get(it) is not None for row in rows)]
    text = io.StringIO()
    text.writelines(f"# {column}: {COLUMNS[column].about}\n" for column in columns)
    out = csv.writer(text, lineterminator="\n")
    out.writerow(columns)
    for row in rows:
        out.writerow([_cell(row.get(column)) for column in columns])
    return text.getvalue()


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    return csv_cell(value) if isinstance(value, str) else repr(value).removesuffix(".0")


def _check_columns(where: str, columns: Sequence[str], whole: bool = False) -> None:
    """Refuse a header with columns that there are not, twice, or without those that must be;
    `whole`: it is that of all rows."""
    for at, column in enumerate(columns):
        if column not in COLUMNS:
            raise Refused(f"{where}: column {column!r}: unknown; there are {', '.join(COLUMNS)}")
        if column in columns[:at]:
            raise Refused(f"{where}: column {column}: there twice; leave one out")
    needed = ("type", "power_max_w", "power_min_w") if whole else ("type", "power_max_w")
    missing = [f"{column} ({COLUMNS[column].about})" for column in needed if column not in columns]
    if whole and "slowdown" not in columns and not {"time_min_s", "time_max_s"} <= {*columns}:
        missing.append("slowdown (or time_min_s and time_max_s)")
    if missing:
        what = "columns are missing" if missing[1:] else "a column is missing"
        raise Refused(f"{where}: {what}: {', '.join(missing)}; there are "
                      f"{', '.join(columns) or 'none'}")  # fmt: skip


def of_rows(given: Sequence[Any]) -> Read:
    """Returns the table that an experiment has in it; a row may also be pairs of column and
    value."""
    rows = []
    for number, row in enumerate(given, 1):
        try:
            cells = dict(row)
        except (TypeError, ValueError):
            raise Refused(f"row {number}: a table, as {{ type = \"a\", power_max_w = 300, "
                          "power_min_w = 200, slowdown = 1.2 }}") from None  # fmt: skip
        _check_columns(f"row {number}", list(cells))
        rows.append((f"row {number},", cells))
    return _table("inline", rows)


def _table(name: str, rows: Sequence[tuple[str, Mapping[str, Any]]]) -> Read:
    """Returns a table from its rows, each with the words for where it is; refused with all that is
    odd."""
    types: list[JobType] = []
    idle_w: float | None = None
    seen: set[str] = set()
    found = Findings()
    for where, cells in rows:
        row = _Row(where, cells, found)
        if row.by == IDLE:
            found.unless(idle_w is None, f"{where} by: {IDLE}", "there twice; leave one out")
            idle_w = row.number("power_max_w")
            found.unless(idle_w is not None, f"{where} power_max_w", "a number is needed")
            continue
        one = row.job_type()
        if one is None:
            continue
        this, last = f"{where} type: {one.name}", not any(each.by == "any" for each in types)
        found.unless(one.name not in seen, this, "there twice: each type has one row")
        found.unless(last, this, "below the row with by = any, which takes all jobs: put that last")
        seen.add(one.name)
        types.append(one)
    found.refuse()
    if not types:
        raise Refused(f"{name}: it has no row of a type: at least one is needed")
    return Read(tuple(types), idle_w)


class _Row:
    """A row as it was given: numbers, or their texts. What is odd about it goes to the findings."""

    def __init__(self, where: str, cells: Mapping[str, Any], found: Findings) -> None:
        self.where, self.cells, self.found = where, cells, found
        self.fine = True
        self.by = str(cells.get("by", "") or "application").strip().lower()

    def complain(self, column: str, given: str, rule: str) -> None:
        self.fine = False
        self.found.unless(False, f"{self.where} {column}: {given}", rule)

    def number(self, column: str) -> float | None:
        """Returns what a cell holds, None where it is empty."""
        given = self.cells.get(column)
        if given is None or given == "":
            return None
        try:
            if isinstance(given, bool) or (isinstance(given, str) and "_" in given):
                raise ValueError
            value = float(given)
        except (TypeError, ValueError):
            value = math.nan
        if not accepts(column, value):
            shown = given if isinstance(given, str) else f"{given}"
            sign = "; its decimal sign must be a point" if "," in shown else ""
            self.complain(
                column, shown[:60], f"{COLUMNS[column].all_accepted}, without a unit{sign}"
            )
            return None
        return value

    def job_type(self) -> JobType | None:
        """Returns the type, None after noting what is odd about it."""
        name = str(self.cells.get("type", "")).strip()
        sizes = (1, MOST_NODES)
        if self.by == "nodes":
            sizes = self._sizes(name)
        for column in ("power_max_w", "power_min_w"):
            if self.cells.get(column, "") in ("", None):
                self.complain(column, "empty", f"{COLUMNS[column].about}, is needed")
        numbers = {column: self.number(column) for column in NUMBERS}
        slowdown = self._slowdown(numbers)
        if not self.fine:
            return None
        most_w, least_w, nodes = (numbers[it] for it in ("power_max_w", "power_min_w", "nodes"))
        assert most_w is not None
        assert least_w is not None
        threshold = numbers["q_threshold"]
        try:
            return JobType(
                name, most_w, least_w, slowdown, None if nodes is None else int(nodes),
                numbers["time_min_s"], math.inf if threshold is None else threshold,
                numbers["delay_rate_per_s"], self.by, *sizes,
            )  # fmt: skip
        except Refused as refusal:
            for problem in refusal.problems:
                self.complain(problem.fields[0], problem.given, problem.rule)
        return None

    def _sizes(self, name: str) -> tuple[int, int]:
        """Returns the smallest and the largest size of a class, by its name."""
        match = SIZES.fullmatch(name.replace(" ", ""))
        if match:
            one, last, least, most = (None if it is None else int(it) for it in match.groups())
            fewest = 1 if most is not None else least if least is not None else one
            most = most or last or (MOST_NODES if least is not None else one)
            assert fewest is not None
            assert most is not None
            if 1 <= fewest <= most <= MOST_NODES:
                return fewest, most
        self.complain("type", repr(name), "sizes of jobs, as 4, 1-4, <=4 or >=64")
        return 1, MOST_NODES

    def _slowdown(self, numbers: Mapping[str, float | None]) -> float:
        """Returns T_max / T_min, by either of the two ways to give it."""
        most = COLUMNS["slowdown"].most or math.inf
        shortest, longest, slowdown = (
            numbers[it] for it in ("time_min_s", "time_max_s", "slowdown")
        )
        if longest is not None and slowdown is not None:
            self.complain("slowdown", f"{slowdown:g}", "there is time_max_s as well: leave one "
                          "empty")  # fmt: skip
        elif slowdown is not None:
            return slowdown
        elif longest is None:
            if self.fine:
                self.complain("slowdown", "empty", f"{COLUMNS['slowdown'].about} is needed, or "
                              "time_max_s; 1: caps do not slow it down")  # fmt: skip
        elif shortest is None:
            self.complain("time_max_s", f"{longest:g}", "time_min_s is needed as well; or give "
                          "slowdown")  # fmt: skip
        elif not shortest <= longest <= shortest * most:
            self.complain("time_max_s", f"{longest:g}", f"at least time_min_s, {shortest:g} s, and "
                          f"at most {most:g} times that")  # fmt: skip
        else:
            return longest / shortest
        return 1.0
