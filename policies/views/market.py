"""A market for regulation as a bidding policy sees it, what is bid, and what a bid came to that was
tried."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from policies.memory import Memory
from policies.views import tracking
from policies.views.choices import Choices
from policies.views.jobs import Request
from policies.views.power import Powered


class Bid(NamedTuple):
    """What a machine offers for an hour: it will draw its average plus a part of its reserve that
    the grid's signal, between -1 and 1, names from moment to moment."""

    average_w: float
    """The average, in watts of the whole machine."""
    reserve_w: float
    """The reserve: how far the signal may move the target to either side."""
    weights: Mapping[str, float] = {}
    """The shares of applications, where the power policy divides nodes by them."""


class JobKind(NamedTuple):
    """What is known of the jobs of a type, where they have types."""

    name: str
    nodes: float
    """The nodes that a job of it needs, on average."""
    time: float
    """How long it takes without a cap, in ticks, on average; or how long its user says."""
    most_w: float
    """The watts of a node without a cap."""
    least_w: float
    """Those of a node at the lowest cap."""
    slowdown: float
    """How many times as long it takes at the lowest cap."""
    threshold: float
    """The degradation that it should stay below; infinity: any."""
    delay_rate: float | None
    """How fast the share of jobs that wait longer has to fall with the wait, per second, where that
    is stated."""
    arrivals: float
    """Jobs that are expected per hour."""
    present: float = 0.0
    """The nodes that its jobs ask for or hold which wait or run now."""


class JobsThere(NamedTuple):
    """The jobs that are there when a bid is due, where jobs have types: those that hold nodes, and
    behind them those that wait, in order of arrival."""

    kind: npt.NDArray[np.int64]
    """The places of their types in `Market.types`."""
    nodes: npt.NDArray[np.int64]
    runs: npt.NDArray[np.bool_]
    """Whether each holds nodes."""
    degradation: npt.NDArray[np.float64]
    """By how much longer each will have taken than it runs without a cap, as a part of that, if it
    goes on, or starts, without a cap now; of jobs of a trace by the time that their users said."""


class Trial(NamedTuple):
    """What a bid came to in a simulated hour, measurement by measurement."""

    power_w: npt.NDArray[np.float64]
    """What the machine drew on average in each interval."""
    target_w: npt.NDArray[np.float64]
    """What it was to draw."""
    reserve_w: float
    """The reserve that was tried."""
    started: int
    """Counts the jobs that started in the hour."""
    ended: int
    """Counts those that ended in it."""
    degradations: Mapping[str, npt.NDArray[np.float64]] = {}
    """By type, of the jobs that were submitted in the hour: by how much longer they took than
    without caps and queue, as a part of that; those that were not over as if they went on without a
    cap. Empty where jobs have no types."""
    waits: Mapping[str, npt.NDArray[np.float64]] = {}
    """How long the jobs that were submitted in the hour waited, by type, in s: those that did not
    start, up to its end."""
    part: float = 1.0
    """Which part of the hour was simulated: one that is off its target too often may be cut short
    (`Market.trial`)."""

    @property
    def kept_on(self) -> bool:
        """Tells whether it was simulated to its end."""
        return self.part >= 1.0

    @property
    def errors(self) -> npt.NDArray[np.float64]:
        """Returns how far the machine was off its target in each interval, to either side, as a
        part of the reserve; nan where nothing was offered."""
        return tracking.errors(self.power_w, self.target_w, self.reserve_w)

    @property
    def error(self) -> float:
        """Returns the mean of these; 0 where there is none."""
        found = tracking.mean_error(self.errors)
        return 0.0 if math.isnan(found) else found

    def bad(self, limit: float) -> float:
        """Returns the share of the intervals in which that was above a limit; 0 where nothing was
        offered."""
        found = tracking.bad_share(self.errors, limit)
        return 0.0 if math.isnan(found) else found

    @property
    def drawn_w(self) -> float:
        """Returns what the machine drew in the hour, on average."""
        return float(self.power_w.mean()) if len(self.power_w) else 0.0


class Market(NamedTuple):
    """What is known when a bid is due."""

    time: int
    """Now, in ticks: when the hour begins that is bid for."""
    hour: int
    """The length of that hour, in ticks."""
    nodes: int
    """Counts the nodes of the machine."""
    idle_w: float
    """The watts that a node draws while it is idle."""
    queue: Sequence[Request]
    """The waiting jobs, in order of arrival."""
    running: Sequence[Powered]
    """The jobs that hold nodes, by number."""
    choices: Mapping[str, Choices]
    """As in `PowerView`."""
    arrivals: Mapping[str, float]
    """Jobs per hour that are expected, by application: as many as have come so far."""
    energy_price: float
    """Per kWh, that is paid for the average."""
    reserve_price: float
    """Per kW and hour, that is earned by the reserve."""
    error_price: float
    """Per kWh, that is paid for what the machine draws too much or too little."""
    signal: Sequence[float] = ()
    """The signal of the hour that has passed, -1 to 1, one value for each time that it changed;
    empty before the first hour."""
    error: float = 0.0
    """How far the machine was off its target in the hour that has passed, to either side: the mean,
    as a part of the reserve."""
    memory: Memory | None = None
    """The policy's own arrays; None where it declares none."""
    least_w: float = 0.0
    """The watts below which a node of a job cannot be held."""
    most_w: float = 0.0
    """The watts that no node exceeds: what has to be assumed of a job of which nothing is known."""
    tick: str = "us"
    """The unit of all times here."""
    types: Sequence[JobKind] = ()
    """What is known of the types of jobs, in the order of their table; none where they have none.
    """
    jobs: JobsThere | None = None
    """The jobs that are there, where they have types."""
    limit: float = 0.3
    """The error, as a part of the reserve, above which a measurement is bad."""
    share: float = 0.1
    """The share of bad measurements that an hour has to stay below."""
    late: float = 0.1
    """Which part of the jobs of a type may be at their threshold or beyond it."""
    qos: str = tracking.SHARE
    """When a type keeps its QoS: as `late` says, or (`mean`) if the mean degradation of its jobs is
    below their threshold."""
    violation: float = 0.0
    """What an hour costs, in money, that breaks the tracking rule."""
    spread: float = 0.0
    """The standard deviation of the signal, as far as it is known."""
    trial: Callable[..., Trial] | None = None
    """Returns what a bid would come to, from a simulated hour: the jobs that run and wait, for as
    long as their users said; jobs like those that came so far, as often; and the signal of the
    hour that has passed. Nobody knows how long jobs really run. Its time begins at 0, and what the
    power policy remembers begins anew. None where nothing can be tried, as in a test.

    `trial(bid, hour=1)` is another hour: other jobs come, and where a signal is made or none has
    passed the signal is another; 2, 3, ... likewise, the same whenever it is asked. Where a power
    policy regulates by type, `trial(bid, hour, give_up=True)` ends an hour that breaks the tracking
    rule when that is certain; and `trial(bid, hour, span=ticks, since=ticks)` goes on for a span,
    and what it tells is of the time from `since` on, and of the jobs that came then."""
