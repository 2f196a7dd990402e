"""An opened run, whatever it simulated: its files, its provenance and its tables.

Each table is a dataset whose variables are read from disk when they are used. It works just as well
on a run that goes on, or that died: what all of its ranks have written is there, and `complete`
says which it is.
"""

from __future__ import annotations

import json
import tempfile
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from odonata.experiment.experiment import Experiment, JobExperiment
from odonata.experiment.reading import parse
from pdes.clock import TICKS
from pdes.errors import Refused
from pdes.join import JOINED, Joined, is_joined, join, ranks_of, status_of
from pdes.stream import FORMAT

if TYPE_CHECKING:
    import xarray as xr

STATES = ("running", "stopped", "complete", "failed", "died", "deadlocked")
"""The names of states, by the numbers of `pdes.stream`."""
INCOMPLETE = {
    "running": "it was still running",
    "stopped": "it was stopped, at a checkpoint",
    "complete": "it has been completed since",
    "failed": "it ended in an error",
    "died": "it died",
    "deadlocked": "it was deadlocked: packets waited for each other for ever",
}
"""What is printed about a run that is not complete."""


class Opened:
    """An opened run. Close it, or use it in a `with`, where files must not stay open."""

    experiment: Experiment | JobExperiment

    def __init__(self, path: Path) -> None:
        self.path = path
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        self._joined = self._open()
        self.file = self._joined.file
        """The HDF5 file behind all of it; `read` also finds out what is damaged."""
        self.attributes: dict[str, Any] = {k: plain(v) for k, v in self.file.attrs.items()}
        """Its provenance: versions, host, when it was started, ..."""
        if self.attributes.get("format") != FORMAT:
            raise Refused(f"{path}: metrics of format {self.attributes.get('format')}, this "
                          f"version reads {FORMAT}")  # fmt: skip
        self.experiment = parse(self.attributes["experiment"], str(path), stand_in=True)
        self.tick = str(self.attributes.get("tick", "ps"))
        """The unit of its times."""
        self.complete: bool = bool(self.attributes["complete"])
        """Whether it came to its end; if not, it was stopped, died, or goes on."""
        self.times = self.read(f"time_{self.tick}")
        """When samples were taken, in ticks, as numpy has it."""

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
        return f"<run {self.experiment.name!r} in {self.path}: {state}, {len(self.times)} samples>"

    # -- what was run

    @property
    def reached(self) -> int:
        """Returns the simulated time that it has reached, in ticks. In a complete run nothing may
        have been left to measure before its end; then samples end there. A run without an end has
        come as far as its samples."""
        end: int | None = self.experiment.run.end
        if self.complete and end is not None:
            return end // TICKS[self.tick]
        return int(self.times[-1]) if len(self.times) else 0

    @property
    def reached_ps(self) -> int:
        """Returns the same in ps."""
        return self.reached * TICKS[self.tick]

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
    def state(self) -> str:
        """Returns complete, stopped (at a checkpoint), failed, died, or running: as far as is
        known."""
        return STATES[status_of(self.path)[0]]

    @property
    def digest(self) -> str | None:
        """Returns the digest of a complete run, or None."""
        return self.attributes.get("digest") if self.complete else None

    @property
    def packages(self) -> dict[str, str]:
        """Returns the versions with which it ran."""
        return json.loads(self.attributes["packages"])  # type: ignore[no-any-return]

    # -- what was measured

    @cached_property
    def time(self) -> xr.DataArray:
        """When samples were taken, in ticks; each describes the interval that ends then."""
        from xarray import DataArray

        return DataArray(self.times, dims="time", attrs={"unit": self.tick})

    @cached_property
    def interval(self) -> xr.DataArray:
        """The length of these intervals, in ticks."""
        from xarray import DataArray

        lengths = np.diff(self.times, prepend=0)
        return DataArray(lengths, {"time": self.times}, "time", attrs={"unit": self.tick})

    def _log(self, name: str) -> dict[str, Any]:
        """Returns the columns of a log that have a number per row; for a run that is not complete,
        as of its last sample."""
        times = self.read(f"{name}/time_{self.tick}")
        rows = len(times) if self.complete else int((times < self.reached).sum())
        columns = {key: self.read(f"{name}/{key}") for key in self.file[name]}
        return {key: values[:rows] for key, values in columns.items() if len(values) == len(times)}

    @cached_property
    def engine(self) -> xr.Dataset:
        """Returns the engine's own counters by rank, which are different on every machine."""
        return self._table("engine", {})

    def _table(self, name: str, coordinates: dict[str, Any]) -> xr.Dataset:
        if name not in self.file:
            why = f"metrics.{name} = false"
            if name == "inputs":
                why = "routers without a crossbar have no input queues"
            raise Refused(f"{self.path}: {name} were not recorded ({why})")
        from odonata.results.on_disk import table

        coordinates |= {"time": self.time, f"interval_{self.tick}": ("time", self.interval.data)}
        return table(self._joined, name, coordinates)


def plain(value: Any) -> Any:
    """Returns a value of numpy's as one of Python's."""
    return value.item() if isinstance(value, np.generic) else value
