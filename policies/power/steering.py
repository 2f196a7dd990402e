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

from pdes.jit import bind, explaining, kernel
from policies.memory import Memory
from policies.parameters import check_arguments
from policies.views import Moment, PowerDesk, PowerView

Steer = Callable[[Moment, PowerDesk, tuple[Any, ...], tuple[Any, ...], Any], Any]
"""A kernel of (now, desk, memory, given, cap_w), as `PowerPolicy.steer` describes it."""


def nothing(now: Moment, desk: PowerDesk, memory: Any, given: Any, cap_w: Any) -> None:
    """Stands for the kernel of a policy, which `bind` puts in its place."""
    raise AssertionError("asked for caps without a policy")


steer: Steer = nothing


def ask(now: Moment, desk: PowerDesk, memory: Any, given: Any, cap_w: Any) -> int:
    """Have a policy write caps to a column. Returns 1 if waiting jobs are to be tried, else 0."""
    cap_w[:] = np.nan
    return 1 if steer(now, desk, memory, given, cap_w) else 0


def as_kernel(written: Any, where: str) -> Steer:
    """Returns what a policy's class has as `steer`, as a kernel. Raises TypeError where it has
    other arguments."""
    check_arguments(written, "now, desk, memory, given, cap_w", f"{where}: its steer is")
    return written if hasattr(written, "py_func") else kernel(written)  # type: ignore[no-any-return]


@cache
def _asked(steer: Steer) -> Any:
    return bind(ask, "steer", steer=steer)


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
    cap_w = np.full(len(desk.running), np.nan)
    asked = (moment(view), desk._replace(served=desk.served()), arrays_of(view.memory),
             given_of(policy), cap_w)  # fmt: skip
    if not compiled:
        return cap_w, bool(getattr(policy.steer, "py_func", policy.steer)(*asked))
    with explaining():
        return cap_w, bool(_asked(policy.steer)(*asked))
