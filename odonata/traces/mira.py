"""A year of jobs like those of Mira, the Blue Gene/Q of Argonne, in 2014.

S. Wallace et al. (2016) state: 48 racks with 49,152 nodes in all; 24,565 jobs in the year; sizes
that "fit a fairly normal distribution" (on the logarithmic axis of their figure 4); projects, each
with a group of users and similar codes, whose jobs are repetitive; 94 % of the jobs' power profiles
known after 26 days, a profile being known after 20 samples, almost 80 minutes. We have no numbers
from their figure 4, sizes and average run times. All that is not stated was **chosen**, and stands
in the constants below. Time 0 is the midnight before Wednesday, 1 January 2014.
"""

from __future__ import annotations

import numpy as np

from odonata.traces.distributions import (
    Numbers,
    Random,
    above,
    among,
    header,
    microseconds,
    named,
    stream,
    whole_from,
)
from odonata.traces.trace import SECOND, UNKNOWN, Account, Trace, Whole
from pdes.errors import Refused

NODES = 49_152
"""Stated."""
JOBS = 24_565
"""Stated: the valid jobs of the year."""
YEAR = 365
HOUR_S, DAY_S = 3600.0, 86_400.0

SIZES = np.array([512, 1024, 2048, 4096, 8192, 12288, 16384, 24576, 32768, 49152])
"""Partitions of midplanes of 512 nodes; 49,152 is the machine."""
TOP, WIDTH = 11.2, 1.2
"""Chosen: the top and the standard deviation of the bell of sizes, in octaves: 2,352 nodes, and a
factor of 2.3. What bounds its upper end is stated: under a cap of 3,000 kW more than 99 % of all
intervals were within it, and 99.2 % under a cap that was 2,000 kW for a part of the year. The jobs
that break these caps whenever they run, those of 48 and of 32 racks, cannot have run for longer."""
SHARES = np.exp(-(((np.log2(SIZES) - TOP) / WIDTH) ** 2) / 2)
SHARES /= SHARES.sum()
"""The share of jobs of each size: a bell over the logarithm of the size, as stated."""
RUN_H = np.array([2.7, 3.0, 3.3, 3.6, 4.0, 4.2, 3.9, 3.6, 3.4, 2.9])
"""Chosen: the typical run time of each size, in h, before one factor brings all jobs to the load;
at the load that is the default the factor is close to 1. With 24,565 jobs a year it follows from
the load that a job takes some 14,500 node hours."""
LIMIT_H = np.where(SIZES <= 4096, 12.0, 24.0)
"""Chosen: the longest request for each size, in h. Large jobs may ask for a day."""
LOAD = 0.83
"""Chosen: the offered load. The authors give utilisations only relative to each other."""

PROJECTS, LATE_PROJECTS = 100, 30
"""Chosen: the projects of the year, and those of them that begin in its middle. The authors have
projects that are added over time."""
LATE_DAY = 181
"""Chosen: the day on which late projects begin: 1 July, when one of the programmes that give out
time on the machine begins its year."""
PROJECT_SKEW = 0.8
"""Chosen: the k-th project weighs k to the power of minus so much."""
MOST_USERS, MOST_CODES = 8, 3
"""Chosen: a project has 1 to so many users and applications, all as likely. Nobody is in two
projects, and no two projects share a code."""
FAVOURITE = 2.0
"""Chosen: of n users (or codes) of a project, job after job takes number n·u to this power, u being
uniform from 0 to 1: the first ones most often."""
SIZE_REACH = 1.0
"""Chosen: a project has a favourite size; those d steps away from it weigh exp(-d/reach)."""
RECIPE_SPREAD = 0.6
"""Chosen: a project's code at one size is a *recipe* with one typical run time, lognormal around
the size's; this is the standard deviation of the logarithm."""
REPEAT_SPREAD = 0.12
"""Chosen: the same from one job to the next of the same recipe: they repeat each other."""
EARLY_SHARE = 0.10
"""Chosen: the share of jobs that end early (they fail, or have converged), anywhere before."""
SHORTEST_S = 30.0
"""Chosen: no job is shorter."""
MARGIN = (1.0, 2.0)
"""Chosen: a recipe's request is its typical run time times a factor between these, rounded up. A
job that would run longer ends at its request."""
STEPS_H = ((1.0, 1 / 12), (3.0, 1 / 4), (6.0, 1 / 2), (24.0, 1.0))
"""Chosen: requests up to 1 h are multiples of 5 minutes, up to 3 h of 15, up to 6 h of 30, above
that of an hour."""

BURST = 2.0
"""Chosen: users submit so many jobs of the same recipe one after the other, on average (the number
is geometric)."""
BURST_GAP_S = 120.0
"""Chosen: the mean time between the jobs of a burst."""
HOURS = np.array([0.55, 0.45, 0.4, 0.35, 0.35, 0.4, 0.5, 0.7, 1.0, 1.4, 1.6, 1.6,
                  1.5, 1.5, 1.6, 1.7, 1.6, 1.5, 1.2, 1.0, 0.9, 0.8, 0.75, 0.65])  # fmt: skip
"""Chosen: the rate of submissions by hour of the day, relative to each other."""
WEEKDAYS = np.array([1.05, 1.1, 1.05, 0.55, 0.55, 1.05, 1.1])
"""Chosen: the same by day of the week, from Wednesday."""

BURSTS, SIZE, PROJECT, PEOPLE, RECIPES, REPEATS = range(6)
"""The purposes of random numbers."""


def mira_year(
    seed: int = 1, *, load: float = LOAD, days: int = YEAR, jobs: int | None = None
) -> Trace:
    """Returns the jobs of a year like Mira's, or of fewer or more days: then as many per day,
    unless `jobs` says how many.

    `load`: the offered load on 49,152 nodes; as the number of jobs is given, it decides how long
    they run.
    """
    whole_from(0, seed=seed)
    whole_from(1, days=days)
    above(0, load=load)
    jobs = max(round(JOBS * days / YEAR), 2) if jobs is None else jobs
    whole_from(2, jobs=jobs)

    submit_s, burst = _bursts(stream(seed, BURSTS), jobs, days)
    bursts = int(burst.max()) + 1
    first_s = np.full(bursts, np.inf)
    np.minimum.at(first_s, burst, submit_s)
    size = _sizes(stream(seed, SIZE), bursts)
    project = _projects(stream(seed, PROJECT), size, first_s)
    user, code = _members(stream(seed, PEOPLE), project)
    size, project, user, code = size[burst], project[burst], user[burst], code[burst]
    submit_us = microseconds(submit_s)
    span_s = float(submit_us[-1] - submit_us[0]) / SECOND
    run_s, request_s = _times(seed, size, code, load, NODES * span_s)
    names = {word: named(word, codes) for word, codes in
             (("user", user), ("project", project), ("application", code))}  # fmt: skip
    return Trace(
        name="mira",
        number=np.arange(1, jobs + 1),
        submit_us=submit_us,
        run_us=microseconds(run_s),
        nodes=SIZES[size],
        requested_us=microseconds(request_s),
        user=names["user"][0],
        users=names["user"][1],
        project=names["project"][0],
        projects=names["project"][1],
        application=names["application"][0],
        applications=names["application"][1],
        wait_us=np.full(jobs, UNKNOWN),
        machine_nodes=NODES,
        header=header("a year like Mira's, after S. Wallace et al. 2016; distributions chosen",
                      seed, load=load, days=days, jobs=jobs),
        account=Account(records=jobs),
    )  # fmt: skip


def _bursts(rng: Random, jobs: int, days: int) -> tuple[Numbers, Whole]:
    """Returns when each job is submitted, ascending, and the burst that it belongs to. Given their
    number, the bursts of a Poisson process are independent of each other, each as likely at a time
    as its rate there says."""
    lengths = rng.geometric(1 / BURST, jobs)
    bursts = int(np.searchsorted(np.cumsum(lengths), jobs)) + 1
    burst = np.repeat(np.arange(bursts), lengths[:bursts])[:jobs]
    week = (WEEKDAYS[:, None] * HOURS).ravel()
    hourly = np.resize(week, days * 24)
    begin_s = (among(rng, hourly, bursts) + rng.random(bursts)) * HOUR_S
    gap_s = rng.exponential(BURST_GAP_S, jobs)
    begins = np.flatnonzero(np.diff(burst, prepend=-1))
    passed = np.cumsum(gap_s)
    submit_s = begin_s[burst] + passed - passed[begins][burst]
    order = np.argsort(submit_s, kind="stable")
    return submit_s[order], burst[order]


def _sizes(rng: Random, bursts: int) -> Whole:
    """Returns the position in SIZES of each burst: as many of each as its share says, shuffled."""
    exact = np.cumsum(SHARES) / SHARES.sum() * bursts
    counts = np.diff(np.rint(exact).astype(np.int64), prepend=0)
    return rng.permutation(np.repeat(np.arange(len(SIZES)), counts))


def _projects(rng: Random, size: Whole, begin_s: Numbers) -> Whole:
    """Returns the project of each burst, from those that are there at the time, and that like its
    size."""
    weight = np.arange(1, PROJECTS + 1) ** -PROJECT_SKEW
    favourite = among(rng, SHARES, PROJECTS)
    distance = np.abs(np.arange(len(SIZES)) - favourite[:, None])
    liking = np.exp(-distance / SIZE_REACH) * weight[:, None]
    late = np.zeros(PROJECTS, bool)
    late[rng.permutation(PROJECTS)[:LATE_PROJECTS]] = True
    after = begin_s >= LATE_DAY * DAY_S
    project = np.empty(len(size), np.int64)
    for step in range(len(SIZES)):
        for is_after in (False, True):
            here = np.flatnonzero((size == step) & (after == is_after))
            there = liking[:, step] * (is_after | ~late)
            project[here] = among(rng, there, len(here))
    return project


def _members(rng: Random, project: Whole) -> tuple[Whole, Whole]:
    """Returns the user and the application of each burst, as numbers that no two projects share."""
    drawn = []
    for most in (MOST_USERS, MOST_CODES):
        number = rng.integers(1, most + 1, PROJECTS)
        taken = np.floor(number[project] * rng.random(len(project)) ** FAVOURITE).astype(np.int64)
        drawn.append(project * most + taken)
    return drawn[0], drawn[1]


def _times(
    seed: int, size: Whole, code: Whole, load: float, capacity_s: float
) -> tuple[Numbers, Numbers]:
    """Returns the run time and the request of each job, in whole s, such that all jobs together are
    this load on a machine that has so many node seconds."""
    of_recipe, of_repeat = stream(seed, RECIPES), stream(seed, REPEATS)
    recipes = (PROJECTS * MOST_CODES, len(SIZES))
    spread = of_recipe.lognormal(-(RECIPE_SPREAD**2) / 2, RECIPE_SPREAD, recipes)
    typical_s = (RUN_H * HOUR_S * spread)[code, size]
    margin = of_recipe.uniform(*MARGIN, recipes)[code, size]
    jobs = len(size)
    repeat = of_repeat.lognormal(-(REPEAT_SPREAD**2) / 2, REPEAT_SPREAD, jobs)
    early = of_repeat.random(jobs) < EARLY_SHARE
    repeat *= np.where(early, of_repeat.random(jobs), 1.0)
    limit_s = LIMIT_H[size] * HOUR_S

    def times(factor: float) -> tuple[Numbers, Numbers]:
        request_s = np.minimum(rounded_up(typical_s * factor * margin), limit_s)
        run_s = np.maximum(np.rint(typical_s * factor * repeat), SHORTEST_S)
        return np.minimum(run_s, request_s), request_s

    nodes = SIZES[size].astype(np.float64)
    low, high = 1e-4, 1e4
    least, most = (float(times(end)[0] @ nodes) for end in (low, high))
    work_s = load * capacity_s
    if not least < work_s < most:
        raise Refused(f"load = {load}: {least / capacity_s:.3g} to {most / capacity_s:.3g} is "
                      f"accepted with {jobs:,} jobs and their longest requests")  # fmt: skip
    for _ in range(60):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if times(middle)[0] @ nodes < work_s else (low, middle)
    return times(high)


def rounded_up(seconds: Numbers) -> Numbers:
    """Returns the times that users ask for, in s: round ones, no shorter than these."""
    hours = seconds / HOUR_S
    steps = np.array([step for _, step in STEPS_H])
    until = np.array([end for end, _ in STEPS_H[:-1]])
    step = steps[np.searchsorted(until, hours)]
    return np.asarray(np.rint(np.maximum(np.ceil(hours / step), 1) * step * HOUR_S))
