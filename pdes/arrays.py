"""Arrays that grow, and the memory that there is for them."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt

LINE_WORDS = 8
"""The bytes of a cache line."""


def doubled(length: int, needed: int) -> int:
    """Returns `length`, doubled until it is at least `needed`, so that growing is cheap on the
    whole."""
    length = max(1, length)
    while length < needed:
        length *= 2
    return length


def grown(array: npt.NDArray[Any], needed: int, keep: int) -> npt.NDArray[Any]:
    """Returns an array of at least `needed` rows whose first `keep` are those of `array`."""
    if needed <= len(array):
        return array
    larger = np.empty((doubled(len(array), needed), *array.shape[1:]), array.dtype)
    larger[:keep] = array[:keep]
    return larger


def aligned(shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """Returns zeros, beginning on a cache line."""
    size = int(np.prod(shape))
    spare = np.zeros(size + LINE_WORDS, np.int64)
    skip = -(spare.ctypes.data // 8) % LINE_WORDS
    return spare[skip : skip + size].reshape(shape)


def host_memory() -> int:
    """Returns the memory of this host, in bytes."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
