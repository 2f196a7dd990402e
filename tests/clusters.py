"""Runs of the job model on small lists of jobs, in the form in which the naive twin gives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from naive import Job, Record

from odonata.cluster.layout import STARTED
from odonata.cluster.model import Cluster
from odonata.traces.trace import Trace
from pdes.driver import Result, run
from policies.scheduling import DISCIPLINES

STATES = {3: "finished", 4: "killed"}


def trace_of(jobs: Sequence[Job]) -> Trace:
    """Returns the trace of these jobs, one tick of theirs being a microsecond."""
    columns = [np.array([job[i] for job in jobs]) for i in (0, 1, 2, 3)]
    requested = np.array([-1 if job.requested is None else job.requested for job in jobs])
    user = np.array([job.user for job in jobs])
    none = np.zeros(len(jobs), int)
    return Trace("random", *columns, requested, user, none, none, none - 1,
                 users=tuple("abcdefgh"))  # fmt: skip


class Noting(Cluster):
    """A job model whose notes are kept."""

    def noted(self, state: Any) -> Any:
        blocks = super().noted(state)
        self.kept.extend(blocks)
        return blocks

    @property
    def kept(self) -> list[Any]:
        return self.__dict__.setdefault("_kept", [])  # type: ignore[no-any-return]

    def outcome(self, state: Any, pending: Any, parcels: Any, time: int) -> Any:
        self.noted(state)
        return super().outcome(state, pending, parcels, time)


def simulated(
    jobs: Sequence[Job], nodes: int, discipline: str, overrun: str = "kill", **more: Any
) -> tuple[list[Record], Result]:
    """Returns what became of the jobs, as the naive twin says it, and the run."""
    made = {one.name for one in DISCIPLINES[discipline].parameters}
    parameters = {name: more.pop(name) for name in [*more] if name in made}
    if "half_life" in parameters:
        parameters["half_life"] = parameters["half_life"] / 1e6
    model = Noting(trace_of(jobs), nodes, discipline, tuple(parameters.items()), overrun=overrun,
                   **more)  # fmt: skip
    result = run(model, None, show_compiling=False)
    segments: list[list[tuple[int, int]]] = [[] for _ in jobs]
    rows = [(time, job, what) for name, block in model.kept
            for time, job, what in zip(block.times.tolist(), block.columns[0].tolist(),
                                       [STARTED] * len(block.times) if name == "starts"
                                       else block.columns[1].tolist(), strict=True)]  # fmt: skip
    begun: dict[int, int] = {}
    for name in ("starts", "ends"):
        for time, job, what in rows:
            if name == "starts" and what == STARTED:
                segments[job].append((time, -1))
    begun = dict.fromkeys(range(len(jobs)), 0)
    for time, job, what in rows:
        if what != STARTED:
            at = begun[job]
            segments[job][at] = (segments[job][at][0], time)
            begun[job] += 1
    out = result.outcome
    found = [Record(int(start), int(end), STATES[int(state)], segments[job])
             for job, (start, end, state) in enumerate(zip(
                 out["start_us"], out["end_us"], out["state"], strict=True))]  # fmt: skip
    return found, result
