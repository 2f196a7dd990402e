"""Traced networks in tests: a run whose packets are all followed, and the sums over their paths."""

from __future__ import annotations

from typing import Any

import numpy as np

from odonata.agents.layout import (
    DELIVERED,
    DELIVERED_BYTES,
    HOPS,
    LAST_IN,
    LATENCY_SUM,
    LONGEST,
)
from odonata.agents.metrics import COUNTERS
from odonata.agents.network import Network
from odonata.agents.tracing import LOGS
from odonata.results.packet_trace import PacketTrace
from pdes.driver import Result, run
from pdes.log import Appended, Block
from pdes.transport import Serial


def traced(model: Network, end: int | None, **how: Any) -> tuple[PacketTrace, Result]:
    """Run a network alone. Returns the paths of the packets that it traces, and its result."""
    blocks: dict[str, list[Block]] = {name: [] for name in LOGS}

    def log(time: int, agent: int, rows: Appended) -> None:
        for name, block in rows:
            if name in blocks:
                assert isinstance(block, Block)
                blocks[name].append(block)

    result = run(model, end, log=log, transport=Serial(), show_compiling=False, **how)
    found = []
    for name, parts in blocks.items():
        names = [field.name for field in LOGS[name].columns]
        columns = [
            np.concatenate(values) for values in zip(*(b.columns for b in parts), strict=True)
        ]
        times = np.concatenate([block.times for block in parts])
        found.append({"time_ps": times, **dict(zip(names, columns, strict=True))})
    assert model.trace_packets is not None
    names = [job.name for job in model.jobs]
    return PacketTrace(model.machine, model.trace_packets, names, *found), result


def check_sums(model: Network, trace: PacketTrace, result: Result) -> None:
    """Checks that the paths of all packets add up to all that the run has counted of ports, of
    inputs and of nodes. Everything has been delivered."""
    m, hops, outcome = model.machine, trace.hops, result.outcome
    router, node = hops["router"].data, hops["from_node"].data
    at_node = router < 0
    local = m.routers * m.nodes
    group = np.where(at_node, node // local, router // m.routers)
    row = np.where(at_node, m.routers * m.radix + node % local,
                   router % m.routers * m.radix + hops["port"].data)  # fmt: skip
    vc = np.where(at_node, 0, hops["vc"].data)  # where a node's packets wait, whatever they choose
    size = hops["bytes"].data.astype(np.int64)
    each = {"packets": np.ones_like(size), "bytes": size, "stall_ps": hops["credit_ps"].data,
            "wait_ps": hops["link_ps"].data,
            "flits": -(-size // model.flit_bytes)}  # fmt: skip
    for name in COUNTERS:
        counted = outcome["counters"][..., COUNTERS.index(name)]
        sums = np.zeros_like(counted)
        np.add.at(sums, (group, row, vc), each[name])
        assert (sums == counted).all(), name
        assert counted.any(), name
    busy = np.zeros_like(outcome["busy_ps"])
    np.add.at(busy, (group, row), hops["left_ps"].data - hops["start_ps"].data)
    assert (busy == outcome["busy_ps"]).all()
    waits = sum(hops[name].data for name in ("input_ps", "room_ps", "switch_ps", "behind_ps",
                                             "credit_ps", "link_ps"))  # fmt: skip
    assert (hops["arrived_ps"].data + waits == hops["start_ps"].data).all()
    if model.switched:
        inside = ~at_node
        came = router % m.routers * m.radix + hops["in_port"].data
        to_node = hops["port"].data < m.nodes
        parts = {0: hops["switch_ps"].data, 1: hops["room_ps"].data * ~to_node,
                 2: hops["room_ps"].data * to_node}  # fmt: skip
        for word, values in parts.items():
            sums = np.zeros_like(outcome["inputs"][..., 0])
            np.add.at(sums, (group[inside], came[inside], hops["in_vc"].data[inside]),
                      values[inside])  # fmt: skip
            assert (sums == outcome["inputs"][..., word]).all(), word
            assert sums.any(), word
    _check_nodes(trace, outcome["nodes"])
    _check_links(model, trace)


def _check_nodes(trace: PacketTrace, tallies: Any) -> None:
    done = trace.deliveries
    to, took = done["node"].data, done["delivered_ps"].data - done["generated_ps"].data
    for word, values in ((DELIVERED, np.ones_like(took)), (DELIVERED_BYTES, done["bytes"].data),
                         (LATENCY_SUM, took), (HOPS, done["hops"].data)):  # fmt: skip
        sums = np.zeros(len(tallies), np.int64)
        np.add.at(sums, to, values)
        assert (sums == tallies[:, word]).all(), word
    for word, values in ((LONGEST, took), (LAST_IN, done["delivered_ps"].data)):
        most = np.zeros(len(tallies), np.int64)
        np.maximum.at(most, to, values)
        assert (most == tallies[:, word]).all(), word


def _check_links(model: Network, trace: PacketTrace) -> None:
    """Checks that every packet is handled where the hop before leads, and when that says; and that
    it is delivered after its last hop."""
    hops, done = trace.hops, trace.deliveries
    packet, hop = hops["packet"].data, hops["hop"].data
    following = np.flatnonzero(hop > 0)
    assert (packet[following] == packet[following - 1]).all()
    assert (hop[following] == hop[following - 1] + 1).all()
    assert (hops["arrived_ps"].data[following] == hops["next_ps"].data[following - 1]).all()
    last = np.append(np.flatnonzero(hop[1:] == 0), len(hop) - 1)
    assert (packet[last] == done["packet"].data).all()
    assert (hop[last] == done["hops"].data).all()
    late = done["delivered_ps"].data - hops["next_ps"].data[last]
    assert (late == 0).all() if model.ejection is None else (late > 0).all()
    for number in packet[last][:: max(1, len(last) // 20)].tolist():
        path = trace.packet(number)
        assert path.hops[-1].to == f"node {path.destination}"
        for one, other in zip(path.hops, path.hops[1:], strict=False):
            assert one.to == other.place
