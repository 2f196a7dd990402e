"""What a user asks the machine to run."""

from __future__ import annotations

from dataclasses import dataclass, field

from topology.settings import required, setting

EXCHANGES, MAPPINGS = ("posted", "pairwise"), ("random", "linear")
MOST_NODES = 1 << 22
"""The most nodes of a job: more than any machine here has."""


@dataclass(frozen=True)
class Job:
    """A job: `nodes` nodes whose tasks go through a pattern (`odonata.agents.patterns`)
    `iterations` times and compute before each. `mapping` assigns tasks to places, which are the
    slots of the job's nodes, node by node: in order (linear), at random, or by a tuple with the
    place of each task."""

    nodes: int = field(metadata=required("whole", "Nodes that it needs.", least=1, most=MOST_NODES))
    pattern: str = setting(
        "all-to-all", "word", "Which of its tasks communicate with which.", register="pattern"
    )
    message_bytes: int = setting(1024, "size", "Size of each message.")
    iterations: int = setting(
        1, "whole", "How often it repeats its pattern.", least=1, most=2**23 - 1
    )
    exchange: str = setting(
        "posted", "word", "Whether all messages of a phase are sent at once, or to one partner "
        "after the other.", words=EXCHANGES,
    )  # fmt: skip
    compute_ps: int = setting(0, "time", "How long a task computes before each iteration.")
    arrival_ps: int = setting(0, "time", "When it joins the queue.")
    grid: tuple[int, ...] | None = setting(
        None, "wholes", "The sides of the grid of a pattern that has one; auto: near-cubic.",
        none="auto",
    )  # fmt: skip
    mapping: str | tuple[int, ...] = setting(
        "random", "wholes", "How its tasks are mapped to the places on its nodes, or a list: the "
        "place of each.", words=MAPPINGS,
    )  # fmt: skip
    name: str = setting("", "text", "Its name; numbered where several jobs are alike.")
    requested_ps: int | None = setting(
        None, "time", "The run time that its user asks for, which policies may see.",
        none="unknown",
    )  # fmt: skip
    user: str = setting("", "text", "Who submits it.")
    project: str = setting("", "text", "On whose account it runs.")
    application: str = setting("", "text", "The program that it runs.")
