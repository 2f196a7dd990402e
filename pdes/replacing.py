"""Files that are there when all of them is: written under another name, and then renamed."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from pdes.errors import Refused

LONGEST = 100
"""Letters of a name that are kept, with its suffixes: what is before them would be too long."""


def partial_name(path: Path, whose: str) -> Path:
    """Returns the name under which a process, of a host, writes a file."""
    return path.with_name(f".part-{whose}-{path.name[-LONGEST:]}")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Gives another name to write to, with the same suffixes, which no other process has. Where
    that fails, a file that was there stays, and the error names it."""
    part = partial_name(path, f"{platform.node()}-{os.getpid()}")
    try:
        yield part
        part.replace(path)
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise
    finally:
        with suppress(OSError):
            part.unlink()


def write_whole(path: Path, text: str) -> None:
    """Write a file of text; whoever reads it meanwhile has the one before."""
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")


def check_place(
    path: Path, option: str, endings: Sequence[str] = (), overwrite: bool = True
) -> None:
    """Refuse a file that cannot be written, before anything takes time; `option` names it."""
    if endings and not path.name.lower().endswith(tuple(endings)):
        raise Refused(f"{option} {path}: the name must end in {' or '.join(endings)}")
    if path.is_dir():
        raise Refused(f"{option} {path}: this is a directory: name a file in it")
    if not path.absolute().parent.is_dir():
        raise Refused(f"{option} {path}: there is no directory {path.parent}")
    if path.exists() and not overwrite:
        raise Refused(f"{option} {path}: there is such a file: name another, or add --overwrite")
