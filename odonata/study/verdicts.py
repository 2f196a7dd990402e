"""Verdicts on what a paper says: holds, holds in sign only, does not.

A printed number is often of one run; ours is a mean with its confidence interval of 95 %. A number
**holds** where that interval comes within a tenth of the printed one, and is not wider to either
side than half of it. An inequality holds where the whole interval, of differences between runs of
one seed where there are such, lies on its side. Where that much cannot be said but the direction is
the printed one, it holds **in sign only**; else it does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from odonata.results.statistics import Interval
from odonata.study.contract import Claim, Verdict
from pdes.errors import Fault

NEAR = 0.1
"""A printed number holds if ours is off by no more than this part of it."""
NEAR_SHARE = 0.02
"""A printed share of cases also if it is off by no more than this part of all cases."""


def verdict(holds: bool, sign: bool = False) -> Verdict:
    """Returns the verdict on what holds, or else at least has the printed direction."""
    return Verdict.HOLDS if holds else Verdict.SIGN if sign else Verdict.NOT


def yes_or_no(holds: bool | None) -> Verdict | None:
    """Returns the verdict on what can only hold or not; None of what is not judged."""
    return None if holds is None else verdict(holds)


WIDEST = 0.5
"""An interval that reaches further to either side than this part of a printed number cannot show
that the number holds."""


def percent(it: Interval, digits: int = 1) -> str:
    """Returns a part as per cent, with its interval."""
    half = "" if np.isnan(it.half) else f" ± {100 * it.half:.{digits}f}"
    return f"{100 * it.mean:.{digits}f}{half} %"


def plus_minus(it: Interval, digits: int = 0, sign: str = "", times: float = 1.0) -> str:
    """Returns a mean, so many times as large, with its interval, if it has one; `sign`: "+" where
    it is a difference."""
    half = "" if np.isnan(it.half) else f" ± {times * it.half:,.{digits}f}"
    return f"{times * it.mean:{sign},.{digits}f}{half}"


def watts(it: Interval) -> str:
    return f"{plus_minus(it)} W"


def limits(it: Interval) -> tuple[float, float]:
    """Returns the ends of an interval, which a single value is itself."""
    return (it.mean, it.mean) if np.isnan(it.low) else (it.low, it.high)


def near(it: Interval, printed: float, rounded: float = 0.0) -> bool:
    """Tells whether an interval comes within a tenth of a printed number, which may have been
    larger or smaller by `rounded` before it was rounded. An interval that is too wide says
    nothing."""
    if it.half > WIDEST * abs(printed) + rounded:
        return False
    (low, high), size = limits(it), abs(printed)
    if printed < 0:
        low, high = -high, -low
    most, least = (size + rounded) * (1 + NEAR), (size - rounded) * (1 - NEAR)
    return low <= most and high >= least


def near_share(it: Interval, printed: float, rounded: float = 0.0) -> bool:
    """Tells whether an interval comes near a printed share of all cases, which is a part of 1. One
    that is wider than what it must come near says nothing."""
    low, high = limits(it)
    apart = max(low - printed, printed - high)
    allowed = min(NEAR_SHARE, WIDEST * printed) if printed else NEAR_SHARE
    close = apart <= allowed and not it.half > max(WIDEST * printed, NEAR_SHARE)
    return near(it, printed, rounded) or bool(close)


def below(it: Interval, limit: float) -> bool:
    """Tells whether a whole interval is below a limit. Of a single hour nothing is sure."""
    return bool(it.high < limit)


def above(it: Interval, limit: float) -> bool:
    return bool(it.low > limit)


def judged(
    name: str, paper: str, ours: str, holds: bool, sign: bool, it: Interval, source: str = "",
    cause: str = "", *, calibrated: bool = False,
) -> Claim:  # fmt: skip
    """Returns a claim that holds, or not, or in sign only."""
    return Claim(name, paper, ours, verdict(holds, sign), it.of, values_of(it), source,
                 calibrated, cause)  # fmt: skip


def shown(
    name: str, paper: str, ours: str, it: Interval, source: str = "", *, calibrated: bool = False
) -> Claim:
    """Returns a claim that is not judged."""
    return Claim(name, paper, ours, None, it.of, values_of(it), source, calibrated)


def values_of(it: Interval) -> dict[str, float]:
    low, high = limits(it)
    return {"mean": it.mean, "low": low, "high": high}


class Place(NamedTuple):
    """The place at which a paper prints what some claims are about, whose names have the pattern.
    `source` is "" where no paper prints it, but something that is ours."""

    pattern: str
    source: str
    cause: str = ""


def placed(claims: Iterable[Claim], places: Sequence[Place]) -> list[Claim]:
    """Returns the claims with their sources, by the first place whose pattern is in their names,
    and with the cause of a difference where they do not hold. Raises Fault where a claim has
    something printed beside it and no place."""
    return [_placed(claim, places) for claim in claims]


def _placed(claim: Claim, places: Sequence[Place]) -> Claim:
    if not claim.paper or claim.source:
        return claim
    for pattern, source, cause in places:
        if re.search(pattern, claim.name):
            why = claim.cause or ("" if claim.verdict is Verdict.HOLDS else cause)
            return replace(claim, source=source, cause=why if source else "")
    raise Fault(f"claim {claim.name!r}: where is {claim.paper!r} printed?")
