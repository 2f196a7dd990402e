"""Jobs that wait: the queue, policies that answer wrongly, and workloads that are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest
from conftest import code_on_ranks, examples
from hypothesis import given
from hypothesis import strategies as st
from machines import US
from workloads import (
    BYTES,
    LAUNCH,
    SHORT,
    go,
    network,
)

from odonata.agents.metrics import COUNTERS
from odonata.agents.network import Network
from odonata.agents.workload import Workload
from odonata.jobs.request import Job
from odonata.results.performance import job_records, ports_by_class
from pdes.driver import run
from pdes.errors import Fault, Refused
from policies.allocation import ALLOCATIONS
from policies.scheduling import SCHEDULINGS, discipline
from topology import Dragonfly

HERE = Path(__file__).parent.parent


# -- the queue


def test_a_job_that_does_not_fit_waits_for_the_end_of_the_first() -> None:
    """Word of the end takes a launch latency, and so does the command to start."""
    first, second = go(network(Job(40, **SHORT), Job(40, arrival_ps=5, **SHORT))).jobs
    assert first.start_ps == LAUNCH
    assert first.end_ps is not None
    assert second.start_ps == first.end_ps + 2 * LAUNCH
    assert second.waiting_ps == second.start_ps - 5
    assert second.end_ps is not None
    assert second.run_time_ps == first.run_time_ps


def test_a_job_that_fits_beside_another_does_not_wait() -> None:
    first, second = go(network(Job(40, **SHORT), Job(32, arrival_ps=5, **SHORT))).jobs
    assert (first.start_ps, second.start_ps) == (LAUNCH, LAUNCH + 5)
    assert set(first.labels) & set(second.labels) == set()


def test_jobs_that_come_together_start_in_order_of_their_numbers() -> None:
    jobs = go(network(*(Job(72, arrival_ps=9, **SHORT) for _ in range(4)))).jobs
    starts = [job.start_ps for job in jobs]
    assert starts[0] == 9 + LAUNCH
    for before, after in pairwise(jobs):
        assert before.end_ps is not None
        assert after.start_ps == before.end_ps + 2 * LAUNCH


def test_a_job_may_arrive_in_the_instant_another_ends_or_is_heard_to() -> None:
    (only,) = go(network(Job(72, **SHORT))).jobs
    assert only.end_ps is not None
    for arrival in (only.end_ps, only.end_ps + LAUNCH, only.end_ps + LAUNCH + 1):
        _, late = go(network(Job(72, **SHORT), Job(72, arrival_ps=arrival, **SHORT))).jobs
        assert late.start_ps == max(only.end_ps + LAUNCH, arrival) + LAUNCH
        assert late.end_ps is not None


def test_nothing_happens_before_the_first_job_comes() -> None:
    (job,) = go(network(Job(4, arrival_ps=10**12, **SHORT))).jobs
    assert job.start_ps == 10**12 + LAUNCH
    assert job.end_ps is not None


@pytest.mark.parametrize(
    ("order", "expected"),
    [("fcfs", [0, 1, 2, 3]), ("small-first", [0, 2, 3, 1]), ("large-first", [0, 1, 3, 2])],
)
def test_who_waits_is_tried_in_the_order_of_the_discipline(order: str, expected: list[int]) -> None:
    sizes = (72, 60, 40, 50)
    jobs = [Job(nodes, arrival_ps=i, **SHORT) for i, nodes in enumerate(sizes)]
    reported = go(network(*jobs, order=order)).jobs
    assert sorted(range(4), key=lambda i: reported[i].start_ps or 0) == expected


def test_nobody_passes_a_job_that_does_not_fit_unless_the_discipline_lets_them() -> None:
    jobs = [Job(40, **SHORT), Job(72, arrival_ps=1, **SHORT), Job(8, arrival_ps=2, **SHORT)]
    first, large, small = go(network(*jobs)).jobs
    assert first.end_ps is not None
    assert large.end_ps is not None
    assert small.start_ps == large.end_ps + 2 * LAUNCH
    discipline("lenient", about="a test's", source="nobody's", strict=False)(
        lambda queue: list(range(len(queue)))
    )
    try:
        _, large, small = go(network(*jobs, order="lenient")).jobs
    finally:
        del SCHEDULINGS["lenient"]
    assert small.start_ps == 2 + LAUNCH
    assert large.start_ps is not None


KEYS: dict[str, Callable[[Job], int]] = {
    "fcfs": lambda job: 0,
    "small-first": lambda job: job.nodes,
    "large-first": lambda job: -job.nodes,
}


def starts_of(model: Network, durations: list[int]) -> list[int]:
    """When a strict queue starts each job, given how long each takes: the scheduler, once more."""
    jobs, launch = model.workload.jobs, model.workload.launch_ps
    key, free = KEYS[model.workload.order], model.machine.n_nodes
    starts: dict[int, int] = {}
    news = sorted((job.arrival_ps, 0, i) for i, job in enumerate(jobs))  # arrivals, then ends
    while news:
        time, ended, number = news.pop(0)
        free += jobs[number].nodes if ended else 0
        if not ended and news and news[0][:2] == (time, 0):
            continue  # others come in the same instant
        waiting = [i for i, job in enumerate(jobs) if job.arrival_ps <= time and i not in starts]
        waiting.sort(key=lambda i: (key(jobs[i]), jobs[i].arrival_ps, i))
        for i in waiting:
            if jobs[i].nodes > free:
                break
            free -= jobs[i].nodes
            starts[i] = time + launch
            news.append((starts[i] + durations[i] + launch, 1, i))
        news.sort()
    return [starts[i] for i in range(len(jobs))]


@examples(30)
@given(st.data())
def test_random_arrivals_are_all_served_and_never_share_a_node(data: Any) -> None:
    each = data.draw(st.integers(1, 3))
    jobs = [
        Job(
            data.draw(st.integers(3 - min(each, 2), 72)),
            data.draw(st.sampled_from(["permutation", "broadcast", "allreduce", "halo2d"])),
            data.draw(st.sampled_from([1, 600])),
            iterations=data.draw(st.integers(1, 3)),
            arrival_ps=data.draw(st.sampled_from([0, 1, US, 3 * US, 4 * US + 7, 9 * US])),
        )
        for _ in range(data.draw(st.integers(1, 9)))
    ]
    model = network(
        *jobs, tasks_per_node=each, order=data.draw(st.sampled_from([*KEYS])),
        allocation=data.draw(st.sampled_from(["simple", "level-spread", "rdn", "rdg"])),
        launch_ps=data.draw(st.sampled_from([0, 1000, LAUNCH])), seed=data.draw(st.integers(0, 99)),
    )  # fmt: skip
    launch, ran = model.workload.launch_ps, go(model)
    for job in ran.jobs:
        assert job.start_ps is not None
        assert job.end_ps is not None
        assert job.arrival_ps + launch <= job.start_ps < job.end_ps
        assert len(set(job.labels)) == job.nodes
        assert all(0 <= label < 72 for label in job.labels)
    for one, other in combinations(ran.jobs, 2):
        if set(one.labels) & set(other.labels):
            early, late = sorted((one, other), key=lambda job: job.start_ps or 0)
            assert early.end_ps + launch <= late.start_ps - launch  # type: ignore[operator]
    assert (ran.state.owner == -1).all()
    assert [job.start_ps for job in ran.jobs] == starts_of(
        model, [job.run_time_ps or 0 for job in ran.jobs]
    )


# -- policies that answer wrongly

WRONG = """
from policies.allocation import allocation
from policies.scheduling import discipline

@allocation("twice", about="", source="test")
def twice(sight, job, rng):
    return [0] * job.nodes

@discipline("nobody", about="", source="test")
def nobody(queue):
    return []
"""


@pytest.fixture
def wrong() -> Iterator[None]:
    exec(WRONG, {"__name__": __name__})
    yield
    del ALLOCATIONS["twice"]
    del SCHEDULINGS["nobody"]


BAD_ANSWERS = [
    ("allocation", "twice", "allocation twice, asked for 4 nodes: it chose node 0 4 times"),
    ("order", "nobody", "scheduling nobody, of 1 jobs: [] does not name each"),
]


@pytest.mark.parametrize(("what", "name", "words"), BAD_ANSWERS)
@pytest.mark.usefixtures("wrong")
def test_a_policy_that_answers_wrongly_is_named(what: str, name: str, words: str) -> None:
    with pytest.raises(Fault) as fault:
        go(network(Job(4), **{what: name}))
    assert words in str(fault.value)


@pytest.mark.parametrize(("what", "name", "words"), BAD_ANSWERS[:1])
def test_a_policy_that_answers_wrongly_ends_all_ranks(what: str, name: str, words: str) -> None:
    """Known to the scheduler's rank alone. Needs processes of its own: what is tested is that they
    end."""
    code = (
        f"import sys; sys.path[:0] = [{str(HERE)!r}, {str(HERE / 'agents')!r}]\n{WRONG}\n"
        f"import workloads as t\nt.run(t.network(t.Job(4), {what}={name!r}), None)"
    )
    done = code_on_ranks(2, code)
    assert done.returncode == 1
    assert done.stderr.count(words) == 1
    assert done.stderr.count("odonata: rank") == 1


# -- refusals


@pytest.mark.parametrize(
    ("job", "field", "words"),
    [
        ({"nodes": 0}, "jobs.0.nodes", "nodes = 0: 1 .. "),
        ({"nodes": -3}, "jobs.0.nodes", "nodes = -3: 1 .. "),
        ({"nodes": 1}, "jobs.0.nodes", "nodes = 1: all-to-all needs two tasks that communicate"),
        ({"pattern": "all-to-al"}, "jobs.0.pattern", "did you mean all-to-all?"),
        ({"pattern": "halo5d"}, "jobs.0.pattern", "pattern = halo5d: one of all-to-all, broadcast"),
        ({"message_bytes": 0}, "jobs.0.message_bytes", "message = 0 B: at least 1 B, below 1 TiB"),
        ({"message_bytes": 2**40}, "jobs.0.message_bytes",
         "message = 1099511627776 B: at least 1 B, below 1 TiB"),
        ({"iterations": 0}, "jobs.0.iterations", "iterations = 0: 1 .. 2**23 - 1"),
        ({"iterations": 2**31}, "jobs.0.iterations", "iterations = 2147483648: 1 .. 2**23 - 1"),
        ({"exchange": "pairwize"}, "jobs.0.exchange", "did you mean pairwise?"),
        ({"compute_ps": -1}, "jobs.0.compute_ps", "compute = -1 ps: 0 .. an hour"),
        ({"arrival_ps": -1}, "jobs.0.arrival_ps", "arrival = -1 ps: 0 .. "),
        ({"arrival_ps": 2**62}, "jobs.0.arrival_ps", "26 days"),
        ({"grid": (2, 2)}, "jobs.0.grid", "grid = 2 × 2: all-to-all is on no grid"),
        ({"pattern": "halo3d", "grid": (2, 2)}, "jobs.0.grid", "halo3d needs 3 sides"),
        ({"pattern": "halo2d", "grid": ()}, "jobs.0.grid", "halo2d needs 2 sides"),
        ({"pattern": "halo2d", "grid": (2, 3)}, "jobs.0.grid",
         "grid = 2 × 3: it has 6 places for the job's 4 tasks (4 nodes, 1 tasks each)"),
        ({"pattern": "halo2d", "grid": (-2, -2)}, "jobs.0.grid",
         "grid = (-2, -2): at least 1, or auto"),
        ({"mapping": "backwards"}, "jobs.0.mapping",
         "mapping = 'backwards': random or linear or a list of whole numbers"),
        ({"mapping": (0, 1, 2)}, "jobs.0.mapping",
         "mapping = a list of 3: each of the job's 4 places once, 0 .. 3"),
        ({"mapping": (0, 1, 2, 2)}, "jobs.0.mapping", "each of the job's 4 places once"),
        ({"mapping": (1, 2, 3, 4)}, "jobs.0.mapping", "each of the job's 4 places once"),
    ],
)  # fmt: skip
def test_an_impossible_job_is_refused_with_its_key_and_the_cure(
    job: dict[str, Any], field: str, words: str
) -> None:
    with pytest.raises(Refused) as refusal:
        Workload((Job(**{"nodes": 4, **job}),), tasks_per_node=1)
    assert words in str(refusal.value)
    assert any(p.fields[0] == field and words in str(p) for p in refusal.value.problems)


def test_all_that_is_wrong_with_a_job_is_told_at_once() -> None:
    with pytest.raises(Refused) as refusal:
        Workload((Job(4, "halo2d", 0, grid=(2, 3), mapping=(0,), on=(1, 1)),), tasks_per_node=1)
    wrong = [problem.fields[0].rpartition(".")[2] for problem in refusal.value.problems]
    assert sorted(wrong) == ["grid", "mapping", "message_bytes", "on", "on"]


@pytest.mark.parametrize(
    ("given", "field", "words"),
    [
        ({"jobs": ()}, "jobs", "jobs = none: at least one"),
        ({"allocation": "simpel"}, "allocation", "did you mean simple?"),
        ({"allocation": "xyzzy"}, "allocation", "allocation = xyzzy: one of level-spread"),
        ({"order": "fcsf"}, "order", "did you mean fcfs?"),
        ({"order": "last"}, "order", "order = last: one of fcfs"),
        ({"tasks_per_node": 0}, "tasks_per_node", "tasks_per_node = 0: 1 .. 128"),
        ({"tasks_per_node": 129}, "tasks_per_node", "tasks_per_node = 129: 1 .. 128"),
        ({"launch_ps": -1}, "launch_ps", "launch = -1 ps: 0 .. 1,000 s"),
        ({"send_ps": -1}, "send_ps", "send = -1 ps"),
        ({"match_ps": -1}, "match_ps", "match = -1 ps"),
        ({"host_ps": 10**15 + 1}, "host_ps", "host = 1000000000000001 ps"),
    ],
)
def test_an_impossible_workload_is_refused_with_its_key_and_the_cure(
    given: dict[str, Any], field: str, words: str
) -> None:
    with pytest.raises(Refused) as refusal:
        Workload(**{"jobs": (Job(4),), **given})
    assert words in str(refusal.value)
    assert any(p.fields[0] == field and words in str(p) for p in refusal.value.problems)


def test_a_job_larger_than_the_machine_is_refused() -> None:
    with pytest.raises(Refused) as refusal:
        network(Job(4), Job(73))
    (problem,) = refusal.value.problems
    assert problem.fields[0] == "workload.jobs.1.nodes"
    assert str(problem) == "nodes = 73: job 1 is larger than the machine, which has 72 nodes"


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(Refused) as refusal:
        Workload((Job(4, "ring"), Job(4, mapping="left")), order="lifo", send_ps=-2)
    fields = {problem.fields[0] for problem in refusal.value.problems}
    assert fields == {"jobs.0.pattern", "jobs.1.mapping", "order", "send_ps"}


def test_links_of_every_class_are_used_by_a_job_over_the_whole_machine() -> None:
    ran = go(network(Job(72, "all-to-all", 64)))
    counters = ran.result.outcome["counters"]
    carried = {
        kind: counters[:, rows].reshape(-1, len(COUNTERS)).sum(axis=0)[BYTES]
        for kind, (rows, _) in ports_by_class(ran.network).items()
    }
    assert carried["inject"] == carried["eject"] == 72 * 71 * 64
    assert carried["global"] >= 72 * 64 * 64
    assert carried["local"] > 0


def test_jobs_that_end_together_leave_the_machine_together() -> None:
    """The next is shown all their nodes, and not one job's after the other's."""
    m = Dragonfly(4, 4, 4, 9)
    small = (Job(4, "all-to-all", mapping="linear"),) * (m.n_nodes // 4)
    model = Network(m, workload=Workload((*small, Job(16, "halo2d")), allocation="level-spread"),
                    routing="adaptive", packet_bytes=1024)  # fmt: skip
    *first, last = job_records(model, run(model, None))
    assert len({job.end_ps for job in first}) == 1
    assert sorted(last.labels) == list(range(16))


def test_whom_a_uniform_job_speaks_to_does_not_depend_on_the_jobs_before_it() -> None:
    reported = []
    for nodes in (2, 3):
        load = Workload((Job(nodes), Job(4, "uniform", iterations=10)))
        arrays = load.arrays(1, 0)
        reported.append(arrays["friends"][:, 0].tolist())
    assert len(reported[0]) == 8
    assert reported[0] == reported[1]
