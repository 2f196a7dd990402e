"""Checkpoints: the state of a run on disk, complete or not there at all.

A checkpoint is a directory ``<run>/at-<ticks>/``: one HDF5 file per rank with its arrays, and
``manifest.json`` with what was run, which ranks had which units, and every file's SHA-256. It is
written beside its place and renamed into it when all ranks are done, so a directory of that name is
complete; those before it are removed only then. ``<run>`` is the model and a hash of its
parameters, so another run never touches it; later checkpoints of the same run stay: being the same
run, on whichever ranks, they are as good. Ranks need a file system in common.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from pdes.disk import sync
from pdes.errors import Refused
from pdes.transport import Transport

FORMAT = 1
UNSAID = {"tick": "ps"}
"""The tick of an identity that names none: a model's tick is named only if it is another."""
PARTIAL = ".partial"
ASIDE = "at-.aside"
"""The name of a checkpoint while another of the same moment takes its place: it sorts before those
that have a time."""
ABANDONED_SECONDS = 3600.0
"""Seconds after which the next run removes what a killed run left half written."""

SHOWN = 200
"""Characters that are shown of a setting by which a checkpoint and a run differ."""
RANKS = "ranks"
"""The part of an identity that may be another when a run goes on."""

Array = npt.NDArray[Any]
Arrays = Mapping[str, Array]


class Cut(NamedTuple):
    """The place of a checkpoint in a run: everything before `time`, in ticks, has happened."""

    time: int
    events: int


def save(
    directory: Path,
    transport: Transport,
    identity: Mapping[str, Any],
    cut: Cut,
    arrays: Arrays,
    first_units: Sequence[int],
) -> Path:
    """Write this rank's arrays, all ranks together; `first_units` are the first units of all ranks
    and, last, how many there are. Returns the checkpoint's path."""
    directory = directory / _run_name(_known_by(identity))
    partial = directory / f"{PARTIAL}-{transport.everyone(os.getpid())[0]}"
    if transport.rank == 0:
        directory.mkdir(parents=True, exist_ok=True)
        for left in directory.glob(f"{PARTIAL}-*"):
            if left == partial or left.stat().st_mtime < time.time() - ABANDONED_SECONDS:
                shutil.rmtree(left)
        partial.mkdir()
    transport.everyone(None)
    name = _file_name(transport.rank)
    try:
        digest = _write(partial / name, _image(arrays))
    except OSError:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    files = transport.everyone((name, digest, cut.events))
    place = directory / f"at-{cut.time:019d}"
    if transport.rank == 0:
        manifest = {
            "format": FORMAT,
            _time_name(identity): cut.time,
            "events": [events for _, _, events in files],
            "identity": dict(identity),
            "first_units": [int(unit) for unit in first_units],
            "sha256": {file: digest for file, digest, _ in files},
        }
        manifest["checksum"] = _checksum(manifest)
        _write(partial / "manifest.json", json.dumps(manifest, indent=1).encode())
        sync(partial)
        _put_in_place(partial, place)
        for path in _complete(directory):
            if path < place:
                shutil.rmtree(path)
    transport.everyone(None)
    return place


def _put_in_place(partial: Path, place: Path) -> None:
    """Move a checkpoint of the same moment aside, if there is one: it is the same. Aside it is
    still a checkpoint, and comes before all others: it is the newest only where a run dies between
    the two."""
    aside = place.with_name(ASIDE)
    if place.exists():
        shutil.rmtree(aside, ignore_errors=True)
        place.rename(aside)
    partial.rename(place)
    sync(place.parent)
    shutil.rmtree(aside, ignore_errors=True)


class Checkpoint(NamedTuple):
    """A complete checkpoint: where it is, its time in ticks, and of each rank that wrote it how
    many events it had handled and the SHA-256 of its file."""

    place: Path
    time: int
    events: list[int]
    first_units: list[int] | None
    """The first units of these ranks and, last, how many there are; None: an earlier version did
    not say, and they were dealt as this model deals them."""
    sha256: Mapping[str, str]

    @property
    def ranks(self) -> int:
        return len(self.events)

    def part(self, rank: int) -> SavedPart:
        """Returns what a rank has written; refused if it is missing or altered."""
        path = self.place / _file_name(rank)
        if not path.exists():
            raise _damaged(path, "this rank's part of the checkpoint is missing")
        if _sha256(path) != self.sha256[path.name]:
            raise _damaged(path, "does not match its checksum: truncated or altered")
        return SavedPart(path)


class SavedPart:
    """The arrays that one rank has saved."""

    def __init__(self, path: Path) -> None:
        import h5py

        self._file = h5py.File(path, "r")

    def kinds(self) -> dict[str, tuple[Any, int]]:
        """Returns type and dimensions of each array, by name."""
        return {name: (_native(it.dtype), it.ndim) for name, it in self._file.items()}

    def read(self, name: str, axis: int = 0, rows: slice = slice(None)) -> Array:
        """Returns an array, or some rows of it, in the machine's own order of bytes: so Python can
        read elements of their memory."""
        found = self._file[name]
        where = (*[slice(None)] * axis, rows) if found.ndim else ()
        return np.asarray(found[where], _native(found.dtype))

    def read_all(self) -> dict[str, Array]:
        """Returns every array, by name."""
        return {name: self.read(name) for name in self._file}

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def find(
    directory: Path, identity: Mapping[str, Any], aside: Mapping[str, Any] | None = None
) -> Checkpoint:
    """Returns the newest checkpoint of this run in (or at) `directory`, whichever ranks wrote it;
    refused if its manifest is altered, or of another run. `aside` are the parameters that only
    decide how units are dealt: they have to be the same where a checkpoint does not say how."""
    ours = _known_by(identity)
    place = _find(directory, ours)
    manifest = _manifest(place / "manifest.json")
    first_units = manifest.get("first_units")
    if first_units is None:
        ours["parameters"] = {**ours["parameters"], **_plain(aside or {})}
    _compare(place, _known_by(manifest["identity"]), ours)
    return Checkpoint(
        place, manifest[_time_name(identity)], manifest["events"], first_units, manifest["sha256"]
    )


def _native(dtype: Any) -> Any:
    return dtype.newbyteorder("=")


def _known_by(identity: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what a run is known by, as JSON has it: its identity without its ranks."""
    return {name: value for name, value in _plain(identity).items() if name != RANKS}


def _plain(given: Mapping[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(dict(given)))  # type: ignore[no-any-return]


def _damaged(path: Path, how: str) -> Refused:
    return Refused(f"{path}: {how}; the run cannot go on from it, and has to be begun again")


def newest(directory: Path) -> Path | None:
    """Returns a directory to resume from, if there is a complete checkpoint in it."""
    found = any(_complete(run) for run in directory.glob("*"))
    return directory if found else None


def begun_with(directory: Path) -> dict[str, Any]:
    """Returns the parameters of the model whose newest checkpoint is in `directory`."""
    place = max(place for run in directory.glob("*") for place in _complete(run))
    parameters: dict[str, Any] = _manifest(place / "manifest.json")["identity"]["parameters"]
    return parameters


def _find(directory: Path, ours: Mapping[str, Any]) -> Path:
    """Returns the newest checkpoint of this run, or of whichever run the directory points at."""
    if not directory.is_dir():
        raise Refused(f"{directory}: there is no such checkpoint directory")
    if (directory / "manifest.json").exists():
        return directory
    found = _complete(directory / _run_name(ours)) or _complete(directory)
    others = [place for run in sorted(directory.iterdir()) for place in _complete(run)]
    if not found and not others:
        raise Refused(f"{directory}: holds no complete checkpoint (at-.../manifest.json)")
    found = found or [place for place in others if _is_of(place, ours)]
    return max(found, key=lambda place: place.name) if found else others[-1]


def _is_of(place: Path, ours: Mapping[str, Any]) -> bool:
    """Tells whether a checkpoint under another name is of this run: earlier versions named runs by
    their ranks too."""
    with suppress(Refused):
        theirs = _known_by(_manifest(place / "manifest.json")["identity"])
        known = {name: theirs["parameters"].get(name) for name in ours["parameters"]}
        return {**theirs, "parameters": known} == ours
    return False


def _run_name(identity: Mapping[str, Any]) -> str:
    words = json.dumps(dict(identity), sort_keys=True)
    return f"{identity['model']}-{hashlib.sha256(words.encode()).hexdigest()[:8]}"


def _time_name(identity: Mapping[str, Any]) -> str:
    """Returns the name of a cut's time in the manifest: `time_ps` if the tick is a picosecond."""
    return f"time_{({**UNSAID, **identity})['tick']}"


def _manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(path.read_bytes())
        claimed = manifest.pop("checksum")
        intact = claimed == _checksum(manifest)
    except (ValueError, KeyError, AttributeError, TypeError):
        intact = False
    if not intact:
        raise _damaged(path, "does not match its checksum: truncated or altered")
    if manifest["format"] != FORMAT:
        raise Refused(
            f"{path}: checkpoint format {manifest['format']}, this version reads {FORMAT}"
        )
    return manifest  # type: ignore[no-any-return]


def _compare(place: Path, theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
    for name in sorted({*theirs, *ours}):
        their, our = (given.get(name, UNSAID.get(name)) for given in (theirs, ours))
        if their != our and isinstance(their, dict) and isinstance(our, dict):
            _compare(place, their, our)
        elif their != our:
            lacks = [
                who for who, given in (("it", theirs), ("this run", ours)) if name not in given
            ]
            version = f" ({lacks[0]} knows no such key: another version?)" if lacks else ""
            was, is_ = _excerpts(str(their), str(our))
            raise Refused(
                f"{place}: was made with {name} = {was}, this run has {name} = {is_}{version}"
            )


def _excerpts(one: str, other: str) -> list[str]:
    """Returns what is shown of texts that differ: of long ones, as that of a cap which changes
    every day, where they begin to."""
    common = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)
    first = max(0, common - SHOWN // 2) if max(len(one), len(other)) > SHOWN else 0
    return [
        "..." * (first > 0) + it[first : first + SHOWN] + "..." * (len(it) > first + SHOWN)
        for it in (one, other)
    ]


def _complete(directory: Path) -> list[Path]:
    return sorted(p for p in directory.glob("at-*") if (p / "manifest.json").exists())


def _file_name(rank: int) -> str:
    return f"rank-{rank:04d}.h5"


def _image(arrays: Arrays) -> bytes:
    """Returns an HDF5 file in memory: writing it is then a plain write, which a full disk fails
    plainly."""
    import h5py

    image = io.BytesIO()
    with h5py.File(image, "w") as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=array)
    return image.getvalue()


def _write(path: Path, content: bytes) -> str:
    """Returns the content's SHA-256. A failure names the file, which the system's own may not."""
    try:
        path.write_bytes(content)
        sync(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    return hashlib.sha256(content).hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _checksum(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
