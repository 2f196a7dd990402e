"""Where the messages of the twin (`router_twin`) come from: open-loop traffic, and the tasks of
jobs, in plain Python.

A source is told of its events by the twin, and gives it messages with `twin.send`; the twin tells
it when the last packet of a message has been granted its link, and when all of it has arrived.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from twin_patterns import below, draw, exponential, mix, sends_of, task_draw

from odonata.agents.commands import places_of
from odonata.agents.partners import FIXED
from odonata.jobs.board import DONE, LEFT, OVER, STATUS
from odonata.jobs.request import Job, Stage

CREDIT, ARBITRATE, ARRIVE, TAIL, DELIVER, START, GENERATE, STEP, ENDED, DECIDE = range(10)
"""Kinds of events, in the order in which they are handled at one instant."""
SCHEDULER = (-1, 0)
STREAM_BITS = 40


# -- messages


@dataclass(eq=False)
class Message:
    """A message: `left` are its bytes that have not been cut yet, `missing` those that have not
    arrived. `task` sent it and goes on when it has left, if a task does, and `then` is what passes
    after that. `box` is who a message of a `job` is for: job, task and phase. A request has an
    `asker`, the task to which the NIC of the receiver answers with a `reply` of so many bytes; the
    reply has the asker too, and no box."""

    source: int
    to: int
    born: int
    size: int
    word: int
    job: int | None = None
    task: Task | None = None
    then: int = 0
    box: tuple[int, int, int] | None = None
    asker: Task | None = None
    reply: int = 0
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
        self.fixed = self.traffic.pattern in FIXED
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
    """A task: in its `phase` it still has to send to `to`, then awaits what is for its box, and so
    many `replies`, all of which it will have when it is `answered`. It has sent, or waited, `since`
    this time, before which it computed, and had overhead, for what it `owes` to the counters."""

    job: int
    number: int
    node: int
    slot: int
    phase: int = -1
    to: list[int] = field(default_factory=list)
    awaiting: bool = False
    replies: int = 0
    answered: int = 0
    since: int = 0
    owes: tuple[int, int] = (0, 0)


@dataclass
class Box:
    """The messages to one task in one phase: how many are to come, and when those that came will
    have been handed over."""

    to_come: int = 0
    ready: int = 0


@dataclass
class Phase:
    """A phase of a job: of which stage, and which row of all stages of all jobs that is; whether it
    is the `first` of a pass; to whom each task sends; and in which phase the receivers wait for
    that. In a phase `apart`, the last, tasks only wait for what no other phase waited for."""

    stage: Stage
    row: int
    first: bool
    sends: list[list[int]]
    label: int
    apart: bool = False


def phases_of(job: Job, tasks: int, seed: int, number: int, row: int) -> list[Phase]:
    """Returns all phases of a job whose stages have rows from this one on."""
    found: list[Phase] = []
    apart: list[Phase] = []
    for _ in range(job.iterations):
        for place, stage in enumerate(job.parts):
            for _ in range(stage.repeat):
                begin = len(found)
                for n, sends in enumerate(sends_of(stage, tasks, seed, number, begin)):
                    label = begin + n - (stage.pattern == "tree-broadcast")
                    found.append(Phase(stage, row + place, n == 0, sends, label))
                if stage.wait != "messages" or stage.pattern == "uniform":
                    apart += found[begin:]
    for phase in apart:
        phase.label = len(found)
    if apart:
        last = found[-1]
        nothing: list[list[int]] = [[] for _ in range(tasks)]
        found.append(Phase(last.stage, last.row, False, nothing, len(found), True))
    return found


class Jobs:
    """The jobs of a network, and their scheduler. `spent` is what tasks did with their time, by
    stage: computing, overhead, sending and waiting."""

    def __init__(self, twin: Any) -> None:
        self.twin, self.load = twin, twin.network.workload
        self.seed, self.scheduler = twin.network.seed, twin.network.scheduler
        self.board = self.scheduler.fresh_board()
        self.stream, self.drawn = len(twin.network.traffic), [0] * twin.machine.n_nodes
        self.matching = [0] * twin.machine.n_nodes
        self.tasks: dict[tuple[int, int], Task] = {}
        self.phases: list[list[Phase]] = []
        self.boxes: dict[tuple[int, int, int], Box] = {}
        self.spent: list[list[int]] = []
        for number, job in enumerate(self.load.jobs):
            tasks = job.nodes * self.load.tasks_per_node
            own = self.load.number_of(number)
            phases = phases_of(job, tasks, self.seed, own, len(self.spent))
            self.phases.append(phases)
            self.spent += [[0, 0, 0, 0] for _ in job.parts]
            for phase in range(len(phases)):
                for task in range(tasks):
                    self.boxes[number, task, phase] = Box()
            for phase in phases:
                for targets in phase.sends:
                    for to in targets:
                        self.boxes[number, to, phase.label].to_come += 1

    def phase(self, task: Task) -> Phase:
        return self.phases[task.job][task.phase]

    def begin(self) -> None:
        for time in sorted({job.arrival_ps for job in self.load.jobs}):
            self.twin.at(time, DECIDE, SCHEDULER, (0,), self.decide)

    # -- the scheduler

    def decide(self, now: int) -> None:
        starts = self.scheduler.decide(self.board, now).starts
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
        self.step_at(now + self.enter(now, task), task)

    def step_at(self, time: int, task: Task) -> None:
        self.twin.at(time, STEP, self.twin.agent_of(task.node), (task.slot,), self.step, task)

    def preparing(self, stage: Stage) -> int:
        """Returns how long host and NIC prepare a message of a stage, in ps."""
        setup = self.load.send_setup_ps + self.load.send_ps
        return int(setup + copying(stage.message_bytes, self.load.send_copy))

    def enter(self, now: int, task: Task) -> int:
        """Go on to the next phase. Returns how long the task computes and prepares."""
        task.phase += 1
        task.awaiting = False
        phase = self.phase(task)
        stage, computing, overhead = phase.stage, 0, 0
        task.to = [*phase.sends[task.number]]
        task.answered = 0
        task.replies = len(task.to) if stage.wait == "replies" else 0
        if phase.first:
            number = self.load.number_of(task.job)
            word = task_draw(self.seed, number, task.number, task.phase)[1]
            longest = math.floor(stage.imbalance * stage.compute_ps)
            computing = stage.compute_ps + int(longest * (word * 2.0**-32))
            overhead = stage.overhead_ps
        task.owes = computing, overhead
        task.since = now + computing + overhead
        return computing + overhead + (self.preparing(stage) if task.to else 0)

    def step(self, now: int, task: Task) -> None:
        while True:
            phase = self.phase(task)
            self.spend(phase, 0, task.owes[0])
            self.spend(phase, 1, task.owes[1])
            task.owes = 0, 0
            if task.to:
                self.post(now, task, task.to.pop(0))
                return
            if not task.awaiting:
                task.awaiting = True
                self.spend(phase, 2, now - task.since)
                task.since = now
            box = self.boxes[task.job, task.number, task.phase]
            if box.to_come > 0 or task.replies > 0:
                return
            ready = max(box.ready, task.answered)
            if ready > now:
                self.step_at(ready, task)
                return
            self.spend(phase, 3, now - task.since)
            if task.phase == len(self.phases[task.job]) - 1:
                heard = now + self.load.launch_ps
                self.twin.at(heard, ENDED, SCHEDULER, (0,), self.heard, task.job, now)
                return
            pause = self.enter(now, task)
            if pause:
                self.step_at(now + pause, task)
                return

    def spend(self, phase: Phase, what: int, time: int) -> None:
        """Count what a task has done; what it still does when the run ends is not counted."""
        self.spent[phase.row][what] += time

    def post(self, now: int, task: Task, to: int) -> None:
        """A task has prepared a message."""
        phase, peer = self.phase(task), self.tasks[task.job, to]
        then = self.preparing(phase.stage) if task.to else 0
        word, size = self.word(task.node), phase.stage.message_bytes
        box = task.job, to, phase.label
        message = Message(task.node, peer.node, now, size, word, task.job, then=then, box=box)
        if phase.stage.wait == "replies":
            message.asker, message.reply = task, phase.stage.reply_bytes
        if phase.stage.wait != "nothing":
            message.task = task
        if peer.node == task.node:
            where = self.twin.agent_of(task.node)
            self.twin.at(now, DELIVER, where, (1 + task.slot,), self.complete, message)
            self.step_at(now + then, task)
            return
        self.twin.send(now, message)
        if message.task is None:
            self.step_at(now + then, task)

    def word(self, node: int) -> int:
        """Returns the random word of the next message of a node."""
        count = self.drawn[node]
        self.drawn[node] += 1
        return draw(self.seed, (self.stream << STREAM_BITS) + node, count)[3]

    def sent(self, left: int, message: Message) -> None:
        """The last packet of a task's message begins to leave its node at this time."""
        assert message.task is not None
        self.step_at(left + message.then, message.task)

    def complete(self, now: int, message: Message) -> None:
        """All of a message to a task has arrived."""
        if message.box is None:
            self.answer(now, message)
            return
        load, node = self.load, message.to
        box, task = self.boxes[message.box], self.tasks[message.box[:2]]
        box.to_come -= 1
        if message.asker is not None:
            self.reply(now, message)
            box.ready = max(box.ready, now)
        else:
            self.matching[node] = max(now, self.matching[node]) + load.match_ps
            box.ready = max(box.ready, self.matching[node] + load.host_ps)
            box.ready += load.receive_setup_ps + copying(message.size, load.receive_copy)
        if box.to_come == 0 and task.awaiting and task.phase == message.box[2]:
            self.step_at(box.ready, task)

    def reply(self, now: int, request: Message) -> None:
        """The NIC of a node answers a request."""
        asker = request.asker
        assert asker is not None
        node, word = request.to, self.word(request.to)
        message = Message(node, asker.node, now, request.reply, word, asker.job, asker=asker)
        if asker.node == node:
            self.answer(now, message)
        else:
            self.twin.send(now, message)

    def answer(self, now: int, message: Message) -> None:
        """A reply has arrived."""
        task = message.asker
        assert task is not None
        task.replies -= 1
        task.answered = max(task.answered, now + self.load.host_ps)
        if task.replies == 0 and task.awaiting:
            self.step_at(task.answered, task)


def copying(size: int, bandwidth: float | None) -> int:
    return 0 if bandwidth is None else int(size * 1e12 / bandwidth + 0.5)
