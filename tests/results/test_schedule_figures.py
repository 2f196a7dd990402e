"""Figures of a schedule: that each is drawn from whatever schedule there is, and shows its
numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch
from test_schedule_measures import made

from odonata.experiment.units import show_duration
from odonata.figures import clock
from odonata.figures import comparison as comparisons
from odonata.figures import schedule as figures
from odonata.figures.picture import write
from odonata.figures.placement import FEW
from odonata.figures.style import style
from odonata.jobs.metering import PowerRecord
from odonata.jobs.schedule import RUNNING, TO_COME, WAITING, Schedule
from odonata.results.schedule_measures import measures
from odonata.traces.trace import SECOND
from topology import Dragonfly

MACHINE = Dragonfly(nodes=2, routers=4, global_links=1, groups=5)


def some(jobs: int = 12, placed: bool = False) -> Schedule:
    """Returns jobs of 1 to 5 nodes, one after the other on the same nodes of 40."""
    rng = np.random.default_rng(2)
    asked = [{"submit": 20 * i, "nodes": 1 + i % 5, "held": [(25 * i, 25 * i + 25)],
              "labels": rng.permutation(40)[: 1 + i % 5]} for i in range(jobs)]  # fmt: skip
    return made(asked, nodes=40, machine=MACHINE if placed else None)


def drawn(schedule: Schedule, name: str) -> Figure:
    picture = next(it for it in figures.PICTURES if it.name == name)
    assert not picture.missing(schedule)
    with style():
        figure = picture.drawn(schedule)
        figure.canvas.draw()
    return figure


def test_a_placed_schedule_has_every_figure_and_always_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    paths = write(figures.PICTURES, some(placed=True), tmp_path, "svg")
    assert [path.stem for path in paths] == [it.name for it in figures.PICTURES]
    again = write(figures.PICTURES, some(placed=True), tmp_path / "again", "svg")
    assert [path.read_bytes() for path in paths] == [path.read_bytes() for path in again]


@pytest.mark.parametrize(
    ("jobs", "names"),
    [
        ([], []),
        ([{"submit": 3, "held": [], "state": TO_COME}], []),
        ([{"submit": 0, "held": [], "state": WAITING}], ["over-time"]),
        ([{"submit": 0, "held": [(1, None)], "state": RUNNING}], ["over-time", "gantt"]),
        ([{"submit": 0, "held": [(0, 2)]}], ["over-time", "gantt", "waits", "distributions"]),
        pytest.param(
            [{"submit": 0, "held": [(2, 2)]}],
            ["over-time", "gantt", "waits", "distributions"],
            marks=pytest.mark.long,
        ),
    ],
)
def test_what_cannot_be_drawn_is_left_out_with_a_sentence(
    jobs: list[dict[str, Any]], names: list[str], tmp_path: Path
) -> None:
    schedule = made(jobs, reached=2)
    assert [path.stem for path in write(figures.PICTURES, schedule, tmp_path, "svg")] == names
    missing = [it.missing(schedule) for it in figures.PICTURES if it.name not in names]
    assert all(sentence.endswith(".") for sentence in missing)


def test_the_curve_over_time_is_the_nodes_in_use() -> None:
    schedule = some(3)
    above, below = drawn(schedule, "over-time").axes
    stairs = next(it for it in above.patches if isinstance(it, StepPatch)).get_data()
    assert (stairs.values * 40).tolist() == [1, 1, 2, 2, 3, 0]
    assert stairs.edges.tolist() == [0, 20, 25, 40, 50, 75, 75]
    assert "5.0% of node-time" in above.get_title(loc="right")
    assert below.get_title(loc="right") == "mean 0.2, at most 1"


def test_merged_steps_keep_the_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "MOST_STEPS", 10)
    schedule = some(60)
    above, _ = drawn(schedule, "over-time").axes
    stairs = next(it for it in above.patches if isinstance(it, StepPatch)).get_data()
    assert len(stairs.values) == 10
    assert np.mean(stairs.values) == pytest.approx(measures(schedule).utilisation)
    assert "a step is the mean over" in above.get_title(loc="right")


def test_a_gantt_chart_has_a_rectangle_per_range_of_nodes() -> None:
    jobs = [
        {"submit": 0, "nodes": 3, "held": [(0, 10)], "labels": [4, 5, 9]},
        {"submit": 0, "nodes": 2, "held": [(5, 20)], "labels": [0, 1]},
    ]
    (axes,) = drawn(made(jobs, nodes=40, machine=MACHINE), "gantt").axes
    boxes = [it.get_extents().extents.tolist() for it in axes.collections[0].get_paths()]
    assert boxes == [[0, 4, 10, 6], [0, 9, 10, 10], [5, 0, 20, 2]]
    assert axes.get_title(loc="right") == "2 jobs, coloured by job"


def test_many_ranges_are_an_image_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "MOST_BARS", 1)
    monkeypatch.setattr(figures, "COLUMNS", 4)
    jobs = [{"submit": 0, "nodes": 1, "held": [(0, 10)]},
            {"submit": 0, "nodes": 2, "held": [(10, 40)]}]  # fmt: skip
    (axes,) = drawn(made(jobs, nodes=3), "gantt").axes
    first, second, white = to_rgba(FEW[0]), to_rgba(FEW[1]), (1.0, 1.0, 1.0, 1.0)
    expected = [[first, second, second, second], [white, second, second, second], [white] * 4]
    image = axes.images[0].get_array()
    assert image is not None
    np.testing.assert_allclose(np.asarray(image), np.array(expected), atol=1e-6)
    assert "short jobs may be missing" in axes.get_title(loc="right")
    assert "only counted" in axes.get_title(loc="right")


def test_waits_by_size_name_their_classes_and_counts() -> None:
    (axes,) = drawn(some(12), "waits").axes
    labels = [tick.get_text() for tick in axes.get_xticklabels()]
    assert labels == ["1\n3", "2\n3", "3-4\n4", "5-8\n2"]


def test_a_comparison_has_bars_of_the_means() -> None:
    schedules = {"one": some(6), "_two": some(12), "none done": made(
        [{"submit": 0, "held": [], "state": WAITING}], reached=5)}  # fmt: skip
    with style():
        figure = comparisons.comparison(schedules)
        figure.canvas.draw()
    *_, waits, slowdowns = figure.axes
    found = [measures(it) for it in schedules.values()]
    heights = [bar.get_height() for bar in waits.patches]  # type: ignore[attr-defined]
    assert heights == [it.mean_wait_s or 0 for it in found]
    heights = [bar.get_height() for bar in slowdowns.patches]  # type: ignore[attr-defined]
    assert heights == [it.mean_bounded_slowdown or 0 for it in found]
    assert [text.get_text() for text in waits.texts] == ["12.5 s", "27.5 s", "-"]


def measured(readings: int, cap_w: float = np.inf) -> PowerRecord:
    """Returns readings of 100 W, 200 W and so on, one every 50 s."""
    none = np.zeros(0, np.int64)
    times = 50 * SECOND * np.arange(1, readings + 1)
    return PowerRecord(
        times, 100.0 * np.arange(1, readings + 1), np.full(readings, cap_w),
        np.zeros(readings, np.int8), int(times[-1]), np.zeros(1), 0.0, 0.0, 0.0,
        (none, none, np.zeros(0)), (none, np.zeros(0)), {},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("caps", "lines", "words"),
    [((400.0, 400.0), 3, "the cap"), ((400.0, 300.0), 4, "their caps"),
     ((np.inf, np.inf), 2, "")],
)  # fmt: skip
def test_a_comparison_has_a_panel_of_power(
    caps: tuple[float, float], lines: int, words: str
) -> None:
    schedules = {"one": some(6), "two": some(12), "not measured": some(3)}
    power = {"one": measured(3, caps[0]), "two": measured(6, caps[1])}
    with style():
        figure = comparisons.comparison(schedules, power)
        figure.canvas.draw()
    panel = figure.axes[2]
    assert panel.get_ylabel() == "power (W)"
    drawn = [it for it in panel.patches if isinstance(it, StepPatch)]
    assert len(drawn) == lines
    values = [it.get_data().values.tolist() for it in drawn]
    assert [100.0, 200.0, 300.0] in values
    assert panel.get_title(loc="right").endswith(words)


@pytest.mark.long
def test_more_schedules_than_colours_can_be_compared(tmp_path: Path) -> None:
    comparisons.draw_schedules(
        {f"number {i}": some(3 + i) for i in range(10)}, tmp_path / "all.png"
    )
    assert (tmp_path / "all.png").read_bytes().startswith(b"\x89PNG")


def test_durations_are_for_people() -> None:
    texts = [show_duration(it) for it in (0.25, 59, 90, 5400, 90_000, 864_000, None)]
    assert texts == ["0.25 s", "59 s", "1.5 min", "1.5 h", "25 h", "10 days", "-"]
