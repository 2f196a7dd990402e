"""The numbers of the study, each beside the one that the thesis gives.

A **reduction** is the part of the communication time that one policy saves over another, of the
means of a workload's jobs: 1 - one / other. Of a random workload and a baseline, Level-Spread is
*better* where both the small and the large jobs are faster with it, and *worse* where both are
slower.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from odonata.studies.levelspread.cases import (
    BASELINES,
    COMPACT,
    JOKANOVIC,
    LARGE_NODES,
    LARGER,
    LEVEL_SPREAD,
    MESSAGES,
    PATTERNS,
    RATIOS,
    SMALL_NODES,
    SPREADING,
    LevelSpreadPlan,
    heterogeneous,
    homogeneous,
    motivation,
    nodes_of,
    quarters,
    random_workload,
)
from odonata.studies.levelspread.simulation import LARGE, SMALL, LevelSpreadOutcome, Point
from odonata.study.contract import Claim
from odonata.study.verdicts import yes_or_no

Outcomes = Mapping[str, LevelSpreadOutcome]
Floats = npt.NDArray[np.float64]


TOLERANCE = 0.10
"""A claim holds where our number is within ten percentage points of the thesis's."""


# -- means


def means(outcomes: Outcomes, cell: Iterable[Point], kind: int) -> Floats:
    """Returns the mean communication time of a kind of jobs, in picoseconds, for each repetition of
    a cell that there is."""
    there = (outcomes.get(point.key) for point in cell)
    return np.array([outcome.mean_ps(kind) for outcome in there if outcome is not None])


def mean(outcomes: Outcomes, cell: Iterable[Point], kind: int = SMALL) -> float:
    """Returns the mean; NaN, where there is none."""
    times = means(outcomes, cell, kind)
    return float(times.mean()) if len(times) else math.nan


def reduction(one: float, other: float) -> float:
    return 1 - one / other


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
    error: float
    """The standard error of that, as workloads differ."""
    best_reduction: float

    @property
    def ties(self) -> float:
        """The small jobs or the large ones are as fast, to the picosecond."""
        return 1 - self.better - self.worse - self.small_only - self.large_only


def relative(
    asked: LevelSpreadPlan, outcomes: Outcomes, baselines: Sequence[str], *,
    large_first: bool = False, pattern: str | None = None,
) -> dict[str, Floats]:  # fmt: skip
    """Returns by baseline, for every workload, the time of small and of large jobs, relative to
    that with Level-Spread; a row of NaN where there is no outcome yet."""
    count = asked.workloads if pattern is None else asked.single
    ratios = {name: np.full((count, 2), np.nan) for name in baselines}
    for which in range(count):

        def found(policy: str, which: int = which) -> LevelSpreadOutcome | None:
            point = random_workload(asked, which, policy, large_first=large_first, pattern=pattern)
            return outcomes.get(point.key)

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
    saved = 1 - 1 / every
    by_workload = np.array(
        [row[ok].mean() for row, ok in zip(saved, there, strict=True) if ok.any()]
    )
    error = (
        float(by_workload.std(ddof=1) / math.sqrt(len(by_workload)))
        if len(by_workload) > 1
        else 0.0
    )
    better, worse = (small > 1) & (large > 1), (small < 1) & (large < 1)
    return Quadrants(
        pairs=len(small),
        better=float(better.mean()),
        worse=float(worse.mean()),
        small_only=float(((small > 1) & (large < 1)).mean()),
        large_only=float(((small < 1) & (large > 1)).mean()),
        mean_reduction=float(saved[there].mean()),
        error=error,
        best_reduction=float(saved[there].max()),
    )


# -- claims


def claims(asked: LevelSpreadPlan, outcomes: Outcomes) -> list[Claim]:
    """Returns the claims that there are outcomes for."""
    parts = (_motivation, _homogeneous, _heterogeneous, _random)
    return [claim for part in parts for claim in part(asked, outcomes) if claim.of]


def _motivation(asked: LevelSpreadPlan, outcomes: Outcomes) -> Iterator[Claim]:
    def saved(large: bool, one: str, other: str) -> list[float]:
        return [reduction(mean(outcomes, motivation(asked, large, pattern, one)),
                          mean(outcomes, motivation(asked, large, pattern, other)))
                for pattern in PATTERNS]  # fmt: skip

    yield _range("3.2  17 × 16 nodes: RDG over RDN", (), saved(False, "rdg", "rdn"))
    yield _range("3.2  4 × 68 nodes: RDN over RDG", (0.30,), saved(True, "rdn", "rdg"))


def _homogeneous(asked: LevelSpreadPlan, outcomes: Outcomes) -> Iterator[Claim]:
    def time(nodes: int, pattern: str, ratio: float, policy: str) -> float:
        return mean(outcomes, homogeneous(asked, nodes, pattern, ratio, policy))

    def saved(
        nodes: int, ratios: Iterable[float], ones: Sequence[str], others: Sequence[str]
    ) -> list[float]:
        return [reduction(time(nodes, pattern, ratio, one), time(nodes, pattern, ratio, other))
                for ratio in ratios for pattern in PATTERNS for one in ones
                for other in others]  # fmt: skip

    compact, spread = (LEVEL_SPREAD, *COMPACT), (LEVEL_SPREAD, *SPREADING)
    yield _range("3.4a 16 nodes: compact over spreading", (0.15, 0.89),
                 saved(SMALL_NODES, RATIOS, compact, SPREADING))  # fmt: skip
    for ratio in RATIOS:
        yield _range(f"3.4a   ratio {fraction(ratio)}", (),
                     saved(SMALL_NODES, [ratio], compact, SPREADING))  # fmt: skip
    yield _range("3.4b 64 nodes, ratio 1: over Simple", (0.22, 0.54),
                 saved(LARGE_NODES, [1.0], [LEVEL_SPREAD], ["simple"]))  # fmt: skip
    for ratio in RATIOS:
        yield _range(f"3.4b   ratio {fraction(ratio)}, spreading too", (),
                     saved(LARGE_NODES, [ratio], spread, ["simple"]))  # fmt: skip
    quarter = [
        reduction(*(mean(outcomes, homogeneous(asked, nodes, pattern, ratio, policy, machine))
                    for policy in (LEVEL_SPREAD, "simple")))
        for machine, nodes, ratio in quarters() if ratio == 1
        for pattern in PATTERNS
    ]  # fmt: skip
    yield _range("     quarters, ratio 1: over Simple", (), quarter)


def _heterogeneous(asked: LevelSpreadPlan, outcomes: Outcomes) -> Iterator[Claim]:
    def cells(policy: str, **where: Any) -> list[tuple[Point, ...]]:
        return [heterogeneous(asked, pattern, policy, **where) for pattern in PATTERNS]

    def saved(kind: int, others: Sequence[str], **where: Any) -> list[float]:
        """Returns reductions by pattern, over the mean of the others."""
        ones = [mean(outcomes, cell, kind) for cell in cells(LEVEL_SPREAD, **where)]
        theirs = np.array([[mean(outcomes, cell, kind) for cell in cells(policy, **where)]
                           for policy in others])  # fmt: skip
        return [reduction(one, float(of)) for one, of in zip(ones, theirs.mean(0), strict=True)]

    rows: list[tuple[str, dict[str, Any], tuple[float, ...]]] = [
        *((f"3.7a ratio {fraction(ratio)}", {"ratio": ratio}, ()) for ratio in RATIOS),
        *((f"3.7b {nodes_of(machine):,} nodes", {"machine": machine},
           (0.32, 0.64) if machine == LARGER[-1] else ()) for machine in LARGER),
        *((f"3.8  {few}:{many} KB", {"messages": (few, many)}, ()) for few, many in MESSAGES),
    ]  # fmt: skip
    for name, where, thesis in rows:
        yield _range(f"{name}: small, over spreading", thesis, saved(SMALL, SPREADING, **where))
        yield _range(f"{name}: large, over compact", (), saved(LARGE, COMPACT, **where))


def _random(asked: LevelSpreadPlan, outcomes: Outcomes) -> Iterator[Claim]:
    found = quadrants(relative(asked, outcomes, BASELINES))
    yield _share("3.10 random: better", (0.59,), found, "better")
    yield _share("3.10 random: worse", (0.03,), found, "worse")
    if found:
        middle, best = found.mean_reduction, found.best_reduction
        yield Claim(
            "3.10 random: mean reduction",
            "16 %",
            f"{_percent(middle, 1)} ± {100 * found.error:.1f}",
            yes_or_no(_near((0.16,), (middle,))),
            found.pairs,
            {"mean": middle, "error": found.error},
        )
        yield Claim(
            "3.10 random: best reduction",
            "71 %",
            _percent(best),
            yes_or_no(_near((0.71,), (best,))),
            found.pairs,
            {"best": best},
        )
    thesis = {"all-to-all": 0.01, "halo3d": 0.01, "halo3d26": 0.03, "halo2d": 0.04,
              "broadcast": 0.08}  # fmt: skip
    for pattern in PATTERNS:
        alone = quadrants(relative(asked, outcomes, BASELINES, pattern=pattern))
        number = (thesis[pattern],) if pattern in thesis else ()
        yield _share(f"     only {pattern}: worse", number, alone, "worse")
    found = quadrants(relative(asked, outcomes, BASELINES, large_first=True))
    yield _share("3.11 large first: better", (), found, "better")
    yield _share("3.11 large first: worse", (), found, "worse")
    found = quadrants(relative(asked, outcomes, [JOKANOVIC]))
    yield _share("3.12 than Jokanovic: better", (0.64,), found, "better")
    yield _share("3.12 than Jokanovic: worse", (0.0,), found, "worse")
    found = quadrants(relative(asked, outcomes, [JOKANOVIC], large_first=True))
    yield _share("3.13 than Jokanovic, large first: better", (), found, "better")
    yield _share("3.13 than Jokanovic, large first: worse", (), found, "worse")


def _range(name: str, thesis: Sequence[float], values: Sequence[float]) -> Claim:
    """Returns a claim about a range. The thesis gives both ends, or one number for all, or none."""
    there = [value for value in values if not math.isnan(value)]
    paper = f"{' .. '.join(f'{100 * part:.0f}' for part in thesis)} %" if thesis else ""
    if not there:
        return Claim(name, paper, "")
    low, high, middle = min(there), max(there), float(np.mean(there))
    ours = f"{100 * low:.0f} .. {100 * high:.0f}, mean {_percent(middle)}"
    holds = _near(thesis, (low, high) if len(thesis) > 1 else (middle,))
    numbers = {"least": low, "most": high, "mean": middle}
    return Claim(name, paper, ours, yes_or_no(holds), len(there), numbers)


def _share(name: str, thesis: Sequence[float], found: Quadrants | None, which: str) -> Claim:
    paper = _percent(thesis[0]) if thesis else ""
    if found is None:
        return Claim(name, paper, "")
    value = getattr(found, which)
    return Claim(name, paper, _percent(value, 1), yes_or_no(_near(thesis, (value,))), found.pairs,
                 {which: value})  # fmt: skip


def _near(thesis: Sequence[float], ours: Sequence[float]) -> bool | None:
    """Tells whether a claim holds; None where the thesis gives no number."""
    if not thesis:
        return None
    return all(abs(one - other) <= TOLERANCE for one, other in zip(thesis, ours, strict=True))


def _percent(part: float, digits: int = 0) -> str:
    return f"{100 * part:.{digits}f} %"


def fraction(ratio: float) -> str:
    return "1/4" if ratio == 0.25 else f"{ratio:g}"
