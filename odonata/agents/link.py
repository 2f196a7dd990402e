"""Ports, links and credits: how a packet gets from one buffer to the next.

A **port** has an outgoing link, shared by its **channels**, one per VC. A packet that requests a
channel is granted the link when the buffer at the far end has room for all of it (virtual
cut-through): at that instant it reserves the link, behind earlier reservations, and leaves when its
turn has come. So channels share a link in the order in which they become ready, and a channel
without credit holds up no other.

A hop costs one event, not one for the link and one for the credit: when a packet leaves is known as
soon as it is granted, so the credit for the room it leaves behind is handed back at once, dated
with its time of arrival, and read when it is needed. Only a channel with a blocked packet has an
event scheduled for its next credit.

Where the other end is on another rank the credit is sent there and chained to its channel on
receipt. That changes no result: no credit is used before its date.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from odonata.agents import layout as w
from odonata.agents import packet as p
from odonata.agents.layout import node_at_key
from odonata.agents.packet import brief
from pdes.events import FOREVER, agent_of, key_of, kind_of, port_of
from pdes.jit import kernel, rebound
from pdes.loop import Sim, drop_parcel, new_parcel, schedule
from pdes.parcels import NEXT
from pdes.random import HALF, LOW, U64, below

RATE_BITS = 16
UNLIMITED = 1 << 60
"""Credit of a channel into a node: a node accepts every packet."""

GRANTS = 4
"""The largest number of packets that one event grants; if more can go, a further event grants them.
"""
FEEDER_HERE, FEEDER_BITS = 1 << 6, 7
"""Fields of word CAME, which names the input that a packet occupies: VC 4 bits | class of link 2 |
whether the feeding port is on this rank 1 | the row of the feeding port or, where that is on
another rank, of the input's own port."""


@kernel
def serialisation(rate: int, size: int) -> int:
    """Returns the serialisation time of `size` bytes in ps. It is at least 1 ps, so that no two
    packets arrive at one input at the same time."""
    return max(1, (size * rate + (1 << (RATE_BITS - 1))) >> RATE_BITS)


@kernel
def used_by(port: Any, now: int) -> int:
    """Returns for how long the link has been used before `now`, in ps. Reservations leave no gaps
    ahead, so what is reserved beyond `now` is subtracted."""
    return port[w.USED] - max(0, port[w.BUSY] - now)  # type: ignore[no-any-return]


@kernel
def waited_by(channel: Any, slow: Any, used: int, now: int) -> Any:
    """Returns for how long packets have waited in a channel before `now`, in ps: without credit
    while the link was free, and otherwise. `used` is for how long the link has been used.

    It is exact: a stall is booked when it ends and a wait when its length is known, so the part of
    a stall so far is added, and the part of a wait that lies ahead is subtracted."""
    stall, wait = slow[w.STALL], channel[w.WAIT] - max(0, channel[w.STARTED] - now)
    if channel[w.HEAD] >= 0:
        free = (now - slow[w.SINCE]) - (used - slow[w.MARK])
        stall += max(0, free)
        wait += max(0, (now - max(slow[w.SINCE], channel[w.STARTED])) - free)
    return stall, wait


@kernel
def collect_line(sim: Sim, channel: Any, now: int) -> None:
    """Add the credits that have arrived by `now` to the credit of a channel's line."""
    rows = sim.pool.rows
    number, kept, soonest = channel[w.RETURNS], -1, FOREVER
    while number >= 0:
        following = rows[number, NEXT]
        if rows[number, p.DUE] <= now:
            channel[w.CREDIT] += rows[number, p.ROOM]
            drop_parcel(sim, number)
        else:
            soonest = min(soonest, rows[number, p.DUE])
            rows[number, NEXT] = kept
            kept = number
        number = following
    channel[w.RETURNS], channel[w.SOONEST] = kept, soonest


@kernel
def collect(sim: Sim, state: Any, row: int, vc: int, now: int) -> None:
    """Add the credits that have arrived by `now` to a channel's credit."""
    collect_line(sim, state.ports[row, 1 + vc], now)


WHEN: int = w.PACKETWISE
"""Bound by `kernels`: one of CREDITS."""


def given_back(state: Any, start: int, left: int, size: int, rate: int) -> int:
    """Returns when the room is free of a packet that begins to leave a buffer at `start` and has
    left at `left`, in ps: from then on another can be sent there. The buffer is filled at `rate`.
    """
    if WHEN == w.AT_HEAD:
        return start
    if WHEN == w.FLITWISE:
        flit = min(size, state.flit[0] + 1)
        rest = size - flit
        behind = serialisation(rate, rest) if rest > 0 else 0
        return max(start + (left - start) * flit // size, left - behind)  # type: ignore[no-any-return]
    return left


def refund(sim: Sim, state: Any, came: int, size: int, start: int, left: int, now: int) -> None:
    """Return credit for a packet that leaves the buffer of an input from `start` to `left` to the
    channel that feeds this input."""
    vc, row, link = came & p.VC_MASK, came >> FEEDER_BITS, (came >> w.VC_BITS) & 3
    due = given_back(state, start, left, size, state.rates[link]) + state.latencies[link]
    if not came & FEEDER_HERE:
        schedule(sim, due, channel_key(state.ports[row, 0, w.FAR_KEY], vc), size, 0)
    elif repay(sim, state, row, vc, due, size, now):
        key = state.ports[state.ports[row, 0, w.FAR], 0, w.FAR_KEY]
        wake(sim, state, row, vc, due, channel_key(key, vc))


def repay(sim: Sim, state: Any, row: int, vc: int, due: int, size: int, now: int) -> bool:
    """Chain a credit to its channel. Returns whether a packet is blocked there.

    Old credits are collected before they outnumber those on their way, which keeps chains short and
    the walk along them to a few steps per credit.
    """
    channel = state.ports[row, 1 + vc]
    if channel[w.SOONEST] <= 2 * now - due:
        collect(sim, state, row, vc, now)
    number = new_parcel(sim)
    credit = sim.pool.rows[number]
    credit[NEXT], credit[p.DUE], credit[p.ROOM] = channel[w.RETURNS], due, size
    channel[w.RETURNS] = number
    channel[w.SOONEST] = min(channel[w.SOONEST], due)
    if channel[w.HEAD] >= 0:
        return True
    promised(sim, state, row, vc, due)
    return False


@kernel
def expected(sim: Sim, state: Any, row: int, vc: int, due: int) -> None:
    """Called when credit is on its way to a channel in which nothing is blocked: nothing is to be
    done but where there are crossbars (`odonata.agents.switch.expected`)."""


LANES: bool = False
"""Bound by `kernels`: whether packets of a node have a choice of channels."""


def promised(sim: Sim, state: Any, row: int, vc: int, due: int) -> None:
    """See to it that credit which is on its way to a channel is used when it is due, although
    nothing is blocked in the channel itself: what a node sends waits in its channel 0."""
    far = state.ports[row, 0, w.FAR]
    if LANES and vc > 0 and far >= 0 and state.ports[row, 1, w.HEAD] >= 0:
        key = state.ports[far, 0, w.FAR_KEY]
        if kind_of(key) != w.ARRIVE:
            wake(sim, state, row, 0, due, channel_key(key, 0))
            return
    expected(sim, state, row, vc, due)


@kernel
def wake(sim: Sim, state: Any, row: int, vc: int, time: int, key: int) -> None:
    """Schedule the event that serves what is blocked in a channel at `time`, unless an earlier one
    is scheduled."""
    slow = state.slow[row, vc]
    if time < slow[w.WAKE]:
        slow[w.WAKE] = time
        schedule(sim, time, key, 0, 0)


@kernel
def channel_key(key: int, vc: int) -> int:
    """Returns the key of an event at a channel, given the key of an arrival at its port."""
    return key_of(w.CREDIT_DUE, agent_of(key), (port_of(key) << w.VC_BITS) | vc)  # type: ignore[no-any-return]


def leave(
    sim: Sim, state: Any, row: int, vc: int, came: int, size: int, start: int, left: int, now: int
) -> None:
    """Give back the room of a packet that was granted the link of a port."""
    refund(sim, state, came, size, start, left, now)


@kernel
def eject(sim: Sim, state: Any, row: int, number: int, there: int, now: int) -> int:
    """Returns when a packet whose last byte is at its node at `there` is delivered, in ps; of nodes
    with a buffer this is `odonata.agents.ejection.eject`."""
    return there


def launch(
    sim: Sim, state: Any, row: int, vc: int, lane: int, number: int, now: int, since: int
) -> int:
    """Grant the link to a packet for which there is credit and which has been first in its channel
    since `since`. It travels in channel `lane`, which differs from the one in which it waited only
    where a node has a choice. Returns when it starts, in ps."""
    port, channel, packet = state.ports[row, 0], state.ports[row, 1 + vc], sim.pool.rows[number]
    size = packet[p.SIZE]
    start = max(now, port[w.BUSY])
    left = max(start + serialisation(port[w.RATE], size), packet[p.TAIL])
    port[w.BUSY] = left
    port[w.USED] += left - start
    state.ports[row, 1 + lane, w.CREDIT] -= size
    channel[w.PACKETS] += 1
    channel[w.BYTES] += size
    channel[w.WAIT] += start - max(since, channel[w.STARTED])
    channel[w.STARTED] = start
    if size & state.flit[0]:
        state.slow[row, vc, w.PADDING] += state.flit[0] + 1 - (size & state.flit[0])
    if packet[p.CAME] >= 0:
        leave(sim, state, row, vc, packet[p.CAME], size, start, left, now)
    packet[p.CAME] = (row << FEEDER_BITS) | FEEDER_HERE if port[w.FAR] >= 0 else 0
    path = (packet[p.PATH] & ~(p.VC_MASK << p.VC_SHIFT)) | (lane << p.VC_SHIFT)
    packet[p.PATH] = path
    head = start
    if state.whole[0]:
        head = left
        if size > state.whole[0]:
            head = start + serialisation(port[w.RATE], state.whole[0])
    packet[p.TAIL] = left - head
    key = port[w.FAR_KEY]
    there = head + port[w.LATENCY] + state.delay[0]
    if kind_of(key) != w.ARRIVE:
        there = eject(sim, state, row, number, left + port[w.LATENCY], now)
    schedule(sim, there, key, number, brief(packet[p.ENDS], path))
    return start  # type: ignore[no-any-return]


@kernel
def block(sim: Sim, state: Any, row: int, vc: int, number: int, now: int) -> None:
    """Chain a packet, or a message of this node, to the end of its channel."""
    port, channel, rows = state.ports[row, 0], state.ports[row, 1 + vc], sim.pool.rows
    slow = state.slow[row, vc]
    rows[number, NEXT] = -1
    if channel[w.HEAD] < 0:
        channel[w.HEAD] = number
        slow[w.SINCE], slow[w.MARK] = now, used_by(port, now)
    else:
        rows[slow[w.LAST_BLOCKED], NEXT] = number
    slow[w.LAST_BLOCKED] = number
    slow[w.WAITING] += rows[number, p.SIZE]


def pump(sim: Sim, state: Any, row: int, vc: int, now: int, key: int) -> int:
    """Grant what is blocked in a channel as far as its credit goes; `key` is that of an event at
    this channel. Returns the bytes whose sending starts within the measurement.

    When the last packet of a task's message leaves its node, the task goes on to its next message,
    if there is one, once that has been prepared.
    """
    port, channel, rows = state.ports[row, 0], state.ports[row, 1 + vc], sim.pool.rows
    slow = state.slow[row, vc]
    if channel[w.SOONEST] <= now:
        collect(sim, state, row, vc, now)
    measured = 0
    for _ in range(GRANTS):
        number = channel[w.HEAD]
        if number < 0:
            return measured
        size = min(rows[number, p.SIZE], state.largest[0])
        lane = vc
        if LANES and rows[number, p.CAME] < 0:
            lane = free_lane(sim, state, row, number, size, now)
        elif channel[w.CREDIT] < size:
            lane = -1
        if lane < 0:
            break
        last = size == rows[number, p.SIZE]
        if last:
            channel[w.HEAD] = rows[number, NEXT]
        else:
            number = _cut(sim, number, size)
        came = rows[number, p.CAME]
        slow[w.WAITING] -= size
        since = slow[w.SINCE]
        stalled = (now - since) - (used_by(port, now) - slow[w.MARK])
        slow[w.STALL] += stalled
        channel[w.WAIT] -= stalled
        start = launch(sim, state, row, vc, lane, number, now, since)
        if state.measured[0] <= start < state.measured[1]:
            measured += size
        if last and came <= p.POSTED:
            _, _, node = node_at_key(state.shape, key)
            slot, more = (p.POSTED - came) >> 1, (p.POSTED - came) & 1
            pause = state.stages[state.slots[node, slot, w.STAGE], w.PREPARE] * more
            schedule(sim, start + pause, key_of(w.STEP, agent_of(key), slot), w.SENT, 0)
        slow[w.SINCE], slow[w.MARK] = now, used_by(port, now)
    if channel[w.HEAD] >= 0:
        size = min(rows[channel[w.HEAD], p.SIZE], state.largest[0])
        again = now if channel[w.CREDIT] >= size else channel[w.SOONEST]
        if LANES and rows[channel[w.HEAD], p.CAME] < 0:
            again = soonest_lane(sim, state, row, channel[w.HEAD], size, now)
        wake(sim, state, row, vc, again, key)
    return measured


def free_lane(sim: Sim, state: Any, row: int, message: int, size: int, now: int) -> int:
    """Returns the channel that the next packet of a message takes out of its node: one drawn at
    random if it has credit, else the next that has; -1 if none has."""
    lanes, word = state.shape[w.LANE_COUNT], sim.pool.rows[message, p.RANDOM]
    left = sim.pool.rows[message, p.SIZE] - size
    own = another(word, left) if left > 0 else U64(word & p.RANDOM_MASK)
    first = below(another(int(own), 4), lanes)
    for i in range(lanes):
        lane = (first + i) % lanes
        channel = state.ports[row, 1 + lane]
        if channel[w.CREDIT] < size and channel[w.SOONEST] <= now:
            collect(sim, state, row, lane, now)
        if channel[w.CREDIT] >= size:
            return lane  # type: ignore[no-any-return]
    return -1


def soonest_lane(sim: Sim, state: Any, row: int, message: int, size: int, now: int) -> int:
    """Returns when the next packet of a message may find a channel, in ps."""
    if free_lane(sim, state, row, message, size, now) >= 0:
        return now
    soonest = FOREVER
    for lane in range(state.shape[w.LANE_COUNT]):
        soonest = min(soonest, state.ports[row, 1 + lane, w.SOONEST])
    return soonest


@kernel
def _cut(sim: Sim, message: int, size: int) -> int:
    """Cut the next packet off a message larger than a packet. Returns the packet's number."""
    rows = sim.pool.rows
    number = new_parcel(sim)
    left = rows[message, p.SIZE] - size
    rows[message, p.SIZE] = left
    rows[number, p.ENDS], rows[number, p.BORN] = rows[message, p.ENDS], rows[message, p.BORN]
    rows[number, p.SIZE], rows[number, p.PATH] = size, rows[message, p.PATH]
    rows[number, p.CAME], rows[number, p.TAIL] = -1, 0
    word = rows[message, p.RANDOM]
    rows[number, p.RANDOM] = (word & ~p.RANDOM_MASK) | np.int64(another(word, left))
    return number


@kernel
def another(word: int, salt: int) -> Any:
    """Returns another 32-bit random word from a word and a number (the finaliser of splitmix64)."""
    x = (U64(word) << HALF) + U64(salt) + U64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> U64(30))) * U64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> U64(27))) * U64(0x94D049BB133111EB)
    return (x >> HALF) & LOW


def send(sim: Sim, state: Any, row: int, vc: int, number: int, now: int, key: int) -> None:
    """Handle a packet that requests a channel: grant it the link, or block it there."""
    channel = state.ports[row, 1 + vc]
    size = sim.pool.rows[number, p.SIZE]
    if channel[w.HEAD] < 0:
        if channel[w.CREDIT] < size and channel[w.SOONEST] <= now:
            collect(sim, state, row, vc, now)
        if channel[w.CREDIT] >= size:
            launch(sim, state, row, vc, vc, number, now, now)
            return
        wake(sim, state, row, vc, channel[w.SOONEST], key)
    block(sim, state, row, vc, number, now)


@kernel
def queued(state: Any, row: int, now: int, first: int, last: int) -> int:
    """Returns the bytes that wait at a port: what is left of the reservations of its link, by all
    channels and with the packet being sent, and what is blocked in the channels first .. last - 1.
    """
    port = state.ports[row, 0]
    ahead = max(0, port[w.BUSY] - now) * (1 << RATE_BITS) / port[w.RATE]
    total = np.int64(ahead)
    for vc in range(first, last):
        total += state.slow[row, vc, w.WAITING]
    return total  # type: ignore[return-value]


def free(sim: Sim, state: Any, row: int, vc: int, now: int) -> int:
    """Returns the bytes of buffer at the far end of a channel that are known to be free."""
    channel = state.ports[row, 1 + vc]
    if channel[w.SOONEST] <= now:
        collect(sim, state, row, vc, now)
    return channel[w.CREDIT]  # type: ignore[no-any-return]


class Links(NamedTuple):
    """The kernels of links, for one way to give back room and with what else happens there."""

    given_back: Any
    repay: Any
    refund: Any
    launch: Any
    send: Any
    pump: Any
    free: Any


@lru_cache
def kernels(
    when: int = w.PACKETWISE,
    others: tuple[Callable[..., Any], ...] = (),
    lanes: bool = False,
    around: tuple[Callable[..., Any], ...] = (),
) -> Links:
    """Returns the kernels of links. `when` is one of CREDITS; `others` take the place of the
    functions of their names above, where routers are not ideal or nodes push back; `lanes`: packets
    of a node have a choice of channels; `around` take the place of those of their names too, and
    call these as `plain` (`odonata.agents.tracing`)."""
    names: dict[str, Any] = {"WHEN": when, "LANES": lanes}
    ours = {each.__name__: each for each in others}
    for usual in (given_back, collect, expected, promised, repay, refund, leave, eject, launch,
                  free_lane, soonest_lane, pump, send, free):  # fmt: skip
        name = getattr(usual, "__name__", "")
        template = ours.get(name, getattr(usual, "py_func", usual))
        names[name] = kernel(rebound(template, name, **names))
        for each in around:
            if each.__name__ == name:
                names[name] = kernel(rebound(each, name, plain=names[name]))
    return Links(*(names[name] for name in Links._fields))
