"""Telemetry: what routers and nodes report to the scheduler, as messages.

At the end of every interval each router reads counters that only grow: the bytes that each of its
nodes has sent and received, and the time for which packets have waited in it. What it read reaches
the scheduler a **delay** later, over a network of its own that costs the simulated one nothing (as
on machines that collect counters by LDMS). The scheduler keeps the last readings, and a policy sees
their differences, with their age: nothing fresher.

The scheduler's readings are `State.heard`, one row per reading, used in turn: of the machine's
nodes the bytes sent and those received, then of its routers the times in stalls and in waits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from odonata.agents.layout import (
    BYTES,
    DELIVERED_BYTES,
    HEAD,
    MARK,
    NODES,
    Q_EJECT,
    Q_LACKS,
    Q_ROOM,
    Q_SINCE,
    Q_WAITED,
    Q_WANTS,
    RADIX,
    REPORT_DELAY,
    REPORT_INTERVAL,
    ROUTERS,
    SCHEDULER,
    SINCE,
    STALL,
    STARTED,
    TELL,
    TOTAL,
    WAIT,
    nic_row,
    node_row,
    port_row,
    where,
)
from odonata.agents.link import used_by
from pdes.events import key_of
from pdes.jit import kernel
from pdes.loop import Sim, schedule
from policies.views import Counters

if TYPE_CHECKING:
    from topology.dragonfly import Dragonfly

USUAL_INTERVAL_PS = 20_000_000
"""How often counters are read where nobody says."""
USUAL_DELAY_PS = 10_000_000
SECOND_PS = 1e12


# -- at routers


@kernel
def waited(state: Any, row: int, time: int) -> Any:
    """Returns for how long packets have waited at a port, over its channels, in ps: without credit
    while the link was free, and otherwise. `odonata.agents.metrics.tally` says why this is exact.
    """
    used, stalls, waits = used_by(state.ports[row, 0], time), 0, 0
    for vc in range(state.slow.shape[1]):
        channel, slow = state.ports[row, 1 + vc], state.slow[row, vc]
        stalls += slow[STALL]
        waits += channel[WAIT] - max(0, channel[STARTED] - time)
        if channel[HEAD] >= 0:
            free = (time - slow[SINCE]) - (used - slow[MARK])
            stalls += max(0, free)
            waits += max(0, (time - max(slow[SINCE], channel[STARTED])) - free)
    if state.queues.shape[0] > 0:
        for vc in range(state.queues.shape[1]):
            queue = state.queues[row, vc]
            lacked, since = queue[Q_ROOM] + queue[Q_EJECT], 0
            if queue[Q_WANTS] >= 0:
                since = time - queue[Q_SINCE]
                if queue[Q_LACKS] >= 0:
                    lacked += time - queue[Q_LACKS]
            stalls += lacked
            waits += queue[Q_WAITED] + since - lacked
    return stalls, waits


@kernel
def sample(sim: Sim, state: Any, time: int, key: int) -> None:
    """Read the counters of a router and of its nodes, and send them; the next reading is an
    interval later."""
    shape = state.shape
    group, router = where(shape, key)
    nodes, per_group = shape[NODES], shape[ROUTERS] * shape[NODES]
    total, interval = state.traffic[0, TOTAL], state.telemetry[REPORT_INTERVAL]
    number, stalls, waits = group * shape[ROUTERS] + router, 0, 0
    for port in range(shape[RADIX]):
        more_stalls, more_waits = waited(state, port_row(shape, group, router) + port, time)
        stalls += more_stalls
        waits += more_waits
    heard = time + state.telemetry[REPORT_DELAY]
    for word in range(2 * nodes + 3):
        when, whose, place, value = heard, key_of(TELL, SCHEDULER, 0), 0, 0
        if word < 2 * nodes:
            index, what = router * nodes + word // 2, word % 2
            place = what * total + group * per_group + index
            if what == 0:
                row = nic_row(shape, group, index)
                for vc in range(state.slow.shape[1]):
                    value += state.ports[row, 1 + vc, BYTES]
            else:
                value = state.nodes[node_row(shape, group, index), DELIVERED_BYTES]
        elif word == 2 * nodes:
            place, value = 2 * total + number, stalls
        elif word == 2 * nodes + 1:
            place, value = 2 * total + total // nodes + number, waits
        else:
            when, whose = time + interval, key
        schedule(sim, when, whose, place, value)


# -- at the scheduler


@kernel
def note_reading(state: Any, time: int, word: int, value: int) -> None:
    """Keep a reading that has come."""
    number = (time - state.telemetry[REPORT_DELAY]) // state.telemetry[REPORT_INTERVAL]
    state.heard[number % state.heard.shape[0], word] = value


def reports_of_an_event(machine: Dragonfly) -> int:
    """Returns how many events one reading of a router schedules."""
    return 2 * machine.nodes + 3


@dataclass(frozen=True)
class Telemetry:
    """How often counters are read, how long what was read takes to the scheduler, in ps, and of how
    many intervals it keeps them."""

    interval_ps: int
    delay_ps: int
    keeps: int

    def arrays(self, machine: Dragonfly, scheduler: bool) -> dict[str, Any]:
        """Returns the arrays of `State` that are about telemetry."""
        words = 2 * machine.n_nodes + 2 * machine.n_routers
        return {
            "telemetry": np.array([self.interval_ps, self.delay_ps]),
            "heard": np.zeros((self.keeps + 1 if scheduler else 0, words), np.int64),
        }

    def seen(self, heard: Any, machine: Dragonfly, time: int) -> Counters | None:
        """Returns what the scheduler knows at a time, None before the first report has come. The
        reading of time 0, before anything has happened, is all zeros."""
        last = (time - self.delay_ps) // self.interval_ps
        if last < 1:
            return None
        first = max(0, last - self.keeps)
        readings = heard[np.arange(first, last + 1) % len(heard)]
        ends = np.cumsum([machine.n_nodes, machine.n_nodes, machine.n_routers])
        parts = np.split(np.diff(readings, axis=0), ends, axis=1)
        for part in parts:
            part.flags.writeable = False
        return Counters(time - last * self.interval_ps, self.interval_ps / SECOND_PS, *parts)


def no_telemetry() -> dict[str, Any]:
    """Returns the same arrays where nothing is reported."""
    return {"telemetry": np.zeros(0, np.int64), "heard": np.zeros((0, 0), np.int64)}
