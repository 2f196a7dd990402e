"""The files of one number of ranks take the place of those of another: all of them, or none.

A run that goes on with other ranks writes their files anew (`pdes.past`), each under another name
(`pdes.hdf5.fresh_name`). When all are on the disk, a **note** is written that says how many ranks
there are from now on; then the files are renamed, and what is left of the old ones is removed, and
the note. Where a run dies before the note, the old files are as they were. Where it dies after, the
note is there: readers find each file under whichever name it has, and the next run goes on with the
renaming. A run that begins anew removes all files of the one before in the same way: they are those
of no ranks.
"""

from __future__ import annotations

from pathlib import Path

from pdes.disk import sync
from pdes.errors import Refused
from pdes.hdf5 import fresh_name
from pdes.stream import NAME

NOTE, UNFINISHED = ".ranks", ".ranks.new"
ANY = NAME.replace("{:04d}", "*")


def replace_all(directory: Path, ranks: int) -> None:
    """Have the new files of so many ranks take the place of whatever files there are."""
    sync(directory)
    note = directory / NOTE
    partial = directory / UNFINISHED
    partial.write_text(f"{ranks}\n")
    sync(partial)
    partial.replace(note)
    sync(directory)
    finish(directory)


def remove_all(directory: Path) -> None:
    """Remove the files of all ranks, whatever they are."""
    left = (NOTE, ANY, fresh_name(Path(ANY)).name)
    if any(path for name in left for path in directory.glob(name)):
        replace_all(directory, 0)


def finish(directory: Path) -> None:
    """Finish what a run that died had begun, if there is anything, and remove what it left half
    written. Nobody may be writing there."""
    ranks = announced(directory)
    if ranks is not None:
        paths = [directory / NAME.format(rank) for rank in range(ranks)]
        for path in paths:
            if fresh_name(path).exists():
                fresh_name(path).replace(path)
        for left in {*directory.glob(ANY)} - {*paths}:
            left.unlink()
        sync(directory)
        forget(directory)
        sync(directory)
    for name in (UNFINISHED, fresh_name(Path(ANY)).name):
        for left in directory.glob(name):
            left.unlink()


def announced(directory: Path) -> int | None:
    """Returns how many ranks the files are of, where they are being replaced."""
    note = directory / NOTE
    try:
        return int(note.read_text())
    except FileNotFoundError:
        return None
    except ValueError:
        raise Refused(f"{note}: is damaged: the number of ranks is expected") from None


def forget(directory: Path) -> None:
    """Remove the note, where another run begins."""
    (directory / NOTE).unlink(missing_ok=True)


def current(path: Path) -> Path:
    """Returns where a rank's file is while files are being replaced."""
    return fresh_name(path) if fresh_name(path).exists() else path
