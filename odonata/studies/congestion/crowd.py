"""An application in setting I or III on a machine that others use too, so that there is load on the
links between routers: its nodes are consecutive in the list, but the list is in pieces.

The list of 192 nodes is in contiguous sets of whole routers at random places, another in each
repetition, and all other nodes run other users' jobs, as in the study of NeDD. Nodes of the
application and of GPCNeT are on the same router only where the list is divided inside of one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from odonata.jobs.request import Job
from odonata.studies.congestion.simulation import LIST, Divided, application_on, beside, places
from odonata.studies.congestion.simulation import profile_of as usual
from odonata.studies.congestion.users import chance, in_sets, others_on
from topology.presets import PRESETS

SETS = 24
"""How many pieces the list is in: each of two routers."""


@dataclass(frozen=True)
class Crowded(Divided):
    """A run among other users."""

    profiles: str = ""
    sets: int = SETS

    def __str__(self) -> str:
        return f"{super().__str__()}, among other users"

    def jobs(self) -> list[Job]:
        nodes_of_router = PRESETS[self.machine].machine.nodes
        total = PRESETS[self.machine].machine.n_nodes
        rng = chance(4, self.shift)
        routers = in_sets(LIST // nodes_of_router, total // nodes_of_router, self.sets, rng)
        listed = [router * nodes_of_router + node for router in routers
                  for node in range(nodes_of_router)]  # fmt: skip
        mine, theirs = ([listed[place] for place in some]
                        for some in places(self.setting, self.shift))  # fmt: skip
        first = replace(application_on(usual(self), mine, self.tasks), profile="")
        held = sorted({*range(total)} - {*listed})
        return [first, *beside(self, theirs), *others_on(held, self.tasks, rng)]
