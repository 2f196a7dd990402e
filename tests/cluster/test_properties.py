"""What holds for any jobs, read off schedules in plain Python: nothing here knows a rule's code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from clusters import trace_of
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import Job
from random_traces import VARIANTS, traces

from odonata.cluster.layout import PASS, key
from odonata.cluster.model import Cluster
from odonata.cluster.simulation import simulate
from odonata.jobs.schedule import FINISHED, KILLED, RUNNING, TO_COME, WAITING, Schedule
from pdes.driver import Result, run
from policies.scheduling import SCHEDULINGS, SchedulingPolicy, scheduling
from policies.scheduling.conservative import PLANS
from policies.scheduling.desk import FIRST, LAST
from topology import Dragonfly

MACHINE = Dragonfly(2, 4, 2, 9)
FOREVER = 10**18
Case = tuple[list[Job], int]
Variant = tuple[str, dict[str, Any]]

variants = st.sampled_from(VARIANTS)
overruns = st.sampled_from(["kill", "extend"])


def model_of(
    jobs: list[Job], nodes: int, variant: Variant, overrun: str = "kill", **more: Any
) -> Cluster:
    name, given_ = variant
    parameters = {k: v / 1e6 if k == "half_life" else v for k, v in given_.items()}
    return Cluster(trace_of(jobs), nodes, name, tuple(parameters.items()), overrun=overrun, **more)


def scheduled(jobs: list[Job], nodes: int, name: str, *words: str, **more: Any) -> Schedule:
    return simulate(model_of(jobs, nodes, (name, {}), *words, **more))[0]


class Moment(NamedTuple):
    """Who runs and who waits after the last pass of an instant, by position in the trace."""

    time: int
    running: list[tuple[int, int]]
    """Jobs, and since when each has run."""
    waiting: list[int]

    def free(self, jobs: list[Job], nodes: int) -> int:
        return nodes - sum(jobs[job].nodes for job, _ in self.running)


def moments(schedule: Schedule) -> Iterator[Moment]:
    """Yields every instant at which something happened, in order."""
    segments = list(zip(schedule.segment_job.tolist(), schedule.segment_from_us.tolist(),
                        schedule.segment_to_us.tolist(), strict=True))  # fmt: skip
    submits, ends = schedule.trace.submit_us.tolist(), schedule.end_us.tolist()
    times = {*submits, *ends, *(begin for _, begin, _ in segments)}
    for time in sorted(times):
        running = [(job, begin) for job, begin, to in segments if begin <= time < to]
        held = {job for job, _ in running}
        waiting = [job for job, submit in enumerate(submits)
                   if submit <= time < ends[job] and job not in held]  # fmt: skip
        yield Moment(time, running, waiting)


def first_room(free: int, ends: list[tuple[int, int]], needed: int) -> int:
    """Returns the end at which so many nodes are free, given who ends when and frees how many."""
    for end, freed in sorted(ends):
        free += freed
        if free >= needed:
            return end
    raise AssertionError("the machine is too small")


def reservation(moment: Moment, jobs: list[Job], nodes: int) -> int:
    """Returns when the first waiting job can start, if nobody else does and all that run end when
    they said they would."""
    ends = [(begin + (jobs[job].requested or FOREVER), jobs[job].nodes)
            for job, begin in moment.running]  # fmt: skip
    return first_room(moment.free(jobs, nodes), ends, jobs[moment.waiting[0]].nodes)


# -- backfilling


@pytest.mark.parametrize("discipline", ["easy", "easy-strict", "fcfs"])
@examples(10)
@given(traces(above=True, most_jobs=25))
def test_the_first_that_waits_never_starts_after_its_reservation(
    discipline: str, case: Case
) -> None:
    jobs, nodes = case
    schedule = scheduled(jobs, nodes, discipline)
    for moment in moments(schedule):
        if moment.waiting:
            assert schedule.start_us[moment.waiting[0]] <= reservation(moment, jobs, nodes)


SEEN: list[tuple[int, int, int]] = []
"""What the policy below saw: the time, the first waiting job and its reservation."""


class Observing(SchedulingPolicy):
    """EASY, which notes the reservation of the first waiting job after each of its answers."""

    def select(self, view: Any) -> Any:
        chosen = [*SCHEDULINGS.make("easy").select(view)]
        left = [job for job in view.queue if job.number not in chosen]
        if left:
            starting = [job for job in view.queue if job.number in chosen]
            ends = [(one.requested_end or FOREVER, one.request.nodes) for one in view.running]
            ends += [(view.time + (one.requested or FOREVER), one.nodes) for one in starting]
            free = view.free - sum(one.nodes for one in starting)
            when = first_room(free, ends, left[0].nodes)
            SEEN.append((view.time, left[0].number, when))
        return chosen


@pytest.fixture(scope="module")
def observing() -> Iterator[str]:
    scheduling("observing", about="a test's", source="nobody's")(Observing)
    yield "observing"
    del SCHEDULINGS["observing"]


@examples(10)
@given(case=traces(above=True, most_jobs=25), placed=st.booleans())
def test_easy_keeps_the_reservations_that_a_view_shows(
    observing: str, case: Case, placed: bool
) -> None:
    jobs, nodes = case
    SEEN.clear()
    schedule = scheduled(jobs, nodes, observing, machine=MACHINE if placed else None)
    for time, job, when in SEEN:
        assert time <= schedule.start_us[job] <= when
    assert (schedule.start_us == scheduled(jobs, nodes, "easy").start_us).all()


class Watched(Cluster):
    """A job model that notes the plans of conservative backfilling after each pass: the time, and
    the plans of those who waited before it, by job."""

    @property
    def seen(self) -> list[tuple[int, dict[int, int]]]:
        return self.__dict__.setdefault("_seen", [])  # type: ignore[no-any-return]

    def decide(self, state: Any, time: int, which: int, a: int, b: int) -> Any:
        waiting = state.queue[state.ctl[FIRST] : state.ctl[LAST]].tolist()
        made = super().decide(state, time, which, a, b)
        if which == key(PASS):
            self.seen.append((time, {job: int(state.whole[PLANS + job]) for job in waiting}))
        return made


def most_held(held: list[tuple[int, int, int]], begin: int, end: int) -> int:
    """Returns the most nodes that are held at any time of an interval; (from, to, nodes)."""
    points = [begin, *(start for start, _, _ in held if begin < start < end)]
    return max(sum(n for start, to, n in held if start <= at < to) for at in points)


@examples(10)
@given(traces(above=True, unknown=False, most_jobs=25))
def test_conservative_plans_each_job_as_early_as_can_be_and_never_delays_it(case: Case) -> None:
    """A plan is first made as early as the running jobs and the other plans allow, is only ever
    moved forward, and is kept. With jobs that end early this is all that is promised: a job that
    came later may keep an earlier one from moving as far forward as it could without it."""
    jobs, nodes = case
    model = Watched(trace_of(jobs), nodes, "conservative", machine=MACHINE)
    schedule = simulate(model)[0]
    starts, ends = schedule.start_us.tolist(), schedule.end_us.tolist()
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for time, plans in model.seen:
        # Those that started before this pass: a job that does so in it has a plan.
        held = [(time, starts[job] + (jobs[job].requested or 0), jobs[job].nodes)
                for job in range(len(jobs))
                if starts[job] <= time < ends[job] and job not in plans]  # fmt: skip
        new = [job for job in plans if job not in first]
        for job, begin in plans.items():
            assert begin >= time
            if job not in new:
                assert begin <= last[job]
                held.append((begin, begin + (jobs[job].requested or 0), jobs[job].nodes))
        for job in new:
            length, needed, begin = jobs[job].requested or 0, jobs[job].nodes, plans[job]
            candidates = sorted({time, *(to for _, to, _ in held)})
            assert begin == next(at for at in candidates
                                 if most_held(held, at, at + length) + needed <= nodes)  # fmt: skip
            held.append((begin, begin + length, needed))
            first[job] = begin
        assert not held or most_held(held, time, FOREVER) <= nodes
        last.update(plans)
    for job, start in enumerate(starts):
        assert start <= first[job]
        assert start == last[job]


@pytest.mark.parametrize("discipline", ["conservative", "fcfs"])
@examples(10)
@given(case=traces(unknown=False, most_jobs=25), data=st.data())
def test_nobody_is_delayed_by_who_comes_later_where_requests_are_exact(
    discipline: str, case: Case, data: st.DataObject
) -> None:
    jobs, nodes = case
    exact = [job._replace(run=max(1, job.run), requested=max(1, job.run)) for job in jobs]
    some = data.draw(st.integers(1, len(jobs)))
    whole, part = (scheduled(chosen, nodes, discipline) for chosen in (exact, exact[:some]))
    assert (whole.start_us[:some] == part.start_us).all()


@examples(10)
@given(case=traces(most_jobs=25), overrun=overruns, data=st.data())
def test_first_come_first_served_is_never_changed_by_who_comes_later(
    case: Case, overrun: str, data: st.DataObject
) -> None:
    jobs, nodes = case
    some = data.draw(st.integers(1, len(jobs)))
    whole, part = (scheduled(chosen, nodes, "fcfs", overrun) for chosen in (jobs, jobs[:some]))
    assert (whole.start_us[:some] == part.start_us).all()
    assert (whole.end_us[:some] == part.end_us).all()


# -- work


def check_work(schedule: Schedule, overrun: str) -> None:
    """No job is served twice at a time, none before it came, and each for as long as it takes."""
    trace = schedule.trace
    served = np.zeros(len(trace), np.int64)
    for job in range(len(trace)):
        mine = schedule.segment_job == job
        begin, to = schedule.segment_from_us[mine], schedule.segment_to_us[mine]
        assert (begin[1:] >= to[:-1]).all()
        assert (to[:-1] > begin[:-1]).all()
        assert to[-1] >= begin[-1] >= begin[0] >= trace.submit_us[job]
        assert (begin[0], to[-1]) == (schedule.start_us[job], schedule.end_us[job])
        served[job] = (to - begin).sum()
    limit = trace.run_us
    if overrun == "kill":
        limit = np.where(trace.requested_us < 0, limit, np.minimum(limit, trace.requested_us))
    assert (served == limit).all()
    assert (schedule.state == np.where(limit < trace.run_us, KILLED, FINISHED)).all()


@examples(10)
@given(
    case=traces(above=True, most_jobs=25),
    variant=st.sampled_from(
        [("lcfs-pr", {}), ("spf", {"printed": True}), ("lpf", {"printed": True})]
    ),
)
def test_preemption_loses_no_work(case: Case, variant: Variant) -> None:
    jobs, nodes = case
    schedule = simulate(model_of(jobs, nodes, variant))[0]
    check_work(schedule, "kill")
    assert (schedule.state == FINISHED).all()


@examples(12)
@given(case=traces(most_jobs=25), variant=variants, overrun=overruns)
def test_every_job_gets_what_it_needs_and_no_node_runs_two(
    case: Case, variant: Variant, overrun: str
) -> None:
    jobs, nodes = case
    schedule = simulate(model_of(jobs, nodes, variant, overrun))[0]
    check_work(schedule, overrun)
    for moment in moments(schedule):
        assert moment.free(jobs, nodes) >= 0
        if moment.waiting:
            assert moment.running, "jobs wait on an idle machine"


@examples(10)
@given(case=traces(most_jobs=25), variant=variants, overrun=overruns)
def test_no_label_is_held_twice(case: Case, variant: Variant, overrun: str) -> None:
    jobs, nodes = case
    schedule = simulate(model_of(jobs, nodes, variant, overrun, machine=MACHINE))[0]
    check_work(schedule, overrun)
    assert schedule.labels is not None
    held: dict[int, int] = {}
    parts = np.split(schedule.labels, schedule.first_label[1:])
    assert len(schedule.labels) == schedule.trace.nodes[schedule.segment_job].sum()
    for segment, labels in enumerate(parts):
        assert len(set(labels.tolist())) == len(labels) == jobs[schedule.segment_job[segment]].nodes
        for label in labels.tolist():
            assert 0 <= label < nodes
            assert held.get(label, 0) <= schedule.segment_from_us[segment]
            held[label] = int(schedule.segment_to_us[segment])


# -- accounts


@examples(12)
@given(case=traces(most_jobs=25), variant=variants, overrun=overruns, data=st.data())
def test_accounts_add_up_wherever_a_run_is_stopped(
    case: Case, variant: Variant, overrun: str, data: st.DataObject
) -> None:
    jobs, nodes = case
    model = model_of(jobs, nodes, variant, overrun)
    whole = simulate(model)[0]
    end = data.draw(st.integers(0, whole.reached_us + 1))
    part, result, _ = simulate(model, end)
    check_account(part, result, end)
    assert part.reached_us == end
    for name in ("start_us", "end_us"):
        there = getattr(whole, name)
        assert (getattr(part, name) == np.where(there < end, there, -1)).all()
    begun = whole.segment_from_us < end
    assert (part.segment_job == whole.segment_job[begun]).all()
    assert (part.segment_from_us == whole.segment_from_us[begun]).all()
    to = whole.segment_to_us[begun]
    assert (part.segment_to_us == np.where(to < end, to, -1)).all()


def check_account(part: Schedule, result: Result, end: int) -> None:
    counts = np.bincount(part.state, minlength=5)
    assert counts.sum() == len(part)
    assert (part.state == result.outcome["state"]).all()
    assert (part.start_us == result.outcome["start_us"]).all()
    assert (part.end_us == result.outcome["end_us"]).all()
    submit, over = part.trace.submit_us, part.end_us >= 0
    goes_on = np.zeros(len(part), bool)
    goes_on[part.segment_job[part.segment_to_us < 0]] = True
    assert ((part.state == TO_COME) == (submit >= end)).all()
    assert ((part.state == RUNNING) == goes_on).all()
    assert ((part.state == WAITING) == ((submit < end) & ~goes_on & ~over)).all()
    assert (part.done == over).all()
    assert (part.start_us[part.state == TO_COME] == -1).all()


@pytest.mark.parametrize("overrun", ["kill", "extend"])
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
@settings(max_examples=2)
@given(case=traces(most_jobs=25))
def test_every_discipline_brings_every_job_to_an_end(
    variant: Variant, overrun: str, case: Case
) -> None:
    jobs, nodes = case
    result = run(model_of(jobs, nodes, variant, overrun), None, show_compiling=False)
    assert np.isin(result.outcome["state"], (FINISHED, KILLED)).all()
    assert result.completed
    assert result.time == result.outcome["end_us"].max()


# -- work conservation


@pytest.mark.parametrize(
    "variant",
    [("first-fit", {}), ("wfp", {"backfill": "first-fit"}),
     ("fair-share", {"half_life": 64, "backfill": "first-fit"})],
    ids=str,
)  # fmt: skip
@examples(10)
@given(case=traces(most_jobs=25), overrun=overruns)
def test_first_fit_leaves_no_nodes_idle_that_a_waiting_job_could_use(
    variant: Variant, case: Case, overrun: str
) -> None:
    jobs, nodes = case
    for moment in moments(simulate(model_of(jobs, nodes, variant, overrun))[0]):
        free = moment.free(jobs, nodes)
        assert all(jobs[job].nodes > free for job in moment.waiting)


@pytest.mark.parametrize("discipline", ["fcfs", "easy", "easy-strict"])
@examples(10)
@given(case=traces(most_jobs=25), overrun=overruns)
def test_the_first_that_waits_does_so_because_it_does_not_fit(
    discipline: str, case: Case, overrun: str
) -> None:
    jobs, nodes = case
    for moment in moments(scheduled(jobs, nodes, discipline, overrun)):
        if moment.waiting:
            assert jobs[moment.waiting[0]].nodes > moment.free(jobs, nodes)
