"""Power in the job model: what is drawn, what it adds up to, and how fast jobs get on under it.

Energy is counted lazily: that of a job up to its BILLED, that of nodes which are idle or asleep up
to METERED. Whoever changes what is drawn counts up to that moment first. All energies of a run are
the sum of three: of idle nodes, of sleeping nodes, and of jobs, which also pay for waking nodes.
"""

from __future__ import annotations

import numpy as np

from odonata.cluster.layout import (
    ALLOWED_J,
    ASLEEP,
    BILLED,
    BOOT_W,
    BOTTOM,
    BUSY_W,
    CAP_W,
    CHANGE_AT,
    CHANGE_TO,
    CONTROLS,
    COUNTED,
    DRAWS_W,
    FACTOR,
    FACTOR_OF,
    FORCED,
    FORCED_NOW,
    FORCED_SEEN,
    GOT_ON,
    HEAPS,
    IDLE_J,
    IDLE_W,
    INTERVAL,
    JOBS_J,
    JOULES,
    LAST_ALLOWED_J,
    LAST_J,
    LAST_W,
    LEAST_W,
    LEVEL_W,
    LOWERED,
    MACHINE_CAP_W,
    MACHINE_CAPPED,
    MEAN_W,
    MEASURED,
    METERED,
    NODE,
    NODE_BOOT_W,
    NODE_J,
    NODE_W,
    NOISE_SEED,
    NOTES,
    PAUSED,
    PEAK_W,
    POWERED,
    READ,
    READ_J,
    READ_W,
    READINGS,
    READY,
    RUN,
    SECOND,
    SEGMENT_J,
    SLEEP_AFTER,
    SLEEP_J,
    SLEEP_W,
    SLEEPS,
    SLOWDOWN,
    SPEED,
    SPREAD,
    STRETCH,
    UNCAPPED,
    UNSTRETCHED,
    WAKE_TIME,
    WAKE_W,
    WAKES,
    WAKING,
    State,
)
from odonata.jobs.metering import (
    DEADLOCK,
    ESTIMATE,
    LOWERED_CAP,
    TOLERANCE,
    UNCONTROLLED,
    WITHIN,
)
from odonata.jobs.power import bits, stretch
from odonata.traces.demand import level, mean_at
from pdes.jit import kernel
from policies.scheduling.desk import FREE, NODES, RUNNING, SINCE


@kernel
def stretched_by(state: State, row: int) -> float:
    """Returns how many times as long a job has taken, under its caps, as it would have without."""
    if row < 0 or state.stretched.shape[0] == 0 or state.stretched[row, UNSTRETCHED] == 0.0:
        return 1.0
    return state.stretched[row, GOT_ON] / state.stretched[row, UNSTRETCHED]  # type: ignore[no-any-return]


@kernel
def note(state: State, time: int, row: int, what: int, value: float) -> None:
    """Write down what has happened, for the logs."""
    n = state.ctl[NOTES]
    line = state.notes[n]
    line[0] = time
    line[1] = row
    line[2] = what
    line[3] = bits(value)
    line[4] = bits(state.meter[IDLE_J])
    line[5] = bits(state.meter[SLEEP_J])
    line[6] = bits(stretched_by(state, row))
    state.ctl[NOTES] = n + 1


# -- counting


@kernel
def count_idle(state: State, time: int) -> None:
    """Count the energy of nodes that are idle or asleep, and what the cap allows, up to now."""
    ctl, meter = state.ctl, state.meter
    seconds = (time - ctl[METERED]) * SECOND
    if seconds > 0.0:
        meter[IDLE_J] += (ctl[FREE] - ctl[ASLEEP]) * meter[IDLE_W] * seconds
        meter[SLEEP_J] += ctl[ASLEEP] * meter[SLEEP_W] * seconds
        if meter[MACHINE_CAP_W] < np.inf:
            meter[ALLOWED_J] += meter[MACHINE_CAP_W] * seconds
        else:
            ctl[UNCAPPED] = 1
        ctl[METERED] = time


@kernel
def count_job(state: State, row: int, time: int) -> None:
    """Count the energy of a running job up to now."""
    job, energy = state.jobs[row], state.energy[row]
    begin = job[BILLED]
    joules = 0.0
    if begin < job[READY]:
        until = min(time, job[READY])
        joules = energy[BOOT_W] * ((until - begin) * SECOND)
        begin = until
    if time > begin:
        joules += energy[DRAWS_W] * ((time - begin) * SECOND)
    energy[JOULES] += joules
    state.meter[JOBS_J] += joules
    if state.node.shape[0] > 0:
        node = job[NODE]
        while node >= 0:
            count_node(state, node, job[READY], time)
            node = state.after[node]
    job[BILLED] = time


@kernel
def count_node(state: State, node: int, ready: int, time: int) -> None:
    """Count the energy of a node up to now; its job, if it has one, waits for others until
    `ready`."""
    words, begin = state.node[node], state.node_since[node, 0]
    if begin < ready:
        until = min(time, ready)
        words[NODE_J] += words[NODE_BOOT_W] * ((until - begin) * SECOND)
        begin = until
    if time > begin:
        words[NODE_J] += words[NODE_W] * ((time - begin) * SECOND)
    state.node_since[node, 0] = time


@kernel
def count_stretch(state: State, row: int, time: int) -> None:
    """Count for how long a running job has got on since its progress was counted, and how long that
    would have taken without a cap."""
    passed = time - state.jobs[row, COUNTED]
    if state.stretched.shape[0] > 0 and passed > 0 and state.pace[row] < np.inf:
        words = state.stretched[row]
        words[GOT_ON] += passed
        words[UNSTRETCHED] += passed / words[STRETCH]


@kernel
def count_work(state: State, row: int, time: int) -> None:
    """Count the progress of a running job up to now."""
    job = state.jobs[row]
    count_stretch(state, row, time)
    if time > job[COUNTED]:
        passed, pace = time - job[COUNTED], state.pace[row]
        done = float(passed) if pace == 1.0 else passed / pace
        state.work[row] = max(0.0, state.work[row] - done)
        job[COUNTED] = time


# -- what a job draws, and how fast it is


@kernel
def set_pace(state: State, row: int) -> None:
    """Find out how fast a job is, by its cap, its nodes and the service rate of the machine."""
    pace, meter = state.slowdown[row], state.meter
    if state.ctl[POWERED] != 0:
        energy = state.energy[row]
        cap = energy[CAP_W] / energy[FACTOR]
        longer = stretch(cap, energy[MEAN_W], meter[LEAST_W], meter[SLOWDOWN])
        state.stretched[row, STRETCH] = longer
        pace = pace * longer / meter[SPEED]
        if state.jobs[row, PAUSED] != 0:
            pace = np.inf
    state.pace[row] = pace


@kernel
def set_draw(state: State, row: int) -> None:
    """Find out what a job draws now, and each of its nodes."""
    job, energy, meter = state.jobs[row], state.energy[row], state.meter
    per_node = min(energy[LEVEL_W], max(energy[CAP_W], meter[LEAST_W]))
    if job[PAUSED] != 0:
        per_node = meter[IDLE_W]
    elif meter[BUSY_W] >= 0.0:
        per_node = min(meter[BUSY_W], max(energy[CAP_W], meter[LEAST_W]))
    if state.node.shape[0] == 0:
        energy[DRAWS_W] = job[NODES] * per_node
        return
    total, node = 0.0, job[NODE]
    varies = job[PAUSED] == 0 and meter[BUSY_W] < 0.0
    while node >= 0:
        words = state.node[node]
        factor = words[FACTOR_OF]
        watts = per_node
        if varies:
            watts = min(factor * energy[LEVEL_W], max(energy[CAP_W], factor * meter[LEAST_W]))
        words[NODE_W] = watts
        total += watts
        node = state.after[node]
    energy[DRAWS_W] = total


@kernel
def set_level(state: State, row: int, time: int) -> None:
    """Draw what a node of a job would draw without a cap in this interval."""
    job, energy = state.jobs[row], state.energy[row]
    watts = energy[MEAN_W]
    if energy[CHANGE_TO] != 1.0:
        left = state.work[row] - max(0, time - job[COUNTED]) / state.pace[row]
        done = 1.0 - left / job[RUN]
        watts = mean_at(watts, energy[CHANGE_AT], energy[CHANGE_TO], done)
    if energy[SPREAD] > 0.0:
        number = time // state.ctl[INTERVAL]
        watts = level(watts, energy[SPREAD], state.ctl[NOISE_SEED], row, number)
        watts = min(max(watts, 0.0), state.meter[PEAK_W])
    energy[LEVEL_W] = watts


# -- idle nodes


@kernel
def add_idle(state: State, count: int, time: int) -> None:
    """Note that so many nodes are idle from now on."""
    ctl, ring = state.ctl, state.idle
    size = ring.shape[0]
    if ctl[HEAPS] > 0:
        last = (ctl[BOTTOM] + ctl[HEAPS] - 1) % size
        if ring[last, 0] == time:
            ring[last, 1] += count
            return
    place = (ctl[BOTTOM] + ctl[HEAPS]) % size
    ring[place, 0], ring[place, 1] = time, count
    ctl[HEAPS] += 1


@kernel
def take_idle(state: State, count: int) -> int:
    """Take so many nodes, first those that have been idle for the shortest time. Returns how many
    of them are asleep."""
    ctl, ring = state.ctl, state.idle
    size = ring.shape[0]
    while count > 0 and ctl[HEAPS] > 0:
        last = (ctl[BOTTOM] + ctl[HEAPS] - 1) % size
        taken = min(count, ring[last, 1])
        ring[last, 1] -= taken
        count -= taken
        if ring[last, 1] == 0:
            ctl[HEAPS] -= 1
    ctl[ASLEEP] -= count
    return count


@kernel
def fall_asleep(state: State, time: int) -> None:
    """Put the nodes to sleep that have been idle for long enough."""
    ctl, ring = state.ctl, state.idle
    count_idle(state, time)
    since = time - ctl[SLEEP_AFTER]
    if state.node.shape[0] > 0:
        for node in range(state.node.shape[0]):
            words = state.node[node]
            long_idle = state.owner[node] == -1 and state.node_since[node, 1] <= since
            if long_idle and words[SLEEPS] == 0.0:
                count_node(state, node, 0, time)
                words[NODE_W], words[SLEEPS] = state.meter[SLEEP_W], 1.0
                ctl[ASLEEP] += 1
        return
    while ctl[HEAPS] > 0 and ring[ctl[BOTTOM], 0] <= since:
        ctl[ASLEEP] += ring[ctl[BOTTOM], 1]
        ctl[BOTTOM] = (ctl[BOTTOM] + 1) % ring.shape[0]
        ctl[HEAPS] -= 1


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
        node = job[NODE]
        while node >= 0:
            words = state.node[node]
            count_node(state, node, 0, time)
            factor = max(factor, words[FACTOR_OF])
            words[NODE_BOOT_W] = meter[IDLE_W]
            if words[SLEEPS] != 0.0:
                words[NODE_BOOT_W], words[SLEEPS] = meter[WAKE_W], 2.0
                waking += 1
            node = state.after[node]
        ctl[ASLEEP] -= waking
    else:
        waking = take_idle(state, job[NODES])
    ctl[WAKES] += waking
    job[READY] = time + ctl[WAKE_TIME] if waking > 0 else time
    job[COUNTED] = job[READY]
    job[BILLED] = time
    job[PAUSED] = 0
    energy[WAKING] = waking
    energy[BOOT_W] = waking * meter[WAKE_W] + (job[NODES] - waking) * meter[IDLE_W]
    energy[FACTOR] = factor
    energy[READ_J] = energy[SEGMENT_J] = energy[JOULES]
    set_level(state, row, time)
    set_draw(state, row)
    if job[FORCED] != 0:
        ctl[FORCED_NOW] += 1
        ctl[FORCED_SEEN] = 1


@kernel
def end_drawing(state: State, row: int, time: int) -> None:
    """End the segment of a job, whose nodes are idle from now on; FREE does not count them yet."""
    ctl, job = state.ctl, state.jobs[row]
    count_idle(state, time)
    count_job(state, row, time)
    state.energy[row, DRAWS_W] = 0.0
    if job[FORCED] != 0:
        ctl[FORCED_NOW] -= 1
        job[FORCED] = 0
    if state.node.shape[0] == 0:
        add_idle(state, job[NODES], time)
        return
    node = job[NODE]
    while node >= 0:
        state.node[node, NODE_W] = state.meter[IDLE_W]
        state.node[node, SLEEPS] = 0.0
        state.node_since[node, 1] = time
        node = state.after[node]


@kernel
def set_boot(state: State, row: int) -> None:
    """Find out what a job draws that waits for nodes which wake up, when idle power has changed."""
    energy, meter, node = state.energy[row], state.meter, state.jobs[row, NODE]
    awake = state.jobs[row, NODES] - energy[WAKING]
    energy[BOOT_W] = energy[WAKING] * meter[WAKE_W] + awake * meter[IDLE_W]
    while state.node.shape[0] > 0 and node >= 0:
        if state.node[node, SLEEPS] == 0.0:
            state.node[node, NODE_BOOT_W] = meter[IDLE_W]
        node = state.after[node]


# -- measuring


@kernel
def drawn(state: State, time: int) -> float:
    """Count all energy up to now. Returns it."""
    count_idle(state, time)
    for i in range(state.ctl[RUNNING]):
        count_job(state, state.running[i], time)
    return state.meter[IDLE_J] + state.meter[SLEEP_J] + state.meter[JOBS_J]  # type: ignore[no-any-return]


@kernel
def power_now(state: State) -> float:
    """Returns the watts of the machine at this moment, as if no node were waking."""
    ctl, meter = state.ctl, state.meter
    total = (ctl[FREE] - ctl[ASLEEP]) * meter[IDLE_W] + ctl[ASLEEP] * meter[SLEEP_W]
    for i in range(ctl[RUNNING]):
        total += state.energy[state.running[i], DRAWS_W]
    return total  # type: ignore[no-any-return]


@kernel
def set_machine_cap(state: State, time: int, cap_w: float) -> None:
    """Change the cap of the machine."""
    count_idle(state, time)
    if cap_w < state.meter[MACHINE_CAP_W] and power_now(state) > cap_w:
        state.ctl[LOWERED] = 1
    state.meter[MACHINE_CAP_W] = cap_w
    note(state, time, -1, MACHINE_CAPPED, cap_w)


@kernel
def measure(state: State, time: int) -> None:
    """Measure what the machine and each of its jobs drew since the last measurement; write down the
    reading, with the cause if it violates the cap; and draw what jobs demand from now on. An
    interval in which there was no cap for some time has none."""
    ctl, meter = state.ctl, state.meter
    total, began = drawn(state, time), ctl[MEASURED]
    seconds = (time - began) * SECOND
    joules, allowed = total - meter[LAST_J], meter[ALLOWED_J] - meter[LAST_ALLOWED_J]
    cause, allowed_w = WITHIN, np.inf
    if ctl[UNCAPPED] == 0:
        allowed_w = allowed / seconds
    ctl[UNCAPPED] = 0
    if joules > allowed_w * seconds * (1.0 + TOLERANCE):
        cause = ESTIMATE
        if ctl[CONTROLS] == 0:
            cause = UNCONTROLLED
        elif ctl[FORCED_SEEN] != 0:
            cause = DEADLOCK
        elif ctl[LOWERED] != 0:
            cause = LOWERED_CAP
    elif power_now(state) <= meter[MACHINE_CAP_W]:
        ctl[LOWERED] = 0
    reading = state.readings[ctl[READINGS]]
    reading[0] = time
    reading[1] = bits(joules / seconds)
    reading[2] = bits(allowed_w)
    reading[3] = cause
    ctl[READINGS] += 1
    meter[LAST_J], meter[LAST_ALLOWED_J] = total, meter[ALLOWED_J]
    meter[LAST_W] = joules / seconds
    ctl[FORCED_SEEN] = 1 if ctl[FORCED_NOW] > 0 else 0
    for i in range(ctl[RUNNING]):
        row = state.running[i]
        job, energy = state.jobs[row], state.energy[row]
        ran = (time - max(began, job[SINCE])) * SECOND
        if ran > 0.0:
            energy[READ_W] = (energy[JOULES] - energy[READ_J]) / ran / job[NODES]
        energy[READ_J] = energy[JOULES]
        if energy[SPREAD] > 0.0 or energy[CHANGE_TO] != 1.0:
            set_level(state, row, time)
            set_draw(state, row)
    ctl[MEASURED] = time
    ctl[READ] = 1
