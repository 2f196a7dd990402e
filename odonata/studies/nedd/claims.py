"""What the thesis says, and what came out here; and what nobody has published yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from odonata.studies.nedd.cases import (
    BLIND,
    DELAYS_US,
    FCFS,
    FIRST,
    QUEUED,
    RIVALS,
    SETS,
    SETS_OF,
    STAY_US,
    Asked,
    aged,
)
from odonata.studies.nedd.simulation import NO_CONGESTOR, Alone, Outcome, Point, Queue
from odonata.study.contract import Claim

Outcomes = Mapping[str, Outcome]
Floats = npt.NDArray[np.float64]
Measure = Callable[[Outcome], float]

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


def run_time_s(outcome: Outcome) -> float:
    """Returns the run time of the only job."""
    return outcome.end_s[0] - outcome.start_s[0]


def response_s(sensitive: bool) -> Measure:
    """Returns what gives the mean time from submission to the end, over jobs of one class."""
    return lambda it: _mean(it, it.submit_s, sensitive)


def running_s(sensitive: bool) -> Measure:
    """Returns what gives the mean run time, over jobs of one class."""
    return lambda it: _mean(it, it.start_s, sensitive)


def _mean(it: Outcome, since: Sequence[float], sensitive: bool) -> float:
    spans = [end - begin for begin, end, mine in zip(since, it.end_s, it.sensitive, strict=True)
             if mine is sensitive]  # fmt: skip
    return float(np.mean(spans))


def values(
    asked: Asked, outcomes: Outcomes, case: Callable[[int], Point], of: Measure
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
    from scipy.special import stdtrit  # type: ignore[import-untyped]

    both = sorted({*of} & {*against})
    if not both:
        return np.nan, np.nan
    mine, theirs = (np.array([some[run] for run in both]) for some in (of, against))
    unit, apart = theirs.mean(), mine - theirs
    if len(both) < 2:
        return float(apart.mean() / unit), np.nan
    half = stdtrit(len(both) - 1, 0.975) * apart.std(ddof=1) / np.sqrt(len(both))
    return float(apart.mean() / unit), float(half / unit)


def alone(asked: Asked, outcomes: Outcomes, name: str, by: str, sets: int = 0) -> dict[int, float]:
    """Returns the run times of an application under an allocation."""
    return values(asked, outcomes, lambda n: Alone(name, by, n, sets or asked.sets), run_time_s)


def queued(
    asked: Asked, outcomes: Outcomes, by: str, of: Measure, order: str = FCFS
) -> dict[int, float]:
    """Returns a measure of the queues under an allocation."""
    return values(asked, outcomes, lambda run: Queue(by, run, order), of)


def late(
    asked: Asked, outcomes: Outcomes, by: str, delay_us: int, of: Measure
) -> dict[int, float]:  # fmt: skip
    """Returns a measure of the queues among congestors that do not stay."""
    return values(asked, outcomes, lambda run: aged(by, run, delay_us), of)


def mean(some: Mapping[int, float]) -> float:
    """Returns the mean, NaN of nothing."""
    return float(np.mean([*some.values()])) if some else float("nan")


# -- what is claimed


def claims(asked: Asked, outcomes: Outcomes) -> list[Claim]:
    """Returns the claims that there are outcomes for."""
    found = [claim for name in asked.applications for claim in _application(asked, outcomes, name)]
    return [*found, *_sets(asked, outcomes), *_queue(asked, outcomes), *_age(asked, outcomes)]


def _application(asked: Asked, outcomes: Outcomes, name: str) -> Iterator[Claim]:
    times = {by: some for by in RIVALS if (some := alone(asked, outcomes, name, by))}
    if not {LOW, RANDOM, NO_CONGESTOR} <= {*times}:
        return
    quiet, main = mean(times[NO_CONGESTOR]), name == MAIN
    of = len(times[LOW])
    usual, worst = mean(times[RANDOM]) / quiet, max(times[RANDOM].values()) / quiet
    yield Claim(
        f"{name}: random against no congestor", f"up to {TIMES:g} times" * main,
        f"{usual:.2f} times, {worst:.2f} at worst", worst >= SEVERAL if main else None, of,
        {"mean": usual, "worst": worst},
    )  # fmt: skip
    for other, printed in BETTER.items():
        if other not in times:
            continue
        part, half = change(times[LOW], times[other])
        least = CLEARLY if other == RANDOM else 0.0
        yield Claim(
            f"{name}: low-traffic-router against {other}", f"{printed:.0%} shorter" * main,
            f"{_shorter(part)}{_within(half)}", -part > least if main else None, of,
            {"shorter": -part, "half": half},
        )  # fmt: skip
    if main and FEWER in times:
        yield Claim(f"{name}: fewer-router against random", "shorter",
                    _shorter(change(times[FEWER], times[RANDOM])[0]),
                    mean(times[FEWER]) < mean(times[RANDOM]), of)  # fmt: skip
    far = {by: mean(some) / quiet - 1 for by, some in times.items()}
    most = max(far, key=lambda by: abs(far[by]))
    steady = name == STEADY
    yield Claim(
        f"{name}: furthest from no congestor", f"within {CLOSE:.0%}" * steady,
        f"{most}, {far[most]:+.1%}", abs(far[most]) <= CLOSE if steady else None, of,
        {"most": far[most]},
    )  # fmt: skip


def _sets(asked: Asked, outcomes: Outcomes) -> Iterator[Claim]:
    for sets in SETS if "sets" in asked.parts else ():
        low, fewer = (alone(asked, outcomes, SETS_OF, by, sets) for by in (LOW, FEWER))
        part, half = change(low, fewer)
        if not np.isnan(part):
            yield Claim(f"{SETS_OF}, {sets} sets: low-traffic-router against fewer-router", "",
                        f"{_shorter(part)}{_within(half)}", None, len(low),
                        {"shorter": -part, "half": half})  # fmt: skip


def _queue(asked: Asked, outcomes: Outcomes) -> Iterator[Claim]:
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
            sooner + half < 0 if named and not np.isnan(half) else None, of,
            {"sooner": -sooner, "half": half},
        )  # fmt: skip
        yield Claim(
            f"queue, nedd against {other}: insensitive jobs run", f"within {CLOSE:.0%}" * named,
            f"{_shorter(slower)}{_within(width)}", slower <= CLOSE if named else None, of,
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


def _age(asked: Asked, outcomes: Outcomes) -> Iterator[Claim]:
    for other in BLIND:
        against = late(asked, outcomes, other, DELAYS_US[0], response_s(True))
        gains = [(delay, *change(late(asked, outcomes, "nedd", delay, response_s(True)), against))
                 for delay in DELAYS_US]  # fmt: skip
        known = [gain for gain in gains if not np.isnan(gain[1])]
        if known:
            words = "; ".join(f"{_shorter(part, 'sooner', 'later')}{_within(half)} at "
                              f"{delay / STAY_US:g}" for delay, part, half in known)  # fmt: skip
            yield Claim(
                f"age, nedd against {other}: sensitive jobs end, by the age of counters in stays "
                "of a congestor", "", words, None, len(against),
                {f"sooner at {delay} us": -part for delay, part, _ in known},
            )  # fmt: skip


def _shorter(part: float, less: str = "shorter", more: str = "longer") -> str:
    return f"{abs(part):.1%} {less if part <= 0 else more}"


def _within(half: float) -> str:
    return "" if np.isnan(half) else f" ± {half:.1%}"
