"""Small random traces on small machines, with times so small that ties are frequent."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import strategies as st
from naive import Job

MOST_JOBS, MOST_NODES, LONGEST_RUN, LONGEST_REQUEST, USERS = 40, 16, 10, 12, 4

VARIANTS: tuple[tuple[str, dict[str, Any]], ...] = (
    *((name, {}) for name in ("fcfs", "small-first", "large-first", "shortest-first",
                              "longest-first", "first-fit", "easy", "easy-strict",
                              "conservative", "lcfs-pr")),
    *(("wfp", {"backfill": how}) for how in ("none", "first-fit", "easy", "easy-strict")),
    *(("fair-share", {"half_life": ticks, "backfill": how})
      for ticks, how in ((1, "none"), (64, "first-fit"), (200, "easy"), (1000, "easy-strict"))),
    *((name, {"printed": printed}) for name in ("spf", "lpf") for printed in (False, True)),
)  # fmt: skip
"""Every discipline with every kind of parameter."""


def build(rows: list[tuple[int, int, int, int | None, int]]) -> list[Job]:
    """Returns jobs, each given by the ticks since the last submission, its run time, nodes,
    requested time and user."""
    jobs, submit = [], 0
    for number, (gap, run, nodes, requested, user) in enumerate(rows):
        submit += gap
        jobs.append(Job(number, submit, run, nodes, requested, user))
    return jobs


@st.composite
def traces(
    draw: st.DrawFn, *, unknown: bool = True, above: bool = False, most_jobs: int = MOST_JOBS
) -> tuple[list[Job], int]:
    """Jobs and the nodes of a machine that has room for each. `unknown`: some jobs do not say how
    long they run; `above`: no request is below the run time."""
    machine = draw(st.integers(1, MOST_NODES))
    rows = []
    for _ in range(draw(st.integers(1, most_jobs))):
        gap = draw(st.one_of(st.just(0), st.integers(0, 4)))
        run = draw(st.integers(0, LONGEST_RUN))
        requests = st.integers(max(1, run) if above else 1, LONGEST_REQUEST)
        requested: int | None = draw(requests)
        if unknown and draw(st.integers(0, 15)) == 15:
            requested = None
        nodes = draw(st.integers(1, machine))
        rows.append((gap, run, nodes, requested, draw(st.integers(0, USERS - 1))))
    return build(rows), machine


def random_trace(seed: int, *, unknown: bool = True, above: bool = False) -> tuple[list[Job], int]:
    """Returns the same kind of trace from a seed. Traces differ in how bursty and how wide they
    are: in some, all jobs come at once; in some, jobs are small beside the machine."""
    rng = random.Random(seed)
    machine = rng.randint(1, MOST_NODES)
    together = rng.choice((0.3, 0.6, 0.9, 1.0))
    longest_gap = rng.choice((1, 4, 10))
    widest = rng.choice((machine, machine, max(1, machine // 2), max(1, machine // 4)))
    unknown_share = rng.choice((0.0, 0.0, 0.05, 0.2)) if unknown else 0.0
    rows = []
    for _ in range(rng.randint(1, MOST_JOBS)):
        gap = 0 if rng.random() < together else rng.randint(1, longest_gap)
        run = rng.randint(0, LONGEST_RUN)
        requested: int | None = rng.randint(max(1, run) if above else 1, LONGEST_REQUEST)
        if rng.random() < unknown_share:
            requested = None
        rows.append((gap, run, rng.randint(1, widest), requested, rng.randint(0, USERS - 1)))
    return build(rows), machine
