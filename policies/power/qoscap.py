"""QoSCap: a policy that follows a target by caps before it does by starts, and that lets no type of
jobs come later than its threshold on average. docs/bidding.md says exactly what each step does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pdes.jit import kernel
from policies.parameters import parameter
from policies.power import floor as w
from policies.power.acts import hold, take
from policies.power.base import PowerPolicy, power
from policies.power.floor import Floor, head_width, late_in_all, more_w, there
from policies.power.shares import HAIR, HAIR_W, urgency
from policies.power.steps import stand_by
from policies.views import Moment

ZHANG = "Y. Zhang: Intelligent middleware for HPC systems, thesis, Boston University 2021, 2.8"
STANDS_BY = -1.0
"""How late standby jobs are: less than any other."""
DONE = -np.inf
"""What stands in the place of how late a type is that has had its turn."""


@kernel
def _judge(now: Moment, floor: Floor) -> None:
    """Find out how late the jobs of each type are, on average, as a part of their threshold."""
    for kind in range(floor.tallies.shape[0]):
        here = there(floor, kind)
        late = late_in_all(floor, kind, now.time) / here if here > 0 else 0.0
        floor.kinds[kind, w.SHARE] = STANDS_BY if floor.tallies[kind, w.STANDBY] != 0 else late


@kernel
def _start_the_late(now: Moment, floor: Floor, early: float) -> None:
    """Start waiting jobs that are nearly late, whatever the target, the one first that is nearest
    to its threshold or beyond it by most."""
    found = 0
    while found >= 0:
        found, most = -1, 0.0
        for kind in range(floor.tallies.shape[0]):
            if floor.tallies[kind, w.WAITING] == 0 or there(floor, kind) == 0:
                continue
            late = urgency(now, floor, kind)
            if late < early - HAIR or (found >= 0 and late <= most + HAIR):
                continue
            if head_width(floor, kind) <= floor.floor[w.FREE]:
                found, most = kind, late
        if found >= 0:
            take(floor, found, now.time)


@kernel
def _latest(floor: Floor) -> int:
    """Returns the type whose jobs are latest, of those that have not had their turn, and takes its
    turn; -1: none is left."""
    found, most = -1, DONE
    for kind in range(floor.tallies.shape[0]):
        if floor.kinds[kind, w.SHARE] > most + HAIR:
            found, most = kind, floor.kinds[kind, w.SHARE]
    if found >= 0:
        floor.kinds[found, w.SHARE] = DONE
    return found


@kernel
def _drawn(floor: Floor, kind: int, ratio: float) -> float:
    """Returns what the nodes of a type's running jobs draw under a cap."""
    most, low = floor.kinds[kind, w.MOST_W], floor.kinds[kind, w.LOW_W]
    return floor.tallies[kind, w.NODES] * (low + ratio * (most - low))  # type: ignore[no-any-return]


@kernel
def _total(floor: Floor) -> float:
    """Returns what the machine draws under the caps in force."""
    total = floor.floor[w.FREE] * floor.sums[w.IDLE_W]
    for kind in range(floor.tallies.shape[0]):
        total += _drawn(floor, kind, floor.kinds[kind, w.RATIO])
        total += floor.tallies[kind, w.HALTED_NODES] * floor.sums[w.IDLE_W]
    return total  # type: ignore[no-any-return]


@kernel
def _lower(floor: Floor, target_w: float, drawn: float) -> None:
    """Lower the caps of all types that are in time, by one ratio."""
    more = 0.0
    for kind in range(floor.tallies.shape[0]):
        if floor.kinds[kind, w.SHARE] < 1.0 - HAIR:
            more += _drawn(floor, kind, floor.kinds[kind, w.RATIO]) - _drawn(floor, kind, 0.0)
    part = max(0.0, 1.0 - (drawn - target_w) / more) if more > 0.0 else 0.0
    for kind in range(floor.tallies.shape[0]):
        ratio = floor.kinds[kind, w.RATIO]
        hold(floor, kind, ratio * part if floor.kinds[kind, w.SHARE] < 1.0 - HAIR else ratio)


@kernel
def _raise_in_turn(floor: Floor, target_w: float, drawn: float) -> None:
    """Raise caps as far as the target allows, type after type, the latest first."""
    gap, kind = target_w - drawn, _latest(floor)
    while kind >= 0:
        ratio = floor.kinds[kind, w.RATIO]
        room = _drawn(floor, kind, 1.0) - _drawn(floor, kind, ratio)
        if room <= gap + HAIR_W:
            hold(floor, kind, 1.0)
            gap -= room
        else:
            hold(floor, kind, ratio + (1.0 - ratio) * max(0.0, gap) / room)
            gap = 0.0
        kind = _latest(floor)


@kernel
def _hold_evenly(floor: Floor, target_w: float) -> None:
    """Give all types that are in time one cap, and the others none, so that the machine draws its
    target if it can."""
    fixed = floor.floor[w.FREE] * floor.sums[w.IDLE_W]
    low, full = 0.0, 0.0
    for kind in range(floor.tallies.shape[0]):
        fixed += floor.tallies[kind, w.HALTED_NODES] * floor.sums[w.IDLE_W]
        if floor.kinds[kind, w.SHARE] < 1.0 - HAIR:
            low += _drawn(floor, kind, 0.0)
            full += _drawn(floor, kind, 1.0)
        else:
            fixed += _drawn(floor, kind, 1.0)
    ratio = (target_w - fixed - low) / (full - low) if full > low else 0.0
    for kind in range(floor.tallies.shape[0]):
        hold(floor, kind, ratio if floor.kinds[kind, w.SHARE] < 1.0 - HAIR else 1.0)


@kernel
def _start(now: Moment, floor: Floor) -> None:
    """Start waiting jobs as far as the target allows, type after type, the latest first."""
    kind = _latest(floor)
    while kind >= 0:
        while floor.tallies[kind, w.STANDBY] == 0 and floor.tallies[kind, w.HEAD] >= 0:
            width = head_width(floor, kind)
            more = more_w(floor, kind, width)
            if width > floor.floor[w.FREE] or floor.sums[w.FULL_W] + more > now.target_w + HAIR_W:
                break
            take(floor, kind, now.time)
        kind = _latest(floor)


@power("qoscap", about="caps before it starts; late types are not capped, late jobs start first",
       source=ZHANG)  # fmt: skip
class QosCap(PowerPolicy):
    """Each second it finds out how late the jobs of each type are going to be. A waiting job that
    is nearly late starts whatever the target. Above the target no other job starts, and the types
    that are in time are capped. Below it caps are raised and then, once nobody has one, jobs start;
    the types first whose jobs are latest."""

    bidding = "adaptive"

    early: float = parameter(
        0.9, about="a waiting job starts whatever the target at this part of its threshold",
        least=0.0, most=1e6,
    )  # fmt: skip
    turns: bool = parameter(
        True, about="raise caps type after type, the latest first; else all by one ratio"
    )

    @staticmethod
    def regulate(now: Moment, floor: Floor, given: Any) -> None:
        if now.reserve_w > 0.0:
            _start_the_late(now, floor, given[0])
        _judge(now, floor)
        full, drawn = floor.sums[w.FULL_W], _total(floor)
        if full <= now.target_w + HAIR_W:
            for kind in range(floor.tallies.shape[0]):
                hold(floor, kind, 1.0)
            _start(now, floor)
            stand_by(now, floor, False)
        elif given[1] == 0.0:
            _hold_evenly(floor, now.target_w)
        elif drawn > now.target_w + HAIR_W:
            _lower(floor, now.target_w, drawn)
        else:
            _raise_in_turn(floor, now.target_w, drawn)
