"""The configurations in which an application was measured, in order of the time it takes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Whole = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]


class Choice(NamedTuple):
    """A configuration in which an application was measured: nodes, cores of each, the cap per
    socket in watts; the watts that all its nodes draw, and the time that it takes, in ticks."""

    nodes: int
    cores: int
    cap_w: float
    watts: float
    time: int


class Mold(NamedTuple):
    """The choice that a moldable job starts in, by its configuration; and after how many ticks it
    may be ended (None: as its user requested)."""

    nodes: int
    cores: int
    cap_w: float
    limit: int | None = None


@dataclass(frozen=True, eq=False)
class Choices:
    """The choices that an application has, the fastest first; of those that take equally long the
    one that draws less, then the one on fewer nodes, with fewer cores, and with the lower cap."""

    nodes: Whole
    cores: Whole
    cap_w: Numbers
    watts: Numbers
    time: Whole

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, at: int) -> Choice:
        return self._rows[at]

    @cached_property
    def _rows(self) -> list[Choice]:
        return [*map(Choice, *(column.tolist() for column in self.columns))]

    @property
    def columns(self) -> tuple[npt.NDArray[Any], ...]:
        """Returns its five arrays."""
        return self.nodes, self.cores, self.cap_w, self.watts, self.time

    @cached_property
    def fewest(self) -> int:
        """Returns the smallest number of nodes that was measured. A job that asks for fewer is not
        moldable: nobody knows what it would take there, and more than it asks for it shall not be
        made to hold."""
        return int(self.nodes.min())

    @cached_property
    def digest(self) -> bytes:
        """Returns a hash of all of it."""
        found = hashlib.blake2b(digest_size=16)
        for column in self.columns:
            found.update(column.tobytes())
        return found.digest()

    def place(self, nodes: int, cores: int, cap_w: float) -> int:
        """Returns where a configuration stands, -1 where it was not measured."""
        return self._places.get((nodes, cores, cap_w), -1)

    def on(self, at: int, factors: Any) -> tuple[int, float]:
        """Returns the time that a choice takes on nodes that each draw so many times as much as the
        one on which it was measured, and the watts of all of them.

        Such a node is under its cap as the measured one is under as much less of a cap, and draws
        its factor of what that draws there. Without a cap, which the highest stands for, it is as
        fast. Between the caps that were measured on as many nodes and cores, and below the lowest,
        logarithms go along straight lines.
        """
        cap_w = float(self.cap_w[at])
        same = np.flatnonzero((self.nodes == self.nodes[at]) & (self.cores == self.cores[at]))
        highest = cap_w == self.cap_w.max()
        same = same[np.argsort(self.cap_w[same])]
        same = same[self.cap_w[same] <= cap_w]
        if highest or len(same) < 2:
            return int(self.time[at]), float(self.watts[at] / len(factors) * np.sum(factors))
        caps = np.log(self.cap_w[same])
        less = np.log(cap_w / np.asarray(factors, np.float64))
        time = _along(caps, np.log(self.time[same].astype(np.float64)), less)
        watts = _along(caps, np.log(self.watts[same]), less)
        slowest = max(int(self.time[at]), round(float(time.max())))
        return slowest, float((watts / len(factors) * factors).sum())

    @cached_property
    def _places(self) -> dict[tuple[int, int, float], int]:
        columns = (self.nodes.tolist(), self.cores.tolist(), self.cap_w.tolist())
        return {found: at for at, found in enumerate(zip(*columns, strict=True))}


def _along(x: Numbers, y: Numbers, at: Numbers) -> Numbers:
    """Returns what e to the power of a line through points is at these places; beyond the first
    point it goes on as between the first two."""
    place = np.clip(np.searchsorted(x, at, "right") - 1, 0, len(x) - 2)
    slope = (y[place + 1] - y[place]) / (x[place + 1] - x[place])
    found: Numbers = np.exp(y[place] + slope * (at - x[place]))
    return found


def choices_of(nodes: Any, cores: Any, cap_w: Any, watts: Any, time: Any) -> Choices:
    """Returns these choices, put in order."""
    order = np.lexsort((cap_w, cores, nodes, watts, time))
    whole = (np.asarray(column, np.int64)[order] for column in (nodes, cores, time))
    real = (np.asarray(column, np.float64)[order] for column in (cap_w, watts))
    nodes, cores, time = whole
    cap_w, watts = real
    for column in (nodes, cores, cap_w, watts, time):
        column.flags.writeable = False
    return Choices(nodes, cores, cap_w, watts, time)
