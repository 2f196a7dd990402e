"""All that is known of a run, for programs: what `odonata run --json` prints, and what sweeps keep.

`run_facts` is of a run that `odonata.results.execution` has executed; an experiment simulated
in memory (`odonata.results.measured.simulated_facts`) has the same figures.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from odonata.jobs.schedule import FINISHED, Schedule
from odonata.results.job_network import facts as network_facts
from odonata.results.job_table import job_facts, makespan_ps, mean
from odonata.results.register import FIGURES, JOBS, NETWORK
from odonata.results.schedule_measures import Measures
from odonata.results.schedule_series import fragmentation
from pdes.driver import Result

if TYPE_CHECKING:
    from odonata.results.execution import Finished
    from odonata.results.measured import Measured

UNTOLD = ("outcome", "parameters")
"""Fields of a result that are in the files, and in the experiment."""
OF_TRAFFIC = ("offered", "backlog_growth", "saturated", "steadiness")
"""Fields of a performance that mean nothing where jobs send when they are ready to."""


def run_facts(finished: Finished) -> dict[str, Any]:
    """Returns what is known of a run that was executed."""
    made, result = finished.experiment, finished.result
    known = {"name": made.name, "out": str(finished.out), **result_facts(result)}
    if "network" in made.facets:
        return known | facts(finished.measured)
    it = finished.measured
    if has_metrics(result):
        found = facts(it)
    else:
        found = {"jobs": len(it.cluster.trace), "nodes": it.cluster.nodes}
    return known | found | {"jobs_per_second": jobs_per_second(result)}


def result_facts(result: Result) -> dict[str, Any]:
    """Returns what the engine knows of a run."""
    return {name: value for name, value in result.in_ps().items() if name not in UNTOLD}


def facts(it: Measured) -> dict[str, Any]:
    """Returns the figures of a run, and those of each of its jobs."""
    found: dict[str, Any] = {}
    packets = it.performance is not None
    if packets:
        found |= _of_network(it)
    elif it.schedule is not None:
        found |= _of_schedule(it)
    made = it.experiment
    if it.power is not None and made.power is not None:
        watts = {"policy": made.power.policy, **it.power.facts()}
        found |= {"power": watts} if packets else {"power": watts.pop("policy"), **watts}
    if it.market is not None:
        found["market"] = {**it.market.measures.facts(), "by_hour": it.market.rows}
    kinds = (NETWORK, *[JOBS] * bool(it.records))
    found |= {one.path: one.read(it) for one in FIGURES
              if one.read is not None and one.path not in found and one.kind in kinds}  # fmt: skip
    return found


def _of_network(it: Measured) -> dict[str, Any]:
    """Returns the figures of the network, and of the jobs, if there are any, with what it did for
    each, if that is known."""
    assert it.performance is not None
    measured, jobs, made = asdict(it.performance), it.records, it.experiment
    if it.schedule is None:
        return measured
    assert made.machine is not None
    by_job = job_facts(made.machine, jobs)
    if it.networks:
        by_job = [{**job, "network": network_facts(of)}
                  for job, of in zip(by_job, it.networks, strict=True)]  # fmt: skip
    return {
        **{name: value for name, value in measured.items() if name not in OF_TRAFFIC},
        "makespan_ps": makespan_ps(jobs),
        "mean_waiting_ps": mean([job.waiting_ps for job in jobs]),
        "mean_run_time_ps": mean([job.run_time_ps for job in jobs]),
        "jobs": by_job,
    }


def _of_schedule(it: Measured) -> dict[str, Any]:
    made, schedule = it.experiment, it.schedule
    assert schedule is not None
    allocation = made.scheduler.allocation if made.machine else None
    return facts_of(schedule, it.measures, made.scheduler.order, allocation)


def facts_of(
    schedule: Schedule, measured: Measures, scheduling: str, allocation: str | None
) -> dict[str, Any]:
    """Returns what was run without packets, its account, its measures and, where jobs were placed,
    how they are spread. `jobs` are all that were run, `measured_jobs` those that the measures are
    of."""
    trace, found, figures = schedule.trace, fragmentation(schedule), measured.facts()
    account, load, clock = trace.account, trace.load(schedule.nodes), trace.clock
    return {
        "trace": trace.name, "epoch": None if clock is None else clock.date(0),
        "time_zone": None if clock is None else clock.name, "nodes": schedule.nodes,
        "scheduling": scheduling, "allocation": allocation, "jobs": len(trace),
        "dropped": account.total_dropped,
        "repaired": account.total_repaired, "dropped_by_reason": dict(account.dropped),
        "repaired_by_reason": dict(account.repaired), "noted": dict(account.noted),
        "molded_jobs": None if schedule.molds is None else len(np.unique(schedule.molds.job)),
        "offered_load": load if load == load else None,
        "measured_jobs": figures.pop("jobs"), **figures, **(found.facts() if found else {}),
    }  # fmt: skip


def jobs_per_second(result: Result) -> float:
    """Returns how many jobs came to their end per second of `wall_seconds`, in which nothing is
    read, compiled or loaded any more: of a run that was resumed, those of the rest only."""
    ended = result.outcome["end_us"] >= (result.resumed or 0)
    done = (result.outcome["state"] >= FINISHED) & ended
    return float(done.sum() / result.wall_seconds)


def has_metrics(result: Result) -> bool:
    return result.seconds["metrics"] > 0
