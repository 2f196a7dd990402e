"""One file that shows what every rank's has, in the order of the model's units.

`join` copies nothing: its datasets are virtual, and name the ranks' files, which lie beside it (or
wherever they were when it was made elsewhere). It works as well on what a run has written so far,
or had when it died: what all ranks have is there.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pdes.errors import Refused
from pdes.hdf5 import opened, repack, whole
from pdes.log import is_log, merge
from pdes.stream import COMPLETE, DIED, FAILED, NAME, RUNNING, times_of

JOINED = "run.h5"
LOCK = ".lock"
"""Held by whoever writes to a directory."""
OF_A_RANK = ("rank", "first_unit", "last_unit")
"""Attributes that are not the run's."""


def ranks_of(directory: Path) -> list[Path]:
    """The files of a run, by rank; refused where there is none, or where one is missing."""
    first = directory / NAME.format(0)
    if not first.exists():
        raise Refused(f"{directory}: holds no run ({first.name} is not there)")
    with opened(first) as file:
        ranks = int(file.attrs["ranks"])
    paths = [directory / NAME.format(rank) for rank in range(ranks)]
    for path in paths:
        if not path.exists():
            raise Refused(f"{path}: is missing; the run had {ranks} ranks")
        opened(path).close()
    return paths


def status_of(directory: Path) -> tuple[int, float]:
    """Of the run there: its state (`pdes.stream`: failed if any rank has, else the least that any
    is in; or DIED), and how many seconds ago a rank last wrote."""
    paths = ranks_of(directory)
    states = []
    for path in paths:
        with opened(path) as file:
            states.append(int(file["status"][()]))
    state = FAILED if FAILED in states else min(states)
    if state == RUNNING and _let_go(directory):
        state = DIED
    return state, max(0.0, time.time() - max(path.stat().st_mtime for path in paths))


def claimed(directory: Path) -> bool:
    """Is somebody about to write there, or at it?"""
    return (directory / LOCK).exists() and not _let_go(directory)


def _let_go(directory: Path) -> bool:
    """Does nobody write there any more, as far as can be told?"""
    try:
        handle = os.open(directory / LOCK, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(handle)


def mend(directory: Path) -> list[Path]:
    """Close the files that a run which died has left open, by copying what is in them (HDF5 has no
    call for it), so that anything can read them. Returns those that had to be. Nobody may be
    writing to them."""
    mended = []
    for path in ranks_of(directory):
        found = whole(path)
        if found and found.written_to:
            repack(path)
            mended.append(path)
    return mended


def join(directory: Path, target: Path, attributes: Mapping[str, Any] | None = None) -> None:
    """Describe the run in `directory` by a file `target`; whatever was there is replaced. It has
    the attributes that the ranks' files share, and those given."""
    import h5py

    partial = target.with_name(f".{target.name}.{os.getpid()}")
    files = [opened(path) for path in ranks_of(directory)]
    files.sort(key=lambda file: int(file.attrs["first_unit"]))
    try:
        length = min(len(times_of(file)) for file in files)
        times, clock = times_of(files[0])[:length], times_of(files[0]).name.removeprefix("/")
        if any((times_of(file)[:length] != times).any() for file in files):
            raise Refused(f"{directory}: its files are of different runs")
        with h5py.File(partial, "w", libver="latest") as joined:
            shared = {k: v for k, v in files[0].attrs.items() if k not in OF_A_RANK}
            joined.attrs.update(shared | dict(attributes or {}))
            joined.attrs["complete"] = all(file["status"][()] == COMPLETE for file in files)
            made = joined.create_dataset(clock, data=times)
            _describe(made, files[0][clock])

            def add(name: str, one: Any) -> None:
                if is_log(one):
                    merge(files, name, joined)
                if not isinstance(one, h5py.Dataset) or name == clock or is_log(one.parent):
                    return
                if one.ndim == 1:
                    column = np.concatenate([file[name][:] for file in files])
                    _describe(joined.create_dataset(name, data=column, dtype=one.dtype), one)
                elif one.ndim > 1:
                    parts = [file[name] for file in files]
                    layout = _layout(parts, length, target.parent.resolve())
                    virtual = joined.create_virtual_dataset(name, layout, fillvalue=0)
                    _describe(virtual, one)

            files[0].visititems(add)
        partial.replace(target)
    except RuntimeError as error:  # HDF5's, where the disk is full
        raise OSError(errno.EIO, "cannot be written", str(target)) from error
    finally:
        partial.unlink(missing_ok=True)
        for file in files:
            file.close()


def _layout(parts: list[Any], length: int, home: Path) -> Any:
    import h5py

    columns = np.cumsum([0, *(part.shape[1] for part in parts)])
    whole = h5py.VirtualLayout((length, int(columns[-1]), *parts[0].shape[2:]), parts[0].dtype)
    for part, first, last in zip(parts, columns[:-1], columns[1:], strict=True):
        path = Path(part.file.filename).resolve()
        name = path.name if path.parent == home else str(path)
        name = name.replace("%", "%%")  # or HDF5 takes it for a number's place
        source = h5py.VirtualSource(name, part.name, (length, *part.shape[1:]), part.dtype)
        if first < last:
            whole[:, first:last] = source
    return whole


def _describe(made: Any, like: Any) -> None:
    for name in ("unit", "about", "kind"):
        if name in like.attrs:
            made.attrs[name] = like.attrs[name]
    for axis in range(like.ndim):
        made.dims[axis].label = like.dims[axis].label
