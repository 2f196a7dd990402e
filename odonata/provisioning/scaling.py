"""How the time of an application depends on the number of nodes: along a **line**, as in T. Patki's
thesis, or along a **curve** through measured times."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from pdes.errors import Refused

LIMIT = 48
"""The largest number of nodes that the thesis lets a line hold for."""
ROUNDING = 1e-9
NO_NODE = "there is not one node"


@dataclass(frozen=True)
class Line:
    """An application's time on cheaper nodes: slope · nodes + intercept, in seconds."""

    slope: float
    """Seconds per node; below 0 where more nodes are faster."""
    intercept: float
    limit: int = LIMIT
    """The largest number of nodes for which the line holds."""
    from_nodes: int = 1
    """The smallest."""

    def time_s(self, nodes: float) -> float:
        """Returns the time on so many nodes, whether the line holds there or not."""
        return self.slope * nodes + self.intercept

    def why_not(self, nodes: float) -> str:
        """Returns why the line says nothing of so many nodes; empty where it does."""
        if nodes <= 0:
            return NO_NODE
        if nodes > self.limit:
            return f"{nodes:g} nodes, and the line holds to {self.limit}"
        if nodes < self.from_nodes:
            return f"{nodes:g} nodes, and the line holds from {self.from_nodes}"
        if self.time_s(nodes) <= 0:
            return f"the line's time at {nodes:g} nodes is {self.time_s(nodes):.2g} s"
        return ""


@dataclass(frozen=True)
class Curve:
    """An application's best measured times on cheaper nodes, for a job that may draw `bound_w`.

    Between two measured numbers of nodes, time is a straight line in the logarithms of both; it is
    drawn between the best times in which a node draws no more than one of the job may. A job may
    leave nodes unused where a measured number of fewer is faster, as each of these may draw more.
    """

    nodes: tuple[int, ...]
    """The numbers of nodes that were measured, ascending."""
    node_w: tuple[tuple[float, ...], ...]
    """Per number of nodes: what each node draws, ascending, of configurations that are faster than
    all that draw less."""
    seconds: tuple[tuple[float, ...], ...]
    """Their times."""
    from_nodes: int
    limit: int
    """The smallest and the largest number of nodes for which this is asked: at most those that were
    measured."""
    bound_w: float = math.inf

    def time_s(self, nodes: float) -> float:
        """Returns the time of a job that has so many nodes; infinite where nothing was measured on
        so many or fewer within the bound."""
        return self.used(nodes)[1]

    def used(self, nodes: float) -> tuple[float, float]:
        """Returns on how many of its nodes a job runs, and its time."""
        best = 0.0, math.inf
        above = bisect_right(self.nodes, nodes + ROUNDING)
        for at in range(above):
            time = self._best(at, self.bound_w / self.nodes[at])
            if time <= best[1]:
                best = self.nodes[at], time
        if 0 < above < len(self.nodes) and self.nodes[above - 1] < nodes - ROUNDING:
            each_w = self.bound_w / nodes
            few, many = self._best(above - 1, each_w), self._best(above, each_w)
            if few < math.inf and many < math.inf:
                low, high = self.nodes[above - 1], self.nodes[above]
                x = math.log(nodes / low) / math.log(high / low)
                time = rounded(math.exp((1 - x) * math.log(few) + x * math.log(many)))
                if time <= best[1]:
                    best = nodes, time
        return best

    def _best(self, at: int, each_w: float) -> float:
        """Returns the best time on a measured number of nodes that draw so much each at most."""
        found = bisect_right(self.node_w[at], each_w * (1 + ROUNDING))
        return self.seconds[at][found - 1] if found else math.inf

    def near(self, nodes: int) -> set[float]:
        """Returns the watts per node from which on another time is the best on so many nodes, by
        what was measured on these, or on the next numbers around them."""
        above = bisect_left(self.nodes, nodes)
        first = above if above < len(self.nodes) and self.nodes[above] == nodes else above - 1
        return {each for at in range(max(0, first), min(above + 1, len(self.nodes)))
                for each in self.node_w[at]}  # fmt: skip

    def why_not(self, nodes: float) -> str:
        """Returns why nothing is known of so many nodes; empty where something is."""
        if nodes <= 0:
            return NO_NODE
        if not self.from_nodes <= nodes <= self.limit:
            return f"{nodes:g} nodes, and its times are of {self.from_nodes} to {self.limit}"
        if self.time_s(nodes) == math.inf:
            return f"on {nodes:g} nodes or fewer nothing was measured within {self.bound_w:,.0f} W"
        return ""


def rounded(seconds: float) -> float:
    """Returns a time to six figures: the last bits of logarithms depend on the machine."""
    return float(f"{seconds:.6g}")


def fitted_line(nodes: Sequence[float], seconds: Sequence[float], limit: int) -> tuple[Line, float]:
    """Returns the line of least squares through the times at these numbers of nodes, and its mean
    relative error. It takes two numbers of nodes, and refuses fewer."""
    if len(set(nodes)) < 2:
        raise Refused("a line needs times at two numbers of nodes or more, and there are "
                      f"{len(set(nodes))}")  # fmt: skip
    mean_n, mean_s = math.fsum(nodes) / len(nodes), math.fsum(seconds) / len(nodes)
    slope = math.fsum((n - mean_n) * (s - mean_s) for n, s in zip(nodes, seconds, strict=True))
    slope /= math.fsum((n - mean_n) ** 2 for n in nodes)
    line = Line(slope, mean_s - slope * mean_n, limit)
    errors = (abs(line.time_s(n) - s) / s for n, s in zip(nodes, seconds, strict=True))
    return line, math.fsum(errors) / len(nodes)
