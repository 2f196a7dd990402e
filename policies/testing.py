"""A test tool for authors of policies: `check_policy` finds out whether a policy can be trusted.

A run is repeated exactly, on any number of ranks and after any restart, if the answer of a policy
depends on nothing but what it is shown, its memory and `rng`. So the tool goes through the life of
a random queue, in which jobs come, wait, run and end, and the network reports random counters. At
each step it tells the policy of a job that has ended, if one has, and puts a question to it; and it
puts each question again: at once, to a new instance of the policy, out of order, and in a new
process. From the same memory each must
give the same answer and leave the same memory behind.
"""

from __future__ import annotations

import copy
import dataclasses
import importlib
import os
import pickle
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from pdes.errors import Fault, Refused
from pdes.jit import ENABLED
from policies.allocation import allocate, rng_for
from policies.kernels import CHECKS, check_kernel
from policies.memory import Buffer, Layout, Sizes, memory_of, remembered
from policies.policy import Policy, learn
from policies.register import BUILT_IN, MISSING, PLUGINS, REGISTERS, Entry, Values, load_plugin
from policies.scheduling import select
from policies.views import Counters, Ended, Labels, Request, Running, Sight, View, Words
from topology import Dragonfly

MACHINE = Dragonfly(2, 4, 2, 9)
LONGEST = 8
"""So many jobs wait before no more of them come."""
USERS = ("ada", "grace", "edsger", "barbara")
CHECKED = ("traffic", "pattern", "routing", "allocation", "scheduling")
OUTSIDE = "it remembers outside its memory, or goes by something else that it was not shown"
UNREAD = "it goes by sight.counters, which are reported only to an allocation that says reads=..."


class Checked(NamedTuple):
    """What was asked of a policy that passed."""

    questions: int
    new_process: bool
    """False where the policy is of no file or module that another process could import."""
    compiled: bool = False
    """Whether a kernel was asked as it is compiled, too: not with ODONATA_JIT=0."""


Placed = tuple[Request, int, tuple[int, ...]]
"""A job that runs, when it was started, and its nodes."""


class Step(NamedTuple):
    """A question, and before it perhaps the news of a job's end."""

    number: int
    now: int
    idle: Any
    queue: tuple[Request, ...]
    running: tuple[Placed, ...]
    ended: tuple[Request, int, int, tuple[int, ...]] | None
    counters: Counters | None
    """What the network reported; sometimes it has not yet."""

    @property
    def job(self) -> Request:
        """Returns the first in the queue that fits, for which nodes are chosen."""
        free = int(self.idle.sum())
        return next(job for job in self.queue if job.nodes <= free)


class Answer(NamedTuple):
    """What a policy answered and what it remembers afterwards."""

    chosen: tuple[int, ...]
    memory: bytes


def check_policy(
    policy: str | Callable[..., Any] | type[Policy],
    values: Values = (),
    *,
    kind: str | None = None,
    questions: int = 60,
    seed: int = 1,
    new_process: bool = True,
) -> Checked:
    """Find out whether a policy answers by what it is shown, by its memory and by `rng` alone.

    `policy` is its name (and `kind`, where two kinds have one of that name), or the function or
    class that was registered; `values` are its parameters. A routing, a job pattern or a traffic
    pattern is a kernel: it is asked compiled and as Python, and not in a new process.
    Raises AssertionError, which names the policy and the question, where it does not, where it
    writes to what it is shown, or where an answer is wrong.
    """
    entry = _entry(policy, kind)
    whose = f"{entry.kind} {entry.name}"
    if entry.missing:
        raise Refused(f"{whose}: {MISSING}; give it with --plugin FILE, or install it")
    if entry.kind not in CHECKED:
        raise Refused(f"{whose}: only policies of the kinds {', '.join(CHECKED)} can be checked")
    if entry.kind in CHECKS:
        check_kernel(entry, values, questions, seed)
        return Checked(questions, False, ENABLED)
    trial = Trial(entry, dict(values), questions, seed)
    trial.run()
    apart = new_process and _importable(entry)
    if apart:
        trial.compare(_in_new_process(trial), "in a new process,")
    return Checked(questions, apart)


def steps(questions: int, seed: int) -> Iterator[Step]:
    """Yields what is seen of a machine and its queue, step by step. Which of the jobs are started
    is left to chance, and not to the policy; one at least always fits."""
    dice, idle = random.Random(seed), np.ones(MACHINE.n_nodes, bool)
    luck = np.random.default_rng(seed)
    waiting: list[Request] = []
    running: list[Placed] = []
    now = jobs = 0
    for number in range(questions):
        now, ended = now + dice.randint(1, 400), None
        if running and dice.random() < 0.7:
            job, start, where = running.pop(dice.randrange(len(running)))
            idle[list(where)] = True
            ended = job, start, now, where
        free = int(idle.sum())
        sizes = [dice.randint(1, 24) for _ in range(dice.randint(0, 3)) if len(waiting) < LONGEST]
        if min([*sizes, *(job.nodes for job in waiting)], default=free + 1) > free:
            sizes.append(dice.randint(1, free))
        for nodes in sizes:
            sensitive = (True, False, None)[luck.integers(3)]
            waiting.append(_request(dice, jobs, nodes, now)._replace(sensitive=sensitive))
            jobs += 1
        running.sort(key=lambda placed: placed[0].number)
        yield Step(number, now, idle.copy(), (*waiting,), (*running,), ended, _counters(luck))
        for job in [*waiting]:
            spare = np.flatnonzero(idle).tolist()
            if dice.random() < 0.4 and job.nodes < len(spare):  # one node at least stays idle
                where = (*dice.sample(spare, job.nodes),)
                idle[list(where)] = False
                waiting.remove(job)
                running.append((job, now, where))


def _request(dice: random.Random, number: int, nodes: int, now: int) -> Request:
    user, requested = dice.randrange(len(USERS)), dice.randint(1, 5000)
    project, application = f"project {user % 2}", dice.choice(("cfd", "md"))
    return Request(number, nodes, now, requested, USERS[user], project, application, "", user)


def _counters(luck: np.random.Generator) -> Counters | None:
    """Returns what one to four intervals reported, with many equal numbers, or nothing."""
    intervals, age, most = int(luck.integers(5)), int(luck.integers(400)), 10 ** luck.integers(1, 9)
    if intervals == 0:
        return None
    sizes = (MACHINE.n_nodes, MACHINE.n_nodes, MACHINE.n_routers, MACHINE.n_routers)
    return Counters(age, 2e-5, *(luck.integers(0, most, (intervals, size)) for size in sizes))


@dataclasses.dataclass
class Trial:
    """One series of questions to one policy, and what it answered when they were put in order."""

    entry: Entry
    values: dict[str, Any]
    questions: int
    seed: int

    def __post_init__(self) -> None:
        self.whose = f"{self.entry.kind} {self.entry.name}"
        self.steps = [*steps(self.questions, self.seed)]
        jobs = 1 + max(job.number for step in self.steps for job in step.queue)
        self.sizes = Sizes(jobs, MACHINE.n_nodes, MACHINE.groups, MACHINE.n_routers, len(USERS))
        self.before: list[bytes] = []
        self.answers: list[Answer] = []

    def run(self) -> None:
        """Put every question in order, and each again in other ways."""
        policy = self.entry.make(self.values)
        buffer, layout = self.memory(policy)
        twice, _ = self.memory(policy)
        if not np.array_equal(buffer, twice):
            raise AssertionError(f"{self.whose}: remembers() does not return the same twice")
        for step in self.steps:
            self.before.append(buffer.tobytes())
            self.answers.append(self.answer(policy, step, buffer, layout))
            self.again(policy, step.number, "asked again,")
            self.again(self.entry.make(self.values), step.number, "in a new instance,")
            if getattr(policy, "reads", 1) == 0:
                self.without_counters(policy, step)
        for number in reversed(range(self.questions)):
            self.again(policy, number, "asked out of order,")
        self.again(copy.deepcopy(policy), self.questions - 1, "in a copy,")

    def question(self, step: Step) -> str:
        """Names a question, for a message."""
        sizes = ", ".join(str(job.nodes) for job in step.queue)
        about = f"jobs of {sizes} nodes"
        if self.entry.kind == "allocation":
            about = f"a job of {step.job.nodes} nodes"
        return f"{self.whose}, question {step.number} ({about}, {int(step.idle.sum())} idle)"

    def memory(self, policy: Policy) -> tuple[Buffer, Layout | None]:
        buffer, (layout,) = remembered((policy,), self.sizes)
        return buffer, layout

    def again(self, policy: Policy, number: int, how: str) -> None:
        """Put a question again, from the memory there was."""
        self.compare({number: self.from_memory(policy, number, self.before[number])}, how)

    def without_counters(self, policy: Policy, step: Step) -> None:
        """Put a question again as a run does to an allocation that reads no counters."""
        buffer = np.frombuffer(self.before[step.number], np.uint8).copy()
        unread = step._replace(counters=None)
        answer = self.answer(policy, unread, buffer, self.memory(policy)[1])
        self.compare({step.number: answer}, "without counters,", UNREAD)

    def from_memory(self, policy: Policy, number: int, memory: bytes) -> Answer:
        buffer = np.frombuffer(memory, np.uint8).copy()
        return self.answer(policy, self.steps[number], buffer, self.memory(policy)[1])

    def compare(self, answers: dict[int, Answer], how: str, why: str = OUTSIDE) -> None:
        """Hold answers against those of the first time."""
        for number, got in answers.items():
            first = self.answers[number]
            if got.chosen != first.chosen:
                raise AssertionError(
                    f"{self.question(self.steps[number])}: {how} it chooses {_short(got.chosen)}, "
                    f"and chose {_short(first.chosen)}: {why}"
                )
            if got.memory != first.memory:
                raise AssertionError(
                    f"{self.question(self.steps[number])}: {how} it chooses the same and leaves "
                    f"another memory behind: {why}"
                )

    def answer(self, policy: Policy, step: Step, buffer: Buffer, layout: Layout | None) -> Answer:
        """Put one question; what is learnt from a job that ended comes first."""
        luck = _luck()
        memory = memory_of(layout, buffer)
        ended = step.ended
        told = _copied(step.counters)
        sight = Sight(MACHINE, step.idle, told, memory)
        try:
            if ended is not None:
                learn(self.entry.kind, policy, Ended(*ended[:3], _labels(ended[3])), memory)
            if self.entry.kind == "allocation":
                luck_of = rng_for(self.seed, step.number)
                chosen = allocate(policy, sight, step.job, luck_of).tolist()  # type: ignore[arg-type]
            else:
                running = tuple(Running(job, at, _labels(where)) for job, at, where in step.running)
                view = View(step.now, step.queue, running, sight.free, sight,
                            memory=memory)  # fmt: skip
                chosen = select(policy, view)  # type: ignore[arg-type]
        except Fault as fault:
            raise AssertionError(f"{self.question(step)}: {fault}") from fault
        if not np.array_equal(sight.idle, step.idle):
            raise AssertionError(f"{self.question(step)}: it writes to sight.idle")
        if not all(map(np.array_equal, _parts(told), _parts(step.counters))):
            raise AssertionError(f"{self.question(step)}: it writes to sight.counters")
        if luck != _luck():
            raise AssertionError(f"{self.question(step)}: it draws from Python's or numpy's global "
                                 "generator; draw from rng")  # fmt: skip
        return Answer(tuple(chosen), buffer.tobytes())


def _parts(told: Counters | None) -> tuple[Words, ...]:
    return () if told is None else (told.sent, told.received, told.stall, told.wait)


def _copied(told: Counters | None) -> Counters | None:
    if told is None:
        return None
    return Counters(told.age, told.interval_s, *(part.copy() for part in _parts(told)))


def _luck() -> tuple[Any, ...]:
    """Returns the state of the generators that a policy must leave alone."""
    return random.getstate(), pickle.dumps(np.random.get_state())  # noqa: NPY002


def _labels(of: tuple[int, ...]) -> Labels:
    labels = np.array(of, np.int64)
    labels.flags.writeable = False
    return labels


def _short(chosen: tuple[int, ...]) -> str:
    return str(list(chosen)) if len(chosen) <= 8 else f"[{', '.join(map(str, chosen[:8]))}, ...]"


# -- finding it, here and elsewhere


def _entry(policy: str | Callable[..., Any] | type[Policy], kind: str | None) -> Entry:
    kinds = CHECKED if kind is None else (kind,)
    entries: list[Entry] = [entry for each in kinds for entry in REGISTERS[each].values()]
    if isinstance(policy, str):
        found = [entry for entry in entries if entry.name == policy]
    else:
        home = f"{policy.__module__}.{policy.__qualname__}"
        found = [entry for entry in entries if entry.home == home]
    if not found:
        raise ValueError(f"{policy!r}: nothing of that name is registered as {' or '.join(kinds)}")
    return found[-1]


def _importable(entry: Entry) -> bool:
    module = sys.modules.get(_module(entry))
    inside = "<locals>" in entry.home or module is None or module.__name__ == "__main__"
    return bool(entry.plugin) or not inside


def _module(entry: Entry) -> str:
    module = entry.home
    while module and module not in sys.modules:
        module = module.rpartition(".")[0]
    return module


def _in_new_process(trial: Trial) -> dict[int, Answer]:
    """Put all questions in a process of its own, in reverse order, where texts have other hash
    values: a policy that goes by the order of a set gives itself away."""
    entry = trial.entry
    files = [str(path) for path in PLUGINS]
    module = "" if _module(entry).startswith("odonata_plugin_") else _module(entry)
    asked = (sys.path, files, module, entry.kind, entry.name, trial.values, trial.questions,
             trial.seed, trial.before)  # fmt: skip
    code = "from policies.testing import _answer_elsewhere; _answer_elsewhere()"
    surroundings = {**os.environ, "PYTHONHASHSEED": "2718", "ODONATA_JIT": "0"}
    done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(asked),
                          capture_output=True, env=surroundings)  # fmt: skip
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise AssertionError(f"{trial.whose}: in a new process it fails: {said[-1:]}")
    answers: dict[int, Answer] = pickle.loads(done.stdout)
    return answers


def _answer_elsewhere() -> None:
    """What the new process does: standard input to standard output."""
    path, files, module, kind, name, values, questions, seed, before = pickle.load(sys.stdin.buffer)
    sys.path[:] = path
    for each in BUILT_IN:
        importlib.import_module(each)
    for file in files:
        load_plugin(file)
    if module:
        importlib.import_module(module)
    trial = Trial(REGISTERS[kind].named(name), values, questions, seed)
    policy = trial.entry.make(values)
    answers = {number: trial.from_memory(policy, number, before[number])
               for number in reversed(range(questions))}  # fmt: skip
    sys.stdout.buffer.write(pickle.dumps(answers))
