"""Jobs of several stages: what their tasks send, wait for and count."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from machines import SMALL, US
from workloads import DELAY, HOST, LAUNCH, MATCH, SEND, go, network, took

from odonata.agents.layout import (
    BY_BYTES,
    BY_HOPS,
    BY_LATENCY,
    BY_NON_MINIMAL,
    BY_PACKETS,
    COMPUTED_PS,
    DELIVERED,
    DELIVERED_BYTES,
    HOPS,
    LATENCY_SUM,
    OVERHEAD_PS,
    SENT_PS,
    WAITED_PS,
)
from odonata.agents.patterns import PAIRED, PATTERNS
from odonata.agents.profile import Profile
from odonata.agents.traffic import Traffic
from odonata.jobs.request import WAITS, Job, Stage
from odonata.results.job_network import JobNetwork
from pdes.errors import Refused

TERMINAL = SMALL.terminal
PER_BYTE = 1e12 / TERMINAL.bandwidth


def of(nodes: int, *stages: Stage, **more: Any) -> Job:
    return Job(nodes, stages=stages, **more)


def link_ps(size: int) -> int:
    """What a message of one packet takes from a node to another of the same router: two links and
    a router's pipeline."""
    return round(2 * TERMINAL.latency_ps + DELAY + size * PER_BYTE)


WAYS = [(name, "posted") for name in PATTERNS] + [(name, "pairwise") for name in PAIRED]


@pytest.mark.parametrize(("pattern", "exchange"), WAYS)
def test_a_job_of_one_stage_is_a_job_with_that_pattern(pattern: str, exchange: str) -> None:
    plain = Job(11, pattern, 700, 3, exchange, compute_ps=5_000)
    staged = of(11, Stage(pattern, 700, exchange, compute_ps=5_000), iterations=3)
    assert go(network(staged)).result.digest == go(network(plain)).result.digest


@pytest.mark.parametrize("pattern", ["halo3d", "allreduce", "fft3d", "uniform", "tree-broadcast"])
def test_passes_of_a_stage_are_as_many_iterations(pattern: str) -> None:
    stage = Stage(pattern, 300, compute_ps=4_000)
    often = of(9, replace(stage, repeat=6))
    assert took(often) == took(of(9, stage, iterations=6))
    assert took(often) == took(of(9, replace(stage, repeat=2), iterations=3))


def test_stages_follow_each_other() -> None:
    """Two tasks that exchange with each other alone: nothing overlaps."""
    ring, reduce = Stage("permutation", 500, compute_ps=9_000), Stage("allreduce", 8)
    assert took(of(2, ring, reduce, iterations=4)) == [
        4 * sum(t for t in (*took(of(2, ring)), *took(of(2, reduce))) if t is not None)
    ]


# -- what is waited for


def test_a_get_takes_a_request_and_a_reply() -> None:
    get = Stage("incast", 64, wait="replies", reply_bytes=400)
    ran = go(network(of(2, get)))
    expected = SEND + link_ps(64) + link_ps(400) + HOST
    assert ran.jobs[0].run_time_ps == expected
    tally = ran.result.outcome["by_job"].sum(axis=0)[0]
    assert tally[[BY_PACKETS, BY_BYTES]].tolist() == [2, 464]


def test_gets_need_no_task_at_the_other_end() -> None:
    """Task 0 computes all the while, and nobody waits for it."""
    get = Stage("incast", 64, wait="replies", reply_bytes=400)
    slow = of(2, replace(get, compute_ps=100 * US))
    waited = go(network(slow)).result.outcome["spent"].sum(axis=0)[0, WAITED_PS]
    once = link_ps(64) + link_ps(400) + HOST
    # task 1 waits for its reply; task 0, at its end, until the request has come to it
    assert once <= waited <= once + link_ps(64) + SEND + HOST


def test_what_nothing_waits_for_is_sent_while_earlier_messages_wait_in_the_nic() -> None:
    """Ten messages of 50 kB: 5 us on the link each, prepared within 30 ns each."""
    stage = Stage("permutation", 50_000, repeat=10)
    patient = go(network(of(2, replace(stage, wait="departures"))))
    hasty = go(network(of(2, replace(stage, wait="nothing"))))
    sent = [ran.result.outcome["spent"].sum(axis=0)[0, SENT_PS] for ran in (patient, hasty)]
    assert sent[1] == 2 * 10 * SEND
    assert sent[0] > 9 * 2 * 50_000 * PER_BYTE
    assert patient.jobs[0].run_time_ps == pytest.approx(hasty.jobs[0].run_time_ps, 0.02)


@pytest.mark.long  # a program of its own
def test_a_node_accepts_requests_only_as_fast_as_it_answers() -> None:
    """Eight tasks get 4,000 B each from one: its link is busy with replies all the time, and
    requests wait in the network, which they would not do for an answer of a few bytes."""
    get = Stage("incast", 1000, wait="replies", reply_bytes=8000)
    stalled = []
    for reply in (8000, 8):
        stage = replace(get, reply_bytes=reply, repeat=5)
        ran = go(network(of(9, stage), ejection=10e9, ejection_buffer=1024, crossbar=2.0,
                         output_buffer=None))  # fmt: skip
        inputs = ran.result.outcome["inputs"]
        stalled.append(int(inputs[..., 2].sum()))  # eject_ps
    least = 5 * 8 * 8000 * PER_BYTE
    assert stalled[0] > least > stalled[1]


def test_requests_to_a_task_of_the_same_node_stay_there() -> None:
    get = Stage("all-to-all", 64, wait="replies", reply_bytes=4000)
    ran = go(network(of(1, get), tasks_per_node=4))
    assert ran.result.outcome["by_job"].sum() == 0
    assert ran.jobs[0].run_time_ps == 3 * SEND + HOST


# -- what is counted


@st.composite
def stages(draw: Any) -> Stage:
    return Stage(
        draw(st.sampled_from(("halo2d", "allreduce", "uniform", "incast", "all-to-all", "halo4d",
                              "random-ring", "tree-broadcast"))),
        draw(st.integers(1, 1500)), draw(st.sampled_from(("posted", "pairwise"))),
        draw(st.sampled_from(WAITS)), draw(st.integers(1, 1500)),
        compute_ps=draw(st.integers(0, 50_000)), overhead_ps=draw(st.sampled_from((0, 3_000))),
        imbalance=draw(st.sampled_from((0.0, 0.7))), repeat=draw(st.integers(1, 3)),
    )  # fmt: skip


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    parts=st.lists(stages(), min_size=1, max_size=4),
    nodes=st.integers(2, 14),
    tasks=st.integers(1, 3),
    loud=st.booleans(),
)
def test_nothing_is_lost_and_every_counter_adds_up(
    parts: list[Stage], nodes: int, tasks: int, loud: bool
) -> None:
    """Whatever the stages are: all jobs end, what a job received is what nodes received, the
    histograms of jobs sum to the machine's, and tasks account for all of their time."""
    jobs = (of(nodes, *parts, iterations=2), Job(5, "halo2d", 900, 3))
    traffic = (Traffic(load=0.2, message_bytes=300, stop_ps=20 * US),) if loud else ()
    ran = go(network(*jobs, tasks_per_node=tasks, traffic=traffic))
    outcome = ran.result.outcome
    assert all(job.end_ps is not None for job in ran.jobs)
    nodes_, by_job = outcome["nodes"].sum(axis=0), outcome["by_job"].sum(axis=0)
    latencies = outcome["job_latencies"].sum(axis=0)
    assert (latencies.sum(axis=1) == by_job[:, BY_PACKETS]).all()
    rest = outcome["histogram"].sum(axis=0) - latencies.sum(axis=0)
    pairs = ((BY_PACKETS, DELIVERED), (BY_BYTES, DELIVERED_BYTES), (BY_LATENCY, LATENCY_SUM),
             (BY_HOPS, HOPS))  # fmt: skip
    for ours, whole in pairs:
        assert by_job[:, ours].sum() <= nodes_[whole]
        assert loud or by_job[:, ours].sum() == nodes_[whole]
    assert (rest >= 0).all()
    assert rest.sum() == nodes_[DELIVERED] - by_job[:, BY_PACKETS].sum()
    assert (by_job[:, BY_NON_MINIMAL] <= by_job[:, BY_PACKETS]).all()
    spent = outcome["spent"].sum(axis=0)
    assert (spent >= 0).all()
    passes = np.array([[stage.compute_ps, stage.overhead_ps] for stage in parts])
    passes *= np.array([[2 * stage.repeat * nodes * tasks] for stage in parts])
    exact = np.array([stage.imbalance == 0 for stage in parts])
    assert (spent[: len(parts), [COMPUTED_PS, OVERHEAD_PS]][exact] == passes[exact]).all()
    assert (spent[: len(parts), COMPUTED_PS][~exact] >= passes[~exact, 0]).all()
    first = ran.jobs[0]
    assert first.run_time_ps is not None
    assert spent[: len(parts)].sum() <= nodes * tasks * first.run_time_ps


def test_tasks_wait_for_the_slowest_of_them() -> None:
    """With an imbalance of 1 they compute for between 10 and 20 us, and the barrier shows it."""
    even = Stage("allreduce", 8, compute_ps=10 * US)
    ran = {i: go(network(of(16, replace(even, imbalance=i), iterations=20))) for i in (0.0, 1.0)}
    figures = {i: JobNetwork.of(it.network, it.result.outcome)[0] for i, it in ran.items()}
    mean = figures[1.0].spent[0, COMPUTED_PS] / (16 * 20)
    assert 14.5 * US < mean < 15.5 * US
    assert figures[1.0].communication > figures[0.0].communication + 0.1
    worst = max(it for it in (ran[1.0].jobs[0].run_time_ps,) if it)
    assert worst > 20 * 18.5 * US


def test_the_parts_of_time_by_stage_add_up() -> None:
    job = of(8, Stage("halo3d", 2000, compute_ps=5 * US, name="exchange"),
             Stage("allreduce", 8, name="norm"), Stage("allreduce", 8, name="norm"))  # fmt: skip
    ran = go(network(job))
    seen = JobNetwork.of(ran.network, ran.result.outcome)[0]
    assert set(seen.operations) == {"exchange", "norm"}
    assert sum(seen.operations.values()) == pytest.approx(seen.communication)
    assert seen.percentile_ps(0) <= seen.mean_latency_ps <= seen.percentile_ps(100)


# -- where, and until when


def test_a_job_runs_on_the_nodes_that_it_names_when_they_are_idle() -> None:
    jobs = (Job(4, "halo2d", 500, on=(7, 3, 9, 20)), Job(2, "halo2d", 500, on=(9, 11)),
            Job(3, "halo2d", 500))  # fmt: skip
    ran = go(network(*jobs))
    assert ran.jobs[0].labels == (7, 3, 9, 20)
    assert ran.jobs[1].labels == (9, 11)
    assert ran.jobs[1].start_ps == ran.jobs[0].end_ps + 2 * LAUNCH  # type: ignore[operator]
    assert ran.jobs[2].start_ps == ran.jobs[1].start_ps  # first come, first served: it waits too


def test_no_job_takes_the_nodes_of_one_that_waits_for_them() -> None:
    jobs = (Job(4, "halo2d", 500, on=(0, 1, 2, 3)), Job(8, "halo2d", 500, on=tuple(range(8))),
            Job(8, "halo2d", 500, 100))  # fmt: skip
    ran = go(network(*jobs))
    assert ran.jobs[1].start_ps == ran.jobs[0].end_ps + 2 * LAUNCH  # type: ignore[operator]
    assert ran.jobs[2].start_ps == ran.jobs[1].start_ps
    assert not set(ran.jobs[2].labels) & set(range(8))


def test_a_run_does_not_wait_for_a_job_in_the_background() -> None:
    endless = Job(4, "halo2d", 500, 1_000_000, background=True)
    ran = go(network(Job(4, "halo2d", 500, 3), endless))
    assert ran.jobs[0].end_ps is not None
    assert ran.jobs[1].end_ps is None
    assert ran.result.completed


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (Job(2, on=(1, 2, 3)), "on = 3 nodes: as many labels as it has nodes, 2"),
        (Job(2, on=(1, 1)), "on = a label twice"),
        (Job(2, on=(1, 72)), "labels of nodes of the machine, 0 .. 71"),
        (Job(2, background=True), "at least one job is not in the background"),
        (of(2, Stage(wait="tomorrow")), "wait = tomorrow: one of messages, departures"),
        (of(2, Stage(repeat=0)), "repeat = 0"),
        (of(2, Stage(imbalance=-1.0)), "imbalance = -1: 0 .. 100"),
        (of(2, Stage(overhead_ps=-1)), "overhead = -1 ps"),
        (of(2, Stage(reply_bytes=0)), "reply = 0 B"),
        (of(2, Stage("halo5d")), "pattern = halo5d: one of"),
        (of(2, Stage(repeat=2**20), Stage("allreduce", repeat=2**20), iterations=9), "at most"),
    ],
)
def test_nonsense_is_refused(job: Job, words: str) -> None:
    with pytest.raises(Refused, match=words.replace("(", "\\(")):
        network(job)


def test_a_profile_keeps_the_bytes_of_a_node() -> None:
    profile = Profile("p", (Stage(message_bytes=1000, reply_bytes=10),), tasks_per_node=4)
    for tasks in (1, 2, 4, 8):
        (stage,) = profile.stages_for(tasks)
        assert stage.message_bytes * tasks == 4000
    assert replace(profile, tasks_per_node=None).stages_for(7) == profile.stages
    assert profile.stages_for(128)[0].reply_bytes == 1
    assert MATCH > 0
