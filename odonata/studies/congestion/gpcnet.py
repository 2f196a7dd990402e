"""GPCNeT (Chunduri et al., SC'19) as jobs: congestors on most of some nodes, a canary on the rest.

The nodes are shuffled; four fifths of them, rounded down, run a congestor, in the background, and
the others a canary, whose time is measured with and without the congestors. With several kinds of
congestor each has its part of the nodes. **Impact** is how many times as long the canary takes with
congestors as without; the ratio of its bandwidths, as the benchmark prints it, is one over that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from odonata.experiment.profiles import profile
from odonata.jobs.request import Job

PART = 0.8
"""The part of the nodes that run congestors."""
CANARIES = {
    "bandwidth": "gpcnet-ring-bandwidth",
    "latency": "gpcnet-ring-latency",
    "allreduce": "gpcnet-allreduce",
}
"""The three tests of the benchmark that have an impact factor, each with its profile."""
LEAST_NODES = 10
"""The benchmark itself needs so many."""


def split(nodes: Sequence[int], seed: int) -> tuple[list[int], list[int]]:
    """Returns the nodes of the congestors, and those of the canary: shuffled, by the seed.

    >>> congestors, canary = split(range(10), seed=1)
    >>> len(congestors), len(canary), sorted(congestors + canary) == list(range(10))
    (8, 2, True)
    """
    order = np.random.Generator(np.random.Philox(key=seed)).permutation(nodes).tolist()
    first = int(PART * len(order))
    return order[:first], order[first:]


def job_of(name: str, nodes: Sequence[int], tasks: int, background: bool) -> Job:
    """Returns a job of a profile on these nodes; its first task is on the first of them."""
    found = profile(name)
    return Job(len(nodes), name=name, profile=name, stages=found.stages_for(tasks),
               mapping="linear", iterations=found.iterations, on=tuple(nodes),
               background=background)  # fmt: skip


def congestors(kinds: Sequence[str], nodes: Sequence[int], tasks: int) -> list[Job]:
    """Returns a job in the background for each kind of congestor, the nodes dealt out in turn."""
    return [job_of(f"gpcnet-{kind}", nodes[number :: len(kinds)], tasks, True)
            for number, kind in enumerate(kinds)]  # fmt: skip


def canary(name: str, nodes: Sequence[int], tasks: int) -> Job:
    """Returns the job whose time is measured."""
    return job_of(CANARIES[name], nodes, tasks, False)
