"""`by-caps`: a policy that follows its target by caps alone, goes by what jobs were measured to
draw, and caps those types first which lose least by it. docs/together.md says exactly what each
step does.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pdes.jit import kernel
from policies.parameters import parameter
from policies.power import floor as w
from policies.power.acts import hold, take
from policies.power.base import PowerPolicy, power
from policies.power.floor import Floor, first_waiting, head_width
from policies.power.shares import HAIR_W
from policies.power.steps import hold_all, stand_by
from policies.views import Moment

HALVINGS = 40
"""How often the caps between which the right one is are halved."""
DONE = -np.inf
"""What stands in the place of what a type loses that has had its turn, or that has no turn."""


class Meters(NamedTuple):
    """What is known of the time in which jobs compute."""

    read: bool
    """Whether anybody goes by what was measured."""
    apart: bool
    """Whether each type goes by what was measured of it, and not of all together."""


@kernel
def computing(floor: Floor, kind: int, meters: Meters) -> float:
    """Returns the part of the time in which jobs of a type would compute without caps; 1 while
    nothing was measured, or where nobody goes by meters."""
    worked, waited = 0.0, 0.0
    for other in range(floor.kinds.shape[0]):
        if meters.read and (other == kind or not meters.apart):
            worked += floor.kinds[other, w.WORKED]
            waited += floor.kinds[other, w.WAITED]
    return worked / (worked + waited) if worked + waited > 0.0 else 1.0


@kernel
def node_w(floor: Floor, kind: int, ratio: float, meters: Meters) -> float:
    """Returns what a node of a type draws under a cap on average, computing and waiting."""
    of, part = floor.kinds[kind], computing(floor, kind, meters)
    most, low = of[w.MOST_W], of[w.LOW_W]
    computes_w, pace = low + ratio * (most - low), 1.0
    if most > low:
        pace = 1.0 + (of[w.SLOWDOWN] - 1.0) * (1.0 - ratio)
    waits_w = min(floor.sums[w.WAITS_W], computes_w)
    computed, waited = part * pace, 1.0 - part
    return (computed * computes_w + waited * waits_w) / (computed + waited)  # type: ignore[no-any-return]


@kernel
def machine_w(floor: Floor, meters: Meters) -> float:
    """Returns what the machine draws on average under the caps that are wanted."""
    idle, total = floor.floor[w.FREE], 0.0
    for kind in range(floor.tallies.shape[0]):
        tally = floor.tallies[kind]
        idle += tally[w.HALTED_NODES]
        if tally[w.NODES] > 0:
            total += tally[w.NODES] * node_w(floor, kind, floor.kinds[kind, w.WANTED], meters)
    return total + idle * floor.sums[w.IDLE_W]  # type: ignore[no-any-return]


@kernel
def loss(floor: Floor, kind: int, meters: Meters) -> float:
    """Returns by how much longer jobs of a type take at the lowest cap, as a part of their time,
    per watt that a node of theirs saves there; infinity where it saves nothing."""
    saved = node_w(floor, kind, 1.0, meters) - node_w(floor, kind, 0.0, meters)
    if saved <= HAIR_W:
        return np.inf
    part = computing(floor, kind, meters)
    return part * (floor.kinds[kind, w.SLOWDOWN] - 1.0) / saved  # type: ignore[no-any-return]


@kernel
def _start(now: Moment, floor: Floor, meters: Meters) -> None:
    """Start waiting jobs in order of arrival while the lowest caps would hold the machine at the
    lowest target there may be, until one does not fit."""
    least_w = now.target_w
    if now.reserve_w > 0.0:
        least_w = now.average_w - now.reserve_w
    hold_all(floor, 0.0)
    drawn, kind = machine_w(floor, meters), first_waiting(floor)
    while kind >= 0:
        width = head_width(floor, kind)
        more = width * (node_w(floor, kind, 0.0, meters) - floor.sums[w.IDLE_W])
        if width > floor.floor[w.FREE] or drawn + more > least_w + HAIR_W:
            break
        take(floor, kind, now.time)
        drawn += more
        kind = first_waiting(floor)


@kernel
def _next(floor: Floor) -> int:
    """Returns the type that loses least, of those that have not had their turn, and takes its turn;
    -1: none is left."""
    found, least = -1, np.inf
    for kind in range(floor.tallies.shape[0]):
        lost = floor.kinds[kind, w.SHARE]
        if lost > DONE and (found < 0 or lost < least):
            found, least = kind, lost
    if found >= 0:
        floor.kinds[found, w.SHARE] = DONE
    return found


@kernel
def _hold(floor: Floor, kind: int, ratio: float) -> None:
    """Give a cap to a type or, where that is -1, to all."""
    if kind >= 0:
        hold(floor, kind, ratio)
    else:
        hold_all(floor, ratio)


@kernel
def _fit(floor: Floor, kind: int, target_w: float, meters: Meters) -> bool:
    """Give a type (-1: all types) the highest cap with which the machine does not exceed its
    target; the lowest cap where there is none. Returns whether there is one."""
    _hold(floor, kind, 0.0)
    if machine_w(floor, meters) > target_w + HAIR_W:
        return False
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        _hold(floor, kind, middle)
        if machine_w(floor, meters) > target_w + HAIR_W:
            high = middle
        else:
            low = middle
    _hold(floor, kind, low)
    return True


@kernel
def _cap_in_turn(floor: Floor, target_w: float, meters: Meters) -> None:
    """Cap type after type, the one first that loses least; not one that saves nothing."""
    for kind in range(floor.tallies.shape[0]):
        lost = loss(floor, kind, meters) if floor.tallies[kind, w.NODES] > 0 else np.inf
        floor.kinds[kind, w.SHARE] = lost if lost < np.inf else DONE
    fits = False
    while not fits:
        kind = _next(floor)
        if kind < 0:
            break
        fits = _fit(floor, kind, target_w, meters)


@power("by-caps", about="follows the target by caps; by measured watts, who loses least first",
       source="Odonata; what Zhang 2021, 4.2, and Patki 2015, 7.3, leave open")  # fmt: skip
class ByCaps(PowerPolicy):
    """Waiting jobs start in order of arrival while the lowest caps would hold the machine at the
    lowest target that its bid may ask for. Where it exceeds its target, those types are capped
    first whose jobs lose least time per watt that this saves. A node is taken to draw what nodes
    with jobs of its type were measured to draw, and not what they draw while they compute."""

    meters: bool = parameter(
        True, about="go by what was measured of types; else as if all jobs computed all the time"
    )
    apart: bool = parameter(
        True, about="each type by what was measured of it; else all types by what was of all"
    )
    turns: bool = parameter(
        True, about="cap type after type, the one first that loses least; else all by one cap"
    )

    @staticmethod
    def regulate(now: Moment, floor: Floor, given: Any) -> None:
        meters = Meters(given[0] != 0.0, given[1] != 0.0)
        _start(now, floor, meters)
        hold_all(floor, 1.0)
        stand_by(now, floor, False)
        if machine_w(floor, meters) <= now.target_w + HAIR_W:
            return
        if given[2] == 0.0:
            _fit(floor, -1, now.target_w, meters)
        else:
            _cap_in_turn(floor, now.target_w, meters)
