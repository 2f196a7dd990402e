"""Where curves end, how the gap is split, and what is kept of that: on made-up networks."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from odonata.results.steadiness import SATURATED, STEADY, UNSETTLED
from odonata.sweeps.outcomes import SweepOutcome
from odonata.sweeps.plan import Point, planned
from odonata.sweeps.saturating import BEYOND, Curve, Saturating, split
from odonata.sweeps.table import Swept
from pdes.errors import Refused

FILE = """
[traffic]
warmup = "1 us"
measure = "2 us"
[run]
duration = "4 us"
[sweep]
saturation = 0.01
network.routing = ["minimal", "par"]
traffic.load = [0.8, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
seeds = 3
"""
MADE = {"minimal": 0.237, "par": 0.551}
"""The loads at which the networks saturate that are made up."""
Judge = Callable[[float, int, int], str]


ONE = FILE.replace('["minimal", "par"]', '["minimal"]')


def study(text: str = FILE, loads: str = "") -> Saturating:
    if loads:
        text = text.replace("[0.8, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]", loads)
    return Saturating(planned(Path("mine"), text=text))


def sharp(load: float, at: float, stretch: int) -> str:
    return STEADY if load < at else SATURATED


def outcome(point: Point, judge: Callable[[float, float, int], str] = sharp) -> SweepOutcome:
    said = dict(zip(point.names, point.labels, strict=True))
    load, at = float(said["traffic.load"]), MADE[said["network.routing"]] + 0.001 * point.seed
    figures = {"throughput": min(load, at), "mean_latency_ns": 500 + 100 * load, "events": 10.0}
    verdict = judge(load, at, int(said.get("stretch", "1")))
    return SweepOutcome(dict(figures), verdict=verdict)


def done(one: Saturating, judge: Callable[[float, float, int], str] = sharp
         ) -> dict[str, SweepOutcome]:  # fmt: skip
    found: dict[str, SweepOutcome] = {}
    while True:
        left = [case for case in one.cases(one.plan, found) if case.key not in found]
        if not left:
            return found
        found[left[0].key] = outcome(left[0], judge)


def of(curves: list[Curve], routing: str, seed: int = 1) -> Curve:
    (found,) = (it for it in curves if it.labels == (routing,) and it.seed == seed)
    return found


def test_the_saturation_load_is_found_to_the_resolution_with_every_seed() -> None:
    one = study()
    curves = one.curves(done(one))
    assert len(curves) == 6
    for curve in curves:
        at = MADE[curve.labels[0]] + 0.001 * curve.seed
        assert curve.gap is not None
        below, above = curve.gap
        assert below < at <= above <= below + 0.01 * above
        assert curve.saturation_load == pytest.approx(at, rel=0.01)
        assert curve.throughput == pytest.approx(at)
    coarse = study(FILE, "[0.2, 0.6]")
    wide = replace(coarse.plan.wanted, saturation=1.0)
    asked = Saturating(replace(coarse.plan, wanted=wide))
    assert of(asked.curves(done(asked)), "par").gap == (0.2, 0.6)


def test_a_curve_ends_soon_after_it_is_saturated_unless_all_of_it_is_wanted() -> None:
    one = study()
    curve = of(one.curves(done(one)), "minimal")
    assert [at.load for at in curve.points] == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert [at.steady for at in curve.points] == [True, True] + [False] * (1 + BEYOND)
    assert curve.saturated_at == 0.3
    whole = study(FILE + "beyond = true\n")
    assert len(of(whole.curves(done(whole)), "minimal").points) == 8


def test_a_network_that_is_full_at_the_lowest_load_is_searched_from_zero() -> None:
    one = study(ONE, "[0.3, 0.9]")
    curve = of(one.curves(done(one)), "minimal")
    assert curve.saturation_load == pytest.approx(MADE["minimal"] + 0.001, rel=0.01)
    never = study(ONE, "[0.3, 0.9]")
    found = done(never, lambda load, at, stretch: SATURATED)
    gap = of(never.curves(found), "minimal").gap
    assert gap is not None
    assert gap[0] == 0 < gap[1] < 0.001


def test_a_network_that_is_never_full_has_no_saturation_load() -> None:
    one = study()
    found = done(one, lambda load, at, stretch: STEADY)
    for curve in one.curves(found):
        assert (curve.gap, curve.saturation_load, curve.saturated_at) == (None, None, None)
        assert not curve.searched
    made = Swept.of(one.facts(found), found).saturation
    assert made is not None
    assert made.figures == ("saturation_throughput",)


def test_a_run_is_made_twice_as_long_until_it_has_settled() -> None:
    def slow(load: float, at: float, stretch: int) -> str:
        return UNSETTLED if abs(load - at) < 0.05 and stretch < 4 else sharp(load, at, stretch)

    one = study(ONE)
    curve = of(one.curves(done(one, slow)), "minimal")
    at = curve.points[1]
    assert (at.load, at.stretch, at.events) == (0.2, 4, 30.0)
    made = at.point.experiment()
    assert made.run.end == 16 * 10**6
    assert (made.traffic[0].warmup_ps, made.traffic[0].measure_ps) == (4 * 10**6, 8 * 10**6)
    assert str(at.point).endswith("stretch=4, seed 1")
    short = study(ONE + 'longest = "8 us"\n')
    at = of(short.curves(done(short, slow)), "minimal").points[1]
    assert (at.stretch, at.outcome.verdict) == (2, UNSETTLED)


def test_where_a_link_is_nearly_full_half_the_length_must_have_given_the_same_latency() -> None:
    one = study(ONE + 'longest = "8 us"\n', "[0.2]")
    (first,) = one.cases(one.plan, {})
    full = {"links.global.max_utilisation": 0.95}
    busy = replace(outcome(first), figures={**outcome(first).figures, **full})
    found = {first.key: busy}
    longer = next(case for case in one.cases(one.plan, found) if case.labels[-1] == "2")
    grown = replace(busy, figures={**busy.figures, "mean_latency_ns": 600.0})
    for again, verdict in ((busy, STEADY), (grown, UNSETTLED)):
        fresh = study(ONE + 'longest = "8 us"\n', "[0.2]")
        known = found | {longer.key: again}
        (at,) = fresh.curves(known)[0].points
        assert (at.outcome.verdict, at.stretch) == (verdict, 2)
        swept = Swept.of(fresh.facts(known), known)
        assert swept.judged(("minimal", "0.2")) == verdict


def test_the_seed_decides_where_a_gap_is_split_and_always_near_its_middle() -> None:
    loads = [float(split((0.2, 0.3), seed, 0.01) or 0) for seed in range(100)]
    assert min(loads) >= 0.2333
    assert max(loads) <= 0.2667
    assert len({*loads}) > 90
    assert sum(loads) / 100 == pytest.approx(0.25, abs=0.001)


def test_the_first_point_of_each_program_comes_before_all_others() -> None:
    one = study()
    first = one.cases(one.plan, {})
    assert [point.labels for point in first] == [("minimal", "0.1"), ("par", "0.1")]
    found = {point.key: outcome(point) for point in first}
    assert len(one.cases(one.plan, found)) == 2 * 3 * 8


def test_shares_have_each_curve_once_and_together_give_the_same() -> None:
    whole = study()
    every = done(whole)
    parts = [Saturating(whole.plan, (number, 2)) for number in (1, 2)]
    shares = [done(part) for part in parts]
    assert set(shares[0]) | set(shares[1]) == set(every)
    assert parts[0].facts(shares[0] | shares[1]) == whole.facts(every)
    half = Swept.of(parts[0].facts(shares[0]), shares[0])
    assert half.missing > 0


def test_what_is_kept_has_means_and_intervals_of_both_figures(tmp_path: Path) -> None:
    one = study()
    found = done(one)
    facts = json.loads(json.dumps(one.facts(found)))
    swept = Swept.of(facts, found)
    assert swept.missing == 0
    assert swept.axes["traffic.load"] == ("0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8")
    assert [cell.labels for cell in swept.cells("throughput") if cell.labels[0] == "minimal"] == [
        ("minimal", load) for load in ("0.1", "0.2", "0.3", "0.4", "0.5")]  # fmt: skip
    made = swept.saturation
    assert made is not None
    assert made.axes == {"network.routing": ("minimal", "par")}
    for cell in made.cells("saturation_load"):
        low, high = made.interval(cell)[1:3]
        assert low < MADE[cell.labels[0]] + 0.002 < high
    assert "minimal,,saturation_load,0.2" in made.summary_csv()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (FILE.replace("traffic.load = [0.8, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]", ""),
         "needs one axis of loads"),
        (FILE.replace("[sweep]", "[[jobs]]\nnodes = 4\n[sweep]"), "it is of traffic alone"),
        (FILE + 'longest = "3 us"\n', "longest = 3 us: at least the first run's 4 us"),
        (FILE + 'longest = "3"\n', "sweep.longest = \"3\": a time with its unit"),
        (FILE.replace("saturation = 0.01", "saturation = 2"), "sweep.saturation = 2: a part of"),
    ],
)  # fmt: skip
def test_what_cannot_be_searched_is_refused(text: str, why: str) -> None:
    with pytest.raises(Refused, match=why.replace(".", r"\.").replace("[", r"\[")):
        study(text)
