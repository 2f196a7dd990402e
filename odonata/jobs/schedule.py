"""A schedule: what became of the jobs of a trace on a machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from odonata.traces.trace import Trace, Whole
from topology import Dragonfly

TO_COME, WAITING, RUNNING, FINISHED, KILLED = range(5)
"""The states of a job. One that was preempted is waiting again. One is killed when it reaches its
requested time (where the scheduler does so)."""
STATES = ("to come", "waiting", "running", "finished", "killed")
FINISHES, KILLS, SUSPENDS = 1, 2, 3
"""The ways in which a job gives its nodes back, as logs name them."""


class Molds(NamedTuple):
    """What moldable jobs ran in: jobs, nodes and cores of each, caps per socket and watts of all
    nodes together, and how long each might run in us."""

    job: Whole
    nodes: Whole
    cores: Whole
    cap_w: npt.NDArray[np.float64]
    watts: npt.NDArray[np.float64]
    limit_us: Whole

    @classmethod
    def of_rows(cls, rows: Sequence[Sequence[Any]]) -> Molds:
        """Returns these, of the rows of a log."""
        columns: Any = [*zip(*rows, strict=True)] or [()] * len(cls._fields)
        job, nodes, cores, limit_us = (np.array(columns[i], np.int64) for i in (0, 1, 2, 5))
        cap_w, watts = (np.array(columns[i], np.float64) for i in (3, 4))
        return cls(job, nodes, cores, cap_w, watts, limit_us)


@dataclass(frozen=True, eq=False)
class Schedule:
    """What became of the jobs of a trace. Times are microseconds; -1: not yet.

    A **segment** is a stretch of time for which a job held nodes without interruption. A job that
    is never preempted has one. Segments are in order of their beginning.
    """

    trace: Trace
    nodes: int
    """The size of the machine."""
    reached_us: int
    """The time that the run has reached."""
    state: npt.NDArray[np.int8]
    """[job]: one of the five states."""
    start_us: Whole
    """[job]: when it first got its nodes."""
    end_us: Whole
    """[job]: when it finished or was killed."""
    segment_job: Whole
    """[segment]: the position of its job in the trace."""
    segment_from_us: Whole
    segment_to_us: Whole
    """[segment]: its beginning and its end; -1 while it goes on."""
    machine: Dragonfly | None = None
    """Where jobs were placed; None where nodes were only counted."""
    labels: npt.NDArray[np.int32] | None = None
    """The nodes of every segment, in the order in which it was given them, one segment after the
    other; a segment has as many as its job has nodes."""
    molds: Molds | None = None
    """What moldable jobs ran in; None where there are none."""

    def __len__(self) -> int:
        return len(self.trace)

    @classmethod
    def of_logs(
        cls,
        trace: Trace,
        nodes: int,
        reached_us: int,
        starts: tuple[Whole, Whole],
        ends: tuple[Whole, Whole, Whole],
        machine: Dragonfly | None = None,
        labels: npt.NDArray[np.int32] | None = None,
        molds: Molds | None = None,
    ) -> Schedule:
        """Returns the schedule that the logs of a run tell of: times and jobs of starts, and times,
        jobs and kinds of ends (one of FINISHES, KILLS and SUSPENDS), each in order of time."""
        (began, started), (ended, left, how), n = starts, ends, len(trace)
        state = np.where(trace.submit_us < reached_us, WAITING, TO_COME).astype(np.int8)
        start_us, end_us = np.full((2, n), -1, np.int64)
        start_us[started[::-1]] = began[::-1]  # of several the first
        running = np.bincount(started, minlength=n) > np.bincount(left, minlength=n)
        state[running] = RUNNING
        over = how != SUSPENDS
        end_us[left[over]] = ended[over]
        state[left[how == FINISHES]] = FINISHED
        state[left[how == KILLS]] = KILLED
        to = np.full(len(started), -1, np.int64)
        by_start, by_end = (np.argsort(jobs, kind="stable") for jobs in (started, left))
        counts = np.bincount(left, minlength=n)
        first_start = np.searchsorted(started[by_start], np.arange(n))
        first_end = np.cumsum(counts) - counts
        job = started[by_start]
        nth = np.arange(len(job)) - first_start[job]
        has = nth < counts[job]
        to[by_start[has]] = ended[by_end[(first_end[job] + nth)[has]]]
        return cls(trace, nodes, reached_us, state, start_us, end_us, started, began, to, machine,
                   labels, molds)  # fmt: skip

    @cached_property
    def job_nodes(self) -> Whole:
        """[job]: the nodes that it got or, as long as it has none, that it asked for."""
        if self.molds is None:
            return self.trace.nodes
        found = self.trace.nodes.copy()
        found[self.molds.job] = self.molds.nodes
        return found

    @cached_property
    def held(self) -> Whole:
        """[segment]: the nodes that it holds."""
        return self.job_nodes[self.segment_job]

    @property
    def done(self) -> npt.NDArray[np.bool_]:
        """[job]: has it finished, or been killed?"""
        return self.state >= FINISHED

    @property
    def first_label(self) -> Whole:
        """[segment]: where in `labels` its nodes begin."""
        sizes = self.held
        begin: Whole = np.cumsum(sizes) - sizes
        return begin
