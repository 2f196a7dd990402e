"""When jobs will end: a heap of those that run, and one END event for the first of them.

A job's end moves whenever its cap, its service rate or its progress changes. So the engine's queue
has no event per job: it has an **alarm**, an END event at the time of the first end. Where that
comes to be earlier, there is another alarm; where it comes to be later, the alarm finds nobody to
end and is set anew. Alarms that are in the queue are in `State.alarms`, the earliest last.
"""

from __future__ import annotations

from odonata.cluster import layout as w
from odonata.cluster.layout import State
from pdes.jit import kernel
from policies.scheduling.desk import NEVER


@kernel
def _earlier(state: State, one: int, other: int) -> bool:
    """Tells whether a job ends before another; of two that end together, the smaller row does."""
    a, b = state.jobs[one, w.END_AT], state.jobs[other, w.END_AT]
    return a < b or (a == b and one < other)  # type: ignore[no-any-return]


@kernel
def _set(state: State, at: int, row: int) -> None:
    state.ending[at] = row
    state.jobs[row, w.HEAP_AT] = at


@kernel
def _rise(state: State, at: int, row: int) -> int:
    """Move a job up from a place that is free until it is where it has to be. Returns where."""
    while at > 0:
        above = (at - 1) >> 1
        if not _earlier(state, row, state.ending[above]):
            break
        _set(state, at, state.ending[above])
        at = above
    return at


@kernel
def _sink(state: State, at: int, row: int) -> int:
    """Move a job down likewise."""
    count = state.ctl[w.ENDING]
    while True:
        child = 2 * at + 1
        if child >= count:
            break
        if child + 1 < count and _earlier(state, state.ending[child + 1], state.ending[child]):
            child += 1
        if not _earlier(state, state.ending[child], row):
            break
        _set(state, at, state.ending[child])
        at = child
    return at


@kernel
def forget(state: State, row: int) -> None:
    """Take a job out of the heap, if it is in it."""
    at = state.jobs[row, w.HEAP_AT]
    if at < 0:
        return
    state.jobs[row, w.HEAP_AT] = -1
    state.ctl[w.ENDING] -= 1
    last = state.ending[state.ctl[w.ENDING]]
    if last != row:
        at = _rise(state, at, last)
        _set(state, _sink(state, at, last), last)


@kernel
def expect(state: State, row: int, end: int) -> None:
    """Note when a job will end, if nothing comes between; NEVER: it will not."""
    job = state.jobs[row]
    if end >= NEVER:
        job[w.END_AT] = NEVER
        forget(state, row)
        return
    at, before = job[w.HEAP_AT], job[w.END_AT]
    job[w.END_AT] = end
    if at < 0:
        at = state.ctl[w.ENDING]
        state.ctl[w.ENDING] += 1
        before = NEVER
    at = _rise(state, at, row) if end < before else _sink(state, at, row)
    _set(state, at, row)


@kernel
def first_ended(state: State, time: int) -> int:
    """Returns the first job that ends by now, -1 if none does."""
    if state.ctl[w.ENDING] == 0 or state.jobs[state.ending[0], w.END_AT] > time:
        return -1
    return state.ending[0]  # type: ignore[no-any-return]


@kernel
def rings(state: State, time: int) -> bool:
    """Tells whether an END event is an alarm, and takes it off; another one has had its place taken
    by an earlier alarm."""
    count = state.ctl[w.ALARMS]
    if count == 0 or state.alarms[count - 1] != time:
        return False
    state.ctl[w.ALARMS] = count - 1
    return True


@kernel
def next_alarm(state: State) -> int:
    """Returns the time for which an END event has to be scheduled now, -1 if for none: where the
    first end comes before all alarms."""
    if state.ctl[w.ENDING] == 0:
        return -1
    first, count = state.jobs[state.ending[0], w.END_AT], state.ctl[w.ALARMS]
    if count > 0 and state.alarms[count - 1] <= first:
        return -1
    if count == state.alarms.shape[0]:  # the latest alarm is forgotten, and will not ring
        count -= 1
        for i in range(count):
            state.alarms[i] = state.alarms[i + 1]
    state.alarms[count] = first
    state.ctl[w.ALARMS] = count + 1
    return first  # type: ignore[no-any-return]
