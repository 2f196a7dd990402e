"""The runs of the study."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from odonata.experiment.profiles import built_in, profile
from odonata.studies.nedd import APPLICATIONS, simulation
from odonata.studies.nedd.floor import IDLE
from odonata.study.contract import digest
from pdes.errors import require

RIVALS = ("low-traffic-router", "fewer-router", "low-stall-router", "random",
          "high-traffic-router", simulation.NO_CONGESTOR)  # fmt: skip
"""The allocations of figure 3.24."""
SETS = (8, 16, 25, 50)
"""In how many sets the idle nodes are, in the part about that."""
SETS_OF, SETS_BY = "minimd", ("low-traffic-router", "fewer-router", "random")
CAUSES: Mapping[str, Mapping[str, Any]] = {
    "2 ranks": {},
    "4 ranks": {"ranks": 4},
    "8 ranks": {"ranks": 8},
    "16 ranks": {"ranks": 16},
    "32 ranks": {"ranks": 32},
    "4 tasks": {"tasks": 4, "ranks": 4},
    "8 ranks, 4 hot nodes": {"ranks": 8, "hot": 4},
    "32 ranks, GPCNeT on neighbours": {"ranks": 32, "together": True},
    "2 ranks, GPCNeT on 128 nodes": {"congested": 128},
    "8 ranks, other users silent": {"ranks": 8, "busy": False},
    "8 ranks, 8 sets": {"ranks": 8, "sets": 8},
    "8 ranks, 200 sets": {"ranks": 8, "sets": 200},
}
"""What the experiment of the thesis may have had otherwise than ours: ranks per node of GPCNeT,
tasks per node of all jobs, and so on."""
CAUSED_BY = ("low-traffic-router", "fewer-router", "low-stall-router", "random",
             simulation.NO_CONGESTOR)  # fmt: skip
CAUSED_RUNS = 10
"""Runs of each cause at most, as many as the thesis made."""
QUEUED = ("nedd", "nedd-level", "low-traffic-router", "high-traffic-router", "low-stall-router",
          "fewer-router", "level-spread", "level-spread-random", "simple", "random")  # fmt: skip
"""The allocations of a queue. Without any counters, nedd does what simple does: lowest labels
first."""
FCFS, FIRST = "fcfs", "sensitive-first"
MOST, MOST_HOT = 64, 25
"""The most tasks or ranks of a node; and hot nodes, so that two nodes at least are left to each."""
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
    tasks: int = simulation.TASKS
    ranks: int | None = None
    """None: as many as tasks."""
    hot: int = 1

    def __post_init__(self) -> None:
        known = built_in()
        object.__setattr__(
            self, "applications", tuple(dict.fromkeys(self.applications or APPLICATIONS))
        )
        for name in self.applications:
            require(name in known, f"application {name}: one of {', '.join(known)}")
        require(1 <= self.repetitions <= 1000, f"repetitions = {self.repetitions}: 1 .. 1,000")
        require(1 <= self.sets <= IDLE, f"sets = {self.sets}: 1 .. {IDLE}")
        require(1 <= self.tasks <= MOST, f"tasks = {self.tasks}: 1 .. {MOST}")
        ranks = self.tasks if self.ranks is None else self.ranks
        object.__setattr__(self, "ranks", ranks)
        require(
            self.tasks <= ranks <= MOST,
            f"ranks = {ranks}: from the {self.tasks} tasks of a node to {MOST}",
        )
        require(1 <= self.hot <= MOST_HOT, f"hot = {self.hot}: 1 .. {MOST_HOT}")

    def alone(self, name: str, by: str, run: int, sets: int = 0) -> simulation.Alone:
        """Returns a run of an application beside GPCNeT, as it was asked for."""
        return beside(name, by, run, sets=sets or self.sets, tasks=self.tasks, ranks=self.ranks,
                      hot=self.hot)  # fmt: skip


def beside(name: str, by: str, run: int, **changed: Any) -> simulation.Alone:
    """Returns a run of an application beside GPCNeT. While that does not run, how it would send is
    of no account, and the same run serves for any way."""
    case = simulation.Alone(name, by, run, **changed)
    if by != simulation.NO_CONGESTOR:
        return case
    plain = simulation.Alone(name, by, run)
    return replace(case, congestor=plain.congestor, ranks=case.tasks, hot=plain.hot)


def caused(words: str, by: str, run: int) -> simulation.Alone:
    """Returns a run of an application where one thing is otherwise."""
    return beside(SETS_OF, by, run, **CAUSES[words])


def cases(asked: NeDDPlan) -> list[simulation.Point]:
    """Returns each case once: a repetition of everything after the other."""
    found = (case for run in range(asked.repetitions) for part in asked.parts
             for case in _of(asked, part, run))  # fmt: skip
    return [*dict.fromkeys(found)]


def _of(asked: NeDDPlan, part: str, run: int) -> Iterator[simulation.Point]:
    if part == "application":
        for application in asked.applications:
            for allocation in RIVALS:
                yield asked.alone(application, allocation, run)
    elif part == "sets":
        for sets in SETS:
            for allocation in SETS_BY:
                yield asked.alone(SETS_OF, allocation, run, sets)
    elif part == "causes":
        for words in CAUSES if run < CAUSED_RUNS else ():
            for allocation in CAUSED_BY:
                yield caused(words, allocation, run)
    elif part == "queue":
        for allocation in QUEUED:
            yield simulation.Queue(allocation, run)
        yield simulation.Queue("nedd", run, FIRST)
        for delay in (DELAYS_US[0], DELAYS_US[-1]):
            yield restless("nedd", run, delay)
        for allocation in BLIND:
            yield restless(allocation, run)
    else:
        for application in AGED:
            for delay in DELAYS_US:
                yield simulation.Moving(application, "nedd", run, delay)
            for allocation in (*BLIND, simulation.NO_CONGESTOR):
                yield simulation.Moving(application, allocation, run)


def restless(allocation: str, run: int, delay_us: int = DELAYS_US[0]) -> simulation.Queue:
    """Returns a queue among congestors that do not stay."""
    return simulation.Queue(allocation, run, FCFS, STAY_US, OFTEN_US, delay_us, LATE_US)


def mark() -> str:
    """Returns a digest of this simulator, of an application beside a congestor and among several,
    and of all profiles."""
    few: list[simulation.Point] = [simulation.Alone("lammps", "low-traffic-router", 0),
                                   simulation.Moving("lammps", "nedd", 0)]  # fmt: skip
    made = [*(simulation.simulate(case).digest for case in few), *map(profile, built_in())]
    return digest([*made, *simulation.PARAMETERS.items()])
