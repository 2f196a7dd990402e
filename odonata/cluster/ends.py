"""When jobs will end: a heap of those that run, and one END event for the first of them.

A job's end moves whenever its cap, its service rate or its progress changes. So the engine's queue
has no event per job: it has an **alarm**, an END event at the time of the first end. Where that
comes to be earlier, there is another alarm; where it comes to be later, the alarm finds nobody to
end and is set anew. Alarms that are in the queue are in `State.alarms`, the earliest last.
"""

from __future__ import annotations

from typing import Any

from odonata.cluster import layout as w
from odonata.cluster.layout import State
from pdes.jit import kernel
from policies.scheduling.desk import NEVER


@kernel
def _set(state: State, at: int, time: int, row: int) -> None:
    state.ending[at, 0], state.ending[at, 1] = time, row
    state.jobs[row, w.HEAP_AT] = at


@kernel
def _earlier(ending: Any, at: int, time: int, row: int) -> bool:
    """Tells whether the job at a place ends before this one; of two that end together, the smaller
    row does."""
    there = ending[at, 0]
    return there < time or (there == time and ending[at, 1] < row)  # type: ignore[no-any-return]


@kernel
def _settle(state: State, at: int, time: int, row: int) -> None:
    """Put a job that will end at a time into the heap, from a place that is free up or down to
    where it has to be."""
    ending, count = state.ending, state.ctl[w.ENDING]
    above = (at - 1) >> 1
    while at > 0 and not _earlier(ending, above, time, row):
        _set(state, at, ending[above, 0], ending[above, 1])
        at, above = above, (above - 1) >> 1
    below = 2 * at + 1
    while below < count:
        if below + 1 < count and _earlier(ending, below + 1, ending[below, 0], ending[below, 1]):
            below += 1
        if not _earlier(ending, below, time, row):
            break
        _set(state, at, ending[below, 0], ending[below, 1])
        at, below = below, 2 * below + 1
    _set(state, at, time, row)


@kernel
def forget(state: State, row: int) -> None:
    """Take a job out of the heap, if it is in it."""
    at = state.jobs[row, w.HEAP_AT]
    if at < 0:
        return
    state.jobs[row, w.HEAP_AT] = -1
    state.ctl[w.ENDING] -= 1
    last = state.ctl[w.ENDING]
    if at != last:
        _settle(state, at, state.ending[last, 0], state.ending[last, 1])


@kernel
def expect(state: State, row: int, end: int) -> None:
    """Note when a job will end, if nothing comes between; NEVER: it will not."""
    state.jobs[row, w.END_AT] = end
    if end >= NEVER:
        forget(state, row)
        return
    at = state.jobs[row, w.HEAP_AT]
    if at < 0:
        at = state.ctl[w.ENDING]
        state.ctl[w.ENDING] += 1
    _settle(state, at, end, row)


@kernel
def first_ended(state: State, time: int) -> int:
    """Returns the first job that ends by now, -1 if none does."""
    if state.ctl[w.ENDING] == 0 or state.ending[0, 0] > time:
        return -1
    return state.ending[0, 1]  # type: ignore[no-any-return]


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
    first, count = state.ending[0, 0], state.ctl[w.ALARMS]
    if count > 0 and state.alarms[count - 1] <= first:
        return -1
    if count == state.alarms.shape[0]:  # the latest alarm is forgotten, and will not ring
        count -= 1
        for i in range(count):
            state.alarms[i] = state.alarms[i + 1]
    state.alarms[count] = first
    state.ctl[w.ALARMS] = count + 1
    return first  # type: ignore[no-any-return]
