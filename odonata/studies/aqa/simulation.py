"""One case of the study: a bid that is made for a mix, or that is given, and what it comes to.

A bid is made on some hours and judged on others (`held out`), or one is made for each hour and
judged by it (`in sample`). The hours are those of `odonata.bids.training`: an hour of one number
has the same jobs and the same signal under every policy. What is judged again, by another policy or
with another signal, is a **variant** of the case: the bid is the same.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from odonata.bids.chance import Chance
from odonata.bids.risk import AtRisk, Point, at_risk, undominated
from odonata.bids.training import FRESH, JUDGE, TRAIN, best_so_far, judged, train
from odonata.study.contract import Case
from odonata.traces.mix import MIXES, Mix, mix
from odonata.traces.types import Types
from pdes.transport import Serial
from policies.bidding import BIDDINGS
from policies.bidding.aqa import Optimised
from policies.bidding.judging import Judged
from policies.views import Bid, Market

if TYPE_CHECKING:
    from odonata.cluster.model import Cluster

TABLE = "aqa"
HOUR_US, SECOND_PS = 3600 * 10**6, 10**12
MARGIN = 0.4
"""That of bids that are judged on other hours, the usual one; whoever bids for the very hour needs
none."""
SLACK, TIGHT = 7.9, 2.0
"""Between these thresholds are drawn, as the paper's were."""
FRESH_HOURS = 200
"""Hours on which a bid at a stated risk is tried in the end."""
OWN = ""
"""The name of the case itself among its variants."""
WARM, COLD = "warm", "cold"
"""Variants of whole runs of two hours: the second and the first of them."""
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "tracking-only": {"policy": "tracking-only"},
    "preemption": {"options": (("preemption", True),)},
    "in order": {"options": (("weighted", False),)},
    "no sharing": {"options": (("sharing", False),)},
    "whole jobs": {"options": (("parts", False),)},
    "no caps": {"options": (("capping", False),)},
    "planned caps": {"options": (("planned", True),)},
    "gaps": {"options": (("gaps", True),)},
    "gain 1": {"options": (("gain", 1.0),)},
    "gain 4": {"options": (("gain", 4.0),)},
    "gain 16": {"options": (("gain", 16.0),)},
    "0.64": {"deviation": 0.64},
}
"""What a bid is judged by again: fields of the case that are other."""


@dataclass(frozen=True)
class Offer(Case):
    """A bid that is made and judged. `sample`: whether by the hours that it is made for, one by
    one; else it is made on `train` hours and judged on `judge` others. Thresholds are those of the
    table times `level` or, where `drawn` is above 0, drawn with this seed. Jobs have `size` times
    their nodes. `rule` is what a grid of bids goes by, and `margin`
    that of a search whose bid is held out. `options` are those of the power policy.
    `bid`: an average and a reserve that are given, with weights for types where `weights` has some.
    `also` names variants. `risk`: the bid is made for this one. `kept`: what was measured in the
    first hour is in the outcome."""

    mix: str
    policy: str = "aqa"
    standby: str = ""
    sample: bool = False
    train: int = 6
    judge: int = 20
    deviation: float = 0.40
    slow_s: int = 90
    fast_s: int = 20
    level: float = 1.0
    drawn: int = 0
    nodes: int = 35
    size: int = 1
    rule: str = "quality"
    margin: float = MARGIN
    optimiser: str = "search"
    candidates: int = 500
    options: tuple[tuple[str, Any], ...] = ()
    bid: tuple[float, float] | None = None
    weights: tuple[tuple[str, float], ...] = ()
    also: tuple[str, ...] = ()
    risk: float = 0.0
    kept: bool = False

    @property
    def weight(self) -> float:
        """Returns about how many trials it takes, those of large machines counted as more."""
        bids = 1 if self.bid else self.candidates if self.policy == "aqa" else 144
        bids = min(bids, 200) if self.optimiser == "gradient" else bids
        hours = self.judge if self.sample else self.train
        each = 1.0 + self.nodes / 1000.0
        return each * (bids * hours * (8.0 if self.risk else 1.0) + 40.0 * len(self.also))

    def __str__(self) -> str:
        how = "in sample" if self.sample else "held out"
        return f"{self.policy} on {self.mix}, {self.standby or 'no standby jobs'}, {how}"


@dataclass(frozen=True)
class AqaOutcome:
    """The outcome. Powers are in W, parts are of 1."""

    bids: Sequence[Mapping[str, Any]]
    """The bid, with average_w, reserve_w and weights; in sample that of each hour."""
    trained: Sequence[int]
    """The number of hours, of those that each bid was made on, in which it keeps all rules."""
    hours: Mapping[str, Sequence[Mapping[str, Any]]]
    """What each hour came to, by variant: `row` has the columns."""
    trials: int
    """Hours that were simulated to make the bids."""
    seconds: float
    """Wall-clock seconds that this took."""
    steps: Sequence[Mapping[str, Any]] = ()
    """What was tried, where it is kept: bids with their costs and violations, and the number of the
    best one until then."""
    seen: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What was measured in the first hour, by variant, where it is kept: `power_w` and `target_w`
    of each second, errors, and the degradations of each type."""
    chance: Mapping[str, Any] = field(default_factory=dict)
    """What is known of a bid at a stated risk: how many hours failed of those that it was chosen by
    and judged on, and the front. It is empty for other bids."""


# -- the machine


def mix_of(case: Offer) -> Mix:
    return MIXES[case.mix]


@lru_cache(maxsize=64)
def types_of(level: float, drawn: int, size: int) -> Types:
    """Returns the types of the paper with other thresholds and sizes."""
    table = Types.of(TABLE)
    dice = np.random.default_rng([drawn, len(table)])
    some = np.round(dice.uniform(TIGHT, SLACK, len(table)), 1).tolist()
    rows = (replace(it, threshold=some[at] if drawn else it.threshold * level,
                    nodes=None if it.nodes is None else it.nodes * size)
            for at, it in enumerate(table))  # fmt: skip
    return replace(table, rows=tuple(rows))


def model_of(case: Offer, seed: int = 1, bid: Bid | None = None, hours: int = 1) -> Cluster:
    """Returns the machine of a case, for so many hours."""
    from odonata.cluster.model import Cluster
    from odonata.jobs.market import MarketSettings
    from odonata.jobs.power import Power

    types, how = types_of(case.level, case.drawn, case.size), mix_of(case)
    trace = mix(types, how.types, case.nodes, load=how.load, seed=seed, shares=how.shares,
                span_s=3600.0 * hours)  # fmt: skip
    given: tuple[tuple[str, Any], ...] = ()
    if bid is not None:
        weights = " ".join(f"{name}={weight!r}" for name, weight in bid.weights.items())
        given = (("average", bid.average_w), ("reserve", bid.reserve_w), ("weights", weights))
    market = MarketSettings("fixed", given, signal="synthetic", signal_deviation=case.deviation,
                            signal_slow_memory_ps=case.slow_s * SECOND_PS,
                            signal_fast_memory_ps=case.fast_s * SECOND_PS,
                            standby=case.standby or None)  # fmt: skip
    power = Power(case.policy, case.options, types=types, interval_ps=SECOND_PS)
    return Cluster(trace, case.nodes, power=power, market=market, until_us=HOUR_US * hours,
                   seed=seed)  # fmt: skip


@lru_cache(maxsize=2)
def _market(machine: Offer) -> Market:
    return model_of(machine).first_market()


def market_of(case: Offer) -> Market:
    """Returns what is known when the bid of a case is due; the same for all cases of a machine."""
    names = ("mix", "policy", "standby", "deviation", "slow_s", "fast_s", "level", "drawn", "nodes",
             "size", "options")  # fmt: skip
    return _market(Offer(**{name: getattr(case, name) for name in names}))


def variant(case: Offer, name: str) -> Offer:
    """Returns the case by which a variant is judged."""
    changes = dict(VARIANTS[name]) if name != OWN else {}
    if case.policy == "aqa" and "options" in changes:
        changes["options"] = case.options + tuple(changes["options"])
    if changes.get("policy"):
        changes["options"] = ()
    return replace(case, **changes)


# -- bids


def numbers(case: Offer) -> range:
    """Returns the hours that a case is judged by."""
    first = TRAIN if case.sample else JUDGE
    return range(first, first + case.judge)


def bids_of(case: Offer) -> tuple[list[Bid], list[int], int, list[Mapping[str, Any]]]:
    """Returns the bids of a case, of how many hours each keeps all rules, how many hours were
    simulated for them, and what was tried for the first."""
    if case.bid is not None:
        return [Bid(*case.bid, dict(case.weights))], [0], 0, []
    market, steps = market_of(case), list[Mapping[str, Any]]()
    every = [[hour] for hour in numbers(case)] if case.sample else [
        [*range(TRAIN, TRAIN + case.train)]
    ]  # fmt: skip
    bids, kept, trials = [], [], 0
    for hours in every:
        if case.policy == "aqa":
            found = train(market, searched(case), hours)
            bids.append(found.best.bid)
            trials += len(found.every) * len(hours)
            kept.append(sum(not it.violation for it in found.best.judged))
            if case.kept and not steps:
                best = best_so_far(market, found.every)
                steps = [it._asdict() | {"weights": dict(one.bid.weights), "best": at} for it, one,
                         at in zip(found.steps, found.every, best, strict=True)]  # fmt: skip
        else:
            bids.append(_gridded(market, hours, case.rule))
            kept.append(sum(it.kept for it in judged(market, bids[-1], hours)))
    return bids, kept, trials, steps


def searched(case: Offer) -> Optimised:
    """Returns the bidding policy that makes the bids of a case."""
    margin = 0.0 if case.sample or case.risk else case.margin
    given = {"optimiser": case.optimiser, "candidates": case.candidates, "margin": margin,
             "risk": case.risk}  # fmt: skip
    return cast(Optimised, BIDDINGS.make("aqa", given))


def _gridded(market: Market, hours: Sequence[int], rule: str) -> Bid:
    """Returns the best bid of EnergyQARE's grid, tried in these hours."""
    made = BIDDINGS.make("energy-qare", {"hours": len(hours), "rule": rule})
    trial = market.trial
    assert trial is not None

    def tried(bid: Bid, hour: int = 0, give_up: float = 0.0) -> Any:
        return trial(bid, hours[hour], give_up)

    return cast(Bid, made.bid(market._replace(trial=tried)))


# -- what they come to


def simulate(case: Offer) -> AqaOutcome:
    """Simulate a case on this core, whatever ranks there are."""
    began = time.perf_counter()
    if case.risk:
        return _risked(case)
    bids, kept, trials, steps = bids_of(case)
    seconds = time.perf_counter() - began
    hours: dict[str, list[Mapping[str, Any]]] = {}
    seen: dict[str, Mapping[str, Any]] = {}
    for name in (OWN, *(it for it in case.also if it in VARIANTS)):
        market = market_of(variant(case, name))
        each = bids if len(bids) > 1 else bids * case.judge
        pairs = [*zip(each, numbers(case), strict=True)]
        hours[name] = [row(market, bid, hour) for bid, hour in pairs]
        if case.kept:
            seen[name] = _seen(market, *pairs[0])
    if WARM in case.also:
        hours[COLD], hours[WARM] = warmed(case, bids[0])
    return AqaOutcome(bids=[_fields(bid) for bid in bids], trained=kept, hours=hours, trials=trials,
                      seconds=round(seconds, 3), steps=steps, seen=seen)  # fmt: skip


def _fields(bid: Bid) -> dict[str, Any]:
    return {"average_w": bid.average_w, "reserve_w": bid.reserve_w, "weights": dict(bid.weights)}


def row(market: Market, bid: Bid, hour: int) -> dict[str, Any]:
    """Returns what a bid came to in an hour: whether it kept all rules, the tracking rule and the
    QoS; saving, cost and error; and by type the share of late jobs."""
    (it,) = judged(market, bid, [hour])
    return row_of(it)


def row_of(it: Judged) -> dict[str, Any]:
    worst = max((ratio for name, ratio in it.ratios.items() if name in it.late), default=0.0)
    return {"kept": it.kept, "rule": it.kept_rule, "qos": it.kept_qos,
            "saving": round(it.saving or 0.0, 6), "cost": round(it.cost, 6),
            "error": round(it.error, 6), "bad": round(it.bad, 6), "worst": round(worst, 4),
            "late": {name: round(share, 4) for name, share in it.late.items()}}  # fmt: skip


def _seen(market: Market, bid: Bid, hour: int) -> Mapping[str, Any]:
    assert market.trial is not None
    trial = market.trial(bid, hour)
    found = {name: np.sort(q).round(3).tolist() for name, q in trial.degradations.items()}
    return {"power_w": trial.power_w.round().tolist(), "target_w": trial.target_w.round().tolist(),
            "errors": np.quantile(trial.errors, np.linspace(0, 1, 101)).round(4).tolist(),
            "degradations": found}  # fmt: skip


def warmed(case: Offer, bid: Bid) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """Returns what the first and the second hour came to of runs of two hours, each with another
    seed, that are bid for alike."""
    from odonata.results.market_memory import simulate_market

    rows: tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]] = [], []
    for seed in range(1, case.judge + 1):
        run = simulate_market(model_of(case, seed, bid, 2), 2 * HOUR_US, transport=Serial())
        assert run.market is not None
        for rows_of, hour in zip(rows, run.market.by_hour, strict=True):
            late = {it.type: round(it.late_share or 0.0, 4) for it in hour.types if it.jobs}
            rows_of.append({
                "kept": hour.tracking_ok and hour.qos_ok, "rule": hour.tracking_ok,
                "qos": hour.qos_ok, "saving": round(hour.saving or 0.0, 6),
                "cost": round(hour.cost or 0.0, 6), "error": round(hour.error_mean or 0.0, 6),
                "bad": round(hour.bad_share or 0.0, 6), "worst": 0.0, "late": late,
            })  # fmt: skip
    return rows


def _risked(case: Offer) -> AqaOutcome:
    """Returns the outcome of a bid at a stated risk, and how many of the fresh hours failed."""
    began, market = time.perf_counter(), market_of(case)
    found = at_risk(market, searched(case), case.risk, train_on=case.train)
    seconds = time.perf_counter() - began
    bid = found.chosen.bid
    fresh = [row(market, bid, hour) for hour in range(FRESH, FRESH + FRESH_HOURS)]
    _market.cache_clear()  # it has hundreds of hours
    trials = len(found.trained.every) * case.train + found.chosen.failed.trials * len(found.front)
    return AqaOutcome(bids=[_fields(bid)], trained=[], hours={OWN: fresh}, trials=trials,
                      seconds=round(seconds, 3), chance=chances(found))  # fmt: skip


def chances(found: AtRisk) -> dict[str, Any]:
    """Returns a bid at a stated risk, for JSON."""
    return {"passed": found.passed, "chosen": _counted(found.chosen.failed),
            "judged": _counted(found.judged.failed), "saving": found.judged.saving,
            "front": [_pointed(it) for it in undominated(found.front)]}  # fmt: skip


def _counted(it: Chance) -> list[int]:
    return [it.seen, it.trials]


def _pointed(it: Point) -> list[float]:
    return [round(it.saving or 0.0, 5), it.failed.seen, it.failed.trials, round(it.worst, 4)]
