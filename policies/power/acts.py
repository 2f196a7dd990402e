"""What is done on a floor (`policies.power.floor`): jobs arrive, start, are suspended, go on, end.

A policy that regulates calls `take`, `wake`, `halt` and `hold`; the machine calls the rest. The
clock of a type shows how much work a job of it would have done that had run from the beginning.
Running jobs of a type all get on as it does: each is done when the clock shows its `FINISH`, and
none has to be looked at when the cap changes.
"""

from __future__ import annotations

import numpy as np

from pdes.jit import kernel
from policies.power import floor as w
from policies.power.floor import Floor
from policies.views import NEVER

HAIR = 1e-3
"""A job is done when no more work than this is left: sums of the same numbers in another order
differ by less."""
SECOND = 1e-6
"""A tick of a job run, in s: where packets are simulated, nodes have meters, and nobody reads the
energies of a floor."""

# -- the clock


@kernel
def advance(floor: Floor, kind: int, time: int) -> None:
    """Have the clock of a type go on until now, and count the energy of its jobs."""
    tally, of = floor.tallies[kind], floor.kinds[kind]
    passed = time - tally[w.SINCE]
    if passed > 0:
        seconds = passed * SECOND
        of[w.CLOCK] += passed / of[w.PACE]
        of[w.NODE_J] += of[w.WATTS] * seconds
        drawn = tally[w.NODES] * of[w.WATTS] + tally[w.HALTED_NODES] * floor.sums[w.IDLE_W]
        of[w.JOULES] += drawn * seconds
        tally[w.SINCE] = time


@kernel
def foresee(floor: Floor, kind: int) -> None:
    """Find out when the first of the running jobs of a type ends, if nothing comes between."""
    tally, of = floor.tallies[kind], floor.kinds[kind]
    tally[w.ENDS] = NEVER
    if tally[w.RUNNING] > 0:
        left = floor.marks[floor.tops[tally[w.HEAP]], w.FINISH] - of[w.CLOCK] - HAIR
        ticks = max(0.0, np.ceil(left * of[w.PACE]))
        if ticks < NEVER - tally[w.SINCE]:
            tally[w.ENDS] = tally[w.SINCE] + np.int64(ticks)


# -- the heap of the running jobs of a type


@kernel
def _sooner(floor: Floor, row: int, other: int) -> bool:
    a, b = floor.marks[row, w.FINISH], floor.marks[other, w.FINISH]
    return a < b or (a == b and row < other)


@kernel
def _put(floor: Floor, base: int, at: int, row: int) -> None:
    floor.tops[base + at] = row
    floor.rows[row, w.SPOT] = at


@kernel
def _settle(floor: Floor, base: int, size: int, at: int, row: int) -> None:
    """Put a job into a heap of so many, from a place that is free up or down to its own."""
    tops = floor.tops
    while at > 0 and _sooner(floor, row, tops[base + ((at - 1) >> 1)]):
        _put(floor, base, at, tops[base + ((at - 1) >> 1)])
        at = (at - 1) >> 1
    below = 2 * at + 1
    while below < size:
        if below + 1 < size and _sooner(floor, tops[base + below + 1], tops[base + below]):
            below += 1
        if not _sooner(floor, tops[base + below], row):
            break
        _put(floor, base, at, tops[base + below])
        at, below = below, 2 * below + 1
    _put(floor, base, at, row)


@kernel
def _enter(floor: Floor, kind: int, row: int, left: float, time: int) -> None:
    """Have a job with so much work left run from now on."""
    tally, of, mark = floor.tallies[kind], floor.kinds[kind], floor.marks[row]
    width = floor.rows[row, w.WIDTH]
    mark[w.FINISH] = of[w.CLOCK] + left
    mark[w.LEFT] = -1.0
    mark[w.BEGAN_J] = of[w.NODE_J]
    mark[w.BEGAN] = time
    tally[w.RUNNING] += 1
    tally[w.NODES] += width
    _settle(floor, tally[w.HEAP], tally[w.RUNNING], tally[w.RUNNING] - 1, row)
    foresee(floor, kind)
    floor.sums[w.FULL_W] += width * (of[w.MOST_W] - floor.sums[w.IDLE_W])
    floor.sums[w.FLOOR_W] += width * (of[w.LOW_W] - floor.sums[w.IDLE_W])
    if tally[w.STANDBY] == 0:
        _score(floor, kind, row, of[w.CLOCK], 1.0)


@kernel
def _leave(floor: Floor, kind: int, row: int) -> None:
    """Have a job run no longer."""
    tally, of = floor.tallies[kind], floor.kinds[kind]
    width, last = floor.rows[row, w.WIDTH], tally[w.RUNNING] - 1
    tally[w.RUNNING] = last
    tally[w.NODES] -= width
    at, base = floor.rows[row, w.SPOT], tally[w.HEAP]
    if at != last:
        _settle(floor, base, last, at, floor.tops[base + last])
    foresee(floor, kind)
    floor.sums[w.FULL_W] -= width * (of[w.MOST_W] - floor.sums[w.IDLE_W])
    floor.sums[w.FLOOR_W] -= width * (of[w.LOW_W] - floor.sums[w.IDLE_W])


@kernel
def _count(floor: Floor, kind: int, row: int, time: int) -> None:
    """Count for how long a job has got on, and the energy that it has taken."""
    mark = floor.marks[row]
    mark[w.GOT_ON] += time - mark[w.BEGAN]
    drawn = floor.kinds[kind, w.NODE_J] - mark[w.BEGAN_J]
    mark[w.TAKEN_J] += floor.rows[row, w.WIDTH] * drawn


# -- degradations, as a sum per type


@kernel
def _score(floor: Floor, kind: int, row: int, clock: float, sign: float) -> None:
    """Have the work that is left of a job fall as the clock goes, from where it stands; or, with
    the sign changed, no longer."""
    of, part = floor.kinds[kind], max(floor.marks[row, w.RUN], w.SHORTEST)
    of[w.SCORE] += sign * clock / part
    of[w.PER_WORK] += sign / part


@kernel
def _present(floor: Floor, kind: int, row: int, left: float, sign: float) -> None:
    """Count a job with so much work left among those that are there; or no longer."""
    of, run = floor.kinds[kind], floor.marks[row, w.RUN]
    part = max(run, w.SHORTEST)
    of[w.SCORE] += sign * ((left - floor.rows[row, w.SUBMIT] - run) / part)
    of[w.PER_TIME] += sign / part
    tally = floor.tallies[kind]
    if sign < 0.0 and tally[w.WAITING] + tally[w.RUNNING] + tally[w.HALTED] == 0:
        of[w.SCORE] = of[w.PER_TIME] = of[w.PER_WORK] = 0.0  # and nothing of rounding


# -- what happens


@kernel
def arrive(floor: Floor, row: int) -> None:
    """Have a job wait, behind all others of its type."""
    kind, mark = floor.rows[row, w.OF], floor.marks[row]
    tally = floor.tallies[kind]
    floor.rows[row, w.LINK] = -1
    mark[w.GOT_ON], mark[w.TAKEN_J], mark[w.LEFT] = 0.0, 0.0, -1.0
    if tally[w.WAITING] == 0:
        tally[w.HEAD] = row
    else:
        floor.rows[tally[w.TAIL], w.LINK] = row
    tally[w.TAIL] = row
    tally[w.WAITING] += 1
    tally[w.WAITING_NODES] += floor.rows[row, w.WIDTH]
    floor.floor[w.QUEUED] += 1
    _present(floor, kind, row, floor.marks[row, w.RUN], 1.0)


@kernel
def begin(floor: Floor, kind: int, row: int, left: float) -> None:
    """Have a job run at time 0 that has begun before, with so much work left."""
    floor.floor[w.FREE] -= floor.rows[row, w.WIDTH]
    floor.marks[row, w.SERIAL] = row
    _present(floor, kind, row, left, 1.0)
    _enter(floor, kind, row, left, 0)


@kernel
def again(floor: Floor, kind: int, row: int, left: float) -> None:
    """Have a standby job that has just started have only so much work left."""
    _leave(floor, kind, row)
    _enter(floor, kind, row, left, 0)


@kernel
def overrun(floor: Floor, kind: int) -> None:
    """Have no work left of the running jobs of a type that go on for longer than they were expected
    to: they end when they do. The clock has to show the time."""
    tally, of = floor.tallies[kind], floor.kinds[kind]
    base, late = tally[w.HEAP], False
    while tally[w.RUNNING] > 0 and floor.marks[floor.tops[base], w.FINISH] < of[w.CLOCK]:
        row = floor.tops[base]
        mark = floor.marks[row]
        longer = of[w.CLOCK] - mark[w.FINISH]
        if tally[w.STANDBY] == 0:
            of[w.SCORE] += longer / max(mark[w.RUN], w.SHORTEST)
        mark[w.FINISH], late = of[w.CLOCK], True
        _settle(floor, base, tally[w.RUNNING], 0, row)
    if late:
        foresee(floor, kind)


@kernel
def first_done(floor: Floor, time: int) -> int:
    """Returns the row of a job that ends by now, -1 if none does."""
    for kind in range(floor.tallies.shape[0]):
        if floor.tallies[kind, w.ENDS] <= time:
            return floor.tops[floor.tallies[kind, w.HEAP]]  # type: ignore[no-any-return]
    return -1


@kernel
def next_end(floor: Floor) -> int:
    """Returns when the first of all running jobs ends, if nothing comes between."""
    first = NEVER
    for kind in range(floor.tallies.shape[0]):
        first = min(first, floor.tallies[kind, w.ENDS])
    return first


@kernel
def finish(floor: Floor, row: int, time: int) -> None:
    """Take a job off its nodes that is done."""
    kind = floor.rows[row, w.OF]
    advance(floor, kind, time)
    mark, words = floor.marks[row], floor.floor
    clock = floor.kinds[kind, w.CLOCK]
    _leave(floor, kind, row)
    words[w.FREE] += floor.rows[row, w.WIDTH]
    _count(floor, kind, row, time)
    if floor.tallies[kind, w.STANDBY] != 0:
        words[w.STANDBYS_ENDED] += 1
        floor.rows[row, w.LINK] = words[w.SPARE]
        words[w.SPARE] = row
        floor.tallies[kind, w.HEAD] = row
        return
    left = mark[w.FINISH] - clock
    _score(floor, kind, row, clock, -1.0)
    _present(floor, kind, row, left, -1.0)


# -- what a policy does


@kernel
def _runs(floor: Floor, row: int) -> bool:
    """Tells whether a job runs, and is not suspended."""
    if not 0 <= row < floor.rows.shape[0]:
        return False
    tally, spot = floor.tallies[floor.rows[row, w.OF]], floor.rows[row, w.SPOT]
    if not 0 <= spot < tally[w.RUNNING]:
        return False
    return floor.tops[tally[w.HEAP] + spot] == row  # type: ignore[no-any-return]


@kernel
def take(floor: Floor, kind: int, time: int) -> None:
    """Start the first waiting job of a type, without a cap. A standby job is always there."""
    words = floor.floor
    row = floor.tallies[kind, w.HEAD] if 0 <= kind < floor.tallies.shape[0] else -1
    if row < 0 or floor.rows[row, w.WIDTH] > words[w.FREE]:
        words[w.WRONG] = w.NOT_STARTED
        return
    tally = floor.tallies[kind]
    width = floor.rows[row, w.WIDTH]
    tally[w.HEAD] = floor.rows[row, w.LINK]
    if tally[w.STANDBY] == 0:
        tally[w.WAITING] -= 1
        tally[w.WAITING_NODES] -= width
        words[w.QUEUED] -= 1
        floor.marks[row, w.SERIAL] = row
    else:
        words[w.SPARE] = tally[w.HEAD]
        floor.marks[row, w.SERIAL] = words[w.STANDBYS]
        floor.marks[row, w.GOT_ON] = floor.marks[row, w.TAKEN_J] = 0.0
        words[w.STANDBYS] += 1
    words[w.FREE] -= width
    floor.moves[w.STARTED, words[w.STARTS]] = row
    words[w.STARTS] += 1
    _enter(floor, kind, row, floor.marks[row, w.RUN], time)


@kernel
def hold(floor: Floor, kind: int, ratio: float) -> None:
    """Give all jobs of a type a cap: 0 is the lowest, and 1 is none."""
    if not 0 <= kind < floor.kinds.shape[0]:
        floor.floor[w.WRONG] = w.NOT_CAPPED
        return
    floor.kinds[kind, w.WANTED] = min(1.0, max(0.0, ratio))


@kernel
def wake(floor: Floor, at: int, time: int) -> None:
    """Have a suspended job go on: the one at this place of `paused`, where the last one is then."""
    words = floor.floor
    if not (0 <= at < words[w.PAUSED] and words[w.WAKES] < floor.moves.shape[1]):
        words[w.WRONG] = w.NOT_WOKEN
        return
    row = floor.paused[at]
    kind, width, mark = floor.rows[row, w.OF], floor.rows[row, w.WIDTH], floor.marks[row]
    words[w.PAUSED] -= 1
    floor.paused[at] = floor.paused[words[w.PAUSED]]
    floor.tallies[kind, w.HALTED] -= 1
    floor.tallies[kind, w.HALTED_NODES] -= width
    floor.moves[w.WOKEN, words[w.WAKES]] = row
    words[w.WAKES] += 1
    mark[w.TAKEN_J] += width * floor.sums[w.IDLE_W] * ((time - mark[w.BEGAN]) * SECOND)
    _enter(floor, kind, row, mark[w.LEFT], time)


@kernel
def halt(floor: Floor, row: int, time: int) -> None:
    """Suspend a running job."""
    if not _runs(floor, row) or floor.floor[w.HALTS] >= floor.moves.shape[1]:
        floor.floor[w.WRONG] = w.NOT_HALTED
        return
    words, kind, mark = floor.floor, floor.rows[row, w.OF], floor.marks[row]
    clock = floor.kinds[kind, w.CLOCK]
    _leave(floor, kind, row)
    mark[w.LEFT] = max(0.0, mark[w.FINISH] - clock)
    _count(floor, kind, row, time)
    mark[w.BEGAN] = time
    floor.tallies[kind, w.HALTED] += 1
    floor.tallies[kind, w.HALTED_NODES] += floor.rows[row, w.WIDTH]
    floor.paused[words[w.PAUSED]] = row
    words[w.PAUSED] += 1
    floor.moves[w.STOPPED, words[w.HALTS]] = row
    words[w.HALTS] += 1
    if floor.tallies[kind, w.STANDBY] == 0:
        _score(floor, kind, row, clock, -1.0)
