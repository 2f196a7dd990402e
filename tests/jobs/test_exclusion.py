"""Hours in which nothing may be offered, after too many that broke the tracking rule: which these
are is found by a plain loop over what was measured, in runs of jobs and of packets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clusters import trace_of
from following import INTERVAL, LAUNCH, columns, following, recorded
from hypothesis import given
from hypothesis import strategies as st
from naive import Job

from odonata.cluster.model import Cluster
from odonata.jobs import trading as t
from odonata.jobs.market import MarketSettings
from odonata.jobs.power import Power
from odonata.results.market_memory import simulate_market
from odonata.traces.mix import MIXES, mix
from odonata.traces.types import Types
from pdes.driver import run
from pdes.errors import Refused
from pdes.transport import Serial
from policies.bidding import BIDDINGS, Bid, BiddingPolicy, bidding
from policies.power import POWERS, Caps, PowerPolicy, power
from policies.views import Market

PS, MINUTE = 10**12, 60 * 10**6


def naive(
    failed: Sequence[bool], after: int, within: int, lasts: int, lag: int = 0
) -> tuple[list[bool], list[bool]]:
    """Returns of each hour whether it is excluded, and whether it was judged to have failed, where
    `failed` says which would fail if something is offered. Times are hours; what an hour came to is
    known `lag` hours after its end."""
    excluded, fails = [], []
    free_from, counted = 0.0, []
    for hour in range(len(failed)):
        judged = hour - 1 - lag
        if judged >= 0 and fails[judged] and judged >= free_from:
            counted.append(judged)
            recent = [it for it in counted if it >= judged + 1 - within]
            if len(recent) >= after:
                free_from, counted = hour + lasts, []
        excluded.append(hour < free_from)
        fails.append(failed[hour] and not excluded[hour])
    return excluded, fails


def settings(**given: Any) -> MarketSettings:
    return MarketSettings(**{"exclude_after": 2, "hour_ps": 300 * PS} | given)


@given(st.lists(st.booleans(), max_size=60), st.integers(1, 4), st.integers(1, 9),
       st.integers(1, 9), st.integers(0, 1))  # fmt: skip
def test_hours_are_excluded_as_a_loop_over_them_says(
    failed: list[bool], after: int, within: int, lasts: int, lag: int
) -> None:
    hour_ps, within = 300 * PS, max(within, after)
    how = settings(exclude_after=after, exclude_within_ps=within * hour_ps,
                   exclude_for_ps=lasts * hour_ps)  # fmt: skip
    hour = hour_ps // 10**6
    trade, market, excluded = t.Trade(how, hour, {}, 0), np.zeros(0), []
    market = trade.words()
    pending = []
    for at, fails in enumerate(failed):
        if not lag and pending:
            trade.judge(market, pending.pop(), at * hour)
        shut = trade.excluded(market, at * hour)
        excluded.append(shut)
        trade.bid(market, at * hour, t.NOTHING if shut else Bid(2.0, 1.0))
        if lag and pending:  # a little after the next hour has begun
            trade.judge(market, pending.pop(), at * hour + 1)
        for _ in range(10):
            t.count_bad(market, 2.0 + fails, 2.0, market[t.RESERVE_W])
        pending.append(at * hour)
    assert excluded == naive(failed, after, within, lasts, lag)[0]


def test_a_tenth_of_bad_intervals_is_a_failure_and_less_is_none() -> None:
    trade = t.Trade(settings(exclude_after=1), 300, {}, 0)
    for bad, shut in ((1, True), (0, False)):
        market = trade.words()
        trade.bid(market, 0, Bid(2.0, 1.0))
        for at in range(10):
            t.count_bad(market, 2.31 if at < bad else 2.3, 2.0, 1.0)
        trade.judge(market, 0, 300)
        assert trade.excluded(market, 300) == shut


# -- in a run of jobs


def regulated(seed: int = 1, bids: str = "fixed", **given: Any) -> Cluster:
    """An hour of five minutes' bids, of which some are kept and others are not."""
    types, how = Types.of("aqa"), MIXES["W4"]
    trace = mix(types, how.types, how.nodes, seed=seed, span_s=7200)
    offered = (("average", 8500.0), ("reserve", 3500.0)) if bids == "fixed" else ()
    market = MarketSettings(bids, offered, signal="synthetic", hour_ps=300 * PS,
                            standby="bt.C.16", **given)  # fmt: skip
    return Cluster(trace, how.nodes, power=Power("energy-qare", (), types=types,
                   interval_ps=PS), market=market, until_us=120 * MINUTE, seed=seed)  # fmt: skip


def failures(market: Any) -> list[bool]:
    """Returns of each hour whether it broke the rule, by what was measured."""
    found = []
    for at, begin in enumerate(market.bids.begin_us.tolist()):
        reserve_w = market.bids.reserve_w[at]
        its = [(power_w, target_w)
               for until, target_w, power_w, _ in zip(*market.tracking, strict=True)
               if begin < until <= begin + 5 * MINUTE]  # fmt: skip
        bad = [reserve_w and abs(power_w - target_w) / reserve_w > 0.3 for power_w, target_w in its]
        found.append(bool(reserve_w) and 10 * sum(bad) >= len(its))
    return found


@pytest.mark.parametrize(
    ("after", "within", "lasts", "seed"),
    [(1, 1, 1, 1), (2, 2, 1, 2), (2, 4, 3, 3), (3, 24, 5, 4), (3, 4, 2, 5)],
)
def test_an_hour_of_a_run_is_excluded_as_the_loop_says(
    after: int, within: int, lasts: int, seed: int
) -> None:
    model = regulated(seed, exclude_after=after, exclude_within_ps=within * 300 * PS,
                      exclude_for_ps=lasts * 300 * PS)  # fmt: skip
    market = simulate_market(model, 120 * MINUTE, transport=Serial()).market
    assert market is not None
    failed = failures(market)
    excluded = market.bids.excluded.tolist()
    assert naive(failed, after, within, lasts) == (excluded, failed)
    assert sum(excluded)
    assert not all(excluded)
    assert (
        market.measures.hours_excluded == sum(excluded) == sum(h.excluded for h in market.by_hour)
    )
    for hour in market.by_hour:
        assert hour.tracking_ok is not failed[round(hour.begin_s / 300)]
        if hour.excluded:
            assert (hour.average_w, hour.reserve_w, hour.bad_share) == (0.0, 0.0, None)
            assert hour.cost == pytest.approx(hour.cost_drawn)


def test_until_an_hour_is_excluded_nothing_is_different() -> None:
    ours, theirs = (
        simulate_market(regulated(**how), 120 * MINUTE, transport=Serial()).market
        for how in ({"exclude_after": 24, "exclude_within_ps": 7200 * PS}, {})
    )
    assert ours is not None
    assert theirs is not None
    for mine, other in zip(ours.tracking, theirs.tracking, strict=True):
        assert (mine == other).all()
    assert not ours.bids.excluded.any()


def test_nobody_is_asked_for_a_bid_in_an_hour_that_is_excluded() -> None:
    asked: list[int] = []

    @bidding("greedy", about="a test's", source="ours")
    class Greedy(BiddingPolicy):
        def bid(self, market: Market) -> Bid:
            asked.append(market.time)
            return Bid(20_000.0, 100.0)

    try:
        model = regulated(bids="greedy", exclude_after=2, exclude_for_ps=900 * PS)
        market = simulate_market(model, 120 * MINUTE, transport=Serial()).market
    finally:
        del BIDDINGS["greedy"]
    assert market is not None
    # Each hour fails, as nobody draws so much: two are offered, and three are not.
    assert asked == [at * 5 * MINUTE for at in range(24) if at % 5 < 2]
    assert market.bids.begin_us[~market.bids.excluded].tolist() == asked


def test_a_run_that_is_resumed_in_the_middle_of_an_exclusion_gives_the_same_bits(
    tmp_path: Path,
) -> None:
    how: dict[str, Any] = {"exclude_after": 2, "exclude_for_ps": 1200 * PS}
    whole = run(regulated(3, **how), 120 * MINUTE, show_compiling=False, transport=Serial())
    market = simulate_market(regulated(3, **how), 120 * MINUTE, transport=Serial()).market
    assert market is not None
    shut = market.bids.begin_us[market.bids.excluded]
    for number, cut in enumerate((int(shut[0]) + 1, int(shut[0]) - 5 * MINUTE + 777)):
        place = tmp_path / f"{number}"
        run(regulated(3, **how), cut + 1, show_compiling=False, transport=Serial(),
            checkpoint_dir=place, checkpoint_every=cut)  # fmt: skip
        rest = run(regulated(3, **how), 120 * MINUTE, show_compiling=False, transport=Serial(),
                   resume=place)  # fmt: skip
        assert rest.resumed
        assert rest.digest == whole.digest


def test_a_policy_that_is_asked_for_caps_sees_no_target_in_an_hour_that_is_excluded() -> None:
    seen: dict[int, bool] = {}

    @power("looks", about="a test's", source="ours")
    class Looks(PowerPolicy):
        def caps(self, view: Any) -> Caps:
            seen[view.time] = view.target is not None
            return Caps()

    try:
        offered = (("average", 2000.0), ("reserve", 10.0))
        market = MarketSettings("fixed", offered, signal=0.5, hour_ps=120 * PS, exclude_after=1,
                                exclude_for_ps=200 * PS)  # fmt: skip
        supply = Power("looks", interval_ps=10 * PS, demand="constant")
        jobs = trace_of([Job(0, 0, 900 * 10**6, 5, None)])
        model = Cluster(jobs, 10, power=supply, market=market)
        run(model, None, show_compiling=False, transport=Serial())
    finally:
        del POWERS["looks"]
    # The first hour fails, the two that begin in the 200 s after it are excluded, and so on.
    expected = {time: time // (120 * 10**6) % 3 == 0 for time in seen}
    assert seen == expected
    assert len({*seen.values()}) == 2


# -- in a run of packets


@pytest.mark.parametrize(("after", "within", "lasts"), [(1, 1, 1), (1, 2, 3), (2, 3, 2)])
def test_in_packets_an_hour_is_judged_when_its_last_reading_is_known(
    after: int, within: int, lasts: int, tmp_path: Path
) -> None:
    hour = 2 * INTERVAL
    how = {"hour_ps": hour, "exclude_after": after, "exclude_within_ps": within * hour,
           "exclude_for_ps": lasts * hour}  # fmt: skip
    recorded(following(market=how), tmp_path)
    found = columns(tmp_path)
    begins, reserves = found["bids/time_ps"].tolist(), found["bids/reserve_w"].tolist()
    failed = []
    for begin, reserve_w in zip(begins, reserves, strict=True):
        until = found["tracking/time_ps"] - LAUNCH
        its = (until > begin) & (until <= begin + hour)
        off = np.abs(found["tracking/power_w"] - found["tracking/target_w"])[its]
        failed.append(bool(reserve_w) and 10 * int((off > 0.3 * reserve_w).sum()) >= its.sum() > 0)
    excluded = found["bids/excluded"].tolist()
    assert naive(failed, after, within, lasts, lag=1) == (excluded, failed)
    assert sum(excluded)
    assert len(excluded) > 8
    assert (found["tracking/target_w"] == 0.0).any()


# -- what is refused


@pytest.mark.parametrize(
    ("how", "words"),
    [({"exclude_after": -1}, "exclude_after = -1: 0"),
     ({"exclude_for_ps": 0}, "exclude_for = 0 ps: above 0"),
     ({"exclude_after": 4, "exclude_within_ps": 1000 * PS}, "exclude_after = 4: at most 3"),
     ({"exclude_after": 0, "exclude_for_ps": PS}, "exclude_for = 1 s: only with exclude_after")],
)  # fmt: skip
def test_an_exclusion_that_cannot_be_is_refused(how: dict[str, Any], words: str) -> None:
    with pytest.raises(Refused, match=words):
        settings(**how)


def test_the_words_of_an_exclusion_are_only_there_where_hours_may_be_excluded() -> None:
    assert len(t.Trade(MarketSettings(), 3600, {}, 0).words()) == t.ALWAYS
    assert len(t.Trade(settings(exclude_after=3), 300, {}, 0).words()) == t.FAILED + 3
