"""What holds for every pass, of packets and of months alike, whatever policies answer."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st
from machines import SMALL, US
from workloads import SHORT, network

from odonata.cluster.model import Cluster
from odonata.jobs.machine import Machine
from odonata.jobs.metering import ESTIMATE, LOWERED_CAP, WITHIN, lowers
from odonata.jobs.passes import Passes
from odonata.jobs.power import Power
from odonata.jobs.request import Job
from odonata.traces.trace import Trace
from pdes.driver import run
from pdes.errors import Fault
from pdes.transport import Serial
from policies.parameters import parameter
from policies.power import POWERS, Caps, Configuration, PowerPolicy, power
from policies.scheduling import SCHEDULINGS, SchedulingPolicy, scheduling

SECOND = 10**6
IDLE, LEAST, MOST = 100.0, 162.0, 290.0


def dice(*about: int) -> random.Random:
    return random.Random(repr(about))


class Notes:
    """What the policies below answered in the present pass."""

    chosen: list[int] | None = None
    """None: another scheduling policy was asked."""
    asked: list[int] = []  # noqa: RUF012
    refused: int | None = None
    passes = starts = refusals = suspended = 0


class Wild(SchedulingPolicy):
    """Starts some of the jobs that fit, in any order."""

    seed: int = parameter(1, about="of its dice")

    def select(self, view: Any) -> list[int]:
        luck, free, chosen = dice(self.seed, view.time), view.free, []
        for job in luck.sample([*view.queue], len(view.queue)):
            if job.nodes <= free and luck.random() < 0.8:
                chosen.append(job.number)
                free -= job.nodes
        Notes.chosen, Notes.asked, Notes.refused = chosen, [], None
        Notes.passes += 1
        return chosen


class Moody(PowerPolicy):
    """Refuses some jobs, gives any caps, and wants to be asked at any time."""

    seed: int = parameter(1, about="of its dice")
    suspends: bool = parameter(False, about="whether it suspends jobs and resumes them")
    columns: bool = parameter(False, about="whether it answers with a column")

    def configure(self, view: Any, job: Any) -> Configuration | None:
        luck = dice(self.seed, view.time, job.number)
        assert Notes.refused is None, "a job behind one that waits was asked for"
        Notes.asked.append(job.number)
        if luck.random() < 0.3:
            Notes.refused = job.number
            Notes.refusals += 1
            return None
        return Configuration(job.nodes, cap_w=luck.choice([np.inf, 200.0]), forced=False)

    def caps(self, view: Any) -> Caps:
        luck = dice(self.seed, view.time, 7)
        agrees(view)
        rows = view.desk.running
        watts = np.array([luck.choice([np.nan, np.inf, 180.0, 250.0]) for _ in rows.tolist()])
        given = watts if self.columns else {
            row: cap for row, cap in zip(rows.tolist(), watts.tolist(), strict=True) if cap == cap
        }  # fmt: skip
        held = {one.run.request.number for one in view.running if one.suspended}
        others = [row for row in rows.tolist() if row not in held]
        suspend = [row for row in others if self.suspends and luck.random() < 0.2]
        Notes.suspended += len(suspend)
        again = view.time + luck.randint(1, 3 * SECOND) if luck.random() < 0.3 else None
        return Caps(given, suspend, [*held], again, schedule=luck.random() < 0.2)


def agrees(view: Any) -> None:
    """The tuples of a view and its columns say the same."""
    desk = view.desk
    assert [job.number for job in view.queue] == desk.queue.tolist()
    assert sorted(desk.running.tolist()) == [one.run.request.number for one in view.running]
    assert sum(one.configuration.nodes for one in view.running) == view.busy
    for one in view.running:
        row = one.run.request.number
        assert (one.configuration.nodes, one.configuration.cap_w, one.suspended) == (
            desk.nodes[row], desk.cap_w[row], bool(desk.suspended[row])
        )  # fmt: skip
        assert one.measured_w == one.configuration.nodes * desk.measured_w[row]
        assert desk.start[row] == one.run.start
    assert (desk.start[desk.queue] == -1).all()


def checked(machine: Machine) -> None:
    """What is known of a machine at any instant agrees with itself."""
    queue, running = machine.waiting(), machine.running()
    waits, runs = {job.number for job in queue}, {one.request.number for one in running}
    assert not waits & runs
    assert machine.queued == len(queue) == len(waits)
    assert all(job.submit <= machine.time for job in queue)
    assert machine.busy == sum(machine.nodes_of(row) for row in runs)
    idle = machine.idle()
    if idle is not None:
        assert machine.free == int(idle.sum())
        labels = [label for one in running for label in one.labels.tolist()]
        assert len(labels) == len({*labels}) == machine.busy
        assert not idle[labels].any()


@pytest.fixture(autouse=True)
def witness(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Looks at the machine before and after all that follows from something, and at who starts."""
    scheduling("wild", about="a test's", source="ours")(Wild)
    power("moody", about="a test's", source="ours")(Moody)
    respond, place = Passes.respond, Passes.place

    def responding(self: Passes, machine: Machine, happened: int) -> None:
        nodes = machine.free + machine.busy
        respond(self, machine, happened)
        checked(machine)
        assert machine.free + machine.busy == nodes
        assert machine.free >= 0

    def placing(self: Passes, machine: Machine, chosen: Any) -> None:
        free, before = machine.free, {one.request.number for one in machine.running()}
        place(self, machine, chosen)
        started = {one.request.number for one in machine.running()} - before
        assert sum(machine.nodes_of(row) for row in started) == free - machine.free <= free
        first = Notes.chosen
        if first is None:
            return
        if Notes.refused is not None:
            first = first[: first.index(Notes.refused)]
        assert started == {*first}, "others started than those before the first that waits"
        Notes.starts += len(started)

    monkeypatch.setattr(Passes, "respond", responding)
    monkeypatch.setattr(Passes, "place", placing)
    monkeypatch.setattr(Notes, "chosen", None)
    for name in ("passes", "starts", "refusals", "suspended"):
        monkeypatch.setattr(Notes, name, 0)
    yield
    del POWERS["moody"], SCHEDULINGS["wild"]


class Case(NamedTuple):
    """Jobs as (submission in s, run time in s, nodes), and the parameters of policies."""

    jobs: list[tuple[int, int, int]]
    seed: int
    columns: bool
    cap_kw: tuple[float, float]


cases = st.builds(
    Case,
    st.lists(st.tuples(st.integers(0, 20), st.integers(1, 15), st.integers(2, 40)), min_size=1,
             max_size=8),
    st.integers(1, 10**6), st.booleans(), st.tuples(st.floats(8, 22), st.floats(8, 22)),
)  # fmt: skip


def supplied(case: Case, unit: str, interval_ps: int, suspends: bool = False) -> Power:
    first, then = (f"{kw} kW" for kw in case.cap_kw)
    given = (("seed", case.seed), ("suspends", suspends), ("columns", case.columns))
    return Power("moody", given, cap=[["0 s", first], [f"9 {unit}", then]],
                 interval_ps=interval_ps, demand="constant", maximum_w=MOST)  # fmt: skip


def trace(jobs: list[tuple[int, int, int]]) -> Trace:
    submit, length, nodes = (np.array(column) for column in zip(*sorted(jobs), strict=True))
    zero = np.zeros(len(jobs), np.int64)
    return Trace("cases", np.arange(len(jobs)), submit * SECOND, length * SECOND, nodes,
                 length * SECOND, zero, zero, zero, zero - 1)  # fmt: skip


def of_jobs(case: Case, placed: bool, suspends: bool = False) -> Cluster:
    machine = SMALL if placed else None
    return Cluster(trace(case.jobs), SMALL.n_nodes, "wild", (("seed", case.seed),), machine,
                   power=supplied(case, "s", 4 * 10**12, suspends))  # fmt: skip


def of_packets(case: Case, suspends: bool = False) -> Any:
    jobs = [Job(nodes, arrival_ps=submit * US, compute_ps=length * US, **SHORT)
            for submit, length, nodes in case.jobs]  # fmt: skip
    return network(*jobs, order="wild", order_parameters=(("seed", case.seed),),
                   power=supplied(case, "us", 4 * US, suspends))  # fmt: skip


def readings(model: Any) -> list[tuple[float, float, int]]:
    """Returns what was measured in a run to its end: watts drawn and allowed, and the cause."""
    found: list[tuple[float, float, int]] = []

    def take(time: int, agent: int, rows: Any) -> None:
        for name, values in rows:
            if name == "power":
                columns = getattr(values, "columns", None)
                found.extend([values] if columns is None else zip(*columns, strict=True))

    run(model, None, log=take, show_compiling=False, transport=Serial())
    return found


@pytest.mark.parametrize("fidelity", ["packet", "job", "placed job"])
@examples(12)
@given(case=cases)
def test_a_pass_keeps_its_rules_whatever_policies_answer(fidelity: str, case: Case) -> None:
    model = of_packets(case) if fidelity == "packet" else of_jobs(case, fidelity != "job")
    rows = readings(model)
    assert Notes.starts >= len(case.jobs)
    for drawn_w, allowed_w, cause in rows:
        over = drawn_w > allowed_w * (1 + 1e-8)
        if over or drawn_w < allowed_w * (1 - 1e-8):
            assert (cause != WITHIN) == over


@examples(12)
@given(case=cases, placed=st.booleans())
def test_suspended_jobs_keep_their_nodes(case: Case, placed: bool) -> None:
    readings(of_jobs(case, placed, suspends=True))


def test_what_packets_cannot_do_is_refused_by_name() -> None:
    case = Case([(0, 15, 8)] * 4, 3, False, (22.0, 22.0))
    with pytest.raises(Fault, match=r'power moody: it suspends job \d+, .* fidelity = "job" can'):
        readings(of_packets(case, suspends=True))


def test_the_dice_above_are_thrown() -> None:
    """The properties above would hold of policies that refuse nobody."""
    case = Case([(at, 5, 20) for at in range(8)], 5, False, (20.0, 12.0))
    readings(of_jobs(case, placed=False, suspends=True))
    assert Notes.refusals > 1
    assert Notes.suspended > 0
    assert Notes.passes > 8


class Restless(PowerPolicy):
    """Does all that it can do to all jobs, whenever it is asked."""

    retries = False

    def configure(self, view: Any, job: Any) -> Configuration:
        return Configuration(job.nodes, cap_w=200.0)

    def caps(self, view: Any) -> Caps:
        rows = view.desk.running.tolist()
        held = bool(view.desk.suspended[rows].any())
        cap_w = dict.fromkeys(rows, 200.0 + view.time // SECOND % 7 + view.arrived)
        return Caps(cap_w, [] if held else rows, rows if held else [], schedule=True)


def test_there_is_room_for_all_that_is_noted_at_one_instant() -> None:
    power("restless", about="a test's", source="ours")(Restless)
    jobs = [(4 * wave, 3, 1) for wave in range(12) for _ in range(1200)]
    model = Cluster(trace(jobs), 1200, power=Power("restless", interval_ps=4 * 10**12))
    found = run(model, None, show_compiling=False, transport=Serial())
    del POWERS["restless"]
    assert (found.outcome["state"] == 3).all()


# -- causes


def test_a_cap_is_lowered_only_where_it_falls_below_what_is_drawn() -> None:
    assert lowers(10.0, 8.0, 9.0)
    assert not lowers(10.0, 8.0, 8.0)
    assert not lowers(10.0, 8.0, 7.0)
    assert not lowers(8.0, 10.0, 12.0)


class Late(PowerPolicy):
    """Starts whatever comes, as if there were no cap."""


@pytest.mark.parametrize("fidelity", ["packet", "job"])
@pytest.mark.parametrize(("cap_w", "cause"), [(14_000.0, ESTIMATE), (8_000.0, LOWERED_CAP)])
def test_both_fidelities_tell_a_lowered_cap_from_a_low_estimate(
    fidelity: str, cap_w: float, cause: int
) -> None:
    """20 of 72 nodes run, which is 11,000 W, when the cap is lowered at 6.5; the others come
    at 7, before power is measured again."""
    power("late", about="a test's", source="ours")(Late)
    unit, at = ("ns", US) if fidelity == "packet" else ("ms", 10**12)
    cap = [["0 s", "30 kW"], [f"6500 {unit}", f"{cap_w} W"]]
    supply = Power("late", cap=cap, interval_ps=4 * at, demand="constant")
    jobs = [(0, 40, 20), (7, 20, 52)]
    if fidelity == "packet":
        model: Any = network(*[Job(n, arrival_ps=s * US, compute_ps=t * US, **SHORT)
                               for s, t, n in jobs], power=supply)  # fmt: skip
    else:
        model = Cluster(trace(jobs), SMALL.n_nodes, power=supply)
    causes = [found for _, _, found in readings(model) if found != WITHIN]
    del POWERS["late"]
    assert {*causes} == {cause}


# -- when a policy is asked


ASKED: list[int] = []
"""When the policy below was asked."""


class Counts(PowerPolicy):
    """Goes neither by what is measured nor by who waits."""

    reads = by_queue = retries = False

    def caps(self, view: Any) -> Caps:
        ASKED.append(view.time)
        return Caps()


def of_three(fidelity: str, policy: str, interval: int, cap: str | None = None) -> Any:
    """The first two jobs hold 60 of 72 nodes for 10 and for 40 s, or microseconds; the others come
    while they run, and wait."""
    at = US if fidelity == "packet" else 10**12
    jobs = [(0, 10, 20), (0, 40, 40), *((20 + 3 * i, 5, 50) for i in range(4))]
    supply = Power(policy, cap=cap, interval_ps=interval * at, demand="constant", maximum_w=MOST)
    if fidelity == "packet":
        return network(*[Job(n, arrival_ps=s * US, compute_ps=t * US, **SHORT)
                         for s, t, n in jobs], power=supply)  # fmt: skip
    return Cluster(trace(jobs), SMALL.n_nodes, power=supply)


@pytest.mark.parametrize("fidelity", ["packet", "job"])
def test_how_often_power_is_measured_changes_nothing_for_a_policy_that_does_not_read_it(
    fidelity: str,
) -> None:
    power("counts", about="a test's", source="ours")(Counts)
    asked = []
    for interval in (1, 7, 1000):
        ASKED.clear()
        readings(of_three(fidelity, "counts", interval))
        asked.append([*ASKED])
    del POWERS["counts"]
    assert asked[0] == asked[1] == asked[2]
    assert len(asked[0]) < 12  # and not where jobs have come and none has started or ended


@pytest.mark.parametrize("fidelity", ["packet", "job"])
def test_caps_are_raised_where_a_job_ends_and_nobody_starts(fidelity: str) -> None:
    """The cap allows 60 nodes 200 W, and the 40 that are left all that they can draw."""
    model = of_three(fidelity, "uniform", 1000, f"{60 * 200 + 12 * IDLE} W")
    rows: list[Any] = []

    def take(time: int, agent: int, found: Any) -> None:
        for name, values in found:
            if name == "caps":
                columns = getattr(values, "columns", None)
                rows.extend([values] if columns is None else zip(*columns, strict=True))

    run(model, None, log=take, show_compiling=False, transport=Serial())
    of_second = [cap_w for job, cap_w in rows if job == 1]
    assert of_second[0] == pytest.approx(200.0)
    assert of_second[1] > 240.0
