"""Where everything is: the kinds of events, the words of every array, and the state itself.

A job is **to come**, **waiting**, **running**, **finished** or **killed**
(`odonata.jobs.schedule`); one that was preempted is waiting again. All that happens at one instant
is known before jobs are chosen: first jobs end, then jobs arrive, then there is one **pass** of the
scheduler.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from odonata.jobs.trading import AVERAGE_W as AVERAGE_W
from odonata.jobs.trading import LAST_TARGET_J as LAST_TARGET_J
from odonata.jobs.trading import OFF_J as OFF_J
from odonata.jobs.trading import RESERVE_W as RESERVE_W
from odonata.jobs.trading import SIGNAL_NOW as SIGNAL_NOW
from odonata.jobs.trading import TARGET_J as TARGET_J
from odonata.jobs.trading import TRACKED_S as TRACKED_S
from odonata.jobs.trading import UNTIL as UNTIL
from pdes.clock import TICKS
from pdes.events import key_of
from pdes.jit import kernel, record
from pdes.words import Row
from policies.power.floor import Floor
from policies.scheduling import desk as d
from policies.scheduling.desk import Desk

KINDS = ("drain", "end", "sleep", "arrive", "measure", "cap", "bid", "signal", "launch", "pass",
         "control")  # fmt: skip
(DRAIN,    # the notes are full
 END,      # the first of the running jobs end
 SLEEP,    # idle nodes go to sleep
 ARRIVE,   # the next job arrives
 MEASURE,  # power is measured
 CAP,      # the machine's cap changes; the second word is the number of the new one
 BID,      # an hour of the market begins, and what to offer in it is bid
 SIGNAL,   # the grid's signal changes; the second word is the number of the new value
 LAUNCH,   # more of the chosen jobs start
 PASS,     # the scheduler chooses
 CONTROL,  # the power policy is asked for caps, where there was no pass; the last word is the
           # number of a request to be asked again, if it comes from one: of the power policy, or of
           # the scheduling policy if the second word is 1
) = range(len(KINDS))  # fmt: skip
"""The kinds of events, in the order in which they are handled at one instant."""

SCHEDULER = 0
"""The agent that has all of it."""

# -- a job: the words of a desk, and these

NODES, SUBMIT, REQUESTED, USER = d.NODES, d.SUBMIT, d.REQUESTED, d.USER
NUMBER, SERVED, SINCE, DUE = d.NUMBER, d.SERVED, d.SINCE, d.DUE
JOB = Row("State.jobs", after=d.JOB)
RUN = JOB.word("us", "its run time when nothing slows it down")
STATUS = JOB.word("1", "its state, of odonata.jobs.schedule", hashed=True)
START = JOB.word("us", "when it first started, or -1", hashed=True)
OVER = JOB.word("us", "when it was over, or -1", hashed=True)
END_AT = JOB.word("us", "when it will end, if nothing comes between (odonata.cluster.ends)")
HEAP_AT = JOB.word("1", "its place in the heap of ends, -1 if it is not in it")
STAMP = JOB.word("1", "by which the running jobs are ordered that are due together")
NODE = JOB.word("1", "the first of its nodes, if it is placed, else -1")
PICKED = JOB.word("1", "the pass that picked it")
SHORT = JOB.word("1", "whether its segment ends before its work does, as it is killed then")
COUNTED = JOB.word("us", "until when the progress of its segment is counted")
READY = JOB.word("us", "when all of the segment's nodes are awake")
BILLED = JOB.word("us", "until when the energy of its segment is counted")
FORCED = JOB.word("1", "whether it may break the cap")
PAUSED = JOB.word("1", "whether a power policy has suspended it")
MOLD = JOB.word("1", "the place of the choice that it runs in, -1 if none was chosen for it")

# -- the control array: the words of a desk, and these

TIME, FREE, FIRST, LAST, RUNNING = d.TIME, d.FREE, d.FIRST, d.LAST, d.RUNNING
ALL, CHOSEN, REPACED = d.ALL, d.CHOSEN, d.REPACED
CTL = Row("State.ctl", after=d.CTL)
NEXT = CTL.word("1", "the job that arrives next")
COMPILED = CTL.word("1", "whether passes are made without Python")
PASSING = CTL.word("1", "whether a pass is due at this instant")
CONTROLLING = CTL.word("1", "whether the power policy is to be asked for caps at this instant")
HAPPENED = CTL.word("1", "what has happened since either, as bits of odonata.jobs.machine")
LAUNCHED = CTL.word("1", "how many of the chosen jobs have started")
PASSES = CTL.word("1", "passes so far")
NOTES = CTL.word("1", "notes that nobody has collected")
ENDED = CTL.word("1", "jobs that ended and of which no policy has learned")
DONE = CTL.word("1", "jobs that are over")
LAST_END = CTL.word("us", "when the last of them ended")
KILLS = CTL.word("1", "whether jobs are killed at their requested time")
PREEMPTS = CTL.word("1", "whether the discipline preempts")
ENDING = CTL.word("1", "jobs in the heap of ends")
ALARMS = CTL.word("1", "END events that are in the queue (odonata.cluster.ends)")
STAMPS = CTL.word("1", "how many stamps running jobs were given")
POWERED = CTL.word("1", "whether power is simulated")
METERED = CTL.word("us", "until when the energy of idle nodes is counted")
INTERVAL = CTL.word("us", "between two measurements")
MEASURED = CTL.word("us", "when power was last measured")
ASLEEP = CTL.word("1", "nodes that are asleep")
BOTTOM = CTL.word("1", "where in `idle` the nodes begin that are idle and awake")
HEAPS = CTL.word("1", "how many heaps of them there are")
SLEEP_AFTER = CTL.word("us", "after how long an idle node goes to sleep; below 0: never")
WAKE_TIME = CTL.word("us", "how long it takes to wake up")
STRETCHES = CTL.word("1", "whether limits stretch with a job's pace")
CONTROLS = CTL.word("1", "whether the policy means to keep to the cap")
FORCED_NOW = CTL.word("1", "running jobs that may break it")
FORCED_SEEN = CTL.word("1", "whether one of these has run in this interval")
LOWERED = CTL.word("1", "whether the cap was lowered below what jobs draw, and they still do")
READINGS = CTL.word("1", "readings that nobody has collected")
NOISE_SEED = CTL.word("1", "the seed of what jobs demand")
ARRIVED = CTL.word("1", "jobs that have arrived since caps were last asked for")
DEPARTED = CTL.word("1", "jobs that have ended since then")
WAKES = CTL.word("1", "nodes that have been woken")
PASS_AT = CTL.word("1", "what makes a pass, as bits of odonata.jobs.machine")
CONTROL_AT = CTL.word("1", "what has the power policy asked, likewise")
AGAIN = CTL.word("1", "how often a policy has asked to be asked again")
AGAIN_AT = CTL.word("us", "when it wants that")
STILL = CTL.word("1", "at how many measurements in a row nothing got on (odonata.jobs.machine)")
CAPS_LEFT = CTL.word("1", "caps of the machine that are to come")
UNCAPPED = CTL.word("1", "whether there was no cap for some time of this interval")
RUN_UNTIL = CTL.word("us", "when the run ends, in a market; 0: when all jobs are over")
PERIOD = CTL.word("us", "after how long the signal comes again from its beginning; 0: never")
RETRY = CTL.word("1", "how often a scheduling policy has asked to be asked again")
RETRY_AT = CTL.word("us", "when it wants that")

# -- power: a job, the machine, a node

ENERGY = Row("State.energy")
DRAWS_W = ENERGY.word("W", "what all of its nodes draw now")
JOULES = ENERGY.word("J", "the energy that it has taken")
CAP_W = ENERGY.word("W", "its cap per node")
MEAN_W = ENERGY.word("W", "what a node of it draws on average when it has no cap")
LEVEL_W = ENERGY.word("W", "what a node of it would draw now without a cap")
SPREAD = ENERGY.word("1", "by how much that fluctuates (odonata.traces.demand)")
CHANGE_AT = ENERGY.word("1", "after which part of its work that changes")
CHANGE_TO = ENERGY.word("1", "by which factor it changes then")
BOOT_W = ENERGY.word("W", "what all of its nodes draw while some wake up")
READ_J = ENERGY.word("J", "its energy when it was last measured")
READ_W = ENERGY.word("W", "per node, of that measurement")
SEGMENT_J = ENERGY.word("J", "its energy when its segment began")
FACTOR = ENERGY.word("1", "the factor of its least efficient node")
WAKING = ENERGY.word("1", "how many of its nodes had to wake up")

METER = Row("State.meter")
MACHINE_CAP_W = METER.word("W", "the cap of the machine")
IDLE_W = METER.word("W", "of an idle node")
BUSY_W = METER.word("W", "of a busy node; below 0: as its job demands")
SLEEP_W = METER.word("W", "of a sleeping node")
WAKE_W = METER.word("W", "of a waking node")
SPEED = METER.word("1", "the service rate of the machine")
LEAST_W = METER.word("W", "the lowest cap of a node")
SLOWDOWN = METER.word("1", "how many times as long a job takes at it")
PEAK_W = METER.word("W", "what no node exceeds")
IDLE_J = METER.word("J", "of idle nodes since the beginning")
SLEEP_J = METER.word("J", "of sleeping nodes")
JOBS_J = METER.word("J", "of jobs")
ALLOWED_J = METER.word("J", "what the cap allowed")
LAST_J = METER.word("J", "what had been drawn at the last measurement")
LAST_ALLOWED_J = METER.word("J", "what had been allowed then")
LAST_W = METER.word("W", "of the last measurement")
LIMIT = Row("State.limits")
LOW_W = LIMIT.word("W", "what a node of a job draws at the lowest cap")
LONGER = LIMIT.word("1", "how many times as long the job takes there")

OF_NODE = Row("State.node")
FACTOR_OF = OF_NODE.word("1", "its factor of efficiency")
NODE_W = OF_NODE.word("W", "what it draws now")
NODE_BOOT_W = OF_NODE.word("W", "what it draws while its job waits for nodes that wake up")
NODE_J = OF_NODE.word("J", "its energy")
SLEEPS = OF_NODE.word("1", "whether it is asleep (1), or was woken for its job (2)")

# -- what is told of all that, and nothing depends on

STARTED, CAPPED, MACHINE_CAPPED, SPEEDED, TYPE_CAPPED = 0, 4, 5, 6, 7
"""What a note is about: a start, or FINISHES, KILLS or SUSPENDS of `odonata.jobs.schedule`; or a
job's cap, the machine's, the service rate, or a type's cap."""
NOTE_WORDS = 7
"""Words of a note: the time, the job, what happened; as the bits of floats, the energy of the
segment that has ended, or the new cap or rate; the energies of idle and sleeping nodes; and by how
much caps have stretched the job so far."""
STRETCHED = Row("State.stretched")
GOT_ON = STRETCHED.word("us", "for how long the job has got on, awake and not suspended")
UNSTRETCHED = STRETCHED.word("us", "in how long it would have got as far without a cap")
STRETCH = STRETCHED.word("1", "how many times as long it takes under the cap that it has now")
READING_WORDS = 6
"""Words of a reading: the time; as the bits of floats, the watts that the machine drew on average
since the one before, and those that it was allowed; a cause of `odonata.jobs.metering`; and, as the
bits of floats, the watts that its target asked for, and those of standby jobs."""
SECOND = 1e-6
"""A tick, in s."""
TICK_PS = TICKS["us"]
USUAL_INTERVAL_PS = 240 * 10**12
"""Power is measured every 4 minutes where nobody says how often: so it is on Mira."""

NOBODYS = 1 << 62
"""The owner of a node that no job gets, as only the first of the machine's nodes are used."""

AT_ONCE = 32
"""Jobs that one event starts at most; the others of a pass follow at the same instant."""
FANOUT = AT_ONCE + 3
ALARMS_KEPT = 256
"""The most END events of which the times are kept (`odonata.cluster.ends`)."""
NOTES_KEPT = 1 << 14
"""Notes after which they are collected, whatever else happens."""
NOTES_PER_JOB = 12
"""The most notes about a job that one instant makes beyond these: its end; in each of two passes
(`Caps.schedule`) that it is suspended, starts and has a cap; and, each time that caps are asked
for, a cap and that it is suspended or goes on."""


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
    ending: Any
    """[place, 2]: a heap of when running jobs will end, and of their rows; the first at its top."""
    alarms: Any
    """The times of the END events that are in the queue, the earliest last."""
    memory: Any
    """What policies that are written in Python remember."""
    # power: all of these are empty where it is not simulated, but for `meter`
    energy: Any
    """[job, ENERGY]"""
    meter: Any
    """[METER]"""
    market: Any
    """[MARKET], empty where there is none."""
    weights: Any
    """[application]: its weight in the bid for this hour."""
    signal: Any
    """The values of the grid's signal, one after the other."""
    signal_times: Any
    """Since when each of them holds."""
    caps: Any
    """The machine's caps, one after the other."""
    cap_times: Any
    """Since when each of them holds."""
    idle: Any
    """[heap, 2]: since when nodes have been idle, and how many, as a ring; the longest first."""
    node: Any
    """[node, OF_NODE], where jobs are placed."""
    node_since: Any
    """[node, 2]: until when its energy is counted, and since when it has been idle."""
    readings: Any
    """[reading, READING_WORDS]"""
    stretched: Any
    """[job, STRETCHED]"""
    limits: Any
    """[job, LIMIT], where jobs have types."""
    # of a policy that regulates by type (`policies.power.floor`): all of these are else empty
    floor: Any
    sums: Any
    kinds: Any
    tallies: Any
    rows: Any
    progress: Any
    tops: Any
    paused: Any
    moves: Any
    given: Any
    """The parameters of the policy."""


@kernel
def floor_of(state: State) -> Floor:
    """Returns the part of the state that a policy which regulates works on."""
    return Floor(state.floor, state.sums, state.kinds, state.tallies, state.rows, state.progress,
                 state.tops, state.paused, state.moves)  # fmt: skip


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
