"""Conservative backfilling of jobs that come at once, against a plain twin and against the clock.

The twin goes through all plans at every pass, on a profile in a list, as the discipline once did.
The naive simulator of `naive` knows no profile at all, but is too slow for as many jobs as fill
several blocks of the compiled one.
"""

from __future__ import annotations

import random
import time
from bisect import bisect_right

import numpy as np
import pytest
from clusters import simulated, trace_of
from naive import Job
from random_traces import build

from odonata.cluster.model import Cluster
from odonata.cluster.simulation import simulate
from pdes.jit import ENABLED
from policies.scheduling.desk import BLOCK
from policies.views import NEVER


class Profile:
    """Idle nodes, from each of `times` on."""

    def __init__(self, now: int, nodes: int) -> None:
        self.times, self.room = [now], [nodes]

    def place(self, time: int) -> int:
        at = bisect_right(self.times, time) - 1
        if self.times[at] != time:
            at += 1
            self.times.insert(at, time)
            self.room.insert(at, self.room[at - 1])
        return at

    def add(self, begin: int, end: int, nodes: int) -> None:
        first, last = self.place(begin), 0
        last = self.place(end)
        for at in range(first, last):
            self.room[at] += nodes

    def earliest(self, nodes: int, length: int) -> int:
        first = -1
        for time_, room in zip(self.times, self.room, strict=True):
            if first >= 0 and time_ >= min(NEVER, first + length):
                return first
            if room < nodes:
                first = -1
            elif first < 0:
                first = time_
        return first


def asked(job: Job) -> int:
    return NEVER if job.requested is None else job.requested


def end(begin: int, job: Job) -> int:
    return min(NEVER, begin + asked(job))


def starts_of(jobs: list[Job], nodes: int, depth: int = 0) -> list[int]:
    """Returns when each job starts; a job that exceeds its request is killed. With a depth, only so
    many of those who do not start now have a plan."""
    plans: dict[int, int] = {}
    starts: dict[int, int] = {}
    ends: dict[int, int] = {}
    waiting: list[Job] = []
    coming = list(jobs)
    while coming or waiting:
        running = [number for number, when in ends.items() if when >= 0]
        now = min([ends[number] for number in running] + [job.submit for job in coming[:1]])
        ended = [number for number in running if ends[number] == now]
        for number in ended:
            ends[number] = -1
        while coming and coming[0].submit == now:
            waiting.append(coming.pop(0))
        profile = Profile(now, nodes)
        for number, when in ends.items():
            if when >= 0:
                profile.add(now, max(end(starts[number], jobs[number]), now + 1),
                            -jobs[number].nodes)  # fmt: skip
        for job in waiting:
            if job.number in plans:
                profile.add(plans[job.number], end(plans[job.number], job), -job.nodes)
        assert min(profile.room) >= 0
        assert all(plan >= now for plan in plans.values())
        for again in (True, False):
            for job in waiting:
                if (job.number in plans) != again or (again and not ended):
                    continue
                if depth and not again and sum(plan > now for plan in plans.values()) >= depth:
                    break
                if again:
                    before = plans[job.number]
                    profile.add(before, end(before, job), job.nodes)
                plans[job.number] = profile.earliest(job.nodes, asked(job))
                begin = plans[job.number]
                profile.add(begin, end(begin, job), -job.nodes)
        for job in [job for job in waiting if plans.get(job.number) == now]:
            waiting.remove(job)
            starts[job.number] = plans.pop(job.number)
            ends[job.number] = now + min(job.run, asked(job))
    return [starts[job.number] for job in jobs]


@pytest.mark.parametrize("seed", range(6))
def test_as_many_plans_as_fill_blocks_are_moved_as_the_plain_twin_moves_them(seed: int) -> None:
    """Some traces with requests so long and so different that points of the profile are many; in
    some, jobs end on time, in some early; in some, they come one after the other."""
    rng = random.Random(seed)
    nodes, longest = rng.choice((3, 8, 64)), rng.choice((30, 10**4, 10**9))
    exact, gap = rng.choice((0.0, 0.5, 1.0)), rng.choice((0, 0, longest // 40))
    rows: list[tuple[int, int, int, int | None, int]] = []
    for _ in range(100):
        requested = rng.randint(1, longest)
        run = requested if rng.random() < exact else rng.randint(0, requested)
        rows.append((rng.randint(0, gap), run, min(nodes, 1 << rng.randint(0, 6)), requested, 0))
    jobs = build(rows)
    ours, _ = simulated(jobs, nodes, "conservative")
    assert [record.start for record in ours] == starts_of(jobs, nodes)
    assert 2 * len(jobs) > 3 * BLOCK


def test_room_that_lasts_for_ever_is_found_by_jobs_that_requested_no_time() -> None:
    for seed in range(30):
        rng = random.Random(seed)
        nodes = rng.choice((3, 8))
        rows: list[tuple[int, int, int, int | None, int]] = []
        for _ in range(40):
            requested = None if rng.random() < 0.3 else rng.randint(1, 100)
            rows.append((rng.choice((0, 0, 5)), rng.randint(0, requested or 100),
                         rng.randint(1, nodes), requested, 0))  # fmt: skip
        jobs = build(rows)
        ours, _ = simulated(jobs, nodes, "conservative")
        assert [record.start for record in ours] == starts_of(jobs, nodes), seed


@pytest.mark.parametrize("depth", [1, 2, 7, 40])
def test_with_a_depth_only_the_first_have_plans(depth: int) -> None:
    for seed in range(5):
        rng = random.Random(seed)
        nodes, gap = rng.choice((3, 8, 64)), rng.choice((0, 0, 250))
        rows: list[tuple[int, int, int, int | None, int]] = []
        for _ in range(80):
            requested = rng.randint(1, 10**4)
            run = requested if rng.random() < 0.3 else rng.randint(0, requested)
            rows.append((rng.randint(0, gap), run, min(nodes, 1 << rng.randint(0, 6)), requested,
                         0))  # fmt: skip
        jobs = build(rows)
        ours, _ = simulated(jobs, nodes, "conservative", depth=depth)
        assert [record.start for record in ours] == starts_of(jobs, nodes, depth), seed


def test_requests_that_become_longer_and_longer_hide_no_room() -> None:
    """Where the search for room begins is noted by length, up to the longest there has been."""
    for seed in range(4):
        rng, longest = random.Random(seed), 20
        rows: list[tuple[int, int, int, int | None, int]] = []
        for _ in range(60):
            longest += rng.randint(0, 20)
            requested = rng.randint(1, longest)
            rows.append((rng.randint(0, 12), rng.randint(0, requested),
                         rng.choice((1, 2, 3, 4, 8)), requested, 0))  # fmt: skip
        jobs = build(rows)
        ours, _ = simulated(jobs, 8, "conservative")
        assert [record.start for record in ours] == starts_of(jobs, 8), seed


@pytest.mark.skipif(not ENABLED, reason="it is about the speed of compiled kernels")
def test_a_burst_takes_time_as_its_jobs_and_not_as_their_cube() -> None:
    """Where jobs end on time, no plan is tried twice: hundredths of a second, while going through
    all plans at every pass took more seconds than this allows for 2,000 of them."""
    rng = random.Random(1)
    rows: list[tuple[int, int, int, int | None, int]] = []
    for _ in range(3000):
        run = rng.randint(1, 10**9)
        rows.append((0, run, rng.randint(1, 64), run, 0))
    model = Cluster(trace_of(build(rows)), 64, "conservative")
    simulate(Cluster(trace_of(build(rows[:10])), 64, "conservative"))  # have it compiled
    began = time.process_time()
    schedule = simulate(model).schedule
    assert time.process_time() - began < 4
    assert (np.sort(schedule.start_us)[1:] > 0).any()
