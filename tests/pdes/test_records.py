"""A record is to kernels what the tuple is to Python, and what does not fit it is refused."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from pdes import jit
from pdes.jit import entry, kernel, record


@record
class Inner(NamedTuple):
    table: Any
    factor: int


@record
class Outer(NamedTuple):
    small: Any
    wanted: bool
    inner: Inner
    share: float
    numbers: Any


class Unmarked(NamedTuple):
    small: Any
    wanted: bool
    inner: Inner
    share: float
    numbers: Any


@kernel
def weighed(outer: Any, row: int) -> Any:
    inner = outer.inner
    return outer.numbers[row] + inner.table[row, 1] * inner.factor


@entry
def noted(outer: Any, row: int) -> Any:
    total = weighed(outer, row)
    if outer.wanted:
        total += outer.share
    outer.small[row] = total
    return total


def content(wanted: bool) -> tuple[Any, ...]:
    inner = Inner(np.arange(10, dtype=np.uint64).reshape(5, 2), 3)
    return np.zeros(5, np.int32), wanted, inner, 0.5, np.linspace(0, 1, 5)


@pytest.mark.parametrize("wanted", [True, False])
def test_a_kernel_reads_and_writes_a_record_as_python_does(wanted: bool) -> None:
    marked, unmarked = Outer(*content(wanted)), Unmarked(*content(wanted))
    expected = 0.25 + 3 * 3 + 0.5 * wanted
    assert noted(marked, 1) == noted(unmarked, 1) == expected
    assert marked.small.tolist() == unmarked.small.tolist() == [0, int(expected), 0, 0, 0]


@pytest.mark.skipif(not jit.ENABLED, reason="Python does not look at types")
def test_an_array_of_another_type_is_refused_by_what_was_compiled_for_the_first() -> None:
    outer = Outer(*content(True))
    compiled = jit.direct(noted, outer, 1)
    assert compiled(outer, 1) == 9.75
    for other in (outer.small.astype(np.int64), 7):
        with pytest.raises(TypeError, match=r"an array of Outer.* has another type"):
            compiled(outer._replace(small=other), 1)
    wrong = outer._replace(inner=outer.inner._replace(table=outer.small))
    with pytest.raises(TypeError, match="another type"):
        compiled(wrong, 1)


@pytest.mark.skipif(not jit.ENABLED, reason="it is about numba")
def test_a_function_of_the_users_own_may_take_a_record_and_call_its_kernels() -> None:
    import numba

    @numba.njit  # type: ignore[untyped-decorator]
    def own(outer: Any) -> Any:
        return weighed(outer, 1), outer.numbers

    outer = Outer(*content(True))
    for _ in range(3):
        value, numbers = own(outer)
        assert value == 9.25
        assert numbers is outer.numbers or np.shares_memory(numbers, outer.numbers)
