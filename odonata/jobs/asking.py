"""How a scheduler of either fidelity asks its policies: what they see, and what they learn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from policies.allocation import AllocationPolicy, allocate, rng_for
from policies.memory import Buffer, Layout, memory_of
from policies.policy import learn
from policies.power import PowerPolicy
from policies.scheduling import SchedulingPolicy
from policies.views import Counters, Ended, Labels, Request, Sight
from topology import Dragonfly


class Asked(NamedTuple):
    """The policies of a run, and where each keeps what it remembers (None: nothing)."""

    discipline: SchedulingPolicy
    allocation: AllocationPolicy | None
    layouts: tuple[Layout | None, Layout | None, Layout | None]
    """The layout of the discipline's memory, that of the allocation's and that of the power
    policy's."""
    power: PowerPolicy | None = None

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
        learn("scheduling", self.discipline, ended, memory_of(self.layouts[0], held))
        if self.power is not None:
            learn("power", self.power, ended, memory_of(self.layouts[2], held))


Found = TypeVar("Found")


class Holders(Sequence[Found]):
    """The jobs that hold nodes, or that wait, looked up when a policy first asks for them: most
    never do. How many they are may be known before."""

    def __init__(self, look: Callable[[], list[Found]], count: int | None = None) -> None:
        self._look, self._count = look, count

    @cached_property
    def _found(self) -> list[Found]:
        return self._look()

    def __len__(self) -> int:
        return len(self._found) if self._count is None else self._count

    def __iter__(self) -> Iterator[Found]:
        return iter(self._found)

    def __getitem__(self, which: Any) -> Any:
        return self._found[which]
