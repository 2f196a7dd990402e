"""A market: bids once per hour, a target that is missed on both sides, and hours that are tried."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from clusters import trace_of
from machines import SMALL
from markets import (
    BIDS,
    IDLE,
    LEAST,
    MINUTE,
    MOST,
    TRIED,
    Follow,
    logs_of,
    market_policies,
    model_of,
)
from naive import Job

from odonata.experiment.building import Building
from odonata.jobs.market import MarketSettings
from pdes.errors import Fault, Refused
from policies.bidding import BIDDINGS, Bid, BiddingPolicy, bidding
from policies.power import POWERS, power

__all__ = ["market_policies"]
LONG = [Job(0, 0, 7 * MINUTE, 4, 9 * MINUTE), Job(1, 0, 5 * MINUTE, 3, 8 * MINUTE),
        Job(2, 3 * MINUTE, 4 * MINUTE, 3, 5 * MINUTE)]  # fmt: skip


def signal_at(time: int) -> float:
    """The signal of the tests, again."""
    found = 0.0
    for since, value in ((0, 0.0), (70, 1.0), (110, -1.0), (130, 0.25), (290, -0.5)):
        found = value if time >= since * 10**6 else found
    return found


def test_it_bids_every_hour_and_what_was_bid_is_followed() -> None:
    logs, result = logs_of(model_of(LONG))
    assert [time for time, _ in logs["bids"]] == [2 * MINUTE * n for n in range(len(BIDS))]
    assert [row[:2] for _, row in logs["bids"]] == [bid[:2] for _, bid in BIDS]
    assert len(BIDS) > 4
    for time, (target_w, power_w, _) in logs["tracking"]:
        bid = [row for since, row in logs["bids"] if since < time][-1]
        signal = np.mean([signal_at(time - tick) for tick in range(1, 10**7, 10**6)])
        assert target_w == pytest.approx(bid[0] + bid[1] * signal)
        if 2 * MINUTE < time <= 3 * MINUTE:  # the jobs run that ran when it bid
            assert power_w == pytest.approx(target_w)
    assert result.outcome["machine_j"].sum() > 0


def test_the_error_counts_both_sides_and_begins_anew_every_hour() -> None:
    logs, _ = logs_of(model_of(LONG))
    hours = [time for time, _ in logs["bids"]]
    assert np.isnan(logs["bids"][0][1][2])
    for begin, (end, (_, _, error)) in zip(hours, logs["bids"][1:], strict=False):
        reserve_w = dict(logs["bids"])[begin][1]
        off = [abs(power_w - target_w) for time, (target_w, power_w, _) in logs["tracking"]
               if begin < time <= end]  # fmt: skip
        expected = np.mean(off) / reserve_w if reserve_w else np.nan
        assert error == pytest.approx(expected, abs=1e-12, nan_ok=True)
    seen = [market.error for market, _ in BIDS]
    assert seen == pytest.approx([0.0, *np.nan_to_num([row[2] for _, row in logs["bids"][1:]])])


def test_a_bid_sees_the_hour_that_has_passed_and_not_the_one_to_come() -> None:
    logs_of(model_of(LONG))
    (first, _), (second, _), (third, _), *_ = BIDS
    assert (first.signal, first.arrivals) == ([], {})
    assert second.signal == [0.0, 1.0, -1.0]
    assert third.signal == [-1.0, 0.25]
    assert (second.hour, second.nodes, second.idle_w, second.tick) == (2 * MINUTE, 10, IDLE, "us")
    assert second.arrivals == {"": 2.0}
    assert third.arrivals == {"": 1.5}
    assert [one.run.request.number for one in second.running] == [0, 1]


def test_trying_a_bid_changes_nothing() -> None:
    plain, tried = logs_of(model_of(LONG))[1], logs_of(model_of(LONG, "tries"))[1]
    assert TRIED
    assert plain.digest == tried.digest


def test_a_trial_knows_requested_times_only() -> None:
    """Whatever jobs do that run or are to come, what is tried is the same until that is seen."""
    other = [Job(0, 0, 3 * MINUTE, 4, 9 * MINUTE), Job(1, 0, 6 * MINUTE, 3, 8 * MINUTE),
             Job(2, 4 * MINUTE, MINUTE, 10, MINUTE)]  # fmt: skip
    found = []
    for jobs in (LONG, other):
        TRIED.clear()
        logs_of(model_of(jobs, "tries"))
        found.append(TRIED[:2])
    for ours, theirs in zip(*found, strict=True):
        assert ours.power_w.tolist() == theirs.power_w.tolist()
        assert (ours.started, ours.ended) == (theirs.started, theirs.ended)


def test_an_hour_that_is_tried_is_the_hour_that_comes_where_all_is_known() -> None:
    """Jobs take what they asked for, none comes, the signal repeats: then nothing differs."""
    jobs = [Job(0, 0, 9 * MINUTE, 4, 13 * MINUTE), Job(1, 0, 9 * MINUTE, 3, 13 * MINUTE)]
    logs, _ = logs_of(model_of(jobs, "same", settings={"signal": 0.4}))
    bids = [row[0] for _, row in logs["bids"]]
    assert len(bids) > 3
    hour = [
        power_w for time, (_, power_w, _) in logs["tracking"] if 2 * MINUTE < time <= 4 * MINUTE
    ]
    trial = TRIED[1]
    # Jobs like those that came are expected: they do not fit, as these hold seven of ten nodes.
    assert trial.power_w.tolist() == pytest.approx(hour)
    assert trial.errors == pytest.approx(np.zeros(12), abs=1e-9)
    assert trial.bad(0.1) == 0.0


class Same(BiddingPolicy):
    """Tries what it bids."""

    def bid(self, market: Any) -> Bid:
        found = Bid(3 * IDLE + 7 * (LEAST + MOST) / 2, 7 * (MOST - LEAST) / 2)
        TRIED.append(market.trial(found))
        return found


class Wrong(BiddingPolicy):
    """Offers more than it draws on average."""

    def bid(self, market: Any) -> Bid:
        return Bid(100.0, 200.0)


@pytest.fixture(autouse=True)
def more(market_policies: None) -> Any:
    bidding("same", about="a test's", source="ours")(Same)
    bidding("wrong", about="a test's", source="ours")(Wrong)
    yield
    del BIDDINGS["same"], BIDDINGS["wrong"]


def test_a_bid_that_cannot_be_is_named() -> None:
    with pytest.raises(Fault, match="wrong: it bid an average of 100 W and a reserve of 200"):
        logs_of(model_of(LONG, "wrong"))


def test_a_machine_without_a_policy_that_follows_takes_part_too() -> None:
    model = model_of(LONG, "fixed")
    settings = MarketSettings("fixed", (("average", 2000.0), ("reserve", 500.0)))
    supply = replace(model.power, policy="none")  # type: ignore[type-var]
    logs, _ = logs_of(replace(model, power=supply, market=settings))
    assert [row[:2] for _, row in logs["bids"]] == [(2000.0, 500.0)]
    assert {target for _, (target, *_) in logs["tracking"]} == {2000.0}


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"signal": 1.5}, "market.signal goes from 1.5 to 1.5: it must stay within -1 and 1"),
     ({"hour_ps": 15 * 10**12}, "market.hour = 15 s: a whole number of power"),
     ({"bidding": "fixed", "bidding_parameters": (("average", 10.0), ("reserve", 11.0))},
      "reserve = 11: at most average"),
     ({"hour_ps": 0}, "hour"), ({"gaps": "guess"}, "gaps = guess: one of refuse, hold")],
)  # fmt: skip
def test_a_market_that_cannot_be_is_refused_before_a_run(settings: Any, words: str) -> None:
    with pytest.raises(Refused, match=words):
        model_of(LONG, settings=settings)


@pytest.mark.parametrize(
    ("text", "words"),
    [('[market]\nbidding = "fixed"\n[[jobs]]\nnodes = 4\n', "no \\[power\\]"),
     ('fidelity = "job"\n[trace]\nmodel = "lublin"\n[market]\nhour = "1 h"\n', "no \\[power\\]"),
     ('fidelity = "job"\n[trace]\nmodel = "lublin"\n[power]\n[market]\nbidding = "fxed"\n',
      "did you mean fixed")],
)  # fmt: skip
def test_an_experiment_says_what_is_wrong_with_its_market(text: str, words: str) -> None:
    import tomllib

    building = Building("mine.toml")
    building.take_file(tomllib.loads(text), "mine.toml")
    with pytest.raises(Refused, match=words):
        building.experiment()


def test_random_jobs_keep_every_rule_under_a_market() -> None:
    rng = np.random.default_rng(5)
    jobs = [Job(number, int(at), int(rng.integers(1, 6 * MINUTE)), int(rng.integers(1, 10)), None)
            for number, at in enumerate(np.sort(rng.integers(0, 20 * MINUTE, 40)))]  # fmt: skip
    logs, result = logs_of(model_of(trace_of(jobs), "tries"))
    assert (result.outcome["state"] == 3).all()
    drawn = sum(power_w * 10.0 for _, (_, power_w, _) in logs["tracking"])
    tail = result.outcome["machine_j"].sum() - drawn
    assert -1e-6 <= tail <= 10 * 10 * MOST


def test_what_waking_nodes_draw_is_no_demand_of_jobs() -> None:
    """A job was measured at more than any node draws that is awake; a trial takes the most."""
    supply = {"wake_ps": 10**12, "wake_j": 2000.0}
    model = model_of([Job(0, 30 * 10**6, 5 * MINUTE, 4, 6 * MINUTE)], "tries", supply=supply)
    sleepy = replace(model.power, policy="idle-sleep",  # type: ignore[type-var]
                     policy_parameters=(("sleep_after_s", 1.0),))  # fmt: skip
    logs, _ = logs_of(replace(model, power=sleepy))
    assert max(power_w for _, (_, power_w, _) in logs["tracking"]) > 0
    assert len(TRIED) > 2


def test_a_capped_job_is_not_stretched_twice_in_an_hour_that_is_tried() -> None:
    """It is held at its least from the start: what is left of its request is stretched once."""
    model = model_of([Job(0, 0, 3 * MINUTE, 10, 3 * MINUTE)], "tries", settings={"signal": -1.0})
    _, result = logs_of(model)
    left_s = (result.outcome["end_us"][0] / 10**6 - 240) / 1.43  # of its work, without a cap
    tried_w = (LEAST + MOST) / 2 - (MOST - LEAST) / 4  # half the reserve, downwards
    length_s = left_s * (1 + 0.43 * (MOST - tried_w) / (MOST - LEAST))
    assert 10 < length_s < 20
    drawn_w = 10 * (tried_w * (length_s - 10) + IDLE * (20 - length_s)) / 10
    assert TRIED[2].power_w[:3].tolist() == pytest.approx([10 * tried_w, drawn_w, 10 * IDLE])


@pytest.mark.parametrize("demand", ["constant", "mira"])
def test_an_hour_is_tried_on_a_machine_whose_nodes_differ(demand: str) -> None:
    """Not even the least efficient node can be held at more than any node draws."""
    model = model_of(LONG, "tries", machine=SMALL, supply={"variation": 0.2})
    assert model.power is not None
    power = replace(model.power, demand=demand)
    logs_of(replace(model, power=power))
    assert len(TRIED) > 2
    most_w = 10 * power.maximum
    assert max(one.power_w.max() for one in TRIED) <= most_w
    assert max(one.power_w.max() for one in TRIED) > 5 * power.maximum
    market, _ = BIDS[-1]
    assert power.least < market.least_w == min(1.2 * power.least, power.maximum) or (
        market.least_w == market.most_w == power.maximum
    )


@pytest.mark.long
def test_a_market_does_not_keep_a_run_going_in_which_nobody_will_start() -> None:
    class Never(Follow):
        def configure(self, view: Any, job: Any) -> None:
            return None

    power("never", about="a test's", source="ours")(Never)
    model = model_of(LONG[:1], "fixed")
    _, result = logs_of(replace(model, power=replace(model.power, policy="never")))  # type: ignore[type-var]
    del POWERS["never"]
    assert (result.outcome["end_us"] == -1).all()


class Greedy(BiddingPolicy):
    """Tries what could not be bid."""

    def bid(self, market: Any) -> Bid:
        market.trial(Bid(100.0, 200.0))
        return Bid(100.0, 0.0)


def test_what_could_not_be_bid_cannot_be_tried_and_the_policy_is_named() -> None:
    bidding("greedy", about="a test's", source="ours")(Greedy)
    with pytest.raises(Fault, match="bidding greedy: it tried an average of 100 W and a reserve"):
        logs_of(model_of(LONG, "greedy"))
    del BIDDINGS["greedy"]
