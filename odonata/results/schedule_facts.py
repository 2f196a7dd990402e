"""All that is known of a schedule, for JSON: one function for every command."""

from __future__ import annotations

from typing import Any

import numpy as np

from odonata.jobs.schedule import FINISHED, Schedule
from odonata.results.schedule_measures import Measures
from odonata.results.schedule_series import fragmentation
from pdes.driver import Result


def facts_of(schedule: Schedule, measured: Measures, scheduling: str, allocation: str | None
             ) -> dict[str, Any]:  # fmt: skip
    """Returns what was run, its account, its measures and, where jobs were placed, how they are
    spread. `jobs` are all that were run, `measured_jobs` those that the measures are of."""
    trace = schedule.trace
    account, load = trace.account, trace.load(schedule.nodes)
    found = fragmentation(schedule)
    facts = measured.facts()
    clock = trace.clock
    return {
        "trace": trace.name, "epoch": None if clock is None else clock.date(0),
        "time_zone": None if clock is None else clock.name, "nodes": schedule.nodes,
        "scheduling": scheduling, "allocation": allocation, "jobs": len(trace),
        "dropped": account.total_dropped,
        "repaired": account.total_repaired, "dropped_by_reason": dict(account.dropped),
        "repaired_by_reason": dict(account.repaired), "noted": dict(account.noted),
        "molded_jobs": None if schedule.molds is None else len(np.unique(schedule.molds.job)),
        "offered_load": load if load == load else None,
        "measured_jobs": facts.pop("jobs"), **facts, **(found.facts() if found else {}),
    }  # fmt: skip


def jobs_per_second(result: Result) -> float:
    """Returns how many jobs came to their end per second of `wall_seconds`, in which nothing is
    read, compiled or loaded any more: of a run that was resumed, those of the rest only."""
    ended = result.outcome["end_us"] >= (result.resumed or 0)
    done = (result.outcome["state"] >= FINISHED) & ended
    return float(done.sum() / result.wall_seconds)
