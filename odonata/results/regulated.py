"""Hours of regulation of several runs together, and the same hours without demand response.

Without it jobs start in order of arrival, whenever nodes are idle, and nobody is capped: the power
policy `none`, and no market. Both are points of one sweep, and `part_of` is what is kept of either.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from odonata.experiment.experiment import JobExperiment
from odonata.jobs.schedule import TO_COME, Schedule
from odonata.jobs.series import Steps
from odonata.results.market import G_PER_KG, HourFacts, Market, OfType, of_types
from odonata.results.market_measures import MarketMeasures, measures_of
from odonata.results.market_memory import Traded
from odonata.results.qualities import (
    CapLogs,
    JobTypes,
    Numbers,
    degradations,
    left_by_logs,
    waits_s,
)
from odonata.results.register import KWH
from odonata.traces.trace import SECOND, Whole
from pdes.clock import TICKS

WITHOUT = ("market=none", "power.policy=none", "trace.overrun=extend")
"""What is changed where there is no demand response."""
NO_CAPS = CapLogs(*(tuple(np.zeros(0, np.int64) for _ in range(count)) for count in (3, 3, 2)))  # type: ignore[arg-type]
"""The logs of a run in which nobody is capped."""


class Followed(NamedTuple):
    """What is kept of a run in a market: its hours, and what the work would still take that is left
    at its end."""

    market: Market
    left_kwh: float


class Plain(NamedTuple):
    """What is kept of a run without demand response: what became of its jobs until its end."""

    schedule: Schedule
    types: JobTypes
    nodes: int
    idle_w: float
    carbon: Steps | None
    until: int


class Without(NamedTuple):
    """A run without demand response: the degradation and the wait of each job, in s, the energy in
    each hour of the market, and what the work would still take that is left at the end; and the CO2
    of that energy."""

    quality: Numbers
    waits_s: Numbers
    energy_kwh: Numbers
    left_kwh: float
    carbon_kg: Numbers | None
    """None where no carbon intensity is given."""


class OneRun(NamedTuple):
    """A run with its seed, its digest, its hours, what the work would still take that is left at
    its end, and the same without demand response."""

    seed: int
    digest: str
    market: Market
    left_kwh: float
    without: Without


def one_run(seed: int, digest: str, followed: Followed, plain: Plain) -> OneRun:
    """Returns a run with the same without demand response."""
    market, left_kwh = followed
    return OneRun(seed, digest, market, left_kwh, without(plain, market.rules.hour_us))


class Beside(NamedTuple):
    """A type of jobs, with and without demand response."""

    regulated: OfType
    without: OfType


@dataclass(frozen=True, eq=False)
class Regulated:
    """Several runs in a market, which differ only in their seed."""

    runs: Sequence[OneRun]

    @cached_property
    def types(self) -> list[Beside]:
        """Returns how late the jobs of each type were over all runs."""
        types = self._types
        every = [self._of(types, runs) for runs in self._parts()]
        return [Beside(*pair) for pair in zip(*every, strict=True)]

    @property
    def _types(self) -> JobTypes:
        """Returns the types of all runs: those of the first, of which there may be more in others
        where a trace has no jobs of a type."""
        every = [one.market.types for one in self.runs if one.market.types is not None]
        return max(every, key=lambda types: len(types.names))

    def _parts(self) -> Iterator[list[tuple[Whole, Numbers, Numbers]]]:
        names = {name: at for at, name in enumerate(self._types.names)}
        of_job = []
        for one in self.runs:
            assert one.market.types is not None
            places = np.array([names[name] for name in one.market.types.names], np.int64)
            of_job.append(places[one.market.types.of_job])
        some = [one.market.judged for one in self.runs]
        yield [(of[its], _quality(one.market)[its], one.market.waits_s[its])
               for of, one, its in zip(of_job, self.runs, some, strict=True)]  # fmt: skip
        yield [(of[its], one.without.quality[its], one.without.waits_s[its])
               for of, one, its in zip(of_job, self.runs, some, strict=True)]  # fmt: skip

    def _of(
        self, types: JobTypes, runs: Sequence[tuple[Whole, Numbers, Numbers]]
    ) -> tuple[OfType, ...]:
        columns = (np.concatenate(column) for column in zip(*runs, strict=True))
        return of_types(types, self.runs[0].market.rules.qos, *columns)

    @cached_property
    def measures(self) -> MarketMeasures:
        """Returns what all hours came to."""
        hours = [one.market.judged_hours for one in self.runs]
        known = [one.market.standby_jobs for one in self.runs]
        standby = None
        warm = any(one.market.rules.warmup_us for one in self.runs)
        if not warm and all(it is not None for it in known):
            standby = tuple(sum(it[at] for it in known if it is not None) for at in (0, 1))
        return measures_of(hours, [it.regulated for it in self.types], standby)  # type: ignore[arg-type]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Returns all hours for JSON, each with the seed and the digest of its run, and whether
        it is judged."""
        return [{"seed": one.seed, "digest": one.digest,
                 "judged": at >= len(one.market.by_hour) - len(one.market.judged_hours), **row}
                for one in self.runs for at, row in enumerate(one.market.rows)]  # fmt: skip

    @property
    def energy_without_kwh(self) -> float:
        """Returns what the machine would have drawn in all runs without demand response."""
        return math.fsum(kwh for _, kwh in self._hours_without())

    @property
    def carbon_without_kg(self) -> float | None:
        """Returns the CO2 of that energy; None where no carbon intensity is given."""
        every = [one.without.carbon_kg for one in self.runs]
        if any(it is None for it in every):
            return None
        return math.fsum(kg for one, it in zip(self.runs, every, strict=True) if it is not None
                         for kg in self._judged(one, it))  # fmt: skip

    @property
    def left_kwh(self) -> float:
        """Returns what the work would still take, above what idle nodes draw, that is left at the
        end of all runs."""
        return math.fsum(one.left_kwh for one in self.runs)

    @property
    def left_without_kwh(self) -> float:
        """Returns the same without demand response."""
        return math.fsum(one.without.left_kwh for one in self.runs)

    @property
    def energy_price(self) -> float:
        """Returns the mean price of energy."""
        every = [hour for one in self.runs for hour in one.market.judged_hours]
        hours = math.fsum(hour.hours for hour in every)
        return math.fsum(hour.energy_price * hour.hours for hour in every) / hours

    @property
    def cost_without(self) -> float:
        """Returns what the energy would have cost without demand response: that of each hour at
        the mean price of the hour, as what is drawn in one without an offer."""
        return math.fsum(hour.energy_price * kwh for hour, kwh in self._hours_without())

    def _hours_without(self) -> Iterator[tuple[HourFacts, float]]:
        """Yields the hours that are judged, each with the energy that it takes without demand
        response."""
        for one in self.runs:
            kwh = self._judged(one, one.without.energy_kwh)
            yield from zip(one.market.judged_hours, kwh, strict=True)

    @staticmethod
    def _judged(one: OneRun, by_hour: Numbers) -> list[float]:
        """Returns a figure of the hours of a run for those that are judged, which are the last."""
        market = one.market
        found: list[float] = by_hour[len(market.by_hour) - len(market.judged_hours) :].tolist()
        return found

    @property
    def bill(self) -> float | None:
        """Returns by which part more is paid than without demand response, with the work that is
        left in the end at the mean price; None where nothing would have been paid, and with a
        warm-up, which leaves other work to the hours that are judged than without demand response.
        """
        cost, before = self.measures.cost, self._before
        if cost is None or not before > 0.0 or self.runs[0].market.rules.warmup_us:
            return None
        return (cost + self.energy_price * self.left_kwh) / before - 1.0

    @property
    def bill_standby(self) -> float | None:
        """Returns what standby jobs are of that, by the price of their energy: whoever has a use
        for their work may take it off."""
        cost, before = self.measures.cost_standby, self._before
        if cost is None or not before > 0.0 or self.runs[0].market.rules.warmup_us:
            return None
        return cost / before

    @property
    def _before(self) -> float:
        """Returns what would have been paid without demand response, for all work."""
        return self.cost_without + self.energy_price * self.left_without_kwh

    def of_types(self) -> dict[str, Mapping[str, Any]]:
        """Returns the types for JSON, each with what its jobs were like without demand response."""
        return {
            it.regulated.type: it.regulated._asdict()
            | {"without": {name: getattr(it.without, name) for name in
                           ("late_share", "q90", "mean_q", "mean_wait_s")}}
            for it in self.types
        }  # fmt: skip


def _quality(market: Market) -> Numbers:
    assert market.quality is not None
    return market.quality


def part_of(made: JobExperiment, found: Traded) -> Followed | Plain:
    """Returns what is kept of a run, with a market or without."""
    model = made.model()
    assert model.power is not None
    market, idle_w = found.market, model.power.idle
    if market is None:
        assert model.types is not None
        assert made.run.end is not None
        return Plain(found.schedule, JobTypes.of(model.types), model.nodes, idle_w,
                     model.steps("carbon"), made.run.end // TICKS[made.tick])  # fmt: skip
    assert market.types is not None
    assert market.left_us is not None
    _ = market.by_hour, market.quality, market.measures  # while it is open
    left = left_kwh(market.schedule, market.left_us, market.types, idle_w)
    return Followed(market, left)


def without(plain: Plain, hour: int) -> Without:
    """Returns what became of jobs without demand response, in hours of so many ticks."""
    schedule, types, until, carbon = plain.schedule, plain.types, plain.until, plain.carbon
    left = left_by_logs(schedule, types, NO_CAPS, until)
    begins = np.arange(0, until, hour)
    changes = np.zeros(0, np.int64) if carbon is None else carbon.times[carbon.times < until]
    since = np.union1d(begins, changes)
    kwh = energy_kwh(schedule, types, plain.nodes, plain.idle_w, np.append(since, until))
    by_hour = np.searchsorted(since, begins)  # where each begins
    carbon_kg = None
    if carbon is not None:
        grams = kwh * carbon.values[np.searchsorted(carbon.times, since, "right") - 1]
        carbon_kg = np.add.reduceat(grams, by_hour) / G_PER_KG
    return Without(degradations(schedule, left, until), waits_s(schedule, until),
                   np.add.reduceat(kwh, by_hour), left_kwh(schedule, left, types, plain.idle_w),
                   carbon_kg)  # fmt: skip


def energy_kwh(
    schedule: Schedule, types: JobTypes, nodes: int, idle_w: float, edges: Whole
) -> Numbers:
    """Returns what a machine on which nobody is capped takes between some times, in us."""
    begun = schedule.start_us >= 0
    kinds, width = types.of_job[begun], schedule.trace.nodes[begun]
    more_w = width * (types.most_w[kinds] - idle_w)
    ends = schedule.end_us[begun]
    over = ends >= 0
    times = np.concatenate([schedule.start_us[begun], ends[over]])
    steps = np.concatenate([more_w, -more_w[over]])
    order = np.argsort(times, kind="stable")
    times, steps = times[order], steps[order]
    # Above idle nodes, each step counts from its time on: sum of steps x (edge - time).
    sums, moments = (np.concatenate([[0.0], np.cumsum(it)]) for it in (steps, steps * times))
    at = np.searchsorted(times, edges, "right")
    joules = (sums[at] * edges - moments[at]) / SECOND + nodes * idle_w * edges / SECOND
    found: Numbers = np.diff(joules) / KWH
    return found


def left_kwh(schedule: Schedule, left_us: Numbers, types: JobTypes, idle_w: float) -> float:
    """Returns what jobs would still take without caps, above what idle nodes draw, that have been
    submitted and are not over; `left_us` of those that have begun."""
    trace = schedule.trace
    us = np.where(schedule.start_us >= 0, left_us, trace.run_us)
    us = np.where((schedule.end_us >= 0) | (schedule.state == TO_COME), 0.0, us)
    more_w = types.most_w[types.of_job] - idle_w
    return float((us * trace.nodes * more_w).sum()) / SECOND / KWH
