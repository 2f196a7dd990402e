"""Room on the disk, reserved before it is needed: a full disk then is an error like any other; and
what is on the disk for sure, under the name that it was given."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pdes.errors import Fault

SLACK = 1 << 18
"""Room on the disk for HDF5's own bookkeeping, at each flush."""
KEEP_SIZE = 1


def free_bytes(directory: Path) -> int:
    """Returns how many bytes a user may still write there."""
    space = os.statvfs(directory)
    return space.f_bavail * space.f_frsize


def sync(path: Path) -> None:
    """Has a file, or the names in a directory, on the disk before it returns."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def full(path: Path) -> OSError:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def require_there(handle: int, path: Path) -> None:
    """Raise a Fault where an open file is no longer the one of this name: it could still be written
    to, and nobody would ever find it."""
    try:
        there = os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        there = False
    if not there:
        raise Fault(
            f"{path}: was removed, moved or replaced while the run wrote to it, and what it "
            "measures would be lost; begin again, in a directory that stays"
        )


def reserve(handle: int, size: int, path: Path) -> None:
    """Has so many bytes behind the end of an open file, without changing its length; or ENOSPC. The
    file must still be there."""
    require_there(handle, path)
    if _fallocate is None:
        return
    if _fallocate(handle, KEEP_SIZE, os.fstat(handle).st_size, size):
        problem = ctypes.get_errno()
        if problem not in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINTR):
            raise OSError(problem, os.strerror(problem), str(path))


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """What HDF5 cannot write is an OSError that names the file."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "errno", None) or errno.EIO
        raise OSError(reason, os.strerror(reason), str(path)) from error


def _find_fallocate() -> Callable[..., int] | None:
    try:
        found = ctypes.CDLL(None, use_errno=True).fallocate
    except (OSError, AttributeError):
        return None
    found.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    return found  # type: ignore[no-any-return]


_fallocate = _find_fallocate()
