"""An opened run, whatever it simulated (`odonata.open("out")`): its provenance, its tables, and
what it has of a network, of jobs, of power and of a market.

A run **has** some of these facets and others not (`Run.has`): packets have a network, and jobs
where some were asked for; months of jobs have no network. What a run does not have is None or, for
a table or a list, refused with the reason.
"""

from __future__ import annotations

import json
import math
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from odonata.experiment.experiment import Experiment, JobExperiment
from odonata.experiment.reading import parse
from odonata.jobs.series import Steps
from odonata.results.tables import Tables
from pdes.clock import TICKS
from pdes.errors import Refused
from pdes.join import status_of

if TYPE_CHECKING:
    import xarray as xr

    from odonata.agents.network import Network
    from odonata.jobs.metering import PowerRecord
    from odonata.jobs.record import JobRecord
    from odonata.jobs.schedule import Schedule
    from odonata.results.job_network import JobNetwork
    from odonata.results.market import Market
    from odonata.results.operator_counters import Counters
    from odonata.results.packet_trace import PacketTrace
    from odonata.results.performance import Performance
    from odonata.results.power_measures import PowerMeasures
    from odonata.results.schedule_measures import Measures
    from odonata.results.seen import Seen
    from odonata.traces.clock import WallClock
    from odonata.traces.trace import Account, Trace
    from topology import Dragonfly

STATES = ("running", "stopped", "complete", "failed", "died", "deadlocked")
"""The names of states, by the numbers of `pdes.stream`."""
INCOMPLETE = {
    "running": "it was still running",
    "stopped": "it was stopped, at a checkpoint",
    "complete": "it has been completed since",
    "failed": "it ended in an error",
    "died": "it died",
    "deadlocked": "it was deadlocked: packets waited for each other for ever",
}
"""What is printed about a run that is not complete."""
NETWORK, JOBS, POWER, MARKET = FACETS = ("network", "jobs", "power", "market")


def open(path: str | Path) -> Run:
    """Returns the run in a directory; refused where there is none."""
    path = Path(path)
    if not path.is_dir():
        raise Refused(f"{path}: there is no such directory")
    return Run(path)


class Run:
    """An opened run. Close it, or use it in a `with`, where files must not stay open. Times are in
    its `tick` (a picosecond where packets are simulated, else a microsecond)."""

    experiment: Experiment | JobExperiment

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tables = Tables(path)
        self.file, self.read = self.tables.file, self.tables.read
        self.attributes = self.tables.attributes
        """Its provenance: versions, host, when it was started, ..."""
        self.experiment = parse(self.attributes["experiment"], str(path), stand_in=True)
        self.tick = self.tables.tick
        """The unit of its times."""
        self.complete = self.tables.complete
        """Whether it came to its end; if not, it was stopped, died, or goes on."""
        self.times = self.tables.times
        """When samples were taken, in ticks, as numpy has it."""

    def close(self) -> None:
        self.tables.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "complete" if self.complete else f"incomplete, {self.reached_ps} ps"
        if self.missing:
            state += f", the plug-in of {', '.join(self.experiment.missing)} is missing"
        return f"<run {self.experiment.name!r} in {self.path}: {state}, {len(self.times)} samples>"

    # -- what was run

    def has(self, facet: str) -> bool:
        """Tells whether a run has one of FACETS: was that simulated?"""
        return facet in self.experiment.facets

    @property
    def reached(self) -> int:
        """Returns the simulated time that it has reached, in ticks. In a complete run nothing may
        have been left to measure before its end; then samples end there. A run without an end has
        come as far as its samples."""
        end: int | None = self.experiment.run.end
        if self.complete and end is not None:
            return end // TICKS[self.tick]
        return int(self.times[-1]) if len(self.times) else 0

    @property
    def reached_ps(self) -> int:
        """Returns the same in ps."""
        return self.reached * TICKS[self.tick]

    @cached_property
    def simulated(self) -> int:
        """Returns the time that it has simulated, in ticks: where it went on until nothing was
        left, to the last thing that happened, and not to when that was noticed."""
        if not self.complete or self.experiment.run.end is not None:
            return self.reached
        if not self.has(NETWORK):
            return int(self.schedule.end.max(initial=0))
        over = self.has(JOBS) and bool(self.schedule.done.all())
        return max(self.last_in_ps, int(self.schedule.end.max()) if over else 0)

    @property
    def simulated_ps(self) -> int:
        """Returns the same in ps."""
        return self.simulated * TICKS[self.tick]

    @property
    def simulated_us(self) -> int:
        """Returns the same in whole microseconds."""
        return self.simulated_ps // TICKS["us"]

    @property
    def missing(self) -> str:
        """A sentence that names the policies and patterns of this run whose plug-ins are gone;
        empty if there are none. Opening a run never loads plug-ins, for nothing of them is needed;
        it is enough that they are there."""
        files, policies = self.experiment.plugins, ", ".join(self.experiment.missing)
        gone = [file for file in files if not Path(file).exists()]
        if not policies or (files and not gone):
            return ""
        several = len(gone) > 1
        which = f"plug-in{'s' * several} ({', '.join(gone)})" if gone else "plug-in"
        return (f"the {which} of {policies} {'are' if several else 'is'} missing; all that was "
                "measured is here")  # fmt: skip

    @property
    def state(self) -> str:
        """Returns complete, stopped (at a checkpoint), failed, died, or running: as far as is
        known."""
        return STATES[status_of(self.path)[0]]

    @property
    def digest(self) -> str | None:
        """Returns the digest of a complete run, or None."""
        return self.attributes.get("digest") if self.complete else None

    @property
    def packages(self) -> dict[str, str]:
        """Returns the versions with which it ran."""
        return json.loads(self.attributes["packages"])  # type: ignore[no-any-return]

    # -- tables

    @cached_property
    def time(self) -> xr.DataArray:
        """When samples were taken, in ticks; each describes the interval that ends then."""
        from xarray import DataArray

        return DataArray(self.times, dims="time", attrs={"unit": self.tick})

    @cached_property
    def interval(self) -> xr.DataArray:
        """The length of these intervals, in ticks."""
        from xarray import DataArray

        lengths = np.diff(self.times, prepend=0)
        return DataArray(lengths, {"time": self.times}, "time", attrs={"unit": self.tick})

    def log(self, name: str) -> dict[str, Any]:
        """Returns the columns of a log that have a number per row; for a run that is not complete,
        as of its last sample. Empty where there is no such log."""
        return self.tables.log(name, self.reached)

    def _table(self, name: str, **coordinates: Any) -> xr.Dataset:
        if not self.has(NETWORK) and name not in ("system", "engine"):
            raise Refused(f"{self.path}: {name} were not recorded (it simulated no packets)")
        coordinates |= {"time": self.time, f"interval_{self.tick}": ("time", self.interval.data)}
        return self.tables.table(name, coordinates)

    @cached_property
    def ports(self) -> xr.Dataset:
        """Returns the counters of every port of every router, summed over its virtual channels."""
        return self._of_ports("ports")

    @cached_property
    def channels(self) -> xr.Dataset:
        """Returns the same by virtual channel, where that was asked for (`metrics.channels`)."""
        return self._of_ports("channels")

    @cached_property
    def inputs(self) -> xr.Dataset:
        """Returns what the first packets at every input port waited for, where routers have
        crossbars and ports were recorded."""
        return self._of_ports("inputs")

    def _of_ports(self, name: str) -> xr.Dataset:
        from odonata.results.network import of_ports

        return self._table(name, **of_ports(self.machine))

    @cached_property
    def nodes(self) -> xr.Dataset:
        from odonata.results.network import of_nodes

        return self._table("nodes", **of_nodes(self.machine))

    @cached_property
    def groups(self) -> xr.Dataset:
        from odonata.results.network import of_groups

        return self._table("groups", **of_groups(self.machine))

    @cached_property
    def system(self) -> xr.Dataset:
        """Returns the queue, the running jobs and the busy nodes, as sampled where no packets were
        simulated."""
        return self._table("system")

    @cached_property
    def engine(self) -> xr.Dataset:
        """Returns the engine's own counters by rank, which are different on every machine."""
        return self._table("engine")

    @cached_property
    def jobs(self) -> xr.Dataset:
        """Returns every job, as far as is known; times that are not are -1."""
        from odonata.results import jobs

        return jobs.of_packets(self) if self.has(NETWORK) else jobs.of_trace(self)

    @cached_property
    def stages(self) -> xr.Dataset:
        """Returns every stage of every job of a run of packets, and what its tasks did with their
        time, summed over tasks; without the times while they are not known."""
        from odonata.results.jobs import stages

        return stages(self)

    # -- its network

    @property
    def network(self) -> Network:
        """Returns the network that was simulated. Refused where there was none."""
        if not isinstance(self.experiment, Experiment):
            raise Refused(f"{self.path}: is a run of jobs without packets: it has no network")
        return self.experiment.model()

    @property
    def machine(self) -> Dragonfly:
        """Returns the machine, of which a run that only counts nodes has none."""
        machine: Dragonfly | None = self.experiment.machine
        if machine is None:
            raise Refused(f"{self.path}: nodes were only counted, so that there is no machine")
        return machine

    @property
    def n_nodes(self) -> int:
        """Returns how many nodes the machine has."""
        return int(self.attributes["nodes"]) if "nodes" in self.attributes else self.machine.n_nodes

    @cached_property
    def performance(self) -> Performance | None:
        """Returns the figures of `odonata.performance`, from the files of the run; None where no
        packets were simulated."""
        if not self.has(NETWORK):
            return None
        from odonata.results.derived import summary

        return summary(self)

    @cached_property
    def last_in_ps(self) -> int:
        """Returns when the last packet was delivered, in ps."""
        last = len(self.times) - 1
        return int(self.read("groups/last_received_ps", last).max()) if len(self.times) else 0

    @cached_property
    def counters(self) -> Counters:
        """Returns its counters as an operator reads them (`counters_of`), read once."""
        from odonata.results.operator_counters import counters_of

        return counters_of(self)

    @cached_property
    def packet_trace(self) -> PacketTrace:
        """Returns the paths of the packets that were traced (`metrics.trace_packets`)."""
        from odonata.results.packet_trace import packet_trace

        return packet_trace(self)

    # -- its jobs

    @cached_property
    def trace(self) -> Trace:
        """Returns what its jobs asked for, from its files: a trace that was read need not be
        there."""
        from odonata.results.jobs import trace_of

        return self.schedule.trace if self.has(NETWORK) else trace_of(self)

    @property
    def account(self) -> Account:
        """Returns what was dropped and repaired when the trace was read."""
        from odonata.traces.trace import Account

        return Account(**json.loads(self.attributes.get("account", "{}")))

    @property
    def clock(self) -> WallClock | None:
        """Returns which date time 0 has, and what clocks show then; None where nobody told it."""
        from odonata.traces.clock import WallClock

        told = self.attributes.get("clock")
        return None if told is None else WallClock(**json.loads(told))

    @cached_property
    def schedule(self) -> Schedule:
        """Returns the table of its jobs: what became of them, as far as is known. Refused where it
        ran none."""
        from odonata.results.jobs import schedule_of

        if not self.has(JOBS):
            raise Refused(f"{self.path}: ran no jobs ([[jobs]])")
        return schedule_of(self)

    @cached_property
    def job_records(self) -> list[JobRecord]:
        """Returns a record per job, with the labels of its nodes."""
        return self.schedule.records(None if self.power is None else self.power.by_job)

    @cached_property
    def measures(self) -> Measures:
        """Returns the measures of the schedule, without the warm-up and the cool-down that the
        experiment says."""
        from odonata.results.schedule_measures import measures_of

        return measures_of(self.schedule, self.experiment)

    @cached_property
    def job_network(self) -> list[JobNetwork]:
        """Returns what the network did for each job; empty while that is not known."""
        from odonata.results.job_network import job_network

        return job_network(self)

    @cached_property
    def job_stalls(self) -> list[float]:
        """Returns the stall-to-flit ratio of each job's routers while it ran, as `job_counters`
        has it; NaN where ports were not recorded, where the job has not run for an interval, and
        where there are too many samples to be read at once."""
        from odonata.results.derived import MOST_TILE_SAMPLES, recorded, tile_samples
        from odonata.results.operator_counters import job_counters

        if not recorded(self, "ports") or not 0 < tile_samples(self) <= MOST_TILE_SAMPLES:
            return [math.nan] * len(self.network.jobs)
        return [it.stall_to_flit for it in job_counters(self, counters=self.counters)]

    @cached_property
    def alone_ps(self) -> list[int] | None:
        """Returns how long each job takes alone, in ps, -1 where that was not measured; None where
        nothing was (`odonata slowdown`)."""
        from odonata.results.alone import measured

        return measured(self.path, self.attributes["id"], len(self.schedule))

    @cached_property
    def seen(self) -> list[Seen | None]:
        """Returns by job what the scheduler saw of the network when it started it; None where
        nothing had been reported, or the job has not been started. Empty where the scheduler is
        told nothing of the network."""
        from odonata.results.seen import LOGS, seen_by_job

        if "seen" not in self.file:
            return []
        return seen_by_job(self, {name: self.log(name) for name in LOGS})

    # -- power, and a market

    @cached_property
    def power(self) -> PowerRecord | None:
        """Returns what was measured of power, None where it was not simulated."""
        from odonata.results.power import power_of

        return power_of(self) if self.has(POWER) else None

    @cached_property
    def power_measures(self) -> PowerMeasures | None:
        """Returns the measures of power, None where it was not simulated."""
        from odonata.results.power_measures import power_measures

        if self.power is None:
            return None
        trace = None if self.has(NETWORK) else self.trace
        return power_measures(self.power, trace, self.steps("price"), self.steps("carbon"))

    @cached_property
    def market(self) -> Market | None:
        """Returns the hours of a market, None where the machine took part in none."""
        from odonata.results.market_files import market_of

        return market_of(self) if self.has(MARKET) else None

    def steps(self, name: str) -> Steps | None:
        """Returns the price or the carbon intensity over time, from the files of the run."""
        if name not in self.file:
            return None
        since = self.read(f"{name}/since_{self.tick}") // (TICKS["us"] // TICKS[self.tick])
        return Steps.of(since, self.read(f"{name}/value"))
