"""The naive scheduler gives the schedules that one draws by hand, and so may judge the real one.

In the drawings a column is a tick and a row a node; a figure is the job that holds it.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from conftest import examples
from hypothesis import given
from naive import (
    FACTOR,
    Cluster,
    Job,
    Record,
    Task,
    kiefer_wolfowitz,
    simulate,
    usage_of,
)
from random_traces import VARIANTS, build, random_trace, traces


def starts(jobs: list[Job], nodes: int, discipline: str, *words: str, **parameters: Any) -> list:
    return [one.start for one in simulate(jobs, nodes, discipline, *words, **parameters)]


# Rows: ticks since the last submission, run, nodes, requested, user.


def test_fcfs_waits_for_the_first_and_first_fit_passes_it() -> None:
    #   fcfs  0 0 0 0 1 1 2    first-fit  0 0 0 0 1 1
    #         0 0 0 0 1 1 .               0 0 0 0 1 1
    #         . . . . 1 1 .               2 . . . 1 1
    jobs = build([(0, 4, 2, 4, 0), (0, 2, 3, 2, 0), (0, 1, 1, 1, 0)])
    assert starts(jobs, 3, "fcfs") == [0, 4, 6]
    assert starts(jobs, 3, "first-fit") == [0, 4, 0]
    assert kiefer_wolfowitz(jobs, 3) == [0, 4, 6]


@pytest.mark.parametrize(
    ("discipline", "expected"),
    [
        #                 0 0 3 4 4 4 4 4 4 4 4 4 2 2 2
        #                 0 0 1 1 1 1 1 . . . . . 2 2 2    (4 has two nodes, and so has 1)
        ("small-first", [0, 2, 12, 2, 3]),
        #                 0 0 2 2 2 1 1 1 1 1 3 . . .
        #                 0 0 2 2 2 4 4 4 4 4 4 4 4 4
        ("large-first", [0, 5, 2, 10, 5]),
        #                 0 0 3 2 2 2 1 1 1 1 1 . . . .
        #                 0 0 . 2 2 2 4 4 4 4 4 4 4 4 4
        ("shortest-first", [0, 6, 3, 2, 6]),
        #                 0 0 4 4 4 4 4 4 4 4 4 2 2 2 3
        #                 0 0 1 1 1 1 1 . . . . 2 2 2 .
        ("longest-first", [0, 2, 11, 14, 2]),
    ],
)
def test_strict_orders(discipline: str, expected: list[int]) -> None:
    jobs = build(
        [(0, 2, 4, 2, 0), (1, 5, 2, 5, 0), (0, 3, 4, 3, 0), (0, 1, 1, 1, 0), (0, 9, 2, 9, 0)]
    )
    assert starts(jobs, 4, discipline) == expected


@pytest.mark.parametrize(
    ("last", "by_easy", "by_strict"),
    [
        #  easy  0 0 0 0 1 1 3        strict  0 0 0 0 1 1 3    The head is 1: shadow 4, extra 1.
        #        0 0 0 0 1 1 .                0 0 0 0 1 1 4    2 uses the extra, so 3 may not;
        #        4 4 4 4 1 1 .                . . . . 1 1 .    4 is over at the shadow.
        #        2 2 2 2 2 2 2 2 2            . . . . 2 2 2
        (4, [0, 4, 0, 6, 0], [0, 4, 4, 6, 6]),
        #  As before, but that 4 is over a tick before the shadow.
        (3, [0, 4, 0, 6, 0], [0, 4, 4, 6, 0]),
    ],
)
def test_easy_spares_the_head(last: int, by_easy: list[int], by_strict: list[int]) -> None:
    jobs = build(
        [(0, 4, 2, 4, 0), (0, 2, 3, 2, 0), (0, 9, 1, 9, 0), (0, 5, 1, 5, 0),
         (0, last, 1, last, 0)]
    )  # fmt: skip
    assert starts(jobs, 4, "easy") == by_easy
    assert starts(jobs, 4, "easy-strict") == by_strict


def test_a_job_past_its_request_is_expected_to_end_at_the_next_tick() -> None:
    #  extend  0 0 0 0 0 0 1 3 3    kill  0 0 1 2 3 3    0 asks for 2 ticks. At 3 and at 4 it is
    #          0 0 0 0 0 0 1 . .          0 0 1 . . .    expected to end at 4 and at 5: 2 is over
    #          . . . 2 . . 1 . .          . . 1 . . .    by then, 3 is not.
    jobs = build([(0, 6, 2, 2, 0), (0, 1, 3, 1, 0), (3, 1, 1, 1, 0), (1, 2, 1, 2, 0)])
    assert starts(jobs, 3, "easy", "extend") == [0, 6, 3, 7]
    killed = simulate(jobs, 3, "easy", "kill")
    assert [one.start for one in killed] == [0, 2, 3, 4]
    assert [one.state for one in killed] == ["killed", "finished", "finished", "finished"]
    assert killed[0].end == 2


def test_conservative_spares_every_job() -> None:
    #  easy  0 0 0 0 1 1 . 2    conservative  0 0 0 0 1 1 2 3 3 3 3 3 3 3
    #        0 0 0 0 1 1 . 2                  0 0 0 0 1 1 2 . . . . . . .
    #        3 3 3 3 3 3 3 2                  . . . . . . 2 . . . . . . .
    jobs = build([(0, 4, 2, 4, 0), (0, 2, 2, 2, 0), (0, 1, 3, 1, 0), (0, 7, 1, 7, 0)])
    assert starts(jobs, 3, "easy") == [0, 4, 7, 0]
    assert starts(jobs, 3, "conservative") == [0, 4, 6, 7]


def test_conservative_moves_plans_forward_when_a_job_ends_early() -> None:
    #  0 0 1 1 2 3 3 3 3 3 3 3    0 asked for 4 ticks: at 0, plans are 4, 6 and 7 as above. At 2,
    #  0 0 1 1 2 . . . . . . .    1 moves to 2, then 2 to 4, then 3 to 5.
    #  . . . . 2 . . . . . . .
    jobs = build([(0, 2, 2, 4, 0), (0, 2, 2, 2, 0), (0, 1, 3, 1, 0), (0, 7, 1, 7, 0)])
    assert starts(jobs, 3, "conservative") == [0, 2, 4, 5]


def test_conservative_moves_plans_one_at_a_time_round_all_others() -> None:
    #  0 . . . . . . 2 2 2    Plans at 0: 2 at 10 (all nodes), 3 at 4 to 10 beside 0. At 1, 0 ends:
    #  0 . . . . . . 2 2 2    2 stays at 10, since 3 is still planned until then; 3 moves to 1.
    #  1 1 1 1 . . . 2 2 2    Only at 4, when 1 ends, is 2 moved, to 7, when 3 ends. Were all plans
    #  . 3 3 3 3 3 3 2 2 2    made anew at 1, 2 would be planned at 4 and 3 could not pass it.
    jobs = build([(0, 1, 3, 10, 0), (0, 4, 1, 4, 0), (0, 3, 4, 3, 0), (0, 6, 1, 6, 0)])
    assert starts(jobs, 4, "conservative") == [0, 0, 7, 1]


def test_conservative_plans_anew_when_a_job_overruns() -> None:
    #  0 0 0 0 0 1 1 2 2 2    0 asked for 2. At 0, plans are 2 and 4. At 3, when 3 comes, 1 should
    #  0 0 0 0 0 1 1 2 2 2    have begun: all is planned anew, with 0 until 4; 3 is over at 4 and
    #  . . . 3 . 1 1 . . .    starts. At 5, 1 begins as 0 ends.
    jobs = build([(0, 5, 2, 2, 0), (0, 2, 3, 2, 0), (0, 3, 2, 3, 0), (3, 1, 1, 1, 0)])
    assert starts(jobs, 3, "conservative", "extend") == [0, 5, 7, 3]
    assert starts(jobs, 3, "conservative", "kill") == [0, 2, 4, 4]


def test_wfp_prefers_who_waited_long_for_what_it_asks() -> None:
    #  0 0 0 0 0 0 0 0 0 0 2 2 1 1 1 ...    At 10: 1 has (9/9)^3 1 = 1, 2 has (4/2)^3 2 = 16.
    #  0 0 0 0 0 0 0 0 0 0 2 2 . . . ...
    jobs = build([(0, 10, 2, 10, 0), (1, 9, 1, 9, 0), (5, 2, 2, 2, 0)])
    assert starts(jobs, 2, "wfp") == [0, 12, 10]
    assert starts(jobs, 2, "fcfs") == [0, 10, 19]
    #  0 0 0 0 2 2 1 1 1 1    At 4: 1 has (4/4)^3 6 = 6 and 2 has (4/2)^3 1 = 8. (Squares would say
    #  ... five more rows     6 and 4.)
    jobs = build([(0, 4, 6, 4, 0), (0, 4, 6, 4, 0), (0, 2, 1, 2, 0)])
    assert starts(jobs, 6, "wfp") == [0, 6, 4]


@pytest.mark.parametrize(
    ("backfill", "start"), [("none", 10), ("first-fit", 2), ("easy", 2), ("easy-strict", 10)]
)
def test_wfp_backfills_as_it_is_told(backfill: str, start: int) -> None:
    #  0 0 0 0 0 0 0 0 0 0 1 1 1    1 came at 1 and is the head; 2 came at 2 and outlasts 0, but
    #  0 0 0 0 0 0 0 0 0 0 1 1 1    there is a node beside 1.
    #  . . 2 2 2 2 2 2 2 2 2 ...
    jobs = build([(0, 10, 2, 10, 0), (1, 3, 2, 3, 0), (1, 20, 1, 20, 0)])
    assert starts(jobs, 3, "wfp", backfill=backfill) == [0, 10, start]


@pytest.mark.parametrize(("half_life", "expected"), [(64, [40, 39]), (64_000, [39, 40])])
def test_fair_share_prefers_who_used_less_of_late(half_life: int, expected: list[int]) -> None:
    #  0 0 ... 0 1 1 ... 1 3 2    User 0 used 20 ticks from 0 on, user 1 used 19 from 20 on. With
    #                             a long memory user 1 (job 2) is next, with a short one user 0.
    jobs = build([(0, 20, 1, 20, 0), (0, 19, 1, 19, 1), (1, 1, 1, 1, 1), (0, 1, 1, 1, 0)])
    assert starts(jobs, 1, "fair-share", half_life=half_life) == [0, 20, *expected]


def test_usage_halves_in_a_half_life_and_counts_what_runs() -> None:
    cluster = Cluster(8, now=64, gone=[Task(Job(0, 0, 1, 8, 1, 0), 1, segments=[(0, 1)])])
    assert usage_of(0, cluster, step=1) == pytest.approx(4)
    assert usage_of(1, cluster, step=1) == 0
    cluster.present = [Task(Job(1, 0, 99, 3, 99, 1), 99, since=60)]
    assert usage_of(1, cluster, step=62) == 3 * 2 * FACTOR + 3 * 2
    assert usage_of(1, cluster, step=64) == 3 * 4 * FACTOR
    assert usage_of(1, cluster, step=65) == 3 * 4


def test_the_factor_is_the_double_nearest_to_the_64th_root_of_a_half() -> None:
    near = math.nextafter(FACTOR, 0), FACTOR, math.nextafter(FACTOR, 1)
    errors = [abs(Fraction(one) ** 64 - Fraction(1, 2)) for one in near]
    assert min(errors) == errors[1]


def test_lcfs_pr_serves_the_newest_and_keeps_work_done() -> None:
    #  0 0 1 1 . . 0 0 0    At 2, 1 comes and 0 no longer fits; with 2, at 3, there is no room.
    #  0 0 . 2 2 2 0 0 0
    jobs = build([(0, 5, 2, 9, 0), (2, 2, 1, 2, 0), (1, 3, 1, 3, 0)])
    assert simulate(jobs, 2, "lcfs-pr") == [
        Record(0, 9, "finished", [(0, 2), (6, 9)]),
        Record(2, 4, "finished", [(2, 4)]),
        Record(3, 6, "finished", [(3, 6)]),
    ]
    jobs[0] = jobs[0]._replace(requested=4)
    assert simulate(jobs, 2, "lcfs-pr")[0] == Record(0, 8, "killed", [(0, 2), (6, 8)])
    assert simulate(jobs, 2, "lcfs-pr", "extend")[0].end == 9


def test_spf_and_lpf_order_those_who_wait_by_request() -> None:
    #  spf  0 0 0 2 1 1 1 1 1    lpf  0 0 0 1 1 1 1 1 2
    jobs = build([(0, 3, 1, 3, 0), (1, 5, 1, 5, 0), (1, 1, 1, 1, 0)])
    assert starts(jobs, 1, "spf") == [0, 4, 3]
    assert starts(jobs, 1, "lpf") == [0, 3, 8]


def test_spf_starts_nobody_at_an_arrival_while_somebody_waits() -> None:
    #  0 0 0 0 1 1    2 comes at 2 and would fit, but 1 waits    0 0 0 0 2 2
    #  0 0 0 0 1 1    already. If the two come the other way     0 0 0 0 2 2
    #  . . . . 2 .    round, the small one starts at once:       . 1 . . . .
    jobs = build([(0, 4, 2, 4, 0), (1, 2, 2, 2, 0), (1, 1, 1, 1, 0)])
    assert starts(jobs, 3, "spf") == [0, 4, 4]
    assert starts(jobs, 3, "shortest-first") == [0, 4, 2]
    jobs = build([(0, 4, 2, 4, 0), (1, 1, 1, 1, 0), (1, 2, 2, 2, 0)])
    assert starts(jobs, 3, "spf") == [0, 1, 4]


def test_spf_as_printed_suspends_at_departures_only() -> None:
    #  0 0 2 2 2 0 0 0 0 0 0 0 0    2 comes at 1, but only at 2, when 1 ends, do 3 ticks go before
    #  1 1 2 2 2 . . . . . . . .    the 8 that are left of 0.
    jobs = build([(0, 10, 1, 10, 0), (0, 2, 1, 2, 0), (1, 3, 2, 3, 0)])
    got = simulate(jobs, 2, "spf", printed=True)
    assert [one.segments for one in got] == [[(0, 2), (5, 13)], [(0, 2)], [(2, 5)]]


def test_lpf_as_printed_suspends_at_departures_only() -> None:
    #  0 0 2 2 2 2 . . .    At 2, when 0 ends, 4 ticks go before the 3 that are left of 1.
    #  1 1 2 2 2 2 1 1 1
    jobs = build([(0, 2, 1, 2, 0), (0, 5, 1, 5, 0), (1, 4, 2, 4, 0)])
    got = simulate(jobs, 2, "lpf", printed=True)
    assert [one.segments for one in got] == [[(0, 2)], [(0, 2), (6, 9)], [(2, 6)]]


def test_at_an_instant_ends_come_first_and_an_empty_job_makes_another_round() -> None:
    #  1 1 1 3    0 ends at 0, and 1 starts at 0; 2 starts and ends at 3, when 3 also arrives.
    jobs = build([(0, 0, 1, 5, 0), (0, 3, 1, 3, 0), (0, 0, 1, 1, 0), (3, 1, 1, 1, 0)])
    got = simulate(jobs, 1, "fcfs")
    assert [one.segments for one in got] == [[(0, 0)], [(0, 3)], [(3, 3)], [(3, 4)]]
    assert {one.state for one in got} == {"finished"}


def test_an_unknown_request_is_expected_to_last_until_the_end_of_time() -> None:
    #  easy  0 0 0 0 1    strict  0 0 0 0 1 2    0 and 2 do not say how long they run: the head, 1,
    #        0 0 0 0 1            0 0 0 0 1 .    is expected to start at the end of time, which is
    #        . 2 . . 1            . . . . 1 .    no later if 2 starts; but 2 does not end before it.
    jobs = build([(0, 4, 2, None, 0), (0, 1, 3, 1, 0), (1, 1, 1, None, 0)])
    assert starts(jobs, 3, "easy") == [0, 4, 1]
    assert starts(jobs, 3, "conservative") == [0, 4, 1]
    assert starts(jobs, 3, "easy-strict") == [0, 4, 5]


def test_a_known_request_is_not_planned_across_an_unknown_one() -> None:
    #  0 0 1 1 . .    1 is planned at 2 for ever on all nodes: 2, which asks for 3 ticks, cannot go
    #  . . 1 1 2 2    before it, and follows when it ends; 3, which asks for 2, goes at 0.
    #  3 3 1 1 2 2
    jobs = build([(0, 2, 1, 2, 0), (0, 2, 3, None, 0), (0, 2, 2, 3, 0), (0, 2, 1, 2, 0)])
    assert starts(jobs, 3, "conservative") == [0, 2, 4, 0]


# What holds for any jobs.


@examples(15)
@given(traces())
def test_fcfs_is_the_recursion_of_kiefer_and_wolfowitz(trace: tuple[list[Job], int]) -> None:
    jobs, nodes = trace
    got = simulate(jobs, nodes, "fcfs", "extend")
    waits = [one.start - job.submit for job, one in zip(jobs, got, strict=True)]
    assert waits == kiefer_wolfowitz(jobs, nodes)


@examples(15)
@given(traces(above=True))
def test_nothing_is_killed_when_requests_are_above_the_runs(trace: tuple[list[Job], int]) -> None:
    jobs, nodes = trace
    got = simulate(jobs, nodes, "fcfs", "kill")
    waits = [one.start - job.submit for job, one in zip(jobs, got, strict=True)]
    assert waits == kiefer_wolfowitz(jobs, nodes)
    assert {one.state for one in got} == {"finished"}


@pytest.mark.parametrize(
    "seed", [*range(5), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(5, 15))]
)
def test_every_discipline_serves_every_job_and_no_node_twice(seed: int) -> None:
    jobs, nodes = random_trace(seed)
    for discipline, parameters in VARIANTS:
        for overrun in ("kill", "extend"):
            got = simulate(jobs, nodes, discipline, overrun, **parameters)
            use: dict[int, int] = {}
            for job, one in zip(jobs, got, strict=True):
                limit = job.requested if overrun == "kill" and job.requested else job.run
                assert one.state == ("killed" if job.run > limit else "finished")
                assert sum(to - begin for begin, to in one.segments) == min(job.run, limit)
                times = [time for segment in one.segments for time in segment]
                assert [job.submit, *times] == sorted([job.submit, *times])
                assert (one.start, one.end) == (times[0], times[-1])
                for begin, to in one.segments:
                    for tick in range(begin, to):
                        use[tick] = use.get(tick, 0) + job.nodes
            assert max(use.values(), default=0) <= nodes


@pytest.mark.parametrize("seeds", [
    pytest.param(range(5), id="some"),
    pytest.param(range(5, 15), id="more", marks=pytest.mark.long),
])  # fmt: skip
def test_on_jobs_as_wide_as_the_machine_nobody_can_be_passed(seeds: range) -> None:
    for seed in seeds:
        jobs, nodes = random_trace(seed)
        wide = [job._replace(nodes=nodes) for job in jobs]
        for overrun in ("kill", "extend"):
            expected = simulate(wide, nodes, "fcfs", overrun)
            for discipline in ("first-fit", "easy", "easy-strict"):
                assert simulate(wide, nodes, discipline, overrun) == expected
        known = [job._replace(requested=job.requested or 1) for job in wide]
        for overrun in ("kill", "extend"):
            expected = simulate(known, nodes, "fcfs", overrun)
            assert simulate(known, nodes, "conservative", overrun) == expected


def test_random_traces_tell_every_two_variants_apart() -> None:
    seen = [
        [simulate(*random_trace(seed), name, "extend", **parameters) for seed in range(100, 130)]
        for name, parameters in VARIANTS
    ]
    for at, one in enumerate(seen):
        for other, another in enumerate(seen[:at]):
            assert one != another, (VARIANTS[at], VARIANTS[other])


def test_random_traces_have_ties_kills_empty_and_unknown_jobs() -> None:
    jobs = [job for seed in range(50) for job in random_trace(seed)[0]]
    count = len(jobs)
    known = [job for job in jobs if job.requested is not None]
    assert sum(job.run > job.requested for job in known) > count / 10
    assert sum(job.run < job.requested for job in known) > count / 10
    assert sum(job.run == 0 for job in jobs) > count / 50
    assert 0 < count - len(known) < count / 5
    assert {job.user for job in jobs} == {0, 1, 2, 3}
    assert random_trace(7) == random_trace(7)
