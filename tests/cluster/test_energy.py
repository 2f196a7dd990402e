"""Energy is the integral of power, by any sequence of caps, sleeps and preemptions: the job model
against an independent integrator (`power_twin`), by job, by node and by reading."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from clusters import trace_of
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st
from naive import Job
from power_twin import (
    Rebuilt,
    Watts,
    caps_in,
    held_in,
    joules,
    mean_of_steps,
    rebuild,
    speeds_in,
)
from random_traces import build

from odonata.cluster.model import Cluster
from odonata.cluster.simulation import Simulated, simulate
from odonata.jobs.power import Power, efficiencies
from odonata.jobs.schedule import FINISHED
from policies.parameters import parameter
from policies.power import POWERS, Caps, Configuration, PowerPolicy, Speed, power
from topology import Dragonfly

US = 10**6
"""A microsecond in ps; and a second in us."""
MACHINE = Dragonfly(2, 2, 1, 3)
"""12 nodes."""
SPEEDS = {0.5: (120.0, 60.0), 1.0: (200.0, 100.0), 2.66: (410.0, 180.0)}
MOST_NODES = 8


# -- policies that do anything that they may


@dataclass(frozen=True)
class Whimsical(PowerPolicy):
    """What these have in common: chance, which depends on nothing but the question."""

    seed: int = parameter(0, about="of its whims", least=0)
    sleep_after_s: float = parameter(-1.0, unit="s", about="idle time after which a node sleeps")

    def luck(self, view: Any, *what: Any) -> random.Random:
        return random.Random(repr((self.seed, view.time, len(view.queue), *what)))

    def soon(self, view: Any, luck: random.Random) -> int | None:
        return int(view.time) + luck.randint(1, 40) if view.queue or view.running else None


class AnyCaps(Whimsical):
    """Caps, suspends and resumes whom it likes, whenever it is asked."""

    at_start: bool = parameter(False, about="whether a job has a cap from the beginning")

    def configure(self, view: Any, job: Any) -> Configuration:
        luck = self.luck(view, job.number)
        if self.at_start:
            return Configuration(job.nodes, cap_w=any_cap(luck))
        return Configuration(job.nodes)

    def caps(self, view: Any) -> Caps:
        luck = self.luck(view, "caps")
        cap_w, suspend, resume = {}, [], []
        for job in view.running:
            number, what = job.run.request.number, luck.random()
            if what < 0.5:
                cap_w[number] = any_cap(luck)
            if luck.random() < 0.2:
                suspend.append(number)
            elif luck.random() < 0.7:
                resume.append(number)
        return Caps(cap_w, suspend, resume, again=self.soon(view, luck))


class AnySpeed(Whimsical):
    """Changes the service rate whenever it is asked."""

    def caps(self, view: Any) -> Caps:
        luck = self.luck(view, "speed")
        rate = luck.choice([*SPEEDS, None])
        speed = None if rate is None else Speed(rate, *SPEEDS[rate])
        suspend, resume = [], []
        for job in view.running:
            (suspend if luck.random() < 0.15 else resume).append(job.run.request.number)
        return Caps({}, suspend, resume, self.soon(view, luck), speed)


def any_cap(luck: random.Random) -> float:
    """Returns a cap, which may be none, below the least or above the most."""
    return luck.choice((math.inf, 0.0, 150.0, 1000.0, 150.0 + 50.0 * luck.random()))


@pytest.fixture(scope="module", autouse=True)
def whims() -> Iterator[None]:
    power("any-caps", about="a test's", source="nobody's")(AnyCaps)
    power("any-speed", about="a test's", source="nobody's")(AnySpeed)
    yield
    del POWERS["any-caps"], POWERS["any-speed"]


# -- what is held against what


@st.composite
def small(draw: st.DrawFn, *, shortest: int = 1, most_nodes: int = MOST_NODES) -> list[Job]:
    """Jobs for a machine of so many nodes, some of which overrun."""
    rows = []
    for _ in range(draw(st.integers(1, 12))):
        gap = draw(st.sampled_from((0, 0, 1, 7, 40)))
        run = draw(st.integers(shortest, 60))
        requested = draw(st.one_of(st.none(), st.integers(1, 80)))
        rows.append((gap, run, draw(st.integers(1, most_nodes)), requested, 0))
    return build(rows)


def settings_with(**more: Any) -> Power:
    given: dict[str, Any] = {
        "demand": "constant", "idle_w": 100.0, "active_w": 200.0, "least_w": 150.0,
        "slowdown": 2.0, "sleep_w": 10.0, "wake_ps": 5 * US, "wake_j": 5e-6 * 250.0,
        "interval_ps": 10 * US,
    }  # fmt: skip
    return Power(**{**given, **more})


def watts_of(model: Cluster) -> Watts:
    """Returns what its nodes are like, as the twin wants to know it."""
    p = model.power
    assert p is not None
    after = p.made(US).sleep_after_s
    factors = () if model.machine is None else tuple(
        efficiencies(model.machine.n_nodes, p.variation, model.seed).tolist())  # fmt: skip
    return Watts(
        model.nodes, p.idle, p.active_w, p.least_w, p.slowdown, p.sleep_w,
        p.wake_j / (p.wake_ps * 1e-12) if p.wake_ps else 0.0, p.wake_ps // US,
        round(after * 1e6) if after >= 0 else None, factors, SPEEDS,
    )  # fmt: skip


def rebuilt(model: Cluster, found: Simulated) -> Rebuilt:
    record = found.power
    assert record is not None
    return rebuild(held_in(found.schedule, record.until), model.trace.nodes.tolist(),
                   watts_of(model), record.until, caps_in(record), speeds_in(record))  # fmt: skip


def near(value: float, rel: float = 1e-9) -> Any:
    return pytest.approx(value, rel=rel, abs=1e-15)


def agree(model: Cluster, end_us: int | None = None) -> tuple[Simulated, Rebuilt]:
    """Hold a run against the twin, by everything that it accounts for."""
    found = simulate(model, end_us)
    record, twin = found.power, rebuilt(model, found)
    assert record is not None
    assert record.until == (found.schedule.end_us.max() if end_us is None else end_us)
    assert record.energy_j.tolist() == near([joules(pieces) for pieces in twin.by_job])
    assert record.idle_j == near(joules(twin.idle))
    assert record.sleep_j == near(joules(twin.asleep))
    assert record.total_j == near(joules(twin.everything))
    assert found.result.outcome["wakes"].tolist() == [twin.wakes]
    assert found.result.outcome["energy_j"].tolist() == near(record.energy_j.tolist())
    if model.machine is not None:
        by_node = found.result.outcome["node_j"][: model.nodes].tolist()
        assert by_node == near([joules(pieces) for pieces in twin.by_node])
        assert math.fsum(by_node) == near(record.total_j)
    readings_agree(model, found, twin)
    if end_us is None:
        work_is_done(model, found, twin)
    return found, twin


def readings_agree(model: Cluster, found: Simulated, twin: Rebuilt) -> None:
    record, cap = found.power, model.cap
    assert record is not None
    assert model.power is not None
    assert model.power.interval_ps is not None
    interval = model.power.interval_ps // US
    steps = [(0, math.inf)] if cap is None else [*zip(cap.begins, cap.levels, strict=True)]
    times = record.time.tolist()
    last = record.until // interval * interval
    if times and times[-1] == record.until:  # a reading at the very end may be there, or not
        assert last == record.until
    elif last == record.until:
        last -= interval
    assert times == [*range(interval, last + 1, interval)]
    for time, drawn, allowed, cause in zip(times, record.power_w.tolist(), record.cap_w.tolist(),
                                           record.cause.tolist(), strict=True):  # fmt: skip
        mean = joules(twin.everything, time - interval, time) / (interval / 1e6)
        limit = mean_of_steps(steps, time - interval, time)
        assert drawn == near(mean), time
        assert allowed == near(limit), time
        if mean != pytest.approx(limit, rel=1e-8):
            assert (cause != 0) == (mean > limit), time
    rest = joules(twin.everything, last, record.until)
    measured = math.fsum(record.power_w * (interval / 1e6))
    assert measured + rest == near(record.total_j)
    assert sum(record.violations.values()) == int((record.cause != 0).sum())
    if cap is None:
        assert not record.cause.any()


def work_is_done(model: Cluster, found: Simulated, twin: Rebuilt) -> None:
    """A job ends at the first tick at which its work is done; one that is killed, not before what
    it asked for is done."""
    run, asked = model.trace.run_us.tolist(), model.trace.requested_us.tolist()
    for job, state in enumerate(found.schedule.state.tolist()):
        if state != FINISHED and model.power and model.power.limits == "fixed":
            continue
        due = run[job] if state == FINISHED else asked[job]
        assert due - 1e-6 <= twin.work[job] < due + 1.0 / twin.last_pace[job] + 1e-6, job


# -- one at a time


def test_a_job_draws_what_it_demands_and_idle_nodes_what_they_do() -> None:
    model = Cluster(trace_of([Job(0, 10 * US, 20 * US, 3, None)]), 5, power=settings_with(
        interval_ps=10**13))  # fmt: skip
    found, _ = agree(model)
    assert found.power is not None
    assert found.power.energy_j.tolist() == [3 * 200 * 20]
    assert found.power.idle_j == 5 * 100 * 10 + 2 * 100 * 20
    assert found.power.power_w.tolist() == [500.0, 800.0, 800.0][: len(found.power.time)]


@pytest.mark.parametrize("maximum_w", [120.0, None])
def test_nodes_that_demand_what_miras_did_have_a_maximum_of_their_own(
    maximum_w: float | None,
) -> None:
    """`active` is no word of theirs, and may be above it."""
    supply = Power("none", demand="mira", maximum_w=maximum_w, interval_ps=10**13)
    found = simulate(Cluster(trace_of([Job(0, 0, 60 * US, 4, 60 * US)]), 8, power=supply))
    assert found.power is not None
    assert 0 < found.power.power_w.max() <= 4 * supply.maximum


def test_nodes_sleep_and_wake_and_their_job_waits_for_them() -> None:
    power = settings_with(policy="idle-sleep", policy_parameters=(("sleep_after_s", 4.0),),
                          wake_ps=5 * 10**12, wake_j=1000.0, interval_ps=10**13)  # fmt: skip
    jobs = [Job(0, 0, 10 * US, 2, None), Job(1, 12 * US, 10 * US, 3, None)]
    found, twin = agree(Cluster(trace_of(jobs), 5, power=power))
    assert found.schedule.end_us.tolist() == [10 * US, 27 * US]
    assert found.power is not None
    assert found.power.energy_j.tolist() == [
        2 * 200 * 10, 1 * 1000 + 2 * 100 * 5 + 3 * 200 * 10]  # fmt: skip
    assert found.power.idle_j == 3 * 100 * 4 + 2 * 100 * 2
    assert found.power.sleep_j == 3 * 10 * 8 + 2 * 10 * 15
    assert twin.wakes == 1


def test_nodes_that_a_preempted_job_leaves_go_to_sleep_too() -> None:
    power = settings_with(policy="idle-sleep", policy_parameters=(("sleep_after_s", 2.0),),
                          wake_ps=10**12, wake_j=100.0, interval_ps=10**13)  # fmt: skip
    jobs = [Job(0, 0, 100 * US, 10, None), Job(1, 5 * US, 50 * US, 1, None)]
    found, _ = agree(Cluster(trace_of(jobs), 10, "lcfs-pr", power=power))
    assert found.power is not None
    assert found.power.sleep_j == 9 * 48 * 10


def test_a_node_that_sleeps_at_once_is_woken_by_every_job() -> None:
    power = settings_with(policy="idle-sleep", policy_parameters=(("sleep_after_s", 0.0),))
    jobs = [Job(0, 0, 10, 1, None), Job(1, 0, 10, 1, None)]
    found, _ = agree(Cluster(trace_of(jobs), 1, power=power))
    assert found.schedule.end_us.tolist() == [15, 30]
    assert found.power is not None
    assert found.power.idle_j == 0


# -- at random

SCHEDULINGS: dict[str, dict[str, Any]] = {
    "fcfs": {}, "easy": {}, "lcfs-pr": {}, "spf": {}, "spf printed": {"printed": True},
}  # fmt: skip
SLEEPY = st.sampled_from((1, 3, 10, 30))


def cluster(jobs: list[Job], discipline: str, power: Power, **more: Any) -> Cluster:
    given = tuple(SCHEDULINGS[discipline].items())
    return Cluster(trace_of(jobs), MOST_NODES, discipline.split()[0], given, power=power, **more)


@pytest.mark.parametrize("discipline", SCHEDULINGS)
@given(small(), st.data())
@examples(10)
def test_sleep_and_preemption(discipline: str, jobs: list[Job], data: Any) -> None:
    after = data.draw(st.sampled_from((-1, 1, 3, 10, 30)))
    wake = data.draw(st.sampled_from((0, 1, 5, 20)))
    power = settings_with(
        policy="idle-sleep", policy_parameters=(("sleep_after_s", after / 1e6),),
        wake_ps=wake * US, wake_j=wake and 1e-3,
    )  # fmt: skip
    agree(cluster(jobs, discipline, power, overrun=data.draw(st.sampled_from(("kill", "extend")))))


@st.composite
def cap_steps(draw: st.DrawFn) -> Any:
    """A cap of all nodes, above what they draw when they are idle, that changes now and then."""
    times = [0, *sorted(draw(st.sets(st.integers(1, 300), max_size=5)))]
    levels = [draw(st.integers(800, 1700)) for _ in times]
    return tuple((f"{time} us", f"{level} W") for time, level in zip(times, levels, strict=True))


@pytest.mark.parametrize("discipline", SCHEDULINGS)
@pytest.mark.parametrize("policy", ["none", "uniform", "naive"])
@given(small(), cap_steps())
@examples(6)
def test_a_cap_of_the_machine_that_changes(
    policy: str, discipline: str, jobs: list[Job], cap: Any
) -> None:
    agree(cluster(jobs, discipline, settings_with(policy=policy, cap=cap)))


@pytest.mark.parametrize("discipline", SCHEDULINGS)
@given(small(), st.integers(0, 10**6), st.sampled_from((3, 10, 50)))
@examples(10)
def test_any_caps_of_jobs_and_whoever_is_suspended(
    discipline: str, jobs: list[Job], seed: int, interval: int
) -> None:
    power = settings_with(policy="any-caps", policy_parameters=(("seed", seed),),
                          interval_ps=interval * US)  # fmt: skip
    agree(cluster(jobs, discipline, power))


@pytest.mark.parametrize("discipline", ["fcfs", "lcfs-pr"])
@given(small(), st.integers(0, 10**6))
@examples(6)
def test_a_cap_that_a_job_starts_with_is_logged(
    discipline: str, jobs: list[Job], seed: int
) -> None:
    given = (("seed", seed), ("at_start", True))
    agree(cluster(jobs, discipline, settings_with(policy="any-caps", policy_parameters=given)))


@pytest.mark.parametrize("discipline", ["easy", "lcfs-pr"])
@pytest.mark.parametrize("policy", ["any-caps", "any-speed"])
@given(small(), st.integers(0, 10**6), SLEEPY)
@examples(6)
def test_caps_and_speeds_while_nodes_wake(
    policy: str, discipline: str, jobs: list[Job], seed: int, after: int
) -> None:
    given = (("seed", seed), ("sleep_after_s", after / 1e6))
    agree(cluster(jobs, discipline, settings_with(policy=policy, policy_parameters=given)))


@pytest.mark.parametrize("discipline", ["fcfs", "lcfs-pr"])
@given(small(), st.integers(0, 10**6))
@examples(10)
def test_any_service_rate(discipline: str, jobs: list[Job], seed: int) -> None:
    power = settings_with(policy="any-speed", policy_parameters=(("seed", seed),))
    agree(cluster(jobs, discipline, power))


@pytest.mark.parametrize("policy", ["idle-sleep", "any-caps", "any-speed"])
@pytest.mark.parametrize("discipline", ["easy", "lcfs-pr"])
@given(small(shortest=0), st.data())
@examples(6)
def test_every_node_of_a_placed_run(
    discipline: str, policy: str, jobs: list[Job], data: Any
) -> None:
    given: tuple[tuple[str, Any], ...] = (("sleep_after_s", data.draw(SLEEPY) / 1e6),)
    if policy != "idle-sleep":
        given += (("seed", data.draw(st.integers(0, 10**6))),)
    power = settings_with(policy=policy, policy_parameters=given,
                          variation=data.draw(st.sampled_from((0.0, 0.23))))  # fmt: skip
    agree(cluster(jobs, discipline, power, machine=MACHINE,
                  allocation=data.draw(st.sampled_from(("level-spread", "rdn")))))  # fmt: skip


@pytest.mark.parametrize("policy", ["idle-sleep", "any-caps", "any-speed"])
@given(small(), st.integers(0, 300), st.booleans(), st.integers(0, 10**6))
@examples(6)
def test_a_run_that_is_cut_short_accounts_for_what_was_drawn_so_far(
    policy: str, jobs: list[Job], end: int, placed: bool, seed: int
) -> None:
    given: tuple[tuple[str, Any], ...] = (("sleep_after_s", 7e-6),)
    if policy != "idle-sleep":
        given += (("seed", seed),)
    power = settings_with(policy=policy, policy_parameters=given)
    model = cluster(jobs, "easy", power, machine=MACHINE if placed else None)
    over = int(simulate(model).schedule.end_us.max())
    agree(model, min(end, over - 1))


@given(small(shortest=0), st.sampled_from([*SCHEDULINGS]), st.booleans())
@examples(10)
def test_power_that_nothing_caps_changes_no_schedule(
    jobs: list[Job], discipline: str, slow: bool
) -> None:
    more: dict[str, Any] = {}
    if slow:
        more = {"machine": MACHINE, "slowdown": lambda job, labels: 1.0 + job.number % 3 / 2}
    found = [simulate(cluster(jobs, discipline, power, **more)).schedule
             for power in (None, settings_with(), settings_with(cap="800 W"))]  # fmt: skip
    for name in ("state", "segment_job", "segment_from_us", "segment_to_us"):
        columns = [getattr(one, name).tolist() for one in found]
        assert columns[0] == columns[1] == columns[2], name
