"""The map of congestion in a report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection, QuadMesh
from matplotlib.figure import Figure

from odonata.figures import congestion
from odonata.figures import contents as pictures
from odonata.figures.jobs import fullest
from odonata.figures.placement import FEW, IDLE
from odonata.figures.style import NO_CABLE, NOTHING, style
from odonata.results.execution import RunOptions, execute
from odonata.results.operator_counters import counters_of
from odonata.results.run import Run
from odonata.results.run import open as open_run
from topology import Dragonfly

FILE = """
name = "map"
[machine]
preset = "kim-72"
[network]
routing = "adaptive"
[[jobs]]
name = "_hidden"
nodes = 20
pattern = "fft3d"
[[jobs]]
nodes = 10
pattern = "incast"
[scheduler]
allocation = "rdn"
[metrics]
interval = "1 us"
"""
TRAFFIC = """
name = "traffic"
[machine]
preset = "kim-72"
[network]
routing = "minimal"
[traffic]
load = 0.4
[run]
duration = "3 us"
[metrics]
interval = "1 us"
"""


def made(home: Path, text: str, *changes: str) -> Run:
    (home / "file.toml").write_text(text)
    execute(RunOptions(home / "file.toml", home / "out", changes, progress=False))
    run = open_run(home / "out")
    assert isinstance(run, Run)
    return run


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return made(tmp_path_factory.mktemp("jobs"), FILE)


def drawn(run: Run) -> Figure:
    with style():
        figure = Figure(figsize=congestion.map_size(run), layout="constrained")
        FigureCanvasAgg(figure)
        congestion.congestion_map(run, figure.subplots())
        figure.canvas.draw()  # what cannot be laid out warns
    return figure


def maps(figure: Figure) -> list[Any]:
    return [axes for axes in figure.axes if axes.get_xlabel() == "group"]


def test_cells_have_the_ratio_of_their_routers(jobs: Run) -> None:
    seen, panels = counters_of(jobs), maps(drawn(jobs))
    assert [axes.get_title() for axes in panels] == ["electrical tiles (local links)",
                                                     "optical tiles (global links)"]  # fmt: skip
    for axes, name in zip(panels, ("local", "global"), strict=True):
        mesh = next(it for it in axes.collections if isinstance(it, QuadMesh))
        shown = np.ma.getdata(mesh.get_array()).reshape(jobs.machine.routers, jobs.machine.groups)
        expected = seen.over_time(seen.stall_to_flit(classes=[name])).reshape(shown.T.shape)
        np.testing.assert_allclose(shown.T, expected)
        assert shown.any()


def painted(values: list[float], routers: int = 2) -> tuple[Figure, list[str]]:
    """Returns a map of groups of so many routers with these ratios, and the colour seen in each
    cell."""
    with style():
        figure = Figure(layout="constrained")
        FigureCanvasAgg(figure)
        machine = Dragonfly(1, routers, 2, len(values) // routers, links_per_pair=1)
        congestion._heat(machine, figure.subplots(), np.array(values), "x")
        figure.canvas.draw()
    seen = np.full((len(values), 4), np.nan)
    for mesh in figure.axes[0].collections:
        assert isinstance(mesh, QuadMesh)
        colours = mesh.get_facecolor().reshape(routers, -1, 4).transpose(1, 0, 2).reshape(-1, 4)
        seen[colours[:, 3] > 0] = colours[colours[:, 3] > 0]
    return figure, [mpl.colors.to_hex(it) for it in seen]


def hexes(*steps: int) -> list[str]:
    return [mpl.colors.to_hex(congestion.HEAT(step)) for step in steps]


def test_one_very_congested_router_leaves_the_others_their_colours() -> None:
    figure, colours = painted([25, 0.5, 0.1, 0.025, 0.02, 0.0, float("nan"), 1.0])
    assert len(set(colours)) == 7
    assert [colours[0], *colours[3:5]] == hexes(47, 0, 0), "less than a thousandth is the lightest"
    assert colours[5:7] == [NOTHING, NO_CABLE]
    assert NOTHING not in hexes(*range(48))
    bar = figure.axes[1]
    assert [it.get_text() for it in bar.get_yticklabels()] \
        == ["0.05", "0.1", "0.2", "0.5", "1", "2", "5", "10", "20"]  # fmt: skip
    assert not any(it.get_rasterized() for it in bar.collections), "the bar is no image"


def test_the_colours_are_logarithmic() -> None:
    _, colours = painted([1, 10, 100, 1000])
    assert colours == hexes(0, 16, 32, 47)


@pytest.mark.parametrize("value", [1e-9, 0.02, 0.7, 25, 1e6])
def test_a_single_router_with_stalls_is_the_darkest(value: float) -> None:
    figure, colours = painted([0, value, float("nan"), 0])
    assert colours == [NOTHING, *hexes(47), NO_CABLE, NOTHING]
    assert sum(bool(it.get_text()) for it in figure.axes[1].get_yticklabels()) >= 2


def test_without_any_stall_all_is_white_and_there_is_no_scale() -> None:
    figure, colours = painted([0, 0, 0, float("nan")])
    assert colours == [*[NOTHING] * 3, NO_CABLE]
    assert len(figure.axes) == 1


@given(st.lists(st.just(0.0) | st.floats(1e-12, 1e9), min_size=1))
def test_a_scale_has_its_ends_and_some_ticks(values: list[float]) -> None:
    low, most = congestion.scale(np.array(values))
    some = [value for value in values if value > 0]
    assert 2 * (1 - 1e-9) <= most / low <= congestion.SPAN * (1 + 1e-9)
    if some:
        assert most == max(some)
        assert low in (min(some), most / congestion.SPAN, most / 2)
    ticks = congestion.scale_ticks(low, most)
    assert 2 <= len(ticks) <= 11
    assert ticks == sorted(ticks)


def test_the_distribution_is_that_of_the_same_ratios(jobs: Run) -> None:
    figure = Figure()
    axes = figure.subplots()
    congestion.router_stalls(jobs, axes)
    expected, x = counters_of(jobs).stall_to_flit(), axes.lines[0].get_xdata()
    assert np.max(x) == expected.max() > 0
    assert axes.get_title(loc="right").startswith(f"{np.count_nonzero(expected):,} of ")


def test_nodes_have_the_colours_of_their_jobs(jobs: Run) -> None:
    _, placed = fullest(jobs)
    owner = {label: n for n, it in enumerate(placed) for label in it.labels}
    assert len(owner) == 30
    figure = drawn(jobs)
    for axes in maps(figure):
        marks = next(it for it in axes.collections if type(it) is PolyCollection)
        assert len(marks.get_paths()) == jobs.machine.n_nodes
        for label, path in enumerate(marks.get_paths()):
            colour = FEW[owner[label]] if label in owner else IDLE
            assert mpl.colors.to_hex(marks.get_facecolor()[label]) == colour
            group, router = label // 8, label // 2 % 4
            x, y = path.vertices[:-1].mean(axis=0)
            assert group + 0.5 - congestion.STRIP < x < group + 0.5
            assert router - 0.5 < y < router + 0.5
    words = [text.get_text().strip() for text in figure.legends[0].get_texts()]
    assert words == ["_hidden", "job 1", "idle node"]


def test_a_run_without_jobs_has_no_marks(tmp_path: Path) -> None:
    run = made(tmp_path, TRAFFIC)
    figure = drawn(run)
    assert not figure.legends
    assert all(type(it) is not PolyCollection for axes in maps(figure) for it in axes.collections)


def test_of_one_group_there_are_electrical_tiles_only(tmp_path: Path) -> None:
    run = made(tmp_path, TRAFFIC, "machine.groups=1")
    assert len(maps(drawn(run))) == 1


def test_a_run_without_stalls_says_so(tmp_path: Path) -> None:
    run = made(tmp_path, TRAFFIC, "traffic.messages=0")
    assert [axes.get_title().partition(": ")[2] for axes in maps(drawn(run))] \
        == ["no stall counts"] * 2  # fmt: skip


def test_the_report_says_how_to_read_it(jobs: Run) -> None:
    picture = next(it for it in pictures.of(jobs) if it.name == "congestion-map")
    assert not picture.missing(jobs)
    assert "the job that had it at" in picture.caption(jobs)
    assert "a logarithmic one" in picture.caption(jobs)
    assert "White: no stall" in picture.caption(jobs)
