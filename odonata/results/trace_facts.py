"""What is in a trace, in numbers: when its jobs were submitted, how large and how long they are,
how well their run times were foretold, and whose they are.

What a trace does not tell is None, and never nan: these facts become JSON.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any

import numpy as np
import numpy.typing as npt

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
    clock, account, span_s = clock_of(trace), trace.account, trace.span_us / SECOND
    ends = (
        [None, None] if clock is None or not len(trace) else clock.words(trace.submit_us[[0, -1]])
    )
    busiest = busiest_users(trace)
    return {
        "name": trace.name,
        "computer": told(trace, "Computer"),
        "installation": told(trace, "Installation"),
        "model": told(trace, "Model"),
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


# -- the header, and the time of day


def told(trace: Trace, key: str) -> str | None:
    """Returns what the first line "Key: value" of the header says; None without one."""
    for line in trace.header:
        name, colon, value = line.partition(":")
        if colon and name.strip() == key and value.strip():
            return value.strip()
    return None


@dataclass(frozen=True)
class Clock:
    """The date and the time of day of a trace whose header tells when it begins."""

    begin_s: int
    """Time 0 of the trace, in seconds since 1970 (UTC)."""
    zone: tzinfo
    name: str

    def local_s(self, times_us: Whole) -> Whole:
        """Returns what clocks there show at these times of the trace, in seconds since a midnight:
        that of 1 January 1970."""
        seconds = times_us // SECOND + self.begin_s
        hours, of = np.unique(seconds // HOUR, return_inverse=True)
        shift = [self._shift_s(int(hour) * HOUR) for hour in hours]
        return seconds + np.array(shift, np.int64)[of]

    def _shift_s(self, at_s: int) -> int:
        there = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=at_s)).astimezone(self.zone)
        return int((there.utcoffset() or timedelta()).total_seconds())

    def words(self, times_us: Whole) -> list[str]:
        """Returns dates and times of day: "1993-10-01 00:00"."""
        epoch = datetime(1970, 1, 1)
        return [f"{epoch + timedelta(seconds=at):%Y-%m-%d %H:%M}"
                for at in self.local_s(times_us).tolist()]  # fmt: skip


def clock_of(trace: Trace) -> Clock | None:
    """Returns the clock of a trace; None where its header does not tell when it begins, or tells a
    time that has no date. Its time zone is that of TimeZoneString or, where nobody knows of such a
    one, of TimeZone; without these it is UTC."""
    text = told(trace, "UnixStartTime") or ""
    if not re.fullmatch(r"[0-9]{1,12}", text, re.ASCII) or int(text) == 0:
        return None
    clock = Clock(int(text), *_zone(told(trace, "TimeZoneString"), told(trace, "TimeZone")))
    try:
        clock.words(trace.submit_us[-1:])
    except (OverflowError, ValueError):  # after the year 9999
        return None
    return clock


def _zone(named: str | None, shift: str | None) -> tuple[tzinfo, str]:
    from zoneinfo import ZoneInfo

    if named:
        try:
            return ZoneInfo(named), named
        except (OSError, ValueError, KeyError):
            pass
    if shift and re.fullmatch(r"[+-]?[0-9]{1,5}", shift, re.ASCII) and abs(int(shift)) < DAY:
        zone = timezone(timedelta(seconds=int(shift)))
        return zone, str(zone)
    return UTC, "UTC"
