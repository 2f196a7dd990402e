"""Hours in which bids are tried, of a machine that is regulated by type.

Such an hour begins with what is known when a bid is due: the jobs that run and wait, each with the
run time of its type or, where its table has none, as long as its user said. Jobs of each type come
as often as is known of a model, or as they have come so far. The signal of hour 0 is that of the
hour that has passed; where none has passed, and in other hours, it is made. Each of them is
simulated without the engine, by what handles the events of a run (`odonata.cluster.regulation`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from odonata.cluster import layout as w
from odonata.cluster.layout import State
from odonata.cluster.metrics import running_rows, waiting_rows
from odonata.cluster.regulation import begin_now, hour, judge_now
from odonata.jobs.floors import Kinds, floor_arrays, jobs_there, work_left
from odonata.jobs.schedule import RUNNING, WAITING
from odonata.jobs.series import Steps
from odonata.jobs.series_text import SYNTHETIC
from odonata.jobs.signal import synthetic
from policies.power import floor as f
from policies.power.steering import given_of
from policies.scheduling.desk import NEVER
from policies.views import Bid, JobKind, JobsThere, Trial

if TYPE_CHECKING:
    from odonata.cluster.model import Cluster

Whole = npt.NDArray[np.int64]
SECOND = 10**6
HOUR_US = 3600 * SECOND
TRIED = 0x7B1D
"""Part of the key of the random numbers of hours that are tried."""
MOST_HOURS = 512
"""Hours that are kept, for the next bid; each is half a megabyte, or more on a large machine."""
MUTABLE = ("ctl", "meter", "floor", "sums", "kinds", "tallies", "tops", "paused", "market")
"""The arrays that an hour changes, and that the next one has to find as they were."""
BY_ROW = ("rows", "progress")


class Made(NamedTuple):
    """An hour that bids are tried in: its state, and how that was at the beginning. `fresh` are
    whole arrays, `ends` the rows of the jobs that are there at the beginning and those of standby
    jobs: the rows of jobs that come are set when they do. `place` says where what is found of these
    is written, type by type, and `bounds` where each type's begins."""

    state: State
    fresh: Mapping[str, Any]
    ends: Mapping[str, tuple[Any, Any]]
    jobs: Any
    place: Whole
    bounds: Whole

    def by_type(self, column: npt.NDArray[np.float64], names: Sequence[str]) -> dict[str, Any]:
        """Returns the numbers of a column that there are, by type."""
        parts = np.split(column, self.bounds)
        return {name: part[~np.isnan(part)] for name, part in zip(names, parts, strict=True)}


class Coming(NamedTuple):
    """The jobs of an hour: places of their types, nodes, run times and submissions in ticks. Those
    that are there come first: `running` of them run, with so much of their work left; `halted` of
    these are suspended."""

    kind: Whole
    width: Whole
    run: npt.NDArray[np.float64]
    submit: Whole
    left: npt.NDArray[np.float64]
    halted: Whole


def known_types(model: Cluster, state: State, time: int, length: int) -> tuple[JobKind, ...]:
    """Returns what is known of the types of jobs when a bid is due."""
    kinds = model.types
    if kinds is None:
        return ()
    seen = kinds.of_job[: state.ctl[w.NEXT]]
    count = np.bincount(seen, minlength=len(kinds.rows)).astype(float)
    nodes = np.bincount(seen, state.jobs[: len(seen), w.NODES], len(kinds.rows))
    asked = state.jobs[: len(seen), w.REQUESTED]
    asked = np.where(asked < NEVER, asked, length)
    asked_sum = np.bincount(seen, asked, len(kinds.rows))
    rates, found = model.trace.rates, []
    for at, row in enumerate(kinds.rows):
        some = max(1.0, count[at])
        made = rates is not None and row.name in rates  # else jobs have nodes and times
        time_us, width = asked_sum[at] / some, nodes[at] / some
        come = count[at] * length / time if time else 0.0
        if rates is not None and made:
            come = rates[row.name] * length / HOUR_US
            time_us = time_us if row.shortest_s is None else row.shortest_s * SECOND
            width = width if row.nodes is None else float(row.nodes)
        holds = np.isin(state.jobs[: len(seen), w.STATUS], (WAITING, RUNNING)) & (seen == at)
        found.append(JobKind(
            row.name, float(width), float(time_us), row.most_w, min(row.least_w, row.most_w),
            row.slowdown, row.threshold, row.delay_rate,
            come * HOUR_US / length, float(state.jobs[: len(seen), w.NODES][holds].sum()),
        ))  # fmt: skip
    return tuple(found)


def times_known(model: Cluster, state: State, rows: Whole, hour: int) -> npt.NDArray[np.float64]:
    """Returns how long jobs take, in ticks, as far as anybody knows: an hour, if nobody does."""
    kinds, jobs = model.types, state.jobs
    assert kinds is not None
    rates = model.trace.rates or {}  # else jobs have times of their own
    stated = np.array([it.shortest_s * SECOND if it.shortest_s and it.name in rates else np.nan
                       for it in kinds.rows])[kinds.of_job[rows]]  # fmt: skip
    asked = jobs[rows, w.REQUESTED].astype(float)
    asked = np.where(asked < NEVER, asked, hour)
    return np.maximum(1.0, np.where(np.isnan(stated), asked, np.round(stated)))


def there_now(model: Cluster, state: State, time: int, hour: int) -> Coming:
    """Returns the jobs that run and wait, with submissions before now below 0."""
    kinds = model.types
    assert kinds is not None
    running, waiting = running_rows(state), waiting_rows(state)
    rows = np.concatenate([running, waiting])
    run, marks = times_known(model, state, rows, hour), state.progress[running]
    halted = marks[:, f.LEFT] >= 0.0
    done = marks[:, f.RUN] - work_left(state, running, time)
    left = np.maximum(1.0, run[: len(running)] - done)
    return Coming(kinds.of_job[rows], state.jobs[rows, w.NODES], run,
                  state.jobs[rows, w.SUBMIT] - time, left, halted.astype(np.int64))  # fmt: skip


def jobs_known(model: Cluster, state: State, time: int, hour: int) -> JobsThere | None:
    """Returns the jobs that run and wait as a bidding policy sees them; None where they have no
    types."""
    if model.types is None or not len(state.progress):
        return None
    running, waiting = running_rows(state), waiting_rows(state)
    run = times_known(model, state, np.concatenate([running, waiting]), hour)
    return jobs_there(state, running, waiting, run, time)


class Hours:
    """The hours in which bids are tried that are due at a moment, each made when it is first asked
    for."""

    def __init__(
        self,
        model: Cluster,
        state: State,
        time: int,
        hour: int,
        past: Steps | None,
        span: int = 0,
        since: int = 0,
    ) -> None:
        """`span` is how long they are, if that is not an hour; `since` from when on they count."""
        assert model.types is not None
        self.time, self._model, self._state, self._hour_long = time, model, state, hour
        self._length, self._since = span or hour, since
        self._past, self._made = past, dict[int, Made]()
        self._kinds: Kinds = model.types
        self._types = known_types(model, state, time, hour)
        self._there = there_now(model, state, time, hour)
        self._run: Any = None

    # -- what is there, and what comes

    def _standby(self) -> tuple[npt.NDArray[np.float64], Whole]:
        """Returns what is left of the work of each standby job that runs, and whether it is
        suspended, in the order in which they started."""
        state = self._state
        kind = int(state.floor[f.STANDBY_KIND])
        if kind < 0:
            return np.zeros(0), np.zeros(0, np.int64)
        tally = state.tallies[kind]
        paused = state.paused[: state.floor[f.PAUSED]]
        rows = np.concatenate([state.tops[tally[f.HEAP] :][: tally[f.RUNNING]],
                               paused[state.rows[paused, f.OF] == kind]])  # fmt: skip
        rows = rows[np.argsort(state.progress[rows, f.SERIAL], kind="stable")]
        left = np.maximum(1.0, work_left(state, rows, self.time))
        return left, (state.progress[rows, f.LEFT] >= 0.0).astype(np.int64)

    def _key(self, number: int, name: str) -> list[int]:
        """Returns the key of random numbers of an hour, for a purpose."""
        said = f"{TRIED} {self.time} {number} {name}".encode()
        return [self._model.seed, int.from_bytes(blake2b(said, digest_size=7).digest(), "big")]

    def _arrivals(self, number: int) -> Coming:
        """Returns the jobs that come in an hour: of each type at random times."""
        model, kinds, length = self._model, self._kinds, self._length
        seen = int(self._state.ctl[w.NEXT])
        parts = []
        for at, known in enumerate(self._types):
            rng = np.random.Generator(np.random.Philox(key=self._key(number, known.name)))
            count = int(rng.poisson(known.arrivals * length / HOUR_US))
            submit = np.sort(rng.integers(0, length, count))
            width = np.full(count, max(1, round(known.nodes)))
            run = np.full(count, np.round(known.time))
            like = np.flatnonzero(kinds.of_job[:seen] == at)
            own = known.name not in (model.trace.rates or {})  # sizes, of a trace
            if (own or kinds.rows[at].nodes is None) and len(like):  # as jobs that came so far
                some = like[rng.integers(0, len(like), count)]
                run = times_known(model, self._state, some, self._hour_long)
                width = self._state.jobs[some, w.NODES]
            parts.append((np.full(count, at), np.minimum(width, model.nodes),
                          np.maximum(1.0, run), submit))  # fmt: skip
        kind, width, run, submit = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.argsort(submit, kind="stable")
        return Coming(kind[order], width[order], run[order], submit[order], np.zeros(0),
                      np.zeros(0, np.int64))  # fmt: skip

    def _signal(self, number: int) -> tuple[Whole, npt.NDArray[np.float64]]:
        """Returns the signal of an hour."""
        if number == 0 and self._past is not None and self._model.market is not None:
            return self._past.times.copy(), self._past.values.copy()
        how = self._model.market
        assert how is not None
        deviation = how.signal_deviation
        if how.signal != SYNTHETIC and self._past is not None:
            deviation = min(0.95, max(0.05, float(np.std(self._past.values))))
        step = how.signal_interval_ps // w.TICK_PS
        count = -(-self._length // step)
        seed = self._key(number, "")[1] >> 8
        memory = how.signal_slow_memory_ps * 1e-12, how.signal_fast_memory_ps * 1e-12
        values = synthetic(seed, count, step * 1e-6, deviation, memory)
        return np.arange(count) * step, values

    # -- an hour

    def _hour(self, number: int) -> Made:
        """Returns an hour at its beginning."""
        made = self._made.get(number)
        if made is not None:
            return made
        if len(self._made) >= MOST_HOURS:
            del self._made[next(iter(self._made))]
        state, model, there = self._state, self._model, self._there
        come = self._arrivals(number)
        kind, width, run, submit = (
            np.concatenate([old, new]) for old, new in zip(there[:4], come[:4], strict=True)
        )
        policy = model.power_policy
        assert policy is not None
        given = [float(value) for value in given_of(policy)]
        floor = floor_arrays(self._kinds._replace(of_job=kind), run, width, submit, model.nodes,
                             float(state.meter[w.IDLE_W]), given)  # fmt: skip
        jobs = np.zeros((len(kind), len(w.JOB)), np.int64)
        jobs[:, w.NODES], jobs[:, w.SUBMIT], jobs[:, [w.START, w.OVER]] = width, submit, -1
        ctl, meter = np.zeros_like(state.ctl), state.meter.copy()
        ctl[[w.ALL, w.FREE]] = model.nodes
        ctl[w.INTERVAL] = state.ctl[w.INTERVAL]
        meter[[w.IDLE_J, w.JOBS_J, w.LAST_J]] = 0.0
        times, values = self._signal(number)
        begun = state._replace(
            ctl=ctl, jobs=jobs, meter=meter, market=np.zeros_like(state.market), signal=values,
            signal_times=times, work=np.zeros(len(kind)), notes=state.notes[:0],
            energy=np.zeros((len(kind), len(w.ENERGY))),
            stretched=np.zeros((len(kind), len(w.STRETCHED))),
            readings=np.zeros((self._length // ctl[w.INTERVAL] + 2, w.READING_WORDS), np.int64),
            **floor,
        )  # fmt: skip
        begin_now(begun, len(there.run), there.left, there.halted, *self._standby())
        here = len(there.run)
        first = int(np.searchsorted(come.submit, self._since))  # of those that count
        order = np.argsort(come.kind[first:], kind="stable")
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        found = self._made[number] = Made(
            begun, {name: getattr(begun, name).copy() for name in MUTABLE},
            {name: (getattr(begun, name)[:here].copy(), getattr(begun, name)[len(kind) :].copy())
             for name in BY_ROW}, jobs[:here].copy(), place,
            np.searchsorted(come.kind[first:][order], np.arange(1, len(self._kinds.rows))),
        )  # fmt: skip
        return found

    def tried(self, bid: Bid, number: int, give_up: float) -> Trial:
        """Returns what a bid comes to in an hour, as far as that counts, which is cut short where
        `give_up` times as many intervals are bad as may be; 0: never."""
        made = self._hour(number)
        state, here = made.state, len(self._there.run)
        counted = len(state.jobs) - len(made.place)
        for name, array in made.fresh.items():
            getattr(state, name)[...] = array
        for name, (first, last) in made.ends.items():
            getattr(state, name)[:here] = first
            getattr(state, name)[len(state.jobs) :] = last
        state.jobs[:here] = made.jobs
        state.market[[w.AVERAGE_W, w.RESERVE_W, w.UNTIL]] = (
            bid.average_w, bid.reserve_w, self._length
        )  # fmt: skip
        names = self._kinds.names
        state.kinds[: len(names), f.WEIGHT] = [bid.weights.get(name, 0.0) for name in names]
        interval, how = int(state.ctl[w.INTERVAL]), self._model.market
        assert how is not None
        assert self._model.regulates is not None
        count, before = (self._length - self._since) // interval, self._since // interval
        most_bad = int(np.ceil(float(give_up) * how.share * count)) - 1 if give_up else count
        measured = hour(self._model.regulates)(state, self._since, self._length, most_bad,
                                               how.limit)  # fmt: skip
        readings = state.readings[before:measured]
        power_w, target_w = (readings[:, word].copy().view(np.float64) for word in (1, 4))
        late, waits = np.empty((2, len(made.place)))
        started = judge_now(state, counted, measured * interval, made.place, late, waits)
        return Trial(
            power_w, target_w, bid.reserve_w, int(started), int(state.ctl[w.DONE]),
            made.by_type(late, names), made.by_type(waits, names), (measured - before) / count,
        )  # fmt: skip
