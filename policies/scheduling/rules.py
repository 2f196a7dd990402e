"""The compiled disciplines: an order in which waiting jobs are tried, and a rule for when one does
not fit.

Everything here is arithmetic on a `Desk`; `choose` is the one way in.
"""

from __future__ import annotations

from typing import Any

from pdes.jit import entry, kernel
from policies.scheduling import desk as w
from policies.scheduling.conservative import plan
from policies.scheduling.desk import Desk, end_of, expected_end, expected_time, heapify, pop
from policies.scheduling.usage import charge, note_held, settle, usage_of

ORDERS = ("arrival", "small", "large", "short", "long", "wfp", "usage", "newest")
ARRIVAL, SMALL, LARGE, SHORT, LONG, WFP, USAGE, NEWEST = range(len(ORDERS))
"""The orders: by arrival; fewest, most nodes first; least, most requested time first; by WFP's
score; by the user's decayed usage; newest first."""

AFTER_RUNNING, AFTER_WAITING = 0, 1
"""Words of `Desk.whole` for rules that have to know what has happened since the last pass: how many
jobs ran and waited after it."""


@kernel
def _key(desk: Desk, row: int) -> Any:
    """Returns what an order goes by: the least comes first."""
    order, job, now = desk.rule[w.ORDER], desk.jobs[row], desk.ctl[w.TIME]
    if order == SMALL:
        return float(job[w.NODES])
    if order == LARGE:
        return -float(job[w.NODES])
    if order == WFP:
        ratio = (now - job[w.SUBMIT]) / job[w.REQUESTED]
        return -(ratio * ratio * ratio * job[w.NODES])
    if order == USAGE:
        return usage_of(desk, job[w.USER])
    if order == NEWEST:
        return -float(row)
    left = float(job[w.REQUESTED])
    if desk.rule[w.RULE] == w.SERVE_DEPARTURES and job[w.REQUESTED] < w.NEVER:
        left -= desk.served[row]
    return -left if order == LONG else left


@kernel
def _begin(desk: Desk, with_running: bool) -> int:
    """Prepare the order, unless it is that of the queue. Returns the size of the heap."""
    first, size = desk.ctl[w.FIRST], desk.ctl[w.LAST] - desk.ctl[w.FIRST]
    for i in range(size):
        row = desk.queue[first + i]
        desk.heap[i] = row
        desk.keys[row] = _key(desk, row)
    if with_running:
        for i in range(desk.ctl[w.RUNNING]):
            row = desk.running[i]
            desk.heap[size + i] = row
            desk.keys[row] = _key(desk, row)
        size += desk.ctl[w.RUNNING]
    heapify(desk.heap, size, desk.keys)
    return size  # type: ignore[no-any-return]


@kernel
def _take(desk: Desk, row: int) -> None:
    n = desk.ctl[w.CHOSEN]
    desk.chosen[n] = row
    desk.ctl[w.CHOSEN] = n + 1


@kernel
def _shadow(desk: Desk, free: int, needed: int) -> Any:
    """Returns when so many nodes are expected to be free, given the running and the chosen jobs,
    and how many more will be free then. `times` and `room` serve as a sorted list of the chosen."""
    now, chosen = desk.ctl[w.TIME], desk.ctl[w.CHOSEN]
    for i in range(chosen):  # sorted by insertion: they are few
        end, size, at = (
            end_of(now, expected_time(desk, desk.chosen[i])),
            desk.jobs[desk.chosen[i], w.NODES],
            i,
        )
        while at > 0 and desk.times[at - 1] > end:
            desk.times[at], desk.room[at] = desk.times[at - 1], desk.room[at - 1]
            at -= 1
        desk.times[at], desk.room[at] = end, size
    i = j = 0
    when = now
    while i < desk.ctl[w.RUNNING] or j < chosen:
        end = expected_end(desk, desk.running[i]) if i < desk.ctl[w.RUNNING] else desk.times[j]
        if j < chosen and desk.times[j] < end:
            end = desk.times[j]
        if free >= needed and end > when:
            break
        when = end
        if i < desk.ctl[w.RUNNING] and expected_end(desk, desk.running[i]) == end:
            free += desk.jobs[desk.running[i], w.NODES]
            i += 1
        else:
            free += desk.room[j]
            j += 1
    return when, free - needed


@kernel
def _passes(desk: Desk, row: int, free: int, when: int, spare: int) -> bool:
    """Tells whether a job may pass the first that does not fit, whose shadow time and extra nodes
    these are."""
    rule, needed = desk.rule[w.RULE], desk.jobs[row, w.NODES]
    if needed > free:
        return False
    if rule not in (w.EASY, w.EASY_STRICT):
        return True
    end = end_of(desk.ctl[w.TIME], expected_time(desk, row))
    if rule == w.EASY:
        return end <= when or needed <= spare  # type: ignore[no-any-return]
    return end < when  # type: ignore[no-any-return]


@kernel
def _narrow(desk: Desk, size: int, free: int, when: int, spare: int) -> int:
    """Keep in the heap only those who may pass, so that it is ordered no further than it has to be:
    who may not now will not when others have. Returns its size."""
    kept = 0
    for i in range(size):
        row = desk.heap[i]
        if _passes(desk, row, free, when, spare):
            desk.heap[kept] = row
            kept += 1
    heapify(desk.heap, kept, desk.keys)
    return kept


@kernel
def _next_small(desk: Desk, at: int, free: int) -> int:
    """Returns where in the queue, from a place on, the first job stands that so many nodes are
    enough for; where it ends if there is none. Most of the time of a backfill is spent here."""
    queue, jobs, last = desk.queue, desk.jobs, desk.ctl[w.LAST]
    while at < last and jobs[queue[at], w.NODES] > free:
        at += 1
    return at


@kernel
def _backfill(desk: Desk, free: int) -> None:
    """Start jobs in order while they fit, and then by the rule."""
    rule, now, first = desk.rule[w.RULE], desk.ctl[w.TIME], desk.ctl[w.FIRST]
    arrival = desk.rule[w.ORDER] == ARRIVAL
    size = desk.ctl[w.LAST] - desk.ctl[w.FIRST]
    if not arrival and free > 0:
        size = _begin(desk, False)
    at, waits = 0, False
    when, spare = now, 0
    while size > 0 and free > 0:
        if arrival:
            if waits:
                at = _next_small(desk, first + at, free) - first
                size = desk.ctl[w.LAST] - first - at
                if size == 0:
                    return
            row = desk.queue[first + at]
            at += 1
        else:
            row = pop(desk.heap, size, desk.keys)
        size -= 1
        needed = desk.jobs[row, w.NODES]
        if not waits:
            if needed <= free:
                _take(desk, row)
                free -= needed
                continue
            if rule in (w.STRICT, w.DEPARTURES):
                return
            waits = True
            if rule in (w.EASY, w.EASY_STRICT):
                when, spare = _shadow(desk, free, needed)
            if not arrival:
                size = _narrow(desk, size, free, when, spare)
            continue
        if not _passes(desk, row, free, when, spare):
            continue
        if rule == w.EASY and end_of(now, expected_time(desk, row)) > when:
            spare -= needed
        _take(desk, row)
        free -= needed


@kernel
def _serve(desk: Desk) -> None:
    """Choose the first jobs in order that fit together, of all that are here."""
    free, size = desk.ctl[w.ALL], _begin(desk, True)
    while size > 0:
        row = pop(desk.heap, size, desk.keys)
        size -= 1
        if desk.jobs[row, w.NODES] > free:
            return
        free -= desk.jobs[row, w.NODES]
        _take(desk, row)


@kernel
def choose(desk: Desk) -> None:
    """Write to `Desk.chosen` which jobs are to start or, where the rule preempts, to run."""
    rule, ctl, whole = desk.rule[w.RULE], desk.ctl, desk.whole
    ctl[w.CHOSEN] = 0
    if desk.rule[w.ORDER] == USAGE:
        settle(desk)
    waiting, running = ctl[w.LAST] - ctl[w.FIRST], ctl[w.RUNNING]
    if rule == w.SERVE:
        _serve(desk)
    elif rule == w.SERVE_DEPARTURES:
        if running < whole[AFTER_RUNNING] or running == 0:
            _serve(desk)
        else:
            for i in range(running):
                _take(desk, desk.running[i])
        whole[AFTER_RUNNING] = ctl[w.CHOSEN]
    elif rule == w.DEPARTURES:
        if running < whole[AFTER_RUNNING] or whole[AFTER_WAITING] == 0:
            _backfill(desk, ctl[w.FREE])
        whole[AFTER_RUNNING] = running + ctl[w.CHOSEN]
        whole[AFTER_WAITING] = waiting - ctl[w.CHOSEN]
    elif rule == w.CONSERVATIVE:
        plan(desk, running < whole[AFTER_RUNNING])
        whole[AFTER_RUNNING] = running + ctl[w.CHOSEN]
    else:
        _backfill(desk, ctl[w.FREE])
    ctl[w.REPACED] = 0
    if desk.rule[w.ORDER] == USAGE:
        note_held(desk)


@kernel
def first_in_order(desk: Desk, most: int) -> int:
    """Write to `Desk.chosen` the first waiting jobs in the discipline's order, whether they fit or
    not. Returns how many there are, at most so many."""
    size = desk.ctl[w.LAST] - desk.ctl[w.FIRST]
    count = min(most, size)
    if desk.rule[w.ORDER] == ARRIVAL:
        for i in range(count):
            desk.chosen[i] = desk.queue[desk.ctl[w.FIRST] + i]
        return count  # type: ignore[no-any-return]
    if desk.rule[w.ORDER] == USAGE:
        settle(desk)
    size = _begin(desk, False)
    for i in range(count):
        desk.chosen[i] = pop(desk.heap, size, desk.keys)
        size -= 1
    return count  # type: ignore[no-any-return]


# -- for Python


@entry
def choose_from(desk: Desk) -> None:
    """Write who is to start to `Desk.chosen`."""
    choose(desk)


@entry
def order_from(desk: Desk, most: int) -> int:
    """Write the first waiting jobs in order to `Desk.chosen`. Returns how many there are."""
    return first_in_order(desk, most)


@entry
def note_held_from(desk: Desk) -> None:
    """Note who holds nodes from now on, where an order goes by usage."""
    charge(desk)
