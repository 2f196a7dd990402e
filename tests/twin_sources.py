"""Where the messages of the twin (`router_twin`) come from: open-loop traffic, and the tasks of
jobs, in plain Python.

A source is told of its events by the twin, and gives it messages with `twin.send`; the twin tells
it when the last packet of a message has been granted its link, and when all of it has arrived.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from twin_patterns import Sends, below, draw, exponential, mix, sends_of

from odonata.agents.commands import places_of
from odonata.jobs.board import DONE, LEFT, OVER, STATUS

CREDIT, ARBITRATE, ARRIVE, TAIL, DELIVER, START, GENERATE, STEP, ENDED, DECIDE = range(10)
"""Kinds of events, in the order in which they are handled at one instant."""
SCHEDULER = (-1, 0)
STREAM_BITS = 40


# -- messages


@dataclass(eq=False)
class Message:
    """A message: `left` are its bytes that have not been cut yet, `missing` those that have not
    arrived. `task` sent it, if a task did, and `then` is what passes after it has left until the
    task goes on; `box` is who it is for: job, task and phase."""

    source: int
    to: int
    born: int
    size: int
    word: int
    task: Task | None = None
    then: int = 0
    box: tuple[int, int, int] | None = None
    left: int = 0
    missing: int = 0

    def __post_init__(self) -> None:
        self.left = self.missing = self.size


class Source:
    """One open-loop traffic, at all nodes."""

    def __init__(self, twin: Any, number: int) -> None:
        self.twin, self.number = twin, number
        self.traffic = twin.network.traffic[number]
        m = twin.machine
        self.pace = self.traffic.pace(m)
        poisson = self.traffic.arrivals == "poisson"
        self.slot = None if poisson else round(self.traffic.slot_ps(m))
        self.partners = self.traffic.partners(m, twin.network.seed, 0, m.n_nodes).tolist()
        self.fixed = self.traffic.pattern in ("permutation", "transpose")
        self.drawn = [0] * m.n_nodes

    def begin(self) -> None:
        for node in range(self.twin.machine.n_nodes):
            w0, w1, _, _ = self.draw(node)
            if self.traffic.messages != 0 and not (self.fixed and self.partners[node] == node):
                self.later(node, self.gap(w0, w1))

    def draw(self, node: int) -> tuple[int, int, int, int]:
        count = self.drawn[node]
        self.drawn[node] += 1
        return draw(self.twin.network.seed, (self.number << STREAM_BITS) + node, count)

    def gap(self, w0: int, w1: int) -> int:
        if self.slot is None:
            return int(exponential(w0, w1) * self.pace + 0.5)
        return (1 + int(exponential(w0, w1) * self.pace)) * self.slot

    def later(self, node: int, time: int) -> None:
        if self.traffic.stop_ps is None or time < self.traffic.stop_ps:
            where = self.twin.agent_of(node)
            self.twin.at(time, GENERATE, where, (self.number,), self.generate, node)

    def target(self, node: int, word: int) -> int:
        t, m = self.traffic, self.twin.machine
        per_group, total = m.routers * m.nodes, m.n_nodes
        if self.fixed:
            return int(self.partners[node])
        if t.pattern == "adversarial":
            group = (node // per_group + t.stride) % m.groups
            return group * per_group + below(word, per_group)
        if t.pattern == "hotspot" and mix(word, 0) < round(t.hot * 2**32):
            hot = below(word, -(-total // t.hot_every)) * t.hot_every
            if hot != node:
                return int(hot)
            word = mix(word, 1)
        other = below(word, total - 1)
        return other + (other >= node)

    def generate(self, now: int, node: int) -> None:
        w0, w1, w2, w3 = self.draw(node)
        if self.drawn[node] - 1 != self.traffic.messages:
            self.later(node, now + self.gap(w0, w1))
        to = self.target(node, w2)
        if to != node:
            self.twin.send(now, Message(node, to, now, self.traffic.message_bytes, w3))


# -- tasks


@dataclass(eq=False)
class Task:
    """A task: in its `phase` it still has to send to `to`, then awaits what is for its box."""

    job: int
    number: int
    node: int
    slot: int
    phase: int = -1
    to: list[int] = field(default_factory=list)
    awaiting: bool = False


@dataclass
class Box:
    """The messages to one task in one phase: how many are to come, and when those that came will
    have been handed over."""

    to_come: int = 0
    ready: int = 0


class Jobs:
    """The jobs of a network, and their scheduler."""

    def __init__(self, twin: Any) -> None:
        self.twin, self.load = twin, twin.network.workload
        self.seed, self.scheduler = twin.network.seed, twin.network.scheduler
        self.board = self.scheduler.fresh_board()
        self.stream, self.drawn = len(twin.network.traffic), [0] * twin.machine.n_nodes
        self.matching = [0] * twin.machine.n_nodes
        self.tasks: dict[tuple[int, int], Task] = {}
        self.phases: list[Sends] = []
        self.last: list[int] = []
        self.boxes: dict[tuple[int, int, int], Box] = {}
        for number, job in enumerate(self.load.jobs):
            tasks = job.nodes * self.load.tasks_per_node
            self.phases.append(sends_of(job, tasks, self.seed, number))
            rounds = 1 if job.pattern == "uniform" else job.iterations
            self.last.append(rounds * len(self.phases[-1]))
            for phase in range(self.last[-1]):
                for task in range(tasks):
                    self.boxes[number, task, phase] = Box()
            for phase in range(self.last[-1]):
                for targets in self.of_phase(number, phase):
                    for to in targets:
                        self.boxes[number, to, self.label(number, phase)].to_come += 1

    def of_phase(self, job: int, phase: int) -> list[list[int]]:
        return self.phases[job][phase % len(self.phases[job])]

    def label(self, job: int, phase: int) -> int:
        """Returns the phase in which the receiver waits for what is sent in a phase."""
        pattern = self.load.jobs[job].pattern
        if pattern == "uniform":
            return self.last[job] - 1
        return phase - (pattern == "tree-broadcast")

    def begin(self) -> None:
        for time in sorted({job.arrival_ps for job in self.load.jobs}):
            self.twin.at(time, DECIDE, SCHEDULER, (0,), self.decide)

    # -- the scheduler

    def decide(self, now: int) -> None:
        starts, _ = self.scheduler.decide(self.board, now)
        each = self.load.tasks_per_node
        for job, labels, time in starts:
            for number, place in enumerate(places_of(self.load, self.seed, job).tolist()):
                task = Task(job, number, int(labels[place // each]), place % each)
                self.tasks[job, number] = task
                where = self.twin.agent_of(task.node)
                self.twin.at(time, START, where, (task.slot,), self.start, task)

    def heard(self, now: int, job: int, ended: int) -> None:
        row = self.board.jobs[job]
        row[LEFT] -= 1
        row[OVER] = max(row[OVER], ended)
        if row[LEFT] == 0:
            row[STATUS] = DONE
            self.twin.at(now, DECIDE, SCHEDULER, (0,), self.decide)

    # -- a task

    def start(self, now: int, task: Task) -> None:
        self.step_at(now + self.enter(task), task)

    def step_at(self, time: int, task: Task) -> None:
        self.twin.at(time, STEP, self.twin.agent_of(task.node), (task.slot,), self.step, task)

    def preparing(self, job: int) -> int:
        """Returns how long host and NIC prepare a message of a job, in ps."""
        size = self.load.jobs[job].message_bytes
        setup = self.load.send_setup_ps + self.load.send_ps
        return int(setup + copying(size, self.load.send_copy))

    def enter(self, task: Task) -> int:
        """Go on to the next phase. Returns how long the task computes and prepares."""
        task.phase += 1
        task.awaiting = False
        task.to = [*self.of_phase(task.job, task.phase)[task.number]]
        job = self.load.jobs[task.job]
        first = task.phase % len(self.phases[task.job]) == 0
        if job.pattern == "uniform":  # its phases are iterations, but for the last
            first = task.phase < self.last[task.job] - 1
        return (job.compute_ps if first else 0) + (self.preparing(task.job) if task.to else 0)

    def step(self, now: int, task: Task) -> None:
        while True:
            if task.to:
                self.post(now, task, task.to.pop(0))
                return
            task.awaiting = True
            box = self.boxes[task.job, task.number, task.phase]
            if box.to_come > 0:
                return
            if box.ready > now:
                self.step_at(box.ready, task)
                return
            if task.phase == self.last[task.job] - 1:
                heard = now + self.load.launch_ps
                self.twin.at(heard, ENDED, SCHEDULER, (0,), self.heard, task.job, now)
                return
            pause = self.enter(task)
            if pause:
                self.step_at(now + pause, task)
                return

    def post(self, now: int, task: Task, to: int) -> None:
        node, count = task.node, self.drawn[task.node]
        self.drawn[node] += 1
        word = draw(self.seed, (self.stream << STREAM_BITS) + node, count)[3]
        peer, size = self.tasks[task.job, to], self.load.jobs[task.job].message_bytes
        then = self.preparing(task.job) if task.to else 0
        box = task.job, to, self.label(task.job, task.phase)
        message = Message(node, peer.node, now, size, word, task, then, box)
        if peer.node == node:
            where = self.twin.agent_of(node)
            self.twin.at(now, DELIVER, where, (1 + task.slot,), self.complete, message)
            self.sent(now, message)
        else:
            self.twin.send(now, message)

    def sent(self, left: int, message: Message) -> None:
        """The last packet of a task's message begins to leave its node at this time."""
        assert message.task is not None
        self.step_at(left + message.then, message.task)

    def complete(self, now: int, message: Message) -> None:
        """All of a message to a task has arrived."""
        load, node = self.load, message.to
        self.matching[node] = max(now, self.matching[node]) + load.match_ps
        assert message.box is not None
        box, task = self.boxes[message.box], self.tasks[message.box[:2]]
        box.ready = max(box.ready, self.matching[node] + load.host_ps)
        box.ready += load.receive_setup_ps + copying(message.size, load.receive_copy)
        box.to_come -= 1
        if box.to_come == 0 and task.awaiting and task.phase == message.box[2]:
            self.step_at(box.ready, task)


def copying(size: int, bandwidth: float | None) -> int:
    return 0 if bandwidth is None else int(size * 1e12 / bandwidth + 0.5)
