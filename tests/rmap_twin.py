"""A second RMAP, written to be read and not to be fast: everything is computed anew in every pass.
It shares no line with the real policies, which are held against it job by job.

A machine has a bound in watts. A job is moldable: its application was measured in some
configurations, and a policy chooses the one that the job runs in. Times are whole ticks. At an
instant, first what ends at it frees nodes and power, then what is submitted at it joins the queue,
then one pass decides who starts, in which configuration. A job that has no work ends at the instant
of its start, and its end makes another round of the same instant.

Power is counted above idle: a configuration takes what its nodes draw less what they would draw
idle.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

NEVER = 2**62
"""The end of time: what nobody knows is planned to last this long."""


class Way(NamedTuple):
    """A configuration in which an application runs: its nodes, the cores of each and the cap; the
    time that it takes (NEVER: nobody knows) and the watts of all its nodes."""

    nodes: int
    cores: int
    cap_w: float
    time: int
    watts: float

    @property
    def name(self) -> tuple[int, int, float]:
        return self[:3]


class Job(NamedTuple):
    """What is asked for. Jobs are numbered from 0 in order of submission. A job of no known
    application is rigid: it runs for `run` on as many nodes as it asks for; and so does one that
    asks for fewer nodes than its application was measured on."""

    number: int
    submit: int
    nodes: int
    requested: int | None
    application: str | None = None
    run: int = 0


class Record(NamedTuple):
    """What became of a job: its state ("finished", "killed" or "waiting"), when it started and
    ended (-1: it never does), its nodes, and the name of its configuration (None: it is rigid)."""

    state: str
    start: int
    end: int
    nodes: int
    way: tuple[int, int, float] | None


class Rules(NamedTuple):
    """A policy, with all that can be said of it."""

    policy: str
    """One of traditional, naive and adaptive."""
    strict: bool = False
    threshold: float = 0.0
    short_of: str = "power"
    weight: float = 1.0
    margin: float = 0.0
    grace: float = 0.0
    """The part of its predicted time by which a job may exceed it: 0 where times are known."""
    backfill: str = "easy"


class Machine(NamedTuple):
    """What jobs run on."""

    nodes: int
    bound_w: float
    idle_w: float = 0.0
    most_w: float = 100.0
    """What a node of a rigid job draws."""
    known: Mapping[str, Sequence[Way]] = {}
    """What the policy believes of each application."""
    true: Mapping[str, Sequence[Way]] = {}
    """What is so: as long as `known`, configuration by configuration."""

    def moldable(self, job: Job) -> bool:
        """Tells whether a job has a choice: its application is known, on as few nodes as it asks
        for, or fewer."""
        ways = self.known.get(job.application or "", ())
        return any(way.nodes <= job.nodes for way in ways)


@dataclass(frozen=True)
class Held:
    """A job that runs: in which way, since when, and for how long at most and in truth."""

    job: Job
    way: Way
    since: int
    limit: int
    truth: int

    @property
    def end(self) -> int:
        return self.since + min(self.limit, self.truth)

    @property
    def latest_end(self) -> int:
        return NEVER if self.limit == NEVER else self.since + self.limit


@dataclass
class Reservation:
    """From when on the first job that waits has its nodes and power, and what is left of both then.
    Without one, `at` is NEVER and there is enough of everything."""

    at: int = NEVER
    nodes: float = math.inf
    power: float = math.inf


def micro(watts: float) -> int:
    """Returns power in whole microwatts, of which sums are exact."""
    return round(watts * 1e6)


class Shares:
    """What the bound of a machine gives to jobs, under a policy."""

    def __init__(self, machine: Machine, rules: Rules) -> None:
        self.machine, self.rules = machine, rules
        self.cluster_w = micro(
            machine.bound_w * (1.0 - rules.margin) - machine.nodes * machine.idle_w
        )

    def ways(self, job: Job) -> list[Way]:
        """Returns the configurations that a job can choose from, the best first: the fastest; of
        those the one that draws least, on the fewest nodes, with the fewest cores, at the lowest
        cap."""
        if not self.machine.moldable(job):
            time = NEVER if job.requested is None else job.requested
            return [Way(job.nodes, 0, math.inf, time, job.nodes * self.machine.most_w)]
        return sorted(self.machine.known[job.application],
                      key=lambda way: (way.time, way.watts, way.nodes, way.cores, way.cap_w)
                      )  # fmt: skip

    def power(self, way: Way) -> int:
        """Returns the microwatts of a configuration above idle."""
        return micro(way.watts - way.nodes * self.machine.idle_w)

    def fair(self, job: Job) -> int:
        """Returns the fair share of a job, in microwatts."""
        share = self.rules.weight * job.nodes / self.machine.nodes * self.cluster_w
        return min(self.cluster_w, round(share))

    def limit(self, job: Job, way: Way) -> int:
        """Returns how long a job may run at most."""
        if not self.machine.moldable(job):
            return way.time
        time = math.ceil(way.time * (1.0 + self.rules.grace))
        return time if job.requested is None else max(job.requested, time)

    def slow(self, job: Job, way: Way) -> bool:
        """Tells whether a configuration takes longer than a job puts up with."""
        if job.requested is None:
            return False
        return way.time > (1.0 + self.rules.threshold) * job.requested

    def wanted(self, job: Job) -> Way | None:
        """Returns the configuration that a job waits for; None: there is none under this bound."""
        ways = self.ways(job)
        if self.rules.policy == "traditional":
            return self._as_always(job, ways)
        ways = [way for way in ways if way.nodes <= self.machine.nodes]
        for way in ways:
            if self.power(way) <= self.fair(job):
                return way
        thrifty = sorted(ways, key=self.power)[:1]  # of those that take the same the fastest
        return thrifty[0] if thrifty and self.power(thrifty[0]) <= self.cluster_w else None

    def _as_always(self, job: Job, ways: list[Way]) -> Way | None:
        """Returns the configuration with all cores and without a cap."""
        packed: dict[int, Way] = {}
        for way in sorted(ways, key=lambda way: (way.cores, way.cap_w)):
            packed[way.nodes] = way  # of each number of nodes the most cores, the highest cap
        most = max(nodes for nodes in packed if nodes <= job.nodes)
        for nodes in sorted(packed, reverse=True):
            fits = nodes <= min(most, self.machine.nodes)
            if fits and self.power(packed[nodes]) <= self.cluster_w:
                return packed[nodes]
        return None

    def needs(self, job: Job, way: Way) -> int:
        """Returns the microwatts that must be free before a job is sure to start as it wants."""
        if self.insists(job) or (self.rules.policy == "adaptive" and self.slow(job, way)):
            return max(self.power(way), self.fair(job))
        return self.power(way)

    def insists(self, job: Job) -> bool:
        """Tells whether a job waits for all of its share, whatever it takes. A rigid one does not,
        as its share tells nothing about how it runs."""
        strict = self.rules.policy == "naive" and self.rules.strict
        return strict and self.machine.moldable(job)


class Pass:
    """One pass over the queue: what is left while jobs start."""

    def __init__(self, shares: Shares, now: int, running: Sequence[Held]) -> None:
        self.shares, self.now, self.running = shares, now, [*running]
        machine = shares.machine
        self.free = machine.nodes - sum(held.way.nodes for held in running)
        used = 0
        for held in sorted(running, key=lambda held: held.job.number):
            used += shares.power(held.way)
        self.available = shares.cluster_w - used
        self.reservation: Reservation | None = None
        """None: nobody has had to wait yet."""

    def go(self, queue: Sequence[Job]) -> list[Held]:
        """Returns those that start now."""
        started = []
        for job in queue if self.shares.cluster_w >= 0 else ():
            way = self.choice(job)
            if way is not None:
                started.append(self.start(job, way))
            elif self.shares.rules.backfill == "none":
                break
            elif self.reservation is None:
                easy = self.shares.rules.backfill == "easy"
                self.reservation = self.reserve(job) if easy else Reservation()
        return started

    def choice(self, job: Job) -> Way | None:
        """Returns the configuration in which a job starts now; None: it waits."""
        shares, rules = self.shares, self.shares.rules
        wanted, fair = shares.wanted(job), shares.fair(job)
        if rules.policy == "adaptive":
            crowded = wanted is not None and wanted.nodes > self.free
            if fair > self.available:
                return self.makeshift(job, self.available)
            if crowded and rules.short_of == "either":
                return self.makeshift(job, fair)
        if wanted is None or not self.fits(job, wanted):
            return None
        if shares.insists(job) and fair > self.available:
            return None
        return wanted

    def makeshift(self, job: Job, most_w: float) -> Way | None:
        """Returns the fastest configuration that can start now, if it is fast enough."""
        for way in self.shares.ways(job):
            if self.shares.power(way) <= most_w and self.fits(job, way):
                return None if self.shares.slow(job, way) else way
        return None

    def fits(self, job: Job, way: Way) -> bool:
        """Tells whether there are the nodes and the power for it now, and whether the first job
        that waits keeps its own."""
        power = self.shares.power(way)
        if way.nodes > self.free or power > self.available:
            return False
        return self.is_over(job, way) or (
            self.reservation is None
            or (way.nodes <= self.reservation.nodes and power <= self.reservation.power)
        )

    def is_over(self, job: Job, way: Way) -> bool:
        """Tells whether a job that starts now has left when the reservation begins."""
        limit = self.shares.limit(job, way)
        known = self.reservation is not None and limit < NEVER
        return known and self.now + limit <= self.reservation.at  # type: ignore[union-attr]

    def start(self, job: Job, way: Way) -> Held:
        power = self.shares.power(way)
        if self.reservation is not None and not self.is_over(job, way):
            self.reservation.nodes -= way.nodes
            self.reservation.power -= power
        self.free -= way.nodes
        self.available -= power
        truth = job.run
        if self.shares.machine.moldable(job):
            same = self.shares.machine.true[job.application or ""]
            truth = next(each.time for each in same if each.name == way.name)
        held = Held(job, way, self.now, self.shares.limit(job, way), truth)
        self.running.append(held)
        return held

    def reserve(self, job: Job) -> Reservation:
        """Returns the reservation of a job that waits; none if there is no time at which it could
        start."""
        wanted = self.shares.wanted(job)
        if wanted is None:
            return Reservation()
        needed = self.shares.needs(job, wanted)
        for at in sorted({held.latest_end for held in self.running} - {NEVER}):
            leaving = [held for held in self.running if held.latest_end <= at]
            nodes, power = self.free, self.available
            for held in sorted(leaving, key=lambda held: held.job.number):
                nodes += held.way.nodes
                power += self.shares.power(held.way)
            if nodes >= wanted.nodes and power >= needed:
                return Reservation(at, nodes - wanted.nodes, power - needed)
        return Reservation()


def simulate(
    jobs: Sequence[Job], machine: Machine, rules: Rules,
    order: Callable[[Job], int] = lambda job: 0,
) -> list[Record]:  # fmt: skip
    """Returns what becomes of each job. `order` is the key by which waiting jobs are sorted; those
    of one key, and usually all, are in order of submission."""
    shares = Shares(machine, rules)
    to_come, waiting, running = [*jobs], list[Job](), list[Held]()
    found = {job.number: Record("waiting", -1, -1, job.nodes, None) for job in jobs}
    while to_come or running:
        now = min([job.submit for job in to_come] + [held.end for held in running])
        for held in [held for held in running if held.end == now]:
            running.remove(held)
            state = "killed" if held.limit < held.truth else "finished"
            way = held.way.name if machine.moldable(held.job) else None
            found[held.job.number] = Record(state, held.since, now, held.way.nodes, way)
        waiting += [job for job in to_come if job.submit == now]
        to_come = [job for job in to_come if job.submit > now]
        waiting.sort(key=lambda job: (order(job), job.number))
        started = Pass(shares, now, running).go(waiting)
        running += started
        waiting = [job for job in waiting if all(job is not held.job for held in started)]
    return [found[job.number] for job in jobs]
