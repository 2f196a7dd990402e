"""A type of jobs: what a node of a job draws, and how long the job takes, without a cap and under
the lowest one; and the columns of a table of types."""

from __future__ import annotations

import math
from dataclasses import dataclass

from odonata.traces.trace import LONGEST_NAME
from pdes.errors import Findings
from topology.settings import Setting

BY = ("application", "user", "project", "nodes", "any")
IDLE = "idle"
"""What is there instead of one of these where a row is no type: its `power_max_w` is what a node
without a job draws."""
MOST_NODES = 10**9
COLUMNS = {
    "type": Setting("text", "its name: that of an application, user or project, or sizes of jobs, "
                    "as 1-4 or >=64"),
    "by": Setting("word", f"what jobs are matched by: {', '.join(BY)}; application unless given. "
                  f"{IDLE}: the row tells what a node without a job draws", words=BY),
    "nodes": Setting("whole", "nodes of a job that a model makes", least=1, most=MOST_NODES),
    "time_min_s": Setting("number", "its run time without a cap, in s", least=1e-6, most=1e10),
    "time_max_s": Setting("number", "its run time under the lowest cap, in s; or give slowdown",
                          least=1e-6, most=1e12),
    "slowdown": Setting("number", "time_max_s / time_min_s", least=1, most=1000),
    "power_max_w": Setting("number", "what a node draws without a cap, in W", least=1e-3, most=1e9),
    "power_min_w": Setting("number", "the lowest cap of a node, in W", least=1e-3, most=1e9),
    "q_threshold": Setting("number", "the degradation that its jobs are to stay below; empty: none",
                           least=1e-6),
    "delay_rate_per_s": Setting("number", "how fast the chance of a delay falls with its length, "
                                "for QoSG, in 1/s", least=1e-12, most=1e6),
}  # fmt: skip
"""The columns of a table, and what is accepted: beyond it, a number is a mistake."""
NUMBERS = tuple(name for name, how in COLUMNS.items() if how.kind in ("whole", "number"))


def accepts(column: str, value: float) -> bool:
    """Tells whether a column may have a number; a threshold may be infinite: there is none."""
    whole = COLUMNS[column].kind == "whole" and float(value).is_integer()
    none = column == "q_threshold" and value == math.inf
    return none or not COLUMNS[column].wrong(int(value) if whole else value)


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
                found.unless(accepts(column, value), f"{value:g}", COLUMNS[column].all_accepted,
                             column)  # fmt: skip
        if self.nodes is not None and self.by == "nodes":
            found.unless(self.fewest <= self.nodes <= self.most, f"{self.nodes:g}",
                         f"within the sizes of the type, {self.name}", "nodes")  # fmt: skip
        found.refuse()

    @property
    def longest_s(self) -> float | None:
        """Returns the run time under the lowest cap, T_max; None where no time is known."""
        return None if self.shortest_s is None else self.shortest_s * self.slowdown
