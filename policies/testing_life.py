"""The life of a random queue, in which `check_policy` puts its questions: jobs come, wait, run and
end, and the network reports random counters.

Which of the waiting jobs start is up to a power policy, if one is asked, and else left to chance.
"""

from __future__ import annotations

import math
import random
from typing import Any, NamedTuple

import numpy as np

from policies.memory import Sizes
from policies.views import Ahead, Counters, Course, Mold, Request
from topology import Dragonfly

MACHINE = Dragonfly(2, 4, 2, 9)
LONGEST = 8
"""So many jobs wait before no more of them come."""
MOST_COME = 4
"""No more come at once."""
USERS = ("ada", "grace", "edsger", "barbara")
PROJECTS = 2
APPLICATIONS = ("cfd", "md")


STEP = 500
"""Every so many ticks price, carbon intensity and cap change."""
MOST_STEPS = 40
"""So many of these steps are known ahead at most."""


def ahead_of(seed: int, now: int, ticks: int) -> Ahead:
    """Returns random prices, carbon intensities and caps: at one time the same, whoever asks and
    whenever."""
    until = now + ticks
    begins = (now, *range((now // STEP + 1) * STEP, until, STEP)[: MOST_STEPS - 1])

    def course(name: str, least: int, most: int) -> Course:
        levels = (random.Random(f"{seed} {name} {at // STEP}").randint(least, most)
                  for at in begins)  # fmt: skip
        return Course(begins, tuple(map(float, levels)))

    nodes = MACHINE.n_nodes
    return Ahead(until, course("price", -2, 9), course("carbon", 0, 900),
                 course("cap", nodes * 120, nodes * 290), 100.0, 290.0)  # fmt: skip


def sizes_of(questions: int) -> Sizes:
    """Returns what a policy declares its memory by."""
    jobs, nodes = MOST_COME * questions, MACHINE.n_nodes
    alike = len(USERS) * len(APPLICATIONS)
    return Sizes(jobs, nodes, MACHINE.groups, MACHINE.n_routers, len(USERS), PROJECTS, alike,
                 min(jobs, nodes))  # fmt: skip


class Placed(NamedTuple):
    """A job that runs."""

    job: Request
    start: int
    where: tuple[int, ...]
    """Its nodes: other than it asked for, if it was molded."""
    cap_w: float = math.inf
    """The watts per node that it was last given as its cap, and those that were last measured."""
    measured_w: float = 0.0
    forced: bool = False
    suspended: bool = False
    mold: Mold | None = None


class After(NamedTuple):
    """What waits, what runs and what is idle when a power policy has answered."""

    queue: list[Request]
    running: list[Placed]
    idle: Any


class Step(NamedTuple):
    """A question, and before it perhaps the news of a job's end."""

    number: int
    now: int
    idle: Any
    queue: tuple[Request, ...]
    running: tuple[Placed, ...]
    """By their jobs' numbers."""
    ended: tuple[Request, int, int, tuple[int, ...]] | None
    """A job that has ended, when it had started, now, and its nodes."""
    counters: Counters | None
    """What the network reported; sometimes it has not yet."""
    come: int
    """How many jobs have come so far: no others have a number yet."""
    to_come: int = 1
    """How large those are that are still to come, of which a policy knows nothing."""

    @property
    def free(self) -> int:
        return int(self.idle.sum())

    @property
    def job(self) -> Request:
        """Returns the first in the queue that fits, for which nodes are chosen."""
        return next(job for job in self.queue if job.nodes <= self.free)


class Life:
    """What is seen of a machine and its queue, step by step. Where chance starts the jobs, one at
    least always fits. An interval of `unit` ticks is the shortest between two steps."""

    def __init__(self, seed: int, unit: int = 1) -> None:
        self.unit = unit
        self.dice, self.luck = random.Random(seed), np.random.default_rng(seed)
        self.number = self.now = self.come = 0
        self.waiting: list[Request] = []
        self.running: list[Placed] = []
        self.idle: Any = np.ones(MACHINE.n_nodes, bool)

    def step(self) -> Step:
        """Have time pass, perhaps a job end, and others come."""
        dice, ended = self.dice, None
        self.now += dice.randint(1, 400) * self.unit
        able = [placed for placed in self.running if not placed.suspended]
        if able and dice.random() < 0.7:
            over = able[dice.randrange(len(able))]
            self.running.remove(over)
            self.idle[list(over.where)] = True
            ended = over.job, over.start, self.now, over.where
        free, room = int(self.idle.sum()), LONGEST - len(self.waiting)
        sizes = [dice.randint(1, 24) for _ in range(dice.randint(0, MOST_COME - 1)) if room > 0]
        smallest = min([*sizes, *(job.nodes for job in self.waiting)], default=free + 1)
        if smallest > free > 0:
            sizes.append(dice.randint(1, free))
        for nodes in sizes:
            sensitive = (True, False, None)[self.luck.integers(3)]
            self.waiting.append(self._request(nodes)._replace(sensitive=sensitive))
        self.running.sort(key=lambda placed: placed.job.number)
        self.number += 1
        return Step(self.number - 1, self.now, self.idle.copy(), (*self.waiting,),
                    (*self.running,), ended, _counters(self.luck), self.come)  # fmt: skip

    def go_on(self, after: After | None) -> None:
        """Go on from where a power policy has left the machine; None: have chance start jobs."""
        if after is not None:
            self.waiting, self.running, self.idle = after
            return
        for job in [*self.waiting]:
            spare = np.flatnonzero(self.idle).tolist()
            if self.dice.random() < 0.4 and job.nodes < len(spare):  # one at least stays idle
                where = (*self.dice.sample(spare, job.nodes),)
                self.idle[list(where)] = False
                self.waiting.remove(job)
                self.running.append(Placed(job, self.now, where))

    def _request(self, nodes: int) -> Request:
        dice, number = self.dice, self.come
        self.come += 1
        user, requested = dice.randrange(len(USERS)), dice.randint(1, 5000) * self.unit
        project, application = user % PROJECTS, dice.choice(APPLICATIONS)
        alike = user * len(APPLICATIONS) + APPLICATIONS.index(application)
        return Request(number, nodes, self.now, requested, USERS[user], f"project {project}",
                       application, "", user, project, alike)  # fmt: skip


def _counters(luck: np.random.Generator) -> Counters | None:
    """Returns what one to four intervals reported, with many equal numbers, or nothing."""
    intervals, age, most = int(luck.integers(5)), int(luck.integers(400)), 10 ** luck.integers(1, 9)
    if intervals == 0:
        return None
    sizes = (MACHINE.n_nodes, MACHINE.n_nodes, MACHINE.n_routers, MACHINE.n_routers)
    return Counters(age, 2e-5, *(luck.integers(0, most, (intervals, size)) for size in sizes))
