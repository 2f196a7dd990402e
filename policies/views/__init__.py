"""All that a policy may see, read-only: what a real scheduler sees, and no more.

Times are in ticks of the model, which are picoseconds where packets are simulated. A policy never
sees how long a job will run before it has ended, nor a queue inside a router.

Read `jobs`; `sight`, the machine; `choices` and `power`; `ahead` and `queue`; `market`.
"""

from __future__ import annotations

from policies.views.ahead import Ahead, Course
from policies.views.choices import Choice, Choices, Mold, choices_of
from policies.views.jobs import HAIR, NEVER, Ended, Labels, Request, Running, held_for
from policies.views.market import Bid, JobKind, JobsThere, Market, Trial
from policies.views.power import (
    Budget,
    Configuration,
    Moment,
    PowerDesk,
    Powered,
    PowerView,
    Readings,
    Target,
)
from policies.views.queue import View
from policies.views.sight import (
    STALLS,
    TRAFFIC,
    Counters,
    Counts,
    Rates,
    Sight,
    Words,
    row_sums,
    starts,
)

__all__ = [
    "HAIR",
    "NEVER",
    "STALLS",
    "TRAFFIC",
    "Ahead",
    "Bid",
    "Budget",
    "Choice",
    "Choices",
    "Configuration",
    "Counters",
    "Counts",
    "Course",
    "Ended",
    "JobKind",
    "JobsThere",
    "Labels",
    "Market",
    "Mold",
    "Moment",
    "PowerDesk",
    "PowerView",
    "Powered",
    "Rates",
    "Readings",
    "Request",
    "Running",
    "Sight",
    "Target",
    "Trial",
    "View",
    "Words",
    "choices_of",
    "held_for",
    "row_sums",
    "starts",
]
