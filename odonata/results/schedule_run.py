"""The results of a run of the job fidelity: its jobs, its queue, and the schedule they make."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr

from odonata.experiment.experiment import JobExperiment
from odonata.jobs.schedule import STATES, Schedule
from odonata.results.opened import Opened
from odonata.results.schedule_measures import Measures, measures
from odonata.traces.trace import Account, Trace, Whole

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
            account=self.account,
        )  # fmt: skip

    @property
    def account(self) -> Account:
        """Returns what was dropped and repaired when the trace was read."""
        return Account(**json.loads(self.attributes["account"]))

    @property
    def nodes(self) -> int:
        """Returns the size of the machine."""
        return int(self.attributes["nodes"])

    @cached_property
    def schedule(self) -> Schedule:
        """Returns what became of the jobs, as far as is known."""
        starts, ends = self._log("starts"), self._log("ends")
        labels, machine = None, self.experiment.machine
        if machine is not None:
            count = int(self.trace.nodes[starts["job"]].sum())
            labels = self.read("placements/labels", slice(count)).astype(np.int32)
        return Schedule.of_logs(
            self.trace, self.nodes, self.reached, (starts["time_us"], starts["job"]),
            (ends["time_us"], ends["job"], ends["how"]), machine, labels,
        )  # fmt: skip

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
        found = {name: ("job", values, {"unit": "us"} if name.endswith("_us") else {})
                 for name, values in columns.items()}  # fmt: skip
        return xr.Dataset(found, {"job": np.arange(len(trace))})
