"""Simulated waits beside recorded ones."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from odonata.cluster.model import Cluster
from odonata.cluster.simulation import simulate
from odonata.commands.recorded import show
from odonata.experiment.terminal import plain_console
from odonata.figures.recorded import draw_reproductions
from odonata.jobs.schedule import Schedule
from odonata.results.recorded import PARTS, Reproduction, recorded, reproduction
from odonata.results.schedule_measures import measures
from odonata.traces.distributions import powers_of_two
from odonata.traces.poisson import poisson
from odonata.traces.source import Source
from odonata.traces.trace import SECOND, UNKNOWN, Trace
from odonata.traces.windows import WEEK_US
from pdes.errors import Refused

NODES = 32
DATA = Path(__file__).parents[2].parent / "shared" / "data"


@pytest.fixture(scope="module")
def simulated() -> Schedule:
    """Seven weeks of jobs under fcfs."""
    trace = poisson(1200, NODES, load=0.7, sizes=powers_of_two(NODES))
    factor = 7.5 * WEEK_US / trace.span_us
    trace = trace.where(slice(None), submit_us=np.rint(trace.submit_us * factor).astype(np.int64),
                        run_us=np.rint(trace.run_us * factor).astype(np.int64))  # fmt: skip
    return simulate(Cluster(trace, NODES, "fcfs", overrun="extend")).schedule


def told(schedule: Schedule, wait_us: np.ndarray) -> Schedule:
    """Returns a schedule of a trace that tells of these waits."""
    return simulate(Cluster(schedule.trace.where(slice(None), wait_us=wait_us), NODES, "fcfs",
                            overrun="extend")).schedule  # fmt: skip


def waits(schedule: Schedule) -> np.ndarray:
    found: np.ndarray = schedule.start_us - schedule.trace.submit_us
    return found


def test_a_machine_that_does_what_is_simulated_is_reproduced_exactly(simulated: Schedule) -> None:
    found = reproduction(told(simulated, waits(simulated)))
    assert found.jobs == 1200
    assert found.weeks == 8
    assert found.ks[:3] == (0, 0, 0)
    assert found.ratio[:3] == (1, 1, 1)
    assert found.correlation.mean == pytest.approx(1)
    assert found.rank_correlation.mean == pytest.approx(1)
    assert found.absolute_error_s.mean == found.utilisation_error == 0
    assert all(it.recorded_s == it.simulated_s for it in (*found.quantiles, *found.by_size))
    assert all(it.error_s is None for it in found.by_week)


def test_figures_are_those_of_numpy_and_scipy(simulated: Schedule) -> None:
    rng = np.random.default_rng(2)
    real = np.rint(rng.exponential(3600, len(simulated))).astype(np.int64) * SECOND
    found = reproduction(told(simulated, real))
    a, b = real / SECOND, waits(simulated) / SECOND
    assert found.mean.error_s is not None
    assert found.mean.error_s.mean == pytest.approx(b.mean() - a.mean())
    assert found.ratio.mean == pytest.approx(b.mean() / a.mean())
    assert found.ks.mean == pytest.approx(stats.ks_2samp(a, b).statistic)
    logs = np.log(np.maximum(a, 1)), np.log(np.maximum(b, 1))
    assert found.correlation.mean == pytest.approx(stats.pearsonr(*logs).statistic)
    assert found.rank_correlation.mean == pytest.approx(stats.spearmanr(a, b).statistic)
    assert found.absolute_error_s.mean == pytest.approx(np.abs(b - a).mean())
    for it, part in zip(found.quantiles, PARTS, strict=True):
        theirs = (np.quantile(of, part, method="inverted_cdf") for of in (a, b))
        assert (it.recorded_s, it.simulated_s) == pytest.approx([*theirs])
    week = simulated.trace.submit_us // WEEK_US
    assert [it.recorded_s for it in found.by_week] == pytest.approx(
        [a[week == number].mean() for number in range(8)])  # fmt: skip


def test_the_error_of_a_size_of_jobs_is_found_where_it_is(simulated: Schedule) -> None:
    """Jobs of 32 nodes have waited for an hour less than is simulated, and all others as long."""
    large = simulated.trace.nodes == NODES
    late = np.where(large, np.maximum(waits(simulated) - 3600 * SECOND, 0), waits(simulated))
    there = np.where(large & (waits(simulated) < 3600 * SECOND), UNKNOWN, late)
    found = reproduction(told(simulated, there))
    *others, wrong = found.by_size
    assert wrong.name == "17-32"
    assert wrong.error_s is not None
    assert wrong.error_s[:3] == pytest.approx((3600, 3600, 3600))
    assert all(it.error_s is not None and it.error_s.mean == 0 for it in others)
    assert found.jobs == 1200 - (there == UNKNOWN).sum()


def test_a_recorded_schedule_is_one_like_any_other(simulated: Schedule) -> None:
    wait_us = waits(simulated).copy()
    wait_us[5] = UNKNOWN
    trace = simulated.trace.where(slice(None), wait_us=wait_us)
    real = recorded(trace, NODES)
    assert real.trace.account.lines() == ["1 dropped: no wait is recorded"]
    kept = np.arange(1200) != 5
    found = measures(real)
    assert found.mean_wait_s == pytest.approx(waits(simulated)[kept].mean() / SECOND)
    assert found.finished == 1199
    assert (real.end_us == simulated.end_us[kept]).all()


def test_what_is_submitted_in_the_warm_up_or_the_cool_down_is_not_compared(
    simulated: Schedule,
) -> None:
    late = waits(simulated).copy()
    weeks = simulated.trace.submit_us // WEEK_US
    late[(weeks == 0) | (weeks == 7)] += 3600 * SECOND
    found = reproduction(told(simulated, late), warmup_us=WEEK_US, cooldown_us=WEEK_US // 2)
    assert found.absolute_error_s.mean == 0
    assert found.weeks == 6
    with pytest.raises(Refused, match="no job with a recorded wait is left to be compared"):
        reproduction(told(simulated, late), warmup_us=9 * WEEK_US)


def test_a_trace_without_waits_is_refused(simulated: Schedule) -> None:
    with pytest.raises(Refused, match=r"no wait times are recorded, .* field 3"):
        reproduction(simulated)


def test_few_weeks_give_no_interval(simulated: Schedule) -> None:
    found = reproduction(told(simulated, waits(simulated)), cooldown_us=5 * WEEK_US)
    assert found.weeks == 3
    assert math.isnan(found.ks.low)
    assert found.facts()["ks"] == {"mean": 0.0, "low": None, "high": None, "of": 3}


def test_tables_and_pictures_have_every_discipline(
    simulated: Schedule, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    schedules = {"fcfs": told(simulated, waits(simulated) // 2), "again": simulated}
    schedules["again"] = schedules["fcfs"]
    found = {name: reproduction(one) for name, one in schedules.items()}
    console = plain_console(highlight=False)
    console.width = 200
    show(console, found, weeks=True)
    said = capsys.readouterr().out
    for words in ("fcfs", "again", "wait, 95%", "17-32 nodes", "week 8", "Kolmogorov-Smirnov",
                  "1,200 jobs have a recorded wait", "over 8 weeks"):  # fmt: skip
        assert words in said
    draw_reproductions(schedules, found, tmp_path / "a.svg")
    drawn = (tmp_path / "a.svg").read_text()
    assert drawn.count('<g id="axes_') == 5
    draw_reproductions(schedules, found, tmp_path / "b.svg")
    assert (tmp_path / "b.svg").read_text() == drawn


@pytest.mark.parametrize(("name", "nodes"), [("hpc2n-sample.swf", 240), ("krc2.csv", 80)])
def test_a_real_trace_is_compared(name: str, nodes: int) -> None:
    if not (DATA / name).exists():
        pytest.skip(f"{name} is not there: nothing was shown on a real trace")
    trace, _ = Source(file=str(DATA / name), nodes=nodes).trace()
    found = reproduction(simulate(Cluster(trace, nodes, "easy")).schedule)
    assert isinstance(found, Reproduction)
    assert found.jobs == (trace.wait_us >= 0).sum() > 3000
    assert found.mean.recorded_s == pytest.approx(_mean_wait_s(trace))
    for it in (found.ratio, found.ks, found.absolute_error_s):
        assert 0 < it.low < it.mean < it.high


def _mean_wait_s(trace: Trace) -> float:
    return float(trace.wait_us[trace.wait_us >= 0].mean()) / SECOND


def test_the_command_compares_with_what_was_recorded(
    go: Callable[..., str], odonata: Callable[..., Any], tmp_path: Path
) -> None:
    """With jobs of a day that need the whole machine: the real one waited an hour longer."""
    rows = [(n, n * 86400, 3600 if n > 1 else 0, 43200) for n in range(1, 40)]
    lines = [f"{n} {at} {wait} {run} 4 0 0 4 {run} 0 1 1 1 1 1 1 0 0" for n, at, wait, run in rows]
    (tmp_path / "a.swf").write_text("\n".join(["; MaxProcs: 4", *lines]))
    asked = "schedule", "a.swf", "--scheduling", "fcfs,easy", "--recorded"
    said = go(*asked, "--plot", "a.png")
    assert "-58.5 min" in said
    assert (tmp_path / "a.png").stat().st_size > 1000
    facts = json.loads(go(*asked, "--json"))["runs"][1]["recorded"]
    assert facts["mean"]["recorded_s"] == pytest.approx(3600 * 38 / 39)
    assert facts["mean"]["simulated_s"] == 0
    assert facts["weeks"] == 6
    refused = odonata(*asked, "--load", "0.5")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--recorded has nothing to compare with" in refused.stderr
