"""What a message and a packet are: one parcel of eight words, a cache line.

A **message** waits in its node's source queue until the NIC has cut it into **packets**; the last
piece takes over the message's own parcel. A packet is **moving** (an event bears it to a router or
a node) or **blocked** (it is chained to the channel whose credit it waits for). A returning
**credit** is a parcel too, chained to the channel it returns to (`odonata.agents.link`).
"""

from __future__ import annotations

from typing import Any

from pdes.jit import kernel
from pdes.parcels import NEXT
from pdes.random import U64

ENDS, BORN, SIZE, PATH, CAME, TAIL, LUCK = range(1, 8)
"""Words of a packet: the addresses of source and destination; when its message was made; bytes (of
a message: those not yet cut off); how it goes (below); the input it occupies (`link.FEEDER_BITS`)
or, in its own node, -1 (POSTED and below: of a job's message); while moving how long after its head
its tail comes, while here the time when that comes; a random word for its routing decisions and, of
a job's, who it is for (below)."""
PARCEL = 8

DUE, ROOM = 1, 2
"""Words of a returning credit: when it is there, and how many bytes."""

assert NEXT == 0

# An address, 32 bits: group 14 | router in the group 10 | node of the router 8.
GROUP_SHIFT, ROUTER_SHIFT = 18, 8
MOST_GROUPS, MOST_ROUTERS, MOST_NODES = 1 << 14, 1 << 10, 1 << 8
ROUTER_MASK, NODE_MASK = MOST_ROUTERS - 1, MOST_NODES - 1
ADDRESS = (1 << 32) - 1

STRAIGHT, AWAY, BETWEEN, LAST_LEG = range(4)
"""Legs of a way: in the first group on the straight way, or on a detour; in the intermediate group;
in the destination's group, having come from another."""

# The path, from the lowest bit: leg 2 | local hops taken on it 2 | on a detour 1 | VC it comes on 4
# | routers visited 4 | unused 3 | intermediate router's address 32.
LEG, LOCALS, DETOUR = 3, 3 << 2, 1 << 4
LOCAL, LOCAL_SHIFT = 1 << 2, 2
VC_SHIFT, VISIT, VISIT_SHIFT, MID_SHIFT = 5, 1 << 9, 9, 16
VC_MASK = VISIT_MASK = 15

# The luck, from the lowest bit: random 32 | and of a job's message: the phase in which it is waited
# for 23 | the slot there of the task it is for 7 | more pieces follow 1 | it is of open-loop
# traffic, and for no task 1.
LUCK_MASK = (1 << 32) - 1
LABEL_SHIFT, LABEL_MASK = 32, (1 << 23) - 1
TO_SHIFT, SLOT_MASK = 55, (1 << 7) - 1
MORE = 1 << 62
OPEN_LOOP = -(1 << 63)

POSTED = -2
"""A job's message that is still in its node has as its word CAME this, less twice the slot of the
task that sends it, less 1 if that has another to send then."""


@kernel
def luck_of(packet: Any) -> Any:
    """The random word of a packet."""
    return U64(packet[LUCK] & LUCK_MASK)


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
    """What an arrival's second word tells of a packet, so that a router can choose its port while
    the packet itself is still on its way into the cache: destination, and path without detour."""
    return ((ends & ADDRESS) << MID_SHIFT) | (path & ((1 << MID_SHIFT) - 1))


@kernel
def vc_of(path: int) -> int:
    return (path >> VC_SHIFT) & VC_MASK
