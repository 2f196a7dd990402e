"""Policies that follow a target, by what they start and by one cap for all: `tracking-only`,
`energy-qare` and `qosg`. docs/demand-response.md says exactly what each step does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pdes.jit import kernel
from policies.parameters import parameter
from policies.power import floor as w
from policies.power.acts import halt, hold, take, wake
from policies.power.base import PowerPolicy, power
from policies.power.floor import (
    Floor,
    drawn_w,
    first_waiting,
    head_width,
    lateness,
    more_w,
    quality,
)
from policies.views import Moment

ZHANG = "Y. Zhang: Intelligent middleware for HPC systems, thesis, Boston University 2021, 2.4"
CHEN = "H. Chen et al., 2014, as in Zhang 2021, 2.5"
QARE = "H. Chen et al.: EnergyQARE, 2019, as in Zhang 2021, 2.5 and 2.7"

HAIR, LATER, HAIR_W = 1e-9, 1e-6, 1e-6
"""Shares of nodes, degradations and powers that differ by no more than this are equal: sums of the
same numbers in another order do."""

# -- the steps


@kernel
def _first_of_the_quality(now: Moment, floor: Floor, limit: float) -> bool:
    """Start jobs while they are late by more than the machine is off its target. Returns whether
    any was started."""
    drawn, late, before = drawn_w(floor), quality(floor, now.time), floor.floor[w.STARTS]
    while now.reserve_w > 0.0:
        off = abs(drawn - now.target_w) / now.reserve_w / limit
        kind = first_waiting(floor)
        if not late > off + LATER or kind < 0 or head_width(floor, kind) > floor.floor[w.FREE]:
            break
        drawn += more_w(floor, kind, head_width(floor, kind))
        take(floor, kind, now.time)
    return floor.floor[w.STARTS] > before  # type: ignore[no-any-return]


@kernel
def _of_the_paused(now: Moment, floor: Floor) -> int:
    """Returns the place among the suspended jobs of the one that is late by most."""
    found, most, order = -1, -np.inf, np.inf
    for at in range(floor.floor[w.PAUSED]):
        row = floor.paused[at]
        late, serial = lateness(floor, row, now.time), floor.marks[row, w.SERIAL]
        if late > most or (late == most and serial < order):
            found, most, order = at, late, serial
    return found


@kernel
def _resume(now: Moment, floor: Floor) -> None:
    """Have suspended jobs go on while the target allows it, the one first that is late by most."""
    while floor.floor[w.PAUSED] > 0:
        at = _of_the_paused(now, floor)
        row = floor.paused[at]
        more = more_w(floor, floor.rows[row, w.OF], floor.rows[row, w.WIDTH])
        if floor.sums[w.FULL_W] + more > now.target_w + HAIR_W:
            break
        wake(floor, at, now.time)


@kernel
def _start_in_order(now: Moment, floor: Floor) -> None:
    """Start waiting jobs in order of arrival, until one does not fit or exceeds the target."""
    kind = first_waiting(floor) if floor.floor[w.PAUSED] == 0 else -1
    while kind >= 0:
        width = head_width(floor, kind)
        if width > floor.floor[w.FREE]:
            break
        if floor.sums[w.FULL_W] + more_w(floor, kind, width) > now.target_w + HAIR_W:
            break
        take(floor, kind, now.time)
        kind = first_waiting(floor)


@kernel
def _share(now: Moment, floor: Floor) -> None:
    """Divide the nodes that the target feeds among the types, by weight and by what they can use:
    SHARE of each."""
    kinds, tallies, total, mean_w = floor.kinds, floor.tallies, 0.0, 0.0
    count = tallies.shape[0]
    for kind in range(count):
        if tallies[kind, w.STANDBY] == 0:
            total += kinds[kind, w.WEIGHT]
            mean_w += kinds[kind, w.WEIGHT] * kinds[kind, w.MOST_W]
    # Without weights all are alike.
    alike = 1.0 if total == 0.0 else 0.0
    if total == 0.0:
        for kind in range(count):
            if tallies[kind, w.STANDBY] == 0:
                total += 1.0
                mean_w += kinds[kind, w.MOST_W]
    each_w = mean_w / total - floor.sums[w.IDLE_W] if total > 0.0 else 0.0
    nodes = floor.sums[w.ALL]
    left = nodes
    if each_w > 0.0:
        left = min(nodes, max(0.0, (now.target_w - nodes * floor.sums[w.IDLE_W]) / each_w))
    for kind in range(count):
        kinds[kind, w.SHARE] = -1.0  # open
        demand = tallies[kind, w.NODES] + tallies[kind, w.WAITING_NODES]
        if tallies[kind, w.STANDBY] != 0 or demand == 0:
            kinds[kind, w.SHARE] = 0.0
    closed = True
    while closed:
        closed, weights, given = False, 0.0, 0.0
        for kind in range(count):
            if kinds[kind, w.SHARE] < 0.0:
                weights += kinds[kind, w.WEIGHT] + alike
        for kind in range(count):
            if kinds[kind, w.SHARE] < 0.0 and weights > 0.0:
                part = left * (kinds[kind, w.WEIGHT] + alike) / weights
                demand = tallies[kind, w.NODES] + tallies[kind, w.WAITING_NODES]
                if part >= demand - HAIR:
                    kinds[kind, w.SHARE] = demand
                    given += demand
                    closed = True
        left -= given
        if not closed:
            for kind in range(count):
                if kinds[kind, w.SHARE] < 0.0:
                    part = 0.0
                    if weights > 0.0:
                        part = left * (kinds[kind, w.WEIGHT] + alike) / weights
                    kinds[kind, w.SHARE] = part


@kernel
def _neediest(now: Moment, floor: Floor, least: float, within: bool) -> int:
    """Returns the type whose deficit of nodes, in jobs, is the largest, of those with at least so
    much and a waiting job that fits and, if asked for, keeps to the target; -1: none."""
    found, most = -1, 0.0
    for kind in range(floor.tallies.shape[0]):
        tally = floor.tallies[kind]
        if tally[w.WAITING] == 0 or tally[w.STANDBY] != 0:
            continue
        width = head_width(floor, kind)
        if width > floor.floor[w.FREE]:
            continue
        if within and floor.sums[w.FULL_W] + more_w(floor, kind, width) > now.target_w + HAIR_W:
            continue
        deficit = (floor.kinds[kind, w.SHARE] - tally[w.NODES]) / width
        if deficit > least - HAIR and deficit > most + HAIR:
            found, most = kind, deficit
    return found


@kernel
def _start_by_weight(now: Moment, floor: Floor) -> None:
    """Start waiting jobs of the types that have fewer nodes than their share: whole jobs first, and
    then, as far as the target allows, parts."""
    if floor.floor[w.PAUSED] > 0 or floor.floor[w.QUEUED] == 0:
        return
    _share(now, floor)
    least, within = 1.0, False
    while True:
        kind = _neediest(now, floor, least, within)
        if kind >= 0:
            take(floor, kind, now.time)
        elif within:
            break
        else:
            least, within = 2.0 * HAIR, True


@kernel
def _stand_by(now: Moment, floor: Floor) -> None:
    """Start standby jobs while nobody waits, as the target allows."""
    kind = floor.floor[w.STANDBY_KIND]
    if kind < 0 or floor.floor[w.QUEUED] > 0 or floor.floor[w.PAUSED] > 0:
        return
    if now.reserve_w == 0.0:
        return  # there is no target that they would have to fill
    while floor.tallies[kind, w.HEAD] >= 0:
        width = head_width(floor, kind)
        more = more_w(floor, kind, width)
        if width > floor.floor[w.FREE] or floor.sums[w.FULL_W] + more > now.target_w + HAIR_W:
            break
        take(floor, kind, now.time)


@kernel
def _hold_all(floor: Floor, ratio: float) -> None:
    for kind in range(floor.tallies.shape[0]):
        hold(floor, kind, ratio)


@kernel
def _cap(now: Moment, floor: Floor) -> None:
    """Give all one cap, by which the machine draws its target if it can."""
    full, low, ratio = floor.sums[w.FULL_W], floor.sums[w.FLOOR_W], 1.0
    if full > now.target_w + HAIR_W:
        ratio = (now.target_w - low) / (full - low) if full > low else 0.0
    _hold_all(floor, ratio)


@kernel
def _of_the_running(now: Moment, floor: Floor) -> int:
    """Returns the running job that is late by least, of those that draw more than an idle node at
    the lowest cap; -1: none."""
    found, least, order = -1, np.inf, np.inf
    for kind in range(floor.tallies.shape[0]):
        tally = floor.tallies[kind]
        if tally[w.RUNNING] == 0 or floor.kinds[kind, w.LOW_W] <= floor.sums[w.IDLE_W]:
            continue
        for at in range(tally[w.HEAP], tally[w.HEAP] + tally[w.RUNNING]):
            row = floor.tops[at]
            late, serial = lateness(floor, row, now.time), floor.marks[row, w.SERIAL]
            if late < least or (late == least and serial < order):
                found, least, order = row, late, serial
    return found


@kernel
def _preempt(now: Moment, floor: Floor) -> None:
    """Suspend jobs while the machine draws more than its target at the lowest caps, the one first
    that is late by least."""
    some = False
    while floor.sums[w.FLOOR_W] > now.target_w + HAIR_W:
        row = _of_the_running(now, floor)
        if row < 0:
            break
        halt(floor, row, now.time)
        some = True
    if some:
        _cap(now, floor)


# -- the policies


@kernel
def _follow(now: Moment, floor: Floor, preemption: bool, weighted: bool) -> None:
    if preemption:
        _resume(now, floor)
    if weighted:
        _start_by_weight(now, floor)
    else:
        _start_in_order(now, floor)
    _stand_by(now, floor)
    _cap(now, floor)
    if preemption:
        _preempt(now, floor)


PREEMPTION = "suspend jobs where all are held at their lowest cap and the machine still draws more"


@power("tracking-only", about="follows the target, whoever waits", source=CHEN)
class TrackingOnly(PowerPolicy):
    """Each second waiting jobs start in order of arrival while the machine, without caps, stays
    within its target. Where it exceeds that all jobs are held to one cap."""

    preemption: bool = parameter(False, about=PREEMPTION)

    @staticmethod
    def regulate(now: Moment, floor: Floor, given: Any) -> None:
        _follow(now, floor, given[0] != 0.0, False)


@power("energy-qare", about="follows the target while jobs are less late than it is off",
       source=QARE)  # fmt: skip
class EnergyQare(PowerPolicy):
    """As `tracking-only`; but where jobs are late, as a part of their thresholds, by more than the
    machine is off its target, as a part of what it may be, waiting jobs start first, whatever the
    target."""

    limit: float = parameter(
        0.3,
        about="how far the machine may be off its target, as a part of the reserve",
        least=1e-9,
    )
    preemption: bool = parameter(False, about=PREEMPTION)

    @staticmethod
    def regulate(now: Moment, floor: Floor, given: Any) -> None:
        if _first_of_the_quality(now, floor, given[0]):
            _hold_all(floor, 1.0)
            return
        _follow(now, floor, given[1] != 0.0, False)


@power("qosg", about="divides the nodes that the target feeds by the weights of the bid",
       source=ZHANG)  # fmt: skip
class QosG(PowerPolicy):
    """The target says how many nodes may be active, the weights of the bid how many of these each
    type of jobs gets. What a type cannot use is divided among the others. Where the machine exceeds
    its target all jobs are held to one cap."""

    preemption: bool = parameter(False, about=PREEMPTION)

    @staticmethod
    def regulate(now: Moment, floor: Floor, given: Any) -> None:
        _follow(now, floor, given[0] != 0.0, True)
