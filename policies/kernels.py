"""Tries out the kernels of plug-ins (routings, job patterns, traffic patterns) for `check_policy`.

A kernel has no memory. It is put random questions, compiled and as Python, and again: all answers
must be the same, and valid.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pdes.errors import Refused
from pdes.jit import explaining
from policies.register import Entry, Values, described
from policies.routing import Outlook

NOBODY, NO_MORE = -1, -2
"""Answers of a job pattern: there is no peer for this message number, or for any further one."""
MOST_MESSAGES = 1 << 12
"""The most message numbers of a task in a phase that are tried."""
UNLIKE = "it goes by something that it was not given, or computes differently when compiled"


def check_kernel(entry: Entry, values: Values, questions: int, seed: int) -> None:
    """Put random questions to the kernel of an entry, with these values of its threshold and bias.
    Raises AssertionError where its answers differ or are wrong; Refused where there is no kernel to
    ask, or no such parameter."""
    given = entry.checked(values)
    name, check = CHECKS[entry.kind]
    written = getattr(entry, name)
    if written is None:
        raise Refused(
            f"{entry.kind} {entry.name}: it is built in; only one of a plug-in is checked"
        )
    plain = getattr(written, "py_func", written)
    dice = random.Random(seed)

    def ask(number: int, *asked: Any) -> Any:
        about = f"{entry.kind} {entry.name}, question {number}"
        try:
            with explaining(written):
                python = plain(*asked)
                compiled, again = written(*asked), written(*asked)
        except Refused as refusal:
            raise AssertionError(f"{about}: {refusal}") from refusal.__cause__
        except Exception as error:
            raise AssertionError(f"{about}: {described(error)}") from error
        if not all(isinstance(it, ANSWERS[entry.kind]) for it in (compiled, python)):
            raise AssertionError(f"{about}: its answer is {python!r}, {OTHER[entry.kind]}")
        if not compiled == python == again:
            raise AssertionError(
                f"{about} {asked}: compiled it answers {compiled}, as Python {python}, and "
                f"compiled, asked again, {again}: {UNLIKE}"
            )
        return compiled

    for number in range(questions):
        check(entry, given, dice, lambda *asked, number=number: ask(number, *asked))


Given = Mapping[str, Any]


def _routing(entry: Any, given: Given, dice: random.Random, ask: Callable[..., Any]) -> None:
    paths = [Outlook(dice.randrange(1 << 16), dice.random(), dice.randrange(1 << 16))
             for _ in range(2)]  # fmt: skip
    threshold, bias = given.get("threshold", entry.threshold), given.get("bias", entry.bias)
    ask(*paths, threshold, 512 * bias, dice.getrandbits(32))


def _pattern(entry: Any, given: Given, dice: random.Random, ask: Callable[..., Any]) -> None:
    """Ask for all messages of a task in a phase."""
    tasks = dice.randint(2, 64)
    phases = entry.phases if isinstance(entry.phases, int) else entry.phases(tasks)
    where = f"pattern {entry.name}, of {tasks} tasks"
    if not isinstance(phases, int) or phases < 1:
        raise AssertionError(f"{where}: {phases!r} phases; a whole number, at least 1")
    task, phase = dice.randrange(tasks), dice.randrange(phases)
    for i in range(MOST_MESSAGES):
        to = ask(task, tasks, phase, i)
        if to == NO_MORE:
            return
        if to != NOBODY and (not 0 <= to < tasks or to == task):
            raise AssertionError(f"{where}: task {task} sends to {to} in phase {phase}; to "
                                 f"another, 0 .. {tasks - 1}, or NOBODY, or NO_MORE")  # fmt: skip
    raise AssertionError(f"{where}: task {task} has not answered NO_MORE to {MOST_MESSAGES:,} "
                         f"message numbers in phase {phase}")  # fmt: skip


def _traffic(entry: Any, given: Given, dice: random.Random, ask: Callable[..., Any]) -> None:
    group_nodes, groups = dice.randint(1, 32), dice.randint(2, 40)
    nodes = group_nodes * groups
    node = dice.randrange(nodes)
    to = ask(node, nodes, group_nodes, dice.getrandbits(32))
    if not 0 <= to < nodes:
        raise AssertionError(f"traffic {entry.name}: of {nodes} nodes, node {node} sends to {to}; "
                             f"to one of 0 .. {nodes - 1}")  # fmt: skip


CHECKS: dict[str, tuple[str, Callable[..., None]]] = {
    "routing": ("non_minimal", _routing),
    "pattern": ("peer", _pattern),
    "traffic": ("destination", _traffic),
}
"""Where an entry of each kind has its kernel, and how that is asked."""
ANSWERS: dict[str, Any] = {
    "routing": bool | np.bool_, "pattern": int | np.integer, "traffic": int | np.integer,
}  # fmt: skip
OTHER = {"routing": "neither True nor False", "pattern": "not a whole number",
         "traffic": "not a whole number"}  # fmt: skip
