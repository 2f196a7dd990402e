"""What an allocation is asked and answers, and the register of those there are."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from pdes.errors import Fault
from policies.register import Register
from topology import Dragonfly

Labels = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Floor:
    """The machine as a scheduler sees it when a job is to be placed.

    `idle` is a copy and read-only, so is all that is derived from it, and that is kept: what
    happens to the machine afterwards makes another floor.
    """

    machine: Dragonfly
    idle: npt.NDArray[np.bool_]
    """By node label."""

    def __post_init__(self) -> None:
        idle = np.array(self.idle)
        if idle.dtype != np.bool_ or idle.shape != (self.machine.n_nodes,):
            raise ValueError(
                f"idle = {idle.dtype} of shape {idle.shape}: one bool a node, "
                f"{self.machine.n_nodes}"
            )
        object.__setattr__(self, "idle", _frozen(idle))

    @cached_property
    def free(self) -> int:
        """How many nodes are idle."""
        return int(np.count_nonzero(self.idle))

    @cached_property
    def labels(self) -> Labels:
        """Of the idle nodes, ascending."""
        return _frozen(np.flatnonzero(self.idle))

    @cached_property
    def by_router(self) -> Counts:
        """[g, a]: idle nodes of each router."""
        m = self.machine
        return _frozen(_row_sums(self.idle.reshape(-1, m.nodes)).reshape(m.groups, m.routers))

    @cached_property
    def by_group(self) -> Counts:
        """[g]: idle nodes of each group."""
        return _frozen(_row_sums(self.by_router))

    @cached_property
    def router_starts(self) -> Labels:
        """[g·a]: where in `labels` the nodes of each router begin."""
        return _frozen(starts(self.by_router.ravel()))

    @cached_property
    def group_starts(self) -> Labels:
        """[g]: where in `labels` the nodes of each group begin."""
        return _frozen(starts(self.by_group))

    def of_group(self, group: int) -> Labels:
        """Its idle nodes, ascending."""
        size = self.machine.routers * self.machine.nodes
        first = int(group) * size
        return np.flatnonzero(self.idle[first : first + size]) + first

    def of_router(self, router: int) -> Labels:
        """Its idle nodes, ascending; routers are numbered through the machine."""
        first = int(router) * self.machine.nodes
        return np.flatnonzero(self.idle[first : first + self.machine.nodes]) + first


class AllocationPolicy(ABC):
    """Chooses the nodes of a job.

    It keeps nothing between two questions, so that a run can be cut and resumed anywhere; what it
    goes by is the floor, the size of the job and, for what is random, `rng`. An example, which puts
    a job into the group that has fewest nodes to spare for it, and otherwise anywhere::

        class Snug(AllocationPolicy):
            name, about, source = "snug", "the fullest group that holds the job", "ours"

            def choose(self, floor, nodes, rng):
                fits = np.flatnonzero(floor.by_group >= nodes)
                if len(fits):
                    group = fits[floor.by_group[fits].argmin()]
                    return floor.of_group(group)[:nodes]
                return floor.labels[:nodes]

    On a machine of three groups with 5, 2 and 3 idle nodes, a job of two goes to group 1, a job of
    three to group 2, and a job of six takes the first six idle nodes, five of them in group 0.
    """

    name: str
    about: str
    """One line."""
    source: str
    """The paper."""

    @abstractmethod
    def choose(self, floor: Floor, nodes: int, rng: np.random.Generator) -> Labels:
        """As many different idle nodes, in the order in which tasks will be mapped to them.

        Called only with 1 ≤ nodes ≤ floor.free; by `allocate` alone, which checks the answer.
        """


Choose = Callable[[Floor, int, np.random.Generator], Labels]
Written = TypeVar("Written", bound=Choose | type[AllocationPolicy])

ALLOCATIONS: Register[AllocationPolicy] = Register("allocation")


@dataclass(frozen=True)
class Plain(AllocationPolicy):
    """A policy that is a function."""

    name: str
    about: str
    source: str
    function: Choose

    def choose(self, floor: Floor, nodes: int, rng: np.random.Generator) -> Labels:
        return self.function(floor, nodes, rng)


def allocation(name: str, *, about: str, source: str) -> Callable[[Written], Written]:
    """Register what it stands above, a function `choose(floor, nodes, rng)` or a subclass of
    `AllocationPolicy` that needs no arguments; which stays what it is."""

    def register(written: Written) -> Written:
        what: Any = written
        if inspect.isclass(written):
            what.name, what.about, what.source = name, about, source
            policy = what()
        else:
            policy = Plain(name, about, source, what)
        ALLOCATIONS.add(policy, (what.__module__, what.__qualname__))
        return written

    return register


def allocation_named(name: str) -> AllocationPolicy:
    """Refused where there is none, with those whose names are near."""
    return ALLOCATIONS.named(name)


def rng_for(seed: int, job: int) -> np.random.Generator:
    """What a job's allocation draws from: its own, whoever came before it."""
    return np.random.Generator(np.random.Philox(key=seed, counter=[0, 0, 2, job]))


def allocate(
    policy: AllocationPolicy, floor: Floor, nodes: int, rng: np.random.Generator
) -> Labels:
    """The one way to ask: a Fault if what it answers is not `nodes` different idle nodes."""
    if not 1 <= nodes <= floor.free:
        raise ValueError(f"{nodes} nodes: 1 to {floor.free} can be had, as many are idle")
    try:
        answer = policy.choose(floor, nodes, rng)
    except Exception as error:
        raise Fault(f"allocation {policy.name}, asked for {nodes} nodes, failed: "
                    f"{type(error).__name__}: {error}") from error  # fmt: skip
    try:
        chosen = np.asarray(answer)
    except ValueError:
        chosen = np.asarray(None)
    wrong = _wrong(floor, nodes, chosen)
    if wrong:
        raise Fault(f"allocation {policy.name}, asked for {nodes} nodes: {wrong}")
    return np.ascontiguousarray(chosen, np.int64)


def _wrong(floor: Floor, nodes: int, chosen: npt.NDArray[Any]) -> str:
    if chosen.dtype.kind not in "iu" or chosen.ndim != 1:
        return "its answer is not an array of node labels"
    if len(chosen) != nodes:
        return f"it chose {len(chosen)}"
    last = floor.machine.n_nodes - 1
    for label in (chosen.min(), chosen.max()):
        if not 0 <= label <= last:
            return f"it chose node {label}, and the machine has 0 … {last}"
    busy = chosen[~floor.idle[chosen]]
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
    `wanted`: which of all things, numbered through the heaps, were taken, in order.

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
    `counts` are of all heaps. Answers as `in_turn`."""
    ends = np.cumsum(counts[heaps], dtype=np.int64)
    needed = int(np.searchsorted(ends, wanted)) + 1
    heaps, ends = heaps[:needed], ends[:needed]
    sizes = counts[heaps]
    first = begin[heaps] - (ends - sizes)
    return (np.repeat(first, sizes) + np.arange(int(ends[-1])))[:wanted]


def starts(counts: Counts) -> Labels:
    """Where each heap begins, if they lie one behind another."""
    begin = np.zeros(len(counts), np.int64)
    np.cumsum(counts[:-1], out=begin[1:])
    return begin


def _row_sums(rows: npt.NDArray[Any]) -> Counts:
    """Several times as fast as `sum(1)` where rows are short."""
    across = np.ascontiguousarray(rows.T)
    if across.dtype == np.bool_:
        across = across.view(np.int8)
    sums: Counts = np.add.reduce(across, axis=0, dtype=np.int32)
    return sums


Array = TypeVar("Array", bound=npt.NDArray[Any])


def _frozen(array: Array) -> Array:
    array.flags.writeable = False
    return array
