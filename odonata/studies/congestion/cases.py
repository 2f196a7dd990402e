"""The runs of the study: applications in four settings, shifted, and GPCNeT alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from odonata.experiment.profiles import built_in, profile
from odonata.studies.congestion import APPLICATIONS, simulation
from odonata.studies.congestion.crowd import Crowded
from odonata.studies.congestion.gpcnet import CANARIES
from odonata.studies.congestion.options import CONGESTORS
from odonata.study.contract import digest
from pdes.errors import require
from topology.presets import PRESETS

MOST_TASKS = 16
BUNDLED, TABLE, REAL, CROWD = "", "table", "real", "background"
"""The profiles: those with a name of their own, those whose time in MPI is divided as in table 3.4
by more exchanges for each allreduce, and those with messages as long as the real ones. And those
with a name of their own, among other users."""
CROWDED = ("milc", "minimd")
"""The applications that run among other users: those that the thesis has slowed down in III."""
MOST_REQUESTS = 64
LONG_SHIFTS = 6
"""The most repetitions of runs that take long, by the real profiles and among other users: as many
as an interval needs."""
GPCNET_SHIFTS = 5
"""The most repetitions of GPCNeT alone: five shifts have as little in common as ten."""


@dataclass(frozen=True)
class CongestionPlan:
    """What is asked for."""

    parts: tuple[str, ...]
    applications: tuple[str, ...]
    repetitions: int
    congestor: str
    tasks: int
    machine: str
    router: str
    requests: int = 16
    """How many requests a task of the congestor makes as one, where profiles have messages as long
    as the real ones."""

    def __post_init__(self) -> None:
        known = built_in()
        object.__setattr__(
            self, "applications", tuple(dict.fromkeys(self.applications or APPLICATIONS))
        )
        for name in self.applications:
            require(name in known, f"application {name}: one of {', '.join(known)}")
        require(1 <= self.repetitions <= 10, f"repetitions = {self.repetitions}: 1 .. 10, since "
                "each shifts all nodes by a tenth")  # fmt: skip
        require(1 <= self.tasks <= MOST_TASKS, f"tasks = {self.tasks}: 1 .. {MOST_TASKS}")
        require(1 <= self.requests <= MOST_REQUESTS, f"requests = {self.requests}: 1 .. "
                f"{MOST_REQUESTS}")  # fmt: skip
        require(self.machine in PRESETS, f"machine {self.machine}: one of {', '.join(PRESETS)}")
        nodes = PRESETS[self.machine].machine.n_nodes
        require(nodes >= simulation.LIST,
                f"machine {self.machine}: it has {nodes} nodes, and {simulation.LIST} are "
                "needed")  # fmt: skip

    def at(self, application: str, setting: str, shift: int,
           profiles: str = BUNDLED) -> simulation.Point:  # fmt: skip
        """Returns the run of an application, by one of its profiles."""
        theirs = self.congestor if setting in ("III", "IV") else simulation.NONE
        if profiles == CROWD:
            return Crowded(application, setting, shift, theirs, tasks=self.tasks,
                           machine=self.machine, router=self.router,
                           requests=self.requests if theirs != simulation.NONE else 1)  # fmt: skip
        if profiles:
            requests = self.requests if profiles == REAL and theirs != simulation.NONE else 1
            return simulation.Divided(application, setting, shift, theirs, tasks=self.tasks,
                           machine=self.machine, router=self.router, profiles=profiles,
                           requests=requests)  # fmt: skip
        return simulation.Point(application, setting, shift, theirs, tasks=self.tasks,
                                machine=self.machine, router=self.router)  # fmt: skip

    def alone(self, canary: str, nodes: int, shift: int, congested: bool) -> simulation.Point:
        """Returns a run of GPCNeT alone."""
        theirs = self.congestor if congested else simulation.NONE
        return simulation.Point("", simulation.NONE, shift, theirs, canary, nodes, self.tasks,
                                self.machine, self.router)  # fmt: skip

    @property
    def gpcnet_shifts(self) -> range:
        """Returns the shifts of GPCNeT alone."""
        return range(min(self.repetitions, GPCNET_SHIFTS))


def has(profiles: str, application: str) -> bool:
    """Tells whether an application runs by one of these profiles."""
    if profiles == CROWD:
        return application in CROWDED
    return not profiles or simulation.path_in(profiles, application).is_file()


def cases(asked: CongestionPlan) -> list[simulation.Point]:
    """Returns each case once: a repetition of everything after the other."""
    return [case for part in asked.parts for case in _of(asked, part)]


def _of(asked: CongestionPlan, part: str) -> Iterator[simulation.Point]:
    if part != "gpcnet":
        profiles = BUNDLED if part == "applications" else part
        settings = ("I", "III") if part == CROWD else simulation.SETTINGS
        most = LONG_SHIFTS if part in (REAL, CROWD) else simulation.SHIFTS
        for shift in range(min(asked.repetitions, most)):
            for application in asked.applications:
                for setting in settings:
                    if has(profiles, application):
                        yield asked.at(application, setting, shift, profiles)
        return
    for shift in asked.gpcnet_shifts:
        for nodes in simulation.ALONE_ON:
            for canary in CANARIES:
                for congested in (False, True):
                    yield asked.alone(canary, nodes, shift, congested)


def mark() -> str:
    """Returns a digest of this simulator, of an application and of GPCNeT, and of all profiles."""
    few = (simulation.Point("lammps", "IV", 0, CONGESTORS[0]),
           simulation.Point("", simulation.NONE, 0, CONGESTORS[0], "latency", 16))  # fmt: skip
    return digest([*(simulation.simulate(case).digest for case in few), *map(profile, built_in())])
