"""Conservative backfilling: every waiting job has a planned start, and nobody delays it.

`Desk.whole` has the planned start of each job, behind two words: AFTER_RUNNING of `rules`, and
PACE. The profile (`profile`) is kept between passes.

**Which plans can be moved.** When a job has ended, plans are compressed: by arrival, each is moved
to the earliest time that there is. Most stay where they are, and are not tried at all. A plan that
could not be moved when it was last tried can be moved only where room has grown since, as a running
job has ended early or another plan has been moved. Then either

- the job has room just before its planned start, so that it can be moved by some time; or
- there is a **hole** before its planned start, as long as the job.

Whoever makes room (`_freed`) notes both: the jobs that are planned to start in that interval or at
its end, and have room before (TOUCHED); and for every **level** (room for 2^level nodes or more)
and every **kind** of length from when on a hole has become that long. `Desk.holes` has a table of
these for the last compression and one for this, between which every plan has been tried. A third
(FLOOR) says before when there is no room at all for a job of a level and a kind, so that a search
begins there. All three are cautious: a job that is tried in vain stays where it is.
"""

from __future__ import annotations

from pdes.jit import kernel
from policies.scheduling import desk as w
from policies.scheduling.desk import (
    Desk,
    end_of,
    expected_end,
    expected_time,
    heapify,
    place_in,
    pop,
)
from policies.scheduling.profile import add, advance, clear, first_fit, leave, room_before, seek

PACE = 1
"""Which word of `Desk.whole` tells of the pace for which plans were made. Only where it is asked
through a view is it noted (`compiled`): a model tells by REPACED when the pace changes."""
PLANS = 2
"""Where in `Desk.whole` the planned starts begin; -1: none yet."""
FINENESS = 3
"""There are 2^FINENESS kinds of lengths for every power of two."""
FLOOR = 2
"""The table of `Desk.holes` before whose times there is no room, whenever it came to be."""


@kernel
def _level(number: int) -> int:
    """Returns the power of two that a number is no smaller than; 0 for 0."""
    found, shift = 0, 32
    while shift > 0:
        if number >> shift > 0:
            number >>= shift
            found += shift
        shift >>= 1
    return found


@kernel
def _kind(length: int) -> int:
    """Returns the kind of a length: no smaller for a longer one."""
    level = _level(length)
    shift = max(0, level - FINENESS)
    return (shift << FINENESS) + (length >> shift)


@kernel
def _raise_floor(desk: Desk, row: int, length: int, time: int) -> None:
    """Note that there is no room before this time for any job with as many nodes and as long."""
    floor, nodes = desk.holes[FLOOR], desk.jobs[row, w.NODES]
    last = _kind(desk.marks[w.LONGEST])
    level, least = _level(nodes), _kind(length)
    if 1 << level < nodes:
        level += 1
    if _kind(length - 1) == least:
        least += 1
    while level < floor.shape[0] and least <= last and floor[level, least] < time:
        kind = least
        while kind <= last and floor[level, kind] < time:
            floor[level, kind] = time
            kind += 1
        level += 1


@kernel
def _freed(desk: Desk, begin: int, end: int) -> None:
    """Note whose plans may be moved because room has grown in this interval."""
    blocks, held, marks = desk.blocks, desk.held, desk.marks
    left, left_place = seek(desk, begin)
    right, right_place = left, left_place
    room = desk.room[blocks[left, w.PLACE] + left_place] + blocks[left, w.ADD]
    most, until = room, end
    while True:
        right_place += 1
        if right_place == blocks[right, w.SIZE]:
            right, right_place = right + 1, 0
            if right == marks[w.BLOCKS]:
                until = w.NEVER
                break
        one = blocks[right, w.PLACE] + right_place
        until = desk.times[one]
        if until > end:
            break
        row = desk.heads[one]
        while row >= 0:
            if desk.jobs[row, w.NODES] <= room:
                held[row, w.TOUCHED] = 1
            row = held[row, w.NEXT]
        if until == end:
            break
        room = desk.room[one] + blocks[right, w.ADD]
        most = max(most, room)
    marks[w.GROWN + marks[w.TURN]] = 1
    table = desk.holes[marks[w.TURN]]
    longest, steps = marks[w.LONGEST], 0
    level = _level(most)
    while level >= marks[w.LEAST] and most > 0:
        needed = 1 << level
        since = desk.times[blocks[left, w.PLACE] + left_place]
        while (
            steps < w.BLOCK
            and begin - since < longest
            and room_before(desk, left, left_place) >= needed
        ):
            if left_place == 0:
                left -= 1
                left_place = blocks[left, w.SIZE]
            left_place -= 1
            since = desk.times[blocks[left, w.PLACE] + left_place]
            steps += 1
        while (
            steps < w.BLOCK
            and right < marks[w.BLOCKS]
            and until - since < longest
            and desk.room[blocks[right, w.PLACE] + right_place] + blocks[right, w.ADD] >= needed
        ):
            right_place += 1
            if right_place == blocks[right, w.SIZE]:
                right, right_place = right + 1, 0
            until = w.NEVER
            if right < marks[w.BLOCKS]:
                until = desk.times[blocks[right, w.PLACE] + right_place]
            steps += 1
        if steps == w.BLOCK:  # too far to go: there may be room from now on for all
            since, until = 0, w.NEVER
        length = longest if until == w.NEVER else min(until - since, longest)  # also for ever
        kind = longest_like = _kind(length)
        while kind >= 0 and table[level, kind] > since:
            table[level, kind] = since
            kind -= 1
        kind = longest_like
        while kind >= 0 and desk.holes[FLOOR, level, kind] > since:
            desk.holes[FLOOR, level, kind] = since
            kind -= 1
        level -= 1


@kernel
def _waits(desk: Desk, row: int) -> bool:
    """Tells whether a job is in the queue."""
    at = place_in(desk.queue, desk.ctl[w.FIRST], desk.ctl[w.LAST], row)
    return at < desk.ctl[w.LAST] and desk.queue[at] == row  # type: ignore[no-any-return]


@kernel
def _set_plan(desk: Desk, row: int, begin: int) -> None:
    desk.held[row, w.PLAN] = desk.whole[PLANS + desk.jobs[row, w.NUMBER]] = begin


@kernel
def _update(desk: Desk) -> bool:
    """Have the profile be that of the running jobs and of all plans. Where that has just to be
    kept up, jobs that have ended make room. Where it cannot, it is built anew; and if what was
    planned cannot be kept, without any plan: a job has run for longer than requested, or the pace
    of jobs has changed. Returns whether it was built anew."""
    ctl, jobs, held, marks, now = desk.ctl, desk.jobs, desk.held, desk.marks, desk.ctl[w.TIME]
    effort = 0 if marks[w.BUILT] != 0 and advance(desk, now) else 1
    if ctl[w.REPACED] != 0:  # all take another time than planned
        effort = 2
    while True:
        count, fine = marks[w.HOLDERS], True
        if effort > 0:
            count = ctl[w.RUNNING] + (ctl[w.LAST] - ctl[w.FIRST])
            room = ctl[w.FREE]
            for i in range(ctl[w.RUNNING]):
                room += jobs[desk.running[i], w.NODES]
            clear(desk, now, room)
            desk.holes[:] = 0  # everybody has to be tried
            marks[w.GROWN + marks[w.TURN]] = 1
            marks[w.LEAST], marks[w.LONGEST] = w.NEVER, 0
        marks[w.HOLDERS] = 0
        for i in range(count):
            begin, plan_of = now, -1
            if effort == 0:
                row = held[i, w.HOLDER]
                end, nodes = held[row, w.FINISH], jobs[row, w.NODES]
                if jobs[row, w.SINCE] >= 0:
                    begin = expected_end(desk, row)
                    fine = fine and begin <= end
                    held[marks[w.HOLDERS], w.HOLDER] = row
                    marks[w.HOLDERS] += 1
                    held[row, w.FINISH] = begin
                else:
                    fine = fine and not _waits(desk, row)
            elif i < ctl[w.RUNNING]:
                row = desk.running[i]
                end, nodes = expected_end(desk, row), -jobs[row, w.NODES]
                held[marks[w.HOLDERS], w.HOLDER] = row
                marks[w.HOLDERS] += 1
                held[row, w.FINISH] = end
            else:
                row = desk.queue[ctl[w.FIRST] + i - ctl[w.RUNNING]]
                if effort > 1:
                    _set_plan(desk, row, -1)
                begin = held[row, w.PLAN] = desk.whole[PLANS + jobs[row, w.NUMBER]]
                held[row, w.TOUCHED] = 1
                if begin < 0:
                    continue
                plan_of, nodes = row, -jobs[row, w.NODES]
                end = held[row, w.FINISH] = _measure(desk, row, begin)
                fine = fine and begin >= now
            if not fine:
                break
            if begin < end or plan_of >= 0:
                add(desk, begin, end, nodes, plan_of)
                if effort == 0:
                    _freed(desk, begin, end)
        if effort == 0:
            fine = fine and marks[w.HOLDERS] == ctl[w.RUNNING]
        elif fine:
            for at in range(marks[w.BLOCKS]):
                for i in range(desk.blocks[at, w.SIZE]):
                    room = desk.room[desk.blocks[at, w.PLACE] + i] + desk.blocks[at, w.ADD]
                    fine = fine and room >= 0
        if fine:
            break
        effort += 1
    marks[w.BUILT] = 1
    return effort > 0


@kernel
def _measure(desk: Desk, row: int, begin: int) -> int:
    """Note of which kind a job is. Returns when it will have ended that begins then."""
    marks, length = desk.marks, expected_time(desk, row)
    level = _level(desk.jobs[row, w.NODES])
    desk.held[row, w.KIND] = level * w.KINDS + _kind(length)
    marks[w.LEAST] = min(marks[w.LEAST], level)
    if length > marks[w.LONGEST]:
        marks[w.LONGEST] = length
        desk.holes[FLOOR] = 0  # which has no kinds beyond the longest, and no gap up to it
    return end_of(begin, length)


@kernel
def _begin_turn(desk: Desk) -> None:
    """Forget the holes that came before the last compression: everybody has been tried since."""
    marks = desk.marks
    marks[w.TURN] = 1 - marks[w.TURN]
    marks[w.GROWN + marks[w.TURN]] = 0
    desk.holes[marks[w.TURN]] = w.NEVER + 1


@kernel
def _earlier(desk: Desk, row: int) -> int:
    """Returns the earliest time to which a plan can be moved by less than the job takes: that from
    which on there is room up to its planned start."""
    needed, blocks = desk.jobs[row, w.NODES], desk.blocks
    at, place = seek(desk, desk.held[row, w.PLAN])
    while room_before(desk, at, place) >= needed:
        if place == 0:
            at -= 1
            place = blocks[at, w.SIZE]
        place -= 1
    return desk.times[blocks[at, w.PLACE] + place]  # type: ignore[no-any-return]


@kernel
def _move(desk: Desk, row: int, begin: int, finish: int) -> None:
    """Give a job another planned start, or its first."""
    held, nodes = desk.held, desk.jobs[row, w.NODES]
    before, released = held[row, w.PLAN], held[row, w.FINISH]
    freed = max(before, finish)  # from when on, if it had a plan
    if before >= 0:
        leave(desk, row, before)
    for step in range(2):
        if step == 0:
            add(desk, begin, finish if before < 0 else min(before, finish), -nodes, row)
        elif before >= 0:
            add(desk, freed, released, nodes, -1)
    _set_plan(desk, row, begin)
    held[row, w.FINISH] = finish
    if before >= 0 and freed < released:
        _freed(desk, freed, released)


@kernel
def plan(desk: Desk, ended: bool) -> None:
    """Choose the jobs whose planned start is now, after planning anew what has to be."""
    ctl, held, marks, now = desk.ctl, desk.held, desk.marks, desk.ctl[w.TIME]
    if ctl[w.FIRST] == ctl[w.LAST]:
        marks[w.BUILT] = 0
        return
    if marks[w.BUILT] == 0 and _start_all(desk):
        return
    if ended and marks[w.BUILT] != 0:
        _begin_turn(desk)
    built = _update(desk)
    depth, there = desk.rule[w.DEPTH], 0  # those with a plan who do not start now
    for new in range(2):  # first those who have a plan, then those who have none
        first = ctl[w.FIRST]
        if new == 1 and depth > 0:
            there = -_starting(desk)
        if new == 0:
            if not ended or marks[w.GROWN] + marks[w.GROWN + 1] == 0:
                continue
        elif not built:  # and so these are the last in the queue
            first = _unplanned(desk)
            there += first - ctl[w.FIRST]
        for i in range(first, ctl[w.LAST]):
            row = desk.queue[i]
            before = held[row, w.PLAN]
            if (before < 0) != (new == 1):
                if new == 0 and not built:
                    break  # so have all that follow
                there += new
                continue
            if new == 1 and depth > 0 and there >= depth:
                break
            since = now
            begin, limit = before, before
            if new == 0:
                level, kind = held[row, w.KIND] // w.KINDS, held[row, w.KIND] % w.KINDS
                since = min(desk.holes[0, level, kind], desk.holes[1, level, kind])
                since = max(since, desk.holes[FLOOR, level, kind])
                if since >= before and held[row, w.TOUCHED] == 0:
                    continue
                held[row, w.TOUCHED] = 0
            else:
                limit = w.NEVER + 1
                _measure(desk, row, 0)
                level, kind = held[row, w.KIND] // w.KINDS, held[row, w.KIND] % w.KINDS
                since = desk.holes[FLOOR, level, kind]
            needed, length = desk.jobs[row, w.NODES], expected_time(desk, row)
            if since < limit:
                begin = first_fit(desk, max(since, now), needed, length, limit)
                _raise_floor(desk, row, length, begin)
            if begin == before:
                begin = _earlier(desk, row)
            if begin == before:
                continue
            _move(desk, row, begin, end_of(begin, length))
            if new == 1 and begin > now:
                there += 1
    _choose(desk)


@kernel
def _start_all(desk: Desk) -> bool:
    """Have all waiting jobs start now, if none has a plan and all of them have room: it stays, as
    nobody has a plan who would take it. Returns whether they do; no profile is built then."""
    ctl, left = desk.ctl, desk.ctl[w.FREE]
    for i in range(ctl[w.FIRST], ctl[w.LAST]):
        row = desk.queue[i]
        left -= desk.jobs[row, w.NODES]
        if left < 0 or desk.whole[PLANS + desk.jobs[row, w.NUMBER]] >= 0:
            return False
    for i in range(ctl[w.FIRST], ctl[w.LAST]):
        _set_plan(desk, desk.queue[i], ctl[w.TIME])
        desk.chosen[i - ctl[w.FIRST]] = desk.queue[i]
    ctl[w.CHOSEN] = ctl[w.LAST] - ctl[w.FIRST]
    return True


@kernel
def _unplanned(desk: Desk) -> int:
    """Returns where in the queue the jobs without a plan begin: behind all that have one."""
    low, high = desk.ctl[w.FIRST], desk.ctl[w.LAST]
    while low < high:
        middle = (low + high) >> 1
        if desk.held[desk.queue[middle], w.PLAN] < 0:
            high = middle
        else:
            low = middle + 1
    return low  # type: ignore[no-any-return]


@kernel
def _starting(desk: Desk) -> int:
    """Returns how many jobs are planned to start now."""
    count, row = 0, desk.heads[desk.blocks[0, w.PLACE]]
    while row >= 0:
        count += 1
        row = desk.held[row, w.NEXT]
    return count


@kernel
def _choose(desk: Desk) -> None:
    """Choose the jobs that are planned to start now, by arrival: they run, for all that the profile
    knows."""
    size, first = 0, desk.blocks[0, w.PLACE]
    row = desk.heads[first]
    while row >= 0:
        desk.heap[size], desk.keys[row] = row, row
        size += 1
        row = desk.held[row, w.NEXT]
    desk.heads[first] = -1
    heapify(desk.heap, size, desk.keys)
    while size > 0:
        row = pop(desk.heap, size, desk.keys)
        size -= 1
        desk.chosen[desk.ctl[w.CHOSEN]] = row
        desk.ctl[w.CHOSEN] += 1
        desk.held[desk.marks[w.HOLDERS], w.HOLDER] = row
        desk.marks[w.HOLDERS] += 1
