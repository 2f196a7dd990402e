"""Figures and reports of a market; a run in one is compared, swept and reported without a flaw."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from odonata.commands import compare, report, run, sweep
from odonata.figures import market as pictures
from odonata.figures.market import Hours, _by_name, _count, of_market
from odonata.figures.style import style
from odonata.results.market import Market
from odonata.results.run import open as open_run

FILE = """
name = "short"
fidelity = "job"
[trace]
model = "mix"
mix = "qosg"
span = "8 min"
nodes = 40
[power]
policy = "qosg"
interval = "1 s"
[market]
bidding = { name = "fixed", average = 7000, reserve = 1500 }
signal = "synthetic"
hour = "4 min"
violation = 0.02
[run]
duration = "8 min"
[metrics]
interval = "1 min"
"""
NAMES = [picture.name for picture in pictures.PICTURES]


def invoke(command: Any, *words: Any) -> str:
    result = CliRunner().invoke(command, [str(word) for word in words])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("figures")
    (found / "short.toml").write_text(FILE)
    for seed in (1, 2):
        invoke(run.command, found / "short.toml", "-o", found / f"seed{seed}", "--set",
               f"run.seed={seed}", "--no-progress")  # fmt: skip
    return found


@pytest.fixture(scope="module")
def market(folder: Path) -> Iterator[Market]:
    with open_run(folder / "seed1") as opened:
        found = opened.market  # type: ignore[union-attr]
        assert found is not None
        yield found


def test_a_page_has_the_hours_in_figures_and_in_numbers(folder: Path) -> None:
    invoke(report.command, folder / "seed1")
    page = (folder / "seed1" / "report.html").read_text()
    for words in ("Demand response", "Power and its target", "How late jobs were", "of the reserve",
                  "hours that kept the rule"):  # fmt: skip
        assert words in page


@pytest.mark.parametrize(
    "kind", ["svg", *(pytest.param(kind, marks=pytest.mark.long) for kind in ("png", "pdf"))]
)
def test_each_figure_is_a_file(folder: Path, kind: str) -> None:
    invoke(report.command, folder / "seed2", "--format", kind)
    written = {path.name for path in (folder / "seed2" / "figures").glob(f"*.{kind}")}
    assert {f"{name}.{kind}" for name in NAMES} <= written
    run.forget_report(folder / "seed2")
    assert not any((folder / "seed2" / "figures").glob(f"*.{kind}"))


def test_runs_are_compared_by_what_they_saved(folder: Path) -> None:
    text = invoke(compare.command, folder / "seed1", folder / "seed2", "--each")
    for words in ("saving", "cost in the market", "error, mean", "bad intervals",
                  "late, worst type"):  # fmt: skip
        assert words in text
    facts = json.loads(invoke(compare.command, folder / "seed1", folder / "seed2", "--json"))
    assert "market.saving" in json.dumps(facts)


def test_a_sweep_has_the_figures_of_the_market(folder: Path) -> None:
    text = invoke(sweep.command, folder / "short.toml", "--set",
                  "power.policy=qosg,tracking-only", "-o", folder / "sweep", "--jobs", 1,
                  "--figure", "market.saving", "--json")  # fmt: skip
    assert "market.saving" in text
    listed = invoke(sweep.command, "--report", "-o", folder / "sweep", "--figures").split("\n")
    for name in ("cost", "error_mean", "bad_share", "hours_kept", "worst_late_share"):
        assert f"market.{name}" in listed
    assert "market.types.bt.late_share" in listed
    shown = invoke(sweep.command, "--report", "-o", folder / "sweep")
    assert "saving" in shown


def test_summaries_say_what_was_saved(folder: Path) -> None:
    told = invoke(run.command, "--resume", "-o", folder / "seed1")
    assert "hours that kept QoS" in told
    facts = json.loads(invoke(run.command, "--resume", "-o", folder / "seed1", "--json"))
    first = facts["market"]["by_hour"][0]
    assert facts["market"]["hours"] == 2
    assert first["cost_violation"] == (0 if first["tracking_ok"] else 0.02)


def test_jobs_that_go_on_are_counted_over_time() -> None:
    found = _count(np.array([0, 5, 5]), np.array([10, 10, 20]), np.array([0, 5, 10, 20, 30]))
    assert found.tolist() == [1, 3, 1, 0]


def test_degradations_are_drawn_of_types_with_a_limit(market: Market) -> None:
    assert market.types is not None
    assert market.quality is not None
    rows = {name: now for name, _, now, _ in _by_name(of_market(market))}
    assert set(rows) <= set(market.types.names)
    for name, now in rows.items():
        mine = market.types.of_job == market.types.names.index(name)
        assert sorted(now) == sorted(market.quality[mine & ~np.isnan(market.quality)])


def test_the_worst_hour_is_that_with_the_most_bad_intervals(market: Market) -> None:
    shown = Hours([market, market], ["seed 1", "seed 2"])
    assert [hour.name for hour in shown.every][:2] == ["seed 1 hour 1", "seed 1 hour 2"]
    assert shown.worst.facts.bad_share == max(hour.bad_share or 0 for hour in market.by_hour)


def test_of_a_run_that_has_not_begun_nothing_is_drawn_and_all_is_undefined(market: Market) -> None:
    none = np.zeros(0)
    early = replace(
        market, until_us=0, bids=type(market.bids)(none.astype(int), none, none, none > 0),
        tracking=type(market.tracking)(none.astype(int), none, none, none),
    )  # fmt: skip
    shown = of_market(early)
    assert all(picture.missing(shown) for picture in pictures.PICTURES[:3])
    assert early.measures.hours == 0
    assert early.measures.saving is None
    assert early.hours.sizes["hour"] == 0


def test_nothing_offered_has_no_error_and_is_drawn(market: Market) -> None:
    zero = replace(market, bids=market.bids._replace(reserve_w=market.bids.reserve_w * 0))
    hour = zero.by_hour[0]
    assert (hour.error_mean, hour.bad_share, hour.tracking_ok) == (None, None, True)
    assert hour.saving == pytest.approx(0.0)
    shown = of_market(zero)
    drawn = [it for it in pictures.PICTURES if not it.missing(shown)]
    assert "tracking-errors" not in [it.name for it in drawn]
    with style():
        for picture in drawn:
            picture.drawn(shown)


def test_power_and_target_are_drawn_as_what_they_are(market: Market) -> None:
    from matplotlib.figure import Figure

    with style():
        figure = Figure()
        pictures.tracking(of_market(market), figure)
        stairs = {it.get_label(): it.get_data() for it in figure.axes[0].patches}  # type: ignore[attr-defined]
    its = market.hour_of == 0
    assert stairs["power"].values == pytest.approx(market.tracking.power_w[its])
    assert stairs["target"].values == pytest.approx(market.tracking.target_w[its])


def test_the_hour_that_is_drawn_is_the_first_with_an_offer(market: Market) -> None:
    from matplotlib.figure import Figure

    reserve = market.bids.reserve_w * (np.arange(len(market.bids.reserve_w)) > 0)
    some = replace(market, bids=market.bids._replace(reserve_w=reserve))
    assert of_market(some).first.at == 1
    assert of_market(market).first.at == 0
    nothing = replace(market, bids=market.bids._replace(reserve_w=reserve * 0))
    with style():
        for it, words in ((some, "The first with an offer: hour 2"), (nothing, "nothing offered")):
            figure = Figure()
            pictures.tracking(of_market(it), figure)
            axes: Any = figure.axes[0]
            assert words in axes.get_title(loc="right")
            labels = [patch.get_label() for patch in axes.patches]
            assert ("target" in labels) is (it is some)


def test_what_is_far_beyond_its_limit_is_a_number(market: Market) -> None:
    from matplotlib.figure import Figure

    late = replace(market, until_us=market.until_us + 10**12)
    with style():
        for it, many in ((market, False), (late, True)):
            figure = Figure()
            pictures.quality(of_market(it), figure)
            axes: Any = figure.axes[0]
            assert any("\u25b8" in text.get_text() for text in axes.texts) is many
            assert axes.get_xlim()[1] < 10
