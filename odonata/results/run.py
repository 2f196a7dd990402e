"""The results of a run: `odonata.open("out")` gives its metrics as xarray objects.

Each table is a dataset whose variables are read from disk when they are used. It works just as well
on a run that goes on, or that died: what all of its ranks have written is there, and `complete`
says which it is.
"""

from __future__ import annotations

import json
import tempfile
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import xarray as xr
from xarray.backends import BackendArray
from xarray.core import indexing

from odonata.agents.layout import BIN_BITS, BIN_ONE, BINS
from odonata.agents.network import Network
from odonata.experiment.experiment import Experiment
from odonata.experiment.reading import parse
from odonata.jobs.board import BEGAN, BOARD_WORDS, DONE, OVER, QUEUED, RUNNING, STATUS, Words
from odonata.jobs.record import JobRecord, records
from pdes.errors import Refused
from pdes.join import JOINED, Joined, is_joined, join, ranks_of, status_of
from pdes.stream import FORMAT
from topology import Dragonfly

STATES = ("running", "stopped", "complete", "failed", "died")
"""The names of states, by the numbers of `pdes.stream`."""
INCOMPLETE = {
    "running": "it was still running",
    "stopped": "it was stopped, at a checkpoint",
    "complete": "it has been completed since",
    "failed": "it ended in an error",
    "died": "it died",
}
"""What is printed about a run that is not complete."""


class Run:
    """An opened run. Close it, or use it in a `with`, where files must not stay open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        self._joined = self._open()
        self.file = self._joined.file
        """The HDF5 file behind all of it; `read` also finds out what is damaged."""
        self.attributes: dict[str, Any] = {k: _plain(v) for k, v in self.file.attrs.items()}
        """Its provenance: versions, host, when it was started, ..."""
        if self.attributes.get("format") != FORMAT:
            raise Refused(f"{path}: metrics of format {self.attributes.get('format')}, this "
                          f"version reads {FORMAT}")  # fmt: skip
        self.experiment: Experiment = parse(self.attributes["experiment"], str(path), stand_in=True)
        self.complete: bool = bool(self.attributes["complete"])
        """Whether it came to its end; if not, it was stopped, died, or goes on."""
        times = self.read("time_ps")
        self.time = xr.DataArray(times, dims="time", attrs={"unit": "ps"})
        """When samples were taken, in picoseconds; each describes the interval that ends then."""
        before = np.concatenate(([0], times[:-1]))
        self.interval = xr.DataArray(times - before, {"time": times}, "time", attrs={"unit": "ps"})
        """The length of these intervals, in picoseconds."""

    def _open(self) -> Joined:
        """Returns the joined file or, where there is none that is complete, a temporary one."""
        paths = ranks_of(self.path)
        if is_joined(self.path / JOINED, paths[0]):
            return Joined(self.path / JOINED)
        self._scratch = tempfile.TemporaryDirectory(prefix="odonata-")
        target = Path(self._scratch.name) / JOINED
        join(self.path, target)
        return Joined(target, follow=True)

    def read(self, name: str, key: Any = ()) -> Any:
        """Returns values of a dataset; refused where its file is damaged."""
        return self._joined.read(name, key)

    def close(self) -> None:
        self._joined.close()
        if self._scratch:
            self._scratch.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "complete" if self.complete else f"incomplete, {self.reached_ps} ps"
        if self.missing:
            state += f", the plug-in of {', '.join(self.experiment.missing)} is missing"
        return f"<run {self.experiment.name!r} in {self.path}: {state}, {len(self.time)} samples>"

    # -- what was run

    @property
    def missing(self) -> str:
        """A sentence that names the policies and patterns of this run whose plug-ins are gone;
        empty if there are none. Opening a run never loads plug-ins, for nothing of them is needed;
        it is enough that they are there."""
        files, policies = self.experiment.plugins, ", ".join(self.experiment.missing)
        gone = [file for file in files if not Path(file).exists()]
        if not policies or (files and not gone):
            return ""
        several = len(gone) > 1
        which = f"plug-in{'s' * several} ({', '.join(gone)})" if gone else "plug-in"
        return (f"the {which} of {policies} {'are' if several else 'is'} missing; all that was "
                "measured is here")  # fmt: skip

    @property
    def network(self) -> Network:
        return self.experiment.model()

    @property
    def machine(self) -> Dragonfly:
        return self.network.machine

    @property
    def reached_ps(self) -> int:
        """Returns the simulated time that it has reached, in ps. In a complete run nothing may have
        been left to measure before its end; then samples end there. A run without an end has come
        as far as its samples."""
        end: int | None = self.experiment.run.end
        if self.complete and end is not None:
            return end
        return int(self.time[-1]) if len(self.time) else 0

    @property
    def state(self) -> str:
        """Returns complete, stopped (at a checkpoint), failed, died, or running: as far as is
        known."""
        return STATES[status_of(self.path)[0]]

    @property
    def digest(self) -> str | None:
        """Returns the digest of a complete run, or None."""
        return self.attributes.get("digest")

    @property
    def packages(self) -> dict[str, str]:
        """Returns the versions with which it ran."""
        return json.loads(self.attributes["packages"])  # type: ignore[no-any-return]

    # -- what was measured

    @cached_property
    def ports(self) -> xr.Dataset:
        """Returns the counters of every port of every router, summed over its virtual channels."""
        return self._table("ports", self._of_ports())

    @cached_property
    def channels(self) -> xr.Dataset:
        """Returns the same by virtual channel, where that was asked for (`metrics.channels`)."""
        return self._table("channels", self._of_ports())

    @cached_property
    def nodes(self) -> xr.Dataset:
        m = self.machine
        router = np.arange(m.n_nodes) // m.nodes
        return self._table("nodes", {
            "node": ("node", np.arange(m.n_nodes)),
            "router": ("node", router),
            "group": ("node", router // m.routers),
        })  # fmt: skip

    @cached_property
    def groups(self) -> xr.Dataset:
        edges = ((np.arange(BINS) + BIN_ONE) << BIN_BITS).view(np.float64)
        groups = np.arange(self.machine.groups)
        return self._table("groups", {
            "group": ("group", groups),
            "source_group": ("source_group", groups),
            "from_ps": ("bin", edges, {"unit": "ps", "about": "where a bin of latencies begins"}),
        })  # fmt: skip

    @cached_property
    def jobs(self) -> xr.Dataset:
        """Returns every job, as far as is known; times that are not are -1. The nodes of each are
        in `job_records`. What was asked for is taken from the experiment, since older files have no
        column for all of it."""
        board, _ = self._board
        start, end = board[:, BEGAN], board[:, OVER]
        text = {name: np.char.decode(self.read(f"jobs/{name}").astype("S"), "utf-8")
                for name in ("name", "pattern")}  # fmt: skip
        jobs = self.network.jobs
        text |= {name: np.array([getattr(job, name) for job in jobs], str)
                 for name in ("user", "project", "application")}  # fmt: skip
        requested = [-1 if job.requested_ps is None else job.requested_ps for job in jobs]
        arrival = self.read("jobs/arrival_ps")
        begun, over = start >= 0, end >= 0
        columns = {
            **text, "nodes": self.read("jobs/nodes"),
            "requested_ps": np.array(requested, np.int64), "arrival_ps": arrival,
            "start_ps": start, "end_ps": end, "waiting_ps": np.where(begun, start - arrival, -1),
            "communication_ps": np.where(over, end - start, -1),
        }  # fmt: skip
        found = {name: ("job", values, {"unit": "ps"} if name.endswith("_ps") else {})
                 for name, values in columns.items()}  # fmt: skip
        return xr.Dataset(found, {"job": np.arange(len(start))})

    @cached_property
    def job_records(self) -> list[JobRecord]:
        """Returns a record per job, with the labels of its nodes."""
        return records(self.network.jobs, *self._board)

    @cached_property
    def _board(self) -> tuple[Words, Words]:
        """Returns the scheduler's board (`odonata.jobs.board`), from the logs of starts and ends
        or, for an older run, from samples; -1 for what is not known."""
        if not self.experiment.jobs:
            raise Refused(f"{self.path}: ran no jobs ([[jobs]])")
        nodes = np.array([job.nodes for job in self.network.jobs])
        board = np.full((len(nodes), BOARD_WORDS), -1, np.int64)
        labels = np.full(nodes.sum(), -1, np.int64)
        if "starts" in self.file:
            starts, ends = self._log("starts"), self._log("ends")
            job = starts["job"]
            board[job, BEGAN], board[ends["job"], OVER] = starts["start_ps"], ends["end_ps"]
            first = np.cumsum(nodes) - nodes
            places = [np.arange(first[n], first[n] + nodes[n]) for n in job.tolist()]
            if places:
                where = np.concatenate(places)
                labels[where] = self.read("starts/labels", slice(len(where)))
        elif len(self.time):
            last = len(self.time) - 1
            board[:, BEGAN] = self.read("jobs/start_ps", last)
            board[:, OVER] = self.read("jobs/end_ps", last)
            labels[:] = self.read("jobs/labels", last)
        board[:, STATUS] = np.where(board[:, BEGAN] >= 0, RUNNING, QUEUED)
        board[board[:, OVER] >= 0, STATUS] = DONE
        return board, labels

    def _log(self, name: str) -> dict[str, Any]:
        """Returns the columns of a log that have a number per row; for a run that is not complete,
        as of its last sample."""
        times = self.read(f"{name}/time_ps")
        rows = len(times) if self.complete else int((times < self.reached_ps).sum())
        columns = {key: self.read(f"{name}/{key}") for key in self.file[name]}
        return {key: values[:rows] for key, values in columns.items() if len(values) == len(times)}

    @cached_property
    def engine(self) -> xr.Dataset:
        """Returns the engine's own counters by rank, which are different on every machine."""
        return self._table("engine", {})

    def _of_ports(self) -> dict[str, Any]:
        m = self.machine
        router, port = np.arange(m.n_routers), np.arange(m.radix)
        kind = np.where(port < m.nodes, "node", np.where(port < m.nodes + m.routers - 1,
                                                         "local", "global"))  # fmt: skip
        ends = np.full((m.n_routers, m.radix), -1)
        ends[:, m.nodes :] = m.ends()
        return {
            "router": ("router", router),
            "port": ("port", port),
            "group": ("router", router // m.routers),
            "kind": ("port", kind),
            "to_router": (("router", "port"), np.where(ends >= 0, ends // m.radix, -1)),
            "to_port": (("router", "port"), np.where(ends >= 0, ends % m.radix, -1)),
            "lit": (("router", "port"), (ends >= 0) | (port < m.nodes)),
        }

    def _table(self, name: str, coordinates: dict[str, Any]) -> xr.Dataset:
        if name not in self.file:
            raise Refused(f"{self.path}: {name} were not recorded (metrics.{name} = false)")
        variables = {}
        for key, dataset in self.file[name].items():
            dims = [label.label for label in dataset.dims]
            attrs = {k: _plain(dataset.attrs[k]) for k in ("unit", "about", "kind")}
            lazy = indexing.LazilyIndexedArray(_OnDisk(self._joined, f"{name}/{key}"))
            variables[key] = xr.Variable(dims, lazy, attrs)
        coordinates |= {"time": self.time, "interval_ps": ("time", self.interval.data)}
        return xr.Dataset(variables, coordinates)


class _OnDisk(BackendArray):  # type: ignore[misc]
    """A dataset of an open file, read piece by piece. A copy reads the same file; in another
    process it is opened there."""

    def __init__(self, joined: Joined, name: str) -> None:
        self._joined, self._name = joined, name
        self.shape, self.dtype = joined.file[name].shape, joined.file[name].dtype

    def __getitem__(self, key: Any) -> Any:
        basic = indexing.IndexingSupport.BASIC
        return indexing.explicit_indexing_adapter(key, self.shape, basic, self._read)

    def _read(self, key: Any) -> Any:
        return self._joined.read(self._name, key)

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __reduce__(self) -> Any:
        return _again, (self._joined.path, self._name)


def _again(path: Path, name: str) -> _OnDisk:
    return _OnDisk(Joined(path), name)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def open(path: str | Path) -> Run:
    """Returns the run in a directory; refused where there is none."""
    path = Path(path)
    if not path.is_dir():
        raise Refused(f"{path}: there is no such directory")
    return Run(path)
