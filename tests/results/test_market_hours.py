"""The hours of a market: against the second simulator's own, and by hand."""

from __future__ import annotations

import importlib.util
import math
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from regulation_naive import Setting, hours, q_of, simulate

from odonata.experiment.reading import parse
from odonata.results.execution import RunOptions, execute
from odonata.results.market import Market
from odonata.results.market_memory import simulate_market
from odonata.results.run import Run
from odonata.results.run import open as open_run

TWIN = Path(__file__).parents[1] / "cluster" / "test_regulation_twin.py"
SHORT = """
name = "short"
fidelity = "job"
[trace]
model = "mix"
mix = "W4"
span = "9 min"
nodes = 36
[power]
policy = "energy-qare"
interval = "1 s"
[market]
bidding = { name = "fixed", average = 8434, reserve = 3435 }
signal = "synthetic"
hour = "4 min"
energy_price = [["0 s", 0.1], ["2 min", 0.3]]
violation = 0.5
standby = "bt.C.16"
[run]
duration = "10 min"
[metrics]
interval = "1 min"
"""


@pytest.fixture(scope="module")
def twin() -> Any:
    """The module that makes our machine of the second simulator's setting."""
    spec = importlib.util.spec_from_file_location("twin", TWIN)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def listed(twin: Any) -> Iterator[None]:
    from policies.bidding import BIDDINGS, bidding

    bidding("listed", about="a test's", source="ours")(twin.Listed)
    yield
    del BIDDINGS["listed"]


def market_of(twin: Any, setting: Setting, **rules: Any) -> Market:
    model = twin.model_of(setting)
    model = replace(model, market=replace(model.market, **rules))
    found = simulate_market(model, setting.end_us)
    assert found.market is not None
    return found.market


@pytest.mark.parametrize("seed", range(40))
def test_an_hour_is_what_the_documentation_says(twin: Any, seed: int) -> None:
    setting = twin.possible(seed)
    found = simulate(setting)
    market = market_of(twin, setting, violation=3.0)
    theirs = hours(setting, found, violation=3.0)
    assert len(market.by_hour) == len(theirs)
    assert market.types is not None
    for ours, their in zip(market.by_hour, theirs, strict=True):
        assert ours.error_mean == (None if their.error is None else pytest.approx(their.error))
        assert ours.bad_share == (None if their.bad is None else pytest.approx(their.bad))
        assert ours.cost == pytest.approx(their.cost)
        assert ours.saving == (None if their.saving is None else pytest.approx(their.saving))
        parts = ours.cost_energy + ours.cost_reserve + (ours.cost_error or 0) + ours.cost_violation
        assert parts == pytest.approx(ours.cost)
        late = dict(zip([it.name for it in setting.types], their.late, strict=True))
        assert {it.type: it.late_share for it in ours.types} == {
            name: late[name] for name in market.types.names
        }
    assert market.quality is not None
    expected = [q_of(setting, found, job) for job in range(len(setting.jobs))]
    there = ~np.isnan(market.quality)
    assert market.quality[there] == pytest.approx(np.array(expected)[there], abs=1e-6)
    assert (~there).tolist() == [job.submit_us >= setting.end_us for job in setting.jobs]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    folder = tmp_path_factory.mktemp("market")
    (folder / "short.toml").write_text(SHORT)
    execute(RunOptions(folder / "short.toml", folder / "out", progress=False))
    with open_run(folder / "out") as opened:
        assert isinstance(opened, Run)
        yield opened


def test_files_tell_what_a_run_in_memory_tells(run: Run) -> None:
    made: Any = parse(SHORT, "short.toml")
    there = simulate_market(made.model(), 600 * 10**6).market
    assert run.market is not None
    assert there is not None
    for ours, theirs in zip(run.market.rows, there.rows, strict=True):
        assert ours == theirs
    assert run.market.standby_jobs == there.standby_jobs


def test_an_hour_that_the_end_cuts_short_is_as_long_as_it_was(run: Run) -> None:
    assert run.market is not None
    assert [hour.hours for hour in run.market.by_hour] == pytest.approx([4 / 60, 4 / 60, 2 / 60])
    first = run.market.by_hour[0]
    assert first.energy_price == pytest.approx(0.2)
    assert first.cost_energy == pytest.approx(0.2 * 8.434 * 4 / 60)
    assert first.error_above is not None
    assert first.error_below is not None
    assert first.error_above + first.error_below == pytest.approx(first.error_mean)
    assert first.standby_kwh is not None
    assert 0 < first.standby_kwh < first.energy_kwh


def test_datasets_have_units_and_the_same_figures(run: Run) -> None:
    assert run.market is not None
    hours, rows = run.market.hours, run.market.rows
    assert hours.sizes == {"hour": 3, "type": 8}
    assert hours.average_w.attrs["unit"] == "W"
    assert hours.standby_kwh.attrs["unit"] == "kWh"
    assert hours.cost.values.tolist() == [row["cost"] for row in rows]
    names = hours.type.values.tolist()
    assert hours.type_jobs.sel(type="cg.C.4").values.tolist() == [
        row["types"]["cg.C.4"]["jobs"] for row in rows
    ]
    assert set(names) == set(rows[0]["types"])
    assert int(hours.type_jobs.sum()) == int(hours.jobs.sum()) == len(run.trace)
    error = run.market.errors
    assert float(error[error.time <= 240 * 10**6].mean()) == pytest.approx(rows[0]["error_mean"])
    assert run.market.q.sizes == {"job": len(run.trace)}
    assert run.jobs.type.values.tolist()[0] in names
    assert run.jobs.q.values == pytest.approx(run.market.q.values, nan_ok=True)


def test_the_file_has_the_hours_with_units(run: Run) -> None:
    assert run.market is not None
    hours, kept = run.market.hours, run.file["market/hours"]
    assert set(kept) == {*hours.data_vars, "begin_s"}
    for name, dataset in kept.items():
        assert np.array_equal(dataset, hours[name].values, equal_nan=True)
        assert dataset.attrs["unit"] == hours[name].attrs["unit"]
        assert tuple(dim.label for dim in dataset.dims) == hours[name].dims
    assert kept["average_w"].attrs["unit"] == "W"


@pytest.mark.parametrize("lost", ["run.h5", "jobs.csv"])
def test_hours_are_kept_anew_where_a_file_is_lost(run: Run, tmp_path: Path, lost: str) -> None:
    """Whoever is killed while a run ends may have `run.h5` and no table, or neither."""
    out = tmp_path / "out"
    shutil.copytree(run.path, out)
    (out / lost).unlink()
    execute(RunOptions(None, out, resume=True, progress=False))
    with open_run(out) as found:
        assert np.array_equal(found.file["market/hours/cost"], run.file["market/hours/cost"])


def test_aggregates_are_of_the_hours(run: Run) -> None:
    assert run.market is not None
    found: Any = run.market.measures
    hours = run.market.by_hour
    assert found.hours == 3
    assert found.cost == pytest.approx(math.fsum(hour.cost or 0 for hour in hours))
    paid = math.fsum(hour.cost_energy for hour in hours)
    assert found.saving == pytest.approx(1 - found.cost / paid)
    assert found.saving_high is None, "the hours of a run depend on each other"
    off_j = math.fsum(hour.error_mean * hour.reserve_w * hour.hours for hour in hours)
    whole_j = math.fsum(hour.reserve_w * hour.hours for hour in hours)
    assert found.error_mean == pytest.approx(off_j / whole_j)
    assert found.hours_kept == sum(hour.tracking_ok for hour in hours)
    shares: Any = {it.type: it.late_share for it in run.market.of_types()}
    assert found.worst_late_share == max(shares.values())
    assert shares[found.worst_type] == found.worst_late_share


def test_standby_jobs_count_in_the_energy_of_the_machine(run: Run) -> None:
    assert run.power_measures is not None
    assert run.market is not None
    tracking = run.market.tracking
    assert tracking.time_us[-1] == 600 * 10**6
    drawn = float((tracking.power_w * tracking.seconds).sum()) / 3.6e6
    assert run.power_measures.energy_kwh == pytest.approx(drawn, rel=1e-9)
    assert 0 < run.power_measures.standby_kwh < run.power_measures.jobs_kwh


def test_all_that_is_kept_of_a_run_has_its_market(run: Run) -> None:
    from odonata.results.kept_summary import kept
    from odonata.results.measured import simulated_facts

    assert run.market is not None
    facts = kept(run.path, run.experiment)["market"]
    assert facts["saving"] == run.market.measures.saving
    assert facts["by_hour"][1]["cost"] == run.market.by_hour[1].cost
    assert facts["types"]["mg.D.16"]["threshold"] == 2.8
    assert simulated_facts(run.experiment)["market"] == facts
