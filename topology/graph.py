"""The machine as a networkx graph: for analysis, drawing and export."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx

from topology.dragonfly import Dragonfly

Graph = Any
"""A networkx.MultiGraph; networkx has no types."""


def graph(machine: Dragonfly, nodes: bool = False) -> Graph:
    """Returns the machine as a graph. Routers are 0 … n−1 (kind, group, router); with `nodes`, node
    k is the vertex 'n<k>'.

    An edge has its kind, bandwidth (bytes per second), latency_ps, and the port at each end:
    `low_port` at the router with the lower number (a node has one port, 0), `high_port` at the
    other, since an undirected edge does not remember which end came first.
    """
    whole = nx.MultiGraph()
    for router in range(machine.n_routers):
        group, r = divmod(router, machine.routers)
        whole.add_node(router, kind="router", group=group, router=r)
    for router in range(machine.n_routers):
        for cable in machine.neighbours(router):
            link = machine.link(cable.kind)
            data = {"kind": cable.kind, "bandwidth": link.bandwidth, "latency_ps": link.latency_ps,
                    "low_port": cable.port, "high_port": cable.far_port}  # fmt: skip
            if cable.kind != "terminal":
                if router < cable.far:
                    whole.add_edge(router, cable.far, **data)
            elif nodes:
                group, r = divmod(router, machine.routers)
                whole.add_node(f"n{cable.far}", kind="node", group=group, router=r)
                whole.add_edge(router, f"n{cable.far}", **data)
    return whole


def write_graphml(machine: Dragonfly, path: str | Path, nodes: bool = True) -> None:
    """Write the graph as GraphML, for Gephi, yEd, igraph, or `networkx.read_graphml`."""
    nx.write_graphml(graph(machine, nodes), path)
