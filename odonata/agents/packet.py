"""Messages and packets: one parcel of eight words each, which is a cache line.

A **message** waits in its node's source queue until the NIC has cut it into **packets**; the last
packet takes over the message's own parcel. A packet is **moving** (an event bears it to a router or
a node) or **blocked** (it is chained to the channel whose credit it waits for). A returning
**credit** is a parcel too, chained to the channel it returns to (`odonata.agents.link`).
"""

from __future__ import annotations

from typing import Any

from pdes.jit import kernel
from pdes.parcels import NEXT
from pdes.random import U64
from pdes.words import Row

PACKET = Row("Pool.rows, a packet")
ENDS = PACKET.word("1", "the addresses of source and destination", at=NEXT + 1)
BORN = PACKET.word("ps", "when its message was generated")
SIZE = PACKET.word("B", "its bytes; of a message: those not yet cut off")
PATH = PACKET.word("1", "its path (below)")
CAME = PACKET.word("1", "the input that it occupies (`link.FEEDER_BITS`) or, while it is in its "
                   "source node, -1 (POSTED and below: a job's message)")  # fmt: skip
TAIL = PACKET.word("ps", "while it moves: how long after its head the tail arrives; while it is in "
                   "a router: when the tail arrives")  # fmt: skip
RANDOM = PACKET.word("1", "a random word for its routing decisions and, for a job's message, which "
                     "task it is for (below)")  # fmt: skip
PARCEL = len(PACKET)

RETURNING = Row("Pool.rows, a returning credit")
DUE = RETURNING.word("ps", "when it arrives", at=NEXT + 1)
ROOM = RETURNING.word("B", "how many bytes it is for")

# An address, 32 bits: group 14 | router in the group 10 | node of the router 8.
GROUP_SHIFT, ROUTER_SHIFT = 18, 8
MOST_GROUPS, MOST_ROUTERS, MOST_NODES = 1 << 14, 1 << 10, 1 << 8
ROUTER_MASK, NODE_MASK = MOST_ROUTERS - 1, MOST_NODES - 1
ADDRESS = (1 << 32) - 1

MINIMAL, NON_MINIMAL, INTERMEDIATE, FINAL = range(4)
"""Legs of a path: in the source's group on the minimal path; in the source's group on a non-minimal
path; in the intermediate group; in the destination's group, after a global hop."""

# The path, from the lowest bit: leg 2 | local hops taken on it 2 | heading for an intermediate 1 |
# VC it arrives on 4 | routers visited 4 | it is non-minimal 1 | unused 2 | intermediate router's
# address 32 | and, of a job's message, the slot of the task that sent it 7 | the lowest bits of the
# number of the message among those of its node 8.
LEG, LOCALS, TO_INTERMEDIATE = 3, 3 << 2, 1 << 4
LOCAL, LOCAL_SHIFT = 1 << 2, 2
VC_SHIFT, VISIT, VISIT_SHIFT, MID_SHIFT = 5, 1 << 9, 9, 16
VC_MASK = VISIT_MASK = 15
AVOIDS = 1 << 13
SENDER_SHIFT = MID_SHIFT + 32
SENDER = -1 << SENDER_SHIFT
SERIAL_SHIFT, SERIAL_MASK = SENDER_SHIFT + 7, (1 << 8) - 1

# The word RANDOM, from the lowest bit: random 32 | and, for a job's message: the phase in which the
# receiver waits for it 23 | the slot of the receiving task 7 | it wants a reply 1 | it is of
# open-loop traffic, and for no task 1.
RANDOM_MASK = (1 << 32) - 1
LABEL_SHIFT, LABEL_MASK = 32, (1 << 23) - 1
TO_SHIFT, SLOT_MASK = 55, (1 << 7) - 1
REQUEST = 1 << 62
OPEN_LOOP = -(1 << 63)

POSTED = -2
"""The value of word CAME of a job's message that is still in its node: this, less twice the slot of
the task that sends it, less 1 if that task has another message to send afterwards."""


@kernel
def random_of(packet: Any) -> Any:
    """Returns the random word of a packet, 32 bits."""
    return U64(packet[RANDOM] & RANDOM_MASK)


@kernel
def address(group: int, router: int, node: int) -> int:
    return (group << GROUP_SHIFT) | (router << ROUTER_SHIFT) | node


@kernel
def group_at(where: int) -> int:
    return where >> GROUP_SHIFT


@kernel
def router_at(where: int) -> int:
    return (where >> ROUTER_SHIFT) & ROUTER_MASK


@kernel
def node_at(where: int) -> int:
    return where & NODE_MASK


@kernel
def destination(packet: Any) -> int:
    return packet[ENDS] & ADDRESS  # type: ignore[no-any-return]


@kernel
def brief(ends: int, path: int) -> int:
    """Returns the second word of an arrival: the packet's destination, and its path without the
    intermediate. With it a router can choose the output port while the packet itself is still being
    loaded into the cache."""
    return ((ends & ADDRESS) << MID_SHIFT) | (path & ((1 << MID_SHIFT) - 1))


@kernel
def intermediate(packet: Any) -> int:
    """Returns the address of the intermediate router on a packet's path."""
    return (packet[PATH] >> MID_SHIFT) & ADDRESS  # type: ignore[no-any-return]


@kernel
def vc_of(path: int) -> int:
    return (path >> VC_SHIFT) & VC_MASK
