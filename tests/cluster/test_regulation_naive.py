"""The naive simulator of demand response gives what one computes by hand, and loses neither jobs
nor joules, and so may judge the real one."""

from __future__ import annotations

import math
from typing import Any

import pytest
from regulation_naive import SECOND, Job, Setting, Type, hours, q_of, shares, simulate
from regulation_random import random_setting

IDLE_W = 50.0


def setting(
    nodes: int, types: list[Type], jobs: list[Job], targets: list[float], **others: Any
) -> Setting:
    """Returns a machine with idle nodes of 50 W whose target is new every second. The average is
    the mean of the least and the greatest target; the reserve what they differ by from it, or 1 W:
    without one there would be no target."""
    average, reserve = (max(targets) + min(targets)) / 2, (max(targets) - min(targets)) / 2
    reserve = others.pop("reserve", reserve or 1.0)
    weights = others.pop("weights", [])
    signal = [
        (i * SECOND, (w - average) / reserve if reserve else 0) for i, w in enumerate(targets)
    ]
    end = len(targets) * SECOND
    bids = [(average, reserve, weights)]
    policy = others.pop("policy", "tracking-only")
    return Setting(nodes, IDLE_W, types, jobs, policy, end, bids, signal, end, **others)


def test_a_capped_job_takes_exactly_as_much_longer() -> None:
    kind = Type("a", 100, 60, 2, 0.3)
    for run, end in ((10_000_000, 13_000_000), (10_000_001, 13_000_002)):
        # After 4 s at 100 W, 80 W: half the range, so that every second of work takes 1.5 s.
        case = setting(1, [kind], [Job(0, run, 1, 0)], [100.0] * 4 + [80.0] * 16)
        found = simulate(case)
        assert (found.start_us, found.end_us) == ([0], [end])
        assert found.power_w[:14] == pytest.approx([100] * 4 + [80] * 9 + [50], abs=1e-4)
        assert found.target_w == [100.0] * 4 + [80.0] * 16
        assert found.caps == [(4 * SECOND, 0.5), (14 * SECOND if end > 13 * SECOND else end, None)]
        assert found.energy_j[0] == pytest.approx(400 + 80 * (end - 4 * SECOND) / SECOND)
        assert q_of(case, found, 0) == pytest.approx(0.3, abs=1e-6)
    (hour,) = hours(case, found, [(0.1, 0.2, 0.3)], violation=5.0)
    assert hour.error == pytest.approx(7 * 30 / 10 / 20, abs=1e-4)  # idle: 50 W for 7 s
    assert hour.bad == 7 / 20
    kwh = 20 / 3600 / 1000
    assert hour.cost == pytest.approx((0.1 * 90 - 0.2 * 10 + 0.3 * 10 * 1.05) * kwh + 5, rel=1e-6)
    assert hour.saving == pytest.approx(1 - hour.cost / (0.1 * 90 * kwh))
    assert hour.late == [1.0]


def test_a_job_ends_between_control_instants_and_the_next_starts_at_one() -> None:
    kind = Type("a", 100, 60, 2, math.inf)
    jobs = [Job(0, 1_500_000, 1, 0), Job(200_001, SECOND, 1, 0)]
    case = setting(1, [kind], jobs, [100.0] * 4, reserve=0.0)
    found = simulate(case)
    assert (found.start_us, found.end_us) == ([0, 2 * SECOND], [1_500_000, 3 * SECOND])
    assert found.power_w == [100, 75, 100, 50]
    assert found.idle_j == 75
    (hour,) = hours(case, found)
    assert (hour.error, hour.bad, hour.late) == (None, None, [0.0])


def test_a_job_that_is_not_over_is_counted_as_if_it_ran_on() -> None:
    kind = Type("a", 100, 60, 2, 0.5)
    jobs = [Job(0, 4 * SECOND, 1, 0), Job(0, 4 * SECOND, 1, 0)]
    case = setting(1, [kind], jobs, [100.0, 60.0, 60.0])
    found = simulate(case)
    assert (found.start_us, found.end_us) == ([0, -1], [-1, -1])
    assert found.left_us == [2 * SECOND, 4 * SECOND]
    assert [q_of(case, found, i) for i in range(2)] == [1 / 4, 3 / 4]
    assert hours(case, found)[0].late == [0.5]


def test_a_job_is_suspended_and_goes_on() -> None:
    kind = Type("a", 100, 80, 1.5, math.inf)
    targets = [100.0] * 2 + [60.0] * 3 + [100.0] * 10
    found = simulate(setting(1, [kind], [Job(0, 10 * SECOND, 1, 0)], targets, preemption=True))
    assert (found.end_us, found.suspended_s) == ([13 * SECOND], [3])
    assert found.power_w == [100] * 2 + [50] * 3 + [100] * 8 + [50] * 2
    assert found.energy_j == [1150]
    assert found.caps == []
    found = simulate(setting(1, [kind], [Job(0, 10 * SECOND, 1, 0)], targets))
    assert (found.end_us, found.suspended_s) == ([11 * SECOND], [0])  # only capped


def test_the_least_urgent_is_suspended_and_the_others_are_capped_anew() -> None:
    kind = Type("a", 100, 80, 1.5, 1)
    jobs = [Job(0, 10 * SECOND, 1, 0), Job(SECOND, 10 * SECOND, 1, 0)]
    found = simulate(setting(2, [kind], jobs, [100.0, 200.0, 140.0, 140.0], preemption=True))
    assert (found.start_us, found.suspended_s) == ([SECOND, SECOND], [0, 2])
    assert found.power_w == [100, 200, 140, 140]
    assert found.caps == [(2 * SECOND, 0.5)]
    assert found.left_us == pytest.approx([(9 - 2 / 1.25) * SECOND, 9 * SECOND])


def test_standby_jobs_fill_what_is_left() -> None:
    kind = Type("standby", 100, 80, 1.5, math.inf)
    others = {"standby": 0, "standby_run_us": 2_500_000}
    found = simulate(setting(3, [kind], [], [210.0] * 6, **others))
    assert found.standby_w == [100, 100, 50, 100, 100, 50]
    assert (found.standby_started, found.standby_ended) == (2, 2)
    assert found.standby_j == 500

    # While a job waits there are none; that which runs is suspended first, and goes on last
    kinds = [kind, Type("own", 100, 80, 1.5, 1)]
    jobs = [Job(0, 10 * SECOND, 1, 1)]
    targets = [200.0, 150.0, 150.0, 200.0]
    found = simulate(setting(2, kinds, jobs, targets, preemption=True, **others))
    assert found.standby_w == [100, 50, 50, 100]
    assert (found.suspended_s, found.standby_started) == ([0], 1)


def test_quality_comes_first() -> None:
    kind = Type("a", 100, 60, 2, 1)
    jobs = [Job(0, 10 * SECOND, 1, 0)] * 2
    found = simulate(setting(2, [kind], jobs, [100.0] * 12, reserve=50.0, policy="energy-qare"))
    # At 1 s M = 0.1 > 0, then the error is 1, and later, under the least cap, 0.2; the mean goes up
    # by 0.075 a second from 0.225 at 3 s, and is above 0.2 / 0.3 at 9 s.
    assert found.start_us == [1 * SECOND, 9 * SECOND]
    assert found.power_w[:10] == [100, 150] + [110] * 7 + [200]
    assert found.caps == [(2 * SECOND, 0), (9 * SECOND, None), (10 * SECOND, 0)]
    found = simulate(setting(2, [kind], jobs, [100.0] * 12, reserve=50.0))
    assert found.start_us == [-1, -1]


def test_shares_are_filled_by_weight() -> None:
    assert shares(10.0, [0.5, 0.3, 0.2], [2, 20, 20]) == pytest.approx([2, 4.8, 3.2])
    assert shares(10.0, [0.5, 0.3, 0.2], [2, 0, 20]) == [2, 0, 8]
    assert shares(10.0, [0.0, 1.0], [3, 4]) == [0, 4]
    assert shares(10.0, [0.5, 0.5], [3, 4]) == [3, 4]


@pytest.mark.parametrize(
    ("target", "weights", "started"),
    [
        (400.0, [0.75, 0.25], (3, 1)),  # of the two that want one more, the first
        (400.0, [3.0, 0.0], (4, 0)),
        (400.0, [], (2, 2)),
        (375.0, [0.75, 0.25], (2, 1)),  # shares 2.625 and 0.875, and power for one part
        (325.0, [0.75, 0.25], (2, 0)),  # shares 1.875 and 0.625, and power for one part
        (150.0, [0.75, 0.25], (0, 0)),
    ],
)
def test_types_start_by_weight(
    target: float, weights: list[float], started: tuple[int, int]
) -> None:
    kinds = [Type("a", 100, 60, 2, 1), Type("b", 100, 60, 2, 1)]
    jobs = [Job(0, 5 * SECOND, 1, 1)] * 4 + [Job(0, 5 * SECOND, 1, 0)] * 4
    found = simulate(setting(4, kinds, jobs, [target], weights=weights, policy="qosg"))
    assert found.start_us[:4].count(0) == started[1]
    assert found.start_us[4:].count(0) == started[0]


def test_a_target_is_the_mean_of_what_it_was() -> None:
    case = setting(1, [], [], [50.0, 50.0, 50.0])
    bids = [(100.0, 10.0, []), (200.0, 40.0, [])]
    signal = [(0, 0.5), (250_000, -1.0), (SECOND, 1.0), (2_500_000, 0.0)]
    found = simulate(case._replace(hour_us=2 * SECOND, bids=bids, signal=signal))
    assert found.target_w == [0.25 * 105 + 0.75 * 90, 110, 220]


@pytest.mark.parametrize("seed", range(10))
def test_nothing_is_lost(seed: int) -> None:
    case = random_setting(seed)
    found = simulate(case)
    drawn = sum(found.power_w) * case.interval_us / SECOND
    assert sum(found.energy_j) + found.standby_j + found.idle_j == pytest.approx(drawn, rel=1e-9)
    assert sum(found.standby_w) * case.interval_us / SECOND == pytest.approx(found.standby_j)
    changes = []
    ended = going = waiting = 0
    rows = zip(case.jobs, found.start_us, found.end_us, found.suspended_s, strict=True)
    for number, (job, start, end, suspended) in enumerate(rows):
        if start < 0:
            waiting += 1
            assert end == -1
            assert found.left_us[number] == job.run_us
            continue
        assert start >= job.submit_us
        assert start % case.interval_us == 0
        last = case.end_us if end < 0 else end
        changes += [(start, 1, job.nodes), (last, 0, -job.nodes)]
        kind = case.types[job.kind]
        worked = last - start - suspended * SECOND
        done = job.run_us - found.left_us[number]
        slowest = kind.slowdown if kind.most_w > kind.least_w else 1.0
        assert done - 2 <= worked <= done * slowest + 2
        ended += end >= 0
        going += end < 0
        assert (found.left_us[number] <= 0.001) == (end >= 0)
    assert ended + going + waiting == len(case.jobs)
    held = 0
    for _, _, nodes in sorted(changes):
        held += nodes
        assert 0 <= held <= case.nodes
    for hour in hours(case, found):
        assert all(share is None or 0 <= share <= 1 for share in hour.late)


def test_random_settings_are_of_all_sorts() -> None:
    cases = [random_setting(seed) for seed in range(200)]
    assert {case.policy for case in cases} == {"tracking-only", "energy-qare", "qosg"}
    for what in (
        lambda case: case.preemption,
        lambda case: case.standby is not None,
        lambda case: not case.jobs,
        lambda case: len(case.jobs) == 300,
        lambda case: any(reserve == 0 for _, reserve, _ in case.bids),
        lambda case: any(a - r < case.nodes * case.idle_w for a, r, _ in case.bids),
        lambda case: any(kind.most_w <= kind.least_w for kind in case.types),
        lambda case: any(job.nodes == case.nodes for job in case.jobs),
        lambda case: any(since % SECOND for since, _ in case.signal),
    ):
        assert 0 < sum(map(what, cases)) < len(cases)
    for case in cases:
        assert case.end_us % case.interval_us == 0
        assert case.hour_us % case.interval_us == 0
        assert all(job.kind != case.standby for job in case.jobs)
        assert list(case.jobs) == sorted(case.jobs, key=lambda job: job.submit_us)
