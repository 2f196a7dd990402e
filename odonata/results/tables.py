"""The files of a run, opened: its tables, its logs, and any values of them.

It works just as well on a run that goes on, or that died: what all of its ranks have written is
there.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pdes.errors import Refused
from pdes.join import JOINED, Joined, is_joined, join, ranks_of
from pdes.stream import FORMAT

if TYPE_CHECKING:
    import xarray as xr


class Tables:
    """The files of one run. Times are in its `tick`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        self._joined = self._open()
        self.file = self._joined.file
        """The HDF5 file behind all of it; `read` also finds out what is damaged."""
        self.attributes: dict[str, Any] = {k: plain(v) for k, v in self.file.attrs.items()}
        if self.attributes.get("format") != FORMAT:
            raise Refused(f"{path}: metrics of format {self.attributes.get('format')}, this "
                          f"version reads {FORMAT}")  # fmt: skip
        self.tick = str(self.attributes.get("tick", "ps"))
        self.complete = bool(self.attributes["complete"])
        self.times = self.read(f"time_{self.tick}")
        """When samples were taken."""

    def _open(self) -> Joined:
        """Returns the joined file or, where there is none that is complete, a temporary one."""
        paths = ranks_of(self.path)
        if is_joined(self.path / JOINED, paths[0]):
            return Joined(self.path / JOINED)
        self._scratch = tempfile.TemporaryDirectory(prefix="odonata-")
        target = Path(self._scratch.name) / JOINED
        join(self.path, target)
        return Joined(target, follow=True)

    def close(self) -> None:
        self._joined.close()
        if self._scratch:
            self._scratch.cleanup()

    def read(self, name: str, key: Any = ()) -> Any:
        """Returns values of a dataset; refused where its file is damaged."""
        return self._joined.read(name, key)

    def log(self, name: str, reached: int) -> dict[str, Any]:
        """Returns the columns of a log that have a number per row; for a run that is not complete,
        those before the time that it has reached. Empty where there is no such log."""
        if name not in self.file:
            return {}
        times = self.read(f"{name}/time_{self.tick}")
        rows = len(times) if self.complete else int((times < reached).sum())
        columns = {key: self.read(f"{name}/{key}") for key in self.file[name]}
        return {key: values[:rows] for key, values in columns.items() if len(values) == len(times)}

    def texts(self, name: str) -> Any:
        """Returns a dataset of texts as an array of them."""
        return np.char.decode(self.read(name).astype("S"), "utf-8")

    def table(self, name: str, coordinates: dict[str, Any]) -> xr.Dataset:
        """Returns a table whose variables are read from disk when they are used."""
        if name not in self.file:
            why = {"inputs": "routers without a crossbar have no input queues"}.get(
                name, f"metrics.{name} = false")  # fmt: skip
            raise Refused(f"{self.path}: {name} were not recorded ({why})")
        from odonata.results.on_disk import table

        return table(self._joined, name, coordinates)


def plain(value: Any) -> Any:
    """Returns a value of numpy's as one of Python's."""
    return value.item() if isinstance(value, np.generic) else value
