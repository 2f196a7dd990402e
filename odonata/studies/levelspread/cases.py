"""The simulations of the Level-Spread study: Y. Zhang's thesis (Boston University), chapter 3.

A **cell** is a place in one of its figures: one workload under one policy, repeated with other
seeds. A cell is a tuple of points; figures and summaries ask for the same cells as the sweep. Where
the thesis is silent, the choice is ours and explained in docs/level-spread.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

import numpy as np

from odonata.studies.levelspread.simulation import KB, Jobs, Point, buildable, simulate
from odonata.study.contract import digest
from pdes.errors import require
from topology.presets import PRESETS

LEVEL_SPREAD, JOKANOVIC = "level-spread", "jokanovic"
PUBLISHED = "jokanovic-published"
"""The name of Jokanovic's policy as it is in the code that the authors published."""
COMPACT = ("simple", "slurm", "rdg")
SPREADING = ("rdr", "rrr", "rdn", "rrn")
BASELINES = (*COMPACT, *SPREADING)
POLICIES = (LEVEL_SPREAD, *BASELINES)

PATTERNS = ("all-to-all", "broadcast", "fft3d", "halo2d", "halo3d", "halo3d26")
RATIOS = (0.25, 1.0, 4.0)
MACHINE = "levelspread-272"
LARGER = ("levelspread-528", "levelspread-544", "levelspread-1056")
SMALL_NODES, LARGE_NODES = 16, 64
MESSAGES = ((1, 100), (1, 10), (1, 1), (10, 1), (100, 1))
"""Kilobytes per message of a small and of a large job: the rows of figure 3.8."""

USUAL, LOWER = 90, 70
"""Per cent of the machine that the jobs of a workload may have, at most."""
LONG_KB = 100
"""Kilobytes per message where all jobs send long ones."""
MOST_LONG = 3
"""Repetitions of those, at most: each has a hundred times the packets."""

MOST_SMALL = 16
"""Nodes of a group: a job with more is a large job."""
SINGLE = 10
"""The number of mixed workloads for each workload of a single pattern."""


CHANGEABLE = ("mapping", "iterations", "exchange", "broadcast", "routing", "threshold",
              "packet_bytes", "buffer_bytes", "terminal", "delay_ps", "router", "host",
              "crossbar", "sight", "detours", "broadcast_factor")  # fmt: skip
"""Fields of a point that no figure varies."""


@dataclass(frozen=True)
class LevelSpreadPlan:
    """The extent of the study. Repetition i of any cell has the seed `seed` + i; random workload i
    too. `changes`: what is different at every point, as (field, value), to see how much it matters.
    `parts`: which of PARTS. `draw`: which of DRAWS."""

    workloads: int
    repeat: int
    seed: int
    changes: tuple[tuple[str, Any], ...]
    parts: tuple[str, ...]
    draw: str

    def __post_init__(self) -> None:
        require(self.workloads >= 1, f"workloads = {self.workloads}: at least 1")
        require(self.repeat >= 1, f"repeat = {self.repeat}: at least 1")
        require(0 <= self.seed < 2**62, f"seed = {self.seed}: 0 .. 2**62 - 1")
        for name, _ in self.changes:
            require(name in CHANGEABLE, f"{name}: one of {', '.join(CHANGEABLE)}")

    def at(self, kinds: tuple[Jobs, ...], policy: str, seed: int, **where: Any) -> Point:
        return Point(kinds, policy, seed, **{**where, **dict(self.changes)})

    def repeated(self, kinds: tuple[Jobs, ...], policy: str, **where: Any) -> tuple[Point, ...]:
        return tuple(self.at(kinds, policy, seed, **where) for seed in self.seeds)

    @property
    def seeds(self) -> range:
        return range(self.seed, self.seed + self.repeat)

    @property
    def single(self) -> int:
        """Returns how many random workloads there are of each pattern alone."""
        return max(1, self.workloads // SINGLE)


def nodes_of(machine: str) -> int:
    return PRESETS[machine].machine.n_nodes


def fitting(machine: str, nodes: int, most: int = USUAL) -> int:
    """Returns how many jobs of so many nodes are at most so many per cent of the machine."""
    return most * nodes_of(machine) // (100 * nodes)


def parse_change(text: str) -> tuple[str, Any]:
    """Read 'terminal=4', to the type of the field. Raises ValueError saying what is accepted."""
    name, equals, value = text.partition("=")
    if not equals or name not in CHANGEABLE:
        raise ValueError(f"{text!r}: FIELD=VALUE, the field one of {', '.join(CHANGEABLE)}")
    if name == "detours":
        if value not in ("true", "false"):
            raise ValueError(f"{text!r}: {name} is true or false")
        return name, value == "true"
    make = {**dict.fromkeys(("mapping", "routing", "exchange", "broadcast", "router", "host",
                             "sight"), str), **dict.fromkeys(("threshold", "terminal", "crossbar"),
                                                             float)}.get(name, int)  # fmt: skip
    try:
        return name, make(value)
    except ValueError:
        raise ValueError(f"{text!r}: {name} is {make.__name__}") from None


# -- cells


def homogeneous(
    asked: LevelSpreadPlan, nodes: int, pattern: str, ratio: float, policy: str,
    machine: str = MACHINE, *, most: int = USUAL, kilobytes: int = 1,
) -> tuple[Point, ...]:  # fmt: skip
    """Returns jobs of one size (figure 3.4), 90 % of the machine; but of a quarter of it, four."""
    count = 4 if 4 * nodes == nodes_of(machine) else fitting(machine, nodes, most)
    kinds = (Jobs(count, nodes, pattern, kilobytes * KB),)
    return asked.repeated(kinds, policy, machine=machine, ratio=ratio)


def heterogeneous(asked: LevelSpreadPlan, pattern: str, policy: str, *, ratio: float = 1.0,
                  machine: str = MACHINE, messages: tuple[int, int] = (1, 1),
                  most: int = USUAL) -> tuple[Point, ...]:  # fmt: skip
    """Returns as many small jobs as large ones (figures 3.7 and 3.8), 90 % of the machine."""
    count = fitting(machine, SMALL_NODES + LARGE_NODES, most)
    kinds = (Jobs(count, SMALL_NODES, pattern, messages[0] * KB),
             Jobs(count, LARGE_NODES, pattern, messages[1] * KB))  # fmt: skip
    return asked.repeated(kinds, policy, machine=machine, ratio=ratio)


def motivation(asked: LevelSpreadPlan, large: bool, pattern: str, policy: str) -> tuple[Point, ...]:
    """Returns seventeen jobs that fill a group each, or four that fill a quarter of the machine
    each (figure 3.2)."""
    kinds = (Jobs(4, 68, pattern) if large else Jobs(17, 16, pattern),)
    return asked.repeated(kinds, policy)


@cache
def random_kinds(
    seed: int, which: int, pattern: str | None = None, draw: str = "pairs"
) -> tuple[Jobs, Jobs]:
    """Returns the small and the large jobs of a random workload; both of any pattern, unless one is
    given.

    pairs: sizes first, each uniform; then numbers, every pair that the machine has room for (at
    least one of each) being as likely as any other. scripts: `_as_scripts`.
    """
    if draw == "scripts":
        return _as_scripts(seed, which, pattern)
    stream = 0 if pattern is None else 1 + PATTERNS.index(pattern)
    generator, room = np.random.default_rng([seed, which, stream]), nodes_of(MACHINE)
    large = int(generator.integers(MOST_SMALL + 1, room // 2, endpoint=True))
    small = int(generator.integers(2, MOST_SMALL, endpoint=True))
    pairs = [(few, many) for many in range(1, room // large + 1)
             for few in range(1, (room - many * large) // small + 1)]  # fmt: skip
    few, many = pairs[int(generator.integers(len(pairs)))]
    one, other = (PATTERNS[i] for i in generator.integers(len(PATTERNS), size=2).tolist())
    return Jobs(few, small, pattern or one), Jobs(many, large, pattern or other)


def _as_scripts(seed: int, which: int, pattern: str | None) -> tuple[Jobs, Jobs]:
    """Returns a random workload as the authors' scripts draw it: the size of large jobs and their
    number, then the size of small ones, if there is room for it, and their number, each uniform;
    and two different patterns, fft3d not among them."""
    stream = 0 if pattern is None else 1 + PATTERNS.index(pattern)
    generator, room = np.random.default_rng([seed, which, stream, 1]), nodes_of(MACHINE)

    def uniform(least: int, most: int) -> int:
        return int(generator.integers(least, most, endpoint=True))

    large = uniform(MOST_SMALL + 1, 131)
    many, left = 0, -1
    while left < 2:
        many = uniform(1, room // large)
        left = room - many * large
    small = uniform(2, min(MOST_SMALL, left))
    few = uniform(1, left // small)
    names = [name for name in PATTERNS if name != "fft3d"]
    one, other = (names[i] for i in generator.permutation(len(names))[:2].tolist())
    return Jobs(few, small, pattern or one), Jobs(many, large, pattern or other)


def random_workload(asked: LevelSpreadPlan, which: int, policy: str, *, large_first: bool = False,
                    pattern: str | None = None) -> Point:  # fmt: skip
    kinds = random_kinds(asked.seed, which, pattern, asked.draw)
    order = "large-first" if large_first else "small-first"
    return asked.at(kinds, policy, asked.seed + which, order=order)


# -- parts


def quarters() -> Iterator[tuple[str, int, float]]:
    """Machine, nodes per job and ratio, of the workloads of four large jobs."""
    for ratio in RATIOS:
        yield MACHINE, nodes_of(MACHINE) // 4, ratio
    for machine in LARGER:
        yield machine, nodes_of(machine) // 4, 1.0


def _motivation(asked: LevelSpreadPlan) -> Iterator[Point]:
    for large in (False, True):
        for pattern in PATTERNS:
            for policy in ("rdg", "rdn"):
                yield from motivation(asked, large, pattern, policy)


def _homogeneous(asked: LevelSpreadPlan) -> Iterator[Point]:
    places = [(MACHINE, nodes, ratio) for nodes in (SMALL_NODES, LARGE_NODES) for ratio in RATIOS]
    for machine, nodes, ratio in (*places, *quarters()):
        for pattern in PATTERNS:
            for policy in POLICIES:
                yield from homogeneous(asked, nodes, pattern, ratio, policy, machine)


def _heterogeneous(asked: LevelSpreadPlan) -> Iterator[Point]:
    for pattern in PATTERNS:
        for policy in POLICIES:
            for ratio in RATIOS:
                yield from heterogeneous(asked, pattern, policy, ratio=ratio)
            for machine in LARGER:
                yield from heterogeneous(asked, pattern, policy, machine=machine)
            for messages in MESSAGES:
                yield from heterogeneous(asked, pattern, policy, messages=messages)


def _utilisation(asked: LevelSpreadPlan) -> Iterator[Point]:
    """Figures 3.4 and 3.7 at the lower utilisation."""
    for pattern in PATTERNS:
        for policy in POLICIES:
            for ratio in RATIOS:
                for nodes in (SMALL_NODES, LARGE_NODES):
                    yield from homogeneous(asked, nodes, pattern, ratio, policy, most=LOWER)
                yield from heterogeneous(asked, pattern, policy, ratio=ratio, most=LOWER)
            for machine in LARGER:
                yield from heterogeneous(asked, pattern, policy, machine=machine, most=LOWER)


def _large_messages(asked: LevelSpreadPlan) -> Iterator[Point]:
    """Figures 3.4 and 3.7a at a ratio of 1, with long messages in all jobs, and with the usual ones
    that they are compared with; a few repetitions."""
    asked = replace(asked, repeat=min(asked.repeat, MOST_LONG))
    for kilobytes in (1, LONG_KB):
        for pattern in PATTERNS:
            for policy in POLICIES:
                for nodes in (SMALL_NODES, LARGE_NODES):
                    yield from homogeneous(asked, nodes, pattern, 1.0, policy, kilobytes=kilobytes)
                yield from heterogeneous(asked, pattern, policy, messages=(kilobytes, kilobytes))


def _random(asked: LevelSpreadPlan) -> Iterator[Point]:
    for which in range(asked.workloads):
        for policy in (*POLICIES, JOKANOVIC):
            yield random_workload(asked, which, policy)


def _order(asked: LevelSpreadPlan) -> Iterator[Point]:
    for which in range(asked.workloads):
        for policy in (*POLICIES, JOKANOVIC):
            yield random_workload(asked, which, policy, large_first=True)


def _jokanovic(asked: LevelSpreadPlan) -> Iterator[Point]:
    for large_first in (False, True):
        for which in range(asked.workloads):
            for policy in (LEVEL_SPREAD, JOKANOVIC, PUBLISHED):
                yield random_workload(asked, which, policy, large_first=large_first)


def _patterns(asked: LevelSpreadPlan) -> Iterator[Point]:
    for which in range(asked.single):
        for pattern in PATTERNS:
            for policy in POLICIES:
                yield random_workload(asked, which, policy, pattern=pattern)


PARTS: dict[str, Callable[[LevelSpreadPlan], Iterator[Point]]] = {
    "motivation": _motivation,
    "homogeneous": _homogeneous,
    "heterogeneous": _heterogeneous,
    "random": _random,
    "order": _order,
    "jokanovic": _jokanovic,
    "patterns": _patterns,
    "utilisation": _utilisation,
    "large-messages": _large_messages,
}


@lru_cache(maxsize=1)
def cases(asked: LevelSpreadPlan) -> tuple[Point, ...]:
    """Returns each point once, in the order of the parts, or refuses what cannot be built. They are
    cached: they are asked for several times, and the keys of tens of thousands take seconds."""
    every = tuple(dict.fromkeys(point for part in asked.parts for point in PARTS[part](asked)))
    buildable(every)
    return every


def mark() -> str:
    """Returns a digest over small simulations with all that the study uses. It compiles what the
    study needs, and takes a moment."""
    kinds = tuple(Jobs(1, nodes, pattern) for nodes, pattern in zip((3, 5, 6, 9, 18, 20), PATTERNS,
                                                                   strict=True))  # fmt: skip
    usual = Point((*kinds, Jobs(1, 4, "halo2d", 10 * KB)), "rdn", seed=1)
    tried = [
        *(replace(usual, allocation=policy) for policy in (*POLICIES, JOKANOVIC)),
        replace(usual, exchange="posted", broadcast="broadcast", order="large-first", ratio=0.25),
    ]
    found = (simulate(point, show_compiling=True) for point in tried)
    return digest(f"{outcome.digest} {outcome.times_ps}" for outcome in found)
