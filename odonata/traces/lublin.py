"""The Lublin-Feitelson model of the jobs of parallel supercomputers.

U. Lublin, D. G. Feitelson: The workload on parallel supercomputers: modeling the characteristics of
rigid jobs. J. Parallel Distrib. Comput. 63(11), 2003. The constants and the daily cycle were
checked against the authors' own program, m_lublin99.c. Time 0 of a trace is midnight.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from odonata.traces.distributions import (
    Factor,
    Numbers,
    Random,
    Requests,
    above,
    by_appearance,
    header,
    microseconds,
    people,
    stream,
    whole_from,
)
from odonata.traces.trace import SECOND, UNKNOWN, Account, Trace, Whole
from pdes.errors import Refused, require

BUCKETS = 48
"""The half hours of a day, each with its own rate of arrivals."""
DAY_S = 86_400.0
FIRST_BUCKET = 11
"""The quietest time of the day, 5:30, in half hours after midnight: there the gamma distribution
that gives the daily cycle is cut open."""
LONGEST_RUN_LOG = 12.0
"""Run times above exp(12) s, almost two days, are drawn again."""
LONGEST_GAP_LOG = 13.0
"""Times between arrivals above exp(13) s, about five days, are drawn again."""
ARRIVALS, SIZES, RUNS, REQUESTS, USERS = range(5)
"""The purposes of random numbers; the second kind of jobs has 10 to 14 of its own."""


@dataclass(frozen=True)
class Kind:
    """One kind of jobs, by the names that the model's program gives to its constants."""

    name: str
    serial: float
    """The probability of one node."""
    pow2: float
    """The probability of a power of two, 2 or more."""
    ulow: float
    """log2 of the smallest parallel job; jobs that are not serial have a log2 that is uniform from
    here to UMed with probability `uprob`, and uniform from UMed to UHi otherwise."""
    umed_below: float
    """UHi - UMed: the program advises 1.5 to 3.5."""
    uhi_below: float
    """log2(nodes) - UHi: 0, except for interactive jobs, which do not get the whole machine."""
    uprob: float
    a1: float
    """The logarithm of a run time in s is gamma(a1, b1) with probability p = pa·nodes + pb (cut to
    0 … 1) and gamma(a2, b2) otherwise."""
    b1: float
    a2: float
    b2: float
    pa: float
    pb: float
    aarr: float
    """The logarithm of a time between arrivals in s is gamma(aarr·arar, barr), in a time that
    passes at the rate of the daily cycle."""
    barr: float
    anum: float
    """The number of arrivals per half hour of the day is as the density of gamma(anum, bnum)."""
    bnum: float
    arar: float
    """From times between arrivals at the rush hours to those at all hours."""


COMBINED = Kind("combined", serial=0.244, pow2=0.576,
                ulow=0.8, umed_below=2.5, uhi_below=0.0, uprob=0.86,
                a1=4.2, b1=0.94, a2=312.0, b2=0.03, pa=-0.0054, pb=0.78,
                aarr=10.2303, barr=0.4871, anum=8.1737, bnum=3.9631, arar=1.0225)  # fmt: skip
"""All jobs of the logs, without telling kinds apart."""
BATCH = Kind("batch", serial=0.2927, pow2=0.6686,
             ulow=1.2, umed_below=2.0, uhi_below=0.0, uprob=0.875,
             a1=6.57, b1=0.823, a2=639.1, b2=0.0156, pa=-0.003, pb=0.6986,
             aarr=6.0415, barr=0.8531, anum=6.1271, bnum=5.2740, arar=1.0519)  # fmt: skip
INTERACTIVE = Kind("interactive", serial=0.1541, pow2=0.625,
                   ulow=1.0, umed_below=2.5, uhi_below=1.5, uprob=0.705,
                   a1=3.8351, b1=0.6605, a2=7.073, b2=0.6856, pa=-0.0118, pb=0.9156,
                   aarr=6.5510, barr=0.6621, anum=8.9186, bnum=3.6680, arar=0.9797)  # fmt: skip
KINDS = {
    "combined": (COMBINED,),
    "both": (BATCH, INTERACTIVE),
    "batch": (BATCH,),
    "interactive": (INTERACTIVE,),
}
"""What `kinds` may name."""


def lublin(
    jobs: int,
    nodes: int,
    *,
    seed: int = 1,
    load: float | None = None,
    kinds: str | Sequence[Kind] = "combined",
    requests: Requests | None = None,
    users: int = 50,
) -> Trace:
    """Returns jobs of the model on a machine of so many nodes.

    `load`: the offered load; all times between arrivals are changed by one factor, before the daily
    cycle, so that a day keeps its length. Without it jobs arrive at the model's own rate. `kinds`:
    one of `KINDS`, or kinds of one's own; jobs of several kinds arrive independently of each other,
    and a job's application is its kind. The model says nothing about requested times (`requests`:
    unless given, up to five times the run time) and users.
    """
    whole_from(1, jobs=jobs, nodes=nodes)
    whole_from(0, seed=seed)
    chosen = _chosen(kinds)
    requests = requests or Factor()
    if load is not None:
        above(0, load=load)
        require(jobs > 1, "jobs = 1: with a load, 2 or more are accepted")
    people_of = people(stream(seed, USERS), jobs, users)

    clocks = [_clock(kind, stream(seed, 10 * place + ARRIVALS), jobs)
              for place, kind in enumerate(chosen)]  # fmt: skip
    own = np.concatenate([in_day(kind, clock) for kind, clock in zip(chosen, clocks, strict=True)])
    of_kind = np.repeat(np.arange(len(chosen)), jobs)
    of_kind = of_kind[np.argsort(own, kind="stable")[:jobs]]
    counts = np.bincount(of_kind, minlength=len(chosen))
    clocks = [clock[:count] for clock, count in zip(clocks, counts, strict=True)]
    present = [place for place, count in enumerate(counts) if count]

    size_of, run_of = [], []
    for place, kind in enumerate(chosen):
        sizes = _sizes(kind, stream(seed, 10 * place + SIZES), int(counts[place]), nodes)
        size_of.append(sizes)
        run_of.append(_runs(kind, stream(seed, 10 * place + RUNS), sizes))
    size, run_us = np.concatenate(size_of), np.concatenate(run_of) * SECOND
    factor = 1.0
    if load is not None:
        span_s = float((size * run_us.astype(np.float64)).sum()) / SECOND / (load * nodes)
        factor = _factor([(chosen[place], clocks[place]) for place in present], span_s)
    submit = np.concatenate(
        [in_day(kind, clock * factor) for kind, clock in zip(chosen, clocks, strict=True)]
    )
    order = np.argsort(submit, kind="stable")
    run_us = run_us[order]
    application, seen = by_appearance(np.repeat(np.arange(len(chosen)), counts)[order])
    return Trace(
        name="lublin",
        number=np.arange(1, jobs + 1),
        submit_us=microseconds(submit[order]),
        run_us=run_us,
        nodes=size[order],
        requested_us=requests.draw(stream(seed, REQUESTS), run_us),
        application=application,
        applications=tuple(chosen[place].name for place in seen),
        wait_us=np.full(jobs, UNKNOWN),
        machine_nodes=int(nodes),
        header=header("Lublin-Feitelson 2003, constants of m_lublin99.c", seed, jobs=jobs,
                      nodes=nodes, load="its own" if load is None else load,
                      kinds=" and ".join(kind.name for kind in chosen), requests=requests,
                      users=users),
        account=Account(records=jobs),
        **people_of,
    )  # fmt: skip


def _chosen(kinds: str | Sequence[Kind]) -> tuple[Kind, ...]:
    if isinstance(kinds, str):
        if kinds not in KINDS:
            raise Refused(f"kinds = {kinds}: {', '.join(KINDS)} are accepted")
        return KINDS[kinds]
    require(0 < len(kinds) < 10, f"kinds = {tuple(kinds)}: 1 to 9 are accepted")
    return tuple(kinds)


def daily_weights(kind: Kind) -> Numbers:
    """Returns the rate of arrivals in each half hour of the day, from midnight, per mean rate.

    The program numbers half hours from 1 and weighs number i with the gamma distribution between
    i - 0.5 and i + 0.5, for i from 11 to 58; 49 is 1 of the next day. Only ratios matter, so the
    density is integrated without its constant (Gauss-Legendre, exact to rounding).
    """
    number = np.arange(FIRST_BUCKET, FIRST_BUCKET + BUCKETS)
    point, share = np.polynomial.legendre.leggauss(12)
    x = number[:, None] + point / 2
    mean = kind.anum * kind.bnum
    log_density = (kind.anum - 1) * np.log(x / mean) - (x - mean) / kind.bnum
    weights = np.empty(BUCKETS)
    weights[(number - 1) % BUCKETS] = np.exp(log_density) @ share
    return np.asarray(weights / weights.mean())


def in_day(kind: Kind, clock: Numbers) -> Numbers:
    """Returns when a clock that goes at the rate of the daily cycle shows these times; both in s
    from midnight, and both show whole days together."""
    shown = np.concatenate([[0.0], np.cumsum(daily_weights(kind))]) * (DAY_S / BUCKETS)
    day, rest = np.divmod(clock, DAY_S)
    return np.asarray(day * DAY_S + np.interp(rest, shown, np.linspace(0, DAY_S, BUCKETS + 1)))


def _clock(kind: Kind, rng: Random, jobs: int) -> Numbers:
    shape = np.full(jobs, kind.aarr * kind.arar)
    return np.cumsum(np.exp(_gammas(rng, shape, np.full(jobs, kind.barr), LONGEST_GAP_LOG)))


def _gammas(rng: Random, shape: Numbers, scale: Numbers, most: float) -> Numbers:
    """Returns gamma variates; those above the most are drawn again."""
    drawn = rng.gamma(shape, scale)
    while len(again := np.flatnonzero(drawn > most)):
        drawn[again] = rng.gamma(shape[again], scale[again])
    return drawn


def _sizes(kind: Kind, rng: Random, count: int, nodes: int) -> Whole:
    high = max(math.log2(nodes) - kind.uhi_below, kind.ulow)
    middle = max(high - kind.umed_below, kind.ulow)
    what, stage, place = rng.random((3, count))
    first = stage <= kind.uprob
    low = np.where(first, kind.ulow, middle)
    log2 = low + place * (np.where(first, middle, high) - low)
    rounded = np.minimum(np.floor(log2 + 0.5), nodes.bit_length() - 1)
    log2 = np.where(what <= kind.serial + kind.pow2, rounded, log2)
    sizes = np.floor(np.exp2(log2) + 0.5).astype(np.int64)
    return np.where(what <= kind.serial, 1, np.minimum(sizes, nodes))


def _runs(kind: Kind, rng: Random, sizes: Whole) -> Whole:
    """Returns run times in whole s."""
    p = np.clip(kind.pa * sizes + kind.pb, 0.0, 1.0)
    logs = np.empty(len(sizes))
    left = np.arange(len(sizes))
    while len(left):
        first = rng.random(len(left)) <= p[left]
        logs[left] = rng.gamma(np.where(first, kind.a1, kind.a2),
                               np.where(first, kind.b1, kind.b2))  # fmt: skip
        left = left[logs[left] > LONGEST_RUN_LOG]
    return np.exp(logs).astype(np.int64)


def _factor(streams: Sequence[tuple[Kind, Numbers]], span_s: float) -> float:
    """Returns what all times between arrivals are multiplied with, so that the last job arrives so
    long after the first."""

    def span(factor: float) -> float:
        ends = [in_day(kind, clock[[0, -1]] * factor) for kind, clock in streams]
        return float(max(end[1] for end in ends) - min(end[0] for end in ends))

    low, high = 0.0, 1.0
    while span(high) < span_s:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if span(middle) < span_s else (low, middle)
    return high
