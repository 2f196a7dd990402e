"""A second `price-aware`, written to be read: costs are added tick by tick, and every start is
tried.

It shares no line with the real one but the disciplines of `naive`. All prices are whole numbers.
Ends, submissions, releases and changes of a cap that jobs wait for are instants; at each there is a
pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

from naive import SCHEDULINGS, Cluster, Job, Record, Task, halt, record

Levels = Sequence[tuple[int, float]]
"""(since when, how much), from time 0 on."""
FAR = 10**6
"""Stands for the end of a job that did not say how long it runs."""


class Asked(NamedTuple):
    """The parameters, with times in ticks."""

    rule: str
    bound: int
    part: float
    least_saving: float
    horizon: int
    drain: bool


class Watts(NamedTuple):
    idle: float
    most: float


@dataclass
class Twin:
    """The machine, and what the policy keeps of each job."""

    nodes: int
    price: Levels
    cap: Levels
    watts: Watts
    asked: Asked
    cluster: Cluster
    planned: dict[int, int] = field(default_factory=dict)
    released: dict[int, int] = field(default_factory=dict)
    again: list[int] = field(default_factory=list)

    def known(self, levels: Levels, time: int) -> float:
        """Returns what is taken to hold at a time, as far as is known now."""
        now = self.cluster.now
        seen = [level for since, level in levels
                if since <= max(now, min(time, now + self.asked.horizon - 1))]  # fmt: skip
        return seen[-1]

    def plan(self, task: Task) -> None:
        """Plan the start of a job that is seen for the first time."""
        job, now = task.job, self.cluster.now
        self.planned[job.number] = self.released[job.number] = now
        if job.requested is None:
            return
        bound, length = self.asked.bound, job.requested
        if self.asked.part > 0:
            bound = min(bound, int(self.asked.part * length))
        others = []
        for other in self.cluster.present:
            number, until = other.job.number, other.job.requested
            if other.since is not None:
                others.append((now, min(FAR, self.cluster.expected_end(other)), other.job.nodes))
            elif number in self.planned and other is not task:
                begin = max(now, self.planned[number])
                others.append((begin, FAR if until is None else begin + until, other.job.nodes))

        def room(start: int) -> bool:
            return all(
                sum(nodes for begin, end, nodes in others if begin <= at < end) + job.nodes
                <= self.nodes
                for at in range(start, start + length)
            )

        starts = [start for start in range(now, job.submit + bound + 1) if room(start)]
        if not starts or job.submit + bound <= now:
            return
        until = now + self.asked.horizon
        seen = [Fraction(self.known(self.price, at)) for at in range(now, max(now + 1, until))]
        mean = sum(seen, Fraction(0)) / len(seen)

        def cost(start: int) -> Fraction:
            return sum((seen[at - now] if at < until else mean
                        for at in range(start, start + length)), Fraction(0))  # fmt: skip

        costs = {start: cost(start) for start in starts}
        best = min(starts, key=lambda start: costs[start])  # the first of these
        first = starts[0]
        if costs[first] - costs[best] <= Fraction(self.asked.least_saving) * abs(costs[first]):
            best = first
        self.planned[job.number] = best
        if best > first:
            self.released[job.number] = best

    def lets(self, task: Task, with_: Sequence[Task]) -> bool:
        """Tells whether a job may start together with others."""
        now, cluster = self.cluster.now, self.cluster
        far = max(now, *(since for since, _ in self.cap)) + 1

        def within(at: int, busy: int) -> bool:
            busy = min(busy, self.nodes)
            drawn = busy * self.watts.most + (self.nodes - busy) * self.watts.idle
            return drawn <= self.known(self.cap, at)

        def fits(at: int) -> bool:
            there = [*cluster.running, *with_, task]
            return within(at, sum(t.job.nodes for t in there if cluster.expected_end(t) > at))

        if all(fits(at) for at in range(now, max(now + 1, min(cluster.expected_end(task), far)))):
            return True
        length = FAR if task.job.requested is None else task.job.requested
        until = now + self.asked.horizon
        alone = any(
            start + length <= until
            and all(within(at, task.job.nodes) for at in range(start, start + length))
            for start in range(now, until)
        )
        if alone or now < self.released[task.job.number] + self.asked.horizon:
            return False
        known = {self.known(self.cap, at) for at in range(now, max(now + 1, until))}
        drawn = task.job.nodes * self.watts.most
        drawn += (self.nodes - task.job.nodes) * self.watts.idle
        return fits(now) or all(drawn > level for level in known)

    def chosen(self) -> list[Task]:
        """Returns who starts now, after noting when it has to be asked again: that is said of all
        that wait, also of those that start."""
        cluster = self.cluster
        for task in cluster.waiting:
            if task.job.number not in self.released:
                self.plan(task)
        self.again = self.wishes()
        free = [t for t in cluster.waiting if self.released[t.job.number] <= cluster.now]
        if self.asked.drain:
            free = [task for task in free if self.lets(task, ())]
        shown = Cluster(self.nodes, cluster.now, cluster.running + free, cluster.gone,
                        cluster.ended, cluster.arrived, cluster.plans)  # fmt: skip
        answer = SCHEDULINGS[self.asked.rule](shown)
        starting: list[Task] = []
        for task in answer:
            if task.since is None and (not self.asked.drain or self.lets(task, starting)):
                starting.append(task)
        return starting

    def wishes(self) -> list[int]:
        """Returns the times at which it has to be asked again."""
        now, waiting = self.cluster.now, [task.job.number for task in self.cluster.waiting]
        held = [self.released[number] for number in waiting if self.released[number] > now]
        changes = []
        if self.asked.drain and len(held) < len(waiting):
            changes = [since for since, _ in self.cap if now < since < now + self.asked.horizon]
            changes += [self.released[number] + self.asked.horizon for number in waiting
                        if now - self.asked.horizon < self.released[number] <= now]  # fmt: skip
        return held + changes


def simulate(
    jobs: Sequence[Job], nodes: int, price: Levels, cap: Levels, watts: Watts, asked: Asked
) -> list[Record]:
    """Returns what becomes of each job; none runs for longer than requested."""
    tasks = [Task(job, job.run) for job in jobs]
    twin = Twin(nodes, price, cap, watts, asked, Cluster(nodes))
    cluster, to_come = twin.cluster, [*tasks]
    while to_come or cluster.present:
        ends = [cluster.now + task.service - task.served(cluster.now) for task in cluster.running]
        instants = ends + [task.job.submit for task in to_come]
        instants += [time for time in twin.again if time > cluster.now]
        now = cluster.now = min(instants)
        cluster.ended = [task for task in cluster.running if task.served(now) == task.service]
        for task in cluster.ended:
            halt(task, now)
            cluster.present.remove(task)
            cluster.gone.append(task)
        cluster.arrived = [task for task in to_come if task.job.submit == now]
        for task in cluster.arrived:
            to_come.remove(task)
            cluster.present.append(task)
        for task in twin.chosen():
            task.since = now
    return [record(task) for task in tasks]
