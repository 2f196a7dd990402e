"""One routing at one load: a run of three phases, which is made longer until it has settled.

The network warms up; messages generated during the measurement are those whose latency counts; and
while these drain the sources go on, so that the last of them meets the same load as the first. Then
the run is judged (`odonata.results.steadiness`). If it is neither steady nor saturated, it is made
again with all three phases twice as long, until it is, or until the next would last longer than it
may: then the point has not settled, and says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from odonata.agents.network import Network
from odonata.agents.traffic import Traffic
from odonata.results.performance import Performance, performance
from odonata.results.steadiness import STEADY, TOLERANCE, UNSETTLED, Steadiness
from odonata.study.contract import Case, digest
from pdes.driver import run
from pdes.transport import Serial
from topology.presets import PRESETS

FULL = 0.9
"""The utilisation from which on a link is nearly full: its queue needs some 1 / (1 - FULL)² = 100
packets to come to its mean, and without end above 1."""


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
    """One point. `end_ps`: the end of the first run; `longest_ps`: of the longest that may follow.
    `mark`: a digest of this simulator with the same routing, where outcomes are kept, so that those
    of a simulator which answers otherwise have another key."""

    network: Network
    end_ps: int
    longest_ps: int
    mark: str = ""

    @property
    def load(self) -> float:
        return traffic_of(self.network).load

    def fields(self) -> dict[str, Any]:
        return {
            "routing": self.network.routing,
            "load": self.load,
            "end_ps": self.end_ps,
            "longest_ps": self.longest_ps,
            "mark": self.mark,
            "network": parameters(self.network),
        }

    def __str__(self) -> str:
        return f"{self.network.routing} at load {self.load:g}"


@dataclass(frozen=True)
class Point:
    """What the last of its runs gave, `stretch` times as long as the first; `events` are those of
    all of them."""

    routing: str
    load: float
    performance: Performance
    events: int
    digest: str
    stretch: int = 1

    @property
    def verdict(self) -> str:
        return self.performance.steadiness.verdict

    @property
    def steady(self) -> bool:
        return self.verdict == STEADY

    @property
    def saturated(self) -> bool:
        return self.performance.saturated

    @property
    def settled(self) -> bool:
        """Tells whether its throughput is that of a steady state."""
        return self.performance.steadiness.settled

    @property
    def late(self) -> float:
        """Returns the fraction of the measured packets that was still under way at the end."""
        under_way = self.performance.undelivered_packets
        return under_way / max(1, self.performance.measured_packets + under_way)


def simulate(case: AtLoad) -> Point:
    """Simulate a point on this core, whatever ranks there are, until it has settled.

    Where a link is nearly full, a queue may take long to grow that has no end: there a run is
    steady if one of half its length was too, with the same mean latency.
    """
    stretch, events = 1, 0
    last: Performance | None = None
    while True:
        network = stretched(case.network, stretch)
        result = run(network, case.end_ps * stretch, transport=Serial())
        found, events = performance(network, result), events + result.events
        longest = case.end_ps * stretch * 2 > case.longest_ps
        settled = found.steadiness.settled
        if settled and found.steadiness.verdict == STEADY and busiest(found) >= FULL:
            growth = None if last is None else found.mean_latency_ns / last.mean_latency_ns - 1
            settled = growth is not None and abs(growth) <= TOLERANCE
            if longest and growth is not None and not settled:
                why = f"its mean latency is {growth:+.1%} off that of a run of half the length"
                judged = replace(found.steadiness, verdict=UNSETTLED, why=why)
                found = replace(found, steadiness=judged)
        if settled or longest:
            return Point(network.routing, case.load, found, events, result.digest, stretch)
        stretch, last = stretch * 2, found


def busiest(found: Performance) -> float:
    """Returns the utilisation of the busiest link of any class."""
    return max((link["max_utilisation"] for link in found.links.values()), default=0.0)


def stretched(network: Network, times: int) -> Network:
    """Returns the network with a warm-up and a measurement that are so many times as long."""
    traffic = traffic_of(network)
    assert traffic.measure_ps is not None
    longer = replace(
        traffic, warmup_ps=traffic.warmup_ps * times, measure_ps=traffic.measure_ps * times
    )
    return with_traffic(network, longer)


def revive(fields: dict[str, Any]) -> Point:
    """Returns a point from what JSON has of it."""
    found = dict(fields["performance"])
    found["steadiness"] = Steadiness(**found["steadiness"])
    return Point(**fields | {"performance": Performance(**found)})


@cache
def mark(routing: str) -> str:
    """Returns a digest of this simulator in a short run with a routing."""
    machine = PRESETS["kim-72"].machine
    found = []
    for pattern in ("uniform", "adversarial"):
        network = Network(machine, (Traffic(pattern, load=0.3),), routing=routing)
        found.append(run(network, 2_000_000, transport=Serial()).digest)
    return digest(found)
