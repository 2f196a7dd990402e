"""What a user asks the machine to run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pdes.clock import LATEST
from topology.settings import required, setting

EXCHANGES, MAPPINGS = ("posted", "pairwise"), ("random", "linear")
WAITS = ("messages", "departures", "replies", "nothing")
"""What a task waits for in a phase: the messages that others send to it in that phase; only that
its own have left the node; the replies to its own; or nothing."""
UNIFORM = "uniform"
"""The pattern in which no task knows when messages will come to it."""
MOST_NODES = 1 << 22
"""The most nodes of a job: more than any machine here has."""
MESSAGE: dict[str, Any] = {"least": 1, "below": 2**40}
COMPUTING: dict[str, Any] = {"most": LATEST // 2**10, "accepted": "0 .. an hour"}
"""The limits of sizes of messages, and of how long a task does something before each pass."""


@dataclass(frozen=True)
class Stage:
    """A stage of an application: `repeat` passes through a pattern, and what a task does before and
    after. A message that is not waited for (`wait` is departures, replies or nothing) is counted by
    the receiver, which waits at the end of the job for all that were sent to it."""

    pattern: str = setting(
        "all-to-all", "word", "Which of its tasks communicate with which.", register="pattern"
    )
    message_bytes: int = setting(1024, "size", "Size of each message.", **MESSAGE)
    exchange: str = setting(
        "posted", "word", "Whether all messages of a phase are sent at once, or to one partner "
        "after the other.", words=EXCHANGES,
    )  # fmt: skip
    wait: str = setting(
        "messages", "word", "What a task waits for: the messages that come to it, the departures "
        "of its own from the node, the replies to its own from the NICs of the receivers, or "
        "nothing.", words=WAITS,
    )  # fmt: skip
    reply_bytes: int = setting(
        64, "size", "Size of a reply, where replies are waited for.", **MESSAGE,
    )  # fmt: skip
    compute_ps: int = setting(0, "time", "How long a task computes before each pass.", **COMPUTING)
    imbalance: float = setting(
        0.0, "number", "Each task computes anew, before each pass, for between once and (1 + "
        "imbalance) times as long, at random.", least=0, most=100,
    )  # fmt: skip
    overhead_ps: int = setting(
        0, "time", "How long its host then is in MPI without waiting for the network, in MPI_Test "
        "or MPI_Isend, before each pass: this takes time like computing and counts as "
        "communication.", **COMPUTING,
    )  # fmt: skip
    repeat: int = setting(
        1, "whole", "Passes through the pattern in one iteration.", least=1, most=2**20
    )
    grid: tuple[int, ...] | None = setting(
        None, "wholes", "The sides of the grid of a pattern that has one; auto: near-cubic.",
        least=1, none="auto",
    )  # fmt: skip
    name: str = setting("", "text", "What it is called in results, such as the MPI operation.")

    @property
    def waits(self) -> str:
        """Returns what a task waits for: never for the messages of a uniform pattern."""
        if self.pattern == UNIFORM and self.wait == "messages":
            return "departures"
        return self.wait


@dataclass(frozen=True)
class Job:
    """A job: `nodes` nodes whose tasks go through a pattern (`odonata.agents.patterns`)
    `iterations` times and compute before each; or through the `stages` of an application profile,
    one after the other, `iterations` times. `mapping` assigns tasks to places, which are the slots
    of the job's nodes, node by node: in order (linear), at random, or by a tuple with the place of
    each task. A job that names its nodes (`on`) runs there and nowhere else, whatever the
    allocation policy would choose."""

    nodes: int = field(metadata=required("whole", "Nodes that it needs.", least=1, most=MOST_NODES))
    pattern: str = setting(
        "all-to-all", "word", "Which of its tasks communicate with which.", register="pattern"
    )
    message_bytes: int = setting(1024, "size", "Size of each message.", **MESSAGE)
    iterations: int = setting(
        1, "whole", "How often it repeats its pattern.", least=1, most=2**23 - 1
    )
    exchange: str = setting(
        "posted", "word", "Whether all messages of a phase are sent at once, or to one partner "
        "after the other.", words=EXCHANGES,
    )  # fmt: skip
    compute_ps: int = setting(
        0, "time", "How long a task computes before each iteration.", **COMPUTING
    )
    arrival_ps: int = setting(
        0, "time", "When it joins the queue.", most=LATEST // 2,
        accepted=f"0 .. {LATEST // 2} ps, 26 days",
    )  # fmt: skip
    grid: tuple[int, ...] | None = setting(
        None, "wholes", "The sides of the grid of a pattern that has one; auto: near-cubic.",
        least=1, none="auto",
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
    profile: str = setting(
        "", "text", "An application profile instead of a pattern: one of `odonata applications`, "
        "or a TOML file with stages.",
    )  # fmt: skip
    on: tuple[int, ...] = setting(
        (), "labels", "The labels of the nodes on which it runs, and nowhere else; none: where the "
        "allocation policy chooses.",
    )  # fmt: skip
    sensitive: bool | None = setting(
        None, "flag", "Whether congestion in the network slows it down, which allocation policies "
        "may go by; `odonata profile` finds it out.", none="unknown",
        otherwise="as its profile or scheduler.sensitivity says, and else unknown",
    )  # fmt: skip
    background: bool = setting(
        False, "flag", "Whether the run ends without it: when all other jobs are done."
    )
    stages: tuple[Stage, ...] = setting(
        (), "stages", "What each task does in an iteration, one after the other, in place of a "
        "pattern; beside a profile, in place of its stages, with sizes as given.",
    )  # fmt: skip
    number: int | None = setting(
        None, "whole", "The number that its random numbers depend on, as where it stands alone and "
        "is to draw what it drew among others.", least=0, most=2**31 - 1, none="auto",
        otherwise="its place among all jobs, from 0",
    )  # fmt: skip

    @property
    def parts(self) -> tuple[Stage, ...]:
        """Returns its stages, at least one."""
        return self.stages or (
            Stage(self.pattern, self.message_bytes, self.exchange, compute_ps=self.compute_ps,
                  grid=self.grid),
        )  # fmt: skip

    @property
    def does(self) -> str:
        """Returns the name of its pattern, or of its profile."""
        if self.profile:
            return self.profile.rpartition("/")[2].removesuffix(".toml")
        return " + ".join(dict.fromkeys(it.pattern for it in self.stages)) or self.pattern
