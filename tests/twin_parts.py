"""The things of which the twin (`router_twin`) is made: rates, rooms in buffers, packets, channels,
ports, and the insides of routers and nodes. They hold state; what happens to it is in the twin."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from twin_sources import Message

Agent = tuple[int, int]
"""A group, and the number of the agent in it: its routers come first, then its nodes."""
Interval = tuple[int, int]
NEVER = 1 << 62


class Delivery(NamedTuple):
    """A packet that was delivered: when, from where to where, when its message was generated, its
    bytes, the routers that it visited, the job that it is of, and whether its path was non-minimal.
    """

    time: int
    source: int
    to: int
    born: int
    size: int
    routers: int
    job: int | None
    non_minimal: bool


class Rate:
    """A bandwidth, as picoseconds per byte in units of 2**-16."""

    def __init__(self, bandwidth: float) -> None:
        self.per_byte = max(1, round(1e12 / bandwidth * 65536))

    def time(self, size: int) -> int:
        return max(1, (size * self.per_byte + 32768) >> 16)

    def bytes(self, time: int) -> int:
        return (time << 16) // self.per_byte


class Room:
    """The room of a buffer as the sender knows it: what is given back counts from its date on."""

    def __init__(self, size: int | None) -> None:
        self.size, self.free = size, size or 0
        self.coming: list[tuple[int, int]] = []
        self.changes: list[tuple[int, int]] = []

    def at(self, now: int) -> int:
        while self.coming and self.coming[0][0] <= now:
            self.free += heapq.heappop(self.coming)[1]
        return self.free

    def has(self, now: int, size: int) -> bool:
        return self.size is None or self.at(now) >= size

    def take(self, now: int, size: int) -> None:
        if self.size is not None:
            assert self.at(now) >= size
            self.free -= size
            self.changes.append((now, -size))

    def give(self, date: int, size: int) -> None:
        if self.size is not None:
            heapq.heappush(self.coming, (date, size))
            self.changes.append((date, size))

    def lacking(self, since: int, until: int, size: int) -> int:
        """Returns for how long in this interval there was no room for so many bytes."""
        if self.size is None:
            return 0
        lacked, free, before = 0, self.size, 0
        for time, change in [*sorted(self.changes), (until, 0)]:
            if free < size:
                lacked += max(0, min(time, until) - max(before, since))
            free, before = free + change, time
        return lacked


class Packet:
    """A packet. Its head has come through the pipeline when it is at a router; `tail` is when its
    last byte has. `came` is the channel by which it came, `wants` that by which it goes on."""

    def __init__(self, message: Message, size: int, word: int) -> None:
        self.message, self.size, self.word = message, size, word
        self.ready = message.born
        self.tail = self.visited = 0
        self.came: Channel | None = None
        self.wants: Channel | None = None
        self.leg, self.hops = "s", 0
        self.through: tuple[int, int | None] | None = None
        self.reached = False


class Channel:
    """A virtual channel of an output port: the packets (at a node: messages) that have no credit
    wait in it. `buffer` is its output buffer, if there is one."""

    def __init__(self, port: Port, vc: int, size: int | None) -> None:
        self.port, self.vc, self.credit = port, vc, Room(size)
        self.buffer: Room | None = None
        self.blocked: deque[Packet | Message] = deque()
        self.packets = self.flits = self.bytes = 0
        self.waits: list[Interval] = []
        self.lacks: list[Interval] = []

    @property
    def room(self) -> Room:
        """What a packet takes when it begins to cross."""
        return self.credit if self.buffer is None else self.buffer


class Port:
    """An output port of a router, or that of a node, with its link. `far` is the agent at the other
    end, and the port there."""

    def __init__(self, agent: Agent, number: int, link: Any, far: tuple[Agent, int]) -> None:
        self.agent, self.number, self.far = agent, number, far
        self.rate, self.latency = Rate(link.bandwidth), link.latency_ps
        self.busy = 0
        self.uses: list[Interval] = []
        self.channels: list[Channel] = []

    def queued(self, now: int, vc: int | None) -> int:
        """Returns the bytes that wait here: blocked in one channel, or in all."""
        blocked = sum(
            packet.size
            for channel in self.channels
            if vc is None or channel.vc == vc
            for packet in channel.blocked
        )
        return self.rate.bytes(max(0, self.busy - now)) + blocked


@dataclass(eq=False)
class Place:
    """A packet's place in an input queue: when it `joined`; since when it has been `first`; when it
    `began` to cross, and when it has `crossed`; the packet may be at the next router by then.
    Whether it `holds` the output channel that it was assigned."""

    packet: Packet
    channel: Channel
    joined: int
    first: int = NEVER
    began: int = NEVER
    crossed: int = NEVER
    holds: bool = False


class Router:
    """The inside of a router with a crossbar: queues by input port and VC, until when inputs and
    outputs are busy, from when on queues have their next first packet and channels can be assigned,
    and when a packet of a queue last began to cross; the queue to which a channel was last
    assigned, and from which a packet last crossed to an output. `gone` are the packets that have
    crossed."""

    def __init__(self) -> None:
        self.queues: dict[tuple[int, int], deque[Place]] = {}
        self.inputs: dict[int, int] = {}
        self.outputs: dict[int, int] = {}
        self.queue_free: dict[tuple[int, int], int] = {}
        self.channel_free: dict[tuple[int, int], int] = {}
        self.last_assigned: dict[tuple[int, int], tuple[int, int]] = {}
        self.last_crossed: dict[int, tuple[int, int]] = {}
        self.began: dict[tuple[int, int], int] = {}
        self.gone: dict[tuple[int, int], list[Place]] = {}


class Node:
    """The receiving side of a node: packets in its ejection buffer whose last byte has arrived, and
    until when it drains one."""

    def __init__(self) -> None:
        self.arrived: deque[Packet] = deque()
        self.drained = 0


# -- intervals


def union(intervals: Iterable[Interval], until: int) -> list[Interval]:
    """Returns the times before `until` that are in any of these intervals, in order."""
    found: list[Interval] = []
    for start, end in sorted(intervals):
        end = min(end, until)
        if start >= end:
            continue
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def length(intervals: Iterable[Interval]) -> int:
    return sum(end - start for start, end in intervals)


def overlap(some: list[Interval], others: list[Interval]) -> int:
    """Returns how long two unions of intervals overlap."""
    starts, total = [start for start, _ in others], 0
    for start, end in some:
        for a, b in others[max(0, bisect_right(starts, start) - 1) :]:
            if a >= end:
                break
            total += max(0, min(b, end) - max(a, start))
    return total
