"""Whether what a run measured is of a steady state: one judgement for all commands.

It sees the flows of the network over time (`odonata.agents.flows`): what was generated, injected
and delivered in each of some hundred spans, and the latencies of the packets generated in each.
These are four series:

| series | what it is |
|---|---|
| accepted | what is delivered per span |
| under way | what was generated and is not delivered: in source queues and in the network |
| in the network | what was injected and is not delivered |
| latency | mean latency of the packets generated in a span, where 99 % of them have arrived |

**Warm-up** is found by MSER-5: the truncation, within the first half, that minimises the squared
standard error of the mean of what is left, over batches of five (K. P. White, "An effective
truncation heuristic for bias reduction in simulation output", Simulation 69(6), 1997; with batches
of five: White, Cobb and Spratt, WSC 2000). It is the later of those of the accepted load and of the
latency. What is judged is the measurement from there on.

**Drift** is the mean of the second half of what is judged, less that of the first, over the mean of
both. It counts where it is above a tolerance, and where chance explains it with a probability below
LEVEL: a t-test on the means of BATCHES batches in each half. Batches of what is under way are not
independent where they are shorter than the time that a packet stays, as they have packets in
common; the test allows for that (`chance`). What is accepted falls short of what is offered by
exactly the growth of what is under way, so that one test is for both.

The verdicts: **steady** (neither latency nor what is under way drifts, and the mean latency that is
reported is that of what is judged), **saturated** (what is under way grows, and neither what is in
the network nor the accepted load drifts: the network is full, accepts less than is offered, and
source queues grow), **not settled** (anything else: the network still fills, or its latency still
changes), **too short** (too little was measured to tell). Of the last three no latency is a mean of
a steady state, and of the last two no throughput is. Traffic of so many messages, all of which have
arrived, is **finite**: its means are of all of them, whatever the state. **Not judged** is what has
no flows, or jobs, which come and go.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from odonata.agents.layout import (
    F_ARRIVED,
    F_DELIVERED,
    F_GENERATED,
    F_INJECTED,
    F_LATENCY,
    F_PACKETS,
)

if TYPE_CHECKING:
    from odonata.agents.network import Network
    from pdes.events import Rows

Floats = npt.NDArray[np.float64]

STEADY, SATURATED, UNSETTLED, SHORT = "steady", "saturated", "not settled", "too short"
FINITE, UNJUDGED = "finite", "not judged"
MARKED = (SATURATED, UNSETTLED, SHORT)
"""Verdicts on runs of which no latency is a mean of a steady state."""
TOLERANCE = 0.05
"""The fraction by which latency and contents may drift: the mean is then within half of this of
either half's."""
ACCEPTED_TOLERANCE = 0.02
"""The fraction by which the accepted load may drift, which has less noise than the others."""
BATCHES = 8
"""Batches in each half of what is judged."""
LEVEL = 0.001
"""The significance level of each test for drift: how often it finds one where there is none."""
TESTS = 3
"""Tests that can call a steady run not settled: for drift of what is under way, for the shortfall,
and for drift of the latency."""
QUANTILES = (
    636.6, 31.60, 12.92, 8.610, 6.869, 5.959, 5.408, 5.041, 4.781, 4.587, 4.437, 4.318, 4.221,
    4.140,
)  # fmt: skip
"""Standard errors that chance is allowed at LEVEL: quantiles of Student's t, for both sides, with
1, 2, ... 2 * BATCHES - 2 degrees of freedom."""
BLIND = 0.25
"""Where chance could hide a drift of latency as large as this, nothing can be said."""
PACKETS = 10
"""Packets that are generated in a span, on the average; spans are added up until there are."""
ARRIVED = 0.99
"""The fraction of a span's packets that have to have arrived for their mean latency to count."""
BATCH = 5
"""Spans in a batch of MSER-5."""


@dataclass(frozen=True)
class Steadiness:
    """A verdict, and why. Drifts are fractions of the mean; None where nothing was judged."""

    verdict: str
    why: str
    warmup_ns: float | None = None
    """The warm-up that the data show."""
    shortfall: float | None = None
    """The fraction of the offered load that was not accepted."""
    latency_drift: float | None = None
    """None also where too few of the packets have arrived."""
    under_way_drift: float | None = None
    in_network_drift: float | None = None
    accepted_drift: float | None = None

    @property
    def marked(self) -> bool:
        """Tells whether latencies are not means of a steady state, and are to be marked so."""
        return self.verdict in MARKED

    @property
    def settled(self) -> bool:
        """Tells whether the accepted load is that of a steady state."""
        return self.verdict in (STEADY, SATURATED)


UNKNOWN = Steadiness(UNJUDGED, "its flows are known when it has ended, and not of older runs")
WITH_JOBS = Steadiness(UNJUDGED, "jobs come and go, so that nothing has to be steady")


class Drift(NamedTuple):
    """A drift, and what of it chance explains, both as fractions of the mean; `excused`, it may be
    due to chance."""

    drift: float
    chance: float
    excused: bool = True

    def beyond(self, tolerance: float) -> bool:
        return abs(self.drift) > max(tolerance, self.chance if self.excused else 0.0)


def of_run(
    network: Network, flows: Rows | None, span_ps: int, time_ps: int, mean_latency_ps: float
) -> Steadiness:
    """Returns the judgement of a run that has reached a time, in ps, with the mean latency that it
    reports. `flows` are None where they are not known."""
    if network.workload is not None:
        return WITH_JOBS
    if not network.traffic or flows is None:
        return UNKNOWN
    under_way = int(flows[:, F_GENERATED].sum() - flows[:, F_DELIVERED].sum())
    if all(traffic.messages is not None for traffic in network.traffic) and not under_way:
        return Steadiness(FINITE, "every node sends so many messages, and all have arrived")
    ends, stops = [time_ps], [it.stop_ps for it in network.traffic if it.stop_ps is not None]
    if len(stops) == len(network.traffic):  # until the last stops, something is offered
        ends.append(max(stops))
    if network.measure_ps is not None:
        ends.append(network.warmup_ps + network.measure_ps)
    return judge(flows, span_ps, network.warmup_ps, min(ends), mean_latency_ps)


def judge(
    flows: Rows, span_ps: int, start_ps: int, end_ps: int, mean_latency_ps: float
) -> Steadiness:
    """Returns the judgement of a measurement from `start_ps` to `end_ps` that reports this mean
    latency, given the flows by span and word from time 0."""
    flows, span_ps = _with_packets(flows[: end_ps // span_ps], span_ps)
    if len(flows) < 4 * BATCHES or start_ps >= end_ps:
        return Steadiness(SHORT, f"{int(flows[:, F_PACKETS].sum()):,} packets in {len(flows)} "
                          "spans: too few to tell")  # fmt: skip
    seen = _Seen.of(flows)
    truncated = [mser5(seen.accepted), mser5(_means(seen.latency, seen.arrived))]
    warmup, first = max(truncated), min(-(-start_ps // span_ps), len(flows) - 2 * BATCHES)
    begin = min(max(first, warmup), len(flows) - 2 * BATCHES)
    judged = _judged(seen, span_ps, warmup, first, begin, mean_latency_ps, True)
    if begin > warmup or warmup < half(len(flows)):
        return judged
    # MSER-5 finds no end of a warm-up within the first half. So the beginning of what is judged may
    # be part of it, and what looks like chance there need not be.
    strict = _judged(seen, span_ps, warmup, first, begin, mean_latency_ps, False)
    if judged.verdict == STEADY != strict.verdict:
        return replace(
            strict, verdict=SHORT, why=f"no warm-up ends in its first half; {strict.why}"
        )
    return strict


def _judged(
    seen: _Seen, span_ps: int, warmup: int, first: int, begin: int, mean_latency_ps: float,
    excused: bool,
) -> Steadiness:  # fmt: skip
    """Returns the judgement from span `begin` on of what was measured from `first` on, after a
    warm-up of so many spans; chance is an excuse for drifts, or not."""
    grows, fills, flow = seen.drifts(begin, excused)
    late, short = seen.latency_drift(begin, excused), seen.shortfall(begin)
    found = (warmup * span_ps / 1e3, short.drift, None if late is None else late.drift,
             grows.drift, fills.drift, flow.drift)  # fmt: skip

    us = warmup * span_ps / 1e6
    after = f"that after a warm-up of {us:,.3g} us, which traffic.warmup has to leave out"
    warming = "its {1} is {0:+.1%} off " + after
    off = float(seen.accepted[first:].mean() / max(1.0, float(seen.accepted[begin:].mean()))) - 1

    def unsettled(why: str) -> Steadiness:
        return Steadiness(UNSETTLED, why, *found)

    if grows.beyond(TOLERANCE) or short.beyond(ACCEPTED_TOLERANCE):
        of_it = f"{1 - short.drift:.1%} of what is offered is accepted"
        for it, tolerance, words in ((fills, TOLERANCE, "what is in the network"),
                                     (flow, ACCEPTED_TOLERANCE, "the accepted load")):  # fmt: skip
            if it.beyond(tolerance):
                return unsettled(f"{words} still changes, by {it.drift:+.1%}; {of_it}")
        if grows.drift > 0 and grows.beyond(TOLERANCE):
            if abs(off) > ACCEPTED_TOLERANCE:
                return unsettled(warming.format(off, "throughput"))
            return Steadiness(SATURATED, f"{of_it}, and source queues grow", *found)
        return unsettled(f"what is under way still changes, by {grows.drift:+.1%}; {of_it}")
    if late is None:
        return unsettled("too few of the measured packets have arrived")
    if late.beyond(TOLERANCE):
        return unsettled(f"the latency still changes, by {late.drift:+.1%}")
    if late.chance > BLIND:
        return Steadiness(
            SHORT, f"chance may hide a change of the latency by {late.chance:.0%}", *found
        )
    settled_ps = max(1.0, seen.mean_latency_ps(begin))
    by_chance = max(TOLERANCE, flow.chance / 2 if excused else 0.0)  # of one mean, not two halves'
    part = seen.accepted_part(first) / max(1e-9, seen.accepted_part(begin)) - 1
    for apart, least, words in ((mean_latency_ps / settled_ps - 1, TOLERANCE, "mean latency"),
                                (off, by_chance, "throughput"),
                                (part, TOLERANCE, "throughput, per offered load,")):  # fmt: skip
        if abs(apart) > least:
            return unsettled(warming.format(apart, words))
    return Steadiness(STEADY, f"latency changes by {late.drift:+.1%}, what is under way by "
                      f"{grows.drift:+.1%}", *found)  # fmt: skip


class _Seen(NamedTuple):
    """The series that are judged, by span; of latencies those up to the last span whose packets
    have arrived: their sum, and of how many."""

    generated: Floats
    accepted: Floats
    under_way: Floats
    inside: Floats
    latency: Floats
    arrived: Floats

    @classmethod
    def of(cls, flows: Rows) -> _Seen:
        every = flows.astype(np.float64).T
        generated, accepted = every[F_GENERATED], every[F_DELIVERED]
        whole = np.flatnonzero(every[F_ARRIVED] >= ARRIVED * every[F_PACKETS]).max(initial=-1) + 1
        return cls(
            generated, accepted, np.cumsum(generated - accepted),
            np.cumsum(every[F_INJECTED] - accepted), every[F_LATENCY][:whole],
            every[F_ARRIVED][:whole],
        )  # fmt: skip

    def drifts(self, begin: int, excused: bool) -> tuple[Drift, Drift, Drift]:
        """Returns the drifts from a span on: of what is under way, of what is in the network, and
        of the accepted load; chance is an excuse, or not."""
        stay = self.stay(begin)
        return (
            drift(self.under_way[begin:], None, excused, stay),
            drift(self.inside[begin:], None, excused, stay),
            drift(self.accepted[begin:], None, excused),
        )

    def stay(self, begin: int) -> float:
        """Returns the mean time of a packet in the network, in spans, from a span on: by Little's
        law what is in the network, over what leaves it per span."""
        return float(self.inside[begin:].sum() / max(1.0, float(self.accepted[begin:].sum())))

    def latency_drift(self, begin: int, excused: bool) -> Drift | None:
        """Returns the drift of the latency, None where too few packets have arrived."""
        if len(self.latency) - begin < 2 * BATCHES:
            return None
        return drift(self.latency[begin:], self.arrived[begin:], excused)

    def shortfall(self, begin: int) -> Drift:
        """Returns the fraction of the offered load that is not accepted, from a span on. Its chance
        is that of the means of batches, which are less than independent: if more is accepted in
        one, less is in the next."""
        missing = _batches(self.generated[begin:] - self.accepted[begin:]).reshape(-1)
        offered = max(1.0, float(_batches(self.generated[begin:]).mean()))
        error = float(missing.std(ddof=1)) / math.sqrt(missing.size)
        return Drift(float(missing.mean()) / offered, QUANTILES[-1] * error / offered)

    def accepted_part(self, begin: int) -> float:
        """Returns which part of the offered load is accepted, from a span on. How much happens to
        be offered has no part in it."""
        return float(self.accepted[begin:].sum() / max(1.0, float(self.generated[begin:].sum())))

    def mean_latency_ps(self, begin: int) -> float:
        return float(self.latency[begin:].sum() / max(1.0, float(self.arrived[begin:].sum())))


def mser5(values: Floats) -> int:
    """Returns the warm-up of a series by MSER-5: how many of its values are left out, at most half.

    >>> mser5(np.array([9.0] * 10 + [1.0, 2.0] * 20))
    10
    """
    batches = len(values) // BATCH
    if batches < 2:
        return 0
    means = values[: batches * BATCH].reshape(batches, BATCH).mean(axis=1)
    means = means - means.mean()  # so that little is lost where squares are subtracted
    left = np.arange(batches, 0, -1)
    sums = np.cumsum(means[::-1])[::-1]
    squares = np.cumsum(means[::-1] ** 2)[::-1]
    errors = (squares - sums**2 / left) / left**2
    return BATCH * int(np.argmin(errors[: half(len(values)) // BATCH + 1]))


def half(spans: int) -> int:
    """Returns the most that MSER-5 leaves out of so many values."""
    return BATCH * (spans // BATCH // 2)


def drift(
    sums: Floats, counts: Floats | None = None, excused: bool = True, stay: float = 0.0
) -> Drift:
    """Returns the drift of a series, or of a ratio of two sums: from the first half to the second,
    each of BATCHES batches. Of what is under way, a packet is part for `stay` spans."""
    over = _batches(sums)
    under = _batches(np.ones_like(sums) if counts is None else counts)
    middle = float(over.sum() / max(1.0, float(under.sum())))
    if middle <= 0:
        return Drift(0.0, 0.0, excused)
    halves = over.sum(axis=1) / np.maximum(under.sum(axis=1), 1)
    by_chance = chance(over / np.maximum(under, 1), stay / (len(sums) // (2 * BATCHES)))
    return Drift(float(halves[1] - halves[0]) / middle, by_chance / middle, excused)


def chance(means: Floats, stay: float = 0.0) -> float:
    """Returns by how much two halves (rows) of BATCHES means each differ with a probability of
    LEVEL where nothing drifts. Of what is under way, a packet is part for `stay` batches.

    The noise is estimated from the differences of successive means within each half, less their
    mean, so that neither growth nor other gradual change is taken for noise (J. von Neumann et al.,
    "The mean square successive difference", Annals of Mathematical Statistics 12(2), 1941). With C
    the covariances of batches (up to a factor), y'Qy the sum of squares of these differences, and h
    the difference of halves, that sum is tr(QC) on the average and the variance of the difference
    is h'Ch: the one is estimated from the other. Its degrees of freedom are tr(QC)² / tr(QCQC)
    (F. E. Satterthwaite, "An approximate distribution of estimates of variance components",
    Biometrics Bulletin 2(6), 1946), rounded down: 9 where batches are independent.
    """
    steps = np.kron(np.eye(2), np.diff(np.eye(BATCHES), axis=0))
    steps -= steps.mean(axis=0)
    halves = np.repeat((-1 / BATCHES, 1 / BATCHES), BATCHES)
    covariances = _covariances(2 * BATCHES, stay)
    both = steps @ covariances @ steps.T
    expected = float(np.trace(both))
    freedom = int(expected**2 / float((both**2).sum()) + 1e-6)
    squares = float(((steps @ means.reshape(-1)) ** 2).sum())
    variance = squares * float(halves @ covariances @ halves) / expected
    return QUANTILES[max(1, freedom) - 1] * math.sqrt(variance)


def _covariances(count: int, stay: float) -> Floats:
    """Returns the covariances of the means of so many batches, up to a factor.

    If every packet is under way for a time W, what is under way now and what is a time t later
    have a part 1 - t / W of their packets in common, and nothing if t > W. Its autocovariance is
    that part where packets come at random. Twice integrated it is `area`, whose second differences
    are the covariances of means over batches; they are W on the diagonal, and 0 elsewhere, where W
    is much shorter than a batch.
    """
    stay = max(stay, 1e-3)
    lags = np.abs(np.subtract.outer(np.arange(count), np.arange(count)))

    def area(lag: Floats) -> Floats:
        near = np.minimum(np.abs(lag), stay)
        return near**2 / 2 - near**3 / (6 * stay) + (np.abs(lag) - near) * stay / 2

    return area(lags + 1) - 2 * area(lags) + area(lags - 1)


def _batches(values: Floats) -> Floats:
    """Returns the sums of batches, by half; what cannot be divided among these is left out at the
    beginning."""
    length = len(values) // (2 * BATCHES)
    kept = values[len(values) - 2 * BATCHES * length :]
    return kept.reshape(2, BATCHES, length).sum(axis=2)  # type: ignore[no-any-return]


def _with_packets(flows: Rows, span_ps: int) -> tuple[Rows, int]:
    """Returns flows with spans added up in pairs until PACKETS are generated in one."""
    while len(flows) > 1 and flows[:, F_PACKETS].sum() < PACKETS * len(flows):
        pairs = len(flows) // 2
        flows, span_ps = flows[: 2 * pairs].reshape(pairs, 2, -1).sum(axis=1), 2 * span_ps
    return flows, span_ps


def _means(sums: Floats, counts: Floats) -> Floats:
    """Returns the means of spans; the one before, where there was no packet."""
    if not len(sums):
        return sums
    known = np.maximum.accumulate(np.where(counts > 0, np.arange(len(sums)), 0))
    return (sums / np.maximum(counts, 1))[known]  # type: ignore[no-any-return]
