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

(REPORTED, READ, MEASURED, PASSED, PASSES, WISHES, WISHED, LOWERED, ENDS, IN_VAIN,
 RESTS) = range(11)  # fmt: skip
"""Words of `Ledger.ledger`: how many nodes have reported what they drew, of this measurement;
whether all have, and nobody was told yet; when the last measurement was taken; when policies were
last asked, and how often at that instant; how many times the power policy has wished to be asked
again, and for when the last time; since when the machine has drawn more than a cap that was lowered
under running jobs, or -1; jobs that have ended since the power policy was asked for caps; how many
measurements in a row found jobs that wait, none that run and none to come; and whether measuring is
over."""
LEDGER_WORDS = 11

JOB_CAP_W, JOB_ENERGY_J, JOB_BYTES, READ_J, READ_W, FORCED = range(6)
"""Words of a job in `Ledger.accounts`: watts per node that it was last given; once it has ended,
the energy that it took and the bytes that its nodes received from each other; its energy when it
was last measured, and the watts per node that it drew then; whether it may break the cap."""
ACCOUNT_WORDS = 6

OF_NODE_J, OF_JOB_J, OF_JOB_BYTES = range(3)
"""Words of a node in `Ledger.readings`, as it reported last: its energy since the beginning; that
of its job there, since that started; and the bytes that the job's tasks there have received."""
READING_WORDS = 3

TOTAL_J, LAST_W, MACHINE_CAP_W = range(3)
"""Words of `Ledger.measured_w`: the energy of all nodes at the last measurement, what they drew on
average in the interval before it, and their cap as policies were last told."""
MEASURED_WORDS = 3

Words = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]


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


class Ledger(NamedTuple):
    """What the scheduler knows of power; arrays of a model's state to which only it writes (but for
    REPORTED, READ and the readings, which change when nodes report)."""

    ledger: Words
    """[LEDGER_WORDS]"""
    accounts: Numbers
    """[job, ACCOUNT_WORDS]"""
    readings: Numbers
    """[node of the machine, READING_WORDS]"""
    measured_w: Numbers
    """[MEASURED_WORDS]"""

    @classmethod
    def fresh(cls, jobs: int, nodes: int) -> Ledger:
        """Returns the ledger before anything was measured; of no jobs on no nodes it is empty."""
        ledger = np.zeros(LEDGER_WORDS if jobs else 0, np.int64)
        measured = np.zeros(MEASURED_WORDS if jobs else 0)
        accounts = np.zeros((jobs, ACCOUNT_WORDS))
        if jobs:
            ledger[[PASSED, LOWERED]], measured[MACHINE_CAP_W] = -1, np.inf
            accounts[:, JOB_CAP_W] = np.inf
        return cls(ledger, accounts, np.zeros((nodes, READING_WORDS)), measured)

    @classmethod
    def of(cls, state: Any) -> Ledger:
        """Returns the ledger in a state that has its arrays, by their names."""
        return cls(state.ledger, state.accounts, state.readings, state.measured_w)
