"""What commands measure of a canary or an application: a sweep over the nodes that it has, alone
and with what congests the network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from odonata.experiment.experiment import Experiment
from odonata.experiment.profiles import profile
from odonata.experiment.sensitivity import operation_of
from odonata.results.job_network import added_up, job_network
from odonata.results.operator_counters import counters_of, job_counters
from odonata.studies.congestion.gpcnet import CANARIES
from odonata.studies.congestion.simulation import Point, experiment_of, ran
from odonata.study.filling import fill
from odonata.sweeps.axes import Axis, Value, toml
from odonata.sweeps.drafts import Draft
from odonata.sweeps.outcomes import SweepOutcome
from odonata.sweeps.plan import Point as SweepPoint
from odonata.sweeps.study import Sweep
from pdes.errors import Fault
from pdes.transport import world

ALONE, CONGESTED = "alone", "congested"


@dataclass(frozen=True)
class Measured(SweepOutcome):
    """What came of the first job of a run."""

    run_time_s: float = 0.0
    operations: Mapping[str, float] = field(default_factory=dict)
    """The part of its tasks' time in each kind of MPI operation (`operation_of`)."""
    stall_to_flit: float = 0.0


@dataclass(frozen=True)
class Measuring(Sweep):
    """A sweep whose runs are read as an operator would, while they are on disk."""

    def simulate(self, case: SweepPoint) -> Measured:
        made = case.experiment()
        assert isinstance(made, Experiment)
        with ran(made) as (opened, result):
            first = job_network(opened)[0]
            seen = job_counters(opened, jobs=[0], counters=counters_of(opened))[0]
        assert first.run_time_ps is not None
        kinds = [operation_of(stage) for stage in made.jobs[0].parts]
        return Measured(
            digest=result.digest, run_time_s=first.run_time_ps * 1e-12,
            operations=added_up(kinds, first.in_stages), stall_to_flit=seen.stall_to_flit,
        )  # fmt: skip


def draft_of(
    where: str, by: str, points: Mapping[str, Point], congested: bool, canaries: Sequence[str] = ()
) -> Draft:
    """Returns the sweep over some points of the study, which differ only in their nodes: `by` what,
    with the label of each. Where it is `congested`, also of the first job alone."""
    first, *_ = points.values()
    text = experiment_of(first.jobs(), first.tasks, first.machine, first.router).to_toml()
    nodes = []
    for label, point in points.items():
        on = (f"jobs[{at}].on={toml([*job.on])}" for at, job in enumerate(point.jobs()))
        nodes.append(Value(label, tuple(on)))
    others = tuple(f"jobs[{at}]=none" for at in range(1, len(first.jobs())))
    axes = [Axis("canary", tuple(map(_of_canary, canaries)), True)] if canaries else []
    axes.append(Axis(by, tuple(nodes), True))
    if congested:
        axes.append(Axis("congestion", (Value(ALONE, others), Value(CONGESTED, ())), True))
    return Draft(where, text, axes)


def _of_canary(name: str) -> Value:
    called = CANARIES[name]
    keys: dict[str, Any] = {"name": called, "profile": called,
                            "iterations": profile(called).iterations}  # fmt: skip
    return Value(name, tuple(f"jobs[0].{key}={toml(value)}" for key, value in keys.items()))


def measured(draft: Draft, jobs: int) -> dict[tuple[str, ...], Measured]:
    """Returns what was measured at each combination."""
    plan = draft.plan()
    done, store = fill(Measuring(plan), plan, None, jobs)
    if done.failures:
        raise Fault(done.failures[0])
    found: Mapping[str, Any] = world().everyone(store.outcomes)[0]
    return {point.labels: found[point.key] for point in plan.points}
