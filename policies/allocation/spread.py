"""Policies that spread a job: over the smallest part of the machine that holds it, or over all."""

from __future__ import annotations

import numpy as np

from policies.allocation.base import Floor, Labels, allocation, heap_by_heap, in_turn
from policies.allocation.sources import JAIN, ZHANG


@allocation(
    "level-spread",
    about="spread over the smallest level that holds the job: router, group or machine",
    source=ZHANG,
)
def level_spread(floor: Floor, nodes: int, rng: np.random.Generator) -> Labels:
    """Which of the routers, or groups, that hold it: the one with most idle nodes."""
    router = int(floor.by_router.argmax())
    if floor.by_router.flat[router] >= nodes:
        return floor.of_router(router)[:nodes]
    group = int(floor.by_group.argmax())
    if floor.by_group[group] >= nodes:
        return floor.of_group(group)[in_turn(floor.by_router[group], nodes)]
    return round_robin_nodes(floor, nodes, rng)


@allocation("rrn", about="round robin: a node of each group in turn, from group 0", source=JAIN)
def round_robin_nodes(floor: Floor, nodes: int, rng: np.random.Generator) -> Labels:
    return floor.labels[in_turn(floor.by_group, nodes)]


@allocation("rrr", about="round robin: a router of each group in turn, from group 0", source=JAIN)
def round_robin_routers(floor: Floor, nodes: int, rng: np.random.Generator) -> Labels:
    some = floor.by_router > 0
    routers = np.flatnonzero(some)
    order = routers[in_turn(some.sum(1, dtype=np.int32), min(nodes, len(routers)))]
    counts = floor.by_router.ravel()
    return floor.labels[heap_by_heap(floor.router_starts, counts, order, nodes)]
