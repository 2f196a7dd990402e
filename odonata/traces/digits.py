"""Numbers as text, compiled: digits written into an array of bytes."""

from __future__ import annotations

from typing import Any

from pdes.jit import kernel

SECOND = 10**6
LONGEST = 20
"""The most bytes that a number takes."""


@kernel
def put(text: Any, at: int, number: int, least: int) -> int:
    """Write a number that is not negative, with at least so many digits. Returns where the text
    goes on."""
    digits, rest = 1, number // 10
    while rest > 0:
        digits += 1
        rest //= 10
    end = at + max(digits, least)
    for place in range(end - 1, at - 1, -1):
        text[place] = 48 + number % 10
        number //= 10
    return end


@kernel
def put_seconds(text: Any, at: int, us: int) -> int:
    """Write a time in seconds, with six decimals. Returns where the text goes on."""
    at = put(text, at, us // SECOND, 1)
    text[at] = 46
    return put(text, at + 1, us % SECOND, 6)


@kernel
def put_short_seconds(text: Any, at: int, us: int) -> int:
    """Write a time in seconds with as many decimals as it needs, or -1 for one below 0. Returns
    where the text goes on."""
    if us < 0:
        text[at] = 45
        text[at + 1] = 49
        return at + 2
    if us % SECOND == 0:
        return put(text, at, us // SECOND, 1)
    at = put_seconds(text, at, us)
    while text[at - 1] == 48:
        at -= 1
    return at


@kernel
def put_signed(text: Any, at: int, number: int) -> int:
    """Write a whole number. Returns where the text goes on."""
    if number < 0:
        text[at] = 45
        return put(text, at + 1, -number, 1)
    return put(text, at, number, 1)
