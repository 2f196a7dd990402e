"""What a compiled discipline works on: the waiting and the running jobs, as arrays.

A job is a **row** of `Desk.jobs`. The job model's own table is such an array, so its disciplines
run on it without any copy; elsewhere a `View` is copied into one (`compiled.Compiled`). Rows are
numbered in order of arrival, so the smaller of two rows came first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pdes.jit import kernel
from policies import views
from policies.views import NEVER as NEVER

NODES, SUBMIT, REQUESTED, USER, NUMBER, SERVED, SINCE, DUE = range(8)
"""Words of a job: the nodes it needs; when it joined the queue; the run time that its user asked
for, NEVER where none is known; its user's number; its own; for how long it has been served before
the segment that it is in; when that segment began; and when it is due by its request, at its
present pace."""
JOB_WORDS = 8

TIME, FREE, FIRST, LAST, RUNNING, ALL, CHOSEN, REPACED = range(8)
"""Words of `Desk.ctl`: the time; idle nodes; the waiting jobs are queue[FIRST:LAST]; the number of
running jobs; the nodes of the machine; how many jobs were chosen; and whether `Desk.pace` has
changed since jobs were last chosen."""
CTL_WORDS = 8

ORDER, RULE, STEP, DEPTH, RULE_WORDS = range(5)
"""Words of `Desk.rule`: in which order waiting jobs are tried; what happens when one does not fit;
the interval at which usage decays, in ticks; and how many waiting jobs conservative backfilling
plans, 0 for all."""


RULES = ("strict", "first-fit", "easy", "easy-strict", "conservative", "departures", "serve",
         "serve-departures")  # fmt: skip
STRICT, FIRST_FIT, EASY, EASY_STRICT, CONSERVATIVE, DEPARTURES, SERVE, SERVE_DEPARTURES = range(
    len(RULES)
)
"""What happens when a job does not fit: nobody passes it; all that fit pass it; those pass it that
do not delay it (EASY), or that will have ended before it starts (easy-strict); every job has a
planned start that nobody delays. `departures` is strict, and tries anew only when a job has ended.
The last two preempt: the first jobs in order that fit together are served, at every pass or only
when a job has ended."""

BLOCK = 64
"""Points of a block of the profile at most."""
FULLEST = 3 * BLOCK // 4
"""Two neighbouring blocks with no more points than this become one when one of them loses one. As a
block is split in halves, any two neighbours have more than BLOCK / 2."""
FROM, PLACE, SIZE, MOST, ADD, SPARE = range(6)
"""Words of `Desk.blocks`: the time of its first point; where in `times`, `room` and `heads` its
points are; how many; a bound of their `room`; and what has to be added to each `room`. The last is
not of the block: a place that no block has."""
BLOCK_WORDS = 5

PLAN, FINISH, NEXT, PREVIOUS, KIND, TOUCHED, HOLDER = range(7)
"""Words of `Desk.held`: the planned start of a job (-1: none); the end of its part of the profile,
also while it runs; the next and the previous job with the same planned start; its kind
(`conservative`); and whether its plan may be moved. The last is not of the job: a row of those that
run, as far as the profile knows."""
HELD_WORDS = 7

BUILT, BLOCKS, USED, SPARES, HOLDERS, LEAST, LONGEST, TURN, GROWN = range(9)
"""Words of `Desk.marks`: whether there is a profile; its blocks; places that have been used for
blocks, and how many of them are not any more; the running jobs that the profile knows; the fewest
nodes of a planned job, as a level, and the longest time; which of the two tables of `Desk.holes` is
that of this compression; and, for each of them, whether room has grown since it was begun."""
MARK_WORDS = GROWN + 2
KINDS = 512
"""Kinds of lengths that `Desk.holes` tells apart (`conservative`)."""


class Desk(NamedTuple):
    """The arrays. What a discipline remembers is in `whole` and `real`; from `heap` to `room` and
    from `heads` on they are room to work in. Nothing of it has to be kept but between passes, if
    those from `times` on are those of conservative backfilling, which builds them anew where BUILT
    is 0."""

    ctl: Any
    rule: Any
    jobs: Any
    """[row, JOB_WORDS or more]"""
    queue: Any
    """The rows of waiting jobs, in order of arrival, from FIRST to LAST."""
    running: Any
    """The rows of running jobs, in order of DUE."""
    whole: Any
    """int64"""
    real: Any
    """float64"""
    chosen: Any
    """The answer: the rows of the jobs that are to start, in order; where the discipline preempts,
    of all the jobs that are to run."""
    heap: Any
    keys: Any
    """[row], float64: what an order goes by."""
    times: Any
    room: Any
    """The idle nodes expected from each of `times` on."""
    served: Any
    """[row], float64: how much it has used of the time that it asked for. Of a running job it is up
    to date only where the rule goes by it (SERVE_DEPARTURES)."""
    pace: Any
    """[1], float64: the ticks for which a job that starts now would hold its nodes, per tick that
    it asked for."""
    heads: Any
    """The first of the jobs that are planned to start at each of `times`, or -1."""
    blocks: Any
    """[block, BLOCK_WORDS + 1], in order of time"""
    held: Any
    """[row, HELD_WORDS]"""
    marks: Any
    holes: Any
    """[3, level, kind]: from when on there may be room (`conservative`)."""


def new_desk(
    rows: int, nodes: int, words: int, rule: Any, whole: Any, real: Any, ctl_words: int = CTL_WORDS
) -> Desk:
    """Returns a desk for so many jobs on so many nodes, with nothing on it yet."""
    most = max(1, rows)
    plans = rule[RULE] == CONSERVATIVE
    points = 2 * most + 4  # of a profile: two for each job, those of one that is moved, and now
    blocks = 2 * points // (BLOCK // 2) + 4 if plans else 0
    places = blocks * BLOCK if plans else most
    ctl = np.zeros(ctl_words, np.int64)
    ctl[[FREE, ALL]] = nodes
    held = np.full((most if plans else 0, HELD_WORDS), -1)
    return Desk(
        ctl, rule, np.zeros((rows, words), np.int64), np.zeros(most, np.int64),
        np.zeros(min(most, nodes) + 1, np.int64), whole, real,
        np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most),
        np.zeros(places, np.int64), np.zeros(places, np.int64), np.zeros(rows), np.ones(1),
        np.zeros(places if plans else 0, np.int64), np.zeros((blocks, BLOCK_WORDS + 1), np.int64),
        held, np.zeros(MARK_WORDS, np.int64),
        np.zeros((3, int(nodes).bit_length() if plans else 0, KINDS), np.int64),
    )  # fmt: skip


@kernel
def place_in(queue: Any, first: int, last: int, row: int) -> int:
    """Returns where in queue[first:last], which is in order, a row is or would have to be."""
    while first < last:
        middle = (first + last) >> 1
        if queue[middle] < row:
            first = middle + 1
        else:
            last = middle
    return first


@kernel
def expected_end(desk: Desk, row: int) -> int:
    """Returns when a running job is expected to end: at its requested time or, where that has
    passed, a tick from now."""
    return max(desk.jobs[row, DUE], desk.ctl[TIME] + 1)  # type: ignore[no-any-return]


@kernel
def end_of(begin: int, ticks: int) -> int:
    """Returns when a job ends that begins then and holds its nodes for so long; NEVER where that is
    not known."""
    return NEVER if ticks >= NEVER - begin else begin + ticks


held_for = kernel(views.held_for)


@kernel
def expected_time(desk: Desk, row: int) -> int:
    """Returns for how long a waiting job is expected to hold nodes: what is left of the time that
    it asked for, at the pace that it would have if it started now. The one rule of all disciplines
    that plan; NEVER where nothing was requested."""
    requested, served, pace = desk.jobs[row, REQUESTED], desk.served[row], desk.pace[0]
    if requested == NEVER or (served == 0.0 and pace == 1.0):
        return requested  # type: ignore[no-any-return]
    return held_for(requested - served, pace)


# -- a heap of rows: the least key first and, among equals, the smaller row


@kernel
def _before(keys: Any, a: int, b: int) -> Any:
    return keys[a] < keys[b] or (keys[a] == keys[b] and a < b)


@kernel
def _sift(heap: Any, size: int, keys: Any, at: int) -> None:
    row = heap[at]
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and _before(keys, heap[child + 1], heap[child]):
            child += 1
        if not _before(keys, heap[child], row):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = row


@kernel
def heapify(heap: Any, size: int, keys: Any) -> None:
    for at in range(size // 2 - 1, -1, -1):
        _sift(heap, size, keys, at)


@kernel
def pop(heap: Any, size: int, keys: Any) -> int:
    """Returns the first row of a heap that is not empty; the others are in heap[: size - 1]."""
    first = heap[0]
    heap[0] = heap[size - 1]
    _sift(heap, size - 1, keys, 0)
    return first  # type: ignore[no-any-return]
