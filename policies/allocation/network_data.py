"""Policies that go by what the network reported: the traffic of nodes and the stalls of routers.

All of them sort the routers that have idle nodes, and give the job the idle nodes of one router
after another until it has enough; of equal routers, that with the lowest label comes first. Where
nothing was reported yet, all routers are equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from policies.allocation.base import AllocationPolicy, allocation, heap_by_heap
from policies.allocation.sources import NEDD, RIVALS
from policies.parameters import parameter
from policies.views import STALLS, TRAFFIC, Counts, Labels, Rates, Request, Sight

UNKNOWN = ("sensitive", "insensitive")
"""What a job may be taken for of which nobody knows whether congestion slows it down."""


def routers_by(key: npt.NDArray[Any], sight: Sight, nodes: int) -> Labels:
    """Returns the idle nodes of one router after another, by ascending key."""
    counts = sight.by_router.ravel()
    some = np.flatnonzero(counts)
    order = some[np.argsort(key[some], kind="stable")]
    return sight.labels[heap_by_heap(sight.router_starts, counts, order, nodes)]


@dataclass(frozen=True)
class ByTraffic(AllocationPolicy):
    """Sorts routers by the bytes per second of all their nodes, idle or busy."""

    intervals: int = parameter(
        1, unit="intervals", about="of telemetry whose traffic is averaged", least=1, most=256
    )
    count: str = parameter("both", about=f"the traffic of a node: {', '.join(TRAFFIC)}")
    threshold: float = parameter(
        0.0, unit="bytes per second", about="up to which the traffic of a router counts as none",
        least=0,
    )  # fmt: skip

    def __post_init__(self) -> None:
        _check(self, "count", TRAFFIC)

    @property
    def reads(self) -> int:
        return self.intervals

    def traffic(self, sight: Sight) -> Rates:
        """Returns the traffic of each router, in bytes per second."""
        m = sight.machine
        if sight.counters is None:
            return np.zeros(m.n_routers)
        by_node = sight.counters.traffic_by_node(self.count, self.intervals)
        found: Rates = by_node.reshape(m.n_routers, m.nodes).sum(1)
        found[found <= self.threshold] = 0
        return found


@allocation("low-traffic-router", about="the routers with least traffic, one by one", source=RIVALS)
class LowTrafficRouter(ByTraffic):
    """Gives a job the routers with least traffic: what NeDD does with a sensitive job."""

    def choose(self, sight: Sight, job: Request, rng: np.random.Generator) -> Labels:
        return routers_by(self.traffic(sight), sight, job.nodes)


@allocation("high-traffic-router", about="the routers with most traffic, one by one", source=RIVALS)
class HighTrafficRouter(ByTraffic):
    """Gives a job the routers with most traffic: what NeDD does with an insensitive job."""

    def choose(self, sight: Sight, job: Request, rng: np.random.Generator) -> Labels:
        return routers_by(-self.traffic(sight), sight, job.nodes)


@dataclass(frozen=True)
class ByClass(ByTraffic):
    """Does one thing with jobs that congestion slows down, and the opposite with all others."""

    unknown: str = parameter(
        "sensitive", about=f"what a job of unknown sensitivity is taken for: {', '.join(UNKNOWN)}"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        _check(self, "unknown", UNKNOWN)

    def key(self, sight: Sight, job: Request) -> Rates:
        """Returns the traffic of each router; of an insensitive job, with the sign changed."""
        sensitive = self.unknown == "sensitive" if job.sensitive is None else job.sensitive
        traffic = self.traffic(sight)
        return traffic if sensitive else -traffic


@allocation(
    "nedd",
    about="sensitive jobs to the routers with least traffic, others to those with most",
    source=NEDD,
)
class Nedd(ByClass):
    """Keeps jobs that congestion slows down away from traffic, and gives the routers that have it
    to jobs that do not mind."""

    def choose(self, sight: Sight, job: Request, rng: np.random.Generator) -> Labels:
        return routers_by(self.key(sight, job), sight, job.nodes)


@allocation(
    "nedd-level",
    about="nedd within the smallest level that holds the job: router, group or machine",
    source=f"ours; the levels of Level-Spread, and {NEDD}",
)
class NeddLevel(ByClass):
    """Takes the smallest level that holds a job, and in it does what NeDD does. Of the groups that
    hold it, it takes that in which the nodes that the job would get have routers with least traffic
    on average (with most, for an insensitive job)."""

    def choose(self, sight: Sight, job: Request, rng: np.random.Generator) -> Labels:
        nodes, key = job.nodes, self.key(sight, job)
        counts = sight.by_router.ravel()
        fits = np.flatnonzero(counts >= nodes)
        if len(fits):
            return sight.of_router(fits[key[fits].argmin()])[:nodes]
        groups = np.flatnonzero(sight.by_group >= nodes)
        if not len(groups):
            return routers_by(key, sight, nodes)
        group, order = _best_group(key.reshape(sight.by_router.shape), sight.by_router, groups,
                                   nodes)  # fmt: skip
        first = group * sight.machine.routers
        return sight.labels[heap_by_heap(sight.router_starts, counts, first + order, nodes)]


def _best_group(key: Rates, idle: Counts, groups: Labels, nodes: int) -> tuple[int, Labels]:
    """Returns the one of these groups in which so many nodes have the least mean key of their
    routers, if routers are taken by ascending key; and its routers in that order."""
    order = np.argsort(key[groups], axis=1, kind="stable")
    sizes = np.take_along_axis(idle[groups], order, 1)
    before = np.cumsum(sizes, axis=1) - sizes
    taken = np.clip(nodes - before, 0, sizes)
    best = int((taken * np.take_along_axis(key[groups], order, 1)).sum(1).argmin())
    return int(groups[best]), order[best]


@allocation(
    "low-stall-router", about="the routers with the least time in stalls, one by one", source=RIVALS
)
class LowStallRouter(AllocationPolicy):
    """Sorts routers by the time for which packets waited in them, over all their ports."""

    intervals: int = parameter(
        1, unit="intervals", about="of telemetry whose stalls are averaged", least=1, most=256
    )
    count: str = parameter(
        "credit", about="the stalls of a router: credit, a packet has no credit and the link is "
        "free; any, also while the link is busy",
    )  # fmt: skip

    def __post_init__(self) -> None:
        _check(self, "count", STALLS)

    @property
    def reads(self) -> int:
        return self.intervals

    def choose(self, sight: Sight, job: Request, rng: np.random.Generator) -> Labels:
        stalls = np.zeros(sight.machine.n_routers)
        if sight.counters is not None:
            stalls = sight.counters.stalls_by_router(self.count, self.intervals)
        return routers_by(stalls, sight, job.nodes)


@allocation("fewer-router", about="the routers with most idle nodes, one by one", source=RIVALS)
def fewer_router(sight: Sight, job: Request, rng: np.random.Generator) -> Labels:
    return routers_by(-sight.by_router.ravel(), sight, job.nodes)


def _check(policy: Any, name: str, words: tuple[str, ...]) -> None:
    if getattr(policy, name) not in words:
        raise ValueError(f"{name} = {getattr(policy, name)!r}: one of {', '.join(words)}")
