"""Logs: tables to which a row is appended when something happens, each written once.

A model declares them (`Streams.logs`). Its decisions append rows (`pdes.model.Decision`), or its
handlers note them down in its state, from where they are collected (`Streams.noted`). The first
column is the time at which it happened; the others are the model's. In a rank's file a log is a
group of 1-D datasets, `NAME/column`, as long as it has rows; a column that has several numbers in
each row is two of them, `NAME/column_count` with how many each row has, and `NAME/column` with all
of them, row after row.

Rows lie in the order of time and, within an instant, of agents: that does not depend on ranks, so a
log merged over ranks has the same bytes on any number of them. Rows gather in memory and are
written when all of their instant is known. A reader may follow: a row is there when the log's time
has it, which is written last; and no row is missing before the time in `logged_ps` (or another
tick).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pdes import disk
from pdes.disk import SLACK
from pdes.errors import Fault, Refused
from pdes.hdf5 import CHECKED_SERIES, Source, checked_scalar

CHUNK_ROWS = 1024
MOST_ROWS = 1 << 16
"""Rows that are gathered before they are written, whenever that is."""
MARK = "log"
"""The attribute of a group that is a log: the names of the columns that have several numbers."""
COUNT = "_count"
ABOUT_LOGGED = "no row of a log is missing before this time"

Array = npt.NDArray[Any]


class Block(NamedTuple):
    """Rows that a handler noted down, as arrays: their times, ascending, and their columns, none of
    which has several numbers in a row. `agents` says at which agent each was noted down, in every
    block of a log or in none; it may be left out where all are of one agent."""

    times: Array
    columns: tuple[Array, ...]
    agents: Array | None = None


Appended = Sequence[tuple[str, Sequence[Any] | Block]]
"""Rows of logs: the name of a log, and the values of its columns, in order, without the time; or a
block of rows."""
Row = tuple[int, int, Sequence[Any]]
"""The time and the agent of a decision, and a row that it appended."""


class Field(NamedTuple):
    """A column of a log. `dtype` is numpy's name for what is kept; a column of `several` has any
    number of them in each row."""

    name: str
    unit: str
    about: str
    dtype: str = "i8"
    several: bool = False


class Log(NamedTuple):
    """A log by its columns; the time comes before them."""

    columns: tuple[Field, ...]
    about: str = ""

    def row(self, values: Sequence[Any]) -> Sequence[Any]:
        """Returns the values with a copy of each array: what it is taken from may change."""
        if any(column.several for column in self.columns):
            return [
                np.array(value).reshape(-1) if column.several else value
                for value, column in zip(values, self.columns, strict=True)
            ]
        return values


class Sets(NamedTuple):
    """The datasets of a log in a file: its times, and its columns by name."""

    times: Any
    columns: dict[str, Any]

    def extend(self, times: Array, columns: Mapping[str, Array], flush: Callable[[], None]) -> None:
        """Appends rows: they are there when their times are, which come last."""
        for name, part in columns.items():
            _extend(self.columns[name], part)
        flush()
        _extend(self.times, times)

    def room(self, times: Array, columns: Mapping[str, Array]) -> int:
        """Returns the bytes of the chunks that these rows will begin."""
        size = 0
        for made, part in ((self.times, times), *((self.columns[n], columns[n]) for n in columns)):
            begun = -(-len(made) // CHUNK_ROWS)
            size += (-(-(len(made) + len(part)) // CHUNK_ROWS) - begun) * CHUNK_ROWS * part.itemsize
        return size


class Book:
    """One rank's logs: the rows that have gathered, and the datasets that they go to."""

    def __init__(self, declared: Mapping[str, Log], kept: Sequence[str], tick: str) -> None:
        self._declared, self._tick = declared, tick
        self._logs = {name: declared[name] for name in kept}
        self._rows: dict[str, list[Row]] = {name: [] for name in kept}
        self._blocks: dict[str, list[Block]] = {name: [] for name in kept}
        self._sets: dict[str, Sets] = {}
        self._logged: Any = None
        self._gathered = 0
        self._oldest = 0.0
        self.final = 0
        """Every row before this time, in ticks, has been appended."""

    def __bool__(self) -> bool:
        """Tells whether there is any log to keep."""
        return bool(self._logs)

    def append(self, now: int, agent: int, rows: Appended) -> None:
        """Accept the rows of a decision. Those of a log that was not asked for are dropped."""
        for name, values in rows:
            log = self._logs.get(name)
            if log is None:
                if name not in self._declared:
                    known = ", ".join(self._declared) or "nothing"
                    raise Fault(f"a row for the log {name!r}: the model logs {known}")
                continue
            if type(values) is Block:
                self._append_block(name, values)
                continue
            if len(values) != len(log.columns):
                columns = ", ".join(column.name for column in log.columns)
                raise Fault(f"{name}: a row of {len(values)} values, {values!r}, for the columns "
                            f"{columns} (the time is not among them)")  # fmt: skip
            if not self._gathered:
                self._oldest = time.perf_counter()
            self._gathered += 1
            self._rows[name].append((now, agent, log.row(values)))

    def _append_block(self, name: str, block: Block) -> None:
        if not len(block.times):
            return
        if self._rows[name] or any(column.several for column in self._logs[name].columns):
            raise Fault(f"{name}: has rows of decisions, or several numbers in a row: no blocks")
        if not self._gathered:
            self._oldest = time.perf_counter()
        self._gathered += len(block.times)
        self._blocks[name].append(block)

    def due(self, flush_s: float) -> bool:
        """Tells whether rows have waited for long enough, or are too many to wait."""
        return self._gathered > 0 and (
            self._gathered >= MOST_ROWS or time.perf_counter() - self._oldest >= flush_s
        )

    # -- the file

    def create(self, file: Any) -> None:
        """Creates the datasets, without rows."""
        if not self:
            return
        self._logged = checked_scalar(file, f"logged_{self._tick}", np.int64(0))
        _describe(self._logged, "", self._tick, ABOUT_LOGGED)
        for name, log in self._logs.items():
            if name in file:
                raise Refused(f"{name}: is the name of a log and of a table")
            group = file.create_group(name)
            group.attrs["about"] = log.about
            group.attrs[MARK] = ",".join(column.name for column in log.columns if column.several)
            clock = Field(f"time_{self._tick}", self._tick, "when it happened")
            columns = {}
            for column in log.columns:
                if column.several:
                    counts = Field(column.name + COUNT, "1", f"how many of {column.name}")
                    columns[counts.name] = _create_set(group, counts, name)
                columns[column.name] = _create_set(
                    group, column, column.name if column.several else name
                )
            self._sets[name] = Sets(_create_set(group, clock, name), columns)

    @property
    def names(self) -> list[str]:
        """Returns the names of the logs that are kept."""
        return [*self._logs]

    def check(self, old: Any, cut: int, path: Path) -> None:
        """Refuse the file of a run that is gone on with where rows before `cut` are missing."""
        missing = [name for name in self._logs if name not in old or MARK not in old[name].attrs]
        if missing:
            raise Refused(f"{path}: the log {missing[0]} to go on with is not there")
        logged = int(old[f"logged_{self._tick}"][()])
        if logged < cut:
            raise Refused(f"{path}: its logs end at {logged} {self._tick}, before the checkpoint "
                          f"at {cut} {self._tick}")  # fmt: skip

    def restore(self, old: Any, cut: int) -> None:
        """Copies the rows before `cut` from such a file."""
        for name, (times, columns) in self._sets.items():
            there = old[name]
            rows = _rows_before(there[f"time_{self._tick}"], cut)
            for column, made in columns.items():
                several = column + COUNT in columns
                n = int(there[column + COUNT][:rows].sum()) if several else rows
                _copy(there[column], made, n)
            _copy(there[f"time_{self._tick}"], times, rows)
        self.final = cut

    def write(self, file: Any, handle: int, path: Path) -> None:
        """Hands the rows before `final` to the operating system, where a reader finds them."""
        if not self:
            return
        parts = {name: self._take(name) for name in self._rows}
        room = sum(self._sets[name].room(*part) for name, part in parts.items())
        disk.reserve(handle, room + SLACK, path)
        with disk.writing(path):
            for name, part in parts.items():
                if len(part[0]):
                    self._sets[name].extend(*part, file.flush)
            file.flush()
            self._logged[()] = self.final
            file.flush()
        self._gathered = sum(map(len, self._rows.values()))
        self._gathered += sum(len(b.times) for blocks in self._blocks.values() for b in blocks)
        self._oldest = time.perf_counter()

    def _take(self, name: str) -> tuple[Array, dict[str, Array]]:
        """Returns the times and the columns of the rows before `final`, which are no longer here.
        Rows come in order of time, and are put into that of agents."""
        if self._blocks[name]:
            return self._take_blocks(name)
        rows = self._rows[name]
        end = len(rows)
        while end > 0 and rows[end - 1][0] >= self.final:
            end -= 1
        ready, self._rows[name] = rows[:end], rows[end:]
        ready.sort(key=itemgetter(0, 1))
        columns = {}
        for i, column in enumerate(self._logs[name].columns):
            values = [row[2][i] for row in ready]
            if column.several:
                columns[column.name + COUNT] = np.array([len(v) for v in values], np.int64)
                values = [number for several in values for number in several.tolist()]
            columns[column.name] = _exactly(values, column.dtype, f"{name}/{column.name}")
        return np.array([row[0] for row in ready], np.int64), columns

    def _take_blocks(self, name: str) -> tuple[Array, dict[str, Array]]:
        """Returns times and columns of a log that has blocks. Rows of one instant are put into the
        order of agents; those of one agent stay as they came."""
        blocks, fields = self._blocks[name], self._logs[name].columns
        times = np.concatenate([block.times for block in blocks])
        columns = [
            np.concatenate(parts) for parts in zip(*(b.columns for b in blocks), strict=True)
        ]
        noted = [block.agents for block in blocks if block.agents is not None]
        agents = np.concatenate(noted) if noted else None
        end = _rows_before(times, self.final)
        rest = Block(times[end:], tuple(column[end:] for column in columns),
                     None if agents is None else agents[end:])  # fmt: skip
        self._blocks[name] = [rest] if len(rest.times) else []
        order: Any = slice(end)
        if agents is not None:
            order = np.lexsort((agents[:end], times[:end]))
        return times[:end], {
            field.name: column[order].astype(field.dtype)
            for field, column in zip(fields, columns, strict=True)
        }


def _create_set(group: Any, column: Field, dim: str) -> Any:
    made = group.create_dataset(
        column.name, (0,), column.dtype, maxshape=(None,), chunks=(CHUNK_ROWS,), **CHECKED_SERIES
    )
    _describe(made, dim, column.unit, column.about)
    return made


def _describe(made: Any, dim: str, unit: str, about: str) -> None:
    made.attrs["unit"], made.attrs["about"] = unit, about
    if dim:
        made.dims[0].label = dim


def _extend(made: Any, part: Array) -> None:
    length = len(made)
    made.resize(length + len(part), 0)
    made[length:] = part


def _copy(old: Any, made: Any, n: int) -> None:
    for first in range(0, n, MOST_ROWS):
        _extend(made, old[first : min(n, first + MOST_ROWS)])


def _rows_before(times: Any, cut: int) -> int:
    return int(np.searchsorted(times[:], cut))


def _exactly(values: list[Any], dtype: str, where: str) -> Array:
    """Returns the values as they are kept, none of them cut off or rounded to a whole number."""
    kept = np.dtype(dtype)
    with np.errstate(all="ignore"), suppress(ValueError, TypeError, OverflowError):
        given = np.array(values) if values else np.zeros(0, kept)
        if kept.kind == "S" and given.dtype.kind == "U":
            given = np.char.encode(given, "utf-8")
        made = given.astype(kept)
        rounded = kept.kind == "f" and given.dtype.kind in "iufb"
        if given.ndim == 1 and given.dtype != object and (rounded or (made == given).all()):
            return made
    raise Fault(f"{where}: {values[0]!r} ... are not all {kept.name}")


# -- several ranks' files as one


def is_log(thing: Any) -> bool:
    """Tells whether this group of a file is a log."""
    return MARK in thing.attrs


def lengths(file: Any, logs: Sequence[str]) -> list[int]:
    """Returns how many rows each of these logs has in a file."""
    return [len(file[name][f"time_{file.attrs['tick']}"]) for name in logs]


def logged(file: Any) -> int:
    """Returns the time before which no row of the file's logs is missing. A file that is written to
    has these rows in whatever is opened after this was asked."""
    name = f"logged_{file.attrs.get('tick', 'ps')}"
    kept = name in file or any(is_log(thing) for thing in file.values())
    return int(file[name][()]) if kept else 0


def merge(sources: Sequence[Source], name: str, joined: Any, final: int) -> None:
    """Writes the rows of the log `name` before `final`, of all ranks' files, which are in the order
    of agents, into `joined`. No file may miss any (`logged`)."""
    tick, attributes, described = sources[0].tried(
        lambda file: (file.attrs["tick"], dict(file[name].attrs), _described(file[name]))
    )

    def read(column: str, rows: Sequence[int]) -> list[Array]:
        found = []
        for source, n in zip(sources, rows, strict=True):
            found.append(source.read(f"{name}/{column}", slice(n)))
            if len(found[-1]) != n:
                raise Refused(f"{source.path}: has fewer values of {name}/{column} than rows")
        return found

    clocks = [source.read(f"{name}/time_{tick}") for source in sources]
    rows = [_rows_before(clock, final) for clock in clocks]
    times = np.concatenate([clock[:n] for clock, n in zip(clocks, rows, strict=True)])
    order = np.argsort(times, kind="stable")
    group = joined.create_group(name)
    group.attrs.update(attributes)
    several = str(attributes[MARK]).split(",")
    for column, (dtype, *rest) in described.items():
        if column in several:
            counts = read(column + COUNT, rows)
            parts = read(column, [int(n.sum()) for n in counts])
            values = np.concatenate(parts)[_places(np.concatenate(counts), order)]
        else:
            values = np.concatenate(read(column, rows))[order]
        _describe(group.create_dataset(column, data=values, dtype=dtype), *rest)


def _described(log: Any) -> dict[str, tuple[Any, str, str, str]]:
    """Returns the type, dimension, unit and meaning of each column of a log."""
    return {
        name: (it.dtype, it.dims[0].label, it.attrs["unit"], it.attrs["about"])
        for name, it in log.items()
    }


def _places(sizes: Array, order: Array) -> Array:
    """Returns where the numbers of rows with so many of them lie, row after row in this order."""
    starts, sizes = (np.cumsum(sizes) - sizes)[order], sizes[order]
    ahead: Array = np.cumsum(sizes) - sizes
    return np.repeat(starts - ahead, sizes) + np.arange(sizes.sum())
