"""The floor of a machine that is regulated, before anything has happened: jobs by type, as arrays.

The types of a run are those of its mix or, where its trace is a file, all of the table; in the
order of the table. Standby jobs are a type of their own, behind these, whatever they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from odonata.traces.trace import Trace
from odonata.traces.types import JobType, Types
from pdes.errors import Refused
from policies.power import floor as f
from policies.scheduling.desk import NEVER
from policies.views import JobsThere

Whole = npt.NDArray[np.int64]
SECOND = 10**6


class Kinds(NamedTuple):
    """The types of a run: rows of their table, the type of each job as a place among them, and the
    type of standby jobs."""

    rows: Sequence[JobType]
    of_job: Whole
    standby: JobType | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Returns the names of the types, standby jobs aside."""
        return tuple(each.name for each in self.rows)

    @classmethod
    def of(cls, types: Types, trace: Trace, standby: str | None) -> Kinds:
        """Returns the types of a trace; `standby` names the one of standby jobs. Of jobs from a
        file these are all of the table: nobody knows which of them will come."""
        places = types.match(trace)
        known = {*range(len(types.names))}
        if trace.rates is not None:
            known = {*np.unique(places).tolist()}
            known |= {types.place(name) for name in trace.rates if name in types.names}
        some = np.array(sorted(known), np.int64)
        return cls([types[at] for at in some.tolist()], np.searchsorted(some, places),
                   None if standby is None else _standby(types, standby))  # fmt: skip


def _standby(types: Types, name: str) -> JobType:
    if name not in types.names:
        raise Refused(f"market.standby = {name}: no type of {types.name}, which has "
                      f"{', '.join(types.names)}")  # fmt: skip
    found = types[types.place(name)]
    if found.shortest_s is None:
        raise Refused(f"market.standby = {name}: its row in {types.name} has no time_min_s, which "
                      "says how long a standby job takes")  # fmt: skip
    return found


def floor_arrays(
    kinds: Kinds,
    run: npt.NDArray[Any],
    widths: Whole,
    submit: Whole,
    nodes: int,
    idle_w: float,
    given: Sequence[float] = (),
    waits_w: float = np.inf,
) -> dict[str, Any]:
    """Returns the arrays of `policies.power.floor`, for an idle machine with so many nodes. How
    long jobs `run` without a cap, and when they `submit`, are ticks; standby jobs, of which only
    job runs have any, take theirs in us. A node whose job only waits draws `waits_w`."""
    jobs, count = len(run), len(kinds.rows)
    spare = 0
    every = [*kinds.rows]
    if kinds.standby is not None:
        spare = nodes // (kinds.standby.nodes or 1)
        every.append(kinds.standby)
    table = np.zeros((len(every), len(f.KIND)))
    table[:, f.MOST_W] = [it.most_w for it in every]
    table[:, f.LOW_W] = [min(it.least_w, it.most_w) for it in every]
    table[:, f.SLOWDOWN] = [it.slowdown for it in every]
    table[:, f.THRESHOLD] = [it.threshold for it in every]
    table[:, f.WATTS] = table[:, f.MOST_W]
    table[:, [f.WANTED, f.RATIO, f.PACE, f.BEFORE]] = 1.0
    tallies = np.zeros((len(every), len(f.TALLY)), np.int64)
    tallies[:, f.ENDS] = NEVER
    tallies[:, [f.HEAD, f.TAIL]] = -1
    rows = np.full((jobs + spare, len(f.OF_ROW)), -1)
    marks = np.zeros((jobs + spare, len(f.MARK)))
    marks[:, f.LEFT] = -1.0
    rows[:jobs, f.OF], rows[:jobs, f.WIDTH], rows[:jobs, f.SUBMIT] = kinds.of_job, widths, submit
    marks[:jobs, f.RUN] = run
    tallies[:, f.HEAP] = _heaps(kinds.of_job, widths, nodes, count, spare)[: len(every)]
    words = np.zeros(len(f.WORDS), np.int64)
    words[[f.FREE, f.JOBS, f.STANDBY_KIND, f.SPARE]] = nodes, jobs, -1, -1
    if kinds.standby is not None:
        words[f.STANDBY_KIND], words[f.SPARE] = count, jobs
        tallies[count, [f.STANDBY, f.HEAD]] = 1, jobs if spare else -1
        rows[jobs:, f.OF], rows[jobs:, f.WIDTH] = count, kinds.standby.nodes or 1
        rows[jobs:, f.LINK] = [*range(jobs + 1, jobs + spare), -1][:spare]
        marks[jobs:, f.RUN] = round((kinds.standby.shortest_s or 0.0) * SECOND)
    sums = np.zeros(len(f.SUM))
    sums[[f.IDLE_W, f.ALL, f.WAITS_W]] = idle_w, nodes, waits_w
    return {
        "floor": words, "sums": sums, "kinds": table, "tallies": tallies, "rows": rows,
        "progress": marks, "tops": np.zeros(int(_size(kinds.of_job, widths, nodes, count, spare)),
                                         np.int64),
        "paused": np.zeros(nodes, np.int64), "moves": np.zeros((3, nodes), np.int64),
        "given": np.array(given, np.float64),
    }  # fmt: skip


def jobs_there(
    state: Any, running: Whole, waiting: Whole, run: npt.NDArray[Any], time: int
) -> JobsThere:
    """Returns the jobs on a floor as a bidding policy sees them. `run` is how long each, first
    those that run and then those that wait, is expected to take without a cap."""
    rows, left = np.concatenate([running, waiting]), run.astype(float)
    done = state.progress[running, f.RUN] - work_left(state, running, time)
    left[: len(running)] = np.maximum(1.0, left[: len(running)] - done)
    longer = time - state.rows[rows, f.SUBMIT] + left - run
    return JobsThere(
        state.rows[rows, f.OF], state.rows[rows, f.WIDTH], np.arange(len(rows)) < len(running),
        np.maximum(0.0, longer) / np.maximum(run, f.SHORTEST),
    )  # fmt: skip


def work_left(state: Any, rows: Whole, time: int) -> npt.NDArray[np.float64]:
    """Returns how long jobs that hold nodes would go on without a cap, in ticks: as
    `policies.power.floor.work_left`, for many. `state` has the arrays of a floor by their names."""
    of, marks = state.rows[rows, f.OF], state.progress[rows]
    kinds, since = state.kinds[of], state.tallies[of, f.SINCE]
    clock = kinds[:, f.CLOCK] + (time - since) / kinds[:, f.PACE]
    halted = marks[:, f.LEFT] >= 0.0
    left: npt.NDArray[np.float64] = np.maximum(0.0, marks[:, f.FINISH] - clock)
    return np.where(halted, marks[:, f.LEFT], left)


def _room(of_job: Whole, widths: Whole, nodes: int, count: int, spare: int) -> Whole:
    """[type]: how many of its jobs can run at a time, at most."""
    found = np.bincount(of_job, minlength=count)[:count]
    narrow = np.full(count, nodes)
    np.minimum.at(narrow, of_job, widths)
    return np.append(np.minimum(found, nodes // np.maximum(narrow, 1)), spare)


def _heaps(of_job: Whole, widths: Whole, nodes: int, count: int, spare: int) -> Whole:
    return np.cumsum(np.append(0, _room(of_job, widths, nodes, count, spare)))[:-1]


def _size(of_job: Whole, widths: Whole, nodes: int, count: int, spare: int) -> int:
    return int(_room(of_job, widths, nodes, count, spare).sum())


NO_FLOOR: Mapping[str, Any] = {
    "floor": np.zeros(len(f.WORDS), np.int64), "sums": np.zeros(len(f.SUM)),
    "kinds": np.zeros((0, len(f.KIND))), "tallies": np.zeros((0, len(f.TALLY)), np.int64),
    "rows": np.zeros((0, len(f.OF_ROW)), np.int64), "progress": np.zeros((0, len(f.MARK))),
    "tops": np.zeros(0, np.int64), "paused": np.zeros(0, np.int64),
    "moves": np.zeros((3, 0), np.int64), "given": np.zeros(0),
}  # fmt: skip
"""The arrays of a machine that is not regulated by type."""
