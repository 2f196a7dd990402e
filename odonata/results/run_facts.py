"""All that is known of a run, for programs: what `odonata run --json` prints, and what sweeps keep.

`run_facts` is of a run that `odonata.results.execution` has executed, `simulated_facts` of an
experiment that is simulated in memory and leaves nothing on disk. Both have the same figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odonata.experiment.experiment import Experiment, JobExperiment
from odonata.jobs.record import JobRecord
from odonata.results.job_network import JobNetwork
from odonata.results.job_network import facts as network_facts
from odonata.results.job_table import job_facts, makespan_ps, mean
from odonata.results.performance import Performance, job_records, performance
from odonata.results.schedule_facts import jobs_per_second
from pdes.clock import TICKS
from pdes.driver import Result, run
from pdes.transport import Transport

if TYPE_CHECKING:
    from odonata.results.execution import Finished
    from odonata.results.market import Market

UNTOLD = ("outcome", "parameters")
"""Fields of a result that are in the files, and in the experiment."""
OF_TRAFFIC = ("offered", "backlog_growth", "saturated", "steadiness")
"""Fields of a performance that mean nothing where jobs send when they are ready to."""


def run_facts(finished: Finished) -> dict[str, Any]:
    """Returns what is known of a run that was executed."""
    made, result = finished.experiment, finished.result
    known = {"name": made.name, "out": str(finished.out), **result_facts(result)}
    if isinstance(made, JobExperiment):
        facts: dict[str, Any] = {"jobs": len(made.model().trace), "nodes": made.model().nodes}
        if has_metrics(result):
            facts = schedule_facts(made, finished.out)
        return known | facts | {"jobs_per_second": jobs_per_second(result)}
    known |= _network_facts(made, result, finished.jobs)
    if made.power is not None and has_metrics(result):
        from odonata.results.run import Run

        with Run(finished.out) as opened:
            if opened.power_measures is not None:
                known["power"] = {"policy": made.power.policy, **opened.power_measures.facts()}
            known |= market_facts(opened.market)
    return known


def simulated_facts(
    made: Experiment | JobExperiment, transport: Transport | None = None
) -> dict[str, Any]:
    """Returns what is known of an experiment after simulating it, in memory. What is measured of
    power in a run of packets is not known then, except for the energy of its jobs."""
    end = made.run.end
    if isinstance(made, JobExperiment):
        from odonata.results.market_memory import simulate_market
        from odonata.results.power_measures import power_measures
        from odonata.results.schedule_facts import facts_of
        from odonata.results.schedule_measures import measures

        end_us = None if end is None else end // TICKS[made.tick]
        schedule, result, watts, market = simulate_market(made.model(), end_us, transport=transport)
        facts = facts_of(schedule, measures(schedule), made.scheduler.order, _placed(made))
        if made.power is not None and watts is not None:
            price, carbon = (made.model().steps(name) for name in ("price", "carbon"))
            found = power_measures(watts, schedule.trace, price, carbon)
            facts |= {"power": made.power.policy, **found.facts()}
        facts |= market_facts(market)
        return {**result_facts(result), **facts}
    result = run(made.model(), end, transport=transport)
    jobs = job_records(made.model(), result) if made.jobs else ()
    return {**result_facts(result), **_network_facts(made, result, jobs)}


def result_facts(result: Result) -> dict[str, Any]:
    """Returns what the engine knows of a run."""
    return {name: value for name, value in result.in_ps().items() if name not in UNTOLD}


def _network_facts(made: Experiment, result: Result, jobs: Sequence[JobRecord]) -> dict[str, Any]:
    measured = performance(made.model(), result)
    network = JobNetwork.of(made.model(), result.outcome) if made.jobs else []
    return network_facts_of(made, measured, jobs, network)


def network_facts_of(
    made: Experiment,
    performed: Performance,
    jobs: Sequence[JobRecord],
    network: Sequence[JobNetwork],
) -> dict[str, Any]:
    """Returns the figures of the network, and of the jobs, if there are any, with what it did for
    each, if that is known."""
    measured = asdict(performed)
    if not made.jobs:
        return dict(measured)
    facts = job_facts(made.machine, jobs)
    if network:
        facts = [{**job, "network": network_facts(of)}
                 for job, of in zip(facts, network, strict=True)]  # fmt: skip
    return {
        **{name: value for name, value in measured.items() if name not in OF_TRAFFIC},
        "makespan_ps": makespan_ps(jobs),
        "mean_waiting_ps": mean([job.waiting_ps for job in jobs]),
        "mean_run_time_ps": mean([job.run_time_ps for job in jobs]),
        "jobs": facts,
    }


def schedule_facts(made: JobExperiment, out: Path) -> dict[str, Any]:
    """Returns the measures of a run of the job fidelity, from its logs."""
    from odonata.results.schedule_facts import facts_of
    from odonata.results.schedule_run import ScheduleRun

    with ScheduleRun(out) as opened:
        facts = facts_of(opened.schedule, opened.measures, made.scheduler.order, _placed(made))
        if made.power is not None and opened.power_measures is not None:
            facts |= {"power": made.power.policy, **opened.power_measures.facts()}
        facts |= market_facts(opened.market)
    return facts


def market_facts(market: Market | None) -> dict[str, Any]:
    """Returns what the hours of a market came to, and each of them; nothing where there is none."""
    if market is None:
        return {}
    return {"market": {**market.measures.facts(), "by_hour": market.rows}}


def _placed(made: JobExperiment) -> str | None:
    return made.scheduler.allocation if made.machine else None


def has_metrics(result: Result) -> bool:
    return result.seconds["metrics"] > 0
