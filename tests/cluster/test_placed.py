"""Jobs that are placed: where they go never changes when they go, and policies learn of it all."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clusters import trace_of
from naive import Job
from random_traces import VARIANTS

from odonata.cluster.model import Cluster
from odonata.cluster.simulation import simulate
from odonata.jobs.schedule import FINISHED, Schedule
from policies.allocation import ALLOCATIONS, allocation
from policies.scheduling import SCHEDULINGS, SchedulingPolicy, scheduling
from topology import Dragonfly

MACHINE = Dragonfly(2, 4, 2, 9)
"""72 nodes."""
Variant = tuple[str, dict[str, Any]]
BLIND = [name for name in ALLOCATIONS if not ALLOCATIONS.make(name).reads]
"""The allocations that read no counters, which there are none of without packets."""


def jobs_for(nodes: int, seed: int, count: int = 30) -> list[Job]:
    """Returns jobs of up to all nodes, some of which overrun, end early, or do nothing."""
    rng, submit, jobs = random.Random(seed), 0, []
    for number in range(count):
        submit += rng.choice((0, 0, 1, 7))
        size = rng.choice((1, 3, nodes // 4, nodes // 2, nodes))
        requested = None if rng.random() < 0.05 else rng.randint(1, 30)
        jobs.append(Job(number, submit, rng.choice((0, rng.randint(1, 25))), size, requested,
                        rng.randint(0, 3)))  # fmt: skip
    return jobs


def run(
    jobs: list[Job], nodes: int, variant: Variant, placed: bool = True, **more: Any
) -> tuple[Schedule, str]:
    name, given = variant
    parameters = {k: v / 1e6 if k == "half_life" else v for k, v in given.items()}
    machine = MACHINE if placed else None
    model = Cluster(trace_of(jobs), nodes, name, tuple(parameters.items()), machine, **more)
    schedule, result, _ = simulate(model)
    return schedule, result.digest


def labels_by_segment(schedule: Schedule) -> list[list[int]]:
    assert schedule.labels is not None
    return [part.tolist() for part in np.split(schedule.labels, schedule.first_label[1:])]


def check_labels(schedule: Schedule, nodes: int) -> None:
    until = np.zeros(nodes, np.int64)
    for segment, labels in enumerate(labels_by_segment(schedule)):
        assert len(labels) == len(set(labels))
        assert len(labels) == schedule.trace.nodes[schedule.segment_job[segment]]
        assert min(labels) >= 0
        assert max(labels) < nodes
        assert until[labels].max() <= schedule.segment_from_us[segment], "a node runs two jobs"
        until[labels] = schedule.segment_to_us[segment]


def same_times(one: Schedule, other: Schedule) -> bool:
    names = ("state", "start_us", "end_us", "segment_job", "segment_from_us", "segment_to_us")
    return all((getattr(one, name) == getattr(other, name)).all() for name in names)


@pytest.mark.parametrize("some", [True, pytest.param(False, marks=pytest.mark.long)])
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_a_job_starts_when_it_does_where_nodes_are_only_counted(
    variant: Variant, some: bool
) -> None:
    """With some of the allocations, others for each discipline; or with all others."""
    for seed, name in enumerate(BLIND):
        if (seed % 3 == VARIANTS.index(variant) % 3) != some:
            continue
        nodes, overrun = (72, 50)[seed % 2], ("kill", "extend")[seed // 2 % 2]
        jobs = jobs_for(nodes, seed)
        counted, _ = run(jobs, nodes, variant, placed=False, overrun=overrun)
        placed, _ = run(jobs, nodes, variant, allocation=name, overrun=overrun)
        assert same_times(counted, placed), name
        check_labels(placed, nodes)


@pytest.mark.parametrize("name", BLIND)
def test_every_allocation_gives_the_same_nodes_again(name: str) -> None:
    jobs = jobs_for(72, 1)
    for variant in (("easy", {}), ("lcfs-pr", {})):
        one, first = run(jobs, 72, variant, allocation=name)
        other, second = run(jobs, 72, variant, allocation=name)
        assert first == second
        assert labels_by_segment(one) == labels_by_segment(other)


def test_another_seed_gives_other_nodes_and_the_same_times() -> None:
    jobs = jobs_for(72, 1)
    one, first = run(jobs, 72, ("easy", {}), allocation="rdn", seed=1)
    other, second = run(jobs, 72, ("easy", {}), allocation="rdn", seed=2)
    assert first != second
    assert labels_by_segment(one) != labels_by_segment(other)
    assert same_times(one, other)


def test_nodes_behind_the_first_are_nobodys() -> None:
    jobs = [Job(0, 0, 5, 10, 5, 0), Job(1, 0, 5, 10, 5, 0)]
    for name in BLIND:
        schedule, _ = run(jobs, 10, ("first-fit", {}), allocation=name)
        assert schedule.start_us.tolist() == [0, 5]
        assert [sorted(labels) for labels in labels_by_segment(schedule)] == [[*range(10)]] * 2


# -- policies that learn

TOLD: list[Any] = []
"""The jobs of whose end the policies below learned."""


def heard(sizes: Any) -> Any:
    return {"ends": np.zeros(sizes.jobs, np.int64)}


def listen(ended: Any, memory: Any) -> None:
    memory.ends[ended.request.number] += 1
    TOLD.append((ended, memory.ends.copy()))


def in_order(view: Any) -> list[int]:
    """First come, first served; nobody is asked twice about a job that has ended."""
    assert not view.memory.ends[[job.number for job in view.queue]].any()
    assert not view.memory.ends[[job.request.number for job in view.running]].any()
    chosen, free = [], view.free
    for job in view.queue:
        if job.nodes > free:
            break
        chosen.append(job.number)
        free -= job.nodes
    return chosen


class Newest(SchedulingPolicy):
    """LCFS-PR, written as a user would."""

    preemptive = True

    def remembers(self, sizes: Any) -> Any:
        return heard(sizes)

    def learn(self, ended: Any, memory: Any) -> None:
        listen(ended, memory)

    def select(self, view: Any) -> list[int]:
        jobs = [*view.queue, *(one.request for one in view.running)]
        free, chosen = view.free + sum(one.request.nodes for one in view.running), []
        for job in sorted(jobs, key=lambda job: -job.number):
            if job.nodes > free:
                break
            chosen.append(job.number)
            free -= job.nodes
        return chosen


def first_idle(sight: Any, job: Any, rng: Any) -> Any:
    assert not sight.memory.ends[job.number]
    return sight.labels[: job.nodes]


@pytest.fixture(autouse=True)
def learners() -> Iterator[None]:
    TOLD.clear()
    words = {"about": "a test's", "source": "nobody's"}
    scheduling("in-order", memory=heard, learn=listen, **words)(in_order)
    scheduling("newest", **words)(Newest)
    allocation("first-idle", memory=heard, learn=listen, **words)(first_idle)
    yield
    del SCHEDULINGS["in-order"], SCHEDULINGS["newest"], ALLOCATIONS["first-idle"]


def check_told(schedule: Schedule) -> None:
    """Each job once, in the order of ends, with the nodes of its last segment."""
    segments = labels_by_segment(schedule)
    last = {int(job): labels for job, labels in zip(schedule.segment_job, segments, strict=True)}
    numbers = [ended.request.number for ended, _ in TOLD]
    assert sorted(numbers) == [*range(len(schedule))]
    for ended, counts in TOLD:
        number = ended.request.number
        assert ended.labels.tolist() == last[number]
        assert (ended.start, ended.end) == (schedule.start_us[number], schedule.end_us[number])
        assert counts[number] == 1
    ends = [ended.end for ended, _ in TOLD]
    assert ends == sorted(ends)
    assert (TOLD[-1][1] == 1).all()


@pytest.mark.parametrize("seed", range(4))
def test_a_discipline_learns_of_each_end_once_and_where_it_was(seed: int) -> None:
    jobs = jobs_for(50, seed)
    schedule, _ = run(jobs, 50, ("in-order", {}), allocation="rdn")
    check_told(schedule)
    assert same_times(schedule, run(jobs, 50, ("fcfs", {}), placed=False)[0])


@pytest.mark.parametrize("variant", [("lcfs-pr", {}), ("spf", {"printed": True}), ("easy", {})],
                         ids=str)  # fmt: skip
def test_an_allocation_learns_of_each_end_once_also_where_jobs_are_suspended(
    variant: Variant,
) -> None:
    jobs = jobs_for(50, 3, 60)
    schedule, _ = run(jobs, 50, variant, allocation="first-idle")
    check_told(schedule)
    check_labels(schedule, 50)
    assert (len(schedule.segment_job) > len(jobs)) == (variant[0] != "easy")


@pytest.mark.parametrize("placed", [True, False])
def test_a_discipline_in_python_may_suspend_jobs_and_learns_of_each_end_once(placed: bool) -> None:
    jobs = jobs_for(50, 3, 60)
    schedule, _ = run(jobs, 50, ("newest", {}), placed, allocation="rdn")
    assert same_times(schedule, run(jobs, 50, ("lcfs-pr", {}), placed=False)[0])
    if placed:
        check_labels(schedule, 50)
        check_told(schedule)


def test_a_discipline_in_python_that_may_suspend_jobs_keeps_those_that_nobody_disturbs() -> None:
    jobs = [Job(0, 0, 2, 1, 2, 0), Job(1, 0, 5, 1, 5, 0)]
    schedule, _ = run(jobs, 2, ("newest", {}), placed=False)
    assert (schedule.state == FINISHED).all()
    assert schedule.end_us.tolist() == [2, 5]


def test_a_compiled_discipline_that_preempts_does_so_through_a_view() -> None:
    class Asked(Newest):
        def select(self, view: Any) -> Any:
            return SCHEDULINGS.make("lcfs-pr").select(view)

    scheduling("asked", about="a test's", source="nobody's")(Asked)
    try:
        jobs = [Job(0, 0, 5, 1, 5, 0), Job(1, 1, 2, 1, 2, 0)]
        schedule, _ = run(jobs, 1, ("asked", {}), placed=False)
        assert schedule.end_us.tolist() == [7, 3]
    finally:
        del SCHEDULINGS["asked"]


# -- invariants, event by event

CHECKED = ("fcfs", "easy", "conservative", "lcfs-pr")


def test_the_invariants_hold_after_every_event_without_the_compiler(
    python: Callable[..., str],
) -> None:
    code = """
import sys
here, root = sys.argv[1:]
sys.path[:0] = [root]
sys.path.append(here), sys.path.append(here + "/cluster")
from test_placed import CHECKED, MACHINE, jobs_for
from clusters import trace_of
from odonata.cluster.model import Cluster
from pdes.driver import run
for name in CHECKED:
    model = Cluster(trace_of(jobs_for(50, 5)), 50, name, machine=MACHINE)
    print(run(model, None, debug=True).digest)
"""
    here = Path(__file__).parents[1]
    plain = python(code, str(here), str(here.parent)).split()
    compiled = [run(jobs_for(50, 5), 50, (name, {}))[1] for name in CHECKED]
    assert plain == compiled
