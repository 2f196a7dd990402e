"""Mistakes in policies of one's own: each is found early, and named with its file and line."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from files import forget_plugins

from odonata import Job, Network, Workload, pattern, performance, run, traffic_pattern
from odonata.agents.patterns import REGISTER, expect
from pdes.compiler_words import explained
from pdes.errors import Fault, Refused
from pdes.jit import ENABLED, explaining, kernel
from policies.allocation import ALLOCATIONS, AllocationPolicy, allocate, allocation, rng_for
from policies.parameters import parameter
from policies.policy import Policy
from policies.register import REGISTERS, load_plugin
from policies.routing import ROUTINGS, routing
from policies.scheduling import SchedulingPolicy, discipline, scheduling
from policies.testing import check_policy
from policies.views import Request, Sight
from topology import Dragonfly

WORDS = {"about": "a mistake", "source": "a test"}


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    before = {kind: dict(register) for kind, register in REGISTERS.items()}
    yield
    forget_plugins()
    for kind, register in REGISTERS.items():
        register.clear()
        register.update(before[kind])


def line_of(function: Any, text: str) -> int:
    """Returns the number of the line of a function that has this text."""
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


# -- when it is registered


def test_a_class_has_to_define_what_it_is_asked_and_to_be_of_its_kind() -> None:
    with pytest.raises(TypeError, match="select: a subclass of SchedulingPolicy has to define it"):

        @scheduling("wrong", **WORDS)
        class Wrong(SchedulingPolicy):
            def choose(self, view: Any) -> list[int]:
                return []

    with pytest.raises(TypeError, match=r"derive it from AllocationPolicy: class Loose\("):

        @allocation("wrong", **WORDS)
        class Loose(Policy):
            pass

    assert "wrong" not in {**REGISTERS["scheduling"], **ALLOCATIONS}


def test_a_kernel_has_no_parameters_of_its_own() -> None:
    def coin(minimal: Any, valiant: Any, threshold: Any, bias: Any, word: Any, *, chance: Any = 1):  # type: ignore[no-untyped-def]
        return word < chance

    def short(minimal: Any, valiant: Any) -> bool:
        return False

    def keyworded(*, task: Any = 0) -> int:
        return -2

    known = r"a routing is a function of \(minimal, valiant, threshold, bias, word\), and has no"
    for function in (coin, short):
        with pytest.raises(TypeError, match=f"{function.__name__}: {known}"):
            routing("wrong", **WORDS)(function)
    with pytest.raises(TypeError, match=r"a job pattern is a function of \(task, tasks, phase, i"):
        pattern("wrong", **WORDS)(keyworded)
    with pytest.raises(TypeError, match=r"a traffic pattern is a function of \(node, nodes, "):
        traffic_pattern("wrong", **WORDS)(keyworded)


def test_learning_needs_a_memory_and_gets_no_parameters() -> None:
    def fine(view: Any) -> list[int]:
        return []

    def learn(ended: Any, memory: Any, *, decay: float = 0.5) -> None: ...

    def short(ended: Any) -> None: ...

    def nothing() -> Any: ...

    def arrays(sizes: Any) -> Any:
        return {"mean": np.zeros(sizes.users)}

    with pytest.raises(TypeError, match=r"without memory=.*nothing to write to"):
        scheduling("wrong", **WORDS, learn=lambda ended, memory: None)(fine)
    with pytest.raises(TypeError, match=r"learn is a function of \(ended, memory\), and has no"):
        scheduling("wrong", **WORDS, memory=arrays, learn=learn)(fine)
    with pytest.raises(TypeError, match=r"learn is a function of \(ended, memory\)"):
        scheduling("wrong", **WORDS, memory=arrays, learn=short)(fine)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"its memory is a function of \(sizes\)"):
        scheduling("wrong", **WORDS, memory=nothing)(fine)  # type: ignore[arg-type]
    scheduling("fine", **WORDS, memory=arrays, learn=partial(learn, decay=0.9))(fine)


def test_a_policy_takes_the_arguments_that_it_is_asked_with() -> None:
    def two(sight: Any, job: Any) -> Any: ...

    def none() -> Any: ...

    with pytest.raises(TypeError, match=r"two: a function of \(sight, job, rng\), then \* and"):
        allocation("wrong", **WORDS)(two)
    with pytest.raises(TypeError, match=r"none: a function of \(view\)"):
        scheduling("wrong", **WORDS)(none)
    with pytest.raises(TypeError, match=r"none: a function of \(queue\)"):
        discipline("wrong", **WORDS)(none)

    class Short(AllocationPolicy):
        def choose(self, sight: Any, job: Any) -> Any: ...  # type: ignore[override]

    class Forgetful(SchedulingPolicy):
        def select(self, view: Any) -> Any: ...

        def remembers(self) -> Any: ...  # type: ignore[override]

    with pytest.raises(TypeError, match=r"its choose is a function of \(self, sight, job, rng\)"):
        allocation("wrong", **WORDS)(Short)
    with pytest.raises(TypeError, match=r"its remembers is a function of \(self, sizes\)"):
        scheduling("wrong", **WORDS)(Forgetful)

    @allocation("any", **WORDS)
    def anything(*seen: Any, **more: Any) -> Any:
        return seen[0].labels[: seen[1].nodes]

    check_policy("any", new_process=False)


def test_a_class_has_the_parameters_of_its_parents_too() -> None:
    @allocation("parent", **WORDS)
    class Parent(AllocationPolicy):
        spare: int = parameter(2, least=0)

        def choose(self, sight: Any, job: Any, rng: Any) -> Any:
            return sight.labels[: job.nodes]

    @allocation("child", **WORDS)
    class Child(Parent):
        more: int = parameter(5, least=1)

    made = ALLOCATIONS.make("child", {"more": 3})
    assert (made.spare, made.more, made.name) == (2, 3, "child")
    assert [each.name for each in ALLOCATIONS["child"].parameters] == ["spare", "more"]
    assert ALLOCATIONS.make("parent").name == "parent"

    class Mixin:
        lost: int = parameter(1)

    with pytest.raises(TypeError, match="parameter lost is of Mixin, which has to be a dataclass"):

        @allocation("mixed", **WORDS)
        class Mixed(Mixin, Parent):
            pass


# -- when it is asked


def test_an_error_is_told_with_the_plug_ins_own_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "import numpy as np\nfrom odonata import allocation\n\n"
        "@allocation('wrong', about='a mistake', source='a test')\n"
        "def wrong(sight, job, rng):\n    return np.concatenate([])\n"
    )
    load_plugin(file)
    machine = Dragonfly(2, 4, 2, 9)
    sight = Sight(machine, np.ones(machine.n_nodes, bool))
    with pytest.raises(Fault, match=rf"ValueError: need at least one .* \({file}, line 6\)"):
        allocate(ALLOCATIONS.make("wrong"), sight, Request(0, 4, 0), rng_for(1, 0))


def test_what_a_policy_remembers_is_told_with_the_policy() -> None:
    def fine(view: Any) -> list[int]:
        return []

    scheduling("typo", **WORDS, memory=lambda sizes: {"mean": np.zeros(sizes.user)})(fine)
    scheduling("words", **WORDS, memory=lambda sizes: {"names": np.array(["ada"])})(fine)
    where = rf"'user' \({__file__}, line \d+\)"
    with pytest.raises(Refused, match=f"typo: what it remembers: AttributeError.*{where}"):
        check_policy("typo")
    with pytest.raises(Refused, match="words remembers names as <U3: numbers only"):
        check_policy("words")


def test_no_answer_is_told_as_that() -> None:
    @scheduling("silent", **WORDS)
    def silent(view: Any) -> Any: ...

    @discipline("mute", **WORDS)
    def mute(queue: Any) -> Any: ...

    for name, words in (("silent", "not numbers of jobs"), ("mute", "not positions in the queue")):
        with pytest.raises(
            AssertionError, match=f"scheduling {name}: it returned None, and {words}"
        ):
            check_policy(name)


def test_a_policy_that_starts_nothing_is_named() -> None:
    @scheduling("idle", **WORDS)
    def idle(view: Any) -> list[int]:
        return []

    jobs = Workload((Job(4, "incast"),), order="idle")
    network = Network(Dragonfly(2, 4, 2, 9), workload=jobs, routing="adaptive")
    with pytest.raises(Fault, match="job 0 never started: scheduling idle has left it waiting"):
        performance(network, run(network, end=None))


def test_a_routing_is_checked_with_the_parameters_that_it_has() -> None:
    asked = []

    def coin(minimal: Any, valiant: Any, threshold: Any, bias: Any, word: Any) -> bool:
        return word < threshold * 2**32  # type: ignore[no-any-return]

    routing("coin", threshold=0.25, **WORDS)(coin)
    kept = ROUTINGS["coin"].decision
    object.__setattr__(
        ROUTINGS["coin"], "decision", lambda *it: asked.append(it[2]) or kept(*it)  # type: ignore[func-returns-value, misc]
    )  # fmt: skip
    check_policy("coin", {"threshold": 0.75}, questions=2)
    assert set(asked) == {0.75}
    with pytest.raises(Refused, match="routing coin: chance: unknown; it has threshold"):
        check_policy("coin", {"chance": 0.5})
    with pytest.raises(Refused, match=r"coin: threshold = -1\.0: a number, at least 0"):
        check_policy("coin", {"threshold": -1.0})


def nonsense(task: int, tasks: int, phase: int, i: int) -> int:
    return task.nonsense  # type: ignore[attr-defined, no-any-return]


def test_a_pattern_that_cannot_be_compiled_or_asked_is_told_with_its_line() -> None:
    pattern("wrong", **WORDS)(nonsense)
    line = line_of(nonsense, "task.nonsense")
    where = rf"nonsense' .*\({__file__}, line {line}\)"
    with pytest.raises(Refused, match=f"pattern wrong, of 8 tasks: .*{where}"):
        expect(REGISTER["wrong"], 8, 1)
    with pytest.raises(AssertionError, match=f"pattern wrong, question 0: .*{where}"):
        check_policy("wrong", kind="pattern")


def test_a_time_says_what_a_file_and_what_python_gives(tmp_path: Path) -> None:
    @allocation("timed", **WORDS)
    class Timed(AllocationPolicy):
        bin: int = parameter(5, unit="time", about="width", least=1)

        def choose(self, sight: Any, job: Any, rng: Any) -> Any:
            return sight.labels[: job.nodes]

    with pytest.raises(Refused, match="'5 us': a time, at least 1; in Python, a number of ticks"):
        ALLOCATIONS.make("timed", {"bin": "5 us"})


# -- what the compiler says

MESSAGES = [
    ("nonsense' of type", "minimal.nonsense > 1"),
    ("name 'undefined' is not defined", "undefined > 1"),
    ("it allocates (a list, a dict, a text, an array)", "len([minimal, word]) > 1"),
    ("it allocates (a list, a dict, a text, an array)", "np.zeros(3)[0] > 1"),
    ("no implementation of", "max(word, 1, 'a') > 1"),
    ("missing a required argument", "helper(word)"),
    ("Untyped global name 'TABLE'", "TABLE[word] > 1"),
]


@pytest.mark.skipif(not ENABLED, reason="nothing is compiled")
@pytest.mark.parametrize(("reason", "expression"), MESSAGES)
def test_the_compilers_message_is_one_sentence(
    reason: str, expression: str, tmp_path: Path
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "import numpy as np\nTABLE = {1: 2}\n\n\n"
        f"def wrong(minimal, word):\n    return {expression}\n\n\n"
        "def outer(minimal, word):\n    return wrong(minimal, word)\n\n\n"
        "def helper(one, two):\n    return one > two\n"
    )
    names: dict[str, Any] = {}
    exec(compile(file.read_bytes(), str(file), "exec"), names)
    names["helper"] = kernel(names["helper"])
    names["wrong"] = kernel(names["wrong"])
    with pytest.raises(Refused) as refused, explaining():
        kernel(names["outer"])(1, 2)
    said = str(refused.value)
    assert reason in said
    assert "\n" not in said
    assert "\x1b" not in said
    assert said.endswith(f"({file}, line 6)")


@pytest.mark.skipif(not ENABLED, reason="nothing is compiled")
def test_a_failure_of_the_compiler_itself_is_one_sentence_and_not_one_of_the_kernel() -> None:
    def sorts(word: int) -> bool:
        return sorted((3, word))[0] > 1

    words = "a kernel cannot be compiled: Implementation function"
    with pytest.raises(Refused, match=words), explaining():
        kernel(sorts)(1)
    with pytest.raises(ZeroDivisionError), explaining():
        1 / 0  # noqa: B018


def test_a_message_of_another_form_is_not_lost() -> None:
    assert explained(ValueError("something")) == "something"
    assert explained(ValueError("")) == "no reason"
