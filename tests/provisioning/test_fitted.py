"""The eight applications as models: what the thesis prints of them comes out."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from odonata.provisioning.applications import Application, estimate
from odonata.provisioning.fitted import (
    MACHINES,
    PACKAGE_W,
    PRINTED,
    PRINTED_CAB,
    tables,
)
from odonata.provisioning.search import best, packed_max, worst_case
from pdes.errors import Refused

ROOT = Path(__file__).parents[2]
WORST = 0.04
"""The largest error of a fitted point: SP-MZ of cab at (8×12, 65) takes 3.8 % less time."""


def at(
    application: Application, nodes: int, cores: int, cap_w: float
) -> tuple[float, float, float]:
    """Returns seconds, and watts of a package and of its memory."""
    found = estimate(application, *(np.array([float(it)]) for it in (nodes, cores, cap_w)))
    return float(found.seconds[0]), float(found.package_w[0]), float(found.dram_w[0])


@pytest.mark.parametrize("name", PRINTED)
def test_printed_points_of_class_c_are_met(name: str) -> None:
    for point in PRINTED[name]:
        seconds, package_w, dram_w = at(MACHINES["rzmerl"].applications[name], *point[:3])
        assert seconds == pytest.approx(point.seconds, rel=WORST), point
        assert 2 * point.nodes * (package_w + dram_w) == pytest.approx(point.watts, rel=0.02), point


def test_printed_points_of_class_d_are_met() -> None:
    for point in PRINTED_CAB:
        seconds, package_w, _ = at(MACHINES["cab"].applications["SP-MZ"], *point[:3])
        assert seconds == pytest.approx(point.seconds, rel=WORST), point
        assert 2 * point.nodes * package_w == pytest.approx(point.watts, rel=0.03), point


@pytest.mark.parametrize("name", PRINTED)
def test_the_search_finds_the_printed_configurations(name: str) -> None:
    """At 3,500 W. A cap that does not bind can be any: then time and watts are the same."""
    table, printed = tables("rzmerl")[name], PRINTED[name]
    found = best(table, 3500.0)
    assert found is not None
    assert found[:2] == printed.best[:2]
    same = table.find(*printed.best[:3])
    assert same is not None
    assert (same.seconds, same.watts) == (found.seconds, found.watts)
    packed, worst = packed_max(table, 3500.0), worst_case(table, 3500.0)
    assert packed is not None
    assert worst is not None
    assert packed[:3] == printed.packed_max[:3]
    assert worst[:3] == printed.worst[:3]


@pytest.mark.parametrize("name", PACKAGE_W)
def test_packages_of_cab_draw_what_figure_5_2_shows(name: str) -> None:
    _, package_w, _ = at(MACHINES["cab"].applications[name], 64, 16, 115.0)
    assert package_w == pytest.approx(PACKAGE_W[name], rel=0.015)


def test_the_best_configuration_gains_as_much_as_figure_5_3_shows() -> None:
    gains = []
    for bound_w in (6500.0, 8000.0, 10000.0, 12000.0, 14720.0):
        for name in PRINTED:
            table = tables("cab")[name]
            fast, packed = best(table, bound_w), packed_max(table, bound_w)
            assert fast is not None
            assert packed is not None
            gains.append(1 - fast.seconds / packed.seconds)
    assert max(gains) == pytest.approx(0.34, abs=0.01)
    assert np.mean(gains) == pytest.approx(0.11, abs=0.005)


def test_a_grid_has_every_configuration_of_the_thesis() -> None:
    assert {len(it) for it in tables("rzmerl").values()} == {13 * 7 * 5}
    assert {len(it) for it in tables("cab").values()} == {15 * 5 * 5}
    with pytest.raises(Refused, match="machine = sierra: one of rzmerl, cab"):
        tables("sierra")


@pytest.mark.parametrize("machine", MACHINES)
def test_more_power_never_slows_an_application_down(machine: str) -> None:
    """Nor does a package draw more than its cap, or a lower cap draw more."""
    for name, application in MACHINES[machine].applications.items():
        for cores in (4, 8, 12, 16):
            some = [at(application, 16, cores, cap) for cap in MACHINES[machine].grid.caps_w]
            seconds, package_w, _ = zip(*some, strict=True)
            assert [*seconds] == sorted(seconds, reverse=True), name
            assert [*package_w] == sorted(package_w), name
            caps = MACHINES[machine].grid.caps_w
            assert (np.array(package_w) <= np.array(caps) * (1 + 1e-9)).all(), name


@pytest.mark.long
def test_the_script_finds_the_same_parameters_again() -> None:
    script = ROOT / "scripts" / "fit_applications.py"
    done = subprocess.run([sys.executable, script, "SPhot", "cab"], capture_output=True, text=True,
                          check=True)  # fmt: skip
    fitted = {"SPhot": MACHINES["rzmerl"].applications["SPhot"],
              "SP-MZ of cab": MACHINES["cab"].applications["SP-MZ"]}  # fmt: skip
    for line in done.stdout.splitlines():
        name, brace, rest = line.partition(" {")
        if brace:
            for key, value in eval("{" + rest).items():
                assert getattr(fitted[name], key) == pytest.approx(value, rel=0.02), (name, key)
