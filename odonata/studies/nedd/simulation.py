"""One run of the study: an application beside a congestor, or a queue of jobs among congestors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from odonata.agents.network import Network
from odonata.experiment.experiment import Experiment
from odonata.experiment.profiles import profile
from odonata.experiment.sections import Metrics
from odonata.jobs.request import Job, Stage
from odonata.results.performance import job_records
from odonata.studies.congestion.options import MACHINE
from odonata.studies.congestion.simulation import LAUNCH_PS, application_on, experiment_of
from odonata.studies.congestion.users import FOREVER, chance, in_sets, others_on
from odonata.studies.nedd.floor import CONGESTED, IDLE, WANTED, gpcnet_on, silent_on
from odonata.study.contract import Case
from pdes.driver import run
from pdes.transport import Serial
from topology.presets import PRESETS

NO_CONGESTOR = "no-congestor"
"""Stands among allocations for fewer-router while GPCNeT does not run."""
PARAMETERS: dict[str, dict[str, Any]] = {"low-stall-router": {"by_class": True}}
"""Parameters of allocations: the thesis has Low-Stall-Router go by the class of a job, as NeDD."""
TASKS = 2
US = 10**6
INTERVAL_US = 500
"""Simulated time between two readings of counters. On the machine of the thesis it was a second, in
which its applications go through many iterations; so they do here."""
DELAY_US = 10
ARRIVAL_US = 1050
"""When the application arrives, and the first job of a queue: two intervals are known."""
SENSITIVE = ("hacc", "lammps", "milc", "miniamr", "minimd", "qmcpack")
INSENSITIVE = ("hpcg", "graph500")
CONGESTORS, CONGESTOR_NODES = 4, 36
"""How many congestors there are beside a queue, and the nodes of each."""
JOBS = 24
"""Jobs of a queue, half of them sensitive."""
SIZES = (16, 32, 48)
SPACING_US = 150
"""Simulated time between two arrivals in a queue."""
GET_US = 18
"""How long all 36 nodes of a congestor take to get 4 KiB once, from its first node, measured."""
TURNS = 16
"""How often congestors that do not stay change before they do all that again."""
MOVING_NODES = 2 * WANTED
"""Nodes of an application among congestors that move: twice as many, so that it meets one more
often."""


@dataclass(frozen=True)
class Alone(Case):
    """An application on 32 of 136 idle nodes, beside GPCNeT on 64."""

    application: str
    allocation: str
    run: int
    sets: int = 50
    congestor: str = "rma-broadcast"
    tasks: int = TASKS
    """Tasks per node, of all jobs."""
    ranks: int = TASKS
    """Ranks per node of the congestor, each with a request of its own: those of one task are one
    large request here."""
    hot: int = 1
    """Nodes from which others get, each from a part of the congestor's nodes."""
    congested: int = CONGESTED
    together: bool = False
    """Whether GPCNeT has neighbouring ones of the idle nodes, and not some at random."""
    busy: bool = True
    """Whether other users' jobs send anything."""

    def __str__(self) -> str:
        return (f"{self.application} by {self.allocation}, run {self.run}, {self.sets} sets, "
                f"{self.tasks} tasks and {self.ranks} ranks of {self.congestor} per node, "
                f"{self.hot} hot nodes, {self.congested} congested, together {self.together}, "
                f"others busy {self.busy}")  # fmt: skip

    @property
    def weight(self) -> float:
        return max(self.ranks, 2 * self.tasks) / 4


@dataclass(frozen=True)
class Queue(Case):
    """Sensitive and insensitive jobs in a queue, among congestors that are active for `stay_us` and
    then silent for as long, on average (0: that are always active). Counters are read every
    `interval_us`, and reports come after `delay_us`."""

    allocation: str
    run: int
    order: str = "fcfs"
    stay_us: int = 0
    interval_us: int = INTERVAL_US
    delay_us: int = DELAY_US
    arrival_us: int = ARRIVAL_US
    congestor: str = "rma-broadcast"

    def __str__(self) -> str:
        return (f"queue by {self.allocation} in order {self.order}, run {self.run}, counters "
                f"{self.delay_us} us late")  # fmt: skip

    @property
    def weight(self) -> float:
        return 4.0


@dataclass(frozen=True)
class Moving(Case):
    """An application on 64 idle nodes, among congestors of which half are active, which others are
    every `stay_us` on average."""

    application: str
    allocation: str
    run: int
    delay_us: int = DELAY_US
    stay_us: int = 1000
    interval_us: int = 100
    arrival_us: int = 4400
    congestor: str = "rma-broadcast"

    def __str__(self) -> str:
        return (f"{self.application} by {self.allocation}, run {self.run}, counters "
                f"{self.delay_us} us late")  # fmt: skip


Point = Alone | Queue | Moving


@dataclass(frozen=True)
class NeDDOutcome:
    """What came of a run: of each job that is waited for, in the order of submission."""

    applications: list[str]
    sensitive: list[bool | None]
    submit_s: list[float]
    start_s: list[float]
    end_s: list[float]
    nodes: list[int]
    shared: list[float]
    """The part of its nodes whose routers have a congestor's node."""
    beside: list[bool]
    """Whether one of its routers has the node from which all nodes of a congestor get data."""
    events: int = 0
    digest: str = ""


def simulate(point: Point) -> NeDDOutcome:
    """Simulate a run on this core, whatever ranks there are."""
    experiment = experiment_for(point)
    network: Network = experiment.model()
    result = run(network, None, transport=Serial(), show_compiling=False)
    records = job_records(network, result)
    per_router = network.machine.nodes
    congestors = [[label // per_router for label in record.labels] for record in records
                  if record.name.startswith("gpcnet-rma")]  # fmt: skip
    near, hot = {*chain(*congestors)}, {routers[0] for routers in congestors}
    mine = [record for record, job in zip(records, experiment.jobs, strict=True)
            if not job.background]  # fmt: skip
    wanted = [job for job in experiment.jobs if not job.background]
    return NeDDOutcome(applications=[record.name for record in mine],
                       sensitive=[job.sensitive for job in wanted],
                       submit_s=[job.arrival_ps * 1e-12 for job in wanted],
                       start_s=[_seconds(record.start_ps) for record in mine],
                       end_s=[_seconds(record.end_ps) for record in mine],
                       nodes=[job.nodes for job in wanted],
                       shared=[float(np.mean([label // per_router in near
                                              for label in record.labels])) for record in mine],
                       beside=[any(label // per_router in hot for label in record.labels)
                               for record in mine], events=result.events, digest=result.digest
    )  # fmt: skip


def _seconds(ps: int | None) -> float:
    assert ps is not None
    return ps * 1e-12


def waiting(name: str, nodes: int, arrival_us: int, iterations: int = 0, tasks: int = TASKS) -> Job:
    """Returns a job of a profile that an allocation is to place; with as many iterations as the
    profile has, if none are given."""
    found = profile(name)
    job = application_on(found, range(nodes), tasks)
    return replace(job, on=(), arrival_ps=arrival_us * US, sensitive=found.sensitive,
                   iterations=iterations or job.iterations)  # fmt: skip


def experiment_for(point: Point) -> Experiment:
    """Returns the experiment of a case."""
    if isinstance(point, Alone):
        return experiment_beside(point)
    return experiment_among(point) if isinstance(point, Queue) else experiment_with_turns(point)


# -- an application beside a congestor


def experiment_beside(point: Alone) -> Experiment:
    """Returns the experiment of section 3.8."""
    total = PRESETS[MACHINE].machine.n_nodes
    rng = chance(1, point.run, point.sets)
    idle = in_sets(IDLE, total, point.sets, rng)
    drawn = rng.choice(idle, point.congested, replace=False).tolist()
    if point.together:
        first = idle.index(drawn[0])
        drawn = [idle[(first + place) % IDLE] for place in range(point.congested)]
    congested, held = sorted(drawn), sorted({*range(total)} - {*idle})
    jobs = [waiting(point.application, WANTED, ARRIVAL_US, tasks=point.tasks)]
    jobs += others_on(held, point.tasks, rng) if point.busy else [silent_on(held)]
    allocation = point.allocation
    if allocation == NO_CONGESTOR:
        jobs.append(silent_on(congested))
        allocation = "fewer-router"
    else:
        jobs += gpcnet_on(
            congested, point.hot * [point.congestor], point.tasks, point.run, point.ranks
        )
    return _experiment(jobs, allocation, "fcfs", INTERVAL_US, DELAY_US, point.tasks)


# -- several congestors


def scattered(rng: np.random.Generator) -> list[list[int]]:
    """Returns the nodes of each congestor, at random."""
    total = PRESETS[MACHINE].machine.n_nodes
    nodes = rng.permutation(total)[: CONGESTORS * CONGESTOR_NODES].reshape(CONGESTORS, -1)
    return [sorted(some) for some in nodes.tolist()]


def congestor_on(nodes: Sequence[int], kind: str, spans: Sequence[tuple[float, float]]) -> Job:
    """Returns a congestor in the background that is silent and then active, for each of these spans
    in us; or always active, where there is none."""
    found = profile(f"gpcnet-{kind}")
    stages, iterations = found.stages_for(TASKS), FOREVER
    if spans:
        iterations = FOREVER // TURNS
        stages = tuple(stage for silent, active in spans for stage in _turn(stages, silent, active))
    return Job(len(nodes), name=found.name, stages=stages, iterations=iterations, on=tuple(nodes),
               background=True, mapping="linear")  # fmt: skip


def _turn(stages: Sequence[Stage], silent_us: float, active_us: float) -> tuple[Stage, ...]:
    """Returns a pause, and the stages of a congestor for a time, if it is any."""
    if not active_us:
        stages = ()
    gets = (replace(stage, repeat=max(1, round(active_us / GET_US))) for stage in stages)
    return (Stage("permutation", 1, compute_ps=round(silent_us * US), name="pause"), *gets)


def experiment_among(point: Queue) -> Experiment:
    """Returns the experiment of a mixed queue. Congestors that do not stay are silent and active
    independently of one another, each time for between half and one and a half of a stay."""
    rng = chance(2, point.run)
    jobs = []
    for nodes in scattered(rng):
        spans: Any = ()
        if point.stay_us:
            spans = rng.uniform(0.5, 1.5, (TURNS, 2)) * point.stay_us
            spans[0, 0] *= rng.integers(2)
        jobs.append(congestor_on(nodes, point.congestor, [*map(tuple, spans)]))
    names = [*_some(SENSITIVE, JOBS // 2, rng), *_some(INSENSITIVE, JOBS // 2, rng)]
    for number, place in enumerate(rng.permutation(JOBS).tolist()):
        name, size = names[place], int(rng.choice(SIZES))
        once = int(name in INSENSITIVE)  # or they would run four times as long as the others
        jobs.append(waiting(name, size, point.arrival_us + number * SPACING_US, once))
    return _experiment(jobs, point.allocation, point.order, point.interval_us, point.delay_us)


def _some(names: Sequence[str], count: int, rng: np.random.Generator) -> list[str]:
    """Returns so many of these names, each as often as any other but for one, at random."""
    often = -(-count // len(names))
    return rng.permutation(np.tile(np.array(names), often)[:count]).tolist()  # type: ignore[no-any-return]


def experiment_with_turns(point: Moving) -> Experiment:
    """Returns the experiment of an application among congestors that take turns: for between half
    and one and a half of a stay, one half of them, drawn at random, is active."""
    rng = chance(3, point.run)
    everyone = scattered(rng)
    stays = rng.uniform(0.5, 1.5, TURNS) * point.stay_us
    active = rng.permuted(np.tile(np.arange(CONGESTORS) % 2 == 0, (TURNS, 1)), axis=1)
    jobs = [waiting(point.application, MOVING_NODES, point.arrival_us)]
    if point.allocation == NO_CONGESTOR:
        jobs += [silent_on(nodes) for nodes in everyone]
        return _experiment(jobs, "fewer-router", "fcfs", point.interval_us, point.delay_us)
    jobs += [congestor_on(nodes, point.congestor, spans_of(mine.tolist(), stays.tolist()))
             for nodes, mine in zip(everyone, active.T, strict=True)]  # fmt: skip
    return _experiment(jobs, point.allocation, "fcfs", point.interval_us, point.delay_us)


def spans_of(active: Sequence[bool], stays: Sequence[float]) -> list[tuple[float, float]]:
    """Returns for how long a congestor is silent and then active, again and again, given for each
    stay whether it is active.

    >>> spans_of([False, True, True, False, True], [3.0, 5.0, 2.0, 4.0, 1.0])
    [(3.0, 7.0), (4.0, 1.0)]
    """
    found = [[0.0, 0.0]]
    for is_active, stay in zip(active, stays, strict=True):
        if not is_active and found[-1][1]:
            found.append([0.0, 0.0])
        found[-1][int(is_active)] += stay
    return [(silent, busy) for silent, busy in found]


def _experiment(jobs: Sequence[Job], allocation: str, order: str, interval_us: int, delay_us: int,
                tasks: int = TASKS) -> Experiment:  # fmt: skip
    made = experiment_of(jobs, tasks)
    how = replace(made.scheduler, allocation=allocation, order=order, launch_ps=LAUNCH_PS,
                  allocation_parameters=tuple(PARAMETERS.get(allocation, {}).items()),
                  telemetry_ps=interval_us * US, telemetry_delay_ps=delay_us * US)  # fmt: skip
    return replace(made, name="nedd", scheduler=how, metrics=Metrics())
