"""Properties of a machine without simulation: distances, path diversity, bandwidths. All are exact.

There are two notions of a shortest path, and they differ. `distances` are the graph's: a path may
cross a third group, and two global hops sometimes save a local one. `routes` are what minimal
routing takes: at most one global cable, local–global–local.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from topology.dragonfly import Dragonfly, Ints

Walks = npt.NDArray[np.integer]
Counts = dict[int, int]
"""How many ordered pairs of different routers have each value, in ascending order."""

CELLS = 1 << 21
"""The number of (source, router) pairs per chunk of sources: 4 MiB per array."""


@dataclass(frozen=True)
class Measures:
    """The properties of a machine. Pairs are ordered, of different routers; bandwidths are bytes
    per second, in one direction."""

    distances: Counts
    routes: Counts
    diversity: Counts
    """Pairs by the number of shortest paths of the graph; parallel cables count as different paths.
    """
    visited: float
    """Routers that a packet visits under minimal routing, averaged over all pairs of nodes."""
    bisection: float
    bandwidths: dict[str, float]
    """The bandwidth of all cables of a kind together."""

    @property
    def diameter(self) -> int:
        """Returns the hops between the two routers furthest apart; 0 where there is one."""
        return max(self.distances, default=0)

    @property
    def mean_distance(self) -> float:
        return mean(self.distances)

    @property
    def mean_route(self) -> float:
        return mean(self.routes)

    @property
    def mean_diversity(self) -> float:
        return mean(self.diversity)


def measure(machine: Dragonfly) -> Measures:
    """Returns all of these properties; seconds suffice for a quarter of a million nodes."""
    distances, diversity = distances_and_diversity(machine)
    return Measures(
        distances=distances,
        routes=(hops := routes(machine)),
        diversity=diversity,
        visited=_visited(machine, hops),
        bisection=bisection(machine),
        bandwidths={k: n * machine.link(k).bandwidth for k, n in machine.n_links.items()},
    )


def mean(counts: Counts) -> float:
    """Returns the mean over all pairs; 0 where there are none."""
    pairs = sum(counts.values())
    return sum(value * count for value, count in counts.items()) / pairs if pairs else 0.0


def bisection(machine: Dragonfly) -> float:
    """Returns the bandwidth of the cut between two halves of the groups, in bytes per second and
    direction.

    Every pair of groups has K cables, so every split into ⌊g/2⌋ and ⌈g/2⌉ groups cuts the same
    ⌊g²/4⌋·K of them: for odd g the halves differ by one group, none is split in two. A single group
    is split between its routers, and cuts ⌊a²/4⌋ local cables.
    """
    if machine.groups == 1:
        return machine.routers**2 // 4 * machine.local.bandwidth
    return machine.groups**2 // 4 * machine.copies * machine.global_.bandwidth


def routes(machine: Dragonfly) -> Counts:
    """Returns pairs of routers by the hops of minimal routing, from the gates alone.

    Towards another group, one hop needs a cable between the two routers themselves, two need one at
    either of them, and three always suffice.
    """
    a, counts = machine.routers, np.zeros(4, np.int64)
    counts[1] = machine.groups * a * (a - 1)
    if machine.copies:
        gate = machine.gates() // machine.global_links
        for i in range(machine.groups):
            others = np.delete(np.arange(machine.groups), i)
            out, back = gate[i, others], gate[others, i]
            direct = _distinct(out * a + back)
            far = (a - _distinct(out)) * (a - _distinct(back))
            counts[1:] += direct.sum(), (a * a - far - direct).sum(), far.sum()
    return _tally(counts)


def distances_and_diversity(machine: Dragonfly) -> tuple[Counts, Counts]:
    """Returns pairs of routers by distance, and by how many shortest paths they have.

    A walk as long as the distance is a shortest path, and no distance exceeds three: so walks of
    one, two and three cables are counted, from a chunk of sources to all routers. Relative and
    circulant cabling look the same from every group, so that group 0 suffices for them.
    """
    alike = machine.groups if machine.cabling != "absolute" else 1
    sources, chunk = machine.n_routers // alike, max(1, CELLS // machine.n_routers)
    cables = _global_neighbours(machine)
    distances, diversity = np.zeros(4, np.int64), np.zeros(1, np.int64)
    for first in range(0, sources, chunk):
        here = np.arange(first, min(first + chunk, sources))
        unseen = np.ones((machine.n_routers, len(here)), bool)
        unseen[here, np.arange(len(here))] = False
        walks = _first_cables(machine, cables, here)
        for hops in (1, 2, 3):
            if hops > 1:
                walks = _one_cable_further(machine, cables, walks)
            paths = walks[:-1][unseen]
            found = np.bincount(paths)
            distances[hops] += len(paths) - found[:1].sum()
            diversity = _add(diversity, found)
            unseen &= walks[:-1] == 0
    diversity[0] = 0  # the pairs a round did not reach, which a later one did
    return _tally(distances * alike), _tally(diversity * alike)


def _first_cables(machine: Dragonfly, cables: Ints, here: npt.NDArray[np.int64]) -> Walks:
    """Returns the walks of one cable, from these sources.

    Between two routers there are at most degree²·m walks of three cables, where m is the most that
    any two share: two bytes nearly always hold them, and half the bytes is half the time.
    """
    shared = 1 + machine.global_links // max(1, machine.groups - 1)
    most = (machine.routers - 1 + machine.global_links) ** 2 * shared
    columns = np.arange(len(here))
    walks = np.zeros((machine.n_routers + 1, len(here)), np.uint16 if most < 1 << 16 else np.int32)
    for mate in range(machine.routers):
        walks[here // machine.routers * machine.routers + mate, columns] = 1
    walks[here, columns] = 0
    for k in range(machine.global_links):
        np.add.at(walks, (cables[here, k], columns), 1)
    walks[-1] = 0
    return walks


def _one_cable_further(machine: Dragonfly, cables: Ints, walks: Walks) -> Walks:
    """Extend walks by one cable. Rows are routers, and one more that does not exist and stays zero;
    columns are sources."""
    blocks = walks[:-1].reshape(machine.groups, machine.routers, -1)
    further = np.zeros_like(walks)
    np.subtract(blocks.sum(1, keepdims=True, dtype=walks.dtype), blocks,
                out=further[:-1].reshape(blocks.shape))  # fmt: skip
    for k in range(machine.global_links):
        further[:-1] += walks[cables[:, k]]
    return further


def _global_neighbours(machine: Dragonfly) -> Ints:
    """Returns [routers, h]: the router at the far end of each global port; n_routers if dark."""
    if not machine.global_links:
        return np.zeros((machine.n_routers, 0), np.int32)
    far = machine.far().reshape(machine.n_routers, machine.global_links)
    return np.where(far < 0, machine.n_routers, far // machine.global_links).astype(np.int32)


def _visited(machine: Dragonfly, hops: Counts) -> float:
    p, n = machine.nodes, machine.n_nodes
    if n == 1:
        return 0.0
    apart = sum((hop + 1) * pairs for hop, pairs in hops.items()) * p * p
    return (apart + n * (p - 1)) / (n * (n - 1))


def _distinct(rows: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """Returns how many different values each row has."""
    ordered = np.sort(rows, axis=1)
    return np.asarray(1 + (np.diff(ordered, axis=1) != 0).sum(1))


def _add(a: npt.NDArray[np.int64], b: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
    total = longer.copy()
    total[: len(shorter)] += shorter
    return total


def _tally(counts: npt.NDArray[np.int64]) -> Counts:
    return {int(value): int(counts[value]) for value in np.flatnonzero(counts)}
