"""Disciplines that are compiled: an order and a rule (`rules`), asked through a `View` or a `Desk`.

The job model asks them on its own arrays, without Python. Anywhere else they are policies like any
other: the view is copied into a desk, and the same kernel answers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from pdes.clock import TICKS
from pdes.errors import Fault
from policies.memory import Sizes
from policies.policy import Arrays
from policies.scheduling import desk as w
from policies.scheduling.base import Discipline, SchedulingPolicy, fitting, positions_of
from policies.scheduling.conservative import PACE, PLANS
from policies.scheduling.desk import Desk, new_desk
from policies.scheduling.rules import ORDERS, USAGE, choose_from, note_held_from, order_from
from policies.scheduling.usage import STEPS
from policies.views import Request, Running, View

PLAIN: dict[str, Callable[[Request], int] | None] = {
    "arrival": None,
    "small": lambda job: job.nodes,
    "large": lambda job: -job.nodes,
    "short": lambda job: _known(job),
    "long": lambda job: -_known(job),
}
"""The orders that are the same at any time, and what each goes by."""


class Compiled(SchedulingPolicy):
    """An order and a rule, both by their names in `rules`."""

    @abstractmethod
    def order_and_rule(self) -> tuple[str, str]:
        """Returns one of ORDERS and one of RULES."""

    def half_life_s(self) -> float:
        """Returns the time in which a usage decays to a half, in seconds; 0 where none is kept."""
        return 0.0

    def planned(self) -> int:
        """Returns how many waiting jobs have a planned start at most; 0: all, or none has any."""
        return 0

    @property
    def preemptive(self) -> bool:  # type: ignore[override]
        return self.order_and_rule()[1] in (w.RULES[w.SERVE], w.RULES[w.SERVE_DEPARTURES])

    def words(self, tick: str) -> npt.NDArray[np.int64]:
        """Returns `Desk.rule`, for a model with this tick."""
        found = np.zeros(len(w.OF_RULE), np.int64)
        order, rule = self.order_and_rule()
        found[[w.ORDER, w.RULE]] = ORDERS.index(order), w.RULES.index(rule)
        step = round(self.half_life_s() * 1e12 / TICKS[tick]) // STEPS
        found[w.STEP] = min(
            max(1, step), w.NEVER // STEPS
        )  # 20 h of ps at most: no run lasts as long
        found[w.DEPTH] = self.planned()
        return found

    def select(self, view: View) -> Sequence[int]:
        """Returns the kernel's answer; for the simplest orders and rules without any kernel."""
        order, rule = self.order_and_rule()
        if order in PLAIN and rule in ("strict", "first-fit"):
            return fitting(view, _positions(order, view.queue), rule == "strict")
        desk = self._desk(view)
        choose_from(desk)
        return _numbers(desk, desk.ctl[w.CHOSEN])

    def first_in_order(self, view: View, most: int) -> list[int]:
        """Returns the numbers of the first waiting jobs in its order, whether they fit or not, at
        most so many."""
        order = self.order_and_rule()[0]
        if order in PLAIN:
            return [view.queue[at].number for at in [*_positions(order, view.queue)][:most]]
        desk = self._desk(view)
        return _numbers(desk, order_from(desk, most))

    def note_starts(self, view: View) -> None:
        if self.order_and_rule()[0] == ORDERS[USAGE]:
            note_held_from(self._desk(view))

    def _desk(self, view: View) -> Desk:
        """Returns a desk into which the view is copied, with rows in order of arrival."""
        memory = vars(view.memory) if view.memory else {}
        if isinstance(self, Remembering) and not memory:
            raise Fault(f"scheduling {self.name}: asked without its memory (policies.memory)")
        words = self.words(view.tick)
        if words[w.RULE] == w.SERVE_DEPARTURES:
            raise Fault(f"scheduling {self.name}: asked through a view, which does not tell for "
                        "how long suspended jobs were served; only the job model does")  # fmt: skip
        jobs = sorted(
            [(job, -1, 0) for job in view.queue]
            + [(job.request, job.start, _due(job)) for job in view.running],
            key=lambda it: (it[0].submit, it[0].number),
        )
        busy = sum(job.request.nodes for job in view.running)
        desk = new_desk(
            len(jobs), view.free + busy, len(w.JOB), words,
            memory.get("whole", np.zeros(0, np.int64)), memory.get("real", np.zeros(0)),
        )  # fmt: skip
        desk.jobs[:, [w.NODES, w.SUBMIT, w.REQUESTED, w.USER, w.NUMBER, w.SINCE, w.DUE]] = np.array(
            [(job.nodes, job.submit, _known(job), job.user_number, job.number, since, due)
             for job, since, due in jobs], np.int64,
        ).reshape(-1, 7)  # fmt: skip
        desk.pace[0] = view.pace
        if words[w.RULE] == w.CONSERVATIVE:
            desk.ctl[w.REPACED] = _repaced(desk.whole, view.pace)
        runs = desk.jobs[:, w.SINCE] >= 0
        waiting, running = np.flatnonzero(~runs), np.flatnonzero(runs)
        desk.queue[: len(waiting)] = waiting
        desk.running[: len(running)] = running[np.argsort(desk.jobs[running, w.DUE], kind="stable")]
        desk.ctl[[w.TIME, w.FREE, w.FIRST, w.LAST, w.RUNNING]] = (
            view.time, view.free, 0, len(waiting), len(running)
        )  # fmt: skip
        return desk


def _positions(order: str, queue: Sequence[Request]) -> Iterable[int]:
    """Returns the positions in a queue in one of the orders that are the same at any time."""
    key = PLAIN[order]
    positions = range(len(queue))
    return positions if key is None else sorted(positions, key=lambda at: key(queue[at]))


def _numbers(desk: Desk, count: int) -> list[int]:
    """Returns the numbers of the first jobs that a kernel has written to `Desk.chosen`."""
    return desk.jobs[desk.chosen[:count], w.NUMBER].tolist()  # type: ignore[no-any-return]


def has_order(policy: SchedulingPolicy) -> bool:
    """Tells whether a scheduling policy is an order in which waiting jobs are tried, which power
    policies that select need."""
    if isinstance(policy, Compiled):
        return policy.order_and_rule()[1] in ("strict", "first-fit", "easy", "easy-strict")
    return isinstance(policy, Discipline)


def in_order(policy: SchedulingPolicy, view: View, most: int) -> list[int]:
    """Returns the numbers of the first waiting jobs in the order of a scheduling policy that has
    one, whether they fit or not: at most so many, or all if that is 0."""
    most = min(most, len(view.queue)) if most else len(view.queue)
    if isinstance(policy, Compiled):
        return policy.first_in_order(view, most)
    assert isinstance(policy, Discipline)
    return [view.queue[at].number for at in positions_of(policy, view.queue)[:most]]


def _repaced(whole: npt.NDArray[np.int64], pace: float) -> bool:
    """Tells whether jobs had another pace when plans were last made, and notes the present one: as
    its bits less those of 1, so that at a pace of 1 it is 0 as in the beginning."""
    before = int(whole[PACE])
    whole[PACE] = np.float64(pace).view(np.int64) - np.float64(1.0).view(np.int64)
    return before != int(whole[PACE])


def _known(job: Request) -> int:
    return w.NEVER if job.requested is None else job.requested


def _due(job: Running) -> int:
    end = job.requested_end
    return w.NEVER if end is None else min(w.NEVER, end)


class Remembering(Compiled):
    """One that has to know what was before: plans, usages, or how many jobs ran."""

    always = True

    def remembers(self, sizes: Sizes) -> Arrays:
        order, rule = self.order_and_rule()
        if ORDERS.index(order) == USAGE:
            return {"whole": np.zeros(2 * sizes.users + 1, np.int64), "real": np.zeros(sizes.users)}
        if w.RULES.index(rule) == w.CONSERVATIVE:
            return {"whole": np.append(np.zeros(PLANS, np.int64), np.full(sizes.jobs, -1))}
        return {"whole": np.zeros(2, np.int64)}
