"""RMAP against an independent, deliberately naive simulator, job by job."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import Job as Plain
from naive import simulate as scheduled
from random_traces import traces
from rmap_twin import NEVER, Job, Machine, Record, Rules, Way, simulate

from odonata.cluster.model import Cluster
from odonata.cluster.simulation import simulate as run
from odonata.jobs.power import Power
from odonata.jobs.schedule import Schedule
from odonata.provisioning.table import Table, sorted_table
from odonata.traces.trace import Trace
from policies.power.prediction import predicted_choices

STATES = {1: "waiting", 3: "finished", 4: "killed"}
LONG = 10**6
"""Ticks after which all that ever starts has ended."""
LONGEST, MOST_JOBS, MOST_W = 12, 20, 6
"""The longest time, the most jobs, and the most watts that a node takes above idle."""
APPLICATIONS = ("first", "second")


class Case(NamedTuple):
    """Jobs on a machine under a policy; with `model` it goes by predictions, not by the tables."""

    jobs: list[Job]
    machine: Machine
    rules: Rules
    model: bool = False


# -- random cases


class Kind(NamedTuple):
    """What is drawn: jobs that are rigid, that nobody knows the time of, or that do nothing; and
    whether numbers are rough, so that sums of them are rounded."""

    rigid: bool = True
    unknown: bool = True
    idlers: bool = True
    rough: bool = False


ANY = Kind()


@st.composite
def tables(draw: st.DrawFn, nodes: int, idle_w: float, rough: bool) -> list[Way]:
    """Configurations of an application, with gaps, and some with more nodes than there are. Times
    and watts are whole and small unless they are rough, so that ties are frequent."""
    sizes = draw(st.lists(st.integers(1, nodes + 1), min_size=1, max_size=4, unique=True))
    cores = draw(st.sampled_from([(16,), (8, 16)]))
    caps = draw(st.sampled_from([(115.0,), (51.0, 115.0)]))
    grid = [(n, c, cap) for n in sizes for c in cores for cap in caps]
    found = []
    for n, c, cap in draw(st.lists(st.sampled_from(grid), min_size=1, unique=True)):
        watts = draw(st.integers(1, n * MOST_W)) * (0.97 if rough else 1.0)
        found.append(Way(n, c, cap, draw(st.integers(1, LONGEST)), n * idle_w + watts))
    return found


@st.composite
def rules(draw: st.DrawFn, rough: bool) -> Rules:
    """A policy with its parameters: sums of powers of two, unless they are rough."""
    policy = draw(st.sampled_from(["traditional", "naive", "adaptive", "adaptive"]))
    thresholds = [0.0, 0.1, 0.2, 0.3, math.inf] if rough else [0.0, 0.125, 0.5, math.inf]
    return Rules(
        policy,
        strict=policy == "naive" and draw(st.booleans()),
        threshold=draw(st.sampled_from(thresholds)),
        short_of=draw(st.sampled_from(["power", "either"])),
        weight=draw(st.sampled_from([1.0, 1.0, 0.7 if rough else 0.5, 2.0])),
        margin=draw(st.sampled_from([0.0, 0.0, 0.15 if rough else 0.125])),
        grace=draw(st.sampled_from([0.0, 0.25, 0.33])),
        backfill=draw(st.sampled_from(["easy", "easy", "easy", "first-fit", "none"])),
    )


@st.composite
def queues(draw: st.DrawFn, nodes: int, kind: Kind) -> list[Job]:
    applications: list[str | None] = [*APPLICATIONS, None] if kind.rigid else [*APPLICATIONS]
    jobs, submit = [], 0
    for number in range(draw(st.integers(1, MOST_JOBS))):
        submit += draw(st.one_of(st.just(0), st.integers(0, 4)))
        requested = draw(st.integers(0 if kind.unknown else 1, LONGEST)) or None
        run_ = draw(st.integers(0 if kind.idlers else 1, LONGEST))
        jobs.append(Job(number, submit, draw(st.integers(1, nodes)), requested,
                        draw(st.sampled_from(applications)), run_))  # fmt: skip
    return jobs


@st.composite
def guessed(draw: st.DrawFn) -> Case:
    """A case in which the policy goes by predictions, which are good, or bad, or very bad."""
    nodes, noise = draw(st.sampled_from([4, 6, 8])), draw(st.sampled_from([0.0, 0.1, 0.9]))
    rng = random.Random(draw(st.integers(0, 2**32)))
    true = {}
    for name in APPLICATIONS:
        work = rng.uniform(10.0, 10.0 * LONGEST)
        true[name] = [
            Way(n, c, cap, max(1, round(work / n * 16 / c * 115 / cap * rng.uniform(1 - noise, 1))),
                n * MOST_W * c / 16 * cap / 115 * rng.uniform(1 - noise, 1))
            for n in range(1, nodes + 1) for c in (8, 12, 16) for cap in (51.0, 80.0, 115.0)
        ]  # fmt: skip
    machine = Machine(nodes, draw(st.integers(nodes, nodes * MOST_W)), 0.0, MOST_W, true, true)
    jobs = [job._replace(requested=job.requested and 3 * job.requested)
            for job in draw(queues(nodes, ANY))]  # fmt: skip
    return Case(jobs, machine, draw(rules(rough=True)), model=True)


@st.composite
def cases(draw: st.DrawFn, kind: Kind = ANY) -> Case:
    nodes = draw(st.integers(1, 16) if kind.rough else st.sampled_from([2, 4, 8, 16]))
    idle_w = draw(st.sampled_from([0.0, 0.0, 3.3 if kind.rough else 3.0]))
    known = {name: draw(tables(nodes, idle_w, kind.rough)) for name in APPLICATIONS}
    few_w, many_w = st.integers(1, 8), st.integers(nodes * MOST_W // 2, nodes * MOST_W * 3 // 2)
    spare_w = draw(many_w if draw(st.integers(0, 4)) else few_w)
    bound_w = nodes * idle_w + spare_w * (0.97 if kind.rough else 1.0)
    machine = Machine(nodes, bound_w, idle_w, idle_w + MOST_W, known, known)
    return Case(draw(queues(nodes, kind)), machine, draw(rules(kind.rough)))


# -- the real simulator, in the words of the twin


def table_of(name: str, ways: Sequence[Way]) -> Table:
    """Returns a table of configurations whose times are in microseconds."""
    n, c, cap, time, watts = (np.array(column) for column in zip(*ways, strict=True))
    return sorted_table(name, n.astype(np.int64), c.astype(np.int64), cap.astype(np.float64),
                        time / 1e6, watts.astype(np.float64))  # fmt: skip


def tables_of(machine: Machine) -> dict[str, Table]:
    return {name: table_of(name, ways) for name, ways in machine.true.items()}


def trace_of(jobs: Sequence[Job]) -> Trace:
    names = ("", *sorted({job.application for job in jobs if job.application is not None}))
    none = np.zeros(len(jobs), int)
    requested = [-1 if job.requested is None else job.requested for job in jobs]
    application = [names.index(job.application or "") for job in jobs]
    column = np.array
    return Trace("random", column([job.number for job in jobs]),
                 column([job.submit for job in jobs]), column([job.run for job in jobs]),
                 column([job.nodes for job in jobs]), column(requested), none, none,
                 column(application), none - 1, applications=names)  # fmt: skip


def parameters_of(case: Case) -> dict[str, Any]:
    """Returns the parameters of the policy, those that are not as usual."""
    made = case.rules._asdict()
    del made["policy"]
    if case.rules.policy != "naive":
        del made["strict"]
    if case.rules.policy != "adaptive":
        del made["threshold"], made["short_of"]
    elif case.rules.threshold == math.inf:
        made["threshold"] = -1.0
    return made | {"knowledge": "model" if case.model else "oracle"}


def model_of(case: Case, discipline: str = "fcfs", **more: Any) -> Cluster:
    machine = case.machine
    power = Power(
        policy=f"rmap-{case.rules.policy}",
        policy_parameters=tuple(parameters_of(case).items()), cap=f"{machine.bound_w!r} W",
        idle_w=machine.idle_w, least_w=0.0, active_w=machine.most_w, **more,
    )  # fmt: skip
    return Cluster(trace_of(case.jobs), machine.nodes, discipline, power=power,
                   applications=tables_of(machine))  # fmt: skip


def records(schedule: Schedule) -> list[Record]:
    """Returns what became of each job; a job that has no segment waits."""
    molds = schedule.molds
    ways = {}
    if molds is not None:
        columns = (molds.nodes.tolist(), molds.cores.tolist(), molds.cap_w.tolist())
        ways = dict(zip(molds.job.tolist(), zip(*columns, strict=True), strict=True))
        assert len(ways) == len(molds.job), "a job is molded twice"
    found = [Record("waiting", -1, -1, nodes, None) for nodes in schedule.trace.nodes.tolist()]
    for segment, job in enumerate(schedule.segment_job.tolist()):
        assert found[job].state == "waiting", "a job runs twice"
        begin, end, held = (int(column[segment]) for column in (
            schedule.segment_from_us, schedule.segment_to_us, schedule.held))  # fmt: skip
        assert (begin, end) == (schedule.start_us[job], schedule.end_us[job])
        found[job] = Record(STATES[int(schedule.state[job])], begin, end, held, ways.get(job))
    return found


def real(case: Case, discipline: str = "fcfs", **more: Any) -> list[Record]:
    """Returns what the real simulator makes of a case."""
    return records(run(model_of(case, discipline, **more), LONG).schedule)


# -- the twin itself


def test_the_worked_example_of_the_thesis_comes_out_of_the_twin() -> None:
    waits = {"traditional": (1000, (6, 16, 115.0)), "naive": (1000, (8, 12, 65.0)),
             "adaptive": (0, (8, 10, 80.0))}  # fmt: skip
    for policy, (start, way) in waits.items():
        record = simulate(*worked_example(policy)[:3])[1]
        assert (record.start, record.way) == (start * 10**6, way)


def worked_example(policy: str) -> Case:
    """Returns the scenario of table 5.2: ten nodes and 750 W are free for 1000 s; of 15 nodes and
    2000 W, a job on 6 nodes has a share of 800 W."""
    s = 10**6
    known = {
        "A": [Way(5, 16, 115.0, 1000 * s, 1250.0)],
        "SP-MZ": [Way(6, 16, 115.0, 447_900_000, 796.4), Way(8, 12, 65.0, 415_300_000, 783.8),
                  Way(8, 10, 80.0, 439_200_000, 738.2)],
    }  # fmt: skip
    machine = Machine(15, 2000.0, 0.0, 300.0, known, known)
    jobs = [Job(0, 0, 5, 1000 * s, "A"), Job(1, 0, 6, 450 * s, "SP-MZ")]
    return Case(jobs, machine, Rules(policy))


# -- the real one against it


def twin(case: Case) -> list[Record]:
    """Returns what the twin makes of a case: what it knows is true, or is predicted."""
    if not case.model:
        return simulate(case.jobs, case.machine, case.rules._replace(grace=0.0))
    known = {name: predicted(table) for name, table in tables_of(case.machine).items()}
    return simulate(case.jobs, case.machine._replace(known=known), case.rules)


def predicted(table: Table) -> list[Way]:
    found = predicted_choices(table.application, table.choices)
    return [Way(it.nodes, it.cores, it.cap_w, it.time, it.watts)
            for it in (found[at] for at in range(len(found)))]  # fmt: skip


@given(cases())
@examples(40)
def test_every_policy_agrees_with_the_twin_job_by_job(case: Case) -> None:
    assert real(case) == twin(case)


@given(cases(Kind(rough=True)))
@examples(30)
def test_they_agree_where_watts_are_rounded(case: Case) -> None:
    assert real(case) == twin(case)


@given(guessed())
@examples(25)
def test_they_agree_where_times_and_watts_are_predicted(case: Case) -> None:
    assert real(case) == twin(case)


ORDERS: dict[str, Callable[[Job], int]] = {
    "small-first": lambda job: job.nodes,
    "large-first": lambda job: -job.nodes,
    "shortest-first": lambda job: NEVER if job.requested is None else job.requested,
}


@pytest.mark.parametrize("discipline", ORDERS)
@given(case=cases())
@settings(max_examples=25)
def test_they_agree_in_other_orders_of_the_queue(discipline: str, case: Case) -> None:
    rules = case.rules._replace(grace=0.0)
    assert real(case, discipline) == simulate(case.jobs, case.machine, rules, ORDERS[discipline])


PLAIN = {"none": "fcfs", "first-fit": "first-fit", "easy": "easy"}
"""What each kind of backfilling is where power is no matter."""


@pytest.mark.parametrize("policy", ["traditional", "naive", "adaptive"])
@pytest.mark.parametrize("backfill", PLAIN)
@given(case=traces(most_jobs=20))
@settings(max_examples=12)
def test_with_power_for_all_a_rigid_job_starts_as_if_nobody_counted_it(
    policy: str, backfill: str, case: tuple[list[Plain], int]
) -> None:
    plain, nodes = case
    jobs = [Job(it.number, it.submit, it.nodes, it.requested, None, it.run) for it in plain]
    same = Case(jobs, Machine(nodes, nodes * 100.0), Rules(policy, backfill=backfill))
    expected = [(it.start, it.end, it.state) for it in scheduled(plain, nodes, PLAIN[backfill])]
    for found in (real(same), twin(same)):
        assert [(it.start, it.end, it.state) for it in found] == expected


def test_how_often_power_is_measured_changes_no_start() -> None:
    """A pass that nobody's arrival or end calls for would let a job run slower, as it finds less
    power than the pass before, which has given it to others."""
    known = {"wide": [Way(4, 16, 115.0, 1, 4.0), Way(1, 16, 115.0, 2, 1.0)],
             "long": [Way(1, 16, 115.0, 5, 1.0)], "hot": [Way(1, 16, 115.0, 3, 4.0)]}  # fmt: skip
    for submit in (0, 7):
        jobs = [Job(0, submit, 1, None, "long"), Job(1, submit, 2, None, "wide"),
                Job(2, submit, 2, None, "hot")]  # fmt: skip
        case = Case(jobs, Machine(4, 8.0, 0.0, 6.0, known, known), Rules("adaptive"))
        assert real(case, interval_ps=10**6) == real(case, interval_ps=10**12) == twin(case)
