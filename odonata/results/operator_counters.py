"""The counters of a run as an operator reads them: at every sample, router by router, as LDMS reads
those of a Cray Aries machine.

A *network tile* is a router port to another router, electrical where the link is local and optical
where it is global; a *processor tile* is a port to a node. N_FLIT of a network tile are the flits
that arrived over its link: those that the port at the other end was granted. Stalls are counted in
cycles, and a cycle is the time of a flit on the tile's link. There are two kinds of them:

* `all`: any time in which the first packet could not move, whatever for. INQ_PRF_ROWBUS_STALL_CNT
  of Aries counts that at the input queue of a tile, and so this kind is the default. Where routers
  have crossbars it is the time in which the first packet of the tile's own input queue waited for
  the crossbar, for room or for ejection (`switch_ps`, `room_ps`, `eject_ps`). Ideal routers have
  no input queues: a packet waits at the port that it leaves by, and nobody knows by which tile it
  came. So it counts at the tile that it waits to enter (`stall_ps` and `wait_ps` of the port at the
  other end), which for a busy link is one router further on than on Aries.
* `credit`: the part of the time in which there was no room for it. With ideal routers it is the
  time in which the port at the other end had a packet and a free link, but no credit for this
  tile's buffer (`stall_ps`). With crossbars packets also lack room behind the tile, so that the
  tile's own `room_ps` and `eject_ps` are added. What lacks credit before the tile waits in an
  output buffer there, not in this input queue; so with output buffers `credit` is not a part of
  `all`, and may be more.

Both are summed over virtual channels: a tile may stall for longer than time goes on.

P_REQ_FLIT of a processor tile are the flits that a node was sent. Its stalls are the time in which
a packet for the node was ready and the node's ejection buffer was full, in flits of its link:
`stall_ps` of the port; where a crossbar has no output buffers, packets wait for that in input
queues, and `eject_ps` of all inputs of the router is what there is. Without `nic.ejection` it is 0.

The stall-to-flit ratio of a router in an interval is that of Zhang (2021), section 3.5.2: the mean
over its network tiles of the ratio of each, not the ratio of the sums. A tile at which no flit
arrived has no ratio and counts as 0, however long it stalled. A tile is left out of an interval in
which it had fewer stalls per second than a threshold; where all tiles are left out, the ratio is 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from odonata.jobs.record import JobRecord
from odonata.results.derived import CLASSES, pieces, threshold_of

if TYPE_CHECKING:
    from odonata.results.run import Run

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Threshold = str | float | Mapping[str, float]

KINDS = ("all", "credit")
"""The kinds of stall, the Aries-like one first."""
MATERIALS = {"local": "electrical", "global": "optical"}
"""What the links of a class are made of, as Aries has them."""
PIECE = 1 << 18
"""How many samples of tiles are worked on at a time."""


@dataclass(frozen=True)
class Counters:
    """What was added to every counter in each interval, by interval, router and network tile (the
    ports of a router but those to nodes, in their order). `cumulative` are the counters themselves,
    `per_second` their rates."""

    time_ps: Ints
    """When they were read; each interval ends then."""
    interval_ps: Ints
    lit: npt.NDArray[np.bool_]
    """By router and tile: whether it has a cable. Without one all counters are 0, and it is not a
    tile."""
    classes: npt.NDArray[np.str_]
    """By tile: one of CLASSES, those of a class together."""
    flit_ps: Floats
    """By tile: the length of a cycle, the same for all of a class."""
    node_flit_ps: float
    """The length of a cycle of a processor tile: the time of a flit on a link to a node."""
    n_flit: Ints
    all_stall_ps: Ints
    credit_stall_ps: Ints
    p_flit: Ints
    """By interval and node."""
    p_stall_ps: Ints
    """By interval and router: of all of its processor tiles."""

    def stall_ps(self, kind: str = "all") -> Ints:
        """Returns stalls of a kind, in ps."""
        if kind not in KINDS:
            raise ValueError(f"kind = {kind!r}: one of {', '.join(KINDS)}")
        return self.all_stall_ps if kind == "all" else self.credit_stall_ps

    def of_class(self, name: str) -> npt.NDArray[np.bool_]:
        """Returns which tiles, by router and tile, have a cable of this class."""
        return np.asarray(self.lit & (self.classes == name))

    def stalls(self, kind: str = "all", rows: slice = slice(None)) -> Floats:
        """Returns stalls in cycles, by interval (of these rows), router and tile."""
        return self.stall_ps(kind)[rows] / self.flit_ps

    def per_second(self, increase: Any, rows: slice = slice(None)) -> Floats:
        """Returns the rates of what was added in each interval (of these rows)."""
        seconds = self.interval_ps[rows] / 1e12
        rates: Floats = increase / seconds.reshape(-1, *[1] * (np.ndim(increase) - 1))
        return rates

    def class_flits(self, name: str) -> Ints:
        """Returns the flits of all tiles of a class, by interval and router."""
        return np.asarray(self.n_flit[:, :, self._tiles(name)].sum(axis=2))

    def class_stall_ps(self, name: str, kind: str = "all") -> Ints:
        """Returns the stalls of all tiles of a class in ps, by interval and router."""
        return np.asarray(self.stall_ps(kind)[:, :, self._tiles(name)].sum(axis=2))

    def cycle_ps(self, name: str) -> float:
        """Returns the length of a cycle of the tiles of a class, 1 where there are none."""
        tiles = self._tiles(name)
        return float(self.flit_ps[tiles.start]) if tiles.stop else 1.0

    def _tiles(self, name: str) -> slice:
        ours = np.flatnonzero(self.classes == name)
        return slice(int(ours[0]), int(ours[-1]) + 1) if len(ours) else slice(0, 0)

    def thresholds(self, threshold: Threshold = "median", kind: str = "all") -> dict[str, float]:
        """Returns the stalls per second below which a tile is left out of an interval, by class.
        The "median" is that of all tiles of the class and all intervals."""
        found = {}
        for name in CLASSES:
            ours = self.of_class(name)
            rates = np.zeros(0)
            if isinstance(threshold, str) and len(self.time_ps):
                cycle = np.broadcast_to(self.flit_ps, ours.shape)[ours]
                rates = self.per_second(self.stall_ps(kind)[:, ours] / cycle)
            found[name] = float(threshold_of(threshold, name, rates))
        return found

    def stall_to_flit(
        self, threshold: Threshold = "median", kind: str = "all", classes: Sequence[str] = CLASSES
    ) -> Floats:
        """Returns the ratio by interval and router, over the tiles of these classes."""
        least = self.thresholds(threshold, kind)
        bound = np.where(self.classes == CLASSES[0], *(least[name] for name in CLASSES))
        ours = self.lit & np.isin(self.classes, classes)
        found, each = np.zeros(self.n_flit.shape[:2]), np.ones(len(self.classes))
        step = max(1, PIECE // max(1, ours.size))
        for first in range(0, len(found), step):
            rows = slice(first, first + step)
            stalls, flits = self.stalls(kind, rows), self.n_flit[rows]
            kept = ours & (self.per_second(stalls, rows) >= bound)
            ratio = stalls / np.maximum(1, flits) * (kept & (flits > 0))
            found[rows] = ratio @ each / np.maximum(1, kept @ each)
        return found

    def over_time(self, values: Any) -> Floats:
        """Returns the mean over the run of what is known by interval, by their lengths."""
        if not len(self.time_ps):
            return np.zeros(np.shape(values)[1:])
        return np.asarray(np.average(values, axis=0, weights=self.interval_ps))


def cumulative(increase: Any) -> Any:
    """Returns a counter at every sample, of what was added in each interval. It was 0 at time 0."""
    return np.cumsum(increase, axis=0)


def counters_of(run: Run) -> Counters:
    """Returns what an operator would read of a run's counters; refused where ports were not
    recorded (`metrics.ports = false`)."""
    m, network = run.machine, run.network
    p, ends, ports = m.nodes, m.ends(), run.ports
    lit, far = ends >= 0, np.maximum(ends, 0)
    switched = network.switched
    shape = (len(run.time), *ends.shape)
    flits, every, credit = (np.zeros(shape, np.int64) for _ in range(3))
    p_flit = np.zeros((shape[0], m.n_routers, p), np.int64)
    p_stall = np.zeros(shape[:2], np.int64)
    for first, some in pieces(ports.flits):
        rows = slice(first, first + len(some))
        stall = ports.stall_ps[rows].data
        p_flit[rows] = some.data[:, :, :p]
        p_stall[rows] = stall[:, :, :p].sum(axis=2)
        flits[rows] = _arriving(some.data, far)
        credit[rows] = _arriving(stall, far)
        if switched:
            own = {
                name: run.inputs[name][rows].data for name in ("switch_ps", "room_ps", "eject_ps")
            }
            lacked = own["room_ps"][:, :, p:].astype(np.int64) + own["eject_ps"][:, :, p:]
            credit[rows] += lacked
            every[rows] = lacked + own["switch_ps"][:, :, p:]
            if network.ejection is not None and not network.buffered:
                p_stall[rows] += own["eject_ps"].sum(axis=2)
        else:
            every[rows] = credit[rows] + _arriving(ports.wait_ps[rows].data, far)
    if not lit.all():
        for values in (flits, every, credit):
            values *= lit
    rates = np.repeat([m.local.bandwidth, m.global_.bandwidth], [m.routers - 1, m.global_links])
    return Counters(
        run.time.data, run.interval.data, lit,
        np.repeat(np.array(CLASSES), [m.routers - 1, m.global_links]),
        network.flit_bytes * 1e12 / rates, network.flit_bytes * 1e12 / m.terminal.bandwidth,
        flits, every, credit, p_flit.reshape(shape[0], -1), p_stall,
    )  # fmt: skip


def _arriving(sent: Any, far: Any) -> Any:
    """Returns what the port at the other end counted, by interval, router and tile."""
    return np.take(sent.reshape(len(sent), -1), far, axis=1)


# -- by job


class JobCounters(NamedTuple):
    """What an operator reads about a job: means over its run, NaN where no sample has any of it."""

    stall_to_flit: float
    """The stall-to-flit ratio of a router: mean over the routers that have nodes of the job."""
    stall_to_flit_median: float
    """The median over the same routers, each with its mean over the job's run. Where it is far
    below the mean, few routers make up the mean."""
    stall_to_flit_largest: float
    """The largest of the same."""
    largest_router: int | None
    """The router that has the largest, the first of several; None where the ratio is NaN."""
    ntile_stalls_per_s: float
    """The stalls per second of all network tiles of a router: mean over the same routers."""
    ptile_stalls_per_s: float
    """The stalls per second of all processor tiles of a router, also of those whose nodes have
    other jobs: mean over the same routers."""
    ptile_flits_per_s: float
    """The flits that a node of the job was sent: mean over its nodes."""


def job_counters(
    run: Run, jobs: Sequence[int] | None = None, threshold: Threshold = "median",
    kind: str = "all", counters: Counters | None = None,
) -> list[JobCounters]:  # fmt: skip
    """Returns the counters of these jobs, by number, or of all. An interval that a job ran for only
    a part of counts for that part. `counters` are those of the run, where they are at hand."""
    seen = counters or counters_of(run)
    ratio = seen.stall_to_flit(threshold, kind)
    stalls = seen.per_second(
        sum(seen.class_stall_ps(name, kind) / seen.cycle_ps(name) for name in CLASSES)
    )
    refused = seen.per_second(seen.p_stall_ps / seen.node_flit_ps)
    found = []
    for number in range(len(run.job_records)) if jobs is None else jobs:
        record = run.job_records[number]
        labels = np.array(record.labels, np.int64)
        routers = np.unique(labels // run.machine.nodes)
        taken = seen.per_second(seen.p_flit[:, labels])
        mean, *rates = (
            mean_over_run(seen, record, values)
            for values in (ratio[:, routers], stalls[:, routers], refused[:, routers], taken)
        )
        found.append(JobCounters(mean, *_spread(seen, record, ratio, routers), *rates))
    return found


def _spread(
    seen: Counters, record: JobRecord, ratio: Floats, routers: Ints
) -> tuple[float, float, int | None]:
    """Returns the median and the largest of the ratios that these routers have over the job's run,
    and the router of the largest."""
    weights = _ran_ps(seen, record)
    if not len(routers) or not weights.any():
        return math.nan, math.nan, None
    each = np.average(ratio[:, routers], axis=0, weights=weights)
    first = int(np.argmax(each))
    return float(np.median(each)), float(each[first]), int(routers[first])


def job_stall_to_flit(
    run: Run, job: int, threshold: Threshold = "median", kind: str = "all",
    counters: Counters | None = None,
) -> float:  # fmt: skip
    """Returns the stall-to-flit ratio of a job: the mean over the routers that have nodes of it,
    and over its run. `job_counters` has those of many jobs at once."""
    return job_counters(run, [job], threshold, kind, counters)[0].stall_to_flit


def job_ntile_stalls_per_s(
    run: Run, job: int, kind: str = "all", counters: Counters | None = None
) -> float:
    return job_counters(run, [job], 0.0, kind, counters)[0].ntile_stalls_per_s


def job_ptile_stalls_per_s(run: Run, job: int, counters: Counters | None = None) -> float:
    return job_counters(run, [job], 0.0, "all", counters)[0].ptile_stalls_per_s


def job_ptile_flits_per_s(run: Run, job: int, counters: Counters | None = None) -> float:
    return job_counters(run, [job], 0.0, "all", counters)[0].ptile_flits_per_s


def mean_over_run(seen: Counters, record: JobRecord, values: Any) -> float:
    """Returns the mean over the columns, and over the intervals by how much of each the job ran;
    NaN where it ran in none."""
    weights = _ran_ps(seen, record)
    if not values.size or not weights.any():
        return math.nan
    return float(np.average(values.mean(axis=1), weights=weights))


def _ran_ps(seen: Counters, record: JobRecord) -> Ints:
    """Returns for how much of each interval the job ran."""
    if record.start_ps is None:
        return np.zeros(len(seen.time_ps), np.int64)
    end = seen.time_ps if record.end_ps is None else np.minimum(seen.time_ps, record.end_ps)
    begin = np.maximum(seen.time_ps - seen.interval_ps, record.start_ps)
    return np.asarray(np.maximum(0, end - begin))
