"""The scheduler's board: a row per job, and which job has which node.

A job is **queued** (or yet to arrive), it is **running**, or it is **done**.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pdes.words import Row

QUEUED, RUNNING, DONE = range(3)

JOB = Row("Board.jobs")
STATUS = JOB.word("1", "one of the three states")
LEFT = JOB.word("1", "tasks that have not ended yet, as far as the scheduler knows")
BEGAN = JOB.word("ps", "when it was to start")
OVER = JOB.word("ps", "when its last task ended")

LEDGER = Row("Ledger.ledger")
REPORTED = LEDGER.word("1", "nodes that have reported what they drew, of this measurement")
READ = LEDGER.word("1", "whether all have, and nobody was told yet")
MEASURED = LEDGER.word("ps", "when the last measurement was taken")
ASKED_AT = LEDGER.word("ps", "when policies were last asked, -1: never")
PASSES = LEDGER.word("1", "how often at that instant before")
AGAINS = LEDGER.word("1", "how often the power policy has asked to be asked again")
AGAIN_AT = LEDGER.word("ps", "for when it did last")
LOWERED = LEDGER.word("ps", "since when nodes draw more than a cap that was lowered, or -1")
ENDS = LEDGER.word("1", "jobs that have ended since the power policy was asked for caps")
STILL = LEDGER.word("1", "at how many measurements in a row nothing got on (odonata.jobs.machine)")
UNMETERED = LEDGER.word("1", "whether measuring is over")

ACCOUNT = Row("Ledger.accounts")
JOB_CAP_W = ACCOUNT.word("W", "per node, that the job was last given")
JOB_ENERGY_J = ACCOUNT.word("J", "that it took, once it has ended")
JOB_BYTES = ACCOUNT.word("B", "that its nodes received from each other, likewise")
READ_J = ACCOUNT.word("J", "its energy when it was last measured")
READ_W = ACCOUNT.word("W", "per node, of that measurement")
FORCED = ACCOUNT.word("1", "whether it may break the cap")

READING = Row("Ledger.readings")
OF_NODE_J = READING.word("J", "the energy of the node since the beginning, as it reported last")
OF_JOB_J = READING.word("J", "that of its job there, since that started")
OF_JOB_BYTES = READING.word("B", "that the job's tasks there have received")

METER = Row("Ledger.measured_w")
TOTAL_J = METER.word("J", "the energy of all nodes at the last measurement")
LAST_W = METER.word("W", "what they drew on average in the interval before it")
MACHINE_CAP_W = METER.word("W", "their cap as policies were last told")

Words = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]


class Board(NamedTuple):
    """Arrays of a model's state to which only the scheduler writes (but for LEFT, OVER and DONE,
    which change when it is notified of a task's end)."""

    jobs: Words
    """[job, JOB]"""
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
        return cls(np.zeros((0, len(JOB)), np.int64), none, none, np.zeros(0, np.uint8))

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
    """[LEDGER]"""
    accounts: Numbers
    """[job, ACCOUNT]"""
    readings: Numbers
    """[node of the machine, READING]"""
    measured_w: Numbers
    """[METER]"""

    @classmethod
    def fresh(cls, jobs: int, nodes: int) -> Ledger:
        """Returns the ledger before anything was measured; of no jobs on no nodes it is empty."""
        ledger = np.zeros(len(LEDGER) if jobs else 0, np.int64)
        measured = np.zeros(len(METER) if jobs else 0)
        accounts = np.zeros((jobs, len(ACCOUNT)))
        if jobs:
            ledger[[ASKED_AT, LOWERED]], measured[MACHINE_CAP_W] = -1, np.inf
            accounts[:, JOB_CAP_W] = np.inf
        return cls(ledger, accounts, np.zeros((nodes, len(READING))), measured)

    @classmethod
    def of(cls, state: Any) -> Ledger:
        """Returns the ledger in a state that has its arrays, by their names."""
        return cls(state.ledger, state.accounts, state.readings, state.measured_w)
