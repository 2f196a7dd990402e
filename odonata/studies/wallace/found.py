"""What the claims of the study are made of: measures of months, and of years as independent runs.

A **change** is that of a month's mean wait or utilisation relative to a run without a cap, in
strict order: 0 is none, 1 is twice as much. A **gain** is by how much the learner's change is
better than the naive policy's. The months of a year share its projects and what these draw, so
that only years are independent: an interval is over values of which each year has one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from odonata.results.statistics import Interval, interval
from odonata.studies.wallace.cases import MIDDLE, WallacePlan
from odonata.studies.wallace.simulation import LEARNER, NAIVE, NONE, Part, WallaceOutcome
from odonata.study import measured

Measured = measured.Measured[WallacePlan, Part, WallaceOutcome]
Floats = npt.NDArray[np.float64]

WAIT, UTILISATION = "wait_s", "utilisation"


# -- by month


def by_month(m: Measured, cell: tuple[Part, ...], name: str) -> Floats:
    """Returns a measure of every month of a cell, NaN where there is no outcome yet."""
    rows = [getattr(m.outcomes[part.key], name) if part.key in m.outcomes
            else (np.nan,) * (m.asked.months if part.month is None else 1) for part in cell
    ]  # fmt: skip
    return np.array([value for row in rows for value in row], np.float64)


def change(m: Measured, name: str, order: str, policy: str, cap: str = MIDDLE,
           **how: Any) -> Floats:  # fmt: skip
    """Returns the change of every month, of the first year unless a `seed` is given; `how` is what
    else the run is different by, or of `every` how many months it is."""
    same = {word: how[word] for word in ("load", "every", "seed") if word in how}
    without = by_month(m, m.asked.cell(order, NONE, **same), name)
    return by_month(m, m.asked.cell(order, policy, cap, **how), name) / without - 1


def gain(m: Measured, name: str, order: str, cap: str, **how: Any) -> Floats:
    """Returns the gain of every month, above 0 where the learner is better."""
    naive, ours = (change(m, name, order, policy, cap, **how) for policy in (NAIVE, LEARNER))
    return naive - ours if name == WAIT else ours - naive


def there(values: Floats) -> Floats:
    return values[np.isfinite(values)]


# -- by year: a row of months for each seed, empty where there is no outcome yet


def rows_of(asked: WallacePlan, of: Callable[[int], Floats]) -> list[Floats]:
    """Returns a measure of every month of every year, by seed."""
    return [there(of(seed)) for seed in asked.seeds]


def changes(m: Measured, name: str, order: str, policy: str, cap: str = MIDDLE,
            **how: Any) -> list[Floats]:  # fmt: skip
    """Returns the change of every month of every year."""
    return rows_of(m.asked, lambda seed: change(m, name, order, policy, cap, seed=seed, **how))


def gains(m: Measured, name: str, order: str, cap: str) -> list[Floats]:
    """Returns the gain of every month of every year."""
    return rows_of(m.asked, lambda seed: gain(m, name, order, cap, seed=seed))


def over(rows: list[Floats], one: Callable[[Floats], Any] = np.mean) -> Interval:
    """Returns the interval over years of what their months come to, such as their mean."""
    return interval([float(one(row)) if len(row) else None for row in rows])


def apart(first: list[Floats], second: list[Floats]) -> Interval:
    """Returns the interval of what the mean of the second is above that of the first, year by
    year."""
    return interval([float(b.mean() - a.mean()) if len(a) and len(b) else None
                     for a, b in zip(first, second, strict=True)])  # fmt: skip


# -- of runs of a year


def learning_rate(outcome: WallaceOutcome) -> Floats:
    """Returns by day the part of the jobs that have started with a known profile."""
    known, unknown = np.array(outcome.known), np.array(outcome.unknown)
    rate: Floats = known / np.maximum(known + unknown, 1)
    return rate


def sets_known(outcome: WallaceOutcome) -> Floats:
    """Returns by day the part of the sets of jobs alike whose profile is known."""
    part: Floats = np.array(outcome.sets_known) / np.maximum(np.array(outcome.sets_seen), 1)
    return part
