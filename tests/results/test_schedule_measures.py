"""Measures of a schedule against examples worked out by hand, and against a plain count of every
tick."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st

from odonata.jobs.schedule import FINISHED, KILLED, RUNNING, TO_COME, WAITING, Schedule
from odonata.results.schedule_measures import measures
from odonata.results.schedule_series import binned, fragmentation, steps, total
from odonata.traces.trace import SECOND, Trace
from pdes.errors import Refused
from topology import Dragonfly


def made(
    jobs: list[dict[str, Any]], nodes: int = 4, reached: int | None = None, unit: int = SECOND,
    users: tuple[str, ...] = ("",), machine: Dragonfly | None = None,
) -> Schedule:  # fmt: skip
    """Returns a schedule of jobs in order of submission, each with `submit`, `nodes`, `state`,
    `user` and `held`: its segments as (from, to), to None where it goes on. Times are in units."""
    n = len(jobs)
    state = np.array([job.get("state", FINISHED) for job in jobs], np.int8)
    held = [(begin, number, end, job.get("labels"))
            for number, job in enumerate(jobs) for begin, end in job["held"]]  # fmt: skip
    held.sort(key=lambda one: one[0])
    begins = np.array([one[0] for one in held], np.int64) * unit
    ends = np.array([-1 if end is None else end * unit for _, _, end, _ in held], np.int64)
    start = [job["held"][0][0] * unit if job["held"] else -1 for job in jobs]
    end = [job["held"][-1][1] * unit if done else -1
           for job, done in zip(jobs, state >= FINISHED, strict=True)]  # fmt: skip
    trace = Trace(
        name="made",
        number=np.arange(1, n + 1),
        submit_us=np.array([job["submit"] for job in jobs], np.int64) * unit,
        run_us=np.array(
            [sum((end or begin) - begin for begin, end in job["held"]) for job in jobs], np.int64
        )
        * unit,
        nodes=np.array([job.get("nodes", 1) for job in jobs], np.int64),
        requested_us=np.full(n, -1),
        user=np.array([job.get("user", 0) for job in jobs], np.int64),
        project=np.zeros(n, np.int64),
        application=np.zeros(n, np.int64),
        wait_us=np.full(n, -1),
        users=users,
    )
    labels = None
    if machine is not None:
        labels = np.concatenate([np.array(one[3], np.int32) for one in held])
    latest = max([one[2] or 0 for one in held] + [job["submit"] for job in jobs], default=0)
    return Schedule(
        trace, nodes, (latest if reached is None else reached) * unit, state,
        np.array(start, np.int64), np.array(end, np.int64),
        np.array([one[1] for one in held], np.int64), begins, ends, machine, labels,
    )  # fmt: skip


THREE = [
    {"submit": 10, "nodes": 3, "held": [(10, 110)]},
    {"submit": 20, "nodes": 2, "held": [(110, 150)], "state": KILLED, "user": 1},
    {"submit": 60, "nodes": 4, "held": [(150, 152)]},
]


def test_three_jobs_by_hand() -> None:
    found = measures(made(THREE, users=("ann", "bob"))).facts()
    expected = {
        "jobs": 3, "left_out": 0, "finished": 2, "killed": 1, "running": 0, "waiting": 0,
        "to_come": 0, "mean_wait_s": 60.0, "median_wait_s": 90.0, "p95_wait_s": 90.0,
        "max_wait_s": 90.0, "mean_turnaround_s": (100 + 130 + 92) / 3,
        "mean_slowdown": (1 + 130 / 40 + 46) / 3, "mean_bounded_slowdown": (1 + 3.25 + 9.2) / 3,
        "utilisation": (300 + 80 + 8) / (4 * 142), "makespan_s": 142.0, "observed_s": 142.0,
        "mean_queue_length": 180 / 142, "max_queue_length": 2, "mean_running": 1.0,
        "mean_delay_s": 60.0, "mean_sojourn_s": 322 / 3,
        "potential_load": (10 * 3 + 130 * 4 + 2 * 4) / 142, "effective_load": 388 / 142,
        "waste_node_s": 90.0 * 1 + 40 * 2, "mean_waste": 170 / 142,
    }  # fmt: skip
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-14)
    assert found["by_size"] == [
        {"name": "1", "jobs": 0, "node_hours": 0.0, "mean_wait_s": None,
         "mean_bounded_slowdown": None, "mean_turnaround_s": None},
        {"name": "2", "jobs": 1, "node_hours": 80 / 3600, "mean_wait_s": 90.0,
         "mean_bounded_slowdown": 3.25, "mean_turnaround_s": 130.0},
        {"name": "3-4", "jobs": 2, "node_hours": 308 / 3600, "mean_wait_s": 45.0,
         "mean_bounded_slowdown": 5.1, "mean_turnaround_s": 96.0},
    ]  # fmt: skip
    assert [(it["name"], it["jobs"]) for it in found["by_user"]] == [("ann", 2), ("bob", 1)]


def test_a_preempted_job_is_in_the_queue_and_its_slowdown_is_over_what_it_held() -> None:
    schedule = made([{"submit": 0, "nodes": 2, "held": [(0, 30), (50, 80)]}], nodes=2)
    found = measures(schedule)
    assert found.mean_wait_s == 0
    assert found.mean_slowdown == 80 / 60
    assert found.mean_queue_length == 20 / 80
    assert found.max_queue_length == 1
    assert found.waste_node_s == 2 * 20
    series = steps(schedule)
    assert (series.time_us // SECOND).tolist() == [0, 30, 50, 80]
    assert series.queue.tolist() == [0, 1, 0, 0]
    assert series.waiting_nodes.tolist() == [0, 2, 0, 0]


def test_an_unfinished_schedule_is_measured_until_the_time_reached() -> None:
    jobs: list[dict[str, Any]] = [
        {"submit": 0, "nodes": 1, "held": [(0, 40)]},
        {"submit": 10, "nodes": 3, "held": [(10, None)], "state": RUNNING},
        {"submit": 20, "nodes": 2, "held": [], "state": WAITING},
        {"submit": 30, "nodes": 1, "held": [(40, 60)], "state": WAITING},
        {"submit": 500, "nodes": 1, "held": [], "state": TO_COME},
    ]
    found = measures(made(jobs, reached=100))
    assert found.makespan_s is None
    assert found.observed_s == 100
    assert found.utilisation == (40 + 3 * 90 + 20) / 400
    assert found.mean_queue_length == (80 + 10 + 40) / 100
    assert (found.finished, found.running, found.waiting, found.to_come) == (1, 1, 2, 1)
    assert found.mean_wait_s == 0
    assert sum(part.node_hours for part in found.by_size) * 3600 == pytest.approx(330)


def test_warm_up_and_cool_down_leave_out_jobs_and_time() -> None:
    jobs = [{"submit": 10 * i, "nodes": 1 + i % 2, "held": [(10 * i + i, 10 * i + 35)]}
            for i in range(10)]  # fmt: skip
    schedule = made(jobs, nodes=8)
    found = measures(schedule, warmup_us=20 * SECOND, cooldown_us=30 * SECOND)
    assert found.jobs == 5
    assert found.left_out == 5
    assert found.mean_wait_s == (2 + 3 + 4 + 5 + 6) / 5
    assert found.observed_s == 40
    busy = sum(job["nodes"] * max(0, min(60, job["held"][0][1]) - max(20, job["held"][0][0]))
               for job in jobs)  # fmt: skip
    assert found.effective_load == busy / 40
    assert measures(schedule, warmup_jobs=2, cooldown_jobs=3) == found
    assert measures(schedule, warmup_us=1).observed_s == 90 - 1e-6


def test_what_is_undefined_is_null_in_json() -> None:
    nothing = [
        made([]),
        made([{"submit": 5, "held": [], "state": TO_COME}], reached=0),
        made([{"submit": 5, "held": [], "state": WAITING}], reached=5),
        made([{"submit": 5, "held": [(5, 5)]}]),
    ]
    for schedule in nothing:
        found = json.loads(json.dumps(measures(schedule).facts(), allow_nan=False))
        assert found["utilisation"] is None
        assert found["mean_slowdown"] is None
    left = measures(made(THREE, users=("", "bob")), warmup_us=SECOND * 10**6)
    assert left.jobs == 0
    assert left.mean_wait_s is None
    assert left.max_queue_length is None
    assert left.by_user == ()


def test_a_job_without_length_has_a_bounded_slowdown_and_no_other() -> None:
    found = measures(made([{"submit": 0, "held": [(30, 30)]}, {"submit": 0, "held": [(0, 60)]}]))
    assert found.mean_slowdown == 1
    assert found.mean_bounded_slowdown == (3 + 1) / 2


def test_a_parameter_out_of_range_is_refused() -> None:
    with pytest.raises(Refused, match="warmup_us = -1"):
        measures(made(THREE, users=("", "")), warmup_us=-1)
    with pytest.raises(Refused, match="slowdown_bound_us = 0"):
        measures(made(THREE, users=("", "")), slowdown_bound_us=0)


def test_a_user_all_of_whose_jobs_are_left_out_has_no_row() -> None:
    jobs = [{"submit": 10 * i, "held": [(10 * i + i, 10 * i + 9)], "user": i // 2}
            for i in range(6)]  # fmt: skip
    found = measures(made(jobs, users=("ann", "bob", "eve")), warmup_us=15 * SECOND)
    assert {part.name: (part.jobs, part.mean_wait_s) for part in found.by_user} == {
        "bob": (2, 2.5), "eve": (2, 4.5)
    }  # fmt: skip
    assert [part.jobs for part in found.by_project] == [4]


def test_users_beyond_the_tenth_are_together() -> None:
    jobs = [{"submit": i, "nodes": 1, "held": [(i, 2 * i + 1)], "user": i} for i in range(14)]
    parts = measures(made(jobs, nodes=20, users=("", *(f"u{i}" for i in range(1, 14))))).by_user
    assert [part.name for part in parts] == [*(f"u{i}" for i in range(13, 3, -1)), "4 others"]
    assert parts[-1].jobs == 4
    assert parts[-1].node_hours == pytest.approx((1 + 2 + 3 + 4) / 3600)


def test_sums_beyond_64_bits_are_exact() -> None:
    values, weights = np.array([2**40, 3, 2**41]), np.array([2**40, 5, 2**42 + 1])
    assert total(values, weights) == 2**80 + 15 + 2**41 * (2**42 + 1)


# -- against a plain count


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    """Jobs that begin, are preempted, end, go on or wait, at ticks from 0 to 30. More may run than
    there are nodes: the measures do not mind."""
    jobs, reached = [], 30
    submits = sorted(draw(st.lists(st.integers(0, 35), min_size=1, max_size=8)))
    for submit in submits:
        times = sorted(draw(st.lists(st.integers(min(submit, 30), 30), max_size=6)))
        job: dict[str, Any] = {"submit": submit, "nodes": draw(st.integers(1, 9)),
                               "user": draw(st.integers(0, 1))}  # fmt: skip
        pairs: list[tuple[int, int | None]] = list(zip(times[::2], times[1::2], strict=False))
        if submit > reached:
            job |= {"held": [], "state": TO_COME}
        elif len(times) % 2:
            job |= {"held": [*pairs, (times[-1], None)], "state": RUNNING}
        elif pairs:
            job |= {"held": pairs, "state": draw(st.sampled_from((WAITING, FINISHED, KILLED)))}
        else:
            job |= {"held": [], "state": WAITING}
        jobs.append(job)
    return made(jobs, nodes=12, reached=reached, unit=1, users=("ann", "bob"))


@examples(40)
@given(schedules(), st.integers(0, 10), st.integers(0, 10))
def test_integrals_equal_a_plain_count_of_every_tick(
    schedule: Schedule, warmup: int, cooldown: int
) -> None:
    found = measures(schedule, warmup_us=warmup, cooldown_us=cooldown)
    submit, state = schedule.trace.submit_us, schedule.state
    all_done = (state >= FINISHED).all()
    from_us, to_us = int(submit[0]), int(schedule.end_us.max()) if all_done else 30
    if warmup or cooldown:
        from_us, to_us = from_us + warmup, min(to_us, int(submit[-1]) - cooldown)
    busy = queue = running = waste = most = 0
    for tick in range(from_us, to_us):
        holds = np.zeros(len(schedule), bool)
        segments = zip(schedule.segment_job, schedule.segment_from_us, schedule.segment_to_us,
                       strict=True)  # fmt: skip
        for job, begin, end in segments:
            holds[job] |= begin <= tick and (end < 0 or tick < end)
        arrived = (submit <= tick) & ~((state >= FINISHED) & (schedule.end_us <= tick))
        waits = int((arrived & ~holds).sum())
        used = int(schedule.trace.nodes[holds].sum())
        busy, queue, running = busy + used, queue + waits, running + int(holds.sum())
        waste += (12 - used) if waits else 0
        most = max(most, waits)
    length = to_us - from_us
    if length <= 0:
        assert found.utilisation is None
        return
    assert found.observed_s == length / SECOND
    assert found.utilisation == busy / (12 * length)
    assert found.mean_queue_length == queue / length
    assert found.mean_running == running / length
    assert found.max_queue_length == most
    assert found.waste_node_s == waste / SECOND
    assert found.potential_load == (busy + waste) / length


@examples(25)
@given(schedules(), st.integers(0, 20))
def test_sizes_and_users_add_up_to_all_jobs(schedule: Schedule, warmup: int) -> None:
    found = measures(schedule, warmup_us=warmup)
    for parts in (found.by_size, found.by_user):
        assert sum(part.jobs for part in parts) == found.jobs
    assert sum(part.node_hours for part in found.by_size) == pytest.approx(
        sum(part.node_hours for part in found.by_user)
    )
    states = found.finished + found.killed + found.running + found.waiting + found.to_come
    assert states == found.jobs == len(schedule) - found.left_out


@examples(25)
@given(schedules(), st.lists(st.integers(0, 40), min_size=2, max_size=6, unique=True))
def test_bins_have_the_exact_mean_and_maximum(schedule: Schedule, edges: list[int]) -> None:
    series = steps(schedule)
    first = int(series.time_us[0]) if len(series.time_us) else 0
    edge = np.array(sorted(edges)) + first
    mean, most = binned(series.time_us, series.queue, series.until_us, edge)
    ticks = np.array([series.queue[np.searchsorted(series.time_us, t, "right") - 1]
                      if len(series.time_us) and t < series.until_us else 0
                      for t in range(first, int(edge[-1]))])  # fmt: skip
    for i, (low, high) in enumerate(zip(edge[:-1] - first, edge[1:] - first, strict=True)):
        assert mean[i] == pytest.approx(ticks[low:high].mean())
        assert most[i] == ticks[low:high].max()


# -- where labels are there


def test_fragmentation_by_hand() -> None:
    machine = Dragonfly(nodes=2, routers=3, global_links=1, groups=4)  # 6 nodes a group
    jobs = [
        {"submit": 0, "nodes": 3, "held": [(0, 10)], "labels": [0, 1, 2]},
        {"submit": 0, "nodes": 4, "held": [(5, 15)], "labels": [23, 7, 3, 13]},
        {"submit": 0, "nodes": 7, "held": [(20, 30)], "labels": [0, 1, 2, 3, 4, 5, 6]},
    ]
    found = fragmentation(made(jobs, nodes=24, machine=machine))
    assert found is not None
    assert found.groups.tolist() == [1, 4, 2]
    assert found.routers.tolist() == [2, 4, 4]
    assert found.fewest_groups.tolist() == [1, 1, 2]
    assert found.fewest_routers.tolist() == [2, 2, 4]
    assert (found.time_us // SECOND).tolist() == [0, 5, 10, 15, 20, 30]
    assert found.running.tolist() == [1, 2, 1, 0, 1, 0]
    assert found.sum_groups.tolist() == [1, 5, 4, 0, 2, 0]
    assert found.sum_fewest_routers.tolist() == [2, 4, 2, 0, 4, 0]
    assert found.facts() == {
        "groups_per_job": 7 / 3,
        "fewest_groups_per_job": 4 / 3,
        "routers_per_job": 10 / 3,
        "fewest_routers_per_job": 8 / 3,
    }


def test_fragmentation_in_pieces_is_that_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Dragonfly(nodes=2, routers=4, global_links=1, groups=5)
    rng = np.random.default_rng(7)
    jobs = []
    for i in range(40):
        size = int(rng.integers(1, 20))
        labels = rng.permutation(40)[:size]
        jobs.append({"submit": i, "nodes": size, "held": [(i, i + 3)], "labels": labels})
    monkeypatch.setattr("odonata.results.schedule_series.LABELS_AT_ONCE", 30)
    found = fragmentation(made(jobs, nodes=40, machine=machine))
    assert found is not None
    assert found.routers.tolist() == [len({it // 2 for it in job["labels"]}) for job in jobs]
    assert found.groups.tolist() == [len({it // 8 for it in job["labels"]}) for job in jobs]


def test_nodes_that_were_only_counted_have_no_fragmentation() -> None:
    assert fragmentation(made(THREE, users=("", ""))) is None
