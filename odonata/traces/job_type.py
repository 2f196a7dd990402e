"""A type of jobs: what a node of a job draws, and how long the job takes, without a cap and under
the lowest one; and the columns of a table of types."""

from __future__ import annotations

import math
from dataclasses import dataclass

from odonata.traces.trace import LONGEST_NAME
from pdes.errors import Findings

BY = ("application", "user", "project", "nodes", "any")
IDLE = "idle"
"""What is there instead of one of these where a row is no type: its `power_max_w` is what a node
without a job draws."""
MOST_NODES = 10**9
COLUMNS = {
    "type": "its name: that of an application, user or project, or sizes of jobs, as 1-4 or >=64",
    "by": f"what jobs are matched by: {', '.join(BY)}; application unless given. {IDLE}: the row "
    "tells what a node without a job draws",
    "nodes": "nodes of a job that a model makes",
    "time_min_s": "its run time without a cap, in s",
    "time_max_s": "its run time under the lowest cap, in s; or give slowdown",
    "slowdown": "time_max_s / time_min_s",
    "power_max_w": "what a node draws without a cap, in W",
    "power_min_w": "the lowest cap of a node, in W",
    "q_threshold": "the degradation that its jobs are to stay below; empty: none",
    "delay_rate_per_s": "how fast the chance of a delay falls with its length, for QoSG, in 1/s",
}
"""The columns of a table, and what they hold."""
LIMITS = {
    "nodes": (1.0, 1e9), "time_min_s": (1e-6, 1e10), "time_max_s": (1e-6, 1e12),
    "slowdown": (1.0, 1000.0), "power_max_w": (1e-3, 1e9), "power_min_w": (1e-3, 1e9),
    "q_threshold": (1e-6, math.inf), "delay_rate_per_s": (1e-12, 1e6),
}  # fmt: skip
"""What is accepted of each column of numbers: beyond it, a number is a mistake."""


@dataclass(frozen=True)
class JobType:
    """One type of jobs: applications, users, projects or sizes that draw the same."""

    name: str
    """What jobs are matched by, as `by` says."""
    most_w: float
    """What a node draws without a cap, p_max."""
    least_w: float
    """What a node draws under the lowest cap, p_min; where it is `most_w` or more, caps do
    nothing."""
    slowdown: float = 1.0
    """How many times as long a job takes under the lowest cap, T_max / T_min."""
    nodes: int | None = None
    """The nodes of a job that a model makes."""
    shortest_s: float | None = None
    """The run time without a cap, T_min, of a job that a model makes; jobs of a trace have their
    own."""
    threshold: float = math.inf
    """The degradation that its jobs are to stay below, Q_thres; infinite: there is none."""
    delay_rate: float | None = None
    """How fast the chance of a delay is to fall with its length, δ_D, in 1/s; None: not stated."""
    by: str = "application"
    fewest: int = 1
    """The smallest size of a class of sizes."""
    most: int = MOST_NODES
    """The largest one."""

    def __post_init__(self) -> None:
        found = Findings()
        fine = 0 < len(self.name) <= LONGEST_NAME and self.name.isprintable()
        found.unless(fine and self.name == self.name.strip(), repr(self.name[:60]),
                     f"a name, of up to {LONGEST_NAME} printable letters", "type")  # fmt: skip
        found.unless(self.by in BY, repr(self.by), f"one of {', '.join(BY)}, or {IDLE}", "by")
        values = {
            "nodes": self.nodes, "time_min_s": self.shortest_s, "slowdown": self.slowdown,
            "power_max_w": self.most_w, "power_min_w": self.least_w,
            "q_threshold": self.threshold, "delay_rate_per_s": self.delay_rate,
        }  # fmt: skip
        for column, value in values.items():
            if value is not None:
                low, high = LIMITS[column]
                found.unless(low <= value <= high, f"{value:g}", accepted(column), column)
        if self.nodes is not None and self.by == "nodes":
            found.unless(self.fewest <= self.nodes <= self.most, f"{self.nodes:g}",
                         f"within the sizes of the type, {self.name}", "nodes")  # fmt: skip
        found.refuse()

    @property
    def longest_s(self) -> float | None:
        """Returns the run time under the lowest cap, T_max; None where no time is known."""
        return None if self.shortest_s is None else self.shortest_s * self.slowdown


def accepted(column: str) -> str:
    """Returns what is accepted of a column of numbers, in words."""
    low, high = LIMITS[column]
    kind = "a whole number" if column == "nodes" else "a number"
    return f"{kind} of at least {low:g}" + ("" if high == math.inf else f", at most {high:g}")
