"""Target, error, tracking rule, cost and saving of an hour of regulation: each defined once, as in
docs/demand-response.md.

The target of an interval is the average plus the part of the reserve that the signal names; the
error is what the machine is off it, to either side, as a part of the reserve.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]

W_PER_KW = 1000.0
SHARE, MEAN = QOS_RULES = "share", "mean"
HAIR = 1e-9
"""An error that exceeds the limit by no more than this does not: rounding may be all of it."""


class Qos(NamedTuple):
    """When a type keeps its QoS."""

    late: float = 0.1
    """Which part of its jobs may be at their threshold or beyond it."""
    rule: str = SHARE
    """MEAN: instead, the mean degradation of its jobs is to be below the threshold."""

    def kept(self, degradations: Numbers, threshold: float) -> bool:
        """Tells whether jobs of a type keep it, of which there is one at least."""
        if self.rule == MEAN:
            return bool(degradations.mean() < threshold)
        return bool((degradations >= threshold).sum() / len(degradations) <= self.late)

    def deciding(self, degradations: Numbers, margin: float = 0.0) -> float:
        """Returns the degradation that decides it: the mean or, of jobs of which so many may be
        late, the largest that counts. With a margin, it is that of a rule that is stricter by that
        part: of so many fewer late jobs, or of a mean that is so much larger."""
        if self.rule == MEAN:
            return float(degradations.mean()) / (1.0 - margin)
        may = math.floor(self.late * (1.0 - margin) * len(degradations) + HAIR)
        return largest(degradations, may)


def largest(values: Numbers, beyond: int) -> float:
    """Returns the largest value but for so many; 0 where there are no more."""
    if len(values) <= beyond or not math.isfinite(values[0]):
        return 0.0
    at = len(values) - 1 - beyond
    return float(np.partition(values, at)[at])


def target_w(average_w: Any, reserve_w: Any, signal: Any) -> Any:
    """Returns what a machine is to draw, in W, numbers or arrays: of an interval with the mean of
    the signal in it."""
    return average_w + reserve_w * signal


def errors(power_w: Any, target_w: Any, reserve_w: Any) -> Numbers:
    """Returns the error of each interval, nan where nothing was offered; each of the three is a
    number or an array."""
    power_w, target_w, reserve_w = np.broadcast_arrays(*(
        np.asarray(each, np.float64) for each in (power_w, target_w, reserve_w)
    ))  # fmt: skip
    found = np.full(power_w.shape, math.nan)
    np.divide(np.abs(power_w - target_w), reserve_w, out=found, where=reserve_w > 0.0)
    return found


def mean_error(errors: Any) -> float:
    """Returns the mean of the errors that there are; nan where there is none."""
    there = _there(errors)
    return float(there.mean()) if len(there) else math.nan


def is_bad(error: Any, limit: float) -> Any:
    """Tells whether the error of an interval is above the limit, a number or an array."""
    return error > limit + HAIR


def bad_share(errors: Any, limit: float) -> float:
    """Returns the share of intervals whose error is above the limit, of those that have one; nan
    where none has."""
    there = _there(errors)
    return int(is_bad(there, limit).sum()) / len(there) if len(there) else math.nan


def keeps_rule(errors: Any, limit: float, share: float) -> bool:
    """Tells whether the share of bad intervals is below `share`, which exactly that share is not.
    Where nothing was offered there is no rule to break."""
    return not breaks_rule(bad_share(errors, limit), share)


def breaks_rule(bad: float, share: float) -> bool:
    """Tells whether an hour breaks the tracking rule of which this share of intervals is bad; nan
    where there are none, which break none."""
    return bad >= share


def cost(
    average_w: float,
    reserve_w: float,
    error_mean: float,
    hours: float,
    energy_price: float,
    reserve_price: float,
    error_price: float,
    violated: bool = False,
    violation: float = 0.0,
) -> float:
    """Returns what an hour costs, or so many `hours` of one bid: the average is paid, the reserve
    is earned, the error is paid, and `violation` if the tracking rule was broken. Prices are per
    kWh and per kW and hour. Below 0, money was earned. Without a reserve the error does not count.
    """
    energy = energy_price * average_w
    earned = reserve_price * reserve_w
    missed = error_price * reserve_w * error_mean if reserve_w > 0.0 else 0.0
    return (energy - earned + missed) / W_PER_KW * hours + (violation if violated else 0.0)


def saving(cost: float, average_w: float, hours: float, energy_price: float) -> float:
    """Returns which part of the price of the average was saved: above 1 where money was earned. It
    is nan where the average cost nothing, or less."""
    paid = energy_price * average_w / W_PER_KW * hours
    return 1.0 - cost / paid if paid > 0.0 else math.nan


def _there(errors: Any) -> Numbers:
    every = np.asarray(errors, np.float64).ravel()
    return every[~np.isnan(every)]
