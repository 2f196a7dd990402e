"""What happens: jobs arrive, start, are suspended and end; compiled, with Python's ways in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from odonata.cluster.energy import (
    count_idle,
    count_job,
    count_node,
    fall_asleep,
    measure,
    note,
    set_boot,
    set_machine_cap,
)
from odonata.cluster.layout import (
    ARRIVE,
    ARRIVED,
    ASKS,
    AT_ONCE,
    AT_READINGS,
    BUSY_W,
    BY_INTERVAL,
    CAP,
    CAP_W,
    CAPPED,
    CAPS_LEFT,
    COUNTED,
    DONE,
    DRAIN,
    END,
    IDLE_W,
    INTERVAL,
    LAST_END,
    LAUNCH,
    LAUNCHED,
    LEAST_W,
    MEASURE,
    NEXT,
    NODE_W,
    NOTES,
    NOTES_KEPT,
    PASS,
    PASSES,
    PASSING,
    PATIENCE,
    PAUSED,
    PEAK_W,
    PICKED,
    PREEMPTS,
    READ_W,
    READINGS,
    RUN,
    SEGMENT,
    SLEEP,
    SLEEP_AFTER,
    SLEEPS,
    SLOWDOWN,
    SPEED,
    SPEEDED,
    STATUS,
    STILL,
    STRETCHES,
    State,
    desk_of,
    key,
)
from odonata.cluster.machine import change, end, note_served, start, suspend
from odonata.jobs.power import stretch
from odonata.jobs.schedule import WAITING
from pdes.events import KEY, WORDS, A, B, kind_of
from pdes.events import TIME as WHEN
from pdes.jit import direct, entry, kernel
from pdes.loop import Sim, schedule
from policies.scheduling.desk import (
    CHOSEN,
    FIRST,
    LAST,
    NEVER,
    REPACED,
    REQUESTED,
    RULE,
    RUNNING,
    SERVE_DEPARTURES,
    SINCE,
    SUBMIT,
    TIME,
    place_in,
)
from policies.scheduling.rules import choose, first_in_order

# -- the pass


@kernel
def _choose(state: State, time: int) -> None:
    """Have a compiled discipline choose."""
    state.ctl[TIME] = time
    if state.rule[RULE] == SERVE_DEPARTURES:
        for i in range(state.ctl[RUNNING]):
            note_served(state, state.running[i], time)
    choose(desk_of(state))


@kernel
def _settle(state: State, time: int) -> int:
    """Suspend the running jobs that a discipline that preempts has not chosen, and take those that
    start out of the queue: `chosen` has these alone then. Returns how many were suspended."""
    ctl, jobs = state.ctl, state.jobs
    ctl[PASSES] += 1
    starting = suspended = 0
    for i in range(ctl[CHOSEN]):
        row = state.chosen[i]
        jobs[row, PICKED] = ctl[PASSES]
        if jobs[row, STATUS] == WAITING:
            state.chosen[starting] = row
            starting += 1
    if ctl[PREEMPTS] != 0:
        for at in range(ctl[RUNNING] - 1, -1, -1):
            if jobs[state.running[at], PICKED] != ctl[PASSES]:
                suspend(state, at, time)
                suspended += 1
    ctl[CHOSEN] = starting
    ctl[LAUNCHED] = 0
    last = ctl[FIRST] - 1
    for i in range(starting):
        at = place_in(state.queue, ctl[FIRST], ctl[LAST], state.chosen[i])
        state.heap[i] = at
        last = max(last, at)
    for i in range(starting):
        state.queue[state.heap[i]] = -1
    to = last + 1
    for at in range(last, ctl[FIRST] - 1, -1):
        if state.queue[at] >= 0:
            to -= 1
            state.queue[to] = state.queue[at]
    ctl[FIRST] = to
    return suspended


# -- events


@kernel
def _launch(sim: Sim, state: State, time: int) -> None:
    """Start the chosen jobs, or some of them and have the others follow."""
    ctl = state.ctl
    most = min(ctl[CHOSEN], ctl[LAUNCHED] + AT_ONCE)
    while ctl[LAUNCHED] < most:
        row = state.chosen[ctl[LAUNCHED]]
        ctl[LAUNCHED] += 1
        over = start(state, row, time)
        if over < NEVER:
            schedule(sim, over, key(END), row, state.jobs[row, SEGMENT])
    if ctl[LAUNCHED] < ctl[CHOSEN]:
        schedule(sim, time, key(LAUNCH), 0, 0)


@kernel
def _gets_on(state: State) -> bool:
    """Tells whether a job is to come, or another cap, or a job runs that is not suspended."""
    at, running = 0, state.ctl[RUNNING]
    while at < running and state.jobs[state.running[at], PAUSED] != 0:
        at += 1
    to_come = state.ctl[NEXT] < state.jobs.shape[0] or state.ctl[CAPS_LEFT] > 0
    return at < running or to_come  # type: ignore[no-any-return]


@kernel
def handle(sim: Sim, state: State, time: int, which: int, a: int, b: int) -> None:
    """Handle an event. What several kinds of events do stands here once, behind them: the compiler
    copies a kernel to wherever it is called."""
    ctl, kind = state.ctl, kind_of(which)
    if kind == END and state.jobs[a, SEGMENT] != b:
        return  # it was suspended since, or goes on at another pace
    over = ctl[DONE] == state.jobs.shape[0]
    asks, idle = False, False
    if kind == END:
        end(state, a, time)
        asks = idle = True
    elif kind == ARRIVE:
        row = ctl[NEXT]
        state.jobs[row, STATUS] = WAITING
        state.queue[ctl[LAST]] = row
        ctl[LAST] += 1
        ctl[NEXT] = row + 1
        ctl[ARRIVED] += 1
        if row + 1 < state.jobs.shape[0]:
            schedule(sim, state.jobs[row + 1, SUBMIT], key(ARRIVE), 0, 0)
        asks = True
    elif kind == PASS:
        ctl[PASSING] = 0
        _choose(state, time)
        idle = _settle(state, time) > 0
    elif kind == MEASURE:
        if not over or ctl[LAST_END] == time:
            measure(state, time)
        ctl[STILL] = 0 if _gets_on(state) else ctl[STILL] + 1
        if not over and ctl[STILL] < PATIENCE:
            schedule(sim, time + ctl[INTERVAL], key(MEASURE), 0, 0)
        asks = not over and ctl[ASKS] == AT_READINGS
    elif kind == CAP and not over:
        set_machine_cap(state, time, state.caps[a])
        ctl[CAPS_LEFT] -= 1
        asks = ctl[ASKS] != 0
    elif kind == SLEEP and not over:
        fall_asleep(state, time)
    if kind in (PASS, LAUNCH):
        _launch(sim, state, time)
    if idle and ctl[SLEEP_AFTER] >= 0:
        schedule(sim, time + ctl[SLEEP_AFTER], key(SLEEP), 0, 0)
    if asks and ctl[PASSING] == 0 and (kind == MEASURE or ctl[BY_INTERVAL] == 0):
        ctl[PASSING] = 1
        schedule(sim, time, key(PASS), 0, 0)
    if ctl[NOTES] >= NOTES_KEPT or ctl[READINGS] >= NOTES_KEPT:
        schedule(sim, time, key(DRAIN), 0, 0)


# -- for passes in Python


class Entries(NamedTuple):
    """The compiled code of what every pass calls, for the arrays of one state."""

    choose: Callable[[State, int], None]
    order: Callable[[State, int, int], int]
    settle: Callable[[State, int], int]
    launch: Callable[[State, int, Any], int]


_LATEST: list[tuple[State, Entries]] = []


def entries_of(state: State) -> Entries:
    """Returns the entries for a state, which are looked up once as long as it is the same."""
    if not _LATEST or _LATEST[0][0] is not state:
        rows = np.zeros((0, WORDS), np.int64)
        found = Entries(
            direct(choose_now, state, 0), direct(order_now, state, 0, 0),
            direct(settle_now, state, 0), direct(launch_now, state, 0, rows),
        )  # fmt: skip
        _LATEST[:] = [(state, found)]
    return _LATEST[0][1]


@entry
def choose_now(state: State, time: int) -> None:
    """Have a compiled discipline choose."""
    _choose(state, time)


@entry
def order_now(state: State, time: int, most: int) -> int:
    """Write the first waiting jobs in the order of a compiled discipline to `chosen`, at most so
    many. Returns how many there are."""
    state.ctl[TIME] = time
    return first_in_order(desk_of(state), most)


@entry
def settle_now(state: State, time: int) -> int:
    """Suspend who has to be, and take the chosen jobs out of the queue. Returns how many were
    suspended."""
    state.ctl[PASSING] = 0
    return _settle(state, time)


@kernel
def _write_end(state: State, row: int, over: int, line: Any) -> None:
    """Write the event of a job's end, if it will have one; else one that is about nothing."""
    line[WHEN] = over
    line[KEY] = key(END)
    line[A] = row
    line[B] = state.jobs[row, SEGMENT]


@entry
def launch_now(state: State, time: int, rows: Any) -> int:
    """Start the chosen jobs: their ends are written to `rows`, which has room for one each. Returns
    how many ends there are."""
    count = 0
    for i in range(state.ctl[CHOSEN]):
        row = state.chosen[i]
        over = start(state, row, time)
        if over < NEVER:
            _write_end(state, row, over, rows[count])
            count += 1
    return count


@entry
def cap_now(state: State, time: int, jobs: Any, caps: Any, rows: Any) -> int:
    """Give running jobs caps per node; below 0: to suspend, NaN: to resume one. Their new ends are
    written to `rows`, which has room for one each. Returns how many there are."""
    count = 0
    for i in range(jobs.shape[0]):
        row, cap = jobs[i], caps[i]
        if cap < 0.0 or cap != cap:
            state.jobs[row, PAUSED] = 1 if cap < 0.0 else 0
        elif state.energy[row, CAP_W] == cap:
            continue
        else:
            state.energy[row, CAP_W] = cap
        over = change(state, row, time)
        note(state, time, row, CAPPED, cap)
        if 0 <= over < NEVER:
            _write_end(state, row, over, rows[count])
            count += 1
    return count


@kernel
def _set_start_pace(state: State, cap_w: float) -> None:
    """Find out at which pace a job would run that starts now under such a cap per node. What it
    demands is not known beforehand: it is taken to be the most that a node can draw."""
    meter = state.meter
    pace = stretch(cap_w, meter[PEAK_W], meter[LEAST_W], meter[SLOWDOWN]) / meter[SPEED]
    if state.ctl[STRETCHES] != 0 and state.start_pace[0] != pace:
        state.start_pace[0] = pace
        state.ctl[REPACED] = 1


@entry
def pace_now(state: State, cap_w: float) -> None:
    """Tell disciplines under which cap per node a job would run that starts now."""
    _set_start_pace(state, cap_w)


@entry
def speed_now(state: State, time: int, rate: float, busy_w: float, idle_w: float, rows: Any) -> int:
    """Change the service rate of all nodes. The new ends of all running jobs are written to `rows`,
    which has room for one each. Returns how many there are."""
    ctl, meter = state.ctl, state.meter
    count_idle(state, time)
    for node in range(state.node.shape[0]):
        if state.owner[node] == -1 and state.node[node, SLEEPS] == 0.0:
            count_node(state, node, 0, time)
            state.node[node, NODE_W] = idle_w
    for i in range(ctl[RUNNING]):
        count_job(state, state.running[i], time)
    meter[SPEED], meter[BUSY_W], meter[IDLE_W] = rate, busy_w, idle_w
    note(state, time, -1, SPEEDED, rate)
    _set_start_pace(state, np.inf)
    count = 0
    for i in range(ctl[RUNNING]):
        state.heap[i] = state.running[i]  # as their order may change
    for i in range(ctl[RUNNING]):
        row = state.heap[i]
        set_boot(state, row)
        over = change(state, row, time)
        if 0 <= over < NEVER:
            _write_end(state, row, over, rows[count])
            count += 1
    return count


@entry
def readings_now(state: State, jobs: Any, watts: Any) -> int:
    """Write the running jobs, by number, and what a node of each drew when it was last measured.
    Returns how many there are."""
    count = state.ctl[RUNNING]
    for i in range(count):
        row, at = state.running[i], i
        while at > 0 and jobs[at - 1] > row:
            jobs[at] = jobs[at - 1]
            at -= 1
        jobs[at] = row
    for i in range(count):
        watts[i] = state.energy[jobs[i], READ_W]
    return count  # type: ignore[no-any-return]


@kernel
def _work_of(state: State, row: int, time: int) -> float:
    from_, left = state.jobs[row, COUNTED], state.work[row]
    if state.jobs[row, SINCE] >= 0 and time > from_:
        left = max(0.0, left - (time - from_) / state.pace[row])
    return max(0.0, state.jobs[row, REQUESTED] - (state.jobs[row, RUN] - left))  # type: ignore[no-any-return]


@entry
def work_now(state: State, time: int) -> float:
    """Returns the work that is left of all jobs that wait or run, as far as was requested; -1 where
    a job did not say."""
    total = 0.0
    for i in range(state.ctl[FIRST], state.ctl[LAST]):
        total += _work_of(state, state.queue[i], time)
    for i in range(state.ctl[RUNNING]):
        total += _work_of(state, state.running[i], time)
    return total if total < NEVER else -1.0
