"""Power policies that are compiled: a kernel writes the caps of all running jobs into a column.

A job run asks it on its own arrays, without Python. Anywhere else it is a policy like any other:
its kernel is given the columns of the view, and its column is the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any

import numpy as np

from pdes.errors import Fault, Refused
from pdes.jit import bind, explaining, kernel, rebound
from policies.memory import Memory
from policies.parameters import check_arguments
from policies.register import described
from policies.views import Moment, PowerDesk, PowerView

Steer = Callable[[Moment, PowerDesk, tuple[Any, ...], tuple[Any, ...], Any], Any]
"""A kernel of (now, desk, memory, given, cap_w), as `PowerPolicy.steer` describes it."""


def nothing(now: Moment, desk: PowerDesk, memory: Any, given: Any, cap_w: Any) -> None:
    """Stands for the kernel of a policy, which `bind` puts in its place."""
    raise AssertionError("asked for caps without a policy")


steer: Steer = nothing


ASTRAY, UNCLEAR = -1, -2
"""What `ask` answers of a policy that wrote by the rows of jobs, and of one that returned neither
True nor False nor nothing."""


def ask(now: Moment, desk: PowerDesk, memory: Any, given: Any, column: Any) -> int:
    """Have a policy write caps to the beginning of a column that is as long as there are jobs, and
    NaN. Returns 1 if waiting jobs are to be tried, else 0; or ASTRAY or UNCLEAR."""
    count = desk.running.shape[0]
    cap_w = column[:count]
    cap_w[:] = np.nan
    tries = steer(now, desk, memory, given, cap_w)
    for i in range(count):
        row = desk.running[i]
        if row >= count and column[row] == column[row]:
            return ASTRAY
    if tries is None or tries == 0:
        return 0
    return 1 if tries == 1 else UNCLEAR


def as_kernel(
    written: Any,
    where: str,
    name: str = "steer",
    arguments: str = "now, desk, memory, given, cap_w",
) -> Any:
    """Returns what a policy's class has as `steer`, or by another name, as a kernel. Raises
    TypeError where it has other arguments."""
    check_arguments(written, arguments, f"{where}: its {name} is")
    return written if hasattr(written, "py_func") else kernel(written)


def failed(policy: Any, error: Exception) -> Fault:
    """Returns the Fault of a policy whose kernel cannot be compiled or, where it is not, failed."""
    if isinstance(error, Refused):
        return Fault(f"power {policy.name} (steer): {error}")
    return Fault(f"power {policy.name} failed (steer): {described(error)}")


def check_said(policy: Any, said: int) -> bool:
    """Returns whether waiting jobs are to be tried, by the answer of `ask`. A Fault names a policy
    that has done something else."""
    if said == ASTRAY:
        raise Fault(f"power {policy.name}: it writes caps by the rows of jobs; cap_w[i] is for "
                    "the job in row desk.running[i]")  # fmt: skip
    if said == UNCLEAR:
        raise Fault(f"power {policy.name}: its steer returns neither True nor False nor nothing")
    return said == 1


@cache
def _compiled(steer: Steer) -> Any:
    return bind(ask, "steer", steer=steer)


def _plain(steer: Steer) -> Any:
    return rebound(ask, "steer", steer=getattr(steer, "py_func", steer))


def given_of(policy: Any) -> tuple[Any, ...]:
    """Returns the parameters of a policy that are numbers or flags, in order."""
    declared = fields(policy) if is_dataclass(policy) else ()
    values = (getattr(policy, field.name) for field in declared)
    return tuple(value for value in values if not isinstance(value, str))


def arrays_of(memory: Memory | None) -> tuple[Any, ...]:
    """Returns what a policy remembers, in the order in which it was declared."""
    return () if memory is None else (*vars(memory).values(),)


def moment(view: PowerView) -> Moment:
    """Returns the numbers of a view."""
    target = view.target
    market = (np.nan, 0.0, 0.0, 0.0, 0, 0.0)
    if target is not None:
        market = (target.watts, target.average_w, target.reserve_w, target.signal, target.until,
                  target.error)  # fmt: skip
    return Moment(
        view.time, view.free, view.busy, float(view.idle_w), float(view.least_w),
        float(view.most_w), float(view.budget.cap_w), float(view.budget.measured_w), *market,
    )  # fmt: skip


def steered(policy: Any, view: PowerView, compiled: bool = True) -> tuple[Any, bool]:
    """Ask the kernel of a policy with what a view has, compiled or as Python. Returns the column of
    caps, and whether waiting jobs are to be tried."""
    desk = view.desk
    assert desk is not None
    assert desk.served is not None
    column = np.full(len(desk.nodes), np.nan)
    cap_w = column[: len(desk.running)]
    try:
        with explaining():
            said = (_compiled if compiled else _plain)(policy.steer)(
                moment(view), desk._replace(served=desk.served()), arrays_of(view.memory),
                given_of(policy), column,
            )  # fmt: skip
    except Exception as error:
        raise failed(policy, error) from error
    return cap_w, check_said(policy, said)
