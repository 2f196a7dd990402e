"""Which waiting jobs start now.

A scheduling policy is shown the queue, the running jobs and the idle nodes (a `View`) and returns
the numbers of the jobs to start. Most are a discipline: an order in which waiting jobs are tried.
To write one, write that function and register it::

    from policies.scheduling import discipline

    @discipline("last-come", about="last come, first served", source="ours")
    def last_come(queue):
        return list(reversed(range(len(queue))))

Read `base` (the contract), `sensitive` (one of them, in Python), `disciplines` (the others), then
`desk`, `rules`, `profile`, `conservative` and `usage` (how those are computed); `cheaper` and
`drain` look at prices and caps to come; docs/policies.md has the rest.
"""

from __future__ import annotations

from policies.scheduling.base import (
    SCHEDULINGS,
    Discipline,
    SchedulingPolicy,
    again,
    backfilling,
    comes_again,
    discipline,
    fitting,
    scheduling,
    select,
)

from policies.scheduling.compiled import has_order, in_order  # isort: skip
from policies.scheduling import disciplines, sensitive, cheaper  # noqa: F401  isort: skip

__all__ = [
    "SCHEDULINGS",
    "Discipline",
    "SchedulingPolicy",
    "again",
    "backfilling",
    "comes_again",
    "discipline",
    "fitting",
    "has_order",
    "in_order",
    "scheduling",
    "select",
]
