"""What the paper measures of a run: of each customer, and of the system over time.

Between two **epochs** (arrivals, starts, departures and switches of the rate) everything is
constant but the workload, which falls linearly: so all means are exact. The system is measured from
time 0 to the last departure. `work` is the sum of the job amounts that are left, of all customers
who are there, whatever their servers; amounts are seconds at a service rate of 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from odonata.jobs.schedule import Schedule
from odonata.results.schedule_series import steps
from odonata.traces.trace import SECOND, Whole
from policies.power.service_rate import ENERGIES, Energies

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
FIVE = ("mean", "median", "p95", "p99", "max")
"""The numbers that describe the distribution of a measure over customers."""


@dataclass(frozen=True, eq=False)
class Epochs:
    """A run from epoch to epoch: what is at position i holds until the epoch i + 1, the last until
    the last departure. `work` is what is left at the epoch itself."""

    schedule: Schedule
    time_us: Whole
    lengths_s: Floats
    fast: Bools
    rate: Floats
    busy: Whole
    served: Whole
    waiting: Whole
    work: Floats

    @classmethod
    def of(
        cls, schedule: Schedule, speeds: tuple[Whole, Floats], low: float, high: float
    ) -> Epochs:
        """Returns the epochs of a run to its end, whose service rate is `low` before the first of
        the changes in `speeds`."""
        series, (switch_us, rates) = steps(schedule), speeds
        switched = switch_us <= series.until_us
        time_us = np.unique(np.concatenate([[0], series.time_us, switch_us[switched]]))
        lengths = np.diff(time_us, append=series.until_us) / SECOND
        rate = np.concatenate([[low], rates])[np.searchsorted(switch_us, time_us, "right")]
        place = np.searchsorted(series.time_us, time_us, "right")
        busy, served, waiting = (
            np.concatenate([[0], column])[place]
            for column in (series.busy, series.running, series.queue)
        )
        work = _work(schedule, time_us, lengths, rate, served, served + waiting > 0)
        return cls(schedule, time_us, lengths, rate == high, rate, busy, served, waiting, work)

    @cached_property
    def until_s(self) -> float:
        return float(self.lengths_s.sum())

    def mean(self, values: Any) -> float:
        """Returns the mean over time of what is constant between epochs."""
        return float((values * self.lengths_s).sum() / self.until_s)

    @property
    def mean_work(self) -> float:
        """Returns the mean workload over time: half of what is worked off between two epochs is
        still there on average."""
        return self.mean(self.work - self.rate * self.served * self.lengths_s / 2)

    def power_w(self, watts: Energies) -> float:
        """Returns the mean power of all servers, equation 11."""
        busy = np.where(self.fast, watts.busy_high_w, watts.busy_low_w)
        idle = np.where(self.fast, watts.idle_high_w, watts.idle_low_w)
        return self.mean(self.busy * busy + (self.schedule.nodes - self.busy) * idle)

    def energy_j(self, watts: Energies) -> Floats:
        """Returns the energy that each customer takes while it is served, equation 9."""
        drawn = np.where(self.fast, watts.busy_high_w, watts.busy_low_w) * self.lengths_s
        return self.schedule.trace.nodes * _while_served(self.schedule, self.time_us, drawn)

    def system(self) -> dict[str, float]:
        """Returns the means of the system over time: loads and waste are service rates times
        servers, the rest counts servers and customers."""
        servers, behind = self.schedule.nodes, self.waiting > 0
        return {
            "workload": self.mean_work,
            "customers": self.mean(self.served + self.waiting),
            "waiting": self.mean(self.waiting),
            "busy servers": self.mean(self.busy),
            "potential load": self.mean(self.rate * np.where(behind, servers, self.busy)),
            "effective load": self.mean(self.rate * self.busy),
            "waste": self.mean(self.rate * np.where(behind, servers - self.busy, 0)),
            "time at the high rate": self.mean(self.fast),
        }

    def customers(self) -> dict[str, dict[str, float]]:
        """Returns the distribution of each measure of customers: times in s, energies in J. Delay
        is the time before a customer is first served, `waiting` all the time in which it is not."""
        begin, end = self.schedule.start_us, self.schedule.end_us
        submit = self.schedule.trace.submit_us
        sojourn = (end - submit) / SECOND
        service = _while_served(self.schedule, self.time_us, self.lengths_s)
        if len(self.schedule.segment_job) == len(self.schedule):  # nobody was ever suspended
            service = (end - begin) / SECOND
        found = {
            "delay": (begin - submit) / SECOND,
            "waiting": np.maximum(0.0, sojourn - service),
            "sojourn": sojourn,
            "service": service,
            "slowdown": sojourn / service,
        } | {f"energy ({name})": self.energy_j(watts) for name, watts in ENERGIES.items()}
        return {name: five(values) for name, values in found.items()}


def five(values: Floats) -> dict[str, float]:
    """Returns the numbers of FIVE."""
    ranks = np.percentile(values, (50, 95, 99, 100)).tolist()
    return dict(zip(FIVE, (float(values.mean()), *ranks), strict=True))


def _while_served(schedule: Schedule, time_us: Whole, each: Floats) -> Floats:
    """Returns the sum of a value per epoch over those in which each customer is served."""
    sums = np.concatenate([[0.0], np.cumsum(each)])
    begin, end = (np.searchsorted(time_us, at) for at in
                  (schedule.segment_from_us, schedule.segment_to_us))  # fmt: skip
    found = np.zeros(len(schedule))
    np.add.at(found, schedule.segment_job, sums[end] - sums[begin])
    return found


def _work(
    schedule: Schedule, time_us: Whole, lengths: Floats, rate: Floats, served: Whole, anybody: Bools
) -> Floats:
    """Returns the workload at each epoch. Where nobody is there it is 0, and not what sums of
    rounded numbers leave."""
    amount = schedule.trace.run_us / SECOND
    arrives, end = (np.searchsorted(time_us, at)
                    for at in (schedule.trace.submit_us, schedule.end_us))  # fmt: skip
    done = _while_served(schedule, time_us, rate * lengths)
    left = amount - done  # as departures are at whole microseconds
    n = len(time_us) + 1
    off = np.concatenate([[0.0], rate * served * lengths])
    change = np.bincount(arrives, amount, n) - np.bincount(end, left, n) - off
    work: Floats = np.where(anybody, np.maximum(0.0, np.cumsum(change)[:-1]), 0.0)
    return work
