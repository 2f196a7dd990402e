"""What a run measured of its power: readings of the machine, and the energy of each job."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from odonata.jobs.schedule import SUSPENDS
from odonata.traces.trace import Whole
from pdes.log import Field, Log

Numbers = npt.NDArray[np.float64]

CAUSES = ("within", "deadlock", "cap lowered", "estimate too low", "not controlled")
WITHIN, DEADLOCK, LOWERED_CAP, ESTIMATE, UNCONTROLLED = range(len(CAUSES))
"""Why an interval took more energy than the cap allows: WITHIN, it did not; a job that fitted under
it not even alone was let break it; the cap was lowered under running jobs; jobs drew more
than the policy had expected; or the policy does not keep to any cap."""

TOLERANCE = 1e-9
"""An interval violates the cap where it takes more energy than allowed by more than this part:
sums of the same numbers in another order differ by less."""


def violates(joules: float, allowed_w: float, seconds: float) -> bool:
    """Tells whether an interval took more energy than the cap allows."""
    return joules > allowed_w * seconds * (1.0 + TOLERANCE)


def lowers(before_w: float, cap_w: float, drawn_w: float) -> bool:
    """Tells whether a new cap of the machine lies below what it draws, so that readings may exceed
    it until jobs draw less."""
    return cap_w < before_w and drawn_w > cap_w


def cause_of(violated: bool, controls: bool, forced: bool, lowered: bool) -> int:
    """Returns why an interval violates the cap, one of CAUSES: whether a policy keeps to it at all,
    whether a job ran in it that was let break it, and whether the cap was lowered before."""
    if not violated:
        return WITHIN
    if not controls:
        return UNCONTROLLED
    if forced:
        return DEADLOCK
    return LOWERED_CAP if lowered else ESTIMATE


def missed(off_j: float, reserve_w: float, seconds: float) -> float:
    """Returns how far a machine was off its target on average, as a part of the reserve, if it was
    off it by so many joules in this time; 0 where nothing was offered or measured."""
    offered = reserve_w * seconds
    return off_j / offered if offered > 0.0 else 0.0


POWER = Log(
    (Field("power_w", "W", "what all nodes drew on average since the row before", "f8"),
     Field("cap_w", "W", "what they were allowed on average", "f8"),
     Field("cause", "1", "why they drew more: " + ", ".join(
         f"{number} {word}" for number, word in enumerate(CAUSES)), "i1")),
    "a row when power is measured",
)  # fmt: skip
CAPS = Log(
    (Field("job", "1", "whose nodes are capped; -1: all nodes together"),
     Field("cap_w", "W", "per node of the job, or of all nodes; below 0: it is suspended, nan: it "
           "goes on", "f8")),
    "a row when a cap changes",
)  # fmt: skip


def learned(figures: Sequence[str]) -> Log:
    """Returns the log of what a power policy has learned."""
    return Log(tuple(Field(name, "1", "as the power policy counts it", "f8") for name in figures),
               "a row when the policy hears of a measurement")  # fmt: skip


class JobEnergy(NamedTuple):
    """[job], in the order of the table of jobs: its energy, the bytes that it received and by how
    much caps stretched it; None where nobody knows. They are right of jobs that are over."""

    energy_j: Numbers
    received_bytes: Whole | None = None
    cap_stretch: Numbers | None = None

    def of(self, job: int) -> dict[str, Any]:
        """Returns what is known of a job that is over, by the names of `JobRecord`."""
        received, stretch = self.received_bytes, self.cap_stretch
        known = stretch is not None and not math.isnan(stretch[job])
        return {
            "energy_j": float(self.energy_j[job]),
            "received_bytes": None if received is None else int(received[job]),
            "cap_stretch": float(stretch[job]) if known and stretch is not None else None,
        }


@dataclass(frozen=True, eq=False)
class PowerRecord:
    """What was measured. Times are ticks of the model.

    A **reading** is about the interval that ends at its time and begins at the one before, or at 0.
    The last interval is cut short by the end of the run, and has none.
    """

    time: Whole
    """[reading]"""
    power_w: Numbers
    """[reading]: what all nodes drew on average."""
    cap_w: Numbers
    """[reading]: what they were allowed on average; infinite where nobody set a cap."""
    cause: npt.NDArray[np.int8]
    """[reading]: one of CAUSES."""
    until: int
    """The time up to which energy is counted: the end of the last job, where all are done, unless
    the run goes on to an end of its own."""
    energy_j: Numbers
    """[job]: the energy that it took."""
    idle_j: float
    """The energy of all nodes while they were idle, and while they were asleep."""
    sleep_j: float
    running_j: float
    """The energy of jobs that are not done, where it is not known of which: else 0."""
    cap_changes: tuple[Whole, Whole, Numbers]
    """Times, jobs (-1: the machine) and caps, of every change."""
    speed_changes: tuple[Whole, Numbers]
    """Times and service rates, of every change."""
    figures: Mapping[str, Numbers]
    """[reading], by name: what the policy counted."""
    tick_s: float = 1e-6
    """A tick, in s."""
    cap_stretch: Numbers | None = None
    """[job]: how many times as long it took as it would have without caps; nan while it is not
    over. None where a run has not kept it."""
    standby_j: float = 0.0
    """The energy of standby jobs, which are no jobs of the trace."""
    received_bytes: Whole | None = None
    """[job]: what its tasks received from other nodes; None where no packets were simulated."""

    @property
    def by_job(self) -> JobEnergy:
        """Returns what jobs took."""
        return JobEnergy(self.energy_j, self.received_bytes, self.cap_stretch)

    @classmethod
    def of_logs(
        cls,
        jobs: int,
        power: tuple[Whole, Numbers, Numbers, npt.NDArray[np.int8]],
        ends: Mapping[str, npt.NDArray[Any]],
        caps: tuple[Whole, Whole, Numbers],
        speeds: tuple[Whole, Numbers],
        figures: Mapping[str, Numbers],
        so_far: tuple[int, float, float, Numbers, float] | None = None,
    ) -> PowerRecord:
        """Returns what the logs of a job run tell of: `ends` by its columns. Where some jobs are
        not done, or the run goes on to an end of its own, `so_far` has the time, the energies of
        idle and of sleeping nodes, those of jobs, and of jobs in all; without it, they are known up
        to the end of the last job."""
        by_job: Numbers
        running_j = 0.0
        if so_far is None:
            by_job = np.bincount(ends["job"], ends["energy_j"], jobs).astype(np.float64)
            until, idle_j, sleep_j = (ends[name][-1] for name in ("time_us", "idle_j", "sleep_j"))
        else:
            until, idle_j, sleep_j, by_job, jobs_j = so_far
            running_j = jobs_j - math.fsum(by_job)
        longer = None
        if "cap_stretch" in ends:  # which older runs do not have
            over = ends["how"] != SUSPENDS
            longer = np.full(jobs, np.nan)
            longer[ends["job"][over]] = ends["cap_stretch"][over]
        return cls(*power, int(until), by_job, float(idle_j), float(sleep_j), running_j, caps,
                   speeds, figures, cap_stretch=longer)  # fmt: skip

    def in_us(self) -> PowerRecord:
        """Returns the same with times in microseconds."""
        each = round(1e-6 / self.tick_s)
        if each == 1:
            return self
        (caps, jobs, caps_w), (speeds, rates) = self.cap_changes, self.speed_changes
        return replace(
            self, time=self.time // each, until=self.until // each, tick_s=1e-6,
            cap_changes=(caps // each, jobs, caps_w), speed_changes=(speeds // each, rates),
        )  # fmt: skip

    @cached_property
    def jobs_j(self) -> float:
        """Returns the energy of all jobs."""
        return math.fsum(self.energy_j) + self.running_j

    @property
    def total_j(self) -> float:
        """Returns the energy of the machine."""
        return self.idle_j + self.sleep_j + self.jobs_j + self.standby_j

    @property
    def seconds(self) -> Numbers:
        """[reading]: the length of its interval."""
        return np.diff(self.time, prepend=0) * self.tick_s

    @property
    def excess_w(self) -> Numbers:
        """[reading]: by how much it is above the cap; 0 where it is not."""
        above = np.where(self.cause == WITHIN, 0.0, self.power_w - self.cap_w)
        return np.asarray(np.maximum(above, 0.0), np.float64)

    @property
    def capped(self) -> bool:
        """Tells whether there ever was a cap."""
        return bool(np.isfinite(self.cap_w).any())

    @property
    def violations(self) -> dict[str, int]:
        """Returns how many readings are above the cap, by cause."""
        counts = np.bincount(self.cause, minlength=len(CAUSES)).tolist()
        return dict(zip(CAUSES[1:], counts[1:], strict=True))

    @property
    def stretches(self) -> Numbers:
        """Returns how many times as long each job that is over took as without caps."""
        if self.cap_stretch is None:
            return np.zeros(0)
        return self.cap_stretch[~np.isnan(self.cap_stretch)]

    @property
    def capping_success(self) -> float | None:
        """Returns the part of the readings that are within the cap, of those that had one; None
        where there was none."""
        if not self.capped_readings:
            return None
        return float((self.cause == WITHIN)[np.isfinite(self.cap_w)].mean())

    @property
    def capped_readings(self) -> int:
        """Returns how many readings had a cap, for all of their interval."""
        return int(np.isfinite(self.cap_w).sum())
