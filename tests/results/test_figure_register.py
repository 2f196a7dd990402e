"""The register of figures: each is declared once, and each is of something that is measured."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields

import pytest

from odonata.experiment.units import show_duration
from odonata.jobs.metering import CAUSES
from odonata.results.market_measures import MarketMeasures
from odonata.results.performance import Performance
from odonata.results.power_measures import PowerMeasures
from odonata.results.register import (
    BY_PATH,
    FIGURES,
    JOB_FIGURES,
    KINDS,
    MARKET,
    NETWORK,
    POWER,
    SCHEDULE,
    USUAL,
    figure,
    flat,
    misleads,
    of_kind,
)
from odonata.results.schedule_measures import Measures
from odonata.results.steadiness import SATURATED, SHORT, UNSETTLED


def test_no_figure_is_declared_twice_under_any_of_its_names() -> None:
    every = [*FIGURES, *JOB_FIGURES]
    for names in ([it.path for it in every], [it.compared for it in FIGURES]):
        assert [name for name, count in Counter(names).items() if count > 1] == []
    assert {it.kind for it in every} == {*KINDS}
    assert len(BY_PATH) == len(every)


@pytest.mark.parametrize(
    ("kind", "measured", "besides"),
    [
        (NETWORK, Performance, {"links"}),
        (SCHEDULE, Measures, {"measured_jobs", *(f"{few}{what}_per_job" for few in ("", "fewest_")
                                                 for what in ("groups", "routers"))}),
        (POWER, PowerMeasures, set()),
        (MARKET, MarketMeasures, set()),
    ],
)  # fmt: skip
def test_every_figure_is_of_something_that_is_measured(
    kind: str, measured: type, besides: set[str]
) -> None:
    there = {one.name for one in fields(measured)} | besides
    for it in of_kind(kind):
        assert it.path.removeprefix("market.").partition(".")[0] in there, it.path
    causes = {it.path.partition(".")[2] for it in of_kind(POWER) if "." in it.path}
    assert causes == {*CAUSES[1:]}


def test_a_number_is_written_with_its_unit_once() -> None:
    assert (figure("mean_latency_ns").head, figure("mean_latency_ns").text(1234.5)) == (
        "latency, mean (ns)", "1,234.5")  # fmt: skip
    wait = figure("mean_wait_s")
    assert (wait.head, wait.title, wait.text(90.0)) == (
        "wait, mean", "wait, mean (s)", show_duration(90.0))  # fmt: skip
    assert figure("links.global.stall_to_flit").text(0.0001) == "1e-04"
    assert figure("jobs.bytes").text(None) == "-"


def test_a_figure_that_nobody_declared_is_named_after_its_path() -> None:
    it = figure("market.cost_error")
    assert (it.title, it.unit, it.scale) == ("cost error", "", 1.0)
    assert figure("last_arrival_ns").title == "last arrival (ns)"


def test_usual_figures_come_in_the_order_of_their_numbers() -> None:
    assert USUAL[:5] == ("market.saving", "market.error_mean", "market.bad_share",
                         "market.worst_late_share", "jobs.run_time_ps")  # fmt: skip
    ranks = [BY_PATH[path].usual for path in USUAL]
    assert ranks == sorted({*ranks})


def test_only_latencies_and_the_throughput_are_taken_for_means_of_a_steady_state() -> None:
    assert misleads(SATURATED, "mean_latency_ns")
    assert not misleads(SATURATED, "throughput")
    assert misleads(UNSETTLED, "throughput")
    assert misleads(SHORT, "throughput")
    assert not misleads(UNSETTLED, "jobs.mean_latency_ps")
    assert not misleads("steady", "p99_latency_ns")


def test_facts_are_flattened_to_the_paths_of_figures() -> None:
    facts = {
        "packets": 3, "links": {"global": {"utilisation": 0.5}}, "name": "x", "load": float("nan"),
        "power": {"policy": "none", "energy_kwh": 2.0}, "jobs": [{"nodes": 1}],
    }  # fmt: skip
    assert dict(flat(facts)) == {
        "packets": 3, "links.global.utilisation": 0.5, "load": None, "energy_kwh": 2.0,
    }  # fmt: skip
    assert isinstance(dict(flat(facts))["packets"], int)
