"""A pass of RMAP in plain Python, over the objects of a view: what the compiled one, which works on
the arrays of its desk, is held against.

It says one by one what a reader of docs/power.md would say, and shares nothing with the product but
what is predicted. Power is in whole microwatts above that of idle nodes; a time without end, and
nodes and microwatts without end, are infinity.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

from policies.power import Choices, Mold, PowerView
from policies.power.base import Admitted
from policies.power.prediction import predicted_choices
from policies.power.rmap import Adaptive, Naive, Rmap, Traditional
from policies.views import Request

MOST_W = 1e12
"""A cap above this, infinity for example, is this."""


class Way(NamedTuple):
    """How a job may run: its nodes, its microwatts, its time and after how long it may be ended; a
    rigid one has no configuration, and a time that nobody knows."""

    nodes: int
    uw: int
    time: float
    limit: float
    configuration: tuple[int, int, float] | None = None


class Held(NamedTuple):
    """What somebody holds, and until when at the latest."""

    end: float
    nodes: int
    uw: int


class Reservation(NamedTuple):
    """When the first job that waits can start at the latest, and what it leaves of both then."""

    time: float = math.inf
    nodes: float = math.inf
    uw: float = math.inf

    def allows(self, way: Way, now: int) -> bool:
        return now + way.limit <= self.time or (way.nodes <= self.nodes and way.uw <= self.uw)


@lru_cache(maxsize=256)
def ways_of(policy: Rmap, idle_w: float, name: str, choices: Choices) -> list[Way]:
    """Returns what a policy knows of an application, the fastest way first."""
    grace = 0.0
    if policy.knowledge == "model":
        choices = predicted_choices(name, choices, policy.trained, policy.training, policy.sampling)
        grace = policy.grace
    return [
        Way(nodes, round((watts - nodes * idle_w) * 1e6), time, math.ceil(time * (1.0 + grace)),
            (nodes, cores, cap_w))
        for nodes, cores, cap_w, watts, time in (choices[at] for at in range(len(choices)))
    ]  # fmt: skip


class Pass:
    """A policy that looks at a machine; where small jobs have a partition, at that (`small`) or at
    the rest."""

    def __init__(self, policy: Rmap, view: PowerView, small: bool = False) -> None:
        self.policy, self.view = policy, view
        self.nodes = view.free + view.busy
        cap_w = min(view.budget.cap_w, MOST_W) * (1.0 - policy.margin)
        self.uw = round((cap_w - self.nodes * view.idle_w) * 1e6)
        self.traditional = small or isinstance(policy, Traditional)
        self.adaptive = not small and isinstance(policy, Adaptive)
        self.strict = not small and isinstance(policy, Naive) and policy.strict
        part = round(self.uw * policy.small_nodes / self.nodes) if policy.small else 0
        self.uw = part if small else self.uw - part
        self.nodes = policy.small_nodes if small else self.nodes - policy.small_nodes
        self.queue = [job for job in view.queue if (job.nodes <= policy.small) == small]
        self.running = [job for job in view.running
                        if (job.run.request.nodes <= policy.small) == small]  # fmt: skip
        self.known = {name: ways_of(policy, view.idle_w, name, choices)
                      for name, choices in view.choices.items()}  # fmt: skip

    # -- what a job may run in

    def rigid(self, job: Request) -> bool:
        """Tells whether a job runs on the nodes that it asked for, and on no others."""
        ways = self.known.get(job.application, [])
        return not ways or job.nodes < min(way.nodes for way in ways)

    def as_asked(self, nodes: int, requested: int | None) -> Way:
        draws_w = nodes * (self.view.most_w - self.view.idle_w)
        return Way(nodes, round(draws_w * 1e6), math.inf,
                   math.inf if requested is None else requested)  # fmt: skip

    def ways(self, job: Request) -> list[Way]:
        """Returns what a moldable job can run in; its user's time counts if it is longer."""
        return [way._replace(limit=max(way.limit, job.requested or 0))
                for way in self.known[job.application] if way.nodes <= self.nodes]  # fmt: skip

    def fair(self, job: Request) -> int:
        weight = self.policy.weight
        for words in filter(None, self.policy.priorities.split("; ")):
            name, number = words.split(" ")
            if getattr(job, self.policy.priority_of) == name:
                weight *= float(number)
        return min(self.uw, round(weight * job.nodes / self.nodes * self.uw))

    def wanted(self, job: Request) -> Way | None:
        """Returns what a job waits for."""
        if self.rigid(job):
            return self.as_asked(job.nodes, job.requested)
        if self.traditional:
            packed = {}  # with the most cores, and of these the highest cap
            for way in sorted(self.ways(job), key=lambda way: way.configuration or ()):
                packed[way.nodes] = way
            fit = [way for way in packed.values() if way.uw <= self.uw and way.nodes <= job.nodes]
            return max(fit, key=lambda way: way.nodes, default=None)
        ways = [way for way in self.ways(job) if way.uw <= self.uw]
        fast = [way for way in ways if way.uw <= self.fair(job)]
        return fast[0] if fast else min(ways, key=lambda way: way.uw, default=None)

    def tolerates(self, job: Request, way: Way) -> bool:
        assert isinstance(self.policy, Adaptive)
        some = self.policy.threshold
        return some < 0 or job.requested is None or way.time <= (1.0 + some) * job.requested

    def needs(self, job: Request, way: Way) -> int:
        """Returns the microwatts that have to be free for a job to start in what it waits for."""
        waits = self.strict or (self.adaptive and not self.tolerates(job, way))
        return max(way.uw, self.fair(job)) if waits and not self.rigid(job) else way.uw

    def planned(self, job: Request, nodes: int, uw: int, reserved: Reservation) -> Way | None:
        """Returns what a job starts in now, when so much is free; None: it waits."""
        now, way = self.view.time, self.wanted(job)
        if self.adaptive and not self.rigid(job):
            assert isinstance(self.policy, Adaptive)
            short = way is not None and way.nodes > nodes and self.policy.short_of == "either"
            if self.fair(job) > uw or short:
                slower = (way for way in self.ways(job)
                          if way.nodes <= nodes and way.uw <= min(uw, self.fair(job))
                          and reserved.allows(way, now))  # fmt: skip
                way = next(slower, None)
                return way if way is not None and self.tolerates(job, way) else None
        elif way is not None and self.needs(job, way) > uw:
            return None
        if way is None or way.nodes > nodes or way.uw > uw or not reserved.allows(way, now):
            return None
        return way

    # -- who starts

    def held(self) -> list[Held]:
        """Returns what running jobs hold, with the watts that they were given."""
        found = []
        for job in self.running:
            way = self.as_asked(job.configuration.nodes, None)
            if job.mold is not None:
                ways = self.known[job.run.request.application]
                (way,) = (way for way in ways if way.configuration == job.mold[:3])
            end = math.inf if job.due is None else job.due
            found.append(Held(end, way.nodes, way.uw))
        return found

    def reservation(self, job: Request, running: list[Held]) -> Reservation:
        """Returns that of the first job that waits; one that stops nobody, if no time is known at
        which it can start."""
        way = self.wanted(job)
        if way is None:
            return Reservation()
        ends = sorted({each.end for each in running} - {math.inf})
        left_at = [(float(self.view.time), running)]
        left_at += [(end, [each for each in running if each.end > end]) for end in ends]
        for time, left in left_at:
            nodes = self.nodes - sum(each.nodes for each in left) - way.nodes
            uw = self.uw - sum(each.uw for each in left) - self.needs(job, way)
            if nodes >= 0 and uw >= 0:
                return Reservation(time, nodes, uw)
        return Reservation()

    def started(self) -> dict[int, Way]:
        """Returns the jobs that start now, in order, and in what."""
        if self.uw < 0:
            return {}
        running, reserved = self.held(), Reservation()
        waits, found = False, dict[int, Way]()
        for job in self.queue:
            nodes = self.nodes - sum(each.nodes for each in running)
            uw = self.uw - sum(each.uw for each in running)
            if nodes == 0:
                break
            way = self.planned(job, nodes, uw, reserved)
            if way is not None:
                found[job.number] = way
                end = self.view.time + way.limit
                running.append(Held(end, way.nodes, way.uw))
                if end > reserved.time:
                    reserved = Reservation(reserved.time, reserved.nodes - way.nodes,
                                           reserved.uw - way.uw)  # fmt: skip
            elif self.policy.backfill == "none":
                break
            elif self.policy.backfill == "easy" and not waits:
                waits, reserved = True, self.reservation(job, running)
        return found


def select(policy: Rmap, view: PowerView) -> Admitted:
    """Returns what `policy.select` should."""
    started = Pass(policy, view, small=True).started() if policy.small else {}
    started |= Pass(policy, view).started()
    return Admitted([*started], (), {number: Mold(*way.configuration, int(way.limit))
                                     for number, way in started.items()
                                     if way.configuration is not None})  # fmt: skip


def never_starts(policy: Rmap, view: PowerView, job: Request) -> bool:
    """Returns what `policy.never_starts` should."""
    found = Pass(policy, view, small=job.nodes <= policy.small)
    way = found.wanted(job)
    return found.uw < 0 or way is None or way.uw > found.uw or way.nodes > found.nodes
