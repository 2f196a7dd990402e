"""Random numbers that belong to an agent: Philox4x32-10 (Salmon et al., SC 2011).

A draw is a function of (seed, agent, how many draws that agent made before) and of nothing else:
no stream is shared, nothing has to be carried when an agent moves to another rank. One draw gives
four independent 32-bit words, which the functions below turn into what a model needs.

The logarithm is our own, from additions, multiplications and one division in a fixed order, so
that an exponential delay is the same to the last bit on every machine, compiled or not; two
libraries' `log` need not agree in their last bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pdes.jit import kernel

U64 = np.uint64
LOW = U64(0xFFFFFFFF)
HALF = U64(32)
MULTIPLIER_0, MULTIPLIER_1 = U64(0xD2511F53), U64(0xCD9E8D57)
WEYL_0, WEYL_1 = U64(0x9E3779B9), U64(0xBB67AE85)
ROUNDS = 10

FRACTION = 0x000FFFFFFFFFFFFF
ONE = 0x3FF0000000000000
SQRT2 = 1.4142135623730951
LN2 = 0.6931471805599453
STEP = 2.0**-52


@kernel
def philox(c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any) -> Any:
    """Returns four 32-bit words (as uint64) from a 128-bit counter and a 64-bit key, all as such
    words."""
    for _ in range(ROUNDS):
        p0 = MULTIPLIER_0 * c0
        p1 = MULTIPLIER_1 * c2
        c0 = (p1 >> HALF) ^ c1 ^ k0
        c1 = p1 & LOW
        c2 = (p0 >> HALF) ^ c3 ^ k1
        c3 = p0 & LOW
        k0 = (k0 + WEYL_0) & LOW
        k1 = (k1 + WEYL_1) & LOW
    return c0, c1, c2, c3


@kernel
def draw(seed: int, agent: int, count: int) -> Any:
    """Returns the agent's draw number `count`: four independent words on 0 .. 2**32 - 1."""
    s, g, n = U64(seed), U64(agent), U64(count)
    return philox(n & LOW, n >> HALF, g & LOW, g >> HALF, s & LOW, s >> HALF)


@kernel
def below(word: Any, n: int) -> int:
    """Returns an integer in 0 .. n - 1 (n at most 2**32) from one word; its bias is at most n /
    2**32."""
    return np.int64((word * U64(n)) >> HALF)  # type: ignore[return-value]


@kernel
def uniform(high: Any, low: Any) -> float:
    """Returns a number strictly between 0 and 1, one of 2**52 equidistant ones."""
    bits = np.int64((high << U64(20)) | (low >> U64(12)))
    return (np.float64(bits) + 0.5) * STEP  # type: ignore[no-any-return]


@kernel
def log(x: float) -> float:
    """Returns the natural logarithm of a positive normal number, the same bits everywhere.

    x = m * 2**e with m near 1; log m = 2 artanh(s), s = (m - 1) / (m + 1), |s| < 0.172, by its
    series. Within 6e-16 of the value, or 3e-16 absolute, whichever is more (tests hold it to that).
    """
    bits = np.float64(x).view(np.int64)
    e = (bits >> 52) - 1023
    m = np.int64((bits & FRACTION) | ONE).view(np.float64)
    if m > SQRT2:
        m = m * 0.5
        e = e + 1
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    y = z * z  # the even and the odd terms apart: two short chains of operations, not one long
    odd = (((y * (1 / 19) + 1 / 15) * y + 1 / 11) * y + 1 / 7) * y + 1 / 3
    even = (((y * (1 / 21) + 1 / 17) * y + 1 / 13) * y + 1 / 9) * y + 1 / 5
    series = z * (odd + z * even)
    return 2.0 * s + 2.0 * s * series + e * LN2  # type: ignore[no-any-return]


@kernel
def exponential(high: Any, low: Any) -> float:
    """Returns an exponential variate of mean 1, from two words; at most 36.8."""
    return -log(uniform(high, low))
