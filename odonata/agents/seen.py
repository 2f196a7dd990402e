"""The logs of what the scheduler saw of the network when it placed each job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from odonata.agents.decided import Start
from pdes.log import Appended, Block, Field, Log

if TYPE_CHECKING:
    from odonata.agents.reports import Telemetry
    from policies.views import Counters

SEEN = {
    "seen": Log(
        (Field("job", "1", "its number"),
         Field("age_ps", "ps", "how long ago the newest reading was taken; -1: none had come"),
         Field("interval_ps", "ps", "the time between two readings"),
         Field("intervals", "1", "the intervals up to that reading which the allocation policy "
               "reads, or 1 if it reads none; fewer while there are not as many")),
        "a row when an allocation policy has placed a job: the reports that it had",
    ),
    "seen_routers": Log(
        (Field("job", "1", "its number"),
         Field("router", "1", "a router of which something was reported that is not 0"),
         Field("sent_bytes", "B", "what its nodes sent in these intervals"),
         Field("received_bytes", "B", "what was delivered to its nodes"),
         Field("stall_ps", "ps", "packets waited in it without credit while the link was free"),
         Field("wait_ps", "ps", "packets waited in it while the link was busy")),
        "the counters in these reports, by router",
    ),
}  # fmt: skip
"""Logs of a run whose scheduler is told of the network. All jobs that start in one decision see the
same counters."""


def rows_of(
    telemetry: Telemetry, counters: Counters | None, time: int, starts: Sequence[Start]
) -> Appended:
    """Returns the rows of these logs for jobs that start in a decision at a time."""
    if counters is None:
        return [("seen", (start.job, -1, telemetry.interval_ps, 0)) for start in starts]
    many = min(telemetry.keeps, len(counters.sent))
    by_router = np.stack([counters.bytes_by_router("sent", many),
                          counters.bytes_by_router("received", many),
                          counters.stall[-many:].sum(0), counters.wait[-many:].sum(0)])  # fmt: skip
    some = np.flatnonzero(by_router.any(0))
    times, columns = np.full(len(some), time), by_router[:, some]
    rows: list[tuple[str, Sequence[int] | Block]] = []
    for start in starts:
        rows.append(("seen", (start.job, counters.age, telemetry.interval_ps, many)))
        of_job = np.full(len(some), start.job)
        rows.append(("seen_routers", Block(times, (of_job, some, *columns))))
    return rows
