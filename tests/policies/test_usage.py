"""The usage of users, against a twin with forty digits that goes through every step."""

from __future__ import annotations

import random
from decimal import Decimal, localcontext

import numpy as np
import pytest

from policies.scheduling import SCHEDULINGS
from policies.scheduling.compiled import Compiled
from policies.scheduling.desk import NODES, RUNNING, STEP, TIME, USER, Desk, new_desk
from policies.scheduling.usage import STEPS, note_held, settle, usage_of

USERS = 3


def desk_of(step: int, jobs: int = 8) -> Desk:
    policy = SCHEDULINGS.make("fair-share", {})
    assert isinstance(policy, Compiled)
    rule = policy.words("us")
    rule[STEP] = step
    return new_desk(jobs, 1000, 8, rule, np.zeros(2 * USERS + 1, np.int64), np.zeros(USERS))


def run_jobs(desk: Desk, now: int, running: list[tuple[int, int]]) -> None:
    """Have users be charged until now, and have these jobs (nodes, user) run from now on."""
    desk.ctl[TIME] = now
    settle(desk)
    for row, (nodes, user) in enumerate(running):
        desk.jobs[row, [NODES, USER]] = nodes, user
        desk.running[row] = row
    desk.ctl[RUNNING] = len(running)
    note_held(desk)


class Twin:
    """One multiplication at every border, however long it is ago."""

    def __init__(self, step: int) -> None:
        self.step, self.time = step, 0
        self.held, self.usage = [0] * USERS, [Decimal(0)] * USERS
        self.kept = Decimal(2) ** (Decimal(-1) / STEPS)

    def until(self, now: int) -> None:
        while self.time < now:
            border = (self.time // self.step + 1) * self.step
            to = min(now, border)
            for user, nodes in enumerate(self.held):
                self.usage[user] += nodes * (to - self.time)
                if to == border:
                    self.usage[user] *= self.kept
            self.time = to


@pytest.mark.parametrize("seed", range(40))
def test_usages_are_those_of_a_twin_that_goes_through_every_step(seed: int) -> None:
    """With gaps from less than a step to forty half-lives, from and to anywhere within a step."""
    rng = random.Random(seed)
    step = rng.choice((1, 3, 1000, 147_656_250))
    with localcontext() as context:
        context.prec = 40
        desk, twin, now = desk_of(step), Twin(step), 0
        for _ in range(12):
            gap = rng.choice((step // 2, step, 7 * step, STEPS * step, 2 * STEPS * step + 1,
                              rng.randint(1, 40 * STEPS * step)))  # fmt: skip
            now += gap
            if rng.random() < 0.3:
                now -= now % step
            now = max(now, twin.time)
            running = [(rng.randint(1, 50), rng.randrange(USERS))
                       for _ in range(rng.randint(0, 5))]  # fmt: skip
            twin.until(now)
            run_jobs(desk, now, running)
            for user in range(USERS):
                found, wanted = float(usage_of(desk, user)), float(twin.usage[user])
                assert found == pytest.approx(wanted, rel=1e-12, abs=1e-12), (now, user)
                twin.held[user] = sum(nodes for nodes, of in running if of == user)


def test_what_is_used_does_not_depend_on_how_often_it_is_looked_at_within_a_half_life() -> None:
    rng = random.Random(1)
    seldom, often = desk_of(10), desk_of(10)
    now = 0
    for _ in range(50):
        gap = rng.randint(1, STEPS * 10 - 11)  # less than a half-life also from the next border on
        running = [(rng.randint(1, 50), rng.randrange(USERS)) for _ in range(5)]
        for part in sorted(rng.randint(0, gap) for _ in range(5)):
            often.ctl[TIME] = now + part
            settle(often)
        now += gap
        for desk in (seldom, often):
            run_jobs(desk, now, running)
        assert [*seldom.real] == [*often.real]


def test_after_ages_only_what_is_held_counts() -> None:
    desk = desk_of(1000)
    run_jobs(desk, 10**6, [(5, 0), (7, 1)])
    run_jobs(desk, 10**17, [(7, 1)])
    assert usage_of(desk, 0) == pytest.approx(5 * 1000 / (2 ** (1 / STEPS) - 1), rel=1e-12)
    run_jobs(desk, 2 * 10**17, [])
    assert usage_of(desk, 0) == 0.0
    assert usage_of(desk, 1) == pytest.approx(7 * 1000 / (2 ** (1 / STEPS) - 1), rel=1e-12)


@pytest.mark.parametrize("half_life_s", [1e-9, 604_800.0, 1e8, 1e9])
def test_any_half_life_is_counted_in_picoseconds_too(half_life_s: float) -> None:
    """A half-life of more than 106 days is more picoseconds than a word can hold."""
    policy = SCHEDULINGS.make("fair-share", {"half_life": half_life_s})
    assert isinstance(policy, Compiled)
    desk = desk_of(int(policy.words("ps")[STEP]))
    run_jobs(desk, 0, [(5, 0)])
    run_jobs(desk, 10**12, [(7, 1)])
    assert 0 < usage_of(desk, 0) <= 5 * 10**12
    if half_life_s > 100:
        assert usage_of(desk, 0) == 5 * 10**12
