"""Watts and joules as text: read, shown to people, and written so that they read back."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odonata.experiment.units import (
    energy_j,
    exact_energy,
    exact_power,
    power_w,
    show_energy,
    show_power,
)

AMOUNTS = st.floats(0, 1e30) | st.integers(0, 10**12).map(float)
Shower = Callable[[float], str]


@pytest.mark.parametrize(
    ("text", "w"),
    [
        ("3000kW", 3e6), ("4.8 MW", 4.8e6), ("90 W", 90.0), ("500 mW", 0.5), ("0 W", 0.0),
        ("1.5e3 W", 1500.0), ("0.1 kW", 100.0), ("2 GW", 2e9),
    ],
)  # fmt: skip
def test_a_power_is_read(text: str, w: float) -> None:
    assert power_w(text) == w


@pytest.mark.parametrize(
    ("text", "j"),
    [
        ("300 J", 300.0), ("5 kJ", 5e3), ("2 kWh", 7.2e6), ("1.2 MWh", 4.32e9), ("3 MJ", 3e6),
        ("1 Wh", 3600.0), ("0 J", 0.0), ("250 mJ", 0.25),
    ],
)  # fmt: skip
def test_an_energy_is_read(text: str, j: float) -> None:
    assert energy_j(text) == j


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("3000", "not a power: a number and one of W, kW, MW"),
        ("3000 kWh", "not a power"),
        ("90 s", "not a power"),
        ("3 KW", "not a power"),
        ("nan W", "not a power"),
        ("", "not a power"),
        ("-1 W", "not negative"),
        ("1e400 W", "finite"),
        ("1e9999999 GW", "finite"),
    ],
)
def test_what_is_no_power_is_refused_with_what_is(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        power_w(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [("5 kW", "one of J, kJ, MJ"), ("5", "one of J"), ("-5 J", "negative"), ("1e400 J", "finite")],
)
def test_what_is_no_energy_is_refused_with_what_is(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        energy_j(text)


@given(AMOUNTS)
def test_every_power_and_energy_reads_back_as_the_same_number(amount: float) -> None:
    assert power_w(exact_power(amount)) == amount
    assert energy_j(exact_energy(amount)) == amount


def test_exact_texts_are_short() -> None:
    assert [exact_power(w) for w in (3e6, 4.8e6, 90.0, 0.5, 0.0)] == [
        "3 MW", "4.8 MW", "90 W", "0.5 W", "0 W"]  # fmt: skip
    assert [exact_energy(j) for j in (7.2e6, 300.0, 4.32e9, 0.0)] == [
        "2 kWh", "300 J", "1.2 MWh", "0 J"]  # fmt: skip


def test_powers_for_people_have_four_figures_and_the_unit_of_a_machine_room() -> None:
    shown = {
        3e6: "3,000 kW", 4.8e6: "4,800 kW", 2_843_217.0: "2,843 kW", 90.0: "90 W", 0.0: "0 W",
        61.25: "61.25 W", 0.5: "500 mW", 48_000.0: "48 kW", 9_999.4: "9,999 W", 9_999.6: "10 kW",
        12e6: "12 MW", 3e11: "300 GW",
    }  # fmt: skip
    assert {w: show_power(w) for w in shown} == shown


def test_energies_for_people_have_three_figures() -> None:
    shown = {
        12.3 * 3.6e9: "12.3 MWh", 300.0: "300 J", 5e3: "5 kJ", 1.5e6: "1,500 kJ", 7.2e6: "2 kWh",
        999.6 * 3.6e6: "1 MWh", 26.28 * 3.6e12: "26.3 GWh", 5e4 * 3.6e12: "50,000 GWh", 0.0: "0 J",
    }  # fmt: skip
    assert {j: show_energy(j) for j in shown} == shown


@given(AMOUNTS)
def test_what_people_see_is_near_the_number_and_short(amount: float) -> None:
    assert power_w(show_power(amount).replace(",", "")) == pytest.approx(amount, rel=5.1e-4)
    assert energy_j(show_energy(amount).replace(",", "")) == pytest.approx(amount, rel=5.1e-3)


@pytest.mark.parametrize("show", [show_power, show_energy, exact_power, exact_energy])
@pytest.mark.parametrize("amount", [-1.0, math.nan, math.inf])
def test_no_text_is_made_of_what_could_not_be_read(show: Shower, amount: float) -> None:
    with pytest.raises(ValueError, match="not negative, and finite"):
        show(amount)
