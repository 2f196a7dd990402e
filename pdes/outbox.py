"""What one rank has for the others: events as they come, and the letters that take them there."""

from __future__ import annotations

import numpy as np

from pdes.arrays import grown
from pdes.events import Rows, no_rows
from pdes.loop import OUT


class Outbox:
    """The compiled loop fills `rows` and, at a horizon, groups them by rank in `letters`, each
    group behind a head row; `places` says where each rank's begins. The first two are replaced when
    they grow. How many rows there are is a word of the loop's `ctl`."""

    def __init__(self, ctl: Rows, ranks: int, words: int, fanout: int) -> None:
        self._ctl, self._ranks, self._fanout = ctl, ranks, fanout
        self._heads = np.arange(ranks + 1)
        self.rows = self.letters = no_rows(words)
        self.places = self._heads.copy()
        self.make_room()

    def make_room(self, more: int = 0) -> None:
        """Has room for `more` events and what one event makes, and letters for all of it."""
        n = int(self._ctl[OUT])
        self.rows = grown(self.rows, n + more + self._fanout, keep=n)
        self.letters = grown(self.letters, len(self.rows) + self._ranks, keep=0)

    def add(self, rows: Rows) -> None:
        self.make_room(len(rows))
        n = int(self._ctl[OUT])
        self.rows[n : n + len(rows)] = rows
        self._ctl[OUT] = n + len(rows)

    def give_out(self) -> tuple[Rows, list[int]]:
        """Returns the letters and where each begins; after that they are but heads."""
        places: list[int] = self.places.tolist()
        self.places[:] = self._heads
        return self.letters, places
