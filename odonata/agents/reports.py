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

from odonata.agents import layout as w
from odonata.agents.layout import nic_row, node_row, port_row, where
from odonata.agents.link import used_by, waited_by
from pdes.events import key_of, port_of
from pdes.jit import kernel
from pdes.loop import Sim, schedule
from policies.views import Counters

if TYPE_CHECKING:
    from topology.dragonfly import Dragonfly

USUAL_INTERVAL_PS = 100_000_000
"""How often counters are read where nobody says: so rarely that it costs next to nothing
(docs/nedd.md)."""
USUAL_DELAY_PS = 10_000_000
SECOND_PS = 1e12

OF_NODE, OF_ROUTER = range(2)
"""Whose counters a report has: the port of its event. The event's first word is the one counter,
times the number of nodes (or routers) of the machine, plus the number of this node (or router); its
second word is the other counter."""


# -- at routers


@kernel
def waits_at(state: Any, row: int, time: int) -> Any:
    """Returns for how long packets have waited at a port, over its channels, in ps: without credit
    while the link was free, and otherwise."""
    used, stalls, waits = used_by(state.ports[row, 0], time), 0, 0
    for vc in range(state.slow.shape[1]):
        stall, wait = waited_by(state.ports[row, 1 + vc], state.slow[row, vc], used, time)
        stalls += stall
        waits += wait
    if state.queues.shape[0] > 0:
        for vc in range(state.queues.shape[1]):
            queue = state.queues[row, vc]
            lacked, since = queue[w.Q_ROOM] + queue[w.Q_EJECT], 0
            if queue[w.Q_WANTS] >= 0:
                since = time - queue[w.Q_SINCE]
                if queue[w.Q_LACKS] >= 0:
                    lacked += time - queue[w.Q_LACKS]
            stalls += lacked
            waits += queue[w.Q_WAITED] + since - lacked
    return stalls, waits


@kernel
def sample(sim: Sim, state: Any, time: int, key: int) -> None:
    """Read the counters of a router and of its nodes, and send them: two counters and whose they
    are in each event. The next reading is an interval later."""
    shape = state.shape
    group, router = where(shape, key)
    nodes, routers = shape[w.NODES], shape[w.ROUTERS]
    stalls, waits = 0, 0
    for port in range(shape[w.RADIX]):
        more_stalls, more_waits = waits_at(state, port_row(shape, group, router) + port, time)
        stalls += more_stalls
        waits += more_waits
    for word in range(nodes + 2):
        when, whose = time + state.telemetry[w.REPORT_DELAY], key_of(w.TELL, w.SCHEDULER, OF_NODE)
        first, second = 0, 0
        if word < nodes:
            index = router * nodes + word
            row = nic_row(shape, group, index)
            for vc in range(state.slow.shape[1]):
                first += state.ports[row, 1 + vc, w.BYTES]
            first = first * state.traffic[0, w.TOTAL] + group * routers * nodes + index
            second = state.nodes[node_row(shape, group, index), w.DELIVERED_BYTES]
        elif word == nodes:
            whose = key_of(w.TELL, w.SCHEDULER, OF_ROUTER)
            first = stalls * (state.traffic[0, w.TOTAL] // nodes) + group * routers + router
            second = waits
        else:
            when, whose = time + state.telemetry[w.REPORT_INTERVAL], key
        schedule(sim, when, whose, first, second)


def reports_of_an_event(machine: Dragonfly) -> int:
    """Returns how many events one reading of a router schedules."""
    return machine.nodes + 2


# -- at the scheduler


@kernel
def note_reading(state: Any, time: int, key: int, first: int, second: int) -> None:
    """Keep two counters of a node or of a router that have come."""
    number = (time - state.telemetry[w.REPORT_DELAY]) // state.telemetry[w.REPORT_INTERVAL]
    heard = state.heard[number % state.heard.shape[0]]
    many, place = state.traffic[0, w.TOTAL], 0
    if port_of(key) == OF_ROUTER:
        place, many = 2 * many, many // state.shape[w.NODES]
    heard[place + first % many] = first // many
    heard[place + many + first % many] = second


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
