"""What is measured of a run: turnarounds, the power that jobs were given, and who gained."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from odonata.jobs.schedule import KILLED, Schedule
from odonata.traces.trace import SECOND, Trace

Floats = npt.NDArray[np.float64]
SAME_S = 1e-3
"""Turnarounds that differ by less are the same."""


class Ran(NamedTuple):
    """What became of the jobs of a trace, in the order of their submission: times in s, what each
    draws, what was planned for it, and its fair share of the bound, in W."""

    submit_s: Floats
    start_s: Floats
    end_s: Floats
    watts: Floats
    planned_w: Floats
    fair_w: Floats
    killed: npt.NDArray[np.bool_]

    @property
    def turnaround_s(self) -> Floats:
        return self.end_s - self.submit_s

    @property
    def wait_s(self) -> Floats:
        return self.start_s - self.submit_s


class Draw(NamedTuple):
    """Power over time: from each of these times until the next, in s and W, from the first start to
    the last end."""

    time_s: Floats
    watts: Floats

    @property
    def mean_w(self) -> float:
        return float((self.watts[:-1] * np.diff(self.time_s)).sum() / np.ptp(self.time_s))

    def share_above(self, bound_w: float) -> float:
        """Returns the share of the time at which more than the bound is drawn."""
        above = self.watts[:-1] > bound_w * (1.0 + 1e-12)
        return float((above * np.diff(self.time_s)).sum() / np.ptp(self.time_s))


def ran(schedule: Schedule, bound_w: float, planned: dict[int, float] | None = None) -> Ran:
    """Returns what became of a schedule's jobs, all of them moldable. `planned` are the watts that
    were planned for each, by its place in the trace; None: what it draws."""
    trace, molds = schedule.trace, schedule.molds
    assert molds is not None
    watts = np.zeros(len(trace))
    watts[molds.job] = molds.watts
    plan = watts if planned is None else np.array([planned[job] for job in range(len(trace))])
    return Ran(trace.submit_us / SECOND, schedule.start_us / SECOND, schedule.end_us / SECOND,
               watts, plan, trace.nodes / schedule.nodes * bound_w, schedule.state == KILLED,
               )  # fmt: skip


def draw(of: Ran, watts: Floats) -> Draw:
    """Returns the sum over time of what running jobs draw, each its `watts`."""
    times = np.unique(np.concatenate([of.start_s, of.end_s]))
    running = (of.start_s[:, None] <= times) & (times < of.end_s[:, None])
    return Draw(times, watts @ running)


def measured(of: Ran, bound_w: float, margin: float = 0.0) -> dict[str, float]:
    """Returns the numbers that are kept of a run. Of power: `used` is the mean over time, `given`
    the mean over jobs, `to_fair` the mean over jobs of what each is given to its fair share;
    `highest` and `planned` are the highest true and planned power, to the bound."""
    true, plan = draw(of, of.watts), draw(of, of.planned_w)
    return {
        "turnaround_s": float(of.turnaround_s.mean()),
        "wait_s": float(of.wait_s.mean()),
        "run_s": float((of.end_s - of.start_s).mean()),
        "makespan_s": float(of.end_s.max()),
        "used": true.mean_w / bound_w,
        "given_w": float(of.watts.mean()),
        "to_fair": float((of.watts / of.fair_w).mean()),
        "highest": float(true.watts.max()) / bound_w,
        "planned": float(plan.watts.max()) / (bound_w * (1.0 - margin)),
        "above": true.share_above(bound_w),
        "waited": float((of.wait_s > SAME_S).sum()),
        "killed": float(of.killed.sum()),
    }


def compared(of: Ran, with_other: Ran, suffix: str = "") -> dict[str, float]:
    """Returns how many jobs have a shorter, a longer and the same turnaround than under another
    policy, and the mean over jobs of what each gains, as a share."""
    gained = with_other.turnaround_s - of.turnaround_s
    return {
        f"gained{suffix}": float((gained > SAME_S).sum()),
        f"lost{suffix}": float((gained < -SAME_S).sum()),
        f"same{suffix}": float((abs(gained) <= SAME_S).sum()),
    }


def per_job(of: Ran) -> dict[str, list[float]]:
    """Returns what figures of single jobs show: seconds to the millisecond, watts to the tenth."""
    return {
        "submit_s": np.round(of.submit_s, 3).tolist(),
        "start_s": np.round(of.start_s, 3).tolist(),
        "end_s": np.round(of.end_s, 3).tolist(),
        "watts": np.round(of.watts, 1).tolist(),
        "fair_w": np.round(of.fair_w, 1).tolist(),
    }


def by_class(of: Ran, trace: Trace, small: int) -> dict[str, float]:
    """Returns the mean turnarounds, in s, of the jobs of each project, of those that ask for no
    more than a number of nodes, and of the others; of a class that has no jobs nothing."""
    classes = {name: trace.project == at for at, name in enumerate(trace.projects)}
    classes |= {"small": trace.nodes <= small, "larger": trace.nodes > small}
    return {f"turnaround_s {name}": float(of.turnaround_s[which].mean())
            for name, which in classes.items() if which.any()}  # fmt: skip
