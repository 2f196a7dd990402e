"""The Standard Workload Format: a line of 18 numbers per job, as in the Parallel Workloads Archive.

Sizes are in processors and times in seconds; comments may say which date time 0 has. What SWF has
no numbers for, text names of users, groups and programs, is written as comments of the form
"User: 3 alice" and read back from them.
"""

from __future__ import annotations

import gzip
import io
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta, timezone
from typing import Any, TextIO, cast

import numpy as np
import numpy.typing as npt

from odonata.traces import swf_lines
from odonata.traces.clock import LATEST_US, WallClock, zone_of
from odonata.traces.columns import numbered, trace_of
from odonata.traces.digits import LONGEST, put_short_seconds, put_signed
from odonata.traces.lines import Where, blocks, words
from odonata.traces.trace import SECOND, Account, Trace, Whole
from pdes.jit import entry

KEPT = {"number": swf_lines.NUMBER, "submit_us": swf_lines.SUBMIT, "wait_us": swf_lines.WAIT,
        "run_us": swf_lines.RUN, "nodes": swf_lines.NODES,
        "requested_us": swf_lines.REQUESTED}  # fmt: skip
NAMED = {"user": ("User", swf_lines.USER), "project": ("Group", swf_lines.GROUP),
         "application": ("Executable", swf_lines.EXECUTABLE)}  # fmt: skip
"""What a trace calls them, and what comments do."""
CHANGED = ("MaxJobs", "MaxRecords", "MaxNodes", "MaxProcs", "MaxQueues", "MaxPartitions", "Queue",
           "Queues", "Partition", "Partitions", "EndTime", "MaxRuntime", "MaxMemory",
           "AllowOveruse", "User", "Group", "Executable")  # fmt: skip
"""The keys of comments that need not be true of what is written: it has no queues, and other jobs.
"""
DATED = ("UnixStartTime", "TimeZone", "TimeZoneString", "StartTime", "LocalTime")
"""The keys of comments that say which date time 0 has."""
LOCAL_TIME = "LocalTime"
"""Our own key: UnixStartTime is what local clocks showed, in a zone that nobody told."""
WRITTEN = "Note: written by Odonata"
ROOM_FOR_COMMENTS = 1 << 10
LINES = 1 << 16
"""How many lines are written at once."""
FIELDS = 18
"""Numbers in a line."""

_KEY = re.compile(r"([A-Za-z]\w*):(?:\s+(.*))?", re.ASCII | re.DOTALL)


def read(pieces: Iterable[bytes], path: Where) -> Trace:
    """Returns the trace that the pieces of a file's text hold; `path` is for its name, and for what
    is refused."""
    columns: list[list[Whole]] = [[] for _ in range(swf_lines.COLUMNS)]
    header: list[str] = []
    counts = np.zeros(swf_lines.OUTCOMES, np.int64)
    for block in blocks(pieces, path):
        for parts, more in zip(columns, _parsed(block, header, counts), strict=True):
            parts.append(more.copy())  # a column's parts are freed when they are joined

    def column(which: int) -> Whole:
        joined = np.concatenate([np.empty(0, np.int64), *columns[which]])
        columns[which].clear()
        return joined

    known = _names(header)
    account = Account(int(counts[: swf_lines.KEPT + 1].sum())).but(
        {reason: int(counts[which]) for which, reason in swf_lines.DROPPED.items()},
        {reason: int(counts[which]) for which, reason in swf_lines.REPAIRED.items()},
    )
    return trace_of(
        path, {name: column(which) for name, which in KEPT.items()},
        {name: numbered(column(which), known[key]) for name, (key, which) in NAMED.items()},
        account, machine_nodes(header), header, clock_of(header),
    )  # fmt: skip


def _parsed(block: bytes, header: list[str], counts: Whole) -> Whole:
    """Returns the jobs of a block, by column, and adds to the header and to the counts."""
    text = np.frombuffer(block, np.uint8)
    rows = np.empty((swf_lines.COLUMNS, len(block) // swf_lines.SHORTEST_LINE + 2), np.int64)
    comments = np.empty((ROOM_FOR_COMMENTS, 2), np.int64)
    fields, done = np.empty((3, swf_lines.FIELDS), np.int64), np.zeros(3, np.int64)
    finished = False
    while not finished:
        finished = swf_lines.parse(text, rows, comments, fields, counts, done)
        for begin, end in comments[: done[swf_lines.COMMENTS]].tolist():
            header.append(words(block[begin:end]).removeprefix(" ").rstrip())
        done[swf_lines.COMMENTS] = 0
    return rows[:, : done[swf_lines.ROWS]]


def machine_nodes(header: Iterable[str]) -> int | None:
    """Returns the size of the machine that comments tell: MaxProcs, since sizes are in processors,
    else MaxNodes."""
    told: dict[str, int] = {}
    for line in header:
        if found := re.match(r"(MaxProcs|MaxNodes):\s*0*([1-9][0-9]{0,8})(?![0-9])", line.strip()):
            told.setdefault(found[1], int(found[2]))
    return told.get("MaxProcs", told.get("MaxNodes"))


def told(header: Iterable[str], key: str) -> str | None:
    """Returns what the first comment "Key: value" says; None without one."""
    for line in header:
        name, colon, value = line.partition(":")
        if colon and name.strip() == key and value.strip():
            return value.strip()
    return None


def clock_of(header: Sequence[str]) -> WallClock | None:
    """Returns the wall clock that comments tell of; None where they do not tell when the trace
    begins (UnixStartTime; 0 is none), or a time that has no date. Its zone is that of
    TimeZoneString or, where nobody knows of such a one, of TimeZone."""
    text = told(header, "UnixStartTime") or ""
    found = re.fullmatch(r"([0-9]{1,12})(?:\.([0-9]{1,6}))?", text, re.ASCII)
    begin_us = int(found[1]) * SECOND + int((found[2] or "").ljust(6, "0")) if found else 0
    if not 0 < begin_us <= LATEST_US:
        return None
    local = told(header, LOCAL_TIME) is not None
    return WallClock(begin_us, None if local else _zone(header), local)


def _zone(header: Sequence[str]) -> str | None:
    named, shift = told(header, "TimeZoneString"), told(header, "TimeZone")
    with suppress(ValueError):
        if named and zone_of(named):
            return named
    if shift and re.fullmatch(r"[+-]?[0-9]{1,5}", shift, re.ASCII) and abs(int(shift)) < 86400:
        return str(timezone(timedelta(seconds=int(shift)))) if int(shift) else "UTC"
    return None


def _names(header: Iterable[str]) -> dict[str, dict[int, str]]:
    """Returns what comments such as "User: 3 alice" tell, by key and number."""
    names: dict[str, dict[int, str]] = {key: {} for key, _ in NAMED.values()}
    for line in header:
        if found := re.fullmatch(r"(User|Group|Executable):\s+([0-9]{1,18})\s+(\S.*)", line):
            names[found[1]][int(found[2])] = found[3]
    return names


# -- writing


def write(
    path_or_file: Where | TextIO,
    trace: Trace,
    waits_us: npt.ArrayLike | None = None,
    status: npt.ArrayLike | None = None,
    comments: Sequence[str] = (),
) -> None:
    """Write a trace, as gzip if the name ends in .gz; a file that cannot be written is an OSError.

    `waits_us` are the wait times to be written (-1: unknown) in place of the recorded ones, and
    `status` the codes of SWF (1 completed, 0 failed, 5 cancelled; -1 unknown, which they all are
    without it), both by position in the trace. The source's comments are kept where they have the
    form "Key: value" and need not have become wrong; `comments` are added to them.
    """
    waits = _per_job("waits_us", trace.wait_us if waits_us is None else waits_us, trace)
    states = _per_job("status", np.full(len(trace), -1) if status is None else status, trace)
    numbers = {name: _numbers(getattr(trace, f"{name}s")) for name in NAMED}
    with _opened(path_or_file) as file:
        for line in _header(trace, numbers, comments):
            file.write(f"; {line}".rstrip() + "\n")
        for begin in range(0, len(trace), LINES):
            at = slice(begin, begin + LINES)
            who = [np.array(numbers[name])[getattr(trace, name)[at]] for name in NAMED]
            rows = np.column_stack((
                trace.number[at], trace.submit_us[at], waits[at], trace.run_us[at],
                trace.nodes[at], trace.requested_us[at], states[at], *who,
            ))  # fmt: skip
            text = np.empty(rows.size * (LONGEST + 1) + 40 * len(rows), np.uint8)
            file.write(text[: write_lines(rows, text)].tobytes().decode("ascii"))


@entry
def write_lines(rows: Any, text: Any) -> int:
    """Write a line for each row: number, submission, wait, run time, nodes, requested time, status,
    user, group, application. Returns the length of the text."""
    at = 0
    for row in rows:
        for place in range(FIELDS):
            if place > 0:
                text[at] = 32
                at += 1
            if place in (1, 2, 3):
                at = put_short_seconds(text, at, row[place])
            elif place == 8:
                at = put_short_seconds(text, at, row[5])
            elif place in (4, 7):
                at = put_signed(text, at, row[4])
            elif place == 10:
                at = put_signed(text, at, row[6])
            elif place in (11, 12, 13):
                at = put_signed(text, at, row[place - 4])
            elif place == 0:
                at = put_signed(text, at, row[0])
            else:
                at = put_signed(text, at, -1)
        text[at] = 10
        at += 1
    return at


def _per_job(name: str, values: npt.ArrayLike, trace: Trace) -> Whole:
    column = np.asarray(values).astype(np.int64)
    if column.shape != (len(trace),):
        raise ValueError(f"{name}: {column.shape} for {len(trace)} jobs")
    return column


def _numbers(names: Sequence[str]) -> list[int]:
    """Returns a number per name: the name if it is one, -1 for "", else the next that is free."""
    own = [int(name) if re.fullmatch(r"0|[1-9][0-9]{0,17}", name, re.ASCII) else None
           for name in names]  # fmt: skip
    taken, free, found = set(own), 1, []
    for name, number in zip(names, own, strict=True):
        if number is None and name:
            while free in taken:
                free += 1
            number, free = free, free + 1
        found.append(-1 if number is None else number)
    return found


def _header(
    trace: Trace, numbers: dict[str, list[int]], comments: Sequence[str]
) -> Iterator[str]:  # fmt: skip
    """Yields the comments of a file, without their mark."""
    kept, added = False, [_one_line(line) for line in comments]
    same_dates = trace.clock is None or trace.clock == clock_of(trace.header)
    changed = CHANGED if same_dates else (*CHANGED, *DATED)
    if not any(line.startswith("Version:") for line in trace.header):
        yield "Version: 2.2"
    for line in map(_one_line, trace.header):
        found = _KEY.fullmatch(line)
        if found:  # what is indented belongs to the line above it
            kept = found[1] not in changed and line != WRITTEN and line not in added
        elif not line.startswith(" "):
            kept = False
        if kept:
            yield line
    if trace.clock is not None and not same_dates:
        yield from _dates(trace.clock)
    yield f"MaxJobs: {len(trace)}"
    yield f"MaxRecords: {len(trace)}"
    if trace.machine_nodes is not None:
        yield f"MaxNodes: {trace.machine_nodes}"
        yield f"MaxProcs: {trace.machine_nodes}"
    for name, (key, _) in NAMED.items():
        for number, text in zip(numbers[name], getattr(trace, f"{name}s"), strict=True):
            if text and str(number) != text:
                yield f"{key}: {number} {_one_line(text)}"
    yield WRITTEN
    yield from added


def _dates(clock: WallClock) -> Iterator[str]:
    """Yields the comments from which `clock_of` reads a clock back."""
    seconds, part = divmod(clock.begin_us, SECOND)
    yield f"UnixStartTime: {seconds}" + (f".{part:06}".rstrip("0") if part else "")
    if clock.local:
        yield f"{LOCAL_TIME}: UnixStartTime is what clocks showed, in a zone that is not known"
    elif clock.zone:
        offset = clock.tz.utcoffset(None)  # None of a zone whose clocks are changed
        named = offset is None or clock.zone == "UTC"
        seconds = 0 if offset is None else int(offset.total_seconds())
        yield f"TimeZoneString: {clock.zone}" if named else f"TimeZone: {seconds}"
    yield f"StartTime: {clock.date(0)}"


def _one_line(text: str) -> str:
    return " ".join(text.splitlines()).replace("\0", " ")


@contextmanager
def _opened(path_or_file: Where | TextIO) -> Iterator[TextIO]:
    if not isinstance(path_or_file, str | os.PathLike):
        yield path_or_file
        return
    name = os.fspath(path_or_file)
    if not name.lower().endswith(".gz"):
        with open(name, "w", encoding="utf-8", newline="\n") as file:
            yield file
        return
    with (
        open(name, "wb") as packed,
        # Neither a name nor a time of its own: one trace gives the same bytes each time.
        gzip.GzipFile("", "wb", 6, packed, mtime=0) as unpacked,
        io.TextIOWrapper(cast(Any, unpacked), encoding="utf-8", newline="\n") as file,
    ):
        yield file
