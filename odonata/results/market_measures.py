"""The measures of a market over a run, and the rows in which people read them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from odonata.results.register import MARKET, money, of_kind
from odonata.results.statistics import Interval, interval
from policies.views.tracking import MEAN, Qos

if TYPE_CHECKING:
    from odonata.results.market import HourFacts, Market, OfType


@dataclass(frozen=True)
class MarketMeasures:
    """What the hours of a run came to. None: undefined, or there is none. Money is that of the
    prices."""

    hours: int
    hours_offered: int
    """Those in which something was offered."""
    average_w: float | None
    reserve_w: float | None
    """What was offered, on average over the time in which something was."""
    saving: float | None
    """The part of what the averages cost that was saved over all hours, and the limits of its 95 %
    confidence interval, which there are where there are two runs or more: the hours of one run
    depend on each other."""
    saving_low: float | None
    saving_high: float | None
    cost: float | None
    """Of all hours."""
    cost_energy: float | None
    """What the averages cost by themselves."""
    cost_reserve: float | None
    cost_error: float | None
    cost_violation: float | None
    cost_drawn: float | None
    """What the energy that was drawn would have cost by itself, whatever average was bid."""
    cost_standby: float | None
    """What the energy of standby jobs, which is a part of that, would have cost."""
    error_mean: float | None
    """The energy by which the machine was off its target, as a part of what the reserves come to
    over the time."""
    bad_share: float | None
    """The share of bad intervals, of those in which something was offered."""
    hours_kept: int
    """Hours with an offer that kept the tracking rule."""
    hours_excluded: int
    """Hours in which nothing could be offered, after too many that broke the rule."""
    hours_qos: int | None
    """Hours in which every type kept its QoS; None where jobs have no types."""
    worst_type: str | None
    """The type of which the largest part of the jobs was late over the run."""
    worst_late_share: float | None
    latest_type: str | None
    """The type whose mean degradation is the largest part of its threshold."""
    latest_mean_q: float | None
    """That mean degradation."""
    energy_kwh: float
    """What was drawn."""
    standby_kwh: float | None
    carbon_kg: float | None
    """The CO2 of what was drawn; None where no carbon intensity is given."""
    standby_started: int | None
    standby_ended: int | None
    types: Mapping[str, Mapping[str, Any]]
    """Of each type, over the run: as of `odonata.results.market.OfType`."""

    def facts(self) -> dict[str, Any]:
        """Returns all of it, for JSON."""
        return asdict(self)


def market_measures(market: Market) -> MarketMeasures:
    """Returns the measures of a run in a market."""
    return measures_of([market.judged_hours], market.of_types(market.judged),
                       None if market.rules.warmup_us else market.standby_jobs)  # fmt: skip


def measures_of(
    runs: Sequence[Sequence[HourFacts]],
    types: Sequence[OfType],
    standby: tuple[int, int] | None,
) -> MarketMeasures:
    """Returns the measures of the hours of runs that differ in their seed, and of their jobs by
    type."""
    hours = [hour for one in runs for hour in one]
    offered = [hour for hour in hours if hour.reserve_w]

    def over_time(name: str) -> float | None:
        return _ratio((getattr(hour, name) * hour.hours, hour.hours) for hour in offered)

    def total(name: str) -> float | None:
        values = [getattr(hour, name) for hour in hours]
        return None if None in values or not values else math.fsum(values)

    saving = _saving(runs)
    error = _ratio((hour.error_mean * hour.reserve_w * hour.hours, hour.reserve_w * hour.hours)
                   for hour in offered if hour.error_mean is not None)  # fmt: skip
    bad = _ratio((hour.bad_share * hour.hours, hour.hours)
                 for hour in offered if hour.bad_share is not None)  # fmt: skip
    late = [it for it in types if it.late_share is not None and it.threshold is not None]
    worst = max(late, key=lambda it: it.late_share or 0.0, default=None)
    latest = max(late, key=lambda it: (it.mean_q or 0.0) / (it.threshold or 1.0), default=None)
    return MarketMeasures(
        len(hours), len(offered), over_time("average_w"), over_time("reserve_w"),
        _known(saving.mean), _known(saving.low), _known(saving.high), total("cost"),
        total("cost_energy"), total("cost_reserve"), total("cost_error"), total("cost_violation"),
        total("cost_drawn"), total("cost_standby"), error, bad,
        sum(hour.tracking_ok for hour in offered), sum(hour.excluded for hour in hours),
        sum(hour.qos_ok for hour in hours) if types else None,
        None if worst is None else worst.type, None if worst is None else worst.late_share,
        None if latest is None else latest.type, None if latest is None else latest.mean_q,
        total("energy_kwh") or 0.0, total("standby_kwh"), total("carbon_kg"),
        None if standby is None else standby[0], None if standby is None else standby[1],
        {it.type: it._asdict() for it in types},
    )  # fmt: skip


def _ratio(parts: Iterable[tuple[float, float]]) -> float | None:
    """Returns the sum of some numbers as a part of the sum of others; None where that is 0."""
    every = [*parts]
    whole = math.fsum(of for _, of in every)
    return math.fsum(some for some, _ in every) / whole if whole else None


def _saving(runs: Sequence[Sequence[HourFacts]]) -> Interval:
    """Returns which part of the price of the averages was saved over all runs, and its interval:
    that of a ratio of two means over runs, by its linear approximation."""
    parts = []
    for one in runs:
        its = [hour for hour in one if hour.cost is not None]
        parts.append((math.fsum(hour.cost or 0.0 for hour in its),
                      math.fsum(hour.cost_energy for hour in its)))  # fmt: skip
    cost, paid = (math.fsum(column) for column in zip(*parts, strict=True))
    if not paid > 0.0:
        return Interval(math.nan, math.nan, math.nan, 0)
    found = 1.0 - cost / paid
    mean = paid / len(parts)
    off = interval(
        [(its_paid - its_cost - found * its_paid) / mean for its_cost, its_paid in parts]
    )
    return Interval(found, found + off.low, found + off.high, len(parts))


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


# -- for people


FIGURES = tuple(it for it in of_kind(MARKET) if it.path != "market.carbon_kg")
"""The measures that have a row each."""


def market_rows(found: MarketMeasures, market: Market) -> list[tuple[str, str, str]]:
    """Returns rows of a name, a figure and a note, for tables."""
    shown = {it.path.removeprefix("market."): it for it in FIGURES}
    rule, hours = market.rules, f"of {found.hours:,} hour{'s'[: found.hours != 1]}"
    offered = f"offered in {found.hours_offered:,} {hours}" if found.hours > 1 else ""
    drawn = "" if not found.cost_standby else f", standby jobs {money(found.cost_standby)} of it"
    cost = f"energy {money(found.cost_energy or 0.0)}, reserve {money(found.cost_reserve or 0.0)}"
    cost += f", error {money(found.cost_error)}" if found.cost_error is not None else ""
    cost += f", violations {money(found.cost_violation)}" if found.cost_violation else ""
    notes = {
        "average_w": offered,
        "saving": "of what the average costs that was bid",
        "cost": cost,
        "cost_drawn": f"energy{drawn}",
        "error_mean": "of the reserve",
        "bad_share": f"off by more than {rule.limit:g} of the reserve; the rule: below "
        f"{rule.share:.0%}",
        "hours_kept": f"of {found.hours_offered:,} with an offer",
        "hours_excluded": f"{hours}, after too many that broke the rule",
        "hours_qos": f"{hours}: {qos_words(rule.qos)}",
        "latest_mean_q": f"{found.latest_type}, mean of its jobs" if found.latest_type else "",
        "worst_late_share": found.worst_type or "",
        "standby_kwh": f"{market.types.standby}: {found.standby_started:,} jobs started"
        if market.types is not None and found.standby_started is not None else "",
    }  # fmt: skip
    left_out = {"standby_kwh"} if market.types is None or market.types.standby is None else set()
    left_out |= set() if found.hours_excluded else {"hours_excluded"}
    if market.types is None:
        left_out |= {"hours_qos", "worst_late_share", "latest_mean_q"}
    left_out |= {"worst_late_share"} if rule.mean_qos else {"latest_mean_q"}
    return [(it.name, it.text(getattr(found, name)), notes.get(name, ""))
            for name, it in shown.items() if name not in left_out]  # fmt: skip


def qos_words(qos: Qos) -> str:
    """Returns when a type keeps its QoS, in words."""
    if qos.rule == MEAN:
        return "the mean degradation of each type below its threshold"
    return f"of each type at most {qos.late:.0%} late"
