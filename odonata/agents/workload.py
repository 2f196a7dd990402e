"""The jobs of a run, each with its pattern of messages, and the policies by which they are run."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from odonata.agents import layout as w
from odonata.agents.decided import Supply
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
from odonata.agents.reports import (
    USUAL_DELAY_PS,
    USUAL_INTERVAL_PS,
    Telemetry,
)
from odonata.agents.scheduling import Scheduler
from odonata.jobs.board import Board
from odonata.jobs.request import (
    UNIFORM,
    WAITS,
    Job,
    Stage,
)
from pdes.errors import Fault, Findings, Refused
from pdes.events import Rows
from policies.allocation import ALLOCATIONS
from policies.register import check
from policies.scheduling import SCHEDULINGS, SchedulingPolicy, comes_again
from policies.views import Request
from topology.dragonfly import Dragonfly
from topology.settings import setting

if TYPE_CHECKING:
    from odonata.agents.following import Exchange

MOST_APART = 4096
"""The most jobs of which each has a histogram of latencies, of 10 KiB on every rank."""
MOST_PHASES = LABEL_MASK
"""The largest number of phases of a job, so that each has a label of its own."""
MOST_DRAWN = 10**9
"""The largest number of messages of a job whose receivers are drawn before it begins; a second per
hundred million."""


def sides_of(stage: Stage, tasks: int) -> tuple[int, int, int, int]:
    """Returns the sides of a stage's grid; 1 where it has none."""
    if stage.pattern not in DIMENSIONS:
        return 1, 1, 1, 1
    sides = stage.grid or near_cubic(tasks, DIMENSIONS[stage.pattern])
    return (*sides, 1, 1, 1)[:4]  # type: ignore[return-value]


def is_pairwise(stage: Stage) -> bool:
    """Tells whether tasks exchange with one partner after the other."""
    return stage.exchange == "pairwise" and stage.pattern in PAIRED


def phases_of(stage: Stage, tasks: int) -> int:
    """Returns the phases of one pass through a stage's pattern."""
    return phases(stage.pattern, is_pairwise(stage), tasks, sides_of(stage, tasks))


def check_stage(
    stage: Stage, about: Callable[[str], str], nodes: int, tasks_per_node: int, found: Findings
) -> None:
    """Find what is wrong with a stage whose fields are as they are declared, on so many nodes;
    `about` names its fields."""
    unless, tasks = found.unless, nodes * tasks_per_node
    if stage.grid is not None:
        dims = DIMENSIONS.get(stage.pattern, 0)
        sides = " × ".join(map(str, stage.grid))
        unless(dims > 0, f"grid = {sides}", f"{stage.pattern} is on no grid; "
               f"{', '.join(DIMENSIONS)} are", about("grid"), about("pattern"))  # fmt: skip
        unless(dims in (0, len(stage.grid)), f"grid = {sides}",
               f"{stage.pattern} needs {dims} sides",
               about("grid"), about("pattern"))  # fmt: skip
        places = math.prod(stage.grid)
        unless(places == tasks, f"grid = {sides}",
               f"it has {places} places for the job's {tasks} tasks "
               f"({nodes} nodes, {tasks_per_node} tasks each)",
               about("grid"), about("nodes"), "tasks_per_node")  # fmt: skip


def most_iterations(stages: Sequence[Stage], tasks: int) -> int:
    """Returns how many iterations of these stages a job may have: its phases are numbered, and the
    receivers of uniform messages are drawn before it begins, so that tasks know how many come."""
    passes = sum(phases_of(it, max(1, tasks)) * it.repeat for it in stages)
    drawn = sum(max(1, tasks) * it.repeat for it in stages if it.pattern == UNIFORM)
    most = (MOST_PHASES - 1) // passes
    return min(most, MOST_DRAWN // drawn) if drawn else most


def check_job(job: Job, where: str, tasks_per_node: int, found: Findings) -> None:
    """Find what is wrong with a job; `where` names it."""
    unless = found.unless

    def about(field: str) -> str:
        return f"{where}.{field}"

    check(job, found, about)
    for stage in job.stages:
        check(stage, found, lambda _: about("stages"))
    wrong = {field for problem in found.problems for field in problem.fields}

    def sound(*fields: str) -> bool:
        return wrong.isdisjoint(map(about, fields))

    if sound("on"):
        unless(len(set(job.on)) == len(job.on), "on = a label twice", "each label once",
               about("on"))  # fmt: skip
    if not sound("nodes") or "tasks_per_node" in wrong:
        return
    tasks = job.nodes * tasks_per_node
    for stage in job.parts if sound("pattern", "grid", "stages") else ():
        check_stage(
            stage, lambda field: about("stages" if job.stages and field != "nodes" else field),
            job.nodes, tasks_per_node, found,
        )  # fmt: skip
    if not found.problems:
        most = most_iterations(job.parts, tasks)
        unless(job.iterations <= most, f"iterations = {job.iterations}",
               f"at most {most} of {job.does}, on so many tasks",
               about("iterations"), about("pattern"), about("nodes"))  # fmt: skip
    unless(tasks >= 2, f"nodes = {job.nodes}",
           f"{job.does} needs two tasks that communicate, and "
           f"{tasks_per_node} per node make {tasks}",
           about("nodes"), about("pattern"), "tasks_per_node")  # fmt: skip
    if sound("on"):
        unless(len(job.on) in (0, job.nodes), f"on = {len(job.on)} nodes",
               f"as many labels as it has nodes, {job.nodes}",
               about("on"), about("nodes"))  # fmt: skip
    if sound("mapping") and not isinstance(job.mapping, str):
        unless(sorted(job.mapping) == list(range(tasks)),
               f"mapping = a list of {len(job.mapping)}",
               f"each of the job's {tasks} places once, 0 .. {tasks - 1}",
               about("mapping"), about("nodes"), "tasks_per_node")  # fmt: skip


MOST_INTERVALS = 256
"""The largest number of past intervals of counters that an allocation may read."""
MOST_UNDER_WAY = 10_000
"""The largest number of readings of a router that may be on their way to the scheduler at once."""
LONGEST_PS = 10**15
"""The longest that anything takes in the NIC, in the host or in the control network: 1,000 s."""


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
        "end to become known to the scheduler.", most=LONGEST_PS,
    )  # fmt: skip
    telemetry_ps: int | None = setting(
        None, "time", "Time between two readings of the counters of routers and nodes, which are "
        "reported to the scheduler; auto: 100 us where the allocation policy reads them, and else "
        "none are.", least=1000, most=LONGEST_PS, none="auto",
    )  # fmt: skip
    telemetry_delay_ps: int = setting(
        USUAL_DELAY_PS, "time", "How long a report takes from a router to the scheduler.",
        most=LONGEST_PS,
    )  # fmt: skip
    send_ps: int = setting(
        50_000, "time", "How long a message takes through the NIC before it wants the link.",
        section="nic", most=LONGEST_PS,
    )  # fmt: skip
    match_ps: int = setting(
        100_000, "time", "How long the NIC takes to match each message that arrives, one after "
        "the other.", section="nic", most=LONGEST_PS,
    )  # fmt: skip
    host_ps: int = setting(
        150_000, "time", "How long the NIC takes to hand a message over to its task.",
        section="nic", most=LONGEST_PS,
    )  # fmt: skip
    send_setup_ps: int = setting(
        0, "time", "How long the host takes to set up a message before the NIC has it.",
        section="nic", most=LONGEST_PS,
    )  # fmt: skip
    send_copy: float | None = setting(
        None, "bandwidth", "How fast the host copies a message that it sends.", section="nic",
        least=1, most=1e15, none="unlimited",
    )  # fmt: skip
    receive_setup_ps: int = setting(
        0, "time", "How long the host takes to set up a message that the NIC has handed over.",
        section="nic", most=LONGEST_PS,
    )  # fmt: skip
    receive_copy: float | None = setting(
        None, "bandwidth", "How fast the host copies a message that it receives.", section="nic",
        least=1, most=1e15, none="unlimited",
    )  # fmt: skip

    def __post_init__(self) -> None:
        found = Findings()
        unless = found.unless
        unless(len(self.jobs) > 0, "jobs = none", "at least one", "jobs")
        unless(not self.jobs or any(not job.background for job in self.jobs),
               "background = true", "at least one job is not in the background, so that the run "
               "ends", "jobs.0.background")  # fmt: skip
        check(self, found)
        unless(not (why := self._only_of_months()), f"order = {self.order}",
               f'it {why}, which only a run with fidelity = "job" can do', "order")  # fmt: skip
        every = self.telemetry_ps or USUAL_INTERVAL_PS
        unless(self.telemetry_delay_ps <= MOST_UNDER_WAY * every,
               f"telemetry_delay = {self.telemetry_delay_ps} ps",
               f"at most {MOST_UNDER_WAY:,} times the interval of {every} ps (telemetry), since "
               "all reports that are under way are kept", "telemetry_delay_ps")  # fmt: skip
        for number, job in enumerate(self.jobs):
            check_job(job, f"jobs.{number}", self.tasks_per_node, found)
        self._check_apart(found)
        found.refuse()

    def _check_apart(self, found: Findings) -> None:
        """Find jobs that name nodes of a job in the background: one of the two would never run
        while the other does."""
        taken = {label: job for job in self.jobs if job.background for label in job.on}
        for number, job in enumerate(self.jobs):
            both = [label for label in job.on if label in taken and not job.background]
            if both:
                name = taken[both[0]].name or taken[both[0]].does
                found.unless(False, f"on = {len(job.on)} nodes",
                             f"node {both[0]} is also one of {name}, which is in the background: "
                             "the two would never run at once", f"jobs.{number}.on")  # fmt: skip

    def _only_of_months(self) -> str:
        """Says what its discipline does that only the job model can, "" if nothing; one whose
        parameters are wrong is refused elsewhere."""
        try:
            made: SchedulingPolicy = SCHEDULINGS.make(self.order, self.order_parameters)
        except Refused:
            return ""
        if made.preemptive:
            return "preempts running jobs"
        if made.needs:
            return f"goes by {' and '.join(made.needs)}"
        return "asks to be asked again at a time" if comes_again(made) else ""

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
            found.unless(
                all(0 <= label < machine.n_nodes for label in job.on),
                f"on = {min(job.on, default=0)} .. {max(job.on, default=0)}",
                f"labels of nodes of the machine, 0 .. {machine.n_nodes - 1}",
                f"workload.jobs.{number}.on",
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
            min(size % packet_bytes or packet_bytes, size)
            for job in self.jobs
            for stage in job.parts
            for size in (stage.message_bytes, stage.reply_bytes)[: 1 + (stage.wait == "replies")]
        )

    @cached_property
    def waited_for(self) -> npt.NDArray[np.bool_]:
        """Tells of each job whether the run waits for it."""
        return np.array([not job.background for job in self.jobs])

    def number_of(self, job: int) -> int:
        """Returns the number of a job that its random numbers depend on."""
        own = self.jobs[job].number
        return job if own is None else own

    @property
    def distributes(self) -> bool:
        """Tells whether the latencies of every job are counted by themselves: of up to MOST_APART
        jobs."""
        return len(self.jobs) <= MOST_APART

    @cached_property
    def own(self) -> tuple[str, ...]:
        """Returns the patterns that plug-ins bring, in the order in which they are numbered."""
        names = dict.fromkeys(stage.pattern for job in self.jobs for stage in job.parts)
        return tuple(name for name in names if name not in PATTERNS)

    def scheduler(
        self,
        machine: Dragonfly,
        seed: int,
        power: Supply | None = None,
        market: Exchange | None = None,
    ) -> Scheduler:
        """Returns the scheduler of these jobs."""
        users, projects, alike = (
            _numbered(names) for names in (
                [job.user for job in self.jobs], [job.project for job in self.jobs],
                [(job.project, job.user, job.application or job.nodes) for job in self.jobs],
            )
        )  # fmt: skip
        requests = tuple(
            Request(n, job.nodes, job.arrival_ps, job.requested_ps, job.user, job.project,
                    job.application, job.name, users[n], projects[n], alike[n], job.on,
                    job.sensitive)
            for n, job in enumerate(self.jobs)
        )  # fmt: skip
        return Scheduler(
            machine=machine,
            requests=requests,
            allocation=ALLOCATIONS.make(self.allocation, self.allocation_parameters),
            discipline=SCHEDULINGS.make(self.order, self.order_parameters),
            seed=seed,
            launch=self.launch_ps,
            tasks_per_node=self.tasks_per_node,
            power=power,
            market=market,
        )

    @cached_property
    def telemetry(self) -> Telemetry | None:
        """Returns how the scheduler hears of the network; None where it does not."""
        reads = ALLOCATIONS.make(self.allocation, self.allocation_parameters).reads
        if not isinstance(reads, int) or not 0 <= reads <= MOST_INTERVALS:
            raise Fault(f"allocation {self.allocation}: its reads is {reads!r}, and not a number "
                        f"of intervals, 0 .. {MOST_INTERVALS}")  # fmt: skip
        if self.telemetry_ps is None and not reads:
            return None
        interval = USUAL_INTERVAL_PS if self.telemetry_ps is None else self.telemetry_ps
        return Telemetry(interval, self.telemetry_delay_ps, max(1, reads))

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
        table = np.zeros((len(self.jobs), len(w.OF_JOB)), np.int64)
        stages: list[tuple[int, ...]] = []
        friends = [np.zeros((0, 2), np.int64)]
        expected, expects, befriended = [np.zeros(0, np.int64)], 0, 0
        numbers = {name: n for n, name in enumerate((*PATTERNS, *self.own))}
        for number, job in enumerate(self.jobs):
            base, end = self.bases[number : number + 2].tolist()
            count, first = end - base, len(stages)
            rounds = [phases_of(stage, count) for stage in job.parts]
            passes = [
                phases * stage.repeat for phases, stage in zip(rounds, job.parts, strict=True)
            ]
            iteration, at = sum(passes), 0
            apart = any(stage.waits != "messages" for stage in job.parts)
            last = iteration * job.iterations + apart
            table[number] = first, len(job.parts), iteration, last, apart, base
            for stage, each, steps in zip(job.parts, rounds, passes, strict=True):
                stages.append((
                    numbers[stage.pattern], is_pairwise(stage), count, stage.message_bytes,
                    stage.compute_ps + stage.overhead_ps, each, *sides_of(stage, count),
                    1 << (count.bit_length() - 1), seed, self.number_of(number), expects,
                    self.preparing_ps(stage.message_bytes), self.handing_ps(stage.message_bytes),
                    at, befriended, WAITS.index(stage.waits), stage.reply_bytes, stage.overhead_ps,
                    stage.repeat * job.iterations, iteration,
                    math.floor(stage.imbalance * stage.compute_ps),
                ))  # fmt: skip
                if stage.pattern in self.own:
                    expected.append(expect(REGISTER.named(stage.pattern), count, each))
                    expects += len(expected[-1])
                begins = at + iteration * np.arange(job.iterations)
                own = self.number_of(number)
                friends.append(_friends(stage, seed, own, count, begins, steps))
                befriended += len(friends[-1])
                at += steps
        slots = np.zeros((nodes, self.tasks_per_node, len(w.OF_SLOT)), np.int64)
        slots[:, :, [w.JOB, w.EARLY, w.PARTS]] = -1
        return {
            "nic": np.array([self.match_ps, self.host_ps, self.launch_ps, stream]),
            "jobs": table,
            "stages": np.array(stages, np.int64),
            "friends": np.concatenate(friends),
            "expected": np.concatenate(expected),
            "places": np.full(tasks, -1, np.int64),
            "slots": slots,
            "matching": np.zeros(nodes, np.int64),
            "spent": np.zeros((len(stages), len(w.SPENT)), np.int64),
            "by_job": np.zeros((len(self.jobs), len(w.BY_JOB)), np.int64),
            "job_latencies": np.zeros((len(self.jobs) * self.distributes, w.BINS), np.int32),
            **(scheduler.fresh_board() if scheduler else Board.nowhere()).arrays(),
        }


def _friends(stage: Stage, seed: int, number: int, tasks: int, begins: Rows, steps: int) -> Rows:
    """Returns what `State.friends` has of a stage of a job, which begins at these phases of it and
    each time has so many phases."""
    if stage.pattern == UNIFORM:
        friends = np.zeros((tasks, 2), np.int64)
        counts = np.zeros(tasks, np.int64)
        count_strangers(seed, number, (begins[:, None] + np.arange(steps)).reshape(-1), counts)
        friends[:, w.AFTER] = counts
        return friends
    if stage.pattern in ("random-ring", "permutation"):
        return ring(seed, number, tasks)
    return np.zeros((0, 2), np.int64)


def _copying_ps(size: int, bandwidth: float | None) -> int:
    return 0 if bandwidth is None else math.floor(size * 1e12 / bandwidth + 0.5)


def _numbered(names: Sequence[Any]) -> list[int]:
    """Returns the number of each name, in the order in which names first appear."""
    numbers = {name: n for n, name in enumerate(dict.fromkeys(names))}
    return [numbers[name] for name in names]


def no_jobs() -> dict[str, Any]:
    """Returns the same arrays where there are no jobs."""
    return {
        "nic": np.full(len(w.NIC), -1),
        "jobs": np.zeros((0, len(w.OF_JOB)), np.int64),
        "stages": np.zeros((0, len(w.OF_STAGE)), np.int64),
        "friends": np.zeros((0, 2), np.int64),
        "expected": np.zeros(0, np.int64),
        "places": np.zeros(0, np.int64),
        "slots": np.zeros((0, 1, len(w.OF_SLOT)), np.int64),
        "matching": np.zeros(0, np.int64),
        "spent": np.zeros((0, len(w.SPENT)), np.int64),
        "by_job": np.zeros((0, len(w.BY_JOB)), np.int64),
        "job_latencies": np.zeros((0, w.BINS), np.int32),
        **Board.nowhere().arrays(),
    }
