"""Jobs get nodes and give them back: what starts, suspends and ends a job, compiled."""

from __future__ import annotations

import numpy as np

from odonata.cluster import layout as w
from odonata.cluster.ends import expect, forget
from odonata.cluster.energy import (
    begin_drawing,
    count_job,
    count_stretch,
    count_work,
    end_drawing,
    note,
    set_draw,
    set_pace,
)
from odonata.cluster.layout import State
from odonata.jobs.schedule import FINISHED, FINISHES, KILLED, SUSPENDS, WAITING
from odonata.jobs.schedule import KILLS as NOTED_KILL
from odonata.jobs.schedule import RUNNING as IS_RUNNING
from pdes.jit import kernel
from policies.scheduling.desk import NEVER, end_of, held_for
from policies.views import HAIR


@kernel
def _before(state: State, one: int, other: int) -> bool:
    """Tells whether a job stands before another among the running ones: it is due sooner or, of two
    that are due together, it came there sooner."""
    a, b = state.jobs[one], state.jobs[other]
    return a[w.DUE] < b[w.DUE] or (a[w.DUE] == b[w.DUE] and a[w.STAMP] < b[w.STAMP])  # type: ignore[no-any-return]


@kernel
def _stamp(state: State, row: int) -> None:
    """Have a job stand behind all that are due with it."""
    state.ctl[w.STAMPS] += 1
    state.jobs[row, w.STAMP] = state.ctl[w.STAMPS]


@kernel
def _insert(state: State, row: int, at: int) -> None:
    """Put a job among the first `at` running ones, which are in order."""
    while at > 0 and _before(state, row, state.running[at - 1]):
        state.running[at] = state.running[at - 1]
        at -= 1
    state.running[at] = row


@kernel
def reorder(state: State) -> None:
    """Bring the running jobs into order after some are due at other times. Most are where they
    have to be."""
    for at in range(1, state.ctl[w.RUNNING]):
        _insert(state, state.running[at], at)


@kernel
def _remove(state: State, at: int, count: int) -> None:
    """Take the job at this place from the first `count` running ones."""
    for i in range(at, count - 1):
        state.running[i] = state.running[i + 1]


@kernel
def _hold(state: State, row: int) -> None:
    """Put a job among the running ones."""
    _stamp(state, row)
    _insert(state, row, state.ctl[w.RUNNING])
    state.ctl[w.RUNNING] += 1
    state.ctl[w.FREE] -= state.jobs[row, w.NODES]


@kernel
def _release(state: State, at: int) -> None:
    """Take the job at this place of `running` from there, and its nodes from it. Which they were
    can be read from its NODE and from `after` until the next pass, for policies that learn."""
    row = state.running[at]
    _remove(state, at, state.ctl[w.RUNNING])
    state.ctl[w.RUNNING] -= 1
    state.ctl[w.FREE] += state.jobs[row, w.NODES]
    if state.owner.shape[0] > 0:
        node = state.jobs[row, w.NODE]
        while node >= 0:
            state.owner[node] = -1
            node = state.after[node]


@kernel
def _place_of(state: State, row: int) -> int:
    """Returns where in `running` a job is."""
    low, high = 0, state.ctl[w.RUNNING]
    while low < high:
        middle = (low + high) >> 1
        if _before(state, state.running[middle], row):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _length(work: float, pace: float) -> int:
    """Returns the ticks that so much work takes, NEVER where that is too long to tell."""
    ticks = work if pace == 1.0 else work * pace
    return NEVER if not ticks < NEVER else np.int64(np.ceil(ticks))  # type: ignore[return-value]


@kernel
def _used(state: State, row: int, work: float) -> float:
    """Returns how much of its requested time a job has used up of which so much work is left, where
    limits stretch: what the rest of its work took, had there been no cap and a service rate of 1.
    """
    return (state.jobs[row, w.RUN] - work) * state.slowdown[row]  # type: ignore[no-any-return]


@kernel
def note_served(state: State, row: int, time: int) -> None:
    """Tell disciplines how much of its requested time a job has used up by now."""
    job, work = state.jobs[row], state.work[row]
    runs = job[w.SINCE] >= 0
    if state.ctl[w.STRETCHES] == 0:
        state.served[row] = job[w.SERVED] + (time - job[w.SINCE] if runs else 0)
        return
    if runs:
        work -= max(0, time - job[w.COUNTED]) / state.pace[row]
    state.served[row] = _used(state, row, work)


@kernel
def _predict(state: State, row: int) -> None:
    """Find out when a job is due, from its work, its pace and its limit, and when its segment will
    end, if nothing comes between."""
    job, ctl, pace = state.jobs[row], state.ctl, state.pace[row]
    begin = job[w.COUNTED]
    end = end_of(begin, _length(state.work[row], pace))
    job[w.SHORT] = 0
    if ctl[w.STRETCHES] != 0:
        due = NEVER
        if job[w.REQUESTED] < NEVER:
            slowdown = state.slowdown[row]
            left = job[w.REQUESTED] - _used(state, row, state.work[row])
            due = end_of(begin, held_for(left, pace / slowdown))
            rounded = 2e-6 + 1e-12 * job[w.REQUESTED]
            if state.work[row] * slowdown <= max(0.0, left - HAIR) + rounded:  # it fits
                due = max(due, end)
        job[w.DUE] = due
    if ctl[w.KILLS] != 0 and end > job[w.DUE]:
        end = job[w.DUE]
        job[w.SHORT] = 1
    expect(state, row, end)


@kernel
def start(state: State, row: int, time: int) -> None:
    """Begin a segment of a job."""
    job = state.jobs[row]
    if job[w.START] < 0:
        job[w.START] = time
    job[w.STATUS] = IS_RUNNING
    job[w.SINCE] = job[w.READY] = time
    if state.ctl[w.POWERED] != 0:
        begin_drawing(state, row, time)
    job[w.COUNTED] = job[w.READY]
    job[w.DUE] = end_of(job[w.READY], max(0, job[w.REQUESTED] - job[w.SERVED]))
    set_pace(state, row)
    _predict(state, row)
    _hold(state, row)
    note(state, time, row, w.STARTED, 0.0)
    if state.ctl[w.POWERED] != 0 and state.energy[row, w.CAP_W] < np.inf:
        note(state, time, row, w.CAPPED, state.energy[row, w.CAP_W])


@kernel
def change(state: State, row: int, time: int) -> bool:
    """Have a running job go on with another cap, at another service rate, or not at all, all of
    which have been set. Returns whether its pace changes: then `reorder` has to follow."""
    count_job(state, row, time)
    set_draw(state, row)
    pace = state.pace[row]
    count_work(state, row, time)
    set_pace(state, row)
    if state.pace[row] == pace:
        return False
    _predict(state, row)
    _stamp(state, row)
    return True


@kernel
def _leave(state: State, at: int, time: int) -> float:
    """Take a job off its nodes. Returns the energy of its segment."""
    row = state.running[at]
    job, joules = state.jobs[row], 0.0
    if state.ctl[w.POWERED] != 0:
        end_drawing(state, row, time)
        joules = state.energy[row, w.JOULES] - state.energy[row, w.SEGMENT_J]
    _release(state, at)
    forget(state, row)
    job[w.SERVED] += max(0, time - job[w.READY])
    job[w.SINCE] = -1
    return joules


@kernel
def suspend(state: State, at: int, time: int) -> None:
    """End the segment of a running job that is not over, and put it back into the queue."""
    row = state.running[at]
    count_work(state, row, time)
    joules = _leave(state, at, time)
    note_served(state, row, time)
    job = state.jobs[row]
    job[w.STATUS] = WAITING
    first = state.ctl[w.FIRST] - 1
    state.ctl[w.FIRST] = first
    while first + 1 < state.ctl[w.LAST] and state.queue[first + 1] < row:
        state.queue[first] = state.queue[first + 1]
        first += 1
    state.queue[first] = row
    note(state, time, row, SUSPENDS, joules)


@kernel
def end(state: State, row: int, time: int) -> None:
    """Take a job off its nodes that is finished, or is killed."""
    count_stretch(state, row, time)
    joules = _leave(state, _place_of(state, row), time)
    job = state.jobs[row]
    job[w.OVER] = time
    killed = job[w.SHORT] != 0
    job[w.STATUS] = KILLED if killed else FINISHED
    if not killed:
        state.work[row] = 0.0
    state.ctl[w.DONE] += 1
    state.ctl[w.DEPARTED] += 1
    state.ctl[w.LAST_END] = time
    if state.ended.shape[0] > 0:
        state.ended[state.ctl[w.ENDED]] = row
        state.ctl[w.ENDED] += 1
    note(state, time, row, NOTED_KILL if killed else FINISHES, joules)
