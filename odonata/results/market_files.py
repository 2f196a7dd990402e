"""The market of an opened run, from its files.

Where packets are simulated nobody knows how long a job takes: docs/following-in-packets.md says
what its degradation is then. Jobs have times in picoseconds there; those of bids and measurements
are whole microseconds in all runs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from odonata.agents.expected import expected_ps, kinds_of
from odonata.jobs.market import PRICES
from odonata.jobs.schedule import MICROSECOND_PS
from odonata.jobs.series import Steps
from odonata.results.market import Bids, Known, Market, Rules, Tracking, measured_until
from odonata.results.qualities import CapLogs, JobTypes
from policies.power.floor import SHORTEST

if TYPE_CHECKING:
    from odonata.results.run import Run


def market_of(run: Run) -> Market | None:
    """Returns what a run has; None where there was no market, or where it was run by a version that
    did not keep its prices."""
    if any(run.steps(name) is None for name in PRICES):
        return None
    return _of_packets(run) if run.has("network") else _of_jobs(run)


def _prices(run: Run) -> dict[str, Steps]:
    found = {name: run.steps(name) for name in PRICES}
    return {name: steps for name, steps in found.items() if steps is not None}


# -- of jobs


def _of_jobs(run: Run) -> Market | None:
    if "market" not in run.file:
        return None
    found = {name: run.read(f"market/{name}")[0].item()
             for name in Rules._fields if f"market/{name}" in run.file}  # fmt: skip
    standby = left = None
    if "standby" in run.file and run.complete:
        left = run.read("left/left_us")
        started, ended = (int(run.read(f"standby/{name}")[0]) for name in ("started", "ended"))
        standby = started, ended
    bids, seen = run.log("bids"), run.log("tracking")
    time_us = seen["time_us"]
    standby_w = seen.get("standby_w", np.full(len(time_us), math.nan))
    return Market(
        Rules(**found), _prices(run), measured_until(run.simulated_us, time_us),
        Bids.of_log(bids, bids["time_us"]),
        Tracking(time_us, seen["target_w"], seen["power_w"], standby_w), run.schedule,
        types_of(run), caps_of(run), standby, left, carbon=run.steps("carbon"),
    )  # fmt: skip


def types_of(run: Run) -> JobTypes | None:
    """Returns the types of the jobs of a run without packets; None where they have none."""
    if "types" not in run.file:
        return None
    names = [name.decode() for name in run.read("types/name").tolist()]
    aside = run.read("types/standby") != 0
    most, least, slowdown, threshold = (
        run.read(f"types/{name}")[~aside]
        for name in ("power_max_w", "power_min_w", "slowdown", "q_threshold")
    )
    standby = names[-1] if aside.any() else None
    return JobTypes(tuple(names[: len(most)]), most, least, slowdown, threshold,
                    run.read("jobs/type"), standby)  # fmt: skip


def caps_of(run: Run) -> CapLogs:
    """Returns the caps and speeds that a run without packets has logged."""

    def columns(log: str, *names: str) -> Any:
        found = run.log(log)
        return tuple(found.get(name, np.zeros(0, np.int64)) for name in names)

    return CapLogs(columns("type_caps", "time_us", "type", "cap_w"),
                   columns("caps", "time_us", "job", "cap_w"),
                   columns("speeds", "time_us", "rate"))  # fmt: skip


# -- of packets


def _of_packets(run: Run) -> Market:
    settings, power, jobs = run.experiment.market, run.experiment.power, run.network.jobs
    assert settings is not None
    assert power is not None
    bids, seen, launch = run.log("bids"), run.log("tracking"), run.experiment.scheduler.launch_ps
    time_us = (seen["time_ps"] - launch) // MICROSECOND_PS
    until_us = int(time_us[-1]) if len(time_us) else 0
    kinds, order = kinds_of(power, jobs), run.schedule.trace.number
    expected, kinds = expected_ps(kinds, jobs)[order], kinds._replace(of_job=kinds.of_job[order])
    none, zero = np.zeros(0), np.zeros(0, np.int64)
    return Market(
        Rules.of(settings), _prices(run), until_us,
        Bids.of_log(bids, bids["time_ps"] // MICROSECOND_PS),
        Tracking(time_us, seen["target_w"], seen["power_w"], np.full(len(time_us), np.nan)),
        run.schedule, JobTypes.of(kinds), CapLogs((zero, zero, none), (zero, zero, none),
                                                  (zero, none)),
        known=_known(run, expected, until_us * MICROSECOND_PS),
    )  # fmt: skip


def _known(run: Run, expected: Any, until: int) -> Known:
    """Returns how late jobs were, and how long they waited, by times in ps. A job that runs at the
    end counts as if it ended then or, if that is later, as long after its start as expected; one
    that waits, as if it started then. nan of one that has not come, or of which nobody knows how
    long it takes."""
    jobs = run.schedule
    submitted, begun, over = jobs.submit, jobs.start >= 0, jobs.end >= 0
    start = np.where(begun, jobs.start, until)
    end = np.where(over, jobs.end, np.maximum(until, start + expected))
    quality = (end - submitted - expected) / np.maximum(expected, SHORTEST)
    here = begun | (submitted < until)
    return Known(np.where(here & (expected > 0), quality, np.nan),
                 np.where(here, (start - submitted) * 1e-12, np.nan))  # fmt: skip
