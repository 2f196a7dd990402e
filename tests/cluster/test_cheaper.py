"""Jobs that are held for a cheaper hour: against a twin that tries every start, against the best
possible by integer programming, and what is promised of the bound."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cheaper_twin import Asked, Levels, Watts
from cheaper_twin import simulate as by_twin
from clusters import trace_of
from conftest import examples
from hypothesis import example, given
from hypothesis import strategies as st
from naive import Job
from random_traces import random_trace, traces
from scipy.optimize import Bounds, LinearConstraint, milp

from odonata.agents.workload import Workload
from odonata.cluster.model import Cluster
from odonata.cluster.simulation import simulate
from odonata.jobs.power import Power
from odonata.jobs.request import Job as Asking
from odonata.results.power_measures import power_measures
from pdes.driver import run
from pdes.errors import Fault, Refused
from policies.scheduling import SCHEDULINGS, SchedulingPolicy, scheduling
from topology import Dragonfly

HOUR_US = 3600 * 10**6
IDLE_W, MOST_W = 100.0, 290.0


def hours(ticks: int) -> float:
    return ticks / HOUR_US


def series(levels: Levels, unit: str = "") -> Any:
    """Returns steps as an experiment file gives them."""
    return tuple((f"{since} us", "none" if level == math.inf else f"{level:g} {unit}".strip()
                  if unit else level) for since, level in levels)  # fmt: skip


def cheaper(
    jobs: Sequence[Job], nodes: int, price: Levels, cap: Levels | None = None,
    name: str = "price-aware", power: str = "none", **parameters: Any,
) -> Cluster:  # fmt: skip
    """Returns a run in which jobs are held."""
    supply = Power(power, price=series(price), cap=None if cap is None else series(cap, "W"),
                   idle_w=IDLE_W, demand="constant")  # fmt: skip
    return Cluster(trace_of(jobs), nodes, name, tuple(parameters.items()), power=supply)


def starts(model: Cluster) -> list[int]:
    return simulate(model).schedule.start_us.tolist()


@st.composite
def courses(draw: st.DrawFn, levels: Sequence[float]) -> Levels:
    """Steps at random times."""
    times = draw(st.lists(st.integers(1, 60), max_size=8, unique=True))
    return [(time, draw(st.sampled_from(levels))) for time in (0, *sorted(times))]


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Job], int, Levels, Levels, Asked]:
    jobs, nodes = draw(traces(above=True, most_jobs=14))
    drain = draw(st.booleans())
    rule = draw(st.sampled_from(("fcfs", "easy", "first-fit") + ("conservative",) * (not drain)))
    asked = Asked(rule, draw(st.integers(0, 40)), draw(st.sampled_from((0.0, 0.5, 1.0, 3.0))),
                  draw(st.sampled_from((0.0, 0.1, 0.5))), draw(st.integers(0, 50)),
                  drain)  # fmt: skip
    most = [IDLE_W * nodes + busy * (MOST_W - IDLE_W) for busy in range(nodes + 1)]
    return jobs, nodes, draw(courses((-2, 0, 1, 2, 3, 7))), draw(courses((*most, math.inf))), asked


@examples(60)
@given(cases())
@example(
    ([Job(0, 0, 3, 1, 3), Job(1, 0, 3, 1, 3), Job(2, 0, 2, 1, None)], 1,
     [(0, 3), (5, 1), (9, 2)], [(0, 290.0)], Asked("easy", 9, 0.0, 0.0, 50, False))
)  # fmt: skip
@example(  # an end and the cap that jobs wait for come at one time, and nothing after that
    ([Job(0, 0, 0, 1, 6), Job(1, 0, 0, 1, 1), Job(2, 0, 0, 1, 1), Job(3, 1, 1, 3, 1),
      Job(4, 3, 3, 1, 4), Job(5, 7, 0, 1, 1), Job(6, 11, 10, 4, 10), Job(7, 11, 0, 1, 1),
      Job(8, 11, 0, 3, 1), Job(9, 11, 2, 4, 2), Job(10, 11, 0, 1, 2), Job(11, 11, 0, 1, 1),
      Job(12, 11, 0, 1, 1), Job(13, 11, 0, 4, 1)],
     7, [(0, 7), (1, -2), (3, -2), (18, 7), (19, 7)],
     [(0, float("inf")), (1, 700.0), (2, 700.0), (5, 1080.0), (49, 1270.0)],
     Asked("fcfs", 0, 0.0, 0.0, 26, True))
)  # fmt: skip
def test_every_start_is_that_of_the_twin(
    case: tuple[list[Job], int, Levels, Levels, Asked],
) -> None:
    jobs, nodes, price, cap, asked = case
    model = cheaper(
        jobs, nodes, price, cap, rule=asked.rule, bound=hours(asked.bound), part=asked.part,
        least_saving=asked.least_saving, horizon=hours(asked.horizon), drain=asked.drain,
    )  # fmt: skip
    twin = by_twin(jobs, nodes, price, cap, Watts(IDLE_W, MOST_W), asked)
    assert starts(model) == [record.start for record in twin]


@examples(30)
@given(traces(above=True), courses((-2, 0, 1, 2, 3, 7)), st.integers(0, 30),
       st.sampled_from((0.0, 0.5, 2.0)))  # fmt: skip
def test_no_job_is_held_beyond_its_bound_and_none_pays_more_for_it(
    case: tuple[list[Job], int], price: Levels, bound: int, part: float
) -> None:
    """On a machine with room for all, a job starts when it is released; what its requested time
    costs then is the least there is within its bound."""
    jobs, _ = case
    model = cheaper(jobs, sum(job.nodes for job in jobs), price, bound=hours(bound), part=part)

    def cost(start: int, length: int) -> float:
        return sum([level for since, level in price if since <= at][-1]
                   for at in range(start, start + length))  # fmt: skip

    for job, start in zip(jobs, starts(model), strict=True):
        asked = job.requested
        most = 0 if asked is None else min(bound, int(part * asked) if part else bound)
        assert job.submit <= start <= job.submit + most
        if asked is not None:
            costs = [cost(job.submit + late, asked) for late in range(most + 1)]
            assert start == job.submit + costs.index(min(costs))


@pytest.mark.parametrize("placed", [False, True])
@pytest.mark.parametrize(
    ("rule", "power"),
    [("easy", "none"), ("fcfs", "naive"), ("conservative", "uniform"), ("fair-share", "naive"),
     ("spf", "none")],
)  # fmt: skip
def test_with_a_bound_of_0_the_schedule_is_bit_for_bit_that_of_the_rule(
    rule: str, power: str, placed: bool
) -> None:
    for seed in range(3):
        jobs, nodes = random_trace(seed)
        where: dict[str, Any] = {}
        if placed:
            where = {"machine": Dragonfly(2, 4, 2, 9), "allocation": "rdn"}
        cap = (("0 us", "5 kW"), ("9 us", "4 kW"), ("40 us", "6 kW"))
        supply = Power(power, cap=cap, price=(("0 us", 3.0), ("11 us", 1.0)), demand="constant")
        found = []
        for name, parameters in ((rule, ()), ("price-aware", (("rule", rule), ("bound", 0.0)))):
            model = Cluster(trace_of(jobs), nodes, name, parameters, power=supply, **where)
            found.append(run(model, None, show_compiling=False).outcome)
        for name, values in found[0].items():
            assert values.tobytes() == found[1][name].tobytes(), name


def test_holding_by_carbon_is_holding_by_a_price_of_the_same_numbers() -> None:
    for seed in range(5):
        jobs, nodes = random_trace(seed)
        levels = ((0, 7.0), (6, 2.0), (15, 5.0), (22, 1.0))
        found = []
        for name, key in (("price-aware", "price"), ("carbon-aware", "carbon")):
            supply = Power(demand="constant", **{key: series(levels)})
            model = Cluster(trace_of(jobs), nodes, name, (("bound", hours(20)), ("part", 0.0)),
                            power=supply)  # fmt: skip
            found.append(starts(model))
        assert found[0] == found[1]
        assert found[0] != starts(Cluster(trace_of(jobs), nodes, "easy"))


# -- the best possible


def best_cost(
    jobs: Sequence[Job], nodes: int, price: Sequence[float], latest: Sequence[int]
) -> float:
    """Returns the least that the jobs can cost, in node-hours times prices, if each starts at a
    whole hour from its submission to its `latest`: a time-indexed program, solved exactly."""
    pairs = [(job, start) for job, last in zip(jobs, latest, strict=True)
             for start in range(job.submit, last + 1)]  # fmt: skip
    costs = [job.nodes * sum(price[start : start + job.run]) for job, start in pairs]
    once = np.array([[float(job is one) for one, _ in pairs] for job in jobs])
    held = np.array([[one.nodes * (start <= hour < start + one.run) for one, start in pairs]
                     for hour in range(len(price))])  # fmt: skip
    solved = milp(costs, integrality=np.ones(len(pairs)), bounds=Bounds(0, 1), constraints=[
        LinearConstraint(once, 1, 1), LinearConstraint(held, -np.inf, nodes)])  # fmt: skip
    assert solved.success
    return float(solved.fun)


def spent(jobs: Sequence[Job], price: Sequence[float], at: Sequence[int]) -> float:
    return sum(job.nodes * sum(price[start : start + job.run])
               for job, start in zip(jobs, at, strict=True))  # fmt: skip


def test_most_of_what_could_be_saved_at_all_is_saved_on_small_instances() -> None:
    """Six jobs on four nodes, in whole hours, with prices that all know: held for 8 hours at most.
    The best knows all jobs from the beginning, and may start each as late as either schedule."""
    luck, bound = np.random.default_rng(5), 8
    base_sum = held_sum = best_sum = 0.0
    for _ in range(40):
        price = luck.integers(1, 10, 60).astype(float).tolist()
        submits = np.sort(luck.integers(0, 10, 6)).tolist()
        jobs = [Job(number, submit, run_h, nodes, run_h) for number, (submit, run_h, nodes) in
                enumerate(zip(submits, luck.integers(1, 5, 6).tolist(),
                              luck.integers(1, 4, 6).tolist(), strict=True))]  # fmt: skip
        in_us = [job._replace(submit=job.submit * HOUR_US, run=job.run * HOUR_US,
                              requested=job.run * HOUR_US) for job in jobs]  # fmt: skip
        levels = [(hour * HOUR_US, level) for hour, level in enumerate(price)]
        held = [time // HOUR_US for time in starts(
            cheaper(in_us, 4, levels, bound=float(bound), part=0.0, horizon=60.0))]  # fmt: skip
        base = [time // HOUR_US for time in starts(cheaper(in_us, 4, levels, name="easy"))]
        latest = [max(job.submit + bound, *both) for job, *both in
                  zip(jobs, held, base, strict=True)]  # fmt: skip
        best = best_cost(jobs, 4, price, latest)
        assert best <= spent(jobs, price, held) + 1e-6
        assert best <= spent(jobs, price, base) + 1e-6
        base_sum += spent(jobs, price, base)
        held_sum += spent(jobs, price, held)
        best_sum += best
    print(f"easy {base_sum:g}, held {held_sum:g}, best {best_sum:g}")
    assert best_sum < held_sum < base_sum
    assert (base_sum - held_sum) / (base_sum - best_sum) > 0.75


# -- draining


@examples(25)
@given(traces(above=True, unknown=False, most_jobs=25), st.integers(1, 60), st.integers(0, 40),
       st.integers(1, 40), st.integers(0, 20))  # fmt: skip
def test_a_drained_machine_never_breaks_a_cap_that_was_known(
    case: tuple[list[Job], int], when: int, share: int, long: int, bound: int
) -> None:
    """Where jobs run for as long as they asked, and each fits below the lower cap alone."""
    jobs, nodes = case
    jobs = [job._replace(requested=max(1, job.run), run=max(1, job.run)) for job in jobs]
    largest = max(job.nodes for job in jobs)
    fed = min(nodes, largest + share * (nodes - largest) // 40)
    low = IDLE_W * nodes + fed * (MOST_W - IDLE_W)
    cap = [(0, math.inf), (when, low), (when + long, math.inf)]
    model = cheaper(jobs, nodes, [(0, 1)], cap, drain=True, bound=hours(bound))
    found = simulate(model).schedule
    for at in range(when, when + long):
        busy = (found.start_us <= at) & (at < found.end_us)
        assert found.trace.nodes[busy].sum() <= fed


def test_draining_keeps_a_cap_that_is_broken_without(tmp_path: Path) -> None:
    """One reading a minute: without, the evening's cap is broken, and with it no interval is."""
    jobs = [Job(n, n * 300 * 10**6, 5400 * 10**6, 2, 5400 * 10**6) for n in range(60)]
    cap = [(0, 6000.0), (3 * HOUR_US, 3500.0), (5 * HOUR_US, 6000.0)]
    found = {}
    for drain in (False, True):
        model = cheaper(jobs, 20, [(0, 1)], cap, drain=drain)
        record = simulate(model).power
        assert record is not None
        found[drain] = power_measures(record, None)
    assert found[False].capping_success < 0.9  # type: ignore[operator]
    assert sum(found[False].violations.values()) > 0
    assert found[True].capping_success == 1.0
    assert sum(found[True].violations.values()) == 0


def test_a_job_that_no_known_cap_feeds_is_not_left_waiting() -> None:
    """The whole machine for 30 hours, and every evening a cap that feeds half of it: it is drained
    for a day, and then starts. One of 10 hours waits for the end of the evening; one that no cap
    feeds starts after a day, too."""
    evenings = [(0, math.inf)] + [(hour * HOUR_US, level) for day in range(4) for hour, level in
                                  ((24 * day + 17, 600.0), (24 * day + 20, math.inf))]  # fmt: skip
    always = [(0, 600.0)]
    for long, cap, horizon, start in ((30, evenings, 24.5, 33.5), (10, evenings, 24.5, 20),
                                      (10, always, 24.0, 33), (30, evenings, 0.0, 9)):  # fmt: skip
        job = Job(0, 9 * HOUR_US, long * HOUR_US, 4, long * HOUR_US)
        model = cheaper([job], 4, [(0, 1)], cap, drain=True, horizon=horizon)
        assert starts(model) == [start * HOUR_US]


# -- the same bits


def model_to_resume() -> Cluster:
    jobs, nodes = random_trace(4)
    price = [(time, (5, 2, 9, 1, 4)[time % 5]) for time in range(0, 80, 3)]
    cap = [(0, math.inf), (20, nodes * IDLE_W + nodes // 2 * 190), (30, math.inf)]
    return cheaper(jobs, nodes, price, cap, power="naive", rule="conservative", bound=hours(25),
                   part=0.0, drain=True)  # fmt: skip


def test_a_run_that_goes_on_from_a_checkpoint_ends_with_the_same_bits(tmp_path: Path) -> None:
    whole = run(model_to_resume(), None, show_compiling=False)
    for middle in (3, 11, 21, 35):
        place = tmp_path / str(middle)
        run(model_to_resume(), middle + 1, checkpoint_dir=place, checkpoint_every=middle,
            show_compiling=False)  # fmt: skip
        rest = run(model_to_resume(), None, resume=place, show_compiling=False)
        assert rest.resumed
        assert rest.digest == whole.digest


# -- what is refused


@pytest.mark.parametrize(
    ("parameters", "given", "said"),
    [
        ({}, {}, "price-aware: it goes by the price of electricity: set power.price"),
        ({"drain": True}, {"price": 1.0}, "goes by the cap of the machine: set power.cap"),
        ({"rule": "lcfs-pr"}, {"price": 1.0}, "rule = 'lcfs-pr': a discipline that only starts"),
        ({"rule": "carbon-aware"}, {"price": 1.0}, "it holds jobs itself"),
        ({"rule": "eazy"}, {"price": 1.0}, "did you mean easy"),
        ({"bound": -1.0}, {"price": 1.0}, "bound = -1.0: a number of hours, 0 .. 8,784"),
    ],
)
def test_what_cannot_be_is_refused(
    parameters: dict[str, Any], given: dict[str, Any], said: str
) -> None:
    with pytest.raises(Refused, match=said):
        Cluster(trace_of([Job(0, 0, 1, 1, 1)]), 1, "price-aware", tuple(parameters.items()),
                power=Power(**given))  # fmt: skip


def test_a_run_without_power_and_one_of_packets_are_refused() -> None:
    with pytest.raises(Refused, match="it goes by the carbon intensity of electricity"):
        Cluster(trace_of([Job(0, 0, 1, 1, 1)]), 1, "carbon-aware")
    with pytest.raises(Refused, match='it goes by price, which only a run with '
                                      'fidelity = "job" can do'):  # fmt: skip
        Workload((Asking(2, "all-to-all", 100),), order="price-aware")


# -- asked again at a time


@pytest.fixture
def later() -> Any:
    """Registers a policy that starts jobs at some times only, and is asked then."""

    @scheduling("later", about="a test's", source="nobody's")
    class Later(SchedulingPolicy):
        every: int = 10
        back: int = 0

        def select(self, view: Any) -> list[int]:
            if view.time % self.every:
                return []
            return [view.queue[0].number] if view.queue and view.free else []

        def again(self, view: Any) -> int | None:
            if not view.queue:
                return None
            return view.time - self.back if self.back else (view.time // 10 + 1) * 10  # type: ignore[no-any-return]

    yield
    del SCHEDULINGS["later"]


@pytest.mark.parametrize("powered", [False, True])
def test_a_policy_of_ones_own_is_asked_again_when_it_wants_to_be(later: Any, powered: bool) -> None:
    """Also where a power policy has an appointment of its own, which does not move."""
    jobs = [Job(number, 3, 4, 1, 4) for number in range(4)]
    power = Power("uniform", cap="5 kW", demand="constant") if powered else None
    model = Cluster(trace_of(jobs), 4, "later", power=power)
    assert starts(model) == [10, 20, 30, 40]


def test_a_time_that_has_passed_is_no_time_to_be_asked_again(later: Any) -> None:
    model = Cluster(trace_of([Job(0, 3, 4, 1, 4)]), 4, "later", (("back", 1),))
    with pytest.raises(Fault, match="later: it wants to be asked again at 2, and it is 3 now"):
        simulate(model)
