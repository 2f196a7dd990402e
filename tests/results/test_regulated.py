"""What regulation came to beside the same machine without it: by hand, from schedules."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from odonata.cluster.simulation import simulate
from odonata.experiment.reading import parse
from odonata.results.measured import traded as simulated
from odonata.results.power_measures import power_measures
from odonata.results.regulated import WITHOUT, OneRun, Regulated, one_run, part_of

HOUR_S, IDLE_W = 3600.0, 169.0
TEXT = """
fidelity = "job"
[trace]
model = "mix"
mix = "W4"
span = "1 h"
nodes = 35
[power]
policy = "tracking-only"
interval = "1 s"
[market]
bidding = { name = "fixed", average = 8000, reserve = RESERVE }
signal = "synthetic"
energy_price = [["0 s", 0.1], ["30 min", 0.3]]
[run]
duration = "1 h"
[metrics]
interval = "1 min"
"""


def regulated(reserve_w: float, *seeds: int, hours: int = 1) -> Regulated:
    text = TEXT.replace("RESERVE", str(reserve_w)).replace('"1 h"', f'"{hours} h"')
    return Regulated([in_memory(text, seed) for seed in seeds])


def in_memory(text: str, seed: int = 1) -> OneRun:
    parts = []
    for changes in ((), WITHOUT):
        made: Any = parse(text, "here", [f"run.seed={seed}", *changes])
        found = simulated(made)
        parts.append((found.result.digest, part_of(made, found)))
    (digest, followed), (_, plain) = parts
    return one_run(seed, digest, followed, plain)


@pytest.fixture(scope="module")
def found() -> Regulated:
    return regulated(1500.0, 1, 2)


def test_the_energy_without_demand_response_is_that_of_the_jobs(found: Regulated) -> None:
    """Nobody has a cap: each draws what its type draws, for as long as it takes."""
    for one in found.runs:
        market, types = one.market, one.market.types
        assert types is not None
        trace = market.schedule.trace
        start = trace.submit_us * 1e-6 + one.without.waits_s
        took = np.minimum(start + trace.run_us * 1e-6, HOUR_S) - np.minimum(start, HOUR_S)
        more_w = (types.most_w[types.of_job] - IDLE_W) * trace.nodes
        joules = 35 * IDLE_W * HOUR_S + float((took * more_w).sum())
        assert one.without.energy_kwh.tolist() == pytest.approx([joules / 3.6e6], rel=1e-9)
        late = one.without.waits_s / (trace.run_us * 1e-6)
        assert one.without.quality == pytest.approx(late, abs=1e-6)


def test_what_is_left_is_the_work_of_jobs_that_are_not_over(found: Regulated) -> None:
    for one in found.runs:
        schedule, types = one.market.schedule, one.market.types
        assert types is not None
        assert one.market.left_us is not None
        watts = types.most_w[types.of_job] - IDLE_W
        kwh = 0.0
        for job in range(len(schedule)):
            if schedule.end_us[job] < 0:
                begun = schedule.start_us[job] >= 0
                left_us = one.market.left_us[job] if begun else schedule.trace.run_us[job]
                kwh += left_us * 1e-6 * schedule.trace.nodes[job] * watts[job] / 3.6e6
        assert kwh > 0.0
        assert one.left_kwh == pytest.approx(kwh, rel=1e-9)
    assert found.left_kwh == math.fsum(one.left_kwh for one in found.runs)


def test_the_energy_of_each_hour_is_what_the_model_draws_then() -> None:
    text = TEXT.replace("RESERVE", "0").replace('"1 h"', '"3 h"')
    found = in_memory(text).without.energy_kwh
    alone: Any = parse(text, "here", WITHOUT)
    for hours in (1, 2, 3):
        until = hours * 3600 * 10**6
        power = simulate(alone.model(), until).power
        assert power is not None
        rest_s = (until - power.until) * 1e-6  # in which nodes are idle
        kwh = (power.total_j + 35 * IDLE_W * rest_s) / 3.6e6
        assert found[:hours].sum() == pytest.approx(kwh, rel=1e-9)


def test_the_bill_is_beside_that_of_the_same_work() -> None:
    found = regulated(1500.0, 1, 2, hours=2)
    assert found.energy_price == pytest.approx(0.25), "of one half of an hour, and three"
    before = sum(0.2 * one.without.energy_kwh[0] + 0.3 * one.without.energy_kwh[1]
                 for one in found.runs)  # fmt: skip
    assert found.cost_without == pytest.approx(before)
    cost = found.measures.cost
    assert cost is not None
    theirs = before + 0.25 * found.left_without_kwh
    assert found.bill == pytest.approx((cost + 0.25 * found.left_kwh) / theirs - 1)
    assert found.bill < 0.0, "a reserve is paid"


def test_who_offers_nothing_pays_what_is_paid_without() -> None:
    """The price is another one in each hour."""
    found = regulated(0.0, 1, hours=3)
    assert found.measures.cost_drawn == pytest.approx(found.measures.cost, rel=1e-12)
    assert found.energy_without_kwh == pytest.approx(found.measures.energy_kwh, rel=1e-4)
    assert found.bill == pytest.approx(0.0, abs=1e-3), "jobs start at whole seconds, with a market"
    assert found.measures.saving == pytest.approx(0.0, abs=1e-9)
    assert found.measures.hours_offered == found.measures.hours_kept == 0
    assert found.measures.error_mean is None
    assert found.measures.average_w is None
    for it in found.types:
        assert it.regulated.mean_q == pytest.approx(it.without.mean_q, abs=0.2)


def test_the_saving_of_several_runs_is_that_of_their_sums(found: Regulated) -> None:
    hours = [one.market.by_hour[0] for one in found.runs]
    costs: Any = [hour.cost for hour in hours]
    paid = [hour.cost_energy for hour in hours]
    it = found.measures
    assert it.saving == pytest.approx(1 - sum(costs) / sum(paid))
    savings: Any = [hour.saving for hour in hours]
    half = 12.706204736 * np.std(savings, ddof=1) / math.sqrt(2)  # the averages are alike
    assert it.saving_high is not None
    assert it.saving is not None
    assert it.saving_high - it.saving == pytest.approx(half, rel=1e-6)
    assert replace(found, runs=found.runs[:1]).measures.saving_high is None


CARBON = 'carbon = [["0 s", 100], ["20 min", 400], ["61 min", 50], ["100 min", 700]]\n'


def test_the_carbon_of_each_hour_is_that_of_each_moment() -> None:
    """Beside what [power] says of the whole run, and beside a loop over seconds."""
    text = TEXT.replace("[market]", CARBON + "[market]").replace("RESERVE", "1500")
    text = text.replace('"1 h"', '"2 h"')
    one = in_memory(text)
    found, market = Regulated([one]), one.market
    grams = [100.0] * 1200 + [400.0] * 2460 + [50.0] * 2340 + [700.0] * 1200
    joules = market.tracking.power_w  # of a second each
    kg = [math.fsum(joules[at] * grams[at] for at in range(*span)) / 3.6e9
          for span in ((0, 3600), (3600, 7200))]  # fmt: skip
    assert [hour.carbon_kg for hour in market.by_hour] == pytest.approx(kg, rel=1e-12)
    assert market.measures.carbon_kg == found.measures.carbon_kg == pytest.approx(sum(kg))
    made: Any = parse(text, "here")
    plain_made: Any = parse(text, "here", WITHOUT)
    model, until = made.model(), 7200 * 10**6
    record = simulate(model, until).power
    assert record is not None
    assert power_measures(record, None, None, model.steps("carbon")).co2_kg == pytest.approx(
        sum(kg), rel=1e-9
    )
    # Without demand response, from the jobs as they start and end.
    schedule = simulate(plain_made.model(), until).schedule
    types = market.types
    assert types is not None
    moments = np.arange(7200) * 10**6
    watts = np.full(7200, 35 * IDLE_W)
    for job in np.flatnonzero(schedule.start_us >= 0).tolist():
        end = schedule.end_us[job] if schedule.end_us[job] >= 0 else until
        part = np.clip(end - moments, 0, 10**6) - np.clip(
            schedule.start_us[job] - moments, 0, 10**6
        )
        more = types.most_w[types.of_job[job]] - IDLE_W
        watts += part * 1e-6 * schedule.trace.nodes[job] * more
    without = (watts * np.array(grams)).reshape(2, 3600).sum(axis=1) / 3.6e9
    assert one.without.carbon_kg is not None
    assert one.without.carbon_kg.tolist() == pytest.approx(without.tolist(), rel=1e-9)
    assert found.carbon_without_kg == pytest.approx(without.sum())
    plain = in_memory(text.replace(CARBON, ""))
    assert plain.without.carbon_kg is None
    assert plain.digest == one.digest
    assert plain.without.energy_kwh == pytest.approx(one.without.energy_kwh, rel=1e-12)
    assert Regulated([plain]).carbon_without_kg is None


def test_of_a_warm_up_nothing_is_judged() -> None:
    """The hours after it are those of the same run that judges all."""
    text = TEXT.replace("[market]", CARBON + "[market]").replace("RESERVE", "1500")
    text = text.replace('"1 h"', '"3 h"')
    whole = Regulated([in_memory(text)])
    found = Regulated([in_memory(text.replace("energy_price", 'warmup = "1 h"\nenergy_price'))])
    assert found.runs[0].digest == whole.runs[0].digest
    assert (found.measures.hours, whole.measures.hours) == (2, 3)
    ours, theirs = (it.runs[0].without.carbon_kg for it in (found, whole))
    assert ours is not None
    assert theirs is not None
    assert ours.tolist() == theirs.tolist()
    assert found.carbon_without_kg == pytest.approx(theirs[1:].sum())
    assert [row["judged"] for row in found.rows] == [False, True, True]
    late = [hour.carbon_kg or 0.0 for hour in whole.runs[0].market.by_hour][1:]
    assert found.measures.carbon_kg == pytest.approx(sum(late))
    assert found.bill is None
