"""The event queue: a ring of buckets between two heaps.

A pending event is in one of three places, by its *day* (its time, less the last `shift` bits):

* **due**: its day has come. A binary heap, usually of two or three events.
* **coming**: its day is one of the next `buckets`. A linked list per day, unsorted.
* **far**: later than that. A binary heap, usually nearly empty.

Taking the next event pops the due heap; when that is empty the next occupied day becomes due. So an
event costs a list insertion and a heap of two, whatever the number pending; and if the days are
badly chosen (every event in one, or all of them far) it degrades to a heap, never worse. The width
of a day is retuned from the density actually met. None of this can be seen from outside: events
come out in the order of their rows (`pdes.events`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from pdes.arrays import doubled
from pdes.events import FOREVER, KEY, TIME, WORDS, A, B, Rows
from pdes.jit import entry, kernel, record

COUNT, CAPACITY, DUE, FAR, FREE, DAY, SHIFT, MASK, POPS = range(9)
"""Words of `Cells.ctl`: how many are pending, due, far; head of the free list; the day that is due;
the width of a day as a power of two; buckets - 1; events taken since the last tuning."""

BLOCK_BITS = 6
BLOCK = 1 << BLOCK_BITS
"""Buckets are skipped this many at a time where they are empty."""

MIN_BUCKETS, MAX_BUCKETS = BLOCK, 1 << 22
MAX_SHIFT = 56


@record
class Cells(NamedTuple):
    """The queue's arrays, as kernels see them. Each of the three places has room for everything;
    memory that is never touched is never allocated."""

    ctl: Any
    due: Any
    far: Any
    rows: Any
    link: Any
    heads: Any
    blocks: Any


@kernel
def _before(t: int, k: int, a: int, b: int, heap: Any, i: int) -> bool:
    """Tells whether this event comes before the one at heap[i]."""
    if t != heap[i, TIME]:
        return t < heap[i, TIME]  # type: ignore[no-any-return]
    if k != heap[i, KEY]:
        return k < heap[i, KEY]  # type: ignore[no-any-return]
    if a != heap[i, A]:
        return a < heap[i, A]  # type: ignore[no-any-return]
    return b < heap[i, B]  # type: ignore[no-any-return]


@kernel
def _put(rows: Any, i: int, t: int, k: int, a: int, b: int) -> None:
    rows[i, TIME] = t
    rows[i, KEY] = k
    rows[i, A] = a
    rows[i, B] = b


@kernel
def _copy(rows: Any, i: int, j: int) -> None:
    _put(rows, i, rows[j, TIME], rows[j, KEY], rows[j, A], rows[j, B])


@kernel
def _heap_push(heap: Any, size: int, t: int, k: int, a: int, b: int) -> None:
    i = size
    while i > 0:
        parent = (i - 1) >> 1
        if not _before(t, k, a, b, heap, parent):
            break
        _copy(heap, i, parent)
        i = parent
    _put(heap, i, t, k, a, b)


@kernel
def _heap_drop(heap: Any, size: int) -> None:
    """Remove the root of a heap of `size` events."""
    size -= 1
    if size == 0:
        return
    t, k, a, b = heap[size, TIME], heap[size, KEY], heap[size, A], heap[size, B]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        right = child + 1
        if right < size and _before(
            heap[right, TIME], heap[right, KEY], heap[right, A], heap[right, B], heap, child
        ):
            child = right
        if not _before(
            heap[child, TIME], heap[child, KEY], heap[child, A], heap[child, B], heap, size
        ):
            break
        _copy(heap, i, child)
        i = child
    _put(heap, i, t, k, a, b)


@kernel
def push(q: Cells, t: int, k: int, a: int, b: int) -> None:
    """Add an event. The caller has made sure that COUNT < CAPACITY."""
    ctl = q.ctl
    day = t >> ctl[SHIFT]
    ahead = day - ctl[DAY]
    if ahead <= 0:
        _heap_push(q.due, ctl[DUE], t, k, a, b)
        ctl[DUE] += 1
    elif ahead <= ctl[MASK]:
        slot = ctl[FREE]
        ctl[FREE] = q.link[slot]
        _put(q.rows, slot, t, k, a, b)
        bucket = day & ctl[MASK]
        first = q.heads[bucket]
        if first < 0:
            q.blocks[bucket >> BLOCK_BITS] += 1
        q.link[slot] = first
        q.heads[bucket] = slot
    else:
        _heap_push(q.far, ctl[FAR], t, k, a, b)
        ctl[FAR] += 1
    ctl[COUNT] += 1


@kernel
def _turn(q: Cells) -> None:
    """Make the day of the next event the due one: nothing is due and something is pending."""
    ctl = q.ctl
    mask = ctl[MASK]
    day = FOREVER
    if ctl[COUNT] > ctl[FAR]:
        day = ctl[DAY] + 1
        while q.heads[day & mask] < 0:
            if q.blocks[(day & mask) >> BLOCK_BITS] == 0:
                day += BLOCK - (day & (BLOCK - 1))
            else:
                day += 1
    if ctl[FAR] > 0:
        day = min(day, q.far[0, TIME] >> ctl[SHIFT])
    ctl[DAY] = day
    size = 0
    bucket = day & mask
    slot = q.heads[bucket]
    if slot >= 0:
        q.heads[bucket] = -1
        q.blocks[bucket >> BLOCK_BITS] -= 1
    while slot >= 0:
        rows = q.rows
        _heap_push(q.due, size, rows[slot, TIME], rows[slot, KEY], rows[slot, A], rows[slot, B])
        size += 1
        following = q.link[slot]
        q.link[slot] = ctl[FREE]
        ctl[FREE] = slot
        slot = following
    while ctl[FAR] > 0 and (q.far[0, TIME] >> ctl[SHIFT]) == day:
        _heap_push(q.due, size, q.far[0, TIME], q.far[0, KEY], q.far[0, A], q.far[0, B])
        size += 1
        _heap_drop(q.far, ctl[FAR])
        ctl[FAR] -= 1
    ctl[DUE] = size


@kernel
def next_time(q: Cells) -> int:
    """Returns the time of the next event, or FOREVER. After this that event is `q.due[0]`."""
    if q.ctl[DUE] == 0:
        if q.ctl[COUNT] == 0:
            return FOREVER
        _turn(q)
    return q.due[0, TIME]  # type: ignore[no-any-return]


@kernel
def drop(q: Cells) -> None:
    """Remove the next event, which `next_time` has just brought to `q.due[0]`."""
    ctl = q.ctl
    _heap_drop(q.due, ctl[DUE])
    ctl[DUE] -= 1
    ctl[COUNT] -= 1
    ctl[POPS] += 1


@entry
def _load(q: Cells, rows: Any) -> None:
    for i in range(rows.shape[0]):
        push(q, rows[i, TIME], rows[i, KEY], rows[i, A], rows[i, B])


@entry
def _dump(q: Cells, rows: Any) -> int:
    """Copy every pending event into `rows`, in no order."""
    n = 0
    for i in range(q.ctl[DUE]):
        _put(rows, n, q.due[i, TIME], q.due[i, KEY], q.due[i, A], q.due[i, B])
        n += 1
    for i in range(q.ctl[FAR]):
        _put(rows, n, q.far[i, TIME], q.far[i, KEY], q.far[i, A], q.far[i, B])
        n += 1
    for bucket in range(q.heads.shape[0]):
        slot = q.heads[bucket]
        while slot >= 0:
            _put(rows, n, q.rows[slot, TIME], q.rows[slot, KEY], q.rows[slot, A], q.rows[slot, B])
            n += 1
            slot = q.link[slot]
    return n


@entry
def _take(q: Cells, rows: Any) -> int:
    """Remove up to len(rows) events into `rows`, in order."""
    n = 0
    while n < rows.shape[0] and next_time(q) != FOREVER:
        _put(rows, n, q.due[0, TIME], q.due[0, KEY], q.due[0, A], q.due[0, B])
        drop(q)
        n += 1
    return n


@entry
def _peek(q: Cells) -> int:
    return next_time(q)


def _cells(capacity: int, shift: int, buckets: int, day: int) -> Cells:
    ctl = np.zeros(POPS + 1, np.int64)
    ctl[CAPACITY], ctl[SHIFT], ctl[MASK], ctl[DAY] = capacity, shift, buckets - 1, day
    return Cells(
        ctl=ctl,
        due=np.empty((capacity, WORDS), np.int64),
        far=np.empty((capacity, WORDS), np.int64),
        rows=np.empty((capacity, WORDS), np.int64),
        link=np.arange(1, capacity + 1, dtype=np.int32),
        heads=np.full(buckets, -1, np.int32),
        blocks=np.zeros(buckets >> BLOCK_BITS, np.int32),
    )


class EventQueue:
    """The queue for Python. `cells` is what kernels get; it changes identity on growth and tuning,
    so it must be read again before every call of a kernel."""

    def __init__(self, capacity: int = 16) -> None:
        self.cells = _cells(max(1, capacity), shift=10, buckets=MIN_BUCKETS, day=0)
        self._tuned_at = 0

    def __len__(self) -> int:
        return int(self.cells.ctl[COUNT])

    def next_time(self) -> int:
        return _peek(self.cells)

    def extend(self, rows: Rows) -> None:
        """Add events, and grow where there is no room."""
        self.reserve(len(rows))
        _load(self.cells, rows)

    def push(self, time: int, key: int = 0, a: int = 0, b: int = 0) -> None:
        self.extend(np.array([[time, key, a, b]], np.int64))

    def take(self, n: int) -> Rows:
        """Remove up to `n` events, in order."""
        rows = np.empty((min(n, len(self)), WORDS), np.int64)
        return rows[: _take(self.cells, rows)]

    def content(self) -> Rows:
        """Returns a copy of every pending event, in no order."""
        rows = np.empty((len(self), WORDS), np.int64)
        _dump(self.cells, rows)
        return rows

    def pending(self) -> Rows:
        """Returns a copy of every pending event, in order."""
        rows = self.content()
        return rows[np.lexsort(rows.T[::-1])]

    def reserve(self, n: int) -> None:
        """Make room for `n` more events."""
        ctl = self.cells.ctl
        capacity, needed = int(ctl[CAPACITY]), len(self) + n
        if needed > capacity:
            self._rebuild(doubled(capacity, needed), int(ctl[SHIFT]), int(ctl[MASK]) + 1)

    def start(self, now: int) -> None:
        """Choose days for the events that are pending, none of which has been taken yet."""
        rows = self.pending()
        if len(rows) > 1:
            self._tune((int(rows[-1, TIME]) - int(rows[0, TIME])) / len(rows))
        self._tuned_at = now

    def settle(self, now: int) -> None:
        """Retune where the days no longer fit the density of events. The engine calls this now and
        then."""
        ctl = self.cells.ctl
        pops = int(ctl[POPS])
        if pops > 1024 and pops > 4 * len(self):
            self._tune((now - self._tuned_at) / pops)
            self.cells.ctl[POPS] = 0
            self._tuned_at = now

    def _tune(self, gap: float) -> None:
        """Returns the width and number of days: two events per day, and days for twice as many
        events as are pending. This was measured best on PHOLD, and is flat around it, so only a
        factor of four is worth a rebuild."""
        ctl = self.cells.ctl
        shift = min(MAX_SHIFT, max(0, round(np.log2(max(2.0 * gap, 1.0)))))
        buckets = 1 << max(2 * len(self) - 1, 0).bit_length()
        buckets = min(MAX_BUCKETS, max(MIN_BUCKETS, buckets))
        now_buckets = int(ctl[MASK]) + 1
        if abs(shift - int(ctl[SHIFT])) >= 2 or not now_buckets / 4 < buckets < now_buckets * 4:
            self._rebuild(int(ctl[CAPACITY]), shift, buckets)

    def _rebuild(self, capacity: int, shift: int, buckets: int) -> None:
        rows = self.content()
        day = (int(rows[:, TIME].min()) >> shift) - 1 if len(rows) else 0
        pops = self.cells.ctl[POPS]
        self.cells = _cells(capacity, shift, buckets, day)
        self.cells.ctl[POPS] = pops
        _load(self.cells, rows)

    def check(self) -> None:
        """Check the queue's invariants: counts agree, due events precede coming and far ones."""
        ctl = self.cells.ctl
        rows = np.empty((len(self), WORDS), np.int64)
        found = _dump(self.cells, rows)
        days = rows[:, TIME] >> ctl[SHIFT]
        due, far = int(ctl[DUE]), int(ctl[FAR])
        assert found == len(self), f"{len(self)} events pending, {found} found"
        assert (days[:due] <= ctl[DAY]).all(), "an event is due before its day"
        assert (days[due:] > ctl[DAY]).all(), "an event's day has passed and it is not due"
        for name, heap, size in (("due", self.cells.due, due), ("far", self.cells.far, far)):
            for i in range(1, size):
                parent = tuple(heap[(i - 1) >> 1].tolist())
                assert parent <= tuple(heap[i].tolist()), f"the {name} heap is out of order at {i}"


def rows_of(events: Iterable[tuple[int, int, int, int]]) -> Rows:
    return np.array(list(events), np.int64).reshape(-1, WORDS)
