"""What holds for every schedule of RMAP, read off schedules: nothing here knows how a pass goes.
What a job is entitled to, and which configuration it waits for, is taken from the twin."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest
from conftest import examples
from hypothesis import assume, given
from hypothesis import strategies as st
from rmap_twin import NEVER, Job, Machine, Record, Rules, Shares, Way
from test_rmap_twin import Case, Kind, cases, model_of, real, records, tables_of, worked_example

from odonata.cluster.simulation import simulate

BUSY = Kind(idlers=False)
"""Every job has something to do, so that there is one pass per instant."""
ROUGH = Kind(idlers=False, rough=True)
CLOSE_W = 1e-5
"""By how much powers that are rounded to microwatts, one per job, may be off in sum."""
any_case = st.one_of(cases(BUSY), cases(ROUGH))


class Served(NamedTuple):
    """A job that ran: what became of it, in which configuration, and how long it might have run."""

    job: Job
    record: Record
    way: Way
    limit: int

    def runs_at(self, time: int) -> bool:
        return self.record.start <= time < self.record.end

    @property
    def latest_end(self) -> int:
        return NEVER if self.limit == NEVER else self.record.start + self.limit


class Schedule:
    """A case, what the real simulator made of it, and what its jobs are entitled to."""

    def __init__(self, case: Case, found: list[Record] | None = None) -> None:
        self.case, self.shares = case, Shares(case.machine, case.rules._replace(grace=0.0))
        self.records = real(case) if found is None else found
        self.served = [self._served(job, record)
                       for job, record in zip(case.jobs, self.records, strict=True)
                       if record.state != "waiting"]  # fmt: skip

    def _served(self, job: Job, record: Record) -> Served:
        (way,) = (way for way in self.shares.ways(job)
                  if way.name == record.way or not self.case.machine.moldable(job))  # fmt: skip
        return Served(job, record, way, self.shares.limit(job, way))

    def instants(self) -> list[int]:
        """Returns when anything happened."""
        changes = {time for one in self.served for time in (one.record.start, one.record.end)}
        return sorted(changes | {job.submit for job in self.case.jobs})

    def running(self, time: int) -> list[Served]:
        """Returns who runs from this instant on, in order of their numbers."""
        return [one for one in self.served if one.runs_at(time)]

    def left(self, running: list[Served]) -> tuple[int, float]:
        """Returns the nodes and the watts that these leave to others."""
        taken = 0.0
        for one in running:
            taken += self.shares.power(one.way)
        nodes = self.case.machine.nodes - sum(one.way.nodes for one in running)
        return nodes, self.shares.cluster_w - taken


# -- what is used


@given(any_case)
@examples(30)
def test_no_plan_exceeds_the_nodes_or_the_bound_at_any_instant(case: Case) -> None:
    schedule = Schedule(case)
    for time in schedule.instants():
        running = schedule.running(time)
        nodes, watts = schedule.left(running)
        assert not running or (nodes >= 0 and watts >= -CLOSE_W)


@given(any_case)
@examples(20)
def test_a_job_takes_the_energy_of_its_configuration_and_the_machine_keeps_its_cap(
    case: Case,
) -> None:
    found = simulate(model_of(case, interval_ps=5 * 10**6), 1000)
    schedule, power, idle_w = (
        Schedule(case, records(found.schedule)),
        found.power,
        case.machine.idle_w,
    )
    assert power is not None
    measured = tables_of(case.machine)
    for one in schedule.served:
        watts = one.way.watts
        name = one.job.application
        if name in measured and one.record.way is None:  # what its nodes draw on the fewest
            watts = one.job.nodes * float(measured[name].packed_node_w(np.array([1]))[0])
        took = watts * (one.record.end - one.record.start) / 1e6
        assert power.energy_j[one.job.number] == pytest.approx(took, rel=1e-9)
    held = sum(one.way.nodes * (one.record.end - one.record.start) for one in schedule.served)
    idle = idle_w * (case.machine.nodes * power.until - held) / 1e6
    assert power.idle_j == pytest.approx(idle, rel=1e-9)
    assert (power.power_w <= case.machine.bound_w + CLOSE_W).all()


@given(any_case)
@examples(30)
def test_every_job_that_can_start_runs_once_for_its_time(case: Case) -> None:
    schedule = Schedule(case)
    for one in schedule.served:
        needs = one.way.time if case.machine.moldable(one.job) else one.job.run
        assert one.job.submit <= one.record.start
        assert one.record.end == one.record.start + min(needs, one.limit)
        assert (one.record.state == "killed") == (one.limit < needs)
    for job, record in zip(case.jobs, schedule.records, strict=True):
        never = schedule.shares.wanted(job) is None
        if case.rules.backfill == "none":  # whom nobody overtakes has all behind him wait
            never |= any(schedule.shares.wanted(other) is None for other in case.jobs[: job.number])
        assert (record.state == "waiting") == never


# -- what is chosen


@given(any_case)
@examples(25)
def test_a_job_runs_as_it_wants_to_unless_the_policy_is_adaptive(case: Case) -> None:
    schedule = Schedule(case)
    for one in schedule.served:
        wanted = schedule.shares.wanted(one.job)
        assert wanted is not None
        if case.rules.policy != "adaptive":
            assert one.way == wanted
        elif one.way != wanted:
            fewer = one.way.nodes < wanted.nodes  # than are free, which may draw more and be slow
            assert fewer or one.way.watts <= wanted.watts or one.way.time <= wanted.time


@given(cases(BUSY))
@examples(30)
def test_without_its_fair_share_no_job_starts_that_takes_longer_than_it_tolerates(
    case: Case,
) -> None:
    case = case._replace(rules=case.rules._replace(policy="adaptive", strict=False))
    schedule = Schedule(case)
    for one in schedule.served:
        before = [other for other in schedule.running(one.record.start)
                  if (other.record.start, other.job.number) < (one.record.start, one.job.number)
                  ]  # fmt: skip
        _, watts = schedule.left(before)
        share, asked = schedule.shares.fair(one.job), one.job.requested
        if asked is not None and (watts < share or one.way != schedule.shares.wanted(one.job)):
            assert one.way.time <= (1.0 + case.rules.threshold) * asked


# -- who waits for whom


@given(any_case)
@examples(40)
def test_the_first_that_waits_never_starts_after_its_reservation(case: Case) -> None:
    assume(case.rules.backfill != "first-fit")
    schedule = Schedule(case)
    starts = [math.inf if it.state == "waiting" else it.start for it in schedule.records]
    for time in schedule.instants():
        waiting = [job for job in case.jobs if job.submit <= time < starts[job.number]]
        if waiting:
            head = waiting[0]
            others = [one for one in schedule.running(time)
                      if one.record.start < time or one.job.number < head.number]  # fmt: skip
            assert starts[head.number] <= reservation(schedule, head, others)


def reservation(schedule: Schedule, head: Job, running: list[Served]) -> float:
    """Returns when a job can start as it wants to, if nobody else starts before."""
    wanted = schedule.shares.wanted(head)
    for time in sorted({one.latest_end for one in running} - {NEVER}) if wanted else ():
        nodes, watts = schedule.left([one for one in running if one.latest_end > time])
        if nodes >= wanted.nodes and watts >= schedule.shares.needs(head, wanted):
            return time
    return math.inf


def test_a_job_runs_slower_where_it_would_break_a_reservation_otherwise() -> None:
    """From 11 on, the first that waits leaves 2 nodes and 2 W to a job that would like 4 W."""
    known = {"runs": [Way(4, 16, 115.0, 10, 4.0)], "waits": [Way(6, 16, 115.0, 5, 6.0)],
             "late": [Way(2, 16, 115.0, 20, 4.0), Way(2, 16, 65.0, 30, 2.0)]}  # fmt: skip
    jobs = [Job(0, 1, 4, 10, "runs"), Job(1, 1, 6, 5, "waits"), Job(2, 1, 8, 30, "late")]
    found = real(Case(jobs, Machine(8, 8.0, 0.0, 6.0, known, known), Rules("adaptive")))
    assert [(it.start, it.way) for it in found[1:]] == [(11, (6, 16, 115.0)), (1, (2, 16, 65.0))]


@pytest.mark.parametrize(("policy", "strict"), [("naive", True), ("adaptive", False)])
def test_a_reservation_of_all_the_power_there_is_survives_rounding(
    policy: str, strict: bool
) -> None:
    """Of 11.9 W less the sum of 1.1 and 2.7, adding both again makes a little less than 11.9."""
    assert 11.9 - (1.1 + 2.7) + 1.1 + 2.7 < 11.9
    known = {"a": [Way(1, 16, 115.0, 5, 1.1)], "b": [Way(1, 16, 115.0, 5, 2.7)],
             "all": [Way(3, 16, 115.0, 5, 1.0)], "late": [Way(1, 16, 115.0, 50, 1.0)]}  # fmt: skip
    jobs = [Job(0, 1, 1, 5, "a"), Job(1, 1, 1, 5, "b"), Job(2, 2, 4, 1, "all"),
            Job(3, 2, 1, 50, "late")]  # fmt: skip
    machine = Machine(4, 11.9, 0.0, 20.0, known, known)
    assert real(Case(jobs, machine, Rules(policy, strict=strict)))[2].start == 6


@given(any_case)
@examples(20)
def test_without_backfilling_nobody_overtakes(case: Case) -> None:
    schedule = Schedule(case._replace(rules=case.rules._replace(backfill="none")))
    starts = [one.record.start for one in schedule.served]
    assert starts == sorted(starts)
    assert [one.job.number for one in schedule.served] == [*range(len(starts))]


# -- what is printed


@pytest.mark.parametrize(
    ("policy", "waits_s", "way", "watts"),
    [
        ("traditional", 1000.0, (6, 16, 115.0), 796.4),
        ("naive", 1000.0, (8, 12, 65.0), 783.8),
        ("adaptive", 0.0, (8, 10, 80.0), 738.2),
    ],
)
def test_of_the_worked_example_only_c3_starts_at_once(
    policy: str, waits_s: float, way: tuple[int, int, float], watts: float
) -> None:
    found = simulate(model_of(worked_example(policy)))
    first, second = records(found.schedule)
    assert (first.start, first.end, first.nodes) == (0, 10**9, 5)
    assert (second.start / 1e6, second.way, second.nodes) == (waits_s, way, way[0])
    assert found.power is not None
    took_s = (second.end - second.start) / 1e6
    assert found.power.energy_j[1] == pytest.approx(watts * took_s, rel=1e-9)
