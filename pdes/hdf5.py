"""HDF5 files that somebody may be writing to, whose writer died, or that are damaged.

A file in single-writer-multiple-reader mode is marked as such until it is closed, and one that was
never closed stays marked. HDF5 follows a marked file by reading what does not match its checksum
again, with twice the pause each time: where it is damaged, for ever. And of a damaged heap of text
it makes an endless loop. So files are read here through `_Guarded`, and as if they were closed;
what does not match is an error at once, and tried again only as long as a flush may take
(`PATIENCE`).

HDF5 has a checksum of its metadata, and deflate has one of what is compressed. It has none of text
in attributes and of values that are not compressed: of these a file has a **seal**, the SHA-256 of
all that is written before the first sample. Files of earlier versions have none, and are believed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from pdes.errors import Refused

SUPERBLOCK, SIGNATURE = struct.Struct("<8sB2xB16xQ8xI"), b"\x89HDF\r\n\x1a\n"
CHECKED = SUPERBLOCK.size - 4
"""Bytes of a superblock before its checksum."""
END_AT = 28
"""Where in a superblock the end of the file is."""
FAR = 1 << 60
"""An end, in bytes, that no file grows to."""
AHEAD = 1 << 16
"""Bytes that HDF5 may read beyond the end of a file: it does not know how long what it reads is. A
damaged length would have it read gigabytes."""
HEAP = re.compile(b"GCOL\x01\0\0\0")
HEAP_HEAD, HEAP_OBJECT = struct.Struct("<8xQ"), struct.Struct("<H6xQ")
"""Formats: the size of a heap of text; the number (0: the room that is left) and size of an object
in it."""
PATIENCE = 0.5
"""Seconds that a flush which is under way may take."""
PAUSE = 0.02
SEAL = "seal"
"""The attribute of a file that has its seal."""
UNREADABLE = (OSError, RuntimeError, LookupError, ValueError, TypeError, AttributeError)
"""What h5py raises where a file is damaged, and what reading nonsense leads to."""
CHECKED_SERIES = {"compression": "gzip", "compression_opts": 1, "shuffle": True, "fletcher32": True}
"""How a dataset that grows is created, so that what is read of it is what was written."""
CURE = "restore it from a copy, or run the experiment again"

Answer = TypeVar("Answer")


class Whole(NamedTuple):
    """A file that is complete; whether it is marked as being written to."""

    written_to: bool


def open_file(path: Path, mode: str, **how: Any) -> Any:
    """Opens a file with a lock; where the file system knows no locks, without."""
    import h5py

    return h5py.File(path, mode, locking="best-effort", **how)


def opened(path: Path, cure: str = CURE) -> Any:
    """Opens a file to be read, also one that is being written to. What is not HDF5, or is cut off,
    is refused, and the `cure` named."""
    import h5py

    until = time.monotonic() + PATIENCE
    while True:
        with reading(path, cure):
            found = whole(path)
        try:
            if found:
                return h5py.File(_Guarded(path, found.written_to), "r")
        except OSError as error:
            if not found or not found.written_to or time.monotonic() > until:
                raise _damaged(path, error, cure) from None
        if not found and time.monotonic() > until:
            raise Refused(f"{path}: is not a whole HDF5 file: truncated or altered; {cure}")
        time.sleep(PAUSE)


@contextmanager
def reading(path: Path, cure: str = CURE) -> Iterator[None]:
    """Raise whatever goes wrong in this context as a fault of this file."""
    try:
        yield
    except UNREADABLE as error:
        raise _damaged(path, error, cure) from None


class Source:
    """An opened file, of which whatever cannot be read is refused by name. A marked one is opened
    anew and tried again first: its writer may have been at it."""

    def __init__(self, path: Path, cure: str = CURE) -> None:
        self.path, self._cure = path, cure
        self._open()

    def _open(self) -> None:
        self._marked = is_written_to(self.path)
        self.file = opened(self.path, self._cure)

    def read(self, name: str, key: Any = ()) -> Any:
        """Returns values of a dataset."""
        return self.tried(lambda file: file[name][key])

    def check(self) -> None:
        """Refuse what does not match its seal."""
        self.tried(check)

    def tried(self, work: Callable[[Any], Answer]) -> Answer:
        """Returns what `work` makes of the file."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                return work(self.file)
            except UNREADABLE as error:
                if time.monotonic() > until or not (self._marked or is_written_to(self.path)):
                    raise _damaged(self.path, error, self._cure) from None
            time.sleep(PAUSE)
            self.file.close()
            self._open()

    def close(self) -> None:
        self.file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read(path: Path, work: Callable[[Any], Answer], cure: str = CURE) -> Answer:
    """Returns what `work` makes of the opened file; what cannot be read is refused by name."""
    with Source(path, cure) as source:
        return source.tried(work)


def _damaged(path: Path, error: Exception, cure: str) -> Refused:
    if isinstance(error, OSError) and error.errno:
        return Refused(f"{path}: {os.strerror(error.errno)}")
    words = str(error).strip("'\"").splitlines() or [type(error).__name__]
    return Refused(f"{path}: is damaged: {words[0]}; {cure}")


def whole(path: Path) -> Whole | None:
    """Returns what the superblock (version 3) says, if it matches its own checksum, and if the file
    is as long as it says, which it is as soon as a flush is over."""
    with path.open("rb") as file:
        head = file.read(SUPERBLOCK.size)
        size = os.fstat(file.fileno()).st_size
    if len(head) < SUPERBLOCK.size:
        return None
    signature, version, flags, end, checksum = SUPERBLOCK.unpack(head)
    if signature != SIGNATURE or version < 3 or size < end or lookup3(head[:CHECKED]) != checksum:
        return None
    return Whole(flags != 0)


def is_written_to(path: Path) -> bool:
    """Returns whether a file is marked; so it may be while its superblock is being written."""
    try:
        found = whole(path)
    except OSError:
        return False
    return found is None or found.written_to


class _Guarded:
    """A file, for h5py, that ends where it ends now or, if it is written to, never: what a writer
    appends later can be read as well. Behind what is there, there are zeros. HDF5 keeps text of any
    length in heaps (GCOL), of which it has no checksum, and in which it takes its steps from what
    it finds: those in which these lead nowhere have no signature here, so that it stops."""

    def __init__(self, path: Path, written_to: bool) -> None:
        self._path, self._at = path, 0
        self._fd = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._fd)
        self._size = FAR if written_to else os.fstat(self._fd).st_size
        head = bytearray(os.pread(self._fd, CHECKED, 0))
        head[END_AT : END_AT + 8] = struct.pack("<Q", self._size)
        self._head = bytes(head) + struct.pack("<I", lookup3(bytes(head)))

    def __repr__(self) -> str:
        return str(self._path)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + (self._size if whence == os.SEEK_END else 0)
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int) -> bytes:
        found = bytearray(size)
        self.readinto(found)
        return bytes(found)

    def readinto(self, buffer: Any) -> int:
        view, at = memoryview(buffer).cast("B"), self._at
        if at + len(view) > os.fstat(self._fd).st_size + AHEAD:
            raise OSError(f"{len(view)} bytes at {at} are beyond the end")
        found = os.preadv(self._fd, [view], at)
        view[found:] = bytes(len(view) - found)
        if at < len(self._head):
            head = self._head[at : at + len(view)]
            view[: len(head)] = head
        for heap in HEAP.finditer(view):
            if not self._is_sound(at + heap.start()):
                view[heap.start()] = 0
        return len(view)

    def _is_sound(self, at: int) -> bool:
        """Returns whether every step from object to object of a heap leads to its end."""
        head = os.pread(self._fd, HEAP_HEAD.size, at)
        if len(head) < HEAP_HEAD.size:
            return False
        (size,) = HEAP_HEAD.unpack(head)
        if at + size > os.fstat(self._fd).st_size:
            return False
        heap, place = os.pread(self._fd, size, at), HEAP_HEAD.size
        while size - place >= HEAP_OBJECT.size:
            number, length = HEAP_OBJECT.unpack_from(heap, place)
            step = HEAP_OBJECT.size + -(-length // 8) * 8 if number else length
            if not HEAP_OBJECT.size <= step <= size - place:
                return False
            place += step
        return True


def lookup3(data: bytes) -> int:
    """Returns the checksum that HDF5 has of its metadata: Bob Jenkins's lookup3, in 32 bits."""
    mask = 0xFFFFFFFF

    def rotated(value: int, by: int) -> int:
        return (value << by | value >> (32 - by)) & mask

    a = b = c = (0xDEADBEEF + len(data)) & mask
    words = struct.unpack(f"<{-(-len(data) // 12) * 3}I", data + bytes(-len(data) % 12))
    for at in range(0, len(words), 3):
        a, b, c = (a + words[at]) & mask, (b + words[at + 1]) & mask, (c + words[at + 2]) & mask
        if at + 3 < len(words):
            for by in (4, 6, 8, 16, 19, 4):
                a, b, c = b, (c + b) & mask, ((a - c) & mask) ^ rotated(c, by)
    for by in (14, 11, 25, 16, 4, 14, 24):
        a, b, c = b, ((c ^ b) - rotated(b, by)) & mask, a
    return b


# -- seals


def seal(file: Any) -> None:
    """Note of all that is in a new file what it was. Datasets that grow, virtual ones and scalars
    are not part of it: they change, or HDF5 checks them."""
    file.attrs[SEAL] = np.bytes_(_sum(file))


def check(file: Any) -> None:
    """Raises a ValueError where a file is not what it was when it was sealed. Everything that has
    no samples is read here; to be called in `read`."""
    found = _sum(file)
    if SEAL in file.attrs and bytes(file.attrs[SEAL]).decode() != found:
        raise ValueError("its attributes or columns are not what was written")


def _sum(file: Any) -> str:
    import h5py

    total = hashlib.sha256()

    def add(name: str, thing: Any) -> None:
        attributes = {key: _plain(value) for key, value in thing.attrs.items() if key != SEAL}
        total.update(json.dumps([name, attributes], sort_keys=True).encode())
        if not isinstance(thing, h5py.Dataset):
            return
        fixed = thing.ndim > 0 and thing.maxshape == thing.shape
        total.update(f"{thing.dtype.str} {thing.shape if fixed else thing.shape[1:]}".encode())
        if fixed and not thing.is_virtual:
            total.update(thing[()].tobytes())

    add("", file)
    names: list[str] = []
    file.visit(names.append)
    for name in sorted(names):
        add(name, file[name])
    return total.hexdigest()


def _plain(value: Any) -> Any:
    """Returns an attribute as JSON has it."""
    if isinstance(value, np.ndarray | np.generic):
        return [value.dtype.str, _plain(value.tolist())]
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value.decode("latin-1") if isinstance(value, bytes) else value


def checked_scalar(file: Any, name: str, value: Any) -> Any:
    """Make a dataset of one number, kept among the metadata, of which HDF5 has a checksum."""
    import h5py

    how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    how.set_layout(h5py.h5d.COMPACT)
    kind, space = h5py.h5t.py_create(value.dtype), h5py.h5s.create(h5py.h5s.SCALAR)
    made = h5py.Dataset(h5py.h5d.create(file.id, name.encode(), kind, space, how))
    made[()] = value
    return made


# -- files anew


def fresh_name(path: Path) -> Path:
    """Returns the name of a file that is to take this one's place when it is done."""
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
