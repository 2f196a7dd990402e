"""One routing at one load: a run of three phases, and whether the network was saturated.

The network warms up; messages generated during the measurement are those whose latency counts; and
while these drain the sources go on, so that the last of them meets the same load as the first. A
point is **steady**, or **saturated**: the network accepts less than it is offered, and its latency
is only that of the packets that arrived.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from odonata.agents.network import Network
from odonata.agents.traffic import Traffic
from odonata.results.performance import GROWTH, Performance, performance
from odonata.study.contract import Case, digest
from pdes.driver import run
from pdes.transport import Serial
from topology.presets import PRESETS

SIGMAS = 3
"""Standard deviations that chance is allowed."""


def traffic_of(network: Network) -> Traffic:
    """Returns its open-loop traffic, of which there is one."""
    return network.traffic[0]


def with_traffic(network: Network, traffic: Traffic, **changes: Any) -> Network:
    return replace(network, traffic=(traffic,), **changes)


def parameters(network: Network) -> dict[str, Any]:
    """Returns all that a network is, by name; of its one traffic without a number."""
    return {k.replace("traffic.0.", "traffic."): v for k, v in network.parameters().items()}


def slot_ps(network: Network) -> float:
    """Returns what a message takes on its node's link, in picoseconds."""
    return traffic_of(network).slot_ps(network.machine)


@dataclass(frozen=True)
class AtLoad(Case):
    """One point. `mark`: a digest of this simulator with the same routing, where outcomes are kept,
    so that those of a simulator which answers otherwise have another key."""

    network: Network
    end_ps: int
    mark: str = ""

    @property
    def load(self) -> float:
        return traffic_of(self.network).load

    def fields(self) -> dict[str, Any]:
        return {
            "routing": self.network.routing,
            "load": self.load,
            "end_ps": self.end_ps,
            "mark": self.mark,
            "network": parameters(self.network),
        }

    def __str__(self) -> str:
        return f"{self.network.routing} at load {self.load:g}"


@dataclass(frozen=True)
class Point:
    """The verdict in its performance is that of `saturated`, which sees more than source queues."""

    routing: str
    load: float
    performance: Performance
    events: int
    digest: str

    @property
    def saturated(self) -> bool:
        return self.performance.saturated

    @property
    def late(self) -> float:
        """Returns the fraction of the measured packets that was still under way at the end."""
        under_way = self.performance.undelivered_packets
        return under_way / max(1, self.performance.measured_packets + under_way)


def simulate(case: AtLoad) -> Point:
    """Simulate a point on this core, whatever ranks there are."""
    network = case.network
    result = run(network, case.end_ps, transport=Serial())
    found = performance(network, result)
    found = replace(found, saturated=saturated(network, found))
    return Point(network.routing, case.load, found, result.events, result.digest)


def revive(fields: dict[str, Any]) -> Point:
    """Returns a point from what JSON has of it."""
    return Point(**fields | {"performance": Performance(**fields["performance"])})


def saturated(network: Network, result: Performance) -> bool:
    """Tells whether the network accepts less than it is offered.

    Source queues that grow show it, but only once the buffers between them and the bottleneck are
    full, which just above saturation takes longer than any run. So what is accepted may not fall
    short by GROWTH either, and by more than chance: so many messages are under way when the
    measurement begins, and so many when it ends, that either number varies by about its root.
    """
    measure_ps = traffic_of(network).measure_ps
    assert measure_ps is not None
    generated = result.offered * network.machine.n_nodes * measure_ps / slot_ps(network)
    under_way = generated * result.mean_latency_ns * 1e3 / measure_ps
    missing = generated * (1 - result.throughput / result.offered) if generated else 0.0
    chance = SIGMAS * math.sqrt(2 * under_way)
    return result.saturated or missing > max(GROWTH * generated, chance)


@cache
def mark(routing: str) -> str:
    """Returns a digest of this simulator in a short run with a routing."""
    machine = PRESETS["kim-72"].machine
    found = []
    for pattern in ("uniform", "adversarial"):
        network = Network(machine, (Traffic(pattern, load=0.3),), routing=routing)
        found.append(run(network, 2_000_000, transport=Serial()).digest)
    return digest(found)
