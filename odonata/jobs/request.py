"""What a user asks the machine to run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Job:
    """`nodes` nodes whose tasks go through a pattern (`odonata.agents.patterns`) `iterations` times
    and compute before each. Tasks are numbered in the order of the nodes that the job is given
    (`mapping` linear), at random, or by a tuple: the place of each task among the job's places,
    node by node.
    """

    nodes: int
    pattern: str = "all-to-all"
    message_bytes: int = 1024
    iterations: int = 1
    exchange: str = "posted"
    """"posted" or "pairwise", as `odonata.agents.patterns` explains them."""
    compute_ps: int = 0
    arrival_ps: int = 0
    grid: tuple[int, ...] | None = None
    """The sides of the grid, where the pattern is on one. None: near-cubic."""
    mapping: str | tuple[int, ...] = "random"
    name: str = ""
    requested_ps: int | None = None
    """The run time that its user asks for; None: unknown."""
    user: str = ""
    project: str = ""
    application: str = ""
