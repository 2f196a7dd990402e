"""One case of the study: a trace under several policies and bounds, or the errors of the model; and
what it gives."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from odonata.study.contract import Case
from pdes.transport import Serial

if TYPE_CHECKING:
    from odonata.cluster.simulation import Simulated
    from odonata.provisioning.table import Table
    from odonata.studies.rmap.measures import Ran
    from odonata.traces.trace import Trace

Rows = dict[str, dict[str, float]]
Lists = dict[str, dict[str, list[float]]]
NODES, TRAINED, MARGIN = 64, 0.1, 0.15
"""The nodes of the machine, the share of the measurements that the model is trained on, and the
margin that the thesis proposes for its errors."""
LEAST_MARGIN = 1.0 - 1.0 / 1.23
"""The margin that no node exceeds of those that draw up to 23 % more than the most efficient."""
NEVER_PS, SECOND_PS = 10**17, 10**12
"""The interval at which power is measured: never, as the study adds up what jobs draw."""
PLACES = "kim-72"
"""The preset on whose first 64 nodes jobs have places where nodes differ."""
OF_PROJECTS = 78
"""The purpose of the random numbers that say whose jobs are whose."""
UNBOUNDED = -1.0
"""The threshold that stands for none."""


class Policy(NamedTuple):
    """A policy of RMAP by its name in the register, and its parameters."""

    name: str
    parameters: Mapping[str, Any]

    @property
    def learned(self) -> bool:
        return self.parameters.get("knowledge") == "model"

    @property
    def sampling(self) -> str:
        return str(self.parameters.get("sampling", "random"))

    @property
    def margin(self) -> float:
        return float(self.parameters.get("margin", 0.0))


MODEL: dict[str, Any] = {"knowledge": "model"}
TRADITIONAL, NAIVE, STRICT, ORACLE, ADAPTIVE = (
    "traditional", "naive", "naive strict", "adaptive oracle", "adaptive")  # fmt: skip
THRESHOLDS = {"0 %": 0.0, "10 %": 0.1, "20 %": 0.2, "30 %": 0.3, "unbounded": UNBOUNDED}
POLICIES: dict[str, Policy] = {
    TRADITIONAL: Policy("rmap-traditional", {}),
    NAIVE: Policy("rmap-naive", {}),
    STRICT: Policy("rmap-naive", {"strict": True}),
    "traditional model": Policy("rmap-traditional", MODEL),
    "naive model": Policy("rmap-naive", MODEL),
    "adaptive margin": Policy("rmap-adaptive", {**MODEL, "margin": MARGIN}),
    "adaptive spread": Policy("rmap-adaptive", {**MODEL, "sampling": "spread"}),
    "adaptive spread margin": Policy(
        "rmap-adaptive", {**MODEL, "sampling": "spread", "margin": MARGIN}
    ),
} | {f"{name} {words}": Policy("rmap-adaptive", {**knows, "threshold": threshold})
     for name, knows in ((ORACLE, {}), (ADAPTIVE, MODEL))
     for words, threshold in THRESHOLDS.items()}  # fmt: skip
"""By the names that the study uses. As in the thesis, traditional and naive know what was measured
and adaptive what the model predicts, where the name does not say otherwise."""
ADAPTIVE_0, ADAPTIVE_10, ADAPTIVE_20, ADAPTIVE_30, UNLIMITED = (
    f"{ADAPTIVE} {words}" for words in THRESHOLDS)  # fmt: skip
ORACLE_0 = f"{ORACLE} 0 %"
SHOWN = (TRADITIONAL, ADAPTIVE_0, ADAPTIVE_20)
"""The policies under which single jobs are shown."""
PROJECTS = ("high", "normal", "low")
PRIORITIES = "high 2; low 0.5"
"""Chosen: a third of the jobs is of each project, by chance, and what their shares count for."""
SMALL = 24
"""The most nodes of a small job; and those of the partition that small ones may have."""
PARTITION: dict[str, Any] = {"small": SMALL, "small_nodes": SMALL}
OPTIONS: dict[str, Policy] = {
    f"{NAIVE} priorities": Policy("rmap-naive", {"priorities": PRIORITIES}),
    f"{ORACLE} 0 % priorities": Policy("rmap-adaptive", {"priorities": PRIORITIES}),
    f"{NAIVE} partition": Policy("rmap-naive", PARTITION),
    f"{ORACLE} 0 % partition": Policy("rmap-adaptive", PARTITION),
    f"{ORACLE} 0 % least margin": Policy("rmap-adaptive", {"margin": LEAST_MARGIN}),
}
"""What the thesis mentions and does not try: priorities, and a partition for small jobs; and a
margin for sockets that differ."""
READ = "naive: "
"""How the names of readings of naive begin (`readings`)."""


def policy_of(name: str) -> Policy:
    """Returns the policy of a name that the study uses."""
    if name.startswith(READ):
        from odonata.studies.rmap.readings import READINGS

        return Policy("rmap-naive", READINGS[name.removeprefix(READ)].parameters)
    return POLICIES.get(name) or OPTIONS[name]


NOT = object()
LATER = {"arrivals": "poisson", "variation": 0.0}
"""The fields of `Traced` that there were not at first, and what they were then."""


@dataclass(frozen=True)
class Traced(Case):
    """A trace under all policies that are named and all bounds. `everywhere` are parameters that
    every policy has, `adaptive` those of the adaptive one alone, both as pairs; `noise` is that of
    the measurements. Jobs are kept under the bounds of `kept`. `arrivals` are those of the trace,
    and `variation` says by how much nodes differ in power."""

    kind: str
    seed: int
    bounds_w: tuple[float, ...]
    policies: tuple[str, ...]
    gap_s: float
    requests: str = "packed"
    everywhere: tuple[tuple[str, Any], ...] = ()
    adaptive: tuple[tuple[str, Any], ...] = ()
    noise: float = 0.0
    kept: tuple[float, ...] = ()
    arrivals: str = "poisson"
    variation: float = 0.0

    def fields(self) -> dict[str, Any]:
        """Returns its fields, without those that came later and are as they were before."""
        found = super().fields()
        return {name: value for name, value in found.items() if LATER.get(name, NOT) != value}

    def __str__(self) -> str:
        return f"{self.kind} jobs, trace {self.seed}, a gap of {self.gap_s:g} s"

    @property
    def weight(self) -> float:
        return 0.01 * len(self.bounds_w) * len(self.policies)


@dataclass(frozen=True)
class Trained(Case):
    """The errors of the model over so many trainings, of which each takes this share of what was
    measured, with lognormal noise of these levels in times and watts. `without_turbo`: of the caps
    below the highest alone; `sampling`: how the share is chosen."""

    noise_time: float
    noise_power: float
    trainings: int
    share: float = TRAINED
    without_turbo: bool = False
    sampling: str = "random"

    def __str__(self) -> str:
        return f"prediction, noise {100 * self.noise_time:g} %"

    @property
    def weight(self) -> float:
        return 0.02 * self.trainings


@dataclass(frozen=True)
class RmapOutcome:
    """What a case gave: numbers by the name of a row, and lists of them. The rows of a trace are
    its policies at bounds (`row`), those of the model its applications."""

    rows: Mapping[str, Mapping[str, float]]
    lists: Mapping[str, Mapping[str, list[float]]] = field(default_factory=dict)
    seconds: float = 0.0
    """Processor time."""


def row(policy: str, bound_w: float) -> str:
    return f"{policy} @ {bound_w:g} W"


def simulate(case: Traced | Trained) -> RmapOutcome:
    """Simulate a case on this core."""
    from odonata.studies.rmap.prediction import trained

    began = time.process_time()
    rows, lists = trained(case) if isinstance(case, Trained) else traced(case)
    return RmapOutcome(rows, lists, time.process_time() - began)


def traced(case: Traced) -> tuple[Rows, Lists]:
    """Returns what the jobs of a trace did under every policy and bound."""
    from odonata.studies.rmap.measures import by_class, compared, measured, per_job

    rows: Rows = {}
    lists: Lists = {}
    trace = _trace(case)
    for bound_w in case.bounds_w:
        found = {name: run(case, name, bound_w) for name in case.policies}
        for name, one in found.items():
            here = measured(one, bound_w, policy_of(name).margin)
            if TRADITIONAL in found:
                here |= compared(one, found[TRADITIONAL])
            if name.startswith(ADAPTIVE) and ADAPTIVE_0 in found:
                here |= compared(one, found[ADAPTIVE_0], " on 0 %")
            if OPTIONS.keys() & found.keys():
                here |= by_class(one, trace, SMALL)
            rows[row(name, bound_w)] = here
            if bound_w in case.kept and name in SHOWN:
                lists[row(name, bound_w)] = per_job(one)
    return rows, lists


def run(case: Traced, name: str, bound_w: float) -> Ran:
    """Returns what becomes of the case's jobs under one policy and bound."""
    from odonata.studies.rmap.measures import ran

    schedule = simulated(case, name, bound_w).schedule
    planned = None
    if policy_of(name).learned:
        assert schedule.molds is not None
        trace, found = schedule.trace, predicted_w(case.seed, case.noise, policy_of(name).sampling)
        jobs = zip(*(column.tolist() for column in schedule.molds[:4]), strict=True)
        planned = {job: found[trace.applications[trace.application[job]]][nodes, cores, cap_w]
                   for job, nodes, cores, cap_w in jobs}  # fmt: skip
    return ran(schedule, bound_w, planned)


def simulated(case: Traced, name: str, bound_w: float) -> Simulated:
    from odonata.cluster.model import Cluster
    from odonata.cluster.simulation import simulate as simulate_jobs
    from odonata.jobs.power import Power
    from odonata.studies.rmap.readings import READINGS, by_job
    from topology.presets import PRESETS

    policy, reading = policy_of(name), READINGS.get(name.removeprefix(READ))
    parameters = dict(policy.parameters) | dict(case.everywhere)
    if policy.learned:
        parameters["training"] = case.seed
    if policy.name == "rmap-adaptive":
        parameters |= dict(case.adaptive)
    trace, tables = _trace(case), tables_of(case.noise, case.seed)
    more: dict[str, Any] = {"interval_ps": NEVER_PS}
    if reading is not None and reading.known is not None:
        trace, tables = by_job(trace, tables, reading.known, bound_w, NODES)
        more["maximum_w"] = bound_w  # as a job may count for more than it draws
    if reading is not None and reading.every_s:
        more |= {"interval_ps": round(reading.every_s * SECOND_PS), "passes": "intervals"}
    power = Power(policy.name, tuple(parameters.items()), cap=f"{bound_w:g} W", idle_w=0.0,
                  variation=case.variation, **more)  # fmt: skip
    machine = PRESETS[PLACES].machine if case.variation else None
    return simulate_jobs(Cluster(trace, NODES, "fcfs", machine=machine, seed=case.seed, power=power,
                                 applications=tables), transport=Serial())  # fmt: skip


def _trace(case: Traced) -> Trace:
    return trace_of(case.kind, case.seed, case.gap_s, case.requests, case.noise, case.arrivals)


@lru_cache(maxsize=8)
def trace_of(
    kind: str, seed: int, gap_s: float, requests: str, noise: float, arrivals: str = "poisson"
) -> Trace:
    """Returns a trace whose jobs are of projects of different priorities."""
    import numpy as np

    from odonata.traces.rmap import rmap

    found = rmap(kind, seed=seed, gap_s=gap_s, requests=requests, arrivals=arrivals,
                 measured=tables_of(noise, seed))  # fmt: skip
    drawn = np.random.default_rng((seed, OF_PROJECTS)).integers(len(PROJECTS), size=len(found))
    return replace(found, project=drawn, projects=PROJECTS)


@lru_cache(maxsize=8)
def tables_of(noise: float, seed: int) -> Mapping[str, Table]:
    """Returns what was measured of cab's applications, with noise."""
    from odonata.provisioning.fitted import tables
    from odonata.studies.rmap.prediction import with_noise

    found = tables("cab")
    return found if noise == 0 else {name: with_noise(table, noise, noise, seed)
                                     for name, table in found.items()}  # fmt: skip


@lru_cache(maxsize=8)
def predicted_w(
    seed: int, noise: float, sampling: str
) -> dict[str, dict[tuple[int, int, float], float]]:
    """Returns the watts that the model predicts for each configuration, by application."""
    from policies.power.prediction import predicted_choices

    found = {}
    for name, table in tables_of(noise, seed).items():
        known = predicted_choices(name, table.choices, TRAINED, seed, sampling)
        names = zip(known.nodes.tolist(), known.cores.tolist(), known.cap_w.tolist(), strict=True)
        found[name] = dict(zip(names, known.watts.tolist(), strict=True))
    return found
