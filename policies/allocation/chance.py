"""Policies that leave it to chance: nodes, routers or groups, each as likely as another."""

from __future__ import annotations

import numpy as np

from policies.allocation.base import Counts, Floor, Labels, allocation, heap_by_heap
from policies.allocation.sources import JAIN


@allocation("rdn", about="random nodes", source=JAIN)
def random_nodes(floor: Floor, nodes: int, rng: np.random.Generator) -> Labels:
    return floor.labels[rng.choice(floor.free, nodes, replace=False)]


@allocation("rdr", about="random routers, all idle nodes of each", source=JAIN)
def random_routers(floor: Floor, nodes: int, rng: np.random.Generator) -> Labels:
    order = _shuffled(floor.by_router.ravel(), nodes, rng)
    counts = floor.by_router.ravel()
    return floor.labels[heap_by_heap(floor.router_starts, counts, order, nodes)]


@allocation("rdg", about="random groups, all idle nodes of each", source=JAIN)
def random_groups(floor: Floor, nodes: int, rng: np.random.Generator) -> Labels:
    order = _shuffled(floor.by_group, nodes, rng)
    return floor.labels[heap_by_heap(floor.group_starts, floor.by_group, order, nodes)]


def _shuffled(counts: Counts, nodes: int, rng: np.random.Generator) -> Labels:
    """Those with idle nodes, in random order; no more than a job of that size can need."""
    some = np.flatnonzero(counts)
    return some[rng.choice(len(some), min(nodes, len(some)), replace=False)]
