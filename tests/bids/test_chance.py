"""The chance of an event: its interval, and what it foretells."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from odonata.bids.chance import Chance


@pytest.mark.parametrize(("seen", "trials"), [(0, 20), (1, 20), (11, 200), (20, 400), (20, 20)])
def test_the_interval_is_that_of_clopper_and_pearson(seen: int, trials: int) -> None:
    known = binomtest(seen, trials).proportion_ci(0.95, "exact")
    assert Chance(seen, trials).interval == pytest.approx((known.low, known.high))
    one_sided = binomtest(seen, trials, alternative="less").proportion_ci(0.95, "exact")
    assert Chance(seen, trials).below == pytest.approx(one_sided.high)


@pytest.mark.parametrize("chance", [0.01, 0.05, 0.1, 0.3])
def test_what_is_foretold_comes_true_as_often_as_it_says(chance: float) -> None:
    """Exactly, over all that may be seen in 400 trials, and then in 200 more."""
    seen = np.arange(401)
    some = binom.pmf(seen, 400, chance)
    likely = seen[some > 1e-9]
    held = 0.0
    for each in likely.tolist():
        least, most = Chance(each, 400).next(200)
        later = binom.cdf(most, 200, chance) - binom.cdf(least - 1, 200, chance)
        held += some[each] * later
    assert 0.94 <= held <= 0.985
