"""Tables of an opened run as xarray datasets, whose variables are read when they are used.

It takes half a second to import xarray, and more to import pandas with it: so this module is
imported where a table is asked for, and a run that writes its own results does without.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import xarray as xr
from xarray.backends import BackendArray
from xarray.core import indexing

from pdes.join import Joined


def table(joined: Joined, name: str, coordinates: dict[str, Any]) -> xr.Dataset:
    """Returns a group of a joined file as a dataset."""
    variables = {}
    for key, dataset in joined.file[name].items():
        dims = [label.label for label in dataset.dims]
        attrs = {k: dataset.attrs[k] for k in ("unit", "about", "kind")}
        lazy = indexing.LazilyIndexedArray(_OnDisk(joined, f"{name}/{key}"))
        variables[key] = xr.Variable(dims, lazy, attrs)
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
