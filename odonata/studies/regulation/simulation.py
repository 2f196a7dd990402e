"""One simulation of the study: an hour of a machine in the market, with the bid that is made for it
or with a bid that is given; and what it gives.

The bid is made first, as at the beginning of a run, and held in the hour. So another power policy
can be tried at the bid that QoSG makes, and at the bid that the thesis prints with its weights.
Target, error, rule, cost and saving are those of `policies.views.tracking`, the degradation of jobs
that of `odonata.results.qualities`: the study takes both from `odonata.results.market`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from odonata.study.contract import Case
from odonata.traces.mix import MIXES, mix
from odonata.traces.types import Types
from pdes.transport import Serial
from policies.bidding import BIDDINGS, BiddingPolicy, bidding
from policies.views import Bid, Market

if TYPE_CHECKING:
    from odonata.cluster.model import Cluster
    from odonata.results.market_memory import Traded

TABLE, STANDBY = "qosg", "ft"
HOUR_US, SECOND_US, SECOND_PS = 3600 * 10**6, 10**6, 10**12
NODES = 100
"""Of the machine for which the thesis prints its bid."""
PRINTED = Bid(20600.0, 10111.0, {"fs": 0.128, "sc": 0.212, "bt": 0.127, "lu": 0.271, "mg": 0.124,
                                 "sp": 0.140})  # fmt: skip
"""The bid of section 2.5.2, for 100 servers."""
BIDS = {
    "qosg": ("qosg", "qosg", ()),
    "refitted": ("qosg", "qosg", (("stated", False),)),
    "tracking-only": ("tracking-only", "tracking-only", ()),
    "energy-qare": ("energy-qare", "energy-qare", (("rule", "cost"),)),
}
"""By word, the power policy and the bidding policy of a bid, and the latter's parameters."""
GIVEN = "printed"
"""The word for the bid that the thesis prints, for as many servers as there are."""
SHOWN = "of the regulation study"
"""The name under which the study bids, while it does."""
QUANTILES = 201
"""Of the errors of an hour, from the least to the largest, that an outcome has."""


@dataclass(frozen=True)
class Hour(Case):
    """One simulated hour. `seed` is that of the jobs, and of the signal where `signal` is 0. `mix`
    is a mix of `odonata.traces.mix`, or the only type of jobs. `bid` is a word of BIDS or GIVEN, or
    an average and a reserve in W, with the weights that are printed. Rates of delay are those of
    the table times `level` and `rates`, and thresholds those of the table divided by `level`.
    `before`: so many hours with the same bid come first, which are not measured. `kept`: what was
    measured is in the outcome, for a figure."""

    seed: int
    mix: str = "qosg"
    nodes: int = NODES
    load: float = 0.5
    policy: str = "qosg"
    bid: str | tuple[float, float] = "qosg"
    standby: bool = True
    level: float = 1.0
    rates: float = 1.0
    deviation: float = 0.40
    slow_s: int = 90
    fast_s: int = 20
    signal: int = 0
    before: int = 0
    kept: bool = False

    @property
    def weight(self) -> float:
        own = 4 if self.bid == "energy-qare" else 1
        return (0.3 + self.nodes / 100) * (own + self.before)

    def __str__(self) -> str:
        return f"{self.policy} on {self.nodes} servers at {self.load:.0%}, seed {self.seed}"


@dataclass(frozen=True)
class RegulationOutcome:
    """The outcome. Powers are in W, parts are of 1."""

    average_w: float
    reserve_w: float
    weights: Mapping[str, float]
    """By type; empty where the bid has none."""
    saving: float
    error: float | None
    """The mean over the hour; None where no reserve was bid."""
    bad: float | None
    """The share of seconds whose error is above the limit of the rule."""
    keeps_rule: bool
    late: Mapping[str, float]
    """By type, the part of the jobs at their threshold or beyond it."""
    q90: Mapping[str, float]
    """By type, the degradation that nine of ten jobs do not exceed."""
    jobs: int
    keeps_qos: bool
    """Whether every type kept its QoS."""
    standby: float
    """The part of the energy that standby jobs drew."""
    signal: float
    """The mean of the signal over the hour."""
    left: float
    """What the work would still take, above idle servers, that is left when the hour is over: as a
    part of what jobs but for standby jobs take above them in an hour on average."""
    quantiles: Sequence[float]
    """Of the errors, at equal steps from the least to the largest."""
    seconds: float
    """Wall-clock seconds."""
    track: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Where it is kept: `target_w`, `power_w` and `standby_w` of each second."""


@lru_cache(maxsize=16)
def types_of(level: float, rates: float) -> Types:
    """Returns the types of the thesis with other rates of delay than those that follow from its
    bid, and other thresholds."""
    table = Types.of(TABLE)
    rows = (replace(it, threshold=it.threshold / level,
                    delay_rate=None if it.delay_rate is None else it.delay_rate * level * rates)
            for it in table)  # fmt: skip
    return replace(table, rows=tuple(rows))


def model_of(case: Hour, policy: str, bids: str, parameters: Any = ()) -> Cluster:
    """Returns the machine of a case, with a power policy and a bidding policy."""
    from odonata.cluster.model import Cluster
    from odonata.jobs.market import MarketSettings
    from odonata.jobs.power import Power

    types, how = types_of(case.level, case.rates), MIXES.get(case.mix)
    names, shares = ((case.mix,), None) if how is None else (how.types, how.shares)
    until = HOUR_US * (case.before + 1)
    trace = mix(types, names, case.nodes, load=case.load, seed=case.seed, shares=shares,
                span_s=until / SECOND_US)  # fmt: skip
    market = MarketSettings(bids, parameters, signal="synthetic", signal_deviation=case.deviation,
                            signal_slow_memory_ps=case.slow_s * SECOND_PS,
                            signal_fast_memory_ps=case.fast_s * SECOND_PS,
                            standby=STANDBY if case.standby else None)  # fmt: skip
    power = Power(policy, (), types=types, interval_ps=SECOND_PS)
    return Cluster(trace, case.nodes, power=power, market=market, until_us=until,
                   seed=case.signal or case.seed)  # fmt: skip


@contextmanager
def shown(made_by: Callable[[Market], Bid]) -> Iterator[list[Bid]]:
    """While this lasts, SHOWN is the name of a bidding policy that bids what `made_by` says: bids
    that are given may have weights, too. Returns the list of its bids, of which logs of a run have
    no weights."""
    made: list[Bid] = []

    class Shown(BiddingPolicy):
        def bid(self, market: Market) -> Bid:
            made.append(made_by(market))
            return made[-1]

    bidding(SHOWN, about="what the study asks for", source="ours")(Shown)
    try:
        yield made
    finally:
        del BIDDINGS[SHOWN]


def bid_of(case: Hour) -> Bid:
    """Returns the bid that is made for a case when its hour begins, or that is given."""
    if not isinstance(case.bid, str):
        return Bid(*case.bid, PRINTED.weights)
    if case.bid == GIVEN:
        part = case.nodes / NODES
        return PRINTED._replace(average_w=PRINTED.average_w * part,
                                reserve_w=PRINTED.reserve_w * part)  # fmt: skip
    return _made(replace(case, policy="", before=0, kept=False))


@lru_cache(maxsize=256)
def _made(case: Hour) -> Bid:
    from odonata.results.market_memory import simulate_market

    assert isinstance(case.bid, str)
    power, name, parameters = BIDS[case.bid]
    with shown(BIDDINGS.make(name, dict(parameters)).bid) as made:
        simulate_market(model_of(case, power, SHOWN), SECOND_US, transport=Serial())
    return made[0]


def run(case: Hour) -> tuple[Bid, float, Traded]:
    """Returns the bid of a case, the mean of the signal in its hour, and the run with that bid."""
    from odonata.results.market_memory import simulate_market

    bid, begin = bid_of(case), HOUR_US * case.before
    with shown(lambda _: bid):
        model = model_of(case, case.policy, SHOWN)
        assert model.trading is not None
        signal = model.trading.series["signal"].integral(begin, begin + HOUR_US) / HOUR_US
        return bid, signal, simulate_market(model, begin + HOUR_US, transport=Serial())


def simulate(case: Hour) -> RegulationOutcome:
    """Simulate a case on this core, whatever ranks there are."""
    began = time.perf_counter()
    bid, signal, found = run(case)
    market = found.market
    assert market is not None
    hour, its = market.by_hour[case.before], market.hour_of == case.before
    seen, error = market.tracking, market.error[its]
    measured = {it.type: it for it in hour.types if it.jobs}
    steps = np.linspace(0, 1, QUANTILES)
    return RegulationOutcome(
        average_w=bid.average_w,
        reserve_w=bid.reserve_w,
        weights={name: round(weight, 6) for name, weight in bid.weights.items()},
        saving=hour.saving or 0.0,
        error=hour.error_mean,
        bad=hour.bad_share,
        keeps_rule=hour.tracking_ok,
        late={name: it.late_share or 0.0 for name, it in measured.items()},
        q90={name: it.q90 or 0.0 for name, it in measured.items()},
        jobs=hour.jobs,
        keeps_qos=hour.qos_ok,
        standby=(hour.standby_kwh or 0.0) / hour.energy_kwh,
        signal=signal,
        left=left_of(case, found),
        quantiles=np.quantile(error, steps).round(5).tolist() if bid.reserve_w else [],
        seconds=time.perf_counter() - began,
        track={name: getattr(seen, name)[its].round(1).tolist()
               for name in ("target_w", "power_w", "standby_w")} if case.kept else {},
    )  # fmt: skip


def left_of(case: Hour, found: Traded) -> float:
    """Returns what the work would still take that is left in the end, as a part of an hour's."""
    from odonata.results.register import KWH
    from odonata.results.regulated import left_kwh

    assert found.market is not None
    assert found.market.types is not None
    assert found.market.left_us is not None
    idle_w = types_of(case.level, case.rates).idle_w
    assert idle_w is not None
    types, schedule = found.market.types, found.schedule
    left = left_kwh(schedule, found.market.left_us, types, idle_w)
    node_us = schedule.trace.run_us * schedule.trace.nodes
    whole_j = float((node_us * (types.most_w[types.of_job] - idle_w)).sum()) / SECOND_US
    return left * KWH / whole_j * (case.before + 1)
