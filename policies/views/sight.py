"""The machine as policies see it: idle nodes, and what the network reported."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from policies.memory import Memory
from policies.parameters import check_word
from policies.views.jobs import Labels
from topology import Dragonfly

Counts = npt.NDArray[np.int32]
Words = npt.NDArray[np.int64]
Rates = npt.NDArray[np.float64]
Array = TypeVar("Array", bound=npt.NDArray[Any])

TRAFFIC = ("both", "sent", "received")
STALLS = ("credit", "any")
"""What may be counted as the traffic of a node, and as the stalls of a router."""


@dataclass(frozen=True, eq=False)
class Counters:
    """What the network reported of the last intervals, newest last: differences of counters that
    are read at the end of each. Nothing fresher is known. All arrays are read-only.

    Where fewer intervals were reported than a policy asks for, it gets those there are.

    >>> machine = Dragonfly(nodes=2, routers=2, global_links=0, groups=1)
    >>> last = Counters.of_interval(machine, sent=[6, 0, 1, 1], received=[2, 0, 0, 4], seconds=2)
    >>> last.traffic_by_node(), last.traffic_by_node("sent", intervals=5)
    (array([4. , 0. , 0.5, 2.5]), array([3. , 0. , 0.5, 0.5]))
    >>> last.bytes_by_router()
    array([8, 6])
    """

    age: int
    """Tells how long ago the newest of these intervals ended."""
    interval_s: float
    """How long each lasted, in seconds."""
    sent: Words
    """[interval, node]: the bytes that each node sent."""
    received: Words
    """[interval, node]: the bytes that were delivered to each node."""
    stall: Words
    """[interval, router]: the time for which packets waited in it, without credit while the link
    was free, in ps, summed over its ports."""
    wait: Words
    """[interval, router]: the time for which packets waited in it while the link was busy, in
    ps."""

    def __post_init__(self) -> None:
        for name in ("sent", "received", "stall", "wait"):
            shown = np.asarray(getattr(self, name)).view()
            object.__setattr__(self, name, _frozen(shown))
        if self.sent.shape != self.received.shape or self.stall.shape != self.wait.shape:
            raise ValueError("counters of nodes, or of routers, that are not of the same shape")

    @classmethod
    def of_interval(
        cls,
        machine: Dragonfly,
        *,
        sent: npt.ArrayLike = 0,
        received: npt.ArrayLike = 0,
        stall: npt.ArrayLike = 0,
        wait: npt.ArrayLike = 0,
        seconds: float = 1.0,
        age: int = 0,
    ) -> Counters:
        """Returns what one interval reported, for a test or an example; a single number holds for
        all nodes, or routers."""
        nodes, routers = machine.n_nodes, machine.n_routers
        parts = [np.broadcast_to(np.asarray(given, np.int64), (1, count))
                 for given, count in ((sent, nodes), (received, nodes), (stall, routers),
                                      (wait, routers))]  # fmt: skip
        return cls(age, seconds, *parts)

    def seconds(self, intervals: int = 1) -> float:
        """Returns how long so many of the last intervals lasted, or as many as there are."""
        return min(intervals, len(self.sent)) * self.interval_s

    def bytes_by_node(self, count: str = "both", intervals: int = 1) -> Words:
        """Returns the bytes that each node sent (`count` = "sent"), that it received ("received"),
        or their sum ("both"), in so many of the last intervals together."""
        check_word("count", count, TRAFFIC)
        found = np.zeros(self.sent.shape[1], np.int64)
        for name in ("sent", "received"):
            if count in (name, "both"):
                found += getattr(self, name)[-intervals:].sum(0)
        return found

    def bytes_by_router(self, count: str = "both", intervals: int = 1) -> Words:
        """Returns the same summed over all nodes of each router, idle or busy. These are whole
        numbers: routers with equal traffic are exactly equal, however it is shared among nodes."""
        by_node = self.bytes_by_node(count, intervals)
        found: Words = by_node.reshape(self.stall.shape[1], -1).sum(1)
        return found

    def traffic_by_node(self, count: str = "both", intervals: int = 1) -> Rates:
        """Returns the bytes per second of each node, averaged over so many of the last
        intervals."""
        return self.bytes_by_node(count, intervals) / self.seconds(intervals)

    def stalls_by_router(self, count: str = "credit", intervals: int = 1) -> Words:
        """Returns for how long packets waited in each router in so many of the last intervals
        together, in ps: without credit ("credit"), or also while the link was busy ("any")."""
        check_word("count", count, STALLS)
        found: Words = self.stall[-intervals:].sum(0)
        return found if count == "credit" else found + self.wait[-intervals:].sum(0)


@dataclass(frozen=True, eq=False)
class Sight:
    """The machine as a scheduler sees it when a job is to be placed.

    `idle` is a copy and read-only, and so is all that is derived from it, once per sight: what
    happens to the machine afterwards makes another sight.
    """

    machine: Dragonfly
    idle: npt.NDArray[np.bool_]
    """[nodes]: is the node of this label idle?"""
    counters: Counters | None = None
    """None where nothing was reported yet."""
    memory: Memory | None = None
    """The arrays of the policy that is asked; None where it declares none."""

    def __post_init__(self) -> None:
        idle = np.array(self.idle)
        if idle.dtype != np.bool_ or idle.shape != (self.machine.n_nodes,):
            raise ValueError(
                f"idle = {idle.dtype} of shape {idle.shape}: one bool per node, "
                f"{self.machine.n_nodes}"
            )
        object.__setattr__(self, "idle", _frozen(idle))
        told = self.counters
        if told is not None and (told.sent.shape[1], told.stall.shape[1]) != (
            self.machine.n_nodes, self.machine.n_routers
        ):  # fmt: skip
            raise ValueError(
                f"counters of {told.sent.shape[1]} nodes and {told.stall.shape[1]} routers: the "
                f"machine has {self.machine.n_nodes} and {self.machine.n_routers}"
            )

    @cached_property
    def free(self) -> int:
        """Counts the idle nodes."""
        return int(np.count_nonzero(self.idle))

    @cached_property
    def labels(self) -> Labels:
        """Lists the idle nodes, ascending."""
        return _frozen(np.flatnonzero(self.idle))

    @cached_property
    def by_router(self) -> Counts:
        """[g, a]: idle nodes of each router."""
        m = self.machine
        return _frozen(row_sums(self.idle.reshape(-1, m.nodes)).reshape(m.groups, m.routers))

    @cached_property
    def by_group(self) -> Counts:
        """[g]: idle nodes of each group."""
        return _frozen(row_sums(self.by_router))

    @cached_property
    def router_starts(self) -> Labels:
        """[g·a]: where in `labels` the nodes of each router begin."""
        return _frozen(starts(self.by_router.ravel()))

    @cached_property
    def group_starts(self) -> Labels:
        """[g]: where in `labels` the nodes of each group begin."""
        return _frozen(starts(self.by_group))

    def of_group(self, group: int) -> Labels:
        """Returns the idle nodes of a group, ascending."""
        size = self.machine.routers * self.machine.nodes
        first = int(group) * size
        return np.flatnonzero(self.idle[first : first + size]) + first

    def of_router(self, router: int) -> Labels:
        """Returns the idle nodes of a router, ascending; routers are numbered through the
        machine (group·a + r)."""
        first = int(router) * self.machine.nodes
        return np.flatnonzero(self.idle[first : first + self.machine.nodes]) + first


def starts(counts: Counts) -> Labels:
    """Returns where each heap begins, if heaps of these sizes lie one behind another."""
    begin = np.zeros(len(counts), np.int64)
    np.cumsum(counts[:-1], out=begin[1:])
    return begin


def row_sums(rows: npt.NDArray[Any]) -> Counts:
    """Returns the sum of each row, several times as fast as `sum(1)` where rows are short."""
    across = np.ascontiguousarray(rows.T)
    if across.dtype == np.bool_:
        across = across.view(np.int8)
    sums: Counts = np.add.reduce(across, axis=0, dtype=np.int32)
    return sums


def _frozen(array: Array) -> Array:
    array.flags.writeable = False
    return array
