"""Jobs get nodes and give them back: what starts, suspends and ends a job, compiled."""

from __future__ import annotations

import numpy as np

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
from odonata.cluster.layout import (
    CAP_W,
    CAPPED,
    COUNTED,
    DEPARTED,
    DONE,
    ENDED,
    JOULES,
    KILLS,
    LAST_END,
    NODE,
    OVER,
    POWERED,
    READY,
    RUN,
    SEGMENT,
    SEGMENT_J,
    SHORT,
    START,
    STARTED,
    STATUS,
    STRETCHES,
    State,
)
from odonata.jobs.schedule import FINISHED, FINISHES, KILLED, SUSPENDS, WAITING
from odonata.jobs.schedule import KILLS as NOTED_KILL
from odonata.jobs.schedule import RUNNING as IS_RUNNING
from pdes.jit import kernel
from policies.scheduling.desk import (
    DUE,
    FIRST,
    FREE,
    LAST,
    NEVER,
    NODES,
    REQUESTED,
    RUNNING,
    SERVED,
    SINCE,
    end_of,
    held_for,
)
from policies.views import HAIR


@kernel
def _insert(state: State, row: int, count: int) -> None:
    """Put a job among the first `count` running ones, behind those that are due no later."""
    due, at = state.jobs[row, DUE], count
    while at > 0 and state.jobs[state.running[at - 1], DUE] > due:
        state.running[at] = state.running[at - 1]
        at -= 1
    state.running[at] = row


@kernel
def _remove(state: State, at: int, count: int) -> None:
    """Take the job at this place from the first `count` running ones."""
    for i in range(at, count - 1):
        state.running[i] = state.running[i + 1]


@kernel
def _hold(state: State, row: int) -> None:
    """Put a job among the running ones."""
    _insert(state, row, state.ctl[RUNNING])
    state.ctl[RUNNING] += 1
    state.ctl[FREE] -= state.jobs[row, NODES]


@kernel
def _release(state: State, at: int) -> None:
    """Take the job at this place of `running` from there, and its nodes from it. Which they were
    can be read from its NODE and from `after` until the next pass, for policies that learn."""
    row = state.running[at]
    _remove(state, at, state.ctl[RUNNING])
    state.ctl[RUNNING] -= 1
    state.ctl[FREE] += state.jobs[row, NODES]
    if state.owner.shape[0] > 0:
        node = state.jobs[row, NODE]
        while node >= 0:
            state.owner[node] = -1
            node = state.after[node]


@kernel
def _place_of(state: State, row: int) -> int:
    """Returns where in `running` a job is."""
    due, low, high = state.jobs[row, DUE], 0, state.ctl[RUNNING]
    while low < high:
        middle = (low + high) >> 1
        if state.jobs[state.running[middle], DUE] < due:
            low = middle + 1
        else:
            high = middle
    while state.running[low] != row:
        low += 1
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
    return (state.jobs[row, RUN] - work) * state.slowdown[row]  # type: ignore[no-any-return]


@kernel
def note_served(state: State, row: int, time: int) -> None:
    """Tell disciplines how much of its requested time a job has used up by now."""
    job, work = state.jobs[row], state.work[row]
    runs = job[SINCE] >= 0
    if state.ctl[STRETCHES] == 0:
        state.served[row] = job[SERVED] + (time - job[SINCE] if runs else 0)
        return
    if runs:
        work -= max(0, time - job[COUNTED]) / state.pace[row]
    state.served[row] = _used(state, row, work)


@kernel
def _predict(state: State, row: int) -> int:
    """Find out when a job is due, from its work, its pace and its limit; and count one more
    prediction. Returns when its segment will end, if nothing comes between; NEVER if it will not.
    """
    job, ctl, pace = state.jobs[row], state.ctl, state.pace[row]
    begin = job[COUNTED]
    end = end_of(begin, _length(state.work[row], pace))
    job[SHORT] = 0
    if ctl[STRETCHES] != 0:
        due = NEVER
        if job[REQUESTED] < NEVER:
            slowdown = state.slowdown[row]
            left = job[REQUESTED] - _used(state, row, state.work[row])
            due = end_of(begin, held_for(left, pace / slowdown))
            rounded = 2e-6 + 1e-12 * job[REQUESTED]
            if state.work[row] * slowdown <= max(0.0, left - HAIR) + rounded:  # it fits
                due = max(due, end)
        job[DUE] = due
    if ctl[KILLS] != 0 and end > job[DUE]:
        end = job[DUE]
        job[SHORT] = 1
    job[SEGMENT] += 1
    return end


@kernel
def start(state: State, row: int, time: int) -> int:
    """Begin a segment of a job. Returns when it will end, if nothing comes between."""
    job = state.jobs[row]
    if job[START] < 0:
        job[START] = time
    job[STATUS] = IS_RUNNING
    job[SINCE] = job[READY] = time
    if state.ctl[POWERED] != 0:
        begin_drawing(state, row, time)
    job[COUNTED] = job[READY]
    job[DUE] = end_of(job[READY], max(0, job[REQUESTED] - job[SERVED]))
    set_pace(state, row)
    end = _predict(state, row)
    _hold(state, row)
    note(state, time, row, STARTED, 0.0)
    if state.ctl[POWERED] != 0 and state.energy[row, CAP_W] < np.inf:
        note(state, time, row, CAPPED, state.energy[row, CAP_W])
    return end


@kernel
def again(state: State, row: int, time: int) -> int:
    """Have a running job go on at another pace, which has been set. Returns when its segment will
    end now, if nothing comes between. Its progress was counted up to now."""
    at = _place_of(state, row)
    _remove(state, at, state.ctl[RUNNING])
    end = _predict(state, row)
    _insert(state, row, state.ctl[RUNNING] - 1)
    return end


@kernel
def change(state: State, row: int, time: int) -> int:
    """Have a running job go on with another cap, at another service rate, or not at all, all of
    which have been set. Returns when its segment will end now, or -1 if that stays as it is."""
    count_job(state, row, time)
    set_draw(state, row)
    pace = state.pace[row]
    count_work(state, row, time)
    set_pace(state, row)
    if state.pace[row] == pace:
        return -1
    return again(state, row, time)


@kernel
def _leave(state: State, at: int, time: int) -> float:
    """Take a job off its nodes. Returns the energy of its segment."""
    row = state.running[at]
    job, joules = state.jobs[row], 0.0
    if state.ctl[POWERED] != 0:
        end_drawing(state, row, time)
        joules = state.energy[row, JOULES] - state.energy[row, SEGMENT_J]
    _release(state, at)
    job[SERVED] += max(0, time - job[READY])
    job[SINCE] = -1
    return joules


@kernel
def suspend(state: State, at: int, time: int) -> None:
    """End the segment of a running job that is not over, and put it back into the queue."""
    row = state.running[at]
    count_work(state, row, time)
    joules = _leave(state, at, time)
    note_served(state, row, time)
    job = state.jobs[row]
    job[STATUS] = WAITING
    job[SEGMENT] += 1  # so that the event of its end is no longer about it
    first = state.ctl[FIRST] - 1
    state.ctl[FIRST] = first
    while first + 1 < state.ctl[LAST] and state.queue[first + 1] < row:
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
    job[OVER] = time
    killed = job[SHORT] != 0
    job[STATUS] = KILLED if killed else FINISHED
    if not killed:
        state.work[row] = 0.0
    state.ctl[DONE] += 1
    state.ctl[DEPARTED] += 1
    state.ctl[LAST_END] = time
    if state.ended.shape[0] > 0:
        state.ended[state.ctl[ENDED]] = row
        state.ctl[ENDED] += 1
    note(state, time, row, NOTED_KILL if killed else FINISHES, joules)
