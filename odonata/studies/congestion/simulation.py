"""One run of the study: an application in one of four settings, or GPCNeT alone.

There is a list of 192 node labels. An application has 64 of them: the first (settings I and III) or
every other one (II and IV); GPCNeT, in III and IV, has the 64 that the application leaves at every
other place. Each repetition shifts all places along the list by a tenth of it.

Routers have input queues, by virtual channel, and a crossbar as wide as a node's link, so that a
packet may wait behind one that goes elsewhere; a node drains what it receives at the rate of its
link, and a request for data no faster than it can be answered. Routing is adaptive, also within a
chassis.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from odonata.agents.profile import Profile
from odonata.experiment.experiment import Experiment
from odonata.experiment.profiles import HOME, SUFFIX, profile, profile_in
from odonata.experiment.sections import (
    Metrics,
    NetworkSettings,
    NicSettings,
    RunSettings,
    SchedulerSettings,
)
from odonata.jobs.request import Job
from odonata.results.execution import recording
from odonata.results.job_network import JobNetwork, job_network
from odonata.results.operator_counters import (
    Counters,
    counters_of,
    job_counters,
    mean_over_run,
)
from odonata.results.run import Run
from odonata.studies.congestion.gpcnet import canary, congestors, split
from odonata.studies.congestion.options import MACHINE
from odonata.study.contract import Case
from pdes.driver import run
from pdes.transport import Serial
from topology.presets import PRESETS

SETTINGS = ("I", "II", "III", "IV")
NODES = 64
LIST = 3 * NODES
SHIFTS = 10
ALONE_ON = (16, 32, 64, 86, 106, 128)
"""Nodes on which GPCNeT runs alone, in figure 3.20."""
NONE = "none"
"""What stands for no congestor, and for no canary."""
INTERVAL_PS = 10**7
"""Simulated time between two readings of the counters."""
LAUNCH_PS = 10**7


@dataclass(frozen=True)
class Point(Case):
    """One run, of an application on `nodes` nodes. `application`: a profile, or empty where GPCNeT
    is alone on these nodes; then `canary` is one of its three tests."""

    application: str
    setting: str
    shift: int
    congestor: str
    canary: str = NONE
    nodes: int = NODES
    tasks: int = 2
    machine: str = MACHINE
    router: str = "aries"
    seed: int = 0
    """Which nodes run the congestors, beside the shift."""

    def __str__(self) -> str:
        where = f"shift {self.shift}"
        if self.application:
            return f"{self.application} in setting {self.setting}, {where}"
        return f"GPCNeT's {self.canary} on {self.nodes} nodes with {self.congestor}, {where}"

    @property
    def weight(self) -> float:
        heavy = {"graph500": 6.0, "minimd": 2.0, "milc": 2.0}.get(self.application, 1.0)
        return heavy * (2.0 if self.congestor != NONE else 1.0)

    def jobs(self) -> list[Job]:
        """Returns its jobs: first the one that is measured."""
        return jobs_of(self)


@dataclass(frozen=True)
class Divided(Point):
    """A run of an application by another profile of it, in which the time in MPI is divided among
    operations as in table 3.4."""

    profiles: str = "table"
    """A directory below those of all profiles: `table` or `real`."""
    requests: int = 1
    """A task of the congestor gets so many times 4 KiB at once: it stands for so many ranks."""

    def __str__(self) -> str:
        return f"{super().__str__()}, {self.profiles} profile"

    def fields(self) -> dict[str, Any]:
        text = path_in(self.profiles, self.application).read_bytes()
        return {**super().fields(), "profile": hashlib.sha256(text).hexdigest()[:20]}

    @property
    def weight(self) -> float:
        heavy = {"graph500": 4.0, "hacc": 3.0, "qmcpack": 3.0, "hpcg": 3.0}
        return 3.0 * heavy.get(self.application, 1.0) * (2.0 if self.congestor != NONE else 1.0)


def path_in(profiles: str, application: str) -> Path:
    """Returns the file of a profile that is not one of those with a name of their own."""
    return HOME / profiles / f"{application}{SUFFIX}"


def profile_of(point: Point) -> Profile:
    """Returns the profile of the application of a run."""
    if isinstance(point, Divided):
        return profile_in(path_in(point.profiles, point.application))
    return profile(point.application)


@dataclass(frozen=True)
class CongestionOutcome:
    """What came of a run; of the application, or of the canary where there is none."""

    run_time_s: float
    communication: float
    """The part of its tasks' time that was not computing."""
    node_bytes_per_s: float
    mean_latency_s: float
    p99_latency_s: float
    non_minimal_hops: float
    """The part of its hops that are on non-minimal paths."""
    stall_to_flit: float
    ntile_stalls_per_s: float
    ptile_stalls_per_s: float
    ptile_flits_per_s: float
    own_ptile_stalls_per_s: float
    """The stalls of the processor tiles of its own nodes; `ptile_stalls_per_s` counts those of all
    nodes of its routers."""
    operations: dict[str, float] = field(default_factory=dict)
    """The part of its tasks' time that was spent in each stage, without computing."""
    events: int = 0
    digest: str = ""


def places(setting: str, shift: int, nodes: int = NODES) -> tuple[list[int], list[int]]:
    """Returns the nodes of the application, of which there are `nodes`, and those of GPCNeT. The
    list has three times as many.

    >>> places("IV", 1)[0][:3], places("IV", 1)[1][:3]
    ([19, 21, 23], [20, 22, 24])
    """
    spaced = setting in ("II", "IV")
    application = range(0, 2 * nodes, 2) if spaced else range(nodes)
    others: Sequence[int] = ()
    if setting == "III":
        others = range(nodes, 3 * nodes, 2)
    elif setting == "IV":
        others = range(1, 2 * nodes, 2)
    length = 3 * nodes
    along = shift * length // SHIFTS
    return ([(place + along) % length for place in application],
            [(place + along) % length for place in others])  # fmt: skip


def jobs_of(point: Point) -> list[Job]:
    """Returns the jobs of a run: first the one that is measured."""
    if point.application:
        mine, theirs = places(point.setting, point.shift, point.nodes)
        jobs = [application_on(profile_of(point), mine, point.tasks)]
        if isinstance(point, Divided):
            jobs = [replace(job, profile="") for job in jobs]  # it is no profile with a name
        return [*jobs, *beside(point, theirs)]
    along, room = point.shift * LIST // SHIFTS, max(LIST, point.nodes)
    nodes = [(place + along) % room for place in range(point.nodes)]
    busy, rest = split(nodes, seed=SHIFTS * point.seed + point.shift)
    jobs = [canary(point.canary, rest, point.tasks)]
    if point.congestor != NONE:
        jobs += congestors(point.congestor.split("+"), busy, point.tasks)
    return jobs


def beside(point: Point, nodes: Sequence[int]) -> list[Job]:
    """Returns GPCNeT on these nodes, if there are any, while an application runs."""
    if not nodes:
        return []
    requests = point.requests if isinstance(point, Divided) else 1
    busy, rest = split(nodes, seed=SHIFTS * point.seed + point.shift)
    ring = replace(canary("latency", rest, point.tasks), iterations=100_000, background=True)
    loud = congestors([point.congestor], busy, point.tasks)
    return [*(at_once(job, requests) for job in loud), ring]


def at_once(congestor: Job, requests: int) -> Job:
    """Returns a congestor whose tasks ask for so many times as much at once."""
    if requests == 1:
        return congestor
    stages = (replace(stage, message_bytes=stage.message_bytes * requests,
                      reply_bytes=stage.reply_bytes * requests) for stage in congestor.stages
    )  # fmt: skip
    return replace(congestor, profile="", stages=tuple(stages))


def application_on(found: Profile, nodes: Sequence[int], tasks: int) -> Job:
    """Returns a job of a profile on these nodes. Its tasks are in order, so that neighbours in its
    grid are near each other, as an MPI library would have them."""
    return Job(len(nodes), name=found.name, profile=found.name, stages=found.stages_for(tasks),
               iterations=found.iterations, on=tuple(nodes), mapping="linear")  # fmt: skip


def experiment_of(jobs: Sequence[Job], tasks: int = 2, machine: str = MACHINE,
                  router: str = "aries", seed: int = 1) -> Experiment:  # fmt: skip
    """Returns the experiment of some jobs."""
    preset = PRESETS[machine].machine
    inside: dict[str, Any] = {}
    nic: dict[str, Any] = {}
    if router == "aries":
        wide = preset.terminal.bandwidth / preset.local.bandwidth
        inside = {"crossbar": float(np.ceil(wide)), "detours": True}
        nic = {"ejection": preset.terminal.bandwidth}
    return Experiment(
        "congestion",
        machine=preset,
        network=NetworkSettings(routing="adaptive", packet_bytes=512, **inside),
        jobs=tuple(jobs),
        scheduler=SchedulerSettings(tasks_per_node=tasks, launch_ps=LAUNCH_PS),
        nic=NicSettings(**nic),
        run=RunSettings(end=None, seed=seed),
        metrics=Metrics(interval_ps=INTERVAL_PS),
    )


@contextmanager
def ran(experiment: Experiment) -> Iterator[tuple[Run, Any]]:
    """Runs an experiment on this core; gives it opened, and its result. Its files are gone
    afterwards."""
    with tempfile.TemporaryDirectory(prefix="odonata-study-") as scratch:
        out = Path(scratch)
        result = run(experiment.model(), None, record=recording(experiment, out),
                     transport=Serial(), show_compiling=False)  # fmt: skip
        with Run(out) as opened:
            yield opened, result


def simulate(point: Point) -> CongestionOutcome:
    """Simulate a run on this core, whatever ranks there are."""
    jobs = point.jobs()
    with ran(experiment_of(jobs, point.tasks, point.machine, point.router)) as (opened, result):
        first = job_network(opened)[0]
        seen = counters_of(opened)
        counters = job_counters(opened, jobs=[0], counters=seen)[0]
        return _outcome(first, counters, own_stalls(opened, seen), result)


def own_stalls(opened: Run, seen: Counters) -> float:
    """Returns the stalls per second of the processor tile of each node of the first job, in flits
    of its link, mean over its nodes and its run."""
    record = opened.job_records[0]
    router, tile = np.divmod(np.array(record.labels), opened.machine.nodes)
    stalls = opened.ports.stall_ps.data[:, router, tile] / seen.node_flit_ps
    return mean_over_run(seen, record, seen.per_second(stalls))


def _outcome(job: JobNetwork, counters: Any, own: float, result: Any) -> CongestionOutcome:
    assert job.run_time_ps is not None
    seconds = job.run_time_ps * 1e-12
    return CongestionOutcome(
        run_time_s=seconds,
        communication=job.communication,
        node_bytes_per_s=job.bytes / job.nodes / seconds,
        mean_latency_s=job.mean_latency_ps * 1e-12,
        p99_latency_s=job.percentile_ps(99) * 1e-12,
        non_minimal_hops=job.non_minimal_hops,
        stall_to_flit=counters.stall_to_flit,
        ntile_stalls_per_s=counters.ntile_stalls_per_s,
        ptile_stalls_per_s=counters.ptile_stalls_per_s,
        ptile_flits_per_s=counters.ptile_flits_per_s,
        own_ptile_stalls_per_s=own,
        operations=job.operations,
        events=result.events,
        digest=result.digest,
    )
