"""What is to be run: jobs, each so many nodes that talk in a pattern, and by which policies."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from odonata.agents.packet import LABEL_MASK
from odonata.agents.patterns import (
    AFTER,
    DIMENSIONS,
    EXCHANGES,
    JOB_WORDS,
    PAIRED,
    PATTERNS,
    count_strangers,
    near_cubic,
    phases,
    ring,
)
from odonata.agents.task import BOARD_WORDS, EARLY, JOB, MOST_TASKS, SLOT_WORDS
from pdes.clock import LATEST
from pdes.errors import Findings
from pdes.events import FOREVER, Rows
from policies.allocation import ALLOCATIONS
from policies.scheduling import DISCIPLINES, Waiting
from topology.dragonfly import Dragonfly

MAPPINGS = ("random", "linear")
MOST_NODES = 1 << 22
"""Of a job: more than any machine here has."""
MOST_PHASES = LABEL_MASK
"""Of a job: so that each has a label of its own."""


@dataclass(frozen=True)
class Job:
    """`nodes` nodes that go through a pattern (`odonata.agents.patterns`) so many times, computing
    before each. Its tasks are numbered in the order of the nodes it is given (`mapping` linear), at
    random, or by a tuple: the place of each task among the job's places, node by node.
    """

    nodes: int
    pattern: str = "all-to-all"
    message_bytes: int = 1024
    iterations: int = 1
    exchange: str = "posted"
    """Or "pairwise", as there."""
    compute_ps: int = 0
    arrival_ps: int = 0
    grid: tuple[int, ...] | None = None
    """Of a pattern that is on one: its sides. None: near-cubic."""
    mapping: str | tuple[int, ...] = "random"
    name: str = ""

    def sides(self, tasks: int) -> tuple[int, int, int]:
        """Of its grid, where it has one."""
        if self.pattern not in DIMENSIONS:
            return 1, 1, 1
        sides = self.grid or near_cubic(tasks, DIMENSIONS[self.pattern])
        return (*sides, 1, 1)[:3]  # type: ignore[return-value]

    @property
    def pairwise(self) -> bool:
        """Does it go one partner after the other?"""
        return self.exchange == "pairwise" and self.pattern in PAIRED

    def phases(self, tasks: int) -> int:
        """Of one iteration."""
        return phases(self.pattern, self.pairwise, tasks, self.sides(tasks))

    def problems(self, where: str, tasks_per_node: int, found: Findings) -> None:
        unless, tasks = found.unless, self.nodes * tasks_per_node

        def about(field: str) -> str:
            return f"{where}.{field}"

        unless(1 <= self.nodes <= MOST_NODES, f"nodes = {self.nodes}", f"1 .. {MOST_NODES}",
               about("nodes"))  # fmt: skip
        unless(self.pattern in PATTERNS, f"pattern = {self.pattern}",
               f"one of {', '.join(PATTERNS)}{nearest(self.pattern, PATTERNS)}",
               about("pattern"))  # fmt: skip
        unless(1 <= self.message_bytes < 2**40, f"message = {self.message_bytes} B",
               "1 .. 2**40 bytes", about("message_bytes"))  # fmt: skip
        unless(self.iterations >= 1, f"iterations = {self.iterations}", "at least 1",
               about("iterations"))  # fmt: skip
        unless(self.exchange in EXCHANGES, f"exchange = {self.exchange}",
               f"{' or '.join(EXCHANGES)}{nearest(self.exchange, EXCHANGES)}",
               about("exchange"))  # fmt: skip
        most = MOST_PHASES
        if self.pattern in PATTERNS and not found.problems:
            most = (MOST_PHASES - 1) // self.phases(max(1, tasks))
        unless(self.iterations <= most, f"iterations = {self.iterations}",
               f"at most {most} of this pattern, on so many tasks",
               about("iterations"), about("pattern"), about("nodes"))  # fmt: skip
        unless(0 <= self.compute_ps <= LATEST // 2**10, f"compute = {self.compute_ps} ps",
               "0 .. an hour", about("compute_ps"))  # fmt: skip
        unless(0 <= self.arrival_ps <= LATEST // 2, f"arrival = {self.arrival_ps} ps",
               f"0 .. {LATEST // 2} ps, 26 days", about("arrival_ps"))  # fmt: skip
        unless(tasks >= 2, f"nodes = {self.nodes}",
               f"{self.pattern} needs two tasks to talk to each other, and "
               f"{tasks_per_node} a node make {tasks}",
               about("nodes"), about("pattern"), "tasks_per_node")  # fmt: skip
        if self.grid is not None:
            dims = DIMENSIONS.get(self.pattern, 0)
            told = " × ".join(map(str, self.grid))
            unless(dims > 0, f"grid = {told}", f"{self.pattern} is on no grid; "
                   f"{', '.join(DIMENSIONS)} are", about("grid"), about("pattern"))  # fmt: skip
            unless(dims in (0, len(self.grid)), f"grid = {told}",
                   f"{self.pattern} needs {dims} sides",
                   about("grid"), about("pattern"))  # fmt: skip
            unless(all(side >= 1 for side in self.grid), f"grid = {told}", "sides of at least 1",
                   about("grid"))  # fmt: skip
            made = math.prod(self.grid)
            unless(made == tasks, f"grid = {told}",
                   f"it has {made} places for the job's {tasks} tasks "
                   f"({self.nodes} nodes, {tasks_per_node} tasks each)",
                   about("grid"), about("nodes"), "tasks_per_node")  # fmt: skip
        if isinstance(self.mapping, str):
            unless(self.mapping in MAPPINGS, f"mapping = {self.mapping}",
                   f"{', '.join(MAPPINGS)} or a list", about("mapping"))  # fmt: skip
        else:
            unless(sorted(self.mapping) == list(range(tasks)),
                   f"mapping = a list of {len(self.mapping)}",
                   f"each of the job's {tasks} places once, 0 .. {tasks - 1}",
                   about("mapping"), about("nodes"), "tasks_per_node")  # fmt: skip


def nearest(word: str, words: Sequence[str]) -> str:
    """What may have been meant, if it is not one of them."""
    if word in words:
        return ""
    near = difflib.get_close_matches(word, words, 1)
    return f"; did you mean {near[0]}?" if near else ""


@dataclass(frozen=True)
class Workload:
    """Jobs, and how they are run: who is next (`order`, of policies.scheduling) and where it goes
    (`allocation`). A command takes `launch_ps` from the scheduler to a node, and so does the word
    that a task has ended.

    A message takes `send_ps` through its task's side of the NIC before it wants the link; a task
    has one there at a time, and goes on to the next when its last packet leaves. At the other end
    the NIC needs `match_ps` for each message, one after the other, and `host_ps` to hand it over.
    """

    jobs: tuple[Job, ...]
    allocation: str = "level-spread"
    order: str = "fcfs"
    tasks_per_node: int = 2
    launch_ps: int = 10_000_000
    send_ps: int = 50_000
    match_ps: int = 100_000
    host_ps: int = 150_000

    warmup_ps: ClassVar[int] = 0
    measure_ps: ClassVar[None] = None
    """All of it is measured."""

    def __post_init__(self) -> None:
        found = Findings()
        unless = found.unless
        unless(len(self.jobs) > 0, "jobs = none", "at least one", "jobs")
        unless(1 <= self.tasks_per_node <= MOST_TASKS, f"tasks_per_node = {self.tasks_per_node}",
               f"1 .. {MOST_TASKS}", "tasks_per_node")  # fmt: skip
        for register, name in ((ALLOCATIONS, self.allocation), (DISCIPLINES, self.order)):
            if name not in register:
                register.load()
        unless(self.allocation in ALLOCATIONS, f"allocation = {self.allocation}",
               f"one of {', '.join(ALLOCATIONS)}{nearest(self.allocation, [*ALLOCATIONS])}",
               "allocation")  # fmt: skip
        unless(self.order in DISCIPLINES, f"order = {self.order}",
               f"one of {', '.join(DISCIPLINES)}{nearest(self.order, [*DISCIPLINES])}",
               "order")  # fmt: skip
        for name in ("launch_ps", "send_ps", "match_ps", "host_ps"):
            value = getattr(self, name)
            unless(0 <= value <= 10**15, f"{name.removesuffix('_ps')} = {value} ps",
                   "0 .. 1,000 s", name)  # fmt: skip
        for number, job in enumerate(self.jobs):
            job.problems(f"jobs.{number}", self.tasks_per_node, found)
        found.refuse()

    def check_on(self, machine: Dragonfly, found: Findings) -> None:
        for number, job in enumerate(self.jobs):
            found.unless(
                job.nodes <= machine.n_nodes,
                f"nodes = {job.nodes}",
                f"job {number} is larger than the machine, which has {machine.n_nodes} nodes",
                f"traffic.jobs.{number}.nodes",
                "machine.nodes",
                "machine.routers",
                "machine.groups",
            )

    # -- numbers

    def least_packet(self, packet_bytes: int) -> int:
        """The smallest piece of any message."""
        return min(
            min(job.message_bytes % packet_bytes or packet_bytes, job.message_bytes)
            for job in self.jobs
        )

    @cached_property
    def by_arrival(self) -> Rows:
        """Numbers of jobs, in the order in which they join the queue."""
        return np.argsort([job.arrival_ps for job in self.jobs], kind="stable")

    @cached_property
    def arrivals(self) -> Rows:
        """When those arrive."""
        return np.array([self.jobs[number].arrival_ps for number in self.by_arrival], np.int64)

    @cached_property
    def waiting(self) -> tuple[Waiting, ...]:
        """Each job, as a queue discipline sees it."""
        return tuple(Waiting(n, job.nodes, job.arrival_ps) for n, job in enumerate(self.jobs))

    @cached_property
    def bases(self) -> Rows:
        """Where the tasks of each job begin, in a row of all; and, last, how many there are."""
        tasks = [job.nodes * self.tasks_per_node for job in self.jobs]
        return np.concatenate(([0], np.cumsum(tasks)))

    def arrays(self, machine: Dragonfly, seed: int, g0: int, g1: int) -> Mapping[str, Any]:
        """Those of `State` that are about jobs."""
        per_group = machine.routers * machine.nodes
        n, tasks = (g1 - g0) * per_group, int(self.bases[-1])
        table = np.zeros((len(self.jobs), JOB_WORDS), np.int64)
        friends = np.full((tasks, 2), -1, np.int64)
        for number, job in enumerate(self.jobs):
            base, end = self.bases[number : number + 2].tolist()
            count = end - base
            rounds = job.phases(count)
            waits = job.pattern == "uniform"
            table[number] = (
                PATTERNS.index(job.pattern), job.pairwise, count, job.message_bytes, job.compute_ps,
                rounds, rounds * job.iterations + waits, *job.sides(count),
                1 << (count.bit_length() - 1), base, seed,
            )  # fmt: skip
            if waits:
                counts = np.zeros(count, np.int64)
                count_strangers(seed, number, job.iterations, counts)
                friends[base:end, AFTER] = counts
            elif job.pattern in ("random-ring", "permutation"):
                friends[base:end] = ring(seed, number, count)
        here = g0 == 0
        slots = np.zeros((n, self.tasks_per_node, SLOT_WORDS), np.int64)
        slots[:, :, [JOB, EARLY]] = -1
        return {
            "traffic": np.array([seed, 0, machine.n_nodes, per_group, 0, 0, 0, 0, 0, 0, 1]),
            "pace": np.zeros(1),
            "measured": np.array([0, FOREVER]),
            "partners": np.zeros(n, np.int64),
            "nic": np.array([self.send_ps, self.match_ps, self.host_ps, self.launch_ps]),
            "jobs": table,
            "friends": friends,
            "places": np.full(tasks, -1, np.int64),
            "slots": slots,
            "matching": np.zeros(n, np.int64),
            "board": np.zeros((len(self.jobs) if here else 0, BOARD_WORDS), np.int64),
            "owner": np.full(machine.n_nodes if here else 0, -1, np.int64),
            "labels": np.full(tasks // self.tasks_per_node if here else 0, -1, np.int64),
        }


NO_JOBS: Mapping[str, Any] = {
    "nic": np.full(4, -1),
    "jobs": np.zeros((0, JOB_WORDS), np.int64),
    "friends": np.zeros((0, 2), np.int64),
    "places": np.zeros(0, np.int64),
    "slots": np.zeros((0, 1, SLOT_WORDS), np.int64),
    "matching": np.zeros(0, np.int64),
    "board": np.zeros((0, BOARD_WORDS), np.int64),
    "owner": np.zeros(0, np.int64),
    "labels": np.zeros(0, np.int64),
}
"""Of `State`: what is about jobs, where there are none."""
