"""A test tool for authors of policies: `check_policy` finds out whether a policy can be trusted.

A run is repeated exactly, on any number of ranks and after any restart, if the answer of a policy
depends on nothing but what it is shown, its memory and `rng`. So the tool goes through the life of
a random queue (`testing_life`). At each step it tells the policy of a job that has ended, if one
has, and puts a question to it (`testing_power` says how, where it is about power); and it puts each
question again: at once, to a new instance of the policy, out of order, and in a new process. From
the same memory each must give the same answer and leave the same memory behind.
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
from collections.abc import Callable
from functools import partial
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from pdes.errors import Fault, Refused
from pdes.jit import ENABLED
from policies.allocation import allocate, rng_for
from policies.kernels import CHECKS, check_kernel
from policies.memory import Buffer, Layout, memory_of, remembered
from policies.policy import Policy, learn
from policies.register import BUILT_IN, MISSING, PLUGINS, REGISTERS, Entry, Values, load_plugin
from policies.scheduling import again, select
from policies.testing_life import MACHINE, After, Life, Step, ahead_of, sizes_of
from policies.testing_power import ASKS, SECOND, fixed, prepare
from policies.views import Counters, Ended, Running, Sight, View, Words

CHECKED = ("traffic", "pattern", "routing", "allocation", "scheduling", *ASKS)
OUTSIDE = "it remembers outside its memory, or goes by something else that it was not shown"
FUTURE = "it goes by rows of the desk that are of jobs which have not come yet"
OWN_RNG = "draw from one that it seeds by a parameter and by a count in its memory"
UNREAD = "it goes by sight.counters, which are reported only to an allocation that says reads=..."


class Checked(NamedTuple):
    """What was asked of a policy that passed."""

    questions: int
    new_process: bool
    """False where the policy is of no file or module that another process could import."""
    compiled: bool = False
    """Whether a kernel was asked as it is compiled, too: not with ODONATA_JIT=0."""


class Answer(NamedTuple):
    """What a policy answered and what it remembers afterwards."""

    chosen: tuple[Any, ...]
    """Numbers of jobs or of nodes; of a policy about power, an answer per line."""
    memory: bytes
    after: After | None = None


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
    pattern is a kernel: it is asked compiled and as Python, and not in a new process. A power
    policy that is compiled is asked in all these ways.
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
    examination = Examination(entry, dict(values), questions, seed)
    examination.run()
    apart = new_process and _importable(entry)
    if apart:
        examination.compare(_in_new_process(examination), "in a new process,")
    kernel = getattr(examination.made(), "steer", None) is not None
    return Checked(questions, apart, ENABLED and kernel)


@dataclasses.dataclass
class Examination:
    """One series of questions to one policy, and what it answered when they were put in order."""

    entry: Entry
    values: dict[str, Any]
    questions: int
    seed: int
    steps: list[Step] = dataclasses.field(default_factory=list)
    """As they come: what a power policy answers, it is shown later."""
    before: list[bytes] = dataclasses.field(default_factory=list)
    """What it remembered before each."""

    def __post_init__(self) -> None:
        self.whose = f"{self.entry.kind} {self.entry.name}"
        self.sizes = sizes_of(self.questions)
        self.answers: list[Answer] = []

    def run(self) -> None:
        """Put every question in order, and each again in other ways."""
        policy = self.made()
        buffer, layout = self.memory(policy)
        twice, _ = self.memory(policy)
        if not np.array_equal(buffer, twice):
            raise AssertionError(f"{self.whose}: remembers() does not return the same twice")
        life = Life(self.seed, SECOND if self.entry.kind in ASKS else 1)
        for number in range(self.questions):
            step = life.step()
            self.steps.append(step)
            self.before.append(buffer.tobytes())
            answer = self.answer(policy, step, buffer, layout)
            self.answers.append(answer)
            life.go_on(answer.after)
            self.again(policy, number, "asked again,")
            self.again(self.made(), number, "in a new instance,")
            if self.entry.kind == "power":
                others = step._replace(to_come=9)
                self.otherwise(policy, others, "when other jobs are to come,", FUTURE)
            elif getattr(policy, "reads", 1) == 0:  # as a run does then
                unread = step._replace(counters=None)
                self.otherwise(policy, unread, "without counters,", UNREAD)
        for number in reversed(range(self.questions)):
            self.again(policy, number, "asked out of order,")
        self.again(copy.deepcopy(policy), self.questions - 1, "in a copy,")

    def made(self) -> Any:
        """Returns the policy, ready to be asked."""
        policy = self.entry.make(self.values)
        if self.entry.kind == "power":
            buffer, layout = self.memory(policy)
            try:
                prepare(policy, memory_of(layout, buffer), self.sizes)
            except Fault as fault:
                raise AssertionError(f"{self.whose}: {fault}") from fault
        return policy

    def question(self, step: Step) -> str:
        """Names a question, for a message."""
        sizes = ", ".join(str(job.nodes) for job in step.queue)
        about = f"jobs of {sizes} nodes, {step.free} idle"
        if self.entry.kind == "allocation":
            about = f"a job of {step.job.nodes} nodes, {step.free} idle"
        elif self.entry.kind in ASKS:
            about = f"{len(step.queue)} jobs wait, {len(step.running)} run, {step.free} nodes idle"
        return f"{self.whose}, question {step.number} ({about})"

    def memory(self, policy: Policy) -> tuple[Buffer, Layout | None]:
        buffer, (layout,) = remembered((policy,), self.sizes)
        return buffer, layout

    def again(self, policy: Policy, number: int, how: str) -> None:
        """Put a question again, from the memory there was."""
        self.compare({number: self.from_memory(policy, number, self.before[number])}, how)

    def otherwise(self, policy: Policy, step: Step, how: str, why: str) -> None:
        """Put a question again, with something else that must make no difference."""
        buffer = np.frombuffer(self.before[step.number], np.uint8).copy()
        answer = self.answer(policy, step, buffer, self.memory(policy)[1])
        self.compare({step.number: answer}, how, why)

    def from_memory(self, policy: Policy, number: int, memory: bytes) -> Answer:
        buffer = np.frombuffer(memory, np.uint8).copy()
        return self.answer(policy, self.steps[number], buffer, self.memory(policy)[1])

    def compare(self, answers: dict[int, Answer], how: str, why: str = OUTSIDE) -> None:
        """Hold answers against those of the first time."""
        for number, got in answers.items():
            first = self.answers[number]
            if got.chosen != first.chosen:
                raise AssertionError(f"{self.question(self.steps[number])}: {how} "
                                     f"{_unlike(got.chosen, first.chosen)}: {why}")  # fmt: skip
            if got.memory != first.memory:
                raise AssertionError(f"{self.question(self.steps[number])}: {how} it answers the "
                                     f"same and leaves another memory behind: {why}")  # fmt: skip

    def answer(self, policy: Policy, step: Step, buffer: Buffer, layout: Layout | None) -> Answer:
        """Put one question; what is learnt from a job that ended comes first."""
        luck = _luck()
        memory = memory_of(layout, buffer)
        ended = step.ended
        told = _copied(step.counters)
        sight = Sight(MACHINE, step.idle, told, memory)
        chosen: Any
        after = None
        try:
            if ended is not None:
                learn(self.entry.kind, policy, Ended(*ended[:3], fixed(ended[3])), memory)
            if self.entry.kind in ASKS:
                ask = ASKS[self.entry.kind]
                chosen, after = ask(policy, step, memory, self.sizes, self.seed)
            elif self.entry.kind == "allocation":
                luck_of = rng_for(self.seed, step.number)
                chosen = allocate(policy, sight, step.job, luck_of).tolist()  # type: ignore[arg-type]
            else:
                running = tuple(Running(*each[:2], fixed(each.where)) for each in step.running)
                view = View(step.now, step.queue, running, sight.free, sight, memory=memory,
                            ahead=partial(ahead_of, self.seed, step.now))  # fmt: skip
                chosen = select(policy, view)  # type: ignore[arg-type]
                time = again(policy, view)  # type: ignore[arg-type]
                chosen += [] if time is None else [f"to be asked again at {time}"]
        except Fault as fault:
            raise AssertionError(f"{self.question(step)}: {fault}") from fault
        if not np.array_equal(sight.idle, step.idle):
            raise AssertionError(f"{self.question(step)}: it writes to sight.idle")
        if not all(map(np.array_equal, _parts(told), _parts(step.counters))):
            raise AssertionError(f"{self.question(step)}: it writes to sight.counters")
        if luck != _luck():
            cure = OWN_RNG if self.entry.kind in ASKS else "draw from rng"
            raise AssertionError(f"{self.question(step)}: it draws from Python's or numpy's global "
                                 f"generator; {cure}")  # fmt: skip
        return Answer(tuple(chosen), buffer.tobytes(), after)


def _parts(told: Counters | None) -> tuple[Words, ...]:
    return () if told is None else (told.sent, told.received, told.stall, told.wait)


def _copied(told: Counters | None) -> Counters | None:
    if told is None:
        return None
    return Counters(told.age, told.interval_s, *(part.copy() for part in _parts(told)))


def _luck() -> tuple[Any, ...]:
    """Returns the state of the generators that a policy must leave alone."""
    return random.getstate(), pickle.dumps(np.random.get_state())  # noqa: NPY002


def _unlike(got: tuple[Any, ...], first: tuple[Any, ...]) -> str:
    """Says in what two answers differ."""
    pairs = zip_longest(got, first, fillvalue="no more")
    now, then = next(pair for pair in pairs if pair[0] != pair[1])
    if isinstance(now, str) and isinstance(then, str):
        return f"it answers {now}, and answered {then}"
    return f"it chooses {_short(got)}, and chose {_short(first)}"


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


def _in_new_process(examination: Examination) -> dict[int, Answer]:
    """Put all questions in a process of its own, in reverse order, where texts have other hash
    values: a policy that goes by the order of a set gives itself away."""
    entry = examination.entry
    files = [str(path) for path in PLUGINS]
    module = "" if _module(entry).startswith("odonata_plugin_") else _module(entry)
    asked = (sys.path, files, module, entry.kind, entry.name, examination.values,
             examination.questions, examination.seed, examination.steps,
             examination.before)  # fmt: skip
    code = "from policies.testing import _answer_elsewhere; _answer_elsewhere()"
    surroundings = {**os.environ, "PYTHONHASHSEED": "2718", "ODONATA_JIT": "0"}
    done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(asked),
                          capture_output=True, env=surroundings)  # fmt: skip
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise AssertionError(f"{examination.whose}: in a new process it fails: {said[-1:]}")
    answers: dict[int, Answer] = pickle.loads(done.stdout)
    return answers


def _answer_elsewhere() -> None:
    """What the new process does: standard input to standard output, which is not for what a policy
    prints."""
    answered, sys.stdout = sys.stdout.buffer, sys.stderr
    path, files, module, kind, name, *how = pickle.load(sys.stdin.buffer)
    sys.path[:] = path
    for each in BUILT_IN:
        importlib.import_module(each)
    for file in files:
        load_plugin(file)
    if module:
        importlib.import_module(module)
    examination = Examination(REGISTERS[kind].named(name), *how)
    policy = examination.made()
    numbers = reversed(range(examination.questions))
    answers = {each: examination.from_memory(policy, each, examination.before[each])
               for each in numbers}  # fmt: skip
    answered.write(pickle.dumps(answers))
