"""The job model at its limits: crowds at one instant, empty jobs, centuries, and restarts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from clusters import trace_of
from naive import Job, simulate
from random_traces import VARIANTS, random_trace

from odonata.cluster import state as state_module
from odonata.cluster.layout import NOTES_KEPT
from odonata.cluster.model import Cluster
from odonata.cluster.simulation import LogsInMemory
from odonata.cluster.simulation import simulate as scheduled
from odonata.jobs.schedule import FINISHED, Schedule
from odonata.traces.trace import Trace
from pdes.driver import Result, run
from pdes.errors import Refused
from pdes.stream import Recording
from policies.scheduling import SCHEDULINGS, SchedulingPolicy, scheduling
from policies.scheduling.desk import Desk, new_desk
from topology import Dragonfly

MACHINE = Dragonfly(2, 4, 2, 9)
YEAR_US = 365 * 86_400 * 10**6
SEED = 7
"""The seed of a trace in which jobs wait, overrun, and are suspended where a discipline does so."""
Variant = tuple[str, dict[str, Any]]


def many(
    count: int, run_us: Any, nodes: Any = 1, submit: Any = 0, requested: Any = 10, user: Any = 0
) -> Trace:
    """Returns so many jobs; what is given as one number all of them have."""
    given = (submit, run_us, nodes, requested, user)
    columns = [np.broadcast_to(np.asarray(one, np.int64), (count,)) for one in given]
    none = np.zeros(count, np.int64)
    users = tuple(f"user {n}" for n in range(int(columns[4].max()) + 1))
    return Trace("many", np.arange(count), *columns, none, none, none - 1, users=users)


def longer(*values: Any) -> list[Any]:
    """Returns parameters that only `make test-long` tries."""
    return [pytest.param(value, marks=pytest.mark.long) for value in values]


def model_of(trace: Trace, nodes: int, variant: Variant, **more: Any) -> Cluster:
    name, given = variant
    parameters = {k: v / 1e6 if k == "half_life" else v for k, v in given.items()}
    return Cluster(trace, nodes, name, tuple(parameters.items()), **more)


def check_all_done(schedule: Schedule) -> None:
    trace = schedule.trace
    assert (schedule.state == FINISHED).all()
    assert (np.bincount(schedule.segment_job, minlength=len(trace)) == 1).all()
    assert (schedule.end_us - schedule.start_us == trace.run_us).all()


class Plain(SchedulingPolicy):
    """First come, first served, asked in Python."""

    def select(self, view: Any) -> Any:
        return SCHEDULINGS.make("fcfs").select(view)


@pytest.fixture(scope="module")
def in_python() -> Iterator[str]:
    scheduling("plain", about="a test's", source="nobody's")(Plain)
    yield "plain"
    del SCHEDULINGS["plain"]


# -- crowds

CROWD = 20_000
assert CROWD > NOTES_KEPT


@pytest.mark.parametrize(
    ("variant", "run_us"),
    [*((variant, 0) for variant in VARIANTS),
     *(((name, {}), 5) for name in ("fcfs", "easy", "conservative", "lcfs-pr"))],
    ids=str,
)  # fmt: skip
def test_more_jobs_than_notes_are_kept_start_at_one_instant(variant: Variant, run_us: int) -> None:
    schedule, *_ = scheduled(model_of(many(CROWD, run_us, submit=7), CROWD, variant))
    check_all_done(schedule)
    assert (schedule.start_us == 7).all()
    assert schedule.reached_us == 7 + run_us + 1


@pytest.mark.parametrize("run_us", [0, 5])
def test_a_discipline_in_python_starts_as_many_at_one_instant(in_python: str, run_us: int) -> None:
    schedule, *_ = scheduled(model_of(many(CROWD, run_us), CROWD, (in_python, {})))
    check_all_done(schedule)
    assert (schedule.start_us == 0).all()
    assert sorted(schedule.segment_job.tolist()) == [*range(CROWD)]


@pytest.mark.parametrize("discipline", ["fcfs", "first-fit", "easy", "fair-share", "lcfs-pr"])
def test_empty_jobs_take_their_turns_at_one_instant_on_one_node(discipline: str) -> None:
    count = 2_000
    schedule, *_ = scheduled(model_of(many(count, 0), 1, (discipline, {})))
    check_all_done(schedule)
    assert (schedule.end_us == 0).all()
    order = [*range(count)]
    assert schedule.segment_job.tolist() == (order[::-1] if discipline == "lcfs-pr" else order)


def test_placed_jobs_take_their_turns_at_one_instant() -> None:
    schedule, *_ = scheduled(model_of(many(1_000, 0, 9), 72, ("fcfs", {}), machine=MACHINE))
    check_all_done(schedule)
    assert schedule.labels is not None
    assert len(schedule.labels) == 9_000


@pytest.mark.parametrize("discipline", [
    "first-fit", "easy", "fair-share",
    *longer("fcfs", "easy-strict", "small-first", "wfp", "spf"),
])  # fmt: skip
def test_forty_thousand_wait_and_are_then_released(discipline: str) -> None:
    count, nodes = 40_001, 10_000
    sizes, runs = np.ones(count, int), np.full(count, 5)
    sizes[0], runs[0] = nodes, 100
    trace = many(count, runs, sizes, np.minimum(np.arange(count), 90), np.maximum(runs, 10))
    schedule, *_ = scheduled(model_of(trace, nodes, (discipline, {})))
    check_all_done(schedule)
    starts, counts = np.unique(schedule.start_us[1:], return_counts=True)
    assert starts.tolist() == [100, 105, 110, 115]
    assert counts.tolist() == [nodes] * 4


def test_jobs_that_are_due_in_reverse_order_end_in_order() -> None:
    count = 5_000
    runs = np.arange(count, 0, -1)
    schedule, *_ = scheduled(model_of(many(count, runs, requested=runs), count, ("easy", {})))
    check_all_done(schedule)
    assert (schedule.start_us == 0).all()


@pytest.mark.parametrize("seeds", [range(4), *longer(range(4, 12))], ids=str)
def test_conservative_keeps_its_profile_within_the_room_for_it(
    monkeypatch: pytest.MonkeyPatch, seeds: range
) -> None:
    """Many jobs that wait, and end early, so that plans begin where nothing ends any more."""
    guard, made = -77, []

    def with_guards(*words: Any, **more: Any) -> Desk:
        desk = new_desk(*words, **more)
        guarded = {}
        for name in ("times", "room", "heads", "blocks"):
            there = getattr(desk, name)
            one = np.full((5 * len(there), *there.shape[1:]), guard)
            one[: len(there)] = there
            made.append(one[len(there) :])
            guarded[name] = one[: len(there)]
        return desk._replace(**guarded)

    monkeypatch.setattr(state_module, "new_desk", with_guards)
    for seed in seeds:
        rng = np.random.default_rng(seed)
        requests = rng.integers(1, 10**6, 400)
        runs = (requests * rng.random(400)).astype(int)
        sizes = 1 + (rng.random(400) < 0.1 + 0.4 * (seed % 2))
        trace = many(400, runs, sizes, 0, requests)
        run(model_of(trace, 2, ("conservative", {})), None, show_compiling=False)
        assert made
        assert all((behind == guard).all() for behind in made), seed
        made.clear()


# -- the smallest


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_one_job_on_one_node_and_one_as_large_as_the_machine(variant: Variant) -> None:
    for nodes, run_us in ((1, 0), (1, 3), (5000, 3)):
        trace = many(1, run_us, nodes, 4)
        for machine in (None, MACHINE) if nodes == 1 else (None,):
            schedule, result, _ = scheduled(model_of(trace, nodes, variant, machine=machine))
            assert (schedule.start_us, schedule.end_us) == (4, 4 + run_us)
            assert result.time == 4 + run_us


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_jobs_as_large_as_the_machine_run_one_by_one(variant: Variant) -> None:
    schedule, *_ = scheduled(model_of(many(20, 3, 8, requested=3), 8, variant))
    check_all_done(schedule)
    assert sorted(schedule.start_us.tolist()) == [*range(0, 60, 3)]


def test_a_job_larger_than_the_machine_is_refused() -> None:
    with pytest.raises(Refused, match="a job needs 9 nodes"):
        model_of(many(3, 1, [1, 9, 1]), 8, ("fcfs", {}))


# -- times


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_the_year_900_is_like_any_other(variant: Variant) -> None:
    """Also with a usage that decays by the microsecond: 900 years of it are settled at once."""
    jobs, nodes = random_trace(11)
    late = [job._replace(submit=job.submit + 900 * YEAR_US) for job in jobs]
    early, much_later = (
        scheduled(model_of(trace_of(chosen), nodes, variant))[0] for chosen in (jobs, late)
    )
    assert (much_later.start_us - early.start_us == 900 * YEAR_US).all()
    assert (much_later.end_us - early.end_us == 900 * YEAR_US).all()


def test_jobs_may_run_for_centuries() -> None:
    runs = np.array([300, 200, 100]) * YEAR_US
    trace = many(3, runs, [2, 2, 1], 0, runs)
    for discipline in ("fcfs", "easy", "conservative", "fair-share", "wfp"):
        schedule, *_ = scheduled(model_of(trace, 3, (discipline, {})))
        third = 300 if discipline == "fcfs" else 0
        assert (schedule.start_us // YEAR_US).tolist() == [0, 300, third], discipline


def test_times_beyond_the_last_are_refused_also_where_their_sum_overflows() -> None:
    for count in (2, 4):
        with pytest.raises(Refused, match="would take longer"):
            model_of(many(count, 2**62, requested=2**62), 1, ("fcfs", {}))


# -- fair-share


@pytest.mark.parametrize("half_life_s", [1e-9, 1.0, 1e9])
def test_fair_share_takes_any_half_life_and_thousands_of_users(half_life_s: float) -> None:
    count, users = 3_000, 1_500
    trace = many(count, 5, user=np.arange(count) % users)
    model = Cluster(trace, 100, "fair-share", (("half_life", half_life_s),))
    schedule, *_ = scheduled(model)
    check_all_done(schedule)
    assert schedule.end_us.max() == 5 * count // 100
    # Everybody's first job goes before anybody's second: who has used nothing comes first.
    assert schedule.start_us[:users].max() <= schedule.start_us[users:].min()


def test_half_lives_that_are_out_of_range_are_refused() -> None:
    for half_life_s in (0.0, -1.0, 1e10, float("nan")):
        with pytest.raises(Refused, match="half_life"):
            Cluster(many(1, 1), 1, "fair-share", (("half_life", half_life_s),))


# -- restarts


class Kept:
    """The rows of logs, with the times of all."""

    def __init__(self) -> None:
        self.gathered, self.placed = LogsInMemory(), []

    def take(self, time: int, agent: int, rows: Any) -> None:
        self.gathered.take(time, agent, rows)
        self.placed += [(time, int(values[0]), values[1].tolist())
                        for name, values in rows if name == "placements"]  # fmt: skip

    def rows(self) -> dict[str, list[tuple[Any, ...]]]:
        columns = {"starts": 1, "ends": 2}
        found = {name: [tuple(row) for row in zip(*(column.tolist() for column in
                        self.gathered._columns(name, n)), strict=True)]
                 for name, n in columns.items()}  # fmt: skip
        return found | {"placements": self.placed}


def until(rows: dict[str, list[tuple[Any, ...]]], cut: int) -> dict[str, list[tuple[Any, ...]]]:
    return {name: [row for row in these if row[0] < cut] for name, these in rows.items()}


def check_restart(model: Cluster, path: Path) -> None:
    whole, first, second = Kept(), Kept(), Kept()
    through = run(model, None, log=whole.take, show_compiling=False)
    middle = max(2, through.time // 2)
    run(model, middle + 1, checkpoint_dir=path, checkpoint_every=middle, log=first.take,
        show_compiling=False)  # fmt: skip
    rest = run(model, None, resume=path, log=second.take, show_compiling=False)
    assert rest.resumed == middle
    same(through, rest)
    assert first.rows() == until(whole.rows(), middle + 1)
    before, after = until(first.rows(), middle), second.rows()
    assert {name: before[name] + after[name] for name in before} == whole.rows()


def same(one: Result, other: Result) -> None:
    assert (one.digest, one.time, one.events) == (other.digest, other.time, other.events)
    for name, values in one.outcome.items():
        assert (other.outcome[name] == values).all(), name


@pytest.mark.parametrize(("overrun", "placed", "variant"), [
    *(("kill", True, variant) for variant in VARIANTS),
    *(("extend", False, (name, {})) for name in ("easy", "conservative", "lcfs-pr")),
    *(pytest.param(overrun, False, variant, marks=pytest.mark.long)
      for overrun in ("kill", "extend") for variant in VARIANTS),
], ids=str)  # fmt: skip
def test_a_run_that_goes_on_from_a_checkpoint_is_as_if_nothing_had_happened(
    overrun: str, placed: bool, variant: Variant, tmp_path: Path
) -> None:
    jobs, nodes = random_trace(SEED)
    machine = MACHINE if placed else None
    model = model_of(trace_of(jobs), nodes, variant, overrun=overrun, machine=machine)
    check_restart(model, tmp_path)


def test_a_discipline_in_python_goes_on_from_a_checkpoint(in_python: str, tmp_path: Path) -> None:
    jobs, nodes = random_trace(SEED)
    check_restart(model_of(trace_of(jobs), nodes, (in_python, {})), tmp_path)


def read(path: Path) -> dict[str, list[Any]]:
    """Returns all columns of what was recorded but the engine's, which has wall-clock times."""
    found: dict[str, list[Any]] = {}

    def visit(name: str, thing: Any) -> None:
        if isinstance(thing, h5py.Dataset) and not name.startswith("engine"):
            found[name] = np.ravel(thing[()]).tolist()

    with h5py.File(next(path.glob("rank-*.h5"))) as file:
        file.visititems(visit)
    return found


@pytest.mark.parametrize(("variant", "placed"), [
    (("lcfs-pr", {}), True), (("conservative", {}), False),
    *(pytest.param((name, given), placed, marks=pytest.mark.long) for name, given, placed in (
        ("easy", {}, False), ("easy", {}, True), ("lcfs-pr", {}, False),
        ("conservative", {}, True), ("fair-share", {"half_life": 64}, False),
        ("fair-share", {"half_life": 64}, True))),
], ids=str)  # fmt: skip
def test_what_is_recorded_does_not_tell_of_a_restart(
    variant: Variant, placed: bool, tmp_path: Path
) -> None:
    jobs, nodes = random_trace(SEED)
    model = model_of(trace_of(jobs), nodes, variant, machine=MACHINE if placed else None)
    logs = tuple(model.logs())
    assert ("placements" in logs) == placed
    through, parts, kept = (tmp_path / name for name in ("through", "parts", "checkpoints"))
    for path in (through, parts, kept):
        path.mkdir()

    def recording(path: Path) -> Recording:
        return Recording(path, 4, ("system", "jobs"), logs=logs)

    end = run(model, None, show_compiling=False).time + 1
    middle = end // 2 // 4 * 4
    one = run(model, end, record=recording(through), show_compiling=False)
    run(model, middle + 1, checkpoint_dir=kept, checkpoint_every=middle, record=recording(parts),
        show_compiling=False)  # fmt: skip
    other = run(model, end, resume=kept, record=recording(parts), show_compiling=False)
    assert other.resumed == middle
    same(one, other)
    expected, found = read(through), read(parts)
    assert len(expected["starts/job"]) >= len(jobs)
    assert found == expected


def test_a_run_that_is_stopped_again_and_again_agrees_with_the_naive_one(tmp_path: Path) -> None:
    jobs, nodes = random_trace(21)
    model = model_of(trace_of(jobs), nodes, ("conservative", {}))
    end = run(model, None, show_compiling=False).time
    for stop in range(2, end + 2):
        resume = tmp_path if stop > 2 else None
        result = run(model, stop, checkpoint_dir=tmp_path, checkpoint_every=1, resume=resume,
                     show_compiling=False)  # fmt: skip
    expected = simulate([Job(*job) for job in jobs], nodes, "conservative")
    assert result.outcome["start_us"].tolist() == [one.start for one in expected]
    assert result.outcome["end_us"].tolist() == [one.end for one in expected]
