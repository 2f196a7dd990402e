"""The test tool finds policies that a run could not be repeated with, and lets the others pass."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from odonata import NO_MORE, pattern, traffic_pattern
from pdes.errors import Refused
from pdes.jit import ENABLED
from policies.allocation import ALLOCATIONS, AllocationPolicy, allocation
from policies.register import REGISTERS
from policies.routing import ROUTINGS, routing
from policies.scheduling import SCHEDULINGS, SchedulingPolicy, fitting, scheduling
from policies.testing import OUTSIDE, check_policy
from policies.testing_life import LONGEST, MOST_COME, Life
from policies.views import Sight

WORDS = {"about": "a test's", "source": "nobody's"}
SEEN: dict[str, int] = {}


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    before = {kind: dict(register) for kind, register in REGISTERS.items()}
    yield
    for kind, register in REGISTERS.items():
        register.clear()
        register.update(before[kind])


def refused(written: Any, *words: str, **how: Any) -> None:
    with pytest.raises(AssertionError) as caught:
        check_policy(written, new_process=False, **how)
    for each in words:
        assert each in str(caught.value)


@pytest.mark.parametrize("questions", [25, pytest.param(60, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", [*ALLOCATIONS, *SCHEDULINGS])
def test_built_in_policies_pass(name: str, questions: int) -> None:
    assert check_policy(name, new_process=False, questions=questions).questions == questions


@pytest.mark.parametrize("rule", ["easy", pytest.param("conservative", marks=pytest.mark.long)])
def test_starts_that_look_ahead_pass_with_every_rule_of_theirs(rule: str) -> None:
    values = {"rule": rule, "part": 0.0, "drain": True, "least_saving": 0.05}
    check_policy("price-aware", values, new_process=False, questions=30)


def test_an_appointment_that_comes_from_outside_of_the_memory_is_found() -> None:
    SEEN["asked"] = 0

    @scheduling("forgetful", **WORDS)
    class Forgetful(SchedulingPolicy):
        def select(self, view: Any) -> list[int]:
            return []

        def again(self, view: Any) -> int:
            SEEN["asked"] += 1
            return int(view.time) + SEEN["asked"]

    refused(Forgetful, "scheduling forgetful, question 0", "to be asked again at", OUTSIDE)


@pytest.mark.parametrize("name", ["rdg", pytest.param("small-first", marks=pytest.mark.long)])
def test_built_in_policies_answer_the_same_in_a_new_process(name: str) -> None:
    done = check_policy(name)
    assert done.new_process
    assert done.questions == 60


def test_routings_answer_the_same_compiled_and_as_python() -> None:
    for name in ROUTINGS:
        check_policy(name)


@pytest.mark.skipif(not ENABLED, reason="without the JIT there is nothing to compare")
def test_a_routing_that_counts_on_large_numbers_is_found() -> None:
    """Python's grow, compiled ones overflow."""

    @routing("large", **WORDS)
    def large(minimal: Any, valiant: Any, threshold: float, bias: int, word: int) -> bool:
        return bool(minimal.queued << 62 > 0)

    refused(large, "routing large, question", "compiled it answers False, as Python True")


def test_a_routing_answers_true_or_false() -> None:
    @routing("vague", **WORDS)
    def vague(minimal: Any, valiant: Any, threshold: float, bias: int, word: int) -> Any:
        return minimal.queued

    refused(vague, "routing vague, question 0: its answer is", "neither True nor False")


def test_patterns_are_checked_as_python_and_compiled() -> None:
    @pattern("around", **WORDS, phases=lambda tasks: tasks - 1)
    def around(task: int, tasks: int, phase: int, i: int) -> int:
        return (task + 1 + phase) % tasks if i == 0 else NO_MORE

    @traffic_pattern("opposite", **WORDS)
    def opposite(node: int, nodes: int, group_nodes: int, word: int) -> int:
        return (node + nodes // 2) % nodes

    for name, kind in (("around", "pattern"), ("opposite", "traffic")):
        assert check_policy(name, kind=kind) == (60, False, ENABLED)
    assert check_policy(around) == check_policy(opposite) == (60, False, ENABLED)


def test_wrong_answers_of_patterns_are_found() -> None:
    @pattern("beyond", **WORDS)
    def beyond(task: int, tasks: int, phase: int, i: int) -> int:
        return task + 1 if i == 0 else NO_MORE

    @pattern("endless", **WORDS)
    def endless(task: int, tasks: int, phase: int, i: int) -> int:
        return (task + 1) % tasks

    @pattern("no-phase", **WORDS, phases=0)
    def no_phase(task: int, tasks: int, phase: int, i: int) -> int:
        return NO_MORE

    @traffic_pattern("outside", **WORDS)
    def outside(node: int, nodes: int, group_nodes: int, word: int) -> int:
        return node + group_nodes

    refused(beyond, "pattern beyond, of", "or NOBODY, or NO_MORE")
    refused(endless, "pattern endless, of", "has not answered NO_MORE to 4,096 message numbers")
    refused(no_phase, "pattern no-phase", "0 phases; a whole number, at least 1")
    refused(outside, "traffic outside: of", "to one of 0 ..")


@pytest.mark.skipif(not ENABLED, reason="without the JIT there is nothing to compare")
def test_a_traffic_pattern_that_counts_on_large_numbers_is_found() -> None:
    @traffic_pattern("large", **WORDS)
    def large(node: int, nodes: int, group_nodes: int, word: int) -> int:
        return ((word + 1) << 40) % nodes

    refused(large, "traffic large, question", "compiled it answers")


@pytest.mark.parametrize(("kind", "name"), [("pattern", "all-to-all"), ("traffic", "uniform")])
def test_a_pattern_that_is_built_in_is_refused_with_the_reason(kind: str, name: str) -> None:
    with pytest.raises(Refused, match=f"{kind} {name}: it is built in; only one of a plug-in"):
        check_policy(name, kind=kind)


def test_one_that_remembers_in_an_attribute_is_found() -> None:
    @allocation("turns", **WORDS)
    class Turns(AllocationPolicy):
        def __init__(self) -> None:
            self.turn = 0

        def choose(self, sight: Sight, job: Any, rng: Any) -> Any:
            self.turn += 1
            return np.roll(sight.labels, self.turn)[: job.nodes]

    refused(Turns, "allocation turns, question 0", "asked again, it chooses", "outside its memory")


def test_a_class_without_an_init_cannot_even_try() -> None:
    @allocation("turns", **WORDS)
    class Turns(AllocationPolicy):
        turn = 0

        def choose(self, sight: Sight, job: Any, rng: Any) -> Any:
            self.turn += 1
            return sight.labels[: job.nodes]

    refused(Turns, "allocation turns, question 0", "FrozenInstanceError: cannot assign to field")


def test_one_that_learns_into_a_global_is_found() -> None:
    """Such a policy answers a repeated question alike, and questions in another order not."""

    def heard(ended: Any, memory: Any) -> None:
        memory.ended += 1
        SEEN[ended.request.user] = SEEN.get(ended.request.user, 0) + 1

    @scheduling("favour", memory=lambda sizes: {"ended": np.zeros(1)}, learn=heard, **WORDS)
    def favour(view: Any) -> list[int]:
        order = sorted(range(len(view.queue)), key=lambda i: SEEN.get(view.queue[i].user, 0))
        return fitting(view, order)

    refused(favour, "scheduling favour, question", "it remembers outside its memory")


def test_one_that_counts_how_often_a_job_has_waited_is_found() -> None:
    """It goes by jobs that it has seen before: they must come again in later questions."""

    @scheduling("aging", **WORDS)
    class Aging(SchedulingPolicy):
        def __init__(self) -> None:
            self.seen: dict[int, int] = {}

        def select(self, view: Any) -> list[int]:
            for job in view.queue:
                self.seen.setdefault(job.number, view.time)
            seen = [self.seen[job.number] for job in view.queue]
            return fitting(view, np.argsort(-np.array(seen), kind="stable"))

    refused(Aging, "scheduling aging, question", "it remembers outside its memory")


def test_one_that_keeps_a_number_for_each_job_has_room_for_it() -> None:
    @scheduling("aging", memory=lambda sizes: {"seen": np.zeros(sizes.jobs)}, **WORDS)
    def aging(view: Any) -> list[int]:
        for job in view.queue:
            view.memory.seen[job.number] += 1
        seen = [view.memory.seen[job.number] for job in view.queue]
        return fitting(view, np.argsort(seen, kind="stable"))

    check_policy(aging, new_process=False)


def test_one_that_keeps_the_same_in_its_memory_passes() -> None:
    def heard(ended: Any, memory: Any) -> None:
        memory.ended[ended.request.user_number] += 1

    @scheduling("favour", memory=lambda sizes: {"ended": np.zeros(sizes.users)}, learn=heard,
                **WORDS)  # fmt: skip
    def favour(view: Any) -> list[int]:
        ended = view.memory.ended
        order = sorted(range(len(view.queue)), key=lambda i: ended[view.queue[i].user_number])
        return fitting(view, order)

    check_policy(favour, new_process=False)


def test_one_that_draws_from_elsewhere_is_found() -> None:
    @allocation("python", **WORDS)
    def by_python(sight: Sight, job: Any, rng: Any) -> Any:
        return random.sample(sight.labels.tolist(), job.nodes)

    @allocation("numpy", **WORDS)
    def by_numpy(sight: Sight, job: Any, rng: Any) -> Any:
        return np.random.permutation(sight.labels)[: job.nodes]  # noqa: NPY002

    @allocation("entropy", **WORDS)
    def by_entropy(sight: Sight, job: Any, rng: Any) -> Any:
        return np.random.default_rng().permutation(sight.labels)[: job.nodes]

    @allocation("clock", **WORDS)
    def by_clock(sight: Sight, job: Any, rng: Any) -> Any:
        return np.roll(sight.labels, time.perf_counter_ns())[: job.nodes]

    refused(by_python, "allocation python, question 0", "global generator; draw from rng")
    refused(by_numpy, "allocation numpy, question 0", "global generator; draw from rng")
    refused(by_entropy, "allocation entropy, question", "it was not shown")
    refused(by_clock, "allocation clock, question", "it was not shown")


def test_one_that_writes_to_what_it_sees_is_found() -> None:
    @allocation("vandal", **WORDS)
    def vandal(sight: Sight, job: Any, rng: Any) -> Any:
        sight.idle[0] = False
        return sight.labels[: job.nodes]

    @allocation("burglar", **WORDS)
    def burglar(sight: Sight, job: Any, rng: Any) -> Any:
        labels = sight.labels[: job.nodes]
        sight.idle.flags.writeable = True
        sight.idle[:] = False
        return labels

    @scheduling("thief", **WORDS)
    def thief(view: Any) -> list[int]:
        view.queue.clear()
        return []

    refused(vandal, "allocation vandal, question 0", "read-only")
    refused(burglar, "allocation burglar, question 0", "is busy")
    refused(thief, "scheduling thief, question 0", "AttributeError")


def test_one_that_writes_to_counters_is_found() -> None:
    @allocation("scribe", **WORDS, reads=1)
    def scribe(sight: Sight, job: Any, rng: Any) -> Any:
        if sight.counters is not None:
            sight.counters.sent[0, 0] = 1
        return sight.labels[: job.nodes]

    @allocation("forger", **WORDS, reads=1)
    def forger(sight: Sight, job: Any, rng: Any) -> Any:
        if sight.counters is not None:
            sight.counters.stall.flags.writeable = True
            sight.counters.stall[-1] += 1
        return sight.labels[: job.nodes]

    refused(scribe, "allocation scribe, question", "read-only")
    refused(forger, "allocation forger, question", "it writes to sight.counters")


def test_one_that_goes_by_counters_says_how_many_intervals_it_reads() -> None:
    def quietest(sight: Sight, job: Any, rng: Any) -> Any:
        if sight.counters is None:
            return sight.labels[: job.nodes]
        traffic = sight.counters.traffic_by_node("sent", 2)[sight.labels]
        return sight.labels[np.argsort(traffic, kind="stable")][: job.nodes]

    allocation("aloud", **WORDS, reads=2)(quietest)
    check_policy("aloud", new_process=False)
    allocation("silent", **WORDS)(quietest)
    refused("silent", "allocation silent, question", "without counters, it chooses",
            "only to an allocation that says reads=...")  # fmt: skip


def test_questions_are_of_sensitive_jobs_and_others_with_counters_and_without() -> None:
    seen, life = [], Life(1)
    for _ in range(60):
        seen.append(life.step())
        life.go_on(None)
    assert all(step.job.nodes <= step.free for step in seen)
    assert max(len(step.queue) for step in seen) < LONGEST + MOST_COME
    assert {job.sensitive for step in seen for job in step.queue} == {True, False, None}
    told = [step.counters for step in seen if step.counters is not None]
    assert 30 < len(told) < 60
    assert {len(counters.sent) for counters in told} == {1, 2, 3, 4}


def test_a_wrong_answer_is_found_with_its_question() -> None:
    @allocation("short", **WORDS)
    def short(sight: Sight, job: Any, rng: Any) -> Any:
        return sight.labels[: min(job.nodes, 10)]

    refused(short, "allocation short, question", "asked for", "it chose 10")


def test_parameters_are_passed_on_and_names_must_be_known() -> None:
    @allocation("gap", **WORDS)
    def gap(sight: Sight, job: Any, rng: Any, *, most: int = 100) -> Any:
        return sight.labels[: min(job.nodes, most)]

    check_policy(gap, new_process=False)
    refused(gap, "it chose 3", values={"most": 3})
    with pytest.raises(ValueError, match=r"'gaps': nothing of that name is registered as traffic"):
        check_policy("gaps")
