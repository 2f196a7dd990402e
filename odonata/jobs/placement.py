"""Placement of jobs on an idle machine, without any simulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pdes.errors import Refused
from policies.allocation import ALLOCATIONS, allocate, rng_for
from policies.memory import Sizes, memory_of, remembered
from policies.register import Entry, Values
from policies.scheduling import SCHEDULINGS, select
from policies.views import Counters, Labels, Request, Sight, View
from topology import Dragonfly

MOST_RANGES = 8
"""The largest number of ranges of node labels that the table shows."""


@dataclass(frozen=True)
class Placement:
    """The nodes that an allocation policy gave to some jobs."""

    machine: Dragonfly
    policy: Entry
    """The allocation that placed them."""
    jobs: list[Labels]
    """The nodes of each job, in allocation order; jobs in the order in which they were given."""
    busy: npt.NDArray[np.bool_]
    """By node label: whether it was busy before the first job was placed."""

    @property
    def free(self) -> int:
        """Returns the number of nodes that are idle afterwards."""
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
    parameters: Values = (),
    counters: Counters | None = None,
    sensitive: bool | None = None,
) -> Placement:
    """Place jobs of these sizes, which arrived together, one after another; all of them, or the
    request is refused. `busy`: first and last label of ranges of nodes that no job gets;
    `parameters`: those of the policy; `counters`: what the network reported before; `sensitive`:
    whether congestion slows the jobs down.

    A job's random numbers are its own, so another job's size does not change them.
    """
    chooser, scheduling = ALLOCATIONS.make(policy, parameters), SCHEDULINGS.make(order)
    for number, nodes in enumerate(sizes, 1):
        if nodes < 1:
            raise Refused(f"job {number} of {nodes} nodes: at least 1")
        if nodes > machine.n_nodes:
            raise Refused(f"job {number} of {nodes} nodes: the machine has {machine.n_nodes}")
    taken = _marked(machine, busy)
    idle = ~taken
    jobs: list[Labels] = [np.empty(0, np.int64)] * len(sizes)
    there = Sizes(len(sizes), machine.n_nodes, machine.groups, machine.n_routers, 1)
    buffer, (of_order, of_choice) = remembered((scheduling, chooser), there)
    requests = [Request(n, nodes, 0, sensitive=sensitive) for n, nodes in enumerate(sizes)]
    queue = requests
    while queue:
        sight = Sight(machine, idle, counters)
        view = View(0, queue, (), sight.free, sight, memory=memory_of(of_order, buffer))
        chosen = select(scheduling, view)
        if not chosen:
            job = next((each for each in queue if each.nodes > sight.free), queue[0])
            raise Refused(f"job {job.number + 1} of {job.nodes} nodes: only {sight.free} of "
                          f"{machine.n_nodes} are idle")  # fmt: skip
        for number in chosen:
            sight = Sight(machine, idle, counters, memory_of(of_choice, buffer))
            labels = allocate(chooser, sight, requests[number], rng_for(seed, number))
            jobs[number] = labels
            idle[labels] = False
        queue = [job for job in queue if not len(jobs[job.number])]
    return Placement(machine, ALLOCATIONS.named(policy), jobs, taken)


def _marked(machine: Dragonfly, ranges: Sequence[tuple[int, int]]) -> npt.NDArray[np.bool_]:
    marked = np.zeros(machine.n_nodes, bool)
    for first, last in ranges:
        if last >= machine.n_nodes:
            raise Refused(f"busy node {last}: the machine has 0 … {machine.n_nodes - 1}")
        marked[first : last + 1] = True
    return marked


def ranges(labels: Labels, most: int = MOST_RANGES) -> str:
    """Returns labels as '0–3, 8, 12–15', ascending; of many ranges the first ones, and how many
    labels follow."""
    ordered = np.sort(labels)
    breaks = np.flatnonzero(np.diff(ordered) != 1) + 1
    runs = [(int(run[0]), int(run[-1])) for run in np.split(ordered, breaks)]
    words = [f"{low}" if low == high else f"{low}–{high}" for low, high in runs]
    if len(words) > most + 1:
        left = sum(high - low + 1 for low, high in runs[most:])
        words = [*words[:most], f"… {left:,} more"]
    return ", ".join(words)
