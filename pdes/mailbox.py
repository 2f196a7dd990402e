"""The mailbox: shared memory in which the ranks of one host exchange letters.

An agreement between ranks is a letter in each direction, some thousand times per second. Here that
is a copy, a number that says which turn it belongs to, and a look at the other's. Each pair has two
places, used in turns: the rank that writes turn n + 2 has read turn n + 1 of the other, which by
then has finished with turn n.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from pdes.events import Rows

MOST_BYTES = 1 << 26
"""The bytes of all places together, at most."""
PLACE_BYTES, LEAST_BYTES = 1 << 16, 1 << 12
"""The bytes of one place, at least; where there are so many ranks that it would be less, there is
no mailbox."""
LINE = 8
PATIENCE = 500
"""Looks at the mailbox before the processor is yielded, if there is a processor for each rank."""


def place_bytes(ranks: int) -> int:
    """Returns how large each place can be, in bytes, or 0."""
    room = min(PLACE_BYTES, MOST_BYTES // (2 * ranks * ranks)) & ~4095
    return room if room >= LEAST_BYTES else 0


def mailbox_bytes(ranks: int) -> int:
    return ranks * ranks * (2 * place_bytes(ranks) + 8 * LINE)


class Mailbox:
    """One rank's view of the mailbox. `memory` is shared, zero, and mailbox_bytes(ranks) long;
    `fence` keeps what was written or read before it apart from what comes after, for memory that is
    not ordered by itself."""

    def __init__(self, memory: Any, rank: int, ranks: int, fence: Any) -> None:
        words = np.frombuffer(memory, np.int64)
        flags = ranks * ranks * LINE
        self._turns = words[:flags].reshape(ranks, ranks, LINE)[:, :, 0]
        self._places = words[flags:].reshape(2, ranks, ranks, -1)
        self._rank, self._peers = rank, [r for r in range(ranks) if r != rank]
        self._fence = fence
        self._turn = 0
        self._patience = PATIENCE if ranks <= len(os.sched_getaffinity(0)) else 0
        self.carry(1)

    def carry(self, words: int) -> None:
        self.fits = self._places.shape[3] // words
        """Returns the number of rows of a letter that fit here."""
        cut = self._places[..., : self.fits * words]
        self._rows = cut.reshape(*cut.shape[:3], self.fits, words)

    def exchange(self, letters: Rows, places: list[int]) -> list[Rows]:
        """Returns the letter of every peer, in order, as far as it fits here."""
        me, rows = self._rank, self._rows[self._turn & 1]
        self._turn = turn = self._turn + 1
        for peer in self._peers:
            start = places[peer]
            length = min(places[peer + 1] - start, self.fits)
            rows[me, peer, :length] = letters[start : start + length]
        self._fence()
        self._turns[me] = turn
        theirs = self._turns[:, me]
        looks = 0
        for peer in self._peers:
            while theirs[peer] < turn:
                looks += 1
                if looks > self._patience:
                    os.sched_yield()
        self._fence()
        return [rows[peer, me] for peer in self._peers]
