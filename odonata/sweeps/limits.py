"""The load at which the first link of a machine is full, for routings that do not adapt.

The mean load of every link follows from where messages go (uniform, adversarial, hotspot) and by
which paths (minimal, or Valiant's through a random third group): it is a sum over pairs of groups,
with the machine's own cabling. The network cannot accept more than fills the busiest link.

**It is exact** where that link is full before the nodes' own links are: the messages of every node
are a random mix, and its queue is first in, first out, so that whoever has a message for the full
link holds up all others behind it, and all nodes slow down together. **It is a bound** where it is
1: every node's link would have to be in use all the time, and random traffic leaves gaps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from odonata.agents.network import Network

Floats = npt.NDArray[np.float64]
OBLIVIOUS = ("minimal", "valiant")


class Limit(NamedTuple):
    """The load at which the busiest link is full, of which class that is, and whether the network
    saturates there or, at the latest, there."""

    load: float
    kind: str
    exact: bool

    def __str__(self) -> str:
        return f"{self.load:.3f}" if self.exact else f"at most {self.load:.3f}"


class Loads(NamedTuple):
    """The mean load of every link, per unit of offered load: by node; by group, router and router;
    by group and group, the sum over their cables."""

    eject: Floats
    local: Floats
    across: Floats


def limit(network: Network, routing: str) -> Limit | None:
    """Returns the limit; None where this formula has none: another pattern, a routing that adapts,
    nodes that push back, a network in which other things are full before links are."""
    loads = mean_loads(network, routing)
    if loads is None or network.switched or network.ejection is not None:
        return None
    m = network.machine
    own = m.terminal.bandwidth
    parts = {
        "eject": 1 / float(loads.eject.max()),
        "local": m.local.bandwidth / own / max(1e-12, float(loads.local.max())),
        "global": m.copies * m.global_.bandwidth / own / max(1e-12, float(loads.across.max())),
        "inject": 1.0,
    }
    kind = min(parts, key=lambda name: parts[name])
    return Limit(parts[kind], kind, parts[kind] < 1 - 1e-9)


def mean_loads(network: Network, routing: str) -> Loads | None:
    """Returns the mean loads; None where they are not known."""
    sent = _sent(network)
    if sent is None or routing not in OBLIVIOUS or network.detours or network.via != "group":
        return None
    m, (eject, between) = network.machine, sent
    g, a, h = m.groups, m.routers, max(1, m.global_links)
    by_pair = between.reshape(g, a, g, a).transpose(0, 2, 1, 3)  # source group, group, routers
    local = by_pair[np.arange(g), np.arange(g)].copy()
    across = np.zeros((g, g))
    if g > 1:
        leave, enter = by_pair.sum(axis=3), by_pair.sum(axis=2)
        leave[np.arange(g), np.arange(g)] = enter[np.arange(g), np.arange(g)] = 0
        total = leave.sum(axis=2)
        gates = m.gates()
        out = gates // h  # [group, other group, cable] its router in the group
        ends = np.asarray(m.far())[np.arange(g)[:, None, None], gates.clip(min=0)] % (a * h) // h
        if routing == "valiant" and g > 2:
            _through(total, out, ends, local)
            # by way of m goes what is neither for m nor within the group
            leave = (leave.sum(axis=1, keepdims=True) - leave) / (g - 2)
            enter = (enter.sum(axis=0, keepdims=True) - enter) / (g - 2)
            first = (total.sum(axis=1, keepdims=True) - total) / (g - 2)
            across = first + (total.sum(axis=0, keepdims=True) - total) / (g - 2)
            np.fill_diagonal(across, 0)
        else:
            across = total
        some = ~np.eye(g, dtype=bool)
        for cable in range(m.copies):
            i, j = np.nonzero(some)
            np.add.at(local.transpose(0, 2, 1), (i, out[i, j, cable]), leave[i, j] / m.copies)
            np.add.at(local, (j, ends[i, j, cable]), enter[i, j] / m.copies)
    local[:, np.arange(a), np.arange(a)] = 0
    return Loads(eject, local, across)


def _through(total: Floats, out: Any, ends: Any, local: Floats) -> None:
    """Add what crosses a third group: from the router where it comes in to that where it leaves."""
    g, copies = len(total), out.shape[2]
    source, middle, goal = np.indices((g, g, g)).reshape(3, -1)
    apart = (source != middle) & (middle != goal) & (source != goal)
    source, middle, goal = source[apart], middle[apart], goal[apart]
    each = total[source, goal] / (g - 2) / copies**2
    for one in range(copies):
        for two in range(copies):
            np.add.at(local, (middle, ends[source, middle, one], out[middle, goal, two]), each)


def _sent(network: Network) -> tuple[Floats, Floats] | None:
    """Returns what comes to each node, and what each router sends to each other, per unit of load
    of every node; None for patterns of which this is not known."""
    m, traffic = network.machine, network.traffic[0]
    n, p, group = m.n_nodes, m.nodes, m.routers * m.nodes
    routers = np.arange(m.n_routers)
    if traffic.pattern == "uniform":
        return np.ones(n), np.full((m.n_routers, m.n_routers), p * p / (n - 1))
    if traffic.pattern == "adversarial":
        ahead = (routers[None] // m.routers - routers[:, None] // m.routers) % m.groups
        there = ahead == traffic.stride % m.groups
        return np.ones(n), there * (p * p / group)
    if traffic.pattern != "hotspot":
        return None
    hot = np.zeros(n)
    hot[:: traffic.hot_every] = 1
    each = traffic.hot / hot.sum()  # to each hot node; one that hits itself sends to any other
    back = each * hot.sum()
    eject = 1 - traffic.hot + hot * each * (n - 1) + (back - hot * each) / (n - 1)
    by_router = hot.reshape(-1, p).sum(axis=1)
    between = ((1 - traffic.hot) * p + by_router * each)[:, None] * np.full(
        m.n_routers, p / (n - 1)
    )
    return eject, between + p * each * by_router[None]
