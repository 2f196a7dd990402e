"""The runs of the study."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from odonata.experiment.profiles import built_in, profile
from odonata.studies.nedd.floor import IDLE
from odonata.studies.nedd.simulation import NO_CONGESTOR, Alone, Moving, Point, Queue, simulate
from odonata.study.contract import digest
from pdes.errors import require

RIVALS = ("low-traffic-router", "fewer-router", "low-stall-router", "random",
          "high-traffic-router", NO_CONGESTOR)  # fmt: skip
"""The allocations of figure 3.24."""
SETS = (8, 16, 25, 50)
"""In how many sets the idle nodes are, in the part about that."""
SETS_OF, SETS_BY = "minimd", ("low-traffic-router", "fewer-router", "random")
QUEUED = ("nedd", "nedd-level", "low-traffic-router", "high-traffic-router", "low-stall-router",
          "fewer-router", "level-spread", "level-spread-random", "simple", "random")  # fmt: skip
"""The allocations of a queue. Without any counters, nedd does what simple does: lowest labels
first."""
FCFS, FIRST = "fcfs", "sensitive-first"
STAY_US, OFTEN_US, LATE_US = 1000, 100, 4400
"""Where congestors do not stay: for how long one is active, how often counters are read, and when
the first job arrives, so that the oldest counters have come."""
DELAYS_US = (10, 250, 500, 1000, 2000, 4000)
BLIND = ("simple", "fewer-router", "level-spread", "random")
"""The allocations that read no counters and are compared with nedd as counters grow old."""
AGED = ("minimd", "lammps", "milc")
"""The applications for which they do: those that congestion slows down most."""


@dataclass(frozen=True)
class NeDDPlan:
    """What is asked for."""

    parts: tuple[str, ...]
    applications: tuple[str, ...]
    repetitions: int
    sets: int

    def __post_init__(self) -> None:
        known = built_in()
        object.__setattr__(self, "applications", tuple(dict.fromkeys(self.applications)))
        for name in self.applications:
            require(name in known, f"application {name}: one of {', '.join(known)}")
        require(1 <= self.repetitions <= 1000, f"repetitions = {self.repetitions}: 1 .. 1,000")
        require(1 <= self.sets <= IDLE, f"sets = {self.sets}: 1 .. {IDLE}")


def cases(asked: NeDDPlan) -> list[Point]:
    """Returns each case once: a repetition of everything after the other."""
    found = (case for run in range(asked.repetitions) for part in asked.parts
             for case in _of(asked, part, run))  # fmt: skip
    return [*dict.fromkeys(found)]


def _of(asked: NeDDPlan, part: str, run: int) -> Iterator[Point]:
    if part == "application":
        for application in asked.applications:
            for allocation in RIVALS:
                yield Alone(application, allocation, run, asked.sets)
    elif part == "sets":
        for sets in SETS:
            for allocation in SETS_BY:
                yield Alone(SETS_OF, allocation, run, sets)
    elif part == "queue":
        for allocation in QUEUED:
            yield Queue(allocation, run)
        yield Queue("nedd", run, FIRST)
        for delay in (DELAYS_US[0], DELAYS_US[-1]):
            yield restless("nedd", run, delay)
        for allocation in BLIND:
            yield restless(allocation, run)
    else:
        for application in AGED:
            for delay in DELAYS_US:
                yield Moving(application, "nedd", run, delay)
            for allocation in (*BLIND, NO_CONGESTOR):
                yield Moving(application, allocation, run)


def restless(allocation: str, run: int, delay_us: int = DELAYS_US[0]) -> Queue:
    """Returns a queue among congestors that do not stay."""
    return Queue(allocation, run, FCFS, STAY_US, OFTEN_US, delay_us, LATE_US)


def mark() -> str:
    """Returns a digest of this simulator, of an application beside a congestor and among several,
    and of all profiles."""
    few: list[Point] = [Alone("lammps", "low-traffic-router", 0), Moving("lammps", "nedd", 0)]
    return digest([*(simulate(case).digest for case in few), *map(profile, built_in())])
