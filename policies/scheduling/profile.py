"""The profile of conservative backfilling: how many nodes are expected to be idle from when on.

It is a sorted list of **points** (a time, the **room** from it to the next point, and the waiting
jobs that are planned to start there), kept in **blocks** of at most BLOCK points, with a directory
of them. So a point is found by bisection, is put in or taken out by moving no more than a block,
and a job's nodes are taken from a whole block at once. Each block knows a bound of its room, so
that a search for room passes over a full one.

A point stays only as long as the room changes at it or a job is planned to start there. All of it
follows from the running jobs and the plans: it is kept between passes to save the work of building
it, and is no part of what a discipline remembers.
"""

from __future__ import annotations

from typing import Any

from pdes.jit import kernel
from policies.scheduling import desk as w
from policies.scheduling.desk import Desk, end_of


@kernel
def seek(desk: Desk, time: int) -> Any:
    """Returns the block, and the place in it, of the last point that is no later than this."""
    blocks, times = desk.blocks, desk.times
    low, high = 0, desk.marks[w.BLOCKS]
    while high - low > 1:
        middle = (low + high) >> 1
        if blocks[middle, w.FROM] <= time:
            low = middle
        else:
            high = middle
    at, base = low, blocks[low, w.PLACE]
    low, high = 0, blocks[at, w.SIZE]
    while high - low > 1:
        middle = (low + high) >> 1
        if times[base + middle] <= time:
            low = middle
        else:
            high = middle
    return at, low


@kernel
def clear(desk: Desk, now: int, room: int) -> None:
    """Begin a profile in which this room is there for ever."""
    marks, blocks = desk.marks, desk.blocks
    marks[w.BLOCKS], marks[w.USED], marks[w.SPARES] = 1, 1, 0
    blocks[0, w.FROM], blocks[0, w.PLACE], blocks[0, w.SIZE] = now, 0, 1
    blocks[0, w.MOST], blocks[0, w.ADD] = room, 0
    desk.times[0], desk.room[0], desk.heads[0] = now, room, -1


@kernel
def _move_blocks(desk: Desk, at: int, by: int) -> None:
    """Move the blocks from this one on by so many places in the directory."""
    blocks, count = desk.blocks, desk.marks[w.BLOCKS]
    for i in range(count - at):
        one = at + i if by < 0 else count - 1 - i
        for word in range(w.SPARE):
            blocks[one + by, word] = blocks[one, word]
    desk.marks[w.BLOCKS] = count + by


@kernel
def _move_points(desk: Desk, source: int, to: int, count: int) -> None:
    """Copy points to other places, which may overlap with theirs."""
    times, room, heads = desk.times, desk.room, desk.heads
    if to < source:
        for i in range(count):
            times[to + i] = times[source + i]
            room[to + i] = room[source + i]
            heads[to + i] = heads[source + i]
    else:
        for i in range(count - 1, -1, -1):
            times[to + i] = times[source + i]
            room[to + i] = room[source + i]
            heads[to + i] = heads[source + i]


@kernel
def _put(desk: Desk, at: int, place: int, time: int) -> Any:
    """Put a point behind this one, with the same room. Returns where it is."""
    marks, blocks = desk.marks, desk.blocks
    if blocks[at, w.SIZE] == w.BLOCK:
        if marks[w.SPARES] > 0:
            marks[w.SPARES] -= 1
            new = blocks[marks[w.SPARES], w.SPARE]
        else:
            new = marks[w.USED] * w.BLOCK
            marks[w.USED] += 1
        _move_blocks(desk, at, 1)
        half = w.BLOCK // 2
        _move_points(desk, blocks[at, w.PLACE] + half, new, w.BLOCK - half)
        blocks[at, w.SIZE], blocks[at + 1, w.SIZE] = half, w.BLOCK - half
        blocks[at + 1, w.PLACE], blocks[at + 1, w.FROM] = new, desk.times[new]
        if place >= half:
            at, place = at + 1, place - half
    one = blocks[at, w.PLACE] + place
    _move_points(desk, one + 1, one + 2, blocks[at, w.SIZE] - place - 1)
    desk.times[one + 1], desk.room[one + 1], desk.heads[one + 1] = time, desk.room[one], -1
    blocks[at, w.SIZE] += 1
    return at, place + 1


@kernel
def _drop(desk: Desk, at: int, place: int) -> None:
    """Take out a point, which is not the only one. Where a block and a neighbour of it have no more
    than FULLEST points together, or one has none, they become one."""
    marks, blocks = desk.marks, desk.blocks
    one, left = blocks[at, w.PLACE] + place, blocks[at, w.SIZE] - 1
    _move_points(desk, one + 1, one, left - place)
    blocks[at, w.SIZE] = left
    if place == 0 and left > 0:
        blocks[at, w.FROM] = desk.times[one]
    if at + 1 == marks[w.BLOCKS] or (at > 0 and left + blocks[at + 1, w.SIZE] > w.FULLEST):
        at -= 1  # its other neighbour
    if at >= 0 and at + 1 < marks[w.BLOCKS]:
        mine, other = blocks[at, w.SIZE], blocks[at + 1, w.SIZE]
        if mine + other <= w.FULLEST or mine == 0 or other == 0:
            if mine == 0:
                blocks[at, w.FROM] = blocks[at + 1, w.FROM]
            shift = blocks[at + 1, w.ADD] - blocks[at, w.ADD]
            to, source = blocks[at, w.PLACE] + mine, blocks[at + 1, w.PLACE]
            _move_points(desk, source, to, other)
            for i in range(other):
                desk.room[to + i] += shift
            blocks[at, w.SIZE] = mine + other
            blocks[at, w.MOST] = max(blocks[at, w.MOST], blocks[at + 1, w.MOST] + shift)
            _move_blocks(desk, at + 2, -1)
            blocks[marks[w.SPARES], w.SPARE] = source
            marks[w.SPARES] += 1


@kernel
def room_before(desk: Desk, at: int, place: int) -> int:
    """Returns the room just before a point; less than any other at the first."""
    if place == 0:
        if at == 0:
            return -w.NEVER
        at -= 1
        place = desk.blocks[at, w.SIZE]
    return desk.room[desk.blocks[at, w.PLACE] + place - 1] + desk.blocks[at, w.ADD]  # type: ignore[no-any-return]


@kernel
def leave(desk: Desk, row: int, begin: int) -> None:
    """Take a job from those that are planned to start then."""
    held = desk.held
    before, after = held[row, w.PREVIOUS], held[row, w.NEXT]
    if after >= 0:
        held[after, w.PREVIOUS] = before
    if before >= 0:
        held[before, w.NEXT] = after
    else:
        at, place = seek(desk, begin)
        desk.heads[desk.blocks[at, w.PLACE] + place] = after


@kernel
def add(desk: Desk, begin: int, end: int, nodes: int, row: int) -> None:
    """Add nodes to the room of an interval; where fewer than 0, a job takes them. The job of this
    row, if it is not -1, is entered as one that is planned to start at its beginning."""
    blocks, held, times = desk.blocks, desk.held, desk.times
    at = place = 0
    for side in range(2):  # the end first: `at` and `place` are those of the beginning then
        time = begin if side == 1 else end
        at, place = seek(desk, time)
        if times[blocks[at, w.PLACE] + place] != time:
            at, place = _put(desk, at, place, time)
    if row >= 0:
        one = blocks[at, w.PLACE] + place
        after = desk.heads[one]
        held[row, w.NEXT], held[row, w.PREVIOUS] = after, -1
        desk.heads[one] = row
        if after >= 0:
            held[after, w.PREVIOUS] = row
    first, first_place, count = at, place, desk.marks[w.BLOCKS]
    while at < count:
        base, size = blocks[at, w.PLACE], blocks[at, w.SIZE]
        if place == 0 and at + 1 < count and blocks[at + 1, w.FROM] <= end:
            blocks[at, w.ADD] += nodes
        else:
            most = blocks[at, w.MOST]
            while place < size and times[base + place] < end:
                desk.room[base + place] += nodes
                most = max(most, desk.room[base + place])
                place += 1
            blocks[at, w.MOST] = most
            if place < size:  # the end
                break
        at += 1
        place = 0
    for side in range(2):
        if side == 1:
            at, place = first, first_place
            if (
                at >= desk.marks[w.BLOCKS]
                or place >= blocks[at, w.SIZE]
                or times[blocks[at, w.PLACE] + place] != begin
            ):  # blocks have become one
                at, place = seek(desk, begin)
        one = blocks[at, w.PLACE] + place
        if (
            desk.heads[one] < 0
            and room_before(desk, at, place) == desk.room[one] + blocks[at, w.ADD]
        ):
            _drop(desk, at, place)


@kernel
def first_fit(desk: Desk, begin: int, needed: int, length: int, limit: int) -> int:
    """Returns the first time from the point at or before `begin` on at which so many nodes are idle
    for so long; `limit` where it is no earlier than that."""
    blocks, count = desk.blocks, desk.marks[w.BLOCKS]
    at, place = seek(desk, begin)
    first, finish = -1, 0
    while at < count:
        base, size, add_ = blocks[at, w.PLACE], blocks[at, w.SIZE], blocks[at, w.ADD]
        if blocks[at, w.MOST] + add_ < needed:
            if first >= 0 and blocks[at, w.FROM] >= finish:
                return first
            first = -1
            if blocks[at, w.FROM] >= limit:
                return limit
        else:
            most, whole = 0, place == 0
            while place < size:
                time, room = desk.times[base + place], desk.room[base + place]
                if first >= 0 and time >= finish:
                    return first
                if room + add_ < needed:
                    first = -1
                elif first < 0:
                    first, finish = time, end_of(time, length)
                    if time >= limit:
                        return limit
                if whole:
                    most = max(most, room)
                place += 1
            if whole:
                blocks[at, w.MOST] = most
        at += 1
        place = 0
    return first  # type: ignore[no-any-return]


@kernel
def advance(desk: Desk, now: int) -> bool:
    """Have the profile begin now. Returns False if a plan was to begin before."""
    marks, blocks = desk.marks, desk.blocks
    last, place = seek(desk, now)
    if blocks[0, w.FROM] > now:
        return False
    for at in range(last + 1):
        base = blocks[at, w.PLACE]
        for i in range(blocks[at, w.SIZE] if at < last else place):
            if desk.heads[base + i] >= 0:
                return False
    base = blocks[last, w.PLACE]
    if desk.times[base + place] < now and desk.heads[base + place] >= 0:
        return False
    for at in range(last):
        blocks[marks[w.SPARES], w.SPARE] = blocks[at, w.PLACE]
        marks[w.SPARES] += 1
    if last > 0:
        _move_blocks(desk, last, -last)
    _move_points(desk, base + place, base, blocks[0, w.SIZE] - place)
    blocks[0, w.SIZE] -= place
    blocks[0, w.FROM] = desk.times[base] = now
    return True
