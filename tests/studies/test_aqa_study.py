"""The study of AQA: its cases, what they come to, and claims that can fail."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from odonata.results.market_memory import simulate_market
from odonata.studies import named
from odonata.studies.aqa import PARTS, Aqa
from odonata.studies.aqa.cases import (
    BIDDERS,
    FILLER,
    AqaPlan,
    cases,
    mixes_of,
    of_mix,
    of_printed,
    of_service,
)
from odonata.studies.aqa.printed import FEASIBLE, TABLE_4, W3_BID
from odonata.studies.aqa.simulation import (
    COLD,
    HOUR_US,
    OWN,
    WARM,
    AqaOutcome,
    Offer,
    bids_of,
    market_of,
    model_of,
    numbers,
    row,
    simulate,
    types_of,
)
from odonata.study.contract import Claim, Verdict
from odonata.study.filling import fill
from odonata.study.store import Answer, from_line, to_line
from odonata.traces.mix import MIXES
from pdes.errors import Refused
from pdes.transport import Serial
from policies.bidding.judging import judge
from policies.views import Bid

STUDY = Aqa()
SMALL = Offer("W6", judge=3, train=2, candidates=20)


# -- cases


def test_every_part_has_its_cases_and_shares_those_of_others() -> None:
    assert isinstance(named("aqa"), Aqa)
    parts = {part: cases(STUDY.ask(part=part)) for part in PARTS}
    assert len(parts["mixes"]) == 14 * len(BIDDERS) * 2 * 2
    whole = cases(STUDY.ask())
    assert len(whole) == len({case.key for case in whole})
    assert {case.key for part in parts.values() for case in part} == {case.key for case in whole}
    shared = {case.key for case in parts["mixes"]} & {case.key for case in parts["signals"]}
    assert len(shared) == 14
    assert {case.mix for case in cases(STUDY.ask(mixes="W5, W1,W5"))} == {"W1", "W5"}


@pytest.mark.parametrize(
    ("asked", "said"),
    [({"mixes": "W15"}, "mixes = W15: all, or some of W1"), ({"hours": 1}, "hours = 1: 2"),
     ({"candidates": 0}, "candidates = 0: 1"), ({"mixes": ""}, "mixes = ")],
)  # fmt: skip
def test_plans_that_make_no_sense_are_refused(asked: Any, said: str) -> None:
    with pytest.raises(Refused, match=said):
        STUDY.ask(**asked)


def test_what_is_printed_agrees_with_itself() -> None:
    """Cost and saving of table 4 are rounded; with the printed bid of W4 they give its saving."""
    assert [*TABLE_4] == [f"W{at}" for at in range(1, 15)]
    assert TABLE_4["W4"].average_w == pytest.approx(8434, rel=0.01)
    assert pytest.approx((9577, 3256), abs=1) == W3_BID
    for mixes in FEASIBLE.values():
        assert set(mixes) <= set(TABLE_4)
    power_w = {mix: MIXES[mix].mean_w for mix in TABLE_4}
    off = [TABLE_4[mix].average_w / power_w[mix] - 1 for mix in TABLE_4]
    assert np.median(np.abs(off)) < 0.06, "averages follow the work that comes"


def test_thresholds_are_scaled_or_drawn_and_sizes_multiplied() -> None:
    plain, half, drawn, large = (types_of(*how) for how in ((1.0, 0, 1), (0.5, 0, 1), (1.0, 3, 1),
                                                            (1.0, 0, 100)))  # fmt: skip
    assert half.threshold == pytest.approx(plain.threshold / 2)
    assert ((drawn.threshold >= 2.0) & (drawn.threshold <= 7.9)).all()
    assert len(set(drawn.threshold)) > 15
    assert drawn.threshold.tolist() == types_of(1.0, 3, 1).threshold.tolist()
    assert large.nodes == pytest.approx(plain.nodes * 100)


# -- simulation


def test_an_hour_has_the_same_jobs_and_signal_under_every_policy() -> None:
    bid = Bid(9000.0, 1000.0, {})
    found = {}
    for policy in ("aqa", "energy-qare", "tracking-only"):
        market = market_of(replace(SMALL, policy=policy))
        assert market.trial is not None
        trial = market.trial(bid, 7)
        jobs = {name: len(each) for name, each in trial.degradations.items()}
        found[policy] = trial.target_w, jobs
    for target_w, jobs in found.values():
        assert target_w == pytest.approx(found["aqa"][0], abs=1e-6)
        assert jobs == found["aqa"][1]
    others = market_of(SMALL).trial(bid, 8)  # type: ignore[misc]
    assert np.abs(others.target_w - found["aqa"][0]).max() > 100


def test_what_a_trial_says_of_an_hour_is_what_a_run_says_that_has_it() -> None:
    """The hours of a trial have numbers and those of a run seeds, so that no two are the same; but
    over many their means agree."""
    bid, case = Bid(*of_printed("W3")["no standby jobs"]["bid"]), Offer("W3", standby=FILLER)
    market = market_of(case)
    tried = [judge(market, bid, market.trial(bid, hour)) for hour in range(1, 61)]  # type: ignore[misc]
    ran = []
    for seed in range(1, 21):
        run = simulate_market(model_of(case, seed, bid), HOUR_US, transport=Serial())
        assert run.market is not None
        ran.append(run.market.by_hour[0])
    errors = [it.error for it in tried], [it.error_mean or 0.0 for it in ran]
    savings = [it.saving for it in tried], [it.saving or 0.0 for it in ran]
    for mine, theirs in (errors, savings):
        spread = np.hypot(np.std(mine) / len(mine) ** 0.5, np.std(theirs) / len(theirs) ** 0.5)
        assert abs(np.mean(mine) - np.mean(theirs)) < 4 * spread


def test_in_sample_a_bid_is_made_for_every_hour_and_held_out_one_for_all() -> None:
    held, sample = simulate(SMALL), simulate(replace(SMALL, sample=True))
    assert (len(held.bids), len(sample.bids)) == (1, 3)
    assert len(held.hours[OWN]) == len(sample.hours[OWN]) == 3
    assert numbers(SMALL)[0] > 1000
    assert numbers(replace(SMALL, sample=True))[0] == 1
    bids, _, trials, _ = bids_of(replace(SMALL, sample=True))
    assert trials == sample.trials >= 3 * SMALL.candidates
    assert held.trials % SMALL.train == 0
    market = market_of(SMALL)
    assert sample.hours[OWN] == [row(market, bid, at) for at, bid in enumerate(bids, 1)]
    assert simulate(SMALL).hours == held.hours


def test_variants_judge_the_same_bid_again() -> None:
    found = simulate(replace(SMALL, also=("preemption", "no caps", "0.64", WARM)))
    assert {*found.hours} == {OWN, "preemption", "no caps", "0.64", COLD, WARM}
    assert all(len(rows) == 3 for rows in found.hours.values())
    assert found.hours[OWN] == simulate(SMALL).hours[OWN]
    errors = {name: sum(one["error"] for one in rows) for name, rows in found.hours.items()}
    assert errors["no caps"] > errors[OWN]
    assert errors["0.64"] != errors[OWN]


def test_a_grid_of_bids_goes_by_its_rule_on_the_hours_of_the_case() -> None:
    some = replace(SMALL, policy="energy-qare", standby=FILLER)
    quality, cost = (simulate(replace(some, rule=rule)).bids[0] for rule in ("quality", "cost"))
    assert quality["reserve_w"] <= cost["reserve_w"]
    assert quality != cost


def test_outcomes_survive_their_store() -> None:
    found = simulate(replace(SMALL, kept=True, also=("preemption",)))
    assert found.steps[0]["weights"].keys() == {"bt.C.36", "lu.D.28"}
    assert len(found.seen[OWN]["power_w"]) == 3600
    key, again = from_line(to_line(Answer(SMALL, found)), STUDY)
    assert key == SMALL.key
    assert again == found


def test_a_bid_at_a_stated_risk_comes_with_its_front(monkeypatch: pytest.MonkeyPatch) -> None:
    from odonata.studies.aqa import simulation

    few = {"train_on": 2, "choose_by": 10, "judge_on": 12}
    real = simulation.at_risk
    monkeypatch.setattr(simulation, "at_risk", lambda market, how, risk, train_on: real(
        market, how, risk, **few))  # fmt: skip
    monkeypatch.setattr(simulation, "FRESH_HOURS", 5)
    found = simulate(replace(SMALL, standby=FILLER, risk=0.2))
    assert found.chance["judged"][1] == 12
    assert found.chance["chosen"][1] == 10
    assert len(found.hours[OWN]) == 5
    front = found.chance["front"]
    assert len(front) % 5 == 0, "every bid with five reserves"
    assert all(0 <= point[1] <= point[2] == 10 for point in front)


# -- claims


def invented(case: Offer, saving: float, kept: bool, error: float = 0.1) -> AqaOutcome:
    """Returns an outcome in which every hour is the same."""
    one = {"kept": kept, "rule": kept, "qos": kept, "saving": saving, "cost": 0.5, "error": error,
           "bad": 0.05, "worst": 0.5, "late": {"is.D.64": 0.0}}  # fmt: skip
    rows = [{**one, "saving": saving + 1e-4 * (at % 3)} for at in range(case.judge)]
    bids = [{"average_w": 8434.0, "reserve_w": 3000.0, "weights": {"is.D.64": 0.3}}]
    names = (OWN, *case.also, *((COLD,) if WARM in case.also else ()))
    return AqaOutcome(bids * len(rows), [1], dict.fromkeys(names, rows), 100, 1.0)


def claimed(plan: AqaPlan, made: Any) -> dict[str, Claim]:
    outcomes = {case.key: made(case) for case in cases(plan)}
    return {claim.name: claim for claim in STUDY.claims(plan, outcomes)}


def test_claims_of_table_4_hold_or_do_not() -> None:
    plan = STUDY.ask(part="mixes", mixes="W4")

    def good(case: Offer) -> AqaOutcome:
        return invented(case, 0.31 if case.policy == "aqa" else 0.1, case.policy == "aqa")

    found = claimed(plan, good)
    assert found["W4: saving"].holds
    assert found["W4: average"].holds
    assert found["aqa meets them on more mixes than energy-qare"].holds
    assert found["aqa: mixes on which all constraints are met, in an hour"].holds
    bad = claimed(plan, lambda case: invented(case, 0.2, True))
    assert bad["W4: saving"].holds is False
    assert bad["W4: late jobs of is.D.64 under energy-qare"].holds is False
    assert bad["aqa meets them on more mixes than energy-qare"].holds is False
    nobody = claimed(plan, lambda case: invented(case, 0.31, False))
    assert nobody["W4: saving"].ours == "no bid keeps all rules in any of 20 hours"
    assert nobody["W4: saving"].holds is False


def test_bids_at_a_risk_have_to_fail_as_seldom_as_they_say() -> None:
    plan = STUDY.ask(part="risk", mixes="W2")

    def failing(count: int) -> dict[str, Claim]:
        def made(case: Offer) -> AqaOutcome:
            found = invented(case, 0.3, True)
            (row,) = found.hours[OWN][:1]
            rows = [{**row, "kept": at >= count} for at in range(200)]
            return replace(found, hours={OWN: rows}, chance={"judged": [20, 400], "front": []})

        return claimed(plan, made)

    name = "W2, deviation 0.4, risk 10%"
    good, middling, bad = failing(9), failing(16), failing(28)
    assert good[f"{name}: failed share of 200 fresh hours"].holds
    assert good[f"{name}: it is not above the stated risk"].holds
    assert middling[f"{name}: it is not above the stated risk"].verdict is Verdict.SIGN
    assert bad[f"{name}: failed share of 200 fresh hours"].holds is False
    assert bad[f"{name}: it is not above the stated risk"].holds is False
    assert bad[f"{name}: it is not above the stated risk"].verdict is Verdict.NOT
    assert good[f"{name}: saving"].values["mean"] == pytest.approx(0.3, abs=1e-3)


@pytest.mark.parametrize(
    ("part", "name"),
    [("signals", "bids made at 0.40 keep fewer hours at 0.64"),
     ("signals", "bids made at 0.64 keep more there than those made at 0.40"),
     ("weights", "weights that adapt keep more hours: gain 4, at the bids of fixed weights"),
     ("service", "W4, thresholds halved: more than EnergyQARE keeps"),
     ("mixes", "held out, standby jobs bt.C.16: aqa keeps more hours than energy-qare")],
)  # fmt: skip
def test_what_one_keeps_more_than_another_has_to_be_more(part: str, name: str) -> None:
    plan = STUDY.ask(part=part, mixes="W4")

    def made(case: Offer, better: bool) -> AqaOutcome:
        found = invented(case, 0.3, True)
        own = found.hours[OWN]
        worse = [{**one, "kept": False} for one in own]
        hours = dict(found.hours)
        if better and case.policy != "aqa":
            hours = dict.fromkeys(hours, worse)
        if better and "0.64" in hours:
            hours["0.64"] = worse
        if part == "weights" and better and "gain 4" in hours:
            hours[OWN] = worse
        return replace(found, hours=hours)

    assert claimed(plan, lambda case: made(case, True))[name].holds
    assert claimed(plan, lambda case: made(case, False))[name].holds is False


def test_what_a_descent_or_a_large_machine_does_not_keep_does_not_hold() -> None:
    for part, name in (("gradient", "descent: hours in which a bid keeps all rules"),
                       ("scale", "… hours that a bid keeps")):  # fmt: skip
        plan = STUDY.ask(part=part, mixes="W1")

        def some(case: Offer, kept: int) -> AqaOutcome:
            found = invented(case, 0.25, True)
            rows = [{**one, "kept": at >= kept} for at, one in enumerate(found.hours[OWN])]
            return replace(found, hours={OWN: rows})

        assert claimed(plan, lambda case: some(case, 0))[name].holds
        assert claimed(plan, lambda case: some(case, 1))[name].holds is False


def test_preemption_and_standby_jobs_have_to_lower_the_error() -> None:
    plan = STUDY.ask(part="printed", mixes="W3,W5")

    def made(case: Offer) -> AqaOutcome:
        found = invented(case, 0.3, True, 0.30 if case.mix == "W3" and not case.standby else 0.147)
        rows = [
            {**one, "error": 0.095 + 1e-4 * (at % 2)} for at, one in enumerate(found.hours[OWN])
        ]
        lower = [{**one, "error": 0.062 + 1e-4 * (at % 2)} for at, one in enumerate(rows)]
        if case.mix == "W5":
            return replace(found, hours={OWN: rows, "preemption": lower})
        return found

    found = claimed(plan, made)
    for name in ("W3 at its printed bid: error, no standby jobs",
                 "W3: standby jobs lower the error", "W5 at its printed bid: error with preemption",
                 "W5 at its own bids: preemption lowers the error"):  # fmt: skip
        assert found[name].holds, name
    same = claimed(plan, lambda case: invented(case, 0.3, True, 0.2))
    assert same["W5 at its own bids: preemption lowers the error"].holds is False
    assert same["W3: standby jobs lower the error"].holds is False


def test_a_plan_without_all_of_its_outcomes_claims_nothing_of_these() -> None:
    plan = STUDY.ask(mixes="W4")
    assert STUDY.claims(plan, {}) == []
    one = plan.of("W4", of_mix("W4"))
    assert STUDY.claims(plan, {one.key: invented(one, 0.3, True)}) == []


def test_settings_of_the_service_are_those_of_the_mix_with_other_thresholds() -> None:
    assert of_service(0.5)["level"] == 0.5
    assert of_service() | {"also": ("preemption",)} == of_mix("W4") | {"level": 1.0, "drawn": 0}
    assert mixes_of("all") == tuple(TABLE_4)


# -- all together


@pytest.mark.parametrize(
    ("part", "mixes", "pictures"),
    [("printed", "W3,W5", ["10.png", "11.png"]),
     pytest.param("mixes", "W6", ["mixes.png"], marks=pytest.mark.long),
     pytest.param("gradient", "W4", [], marks=pytest.mark.long)],
)  # fmt: skip
def test_a_small_study_is_simulated_claimed_drawn_and_the_same_on_two_processes(
    part: str, mixes: str, pictures: list[str], tmp_path: Path
) -> None:
    plan = STUDY.ask(part=part, mixes=mixes, hours=2, candidates=4)
    _, one = fill(STUDY, plan, tmp_path / "one", 1)
    _, two = fill(STUDY, plan, tmp_path / "two", 2)
    said = [[(claim.name, claim.ours) for claim in STUDY.claims(plan, each.outcomes)]
            for each in (one, two)]  # fmt: skip
    assert said[0] == said[1]
    assert len(said[0]) > 1
    drawn = STUDY.figures(plan, one.outcomes, tmp_path / "figures", pdf=False)
    assert [path.name for path in drawn] == pictures
