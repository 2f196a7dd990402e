"""A control instant of a policy that regulates jobs by type: it is asked, and its caps are set.

Both fidelities do this on a floor (`policies.power.floor`): `odonata.cluster` on that of the
machine itself, `odonata.agents` on one that its scheduler keeps by what it knows.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from pdes.jit import kernel, rebound
from policies.power import floor as f
from policies.power.acts import advance, foresee
from policies.power.floor import Floor, Regulate, nobody
from policies.views import Moment

regulate: Regulate = nobody
"""The kernel of a policy, which `asking` puts in its place."""


@kernel
def sum_up(floor: Floor) -> None:
    """Sum up what the machine would draw without caps, and at the lowest."""
    sums = floor.sums
    idle = floor.floor[f.FREE]
    full, low = 0.0, 0.0
    for kind in range(floor.kinds.shape[0]):
        tally = floor.tallies[kind]
        idle += tally[f.HALTED_NODES]
        full += tally[f.NODES] * floor.kinds[kind, f.MOST_W]
        low += tally[f.NODES] * floor.kinds[kind, f.LOW_W]
    sums[f.FULL_W] = idle * sums[f.IDLE_W] + full
    sums[f.FLOOR_W] = idle * sums[f.IDLE_W] + low


@kernel
def set_cap(floor: Floor, kind: int) -> bool:
    """Have the cap of a type be the one that the policy wants. Returns whether it is another
    one."""
    of = floor.kinds[kind]
    ratio = of[f.WANTED]
    if ratio == of[f.RATIO]:
        return False
    of[f.RATIO] = ratio
    most, low = of[f.MOST_W], of[f.LOW_W]
    of[f.WATTS], of[f.PACE] = most, 1.0
    if ratio < 1.0 and most > low:
        of[f.WATTS] = low + ratio * (most - low)
        of[f.PACE] = 1.0 + (of[f.SLOWDOWN] - 1.0) * ((most - of[f.WATTS]) / (most - low))
    foresee(floor, kind)
    return True


@kernel
def cap_of(floor: Floor, kind: int) -> float:
    """Returns the cap of a type per node, in W; infinity: none."""
    of = floor.kinds[kind]
    if of[f.RATIO] < 1.0 and of[f.MOST_W] > of[f.LOW_W]:
        return of[f.WATTS]  # type: ignore[no-any-return]
    return np.inf  # type: ignore[no-any-return]


def _ask(now: Moment, floor: Floor, given: Any) -> None:
    """Have the clocks of all types go on until now, and the policy decide."""
    words = floor.floor
    for kind in range(floor.kinds.shape[0]):
        advance(floor, kind, now.time)
    sum_up(floor)
    words[f.STARTS] = words[f.WAKES] = words[f.HALTS] = 0
    target_w = now.target_w
    if now.reserve_w == 0.0:
        target_w = np.inf  # whoever offers nothing has nothing to follow
    regulate(
        Moment(now.time, now.free, now.busy, now.idle_w, now.least_w, now.most_w, now.cap_w,
               now.measured_w, target_w, now.average_w, now.reserve_w, now.signal, now.until,
               now.error),
        floor, given,
    )  # fmt: skip


@cache
def asking(policy: Regulate) -> Any:
    """Returns `_ask` for the kernel of a policy."""
    return kernel(rebound(_ask, "ask", regulate=policy))
