"""Files that are there when all of them is: written under another name, and then renamed."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

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
