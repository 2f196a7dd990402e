"""What a power policy answers is read in one place, which names the policy, the job and the value
where it is wrong; caps may be an array, and then no tuple is made per job."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from pdes.errors import Fault
from policies.power import Caps, Configuration, PowerPolicy, PowerView
from policies.power.base import caps
from policies.views import Budget, PowerDesk, Powered, Request, Running, Target

NOWHERE = np.zeros(0, np.int64)


class Answers(PowerPolicy):
    """Answers what it was given."""

    name = "answers"

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def caps(self, view: PowerView) -> Any:
        return self.answer


class Untouched(list[Any]):
    """The running jobs, at which nobody may look."""

    def __iter__(self) -> Any:
        raise AssertionError("a tuple per job was asked for")

    __getitem__ = __len__ = __iter__  # type: ignore[assignment]


def desk(*running: int) -> PowerDesk:
    column = np.zeros(9, np.int64)
    return PowerDesk(*[column] * 5, NOWHERE, np.array(running, np.int64))


def view(*running: int) -> PowerView:
    return PowerView(5, (), Untouched(), 2, 50.0, Budget(900.0, 800.0), desk=desk(*running))


def with_tuples(*running: int) -> PowerView:
    jobs = [Powered(Running(Request(n, 1, 0), 0, NOWHERE), Configuration(1), 0.0) for n in running]
    return view()._replace(running=jobs, desk=None)


def test_a_column_of_caps_is_for_the_running_jobs_of_the_desk_in_its_order() -> None:
    given = np.array([70.0, np.nan, math.inf])
    found = caps(Answers(Caps(given)), view(4, 2, 7))
    assert found.cap_w is given
    whole = caps(Answers(Caps(np.array([70, 0, 3]))), view(4, 2, 7)).cap_w
    assert whole.dtype == np.float64
    assert whole.tolist() == [70.0, 0.0, 3.0]
    assert caps(Answers(Caps(np.zeros(0))), view()).cap_w.shape == (0,)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (np.zeros(2), r"an array of float64 of shape \(2,\); one of float64 of shape \(3,\)"),
        (np.zeros((3, 1)), r"of shape \(3, 1\); one of float64 of shape \(3,\), as view\.desk\."),
        (np.array(["a", "b", "c"]), r"an array of <U1 of shape \(3,\)"),
        (np.zeros(3, bool), r"an array of bool of shape \(3,\)"),
        (np.zeros(3, complex), r"an array of complex128"),
        (np.array([1.0, np.nan, -2.5]), r"it caps job 7 at -2\.5 W; at least 0"),
        (np.array([1, -3, -2]), r"it caps job 2 at -3\.0 W; at least 0"),
    ],
)
def test_a_column_that_is_wrong_is_named_with_its_policy(given: Any, said: str) -> None:
    with pytest.raises(Fault, match=f"power answers: .*{said}"):
        caps(Answers(Caps(given)), view(4, 2, 7))


def test_a_column_without_a_desk_has_no_order() -> None:
    with pytest.raises(Fault, match="power answers: its caps are an array, in the order of a desk"):
        caps(Answers(Caps(np.zeros(3))), with_tuples(4, 2, 7))


@pytest.mark.parametrize("make", [list, lambda jobs: np.array(jobs, np.int64)])
@pytest.mark.parametrize("shown", [view, with_tuples])
def test_jobs_that_are_suspended_or_resumed_run_and_each_is_so_once(make: Any, shown: Any) -> None:
    found = caps(Answers(Caps({4: 60.0}, make([7]), make([2]))), shown(4, 2, 7))
    assert found == Caps({4: 60.0}, [7], [2])
    for answer, said in (
        (Caps(suspend=make([2, 8])), "it caps job 8, which does not run"),
        (Caps(resume=make([3])), "it caps job 3, which does not run"),
        (Caps({5: 1.0}), "it caps job 5, which does not run"),
        (Caps({4: -1.0}), r"it caps job 4 at -1\.0 W; at least 0"),
        (Caps({4: math.nan}), "it caps job 4 at nan W; at least 0"),
        (Caps(suspend=make([2]), resume=make([7, 2])), "it suspends or resumes job 2 twice"),
        (Caps(suspend=np.array([2.0])), r"its answer cannot be read \(caps\)"),
    ):
        with pytest.raises(Fault, match=f"power answers: {said}"):
            caps(Answers(answer), shown(4, 2, 7))


def test_a_policy_may_ask_for_a_scheduling_pass_and_by_default_does_not() -> None:
    assert caps(Answers(Caps(schedule=np.True_)), view(4)).schedule is True  # type: ignore[arg-type]
    assert caps(Answers(Caps()), view(4)).schedule is False


def test_a_target_is_the_average_moved_by_a_part_of_the_reserve() -> None:
    target = Target(1400.0, 200.0, -0.5, 3600)
    assert (target.watts, target.weights, target.error) == (1300.0, {}, 0.0)
    assert view()._replace(target=target).target is target
    assert view().target is None
