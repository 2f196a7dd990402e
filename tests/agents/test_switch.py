"""Routers with a crossbar, and nodes that push back: what arbiters, buffers and credits do. That
every packet is right is the claim of test_router_twin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from machines import DIRECT, EVERYTHING, SMALL, US, alone, network

from odonata.agents.audit import conclude
from odonata.agents.layout import DELIVERED, GENERATED
from odonata.agents.metrics import INPUT_COUNTERS
from odonata.agents.network import Network
from odonata.agents.routers import ROUTERS
from odonata.agents.traffic import Traffic
from odonata.agents.workload import Workload
from odonata.jobs.request import Job
from odonata.results.aries import aries
from odonata.results.performance import job_records, performance
from pdes.errors import Fault, Refused
from topology import Dragonfly, LinkClass

LONG = pytest.mark.long
"""Tests that need kernels of their own, each of which takes half a minute to compile."""
ONE_PACKET: dict[str, Any] = DIRECT | {
    "load": 0.6, "ejection": 25e9, "ejection_buffer": 512, "message_bytes": 2048,
    "terminal_buffer": 512, "local_buffer": 512, "global_buffer": 512,
}  # fmt: skip
WIDE: dict[str, Any] = EVERYTHING | {
    "allocation_ps": 0, "credit_delay_ps": 0, "output_buffer": 8192, "local_buffer": 8192,
    "global_buffer": 8192, "terminal_buffer": 8192, "ejection": 1e13, "ejection_buffer": 8192,
}  # fmt: skip


def delivered(model: Network, end: int = 10 * US) -> int:
    return int(alone(model, end).outcome["nodes"][:, DELIVERED].sum())


def test_a_fast_crossbar_is_nearly_ideal_and_a_slow_one_is_the_bottleneck() -> None:
    buffers = {name: value for name, value in WIDE.items() if name.endswith("_buffer")}
    ideal = {"routing": "adaptive", "load": 0.9, **buffers}
    del ideal["output_buffer"], ideal["ejection_buffer"]
    given = delivered(network(**ideal))
    fast, slow = (delivered(network(**WIDE | {"load": 0.9, "crossbar": rate}))
                  for rate in (20.0, 0.4))  # fmt: skip
    assert fast > 0.93 * given
    assert slow < 0.75 * given


def test_an_unfair_arbiter_starves_an_input_and_the_summary_names_it() -> None:
    waits = {}
    for arbiter in ("round-robin", "lowest-port"):
        model = network(**WIDE | {"load": 1.0, "crossbar": 1.0, "arbiter": arbiter})
        waits[arbiter] = performance(model, alone(model, 20 * US)).inputs
    unfair, fair = waits["lowest-port"], waits["round-robin"]
    assert unfair["longest_ps"] > 2 * fair["longest_ps"]
    assert unfair["port"] > 0, "the lowest port is served first"


@pytest.mark.parametrize("allocation", [0, 5_000])
def test_an_ejection_loop_is_found_while_the_run_goes_on_and_names_the_nodes(
    allocation: int,
) -> None:
    model = network(SMALL, **ONE_PACKET | {"allocation_ps": allocation})
    result = alone(model, 1000 * US)
    assert not result.completed
    assert result.time_ps <= 50 * US
    with pytest.raises(Fault, match=r"deadlock: .*node \d+ VC 0 -> .*found at") as fault:
        performance(model, result)
    stops = str(fault.value).removeprefix("deadlock: ").partition(" (found")[0].split(" -> ")
    assert stops[0] == stops[-1]


@pytest.mark.parametrize("seed", range(1, 7))
def test_a_loop_of_small_packets_that_wait_for_channels_of_large_ones_is_found(seed: int) -> None:
    """Some first packets have room, and wait for ever for a channel that a packet without has."""
    traffic = tuple(Traffic("uniform", load, message_bytes=size, stop_ps=4 * US)
                    for load, size in ((0.5, 512), (0.4, 64)))  # fmt: skip
    link = LinkClass(12.5e9, 20_000)
    inside = DIRECT | {"allocation_ps": 5_000, "crossbar": 2.0, "ejection": 25e9}
    del inside["load"]
    sizes = {"terminal_buffer": 600, "local_buffer": 1000, "global_buffer": 1000,
             "ejection_buffer": 600}  # fmt: skip
    machine = Dragonfly(2, 3, 1, 4, terminal=link, local=link, global_=LinkClass(12.5e9, 50_000))
    model = Network(machine, traffic, seed=seed, packet_bytes=512, **inside | sizes)
    result = alone(model, 400 * US)
    outcome = result.outcome
    assert outcome["nodes"][:, GENERATED].sum() > outcome["nodes"][:, DELIVERED].sum()
    assert conclude(model, outcome) is not None


@LONG
@pytest.mark.parametrize("output_buffer", [512, None])
def test_cycles_are_found_with_other_kernels_too(output_buffer: int | None) -> None:
    given = {"load": 0.6, "message_bytes": 2048, "terminal_buffer": 512, "local_buffer": 512,
             "global_buffer": 512, "ejection": 25e9, "ejection_buffer": 512}  # fmt: skip
    inside: dict[str, Any] = {"crossbar": 1.0, "output_buffer": output_buffer}
    for more in ({}, inside):
        model = network(SMALL, **given, **more, duplex="half")
        result = alone(model, 1000 * US)
        assert result.time_ps <= 50 * US
        assert "node" in (conclude(model, result.outcome) or "")
    full = network(SMALL, **given)
    assert conclude(full, alone(full, 20 * US).outcome) is None


@LONG
def test_a_slow_node_stalls_its_port_and_is_a_processor_tile_stall() -> None:
    for crossbar in (None, 1.5):
        model = network(ejection=2e9, ejection_buffer=1024, crossbar=crossbar)
        outcome = alone(model).outcome
        found = aries(model, outcome)
        assert (found.p_req_stall > 0).any()
        free = network(crossbar=crossbar)
        assert not aries(free, alone(free).outcome).p_req_stall.any()


@LONG
def test_an_ejection_rate_bounds_what_a_node_accepts() -> None:
    slow = network(ejection=1e9, load=0.9)
    taken = alone(slow, 20 * US).outcome["nodes"][:, 4]
    assert taken.max() <= 20e-6 * 1e9 + 512
    assert taken.sum() > 0.5 * 20e-6 * 1e9 * len(taken)


@LONG
def test_waits_by_cause_add_up_and_are_never_negative() -> None:
    model = network(crossbar=1.0, output_buffer=None, ejection=4e9, ejection_buffer=1024)
    inputs = alone(model).outcome["inputs"]
    assert (inputs >= 0).all()
    totals = dict(zip(INPUT_COUNTERS, inputs.reshape(-1, 4).sum(axis=0).tolist(), strict=True))
    assert min(totals[name] for name in ("switch_ps", "room_ps", "eject_ps")) > 0


def broadcast(seed: int, match_ps: int) -> int:
    """Returns how long a message of three packets takes over two cables, which is shorter for one
    alone on its cable than for two on the other: the packet cut last may arrive first."""
    slow, fast = LinkClass(1e9, 50_000), LinkClass(4e9, 50_000)
    load = Workload((Job(2, pattern="broadcast", message_bytes=3000),), tasks_per_node=1,
                    match_ps=match_ps)  # fmt: skip
    model = Network(Dragonfly(1, 1, 2, 2, terminal=fast, local=fast, global_=slow), workload=load,
                    routing="adaptive", packet_bytes=1000, seed=seed)  # fmt: skip
    (record,) = job_records(model, alone(model, None))  # type: ignore[arg-type]
    assert record.run_time_ps is not None
    return record.run_time_ps


def test_a_message_is_matched_when_it_is_complete_whichever_packet_comes_last() -> None:
    costs = {broadcast(seed, 100_000) - broadcast(seed, 0) for seed in range(1, 13)}
    assert costs == {100_000}
    assert len({broadcast(seed, 0) for seed in range(1, 13)}) > 1


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"crossbar": 0.0}, "crossbar = 0: above 0"),
        ({"crossbar": 1.0, "output_buffer": 100}, "output_buffer = 100 B"),
        ({"crossbar": 1.0, "arbiter": "coin"}, "arbiter = coin"),
        ({"sight": "output"}, "sight = output"),
        ({"duplex": "half"}, "duplex = half"),
        ({"ejection": 1e9, "ejection_buffer": 100}, "ejection_buffer = 100 B"),
        ({"credits": "byte"}, "credits = byte"),
        ({"injection_channels": 3}, "injection_channels = 3"),
        ({"credit_delay_ps": -1}, "credit_delay = -1 ps"),
        ({"crossbar": 1e-9}, "of a local link's bandwidth, this is 12 B/s; from 1 MB/s on"),
        ({"ejection": 1.0}, "1 MB/s .. 1 PB/s, or unlimited"),
        ({"arbiter": "age"}, "arbiter = age: needs routers with a crossbar"),
        ({"allocation_ps": 5}, "needs routers with a crossbar"),
        ({"ejection_buffer": 1024}, "needs nodes with a rate of ejection"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(Refused, match=words.replace(".", r"\.")):
        network(**given)


@LONG
@pytest.mark.parametrize("name", ROUTERS)
def test_routers_by_name_can_be_built_and_lose_nothing(name: str) -> None:
    model = network(routing="adaptive", **ROUTERS[name])
    result = alone(model)
    assert conclude(model, result.outcome) is None
    assert np.count_nonzero(result.outcome["nodes"][:, DELIVERED]) == SMALL.n_nodes
