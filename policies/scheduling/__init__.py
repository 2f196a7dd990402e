"""Which waiting job is tried next.

A discipline is shown the queue and answers with the order in which its jobs are tried. To write
one, write that function and register it, as an allocation is (`policies.allocation`)::

    @discipline("last-come", about="last come, first served", source="ours")
    def last_come(waiting):
        return list(reversed(range(len(waiting))))

Entry points are of the group `odonata.scheduling`.
"""

from __future__ import annotations

from policies.scheduling.base import (
    DISCIPLINES,
    SchedulingPolicy,
    Waiting,
    discipline,
    discipline_named,
    order_of,
)

from policies.scheduling import sizes  # noqa: F401  isort: skip

__all__ = [
    "DISCIPLINES",
    "SchedulingPolicy",
    "Waiting",
    "discipline",
    "discipline_named",
    "order_of",
]
