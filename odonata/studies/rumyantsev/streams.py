"""Customers other than those that were recorded: a stream whose customers are independent of each
other, for which it is known when the queue is stable.

Customers who arrive as a Poisson process, with exponential job amounts of mean S and
numbers of servers N that are independent, need under first come, first served

    arrivals per unit of time < rate / (S · E[1 / J])

where J is how many customers in a row fit into the servers (A. Rumyantsev, E. Morozov, *Stability
criterion of a multiserver model with simultaneous service*, Annals of Operations Research, 2017, to
which the paper refers): while somebody always waits, J of them are served and one leaves every
S / (J · rate) on average.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from odonata.traces.changing import filled
from odonata.traces.distributions import Exponential, SizesAmong
from odonata.traces.poisson import poisson
from odonata.traces.trace import SECOND, Trace

MANY = 20_000
"""The customers of a stream in which they are independent."""


def mean_inverse_fitting(weights: npt.NDArray[np.float64], servers: int) -> float:
    """Returns E[1 / J], where J customers in a row fit into the servers and the next one does not;
    `weights` [number of servers, from 0] are the shares of customers. Nobody needs more servers
    than there are."""
    found, before, sums = 0.0, 1.0, np.array([1.0])
    for many in range(1, servers + 2):
        sums = np.convolve(sums, weights)[: servers + 1]
        fit = float(sums.sum())  # the chance that so many fit
        if many > 1:
            found += (before - fit) / (many - 1)
        before = fit
    return found


def shares_of(trace: Trace, servers: int) -> npt.NDArray[np.float64]:
    """Returns the share of customers by number of servers."""
    return np.bincount(trace.nodes, minlength=servers + 1) / len(trace)


def boundary_per_s(trace: Trace, servers: int, rate: float) -> float:
    """Returns the arrivals per second below which a queue of such customers is stable."""
    amount_s = float(trace.run_us.mean()) / SECOND
    return rate / (amount_s * mean_inverse_fitting(shares_of(trace, servers), servers))


def independent(trace: Trace, servers: int, rate: float, load: float, seed: int) -> Trace:
    """Returns customers like those of a trace, independent of each other, so many times as often as
    the boundary for this rate."""
    mean_s = float(trace.run_us.mean()) / SECOND
    shares = shares_of(trace, servers)
    sizes = np.flatnonzero(shares)
    of = SizesAmong(tuple(sizes.tolist()), tuple(shares[sizes].tolist()))
    per_s = load * boundary_per_s(trace, servers, rate)
    return filled(poisson(MANY, servers, load=per_s * of.mean * mean_s / servers, seed=seed,
                          sizes=of, runs=Exponential(mean_s)))  # fmt: skip
