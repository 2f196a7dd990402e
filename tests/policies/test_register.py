"""One register for all kinds: parameters, plug-ins by file, and what stands for a missing one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pdes.errors import Refused
from policies import register as registers
from policies.allocation import ALLOCATIONS, AllocationPolicy, allocation
from policies.parameters import parameter
from policies.register import (
    ENVIRONMENT,
    KINDS,
    PLUGINS,
    REGISTERS,
    load_plugin,
    placeholder,
    register,
)
from policies.routing import ROUTINGS
from policies.scheduling import SCHEDULINGS, discipline
from policies.testing import check_policy

WORDS = {"about": "a test's", "source": "nobody's"}
REMEMBERING = ("conservative", "fair-share", "spf", "lpf", "price-aware", "carbon-aware")
MINE = """
from odonata import allocation, discipline, routing

@allocation("mine", about="the last idle nodes", source="ours")
def last(sight, job, rng, *, skip=0):
    return sight.labels[::-1][skip : skip + job.nodes]

@discipline("mine", about="the widest first", source="ours")
def widest(queue):
    return sorted(range(len(queue)), key=lambda i: -queue[i].nodes)

@routing("mine", sees="port", about="the emptier port", source="ours")
def emptier(minimal, valiant, threshold, bias, word):
    return valiant.queued < minimal.queued
"""


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = {kind: dict(each) for kind, each in REGISTERS.items()}
    loaded = dict(PLUGINS)
    monkeypatch.setenv(ENVIRONMENT, "")
    yield
    for kind, each in REGISTERS.items():
        each.clear()
        each.update(before[kind])
    PLUGINS.clear()
    PLUGINS.update(loaded)


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(MINE)
    return path


# -- entries


def test_every_kind_has_one_register() -> None:
    assert tuple(REGISTERS) == KINDS
    assert register("allocation") is ALLOCATIONS
    assert register("scheduling") is SCHEDULINGS
    assert register("routing") is ROUTINGS


def test_every_built_in_policy_says_what_it_is_and_comes_from_no_plug_in() -> None:
    for each in (ALLOCATIONS, SCHEDULINGS, ROUTINGS):
        for name, entry in each.items():
            assert entry.name == name
            assert entry.kind == each.kind
            assert entry.about
            assert entry.source
            assert entry.home.startswith("policies.")
            assert not entry.plugin
            assert entry.memory == (name in REMEMBERING)


def test_a_routing_tells_its_parameters() -> None:
    threshold, bias = ROUTINGS["ugal-l"].parameters
    assert (threshold.name, threshold.default, threshold.type) == ("threshold", 2.0, float)
    assert (bias.name, bias.default, bias.unit) == ("bias", 4, "packets")
    assert ROUTINGS["ugal-l"].threshold == 2.0
    assert ROUTINGS["ugal-l"].bias == 4
    assert [each.name for each in ROUTINGS["adaptive"].parameters] == ["threshold"]
    assert ROUTINGS["minimal"].parameters == ()
    assert (ROUTINGS["minimal"].threshold, ROUTINGS["minimal"].bias) == (1.0, 0)


# -- parameters


@dataclass(frozen=True)
class Wide(AllocationPolicy):
    """With every kind of parameter."""

    width: int = parameter(4, unit="nodes", about="of a block", least=1, most=64)
    share: float = 0.5
    after: int = parameter(1000, unit="time", about="before it widens")
    snug: bool = False
    how: str = "left"

    def __post_init__(self) -> None:
        if self.how not in ("left", "right"):
            raise ValueError(f"how = {self.how!r}: left or right")

    def choose(self, sight: Any, job: Any, rng: Any) -> Any:
        return sight.labels[: job.nodes]


def test_a_class_has_its_fields_as_parameters() -> None:
    allocation("wide", **WORDS)(Wide)
    entry = ALLOCATIONS["wide"]
    assert [(each.name, each.type, each.default, each.unit) for each in entry.parameters] == [
        ("width", int, 4, "nodes"), ("share", float, 0.5, ""), ("after", int, 1000, "time"),
        ("snug", bool, False, ""), ("how", str, "left", ""),
    ]  # fmt: skip
    made = ALLOCATIONS.make("wide", {"width": 8, "share": 1})
    assert made == Wide(width=8, share=1.0)
    assert isinstance(made.share, float)
    assert ALLOCATIONS.make("wide", (("how", "right"),)).how == "right"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"width": "8"}, "allocation wide: width = '8': a whole number of nodes, 1 .. 64"),
        ({"width": 0}, "allocation wide: width = 0: a whole number of nodes, 1 .. 64"),
        ({"width": 65}, "allocation wide: width = 65: a whole number of nodes, 1 .. 64"),
        ({"width": True}, "allocation wide: width = True: a whole number of nodes"),
        ({"width": 2.0}, "allocation wide: width = 2.0: a whole number of nodes"),
        ({"share": "x"}, "allocation wide: share = 'x': a number"),
        ({"share": float("nan")}, "allocation wide: share = nan: a number"),
        ({"after": 1.5}, "allocation wide: after = 1.5: a time"),
        ({"snug": 1}, "allocation wide: snug = 1: true or false"),
        ({"how": 3}, "allocation wide: how = 3: text"),
        ({"how": "up"}, "allocation wide: how = 'up': left or right"),
        ({"widht": 3}, "allocation wide: widht: unknown; it has width, share, after, snug, how; "
                       "did you mean width"),
    ],
)  # fmt: skip
def test_a_parameter_that_cannot_be_is_refused_with_what_is_accepted(
    values: dict[str, Any], words: str
) -> None:
    allocation("wide", **WORDS)(Wide)
    with pytest.raises(Refused) as refusal:
        ALLOCATIONS.make("wide", values)
    assert str(refusal.value).startswith(words)


def test_a_policy_without_parameters_says_so() -> None:
    with pytest.raises(Refused, match="allocation simple: width: unknown; it has no parameters"):
        ALLOCATIONS.make("simple", {"width": 1})


def test_a_function_has_its_keyword_only_arguments_as_parameters() -> None:
    @discipline("shifted", **WORDS)
    def shifted(queue: Any, *, by: int = parameter(1, about="positions", least=0)) -> list[int]:
        return [(i + by) % len(queue) for i in range(len(queue))]

    assert SCHEDULINGS["shifted"].parameters[0].about == "positions"
    assert SCHEDULINGS.make("shifted").order("abc") == [1, 2, 0]
    assert SCHEDULINGS.make("shifted", {"by": 2}).order("abc") == [2, 0, 1]


def test_a_parameter_needs_a_default_that_can_be_written_in_a_file() -> None:
    with pytest.raises(ValueError, match="bad: parameter x needs a default that is bool, int"):

        @discipline("bad", **WORDS)
        def bad(queue: Any, *, x: Any = None) -> list[int]:
            return []


def test_a_function_declares_memory_in_the_decorator_and_a_class_in_itself() -> None:
    with pytest.raises(TypeError, match=r"a class declares its memory by remembers\(\)"):
        allocation("wide", memory=lambda sizes: {"x": np.zeros(1)}, **WORDS)(Wide)

    @allocation("recalling", memory=lambda sizes: {"x": np.zeros(1)}, **WORDS)
    def recalling(sight: Any, job: Any, rng: Any) -> Any:
        return sight.labels[: job.nodes]

    @allocation("learned", **WORDS)
    class Learned(Wide):
        def remembers(self, sizes: Any) -> Any:
            return {"x": np.zeros(sizes.jobs)}

    assert ALLOCATIONS["recalling"].memory
    assert ALLOCATIONS["learned"].memory


# -- plug-ins by file


def test_a_file_makes_its_policies_known(mine: Path) -> None:
    plugin = load_plugin(mine)
    kinds = ("allocation", "scheduling", "routing")
    assert plugin.registered == tuple((kind, "mine") for kind in kinds)
    assert (plugin.name, plugin.path, len(plugin.sha256)) == ("mine", mine, 64)
    for kind in kinds:
        assert register(kind).known("mine")
        assert register(kind)["mine"].plugin == str(mine)
        assert check_policy("mine", kind=kind).questions == 60
    assert [each.path for each in PLUGINS.values()] == [mine]


def test_a_second_load_does_nothing_and_an_edited_file_replaces_its_policies(mine: Path) -> None:
    first = load_plugin(mine)
    entry = ALLOCATIONS["mine"]
    assert load_plugin(str(mine)) is first
    assert ALLOCATIONS["mine"] is entry
    mine.write_text(MINE.replace('"mine", about="the widest', '"wider", about="the widest'))
    second = load_plugin(mine)
    assert second.sha256 != first.sha256
    assert SCHEDULINGS.known("wider")
    assert not SCHEDULINGS.known("mine")
    assert ALLOCATIONS["mine"] is not entry


def test_its_module_is_named_by_content_and_not_by_place(mine: Path, tmp_path: Path) -> None:
    """Else kernels would be compiled again wherever it lies."""
    first = load_plugin(mine)
    (tmp_path / "elsewhere").mkdir()
    moved = mine.rename(tmp_path / "elsewhere" / "mine.py")
    assert load_plugin(moved).module == first.module
    assert ALLOCATIONS["mine"].home == f"{first.module}.last"
    assert ALLOCATIONS["mine"].plugin == str(moved)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\n1 / 0", "line 2: ZeroDivisionError: division by zero"),
        ("x = 1\n\nif x\n  2", "line 3: SyntaxError: expected ':'"),
        ("import nowhere_at_all", "line 1: ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("import sys\nsys.exit(3)", "line 2: SystemExit: 3"),
        ("x = 1", "mine.py: it registers nothing; write @allocation(...), for example, above"),
        (MINE.replace('allocation("mine"', 'allocation("simple"'),
         "line 4: ValueError: allocation 'simple' is taken by policies.allocation.compact.simple"),
        (f"{MINE}\n1 / 0", "ZeroDivisionError"),
        ("\0", "source code string cannot contain null bytes"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_imported_is_refused_with_the_line_and_leaves_nothing(
    mine: Path, text: str, words: str
) -> None:
    before = {kind: dict(each) for kind, each in REGISTERS.items()}
    mine.write_text(text)
    with pytest.raises(Refused) as refusal:
        load_plugin(mine)
    assert str(refusal.value).startswith(f"plug-in {mine}")
    assert words in str(refusal.value)
    assert before == REGISTERS
    assert not PLUGINS


@pytest.mark.parametrize(
    ("text", "words"), [("1 / 0", "line 1: ZeroDivisionError"), ("x = 1", "it registers nothing")]
)
def test_a_broken_edit_keeps_what_was_there(mine: Path, text: str, words: str) -> None:
    load_plugin(mine)
    entry = ALLOCATIONS["mine"]
    mine.write_text(text)
    with pytest.raises(Refused, match=words):
        load_plugin(mine)
    assert ALLOCATIONS["mine"] is entry


def test_a_file_is_compiled_by_its_own_rules(mine: Path) -> None:
    """And not with the `from __future__` lines of the module that loads it."""
    mine.write_text(f"def f(x: int): pass\nassert f.__annotations__ == {{'x': int}}\n{MINE}")
    load_plugin(mine)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"plug-in .*none\.py: No such file or directory"):
        load_plugin(tmp_path / "none.py")
    with pytest.raises(Refused, match=r"plug-in .*: Is a directory"):
        load_plugin(tmp_path)


def test_two_files_cannot_have_the_same_name(mine: Path, tmp_path: Path) -> None:
    load_plugin(mine)
    other = tmp_path / "other.py"
    other.write_text(MINE)
    with pytest.raises(Refused, match=rf"allocation 'mine' is taken by {mine}: choose"):
        load_plugin(other)


def test_processes_that_are_started_afterwards_know_it(mine: Path) -> None:
    load_plugin(mine)
    code = (
        "from policies.scheduling import SCHEDULINGS as d\n"
        "assert d.make('mine').order([]) == [] and d['mine'].plugin"
    )
    subprocess.run([sys.executable, "-c", code], env=os.environ, check=True)


def test_built_in_policies_stay_built_in_when_a_plug_in_imports_them_first(mine: Path) -> None:
    code = (
        f"from policies.register import load_plugin; p = load_plugin({str(mine)!r})\n"
        "from policies.allocation import ALLOCATIONS as a\n"
        "assert len(p.registered) == 3, p.registered\n"
        "assert a['mine'].plugin and not a['simple'].plugin"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_a_package_brings_is_told_by_its_distribution(
    monkeypatch: pytest.MonkeyPatch, mine: Path
) -> None:
    class Point:
        name, value = "theirs", "their.module"
        dist = type("Dist", (), {"name": "their-policies"})

        def load(self) -> None:
            @allocation("theirs", **WORDS)
            def theirs(sight: Any, job: Any, rng: Any) -> Any:
                return sight.labels[: job.nodes]

    monkeypatch.setattr(registers, "entry_points", lambda group: [Point()])
    monkeypatch.setattr(ALLOCATIONS, "_loaded", False)
    assert ALLOCATIONS.named("theirs").plugin == "their-policies"


# -- what stands for a missing one


@pytest.mark.parametrize("kind", ["allocation", "scheduling"])
def test_a_placeholder_has_a_name_and_refuses_to_be_made(kind: str) -> None:
    entry = placeholder(kind, "gone")
    assert (entry.name, entry.about) == ("gone", "its plug-in is missing")
    assert "gone" in register(kind)
    assert not register(kind).known("gone")
    assert register(kind).named("gone") is entry
    with pytest.raises(Refused, match=f"{kind} gone: its plug-in is missing; give it with --plug"):
        register(kind).make("gone", {"any": 1})


def test_a_routing_that_is_missing_refuses_to_route() -> None:
    entry: Any = placeholder("routing", "gone")
    assert not entry.always_minimal
    with pytest.raises(Refused, match="routing gone: its plug-in is missing"):
        _ = entry.non_minimal


def test_a_placeholder_gives_way_to_the_plug_in_and_is_none_for_what_is_there(mine: Path) -> None:
    placeholder("allocation", "mine")
    load_plugin(mine)
    assert ALLOCATIONS.known("mine")
    assert placeholder("allocation", "mine") is ALLOCATIONS["mine"]
    assert not placeholder("allocation", "simple").missing
