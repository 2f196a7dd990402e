"""Runs of the job model on small lists of jobs, in the form in which the naive twin gives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from naive import Job, Record

from odonata.cluster.model import Cluster
from odonata.cluster.simulation import simulate
from odonata.traces.trace import Trace
from pdes.driver import Result
from policies.scheduling import SCHEDULINGS, SchedulingPolicy

STATES = {3: "finished", 4: "killed"}


def trace_of(jobs: Sequence[Job]) -> Trace:
    """Returns the trace of these jobs, one tick of theirs being a microsecond."""
    columns = [np.array([job[i] for job in jobs]) for i in (0, 1, 2, 3)]
    requested = np.array([-1 if job.requested is None else job.requested for job in jobs])
    user = np.array([job.user for job in jobs])
    none = np.zeros(len(jobs), int)
    return Trace("random", *columns, requested, user, none, none, none - 1,
                 users=tuple("abcdefgh"))  # fmt: skip


def simulated(
    jobs: Sequence[Job], nodes: int, discipline: str, overrun: str = "kill", **more: Any
) -> tuple[list[Record], Result]:
    """Returns what became of the jobs, as the naive twin says it, and the run."""
    made = {one.name for one in SCHEDULINGS[discipline].parameters}
    parameters = {name: more.pop(name) for name in [*more] if name in made}
    if "half_life" in parameters:
        parameters["half_life"] = parameters["half_life"] / 1e6
    model = Cluster(trace_of(jobs), nodes, discipline, tuple(parameters.items()), overrun=overrun,
                    **more)  # fmt: skip
    found, result, _ = simulate(model)
    segments: list[list[tuple[int, int]]] = [[] for _ in jobs]
    for job, begin, end in zip(found.segment_job.tolist(), found.segment_from_us.tolist(),
                               found.segment_to_us.tolist(), strict=True):  # fmt: skip
        segments[job].append((begin, end))
    records = [Record(start, end, STATES[state], segments[job])
               for job, (start, end, state) in enumerate(zip(
                   found.start_us.tolist(), found.end_us.tolist(), found.state.tolist(),
                   strict=True))]  # fmt: skip
    return records, result


def through_a_view(discipline: str, parameters: dict[str, Any]) -> type[SchedulingPolicy]:
    """Returns a policy that asks a compiled discipline through a view, as a user's own would be."""
    given = {name: value / 1e6 if name == "half_life" else value
             for name, value in parameters.items()}  # fmt: skip
    inner: SchedulingPolicy = SCHEDULINGS.make(discipline, given)

    class Through(SchedulingPolicy):
        always, preemptive = inner.always, inner.preemptive

        def select(self, view: Any) -> Any:
            return inner.select(view)

        def remembers(self, sizes: Any) -> Any:
            return inner.remembers(sizes)

    return Through
