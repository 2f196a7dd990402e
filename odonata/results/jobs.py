"""The jobs of an opened run, from its files: what they asked for, what became of them, and both as
a dataset for users."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Any

import numpy as np

from odonata.agents.metrics import SPENT
from odonata.jobs.board import BEGAN, DONE, JOB, OVER, QUEUED, RUNNING, STATUS
from odonata.jobs.schedule import STATES, Molds, Schedule
from odonata.results.alone import slowdowns
from odonata.results.job_network import FIGURES, facts
from odonata.traces.trace import Trace

if TYPE_CHECKING:
    import xarray as xr

    from odonata.results.run import Run

NAMED = ("user", "project", "application")


def schedule_of(run: Run) -> Schedule:
    """Returns the table of the jobs of a run."""
    return _by_board(run) if run.has("network") else _by_logs(run)


def _by_logs(run: Run) -> Schedule:
    starts, ends, machine = run.log("starts"), run.log("ends"), run.experiment.machine
    labels = molds = None
    if "molds" in run.file:
        log = run.log("molds")
        molds = Molds(*(log[name] for name in Molds._fields))
    if machine is not None:
        sizes = run.trace.nodes.copy()
        if molds is not None:
            sizes[molds.job] = molds.nodes
        count = int(sizes[starts["job"]].sum())
        labels = run.read("placements/labels", slice(count)).astype(np.int32)
    return Schedule.of_logs(
        run.trace, run.n_nodes, run.reached, (starts["time_us"], starts["job"]),
        (ends["time_us"], ends["job"], ends["how"]), machine, labels, molds,
    )  # fmt: skip


def _by_board(run: Run) -> Schedule:
    """Returns what became of the jobs of a run of packets, by the logs of starts and ends or, of an
    older run, by its samples."""
    jobs = run.network.jobs
    nodes = np.array([job.nodes for job in jobs])
    board = np.full((len(nodes), len(JOB)), -1, np.int64)
    labels = np.full(nodes.sum(), -1, np.int64)
    if "starts" in run.file:
        starts, ends = run.log("starts"), run.log("ends")
        job = starts["job"]
        board[job, BEGAN], board[ends["job"], OVER] = starts["start_ps"], ends["end_ps"]
        first = np.cumsum(nodes) - nodes
        places = [np.arange(first[n], first[n] + nodes[n]) for n in job.tolist()]
        if places:
            where = np.concatenate(places)
            labels[where] = run.read("starts/labels", slice(len(where)))
    elif len(run.times):
        last = len(run.times) - 1
        board[:, BEGAN] = run.read("jobs/start_ps", last)
        board[:, OVER] = run.read("jobs/end_ps", last)
        labels[:] = run.read("jobs/labels", last)
    board[:, STATUS] = np.where(board[:, BEGAN] >= 0, RUNNING, QUEUED)
    board[board[:, OVER] >= 0, STATUS] = DONE
    return Schedule.of_board(run.experiment.name, jobs, board, labels, run.machine, run.reached)


def trace_of(run: Run) -> Trace:
    """Returns the trace that a run without packets has kept."""
    columns: dict[str, Any] = {
        name: run.read(f"jobs/{name}")
        for name in ("number", "submit_us", "run_us", "nodes", "requested_us", *NAMED)
    }
    names: dict[str, Any] = {
        f"{name}s": tuple(text.decode() for text in run.read(f"{name}s/name").tolist())
        for name in NAMED
    }
    return Trace(
        run.attributes["trace"], **columns, **names,
        wait_us=run.read("jobs/recorded_wait_us"), machine_nodes=run.n_nodes,
        account=run.account, clock=run.clock,
    )  # fmt: skip


# -- as datasets


def of_packets(run: Run) -> xr.Dataset:
    """Returns every job by its number; energies that are not known are NaN. The nodes of each are
    in `job_records`. What was asked for is taken from the experiment, since older files have no
    column for all of it."""
    records = run.job_records
    start, end = (np.array([-1 if at is None else at for at in times], np.int64)
                  for times in ([it.start_ps for it in records], [it.end_ps for it in records])
                  )  # fmt: skip
    arrival, begun, over = run.read("jobs/arrival_ps"), start >= 0, end >= 0
    columns: dict[str, Any] = {name: run.tables.texts(f"jobs/{name}")
                               for name in ("name", "pattern")}  # fmt: skip
    columns |= {name: np.array([getattr(it, name) for it in records], str) for name in NAMED}
    requested = [-1 if it.requested_ps is None else it.requested_ps for it in records]
    columns |= {
        "nodes": run.read("jobs/nodes"), "requested_ps": np.array(requested, np.int64),
        "arrival_ps": arrival, "start_ps": start, "end_ps": end,
        "waiting_ps": np.where(begun, start - arrival, -1),
        "run_time_ps": np.where(over, end - start, -1),
    }  # fmt: skip
    if "energy_j" in run.file.get("ends", ()):
        known = [(nan, nan) if it.energy_j is None else (it.energy_j, it.received_bytes)
                 for it in records]  # fmt: skip
        energy_j, received = np.array(known, np.float64).T
        per_byte = energy_j / np.where(received > 0, received, nan)
        columns |= {"energy_j": energy_j, "received_bytes": received, "j_per_byte": per_byte}
    columns |= _network_columns(run)
    units = dict.fromkeys((name for name in columns if name.endswith("_ps")), "ps")
    units |= {"energy_j": "J", "received_bytes": "B", "j_per_byte": "J/B", "bytes": "B"}
    return _dataset(columns, units)


def _network_columns(run: Run) -> dict[str, Any]:
    """Returns what is known of the packets of jobs, and of their slowdowns."""
    found: dict[str, Any] = {
        "alone_ps": np.array(run.alone_ps or [-1] * len(run.schedule), np.int64),
        "slowdown": np.array(slowdowns(run.job_records, run.alone_ps), float),
    }
    if jobs := run.job_network:
        figures = [facts(job) for job in jobs]
        for name in FIGURES:
            counts = name in ("packets", "bytes", "non_minimal_packets")
            kind = np.int64 if counts else np.float64
            found[name] = np.array([it[name] for it in figures], kind)
        found["stall_to_flit"] = np.array(run.job_stalls, float)
    return found


def stages(run: Run) -> xr.Dataset:
    """Returns every stage of every job."""
    from xarray import Dataset

    columns: dict[str, Any] = {"job": run.read("stages/job")}
    columns |= {name: run.tables.texts(f"stages/{name}") for name in ("name", "pattern")}
    known = bool(run.job_network)
    columns |= {name: run.read(f"stages/{name}") for name in SPENT if known}
    units = {name: {"unit": "ps", "about": words} for name, (_, words) in SPENT.items()}
    return Dataset({name: ("stage", values, units.get(name, {}))
                    for name, values in columns.items()})  # fmt: skip


def of_trace(run: Run) -> xr.Dataset:
    """Returns every job of a run without packets, in order of submission."""
    trace, schedule = run.trace, run.schedule
    begun, over = schedule.start_us >= 0, schedule.end_us >= 0
    columns: dict[str, Any] = {
        "number": trace.number, "nodes": trace.nodes, "submit_us": trace.submit_us,
        "run_us": trace.run_us, "requested_us": trace.requested_us,
        "start_us": schedule.start_us, "end_us": schedule.end_us,
        "wait_us": np.where(begun, schedule.start_us - trace.submit_us, -1),
        "turnaround_us": np.where(over, schedule.end_us - trace.submit_us, -1),
        "state": np.array(STATES)[schedule.state],
        **{name: np.array(getattr(trace, f"{name}s"))[getattr(trace, name)] for name in NAMED},
    }  # fmt: skip
    if run.power is not None:
        columns["energy_j"] = run.power.energy_j
        if run.power.cap_stretch is not None:
            columns["cap_stretch"] = run.power.cap_stretch
    if (molds := schedule.molds) is not None:
        columns["held_nodes"] = schedule.job_nodes
        cores, cap_w = np.zeros(len(trace), np.int64), np.full(len(trace), nan)
        cores[molds.job], cap_w[molds.job] = molds.cores, molds.cap_w
        columns |= {"cores": cores, "cap_w": cap_w}
    if "types" in run.file:
        from odonata.results.market_files import types_of

        types = types_of(run)
        assert types is not None
        columns["type"] = np.array(types.names)[types.of_job]
    if run.market is not None and run.market.quality is not None:
        columns["q"] = run.market.quality
    units = {"_us": "us", "y_j": "J", "p_w": "W"}
    return _dataset(columns, {name: units[name[-3:]] for name in columns if name[-3:] in units})


def _dataset(columns: dict[str, Any], units: dict[str, str]) -> xr.Dataset:
    from xarray import Dataset

    found = {name: ("job", values, {"unit": units[name]} if name in units else {})
             for name, values in columns.items()}  # fmt: skip
    return Dataset(found, {"job": np.arange(len(next(iter(columns.values()))))})
