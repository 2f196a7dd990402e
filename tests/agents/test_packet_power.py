"""Power in runs of packets: caps stretch computing and nothing else, and no joule is lost."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from machines import SMALL, US
from workloads import LAUNCH, Ran, go, network

from odonata.agents.power import energy_at
from odonata.jobs.metering import CAUSES, DEADLOCK, LOWERED_CAP, UNCONTROLLED, WITHIN
from odonata.jobs.power import Power, efficiencies
from odonata.jobs.request import Job, Stage
from odonata.results.job_table import HEADS, cells, heads, job_facts
from odonata.results.performance import node_energy_j, performance
from pdes.errors import Fault, Refused
from policies.memory import Sizes
from policies.parameters import parameter
from policies.power import POWERS, Caps, Configuration, PowerPolicy, Speed, power

HERE = Path(__file__).parent.parent
IDLE, ACTIVE, LEAST, SLOWDOWN = 100.0, 290.0, 162.0, 1.43
NODES = SMALL.n_nodes
PAIR = {"pattern": "permutation", "message_bytes": 8, "compute_ps": 5 * US, "iterations": 4}
"""Two tasks that compute most of the time, in step."""


def stretched(cap_w: float, factor: float = 1.0) -> float:
    """Returns the formula: linear from once at `active` to `slowdown` at `least`."""
    cap = max(cap_w / factor, LEAST)
    if cap >= ACTIVE:
        return 1.0
    return 1.0 + (SLOWDOWN - 1.0) * (ACTIVE - cap) / (ACTIVE - LEAST)


class Fixed(PowerPolicy):
    """Every job gets the same cap."""

    watts: float = parameter(1e9, unit="W", about="per node")

    def configure(self, view: Any, job: Any) -> Configuration:
        return Configuration(job.nodes, cap_w=self.watts)


class Halving(PowerPolicy):
    """Halves the cap of every job at each measurement, and begins anew after two; remembers how
    often, and asks for a word in between."""

    figures = ("halved",)

    def remembers(self, sizes: Sizes) -> dict[str, Any]:
        return {"count": np.zeros(1, np.int64)}

    def observe(self, view: Any) -> tuple[float]:
        assert view.readings.jobs.tolist() == sorted(view.readings.jobs.tolist())
        assert (view.readings.watts > 0).all()
        view.memory.count += 1
        return (float(view.memory.count[0]),)

    def caps(self, view: Any) -> Caps:
        watts = ACTIVE / 2 ** (view.memory.count[0] % 3)
        return Caps({job.run.request.number: watts for job in view.running},
                    again=view.time + 7 * US)  # fmt: skip


class Wrong(PowerPolicy):
    """Answers what no run of packets can do."""

    how: str = parameter("speed", about="what it does")

    def caps(self, view: Any) -> Caps:
        number = view.running[0].run.request.number
        return Caps(speed=Speed(1.0, 1.0, 1.0)) if self.how == "speed" else Caps(suspend=[number])


class Idle(PowerPolicy):
    """Starts nobody."""

    def configure(self, view: Any, job: Any) -> None:
        return None


@pytest.fixture(autouse=True, scope="module")
def plugins() -> Iterator[None]:
    ours = {"fixed": Fixed, "halving": Halving, "wrong": Wrong, "nobody-starts": Idle}
    for name, written in ours.items():
        power(name, about="a test's", source="ours")(written)
    yield
    for name in ours:
        del POWERS[name]


def fixed(watts: float, **how: Any) -> Power:
    return Power("fixed", (("watts", min(1e9, watts)),), **how)


@dataclass
class Logged:
    """A run, with the rows of its logs: time and values."""

    ran: Ran
    rows: dict[str, list[tuple[int, tuple[Any, ...]]]]

    @property
    def took(self) -> list[int]:
        return [job.end_ps - job.start_ps for job in self.ran.jobs]  # type: ignore[operator]


def logged(*jobs: Job, end: int | None = None, **given: Any) -> Logged:
    rows: dict[str, list[Any]] = {"power": [], "caps": [], "learned": [], "ends": [], "starts": []}

    def log(time: int, agent: int, appended: Any) -> None:
        for name, values in appended:
            rows[name].append((time, tuple(values)))

    return Logged(go(network(*jobs, **given), end, log=log), rows)


# -- time


def test_without_a_cap_packets_and_times_are_those_without_power() -> None:
    jobs = (Job(9, "halo2d", 900, iterations=3, compute_ps=2 * US), Job(20, "allreduce", 3000))
    plain = go(network(*jobs, tasks_per_node=2))
    powered = go(network(*jobs, tasks_per_node=2, power=Power(interval_ps=3 * US)))
    assert powered.result.digest != plain.result.digest
    assert (powered.result.outcome["nodes"] == plain.result.outcome["nodes"]).all()
    assert (powered.state.history == plain.state.history).all()
    for one, other in zip(powered.jobs, plain.jobs, strict=True):
        assert (one.start_ps, one.end_ps, one.labels) == (
            other.start_ps,
            other.end_ps,
            other.labels,
        )
        assert one.energy_j is not None
        assert other.energy_j is None


@pytest.mark.parametrize(
    ("nodes", "how", "compute_ps"),
    [
        (2, {"pattern": "permutation"}, 5_000_003),
        (8, {"pattern": "allreduce"}, 7_777_777),
        (9, {"pattern": "halo2d", "tasks_per_node": 4}, 9_000_001),
        (12, {"pattern": "all-to-all"}, 20_000_001),
    ],
    ids=["pair", "allreduce", "stencil", "all-to-all"],
)
@pytest.mark.parametrize("share", [0.6, 0.9])
def test_a_compute_bound_job_stretches_by_its_formula_to_the_picosecond(
    nodes: int, how: dict[str, Any], compute_ps: int, share: float
) -> None:
    pattern, iterations = how["pattern"], 3
    job = Job(nodes, pattern, 8, iterations=iterations, compute_ps=compute_ps)
    tasks = how.get("tasks_per_node", 1)
    free = logged(job, tasks_per_node=tasks, power=fixed(math.inf))
    capped = logged(job, tasks_per_node=tasks, power=fixed(share * ACTIVE))
    factor = stretched(share * ACTIVE)
    assert factor == pytest.approx(1 + 0.43 * (1 - share) * 290 / 128)
    more = math.ceil(compute_ps * factor) - compute_ps
    assert capped.took[0] == free.took[0] + iterations * more
    assert free.took[0] < 1.2 * iterations * compute_ps  # it is compute-bound


def test_a_communication_bound_job_stretches_by_its_compute_share_only() -> None:
    job = Job(2, "permutation", 200_000, iterations=3, compute_ps=2 * US)
    free, capped = (logged(job, power=fixed(watts)) for watts in (math.inf, 174.0))
    share = 3 * 2 * US / free.took[0]
    assert share < 0.1
    factor = stretched(174.0)
    assert capped.took[0] == free.took[0] + 3 * (math.ceil(2 * US * factor) - 2 * US)
    assert capped.took[0] / free.took[0] == pytest.approx(1 + share * (factor - 1), rel=1e-6)


STAGED = Job(6, iterations=3, stages=(
    Stage("allreduce", 100, compute_ps=3 * US, overhead_ps=US, imbalance=0.7, repeat=2),
    Stage("halo2d", 900, compute_ps=0, overhead_ps=2 * US, name="edges"),
    Stage("permutation", 8, compute_ps=777_777, imbalance=0.1),
))  # fmt: skip
"""Tasks that differ, several passes and phases, and time in MPI."""


def test_without_a_cap_no_job_is_stretched_to_the_last_bit() -> None:
    """So what a job has to compute is known exactly, wherever its tasks differ."""
    talks = Job(3, "permutation", 8, iterations=2)
    ran = logged(STAGED, Job(2, **PAIR), talks, tasks_per_node=2, power=Power(interval_ps=3 * US))
    assert [job.cap_stretch for job in ran.ran.jobs] == [1.0, 1.0, None]


def test_every_job_says_by_how_much_caps_stretched_what_it_computes() -> None:
    """Overhead is work of the processor: it stretches as computing does, and the network does
    not."""
    ran = logged(STAGED, Job(2, **PAIR), power=fixed(226.0))
    first, second = ran.ran.jobs
    longer = math.ceil(5 * US * stretched(226.0))
    assert first.cap_stretch == pytest.approx(1.215, rel=1e-6)
    assert second.cap_stretch == longer / (5 * US) == pytest.approx(1.215)
    alone = Job(2, stages=(Stage("permutation", 8, compute_ps=0, overhead_ps=5 * US),))
    free, capped = (logged(alone, power=fixed(watts)).took[0] for watts in (math.inf, 226.0))
    assert capped == free + longer - 5 * US
    text = ran.ran.csv()
    assert [line.rsplit(",", 1)[1] for line in text.splitlines()] == [
        "cap_stretch", str(first.cap_stretch), str(second.cap_stretch)]  # fmt: skip
    facts = job_facts(SMALL, ran.ran.jobs)
    assert [it["cap_stretch"] for it in facts] == [first.cap_stretch, second.cap_stretch]
    assert cells(SMALL, second, True)[-1] == "1.215"


def test_a_cap_below_the_least_is_the_least() -> None:
    job = Job(2, **PAIR)
    assert logged(job, power=fixed(3.0)).took == logged(job, power=fixed(LEAST)).took


def test_a_job_is_as_slow_as_its_least_efficient_node() -> None:
    factors = efficiencies(NODES, 0.5, 1)[:2]
    job, how = Job(2, **{**PAIR, "iterations": 1}), {"variation": 0.5}
    free = logged(job, power=fixed(math.inf, **how)).took[0]
    capped = logged(job, power=fixed(200.0, **how)).took[0]
    slower = math.ceil(5 * US * stretched(200.0, max(factors)))
    assert capped == free + slower - 5 * US


def cap_of(levels: list[float], times: list[int]) -> list[list[str]]:
    return [[f"{time} ps", f"{NODES * level} W"]
            for time, level in zip([0, *times], levels, strict=True)]  # fmt: skip


@settings(max_examples=25)
@example([290.0, 170.0, 290.0], [20 * US, 40 * US])
@given(st.lists(st.floats(110.0, 320.0), min_size=2, max_size=6), st.data())
def test_a_cap_lowered_and_raised_again_costs_exactly_the_stretched_work(
    levels: list[float], times: Any
) -> None:
    """All nodes are of one job, so each has its part of the machine's cap; the cap changes while
    they compute, at times of no multiple of anything."""
    if not isinstance(times, list):
        some = st.lists(st.integers(1, 150 * US), min_size=len(levels) - 1,
                        max_size=len(levels) - 1, unique=True)  # fmt: skip
        times = sorted(times.draw(some))
    compute_ps = 100 * US
    job = Job(NODES, "permutation", 8, compute_ps=compute_ps)
    cap = cap_of(levels, times)
    steps = Power(cap=cap).steps("cap", 1)
    assert steps is not None
    ran = logged(job, power=Power("uniform", cap=cap, interval_ps=10**9))
    at, left = LAUNCH, float(compute_ps)
    changes = [(time + LAUNCH, level / NODES)
               for time, level in zip(steps.begins, steps.levels, strict=True)]  # fmt: skip
    pace, end = stretched(changes[0][1]), 0
    for (_, _), (then, level) in pairwise([*changes, (10**12, ACTIVE)]):
        end = at + math.ceil(left * pace)
        if end <= then:
            break
        if stretched(level) != pace:
            left, at, pace = max(0.0, left - (then - at) / pace), then, stretched(level)
    unhindered = _unhindered(job) - compute_ps
    assert ran.took[0] == end - LAUNCH + unhindered


_known: dict[Job, int] = {}


def _unhindered(job: Job) -> int:
    if job not in _known:
        _known[job] = logged(job, power=Power()).took[0]
    return _known[job]


# -- energy


def test_energy_is_power_times_time_by_hand() -> None:
    """Two nodes compute, then communicate, four times, in step; the others are idle."""
    cap, waits = 200.0, 130.0
    ran = logged(Job(2, **PAIR), power=fixed(cap, communicating_w=waits, idle_w=90.0))
    (record,), (took,) = ran.ran.jobs, ran.took
    computing = 4 * math.ceil(5 * US * stretched(cap)) * 1e-12
    expected = 2 * (computing * cap + (took * 1e-12 - computing) * waits)
    assert record.energy_j == pytest.approx(expected, rel=1e-9)
    assert record.received_bytes == 2 * 4 * 8
    assert record.j_per_byte == pytest.approx(expected / 64, rel=1e-9)
    total = ran.ran.result.time_ps * 1e-12
    nodes = node_energy_j(ran.ran.result)
    assert nodes.sum() == pytest.approx(
        expected + 90.0 * (NODES * total - 2 * took * 1e-12), rel=1e-9
    )
    assert nodes[2:] == pytest.approx(np.full(NODES - 2, 90.0 * total), rel=1e-9)


def test_who_only_communicates_polls_unless_told_otherwise() -> None:
    ran = logged(Job(2, "permutation", 5000, iterations=3), power=Power())
    assert ran.ran.jobs[0].energy_j == pytest.approx(2 * ACTIVE * ran.took[0] * 1e-12, rel=1e-9)


def test_a_node_with_some_tasks_that_compute_draws_its_part() -> None:
    """Only task 0 of an incast waits; the tasks of a node leave one by one."""
    job = Job(2, "incast", 8, compute_ps=4 * US)
    ran = logged(job, tasks_per_node=2, power=Power(communicating_w=110.0))
    energy, computing = ran.ran.jobs[0].energy_j, 4 * US * 1e-12
    assert energy is not None
    lower, upper = 2 * computing * ACTIVE, 2 * computing * ACTIVE + 2 * ran.took[0] * 1e-12 * 110
    assert lower < energy < upper


MIXED = """
import json, math, sys
sys.path.append({here!r})
import numpy as np
from machines import US
from odonata.agents.layout import CAP_W, FROM, JOB, FACTOR
from odonata.agents.network import Network
from odonata.agents.workload import Workload
from odonata.jobs.power import Power
from odonata.jobs.request import Job
from odonata.results.performance import job_records, node_energy_j
from pdes.driver import run
from pdes.jit import ENABLED
from topology import Dragonfly

JOBS = (Job(3, "allreduce", 900, iterations=3, compute_ps=4 * US),
        Job(6, "halo2d", 2000, iterations=4, compute_ps=3 * US, arrival_ps=1, user="ann"),
        Job(5, "all-to-all", 700, compute_ps=9 * US, arrival_ps=2 * US, project="p"),
        Job(2, "uniform", 600, iterations=5, compute_ps=2 * US, arrival_ps=30 * US))
CAP = [["0 s", "4.6 kW"], *[[f"{{20 * n}} us", f"{{(3500, 2500, 4900)[n % 3]}} W"]
                            for n in range(1, 12)]]
POWER = Power({policy!r}, cap=CAP, interval_ps=9 * US, variation=0.23, communicating_w=150.0)
WATTS, SINCE, TOTAL = {{}}, {{}}, {{}}

class Watched(Network):
    '''Integrates by itself, from what tasks do.'''
    @property
    def handle(self):
        inner = Network.handle.fget(self)
        def handle(sim, state, time, key, a, b):
            inner(sim, state, time, key, a, b)
            busy = (state.slots[:, :, JOB] >= 0).sum(axis=1)
            computing = (state.efforts[:, :, FROM] >= 0).sum(axis=1)
            for node in range(len(busy)):
                f, cap = state.meters[node, FACTOR], state.meters[node, CAP_W]
                draws = 100.0
                if busy[node]:
                    p, c = (min(f * w, max(cap, f * 162.0)) for w in (290.0, 150.0))
                    draws = c + (p - c) * (computing[node] / 2)
                if WATTS.get(node, 100.0) != draws:
                    TOTAL.setdefault(node, []).append(
                        WATTS.get(node, 100.0) * (int(time) - SINCE.get(node, 0)))
                    WATTS[node], SINCE[node] = draws, int(time)
        return handle

kind = Network if ENABLED else Watched
model = kind(Dragonfly(2, 3, 1, 4), workload=Workload(JOBS, launch_ps=900_000), routing="adaptive",
             power=POWER)
logs = []
result = run(model, None, show_compiling=False, debug=not ENABLED and POWER.policy == "uniform",
             log=lambda time, agent, rows: logs.extend((time, n, *map(float, v)) for n, v in rows
                                                       if n != "starts"))
found = {{"digest": result.digest, "logs": logs, "nodes": node_energy_j(result).tolist(),
         "jobs": [job.energy_j for job in job_records(model, result)], "time": result.time_ps}}
if not ENABLED:
    found["own"] = [math.fsum([*TOTAL.get(n, ()), WATTS.get(n, 100.0) * (
        result.time_ps - SINCE.get(n, 0))]) * 1e-12 for n in range(24)]
print(json.dumps(found))
"""


@pytest.mark.parametrize("policy", [
    pytest.param("uniform", marks=pytest.mark.long), "naive", "dynamic-learner",
])  # fmt: skip
def test_with_the_jit_off_all_is_the_same_and_energy_is_that_of_another_integrator(
    policy: str, python: Callable[..., str]
) -> None:
    """The caps change every 20 us; nodes differ."""
    code = MIXED.format(here=str(HERE), policy=policy)
    plain, compiled = (json.loads(python(code, jit=jit)) for jit in "01")
    own = plain.pop("own")
    assert plain == compiled
    assert plain["nodes"] == pytest.approx(own, rel=1e-9)
    assert sum(plain["nodes"]) > sum(plain["jobs"]) > 0


def test_a_node_energy_is_its_level_at_any_time() -> None:
    """What is sampled is the integral so far, and no sample changes anything."""
    ran = logged(Job(2, **PAIR), power=fixed(200.0))
    state, time = ran.ran.state, ran.ran.result.time_ps
    assert energy_at(state, time) == pytest.approx(node_energy_j(ran.ran.result), rel=1e-12)
    table = ran.ran.network.tables(US)["nodes"]
    assert table.series[-1].name == "nodes/energy_j"
    assert (table.sample(state, time)[-1] == energy_at(state, time)).all()
    plain = network(Job(2, **PAIR)).tables(US)["nodes"]
    assert "nodes/energy_j" not in [series.name for series in plain.series]


# -- measurements


def test_a_measurement_is_known_a_launch_later_and_its_rows_add_up() -> None:
    ran = logged(Job(2, **PAIR), power=Power(interval_ps=4 * US))
    times = [time for time, _ in ran.rows["power"]]
    assert times == [4 * US * n + LAUNCH for n in range(1, len(times) + 1)]
    assert len(times) == ran.ran.jobs[0].end_ps // (4 * US)  # type: ignore[operator]
    (_, (drawn, cap, cause)), _, (_, (full, *_)), *_ = ran.rows["power"]
    busy = 2 * (4 * US - LAUNCH) / (4 * US)
    assert drawn == pytest.approx(IDLE * NODES + busy * (ACTIVE - IDLE), rel=1e-9)
    assert full == pytest.approx(IDLE * NODES + 2 * (ACTIVE - IDLE), rel=1e-9)
    assert (cap, cause) == (math.inf, WITHIN)


def test_every_interval_above_the_cap_has_its_cause() -> None:
    job = Job(40, **{**PAIR, "iterations": 20})
    low, high = NODES * IDLE + 40 * (LEAST - IDLE) + 1, NODES * ACTIVE
    changed = [["0 s", f"{high} W"], ["30 us", f"{low} W"]]
    none = logged(job, power=Power(cap=f"{low} W", interval_ps=5 * US))
    assert {row[2] for _, row in none.rows["power"]} == {UNCONTROLLED}
    lowered = logged(job, power=Power("uniform", cap=changed, interval_ps=5 * US))
    causes = [row[2] for _, row in lowered.rows["power"]]
    assert causes.count(LOWERED_CAP) == 1  # until the cap has come to the nodes
    assert {*causes} == {WITHIN, LOWERED_CAP}
    assert lowered.rows["caps"][-2][1] == (-1, low)
    forced = logged(job, power=Power("naive", cap=f"{low} W", interval_ps=5 * US))
    assert {row[2] for _, row in forced.rows["power"]} == {DEADLOCK}
    assert all(name in CAUSES for name in ("deadlock", "cap lowered", "not controlled"))


@pytest.mark.parametrize("policy", ["naive", "uniform"])
@pytest.mark.parametrize("interval_ps", [3 * US, 40 * US])
def test_a_cap_of_what_all_nodes_draw_at_most_has_nobody_wait(
    policy: str, interval_ps: int
) -> None:
    """Each job takes the place of another, whose watts are in the last measurement."""
    jobs = [Job(n, **PAIR, arrival_ps=n * US) for n in (40, 60, 25, 72, 8, 64, 10)]
    cap = f"{NODES * ACTIVE} W"
    free, capped = (logged(*jobs, power=Power(name, cap=cap, interval_ps=interval_ps))
                    for name in ("none", policy))  # fmt: skip
    assert [job.start_ps for job in capped.ran.jobs] == [job.start_ps for job in free.ran.jobs]
    assert capped.took == free.took


def test_a_policy_of_ones_own_measures_caps_and_remembers() -> None:
    jobs = (Job(8, "allreduce", 100, iterations=9, compute_ps=4 * US),
            Job(70, "permutation", 100, arrival_ps=5, compute_ps=30 * US))  # fmt: skip
    ran = logged(*jobs, power=Power("halving", interval_ps=10 * US))
    counts = [row for _, row in ran.rows["learned"]]
    assert counts == [(float(n + 1),) for n in range(len(counts))]
    given = {watts for _, (job, watts) in ran.rows["caps"] if job == 0}
    assert given == {ACTIVE, ACTIVE / 2, ACTIVE / 4}
    assert ran.took[0] > logged(jobs[0], power=Power()).took[0]


@pytest.mark.parametrize("launch_ps", [0, 1, 3 * US, 50 * US])
def test_measurements_may_be_closer_than_messages_are_quick(launch_ps: int) -> None:
    jobs = (Job(30, **PAIR), Job(60, **PAIR, arrival_ps=7), Job(20, **PAIR, arrival_ps=8))
    cap = [["0 s", "14 kW"], ["20 us", "12 kW"], ["40 us", "15 kW"]]
    for policy in ("uniform", "halving"):
        how = Power(policy, cap=cap, interval_ps=2 * US)
        ran = logged(*jobs, launch_ps=launch_ps, power=how)
        assert all(job.end_ps is not None for job in ran.ran.jobs)
        times = [time for time, _ in ran.rows["power"]]
        assert times == [2 * US * n + launch_ps for n in range(1, len(times) + 1)]


def test_jobs_start_at_measurements_only_if_asked_to() -> None:
    jobs = (Job(4, **PAIR), Job(4, **PAIR, arrival_ps=US))
    ran = logged(*jobs, power=Power(passes="intervals", interval_ps=10 * US))
    assert [job.start_ps for job in ran.ran.jobs] == [10 * US + 2 * LAUNCH] * 2


def test_a_learner_chooses_in_the_order_of_the_discipline() -> None:
    jobs = tuple(Job(size, **PAIR) for size in (10, 30, 20, 40))
    cap = f"{NODES * IDLE + 41 * (ACTIVE - IDLE)} W"
    how = Power("dynamic-learner", (("window", 1),), cap=cap)
    for order, first in (("fcfs", 0), ("large-first", 3)):
        ran = logged(*jobs, order=order, power=how, end=LAUNCH + 1)
        started = [job.number for job in ran.ran.jobs if job.start_ps is not None]
        assert first in started, order


# -- what is shown


def test_the_table_of_jobs_has_energies_where_power_is_simulated() -> None:
    job = Job(2, **PAIR)
    plain, powered = logged(job).ran, logged(job, power=Power()).ran
    assert heads(plain.jobs) == HEADS
    row = dict(zip(heads(powered.jobs), cells(SMALL, powered.jobs[0], True), strict=True))
    took = powered.jobs[0].run_time_ps
    assert took is not None
    assert row["J"] == f"{2 * ACTIVE * took * 1e-12:.3g}"
    assert row["nJ/B"] == f"{2 * ACTIVE * took * 1e-12 / 64 * 1e9:,.0f}"
    assert "energy_j" not in job_facts(SMALL, plain.jobs)[0]
    assert job_facts(SMALL, powered.jobs)[0]["received_bytes"] == 64
    assert "consumed_energy" not in plain.csv()
    head, line, _ = powered.csv().split("\n")
    energy = dict(zip(head.split(","), line.split(","), strict=True))["consumed_energy"]
    assert float(energy) == powered.jobs[0].energy_j


def test_the_log_of_ends_has_what_a_job_took() -> None:
    ran = logged(Job(2, **PAIR), power=Power())
    ((_, row),) = ran.rows["ends"]
    (record,) = ran.ran.jobs
    assert row == (0, record.end_ps, record.energy_j, 64)
    assert [field.name for field in ran.ran.network.logs()["ends"].columns] == [
        "job", "end_ps", "energy_j", "received_bytes"]  # fmt: skip
    assert [field.name for field in network(Job(2, **PAIR)).logs()["ends"].columns] == [
        "job", "end_ps"]  # fmt: skip


# -- what is refused, and what goes wrong


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"policy": "idle-sleep"}, "sleep_after_s = 600: it puts nodes to sleep, which only"),
        (
            {"policy": "rate-by-number"},
            "power.policy = rate-by-number: it sets a service rate, which only",
        ),
        ({"policy": "tracking-only"}, "power.policy = tracking-only: it follows the target of a"),
        ({"policy": "rmap-adaptive"}, "power.policy = rmap-adaptive: it molds jobs, which only"),
        ({"demand": "mira"}, "power.demand = mira: packets are of jobs"),
        ({"cap": "7.1 kW"}, r"power.cap = 7,100 W at its lowest: 72 nodes draw 7,200 W"),
        ({"policy": "nobodys"}, "policy = nobodys: one of"),
        ({"communicating_w": 300.0}, "communicating = 300 W: at most active, 290 W"),
        ({"price": 0.1}, 'power.price = 0.1: only with fidelity = "job"'),
        ({"limits": "fixed"}, "power.limits = fixed: jobs of packets have no limit"),
        ({"interval_ps": 10}, "power.interval = 10 ps: at least 1000 ps"),
    ],
)
def test_what_packets_cannot_do_is_refused_before_anything_runs(
    how: dict[str, Any], words: str
) -> None:
    with pytest.raises(Refused, match=words):
        network(Job(2, **PAIR), power=Power(**how))


def test_power_without_jobs_and_a_learner_without_an_order_are_refused() -> None:
    with pytest.raises(Refused, match=r"there are no \[\[jobs\]\]"):
        network(Job(2, **PAIR), workload=None, traffic=_traffic(), power=Power())
    with pytest.raises(Refused, match="dynamic-learner: it chooses jobs in the order of a disc"):
        network(Job(2, **PAIR), order="conservative", power=Power("dynamic-learner"))


def _traffic() -> Any:
    from odonata.agents.traffic import Traffic

    return Traffic()


@pytest.mark.parametrize(
    ("how", "words"),
    [("speed", "power wrong: it sets a service rate, which only"),
     ("suspend", "power wrong: it suspends job 0, which only")],
)  # fmt: skip
def test_a_policy_that_asks_for_what_packets_cannot_do_is_named(how: str, words: str) -> None:
    with pytest.raises(Fault, match=words):
        logged(Job(2, **PAIR), power=Power("wrong", (("how", how),)))


def test_a_policy_that_starts_nobody_is_named_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odonata.agents.scheduling.PATIENCE", 1000)
    ran = logged(Job(2, **PAIR), power=Power("nobody-starts", interval_ps=US))
    with pytest.raises(Fault, match="or power nobody-starts has, and nothing is left to happen"):
        performance(ran.ran.network, ran.ran.result)


def test_a_cap_of_the_machine_that_changes_is_in_the_log_of_caps() -> None:
    cap = cap_of([290.0, 200.0], [10 * US])
    ran = logged(Job(NODES, **PAIR), power=Power("uniform", cap=cap))
    rows = [(0, 290.0), (-1, NODES * 200.0), (0, 200.0)]
    assert [row for _, row in ran.rows["caps"]] == rows
    assert [time for time, _ in ran.rows["caps"]] == [0, 10 * US, 10 * US]
