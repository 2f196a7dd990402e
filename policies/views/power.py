"""Power as policies see it: the cap, the target, what was measured, and the jobs that draw it.

A cap is broken from above only: a machine that draws less keeps it. A target is missed on both
sides: a machine that follows a regulation signal is off it by what it draws too much or too little.
A run may have either, both or none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from policies.memory import Memory
from policies.views.choices import Choices, Mold
from policies.views.jobs import Request, Running


class Configuration(NamedTuple):
    """What a job runs on: so many nodes, cores of each, and watts that each node may draw. A job
    that is `forced` may break the cap, as it fits under it not even alone."""

    nodes: int
    """How many nodes it holds."""
    cores: int = 0
    """Cores of each node; 0: all of them."""
    cap_w: float = math.inf
    """Watts per node; infinity: it has no cap."""
    forced: bool = False
    """Whether it may break the cap of the machine."""


class Budget(NamedTuple):
    """The power that the machine may draw, and what it drew when last measured."""

    cap_w: float
    """The watts that the machine may not exceed now; infinity: it has no cap. To draw less is no
    fault: what the machine has to draw, no more and no less, is a `Target`."""
    measured_w: float
    """The watts of all nodes, on average over the last interval of measurement; before the first,
    those of an idle machine."""


class Target(NamedTuple):
    """What the machine is to draw now, by a bid to a market for regulation. It is missed on both
    sides, by too much and by too little, and it is known only when the signal arrives."""

    average_w: float
    """The average that was bid, in watts of the whole machine."""
    reserve_w: float
    """The reserve that was bid, in watts: how far the signal may move the target to either side."""
    signal: float
    """The grid's signal now, -1 to 1."""
    until: int
    """When the hour that was bid for is over, in ticks."""
    weights: Mapping[str, float] = {}
    """The bid's shares of job types, by application, where it has such."""
    error: float = 0.0
    """How far the machine is off the target, to either side: the mean over this hour so far, as a
    part of the reserve."""

    @property
    def watts(self) -> float:
        """Returns the watts that the whole machine is to draw now."""
        return self.average_w + self.signal * self.reserve_w


class Powered(NamedTuple):
    """A job that holds nodes, and what is known of its power."""

    run: Running
    """The job, when it started and on which nodes."""
    configuration: Configuration
    """What it runs on, with the cap per node that it was last given."""
    measured_w: float
    """The watts of all its nodes, as last measured; 0 before the first measurement."""
    progress: float | None = None
    """The part of its work that is done (0 to 1), where the job reports it."""
    suspended: bool = False
    """Whether it keeps its nodes, does no work, and draws idle power."""
    mold: Mold | None = None
    """The choice that it runs in, if the policy chose one for it."""
    due: int | None = None
    """The time by which it will have ended, as it may be ended then; None: nobody knows."""


class Readings(NamedTuple):
    """A measurement: what the nodes of each running job drew."""

    jobs: npt.NDArray[np.int64]
    """The numbers of the jobs that were measured, ascending."""
    watts: npt.NDArray[np.float64]
    """The watts that a node of each has drawn on average since the measurement before, or since it
    started."""


class PowerDesk(NamedTuple):
    """The waiting and the running jobs as arrays, read-only: what a policy works on that steers
    many jobs, or is compiled. They say what `queue` and `running` say. A job is a row, which is its
    number. Arrays are of int64 where nothing else is said. Rows of jobs that neither wait nor run
    say nothing that a policy may go by: `check_policy` names one that does."""

    nodes: Any
    """[job]: the nodes that it holds or, before it starts, that it asked for."""
    requested: Any
    """[job]: the time after which it may be ended, LATEST if its user named none."""
    due: Any
    """[job]: the time by which it will have ended if it runs; LATEST: nobody knows."""
    mold: Any
    """[job]: the place of the choice that it runs in among those of its application, -1 if it runs
    in none."""
    application: Any
    """[job]: its application, numbered in the order of `PowerView.choices`; -1: it is in none."""
    queue: Any
    """The rows of the waiting jobs, in order."""
    running: Any
    """The rows of the running jobs, those first that are due first: `Caps.cap_w` may be an array in
    this order. (`PowerView.running` is in order of numbers.)"""
    submit: Any = None
    """[job]: when it joined the queue; of a job that has not arrived yet, nothing that is known."""
    start: Any = None
    """[job]: when it started, -1 if it has not."""
    cap_w: Any = None
    """[job]: the watts per node that it was last given as its cap, infinity where it has none;
    float64."""
    measured_w: Any = None
    """[job]: the watts per node, as last measured, 0 before the first measurement; float64."""
    suspended: Any = None
    """[job]: whether it keeps its nodes, does no work, and draws idle power; 0 or 1."""
    forced: Any = None
    """[job]: whether it may break the cap of the machine; 0 or 1."""
    served: Callable[[], Any] | None = None
    """Returns, by job, how much of its requested time it has used up, in ticks, as float64: the
    time for which it has run or, where limits stretch under caps, the part of it that counts. A
    compiled policy is given the array itself."""


class Moment(NamedTuple):
    """The numbers of a `PowerView`, for a policy that is compiled; the fields are described
    there."""

    time: int
    free: int
    busy: int
    idle_w: float
    least_w: float
    most_w: float
    cap_w: float
    """Of `PowerView.budget`, as the next."""
    measured_w: float
    target_w: float
    """The watts that the whole machine is to draw now; NaN where it follows no signal."""
    average_w: float
    """Of `PowerView.target`, as all that follow; 0 where there is none."""
    reserve_w: float
    signal: float
    until: int
    error: float


class PowerView(NamedTuple):
    """The machine as a power policy sees it.

    Its cap (`budget.cap_w`) is what the machine may not exceed. Its target (`target`) is what it is
    to draw, no more and no less, where it follows a regulation signal; most runs have none.
    """

    time: int
    """Now, in ticks."""
    queue: Sequence[Request]
    """The waiting jobs, in the order of the discipline if the policy selects: then only the first
    `shown` of them."""
    running: Sequence[Powered]
    """The jobs that hold nodes, by number. A tuple is made of each when one is first looked at;
    `desk` has the same as arrays."""
    free: int
    """Counts the idle nodes, with those that sleep."""
    idle_w: float
    """The watts that a node draws while it is idle."""
    budget: Budget
    """The cap of the machine, and what it drew when last measured."""
    choices: Mapping[str, Choices] = {}
    """What was measured before, by application, whose jobs are moldable: they can run in each of
    these configurations. Of an application that is not in it nothing is known."""
    memory: Memory | None = None
    """The policy's own arrays; None where it declares none."""
    least_w: float = 0.0
    """The watts below which a node of a job cannot be held."""
    most_w: float = math.inf
    """The watts that no node exceeds: what has to be assumed of a job of which nothing is known."""
    readings: Readings | None = None
    """What was measured at this moment; None where nothing was."""
    arrived: int = 0
    """Counts the jobs that have arrived since the policy was last asked for caps."""
    ended: int = 0
    """Counts the jobs that have ended since the policy was last asked for caps."""
    busy: int = 0
    """Counts the nodes that jobs hold."""
    work: Callable[[], float] = float
    """Returns the work that is left of all jobs that wait or run, as far as their users said: in
    ticks at a service rate of 1, and not multiplied with their nodes."""
    tick: str = "ps"
    """The unit of all times here."""
    desk: PowerDesk | None = None
    """The jobs as arrays, in every call of a run; None only in a view that was made without one, as
    in a test."""
    target: Target | None = None
    """What the machine is to draw now, by a bid; None where it follows no regulation signal, and in
    an hour that is excluded from the market: caps that were given to follow are lifted then by
    whoever gave them."""
