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
from policies.scheduling.base import SchedulingPolicy, fitting
from policies.scheduling.conservative import PACE, PLANS
from policies.scheduling.desk import (
    CHOSEN,
    CONSERVATIVE,
    DEPTH,
    DUE,
    FIRST,
    FREE,
    JOB_WORDS,
    LAST,
    NEVER,
    NODES,
    NUMBER,
    ORDER,
    REPACED,
    REQUESTED,
    RULE,
    RULE_WORDS,
    RULES,
    RUNNING,
    SERVE,
    SERVE_DEPARTURES,
    SINCE,
    STEP,
    SUBMIT,
    TIME,
    USER,
    new_desk,
)
from policies.scheduling.rules import ORDERS, USAGE, choose_from
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
        return self.order_and_rule()[1] in (RULES[SERVE], RULES[SERVE_DEPARTURES])

    def words(self, tick: str) -> npt.NDArray[np.int64]:
        """Returns `Desk.rule`, for a model with this tick."""
        found = np.zeros(RULE_WORDS, np.int64)
        order, rule = self.order_and_rule()
        found[[ORDER, RULE]] = ORDERS.index(order), RULES.index(rule)
        step = round(self.half_life_s() * 1e12 / TICKS[tick]) // STEPS
        found[STEP] = min(max(1, step), NEVER // STEPS)  # 20 h of ps at most: no run lasts as long
        found[DEPTH] = self.planned()
        return found

    def select(self, view: View) -> Sequence[int]:
        """Returns the kernel's answer; for the simplest orders and rules without any kernel."""
        order, rule = self.order_and_rule()
        if order in PLAIN and rule in ("strict", "first-fit"):
            key, queue = PLAIN[order], view.queue
            positions: Iterable[int] = range(len(queue))
            if key is not None:
                positions = sorted(positions, key=lambda at: key(queue[at]))
            return fitting(view, positions, rule == "strict")
        return self._ask(view)

    def _ask(self, view: View) -> Sequence[int]:
        """Copies the view into a desk, with rows in order of arrival, and asks the kernel."""
        memory = vars(view.memory) if view.memory else {}
        if isinstance(self, Remembering) and not memory:
            raise Fault(f"scheduling {self.name}: asked without its memory (policies.memory)")
        words = self.words(view.tick)
        if words[RULE] == SERVE_DEPARTURES:
            raise Fault(f"scheduling {self.name}: asked through a view, which does not tell for "
                        "how long suspended jobs were served; only the job model does")  # fmt: skip
        jobs = sorted(
            [(job, -1, 0) for job in view.queue]
            + [(job.request, job.start, _due(job)) for job in view.running],
            key=lambda it: (it[0].submit, it[0].number),
        )
        busy = sum(job.request.nodes for job in view.running)
        desk = new_desk(
            len(jobs), view.free + busy, JOB_WORDS, words,
            memory.get("whole", np.zeros(0, np.int64)), memory.get("real", np.zeros(0)),
        )  # fmt: skip
        desk.jobs[:, [NODES, SUBMIT, REQUESTED, USER, NUMBER, SINCE, DUE]] = np.array(
            [(job.nodes, job.submit, _known(job), job.user_number, job.number, since, due)
             for job, since, due in jobs], np.int64,
        ).reshape(-1, 7)  # fmt: skip
        desk.pace[0] = view.pace
        if words[RULE] == CONSERVATIVE:
            desk.ctl[REPACED] = _repaced(desk.whole, view.pace)
        runs = desk.jobs[:, SINCE] >= 0
        waiting, running = np.flatnonzero(~runs), np.flatnonzero(runs)
        desk.queue[: len(waiting)] = waiting
        desk.running[: len(running)] = running[np.argsort(desk.jobs[running, DUE], kind="stable")]
        desk.ctl[[TIME, FREE, FIRST, LAST, RUNNING]] = (
            view.time, view.free, 0, len(waiting), len(running)
        )  # fmt: skip
        choose_from(desk)
        chosen = desk.chosen[: desk.ctl[CHOSEN]]
        return [int(number) for number in desk.jobs[chosen, NUMBER]]


def _repaced(whole: npt.NDArray[np.int64], pace: float) -> bool:
    """Tells whether jobs had another pace when plans were last made, and notes the present one: as
    its bits less those of 1, so that at a pace of 1 it is 0 as in the beginning."""
    before = int(whole[PACE])
    whole[PACE] = np.float64(pace).view(np.int64) - np.float64(1.0).view(np.int64)
    return before != int(whole[PACE])


def _known(job: Request) -> int:
    return NEVER if job.requested is None else job.requested


def _due(job: Running) -> int:
    end = job.requested_end
    return NEVER if end is None else min(NEVER, end)


class Remembering(Compiled):
    """One that has to know what was before: plans, usages, or how many jobs ran."""

    always = True

    def remembers(self, sizes: Sizes) -> Arrays:
        order, rule = self.order_and_rule()
        if ORDERS.index(order) == USAGE:
            return {"whole": np.zeros(2 * sizes.users + 1, np.int64), "real": np.zeros(sizes.users)}
        if RULES.index(rule) == CONSERVATIVE:
            return {"whole": np.append(np.zeros(PLANS, np.int64), np.full(sizes.jobs, -1))}
        return {"whole": np.zeros(2, np.int64)}
