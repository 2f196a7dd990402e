"""The pass of RMAP, compiled: what `rmap.Rmap.select` does, over the arrays of a `PowerDesk`.

All of it is arithmetic on whole numbers, ticks and microwatts, but for a job's fair share, what a
rigid job may draw, and the time that its user tolerates. `rmap` says why, here it is only said how.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pdes.clock import LATEST as NEVER
from pdes.jit import direct, entry, kernel
from policies.views import Choices, PowerDesk, Request

TRADITIONAL, NAIVE, ADAPTIVE = range(3)
BACKFILLS = ("easy", "first-fit", "none")
EASY, FIRST_FIT, NO_BACKFILL = range(len(BACKFILLS))
ANY = 1 << 62
"""More nodes, and more microwatts, than there are."""
TOO_MUCH, MOST = 4 * 10**18, 4e18
"""Microwatts that no machine has, and from which on they are not counted."""


class Table(NamedTuple):
    """The columns of a `PowerDesk` that a pass reads, which are there in every desk: a desk may get
    more columns, and what is compiled takes these."""

    nodes: Any
    requested: Any
    due: Any
    mold: Any
    application: Any
    queue: Any
    running: Any


def table_of(desk: PowerDesk) -> Table:
    """Returns what a pass reads of a desk."""
    return Table(desk.nodes, desk.requested, desk.due, desk.mold, desk.application, desk.queue,
                 desk.running)  # fmt: skip


def table_of_one(job: Request, application: int) -> Table:
    """Returns the same of a job that waits alone, where nobody runs."""
    requested = NEVER if job.requested is None else job.requested
    words = np.array([[job.nodes, requested, NEVER, -1, application, 0]], np.int64)
    words.flags.writeable = False
    return Table._make([*words.T, words[0, :0]])


class Machine(NamedTuple):
    """What a pass begins with: nodes of the machine, the microwatts that jobs may have in all, the
    watts that a node draws idle and at most, and the time."""

    nodes: int
    uw: int
    idle_w: float
    most_w: float
    time: int


class Rule(NamedTuple):
    """Which of the policies it is, who may overtake, and its other parameters: `strict` is only of
    the naive one, `slower` tells whether a job also runs slower where nodes are short, and a
    threshold below 0 is none."""

    policy: int
    backfill: int
    strict: bool
    slower: bool
    threshold: float


class Shelf(NamedTuple):
    """What a policy knows of all applications, one behind the other, and of each the fastest choice
    first."""

    first: Any
    """[application + 1]: where its choices begin; the last word is where all end."""
    nodes: Any
    uw: Any
    """Above idle."""
    time: Any
    latest: Any
    """The time after which a job may be ended whose user asked for less."""
    uw_of: Any
    """The microwatts again, in the order of the true choices, which `Table.mold` counts in."""
    first_packed: Any
    packed: Any
    """The places of the choices with the most cores and of these the highest cap, for each
    application, one for each number of nodes, the fewest first."""


@lru_cache(maxsize=64)
def shelf_of(
    known: tuple[Choices, ...], true: tuple[Choices, ...], idle_w: float, grace: float
) -> Shelf:  # fmt: skip
    """Returns what is known of applications: their choices as known, and the true ones. A job may
    exceed its time as known by a share of it, the grace."""
    first = _starts([len(choices) for choices in known])
    uw = [np.rint((each.watts - each.nodes * idle_w) * 1e6).astype(np.int64) for each in known]
    late = [np.ceil(each.time * (1.0 + grace)) if grace else each.time for each in known]
    uw_of = [
        each[[choices.place(*real[at][:3]) for at in range(len(real))]]
        for each, choices, real in zip(uw, known, true, strict=True)
    ]
    packed = [begin + _packed(each) for each, begin in zip(known, first.tolist(), strict=False)]
    return Shelf(
        first, _joined([each.nodes for each in known]), _joined(uw),
        _joined([each.time for each in known]), _joined(late), _joined(uw_of),
        _starts([len(each) for each in packed]), _joined(packed),
    )  # fmt: skip


def _packed(choices: Choices) -> npt.NDArray[np.intp]:
    order = np.lexsort((choices.cap_w, choices.cores, choices.nodes))
    return order[np.flatnonzero(np.diff(choices.nodes[order], append=0))]


def _starts(sizes: Sequence[int]) -> Any:
    return np.cumsum(np.array([0, *sizes], np.int64))


def _joined(parts: Sequence[Any]) -> Any:
    return np.concatenate([np.zeros(0, np.int64), *parts]).astype(np.int64)


@cache
def compiled_pass() -> Any:
    """Returns `started_from` without the compiler's look at every argument. It takes any table, as
    those of one job have arrays of other strides than those of several."""
    column = np.zeros((2, 2), np.int64)[:, 0]
    column.flags.writeable = False
    return direct(started_from, Table(*[column] * 7), shelf_of((), (), 0.0, 0.0),
                  Rule(0, 0, False, False, 0.0), Machine(1, 1, 0.0, 0.0, 0), 0,
                  np.ones(1), *room_for(1, 1))  # fmt: skip


def room_for(waiting: int, running: int) -> tuple[Any, Any]:
    """Returns the two arrays that `started_from` writes to."""
    return np.empty((waiting + running, 3), np.int64), np.empty((waiting, 4), np.int64)


@kernel
def _fair(weight: float, machine: Machine, asked: int) -> int:
    share = weight * asked / machine.nodes * machine.uw
    return machine.uw if share >= MOST else min(machine.uw, round(share))


@kernel
def _rigid_uw(machine: Machine, nodes: int) -> int:
    uw = nodes * (machine.most_w - machine.idle_w) * 1e6
    return TOO_MUCH if uw >= MOST else round(uw)


@kernel
def _end(now: int, limit: int) -> int:
    return NEVER if limit >= NEVER - now else now + limit


@kernel
def _limit(shelf: Shelf, at: int, requested: int) -> int:
    latest = shelf.latest[at]
    return latest if requested == NEVER else max(latest, requested)  # type: ignore[no-any-return]


@kernel
def _fastest(
    shelf: Shelf, which: int, requested: int, nodes: int, uw: int, now: int, reserved: Any
) -> int:
    """Returns the place of the fastest choice of an application within these nodes and microwatts
    that breaks no reservation, -1 if there is none."""
    until, spare_nodes, spare_uw = reserved
    for at in range(shelf.first[which], shelf.first[which + 1]):
        if shelf.uw[at] <= uw and shelf.nodes[at] <= nodes:
            if shelf.nodes[at] <= spare_nodes and shelf.uw[at] <= spare_uw:
                return at
            if _end(now, _limit(shelf, at, requested)) <= until:
                return at
    return -1


@kernel
def _wanted(
    shelf: Shelf, rule: Rule, machine: Machine, which: int, asked: int, weight: float
) -> int:
    """Returns the place of the choice that a moldable job waits for, -1 if there is none."""
    found = -1
    if rule.policy == TRADITIONAL:
        for i in range(shelf.first_packed[which], shelf.first_packed[which + 1]):
            at = shelf.packed[i]
            fits = shelf.uw[at] <= machine.uw and shelf.nodes[at] <= machine.nodes
            if fits and shelf.nodes[at] <= asked:
                found = at
        return found
    fair = _fair(weight, machine, asked)
    found = _fastest(shelf, which, NEVER, machine.nodes, fair, 0, (NEVER, ANY, ANY))
    if found >= 0:
        return found
    for at in range(shelf.first[which], shelf.first[which + 1]):  # the faster of equals is first
        if shelf.nodes[at] <= machine.nodes and (found < 0 or shelf.uw[at] < shelf.uw[found]):
            found = at
    return found if found >= 0 and shelf.uw[found] <= machine.uw else -1


@kernel
def _tolerates(shelf: Shelf, rule: Rule, at: int, requested: int) -> Any:
    if rule.threshold < 0.0 or requested == NEVER:
        return True
    return shelf.time[at] <= (1.0 + rule.threshold) * requested


@kernel
def _needs(shelf: Shelf, rule: Rule, at: int, fair: int, requested: int) -> int:
    """Returns the microwatts that have to be free before a job starts in the choice that it waits
    for."""
    uw = shelf.uw[at]
    if rule.strict or (rule.policy == ADAPTIVE and not _tolerates(shelf, rule, at, requested)):
        return max(uw, fair)  # type: ignore[no-any-return]
    return uw  # type: ignore[no-any-return]


@kernel
def _hold(ends: Any, count: int, end: int, nodes: int, uw: int) -> None:
    """Insert a job into those that run, which are in order of their ends."""
    at = count
    while at > 0 and ends[at - 1, 0] > end:
        for word in range(3):
            ends[at, word] = ends[at - 1, word]
        at -= 1
    ends[at, 0] = end
    ends[at, 1] = nodes
    ends[at, 2] = uw


@kernel
def _reserved(
    ends: Any, count: int, now: int, nodes: int, uw: int, free: int, left: int
) -> Any:  # fmt: skip
    """Returns when a job that needs so many nodes and microwatts can start at the latest, and what
    it leaves of both then."""
    at, time = 0, now
    while free < nodes or left < uw:
        if at == count or ends[at, 0] == NEVER:
            return NEVER, ANY, ANY
        time = ends[at, 0]
        while at < count and ends[at, 0] == time:
            free += ends[at, 1]
            left += ends[at, 2]
            at += 1
    return time, free - nodes, left - uw


@entry
def started_from(
    desk: Table, shelf: Shelf, rule: Rule, machine: Machine, free: int, weights: Any, ends: Any,
    started: Any,
) -> int:  # fmt: skip
    """Write the jobs that start now, in order: the row of each, its application, the place of its
    choice among those known of that (-1: it is rigid), and the time after which it may be ended.
    Returns how many there are. `weights` are those of the fair shares of waiting jobs, in the order
    of the queue; `ends` is room to work in (`room_for`)."""
    if machine.uw < 0:  # it may not even idle
        return 0
    now, left, held, count = machine.time, machine.uw, 0, 0
    for i in range(desk.running.shape[0]):
        row = desk.running[i]
        nodes = desk.nodes[row]
        if desk.mold[row] < 0:
            uw = _rigid_uw(machine, nodes)
        else:
            uw = shelf.uw_of[shelf.first[desk.application[row]] + desk.mold[row]]
        _hold(ends, held, min(desk.due[row], NEVER), nodes, uw)
        held += 1
        left -= uw
    waits = False
    until, spare_nodes, spare_uw = NEVER, ANY, ANY
    for i in range(desk.queue.shape[0]):
        if free == 0:
            break
        row = desk.queue[i]
        which, requested, asked = desk.application[row], desk.requested[row], desk.nodes[row]
        if which >= 0 and asked < shelf.nodes[shelf.packed[shelf.first_packed[which]]]:
            which = -1  # it asks for fewer nodes than were measured, so it is rigid
        # What it waits for, which is also what it starts in, unless it runs slower.
        at, fair = -1, 0
        nodes, uw, limit, needed = asked, 0, requested, 0
        if which < 0:
            uw = needed = _rigid_uw(machine, asked)
        else:
            at = _wanted(shelf, rule, machine, which, asked, weights[i])
            fair = _fair(weights[i], machine, asked)
            if at >= 0:
                nodes, uw, limit = shelf.nodes[at], shelf.uw[at], _limit(shelf, at, requested)
                needed = _needs(shelf, rule, at, fair, requested)
        some = which < 0 or at >= 0
        starts = some and (needed <= left or rule.policy == ADAPTIVE)
        if which >= 0 and rule.policy == ADAPTIVE:
            short = rule.slower and at >= 0 and nodes > free
            if fair > left or short:
                at = _fastest(shelf, which, requested, free, min(left, fair), now,
                              (until, spare_nodes, spare_uw))  # fmt: skip
                starts = at >= 0 and _tolerates(shelf, rule, at, requested)
                if starts:
                    nodes, uw, limit = shelf.nodes[at], shelf.uw[at], _limit(shelf, at, requested)
        end = _end(now, limit)
        if starts and nodes <= free and uw <= left:
            starts = end <= until or (nodes <= spare_nodes and uw <= spare_uw)
        else:
            starts = False
        if starts:
            free -= nodes
            left -= uw
            _hold(ends, held, end, nodes, uw)
            held += 1
            if end > until:
                spare_nodes -= nodes
                spare_uw -= uw
            started[count, 0] = row
            started[count, 1] = which
            started[count, 2] = at - shelf.first[which] if which >= 0 else -1
            started[count, 3] = limit
            count += 1
        elif rule.backfill == NO_BACKFILL:
            break
        elif rule.backfill == EASY and not waits:
            waits = True
            if some:
                until, spare_nodes, spare_uw = _reserved(ends, held, now, nodes, needed, free, left)
    return count
