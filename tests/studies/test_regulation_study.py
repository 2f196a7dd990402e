"""The study of QoSG: its hours, what is measured of them, and claims that can fail."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from odonata.results.statistics import interval
from odonata.studies import named
from odonata.studies.regulation import PARTS, Regulation
from odonata.studies.regulation.cases import (
    ALONE,
    AS_PRINTED,
    DEFAULT,
    LEVELS,
    MIXES,
    SIZES,
    RegulationPlan,
    cases,
    of_level,
    of_load,
    of_size,
)
from odonata.studies.regulation.claims import servers_needed
from odonata.studies.regulation.found import Measured, keeps_rule, saving
from odonata.studies.regulation.simulation import (
    PRINTED,
    SHOWN,
    Hour,
    RegulationOutcome,
    bid_of,
    run,
    simulate,
    types_of,
)
from odonata.study.contract import Claim, Verdict
from odonata.study.filling import fill
from odonata.study.store import Answer, from_line, to_line
from odonata.study.verdicts import near, percent
from pdes.errors import Refused
from policies.bidding import BIDDINGS
from policies.views import tracking

STUDY = Regulation()
SMALL = Hour(1, nodes=20, bid="printed")


# -- cases


def test_every_part_has_its_hours_and_they_share_those_of_the_default_setting() -> None:
    assert isinstance(named("regulation"), Regulation)
    parts = {part: cases(STUDY.ask(part=part, hours=2)) for part in PARTS}
    assert len(parts["default"]) == 2 * 2
    assert len(parts["size"]) == 2 * (2 * len(SIZES) + 1)
    assert len(parts["level"]) == 2 * len(LEVELS)
    assert len(parts["mix"]) == 2 * len(MIXES)
    every = STUDY.cases(STUDY.ask(hours=2), {})
    assert len({case.key for case in every}) == len(every)
    assert len(every) < sum(map(len, parts.values()))
    default = parts["default"][0]
    assert all(some[0] == default for some in parts.values())
    assert {case.seed for case in every} == {1, 2}


def test_the_hours_that_are_drawn_are_few_and_their_keys_are_their_own() -> None:
    every = cases(STUDY.ask(hours=3))
    assert [(case.seed, case.bid, case.standby) for case in every if case.kept] == [
        (1, "printed", True), (1, "printed", False),
    ]  # fmt: skip


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(Refused, match=r"hours = 0: 1 \.\. 1,000"):
        STUDY.ask(hours=0)
    with pytest.raises(Refused, match="deviation = 2"):
        STUDY.ask(deviation=2.0)
    with pytest.raises(Refused, match="slow-memory = -1"):
        STUDY.ask(slow_memory=-1)


def test_another_signal_is_that_of_all_hours() -> None:
    asked = STUDY.ask(part="load", hours=1, deviation=0.64, slow_memory=30, fast_memory=8)
    assert {(it.deviation, it.slow_s, it.fast_s) for it in cases(asked)} == {(0.64, 30, 8)}


# -- an hour


def test_stricter_conditions_move_rates_and_a_level_moves_thresholds_too() -> None:
    table, strict, tight = types_of(1.0, 1.0), types_of(1.0, 2.0), types_of(2.0, 1.0)
    assert (strict.delay_rate[:6] == 2 * table.delay_rate[:6]).all()
    assert (tight.delay_rate[:6] == 2 * table.delay_rate[:6]).all()
    assert strict.threshold.tolist() == table.threshold.tolist()
    assert (tight.threshold == table.threshold / 2).all()


def test_the_printed_bid_is_that_of_as_many_servers_with_its_weights() -> None:
    bid, signal, found = run(SMALL)
    assert bid == (PRINTED.average_w / 5, PRINTED.reserve_w / 5, PRINTED.weights)
    assert -1 < signal < 1
    assert found.market is not None
    seen = found.market.tracking
    assert len(seen.power_w) == 3600
    mean = float(seen.target_w.mean())
    assert mean == pytest.approx(bid.average_w + signal * bid.reserve_w)
    assert SHOWN not in BIDDINGS, "the study bids under a name that is its own for a moment"


def test_error_and_saving_are_those_of_the_rules_of_the_market() -> None:
    it = simulate(replace(SMALL, kept=True))
    target, power = (np.array(it.track[name]) for name in ("target_w", "power_w"))
    errors = tracking.errors(power, target, it.reserve_w)
    assert it.error == pytest.approx(tracking.mean_error(errors), abs=1e-4)
    assert it.bad == pytest.approx(tracking.bad_share(errors, 0.3), abs=1e-3)
    assert it.error is not None
    assert it.saving == pytest.approx(it.reserve_w / it.average_w * (1 - it.error))
    assert it.quantiles[0] == pytest.approx(errors.min(), abs=1e-4)
    assert it.quantiles[-1] == pytest.approx(errors.max(), abs=1e-4)
    assert it.keeps_qos == (max(it.late.values()) <= 0.1)
    assert 0 < it.standby < 1


def test_others_are_tried_at_the_bid_of_qosg_and_at_their_own() -> None:
    mine = bid_of(replace(SMALL, bid="qosg", rates=0.2))
    other = bid_of(replace(SMALL, bid="qosg", rates=0.2, policy="tracking-only"))
    assert other == mine
    own = bid_of(replace(SMALL, bid="tracking-only", policy="tracking-only"))
    assert own.average_w != mine.average_w
    assert not own.weights
    assert bid_of(replace(SMALL, bid=(4000.0, 500.0))) == (4000, 500, PRINTED.weights)


def test_with_the_rates_that_follow_from_the_print_qosg_bids_what_is_printed() -> None:
    bid = bid_of(Hour(1))
    assert bid.average_w == pytest.approx(PRINTED.average_w, rel=0.01)
    assert bid.reserve_w == pytest.approx(PRINTED.reserve_w, rel=0.02)
    for name, weight in PRINTED.weights.items():
        assert bid.weights[name] == pytest.approx(weight, abs=0.002)


def test_a_signal_of_its_own_leaves_the_jobs_as_they_are() -> None:
    one, other = simulate(SMALL), simulate(replace(SMALL, signal=7))
    assert one.jobs == other.jobs
    assert one.signal != other.signal
    assert one.error != other.error


def test_an_outcome_is_the_same_after_it_was_written_and_read() -> None:
    found = simulate(SMALL)
    assert from_line(to_line(Answer(SMALL, found)), STUDY) == (SMALL.key, found)


def test_an_hour_may_begin_with_the_jobs_of_the_one_before() -> None:
    case = replace(SMALL, before=1)
    _, signal, found = run(case)
    assert found.market is not None
    first, second = found.market.by_hour
    it = simulate(case)
    assert it.error == second.error_mean != first.error_mean
    assert it.jobs == second.jobs
    assert it.signal == signal
    assert (it.average_w, it.reserve_w) == (first.average_w, first.reserve_w)
    assert 0.0 <= it.left < 1.0
    none, much = (simulate(replace(SMALL, bid=bid)).left for bid in ((5e3, 1.0), (2.2e3, 1.0)))
    assert 0.0 < none < 0.1 < much < 1.0, "of a machine that draws hardly more than idle"


# -- claims


def outcome(**other: Any) -> RegulationOutcome:
    weights, types = dict(PRINTED.weights), PRINTED.weights
    usual: dict[str, Any] = {
        "average_w": 20600.0, "reserve_w": 10111.0, "weights": weights, "saving": 0.461,
        "error": 0.043, "bad": 0.02, "keeps_rule": True, "late": dict.fromkeys(types, 0.05),
        "q90": dict.fromkeys(types, 0.3), "jobs": 1, "keeps_qos": True, "standby": 0.142,
        "signal": 0.0, "left": 0.0, "quantiles": [0.0, 0.1], "seconds": 0.0,
    }  # fmt: skip
    return RegulationOutcome(**{**usual, **other})


def made(asked: RegulationPlan, of: dict[Any, Any]) -> dict[str, RegulationOutcome]:
    """Outcomes of settings: fields as functions of the seed."""
    found = {}
    for setting, fields in of.items():
        for case in asked.of(dict(setting)):
            found[case.key] = outcome(**{name: it(case.seed) for name, it in fields.items()})
    return found


def by_name(found: list[Claim]) -> dict[str, Claim]:
    return {one.name: one for one in found}


def key(setting: Any) -> tuple[Any, ...]:
    return tuple(setting.items())


def test_a_printed_number_holds_where_the_interval_comes_within_a_tenth_of_it() -> None:
    assert near(interval([0.50, 0.52]), 0.46), "from 0.38 to 0.64"
    assert not near(interval([0.515, 0.516]), 0.461)
    assert near(interval([0.505, 0.506]), 0.461)
    assert near(interval([0.46]), 0.461), "a single hour is compared as it is"
    assert percent(interval([0.4, 0.6]), 0) == "50 ± 127 %"
    assert percent(interval([0.4])) == "40.0 %"


def test_the_three_verdicts_of_a_number() -> None:
    asked = STUDY.ask(part="default", hours=3)
    for value, holds, sign in ((0.043, True, False), (0.02, False, True), (0.08, False, False)):
        default = {"error": lambda seed, value=value: value + seed / 1000}
        found = by_name(STUDY.claims(asked, made(asked, {key(DEFAULT): default})))
        assert found["mean error"].holds is holds
        assert (found["mean error"].verdict is Verdict.SIGN) is sign
    for name in ("average", "saving", "late jobs of fs"):
        assert found[name].holds is None, "our conditions come from the printed bid"


def test_without_all_hours_of_a_setting_nothing_is_said_of_it() -> None:
    asked = STUDY.ask(part="default", hours=2)
    outcomes = made(asked, {key(DEFAULT): {}, key(AS_PRINTED): {}})
    assert "at the printed bid: saving" in by_name(STUDY.claims(asked, outcomes))
    outcomes.pop(asked.at(2, AS_PRINTED).key)
    assert "at the printed bid: saving" not in by_name(STUDY.claims(asked, outcomes))
    outcomes.pop(asked.at(1, DEFAULT).key)
    assert STUDY.claims(asked, outcomes) == []


def test_a_trend_holds_only_where_every_step_is_sure() -> None:
    asked = STUDY.ask(part="load", hours=4)
    few, usual, much = (key(of_load(load)) for load in (0.25, 0.5, 0.75))

    def told(first: Any) -> Claim:
        of = {few: {"saving": first}, usual: {"saving": lambda seed: 0.46 + seed / 100},
              much: {"saving": lambda seed: 0.25 + seed / 100}}  # fmt: skip
        return by_name(STUDY.claims(asked, made(asked, of)))["25, 50, 75 %: saving"]

    assert told(lambda seed: 0.5 + seed / 100).holds
    unsure = told(lambda seed: 0.465 + seed * (-1) ** seed / 20)
    assert unsure.verdict is Verdict.SIGN, "from the first to the last it falls"
    rises = STUDY.ask(part="level", hours=4)
    of = {key(of_level(level)): {"average_w": lambda seed, level=level: 2e4 - 1e3 * level + seed}
          for level in LEVELS.values()}  # fmt: skip
    wrong = by_name(STUDY.claims(rises, made(rises, of)))["loose, medium, tight: average"]
    assert wrong.verdict is Verdict.NOT


def test_a_size_that_saves_less_than_is_printed_fails() -> None:
    asked = STUDY.ask(part="size", hours=2)
    of = {key(of_size(nodes)): {"saving": lambda seed, nodes=nodes: 0.3 + nodes / 400 + seed / 1e4}
          for nodes in (20, 100)}  # fmt: skip
    found = by_name(STUDY.claims(asked, made(asked, of)))
    assert found["100 servers: saving"].holds
    assert found["20 servers: saving"].holds is False


def test_the_conditions_ask_for_more_of_a_small_machine_than_it_has() -> None:
    parts = [servers_needed(nodes) / nodes for nodes in SIZES]
    assert parts == sorted(parts, reverse=True)
    assert parts[0] > 1
    assert 0.5 < parts[-1] < 0.55, "half is busy with the work itself"


def test_differences_are_between_hours_of_one_seed() -> None:
    asked = STUDY.ask(part="standby", hours=3)
    of = {key(DEFAULT): {"saving": lambda seed: seed / 10},
          key(ALONE): {"saving": lambda seed: seed / 10 - 0.05,
                       "keeps_rule": lambda seed: seed == 1}}  # fmt: skip
    measured = Measured(asked, made(asked, of))
    change = measured.change(ALONE, DEFAULT, saving)
    assert change.mean == pytest.approx(-0.05)
    assert change.half == pytest.approx(0, abs=1e-12)
    assert measured.count(ALONE, keeps_rule) == 1


# -- all of it


def test_a_part_is_simulated_told_and_drawn(tmp_path: Path) -> None:
    asked = STUDY.ask(part="default", hours=2)
    outcomes = fill(STUDY, asked, tmp_path, 1)[1].outcomes
    assert len(outcomes) == len(cases(asked)) == 4
    found = by_name(STUDY.claims(asked, outcomes))
    assert found["at the printed bid: seconds with an error above 0.3"].holds is not None
    assert found["saving"].values["mean"] == pytest.approx(0.48, abs=0.02)
    drawn = STUDY.figures(asked, outcomes, tmp_path / "figures", pdf=False)
    assert [path.name for path in drawn] == ["hour.png", "errors.png"]


def test_all_figures_are_drawn_where_there_is_something_to_draw(tmp_path: Path) -> None:
    asked = STUDY.ask(hours=2)
    track = {name: [20000.0] * 3600 for name in ("target_w", "power_w", "standby_w")}
    outcomes = {case.key: outcome(track=track if case.kept else {}, saving=0.4 + case.seed / 100)
                for case in cases(asked)}  # fmt: skip
    drawn = STUDY.figures(asked, outcomes, tmp_path, pdf=False)
    assert [path.stem for path in drawn] == ["hour", "errors", "late", "2.11", "2.12", "2.14",
                                             "2.15", "2.16", "standby"]  # fmt: skip
    assert all(path.stat().st_size > 5_000 for path in drawn)
    names = [claim.name for claim in STUDY.claims(asked, outcomes)]
    assert len(set(names)) == len(names), "every claim has a name of its own"
