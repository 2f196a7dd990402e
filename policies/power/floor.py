"""The floor: what waits and runs, by type, and what a policy that regulates does with it.

Jobs of a type draw the same watts per node under the same cap, and get on as fast. So a cap is
given to a type, and a job that waits or runs is counted with those of its type: a policy that
regulates many thousands of nodes looks at a handful of rows. It starts jobs with `take`, has
suspended ones go on with `wake`, suspends others with `halt`, and gives types caps with `hold`
(`acts`); the machine does the rest.

Times are ticks of the run: microseconds where only jobs are simulated, picoseconds where packets
are. Energies are right of the former; of the latter nodes have meters.

A **row** is a job: those of the trace come first, in their order, so that the smaller of two rows
came first; behind them are as many as there can be standby jobs at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pdes.jit import kernel, record
from pdes.words import Row
from policies.views import Moment

KIND = Row("State.kinds")
MOST_W = KIND.word("W", "what a node of a job of this type draws without a cap", hashed=True)
LOW_W = KIND.word("W", "what it draws at the lowest cap", hashed=True)
SLOWDOWN = KIND.word("1", "how many times as long a job takes there", hashed=True)
THRESHOLD = KIND.word("1", "the degradation that its jobs should stay below; infinity: any",
                 hashed=True)  # fmt: skip
WEIGHT = KIND.word("1", "its weight in the bid for this hour", hashed=True)
WANTED = KIND.word("1", "the cap that the policy wants: 0, the lowest, to 1, none", hashed=True)
RATIO = KIND.word("1", "the cap in force, likewise", hashed=True)
WATTS = KIND.word("W", "what a node of a running job draws now", hashed=True)
PACE = KIND.word("1", "the ticks that such a job takes for a tick of work", hashed=True)
CLOCK = KIND.word("tick", "the work that a job would have done that had run from the beginning",
                 hashed=True)  # fmt: skip
NODE_J = KIND.word("J", "the energy that a node of it would have taken", hashed=True)
JOULES = KIND.word("J", "the energy of all jobs of this type, so far", hashed=True)
SHARE = KIND.word("1", "room to work in: its share of the nodes, or how late its jobs are",
                 hashed=True)  # fmt: skip
SCORE = KIND.word("1", "the sum of its jobs' degradations, at time 0 and clock 0 (`quality`)",
                 hashed=True)  # fmt: skip
PER_TIME = KIND.word("1/tick", "by how much that grows per tick", hashed=True)
PER_WORK = KIND.word("1/tick", "by how much it falls per tick of the clock", hashed=True)
WORKED = KIND.word("tick", "node time that its jobs computed, but for what caps added, as measured")
WAITED = KIND.word("tick", "node time in which they waited for the network, likewise")
BEFORE = KIND.word("1", "the cap that was in force before the last decision, where packets are")

TALLY = Row("State.tallies")
WAITING = TALLY.word("1", "its jobs that wait")
WAITING_NODES = TALLY.word("1", "the nodes that these ask for")
RUNNING = TALLY.word("1", "its jobs that run and are not suspended")
NODES = TALLY.word("1", "the nodes on which these run")
HALTED = TALLY.word("1", "its jobs that are suspended")
HALTED_NODES = TALLY.word("1", "the nodes that these hold")
HEAD = TALLY.word("1", "the row of the first that waits")
TAIL = TALLY.word("1", "the row of the last that waits")
HEAP = TALLY.word("1", "where in `tops` the heap of its running jobs begins")
ENDS = TALLY.word("tick", "when the first of them ends, if nothing comes between; NEVER: none")
SINCE = TALLY.word("tick", "until when its clock goes")
STANDBY = TALLY.word("1", "whether there is always another job of it, which may wait for ever")

OF_ROW = Row("State.rows")
OF = OF_ROW.word("1", "the type of a job")
WIDTH = OF_ROW.word("1", "the nodes that it needs")
SUBMIT = OF_ROW.word("tick", "when it joined the queue")
LINK = OF_ROW.word("1", "the row of the next that waits of its type")
SPOT = OF_ROW.word("1", "where in its heap, or among the suspended jobs, it is")

MARK = Row("State.progress")
RUN = MARK.word("tick", "the time that it takes without a cap")
FINISH = MARK.word("tick", "what the clock of its type shows when it is done")
LEFT = MARK.word("tick", "what is left of its work while it is suspended; below 0: it is not")
BEGAN_J = MARK.word("J", "NODE_J of its type when it began or went on")
BEGAN = MARK.word("tick", "when that was, or when it was suspended")
GOT_ON = MARK.word("tick", "for how long it had got on before that")
TAKEN_J = MARK.word("J", "the energy that it had taken before that")
SERIAL = MARK.word("1", "of a standby job: how many had started before it; of another its row")

WORDS = Row("State.floor")
FREE = WORDS.word("1", "idle nodes")
QUEUED = WORDS.word("1", "jobs that wait, but for standby jobs")
PAUSED = WORDS.word("1", "suspended jobs")
STARTS = WORDS.word("1", "jobs that start at this instant")
WAKES = WORDS.word("1", "jobs that go on at this instant")
HALTS = WORDS.word("1", "jobs that are suspended at this instant")
JOBS = WORDS.word("1", "the jobs of the trace: rows behind them are standby jobs")
STANDBY_KIND = WORDS.word("1", "the type of standby jobs, -1: there are none")
STANDBYS = WORDS.word("1", "standby jobs that have started")
STANDBYS_ENDED = WORDS.word("1", "standby jobs that have ended")
SPARE = WORDS.word("1", "the first of the rows that no standby job has, linked as a queue is")
WRONG = WORDS.word("1", "what the policy did that cannot be done: a number of MISDEEDS; 0: nothing")

SUM = Row("State.sums")
FULL_W = SUM.word("W", "what the machine would draw if nobody had a cap", hashed=True)
FLOOR_W = SUM.word("W", "what it would draw if all had the lowest cap", hashed=True)
IDLE_W = SUM.word("W", "what an idle node draws", hashed=True)
LAST_STANDBY_J = SUM.word("J", "the energy of standby jobs at the last measurement", hashed=True)
ALL = SUM.word("1", "the nodes of the machine", hashed=True)
WAITS_W = SUM.word("W", "what a node draws whose job only waits; infinity: as if it computed")

SHORTEST = 1e6
"""A degradation is a part of a job's run time, of so many ticks at least (a second of a job run, a
microsecond of a packet run): a job that ended at once would be late after any wait."""

NOT_STARTED, NOT_CAPPED, NOT_WOKEN, NOT_HALTED = range(1, 5)
MISDEEDS = {
    NOT_STARTED: "it started a job that does not wait, or for which no nodes are idle",
    NOT_CAPPED: "it gave a cap to a type that there is not",
    NOT_WOKEN: "it had a job go on that is not suspended",
    NOT_HALTED: "it suspended a job that does not run",
}
"""What a policy may do that cannot be done: nothing happens, and the run ends."""

STARTED, WOKEN, STOPPED = range(3)
"""The rows of `moves`: who starts, goes on, and is suspended at this instant. A job may be in more
than one of them."""


@record
class Floor(NamedTuple):
    """The arrays; a policy changes them by the kernels below alone."""

    floor: Any
    """[WORDS]"""
    sums: Any
    """[SUM]"""
    kinds: Any
    """[type, KIND], float64"""
    tallies: Any
    """[type, TALLY]"""
    rows: Any
    """[row, OF_ROW]"""
    marks: Any
    """[row, MARK], float64"""
    tops: Any
    """The heaps of running jobs, type by type: the first that ends at the top."""
    paused: Any
    """The rows of the suspended jobs, in no order."""
    moves: Any
    """[3, job]: rows, in order; as many as can hold nodes."""


# -- what there is


@kernel
def first_waiting(floor: Floor) -> int:
    """Returns the type of the job that has waited for longest, standby jobs aside; -1: none."""
    found, least = -1, np.int64(1 << 62)
    for kind in range(floor.tallies.shape[0]):
        tally = floor.tallies[kind]
        if tally[WAITING] > 0 and tally[STANDBY] == 0 and tally[HEAD] < least:
            found, least = kind, tally[HEAD]
    return found


@kernel
def head_width(floor: Floor, kind: int) -> int:
    """Returns how many nodes the first waiting job of a type needs."""
    return floor.rows[floor.tallies[kind, HEAD], WIDTH]  # type: ignore[no-any-return]


@kernel
def more_w(floor: Floor, kind: int, width: int) -> float:
    """Returns by how much a job of a type adds to the power when it starts without a cap."""
    return width * (floor.kinds[kind, MOST_W] - floor.sums[IDLE_W])  # type: ignore[no-any-return]


@kernel
def drawn_w(floor: Floor) -> float:
    """Returns what the machine draws now, with the caps that are in force."""
    total = floor.floor[FREE] * floor.sums[IDLE_W]
    for kind in range(floor.tallies.shape[0]):
        tally = floor.tallies[kind]
        total += tally[NODES] * floor.kinds[kind, WATTS]
        total += tally[HALTED_NODES] * floor.sums[IDLE_W]
    return total  # type: ignore[no-any-return]


@kernel
def late_in_all(floor: Floor, kind: int, time: int) -> float:
    """Returns how far the jobs of a type are that wait, run or are suspended, in sum: their
    degradations so far, if they went on without a cap, as parts of the threshold."""
    of = floor.kinds[kind]
    now = of[CLOCK] + (time - floor.tallies[kind, SINCE]) / of[PACE]
    total = of[SCORE] + time * of[PER_TIME] - now * of[PER_WORK]
    return total / of[THRESHOLD]  # type: ignore[no-any-return]


@kernel
def there(floor: Floor, kind: int) -> int:
    """Returns how many jobs of a type wait, run or are suspended that are to be in time: 0 of
    standby jobs, and of a type without a threshold."""
    tally = floor.tallies[kind]
    if tally[STANDBY] != 0 or not floor.kinds[kind, THRESHOLD] < np.inf:
        return 0
    return tally[WAITING] + tally[RUNNING] + tally[HALTED]  # type: ignore[no-any-return]


@kernel
def quality(floor: Floor, time: int) -> float:
    """Returns the mean of how far jobs are (`late_in_all`), over all that have a threshold."""
    total, count = 0.0, 0
    for kind in range(floor.tallies.shape[0]):
        here = there(floor, kind)
        if here > 0:
            total += late_in_all(floor, kind, time)
            count += here
    return total / count if count > 0 else 0.0


@kernel
def work_left(floor: Floor, row: int, time: int) -> float:
    """Returns how long a running or suspended job would go on without a cap, in ticks."""
    kind, mark = floor.rows[row, OF], floor.marks[row]
    if mark[LEFT] >= 0.0:
        return mark[LEFT]  # type: ignore[no-any-return]
    of = floor.kinds[kind]
    clock = of[CLOCK] + (time - floor.tallies[kind, SINCE]) / of[PACE]
    return max(0.0, mark[FINISH] - clock)  # type: ignore[no-any-return]


@kernel
def lateness(floor: Floor, row: int, time: int) -> float:
    """Returns the degradation of a running or suspended job, as a part of its threshold; 0 where it
    has none, -1 for a standby job."""
    kind, mark = floor.rows[row, OF], floor.marks[row]
    if floor.tallies[kind, STANDBY] != 0:
        return -1.0
    of = floor.kinds[kind]
    if not of[THRESHOLD] < np.inf:
        return 0.0
    age = time - floor.rows[row, SUBMIT]
    longer = age + work_left(floor, row, time) - mark[RUN]
    return longer / max(mark[RUN], SHORTEST) / of[THRESHOLD]  # type: ignore[no-any-return]


Regulate = Callable[[Moment, Floor, Any], None]
"""A kernel of (now, floor, given), as `PowerPolicy.regulate` describes it."""


def nobody(now: Moment, floor: Floor, given: Any) -> None:
    """Stands for the kernel of a policy, which the machine puts in its place."""
    raise AssertionError("asked to regulate without a policy")
