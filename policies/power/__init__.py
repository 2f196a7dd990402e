"""How many watts a job may draw: its configuration at its start, and caps from then on.

Read `base`, the contract; `simple`, the policies that learn nothing; `knapsack` and `learning`, and
`learner`, which is Wallace's; `service_rate`, Rumyantsev's; `prediction`, `rmap` and
`rmap_compiled`, which are Patki's; `floor`, `acts`, `following`, `qoscap` and `by_caps`,
which follow a target by types of jobs. docs/policies.md has a worked example.
"""

from __future__ import annotations

from policies.power import by_caps as by_caps
from policies.power import following as following
from policies.power import learner as learner
from policies.power import qoscap as qoscap
from policies.power import rmap as rmap
from policies.power import service_rate as service_rate
from policies.power import simple as simple
from policies.power.base import POWERS, Admitted, Caps, PowerPolicy, Speed, power
from policies.views import (
    Budget,
    Choice,
    Choices,
    Configuration,
    Mold,
    PowerDesk,
    Powered,
    PowerView,
    Readings,
    Target,
    choices_of,
)

__all__ = [
    "POWERS",
    "Admitted",
    "Budget",
    "Caps",
    "Choice",
    "Choices",
    "Configuration",
    "Mold",
    "PowerDesk",
    "PowerPolicy",
    "PowerView",
    "Powered",
    "Readings",
    "Speed",
    "Target",
    "choices_of",
    "power",
]
