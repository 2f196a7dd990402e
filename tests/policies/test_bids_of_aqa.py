"""The bids of AQA: what an hour says of a bid, and a search that is told of hours."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st

from pdes.errors import Fault, Refused
from policies.bidding import BIDDINGS, Bid, Market, Trial
from policies.bidding.aqa import tried
from policies.bidding.base import bid
from policies.bidding.judging import TRACKING, Judged, judge
from policies.bidding.known import mean_w
from policies.bidding.search import Candidate, Search, optimiser_of
from policies.views import JobKind, tracking

IDLE_W, NODES, HOUR = 100.0, 20, 3600 * 10**6
KINDS = (JobKind("a", 1, 60e6, 300.0, 200.0, 1.5, 2.0, None, 300.0),
         JobKind("b", 2, 120e6, 250.0, 150.0, 1.2, 4.0, None, 75.0),
         JobKind("c", 1, 90e6, 280.0, 150.0, 1.2, math.inf, None, 20.0))  # fmt: skip
COUNT = 60
"""Intervals of an hour."""


def market(trial: Any = None, kinds: Any = KINDS, **more: Any) -> Market:
    return Market(0, HOUR, NODES, IDLE_W, (), (), {}, {}, 0.1, 0.1, 0.1, most_w=300.0, types=kinds,
                  spread=0.4, trial=trial, **more)  # fmt: skip


def trial_of(errors: Any, reserve_w: float, found: Any, part: float = 1.0) -> Trial:
    target_w = np.full(len(errors), 4000.0)
    power_w = target_w + reserve_w * np.array(errors)
    return Trial(power_w, target_w, reserve_w, 0, 0, found, {}, part)


@examples(300)
@given(st.lists(st.floats(0, 0.6), min_size=1, max_size=40), st.data())
def test_an_hour_keeps_all_rules_where_no_deciding_value_reaches_its_limit(
    errors: list[float], data: Any
) -> None:
    found = {name: np.array(data.draw(st.lists(st.sampled_from([0.0, 1.0, 1.999, 2.0, 4.0, 9.0]),
                                               max_size=25))) for name in "abc"}  # fmt: skip
    bid, asked = Bid(4000.0, 500.0), market()
    it = judge(asked, bid, trial_of(errors, bid.reserve_w, found))
    off = tracking.errors(4000.0 + 500.0 * np.array(errors), 4000.0, 500.0)
    rule = tracking.keeps_rule(off, asked.limit, asked.share)
    late = {kind.name: float((found[kind.name] >= kind.threshold).mean())
            for kind in KINDS if kind.threshold < math.inf and len(found[kind.name])}  # fmt: skip
    assert it.late == late
    assert it.kept == (rule and all(share <= asked.late for share in late.values()))
    assert it.kept == all(ratio < 1.0 for ratio in it.ratios.values())
    assert (it.violation == 0.0) == it.kept
    assert it.violation >= 0.0
    strict = judge(asked, bid, trial_of(errors, bid.reserve_w, found), margin=0.5)
    assert all(strict.ratios[name] >= ratio for name, ratio in it.ratios.items())


def test_a_violation_is_by_how_much_the_deciding_values_exceed_their_limits() -> None:
    errors = np.full(COUNT, 0.1)
    errors[:8] = [0.9, 0.8, 0.7, 0.65, 0.63, 0.6, 0.5, 0.4]  # the sixth largest decides
    found = {"a": np.array([8.0, 6.0, *[0.1] * 10]), "b": np.zeros(5)}  # of 12 the second
    it = judge(market(), Bid(4000.0, 500.0), trial_of(errors, 500.0, found))
    assert it.ratios[TRACKING] == pytest.approx(0.6 / 0.3)
    assert it.ratios["a"] == pytest.approx(6.0 / 2.0)
    assert it.violation == pytest.approx(math.log(2.0) + math.log(3.0), abs=1e-6)
    assert not it.kept
    short = judge(market(), Bid(4000.0, 500.0), trial_of(errors[:30], 500.0, {}, 0.5))
    assert short.ratios[TRACKING] == pytest.approx(0.6 / 0.3), (
        "as many of the whole hour may be bad"
    )
    assert short.violation == pytest.approx(math.log(2.0) + 2.0 * 0.5, abs=1e-6)


def test_nothing_offered_breaks_no_tracking_rule() -> None:
    it = judge(market(), Bid(4000.0, 0.0), trial_of([0.5] * 9, 0.0, {}))
    assert it.kept
    assert it.error == it.saving == 0.0


def test_what_a_bid_costs_is_what_the_market_says() -> None:
    it = judge(market(), Bid(4000.0, 500.0), trial_of([0.2] * COUNT, 500.0, {}))
    assert it.cost == pytest.approx(0.1 * (4.0 - 0.5 + 0.5 * 0.2))
    assert it.saving == pytest.approx(0.5 * 0.8 / 4.0)


# -- a search on a machine that is a formula


def hour_of(bid: Bid, hour: int = 0, give_up: float = 0.0) -> Trial:
    """Returns an hour that is kept by averages above 4,200 W, by reserves below 900 W, and by
    weights near (0.6, 0.3)."""
    wrong = abs(bid.weights["a"] - 0.6) + abs(bid.weights["b"] - 0.3)
    late = 2.0 * (1.0 + wrong) * 4200.0 / bid.average_w * 0.9
    return trial_of(np.full(COUNT, 0.3 * bid.reserve_w / 900.0), bid.reserve_w,
                    {"a": np.full(20, late), "b": np.zeros(20)})  # fmt: skip


def test_the_search_finds_what_costs_least_while_rules_are_kept() -> None:
    policy = BIDDINGS.make("aqa", {"candidates": 600, "margin": 0.0, "hours": 2})
    asked = market(hour_of)
    found = bid(policy, asked)
    every = judge(asked, found, hour_of(found))
    assert every.kept
    # With the right weights an average of 3,780 W is enough, and nothing is cheaper than that
    # with a reserve of 500 W and more: (1 - error) of it is largest at 900 · 5 / 3.
    best = (3780.0 - 900.0 * (1 - 0.3)) / 1e4
    assert every.cost == pytest.approx(best, rel=0.12)
    assert abs(found.weights["a"] - 0.6) < 0.25
    assert bid(BIDDINGS.make("aqa", {"candidates": 600, "margin": 0.0, "hours": 2}), asked) == found


@pytest.mark.parametrize("by", [1.0, 100.0])
def test_the_search_does_not_go_by_the_currency_nor_need_a_price_of_energy(by: float) -> None:
    free = market(hour_of)._replace(energy_price=0.0, reserve_price=0.1 * by, error_price=0.1 * by)
    policy = BIDDINGS.make("aqa", {"candidates": 200, "hours": 1, "margin": 0.0})
    found = bid(policy, free)
    assert judge(free, found, hour_of(found)).kept
    assert found == bid(policy, free._replace(reserve_price=0.1, error_price=0.1))


def test_it_suggests_the_same_whoever_tries_the_bids() -> None:
    asked = market(hour_of)
    one, other = Search(asked, 60), Search(asked, 60)
    while not one.finished:
        bids = one.ask()
        assert other.ask() == bids
        batch = [tried(asked, each, [1, 2]) for each in bids]
        one.tell(batch)
        other.tell(list(batch))
        for each in bids:
            assert 0 < each.reserve_w <= each.average_w
            assert NODES * IDLE_W <= each.average_w <= NODES * 300.0
            assert sum(each.weights.values()) == pytest.approx(1.0)
    assert other.finished


def test_it_suggests_the_same_in_whatever_basis_eigenvectors_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Eigenvectors of equal eigenvalues may be any basis of their space, and each may have either
    sign: libraries differ in that."""

    def bids() -> list[Bid]:
        asked, found = market(hour_of), []
        search = Search(asked, 60)
        while not search.finished:
            found += search.ask()
            search.tell([tried(asked, each, [1]) for each in found[-search._cma.population_size :]])
        return found

    real, mine = np.linalg.eigh, bids()

    def turned(matrix: Any) -> Any:
        values, vectors = real(matrix)
        alike = np.abs(values - values[0]) < 1e-9
        turn = np.linalg.qr(np.random.default_rng(3).normal(size=(alike.sum(),) * 2))[0]
        vectors = vectors.copy()
        vectors[:, alike] = vectors[:, alike] @ turn
        return values, -vectors

    monkeypatch.setattr(np.linalg, "eigh", turned)
    assert bids() == mine


def test_as_many_hours_as_the_risk_allows_may_be_broken() -> None:
    def judged(violated: float) -> Judged:
        ratios = {TRACKING: math.exp(violated)} if violated else {}
        return Judged(1.0, 1.0, 2.0, 0.0, 0.0, {}, not violated, True, ratios, 1.0, {})

    it = Candidate(Bid(1.0, 0.5), tuple(map(judged, [0, 0, 0, 3.0, 0, 0, 1.0, 2.0, 0, 0])))
    assert it.broken() == pytest.approx([1.0, 2.0, 3.0])
    assert it.broken(0.1) == pytest.approx([1.0, 2.0])
    assert it.broken(0.29) == pytest.approx([1.0])
    assert it.broken(0.3) == []
    assert it.rank(market(), 0.3) < it.rank(market(), 0.1)


@pytest.mark.parametrize("optimiser", ["search", "gradient"])
def test_nobody_bids_for_an_hour_of_which_nothing_is_known(optimiser: str) -> None:
    asked = market(hour_of, tuple(it._replace(arrivals=0.0) for it in KINDS))
    found = bid(BIDDINGS.make("aqa", {"optimiser": optimiser}), asked)
    assert found == Bid(mean_w(asked), 0.0)
    with pytest.raises(Fault, match="it goes by types of jobs, and there are none"):
        bid(BIDDINGS.make("aqa"), market(hour_of, ()))


def test_where_nothing_keeps_the_rules_it_bids_the_nearest_or_nothing() -> None:
    def never(offered: Bid, hour: int = 0, give_up: float = 0.0) -> Trial:
        return trial_of(np.full(COUNT, 0.5), offered.reserve_w, {})

    some = {"candidates": 40, "hours": 1}
    assert bid(BIDDINGS.make("aqa", some), market(never)).reserve_w > 0
    nothing = bid(BIDDINGS.make("aqa", {**some, "otherwise": "nothing"}), market(never))
    assert nothing.reserve_w == 0
    dear = market(never)._replace(reserve_price=0.0, error_price=10.0)
    assert bid(BIDDINGS.make("aqa", some), dear).reserve_w == 0, "no offer is cheaper"


def test_the_descent_is_told_of_waits_and_stays_where_types_are_stable() -> None:
    def waits(offered: Bid, hour: int = 0, give_up: float = 0.0) -> Trial:
        return hour_of(offered)._replace(waits={"a": np.arange(40.0), "b": np.arange(9.0)})

    asked = market(waits)
    how = optimiser_of("gradient", asked, 500)
    count = 0
    while not how.finished:
        bids = how.ask()
        how.tell([tried(asked, each, [1], tails=True) for each in bids])
        count += len(bids)
        assert all(each.average_w >= mean_w(asked) * (1 - 1e-9) for each in bids)
    assert count == 200


@pytest.mark.parametrize(
    ("given", "said"),
    [({"optimiser": "luck"}, "optimiser = 'luck'"), ({"hours": 0}, "hours = 0"),
     ({"margin": 1.0}, "margin = 1"), ({"risk": -0.1}, "risk = -0.1"),
     ({"otherwise": "all"}, "otherwise = 'all'"), ({"candidates": 0}, "candidates = 0")],
)  # fmt: skip
def test_what_is_asked_for_wrongly_is_refused(given: Any, said: str) -> None:
    with pytest.raises(Refused, match=said):
        BIDDINGS.make("aqa", given)
