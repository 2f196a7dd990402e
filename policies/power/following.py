"""Policies that follow a target, by what they start and by one cap for all: `tracking-only`,
`energy-qare`, `qosg` and `aqa`. docs/demand-response.md says exactly what each step does.
"""

from __future__ import annotations

from typing import Any

from pdes.jit import kernel
from policies.parameters import parameter
from policies.power import floor as w
from policies.power.acts import take
from policies.power.base import PowerPolicy, power
from policies.power.floor import Floor, drawn_w, first_waiting, head_width, more_w, quality
from policies.power.steps import Rule, follow, hold_all, usual
from policies.views import Moment

ZHANG = "Y. Zhang: Intelligent middleware for HPC systems, thesis, Boston University 2021, 2.4"
AQA = "Y. Zhang et al.: HPC data center participation in demand response, 2021, 3.4 and 3.6"
CHEN = "H. Chen et al., 2014, as in Zhang 2021, 2.5"
QARE = "H. Chen et al.: EnergyQARE, 2019, as in Zhang 2021, 2.5 and 2.7"

LATER = 1e-6
"""Degradations that differ by no more than this, as a part of thresholds, are equal."""
PREEMPTION = "suspend jobs where all are held at their lowest cap and the machine still draws more"


@kernel
def _first_of_the_quality(now: Moment, floor: Floor, limit: float) -> bool:
    """Start jobs while they are late by more than the machine is off its target. Returns whether
    any was started."""
    drawn, late, before = drawn_w(floor), quality(floor, now.time), floor.floor[w.STARTS]
    while now.reserve_w > 0.0:
        off = abs(drawn - now.target_w) / now.reserve_w / limit
        kind = first_waiting(floor)
        if not late > off + LATER or kind < 0 or head_width(floor, kind) > floor.floor[w.FREE]:
            break
        drawn += more_w(floor, kind, head_width(floor, kind))
        take(floor, kind, now.time)
    return floor.floor[w.STARTS] > before  # type: ignore[no-any-return]


@power("tracking-only", about="follows the target, whoever waits", source=CHEN)
class TrackingOnly(PowerPolicy):
    """Each second waiting jobs start in order of arrival while the machine, without caps, stays
    within its target. Where it exceeds that all jobs are held to one cap."""

    preemption: bool = parameter(False, about=PREEMPTION)

    @staticmethod
    def regulate(now: Moment, floor: Floor, given: Any) -> None:
        follow(now, floor, usual(False, given[0] != 0.0))


@power("energy-qare", about="follows the target while jobs are less late than it is off",
       source=QARE)  # fmt: skip
class EnergyQare(PowerPolicy):
    """As `tracking-only`; but where jobs are late, as a part of their thresholds, by more than the
    machine is off its target, as a part of what it may be, waiting jobs start first, whatever the
    target."""

    limit: float = parameter(
        0.3,
        about="how far the machine may be off its target, as a part of the reserve",
        least=1e-9,
    )
    preemption: bool = parameter(False, about=PREEMPTION)

    @staticmethod
    def regulate(now: Moment, floor: Floor, given: Any) -> None:
        if _first_of_the_quality(now, floor, given[0]):
            hold_all(floor, 1.0)
            return
        follow(now, floor, usual(False, given[1] != 0.0))


@power("qosg", about="divides the nodes that the target feeds by the weights of the bid",
       source=ZHANG)  # fmt: skip
class QosG(PowerPolicy):
    """The target says how many nodes may be active, the weights of the bid how many of these each
    type of jobs gets. What a type cannot use is divided among the others. Where the machine exceeds
    its target all jobs are held to one cap."""

    preemption: bool = parameter(False, about=PREEMPTION)

    @staticmethod
    def regulate(now: Moment, floor: Floor, given: Any) -> None:
        follow(now, floor, usual(True, given[0] != 0.0))


@power("aqa", about="divides nodes by the weights of the bid, each of its steps an option",
       source=AQA)  # fmt: skip
class Aqa(PowerPolicy):
    """Nodes are divided as by `qosg`, for jobs of several nodes. Each step can be left out or done
    otherwise, so that what it does can be measured by itself."""

    weighted: bool = parameter(
        True, about="divide nodes among types by weight; else jobs start in order of arrival"
    )
    sharing: bool = parameter(True, about="divide what a type cannot use among the others")
    parts: bool = parameter(
        True, about="start a job, within the target, of a type that lacks less than a whole one"
    )
    capping: bool = parameter(True, about="hold all jobs to one cap where the target is exceeded")
    planned: bool = parameter(
        False, about="the cap goes by the nodes that types are to have, as printed, not by theirs"
    )
    preemption: bool = parameter(False, about=PREEMPTION)
    gaps: bool = parameter(
        False, about="standby jobs fill every gap; else they start only while nobody waits"
    )
    gain: float = parameter(
        0.0,
        about="weights grow with the wait of a type's first job, by so much at its threshold",
        least=0.0,
        most=1000.0,
    )

    @staticmethod
    def regulate(now: Moment, floor: Floor, given: Any) -> None:
        follow(now, floor, Rule(
            given[0] != 0.0, given[5] != 0.0, given[1] != 0.0, given[2] != 0.0, given[3] != 0.0,
            given[4] != 0.0, given[6] != 0.0, given[7],
        ))  # fmt: skip
