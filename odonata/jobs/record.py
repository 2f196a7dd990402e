"""The record of a job: a row of the table of jobs (`odonata.jobs.schedule`), for those who go
through it job by job."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class JobRecord:
    """The record of a job: when it arrived, started and ended, and on which nodes it ran. Times are
    picoseconds; None: not yet."""

    number: int
    name: str
    nodes: int
    pattern: str
    arrival_ps: int
    start_ps: int | None
    """When its tasks were to start; it was given its nodes a launch latency earlier."""
    end_ps: int | None
    """When its last task ended."""
    labels: tuple[int, ...]
    """Its nodes, in the order they were given."""
    requested_ps: int | None = None
    """The run time that its user asked for; None: unknown."""
    user: str = ""
    project: str = ""
    application: str = ""
    energy_j: float | None = None
    """What its nodes took while they had tasks of it; None: not yet, or no power was simulated."""
    received_bytes: int | None = None
    """What its tasks received from other nodes; None: likewise."""
    cap_stretch: float | None = None
    """How many times as long its tasks computed as they would have without caps; None: likewise, or
    they compute nothing."""

    @property
    def j_per_byte(self) -> float | None:
        """Returns its energy per byte that was delivered to it, None where it received none."""
        if self.energy_j is None or not self.received_bytes:
            return None
        return self.energy_j / self.received_bytes

    @property
    def run_time_ps(self) -> int | None:
        """Returns the time from the job's start to its last task's end, in ps."""
        if self.start_ps is None or self.end_ps is None:
            return None
        return self.end_ps - self.start_ps

    @property
    def waiting_ps(self) -> int | None:
        """Returns the time from the job's arrival to its start, in ps."""
        return None if self.start_ps is None else self.start_ps - self.arrival_ps
