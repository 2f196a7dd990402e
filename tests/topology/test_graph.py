from __future__ import annotations

from pathlib import Path

import networkx as nx
from conftest import examples
from hypothesis import given
from test_dragonfly import machines

from topology import Dragonfly
from topology.graph import graph, write_graphml
from topology.presets import PRESETS


@given(machines())
@examples(20)
def test_the_graph_has_every_cable_with_its_ports(m: Dragonfly) -> None:
    whole = graph(m, nodes=True)
    assert len(whole) == m.n_routers + m.n_nodes
    kinds = [kind for _, _, kind in whole.edges(data="kind")]
    assert {k: kinds.count(k) for k in m.n_links} == m.n_links
    for low, high, data in whole.edges(data=True):
        if data["kind"] != "terminal":
            low, high = sorted((low, high))
            cable = next(c for c in m.neighbours(low) if c.port == data["low_port"])
            assert (cable.far, cable.far_port) == (high, data["high_port"])
        assert data["bandwidth"] == m.link(data["kind"]).bandwidth


def test_graphml_comes_back_as_it_went(tmp_path: Path) -> None:
    m = Dragonfly(2, 3, 4, 4)
    write_graphml(m, tmp_path / "m.graphml")
    back = nx.read_graphml(tmp_path / "m.graphml", force_multigraph=True)
    whole = nx.relabel_nodes(graph(m, nodes=True), str)
    assert dict(back.nodes(data=True)) == dict(whole.nodes(data=True))
    seen, sent = ([(*sorted((u, v)), *sorted((k, str(x)) for k, x in data.items() if k != "id"))
                   for u, v, data in g.edges(data=True)] for g in (back, whole))  # fmt: skip
    assert sorted(seen) == sorted(sent)


def test_presets_have_the_sizes_they_are_named_for() -> None:
    nodes = {name: preset.machine.n_nodes for name, preset in PRESETS.items()}
    assert nodes == {
        "kim-72": 72,
        "kim-1056": 1056,
        "levelspread-272": 272,
        "levelspread-528": 528,
        "levelspread-544": 544,
        "levelspread-1056": 1056,
        "codes-c": 1056,
        "codes-d": 1056,
        "theta": 4608,
        "aries-group": 384,
        "frontier": 37_888,
        "large-262k": 262_656,
    }
    for preset in PRESETS.values():
        assert preset.about
        assert preset.source


def test_the_level_spread_machines_are_those_of_the_thesis() -> None:
    shapes = [PRESETS[f"levelspread-{n}"].machine for n in (272, 528, 544, 1056)]
    assert [(m.nodes, m.routers, m.global_links, m.groups) for m in shapes] == [
        (4, 4, 4, 17), (4, 4, 8, 33), (4, 8, 2, 17), (4, 8, 4, 33)]  # fmt: skip
    assert all(m.local.bandwidth == m.global_.bandwidth == 1e9 for m in shapes)


def test_codes_c_is_workload_c() -> None:
    m = PRESETS["codes-c"].machine
    assert m.local.bandwidth == m.terminal.bandwidth == 5.25 * 2**30
    assert m.global_.bandwidth == 4.7 * 2**30
    assert m.local.latency_ps == m.global_.latency_ps == m.terminal.latency_ps == 100_000
