"""A second simulator of demand response, written from docs/demand-response.md alone, to be read and
not to be fast: nothing is kept that can be computed anew. It shares no line with the real one.

Times are whole microseconds, powers watts, energies joules. Between two control instants no job
starts and no cap changes, so each job that runs gets on by itself until the next one, or its end.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

SECOND = 1_000_000
HAIR, LATER = 1e-9, 1e-6  # shares, and degradations, that differ by no more are equal
HAIR_W = 1e-6  # and powers
DONE = 0.001  # a job with no more microseconds of work left than this has ended


class Type(NamedTuple):
    """What jobs have in common. A threshold of infinity is none."""

    name: str
    most_w: float
    least_w: float
    slowdown: float
    threshold: float

    @property
    def low_w(self) -> float:
        return min(self.least_w, self.most_w)

    def draw(self, cap: float | None) -> float:
        """Returns what a node draws under a cap, or without one."""
        if cap is None or self.most_w <= self.least_w:
            return self.most_w
        return min(self.most_w, max(cap, self.least_w))

    def pace(self, cap: float | None) -> float:
        """Returns how many microseconds one of work takes under a cap."""
        if self.most_w <= self.least_w:
            return 1.0
        return 1 + (self.slowdown - 1) * (self.most_w - self.draw(cap)) / (
            self.most_w - self.least_w
        )


class Job(NamedTuple):
    """What is asked for, in the order of the trace."""

    submit_us: int
    run_us: int
    nodes: int
    kind: int


class Setting(NamedTuple):
    """A machine, what it is asked for, and how it decides. A bid (average, reserve, weights by
    type) is for an hour. `standby` is the type whose jobs never run out; no job of the trace is of
    it. The run ends before it would decide at `end_us`, which is a whole number of intervals."""

    nodes: int
    idle_w: float
    types: Sequence[Type]
    jobs: Sequence[Job]
    policy: str
    hour_us: int
    bids: Sequence[tuple[float, float, Sequence[float]]]
    signal: Sequence[tuple[int, float]]
    end_us: int
    interval_us: int = SECOND
    preemption: bool = False
    standby: int | None = None
    standby_run_us: int = 0
    standby_nodes: int = 1
    limit: float = 0.3
    weighted: bool = True
    sharing: bool = True
    parts: bool = True
    capping: bool = True
    planned: bool = False
    gaps: bool = False
    gain: float = 0.0


class Found(NamedTuple):
    """What came of it: by job, by interval, or as a sum. A ratio of None is no cap."""

    start_us: list[int]
    end_us: list[int]
    power_w: list[float]
    target_w: list[float]
    standby_w: list[float]
    standby_started: int
    standby_ended: int
    suspended_s: list[float]
    energy_j: list[float]
    idle_j: float
    standby_j: float
    left_us: list[float]  # the work left at the end of the run
    caps: list[tuple[int, float | None]]  # when the ratio of the caps changed, and to what
    ties: list[tuple[int, str]]  # when, and where, rounding may have decided


class Hour(NamedTuple):
    """What an hour was like. None is undefined."""

    error: float | None
    bad: float | None  # the share of intervals with an error above the limit
    cost: float
    saving: float | None
    late: list[float | None]  # the share of late jobs, by type


@dataclass(eq=False)
class Live:
    """A job, and how far it is. Standby jobs have numbers of their own, by their starts."""

    number: int
    standby: bool
    submit: int
    run: int
    nodes: int
    kind: int
    left: float
    start: int = -1
    end: int = -1
    suspended: int = 0
    energy: float = 0.0


def target_at(setting: Setting, time: int) -> float:
    average, reserve, _ = setting.bids[time // setting.hour_us]
    return average + setting.signal[bisect(setting.signal, (time, math.inf)) - 1][1] * reserve


def mean_target(setting: Setting, begin: int, end: int) -> float:
    """Returns the mean of the target, which changes with the signal and with the bid."""
    first, last = (bisect(setting.signal, (time, -math.inf)) for time in (begin, end))
    changes = [since for since, _ in setting.signal[first:last]]
    changes += range(begin // setting.hour_us * setting.hour_us, end, setting.hour_us)
    times = [begin, *sorted(time for time in changes if begin < time < end), end]
    return sum(target_at(setting, a) * (b - a) for a, b in pairwise(times)) / (end - begin)


def shares(n: float, weights: Sequence[float], demand: Sequence[int]) -> list[float]:
    """Returns the nodes that each type is to have of n, by progressive filling."""
    share, still, left = [0.0 for _ in weights], [j for j, d in enumerate(demand) if d > 0], n
    while True:
        total = sum(weights[j] for j in still)
        part = {j: left * weights[j] / total if total else 0.0 for j in still}
        closed = [j for j in still if part[j] >= demand[j] - HAIR]
        for j in closed:
            share[j] = demand[j]
            left -= demand[j]
            still.remove(j)
        if not closed:
            return [part.get(j, nodes) for j, nodes in enumerate(share)]


class Machine:
    def __init__(self, setting: Setting) -> None:
        self.setting, self.types = setting, setting.types
        self.now, self.target, self.ratio, self.ties = 0, 0.0, None, []
        self.low_w = [kind.low_w for kind in setting.types]
        self.most_w = [kind.most_w for kind in setting.types]
        self.coming = [Live(i, False, *j, float(j.run_us)) for i, j in enumerate(setting.jobs)]
        self.jobs = list(self.coming)
        self.standby: list[Live] = []
        self.waiting, self.running, self.suspended = [], [], []

    def cap_of(self, kind: Type) -> float | None:
        return None if self.ratio is None else kind.low_w + self.ratio * (kind.most_w - kind.low_w)

    def power(self, node_w: Sequence[float]) -> float:
        """Returns the power of the machine where a busy node draws this, by type."""
        busy = [sum(job.nodes for job in self.running if job.kind == j) for j in range(len(node_w))]
        idle_w = (self.setting.nodes - sum(busy)) * self.setting.idle_w
        return idle_w + sum(n * node_w[j] for j, n in enumerate(busy))

    def urgency(self, job: Live) -> float:
        threshold = math.inf if job.standby else self.types[job.kind].threshold
        longer = self.now - job.submit + job.left - job.run
        return longer / max(job.run, SECOND) / threshold

    def note(self, a: float, b: float, where: str) -> None:
        """Notes two numbers that rounding may set apart."""
        finite = math.isfinite(a) and math.isfinite(b)
        if finite and a != b and abs(a - b) <= 1e-9 * max(1.0, abs(a), abs(b)):
            self.ties.append((self.now, where))

    def fits(self, job: Live) -> bool:
        return job.nodes + sum(x.nodes for x in self.running + self.suspended) <= self.setting.nodes

    def added(self, job: Live) -> float:
        return job.nodes * (self.most_w[job.kind] - self.setting.idle_w)

    def within(self, power: float, where: str) -> bool:
        self.note(power, self.target + HAIR_W, where)
        return power <= self.target + HAIR_W

    def room(self, job: Live, where: str) -> bool:
        """Tells whether the target leaves room for this job, if nobody were capped."""
        return self.within(self.power(self.most_w) + self.added(job), where)

    def start(self, job: Live) -> None:
        assert self.fits(job)
        self.waiting.remove(job)
        self.running.append(job)
        job.start = self.now

    def decide(self) -> None:
        while self.coming and self.coming[0].submit <= self.now:
            self.waiting.append(self.coming.pop(0))
        self.target = target_at(self.setting, self.now)
        if not self.setting.bids[self.now // self.setting.hour_us][1]:
            self.target = math.inf  # nothing is offered, and there is nothing to follow
        self.follow()

    def follow(self) -> None:
        """Does what the policy does, once the target is known."""
        if self.setting.policy == "energy-qare" and self.quality_first():
            self.ratio = None
            return
        if self.setting.preemption:
            self.resume()
        if not self.suspended:
            weighted = self.setting.policy in ("qosg", "aqa") and self.setting.weighted
            self.start_by_weights() if weighted else self.start_in_order()
        if self.setting.standby is not None:
            self.start_standby(self.setting.standby)
        self.cap()
        if self.setting.preemption and self.preempt():
            self.cap()

    def quality_first(self) -> bool:
        """Starts jobs whatever the target, and tells whether it did."""
        own = [x for x in self.waiting + self.running + self.suspended if not x.standby]
        own = [x for x in own if self.types[x.kind].threshold != math.inf]
        quality = [self.urgency(job) for job in sorted(own, key=lambda x: x.number)]
        mean = sum(quality) / max(1, len(quality))
        power = self.power([kind.draw(self.cap_of(kind)) for kind in self.types])
        reserve, before = self.setting.bids[self.now // self.setting.hour_us][1], len(self.running)
        while reserve and self.waiting and self.fits(self.waiting[0]):
            bar = abs(power - self.target) / reserve / self.setting.limit + LATER
            self.note(mean, bar, "quality")
            if mean <= bar:
                break
            power += self.added(self.waiting[0])
            self.start(self.waiting[0])
        return len(self.running) > before

    def resume(self) -> None:
        while self.suspended and self.room(job := self.pick(self.suspended, -1, "most"), "resume"):
            self.suspended.remove(job)
            self.running.append(job)

    def preempt(self) -> bool:
        """Suspends jobs until the machine can be as low as the target, and tells whether it did."""
        before, least_w = len(self.suspended), self.low_w if self.setting.capping else self.most_w
        while True:
            among = [x for x in self.running if least_w[x.kind] > self.setting.idle_w]
            if self.within(self.power(least_w), "preempt") or not among:
                return len(self.suspended) > before
            job = self.pick(among, 1, "least")
            self.running.remove(job)
            self.suspended.append(job)

    def pick(self, among: list[Live], sign: int, where: str) -> Live:
        """Returns the least urgent job, standby jobs first; with a sign of -1 the other way."""
        ranks = [((not x.standby) * sign, self.urgency(x) * sign, x.number) for x in among]
        best = min(ranks)
        for rank in ranks:
            if rank[0] == best[0]:
                self.note(rank[1], best[1], where)
        return among[ranks.index(best)]

    def start_in_order(self) -> None:
        while (line := self.waiting) and self.fits(line[0]) and self.room(line[0], "in order"):
            self.start(line[0])

    def urgent(self, kind: int) -> float:
        """Returns how far the wait of the first waiting job of a type has come."""
        job = next((job for job in self.waiting if job.kind == kind), None)
        if job is None or self.types[kind].threshold == math.inf:
            return 0.0
        return (self.now - job.submit) / max(job.run, SECOND) / self.types[kind].threshold

    def planned(self) -> tuple[float, list[float]]:
        """Returns how many nodes the target feeds, and how many of them each type is to have."""
        setting, kinds = self.setting, range(len(self.types))
        given = setting.bids[self.now // setting.hour_us][2]
        if not any(w for j, w in enumerate(given) if j != setting.standby):
            given = [1.0 for _ in kinds]
        weights = [0.0 if j == setting.standby else w for j, w in enumerate(given)]
        weights = [w * (1 + setting.gain * self.urgent(j)) for j, w in enumerate(weights)]
        weights = [w / (sum(weights) or 1.0) for w in weights]
        by_node = sum(weights[j] * setting.types[j].most_w for j in kinds) - setting.idle_w
        n = (self.target - setting.nodes * setting.idle_w) / by_node if by_node > 0 else math.inf
        n = min(max(n, 0.0), setting.nodes)
        own = [job for job in self.waiting + self.running if not job.standby]
        demand = [sum(x.nodes for x in own if x.kind == j) for j in kinds]
        if not setting.sharing:
            return n, [min(n * w, d) for w, d in zip(weights, demand, strict=True)]
        return n, shares(n, weights, demand)

    def start_by_weights(self) -> None:
        _, share = self.planned()
        for wholly in (True, False) if self.setting.parts else (True,):
            while deserving := self.deserving(share, wholly):
                most, job = 0.0, deserving[0][1]
                for deficit, first in deserving:
                    self.note(deficit, most + HAIR, "two types")
                    if deficit > most + HAIR:
                        most, job = deficit, first
                self.start(job)

    def deserving(self, share: list[float], wholly: bool) -> list[tuple[float, Live]]:
        """Returns the first jobs of types that may start one, each with its type's deficit."""
        result = []
        for j, nodes in enumerate(share):
            first = next((job for job in self.waiting if job.kind == j), None)
            if first is not None and self.fits(first):
                runs = sum(x.nodes for x in self.running if x.kind == j and not x.standby)
                deficit = (nodes - runs) / first.nodes
                self.note(deficit, 1 - HAIR if wholly else HAIR, "weights")
                if (deficit > 1 - HAIR if wholly
                        else deficit > HAIR and self.room(first, "parts")):  # fmt: skip
                    result.append((deficit, first))
        return result

    def start_standby(self, kind: int) -> None:
        run, nodes = self.setting.standby_run_us, self.setting.standby_nodes
        offered = self.setting.bids[self.now // self.setting.hour_us][1] > 0
        while offered and not self.suspended and (self.setting.gaps or not self.waiting):
            job = Live(len(self.standby), True, self.now, run, nodes, kind, float(run))
            if not (self.fits(job) and self.room(job, "standby")):
                break
            self.standby.append(job)
            self.waiting.append(job)
            self.start(job)

    def cap(self) -> None:
        full, low = self.power(self.most_w), self.power(self.low_w)
        self.ratio = None
        if full <= self.target + HAIR_W or not self.setting.capping:
            return
        if self.setting.planned:
            n, share = self.planned()
            low = (self.setting.nodes - n) * self.setting.idle_w
            full = low + sum(nodes * w for nodes, w in zip(share, self.most_w, strict=True))
            low += sum(nodes * w for nodes, w in zip(share, self.low_w, strict=True))
        ratio = (self.target - low) / (full - low) if full != low else 0.0
        self.ratio = min(1.0, max(0.0, ratio))

    def go_on(self, span: int) -> tuple[float, float, float]:
        """Advances by an interval; returns the energies of idle nodes, of jobs, of standby jobs."""
        free, own, standby = self.setting.nodes * span, 0.0, 0.0
        for job in self.running + self.suspended:
            held, watts = span, self.setting.idle_w
            if job in self.suspended:
                job.suspended += span
            else:
                kind = self.types[job.kind]
                watts, pace = kind.draw(self.cap_of(kind)), kind.pace(self.cap_of(kind))
                if job.left - span / pace <= DONE:
                    held = min(span, math.floor((job.left - DONE) * pace))
                    while job.left - held / pace > DONE:
                        held += 1
                    job.end = self.now + held
                job.left -= held / pace
                if job.end >= 0 and not 1e-6 < DONE - job.left < 1 / pace - 1e-6:
                    self.ties.append((job.end, "end"))
            energy = job.nodes * watts * held / SECOND
            job.energy += energy
            own, standby = own + energy * (not job.standby), standby + energy * job.standby
            free -= job.nodes * held
        self.running = [job for job in self.running if job.end < 0]
        return free * self.setting.idle_w / SECOND, own, standby


def simulate(setting: Setting, machine: Machine | None = None) -> Found:
    machine, seconds = machine or Machine(setting), setting.interval_us / SECOND
    power_w, target_w, standby_w, idle_j, caps = [], [], [], 0.0, [(0, None)]
    for begin in range(0, setting.end_us, setting.interval_us):
        machine.now = begin
        machine.decide()
        if machine.ratio != caps[-1][1]:
            caps.append((begin, machine.ratio))
        idle, own, standby = machine.go_on(setting.interval_us)
        idle_j += idle
        power_w.append((idle + own + standby) / seconds)
        standby_w.append(standby / seconds)
        target_w.append(mean_target(setting, begin, begin + setting.interval_us))
    jobs, extra = machine.jobs, machine.standby
    # fmt: off
    return Found(
        [x.start for x in jobs], [x.end for x in jobs], power_w, target_w, standby_w,
        len(extra), sum(x.end >= 0 for x in extra), [x.suspended / SECOND for x in jobs],
        [x.energy for x in jobs], idle_j, sum(x.energy for x in extra),
        [x.left for x in jobs], caps[1:], machine.ties,
    )
    # fmt: on


def q_of(setting: Setting, found: Found, job: int) -> float:
    """Returns the degradation of a job, as if it ran on without a cap after the end of the run."""
    asked, end = setting.jobs[job], found.end_us[job]
    end = end if end >= 0 else setting.end_us + math.ceil(found.left_us[job] - DONE)
    return (end - asked.submit_us - asked.run_us) / max(asked.run_us, SECOND)


def hours(setting: Setting, found: Found, prices=(), violation=0.0, rule=(0.3, 0.1)) -> list[Hour]:
    """Returns what each hour was like. The prices are the means (of power, reserve and error) for
    each hour, per kWh; the rule is the limit and the share. An hour that the run cuts short is as
    long as the run leaves it. Where there is no reserve the rule cannot be broken."""
    result = []
    for number, begin in enumerate(range(0, setting.end_us, setting.hour_us)):
        end = min(begin + setting.hour_us, setting.end_us)
        average, reserve, _ = setting.bids[number]
        of_power, of_reserve, of_error = prices[number] if prices else (0.1, 0.1, 0.1)
        steps = range(begin // setting.interval_us, end // setting.interval_us)
        off = [abs(found.power_w[i] - found.target_w[i]) for i in steps]
        if not reserve:  # who offers nothing pays for what is drawn
            average = sum(found.power_w[i] for i in steps) / len(steps)
        error = sum(off) / reserve / len(off) if reserve else None
        bad = sum(w / reserve > rule[0] + HAIR for w in off) / len(off) if reserve else None
        kwh = (end - begin) / SECOND / 3600 / 1000
        base = of_power * average * kwh
        cost = base + (of_error * (error or 0.0) - of_reserve) * reserve * kwh
        cost += violation if reserve and bad >= rule[1] else 0.0
        late: list[float | None] = []
        for j, kind in enumerate(setting.types):
            its = enumerate(setting.jobs)
            mine = [i for i, x in its if x.kind == j and begin <= x.submit_us < end]
            count = sum(q_of(setting, found, i) >= kind.threshold for i in mine)
            late.append(count / len(mine) if mine else None)
        result.append(Hour(error, bad, cost, 1 - cost / base if base else None, late))
    return result
