"""What a job run streams while it goes on: the state of the queue, its logs, and its jobs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from odonata.cluster import layout as w
from odonata.jobs.schedule import RUNNING, WAITING
from odonata.jobs.series import Steps
from odonata.traces.trace import Trace
from pdes.errors import Fault
from pdes.log import Block, Field, Log
from pdes.stream import Column, Series, Table
from policies.power import floor as f

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


MOLDS = Log(
    (Field("job", "1", "its place in the trace"),
     Field("nodes", "1", "nodes that it gets"),
     Field("cores", "1", "cores of each that it uses"),
     Field("cap_w", "W", "the cap of a socket", "f8"),
     Field("watts", "W", "what all of its nodes draw", "f8"),
     Field("limit_us", "us", "how long it may run")),
    "a row when a moldable job starts, in the configuration that a power policy chose for it",
)  # fmt: skip
POWERED_ENDS = Log(
    (*ENDS.columns,
     Field("energy_j", "J", "the energy that it took since it got them", "f8"),
     Field("idle_j", "J", "the energy of idle nodes until then", "f8"),
     Field("sleep_j", "J", "the energy of sleeping nodes until then", "f8"),
     Field("cap_stretch", "1", "how many times as long it took, under its caps, as without", "f8")),
    ENDS.about,
)  # fmt: skip
TYPE_CAPS = Log(
    (Field("type", "1", "whose jobs are capped: a row of types"),
     Field("cap_w", "W", "per node; infinity: they have no cap", "f8")),
    "a row when the cap of a type changes of which jobs run",
)  # fmt: skip
SPEEDS = Log((Field("rate", "1", "work per time", "f8"),),
             "a row when the service rate of all nodes changes")  # fmt: skip


def notes(state: Any) -> list[tuple[str, Block]]:
    """Returns the rows of logs that have gathered in the state, which has none of them then."""
    count, found = int(state.ctl[w.NOTES]), []
    powered = state.ctl[w.POWERED] != 0
    if count > len(state.notes):
        raise Fault(f"{count:,} notes at one instant, and room for {len(state.notes):,}: please "
                    "report this")  # fmt: skip
    if count:
        time, job, what, value, idle, asleep, longer = state.notes[:count].T.copy()
        state.ctl[w.NOTES] = 0
        began, ended = what == w.STARTED, (what > w.STARTED) & (what < w.CAPPED)
        joules = tuple(it[ended].view(np.float64)
                       for it in (value, idle, asleep, longer) if powered)  # fmt: skip
        found = [("starts", Block(time[began], (job[began],))),
                 ("ends", Block(time[ended], (job[ended], what[ended], *joules)))]  # fmt: skip
        if powered:
            for name, which, more in (
                ("caps", (what == w.CAPPED) | (what == w.MACHINE_CAPPED), True),
                ("speeds", what == w.SPEEDED, False),
                ("type_caps", what == w.TYPE_CAPPED, True),
            ):
                if which.any():
                    columns = (job[which],) * more + (value[which].view(np.float64),)
                    found.append((name, Block(time[which], columns)))
    readings = int(state.ctl[w.READINGS])
    if readings:
        time, drawn, allowed, cause, target, standby = state.readings[:readings].T.copy()
        state.ctl[w.READINGS] = 0
        columns = (drawn.view(np.float64), allowed.view(np.float64), cause)
        found.append(("power", Block(time, columns)))
        if len(state.market):
            columns = tuple(it.view(np.float64) for it in (target, drawn, standby))
            found.append(("tracking", Block(time, columns)))
    return found


class Energies(NamedTuple):
    """The energies up to a moment: of idle and of sleeping nodes, of each job, and of each node
    (none where jobs are not placed)."""

    idle_j: float
    sleep_j: float
    by_job_j: npt.NDArray[np.float64]
    by_node_j: npt.NDArray[np.float64]


def energies(state: Any, time: int) -> Energies:
    """Returns the energies up to a moment that no event lies before. Nothing of the state changes:
    how often one looks must not change how sums are rounded."""
    if len(state.kinds):
        return _energies_by_type(state, time)
    ctl, meter = state.ctl, state.meter
    seconds = (time - ctl[w.METERED]) * w.SECOND
    awake = ctl[w.FREE] - ctl[w.ASLEEP]
    by_job, by_node = state.energy[:, w.JOULES].copy(), state.node[:, w.NODE_J].copy()
    rows = state.running[: ctl[w.RUNNING]]
    billed, ready = state.jobs[rows, w.BILLED], state.jobs[rows, w.READY]
    boot, full = _spans(billed, ready, time)
    by_job[rows] += state.energy[rows, w.BOOT_W] * boot + state.energy[rows, w.DRAWS_W] * full
    if len(by_node):
        owner = state.owner
        until = np.zeros(len(owner), np.int64)
        held = (owner >= 0) & (owner < len(state.jobs))
        until[held] = state.jobs[owner[held], w.READY]
        boot, full = _spans(state.node_since[:, 0], until, time)
        by_node += state.node[:, w.NODE_BOOT_W] * boot + state.node[:, w.NODE_W] * full
    return Energies(
        float(meter[w.IDLE_J] + awake * meter[w.IDLE_W] * seconds),
        float(meter[w.SLEEP_J] + ctl[w.ASLEEP] * meter[w.SLEEP_W] * seconds), by_job, by_node,
    )  # fmt: skip


def _energies_by_type(state: Any, time: int) -> Energies:
    """Returns the same where jobs have the clocks of their types."""
    ctl, meter, marks = state.ctl, state.meter, state.progress
    by_job = state.energy[:, w.JOULES].copy()
    rows = running_rows(state)
    of = state.rows[rows, f.OF]
    kinds, since = state.kinds[of], state.tallies[of, f.SINCE]
    node_j = kinds[:, f.NODE_J] + kinds[:, f.WATTS] * ((time - since) * w.SECOND)
    halted = marks[rows, f.LEFT] >= 0.0
    idle_j = meter[w.IDLE_W] * ((time - marks[rows, f.BEGAN]) * w.SECOND)
    drawn = np.where(halted, idle_j, node_j - marks[rows, f.BEGAN_J])
    by_job[rows] = marks[rows, f.TAKEN_J] + state.rows[rows, f.WIDTH] * drawn
    seconds = (time - ctl[w.METERED]) * w.SECOND
    return Energies(float(meter[w.IDLE_J] + ctl[w.FREE] * meter[w.IDLE_W] * seconds), 0.0, by_job,
                    state.node[:, w.NODE_J].copy())  # fmt: skip


def running_rows(state: Any) -> npt.NDArray[np.int64]:
    """Returns the rows of the jobs that hold nodes: in order of DUE or, where a policy regulates by
    type, in that of the trace."""
    if len(state.kinds):
        return np.flatnonzero(state.jobs[: state.ctl[w.NEXT], w.STATUS] == RUNNING)
    return state.running[: state.ctl[w.RUNNING]]  # type: ignore[no-any-return]


def waiting_rows(state: Any) -> npt.NDArray[np.int64]:
    """Returns the rows of the jobs that wait, in order of arrival."""
    if len(state.kinds):
        return np.flatnonzero(state.jobs[: state.ctl[w.NEXT], w.STATUS] == WAITING)
    return state.queue[state.ctl[w.FIRST] : state.ctl[w.LAST]]  # type: ignore[no-any-return]


def standby_j(state: Any, time: int) -> float:
    """Returns the energy of standby jobs up to a moment that no event lies before."""
    some = state.tallies[:, f.STANDBY] != 0
    kinds, tallies = state.kinds[some], state.tallies[some]
    drawn = tallies[:, f.NODES] * kinds[:, f.WATTS]
    drawn = drawn + tallies[:, f.HALTED_NODES] * state.sums[f.IDLE_W]
    seconds = (time - tallies[:, f.SINCE]) * w.SECOND
    return float((kinds[:, f.JOULES] + drawn * seconds).sum())


def _spans(begin: Any, ready: Any, time: int) -> tuple[Any, Any]:
    """Returns the seconds before and after `ready`, from `begin` until now."""
    middle = np.clip(ready, begin, np.maximum(begin, time))
    return (middle - begin) * w.SECOND, (np.maximum(begin, time) - middle) * w.SECOND


ENERGY_LEVELS = {
    "idle_j": "energy of idle nodes, so far",
    "sleep_j": "energy of sleeping nodes, so far",
    "jobs_j": "energy of jobs, so far",
}


def series_table(name: str, steps: Steps, unit: str, about: str) -> Table:
    """Returns what may change over time as a table of constants, so that a run's files have it."""
    since = Column(f"{name}/since_us", name, "us", "since when it holds",
                   lambda state: steps.times if len(state.jobs) else steps.times[:0])  # fmt: skip
    value = Column(f"{name}/value", name, unit, about,
                   lambda state: steps.values if len(state.jobs) else steps.values[:0])  # fmt: skip
    return Table((), lambda state, time: [], (since, value))


def tables(trace: Trace, powered: bool) -> Mapping[str, Table]:
    """Returns the table that is sampled, and the constant one of jobs."""
    levels = {
        "queue": "jobs that wait",
        "running": "jobs that hold nodes",
        "busy_nodes": "nodes that jobs hold",
    }

    def system(state: Any, time: int) -> Sequence[Any]:
        ctl = state.ctl
        if not len(state.jobs):
            return [np.zeros(0, np.int64)] * len(levels) + [np.zeros(0)] * 4 * powered
        found = [ctl[w.LAST] - ctl[w.FIRST], ctl[w.RUNNING], ctl[w.ALL] - ctl[w.FREE]]
        if powered:
            joules = energies(state, time)
            found += [joules.idle_j, joules.sleep_j, math.fsum(joules.by_job_j), ctl[w.WAKES]]
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
            (*(Series(f"system/{name}", ("scheduler",), "1", about, level=True)
               for name, about in levels.items()),
             *(Series(f"system/{name}", ("scheduler",), "J", about, "f8", level=True)
               for name, about in (ENERGY_LEVELS.items() if powered else ())),
             *(Series("system/wakes", ("scheduler",), "1", "nodes woken, so far", level=True)
               for _ in range(powered))),
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
