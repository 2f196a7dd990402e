"""The compiled pass of RMAP against a plain one."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st
from rmap_plain import never_starts, select

from odonata.cluster.model import Cluster
from odonata.cluster.simulation import simulate
from odonata.jobs.power import Power
from odonata.provisioning.fitted import tables
from odonata.traces.rmap import rmap
from pdes.clock import LATEST
from pdes.driver import run
from pdes.errors import Fault, Refused
from policies.power import Choices, Configuration, Mold, Powered, choices_of
from policies.power.base import admit
from policies.power.rmap import Adaptive, Naive, Rmap, Traditional
from policies.power.rmap_compiled import table_of
from policies.views import Budget, PowerDesk, PowerView, Request, Running

NOW, LONGEST, MOST_W = 100, 12, 6
"""The time of a pass; the longest time, and the most watts of a node above idle."""
DUE = (2, 5, 9)
"""Few times, so that several jobs end at one instant."""
NOWHERE = np.zeros(0, np.int64)
APPLICATIONS = ("first", "second", "")
HERE = str(Path(__file__).parent)


def some_choices(rng: random.Random, nodes: int, idle_w: float) -> Choices:
    """Returns configurations with gaps and ties, some on more nodes than there are; a few draw less
    than idle nodes do."""
    grid = [(n, c, cap) for n in range(1, nodes + 2) for c in (8, 16) for cap in (51.0, 115.0)]
    some = rng.sample(grid, rng.randint(1, len(grid)))
    unit = rng.choice([1.0, 0.97])
    watts = [max(0.5, n * idle_w + unit * rng.randint(-1, n * MOST_W)) for n, _, _ in some]
    time = [rng.randint(1, LONGEST) for _ in some]
    return choices_of(*zip(*some, strict=True), watts, time)


def some_policy(rng: random.Random) -> Rmap:
    how: dict[str, Any] = {
        "weight": rng.choice([1.0, 1.0, 0.7, 2.0, 1e6]), "margin": rng.choice([0.0, 0.15]),
        "grace": rng.choice([0.0, 0.33]), "knowledge": rng.choice(["oracle", "oracle", "model"]),
        "backfill": rng.choice(["easy"] * 4 + ["first-fit", "none"]),
    }  # fmt: skip
    kind = rng.choice([Traditional, Naive, Adaptive, Adaptive])
    if kind is Naive:
        how["strict"] = rng.random() < 0.5
    if kind is Adaptive:
        how["threshold"] = rng.choice([-1.0, 0.0, 0.1, 0.3, 2.0])
        how["short_of"] = rng.choice(["power", "either"])
    return kind(**how)


def some_view(rng: random.Random) -> PowerView:
    """Returns a machine in the middle of its work, as objects and as arrays."""
    total, idle_w = rng.choice([1, 4, 8, 16, 16, 16]), rng.choice([0.0, 0.0, 3.3])
    measured = APPLICATIONS[: rng.choice([2] * 9 + [0])]
    choices = {name: some_choices(rng, total, idle_w) for name in measured}
    count, share = rng.randint(1, 30), rng.choice([0.05, 0.2, 0.4])
    table = np.zeros((count, 4), np.int64)
    requests, running, free = [], [], total
    for row in range(count):
        application = rng.choice(APPLICATIONS)
        nodes = rng.randint(1, rng.choice([1, min(2, total), total]))
        requested = rng.choice([None, rng.randint(0, LONGEST), *DUE])
        request = Request(row, nodes, 0, requested, application=application)
        mold, place, due = None, -1, None
        if application in choices and rng.random() < 0.8:
            place = rng.randrange(len(choices[application]))
            nodes, *rest = choices[application][place][:3]
            mold = Mold(nodes, *rest)
        if nodes <= free and rng.random() < share:
            due, free = rng.choice([None, *[NOW + rng.choice(DUE)] * 9]), free - nodes
            held = Running(request, NOW - 1, NOWHERE)
            running.append(Powered(held, Configuration(nodes), 0.0, mold=mold, due=due))
        else:
            place, nodes = -1, request.nodes
            requests.append(request)
        table[row] = nodes, *(LATEST if it is None else it for it in (requested, due)), place
    rng.shuffle(requests)
    rows = np.array([request.number for request in requests], np.int64)
    runs = np.array([job.run.request.number for job in running], np.int64)
    numbers = [APPLICATIONS.index(row.application)
               for row in sorted([*requests, *(job.run.request for job in running)])]  # fmt: skip
    application_of = np.array([number if number < len(choices) else -1 for number in numbers],
                              np.int64)  # fmt: skip
    table.flags.writeable = False
    spare_w = rng.choice([-1.0, 1e300, *[rng.uniform(0.3, 1.5) * total * MOST_W] * 8])
    cap_w = total * idle_w + spare_w
    return PowerView(
        NOW, requests, running, free, idle_w, Budget(cap_w, 0.0), choices, busy=total - free,
        most_w=idle_w + MOST_W,
        desk=PowerDesk(*(table[:, word] for word in range(4)), application_of, rows, runs),
    )  # fmt: skip


def answers(count: int, seed: int = 0) -> list[Any]:
    """Returns what compiled policies answer to so many views."""
    rng = random.Random(seed)
    found = [some_policy(rng).select(some_view(rng)) for _ in range(count)]
    return [([*each.numbers], {**each.molds}) for each in found]


@given(st.integers(0, 2**32))
@examples(50)
def test_the_compiled_pass_starts_what_the_plain_one_starts(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(20):  # which is cheaper than twenty examples
        policy, view = some_policy(rng), some_view(rng)
        assert policy.select(view) == select(policy, view)


@given(st.integers(0, 2**32))
@examples(50)
def test_those_that_never_start_are_those_that_the_plain_one_never_starts(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(10):
        policy, view = some_policy(rng), some_view(rng)
        idle = view._replace(running=(), queue=(), free=view.free + view.busy, busy=0, desk=None)
        for job in view.queue:
            assert policy.never_starts(idle, job) == never_starts(policy, idle, job)


def with_partition(rng: random.Random, policy: Rmap, view: PowerView) -> Rmap:
    """Returns the policy with a partition for small jobs, and with priorities of some users."""
    nodes = view.free + view.busy
    of = rng.choice(["user", "project", "application"])
    words = {"user": "ann 2; bob 0.5", "project": "p1 3", "application": "first 0.25; second 4"}
    some = {"priorities": rng.choice(["", words[of]]), "priority_of": of}
    if nodes > 1:
        small_nodes = rng.randint(1, nodes - 1)
        some |= {"small": rng.randint(1, small_nodes), "small_nodes": small_nodes}
    return replace(policy, **some)


def of_people(rng: random.Random, view: PowerView) -> PowerView:
    """Returns the view with waiting jobs of some users and projects."""
    queue = [job._replace(user=rng.choice(["ann", "bob", ""]), project=rng.choice(["p1", "p2"]))
             for job in view.queue]  # fmt: skip
    return view._replace(queue=queue)


@given(st.integers(0, 2**32))
@examples(30)
def test_a_partition_and_priorities_are_as_in_the_plain_pass(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(10):
        view = of_people(rng, some_view(rng))
        policy = with_partition(rng, some_policy(rng), view)
        assert policy.select(view) == select(policy, view)
        idle = view._replace(running=(), queue=(), free=view.free + view.busy, busy=0, desk=None)
        for job in view.queue[:3]:
            assert policy.never_starts(idle, job) == never_starts(policy, idle, job)


def test_priorities_and_partitions_change_who_starts() -> None:
    rng, other = random.Random(1), {"priorities": 0, "partition": 0}
    for _ in range(300):
        view, policy = of_people(rng, some_view(rng)), replace(Naive(), strict=True)
        nodes = view.free + view.busy
        urgent = replace(policy, priorities="ann 8", priority_of="user")
        other["priorities"] += urgent.select(view) != policy.select(view)
        if nodes > 1:
            apart = replace(policy, small=nodes // 2, small_nodes=nodes // 2)
            other["partition"] += apart.select(view) != policy.select(view)
    assert min(other.values()) > 10


@pytest.mark.parametrize(("given_", "words"), [
    ({"priorities": "gold"}, "priorities = 'gold': a name, a space and a number above 0"),
    ({"priorities": "gold -1"}, "priorities = 'gold -1'"),
    ({"priorities": "gold 2; silver 0"}, "priorities = 'gold 2; silver 0'"),
    ({"priority_of": "queue"}, "priority_of = 'queue': one of project, user, application"),
    ({"small": 4}, "small = 4, small_nodes = 0: both 0, or"),
    ({"small": 4, "small_nodes": 2}, "small = 4, small_nodes = 2: both 0, or"),
])  # fmt: skip
def test_priorities_and_partitions_that_make_no_sense_are_refused(
    given_: dict[str, Any], words: str
) -> None:
    with pytest.raises(Refused, match=words):
        Naive(**given_)


def test_of_the_jobs_some_never_start_and_others_may() -> None:
    rng = random.Random(0)
    views = [(some_policy(rng), some_view(rng)) for _ in range(300)]
    for molds in (True, False):
        found = {never_starts(policy, view, job) for policy, view in views
                 for job in view.queue if (job.application in view.choices) == molds}  # fmt: skip
        assert found == {True, False}


def test_the_views_have_all_kinds_of_answers() -> None:
    found = answers(300)
    sizes = {len(numbers) for numbers, _ in found}
    assert {0, 1, 2, 3} <= sizes
    assert any(len(molds) < len(numbers) for numbers, molds in found)
    rng = random.Random(0)
    reserved = [policy for policy in (some_policy(rng) for _ in range(300))
                if _reserves(policy, some_view(rng))]  # fmt: skip
    assert len({type(policy) for policy in reserved}) == 3


def _reserves(policy: Rmap, view: PowerView) -> bool:
    """Tells whether somebody waits who would start if nobody had a reservation."""
    if policy.backfill != "easy":
        return False
    free = replace(policy, backfill="first-fit")
    return [*policy.select(view).numbers] != [*free.select(view).numbers]


def test_without_the_compiler_it_answers_the_same(python: Callable[..., str]) -> None:
    code = (f"import sys; sys.path.insert(0, {HERE!r}); "
            "from test_rmap_compiled import answers; print(answers(150))")  # fmt: skip
    assert python(code, jit="0").strip() == repr(answers(150))


def test_a_policy_that_is_derived_from_one_of_them_starts_what_that_one_starts() -> None:
    """As a plug-in may, for other parameters."""

    @dataclass(frozen=True)
    class Patient(Adaptive):
        threshold: float = 2.0

    views = [some_view(random.Random(seed)) for seed in range(40)]
    found = [Patient().select(view) for view in views]
    assert found == [Adaptive(threshold=2.0).select(view) for view in views]
    assert found != [Adaptive().select(view) for view in views]


@pytest.mark.parametrize("policy", [Traditional(), Naive(), Adaptive()])
def test_a_view_without_a_desk_is_refused_by_name(policy: Rmap) -> None:
    with pytest.raises(Fault, match=f"power {policy.name}: its view has no desk"):
        admit(policy, some_view(random.Random(0))._replace(desk=None))


def test_shares_and_powers_beyond_all_reason_do_not_overflow() -> None:
    """What a machine may draw is bounded; a share of a million times that is all of it, and a rigid
    job of a million million watts starts nowhere."""
    for seed in range(200):
        view = some_view(random.Random(seed))
        running = [job for job in view.running if job.mold]
        held = np.array([job.run.request.number for job in running], np.int64)
        busy = sum(job.configuration.nodes for job in running)
        assert view.desk is not None
        view = view._replace(
            budget=Budget(1e300, 0.0), most_w=1e12, running=running, busy=busy,
            free=view.free + view.busy - busy, desk=view.desk._replace(running=held),
        )  # fmt: skip
        for policy in (Traditional(), Naive(weight=1e6, strict=True), Adaptive(weight=1e6)):
            assert policy.select(view) == select(policy, view)


@pytest.mark.parametrize("policy", ["rmap-traditional", "rmap-naive", "rmap-adaptive"])
@pytest.mark.parametrize("knowledge", ["oracle", "model"])
def test_a_simulation_is_the_same_with_the_plain_pass(
    policy: str, knowledge: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def digests() -> list[Any]:
        power = Power(policy, policy_parameters=(("knowledge", knowledge),), cap="6500 W",
                      idle_w=0.0)  # fmt: skip
        models = [Cluster(rmap("random", seed=seed), 64, order, power=power,
                          applications=tables("cab"))
                  for seed, order in ((1, "fcfs"), (2, "small-first"))]  # fmt: skip
        return [simulate(model).result.digest for model in models]

    found = digests()
    monkeypatch.setattr(Rmap, "select", select)
    assert digests() == found


def test_a_run_that_goes_on_from_a_checkpoint_ends_with_the_same_bits(tmp_path: Path) -> None:
    def model() -> Cluster:
        power = Power("rmap-adaptive", cap="6500 W", idle_w=0.0)
        return Cluster(rmap("random", seed=1), 64, "fcfs", power=power, applications=tables("cab"))

    whole = run(model(), None, show_compiling=False)
    some = whole.time // 2
    run(model(), some, checkpoint_dir=tmp_path, checkpoint_every=some // 2, show_compiling=False)
    assert run(model(), None, resume=tmp_path, show_compiling=False).digest == whole.digest


def test_a_desk_says_what_the_view_says(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = 0
    usual = Adaptive.select

    def looked(self: Adaptive, view: PowerView) -> Any:
        nonlocal seen
        desk, names = view.desk, [*view.choices]
        assert desk is not None
        for job, row in zip(view.queue, desk.queue.tolist(), strict=True):
            requested = LATEST if job.requested is None else job.requested
            assert (row, desk.nodes[row], desk.requested[row]) == (job.number, job.nodes, requested)
            assert names[desk.application[row]] == job.application
        dues = desk.due[desk.running].tolist()
        assert dues == sorted(dues)
        assert len(view.running) == len(desk.running)
        for held in view.running:
            row = held.run.request.number
            choice = view.choices[held.run.request.application][desk.mold[row]]
            assert held.mold == Mold(*choice[:3])
            assert row in desk.running.tolist()
            assert (desk.nodes[row], desk.due[row]) == (choice.nodes, held.due)
            seen += 1
        for array in (column for column in desk if isinstance(column, np.ndarray)):
            assert not array.flags.writeable
        for array in table_of(desk):
            assert array.dtype == np.int64
        return usual(self, view)

    monkeypatch.setattr(Adaptive, "select", looked)
    power = Power("rmap-adaptive", cap="6500 W", idle_w=0.0)
    simulate(Cluster(rmap("small", seed=1), 64, "fcfs", power=power, applications=tables("cab")))
    assert seen > 30
