"""What policies that follow a target do at a control instant, step by step: resume, start, stand
by, cap, preempt. docs/demand-response.md says exactly what each step does.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pdes.jit import kernel
from policies.power import floor as w
from policies.power.acts import halt, hold, take, wake
from policies.power.floor import Floor, first_waiting, head_width, lateness, more_w
from policies.power.shares import HAIR_W, share, start_by_weight
from policies.views import Moment


class Rule(NamedTuple):
    """How a policy follows its target."""

    weighted: bool
    """Whether nodes are divided by weights; jobs start in order of arrival else."""
    preemption: bool
    """Whether jobs are suspended."""
    sharing: bool
    """Whether types get what others cannot use."""
    parts: bool
    """Whether a type that lacks less than a whole job may start one, within the target."""
    caps: bool
    """Whether jobs are capped."""
    planned: bool
    """Whether the cap is that by which planned numbers of nodes would draw the target."""
    gaps: bool
    """Whether standby jobs start while others wait, too."""
    gain: float
    """By how much weights grow as waiting jobs come near to their thresholds."""


@kernel
def usual(weighted: bool, preemption: bool) -> Rule:
    """Returns the rule that all policies have but for those options."""
    return Rule(weighted, preemption, True, True, True, False, False, 0.0)


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
def stand_by(now: Moment, floor: Floor, gaps: bool) -> None:
    """Start standby jobs as the target allows: while nobody waits or, to fill `gaps`, always."""
    kind = floor.floor[w.STANDBY_KIND]
    if kind < 0 or floor.floor[w.PAUSED] > 0 or (floor.floor[w.QUEUED] > 0 and not gaps):
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
def hold_all(floor: Floor, ratio: float) -> None:
    """Give all jobs one cap, from 0, the lowest, to 1, which is none."""
    for kind in range(floor.tallies.shape[0]):
        hold(floor, kind, ratio)


@kernel
def _planned(now: Moment, floor: Floor, rule: Rule) -> float:
    """Returns the cap by which the machine would draw its target if each type had as many nodes as
    its share."""
    nodes = share(now, floor, rule.sharing, rule.gain)
    low, most = (floor.sums[w.ALL] - nodes) * floor.sums[w.IDLE_W], 0.0
    most = low
    for kind in range(floor.tallies.shape[0]):
        low += floor.kinds[kind, w.SHARE] * floor.kinds[kind, w.LOW_W]
        most += floor.kinds[kind, w.SHARE] * floor.kinds[kind, w.MOST_W]
    return (now.target_w - low) / (most - low) if most > low else 0.0  # type: ignore[no-any-return]


@kernel
def _cap(now: Moment, floor: Floor, rule: Rule) -> None:
    """Give all one cap, by which the machine draws its target if it can."""
    full, low, ratio = floor.sums[w.FULL_W], floor.sums[w.FLOOR_W], 1.0
    if rule.caps and full > now.target_w + HAIR_W:
        if rule.planned:
            ratio = _planned(now, floor, rule)
        else:
            ratio = (now.target_w - low) / (full - low) if full > low else 0.0
    hold_all(floor, ratio)


@kernel
def _of_the_running(now: Moment, floor: Floor, word: int) -> int:
    """Returns the running job that is late by least, of those that draw more than an idle node, by
    this word of their type; -1: none."""
    found, least, order = -1, np.inf, np.inf
    for kind in range(floor.tallies.shape[0]):
        tally = floor.tallies[kind]
        if tally[w.RUNNING] == 0 or floor.kinds[kind, word] <= floor.sums[w.IDLE_W]:
            continue
        for at in range(tally[w.HEAP], tally[w.HEAP] + tally[w.RUNNING]):
            row = floor.tops[at]
            late, serial = lateness(floor, row, now.time), floor.marks[row, w.SERIAL]
            if late < least or (late == least and serial < order):
                found, least, order = row, late, serial
    return found


@kernel
def _preempt(now: Moment, floor: Floor, rule: Rule) -> None:
    """Suspend jobs while the machine draws more than its target at the lowest caps or, where there
    are none, at all: the one first that is late by least."""
    drawn, word, some = w.FLOOR_W if rule.caps else w.FULL_W, w.LOW_W, False
    if not rule.caps:
        word = w.MOST_W
    while floor.sums[drawn] > now.target_w + HAIR_W:
        row = _of_the_running(now, floor, word)
        if row < 0:
            break
        halt(floor, row, now.time)
        some = True
    if some:
        _cap(now, floor, rule)


@kernel
def follow(now: Moment, floor: Floor, rule: Rule) -> None:
    """Do all steps of a control instant."""
    if rule.preemption:
        _resume(now, floor)
    if rule.weighted:
        start_by_weight(now, floor, rule.sharing, rule.parts, rule.gain)
    else:
        _start_in_order(now, floor)
    stand_by(now, floor, rule.gaps)
    _cap(now, floor, rule)
    if rule.preemption:
        _preempt(now, floor, rule)
