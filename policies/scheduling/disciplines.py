"""The disciplines that come with Odonata, each an order and a rule of `rules`."""

from __future__ import annotations

from dataclasses import dataclass

from policies.parameters import parameter
from policies.scheduling.base import scheduling
from policies.scheduling.compiled import Compiled, Remembering

ZHANG = "Y. Zhang: Intelligent middleware for HPC systems, thesis, Boston University 2021, 3.4.5"
FEITELSON = (
    "A. Mu'alem, D. Feitelson: Utilization, predictability, workloads, and user runtime estimates "
    "in scheduling the IBM SP2 with backfilling, IEEE TPDS 2001"
)
RUMYANTSEV = (
    "A. Rumyantsev et al.: Discrete-event modeling of a high-performance computing cluster with "
    "service rate control, 2018"
)
TANG = "W. Tang et al.: Fault-aware, utility-based job scheduling on Blue Gene/P systems, 2009"
SLURM = "as in Slurm's multifactor priority: decayed usage"
BACKFILL = ("none", "first-fit", "easy", "easy-strict")
"""The rules that an order of its own may be combined with; none is strict."""


def _fixed(name: str, about: str, source: str, order: str, rule: str) -> None:
    """Enter a discipline without parameters."""

    class Fixed(Compiled):
        def order_and_rule(self) -> tuple[str, str]:
            return order, rule

    Fixed.__doc__ = f"{about.capitalize()}."
    Fixed.__qualname__ = Fixed.__name__ = "".join(part.capitalize() for part in name.split("-"))
    scheduling(name, about=about, source=source)(Fixed)


for entry in (
    ("fcfs", "first come, first served", "as everywhere", "arrival", "strict"),
    ("small-first", "the fewest nodes first, then by arrival", ZHANG, "small", "strict"),
    ("large-first", "the most nodes first, then by arrival", ZHANG, "large", "strict"),
    ("shortest-first", "the least requested time first, then by arrival", "as everywhere",
     "short", "strict"),
    ("longest-first", "the most requested time first, then by arrival", "as everywhere",
     "long", "strict"),
    ("first-fit", "by arrival, and whoever fits passes those that do not", "as everywhere",
     "arrival", "first-fit"),
    ("easy", "by arrival; a job may pass if it does not delay the first that waits", FEITELSON,
     "arrival", "easy"),
    ("easy-strict", "by arrival; a job may pass if it will have ended before the first that waits "
     "can start", RUMYANTSEV, "arrival", "easy-strict"),
    ("lcfs-pr", "last come, first served; older jobs are suspended, and resume", RUMYANTSEV,
     "newest", "serve"),
):  # fmt: skip
    _fixed(*entry)


@scheduling("conservative", about="by arrival; a job may pass if it delays nobody that waits",
            source=FEITELSON)  # fmt: skip
class Conservative(Remembering):
    """Every waiting job has a planned start, and nobody delays it. With a `depth` only the first so
    many of them have, as in the backfilling of Slurm (bf_max_job_test); the others wait until they
    are among these, whatever is idle."""

    depth: int = parameter(0, about="waiting jobs that have a planned start; 0: all", least=0)

    def order_and_rule(self) -> tuple[str, str]:
        return "arrival", "conservative"

    def planned(self) -> int:
        return self.depth


@scheduling("wfp", about="(wait / requested time)³ × nodes, the largest first", source=TANG)
class Wfp(Compiled):
    """WFP favours old and large jobs; on Mira it was used with EASY backfilling."""

    backfill: str = parameter("easy", about="who may pass", words=BACKFILL)

    def order_and_rule(self) -> tuple[str, str]:
        return "wfp", _rule(self.backfill)


@scheduling("fair-share", about="jobs of the user with the least decayed usage first", source=SLURM)
class FairShare(Remembering):
    """The usage of a user is the node-time of his jobs, charged while they run. It is halved every
    `half_life`, in steps of a 64th of it."""

    half_life: float = parameter(
        7 * 86400.0, unit="seconds", about="after which a usage counts half", least=1e-9, most=1e9
    )
    backfill: str = parameter("easy", about="who may pass", words=BACKFILL)

    def order_and_rule(self) -> tuple[str, str]:
        return "usage", _rule(self.backfill)

    def half_life_s(self) -> float:
        return self.half_life


PRINTED = "preempt at departures, as the paper prints it; for busy periods"


@dataclass(frozen=True)
class _ByWork(Remembering):
    """By requested time, but in a new order only when a job has ended: an arrival starts at once if
    it fits and nobody waits, and else waits for the next end.

    The paper's own formula (`printed`) preempts at departures, by the remaining time, and lets an
    arrival wait for a departure even on an idle machine; here it starts if nobody is served.
    """

    _order = ""
    printed: bool = parameter(False, about=PRINTED)

    def order_and_rule(self) -> tuple[str, str]:
        return self._order, "serve-departures" if self.printed else "departures"


@scheduling("spf", about="shortest processing time first, in order of it when a job has ended",
            source=RUMYANTSEV)  # fmt: skip
class Spf(_ByWork):
    __doc__ = _ByWork.__doc__
    _order = "short"


@scheduling("lpf", about="longest processing time first, in order of it when a job has ended",
            source=RUMYANTSEV)  # fmt: skip
class Lpf(_ByWork):
    __doc__ = _ByWork.__doc__
    _order = "long"


def _rule(backfill: str) -> str:
    return "strict" if backfill == "none" else backfill
