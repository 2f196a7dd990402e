"""The queue as a scheduling policy sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from policies.memory import Memory
from policies.views.ahead import Ahead
from policies.views.jobs import Request, Running, held_for
from policies.views.power import Budget
from policies.views.sight import Sight


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
    ahead: Callable[[int], Ahead] | None = None
    """Returns what is known of price, carbon intensity and cap up to so many ticks from now. How
    far that is, a policy has to say: a day, if prices are known a day ahead. None where power is
    not simulated."""

    def expected_end(self, job: Request) -> int | None:
        """Returns when a job will have ended that starts now, at the pace that it would have; None
        if it did not say how long it runs."""
        asked = job.requested
        if asked is None:
            return None
        return self.time + (asked if self.pace == 1.0 else int(held_for(asked, self.pace)))
