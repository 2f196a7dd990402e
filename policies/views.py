"""All that a policy may see, read-only: what a real scheduler sees, and no more.

Times are in ticks of the model, which are picoseconds where packets are simulated. A policy never
sees how long a job will run before it has ended, nor a queue inside a router.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from policies.memory import Memory
from policies.parameters import check_word
from topology import Dragonfly

Labels = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int32]
Words = npt.NDArray[np.int64]
Rates = npt.NDArray[np.float64]
Array = TypeVar("Array", bound=npt.NDArray[Any])

NEVER = 1 << 62
"""Stands for a time that is not known: after all others."""
HAIR = 1e-6
"""A millionth of a tick, by which a product may be too large without becoming a tick more."""


def held_for(asked: float, pace: float) -> int:
    """Returns for how many ticks a job holds its nodes that may hold them for `asked` ticks at a
    pace of 1: the rule for waiting and running jobs alike, in Python and in kernels."""
    ticks = max(0.0, asked - HAIR) * pace
    return NEVER if not ticks < NEVER else np.int64(np.ceil(ticks))  # type: ignore[return-value]


class Request(NamedTuple):
    """What a job asks for. `submit` is when it joined the queue, `requested` the time after which
    it may be ended (None if it named none)."""

    number: int
    nodes: int
    submit: int
    requested: int | None = None
    user: str = ""
    project: str = ""
    application: str = ""
    name: str = ""
    user_number: int = 0
    """Numbers the users from 0 in order of their names' first appearance, to index memory by."""
    project_number: int = 0
    """Numbers the projects likewise."""
    alike: int = 0
    """Numbers the sets of jobs that are alike, of one project, user and application (or, where no
    application is known, of one size): to index memory by."""
    on: tuple[int, ...] = ()
    """The labels of the nodes on which it has to run, where its user named them; no allocation
    policy is then asked."""
    sensitive: bool | None = None
    """Whether congestion in the network slows it down; None where nobody knows."""


class Running(NamedTuple):
    """A job that has been started and has not ended. `labels` are its nodes, in allocation
    order."""

    request: Request
    start: int
    labels: Labels
    due: int | None = None
    """When it will have ended at its present pace, where a model keeps account of that; None: it
    does not, and what the job asked for is counted from its start."""

    @property
    def requested_end(self) -> int | None:
        """The time by which it will have ended, None if it named none."""
        asked = self.request.requested
        return None if asked is None else self.start + asked if self.due is None else self.due


class Ended(NamedTuple):
    """A job that has ended: what a policy learns from."""

    request: Request
    start: int
    end: int
    labels: Labels

    @property
    def wait(self) -> int:
        """Returns the time from its submission to its start."""
        return self.start - self.request.submit


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


class Budget(NamedTuple):
    """The power that the machine may draw, and what it drew when last measured, in watts."""

    cap_w: float
    measured_w: float


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


class View(NamedTuple):
    """The queue and the machine as a scheduling policy sees them."""

    time: int
    queue: Sequence[Request]
    """The waiting jobs in order of arrival; jobs that came together, by number."""
    running: Sequence[Running]
    """The jobs that hold nodes, by number."""
    free: int
    """Counts the idle nodes."""
    sight: Sight | None
    """The machine; None where nodes are only counted, in a job run without one."""
    budget: Budget | None = None
    memory: Memory | None = None
    """The arrays of the policy that is asked; None where it declares none."""
    tick: str = "ps"
    """The unit of all times here."""
    pace: float = 1.0
    """The ticks for which a job that starts now would hold its nodes, per tick that it asked for:
    other than 1 under a service rate or a cap, by which limits stretch."""

    def expected_end(self, job: Request) -> int | None:
        """Returns when a job will have ended that starts now, at the pace that it would have; None
        if it did not say how long it runs."""
        asked = job.requested
        if asked is None:
            return None
        return self.time + (asked if self.pace == 1.0 else int(held_for(asked, self.pace)))


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
