"""By how much caps stretched what the tasks of jobs compute.

Under a cap a task takes longer for its `compute` and its `overhead`, which is work of the processor
as well. How long all tasks of a job have taken for these is counted while a run goes on
(`State.spent`); how long they would have taken is known beforehand, as it depends on nothing but
the job and, where its tasks differ, on the seed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from odonata.agents import layout as w
from odonata.agents.patterns import longer
from odonata.agents.workload import Workload, phases_of
from pdes.jit import entry


def cap_stretches(workload: Workload, seed: int, spent: Any) -> list[float]:
    """Returns, by job, how many times as long its tasks have computed as they would have without
    caps, given what all stages have `spent`: it is right of jobs that are over. nan where a job
    computes nothing."""
    found, first = [], 0
    for number, job in enumerate(workload.jobs):
        last = first + len(job.parts)
        took = int(spent[first:last][:, [w.COMPUTED_PS, w.OVERHEAD_PS]].sum())
        work = work_ps(workload, seed, number)
        found.append(took / work if work else math.nan)
        first = last
    return found


def work_ps(workload: Workload, seed: int, number: int) -> int:
    """Returns for how many picoseconds all tasks of a job compute if nothing stretches that."""
    job = workload.jobs[number]
    tasks = job.nodes * workload.tasks_per_node
    steps = [phases_of(stage, tasks) * stage.repeat for stage in job.parts]
    starts = sum(steps) * np.arange(job.iterations)
    total, at = 0, 0
    for stage, each in zip(job.parts, steps, strict=True):
        passes = stage.repeat * job.iterations
        total += tasks * passes * (stage.compute_ps + stage.overhead_ps)
        row = np.zeros(len(w.OF_STAGE), np.int64)
        row[[w.JOB_SEED, w.NUMBER]] = seed, workload.number_of(number)
        row[w.IMBALANCE] = math.floor(stage.imbalance * stage.compute_ps)
        if row[w.IMBALANCE] > 0:
            begins = at + (each // stage.repeat) * np.arange(stage.repeat)
            total += longer_in_all(row, tasks, np.add.outer(starts, begins).ravel())
        at += each
    return total


@entry
def longer_in_all(stage: Any, tasks: int, phases: Any) -> int:
    """Returns by how many picoseconds all tasks of a stage compute longer than the fastest would,
    in these phases."""
    total = 0
    for task in range(tasks):
        for i in range(phases.shape[0]):
            total += longer(stage, task, phases[i])
    return total
