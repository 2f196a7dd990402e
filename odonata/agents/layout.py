"""Where everything is: the kinds of events, the words of every array, and the state itself.

An **agent** is a router, a node or the scheduler. A group's agents are its routers, then its nodes;
group g has the agents (g + offset) << AGENT_BITS and following, where `offset` is 1 if there is a
scheduler, which then has the numbers before group 0 to itself, and else 0. `where` turns the key of
an event into a group and an index in it; nothing else does that sum.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from odonata.agents.packet import PARCEL
from pdes.events import agent_of
from pdes.jit import kernel, record
from pdes.words import Row

# -- events

KINDS = ("credit", "switch", "arrive", "reach", "deliver", "place", "start", "generate", "step",
         "meters off", "cap", "meter", "sample", "ended", "report", "tell", "decide")  # fmt: skip
(CREDIT_DUE,  # credit returns to a channel
 SWITCH,      # the crossbar of a router arbitrates
 ARRIVE,      # a packet arrives at a router
 REACH,       # a packet reaches a node that is half duplex
 DELIVER,     # a packet is delivered to a node
 PLACE,       # every rank learns where some tasks of a job are
 START,       # a task starts
 GENERATE,    # a node generates its next message of open-loop traffic; the port is the number of
              # the traffic
 STEP,        # a task takes its next step; the first word is PAUSED, SENT or COMPUTED
 METERS_OFF,  # every rank learns that power is no longer measured
 CAP,         # a node is given a cap
 METER,       # a node reads its meter
 SAMPLE,      # a router reads its counters and those of its nodes
 ENDED,       # the scheduler hears that a task has ended
 REPORT,      # the scheduler hears what a node has drawn
 TELL,        # the scheduler hears what a router has read
 DECIDE,      # the scheduler decides; the first word is HAPPENED, AGAIN or HOUR
) = range(len(KINDS))  # fmt: skip
"""The kinds of events, in the order in which they are handled at one instant."""
(PAUSED,    # the task's pause is over, or what it waited for has arrived
 SENT,      # the last packet of its message has left the node
 COMPUTED,  # its work is done, if this is the latest prediction of that, whose number is the second
            # word (`odonata.agents.power`)
) = range(3)  # fmt: skip
"""Values of the first word of a STEP. These are not kinds of their own, because tasks of one node
that step at one instant do so in the order of their slots, whatever the reason."""
(HAPPENED,  # a job has come or ended, power was measured, or the cap of the machine has changed
 AGAIN,     # the power policy asked for it; the second word is the number of that request to be
            # asked again
) = range(2)  # fmt: skip
HOUR = -1  # an hour of the market begins: at one instant, this is decided first
"""Values of the first word of a DECIDE."""

VC_BITS = 4
"""An event at a channel has as its port the port's number, shifted by these, plus the VC."""
WITHIN = 1
"""A node's deliveries at ports from here on come from a task of the same node: one port per slot,
because two tasks may send at one instant."""
SCHEDULER = 0
"""The agent that is the scheduler, where there is one."""

# -- the machine, and what is derived from it

SHAPE = Row("State.shape")
NODES = SHAPE.word("1", "p, the nodes of a router")
ROUTERS = SHAPE.word("1", "a, the routers of a group")
GROUPS = SHAPE.word("1", "g, the groups")
RADIX = SHAPE.word("1", "the ports of a router")
AGENT_BITS = SHAPE.word("1", "the bits of an agent's number that count within its group")
FIRST_GROUP = SHAPE.word("1", "this rank's first group")
GROUP_PORTS = SHAPE.word("1", "the port rows of a group: its routers', then its nodes'")
COPIES = SHAPE.word("1", "the cables between two groups")
BASES = SHAPE.word("1", "the first local VC of each leg, of which there are four")
LAST_GLOBAL = SHAPE.word("1", "the VC of a last global hop", at=BASES + 4)
VCS_MASK = SHAPE.word("1", "0 where all hops share one VC (and deadlock), else all bits")
VIA = SHAPE.word("1", "what a non-minimal path leads through, of VIAS")
BIAS = SHAPE.word("B", "a parameter of the routing")
OFFSET = SHAPE.word("1", "the offset of groups in agent numbers: 1 if there is a scheduler, else 0")
ARBITER = SHAPE.word("1", "which of ARBITERS")
OUT_CAPACITY = SHAPE.word("B", "of an output buffer")
LANE_COUNT = SHAPE.word("1", "how many channels the packets of a node can choose from")

VIAS = ("group", "router", "anywhere")
GROUP, ROUTER, ANYWHERE = range(3)
GATE_BITS = 8
"""An entry of `State.gates` is the router that has the cable, shifted, plus which of its cables."""

RATES = Row("State.rates")
CROSSBAR = RATES.word("2^-16 ps/B", "of a crossbar, behind those of the classes of links", at=3)
EJECTION = RATES.word("2^-16 ps/B", "of ejection")

# -- a port and its channels

PORT = Row("State.ports, line 0")
BUSY = PORT.word("ps", "until when its link is reserved", hashed=True)
USED = PORT.word("ps", "how long it has been reserved in total", hashed=True)
RATE = PORT.word("2^-16 ps/B", "how long a byte takes")
LATENCY = PORT.word("ps", "to the other end")
FAR_KEY = PORT.word("1", "the key of an arrival there")
FAR = PORT.word("1", "the row of that port, or -1 on another rank")
CAPACITY = PORT.word("B", "of each buffer there")
DRAINED = PORT.word("ps", "of a port to a node: until when the node will drain what was sent to it")

CHANNEL = Row("State.ports, lines from 1 on")
CREDIT = CHANNEL.word("B", "known to be free at the far end")
RETURNS = CHANNEL.word("1", "credits on their way, as a chain", chain="head")
SOONEST = CHANNEL.word("ps", "the earliest of their dates")
HEAD = CHANNEL.word("1", "the first blocked packet, or -1", chain="head")
STARTED = CHANNEL.word("ps", "when the last packet granted starts", hashed=True)
PACKETS = CHANNEL.word("1", "packets so far", hashed=True)
BYTES = CHANNEL.word("B", "their bytes", hashed=True)
WAIT = CHANNEL.word("ps", "how long one waited and the link was busy so far", hashed=True)

SLOW = Row("State.slow")
LAST_BLOCKED = SLOW.word("1", "the last blocked packet", chain="tail")
SINCE = SLOW.word("ps", "since when the first has been first")
MARK = SLOW.word("ps", "how long the link had been used by then")
WAITING = SLOW.word("B", "that are blocked")
WAKE = SLOW.word("ps", "when the event that serves them happens (others for this channel are "
                 "stale), or FOREVER")  # fmt: skip
STALL = SLOW.word("ps", "how long the first packet waited, without credit, and the link was free, "
                  "so far", hashed=True)  # fmt: skip
PADDING = SLOW.word("B", "by which flits were not full so far", hashed=True)

LINE = 8
"""Words of a port and of a channel: each is a cache line, and a port's channels are behind it. On
a large machine a hop costs what its cache misses cost, so there is nothing there that need not be:
the words of a channel that are seldom touched are in `State.slow`."""

# -- the crossbar of a router, empty where routers are ideal. (`State.rooms` has lines like those of
# channels, of output buffers.)

CREDITS = ("packet", "flit", "head")
PACKETWISE, FLITWISE, AT_HEAD = range(3)
"""When the room that a packet leaves is given back."""
ARBITERS = ("round-robin", "least-recent", "age", "lowest-port")
ROUND_ROBIN, LEAST_RECENT, AGE, LOWEST_PORT = range(4)

CROSSING = Row("State.crossing")
IN_UNTIL = CROSSING.word("ps", "until when a packet crosses from this port as an input")
OUT_UNTIL = CROSSING.word("ps", "until when one crosses to it as an output")
OUT_LAST = CROSSING.word("1", "from which queue (port << VC_BITS | VC) the last one did, or -1")

QUEUE = Row("State.queues")
Q_WANTS = QUEUE.word("1", "which output channel the first packet wants (port << VC_BITS | VC), or "
                     "-1 if there is none that is first")  # fmt: skip
Q_LACKS = QUEUE.word("ps", "since when there has been no room for it, or -1")
Q_NEXT_AT = QUEUE.word("ps", "from when on the next packet can be first")
Q_HOLDS = QUEUE.word("1", "whether the first has been assigned its output channel")
Q_CHANNEL = QUEUE.word("1", "which of that VC's it is: 0, or 1 for packets to a node from another "
                       "group")  # fmt: skip
Q_SIZE = QUEUE.word("B", "of the first packet")
Q_RANK = QUEUE.word("1", "its rank with the arbiter")
Q_HEAD = QUEUE.word("1", "the first packet that has not begun to cross, or -1", chain="head")
Q_LAST = QUEUE.word("1", "the last packet", chain="tail")
Q_SINCE = QUEUE.word("ps", "since when the first has been first")
Q_SERVED = QUEUE.word("ps", "when a packet last began to cross from here, or -1", hashed=True)
Q_WAITED = QUEUE.word("ps", "what first packets have waited", hashed=True)
Q_ROOM = QUEUE.word("ps", "of this, without room towards a router", hashed=True)
Q_EJECT = QUEUE.word("ps", "of this, without room towards a node", hashed=True)
Q_LONGEST = QUEUE.word("ps", "the longest that one waited while there was room", hashed=True)
Q_BYTES = QUEUE.word("B", "in the queue")
C_FREE_AT = QUEUE.word("ps", "from when on each of the output channels 0 and 1 of the same port "
                       "and VC can be assigned, FOREVER while a packet that has not begun to cross "
                       "has it: two words")  # fmt: skip
C_LAST = QUEUE.word("1", "the queue to which each of these was assigned last, or -1: two words",
                    at=C_FREE_AT + 2)  # fmt: skip
Q_LACKED = QUEUE.word("ps", "for how long there was no room for the first packet, until it last "
                      "got room", at=C_LAST + 2)  # fmt: skip
QUEUE_WORDS = 24
"""Three cache lines; the first, up to Q_HEAD, is what an arbiter looks at."""

OF_ROUTER = Row("State.routers")
R_WAKE = OF_ROUTER.word("ps", "when its next SWITCH happens (others are stale), or FOREVER")
R_COUNT = OF_ROUTER.word("1", "how many of its queues have a packet, which are in its row of "
                         "`State.requests`, each as port << VC_BITS | VC")  # fmt: skip

DRAIN = Row("State.ejection")
E_HEAD = DRAIN.word("1", "the first packet that the half-duplex node has not begun to drain, or -1",
                    chain="head")  # fmt: skip
E_LAST = DRAIN.word("1", "the last", chain="tail")
E_BUSY = DRAIN.word("ps", "until when it drains")
E_BYTES = DRAIN.word("B", "of those packets")

# -- a node, and the traffic that it generates

OF_NODE = Row("State.nodes")
DRAWS = OF_NODE.word("1", "random numbers drawn")
GENERATED = OF_NODE.word("1", "messages generated")
GENERATED_BYTES = OF_NODE.word("B", "of these")
DELIVERED = OF_NODE.word("1", "packets delivered")
DELIVERED_BYTES = OF_NODE.word("B", "of these")
LATENCY_SUM = OF_NODE.word("ps", "the sum of their latencies")
LONGEST = OF_NODE.word("ps", "the largest latency of those measured")
HOPS = OF_NODE.word("1", "routers that those delivered have visited")
OFFERED = OF_NODE.word("B", "offered within the measurement")
INJECTED = OF_NODE.word("B", "whose sending began within it")
ACCEPTED = OF_NODE.word("B", "accepted within it")
MEASURED = OF_NODE.word("1", "packets generated within it that were delivered")
MEASURED_LATENCY = OF_NODE.word("ps", "the sum of the latencies of these")
MEASURED_GENERATED = OF_NODE.word("1", "packets generated within it")
LAST_IN = OF_NODE.word("ps", "when the last packet was delivered")

TRAFFIC = Row("State.traffic")
SEED = TRAFFIC.word("1", "the seed of the run")
HOW = TRAFFIC.word("1", "which pattern (`odonata.agents.traffic`)")
TOTAL = TRAFFIC.word("1", "the nodes of the machine")
GROUP_NODES = TRAFFIC.word("1", "the nodes of a group")
STRIDE = TRAFFIC.word("1", "how many groups further an adversarial message goes")
MESSAGE_BYTES = TRAFFIC.word("B", "of a message")
LIMIT = TRAFFIC.word("1", "messages that a node generates, or -1")
STOP = TRAFFIC.word("ps", "from when on none is generated, or FOREVER")
SLOT = TRAFFIC.word("ps", "in which a node generates at most one message; 0: a Poisson process")
HOT = TRAFFIC.word("2^-32", "the part of messages that go to a hot node, a threshold for 32 random "
                   "bits")  # fmt: skip
HOT_EVERY = TRAFFIC.word("1", "every so many-th node is hot")
# There is one row per traffic; and one where there is none, for SEED, TOTAL and GROUP_NODES.

# -- flows over time (`odonata.agents.flows`)

FLOW = Row("State.flows")
F_GENERATED = FLOW.word("B", "of messages generated in the span")
F_INJECTED = FLOW.word("B", "whose sending was granted in the span: they left a source queue")
F_DELIVERED = FLOW.word("B", "delivered in the span")
F_PACKETS = FLOW.word("1", "packets of the messages generated in the span")
F_ARRIVED = FLOW.word("1", "of these, those delivered by now")
F_LATENCY = FLOW.word("ps", "the sum of the latencies of those")
SPANS = 512
"""Spans of `State.flows`: at least half of them are in use."""

OCTAVE = 64
BINS = 40 * OCTAVE
"""Latencies are counted in 64 bins per octave, up to 2**40 ps."""
BIN_BITS = 46
BIN_ONE = 1023 << 6

# -- a task: its slot, its job, its stage

NIC = Row("State.nic")
MATCH = NIC.word("ps", "that the NIC takes to match a message (`odonata.agents.workload.Workload`)")
HOST = NIC.word("ps", "that it takes to hand one over to its task")
LAUNCH = NIC.word("ps", "that a command takes from the scheduler, or a notice to it")
STREAM = NIC.word("1", "which stream of random numbers tasks draw from")

OF_SLOT = Row("State.slots")
JOB = OF_SLOT.word("1", "its task's job, or -1", hashed=True)
TASK = OF_SLOT.word("1", "the task's number there", hashed=True)
PHASE = OF_SLOT.word("1", "the phase it is in", hashed=True)
SENT_COUNT = OF_SLOT.word("1", "messages of that phase handed to the NIC, or AWAITING", hashed=True)
DUE = OF_SLOT.word("B", "that are still to come in it", hashed=True)
READY = OF_SLOT.word("ps", "when what has come will have been handed over", hashed=True)
EARLY = OF_SLOT.word("1", "what came before its phase, as a chain", chain="head")
LATEST_EARLY = OF_SLOT.word("1", "the last of that chain, if there is any", chain="tail")
PARTS = OF_SLOT.word("1", "messages of which some packets have arrived, as a chain", chain="head")
STAGE = OF_SLOT.word("1", "the row of its stage")
TURN = OF_SLOT.word("ps", "since when it has done what it does")
SENDING = OF_SLOT.word("1", "whether that is sending or waiting: it then has computed")
APART = OF_SLOT.word("B", "that have come of messages that no phase waits for")
APART_READY = OF_SLOT.word("ps", "when these will have been handed over")
AWAITING = -1

PLACE_BITS = 7
"""An entry of `State.places` is a node's address, shifted, plus the slot there."""
PLACES = PARCEL - 1
"""How many of these an event of kind PLACE brings."""

OF_JOB = Row("State.jobs")
FIRST_STAGE = OF_JOB.word("1", "its first row of `State.stages`")
STAGES = OF_JOB.word("1", "how many it has")
ITERATION = OF_JOB.word("1", "phases of an iteration")
LAST = OF_JOB.word("1", "phases of the whole job")
ENDS_APART = OF_JOB.word("1", "whether the last of these is one in which it waits for the messages "
                         "that no phase waited for")  # fmt: skip
BASE = OF_JOB.word("1", "where its tasks begin in `State.places`")

OF_STAGE = Row("State.stages")
PATTERN = OF_STAGE.word("1", "which pattern")
PAIRWISE = OF_STAGE.word("1", "whether its exchange is pairwise")
TASKS = OF_STAGE.word("1", "tasks")
MESSAGE = OF_STAGE.word("B", "of a message")
COMPUTE = OF_STAGE.word("ps", "that a task computes before each pass")
PHASES = OF_STAGE.word("1", "phases of a pass")
NX = OF_STAGE.word("1", "the first side of its grid")
NY = OF_STAGE.word("1", "the second")
NZ = OF_STAGE.word("1", "the third")
NW = OF_STAGE.word("1", "the fourth")
FOLD = OF_STAGE.word("1", "the largest power of two in TASKS")
JOB_SEED = OF_STAGE.word("1", "the seed of the run")
NUMBER = OF_STAGE.word("1", "the job's own number")
EXPECTED = OF_STAGE.word("1", "for a pattern of a plug-in: where its numbers of incoming messages "
                         "begin in `State.expected`")  # fmt: skip
PREPARE = OF_STAGE.word("ps", "that host and NIC need to prepare a message")
HAND = OF_STAGE.word("ps", "that the host of the receiver needs for it")
FIRST = OF_STAGE.word("1", "its first phase in an iteration")
FRIENDS = OF_STAGE.word("1", "where its tasks begin in `State.friends`")
WAITS = OF_STAGE.word("1", "what a task waits for: FOR_MESSAGES and so on")
REPLY = OF_STAGE.word("B", "of a reply")
OVERHEAD = OF_STAGE.word("ps", "of COMPUTE that count as communication")
PASSES = OF_STAGE.word("1", "passes in all iterations")
ITERATION_PHASES = OF_STAGE.word("1", "phases of an iteration of the job")
IMBALANCE = OF_STAGE.word("ps", "by which the slowest task may compute longer than the fastest")

FOR_MESSAGES, FOR_DEPARTURES, FOR_REPLIES, FOR_NOTHING = range(4)
"""What a task waits for in a phase: the messages that others send to it; that its own have left
the node; the replies to its own; or nothing, not even that the NIC has sent the one before."""

FRIEND = Row("State.friends")
AFTER = FRIEND.word("1", "who is next in the ring; of a task of a uniform stage: how many messages "
                    "come to it in total")  # fmt: skip
BEFORE = FRIEND.word("1", "who comes before")

# Times are summed over the tasks of this rank. Waiting for messages that no phase waited for counts
# in the last stage.
SPENT = Row("State.spent")
COMPUTED_PS = SPENT.word("ps", "how long the tasks of the stage have computed")
OVERHEAD_PS = SPENT.word("ps", "how long they were in MPI without waiting for the network")
SENT_PS = SPENT.word("ps", "how long they have sent")
WAITED_PS = SPENT.word("ps", "how long they have waited")

BY_JOB = Row("State.by_job")
BY_PACKETS = BY_JOB.word("1", "packets of the job that were delivered on this rank")
BY_BYTES = BY_JOB.word("B", "of these")
BY_LATENCY = BY_JOB.word("ps", "the sum of their latencies")
BY_HOPS = BY_JOB.word("1", "routers that they visited")
BY_NON_MINIMAL = BY_JOB.word("1", "those of them on non-minimal paths")
BY_NON_MINIMAL_HOPS = BY_JOB.word("1", "routers that those visited")

# -- power, empty where none is simulated; the scheduler's is in odonata.jobs.board

POWER = Row("State.draws")
IDLE_W = POWER.word("W", "what an idle node draws")
ACTIVE_W = POWER.word("W", "what one draws whose tasks compute")
LEAST_W = POWER.word("W", "below what it cannot be held")
COMMUNICATING_W = POWER.word("W", "what one draws whose tasks only communicate, or -1 where that "
                             "is as if they computed")  # fmt: skip
SLOWDOWN = POWER.word("1", "how many times as long computing takes at the least")

METERING = Row("State.metering")
INTERVAL = METERING.word("ps", "between two measurements")
METERS_ARE_OFF = METERING.word("1", "whether they are over")

METERS = Row("State.meters")
FACTOR = METERS.word("1", "the node's power as a multiple of the most efficient one's")
CAP_W = METERS.word("W", "its cap")
STRETCH = METERS.word("1", "how many times as long computing takes under that")
DRAW_W = METERS.word("W", "what it draws")
ENERGY_J = METERS.word("J", "its energy up to METERED")
IDLE_J = METERS.word("J", "of this, while it was idle")
PAID_J = METERS.word("J", "of this, of jobs that have ended here")
JOB_J = METERS.word("J", "of this, of the job that is here")

HOLDING = Row("State.holding")
METERED = HOLDING.word("ps", "up to when the node's energies are counted")
WHOSE = HOLDING.word("1", "which job is here, or -1")
HELD = HOLDING.word("1", "how many of its tasks have not ended")
COMPUTING = HOLDING.word("1", "how many of them compute")
RECEIVED = HOLDING.word("B", "that they have received from other nodes")

EFFORT = Row("State.efforts")
SERIAL = EFFORT.word("1", "how many predictions were made")
FROM = EFFORT.word("ps", "up to when the work that is left (`State.work`) is counted, or -1 where "
                   "the task does not compute")  # fmt: skip
UNTIL = EFFORT.word("ps", "when it will be done")
NEXT_PAUSE = EFFORT.word("ps", "for how long the NIC prepares a message then")

STILL = Row("State.halts")
HALTED = STILL.word("1", "whether the job that is here is suspended")
STOPPED = STILL.word("ps", "since when the task in slot 0 is stopped, or -1; then those in others")

# -- telemetry, empty where nothing is reported (`odonata.agents.reports`)

TELEMETRY = Row("State.telemetry")
REPORT_INTERVAL = TELEMETRY.word("ps", "between two readings of counters")
REPORT_DELAY = TELEMETRY.word("ps", "until the scheduler hears of one")

Words = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]


@record
class State(NamedTuple):
    """Everything that handlers read and write on one rank. Rows of ports, nodes and groups are
    those of this rank, in machine order."""

    # what stays the same
    shape: Words  # [SHAPE]
    gates: Words  # [group, other group, cable]: GATE_BITS
    latencies: Words  # [class of link] ps that a credit takes
    rates: Words  # [RATES] by class of link; of a crossbar, of ejection
    threshold: Numbers  # [1] a parameter of the routing
    delay: Words  # [2] ps of a router's pipeline; and of the allocation of a channel
    largest: Words  # [1] bytes of a packet
    flit: Words  # [1] bytes of a flit, less 1
    whole: Words  # [1] bytes of a packet that arrive before it is handled; 0: its head
    measured: Words  # [2] from when until when messages are measured
    traffic: Words  # [traffic, TRAFFIC]
    pace: Numbers  # [traffic] mean gap in ps, or in slots
    partners: Words  # [traffic, node] the destination, where it is fixed
    nic: Words  # [NIC]
    jobs: Words  # [job, OF_JOB]
    stages: Words  # [stage of any job, OF_STAGE]
    friends: Words  # [task of any stage, FRIEND]
    expected: Words  # by phase and task of jobs with a plug-in's pattern: messages that come
    draws: Numbers  # [job, POWER]
    telemetry: Words  # [TELEMETRY]
    # what changes
    ports: Words  # [port, 1 + VCs, LINE]: PORT, then CHANNEL for each of its channels
    slow: Words  # [port, VC, SLOW]: what is seldom touched of a channel
    crossing: Words  # [port, CROSSING]
    queues: Words  # [port, VC, QUEUE_WORDS]: QUEUE, by the port and the VC of the input
    rooms: Words  # [port, VC, LINE]: what is free in output buffers, as CHANNEL
    routers: Words  # [router, OF_ROUTER]
    requests: Words  # [router, ports x VCs]
    ejection: Words  # [node, DRAIN]
    nodes: Words  # [node, OF_NODE]
    drawn: Words  # [stream, node] random numbers drawn, where there are several streams
    history: npt.NDArray[np.uint64]  # [node] a hash of every packet delivered
    histogram: Words  # [group, BINS] latencies
    received: Words  # [group, source group] bytes
    flows: Words  # [group, SPANS, FLOW]
    span_bits: Words  # [group] a span of `flows` takes 2**bits ps
    places: Words  # [task of any job] where it is: PLACE_BITS
    slots: Words  # [node, slot, OF_SLOT]
    matching: Words  # [node] until when its NIC is busy matching
    spent: Words  # [stage of any job, SPENT]
    by_job: Words  # [job, BY_JOB]
    job_latencies: npt.NDArray[np.int32]  # [job, BINS] latencies; no rows where not counted
    metering: Words  # [METERING]
    meters: Numbers  # [node, METERS]
    holding: Words  # [node, HOLDING]
    efforts: Words  # [node, slot, EFFORT]
    work: Numbers  # [node, slot] what is left to compute, in ps without a cap
    halts: Words  # [node, STILL]
    # the scheduler's, empty on every other rank: odonata.jobs.board
    board: Words  # [job, JOB]
    owner: Words  # [node of the machine] its job, or -1
    labels: Words  # the nodes of every job, one job after the other
    memory: npt.NDArray[np.uint8]  # what its policies remember
    ledger: Words  # [LEDGER]
    accounts: Numbers  # [job, ACCOUNT]
    readings: Numbers  # [node of the machine, READING]
    measured_w: Numbers  # [METER]
    heard: Words  # [reading, word] what was reported last (`odonata.agents.reports`)
    # its market's: odonata.agents.following
    market: Numbers  # [odonata.jobs.trading.MARKET]
    before: Numbers  # [2] average and reserve of the hour before
    weights: Numbers  # [type] in the bid for this hour
    given: Numbers  # the parameters of the policy that regulates
    floor: Words  # policies.power.floor, as all that follow
    sums: Numbers
    kinds: Numbers
    tallies: Words
    rows: Words
    progress: Numbers
    tops: Words
    paused: Words
    moves: Words


@kernel
def where(shape: Any, key: int) -> Any:
    """Returns the group of an event's agent and the agent's index in it: its router, or behind
    these its node."""
    agent = agent_of(key)
    bits = shape[AGENT_BITS]
    return (agent >> bits) - shape[OFFSET], agent & ((1 << bits) - 1)


@kernel
def node_at_key(shape: Any, key: int) -> Any:
    """Returns the group of an event's node, the node's index in it, and its row."""
    group, index = where(shape, key)
    index -= shape[ROUTERS]
    return group, index, node_row(shape, group, index)


STREAM_BITS = 40
"""Stream s of a node draws as agent (s << STREAM_BITS) + node. Every traffic has a stream of its
own, and so have the tasks of all jobs, behind these: what one draws changes nothing for another."""


@kernel
def next_draw(state: Any, stream: int, row: int) -> int:
    """Returns how many random numbers a stream of a node has drawn, and counts one more."""
    count = state.nodes[row, DRAWS]
    state.nodes[row, DRAWS] = count + 1
    if state.drawn.shape[0] > 0:
        count = state.drawn[stream, row]
        state.drawn[stream, row] = count + 1
    return count  # type: ignore[no-any-return]


@kernel
def port_row(shape: Any, group: int, router: int) -> int:
    """Returns the row of a router's port 0."""
    return (group - shape[FIRST_GROUP]) * shape[GROUP_PORTS] + router * shape[RADIX]  # type: ignore[no-any-return]


@kernel
def router_row(shape: Any, group: int, router: int) -> int:
    """Returns the row of a router."""
    return (group - shape[FIRST_GROUP]) * shape[ROUTERS] + router  # type: ignore[no-any-return]


@kernel
def nic_row(shape: Any, group: int, index: int) -> int:
    """Returns the row of the port of a node's interface: behind those of its group's routers."""
    base = (group - shape[FIRST_GROUP]) * shape[GROUP_PORTS]
    return base + shape[ROUTERS] * shape[RADIX] + index  # type: ignore[no-any-return]


@kernel
def node_row(shape: Any, group: int, index: int) -> int:
    """Returns the row of a node, given its index in the group."""
    return (group - shape[FIRST_GROUP]) * shape[ROUTERS] * shape[NODES] + index  # type: ignore[no-any-return]
