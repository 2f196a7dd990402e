"""The usage of users: node-time, halved every half-life, in steps of a 64th of it.

`Desk.real` is the usage of each user, `Desk.whole` the node-ticks of the present step, then the
nodes that each user's jobs hold, then the time of the last settlement. Whole numbers within a step
and one multiplication at its end: so the outcome does not depend on how often it was settled.
"""

from __future__ import annotations

from typing import Any

from pdes.jit import kernel
from policies.scheduling.desk import CHOSEN, NODES, RUNNING, STEP, TIME, USER, Desk

STEPS = 64
"""Steps of a half-life."""
KEPT = 0.9892280131939755
"""The part of a usage that is left after a step: 2 to the power of -1/64, as a literal, for
machines' libraries differ in the last bit."""


@kernel
def settle(desk: Desk) -> None:
    """Charge users for what their jobs held until now."""
    users, now, step = desk.real.shape[0], desk.ctl[TIME], desk.rule[STEP]
    pending, held = desk.whole[:users], desk.whole[users : 2 * users]
    then = desk.whole[2 * users]
    while then < now:
        border = (then // step + 1) * step
        until = min(now, border)
        settled = until - then == step
        for user in range(users):
            pending[user] += held[user] * (until - then)
            if until == border:
                usage = (desk.real[user] + pending[user]) * KEPT
                settled = settled and usage == desk.real[user]
                desk.real[user] = usage
                pending[user] = 0
        then = until
        if settled:  # and so would every whole step be that is left
            then = max(then, now // step * step)
    desk.whole[2 * users] = now


@kernel
def note_held(desk: Desk) -> None:
    """Note how many nodes the jobs of each user hold from now on, those that were just chosen
    included."""
    users = desk.real.shape[0]
    held = desk.whole[users : 2 * users]
    held[:] = 0
    for i in range(desk.ctl[RUNNING]):
        job = desk.jobs[desk.running[i]]
        held[job[USER]] += job[NODES]
    for i in range(desk.ctl[CHOSEN]):
        job = desk.jobs[desk.chosen[i]]
        held[job[USER]] += job[NODES]


@kernel
def usage_of(desk: Desk, user: int) -> Any:
    return desk.real[user] + desk.whole[user]
