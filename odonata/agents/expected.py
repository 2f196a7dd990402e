"""What is expected of the jobs of a run of packets: their types, what their nodes draw, and how
long they run; and what a market refuses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from odonata.agents import layout as w
from odonata.agents.following import Exchange
from odonata.agents.power import USUAL_INTERVAL_PS
from odonata.agents.workload import Workload
from odonata.jobs.floors import Kinds
from odonata.jobs.market import PRICES, SERIES, MarketSettings
from odonata.jobs.power import Power
from odonata.jobs.request import Job
from odonata.jobs.trading import Trade
from odonata.traces.trace import UNKNOWN, Trace
from odonata.traces.types import JobType
from pdes.clock import LATEST
from pdes.errors import Findings, Refused
from policies.bidding import BIDDINGS
from policies.power import POWERS
from policies.power.steering import given_of

MICROSECOND = 1_000_000
MADE_VALUES = 1 << 16
"""A signal that is made comes again from its beginning after so many values."""


def program(job: Job) -> str:
    """Returns what type of jobs a job belongs to by its application: that or, where it names none,
    its profile or pattern."""
    return job.application or job.does


def kinds_of(power: Power, jobs: Sequence[Job]) -> Kinds:
    """Returns the types of jobs: those of the table or, without one, a type for each application,
    all of which draw the same."""
    if power.types is None:
        names = dict.fromkeys(program(job) for job in jobs)
        rows = [JobType(name, power.active_w, power.least, power.slowdown) for name in names]
        return Kinds(rows, _places([program(job) for job in jobs], [*names]))
    assert power.kinds is not None
    return Kinds.of(power.kinds, _trace(jobs), None)


def _places(values: Sequence[str], names: Sequence[str]) -> Any:
    places = {name: at for at, name in enumerate(names)}
    return np.array([places[value] for value in values], np.int64)


def _trace(jobs: Sequence[Job]) -> Trace:
    """Returns the jobs as those of a trace, by which types are found."""
    columns: list[Any] = []
    known: list[tuple[str, ...]] = []
    for values in ([job.user for job in jobs], [job.project for job in jobs],
                   [program(job) for job in jobs]):  # fmt: skip
        names = [*dict.fromkeys(values)]
        columns.append(_places(values, names))
        known.append(tuple(names))
    count, none = np.arange(len(jobs)), np.zeros(len(jobs), np.int64)
    nodes, unknown = np.array([job.nodes for job in jobs]), np.full(len(jobs), UNKNOWN)
    (user, project, application), (users, projects, applications) = columns, known
    return Trace("[[jobs]]", count, none, none, nodes, unknown, user, project, application, unknown,
                 users, projects, applications)  # fmt: skip


def draws_of(power: Power, workload: Workload) -> Any:
    """[job, POWER]: what nodes of each job draw."""
    found = np.zeros((len(workload.jobs), len(w.POWER)))
    found[:, w.IDLE_W] = power.idle
    found[:, w.COMMUNICATING_W] = -1.0 if power.communicating_w is None else power.communicating_w
    if power.types is None:
        found[:, w.ACTIVE_W], found[:, w.LEAST_W] = power.active_w, power.least
        found[:, w.SLOWDOWN] = power.slowdown
        return found
    kinds = kinds_of(power, workload.jobs)
    rows = [kinds.rows[at] for at in kinds.of_job.tolist()]
    found[:, w.ACTIVE_W] = [row.most_w for row in rows]
    found[:, w.LEAST_W] = [min(row.least_w, row.most_w) for row in rows]
    found[:, w.SLOWDOWN] = [row.slowdown for row in rows]
    return found


def expected_ps(kinds: Kinds, jobs: Sequence[Job]) -> Any:
    """[job]: how long it is expected to run without a cap: as its user says or, where that is
    unknown, as the table of types does; 0: nobody knows."""
    shortest = [round((row.shortest_s or 0.0) * 1e12) for row in kinds.rows]
    return np.array([job.requested_ps or shortest[at]
                     for job, at in zip(jobs, kinds.of_job.tolist(), strict=True)])  # fmt: skip


def exchange(market: MarketSettings, power: Power, workload: Workload, seed: int) -> Exchange:
    """Returns the market of a run."""
    kinds, policy = kinds_of(power, workload.jobs), power.made(1)
    bidder = market.made(1)
    for name in bidder.named:
        if name not in kinds.names:
            raise Refused(f"market.bidding = {market.bidding}: it gives a weight to {name}, which "
                          f"is no type of this run: it has {', '.join(kinds.names)}")  # fmt: skip
    length = market.hour(power.interval(1, USUAL_INTERVAL_PS), 1)
    made_until = min(MADE_VALUES, LATEST // market.signal_interval_ps) * market.signal_interval_ps
    series = {name: market.steps(name, 1, None, seed, made_until) for name in SERIES}
    for name in PRICES:
        if wrong := [at for at in series[name].changes if at % MICROSECOND]:
            raise Refused(f"market.{name} changes at {wrong[0]} ps: in a run of packets at a whole "
                          "number of microseconds")  # fmt: skip
    trade = Trade(market, length, series, market.after(series["signal"], 1))
    given = [] if policy.regulate is None else [float(it) for it in given_of(policy)]
    expected = expected_ps(kinds, workload.jobs)
    waits_w = np.inf if power.communicating_w is None else power.communicating_w
    return Exchange(trade, bidder, kinds, expected, policy.regulate, given, waits_w)


# -- what is refused


def check(
    market: MarketSettings | None, power: Power | None, workload: Workload | None, found: Findings
) -> None:
    """Find what a run of packets cannot do of a market, or of a power policy that follows one."""
    unless = found.unless
    if power is None or workload is None:
        unless(market is None, "a section [market]", "there is no [power] that could be offered, "
               "or there are no [[jobs]]", "market.bidding")  # fmt: skip
        return
    if found.problems:
        return
    if power.regulates:
        what = f"power.policy = {power.policy}"
        unless(market is not None, what,
               "it follows the target of a bid: a section [market] is needed",
               "power.policy")  # fmt: skip
        unless(power.cap is None, f"power.cap = {power.cap}",
               f"{power.policy} follows a target, and keeps to no cap: leave it out",
               "power.cap")  # fmt: skip
        unless(power.variation == 0, f"power.variation = {power.variation:g}",
               f"{power.policy} takes all nodes for alike: leave it out",
               "power.variation")  # fmt: skip
        unless(workload.order == "fcfs", f"order = {workload.order}",
               f"{power.policy} starts jobs itself: leave it out", "workload.order")  # fmt: skip
        for number, job in enumerate(workload.jobs):
            unless(not job.on, f"on = {job.on[:1]}", f"{power.policy} starts jobs where the "
                   "allocation policy chooses: leave it out",
                   f"workload.jobs.{number}.on")  # fmt: skip
        unless(power.types is not None or power.least >= power.idle,
               f"power.least = {power.least:g} W",
               f"at least idle, {power.idle:g} W, where a policy follows a target",
               "power.least_w", "power.idle_w")  # fmt: skip
    if power.types is not None or market is not None:
        _check_expected(power, workload, found)
    if market is not None:
        _check_market(market, power, workload, found)


def _check_expected(power: Power, workload: Workload, found: Findings) -> None:
    """Find jobs that should not be late, and of which nobody knows how long they take."""
    try:
        kinds = kinds_of(power, workload.jobs)
    except Refused as refusal:
        given = "the applications of jobs" if power.types is None else f"types = {power.types}"
        found.unless(False, given, str(refusal), "power.types")
        return
    for number, time in enumerate(expected_ps(kinds, workload.jobs).tolist()):
        row = kinds.rows[int(kinds.of_job[number])]
        found.unless(time > 0 or not row.threshold < np.inf, "requested = unknown",
                     f"jobs of type {row.name} have a q_threshold, so it must be known how long "
                     "they take: give requested, or time_min_s of the type",
                     f"workload.jobs.{number}.requested_ps")  # fmt: skip


def _check_market(
    market: MarketSettings, power: Power, workload: Workload, found: Findings
) -> None:
    unless, interval = found.unless, power.interval(1, USUAL_INTERVAL_PS)
    unless(market.standby is None, f"market.standby = {market.standby}", "only a run with fidelity "
           '= "job" has standby jobs; leave it out', "market.standby")  # fmt: skip
    unless(workload.launch_ps < interval, f"launch = {workload.launch_ps} ps",
           f"less than power.interval, {interval} ps, in a market: else a measurement is known "
           "only when another hour may have begun", "workload.launch_ps")  # fmt: skip
    unless(market.hour_ps % interval == 0, f"market.hour = {market.hour_ps} ps",
           f"a whole number of power.interval, {interval} ps", "market.hour_ps")  # fmt: skip
    unless(interval % MICROSECOND == 0, f"power.interval = {interval} ps",
           "a whole number of microseconds, in a market", "power.interval_ps")  # fmt: skip
    known = BIDDINGS.known(market.bidding) or market.bidding in BIDDINGS
    unless(known, f"market.bidding = {market.bidding}", f"one of {', '.join(BIDDINGS)}",
           "market.bidding")  # fmt: skip
    if known and not BIDDINGS.named(market.bidding).missing:
        tries = getattr(BIDDINGS.named(market.bidding).build, "tries", False)
        unless(not tries, f"market.bidding = {market.bidding}", "it tries bids in simulated hours, "
               'which only a run with fidelity = "job" can do; fixed, tracking-only, fh and '
               "adaptive try none", "market.bidding")  # fmt: skip
        by_types = getattr(BIDDINGS.named(market.bidding).build, "by_types", False)
        regulates = power.policy in POWERS and power.made(1).regulate is not None
        unless(not by_types or regulates, f"market.bidding = {market.bidding}",
               f"it goes by types of jobs, and power.policy = {power.policy} does not regulate by "
               "type, as tracking-only does", "market.bidding")  # fmt: skip
