"""The invariants of the network (credits, buffers, bytes) and the search for deadlocks.

Every channel's credit is, at every instant, its buffer less the bytes that were sent there and
whose credit has not returned: those that move towards it, those blocked behind it, and those whose
credit is on its way. All of these can be counted from the pending events and the parcels, so the
books are kept twice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from odonata.agents import layout as w
from odonata.agents import packet as p
from odonata.agents.description import NetworkDescription
from odonata.agents.layout import State
from odonata.agents.link import FEEDER_BITS, FEEDER_HERE, UNLIMITED
from odonata.agents.power import check_energy
from odonata.agents.switch_audit import (
    channel_name,
    check_crossbars,
    feeders_of,
    waits_in_crossbars,
)
from odonata.agents.task import check_slots
from odonata.jobs.board import DONE, JOB_ENERGY_J, STATUS
from pdes.dealing import chained
from pdes.events import AGENT_MASK, FOREVER, KEY, KIND_SHIFT, PORT_BITS, PORT_MASK, TIME, A, Rows


def _inputs(network: NetworkDescription, state: State, pending: Rows) -> tuple[Rows, Rows]:
    """Returns, for the packets on their way to a router or to a half-duplex node, the port rows
    that they arrive at and their numbers."""
    m, kinds = network.machine, pending[:, KEY] >> KIND_SHIFT
    moving = (kinds == w.ARRIVE) | (kinds == w.REACH)
    keys = pending[moving, KEY]
    agents, ports = (keys >> PORT_BITS) & AGENT_MASK, keys & PORT_MASK
    group = (agents >> network.agent_bits) - network.offset - state.shape[w.FIRST_GROUP]
    index = agents & ((1 << network.agent_bits) - 1)
    node = m.routers * m.radix + index - m.routers
    inside = np.where(index < m.routers, index * m.radix + ports, node)
    return group * m.routers * (m.radix + m.nodes) + inside, pending[moving, A]


def _channels(state: State) -> Rows:
    return state.ports[:, 1:]  # type: ignore[no-any-return]


def _occupied(state: State, parcels: Rows, numbers: Rows) -> tuple[Rows, Rows, Rows]:
    """Returns which of these packets are in a router, and port row and VC of the input that each of
    those occupies."""
    came = parcels[numbers, p.CAME]
    inside = came >= 0
    came = came[inside]
    rows = came >> FEEDER_BITS
    rows = np.where(came & FEEDER_HERE, state.ports[rows, 0, w.FAR], rows)
    return inside, rows, came & p.VC_MASK


def held(network: NetworkDescription, state: State, pending: Rows, parcels: Rows) -> Rows:
    """Returns the bytes that each input buffer of this rank holds or expects: by port and VC."""
    total = np.zeros(state.slow.shape[:2], np.int64)
    rows, numbers = _inputs(network, state, pending)
    vcs = (parcels[numbers, p.PATH] >> p.VC_SHIFT) & p.VC_MASK
    np.add.at(total, (rows, vcs), parcels[numbers, p.SIZE])
    if len(state.ejection):
        total[_nics(network, state), 0] += state.ejection[:, w.E_BYTES]
    if network.switched:
        return total + state.queues[:, :, w.Q_BYTES]  # type: ignore[no-any-return]
    _, blocked = chained(parcels, _channels(state)[:, :, w.HEAD].reshape(-1))
    inside, rows, vcs = _occupied(state, parcels, blocked)
    np.add.at(total, (rows, vcs), parcels[blocked[inside], p.SIZE])
    return total


def check(network: NetworkDescription, state: State, pending: Rows, parcels: Rows) -> None:
    ports, channels = state.ports[:, 0], _channels(state)
    limited = ports[:, w.CAPACITY] < UNLIMITED
    capacity = np.broadcast_to(ports[:, w.CAPACITY, None], channels.shape[:2])
    which, numbers = chained(parcels, channels[:, :, w.RETURNS].reshape(-1))
    returning = np.bincount(which, parcels[numbers, p.ROOM], capacity.size)
    returning = returning.astype(np.int64).reshape(capacity.shape)
    credit = channels[:, :, w.CREDIT]
    assert (credit >= 0).all(), "a channel's credit is negative"
    assert (credit + returning <= capacity).all(), "more credit than there is buffer"

    which, numbers = chained(parcels, channels[:, :, w.HEAD].reshape(-1))
    waiting = np.bincount(which, parcels[numbers, p.SIZE], capacity.size)
    counted = state.slow[:, :, w.WAITING].reshape(-1)
    assert (waiting == counted).all(), "a channel's blocked bytes are not those in its chain"

    soonest = np.full(capacity.size, FOREVER)
    chain, numbers = chained(parcels, channels[:, :, w.RETURNS].reshape(-1))
    np.minimum.at(soonest, chain, parcels[numbers, p.DUE])
    noted = channels[:, :, w.SOONEST].reshape(-1)
    assert (soonest == noted).all(), "a channel does not know when its next credit is due"
    _check_wakes(network, state, pending, parcels)

    if network.switched:
        check_crossbars(network, state, pending, parcels)
    check_slots(state.slots)
    if network.power:
        check_energy(state)
    inputs = held(network, state, pending, parcels)
    known = limited & (ports[:, w.FAR] >= 0)
    spent = (capacity - credit - returning)[known]
    assert (spent == inputs[ports[known, w.FAR]]).all(), "credit was lost or made up"
    buffers = np.zeros(len(ports), np.int64)
    buffers[ports[known, w.FAR]] = ports[known, w.CAPACITY]
    buffers[ports[:, w.FAR] < 0] = np.iinfo(np.int64).max  # its feeder's books are on another rank
    assert (inputs <= buffers[:, None]).all(), "a buffer is over-full"


def _check_wakes(network: NetworkDescription, state: State, pending: Rows, parcels: Rows) -> None:
    """Check for every channel with a blocked packet that an event will serve it by the time its
    next credit is due, and that its first packet really has to wait."""
    heads, vcs = _channels(state)[:, :, w.HEAD].reshape(-1), state.slow.shape[1]
    stuck = np.flatnonzero(heads >= 0)
    if not len(stuck):
        return
    rows, vc = stuck // vcs, stuck % vcs
    soonest, credit = (state.ports[rows, 1 + vc, word] for word in (w.SOONEST, w.CREDIT))
    wake = state.slow[rows, vc, w.WAKE]
    assert (wake <= soonest).all(), "nobody will see to a blocked channel when its credit is due"
    wanted = np.minimum(parcels[heads[stuck], p.SIZE], network.packet_bytes)
    could = wanted <= credit
    waking = pending[pending[:, KEY] >> KIND_SHIFT == w.CREDIT_DUE]
    events = set(map(tuple, waking[:, [TIME, KEY]].tolist()))
    names = _names(network, state)[stuck]
    for name, time in zip(names[wake < FOREVER], wake[wake < FOREVER], strict=True):
        assert (int(time), int(name)) in events, "a channel waits for an event that is not there"
    assert (wake[could] < FOREVER).all(), "a packet is blocked although there is credit for it"


def findings(
    network: NetworkDescription, state: State, pending: Rows, parcels: Rows
) -> dict[str, Any]:
    """Returns what `conclude` needs from each rank: bytes on their way and blocked; each blocked
    channel with its buffer's size and its first packet's; each blocked packet's channel with that
    which fed it."""
    kinds = pending[:, KEY] >> KIND_SHIFT
    outside = pending[:, KEY] & PORT_MASK < w.WITHIN
    travels = (kinds == w.ARRIVE) | (kinds == w.REACH) | ((kinds == w.DELIVER) & outside)
    moving = pending[travels, A]
    ports, channels, vcs = state.ports[:, 0], _channels(state), state.slow.shape[1]
    heads = channels[:, :, w.HEAD].reshape(-1)
    which, numbers = chained(parcels, heads)
    names = _names(network, state)
    stuck = np.flatnonzero(heads >= 0)
    wanted = np.minimum(parcels[heads[stuck], p.SIZE], network.packet_bytes)
    blocked = np.column_stack((names[stuck], ports[stuck // vcs, w.CAPACITY], wanted))
    waiting = parcels[numbers, p.SIZE].sum()
    if network.switched:
        more, edges, queued = waits_in_crossbars(network, state, names)
        blocked, waiting = np.concatenate((blocked, more)), waiting + queued
    else:
        inside, row, vc = _occupied(state, parcels, numbers)
        feeder = feeders_of(state, row, vc)
        edges = np.column_stack((feeder, names[which[inside]], parcels[numbers[inside], p.SIZE]))
    if len(state.ejection):
        edges = np.concatenate((edges, _waits_at_nodes(network, state, names)))
        waiting += state.ejection[:, w.E_BYTES].sum()
    return {
        "bytes": np.array([[parcels[moving, p.SIZE].sum(), waiting]]),
        "blocked": blocked,
        "waits": edges,
    }


def _nics(network: NetworkDescription, state: State) -> Rows:
    """Returns the rows of the ports of nodes, in machine order."""
    m, groups = network.machine, len(state.histogram)
    own = m.routers * m.radix
    inside = np.arange(own, own + m.routers * m.nodes)
    return (np.arange(groups)[:, None] * m.routers * (m.radix + m.nodes) + inside).reshape(-1)  # type: ignore[no-any-return]


def _waits_at_nodes(network: NetworkDescription, state: State, names: Rows) -> Rows:
    """Returns the packets that half-duplex nodes do not drain because they have something to send:
    the channel that feeds the node, the node's own, and the bytes."""
    nics = _nics(network, state)
    held = (state.ejection[:, w.E_BYTES] > 0) & (state.ports[nics, 1, w.HEAD] >= 0)
    nics = nics[held]
    own = names[nics * state.slow.shape[1]]
    return np.column_stack(
        (feeders_of(state, nics, 0 * nics), own, state.ejection[held, w.E_BYTES])
    )


def _names(network: NetworkDescription, state: State) -> Rows:
    m, groups, vcs = network.machine, len(state.histogram), state.slow.shape[1]
    first = int(state.shape[w.FIRST_GROUP])
    routers, nodes = np.arange(m.routers), np.arange(m.routers * m.nodes)
    agent = np.concatenate((np.repeat(routers, m.radix), m.routers + nodes))
    port = np.concatenate((np.tile(np.arange(m.radix), m.routers), 0 * nodes))
    unit = np.arange(first, first + groups) + network.offset
    group = (unit << network.agent_bits)[:, None]
    names = channel_name(group + agent, port, 0).reshape(-1, 1) + np.arange(vcs)
    return names.reshape(-1)  # type: ignore[no-any-return]


LONG = 4
"""A wait that is longer than the time that has passed, divided by this, is suspicious."""


def long_waits(state: State, time: int) -> int:
    """Returns how many packets have waited for credit or room for a large part of the time."""
    since = time - time // LONG
    heads = _channels(state)[:, :, w.HEAD] >= 0
    late = int((heads & (state.slow[:, :, w.SINCE] < since)).sum())
    lacks = state.queues[:, :, w.Q_LACKS]
    return late + int(((lacks >= 0) & (lacks < since)).sum())


def deadlock(blocked: Rows, waits: Rows) -> list[int]:
    """Returns a cycle of channels each of which waits for the next for ever; empty if there is
    none. A name may stand for a channel's output buffer too, for which packets wait in queues.

    A channel can go on if its first packet fits into the buffer at its far end less what is stuck
    there: blocked in channels that cannot go on. Those that can are struck off until no more are.
    """
    following: dict[int, list[tuple[int, int]]] = {}
    for feeder, channel, size in waits.tolist():
        following.setdefault(feeder, []).append((channel, size))
    needs: dict[int, tuple[int, int]] = {}
    for name, capacity, wanted in blocked.tolist():
        needs[name] = capacity, min(wanted, needs.get(name, (0, wanted))[1])
    dead = set(needs)
    while True:
        alive = set()
        for name in dead:
            capacity, wanted = needs[name]
            stuck = sum(size for other, size in following.get(name, ()) if other in dead)
            if capacity - stuck >= wanted:
                alive.add(name)
        if not alive:
            break
        dead -= alive
    if not dead:
        return []
    at, seen = min(dead), []
    while at not in seen:
        seen.append(at)
        at = min(other for other, _ in following[at] if other in dead)
    return seen[seen.index(at) :]


def words_for(network: NetworkDescription, name: int) -> str:
    """Returns a channel in words, or where its name is negative its output buffer."""
    if name < 0:
        return f"output buffer of {words_for(network, -1 - name)}"
    m, agent = network.machine, name >> PORT_BITS
    port, vc = (name & PORT_MASK) >> w.VC_BITS, name & ((1 << w.VC_BITS) - 1)
    group = (agent >> network.agent_bits) - network.offset
    index = agent & ((1 << network.agent_bits) - 1)
    if index >= m.routers:
        return f"node {group * m.routers * m.nodes + index - m.routers} VC {vc}"
    kind = "terminal" if port < m.nodes else "local" if port < m.nodes + m.routers - 1 else "global"
    return f"router {group * m.routers + index} (group {group}) {kind} port {port} VC {vc}"


def conclude(network: NetworkDescription, outcome: Mapping[str, Any]) -> str | None:
    """Raise AssertionError where bytes were lost, over all ranks; say where it is deadlocked."""
    generated, delivered = (
        outcome["nodes"][:, [w.GENERATED_BYTES, w.DELIVERED_BYTES]].sum(axis=0).tolist()
    )
    moving, blocked = outcome["bytes"].sum(axis=0).tolist()
    assert generated == delivered + moving + blocked, (
        f"{generated} bytes were generated; {delivered} were delivered, {moving} are moving, "
        f"{blocked} wait"
    )
    if network.power and (outcome["board"][:, STATUS] == DONE).all():
        of_jobs, at_nodes = (math.fsum(energies.tolist()) for energies in (
            outcome["accounts"][:, JOB_ENERGY_J], outcome["node_jobs_j"]))  # fmt: skip
        assert abs(of_jobs - at_nodes) <= 1e-9 * at_nodes, (
            f"jobs took {of_jobs} J, as the scheduler was told; their nodes gave {at_nodes} J"
        )
    cycle = deadlock(outcome["blocked"], outcome["waits"])
    if not cycle:
        return None
    return " -> ".join(words_for(network, name) for name in [*cycle, cycle[0]])
