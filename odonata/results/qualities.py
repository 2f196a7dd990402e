"""The degradation Q of jobs of types, also of those that are not over: as docs/demand-response.md
has it, such a job runs on, or goes on or starts, without a cap at the end of the run.

How much of such a job is left is what a complete run of a policy that regulates by type tells. Of
others it is found from the logs of caps. These have no row of a cap that was set while no job of a
type ran; and waking nodes and the slowdown of a place are not taken into account.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from odonata.jobs.schedule import TO_COME, Schedule
from odonata.traces.trace import SECOND, Whole
from policies.power.floor import SHORTEST

if TYPE_CHECKING:
    from odonata.jobs.floors import Kinds

Numbers = npt.NDArray[np.float64]
ALIKE = 1e-9
"""Ratios of caps that differ by no more are the same: they are found from watts."""


@dataclass(frozen=True, eq=False)
class JobTypes:
    """The types of a run, without that of standby jobs, and that of each job as a place among
    them."""

    names: tuple[str, ...]
    most_w: Numbers
    """[type]: what a node draws without a cap, and under the lowest one."""
    least_w: Numbers
    slowdown: Numbers
    threshold: Numbers
    """[type]: the degradation that jobs are to stay below; infinite: none."""
    of_job: Whole
    standby: str | None = None
    """The name of the type of standby jobs, None where there are none."""

    @classmethod
    def of(cls, kinds: Kinds) -> JobTypes:
        """Returns the types of a model."""
        most, least, slowdown, threshold = (
            np.array([getattr(it, name) for it in kinds.rows], np.float64)
            for name in ("most_w", "least_w", "slowdown", "threshold")
        )
        standby = None if kinds.standby is None else kinds.standby.name
        return cls(kinds.names, most, least, slowdown, threshold, kinds.of_job, standby)


class CapLogs(NamedTuple):
    """The logs of caps and speeds, each by its columns; what a run has no log of is empty."""

    types: tuple[Whole, Whole, Numbers]
    """Times, types and watts per node, infinite where there is no cap."""
    jobs: tuple[Whole, Whole, Numbers]
    """Times, jobs and watts per node; below 0: suspended, nan: goes on."""
    speeds: tuple[Whole, Numbers]
    """Times, and work per time."""


class Series(NamedTuple):
    """A step function: `values[i]` holds from `times[i]` on, and `first` before."""

    times: Whole
    values: Numbers
    first: float

    def at(self, times: Whole) -> Numbers:
        """Returns its values from these times on."""
        place = np.searchsorted(self.times, times, "right") - 1
        return np.where(place >= 0, np.append(self.values, self.first)[place], self.first)


class Progress:
    """How much work jobs got done, by the logs of their caps."""

    def __init__(self, schedule: Schedule, types: JobTypes, logs: CapLogs) -> None:
        self._schedule, self._types, self._logs = schedule, types, logs
        order = np.argsort(schedule.segment_job, kind="stable")
        self._segments, self._of = order, schedule.segment_job[order]

    @cached_property
    def _ratios(self) -> Sequence[Series]:
        """[type]: where caps are between the least and the most that a node draws, as a part. All
        types are held alike by the policies that we have; a type whose jobs started after a cap was
        set has no row that says so, and that of the others is its own."""
        times, of, caps_w = self._logs.types
        most, least = self._types.most_w, self._types.least_w
        mine = of < len(most)  # standby jobs have no row of their own here
        times, of, caps_w = times[mine], of[mine], caps_w[mine]
        moves = most[of] > least[of]
        times, of, caps_w = times[moves], of[moves], caps_w[moves]
        wide = most[of] - least[of]
        ratio = np.where(np.isfinite(caps_w), (np.minimum(caps_w, most[of]) - least[of]) / wide, 1)
        ratio = np.maximum(ratio, 0.0)
        last = np.flatnonzero(np.diff(times, append=-1) != 0)
        first = np.append(0, last[:-1] + 1)[: len(last)]
        most_of, least_of = (
            how.reduceat(ratio, first) if len(ratio) else ratio for how in (np.maximum, np.minimum)
        )
        if (most_of - least_of > ALIKE).any():
            return [Series(times[of == each], ratio[of == each], 1.0) for each in range(len(most))]
        return [Series(times[last], ratio[last], 1.0)] * len(most)

    def done_us(self, job: int, until: int) -> float:
        """Returns how much of its run time without a cap a job has behind it at a time, in us."""
        schedule, kind = self._schedule, int(self._types.of_job[job])
        low, high = np.searchsorted(self._of, (job, job + 1))
        some = self._segments[low:high]
        froms = schedule.segment_from_us[some]
        tos = np.where(schedule.segment_to_us[some] < 0, until, schedule.segment_to_us[some])
        ratio = self._ratios[kind]
        mine = self._logs.jobs[1] == job
        own_times, own = self._logs.jobs[0][mine], self._logs.jobs[2][mine]
        caps = own >= 0.0
        halts = ~caps  # below 0, or nan
        cap_w = Series(own_times[caps], own[caps], math.inf)
        goes = Series(own_times[halts], np.isnan(own[halts]).astype(np.float64), 1.0)
        speed = Series(*self._logs.speeds, 1.0)
        found = 0.0
        for begin, end in zip(froms.tolist(), tos.tolist(), strict=True):
            edges = [np.array([begin])]
            for series in (ratio, cap_w, goes, speed):
                edges.append(series.times[slice(*np.searchsorted(series.times, (begin + 1, end)))])
            at = np.unique(np.concatenate(edges))
            held = self._held(kind, ratio.at(at), cap_w.at(at))
            pace = 1.0 + (self._types.slowdown[kind] - 1.0) * (1.0 - held)
            spans = np.diff(at, append=end)
            found += float((goes.at(at) * speed.at(at) / pace * spans).sum())
        return found

    def _held(self, kind: int, ratio: Numbers, cap_w: Numbers) -> Any:
        """Returns what nodes draw, as a part of what they may move by; 1 where caps do nothing."""
        most, least = self._types.most_w[kind], self._types.least_w[kind]
        if most <= least:
            return 1.0
        return np.minimum(ratio, (np.clip(cap_w, least, most) - least) / (most - least))


def left_by_logs(schedule: Schedule, types: JobTypes, logs: CapLogs, until_us: int) -> Numbers:
    """[job]: how long each that has begun and is not over would go on without a cap, in us."""
    found, progress = np.zeros(len(schedule)), Progress(schedule, types, logs)
    for job in np.flatnonzero((schedule.end_us < 0) & (schedule.start_us >= 0)).tolist():
        run = float(schedule.trace.run_us[job])
        found[job] = max(0.0, run - progress.done_us(job, until_us))
    return found


def degradations(schedule: Schedule, left_us: Numbers, until_us: int) -> Numbers:
    """[job]: Q, nan of jobs that have not been submitted by the end; `left_us` of those that have
    begun and are not over."""
    submit, run = schedule.trace.submit_us, schedule.trace.run_us
    begun = schedule.start_us >= 0
    end = until_us + np.where(begun, left_us, run)
    end = np.where(schedule.end_us >= 0, schedule.end_us, end)
    found = (end - submit - run) / np.maximum(run, SHORTEST)
    return np.where(schedule.state == TO_COME, math.nan, found)


def waits_s(schedule: Schedule, until_us: int) -> Numbers:
    """[job]: from submission to start in s, for one that waits up to the end; nan of jobs that have
    not been submitted."""
    start = np.where(schedule.start_us >= 0, schedule.start_us, until_us)
    waited = (start - schedule.trace.submit_us) / SECOND
    return np.where(schedule.state == TO_COME, math.nan, waited)
