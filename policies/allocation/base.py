"""What an allocation is asked and answers, and the register of those there are."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from pdes.errors import Fault
from policies.policy import FunctionPolicy, Learn, Policy, Remembers, enter
from policies.register import REGISTERS, Entry, Register, described
from policies.views import Counts, Labels, Request, Sight, starts


class AllocationPolicy(Policy):
    """Chooses the nodes of a job.

    It goes by the sight, by the job and, for what is random, by `rng`. An example, which puts a job
    into the group that has fewest nodes to spare for it, and otherwise anywhere::

        @allocation("snug", about="the fullest group that holds the job", source="ours")
        class Snug(AllocationPolicy):
            spare: int = parameter(0, unit="nodes", about="that the group keeps idle", least=0)

            def choose(self, sight, job, rng):
                fits = np.flatnonzero(sight.by_group >= job.nodes + self.spare)
                if len(fits):
                    group = fits[sight.by_group[fits].argmin()]
                    return sight.of_group(group)[: job.nodes]
                return sight.labels[: job.nodes]

    On a machine of three groups with 5, 2 and 3 idle nodes, a job of two goes to group 1, a job of
    three to group 2, and a job of six gets the first six idle nodes, five of them in group 0.
    """

    sorts_by: ClassVar[str] = "traffic"
    """What of the network it goes by, where it reads counters, for those who look at its decisions:
    traffic or stalls."""

    @property
    def reads(self) -> int:
        """Returns of how many past intervals it reads the counters of the network, which are
        `sight.counters`; 0: of none. Where an allocation reads them, telemetry is sent to the
        scheduler."""
        return 0

    @abstractmethod
    def choose(self, sight: Sight, job: Request, rng: np.random.Generator) -> Labels:
        """Returns `job.nodes` different idle nodes, in the order in which tasks will be mapped to
        them. Called only with 1 ≤ job.nodes ≤ sight.free; by `allocate` alone, which checks the
        answer. What it remembers is `sight.memory`."""


Choose = Callable[..., Labels]
Written = TypeVar("Written", bound=Choose | type[AllocationPolicy])

ALLOCATIONS: Register[Entry] = REGISTERS["allocation"]


@dataclass(frozen=True)
class FunctionAllocation(FunctionPolicy, AllocationPolicy):
    """An allocation that was written as a function."""

    reads: int = 0

    def choose(self, sight: Sight, job: Request, rng: np.random.Generator) -> Labels:
        chosen: Labels = self.function(sight, job, rng, **self.values)
        return chosen


def allocation(
    name: str,
    *,
    about: str,
    source: str,
    memory: Remembers | None = None,
    learn: Learn | None = None,
    reads: int | None = None,
) -> Callable[[Written], Written]:
    """Register what it stands above, a function `choose(sight, job, rng)` or a subclass of
    `AllocationPolicy`; which stays what it is. `memory` and `learn` are a function's `remembers`
    and `learn` (`policies.policy`); `reads` is as in `AllocationPolicy`."""

    def decorate(written: Written) -> Written:
        words = {"name": name, "about": about, "source": source}
        settings = {} if reads is None else {"reads": reads}
        enter("allocation", AllocationPolicy, written, FunctionAllocation, words, memory, learn,
              **settings)  # fmt: skip
        return written

    return decorate


def rng_for(seed: int, job: int) -> np.random.Generator:
    """Returns what a job's allocation draws from: its own, whoever came before it."""
    return np.random.Generator(np.random.Philox(key=seed, counter=[0, 0, 2, job]))


def allocate(
    policy: AllocationPolicy, sight: Sight, job: Request, rng: np.random.Generator
) -> Labels:
    """Ask for the nodes of a job; the one place where this is done. A Fault names the policy if
    what it answers is not `job.nodes` different idle nodes."""
    nodes = job.nodes
    if not 1 <= nodes <= sight.free:
        raise ValueError(f"{nodes} nodes: 1 to {sight.free} can be had, as many are idle")
    try:
        answer = policy.choose(sight, job, rng)
    except BaseException as error:
        raise Fault(f"allocation {policy.name}, asked for {nodes} nodes, failed: "
                    f"{described(error)}") from error  # fmt: skip
    try:
        chosen = np.asarray(answer)
    except ValueError:
        chosen = np.asarray(None)
    wrong = _wrong(sight, nodes, chosen)
    if wrong:
        raise Fault(f"allocation {policy.name}, asked for {nodes} nodes: {wrong}")
    return np.ascontiguousarray(chosen, np.int64)


def _wrong(sight: Sight, nodes: int, chosen: npt.NDArray[Any]) -> str:
    if chosen.dtype.kind not in "iu" or chosen.ndim != 1:
        return "its answer is not an array of node labels"
    if len(chosen) != nodes:
        return f"it chose {len(chosen)}"
    last = sight.machine.n_nodes - 1
    for label in (chosen.min(), chosen.max()):
        if not 0 <= label <= last:
            return f"it chose node {label}, and the machine has 0 … {last}"
    busy = chosen[~sight.idle[chosen]]
    if len(busy):
        return f"it chose node {busy[0]}, which is busy"
    taken = np.zeros(last + 1, bool)
    taken[chosen] = True
    if np.count_nonzero(taken) != nodes:
        labels, times = np.unique(chosen, return_counts=True)
        return f"it chose node {labels[times.argmax()]} {times.max()} times"
    return ""


# -- what policies are made of


def in_turn(counts: Counts, wanted: int) -> Labels:
    """Go round heaps of these sizes and take one from each that is not empty, until as many are
    `wanted`. Returns which of all things, numbered through the heaps, were taken, in order.

    >>> in_turn(np.array([1, 3, 2]), 5)
    array([0, 1, 4, 2, 5])
    """
    still = len(counts) - np.cumsum(np.bincount(counts))  # heaps that a round finds, from the first
    rounds = int(np.searchsorted(np.cumsum(still), wanted)) + 1
    turn = np.arange(rounds)[:, None]
    things = starts(counts) + turn
    if int(counts.min()) >= rounds:
        return things.ravel()[:wanted]
    return things[turn < counts][:wanted]


def heap_by_heap(begin: Labels, counts: Counts, heaps: Labels, wanted: int) -> Labels:
    """Empty one heap after another, in the order of `heaps`, until as many are wanted; `begin` and
    `counts` are of all heaps. Returns what `in_turn` does."""
    ends = np.cumsum(counts[heaps], dtype=np.int64)
    needed = int(np.searchsorted(ends, wanted)) + 1
    heaps, ends = heaps[:needed], ends[:needed]
    sizes = counts[heaps]
    first = begin[heaps] - (ends - sizes)
    return (np.repeat(first, sizes) + np.arange(int(ends[-1])))[:wanted]
