"""What a job run streams while it goes on: the state of the queue, its logs, and its jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from odonata.cluster.layout import NOTES, STARTED
from odonata.traces.trace import Trace
from pdes.log import Block, Field, Log
from pdes.stream import Column, Series, Table
from policies.scheduling.desk import ALL, FIRST, FREE, LAST, RUNNING

STARTS = Log(
    (Field("job", "1", "its place in the trace"),),
    "a row when a job gets its nodes, for the first time or again",
)
ENDS = Log(
    (Field("job", "1", "its place in the trace"),
     Field("how", "1", "1: it has finished, 2: it was killed, 3: it was suspended", "i1")),
    "a row when a job gives its nodes back",
)  # fmt: skip
PLACEMENTS = Log(
    (Field("job", "1", "its place in the trace"),
     Field("labels", "1", "its nodes, in the order in which it was given them", "i4", True)),
    "a row when a job is placed, in the order of `starts`",
)  # fmt: skip


def notes(state: Any) -> list[tuple[str, Block]]:
    """Returns the rows of `starts` and `ends` that have gathered in the state, which has none of
    them then."""
    count = int(state.ctl[NOTES])
    if not count:
        return []
    time, job, what = state.notes[:count].T.copy()
    state.ctl[NOTES] = 0
    began = what == STARTED
    return [("starts", Block(time[began], (job[began],))),
            ("ends", Block(time[~began], (job[~began], what[~began])))]  # fmt: skip


def tables(trace: Trace) -> Mapping[str, Table]:
    """Returns the table that is sampled, and the constant one of jobs."""
    levels = {
        "queue": "jobs that wait",
        "running": "jobs that hold nodes",
        "busy_nodes": "nodes that jobs hold",
    }

    def system(state: Any, time: int) -> Sequence[Any]:
        ctl = state.ctl
        if not len(state.jobs):
            return [np.zeros(0, np.int64)] * len(levels)
        found = (ctl[LAST] - ctl[FIRST], ctl[RUNNING], ctl[ALL] - ctl[FREE])
        return [np.array([value]) for value in found]

    def column(name: str, unit: str, about: str, values: npt.NDArray[Any]) -> Column:
        return Column(f"jobs/{name}", "job", unit, about,
                      lambda state: values[: len(state.jobs)])  # fmt: skip

    def names(of: str, known: Sequence[str]) -> Column:
        texts = np.array([name.encode() for name in known])
        return Column(f"{of}/name", of.removesuffix("s"), "1", "in UTF-8",
                      lambda state: texts if len(state.jobs) else texts[:0])  # fmt: skip

    return {
        "system": Table(
            tuple(Series(f"system/{name}", ("scheduler",), "1", about, level=True)
                  for name, about in levels.items()),
            system,
        ),
        "jobs": Table(
            (),
            lambda state, time: [],
            (column("number", "1", "its number in the trace's source", trace.number),
             column("submit_us", "us", "when it joined the queue", trace.submit_us),
             column("run_us", "us", "how long it runs when nothing slows it down", trace.run_us),
             column("nodes", "1", "nodes that it asked for", trace.nodes),
             column("requested_us", "us", "run time that its user asked for; -1: unknown",
                    trace.requested_us),
             column("recorded_wait_us", "us", "how long it waited on the real machine; -1: unknown",
                    trace.wait_us),
             column("user", "1", "who submitted it: a row of users", trace.user),
             column("project", "1", "on whose account it ran: a row of projects", trace.project),
             column("application", "1", "the program that it ran: a row of applications",
                    trace.application),
             names("users", trace.users), names("projects", trace.projects),
             names("applications", trace.applications)),
        ),
    }  # fmt: skip
