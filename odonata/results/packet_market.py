"""The hours of a market in a run of packets, judged by the same rules as those of a job run.

Jobs are in order of arrival. Their times are picoseconds; those of bids and measurements are whole
microseconds. docs/following-in-packets.md says what the degradation of a job is that nobody could
know the run time of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from odonata.agents.expected import MICROSECOND, expected_ps, kinds_of
from odonata.jobs import board as b
from odonata.jobs.market import PRICES
from odonata.jobs.schedule import FINISHED, RUNNING, TO_COME, WAITING, Schedule
from odonata.jobs.series import Steps
from odonata.results.market import Bids, Known, Market, Rules, Tracking
from odonata.results.qualities import CapLogs, JobTypes
from odonata.traces.trace import UNKNOWN, Trace
from policies.power.floor import SHORTEST

if TYPE_CHECKING:
    from odonata.results.run import Run


def market_of(run: Run) -> Market | None:
    """Returns what an opened run has; None where there was no market."""
    settings, power, jobs = run.experiment.market, run.experiment.power, run.network.jobs
    if settings is None or power is None:
        return None
    bids, seen = run._log("bids"), run._log("tracking")
    launch = run.experiment.scheduler.launch_ps
    time_us = (seen["time_ps"] - launch) // MICROSECOND
    until_us = int(time_us[-1]) if len(time_us) else 0
    arrivals = np.array([job.arrival_ps for job in jobs])
    order = np.argsort(arrivals, kind="stable")
    kinds = kinds_of(power, jobs)
    expected, kinds = expected_ps(kinds, jobs)[order], kinds._replace(of_job=kinds.of_job[order])
    board, submitted = run._board[0][order], arrivals[order]
    steps = {name: Steps.of(run.read(f"{name}/since_ps") // MICROSECOND, run.read(f"{name}/value"))
             for name in PRICES}  # fmt: skip
    none, zero = np.zeros(0), np.zeros(0, np.int64)
    return Market(
        Rules.of(settings), steps, until_us,
        Bids.of_log(bids, bids["time_ps"] // MICROSECOND),
        Tracking(time_us, seen["target_w"], seen["power_w"], np.full(len(time_us), np.nan)),
        _schedule(run, board, order, submitted), JobTypes.of(kinds),
        CapLogs((zero, zero, none), (zero, zero, none), (zero, none)),
        known=_known(board, submitted, expected, until_us * MICROSECOND),
    )  # fmt: skip


def _schedule(run: Run, board: Any, order: Any, submitted: Any) -> Schedule:
    """Returns the jobs as a schedule, in whole microseconds: which have come, by hour."""
    jobs = run.network.jobs
    none, unknown = np.zeros(len(order), np.int64), np.full(len(order), UNKNOWN)
    nodes = np.array([jobs[number].nodes for number in order.tolist()])
    trace = Trace(run.experiment.name, order, submitted // MICROSECOND, none, nodes, unknown, none,
                  none, none, unknown)  # fmt: skip
    state = np.where(submitted < run.reached_ps, WAITING, TO_COME)
    state = np.where(board[:, b.STATUS] == b.RUNNING, RUNNING, state)
    state = np.where(board[:, b.STATUS] == b.DONE, FINISHED, state).astype(np.int8)
    times = board[:, [b.BEGAN, b.OVER]]
    times = np.where(times < 0, -1, times // MICROSECOND)
    ran = np.flatnonzero(times[:, 0] >= 0)
    return Schedule(trace, run.machine.n_nodes, run.reached_ps // MICROSECOND, state, times[:, 0],
                    times[:, 1], ran, times[ran, 0], times[ran, 1])  # fmt: skip


def _known(board: Any, submitted: Any, expected: Any, until: int) -> Known:
    """Returns how late jobs were, and how long they waited, by times in ps. A job that runs at the
    end counts as if it ended then or, if that is later, as long after its start as expected; one
    that waits, as if it started then. nan of one that has not come, or of which nobody knows how
    long it takes."""
    begun, over = board[:, b.BEGAN] >= 0, board[:, b.OVER] >= 0
    start = np.where(begun, board[:, b.BEGAN], until)
    end = np.where(over, board[:, b.OVER], np.maximum(until, start + expected))
    quality = (end - submitted - expected) / np.maximum(expected, SHORTEST)
    here = begun | (submitted < until)
    return Known(np.where(here & (expected > 0), quality, np.nan),
                 np.where(here, (start - submitted) * 1e-12, np.nan))  # fmt: skip
