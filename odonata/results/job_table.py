"""The jobs of a run as a table for people, as JSON, and as CSV with Batsim's column names, which
tools that draw and compare schedules read (evalys, for example); and as SWF."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from odonata.experiment.units import show_count
from odonata.jobs.metering import JobEnergy
from odonata.jobs.schedule import FINISHED, KILLED, Schedule
from odonata.results.node_ranges import Ranges, ranges
from odonata.traces import swf
from odonata.traces.clock import WallClock
from odonata.traces.digits import put, put_seconds
from odonata.traces.trace import SECOND, UNKNOWN, Whole
from pdes.clock import TICKS
from pdes.jit import entry
from pdes.replacing import replacing
from pdes.shown import csv_cell

if TYPE_CHECKING:
    from rich.table import Table

    from odonata.jobs.record import JobRecord
    from topology import Dragonfly

FILE = "jobs.csv"
MOST_SHOWN = 20
"""The largest number of jobs in the table of a terminal."""
COLUMNS = (
    "job_id", "workload_name", "profile", "submission_time", "requested_number_of_resources",
    "requested_time", "success", "final_state", "starting_time", "execution_time", "finish_time",
    "waiting_time", "turnaround_time", "stretch", "allocated_resources", "name",
    "user", "project", "application",
)  # fmt: skip
"""Batsim's columns, in its order, with times in seconds; and the job's name, user, project and
application."""
STATES = ("NOT_SUBMITTED", "SUBMITTED", "RUNNING", "COMPLETED_SUCCESSFULLY",
          "COMPLETED_WALLTIME_REACHED")  # fmt: skip
"""Batsim's words for the states of a job, in our order."""
ENERGY = "consumed_energy"
"""Batsim's name of the column of energies, which is there where power was simulated."""
RECEIVED = "received_bytes"
"""Our name of the column of what the tasks of a job received, where packets were simulated."""
STRETCHED = "cap_stretch"
"""Our name of the column of what caps did to jobs; Batsim's `stretch` is of their turnaround."""
DATES = ("submission_date", "starting_date", "finish_date")
"""The last columns where the trace has a wall clock: the dates of the times of these names."""
ROWS_AT_ONCE = 50_000
MOST_STRETCHED = 1e12
"""The largest stretch that is written; a larger one has this."""


class Tally(NamedTuple):
    """The number of jobs in each state, at a time."""

    to_come: int
    queued: int
    running: int
    done: int

    def __str__(self) -> str:
        counts = [f"{count:,} {state}" for count, state in zip(
            (self.to_come, self.queued, self.running, self.done),
            ("yet to come", "queued", "running", "done"), strict=True) if count]  # fmt: skip
        return ", ".join(counts)


def tally(records: Sequence[JobRecord], time_ps: int) -> Tally:
    states = [state(record, time_ps) for record in records]
    return Tally(*(states.count(name) for name in ("to come", "queued", "running", "done")))


def state(record: JobRecord, time_ps: int) -> str:
    """Returns a job's state as the scheduler knows it. A job that was given its nodes is running,
    though its tasks start a launch latency later."""
    if record.end_ps is not None:
        return "done"
    if record.start_ps is not None:
        return "running"
    return "queued" if record.arrival_ps <= time_ps else "to come"


class Spread(NamedTuple):
    """Returns the numbers of groups and routers over which a job's nodes are spread."""

    groups: int
    routers: int


def spread(machine: Dragonfly, record: JobRecord) -> Spread:
    labels = np.array(record.labels, np.int64)
    return Spread(len(np.unique(labels // (machine.routers * machine.nodes))),
                  len(np.unique(labels // machine.nodes)))  # fmt: skip


def mean(values: Sequence[int | None]) -> float | None:
    """Returns the mean of the values that are known."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def by_pattern(records: Sequence[JobRecord]) -> dict[str, float]:
    """Returns the mean run time of the jobs that are done, in picoseconds, by pattern."""
    times: dict[str, list[int]] = {}
    for record in records:
        if record.run_time_ps is not None:
            times.setdefault(record.pattern, []).append(record.run_time_ps)
    return {pattern: sum(some) / len(some) for pattern, some in times.items()}


def makespan_ps(records: Sequence[JobRecord]) -> int | None:
    """Returns the makespan in ps (when the last job ended), if all jobs have."""
    ends = [record.end_ps for record in records if record.end_ps is not None]
    return max(ends) if records and len(ends) == len(records) else None


def microseconds(ps: float | None) -> str:
    """Returns a time in microseconds as text, to the nanosecond where it is short."""
    return "-" if ps is None else f"{ps / 1e6:,.{1 if ps >= 1e9 else 3}f} us"


# -- for people


HEADS = ("job", "nodes", "pattern", "groups", "routers", "waited (us)", "ran (us)")
ENERGY_HEADS = ("J", "nJ/B", "stretch")
"""More of them, where power was simulated: its energy, also per byte that it received; and how many
times as long it computed as it would have without caps."""


def powered(records: Sequence[JobRecord]) -> bool:
    """Tells whether the energy of any job is known."""
    return any(record.energy_j is not None for record in records)


def heads(records: Sequence[JobRecord]) -> tuple[str, ...]:
    """Returns the heads of the table of these jobs; with their energy, and then without routers, as
    a terminal is 80 letters wide."""
    return (*HEADS[:4], *HEADS[5:], *ENERGY_HEADS) if powered(records) else HEADS


def cells(machine: Dragonfly, record: JobRecord, energy: bool = False) -> tuple[str, ...]:
    """Returns a row of the table, under HEADS and with `energy` also under ENERGY_HEADS; "-" for
    what is not yet known."""
    where = spread(machine, record)
    seat = [f"{where.groups:,}", f"{where.routers:,}"] if record.labels else ["-", "-"]
    seat = seat[:1] if energy else seat
    return (record.name, f"{record.nodes:,}", record.pattern, *seat,
            _us(record.waiting_ps), _us(record.run_time_ps),
            *(_joules(record) if energy else ()))  # fmt: skip


def _joules(record: JobRecord) -> tuple[str, str, str]:
    per_byte = record.j_per_byte
    nano = None if per_byte is None else per_byte * 1e9
    return ("-" if record.energy_j is None else f"{record.energy_j:,.3g}",
            "-" if nano is None else f"{nano:{',.0f' if nano >= 1000 else ',.3g'}}",
            "-" if record.cap_stretch is None else f"{record.cap_stretch:.3f}")  # fmt: skip


def _us(ps: float | None) -> str:
    return "-" if ps is None else f"{ps / 1e6:,.2f}"


def job_table(machine: Dragonfly, records: Sequence[JobRecord]) -> Table:
    """Returns the table: the first of many jobs, and a row for the rest."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    energy = powered(records)
    for head in heads(records):
        right = head not in ("job", "pattern")
        shown.add_column(head, justify="right" if right else "left", no_wrap=right, max_width=28)
    some = records if len(records) <= MOST_SHOWN + 1 else records[:MOST_SHOWN]
    for record in some:
        shown.add_row(*map(Text, cells(machine, record, energy)))
    rest = records[len(some) :]
    if rest:
        waited = mean([record.waiting_ps for record in rest])
        communication = mean([record.run_time_ps for record in rest])
        shown.add_section()
        shown.add_row(f"and {len(rest):,} more", show_count(sum(it.nodes for it in rest)), "mean:",
                      "", "", _us(waited), _us(communication))  # fmt: skip
    return shown


# -- for programs


def job_facts(machine: Dragonfly, records: Sequence[JobRecord]) -> list[dict[str, Any]]:
    """Returns the jobs for JSON: times in picoseconds, null where they are not known; nodes as
    labels, in the order in which the job was given them. Where power was simulated, each has its
    energy."""
    energy = powered(records)
    return [
        {
            "number": record.number, "name": record.name, "nodes": record.nodes,
            "pattern": record.pattern, "user": record.user, "project": record.project,
            "application": record.application, "requested_ps": record.requested_ps,
            "arrival_ps": record.arrival_ps,
            "start_ps": record.start_ps, "end_ps": record.end_ps,
            "waiting_ps": record.waiting_ps, "run_time_ps": record.run_time_ps,
            **spread(machine, record)._asdict(), "labels": list(record.labels),
            **({"energy_j": record.energy_j, "received_bytes": record.received_bytes,
                "j_per_byte": record.j_per_byte, "cap_stretch": record.cap_stretch}
               if energy else {}),
        }
        for record in records
    ]  # fmt: skip


# -- as CSV and SWF


def write_csv(
    schedule: Schedule, path: Path, workload_name: str = "", taken: JobEnergy | None = None
) -> None:
    """Write the jobs as Batsim does to a file, in order of submission."""
    with replacing(path) as part, part.open("w", encoding="utf-8", newline="") as file:
        file.writelines(_texts(schedule, workload_name, taken))


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
    schedule: Schedule, workload_name: str = "", taken: JobEnergy | None = None
) -> str:  # fmt: skip
    """Returns the jobs as Batsim writes them, in order of submission; unknown is empty.

    Times are in seconds. As in Batsim `execution_time` is from the first start to the end, with the
    time for which a job was suspended, and `stretch` is `turnaround_time` over it. The resources
    are those of its first segment. Where power was simulated, Batsim's column of energies follows,
    in J, the bytes that its tasks received, where packets were simulated, and `cap_stretch`: how
    many times as long a job took (of packets: computed) as it would have without caps. They are
    unknown of a job which is not done. Where the trace has a wall clock, dates are the last
    columns.
    """
    return "".join(_texts(schedule, workload_name, taken))


def _texts(
    schedule: Schedule, workload_name: str, taken: JobEnergy | None
) -> Iterator[str]:  # fmt: skip
    """Returns the file in pieces."""
    columns = {} if taken is None else dict(zip((ENERGY, RECEIVED, STRETCHED), taken, strict=True))
    more = {name: values for name, values in columns.items() if values is not None}
    clock = schedule.trace.clock
    yield ",".join((*COLUMNS, *more, *(DATES if clock else ()))) + "\n"
    trace, where, asked = schedule.trace, ranges(schedule), schedule.asked
    started = np.full(len(schedule), -1, np.int64)
    backwards = np.arange(len(schedule.segment_job))[::-1]
    started[schedule.segment_job[::-1]] = backwards  # of several the first stays
    users, projects = _quoted(trace.users), _quoted(trace.projects)
    applications = _quoted(trace.applications)
    profiles = [name or "job" for name in applications]
    workload = _quoted([workload_name or trace.name])[0]
    whole = np.argsort(trace.number, kind="stable") if asked else np.arange(len(schedule))
    requested_all = trace.requested_us
    if asked:
        times = [UNKNOWN if job.requested_ps is None else job.requested_ps for job in asked]
        requested_all = np.array(times, np.int64)
    tick = schedule.tick
    for begin in range(0, len(schedule), ROWS_AT_ONCE):
        some = whole[begin : begin + ROWS_AT_ONCE]
        submit, start, end = (it[some] for it in (schedule.submit, schedule.start, schedule.end))
        state = schedule.state[some]
        begun, over = start >= 0, end >= 0
        n, run, turnaround = len(submit), end - start, end - submit
        ratio = turnaround / np.maximum(run, 1)
        stretch = np.rint(np.clip(ratio, 0, MOST_STRETCHED) * SECOND).astype(np.int64)
        requested = requested_all[some]
        jobs = [asked[at] for at in some.tolist()] if asked else ()
        rows = zip(
            map(str, trace.number[some].tolist()),
            [workload] * n,
            _quoted([job.does for job in jobs]) or _named(profiles, trace.application[some]),
            _seconds(submit, tick),
            map(str, trace.nodes[some].tolist()),
            _seconds(requested, tick, requested != UNKNOWN, "-1"),
            _named(("0", "1"), state == FINISHED),
            _named(STATES, state),
            _seconds(start, tick, begun),
            _seconds(run, tick, over),
            _seconds(end, tick, over),
            _seconds(start - submit, tick, begun),
            _seconds(turnaround, tick, over),
            _seconds(stretch, "us", over & (run > 0)),
            _resources(where, started[some]),
            _quoted([job.name or f"job {at}" for job, at in zip(
                jobs, trace.number[some].tolist(), strict=False)]) or [""] * n,
            _quoted([job.user for job in jobs]) or _named(users, trace.user[some]),
            _quoted([job.project for job in jobs]) or _named(projects, trace.project[some]),
            _quoted([job.application for job in jobs])
            or _named(applications, trace.application[some]),
            *(_numbers(values[some], schedule.done[some]) for values in more.values()),
            *([] if clock is None else [_dates(clock, us) for us in (submit, start, end)]),
            strict=True,
        )  # fmt: skip
        yield "\n".join(map(",".join, rows)) + "\n"


def _seconds(times: Whole, tick: str, known: Any = None, unknown: str = "") -> list[str]:
    """Returns times as text, in seconds, to the tick."""
    there = np.ones(len(times), bool) if known is None else known
    per = TICKS["s"] // TICKS[tick]
    if per != SECOND:
        digits = len(str(per)) - 1
        pairs = zip(times.tolist(), there.tolist(), strict=True)
        return [f"{at // per}.{at % per:0{digits}d}" if one else unknown for at, one in pairs]
    text = np.empty(22 * len(times), np.uint8)
    texts = _split(text, write_seconds(np.array(times), there, text))  # a copy can be written to
    if unknown and not there.all():
        return [it or unknown for it in texts]
    return texts


def _numbers(values: Any, done: Any) -> list[str]:
    """Returns numbers of jobs that are done as text that reads back as the same number; nothing for
    what is not known."""
    pairs = zip(np.asarray(values).tolist(), done.tolist(), strict=True)
    return [repr(value) if over and value == value else "" for value, over in pairs]


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


def seconds(ps: int | None) -> str:
    """Returns a time in seconds as text, to the picosecond."""
    return "" if ps is None else _seconds(np.array([ps]), "ps")[0]
