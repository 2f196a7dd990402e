"""The measures of a schedule: waits, slowdowns, utilisation, queue, and what jobs got by size, by
user, by project and by application.

Measures of jobs are means over those that are done, so that wait and turnaround are of the same
jobs; a run that was stopped early leaves out the ones that waited longest. Measures of the system
are means over time, from the first submission to the last end. Warm-up and cool-down leave out the
jobs that were submitted within them, and limit the time to what is between them.

Potential and effective load and waste are Rumyantsev's, for a service rate of 1: the potential load
is all nodes while a job waits, and the nodes in use otherwise; the effective load is the nodes in
use; waste is the difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from odonata.experiment.experiment import Experiment, JobExperiment
from odonata.jobs.schedule import FINISHED, KILLED, RUNNING, TO_COME, WAITING, Schedule
from odonata.results.schedule_series import Floats, first_us, segment_ends_us, steps, total
from odonata.traces.trace import SECOND, Whole
from pdes.errors import Refused

MOST_USERS = 10
"""The largest number of users that have a row to themselves."""
UNNAMED = "unknown"
"""Stands for the user, project or application of jobs of which it is not recorded."""
HOUR = 3600 * SECOND
MICROSECOND_PS = 10**6
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Part:
    """What the jobs of a size, a user, a project or an application got. Means are over those that
    are done; None where there are none."""

    name: str
    """Numbers of nodes, such as "5-8", or the name of a user, a project or an application."""
    jobs: int
    node_hours: float
    """What these jobs have held, whether or not they are done."""
    mean_wait_s: float | None
    mean_bounded_slowdown: float | None
    mean_turnaround_s: float | None


@dataclass(frozen=True)
class Measures:
    """The measures of a schedule. None: undefined, as no job is done or no time has passed."""

    jobs: int
    """Those that are measured."""
    left_out: int
    """Those that were submitted in the warm-up or the cool-down."""
    finished: int
    killed: int
    running: int
    waiting: int
    to_come: int
    mean_wait_s: float | None
    """A wait is the time from a job's submission to its first start."""
    median_wait_s: float | None
    p95_wait_s: float | None
    max_wait_s: float | None
    mean_turnaround_s: float | None
    """A turnaround is the time from a job's submission to its end."""
    mean_slowdown: float | None
    """A slowdown is a turnaround over the time for which the job had nodes, where this is not 0."""
    mean_bounded_slowdown: float | None
    """The same, where a job that had nodes for less than the bound counts as if for the bound; at
    least 1."""
    utilisation: float | None
    """Node-time in use, as a part of all that there was."""
    makespan_s: float | None
    """The time from the first submission to the last end, of all jobs; None until all are done."""
    observed_s: float
    """The length of the time over which measures of the system are taken."""
    mean_queue_length: float | None
    """Jobs that have arrived and have no nodes."""
    max_queue_length: int | None
    mean_running: float | None
    """Jobs that have nodes."""
    mean_delay_s: float | None
    """Rumyantsev's name of the mean wait."""
    mean_sojourn_s: float | None
    """Rumyantsev's name of the mean turnaround."""
    potential_load: float | None
    """In nodes, as are the next one and `mean_waste`."""
    effective_load: float | None
    waste_node_s: float
    """Node-time that was idle while a job waited."""
    mean_waste: float | None
    by_size: tuple[Part, ...]
    """By number of nodes: 1, 2, 3-4, 5-8 and so on, up to the size of the machine."""
    by_user: tuple[Part, ...]
    """The users with the most node-time, and the others together."""
    by_project: tuple[Part, ...]
    """The projects, which are Slurm's accounts and SWF's groups, likewise."""
    by_application: tuple[Part, ...]
    """The applications likewise."""

    def facts(self) -> dict[str, Any]:
        """Returns all of them for JSON."""
        flat = {one.name: getattr(self, one.name) for one in fields(self)}
        parts = {name: [asdict(part) for part in flat[name]]
                 for name in flat if name.startswith("by_")}  # fmt: skip
        return flat | parts


def measures(
    schedule: Schedule,
    *,
    warmup_us: int = 0,
    cooldown_us: int = 0,
    warmup_jobs: int = 0,
    cooldown_jobs: int = 0,
    slowdown_bound_us: int = 10 * SECOND,
) -> Measures:
    """Returns the measures of a schedule.

    Left out are the jobs that were submitted less than `warmup_us` after the first or less than
    `cooldown_us` before the last, and the first `warmup_jobs` and last `cooldown_jobs`. Where
    any of these is given, measures of the system end with the last submission that is not left out.
    """
    given = {"warmup_us": warmup_us, "cooldown_us": cooldown_us, "warmup_jobs": warmup_jobs,
             "cooldown_jobs": cooldown_jobs}  # fmt: skip
    for name, value in given.items():
        if value < 0:
            raise Refused(f"{name} = {value}: 0 or more")
    if slowdown_bound_us < 1:
        raise Refused(f"slowdown_bound_us = {slowdown_bound_us}: above 0")
    trace = schedule.trace
    kept, cut = _kept(schedule, **given)
    state = np.bincount(schedule.state[kept], minlength=KILLED + 1).tolist()
    times = job_times(schedule, slowdown_bound_us)
    done = kept & schedule.done
    wait, turnaround = times.wait_us[done], times.turnaround_us[done]
    held = times.service_us[done]
    slowdown = turnaround[held > 0] / held[held > 0]
    mean_wait, mean_turnaround = _seconds(_mean(wait)), _seconds(_mean(turnaround))
    everyone_done = len(schedule) > 0 and bool(schedule.done.all())
    last_us = int(schedule.end_us.max()) if everyone_done else None
    return Measures(
        jobs=int(kept.sum()),
        left_out=len(schedule) - int(kept.sum()),
        finished=state[FINISHED],
        killed=state[KILLED],
        running=state[RUNNING],
        waiting=state[WAITING],
        to_come=state[TO_COME],
        mean_wait_s=mean_wait,
        median_wait_s=_seconds(float(np.median(wait)) if len(wait) else None),
        p95_wait_s=_seconds(float(np.percentile(wait, 95)) if len(wait) else None),
        max_wait_s=_seconds(float(wait.max()) if len(wait) else None),
        mean_turnaround_s=mean_turnaround,
        mean_slowdown=_mean(slowdown),
        mean_bounded_slowdown=_mean(times.bounded_slowdown[done]),
        makespan_s=_seconds(None if last_us is None else last_us - first_us(schedule)),
        mean_delay_s=mean_wait,
        mean_sojourn_s=mean_turnaround,
        **_of_system(schedule, cut),
        by_size=by_size(schedule, times, kept),
        by_user=by_name(schedule, times, kept, trace.user, trace.users),
        by_project=by_name(schedule, times, kept, trace.project, trace.projects),
        by_application=by_name(schedule, times, kept, trace.application, trace.applications),
    )


def measures_of(schedule: Schedule, made: Experiment | JobExperiment) -> Measures:
    """Returns the measures of an experiment's schedule, without the warm-up and the cool-down that
    its [trace] says, where it has one."""
    if isinstance(made, Experiment):
        return measures(schedule)
    return measures(schedule, warmup_us=made.trace.warmup_ps // MICROSECOND_PS,
                    cooldown_us=made.trace.cooldown_ps // MICROSECOND_PS)  # fmt: skip


@dataclass(frozen=True, eq=False)
class JobTimes:
    """Times by job, in us; they mean something only for jobs that are done, except `service_us`."""

    wait_us: Whole
    turnaround_us: Whole
    service_us: Floats
    """For how long it has had nodes. Whole numbers: exact up to 285 years."""
    bounded_slowdown: Floats


def job_times(schedule: Schedule, slowdown_bound_us: int = 10 * SECOND) -> JobTimes:
    submit = schedule.trace.submit_us
    turnaround = schedule.end_us - submit
    lengths = segment_ends_us(schedule) - schedule.segment_from_us
    service: Any = np.bincount(schedule.segment_job, lengths, minlength=len(schedule))
    bounded = np.maximum(1.0, turnaround / np.maximum(service, slowdown_bound_us))
    return JobTimes(schedule.start_us - submit, turnaround, service, bounded)


def _kept(
    schedule: Schedule, warmup_us: int, cooldown_us: int, warmup_jobs: int, cooldown_jobs: int
) -> tuple[Bools, tuple[int, int] | None]:
    """Returns which jobs are measured; and from when to when the system is, in us, where that is
    not from the first submission to the end."""
    submit, n = schedule.trace.submit_us, len(schedule)
    kept = np.ones(n, bool)
    if not n or not (warmup_us or cooldown_us or warmup_jobs or cooldown_jobs):
        return kept, None
    from_us, to_us = int(submit[0]) + warmup_us, int(submit[-1]) - cooldown_us
    kept &= (submit >= from_us) & (submit <= to_us)
    kept[:warmup_jobs] = False
    kept[max(0, n - cooldown_jobs) :] = False
    from_us = max(from_us, int(submit[min(warmup_jobs, n - 1)]))
    to_us = min(to_us, int(submit[max(n - 1 - cooldown_jobs, 0)]))
    return kept, (from_us, to_us)


def _of_system(schedule: Schedule, cut: tuple[int, int] | None) -> dict[str, Any]:
    """Returns what is measured over time, by name."""
    series = steps(schedule)
    from_us, to_us = cut or (first_us(schedule), series.until_us)
    lengths = series.lengths_us(from_us, to_us)
    observed = max(0, min(to_us, series.until_us) - from_us)
    busy = total(series.busy, lengths)
    behind = np.where(series.queue > 0, lengths, 0)
    waste = schedule.nodes * int(behind.sum()) - total(series.busy, behind)

    def mean(area: int) -> float | None:
        return area / observed if observed else None

    seen = series.queue[lengths > 0]
    return {
        "utilisation": busy / (observed * schedule.nodes) if observed else None,
        "observed_s": observed / SECOND,
        "mean_queue_length": mean(total(series.queue, lengths)),
        "max_queue_length": int(seen.max()) if len(seen) else None,
        "mean_running": mean(total(series.running, lengths)),
        "potential_load": mean(busy + waste),
        "effective_load": mean(busy),
        "waste_node_s": waste / SECOND,
        "mean_waste": mean(waste),
    }


def _mean(values: npt.NDArray[Any]) -> float | None:
    """Returns the mean, summed in floating point: a million waits of a year exceed 64 bits."""
    return float(values.mean(dtype=np.float64)) if len(values) else None


def _seconds(us: float | None) -> float | None:
    return None if us is None else us / SECOND


# -- by size, user, project and application


def size_classes(schedule: Schedule) -> tuple[list[str], Whole]:
    """Returns the names of the classes of job sizes, and the class of each job."""
    nodes = schedule.trace.nodes
    largest = max(schedule.nodes, int(nodes.max(initial=1)))
    names = ["1"]
    while 2 ** (len(names) - 1) < largest:
        low, high = 2 ** (len(names) - 1) + 1, min(largest, 2 ** len(names))
        names.append(f"{low}" if low == high else f"{low}-{high}")
    return names, np.frexp((nodes - 1).astype(np.float64))[1].astype(np.int64)


def by_size(schedule: Schedule, times: JobTimes, kept: Bools) -> tuple[Part, ...]:
    names, classes = size_classes(schedule)
    return _parts(schedule, times, kept, names, classes)


def by_name(
    schedule: Schedule, times: JobTimes, kept: Bools, of: Whole, known: Sequence[str]
) -> tuple[Part, ...]:
    """Returns users, projects or applications in order of the node-time that their jobs need, which
    is the same under all disciplines. `of` is that of each job, `known` are their names."""
    trace = schedule.trace
    held = np.bincount(of, trace.run_us.astype(np.float64) * trace.nodes * kept, len(known))
    jobs = np.bincount(of[kept], minlength=len(known))
    order = np.lexsort((-jobs, -held))
    order = order[jobs[order] > 0]
    shown = order if len(order) <= MOST_USERS + 1 else order[:MOST_USERS]
    names = [known[which] or UNNAMED for which in shown.tolist()]
    place = np.full(len(known), len(shown))
    place[shown] = np.arange(len(shown))
    if len(order) > len(shown):
        names.append(f"{len(order) - len(shown):,} others")
    return _parts(schedule, times, kept, names, place[of])


def _parts(
    schedule: Schedule, times: JobTimes, kept: Bools, names: list[str], classes: Whole
) -> tuple[Part, ...]:
    """Returns a part for each name. `classes` has that of each job; of one that is not kept it may
    be beyond them."""
    many = len(names)
    done = np.flatnonzero(kept & schedule.done)
    jobs = np.bincount(classes[kept], minlength=many).tolist()
    node_us = times.service_us * schedule.job_nodes
    hours = (np.bincount(classes[kept], node_us[kept], many) / HOUR).tolist()
    of = classes[done]
    count = np.bincount(of, minlength=many)
    each = np.maximum(count, 1)
    wait = (np.bincount(of, times.wait_us[done], many) / each / SECOND).tolist()
    slowdown = (np.bincount(of, times.bounded_slowdown[done], many) / each).tolist()
    took = (np.bincount(of, times.turnaround_us[done], many) / each / SECOND).tolist()
    nothing = (None, None, None)
    return tuple(
        Part(name, jobs[i], hours[i], *((wait[i], slowdown[i], took[i]) if count[i] else nothing))
        for i, name in enumerate(names)
    )
