"""The measures of power of a job run: energy, violations of the cap, cost, and who took it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from odonata.experiment.units import show_energy, show_power
from odonata.jobs.metering import PowerRecord
from odonata.jobs.series import Steps
from odonata.results.register import KWH
from odonata.traces.trace import SECOND, Trace

HOUR = 3600 * SECOND
MOST_USERS = 10
"""The largest number of users that have a row to themselves."""


@dataclass(frozen=True)
class PowerMeasures:
    """The measures of power. None: undefined, as there was no cap, no price or no time."""

    energy_kwh: float
    """What all nodes took, in all."""
    jobs_kwh: float
    idle_kwh: float
    sleep_kwh: float
    mean_power_w: float | None
    peak_power_w: float | None
    """The highest reading, which is a mean over an interval."""
    intervals: int
    """How often power was measured."""
    capped_intervals: int
    """How many of these had a cap, from beginning to end."""
    capping_success: float | None
    """The part of these that was within it."""
    violations: Mapping[str, int]
    """How many were not, by cause."""
    excess_kwh: float | None
    """The energy that was taken above the cap."""
    highest_excess_w: float | None
    learning_rate: float | None
    """The part of the jobs that had a known profile of power when they started; None where nobody
    learns."""
    mean_cap_stretch: float | None
    """How many times as long jobs took, on average over those that are over, as they would have
    without caps; None where none is over, or the run has not kept it. In runs of packets only what
    they compute stretches, and this is of that."""
    max_cap_stretch: float | None
    stretched_jobs: int | None
    """How many took longer at all."""
    cost: float | None
    """What the energy cost, in the money of the price."""
    co2_kg: float | None
    by_user_kwh: Mapping[str, float]
    """What the jobs of the users took that took most; those of all others are under ""others""."""
    standby_kwh: float = 0.0
    """What standby jobs took, which are no jobs of the trace."""

    def facts(self) -> dict[str, Any]:
        """Returns all of it, for JSON."""
        return asdict(self)


def power_measures(
    record: PowerRecord,
    trace: Trace | None,
    price: Steps | None = None,
    carbon: Steps | None = None,
) -> PowerMeasures:
    """Returns the measures of what was recorded; with a trace also by user. Prices are per kWh,
    carbon intensities grams per kWh; both over the time of the run."""
    hours = record.until * record.tick_s / 3600
    excess = record.excess_w if record.capped else None
    cost, grams = (None if it is None else _priced(record, it) for it in (price, carbon))
    peak = float(record.power_w.max()) if len(record.power_w) else None
    return PowerMeasures(
        record.total_j / KWH, record.jobs_j / KWH, record.idle_j / KWH, record.sleep_j / KWH,
        record.total_j / (hours * 3600) if hours else None, peak, len(record.time),
        record.capped_readings, record.capping_success, record.violations,
        None if excess is None else float((excess * record.seconds).sum()) / KWH,
        None if excess is None else float(excess.max(initial=0.0)), learning_rate(record),
        *_stretches(record), cost,
        None if grams is None else grams / 1000, _by_user(record, trace), record.standby_j / KWH,
    )  # fmt: skip


def _stretches(record: PowerRecord) -> tuple[float | None, float | None, int | None]:
    found = record.stretches
    if not len(found):
        return None, None, None
    return math.fsum(found) / len(found), float(found.max()), int((found > 1.0).sum())


def learning_rate(record: PowerRecord, reading: int = -1) -> float | None:
    """Returns the part of the jobs that had a known profile when they started, of all that had
    started by a reading."""
    figures = record.figures
    if "known" not in figures or not len(figures["known"]):
        return None
    known, unknown = (float(figures[name][reading]) for name in ("known", "unknown"))
    return known / (known + unknown) if known + unknown else None


def _priced(record: PowerRecord, price: Steps) -> float:
    """Returns the energy of each interval times the mean price of that interval, in sum; what was
    taken after the last reading has the mean price of that time."""
    begins = np.append(0, record.time)
    until = max(record.until, int(begins[-1]))
    levels = np.append(record.power_w, 0.0)
    found = price.integral_with(begins, levels, 0, until) / HOUR / 1000
    measured_j = float((record.power_w * np.diff(begins)).sum()) / SECOND
    rest_kwh = (record.total_j - measured_j) / KWH
    last = int(begins[-1])
    if until > last:
        found += rest_kwh * price.integral(last, until) / (until - last)
    return found


def _by_user(record: PowerRecord, trace: Trace | None) -> dict[str, float]:
    if trace is None or len(trace.users) <= 1:
        return {}
    kwh = np.bincount(trace.user, record.energy_j, len(trace.users)) / KWH
    order = np.argsort(-kwh, kind="stable")
    most, others = order[:MOST_USERS], order[MOST_USERS:]
    found = {trace.users[user] or "unknown": float(kwh[user]) for user in most}
    return found | ({"others": float(kwh[others].sum())} if len(others) else {})


def power_rows(measures: PowerMeasures) -> list[tuple[str, str, str]]:
    """Returns rows of a name, a figure and a note, for tables."""
    m = measures
    parts: Sequence[tuple[str, float]] = (("idle", m.idle_kwh), ("asleep", m.sleep_kwh),
                                          ("standby", m.standby_kwh))  # fmt: skip
    of_that = ", ".join(f"{word} {show_energy(kwh * KWH)}" for word, kwh in parts if kwh)
    rows = [("energy", show_energy(m.energy_kwh * KWH), of_that)]
    if m.mean_power_w is not None:
        rows.append(("power, mean", show_power(m.mean_power_w), ""))
    if m.peak_power_w is not None:
        rows.append(("power, highest", show_power(m.peak_power_w), "mean over an interval"))
    if m.capping_success is not None:
        causes = ", ".join(f"{word} {count:,}" for word, count in m.violations.items() if count)
        note = f"of {m.capped_intervals:,} intervals" + f"; else {causes}" * bool(causes)
        rows.append(("within the cap", f"{m.capping_success:.2%}", note))
        if m.highest_excess_w:
            rows.append(("above the cap", show_energy((m.excess_kwh or 0.0) * KWH),
                         f"at most by {show_power(m.highest_excess_w)}"))  # fmt: skip
    if m.mean_cap_stretch is not None and m.max_cap_stretch is not None and (
        m.capping_success is not None or m.stretched_jobs):  # fmt: skip
        rows += [("stretch by caps, mean", f"{m.mean_cap_stretch:.3f}",
                  f"of jobs, of which {m.stretched_jobs:,} were stretched"),
                 ("stretch by caps, most", f"{m.max_cap_stretch:.3f}", "")]  # fmt: skip
    if m.learning_rate is not None:
        rows.append(("profiles known", f"{m.learning_rate:.1%}", "of jobs, when they started"))
    if m.cost is not None:
        rows.append(("cost", f"{m.cost:,.2f}", "by the price of each moment"))
    if m.co2_kg is not None:
        rows.append(("CO2", f"{m.co2_kg:,.1f} kg", "by the carbon intensity of each moment"))
    return rows
