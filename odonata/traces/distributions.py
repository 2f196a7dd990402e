"""What models of jobs draw from: run times, sizes, requested times and names."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from odonata.traces.trace import SECOND, Whole
from pdes.errors import Refused, require

Numbers = npt.NDArray[np.float64]
Random = np.random.Generator
LONGEST_S = 10**12
"""The latest time that a model may reach, in s: about 30,000 years, well within 64 bits of us."""


def stream(seed: int, purpose: int) -> Random:
    """Returns the random numbers of a model for one purpose (arrivals, sizes, ...). Purposes do not
    share numbers, so that other sizes leave the arrivals as they were."""
    return np.random.default_rng([seed, purpose])


def whole_from(least: int, **given: Any) -> None:
    """Refuse parameters that are not whole numbers of at least so much."""
    for name, value in given.items():
        fine = isinstance(value, int | np.integer) and not isinstance(value, bool)
        require(fine and value >= least,
                f"{name} = {value}: a whole number, {least} or more, is accepted")  # fmt: skip


def above(limit: float, **given: Any) -> None:
    """Refuse parameters that are not finite numbers above a limit."""
    for name, value in given.items():
        fine = isinstance(value, int | float | np.number) and math.isfinite(value)
        require(bool(fine and value > limit),
                f"{name} = {value}: a finite number above {limit:g} is accepted")  # fmt: skip


def microseconds(seconds: Numbers) -> Whole:
    """Returns times in s as times in us, rounded."""
    if len(seconds) and not seconds.max() <= LONGEST_S:
        raise Refused(f"times up to {seconds.max():.3g} s: at most {LONGEST_S:.0e} s fit a trace; "
                      "give fewer jobs, shorter ones or a higher load")  # fmt: skip
    return np.rint(seconds * SECOND).astype(np.int64)


class Runs(Protocol):
    """A distribution of run times, in s."""

    @property
    def mean(self) -> float:
        """Returns its expectation, in s."""

    def draw(self, rng: Random, count: int) -> Numbers:
        """Returns so many run times, in s."""


@dataclass(frozen=True)
class Constant:
    """A distribution in which all jobs have one run time."""

    mean: float

    def __post_init__(self) -> None:
        above(0, mean=self.mean)

    def draw(self, rng: Random, count: int) -> Numbers:
        return np.full(count, float(self.mean))


@dataclass(frozen=True)
class Exponential:
    """Run times without memory: the M of a queue M/M/c."""

    mean: float

    def __post_init__(self) -> None:
        above(0, mean=self.mean)

    def draw(self, rng: Random, count: int) -> Numbers:
        return rng.exponential(self.mean, count)


@dataclass(frozen=True)
class Uniform:
    """Run times between two limits, all of them as likely."""

    low: float
    high: float

    def __post_init__(self) -> None:
        above(0, low=self.low, high=self.high)
        require(self.low <= self.high,
                f"high = {self.high}: low = {self.low} or more is accepted")  # fmt: skip

    @property
    def mean(self) -> float:
        return (self.low + self.high) / 2

    def draw(self, rng: Random, count: int) -> Numbers:
        return rng.uniform(self.low, self.high, count)


@dataclass(frozen=True)
class Lognormal:
    """Run times whose logarithm is normal, given by their mean and their coefficient of variation
    (standard deviation per mean)."""

    mean: float
    variation: float = 2.0

    def __post_init__(self) -> None:
        above(0, mean=self.mean, variation=self.variation)

    def draw(self, rng: Random, count: int) -> Numbers:
        variance = math.log1p(self.variation**2)
        return rng.lognormal(math.log(self.mean) - variance / 2, math.sqrt(variance), count)


@dataclass(frozen=True)
class Hyperexponential:
    """Run times that are exponential with one of two means: many short jobs and a few long ones.

    Both kinds contribute the same to the mean ("balanced means"), which leaves the mean and the
    coefficient of variation to be given. With a variation of 1 it is exponential.
    """

    mean: float
    variation: float = 2.0

    def __post_init__(self) -> None:
        above(0, mean=self.mean, variation=self.variation)
        require(self.variation >= 1, f"variation = {self.variation}: 1 or more is accepted")

    def draw(self, rng: Random, count: int) -> Numbers:
        square = self.variation**2
        short = (1 + math.sqrt((square - 1) / (square + 1))) / 2
        means = np.where(rng.random(count) < short,
                         self.mean / (2 * short), self.mean / (2 * (1 - short)))  # fmt: skip
        return rng.standard_exponential(count) * means


class Sizes(Protocol):
    """A distribution of numbers of nodes."""

    @property
    def mean(self) -> float:
        """Returns its expectation."""

    @property
    def largest(self) -> int:
        """Returns the largest size that it gives."""

    def draw(self, rng: Random, count: int) -> Whole:
        """Returns so many sizes."""


@dataclass(frozen=True)
class UniformSizes:
    """Sizes between two limits, both included, all of them as likely."""

    smallest: int
    largest: int

    def __post_init__(self) -> None:
        whole_from(1, smallest=self.smallest)
        whole_from(self.smallest, largest=self.largest)

    @property
    def mean(self) -> float:
        return (self.smallest + self.largest) / 2

    def draw(self, rng: Random, count: int) -> Whole:
        return rng.integers(self.smallest, self.largest + 1, count)


@dataclass(frozen=True)
class SizesAmong:
    """A few sizes, each with a weight: how often it is drawn, relative to the others."""

    sizes: tuple[int, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        require(len(self.sizes) > 0, "sizes = (): one or more are accepted")
        for size in self.sizes:
            whole_from(1, size=size)
        require(len(self.weights) == len(self.sizes),
                f"weights = {self.weights}: one for each of {len(self.sizes)} sizes is "
                "accepted")  # fmt: skip
        fine = all(math.isfinite(weight) and weight >= 0 for weight in self.weights)
        require(fine and sum(self.weights) > 0,
                f"weights = {self.weights}: numbers of 0 or more, one of them above 0, are "
                "accepted")  # fmt: skip

    @property
    def mean(self) -> float:
        return float(np.dot(self.sizes, self.weights) / sum(self.weights))

    @property
    def largest(self) -> int:
        return max(size for size, weight in zip(self.sizes, self.weights, strict=True) if weight)

    def draw(self, rng: Random, count: int) -> Whole:
        return np.array(self.sizes, np.int64)[among(rng, self.weights, count)]


def same_size(nodes: int) -> SizesAmong:
    """Returns jobs that all have so many nodes."""
    return SizesAmong((nodes,), (1.0,))


def powers_of_two(largest: int, weights: tuple[float, ...] | None = None) -> SizesAmong:
    """Returns sizes 1, 2, 4, ... up to the largest, all of them as likely, or with weights."""
    whole_from(1, largest=largest)
    sizes = tuple(1 << power for power in range(largest.bit_length()))
    return SizesAmong(sizes, weights or (1.0,) * len(sizes))


def among(rng: Random, weights: npt.ArrayLike, count: int) -> Whole:
    """Returns so many positions in weights, each as often as its weight says."""
    rising = np.cumsum(np.asarray(weights, np.float64))
    found = np.searchsorted(rising, rng.random(count) * rising[-1], side="right")
    return np.asarray(np.minimum(found, len(rising) - 1), np.int64)


class Requests(Protocol):
    """A rule for the run times that users ask for."""

    def draw(self, rng: Random, run_us: Whole) -> Whole:
        """Returns the requested time of each job, in us, above 0."""


@dataclass(frozen=True)
class Exact:
    """Users who know how long their jobs run."""

    def draw(self, rng: Random, run_us: Whole) -> Whole:
        return np.asarray(np.maximum(run_us, 1))


@dataclass(frozen=True)
class Factor:
    """Users who ask for the run time times a factor, uniform between `least` and `most`, rounded up
    to a multiple of `round_s`. With a `least` below 1 some ask for too little."""

    most: float = 5.0
    least: float = 1.0
    round_s: float = 60.0

    def __post_init__(self) -> None:
        above(0, least=self.least, most=self.most, round_s=self.round_s)
        require(self.least <= self.most,
                f"most = {self.most}: least = {self.least} or more is accepted")  # fmt: skip
        require(self.round_s * SECOND >= 1, f"round_s = {self.round_s}: 1e-06 or more is accepted")

    def draw(self, rng: Random, run_us: Whole) -> Whole:
        wanted = run_us * rng.uniform(self.least, self.most, len(run_us))
        step = round(self.round_s * SECOND)
        rounded = np.maximum(np.ceil(wanted / step).astype(np.int64), 1) * step
        return rounded if self.least < 1 else np.maximum(rounded, run_us)


def by_appearance(codes: Whole) -> tuple[Whole, Whole]:
    """Returns codes renumbered from 0 in the order of their first appearance, and the code that
    each new number stands for."""
    found, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place[inverse], found[order]


def named(word: str, codes: Whole) -> tuple[Whole, tuple[str, ...]]:
    """Returns codes renumbered in the order of their first appearance, and their names: 'user 1' is
    the first to appear."""
    numbers, found = by_appearance(codes)
    return numbers, tuple(f"{word} {number}" for number in range(1, len(found) + 1))


USERS_PER_PROJECT = 5
"""Chosen: how many users share a project where the model says nothing about users."""


def people(rng: Random, jobs: int, users: int) -> dict[str, Any]:
    """Returns the columns and names of users and projects of a trace, for models that say nothing
    about them: each job is of a user drawn with weights 1, 1/2, 1/3, ..."""
    whole_from(1, users=users)
    if users == 1:
        drawn = np.zeros(jobs, np.int64)
    else:
        drawn = among(rng, 1 / np.arange(1, users + 1), jobs)
    user, user_names = named("user", drawn)
    project, project_names = named("project", drawn // USERS_PER_PROJECT)
    return {"user": user, "users": user_names, "project": project, "projects": project_names}


def header(model: str, seed: int, **parameters: Any) -> tuple[str, ...]:
    """Returns lines that say which model made a trace, with which parameters and seed."""
    words = ", ".join(f"{name} = {value}" for name, value in parameters.items())
    return (f"Model: {model}", f"Parameters: {words}", f"Seed: {seed}")
