"""A run laid down on disk, whole or not at all.

A checkpoint is a directory ``at-<picoseconds>/``: one HDF5 file per rank with its arrays, and
``manifest.json`` with what was run and every file's SHA-256. It is written beside its place and
renamed into it when all ranks are done, so a directory of that name is complete; the one before it
is removed only then. Ranks need a file system in common.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pdes.errors import Refused
from pdes.transport import Transport

FORMAT = 1
PARTIAL = ".partial"

Arrays = Mapping[str, npt.NDArray[Any]]


class Cut(NamedTuple):
    """Where in a run a checkpoint lies: everything before `time` has happened."""

    time: int
    events: int


def save(
    directory: Path, transport: Transport, identity: Mapping[str, Any], cut: Cut, arrays: Arrays
) -> Path:
    """Write this rank's arrays, all ranks together. Returns the checkpoint's path."""
    partial = directory / PARTIAL
    if transport.rank == 0:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
    transport.everyone(None)
    name = _file_name(transport.rank)
    _write(partial / name, arrays)
    files = transport.everyone((name, _sha256(partial / name), cut.events))
    place = directory / f"at-{cut.time:019d}"
    if transport.rank == 0:
        manifest = {
            "format": FORMAT,
            "time_ps": cut.time,
            "events": [events for _, _, events in files],
            "identity": dict(identity),
            "sha256": {file: digest for file, digest, _ in files},
        }
        manifest["checksum"] = _checksum(manifest)
        (partial / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")
        _sync(partial / "manifest.json")
        older = [path for path in _complete(directory) if path != place]
        shutil.rmtree(place, ignore_errors=True)
        partial.rename(place)
        _sync(directory)
        for path in older:
            shutil.rmtree(path)
    transport.everyone(None)
    return place


def load(
    directory: Path, transport: Transport, identity: Mapping[str, Any]
) -> tuple[Cut, dict[str, npt.NDArray[Any]]]:
    """This rank's part of the newest checkpoint in (or at) `directory`; refused on every rank if
    any rank finds it incomplete, altered, or of another run."""
    problem, found = None, None
    try:
        found = _load(directory, transport.rank, identity)
    except Refused as refusal:
        problem = str(refusal)
    problems = [p for p in transport.everyone(problem) if p is not None]
    if problems:
        raise Refused(problems[0])
    assert found is not None
    return found


def _load(
    directory: Path, rank: int, identity: Mapping[str, Any]
) -> tuple[Cut, dict[str, npt.NDArray[Any]]]:
    if not directory.is_dir():
        raise Refused(f"{directory}: there is no such checkpoint directory")
    complete = [directory] if (directory / "manifest.json").exists() else _complete(directory)
    if not complete:
        raise Refused(f"{directory}: holds no complete checkpoint (at-.../manifest.json)")
    place = complete[-1]
    manifest = _manifest(place / "manifest.json")
    _compare(place, manifest["identity"], json.loads(json.dumps(dict(identity))))
    path = place / _file_name(rank)
    if not path.exists():
        raise Refused(f"{path}: this rank's part of the checkpoint is missing")
    if _sha256(path) != manifest["sha256"][path.name]:
        raise Refused(f"{path}: does not match its checksum: truncated or altered")
    return Cut(manifest["time_ps"], manifest["events"][rank]), _read(path)


def _manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(path.read_bytes())
        claimed = manifest.pop("checksum")
        intact = claimed == _checksum(manifest)
    except (ValueError, KeyError, AttributeError, TypeError):
        intact = False
    if not intact:
        raise Refused(f"{path}: does not match its checksum: truncated or altered")
    if manifest["format"] != FORMAT:
        raise Refused(
            f"{path}: checkpoint format {manifest['format']}, this version reads {FORMAT}"
        )
    return manifest  # type: ignore[no-any-return]


def _compare(place: Path, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
    for name in sorted({*theirs, *ours}):
        if theirs.get(name) != ours.get(name):
            raise Refused(
                f"{place}: was made with {name} = {theirs.get(name)}, "
                f"this run has {name} = {ours.get(name)}"
            )


def _complete(directory: Path) -> list[Path]:
    return sorted(p for p in directory.glob("at-*") if (p / "manifest.json").exists())


def _file_name(rank: int) -> str:
    return f"rank-{rank:04d}.h5"


def _write(path: Path, arrays: Arrays) -> None:
    import h5py

    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=array)
    _sync(path)


def _read(path: Path) -> dict[str, npt.NDArray[Any]]:
    import h5py

    with h5py.File(path, "r") as file:
        return {name: np.asarray(file[name]) for name in file}


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _checksum(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
