"""The invariants of crossbars, and who waits for whom in them (`odonata.agents.audit`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from odonata.agents import layout as w
from odonata.agents.description import NetworkDescription
from odonata.agents.layout import State
from odonata.agents.packet import ROOM, SIZE, VC_MASK
from pdes.dealing import chained
from pdes.events import AGENT_MASK, FOREVER, KEY, KIND_SHIFT, PORT_BITS, PORT_MASK, TIME, Rows


def channel_name(agent: Any, port: Any, vc: Any) -> Any:
    """Returns a number for a channel that means the same on every rank."""
    return (agent << PORT_BITS) | (port << w.VC_BITS) | vc


def feeders_of(state: State, rows: Rows, vcs: Rows) -> Rows:
    """Returns the names of the channels that feed the inputs of these port rows and VCs."""
    far = state.ports[rows, 0, w.FAR_KEY]
    return channel_name((far >> PORT_BITS) & AGENT_MASK, far & PORT_MASK, vcs)  # type: ignore[no-any-return]


def _rows(network: NetworkDescription, state: State) -> Rows:
    """Returns the rows of the ports of routers, by router and port."""
    m, groups = network.machine, len(state.histogram)
    inside = np.arange(m.routers * m.radix).reshape(m.routers, m.radix)
    first = np.arange(groups) * m.routers * (m.radix + m.nodes)
    return (first[:, None, None] + inside).reshape(-1, m.radix)


def _wanted(network: NetworkDescription, state: State) -> tuple[Rows, Rows, Rows, Rows]:
    """Returns of every queue that has a request its port row and VC, and the port row and VC of the
    channel that it wants."""
    rows, vcs = np.nonzero(state.queues[:, :, w.Q_WANTS] >= 0)
    wants = state.queues[rows, vcs, w.Q_WANTS]
    per_group, radix = int(state.shape[6]), network.machine.radix
    base = rows // per_group * per_group + rows % per_group // radix * radix
    return rows, vcs, base + (wants >> w.VC_BITS), wants & VC_MASK


def check_crossbars(
    network: NetworkDescription, state: State, pending: Rows, parcels: Rows
) -> None:
    """Raise AssertionError where queues, rooms or requests are not what they should be."""
    queues, vcs = state.queues, state.queues.shape[1]
    which, numbers = chained(parcels, queues[:, :, w.Q_HEAD].reshape(-1))
    waiting = np.bincount(which, parcels[numbers, SIZE], queues[:, :, 0].size)
    assert (waiting == queues[:, :, w.Q_BYTES].reshape(-1)).all(), "a queue's bytes are not its own"
    rows = _rows(network, state)
    if network.buffered:
        which, numbers = chained(parcels, state.rooms[:, :, w.RETURNS].reshape(-1))
        returning = np.bincount(which, parcels[numbers, ROOM], state.rooms[:, :, 0].size)
        total = state.rooms[:, :, w.CREDIT] + returning.reshape(-1, vcs).astype(np.int64)
        total += state.slow[:, :, w.WAITING]
        assert (state.rooms[:, :, w.CREDIT] >= 0).all(), "an output buffer is over-full"
        found = total[rows.reshape(-1)]
        assert (found == network.output_buffer).all(), "room in an output buffer was lost"
    asks = (queues[rows][..., w.Q_HEAD] >= 0).sum(axis=(1, 2))
    assert (asks == state.routers[:, w.R_COUNT]).all(), "a router's requests are not its queues'"
    row, vc, out, out_vc = _wanted(network, state)
    first = queues[row, vc]
    lines = state.rooms[out, out_vc] if network.buffered else state.ports[out, 1 + out_vc]
    lacks = lines[:, w.CREDIT] < first[:, w.Q_SIZE]
    assert (lacks == (first[:, w.Q_LACKS] >= 0)).all(), "a packet lacks room that is there, or not"
    assert (first[:, w.Q_SIZE] == parcels[first[:, w.Q_HEAD], SIZE]).all(), "a stale request"
    ready = np.maximum(state.crossing[row, w.IN_UNTIL], state.crossing[out, w.OUT_UNTIL])
    ready = np.where(lacks, lines[:, w.SOONEST], ready)
    channel = queues[out, out_vc, w.C_FREE_AT + first[:, w.Q_CHANNEL]]
    channel = np.where(lacks, np.minimum(channel, lines[:, w.SOONEST]), channel)
    ready = np.where(first[:, w.Q_HOLDS] == 0, channel, ready)
    of_row = np.zeros(len(state.ports), np.int64)
    of_row[rows] = np.arange(len(rows))[:, None]
    wakes = state.routers[:, w.R_WAKE]
    assert (wakes[of_row[row]] <= ready).all(), "nobody will see to a packet when it can cross"
    behind = np.nonzero((queues[:, :, w.Q_HEAD] >= 0) & (queues[:, :, w.Q_WANTS] < 0))
    ends = queues[behind][:, w.Q_NEXT_AT]
    assert (wakes[of_row[behind[0]]] <= ends).all(), "nobody will see to the next of a queue"
    events = pending[pending[:, KEY] >> KIND_SHIFT == w.SWITCH]
    agents = (events[:, KEY] >> PORT_BITS) & AGENT_MASK
    there = set(zip(agents.tolist(), events[:, TIME].tolist(), strict=True))
    m, groups = network.machine, len(state.histogram)
    unit = np.arange(groups) + int(state.shape[w.FIRST_GROUP]) + network.offset
    names = ((unit << network.agent_bits)[:, None] + np.arange(m.routers)).reshape(-1)
    for agent, time in zip(names[wakes < FOREVER], wakes[wakes < FOREVER], strict=True):
        assert (int(agent), int(time)) in there, "a router waits for an event that is not there"


def waits_in_crossbars(
    network: NetworkDescription, state: State, names: Rows
) -> tuple[Rows, Rows, Any]:  # fmt: skip
    """Returns the channels, and as negative names the output buffers, that packets of input queues
    lack room in, each with the size of that buffer and of the packet; then who waits for whom, with
    the bytes: the channel that feeds a queue and what the queue's first packet lacks, and an output
    buffer and the channel behind it; and the bytes in all queues. A packet waits for room also
    while another has been assigned its channel and lacks it."""
    row, vc, out, out_vc = _wanted(network, state)
    queues, vcs = state.queues, state.queues.shape[1]
    first = queues[row, vc]
    holds, channel = first[:, w.Q_HOLDS] != 0, (out * vcs + out_vc) * 2 + first[:, w.Q_CHANNEL]
    lacks = holds & (first[:, w.Q_LACKS] >= 0)
    waits = lacks | (~holds & np.isin(channel, channel[lacks]))
    wants = names[out * vcs + out_vc]
    if network.buffered:
        wants, sizes = -1 - wants, np.full(len(wants), network.output_buffer)
    else:
        sizes = state.ports[out, 0, w.CAPACITY]
    blocked = np.column_stack((wants, sizes, first[:, w.Q_SIZE]))[lacks]
    edges = np.column_stack((feeders_of(state, row, vc), wants, first[:, w.Q_BYTES]))[waits]
    if network.buffered:
        rows = _rows(network, state).reshape(-1)
        every = (rows[:, None] * vcs + np.arange(vcs)).reshape(-1)
        held = state.slow[:, :, w.WAITING].reshape(-1)[every]
        every, held = every[held > 0], held[held > 0]
        behind = np.column_stack((-1 - names[every], names[every], held))
        edges = np.concatenate((edges, behind))
    return blocked, edges, queues[:, :, w.Q_BYTES].sum()
