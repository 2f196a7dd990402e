"""What a compiled discipline works on: the waiting and the running jobs, as arrays.

A job is a **row** of `Desk.jobs`. The job model's own table is such an array, so its disciplines
run on it without any copy; elsewhere a `View` is copied into one (`compiled.Compiled`). Rows are
numbered in order of arrival, so the smaller of two rows came first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pdes.jit import kernel
from pdes.words import Row
from policies import views
from policies.views import NEVER as NEVER

JOB = Row("Desk.jobs")
NODES = JOB.word("1", "the nodes that it needs")
SUBMIT = JOB.word("tick", "when it joined the queue")
REQUESTED = JOB.word("tick", "the run time that its user asked for, NEVER where none is known")
USER = JOB.word("1", "its user's number")
NUMBER = JOB.word("1", "its own number")
SERVED = JOB.word("tick", "for how long it was served before the segment that it is in")
SINCE = JOB.word("tick", "when that segment began, -1 while it waits")
DUE = JOB.word("tick", "when it is due by its request, at its present pace")

CTL = Row("Desk.ctl")
TIME = CTL.word("tick", "the time")
FREE = CTL.word("1", "idle nodes")
FIRST = CTL.word("1", "the waiting jobs are queue[FIRST:LAST]")
LAST = CTL.word("1", "the end of these")
RUNNING = CTL.word("1", "the number of running jobs")
ALL = CTL.word("1", "the nodes of the machine")
CHOSEN = CTL.word("1", "how many jobs were chosen")
REPACED = CTL.word("1", "whether `Desk.pace` has changed since jobs were last chosen")

OF_RULE = Row("Desk.rule")
ORDER = OF_RULE.word("1", "in which order waiting jobs are tried")
RULE = OF_RULE.word("1", "what happens when one does not fit")
STEP = OF_RULE.word("tick", "the interval at which usage decays")
DEPTH = OF_RULE.word("1", "how many waiting jobs conservative backfilling plans, 0 for all")

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
BLOCK_OF = Row("Desk.blocks")
FROM = BLOCK_OF.word("tick", "the time of its first point")
PLACE = BLOCK_OF.word("1", "where in `times`, `room` and `heads` its points are")
SIZE = BLOCK_OF.word("1", "how many points it has")
MOST = BLOCK_OF.word("1", "a bound of their `room`")
ADD = BLOCK_OF.word("1", "what has to be added to each `room`")
SPARE = BLOCK_OF.word("1", "not of the block: a place that no block has")

HELD = Row("Desk.held")
PLAN = HELD.word("tick", "the planned start of a job, -1: none")
FINISH = HELD.word("tick", "the end of its part of the profile, also while it runs")
NEXT = HELD.word("1", "the next job with the same planned start")
PREVIOUS = HELD.word("1", "the previous one")
KIND = HELD.word("1", "its kind (`conservative`)")
TOUCHED = HELD.word("1", "whether its plan may be moved")
HOLDER = HELD.word("1", "not of the job: a row of those that run, as far as the profile knows")

MARKS = Row("Desk.marks")
BUILT = MARKS.word("1", "whether there is a profile")
BLOCKS = MARKS.word("1", "its blocks")
USED = MARKS.word("1", "places that have been used for blocks")
SPARES = MARKS.word("1", "how many of these are not used any more")
HOLDERS = MARKS.word("1", "the running jobs that the profile knows")
LEAST = MARKS.word("1", "the fewest nodes of a planned job, as a level")
LONGEST = MARKS.word("tick", "the longest time of one")
TURN = MARKS.word("1", "which of the two tables of `Desk.holes` is that of this compression")
GROWN = MARKS.word("1", "whether room has grown since the first of these was begun")
GROWN_TOO = MARKS.word("1", "whether it has since the second was")
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
    """[row, JOB and more]"""
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
    """[block, BLOCK_OF], in order of time"""
    held: Any
    """[row, HELD]"""
    marks: Any
    holes: Any
    """[3, level, kind]: from when on there may be room (`conservative`)."""


def new_desk(
    rows: int, nodes: int, words: int, rule: Any, whole: Any, real: Any, ctl_words: int = len(CTL)
) -> Desk:
    """Returns a desk for so many jobs on so many nodes, with nothing on it yet."""
    most = max(1, rows)
    plans = rule[RULE] == CONSERVATIVE
    points = 2 * most + 4  # of a profile: two for each job, those of one that is moved, and now
    blocks = 2 * points // (BLOCK // 2) + 4 if plans else 0
    places = blocks * BLOCK if plans else most
    ctl = np.zeros(ctl_words, np.int64)
    ctl[[FREE, ALL]] = nodes
    held = np.full((most if plans else 0, len(HELD)), -1)
    return Desk(
        ctl, rule, np.zeros((rows, words), np.int64), np.zeros(most, np.int64),
        np.zeros(min(most, nodes) + 1, np.int64), whole, real,
        np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most),
        np.zeros(places, np.int64), np.zeros(places, np.int64), np.zeros(rows), np.ones(1),
        np.zeros(places if plans else 0, np.int64), np.zeros((blocks, len(BLOCK_OF)), np.int64),
        held, np.zeros(len(MARKS), np.int64),
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
