"""Which nodes a job gets.

An allocation is asked when a job is to start: here is the `Sight` (the machine, and which of its
nodes are idle) and the job's `Request`; which nodes? It returns their labels, in the order in which
the job's tasks will be mapped to them. To write one, write that function and register it::

    import numpy as np
    from policies.allocation import allocation

    @allocation("emptiest", about="the emptiest groups, one by one", source="ours")
    def emptiest(sight, job, rng):
        order = np.argsort(-sight.by_group, kind="stable")
        return np.concatenate([sight.of_group(group) for group in order])[: job.nodes]

Read `base` (the contract), then `spread`, `compact`, `chance` and `network_data`; docs/policies.md
has the rest.
"""

from __future__ import annotations

from policies.allocation.base import (
    ALLOCATIONS,
    AllocationPolicy,
    allocate,
    allocation,
    rng_for,
)

from policies.allocation import spread, compact, chance, network_data  # noqa: F401  isort: skip

__all__ = ["ALLOCATIONS", "AllocationPolicy", "allocate", "allocation", "rng_for"]
