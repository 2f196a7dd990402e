"""What policies remember lies in one buffer, and nothing else is needed to go on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from pdes.errors import Fault, Refused
from policies.memory import ALIGNED, Memory, Sizes, memory_of, remembered
from policies.policy import FunctionPolicy, learn
from policies.views import Ended, Request, Running

SIZES = Sizes(jobs=3, nodes=72, groups=9, routers=36, users=2)

arrays = npst.arrays(
    st.sampled_from([np.bool_, np.int8, np.int64, np.uint16, np.float32, np.float64]),
    npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5),
)


def policy(given: Any, taught: Any = None) -> FunctionPolicy:
    return FunctionPolicy("mine", "", "", print, {}, lambda sizes: given, taught)


@given(st.lists(st.dictionaries(st.sampled_from("abcde"), arrays), max_size=3))
def test_what_is_declared_is_what_is_seen_and_what_is_written_stays(declared: list[Any]) -> None:
    buffer, layouts = remembered([policy(each) for each in declared], SIZES)
    again, _ = remembered([policy(each) for each in declared], SIZES)
    assert buffer.dtype == np.uint8
    assert buffer.tobytes() == again.tobytes()
    for fresh, layout in zip(declared, layouts, strict=True):
        memory = memory_of(layout, buffer)
        assert (memory is None) == (not fresh)
        for name, array in fresh.items():
            seen = getattr(memory, name)
            assert seen.dtype == array.dtype
            assert seen.shape == array.shape
            assert seen.tobytes() == array.tobytes()
            assert seen.ctypes.data % ALIGNED == 0 or not seen.size
            seen[...] = 1
    for fresh, layout in zip(declared, layouts, strict=True):
        for name in fresh:
            assert (getattr(memory_of(layout, buffer), name) == 1).all()


def test_assigning_writes_into_the_array_and_nothing_else_can_be_kept() -> None:
    buffer, (layout,) = remembered([policy({"count": np.zeros(2, np.int64), "sum": 0.0})], SIZES)
    memory = memory_of(layout, buffer)
    assert memory is not None
    memory.count[1] += 3
    memory.count = memory.count + 1
    memory.sum = 2.5
    after: Any = memory_of(layout, buffer)
    assert after.count.tolist() == [1, 4]
    assert float(after.sum) == 2.5
    with pytest.raises(AttributeError, match=r"memory\.total: no such array was declared; memory"):
        memory.total = 1
    with pytest.raises(AttributeError, match=r"memory\.total: no such array was declared"):
        _ = memory.total


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"users": np.array(["ada"])}, "mine remembers users as <U3: numbers only"),
        ({"seen": np.array([{}])}, "mine remembers seen as object: numbers only"),
        ({"my count": np.zeros(1)}, "mine remembers 'my count': a name, as of a variable"),
        ({"__dict__": np.zeros(1)}, "mine remembers '__dict__': a name"),
    ],
)
def test_what_cannot_be_kept_is_refused(given: Any, words: str) -> None:
    with pytest.raises(Refused, match=words.replace("(", r"\(")):
        remembered([policy(given)], SIZES)


def test_learning_is_for_those_that_remember_and_a_failure_names_the_policy() -> None:
    ended = Ended(Request(2, 4, 100, 50), 130, 160, np.arange(4))
    buffer, (layout,) = remembered([policy({"wait": 0})], SIZES)
    memory = memory_of(layout, buffer)
    learn("allocation", policy({}, lambda ended, memory: 1 / 0), ended, None)
    learn("allocation", policy({}, lambda e, m: setattr(m, "wait", e.wait)), ended, memory)
    assert memory is not None
    assert memory.wait == 30
    with pytest.raises(Fault, match="allocation mine failed to learn from job 2: ZeroDivisionErr"):
        learn("allocation", policy({}, lambda ended, memory: 1 / 0), ended, memory)


def test_a_running_job_has_a_requested_end_if_it_named_a_time() -> None:
    labels = np.arange(4)
    assert Running(Request(0, 4, 0, 50), 130, labels).requested_end == 180
    assert Running(Request(0, 4, 0), 130, labels).requested_end is None


def test_a_memory_says_what_it_has() -> None:
    buffer, (layout,) = remembered([policy({"a": 0, "b": 0})], SIZES)
    assert layout is not None
    assert repr(Memory(layout, buffer)) == "memory of a, b"
