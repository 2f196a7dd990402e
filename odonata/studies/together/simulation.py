"""One simulation of the study: a queue of jobs of four applications on 72 nodes, packet by packet,
under an allocation, a power policy and a bid; and what came of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from odonata.agents.network import Network
from odonata.experiment.experiment import Experiment
from odonata.experiment.sections import (
    Metrics,
    NetworkSettings,
    RunSettings,
    SchedulerSettings,
)
from odonata.jobs.market import MarketSettings
from odonata.jobs.power import Power
from odonata.jobs.request import Job
from odonata.results.job_network import JobNetwork
from odonata.results.performance import job_records
from odonata.study.contract import Case
from pdes.driver import Result, run
from pdes.transport import Serial
from policies.views import tracking
from topology.presets import PRESETS

US = 10**6
MACHINE = "kim-72"
TASKS = 2
PACKET_BYTES = 2048
INTERVAL_US, LAUNCH_US, TELEMETRY_US = 40, 2, 100
STEP_US = 4 * INTERVAL_US
"""How often the signal changes."""
MEMORY_US = 900, 200
"""The time constants of the filters of the signal."""
WARM_US = 200
"""What is before is not judged: the machine is filled."""
LEAST_JUDGED = 10
"""So many intervals are judged at least, though no job waits any more."""
LIMIT = MarketSettings().limit
"""The error, as a part of the reserve, above which an interval is bad."""
ACTIVE_W = 290.0
APPLICATIONS = {
    "solver": Job(8, "halo3d", 4096, compute_ps=60 * US, iterations=12, sensitive=False),
    "stencil": Job(8, "halo3d", 16384, compute_ps=20 * US, iterations=30, sensitive=True),
    "spectral": Job(8, "fft3d", 16384, compute_ps=20 * US, iterations=22, sensitive=True),
    "transpose": Job(8, "all-to-all", 8192, compute_ps=20 * US, iterations=16, sensitive=False),
}
"""They wait in MPI for 3, 15, 32 and 41 % of their time, about."""
SIZES = (4, 6, 8, 12, 16)
AT_ONCE = 8
"""So many jobs are there at time 0."""
SPACING_US = 60.0
"""The mean time between two arrivals after that."""
POWERS: Mapping[str, tuple[str, tuple[tuple[str, Any], ...]]] = {
    "assumed": ("by-caps", (("meters", False), ("turns", False))),
    "metered": ("by-caps", (("apart", False), ("turns", False))),
    "by type": ("by-caps", (("turns", False),)),
    "by waiting": ("by-caps", ()),
    "aqa": ("aqa", ()),
    "tracking-only": ("tracking-only", ()),
}
"""The power policies of the study, by what they know: nothing; what the machine draws; what each
type of jobs draws; the same, and they cap first who loses least by it. The last two, which start a
job where it fits without a cap, know nothing either."""


@dataclass(frozen=True)
class Offer(Case):
    """One queue of jobs. `seed` is that of the jobs and of the signal; `power` is of POWERS; with a
    reserve of 0 nothing is offered and nobody is capped. `waiting_w` is what a node draws whose job
    waits."""

    seed: int
    allocation: str = "simple"
    power: str = "assumed"
    reserve_w: float = 0.0
    average_w: float = 15_500.0
    waiting_w: float = 180.0
    jobs: int = 28

    def __str__(self) -> str:
        return (f"{self.allocation}, {self.power}, {self.reserve_w:g} W of {self.average_w:g} W, "
                f"seed {self.seed}")  # fmt: skip


@dataclass(frozen=True)
class TogetherOutcome:
    """The outcome. What is said of power is of the time in which jobs waited, after WARM_US."""

    power_w: float
    bias_w: float
    """By how much the machine drew more than its target, on average."""
    spread_w: float
    """The standard deviation of that."""
    bad: float | None
    """The part of the intervals whose error is above the limit; None where nothing is offered."""
    error: float | None
    """The mean error, as a part of the reserve."""
    saving: float | None
    """The part of the price of the average that is saved."""
    turnaround_us: float
    """The mean time from arrival to end, over all jobs."""
    run_us: Mapping[str, float]
    """The mean run time of each application."""
    network_us: float
    """The mean time over jobs that a task was not computing."""
    communication: Mapping[str, float]
    """The part of its tasks' time that this is, by application."""
    makespan_us: float
    events: int
    digest: str


def queue_of(case: Offer) -> list[Job]:
    """Returns the jobs of a case: each application equally often, in random order, of random
    size."""
    rng = np.random.Generator(np.random.Philox(key=1000 + case.seed))
    often = -(-case.jobs // len(APPLICATIONS))
    names = rng.permutation(np.tile(np.array([*APPLICATIONS]), often))[: case.jobs]
    found, arrival = [], 0.0
    for number, name in enumerate(names.tolist()):
        arrival += rng.exponential(SPACING_US) if number >= AT_ONCE else 0.0
        found.append(replace(APPLICATIONS[name], nodes=int(rng.choice(SIZES)), application=name,
                             name=f"{name} {number}", arrival_ps=round(arrival) * US,
                             mapping="linear"))  # fmt: skip
    return found


def experiment_for(case: Offer) -> Experiment:
    """Returns the experiment of a case."""
    policy, given = POWERS[case.power]
    market = MarketSettings(
        "fixed", (("average", case.average_w), ("reserve", case.reserve_w)), "synthetic",
        signal_interval_ps=STEP_US * US, signal_slow_memory_ps=MEMORY_US[0] * US,
        signal_fast_memory_ps=MEMORY_US[1] * US, hour_ps=20 * INTERVAL_US * US,
    )  # fmt: skip
    power = Power(policy, given, interval_ps=INTERVAL_US * US, active_w=ACTIVE_W,
                  communicating_w=min(case.waiting_w, ACTIVE_W))  # fmt: skip
    scheduler = SchedulerSettings(allocation=case.allocation, tasks_per_node=TASKS,
                                  launch_ps=LAUNCH_US * US, telemetry_ps=TELEMETRY_US * US
    )  # fmt: skip
    return Experiment(
        "together",
        machine=PRESETS[MACHINE].machine,
        network=NetworkSettings(routing="adaptive", packet_bytes=PACKET_BYTES),
        jobs=tuple(queue_of(case)),
        scheduler=scheduler,
        run=RunSettings(end=None, seed=case.seed),
        metrics=Metrics(interval_ps=1000 * US, ports=False),
        power=power,
        market=market,
    )


def simulate(case: Offer) -> TogetherOutcome:
    """Simulate a queue on this core, whatever ranks there are."""
    network: Network = experiment_for(case).model()
    rows: list[tuple[int, float, float]] = []

    def take(time: int, agent: int, logs: Any) -> None:
        rows.extend((time, values[0], values[1]) for name, values in logs if name == "tracking")

    result = run(network, None, log=take, transport=Serial(), show_compiling=False)
    return _outcome(case, network, result, np.array(rows))


def _outcome(case: Offer, network: Network, result: Result, rows: Any) -> TogetherOutcome:
    """Returns what came of a run; `rows` are times in ps, targets and powers in W."""
    records, jobs = job_records(network, result), queue_of(case)
    names = np.array([job.application for job in jobs])
    start, end = (np.array([getattr(it, name) for it in records]) / US
                  for name in ("start_ps", "end_ps"))  # fmt: skip
    arrival = np.array([job.arrival_ps for job in jobs]) / US
    waits = np.array([it.communication for it in JobNetwork.of(network, result.outcome)])
    run_us = end - start

    def by_application(values: Any) -> dict[str, float]:
        return {name: float(values[names == name].mean()) for name in APPLICATIONS
                if (names == name).any()}  # fmt: skip

    time_us, target_w, power_w = rows[:, 0] / US - LAUNCH_US, rows[:, 1], rows[:, 2]
    until = max(start.max(), WARM_US + LEAST_JUDGED * INTERVAL_US)
    some = (time_us > WARM_US) & (time_us <= until)
    off = (power_w - target_w)[some]
    bad = error = saving = None
    if case.reserve_w > 0.0:
        errors = tracking.errors(power_w[some], target_w[some], case.reserve_w)
        bad, error = tracking.bad_share(errors, LIMIT), tracking.mean_error(errors)
        cost = tracking.cost(case.average_w, case.reserve_w, error, 1.0, 1.0, 1.0, 1.0)
        saving = tracking.saving(cost, case.average_w, 1.0, 1.0)
    return TogetherOutcome(float(power_w[some].mean()), float(off.mean()), float(off.std()), bad,
                           error, saving, float((end - arrival).mean()), by_application(run_us),
                           float((run_us * waits).mean()), by_application(waits), float(end.max()),
                           result.events, result.digest)  # fmt: skip
