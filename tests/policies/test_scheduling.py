"""Who is tried first."""

from __future__ import annotations

import doctest
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdes.errors import Fault, Refused
from policies.memory import Sizes, memory_of, remembered
from policies.scheduling import (
    SCHEDULINGS,
    Discipline,
    SchedulingPolicy,
    discipline,
    fitting,
    scheduling,
    select,
    sensitive,
)
from policies.views import Request, Running, Sight, View
from topology import Dragonfly

QUEUE = [Request(7, 8, 0), Request(8, 2, 5), Request(9, 4, 5), Request(10, 2, 9)]
MACHINE = Dragonfly(4, 4, 2, 9)


def view(queue: Any = QUEUE, free: int = MACHINE.n_nodes, memory: Any = None) -> View:
    idle = np.arange(MACHINE.n_nodes) < free
    return View(0, queue, (), free, Sight(MACHINE, idle), memory=memory)


def fresh_memory(policy: SchedulingPolicy, jobs: int) -> Any:
    buffer, (layout,) = remembered((policy,), Sizes(jobs, MACHINE.n_nodes, 9, 36, 1))
    return memory_of(layout, buffer)


def ask(name: str, free: int = MACHINE.n_nodes) -> list[int]:
    policy = SCHEDULINGS.make(name)
    return select(policy, view(free=free, memory=fresh_memory(policy, 11)))


@pytest.fixture
def mine() -> Iterator[Any]:
    yield discipline("mine", about="a test's", source="nobody's", strict=False)
    SCHEDULINGS.pop("mine", None)


def test_each_goes_by_its_name_and_equals_by_arrival() -> None:
    assert ask("fcfs") == [7, 8, 9, 10]
    assert ask("small-first") == [8, 10, 9, 7]
    assert ask("large-first") == [7, 9, 8, 10]


@pytest.mark.parametrize("name", SCHEDULINGS)
@given(st.lists(st.integers(1, 5), max_size=12))
def test_everybody_is_tried_once(name: str, sizes: list[int]) -> None:
    queue = [Request(i, nodes, 10 * i) for i, nodes in enumerate(sizes)]
    policy = SCHEDULINGS.make(name)
    asked = view(queue, memory=fresh_memory(policy, len(sizes)))
    assert sorted(select(policy, asked)) == list(range(len(sizes)))


# -- sensitive jobs first


def naive_sensitive_first(view: View, age_limit: int) -> list[Request]:
    """Pick again and again: the first that is old, else the first that is sensitive, else the first
    of which nobody knows, else the first."""
    left, picked = [*view.queue], []
    while left:
        old = [job for job in left if age_limit and view.time - job.submit >= age_limit]
        minds = [job for job in left if job.sensitive]
        nobody_knows = [job for job in left if job.sensitive is None]
        picked.append((old or minds or nobody_knows or left)[0])
        left.remove(picked[-1])
    return picked


@st.composite
def sensitive_queues(draw: st.DrawFn) -> View:
    sizes = draw(st.lists(st.integers(1, 30), max_size=10))
    gaps = draw(st.lists(st.integers(0, 3), min_size=len(sizes), max_size=len(sizes)))
    queue, submit = [], 0
    for number, (nodes, gap) in enumerate(zip(sizes, gaps, strict=True)):
        submit += gap
        sensitive = draw(st.sampled_from((True, False, None)))
        requested = draw(st.one_of(st.none(), st.integers(1, 20)))
        queue.append(Request(number, nodes, submit, requested, sensitive=sensitive))
    free = draw(st.integers(0, 60))
    running = () if free == 60 else (Running(Request(99, 60 - free, 0, 25), 0, np.arange(0)),)
    return view(queue, free)._replace(time=submit + draw(st.integers(0, 5)), running=running)


@given(sensitive_queues(), st.integers(0, 20), st.sampled_from(("none", "first-fit", "easy")))
def test_sensitive_first_chooses_as_its_naive_twin(asked: View, limit: int, backfill: str) -> None:
    policy = SCHEDULINGS.make("sensitive-first", {"age_limit": limit * 1e-12, "backfill": backfill})
    order = naive_sensitive_first(asked, limit)
    same_by_arrival = [job._replace(submit=at, sensitive=None) for at, job in enumerate(order)]
    by_arrival = {"none": "fcfs", "first-fit": "first-fit", "easy": "easy"}[backfill]
    in_turn = asked._replace(queue=same_by_arrival)
    assert select(policy, asked) == select(SCHEDULINGS.make(by_arrival), in_turn)


def test_an_age_limit_ends_the_wait_of_an_insensitive_job() -> None:
    """A sensitive job of the whole machine comes at every tick, and one starts at every tick."""

    def started(**parameters: Any) -> int | None:
        policy = SCHEDULINGS.make("sensitive-first", parameters)
        for time in range(50):
            queue = [
                Request(0, 144, 0, 1, sensitive=False),
                Request(1, 144, time, 1, sensitive=True),
            ]
            (chosen,) = select(policy, view(queue)._replace(time=time))
            if chosen == 0:
                return time
        return None

    assert started() is None
    assert started(age_limit=20e-12) == 20


def test_an_age_limit_is_in_seconds_whatever_the_tick() -> None:
    queue = [Request(0, 1, 0, sensitive=False), Request(1, 1, 9, sensitive=True)]
    policy = SCHEDULINGS.make("sensitive-first", {"age_limit": 3.0})
    for tick, second in (("us", 10**6), ("ps", 10**12)):
        for time, order in ((3 * second - 1, [1, 0]), (3 * second, [0, 1])):
            assert select(policy, view(queue)._replace(time=time, tick=tick)) == order


@pytest.mark.parametrize(
    ("given", "message"),
    [({"backfill": "easy-strict"}, "backfill = 'easy-strict': one of none, first-fit, easy"),
     ({"age_limit": -1.0}, "age_limit = -1.0: a number of seconds, 0 .. 1e+09")],
)  # fmt: skip
def test_sensitive_first_refuses_what_it_does_not_know(given: Any, message: str) -> None:
    with pytest.raises(Refused) as refusal:
        SCHEDULINGS.make("sensitive-first", given)
    assert str(refusal.value) == f"scheduling sensitive-first: {message}"


def test_the_example_of_sensitive_first_is_so() -> None:
    failed, tried = doctest.testmod(sensitive)
    assert (failed, tried > 0) == (0, True)


# -- what holds for all


def test_one_that_remembers_is_not_asked_without_its_memory() -> None:
    with pytest.raises(Fault, match="scheduling conservative: asked without its memory"):
        select(SCHEDULINGS.make("conservative"), view())


def test_nobody_passes_a_job_that_does_not_fit() -> None:
    assert ask("fcfs", 9) == [7]
    assert ask("fcfs", 7) == []
    assert ask("small-first", 7) == [8, 10]


def test_an_unknown_name_is_refused_with_those_near_it() -> None:
    with pytest.raises(Refused, match=r"scheduling 'smal-first': one of .* did you mean small-fi"):
        SCHEDULINGS.make("smal-first")


@pytest.mark.parametrize("answer", [[0, 1, 2], [0, 1, 2, 2], [1, 2, 3, 4], [-1, 0, 1, 2]])
def test_a_bad_answer_names_the_discipline(mine: Any, answer: list[int]) -> None:
    mine(lambda queue: answer)
    with pytest.raises(Fault, match=r"scheduling mine, of 4 jobs: .* each position once"):
        ask("mine")


def test_one_of_ones_own_is_a_function_or_a_class(mine: Any) -> None:
    class Backwards(Discipline):
        def order(self, queue: Any) -> list[int]:
            return list(range(len(queue)))[::-1]

    mine(Backwards)
    assert ask("mine") == [10, 9, 8, 7]
    assert ask("mine", 7) == [10, 9]
    assert not SCHEDULINGS.make("mine").strict


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        ([11], "mine: it chose job 11, which does not wait"),
        ([8, 10, 8], "mine: it chose job 8 twice"),
        ([7, 9], "mine: it chose jobs of 12 nodes in sum, and 10 are idle"),
        ([8.0], "mine failed: TypeError: 'float'"),
        (None, "mine: it returned None"),
    ],
)
def test_a_selection_that_cannot_be_started_names_the_policy(answer: Any, complaint: str) -> None:
    scheduling("mine", about="a test's", source="nobody's")(lambda view: answer)
    try:
        with pytest.raises(Fault, match=f"scheduling {complaint}"):
            ask("mine", 10)
    finally:
        del SCHEDULINGS["mine"]


def test_a_policy_may_pass_over_what_fits_and_see_what_runs() -> None:
    class Patient(SchedulingPolicy):
        def select(self, view: View) -> list[int]:
            assert [job.request.number for job in view.running] == []
            return [job.number for job in view.queue if job.nodes == 4]

    scheduling("patient", about="a test's", source="nobody's")(Patient)
    try:
        assert ask("patient") == [9]
    finally:
        del SCHEDULINGS["patient"]


def test_what_fits_is_counted_down() -> None:
    assert fitting(view(free=10), [1, 0, 2, 3]) == [8, 7]
    assert fitting(view(free=10), [1, 2, 0, 3]) == [8, 9]
    assert fitting(view(free=10), [1, 2, 0, 3], strict=False) == [8, 9, 10]
