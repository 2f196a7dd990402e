"""One file that shows the content of every rank's file, in the order of the model's units.

`join` copies nothing: its datasets are virtual, and name the ranks' files, which lie beside it (or
wherever they were when it was made elsewhere). It works as well on what a run has written so far,
or had when it died: what all ranks have is there.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pdes import turnover
from pdes.errors import Refused
from pdes.hdf5 import SEAL, Source, check, is_written_to, open_file, read, reading, repack, seal
from pdes.log import is_log, logged, merge
from pdes.stream import COMPLETE, DIED, DIGEST, FAILED, NAME, RUNNING, TOTAL, times_of

JOINED = "run.h5"
LOCK = ".lock"
"""The lock of a directory, held by the process that writes to it."""
OF_A_RANK = ("rank", "first_unit", "last_unit", SEAL)
"""Attributes that do not describe the run."""
REJOIN = "remove it, and it is made anew from the ranks' files"
ABOUT = ("unit", "about", "kind")
"""Attributes of a dataset."""


def ranks_of(directory: Path) -> list[Path]:
    """Returns the files of a run, by rank; refused where there is none, or where one is missing."""
    first = directory / NAME.format(0)
    if not first.exists():
        raise Refused(f"{directory}: holds no run ({first.name} is not there){_below(directory)}")
    announced = turnover.announced(directory)
    ranks = announced or read(first, lambda file: int(file.attrs["ranks"]))
    paths = [directory / NAME.format(rank) for rank in range(ranks)]
    if announced:
        paths = [turnover.current(path) for path in paths]
    for path in paths:
        if not path.exists():
            raise Refused(f"{path}: is missing; the run had {ranks} ranks")
    for rank, path in enumerate(paths):
        found = read(path, lambda file: (int(file.attrs["rank"]), int(file.attrs["ranks"])))
        if found != (rank, ranks):
            raise Refused(f"{path}: is the file of rank {found[0]} of {found[1]}; the run had "
                          f"{ranks} ranks")  # fmt: skip
    return paths


def _below(directory: Path) -> str:
    """Returns which directories below one have runs, for the sentence that it has none itself."""
    found = sorted(path.parent for path in directory.glob(f"*/{NAME.format(0)}"))
    if not found:
        return ""
    if not found[1:]:
        return f"; there is a run below it: name {found[0]}"
    return f"; there are {len(found):,} runs below it: name one, {found[0]} to {found[-1]}"


def status_of(directory: Path) -> tuple[int, float]:
    """Returns the state of the run there (`pdes.stream`: failed if any rank has, else the least
    that any is in; or DIED), and how many seconds ago a rank last wrote."""
    paths = ranks_of(directory)
    states = [read(path, lambda file: int(file["status"][()])) for path in paths]
    state = FAILED if FAILED in states else min(states)
    if state == RUNNING and _let_go(directory):
        state = DIED
    return state, max(0.0, time.time() - max(path.stat().st_mtime for path in paths))


def claimed(directory: Path) -> bool:
    """Tells whether a process is about to write there, or writes."""
    return (directory / LOCK).exists() and not _let_go(directory)


def _let_go(directory: Path) -> bool:
    """Tells whether no process writes there any more, as far as is known."""
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
        read(path, check)
        if is_written_to(path):
            with reading(path):
                repack(path)
            mended.append(path)
    return mended


class Described(NamedTuple):
    """Returns what a dataset is, without its values."""

    shape: tuple[int, ...]
    dtype: Any
    labels: tuple[str, ...]
    attributes: dict[str, Any]


class Reached(NamedTuple):
    """How far a rank's file has come: its state, the times of its samples, and the time before
    which no row of its logs is missing. Whatever is opened later has come as far: a sample, or a
    row, is written before its time, and the state last."""

    status: int
    times: Any
    logged: int


def _reached(file: Any) -> Reached:
    return Reached(int(file["status"][()]), times_of(file)[:], logged(file))


def join(directory: Path, target: Path, attributes: Mapping[str, Any] | None = None) -> None:
    """Describe the run in `directory` by a file `target`; whatever was there is replaced. It has
    the attributes that the ranks' files share, those given, and the digest of a run that is
    over."""
    import h5py

    partial = target.with_name(f".{target.name}.{os.getpid()}")
    with ExitStack() as stack:
        paths = ranks_of(directory)
        reached = [read(path, _reached) for path in paths]  # first: files may be written to
        complete = all(it.status == COMPLETE for it in reached)
        times = min((it.times for it in reached), key=len)
        files = [stack.enter_context(Source(path)) for path in paths]
        for file, before in zip(files, reached, strict=True):
            now = file.tried(_reached)
            if now.logged < before.logged or len(now.times) < len(before.times):
                raise Refused(f"{file.path}: the run was begun again meanwhile; try again")
            file.check()
        files.sort(key=lambda file: int(file.tried(lambda it: it.attrs["first_unit"])))
        name_of_time = files[0].tried(lambda it: times_of(it).name.removeprefix("/"))
        texts = {file.tried(lambda it: it.attrs.get("experiment")) for file in files}
        if len(texts) > 1 or any((it.times[: len(times)] != times).any() for it in reached):
            raise Refused(f"{directory}: its files are of different runs")
        shared = files[0].tried(lambda it: {**it.attrs, **_digest(it)})
        described = [file.tried(_datasets) for file in files]
        logs = files[0].tried(_logs)
        stack.callback(partial.unlink, missing_ok=True)
        try:
            with h5py.File(partial, "w", libver="latest") as joined:
                shared = {k: v for k, v in shared.items() if k not in OF_A_RANK}
                joined.attrs.update(shared | dict(attributes or {}))
                joined.attrs["complete"] = complete
                for name, one in described[0].items():
                    if name == name_of_time:
                        made = joined.create_dataset(name, data=times)
                    elif one.attributes.get("kind") == TOTAL:
                        total = np.sum([file.read(name) for file in files], axis=0)
                        made = joined.create_dataset(
                            name, data=total.astype(one.dtype), compression="gzip", shuffle=True
                        )
                    elif len(one.shape) == 1:
                        column = np.concatenate([file.read(name) for file in files])
                        made = joined.create_dataset(name, data=column, dtype=one.dtype)
                    elif len(one.shape) > 1:
                        parts = [(file.path, each[name].shape)
                                 for file, each in zip(files, described, strict=True)]  # fmt: skip
                        home = target.parent.resolve()
                        layout = _layout(name, one.dtype, parts, len(times), home)
                        made = joined.create_virtual_dataset(name, layout, fillvalue=0)
                    else:
                        continue
                    made.attrs.update(one.attributes)
                    for axis, label in enumerate(one.labels):
                        made.dims[axis].label = label
                for log in logs:
                    merge(files, log, joined, min(it.logged for it in reached))
                seal(joined)
            partial.replace(target)
        except RuntimeError as error:  # HDF5's, where the disk is full
            raise OSError(errno.EIO, "cannot be written", str(target)) from error


def extend(target: Path, write: Callable[[Any], None]) -> None:
    """Have `write` add to a joined file, which is replaced when that is done."""
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        shutil.copyfile(target, partial)
        with reading(target, REJOIN), open_file(partial, "r+", libver="latest") as file:
            write(file)
            seal(file)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _digest(file: Any) -> dict[str, str]:
    """Returns the digest as an attribute; files of earlier versions have none."""
    digest = file[DIGEST][()].decode() if DIGEST in file else ""
    return {DIGEST: digest} if digest else {}


def _datasets(file: Any) -> dict[str, Described]:
    import h5py

    found = {}

    def note(name: str, thing: Any) -> None:
        if isinstance(thing, h5py.Dataset) and not is_log(thing.parent):
            labels = tuple(thing.dims[axis].label for axis in range(thing.ndim))
            kept = {key: thing.attrs[key] for key in ABOUT if key in thing.attrs}
            found[name] = Described(thing.shape, thing.dtype, labels, kept)

    file.visititems(note)
    return found


def _logs(file: Any) -> list[str]:
    names: list[str] = []
    file.visititems(lambda name, thing: names.append(name) if is_log(thing) else None)
    return names


def _layout(
    name: str, dtype: Any, parts: list[tuple[Path, tuple[int, ...]]], length: int, home: Path
) -> Any:
    """Returns parts beside each other, the first samples of each."""
    import h5py

    columns = np.cumsum([0, *(shape[1] for _, shape in parts)])
    rest = parts[0][1][2:]
    layout = h5py.VirtualLayout((length, int(columns[-1]), *rest), dtype)
    for (path, shape), first, last in zip(parts, columns[:-1], columns[1:], strict=True):
        path = path.resolve()
        place = path.name if path.parent == home else str(path)
        place = place.replace("%", "%%")  # or HDF5 takes it for a number's place
        source = h5py.VirtualSource(place, name, (length, *shape[1:]), dtype)
        if first < last:
            layout[:, first:last] = source
    return layout


def is_joined(target: Path, first: Path) -> bool:
    """Returns whether `target` describes, all of it, the complete run whose first file this is."""
    if not target.exists():
        return False
    complete, *ours = read(target, lambda it: (it.attrs.get("complete"), *_of_run(it)), REJOIN)
    return bool(complete) and ours == [*read(first, _of_run)]


def _of_run(file: Any) -> tuple[Any, int]:
    return file.attrs.get("id"), len(times_of(file))


class Joined:
    """A joined file, to be read. HDF5 gives zeros for the part of a virtual dataset whose file it
    cannot open; so these are read from the ranks' files here, and what is damaged is refused."""

    def __init__(self, path: Path, follow: bool = False) -> None:
        self.path = path
        read(path, check, REJOIN)
        self.file = open_file(path, "r", swmr=follow)
        """The file as HDF5 has it; if `follow`, the files behind it may be written to."""
        self._sources: dict[Path, Source] = {}
        self._parts: dict[str, list[tuple[Source, slice]]] = {}

    def read(self, name: str, key: Any = ()) -> Any:
        """Returns values of a dataset, by whole numbers and slices that go forward."""
        with reading(self.path, REJOIN):
            if name not in self.file or isinstance(self.file[name], Mapping):
                inside = [f"{name}/{each}" for each in self.file.get(name, ())]
                raise Refused(f"{self.path}: {name} is no dataset; there are "
                              f"{', '.join(inside or self.file)}")  # fmt: skip
            dataset = self.file[name]
            if not dataset.is_virtual:
                return dataset[key]
            parts = self._parts_of(name, dataset) if dataset.size else []
            shape = dataset.shape
        return _gathered(name, parts, _spelled_out(key, shape), dataset.dtype)

    def _parts_of(self, name: str, dataset: Any) -> list[tuple[Source, slice]]:
        if name not in self._parts:
            found = []
            for part in dataset.virtual_sources():
                path = self.path.parent / part.file_name.replace("%%", "%")
                if path not in self._sources:
                    self._sources[path] = Source(path)
                (_, first, *_), (_, last, *_) = part.vspace.get_select_bounds()
                found.append((self._sources[path], slice(first, last + 1)))
            self._parts[name] = sorted(found, key=lambda part: part[1].start)
        return self._parts[name]

    def close(self) -> None:
        for source in self._sources.values():
            source.close()
        self.file.close()


def _spelled_out(key: Any, shape: tuple[int, ...]) -> list[int | range]:
    """Returns the index, or the indices, along every axis."""
    keys = key if isinstance(key, tuple) else (key,)
    if Ellipsis in keys:
        at = keys.index(Ellipsis)
        keys = (*keys[:at], *[slice(None)] * (len(shape) - len(keys) + 1), *keys[at + 1 :])
    keys = (*keys, *[slice(None)] * (len(shape) - len(keys)))
    return [range(n)[one] if isinstance(one, slice) else range(n)[int(one)]
            for one, n in zip(keys, shape, strict=True)]  # fmt: skip


def _gathered(
    name: str, parts: list[tuple[Source, slice]], keys: list[int | range], dtype: Any
) -> Any:
    """The parts lie beside each other along the second axis."""
    rows, columns, *rest = keys
    wanted = range(columns, columns + 1) if isinstance(columns, int) else columns
    pieces = []
    for source, place in parts:
        first, last = (max(0, -((wanted.start - edge) // wanted.step))
                       for edge in (place.start, place.stop))  # fmt: skip
        if here := wanted[first:last]:
            begin = here.start - place.start
            key = (rows, range(begin, begin + len(here) * here.step, here.step), *rest)
            piece = source.read(name, tuple(map(_basic, key)))
            if piece.shape != tuple(len(one) for one in key if isinstance(one, range)):
                raise Refused(f"{source.path}: has fewer samples of {name} than it had")
            pieces.append(piece)
    axis = 0 if isinstance(rows, int) else 1
    if not pieces:
        shape = [len(one) for one in (rows, wanted, *rest) if isinstance(one, range)]
        whole = np.zeros(shape, dtype)
    else:
        whole = pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis)
    return whole.take(0, axis) if isinstance(columns, int) else whole


def _basic(one: int | range) -> int | slice:
    return one if isinstance(one, int) else slice(one.start, one.stop, one.step)
