"""Who sits where on the machine: idle nodes in contiguous sets, other users' jobs, and GPCNeT.

The thesis asked the scheduler of a busy machine for N = 200 idle nodes and got "several sets of
nodes, where each set is a contiguous set"; it ran GPCNeT on C = 64 of them and an application on
M = 32 of the rest. What ran on the other nodes it does not say. Here they run other users' jobs:
applications that take turns, each on neighbouring nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from odonata.jobs.request import Job, Stage
from odonata.studies.congestion.gpcnet import canary, congestors, split
from odonata.studies.congestion.users import FOREVER

IDLE, CONGESTED, WANTED = 200, 64, 32
"""N, C and M."""


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
