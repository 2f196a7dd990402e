"""Who is tried first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdes.errors import Fault, Refused
from policies.scheduling import (
    DISCIPLINES,
    SchedulingPolicy,
    Waiting,
    discipline,
    discipline_named,
    order_of,
)

QUEUE = [Waiting(7, 8, 0), Waiting(8, 2, 5), Waiting(9, 4, 5), Waiting(10, 2, 9)]


def ask(name: str) -> list[int]:
    return order_of(discipline_named(name), QUEUE)


@pytest.fixture
def mine() -> Iterator[Any]:
    yield discipline("mine", about="a test's", source="nobody's", strict=False)
    DISCIPLINES.pop("mine", None)
    DISCIPLINES._homes.pop("mine", None)


def test_each_goes_by_its_name_and_equals_by_arrival() -> None:
    assert ask("fcfs") == [0, 1, 2, 3]
    assert ask("small-first") == [1, 3, 2, 0]
    assert ask("large-first") == [0, 2, 1, 3]


@pytest.mark.parametrize("name", DISCIPLINES)
@given(st.lists(st.integers(1, 5), max_size=12))
def test_everybody_is_tried_once(name: str, sizes: list[int]) -> None:
    waiting = [Waiting(i, nodes, 10 * i) for i, nodes in enumerate(sizes)]
    assert sorted(order_of(discipline_named(name), waiting)) == list(range(len(sizes)))


def test_nobody_passes_a_job_that_does_not_fit() -> None:
    assert all(policy.strict for policy in DISCIPLINES.values())


def test_an_unknown_name_is_refused_with_those_near_it() -> None:
    with pytest.raises(Refused, match=r"scheduling 'smal-first': one of .* did you mean small-fi"):
        discipline_named("smal-first")


@pytest.mark.parametrize("answer", [[0, 1, 2], [0, 1, 2, 2], [1, 2, 3, 4], [-1, 0, 1, 2]])
def test_a_bad_answer_names_the_discipline(mine: Any, answer: list[int]) -> None:
    mine(lambda waiting: answer)
    with pytest.raises(Fault, match=r"scheduling mine, of 4 jobs: .* each position once"):
        ask("mine")


def test_one_of_ones_own_is_a_function_or_a_class(mine: Any) -> None:
    class Backwards(SchedulingPolicy):
        def order(self, waiting: Any) -> list[int]:
            return list(range(len(waiting)))[::-1]

    mine(Backwards)
    assert ask("mine") == [3, 2, 1, 0]
    assert not discipline_named("mine").strict
