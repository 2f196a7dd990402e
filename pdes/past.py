"""What a run that goes on has recorded before, whichever ranks recorded it.

Where units are dealt to ranks as before, a rank has its own file to go on with. Where they are not,
it gets the columns of its own agents out of the files of all ranks that had any: columns lie in the
order of agents, so those of all files beside each other are those of all new files. The rows of
logs of the time before go to the first rank, in their order: all that follow are later. Of the
engine's own counters, which are by rank, those of several ranks are added up, so that their sum
stays the sum.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from pdes.errors import Refused
from pdes.hdf5 import Source, read, reading
from pdes.join import ranks_of
from pdes.log import Book, lengths, merge
from pdes.stream import ENGINE, NAME, times_of

Array = npt.NDArray[Any]
Widths = Mapping[str, int]
"""How many columns each series has on a rank, by name."""
EVENTS, LEFT, WALL = (series.name for series in ENGINE)


class Former(NamedTuple):
    """The file of a rank of before, the units that this rank had, and the widths of its series."""

    path: Path
    first_unit: int
    last_unit: int
    widths: Widths


def former(directory: Path, series: Sequence[str]) -> list[Former]:
    """Returns the files of the run in a directory, by rank."""
    first = directory / NAME.format(0)
    if not first.exists():
        raise Refused(f"{first}: the metrics to go on with are not there")

    def described(path: Path) -> Former:
        return read(path, lambda file: Former(
            path, int(file.attrs["first_unit"]), int(file.attrs["last_unit"]),
            {name: int(file[name].shape[1]) for name in series},
        ))  # fmt: skip

    return [described(path) for path in ranks_of(directory)]


def past_of(
    path: Path, files: Sequence[Former], widths: Sequence[Widths], starts: Sequence[int], rank: int
) -> Past:
    """Returns the past of one of several ranks, given the widths on each and, in `starts`, the
    first unit of each and how many there are; its file is at `path`."""
    before = [(file.first_unit, file.last_unit) for file in files]
    if before == [*pairwise(starts)]:
        return Past([path])
    places: dict[str, list[Place]] = {}
    for name in widths[0]:
        if name in (EVENTS, LEFT, WALL):
            continue
        have, want = ([each[name] for each in of]
                      for of in ([file.widths for file in files], widths))  # fmt: skip
        if sum(have) != sum(want):
            raise Refused(
                f"{path.parent}: {name} has {sum(have)} columns, of all ranks together, and "
                f"this run has {sum(want)}: it is of another run; or it is by rank, and goes on "
                f"only with {len(files)} ranks"
            )
        begin = sum(want[:rank])
        places[name] = _places(have, begin, begin + want[rank])
    mine = [*range(rank, len(files), len(widths))]
    places |= {name: [Place(file, slice(0, 1)) for file in mine] for name in (EVENTS, LEFT)}
    places[WALL] = [Place(rank % len(files), slice(0, 1))]
    return Past([file.path for file in files], places, logs=rank == 0)


class Place(NamedTuple):
    """Columns of a series in one of the files."""

    file: int
    columns: slice


def _places(widths: Sequence[int], begin: int, end: int) -> list[Place]:
    """Returns where the columns begin .. end - 1 are in files that have so many columns each."""
    found, at = [], 0
    for file, width in enumerate(widths):
        first, last = max(begin, at), min(end, at + width)
        if first < last:
            found.append(Place(file, slice(first - at, last - at)))
        at += width
    return found


class Past:
    """What was recorded before of all that a rank records. `places` say where the columns of each
    series are; without them, all are in the one file that there is."""

    def __init__(
        self,
        paths: Sequence[Path],
        places: Mapping[str, Sequence[Place]] | None = None,
        logs: bool = True,
    ) -> None:
        self._paths, self._places, self._logs = paths, places, logs
        needed = {0, *(place.file for found in (places or {}).values() for place in found)}
        self._needed = range(len(paths)) if logs else sorted(needed)
        self._sources: dict[int, Source] = {}

    @property
    def redealt(self) -> bool:
        return self._places is not None

    def times(self, cut: int) -> Array:
        """Returns the times of the samples up to a cut, in ticks."""
        clocks = [source.tried(lambda file: times_of(file)[:]) for source in self._sources.values()]
        clocks = [clock[clock <= cut] for clock in clocks]
        shortest: Array = min(clocks, key=len)
        if any((clock[: len(shortest)] != shortest).any() for clock in clocks):
            raise Refused(f"{self._paths[0].parent}: its files are of different runs")
        return shortest

    def fill(self, name: str, rows: slice, out: Array) -> None:
        """Write some samples of a series into an array, which has been made for its columns."""
        if self._places is None:
            out[...] = self._sources[0].read(name, rows)
            return
        places = self._places[name]
        parts = [self._sources[file].read(name, (rows, columns)) for file, columns in places]
        if name in (EVENTS, LEFT):
            out[...] = sum(parts)
        elif parts:
            out[...] = np.concatenate(parts, axis=1)

    def restore(self, book: Book, cut: int) -> None:
        """Write the rows of logs before a cut into the logs of a new file."""
        files = [self._sources[file] for file in self._needed]
        if not book or not self._logs:
            book.final = cut
            return
        for source in files:
            with reading(source.path):
                book.check(source.file, cut, source.path)
        having = [source for source in files
                  if any(source.tried(lambda file: lengths(file, book.names)))]  # fmt: skip
        if len(having) < 2:
            source = (having or files)[0]
            with reading(source.path):
                book.restore(source.file, cut)
            return
        with _merged(files, book.names, cut) as file:
            book.restore(file, cut)

    def __enter__(self) -> Self:
        try:
            for number in self._needed:
                self._sources[number] = source = Source(self._paths[number])
                source.check()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for source in self._sources.values():
            source.close()
        self._sources = {}


def _merged(files: Sequence[Source], logs: Sequence[str], cut: int) -> Any:
    """Returns a file in memory that has the logs of all of these before a cut."""
    import h5py

    merged = h5py.File(io.BytesIO(), "w")
    for name in logs:
        merge(files, name, merged, cut)
    return merged
