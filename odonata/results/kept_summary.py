"""The summary of a run: what `odonata run` shows when it is over, and again of a run that is
complete already.

It is kept beside the metrics, in `summary.json`, as `--json` prints it, with the wall-clock figures
of the run itself, and a checksum. Where it is missing (the run was killed just before it was
written, or is of an older version) or has been changed, it is made of the metrics, without those.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odonata.experiment.experiment import JobExperiment
from odonata.jobs.record import JobRecord
from odonata.results.job_network import JobNetwork
from odonata.results.job_table import MOST_SHOWN
from odonata.results.performance import Performance, performance
from odonata.results.run_facts import (
    has_metrics,
    market_facts,
    network_facts_of,
    result_facts,
    run_facts,
    schedule_facts,
)
from odonata.results.schedule_facts import jobs_per_second
from pdes.checksum import NAME as CHECKSUM
from pdes.checksum import is_intact, with_checksum
from pdes.clock import TICKS
from pdes.replacing import write_whole

if TYPE_CHECKING:
    from odonata.results.execution import AnyExperiment, Finished

SUMMARY = "summary.json"
"""What `odonata run --json` prints of a complete run."""


def keep(finished: Finished) -> None:
    """Write the summary of a run that is complete."""
    text = json.dumps(run_facts(finished), indent=1, ensure_ascii=False)
    write_whole(finished.out / SUMMARY, with_checksum(text) + "\n")


def kept(out: Path, experiment: AnyExperiment) -> dict[str, Any]:
    """Returns what `odonata run --json` printed of the complete run in a directory; without its
    summary, what of that is in its metrics."""
    from odonata.results.opening import open as open_run

    with open_run(out) as run:
        digest = run.digest
    try:
        text = (out / SUMMARY).read_bytes()
        facts = json.loads(text)
    except (OSError, ValueError):
        return _measured(out, experiment)
    if is_intact(text) and digest in (None, facts.get("digest")):
        del facts[CHECKSUM]
        return facts | {"out": str(out)}  # type: ignore[no-any-return]
    return _measured(out, experiment)


def _measured(out: Path, experiment: AnyExperiment) -> dict[str, Any]:
    """Returns the summary without what is only known when a run is over."""
    from odonata.results.derived import simulated, summary
    from odonata.results.opening import open as open_run
    from odonata.results.run import Run

    with open_run(out) as run:
        known = {"name": experiment.name, "out": str(out), "completed": run.complete,
                 "ranks": int(run.attributes["ranks"]), "digest": run.digest}  # fmt: skip
        if isinstance(run, Run):
            jobs = run.job_records if run.experiment.jobs else []
            network = run.job_network if jobs else []
            known["time_ps"] = simulated(run)
            known |= network_facts_of(run.experiment, summary(run), jobs, network)
            if run.power_measures is not None and run.experiment.power is not None:
                policy = run.experiment.power.policy
                known["power"] = {"policy": policy, **run.power_measures.facts()}
            return known | market_facts(run.market)
        known["time_ps"] = run.simulated_us * TICKS[run.tick]
    assert isinstance(experiment, JobExperiment)
    return known | schedule_facts(experiment, out)


@dataclass(frozen=True)
class Summary:
    """What is shown of a run."""

    experiment: AnyExperiment
    out: Path
    known: Mapping[str, Any]
    """What the engine knows, by the names of `Result`; what is not known is not there."""
    metrics: bool
    """Whether there are any."""
    speed: float | None
    """Jobs per second, of a run of the job fidelity."""
    measured: Performance | None = None
    """The performance of the network, where packets were simulated; so are the next two."""
    jobs: Sequence[JobRecord] = ()
    networks: Sequence[JobNetwork] = ()
    """What the network did for each job, where they are few enough to be shown."""

    @classmethod
    def of(cls, finished: Finished) -> Summary:
        """Returns the summary of a run that has just been executed."""
        made, out, result = finished.experiment, finished.out, finished.result
        known, metrics = result_facts(result), has_metrics(result)
        if isinstance(made, JobExperiment):
            return cls(made, out, known, metrics, jobs_per_second(result))
        jobs, networks = finished.jobs, []
        measured = performance(made.model(), result)
        if 0 < len(jobs) <= MOST_SHOWN:
            networks = JobNetwork.of(made.model(), result.outcome)
        return cls(made, out, known, metrics, None, measured, jobs, networks)

    @classmethod
    def of_files(cls, out: Path, made: AnyExperiment) -> Summary:
        """Returns the summary of the complete run in a directory."""
        from odonata.results.derived import recorded, summary
        from odonata.results.run import Run

        facts = kept(out, made)
        if isinstance(made, JobExperiment):
            return cls(made, out, facts, True, facts.get("jobs_per_second"))
        with Run(out) as run:
            measured, jobs = summary(run), run.job_records if made.jobs else []
            if not recorded(run, "ports"):
                of_ports = {name: facts[name] for name in ("links", "inputs") if name in facts}
                measured = replace(measured, **of_ports)
            networks = run.job_network if 0 < len(jobs) <= MOST_SHOWN else []
        return cls(made, out, facts, True, None, measured, jobs, networks)
