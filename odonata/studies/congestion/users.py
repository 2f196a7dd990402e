"""A machine that others use too: idle nodes in contiguous sets, and other users' jobs on the rest.

Applications take turns on the nodes that are not idle, each on neighbouring nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from odonata.experiment.profiles import profile
from odonata.jobs.request import Job
from odonata.studies.congestion.simulation import application_on

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
    return [replace(application_on(profile(name), part.tolist(), tasks),
                    name=f"other users' {name}", iterations=FOREVER, background=True) for name,
            part in zip(names, parts, strict=True) if len(part)]  # fmt: skip
