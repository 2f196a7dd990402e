"""What the thesis says, and what came out here; and what nobody has published yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from odonata.results.statistics import Interval, difference, interval
from odonata.studies.nedd import cases
from odonata.studies.nedd.simulation import NO_CONGESTOR, Moving, NeDDOutcome, Point, Queue
from odonata.study import measured
from odonata.study.contract import Claim
from odonata.study.verdicts import above, below, judged, near, percent, plus_minus, shown, values_of

Measured = measured.Measured[cases.NeDDPlan, Point, NeDDOutcome]
Floats = npt.NDArray[np.float64]
Measure = Callable[[NeDDOutcome], float]

LOW, FEWER, STALLS, RANDOM = "low-traffic-router", "fewer-router", "low-stall-router", "random"
MAIN, STEADY = "minimd", "hpcg"
"""The applications for which the thesis prints numbers."""
TIMES = 5.0
"""How many times as long as without a congestor the first takes at random: means of ten runs."""
BETTER = {RANDOM: 0.30, STALLS: 0.29, FEWER: 0.07}
"""The part by which miniMD runs shorter under low-traffic-router than under others (printed)."""
MOST_BETTER = 0.30
"""The largest such part of any application, as printed."""
CLOSE = 0.03
"""The printed limit of how much longer a job runs that congestion does not slow down."""
RESULTS, SUMMARY = "Zhang 3.8.2", "Zhang 4.2"
PAGE = "nedd.md"
REQUESTS = f"{PAGE}#what-makes-it-as-bad-as-on-cori"
CAUSE = {RANDOM: REQUESTS, STALLS: f"{PAGE}#stalls-or-traffic",
         FEWER: f"{PAGE}#low-traffic-router-and-fewer-router"}  # fmt: skip
EDGE = f"{PAGE}#hpcg-is-on-the-edge"


# -- what is measured


def run_time_s(outcome: NeDDOutcome) -> float:
    """Returns the run time of the only job."""
    return outcome.end_s[0] - outcome.start_s[0]


def response_s(sensitive: bool) -> Measure:
    """Returns what gives the mean time from submission to the end, over jobs of one class."""
    return lambda it: _mean(it, it.submit_s, sensitive)


def running_s(sensitive: bool) -> Measure:
    """Returns what gives the mean run time, over jobs of one class."""
    return lambda it: _mean(it, it.start_s, sensitive)


def _mean(it: NeDDOutcome, since: Sequence[float], sensitive: bool) -> float:
    spans = [end - begin for begin, end, mine in zip(since, it.end_s, it.sensitive, strict=True)
             if mine is sensitive]  # fmt: skip
    return float(np.mean(spans))


def values(m: Measured, case: Callable[[int], Point], of: Measure) -> dict[int, float]:
    """Returns a measure of each run that there is of a case, by its number."""
    found = ((run, m.of(case(run))) for run in range(m.asked.repetitions))
    return {run: of(outcome) for run, outcome in found if outcome is not None}


def times(of: Mapping[int, float], against: Mapping[int, float]) -> Interval:
    """Returns how many times as large the mean of a measure is as another's, over the runs that
    both have, and the confidence interval of 95 % of that ratio of means: by the delta method, of
    what each run is off it. Unlike `change` it also says what one mean leaves unsure where the
    other is that of quite unequal runs, as run times at random are.

    >>> times({0: 2.0, 1: 3.0, 2: 4.0}, {0: 1.0, 1: 1.5, 2: 2.0})
    Interval(mean=2.0, low=2.0, high=2.0, of=3)
    """
    both = sorted({*of} & {*against})
    if not both:
        return Interval(np.nan, np.nan, np.nan, 0)
    mine, theirs = (np.array([some[run] for run in both]) for some in (of, against))
    ratio, unit = float(mine.mean() / theirs.mean()), float(theirs.mean())
    off = interval(((mine - ratio * theirs) / unit).tolist())
    return Interval(ratio, ratio - off.half, ratio + off.half, len(both))


def changed(of: Mapping[int, float], against: Mapping[int, float]) -> Interval:
    """Returns by which part the mean of a measure is above another's."""
    it = times(of, against)
    return Interval(it.mean - 1, it.low - 1, it.high - 1, it.of)


def shorter(of: Mapping[int, float], against: Mapping[int, float]) -> Interval:
    """Returns by which part the mean of a measure is below another's."""
    it = changed(of, against)
    return Interval(-it.mean, -it.high, -it.low, it.of)


def spread(of: Mapping[int, float], against: Mapping[int, float]) -> Interval:
    """Returns how many times as large the standard deviation of a measure is as another's, with its
    confidence interval of 95 % by the F distribution."""
    from scipy.special import fdtri  # type: ignore[import-untyped]

    mine, theirs = ([*some.values()] for some in (of, against))
    if min(len(mine), len(theirs)) < 2 or not np.std(theirs):
        return Interval(np.nan, np.nan, np.nan, min(len(mine), len(theirs)))
    ratio = float(np.std(mine, ddof=1) / np.std(theirs, ddof=1))
    low, high = (float(np.sqrt(fdtri(len(mine) - 1, len(theirs) - 1, part)))
                 for part in (0.025, 0.975))  # fmt: skip
    return Interval(ratio, ratio / high, ratio / low, len(mine))


def change(of: Mapping[int, float], against: Mapping[int, float]) -> tuple[float, float]:
    """Returns by which part the mean of a measure is above another's, over the runs that both have,
    and half of its confidence interval of 95 %: of the mean of differences, with Student's t. NaN
    where that cannot be said.

    >>> change({0: 2.0, 1: 3.0, 2: 4.0}, {0: 1.0, 1: 2.0, 2: 3.0})
    (0.5, 0.0)
    """
    both = sorted({*of} & {*against})
    if not both:
        return np.nan, np.nan
    mine, theirs = ([some[run] for run in both] for some in (of, against))
    apart, unit = difference(theirs, mine, paired=True), float(np.mean(theirs))
    return apart.mean / unit, apart.half / unit


def mean_of(some: Mapping[int, float]) -> tuple[float, float]:
    """Returns a mean, and half of its confidence interval of 95 %, NaN of a single value.

    >>> [round(word, 3) for word in mean_of({0: 1.0, 1: 3.0})]
    [2.0, 12.706]
    """
    it = interval([*some.values()])
    return it.mean, it.half


def alone(m: Measured, name: str, by: str, sets: int = 0) -> dict[int, float]:
    """Returns the run times of an application under an allocation."""
    return values(m, lambda n: m.asked.alone(name, by, n, sets), run_time_s)


def queued(m: Measured, by: str, of: Measure, order: str = cases.FCFS) -> dict[int, float]:
    """Returns a measure of the queues under an allocation."""
    return values(m, lambda run: Queue(by, run, order), of)


def slowdowns(m: Measured, by: str, delay_us: int) -> dict[int, float]:
    """Returns how many times as long as without congestors applications take among those that take
    turns, mean over applications, by run."""
    found: dict[int, list[float]] = {}
    for run in range(m.asked.repetitions):
        for name in cases.AGED:
            mine, quiet = (m.of(case) for case in (
                Moving(name, by, run, delay_us), Moving(name, NO_CONGESTOR, run)))  # fmt: skip
            if mine and quiet:
                found.setdefault(run, []).append(run_time_s(mine) / run_time_s(quiet))
    return {run: float(np.mean(some)) for run, some in found.items()
            if len(some) == len(cases.AGED)}  # fmt: skip


def mean(some: Mapping[int, float]) -> float:
    """Returns the mean, NaN of nothing."""
    return float(np.mean([*some.values()])) if some else float("nan")


# -- what is claimed


def claims(m: Measured) -> list[Claim]:
    """Returns the claims that there are outcomes for."""
    parts = (_applications, _sets, _causes, _queue, _restless, _age)
    return [claim for part in parts for claim in part(m)]


def _applications(m: Measured) -> Iterator[Claim]:
    gains: dict[str, Interval] = {}
    for name in m.asked.applications if "application" in m.asked.parts else ():
        took = {by: some for by in cases.RIVALS if (some := alone(m, name, by))}
        if {LOW, RANDOM, NO_CONGESTOR} <= {*took}:
            gains |= {f"{name} against {other}": shorter(took[LOW], took[other])
                      for other in BETTER if other in took}  # fmt: skip
            yield from _application(name, took)
    if len(m.asked.applications) > 1 and gains:
        most = max(gains, key=lambda words: gains[words].mean)
        it = gains[most]
        found = near(it, MOST_BETTER, 0.005) and above(it, 0)
        yield _with_cause(judged(
            "all applications: low-traffic-router is shorter than another allocation by at most",
            f"up to {MOST_BETTER:.0%}", f"{percent(it)}, {most}", found, it.mean > 0, it,
            SUMMARY), REQUESTS)  # fmt: skip


def _application(name: str, took: Mapping[str, Mapping[int, float]]) -> Iterator[Claim]:
    """Claims of one application: the thesis prints numbers for two."""
    quiet, main = took[NO_CONGESTOR], name == MAIN
    usual, worst = times(took[RANDOM], quiet), max(took[RANDOM].values()) / mean(quiet)
    words = f"{name}: mean run time at random against no congestor"
    ours = f"{_times(usual)}, {worst:.1f} at worst"
    if main:
        found = near(usual, TIMES, 0.5) and above(usual, 1)
        yield _with_cause(judged(words, f"up to {TIMES:g} times", ours, found, usual.mean > 1,
                                 usual, RESULTS), REQUESTS)  # fmt: skip
    else:
        yield shown(words, "", ours, usual)
    low = times(took[LOW], quiet)
    yield shown(f"{name}: low-traffic-router against no congestor", "", _times(low), low)
    for other, printed in BETTER.items():
        if other not in took:
            continue
        it, words = shorter(took[LOW], took[other]), f"{name}: low-traffic-router against {other}"
        if main:
            found = near(it, printed, 0.005) and above(it, 0)
            yield _with_cause(judged(words, f"{printed:.0%} shorter", f"{percent(it)} shorter",
                                     found, it.mean > 0, it, RESULTS), CAUSE[other])  # fmt: skip
        else:
            yield shown(words, "", f"{percent(it)} shorter", it)
    far = {by: changed(some, quiet) for by, some in took.items() if by != NO_CONGESTOR}
    most = max(far, key=lambda by: far[by].mean)
    it, words = far[most], f"{name}: longer than without a congestor by at most"
    if name != STEADY:
        yield shown(words, "", f"{percent(it)}, {most}", it)
        return
    yield _with_cause(judged(words, f"less than {CLOSE:.0%}", f"{percent(it)}, {most}",
                             below(it, CLOSE), it.mean < CLOSE, it, SUMMARY), EDGE)  # fmt: skip
    wide = {by: spread(some, quiet) for by, some in took.items() if by != NO_CONGESTOR}
    most = max(wide, key=lambda by: wide[by].mean)
    it = wide[most]
    if not np.isnan(it.mean):
        yield _with_cause(judged(
            f"{name}: standard deviation of run times against no congestor, at most", "similar",
            f"{it.mean:.1f} times ({it.low:.1f} .. {it.high:.1f}), {most}", near(it, 1.0), False,
            it, RESULTS), EDGE)  # fmt: skip


def _with_cause(claim: Claim, cause: str) -> Claim:
    """Returns a claim with its cause, unless it holds."""
    return claim if claim.holds else replace(claim, cause=cause)


def _causes(m: Measured) -> Iterator[Claim]:
    for words in cases.CAUSES if "causes" in m.asked.parts else ():
        took = {
            by: some
            for by in cases.CAUSED_BY
            if (some := values(m, partial(cases.caused, words, by), run_time_s))
        }
        if len(took) < len(cases.CAUSED_BY):
            continue
        slow = {by: times(took[by], took[NO_CONGESTOR]) for by in (RANDOM, STALLS, FEWER, LOW)}
        yield Claim(f"causes, {words}: run time against no congestor", "",
                    ", ".join(f"{by} {_times(it)}" for by, it in slow.items()), None,
                    slow[RANDOM].of, _numbers(slow))  # fmt: skip
        gain = {by: times(took[LOW], took[by]) for by in (RANDOM, STALLS, FEWER)}
        yield Claim(f"causes, {words}: run time by low-traffic-router", "",
                    ", ".join(f"{_times(it)} that by {by}" for by, it in gain.items()), None,
                    gain[RANDOM].of, _numbers(gain))  # fmt: skip


def _numbers(some: Mapping[str, Interval]) -> dict[str, float]:
    return {f"{by} {end}": value for by, it in some.items() for end, value in values_of(it).items()}


def _sets(m: Measured) -> Iterator[Claim]:
    for sets in cases.SETS if "sets" in m.asked.parts else ():
        low, fewer = (alone(m, cases.SETS_OF, by, sets) for by in (LOW, FEWER))
        part, half = change(low, fewer)
        if not np.isnan(part):
            yield Claim(f"{cases.SETS_OF}, {sets} sets: low-traffic-router against fewer-router",
                        "", f"{_shorter(part)}{_within(half)}", None, len(low),
                        {"shorter": -part, "half": half})  # fmt: skip


def _queue(m: Measured) -> Iterator[Claim]:
    for other in cases.QUEUED:
        if other == "nedd":
            continue
        sooner, half = change(*(queued(m, by, response_s(True)) for by in ("nedd", other)))
        if np.isnan(sooner):
            continue
        slower, width = change(*(queued(m, by, running_s(False)) for by in ("nedd", other)))
        of = len(queued(m, other, response_s(True)))
        yield Claim(f"queue, nedd against {other}: sensitive jobs end", "",
                    f"{_shorter(sooner, 'sooner', 'later')}{_within(half)}", None, of,
                    {"sooner": -sooner, "half": half})  # fmt: skip
        yield Claim(f"queue, nedd against {other}: insensitive jobs run", "",
                    f"{_shorter(slower)}{_within(width)}", None, of,
                    {"longer": slower, "half": width})  # fmt: skip
    first, half = change(queued(m, "nedd", response_s(True), cases.FIRST),
                         queued(m, "nedd", response_s(True)))  # fmt: skip
    if not np.isnan(first):
        rest, width = change(queued(m, "nedd", response_s(False), cases.FIRST),
                             queued(m, "nedd", response_s(False)))  # fmt: skip
        yield Claim("queue, nedd, sensitive-first against fcfs: sensitive jobs end", "",
                    f"{_shorter(first, 'sooner', 'later')}{_within(half)}; others "
                    f"{_shorter(rest, 'sooner', 'later')}{_within(width)}",
                    None, m.asked.repetitions, {"sooner": -first, "half": half})  # fmt: skip


def _restless(m: Measured) -> Iterator[Claim]:
    def ends(by: str, delay_us: int) -> dict[int, float]:
        return values(m, lambda run: cases.restless(by, run, delay_us), response_s(True))

    for delay in (cases.DELAYS_US[0], cases.DELAYS_US[-1]):
        for other in cases.BLIND:
            part, half = change(ends("nedd", delay), ends(other, cases.DELAYS_US[0]))
            if not np.isnan(part):
                yield Claim(
                    f"queue among congestors that do not stay, nedd by counters {delay:,} us late "
                    f"against {other}: sensitive jobs end", "",
                    f"{_shorter(part, 'sooner', 'later')}{_within(half)}", None,
                    m.asked.repetitions, {"sooner": -part, "half": half},
                )  # fmt: skip


def _age(m: Measured) -> Iterator[Claim]:
    slow = {by: slowdowns(m, by, cases.DELAYS_US[0]) for by in cases.BLIND}
    for delay in cases.DELAYS_US:
        mine = slowdowns(m, "nedd", delay)
        for other in cases.BLIND:
            part, half = change(mine, slow[other])
            if not np.isnan(part):
                yield Claim(
                    f"age {delay / cases.STAY_US:g} times a congestor's stay: nedd against {other}",
                    "", f"{_shorter(part)}{_within(half)}", None, len(mine),
                    {"shorter": -part, "half": half},
                )  # fmt: skip


def _shorter(part: float, less: str = "shorter", more: str = "longer") -> str:
    return f"{abs(part):.1%} {less if part <= 0 else more}"


def _times(it: Interval) -> str:
    return f"{plus_minus(it, 2)} times"


def _within(half: float) -> str:
    return "" if np.isnan(half) else f" ± {half:.1%}"
