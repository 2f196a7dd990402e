"""Jobs placed on an idle machine, without simulating anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pdes.errors import Refused
from policies.allocation import (
    AllocationPolicy,
    Floor,
    Labels,
    allocate,
    allocation_named,
    rng_for,
)
from policies.scheduling import Waiting, discipline_named, order_of
from topology import Dragonfly

MOST_RANGES = 8
"""Of node labels, in the table."""


@dataclass(frozen=True)
class Placement:
    """Jobs on a machine."""

    machine: Dragonfly
    policy: AllocationPolicy
    jobs: list[Labels]
    """The nodes of each job, in allocation order; jobs in the order in which they were given."""
    busy: npt.NDArray[np.bool_]
    """By node label: busy before the first came."""

    @property
    def free(self) -> int:
        """Nodes that are idle afterwards."""
        taken = int(self.busy.sum()) + sum(map(len, self.jobs))
        return self.machine.n_nodes - taken


def place(
    machine: Dragonfly,
    sizes: Sequence[int],
    policy: str = "level-spread",
    *,
    order: str = "fcfs",
    seed: int = 1,
    busy: Sequence[tuple[int, int]] = (),
) -> Placement:
    """Place jobs of these sizes, which came together, one after another; all of them, or it is
    refused. `busy`: first and last label of ranges of nodes that nobody gets.

    A job's random numbers are its own, so another job's size does not change them.
    """
    chooser, discipline = allocation_named(policy), discipline_named(order)
    for number, nodes in enumerate(sizes, 1):
        if nodes < 1:
            raise Refused(f"job {number} of {nodes} nodes: at least 1")
        if nodes > machine.n_nodes:
            raise Refused(f"job {number} of {nodes} nodes: the machine has {machine.n_nodes}")
    taken = _marked(machine, busy)
    idle = ~taken
    jobs: list[Labels] = [np.empty(0, np.int64)] * len(sizes)
    for position in order_of(discipline, [Waiting(i, n, 0) for i, n in enumerate(sizes)]):
        floor, nodes = Floor(machine, idle), sizes[position]
        if nodes > floor.free:
            raise Refused(f"job {position + 1} of {nodes} nodes: only {floor.free} of "
                          f"{machine.n_nodes} are idle")  # fmt: skip
        jobs[position] = allocate(chooser, floor, nodes, rng_for(seed, position))
        idle[jobs[position]] = False
    return Placement(machine, chooser, jobs, taken)


def _marked(machine: Dragonfly, ranges: Sequence[tuple[int, int]]) -> npt.NDArray[np.bool_]:
    marked = np.zeros(machine.n_nodes, bool)
    for first, last in ranges:
        if last >= machine.n_nodes:
            raise Refused(f"busy node {last}: the machine has 0 … {machine.n_nodes - 1}")
        marked[first : last + 1] = True
    return marked


def ranges(labels: Labels, most: int = MOST_RANGES) -> str:
    """'0–3, 8, 12–15', ascending; of many ranges the first, and how many more there are."""
    ordered = np.sort(labels)
    breaks = np.flatnonzero(np.diff(ordered) != 1) + 1
    runs = [(int(run[0]), int(run[-1])) for run in np.split(ordered, breaks)]
    words = [f"{low}" if low == high else f"{low}–{high}" for low, high in runs]
    if len(words) > most + 1:
        left = sum(high - low + 1 for low, high in runs[most:])
        words = [*words[:most], f"… {left:,} more"]
    return ", ".join(words)
