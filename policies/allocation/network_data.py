"""Policies that go by what the network reported: the traffic of nodes and the stalls of routers.

All of them sort the routers that have idle nodes, and give the job the idle nodes of one router
after another until it has enough; of equal routers, that with the lowest label comes first. Where
nothing was reported yet, all routers are equal. They sort by whole numbers (bytes, picoseconds), so
that no rounding decides between equals.

An example: two groups of three routers with two nodes each, of which seven are idle.

======  =======  ==========  ===========  =======  ==========
router  nodes    idle        bytes        traffic  stall (ps)
======  =======  ==========  ===========  =======  ==========
0       0, 1     1           5, 3         8        0
1       2, 3     2, 3        0, 2         2        5
2       4, 5     5           2, 0         2        1
3       6, 7     6, 7        5, 1         6        3
4       8, 9     9           9, 0         9        1
5       10, 11   none        0, 0         0        0
======  =======  ==========  ===========  =======  ==========

>>> from policies.allocation import ALLOCATIONS, allocate, rng_for
>>> from policies.views import Counters
>>> from topology import Dragonfly
>>> machine = Dragonfly(nodes=2, routers=3, global_links=1, groups=2, links_per_pair=1)
>>> counters = Counters.of_interval(
...     machine, sent=[5, 3, 0, 2, 2, 0, 5, 1, 9, 0, 0, 0], stall=[0, 5, 1, 3, 1, 0])
>>> idle = np.isin(np.arange(12), [1, 2, 3, 5, 6, 7, 9])
>>> def nodes_of(name, nodes, sensitive=None, **parameters):
...     job, sight = Request(0, nodes, 0, sensitive=sensitive), Sight(machine, idle, counters)
...     return allocate(ALLOCATIONS.make(name, parameters), sight, job, rng_for(1, 0)).tolist()

A job of three nodes. The routers with least traffic are 1 and 2, which are equal (router 5 has no
idle node); those with most are 4, 0 and 3. All the traffic of router 4 is that of node 8,
which is busy; node 9, which is idle, has none.

>>> nodes_of("low-traffic-router", 3), nodes_of("high-traffic-router", 3)
([2, 3, 5], [9, 1, 6])
>>> nodes_of("nedd", 3, sensitive=True), nodes_of("nedd", 3, sensitive=False)
([2, 3, 5], [9, 1, 6])
>>> nodes_of("nedd", 3), nodes_of("nedd", 3, unknown="insensitive")
([2, 3, 5], [9, 1, 6])

With a threshold of 8 bytes per second all routers but 4 count as being without traffic.

>>> nodes_of("nedd", 3, sensitive=True, threshold=8.0), nodes_of("nedd", 3, False, threshold=8.0)
([1, 2, 3], [9, 1, 2])

By stalls, router 0 comes first, then 2 and 4, which are equal; by idle nodes, 1 and 3.

>>> nodes_of("low-stall-router", 3), nodes_of("fewer-router", 3)
([1, 5, 9], [2, 3, 6])

By class, an insensitive job gets the routers with most stalls: 1 and 3.

>>> nodes_of("low-stall-router", 3, sensitive=False, by_class=True)
[2, 3, 6]
>>> nodes_of("low-stall-router", 3, sensitive=True, by_class=True)
[1, 5, 9]

Routers 1 and 3 hold a job of two nodes. Both groups hold a job of three: a sensitive one would have
routers with traffic 2, 2 and 2 in group 0, and with 6, 6 and 9 in group 1; an insensitive one with
8, 2 and 2, and with 9, 6 and 6. No group holds a job of five, which is placed as by nedd.

>>> nodes_of("nedd-level", 2, sensitive=True), nodes_of("nedd-level", 2, sensitive=False)
([2, 3], [6, 7])
>>> nodes_of("nedd-level", 3, sensitive=True), nodes_of("nedd-level", 3, sensitive=False)
([2, 3, 5], [9, 6, 7])
>>> nodes_of("nedd-level", 5, sensitive=True), nodes_of("nedd", 5, sensitive=True)
([2, 3, 5, 6, 7], [2, 3, 5, 6, 7])
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policies.allocation.base import AllocationPolicy, allocation, heap_by_heap
from policies.allocation.sources import NEDD, RIVALS
from policies.parameters import parameter
from policies.views import STALLS, TRAFFIC, Counts, Labels, Request, Sight, Words

UNKNOWN = ("sensitive", "insensitive")
"""What a job may be taken for of which nobody knows whether congestion slows it down."""
TAKEN_FOR = "what a job of unknown sensitivity is taken for"


def routers_by(key: Words | Counts, sight: Sight, nodes: int) -> Labels:
    """Returns the idle nodes of one router after another, by ascending key."""
    counts = sight.by_router.ravel()
    some = np.flatnonzero(counts)
    order = some[np.argsort(key[some], kind="stable")]
    return sight.labels[heap_by_heap(sight.router_starts, counts, order, nodes)]


def is_sensitive(job: Request, unknown: str) -> bool:
    """Tells whether congestion slows a job down; `unknown` says what one is taken for of which
    nobody knows."""
    return unknown == "sensitive" if job.sensitive is None else job.sensitive


@dataclass(frozen=True)
class ByTraffic(AllocationPolicy):
    """Sorts routers by the bytes per second of all their nodes, idle or busy."""

    intervals: int = parameter(
        1, unit="intervals", about="of telemetry whose traffic is averaged", least=1, most=256
    )
    count: str = parameter("both", about="the traffic of a node", words=TRAFFIC)
    threshold: float = parameter(
        0.0, unit="bytes per second", about="up to which the traffic of a router counts as none",
        least=0,
    )  # fmt: skip

    @property
    def reads(self) -> int:
        return self.intervals

    def traffic(self, sight: Sight) -> Words:
        """Returns the traffic of each router, in bytes in the intervals that it reads; 0 where it
        is not above the threshold, and everywhere while nothing was reported."""
        told = sight.counters
        if told is None:
            return np.zeros(sight.machine.n_routers, np.int64)
        found = told.bytes_by_router(self.count, self.intervals)
        found[found / told.seconds(self.intervals) <= self.threshold] = 0
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
    """Prefers routers with little traffic for jobs that congestion slows down, and those with much
    for the others."""

    unknown: str = parameter("sensitive", about=TAKEN_FOR, words=UNKNOWN)

    def key(self, sight: Sight, job: Request) -> Words:
        """Returns the traffic of each router; for an insensitive job, with the sign changed."""
        traffic = self.traffic(sight)
        return traffic if is_sensitive(job, self.unknown) else -traffic


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


def _best_group(key: Words, idle: Counts, groups: Labels, nodes: int) -> tuple[int, Labels]:
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
    """Sorts routers by the time for which packets waited in them, over all their ports. The thesis
    calls it similar to NeDD, so there it is `by_class`; it says no more of insensitive jobs."""

    sorts_by = "stalls"

    intervals: int = parameter(
        1, unit="intervals", about="of telemetry whose stalls are averaged", least=1, most=256
    )
    count: str = parameter(
        "credit", about="the stalls of a router: credit, a packet has no credit and the link is "
        "free; any, also while the link is busy", words=STALLS,
    )  # fmt: skip
    by_class: bool = parameter(
        False, about="an insensitive job gets the routers with most stalls, as by nedd those with "
        "most traffic",
    )  # fmt: skip
    unknown: str = parameter("sensitive", about=f"by class, {TAKEN_FOR}", words=UNKNOWN)

    @property
    def reads(self) -> int:
        return self.intervals

    def choose(self, sight: Sight, job: Request, rng: np.random.Generator) -> Labels:
        stalls = np.zeros(sight.machine.n_routers, np.int64)
        if sight.counters is not None:
            stalls = sight.counters.stalls_by_router(self.count, self.intervals)
        if self.by_class and not is_sensitive(job, self.unknown):
            stalls = -stalls
        return routers_by(stalls, sight, job.nodes)


@allocation("fewer-router", about="the routers with most idle nodes, one by one", source=RIVALS)
def fewer_router(sight: Sight, job: Request, rng: np.random.Generator) -> Labels:
    return routers_by(-sight.by_router.ravel(), sight, job.nodes)
