"""What a sweep varies: from the shell, and from the section [sweep] of a file."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odonata.sweeps.axes import Wanted, axes_of, label_of, of_file, of_shell, spread, toml


def wanted(text: str) -> Wanted:
    problems: list[str] = []
    found = of_file(tomllib.loads(text), "mine.toml", problems)
    assert problems == []
    return found


def wrong(text: str) -> str:
    problems: list[str] = []
    of_file(tomllib.loads(text), "mine.toml", problems)
    (line,) = problems
    assert line.startswith("mine.toml: sweep")
    return line


def test_several_values_of_a_key_are_an_axis_and_one_is_a_change() -> None:
    axes, changes = of_shell(["network.routing=minimal,par", "run.seed=3", "machine.groups = 5,9"])
    assert changes == ["run.seed=3"]
    assert [(axis.name, axis.labels) for axis in axes] == [
        ("network.routing", ("minimal", "par")), ("machine.groups", ("5", "9"))]  # fmt: skip
    assert axes[0].values[1].changes == ("network.routing=par",)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,2,3", ["1", "2", "3"]),
        ("0.1:0.5:0.2", ["0.1", "0.3", "0.5"]),
        ("1:9:4", ["1", "5", "9"]),
        ("0.1:0.3:0.1,0.9", ["0.1", "0.2", "0.3", "0.9"]),
        ("4 KiB,8 KiB", ["4 KiB", "8 KiB"]),
        ('"a,b",c', ['"a,b"', "c"]),
        ("[1,2],[3]", ["[1,2]", "[3]"]),
        ('{name="nedd",count=2},simple', ['{name="nedd",count=2}', "simple"]),
        ("", []),
        ("a,,b", ["a", "b"]),
        ("9:1:1", ["9:1:1"]),
        ("Bob's,Eve's", ["Bob's", "Eve's"]),
        (r'"a\",b",c', [r'"a\",b"', "c"]),
        (r"'a\',b", [r"'a\'", "b"]),
    ],
)
def test_a_text_is_split_at_commas_and_ranges(text: str, values: list[str]) -> None:
    assert [*spread(text)] == values


@given(st.integers(1, 900), st.integers(0, 50), st.sampled_from((1, 10, 100, 1000)))
def test_a_range_has_its_ends_and_even_steps(first: int, steps: int, per_unit: int) -> None:
    last, step = first + steps * 7, 7
    text = ":".join(f"{number / per_unit:.3f}" for number in (first, last, step))
    found = [float(value) for value in spread(text)]
    assert found == pytest.approx([(first + n * 7) / per_unit for n in range(steps + 1)])


def test_a_file_names_keys_and_sets_of_changes() -> None:
    found = wanted("""
    [sweep]
    seeds = 5
    figures = ["throughput"]
    network.routing = ["minimal", "par"]
    "scheduler.allocation" = ["simple", { name = "nedd", count = 2 }]
    [sweep.sharing]
    alone = { "jobs[1]" = "none", network.bias = "1 KiB" }
    shared = {}
    """)
    assert (found.seeds, found.figures) == (5, ("throughput",))
    assert [(axis.name, axis.labels) for axis in found.axes] == [
        ("network.routing", ("minimal", "par")),
        ("scheduler.allocation", ("simple", "nedd count=2")),
        ("sharing", ("alone", "shared")),
    ]
    assert found.axes[2].values[0].changes == ('jobs[1]="none"', 'network.bias="1 KiB"')
    assert found.axes[2].values[1].changes == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("sweep = 3", "a section"),
        ("[sweep]\nseeds = 0", "how many"),
        ("[sweep]\nseeds = true", "how many"),
        ('[sweep]\nfigures = "throughput"', "a list of figures"),
        ('[sweep]\ninterval = "normal"', "one of t, bootstrap"),
        ("[sweep]\nconfidence = 95", "above 0 and below 1"),
        ("[sweep]\nagainst = 1", "an axis and one of its labels"),
        ("[sweep]\nmachine.groups = 3", "a list of the values"),
        ("[sweep]\nmachine.groups = []", "values that differ"),
        ("[sweep]\nmachine.groups = [3, 3]", "values that differ"),
        ("[sweep.sharing]\nalone = 3", "a table of labels"),
    ],
)
def test_what_no_sweep_can_be_is_named(text: str, said: str) -> None:
    assert said in wrong(text)


values = st.recursive(
    st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=9)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text("ab.", max_size=3), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@given(values)
def test_what_is_written_as_toml_is_read_back(value: Any) -> None:
    assert tomllib.loads(f"value = {toml(value)}") == {"value": value}


def test_labels_are_short() -> None:
    assert label_of({"name": "nedd", "count": 2}) == "nedd count=2"
    assert label_of(True) == "true"
    assert label_of([1, 2]) == "[1, 2]"


def test_axes_of_a_program_are_those_of_a_file() -> None:
    problems: list[str] = []
    (axis,) = axes_of({"network.routing": ["minimal", "par"]}, "axes", problems)
    assert (axis.labels, problems) == (("minimal", "par"), [])
