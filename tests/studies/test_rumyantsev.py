"""The Rumyantsev study: its simulations, what is measured of them, and what it says of them."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pages import DOCS, anchors

from odonata.cluster.simulation import simulate as run
from odonata.studies import named
from odonata.studies.rumyantsev import PARTS, Rumyantsev, streams
from odonata.studies.rumyantsev.cases import (
    CONTROLLED,
    DISCIPLINES,
    NUMBERS,
    SATURATED,
    SOME_NUMBERS,
    SOME_THRESHOLDS,
    THRESHOLDS,
    TWO_THRESHOLDS,
    RumyantsevPlan,
    cases,
)
from odonata.studies.rumyantsev.claims import at_power, roughness, shown_customers
from odonata.studies.rumyantsev.simulation import (
    RumyantsevOutcome,
    Run,
    apart,
    epochs_of,
    model_of,
    simulate,
    trace_of,
)
from odonata.studies.rumyantsev.streams import mean_inverse_fitting
from odonata.study.contract import Claim, Verdict
from odonata.study.filling import fill
from odonata.study.report import report
from odonata.study.store import Answer, from_line, to_line
from pdes.errors import Refused
from policies.power.service_rate import ENERGIES

STUDY = Rumyantsev()
WORKLOAD = "Figure 3, recorded trace: mean workload over k"
RECORDED = "Figure 3, recorded trace: mean power over k"
KARELIAN = Path(__file__).parents[3] / "shared" / "data" / "krc2.csv"


def write(path: Path, customers: int = 60, seed: int = 1) -> Path:
    """Write a trace of customers with so much work that rates are switched, and one row that is
    none."""
    rng = random.Random(seed)
    rows = ["interarrival,delays,service,cores_used", "10,0,0,80"]
    for _ in range(customers):
        gap = rng.choice((0, rng.randint(100, 40_000)))
        rows.append(f"{gap},0,{rng.randint(1, 130_000)},{rng.choice((1, 1, 8, 40, 64))}")
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write(tmp_path_factory.mktemp("trace") / "small.csv", 25))


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("study")


@pytest.fixture(scope="module")
def whole(file: str, directory: Path) -> tuple[RumyantsevPlan, dict[str, RumyantsevOutcome]]:
    """The study of a small trace, but for weeks, of which it has less than two, and streams."""
    asked = replace(STUDY.ask(trace=file), parts=PARTS[:4])
    return asked, fill(STUDY, asked, directory, 1)[1].outcomes


# -- cases


def test_every_part_has_its_simulations_and_they_share_those_they_can(tmp_path: Path) -> None:
    assert isinstance(named("rumyantsev"), Rumyantsev)
    file = str(write(tmp_path / "weeks.csv", 250))
    counts = {part: len(cases(STUDY.ask(trace=file, part=part))) for part in PARTS}
    of_one = 1 + len(SOME_THRESHOLDS) + len(SOME_NUMBERS)
    assert counts == {"hysteresis": 2, "threshold": 31, "comparison": 31 + len(NUMBERS) + 3,
                      "disciplines": 6 * of_one, "randomised": 310, "stability": 70}  # fmt: skip
    every = cases(STUDY.ask(trace=file))
    shared = 33 + len(NUMBERS) + 3 + 5 * of_one
    assert len({case.key for case in every}) == len(every) == shared + 380
    assert THRESHOLDS[0] == 0
    assert np.diff(THRESHOLDS).tolist() == [1e5] * 30
    assert (every[0].lower, every[0].upper) == TWO_THRESHOLDS == (1e5, 3e5)


def test_a_trace_that_is_not_there_is_refused_with_where_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"hpcwld.*--trace") as refusal:
        STUDY.ask(trace=str(tmp_path / "none.csv"))
    assert "\n" not in str(refusal.value)


def test_what_makes_no_sense_is_refused(file: str, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"recorded-rate = 0: 0.001 \.\. 1000"):
        STUDY.ask(trace=file, recorded_rate=0.0)
    with pytest.raises(Refused, match="zero-gap-ms = -1"):
        STUDY.ask(trace=file, zero_gap_ms=-1.0)
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    with pytest.raises(Refused, match=r"other\.csv"):
        STUDY.cases(STUDY.ask(trace=str(other)), {})


def test_the_key_of_a_case_is_about_what_is_in_the_file_and_not_where_it_lies(
    tmp_path: Path,
) -> None:
    (tmp_path / "there").mkdir()
    one, same = write(tmp_path / "a.csv"), write(tmp_path / "there" / "b.csv")
    other = write(tmp_path / "c.csv", seed=2)
    keys = [STUDY.ask(trace=str(path)).hysteresis.key for path in (one, same, other)]
    assert keys[0] == keys[1] != keys[2]


def test_a_trace_that_changes_under_the_study_is_refused(tmp_path: Path) -> None:
    asked = STUDY.ask(trace=str(write(tmp_path / "a.csv")))
    write(tmp_path / "a.csv", seed=3)
    with pytest.raises(Refused, match="changed since"):
        simulate(asked.hysteresis)


def test_customers_who_come_together_are_set_apart_and_nobody_else_is() -> None:
    submit = np.array([0, 0, 0, 1500, 9000, 9000])
    assert apart(submit, 1000).tolist() == [0, 1000, 2000, 3000, 9000, 10000]
    assert apart(submit, 0).tolist() == submit.tolist()


def test_job_amounts_are_recorded_seconds_times_the_recorded_rate(file: str) -> None:
    asked = STUDY.ask(trace=file)
    once = trace_of(file, asked.data, 1.0, 0)
    more = trace_of(file, asked.data, 2.66, 0)
    assert more.run_us.tolist() == np.rint(2.66 * once.run_us).tolist()
    assert more.requested_us.tolist() == more.run_us.tolist()


def test_a_store_of_before_there_were_streams_is_read(file: str) -> None:
    asked = STUDY.ask(trace=file)
    assert not {"stream", "seed", "load"} & asked.hysteresis.fields().keys()
    assert asked.drawn(1)[3].key != asked.drawn(2)[3].key != asked.by_workload[3].key


# -- customers other than those that were recorded


def test_a_trace_of_less_than_two_weeks_has_none_to_draw(file: str) -> None:
    with pytest.raises(Refused, match="of which there are 0: at least 2"):
        STUDY.cases(STUDY.ask(trace=file, part="randomised"), {})


@pytest.mark.parametrize("servers", [1, 2, 5])
def test_how_many_fit_is_as_an_enumeration_says(servers: int) -> None:
    weights = np.array([0.0, 3.0, 1.0, 2.0, 0.5, 1.5])[: servers + 1]
    weights /= weights.sum()

    def mean(left: int, fit: int) -> float:
        """Returns the mean of 1 / J, where so many servers are left and so many customers fit."""
        return float(sum(weights[n] * (mean(left - n, fit + 1) if n <= left else 1 / fit)
                         for n in range(1, servers + 1)))  # fmt: skip

    assert mean_inverse_fitting(weights, servers) == pytest.approx(mean(servers, 0))


def test_customers_of_one_server_are_stable_up_to_all_servers() -> None:
    assert mean_inverse_fitting(np.array([0.0, 1.0]), 80) == pytest.approx(1 / 80)


def test_a_queue_that_is_never_empty_is_served_as_fast_as_the_criterion_says(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MANY", 3000)
    asked = replace(STUDY.ask(trace=file), draws=1)
    found = [simulate(run) for run in asked.independent(SATURATED)]
    for one in found:
        assert one.per_s == pytest.approx(one.boundary_per_s, rel=0.15)
        assert np.diff(one.in_system).min() > 0
    (stable,) = (simulate(run) for run in asked.independent(0.6)[:1])
    assert max(stable.in_system) < 60


@pytest.mark.long
def test_a_queue_grows_above_the_boundary_and_control_moves_it(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MANY", 8000)
    asked = replace(STUDY.ask(trace=file), draws=1)
    slow, controlled = (asked.independent(CONTROLLED, *of) for of in ((), (TWO_THRESHOLDS[1],)))
    grows, below, moved = (simulate(run).in_system[-1] for (run,) in
                           (slow, asked.independent(0.8), controlled))  # fmt: skip
    assert grows > 300
    assert max(below, moved) < 150


# -- what is measured


def test_energies_decide_nothing_so_one_schedule_gives_the_power_of_every_preset(
    tmp_path: Path,
) -> None:
    file = str(write(tmp_path / "trace.csv"))
    case = STUDY.ask(trace=file).hysteresis
    trace = trace_of(file, case.data, 1.0, case.zero_gap_us)
    kept = {name: run(model_of(case, trace, name)) for name in ENERGIES}
    one, other = (kept[name].schedule.end_us.tolist() for name in ENERGIES)
    assert one == other
    measured = simulate(case)
    assert measured.switches >= 4
    for name, found in kept.items():
        assert found.power is not None
        mean_w = found.power.total_j / (found.power.until / 1e6)
        assert measured.power_w[name] == pytest.approx(mean_w, rel=1e-9)
        energy_j = epochs_of(found).energy_j(ENERGIES[name])
        assert energy_j == pytest.approx(found.power.energy_j, rel=1e-9)
        mean_j = measured.per_customer[f"energy ({name})"]["mean"]
        assert mean_j == pytest.approx(found.power.energy_j.mean(), rel=1e-9)


def test_the_measures_of_a_run_that_one_can_follow_by_hand(tmp_path: Path) -> None:
    """Two customers, of 40 and 64 of the 80 servers, and of 1,000 s of work each, the second 100 s
    after the first; always slow. The first is served from 0 to 500 s and the second until 1,000 s.
    """
    path = tmp_path / "two.csv"
    path.write_text("interarrival,delays,service,cores_used\n0,0,1000,40\n100,0,1000,64\n")
    asked = STUDY.ask(trace=str(path))
    found = simulate(asked.at("workload", 1e9, 1e9))
    system, of = found.system, found.per_customer
    assert (found.until_s, found.switches, found.customers) == (1000, 0, 2)
    # the first: 1,000 to 0 in 500 s; the second: 1,000 for 400 s, then to 0 in 500 s
    assert system["workload"] == pytest.approx((250_000 + 400_000 + 250_000) / 1000)
    assert system["customers"] == pytest.approx((500 + 900) / 1000)
    assert system["waiting"] == pytest.approx(0.4)
    assert system["busy servers"] == pytest.approx((500 * 40 + 500 * 64) / 1000)
    assert system["effective load"] == pytest.approx(2 * system["busy servers"])
    assert system["waste"] == pytest.approx(2 * 400 * 40 / 1000)
    total = system["effective load"] + system["waste"]
    assert system["potential load"] == pytest.approx(total)
    assert system["time at the high rate"] == 0
    assert found.power_w["swapped"] == pytest.approx(52 * 34 + 28 * 14)
    assert found.power_w["printed"] == pytest.approx(52 * 41 + 28 * 14)
    assert of["delay"]["mean"] == pytest.approx(200)
    assert of["sojourn"]["mean"] == pytest.approx((500 + 900) / 2)
    assert of["service"]["max"] == pytest.approx(500)
    assert of["slowdown"]["mean"] == pytest.approx((1 + 900 / 500) / 2)
    assert of["energy (swapped)"]["max"] == pytest.approx(64 * 34 * 500)


def test_the_measures_of_customers_who_are_suspended(tmp_path: Path) -> None:
    """As above under lcfs-pr: the first is served from 0 to 100 s, waits for the second until 600 s
    and is served until 1,000 s."""
    path = tmp_path / "two.csv"
    path.write_text("interarrival,delays,service,cores_used\n0,0,1000,40\n100,0,1000,64\n")
    found = simulate(STUDY.ask(trace=str(path)).at("workload", 1e9, 1e9, discipline="lcfs-pr"))
    system, of = found.system, found.per_customer
    # the first: 1,000 to 800 in 100 s, 800 for 500 s, to 0 in 400 s; the second: to 0 in 500 s
    assert system["workload"] == pytest.approx((90_000 + 400_000 + 160_000 + 250_000) / 1000)
    assert system["waiting"] == pytest.approx(0.5)
    assert system["busy servers"] == pytest.approx((500 * 40 + 500 * 64) / 1000)
    assert of["delay"]["max"] == 0
    assert of["waiting"]["max"] == pytest.approx(500)
    assert of["service"]["mean"] == pytest.approx(500)
    assert of["slowdown"]["mean"] == pytest.approx((1000 / 500 + 1) / 2)
    assert of["energy (swapped)"]["max"] == pytest.approx(64 * 34 * 500)
    assert of["energy (swapped)"]["mean"] == pytest.approx((64 + 40) / 2 * 34 * 500)


# -- what is kept, said and drawn


def test_an_outcome_is_the_same_after_it_was_written_and_read(
    whole: tuple[RumyantsevPlan, dict[str, RumyantsevOutcome]],
) -> None:
    asked, outcomes = whole
    for case in (asked.hysteresis, asked.by_number[3]):
        key, revived = from_line(to_line(Answer(case, outcomes[case.key])), STUDY)
        assert (key, revived) == (case.key, outcomes[case.key])
    assert outcomes[asked.hysteresis.key].track["number"][0] == 2, "the first row is no customer"
    assert not outcomes[asked.by_number[3].key].track


def test_the_whole_study_of_a_small_trace_is_told_and_drawn(
    whole: tuple[RumyantsevPlan, dict[str, RumyantsevOutcome]],
    directory: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked, outcomes = whole
    assert len(outcomes) == len(cases(asked))
    report(STUDY, asked, directory, 1, only=True, pdf=False, as_json=True)
    told = json.loads(capsys.readouterr().out)
    assert told["completed"]
    drawn = ["figures/1.png", "figures/3.png", "figures/tradeoff.png", "figures/disciplines.png"]
    assert told["figures"] == drawn, "no customer has a row of figure 2"
    assert all((directory / path).stat().st_size > 10_000 for path in drawn)
    names = {one["name"] for one in told["claims"]}
    assert {f"{RECORDED}, energies swapped", "mean waste", "slowdown: mean, 99 %"} <= names
    same = next(
        one
        for one in told["claims"]
        if one["name"] == "Number or workload: mean power at k = 0, the same"
    )
    assert same["verdict"] == "holds", "by number and by workload"
    for name in ("fcfs", *DISCIPLINES):
        same_at_0 = f"{name}: the same by workload and by number at k = 0"
        alike = next(one for one in told["claims"] if one["name"] == same_at_0)
        assert alike["verdict"] == "holds", name


def test_the_customers_of_figure_2_are_drawn_where_they_are_there(
    whole: tuple[RumyantsevPlan, dict[str, RumyantsevOutcome]], tmp_path: Path
) -> None:
    asked, outcomes = whole
    key = asked.hysteresis.key
    track = dict(outcomes[key].track)
    track["number"] = [number + 6990 for number in track["number"]]
    drawn = STUDY.figures(asked, {key: replace(outcomes[key], track=track)}, tmp_path, pdf=False)
    assert [path.name for path in drawn] == ["1.png", "2.png"]
    shown = shown_customers(track["number"])
    assert len(track["number"][shown]) == sum(number >= 7000 for number in track["number"])
    assert len(range(9000)[shown_customers(range(1, 9001))]) == 500, "so many, and no more"


def outcome(power_w: float, workload: float) -> RumyantsevOutcome:
    return RumyantsevOutcome(
        9, 1.0, 0, {"swapped": power_w, "printed": 2000 - power_w}, {"workload": workload},
        {"delay": {"mean": workload / 10}}, "", 0.0,
    )  # fmt: skip


def by_name(found: list[Claim]) -> dict[str, Any]:
    return {one.name: one for one in found}


def test_one_step_the_wrong_way_and_a_trend_does_not_hold() -> None:
    asked = RumyantsevPlan("k.csv", "d", 1.0, 1.0, ("threshold",))
    runs = {case.key: outcome(1500 - i, 100 + i) for i, case in enumerate(asked.by_workload)}
    found = by_name(STUDY.claims(asked, runs))
    swapped, printed = (found[f"{RECORDED}, energies {how}"] for how in ("swapped", "as printed"))
    assert swapped.holds
    assert swapped.calibrated, "they were swapped for this figure"
    assert found[WORKLOAD].holds
    assert printed.verdict is Verdict.NOT
    assert "rises at 30 of 30" in printed.ours
    runs[asked.by_workload[7].key] = outcome(1494, 106)  # as the one before
    found = by_name(STUDY.claims(asked, runs))
    assert found[f"{RECORDED}, energies swapped"].verdict is Verdict.SIGN
    assert found[WORKLOAD].verdict is Verdict.SIGN


def test_a_trend_of_randomised_traces_is_judged_by_their_interval() -> None:
    asked = RumyantsevPlan("k.csv", "d", 1.0, 1.0, ("randomised",), draws=3)

    def give(slope: float) -> dict[str, Any]:
        runs = {case.key: outcome(1500 - i, 100 + i + 40 * seed)
                for seed in asked.seeds for i, case in enumerate(asked.drawn(seed))}  # fmt: skip
        odd = {case.key: outcome(1500 - slope * i, 100 + slope * i)
               for i, case in enumerate(asked.drawn(3))}  # fmt: skip
        return by_name(STUDY.claims(asked, runs | odd))

    name = WORKLOAD.replace("recorded trace", "randomised traces")
    assert give(1.5)[name].holds
    assert give(1.5)[name].ours.endswith("by +35 ± 22; the mean rises at 30 of 30")
    assert give(-1.5)[name].verdict is Verdict.NOT, "the interval of the change has 0 in it"


def test_a_curve_that_bends_to_one_side_is_not_rough() -> None:
    assert roughness([0, 3, 5, 6, 6.5]) == pytest.approx(0)
    assert roughness([0, 1, 3, 4, 6]) == pytest.approx((3 - 1) / 6)


def test_claims_of_the_paper_say_where_it_prints_them(
    whole: tuple[RumyantsevPlan, dict[str, RumyantsevOutcome]],
) -> None:
    found = STUDY.claims(*whole)
    assert len({one.name for one in found}) == len(found)
    for one in found:
        assert bool(one.paper) == bool(one.source), one.name
        if one.cause:
            page, _, anchor = one.cause.partition("#")
            assert anchor in anchors(DOCS / page), one.cause
    assert {one.verdict for one in found if one.paper} <= {*Verdict}


def test_without_all_points_of_a_curve_nothing_is_said_of_it() -> None:
    asked = RumyantsevPlan("k.csv", "d", 1.0, 1.0, ("threshold",))
    runs = {case.key: outcome(1500 - i, 100 + i) for i, case in enumerate(asked.by_workload)}
    runs.pop(asked.by_workload[-1].key)
    assert STUDY.claims(asked, runs) == []


def test_controls_are_compared_at_one_power_between_their_points() -> None:
    runs = [outcome(1500, 200), outcome(1400, 400), outcome(1450, 220)]
    assert at_power(runs, lambda one: one.system["workload"], 1425) == pytest.approx(310)
    assert at_power(runs, lambda one: one.system["workload"], 1399) is None


# -- the real trace


@pytest.fixture(scope="module")
def karelian() -> RumyantsevPlan:
    if not KARELIAN.exists():
        pytest.skip("krc2.csv is not in shared/data beside the repository")
    return STUDY.ask(trace=str(KARELIAN))


def at(asked: RumyantsevPlan, threshold: float) -> Run:
    return asked.by_workload[THRESHOLDS.index(threshold)]


@pytest.mark.long
def test_on_the_karelian_trace_power_and_workload_are_those_that_were_checked(
    karelian: RumyantsevPlan,
) -> None:
    """To the digits of an independent program: kW and 1e5 s."""
    none, much = (simulate(at(karelian, k)) for k in (0.0, 3e6))
    assert none.customers == 7569
    assert [round(it.power_w["swapped"] / 1e3, 3) for it in (none, much)] == [1.531, 1.395]
    assert round(much.power_w["printed"] / 1e3, 3) == 1.490
    assert round(much.system["workload"] / 1e5, 2) == 2.98


@pytest.mark.long
def test_on_the_karelian_trace_power_falls_and_workload_rises_at_every_step(
    karelian: RumyantsevPlan, tmp_path: Path
) -> None:
    asked = replace(karelian, parts=("threshold",))
    outcomes = fill(STUDY, asked, tmp_path, 2)[1].outcomes
    found = by_name(STUDY.claims(asked, outcomes))
    assert found[f"{RECORDED}, energies swapped"].holds
    assert found[WORKLOAD].holds
    some = outcomes[at(asked, 1e5).key]
    assert round(some.power_w["printed"] / 1e3, 3) == 1.455
    assert round(some.system["workload"] / 1e5, 2) == 2.30
