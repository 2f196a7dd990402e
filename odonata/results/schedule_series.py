"""A schedule as functions of time: nodes in use, jobs in the queue, and over how many groups and
routers the running jobs are spread.

All of them are step functions: they change when a job arrives, gets nodes or gives them back, and
at no other time. They are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from odonata.jobs.schedule import TO_COME, Schedule
from odonata.traces.trace import Whole

Floats = npt.NDArray[np.float64]
LARGEST_SUM = 2.0**62
"""Sums of integers that are not larger are exact in 64 bits."""
LABELS_AT_ONCE = 4_000_000


@dataclass(frozen=True, eq=False)
class Steps:
    """The state of a machine over time. Values at position i hold from `time_us[i]` until
    `time_us[i + 1]`, the last until `until_us`; before the first job is submitted all are 0."""

    time_us: Whole
    """When something changes; ascending, each time once."""
    busy: Whole
    """Nodes that jobs have."""
    running: Whole
    """Jobs that have nodes."""
    queue: Whole
    """Jobs that have arrived and have no nodes; one that was preempted is among them."""
    waiting_nodes: Whole
    """The nodes that the jobs in the queue ask for."""
    until_us: int
    """The last job's end, or the time that an unfinished run has reached."""

    def lengths_us(self, from_us: int | None = None, to_us: int | None = None) -> Whole:
        """Returns for how long each step lasts, between two times."""
        return _lengths(self.time_us, self.until_us, from_us, to_us)


def first_us(schedule: Schedule) -> int:
    """Returns when the first job is submitted, in us; 0 without jobs."""
    return int(schedule.trace.submit_us[0]) if len(schedule) else 0


def until_us(schedule: Schedule) -> int:
    """Returns the end of what was observed, in us: that of the last job or, as long as jobs are
    left, the time that the run has reached."""
    if len(schedule) and schedule.done.all():
        return int(schedule.end_us.max())
    return int(schedule.reached_us)


def segment_ends_us(schedule: Schedule) -> Whole:
    """Returns the end of each segment, in us; for one that goes on, the time reached."""
    ends: Whole = np.where(schedule.segment_to_us < 0, schedule.reached_us, schedule.segment_to_us)
    return ends


def steps(schedule: Schedule) -> Steps:
    """Returns nodes in use and jobs in the queue at every change."""
    trace, segment_job = schedule.trace, schedule.segment_job
    there = np.flatnonzero(schedule.state != TO_COME)
    over = np.flatnonzero(schedule.segment_to_us >= 0)
    last = np.full(len(schedule), -1, np.int64)
    last[segment_job] = np.arange(len(segment_job))
    job_over = segment_job[over]
    returns = ~(schedule.done[job_over] & (last[job_over] == over))  # to the queue: preempted

    taken, asked = schedule.held, trace.nodes[segment_job]
    given, n, m = taken[over], len(there), len(segment_job)
    small = np.int8  # most of the time goes into moving these to their place
    changes: tuple[tuple[Any, ...], ...] = (
        (trace.submit_us[there], np.zeros(n, np.int64), np.zeros(n, small), np.ones(n, small),
         trace.nodes[there]),
        (schedule.segment_from_us, taken, np.ones(m, small), np.full(m, -1, small), -asked),
        (schedule.segment_to_us[over], -given, np.full(len(over), -1, small),
         returns.astype(small), asked[over] * returns),
    )  # fmt: skip
    times, *columns = (np.concatenate(some) for some in zip(*changes, strict=True))
    time_us, (busy, running, queue, waiting) = _summed(times, columns)
    return Steps(time_us, busy, running, queue, waiting, until_us(schedule))


def _summed(times: Whole, changes: Any) -> tuple[Whole, list[Whole]]:
    """Returns each time once, ascending, and the sums of all changes up to and with it."""
    order = np.argsort(times, kind="stable")
    ordered = times[order]
    lasts = np.flatnonzero(np.diff(ordered, append=ordered[-1:] + 1))
    sums = (np.cumsum(column[order], dtype=np.int64) for column in changes)
    return ordered[lasts], [column[lasts] for column in sums]


def _lengths(time_us: Whole, until: int, from_us: int | None, to_us: int | None) -> Whole:
    ends = np.append(time_us[1:], until)[: len(time_us)]
    low = int(time_us[0]) if from_us is None and len(time_us) else from_us or 0
    high = until if to_us is None else to_us
    lengths: Whole = np.clip(ends, low, high) - np.clip(time_us, low, high)
    return np.maximum(lengths, 0)


def total(values: npt.NDArray[Any], weights: npt.NDArray[Any]) -> int:
    """Returns the sum of products of integers that are not negative, exactly, however large."""
    most = float(values.max(initial=0)) * float(weights.sum(dtype=np.float64))
    if most >= LARGEST_SUM:
        most = float(np.dot(values.astype(np.float64), weights.astype(np.float64)))
    if most < LARGEST_SUM:
        return int(np.dot(values, weights))
    pairs = zip(values.tolist(), weights.tolist(), strict=True)
    return sum(value * weight for value, weight in pairs)


def binned(
    time_us: Whole, values: npt.NDArray[Any], until: int, edges_us: Whole
) -> tuple[Floats, Floats]:
    """Returns the mean over time and the maximum of a step function within bins, whose edges ascend
    and begin no earlier than the function; it is 0 from `until` on."""
    times = np.append(time_us, until)
    series = np.append(values, 0).astype(np.float64)
    every = np.unique(np.concatenate((times, edges_us)))
    at = np.maximum(np.searchsorted(times, every, "right") - 1, 0)
    first, end = np.searchsorted(every, edges_us[[0, -1]])
    every, held = every[first : end + 1], series[at[first:end]]
    begins = np.searchsorted(every, edges_us[:-1])
    areas = np.add.reduceat(held * np.diff(every), begins)
    return areas / np.diff(edges_us), np.maximum.reduceat(held, begins)


# -- over how much of the machine jobs are spread


@dataclass(frozen=True, eq=False)
class Fragmentation:
    """Over how many groups and routers the nodes of jobs are spread, and the fewest over which they
    could be.

    Arrays by segment, and the sums over all running jobs as step functions of time: divided by
    `running` they are means per job.
    """

    groups: Whole
    routers: Whole
    fewest_groups: Whole
    fewest_routers: Whole
    time_us: Whole
    running: Whole
    sum_groups: Whole
    sum_routers: Whole
    sum_fewest_groups: Whole
    sum_fewest_routers: Whole
    until_us: int
    """As in `Steps`."""

    def facts(self) -> dict[str, float | None]:
        """Returns means over time and running jobs: a job counts for as long as it runs."""
        lengths = _lengths(self.time_us, self.until_us, None, None)
        weight = total(self.running, lengths)
        sums = {"groups_per_job": self.sum_groups, "fewest_groups_per_job": self.sum_fewest_groups,
                "routers_per_job": self.sum_routers,
                "fewest_routers_per_job": self.sum_fewest_routers}  # fmt: skip
        return {name: total(values, lengths) / weight if weight else None
                for name, values in sums.items()}  # fmt: skip


def fragmentation(schedule: Schedule) -> Fragmentation | None:
    """Returns over how much of the machine jobs were spread; None where nodes were only counted."""
    machine, labels = schedule.machine, schedule.labels
    if machine is None or labels is None:
        return None
    sizes = schedule.held
    groups, routers = np.empty(len(sizes), np.int64), np.empty(len(sizes), np.int64)
    ends = np.cumsum(sizes)
    first = 0
    while first < len(sizes):
        before = int(ends[first - 1]) if first else 0
        beyond = max(first + 1, int(np.searchsorted(ends, before + LABELS_AT_ONCE, "right")))
        some = slice(first, beyond)
        groups[some], routers[some] = _touched(labels[before : ends[beyond - 1]], sizes[some],
                                               machine.nodes, machine.routers)  # fmt: skip
        first = beyond
    fewest_routers = -(-sizes // machine.nodes)
    fewest_groups = -(-sizes // (machine.nodes * machine.routers))

    over = np.flatnonzero(schedule.segment_to_us >= 0)
    times = np.concatenate((schedule.segment_from_us, schedule.segment_to_us[over]))
    every = (np.ones(len(sizes), np.int64), groups, routers, fewest_groups, fewest_routers)
    changes = [np.concatenate((column, -column[over])) for column in every]
    time_us, (running, *sums) = _summed(times, changes)
    sum_groups, sum_routers, least_groups, least_routers = sums
    return Fragmentation(groups, routers, fewest_groups, fewest_routers, time_us, running,
                         sum_groups, sum_routers, least_groups, least_routers,
                         until_us(schedule))  # fmt: skip


def _touched(
    labels: npt.NDArray[np.int32], sizes: Whole, nodes: int, routers: int
) -> tuple[Whole, Whole]:
    """Returns the number of groups and of routers that each of some segments touches."""
    segment = np.repeat(np.arange(len(sizes)), sizes)
    router = labels // nodes
    many = int(router.max()) + 1
    pairs = np.sort(segment * many + router, kind="stable")
    pairs = pairs[np.flatnonzero(np.diff(pairs, prepend=-1))]
    segment, router = np.divmod(pairs, many)
    group = router // routers
    new = (np.diff(segment, prepend=-1) != 0) | (np.diff(group, prepend=-1) != 0)
    return (np.bincount(segment[new], minlength=len(sizes)),
            np.bincount(segment, minlength=len(sizes)))  # fmt: skip
