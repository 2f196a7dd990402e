"""What the thesis says of random workloads, in figures 3.10 to 3.13 and section 3.4.4, beside what
we found. Intervals are over workloads, which are independent of each other."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from odonata.results.statistics import Interval, difference, interval
from odonata.studies.levelspread import cases
from odonata.studies.levelspread.measures import (
    HALF,
    ByWorkload,
    Floats,
    Measured,
    Seeds,
    by_workload,
    claim,
    quadrants,
    relative,
)
from odonata.study.contract import Claim
from odonata.study.verdicts import above, below, near, near_share, percent, values_of, verdict

SINGLE = {"all-to-all": 0.01, "halo3d": 0.01, "halo3d26": 0.03, "halo2d": 0.04, "broadcast": 0.08}
"""In how many of the cases of one pattern a baseline was better."""


def claims(m: Measured) -> Iterator[Claim]:
    usual = relative(m, cases.BASELINES)
    yield from _usual(usual)
    for pattern in cases.PATTERNS:
        alone = by_workload(relative(m, cases.BASELINES, pattern=pattern))
        yield _share(f"random, only {pattern}: worse", SINGLE.get(pattern), alone.worse,
                     "Zhang 3.4.4", "worse-and-ties")  # fmt: skip
    late = by_workload(relative(m, cases.BASELINES, large_first=True))
    yield from _large_first(by_workload(usual), late)
    for policy, which in ((cases.JOKANOVIC, "than Jokanovic"),
                          (cases.PUBLISHED, "than Jokanovic as in the published code")
    ):  # fmt: skip
        found = by_workload(relative(m, [policy]))
        after = by_workload(relative(m, [policy], large_first=True))
        every = _jokanovic(which, found, after)
        if policy == cases.PUBLISHED:  # the same printed numbers, which count once
            every = (replace(one, source="", cause="") for one in every)
        yield from every


def _usual(ratios: dict[str, Floats]) -> Iterator[Claim]:
    found, whole = by_workload(ratios), quadrants(ratios)
    yield _share("3.10, random: better", 0.59, found.better, "Zhang 3.10", "worse-and-ties")
    yield _share("3.10, random: worse", 0.03, found.worse, "Zhang 3.10", "worse-and-ties")
    middle = interval(found.saved)
    yield claim("3.10, random: mean reduction", "16 %", percent(middle),
                 verdict(near(middle, 0.16, HALF), above(middle, 0)), middle, "Zhang 3.10",
                 "mean-and-best")  # fmt: skip
    if whole:
        best = Interval(whole.best_reduction, math.nan, math.nan, whole.pairs)
        yield claim("3.10, random: best reduction", "71 %", percent(best),
                     verdict(near(best, 0.71, HALF), best.mean > 0), best, "Zhang 3.10",
                     "mean-and-best")  # fmt: skip


def _large_first(usual: ByWorkload, late: ByWorkload) -> Iterator[Claim]:
    yield _ahead("3.11, large first: better less worse", "at least as good", late, "Zhang 3.11",
                 "large-jobs-first")  # fmt: skip
    moved = difference(usual.small, late.small, paired=True)
    yield claim("3.11, large first: gain of small jobs, beside small first", "smaller",
                 percent(moved), verdict(below(moved, 0), moved.mean < 0), moved, "Zhang 3.11",
                 "large-jobs-first")  # fmt: skip
    yield _share("3.11, large first: better", None, late.better)
    yield _share("3.11, large first: worse", None, late.worse)


def _jokanovic(which: str, found: ByWorkload, late: ByWorkload) -> Iterator[Claim]:
    why = "jokanovic"
    yield _share(f"3.12, {which}: better", 0.64, found.better, "Zhang 3.12", why)
    yield _share(f"3.12, {which}: worse", 0.0, found.worse, "Zhang 3.12", why)
    large = interval(found.large)
    yield claim(f"3.12, {which}: gain of large jobs", "faster", percent(large),
                 verdict(above(large, 0), large.mean > 0), large, "Zhang 3.12", why)  # fmt: skip
    yield _ahead(f"3.13, {which}, large first: better less worse", "better", late, "Zhang 3.13",
                 why)  # fmt: skip
    yield _share(f"3.13, {which}, large first: better", None, late.better)
    yield _share(f"3.13, {which}, large first: worse", None, late.worse)


def _share(name: str, printed: float | None, by: Seeds, source: str = "", why: str = "") -> Claim:
    """Returns the claim that a share of all pairs of a workload and a baseline is as printed."""
    it = interval(by)
    if printed is None:
        return Claim(name, "", percent(it), None, it.of, values_of(it))
    said = verdict(near_share(it, printed, HALF))
    return claim(name, f"{100 * printed:.0f} %", percent(it), said, it, source, why)


def _ahead(name: str, paper: str, found: ByWorkload, source: str, why: str) -> Claim:
    it = difference(found.worse, found.better, paired=True)
    return claim(name, paper, percent(it), verdict(above(it, 0), it.mean > 0), it, source, why)
