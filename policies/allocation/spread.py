"""Policies that spread a job: over the smallest part of the machine that holds it, or over all."""

from __future__ import annotations

import numpy as np

from policies.allocation.base import allocation, heap_by_heap, in_turn
from policies.allocation.sources import JAIN, ZHANG
from policies.views import Labels, Request, Sight, row_sums


@allocation(
    "level-spread",
    about="spread over the smallest level that holds the job: router, group or machine",
    source=ZHANG,
)
def level_spread(sight: Sight, job: Request, rng: np.random.Generator) -> Labels:
    """Which of the routers, or groups, that hold it: the one with most idle nodes."""
    router = int(sight.by_router.argmax())
    if sight.by_router.flat[router] >= job.nodes:
        return sight.of_router(router)[: job.nodes]
    group = int(sight.by_group.argmax())
    if sight.by_group[group] >= job.nodes:
        return sight.of_group(group)[in_turn(sight.by_router[group], job.nodes)]
    return round_robin_nodes(sight, job, rng)


@allocation(
    "level-spread-random",
    about="level-spread, with a random choice among equal nodes, routers and groups",
    source=f"ours; {ZHANG}",
)
def level_spread_random(sight: Sight, job: Request, rng: np.random.Generator) -> Labels:
    """Level-Spread takes the first of what is equal, so that jobs gather where labels are low; this
    one draws."""
    m, by_router, by_group = sight.machine, sight.by_router, sight.by_group
    if by_router.max() >= job.nodes:
        router = rng.choice(np.flatnonzero(by_router == by_router.max()))
        return rng.permutation(sight.of_router(router))[: job.nodes]
    labels = np.arange(m.n_nodes).reshape(m.groups, m.routers, m.nodes)
    if by_group.max() >= job.nodes:
        group = rng.choice(np.flatnonzero(by_group == by_group.max()))
        return _shuffled_turns(labels[group], sight, job.nodes, rng)
    return _shuffled_turns(labels.reshape(m.groups, -1), sight, job.nodes, rng)


def _shuffled_turns(rows: Labels, sight: Sight, wanted: int, rng: np.random.Generator) -> Labels:
    """Returns an idle node of each row of labels in turn, where the rows, and the nodes in each,
    are in random order."""
    rows = rng.permuted(rng.permutation(rows), axis=1)
    idle = sight.idle[rows]
    return rows[idle][in_turn(row_sums(idle), wanted)]


@allocation("rrn", about="round robin: a node of each group in turn, from group 0", source=JAIN)
def round_robin_nodes(sight: Sight, job: Request, rng: np.random.Generator) -> Labels:
    return sight.labels[in_turn(sight.by_group, job.nodes)]


@allocation("rrr", about="round robin: a router of each group in turn, from group 0", source=JAIN)
def round_robin_routers(sight: Sight, job: Request, rng: np.random.Generator) -> Labels:
    some = sight.by_router > 0
    routers = np.flatnonzero(some)
    order = routers[in_turn(some.sum(1, dtype=np.int32), min(job.nodes, len(routers)))]
    counts = sight.by_router.ravel()
    return sight.labels[heap_by_heap(sight.router_starts, counts, order, job.nodes)]
