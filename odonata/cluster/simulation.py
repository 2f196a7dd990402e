"""Simulates a trace to its end, in memory: nothing is written, and the schedule is returned."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from odonata.cluster.metrics import POWERED_ENDS
from odonata.cluster.model import Cluster
from odonata.jobs.metering import PowerRecord
from odonata.jobs.schedule import FINISHED, Molds, Schedule
from pdes.driver import Result, run
from pdes.engine import Progress
from pdes.errors import Fault
from pdes.log import Appended, Block
from pdes.transport import Transport


class LogsInMemory:
    """The logs of a run, in memory."""

    def __init__(self) -> None:
        self._blocks: dict[str, list[Block]] = {}
        self._labels: list[Any] = []
        self._figures: list[list[float]] = []
        self._molds: list[Sequence[Any]] = []

    def take(self, time: int, agent: int, rows: Appended) -> None:
        for name, values in rows:
            if isinstance(values, Block):
                self._blocks.setdefault(name, []).append(values)
            elif name == "learned":
                self._figures.append([*values])
            elif name == "molds":
                self._molds.append(values)
            elif name == "placements":
                self._labels.append(np.array(values[1], np.int32))

    def schedule(self, model: Cluster, reached_us: int) -> Schedule:
        starts, ends = self._columns("starts", 1), self._columns("ends", 2)
        labels = None
        if model.machine is not None:
            labels = np.concatenate([np.zeros(0, np.int32), *self._labels])
        molds = Molds.of_rows(self._molds) if model.choices else None
        return Schedule.of_logs(model.trace, model.nodes, reached_us, starts, ends, model.machine,
                                labels, molds)  # fmt: skip

    def power(self, model: Cluster, result: Result) -> PowerRecord | None:
        """Returns what was measured of power, None where it was not simulated."""
        if model.power is None or not len(result.outcome["energy_j"]):
            return None
        names = model.power_policy.figures if model.power_policy else ()
        values = np.array(self._figures).reshape(len(self._figures), len(names))
        ends = dict(zip(("time_us", *(it.name for it in POWERED_ENDS.columns)),
                        self._columns("ends", len(POWERED_ENDS.columns)), strict=True))  # fmt: skip
        so_far = None
        goes_on = model.regulates is not None and model.until_us is not None
        if goes_on or (result.outcome["state"] < FINISHED).any():
            idle_j, sleep_j, jobs_j = result.outcome["machine_j"].tolist()
            so_far = (result.time, idle_j, sleep_j, result.outcome["energy_j"], jobs_j)
        return PowerRecord.of_logs(
            len(model.trace), self._columns("power", 3), ends, self._columns("caps", 2),
            self._columns("speeds", 1), dict(zip(names, values.T, strict=True)), so_far,
        )  # fmt: skip

    def _columns(self, name: str, columns: int) -> Any:
        blocks = self._blocks.get(name, [])
        none = np.zeros(0, np.int64)
        parts = [[none, *(block.times for block in blocks)]]
        parts += [[none] * (not blocks) + [block.columns[n] for block in blocks]
                  for n in range(columns)]  # fmt: skip
        return tuple(np.concatenate(part) for part in parts)


class Simulated(NamedTuple):
    """A run in memory: what became of its jobs, the engine's account, and what was measured of
    power."""

    schedule: Schedule
    result: Result
    power: PowerRecord | None


def check_all_done(model: Cluster, result: Result) -> None:
    """Raise a Fault where a run without an end has come to it with jobs that were never finished:
    its discipline has left them waiting."""
    left = int((result.outcome["state"] < FINISHED).sum())
    if result.completed and left:
        policies = f"scheduling {model.scheduling}"
        if model.power_policy is not None:
            policies += f", power {model.power_policy.name}"
        raise Fault(f"{policies}: it has left {left:,} of {len(model.trace):,} jobs waiting, and "
                    f"nothing is left to happen{_rigid(model, result)}")  # fmt: skip


def _rigid(model: Cluster, result: Result) -> str:
    """Returns words on jobs that wait for ever because nobody measured their application."""
    if model.power is None or model.power_policy is None or not model.power_policy.molds:
        return ""
    names, cap = model.trace.applications, model.cap
    left = np.unique(model.trace.application[result.outcome["state"] < FINISHED]).tolist()
    rigid = [names[it] or "no name" for it in left if names[it] not in model.choices]
    if not rigid:
        return "; they draw more than the cap in each of their configurations"
    known = ", ".join(model.applications) or "none: set power.applications"
    finite = cap is not None and cap.least < math.inf
    high = f" of {cap.least:,g} W at its lowest" if cap is not None and finite else ""
    return (f"; some are of applications that were not measured ({', '.join(rigid[:5])}), of which "
            f"{model.power.maximum:g} W per node are assumed, under a cap{high}; measured are: "
            f"{known}")  # fmt: skip


def simulate(
    model: Cluster,
    end_us: int | None = None,
    *,
    progress: Progress | None = None,
    transport: Transport | None = None,
) -> Simulated:
    """Returns the schedule of a trace, and the run: to the last job's end, or to `end_us`. On
    several ranks only the first has a schedule; the others' is empty."""
    gathered = LogsInMemory()
    result = run(model, end_us, log=gathered.take, progress=progress, transport=transport)
    if end_us is None:
        check_all_done(model, result)
    return Simulated(gathered.schedule(model, result.time + (end_us is None)), result,
                     gathered.power(model, result))  # fmt: skip
