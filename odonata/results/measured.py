"""What was measured of a run, wherever it is: in the files of an opened run, or in memory where an
experiment was simulated and nothing was written.

Facts (`odonata.results.facts`), figures (`odonata.results.register`) and the rows of summaries are
made of this, and so are the same for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from odonata.experiment.experiment import Experiment, JobExperiment
from odonata.jobs.metering import JobEnergy
from odonata.jobs.record import JobRecord
from odonata.jobs.schedule import Schedule
from odonata.results.alone import slowdowns
from odonata.results.job_network import JobNetwork
from odonata.results.performance import Performance, job_energy, performance, schedule_of
from odonata.results.power_measures import PowerMeasures, power_measures
from odonata.results.schedule_measures import Measures, measures_of
from pdes.clock import TICKS
from pdes.driver import Result, run

if TYPE_CHECKING:
    from odonata.agents.network import Network
    from odonata.cluster.model import Cluster
    from odonata.results.market import Market
    from odonata.results.market_memory import Traded
    from odonata.results.run import Run
    from pdes.engine import Progress
    from pdes.transport import Transport

AnyExperiment = Experiment | JobExperiment


@dataclass(frozen=True, eq=False)
class Measured:
    """What was measured of a run. What it does not have is None."""

    experiment: AnyExperiment
    performance: Performance | None = None
    """What came of its network."""
    schedule: Schedule | None = None
    """The table of its jobs."""
    taken: JobEnergy | None = None
    networks: Sequence[JobNetwork] = ()
    """What the network did for each job, where that is known."""
    alone_ps: Sequence[int] | None = None
    power: PowerMeasures | None = None
    market: Market | None = None

    @classmethod
    def of_run(cls, run: Run) -> Measured:
        """Returns what the files of a run have."""
        jobs, packets = run.has("jobs"), run.has("network")
        return cls(
            run.experiment, run.performance, run.schedule if jobs else None,
            None if run.power is None or not jobs else run.power.by_job,
            run.job_network if jobs and packets else (), run.alone_ps if jobs and packets else None,
            run.power_measures, run.market,
        )  # fmt: skip

    @classmethod
    def of_packets(cls, made: Experiment, result: Result) -> Measured:
        """Returns what the result of a run of packets has; of power, the energy of its jobs."""
        network = made.model()
        found = cls(made, performance(network, result))
        if not made.jobs:
            return found
        schedule = schedule_of(network, result, made.name)
        return replace(found, schedule=schedule, taken=job_energy(network, result, schedule),
                       networks=JobNetwork.of(network, result.outcome))  # fmt: skip

    @classmethod
    def of_traded(cls, made: JobExperiment, found: Traded) -> Measured:
        """Returns what a run of jobs that was simulated in memory has."""
        it, watts, model = (
            cls(made, schedule=found.schedule, market=found.market),
            found.power,
            made.model(),
        )
        if watts is None:
            return it
        price, carbon = (model.steps(name) for name in ("price", "carbon"))
        measures = power_measures(watts, found.schedule.trace, price, carbon)
        return replace(it, taken=watts.by_job, power=measures)

    @property
    def cluster(self) -> Cluster:
        """Returns the machine of a run without packets, and its jobs."""
        assert isinstance(self.experiment, JobExperiment)
        return self.experiment.model()

    @property
    def network(self) -> Network:
        """Returns the network of a run of packets."""
        assert isinstance(self.experiment, Experiment)
        return self.experiment.model()

    @cached_property
    def records(self) -> list[JobRecord]:
        """Returns a record per job of a run of packets, by number."""
        if self.schedule is None or self.performance is None:
            return []
        return self.schedule.records(self.taken)

    @cached_property
    def slowdowns(self) -> list[float | None]:
        """Returns how many times as long each job took as alone."""
        return slowdowns(self.records, self.alone_ps)

    @cached_property
    def measures(self) -> Measures:
        """Returns the measures of its schedule."""
        assert self.schedule is not None
        return measures_of(self.schedule, self.experiment)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """Returns all of it, for JSON."""
        from odonata.results.facts import facts

        return facts(self)

    @cached_property
    def flat(self) -> dict[str, float | None]:
        """Returns the figures of the run, by their paths."""
        from odonata.results.register import FIGURES, flat

        found = dict(flat(self.facts))
        return found | {it.path: it.read(self) for it in FIGURES if it.read is not None}

    def violations(self, causes: Sequence[str]) -> float | None:
        """Returns how many readings are above the cap, for one of these causes; None where there
        never was one."""
        if self.power is None or self.power.capping_success is None:
            return None
        return sum(self.power.violations[cause] for cause in causes)


def simulated(made: AnyExperiment, transport: Transport | None = None) -> tuple[Measured, Result]:
    """Returns what is measured of an experiment after simulating it, in memory, and the engine's
    account. What is measured of power in a run of packets is not known then, except for the energy
    of its jobs."""
    if isinstance(made, Experiment):
        result = run(made.model(), made.run.end, transport=transport)
        return Measured.of_packets(made, result), result
    found = traded(made, transport)
    return Measured.of_traded(made, found), found.result


def traded(
    made: JobExperiment, transport: Transport | None = None, progress: Progress | None = None
) -> Traded:
    """Returns what becomes of an experiment of jobs that is simulated in memory."""
    from odonata.results.market_memory import simulate_market

    end_us = None if made.run.end is None else made.run.end // TICKS[made.tick]
    return simulate_market(made.model(), end_us, transport=transport, progress=progress)


def simulated_facts(made: AnyExperiment, transport: Transport | None = None) -> dict[str, Any]:
    """Returns what is known of an experiment after simulating it, in memory."""
    return _facts(*simulated(made, transport))


def traded_facts(made: JobExperiment, found: Traded) -> dict[str, Any]:
    """Returns the same of an experiment that was simulated."""
    return _facts(Measured.of_traded(made, found), found.result)


def _facts(it: Measured, result: Result) -> dict[str, Any]:
    from odonata.results.facts import jobs_per_second, result_facts

    found = {**result_facts(result), **it.facts}
    if it.performance is None:
        found["jobs_per_second"] = jobs_per_second(result)
    return found
