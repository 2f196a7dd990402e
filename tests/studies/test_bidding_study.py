"""The study of bids for jobs that run for hours: its cases, its claims that come out either way,
and small cases of it."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from odonata.studies import named
from odonata.studies.bidding import PARTS, Bidding
from odonata.studies.bidding.cases import BIDS, BUSY, NOTHING, POLICIES, TABLE, TRIED, cases
from odonata.studies.bidding.claims import BEST
from odonata.studies.bidding.simulation import FES, BiddingOutcome, Day, simulate
from odonata.traces.long_jobs import TABLES, long_types, shares_of
from odonata.traces.mix import MIXES, mix
from odonata.traces.types import Types
from pdes.errors import Refused

STUDY = Bidding()
SMALL = Day(3, nodes=128, warm_h=2, after_h=1, steps=2)


def outcome(off: float | None, worst: float, **more: object) -> BiddingOutcome:
    given = {"average_w": 6e4, "reserve_w": 7e3, "off": off, "error": 0.1, "hours_kept": 20,
             "q": {"a": worst, "b": worst / 2}, "jobs": 9, "cost": 130.0, "paid": 144.0,
             "drawn_kwh": 1440.0, "busy": 0.8, "waiting": 3.0, "seconds": 1.0}  # fmt: skip
    return BiddingOutcome(**{**given, **more})  # type: ignore[arg-type]


def every(plan: object, invent: object) -> dict[str, BiddingOutcome]:
    """Returns outcomes of all cases, as they become known."""
    found: dict[str, BiddingOutcome] = {}
    while True:
        new = [case for case in cases(plan, found) if case.key not in found]  # type: ignore[arg-type]
        if not new:
            return found
        found |= {case.key: invent(case) for case in new}  # type: ignore[operator]


def test_it_is_listed_and_names_its_cases_in_turn() -> None:
    study = named("bidding")
    assert isinstance(study, Bidding)
    plan = study.ask(part="table", days=2)
    first = study.cases(plan, {})
    searches = [case for case in first if case.searching]
    assert {(it.system, it.load, it.policy) for it in searches} == {
        (system, 0.75, policy) for system in ("meggie-like", "emmy-like") for policy in POLICIES
    }
    bid = outcome(0.0, 0.0, average_w=51234.0, reserve_w=6789.0)
    later = study.cases(plan, {searches[0].key: bid})
    new = {*later} - {*first}
    assert {case.bid for case in new} == {(51234.0, 6789.0)}
    assert len(new) == 2 * sum(it.system == searches[0].system for it in TABLE)
    with pytest.raises(Refused):
        study.ask(days=0)


@pytest.mark.parametrize("good", [True, False])
def test_its_claims_come_out_either_way(good: bool, tmp_path: Path) -> None:
    plan = Bidding().ask(days=3)

    def invent(case: Day) -> BiddingOutcome:
        best = (case.policy, case.bid) == BEST
        if case.bid == NOTHING:
            return outcome(None, 0.1, error=None, cost=140.0 + case.seed, paid=144.0)
        seed = 0.001 * case.seed
        return outcome(0.03 + seed, 1.0 + seed) if best == good else outcome(0.3 + seed, 3.0 + seed)

    found = every(plan, invent)
    said = {claim.name: claim for claim in STUDY.claims(plan, found)}
    assert said["qoscap + adaptive keeps both rules"].holds is good
    for policy, bid in ((p, b) for p in POLICIES for b in BIDS if (p, b) != BEST):
        assert said[f"{policy} + {bid} keeps both on fewer days"].holds is good
    assert said["90 % busy: Q of qoscap is below that of energy-qare, both adaptive"].holds is good
    assert f"qoscap + fes, tried in {TRIED} days" in " ".join(said)
    assert all(json.loads(json.dumps(asdict(it))) for it in found.values())
    drawn = STUDY.figures(plan, found, tmp_path, pdf=False)
    assert {path.name for path in drawn} == {"rules.png", "causes.png"}  # no day is kept


def test_claims_wait_for_all_days() -> None:
    plan = Bidding().ask(part="busy", days=2)
    assert STUDY.claims(plan, {}) == []
    one = plan.of(BUSY[0], "qoscap", "adaptive", {})[0]
    assert STUDY.claims(plan, {one.key: outcome(0.1, 1.0)}) == []


def test_a_day_is_the_same_when_it_comes_back_and_knows_what_it_was_asked() -> None:
    first, again = simulate(SMALL), simulate(SMALL)
    assert replace(first, seconds=0.0) == replace(again, seconds=0.0)
    assert STUDY.revive(json.loads(json.dumps(asdict(first)))) == first
    assert first.jobs > 0
    assert first.reserve_w > 0.0
    others = [simulate(replace(SMALL, **change)) for change in (
        {"policy": "energy-qare"}, {"bid": NOTHING}, {"burst": 4.0}, {"turns": False})]  # fmt: skip
    assert len({it.cost for it in (first, *others)}) == 5
    kept = simulate(replace(SMALL, kept=True))
    assert len(kept.track["target_w"]) == len(kept.track["power_w"]) == 24 * 60


def test_fes_searches_once_for_all_days() -> None:
    found = simulate(replace(SMALL, nodes=64, searching=True, bid=FES, warm_h=1))
    assert found.average_w > found.reserve_w > 0.0


# -- the jobs


@pytest.mark.parametrize("name", [*TABLES])
def test_the_tables_are_what_their_seeds_make(name: str) -> None:
    table = Types.of(name)
    made = long_types(TABLES[name], name=name)
    assert table.rows == made.rows
    assert (table.idle_w, MIXES[name].types) == (31.0, tuple(made.names))
    assert MIXES[name].shares == pytest.approx(shares_of(made))
    assert max(it.longest_s or 0.0 for it in table) <= 24 * 3600
    assert max(it.nodes or 0 for it in table) <= 64
    assert all(it.threshold == 2.0 and it.least_w < it.most_w for it in table)


def test_jobs_in_groups_and_by_day_are_as_many_and_come_unevenly() -> None:
    how, hours = MIXES["meggie-like"], 24 * 40
    given = {"load": 0.75, "shares": how.shares, "span_s": hours * 3600.0}
    table = Types.of(how.table)
    counts, days = {}, {}
    for burst, swing in ((1.0, 0.0), (3.0, 0.0), (1.0, 0.8)):
        traces = [mix(table, how.types, 728, seed=seed, burst=burst, swing=swing, **given)  # type: ignore[arg-type]
                  for seed in range(1, 4)]  # fmt: skip
        counts[burst, swing] = sum(map(len, traces)) / 3
        of_day = [(it.submit_us // 3_600_000_000 % 24).tolist() for it in traces]
        noon = sum(8 <= hour < 20 for hours in of_day for hour in hours)
        days[burst, swing] = noon / sum(map(len, of_day))
        alike = sum(int((it.submit_us[1:] == it.submit_us[:-1]).sum()) for it in traces)
        assert alike / sum(map(len, traces)) == pytest.approx(1.0 - 1.0 / burst, abs=0.02)
    even = counts[1.0, 0.0]
    assert counts[3.0, 0.0] == pytest.approx(even, rel=0.04)
    assert counts[1.0, 0.8] == pytest.approx(even, rel=0.02)
    assert days[1.0, 0.0] == pytest.approx(0.5, abs=0.01)
    assert days[1.0, 0.8] == pytest.approx(0.5 + 0.8 / 3.14159, abs=0.02)


def test_all_parts_are_known() -> None:
    for part in PARTS:
        assert cases(Bidding().ask(part=part, days=1), {})
