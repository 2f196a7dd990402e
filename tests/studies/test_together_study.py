"""The study of allocation, power policy and bid together: its cases, what it says of them, and a
queue that is simulated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from odonata.studies import named
from odonata.studies.together import Together
from odonata.studies.together.cases import (
    ALLOCATIONS,
    KNOWING,
    PUBLISHED,
    RESERVES_W,
    STEPS,
    TogetherPlan,
    cases,
    settings,
)
from odonata.studies.together.claims import BLIND
from odonata.studies.together.claims import KNOWING as ALL
from odonata.studies.together.found import Measured
from odonata.studies.together.simulation import (
    APPLICATIONS,
    POWERS,
    Offer,
    TogetherOutcome,
    experiment_for,
    queue_of,
    simulate,
)
from odonata.study.contract import Claim
from odonata.study.store import Answer, from_line, to_line
from pdes.errors import Refused

STUDY = Together()
PLAN = STUDY.ask(repetitions=3)


def outcome(bad: float | None, slower: float, saving: float, network: float) -> TogetherOutcome:
    off = None if bad is None else 0.1
    return TogetherOutcome(15_000.0, -100.0, 200.0, bad, off, None if bad is None else saving,
                        1000.0 * slower, {"solver": 1.0}, network, {"solver": 0.1}, 2000.0, 1,
                        "d")  # fmt: skip


def knowing(case: Offer) -> TogetherOutcome:
    """Who knows more keeps the rule with 500 W more; jobs take longer the more is offered."""
    aside = 0.01 * (case.seed % 3)
    if not case.reserve_w:
        return outcome(None, 1.0 + aside, 0.0, 100.0 + case.seed)
    level = [*POWERS].index(case.power) if case.power in KNOWING else 0
    level += 0.5 * ALLOCATIONS.index(case.allocation)
    keeps = case.reserve_w <= 2000.0 + 500.0 * level + (500.0 if case.seed == 2 else 0.0)
    return outcome(0.05 if keeps else 0.3, 1.0 + case.reserve_w / 20_000.0 + aside,
                   0.1 + 0.01 * level + aside / 10, 100.0 - 5.0 * level)  # fmt: skip


def ignorant(case: Offer) -> TogetherOutcome:
    """The other way round: who knows nothing offers most."""
    other = {"assumed": "by waiting", "metered": "by type", "by type": "metered",
             "by waiting": "assumed"}.get(case.power, case.power)  # fmt: skip
    turned = ALLOCATIONS[len(ALLOCATIONS) - 1 - ALLOCATIONS.index(case.allocation)]
    return knowing(replace(case, power=other, allocation=turned))


def invented(
    asked: TogetherPlan, give: Callable[[Offer], TogetherOutcome] = knowing
) -> dict[str, TogetherOutcome]:
    return {case.key: give(case) for case in cases(asked)}


def answers(asked: TogetherPlan, outcomes: dict[str, TogetherOutcome]) -> dict[str, Claim]:
    found = STUDY.claims(asked, outcomes)
    names = [one.name for one in found]
    assert len({*names}) == len(names)
    return {one.name: one for one in found}


# -- which simulations


def test_a_study_of_that_name_is_listed() -> None:
    assert isinstance(named("together"), Together)


def test_every_setting_has_every_reserve_and_no_case_comes_twice() -> None:
    found = cases(PLAN)
    assert len({case.key for case in found}) == len(found)
    count = len(ALLOCATIONS) * len(KNOWING) + len(PUBLISHED)
    assert len(found) == 3 * (count * len(RESERVES_W) + len(ALLOCATIONS))
    first = [case for case in found if case.reserve_w][: 3 * len(STEPS) * len(RESERVES_W)]
    assert {(case.allocation, case.power) for case in first} == STEPS


def test_all_settings_have_the_same_queue_and_the_same_signal() -> None:
    for seed in (1, 2):
        every = [experiment_for(case) for case in cases(PLAN) if case.seed == seed]
        assert len({it.jobs for it in every}) == 1
        assert {it.run.seed for it in every} == {seed}
    one, other = queue_of(Offer(1)), queue_of(Offer(2))
    assert one != other
    assert sorted(job.application for job in one) == sorted([*APPLICATIONS] * 7)


@pytest.mark.parametrize(("given", "said"), [
    ({"repetitions": 0}, "repetitions"), ({"average": 3000.0}, "average"),
    ({"slower": 0.5}, "slower"), ({"waiting": -1.0}, "waiting"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused_by_its_name(given: dict[str, float], said: str) -> None:
    with pytest.raises(Refused, match=said):
        STUDY.ask(**given)  # type: ignore[arg-type]


# -- what it says


def test_what_can_be_offered_is_the_largest_reserve_that_keeps_both_rules() -> None:
    queue = Measured(PLAN, invented(PLAN)).queues(("simple", "metered"))
    assert {seed: it.offered_w(2.0) for seed, it in queue.items()} == {
        1: 2500.0, 2: 3000.0, 3: 2500.0
    }  # fmt: skip
    assert queue[3].offered_w(1.125) == 2500.0
    assert queue[3].offered_w(1.124) == 2000.0
    assert queue[3].offered_w(1.0) == 0.0


def test_the_answer_comes_first_and_can_be_yes_or_no() -> None:
    yes, no = (STUDY.claims(PLAN, invented(PLAN, give)) for give in (knowing, ignorant))
    for found, holds in ((yes, True), (no, False)):
        assert found[0].name.startswith(f"{' + '.join(ALL)} offers more than {' + '.join(BLIND)}")
        assert [found[0].holds, found[1].holds] == [holds, holds]
        assert found[0].of == 3
    assert yes[0].values["low"] > 0.0 > no[0].values["high"]
    answers(PLAN, invented(PLAN))
    same = {case.key: knowing(replace(case, power="assumed", allocation="simple"))
            for case in cases(PLAN)}  # fmt: skip
    equal = STUDY.claims(PLAN, same)[0]
    assert (equal.holds, equal.values["mean"]) == (False, 0.0)
    assert "sign" not in equal.ours


def test_where_few_outcomes_are_there_nothing_is_claimed_of_the_others() -> None:
    some = {case.key: knowing(case) for case in cases(PLAN)
            if (case.allocation, case.power) in STEPS or not case.reserve_w}  # fmt: skip
    assert STUDY.claims(PLAN, {}) == []
    named_so = [*answers(PLAN, some)]
    assert not any("aqa" in name or "meter only" in name for name in named_so)
    assert sum("this study" in name for name in named_so) == len(STEPS)
    full = [*answers(PLAN, invented(PLAN))]
    assert sum("(" in name for name in full) == len([*settings()])


def test_figures_are_drawn_of_what_there_is(tmp_path: Path) -> None:
    assert STUDY.figures(PLAN, {}, tmp_path, pdf=False) == []
    found = STUDY.figures(PLAN, invented(PLAN), tmp_path, pdf=False)
    assert [path.stem for path in found] == ["fronts", "tracking", "offers"]
    assert all(path.stat().st_size > 10_000 for path in found)


# -- a queue


def test_a_queue_is_simulated_the_same_each_time_and_comes_back_from_its_line() -> None:
    case = Offer(1, "nedd", "by waiting", 3000.0, jobs=4)
    first, again = simulate(case), simulate(case)
    assert first == again
    assert first.bad is not None
    assert 0.0 <= first.bad <= 1.0
    assert first.communication["transpose"] > first.communication["solver"]
    assert from_line(to_line(Answer(case, first)), STUDY) == (case.key, first)
    assert STUDY.revive(asdict(first)) == first


def test_nobody_is_capped_where_nothing_is_offered() -> None:
    """All policies do the same then."""
    found = [replace(simulate(Offer(2, power=power, jobs=4)), digest="") for power in KNOWING]
    assert all(it == found[0] for it in found)
