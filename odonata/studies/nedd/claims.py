"""What the thesis says, and what came out here; and what nobody has published yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from odonata.studies.nedd.cases import (
    AGED,
    BLIND,
    DELAYS_US,
    FCFS,
    FIRST,
    QUEUED,
    RIVALS,
    SETS,
    SETS_OF,
    STAY_US,
    NeDDPlan,
    restless,
)
from odonata.studies.nedd.simulation import NO_CONGESTOR, Alone, Moving, NeDDOutcome, Point, Queue
from odonata.study.contract import Claim
from odonata.study.verdicts import yes_or_no

Outcomes = Mapping[str, NeDDOutcome]
Floats = npt.NDArray[np.float64]
Measure = Callable[[NeDDOutcome], float]

LOW, FEWER, STALLS, RANDOM = "low-traffic-router", "fewer-router", "low-stall-router", "random"
BETTER = {RANDOM: 0.30, STALLS: 0.29, FEWER: 0.07}
"""By how much the thesis has miniMD run shorter under low-traffic-router than under others."""
CLEARLY = 0.15
"""By how much it must at least be shorter than at random."""
TIMES, SEVERAL = 5.0, 3.0
"""How many times as long as without a congestor miniMD takes at random, in the thesis; and what is
taken for several times, at worst."""
CLOSE = 0.03
"""By how much the run time of a job that congestion does not slow down may change."""
MAIN, STEADY = "minimd", "hpcg"
NAMED = (RANDOM, "level-spread", FEWER)
"""The allocations that nedd is held against."""


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


def values(
    asked: NeDDPlan, outcomes: Outcomes, case: Callable[[int], Point], of: Measure
) -> dict[int, float]:
    """Returns a measure of each run that there is of a case, by its number."""
    found = ((run, outcomes.get(case(run).key)) for run in range(asked.repetitions))
    return {run: of(outcome) for run, outcome in found if outcome is not None}


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
    mine, theirs = (np.array([some[run] for run in both]) for some in (of, against))
    unit, apart = theirs.mean(), mine - theirs
    middle, half = mean_of(dict(enumerate(apart.tolist())))
    return float(middle / unit), float(half / unit)


def mean_of(some: Mapping[int, float]) -> tuple[float, float]:
    """Returns a mean, and half of its confidence interval of 95 %, NaN of a single value.

    >>> [round(word, 3) for word in mean_of({0: 1.0, 1: 3.0})]
    [2.0, 12.706]
    """
    from scipy.special import stdtrit  # type: ignore[import-untyped]

    found = np.array([*some.values()])
    if len(found) < 2:
        return float(found.mean()), np.nan
    half = stdtrit(len(found) - 1, 0.975) * found.std(ddof=1) / np.sqrt(len(found))
    return float(found.mean()), float(half)


def alone(
    asked: NeDDPlan, outcomes: Outcomes, name: str, by: str, sets: int = 0
) -> dict[int, float]:
    """Returns the run times of an application under an allocation."""
    return values(asked, outcomes, lambda n: Alone(name, by, n, sets or asked.sets), run_time_s)


def queued(
    asked: NeDDPlan, outcomes: Outcomes, by: str, of: Measure, order: str = FCFS
) -> dict[int, float]:
    """Returns a measure of the queues under an allocation."""
    return values(asked, outcomes, lambda run: Queue(by, run, order), of)


def slowdowns(asked: NeDDPlan, outcomes: Outcomes, by: str, delay_us: int) -> dict[int, float]:
    """Returns how many times as long as without congestors applications take among those that take
    turns, mean over applications, by run."""
    found: dict[int, list[float]] = {}
    for run in range(asked.repetitions):
        for name in AGED:
            mine, quiet = (outcomes.get(case.key) for case in (
                Moving(name, by, run, delay_us), Moving(name, NO_CONGESTOR, run)))  # fmt: skip
            if mine and quiet:
                found.setdefault(run, []).append(run_time_s(mine) / run_time_s(quiet))
    return {run: float(np.mean(some)) for run, some in found.items() if len(some) == len(AGED)}


def mean(some: Mapping[int, float]) -> float:
    """Returns the mean, NaN of nothing."""
    return float(np.mean([*some.values()])) if some else float("nan")


# -- what is claimed


def claims(asked: NeDDPlan, outcomes: Outcomes) -> list[Claim]:
    """Returns the claims that there are outcomes for."""
    found = [claim for name in asked.applications for claim in _application(asked, outcomes, name)]
    parts = (_sets, _queue, _restless, _age)
    return [*found, *(claim for part in parts for claim in part(asked, outcomes))]


def _application(asked: NeDDPlan, outcomes: Outcomes, name: str) -> Iterator[Claim]:
    times = {by: some for by in RIVALS if (some := alone(asked, outcomes, name, by))}
    if not {LOW, RANDOM, NO_CONGESTOR} <= {*times}:
        return
    quiet, main = mean(times[NO_CONGESTOR]), name == MAIN
    of = len(times[LOW])
    usual, worst = mean(times[RANDOM]) / quiet, max(times[RANDOM].values()) / quiet
    yield Claim(
        f"{name}: random against no congestor",
        f"up to {TIMES:g} times" * main,
        f"{usual:.2f} times, {worst:.2f} at worst",
        yes_or_no(worst >= SEVERAL if main else None),
        of,
        {"mean": usual, "worst": worst},
    )
    for other, printed in BETTER.items():
        if other not in times:
            continue
        part, half = change(times[LOW], times[other])
        least = CLEARLY if other == RANDOM else 0.0
        yield Claim(
            f"{name}: low-traffic-router against {other}", f"{printed:.0%} shorter" * main,
            f"{_shorter(part)}{_within(half)}", yes_or_no(-part > least if main else None), of,
            {"shorter": -part, "half": half},
        )  # fmt: skip
    if main and FEWER in times:
        yield Claim(f"{name}: fewer-router against random", "shorter",
                    _shorter(change(times[FEWER], times[RANDOM])[0]),
                    yes_or_no(mean(times[FEWER]) < mean(times[RANDOM])), of)  # fmt: skip
    far = {by: mean(some) / quiet - 1 for by, some in times.items()}
    most = max(far, key=lambda by: abs(far[by]))
    steady = name == STEADY
    yield Claim(
        f"{name}: furthest from no congestor", f"within {CLOSE:.0%}" * steady,
        f"{most}, {far[most]:+.1%}", yes_or_no(abs(far[most]) <= CLOSE if steady else None), of,
        {"most": far[most]},
    )  # fmt: skip


def _sets(asked: NeDDPlan, outcomes: Outcomes) -> Iterator[Claim]:
    for sets in SETS if "sets" in asked.parts else ():
        low, fewer = (alone(asked, outcomes, SETS_OF, by, sets) for by in (LOW, FEWER))
        part, half = change(low, fewer)
        if not np.isnan(part):
            yield Claim(f"{SETS_OF}, {sets} sets: low-traffic-router against fewer-router", "",
                        f"{_shorter(part)}{_within(half)}", None, len(low),
                        {"shorter": -part, "half": half})  # fmt: skip


def _queue(asked: NeDDPlan, outcomes: Outcomes) -> Iterator[Claim]:
    for other in QUEUED:
        if other == "nedd":
            continue
        sooner, half = change(*(queued(asked, outcomes, by, response_s(True))
                                for by in ("nedd", other)))  # fmt: skip
        if np.isnan(sooner):
            continue
        slower, width = change(*(queued(asked, outcomes, by, running_s(False))
                                 for by in ("nedd", other)))  # fmt: skip
        of = len(queued(asked, outcomes, other, response_s(True)))
        named = other in NAMED
        yield Claim(
            f"queue, nedd against {other}: sensitive jobs end", "sooner" * named,
            f"{_shorter(sooner, 'sooner', 'later')}{_within(half)}",
            yes_or_no(sooner + half < 0 if named and not np.isnan(half) else None), of,
            {"sooner": -sooner, "half": half},
        )  # fmt: skip
        yield Claim(
            f"queue, nedd against {other}: insensitive jobs run", f"within {CLOSE:.0%}" * named,
            f"{_shorter(slower)}{_within(width)}",
            yes_or_no(slower + width <= CLOSE if named and not np.isnan(width) else None), of,
            {"longer": slower, "half": width},
        )  # fmt: skip
    first, half = change(queued(asked, outcomes, "nedd", response_s(True), FIRST),
                         queued(asked, outcomes, "nedd", response_s(True)))  # fmt: skip
    if not np.isnan(first):
        rest, width = change(queued(asked, outcomes, "nedd", response_s(False), FIRST),
                             queued(asked, outcomes, "nedd", response_s(False)))  # fmt: skip
        yield Claim("queue, nedd, sensitive-first against fcfs: sensitive jobs end", "",
                    f"{_shorter(first, 'sooner', 'later')}{_within(half)}; others "
                    f"{_shorter(rest, 'sooner', 'later')}{_within(width)}",
                    None, asked.repetitions, {"sooner": -first, "half": half})  # fmt: skip


def _restless(asked: NeDDPlan, outcomes: Outcomes) -> Iterator[Claim]:
    def ends(by: str, delay_us: int) -> dict[int, float]:
        return values(asked, outcomes, lambda run: restless(by, run, delay_us), response_s(True))

    for delay in (DELAYS_US[0], DELAYS_US[-1]):
        for other in BLIND:
            part, half = change(ends("nedd", delay), ends(other, DELAYS_US[0]))
            if not np.isnan(part):
                yield Claim(
                    f"queue among congestors that do not stay, nedd by counters {delay:,} us late "
                    f"against {other}: sensitive jobs end", "",
                    f"{_shorter(part, 'sooner', 'later')}{_within(half)}", None,
                    asked.repetitions, {"sooner": -part, "half": half},
                )  # fmt: skip


def _age(asked: NeDDPlan, outcomes: Outcomes) -> Iterator[Claim]:
    slow = {by: slowdowns(asked, outcomes, by, DELAYS_US[0]) for by in BLIND}
    for delay in DELAYS_US:
        mine = slowdowns(asked, outcomes, "nedd", delay)
        for other in BLIND:
            part, half = change(mine, slow[other])
            if not np.isnan(part):
                yield Claim(
                    f"age {delay / STAY_US:g} times a congestor's stay: nedd against {other}", "",
                    f"{_shorter(part)}{_within(half)}", None, len(mine),
                    {"shorter": -part, "half": half},
                )  # fmt: skip


def _shorter(part: float, less: str = "shorter", more: str = "longer") -> str:
    return f"{abs(part):.1%} {less if part <= 0 else more}"


def _within(half: float) -> str:
    return "" if np.isnan(half) else f" ± {half:.1%}"
