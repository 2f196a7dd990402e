"""The policies of a run and what each remembers, and sequences that are looked up when needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from policies.allocation import AllocationPolicy, allocate, rng_for
from policies.bidding import BiddingPolicy
from policies.memory import Buffer, Layout, memory_of
from policies.policy import learn
from policies.power import PowerPolicy
from policies.scheduling import SchedulingPolicy
from policies.views import Counters, Ended, Labels, Request, Sight
from topology import Dragonfly


class Policies(NamedTuple):
    """The policies of a run, and where each keeps what it remembers (None: nothing)."""

    scheduling: SchedulingPolicy
    allocation: AllocationPolicy | None
    power: PowerPolicy | None
    layouts: Sequence[Layout | None]
    """The layouts of what these three and the next remember, in this order."""
    bidding: BiddingPolicy | None = None

    def place(
        self,
        machine: Dragonfly,
        idle: npt.NDArray[np.bool_],
        job: Request,
        seed: int,
        held: Buffer,
        counters: Counters | None = None,
    ) -> Labels:
        """Returns the nodes that the allocation chooses for a job; `held` is what policies
        remember, `counters` what the network reported. A job's random numbers are its own."""
        if job.on:
            return np.array(job.on, np.int64)
        assert self.allocation is not None
        sight = Sight(machine, idle, counters, memory_of(self.layouts[1], held))
        return allocate(self.allocation, sight, job, rng_for(seed, job.number))

    def teach(self, ended: Ended, held: Buffer) -> None:
        """Have the policies that remember learn of a job's end, the allocation first."""
        if self.allocation is not None:
            learn("allocation", self.allocation, ended, memory_of(self.layouts[1], held))
        learn("scheduling", self.scheduling, ended, memory_of(self.layouts[0], held))
        if self.power is not None:
            learn("power", self.power, ended, memory_of(self.layouts[2], held))
        if self.bidding is not None:
            learn("bidding", self.bidding, ended, memory_of(self.layouts[3], held))


Found = TypeVar("Found")


class Lazy(Sequence[Found]):
    """Jobs that are looked up when a policy first asks for them: most never do. How many they are
    may be known before."""

    def __init__(self, look: Callable[[], Sequence[Found]], count: int | None = None) -> None:
        self._look, self._count = look, count

    @cached_property
    def _found(self) -> Sequence[Found]:
        return self._look()

    def __len__(self) -> int:
        return len(self._found) if self._count is None else self._count

    def __iter__(self) -> Iterator[Found]:
        return iter(self._found)

    def __getitem__(self, which: Any) -> Any:
        return self._found[which]


class Shown(Sequence[Request]):
    """The waiting jobs that a policy is shown, by their rows, each looked up when it is asked for:
    a policy that goes by the desk asks for none. It is good until the policy has answered."""

    def __init__(self, rows: Any, request: Callable[[int], Request]) -> None:
        self._rows, self._request = rows, request

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Request]:
        return map(self._request, self._rows.tolist())

    def __getitem__(self, which: Any) -> Any:
        if isinstance(which, slice):
            return [*map(self._request, self._rows[which].tolist())]
        return self._request(int(self._rows[which]))


def locked(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Returns a view of an array that nobody can write to."""
    found = array[:]
    found.flags.writeable = False
    return found
