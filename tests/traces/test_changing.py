"""Changes to a trace."""

from __future__ import annotations

import math

import numpy as np
import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st

from odonata.traces import changing
from odonata.traces.trace import UNKNOWN, Account, Trace
from pdes.errors import Refused

SECOND = 10**6


def trace(
    submit: list[int], run: list[int], nodes: list[int], machine: int | None = 64
) -> Trace:  # fmt: skip
    count = len(submit)
    zeros = np.zeros(count, np.int64)
    return Trace("some", np.arange(count), np.array(submit) * SECOND, np.array(run) * SECOND,
                 np.array(nodes), zeros + UNKNOWN, zeros, zeros, zeros, zeros + UNKNOWN,
                 machine_nodes=machine, account=Account(count + 1, {"bad": 1}))  # fmt: skip


SOME = trace([10, 20, 20, 50], [5, 0, 7, 100], [1, 2, 64, 65])


def kept(made: Trace) -> list[int]:
    return made.number.tolist()


def test_the_first_jobs_are_the_first() -> None:
    made = changing.first(SOME, 2)
    assert kept(made) == [0, 1]
    assert made.account == Account(5, {"bad": 1, "not among the first 2": 2})
    assert changing.first(SOME, 99).account == SOME.account
    with pytest.raises(Refused, match="the first 0 jobs of some: at least 1"):
        changing.first(SOME, 0)


def test_jobs_larger_than_the_machine_are_dropped_by_reason() -> None:
    made = changing.limited(SOME, 64)
    assert kept(made) == [0, 1, 2]
    assert made.account.dropped == {"bad": 1, "larger than the machine of 64 nodes": 1}
    with pytest.raises(Refused, match=r"some: no job is left of 4 \(.*4 dropped: larger than"):
        changing.limited(SOME, 0)


def test_a_stretch_of_time_has_a_beginning_but_not_its_end() -> None:
    assert kept(changing.between(SOME, 20 * SECOND, 50 * SECOND)) == [1, 2]
    assert kept(changing.between(SOME, 0, 51 * SECOND)) == [0, 1, 2, 3]
    assert changing.between(SOME, 20 * SECOND, 21 * SECOND).submit_us[0] == 20 * SECOND
    with pytest.raises(Refused, match="not submitted between 60 s and 90 s"):
        changing.between(SOME, 60 * SECOND, 90 * SECOND)


def test_a_trace_can_begin_at_zero() -> None:
    assert (changing.from_zero(SOME).submit_us // SECOND).tolist() == [0, 10, 10, 40]


@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 10**5), st.integers(1, 100)),
             min_size=2, max_size=20),
    st.floats(0.01, 5),
)  # fmt: skip
@examples(25)
def test_a_rescaled_trace_has_the_load_that_was_asked_for(
    rows: list[tuple[int, int, int]], load: float
) -> None:
    submit, run, nodes = (list(column) for column in zip(*sorted(rows), strict=True))
    submit[-1] += 1
    source = trace(submit, run, nodes)
    made = changing.rescaled(source, load, 128)
    assert made.load(128) == pytest.approx(load, rel=1e-2 if made.span_us < 10**6 else 1e-5)
    assert made.submit_us[0] == source.submit_us[0]
    assert np.array_equal(made.run_us, source.run_us)
    assert made.account == source.account


@pytest.mark.parametrize("load", [0.0, -1.0, math.nan, math.inf])
def test_a_load_that_is_none_is_refused(load: float) -> None:
    with pytest.raises(Refused, match="a number above 0 is needed"):
        changing.rescaled(SOME, load, 64)


def test_a_trace_that_has_no_load_cannot_be_rescaled() -> None:
    with pytest.raises(Refused, match="all jobs are submitted together"):
        changing.rescaled(trace([5, 5], [1, 1], [1, 1]), 0.5, 64)
    with pytest.raises(Refused, match="all run times are 0"):
        changing.rescaled(trace([5, 6], [0, 0], [1, 1]), 0.5, 64)
    with pytest.raises(Refused, match="more than 1,000 years"):
        changing.rescaled(SOME, 1e-12, 64)
    with pytest.raises(Refused, match="ask for a lower load"):
        changing.rescaled(SOME, 1e12, 64)
    with pytest.raises(Refused, match="at least 1"):
        changing.rescaled(SOME, 0.5, 0)


def test_sizes_keep_their_share_of_another_machine_rounded_up() -> None:
    made = changing.onto(SOME, 16)
    assert made.nodes.tolist() == [1, 1, 16, 17]
    assert made.machine_nodes == 16
    assert changing.onto(SOME, 6400).nodes.tolist() == [100, 200, 6400, 6500]
    assert changing.onto(SOME, 64).nodes.tolist() == SOME.nodes.tolist()


def test_the_size_of_the_old_machine_must_be_known() -> None:
    lacking = trace([1], [1], [40], machine=None)
    with pytest.raises(Refused, match=r"some: .*give that size \(the largest job has 40 nodes\)"):
        changing.onto(lacking, 16)
    assert changing.onto(lacking, 16, of=80).nodes.tolist() == [8]
    with pytest.raises(Refused, match="a machine of 0 nodes"):
        changing.onto(SOME, 0)


def test_requested_times_that_lack_are_the_run_times() -> None:
    source = SOME.where(slice(None), requested_us=np.array([UNKNOWN, UNKNOWN, 3, 4]))
    made = changing.filled(source)
    assert made.requested_us.tolist() == [5 * SECOND, 1, 3, 4]
    assert made.account == Account(5, {"bad": 1}, {"no requested time: the run time is taken": 2})
    assert changing.filled(made).account == made.account
