"""A schedule as CSV with Batsim's column names, which tools that draw and compare schedules read
(evalys, for example); and the ranges of nodes that jobs had.

Where nodes were only counted, ranges are of virtual nodes: whoever gets nodes gets the lowest
numbers that are free.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from odonata.jobs.metering import PowerRecord
from odonata.jobs.schedule import FINISHED, KILLED, Schedule
from odonata.results.job_table import COLUMNS
from odonata.results.schedule_series import LABELS_AT_ONCE, steps
from odonata.traces import swf
from odonata.traces.clock import WallClock
from odonata.traces.digits import put, put_seconds
from odonata.traces.trace import SECOND, UNKNOWN, Whole
from pdes.jit import entry, kernel
from pdes.replacing import replacing
from pdes.shown import csv_cell

BATSIM_STATES = ("NOT_SUBMITTED", "SUBMITTED", "RUNNING", "COMPLETED_SUCCESSFULLY",
                 "COMPLETED_WALLTIME_REACHED")  # fmt: skip
"""Batsim's words for the states of a job, in our order."""
ENERGY = "consumed_energy"
"""Batsim's name of the column of energies, which is there where power was simulated."""
STRETCHED = "cap_stretch"
"""Our name of the column of what caps did to jobs; Batsim's `stretch` is of their turnaround."""
DATES = ("submission_date", "starting_date", "finish_date")
"""The last columns where the trace has a wall clock: the dates of the times of these names."""
ROWS_AT_ONCE = 50_000
MOST_STRETCHED = 1e12
"""The largest stretch that is written; a larger one has this."""


# -- ranges of nodes


@dataclass(frozen=True, eq=False)
class Ranges:
    """The nodes of every segment as ranges, ascending: those of segment s are at positions
    `first[s]` to `first[s + 1]` of `low` and `high`, which is the last node of a range."""

    first: Whole
    low: Whole
    high: Whole
    virtual: bool
    """Whether these are virtual nodes, as nodes were only counted."""


def ranges(schedule: Schedule) -> Ranges:
    """Returns the nodes of every segment."""
    if schedule.labels is None:
        return _virtual(schedule)
    sizes = schedule.held
    ends = np.cumsum(sizes)
    counts, lows, highs = [], [], []
    begin = 0
    while begin < len(sizes):
        before = int(ends[begin - 1]) if begin else 0
        beyond = max(begin + 1, int(np.searchsorted(ends, before + LABELS_AT_ONCE, "right")))
        segment = np.repeat(np.arange(beyond - begin), sizes[begin:beyond])
        stride = schedule.nodes + 1  # so that no range reaches into the next segment
        keys = np.sort(segment * stride + schedule.labels[before : ends[beyond - 1]], kind="stable")
        breaks = np.diff(keys) != 1
        starts = np.flatnonzero(np.concatenate(([True], breaks)))
        stops = np.flatnonzero(np.concatenate((breaks, [True])))
        of, low = np.divmod(keys[starts], stride)
        counts.append(np.bincount(of, minlength=beyond - begin))
        lows.append(low)
        highs.append(keys[stops] % stride)
        begin = beyond
    first = np.concatenate([np.zeros(1, np.int64), *counts]).cumsum()
    none = np.zeros(0, np.int64)
    return Ranges(first, np.concatenate([none, *lows]), np.concatenate([none, *highs]), False)


def _virtual(schedule: Schedule) -> Ranges:
    """Returns the virtual nodes of every segment. They go beyond the size of the machine only where
    a schedule that was recorded elsewhere holds more than there are."""
    begins, ends = np.array(schedule.segment_from_us), np.array(schedule.segment_to_us)
    ends[ends < 0] = np.iinfo(np.int64).max
    sizes = schedule.held
    instant = sizes[begins == ends]
    most = max(schedule.nodes, int(steps(schedule).busy.max(initial=0)))
    most += int(instant.max(initial=0))  # they are there in no step
    by_end = np.flatnonzero(begins < ends)
    by_end = by_end[np.argsort(ends[by_end], kind="stable")]
    first = np.zeros(len(sizes) + 1, np.int64)
    out = np.empty((2 * len(sizes) + 16, 2), np.int64)
    free = np.empty((most + 2, 2), np.int64)
    free[0] = 0, most - 1
    state = np.array([0, 0, 1 if most else 0])
    while seat(begins, ends, sizes, by_end, first, out, free, state):
        out = np.concatenate((out, np.empty_like(out)))
    low, high = out[: first[-1]].T.copy()
    return Ranges(first, low, high, True)


@entry
def seat(
    begins: Any, ends: Any, sizes: Any, by_end: Any, first: Any, out: Any, free: Any, state: Any
) -> int:
    """Give each segment the lowest virtual nodes that are free when it begins, as ranges in `out`
    from `first` on. Returns 1 where there is no room in `out`; then it goes on with more.

    `free` has the free ranges, the lowest at the end, so that taking from it moves nothing.
    `state`: the next segment, the next of those in order of their end, the number of free ranges.
    """
    segment, over, count = state[0], state[1], state[2]
    while segment < len(sizes):
        while over < len(by_end) and ends[by_end[over]] <= begins[segment]:
            gone = by_end[over]
            for at in range(first[gone], first[gone + 1]):
                count = _free(free, count, out[at, 0], out[at, 1])
            over += 1
        state[0], state[1], state[2] = segment, over, count
        if first[segment] + count > len(out):
            return 1
        at, left = first[segment], sizes[segment]
        while left > 0 and count > 0:
            low, high = free[count - 1, 0], free[count - 1, 1]
            taken = min(left, high - low + 1)
            out[at, 0], out[at, 1] = low, low + taken - 1
            at += 1
            left -= taken
            if low + taken > high:
                count -= 1
            else:
                free[count - 1, 0] = low + taken
        first[segment + 1] = at
        if ends[segment] == begins[segment]:
            for back in range(first[segment], at):
                count = _free(free, count, out[back, 0], out[back, 1])
        segment += 1
    state[0], state[1], state[2] = segment, over, count
    return 0


@kernel
def _free(free: Any, count: int, low: int, high: int) -> int:
    """Add a range to those that are free, joined to its neighbours. Returns how many there are."""
    before, after = 0, count  # free[before] is the first one below the range
    while before < after:
        middle = (before + after) // 2
        if free[middle, 0] > low:
            before = middle + 1
        else:
            after = middle
    joins_above = before > 0 and free[before - 1, 0] == high + 1
    joins_below = before < count and free[before, 1] == low - 1
    if joins_above and joins_below:
        free[before - 1, 0] = free[before, 0]
        for at in range(before, count - 1):
            free[at, 0], free[at, 1] = free[at + 1, 0], free[at + 1, 1]
        return count - 1
    if joins_above:
        free[before - 1, 0] = low
        return count
    if joins_below:
        free[before, 1] = high
        return count
    for at in range(count, before, -1):
        free[at, 0], free[at, 1] = free[at - 1, 0], free[at - 1, 1]
    free[before, 0], free[before, 1] = low, high
    return count + 1


# -- the table


def write_csv(
    schedule: Schedule, path: Path, workload_name: str = "", power: PowerRecord | None = None
) -> None:
    """Write the jobs as Batsim does to a file, in order of submission."""
    with replacing(path) as part, part.open("w", encoding="utf-8", newline="") as file:
        file.writelines(_texts(schedule, workload_name, power))


def write_swf(schedule: Schedule, path: Path, comments: Sequence[str] = ()) -> None:
    """Write the trace in the Standard Workload Format, with the waits of this schedule; -1 for a
    job that has not started."""
    trace = schedule.trace
    waits = np.where(schedule.start_us >= 0, schedule.start_us - trace.submit_us, -1)
    if schedule.molds is not None:  # they ran on other nodes, and for as long as these take
        ran = np.where(schedule.end_us >= 0, schedule.end_us - schedule.start_us, trace.run_us)
        trace = replace(trace, nodes=schedule.job_nodes, run_us=ran)
    status = np.select([schedule.state == FINISHED, schedule.state == KILLED], [1, 0], -1)
    with replacing(path) as part:
        swf.write(part, trace, waits, status, comments)


def to_csv(
    schedule: Schedule, workload_name: str = "", power: PowerRecord | None = None
) -> str:  # fmt: skip
    """Returns the jobs as Batsim writes them, in order of submission; unknown is empty.

    Times are in seconds. As in Batsim `execution_time` is from the first start to the end, with the
    time for which a job was suspended, and `stretch` is `turnaround_time` over it. The resources
    are those of its first segment. Where power was simulated, Batsim's column of energies follows,
    in J, and `cap_stretch`: how many times as long a job took as it would have without caps. Both
    are unknown of a job which is not done. Where the trace has a wall clock, dates are the last
    columns.
    """
    return "".join(_texts(schedule, workload_name, power))


def _texts(
    schedule: Schedule, workload_name: str, power: PowerRecord | None
) -> Iterator[str]:  # fmt: skip
    """Returns the file in pieces."""
    columns = {} if power is None else {ENERGY: power.energy_j, STRETCHED: power.cap_stretch}
    more = {name: values for name, values in columns.items() if values is not None}
    clock = schedule.trace.clock
    yield ",".join((*COLUMNS, *more, *(DATES if clock else ()))) + "\n"
    trace, where = schedule.trace, ranges(schedule)
    started = np.full(len(schedule), -1, np.int64)
    backwards = np.arange(len(schedule.segment_job))[::-1]
    started[schedule.segment_job[::-1]] = backwards  # of several the first stays
    users, projects = _quoted(trace.users), _quoted(trace.projects)
    applications = _quoted(trace.applications)
    profiles = [name or "job" for name in applications]
    workload = _quoted([workload_name or trace.name])[0]
    for begin in range(0, len(schedule), ROWS_AT_ONCE):
        some = slice(begin, begin + ROWS_AT_ONCE)
        submit, start, end = trace.submit_us[some], schedule.start_us[some], schedule.end_us[some]
        state = schedule.state[some]
        known, over = start >= 0, end >= 0
        n, run, turnaround = len(submit), end - start, end - submit
        ratio = turnaround / np.maximum(run, 1)
        stretch = np.rint(np.clip(ratio, 0, MOST_STRETCHED) * SECOND).astype(np.int64)
        requested = trace.requested_us[some]
        rows = zip(
            map(str, trace.number[some].tolist()),
            [workload] * n,
            _named(profiles, trace.application[some]),
            _seconds(submit),
            map(str, trace.nodes[some].tolist()),
            _seconds(requested, requested != UNKNOWN, "-1"),
            _named(("0", "1"), state == FINISHED),
            _named(BATSIM_STATES, state),
            _seconds(start, known),
            _seconds(run, over),
            _seconds(end, over),
            _seconds(start - submit, known),
            _seconds(turnaround, over),
            _seconds(stretch, over & (run > 0)),
            _resources(where, started[some]),
            [""] * n,
            _named(users, trace.user[some]),
            _named(projects, trace.project[some]),
            _named(applications, trace.application[some]),
            *(_numbers(values[some], schedule.done[some]) for values in more.values()),
            *([] if clock is None else [_dates(clock, us) for us in (submit, start, end)]),
            strict=True,
        )  # fmt: skip
        yield "\n".join(map(",".join, rows)) + "\n"


def _seconds(us: Whole, known: Any = None, unknown: str = "") -> list[str]:
    """Returns times as text, in seconds, to the microsecond."""
    there = np.ones(len(us), bool) if known is None else known
    text = np.empty(22 * len(us), np.uint8)
    texts = _split(text, write_seconds(np.array(us), there, text))  # a copy can be written to
    if unknown and not there.all():
        return [it or unknown for it in texts]
    return texts


def _numbers(values: Any, done: Any) -> list[str]:
    """Returns numbers of jobs that are done as text that reads back as the same number."""
    pairs = zip(np.asarray(values, np.float64).tolist(), done.tolist(), strict=True)
    return [repr(value) if over else "" for value, over in pairs]


def _dates(clock: WallClock, us: Whole) -> list[str]:
    """Returns dates as ISO 8601 has them, to the second; nothing for times below 0."""
    return [date if at >= 0 else "" for date, at in zip(clock.dates(us), us.tolist(), strict=True)]


def _resources(where: Ranges, segments: Whole) -> list[str]:
    """Returns the nodes of segments as interval sets: "0-3 8"; nothing for segment -1."""
    count = where.first[segments + 1] - where.first[segments]
    widest = 2 * len(str(where.high.max(initial=0))) + 2
    text = np.empty(int(count[segments >= 0].sum()) * widest + len(segments), np.uint8)
    length = write_ranges(where.first, where.low, where.high, segments, text)
    return _split(text, length)


def _split(text: Any, length: int) -> list[str]:
    lines: list[str] = text[:length].tobytes().decode("ascii").split("\n")
    return lines[:-1]


@entry
def write_seconds(us: Any, known: Any, text: Any) -> int:
    """Write times in seconds to `text`, a line for each, empty where it is not known. Returns the
    length."""
    at = 0
    for i in range(len(us)):
        if known[i]:
            at = put_seconds(text, at, us[i])
        text[at] = 10
        at += 1
    return at


@entry
def write_ranges(first: Any, low: Any, high: Any, segments: Any, text: Any) -> int:
    """Write the nodes of segments to `text`, a line for each. Returns the length."""
    at = 0
    for i in range(len(segments)):
        if segments[i] >= 0:
            begin, beyond = first[segments[i]], first[segments[i] + 1]
            for one in range(begin, beyond):
                if one > begin:
                    text[at] = 32
                    at += 1
                at = put(text, at, low[one], 1)
                if high[one] > low[one]:
                    text[at] = 45
                    at = put(text, at + 1, high[one], 1)
        text[at] = 10
        at += 1
    return at


def _named(names: Sequence[str], positions: Any) -> list[str]:
    return [names[at] for at in positions.tolist()]


def _quoted(names: Sequence[str]) -> list[str]:
    """Returns each name as a field of CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="")
    fields = []
    for name in names:
        text.seek(0)
        text.truncate()
        writer.writerow([csv_cell(name), ""])
        fields.append(text.getvalue()[:-1])
    return fields
