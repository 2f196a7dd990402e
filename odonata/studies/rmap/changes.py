"""What outcomes say of all traces of a kind: turnarounds, and their changes from policy to policy.

A **change** is that of a trace's mean turnaround under one policy, relative to another: -0.1 is a
tenth less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from odonata.studies.rmap.cases import HIGH_W, Part, RmapPlan
from odonata.studies.rmap.simulation import RmapOutcome, Traced, row

Outcomes = Mapping[str, RmapOutcome]
Floats = npt.NDArray[np.float64]
ENDS = (5, 95)
"""The percentiles between which the range of traces lies."""


class Spread(NamedTuple):
    """The mean of so many traces, and the ends of the range within which 90 % of them are."""

    mean: float
    low: float
    high: float
    of: int
    error: float
    """The standard error of the mean."""

    def has(self, value: float) -> bool:
        return self.low <= value <= self.high

    @property
    def values(self) -> dict[str, float]:
        return {"mean": self.mean, "low": self.low, "high": self.high, "error": self.error}


def spread(values: Floats) -> Spread | None:
    """Returns mean and range of the values that are there; None if there are none."""
    there = values[np.isfinite(values)]
    if not len(there):
        return None
    low, high = np.percentile(there, ENDS).tolist()
    error = float(there.std()) / max(1, len(there) - 1) ** 0.5
    return Spread(float(there.mean()), low, high, len(there), error)


def of_cases(outcomes: Outcomes, cases: Sequence[Traced], name: str, what: str) -> Floats:
    """Returns a number of the row of this name, case by case; NaN where it is not there."""
    rows = [outcomes[case.key].rows.get(name, {}) if case.key in outcomes else {} for case in cases]
    return np.array([one.get(what, np.nan) for one in rows], np.float64)


@lru_cache(maxsize=256)
def traces(
    asked: RmapPlan, kind: str, choice: str | None = None, few: bool = False
) -> tuple[Traced, ...]:
    """Returns the cases of a kind, or the few of them on which choices are compared; they are kept,
    as finding their keys takes time."""
    seeds = asked.chosen_seeds if few else asked.seeds
    return tuple(asked.traced(kind, seed) if choice is None else asked.chosen(kind, seed, choice)
                 for seed in seeds)  # fmt: skip


def each(
    asked: RmapPlan, outcomes: Outcomes, kind: str, policy: str, bound_w: float,
    what: str = "turnaround_s",
) -> Floats:  # fmt: skip
    """Returns what was measured of every trace of a kind under a policy and bound."""
    return of_cases(outcomes, traces(asked, kind), row(policy, bound_w), what)


def change(
    asked: RmapPlan, outcomes: Outcomes, kind: str, policy: str, against: str,
    bound_w: float | None = None,
) -> Floats:  # fmt: skip
    """Returns the change of every trace under a bound; None: the mean of those under all bounds up
    to 14,000 W, as the thesis has it."""
    bounds = [it for it in asked.bounds_w if it <= HIGH_W] if bound_w is None else [bound_w]
    changes = [each(asked, outcomes, kind, policy, it) / each(asked, outcomes, kind, against, it)
               for it in bounds]  # fmt: skip
    if not changes:
        return np.full(asked.traces, np.nan)
    found: Floats = np.mean(changes, axis=0) - 1.0
    return found


def chosen(
    asked: RmapPlan, outcomes: Outcomes, kind: str, choice: str | None, policy: str,
    bound_w: float | None = None, what: str = "turnaround_s",
) -> Floats:  # fmt: skip
    """Returns what was measured of the traces on which choices are compared, under a bound (None:
    the lowest), where one of CHOICES is changed; None: where none is."""
    return of_cases(
        outcomes, traces(asked, kind, choice, True), row(policy, bound_w or asked.low_w), what
    )


def there(outcomes: Outcomes, case: Part) -> RmapOutcome | None:
    return outcomes.get(case.key)


# -- words


def signed(value: float) -> str:
    return f"{100 * value:+.1f} %"


def shown(found: Spread) -> str:
    return f"{signed(found.mean)} ({100 * found.low:+.1f} .. {100 * found.high:+.1f})"


def counted(found: Spread) -> str:
    return f"{found.mean:.1f} ({found.low:.0f} .. {found.high:.0f})"
