"""Types of jobs that run for hours on many nodes, made at random, like those of a cluster of a
university.

Zhang (2021, section 2.9) replays traces of meggie (728 nodes) and emmy (560 nodes) of the computing
centre in Erlangen, which are not public: jobs mostly run for hours, up to 24, on up to 64 nodes; an
idle node draws 31 W, of its processors and memory. The rest is chosen: run times and sizes are
spread evenly over their logarithms, and larger and longer types have more of the work. The tables
`meggie-like` and `emmy-like` are what `long_types` makes of the seeds in `TABLES`.
"""

from __future__ import annotations

import math

from odonata.traces.distributions import above, stream, whole_from
from odonata.traces.job_type import JobType
from odonata.traces.types import Types
from pdes.errors import Refused

KINDS = 202
"""The purpose of random numbers; those of other models are below."""
TABLES = {"meggie-like": 728, "emmy-like": 560}
"""The tables, each with its seed, which is the number of nodes of the machine that it is like."""
IDLE_W = 31.0
MOST_W = 80.0, 160.0
"""Between what watts a node draws without a cap."""
RANGE = 0.65, 0.9
"""Which part of these it draws under the lowest cap."""
SLOWDOWNS = 1.1, 1.5
THRESHOLD = 2.0
"""The mean degradation that jobs are to stay below (section 2.9.3)."""
SHORTEST_H = 0.5
ROUND_S = 60


def long_types(
    seed: int, count: int = 20, largest: int = 64, longest_h: float = 24.0, name: str = "long"
) -> Types:
    """Returns a table of so many types, of jobs of up to so many nodes that take no longer than
    this under the lowest cap."""
    whole_from(0, seed=seed)
    whole_from(1, count=count, largest=largest)
    above(0, longest_h=longest_h)
    if longest_h <= SHORTEST_H * SLOWDOWNS[1]:
        raise Refused(f"longest_h = {longest_h:g}: more than {SHORTEST_H * SLOWDOWNS[1]:g} h")
    rng, rows = stream(seed, KINDS), []
    for at in range(count):
        nodes = round(math.exp(rng.uniform(0.0, math.log(largest))))
        slowdown = round(float(rng.uniform(*SLOWDOWNS)), 2)
        longest = math.log(longest_h / slowdown)
        hours = math.exp(rng.uniform(math.log(SHORTEST_H), longest))
        most_w = round(float(rng.uniform(*MOST_W)))
        least_w = round(most_w * float(rng.uniform(*RANGE)))
        seconds = max(ROUND_S, ROUND_S * math.floor(hours * 3600 / ROUND_S))
        rows.append(JobType(f"job{at + 1:02d}.{nodes}", float(most_w), float(least_w), slowdown,
                            nodes, float(seconds), THRESHOLD))  # fmt: skip
    return Types(tuple(rows), name, IDLE_W)


def shares_of(types: Types) -> tuple[float, ...]:
    """Returns the part of the work that each type has, relative to the others: the root of the
    node-hours of one of its jobs."""
    return tuple(round(math.sqrt((it.nodes or 1) * (it.shortest_s or 0.0) / 3600.0), 1)
                 for it in types)  # fmt: skip
