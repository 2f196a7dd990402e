"""What happens: jobs arrive, start, are suspended and end; compiled, with Python's ways in."""

from __future__ import annotations

from typing import Any

import numpy as np

from odonata.cluster.layout import (
    ARRIVE,
    AT_ONCE,
    DONE,
    DRAIN,
    END,
    ENDED,
    KILLS,
    LAST_END,
    LAUNCH,
    LAUNCHED,
    LEFT,
    NEXT,
    NODE,
    NOTES,
    NOTES_KEPT,
    OVER,
    PASS,
    PASSES,
    PASSING,
    PICKED,
    PREEMPTS,
    SEGMENT,
    SHORT,
    START,
    STARTED,
    STATUS,
    State,
    desk_of,
    key,
)
from odonata.jobs.schedule import FINISHED, FINISHES, KILLED, SUSPENDS, WAITING
from odonata.jobs.schedule import KILLS as NOTED_KILL
from odonata.jobs.schedule import RUNNING as IS_RUNNING
from pdes.events import KEY, A, B, kind_of
from pdes.events import TIME as WHEN
from pdes.jit import entry, kernel
from pdes.loop import Sim, schedule
from policies.scheduling.desk import (
    CHOSEN,
    DUE,
    FIRST,
    FREE,
    LAST,
    NODES,
    REQUESTED,
    RUNNING,
    SERVED,
    SINCE,
    SUBMIT,
    TIME,
    end_of,
)
from policies.scheduling.rules import choose

# -- the machine


@kernel
def _note(state: State, time: int, row: int, what: int) -> None:
    n = state.ctl[NOTES]
    note = state.notes[n]
    note[0] = time
    note[1] = row
    note[2] = what
    state.ctl[NOTES] = n + 1


@kernel
def _hold(state: State, row: int) -> None:
    """Put a job among the running ones, behind those that are due no later."""
    due, at = state.jobs[row, DUE], state.ctl[RUNNING]
    while at > 0 and state.jobs[state.running[at - 1], DUE] > due:
        state.running[at] = state.running[at - 1]
        at -= 1
    state.running[at] = row
    state.ctl[RUNNING] += 1
    state.ctl[FREE] -= state.jobs[row, NODES]


@kernel
def _release(state: State, at: int) -> None:
    """Take the job at this place of `running` from there, and its nodes from it. Which they were
    can be read from its NODE and from `after` until the next pass, for policies that learn."""
    row = state.running[at]
    state.ctl[RUNNING] -= 1
    for i in range(at, state.ctl[RUNNING]):
        state.running[i] = state.running[i + 1]
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
def _start(state: State, row: int, time: int) -> int:
    """Begin a segment of a job. Returns when it will end, if nothing comes between."""
    job = state.jobs[row]
    slowdown = state.slowdown[row]
    length = job[LEFT] if slowdown == 1.0 else np.int64(np.ceil(job[LEFT] * slowdown))
    allowed = max(0, job[REQUESTED] - job[SERVED])
    job[SHORT] = 0
    if state.ctl[KILLS] != 0 and length > allowed:
        length = allowed
        job[SHORT] = 1
    if job[START] < 0:
        job[START] = time
    job[STATUS] = IS_RUNNING
    job[SINCE] = time
    job[DUE] = end_of(time, allowed)
    job[SEGMENT] += 1
    _hold(state, row)
    _note(state, time, row, STARTED)
    return time + length  # type: ignore[no-any-return, return-value]


@kernel
def _suspend(state: State, at: int, time: int) -> None:
    """End the segment of a running job that is not over, and put it back into the queue."""
    row = state.running[at]
    _release(state, at)
    job = state.jobs[row]
    length = time - job[SINCE]
    job[SERVED] += length
    slowdown = state.slowdown[row]
    job[LEFT] -= length if slowdown == 1.0 else min(job[LEFT], np.int64(length / slowdown))
    job[SINCE] = -1
    job[STATUS] = WAITING
    job[SEGMENT] += 1  # so that the event of its end is no longer about it
    first = state.ctl[FIRST] - 1
    state.ctl[FIRST] = first
    while first + 1 < state.ctl[LAST] and state.queue[first + 1] < row:
        state.queue[first] = state.queue[first + 1]
        first += 1
    state.queue[first] = row
    _note(state, time, row, SUSPENDS)


@kernel
def _end(state: State, row: int, time: int) -> None:
    job = state.jobs[row]
    _release(state, _place_of(state, row))
    job[SERVED] += time - job[SINCE]
    job[SINCE] = -1
    job[OVER] = time
    killed = job[SHORT] != 0
    job[STATUS] = KILLED if killed else FINISHED
    if not killed:
        job[LEFT] = 0
    state.ctl[DONE] += 1
    state.ctl[LAST_END] = time
    if state.ended.shape[0] > 0:
        state.ended[state.ctl[ENDED]] = row
        state.ctl[ENDED] += 1
    _note(state, time, row, NOTED_KILL if killed else FINISHES)


# -- the pass


@kernel
def _settle(state: State, time: int) -> None:
    """Suspend the running jobs that a discipline that preempts has not chosen, and take those that
    start out of the queue: `chosen` has these alone then."""
    ctl, jobs = state.ctl, state.jobs
    ctl[PASSES] += 1
    starting = 0
    for i in range(ctl[CHOSEN]):
        row = state.chosen[i]
        jobs[row, PICKED] = ctl[PASSES]
        if jobs[row, STATUS] == WAITING:
            state.chosen[starting] = row
            starting += 1
    if ctl[PREEMPTS] != 0:
        for at in range(ctl[RUNNING] - 1, -1, -1):
            if jobs[state.running[at], PICKED] != ctl[PASSES]:
                _suspend(state, at, time)
    ctl[CHOSEN] = starting
    ctl[LAUNCHED] = 0
    left, at = starting, ctl[FIRST]
    while left > 0:  # to the last of them
        if jobs[state.queue[at], PICKED] == ctl[PASSES]:
            left -= 1
        at += 1
    to = at
    while at > ctl[FIRST]:
        at -= 1
        if jobs[state.queue[at], PICKED] != ctl[PASSES]:
            to -= 1
            state.queue[to] = state.queue[at]
    ctl[FIRST] = to


# -- events


@kernel
def _ask_for_pass(sim: Sim, state: State, time: int) -> None:
    if state.ctl[PASSING] == 0:
        state.ctl[PASSING] = 1
        schedule(sim, time, key(PASS), 0, 0)


@kernel
def _launch(sim: Sim, state: State, time: int) -> None:
    """Start the chosen jobs, or some of them and have the others follow."""
    ctl = state.ctl
    most = min(ctl[CHOSEN], ctl[LAUNCHED] + AT_ONCE)
    while ctl[LAUNCHED] < most:
        row = state.chosen[ctl[LAUNCHED]]
        ctl[LAUNCHED] += 1
        end = _start(state, row, time)
        schedule(sim, end, key(END), row, state.jobs[row, SEGMENT])
    if ctl[LAUNCHED] < ctl[CHOSEN]:
        schedule(sim, time, key(LAUNCH), 0, 0)


@kernel
def handle(sim: Sim, state: State, time: int, which: int, a: int, b: int) -> None:
    ctl, kind = state.ctl, kind_of(which)
    if kind == END:
        if state.jobs[a, SEGMENT] != b:
            return  # it was suspended since
        _end(state, a, time)
        _ask_for_pass(sim, state, time)
    elif kind == ARRIVE:
        row = ctl[NEXT]
        state.jobs[row, STATUS] = WAITING
        state.queue[ctl[LAST]] = row
        ctl[LAST] += 1
        ctl[NEXT] = row + 1
        if row + 1 < state.jobs.shape[0]:
            schedule(sim, state.jobs[row + 1, SUBMIT], key(ARRIVE), 0, 0)
        _ask_for_pass(sim, state, time)
    elif kind == LAUNCH:
        _launch(sim, state, time)
    elif kind == PASS:
        ctl[PASSING] = 0
        ctl[TIME] = time
        choose(desk_of(state))
        _settle(state, time)
        _launch(sim, state, time)
    if ctl[NOTES] >= NOTES_KEPT:
        schedule(sim, time, key(DRAIN), 0, 0)


# -- for passes in Python


@entry
def choose_now(state: State, time: int) -> None:
    """Have a compiled discipline choose."""
    state.ctl[TIME] = time
    choose(desk_of(state))


@entry
def settle_now(state: State, time: int) -> None:
    """Suspend who has to be, and take the chosen jobs out of the queue."""
    state.ctl[PASSING] = 0
    _settle(state, time)


@entry
def launch_now(state: State, time: int, rows: Any) -> None:
    """Start the chosen jobs: their ends are written to `rows`, which has one for each."""
    for i in range(state.ctl[CHOSEN]):
        row = state.chosen[i]
        rows[i, WHEN] = _start(state, row, time)
        rows[i, KEY] = key(END)
        rows[i, A] = row
        rows[i, B] = state.jobs[row, SEGMENT]
