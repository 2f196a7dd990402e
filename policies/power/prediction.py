"""How time and power of an application are predicted from a few measurements.

For each application the logarithm of the time, and that of the power, is a polynomial of degree two
in the logarithms of nodes, cores and cap, with cross terms: ten coefficients, fitted by least
squares to a share of what was measured (Patki, section 5.4.2), which is drawn at **random** or is
**spread**: chosen one by one where the prediction is least certain, so that corners are among them.
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from policies.views import Choices, choices_of

Numbers = npt.NDArray[np.float64]
COEFFICIENTS = 10
MOST_W, MOST_LOG = 1e12, 35.0
"""No machine draws so much; and a prediction is between exp(-35) and exp(35) W or ticks."""
SAMPLINGS = ("random", "spread")


class Predicted(NamedTuple):
    """What is predicted for every choice, in their order; and which of them it was learned from."""

    watts: Numbers
    time: Numbers
    """In ticks."""
    trained: npt.NDArray[np.bool_]


def predict(
    name: str, choices: Choices, share: float = 0.1, seed: int = 1, sampling: str = "random"
) -> Predicted:
    """Returns what a model predicts that was trained on a share of the choices, or on ten of them
    if that is more; on all where there are fewer. The application's name and the seed say which,
    where these are drawn at random."""
    count, words = len(choices), (seed, zlib.crc32(name.encode()))
    size = min(count, max(COEFFICIENTS, round(share * count)))
    # In order of configurations, not of times: two measurements of one table train alike.
    by_configuration = np.lexsort((choices.cap_w, choices.cores, choices.nodes))
    terms = _terms(choices)
    if sampling == "spread":
        some = by_configuration[_spread(terms[by_configuration], size)]
    else:
        some = by_configuration[np.random.default_rng(words).permutation(count)[:size]]
    # What is measured on fewer points than there are coefficients has the smallest ones that fit.
    wanted = np.log(np.stack([choices.watts, choices.time.astype(np.float64)], axis=1)[some])
    found, *_ = np.linalg.lstsq(terms[some], wanted, rcond=1e-10)
    # Ten points may be met exactly by a polynomial that is beyond all reason elsewhere.
    watts, time = np.exp(np.clip(terms @ found, -MOST_LOG, MOST_LOG)).T
    trained = np.zeros(count, np.bool_)
    trained[some] = True
    return Predicted(watts, time, trained)


@lru_cache(maxsize=64)
def predicted_choices(
    name: str, choices: Choices, share: float = 0.1, seed: int = 1, sampling: str = "random"
) -> Choices:
    """Returns the choices with predicted times and watts in place of those that were measured."""
    found = predict(name, choices, share, seed, sampling)
    time = np.maximum(1, np.rint(found.time)).astype(np.int64)
    watts = np.minimum(found.watts, MOST_W)
    return choices_of(choices.nodes, choices.cores, choices.cap_w, watts, time)


def _spread(terms: Numbers, size: int) -> npt.NDArray[np.intp]:
    """Returns so many rows, each the one whose prediction is the least certain when the rows before
    it are known (a greedy D-optimal design); of equal ones, to nine digits, the first."""
    known = np.eye(terms.shape[1]) * 1e-6
    left, found = np.ones(len(terms), np.bool_), np.empty(size, np.intp)
    for at in range(size):
        doubt = ((terms @ np.linalg.inv(known)) * terms).sum(axis=1)
        doubt[~left] = -1.0
        best = int((doubt >= doubt.max() * (1.0 - 1e-9)).argmax())
        found[at], left[best] = best, False
        known += np.outer(terms[best], terms[best])
    return found


def _terms(choices: Choices) -> Numbers:
    """Returns the ten terms of each choice; logarithms count from the means, which changes the
    coefficients and not the prediction, and keeps rounding small."""
    columns = [np.log(np.asarray(it, np.float64))
               for it in (choices.nodes, choices.cores, choices.cap_w)]  # fmt: skip
    n, c, p = (column - column.mean() for column in columns)
    terms: Numbers = np.stack([np.ones_like(n), n, c, p, n * n, c * c, p * p, n * c, n * p, c * p],
                              axis=1)  # fmt: skip
    return terms
