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

from odonata.agents.configuration import Configuration
from odonata.agents.layout import (
    ARRIVE,
    CAPACITY,
    CREDIT,
    CREDIT_DUE,
    DELIVER,
    DELIVERED_BYTES,
    FAR,
    FAR_KEY,
    FIRST_GROUP,
    GENERATED_BYTES,
    HEAD,
    RETURNS,
    SOONEST,
    VC_BITS,
    WAITING,
    WAKE,
    WITHIN,
    State,
)
from odonata.agents.link import FEEDER_BITS, FEEDER_HERE, UNLIMITED
from odonata.agents.packet import CAME, DUE, PATH, ROOM, SIZE, VC_MASK, VC_SHIFT
from odonata.agents.power import check_energy
from odonata.agents.task import check_slots
from odonata.jobs.board import DONE, JOB_ENERGY_J, STATUS
from pdes.events import AGENT_MASK, FOREVER, KEY, KIND_SHIFT, PORT_BITS, PORT_MASK, TIME, A, Rows
from pdes.parcels import NEXT


def chained(parcels: Rows, heads: Rows) -> tuple[Rows, Rows]:
    """Returns every parcel in the chains that begin at `heads` (-1: none), and whose chain it is
    in."""
    which, numbers = [], []
    here = np.flatnonzero(heads >= 0)
    at = heads[here]
    while len(at):
        which.append(here)
        numbers.append(at)
        at = parcels[at, NEXT]
        here, at = here[at >= 0], at[at >= 0]
    if not which:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    return np.concatenate(which), np.concatenate(numbers)


def _inputs(network: Configuration, state: State, pending: Rows) -> tuple[Rows, Rows]:
    """Returns, for the packets on their way to a router, the port rows they arrive at and their
    numbers."""
    m, keys = network.machine, pending[:, KEY]
    moving = keys >> KIND_SHIFT == ARRIVE
    agents, ports = (keys[moving] >> PORT_BITS) & AGENT_MASK, keys[moving] & PORT_MASK
    group = (agents >> network.agent_bits) - network.offset - state.shape[FIRST_GROUP]
    router = agents & ((1 << network.agent_bits) - 1)
    rows = group * m.routers * (m.radix + m.nodes) + router * m.radix + ports
    return rows, pending[moving, A]


def _channels(state: State) -> Rows:
    return state.ports[:, 1:]  # type: ignore[no-any-return]


def _occupied(state: State, parcels: Rows, numbers: Rows) -> tuple[Rows, Rows, Rows]:
    """Returns which of these packets are in a router, and port row and VC of the input that each of
    those occupies."""
    came = parcels[numbers, CAME]
    inside = came >= 0
    came = came[inside]
    rows = came >> FEEDER_BITS
    rows = np.where(came & FEEDER_HERE, state.ports[rows, 0, FAR], rows)
    return inside, rows, came & VC_MASK


def held(network: Configuration, state: State, pending: Rows, parcels: Rows) -> Rows:
    """Returns the bytes that each input buffer of this rank holds or expects: by port and VC."""
    total = np.zeros(state.slow.shape[:2], np.int64)
    rows, numbers = _inputs(network, state, pending)
    vcs = (parcels[numbers, PATH] >> VC_SHIFT) & VC_MASK
    np.add.at(total, (rows, vcs), parcels[numbers, SIZE])
    _, blocked = chained(parcels, _channels(state)[:, :, HEAD].reshape(-1))
    inside, rows, vcs = _occupied(state, parcels, blocked)
    np.add.at(total, (rows, vcs), parcels[blocked[inside], SIZE])
    return total


def check(network: Configuration, state: State, pending: Rows, parcels: Rows) -> None:
    ports, channels = state.ports[:, 0], _channels(state)
    limited = ports[:, CAPACITY] < UNLIMITED
    capacity = np.broadcast_to(ports[:, CAPACITY, None], channels.shape[:2])
    which, numbers = chained(parcels, channels[:, :, RETURNS].reshape(-1))
    returning = np.bincount(which, parcels[numbers, ROOM], capacity.size)
    returning = returning.astype(np.int64).reshape(capacity.shape)
    credit = channels[:, :, CREDIT]
    assert (credit >= 0).all(), "a channel's credit is negative"
    assert (credit + returning <= capacity).all(), "more credit than there is buffer"

    which, numbers = chained(parcels, channels[:, :, HEAD].reshape(-1))
    waiting = np.bincount(which, parcels[numbers, SIZE], capacity.size)
    counted = state.slow[:, :, WAITING].reshape(-1)
    assert (waiting == counted).all(), "a channel's blocked bytes are not those in its chain"

    soonest = np.full(capacity.size, FOREVER)
    chain, numbers = chained(parcels, channels[:, :, RETURNS].reshape(-1))
    np.minimum.at(soonest, chain, parcels[numbers, DUE])
    noted = channels[:, :, SOONEST].reshape(-1)
    assert (soonest == noted).all(), "a channel does not know when its next credit is due"
    _check_wakes(network, state, pending, parcels)

    check_slots(state.slots)
    if network.power:
        check_energy(state)
    inputs = held(network, state, pending, parcels)
    known = limited & (ports[:, FAR] >= 0)
    spent = (capacity - credit - returning)[known]
    assert (spent == inputs[ports[known, FAR]]).all(), "credit was lost or made up"
    buffers = np.zeros(len(ports), np.int64)
    buffers[ports[known, FAR]] = ports[known, CAPACITY]
    buffers[ports[:, FAR] < 0] = np.iinfo(np.int64).max  # its feeder's books are on another rank
    assert (inputs <= buffers[:, None]).all(), "a buffer is over-full"


def _check_wakes(network: Configuration, state: State, pending: Rows, parcels: Rows) -> None:
    """Check for every channel with a blocked packet that an event will serve it by the time its
    next credit is due, and that its first packet really has to wait."""
    heads, vcs = _channels(state)[:, :, HEAD].reshape(-1), state.slow.shape[1]
    stuck = np.flatnonzero(heads >= 0)
    if not len(stuck):
        return
    rows, vc = stuck // vcs, stuck % vcs
    soonest, credit = (state.ports[rows, 1 + vc, word] for word in (SOONEST, CREDIT))
    wake = state.slow[rows, vc, WAKE]
    assert (wake <= soonest).all(), "nobody will see to a blocked channel when its credit is due"
    wanted = np.minimum(parcels[heads[stuck], SIZE], network.packet_bytes)
    could = wanted <= credit
    waking = pending[pending[:, KEY] >> KIND_SHIFT == CREDIT_DUE]
    events = set(map(tuple, waking[:, [TIME, KEY]].tolist()))
    names = _names(network, state)[stuck]
    for name, time in zip(names[wake < FOREVER], wake[wake < FOREVER], strict=True):
        assert (int(time), int(name)) in events, "a channel waits for an event that is not there"
    assert (wake[could] < FOREVER).all(), "a packet is blocked although there is credit for it"


def findings(network: Configuration, state: State, pending: Rows, parcels: Rows) -> dict[str, Any]:
    """Returns what `conclude` needs from each rank: bytes on their way and blocked; each blocked
    channel with its buffer's size and its first packet's; each blocked packet's channel with that
    which fed it."""
    kinds = pending[:, KEY] >> KIND_SHIFT
    outside = pending[:, KEY] & PORT_MASK < WITHIN
    moving = pending[(kinds == ARRIVE) | ((kinds == DELIVER) & outside), A]
    ports, channels, vcs = state.ports[:, 0], _channels(state), state.slow.shape[1]
    heads = channels[:, :, HEAD].reshape(-1)
    which, numbers = chained(parcels, heads)
    names = _names(network, state)
    stuck = np.flatnonzero(heads >= 0)
    wanted = np.minimum(parcels[heads[stuck], SIZE], network.packet_bytes)
    inside, row, vc = _occupied(state, parcels, numbers)
    feeders = ports[row, FAR_KEY]
    feeder = _name((feeders >> PORT_BITS) & AGENT_MASK, feeders & PORT_MASK, vc)
    edges = np.column_stack((feeder, names[which[inside]], parcels[numbers[inside], SIZE]))
    return {
        "bytes": np.array([[parcels[moving, SIZE].sum(), parcels[numbers, SIZE].sum()]]),
        "blocked": np.column_stack((names[stuck], ports[stuck // vcs, CAPACITY], wanted)),
        "waits": edges,
    }


def _name(agent: Any, port: Any, vc: Any) -> Any:
    """Returns a number for a channel that means the same on every rank."""
    return (agent << PORT_BITS) | (port << VC_BITS) | vc


def _names(network: Configuration, state: State) -> Rows:
    m, groups, vcs = network.machine, len(state.histogram), state.slow.shape[1]
    first = int(state.shape[FIRST_GROUP])
    routers, nodes = np.arange(m.routers), np.arange(m.routers * m.nodes)
    agent = np.concatenate((np.repeat(routers, m.radix), m.routers + nodes))
    port = np.concatenate((np.tile(np.arange(m.radix), m.routers), 0 * nodes))
    unit = np.arange(first, first + groups) + network.offset
    group = (unit << network.agent_bits)[:, None]
    names = _name(group + agent, port, 0).reshape(-1, 1) + np.arange(vcs)
    return names.reshape(-1)  # type: ignore[no-any-return]


def deadlock(blocked: Rows, waits: Rows) -> list[int]:
    """Returns a cycle of channels each of which waits for the next for ever; empty if there is
    none.

    A channel can go on if its first packet fits into the buffer at its far end less what is stuck
    there: blocked in channels that cannot go on. Those that can are struck off until no more are.
    """
    following: dict[int, list[tuple[int, int]]] = {}
    for feeder, channel, size in waits.tolist():
        following.setdefault(feeder, []).append((channel, size))
    needs = {name: (capacity, wanted) for name, capacity, wanted in blocked.tolist()}
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


def words_for(network: Configuration, name: int) -> str:
    """Returns a channel in words."""
    m, agent = network.machine, name >> PORT_BITS
    port, vc = (name & PORT_MASK) >> VC_BITS, name & ((1 << VC_BITS) - 1)
    group = (agent >> network.agent_bits) - network.offset
    index = agent & ((1 << network.agent_bits) - 1)
    if index >= m.routers:
        return f"node {group * m.routers * m.nodes + index - m.routers} VC {vc}"
    kind = "terminal" if port < m.nodes else "local" if port < m.nodes + m.routers - 1 else "global"
    return f"router {group * m.routers + index} (group {group}) {kind} port {port} VC {vc}"


def conclude(network: Configuration, outcome: Mapping[str, Any]) -> str | None:
    """Raise AssertionError where bytes were lost, over all ranks; say where it is deadlocked."""
    generated, delivered = (
        outcome["nodes"][:, [GENERATED_BYTES, DELIVERED_BYTES]].sum(axis=0).tolist()
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
