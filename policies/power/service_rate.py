"""Control of the service rate: all nodes are slow or fast together, by what there is to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pdes.clock import TICKS
from pdes.errors import Fault, Refused
from policies.memory import Sizes
from policies.parameters import parameter
from policies.policy import Arrays
from policies.power.base import Caps, PowerPolicy, Speed, power
from policies.views import PowerView

RUMYANTSEV = (
    "A. Rumyantsev et al.: Discrete-event modeling of a high-performance computing cluster with "
    "service rate control, 2018"
)


class Energies(NamedTuple):
    """The watts of a node that is busy and idle, at the low and at the high rate."""

    busy_low_w: float
    busy_high_w: float
    idle_low_w: float
    idle_high_w: float


ENERGIES = {
    "swapped": Energies(34.0, 41.0, 14.0, 18.0),
    "printed": Energies(41.0, 34.0, 14.0, 18.0),
}
"""Watts per core of the Karelian cluster. As printed, a busy core draws more at the low rate; the
paper's figure 3 has the trade-off that follows from the reverse."""


@dataclass(frozen=True)
class ServiceRate(PowerPolicy):
    """What the three have in common: two rates, and what nodes draw at them."""

    low: float = parameter(2.0, unit="work per time", about="the low rate", least=1e-3)
    high: float = parameter(2.66, unit="work per time", about="the high rate", least=1e-3)
    energies: str = parameter("swapped", about="what nodes draw", words=ENERGIES)

    controls = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.low <= self.high:
            raise Refused(f"low = {self.low:g}: at most high, {self.high:g}")

    @property
    def first_rate(self) -> float:
        return self.low

    def remembers(self, sizes: Sizes) -> Arrays:
        return {"fast": np.full(1, -1, np.int64), "draws": np.zeros(1, np.int64)}

    def _set(self, view: PowerView, fast: bool, again: int | None = None) -> Caps:
        """Returns the answer that has nodes run at one of the rates."""
        assert view.memory is not None
        if view.memory.fast[0] == fast:
            return Caps(again=again)
        view.memory.fast[0] = fast
        watts = ENERGIES[self.energies]
        if fast:
            return Caps(again=again, speed=Speed(self.high, watts.busy_high_w, watts.idle_high_w))
        return Caps(again=again, speed=Speed(self.low, watts.busy_low_w, watts.idle_low_w))

    def _is_fast(self, view: PowerView) -> bool:
        assert view.memory is not None
        return bool(view.memory.fast[0] == 1)


@power("rate-randomised", about="an arrival may set the high service rate, a departure the low one",
       source=RUMYANTSEV)  # fmt: skip
class Randomised(ServiceRate):
    """Each arrival sets the high rate with one probability, each departure the low rate with
    another. The paper gives no values."""

    up: float = parameter(0.5, about="probability that an arrival sets the high rate", least=0,
                          most=1)  # fmt: skip
    down: float = parameter(0.5, about="probability that a departure sets the low rate", least=0,
                            most=1)  # fmt: skip
    seed: int = parameter(1, about="of the random numbers", least=0)

    def caps(self, view: PowerView) -> Caps:
        fast = self._is_fast(view)
        for _ in range(view.ended):
            fast = fast and not self._flip(view, self.down)
        for _ in range(view.arrived):
            fast = self._flip(view, self.up) or fast
        return self._set(view, fast)

    def _flip(self, view: PowerView, probability: float) -> bool:
        assert view.memory is not None
        number = int(view.memory.draws[0])
        view.memory.draws[0] += 1
        rng = np.random.Generator(np.random.Philox(key=[self.seed, number]))
        return bool(rng.random() < probability)


@power("rate-by-number", about="the high service rate while many jobs are there", source=RUMYANTSEV)
class ByNumber(ServiceRate):
    """An arrival that makes more than `many` jobs sets the high rate, a departure that leaves no
    more than `few` the low one."""

    few: int = parameter(20, unit="jobs", about="that set the low rate", least=0)
    many: int = parameter(40, unit="jobs", about="above which the high rate is set", least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.few > self.many:
            raise Refused(f"few = {self.few}: at most many, {self.many}")

    def caps(self, view: PowerView) -> Caps:
        here, fast = len(view.queue) + len(view.running), self._is_fast(view)
        if view.arrived and here > self.many:
            fast = True
        elif view.ended and here <= self.few:
            fast = False
        return self._set(view, fast)


@power("rate-by-workload", about="the high service rate while much work is there",
       source=RUMYANTSEV)  # fmt: skip
class ByWorkload(ServiceRate):
    """More than `much` work sets the high rate, no more than `little` the low one: at the moment at
    which it is reached, between two events. Work is what users asked for, in s at a rate of 1, less
    what is done, of all jobs, whatever their nodes."""

    little: float = parameter(1e5, unit="s of work", about="that sets the low rate", least=0)
    much: float = parameter(
        3e5, unit="s of work", about="above which the high rate is set", least=0
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.little > self.much:
            raise Refused(f"little = {self.little:g}: at most much, {self.much:g}")

    def caps(self, view: PowerView) -> Caps:
        ticks = 1e12 / TICKS[view.tick]
        work, fast = view.work(), self._is_fast(view)
        if work < 0:
            raise Fault(f"power {self.name}: a job has no requested time, so the work that is left "
                        'is not known; requests = "exact" gives it its run time')  # fmt: skip
        if work > self.much * ticks:
            fast = True
        elif work <= self.little * ticks:
            fast = False
        again = None
        if fast and view.busy:
            left, served = work - self.little * ticks, len(view.running)
            again = view.time + max(1, int(np.ceil(left / (self.high * served))))
        return self._set(view, fast, again)
