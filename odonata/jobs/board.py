"""The scheduler's board: a row per job, and which job has which node.

A job is **queued** (or yet to arrive), it is **running**, or it is **done**.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

STATUS, LEFT, BEGAN, OVER = range(4)
"""Words of a job on the board: one of the three states; tasks that have not ended yet, as far as
the scheduler knows; when it was to start; when its last task ended."""
BOARD_WORDS = 4
QUEUED, RUNNING, DONE = range(3)

Words = npt.NDArray[np.int64]


class Board(NamedTuple):
    """Arrays of a model's state to which only the scheduler writes (but for LEFT, OVER and DONE,
    which change when it is notified of a task's end)."""

    jobs: Words
    """[job, BOARD_WORDS]"""
    owner: Words
    """[node of the machine]: its job, or -1"""
    labels: Words
    """The nodes of every job, in the order in which it was given them, one job after the other."""
    memory: npt.NDArray[np.uint8]
    """What its policies remember (`policies.memory`)."""

    @classmethod
    def nowhere(cls) -> Board:
        """Returns the board of a rank that has no scheduler: it is empty."""
        none = np.zeros(0, np.int64)
        return cls(np.zeros((0, BOARD_WORDS), np.int64), none, none, np.zeros(0, np.uint8))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Returns the arrays under the names that they have in a state."""
        return {"board": self.jobs, "owner": self.owner, "labels": self.labels,
                "memory": self.memory}  # fmt: skip

    @classmethod
    def of(cls, state: Any) -> Board:
        """Returns the board in a state that has arrays `board`, `owner`, `labels` and `memory`."""
        return cls(state.board, state.owner, state.labels, state.memory)
