"""The jobs of a run, each with its pattern of messages, and the policies by which they are run."""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from odonata.agents.layout import AFTER, EARLY, JOB, JOB_WORDS, PARTS, SLOT_WORDS
from odonata.agents.packet import LABEL_MASK
from odonata.agents.patterns import (
    DIMENSIONS,
    PAIRED,
    PATTERNS,
    REGISTER,
    count_strangers,
    expect,
    near_cubic,
    phases,
    ring,
)
from odonata.agents.task import MOST_TASKS
from odonata.jobs.board import Board
from odonata.jobs.powering import Powering
from odonata.jobs.request import EXCHANGES, MAPPINGS, MOST_NODES, Job
from odonata.jobs.scheduler import Scheduler
from pdes.clock import LATEST
from pdes.errors import Findings, Refused
from pdes.events import Rows
from policies.allocation import ALLOCATIONS
from policies.scheduling import DISCIPLINES, SchedulingPolicy
from policies.views import Request
from topology.dragonfly import Dragonfly
from topology.settings import setting

MOST_PHASES = LABEL_MASK
"""The largest number of phases of a job, so that each has a label of its own."""


def sides_of(job: Job, tasks: int) -> tuple[int, int, int]:
    """Returns the sides of a job's grid; 1 where it has none."""
    if job.pattern not in DIMENSIONS:
        return 1, 1, 1
    sides = job.grid or near_cubic(tasks, DIMENSIONS[job.pattern])
    return (*sides, 1, 1)[:3]  # type: ignore[return-value]


def is_pairwise(job: Job) -> bool:
    """Tells whether a job's tasks exchange with one partner after the other."""
    return job.exchange == "pairwise" and job.pattern in PAIRED


def phases_of(job: Job, tasks: int) -> int:
    """Returns the phases of one iteration of a job."""
    return phases(job.pattern, is_pairwise(job), tasks, sides_of(job, tasks))


def check(job: Job, where: str, tasks_per_node: int, found: Findings) -> None:
    """Find what is wrong with a job; `where` names it."""
    unless, tasks = found.unless, job.nodes * tasks_per_node

    def about(field: str) -> str:
        return f"{where}.{field}"

    unless(1 <= job.nodes <= MOST_NODES, f"nodes = {job.nodes}", f"1 .. {MOST_NODES}",
           about("nodes"))  # fmt: skip
    unless(REGISTER.known(job.pattern) or job.pattern in REGISTER, f"pattern = {job.pattern}",
           f"one of {', '.join(REGISTER)}{nearest(job.pattern, [*REGISTER])}",
           about("pattern"))  # fmt: skip
    unless(1 <= job.message_bytes < 2**40, f"message = {job.message_bytes} B",
           "1 .. 2**40 bytes", about("message_bytes"))  # fmt: skip
    unless(job.iterations >= 1, f"iterations = {job.iterations}", "at least 1",
           about("iterations"))  # fmt: skip
    unless(job.exchange in EXCHANGES, f"exchange = {job.exchange}",
           f"{' or '.join(EXCHANGES)}{nearest(job.exchange, EXCHANGES)}",
           about("exchange"))  # fmt: skip
    most = MOST_PHASES
    if REGISTER.known(job.pattern) and not found.problems:
        most = (MOST_PHASES - 1) // phases_of(job, max(1, tasks))
    unless(job.iterations <= most, f"iterations = {job.iterations}",
           f"at most {most} of this pattern, on so many tasks",
           about("iterations"), about("pattern"), about("nodes"))  # fmt: skip
    unless(0 <= job.compute_ps <= LATEST // 2**10, f"compute = {job.compute_ps} ps",
           "0 .. an hour", about("compute_ps"))  # fmt: skip
    unless(0 <= job.arrival_ps <= LATEST // 2, f"arrival = {job.arrival_ps} ps",
           f"0 .. {LATEST // 2} ps, 26 days", about("arrival_ps"))  # fmt: skip
    unless(tasks >= 2, f"nodes = {job.nodes}",
           f"{job.pattern} needs two tasks that communicate, and "
           f"{tasks_per_node} per node make {tasks}",
           about("nodes"), about("pattern"), "tasks_per_node")  # fmt: skip
    if job.grid is not None:
        dims = DIMENSIONS.get(job.pattern, 0)
        sides = " × ".join(map(str, job.grid))
        unless(dims > 0, f"grid = {sides}", f"{job.pattern} is on no grid; "
               f"{', '.join(DIMENSIONS)} are", about("grid"), about("pattern"))  # fmt: skip
        unless(dims in (0, len(job.grid)), f"grid = {sides}",
               f"{job.pattern} needs {dims} sides",
               about("grid"), about("pattern"))  # fmt: skip
        unless(all(side >= 1 for side in job.grid), f"grid = {sides}", "sides of at least 1",
               about("grid"))  # fmt: skip
        places = math.prod(job.grid)
        unless(places == tasks, f"grid = {sides}",
               f"it has {places} places for the job's {tasks} tasks "
               f"({job.nodes} nodes, {tasks_per_node} tasks each)",
               about("grid"), about("nodes"), "tasks_per_node")  # fmt: skip
    if isinstance(job.mapping, str):
        unless(job.mapping in MAPPINGS, f"mapping = {job.mapping}",
               f"{', '.join(MAPPINGS)} or a list", about("mapping"))  # fmt: skip
    else:
        unless(sorted(job.mapping) == list(range(tasks)),
               f"mapping = a list of {len(job.mapping)}",
               f"each of the job's {tasks} places once, 0 .. {tasks - 1}",
               about("mapping"), about("nodes"), "tasks_per_node")  # fmt: skip


def nearest(word: str, words: Sequence[str]) -> str:
    """Returns a hint at the word that may have been meant, if this is not one of them."""
    if word in words:
        return ""
    near = difflib.get_close_matches(word, words, 1)
    return f"; did you mean {near[0]}?" if near else ""


@dataclass(frozen=True)
class Workload:
    """Jobs, and how they are run: which is next (`order`, of policies.scheduling) and where it is
    placed (`allocation`). A command takes `launch_ps` from the scheduler to a node, and so does the
    notice that a task has ended.

    A message takes `send_ps` in the NIC before it requests the link; a task has one message there
    at a time, and goes on to the next when the last packet of this one leaves. At the other end the
    NIC needs `match_ps` for each message, one after the other, and `host_ps` to hand it over. The
    hosts at both ends need a setup for each message, and copy it at so many bytes per second (None:
    at once).
    """

    jobs: tuple[Job, ...]
    allocation: str = setting(
        "level-spread", "word", "Allocation policy, which chooses the nodes of a job; `odonata "
        "policies` explains them.", register="allocation",
    )  # fmt: skip
    order: str = setting(
        "fcfs", "word", "Queue discipline: which waiting jobs start next.", register="scheduling"
    )
    allocation_parameters: tuple[tuple[str, Any], ...] = ()
    """Name and value of each parameter that differs from the policy's default."""
    order_parameters: tuple[tuple[str, Any], ...] = ()
    tasks_per_node: int = setting(2, "whole", "Tasks that each node runs.", least=1, most=128)
    launch_ps: int = setting(
        10_000_000, "time", "How long a command takes from the scheduler to a node, and a task's "
        "end to become known to the scheduler.",
    )  # fmt: skip
    send_ps: int = setting(
        50_000, "time", "How long a message takes through the NIC before it wants the link.",
        section="nic",
    )  # fmt: skip
    match_ps: int = setting(
        100_000, "time", "How long the NIC takes to match each message that arrives, one after "
        "the other.", section="nic",
    )  # fmt: skip
    host_ps: int = setting(
        150_000, "time", "How long the NIC takes to hand a message over to its task.",
        section="nic",
    )  # fmt: skip
    send_setup_ps: int = setting(
        0, "time", "How long the host takes to set up a message before the NIC has it.",
        section="nic",
    )  # fmt: skip
    send_copy: float | None = setting(
        None, "bandwidth", "How fast the host copies a message that it sends.", section="nic",
        none="unlimited",
    )  # fmt: skip
    receive_setup_ps: int = setting(
        0, "time", "How long the host takes to set up a message that the NIC has handed over.",
        section="nic",
    )  # fmt: skip
    receive_copy: float | None = setting(
        None, "bandwidth", "How fast the host copies a message that it receives.", section="nic",
        none="unlimited",
    )  # fmt: skip

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
        unless(not self._preempts(), f"order = {self.order}",
               'it preempts running jobs, which only a run with fidelity = "job" can do',
               "order")  # fmt: skip
        times = ("launch_ps", "send_ps", "match_ps", "host_ps", "send_setup_ps", "receive_setup_ps")
        for name in times:
            value = getattr(self, name)
            unless(0 <= value <= 10**15, f"{name.removesuffix('_ps')} = {value} ps",
                   "0 .. 1,000 s", name)  # fmt: skip
        for name in ("send_copy", "receive_copy"):
            value = getattr(self, name)
            unless(value is None or 1 <= value <= 1e15, f"{name} = {value} B/s",
                   "1 B/s .. 1 PB/s, or unlimited", name)  # fmt: skip
        for number, job in enumerate(self.jobs):
            check(job, f"jobs.{number}", self.tasks_per_node, found)
        found.refuse()

    def _preempts(self) -> bool:
        """Tells whether its discipline takes nodes from running jobs; one whose parameters are
        wrong is refused elsewhere."""
        try:
            made: SchedulingPolicy = DISCIPLINES.make(self.order, self.order_parameters)
            return made.preemptive
        except Refused:
            return False

    def check_on(self, machine: Dragonfly, found: Findings) -> None:
        for number, job in enumerate(self.jobs):
            found.unless(
                job.nodes <= machine.n_nodes,
                f"nodes = {job.nodes}",
                f"job {number} is larger than the machine, which has {machine.n_nodes} nodes",
                f"workload.jobs.{number}.nodes",
                "machine.nodes",
                "machine.routers",
                "machine.groups",
            )

    # -- numbers

    def preparing_ps(self, size: int) -> int:
        """Returns how long host and NIC take to prepare a message of so many bytes, in ps."""
        return self.send_ps + self.send_setup_ps + _copying_ps(size, self.send_copy)

    def handing_ps(self, size: int) -> int:
        """Returns how long the host of the receiver takes for such a message, in ps."""
        return self.receive_setup_ps + _copying_ps(size, self.receive_copy)

    def least_packet(self, packet_bytes: int) -> int:
        """Returns the size of the smallest packet of any message, in bytes."""
        return min(
            min(job.message_bytes % packet_bytes or packet_bytes, job.message_bytes)
            for job in self.jobs
        )

    @cached_property
    def own(self) -> tuple[str, ...]:
        """Returns the patterns that plug-ins bring, in the order in which they are numbered."""
        return tuple(dict.fromkeys(j.pattern for j in self.jobs if j.pattern not in PATTERNS))

    def scheduler(self, machine: Dragonfly, seed: int, power: Powering | None = None) -> Scheduler:
        """Returns the scheduler of these jobs."""
        users, projects, alike = (
            _numbered(names) for names in (
                [job.user for job in self.jobs], [job.project for job in self.jobs],
                [(job.project, job.user, job.application or job.nodes) for job in self.jobs],
            )
        )  # fmt: skip
        requests = tuple(
            Request(n, job.nodes, job.arrival_ps, job.requested_ps, job.user, job.project,
                    job.application, job.name, users[n], projects[n], alike[n])
            for n, job in enumerate(self.jobs)
        )  # fmt: skip
        return Scheduler(
            machine=machine,
            requests=requests,
            allocation=ALLOCATIONS.make(self.allocation, self.allocation_parameters),
            discipline=DISCIPLINES.make(self.order, self.order_parameters),
            seed=seed,
            launch=self.launch_ps,
            tasks_per_node=self.tasks_per_node,
            power=power,
        )

    @cached_property
    def bases(self) -> Rows:
        """Returns where the tasks of each job begin in an array of all tasks; and, last, how many
        there are."""
        tasks = [job.nodes * self.tasks_per_node for job in self.jobs]
        return np.concatenate(([0], np.cumsum(tasks)))

    def arrays(
        self, seed: int, nodes: int, stream: int = 0, scheduler: Scheduler | None = None
    ) -> dict[str, Any]:
        """Returns the arrays of `State` that are about jobs, for a rank with so many nodes and,
        where it is given, with the scheduler. Tasks draw random numbers from this `stream`."""
        tasks = int(self.bases[-1])
        table = np.zeros((len(self.jobs), JOB_WORDS), np.int64)
        friends = np.full((tasks, 2), -1, np.int64)
        numbers = {name: n for n, name in enumerate((*PATTERNS, *self.own))}
        expected, expects = [np.zeros(0, np.int64)], 0
        for number, job in enumerate(self.jobs):
            base, end = self.bases[number : number + 2].tolist()
            count = end - base
            rounds = phases_of(job, count)
            waits = job.pattern == "uniform"
            table[number] = (
                numbers[job.pattern], is_pairwise(job), count, job.message_bytes,
                job.compute_ps, rounds, rounds * job.iterations + waits, *sides_of(job, count),
                1 << (count.bit_length() - 1), base, seed, number, expects,
                self.preparing_ps(job.message_bytes), self.handing_ps(job.message_bytes),
            )  # fmt: skip
            if job.pattern in self.own:
                expected.append(expect(REGISTER.named(job.pattern), count, rounds))
                expects += len(expected[-1])
            if waits:
                counts = np.zeros(count, np.int64)
                count_strangers(seed, number, job.iterations, counts)
                friends[base:end, AFTER] = counts
            elif job.pattern in ("random-ring", "permutation"):
                friends[base:end] = ring(seed, number, count)
        slots = np.zeros((nodes, self.tasks_per_node, SLOT_WORDS), np.int64)
        slots[:, :, [JOB, EARLY, PARTS]] = -1
        return {
            "nic": np.array([self.match_ps, self.host_ps, self.launch_ps, stream]),
            "jobs": table,
            "friends": friends,
            "expected": np.concatenate(expected),
            "places": np.full(tasks, -1, np.int64),
            "slots": slots,
            "matching": np.zeros(nodes, np.int64),
            **(scheduler.fresh_board() if scheduler else Board.nowhere()).arrays(),
        }


def _copying_ps(size: int, bandwidth: float | None) -> int:
    return 0 if bandwidth is None else math.floor(size * 1e12 / bandwidth + 0.5)


def _numbered(names: Sequence[Any]) -> list[int]:
    """Returns the number of each name, in the order in which names first appear."""
    numbers = {name: n for n, name in enumerate(dict.fromkeys(names))}
    return [numbers[name] for name in names]


def no_jobs() -> dict[str, Any]:
    """Returns the same arrays where there are no jobs."""
    return {
        "nic": np.full(4, -1),
        "jobs": np.zeros((0, JOB_WORDS), np.int64),
        "friends": np.zeros((0, 2), np.int64),
        "expected": np.zeros(0, np.int64),
        "places": np.zeros(0, np.int64),
        "slots": np.zeros((0, 1, SLOT_WORDS), np.int64),
        "matching": np.zeros(0, np.int64),
        **Board.nowhere().arrays(),
    }
