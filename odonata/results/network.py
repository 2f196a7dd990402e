"""What the tables of a network are by: the coordinates of its ports, nodes and groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from odonata.agents.layout import BIN_BITS, BIN_ONE, BINS
from topology import Dragonfly


def of_ports(machine: Dragonfly) -> dict[str, Any]:
    """Returns those of tables by router and port."""
    m = machine
    router, port = np.arange(m.n_routers), np.arange(m.radix)
    kind = np.where(port < m.nodes, "node",
                    np.where(port < m.nodes + m.routers - 1, "local", "global"))  # fmt: skip
    ends = np.full((m.n_routers, m.radix), -1)
    ends[:, m.nodes :] = m.ends()
    return {
        "router": ("router", router),
        "port": ("port", port),
        "group": ("router", router // m.routers),
        "kind": ("port", kind),
        "to_router": (("router", "port"), np.where(ends >= 0, ends // m.radix, -1)),
        "to_port": (("router", "port"), np.where(ends >= 0, ends % m.radix, -1)),
        "lit": (("router", "port"), (ends >= 0) | (port < m.nodes)),
    }


def of_nodes(machine: Dragonfly) -> dict[str, Any]:
    """Returns those of tables by node."""
    node = np.arange(machine.n_nodes)
    router = node // machine.nodes
    return {"node": ("node", node), "router": ("node", router),
            "group": ("node", router // machine.routers)}  # fmt: skip


def of_groups(machine: Dragonfly) -> dict[str, Any]:
    """Returns those of tables by group, and the bins of latencies."""
    edges = ((np.arange(BINS) + BIN_ONE) << BIN_BITS).view(np.float64)
    groups = np.arange(machine.groups)
    return {
        "group": ("group", groups),
        "source_group": ("source_group", groups),
        "from_ps": ("bin", edges, {"unit": "ps", "about": "where a bin of latencies begins"}),
    }
