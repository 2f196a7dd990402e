"""The watts of a network add up, and every preset says where its own are from."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odonata.commands.topology_shown import network_watts, preset_facts
from topology import BadMachine, Dragonfly, LinkClass
from topology.power import ARIES, CABLES, PARTS, SLINGSHOT, NetworkPower, generic
from topology.presets import PRESETS, power_of
from topology.settings import settings_of

MACHINE = Dragonfly(2, 4, 2, 5, links_per_pair=1)
"""It has dark ports: 4 of the 8 global ones of a group."""
POWER = NetworkPower(20, 30, 1, 2, 3, 5, 7, 11, "a test")


def full(machine: Dragonfly, seconds: float) -> dict[str, float]:
    return {kind: 2 * count * seconds for kind, count in machine.n_links.items()}


def test_idle_and_peak_are_sums_over_routers_and_cables_and_dark_ports_have_none() -> None:
    assert MACHINE.n_links == {"terminal": 40, "local": 30, "global": 10}
    assert POWER.idle_w(MACHINE) == 20 * 20 + 40 * 1 + 30 * 3 + 10 * 7
    assert POWER.peak_w(MACHINE) == 20 * 30 + 40 * 2 + 30 * 5 + 10 * 11


@given(st.floats(0, 1e9))
def test_without_traffic_the_energy_is_idle_power_times_time(seconds: float) -> None:
    for machine, power in ((MACHINE, POWER), (PRESETS["theta"].machine, ARIES)):
        expected = pytest.approx(power.idle_w(machine) * seconds, rel=1e-12)
        assert power.energy_j(machine, seconds).total_j == expected
        zeros = np.zeros(machine.n_routers)
        idle = power.energy_j(machine, seconds, zeros, dict.fromkeys(CABLES, 0.0))
        assert idle.total_j == expected


@pytest.mark.parametrize("kind", CABLES)
def test_a_cable_busy_both_ways_draws_its_active_power_and_one_way_half_of_the_rest(
    kind: str,
) -> None:
    seconds = 3.0
    idle, active = POWER.watts(kind)
    before = POWER.energy_j(MACHINE, seconds)
    both = POWER.energy_j(MACHINE, seconds, busy_s={kind: 2 * seconds})
    one = POWER.energy_j(MACHINE, seconds, busy_s={kind: seconds})
    assert both.total_j - before.total_j == pytest.approx((active - idle) * seconds, rel=1e-12)
    assert one.total_j - before.total_j == pytest.approx((active - idle) * seconds / 2, rel=1e-12)
    changed = {name for name, a, b in zip(before._fields, before, both, strict=True) if a != b}
    assert changed == {f"{kind}_j"}


def test_a_router_draws_of_its_active_part_as_much_as_its_ports_are_used() -> None:
    load = np.zeros(MACHINE.n_routers)
    load[3], load[7] = 1.0, 0.25
    joules = POWER.energy_j(MACHINE, 2.0, load)
    assert joules.router_j == pytest.approx((20 * 20 + 1.25 * (30 - 20)) * 2.0, rel=1e-12)


@pytest.mark.parametrize("name", PRESETS)
def test_a_network_that_is_full_everywhere_draws_its_peak(name: str) -> None:
    machine, power = PRESETS[name].machine, PRESETS[name].power
    ones = np.ones(machine.n_routers)
    joules = power.energy_j(machine, 1e-4, ones, full(machine, 1e-4))
    assert joules.total_j == pytest.approx(power.peak_w(machine) * 1e-4, rel=1e-9)
    assert joules.total_j == pytest.approx(sum(joules), rel=1e-12)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_has_watts_with_a_source_and_traffic_adds_to_them(name: str) -> None:
    preset = PRESETS[name]
    assert len(preset.power.source) > 40
    for part in PARTS:
        idle, active = preset.power.watts(part)
        assert 0 <= idle <= active
    assert 0 < preset.power.idle_w(preset.machine) < preset.power.peak_w(preset.machine)
    assert "chosen" in preset.power.source, "which of the numbers are ours"


def test_a_router_of_frontier_is_one_of_250_watts_and_all_of_them_draw_0_6_megawatts() -> None:
    preset = PRESETS["frontier"]
    assert preset.power.router_active_w == 250
    assert 2368 * 250 < preset.power.peak_w(preset.machine) < 1.3 * 2368 * 250


def test_a_generic_router_has_watts_by_its_ports_and_slow_fibre_draws_less() -> None:
    small, large = (generic(PRESETS[name].machine) for name in ("kim-72", "kim-1056"))
    assert large.router_active_w / small.router_active_w == pytest.approx(15 / 7)
    sixty_four = generic(Dragonfly(16, 32, 17, 2, links_per_pair=1))
    assert sixty_four.router_active_w == SLINGSHOT.router_active_w
    slow = generic(PRESETS["levelspread-1056"].machine)
    assert slow.global_active_w < large.global_active_w
    assert slow.router_active_w == large.router_active_w


def test_the_same_routers_in_another_number_have_the_watts_of_their_preset() -> None:
    for name, preset in PRESETS.items():
        assert power_of(preset.machine) == preset.power, name
    theta = PRESETS["theta"].machine
    cable = replace(theta.global_, latency_ps=7)
    smaller = replace(theta, groups=3, links_per_pair=5, cabling="circulant", global_=cable)
    assert power_of(smaller) == ARIES
    faster = replace(theta, local=LinkClass(6e9, 100_000))
    assert power_of(faster) == generic(faster)
    assert power_of(replace(theta, nodes=3)) == generic(replace(theta, nodes=3))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"router_idle_w": 31}, "router_active_w = 30: at least router_idle_w = 31"),
        ({"local_active_w": -1}, "local_active = -1 W: at least 0"),
        ({"global_idle_w": float("nan")}, "global_idle = nan W: a power, at least 0"),
        ({"global_active_w": float("inf")}, "global_active = inf W: a power"),
        ({"terminal_idle_w": "1 W"}, "terminal_idle = '1 W': a power, at least 0; in Python"),
        ({"terminal_idle_w": True}, "terminal_idle = True: a power"),
        ({"source": "  "}, "source = '  ': say where"),
    ],
)
def test_watts_that_cannot_be_are_refused_by_name(given: dict[str, Any], message: str) -> None:
    with pytest.raises(BadMachine) as refused:
        replace(POWER, **given)
    assert str(refused.value).startswith(message)
    assert refused.value.problems[0].fields


def test_all_that_is_wrong_is_named_at_once() -> None:
    with pytest.raises(BadMachine) as refused:
        replace(POWER, router_idle_w=31, local_idle_w=-3)
    fields_of = [problem.fields for problem in refused.value.problems]
    assert fields_of == [("local_idle_w",), ("router_active_w", "router_idle_w")]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"duration_s": -1.0}, "duration_s = -1.0"),
        ({"router_load": np.ones(3)}, "one for each of the machine's 20 routers"),
        ({"router_load": np.full(20, 1.1)}, "from 0 to 1"),
        ({"router_load": np.full(20, np.nan)}, "from 0 to 1"),
        ({"busy_s": {"local": 61.0}}, "busy_s of local cables = 61.0: from 0 to 60.0"),
        ({"busy_s": {"optical": 1.0}}, "one of terminal, local, global"),
    ],
)
def test_a_use_that_cannot_be_is_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        POWER.energy_j(MACHINE, **{"duration_s": 1.0, **given})


def test_every_power_is_a_setting_and_only_the_source_is_not() -> None:
    settings = {one.name: how for one, how in settings_of(NetworkPower)}
    assert list(settings) == [f"{part}_{state}_w" for part in PARTS for state in ("idle", "active")]
    assert {how.kind for how in settings.values()} == {"power"}
    assert {one.name for one in fields(NetworkPower)} - set(settings) == {"source"}


def test_presets_are_listed_with_the_watts_of_their_networks() -> None:
    facts = json.loads(json.dumps(preset_facts()))
    assert list(facts) == list(PRESETS)
    for name, preset in PRESETS.items():
        assert facts[name]["network_idle_w"] == preset.power.idle_w(preset.machine)
        assert facts[name]["network_peak_w"] == preset.power.peak_w(preset.machine)
        assert facts[name]["power"] == asdict(preset.power)
    assert (
        network_watts(PRESETS["kim-1056"].machine, PRESETS["kim-1056"].power) == "20.37 to 21.14 kW"
    )
    across = replace(PRESETS["kim-72"], power=replace(POWER, router_active_w=1e6))
    assert network_watts(across.machine, across.power) == "1,206 W to 36 MW"
