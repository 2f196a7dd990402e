"""The generator against its published vectors, its distributions against theory, and each kernel
against itself without the compiler."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdes import random
from pdes.jit import entry

U = np.uint64
word32 = st.integers(0, 2**32 - 1)
word64 = st.integers(0, 2**63 - 1)

# Random123's kat_vectors, philox4x32 10: counter, key, output.
VECTORS = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    (
        (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF),
        (0xFFFFFFFF, 0xFFFFFFFF),
        (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
    ),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


def plain(kernel: Any) -> Callable[..., Any]:
    """The Python that a kernel was compiled from."""
    return getattr(kernel, "py_func", kernel)  # type: ignore[no-any-return]


@pytest.mark.parametrize(("counter", "key", "expected"), VECTORS)
@pytest.mark.parametrize("twin", [random.philox, plain(random.philox)])
def test_philox_gives_the_published_words(
    twin: Any, counter: tuple[int, ...], key: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    assert tuple(int(w) for w in twin(*map(U, counter), *map(U, key))) == expected


@given(word64, word64, word64)
def test_a_draw_is_philox_of_agent_and_count_under_the_seed(
    seed: int, agent: int, count: int
) -> None:
    low, high = 0xFFFFFFFF, 32
    expected = random.philox(
        *(U(w) for w in (count & low, count >> high, agent & low, agent >> high)),
        *(U(w) for w in (seed & low, seed >> high)),
    )
    assert random.draw(seed, agent, count) == expected


@given(word32, word32)
def test_compiled_and_plain_exponential_are_equal_to_the_bit(high: int, low: int) -> None:
    @np.vectorize
    def plainly(x: float) -> float:
        return plain(random.log)(x)  # type: ignore[no-any-return]

    u = random.uniform(U(high), U(low))
    assert u == plain(random.uniform)(U(high), U(low))
    assert random.log(u).hex() == float(plainly(u)).hex()


@given(st.floats(2.0**-60, 1.0, exclude_max=True))
def test_our_logarithm_is_the_logarithm(x: float) -> None:
    assert math.isclose(random.log(x), math.log(x), rel_tol=6e-16, abs_tol=3e-16)


def test_uniform_never_reaches_its_ends() -> None:
    top = U(0xFFFFFFFF)
    assert 0 < random.uniform(U(0), U(0)) < random.uniform(top, top) < 1
    assert 0 < random.exponential(top, top) < random.exponential(U(0), U(0)) < 36.8


@given(word32, st.integers(1, 2**32))
def test_below_stays_below_and_reaches_both_ends(word: int, n: int) -> None:
    assert 0 <= random.below(U(word), n) < n
    assert random.below(U(0), n) == 0
    assert random.below(U(0xFFFFFFFF), n) == n - 1


@entry
def fill(values: Any, dice: Any) -> None:
    for i in range(values.shape[0]):
        _, w1, w2, w3 = random.draw(42, 7, i)
        values[i] = random.exponential(w2, w3)
        dice[i] = random.below(w1, 6)


def test_moments_of_a_million_draws_are_those_of_the_distributions() -> None:
    from scipy import stats

    n = 1_000_000
    values, dice = np.empty(n), np.empty(n, np.int64)
    fill(values, dice)
    assert stats.kstest(values, "expon").pvalue > 1e-3
    assert stats.chisquare(np.bincount(dice)).pvalue > 1e-3
    assert abs(np.corrcoef(values, dice)[0, 1]) < 4 / math.sqrt(n)
    assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 4 / math.sqrt(n)
