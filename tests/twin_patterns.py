"""The random numbers of the twin (`router_twin`), as `pdes.random` describes them; and the patterns
of its jobs: for each phase of a pass and each task, to whom it sends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from odonata.agents.patterns import near_cubic, ring

WORD = (1 << 32) - 1
TASKS_DRAW = 1 << 62

# -- random numbers


def draw(seed: int, agent: int, count: int) -> tuple[int, int, int, int]:
    """Returns four words of Philox4x32-10."""
    c0, c1, c2, c3 = count & WORD, count >> 32, agent & WORD, agent >> 32
    k0, k1 = seed & WORD, seed >> 32
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & WORD, (p0 >> 32) ^ c3 ^ k1, p0 & WORD
        k0, k1 = (k0 + 0x9E3779B9) & WORD, (k1 + 0xBB67AE85) & WORD
    return c0, c1, c2, c3


def task_draw(seed: int, job: int, task: int, phase: int) -> tuple[int, int, int, int]:
    """Returns what a task draws in a phase of its job: whom it sends to, and how much longer than
    others it computes."""
    return draw(seed, TASKS_DRAW + (job << 32) + task, phase)


def mix(word: int, salt: int) -> int:
    """Returns another word: the upper half of SplitMix64 of the two."""
    most = (1 << 64) - 1
    x = ((word << 32) + salt + 0x9E3779B97F4A7C15) & most
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & most
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & most
    return x >> 32


def below(word: int, n: int) -> int:
    return word * n >> 32


def exponential(high: int, low: int) -> float:
    """Returns an exponential variate of mean 1, with the logarithm of `pdes.random`."""
    x = (((high << 20) | (low >> 12)) + 0.5) * 2.0**-52
    m, e = math.frexp(x)
    m, e = 2 * m, e - 1
    if m > 1.4142135623730951:
        m, e = m * 0.5, e + 1
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    y = z * z
    odd = (((y * (1 / 19) + 1 / 15) * y + 1 / 11) * y + 1 / 7) * y + 1 / 3
    even = (((y * (1 / 21) + 1 / 17) * y + 1 / 13) * y + 1 / 9) * y + 1 / 5
    return -(2.0 * s + 2.0 * s * (z * (odd + z * even)) + e * 0.6931471805599453)


# -- patterns


Sends = list[list[list[int]]]


def beside(task: int, tasks: int, sides: Sequence[int], way: Sequence[int]) -> int | None:
    """Returns the task so many places further on in each dimension of a grid, the first of which
    is that of tasks with consecutive numbers."""
    other, volume = 0, 1
    for side, step in zip(sides, way, strict=True):
        place = task // volume % side + step
        if not 0 <= place < side:
            return None
        other += place * volume
        volume *= side
    return other if other < tasks else None


def lines_of(pattern: str) -> list[tuple[int, ...]]:
    """Returns the directions of the lines on which a task of a halo has two neighbours."""
    if pattern == "halo3d26":
        return [(i % 3 - 1, i // 3 % 3 - 1, i // 9 - 1) for i in range(14, 27)]
    dimensions = int(pattern[4])
    return [tuple(int(i == d) for i in range(dimensions)) for d in range(dimensions)]


def halo(pattern: str, tasks: int, sides: Sequence[int], pairwise: bool) -> Sends:
    phases: Sends = []
    for line in lines_of(pattern):
        first = next(d for d, step in enumerate(line) if step)
        for sign in (1, -1):
            step: list[list[int]] = []
            for task in range(tasks):
                along = task // math.prod(sides[:first]) % sides[first]
                way = -sign if pairwise and along % 2 else sign
                other = beside(task, tasks, sides, [way * each for each in line])
                step.append([] if other is None else [other])
            phases.append(step)
    return phases if pairwise else [together(phases)]


def together(phases: Sends) -> list[list[int]]:
    return [[to for part in parts for to in part] for parts in zip(*phases, strict=True)]


def lanes(tasks: int, nx: int, column: bool) -> list[list[int]]:
    """Returns the rows, or columns, of a plane of tasks."""
    count = nx if column else -(-tasks // nx)
    found = [
        [t for t in range(tasks) if (t % nx if column else t // nx) == i] for i in range(count)
    ]
    return [lane for lane in found if lane]


def in_lanes(tasks: int, found: list[list[int]], steps: int) -> Sends:
    """Returns the phases of an all-to-all in each lane: one per distance."""
    phases: Sends = []
    for step in range(steps):
        phase: list[list[int]] = [[] for _ in range(tasks)]
        for lane in found:
            for i, task in enumerate(lane):
                if step < len(lane) - 1:
                    phase[task] = [lane[(i + 1 + step) % len(lane)]]
        phases.append(phase)
    return phases


def allreduce(tasks: int) -> Sends:
    fold = 1 << (tasks.bit_length() - 1)
    rest = tasks - fold
    number = [t for t in range(tasks) if t >= 2 * rest or t % 2 == 0]
    first: list[list[int]] = [[] for _ in range(tasks)]
    last: list[list[int]] = [[] for _ in range(tasks)]
    for t in range(0, 2 * rest, 2):
        first[t + 1], last[t] = [t], [t + 1]
    phases = [first]
    for bit in range(tasks.bit_length() - 1):
        phase: list[list[int]] = [[] for _ in range(tasks)]
        for rank, t in enumerate(number):
            phase[t] = [number[rank ^ (1 << bit)]]
        phases.append(phase)
    return [*phases, last]


def sends_of(stage: Any, tasks: int, seed: int, number: int, first: int) -> Sends:
    """Returns to whom each task sends in each phase of a pass, the first of which has this number
    in the whole stage."""
    pairwise, everyone = stage.exchange == "pairwise", range(tasks)
    if stage.pattern == "all-to-all":
        phases = in_lanes(tasks, [[*everyone]], tasks - 1)
        return phases if pairwise else [together(phases)]
    if stage.pattern == "fft3d":
        nx, ny = stage.grid or near_cubic(tasks, 2)
        rows = in_lanes(tasks, lanes(tasks, nx, False), nx - 1)
        columns = in_lanes(tasks, lanes(tasks, nx, True), ny - 1)
        nothing: list[list[int]] = [[] for _ in everyone]
        if pairwise:
            return rows + columns or [nothing]
        return [together(rows) if rows else nothing, together(columns) if columns else nothing]
    if stage.pattern.startswith("halo"):
        sides = stage.grid or near_cubic(tasks, int(stage.pattern[4]))
        return halo(stage.pattern, tasks, sides, pairwise)
    if stage.pattern == "broadcast":
        return [[[*range(1, tasks)] if task == 0 else [] for task in everyone]]
    if stage.pattern == "tree-broadcast":
        children = [[c for c in (2 * t + 1, 2 * t + 2) if c < tasks] for t in everyone]
        return [[[] for _ in everyone], children]
    if stage.pattern == "allreduce":
        return allreduce(tasks)
    if stage.pattern == "incast":
        return [[[0] if task else [] for task in everyone]]
    if stage.pattern == "uniform":
        phase = []
        for task in everyone:
            other = below(task_draw(seed, number, task, first)[0], tasks - 1)
            phase.append([other + (other >= task)])
        return [phase]
    friends = ring(seed, number, tasks).tolist()
    return [[friend if stage.pattern == "random-ring" else friend[:1] for friend in friends]]
