"""A schedule: the table of the jobs of a run, whatever it simulates, with what became of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from odonata.jobs.board import BEGAN, DONE, OVER, QUEUED, STATUS
from odonata.jobs.record import JobRecord
from odonata.jobs.request import Job
from odonata.traces.trace import UNKNOWN, Trace, Whole
from pdes.clock import TICKS
from topology import Dragonfly

if TYPE_CHECKING:
    from odonata.jobs.metering import JobEnergy

MICROSECOND_PS = TICKS["us"]

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
    """What became of the jobs of a run, in order of submission. Times are ticks of its model, and
    those whose names end in `_us` the same in whole microseconds; -1: not yet.

    A **segment** is a stretch of time for which a job held nodes without interruption. A job that
    is never preempted has one. Segments are in order of their beginning.
    """

    trace: Trace
    """What was asked for, in microseconds."""
    nodes: int
    """The size of the machine."""
    reached: int
    """The time that the run has reached."""
    state: npt.NDArray[np.int8]
    """[job]: one of the five states."""
    start: Whole
    """[job]: when it first got its nodes or, where packets are simulated, its tasks were to start,
    a launch latency later."""
    end: Whole
    """[job]: when it finished or was killed."""
    segment_job: Whole
    """[segment]: the position of its job in the trace."""
    segment_from: Whole
    segment_to: Whole
    """[segment]: its beginning and its end; -1 while it goes on."""
    machine: Dragonfly | None = None
    """Where jobs were placed; None where nodes were only counted."""
    labels: npt.NDArray[np.int32] | None = None
    """The nodes of every segment, in the order in which it was given them, one segment after the
    other; a segment has as many as its job has nodes."""
    molds: Molds | None = None
    """What moldable jobs ran in; None where there are none."""
    tick: str = "us"
    """The unit of its times."""
    asked: tuple[Job, ...] = ()
    """[job]: what its user asked for, where packets are simulated."""

    def __len__(self) -> int:
        return len(self.trace)

    # -- in microseconds

    @property
    def reached_us(self) -> int:
        return self.reached * TICKS[self.tick] // MICROSECOND_PS

    @cached_property
    def start_us(self) -> Whole:
        return self._us(self.start)

    @cached_property
    def end_us(self) -> Whole:
        return self._us(self.end)

    @cached_property
    def segment_from_us(self) -> Whole:
        return self._us(self.segment_from)

    @cached_property
    def segment_to_us(self) -> Whole:
        return self._us(self.segment_to)

    def _us(self, times: Whole) -> Whole:
        if TICKS[self.tick] == MICROSECOND_PS:
            return times
        return np.where(times < 0, -1, times * TICKS[self.tick] // MICROSECOND_PS)

    @cached_property
    def submit(self) -> Whole:
        """[job]: when it joined the queue, in ticks."""
        if self.asked:
            return np.array([job.arrival_ps for job in self.asked], np.int64) // TICKS[self.tick]
        return self.trace.submit_us

    # -- of what it is made

    @classmethod
    def of_board(
        cls, name: str, jobs: Sequence[Job], board: Any, labels: Any, machine: Dragonfly,
        reached_ps: int,
    ) -> Schedule:  # fmt: skip
        """Returns what the scheduler's board (`odonata.jobs.board`) of a run of packets tells of
        its jobs; `labels` are the nodes of all of them, in the order of the board."""
        order = np.argsort(np.array([job.arrival_ps for job in jobs], np.int64), kind="stable")
        asked = tuple(jobs[number] for number in order.tolist())
        status, begun = board[order, STATUS], board[order, STATUS] != QUEUED
        over = status == DONE
        start, end = (
            np.where(begun, board[order, BEGAN], -1),
            np.where(over, board[order, OVER], -1),
        )
        here = np.array([job.arrival_ps for job in asked], np.int64) <= reached_ps
        state = np.select([over, begun, here], [FINISHED, RUNNING, WAITING], TO_COME)
        ran = np.flatnonzero(begun)
        ran = ran[np.argsort(start[ran], kind="stable")]
        sizes = np.array([job.nodes for job in jobs], np.int64)
        first = (np.cumsum(sizes) - sizes)[order]
        places = [labels[first[job] : first[job] + asked[job].nodes] for job in ran.tolist()]
        return cls(
            _requests(name, order, asked), machine.n_nodes, reached_ps, state.astype(np.int8),
            start, end, ran, start[ran], end[ran], machine,
            np.concatenate([np.zeros(0, np.int32), *places]).astype(np.int32), tick="ps",
            asked=asked,
        )  # fmt: skip

    @classmethod
    def of_logs(
        cls,
        trace: Trace,
        nodes: int,
        reached: int,
        starts: tuple[Whole, Whole],
        ends: tuple[Whole, Whole, Whole],
        machine: Dragonfly | None = None,
        labels: npt.NDArray[np.int32] | None = None,
        molds: Molds | None = None,
    ) -> Schedule:
        """Returns the schedule that the logs of a run tell of: times and jobs of starts, and times,
        jobs and kinds of ends (one of FINISHES, KILLS and SUSPENDS), each in order of time."""
        (began, started), (ended, left, how), n = starts, ends, len(trace)
        state = np.where(trace.submit_us < reached, WAITING, TO_COME).astype(np.int8)
        start, end = np.full((2, n), -1, np.int64)
        start[started[::-1]] = began[::-1]  # of several the first
        running = np.bincount(started, minlength=n) > np.bincount(left, minlength=n)
        state[running] = RUNNING
        over = how != SUSPENDS
        end[left[over]] = ended[over]
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
        return cls(trace, nodes, reached, state, start, end, started, began, to, machine, labels,
                   molds)  # fmt: skip

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

    # -- job by job

    def records(self, taken: JobEnergy | None = None) -> list[JobRecord]:
        """Returns a row for each job, in the order of their numbers, with the energy that it has
        taken, where that is known."""
        tick_ps, labels, clocks = TICKS[self.tick], self.labels, (self.submit, self.start, self.end)
        submit, start, end = (values.tolist() for values in clocks)
        sizes, first_label = self.held.tolist(), self.first_label.tolist()
        segment = np.full(len(self), -1, np.int64)
        segment[self.segment_job[::-1]] = np.arange(len(self.segment_job))[::-1]  # the first stays
        trace, found = self.trace, []
        for job in np.argsort(trace.number, kind="stable").tolist():
            at, its = int(segment[job]), self.asked[job] if self.asked else self._request(job)
            number, over = int(trace.number[job]), end[job] >= 0
            where = () if labels is None or at < 0 else labels[first_label[at] :][: sizes[at]]
            watts = {} if taken is None or not over else taken.of(job)
            found.append(JobRecord(
                number, its.name or f"job {number}", its.nodes, its.does, submit[job] * tick_ps,
                start[job] * tick_ps if start[job] >= 0 else None,
                end[job] * tick_ps if over else None, tuple(map(int, where)), its.requested_ps,
                its.user, its.project, its.application, **watts,
            ))  # fmt: skip
        return found

    def _request(self, job: int) -> Job:
        """Returns what was asked for by a job of a run without packets."""
        trace, asked_us = self.trace, int(self.trace.requested_us[job])
        user, project, application = (
            names[of[job]] for names, of in
            ((trace.users, trace.user), (trace.projects, trace.project),
             (trace.applications, trace.application))
        )  # fmt: skip
        return Job(int(self.job_nodes[job]), application or "job", user=user, project=project,
                   application=application,
                   requested_ps=None if asked_us == UNKNOWN else asked_us * MICROSECOND_PS
                   )  # fmt: skip


def _requests(name: str, numbers: Whole, jobs: Sequence[Job]) -> Trace:
    """Returns what jobs of a run of packets ask for, as a trace; nobody knows how long they run."""
    submit_us = np.array([job.arrival_ps // MICROSECOND_PS for job in jobs], np.int64)
    requested = [UNKNOWN if job.requested_ps is None else max(1, job.requested_ps // MICROSECOND_PS)
                 for job in jobs]  # fmt: skip
    names, places = {}, {}
    for kind in ("user", "project", "application"):
        every = [getattr(job, kind) for job in jobs]
        known = {each: at for at, each in enumerate(dict.fromkeys(every))}
        names[f"{kind}s"] = tuple(known) or ("",)
        places[kind] = np.array([known[each] for each in every], np.int64)
    return Trace(name, numbers, submit_us, np.zeros(len(jobs), np.int64),
                 np.array([job.nodes for job in jobs], np.int64), np.array(requested, np.int64),
                 **places, wait_us=np.full(len(jobs), UNKNOWN), **names)  # type: ignore[arg-type]  # fmt: skip
