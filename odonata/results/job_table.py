"""The jobs of a run as a table for people, as JSON, and as CSV with Batsim's column names, which
tools that draw and compare schedules read."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from odonata.experiment.units import show_count
from odonata.jobs.placement import ranges
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
STATES = {"to come": "NOT_SUBMITTED", "queued": "SUBMITTED", "running": "RUNNING",
          "done": "COMPLETED_SUCCESSFULLY"}  # fmt: skip
"""Batsim's words for `state`."""


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


def to_csv(records: Sequence[JobRecord], workload: str, time_ps: int) -> str:
    """Write the jobs as Batsim does, for a run that has reached a time; unknown is empty. Where
    power was simulated, Batsim's column of energies is there, in J, and `cap_stretch`: how many
    times as long its tasks computed as they would have without caps."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    energy = powered(records)
    writer.writerow([*COLUMNS, *["consumed_energy", "received_bytes", "cap_stretch"] * energy])
    for it in records:
        done = it.end_ps is not None
        turnaround = it.end_ps - it.arrival_ps if it.end_ps is not None else None
        execution = it.run_time_ps
        stretch = f"{turnaround / execution:.6f}" if turnaround and execution else ""
        labels = ranges(np.array(it.labels, np.int64), len(it.labels)) if it.labels else ""
        writer.writerow([
            it.number, csv_cell(workload), csv_cell(it.pattern), seconds(it.arrival_ps), it.nodes,
            -1 if it.requested_ps is None else seconds(it.requested_ps), int(done),
            STATES[state(it, time_ps)], seconds(it.start_ps), seconds(execution),
            seconds(it.end_ps), seconds(it.waiting_ps), seconds(turnaround), stretch,
            labels.replace(",", "").replace("–", "-"),
            *map(csv_cell, (it.name, it.user, it.project, it.application)),
            *([it.energy_j, it.received_bytes, it.cap_stretch] * energy),
        ])  # fmt: skip
    return text.getvalue()


def seconds(ps: int | None) -> str:
    """Returns a time in seconds as text, to the picosecond."""
    return "" if ps is None else f"{ps // 10**12}.{ps % 10**12:012d}"
