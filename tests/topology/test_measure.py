"""Our figures against networkx's, and against counting by hand."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise, permutations
from math import prod

import networkx as nx
import pytest
from conftest import examples
from hypothesis import given
from test_dragonfly import machines

from topology import Dragonfly
from topology.graph import graph
from topology.measure import bisection, distances_and_diversity, measure, routes
from topology.presets import PRESETS

small = machines(routers=4, links=4, groups=7)


@given(small)
@examples(25)
def test_distances_and_paths_are_those_of_networkx(m: Dragonfly) -> None:
    whole = graph(m)
    distances, diversity = Counter[int](), Counter[int]()
    for here, there in permutations(whole, 2):
        found = list(nx.all_shortest_paths(nx.Graph(whole), here, there))
        distances[len(found[0]) - 1] += 1
        paths = sum(prod(whole.number_of_edges(u, v) for u, v in pairwise(p)) for p in found)
        diversity[paths] += 1
    assert distances_and_diversity(m) == (dict(distances), dict(diversity))


@given(small)
@examples(25)
def test_minimal_routes_cross_at_most_one_global_cable(m: Dragonfly) -> None:
    expected = Counter[int]()
    for i, j in permutations(range(m.groups), 2):
        cables = [(int(q) // m.global_links, int(back) // m.global_links)
                  for q, back in zip(m.gates()[i, j], m.gates()[j, i], strict=True)]  # fmt: skip
        for r in range(m.routers):
            for x in range(m.routers):
                expected[min(1 + (r != u) + (x != v) for u, v in cables)] += 1
    expected[1] += m.groups * m.routers * (m.routers - 1)
    assert routes(m) == dict(sorted((+expected).items()))


@given(small)
@examples(25)
def test_every_halving_of_the_groups_cuts_the_bisection(m: Dragonfly) -> None:
    far = m.far() // max(1, m.global_ports)
    for half in combinations(range(m.groups), m.groups // 2):
        if m.groups > 1:
            cut = sum(int(j) not in half for i in half for j in far[i] if j >= 0)
            assert cut * m.global_.bandwidth == bisection(m)


def test_one_group_is_bisected_between_its_routers() -> None:
    m = Dragonfly(2, 5, 0, 1)
    assert bisection(m) == 2 * 3 * m.local.bandwidth


def test_a_lone_router_is_far_from_nobody() -> None:
    m = measure(Dragonfly(4, 1, 0, 1))
    assert (m.distances, m.routes, m.diversity, m.diameter, m.mean_distance) == ({}, {}, {}, 0, 0)
    assert m.visited == 1


def test_a_packet_visits_as_many_routers_as_other_simulators_say() -> None:
    """PEERS: 3.70 in CODES, 3.69 in BookSim, on 1,056 nodes, minimal, uniform."""
    assert measure(PRESETS["kim-1056"].machine).visited == pytest.approx(3.70, abs=0.005)


def test_totals_by_class() -> None:
    m = measure(PRESETS["frontier"].machine)
    assert m.bandwidths["global"] == 10_804 * 25e9
    assert m.diameter == 3


@pytest.mark.parametrize("cabling", ["relative", "circulant"])
def test_the_largest_machine_is_measured_without_a_matrix(cabling: str) -> None:
    m = Dragonfly(16, 32, 16, 513, cabling)
    distances, diversity = distances_and_diversity(m)
    pairs = m.n_routers * (m.n_routers - 1)
    assert sum(distances.values()) == sum(diversity.values()) == pairs
    assert distances[1] == 2 * (m.n_links["local"] + m.n_links["global"])
