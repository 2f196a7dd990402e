"""The queue against heapq, on anything."""

from __future__ import annotations

import heapq

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdes.events import FOREVER
from pdes.queue import CAPACITY, EventQueue, rows_of

words = st.integers(0, 3)
times = st.one_of(
    st.integers(0, 5), st.integers(0, 10**4), st.integers(0, 10**9), st.integers(0, 2**62)
)
events = st.tuples(times, words, words, words)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("push"), st.lists(events, max_size=40)),
        st.tuples(st.just("take"), st.integers(0, 40)),
        st.tuples(st.just("retune"), st.integers(0, 40)),
    ),
    max_size=30,
)


@given(steps, st.integers(1, 20))
def test_any_interleaving_comes_out_as_from_heapq(
    interleaving: list[tuple[str, object]], capacity: int
) -> None:
    queue, heap, now = EventQueue(capacity), [], 0
    for what, how in interleaving:
        if what == "push":
            assert isinstance(how, list)
            later = [(max(t, now), *rest) for t, *rest in how]
            queue.extend(rows_of(later))
            for event in later:
                heapq.heappush(heap, event)
        elif what == "take":
            assert isinstance(how, int)
            taken = [tuple(row) for row in queue.take(how).tolist()]
            assert taken == [heapq.heappop(heap) for _ in range(min(how, len(heap)))]
            now = taken[-1][0] if taken else now
        else:
            assert isinstance(how, int)
            queue._tune(float(2**how))
        queue.check()
        assert len(queue) == len(heap)
        assert queue.next_time() == (heap[0][0] if heap else FOREVER)
    assert [tuple(row) for row in queue.pending().tolist()] == sorted(heap)


@given(st.lists(events, max_size=200))
def test_events_of_one_instant_come_out_in_row_order(rows: list[tuple[int, ...]]) -> None:
    queue = EventQueue()
    queue.extend(rows_of([(7, *rest) for _, *rest in rows]))
    assert queue.take(len(rows)).tolist() == sorted([7, *rest] for _, *rest in rows)


@given(st.lists(events, min_size=1, max_size=100))
def test_an_event_earlier_than_the_day_that_is_due_still_comes_first(
    rows: list[tuple[int, int, int, int]],
) -> None:
    """A rank that looked far ahead receives events from others that come before."""
    queue = EventQueue()
    queue.push(2**62 + 1)
    assert queue.next_time() == 2**62 + 1
    queue.extend(rows_of(rows))
    queue.check()
    assert [tuple(r) for r in queue.take(len(rows)).tolist()] == sorted(rows)


def test_a_queue_for_sixteen_grows_to_a_million() -> None:
    queue = EventQueue(16)
    rng = np.random.default_rng(3)
    for _ in range(100):
        rows = rng.integers(0, 10**12, (10_000, 4))
        queue.extend(rows)
    assert len(queue) == 1_000_000
    assert queue.cells.ctl[CAPACITY] >= 1_000_000
    queue.start(0)
    taken = queue.take(1_000_000)
    assert (np.diff(taken[:, 0]) >= 0).all()
    assert len(queue) == 0


def test_the_days_follow_the_density_of_events() -> None:
    """A thousand times denser or sparser events still find about two to a day."""
    from pdes.queue import SHIFT

    for gap in (1_000, 1_000_000, 1_000_000_000):
        queue = EventQueue()
        rng = np.random.default_rng(5)
        now = 0
        queue.extend(rows_of([(int(t), 0, 0, 0) for t in rng.integers(0, gap * 64, 64)]))
        for _ in range(6000):
            now = int(queue.take(1)[0, 0])
            queue.push(now + int(rng.exponential(gap * 64)))
            queue.settle(now)
        assert gap / 2 <= 2 ** int(queue.cells.ctl[SHIFT]) <= gap * 8


def test_a_broken_queue_is_noticed() -> None:
    queue = EventQueue()
    queue.extend(rows_of([(5, 0, 0, 0), (3, 0, 0, 0), (4, 0, 0, 0)]))
    assert queue.next_time() == 3
    queue.cells.due[0, 0] = 2**40
    with pytest.raises(AssertionError):
        queue.check()
