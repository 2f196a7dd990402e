"""Power in the job model: what is drawn, what it adds up to, and how fast jobs get on under it.

Energy is counted lazily: that of a job up to its BILLED, that of nodes which are idle or asleep up
to METERED. Whoever changes what is drawn counts up to that moment first. All energies of a run are
the sum of three: of idle nodes, of sleeping nodes, and of jobs, which also pay for waking nodes.
"""

from __future__ import annotations

import numpy as np

from odonata.cluster import layout as w
from odonata.cluster.layout import State
from odonata.jobs import metering, trading
from odonata.jobs.metering import WITHIN
from odonata.jobs.power import bits, stretch
from odonata.traces.demand import level, mean_at
from pdes.jit import kernel, rebound
from policies.views import tracking

violates, lowers = kernel(metering.violates), kernel(metering.lowers)
cause_of, missed = kernel(metering.cause_of), kernel(metering.missed)
count_bad = kernel(
    rebound(trading.count_bad, "count_bad", is_bad=kernel(tracking.is_bad))
)  # fmt: skip
"""The rules of both fidelities, compiled."""


@kernel
def stretched_by(state: State, row: int) -> float:
    """Returns how many times as long a job has taken, under its caps, as it would have without."""
    if row < 0 or state.stretched.shape[0] == 0 or state.stretched[row, w.UNSTRETCHED] == 0.0:
        return 1.0
    return state.stretched[row, w.GOT_ON] / state.stretched[row, w.UNSTRETCHED]  # type: ignore[no-any-return]


@kernel
def note(state: State, time: int, row: int, what: int, value: float) -> None:
    """Write down what has happened, for the logs."""
    n = state.ctl[w.NOTES]
    state.ctl[w.NOTES] = n + 1
    if n >= state.notes.shape[0]:
        return  # whoever collects them says so
    line = state.notes[n]
    line[0] = time
    line[1] = row
    line[2] = what
    line[3] = bits(value)
    line[4] = bits(state.meter[w.IDLE_J])
    line[5] = bits(state.meter[w.SLEEP_J])
    line[6] = bits(stretched_by(state, row))


# -- counting


@kernel
def count_idle(state: State, time: int) -> None:
    """Count the energy of nodes that are idle or asleep, and what the cap allows, up to now."""
    ctl, meter = state.ctl, state.meter
    seconds = (time - ctl[w.METERED]) * w.SECOND
    if seconds > 0.0:
        meter[w.IDLE_J] += (ctl[w.FREE] - ctl[w.ASLEEP]) * meter[w.IDLE_W] * seconds
        meter[w.SLEEP_J] += ctl[w.ASLEEP] * meter[w.SLEEP_W] * seconds
        if meter[w.MACHINE_CAP_W] < np.inf:
            meter[w.ALLOWED_J] += meter[w.MACHINE_CAP_W] * seconds
        else:
            ctl[w.UNCAPPED] = 1
        if state.market.shape[0] > 0:
            market = state.market
            target_w = market[w.AVERAGE_W] + market[w.SIGNAL_NOW] * market[w.RESERVE_W]
            market[w.TARGET_J] += target_w * seconds
        ctl[w.METERED] = time


@kernel
def count_job(state: State, row: int, time: int) -> None:
    """Count the energy of a running job up to now."""
    job, energy = state.jobs[row], state.energy[row]
    begin = job[w.BILLED]
    joules = 0.0
    if begin < job[w.READY]:
        until = min(time, job[w.READY])
        joules = energy[w.BOOT_W] * ((until - begin) * w.SECOND)
        begin = until
    if time > begin:
        joules += energy[w.DRAWS_W] * ((time - begin) * w.SECOND)
    energy[w.JOULES] += joules
    state.meter[w.JOBS_J] += joules
    if state.node.shape[0] > 0:
        node = job[w.NODE]
        while node >= 0:
            count_node(state, node, job[w.READY], time)
            node = state.after[node]
    job[w.BILLED] = time


@kernel
def count_node(state: State, node: int, ready: int, time: int) -> None:
    """Count the energy of a node up to now; its job, if it has one, waits for others until
    `ready`."""
    words, begin = state.node[node], state.node_since[node, 0]
    if begin < ready:
        until = min(time, ready)
        words[w.NODE_J] += words[w.NODE_BOOT_W] * ((until - begin) * w.SECOND)
        begin = until
    if time > begin:
        words[w.NODE_J] += words[w.NODE_W] * ((time - begin) * w.SECOND)
    state.node_since[node, 0] = time


@kernel
def count_stretch(state: State, row: int, time: int) -> None:
    """Count for how long a running job has got on since its progress was counted, and how long that
    would have taken without a cap."""
    passed = time - state.jobs[row, w.COUNTED]
    if state.stretched.shape[0] > 0 and passed > 0 and state.pace[row] < np.inf:
        words = state.stretched[row]
        words[w.GOT_ON] += passed
        words[w.UNSTRETCHED] += passed / words[w.STRETCH]


@kernel
def count_work(state: State, row: int, time: int) -> None:
    """Count the progress of a running job up to now."""
    job = state.jobs[row]
    count_stretch(state, row, time)
    if time > job[w.COUNTED]:
        passed, pace = time - job[w.COUNTED], state.pace[row]
        done = float(passed) if pace == 1.0 else passed / pace
        state.work[row] = max(0.0, state.work[row] - done)
        job[w.COUNTED] = time


# -- what a job draws, and how fast it is


@kernel
def set_pace(state: State, row: int) -> None:
    """Find out how fast a job is, by its cap, its nodes and the service rate of the machine."""
    pace, meter = state.slowdown[row], state.meter
    if state.ctl[w.POWERED] != 0:
        energy, least_w, slowdown = state.energy[row], meter[w.LEAST_W], meter[w.SLOWDOWN]
        if state.limits.shape[0] > 0:
            least_w, slowdown = state.limits[row, w.LOW_W], state.limits[row, w.LONGER]
        cap = energy[w.CAP_W] / energy[w.FACTOR]
        longer = stretch(cap, energy[w.MEAN_W], least_w, slowdown)
        state.stretched[row, w.STRETCH] = longer
        pace = pace * longer / meter[w.SPEED]
        if state.jobs[row, w.PAUSED] != 0:
            pace = np.inf
    state.pace[row] = pace


@kernel
def set_draw(state: State, row: int) -> None:
    """Find out what a job draws now, and each of its nodes."""
    job, energy, meter = state.jobs[row], state.energy[row], state.meter
    least_w = meter[w.LEAST_W]
    if state.limits.shape[0] > 0:
        least_w = state.limits[row, w.LOW_W]
    per_node = min(energy[w.LEVEL_W], max(energy[w.CAP_W], least_w))
    if job[w.PAUSED] != 0:
        per_node = meter[w.IDLE_W]
    elif meter[w.BUSY_W] >= 0.0:
        per_node = min(meter[w.BUSY_W], max(energy[w.CAP_W], meter[w.LEAST_W]))
    if state.node.shape[0] == 0:
        energy[w.DRAWS_W] = job[w.NODES] * per_node
        return
    total, node = 0.0, job[w.NODE]
    varies = job[w.PAUSED] == 0 and meter[w.BUSY_W] < 0.0
    while node >= 0:
        words = state.node[node]
        factor = words[w.FACTOR_OF]
        watts = per_node
        if varies:
            watts = min(factor * energy[w.LEVEL_W], max(energy[w.CAP_W], factor * least_w))
        words[w.NODE_W] = watts
        total += watts
        node = state.after[node]
    energy[w.DRAWS_W] = total


@kernel
def set_level(state: State, row: int, time: int) -> None:
    """Draw what a node of a job would draw without a cap in this interval."""
    job, energy = state.jobs[row], state.energy[row]
    watts = energy[w.MEAN_W]
    if energy[w.CHANGE_TO] != 1.0:
        left = state.work[row] - max(0, time - job[w.COUNTED]) / state.pace[row]
        done = 1.0 - left / job[w.RUN]
        watts = mean_at(watts, energy[w.CHANGE_AT], energy[w.CHANGE_TO], done)
    if energy[w.SPREAD] > 0.0:
        number = time // state.ctl[w.INTERVAL]
        watts = level(watts, energy[w.SPREAD], state.ctl[w.NOISE_SEED], row, number)
        watts = min(max(watts, 0.0), state.meter[w.PEAK_W])
    energy[w.LEVEL_W] = watts


# -- idle nodes


@kernel
def add_idle(state: State, count: int, time: int) -> None:
    """Note that so many nodes are idle from now on."""
    ctl, ring = state.ctl, state.idle
    size = ring.shape[0]
    if ctl[w.HEAPS] > 0:
        last = (ctl[w.BOTTOM] + ctl[w.HEAPS] - 1) % size
        if ring[last, 0] == time:
            ring[last, 1] += count
            return
    place = (ctl[w.BOTTOM] + ctl[w.HEAPS]) % size
    ring[place, 0], ring[place, 1] = time, count
    ctl[w.HEAPS] += 1


@kernel
def take_idle(state: State, count: int) -> int:
    """Take so many nodes, first those that have been idle for the shortest time. Returns how many
    of them are asleep."""
    ctl, ring = state.ctl, state.idle
    size = ring.shape[0]
    while count > 0 and ctl[w.HEAPS] > 0:
        last = (ctl[w.BOTTOM] + ctl[w.HEAPS] - 1) % size
        taken = min(count, ring[last, 1])
        ring[last, 1] -= taken
        count -= taken
        if ring[last, 1] == 0:
            ctl[w.HEAPS] -= 1
    ctl[w.ASLEEP] -= count
    return count


@kernel
def fall_asleep(state: State, time: int) -> None:
    """Put the nodes to sleep that have been idle for long enough."""
    ctl, ring = state.ctl, state.idle
    count_idle(state, time)
    since = time - ctl[w.SLEEP_AFTER]
    if state.node.shape[0] > 0:
        for node in range(state.node.shape[0]):
            words = state.node[node]
            long_idle = state.owner[node] == -1 and state.node_since[node, 1] <= since
            if long_idle and words[w.SLEEPS] == 0.0:
                count_node(state, node, 0, time)
                words[w.NODE_W], words[w.SLEEPS] = state.meter[w.SLEEP_W], 1.0
                ctl[w.ASLEEP] += 1
        return
    while ctl[w.HEAPS] > 0 and ring[ctl[w.BOTTOM], 0] <= since:
        ctl[w.ASLEEP] += ring[ctl[w.BOTTOM], 1]
        ctl[w.BOTTOM] = (ctl[w.BOTTOM] + 1) % ring.shape[0]
        ctl[w.HEAPS] -= 1


# -- a job gets its nodes, and gives them back


@kernel
def begin_drawing(state: State, row: int, time: int) -> None:
    """Begin the segment of a job that has just got its nodes, some of which may have to wake up;
    FREE still counts them."""
    ctl, job, energy, meter = state.ctl, state.jobs[row], state.energy[row], state.meter
    count_idle(state, time)
    factor, waking = 1.0, 0
    if state.node.shape[0] > 0:
        factor = 0.0
        node = job[w.NODE]
        while node >= 0:
            words = state.node[node]
            count_node(state, node, 0, time)
            factor = max(factor, words[w.FACTOR_OF])
            words[w.NODE_BOOT_W] = meter[w.IDLE_W]
            if words[w.SLEEPS] != 0.0:
                words[w.NODE_BOOT_W], words[w.SLEEPS] = meter[w.WAKE_W], 2.0
                waking += 1
            node = state.after[node]
        ctl[w.ASLEEP] -= waking
    else:
        waking = take_idle(state, job[w.NODES])
    ctl[w.WAKES] += waking
    job[w.READY] = time + ctl[w.WAKE_TIME] if waking > 0 else time
    job[w.COUNTED] = job[w.READY]
    job[w.BILLED] = time
    job[w.PAUSED] = 0
    energy[w.WAKING] = waking
    energy[w.BOOT_W] = waking * meter[w.WAKE_W] + (job[w.NODES] - waking) * meter[w.IDLE_W]
    energy[w.FACTOR] = factor
    energy[w.READ_J] = energy[w.SEGMENT_J] = energy[w.JOULES]
    set_level(state, row, time)
    set_draw(state, row)
    if job[w.FORCED] != 0:
        ctl[w.FORCED_NOW] += 1
        ctl[w.FORCED_SEEN] = 1


@kernel
def end_drawing(state: State, row: int, time: int) -> None:
    """End the segment of a job, whose nodes are idle from now on; FREE does not count them yet."""
    ctl, job = state.ctl, state.jobs[row]
    count_idle(state, time)
    count_job(state, row, time)
    state.energy[row, w.DRAWS_W] = 0.0
    if job[w.FORCED] != 0:
        ctl[w.FORCED_NOW] -= 1
        job[w.FORCED] = 0
    if state.node.shape[0] == 0:
        add_idle(state, job[w.NODES], time)
        return
    node = job[w.NODE]
    while node >= 0:
        state.node[node, w.NODE_W] = state.meter[w.IDLE_W]
        state.node[node, w.SLEEPS] = 0.0
        state.node_since[node, 1] = time
        node = state.after[node]


@kernel
def set_boot(state: State, row: int) -> None:
    """Find out what a job draws that waits for nodes which wake up, when idle power has changed."""
    energy, meter, node = state.energy[row], state.meter, state.jobs[row, w.NODE]
    awake = state.jobs[row, w.NODES] - energy[w.WAKING]
    energy[w.BOOT_W] = energy[w.WAKING] * meter[w.WAKE_W] + awake * meter[w.IDLE_W]
    while state.node.shape[0] > 0 and node >= 0:
        if state.node[node, w.SLEEPS] == 0.0:
            state.node[node, w.NODE_BOOT_W] = meter[w.IDLE_W]
        node = state.after[node]


# -- measuring


@kernel
def drawn(state: State, time: int) -> float:
    """Count all energy up to now. Returns it."""
    count_idle(state, time)
    for i in range(state.ctl[w.RUNNING]):
        count_job(state, state.running[i], time)
    return state.meter[w.IDLE_J] + state.meter[w.SLEEP_J] + state.meter[w.JOBS_J]  # type: ignore[no-any-return]


@kernel
def power_now(state: State) -> float:
    """Returns the watts of the machine at this moment, as if no node were waking."""
    ctl, meter = state.ctl, state.meter
    total = (ctl[w.FREE] - ctl[w.ASLEEP]) * meter[w.IDLE_W] + ctl[w.ASLEEP] * meter[w.SLEEP_W]
    for i in range(ctl[w.RUNNING]):
        total += state.energy[state.running[i], w.DRAWS_W]
    return total  # type: ignore[no-any-return]


@kernel
def set_machine_cap(state: State, time: int, cap_w: float) -> None:
    """Change the cap of the machine."""
    count_idle(state, time)
    if lowers(state.meter[w.MACHINE_CAP_W], cap_w, power_now(state)):
        state.ctl[w.LOWERED] = 1
    state.meter[w.MACHINE_CAP_W] = cap_w
    note(state, time, -1, w.MACHINE_CAPPED, cap_w)


@kernel
def off(state: State) -> float:
    """Returns how far the machine is off its target, as a part of the reserve: the mean of this
    hour so far."""
    market = state.market
    return missed(market[w.OFF_J], market[w.RESERVE_W], market[w.TRACKED_S])  # type: ignore[no-any-return]


@kernel
def track(state: State, joules: float, seconds: float) -> float:
    """Count by how much the machine was off its target in an interval in which it drew so much.
    Returns the watts that the target asked for."""
    if state.market.shape[0] == 0:
        return np.nan
    market = state.market
    asked = market[w.TARGET_J] - market[w.LAST_TARGET_J]
    market[w.OFF_J] += abs(joules - asked)
    market[w.TRACKED_S] += seconds
    market[w.LAST_TARGET_J] = market[w.TARGET_J]
    count_bad(market, joules / seconds, asked / seconds, market[w.RESERVE_W])
    return asked / seconds  # type: ignore[no-any-return]


@kernel
def read(state: State, time: int, total: float, standby_w: float) -> None:
    """Write down a reading: what the machine drew since the last one, by its total energy so far,
    with the cause if it violates the cap. An interval in which there was no cap for some time has
    none."""
    ctl, meter = state.ctl, state.meter
    seconds = (time - ctl[w.MEASURED]) * w.SECOND
    joules, allowed = total - meter[w.LAST_J], meter[w.ALLOWED_J] - meter[w.LAST_ALLOWED_J]
    allowed_w = np.inf
    if ctl[w.UNCAPPED] == 0:
        allowed_w = allowed / seconds
    ctl[w.UNCAPPED] = 0
    violated = violates(joules, allowed_w, seconds)
    cause = cause_of(violated, ctl[w.CONTROLS] != 0, ctl[w.FORCED_SEEN] != 0, ctl[w.LOWERED] != 0)
    if cause == WITHIN and ctl[w.LOWERED] != 0 and power_now(state) <= meter[w.MACHINE_CAP_W]:
        ctl[w.LOWERED] = 0
    reading = state.readings[ctl[w.READINGS]]
    reading[0] = time
    reading[1] = bits(joules / seconds)
    reading[2] = bits(allowed_w)
    reading[3] = cause
    reading[4] = bits(track(state, joules, seconds))
    reading[5] = bits(standby_w)
    ctl[w.READINGS] += 1
    meter[w.LAST_J], meter[w.LAST_ALLOWED_J] = total, meter[w.ALLOWED_J]
    meter[w.LAST_W] = joules / seconds
    ctl[w.FORCED_SEEN] = 1 if ctl[w.FORCED_NOW] > 0 else 0
    ctl[w.MEASURED] = time


@kernel
def measure(state: State, time: int) -> None:
    """Measure what the machine and each of its jobs drew since the last measurement, and draw what
    jobs demand from now on."""
    ctl, began = state.ctl, state.ctl[w.MEASURED]
    read(state, time, drawn(state, time), 0.0)
    for i in range(ctl[w.RUNNING]):
        row = state.running[i]
        job, energy = state.jobs[row], state.energy[row]
        ran = (time - max(began, job[w.SINCE])) * w.SECOND
        if ran > 0.0:
            energy[w.READ_W] = (energy[w.JOULES] - energy[w.READ_J]) / ran / job[w.NODES]
        energy[w.READ_J] = energy[w.JOULES]
        if energy[w.SPREAD] > 0.0 or energy[w.CHANGE_TO] != 1.0:
            set_level(state, row, time)
            set_draw(state, row)
