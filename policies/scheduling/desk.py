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

ORDER, RULE, STEP, RULE_WORDS = range(4)
"""Words of `Desk.rule`: in which order waiting jobs are tried; what happens when one does not fit;
and the interval at which usage decays, in ticks."""


class Desk(NamedTuple):
    """The arrays. What a discipline remembers is in `whole` and `real`; from `heap` to `room` they
    are room to work in, of which nothing has to be kept."""

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
    to date only where the rule goes by it (`rules.SERVE_DEPARTURES`)."""
    pace: Any
    """[1], float64: the ticks for which a job that starts now would hold its nodes, per tick that
    it asked for."""


def new_desk(
    rows: int, nodes: int, words: int, rule: Any, whole: Any, real: Any, ctl_words: int = CTL_WORDS
) -> Desk:
    """Returns a desk for so many jobs on so many nodes, with nothing on it yet."""
    most = max(1, rows)
    points = 3 * most + 4  # of a profile: two for each plan, and one for each that is moved
    ctl = np.zeros(ctl_words, np.int64)
    ctl[[FREE, ALL]] = nodes
    return Desk(
        ctl, rule, np.zeros((rows, words), np.int64), np.zeros(most, np.int64),
        np.zeros(min(most, nodes) + 1, np.int64), whole, real,
        np.zeros(most, np.int64), np.zeros(most, np.int64), np.zeros(most),
        np.zeros(points, np.int64), np.zeros(points, np.int64), np.zeros(rows), np.ones(1),
    )  # fmt: skip


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
