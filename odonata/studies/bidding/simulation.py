"""One simulation of the study: a machine over five days, of which the last is judged, under a power
policy and with bids of a bidding policy; or the search for a bid that is held for all days.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from odonata.study.contract import Case
from odonata.traces.mix import MIXES, mix
from odonata.traces.types import Types
from pdes.transport import Serial
from policies.bidding import BIDDINGS

if TYPE_CHECKING:
    from odonata.cluster.model import Cluster

HOUR_US, SECOND_US, SECOND_PS = 3600 * 10**6, 10**6, 10**12
WARM_H, DAY_H = 96, 24
FES = "fes"


@dataclass(frozen=True)
class Day(Case):
    """One simulated day. `seed` is that of the jobs and of the signal. `system` is a mix of
    `odonata.traces.mix`. `bid` is the name of a bidding policy, or an average and a reserve in W,
    which hold every hour: a reserve of 0 is no offer. `searching`: FES searches for a bid, and
    nothing else is simulated. Jobs come in groups of `burst`, and their rate swings with the hour
    by `swing`. `after_h`: the run goes on for so long after the day, so that its jobs may end.
    `turns`: an option of QoSCap. `kept`: what was measured is in the outcome, for a figure."""

    seed: int
    system: str = "meggie-like"
    load: float = 0.75
    policy: str = "qoscap"
    bid: str | tuple[float, float] = "adaptive"
    burst: float = 1.0
    swing: float = 0.0
    deviation: float = 0.40
    turns: bool = True
    searching: bool = False
    after_h: int = 24
    warm_h: int = WARM_H
    nodes: int = 0
    """0: those of the system."""
    steps: int = 12
    """Of the grid of FES."""
    tried: int = 1
    """In how many days FES tries each bid."""
    kept: bool = False

    @property
    def weight(self) -> float:
        return 1.0 if not self.searching else 30.0 * (self.steps / 12) ** 2 * self.tried

    def __str__(self) -> str:
        what = "search for a bid" if self.searching else f"bid {self.bid}"
        return f"{self.policy}, {what}, on {self.system} at {self.load:.0%}, seed {self.seed}"


@dataclass(frozen=True)
class BiddingOutcome:
    """The outcome. Powers are in W, parts are of 1, money is for the day."""

    average_w: float
    """What was bid, on average over the day; or what was found."""
    reserve_w: float
    off: float | None
    """The part of the day in which the error was above the limit; None where nothing was bid."""
    error: float | None
    hours_kept: int
    """How many of the hours kept the tracking rule by themselves."""
    q: Mapping[str, float]
    """By type, the mean degradation of the jobs that were submitted in the day."""
    jobs: int
    cost: float
    paid: float
    """What the averages cost by themselves."""
    drawn_kwh: float
    busy: float
    """The part of the nodes that jobs held in the day."""
    waiting: float
    """Jobs that wait, on average over the day."""
    seconds: float
    """Wall-clock seconds."""
    track: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Where it is kept: target and power of the day, as means of a minute, in W."""

    @property
    def worst(self) -> float:
        """Returns the largest mean degradation of a type."""
        return max(self.q.values(), default=0.0)

    @property
    def saving(self) -> float:
        return 1.0 - self.cost / self.paid if self.paid > 0.0 else math.nan


def model_of(case: Day) -> Cluster:
    """Returns the machine of a case."""
    from odonata.cluster.model import Cluster
    from odonata.jobs.market import MarketSettings
    from odonata.jobs.power import Power

    how = MIXES[case.system]
    nodes = case.nodes or how.nodes
    until_h = case.warm_h + DAY_H + case.after_h
    trace = mix(Types.of(how.table), how.types, nodes, load=case.load, seed=case.seed,
                shares=how.shares, span_s=until_h * 3600.0, burst=case.burst,
                swing=case.swing)  # fmt: skip
    bids, parameters = ("fixed", offered(case.bid)) if isinstance(case.bid, tuple) else (
        case.bid, ())  # fmt: skip
    market = MarketSettings(bids, parameters, signal="synthetic", signal_deviation=case.deviation,
                            qos="mean")  # fmt: skip
    given = (("turns", case.turns),) if case.policy == "qoscap" else ()
    power = Power(case.policy, given, types=Types.of(how.table), interval_ps=SECOND_PS)
    return Cluster(trace, nodes, power=power, market=market, until_us=until_h * HOUR_US,
                   seed=case.seed)  # fmt: skip


def offered(bid: tuple[float, float]) -> tuple[tuple[str, float], ...]:
    """Returns the parameters of `fixed` that bid this."""
    return ("average", bid[0]), ("reserve", bid[1])


def simulate(case: Day) -> BiddingOutcome:
    """Simulate a case on this core, whatever ranks there are."""
    return searched(case) if case.searching else lived(case)


def searched(case: Day) -> BiddingOutcome:
    """Returns the bid that FES finds."""
    began = time.perf_counter()
    policy: Any = BIDDINGS.make(FES, {"steps": case.steps, "warmup": case.warm_h,
                                        "days": case.tried})  # fmt: skip
    bid = policy.searched(model_of(case).first_market())
    return BiddingOutcome(
        bid.average_w, bid.reserve_w, None, None, 0, {}, 0, 0.0, 0.0, 0.0, 0.0, 0.0,
        time.perf_counter() - began,
    )  # fmt: skip


def lived(case: Day) -> BiddingOutcome:
    """Returns what came of the day."""
    from odonata.results.market_measures import measures_of
    from odonata.results.market_memory import simulate_market

    began = time.perf_counter()
    model = model_of(case)
    assert model.until_us is not None
    found = simulate_market(model, model.until_us, transport=Serial())
    market, schedule = found.market, found.schedule
    assert market is not None
    begin, end = case.warm_h * HOUR_US, (case.warm_h + DAY_H) * HOUR_US
    hours = [it for it in market.by_hour if begin <= it.begin_s * SECOND_US < end]
    jobs = slice(*np.searchsorted(schedule.trace.submit_us, (begin, end)).tolist())
    it = measures_of([hours], market.of_types(jobs), None)
    seen = market.tracking
    its = (seen.time_us > begin) & (seen.time_us <= end)
    track = {}
    if case.kept:
        track = {name: getattr(seen, name)[its].reshape(-1, 60).mean(axis=1).round(1).tolist()
                 for name in ("target_w", "power_w")}  # fmt: skip
    return BiddingOutcome(
        it.average_w or 0.0, it.reserve_w or 0.0, it.bad_share, it.error_mean, it.hours_kept,
        {name: of["mean_q"] for name, of in it.types.items() if of["jobs"]},
        jobs.stop - jobs.start, it.cost or 0.0, it.cost_energy or 0.0, it.energy_kwh,
        *_loads(schedule, begin, end, model.nodes), time.perf_counter() - began, track,
    )  # fmt: skip


def _loads(schedule: Any, begin: int, end: int, nodes: int) -> tuple[float, float]:
    """Returns the part of the nodes that jobs held between two times, and how many waited."""
    starts = np.where(schedule.start_us >= 0, schedule.start_us, end)
    ends = np.where(schedule.end_us >= 0, schedule.end_us, end)
    held = np.clip(ends, begin, end) - np.clip(starts, begin, end)
    waited = np.clip(starts, begin, end) - np.clip(schedule.trace.submit_us, begin, end)
    whole = float(end - begin)
    busy = float((held * schedule.trace.nodes).sum()) / whole / nodes
    return busy, float(np.maximum(waited, 0).sum()) / whole
