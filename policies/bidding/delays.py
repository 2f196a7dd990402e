"""How long jobs wait in a machine whose power follows a signal, and the most reserve that keeps the
waits short.

The model is that of Zhang 2021, section 2.4. Each kind of job has a queue of its own and a fixed
weight, its share of the servers that work. Jobs of a kind come at random, at `rate` a second, and
each brings its `work`: servers × seconds at full power. The servers that work follow the signal:
their number is normal, with mean `n_mu` and standard deviation `n_sigma`, drawn anew each second.
Then the share of a kind's jobs that wait `delay` seconds or longer falls as
alpha · exp(-delay · theta), for long delays. `theta_star` is that theta, per second.

Two things that the model leaves out make real waits longer: a signal remembers where it was for
about a minute, and no more servers can work than there are. Alpha, which is fitted to a simulated
hour, has to make up for both.

Read `theta_star`, then `least_weights`, which turns it around, then `weights_for` and
`largest_reserve`. All are plain functions of numbers or arrays; powers are in watts, times in
seconds.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Given = npt.ArrayLike

STABLE = 1 + 1e-6
"""A kind needs at least this times the weight at which the work that comes is just what can be
done, even if its jobs may wait for long: at that weight itself its queue would grow."""

FEWEST = 5
"""Alpha is not fitted to fewer jobs."""

HALVINGS = 40
"""How often the range of reserves is halved: to a part in 10¹²."""


class Kinds(NamedTuple):
    """The kinds of jobs that come, one entry of each array for each."""

    rate: Numbers
    """Jobs per second."""
    work: Numbers
    """Server-seconds that a job takes at full power."""
    watts: Numbers
    """What a server draws at full power."""
    delay_rate: Numbers
    """The least theta, per second: see `delay_rate`."""


class Served(NamedTuple):
    """How many servers work while the machine follows its target: a normal variable."""

    n_mu: float
    """Its mean."""
    n_sigma: float
    """Its standard deviation."""


class Fall(NamedTuple):
    """How fast the share of jobs that wait longer falls with the wait: see `fall`."""

    theta: Numbers
    """By which part per second."""
    equal: Numbers
    """work·t at the t > 0 where service and work are equal, if theta is reached there; else nan."""
    top: npt.NDArray[np.bool_]
    """Whether theta is reached at the top of the parabola."""


class Tail(NamedTuple):
    """What alpha is fitted to: the longest waits of an hour, see `tail_of`."""

    log_share: float
    """The mean of ln S(d), where S(d) is the share of all jobs that waited at least d."""
    delay_s: float
    """The mean of these d, with the same weights."""

    def alpha(self, theta: float) -> float:
        """Returns alpha, theta being known."""
        return math.exp(min(self.log_share + theta * self.delay_s, 700.0))


class Shares(NamedTuple):
    """How the servers that work are divided."""

    weights: Numbers
    """The weights to use: the least ones, all scaled by one factor so that they sum to 1."""
    least: Numbers
    """The least weight that each kind needs where these weights are used."""
    served: Served
    """The servers that work where these weights are used."""

    @property
    def total(self) -> float:
        """Returns the sum of the least weights."""
        return float(self.least.sum())

    @property
    def enough(self) -> bool:
        """Says whether each kind has its least weight. Where not, no other weights do better."""
        return self.total <= 1


class Offer(NamedTuple):
    """A reserve and the weights that go with it."""

    reserve_w: float
    shares: Shares


def served(average_w: float, reserve_w: float, weights: Given, watts: Given, nodes: int,
           idle_w: float, spread: float) -> Served:  # fmt: skip
    """Returns how many servers work, of those of a machine, so that it draws its target. `spread`
    is the standard deviation of the signal (0.40 in the paper)."""
    more_w = float(np.asarray(weights, float) @ np.asarray(watts, float)) - idle_w
    return Served((average_w - nodes * idle_w) / more_w, spread * reserve_w / more_w)


def theta_star(rate: Given, work: Given, weight: Given, n_mu: Given, n_sigma: Given) -> Numbers:
    """Returns how fast the share of jobs that wait longer falls with the wait, per second: theta
    of `fall`, which says what it is."""
    return fall(rate, work, weight, n_mu, n_sigma).theta


def fall(rate: Given, work: Given, weight: Given, n_mu: Given, n_sigma: Given) -> Fall:
    """Returns how fast the share of jobs that wait longer falls with the wait, and where the
    supremum that says so is reached.

    Theta is the supremum of n_mu·w·t - (n_sigma·w·t)²/2 over all t ≥ 0 at which that exceeds
    rate·(exp(work·t) - 1). It is reached at the top of the parabola, if that is one of them, or
    where the two are equal. It is 0 where more work comes than can be done, so that the queue grows
    for ever, and infinite where none comes.
    """
    rate, work, weight, n_mu, n_sigma = np.broadcast_arrays(
        *(np.asarray(each, float) for each in (rate, work, weight, n_mu, n_sigma))
    )
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        load = n_mu * weight / (rate * work)
        bend = (n_sigma * weight / work) ** 2 / rate
        top, height = load / bend, (n_mu / n_sigma) ** 2 / 2
    theta = np.where(rate * work > 0, 0.0, np.inf)
    equal = np.full_like(theta, np.nan)
    stable = (load > 1) & (theta == 0)
    root = _root(load[stable], bend[stable])
    below = root < top[stable]
    with np.errstate(over="ignore"):
        theta[stable] = np.where(below, rate[stable] * np.expm1(root), height[stable])
    equal[stable] = np.where(below, root, np.nan)
    return Fall(theta, equal, stable & np.isnan(equal))


def _root(load: Numbers, bend: Numbers) -> Numbers:
    """Returns the x > 0 at which exp(x) - 1 = load·x - bend·x²/2, for load > 1 and bend ≥ 0.

    The difference of the two is convex, so that Newton's method from above comes down to the root;
    where rounding leads it out of the bracket, the bracket is halved.
    """
    low = np.zeros_like(load)
    # As (exp(x) - 1)/x is at least exp(x/2), and at least 1 + x/2.
    high = np.minimum(2 * np.log(load), 2 * (load - 1) / (1 + bend))
    high = np.minimum(high, np.log1p(load * high))
    at, close = high, 1e-13 + 1e-15 / (load - 1)  # what rounding leaves certain
    for _ in range(100):
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            off = np.expm1(at) - load * at + bend * at * at / 2
            slope = np.exp(at) - load + bend * at
            down = at - off / slope
        found = np.abs(down - at) <= close * at
        low, high = np.where(off < 0, at, low), np.where(off < 0, high, at)
        inside = (low <= down) & (down <= high)
        at = np.where(found, at, np.where(inside, down, (low + high) / 2))
        if found.all():
            break
    return np.asarray(at)


def tail(theta: Given, alpha: Given, delay: Given) -> Numbers:
    """Returns the share of jobs that wait so many seconds or longer."""
    theta, alpha, delay = (np.asarray(each, float) for each in (theta, alpha, delay))
    with np.errstate(invalid="ignore", under="ignore"):
        falls = np.where(delay > 0, np.exp(-delay * theta), 1.0)
    return np.asarray(np.minimum(1.0, alpha * falls))


def fit_alpha(delays: Given, theta: float, counts: Given | None = None) -> float | None:
    """Returns alpha of a kind from how long its jobs waited in an hour, theta being known; None
    where `tail_of` is: then the last alpha stands."""
    found = tail_of(delays, counts)
    return None if found is None else found.alpha(theta)


def tail_of(delays: Given, counts: Given | None = None) -> Tail | None:
    """Returns what alpha is fitted to, from how long the jobs of a kind waited in an hour; None
    where fewer than five jobs are given, or none of them waited.

    `delays` are seconds, and `counts` how many jobs waited just so long (one each, if left out). At
    each delay d, S(d) is the share of all jobs that waited at least d. Of the jobs that waited at
    all, those that waited longest, half of them, are used: ln alpha is the mean of ln S(d) +
    theta·d at their delays, each weighted by the number of jobs that S(d) counts, because ln S(d)
    is the surer the more they are.
    """
    seconds = np.asarray(delays, float).ravel()
    jobs = np.ones(len(seconds)) if counts is None else np.asarray(counts, float).ravel()
    seconds, where = np.unique(seconds[jobs > 0], return_inverse=True)
    jobs = np.bincount(where, jobs[jobs > 0], len(seconds))
    longer = jobs[::-1].cumsum()[::-1]
    waited = seconds > 0
    if not waited.any() or longer[0] < FEWEST:
        return None
    used = waited & (longer <= max(longer[waited][0] / 2, longer[-1]))
    logs = np.log(longer[used] / longer[0])
    return Tail(*(float(np.average(each, weights=longer[used])) for each in (logs, seconds[used])))


def delay_rate(alpha: Given, late: Given, threshold: Given, shortest_s: Given) -> Numbers:
    """Returns the least theta, per second, with which at most the share `late` of a kind's jobs
    waits longer than `threshold` times the time they take at full power. Where it is 0 or less,
    no wait is too long: alpha is at most `late`."""
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = np.log(np.asarray(alpha, float) / np.asarray(late, float))
        found = excess / (np.asarray(threshold, float) * np.asarray(shortest_s, float))
    return np.where(excess == 0, 0.0, found)


def least_weights(rate: Given, work: Given, delay_rate: Given, n_mu: Given,
                  n_sigma: Given) -> Numbers:  # fmt: skip
    """Returns the least weight of each kind with which its theta is at least `delay_rate`, and with
    which its queue does not grow for ever. It is infinite where no weight does, because too many
    servers come and go (n_sigma > n_mu/√(2·delay_rate)) or none works; it is 0 where no job comes.

    What matters is only the product of weight and servers: with both n_mu and n_sigma twice as
    large, half the weights do.
    """
    rate, work, least, n_mu, n_sigma = np.broadcast_arrays(
        *(np.asarray(each, float) for each in (rate, work, delay_rate, n_mu, n_sigma))
    )
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        rest = n_mu**2 - np.where(least > 0, 2 * least * n_sigma**2, 0.0)
        middle = (n_mu + np.sqrt(rest)) / 2
        parts = np.maximum(least, 0.0) / rate
        more = np.where(parts > 0, parts / np.log1p(parts), 1.0)
        found = np.maximum(more / middle, STABLE / n_mu) * rate * work
    found = np.where((n_mu > 0) & (rest >= 0), found, np.inf)
    return np.asarray(np.where(rate * work > 0, found, 0.0))


def weights_for(average_w: float, reserve_w: float, kinds: Kinds, nodes: int, idle_w: float,
                spread: float) -> Shares | None:  # fmt: skip
    """Returns the weights with which each kind waits no longer than it may, at an average and a
    reserve; None where too many servers come and go for that, whatever the weights, or where no
    server works. Whether they suffice, the answer says (`enough`).

    The least weights depend on the number of servers that work, that on what the kinds draw, and
    that on the weights. No iteration is needed: the least weights are D times numbers that do not
    depend on D, where D = sum of w·watts - idle_w, in watts, is what a server draws more because it
    works. What the least weights leave of 1 is shared in proportion to them, so all are scaled by
    one factor, D follows from the scaled ones, and the least ones from D. Their sum is then that of
    number × (watts - idle_w) over all kinds, and it is at most 1 just where any weights at all that
    sum to 1 suffice: how the rest is shared does not decide it.
    """
    if not np.all(kinds.watts > idle_w):
        raise ValueError(f"watts = {kinds.watts}: a server that works draws more than an idle one, "
                         f"{idle_w:g} W")  # fmt: skip
    above, swing = average_w - nodes * idle_w, spread * reserve_w
    per_watt = least_weights(kinds.rate, kinds.work, kinds.delay_rate, above, swing)
    if above <= 0 or not np.all(np.isfinite(per_watt)):
        return None
    needed = per_watt.sum()
    weights = per_watt / needed if needed else np.full(len(per_watt), 1 / len(per_watt))
    least = per_watt * (float(weights @ kinds.watts) - idle_w)
    how = served(average_w, reserve_w, weights, kinds.watts, nodes, idle_w, spread)
    return Shares(weights, least, how)


def largest_reserve(average_w: float, kinds: Kinds, nodes: int, idle_w: float,
                    spread: float) -> Offer | None:  # fmt: skip
    """Returns the largest reserve, in watts, with which each kind waits no longer than it may, and
    its weights; None where no reserve above 0 does.

    The reserve is also such that the machine can draw what is asked for: at least all idle, at most
    all at the power of the kind that draws most. So it is never larger than the average.
    """
    most_w = nodes * float(kinds.watts.max())
    low, high = 0.0, float(min(most_w - average_w, average_w - nodes * idle_w))
    if high <= 0:
        return None

    def enough(reserve_w: float) -> bool:
        found = weights_for(average_w, reserve_w, kinds, nodes, idle_w, spread)
        return found is not None and found.enough

    if enough(high):
        low = high
    else:
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if enough(middle) else (low, middle)
    shares = weights_for(average_w, low, kinds, nodes, idle_w, spread)
    return Offer(low, shares) if low > 0 and shares is not None else None


def averages(nodes: int, idle_w: float, most_w: float, step: float = 0.01) -> Numbers:
    """Returns the averages to try, in watts, from low to high: each `step` of the way from all
    servers idle to all drawing `most_w`. The two ends are left out, as there is no room for a
    reserve there."""
    steps = math.ceil(1 / step - 1e-9)
    return nodes * idle_w + nodes * (most_w - idle_w) * step * np.arange(1.0, steps)
