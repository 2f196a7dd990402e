"""Where compiled kernels are kept, and which of them are loaded: they are code, and read by
unpickling.

`ROOT/DIGEST/kernels/*.nbi` and `*.nbc` are what numba keeps of the functions whose sources, and
those of all that they call, have this digest. A file is loaded only if nobody but this user, or the
superuser, can have written it: each level from the root to the file is opened without following
links, and what has been opened is what is looked at and read. It is not enough that others cannot
write there now: what they left while they could is theirs.
"""

from __future__ import annotations

import io
import os
import pickle
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from pdes import launcher
from pdes.shown import say

KEEP_DAYS = 30
"""Compiled kernels of other versions are removed when they have not been used for this long."""
STAMP, KERNELS = "last-used", "kernels"
CURE = "name a new directory of your own (ODONATA_CACHE_DIR)"
SUPERUSER = 0


def cache_root() -> Path:
    """Returns where compiled kernels are kept: ``$ODONATA_CACHE_DIR``, else the user's cache
    directory.

    A directory that others can write to is not used. Where there is no other, and where the home
    directory cannot be written, it is a private directory under the system's temporary one.
    """
    return next(_roots())


def _roots() -> Iterator[Path]:
    """Returns the directories in which kernels may be kept, the one that is to be used first."""
    named = os.environ.get("ODONATA_CACHE_DIR")
    if named:
        root = Path(named).expanduser()
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _private(root):
            yield root
    elif home := _at_home():
        yield home
    root = Path(tempfile.gettempdir()) / f"odonata-kernels-{os.getuid()}"
    with suppress(OSError):  # another's file or link, which only they can remove
        root.mkdir(mode=0o700, exist_ok=True)
    if root.is_dir() and not root.is_symlink() and _private(root):
        yield root
    yield _own_root()


def _at_home() -> Path | None:
    try:
        base = os.environ.get("XDG_CACHE_HOME")
        root = (Path(base) if base else Path.home() / ".cache") / "odonata" / "kernels"
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        return root if os.access(root, os.W_OK) and _private(root) else None
    except (OSError, RuntimeError):  # no home, or one that cannot be written
        return None


@cache
def _own_root() -> Path:
    return Path(tempfile.mkdtemp(prefix="odonata-kernels-"))


@cache
def _private(root: Path) -> bool:
    """Tells whether nobody but this user can write there. If others can, that is printed once."""
    wrong = _wrong(root.stat(), owners=(os.getuid(),))
    if wrong:
        _warn(f"{root}: {wrong}, so compiled kernels are neither kept there nor loaded from there: "
              f"{CURE}; what is in this one may be of others")  # fmt: skip
    return wrong is None


def _wrong(status: os.stat_result, owners: tuple[int, ...]) -> str | None:
    """Returns why what this is the status of may have been written by others; None: it was not.
    (The write permission of an access control list shows as that of the group.)"""
    if stat.S_ISLNK(status.st_mode):
        return "it is a symbolic link"
    if status.st_uid not in owners:
        return f"it belongs to another user ({status.st_uid})"
    if status.st_mode & 0o022:
        return "others can write to it"
    return None


def _warn(words: str) -> None:
    if launcher.rank() == 0:
        say(f"warning: {words}")


@cache
def _distrust(path: Path, wrong: str) -> None:
    """Print once that something is not loaded."""
    _warn(f"{path}: {wrong}, so it is not loaded as code, and compiled anew: others have, or had, "
          f"access to this directory; {CURE}")  # fmt: skip


# -- of one digest


def folder_for(digest: str) -> Path:
    """Returns the directory for what has this digest, marked as used; made, if it is not there. It
    is in the first root in which others cannot have made it."""
    for root in _roots():
        folder = root / digest
        with suppress(OSError):  # a cache that can be read only
            for level in (folder, folder / KERNELS):
                level.mkdir(mode=0o700, exist_ok=True)
        if all(_trusted(level) for level in (folder, folder / KERNELS)):
            break
    with suppress(OSError):
        how = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        stamp = os.open(folder / STAMP, how, 0o600)
        os.utime(stamp)
        os.close(stamp)
    return folder


def _trusted(level: Path) -> bool:
    """Tells whether a directory within a root is not another's; if it is, that is printed."""
    try:
        wrong = _wrong(level.lstat(), (os.getuid(), SUPERUSER))
    except OSError:  # it is not there: then there is nothing to load
        return True
    if wrong:
        _distrust(level, wrong)
    return wrong is None


def content(path: Path) -> bytes | None:
    """Returns the content of a file of a digest, ROOT/DIGEST/kernels/NAME; None where there is
    none that may be loaded."""
    root, names = path.parents[2], path.parts[-3:]
    try:
        with _opened(root) as at:
            wrong = _wrong(os.fstat(at), (os.getuid(), SUPERUSER))
            return _read(root, names, at) if wrong is None else None
    except OSError:
        return None


def _read(at: Path, names: tuple[str, ...], folder: int) -> bytes | None:
    path = at / names[0]
    if stat.S_ISLNK(os.lstat(names[0], dir_fd=folder).st_mode):
        _distrust(path, "it is a symbolic link")
        return None
    with _opened(Path(names[0]), folder, os.O_NOFOLLOW | os.O_NONBLOCK) as here:
        status = os.fstat(here)
        wrong = _wrong(status, (os.getuid(), SUPERUSER))
        if wrong:
            _distrust(path, wrong)
            return None
        if names[1:]:
            return _read(path, names[1:], here)
        if not stat.S_ISREG(status.st_mode):
            return None
        with open(here, "rb", closefd=False) as file:
            return file.read()


@contextmanager
def _opened(path: Path, folder: int | None = None, how: int = 0) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | how, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def keep_in(kept: Any, folder: Path) -> None:
    """Have numba keep a function in such a folder, by its digest alone, and load nothing from there
    that others can have written. Numba would go by the path of the function's file and by when that
    was written, which differ in every checkout of a version."""
    place = str(folder / KERNELS)
    kind = _trusting(type(kept._cache_file))  # type: ignore[arg-type]
    file = kind(place, kept._impl.filename_base, folder.name)
    kept._impl.locator._cache_path = kept._cache_path = place
    kept._cache_file = file


@cache
def _trusting(kind: Any) -> Any:
    """Returns numba's class for the files of a function, with another way to read and to write
    them."""
    for name in ("_load_index", "_load_data", "_open_for_write"):
        getattr(kind, name)  # an AttributeError, where numba is made otherwise

    class Trusting(kind):  # type: ignore[misc]
        def _load_index(self) -> Any:
            found = content(Path(self._index_path))
            if found is None:
                return {}
            stream = io.BytesIO(found)
            if pickle.load(stream) != self._version:
                return {}
            stamp, overloads = pickle.load(stream)
            return overloads if stamp == self._source_stamp else {}

        def _load_data(self, name: str) -> Any:
            found = content(Path(self._data_path(name)))
            if found is None:
                raise FileNotFoundError(name)
            return pickle.loads(found)

        @contextmanager
        def _open_for_write(self, filepath: str) -> Iterator[Any]:
            """Whatever the umask is, others may not write to it."""
            made, name = tempfile.mkstemp(dir=os.path.dirname(filepath), suffix=".tmp")
            try:
                with open(made, "wb") as file:
                    yield file
                os.replace(name, filepath)
            except BaseException:
                with suppress(OSError):
                    os.unlink(name)
                raise

    return Trusting


def prune(root: Path) -> None:
    """Remove kernels of other versions of ours, and nothing else, that were not used for long."""
    oldest = time.time() - KEEP_DAYS * 86400
    for stamp in root.glob(f"[0-9a-f]*/{STAMP}"):
        with suppress(OSError):  # another run may be doing the same
            if stamp.lstat().st_mtime < oldest and not stamp.parent.is_symlink():
                for folder in stamp.parent.iterdir():
                    if folder.is_dir() and not folder.is_symlink():
                        for kept in folder.glob("*.nb[ic]"):
                            kept.unlink()
                stamp.unlink()
                for folder in (*stamp.parent.iterdir(), stamp.parent):
                    folder.rmdir()
