"""What the cases came to, hour by hour, over one mix or several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from odonata.bids.chance import Chance
from odonata.results.statistics import Interval, interval
from odonata.studies.aqa.cases import AqaPlan, Setting
from odonata.studies.aqa.simulation import OWN, AqaOutcome, Offer
from odonata.study import measured
from odonata.study.verdicts import percent

Row = Mapping[str, Any]


COUNTED = ("kept", "rule", "qos")
"""What an hour is or is not."""


class Group(NamedTuple):
    """Cases of the same setting, one of each mix, and the variant that is looked at."""

    mixes: Sequence[str]
    setting: Callable[[str], Setting]
    variant: str = OWN

    def of(self, variant: str) -> Group:
        return self._replace(variant=variant)


def always(setting: Setting) -> Callable[[Any], Setting]:
    """Returns what gives one setting, whatever the mix."""
    return lambda _: setting


class Measured(measured.Measured[AqaPlan, Offer, AqaOutcome]):
    """The outcomes of a plan."""

    def outcome(self, mix: str, setting: Setting) -> AqaOutcome | None:
        return self.of(self.asked.of(mix, setting))

    def has(self, *groups: Group) -> bool:
        """Tells whether all cases of these groups are there, and at least one."""
        return all(group.mixes for group in groups) and all(
            self.outcome(mix, group.setting(mix)) is not None
            for group in groups for mix in group.mixes
        )  # fmt: skip

    def rows(self, mix: str, setting: Setting, variant: str = OWN) -> Sequence[Row]:
        """Returns what the hours of a case came to."""
        found = self.outcome(mix, setting)
        return () if found is None else found.hours.get(variant, ())

    def values(self, group: Group, key: str) -> list[list[float]]:
        """Returns a measure: by mix, of each hour."""
        return [[float(row[key]) for row in self.rows(mix, group.setting(mix), group.variant)]
                for mix in group.mixes]  # fmt: skip

    def by_hour(self, group: Group, key: str) -> list[float]:
        """Returns the mean over the mixes of a measure, of each hour."""
        return [float(np.mean(column)) for column in zip(*self.values(group, key), strict=True)]

    def share(self, group: Group, key: str = "kept") -> Interval:
        """Returns the mean of a measure over mixes and hours; its interval is that over the hours,
        as all mixes have the signal of an hour in common; of hours of one mix that are so or not,
        that of Clopper and Pearson."""
        if len(group.mixes) == 1 and key in COUNTED:
            return of_counts(*self.count(group, key))
        return interval(self.by_hour(group, key))

    def count(self, group: Group, key: str = "kept") -> tuple[int, int]:
        """Returns in how many of the hours something is so, and how many there are."""
        every = [value for row in self.values(group, key) for value in row]
        return int(sum(every)), len(every)

    def change(self, one: Group, other: Group, key: str) -> Interval:
        """Returns by how much a measure is larger in one group, hour by hour."""
        return interval([a - b for a, b in zip(self.by_hour(one, key), self.by_hour(other, key),
                                               strict=True)])  # fmt: skip

    def of_mixes(self, group: Group, key: str) -> list[float]:
        """Returns the mean over the hours of a measure, of each mix."""
        return [float(np.mean(values)) for values in self.values(group, key)]

    def in_kept(self, mix: str, setting: Setting, key: str, variant: str = OWN) -> Interval:
        """Returns the mean of a measure over the hours that kept all rules."""
        some = [float(row[key]) for row in self.rows(mix, setting, variant) if row["kept"]]
        return interval(some)

    def bids(self, mix: str, setting: Setting) -> Sequence[Mapping[str, Any]]:
        found = self.outcome(mix, setting)
        return () if found is None else found.bids


def of_counts(seen: int, trials: int) -> Interval:
    """Returns a share with the interval of Clopper and Pearson."""
    found = Chance(seen, trials)
    return Interval(found.share, *found.interval, trials)


def counted(m: Measured, group: Group, key: str = "kept") -> str:
    """Returns in how many hours something is so, in words."""
    seen, trials = m.count(group, key)
    return f"{seen} of {trials} ({percent(m.share(group, key))})"


def mean_of(values: Iterable[float]) -> Interval:
    return interval([*values])
