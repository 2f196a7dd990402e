"""What came of a market for regulation: hours, with what each cost and saved, how far the machine
was off its target, and how late jobs were.

Rules and formulas are those of `policies.views.tracking`, the degradation of a job that of
`odonata.results.qualities`. `Market` is made of an opened run (`odonata.results.market_files`) or
of one in memory (`odonata.results.market_memory`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from odonata.jobs.market import PRICES, MarketSettings
from odonata.jobs.schedule import TO_COME, Schedule
from odonata.jobs.series import Steps
from odonata.results.market_measures import MarketMeasures, market_measures
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
from policies.views import tracking as rules

if TYPE_CHECKING:
    import xarray as xr

HOUR_US, PS, G_PER_KG = 3600 * SECOND, 10**6, 1000.0
HOURS = "market/hours"


class Rules(NamedTuple):
    """What a market asks: `odonata.jobs.market.MarketSettings` has the words."""

    hour_us: int
    limit: float
    share: float
    late: float
    violation: float
    mean_qos: float = 0.0
    """1: a type keeps its QoS if the mean degradation of its jobs is below their threshold."""
    warmup_us: int = 0
    """What is judged begins so long after the run."""

    @classmethod
    def of(cls, market: MarketSettings) -> Rules:
        """Returns those of the settings of a run."""
        hour_us, warmup_us = market.hour_ps // PS, market.warmup_ps // PS
        return cls(hour_us, market.limit, market.share, market.late, market.violation,
                   float(market.qos == rules.MEAN), warmup_us)  # fmt: skip

    @property
    def qos(self) -> rules.Qos:
        """Returns when a type keeps its QoS."""
        return rules.Qos(self.late, rules.MEAN if self.mean_qos else rules.SHARE)


class Bids(NamedTuple):
    """What was offered, by hour: since when, and the average and the reserve."""

    begin_us: Whole
    average_w: Numbers
    reserve_w: Numbers
    excluded: npt.NDArray[np.bool_]
    """Whether nothing could be offered."""

    @classmethod
    def of_log(cls, log: Mapping[str, Any], begin_us: Whole) -> Bids:
        """Returns those of the columns of `/bids`, which has exclusions where there may be some."""
        average_w, reserve_w = log["average_w"], log["reserve_w"]
        excluded = log.get("excluded", np.zeros(len(begin_us)))
        return cls(begin_us, average_w, reserve_w, np.asarray(excluded) != 0)


class Tracking(NamedTuple):
    """What was measured, by interval: when it ended, and means over it."""

    time_us: Whole
    target_w: Numbers
    power_w: Numbers
    standby_w: Numbers
    """What the nodes of standby jobs drew of it; nan where a run does not tell."""

    @property
    def seconds(self) -> Numbers:
        """[interval]: its length."""
        found: Numbers = np.diff(self.time_us, prepend=0) / SECOND
        return found


class OfType(NamedTuple):
    """The jobs of a type that were submitted within some time. None: there are none."""

    type: str
    threshold: float | None
    """The degradation that they were to stay below; None: they have none."""
    jobs: int
    late_share: float | None
    """The part of them that was at the threshold or beyond."""
    q90: float | None
    """The degradation that nine of ten do not exceed."""
    mean_q: float | None
    mean_wait_s: float | None
    qos_ok: bool


class HourFacts(NamedTuple):
    """An hour of a market. None: undefined. Powers are in W, money is that of the prices."""

    begin_s: float
    hours: float
    """Its length; less than a whole one where the run ended in it."""
    average_w: float
    reserve_w: float
    energy_price: float
    reserve_price: float
    error_price: float
    error_mean: float | None
    """How far the machine was off its target, as a part of the reserve."""
    error_above: float | None
    """How far it drew too much, as a mean over all intervals, and too little: parts of the mean."""
    error_below: float | None
    bad_share: float | None
    tracking_ok: bool
    excluded: bool
    """Whether nothing could be offered, after too many hours that broke the tracking rule."""
    cost: float | None
    saving: float | None
    """As a part of what the average would have cost by itself."""
    cost_energy: float
    """What the average cost: the cost if nothing were offered."""
    cost_reserve: float
    """At most 0, as it is earned."""
    cost_error: float | None
    cost_violation: float
    cost_drawn: float
    """What the energy that was drawn would have cost by itself, at the mean price of the hour."""
    cost_standby: float | None
    """What the energy of standby jobs, which is a part of that, would have cost."""
    energy_kwh: float
    """What was drawn."""
    standby_kwh: float | None
    carbon_kg: float | None
    """The CO2 of what was drawn; None where no carbon intensity is given."""
    jobs: int
    """How many were submitted."""
    qos_ok: bool
    types: tuple[OfType, ...]

    def facts(self) -> dict[str, Any]:
        """Returns all of it, for JSON."""
        return {**self._asdict(), "types": {it.type: it._asdict() for it in self.types}}


class Known(NamedTuple):
    """What is known of jobs, where it is not found from their schedule: in a run of packets it has
    finer times than that."""

    quality: Numbers
    """[job]: its degradation Q."""
    waits_s: Numbers
    """[job]: how long it waited, in s."""


@dataclass(frozen=True, eq=False)
class Market:
    """The hours of a run in a market. Times are us."""

    rules: Rules
    prices: Mapping[str, Steps]
    """Each of PRICES over time, per kWh."""
    until_us: int
    """Until when power was measured: the last hour ends then."""
    bids: Bids
    tracking: Tracking
    schedule: Schedule
    types: JobTypes | None
    """None: jobs have no types, so there is no quality that they are to have."""
    caps: CapLogs
    standby_jobs: tuple[int, int] | None = None
    """How many standby jobs started and ended; None where that is not known."""
    left_us: Numbers | None = None
    """[job]: how long each that holds nodes at the end would go on without a cap; None: this has to
    be found from the logs of caps."""
    known: Known | None = None
    """What the schedule does not tell of jobs; None: it tells all."""
    carbon: Steps | None = None
    """The carbon intensity over time, in g per kWh, where it is given."""

    # -- by interval

    @cached_property
    def hour_of(self) -> Whole:
        """[interval]: the bid that held in it: the last one before its end."""
        found: Whole = np.searchsorted(self.bids.begin_us, self.tracking.time_us, "left") - 1
        return found

    @cached_property
    def error(self) -> Numbers:
        """[interval]: how far the machine was off its target, as a part of the reserve; nan where
        nothing was offered."""
        reserve = self.bids.reserve_w[self.hour_of]
        return rules.errors(self.tracking.power_w, self.tracking.target_w, reserve)

    @cached_property
    def errors(self) -> xr.DataArray:
        """Returns the same by the time at which the interval ends, in us."""
        from xarray import DataArray

        about = "how far the machine was off its target, as a part of the reserve"
        return DataArray(self.error, {"time": self.tracking.time_us}, "time",
                         attrs={"unit": "1", "about": about})  # fmt: skip

    # -- by job

    @cached_property
    def quality(self) -> Numbers | None:
        """[job]: its degradation Q, nan where it was not submitted; None where jobs have no
        types."""
        if self.types is None:
            return None
        if self.known is not None:
            return self.known.quality
        left = self.left_us
        if left is None:
            left = left_by_logs(self.schedule, self.types, self.caps, self.until_us)
        return degradations(self.schedule, left, self.until_us)

    @cached_property
    def waits_s(self) -> Numbers:
        """[job]: how long it waited, in s, if need be up to the end."""
        return self.known.waits_s if self.known else waits_s(self.schedule, self.until_us)

    @cached_property
    def q(self) -> xr.DataArray:
        """Returns the degradation of each job."""
        from xarray import DataArray

        found = np.full(len(self.schedule), math.nan) if self.quality is None else self.quality
        return DataArray(found, dims="job", attrs={"unit": "1", "about": "degradation: turnaround "
                         "over run time without a cap, less 1"})  # fmt: skip

    def of_types(self, some: Any = slice(None)) -> tuple[OfType, ...]:
        """Returns how late the jobs of each type were, of some that were submitted."""
        types = self.types
        if types is None or self.quality is None:
            return ()
        return of_types(types, self.rules.qos, types.of_job[some], self.quality[some],
                        self.waits_s[some])  # fmt: skip

    @cached_property
    def judged(self) -> slice:
        """Returns the jobs that are judged: those that were submitted after the warm-up."""
        return slice(
            int(np.searchsorted(self.schedule.trace.submit_us, self.rules.warmup_us)), None
        )

    @property
    def judged_hours(self) -> list[HourFacts]:
        """Returns the hours that are judged: those that began after the warm-up."""
        return [hour for hour in self.by_hour if hour.begin_s * SECOND >= self.rules.warmup_us]

    # -- by hour

    @cached_property
    def by_hour(self) -> list[HourFacts]:
        """Returns the hours of which some has passed."""
        return [self._hour(at) for at, begin in enumerate(self.bids.begin_us.tolist())
                if begin < self.until_us]  # fmt: skip

    def _hour(self, at: int) -> HourFacts:
        begin = int(self.bids.begin_us[at])
        end = min(begin + self.rules.hour_us, self.until_us)
        if at + 1 < len(self.bids.begin_us):
            end = min(end, int(self.bids.begin_us[at + 1]))
        long = (end - begin) / HOUR_US
        average, reserve = float(self.bids.average_w[at]), float(self.bids.reserve_w[at])
        energy, offered, missed = (self.prices[name].integral(begin, end) / (end - begin)
                                   for name in PRICES)  # fmt: skip
        low, high = np.searchsorted(self.hour_of, (at, at + 1))
        its, seen = slice(low, high), self.tracking
        off, limit = self.error[its], self.rules.limit
        mean = rules.mean_error(off)
        kept = rules.keeps_rule(off, limit, self.rules.share)
        drawn_kwh = float((seen.power_w[its] * seen.seconds[its]).sum()) / KWH
        # Who offers nothing pays for what is drawn.
        paid = average if reserve else drawn_kwh / long * rules.W_PER_KW
        cost = rules.cost(paid, reserve, mean, long, energy, offered, missed, not kept,
                          self.rules.violation)  # fmt: skip
        above = rules.mean_error(np.where(seen.power_w[its] > seen.target_w[its], off, off * 0.0))
        rows = slice(*np.searchsorted(self.schedule.trace.submit_us, (begin, end)))
        types = self.of_types(rows)
        standby_kwh = float((seen.standby_w[its] * seen.seconds[its]).sum()) / KWH
        of_error = rules.cost(0.0, reserve, mean, long, 0.0, 0.0, missed)
        return HourFacts(
            begin / SECOND, long, average, reserve, energy, offered, missed, _known(mean),
            _known(above), _known(mean - above), _known(rules.bad_share(off, limit)), kept,
            bool(self.bids.excluded[at]), _known(cost),
            _known(rules.saving(cost, paid, long, energy)),
            rules.cost(paid, 0.0, math.nan, long, energy, 0.0, 0.0),
            rules.cost(0.0, reserve, 0.0, long, 0.0, offered, 0.0) + 0.0, _known(of_error),
            0.0 if kept else self.rules.violation, energy * drawn_kwh, _known(energy * standby_kwh),
            drawn_kwh, _known(standby_kwh), self._carbon_kg(its, begin, end),
            int((self.schedule.state[rows] != TO_COME).sum()), all(it.qos_ok for it in types),
            types,
        )  # fmt: skip

    def _carbon_kg(self, its: slice, begin: int, end: int) -> float | None:
        """Returns the CO2 of what was drawn in some intervals, which are those between two times:
        the power of each with the mean carbon intensity in it."""
        if self.carbon is None or its.start == its.stop:
            return None
        begins = np.append(0, self.tracking.time_us)[its]
        grams = self.carbon.integral_with(begins, self.tracking.power_w[its], begin, end)
        return grams / HOUR_US / rules.W_PER_KW / G_PER_KG

    @cached_property
    def measures(self) -> MarketMeasures:
        """Returns what the hours came to, over the run."""
        return market_measures(self)

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """Returns the hours for JSON and CSV: by hour, its figures; those by type are in `types`,
        by their names."""
        return [hour.facts() for hour in self.by_hour]

    def columns(self) -> Iterator[tuple[str, tuple[str, ...], Any, str]]:
        """Yield the figures of the hours: their names, what they are by, values and units."""
        every = self.by_hour
        for name in HourFacts._fields[:-1]:
            values = _array([getattr(hour, name) for hour in every], name)
            yield name, ("hour",), values, unit_of(name)
        names = () if self.types is None else self.types.names
        for name in OfType._fields[2:]:
            values = _array([getattr(it, name) for hour in every for it in hour.types], name)
            values = values.reshape(len(every), len(names))
            yield f"type_{name}", ("hour", "type"), values, unit_of(name)

    @cached_property
    def hours(self) -> xr.Dataset:
        """Returns the hours, by `hour`, and of some figures by `hour` and `type`."""
        from xarray import Dataset

        found: dict[str, Any] = {name: (by, values, {"unit": unit})
                                 for name, by, values, unit in self.columns()}  # fmt: skip
        names = () if self.types is None else self.types.names
        return Dataset(found, {"begin_s": found.pop("begin_s"), "type": list(names)})


def keep_hours(market: Market, file: Any) -> None:
    """Write the hours to `/market/hours` of an HDF5 file, in place of those that are there."""
    if HOURS in file:
        del file[HOURS]
    group = file.create_group(HOURS)
    for name, by, values, unit in market.columns():
        made = group.create_dataset(name, data=values)
        made.attrs["unit"] = unit
        for axis, label in enumerate(by):
            made.dims[axis].label = label


def of_types(
    types: JobTypes, qos: rules.Qos, of_job: Whole, quality: Numbers, waits_s: Numbers
) -> tuple[OfType, ...]:
    """Returns how late the jobs of each type were, of jobs by their types, degradations (nan: not
    submitted, and not counted) and waits; `qos` says which of them keep it."""
    found = []
    for at, name in enumerate(types.names):
        mine = (of_job == at) & ~np.isnan(quality)
        threshold = float(types.threshold[at])
        shown = None if threshold == math.inf else threshold
        if not mine.any():
            found.append(OfType(name, shown, 0, None, None, None, None, True))
            continue
        its, count = quality[mine], int(mine.sum())
        share = int((its >= threshold).sum()) / count
        found.append(OfType(name, shown, count, share, float(np.quantile(its, 0.9)),
                            float(its.mean()), float(waits_s[mine].mean()),
                            qos.kept(its, threshold)))  # fmt: skip
    return tuple(found)


def measured_until(until_us: int, time_us: Whole) -> int:
    """Returns until when a market is judged: to the end of the run or, as a run may end with its
    last job, within an interval, to that of the last whole one."""
    return min(until_us, int(time_us[-1])) if len(time_us) else until_us


UNITS = {"_kg": "kg", "_w": "W", "_s": "s", "_kwh": "kWh", "hours": "h", "_price": "1/kWh"}


def unit_of(name: str) -> str:
    """Returns the unit of a figure of an hour, by the end of its name; money has none."""
    return next((unit for end, unit in UNITS.items() if name.endswith(end)), "1")


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _array(values: list[Any], name: str) -> Any:
    """Returns the values of a figure; nan where it is undefined."""
    kind = bool if name.endswith(("_ok", "excluded")) else int if name == "jobs" else float
    return np.array([math.nan if it is None else it for it in values], kind)
