"""HDF5 files that somebody may be writing to, or whose writer died.

A file in single-writer-multiple-reader mode is marked as such until it is closed, and one that was
never closed stays marked: it can be followed, not opened otherwise. Whether it is marked, and where
it ends, is in its first bytes.
"""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path
from typing import Any, NamedTuple

from pdes.errors import Refused

SUPERBLOCK, SIGNATURE = struct.Struct("<8sB2xB16xQ"), b"\x89HDF\r\n\x1a\n"
PATIENCE = 0.5
"""Seconds, for a flush that is under way."""


class Whole(NamedTuple):
    """A file that is all there; is it marked as being written to?"""

    written_to: bool


def open_file(path: Path, mode: str, **how: Any) -> Any:
    """Where the file system knows no locks, without."""
    import h5py

    return h5py.File(path, mode, locking="best-effort", **how)


def opened(path: Path, follow: bool | None = None) -> Any:
    """To be read; if it is marked (or `follow`) to be followed. What is not HDF5, or is cut off, is
    refused here: to follow a file that is cut off HDF5 would wait for the rest of it, for ever."""
    until = time.monotonic() + PATIENCE
    while not (found := whole(path)) and time.monotonic() < until:
        time.sleep(0.02)
    if not found:
        raise Refused(f"{path}: is not a whole HDF5 file: truncated or altered")
    try:
        return open_file(path, "r", swmr=found.written_to if follow is None else follow)
    except OSError as error:
        raise Refused(f"{path}: cannot be read: {error}") from None


def whole(path: Path) -> Whole | None:
    """From the superblock, version 3: what is marked in it, and where it says that the file ends,
    which is there as soon as a flush is over."""
    with path.open("rb") as file:
        head = file.read(SUPERBLOCK.size)
        size = os.fstat(file.fileno()).st_size
    if len(head) < SUPERBLOCK.size:
        return None
    signature, version, flags, end = SUPERBLOCK.unpack(head)
    if signature != SIGNATURE or version < 3 or size < end:
        return None
    return Whole(flags != 0)


def fresh_name(path: Path) -> Path:
    """Of a file that is to take this one's place when it is done."""
    return path.with_name(f".{path.name}.new")


def repack(path: Path) -> None:
    """Write a file anew, and close it if nobody has (HDF5 has no call for either). Nobody may be
    writing to it; if it fails, it is as it was."""
    fresh = fresh_name(path)
    try:
        with opened(path) as old, open_file(fresh, "w", libver="latest") as new:
            for name in old:
                old.copy(old[name], new, name)
            new.attrs.update(old.attrs)
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
