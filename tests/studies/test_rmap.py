"""The study of RMAP: which simulations it has, what is measured of them, and what follows."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from odonata.provisioning.fitted import PRINTED, PRINTED_CAB, tables
from odonata.studies import named
from odonata.studies.rmap import PARTS, Rmap, figures
from odonata.studies.rmap.cases import (
    BOTH,
    CHOICES,
    HIGH_W,
    LOW_W,
    NOISES,
    PATTERNS,
    QUEUED,
    RANDOM_2,
    WAYS,
    RmapPlan,
    cases,
)
from odonata.studies.rmap.changes import change, spread
from odonata.studies.rmap.measures import Ran, compared, draw, measured
from odonata.studies.rmap.pages import filled, markdown
from odonata.studies.rmap.prediction import errors, keeps, summary, with_noise
from odonata.studies.rmap.printed import modelled, overprovisioned, packages, points, searched
from odonata.studies.rmap.readings import READINGS, by_job, only
from odonata.studies.rmap.simulation import (
    ADAPTIVE_0,
    ADAPTIVE_20,
    MARGIN,
    NAIVE,
    OPTIONS,
    ORACLE_0,
    POLICIES,
    READ,
    SHOWN,
    TRADITIONAL,
    RmapOutcome,
    Traced,
    Trained,
    row,
    run,
    simulate,
)
from odonata.studies.rmap.statements import statements
from odonata.study.contract import Claim, Verdict
from odonata.study.store import Answer, from_line, to_line
from odonata.traces.rmap import rmap
from pdes.errors import Refused

STUDY = Rmap()
DOCS = Path(__file__).parents[2] / "docs"
NUMBERS = {"wait_s": 10.0, "run_s": 50.0, "makespan_s": 900.0, "used": 0.5, "given_w": 3000.0,
           "to_fair": 0.9, "highest": 0.9, "planned": 0.95, "above": 0.0, "waited": 16.0,
           "killed": 0.0, "gained": 17.0, "lost": 13.0, "same": 0.0, "gained on 0 %": 13.0,
           "lost on 0 %": 3.0, "same on 0 %": 14.0, "turnaround_s high": 90.0,
           "turnaround_s normal": 95.0, "turnaround_s low": 99.0, "turnaround_s small": 80.0,
           "turnaround_s larger": 120.0}  # fmt: skip


def of_trace(case: Traced, give: Callable[[str, float], float]) -> RmapOutcome:
    """An outcome with the turnarounds that `give` says for each policy and bound."""
    rows = {row(policy, bound_w): NUMBERS | {"turnaround_s": give(policy, bound_w)}
            for policy in case.policies for bound_w in case.bounds_w}  # fmt: skip
    job = {"submit_s": [0.0, 5.0], "start_s": [0.0, 20.0], "end_s": [20.0, 60.0],
           "watts": [3000.0, 6000.0], "fair_w": [3250.0, 6500.0]}  # fmt: skip
    lists = {row(policy, bound_w): job for policy in SHOWN for bound_w in case.kept}
    return RmapOutcome(rows, lists, 0.1)


def invented(asked: RmapPlan, give: Callable[[str, float], float]) -> dict[str, RmapOutcome]:
    found = {}
    for case in cases(asked):
        if isinstance(case, Traced):
            found[case.key] = of_trace(case, lambda policy, bound_w, seed=case.seed: (  # type: ignore[misc]
                give(policy, bound_w) * (1.0 + 0.01 * (seed % 10) * (policy == ADAPTIVE_0))
            ))  # fmt: skip
        else:
            found[case.key] = simulate(replace(case, trainings=1))
    return found


def usual(policy: str, bound_w: float) -> float:
    """Adaptive takes four fifths of the time that traditional takes, naive the same."""
    return 80.0 if policy.startswith("adaptive") else 100.0


def named_so(found: list[Claim], *words: str) -> list[Claim]:
    return [claim for claim in found if all(word in claim.name for word in words)]


# -- cases


def test_a_study_of_that_name_is_listed() -> None:
    assert isinstance(named("rmap"), Rmap)


def test_every_part_has_its_cases_and_each_case_stands_once() -> None:
    counts = {part: len(cases(STUDY.ask(part=part))) for part in PARTS}
    assert counts["traces"] == 300 + 2 * 100 + 100, "two random traces, and large jobs that queue"
    assert counts["naive"] == 3 * 30 + 30, "large ones also where they queue"
    assert counts["options"] == 30 + 3 * 30 * 2, "with nodes that differ, and without"
    assert counts["choices"] == 3 * 30 * len(CHOICES)
    assert counts["prediction"] == 2 * len(NOISES) + len(WAYS)
    assert counts["printed"] == 0, "it needs no simulation"
    every = cases(STUDY.ask())
    assert len({case.key for case in every}) == len(every) == sum(counts.values())


def test_a_trace_is_simulated_under_all_policies_and_bounds() -> None:
    case = STUDY.ask().traced("large", 7)
    assert case.policies == tuple(POLICIES)
    assert len(case.policies) == 18
    assert case.bounds_w == (6500, 8000, 10000, 12000, 14000, 14720)
    assert case.kept == (LOW_W,)
    assert STUDY.ask(bounds=(8000.0,)).traced("large", 7).kept == ()
    assert "arrivals" not in case.fields(), "what came later leaves the keys of others alone"
    assert STUDY.ask().random(RANDOM_2, 7).fields()["arrivals"] == "even"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"traces": 0}, "traces = 0"),
        ({"bounds": (100.0,)}, "bounds: 100 W"),
        ({"gap": 0.0}, "gap = 0"),
        ({"seed": -1}, "seed = -1"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(options: dict[str, Any], words: str) -> None:
    with pytest.raises(Refused, match=words) as refusal:
        STUDY.ask(**options)
    assert "\n" not in str(refusal.value)


# -- what is measured


def two_jobs(**other: Any) -> Ran:
    """Two jobs of 3,000 and 4,000 W which are submitted at 0 and 10 s and overlap for 10 s."""
    arrays = {"submit_s": [0.0, 10.0], "start_s": [0.0, 20.0], "end_s": [30.0, 60.0],
              "watts": [3000.0, 4000.0], "planned_w": [2900.0, 3500.0], "fair_w": [3250.0, 3250.0],
              "killed": [False, True]} | other  # fmt: skip
    return Ran(**{name: np.array(values) for name, values in arrays.items()})


def test_the_measures_of_a_run_that_one_can_follow_by_hand() -> None:
    found = measured(two_jobs(), 6500.0)
    assert found["turnaround_s"] == pytest.approx((30 + 50) / 2)
    assert found["wait_s"] == pytest.approx(5)
    assert found["run_s"] == pytest.approx(35)
    assert found["used"] == pytest.approx((30 * 3000 + 40 * 4000) / 60 / 6500)
    assert found["highest"] == pytest.approx(7000 / 6500)
    assert found["planned"] == pytest.approx(6400 / 6500)
    assert found["above"] == pytest.approx(10 / 60)
    assert (found["waited"], found["killed"]) == (1, 1)
    assert found["to_fair"] == pytest.approx((3000 + 4000) / 3250 / 2)
    with_margin = measured(two_jobs(), 6500.0, MARGIN)
    assert with_margin["planned"] == pytest.approx(6400 / 6500 / 0.85)


def test_a_job_that_ends_as_another_starts_does_not_overlap_with_it() -> None:
    jobs = two_jobs(end_s=[20.0, 60.0])
    assert draw(jobs, jobs.watts).watts.tolist() == [3000, 4000, 0]


def test_who_gains_is_counted_job_by_job() -> None:
    other = two_jobs(end_s=[40.0, 60.0])
    assert compared(two_jobs(), other) == {"gained": 1, "lost": 0, "same": 1}
    assert compared(other, two_jobs(), " x") == {"gained x": 0, "lost x": 1, "same x": 1}


@pytest.fixture(scope="module")
def simulated() -> tuple[Traced, RmapOutcome]:
    """A trace under all policies at two bounds, with queues."""
    case = replace(STUDY.ask().traced("random", 3), bounds_w=(LOW_W, HIGH_W), gap_s=40.0)
    return case, simulate(case)


def test_no_plan_is_above_its_bound_and_nothing_known_is_exceeded(
    simulated: tuple[Traced, RmapOutcome],
) -> None:
    case, outcome = simulated
    assert set(outcome.rows) == {row(policy, it) for policy in POLICIES for it in case.bounds_w}
    for name, one in outcome.rows.items():
        policy = POLICIES[name.split(" @")[0]]
        assert one["planned"] <= 1 + 1e-9, name
        if not policy.learned:
            assert one["highest"] == pytest.approx(one["planned"])
            assert one["above"] == 0
            assert one["killed"] == 0
        assert one["turnaround_s"] == pytest.approx(one["wait_s"] + one["run_s"])
        assert one["gained"] + one["lost"] + one["same"] == 30


def test_the_model_plans_with_other_watts_than_jobs_draw(
    simulated: tuple[Traced, RmapOutcome],
) -> None:
    case, _ = simulated
    ours = run(case, ADAPTIVE_0, LOW_W)
    assert (ours.planned_w != ours.watts).all()
    assert np.abs(ours.planned_w / ours.watts - 1).max() < 0.5
    known = run(case, NAIVE, LOW_W)
    assert (known.planned_w == known.watts).all()


def test_simulated_twice_a_trace_gives_the_same_numbers(
    simulated: tuple[Traced, RmapOutcome],
) -> None:
    case, outcome = simulated
    some = replace(case, policies=(TRADITIONAL, ADAPTIVE_0), bounds_w=(LOW_W,))
    again = simulate(some).rows
    for name, one in again.items():
        assert {it: outcome.rows[name][it] for it in one} == one


def test_an_outcome_is_the_same_after_it_was_written_and_read(
    simulated: tuple[Traced, RmapOutcome],
) -> None:
    case, outcome = simulated
    assert outcome.lists, "single jobs are kept"
    key, revived = from_line(to_line(Answer(case, outcome)), STUDY)
    assert (key, revived) == (case.key, outcome)
    with pytest.raises(TypeError, match="rows"):
        STUDY.revive({"lists": {}})


# -- prediction


def test_the_limits_of_the_thesis_are_kept_and_broken_where_they_should_be() -> None:
    good = summary(np.full(100, 0.05), np.full(100, -0.05))
    assert keeps(good) == (True, True)
    assert keeps(summary(np.full(100, 0.08), np.full(100, 0.2))) == (False, True)
    power = np.zeros(100)
    power[:4] = -0.12
    assert keeps(summary(np.zeros(100), power)) == (True, True), "4 % of the points may be so low"
    power[0] = -0.16
    assert keeps(summary(np.zeros(100), power)) == (True, False)


def test_errors_are_of_points_that_the_model_has_not_seen() -> None:
    choices = tables("cab")["SM"].choices
    held, _ = errors("SM", choices, 0.1, 1)
    assert len(held) == len(choices) - round(0.1 * len(choices))
    every, _ = errors("SM", choices, 1.0, 1)
    assert len(every) == len(choices)


def test_noise_has_the_level_that_is_asked_for_and_other_seeds_other_noise() -> None:
    table = tables("cab")["SC"]
    noisy = with_noise(table, 0.05, 0.2, 1)
    assert np.log(noisy.seconds / table.seconds).std() == pytest.approx(0.05, rel=0.15)
    assert np.log(noisy.watts / table.watts).std() == pytest.approx(0.2, rel=0.15)
    assert (with_noise(table, 0.05, 0.2, 2).watts != noisy.watts).all()
    assert (with_noise(table, 0.0, 0.0, 1).seconds == table.seconds).all()


def test_noise_makes_predictions_worse_and_turbo_is_what_breaks_those_of_power() -> None:
    few = {"trainings": 8}
    none, much = (simulate(Trained(noise, noise, **few)) for noise in (0.0, 0.2))
    assert all(much.rows[name]["mean"] > none.rows[name]["mean"] for name in tables("cab"))
    assert max(none.rows[name]["mean"] for name in tables("cab")) < 0.1
    assert max(none.rows[name]["median"] for name in tables("cab")) < 0.077
    assert much.rows["all"]["kept time"] == 0
    without = simulate(Trained(0.0, 0.0, without_turbo=True, **few))
    assert without.rows["all"]["under 10"] < none.rows["all"]["under 10"] / 3
    assert sum(none.lists["SC"]["power"]) == pytest.approx(1, abs=1e-4)


# -- chapter 3


def test_every_printed_point_is_within_four_percent() -> None:
    found = points()
    assert len(found) == 3 * len(PRINTED) + len(PRINTED_CAB) == 15
    assert max(abs(it.error_s) for it in found) < 0.04
    assert max(abs(it.error_w) for it in found) < 0.04
    assert all(it.holds for it in found)


def test_the_search_finds_the_printed_nodes_and_cores_at_3500_w() -> None:
    found = {it.application: it for it in searched()}
    assert all(it.nodes_and_cores for it in found.values())
    assert found["SPhot"].found.cap_w == found["BT-MZ"].found.cap_w == 51
    for name in ("SP-MZ", "LU-MZ"):
        assert found[name].found.cap_w < found[name].printed.cap_w
        assert found[name].ties, "neither cap binds"
    moved = found["SPhot"]._replace(same_cap=modelled("rzmerl", "SPhot", 32, 16, 80))
    assert not moved.ties


def test_figures_52_and_53_have_the_printed_extremes() -> None:
    drawn = [it.ours_w for it in packages()]
    assert min(drawn) == pytest.approx(66, rel=0.015)
    assert max(drawn) == pytest.approx(93, rel=0.015)
    assert np.mean(drawn) == pytest.approx(81, rel=0.015)
    saved = [gain for _, _, gain in overprovisioned()]
    assert max(saved) == pytest.approx(0.34, abs=0.015)
    assert np.mean(saved) == pytest.approx(0.11, abs=0.015)


def test_statements_that_hold_and_that_do_not() -> None:
    found = {it.name: it.verdict for it in statements()}
    assert len(found) == len(statements()), "each stands once"
    assert found["4.2, 3,500 W: wasted in the worst case"] is Verdict.HOLDS
    assert found["3.4, unlimited: LU-MZ: best"] is Verdict.HOLDS
    assert found["3.4, unlimited: LU-MZ: best faster than packed-max"] is Verdict.SIGN
    assert found["3.4, 2,500 W: SP-MZ: packed-max"] is Verdict.NOT
    assert found["3.4, 2,500 W: SPhot: spread-min slower than packed-min"] is Verdict.SIGN
    sources = {it.source for it in statements()}
    assert {"Patki 3.3", "Patki 3.4", "Patki table 4.8", "Patki figure 3.7"} <= sources
    fitted = {it.name for it in statements() if it.fitted}
    assert "table 4.8: LU-MZ: slope, intercept, from 12 nodes on" in fitted
    assert "3.4, unlimited: SP-MZ: best" not in fitted


def test_the_page_on_overprovisioning_has_the_tables_that_the_code_makes() -> None:
    text = (DOCS / "overprovisioning.md").read_text()
    assert all(table in text for table in markdown().values()), (
        "python -m odonata.studies.rmap.pages"
    )
    assert filled(text) == text
    assert filled("<!-- best -->\nold\n<!-- end -->") == (
        f"<!-- best -->\n{markdown()['best']}<!-- end -->"
    )


# -- what follows


def test_the_mean_and_range_are_of_the_traces_that_are_there() -> None:
    assert not spread(np.array([np.nan, np.nan]))
    found = spread(np.array([np.nan, *np.arange(101.0)]))
    assert found is not None
    assert (found.mean, found.low, found.high, found.of) == (50.0, 5.0, 95.0, 101)
    assert found.it.half == pytest.approx(5.784, abs=0.001)
    assert found.near(61, 0.5)
    assert not found.near(63, 0.5)
    assert found.place(5) == "the printed one is within"
    assert found.place(96) == "the printed one is outside"


def test_a_change_is_judged_by_the_interval_of_its_mean_whatever_its_sign() -> None:
    found = spread(np.linspace(-0.12, -0.08, 40))
    assert found is not None
    verdicts = {printed: found.verdict(printed) for printed in (-0.1, -0.113, -0.2, 0.1)}
    assert [*verdicts.values()] == [Verdict.HOLDS, Verdict.HOLDS, Verdict.SIGN, Verdict.NOT]
    wide = spread(np.linspace(-0.5, 0.48, 40))
    assert wide is not None
    assert wide.verdict(-0.3) is Verdict.NOT, "its sign may be chance"


def test_a_change_over_all_bounds_is_the_mean_up_to_14000_w() -> None:
    asked = STUDY.ask("traces", traces=1, kind="large")

    def worse_at_the_peak(policy: str, bound_w: float) -> float:
        low = {6500.0: 0.5, 14720.0: 9.0}.get(bound_w, 1.0)
        return 100.0 * (low if policy == ADAPTIVE_20 else 1.0)

    outcomes = invented(asked, worse_at_the_peak)
    changes = change(STUDY.measured(asked, outcomes), "large", ADAPTIVE_20, TRADITIONAL)
    assert changes.tolist() == pytest.approx([-0.1])
    changes = change(STUDY.measured(asked, outcomes), "large", ADAPTIVE_20, TRADITIONAL, 14720.0)
    assert changes.tolist() == pytest.approx([8.0])


def test_a_printed_change_has_three_verdicts_a_source_and_a_cause() -> None:
    asked = STUDY.ask("traces", traces=20)
    found = STUDY.claims(asked, invented(asked, usual))
    (large,) = named_so(found, "5.6.2: large, all bounds: adaptive 0 % against traditional")
    assert (large.paper, large.of, large.verdict) == ("-14.3 %", 20, Verdict.HOLDS)
    assert (large.source, large.cause, large.calibrated) == ("Patki 5.6.2", "", False)
    (naive,) = named_so(found, "5.6.2: large, all bounds: adaptive 0 % against naive")
    assert (naive.paper, naive.verdict) == ("-21.7 %", Verdict.SIGN)
    assert naive.cause == "rmap.md#what-makes-naive-so-slow"
    (small,) = named_so(found, "5.6.2: small, all bounds: adaptive 0 % against traditional")
    assert (small.paper, small.verdict, small.calibrated) == ("+16.6 %", Verdict.NOT, True)
    (slow,) = named_so(found, f"5.6.3: {QUEUED}, 6,500 W: naive against traditional")
    assert slow.verdict is Verdict.NOT, "no change has no sign"
    (gain,) = named_so(found, "5.6.3", "jobs of 30 that gain, adaptive 0 %")
    assert (gain.paper, gain.verdict) == ("17", Verdict.HOLDS)


def test_every_claim_on_something_printed_has_a_source_and_a_cause_that_is_there() -> None:
    asked = STUDY.ask(traces=3)
    headings = {page: {_anchor(line) for line in (DOCS / page).read_text().splitlines()
                       if line.startswith("#")}
                for page in ("rmap.md", "overprovisioning.md", "buying.md")}  # fmt: skip
    for claim in STUDY.claims(asked, invented(asked, usual)):
        assert bool(claim.paper) <= bool(claim.source), claim.name
        assert (claim.paper == "") == (claim.verdict is None), claim.name
        if claim.verdict not in (None, Verdict.HOLDS):
            assert claim.cause, claim.name
        if claim.cause:
            page, _, heading = claim.cause.partition("#")
            assert heading in headings[page], claim.cause


def _anchor(line: str) -> str:
    words = line.lstrip("#").strip().lower()
    return "".join(c for c in words if c.isalnum() or c in " -_").replace(" ", "-")


def test_of_both_random_traces_a_change_is_the_mean_of_the_two() -> None:
    asked = STUDY.ask("traces", traces=4, kind="random")
    outcomes = invented(asked, usual)
    each = [
        change(STUDY.measured(asked, outcomes), which, ADAPTIVE_0, TRADITIONAL)
        for which in PATTERNS
    ]
    both = change(STUDY.measured(asked, outcomes), BOTH, ADAPTIVE_0, TRADITIONAL)
    assert both == pytest.approx((each[0] + each[1]) / 2)


# -- readings of naive, and options


def test_a_job_has_a_table_of_its_own_from_which_it_can_start() -> None:
    trace, found = by_job(rmap("random", seed=2), tables("cab"),
                          lambda table, asked, share_w: only(table, table.nodes == 64), 6500.0,
                          64)  # fmt: skip
    for application, asked in zip(trace.application.tolist(), trace.nodes.tolist(), strict=True):
        table = found[trace.applications[application]]
        assert trace.applications[application].endswith(f" on {asked}")
        assert table.nodes.min() <= asked
        assert (table.watts <= 6500).any()


def test_readings_say_what_naive_chooses_from() -> None:
    table, share_w = tables("cab")["SPhot"], 40 / 64 * 6500
    known = {name: one.known for name, one in READINGS.items() if one.known is not None}
    assert set(known["the nodes asked for"](table, 40, share_w).nodes.tolist()) == {40}
    assert known["no turbo"](table, 40, share_w).cap_w.max() == 95
    caps = known["caps count, not watts"](table, 40, share_w)
    assert (caps.watts == 2 * caps.nodes * caps.cap_w).all()
    assert (known["memory counts"](table, 40, share_w).watts > table.watts).all()
    held = known["holds its share while it runs"](table, 40, share_w)
    assert held.watts.tolist() == [share_w]
    best = table.seconds[table.watts <= share_w].min()
    widest = known["the widest within 1 %"](table, 40, share_w)
    assert best <= widest.seconds[0] <= 1.01 * best


def test_under_a_reading_the_same_trace_runs_otherwise() -> None:
    names = ("the nodes asked for", "jobs start every 30 s", "no caps, all cores")
    case = Traced("large", 1, (LOW_W,), (NAIVE, *(READ + name for name in names)), 100.0)
    found = simulate(case).rows
    usual_s = found[row(NAIVE, LOW_W)]["turnaround_s"]
    for name in names:
        assert found[row(READ + name, LOW_W)]["turnaround_s"] > 1.1 * usual_s, name


def test_priorities_and_a_partition_change_whose_jobs_are_fast() -> None:
    found = simulate(Traced("random", 3, (LOW_W,), (ORACLE_0, *OPTIONS), 100.0)).rows
    usual_row = found[row(ORACLE_0, LOW_W)]
    some = found[row(f"{ORACLE_0} priorities", LOW_W)]
    assert some["turnaround_s high"] < usual_row["turnaround_s high"]
    assert some["turnaround_s low"] > usual_row["turnaround_s low"]
    some = found[row(f"{ORACLE_0} partition", LOW_W)]
    assert some["turnaround_s small"] > usual_row["turnaround_s small"]


def test_nodes_that_differ_draw_more_than_is_planned() -> None:
    case = Traced("large", 3, (LOW_W,), (TRADITIONAL, f"{ORACLE_0} least margin"), 100.0)
    alike, differ = (simulate(replace(case, variation=it)).rows for it in (0.0, 0.23))
    usual_row, kept = (row(it, LOW_W) for it in case.policies)
    assert alike[usual_row]["highest"] <= 1 < differ[usual_row]["highest"]
    assert differ[usual_row]["turnaround_s"] == pytest.approx(alike[usual_row]["turnaround_s"])
    assert differ[kept]["highest"] <= 1, "with a margin of 19 % no node exceeds its share"


def test_a_plan_above_the_bound_is_counted() -> None:
    asked = STUDY.ask("traces", traces=2, kind="large", bounds=(LOW_W,))
    outcomes = invented(asked, usual)
    (fine,) = named_so(STUDY.claims(asked, outcomes), "plans above the bound")
    assert (fine.ours, fine.verdict) == ("0", Verdict.HOLDS)
    key = asked.traced("large", 1).key
    rows = {name: dict(one) for name, one in outcomes[key].rows.items()}
    rows[row(NAIVE, LOW_W)]["planned"] = 1.01
    (wrong,) = named_so(
        STUDY.claims(asked, outcomes | {key: RmapOutcome(rows)}), "plans above the bound"
    )
    assert (wrong.ours, wrong.verdict) == ("1", Verdict.NOT)


def test_claims_are_what_json_can_hold_and_those_without_outcomes_are_left_out() -> None:
    asked = STUDY.ask(traces=3)
    found = STUDY.claims(asked, invented(asked, usual))
    assert len(found) > 300
    assert json.loads(json.dumps([asdict(claim) for claim in found]))
    assert len({claim.name for claim in found}) == len(found), "no two are called the same"
    left = STUDY.claims(asked, {})
    assert left == STUDY.claims(STUDY.ask("printed"), {}), "chapter 3 needs no outcome"


def test_a_study_of_one_bound_alone_says_what_it_can() -> None:
    for bound_w in (14720.0, 9000.0):
        asked = STUDY.ask(traces=2, bounds=(bound_w,), kind="small")
        found = STUDY.claims(asked, invented(asked, usual))
        assert named_so(found, "by bound, small: naive against traditional")
        assert not named_so(found, "6,500 W: adaptive")


@pytest.mark.long
def test_all_figures_are_drawn_and_none_where_there_is_nothing(tmp_path: Path) -> None:
    asked = STUDY.ask(traces=3)
    drawn = STUDY.figures(asked, invented(asked, usual), tmp_path / "figures", pdf=False)
    assert [path.stem for path in drawn] == list(figures.FIGURES)
    assert all(path.stat().st_size > 5000 for path in drawn)
    assert STUDY.figures(STUDY.ask("traces"), {}, tmp_path / "none", pdf=False) == []
    assert not (tmp_path / "none").exists()


# -- the page


def test_the_page_on_rmap_shows_pictures_that_are_there() -> None:
    text = (DOCS / "rmap.md").read_text()
    shown = [line.split("](")[1].rstrip(")") for line in text.splitlines() if line[:2] == "!["]
    assert shown
    assert all((DOCS / name).stat().st_size > 5000 for name in shown)
