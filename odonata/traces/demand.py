"""The power that the nodes of each job draw when nothing caps them.

S. Wallace et al. (2016) state, of the jobs of Mira in 2014: the power of jobs per rack in their
table I (in `STATED`); projects that differ greatly, users within a project that vary slightly, jobs
that repeat each other; and that once 20 samples are taken, almost 80 minutes, it takes a very
drastic change of behaviour to leave a profile. All that is not stated was **chosen**, and stands in
the constants below. Their maximum of 160.60 kW per rack is above the peak of the machine, 4,800 kW
for 48 racks: here no job draws more than that peak.

A job has a mean and fluctuates around it from one interval of measurement to the next (`level`); in
a few jobs the mean changes once, in the middle of the run (`mean_at`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from statistics import NormalDist
from typing import Any

import numpy as np

from odonata.traces.distributions import Numbers, above, by_appearance, stream, whole_from
from odonata.traces.trace import Trace, Whole
from pdes.errors import Refused, require
from pdes.jit import kernel
from pdes.random import draw

RACK_NODES = 1024
"""A rack of a Blue Gene/Q: 2 midplanes of 16 boards of 32 nodes."""
PEAK_W = 4_800_000 / 49_152
"""Stated: the peak of the machine, 4,800 kW, per node: 97.7 W, or 100 kW per rack."""
STATED = {0: 36.48, 5: 56.60, 25: 61.20, 75: 71.03, 95: 74.57, 99: 77.99}
"""Stated: the minimum and percentiles of the power of jobs, in kW per rack. Also stated: their mean
of 65.76 and their standard deviation of 6.18."""
BETWEEN = {0.1: 46.0, 1: 53.5, 50: 65.4, 99.9: 80.0, 100: PEAK_W * RACK_NODES / 1000}
"""Chosen: the percentiles that are not stated, such that mean and standard deviation are those
stated (they are 65.762 and 6.179); 100 is the peak. In between, power is linear in the
percentile."""

PROJECT_VARIANCE, USER_VARIANCE, RECIPE_VARIANCE = 0.95, 0.03, 0.02
"""Chosen: a recipe, the application of a user in a project, has a normal score of variance 1, the
sum of three: the project's, the user's within it, its own. The higher the score, the more power."""
MIDDLE = 2.0
"""Chosen: a project with a share s of the jobs is not among the lowest or highest s times so much
of the projects. It would be most of a tail, and one level is no tail."""
REPEAT_SPREAD = 0.001
"""Chosen: the standard deviation of the mean power of the repeats of a recipe, relative to it. With
0.003 a T-test of one run against earlier ones would reject one in seven, at 99 %."""
SPREAD = (0.01, 0.02)
"""Chosen: a recipe's fluctuation from interval to interval is uniform between these."""
ODD_SHARE = 0.001
"""Chosen: the share of jobs that are unlike their recipe: half of them are the lowest of all jobs
(they hang, or wait for their data), half the highest."""
CHANGE_SHARE = 0.002
"""Chosen: the share of jobs whose mean changes once while they run."""
CHANGE_AT = (0.25, 0.75)
"""Chosen: how much of its work is done when that happens, uniform between these."""
CHANGE_TO = (1.2, 1.5)
"""Chosen: the factor of the change, uniform between these; as often it falls by that factor."""

PROJECTS, USERS, RECIPES, REPEATS, FLUCTUATIONS, ODD, CHANGES = range(100, 107)
"""The purposes of random numbers; those of models of traces are below."""
MEASURED = 1 << 61
"""A job draws its fluctuations as the agent of this number plus its own: as nothing else does."""
WORDS = 3
"""Draws per interval; each is four words."""
U64 = np.uint64
WORD = 2.0**-32


@dataclass(frozen=True, eq=False)
class Demand:
    """The power of jobs that nothing caps, by job, in the order of their trace."""

    mean_w: Numbers
    """The mean power of a node over the run, in W."""
    spread: Numbers
    """The standard deviation of the power from one interval of measurement to the next, relative to
    the mean."""
    change_at: Numbers
    """How much of the job's work is done when its mean changes, from 0 to 1; 1 where it does
    not."""
    change_to: Numbers
    """The mean behind the change relative to that before it; 1 where it does not change."""

    def __post_init__(self) -> None:
        for one in fields(self):
            column = np.asarray(getattr(self, one.name), np.float64).view()
            if column.shape != (len(self.mean_w),):
                raise ValueError(f"{one.name}: {column.shape} for {len(self.mean_w)} jobs")
            column.flags.writeable = False
            object.__setattr__(self, one.name, column)
        for rule, kept in (
            ("mean_w, finite, 0 or more", np.isfinite(self.mean_w) & (self.mean_w >= 0)),
            ("spread, finite, 0 or more", np.isfinite(self.spread) & (self.spread >= 0)),
            ("change_at, from 0 to 1", (self.change_at >= 0) & (self.change_at <= 1)),
            ("change_to, finite, above 0", np.isfinite(self.change_to) & (self.change_to > 0)),
        ):
            if not kept.all():
                raise ValueError(f"a demand has {rule}")

    def __len__(self) -> int:
        return len(self.mean_w)

    def where(self, kept: Any) -> Demand:
        """Returns that of the jobs at these positions (a mask, a slice or indices), as
        `Trace.where` does. A part of a trace has other shares of its projects, and its own
        `like_mira` would have other levels."""
        return Demand(**{one.name: getattr(self, one.name)[kept] for one in fields(self)})


def constant(trace: Trace, watts_per_node: float, *, spread: float = 0.0) -> Demand:
    """Returns jobs that all have one mean power per node, with this relative spread."""
    above(0, watts_per_node=watts_per_node)
    return _steady(np.full(len(trace), float(watts_per_node)), spread)


def by_application(
    trace: Trace, watts: Mapping[str, float], otherwise_w: float, *, spread: float = 0.0
) -> Demand:
    """Returns jobs whose mean power per node is that of their application, by its name; jobs of
    applications that are not named have `otherwise_w`."""
    above(0, otherwise_w=otherwise_w)
    for name, power_w in watts.items():
        if name not in trace.applications:
            known = ", ".join(repr(one) for one in trace.applications[:5] if one) or "none"
            more = ", ..." if len(trace.applications) > 5 else ""
            raise Refused(f"watts of {name!r}: the trace has no such application; it has {known}"
                          f"{more}")  # fmt: skip
        above(0, **{f"watts of {name!r}": power_w})
    of = np.array([float(watts.get(name, otherwise_w)) for name in trace.applications])
    return _steady(of[trace.application], spread)


def _steady(mean_w: Numbers, spread: float) -> Demand:
    require(isinstance(spread, int | float) and 0 <= spread < 1,
            f"spread = {spread}: a number from 0 to below 1 is accepted")  # fmt: skip
    ones = np.ones(len(mean_w))
    return Demand(mean_w, np.full(len(mean_w), float(spread)), ones, ones)


def like_mira(trace: Trace, seed: int) -> Demand:
    """Returns a power for each job such that over all jobs it is distributed as on Mira, whatever
    their projects, and repeated jobs have almost the same.

    Recipes are put in the order of their scores. As each takes as much of the distribution as it
    has jobs, the distribution over jobs holds although projects are of very different sizes. The
    level of a recipe is the mean over what it takes. A trace with few recipes has few levels.

    Where the application is unknown, the number of nodes stands for it; where the project is, the
    user stands for it, and where both are, the application does.
    """
    whole_from(0, seed=seed)
    jobs = len(trace)
    project, user, recipe = _people(trace)
    score = _scores(seed, project, user, recipe)

    odd = stream(seed, ODD).permutation(jobs)[: 2 * round(jobs * ODD_SHARE / 2)]
    low, high = np.array_split(odd, 2)
    ordinary = np.ones(jobs, bool)
    ordinary[odd] = False
    kw = levels(score, np.bincount(recipe[ordinary], minlength=len(score)), len(low), jobs)[recipe]
    kw *= 1 + REPEAT_SPREAD * stream(seed, REPEATS).standard_normal(jobs)
    kw[low] = quantile((np.arange(len(low)) + 0.5) / jobs)
    kw[high] = quantile(1 - (np.arange(len(high)) + 0.5) / jobs)
    mean_w = np.minimum(kw * (1000 / RACK_NODES), PEAK_W)

    spread = stream(seed, FLUCTUATIONS).uniform(*SPREAD, len(score))[recipe]
    return Demand(mean_w, spread, *_changes(seed, mean_w))


def _people(trace: Trace) -> tuple[Whole, Whole, Whole]:
    """Returns the project, the user within it and the recipe of each job, each numbered in the
    order of first appearance, with stand-ins for what is unknown."""

    def known(codes: Whole, names: tuple[str, ...]) -> Any:
        return np.array([name != "" for name in names], bool)[codes]

    named = known(trace.application, trace.applications)
    application = _pairs(named, np.where(named, trace.application, trace.nodes))
    user = np.where(known(trace.user, trace.users), trace.user + 1, 0)
    has_project = known(trace.project, trace.projects)
    instead = np.where(user > 0, user, application)
    project = _pairs(has_project + 2 * (user > 0) * ~has_project,
                     np.where(has_project, trace.project, instead))  # fmt: skip
    member = _pairs(project, user)
    return project, member, _pairs(member, application)


def _pairs(one: Any, other: Whole) -> Whole:
    """Returns a number per pair, in the order of first appearance."""
    return by_appearance(np.asarray(one, np.int64) * (other.max(initial=0) + 1) + other)[0]


def _scores(seed: int, project: Whole, user: Whole, recipe: Whole) -> Numbers:
    """Returns the score of each recipe: normal, with a variance of 1, but for large projects, whose
    own part is nearer to the middle."""
    count = np.bincount(project)
    users, recipes = user.max(initial=-1) + 1, recipe.max(initial=-1) + 1
    margin = np.minimum(MIDDLE * count / max(len(project), 1), 0.5)
    place = margin + (1 - 2 * margin) * stream(seed, PROJECTS).random(len(count))
    normal = NormalDist()
    of_project = np.array([normal.inv_cdf(min(max(p, 1e-9), 1 - 1e-9)) for p in place], np.float64)
    of_user = stream(seed, USERS).standard_normal(users)
    of_recipe = stream(seed, RECIPES).standard_normal(recipes)
    _, first = np.unique(recipe, return_index=True)
    return np.asarray(
        PROJECT_VARIANCE**0.5 * of_project[project[first]]
        + USER_VARIANCE**0.5 * of_user[user[first]]
        + RECIPE_VARIANCE**0.5 * of_recipe
    )


def levels(score: Numbers, count: Whole, below: int, jobs: int) -> Numbers:
    """Returns the level of each recipe, in kW per rack: the mean of the distribution over the part
    of it that its jobs take, when recipes stand in the order of their scores above the lowest
    `below` of all `jobs`."""
    order = np.argsort(score, kind="stable")
    edges = below + np.concatenate(([0], np.cumsum(count[order])))
    found = np.empty(len(score))
    found[order] = np.diff(_integral(edges / max(jobs, 1))) * jobs / np.maximum(count[order], 1)
    return found


def _table() -> tuple[Numbers, Numbers, Numbers]:
    """Returns shares of the jobs, ascending from 0 to 1, the power below which so many are, in kW
    per rack, and the integral of the power over the share up to there."""
    both = sorted((STATED | BETWEEN).items())
    share = np.array([percent / 100 for percent, _ in both])
    kw = np.array([power for _, power in both])
    steps = np.diff(share) * (kw[1:] + kw[:-1]) / 2
    return share, kw, np.concatenate(([0.0], np.cumsum(steps)))


def quantile(share: Numbers) -> Numbers:
    """Returns the power, in kW per rack, below which this share of the jobs is."""
    at, kw, _ = _table()
    return np.asarray(np.interp(share, at, kw))


def _integral(share: Numbers) -> Numbers:
    at, kw, passed = _table()
    step = np.clip(np.searchsorted(at, share, side="right") - 1, 0, len(at) - 2)
    beyond = share - at[step]
    slope = (kw[step + 1] - kw[step]) / (at[step + 1] - at[step])
    return np.asarray(passed[step] + beyond * (kw[step] + beyond * slope / 2))


def _changes(seed: int, mean_w: Numbers) -> tuple[Numbers, Numbers]:
    """Returns where each job's mean changes and by which factor; 1 and 1 where it does not, as in
    jobs that would go beyond the peak."""
    rng, jobs = stream(seed, CHANGES), len(mean_w)
    changes = rng.random(jobs) < CHANGE_SHARE
    at = rng.uniform(*CHANGE_AT, jobs)
    to = rng.uniform(*CHANGE_TO, jobs)
    to = np.where(rng.random(jobs) < 0.5, to, 1 / to)
    highest = mean_w / (at + (1 - at) * to) * np.maximum(to, 1)
    changes &= highest <= PEAK_W
    return np.where(changes, at, 1.0), np.where(changes, to, 1.0)


@kernel
def mean_at(mean_w: float, change_at: float, change_to: float, done: float) -> float:
    """Returns the mean power of a node, in W, when so much of the job's work is done, from 0 to 1.
    Over all of the work its mean is `mean_w`."""
    before = mean_w / (change_at + (1.0 - change_at) * change_to)
    return before if done < change_at else before * change_to


@kernel
def level(mean_w: float, spread: float, seed: int, job: int, interval: int) -> float:
    """Returns the power of a node of a job in one interval of measurement, in W, where `mean_w` is
    the mean there. It may be below 0 or above the peak: the caller clamps it.

    The normal number is the sum of 12 uniform ones less 6 (Irwin and Hall): at most 6 from 0, and
    the sum of whole numbers, hence the same bits everywhere. `interval` counts from 0.
    """
    total = U64(0)
    for k in range(WORDS):
        w0, w1, w2, w3 = draw(seed, MEASURED + job, WORDS * interval + k)
        total = total + w0 + w1 + w2 + w3
    z = (np.float64(np.int64(total)) + 6.0) * WORD - 6.0
    return mean_w * (1.0 + spread * z)  # type: ignore[no-any-return]
