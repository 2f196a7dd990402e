"""A machine that is regulated: what happens where a policy steers jobs by type, compiled.

It has a handler of its own. Jobs of a type have one clock (`policies.power.acts`), so that a
control instant costs as much as there are types, and not as there are jobs. What is measured and
written down is the same as of any other machine.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from odonata.cluster import layout as w
from odonata.cluster.dispatch import moment, set_signal
from odonata.cluster.ends import next_alarm, rings
from odonata.cluster.energy import count_idle, note, read
from odonata.cluster.layout import State, floor_of, key
from odonata.jobs.machine import PATIENCE
from odonata.jobs.regulating import asking, cap_of, set_cap
from odonata.jobs.schedule import FINISHED, FINISHES, WAITING
from odonata.jobs.schedule import RUNNING as IS_RUNNING
from pdes.events import kind_of
from pdes.jit import bind, entry, kernel, rebound
from pdes.loop import Sim, schedule
from policies.power import floor as f
from policies.power.acts import (
    advance,
    again,
    arrive,
    begin,
    finish,
    first_done,
    halt,
    next_end,
    take,
)
from policies.power.floor import Regulate, work_left
from policies.scheduling.desk import NEVER
from policies.views.tracking import HAIR

ask: Any = None
"""`odonata.jobs.regulating.asking` of a policy, which `handler` and `hour` put in its place."""


@kernel
def _arrive(state: State, time: int) -> None:
    """Have the next job wait."""
    ctl, row = state.ctl, state.ctl[w.NEXT]
    job = state.jobs[row]
    job[w.STATUS], job[w.START], job[w.OVER] = WAITING, -1, -1
    ctl[w.LAST] += 1
    ctl[w.NEXT] = row + 1
    arrive(floor_of(state), row)


@kernel
def _end(state: State, time: int) -> None:
    """End all jobs that are done by now."""
    ctl, floor = state.ctl, floor_of(state)
    row = first_done(floor, time)
    if row >= 0:  # an alarm may ring for nobody, and must not change how sums are rounded
        count_idle(state, time)
    while row >= 0:
        finish(floor, row, time)
        if row < state.jobs.shape[0]:
            job, mark = state.jobs[row], state.progress[row]
            job[w.STATUS], job[w.OVER], job[w.SINCE] = FINISHED, time, -1
            state.work[row] = 0.0
            state.energy[row, w.JOULES] = mark[f.TAKEN_J]
            state.energy[row, w.DRAWS_W] = 0.0
            state.stretched[row, w.GOT_ON] = mark[f.GOT_ON]
            state.stretched[row, w.UNSTRETCHED] = mark[f.RUN]
            ctl[w.DONE] += 1
            ctl[w.RUNNING] -= 1
            ctl[w.LAST_END] = time
            note(state, time, row, FINISHES, mark[f.TAKEN_J])
        row = first_done(floor, time)
    ctl[w.FREE] = state.floor[f.FREE]


@kernel
def _measure(state: State, time: int) -> None:
    """Measure what the machine drew since the last measurement."""
    floor, sums = floor_of(state), state.sums
    count_idle(state, time)
    jobs_j, standby_j = 0.0, 0.0
    for kind in range(state.kinds.shape[0]):
        advance(floor, kind, time)
        if state.tallies[kind, f.STANDBY] != 0:
            standby_j += state.kinds[kind, f.JOULES]
        else:
            jobs_j += state.kinds[kind, f.JOULES]
    seconds = (time - state.ctl[w.MEASURED]) * w.SECOND
    standby_w = (standby_j - sums[f.LAST_STANDBY_J]) / seconds
    sums[f.LAST_STANDBY_J] = standby_j
    state.meter[w.JOBS_J] = jobs_j
    read(state, time, state.meter[w.IDLE_J] + jobs_j + standby_j, standby_w)


@kernel
def _set_caps(state: State, time: int) -> None:
    """Give the jobs of each type the cap that the policy wants."""
    floor = floor_of(state)
    for kind in range(state.kinds.shape[0]):
        if set_cap(floor, kind) and state.tallies[kind, f.NODES] > 0:
            note(state, time, kind, w.TYPE_CAPPED, cap_of(floor, kind))


@kernel
def _book(state: State, time: int) -> None:
    """Write down who starts, goes on and is suspended."""
    ctl, moves, jobs = state.ctl, state.moves, state.jobs
    for i in range(state.floor[f.STARTS]):
        row = moves[f.STARTED, i]
        if row < jobs.shape[0]:
            job = jobs[row]
            job[w.STATUS], job[w.START], job[w.SINCE], job[w.READY] = IS_RUNNING, time, time, time
            ctl[w.FIRST] += 1
            ctl[w.RUNNING] += 1
            note(state, time, row, w.STARTED, 0.0)
    for i in range(state.floor[f.WAKES]):
        row = moves[f.WOKEN, i]
        if row < jobs.shape[0]:
            jobs[row, w.PAUSED] = 0
            note(state, time, row, w.CAPPED, np.nan)
    for i in range(state.floor[f.HALTS]):
        row = moves[f.STOPPED, i]
        if row < jobs.shape[0]:
            jobs[row, w.PAUSED] = 1
            note(state, time, row, w.CAPPED, -1.0)


def _control(state: State, time: int) -> None:
    """Have the policy decide, and do it."""
    count_idle(state, time)
    ask(moment(state, time, 0.0), floor_of(state), state.given)
    state.ctl[w.FREE] = state.floor[f.FREE]
    _book(state, time)
    _set_caps(state, time)


control: Any = _control
"""`_control` with that of a policy, likewise."""


@kernel
def _gets_on(state: State) -> bool:
    """Tells whether a job is to come or runs, standby jobs aside, and is not suspended."""
    running = state.ctl[w.NEXT] < state.jobs.shape[0]
    for kind in range(state.kinds.shape[0]):
        tally = state.tallies[kind]
        running |= tally[f.STANDBY] == 0 and tally[f.RUNNING] > 0
    return running  # type: ignore[no-any-return]


@kernel
def _alarm(state: State) -> int:
    """Returns the time for which an END event has to be scheduled now, -1 if for none."""
    first = next_end(floor_of(state))
    state.ctl[w.ENDING] = 0
    if first < NEVER:
        state.ending[0, 0], state.ctl[w.ENDING] = first, 1
    return next_alarm(state)  # type: ignore[no-any-return]


def handle(sim: Sim, state: State, time: int, which: int, a: int, b: int) -> None:
    """Handle an event."""
    ctl, kind = state.ctl, kind_of(which)
    until = ctl[w.RUN_UNTIL]
    over = ctl[w.DONE] == state.jobs.shape[0] and until == 0
    if (until > 0 and time >= until) or (over and time > ctl[w.LAST_END]):
        return
    if kind == w.END:
        if not rings(state, time):
            return
        _end(state, time)
    elif kind == w.ARRIVE:
        _arrive(state, time)
        if ctl[w.NEXT] < state.jobs.shape[0]:
            schedule(sim, state.jobs[ctl[w.NEXT], w.SUBMIT], key(w.ARRIVE), 0, 0)
    elif kind == w.MEASURE:
        if not over or ctl[w.LAST_END] == time:
            _measure(state, time)
        ctl[w.STILL] = 0 if until > 0 or _gets_on(state) else ctl[w.STILL] + 1
        if not over and ctl[w.STILL] < PATIENCE:
            schedule(sim, time + ctl[w.INTERVAL], key(w.MEASURE), 0, 0)
            schedule(sim, time, key(w.CONTROL), 0, 0)
    elif kind == w.SIGNAL and not over and ctl[w.STILL] < PATIENCE:
        count_idle(state, time)
        set_signal(sim, state, a, b)
    elif kind == w.CONTROL and not over:
        control(state, time)
    if kind == w.END or kind == w.CONTROL:
        alarm = _alarm(state)
        if alarm >= 0:
            schedule(sim, alarm, key(w.END), 0, 0)
    full = ctl[w.NOTES] >= w.NOTES_KEPT or ctl[w.READINGS] >= w.NOTES_KEPT
    if full or state.floor[f.WRONG] != 0:
        schedule(sim, time, key(w.DRAIN), 0, 0)


@cache
def handler(policy: Regulate) -> Any:
    """Returns `handle` for the kernel of a policy."""
    asked = kernel(rebound(_control, "control", ask=asking(policy)))
    return kernel(rebound(handle, "handle", control=asked))


@entry
def conclude_now(state: State, time: int) -> None:
    """Measure the last interval of a run that ends now, where it is whole."""
    if state.ctl[w.MEASURED] + state.ctl[w.INTERVAL] == time:
        _end(state, time)
        _measure(state, time)


@entry
def begin_now(state: State, there: int, left: Any, halted: Any, standby: Any, paused: Any) -> None:
    """Have the first `there` jobs be there at time 0: as many as there are of `left` run, with so
    much of their work left, and some of these are suspended; the others wait. Standby jobs run with
    what is left of theirs, or are `paused`."""
    floor, ctl = floor_of(state), state.ctl
    for row in range(there):
        kind = state.rows[row, f.OF]
        if row < left.shape[0]:
            begin(floor, kind, row, left[row])
            state.jobs[row, w.STATUS] = IS_RUNNING
            ctl[w.RUNNING] += 1
            if halted[row] != 0:
                halt(floor, row, 0)
                state.jobs[row, w.PAUSED] = 1
        else:
            _arrive(state, 0)
        ctl[w.NEXT] = row + 1
        ctl[w.LAST] = max(0, row + 1 - left.shape[0])
    kind = state.floor[f.STANDBY_KIND]
    for i in range(standby.shape[0]):
        row = state.tallies[kind, f.HEAD]
        take(floor, kind, 0)
        again(floor, kind, row, standby[i])
        if paused[i] != 0:
            halt(floor, row, 0)
    state.floor[f.STARTS] = state.floor[f.HALTS] = 0
    ctl[w.FREE] = state.floor[f.FREE]


@kernel
def _pass(state: State, at: int, due: int) -> int:
    """Have jobs end, and the signal change, before an instant; jobs also at it. `at` is the place
    of the signal's next value. Returns that of the one after."""
    while True:
        ended, changes = next_end(floor_of(state)), NEVER
        if at < state.signal.shape[0]:
            changes = state.signal_times[at]
        if ended <= due and ended <= changes:
            _end(state, ended)
        elif changes < due:
            count_idle(state, changes)
            state.market[w.SIGNAL_NOW] = state.signal[at]
            at += 1
        else:
            return at


def hour_now(state: State, since: int, until: int, most_bad: int, limit: float) -> int:
    """Simulate an hour, without the engine and without a log: the events that `handle` handles, in
    the same order. Returns how many intervals were measured: fewer than there are where more than
    `most_bad` were off the target by more than `limit`, of those that began at `since` or later."""
    ctl, due, at = state.ctl, 0, 0
    jobs, interval, measured, bad, off_j = state.jobs.shape[0], ctl[w.INTERVAL], 0, 0, 0.0
    while True:
        at = _pass(state, at, due)
        come = min(due, until - 1)
        while ctl[w.NEXT] < jobs and state.jobs[ctl[w.NEXT], w.SUBMIT] <= come:
            _arrive(state, due)  # when it did has no effect before `due`
        if due > 0:
            ctl[w.READINGS] = measured
            _measure(state, due)
            measured += 1
            reserve_j = state.market[w.RESERVE_W] * (interval * w.SECOND)
            off = state.market[w.OFF_J] - off_j > (limit + HAIR) * reserve_j
            if off and reserve_j > 0.0 and due > since:
                bad += 1
            off_j = state.market[w.OFF_J]
        if due >= until or bad > most_bad:
            return measured
        if at < state.signal.shape[0] and state.signal_times[at] == due:
            state.market[w.SIGNAL_NOW] = state.signal[at]
            at += 1
        control(state, due)
        due += interval


@entry
def judge_now(state: State, here: int, until: int, place: Any, late: Any, waits: Any) -> int:
    """Write down, of the jobs from row `here` on that have come by now, how much longer they took
    than without caps and queue, as a part of that, and how long they waited, in s, if need be up to
    now; nan of others. `place` says where. Those that are not over count as if they went on without
    a cap. Returns how many of all jobs have started."""
    floor, jobs, started = floor_of(state), state.jobs, 0
    for kind in range(state.kinds.shape[0]):
        advance(floor, kind, until)
    for row in range(jobs.shape[0]):
        job, mark = jobs[row], state.progress[row]
        come = row < state.ctl[w.NEXT]
        if come and job[w.START] >= 0:
            started += 1
        if row >= here:
            at = place[row - here]
            late[at] = waits[at] = np.nan
            if come:
                left, end, start = mark[f.RUN], float(until), float(until)
                if job[w.START] >= 0:
                    start = job[w.START]
                if job[w.STATUS] == FINISHED:
                    left, end = 0.0, float(job[w.OVER])
                elif job[w.STATUS] == IS_RUNNING:
                    left = work_left(floor, row, until)
                waits[at] = (start - job[w.SUBMIT]) * w.SECOND
                longer = end + left - job[w.SUBMIT] - mark[f.RUN]
                late[at] = longer / max(mark[f.RUN], f.SHORTEST)
    return started


@cache
def hour(policy: Regulate) -> Any:
    """Returns `hour_now` for the kernel of a policy."""
    asked = kernel(rebound(_control, "control", ask=asking(policy)))
    return bind(hour_now, "hour_now", control=asked)
