"""What was measured of an application: its time and its power in each configuration.

A **configuration** (n × c, p) is a number of nodes, of cores of each that are used, and a cap of p
watts per socket. A **bound** is the power that all nodes of the job may draw together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from policies.views import Choices, choices_of

Whole = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]
US = 1_000_000


class Point(NamedTuple):
    """A configuration, the seconds that an application takes in it, and the watts that all of its
    nodes draw meanwhile."""

    nodes: int
    cores: int
    cap_w: float
    seconds: float
    watts: float

    @property
    def name(self) -> str:
        """Returns the configuration as the thesis writes it, as (26×12, 80)."""
        return f"({self.nodes}×{self.cores}, {self.cap_w:g})"


@dataclass(frozen=True, eq=False)
class Table:
    """The points that are known of one application, in order of nodes, cores and caps, each
    configuration once. The highest cap stands for no cap at all, with turbo."""

    application: str
    nodes: Whole
    cores: Whole
    cap_w: Numbers
    """[point]: watts per socket."""
    seconds: Numbers
    watts: Numbers
    """[point]: of all nodes together."""

    def __len__(self) -> int:
        return len(self.nodes)

    def point(self, at: int) -> Point:
        """Returns the point at this place."""
        return Point(int(self.nodes[at]), int(self.cores[at]), float(self.cap_w[at]),
                     float(self.seconds[at]), float(self.watts[at]))  # fmt: skip

    def find(self, nodes: int, cores: int, cap_w: float) -> Point | None:
        """Returns the point of a configuration, None where it was not measured."""
        found = np.flatnonzero(
            (self.nodes == nodes) & (self.cores == cores) & (self.cap_w == cap_w)
        )
        return self.point(int(found[0])) if len(found) else None

    @cached_property
    def most_node_w(self) -> float:
        """Returns the most watts that a node draws in any configuration."""
        return float((self.watts / self.nodes).max())

    @cached_property
    def least_node_w(self) -> float:
        """Returns the least watts that a node draws in any configuration."""
        return float((self.watts / self.nodes).min())

    def packed_node_w(self, nodes: Whole) -> Numbers:
        """Returns the watts of a node with the most cores and of these the highest cap, on the
        largest measured number of nodes up to these, or on the smallest."""
        last = np.flatnonzero(np.diff(self.nodes, append=0))
        at = np.maximum(0, np.searchsorted(self.nodes[last], nodes, "right") - 1)
        found: Numbers = (self.watts / self.nodes)[last[at]]
        return found

    @cached_property
    def choices(self) -> Choices:
        """Returns the points as a power policy sees them, with times in microseconds."""
        return choices_of(self.nodes, self.cores, self.cap_w, self.watts,
                          np.maximum(1, np.rint(self.seconds * US)).astype(np.int64))  # fmt: skip


def sorted_table(
    application: str, nodes: Whole, cores: Whole, cap_w: Numbers, seconds: Numbers, watts: Numbers
) -> Table:
    """Returns the table of these points, put in order."""
    order = np.lexsort((cap_w, cores, nodes))
    return Table(application, nodes[order], cores[order], cap_w[order], seconds[order],
                 watts[order])  # fmt: skip
