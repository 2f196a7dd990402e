"""What an event carries beyond its two words: a parcel, a row of words in this rank's pool.

A model that needs them says how many words (`Carries.parcel`) and which kinds of events bear one
(`Carries.bearers`): such an event's `a` is the parcel's number. Between events a parcel stays where
it is, so state may refer to it too, and its first word, `NEXT`, is free to chain parcels into
lists. When an event leaves for another rank its parcel travels with it and has another number
there; so numbers must decide nothing: (time, key) of a bearer is unique.

A handler calls `new_parcel` at most `Carries.takes` times, and `drop_parcel` when done with one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pdes.arrays import aligned, doubled
from pdes.events import Rows
from pdes.jit import kernel, record

NEXT = 0
"""The word of a parcel that chains it to another: the free list is such a chain."""
FREE, TAKEN = 0, 1
"""Words of `Pool.ctl`: the first free parcel, and how many are taken."""


@record
class Pool(NamedTuple):
    ctl: Any
    rows: Any


@kernel
def take(pool: Pool) -> int:
    """Returns the number of a new parcel, whose words are not cleared. The caller knows that there
    is room."""
    ctl = pool.ctl
    number = ctl[FREE]
    ctl[FREE] = pool.rows[number, NEXT]
    ctl[TAKEN] += 1
    return number  # type: ignore[no-any-return]


@kernel
def give(pool: Pool, number: int) -> None:
    ctl = pool.ctl
    pool.rows[number, NEXT] = ctl[FREE]
    ctl[FREE] = number
    ctl[TAKEN] -= 1


def new_pool(words: int) -> Pool:
    return Pool(np.zeros(2, np.int64), _rows(1, max(1, words)))


def reserved(pool: Pool, n: int) -> Pool:
    """Returns the pool with room for `n` more. The chain of free parcels ends at the first beyond
    the last, so that growing only has to continue the count."""
    capacity, needed = len(pool.rows), int(pool.ctl[TAKEN]) + n
    if needed <= capacity:
        return pool
    rows = _rows(doubled(capacity, needed), pool.rows.shape[1])
    rows[:capacity] = pool.rows
    return pool._replace(rows=rows)


def _rows(count: int, words: int) -> Rows:
    """Returns zeros, so that a checkpoint of parcels never used is the same every time; memory that
    is never touched but for its link is cheap."""
    rows = aligned((count, words))
    rows[:, NEXT] = np.arange(1, count + 1)
    return rows
