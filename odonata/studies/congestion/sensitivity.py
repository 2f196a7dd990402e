"""Whether congestion slows an application down: by a rule, or measured.

The rule goes by what the application does with its time alone (setting I). Measured are its run
times on every other node with GPCNeT on the nodes between, and without it (settings IV and II).
"""

from __future__ import annotations

from dataclasses import dataclass

from odonata.agents.profile import Profile
from odonata.experiment.profiles import path_of, profile, unfit
from odonata.experiment.sensitivity import USUAL, Limits
from odonata.studies.congestion.gpcnet import LEAST_NODES
from odonata.studies.congestion.options import CONGESTORS, MACHINE
from odonata.studies.congestion.simulation import NODES, SHIFTS
from pdes.errors import Refused, require
from topology.presets import PRESETS

ENDLESS = 10_000
"""As many iterations have the profiles of congestors, which nobody waits for."""


@dataclass(frozen=True)
class SensitivityTest:
    """How applications are measured. Refused where that cannot be."""

    nodes: int | None = None
    """None: as many as the profile was calibrated for, or else 64."""
    machine: str = MACHINE
    repetitions: int = 3
    """How often, each time on other nodes; what counts is the median."""
    congestor: str = CONGESTORS[0]
    slowdown: bool = False
    """Whether the slowdown is measured, in place of the rule."""
    limits: Limits = USUAL

    def __post_init__(self) -> None:
        require(self.machine in PRESETS, f"machine {self.machine}: one of {', '.join(PRESETS)}")
        require(1 <= self.repetitions <= SHIFTS, f"repetitions = {self.repetitions}: 1 .. "
                f"{SHIFTS}, since each shifts all nodes by a tenth")  # fmt: skip
        for name in ("collectives", "blocking"):
            part = getattr(self.limits, name)
            require(0 <= part <= 1, f"{name} = {part:g}: a part of the time, 0 .. 1")
        require(self.limits.slower > 0, f"slower = {self.limits.slower:g}: above 0")

    def nodes_of(self, found: Profile) -> int:
        """Returns on how many nodes an application runs. A third of the machine is its own, so that
        there is room for GPCNeT, and for shifts."""
        nodes = self.nodes or found.nodes or NODES
        least = LEAST_NODES if self.slowdown else 1
        most = PRESETS[self.machine].machine.n_nodes // 3
        require(least <= nodes <= most, f"{found.name} on {nodes} nodes: {least} .. {most}, at "
                f"most a third of {self.machine}")  # fmt: skip
        return nodes


def fitting(application: str, asked: SensitivityTest) -> Profile:
    """Returns an application, a profile by its name or its file. Refused where it does not fit."""
    found = profile(application)
    require(found.iterations < ENDLESS, f"{found.name}: its {found.iterations:,} iterations are "
            f"those of a congestor, which nobody waits for; fewer than {ENDLESS:,}")  # fmt: skip
    nodes, tasks = asked.nodes_of(found), found.tasks_per_node or 2
    if problems := [*unfit(found.stages, nodes, tasks, str(path_of(application)), "stages")]:
        raise Refused("\n".join(problems))
    return found
