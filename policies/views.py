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
from topology import Dragonfly

Labels = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int32]
Words = npt.NDArray[np.int64]
Rates = npt.NDArray[np.float64]
Array = TypeVar("Array", bound=npt.NDArray[Any])


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

    @property
    def requested_end(self) -> int | None:
        """The time by which it will have ended, None if it named none."""
        asked = self.request.requested
        return None if asked is None else self.start + asked


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


@dataclass(frozen=True, eq=False)
class Counters:
    """What the network reported of the last intervals, newest last: differences of counters that
    are read at the end of each. Nothing fresher is known."""

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

    def traffic_by_node(self, count: str = "both", intervals: int = 1) -> Rates:
        """Returns the bytes per second that each node sent (`count` = "sent"), that it received
        ("received"), or their sum ("both"), averaged over so many of the last intervals."""
        _one_of("count", count, TRAFFIC)
        parts = {"sent": (self.sent,), "received": (self.received,),
                 "both": (self.sent, self.received)}[count]  # fmt: skip
        mean: Rates = sum(part[-intervals:].mean(0) for part in parts) / self.interval_s
        return mean

    def stalls_by_router(self, count: str = "credit", intervals: int = 1) -> Rates:
        """Returns for how long packets waited in each router, in ps per interval: without credit
        ("credit"), or also while the link was busy ("any"), averaged likewise."""
        _one_of("count", count, STALLS)
        mean: Rates = self.stall[-intervals:].mean(0)
        return mean if count == "credit" else mean + self.wait[-intervals:].mean(0)


TRAFFIC = ("both", "sent", "received")
STALLS = ("credit", "any")
"""What may be counted as the traffic of a node, and as the stalls of a router."""


def _one_of(name: str, word: str, words: tuple[str, ...]) -> None:
    if word not in words:
        raise ValueError(f"{name} = {word!r}: one of {', '.join(words)}")


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


def starts(counts: Counts) -> Labels:
    """Returns where each heap begins, if heaps of these sizes lie one behind another."""
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


def _frozen(array: Array) -> Array:
    array.flags.writeable = False
    return array
