"""The ports and the crossbars of a rank, as arrays of `State`, before anything has happened."""

from __future__ import annotations

from typing import Any

import numpy as np

from odonata.agents import layout as w
from odonata.agents.description import NetworkDescription, rate_of
from odonata.agents.link import UNLIMITED
from pdes.arrays import aligned
from pdes.events import FOREVER, Rows, pack
from topology.dragonfly import LinkClass


def port_lines(network: NetworkDescription, g0: int, g1: int) -> Rows:
    """Returns a group's rows of ports: those of its routers, one router after the other, then
    its nodes'."""
    m = network.machine
    p, a, radix, groups = m.nodes, m.routers, m.radix, g1 - g0
    per_group = a * (radix + p)
    lines = aligned((groups, per_group, 1 + network.channels, w.LINE))
    rows = np.zeros((groups, per_group, w.LINE), np.int64)
    agents = ((np.arange(g0, g1) + network.offset) << network.agent_bits)[:, None, None]
    r = np.arange(a)[None, :, None]
    ports = np.zeros((groups, a, radix, w.LINE), np.int64)

    k = np.arange(p)[None, None, :]
    part = ports[:, :, :p]
    _fill(part, m.terminal, UNLIMITED if network.ejection is None else network.ejection_buffer)
    kind = w.REACH if network.duplex == "half" else w.DELIVER
    part[..., w.FAR_KEY] = pack(kind, agents + a + r * p + k, 0)

    _fill(ports[:, :, p : p + a - 1], m.local, network.local_buffer)
    _fill(ports[:, :, p + a - 1 :], m.global_, network.global_buffer)
    ends = m.ends()[g0 * a : g1 * a].reshape(groups, a, radix - p)
    far, far_port = ends // radix, ends % radix
    group, place = far // a, far % a
    to = pack(w.ARRIVE, ((group + network.offset) << network.agent_bits) + place, far_port)
    ports[:, :, p:, w.FAR_KEY] = np.where(ends >= 0, to, 0)

    nics = rows[:, a * radix :]
    i = np.arange(a * p)[None, :]
    _fill(nics, m.terminal, network.terminal_buffer)
    nics[..., w.FAR_KEY] = pack(w.ARRIVE, agents[:, :, 0] + i // p, i % p)
    rows[:, : a * radix] = ports.reshape(groups, a * radix, w.LINE)
    rows[..., w.FAR] = far_here(network, g0, g1).reshape(groups, per_group)
    lines[:, :, 0] = rows
    lines[:, :, 1:, w.CREDIT] = rows[:, :, None, w.CAPACITY]
    lines[:, :, 1:, w.RETURNS] = lines[:, :, 1:, w.HEAD] = -1
    lines[:, :, 1:, w.SOONEST] = FOREVER
    return lines.reshape(-1, 1 + network.channels, w.LINE)


def far_rows(network: NetworkDescription, g0: int, g1: int) -> Rows:
    """Returns for each port of these groups the row of the port at the other end of its link, among
    those of the whole machine; -1 where there is none."""
    m = network.machine
    p, a, radix, groups = m.nodes, m.routers, m.radix, g1 - g0
    per_group = a * (radix + p)
    base = np.arange(g0, g1)[:, None, None] * per_group
    far = np.full((groups, per_group), -1)
    ports, nics = far[:, : a * radix].reshape(groups, a, radix), far[:, a * radix :]
    ends = m.ends()[g0 * a : g1 * a].reshape(groups, a, radix - p)
    router, port = np.divmod(ends, radix)
    there = router // a * per_group + router % a * radix + port
    ports[:, :, :p] = base + a * radix + np.arange(a)[:, None] * p + np.arange(p)
    ports[:, :, p:] = np.where(ends >= 0, there, -1)
    i = np.arange(a * p)
    nics[:] = base[:, :, 0] + (i // p) * radix + i % p
    far[:, : a * radix] = ports.reshape(groups, a * radix)
    return far.reshape(-1)


def far_here(network: NetworkDescription, g0: int, g1: int) -> Rows:
    """Returns the same for a rank with these groups, among its own rows; -1 also where the other
    end is on another rank."""
    m, far = network.machine, far_rows(network, g0, g1)
    first, last = (group * m.routers * (m.radix + m.nodes) for group in (g0, g1))
    return np.where((far >= first) & (far < last), far - first, -1)


def _fill(part: Rows, link: LinkClass, capacity: int) -> None:
    part[..., w.RATE], part[..., w.LATENCY], part[..., w.CAPACITY] = (
        rate_of(link), link.latency_ps, capacity
    )  # fmt: skip


def crossbars(network: NetworkDescription, g0: int, g1: int, ports: int) -> dict[str, Any]:
    """Returns the arrays of `State` that are about crossbars and ejection."""
    m, vcs, switched = network.machine, network.channels, network.switched
    rows, routers = (ports, (g1 - g0) * m.routers) if switched else (0, 0)
    queues = aligned((rows, vcs, w.QUEUE_WORDS))
    queues[:, :, [w.Q_HEAD, w.Q_WANTS, w.Q_LACKS, w.Q_SERVED]] = -1
    queues[:, :, w.C_LAST :] = -1
    crossing = np.zeros((rows, len(w.CROSSING)), np.int64)
    crossing[:, w.OUT_LAST] = -1
    rooms = np.zeros((rows if network.buffered else 0, vcs, w.LINE), np.int64)
    rooms[:, :, w.RETURNS], rooms[:, :, w.SOONEST] = -1, FOREVER
    rooms[:, :, w.CREDIT] = network.output_buffer or 0
    waking = np.zeros((routers, len(w.OF_ROUTER)), np.int64)
    waking[:, w.R_WAKE] = FOREVER
    nodes = (g1 - g0) * m.routers * m.nodes if network.duplex == "half" else 0
    holding = np.zeros((nodes, len(w.DRAIN)), np.int64)
    holding[:, w.E_HEAD] = -1
    return {
        "crossing": crossing,
        "queues": queues,
        "rooms": rooms,
        "routers": waking,
        "requests": np.zeros((routers, m.radix * vcs * switched), np.int64),
        "ejection": holding,
    }
