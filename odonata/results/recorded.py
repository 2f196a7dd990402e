"""Simulated starts beside recorded ones: does a discipline make the jobs of a trace wait as long as
they did on the real machine?

The recorded schedule is one like any other, so all measures and figures apply to it. Waits are
compared job by job, over the jobs of which a wait is recorded. Every error is simulated less
recorded. Intervals are those of the moving-block bootstrap over weeks of submission
(`odonata.results.statistics.moving_block`): a week that was unlike the others is one observation,
and not a thousand.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from odonata.jobs.schedule import FINISHED, Schedule
from odonata.results.schedule_measures import size_classes
from odonata.results.schedule_series import binned, steps, until_us
from odonata.results.statistics import Interval, moving_block
from odonata.traces.trace import SECOND, UNKNOWN, Trace, Whole
from odonata.traces.windows import WEEK_US
from pdes.errors import Refused

Floats = npt.NDArray[np.float64]
NAME = "recorded"
NO_WAIT = "no wait is recorded"
PARTS = (0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
"""The quantiles of waits that are compared."""
LEAST_WAIT_S = 1.0
"""Waits are compared by their logarithms where they differ by orders of magnitude; shorter ones
count as this."""
HOUR_US = 3600 * SECOND


@dataclass(frozen=True)
class Beside:
    """A wait of the recorded schedule and of the simulated one, in s, and by how much the latter is
    longer."""

    name: str
    jobs: int
    recorded_s: float
    simulated_s: float
    error_s: Interval | None = None
    """None where there are no repetitions, as of a single week."""


@dataclass(frozen=True)
class Reproduction:
    """How well a simulated schedule reproduces the recorded one."""

    jobs: int
    """Those whose waits are compared."""
    weeks: int
    mean: Beside
    ratio: Interval
    """The simulated mean wait over the recorded one."""
    ks: Interval
    """The Kolmogorov-Smirnov distance of the distributions of waits: the largest difference between
    the parts of jobs that wait for at most some time. 0: they are the same."""
    correlation: Interval
    """The correlation of the logarithms of waits, job by job (those below 1 s count as 1 s)."""
    rank_correlation: Interval
    """Spearman's, of waits, job by job."""
    absolute_error_s: Interval
    """The mean over jobs of the difference, whatever its sign."""
    quantiles: tuple[Beside, ...]
    by_size: tuple[Beside, ...]
    by_week: tuple[Beside, ...]
    recorded_utilisation: float
    simulated_utilisation: float
    utilisation_error: float
    """The mean difference of the parts of nodes in use, hour by hour, whatever its sign."""

    def facts(self) -> dict[str, Any]:
        """Returns all of it for JSON; what is not known is null."""
        return {one.name: _known(getattr(self, one.name)) for one in fields(self)}


def _known(value: Any) -> Any:
    if isinstance(value, Interval):
        return {name: None if math.isnan(each) else each for name, each in value._asdict().items()}
    if isinstance(value, Beside):
        return asdict(value) | {"error_s": _known(value.error_s)}
    return [*map(_known, value)] if isinstance(value, tuple) else value


def recorded(trace: Trace, nodes: int) -> Schedule:
    """Returns the schedule that a trace tells of, over the jobs of which it tells a wait."""
    known = trace.wait_us != UNKNOWN
    if not known.any():
        raise Refused(f"{trace.name}: no wait times are recorded, so there is nothing to compare "
                      "with: SWF has them in field 3, sacct in Start, the Karelian CSV in delays"
                      )  # fmt: skip
    trace = trace.where(known, trace.account.but({NO_WAIT: int((~known).sum())}))
    start = trace.submit_us + trace.wait_us
    end = start + trace.run_us
    order = np.argsort(start, kind="stable")
    state = np.full(len(trace), FINISHED, np.int8)
    return Schedule(
        trace, nodes, int(end.max()), state, start, end, order, start[order], end[order]
    )


def reproduction(
    simulated: Schedule, *, warmup_us: int = 0, cooldown_us: int = 0, confidence: float = 0.95
) -> Reproduction:
    """Returns how well a schedule reproduces the waits that its trace has recorded, but for the
    jobs that are submitted in the first `warmup_us` or the last `cooldown_us`, and for those that
    have not begun."""
    real, trace = recorded(simulated.trace, simulated.nodes), simulated.trace
    begin, end = int(trace.submit_us[0]) + warmup_us, int(trace.submit_us[-1]) - cooldown_us
    at = np.flatnonzero((trace.wait_us != UNKNOWN) & (simulated.start_us >= 0)
                        & (trace.submit_us >= begin) & (trace.submit_us <= end))  # fmt: skip
    if not len(at):
        raise Refused(f"{trace.name}: no job with a recorded wait is left to be compared; its jobs "
                      f"are submitted within {trace.span_us / SECOND:,.0f} s (--warmup, --cooldown)"
                      )  # fmt: skip
    waits = np.stack([trace.wait_us[at], simulated.start_us[at] - trace.submit_us[at]]) / SECOND
    week = (trace.submit_us[at] - begin) // WEEK_US
    weeks = int(week[-1]) + 1
    names, sizes = size_classes(simulated)
    compared = _Compared(waits, week, sizes[at], len(names))
    every = moving_block(compared.figures, weeks, confidence)
    mean, ratio, absolute, ks, correlation, ranks, *rest = every
    of_parts, of_sizes = rest[: len(PARTS)], rest[len(PARTS) :]
    first, second = waits.mean(axis=1).tolist()
    quantiles = (_weighted_quantiles(it, np.ones(len(at))).tolist() for it in compared.sorted)
    used, error = _in_use((real, simulated), begin, min(end, until_us(simulated)))
    return Reproduction(
        len(at), weeks, Beside("mean", len(at), first, second, mean), ratio, ks, correlation, ranks,
        absolute,
        tuple(Beside(f"{part:.0%}", len(at), real_s, made_s, it)
              for part, real_s, made_s, it in zip(PARTS, *quantiles, of_parts, strict=True)),
        compared.by(names, sizes[at], of_sizes),
        compared.by([f"{number + 1}" for number in range(weeks)], week),
        *used, error,
    )  # fmt: skip


class _Compared:
    """Waits [recorded or simulated, job] whose figures are computed for any number of repetitions
    of each week: what takes long is done once."""

    def __init__(self, waits: Floats, week: Whole, size: Whole, sizes: int) -> None:
        self.waits, self.week, self.size, self.sizes = waits, week, size, sizes
        self.error = waits[1] - waits[0]
        self.orders = np.argsort(waits, axis=1, kind="stable")
        self.sorted = np.take_along_axis(waits, self.orders, axis=1)
        both = np.unique(waits)
        self.below = np.stack([np.searchsorted(of, both, "right") for of in self.sorted])
        self.logs = np.log(np.maximum(waits, LEAST_WAIT_S))
        self.ranks = np.stack([_ranks(of) for of in waits])

    def figures(self, times: Whole) -> Floats:
        """Returns all that has an interval, where each week counts so many times."""
        weight = times[self.week].astype(np.float64)
        total = max(1.0, float(weight.sum()))
        mean = self.waits @ weight / total
        summed = np.concatenate([np.zeros((2, 1)), np.cumsum(weight[self.orders], axis=1)], axis=1)
        parts = np.take_along_axis(summed, self.below, axis=1) / total
        quantiles = [_weighted_quantiles(of, weight[order])
                     for of, order in zip(self.sorted, self.orders, strict=True)]  # fmt: skip
        count = np.bincount(self.size, weight, self.sizes)
        apart = np.bincount(self.size, weight * self.error, self.sizes)
        return np.concatenate([
            [mean[1] - mean[0], mean[1] / mean[0] if mean[0] else math.nan,
             np.abs(self.error) @ weight / total, np.abs(parts[1] - parts[0]).max(),
             _correlation(self.logs, weight), _correlation(self.ranks, weight)],
            quantiles[1] - quantiles[0],
            np.divide(apart, count, np.full(self.sizes, math.nan), where=count > 0),
        ])  # fmt: skip

    def by(
        self, names: Sequence[str], classes: Whole, errors: Sequence[Interval] | None = None
    ) -> tuple[Beside, ...]:
        """Returns the mean waits of classes of jobs; those without jobs are left out."""
        count = np.bincount(classes, minlength=len(names))
        real, made = (np.bincount(classes, of, len(names)) / np.maximum(count, 1)
                      for of in self.waits)  # fmt: skip
        return tuple(
            Beside(name, jobs, real_s, made_s, errors[i] if errors else None)
            for i, (name, jobs, real_s, made_s) in enumerate(
                zip(names, count.tolist(), real.tolist(), made.tolist(), strict=True)) if jobs
        )  # fmt: skip


def _ranks(values: Floats) -> Floats:
    """Returns the rank of each value; equal values have their mean rank."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return ranks


def _correlation(both: Floats, weight: Floats) -> float:
    total = weight.sum()
    if not total:
        return math.nan
    apart = both - (both @ weight / total)[:, None]
    (a, c), (_, b) = (apart * weight) @ apart.T
    return float(c / math.sqrt(a * b)) if a > 0 and b > 0 else math.nan


def _weighted_quantiles(ascending: Floats, weight: Floats) -> Floats:
    """Returns the PARTS-quantiles: the least values that so large a part of the weight is at or
    below."""
    summed = np.cumsum(weight)
    at = np.searchsorted(summed, np.array(PARTS) * summed[-1] * (1 - 1e-12))
    found: Floats = ascending[np.minimum(at, len(ascending) - 1)]
    return found


def _in_use(
    schedules: tuple[Schedule, Schedule], begin: int, end: int
) -> tuple[tuple[float, float], float]:
    """Returns the parts of the nodes in use between two times, and the mean difference by hour."""
    edges = np.arange(begin, max(end, begin + HOUR_US) + 1, HOUR_US)
    used = []
    for schedule in schedules:
        series = steps(schedule)
        late = series.time_us[0] > begin  # until then nothing was in use
        times = np.append(begin, series.time_us) if late else series.time_us
        busy = np.append(0, series.busy) if late else series.busy
        used.append(binned(times, busy, series.until_us, edges)[0] / schedule.nodes)
    first, second = (float(of.mean()) for of in used)
    return (first, second), float(np.abs(used[1] - used[0]).mean())
