"""What the hours of a setting came to, and whether it changes from setting to setting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter

from odonata.results.statistics import Interval, difference, interval
from odonata.studies.regulation.cases import RegulationPlan, Setting
from odonata.studies.regulation.simulation import Hour, RegulationOutcome
from odonata.study import measured
from odonata.study.contract import Claim
from odonata.study.verdicts import above, below, judged, percent

Measure = Callable[[RegulationOutcome], float | None]

MOST_LATE = 0.1


# -- measures of an hour, in parts of 1


saving: Measure = attrgetter("saving")
error: Measure = attrgetter("error")
bad: Measure = attrgetter("bad")
"""The share of seconds whose error is above 0.3."""
mean_signal: Measure = attrgetter("signal")
standby: Measure = attrgetter("standby")
left: Measure = attrgetter("left")
"""The work that is left when the hour is over, as a part of an hour's."""
average: Measure = attrgetter("average_w")
reserve: Measure = attrgetter("reserve_w")
keeps_rule: Measure = attrgetter("keeps_rule")
keeps_qos: Measure = attrgetter("keeps_qos")


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


class Measured(measured.Measured[RegulationPlan, Hour, RegulationOutcome]):
    """The hours of settings, of which there are all."""

    def has(self, *settings: Setting) -> bool:
        return all(map(self.hours, settings))

    def hours(self, setting: Setting) -> list[RegulationOutcome]:
        return self.every(self.asked.of(setting))

    def values(self, setting: Setting, of: Measure) -> list[float | None]:
        """Returns a measure of each hour, by seed."""
        return [of(it) for it in self.hours(setting)]

    def count(self, setting: Setting, of: Measure) -> int:
        """Returns in how many hours something is so."""
        return sum(map(bool, self.values(setting, of)))

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
        return difference(self.values(against, of), self.values(setting, of), paired=True)


def trend(
    name: str,
    paper: str,
    m: Measured,
    settings: Sequence[Setting],
    of: Measure,
    sign: int,
    text: Callable[[Interval], str] = percent,
) -> Claim | None:
    """Returns whether a measure falls (-1) or rises (1) at every step from setting to setting; None
    where hours are missing. In sign only: its means do, or it does from the first to the last."""
    if not m.has(*settings):
        return None
    means = [m.mean(each, of) for each in settings]
    pairs = list(zip(settings[1:], settings, strict=False))
    steps = [m.change(one, other, of) for one, other in pairs]
    whole = m.change(settings[-1], settings[0], of)
    sure = [above(it, 0) if sign > 0 else below(it, 0) for it in steps]
    right = [sign * it.mean > 0 for it in (*steps, whole)]
    ends = above(whole, 0) if sign > 0 else below(whole, 0)
    return judged(name, paper, "; ".join(text(it) for it in means), all(sure),
                  all(right) or ends, whole)  # fmt: skip
