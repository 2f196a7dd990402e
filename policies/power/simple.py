"""Power policies that learn nothing: none, the naive one, one cap for all, and sleep."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from policies.memory import Memory, Sizes
from policies.parameters import parameter
from policies.policy import Arrays
from policies.power.base import PowerPolicy, power
from policies.views import Configuration, Ended, Moment, PowerView, Request

WALLACE = (
    "S. Wallace et al.: A data driven scheduling approach for power management on HPC systems, "
    "SC 2016"
)
PATKI = "T. Patki: The case for hardware overprovisioned supercomputers, thesis, Arizona 2015"
DEADLOCKS = ("run", "idle")


@dataclass(frozen=True)
class Sleeping(PowerPolicy):
    """What all these have: idle nodes may be put to sleep."""

    sleep_after_s: float = parameter(
        -1.0, unit="s", about="idle time after which a node sleeps; below 0: never", most=1e9
    )


@power("none", about="no caps: power is only measured", source="as everywhere")
class Uncontrolled(Sleeping):
    """Jobs draw what they demand, whatever the cap is."""

    controls = False


@power("idle-sleep", about="idle nodes go to sleep after a while", source="as everywhere")
class IdleSleep(Sleeping):
    """Nodes sleep that nobody needs; a job waits until those wake up that it gets."""

    controls = False
    sleep_after_s: float = parameter(
        600.0, unit="s", about="idle time after which a node sleeps", most=1e9
    )


@power("naive", about="measured power plus the candidate's maximum stays below the cap",
       source=WALLACE)  # fmt: skip
class Naive(Sleeping):
    """Jobs start one by one, in order, while the power of all nodes, with the most that the job
    could draw, stays below the cap. Power is that of the jobs which run now, each as it was last
    measured, or its maximum as long as it was not; all other nodes are idle. So what a job drew
    does not count from the moment on at which it ends, and no job that has started is counted
    twice. No sum of these exceeds what the nodes could draw at most: a cap of all nodes' maximum
    never has a job wait.

    Where nodes sleep, some of a job's may still wake up in the interval in which it starts and in
    the next: there its third reading is the first that counts. Where a job was suspended since the
    last measurement, all jobs count with their maximum until the next.
    """

    deadlock: str = parameter(
        "run",
        about="a job that does not fit under the present cap even alone starts when nothing "
        "else runs, or waits for a higher cap",
        words=DEADLOCKS,
    )

    def remembers(self, sizes: Sizes) -> Arrays:
        """By job: its nodes, the watts of all of them as last measured, and how often they were.
        In sum: the watts and the nodes of those that run and whose measurement counts, and the
        nodes of all that run, as far as this policy has heard of it."""
        return {
            "nodes": np.zeros(sizes.jobs, np.int64), "read_w": np.zeros(sizes.jobs),
            "times_read": np.zeros(sizes.jobs, np.int64), "known_w": np.zeros(1),
            "known_nodes": np.zeros(1, np.int64), "held_nodes": np.zeros(1, np.int64),
        }  # fmt: skip

    def observe(self, view: PowerView) -> tuple[float, ...]:
        memory, readings = view.memory, view.readings
        assert memory is not None
        assert readings is not None
        jobs = readings.jobs
        memory.read_w[jobs] = memory.nodes[jobs] * readings.watts
        memory.times_read[jobs] += 1
        counted = jobs[memory.times_read[jobs] >= self._least_read]
        memory.known_w = math.fsum(memory.read_w[counted].tolist())
        memory.known_nodes = memory.nodes[counted].sum()
        memory.held_nodes = view.busy
        return ()

    @property
    def _least_read(self) -> int:
        return 3 if self.sleep_after_s >= 0 else 1

    def learn(self, ended: Ended, memory: Memory) -> None:
        number = ended.request.number
        memory.held_nodes -= memory.nodes[number]
        if memory.times_read[number] >= self._least_read:
            memory.known_w -= memory.read_w[number]
            memory.known_nodes -= memory.nodes[number]

    def configure(self, view: PowerView, job: Request) -> Configuration | None:
        memory = view.memory
        assert memory is not None
        busy, free = view.busy + job.nodes, view.free - job.nodes
        # Written so that rounding never brings it above what all nodes draw at most.
        soon_w = (busy + free) * view.most_w - free * (view.most_w - view.idle_w)
        if memory.held_nodes[0] == view.busy:
            unread = busy - int(memory.known_nodes[0])
            known_w = memory.known_w[0] + unread * view.most_w + free * view.idle_w
            soon_w = min(soon_w, known_w)
        if soon_w <= view.budget.cap_w:
            how: Configuration | None = Configuration(job.nodes)
        else:
            how = _alone(self.deadlock, view, job, view.most_w)
        if how is not None:
            memory.nodes[job.number], memory.times_read[job.number] = job.nodes, 0
            memory.held_nodes += job.nodes
        return how


@power("uniform", about="one cap for all busy nodes, which share what idle ones leave",
       source=f"{PATKI}, chapter 3")  # fmt: skip
class Uniform(Sleeping):
    """Busy nodes share the power that idle ones leave of the machine's cap. A job starts while each
    of them gets at least what it can be held to."""

    reads, by_queue = False, False

    deadlock: str = parameter(
        "run",
        about="a job that does not fit under the present cap even alone starts when nothing "
        "else runs, or waits for a higher cap",
        words=DEADLOCKS,
    )

    def configure(self, view: PowerView, job: Request) -> Configuration | None:
        busy, free = view.busy + job.nodes, view.free - job.nodes
        if busy * view.least_w + free * view.idle_w <= view.budget.cap_w:
            return Configuration(job.nodes)
        return _alone(self.deadlock, view, job, view.least_w)

    def start_cap_w(self, view: PowerView) -> float:
        """Returns the cap of the jobs that run; where none does, that of a full machine."""
        assert view.desk is not None
        if view.busy:
            return float(view.desk.cap_w[view.desk.running.min()])
        return view.budget.cap_w / view.free

    @staticmethod
    def steer(now: Moment, desk: Any, memory: Any, given: Any, cap_w: Any) -> None:
        if now.busy > 0:
            cap_w[:] = max(0.0, now.cap_w - now.free * now.idle_w) / now.busy


def _alone(deadlock: str, view: PowerView, job: Request, each_w: float) -> Configuration | None:
    """Have a job break the cap that fits under it not even alone, when nothing else runs."""
    if view.busy or deadlock == "idle" or _fits_alone(view, job, each_w):
        return None
    return Configuration(job.nodes, forced=True)


def _fits_alone(view: PowerView, job: Request, each_w: float) -> bool:
    """Tells whether a job fits under the cap when all other nodes are idle."""
    others = view.free + view.busy - job.nodes
    return job.nodes * each_w + others * view.idle_w <= view.budget.cap_w
