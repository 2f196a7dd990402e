"""Which nodes a job gets.

An allocation is asked when a job is to start: here is the `Floor` (the machine, and which of its
nodes are idle), so many nodes are needed, which? It answers with their labels, in the order in
which the job's tasks will be mapped to them. It sees nothing else and changes nothing.

To write one, write that function and register it. All of a file of yours, for a policy that fills
the emptiest groups first::

    import numpy as np
    from policies.allocation import allocation

    @allocation("emptiest", about="the emptiest groups, one by one", source="ours")
    def emptiest(floor, nodes, rng):
        order = np.argsort(-floor.by_group, kind="stable")
        return np.concatenate([floor.of_group(group) for group in order])[:nodes]

`floor.by_group` and `by_router` count idle nodes, `labels`, `of_group` and `of_router` name them;
`floor.machine` has the rest (node = router·p + k, router = group·a + r). Draw only from `rng`, and
let the lowest label win a tie: then a run can be repeated. Whatever you answer is checked: as many
as were asked for, different, idle; otherwise the run ends and names your policy.

So that commands and experiment files know it by name, name its module in your package's metadata::

    [project.entry-points."odonata.allocation"]
    emptiest = "my_package.emptiest"

A policy that is more than a function is a subclass of `AllocationPolicy`, registered alike.
"""

from __future__ import annotations

from policies.allocation.base import (
    ALLOCATIONS,
    AllocationPolicy,
    Floor,
    Labels,
    allocate,
    allocation,
    allocation_named,
    rng_for,
)

from policies.allocation import spread, compact, chance  # noqa: F401  isort: skip

__all__ = [
    "ALLOCATIONS",
    "AllocationPolicy",
    "Floor",
    "Labels",
    "allocate",
    "allocation",
    "allocation_named",
    "rng_for",
]
