"""How the nodes that a target feeds are divided among types by weight, and which jobs start then.
docs/demand-response.md says exactly what each step does.
"""

from __future__ import annotations

import numpy as np

from pdes.jit import kernel
from policies.power import floor as w
from policies.power.acts import take
from policies.power.floor import Floor, head_width, more_w
from policies.views import Moment

HAIR, HAIR_W = 1e-9, 1e-6
"""Shares of nodes and powers that differ by no more than this are equal: sums of the same numbers
in another order do."""


@kernel
def _demand(floor: Floor, kind: int) -> int:
    """Returns the nodes that the jobs of a type run on or wait for; 0 of standby jobs."""
    tally = floor.tallies[kind]
    if tally[w.STANDBY] != 0:
        return 0
    return tally[w.NODES] + tally[w.WAITING_NODES]  # type: ignore[no-any-return]


@kernel
def urgency(now: Moment, floor: Floor, kind: int) -> float:
    """Returns the degradation that the first waiting job of a type has from its wait so far, as a
    part of its threshold; 0 where none waits, or where it has none."""
    tally = floor.tallies[kind]
    if tally[w.WAITING] == 0 or not floor.kinds[kind, w.THRESHOLD] < np.inf:
        return 0.0
    row = tally[w.HEAD]
    waited = now.time - floor.rows[row, w.SUBMIT]
    return waited / max(floor.marks[row, w.RUN], w.SHORTEST) / floor.kinds[kind, w.THRESHOLD]  # type: ignore[no-any-return]


@kernel
def weigh(now: Moment, floor: Floor, gain: float) -> float:
    """Write the weight of each type that holds now into SHARE: that of the bid, or all alike where
    the bid has none, made larger by the gain times its urgency. Returns their sum."""
    kinds, given = floor.kinds, 0.0
    count = floor.tallies.shape[0]
    for kind in range(count):
        if floor.tallies[kind, w.STANDBY] == 0:
            given += kinds[kind, w.WEIGHT]
    total = 0.0
    for kind in range(count):
        weight = 0.0
        if floor.tallies[kind, w.STANDBY] == 0:
            weight = kinds[kind, w.WEIGHT] if given > 0.0 else 1.0
            if gain > 0.0:
                weight *= 1.0 + gain * urgency(now, floor, kind)
            total += weight
        kinds[kind, w.SHARE] = weight
    return total


@kernel
def fed(now: Moment, floor: Floor, total: float) -> float:
    """Returns how many nodes the target feeds, if types have nodes by the weights in SHARE."""
    kinds, nodes, mean_w = floor.kinds, floor.sums[w.ALL], 0.0
    for kind in range(floor.tallies.shape[0]):
        mean_w += kinds[kind, w.SHARE] * kinds[kind, w.MOST_W]
    each_w = mean_w / total - floor.sums[w.IDLE_W] if total > 0.0 else 0.0
    if not each_w > 0.0:
        return nodes  # type: ignore[no-any-return]
    more = (now.target_w - nodes * floor.sums[w.IDLE_W]) / each_w
    return min(nodes, max(0.0, more))  # type: ignore[no-any-return]


@kernel
def share(now: Moment, floor: Floor, sharing: bool, gain: float) -> float:
    """Divide the nodes that the target feeds among the types, by weight and by what they can use:
    SHARE of each. Where there is no `sharing`, what a type cannot use nobody has. Returns how many
    nodes are fed."""
    kinds = floor.kinds
    count = floor.tallies.shape[0]
    total = weigh(now, floor, gain)
    nodes = fed(now, floor, total)
    if not sharing:
        for kind in range(count):
            part = nodes * kinds[kind, w.SHARE] / total if total > 0.0 else 0.0
            kinds[kind, w.SHARE] = min(part, _demand(floor, kind))
        return nodes
    # While a type's share is open SHARE is minus its weight, and -inf stands for a weight of 0.
    for kind in range(count):
        weight = kinds[kind, w.SHARE]
        kinds[kind, w.SHARE] = -weight if weight > 0.0 else -np.inf
        if _demand(floor, kind) == 0:
            kinds[kind, w.SHARE] = 0.0
    left, closed = nodes, True
    while closed:
        closed, weights, given = False, 0.0, 0.0
        for kind in range(count):
            if -np.inf < kinds[kind, w.SHARE] < 0.0:
                weights -= kinds[kind, w.SHARE]
        for kind in range(count):
            part = _part(kinds[kind, w.SHARE], left, weights)
            if part >= _demand(floor, kind) - HAIR:
                kinds[kind, w.SHARE] = _demand(floor, kind)
                given += _demand(floor, kind)
                closed = True
        left -= given
        if not closed:
            for kind in range(count):
                if kinds[kind, w.SHARE] < 0.0:
                    kinds[kind, w.SHARE] = max(0.0, _part(kinds[kind, w.SHARE], left, weights))
    return nodes


@kernel
def _part(share: float, left: float, weights: float) -> float:
    """Returns the part of what is left of a type whose share is open; -1 of another."""
    if not share < 0.0:
        return -1.0
    return left * -share / weights if -np.inf < share and weights > 0.0 else 0.0


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
def start_by_weight(now: Moment, floor: Floor, sharing: bool, parts: bool, gain: float) -> None:
    """Start waiting jobs of the types that have fewer nodes than their share: whole jobs first, and
    then, if `parts` are wanted and as far as the target allows, parts."""
    if floor.floor[w.PAUSED] > 0 or floor.floor[w.QUEUED] == 0:
        return
    share(now, floor, sharing, gain)
    least, within = 1.0, False
    while True:
        kind = _neediest(now, floor, least, within)
        if kind >= 0:
            take(floor, kind, now.time)
        elif within or not parts:
            break
        else:
            least, within = 2.0 * HAIR, True
