"""What is in a trace, in numbers: when its jobs were submitted, how large and how long they are,
how well their run times were foretold, and whose they are.

What a trace does not tell is None, and never nan: these facts become JSON.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from odonata.traces.swf import told
from odonata.traces.trace import SECOND, UNKNOWN, Trace, Whole

HOUR, DAY = 3600, 86400
"""Seconds."""
MOST_USERS = 10
"""The largest number of users that are named."""
GIVEN, TOLD, LARGEST = "given", "told by the trace", "the largest job"
"""Where the size of the machine may come from."""
Floats = npt.NDArray[np.float64]


def facts(trace: Trace, nodes: int, nodes_from: str = GIVEN) -> dict[str, Any]:
    """Returns the facts by name; times are in seconds. The load is that on so many nodes, and
    `nodes_from` says where this number comes from."""
    clock, account, span_s = trace.clock, trace.account, trace.span_us / SECOND
    ends = (
        [None, None] if clock is None or not len(trace) else clock.words(trace.submit_us[[0, -1]])
    )
    busiest = busiest_users(trace)
    return {
        "name": trace.name,
        "computer": told(trace.header, "Computer"),
        "installation": told(trace.header, "Installation"),
        "model": told(trace.header, "Model"),
        "records": account.records,
        "jobs": len(trace),
        "dropped": dict(account.dropped),
        "repaired": dict(account.repaired),
        "total_dropped": account.total_dropped,
        "total_repaired": account.total_repaired,
        "span_s": span_s,
        "first_submission": ends[0],
        "last_submission": ends[1],
        "time_zone": None if clock is None else clock.name,
        "epoch": None if clock is None else clock.date(0),
        "machine_nodes": nodes,
        "machine_nodes_from": nodes_from,
        "load": _finite(trace.load(nodes)),
        "jobs_per_day": len(trace) * DAY / span_s if span_s else None,
        "node_hours": float(node_seconds(trace).sum()) / HOUR,
        "nodes": spread(trace.nodes) | {
            "one_node_share": _share(trace.nodes == 1),
            "power_of_two_share": _share(trace.nodes & (trace.nodes - 1) == 0),
        },
        "run_s": _times(trace.run_us),
        "requested_s": requests(trace),
        "wait_s": _times(trace.wait_us) if (trace.wait_us != UNKNOWN).any() else None,
        "users": _known(trace.user, trace.users),
        "projects": _known(trace.project, trace.projects),
        "applications": _known(trace.application, trace.applications),
        "busiest_users": [user.facts() for user in busiest],
        "header": [*trace.header],
    }  # fmt: skip


# -- of jobs


def node_seconds(trace: Trace) -> Floats:
    """[job]: what it needs, in floating point, since a sum of these may exceed 64 bits."""
    needed: Floats = trace.run_us.astype(np.float64) * trace.nodes / SECOND
    return needed


def spread(values: npt.NDArray[Any]) -> dict[str, float | None]:
    """Returns the smallest value, the median, the mean, the 95th percentile and the largest; none
    of them without a value."""
    if not len(values):
        return dict.fromkeys(("min", "median", "mean", "p95", "max"))
    return {
        "min": values.min().item(),
        "median": float(np.median(values)),
        "mean": float(values.mean(dtype=np.float64)),
        "p95": np.quantile(values, 0.95, method="inverted_cdf").item(),
        "max": values.max().item(),
    }


def _times(times_us: Whole) -> dict[str, Any]:
    """Returns how many of these times are known, and their spread in seconds."""
    known = times_us[times_us != UNKNOWN]
    return {"jobs": len(known)} | spread(known / SECOND)


def requests(trace: Trace) -> dict[str, Any]:
    """Returns the same of requested times; and how accurate they are: the mean of a job's run time
    over its request, and how many jobs run for longer than requested."""
    asked = trace.requested_us != UNKNOWN
    run, requested = trace.run_us[asked], trace.requested_us[asked]
    return _times(trace.requested_us) | {
        "mean_accuracy": float((run / requested).mean()) if len(run) else None,
        "longer": int((run > requested).sum()),
    }


def _share(which: npt.NDArray[np.bool_]) -> float | None:
    return float(which.mean()) if len(which) else None


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


# -- of users


@dataclass(frozen=True)
class User:
    """A user's part of a trace."""

    name: str
    jobs: int
    node_hours: float
    share: float | None
    """The user's share of all node-time; None where nobody needs any."""

    def facts(self) -> dict[str, Any]:
        return {"name": self.name, "jobs": self.jobs, "node_hours": self.node_hours,
                "node_time_share": self.share}  # fmt: skip


def busiest_users(trace: Trace, most: int = MOST_USERS) -> list[User]:
    """Returns the users whose jobs need the most node-time, the busiest first; without the one that
    stands for unknown users."""
    hours = np.bincount(trace.user, node_seconds(trace) / HOUR, len(trace.users))
    jobs = np.bincount(trace.user, minlength=len(trace.users))
    total = float(hours.sum())
    order = [at for at in np.lexsort((-jobs, -hours)).tolist() if jobs[at] and trace.users[at]]
    return [User(trace.users[at], int(jobs[at]), float(hours[at]),
                 float(hours[at]) / total if total else None)
            for at in order[:most]]  # fmt: skip


def _known(positions: Whole, names: Sequence[str]) -> int:
    """Returns how many of these appear in the trace and have a name."""
    return sum(1 for at in np.unique(positions).tolist() if names[at])
