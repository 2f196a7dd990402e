"""A second scheduler, written to be read and not to be fast: everything is computed anew at every
event. It shares no line with the real one, which is held against it job by job.

Times are whole ticks. At an instant, first what ends at it frees its nodes, then what is submitted
at it joins the queue, then one pass decides who is served from now on. A job that has no work ends
at the instant of its start, and its end makes another round of the same instant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

NEVER = 2**62
"""The end of time: an unknown request is this long, and nothing is planned to hold nodes at it."""
FACTOR = 0.9892280131939755
"""2 ** (-1/64): what is left of a user's usage after a 64th of the half-life."""


class Job(NamedTuple):
    """What is asked for. Jobs are numbered from 0 in order of submission."""

    number: int
    submit: int
    run: int
    nodes: int
    requested: int | None
    user: int = 0


class Record(NamedTuple):
    """What became of a job."""

    start: int
    end: int
    state: str
    segments: list[tuple[int, int]]


@dataclass(eq=False)
class Task:
    """A job that has been submitted: it waits (`since` is None) or is served."""

    job: Job
    service: int
    since: int | None = None
    segments: list[tuple[int, int]] = field(default_factory=list)

    @property
    def request(self) -> int:
        return NEVER if self.job.requested is None else self.job.requested

    def remaining(self, now: int) -> int:
        """Returns what is left of its request; of an unknown one it is not known either."""
        return NEVER if self.job.requested is None else self.job.requested - self.served(now)

    def served(self, now: int) -> int:
        before = sum(to - begin for begin, to in self.segments)
        return before if self.since is None else before + now - self.since


@dataclass
class Cluster:
    """What a discipline sees in a pass."""

    nodes: int
    now: int = 0
    present: list[Task] = field(default_factory=list)  # waiting, served or suspended, by number
    gone: list[Task] = field(default_factory=list)
    ended: list[Task] = field(default_factory=list)  # at this round of this instant
    arrived: list[Task] = field(default_factory=list)  # the same
    plans: dict[int, int] = field(default_factory=dict)  # of conservative: number -> start

    @property
    def running(self) -> list[Task]:
        return [task for task in self.present if task.since is not None]

    @property
    def waiting(self) -> list[Task]:
        return [task for task in self.present if task.since is None]

    def expected_end(self, task: Task) -> int:
        """Returns when a running job will end, or a waiting one if it starts now, as far as a
        policy that sees only requests can tell; one past its request may end at any tick."""
        if task.job.requested is None:
            return NEVER
        start = self.now if task.since is None else task.since
        return max(start + task.job.requested, self.now + 1)


def size(tasks: Iterable[Task]) -> int:
    return sum(task.job.nodes for task in tasks)


def simulate(
    jobs: Sequence[Job], nodes: int, discipline: str, overrun: str = "kill", **parameters: Any
) -> list[Record]:
    """Returns what becomes of each job on so many nodes. `overrun`: whether a job that reaches its
    requested time is ended ("kill") or goes on ("extend")."""
    assert overrun in ("kill", "extend")
    tasks = []
    for number, job in enumerate(jobs):
        assert job.number == number
        assert number == 0 or jobs[number - 1].submit <= job.submit
        assert 1 <= job.nodes <= nodes
        task = Task(job, job.run)
        if overrun == "kill":
            task.service = min(job.run, task.request)
        tasks.append(task)

    cluster = Cluster(nodes)
    to_come = list(tasks)
    while to_come or cluster.present:
        ends = [cluster.now + task.service - task.served(cluster.now) for task in cluster.running]
        instants = ends + [task.job.submit for task in to_come]
        assert instants, "jobs wait for ever"
        assert min(instants) >= cluster.now
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

        chosen = SCHEDULINGS[discipline](cluster, **parameters)
        assert size(chosen) <= nodes, "more nodes are used than there are"
        for task in cluster.present:
            if task in chosen and task.since is None:
                task.since = now
            elif task not in chosen and task.since is not None:
                assert discipline == "lcfs-pr" or parameters.get("printed")
                assert task.since < now
                halt(task, now)
    return [record(task) for task in tasks]


def halt(task: Task, now: int) -> None:
    assert task.since is not None
    task.segments.append((task.since, now))
    task.since = None


def record(task: Task) -> Record:
    assert task.served(task.segments[-1][1]) == task.service
    killed = task.service < task.job.run
    return Record(task.segments[0][0], task.segments[-1][1],
                  "killed" if killed else "finished", task.segments)  # fmt: skip


# Who starts, given the order in which waiting jobs are considered. Each of these, and each
# discipline, returns all that are served from now on.


def none(cluster: Cluster, order: list[Task]) -> list[Task]:
    chosen = cluster.running
    for task in order:
        if size(chosen) + task.job.nodes > cluster.nodes:
            break
        chosen = [*chosen, task]
    return chosen


def first_fit(cluster: Cluster, order: list[Task]) -> list[Task]:
    chosen = cluster.running
    for task in order:
        if size(chosen) + task.job.nodes <= cluster.nodes:
            chosen = [*chosen, task]
    return chosen


def easy(cluster: Cluster, order: list[Task], only_before_shadow: bool = False) -> list[Task]:
    chosen = none(cluster, order)
    rest = [task for task in order if task not in chosen]
    if not rest:
        return chosen
    head, *following = rest

    def available(at: int) -> int:
        still = [task for task in chosen if cluster.expected_end(task) > at]
        return cluster.nodes - size(still)

    ends = [cluster.expected_end(task) for task in chosen]
    shadow = min(end for end in ends if available(end) >= head.job.nodes)
    extra = available(shadow) - head.job.nodes
    for task in following:
        end = cluster.expected_end(task)
        if size(chosen) + task.job.nodes > cluster.nodes:
            continue
        if only_before_shadow and end >= shadow:
            continue
        if end > shadow:
            if task.job.nodes > extra:
                continue
            extra -= task.job.nodes
        chosen = [*chosen, task]
    return chosen


def easy_strict(cluster: Cluster, order: list[Task]) -> list[Task]:
    return easy(cluster, order, only_before_shadow=True)


BACKFILLS = {"none": none, "first-fit": first_fit, "easy": easy, "easy-strict": easy_strict}

# Disciplines that keep no plans. Python's sort keeps the order of ties, which is that of numbers.


def sorted_by(
    key: Callable[[Task], float], backfill: str = "none"
) -> Callable[[Cluster], list[Task]]:
    return lambda cluster: BACKFILLS[backfill](cluster, sorted(cluster.waiting, key=key))


def wfp(cluster: Cluster, backfill: str = "easy") -> list[Task]:
    def score(task: Task) -> float:
        w = (cluster.now - task.job.submit) / task.request
        return w * w * w * task.job.nodes

    return sorted_by(lambda task: -score(task), backfill)(cluster)


def fair_share(cluster: Cluster, half_life: int, backfill: str = "easy") -> list[Task]:
    step = max(1, half_life // 64)
    users = {task.job.user for task in cluster.waiting}
    usage = {user: usage_of(user, cluster, step) for user in users}
    return sorted_by(lambda task: usage[task.job.user], backfill)(cluster)


def usage_of(user: int, cluster: Cluster, step: int) -> float:
    """Returns what a user has used by now, in node-ticks, older use counting for less."""
    held = []
    for task in cluster.gone + cluster.present:
        if task.job.user == user:
            held += [(begin, to, task.job.nodes) for begin, to in task.segments]
            if task.since is not None:
                held.append((task.since, cluster.now, task.job.nodes))

    def between(begin: int, end: int) -> int:
        return sum(n * max(0, min(end, to) - max(begin, start)) for start, to, n in held)

    usage, boundary = 0.0, 0
    while boundary + step <= cluster.now:
        usage = (usage + between(boundary, boundary + step)) * FACTOR
        boundary += step
    return usage + between(boundary, cluster.now)


def serve(cluster: Cluster, order: list[Task]) -> list[Task]:
    """Returns those of all the jobs present that are served, whoever was served before."""
    chosen: list[Task] = []
    for task in order:
        if size(chosen) + task.job.nodes > cluster.nodes:
            break
        chosen.append(task)
    return chosen


def lcfs_pr(cluster: Cluster) -> list[Task]:
    return serve(cluster, sorted(cluster.present, key=lambda task: -task.job.number))


def processing_first(cluster: Cluster, sign: int, printed: bool) -> list[Task]:
    if printed:
        if not cluster.ended and cluster.running:
            return cluster.running
        return serve(cluster, sorted(
            cluster.present, key=lambda task: sign * task.remaining(cluster.now)
        ))  # fmt: skip
    waited = [task for task in cluster.waiting if task not in cluster.arrived]
    if not cluster.ended and waited:
        return cluster.running
    return sorted_by(lambda task: sign * task.request)(cluster)


def spf(cluster: Cluster, printed: bool = False) -> list[Task]:
    return processing_first(cluster, 1, printed)


def lpf(cluster: Cluster, printed: bool = False) -> list[Task]:
    return processing_first(cluster, -1, printed)


# Conservative backfilling. A plan at NEVER holds no nodes.


def conservative(cluster: Cluster) -> list[Task]:
    plans = cluster.plans
    if not still_valid(cluster):
        plans.clear()
    elif cluster.ended:
        for task in cluster.waiting:
            if task.job.number in plans:
                before = plans.pop(task.job.number)
                plans[task.job.number] = earliest(cluster, task)
                assert plans[task.job.number] <= before
    for task in cluster.waiting:
        if task.job.number not in plans:
            plans[task.job.number] = earliest(cluster, task)
    assert still_valid(cluster)
    starting = [task for task in cluster.waiting if plans[task.job.number] == cluster.now]
    for task in starting:
        del plans[task.job.number]
    return cluster.running + starting


def reservations(cluster: Cluster) -> list[tuple[int, int, int]]:
    """Returns from when to when running jobs and those with a plan hold how many nodes."""
    found = [(cluster.now, cluster.expected_end(task), task.job.nodes) for task in cluster.running]
    for task in cluster.waiting:
        if task.job.number in cluster.plans:
            start = cluster.plans[task.job.number]
            found.append((start, min(start + task.request, NEVER), task.job.nodes))
    return found


def most_used(held: list[tuple[int, int, int]], begin: int, end: int) -> int:
    """Returns the most nodes that are held at any time from `begin` to before `end`; use grows
    only where a reservation begins."""
    instants = [begin] + [start for start, _, _ in held if begin < start < end]
    return max(sum(n for start, to, n in held if start <= at < to) for at in instants)


def still_valid(cluster: Cluster) -> bool:
    if any(plan < cluster.now for plan in cluster.plans.values()):
        return False
    return most_used(reservations(cluster), cluster.now, NEVER) <= cluster.nodes


def earliest(cluster: Cluster, task: Task) -> int:
    """Returns the first start at which a job's nodes stay free for as long as it asks for."""
    held = reservations(cluster)
    for start in sorted({cluster.now, *(to for _, to, _ in held)}):
        end = min(start + task.request, NEVER)
        if most_used(held, start, end) + task.job.nodes <= cluster.nodes:
            return start
    raise AssertionError("the machine is free when everything has ended")


SCHEDULINGS: dict[str, Callable[..., list[Task]]] = {
    "fcfs": sorted_by(lambda task: task.job.number),
    "small-first": sorted_by(lambda task: task.job.nodes),
    "large-first": sorted_by(lambda task: -task.job.nodes),
    "shortest-first": sorted_by(lambda task: task.request),
    "longest-first": sorted_by(lambda task: -task.request),
    "first-fit": sorted_by(lambda task: task.job.number, "first-fit"),
    "easy": sorted_by(lambda task: task.job.number, "easy"),
    "easy-strict": sorted_by(lambda task: task.job.number, "easy-strict"),
    "conservative": conservative,
    "wfp": wfp,
    "fair-share": fair_share,
    "lcfs-pr": lcfs_pr,
    "spf": spf,
    "lpf": lpf,
}


def kiefer_wolfowitz(jobs: Sequence[Job], nodes: int) -> list[int]:
    """Returns how long each job waits first come, first served: the work left on each node, in
    ascending order, is all that one need know. A job of n nodes takes the n that are free first."""
    work, before, waits = [0] * nodes, 0, []
    for job in jobs:
        work = sorted(max(0, left - (job.submit - before)) for left in work)
        wait = work[job.nodes - 1]
        waits.append(wait)
        work[: job.nodes] = [wait + job.run] * job.nodes
        before = job.submit
    return waits
