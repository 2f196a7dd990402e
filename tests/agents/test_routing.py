"""The routes that the kernel can take: where they lead, and that no channel waits for itself."""

from __future__ import annotations

import itertools
from typing import Any

import networkx as nx
import numpy as np
import pytest
from machines import PARALLEL, ROUTINGS, SMALL, US, alone, network

from odonata.agents.audit import conclude
from odonata.agents.network import Network
from odonata.agents.packet import (
    LEG,
    LOCALS,
    MID_SHIFT,
    MINIMAL,
    NON_MINIMAL,
    TO_INTERMEDIATE,
    address,
)
from odonata.agents.router import step
from odonata.results.performance import performance
from pdes.errors import Fault
from pdes.jit import entry
from pdes.random import U64
from policies.routing import ROUTINGS as REGISTER
from policies.routing import routing
from topology import Dragonfly


@entry
def hop(
    shape: Any, gates: Any, group: int, router: int, target: int, path: int, copy: int, out: Any
) -> None:
    """`step`, by the cable that this copy is."""
    word = U64(copy * ((1 << 32) // shape[7]) + 1)
    port, vc, after = step(shape, gates, group, router, target, path, word)
    out[0], out[1], out[2] = port, vc, after


@routing("toss", about="for these tests", source="nobody's")
def toss(minimal: Any, valiant: Any, threshold: float, bias: int, word: int) -> bool:
    return word < 1 << 31


TOSS = REGISTER.pop("toss")


@pytest.fixture
def tossed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(REGISTER, "toss", TOSS)


def where(group: int, router: int, node: int = 0) -> int:
    found = address(group, router, node)
    return int(found)


if hasattr(address, "py_func"):
    address = address.py_func


class Routes:
    """Every route of a network: from any router to any other, minimal or through any intermediate,
    diverted at any router of the first group if the routing may; with detours, also through any
    third router of a group."""

    def __init__(self, model: Network) -> None:
        self.model, self.m = model, model.machine
        self.state = model.state(0, int(model.units()[-1]))
        self.how = REGISTER.named(model.routing)
        self.far = self.m.far()

    def hop(self, group: int, router: int, target: int, path: int, copy: int) -> Any:
        out = np.zeros(3, np.int64)
        hop(self.state.shape, self.state.gates, group, router, target, path, copy, out)
        return out.tolist()

    def over(self, group: int, router: int, port: int) -> tuple[int, int]:
        """Which router is at the other end."""
        m = self.m
        local = port - m.nodes
        if local < m.routers - 1:
            return group, local + (local >= router)
        q = router * m.global_links + local - (m.routers - 1)
        end = int(self.far[group, q])
        assert end >= 0, "by a dark port"
        there, q = divmod(end, m.global_ports)
        return there, q // m.global_links

    def walk(
        self, start: tuple[int, int], goal: tuple[int, int], mid: tuple[int, int] | None,
        turn: int, copy: int,
    ) -> list[tuple[int, int, int, int]]:  # fmt: skip
        """Channels as (group, router, port, VC); the path is diverted at the `turn`-th router."""
        at, path, channels, visited = start, 0, [], 0
        while True:
            if path & TO_INTERMEDIATE:
                assert mid
                if at[0] == mid[0] and (self.model.via == "group" or at == mid):
                    path &= (1 << MID_SHIFT) - 1 - TO_INTERMEDIATE
                    if path & LEG == MINIMAL:
                        path = path & ~(LEG | LOCALS) | NON_MINIMAL
            elif mid and visited == turn and (at[0] != goal[0] or mid[0] == at[0]):
                leg = NON_MINIMAL if at[0] != goal[0] else MINIMAL
                path = path & ~(LEG | LOCALS) | leg | TO_INTERMEDIATE | where(*mid) << MID_SHIFT
            visited += 1
            target = where(*(mid if mid and path & TO_INTERMEDIATE else goal))
            if at == goal and not path & TO_INTERMEDIATE:
                return channels
            port, vc, path = self.hop(*at, target, path, copy)
            channels.append((*at, port, vc))
            assert vc < self.model.channels
            at = self.over(*at, port)
            assert len(channels) < 8, "a packet goes round in circles"

    def all(self) -> Any:
        m = self.m
        routers = list(itertools.product(range(m.groups), range(m.routers)))
        for start, goal in itertools.product(routers, routers):
            for copy in range(m.copies):
                yield (minimal := self.walk(start, goal, None, 0, copy))
                within = start[0] == goal[0] and start != goal
                if self.model.detours and within and not self.how.always_minimal:
                    for third in {*range(m.routers)} - {start[1], goal[1]}:
                        yield self.walk(start, goal, (start[0], third), 0, copy)
                if self.how.always_minimal or start[0] == goal[0]:
                    continue
                near = (start[0],) if self.model.via == "anywhere" else (start[0], goal[0])
                mids = [r for r in routers if r[0] not in near]
                if self.model.via == "group":
                    mids = [r for r in mids if r[1] == 0]
                for mid, turn in itertools.product(mids, range(1 + self.how.revises)):
                    if turn == 0 or minimal[0][2] < m.nodes + m.routers - 1:
                        yield self.walk(start, goal, mid, turn, copy)


def dependencies(model: Network) -> nx.DiGraph:
    """Returns which buffer is emptied only if another has room: input queues, each named by the
    channel that feeds it, output buffers, the queues of nodes' links, and ejection buffers. A
    half-duplex node empties its ejection buffer only when it could send."""
    graph, routes, m = nx.DiGraph(), Routes(model), model.machine
    for route in filter(None, routes.all()):
        stops: list[Any] = [("inject", route[0][:2])]
        for channel in route:
            stops += [("output", *channel)] * model.buffered + [channel]
        graph.add_edges_from(itertools.pairwise([*stops, ("eject", routes.over(*route[-1][:3]))]))
    if model.duplex == "half":
        for router in itertools.product(range(m.groups), range(m.routers)):
            graph.add_edge(("eject", router), ("inject", router))
    return graph


TINY = Dragonfly(1, 2, 2, 5)


APART = ("minimal", "ugal-l", "par")
"""Three routings, one for each set of routes that a routing may choose from."""
ROUTED = [how if how in APART else pytest.param(how, marks=pytest.mark.long) for how in ROUTINGS]


def test_others_have_the_routes_of_one_of_these() -> None:
    def routes(how: str) -> set[tuple[Any, ...]]:
        return {*map(tuple, Routes(network(TINY, routing=how, via="router")).all())}

    known = [routes(how) for how in APART]
    assert all(routes(how) in known for how in ROUTINGS)
    assert all(known.count(one) == 1 for one in known)


@pytest.mark.parametrize("via", ["group", "router", "anywhere"])
@pytest.mark.parametrize("how", ROUTED)
@pytest.mark.parametrize("machine", [TINY, PARALLEL], ids=["tiny", "parallel"])
def test_no_channel_waits_for_itself(machine: Dragonfly, how: str, via: str) -> None:
    graph = dependencies(network(machine, routing=how, via=via))
    assert graph.number_of_edges() > 10
    assert nx.is_directed_acyclic_graph(graph)


BUFFERS: dict[str, Any] = {"crossbar": 1.0, "output_buffer": 4096, "detours": True, "ejection": 1e9}
WIDE = Dragonfly(1, 4, 1, 5)


@pytest.mark.parametrize("inside", [{"detours": True}, BUFFERS], ids=["ideal", "buffered"])
@pytest.mark.parametrize("via", ["group", "router"])
@pytest.mark.parametrize("how", ROUTED)
def test_no_queue_output_or_ejection_buffer_waits_for_itself(
    how: str, via: str, inside: dict[str, Any]
) -> None:
    model = network(WIDE, routing=how, via=via, **inside)
    graph = dependencies(model)
    assert nx.is_directed_acyclic_graph(graph)
    kinds = {each[0] for each in graph if isinstance(each[0], str)}
    assert kinds == {"inject", "eject", *["output"] * model.buffered}


def test_half_duplex_nodes_close_cycles() -> None:
    graph = dependencies(network(WIDE, routing="adaptive", **BUFFERS, duplex="half"))
    assert not nx.is_directed_acyclic_graph(graph)


@pytest.mark.parametrize("how", ["valiant", "par"])
def test_with_one_channel_for_all_hops_there_are_cycles(how: str) -> None:
    """So the test above can fail."""
    graph = dependencies(network(TINY, routing=how, vcs="one"))
    assert not nx.is_directed_acyclic_graph(graph)


def test_every_built_in_routing_is_tested() -> None:
    assert set(ROUTINGS) == set(REGISTER)
    assert all(how.about for how in REGISTER.values())


def test_a_minimal_path_takes_at_most_three_hops_and_a_non_minimal_one_six() -> None:
    lengths = {
        (how, via): max(map(len, Routes(network(TINY, routing=how, via=via)).all()))
        for how in ("minimal", "valiant", "par")
        for via in ("group", "router")
    }
    assert lengths["minimal", "group"] == 3
    assert lengths["valiant", "group"] == 5
    assert lengths["valiant", "router"] == 6
    assert lengths["par", "group"] == 6
    assert lengths["par", "router"] == 7


JAMMED = {"load": 1.0, "routing": "valiant", "message_bytes": 512, "terminal_buffer": 512,
          "local_buffer": 512, "global_buffer": 512}  # fmt: skip


def test_a_broken_assignment_of_channels_deadlocks_and_the_cycle_is_shown() -> None:
    model = network(SMALL, vcs="one", **JAMMED)
    result = alone(model, 60 * US)
    with pytest.raises(Fault, match="deadlock: router") as fault:
        performance(model, result)
    stops = str(fault.value).removeprefix("deadlock: ").partition(" (found")[0].split(" -> ")
    assert stops[0] == stops[-1]
    assert len(stops) > 2
    assert all("VC 0" in stop for stop in stops)


@pytest.mark.parametrize("how", ROUTINGS)
def test_the_right_one_does_not(how: str) -> None:
    model = network(SMALL, **JAMMED | {"routing": how})
    result = alone(model, 60 * US)
    assert conclude(model, result.outcome) is None
    assert result.outcome["nodes"][:, 3].min() > 0


def test_adaptive_routings_leave_the_minimal_path_only_where_it_helps() -> None:
    """With no load they are minimal; with adversarial load they carry far more than minimal."""
    throughput = {}
    for how in ROUTINGS:
        model = network(routing=how, pattern="adversarial", load=0.5, message_bytes=512,
                        terminal_buffer=8192, local_buffer=8192, global_buffer=8192,
                        warmup_ps=10 * US)  # fmt: skip
        throughput[how] = performance(model, alone(model, 40 * US)).throughput
        quiet = network(routing=how, load=0.001, message_bytes=512)
        hops = performance(quiet, alone(quiet, 300 * US)).mean_hops
        assert (hops > 4.2) == (how == "valiant"), how
    for how in ("ugal-l", "ugal-g", "par", "adaptive", "valiant"):
        assert throughput[how] > 2 * throughput["minimal"], (how, throughput)


def test_par_changes_its_mind_where_ugal_cannot() -> None:
    """Adversarial traffic, one node a router: routers without the cable learn of its queue only by
    back-pressure; with PAR a packet that meets the queue turns away, in one local hop more."""
    latency = {}
    for how in ("ugal-l", "par"):
        model = network(routing=how, pattern="adversarial", load=0.2, message_bytes=512,
                        terminal_buffer=65536, local_buffer=65536, global_buffer=65536)  # fmt: skip
        latency[how] = performance(model, alone(model, 20 * US)).mean_latency_ns
    assert latency["par"] < 0.9 * latency["ugal-l"]


def test_adaptive_is_minimal_until_the_buffer_ahead_is_half_full() -> None:
    """Whatever the sizes of the buffers: on a quiet network it is minimal."""
    hops = []
    for how in ("minimal", "adaptive"):
        model = network(routing=how, load=0.05, message_bytes=512, local_buffer=16384,
                        global_buffer=32768)  # fmt: skip
        hops.append(performance(model, alone(model, 30 * US)).mean_hops)
    assert hops[0] == hops[1]


@pytest.mark.long
@pytest.mark.usefixtures("tossed")
def test_a_routing_of_ones_own_may_throw_dice() -> None:
    model = network(routing="toss", load=0.1, message_bytes=512)
    assert alone(model).digest == alone(model).digest
    hops = [performance(m, alone(m, 30 * US)).mean_hops
            for m in (network(routing=how, load=0.1, message_bytes=512)
                      for how in ("minimal", "toss", "valiant"))]  # fmt: skip
    assert hops[1] == pytest.approx((hops[0] + hops[2]) / 2, rel=0.02)
