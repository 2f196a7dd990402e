"""The energy of a run's network, from what its ports have counted."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from machines import SMALL, US, network

from odonata.agents.network import Network
from odonata.experiment.experiment import Experiment
from odonata.experiment.sections import Metrics, NetworkSettings, RunSettings
from odonata.results.execution import recording
from odonata.results.network_power import network_energy
from odonata.results.run import Run
from odonata.results.run import open as open_run
from pdes.driver import run
from pdes.errors import Refused
from pdes.join import join
from pdes.transport import Serial
from topology.power import NetworkPower, generic
from topology.presets import PRESETS

END = 3 * US + 300_000
POWER = NetworkPower(20, 30, 1, 2, 3, 5, 7, 11, "a test")
IDLE, ROUTERS, TERMINAL, LOCAL, GLOBAL = (
    NetworkPower(*watts, "a test")
    for watts in ((20, 20, 1, 1, 3, 3, 7, 7), (0, 1, 0, 0, 0, 0, 0, 0), (0, 0, 0, 1, 0, 0, 0, 0),
                  (0, 0, 0, 0, 0, 1, 0, 0), (0, 0, 0, 0, 0, 0, 0, 1))
)  # fmt: skip


def recorded(model: Network, out: Path, ports: bool = True) -> tuple[Run, dict[str, Any]]:
    """Returns an opened run, and what the engine itself has counted."""
    routers = {field.name: getattr(model, field.name) for field in fields(NetworkSettings)}
    traffic = model.traffic if isinstance(model.traffic, tuple) else (model.traffic,)
    made = Experiment("small", "", model.machine, NetworkSettings(**routers), traffic,
                      run=RunSettings(END, seed=model.seed),
                      metrics=Metrics(US, ports, False))  # fmt: skip
    result = run(made.model(), END, record=recording(made, out), transport=Serial(),
                 show_compiling=False)  # fmt: skip
    join(out, out / "run.h5", {"digest": result.digest})
    opened = open_run(out)
    assert isinstance(opened, Run)
    return opened, result.outcome


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, dict[str, Any]]:
    return recorded(network(), tmp_path_factory.mktemp("run"))


def test_the_parts_add_up_and_lie_between_idle_and_peak(done: tuple[Run, dict[str, Any]]) -> None:
    energy, seconds = network_energy(done[0], POWER), END / 1e12
    parts = energy.router_j, energy.terminal_j, energy.local_j, energy.global_j
    assert energy.total_j == sum(parts)
    assert energy.idle_j == pytest.approx(POWER.idle_w(SMALL) * seconds, rel=1e-12)
    assert energy.idle_j < energy.total_j < POWER.peak_w(SMALL) * seconds
    assert energy.mean_w == pytest.approx(energy.total_j / seconds, rel=1e-12)
    delivered = int(done[0].nodes.received_bytes.sum())
    assert delivered > 0
    assert energy.per_delivered_byte_j == energy.total_j / delivered


def test_where_traffic_adds_nothing_the_total_is_idle(done: tuple[Run, dict[str, Any]]) -> None:
    energy = network_energy(done[0], IDLE)
    assert energy.total_j == pytest.approx(energy.idle_j, rel=1e-12)


def test_each_direction_that_was_in_use_counts_for_half_a_cable(
    done: tuple[Run, dict[str, Any]],
) -> None:
    opened, outcome = done
    m = opened.machine
    routers = m.routers * m.radix
    busy = outcome["busy_ps"][:, :routers].reshape(-1, m.radix) / 1e12
    injecting = outcome["busy_ps"][:, routers:].sum() / 1e12
    assert injecting > 0
    for power, name, expected in (
        (TERMINAL, "terminal_j", busy[:, : m.nodes].sum() + injecting),
        (LOCAL, "local_j", busy[:, m.nodes : m.nodes + m.routers - 1].sum()),
        (GLOBAL, "global_j", busy[:, m.nodes + m.routers - 1 :].sum()),
    ):
        energy = network_energy(opened, power)
        assert getattr(energy, name) == pytest.approx(expected / 2, rel=1e-9)
        assert energy.total_j == getattr(energy, name)
    assert network_energy(opened, ROUTERS).total_j == pytest.approx(busy.mean(axis=1).sum())


def test_ports_without_a_cable_do_not_lower_the_utilisation_of_a_router(tmp_path: Path) -> None:
    machine = replace(SMALL, groups=3, links_per_pair=1)
    opened, outcome = recorded(network(machine), tmp_path)
    busy = outcome["busy_ps"][:, : machine.routers * machine.radix].reshape(-1, machine.radix)
    lit = np.ones_like(busy, bool)
    lit[:, machine.nodes :] = machine.ends() >= 0
    assert (~lit).any()
    expected = (busy.sum(axis=1) / lit.sum(axis=1)).sum() / 1e12
    assert network_energy(opened, ROUTERS).router_j == pytest.approx(expected)


def test_a_run_without_traffic_draws_idle_power_all_the_time_and_delivers_nothing(
    tmp_path: Path,
) -> None:
    opened, _ = recorded(network(load=1e-9), tmp_path)
    energy = network_energy(opened, POWER)
    assert energy.total_j == pytest.approx(POWER.idle_w(SMALL) * END / 1e12, rel=1e-12)
    assert energy.per_delivered_byte_j is None


def test_the_watts_are_the_presets_or_generic(
    done: tuple[Run, dict[str, Any]], tmp_path: Path
) -> None:
    assert network_energy(done[0]) == network_energy(done[0], generic(SMALL))
    preset = PRESETS["kim-72"]
    opened, _ = recorded(network(preset.machine), tmp_path)
    assert network_energy(opened) == network_energy(opened, preset.power)
    assert network_energy(opened) != network_energy(opened, POWER)


def test_without_the_counters_of_ports_it_is_refused_with_the_cure(tmp_path: Path) -> None:
    opened, _ = recorded(network(), tmp_path, ports=False)
    with pytest.raises(Refused, match="ports were not recorded"):
        network_energy(opened)
