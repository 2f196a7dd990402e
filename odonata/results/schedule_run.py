"""The results of a run of the job fidelity: its jobs, its queue, and the schedule they make."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cached_property
from math import nan
from typing import TYPE_CHECKING, Any

import numpy as np

from odonata.experiment.experiment import JobExperiment
from odonata.jobs.metering import PowerRecord
from odonata.jobs.schedule import STATES, Molds, Schedule
from odonata.jobs.series import Steps
from odonata.results.market import Market, types_of
from odonata.results.opened import Opened
from odonata.results.power_measures import PowerMeasures, power_measures
from odonata.results.schedule_measures import Measures, measures
from odonata.traces.clock import WallClock
from odonata.traces.trace import SECOND, Account, Trace, Whole

if TYPE_CHECKING:
    import xarray as xr

NAMED = ("user", "project", "application")


class ScheduleRun(Opened):
    """An opened run of the job fidelity. Times are microseconds."""

    experiment: JobExperiment

    @cached_property
    def trace(self) -> Trace:
        """Returns the jobs that it ran, from its files: the trace itself need not be there."""
        columns: dict[str, Any] = {
            name: self.read(f"jobs/{name}")
            for name in ("number", "submit_us", "run_us", "nodes", "requested_us", *NAMED)
        }
        names: dict[str, Any] = {
            f"{name}s": tuple(text.decode() for text in self.read(f"{name}s/name").tolist())
            for name in NAMED
        }
        return Trace(
            self.attributes["trace"], **columns, **names,
            wait_us=self.read("jobs/recorded_wait_us"), machine_nodes=self.nodes,
            account=self.account, clock=self.clock,
        )  # fmt: skip

    @property
    def account(self) -> Account:
        """Returns what was dropped and repaired when the trace was read."""
        return Account(**json.loads(self.attributes["account"]))

    @property
    def clock(self) -> WallClock | None:
        """Returns which date time 0 has, and what clocks show then; None where nobody told it."""
        told = self.attributes.get("clock")
        return None if told is None else WallClock(**json.loads(told))

    @property
    def nodes(self) -> int:
        """Returns the size of the machine."""
        return int(self.attributes["nodes"])

    @cached_property
    def schedule(self) -> Schedule:
        """Returns what became of the jobs, as far as is known."""
        starts, ends = self._log("starts"), self._log("ends")
        labels, machine, molds = None, self.experiment.machine, None
        if "molds" in self.file:
            log = self._log("molds")
            molds = Molds(*(log[name] for name in Molds._fields))
        if machine is not None:
            sizes = self.trace.nodes.copy()
            if molds is not None:
                sizes[molds.job] = molds.nodes
            count = int(sizes[starts["job"]].sum())
            labels = self.read("placements/labels", slice(count)).astype(np.int32)
        return Schedule.of_logs(
            self.trace, self.nodes, self.reached, (starts["time_us"], starts["job"]),
            (ends["time_us"], ends["job"], ends["how"]), machine, labels, molds,
        )  # fmt: skip

    @cached_property
    def power(self) -> PowerRecord | None:
        """Returns what was measured of power, None where it was not simulated."""
        if self.experiment.power is None:
            return None
        logs = {name: self._log(name) for name in ("power", "ends", "caps", "speeds")}
        figures = self._log("learned") if "learned" in self.file else {}
        figures.pop("time_us", None)
        columns = {"power": ("time_us", "power_w", "cap_w", "cause"),
                   "caps": ("time_us", "job", "cap_w"), "speeds": ("time_us", "rate")}  # fmt: skip
        power, caps, speeds = (tuple(logs[log][name] for name in names)
                               for log, names in columns.items())  # fmt: skip
        so_far = None
        goes_on = "standby" in self.file and self.experiment.run.end is not None  # to its end
        if goes_on or not self.schedule.done.all():
            ends = logs["ends"]
            by_job = np.bincount(ends["job"], ends["energy_j"], len(self.trace)).astype(np.float64)
            until, idle_j, sleep_j, jobs_j = self._energies()
            so_far = (until, idle_j, sleep_j, by_job, jobs_j)
        record = PowerRecord.of_logs(len(self.trace), power, logs["ends"], caps, speeds, figures,
                                     so_far)  # fmt: skip
        return replace(record, standby_j=self._standby_j())

    def _standby_j(self) -> float:
        """Returns the energy of standby jobs, of which only some runs have any; of one that goes on
        as far as it was measured."""
        if "standby" not in self.file:
            return 0.0
        if self.complete:
            return float(self.read("standby/energy_j")[0])
        seen = self._log("tracking")
        return float((seen["standby_w"] * np.diff(seen["time_us"], prepend=0)).sum()) / SECOND

    def _energies(self) -> tuple[int, float, float, float]:
        """Returns the time of the last sample, and the energies of idle nodes, of sleeping ones and
        of jobs up to then; before the first sample they are those at time 0."""
        if not len(self.times):
            return 0, 0.0, 0.0, 0.0
        last = len(self.times) - 1, 0
        idle_j, sleep_j, jobs_j = (float(self.read(f"system/{name}", last))
                                   for name in ("idle_j", "sleep_j", "jobs_j"))  # fmt: skip
        return int(self.times[-1]), idle_j, sleep_j, jobs_j

    @cached_property
    def power_measures(self) -> PowerMeasures | None:
        """Returns the measures of power, None where it was not simulated."""
        if self.power is None:
            return None
        price, carbon = (self.steps(name) for name in ("price", "carbon"))
        return power_measures(self.power, self.trace, price, carbon)

    @cached_property
    def market(self) -> Market | None:
        """Returns the hours of a market, None where the machine took part in none."""
        return Market.of_run(self)

    def steps(self, name: str) -> Steps | None:
        """Returns the price or the carbon intensity over time, from the files of the run."""
        if name not in self.file:
            return None
        return Steps.of(self.read(f"{name}/since_us"), self.read(f"{name}/value"))

    @property
    def simulated_us(self) -> int:
        """Returns the time that it has simulated: where it went on until all jobs were done, to the
        end of the last of them, and not to when that was noticed."""
        ended = self.complete and self.experiment.run.end is None
        return int(self.schedule.end_us.max()) if ended else self.reached

    @cached_property
    def measures(self) -> Measures:
        """Returns the measures of the schedule, without any warm-up."""
        return measures(self.schedule)

    @cached_property
    def system(self) -> xr.Dataset:
        """Returns the queue, the running jobs and the busy nodes, as sampled."""
        return self._table("system", {})

    @cached_property
    def jobs(self) -> xr.Dataset:
        """Returns every job, as far as is known; times that are not are -1."""
        from xarray import Dataset

        trace, schedule = self.trace, self.schedule
        begun, over = schedule.start_us >= 0, schedule.end_us >= 0

        def named(names: tuple[str, ...], which: Whole) -> object:
            return np.array(names)[which]

        columns = {
            "number": trace.number, "nodes": trace.nodes, "submit_us": trace.submit_us,
            "run_us": trace.run_us, "requested_us": trace.requested_us,
            "start_us": schedule.start_us, "end_us": schedule.end_us,
            "wait_us": np.where(begun, schedule.start_us - trace.submit_us, -1),
            "turnaround_us": np.where(over, schedule.end_us - trace.submit_us, -1),
            "state": np.array(STATES)[schedule.state],
            "user": named(trace.users, trace.user), "project": named(trace.projects, trace.project),
            "application": named(trace.applications, trace.application),
        }  # fmt: skip
        if self.power is not None:
            columns["energy_j"] = self.power.energy_j
            if self.power.cap_stretch is not None:
                columns["cap_stretch"] = self.power.cap_stretch
        if (molds := schedule.molds) is not None:
            columns["held_nodes"] = schedule.job_nodes
            cores, cap_w = np.zeros(len(trace), np.int64), np.full(len(trace), nan)
            cores[molds.job], cap_w[molds.job] = molds.cores, molds.cap_w
            columns |= {"cores": cores, "cap_w": cap_w}
        if (types := types_of(self)) is not None:
            columns["type"] = np.array(types.names)[types.of_job]
        if self.market is not None and self.market.quality is not None:
            columns["q"] = self.market.quality
        units = {"_us": "us", "y_j": "J", "p_w": "W"}
        found = {name: ("job", values, {"unit": units[name[-3:]]} if name[-3:] in units else {})
                 for name, values in columns.items()}  # fmt: skip
        return Dataset(found, {"job": np.arange(len(trace))})
