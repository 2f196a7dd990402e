"""The usage of users: node-time, halved every half-life, in steps of a 64th of it.

`Desk.real` is the usage of each user, `Desk.whole` the node-ticks of the present step, then the
nodes that each user's jobs hold, then the time of the last settlement. Whole numbers within a step
and one multiplication at its end: so the outcome does not depend on how often it was settled within
a half-life. Whole half-lives in which nobody asks are not gone through step by step. As the nodes
that a user holds do not change meanwhile, a usage u becomes u / 2 + c (1 - 1/2) with every one of
them, c being what it would be if it went on like this for ever; powers of 2 are exact.
"""

from __future__ import annotations

from typing import Any

from pdes.jit import kernel
from policies.scheduling import desk as w
from policies.scheduling.desk import Desk

STEPS = 64
"""Steps of a half-life."""
KEPT = 0.9892280131939755
"""The part of a usage that is left after a step: 2 to the power of -1/64, as a literal, for
machines' libraries differ in the last bit."""
LASTING = 91.83338515052058
"""What becomes of a charge of 1 per step that lasts: the sum of all powers of KEPT from the first
on, 1 / (2 to the power of 1/64 - 1)."""
VANISHED = 1100
"""Half-lives after which nothing is left of any usage: 2 to the power of -1100 is no float."""


@kernel
def settle(desk: Desk) -> None:
    """Charge users for what their jobs held until now. It takes at most two half-lives of steps,
    however long ago that was done before."""
    users, now, step = desk.real.shape[0], desk.ctl[w.TIME], desk.rule[w.STEP]
    pending, held = desk.whole[:users], desk.whole[users : 2 * users]
    then = desk.whole[2 * users]
    while then < now:
        lives = (now - then) // (step * STEPS)
        if then % step == 0 and lives > 0:
            left = 1.0
            for _ in range(min(lives, VANISHED)):
                left *= 0.5
            for user in range(users):
                charge = LASTING * held[user] * step
                desk.real[user] = desk.real[user] * left + charge * (1.0 - left)
            then += lives * step * STEPS
            continue
        border = (then // step + 1) * step
        until = min(now, border)
        for user in range(users):
            pending[user] += held[user] * (until - then)
            if until == border:
                desk.real[user] = (desk.real[user] + pending[user]) * KEPT
                pending[user] = 0
        then = until
    desk.whole[2 * users] = now


@kernel
def note_held(desk: Desk) -> None:
    """Note how many nodes the jobs of each user hold from now on, those that were just chosen
    included."""
    users = desk.real.shape[0]
    held = desk.whole[users : 2 * users]
    held[:] = 0
    for i in range(desk.ctl[w.RUNNING]):
        job = desk.jobs[desk.running[i]]
        held[job[w.USER]] += job[w.NODES]
    for i in range(desk.ctl[w.CHOSEN]):
        job = desk.jobs[desk.chosen[i]]
        held[job[w.USER]] += job[w.NODES]


@kernel
def charge(desk: Desk) -> None:
    """Charge users until now, and note who holds nodes from now on, where nobody was chosen by
    usage."""
    settle(desk)
    desk.ctl[w.CHOSEN] = 0
    note_held(desk)


@kernel
def usage_of(desk: Desk, user: int) -> Any:
    return desk.real[user] + desk.whole[user]
