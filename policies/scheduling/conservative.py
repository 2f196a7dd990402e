"""Conservative backfilling: every waiting job has a planned start, and nobody delays it.

`Desk.times` and `Desk.room` are the **profile**: room[i] nodes are expected to be idle from
times[i] to times[i + 1], the last for ever. `Desk.whole` has the planned start of each job, behind
two words of the rule's.
"""

from __future__ import annotations

from typing import Any

from pdes.jit import kernel
from policies.scheduling.desk import (
    CHOSEN,
    FIRST,
    FREE,
    LAST,
    NODES,
    NUMBER,
    REPACED,
    RUNNING,
    TIME,
    Desk,
    end_of,
    expected_end,
    expected_time,
)

PLANS = 2
"""Where in `Desk.whole` the planned starts begin; -1: none yet."""


@kernel
def _point(desk: Desk, size: int, time: int) -> Any:
    """Returns where in the profile this time is, which is put there if it is not, and the size."""
    low, high = 0, size
    while high - low > 1:
        middle = (low + high) >> 1
        if desk.times[middle] <= time:
            low = middle
        else:
            high = middle
    if desk.times[low] == time:
        return low, size
    for i in range(size, low + 1, -1):
        desk.times[i], desk.room[i] = desk.times[i - 1], desk.room[i - 1]
    desk.times[low + 1], desk.room[low + 1] = time, desk.room[low]
    return low + 1, size + 1


@kernel
def _occupy(desk: Desk, size: int, begin: int, row: int, sign: int) -> int:
    """Take a job's nodes out of the profile from `begin` on for its expected time, or put them
    back. Returns the profile's size."""
    first, size = _point(desk, size, begin)
    last, size = _point(desk, size, end_of(begin, expected_time(desk, row)))
    for i in range(first, last):
        desk.room[i] -= sign * desk.jobs[row, NODES]
    return size  # type: ignore[no-any-return]


@kernel
def _earliest(desk: Desk, size: int, row: int) -> int:
    """Returns the earliest time at which a job has room for all of its expected time."""
    needed, time = desk.jobs[row, NODES], expected_time(desk, row)
    first = at = 0
    while at < size:
        if desk.room[at] < needed:
            first = at + 1
        elif at + 1 == size or desk.times[at + 1] >= end_of(desk.times[first], time):
            break
        at += 1
    return desk.times[first]  # type: ignore[no-any-return]


@kernel
def _profile(desk: Desk) -> int:
    """Write the profile of the running jobs alone. Returns its size."""
    desk.times[0], desk.room[0] = desk.ctl[TIME], desk.ctl[FREE]
    size = 1
    for i in range(desk.ctl[RUNNING]):
        row = desk.running[i]
        end = expected_end(desk, row)
        if end > desk.times[size - 1]:
            desk.times[size], desk.room[size] = end, desk.room[size - 1]
            size += 1
        desk.room[size - 1] += desk.jobs[row, NODES]
    return size


@kernel
def plan(desk: Desk, ended: bool) -> None:
    """Choose the jobs whose planned start is now, after planning anew what has to be."""
    ctl, plans, now = desk.ctl, desk.whole[PLANS:], desk.ctl[TIME]
    if ctl[FIRST] == ctl[LAST]:
        return
    size = _profile(desk)
    valid = ctl[REPACED] == 0
    for i in range(ctl[FIRST], ctl[LAST]):
        row = desk.queue[i]
        begin = plans[desk.jobs[row, NUMBER]]
        if begin < 0:
            continue
        if begin < now:
            valid = False
            break
        size = _occupy(desk, size, begin, row, 1)
    for i in range(size):
        valid = valid and desk.room[i] >= 0
    if not valid:  # a job has run for longer than requested, or all take another time than planned
        size = _profile(desk)
        for i in range(ctl[FIRST], ctl[LAST]):
            plans[desk.jobs[desk.queue[i], NUMBER]] = -1
    for i in range(ctl[FIRST], ctl[LAST]):
        row = desk.queue[i]
        begin = plans[desk.jobs[row, NUMBER]]
        if begin >= 0 and ended:  # nobody is later for it, and somebody may be earlier
            size = _occupy(desk, size, begin, row, -1)
            begin = _earliest(desk, size, row)
            size = _occupy(desk, size, begin, row, 1)
        plans[desk.jobs[row, NUMBER]] = begin
    for i in range(ctl[FIRST], ctl[LAST]):
        row = desk.queue[i]
        if plans[desk.jobs[row, NUMBER]] < 0:
            begin = _earliest(desk, size, row)
            size = _occupy(desk, size, begin, row, 1)
            plans[desk.jobs[row, NUMBER]] = begin
        if plans[desk.jobs[row, NUMBER]] == now:
            desk.chosen[ctl[CHOSEN]] = row
            ctl[CHOSEN] += 1
