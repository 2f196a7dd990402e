"""Jobs that congestion slows down first, so that they get the quiet routers."""

from __future__ import annotations

from collections.abc import Sequence

from pdes.clock import TICKS
from policies.parameters import parameter
from policies.scheduling.base import SchedulingPolicy, backfilling, fitting, scheduling
from policies.views import Request, View

PASSING = ("none", "first-fit", "easy")
"""Who may pass the first job that does not fit."""


@scheduling(
    "sensitive-first",
    about="jobs that congestion slows down, then those of which nobody knows, then the others",
    source="Y. Zhang: Intelligent middleware for HPC systems, thesis, Boston University 2021, 4.2",
)
class SensitiveFirst(SchedulingPolicy):
    """Has the more sensitive of two waiting jobs choose its nodes first; among equals, by arrival.
    With an allocation such as `nedd`, the other job cannot take the quiet routers before it.

    An insensitive job may wait for ever while sensitive ones keep arriving. With an `age_limit`,
    jobs that have waited for so long come before all others, by arrival. There is none by default:
    the thesis has none, and waits are microseconds in some runs and days in others.

    >>> minds, does_not = {"sensitive": True}, {"sensitive": False}
    >>> queue = [Request(0, 2, 0, **does_not), Request(1, 2, 5), Request(2, 2, 9, **minds)]
    >>> view = View(10, queue, (), 6, None)
    >>> SensitiveFirst().select(view), SensitiveFirst(age_limit=8e-12).select(view)
    ([2, 1, 0], [0, 2, 1])
    """

    age_limit: float = parameter(
        0.0, unit="seconds", about="after which a job comes before all others; 0: never",
        least=0, most=1e9,
    )  # fmt: skip
    backfill: str = parameter("easy", about="who may pass", words=PASSING)

    def select(self, view: View) -> Sequence[int]:
        old = round(self.age_limit * 1e12 / TICKS[view.tick])

        def rank(position: int) -> int:
            job = view.queue[position]
            if self.age_limit and view.time - job.submit >= old:
                return -1
            return _rank(job)

        order = sorted(range(len(view.queue)), key=rank)
        if self.backfill == "easy":
            return backfilling(view, order)
        return fitting(view, order, self.backfill == "none")


def _rank(job: Request) -> int:
    return 1 if job.sensitive is None else 0 if job.sensitive else 2
