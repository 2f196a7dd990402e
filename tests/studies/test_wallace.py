"""The study of Wallace's learner: which simulations it has, what they give, and what follows."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pages import DOCS, anchors

from odonata.studies import named
from odonata.studies.wallace import Wallace, figures
from odonata.studies.wallace.cases import (
    CAPS,
    HIGH,
    LOW,
    MIDDLE,
    ORDERS,
    SOME,
    WallacePlan,
    cases,
)
from odonata.studies.wallace.found import UTILISATION, WAIT, change, gain, learning_rate
from odonata.studies.wallace.simulation import (
    BIN_US,
    DAY_US,
    LEARNER,
    NAIVE,
    NONE,
    VARIABLE,
    Part,
    WallaceOutcome,
    model_of,
    outlying,
    power_of,
    simulate,
    year,
)
from odonata.study.contract import Claim, Verdict
from odonata.study.store import Answer, from_line, to_line
from odonata.traces.mira import NODES
from pdes.errors import Refused

STUDY = Wallace()
SHORT: dict[str, Any] = {"days": 8, "months": 2}
NO_VIOLATION = {"deadlock": 0, "cap lowered": 0, "estimate too low": 0, "not controlled": 0}


def outcome(
    wait_s: float, used: float, deadlocks: int = 0, whole: WallacePlan | None = None
) -> WallaceOutcome:
    """An outcome of a month, or of all months alike of a year."""
    months = whole.months if whole else 1
    days = whole.days if whole else 0
    bins = days * DAY_US // BIN_US
    return WallaceOutcome(
        jobs=(10,) * months, wait_s=(wait_s,) * months, utilisation=(used,) * months,
        intervals=1000, violations=NO_VIOLATION | {"deadlock": deadlocks},
        mean_kw=(2500,) * bins, highest_kw=(3100 if deadlocks else 2900,) * bins,
        known=tuple(94 * (d + 1) for d in range(days)), unknown=(6,) * days,
        sets_known=(8,) * days, sets_seen=(10,) * days, digest="d", seconds=0.5,
        outliers=(4,) * months, whole_outliers=(1,) * months, whole_jobs=(2,) * months,
    )  # fmt: skip


def invented(
    asked: WallacePlan, give: Callable[[Part], tuple[float, float]]
) -> dict[str, WallaceOutcome]:
    """Every run of a study, with the wait and the utilisation that `give` says."""
    return {
        part.key: outcome(*give(part), 5, asked if part.month is None else None)
        for part in cases(asked)
    }


def ordinary(part: Part) -> tuple[float, float]:
    """The learner waits for twice as long as without a cap, the naive policy for three times."""
    return {NONE: (100.0, 0.8), NAIVE: (300.0, 0.6), LEARNER: (200.0, 0.7)}[part.policy]


def named_so(found: list[Claim], *words: str) -> list[Claim]:
    return [claim for claim in found if all(word in claim.name for word in words)]


# -- which simulations


def test_a_study_of_that_name_is_listed() -> None:
    assert isinstance(named("wallace"), Wallace)


def test_every_run_is_named_once_and_has_a_key_of_its_own() -> None:
    parts = cases(STUDY.ask(days=24, years=2))
    assert len({part.key for part in parts}) == len(parts)
    assert len(STUDY.ask().cell("fcfs", NAIVE, LOW)) == 12
    assert sum(part.month is None for part in parts) == 12  # three of each year in each order


def test_years_have_seeds_of_their_own_and_causes_are_of_the_first() -> None:
    parts = cases(STUDY.ask(days=24, seed=7, years=3))
    assert {part.seed for part in parts} == {7, 8, 9}
    assert {part.seed for part in parts if part.load != 0.83 or part.strangers} == {7}
    with pytest.raises(Refused, match="years = 0"):
        STUDY.ask(years=0)


def test_a_run_of_the_year_takes_the_place_of_twelve() -> None:
    asked = STUDY.ask("caps", "year", days=24, years=1)
    assert all(part.month is None for part in cases(asked))
    assert len(cases(asked)) == len(ORDERS) * (2 + 2 * len(CAPS))


@pytest.mark.parametrize(
    ("options", "words"),
    [({"months": 0}, "months = 0"), ({"days": 1}, "days = 1"), ({"load": 5.0}, "load = 5.0"),
     ({"seed": -1}, "seed = -1"), ({"runs": "weeks"}, "runs = 'weeks'"),
     ({"days": 10, "months": 6}, "months = 6")],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(Refused, match=words):
        STUDY.ask(**options)


def test_the_variable_cap_has_three_changes_a_quarter_of_the_year_apart() -> None:
    steps = power_of(Part("fcfs", LEARNER, VARIABLE)).steps("cap", 10**6)
    assert steps is not None
    assert steps.levels == (2e6, 3e6, 4e6, 2e6)
    assert steps.begins == tuple(quarter * 365 * DAY_US // 4 for quarter in range(4))


def test_jobs_start_by_intervals_under_every_policy() -> None:
    parts = [Part("wfp", policy, MIDDLE) for policy in (NONE, NAIVE, LEARNER)]
    assert {power_of(part).passes for part in parts} == {"intervals"}


# -- what a simulation gives


def test_months_together_have_all_jobs_of_the_year_and_their_power() -> None:
    trace, demand = year(1, 0.83, 8)
    models = [model_of(Part("fcfs", NONE, MIDDLE, month=month, **SHORT)) for month in (0, 1)]
    assert sum(len(model.trace) for model in models) == len(trace)
    assert np.array_equal(np.concatenate([model.demand.mean_w for model in models]), demand.mean_w)
    assert all(model.trace.submit_us[0] >= 0 for model in models)
    assert all(model.trace.submit_us[-1] < 4 * DAY_US for model in models)


def test_the_year_is_made_once_per_process() -> None:
    part = Part("fcfs", NONE, MIDDLE, month=0, **SHORT)
    model_of(part)
    before = year.cache_info().misses
    model_of(replace(part, month=1, order="wfp", policy=NAIVE))
    assert year.cache_info().misses == before


def test_utilisation_and_wait_are_of_the_month_alone() -> None:
    part = Part("fcfs", NONE, MIDDLE, **SHORT)
    found, trace = simulate(part), year(1, 0.83, 8)[0]
    assert sum(found.jobs) == len(trace)
    work_us = float(trace.run_us @ trace.nodes.astype(np.float64))
    used = sum(found.utilisation) / 2
    assert 0.6 < used <= 1
    assert used * 8 * DAY_US * NODES < work_us  # some of the work is done after the last day
    assert len(found.mean_kw) == 8 * 8
    assert max(found.highest_kw) <= 4800
    assert found.capping_success < 0.9  # nobody keeps to the cap


def test_a_month_begins_with_an_empty_machine() -> None:
    """The second half of a year that is run in one waits for the first; on its own it does not."""
    asked: dict[str, Any] = {"cap": LOW, "load": 0.95, "days": 4, "months": 2}
    whole = simulate(Part("fcfs", NAIVE, **asked))
    alone = [simulate(Part("fcfs", NAIVE, month=month, **asked)) for month in (0, 1)]
    assert alone[0].jobs + alone[1].jobs == whole.jobs
    assert alone[1].wait_s[0] < whole.wait_s[1]


def test_nothing_is_known_of_strangers() -> None:
    part = Part("fcfs", LEARNER, LOW, days=4, months=2)
    usual, strangers = simulate(part), simulate(replace(part, strangers=True))
    assert usual.known[-1] > 2 * usual.unknown[-1]
    assert strangers.known[-1] == 0
    assert strangers.unknown[-1] > 0
    assert usual.capping_success > 0.9


def test_an_outcome_comes_back_from_its_line_as_it_was() -> None:
    part = Part("wfp", LEARNER, MIDDLE, **SHORT)
    found = outcome(1.5, 0.25, 3, STUDY.ask(**SHORT))
    assert from_line(to_line(Answer(part, found)), STUDY) == (part.key, found)
    with pytest.raises(TypeError, match="wait_s"):
        STUDY.revive({"jobs": [1]})
    before = {name: value for name, value in asdict(found).items() if "outliers" not in name}
    assert STUDY.revive(before).outliers == (), "a store of before there were such"


def test_an_outlier_is_far_above_the_quartiles_of_its_month() -> None:
    wait = np.array([0, 1, 2, 3, 4, 7.1, 100, 100, 100, 100, 100, 100])
    month = np.array([0] * 6 + [1] * 6)
    assert np.flatnonzero(outlying(wait, month, 3)).tolist() == []
    wait[5] = 7.8  # the quartiles of 0 .. 4, 7.8 are 1.25 and 3.75: more than 7.5
    assert np.flatnonzero(outlying(wait, month, 3)).tolist() == [5]


# -- what follows


def test_changes_and_gains_are_relative_to_a_run_without_a_cap() -> None:
    asked = STUDY.ask("caps", days=24, years=1)
    outcomes = invented(asked, ordinary)
    assert np.allclose(change(STUDY.measured(asked, outcomes), WAIT, "fcfs", NAIVE, LOW), 2.0)
    assert np.allclose(change(STUDY.measured(asked, outcomes), WAIT, "fcfs", LEARNER, LOW), 1.0)
    assert np.allclose(gain(STUDY.measured(asked, outcomes), WAIT, "wfp", HIGH), 1.0)
    assert np.allclose(gain(STUDY.measured(asked, outcomes), UTILISATION, "wfp", HIGH), 0.1 / 0.8)


def test_a_missing_month_is_left_out() -> None:
    asked = STUDY.ask("caps", days=24, years=1)
    outcomes = invented(asked, ordinary)
    del outcomes[asked.cell("fcfs", NAIVE, LOW)[4].key]
    found = gain(STUDY.measured(asked, outcomes), WAIT, "fcfs", LOW)
    assert np.isnan(found[4])
    assert np.isfinite(np.delete(found, 4)).all()
    (claim,) = named_so(
        STUDY.claims(asked, outcomes), "Wait, FCFS, 2,000 kW", "months of less than naive"
    )
    assert (claim.ours, claim.holds) == ("11 of 11", True)


def test_one_month_in_which_naive_is_better_breaks_the_claim() -> None:
    asked = STUDY.ask("caps", days=24, years=2)
    outcomes = invented(asked, ordinary)
    words = ("Wait, WFP, 3,000 kW", "less than naive")
    (claim,) = named_so(STUDY.claims(asked, outcomes), *words)
    assert (claim.ours, claim.holds) == ("24 of 24", True)
    outcomes[asked.cell("wfp", LEARNER, MIDDLE, seed=2)[7].key] = outcome(301.0, 0.7)
    (claim,) = named_so(STUDY.claims(asked, outcomes), *words)
    assert (claim.ours, claim.holds) == ("23 of 24", False)


def test_a_month_in_which_both_do_all_the_work_is_even() -> None:
    asked = STUDY.ask("caps", days=24, years=1)
    outcomes = invented(asked, ordinary)
    outcomes[asked.cell("fcfs", LEARNER, HIGH)[0].key] = outcome(200.0, 0.6)
    (claim,) = named_so(
        STUDY.claims(asked, outcomes), "Utilisation, FCFS, 4,000 kW", "months of more"
    )
    assert (claim.ours, claim.holds) == ("11 of 12, and 1 even", False)


def test_a_gain_holds_where_its_whole_interval_over_years_is_in_the_papers_range() -> None:
    asked = STUDY.ask("caps", days=24, years=3)
    words = ("FCFS, 2,000 kW", "gain over naive")

    def give(part: Part) -> tuple[float, float]:
        wait, used = ordinary(part)
        return (wait + spread * part.seed, used) if part.policy == NAIVE else (wait, used)

    spread = 10.0
    (claim, _) = named_so(STUDY.claims(asked, invented(asked, give)), *words)
    assert (claim.paper, claim.holds) == ("42 to 188 %", True)
    assert claim.ours == "120 ± 25 % (110 to 130)"
    assert claim.of == 3
    spread = 30.0  # 160 ± 75 %: above 0, and not within the range
    (claim, _) = named_so(STUDY.claims(asked, invented(asked, give)), *words)
    assert claim.verdict is Verdict.SIGN


def test_one_year_alone_is_sure_of_no_inequality() -> None:
    asked = STUDY.ask("caps", days=24, years=1)
    found = STUDY.claims(asked, invented(asked, ordinary))
    (claim,) = named_so(found, "Wait, FCFS, 4,000 kW: change by learner")[:1]
    assert claim.verdict is Verdict.NOT  # twice the wait
    (claim,) = named_so(STUDY.claims(asked, invented(asked, ordinary)), "naive waits for long")[:1]
    assert claim.verdict is Verdict.NOT  # in all months, but of one year


def test_capping_success_and_learning_rate_are_those_of_the_year() -> None:
    asked = STUDY.ask("year", days=40, months=2, years=2)
    outcomes = invented(asked, ordinary)
    found = STUDY.claims(asked, outcomes)
    steady, variable = (next(one for one in found if one.name == f"Year, FCFS: within {cap}")
                        for cap in ("3,000 kW", "the variable cap"))  # fmt: skip
    assert (steady.ours, steady.holds, steady.calibrated) == ("99.50 ± 0.00 %", True, True)
    assert (variable.ours, variable.holds, variable.calibrated) == ("99.50 ± 0.00 %", True, True)
    (learned,) = named_so(found, "WFP: jobs with a known profile, after 26 days")
    rate = float(learning_rate(outcomes[asked.part("wfp", LEARNER, MIDDLE).key])[25])
    assert learned.values["mean"] == rate == 94 * 26 / (94 * 26 + 6)
    assert not learned.holds  # too good


def test_not_all_violations_are_deadlocks() -> None:
    asked = STUDY.ask("year", days=40, months=2, years=2)
    outcomes = invented(asked, ordinary)
    words = ("Year, WFP: violations of 3,000 kW",)
    (claim,) = named_so(STUDY.claims(asked, outcomes), *words)
    assert (claim.ours, claim.verdict) == ("100 ± 0 %", Verdict.HOLDS)
    for seed in asked.seeds:
        key = asked.part("wfp", LEARNER, MIDDLE, seed=seed).key
        more = dict(outcomes[key].violations) | {"estimate too low": 3}
        outcomes[key] = replace(outcomes[key], violations=more)
    (claim,) = named_so(STUDY.claims(asked, outcomes), *words)
    assert (claim.ours, claim.verdict) == ("62 ± 0 %", Verdict.SIGN)


def test_the_power_of_jobs_is_what_it_was_made_to_be_but_for_the_most() -> None:
    asked = STUDY.ask("year", days=40, months=2, years=2)
    found = STUDY.claims(asked, invented(asked, ordinary))
    rows = named_so(found, "Jobs: power per rack")
    assert [one.name for one in rows if not one.holds] == ["Jobs: power per rack, most"]
    assert [one.name for one in rows if not one.calibrated] == ["Jobs: power per rack, most"]
    (example,) = named_so(found, "Example")
    assert (example.ours, example.holds) == ("J1, J2", True)


def test_causes_have_no_number_of_the_paper() -> None:
    asked = STUDY.ask("causes", days=24)
    found = STUDY.claims(asked, invented(asked, ordinary))
    (one,) = named_so(found, "Causes, FCFS, 3,000 kW: learner, window of 1")
    assert (one.paper, one.holds) == ("", None)
    assert one.ours == "wait +100 %, utilisation -12.5 %"
    assert named_so(found, "Loads, FCFS, 0.6")
    assert one.of == len(range(0, 12, SOME))


def test_claims_are_what_json_can_hold_and_say_where_they_stand_in_the_paper() -> None:
    asked = STUDY.ask(days=40, months=2, years=2)
    found = STUDY.claims(asked, invented(asked, ordinary))
    assert len(found) > 80
    assert len({one.name for one in found}) == len(found)
    assert json.loads(json.dumps([asdict(claim) for claim in found]))
    for one in found:
        assert bool(one.paper) == bool(one.source) == (one.verdict is not None), one.name
        if one.verdict not in (None, Verdict.HOLDS):
            page, _, anchor = one.cause.partition("#")
            assert anchor in anchors(DOCS / page), one.cause


def test_the_page_has_every_number_of_the_full_study_that_no_paper_prints() -> None:
    """Tables of what was printed are filled from the same file."""
    text = (DOCS / "power-wallace.md").read_text()
    kept = json.loads((DOCS / "papers" / "wallace.json").read_text())["claims"]
    lacking = [one["name"] for one in kept if not one["paper"] and f"| {one['ours']} |" not in text]
    assert lacking == []
    assert sum(not one["paper"] for one in kept) > 40


@pytest.mark.long
def test_all_figures_are_drawn_and_none_where_there_is_nothing(tmp_path: Path) -> None:
    asked = replace(STUDY.ask(days=40, months=2, years=2), parts=("year", "caps"))
    drawn = STUDY.figures(asked, invented(asked, ordinary), tmp_path / "figures", pdf=False)
    assert [path.stem for path in drawn] == list(figures.FIGURES)
    assert all(path.stat().st_size > 5000 for path in drawn)
    assert STUDY.figures(asked, {}, tmp_path / "none", pdf=False) == []
    assert not (tmp_path / "none").exists()
