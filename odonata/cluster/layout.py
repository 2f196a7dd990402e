"""Where everything is: the kinds of events, the words of every array, and the state itself.

A job is **to come**, **waiting**, **running**, **finished** or **killed**
(`odonata.jobs.schedule`); one that was preempted is waiting again. All that happens at one instant
is known before jobs are chosen: first jobs end, then jobs arrive, then there is one **pass** of the
scheduler.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pdes.events import key_of
from pdes.jit import kernel, record
from policies.scheduling.desk import CTL_WORDS as DESK_WORDS
from policies.scheduling.desk import JOB_WORDS as DESK_JOB_WORDS
from policies.scheduling.desk import Desk

KINDS = ("drain", "end", "sleep", "arrive", "measure", "cap", "launch", "pass")
DRAIN, END, SLEEP, ARRIVE, MEASURE, CAP, LAUNCH, PASS = range(len(KINDS))
"""The kinds of events, in the order in which they are handled at one instant: the notes are full;
a job ends (its row, and the number of this prediction of its end); idle nodes go to sleep; the next
job arrives; power is measured; the machine's cap changes (to which value); more of the chosen jobs
start; the scheduler chooses."""

SCHEDULER = 0
"""The agent that has all of it."""

(RUN, STATUS, START, OVER, SEGMENT, NODE, PICKED, SHORT, COUNTED, READY, BILLED, FORCED, PAUSED,
 MOLD) = range(DESK_JOB_WORDS, DESK_JOB_WORDS + 14)  # fmt: skip
"""Words of a job behind those of a desk: its run time when nothing slows it down; its state; when
it first started; when it was over; how often its end has been predicted; the first of its nodes, if
it is placed; the pass that picked it; whether its segment ends before its work does, because it is
killed then. Then, of the segment that it is in: until when its progress is counted; when all of its
nodes are awake; until when its energy is counted; whether it may break the cap; and whether a power
policy has suspended it. Last, the place of the choice that it runs in among those of its
application, -1 if none was chosen for it."""
JOB_WORDS = MOLD + 1

NEXT, PASSING, LAUNCHED, PASSES, NOTES, ENDED, DONE, LAST_END, KILLS, PREEMPTS = range(
    DESK_WORDS, DESK_WORDS + 10
)
"""Words of the control array behind those of a desk: the job that arrives next; whether a pass is
due at this instant; how many of the chosen have started; passes so far; notes that nobody has
collected; jobs that ended and of which no policy has learned; jobs that are over; when the last of
them ended; whether jobs are killed at their requested time; whether the discipline preempts."""

(POWERED, METERED, INTERVAL, MEASURED, READ, ASLEEP, BOTTOM, HEAPS, SLEEP_AFTER, WAKE_TIME,
 STRETCHES, BY_INTERVAL, CONTROLS, FORCED_NOW, FORCED_SEEN, LOWERED, READINGS, NOISE_SEED, ARRIVED,
 DEPARTED, WAKES, ASKS, AGAIN, AGAIN_AT, STILL, CAPS_LEFT, UNCAPPED) = range(
    PREEMPTS + 1, PREEMPTS + 28
)  # fmt: skip
"""Words about power: whether it is simulated; until when the energy of idle nodes is counted; the
interval between measurements; when power was last measured; whether that was at this instant, and
no policy has heard of it; nodes that are asleep; where in `idle` the nodes begin that are idle and
awake, and how many heaps of them there are; after how long an idle node goes to sleep (below 0:
never); how long it takes to wake up; whether limits stretch with a job's pace; whether passes are
only at measurements; whether the policy keeps to the cap; running jobs that may break it; whether
one of these has run in this interval; whether the cap was lowered under running jobs; readings that
nobody has collected; the seed of what jobs demand; how many jobs have arrived and ended since
caps were last asked for; how many nodes have been woken; whether measurements and new caps make a
pass; how often a policy has asked to be asked again, and when it wants that; at how many
measurements in a row no job got on and none was to come; caps of the machine that are to come; and
whether there was none for some time of this interval."""
CTL_WORDS = UNCAPPED + 1
NEVER_ASKS, AT_READINGS, AT_CAPS = range(3)
"""What `ASKS` says: neither a measurement nor a new cap of the machine makes a pass; both do; or
only a new cap does."""
PATIENCE = 100_000
"""Measurements in a row, 9 months of them at 4 minutes, at which no job gets on and none is to
come, after which nothing is measured any more: the policy will never start what waits."""

(DRAWS_W, JOULES, CAP_W, MEAN_W, LEVEL_W, SPREAD, CHANGE_AT, CHANGE_TO, BOOT_W, READ_J, READ_W,
 SEGMENT_J, FACTOR, WAKING) = range(14)  # fmt: skip
"""Words of a row of `State.energy`, one per job: what all of its nodes draw now; the energy that it
has taken; its cap per node; what a node of it draws on average when it has no cap; what one would
draw now; by how much that fluctuates, and after which part of its work it changes, and by which
factor (`odonata.traces.demand`); what all of its nodes draw while some wake up; its energy
when it was last measured, and the watts per node of that measurement; its energy when its segment
began; the factor of its least efficient node; and how many of its nodes had to wake up."""
ENERGY_WORDS = 14

(MACHINE_CAP_W, IDLE_W, BUSY_W, SLEEP_W, WAKE_W, SPEED, LEAST_W, SLOWDOWN, PEAK_W, IDLE_J, SLEEP_J,
 JOBS_J, ALLOWED_J, LAST_J, LAST_ALLOWED_J, LAST_W) = range(16)  # fmt: skip
"""Words of `State.meter`: the cap of the machine; the watts of a node that is idle, busy (below 0:
as its job demands), asleep and waking; the service rate of all nodes; the lowest cap of a node and
how much longer a job takes at it; what no node exceeds. Then energies since the beginning: of idle
nodes, of sleeping ones, and of jobs; what the cap allowed; and what was drawn and allowed at the
last measurement, and the watts of that."""
METER_WORDS = 16

STARTED, CAPPED, MACHINE_CAPPED, SPEEDED = 0, 4, 5, 6
"""What a note is about: a start, or FINISHES, KILLS or SUSPENDS of `odonata.jobs.schedule`; or a
job's cap, the machine's, or the service rate."""
NOTE_WORDS = 7
"""Words of a note: the time, the job, what happened; as the bits of floats, the energy of the
segment that has ended, or the new cap or rate; the energies of idle and sleeping nodes; and by how
much caps have stretched the job so far."""
GOT_ON, UNSTRETCHED, STRETCH = range(3)
"""Words of a row of `State.stretched`: for how many ticks the job has got on, awake and not
suspended; in how many it would have got as far without a cap; and how many times as long it takes
under the cap that it has now."""
STRETCHED_WORDS = 3
READING_WORDS = 4
"""Words of a reading: the time, the watts that the machine drew on average since the one before and
those that it was allowed, both as the bits of a float, and a cause of `odonata.jobs.metering`."""
SECOND = 1e-6
"""A tick, in s."""

FACTOR_OF, NODE_W, NODE_BOOT_W, NODE_J, SLEEPS = range(5)
"""Words of a row of `State.node`: its factor of efficiency; what it draws now, and while its job
waits for nodes that wake up; its energy; and whether it is asleep (1), or was woken for its job
(2)."""
NODE_WORDS = 5

NOBODYS = 1 << 62
"""The owner of a node that no job gets, as only the first of the machine's nodes are used."""

AT_ONCE = 32
"""Jobs that one event starts at most; the others of a pass follow at the same instant."""
FANOUT = AT_ONCE + 3
NOTES_KEPT = 1 << 14
"""Notes after which they are collected, whatever else happens."""


@record
class State(NamedTuple):
    """The arrays of a desk, then those of the model."""

    ctl: Any
    rule: Any
    jobs: Any
    queue: Any
    running: Any
    whole: Any
    real: Any
    chosen: Any
    heap: Any
    keys: Any
    times: Any
    room: Any
    served: Any
    start_pace: Any
    """[1], float64: the pace of `Desk`."""
    heads: Any
    blocks: Any
    held: Any
    marks: Any
    holes: Any
    work: Any
    """[job], float64: what is left of its run time, when nothing slows it down."""
    pace: Any
    """[job], float64: the ticks that it takes for a tick of work."""
    slowdown: Any
    """[job], float64: how many times as long as its run time it takes where it is placed."""
    owner: Any
    """[node]: its job, -1, or NOBODYS; empty where nodes are only counted."""
    after: Any
    """[node]: the next node of the same job, in the order in which it was given them, or -1."""
    notes: Any
    """[note, NOTE_WORDS]"""
    ended: Any
    """Jobs of which no policy has learned."""
    memory: Any
    """What policies that are written in Python remember."""
    # power: all of these are empty where it is not simulated, but for `meter`
    energy: Any
    """[job, ENERGY_WORDS]"""
    meter: Any
    """[METER_WORDS]"""
    caps: Any
    """The machine's caps, one after the other."""
    idle: Any
    """[heap, 2]: since when nodes have been idle, and how many, as a ring; the longest first."""
    node: Any
    """[node, NODE_WORDS], where jobs are placed."""
    node_since: Any
    """[node, 2]: until when its energy is counted, and since when it has been idle."""
    readings: Any
    """[reading, READING_WORDS]"""
    stretched: Any
    """[job, STRETCHED_WORDS]: what is told of caps, and nothing depends on."""


@kernel
def desk_of(state: State) -> Desk:
    """Returns the part of the state that a discipline works on."""
    return Desk(
        state.ctl, state.rule, state.jobs, state.queue, state.running, state.whole, state.real,
        state.chosen, state.heap, state.keys, state.times, state.room, state.served,
        state.start_pace, state.heads, state.blocks, state.held, state.marks, state.holes,
    )  # fmt: skip


@kernel
def key(kind: int) -> Any:
    return key_of(kind, SCHEDULER, 0)
