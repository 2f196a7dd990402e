"""What happens: jobs arrive, start, are suspended and end; compiled, with Python's ways in."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from odonata.cluster import layout as w
from odonata.cluster.ends import first_ended, next_alarm, rings
from odonata.cluster.energy import (
    count_idle,
    count_job,
    count_node,
    fall_asleep,
    measure,
    note,
    off,
    set_boot,
    set_machine_cap,
)
from odonata.cluster.layout import State, desk_of, key
from odonata.cluster.machine import change, end, note_served, reorder, start, suspend
from odonata.jobs.machine import CAP as CAP_BIT
from odonata.jobs.machine import JOBS, PATIENCE, READING, TARGET
from odonata.jobs.power import stretch
from odonata.jobs.schedule import WAITING
from pdes.events import kind_of
from pdes.jit import bind, entry, kernel, rebound
from pdes.loop import Sim, last_of_instant, schedule
from policies.power.steering import Steer, ask
from policies.scheduling.desk import NEVER, RULE, SERVE_DEPARTURES, place_in
from policies.scheduling.rules import choose, first_in_order
from policies.scheduling.usage import charge
from policies.views import Moment, PowerDesk

# -- the pass


@kernel
def _choose(state: State, time: int) -> None:
    """Have a compiled discipline choose."""
    state.ctl[w.TIME] = time
    if state.rule[RULE] == SERVE_DEPARTURES:
        for i in range(state.ctl[w.RUNNING]):
            note_served(state, state.running[i], time)
    choose(desk_of(state))


@kernel
def _settle(state: State, time: int) -> int:
    """Suspend the running jobs that a discipline that preempts has not chosen, and take those that
    start out of the queue: `chosen` has these alone then. Returns how many were suspended."""
    ctl, jobs = state.ctl, state.jobs
    ctl[w.PASSES] += 1
    starting = suspended = 0
    for i in range(ctl[w.CHOSEN]):
        row = state.chosen[i]
        jobs[row, w.PICKED] = ctl[w.PASSES]
        if jobs[row, w.STATUS] == WAITING:
            state.chosen[starting] = row
            starting += 1
    if ctl[w.PREEMPTS] != 0:
        for at in range(ctl[w.RUNNING] - 1, -1, -1):
            if jobs[state.running[at], w.PICKED] != ctl[w.PASSES]:
                suspend(state, at, time)
                suspended += 1
    ctl[w.CHOSEN] = starting
    ctl[w.LAUNCHED] = 0
    last = ctl[w.FIRST] - 1
    for i in range(starting):
        at = place_in(state.queue, ctl[w.FIRST], ctl[w.LAST], state.chosen[i])
        state.heap[i] = at
        last = max(last, at)
    for i in range(starting):
        state.queue[state.heap[i]] = -1
    to = last + 1
    for at in range(last, ctl[w.FIRST] - 1, -1):
        if state.queue[at] >= 0:
            to -= 1
            state.queue[to] = state.queue[at]
    ctl[w.FIRST] = to
    return suspended


# -- events


@kernel
def _launch(sim: Sim, state: State, time: int) -> None:
    """Start the chosen jobs, or some of them and have the others follow."""
    ctl = state.ctl
    most = min(ctl[w.CHOSEN], ctl[w.LAUNCHED] + w.AT_ONCE)
    while ctl[w.LAUNCHED] < most:
        row = state.chosen[ctl[w.LAUNCHED]]
        ctl[w.LAUNCHED] += 1
        start(state, row, time)
    if ctl[w.LAUNCHED] < ctl[w.CHOSEN]:
        schedule(sim, time, key(w.LAUNCH), 0, 0)


@kernel
def _gets_on(state: State) -> bool:
    """Tells whether a job is to come, or another cap, or a job runs that is not suspended."""
    at, running = 0, state.ctl[w.RUNNING]
    while at < running and state.jobs[state.running[at], w.PAUSED] != 0:
        at += 1
    to_come = state.ctl[w.NEXT] < state.jobs.shape[0] or state.ctl[w.CAPS_LEFT] > 0
    return at < running or to_come  # type: ignore[no-any-return]


@kernel
def set_signal(sim: Sim, state: State, place: int, round_: int) -> None:
    """Have the signal take its next value, and have the one after that follow; behind the last one
    comes the first again, where it has a period."""
    ctl = state.ctl
    state.market[w.SIGNAL_NOW] = state.signal[place]
    place += 1
    if place == state.signal.shape[0] and ctl[w.PERIOD] > 0:
        place = 0
        round_ += 1
    if place < state.signal.shape[0]:
        time = state.signal_times[place] + round_ * ctl[w.PERIOD]
        schedule(sim, time, key(w.SIGNAL), place, round_)


@kernel
def handle(sim: Sim, state: State, time: int, which: int, a: int, b: int) -> None:
    """Handle an event. What several kinds of events do stands here once, behind them: the compiler
    copies a kernel to wherever it is called."""
    ctl, kind = state.ctl, kind_of(which)
    over = ctl[w.DONE] == state.jobs.shape[0]
    passes, happened, idle = kind == w.PASS, 0, False
    if kind == w.END:
        if not rings(state, time):
            return
        row = first_ended(state, time)
        while row >= 0:
            end(state, row, time)
            happened, idle = JOBS, True
            row = first_ended(state, time)
    elif kind == w.ARRIVE:
        row = ctl[w.NEXT]
        state.jobs[row, w.STATUS] = WAITING
        state.queue[ctl[w.LAST]] = row
        ctl[w.LAST] += 1
        ctl[w.NEXT] = row + 1
        ctl[w.ARRIVED] += 1
        if row + 1 < state.jobs.shape[0]:
            schedule(sim, state.jobs[row + 1, w.SUBMIT], key(w.ARRIVE), 0, 0)
        happened = JOBS
    elif kind == w.MEASURE:
        if not over or ctl[w.LAST_END] == time:
            measure(state, time)
        if _gets_on(state):
            ctl[w.STILL] = 0
        elif ctl[w.RETRY_AT] <= time:  # else a time is known at which jobs may start
            ctl[w.STILL] += 1
        if not over and ctl[w.STILL] < PATIENCE:
            schedule(sim, time + ctl[w.INTERVAL], key(w.MEASURE), 0, 0)
        happened = 0 if over else READING
    elif kind == w.CAP and not over:
        set_machine_cap(state, time, state.caps[a])
        ctl[w.CAPS_LEFT] -= 1
        if ctl[w.CAPS_LEFT] > 0:
            schedule(sim, state.cap_times[a + 1], key(w.CAP), a + 1, 0)
        happened = CAP_BIT
    elif kind == w.SIGNAL and not over and ctl[w.STILL] < PATIENCE:
        count_idle(state, time)
        set_signal(sim, state, a, b)
        happened = TARGET
    elif kind == w.SLEEP and not over:
        fall_asleep(state, time)
    if idle and ctl[w.SLEEP_AFTER] >= 0:
        schedule(sim, time + ctl[w.SLEEP_AFTER], key(w.SLEEP), 0, 0)
    ctl[w.HAPPENED] |= happened
    if happened & ctl[w.PASS_AT] and ctl[w.PASSING] == 0:
        passes = ctl[w.COMPILED] != 0 and last_of_instant(sim, time)
        if not passes:
            ctl[w.PASSING] = 1
            schedule(sim, time, key(w.PASS), 0, 0)
    elif happened & ctl[w.CONTROL_AT] and ctl[w.PASSING] == 0 and ctl[w.CONTROLLING] == 0:
        ctl[w.CONTROLLING] = 1
        schedule(sim, time, key(w.CONTROL), 0, 0)
    if passes:
        ctl[w.PASSING] = ctl[w.HAPPENED] = 0
        _choose(state, time)
        if _settle(state, time) > 0 and ctl[w.SLEEP_AFTER] >= 0:
            schedule(sim, time + ctl[w.SLEEP_AFTER], key(w.SLEEP), 0, 0)
    if passes or kind == w.LAUNCH:
        _launch(sim, state, time)
    if passes or kind in (w.LAUNCH, w.END):
        alarm = next_alarm(state)
        if alarm >= 0:
            schedule(sim, alarm, key(w.END), 0, 0)
    if ctl[w.NOTES] >= w.NOTES_KEPT or ctl[w.READINGS] >= w.NOTES_KEPT:
        schedule(sim, time, key(w.DRAIN), 0, 0)


# -- for Python: those that may move an end return the time of the alarm that has to be set then, or
# -1


@entry
def choose_now(state: State, time: int) -> None:
    """Have a compiled discipline choose."""
    _choose(state, time)


@entry
def order_now(state: State, time: int, most: int) -> int:
    """Write the first waiting jobs in the order of a compiled discipline to `chosen`, at most so
    many. Returns how many there are."""
    state.ctl[w.TIME] = time
    return first_in_order(desk_of(state), most)


@entry
def count_now(state: State, time: int) -> None:
    """Count what idle nodes took, and what the cap and the target asked for, up to now."""
    count_idle(state, time)


@entry
def note_held_now(state: State, time: int) -> None:
    """Have a discipline that goes by usage note who holds nodes from now on."""
    state.ctl[w.TIME] = time
    charge(desk_of(state))


@entry
def settle_now(state: State, time: int) -> int:
    """Suspend who has to be, and take the chosen jobs out of the queue. Returns how many were
    suspended."""
    return _settle(state, time)


@entry
def launch_now(state: State, time: int) -> int:
    """Start the chosen jobs."""
    for i in range(state.ctl[w.CHOSEN]):
        start(state, state.chosen[i], time)
    return next_alarm(state)


@kernel
def _cap(state: State, time: int, jobs: Any, caps: Any) -> int:
    """Give running jobs caps per node; NaN: it keeps its own."""
    moved = False
    for i in range(jobs.shape[0]):
        row, cap = jobs[i], caps[i]
        if cap == cap and state.energy[row, w.CAP_W] != cap:
            state.energy[row, w.CAP_W] = cap
            moved |= change(state, row, time)
            note(state, time, row, w.CAPPED, cap)
    if moved:
        reorder(state)
    return next_alarm(state)


@entry
def cap_now(state: State, time: int, jobs: Any, caps: Any) -> int:
    """Give running jobs caps per node; NaN: it keeps its own."""
    return _cap(state, time, jobs, caps)  # type: ignore[no-any-return]


@kernel
def moment(state: State, time: int, least_w: float) -> Moment:
    """Returns the numbers of the machine as a compiled power policy sees them."""
    ctl, meter, market = state.ctl, state.meter, state.market
    target_w, average_w, reserve_w, signal, until, error = np.nan, 0.0, 0.0, 0.0, 0, 0.0
    if market.shape[0] > 0 and market[w.UNTIL] != 0.0:
        average_w, reserve_w = market[w.AVERAGE_W], market[w.RESERVE_W]
        signal = market[w.SIGNAL_NOW]
        target_w, until, error = average_w + signal * reserve_w, int(market[w.UNTIL]), off(state)
    return Moment(
        time, ctl[w.FREE], ctl[w.ALL] - ctl[w.FREE], meter[w.IDLE_W], least_w,
        meter[w.PEAK_W], meter[w.MACHINE_CAP_W], meter[w.LAST_W], target_w, average_w, reserve_w,
        signal, until, error,
    )  # fmt: skip


def steer_now(
    state: State, time: int, least_w: float, desk: PowerDesk, memory: Any, given: Any, column: Any
) -> tuple[int, int, int]:
    """Have the policy of `ask`, which `steering` puts in its place, give caps to the running jobs.
    Returns the time of the alarm; what `ask` says; and the place of a cap that is below 0, or -1:
    then all hold."""
    for i in range(state.ctl[w.RUNNING]):
        note_served(state, state.running[i], time)
    said = ask(moment(state, time, least_w), desk, memory, given, column)
    for i in range(state.ctl[w.RUNNING]):
        if column[i] < 0.0:
            return -1, said, i
    alarm = _cap(state, time, desk.running, column)
    column[: state.ctl[w.RUNNING]] = np.nan  # another time fewer may run
    return alarm, said, -1


@cache
def steering(steer: Steer) -> Any:
    """Returns `steer_now` for the kernel of a policy."""
    return bind(steer_now, "steer_now", ask=kernel(rebound(ask, "ask", steer=steer)))


@entry
def pause_now(state: State, time: int, jobs: Any, paused: int) -> int:
    """Suspend running jobs, or have them go on."""
    for i in range(jobs.shape[0]):
        state.jobs[jobs[i], w.PAUSED] = paused
        change(state, jobs[i], time)
        note(state, time, jobs[i], w.CAPPED, -1.0 if paused != 0 else np.nan)
    reorder(state)
    return next_alarm(state)


@kernel
def _set_start_pace(state: State, cap_w: float) -> None:
    """Find out at which pace a job would run that starts now under such a cap per node. What it
    demands is not known beforehand: it is taken to be the most that a node can draw."""
    meter = state.meter
    pace = stretch(cap_w, meter[w.PEAK_W], meter[w.LEAST_W], meter[w.SLOWDOWN]) / meter[w.SPEED]
    if state.ctl[w.STRETCHES] != 0 and state.start_pace[0] != pace:
        state.start_pace[0] = pace
        state.ctl[w.REPACED] = 1


@entry
def pace_now(state: State, cap_w: float) -> None:
    """Tell disciplines under which cap per node a job would run that starts now."""
    _set_start_pace(state, cap_w)


@entry
def speed_now(state: State, time: int, rate: float, busy_w: float, idle_w: float) -> int:
    """Change the service rate of all nodes."""
    ctl, meter = state.ctl, state.meter
    count_idle(state, time)
    for node in range(state.node.shape[0]):
        if state.owner[node] == -1 and state.node[node, w.SLEEPS] == 0.0:
            count_node(state, node, 0, time)
            state.node[node, w.NODE_W] = idle_w
    for i in range(ctl[w.RUNNING]):
        count_job(state, state.running[i], time)
    meter[w.SPEED], meter[w.BUSY_W], meter[w.IDLE_W] = rate, busy_w, idle_w
    note(state, time, -1, w.SPEEDED, rate)
    _set_start_pace(state, np.inf)
    for i in range(ctl[w.RUNNING]):
        set_boot(state, state.running[i])
        change(state, state.running[i], time)
    reorder(state)
    return next_alarm(state)


@entry
def serve_now(state: State, time: int) -> None:
    """Note how much of their requested times running jobs have used up by now."""
    for i in range(state.ctl[w.RUNNING]):
        note_served(state, state.running[i], time)


@kernel
def _work_of(state: State, row: int, time: int) -> float:
    from_, left = state.jobs[row, w.COUNTED], state.work[row]
    if state.jobs[row, w.SINCE] >= 0 and time > from_:
        left = max(0.0, left - (time - from_) / state.pace[row])
    return max(0.0, state.jobs[row, w.REQUESTED] - (state.jobs[row, w.RUN] - left))  # type: ignore[no-any-return]


@entry
def work_now(state: State, time: int) -> float:
    """Returns the work that is left of all jobs that wait or run, as far as was requested; -1 where
    a job did not say."""
    total = 0.0
    for i in range(state.ctl[w.FIRST], state.ctl[w.LAST]):
        total += _work_of(state, state.queue[i], time)
    for i in range(state.ctl[w.RUNNING]):
        total += _work_of(state, state.running[i], time)
    return total if total < NEVER else -1.0
