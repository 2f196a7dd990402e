"""The load at which the first link is full, against paths that are followed one by one."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from odonata.agents.network import Network
from odonata.agents.traffic import Traffic
from odonata.sweeps.limits import OBLIVIOUS, limit, mean_loads
from topology import Dragonfly
from topology.presets import PRESETS

MACHINES = (Dragonfly(2, 3, 1, 4), Dragonfly(1, 4, 2, 3), Dragonfly(2, 2, 1, 3))
PATTERNS = ("uniform", "adversarial", "hotspot")


def chances(traffic: Traffic, machine: Dragonfly, node: int) -> dict[int, float]:
    """Returns where a message of a node goes, from the definition of the patterns."""
    n, group = machine.n_nodes, machine.routers * machine.nodes
    others = {to: 1 / (n - 1) for to in range(n) if to != node}
    if traffic.pattern == "uniform":
        return others
    if traffic.pattern == "adversarial":
        first = (node // group + traffic.stride) % machine.groups * group
        return {first + k: 1 / group for k in range(group)}
    found = {to: (1 - traffic.hot) * chance for to, chance in others.items()}
    hot = range(0, n, traffic.hot_every)
    for to in hot:
        for goal, chance in ({to: 1.0} if to != node else others).items():
            found[goal] = found.get(goal, 0) + traffic.hot / len(hot) * chance
    return found


def followed(network: Network, routing: str) -> tuple[float, float, float]:
    """Returns the largest loads of a link to a node, a local link and a cable, path by path."""
    m, traffic = network.machine, network.traffic[0]
    eject = np.zeros(m.n_nodes)
    local: dict[tuple[int, int], float] = {}
    cables: dict[tuple[int, int, int], float] = {}

    def hop(here: int, there: int, part: float) -> None:
        if here != there:
            local[here, there] = local.get((here, there), 0) + part

    def cross(router: int, to: int, part: float) -> list[tuple[int, float]]:
        """Goes from a router to a group by each of its cables. Returns where it comes in."""
        group, ends = router // m.routers, []
        for cable in range(m.copies):
            q = int(m.gates()[group, to, cable])
            hop(router, group * m.routers + q // m.global_links, part / m.copies)
            cables[group, to, cable] = cables.get((group, to, cable), 0) + part / m.copies
            far = int(m.far()[group, q])
            ends.append((far // m.global_links, part / m.copies))
        return ends

    for node in range(m.n_nodes):
        for to, chance in chances(traffic, m, node).items():
            eject[to] += chance
            here, there = node // m.nodes, to // m.nodes
            source, goal = here // m.routers, there // m.routers
            if source == goal:
                hop(here, there, chance)
                continue
            ways = [(here, chance)]
            middles = [g for g in range(m.groups) if g not in (source, goal)]
            if routing == "valiant" and middles:
                ways = [end for middle in middles
                        for end in cross(here, middle, chance / len(middles))]  # fmt: skip
            for at, part in ways:
                for end, some in cross(at, goal, part):
                    hop(end, there, some)
    return float(eject.max()), max(local.values(), default=0.0), max(cables.values(), default=0.0)


@pytest.mark.parametrize(
    "machine", [Dragonfly(2, 3, 1, 4), Dragonfly(1, 4, 2, 3), Dragonfly(2, 2, 1, 3)]
)
def test_the_loads_of_links_are_those_of_all_paths(machine: Dragonfly) -> None:
    for pattern, routing in product(PATTERNS, OBLIVIOUS):
        network = Network(machine, Traffic(pattern, hot=0.2, hot_every=5))
        loads = mean_loads(network, routing)
        assert loads is not None
        eject, local, cable = followed(network, routing)
        assert loads.eject.max() == pytest.approx(eject)
        assert loads.local.max() == pytest.approx(local)
        assert loads.across.max() / machine.copies == pytest.approx(cable)


def test_the_limits_of_the_balanced_machine_of_1056_nodes() -> None:
    machine = PRESETS["kim-1056"].machine
    found = {(pattern, routing): limit(Network(machine, Traffic(pattern)), routing)
             for pattern, routing in product(PATTERNS, OBLIVIOUS)}  # fmt: skip
    known = {key: it for key, it in found.items() if it is not None}
    assert known["hotspot", "minimal"].load == pytest.approx(1 / (0.9 + 0.1 * 32), rel=2e-3)
    assert known["hotspot", "valiant"].kind == known["hotspot", "minimal"].kind == "eject"
    assert known["adversarial", "minimal"].load == 1 / 32
    assert known["adversarial", "valiant"].load == pytest.approx(31 / 32 / 2)
    assert known["uniform", "valiant"].load == pytest.approx(0.5 * 1055 / 1024)
    assert str(known["uniform", "minimal"]) == "at most 1.000"
    assert [it.exact for it in known.values()] == [False, True, True, True, True, True]


def test_there_is_no_limit_where_nothing_is_known() -> None:
    machine = PRESETS["kim-72"].machine
    assert limit(Network(machine, Traffic("tornado")), "minimal") is None
    assert limit(Network(machine, Traffic()), "ugal-l") is None
    assert limit(Network(machine, Traffic(), via="router"), "valiant") is None
