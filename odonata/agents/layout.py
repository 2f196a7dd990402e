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

# -- events

(CREDIT_DUE, SWITCH, ARRIVE, REACH, DELIVER, PLACE, START, GENERATE, STEP, REST, CAP, METER, SAMPLE,
 ENDED, REPORT, TELL, DECIDE) = range(17)  # fmt: skip
"""Kinds of events, in the order in which they are handled at one instant: credit returns to a
channel; the crossbar of a router arbitrates; a packet arrives at a router; a packet reaches a node
that is half duplex; a packet is delivered to a node; every rank learns where some tasks of a job
are; a task starts; a node generates its next message of open-loop traffic (the port
is the number of the traffic); a task takes its next step; every rank learns that power is no longer
measured; a node is given a cap; a node reads its meter; a router reads its counters and those of
its nodes; the scheduler hears that a task has ended, what a node has drawn, and what a router has
read; the scheduler decides."""
KINDS = ("credit", "switch", "arrive", "reach", "deliver", "place", "start", "generate", "step",
         "rest", "cap", "meter", "sample", "ended", "report", "tell", "decide")  # fmt: skip
PAUSED, SENT, COMPUTED = 0, 1, 2
"""Values of the first word of a STEP. PAUSED: the task's pause is over, or what it waited for has
arrived. SENT: the last packet of its message has left the node. COMPUTED: its work is done, if this
is the latest prediction of that, whose number is the second word (`odonata.agents.power`). These
are not kinds of their own, because tasks of one node that step at one instant do so in the order of
their slots, whatever the reason."""
HAPPENED, AGAIN = 0, 1
"""Values of the first word of a DECIDE. HAPPENED: a job has come or ended, power was measured, or
the cap of the machine has changed. AGAIN: the power policy asked for it; the second word is the
number of that wish."""

VC_BITS = 4
"""An event at a channel has as its port the port's number, shifted by these, plus the VC."""
WITHIN = 1
"""A node's deliveries at ports from here on come from a task of the same node: one port per slot,
because two tasks may send at one instant."""
SCHEDULER = 0
"""The agent that is the scheduler, where there is one."""

# -- the machine: State.shape

NODES, ROUTERS, GROUPS, RADIX, AGENT_BITS, FIRST_GROUP, GROUP_PORTS, COPIES = range(8)
BASES, LAST_GLOBAL, VCS_MASK, VIA, BIAS, OFFSET, ARBITER, OUT_CAPACITY = 8, *range(12, 19)
LANE_COUNT = 19
"""Words of `State.shape`: p, a and g; the ports of a router; the bits of an agent's number that
count within its group; this rank's first group; the port rows of a group (its routers', then its
nodes'); the cables between two groups; the first local VC of each leg; the VC of a last global hop;
0 where all hops share one VC (and deadlock), else all bits; what a non-minimal path leads through;
a parameter of the routing; the offset of groups in agent numbers, above; which of ARBITERS;
the bytes of an output buffer; and how many channels the packets of a node can choose from."""
VIAS = ("group", "router", "anywhere")
GROUP, ROUTER, ANYWHERE = range(3)
GATE_BITS = 8
"""An entry of `State.gates` is the router that has the cable, shifted, plus which of its cables."""

# -- a port and its channels: State.ports, State.slow

BUSY, USED, RATE, LATENCY, FAR_KEY, FAR, CAPACITY, DRAINED = range(8)
"""Words of a port: until when its link is reserved; how long it has been reserved in total; the
picoseconds per byte, times 2**16; the picoseconds to the other end; the key of an arrival there,
and the row of that port, or -1 on another rank; the bytes of each buffer there; and, of a port to a
node, until when the node will drain what was sent to it."""

CREDIT, RETURNS, SOONEST, HEAD, STARTED, PACKETS, BYTES, WAIT = range(8)
"""Words of a channel: the bytes known to be free at the far end; credits on their way, as a chain,
and the earliest of their dates; the first blocked packet, or -1; when the last packet granted
starts. Then counters: packets, bytes, and the picoseconds in which one waited and the link was
busy."""

LAST_BLOCKED, SINCE, MARK, WAITING, WAKE, STALL, PADDING = range(7)
"""Words of a channel that are seldom touched: the last blocked packet; since when the first has
been first, and how long the link had been used by then; the bytes that are blocked; when the event
that serves them happens (others for this channel are stale), or FOREVER. Then counters: the
picoseconds in which the first packet waited, without credit, and the link was free; the bytes by
which flits were not full."""

LINE = 8
"""Words of a port and of a channel: each is a cache line, and a port's channels are behind it. On
a large machine a hop costs what its cache misses cost, so there is nothing there that need not be.
"""

# -- the crossbar of a router, empty where routers are ideal: State.crossing, State.queues,
# State.rooms (lines like those of channels, of output buffers), State.routers, State.requests

CREDITS = ("packet", "flit", "head")
PACKETWISE, FLITWISE, AT_HEAD = range(3)
"""When the room that a packet leaves is given back."""
ARBITERS = ("round-robin", "least-recent", "age", "lowest-port")
ROUND_ROBIN, LEAST_RECENT, AGE, LOWEST_PORT = range(4)

CROSSBAR, EJECTION = 3, 4
"""Words of `State.rates` behind those of the classes of links."""

IN_UNTIL, OUT_UNTIL, OUT_LAST = range(3)
"""Words of a port in `State.crossing`: until when a packet crosses from it as an input, and to it
as an output; and from which queue (port << VC_BITS | VC) the last one did, or -1."""
CROSSING_WORDS = 3

(Q_WANTS, Q_LACKS, Q_NEXT_AT, Q_HOLDS, Q_CHANNEL, Q_SIZE, Q_RANK, Q_HEAD,
 Q_LAST, Q_SINCE, Q_SERVED, Q_WAITED, Q_ROOM, Q_EJECT, Q_LONGEST, Q_BYTES) = range(16)  # fmt: skip
"""Words of an input queue, by port and VC; the first eight, a cache line, are what an arbiter looks
at. Which output channel the queue's first packet wants (port << VC_BITS | VC), or -1 if there is
none that is first; since when there has been no room for it, or -1; from when on the next packet
can be first; whether the first has been assigned its output channel, and which of that VC's it is:
0, or 1 for packets to a node from another group; its bytes; its rank with the arbiter; the first
packet that has not begun to cross, or -1. Then the last packet; since when the first has been
first; when a packet last began to cross from here, or -1. Counters in picoseconds: what first
packets have waited; of this, without room towards a router and towards a node; the longest that one
waited while there was room. And the bytes in the queue."""
Q_LACKED = 20
"""A word in the same row: for how long there was no room for the first packet, until it last got
room."""
C_FREE_AT, C_LAST = 16, 18
"""Words in the same row, of the output channels 0 and 1 of the same port and VC: from when on each
can be assigned, FOREVER while a packet that has not begun to cross has it; and the queue to which
each was assigned last, or -1."""
QUEUE_WORDS = 24

R_WAKE, R_COUNT = range(2)
"""Words of a router in `State.routers`: when its next SWITCH happens (others are stale), or
FOREVER; and how many of its queues have a packet, which are in its row of `State.requests`, each
as port << VC_BITS | VC."""
ROUTER_WORDS = 2

E_HEAD, E_LAST, E_BUSY, E_BYTES = range(4)
"""Words of a half-duplex node in `State.ejection`: the first packet that it has not begun to drain,
or -1, and the last; until when it drains; the bytes of those packets."""
EJECTION_WORDS = 4

# -- a node: State.nodes, State.traffic

(DRAWS, GENERATED, GENERATED_BYTES, DELIVERED, DELIVERED_BYTES, LATENCY_SUM, LONGEST,
 HOPS, OFFERED, INJECTED, ACCEPTED, MEASURED, MEASURED_LATENCY,
 MEASURED_GENERATED, LAST_IN) = range(15)  # fmt: skip
"""Words of a node: random numbers drawn; messages generated, and bytes; packets delivered, their
bytes, latencies, largest latency (of those measured), routers visited. Then,
within the measurement: bytes offered, bytes whose sending began, bytes accepted; packets generated
within it that were delivered, and their latencies; packets generated within it. And when the last
packet was delivered."""
NODE_WORDS = 15

# -- flows over time: State.flows, State.span_bits (`odonata.agents.flows`)

(F_GENERATED,  # B    of messages generated in the span
 F_INJECTED,   # B    whose sending was granted in the span: they left a source queue
 F_DELIVERED,  # B    delivered in the span
 F_PACKETS,    # 1    packets of the messages generated in the span
 F_ARRIVED,    # 1    of these, those delivered by now
 F_LATENCY,    # ps   sum of the latencies of those
) = range(6)  # fmt: skip
"""Words of a span in `State.flows`."""
FLOW_WORDS = 6
SPANS = 512
"""Spans of `State.flows`: at least half of them are in use."""

SEED, HOW, TOTAL, GROUP_NODES, STRIDE, MESSAGE_BYTES, LIMIT, STOP, SLOT, HOT, HOT_EVERY = range(11)
"""Words of a row of `State.traffic`, one row per traffic (and one where there is none, for SEED,
TOTAL and GROUP_NODES); SLOT is 0 for a Poisson process, HOT a threshold for 32 random bits."""
TRAFFIC_WORDS = 11

OCTAVE = 64
BINS = 40 * OCTAVE
"""Latencies are counted in 64 bins per octave, up to 2**40 ps."""
BIN_BITS = 46
BIN_ONE = 1023 << 6

# -- a task: State.nic, State.slots, State.places, State.jobs, State.stages, State.friends,
# State.spent, State.by_job

MATCH, HOST, LAUNCH, STREAM = range(4)
"""Words of `State.nic`: three times (`odonata.agents.workload.Workload`), and which stream of
random numbers tasks draw from."""

(JOB, TASK, PHASE, SENT_COUNT, DUE, READY, EARLY, LATEST_EARLY, PARTS, STAGE, TURN, SENDING,
 APART, APART_READY) = range(14)  # fmt: skip
"""Words of a slot: its task's job, or -1; the task's number there; the phase it is in; how many
messages of that phase were handed to the NIC, or AWAITING; the bytes that are still to come in it;
when what has come will have been handed over; what came before its phase, as a chain, and the last
of that chain, if there is any; messages of which some packets have arrived, as a chain; the row of
its stage; since when it has done what it does, and whether that is sending or waiting (it then has
computed); and the bytes that have come of messages that no phase waits for, and when these will
have been handed over."""
SLOT_WORDS = 14
AWAITING = -1

PLACE_BITS = 7
"""An entry of `State.places` is a node's address, shifted, plus the slot there."""
PLACES = PARCEL - 1
"""How many of these an event of kind PLACE brings."""

FIRST_STAGE, STAGES, ITERATION, LAST, ENDS_APART, BASE = range(6)
"""Words of a row of `State.jobs`: its first row of `State.stages`, and how many it has; phases of
an iteration, and of the whole job; whether the last of these is one in which it waits for the
messages that no phase waited for; and where its tasks begin in `State.places`."""
JOB_WORDS = 6

(PATTERN, PAIRWISE, TASKS, MESSAGE, COMPUTE, PHASES, NX, NY, NZ, NW, FOLD, JOB_SEED, NUMBER,
 EXPECTED, PREPARE, HAND, FIRST, FRIENDS, WAITS, REPLY, OVERHEAD, PASSES,
 ITERATION_PHASES, IMBALANCE) = range(24)  # fmt: skip
"""Words of a row of `State.stages`: which pattern, and is its exchange pairwise; tasks; bytes of a
message; picoseconds that a task computes before each pass; phases of a pass; its grid; the
largest power of two in TASKS; the seed of the run; the job's own number; for a pattern of a
plug-in, where its numbers of incoming messages begin in `State.expected`; the picoseconds that host
and NIC need to prepare a message, and those that the host of the receiver needs for it; its first
phase in an iteration; where its tasks begin in `State.friends`; what a task waits for, of WAITS;
the bytes of a reply; the picoseconds of COMPUTE that count as communication;
how many passes all iterations have; the phases of an iteration of the job; and by how many
picoseconds the slowest task may compute longer than the fastest."""
STAGE_WORDS = 24
FOR_MESSAGES, FOR_DEPARTURES, FOR_REPLIES, FOR_NOTHING = range(4)
"""What a task waits for in a phase: the messages that others send to it; that its own have left
the node; the replies to its own; or nothing, not even that the NIC has sent the one before."""

COMPUTED_PS, OVERHEAD_PS, SENT_PS, WAITED_PS = range(4)
"""Words of a row of `State.spent`: how long the tasks of a stage have computed, were in MPI
without waiting for the network, have sent, and have waited, in ps, summed over the tasks of this
rank. Waiting for messages that no phase waited for counts in the last stage."""
SPENT_WORDS = 4

(BY_PACKETS, BY_BYTES, BY_LATENCY, BY_HOPS, BY_NON_MINIMAL, BY_NON_MINIMAL_HOPS) = range(6)
"""Words of a row of `State.by_job`: packets of a job that were delivered on this rank, their bytes,
latencies in ps, routers visited; and packets on non-minimal paths, with the routers that these
visited."""
BY_JOB_WORDS = 6

AFTER, BEFORE = 0, 1
"""Words of a row of `State.friends`: who is next in the ring, and who comes before. (AFTER, of a
task of a uniform stage: how many messages come to it in total.)"""

# -- power, empty where none is simulated: State.draws, State.metering, State.meters,
# State.holding, State.efforts, State.work; the scheduler's are in odonata.jobs.board

IDLE_W, ACTIVE_W, LEAST_W, COMMUNICATING_W, SLOWDOWN = range(5)
"""Words of `State.draws`: what an idle node draws; one whose tasks compute; below what it cannot be
held; one whose tasks only communicate, or -1 where that is as if they computed; and how many times
as long computing takes at the least."""

INTERVAL, RESTING = range(2)
"""Words of `State.metering`: the picoseconds between two measurements, and whether they are
over."""

FACTOR, CAP_W, STRETCH, DRAW_W, ENERGY_J, IDLE_J, PAID_J, JOB_J = range(8)
"""Words of a node in `State.meters`: its power as a multiple of the most efficient one's; its cap;
how many times as long computing takes under that; what it draws; then energies up to METERED: all,
while it was idle, of jobs that have ended here, and of the job that is here."""
METER_WORDS = 8

METERED, WHOSE, HELD, COMPUTING, RECEIVED = range(5)
"""Words of a node in `State.holding`: up to when its energies are counted; which job is here, or
-1; how many of its tasks have not ended, and how many compute; the bytes that they have received
from other nodes."""
HOLDING_WORDS = 5

SERIAL, FROM, UNTIL, NEXT_PAUSE = range(4)
"""Words of a slot in `State.efforts`: how many predictions were made; up to when the work that is
left (`State.work`, in picoseconds without a cap) is counted, or -1 where the task does not compute;
when it will be done; and for how long the NIC prepares a message then."""
EFFORT_WORDS = 4

# -- telemetry, empty where nothing is reported: State.telemetry, State.heard

REPORT_INTERVAL, REPORT_DELAY = range(2)
"""Words of `State.telemetry`: the picoseconds between two readings of counters, and those until the
scheduler hears of one (`odonata.agents.reports`)."""

Words = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]


@record
class State(NamedTuple):
    """Everything that handlers read and write on one rank. Rows of ports, nodes and groups are
    those of this rank, in machine order."""

    # what stays the same
    shape: Words  # the machine, above
    gates: Words  # [group, other group, cable]: GATE_BITS
    latencies: Words  # [class of link] ps that a credit takes
    rates: Words  # [5] ps per byte, times 2**16: by class of link, of a crossbar, of ejection
    threshold: Numbers  # [1] a parameter of the routing
    delay: Words  # [2] ps of a router's pipeline; and of the allocation of a channel
    largest: Words  # [1] bytes of a packet
    flit: Words  # [1] bytes of a flit, less 1
    whole: Words  # [1] bytes of a packet that arrive before it is handled; 0: its head
    measured: Words  # [2] from when until when messages are measured
    traffic: Words  # [traffic, TRAFFIC_WORDS]
    pace: Numbers  # [traffic] mean gap in ps, or in slots
    partners: Words  # [traffic, node] the destination, where it is fixed
    nic: Words  # [4] MATCH, HOST, LAUNCH, STREAM
    jobs: Words  # [job, JOB_WORDS]
    stages: Words  # [stage of any job, STAGE_WORDS]
    friends: Words  # [task of any stage, 2]
    expected: Words  # by phase and task of jobs with a plug-in's pattern: messages that come
    draws: Numbers  # [5] IDLE_W, ACTIVE_W, LEAST_W, COMMUNICATING_W, SLOWDOWN
    telemetry: Words  # [2] REPORT_INTERVAL, REPORT_DELAY
    # what changes
    ports: Words  # [port, 1 + VCs, LINE]: the port's line, then those of its channels
    slow: Words  # [port, VC, words]: what is seldom touched of a channel
    crossing: Words  # [port, CROSSING_WORDS]
    queues: Words  # [port, VC, QUEUE_WORDS]
    rooms: Words  # [port, VC, LINE]: what is free in output buffers, as a channel's line
    routers: Words  # [router, ROUTER_WORDS]
    requests: Words  # [router, ports x VCs]
    ejection: Words  # [node, EJECTION_WORDS]
    nodes: Words  # [node, NODE_WORDS]
    drawn: Words  # [stream, node] random numbers drawn, where there are several streams
    history: npt.NDArray[np.uint64]  # [node] a hash of every packet delivered
    histogram: Words  # [group, BINS] latencies
    received: Words  # [group, source group] bytes
    flows: Words  # [group, SPANS, FLOW_WORDS]
    span_bits: Words  # [group] a span of `flows` takes 2**bits ps
    places: Words  # [task of any job] where it is: PLACE_BITS
    slots: Words  # [node, slot, SLOT_WORDS]
    matching: Words  # [node] until when its NIC is busy matching
    spent: Words  # [stage of any job, SPENT_WORDS]
    by_job: Words  # [job, BY_JOB_WORDS]
    job_latencies: npt.NDArray[np.int32]  # [job, BINS] latencies; no rows where not counted
    metering: Words  # [2] INTERVAL, RESTING
    meters: Numbers  # [node, METER_WORDS]
    holding: Words  # [node, HOLDING_WORDS]
    efforts: Words  # [node, slot, EFFORT_WORDS]
    work: Numbers  # [node, slot] what is left to compute, in ps without a cap
    # the scheduler's, empty on every other rank: odonata.jobs.board
    board: Words  # [job, JOB]
    owner: Words  # [node of the machine] its job, or -1
    labels: Words  # the nodes of every job, one job after the other
    memory: npt.NDArray[np.uint8]  # what its policies remember
    ledger: Words  # [LEDGER_WORDS]
    accounts: Numbers  # [job, ACCOUNT_WORDS]
    readings: Numbers  # [node of the machine, READING_WORDS]
    measured_w: Numbers  # [MEASURED_WORDS]
    heard: Words  # [reading, word] what was reported last (`odonata.agents.reports`)


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
