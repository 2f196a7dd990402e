"""Files that are there when all of them is: written under another name, and then renamed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Gives another name to write to, with the same suffixes. Where that fails, a file that was
    there stays, and the error names it."""
    part = path.with_name(f".part-{path.name}")
    try:
        yield part
        part.replace(path)
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise
    finally:
        part.unlink(missing_ok=True)
