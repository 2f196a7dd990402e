"""An application profile: what the tasks of an application do, stage by stage, and how that was
measured.

A profile may be written for so many tasks per node. With another number of them, messages are then
scaled so that a node sends as many bytes as before: the profile of an application that had 32 tasks
per node describes what the node did, not what one task did.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from odonata.jobs.request import Stage

RANKS = 32
"""The MPI ranks per node of the measurements of Zhang's thesis."""


@dataclass(frozen=True)
class Measured:
    """What was measured of the application itself, on a real machine."""

    run_time_s: float
    communication: float
    """The part of the run time that was spent in MPI, 0 .. 1."""
    rank_bytes_per_s: float
    """Bytes that each rank transferred, per second."""
    sends_per_s: float
    """Sends of each rank, per second."""
    allreduces_per_s: float
    """Allreduces of each rank, per second."""
    operations: tuple[tuple[str, float], ...] = ()
    """The part of the run time that was spent in each kind of MPI operation, 0 .. 1."""
    ranks_per_node: int = RANKS

    @property
    def node_bytes_per_s(self) -> float:
        """Returns the bytes that each node transferred, per second."""
        return self.rank_bytes_per_s * self.ranks_per_node


@dataclass(frozen=True)
class Profile:
    """An application profile: its stages, which are one iteration, and where they come from."""

    name: str
    stages: tuple[Stage, ...]
    about: str = ""
    source: str = ""
    iterations: int = 1
    """How many iterations a job has that asks for no number."""
    tasks_per_node: int | None = None
    """The number of tasks per node for which the messages of the stages are as large as given; with
    another number they are scaled. None: they are as given with any number."""
    nodes: int | None = None
    """The number of nodes for which its compute times were calibrated; None: they were not."""
    sensitive: bool | None = None
    """Whether the application suffers from network congestion; None: not known."""
    measured: Measured | None = None

    def stages_for(self, tasks_per_node: int) -> tuple[Stage, ...]:
        """Returns its stages where nodes run so many tasks. A message has at least one byte.

        >>> Profile("p", (Stage(message_bytes=4096),), tasks_per_node=2).stages_for(4)
        (Stage(pattern='all-to-all', message_bytes=2048, ...
        """
        if self.tasks_per_node in (None, tasks_per_node):
            return self.stages
        factor = self.tasks_per_node / tasks_per_node
        return tuple(
            replace(stage, message_bytes=max(1, round(stage.message_bytes * factor)),
                    reply_bytes=max(1, round(stage.reply_bytes * factor)))
            for stage in self.stages
        )  # fmt: skip
