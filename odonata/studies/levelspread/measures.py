"""What the study measures: times of jobs, what one policy saves over another, and how sure that is.

A **saving**, or reduction, is the part of the communication time that one policy saves over
another, of the means of a workload's jobs: 1 - one / other, repetition by repetition (runs of one
seed have the same task mapping). Of a random workload and a baseline, Level-Spread is *better*
where both the small and the large jobs are faster with it, and *worse* where both are slower.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from odonata.results.statistics import Interval, interval
from odonata.studies.levelspread.cases import LEVEL_SPREAD, LevelSpreadPlan, random_workload
from odonata.studies.levelspread.simulation import LARGE, SMALL, LevelSpreadOutcome, Point
from odonata.study import measured
from odonata.study.contract import Claim, Verdict
from odonata.study.verdicts import values_of

Measured = measured.Measured[LevelSpreadPlan, Point, LevelSpreadOutcome]
Floats = npt.NDArray[np.float64]
Cell = Sequence[Point]
Seeds = list[float | None]
"""A value for each repetition, None where there is none."""


# -- means


def means(m: Measured, cell: Iterable[Point], kind: int) -> Floats:
    """Returns the mean communication time of a kind of jobs, in picoseconds, for each repetition of
    a cell that there is."""
    return np.array([outcome.mean_ps(kind) for outcome in m.there(cell)])


def mean(m: Measured, cell: Iterable[Point], kind: int = SMALL) -> float:
    """Returns the mean; NaN, where there is none."""
    times = means(m, cell, kind)
    return float(times.mean()) if len(times) else math.nan


def reduction(one: float, other: float) -> float:
    return 1 - one / other


# -- repetition by repetition


def times(m: Measured, cell: Cell, kind: int) -> Seeds:
    """Returns the mean communication time of a kind of jobs, in picoseconds, by repetition."""
    return m.each(cell, lambda outcome: outcome.mean_ps(kind))


def relative_to(one: Seeds, other: Seeds) -> Seeds:
    return [None if a is None or b is None else a / b for a, b in zip(one, other, strict=True)]


def saved(one: Seeds, other: Seeds) -> Seeds:
    return [None if part is None else 1 - part for part in relative_to(one, other)]


def less(one: Seeds, other: Seeds) -> Seeds:
    return [None if a is None or b is None else a - b for a, b in zip(one, other, strict=True)]


def averaged(several: Iterable[Seeds]) -> Seeds:
    """Returns the mean of several values, by repetition; None where one of them is missing."""
    return [None if None in row else float(np.mean(row)) for row in zip(*several, strict=True)]


def ends(several: Iterable[Seeds]) -> tuple[Interval, Interval] | None:
    """Returns the least and the most of several means, each with its interval; None where one of
    the values is missing altogether."""
    found = sorted((interval(values) for values in several), key=lambda it: it.mean)
    there = bool(found) and all(it.of for it in found)
    return (found[0], found[-1]) if there else None


# -- random workloads


@dataclass(frozen=True)
class Quadrants:
    """How pairs of a workload and a baseline compare, as fractions of all pairs."""

    pairs: int
    better: float
    worse: float
    small_only: float
    """The small jobs are faster with Level-Spread, the large ones slower."""
    large_only: float
    mean_reduction: float
    """The mean over small and large jobs alike, and all pairs."""
    best_reduction: float

    @property
    def ties(self) -> float:
        """The small jobs or the large ones are as fast, to the picosecond."""
        return 1 - self.better - self.worse - self.small_only - self.large_only


def relative(m: Measured, baselines: Sequence[str], *, large_first: bool = False,
             pattern: str | None = None) -> dict[str, Floats]:  # fmt: skip
    """Returns by baseline, for every workload, the time of small and of large jobs, relative to
    that with Level-Spread; a row of NaN where there is no outcome yet."""
    count = m.asked.workloads if pattern is None else m.asked.single
    ratios = {name: np.full((count, 2), np.nan) for name in baselines}
    for which in range(count):

        def found(policy: str, which: int = which) -> LevelSpreadOutcome | None:
            point = random_workload(
                m.asked, which, policy, large_first=large_first, pattern=pattern
            )
            return m.of(point)

        ours = found(LEVEL_SPREAD)
        for name in baselines:
            theirs = found(name)
            if ours and theirs:
                ratios[name][which] = [theirs.mean_ps(k) / ours.mean_ps(k) for k in (SMALL, LARGE)]
    return ratios


def quadrants(ratios: Mapping[str, Floats]) -> Quadrants | None:
    """Returns the comparison from the values of `relative`; None where there is nothing."""
    every = np.stack(list(ratios.values()), axis=1)
    there = ~np.isnan(every[..., 0])
    if not there.any():
        return None
    small, large = every[there].T
    saving = 1 - 1 / every[there]
    better, worse = (small > 1) & (large > 1), (small < 1) & (large < 1)
    return Quadrants(
        pairs=len(small),
        better=float(better.mean()),
        worse=float(worse.mean()),
        small_only=float(((small > 1) & (large < 1)).mean()),
        large_only=float(((small < 1) & (large > 1)).mean()),
        mean_reduction=float(saving.mean()),
        best_reduction=float(saving.max()),
    )


@dataclass(frozen=True)
class ByWorkload:
    """The same, of each workload over its baselines, None where there is none: workloads are
    independent of each other, and what is said of pairs has its interval from them."""

    better: Seeds
    worse: Seeds
    small: Seeds
    """The mean saving of the small jobs."""
    large: Seeds
    saved: Seeds
    """The mean over small and large jobs alike."""


def by_workload(ratios: Mapping[str, Floats]) -> ByWorkload:
    """Returns the comparison of each workload, from the values of `relative`."""
    every = np.stack(list(ratios.values()), axis=1)

    def means_of(values: Floats) -> Seeds:
        rows = [row[~np.isnan(row)] for row in values]
        return [float(row.mean()) if len(row) else None for row in rows]

    small, large = every[..., 0], every[..., 1]
    unknown = np.isnan(small)
    better = np.where(unknown, np.nan, (small > 1) & (large > 1))
    worse = np.where(unknown, np.nan, (small < 1) & (large < 1))
    ours, theirs = 1 - 1 / small, 1 - 1 / large
    return ByWorkload(means_of(better), means_of(worse), means_of(ours), means_of(theirs),
                      means_of((ours + theirs) / 2))  # fmt: skip


# -- claims

PAGE = "level-spread.md"
HALF = 0.005
"""What a printed number of whole per cent may have lost or won when it was rounded."""


def claim(name: str, paper: str, ours: str, said: Verdict, it: Interval, source: str, why: str, *,
          calibrated: bool = False) -> Claim:  # fmt: skip
    """Returns a claim that is explained, where it does not hold, under the heading `why`; an empty
    one where there are no outcomes."""
    if not it.of:
        return Claim(name, paper, "")
    cause = "" if said is Verdict.HOLDS else f"{PAGE}#{why}"
    return Claim(name, paper, ours, said, it.of, values_of(it), source, calibrated, cause)
