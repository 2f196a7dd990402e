"""Types of jobs: what a node of a job draws, and how long the job takes, without a cap and under
the lowest one.

A table of types is one of those that come with this package, a CSV file, or rows in an experiment.
Its columns, which may be in any order, are those in `COLUMNS`. A row with `by` = idle is no type:
its `power_max_w` is what a node without a job draws.
"""

from __future__ import annotations

import csv
import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from odonata.traces.lines import pieces
from odonata.traces.trace import LONGEST_NAME
from pdes.errors import Findings, Refused, os_words

if TYPE_CHECKING:
    from odonata.traces.trace import Trace, Whole

Numbers = npt.NDArray[np.float64]

HOME = Path(__file__).resolve().parent / "data"
"""The directory of the tables that come with this package."""
BUILT_IN = ("aqa", "qosg")
FILE = ".csv"
BY = ("application", "user", "project", "nodes", "any")
IDLE = "idle"
MOST_NODES = 10**9
COLUMNS = {
    "type": "its name: that of an application, user or project, or sizes of jobs, as 1-4 or >=64",
    "by": f"what jobs are matched by: {', '.join(BY)}; application unless given. {IDLE}: the row "
    "tells what a node without a job draws",
    "nodes": "nodes of a job that a model makes",
    "time_min_s": "its run time without a cap, in s",
    "time_max_s": "its run time under the lowest cap, in s; or give slowdown",
    "slowdown": "time_max_s / time_min_s",
    "power_max_w": "what a node draws without a cap, in W",
    "power_min_w": "the lowest cap of a node, in W",
    "q_threshold": "the degradation that its jobs are to stay below; empty: none",
    "delay_rate_per_s": "how fast the chance of a delay falls with its length, for QoSG, in 1/s",
}
"""The columns of a table, and what they hold."""
LIMITS = {
    "nodes": (1.0, 1e9), "time_min_s": (1e-6, 1e10), "time_max_s": (1e-6, 1e12),
    "slowdown": (1.0, 1000.0), "power_max_w": (1e-3, 1e9), "power_min_w": (1e-3, 1e9),
    "q_threshold": (1e-6, math.inf), "delay_rate_per_s": (1e-12, 1e6),
}  # fmt: skip
"""What is accepted of each column of numbers: beyond it, a number is a mistake."""
SIZES = re.compile(r"(\d{1,10})(?:-(\d{1,10}))?|>=(\d{1,10})|<=(\d{1,10})", re.ASCII)
ANY_ROW = "a last row with by = any takes the rest"


@dataclass(frozen=True)
class JobType:
    """One type of jobs: applications, users, projects or sizes that draw the same."""

    name: str
    """What jobs are matched by, as `by` says."""
    most_w: float
    """What a node draws without a cap, p_max."""
    least_w: float
    """What a node draws under the lowest cap, p_min; where it is `most_w` or more, caps do
    nothing."""
    slowdown: float = 1.0
    """How many times as long a job takes under the lowest cap, T_max / T_min."""
    nodes: int | None = None
    """The nodes of a job that a model makes."""
    shortest_s: float | None = None
    """The run time without a cap, T_min, of a job that a model makes; jobs of a trace have their
    own."""
    threshold: float = math.inf
    """The degradation that its jobs are to stay below, Q_thres; infinite: there is none."""
    delay_rate: float | None = None
    """How fast the chance of a delay is to fall with its length, δ_D, in 1/s; None: not stated."""
    by: str = "application"
    fewest: int = 1
    """The smallest size of a class of sizes."""
    most: int = MOST_NODES
    """The largest one."""

    def __post_init__(self) -> None:
        found = Findings()
        fine = 0 < len(self.name) <= LONGEST_NAME and self.name.isprintable()
        found.unless(fine and self.name == self.name.strip(), repr(self.name[:60]),
                     f"a name, of up to {LONGEST_NAME} printable letters", "type")  # fmt: skip
        found.unless(self.by in BY, repr(self.by), f"one of {', '.join(BY)}, or {IDLE}", "by")
        values = {
            "nodes": self.nodes, "time_min_s": self.shortest_s, "slowdown": self.slowdown,
            "power_max_w": self.most_w, "power_min_w": self.least_w,
            "q_threshold": self.threshold, "delay_rate_per_s": self.delay_rate,
        }  # fmt: skip
        for column, value in values.items():
            if value is not None:
                low, high = LIMITS[column]
                found.unless(low <= value <= high, f"{value:g}", accepted(column), column)
        if self.nodes is not None and self.by == "nodes":
            found.unless(self.fewest <= self.nodes <= self.most, f"{self.nodes:g}",
                         f"within the sizes of the type, {self.name}", "nodes")  # fmt: skip
        found.refuse()

    @property
    def longest_s(self) -> float | None:
        """Returns the run time under the lowest cap, T_max; None where no time is known."""
        return None if self.shortest_s is None else self.shortest_s * self.slowdown


def accepted(column: str) -> str:
    """Returns what is accepted of a column of numbers, in words."""
    low, high = LIMITS[column]
    kind = "a whole number" if column == "nodes" else "a number"
    return f"{kind} of at least {low:g}" + ("" if high == math.inf else f", at most {high:g}")


@dataclass(frozen=True)
class Types(Sequence[JobType]):
    """A table of types of jobs, in the order in which they are tried on a job."""

    rows: tuple[JobType, ...]
    name: str = "inline"
    """What it is called: aqa, qosg, or the path of its file."""
    idle_w: float | None = None
    """What a node without a job draws, where the table says so."""

    def __post_init__(self) -> None:
        if not self.rows:
            raise Refused(f"{self.name}: no type: at least one row is needed")

    @classmethod
    def of(cls, given: Any) -> Types:
        """Returns a table by its name or the path of a CSV file, or from rows: mappings whose keys
        are columns."""
        if isinstance(given, Types):
            return given
        if isinstance(given, str | Path):
            return _of_file(str(given))
        if isinstance(given, Mapping) or not isinstance(given, Sequence):
            raise Refused(f"{given!r}: {', '.join(BUILT_IN)}, a file that ends in {FILE}, or rows")
        return _of_rows(given)

    @overload
    def __getitem__(self, at: int) -> JobType: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[JobType, ...]: ...
    def __getitem__(self, at: Any) -> Any:
        return self.rows[at]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[JobType]:
        return iter(self.rows)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.rows)

    @cached_property
    def most_w(self) -> Numbers:
        """[type]: watts per node without a cap."""
        return self._column("most_w")

    @cached_property
    def least_w(self) -> Numbers:
        """[type]: watts per node under the lowest cap, as the table has them."""
        return self._column("least_w")

    @cached_property
    def low_w(self) -> Numbers:
        """[type]: the least that a node draws: no cap makes it draw more than without one."""
        return _kept(np.minimum(self.least_w, self.most_w))

    @cached_property
    def slowdown(self) -> Numbers:
        """[type]: T_max / T_min."""
        return self._column("slowdown")

    @cached_property
    def threshold(self) -> Numbers:
        """[type]: the degradation that jobs are to stay below; infinite where there is none."""
        return self._column("threshold")

    @cached_property
    def nodes(self) -> Numbers:
        """[type]: nodes of a job that a model makes; nan where none are known."""
        return self._column("nodes")

    @cached_property
    def shortest_s(self) -> Numbers:
        """[type]: run time in s of a job that a model makes; nan where none is known."""
        return self._column("shortest_s")

    @cached_property
    def delay_rate(self) -> Numbers:
        """[type]: δ_D in 1/s; nan where none is stated."""
        return self._column("delay_rate")

    def _column(self, field: str) -> Numbers:
        values = (getattr(each, field) for each in self.rows)
        return _kept(np.array([math.nan if it is None else it for it in values], np.float64))

    @cached_property
    def digest(self) -> str:
        """Returns a hash of all that the table says; not of what it is called."""
        said = [str(self.idle_w), *(str(astuple(each)) for each in self.rows)]
        return hashlib.blake2b("\n".join(said).encode(), digest_size=16).hexdigest()

    def place(self, name: str) -> int:
        """Returns the position of a type, by its name."""
        if name not in self.names:
            raise Refused(f"type {name!r}: {self.name} has {', '.join(self.names)}")
        return self.names.index(name)

    def match(self, trace: Trace) -> Whole:
        """Returns the position of each job's type: the first row that matches; refused where a job
        has none."""
        none = len(self.rows)
        found = np.full(len(trace), none, np.int64)
        for by in ("application", "user", "project"):
            places = {each.name: at for at, each in enumerate(self.rows) if each.by == by}
            if places:
                codes: Whole = getattr(trace, by)
                known: tuple[str, ...] = getattr(trace, f"{by}s")
                of = np.array([places.get(name, none) for name in known], np.int64)
                found = np.minimum(found, of[codes])
        for at, each in enumerate(self.rows):
            if each.by in ("nodes", "any"):
                fits = (trace.nodes >= each.fewest) & (trace.nodes <= each.most)
                found = np.where(fits, np.minimum(found, at), found)
        left = found == none
        if left.any():
            raise Refused(self._unmatched(trace, left))
        return np.asarray(found, np.int64)

    def _unmatched(self, trace: Trace, left: npt.NDArray[np.bool_]) -> str:
        codes, counts = np.unique(trace.application[left], return_counts=True)
        most_first = codes[np.argsort(-counts, kind="stable")]
        names = [trace.applications[code] or "no name" for code in most_first.tolist()]
        count = int(left.sum())
        rows = [
            each.name if each.by == "application" else f"{each.by} {each.name}" for each in self
        ]
        return (f"{trace.name}: {count:,} of {len(trace):,} jobs {'has' if count == 1 else 'have'} "
                f"no type: jobs of {_listed(names)}, and types {self.name} has {_listed(rows)}; "
                f"{ANY_ROW}")  # fmt: skip


def _kept(column: Numbers) -> Numbers:
    column.flags.writeable = False
    return column


def _listed(names: Sequence[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if names[most:] else "")


# -- from a file


def path_of(name: str) -> Path:
    """Returns the file of a table: one that comes with this package, or a user's."""
    if name in BUILT_IN:
        return HOME / f"{name}{FILE}"
    if not name.endswith(FILE):
        raise Refused(f"{name}: one of {', '.join(BUILT_IN)}, or a file that ends in {FILE}")
    return Path(name)


def _of_file(name: str) -> Types:
    path = path_of(name)
    try:
        told = path.stat()
    except OSError as error:
        raise Refused(os_words(error)) from None
    except ValueError as error:  # a null byte in the path
        raise Refused(f"{name!r}: {error}; check the path") from None
    return _version(name, str(path), (told.st_mtime_ns, told.st_size))


@cache
def _version(name: str, path: str, version: tuple[int, int]) -> Types:
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
    _check_columns(f"{path}: line {first}", columns)
    rows = []
    for line, row in lines[1:]:
        cells = [cell.strip() for cell in next(csv.reader([row], delimiter=separator))]
        if len(cells) != len(columns):
            raise Refused(f"{path}: line {line}: {len(cells)} columns, and the header in line "
                          f"{first} has {len(columns)}")  # fmt: skip
        rows.append((f"{path}: line {line}, column", dict(zip(columns, cells, strict=True))))
    return _table(name, rows)


def _check_columns(where: str, columns: Sequence[str]) -> None:
    """Refuse a header with columns that there are not, twice, or without those that must be."""
    for at, column in enumerate(columns):
        if column not in COLUMNS:
            raise Refused(f"{where}: column {column!r}: unknown; there are {', '.join(COLUMNS)}")
        if column in columns[:at]:
            raise Refused(f"{where}: column {column}: there twice; leave one out")
    for column in ("type", "power_max_w"):
        if column not in columns:
            raise Refused(f"{where}: there is no column {column}: {COLUMNS[column]}")


def _of_rows(given: Sequence[Any]) -> Types:
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


def _table(name: str, rows: Sequence[tuple[str, Mapping[str, Any]]]) -> Types:
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
    return Types(tuple(types), name, idle_w)


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
        low, high = LIMITS[column]
        if not low <= value <= high or (column == "nodes" and value != int(value)):
            shown = given if isinstance(given, str) else f"{given}"
            sign = "; its decimal sign must be a point" if "," in shown else ""
            self.complain(column, shown[:60], f"{accepted(column)}, without a unit{sign}")
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
                self.complain(column, "empty", f"{COLUMNS[column]}, is needed")
        numbers = {column: self.number(column) for column in LIMITS}
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
                self.complain("slowdown", "empty", f"{COLUMNS['slowdown']} is needed, or time_max_s"
                              "; 1: caps do not slow it down")  # fmt: skip
        elif shortest is None:
            self.complain("time_max_s", f"{longest:g}", "time_min_s is needed as well; or give "
                          "slowdown")  # fmt: skip
        elif not shortest <= longest <= shortest * LIMITS["slowdown"][1]:
            self.complain("time_max_s", f"{longest:g}", f"at least time_min_s, {shortest:g} s, and "
                          f"at most {LIMITS['slowdown'][1]:g} times that")  # fmt: skip
        else:
            return longest / shortest
        return 1.0
