"""Notes of `odonata regulate`: why bids were not followed, and what hours apart have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from odonata.commands.regulate_asked import PRICES, Asked
from odonata.experiment.units import show_power
from odonata.jobs.schedule import TO_COME
from policies.power.shares import HAIR_W

if TYPE_CHECKING:
    from odonata.experiment.experiment import JobExperiment
    from odonata.results.market import HourFacts, Market
    from odonata.results.regulated import Regulated

LONG_US = 600 * 10**6
"""Whoever has waited for less at the end may start yet."""


def notes_of(found: Regulated, made: JobExperiment) -> Iterator[str]:
    """Yields what is known of the trace, and why bids were not followed, where they were not."""
    model = made.model()
    assert model.power is not None  # with the types of the mix
    assert model.types is not None
    assert made.market is not None
    yield from (f"{line}." for line in model.trace.account.lines())
    yield from no_offer(found, made)
    stuck = never_started(found, model.nodes, model.power.idle)
    if stuck:
        yield stuck
    else:
        yield from off_target(found, model.power.policy, made.market.standby is not None)
    idle_w = model.nodes * model.power.idle
    most_w = model.nodes * max(it.most_w for it in model.types.rows)
    bids = [hour for one in found.runs for hour in one.market.judged_hours]
    yield from out_of_reach(bids, idle_w, most_w)


def no_offer(found: Regulated, made: JobExperiment) -> Iterator[str]:
    """Yields why nothing is worth what the table says: nothing was offered, or what was offered was
    followed for too little of the time."""
    it, rules = found.measures, found.runs[0].market.rules
    assert made.market is not None
    if not it.hours_offered:
        empty = made.run.end is not None and made.run.end <= made.market.hour_ps
        why = " in hours that begin with an empty machine: try --continuous" if empty else ""
        yield f"Nothing was offered{why}."
    elif (it.bad_share or 0.0) >= rules.share:
        yield (f"The machine is off its target in {it.bad_share:.0%} of the time, and the rule is "
               f"below {rules.share:.0%}: what is saved so may not be paid for.")  # fmt: skip


def out_of_reach(bids: Sequence[HourFacts], idle_w: float, most_w: float) -> Iterator[str]:
    """Yields in how many hours a target may be below what idle nodes draw, or above what all nodes
    do at most."""
    count, offers = len(bids), [hour for hour in bids if hour.reserve_w]
    low = [hour.average_w - hour.reserve_w for hour in offers]
    high = [hour.average_w + hour.reserve_w for hour in offers]
    below, above = sum(it < idle_w for it in low), sum(it > most_w + HAIR_W for it in high)
    if below:
        yield (f"In {below} of {count} hours the bid goes down to less than the "
               f"{show_power(idle_w)} that idle nodes draw (to {show_power(min(low))}): nobody can "
               "follow it there.")  # fmt: skip
    if above:
        yield (f"In {above} of {count} hours the bid goes up to more than the {show_power(most_w)} "
               "that all nodes draw with the jobs that draw most (to "
               f"{show_power(max(high))}): nobody can follow it there.")  # fmt: skip


def off_target(found: Regulated, policy: str, standby: bool) -> Iterator[str]:
    """Yields why hours broke the tracking rule: as the machine drew too much or too little in them,
    whichever is most of their error."""
    hours = [hour for one in found.runs for hour in one.market.judged_hours
             if not hour.tracking_ok]  # fmt: skip
    below = sum(hour.error_below or 0.0 for hour in hours)
    above = sum(hour.error_above or 0.0 for hour in hours)
    if above + below == 0.0:
        return
    if above >= below:
        late = ", and energy-qare starts jobs that get late whatever the target is"
        yield ("In hours that broke the rule the machine drew too much more often than too little "
               f"({above / (below + above):.0%} of the error): caps go no lower than the types of "
               f"its jobs let them{late if policy == 'energy-qare' else ''}. A higher average is "
               "followed more easily.")  # fmt: skip
        return
    parts = np.concatenate([waiting(one.market) for one in found.runs])
    waited = float(parts.mean()) if len(parts) else 0.0
    cure = "A lower bid is followed more easily"
    if waited >= 0.5:
        why = f"and in {waited:.0%} of the bad intervals jobs waited that could not start: too few "
        why += "idle nodes for the one whose turn it was, or too little power"
        cure += ", and narrower jobs start more easily"
    else:
        why = f"and in {1 - waited:.0%} of the bad intervals nobody waited"
        cure += "" if standby else ", and standby jobs (--standby) fill what is missing"
    yield ("In hours that broke the rule the machine drew too little more often than too much "
           f"({below / (below + above):.0%} of the error), {why}. {cure}.")  # fmt: skip


def never_started(found: Regulated, nodes: int, idle_w: float) -> str:
    """Returns which job keeps all behind it from starting, as it would take the machine above all
    that was ever bid, with nothing else running; empty if none does."""
    for one in found.runs:
        market = one.market
        schedule, types = market.schedule, market.types
        assert types is not None
        left = np.flatnonzero((schedule.start_us < 0) & (schedule.state != TO_COME))
        tops = [hour.average_w + hour.reserve_w for hour in market.by_hour]
        if not len(left) or (schedule.start_us[left[0] :] >= 0).any():
            continue
        job = int(left[0])
        width, submit_us = int(schedule.trace.nodes[job]), int(schedule.trace.submit_us[job])
        alone_w = nodes * idle_w + width * (float(types.most_w[types.of_job[job]]) - idle_w)
        offered = all(hour.reserve_w for hour in market.by_hour)
        if offered and alone_w > max(tops) and market.until_us - submit_us > LONG_US:
            number, some = schedule.trace.number[job], f"{width:,} node{'s' * (width > 1)}"
            return (f"Job {number} ({some}) cannot start: with it alone the machine draws "
                    f"{show_power(alone_w)}, and no bid goes above {show_power(max(tops))}. The "
                    f"{len(left) - 1:,} that came after it wait for their turn: bid more, or leave "
                    "it out.")  # fmt: skip
    return ""


def waiting(market: Market) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Returns, of the intervals in which the machine drew too little by more than the limit, in
    judged hours that broke the rule, whether jobs waited."""
    schedule, seen = market.schedule, market.tracking
    judged = {hour.begin_s for hour in market.judged_hours}
    broke = [not hour.tracking_ok and hour.begin_s in judged for hour in market.by_hour]
    bad = (market.error > market.rules.limit) & (seen.power_w < seen.target_w)
    bad &= np.array(broke)[market.hour_of]
    came = np.sort(schedule.trace.submit_us)
    begun = np.sort(schedule.start_us[schedule.start_us >= 0])
    now = seen.time_us[bad]
    # Who starts when an interval begins has not waited in it.
    return np.searchsorted(came, now - 1, "right") > np.searchsorted(begun, now - 1, "right")


def firsts(made: JobExperiment, asked: Asked) -> Iterator[str]:
    """Yields of what all hours have the first hour, where they are simulated apart: each begins at
    time 0."""
    trading = made.model().trading
    if len(asked.seeds) < 2 or trading is None:
        return
    if asked.signal != "synthetic":
        yield (f"All hours follow the first hour of {asked.signal}; --continuous goes on "
               "with it.")  # fmt: skip
    carbon = made.model().steps("carbon")
    series = {name: trading.series[name] for name in PRICES}
    series |= {} if carbon is None else {"carbon": carbon}
    vary = [name for name, steps in series.items() if len(steps.levels) > 1]
    if vary:
        yield (f"All hours have the prices of the first hour ({', '.join(vary)} "
               f"change{'s' * (len(vary) == 1)} over time); --continuous goes on with "
               "them.")  # fmt: skip
