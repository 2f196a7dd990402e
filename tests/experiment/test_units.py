from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odonata.experiment.units import LONGEST, show_count, show_time, time_ps


@pytest.mark.parametrize(
    ("text", "ps"),
    [
        ("500ns", 500_000),
        ("1us", 1_000_000),
        ("1.5 µs", 1_500_000),
        ("1.5 μs", 1_500_000),
        ("2e-3 s", 2_000_000_000),
        ("0ps", 0),
        (".5ns", 500),
    ],
)
def test_a_time_is_read(text: str, ps: int) -> None:
    assert time_ps(text) == ps


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("500", "not a time"),
        ("ns", "not a time"),
        ("5 lightyears", "not a time"),
        ("1 us 2", "not a time"),
        ("", "not a time"),
        ("-1ns", "not negative"),
        ("0.5ps", "whole number of picoseconds"),
        ("1e30s", "longest time"),
        ("1e9999999s", "longest time"),
    ],
)
def test_what_is_no_time_is_refused_with_what_is(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        time_ps(text)


@given(st.integers(0, LONGEST))
def test_every_time_is_shown_exactly(ps: int) -> None:
    assert time_ps(show_time(ps)) == ps


@given(st.text(max_size=12))
def test_nonsense_never_crashes(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert 0 <= time_ps(text) <= LONGEST


def test_counts_are_short() -> None:
    assert [show_count(x) for x in (0, 12, 1234, 15.26e6)] == ["0", "12", "1.23 k", "15.3 M"]
