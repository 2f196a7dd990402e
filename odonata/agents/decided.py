"""What the scheduler of a run of packets decides at one instant, and the power that it divides."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from odonata.jobs.board import Words
from odonata.jobs.machine import Logged
from policies.power import PowerPolicy

if TYPE_CHECKING:
    from odonata.jobs.series import Steps


class Start(NamedTuple):
    """A job is to start at a time, on these nodes."""

    job: int
    labels: Words
    time: int


@dataclass
class Decided:
    """What was decided at one instant."""

    starts: list[Start] = field(default_factory=list)
    ended: list[int] = field(default_factory=list)
    """The numbers of the jobs that were found to have ended."""
    caps: dict[int, float] = field(default_factory=dict)
    """Watts per node that nodes are told a launch latency from now, by job, in order of their
    numbers."""
    moves: dict[int, float] = field(default_factory=dict)
    """The jobs whose nodes are told at the same time to suspend their tasks (below 0), or to have
    them go on (nan)."""
    again: int | None = None
    """When the power policy wants to be asked next."""
    hour: int | None = None
    """When the next hour of the market begins."""
    ends_metering: bool = False
    """Whether power need not be measured any more."""
    log: list[Logged] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Supply:
    """The power of a machine of packets, and who divides it."""

    policy: PowerPolicy
    cap: Steps | None
    """What all nodes together may draw, over time; None: as much as they like."""
    idle_w: float
    least_w: float
    """Below what not even the least efficient node can be held."""
    most_w: float
    by_interval: bool
    """Whether jobs start only when power was measured."""

    def cap_at(self, time: int) -> float:
        """Returns the cap of the machine at a time."""
        return math.inf if self.cap is None else self.cap.at(time)

    def changes_after(self, time: int) -> bool:
        """Tells whether the cap of the machine changes after a time."""
        return self.cap is not None and bool(self.cap.changes) and self.cap.changes[-1] > time
