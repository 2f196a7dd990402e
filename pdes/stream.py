"""What a run measures, written to disk while it goes on: one HDF5 file a rank.

A model that has something to tell gives `Streams.tables`: named groups of **series**, each an array
with a row for whatever the rank's agents are (ports, nodes). At every multiple of an interval of
simulated time, which is a cut, all are **sampled**; what is written is the increase since the
sample before, or for a level its value. Samples gather in a buffer of as many as make a chunk and
are **flushed** when it is full, or when the oldest has waited for `Recording.flush_s`: that is what
a crash can lose. Before a checkpoint they are on the disk, so a resumed run goes on where the
checkpoint is, and its file is the same as if nothing had happened. Beside the tables stand logs, to
which decisions append (`pdes.log`): they are flushed with the samples, by the same rule.

Readers may follow (single-writer-multiple-reader): a sample is there when `time_ps` (or `time_` and
another tick of the model's) has it, which is written last. Chunks are compressed here rather than
by HDF5, because deflate's run-length strategy is half as slow and, on shuffled counters, smaller;
any HDF5 reads them. Chunks of nothing but zeros are not written at all. Room on the disk is
reserved before HDF5 is asked to write: a full disk then is an error like any other, and the file
stays in order.
"""

from __future__ import annotations

import itertools
import os
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from pdes import disk
from pdes.disk import SLACK
from pdes.errors import Fault
from pdes.hdf5 import (
    CHECKED_SERIES,
    checked_scalar,
    fresh_name,
    open_file,
    repack,
    seal,
)
from pdes.jit import entry
from pdes.log import Book, Log

FORMAT = 1
BUFFER_BYTES = 1 << 22
"""The bytes of samples that are gathered before they are written, about."""
MOST_SAMPLES = 16
CHUNK_BYTES = 1 << 20
"""The bytes of a chunk at most, where it can be divided, before it is compressed."""
WASTE = 0.3
"""The fraction of a file that is no longer referred to above which it is packed in the end."""
RUNNING, STOPPED, COMPLETE, FAILED = range(4)
"""Values of `status`: the run goes on, or died; was stopped at a checkpoint; came to its end; ended
in an error on this rank."""
DIED = 4
"""The state that no file has as its status: its status is that it runs, and nobody writes to it."""
STUCK = 5
"""The value of `status` of a run that ended because its model had come to a standstill."""
STATUS = "0: runs, or died; 1: stopped at a checkpoint; 2: complete; 3: failed; 5: deadlocked"
NAME = "rank-{:04d}.h5"
DIGEST = "digest"
"""The dataset that has the digest of the run (`pdes.driver.Result.digest`), in hexadecimal, once it
is over; until then it is empty."""
DIGEST_BYTES = 16
TOTAL = "total"
"""The attribute `kind` of what is written when a run ends."""

Array = npt.NDArray[Any]


class Series(NamedTuple):
    """A series. `name` is its place in the file; `dims` those of one sample, the first of which is
    distributed with the agents; `tile`, if any, how many of the last one a chunk has."""

    name: str
    dims: tuple[str, ...]
    unit: str
    about: str
    dtype: str = "i8"
    level: bool = False
    tile: int = 0


class Column(NamedTuple):
    """A constant of a run, by the first dimension of a series: written once, and not sampled.
    `of(state)` gives this rank's part."""

    name: str
    dim: str
    unit: str
    about: str
    of: Callable[[Any], Array]


class Total(NamedTuple):
    """What is known when a run ends, or is stopped: written once, then. `of(state)` gives this
    rank's part, of the same shape on every rank; the parts of all ranks add up."""

    name: str
    dims: tuple[str, ...]
    unit: str
    about: str
    of: Callable[[Any], Array]


class Table(NamedTuple):
    """Series that are sampled together: `sample(state, time)` gives as many arrays, counted from
    the beginning of the run; it may give the same ones every time. On a rank that has none of what
    they are about, arrays are empty."""

    series: tuple[Series, ...]
    sample: Callable[[Any, int], Sequence[Array]]
    columns: tuple[Column, ...] = ()
    totals: tuple[Total, ...] = ()


@dataclass(frozen=True)
class Recording:
    """What is recorded: which of the model's tables, how often (in ticks), and where; and which of
    its logs."""

    directory: Path
    interval: int
    tables: tuple[str, ...]
    flush_s: float = 2.0
    attributes: Mapping[str, Any] = field(default_factory=dict)
    """Attributes of the file: where it comes from."""
    logs: tuple[str, ...] = ()


@entry
def increase(value: Any, before: Any, grown: Any) -> bool:
    """Set `grown` to `value - before`, and `before` to `value`. Returns whether it all fits."""
    fits = True
    for i in range(value.shape[0]):
        by = value[i] - before[i]
        before[i] = value[i]
        grown[i] = by
        fits = fits and grown[i] == by
    return fits


class Last(NamedTuple):
    """The last sample of a file: its time, or 0, and what was left to happen on this rank."""

    time: int
    left: int | None


class Before(Protocol):
    """What was recorded before of all that a rank records (`pdes.past.Past`)."""

    @property
    def redealt(self) -> bool:
        """Tells whether units were dealt to ranks in another way."""

    def times(self, cut: int) -> Array:
        """Returns the times of the samples up to a cut, in ticks."""

    def fill(self, name: str, rows: slice, out: Array) -> None:
        """Write some samples of a series into an array."""

    def restore(self, book: Book, cut: int) -> None:
        """Write the rows of logs before a cut into the logs of a new file."""

    def __enter__(self) -> Any: ...
    def __exit__(self, *_: object) -> None: ...


class Progress(NamedTuple):
    """The engine's own counters, at a sample."""

    events: int
    left: int
    wall_s: float


ENGINE = (
    Series("engine/events", ("rank",), "1", "events handled"),
    Series("engine/left", ("rank",), "1", "what is left to happen (`Ends.left`)", level=True),
    Series("engine/wall_s", ("rank",), "s", "wall-clock time spent", "f8"),
)
"""The series of every model. These depend on how many ranks there are, and on the machine."""


class Recorder:
    """The file of one rank."""

    def __init__(
        self, recording: Recording, tables: Mapping[str, Table], rank: int,
        about: Mapping[str, Any], tick: str = "ps", logs: Mapping[str, Log] | None = None,
    ) -> None:  # fmt: skip
        self._recording, self._tick = recording, tick
        self.book = Book(logs or {}, recording.logs, tick)
        self._tables = [tables[name] for name in recording.tables]
        self._series = [s for table in self._tables for s in table.series] + [*ENGINE]
        self._attributes = {
            **recording.attributes, **about, "rank": rank, "format": FORMAT,
            "tick": tick, f"interval_{tick}": recording.interval, "flush_s": recording.flush_s,
        }  # fmt: skip
        self.path = recording.directory / NAME.format(rank)
        self._file: Any = None
        self._place = self.path
        """The name that the file has now."""
        self._oldest = 0.0
        self._rows = 0
        self._times: Array = np.zeros(0, np.int64)
        self._before: list[Array] = []
        self._buffers: list[Array] = []
        self._sets: list[Kept] = []
        self._totals: list[tuple[Total, Any]] = []

    # -- beginnings

    def rehearse(self, state: Any) -> None:
        """Compile every kernel of a sample, on any state of the model."""
        for table in self._tables:
            table.sample(state, 0)
        for dtype in {(s.dtype[0] + "8", s.dtype) for s in self._series}:
            value, grown = (np.zeros(1, kind) for kind in dtype)
            increase(value, value.copy(), grown)

    def start(self, state: Any) -> None:
        """Create the file, under another name until it can be followed."""
        self._create(fresh_name(self.path), state)
        self._place.replace(self.path)
        self.take_place()

    def take_place(self) -> None:
        """Note that the file has its own name now."""
        self._place = self.path

    @property
    def series(self) -> list[str]:
        """Returns the names of all series."""
        return [series.name for series in self._series]

    def widths(self, state: Any) -> dict[str, int]:
        """Returns how many columns each series has on this rank, by name."""
        samples = [len(np.asarray(a)) for table in self._tables for a in table.sample(state, 0)]
        return dict(zip(self.series, samples + [1] * len(ENGINE), strict=True))

    def resume(self, state: Any, cut: int, past: Before) -> Last:
        """Go on after the samples up to `cut`; what is beyond them is left behind. The file is
        written anew, for one whose writer died cannot be opened for writing. Where units were dealt
        to ranks in another way, it keeps its other name (`pdes.turnover`)."""
        with ExitStack() as failed, past:
            failed.callback(self.close)
            self._create(fresh_name(self.path), state)
            times = past.times(cut)
            for first in range(0, len(times), self._rows):
                part = slice(first, min(first + self._rows, len(times)))
                self._filled = part.stop - part.start
                self._times[: self._filled] = times[part]
                for series, buffer, before in zip(
                    self._series, self._buffers, self._before, strict=True
                ):
                    rows = buffer[: self._filled]
                    past.fill(series.name, part, rows)
                    before += 0 if series.level else rows.sum(axis=0, dtype=before.dtype)
                self.flush()
            past.restore(self.book, cut)
            self._before[-1][:] = 0  # the clock starts anew
            last = Last(0, None)
            if len(times):
                left = np.zeros((1, 1), np.int64)
                past.fill("engine/left", slice(len(times) - 1, len(times)), left)
                last = Last(int(times[-1]), int(left[0, 0]))
            failed.pop_all()
        self.sync(cut)
        if not past.redealt:
            self._place.replace(self.path)
            self.take_place()
        return last

    def _create(self, path: Path, state: Any) -> None:
        self._base = self._filled = self._flushed = 0
        self._written, self._replaced, self._partial = 0, 0, 0
        samples = [np.asarray(a) for table in self._tables for a in table.sample(state, 0)]
        samples += [np.zeros(1, s.dtype) for s in ENGINE]
        self._before = [np.zeros(a.shape, a.dtype) for a in samples]
        size = sum(a.size * np.dtype(s.dtype).itemsize
                   for s, a in zip(self._series, samples, strict=True))  # fmt: skip
        self._rows = max(1, min(MOST_SAMPLES, BUFFER_BYTES // size))
        self._buffers = [np.zeros((self._rows, *a.shape), s.dtype)
                         for s, a in zip(self._series, samples, strict=True)]  # fmt: skip
        self._times = np.zeros(self._rows, np.int64)
        path.parent.mkdir(parents=True, exist_ok=True)
        columns = [(it, np.asarray(it.of(state))) for table in self._tables for it in table.columns]
        if disk.free_bytes(path.parent) < 2 * SLACK + sum(a.nbytes for _, a in columns):
            raise disk.full(path)
        self._place, self._status, self._fd = path, None, -1  # until they are there
        self._file = file = open_file(path, "w", libver="latest")
        file.attrs.update(self._attributes)
        self._time_set = file.create_dataset(
            f"time_{self._tick}", (0,), "i8", maxshape=(None,), chunks=(1024,), **CHECKED_SERIES
        )
        about = "when a sample was taken: the interval ends here"
        describe(self._time_set, ("time",), self._tick, about)
        self._status = checked_scalar(file, "status", np.int8(RUNNING))
        describe(self._status, (), "1", STATUS)
        self._digest = checked_scalar(file, DIGEST, np.array(b"", f"S{2 * DIGEST_BYTES}"))
        describe(self._digest, (), "1", "a hash over the final state of every agent, on all ranks")
        self._sets = [self._create_set(s, a) for s, a in zip(self._series, samples, strict=True)]
        for column, values in columns:
            made = file.create_dataset(column.name, data=values)
            describe(made, (column.dim,), column.unit, column.about)
        self._totals = [(it, self._create_total(it, state))
                        for table in self._tables for it in table.totals]  # fmt: skip
        self.book.create(file)
        seal(file)
        file.swmr_mode = True
        self._fd = os.open(path, os.O_RDWR)

    def _create_total(self, total: Total, state: Any) -> Any:
        zeros = np.asarray(total.of(state))
        made = self._file.create_dataset(
            total.name, zeros.shape, zeros.dtype, maxshape=(None,) * zeros.ndim,
            chunks=tuple(max(1, n) for n in zeros.shape), fillvalue=0,
            compression="gzip", compression_opts=1, shuffle=True,
        )  # fmt: skip
        describe(made, total.dims, total.unit, total.about)
        made.attrs["kind"] = TOTAL  # and it may grow, as far as its seal knows
        return made

    def _create_set(self, series: Series, sample: Array) -> Kept:
        shape = list(sample.shape)
        if series.tile:
            shape[-1] = min(shape[-1], series.tile)
        row = max(1, self._rows * int(np.prod(shape[1:])) * np.dtype(series.dtype).itemsize)
        shape[0] = min(shape[0], max(1, CHUNK_BYTES // row))
        made = self._file.create_dataset(
            series.name, (0, *sample.shape), series.dtype,
            maxshape=(None, *(n or None for n in sample.shape)),  # no chunk is as small as nothing
            chunks=(self._rows, *(max(1, n) for n in shape)), fillvalue=0,
            compression="gzip", compression_opts=1, shuffle=True,
        )  # fmt: skip
        describe(made, ("time", *series.dims), series.unit, series.about, series.level)
        return Kept(made.id, sample.shape, made.chunks)

    # -- on the way

    def take(self, state: Any, now: int, progress: Progress) -> None:
        """Take a sample, at a cut."""
        values = [*(a for table in self._tables for a in table.sample(state, now)), *progress]
        everything = zip(self._series, values, self._before, self._buffers, strict=True)
        for series, value, before, buffer in everything:
            row = buffer[self._filled]
            if series.level:
                row[...] = value
                continue
            if not increase(_flat(value), _flat(before), _flat(row)):
                raise Fault(f"{series.name}: what it grew by in one interval does not fit into "
                            f"{row.dtype}: a shorter metrics interval is needed")  # fmt: skip
        self._times[self._filled] = now
        self._filled += 1
        if self._filled == self._flushed + 1:
            self._oldest = time.perf_counter()
        self.book.final = now
        flush_s = self._recording.flush_s
        waited = time.perf_counter() - self._oldest
        if self._filled == self._rows or waited >= flush_s or self.book.due(flush_s):
            self.flush()

    @property
    def log_due(self) -> bool:
        """Tells whether the rows of logs have waited for long enough."""
        return self.book.due(self._recording.flush_s)

    def write_logs(self, final: int) -> None:
        """Write the rows of logs before this time, before which nothing more will happen."""
        self.book.final = final
        self.book.write(self._file, self._fd, self._place)

    def flush(self) -> None:
        """Hand what was sampled to the operating system, where a reader finds it."""
        self.book.write(self._file, self._fd, self._place)
        n = self._filled
        if n == self._flushed:
            return
        pieces = [piece for made, buffer in zip(self._sets, self._buffers, strict=True)
                  for piece in _pieces(made, buffer, self._base)]  # fmt: skip
        size = sum(len(data) for _, _, data in pieces)
        disk.reserve(self._fd, size + SLACK, self._place)
        length = self._base + n
        with disk.writing(self.path):
            for made in self._sets:
                made.low.set_extent((length, *made.shape))
            for made, offset, data in pieces:
                made.low.write_direct_chunk(offset, data)
            self._file.flush()
            self._time_set.resize(length, 0)
            self._time_set[self._base :] = self._times[:n]
            self._file.flush()
        self._flushed = n
        self._written += size
        self._replaced += self._partial
        self._partial = size if n < self._rows else 0
        if n == self._rows:
            self._base, self._filled, self._flushed = length, 0, 0
            for buffer in self._buffers:
                buffer[:] = 0

    def sync(self, now: int) -> None:
        """Force everything to the disk, at a cut."""
        self.book.final = now
        self.flush()
        os.fsync(self._fd)
        disk.require_there(self._fd, self._place)

    # -- ends

    def finish(self, status: int, now: int = 0, state: Any = None, digest: str = "") -> None:
        """End a run, or a part of it, at a cut. Whoever finds that it is complete finds its digest
        too. Where samples came slowly, so that most were flushed before their chunk was full,
        chunks were written several times, and HDF5 does not reuse such room while a file may be
        followed: then the file is packed, if there is room for both."""
        end = now + (status == COMPLETE)  # the books of a complete run are closed at its end
        self.book.final = max(self.book.final, end)
        self.flush()
        found = [(made, np.asarray(total.of(state))) for total, made in self._totals]
        disk.reserve(self._fd, sum(values.nbytes for _, values in found) + SLACK, self._place)
        with disk.writing(self.path):
            for made, values in found:
                if values.any():
                    made[...] = values
            self._digest[()] = digest.encode()
            self._file.flush()
        self.close(status)
        if self._replaced > WASTE * self._written:
            room = self._written - self._replaced + 4 * SLACK
            if disk.free_bytes(self.path.parent) > room:
                with suppress(OSError, RuntimeError):
                    repack(self.path)

    def close(self, status: int = FAILED) -> None:
        """Close the file of a run that failed without flushing, which may be what failed."""
        if self._file is None:
            return
        file, self._file = self._file, None
        # where writing has failed so will closing; the reason is being reported already
        with suppress(OSError, RuntimeError) if status == FAILED else nullcontext():
            if self._status is not None:
                self._status[()] = status
            file.close()
            if self._fd >= 0:
                os.close(self._fd)
        fresh_name(self.path).unlink(missing_ok=True)  # of a run that could not be resumed


def times_of(file: Any) -> Any:
    """Returns the dataset of the times of samples. It is called by the model's tick, which a file
    of an earlier version does not name: a picosecond."""
    return file[f"time_{file.attrs.get('tick', 'ps')}"]


def describe(made: Any, dims: Sequence[str], unit: str, about: str, level: bool = False) -> None:
    made.attrs["unit"], made.attrs["about"] = unit, about
    if len(dims) > 1:
        made.attrs["kind"] = "level" if level else "increase in the interval"
    for axis, name in enumerate(dims):
        made.dims[axis].label = name


class Kept(NamedTuple):
    """A dataset, by h5py's low-level interface, which is many times as quick; a sample's shape; and
    a chunk's, the first of which is how many samples it has."""

    low: Any
    shape: tuple[int, ...]
    chunk: tuple[int, ...]


Piece = tuple[Kept, tuple[int, ...], bytes]


def _pieces(made: Kept, buffer: Array, base: int) -> list[Piece]:
    """Yield the chunks of a buffer that are not all zeros: where they go, and their bytes,
    compressed."""
    chunk = made.chunk
    starts = [range(0, size, step) for size, step in zip(buffer.shape[1:], chunk[1:], strict=True)]
    pieces = []
    for corner in itertools.product(*starts):
        tile = (slice(None), *(slice(at, at + step)
                               for at, step in zip(corner, chunk[1:], strict=True)))  # fmt: skip
        part = buffer[tile]
        if not part.any():
            continue
        if part.shape != chunk:
            whole = np.zeros(chunk, buffer.dtype)
            whole[tuple(slice(0, size) for size in part.shape)] = part
            part = whole
        pieces.append((made, (base, *corner), _deflated(part)))
    return pieces


def _flat(values: Any) -> Array:
    return np.ascontiguousarray(values).reshape(-1)


def _deflated(part: Array) -> bytes:
    """Returns bytes as HDF5's shuffle and deflate filters would leave them."""
    flat = _flat(part)
    shuffled = np.ascontiguousarray(flat.view(np.uint8).reshape(-1, flat.itemsize).T)
    deflate = zlib.compressobj(1, zlib.DEFLATED, 15, 8, zlib.Z_RLE)
    return deflate.compress(shuffled.data) + deflate.flush()
