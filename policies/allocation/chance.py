"""Policies that leave it to chance: nodes, routers or groups, each as likely as another."""

from __future__ import annotations

import numpy as np

from policies.allocation.base import allocation, heap_by_heap
from policies.allocation.sources import JAIN, RIVALS
from policies.views import Counts, Labels, Request, Sight


@allocation("random", about="random nodes: another name of rdn", source=RIVALS)
@allocation("rdn", about="random nodes", source=JAIN)
def random_nodes(sight: Sight, job: Request, rng: np.random.Generator) -> Labels:
    return sight.labels[rng.choice(sight.free, job.nodes, replace=False)]


@allocation("rdr", about="random routers, all idle nodes of each", source=JAIN)
def random_routers(sight: Sight, job: Request, rng: np.random.Generator) -> Labels:
    order = _shuffled(sight.by_router.ravel(), job.nodes, rng)
    counts = sight.by_router.ravel()
    return sight.labels[heap_by_heap(sight.router_starts, counts, order, job.nodes)]


@allocation("rdg", about="random groups, all idle nodes of each", source=JAIN)
def random_groups(sight: Sight, job: Request, rng: np.random.Generator) -> Labels:
    order = _shuffled(sight.by_group, job.nodes, rng)
    return sight.labels[heap_by_heap(sight.group_starts, sight.by_group, order, job.nodes)]


def _shuffled(counts: Counts, nodes: int, rng: np.random.Generator) -> Labels:
    """Those with idle nodes, in random order; no more than a job of that size can need."""
    some = np.flatnonzero(counts)
    return some[rng.choice(len(some), min(nodes, len(some)), replace=False)]
