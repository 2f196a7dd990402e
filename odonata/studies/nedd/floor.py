"""Who sits where on the machine: idle nodes in contiguous sets, other users' jobs, and GPCNeT.

The thesis asked the scheduler of a busy machine for N = 200 idle nodes and got "several sets of
nodes, where each set is a contiguous set"; it ran GPCNeT on C = 64 of them and an application on
M = 32 of the rest. What ran on the other nodes it does not say. Here they run other users' jobs:
applications that take turns, each on neighbouring nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from odonata.experiment.profiles import profile
from odonata.jobs.request import Job, Stage
from odonata.studies.congestion.gpcnet import canary, congestors, split
from odonata.studies.congestion.simulation import application_on

IDLE, CONGESTED, WANTED = 200, 64, 32
"""N, C and M."""
OTHERS = ("hpcg", "lammps", "qmcpack", "milc", "graph500", "miniamr")
"""What other users run, on equal parts of the nodes that are not idle."""
FOREVER = 10_000
"""Iterations of a job that runs until nobody waits for it."""
SALT = 17


def chance(*seed: int) -> np.random.Generator:
    """Returns a generator of this study's own."""
    return np.random.default_rng([SALT, *seed])


def in_sets(nodes: int, total: int, sets: int, rng: np.random.Generator) -> list[int]:
    """Returns so many of `total` labels, in contiguous sets of equal size (but for one node), with
    gaps at random between them.

    >>> in_sets(6, 12, 2, np.random.default_rng(1))
    [3, 4, 5, 6, 7, 8]
    """
    cuts = np.sort(rng.choice(total - nodes + sets, sets, replace=False)) - np.arange(sets)
    sizes = np.full(sets, nodes // sets) + (np.arange(sets) < nodes % sets)
    firsts = cuts + np.concatenate([[0], np.cumsum(sizes)[:-1]])
    return [int(first + place) for first, size in zip(firsts, sizes, strict=True)
            for place in range(size)]  # fmt: skip


def others_on(nodes: Sequence[int], tasks: int, rng: np.random.Generator) -> list[Job]:
    """Returns other users' jobs on these nodes, in the background."""
    names = rng.permutation(np.array(OTHERS)).tolist()
    parts = np.array_split(np.array(nodes, np.int64), len(names))
    return [
        replace(application_on(profile(name), part.tolist(), tasks), name=f"other users' {name}",
                iterations=FOREVER, background=True)
        for name, part in zip(names, parts, strict=True) if len(part)
    ]  # fmt: skip


def gpcnet_on(
    nodes: Sequence[int], kinds: Sequence[str], tasks: int, seed: int, ranks: int
) -> list[Job]:
    """Returns GPCNeT in the background: congestors on four fifths of these nodes, each kind on an
    equal part of them, and a canary. With more `ranks` than tasks on a node, a task sends as much
    at a time as its ranks would."""
    busy, rest = split(nodes, seed)
    ring = replace(canary("latency", rest, tasks), iterations=FOREVER, background=True)
    return [*(_of_ranks(job, ranks / tasks) for job in congestors(kinds, busy, tasks)), ring]


def _of_ranks(job: Job, each: float) -> Job:
    """Returns a congestor of which a task is so many ranks: all their messages are one."""
    if each == 1:
        return job
    stages = tuple(
        replace(stage, message_bytes=round(stage.message_bytes * each),
                reply_bytes=round(stage.reply_bytes * each))
        for stage in job.stages
    )  # fmt: skip
    return replace(job, profile="", stages=stages)


def silent_on(nodes: Sequence[int]) -> Job:
    """Returns a job that holds nodes in the background and sends next to nothing."""
    stage = Stage("permutation", 1, compute_ps=10**9, name="compute")
    return Job(len(nodes), name="no congestor", stages=(stage,), iterations=FOREVER,
               on=tuple(nodes), background=True)  # fmt: skip
