"""`odonata bid`, and the search that it is: the same however it is simulated."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from odonata.bids.plan import BidPlan
from odonata.bids.risk import at_risk
from odonata.bids.searching import BidSearch, Came, market_in
from odonata.bids.training import JUDGE, TRAIN, best_so_far, judged, report, train
from odonata.commands.bid import BID, RESULTS, SEARCH, command
from odonata.commands.bid_file import read_bid
from odonata.commands.regulate_asked import Asked
from pdes.errors import Refused
from policies.views import Bid

WHAT = ("--workload", "W4", "--standby", "bt.C.16")
FEW = ("--candidates", "22", "--train", "2", "--judge", "23", "--jobs", "1")


def invoke(*words: Any) -> str:
    result = CliRunner().invoke(command, [str(word) for word in words])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    out = tmp_path_factory.mktemp("bid") / "mine"
    words = (*WHAT, *FEW, "-o", out, "--plot", out.with_suffix(".svg"), "--json")
    return json.loads(invoke(*words)), out


@pytest.fixture(scope="module")
def plan() -> BidPlan:
    _, text = Asked("W4", "aqa", 1, False, standby="bt.C.16", bid="aqa").experiment()
    return BidPlan(text, "this", candidates=22, train=2, judge=23)


def without_place(facts: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if name != "out"}


def test_the_bid_is_the_best_on_hours_it_knew_and_judged_on_others(
    told: tuple[dict[str, Any], Path], plan: BidPlan
) -> None:
    facts, out = told
    market = market_in(plan.text)
    trained = train(market, plan.how, range(TRAIN, TRAIN + 2))
    bid = trained.best.bid
    assert facts["bid"] == bid._asdict()
    assert facts["tried"] == len(facts["steps"]) == len(trained.every)
    assert facts["steps"][3] == trained.steps[3]._asdict()
    for which, hours in (("before", range(TRAIN, TRAIN + 2)), ("after", range(JUDGE, JUDGE + 23))):
        found = report(market, judged(market, bid, hours))
        assert facts[which]["hours"] == len(hours)
        assert facts[which]["kept"] == found.kept
        assert facts[which]["saving"] == found.saving
        assert facts[which]["late"] == found.late
    low, high = facts["after"]["chance_interval"]
    assert low <= facts["after"]["chance_of_failure"] <= high
    best = best_so_far(market, trained.every)
    assert trained.every[best[-1]] == trained.best
    assert best == sorted(best)
    assert out.with_suffix(".svg").read_text().startswith("<?xml")


def test_regulate_offers_what_the_file_of_a_bid_says(
    told: tuple[dict[str, Any], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    from odonata.commands.regulate import say_other

    facts, out = told
    asked = Asked("W4", "aqa", 1, False, standby="bt.C.16", bid=str(out / BID))
    made, _ = asked.experiment()
    trading = made.model().trading
    assert trading is not None
    assert trading.policy.bid(made.model().first_market())._asdict() == facts["bid"]
    say_other(made, asked)
    assert capsys.readouterr().err == ""
    other = replace(asked, nodes=40, standby=None)
    say_other(other.experiment()[0], other)
    said = capsys.readouterr().err
    assert "made for something else: nodes 35, here 40; standby bt.C.16, here none" in said
    failing = json.loads((out / BID).read_text()) | {"keeps_risk": False}
    (out / "none.json").write_text(json.dumps(failing))
    say_other(made, replace(asked, bid=str(out / "none.json")))
    assert "fails more often than the risk that was asked for" in capsys.readouterr().err
    (out / "none.json").write_text('{"average_w": 3}')
    for name, why in (("none.json", "no average_w and reserve_w"), ("away.json", "cannot be read")):
        with pytest.raises(Refused, match=why):
            replace(asked, bid=str(out / name)).experiment()
    (out / "none.json").unlink()


def test_an_hour_that_was_dropped_is_made_again_as_it_was(
    plan: BidPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    market, bid = market_in(plan.text), Bid(9000.0, 2000.0)
    market_in.cache_clear()
    expected = judged(market, bid, [1, 2, 3, 1])
    monkeypatch.setattr("odonata.cluster.tried.MOST_HOURS", 1)
    assert judged(market_in(plan.text), bid, [1, 2, 3, 1]) == expected


@pytest.mark.parametrize("risk", [None, 0.5])
def test_a_search_hears_outcomes_in_any_order_and_finds_the_same(
    plan: BidPlan, risk: float | None
) -> None:
    """Outcomes come so from processes that end as they like, and from a file."""
    if risk is not None:
        plan = replace(plan, risk=risk, candidates=11, train=2, choose=21, judge=9)
    study, outcomes = BidSearch(plan), dict[str, Came]()
    asked = study.cases(plan, outcomes)
    while study.found is None:
        case = [case for case in asked if case.key not in outcomes][-1]
        fields = asdict(study.simulate(case))
        outcomes[case.key] = study.revive(json.loads(json.dumps(fields)))
        asked = study.cases(plan, outcomes)
    again = BidSearch(plan)
    again.cases(plan, outcomes)
    assert again.found == study.found
    market = market_in(plan.text)
    if risk is None:
        assert study.found.trained == train(market, plan.how, range(TRAIN, TRAIN + 2))
    else:
        assert study.found.at_risk == at_risk(market, plan.how, risk, 2, 21, 9)
    assert max(len(case.hours) for case in asked) == 20


def test_the_descent_goes_on_from_a_file_too(plan: BidPlan) -> None:
    plan = replace(plan, optimiser="gradient", train=1, judge=1, candidates=4)
    study, outcomes = BidSearch(plan), dict[str, Came]()
    while study.found is None:
        for case in study.cases(plan, outcomes):
            fields = json.loads(json.dumps(asdict(study.simulate(case))))
            outcomes[case.key] = study.revive(fields)
    assert study.found.trained == train(market_in(plan.text), plan.how, range(TRAIN, TRAIN + 1))


def test_what_was_cut_short_goes_on_and_another_search_is_refused(
    told: tuple[dict[str, Any], Path], tmp_path: Path
) -> None:
    facts, before = told
    out = tmp_path / "mine"
    out.mkdir()
    (out / SEARCH).write_bytes((before / SEARCH).read_bytes())
    text = (before / RESULTS).read_bytes()
    (out / RESULTS).write_bytes(text[: len(text) // 2])
    again = json.loads(invoke(*WHAT, *FEW, "-o", out, "--json"))
    assert without_place(again) == without_place(facts)
    assert (out / BID).read_bytes() == (before / BID).read_bytes()
    with pytest.raises(Refused, match="another search is there"):
        invoke(*WHAT, *FEW, "--margin", "0.1", "-o", out)
    text = invoke(*WHAT, *FEW, "--candidates", 10, "--margin", "0.1", "--overwrite", "-o", out)
    assert json.loads((out / SEARCH).read_text())["margin"] == 0.1
    assert "trained on judged on" in " ".join(text.split())
    assert "2 of 2" in text or "No bid kept all rules" in text


@pytest.mark.long
def test_two_ranks_find_what_one_does(odonata: Any, told: tuple[dict[str, Any], Path]) -> None:
    done = odonata("bid", *WHAT, *FEW[:-2], "--json", ranks=2)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == without_place(told[0])


def test_with_a_risk_its_interval_and_the_front_are_shown() -> None:
    text = invoke(*WHAT, *FEW, "--risk", 0.4, "--choose", 20, "--judge", 20)
    for words in ("a failed hour below 40%", "at 95 %): ", "Of the next 200 hours",
                  "worst Q", "chosen by judged on"):  # fmt: skip
        assert words in " ".join(text.split()), text


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--trace", "march.swf"), "of a trace nothing is known before it begins: bid during"),
        ((), "which jobs? --workload W4"),
        (("--workload", ""), "one of W1,"),
        (("--workload", "W4", "--load", "0"), r"--load \(trace.load\)"),
        (("--workload", "W4", "--train", "0"), "--train 0: at least one hour"),
        (("--workload", "W4", "--judge", "0"), "--judge 0: at least one hour"),
        (("--workload", "W4", "--candidates", "0"), "at least one bid"),
        (("--workload", "W4", "--risk", "1.5"), "a chance between 0 and 1"),
        (("--workload", "W4", "--risk", "nan"), "a chance between 0 and 1"),
        (("--workload", "W4", "--risk", "0.01"), "too few to show that, .* --choose 299"),
        (("--workload", "W4", "--risk", "1e-17"), "too few to show that"),
        (("--workload", "W4", "--signal", "regd.csv"), "have a signal that is made"),
        (("--workload", "W4", "--choose", "9"), "only with --risk"),
        (("--workload", "W4", "--margin", "1"), "from 0 to less than 1"),
        (("--workload", "W4", "--optimiser", "luck"), "search or gradient"),
        (("--workload", "W4", "--policy", "none"), "it does not follow a target"),
        (("--workload", "W4", "--set", "market.bidding=fixed"), "nobody bids in the hours"),
        (("--workload", "W4", "--plot", "mine.doc"), "the name must end in .png"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(words: tuple[str, ...], why: str) -> None:
    with pytest.raises(Refused, match=why.replace("?", r"\?")) as refused:
        invoke(*words)
    assert "\n" not in str(refused.value)


def test_a_directory_with_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("all my work")
    with pytest.raises(Refused, match="there is something in it, and no search"):
        invoke(*WHAT, "-o", tmp_path, "--overwrite")


@pytest.mark.parametrize(
    "said",
    ['{"average_w": 1' + "0" * 400 + ', "reserve_w": 1}', "[" * 100_000, '{"average_w": 9}',
     '{"average_w": 9, "reserve_w": 1, "weights": {"a=2 b": 1}}', '{"average_w": true}',
     '{"average_w": 9, "reserve_w": NaN}', '{"average_w": 9, "reserve_w": 10}', "", "[]"],
)  # fmt: skip
def test_a_file_that_is_no_bid_is_refused(said: str, tmp_path: Path) -> None:
    path = tmp_path / "bid.json"
    path.write_text(said)
    with pytest.raises(Refused, match=f"--bid {path}: "):
        read_bid(path)
    path.write_text('\ufeff{"average_w": 9, "reserve_w": 1}', encoding="utf-8")
    assert read_bid(path)["average_w"] == 9


def test_a_bid_where_energy_costs_nothing_has_no_saving() -> None:
    words = (*WHAT, "--candidates", "11", "--train", "1", "--judge", "2", "--jobs", "1")
    text = invoke(*words, "--prices=-0.1,0.1,0.1", "--json")
    assert "NaN" not in text
    assert json.loads(text)["after"]["saving"] is None
    assert "nan" not in invoke(*words, "--prices=0,0.1,0.1")


def test_what_a_broken_rule_costs_is_in_the_cost() -> None:
    words = (*WHAT, "--candidates", "11", "--train", "1", "--judge", "9", "--jobs", "1", "--json")
    plain, dear = (json.loads(invoke(*words, "--set", f"market.violation={cost}", "--margin", 0))
                   for cost in (0, 1e-6))  # fmt: skip
    assert dear["bid"] == plain["bid"]
    broken = plain["after"]["hours"] - plain["after"]["kept_rule"]
    added = dear["after"]["cost"] - plain["after"]["cost"]
    assert added == pytest.approx(1e-6 * broken / 9, abs=1e-12)
