from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topology import BadMachine, Dragonfly, LinkClass
from topology.dragonfly import CABLINGS


@st.composite
def machines(draw: st.DrawFn, routers: int = 6, links: int = 5, groups: int = 12) -> Dragonfly:
    """Any machine that can be built, up to this size: dark ports, parallel cables and all."""
    a, h = draw(st.integers(1, routers)), draw(st.integers(1, links))
    g = draw(st.integers(1, min(groups, a * h + 1)))
    most = a * h // (g - 1) if g > 1 else 0
    copies = draw(st.integers(1, most)) if most else None
    if g > 1 and a * h % (g - 1) == 0 and draw(st.booleans()):
        copies = None
    p, cabling = draw(st.integers(1, 3)), draw(st.sampled_from(CABLINGS))
    return Dragonfly(p, a, h, g, cabling, copies)


@given(machines())
def test_the_other_end_of_the_other_end_is_here(m: Dragonfly) -> None:
    far = m.far().ravel()
    lit = np.flatnonzero(far >= 0)
    assert (far[far[lit]] == lit).all()


@given(machines())
def test_a_cable_leads_to_another_group_and_every_pair_has_exactly_k(m: Dragonfly) -> None:
    cables = np.zeros((m.groups, m.groups), int)
    for i, row in enumerate(m.far()):
        np.add.at(cables[i], row[row >= 0] // m.global_ports, 1)
    assert (cables == m.copies * (1 - np.eye(m.groups, dtype=int))).all()


@given(machines())
def test_ports_left_over_are_dark_and_counted(m: Dragonfly) -> None:
    assert ((m.far() < 0).sum(1) == m.dark).all()
    assert m.dark == 0 or m.links_per_pair is not None or m.groups == 1


@given(machines())
def test_gates_agree_with_far(m: Dragonfly) -> None:
    gates, far = m.gates(), m.far()
    for i in range(m.groups):
        assert (gates[i, i] == -1).all()
        for j in set(range(m.groups)) - {i}:
            for c in range(m.copies):
                assert far[i, gates[i, j, c]] == j * m.global_ports + gates[j, i, c]


@given(machines())
def test_parallel_cables_leave_from_as_many_routers_as_can_be(m: Dragonfly) -> None:
    for row in m.gates()[0, 1:]:
        holders = np.bincount(row // m.global_links)
        assert holders.max() <= -(-m.global_links // (m.groups - 1))


@given(machines())
def test_every_port_has_one_number(m: Dragonfly) -> None:
    for r in range(m.routers):
        ports = list(range(m.nodes))
        ports += [m.local_port(r, x) for x in range(m.routers) if x != r]
        ports += [m.global_port(q)[1] for q in range(m.global_ports) if m.global_port(q)[0] == r]
        assert ports == list(range(m.radix))
    assert [n for n in range(m.n_nodes) for g, r, k in [m.where(n)]
            if (g * m.routers + r) * m.nodes + k != n] == []  # fmt: skip


@given(machines())
def test_neighbours_see_each_other(m: Dragonfly) -> None:
    ends = {(R, c.port): c for R in range(m.n_routers) for c in m.neighbours(R)}
    for (router, port), cable in ends.items():
        if cable.kind == "terminal":
            assert m.where(cable.far) == (*divmod(router, m.routers), port)
            continue
        back = ends[cable.far, cable.far_port]
        assert (back.far, back.far_port, back.kind) == (router, port, cable.kind)
        same_group = cable.far // m.routers == router // m.routers
        assert same_group == (cable.kind == "local")
    assert len(ends) == m.n_routers * m.radix - m.groups * m.dark


@given(machines())
def test_cables_are_counted_once(m: Dragonfly) -> None:
    seen = [c.kind for R in range(m.n_routers) for c in m.neighbours(R)]
    assert m.n_links == {
        "terminal": seen.count("terminal"),
        "local": seen.count("local") / 2,
        "global": seen.count("global") / 2,
    }
    cables = m.global_cables()
    assert len(cables) == m.n_links["global"]
    for i, q, j, far_q in cables.tolist():
        assert i < j
        assert m.far()[i, q] == j * m.global_ports + far_q


@pytest.mark.parametrize(
    ("cabling", "of_group_3"),
    [
        ("absolute", [0, 1, 2, 4, 5, 6, 7]),
        ("relative", [4, 5, 6, 7, 0, 1, 2]),
        ("circulant", [4, 2, 5, 1, 6, 0, 7]),
    ],
)
def test_the_three_cablings(cabling: str, of_group_3: list[int]) -> None:
    m = Dragonfly(1, 7, 1, 8, cabling)
    assert (m.far()[3] // m.global_ports).tolist() == of_group_3


def test_copies_come_one_round_after_another() -> None:
    m = Dragonfly(1, 4, 4, 5, links_per_pair=3)
    assert (m.far()[0] // m.global_ports).tolist() == [
        1, 2, 3, -1, 4, 1, 2, -1, 3, 4, 1, -1, 2, 3, 4, -1,
    ]  # fmt: skip
    assert m.gates()[0, 2].tolist() == [1, 6, 12]


def test_dark_ports_are_spread_over_the_routers() -> None:
    m = Dragonfly(16, 32, 16, 74, links_per_pair=4)
    lit = (m.far()[0] >= 0).reshape(m.routers, m.global_links).sum(axis=1)
    assert lit.sum() == 4 * 73
    assert lit.max() - lit.min() <= 1


def test_a_quarter_of_a_million_nodes_are_cabled_at_once() -> None:
    m = Dragonfly(16, 32, 16, 513)
    assert m.n_nodes == 262_656
    assert m.gates().shape == (513, 513, 1)
    assert m.gates().dtype == m.far().dtype == np.int32
    far = m.far().ravel()
    assert (far[far] == np.arange(far.size)).all()


def test_tables_are_made_once_and_cannot_be_spoilt() -> None:
    m = Dragonfly(2, 4, 2, 9)
    assert m.far() is m.far()
    assert m.gates() is m.gates()
    with pytest.raises(ValueError, match="read-only"):
        m.far()[0, 0] = 1


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"groups": 40}, r"groups = 40: at most routers·global_links \+ 1 = 33 groups can be"),
        ({"groups": 12, "links_per_pair": 3}, r"links_per_pair = 3: .*need 33 ports .* = 32; "
                                              "at most 2"),
        ({"groups": 1, "links_per_pair": 1}, "links_per_pair = 1: one group has no pairs"),
        ({"links_per_pair": 0}, "links_per_pair = 0: at least 1"),
        ({"global_links": 0}, "global_links = 0: 33 groups need at least 4 a router"),
        ({"global_links": -1}, "global_links = -1: at least 0"),
        ({"nodes": 0}, "nodes = 0: at least 1"),
        ({"routers": -8}, "routers = -8: at least 1"),
        ({"groups": 0}, "groups = 0: at least 1"),
        ({"nodes": True}, "nodes = True: a whole number, at least 1"),
        ({"nodes": 4.0}, r"nodes = 4\.0: a whole number, at least 1"),
        ({"routers": "8"}, "routers = '8': a whole number"),
        ({"nodes": 2**40}, r"ports: at most 2147483647"),
        ({"cabling": "random"}, "cabling = random: one of absolute, relative, circulant"),
        ({"local": 5}, "local = 5: a LinkClass"),
    ],
)  # fmt: skip
def test_what_cannot_be_built_is_refused(fields: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {"nodes": 4, "routers": 8, "global_links": 4, "groups": 33}
    with pytest.raises(BadMachine, match=message):
        Dragonfly(**(good | fields))


@pytest.mark.parametrize(
    ("bandwidth", "latency", "message"),
    [
        (0, 0, "bandwidth = 0 B/s: 1 MB/s .. 10 TB/s"),
        (-1e9, 0, "bandwidth = -1000000000 B/s: 1 MB/s"),
        (1e14, 0, "1 MB/s .. 10 TB/s"),
        (float("nan"), 0, "bandwidth = nan B/s: a bandwidth, 1 MB/s"),
        (float("inf"), 0, "bandwidth = inf B/s: a bandwidth, 1 MB/s"),
        (True, 0, "bandwidth = True: a bandwidth, 1 MB/s"),
        ("fast", 0, "bandwidth = 'fast': a bandwidth, .* in Python, a number of B/s"),
        (1e9, -1, "latency = -1 ps: 0 .. 1 s"),
        (1e9, 0.5, r"latency = 0\.5 ps: a time, 0 .. 1 s"),
        (1e9, 10**13, "latency = 10000000000000 ps: 0 .. 1 s"),
    ],
)
def test_a_cable_that_cannot_be_is_refused(bandwidth: Any, latency: Any, message: str) -> None:
    with pytest.raises(BadMachine, match=message):
        LinkClass(bandwidth, latency)


def test_places_that_are_not_there_are_refused() -> None:
    m = Dragonfly(2, 4, 2, 9)
    for call, args in ((m.where, (72,)), (m.where, (-1,)), (m.neighbours, (36,)),
                       (m.global_port, (8,)), (m.local_port, (1, 1)),
                       (m.local_port, (0, 4))):  # fmt: skip
        with pytest.raises(ValueError, match="0 …"):
            call(*args)


def test_one_group_needs_no_global_links_and_one_router_no_local_ones() -> None:
    assert Dragonfly(4, 8, 0, 1).n_links == {"terminal": 32, "local": 28, "global": 0}
    assert Dragonfly(4, 8, 0, 1).far().shape == (1, 0)
    assert Dragonfly(4, 1, 4, 5).n_links == {"terminal": 20, "local": 0, "global": 10}
    assert Dragonfly(4, 8, 2, 1).dark == 16


@given(machines())
def test_both_ends_of_a_cable_name_each_other(machine: Dragonfly) -> None:
    ends = machine.ends()
    assert ends.shape == (machine.n_routers, machine.radix - machine.nodes)
    for router in range(machine.n_routers):
        cables = {c.port: c for c in machine.neighbours(router) if c.kind != "terminal"}
        for tile, end in enumerate(ends[router].tolist()):
            cable = cables.get(tile + machine.nodes)
            assert (end >= 0) == (cable is not None)
            if cable is not None:
                assert divmod(end, machine.radix) == (cable.far, cable.far_port)
                back = ends[cable.far, cable.far_port - machine.nodes]
                assert divmod(int(back), machine.radix) == (router, tile + machine.nodes)


def test_ports_that_cannot_be_spread_evenly_over_the_groups_stay_dark() -> None:
    machine = Dragonfly(2, 4, 2, 7)  # 8 ports, 6 other groups
    assert (machine.copies, machine.dark) == (1, 2)
    assert machine == Dragonfly(2, 4, 2, 7)
    given = Dragonfly(2, 4, 2, 7, links_per_pair=1)
    assert (machine.far() == given.far()).all()
    assert (machine.gates() == given.gates()).all()
