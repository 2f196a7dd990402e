"""What was measured of the power of an opened run, from its files."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from odonata.agents.computing import cap_stretches
from odonata.agents.metrics import SPENT
from odonata.jobs.metering import PowerRecord
from odonata.traces.trace import SECOND

if TYPE_CHECKING:
    from odonata.results.run import Run


def power_of(run: Run) -> PowerRecord | None:
    """Returns what was measured; None where nothing was."""
    return _of_packets(run) if run.has("network") else _of_jobs(run)


def _figures(run: Run) -> dict[str, Any]:
    """Returns what the power policy has counted, by reading."""
    return {name: values for name, values in run.log("learned").items()
            if name != f"time_{run.tick}"}  # fmt: skip


# -- of packets


def _of_packets(run: Run) -> PowerRecord | None:
    """Returns this of a run of packets. What nodes took that is not of a job which has ended counts
    as idle."""
    if not len(run.times):
        return None
    readings, caps, ends = (run.log(name) for name in ("power", "caps", "ends"))
    latency = run.experiment.scheduler.launch_ps  # until the scheduler heard of a reading
    trace = run.schedule.trace
    place = np.argsort(trace.number)  # [number of a job]: its position in the table
    taken, stretch = np.zeros((len(trace), 2)), np.full(len(trace), math.nan)
    taken[place[ends["job"]]] = np.column_stack((ends["energy_j"], ends["received_bytes"]))
    if len(longer := _stretches(run)):
        over = run.schedule.done
        stretch[over] = np.array(longer)[trace.number[over]]
    total = math.fsum(run.read("nodes/energy_j", len(run.times) - 1).tolist())
    return PowerRecord(
        readings["time_ps"] - latency, readings["power_w"], readings["cap_w"],
        readings["cause"], int(run.times[-1]), taken[:, 0], total - math.fsum(taken[:, 0]), 0.0,
        0.0, (caps["time_ps"], caps["job"], caps["cap_w"]), (np.zeros(0, np.int64), np.zeros(0)),
        _figures(run), 1e-12, stretch, received_bytes=taken[:, 1].astype(np.int64),
    )  # fmt: skip


def _stretches(run: Run) -> list[float]:
    """Returns by how much caps stretched what each job computes, by number; right of those that are
    over. Empty where that is not known: while a run goes on."""
    network, known = run.network, "stages/computed_ps" in run.file
    if not known or run.state in ("running", "died", "failed") or network.workload is None:
        return []
    spent = np.stack([run.read(f"stages/{name}") for name in SPENT], axis=-1)
    if len(spent) != sum(len(job.parts) for job in network.jobs):
        return []
    return cap_stretches(network.workload, network.seed_of("traffic"), spent)


# -- of jobs


def _of_jobs(run: Run) -> PowerRecord:
    logs = {name: run.log(name) for name in ("power", "ends", "caps", "speeds")}
    columns = {"power": ("time_us", "power_w", "cap_w", "cause"),
               "caps": ("time_us", "job", "cap_w"), "speeds": ("time_us", "rate")}  # fmt: skip
    power, caps, speeds = (tuple(logs[log][name] for name in names)
                           for log, names in columns.items())  # fmt: skip
    so_far, jobs = None, len(run.trace)
    goes_on = "standby" in run.file and run.experiment.run.end is not None  # to its end
    if goes_on or not run.schedule.done.all():
        ends = logs["ends"]
        by_job = np.bincount(ends["job"], ends["energy_j"], jobs).astype(np.float64)
        until, idle_j, sleep_j, jobs_j = _energies(run)
        so_far = (until, idle_j, sleep_j, by_job, jobs_j)
    record = PowerRecord.of_logs(jobs, power, logs["ends"], caps, speeds, _figures(run), so_far)
    return replace(record, standby_j=_standby_j(run))


def _standby_j(run: Run) -> float:
    """Returns the energy of standby jobs, which only some runs have; of one that goes on as far as
    it was measured."""
    if "standby" not in run.file:
        return 0.0
    if run.complete:
        return float(run.read("standby/energy_j")[0])
    seen = run.log("tracking")
    return float((seen["standby_w"] * np.diff(seen["time_us"], prepend=0)).sum()) / SECOND


def _energies(run: Run) -> tuple[int, float, float, float]:
    """Returns the time of the last sample, and the energies of idle nodes, of sleeping ones and of
    jobs up to then; before the first sample they are those at time 0."""
    if not len(run.times):
        return 0, 0.0, 0.0, 0.0
    last = len(run.times) - 1, 0
    idle_j, sleep_j, jobs_j = (float(run.read(f"system/{name}", last))
                               for name in ("idle_j", "sleep_j", "jobs_j"))  # fmt: skip
    return int(run.times[-1]), idle_j, sleep_j, jobs_j
