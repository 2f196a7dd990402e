"""The communication patterns of jobs: which messages each task sends, phase by phase.

A job has a number of **iterations**; an iteration of a pattern has a number of **phases**, the same
for all tasks. In each phase a task sends some messages, one after the other, and then waits for
those that come to it in that phase; some tasks have nothing to do in some phases. Nothing
is unrolled: `peer` computes the destination of a task's next message in a phase, `incoming` how
many messages come to it.

=================  =================================================================================
all-to-all         to every other task, beginning with the next
broadcast          task 0 to every other
tree-broadcast     the same along a binary tree: who has it hands it on to two others
fft3d              tasks as rows of a grid: all-to-all in each row, then in each column
halo2d             to the up to 4 nearest in a grid, which has edges
halo3d             to the up to 6 nearest in a grid of three dimensions
halo3d26           and to those at its edges and corners, up to 26
halo4d             to the up to 8 nearest in a grid of four dimensions
allreduce          recursive doubling; tasks beyond a power of two are folded in before, and receive
                   the result afterwards
random-ring        to both neighbours in a ring in random order
incast             every other task to task 0
uniform            each to a random other, anew each time, without waiting until the end
permutation        each to the next of a ring in random order
=================  =================================================================================

The **exchange** of patterns in which every task sends and receives alike (all-to-all, fft3d, halos)
is "posted" (all messages of a phase at once) or "pairwise" (with one partner after the other: a
phase is then at most one message in each direction). The messages are the same; what a task waits
for is not.

A plug-in adds a pattern with `pattern`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from odonata.agents import layout as w
from pdes.errors import Refused
from pdes.events import Rows
from pdes.jit import bind, entry, explaining, kernel, rebound
from pdes.random import below, draw
from policies import kernels as contract
from policies.parameters import check_arguments
from policies.register import REGISTERS, Entry, Register, described

BUILT_IN = {
    "all-to-all": "to every other task, beginning with the next",
    "broadcast": "task 0 to every other",
    "tree-broadcast": "task 0 to every other along a binary tree",
    "fft3d": "all-to-all in each row of a grid of tasks, then in each column",
    "halo2d": "to the up to 4 nearest in a grid",
    "halo3d": "to the up to 6 nearest in a grid of three dimensions",
    "halo3d26": "to the up to 26 around it in a grid of three dimensions",
    "allreduce": "recursive doubling",
    "random-ring": "both ways around a ring in random order",
    "incast": "every other task to task 0",
    "uniform": "each to a random other, anew each time",
    "permutation": "each to the next of a ring in random order",
    "halo4d": "to the up to 8 nearest in a grid of four dimensions",
}
PATTERNS = tuple(BUILT_IN)
(ALL_TO_ALL, BROADCAST, TREE, FFT3D, HALO2D, HALO3D, HALO3D26, ALLREDUCE, RING, INCAST, UNIFORM,
 PERMUTATION, HALO4D) = range(13)  # fmt: skip
OWN = len(PATTERNS)
"""Patterns of plug-ins are numbered from here on."""


@dataclass(frozen=True)
class Pattern(Entry):
    """A pattern by name. Those of this file are distinguished by their numbers and have no kernel
    of their own."""

    peer: Any = None
    """The kernel of a plug-in, as `pattern` describes it."""
    phases: int | Callable[[int], int] = 1


REGISTER: Register[Pattern] = cast(Any, REGISTERS["pattern"])
REGISTER.entry = Pattern
for _name, _about in BUILT_IN.items():
    REGISTER.add(Pattern("pattern", _name, _about, "as in MPI and in stencil codes", home=__name__))

Written = TypeVar("Written", bound=Callable[..., int])


def pattern(
    name: str, *, about: str, source: str, phases: int | Callable[[int], int] = 1
) -> Callable[[Written], Written]:
    """Register the decorated function as a pattern of jobs, and return it unchanged.

    `peer(task, tasks, phase, i)` is compiled as a kernel and returns the task that message i of a
    task goes to in a phase of an iteration: 0 .. tasks - 1, but not the task itself; NOBODY to pass
    over i; or NO_MORE. `phases` is how many phases an iteration has, or a function of the number of
    tasks. In each phase a task sends its messages and then waits for all that others send to it.
    """

    def decorate(written: Written) -> Written:
        check_arguments(written, "task, tasks, phase, i", f"{written.__name__}: a job pattern is")
        home = f"{written.__module__}.{written.__qualname__}"
        made = kernel(written)
        REGISTER.add(Pattern("pattern", name, about, source, home=home, peer=made, phases=phases))
        return written

    return decorate


PAIRED = ("all-to-all", "fft3d", "halo2d", "halo3d", "halo3d26", "halo4d")
"""The patterns for which `exchange` makes a difference."""
DIMENSIONS = {"fft3d": 2, "halo2d": 2, "halo3d": 3, "halo3d26": 3, "halo4d": 4}
"""The number of sides of the grid that a pattern is on."""

AXES = {"halo2d": 2, "halo3d": 3, "halo3d26": 13, "halo4d": 4}
"""Lines on which a task has two neighbours."""

NOBODY, NO_MORE = contract.NOBODY, contract.NO_MORE
"""Values of a peer: there is none for this message number, or for any further one."""

RING_ORDER, MAPPING = 1, 3
"""Purposes of a job's random numbers; 2 is its allocation (`policies.allocation.rng_for`)."""
STREAM = 1 << 62
"""The first agent number of tasks that draw random numbers: beyond all nodes, and those of each job
apart."""


# -- before anything runs


@lru_cache(maxsize=4096)
def near_cubic(tasks: int, dimensions: int) -> tuple[int, ...]:
    """Returns the sides of a grid, shortest first: of all boxes that hold the tasks the one of
    least surface (then of least volume); but a box that they fill is preferred if its surface is at
    most a tenth larger. Tasks fill a grid in order, so only its last layer may be incomplete: 34
    tasks are 3 × 3 × 4 less two, not 1 × 2 × 17."""
    boxes = [(_surface(box), math.prod(box), box) for box in _boxes(tasks, dimensions)]
    best = min(boxes)
    full = min((box for box in boxes if box[1] == tasks), default=best)
    return (full if full[0] <= 1.1 * best[0] else best)[2]


def _boxes(tasks: int, dimensions: int) -> Iterator[tuple[int, ...]]:
    """Returns all boxes whose last side is the longest, and no longer than it must be."""
    least = 1
    while least**dimensions <= tasks or least == 1:
        if dimensions == 2:
            yield least, max(least, -(-tasks // least))
        else:
            for rest in _boxes(-(-tasks // least), dimensions - 1):
                if rest[0] >= least:
                    yield least, *rest
        least += 1
    yield (least,) * dimensions


def _surface(box: tuple[int, ...]) -> int:
    return sum(math.prod(box) // side for side in box)


def phases(pattern: str, pairwise: bool, tasks: int, sides: tuple[int, ...]) -> int:
    """Returns the phases of one pass through a pattern."""
    if pattern not in PATTERNS:
        return _own_phases(REGISTER.named(pattern), tasks)
    if pattern == "allreduce":
        return tasks.bit_length() + 1
    if pairwise and pattern in PAIRED:
        nx, ny = sides[:2]
        row_by_row = {"all-to-all": tasks - 1, "fft3d": nx - 1 + ny - 1}
        return max(1, row_by_row.get(pattern, 2 * AXES.get(pattern, 0)))
    return 2 if pattern in ("fft3d", "tree-broadcast") else 1


def generator_of(seed: int, purpose: int, job: int) -> np.random.Generator:
    """Returns the generator of a job's own random numbers: nothing depends on earlier jobs."""
    return np.random.Generator(np.random.Philox(key=seed, counter=[0, 0, purpose, job]))


def ring(seed: int, job: int, tasks: int) -> Rows:
    """Returns, for each task, the next and the previous one in a random ring of all tasks."""
    order = generator_of(seed, RING_ORDER, job).permutation(tasks)
    friends = np.empty((tasks, 2), np.int64)
    friends[order, w.AFTER], friends[order, w.BEFORE] = np.roll(order, -1), np.roll(order, 1)
    return friends


@kernel
def stranger(seed: int, number: int, task: int, tasks: int, phase: int) -> int:
    """Returns the task that a task sends to in a phase of a uniform stage."""
    word, _, _, _ = draw(seed, STREAM + (number << 32) + task, phase)
    other = below(word, tasks - 1)
    return other + (1 if other >= task else 0)


@kernel
def longer(stage: Any, task: int, phase: int) -> int:
    """Returns by how many picoseconds a task computes longer than the fastest would, in a phase."""
    _, word, _, _ = draw(stage[w.JOB_SEED], STREAM + (stage[w.NUMBER] << 32) + task, phase)
    return int(stage[w.IMBALANCE] * (np.int64(word) * 2.0**-32))


@entry
def count_strangers(seed: int, number: int, phases: Any, counts: Any) -> None:
    """Count the messages that come to each task of a uniform stage, in all of its `phases`, into
    `counts`."""
    for task in range(counts.shape[0]):
        for i in range(phases.shape[0]):
            counts[stranger(seed, number, task, counts.shape[0], phases[i])] += 1


def _own_phases(written: Pattern, tasks: int) -> int:
    """Returns the phases of an iteration of a plug-in's pattern; refused where it names none."""
    whose = f"pattern {written.name}, of {tasks} tasks"
    phases: Any = written.phases
    if callable(phases):
        try:
            phases = phases(tasks)
        except Exception as error:
            raise Refused(f"{whose}: its phases: {type(error).__name__}: {error}") from error
    if not isinstance(phases, int) or not 1 <= phases <= MOST_OWN_PHASES:
        raise Refused(f"{whose}: phases = {phases!r}: a whole number, 1 .. {MOST_OWN_PHASES}")
    return phases


def expect(written: Pattern, tasks: int, phases: int) -> Rows:
    """Returns how many messages come to each task in each phase of a plug-in's pattern, one phase
    after the other. Refused where a message goes to a task that does not exist, or to its sender,
    and where there is no end to them."""
    counts, wrong = np.zeros(phases * tasks, np.int64), np.zeros(4, np.int64)
    count = bind(_count, f"count_{written.name}".replace("-", "_"), mine=written.peer)
    whose = f"pattern {written.name}, of {tasks} tasks"
    try:
        with explaining():
            count(tasks, phases, counts, wrong)
    except Refused as refusal:
        raise Refused(f"{whose}: {refusal}") from refusal.__cause__
    except Exception as error:  # where nothing is compiled
        raise Refused(f"{whose}: {described(error)}") from error
    verdict, task, phase, to = wrong.tolist()
    if verdict == ENDLESS:
        raise Refused(f"{whose}: task {task} has more than {MOST_MESSAGES} messages in phase "
                      f"{phase}: the peer after the last is NO_MORE")  # fmt: skip
    if verdict:
        raise Refused(f"{whose}: task {task} sends to {to} in phase {phase}; to another, "
                      f"0 .. {tasks - 1}, or NOBODY, or NO_MORE")  # fmt: skip
    return counts


MOST_OWN_PHASES, MOST_MESSAGES = 1 << 20, 1 << 20
NO_TASK, ENDLESS = 1, 2
"""What can be wrong with a plug-in's pattern."""


def _count(tasks: int, phases: int, counts: Any, wrong: Any) -> None:
    for phase in range(phases):
        for task in range(tasks):
            i = 0
            to = mine(task, tasks, phase, i)
            while to != NO_MORE:
                if to != NOBODY:
                    if to < 0 or to >= tasks or to == task:
                        wrong[0], wrong[1], wrong[2], wrong[3] = NO_TASK, task, phase, to
                        return
                    counts[phase * tasks + to] += 1
                i += 1
                if i > MOST_MESSAGES:
                    wrong[0], wrong[1], wrong[2] = ENDLESS, task, phase
                    return
                to = mine(task, tasks, phase, i)


# -- while it runs


@kernel
def beside(stage: Any, task: int, dx: int, dy: int, dz: int, dw: int) -> int:
    """Returns the task at this distance from another in the grid, or NOBODY."""
    nx, ny, nz, nw = stage[w.NX], stage[w.NY], stage[w.NZ], stage[w.NW]
    x, y, z = task % nx + dx, task // nx % ny + dy, task // (nx * ny) % nz + dz
    fourth = task // (nx * ny * nz) + dw
    if not (0 <= x < nx and 0 <= y < ny and 0 <= z < nz and 0 <= fourth < nw):
        return NOBODY
    other = x + nx * (y + ny * (z + nz * fourth))
    return other if other < stage[w.TASKS] else NOBODY  # type: ignore[no-any-return]


@kernel
def neighbours(stage: Any) -> int:
    if stage[w.PATTERN] == HALO4D:
        return 8
    return 26 if stage[w.PATTERN] == HALO3D26 else 6 if stage[w.PATTERN] == HALO3D else 4


@kernel
def neighbour(stage: Any, task: int, i: int) -> int:
    """Returns the i-th of the neighbours of a task, two on each line: the axes in order, or, in
    all of 3 × 3 × 3, the 13 lines through its middle. In a pairwise exchange the task's own
    position decides which of the two on a line comes first, so that partners find each other."""
    axis, way = i // 2, 1 if i % 2 == 0 else -1
    dx, dy, dz = 1 if axis == 0 else 0, 1 if axis == 1 else 0, 1 if axis == 2 else 0
    dw = 1 if axis == 3 else 0
    if stage[w.PATTERN] == HALO3D26:
        dx, dy, dz = (14 + axis) % 3 - 1, (14 + axis) // 3 % 3 - 1, (14 + axis) // 9 - 1
        dw = 0
    if stage[w.PAIRWISE]:
        nx, ny, nz = stage[w.NX], stage[w.NY], stage[w.NZ]
        x, y, z, fourth = task % nx, task // nx % ny, task // (nx * ny) % nz, task // (nx * ny * nz)
        along = x if dx != 0 else y if dy != 0 else z if dz != 0 else fourth
        way = way if along % 2 == 0 else -way
    return beside(stage, task, way * dx, way * dy, way * dz, way * dw)


@kernel
def step_of(stage: Any, phase: int) -> int:
    """Returns which phase of its pattern a phase of a job is, given its stage."""
    if stage[w.PHASES] == 1:
        return 0
    return (phase % stage[w.ITERATION_PHASES] - stage[w.FIRST]) % stage[w.PHASES]  # type: ignore[no-any-return]


@kernel
def stage_at(state: Any, number: int, phase: int) -> int:
    """Returns the row of the stage that a phase of a job is in."""
    job = state.jobs[number]
    row, last = job[w.FIRST_STAGE], job[w.FIRST_STAGE] + job[w.STAGES] - 1
    if row == last:
        return row  # type: ignore[no-any-return]
    step = phase % job[w.ITERATION]
    while row < last and state.stages[row + 1, w.FIRST] <= step:
        row += 1
    return row  # type: ignore[no-any-return]


@kernel
def lane(stage: Any, task: int, phase: int) -> Any:
    """Returns, for a task in its row (even phases) or column: how many tasks are in it, the task's
    position, the first task, and the distance from one to the next."""
    nx, n = stage[w.NX], stage[w.TASKS]
    x, y = task % nx, task // nx
    if phase % 2 == 0:
        return min(nx, n - y * nx), x, y * nx, 1
    return (n - x + nx - 1) // nx, y, x, nx


@kernel
def opposite(stage: Any, task: int, step: int) -> Any:
    """Returns whom a task sends to and whom it receives from in a phase of a pairwise exchange;
    NOBODY where there is none."""
    n = stage[w.TASKS]
    if stage[w.PATTERN] == ALL_TO_ALL:
        return (task + 1 + step) % n, (task - 1 - step) % n
    if stage[w.PATTERN] == FFT3D:
        across = 1 if step >= stage[w.NX] - 1 else 0
        step -= across * (stage[w.NX] - 1)
        length, at, first, stride = lane(stage, task, across)
        if step >= length - 1:
            return NOBODY, NOBODY
        to, fro = (at + 1 + step) % length, (at - 1 - step) % length
        return first + to * stride, first + fro * stride
    other = neighbour(stage, task, step)
    return other, other


@kernel
def partner(stage: Any, task: int, phase: int) -> int:
    """Returns whom a task exchanges with in a phase of an allreduce, or NOBODY. The first 2·rest
    tasks are pairs, of which the odd one is folded into the even one."""
    fold = stage[w.FOLD]
    rest = stage[w.TASKS] - fold
    if phase == 0 or phase == stage[w.PHASES] - 1:
        if task >= 2 * rest:
            return NOBODY
        sends = task % 2 == (1 if phase == 0 else 0)
        return task ^ 1 if sends else NOBODY
    if task < 2 * rest and task % 2 == 1:
        return NOBODY
    rank = task // 2 if task < 2 * rest else task - rest
    if (1 << (phase - 1)) >= fold:
        return NOBODY
    other = rank ^ (1 << (phase - 1))
    return 2 * other if other < rest else other + rest


def peer(state: Any, row: int, task: int, phase: int, i: int) -> int:
    """Returns the task that message i of a task in a phase of a stage goes to; NOBODY; or NO_MORE.
    `row` is that of the stage, or -1 after the last one."""
    if row < 0:
        return NO_MORE
    stage = state.stages[row]
    pattern, n = stage[w.PATTERN], stage[w.TASKS]
    step = step_of(stage, phase)
    if pattern >= OWN:
        return own_peer(pattern, task, n, step, i)
    if stage[w.PAIRWISE]:
        to, _ = opposite(stage, task, step)
        return to if i == 0 else NO_MORE  # type: ignore[no-any-return]
    if pattern == ALL_TO_ALL:
        return (task + 1 + i) % n if i < n - 1 else NO_MORE
    if pattern in (HALO2D, HALO3D, HALO3D26, HALO4D):
        return neighbour(stage, task, i) if i < neighbours(stage) else NO_MORE
    if pattern == FFT3D:
        length, at, first, stride = lane(stage, task, step)
        return first + (at + 1 + i) % length * stride if i < length - 1 else NO_MORE
    if pattern == BROADCAST:
        return i + 1 if task == 0 and i < n - 1 else NO_MORE
    if pattern == TREE:
        child = 2 * task + 1 + i
        return child if step == 1 and i < 2 and child < n else NO_MORE
    if i > 0 and pattern != RING:
        return NO_MORE
    if pattern == INCAST:
        return 0 if task > 0 else NO_MORE
    if pattern == ALLREDUCE:
        return partner(stage, task, step)
    if pattern == UNIFORM:
        return stranger(stage[w.JOB_SEED], stage[w.NUMBER], task, n, phase)
    return state.friends[stage[w.FRIENDS] + task, i] if i < 2 else NO_MORE  # type: ignore[no-any-return]


@kernel
def of_no_plugin(pattern: int, task: int, tasks: int, phase: int, i: int) -> int:
    """Stands for the patterns of plug-ins, where there are none."""
    return NO_MORE


# Bound by `kernels`, for each plug-in's pattern:
MINE: int = OWN  # its number
mine: Callable[..., int] = of_no_plugin  # its kernel; in `_count` it is bound by `expect`
others: Callable[..., int] = of_no_plugin  # `_own_peer` for those before it
own_peer: Callable[..., int] = of_no_plugin  # the last of these


def _own_peer(pattern: int, task: int, tasks: int, phase: int, i: int) -> int:
    if pattern == MINE:
        return mine(task, tasks, phase, i)
    return others(pattern, task, tasks, phase, i)


class Kernels(NamedTuple):
    """The kernels of one set of patterns: whom a task sends to, how much it waits for in a phase,
    and how much comes to it that no phase waits for."""

    peer: Any
    awaited: Any
    apart: Any


@lru_cache
def kernels(own: tuple[Any, ...]) -> Kernels:
    """Returns the kernels for these patterns of plug-ins, numbered from OWN, each a kernel
    `peer(task, tasks, phase, i)`, beside those of this file."""
    chain = of_no_plugin
    for number, written in enumerate(own, OWN):
        names = {"MINE": number, "mine": written, "others": chain}
        chain = kernel(rebound(_own_peer, "own_peer", **names))
    pair = {"peer": kernel(rebound(peer, "peer", own_peer=chain)), "incoming": kernel(incoming)}
    both = (kernel(rebound(each, each.__name__, **pair)) for each in (awaited, apart))
    return Kernels(pair["peer"], *both)


@kernel
def label(stage: Any, phase: int) -> int:
    """Returns the phase in which the receiver waits for a message that is sent in a phase. Where it
    waits for none, the label still names the stage."""
    waited = stage[w.PATTERN] == TREE and stage[w.WAITS] == w.FOR_MESSAGES
    return phase - 1 if waited else phase


def incoming(state: Any, row: int, task: int, phase: int) -> int:
    """Returns how many messages others send to a task in a phase of a stage; in all phases of a
    job, if the stage is uniform."""
    stage = state.stages[row]
    pattern, n = stage[w.PATTERN], stage[w.TASKS]
    step = step_of(stage, phase)
    if pattern >= OWN:
        return state.expected[stage[w.EXPECTED] + step * n + task]  # type: ignore[no-any-return]
    if stage[w.PAIRWISE]:
        _, fro = opposite(stage, task, step)
        return 1 if fro != NOBODY else 0
    if pattern == ALL_TO_ALL:
        return n - 1  # type: ignore[no-any-return]
    if pattern in (HALO2D, HALO3D, HALO3D26, HALO4D):
        count = 0
        for i in range(neighbours(stage)):
            count += 1 if neighbour(stage, task, i) != NOBODY else 0
        return count
    if pattern == FFT3D:
        length, _, _, _ = lane(stage, task, step)
        return length - 1  # type: ignore[no-any-return]
    if pattern == BROADCAST:
        return 1 if task > 0 else 0
    if pattern == TREE:
        return 1 if task > 0 and step == 0 else 0
    if pattern == INCAST:
        return n - 1 if task == 0 else 0  # type: ignore[no-any-return]
    if pattern == UNIFORM:
        return state.friends[stage[w.FRIENDS] + task, w.AFTER]  # type: ignore[no-any-return]
    if pattern == ALLREDUCE:
        rest = n - stage[w.FOLD]
        if step == 0 or step == stage[w.PHASES] - 1:
            waits = task % 2 == (0 if step == 0 else 1)
            return 1 if task < 2 * rest and waits else 0
        return 1 if partner(stage, task, step) != NOBODY else 0
    return 2 if pattern == RING else 1


def awaited(state: Any, row: int, task: int, phase: int) -> int:
    """Returns the bytes that a task waits for in a phase of a stage."""
    stage = state.stages[row]
    if stage[w.WAITS] == w.FOR_MESSAGES:
        return incoming(state, row, task, phase) * stage[w.MESSAGE]  # type: ignore[no-any-return]
    count, i = 0, 0
    while stage[w.WAITS] == w.FOR_REPLIES:
        to = peer(state, row, task, phase, i)
        if to == NO_MORE:
            break
        count += 1 if to != NOBODY else 0
        i += 1
    return count * stage[w.REPLY]  # type: ignore[no-any-return]


def apart(state: Any, number: int, task: int) -> int:
    """Returns the bytes that come to a task in the whole of its job in messages that no phase waits
    for."""
    job, total = state.jobs[number], 0
    for row in range(job[w.FIRST_STAGE], job[w.FIRST_STAGE] + job[w.STAGES]):
        stage = state.stages[row]
        if stage[w.WAITS] == w.FOR_MESSAGES:
            continue
        passes = stage[w.PASSES] if stage[w.PATTERN] != UNIFORM else 1
        for step in range(stage[w.PHASES]):
            count = incoming(state, row, task, stage[w.FIRST] + step)
            total += count * stage[w.MESSAGE] * passes
    return total
