"""Packets followed hop by hop: their paths add up to the counters, and are the zero-load formula's
where nothing else is in the network."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from machines import SMALL, US, alone, network
from traced import check_sums, traced

from odonata.agents.network import Network
from odonata.agents.traffic import Traffic
from odonata.agents.workload import Workload
from odonata.jobs.request import Job
from pdes.errors import Refused

DRAINED = 200 * US
HEAVY: dict[str, Any] = {"routing": "adaptive", "messages": 20, "load": 0.9}
"""A load under which packets wait for credit."""


def test_the_paths_of_all_packets_add_up_to_the_counters_and_change_nothing() -> None:
    model = network(**HEAVY, trace_packets=1)
    trace, result = traced(model, DRAINED)
    check_sums(model, trace, result)
    assert len(trace.packets) == SMALL.n_nodes * 20 * 3
    assert result.digest == alone(network(**HEAVY), DRAINED).digest


@pytest.mark.parametrize("inside", [
    "EVERYTHING | {'load': 0.5}",
    "DIRECT | {'load': 0.25, 'local_buffer': 1024, 'global_buffer': 1024, 'ejection_buffer': 1024}",
])  # fmt: skip
def test_so_they_do_through_crossbars_to_nodes_that_push_back(
    inside: str, python: Callable[..., str]
) -> None:
    python(
        "from machines import *; from traced import check_sums, traced\n"
        f"model = network(**{inside}, messages=3, trace_packets=1)\n"
        "check_sums(model, *traced(model, 400 * US))"
    )


def jobs(**given: Any) -> Network:
    workload = Workload((Job(8, "all-to-all", message_bytes=1500, iterations=1, name="first"),
                         Job(20, "halo3d", message_bytes=700, iterations=2, name="second")),
                        tasks_per_node=2)  # fmt: skip
    return Network(SMALL, Traffic(load=0.2, message_bytes=600, messages=30), workload=workload,
                   routing="adaptive", terminal_buffer=1024, local_buffer=1024,
                   global_buffer=2048, **given)  # fmt: skip


@pytest.mark.long
def test_packets_of_jobs_add_up_to_what_is_counted_of_each_job(python: Callable[..., str]) -> None:
    python(
        "from agents.test_tracing import *\n"
        "from odonata.agents.layout import BY_BYTES, BY_HOPS, BY_LATENCY, BY_PACKETS\n"
        "model = jobs(trace_packets=1)\n"
        "trace, result = traced(model, None)\n"
        "check_sums(model, trace, result)\n"
        "done = trace.deliveries\n"
        "took = done['delivered_ps'].data - done['generated_ps'].data\n"
        "for job in range(2):\n"
        "    ours = done['job'].data == job\n"
        "    counted = result.outcome['by_job'].sum(axis=0)[job]\n"
        "    assert counted[BY_PACKETS] == ours.sum() > 100\n"
        "    assert counted[BY_BYTES] == done['bytes'].data[ours].sum()\n"
        "    assert counted[BY_LATENCY] == took[ours].sum()\n"
        "    assert counted[BY_HOPS] == done['hops'].data[ours].sum()\n"
        "of = {trace.packet(number).job for number in trace.slowest(1000).tolist()}\n"
        "assert of == {'', 'first', 'second'}, of"
    )


@pytest.mark.parametrize("forwarding", ["cut-through", "flit", "store"])
def test_every_hop_of_a_packet_alone_takes_what_the_formula_says(forwarding: str) -> None:
    """To the picosecond: bytes over bandwidth, the latency of the link, the pipeline's delay."""
    traffic = Traffic("permutation", load=1e-7, message_bytes=500, messages=1)
    model = Network(SMALL, traffic, routing="adaptive", forwarding=forwarding, trace_packets=1)
    end = round(40 * traffic.slot_ps(SMALL) / traffic.load)
    trace, _ = traced(model, end)
    visited = set()
    kinds = [*[SMALL.terminal] * 2, *[SMALL.local] * 3, *[SMALL.global_] * 2]
    for number in trace.packets.tolist():
        path = trace.packet(number)
        links = [SMALL.terminal]
        for hop in path.hops[1:]:
            links.append(kinds[hop.port])
        head = tail = path.generated_ps
        for hop, link in zip(path.hops, links, strict=True):
            assert not hop.waits_ps
            assert hop.arrived_ps == hop.start_ps == head
            took = {size: round(size * 1e12 / link.bandwidth) for size in (16, 500)}
            tail = max(head + took[500], tail)
            assert hop.left_ps == tail
            first = {"cut-through": head, "flit": head + took[16], "store": tail}[forwarding]
            over = link.latency_ps + model.delay_ps
            head, tail = first + over, tail + over
            if hop is path.hops[-1]:
                assert path.delivered_ps == hop.next_ps == tail - model.delay_ps
            else:
                assert hop.next_ps == head
        visited.add(len(path.hops) - 1)
    assert len(trace.packets) == SMALL.n_nodes
    assert {2, 3, 4} <= visited


def test_every_nth_packet_of_each_node_is_traced_and_no_other() -> None:
    everything, _ = traced(network(**HEAVY, trace_packets=1), DRAINED)
    some, _ = traced(network(**HEAVY, trace_packets=7), DRAINED)
    count, node = np.divmod(everything.hops["packet"].data, SMALL.n_nodes)
    chosen = (count + node) % 7 == 0
    assert some.hops.identical(everything.hops.isel(row=chosen))
    by_node = np.bincount(some.packets % SMALL.n_nodes, minlength=SMALL.n_nodes)
    assert by_node.min() >= 8
    assert by_node.max() <= 9


def test_without_the_compiler_paths_are_the_same(python: Callable[..., str]) -> None:
    code = (
        "from agents.test_tracing import *\n"
        "trace, _ = traced(network(**HEAVY | {'messages': 3}, trace_packets=2), DRAINED)\n"
        "print(summary(trace))"
    )
    trace, _ = traced(network(**HEAVY | {"messages": 3}, trace_packets=2), DRAINED)
    assert python(code).strip() == summary(trace)


def summary(trace: Any) -> str:
    """Returns a hash of all that is known of the packets."""
    hashed = hashlib.sha256()
    for table in (trace.hops, trace.deliveries):
        for name in table:
            hashed.update(np.ascontiguousarray(table[name].data, np.int64).tobytes())
    return hashed.hexdigest()


def test_a_packet_that_is_not_delivered_says_where_it_is() -> None:
    trace, _ = traced(network(**HEAVY, trace_packets=1), US)
    under_way = np.setdiff1d(trace.packets, trace.deliveries["packet"].data)
    path = trace.packet(int(under_way[0]))
    assert path.delivered_ps is None
    assert path.latency_ps is None
    assert "no more is known of it" in path.words()[-1]


def test_a_packet_in_words() -> None:
    trace, _ = traced(network(**HEAVY, trace_packets=1), DRAINED)
    path = trace.packet(int(trace.slowest(1)[0]))
    first, generated, injected, arrived, *_, delivered = path.words()
    assert first.startswith(f"packet {path.number}: {path.bytes} B from node {path.source} (router")
    assert f"generated at node {path.source}" in generated
    assert f"injected to {path.hops[0].to} on VC 0 after waiting" in injected
    assert f"arrived at {path.hops[0].to} (group" in arrived
    assert f"delivered to node {path.destination}: " in delivered
    assert any("for credit" in line for line in path.words())


def test_what_was_not_traced_is_refused_by_its_number() -> None:
    trace, _ = traced(network(**HEAVY, trace_packets=7), DRAINED)
    with pytest.raises(Refused, match=r"packet 1, which is packet 0 of node 1, was not traced"):
        trace.packet(1)
    with pytest.raises(Refused, match=r"was not sent in this run: of those traced, the last of"):
        trace.packet(7 * 1000 * SMALL.n_nodes)


def test_it_traces_every_packet_or_some_or_none() -> None:
    with pytest.raises(Refused, match=r"trace_packets = 0: 1 \.\. 2\*\*63 - 1, or none"):
        network(trace_packets=0)
    assert network(trace_packets=1).variant.endswith(", traced")
    assert "trace_packets" not in network().parameters()
