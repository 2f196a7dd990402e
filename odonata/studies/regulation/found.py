"""What the hours of a setting came to, and how that is judged beside what is printed.

A number of the thesis is of one hour; ours is a mean over hours with its confidence interval of
95 %. It **holds** where that interval comes within a tenth of the printed number. An inequality
holds where the interval of the differences between hours of one seed lies on its side of 0. Where
that much cannot be said but the direction is the printed one, it holds **in sign only**; else it
does not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from odonata.results.statistics import Interval, interval
from odonata.studies.regulation.cases import RegulationPlan, Setting
from odonata.studies.regulation.simulation import RegulationOutcome
from odonata.study.contract import Claim

Outcomes = Mapping[str, RegulationOutcome]
Measure = Callable[[RegulationOutcome], float | None]
BySeed = Mapping[int, float]

NEAR = 0.1
"""A printed number holds if ours is off by no more than this part of it."""
SIGN = "in sign only"
CALIBRATED = "calibrated"
MOST_LATE = 0.1


# -- measures of an hour, in parts of 1


def saving(it: RegulationOutcome) -> float:
    return it.saving


def error(it: RegulationOutcome) -> float | None:
    return it.error


def bad(it: RegulationOutcome) -> float | None:
    """Returns the share of seconds whose error is above 0.3."""
    return it.bad


def mean_signal(it: RegulationOutcome) -> float:
    return it.signal


def standby(it: RegulationOutcome) -> float:
    return it.standby


def left(it: RegulationOutcome) -> float:
    """Returns the work that is left when the hour is over, as a part of an hour's."""
    return it.left


def average(it: RegulationOutcome) -> float:
    return it.average_w


def reserve(it: RegulationOutcome) -> float:
    return it.reserve_w


def keeps_rule(it: RegulationOutcome) -> float:
    return float(it.keeps_rule)


def keeps_qos(it: RegulationOutcome) -> float:
    return float(it.keeps_qos)


def keeps_both(it: RegulationOutcome) -> float:
    return float(it.keeps_rule and it.keeps_qos)


def late(name: str = "") -> Measure:
    """Returns what gives the part of the jobs of a type that is late; without a name, that of the
    type with most."""
    return lambda it: it.late.get(name, 0.0) if name else max(it.late.values())


def q90(name: str) -> Measure:
    """Returns what gives the degradation that nine of ten jobs of a type do not exceed."""
    return lambda it: it.q90.get(name, 0.0)


def weight(name: str) -> Measure:
    """Returns what gives the weight of a type in the bid."""
    return lambda it: it.weights.get(name, 0.0)


# -- settings


def hours(asked: RegulationPlan, outcomes: Outcomes, setting: Setting) -> list[RegulationOutcome]:
    """Returns the outcomes of the hours of a setting; none of them, unless all are there."""
    cases = asked.of(setting)
    there = [outcomes[case.key] for case in cases if case.key in outcomes]
    return there if len(there) == len(cases) else []


@dataclass(frozen=True)
class Measured:
    """The hours of settings, of which there are all."""

    asked: RegulationPlan
    outcomes: Outcomes

    def has(self, *settings: Setting) -> bool:
        return all(hours(self.asked, self.outcomes, each) for each in settings)

    def hours(self, setting: Setting) -> list[RegulationOutcome]:
        return hours(self.asked, self.outcomes, setting)

    def values(self, setting: Setting, of: Measure) -> list[float | None]:
        """Returns a measure of each hour, by seed."""
        return [of(it) for it in self.hours(setting)]

    def count(self, setting: Setting, of: Measure) -> int:
        """Returns in how many hours something is so."""
        return sum(bool(value) for value in self.values(setting, of))

    def mean(self, setting: Setting, of: Measure) -> Interval:
        return interval(self.values(setting, of))

    def worst_late(self, setting: Setting) -> tuple[str, Interval]:
        """Returns the type of which most jobs are late on average over the hours, and its part."""
        names = sorted({name for it in self.hours(setting) for name in it.late})
        parts = {name: self.mean(setting, late(name)) for name in names}
        worst = max(parts, key=lambda name: parts[name].mean)
        return worst, parts[worst]

    def change(self, setting: Setting, against: Setting, of: Measure) -> Interval:
        """Returns by how much a measure is larger than in another setting, hour by hour."""
        mine, theirs = self.values(setting, of), self.values(against, of)
        return interval([None if one is None or other is None else one - other
                         for one, other in zip(mine, theirs, strict=True)])  # fmt: skip


# -- verdicts


def percent(it: Interval, digits: int = 1) -> str:
    """Returns a part as per cent, with its interval."""
    half = "" if np.isnan(it.half) else f" ± {100 * it.half:.{digits}f}"
    return f"{100 * it.mean:.{digits}f}{half} %"


def watts(it: Interval) -> str:
    half = "" if np.isnan(it.half) else f" ± {it.half:,.0f}"
    return f"{it.mean:,.0f}{half} W"


def limits(it: Interval) -> tuple[float, float]:
    """Returns the ends of an interval, which a single value is itself."""
    return (it.mean, it.mean) if np.isnan(it.low) else (it.low, it.high)


def near(it: Interval, printed: float, rounded: float = 0.0) -> bool:
    """Tells whether an interval comes within a tenth of a printed number, which may have been
    larger or smaller by `rounded` before it was rounded."""
    low, high = limits(it)
    most, least = (printed + rounded) * (1 + NEAR), (printed - rounded) * (1 - NEAR)
    return low <= most and high >= least


def below(it: Interval, limit: float) -> bool:
    """Tells whether a whole interval is below a limit. Of a single hour nothing is sure."""
    return bool(it.high < limit)


def above(it: Interval, limit: float) -> bool:
    return bool(it.low > limit)


def judged(
    name: str, paper: str, ours: str, holds: bool, sign: bool, it: Interval
) -> Claim:  # fmt: skip
    """Returns a claim that holds, or not, or in sign only."""
    only = sign and not holds
    return Claim(name, paper, f"{ours}, {SIGN}" if only else ours, holds, it.of, values_of(it))


def shown(name: str, paper: str, ours: str, it: Interval) -> Claim:
    """Returns a claim that is not judged."""
    return Claim(name, paper, ours, None, it.of, values_of(it))


def values_of(it: Interval) -> dict[str, float]:
    low, high = limits(it)
    return {"mean": it.mean, "low": low, "high": high}


def trend(
    name: str,
    paper: str,
    measured: Measured,
    settings: Sequence[Setting],
    of: Measure,
    sign: int,
    text: Callable[[Interval], str] = percent,
) -> Claim | None:
    """Returns whether a measure falls (-1) or rises (1) at every step from setting to setting; None
    where hours are missing. In sign only: its means do, or it does from the first to the last."""
    if not measured.has(*settings):
        return None
    means = [measured.mean(each, of) for each in settings]
    pairs = list(zip(settings[1:], settings, strict=False))
    steps = [measured.change(one, other, of) for one, other in pairs]
    whole = measured.change(settings[-1], settings[0], of)
    sure = [above(it, 0) if sign > 0 else below(it, 0) for it in steps]
    right = [sign * it.mean > 0 for it in (*steps, whole)]
    ends = above(whole, 0) if sign > 0 else below(whole, 0)
    return judged(name, paper, "; ".join(text(it) for it in means), all(sure),
                  all(right) or ends, whole)  # fmt: skip
