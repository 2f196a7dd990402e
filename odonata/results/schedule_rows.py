"""The measures of a schedule as rows of a name, a figure and a note, for tables of any kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from odonata.experiment.units import show_duration
from odonata.results.schedule_series import fragmentation

if TYPE_CHECKING:
    from odonata.jobs.schedule import Schedule
    from odonata.results.schedule_measures import Measures
    from odonata.traces.trace import Trace
    from topology import Dragonfly


def number(value: float | None) -> str:
    """Returns a number with three figures; "-" where there is none."""
    if value is None:
        return "-"
    return f"{value:,.3g}" if abs(value) < 100 else f"{value:,.0f}"


def _part(value: float | None) -> str:
    return "-" if value is None else f"{value:.2%}"


class Figure(NamedTuple):
    """A measure that is shown: its field in `Measures`, its name, how it is written, and a note."""

    path: str
    name: str
    text: Callable[[float | None], str]
    note: str = ""

    def of(self, measures: Measures) -> float | None:
        value: float | None = getattr(measures, self.path)
        return value


def _count(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


FIGURES: Sequence[Figure] = (
    Figure("jobs", "jobs", _count),
    Figure("finished", "finished", _count),
    Figure("killed", "killed", _count, "at their requested time"),
    Figure("mean_wait_s", "wait, mean", show_duration, "from submission to start"),
    Figure("median_wait_s", "wait, median", show_duration),
    Figure("p95_wait_s", "wait, 95 %", show_duration),
    Figure("max_wait_s", "wait, longest", show_duration),
    Figure("mean_turnaround_s", "turnaround, mean", show_duration, "from submission to end"),
    Figure("mean_slowdown", "slowdown, mean", number, "turnaround over service time"),
    Figure("mean_bounded_slowdown", "bounded slowdown, mean", number, "service time 10 s or more"),
    Figure("utilisation", "utilisation", _part, "of all node-time"),
    Figure("makespan_s", "makespan", show_duration, "first submission to last end"),
    Figure("mean_queue_length", "queue, mean", number, "jobs"),
    Figure("max_queue_length", "queue, longest", _count, "jobs"),
    Figure("mean_waste", "idle while jobs wait", number, "nodes, mean"),
)


STATES_SHOWN = 3
"""The first of these count jobs; those that were molded come after them."""


def account_of(trace: Trace, nodes: int, machine: Dragonfly | None, overrun: str = "") -> list[str]:
    """Returns sentences about the trace and the machine: a heading, and what is to be known."""
    longer = int(((trace.run_us > trace.requested_us) & (trace.requested_us >= 0)).sum())
    fate = {"kill": "they are killed then; --overrun extend (trace.overrun) lets them run on",
            "extend": "they run on"}.get(overrun, "")  # fmt: skip
    late = [f"{longer:,} run for longer than requested: {fate}"] if longer and fate else []
    load = trace.load(nodes)
    span = trace.span_us / 1e6
    about = [f"submitted within {show_duration(span)}" if span else "submitted together"]
    if trace.clock is not None and len(trace):
        begin, end = trace.clock.words(trace.submit_us[[0, -1]])
        about.append(f"from {begin} to {end} ({trace.clock.name})")
    about += [f"offered load {load:.3f}"] if load == load else []
    if machine is not None:
        about.append(f"placed on a dragonfly p={machine.nodes} a={machine.routers} "
                     f"h={machine.global_links} g={machine.groups}")  # fmt: skip
    return [f"{trace.name}: {len(trace):,} jobs on {nodes:,} nodes", ", ".join(about),
            *trace.account.lines(), *late]  # fmt: skip


def spread_rows(schedule: Schedule) -> list[tuple[str, str, str]]:
    """Returns over how many groups and routers a running job is spread, where jobs were placed."""
    found = fragmentation(schedule)
    if found is None:
        return []
    facts = found.facts()
    return [(f"{word} per job", number(facts[f"{word}_per_job"]),
             f"at the fewest {number(facts[f'fewest_{word}_per_job'])}")
            for word in ("groups", "routers")]  # fmt: skip


def fewest_rows(schedule: Schedule) -> list[tuple[str, str]]:
    """Returns the fewest groups and routers per running job, where jobs were placed."""
    found = fragmentation(schedule)
    facts = found.facts() if found else {}
    return [(f"{word}, at the fewest", number(facts[f"fewest_{word}_per_job"]))
            for word in ("groups", "routers") if facts]  # fmt: skip


def molded_rows(schedule: Schedule) -> list[tuple[str, str, str]]:
    """Returns how many jobs ran in a configuration that a power policy chose, where jobs are
    moldable."""
    if schedule.molds is None:
        return []
    return [("molded", f"{len({*schedule.molds.job.tolist()}):,}",
             "jobs, whose run times and watts are those that were measured")]  # fmt: skip


def rows_of(measures: Measures, schedule: Schedule) -> list[tuple[str, str, str]]:
    """Returns all rows of one schedule; states that no job is in are left out."""
    rows = [(it.name, it.text(it.of(measures)), it.note) for it in FIGURES]
    left = [(name, f"{count:,}", "jobs, not done") for name, count in
            (("running", measures.running), ("waiting", measures.waiting),
             ("to come", measures.to_come)) if count]  # fmt: skip
    return [*rows[:STATES_SHOWN], *left, *molded_rows(schedule), *rows[STATES_SHOWN:],
            *spread_rows(schedule)]  # fmt: skip
