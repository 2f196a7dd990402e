"""What could make naive overprovisioning as slow as the thesis has it: readings of its text, each
tried as a policy of its own.

Where a reading is about the configurations from which naive chooses, or about the power that they
count for, each job has a table of its own that says so: of its application, of the nodes that it
asks for, and under the bound of the run. The policy is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from odonata.provisioning.applications import SOCKETS, UNCAPPED_W, estimate
from odonata.provisioning.fitted import CAB
from odonata.provisioning.table import Table, sorted_table

if TYPE_CHECKING:
    from odonata.traces.trace import Trace

CORES = 16
NEARLY = 0.01
"""By how much slower than the best a configuration may be that is wider; printed: less than 1 %."""
SLOW_S, MUCH_W = 1e5, 2000.0
"""A configuration that nobody chooses: it takes so many seconds, and so many watts on the fewest
nodes. It is there so that a job is moldable, whatever else is in its table."""
Known = Callable[[Table, int, float], Table]
"""Returns what there is to choose from for a job that asks for so many nodes, under a fair share of
so many watts."""


class Reading(NamedTuple):
    """A reading of the thesis's text on naive: what there is to choose from, parameters of the
    policy, and how often it is asked, in s (0: whenever something happens)."""

    known: Known | None = None
    parameters: Mapping[str, Any] = {}
    every_s: float = 0.0


def only(table: Table, kept: Any, watts: Any = None) -> Table:
    """Returns some points of a table, with other watts where they are given."""
    w = table.watts if watts is None else watts
    return Table(table.application, table.nodes[kept], table.cores[kept], table.cap_w[kept],
                 table.seconds[kept], w[kept])  # fmt: skip


def _by_caps(table: Table, asked: int, share_w: float) -> Table:
    return only(table, slice(None), SOCKETS * table.nodes * table.cap_w)


def _with_memory(table: Table, asked: int, share_w: float) -> Table:
    found = estimate(CAB[table.application], table.nodes.astype(float),
                     table.cores.astype(float), table.cap_w)  # fmt: skip
    return only(table, slice(None), table.watts + SOCKETS * table.nodes * found.dram_w)


def _chosen(table: Table, share_w: float, wide: bool = False) -> int:
    """Returns the place of the fastest point within a share; `wide`: of the one on the most nodes
    that is nearly as fast."""
    within = np.flatnonzero(table.watts <= share_w)
    if not len(within):
        return int(table.watts.argmin())
    fast = table.seconds[within]
    if wide:
        within = within[fast <= fast.min() * (1.0 + NEARLY)]
        return int(within[np.lexsort((table.seconds[within], -table.nodes[within]))[0]])
    return int(within[fast.argmin()])


def _widest(table: Table, asked: int, share_w: float) -> Table:
    return only(table, [_chosen(table, share_w, wide=True)])


def _held(table: Table, asked: int, share_w: float) -> Table:
    at, watts = _chosen(table, share_w), table.watts.copy()
    watts[at] = max(watts[at], share_w)
    return only(table, [at], watts)


READINGS: dict[str, Reading] = {
    "waits for all of its share": Reading(parameters={"strict": True}),
    "holds its share while it runs": Reading(_held),
    "no backfilling": Reading(parameters={"backfill": "none"}),
    "first-fit backfilling": Reading(parameters={"backfill": "first-fit"}),
    "by the model": Reading(parameters={"knowledge": "model"}),
    "the widest within 1 %": Reading(_widest),
    "no turbo": Reading(lambda table, asked, share_w: only(table, table.cap_w < UNCAPPED_W)),
    "caps count, not watts": Reading(_by_caps),
    "memory counts": Reading(_with_memory),
    "all cores": Reading(lambda table, asked, share_w: only(table, table.cores == CORES)),
    "no more nodes than asked for": Reading(
        lambda table, asked, share_w: only(table, table.nodes <= asked)
    ),
    "the nodes asked for": Reading(
        lambda table, asked, share_w: only(table, table.nodes == asked)
    ),
    "no more than asked for, no turbo": Reading(
        lambda table, asked, share_w: only(
            table, (table.nodes <= asked) & (table.cap_w < UNCAPPED_W)
        )
    ),
    "no caps, all cores": Reading(
        lambda table, asked, share_w: only(
            table, (table.cores == CORES) & (table.cap_w == UNCAPPED_W)
        )
    ),
    "jobs start every 30 s": Reading(every_s=30.0),
}  # fmt: skip
"""The readings of naive, by what is other than in the study."""


def by_job(
    trace: Trace, tables: Mapping[str, Table], known: Known, bound_w: float, nodes: int
) -> tuple[Trace, dict[str, Table]]:
    """Returns a trace in which jobs of one application that ask for different numbers of nodes are
    of different ones, and what is known of each."""
    names: dict[str, int] = {}
    found: dict[str, Table] = {}
    application = np.empty(len(trace), np.int64)
    each = zip(trace.application.tolist(), trace.nodes.tolist(), strict=True)
    for job, (number, asked) in enumerate(each):
        name = trace.applications[number]
        own = f"{name} on {asked}"
        if own not in names:
            names[own] = len(names)
            found[own] = _startable(known(tables[name], asked, asked / nodes * bound_w),
                                    tables[name], asked, bound_w)  # fmt: skip
        application[job] = names[own]
    return replace(trace, application=application, applications=tuple(names)), found


def _startable(table: Table, every: Table, asked: int, bound_w: float) -> Table:
    """Returns a table from which a job that asks for so many nodes can start: one that fits under
    the bound, and on as few nodes."""
    if not (table.watts <= bound_w).any():
        table = only(every, every.nodes <= asked)
    if table.nodes.min() <= asked:
        return table
    fewest = every.nodes.min()
    return sorted_table(
        every.application, np.append(table.nodes, fewest), np.append(table.cores, 1),
        np.append(table.cap_w, 1.0), np.append(table.seconds, SLOW_S),
        np.append(table.watts, MUCH_W),
    )  # fmt: skip
