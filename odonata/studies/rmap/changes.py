"""What outcomes say of all traces of a kind: turnarounds, and their changes from policy to policy.

A **change** is that of a trace's mean turnaround under one policy, relative to another: -0.1 is a
tenth less. What is said of a kind is a mean over its traces, which are independent, with the
confidence interval of that mean; beside it stands the range in which single traces are, as the
thesis has one of each kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from odonata.results.statistics import Interval, interval
from odonata.studies.rmap.cases import BOTH, HIGH_W, PATTERNS, QUEUED, Part, RmapPlan
from odonata.studies.rmap.simulation import RmapOutcome, Traced, row
from odonata.study import measured
from odonata.study.contract import Claim, Verdict
from odonata.study.verdicts import above, below, near, values_of, verdict

Measured = measured.Measured[RmapPlan, Part, RmapOutcome]
Floats = npt.NDArray[np.float64]
ENDS = (5, 95)
"""The percentiles between which the range of traces lies."""


class Spread(NamedTuple):
    """What traces came to: their mean with its confidence interval, and the ends of the range
    within which 90 % of them are."""

    it: Interval
    low: float
    high: float

    @property
    def mean(self) -> float:
        return self.it.mean

    @property
    def of(self) -> int:
        return self.it.of

    def __bool__(self) -> bool:
        """Tells whether there are any traces."""
        return self.of > 0

    @property
    def values(self) -> dict[str, float]:
        return {**values_of(self.it), "5 % of traces": self.low, "95 % of traces": self.high}

    def place(self, printed: float) -> str:
        """Says where a printed value, of one trace, would be among ours."""
        inside = self.low <= printed <= self.high
        return "the printed one is within" if inside else "the printed one is outside"

    def near(self, printed: float, rounded: float = 0.0) -> bool:
        """Tells whether the interval of the mean comes near a printed value, of either sign."""
        return near(self.it, printed, rounded)

    def same_sign(self, printed: float) -> bool:
        """Tells whether all of the interval is on the side of 0 on which a printed value is."""
        return below(self.it, 0.0) if printed < 0 else above(self.it, 0.0)

    def verdict(self, printed: float, rounded: float = 0.0) -> Verdict:
        """Returns the verdict on a printed change."""
        return verdict(self.near(printed, rounded), self.same_sign(printed))


def spread(values: Floats) -> Spread:
    """Returns mean and range of the values that are there; of none of them, if there are none."""
    there = values[np.isfinite(values)]
    low, high = np.percentile(there, ENDS).tolist() if len(there) else (np.nan, np.nan)
    return Spread(interval(there.tolist()), low, high)


def of_cases(m: Measured, cases: Sequence[Traced], name: str, what: str) -> Floats:
    """Returns a number of the row of this name, case by case; NaN where it is not there."""
    rows = [
        m.outcomes[case.key].rows.get(name, {}) if case.key in m.outcomes else {} for case in cases
    ]
    return np.array([one.get(what, np.nan) for one in rows], np.float64)


@lru_cache(maxsize=256)
def traces(
    asked: RmapPlan, kind: str, choice: str | None = None, few: bool = False
) -> tuple[Traced, ...]:
    """Returns the cases of a kind, or the few of them on which choices are compared; they are kept,
    as finding their keys takes time."""
    seeds = asked.chosen_seeds if few else asked.seeds
    if kind in PATTERNS:
        return tuple(asked.random(kind, seed) for seed in seeds)
    if kind == QUEUED:
        return tuple(asked.queued(seed) for seed in seeds)
    return tuple(asked.traced(kind, seed) if choice is None else asked.chosen(kind, seed, choice)
                 for seed in seeds)  # fmt: skip


def each(m: Measured, kind: str, policy: str, bound_w: float, what: str = "turnaround_s") -> Floats:
    """Returns what was measured of every trace of a kind under a policy and bound."""
    return of_cases(m, traces(m.asked, kind), row(policy, bound_w), what)


def change(m: Measured, kind: str, policy: str, against: str, bound_w: float | None = None,
           over: Callable[..., Any] = np.mean) -> Floats:  # fmt: skip
    """Returns the change of every trace under a bound; None: the mean of those under all bounds up
    to 14,000 W, as the thesis has it, or what `over` makes of them. Of both random traces it is
    that of the two with one seed."""
    if kind == BOTH:
        return over([change(m, it, policy, against, bound_w, over)  # type: ignore[no-any-return]
                     for it in PATTERNS], axis=0)  # fmt: skip
    bounds = [it for it in m.asked.bounds_w if it <= HIGH_W] if bound_w is None else [bound_w]
    changes = [each(m, kind, policy, it) / each(m, kind, against, it) for it in bounds]
    if not changes:
        return np.full(m.asked.traces, np.nan)
    found: Floats = over(changes, axis=0) - 1.0
    return found


def chosen(m: Measured, kind: str, choice: str | None, policy: str, bound_w: float | None = None,
           what: str = "turnaround_s") -> Floats:  # fmt: skip
    """Returns what was measured of the traces on which choices are compared, under a bound (None:
    the lowest), where one of CHOICES is changed; None: where none is."""
    return of_cases(
        m, traces(m.asked, kind, choice, True), row(policy, bound_w or m.asked.low_w), what
    )


def there(m: Measured, case: Part) -> RmapOutcome | None:
    return m.of(case)


def claim(
    name: str, printed: str, ours: str, found: Spread, said: Verdict | None, source: str,
    cause: str, calibrated: bool = False, values: Mapping[str, float] | None = None,
) -> Claim:  # fmt: skip
    """Returns a claim about traces, with its cause where it does not hold."""
    why = "" if said in (None, Verdict.HOLDS) else cause
    return Claim(name, printed, ours, said, found.of, values or found.values, source, calibrated,
                 why)  # fmt: skip


# -- words


def signed(value: float) -> str:
    return f"{100 * value:+.1f} %"


def shown(found: Spread, printed: float | None = None) -> str:
    """Returns a change as text: the mean and its interval, the range of traces and, where a value
    is printed, whether it is within that."""
    place = "" if printed is None else f"; {found.place(printed)}"
    return (f"{signed(found.mean)[:-2]} ± {100 * found.it.half:.1f} % (traces "
            f"{100 * found.low:+.0f} .. {100 * found.high:+.0f}{place})")  # fmt: skip


def counted(found: Spread, printed: float | None = None, unit: str = "") -> str:
    """Returns a number as text, likewise."""
    place = "" if printed is None else f"; {found.place(printed)}"
    digits = 0 if found.mean >= 50 else 1
    return (f"{found.mean:.{digits}f} ± {found.it.half:.{digits}f}{unit} (traces "
            f"{found.low:.0f} .. {found.high:.0f}{place})")  # fmt: skip
