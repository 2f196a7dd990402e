"""Which jobs of a trace a power policy can run at all, and which of them it can mold.

A job that could not even start on a machine that is otherwise idle, under the highest cap that is
still to come when it is submitted, would wait for ever. It is dropped before the run and counted,
as one is that needs more nodes than there are; so one such job does not keep a run from ending.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from policies.power import Choices, PowerPolicy, PowerView
from policies.views import Budget, Request

if TYPE_CHECKING:
    from odonata.cluster.model import Cluster

NAMED = 5
"""The most jobs of a kind that are named by their numbers."""
Flags = npt.NDArray[np.bool_]


def admitted(model: Cluster) -> Cluster:
    """Returns a machine that runs the jobs of a trace without those that its power policy can never
    start. What is dropped, and what runs as it was submitted though others are molded, is in the
    account of the trace."""
    never, kinds = _never(model), _kinds(model)
    molds = model.power_policy is not None and model.power_policy.molds
    dropped = {_reason(model, words, kind & never): int((kind & never).sum())
               for words, kind in kinds.items()}  # fmt: skip
    noted = {f"run as submitted, at {_most(model)}, while others are molded: {words}":
             int((kind & ~never).sum()) for words, kind in kinds.items()
             if words and model.choices and molds}  # fmt: skip
    if not any(dropped.values()) and not any(noted.values()):
        return model
    account = model.trace.account.but(dropped, noted=noted)
    return replace(model, trace=model.trace.where(~never, account))


def _most(model: Cluster) -> str:
    assert model.power is not None
    return f"up to {model.power.maximum:g} W per node"


def _kinds(model: Cluster) -> dict[str, Flags]:
    """Returns the jobs that are moldable, under no words, and those that are not, under words that
    say why."""
    trace, choices = model.trace, model.choices
    fewest = _fewest(trace.applications, choices)[trace.application]
    return {
        "": (fewest > 0) & (trace.nodes >= fewest),
        "they ask for fewer nodes than their application was measured on":
            (fewest > 0) & (trace.nodes < fewest),
        "their application was not measured": fewest == 0,
    }  # fmt: skip


def _fewest(names: Any, choices: Mapping[str, Choices]) -> npt.NDArray[np.int64]:
    """Returns the smallest number of nodes on which each application was measured; 0: none."""
    return np.array([choices[name].fewest if name in choices else 0 for name in names], np.int64)


def _never(model: Cluster) -> Flags:
    """[job]: can the power policy never start it?"""
    trace, policy, cap, power = model.trace, model.power_policy, model.cap, model.power
    never = np.zeros(len(trace), np.bool_)
    if policy is None or cap is None or power is None:
        return never
    if type(policy).never_starts is PowerPolicy.never_starts:
        return never
    to_come = np.maximum.accumulate(cap.values[::-1])[::-1]
    highest = to_come[np.searchsorted(cap.times, trace.submit_us, "right") - 1]
    seen: dict[tuple[int, int, float], bool] = {}
    alike = zip(trace.application.tolist(), trace.nodes.tolist(), highest.tolist(), strict=True)
    for at, (application, nodes, cap_w) in enumerate(alike):
        key = (application, nodes, cap_w)
        if key not in seen:
            job = Request(at, nodes, 0, application=trace.applications[application])
            view = PowerView(
                0, (), (), model.nodes, power.idle, Budget(cap_w, model.nodes * power.idle),
                model.choices, least_w=power.least, most_w=power.maximum,
            )  # fmt: skip
            seen[key] = policy.never_starts(view, job)
        never[at] = seen[key]
    return never


def _reason(model: Cluster, words: str, which: Flags) -> str:
    """Returns why jobs can never start, and the numbers of some."""
    trace, cap, power = model.trace, model.cap, model.power
    if cap is None or power is None:
        return ""
    numbers = trace.number[which].tolist()
    some = ", ".join(map(str, numbers[:NAMED])) + ", ..." * (len(numbers) > NAMED)
    why = "in each of their configurations"
    if words:
        why = f"at the {power.maximum:g} W per node that are assumed, as {words}"
    return (f"their power policy could never start them: they draw more than the cap, "
            f"{cap.most:,g} W at its highest, {why} (number {some})")  # fmt: skip
