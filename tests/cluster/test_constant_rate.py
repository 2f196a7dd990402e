"""A constant service rate of r is a trace whose jobs are 1/r times as long, start by start: under
every discipline, compiled and in Python, on random traces and on the Karelian one.

Lengths are chosen so that they are whole ticks at the rate, which then makes no difference at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clusters import simulated
from naive import Job, Record
from random_traces import VARIANTS, random_trace

from odonata.cluster.model import Cluster
from odonata.cluster.simulation import simulate
from odonata.jobs.power import Power
from odonata.traces.source import Source
from odonata.traces.trace import Trace
from policies.scheduling import SCHEDULINGS, backfilling, scheduling
from policies.views import Request, Running, View

SECOND = 10**6
RATES = (2.0, 0.5, 1.25)
EVERY = (*VARIANTS, ("sensitive-first", {}))
IDS = ["-".join([name, *(f"{key}={value}" for key, value in more.items())])
       for name, more in EVERY]  # fmt: skip
KARELIAN = Path(__file__).parents[3] / "shared" / "data" / "krc2.csv"


def at_rate(rate: float, **more: Any) -> Power:
    """Returns power of which one rate is both the low and the high one."""
    return Power("rate-by-number", (("low", rate), ("high", rate)), demand="constant", **more)


def longer(jobs: Sequence[Job], factor: float, submit: int = 1) -> list[Job]:
    """Returns jobs of which run and requested times are so many times as long."""
    found = []
    for job in jobs:
        run, requested = job.run * factor, None if job.requested is None else job.requested * factor
        assert run == int(run)
        found.append(job._replace(
            submit=job.submit * submit, run=int(run),
            requested=None if requested is None else int(requested),
        ))  # fmt: skip
    return found


def both(
    seed: int, rate: float, discipline: str, parameters: Mapping[str, Any]
) -> tuple[list[Record], list[Record]]:
    """Returns what becomes of the jobs of a random trace at a rate of 1, and of as much more work
    at a rate."""
    jobs, nodes = random_trace(seed)
    jobs = longer(jobs, 4, submit=(1, 3, 4)[seed % 3])
    overrun = ("kill", "extend")[seed % 2]
    plain, _ = simulated(jobs, nodes, discipline, overrun, **parameters)
    rated, _ = simulated(longer(jobs, rate), nodes, discipline, overrun, **parameters,
                         power=at_rate(rate))  # fmt: skip
    return plain, rated


@pytest.mark.parametrize("which", range(len(EVERY)), ids=IDS)
def test_a_constant_rate_is_shorter_jobs(which: int) -> None:
    name, parameters = EVERY[which]
    for seed, rate in ((3, 2.0), (8, 0.5), (13, 1.25)):
        plain, rated = both(seed + which, rate, name, parameters)
        assert rated == plain, (seed + which, rate)


@pytest.mark.long
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("which", range(len(EVERY)), ids=IDS)
def test_a_constant_rate_is_shorter_jobs_on_60_traces(which: int, rate: float) -> None:
    name, parameters = EVERY[which]
    for seed in range(60):
        plain, rated = both(seed, rate, name, parameters)
        assert rated == plain, seed


# -- the Karelian trace


@pytest.fixture(scope="module")
def karelian() -> Trace:
    if not KARELIAN.exists():
        pytest.skip(f"{KARELIAN} is not there")
    trace, _ = Source(file=str(KARELIAN), nodes=80, requests="exact").trace()
    return trace


def karelian_starts(
    trace: Trace, rate: float | None, discipline: str, parameters: Mapping[str, Any]
) -> list[int]:
    """Returns the starts of the trace, or those of as much more work at a rate."""
    more = 1.0 if rate is None else rate
    work = np.rint(trace.run_us * more).astype(np.int64)
    assert (work == trace.run_us * more).all()
    longer_ = trace.where(slice(None), run_us=work, requested_us=np.maximum(work, 1))
    power = None if rate is None else at_rate(rate, interval_ps=30 * 86400 * 10**12)
    model = Cluster(longer_, 80, discipline, tuple(parameters.items()), overrun="extend",
                    power=power)  # fmt: skip
    found: list[int] = simulate(model).schedule.start_us.tolist()
    return found


def test_a_constant_rate_is_shorter_jobs_on_the_karelian_trace(karelian: Trace) -> None:
    some = karelian.where(slice(5100, 5500))
    for discipline in ("easy-strict", "conservative"):
        plain, rated = (karelian_starts(some, rate, discipline, {}) for rate in (None, 2.0))
        assert rated == plain
        assert (np.array(plain) > some.submit_us).sum() > 20, "somebody waits"


@pytest.mark.long
@pytest.mark.parametrize("which", range(len(EVERY)), ids=IDS)
def test_a_constant_rate_is_shorter_jobs_on_all_of_the_karelian_trace(
    which: int, karelian: Trace
) -> None:
    name, parameters = EVERY[which]
    if "half_life" in parameters:
        parameters = parameters | {"half_life": 3600.0 * parameters["half_life"]}
    plain = karelian_starts(karelian, None, name, parameters)
    for rate in RATES:
        assert karelian_starts(karelian, rate, name, parameters) == plain, rate


@pytest.mark.long
@pytest.mark.parametrize(("discipline", "wait_s"), [("easy-strict", 354), ("conservative", 346)])
def test_the_waits_of_the_karelian_trace_at_a_rate_of_two(
    discipline: str, wait_s: int, karelian: Trace
) -> None:
    """Where candidates were taken at a rate of 1 these were 496 and 318 s."""
    model = Cluster(karelian, 80, discipline, overrun="extend",
                    power=at_rate(2.0, interval_ps=30 * 86400 * 10**12))  # fmt: skip
    waits = simulate(model).schedule.start_us - karelian.submit_us
    assert round(waits.mean() / SECOND) == wait_s


# -- one example, a twin in Python, and caps

THREE = [Job(0, 0, 100 * SECOND, 3, 100 * SECOND), Job(1, 1 * SECOND, 10 * SECOND, 4, 10 * SECOND),
         Job(2, 2 * SECOND, 60 * SECOND, 1, 60 * SECOND)]  # fmt: skip
PLANNING = ("easy", "easy-strict", "conservative", "wfp", "fair-share", "sensitive-first")


@pytest.mark.parametrize("discipline", PLANNING)
def test_a_candidate_is_compared_at_the_rate_of_the_running_jobs(discipline: str) -> None:
    """On 4 servers at a rate of 2, the first holds three until 50 s; the third would hold the other
    one from 2 to 32 s, and delays nobody."""
    found, _ = simulated(THREE, 4, discipline, power=at_rate(2.0))
    assert [one.start / SECOND for one in found] == [0, 50, 2]
    # at a rate of 1/2 it would hold it from 2 to 122 s, and the first ends at 200 s
    found, _ = simulated(THREE, 4, discipline, power=at_rate(0.5))
    assert [one.start / SECOND for one in found] == [0, 200, 2]
    late = [*THREE[:2], THREE[2]._replace(submit=90 * SECOND)]
    found, _ = simulated(late, 4, discipline, power=at_rate(0.5))
    assert [one.start / SECOND for one in found] == [0, 200, 220], "until 210 s: B would wait"


@pytest.fixture
def plain_easy() -> Iterator[str]:
    """EASY in Python, by what a view tells."""
    name = "plain-easy"
    scheduling(name, about="as easy", source="a test")(
        lambda view: backfilling(view, range(len(view.queue)))
    )
    yield name
    del SCHEDULINGS[name]


def test_easy_in_python_agrees_with_the_compiled_one_while_rates_change(plain_easy: str) -> None:
    backfilled = 0
    for seed in range(20):
        jobs, nodes = random_trace(seed, unknown=seed % 2 == 0)
        jobs = longer(jobs, 8, submit=7)
        power = Power("rate-by-number", (("low", 1.0), ("high", 2.0), ("few", 2), ("many", 4)),
                      demand="constant")  # fmt: skip
        overrun = ("kill", "extend")[seed // 2 % 2]
        compiled, plain, fcfs = (simulated(jobs, nodes, name, overrun, power=power)[0]
                                 for name in ("easy", plain_easy, "fcfs"))  # fmt: skip
        assert plain == compiled, seed
        backfilled += compiled != fcfs
    assert backfilled > 5


CAPPED = Power("uniform", idle_w=100.0, demand="constant", cap="648 W")


@pytest.mark.parametrize("discipline", PLANNING)
def test_a_candidate_is_compared_under_the_cap_of_the_running_jobs(discipline: str) -> None:
    """4 nodes share 648 W: the first job has three, at 182.7 W each, takes 1.36 times as long and
    ends at 136 s. The third asks for 120 s, would take as many times as long too, and so waits."""
    jobs = [*THREE[:2], THREE[2]._replace(run=120 * SECOND, requested=120 * SECOND)]
    found, _ = simulated(jobs, 4, discipline, power=CAPPED)
    assert found[1].start / SECOND == pytest.approx(136.05, abs=0.01)
    assert found[2].start >= found[1].end
    shorter = [*THREE[:2], THREE[2]._replace(run=90 * SECOND, requested=90 * SECOND)]
    found, _ = simulated(shorter, 4, discipline, power=CAPPED)
    assert found[2].start == 2 * SECOND


def test_a_limit_that_stays_fixed_is_expected_as_it_is() -> None:
    found, _ = simulated(THREE, 4, "easy", power=at_rate(2.0, limits="fixed"))
    assert [one.start / SECOND for one in found] == [0, 50, 2]


# -- what policies in Python see


def test_a_view_says_when_a_job_would_end_at_the_present_pace() -> None:
    view = View(100, (), (), 4, None, pace=0.8)
    assert view.expected_end(Request(0, 1, 0, 50)) == 140
    assert view.expected_end(Request(0, 1, 0, 51)) == 141, "rounded up to a tick"
    assert view.expected_end(Request(0, 1, 0)) is None
    assert view._replace(pace=1.0).expected_end(Request(0, 1, 0, 50)) == 150
    labels = np.zeros(0, np.int64)
    assert Running(Request(0, 1, 0, 50), 100, labels, 140).requested_end == 140
    assert Running(Request(0, 1, 0, 50), 100, labels).requested_end == 150
    assert Running(Request(0, 1, 0), 100, labels, 1 << 62).requested_end is None
