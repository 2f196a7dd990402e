"""Power policies that learn nothing: none, the naive one, one cap for all, and sleep."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pdes.errors import Refused
from policies.memory import Sizes
from policies.parameters import parameter
from policies.policy import Arrays
from policies.power.base import Caps, Configuration, PowerPolicy, PowerView, power
from policies.views import Request

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
    """Jobs start one by one, in order, while the power that was measured, with the most that each
    could draw which has started since, stays below the cap. As a reading is a mean over an
    interval, it has only a part of a job that started within that; the rest counts until the next
    reading."""

    deadlock: str = parameter(
        "run", about="a job that never fits starts when nothing else runs, or never: run, idle"
    )

    def __post_init__(self) -> None:
        _check_deadlock(self.deadlock)

    def remembers(self, sizes: Sizes) -> Arrays:
        names = ("since_w", "before_w", "late", "unread_w")
        return {name: np.zeros(1) for name in names} | {"read_at": np.zeros(1, np.int64)}

    def observe(self, view: PowerView) -> tuple[float, ...]:
        memory = view.memory
        assert memory is not None
        memory.unread_w = memory.late / max(1, view.time - int(memory.read_at[0]))
        if self.sleep_after_s >= 0:  # what has started may have waited for nodes that wake up
            memory.unread_w = memory.since_w + memory.before_w
        memory.before_w = memory.since_w
        memory.since_w = memory.late = 0.0
        memory.read_at = view.time
        return ()

    def configure(self, view: PowerView, job: Request) -> Configuration | None:
        assert view.memory is not None
        memory, sleeps = view.memory, self.sleep_after_s >= 0
        more_w = job.nodes * (view.most_w - (0.0 if sleeps else view.idle_w))
        soon_w = view.budget.measured_w + memory.unread_w[0] + memory.since_w[0] + more_w
        if sleeps:  # nodes that slept when power was measured may be idle and awake soon
            soon_w += (view.free - job.nodes) * view.idle_w
        alone = sleeps and not view.busy and _fits_alone(view, job, view.most_w)
        fits = soon_w <= view.budget.cap_w or alone
        how = Configuration(job.nodes) if fits else _alone(self.deadlock, view, job, view.most_w)
        if how is not None:
            memory.since_w += more_w
            memory.late += more_w * (view.time - int(memory.read_at[0]))
        return how


@power("uniform", about="one cap for all busy nodes, which share what idle ones leave",
       source=f"{PATKI}, chapter 4")  # fmt: skip
class Uniform(Sleeping):
    """Busy nodes share the power that idle ones leave of the machine's cap. A job starts while each
    of them gets at least what it can be held to."""

    deadlock: str = parameter(
        "run", about="a job that never fits starts when nothing else runs, or never: run, idle"
    )

    def __post_init__(self) -> None:
        _check_deadlock(self.deadlock)

    def configure(self, view: PowerView, job: Request) -> Configuration | None:
        busy, free = view.busy + job.nodes, view.free - job.nodes
        if busy * view.least_w + free * view.idle_w <= view.budget.cap_w:
            return Configuration(job.nodes)
        return _alone(self.deadlock, view, job, view.least_w)

    def caps(self, view: PowerView) -> Caps:
        if not view.busy:
            return Caps()
        each_w = max(0.0, view.budget.cap_w - view.free * view.idle_w) / view.busy
        return Caps({job.run.request.number: each_w for job in view.running})


def _check_deadlock(deadlock: str) -> None:
    if deadlock not in DEADLOCKS:
        raise Refused(f"deadlock = {deadlock}: one of {', '.join(DEADLOCKS)}")


def _alone(deadlock: str, view: PowerView, job: Request, each_w: float) -> Configuration | None:
    """Have a job break the cap that fits under it not even alone, when nothing else runs."""
    if view.busy or deadlock == "idle" or _fits_alone(view, job, each_w):
        return None
    return Configuration(job.nodes, forced=True)


def _fits_alone(view: PowerView, job: Request, each_w: float) -> bool:
    """Tells whether a job fits under the cap when all other nodes are idle."""
    others = view.free + view.busy - job.nodes
    return job.nodes * each_w + others * view.idle_w <= view.budget.cap_w
