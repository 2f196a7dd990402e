"""Power in figures, pages and tables of a job run: that they show what was measured."""

from __future__ import annotations

import csv
import io
import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from files import forget_plugins
from matplotlib.collections import LineCollection
from matplotlib.patches import StepPatch
from rich.console import Console
from test_schedule_measures import made

from odonata.commands.run import forget_report
from odonata.commands.side_by_side import columns_of, comparison, each, tables
from odonata.experiment.reading import parse
from odonata.figures import power as figures
from odonata.figures import schedule as schedule_figures
from odonata.figures.picture import write as write_pictures
from odonata.figures.power import Watts
from odonata.figures.report import page
from odonata.figures.style import style
from odonata.jobs.metering import DEADLOCK, ESTIMATE, WITHIN, PowerRecord
from odonata.jobs.schedule import WAITING
from odonata.jobs.series import Steps
from odonata.results.execution import RunOptions, execute
from odonata.results.job_table import COLUMNS, to_csv
from odonata.results.measured import Measured
from odonata.results.register import POWER
from odonata.results.run import Run
from odonata.traces.trace import SECOND
from policies.register import load_plugin

HOME = Path(__file__).parents[2]
DOC = (HOME / "docs" / "power.md").read_text()
RUN = """
name = "watts"
fidelity = "job"
[trace]
model = "lublin"
jobs = 60
nodes = 64
load = 0.9
[power]
policy = "naive"
cap = [["0 s", "15 kW"], ["4 h", "10 kW"]]
price = [["0 s", 0.1], ["4 h", 0.3]]
carbon = 300
"""


def record(power_w: list[float], cap_w: list[float], cause: list[int], **more: Any) -> PowerRecord:
    """Returns readings of 10 s each, of two jobs and idle nodes."""
    none = np.zeros(0, np.int64)
    time = 10 * SECOND * (1 + np.arange(len(power_w)))
    facts: dict[str, Any] = {
        "until": 10 * SECOND * len(power_w), "energy_j": np.array([3.6e6, 7.2e6]),
        "idle_j": 1.8e6, "sleep_j": 0.0, "running_j": 0.0, "figures": {},
    } | more  # fmt: skip
    return PowerRecord(
        time, np.array(power_w, float), np.array(cap_w, float), np.array(cause, np.int8),
        cap_changes=(none, none, np.zeros(0)), speed_changes=(none, np.zeros(0)), **facts,
    )  # fmt: skip


def watts(*columns: Any, price: Steps | None = None, **more: Any) -> Watts:
    jobs: list[dict[str, Any]] = [{"submit": 0, "held": [(0, 40)], "user": 0},
                                  {"submit": 5, "held": [(10, 40)], "user": 1}]  # fmt: skip
    schedule = made(jobs, users=("ann", "bob"))
    found = Watts.of(schedule, record(*columns, **more), price)
    assert found is not None
    return found


def drawn(of: Watts, name: str) -> Any:
    picture = next(it for it in figures.PICTURES if it.name == name)
    assert not picture.missing(of)
    with style():
        figure = picture.drawn(of)
        figure.canvas.draw()
    return figure


def test_merged_readings_keep_the_mean_and_the_extremes() -> None:
    begins = np.array([0, 10, 20, 40, 50, 60])
    found = figures.merged(begins, np.array([1.0, 5.0, 2.0, 9.0, 4.0]), 3)
    assert found.edges_us.tolist() == [0, 20, 50, 60]
    assert found.mean.tolist() == [3.0, pytest.approx(13 / 3), 4.0]
    assert found.lowest.tolist() == [1.0, 2.0, 4.0]
    assert found.highest.tolist() == [5.0, 9.0, 4.0]
    assert found.readings == 2


def test_the_power_figure_has_the_readings_the_cap_and_marks_by_cause() -> None:
    of = watts([1000, 4000, 2000, 3000], [3000, 3000, 3000, 2500], [WITHIN, DEADLOCK, WITHIN,
               ESTIMATE])  # fmt: skip
    (axes,) = drawn(of, "power").axes
    stairs: list[Any] = [it for it in axes.patches if isinstance(it, StepPatch)]
    power, cap = (it.get_data() for it in stairs)
    assert power.values.tolist() == [1000, 4000, 2000, 3000]
    assert (cap.values.tolist(), cap.edges.tolist()) == ([3000, 2500], [0, 30, 40])
    marks = [it for it in axes.collections if isinstance(it, LineCollection)]
    assert [it.get_label() for it in marks] == ["above it: deadlock (1)", "estimate too low (1)"]
    assert [it.get_segments()[0][:, 0].tolist() for it in marks] == [[10, 20], [30, 40]]
    assert axes.get_ylabel() == "power (W)"
    words = axes.get_title(loc="right")
    assert "highest reading 4,000 W, 50.00% of readings within the cap" in words


def test_many_readings_have_a_band_that_keeps_their_peaks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "MOST_READINGS", 2)
    of = watts([1e3, 9e3, 2e3, 4e3], [np.inf] * 4, [WITHIN] * 4)
    (axes,) = drawn(of, "power").axes
    (band,) = (it for it in axes.collections if not isinstance(it, LineCollection))
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (1000, 9000)
    assert axes.patches[0].get_data().values.tolist() == [5000, 3000]
    assert "cap" not in [text.get_text() for text in axes.get_legend().get_texts()]


def test_a_price_has_a_panel_only_where_it_changes() -> None:
    columns: list[Any] = [[1.0, 2.0], [np.inf] * 2, [WITHIN] * 2]
    assert len(drawn(watts(*columns, price=Steps.constant(0.1)), "power").axes) == 1
    changing = Steps.of([0, 5 * SECOND], [0.1, -0.2])
    _, below = drawn(watts(*columns, price=changing), "power").axes
    assert below.patches[0].get_data().values.tolist() == [0.1, -0.2]
    assert below.get_ylim()[0] < -0.2


@pytest.mark.parametrize(("most", "unit"), [(9_000.0, "W"), (4.8e6, "kW"), (2.9e7, "MW")])
def test_the_axis_has_the_unit_that_people_say(most: float, unit: str) -> None:
    (axes,) = drawn(watts([most], [np.inf], [WITHIN]), "power").axes
    assert axes.get_ylabel() == f"power ({unit})"


def test_the_energy_figure_has_a_bar_for_each_use_and_each_user() -> None:
    above, below = drawn(watts([1.0], [np.inf], [WITHIN]), "energy").axes
    assert [bar.get_width() for bar in above.patches] == [3.0, 0.5]
    assert [tick.get_text() for tick in below.get_yticklabels()] == ["bob", "ann"]
    assert [text.get_text() for text in below.texts] == ["2 kWh (57.1%)", "1 kWh (28.6%)"]


def test_the_learning_figure_is_there_where_somebody_learns() -> None:
    columns: list[Any] = [[1.0] * 4, [np.inf] * 4, [WITHIN] * 4]
    silent = watts(*columns)
    assert [it.name for it in figures.of(silent)] == ["power", "energy"]
    assert figures.PICTURES[2].missing(silent) == "The power policy learns nothing."
    counted = {"known": np.array([0.0, 0, 1, 3]), "unknown": np.array([0.0, 1, 1, 1])}
    of = watts(*columns, figures=counted)
    (axes,) = drawn(of, "learning").axes
    assert axes.lines[0].get_ydata()[1:].tolist() == [0, 0.5, 0.75]
    assert axes.get_title(loc="right") == "75.0% of 4 jobs in the end"


def test_without_a_reading_a_sentence_says_so(tmp_path: Path) -> None:
    of = watts([], [], [], energy_j=np.zeros(2), idle_j=0.0)
    assert write_pictures(figures.of(of), of, tmp_path, "svg") == []
    assert all(it.missing(of).endswith(".") for it in figures.PICTURES)


@pytest.mark.long
def test_the_overview_and_the_files_have_power_where_it_is_given(tmp_path: Path) -> None:
    of = watts([1.0, 2.0], [3.0, 1.0], [WITHIN, ESTIMATE])
    names = {path.stem for path in write_pictures(figures.of(of), of, tmp_path, "svg")}
    assert {"power", "energy"} <= names
    paths = [tmp_path / "plain.svg", tmp_path / "powered.svg"]
    for path, power in zip(paths, (None, of), strict=True):
        schedule_figures.write_overview(of.schedule, path, power)
    plain, powered = (re.search(r'height="([\d.]+)pt"', path.read_text()) for path in paths)
    assert plain is not None
    assert powered is not None
    assert float(powered[1]) > float(plain[1]) + 200


def test_the_table_of_jobs_has_batsims_column_of_energy_where_it_is_known() -> None:
    schedule = made([{"submit": 0, "held": [(0, 4)]},
                     {"submit": 1, "held": [], "state": WAITING}], reached=9)  # fmt: skip
    record = watts([], [], [], energy_j=np.array([1e6 / 3, 0.0]), idle_j=0.0).record
    record = replace(record, cap_stretch=np.array([1.25, np.nan]))
    text = to_csv(schedule, taken=record.by_job)
    assert text.splitlines()[0] == ",".join((*COLUMNS, "consumed_energy", "cap_stretch"))
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["consumed_energy"] for row in rows] == [repr(1e6 / 3), ""]
    assert [row["cap_stretch"] for row in rows] == ["1.25", ""]
    assert "cap_stretch" not in to_csv(schedule, taken=record.by_job._replace(cap_stretch=None))
    assert to_csv(schedule).splitlines()[0] == ",".join(COLUMNS)


# -- of real runs


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Returns the results of one trace under three: no power at all, none, and naive."""
    home = tmp_path_factory.mktemp("power")
    plain, _, _ = RUN.partition("[power]")
    texts = {"plain": plain, "none": RUN.replace('"naive"', '"none"'), "naive": RUN}
    for name, text in texts.items():
        (home / f"{name}.toml").write_text(text)
        execute(RunOptions(home / f"{name}.toml", home / name, progress=False))
    return {name: home / name for name in texts}


@pytest.mark.long
def test_the_page_of_a_run_has_its_power(runs: dict[str, Path]) -> None:
    with Run(runs["naive"]) as run:
        text, found = page(run), run.power_measures
    assert found is not None
    assert "<h2>Power</h2>" in text
    for name in ("power", "power-rows", "energy"):
        assert f'<figure id="{name}"' in text
    assert 'id="learning"' not in text
    assert f"{found.capping_success:.2%}" in text
    assert text.index("<h2>Over time</h2>") < text.index("<h2>Power</h2>")
    assert text.index("<h2>Power</h2>") < text.index("<h2>Jobs</h2>")
    with Run(runs["plain"]) as run:
        assert "<h2>Power</h2>" not in page(run)


def test_a_comparison_has_the_measures_of_power_and_their_changes(runs: dict[str, Path]) -> None:
    with Run(runs["none"]) as none, Run(runs["naive"]) as naive:
        columns, figures = columns_of(("none", "naive"), (none, naive))
        found = comparison(each(columns), figures, [])
        (table,) = tables(each(columns), figures, Console(width=200))
        shown = [str(cell) for column in table.columns for cell in column.cells]
        measured = naive.power_measures
    assert measured is not None
    first, second = (run["figures"] for run in found["runs"])
    assert second["energy_kwh"] == measured.energy_kwh
    assert second["violations"] == sum(measured.violations.values())
    assert first["violations.not controlled"] == first["violations"] > second["violations"]
    change = found["runs"][1]["change"]
    assert change["cost"] == pytest.approx(second["cost"] / first["cost"] - 1)
    assert change["co2_kg"] == pytest.approx(second["co2_kg"] / first["co2_kg"] - 1)
    assert {"energy", "power, mean", "within the cap", "  not controlled", "CO2"} <= {*shown}
    json.dumps(found)


def test_a_run_without_power_is_compared_with_one_that_has_it(runs: dict[str, Path]) -> None:
    with Run(runs["plain"]) as plain, Run(runs["naive"]) as naive:
        columns, figures = columns_of(("plain", "naive"), (plain, naive))
        found = comparison(each(columns), figures, [])
        _, without = columns_of(("plain", "plain"), (plain, plain))
    assert not [figure for figure in without if figure.kind == POWER]
    assert found["runs"][0]["figures"]["energy_kwh"] is None
    assert found["runs"][1]["change"]["energy_kwh"] is None


def test_what_a_run_prints_has_its_power(runs: dict[str, Path]) -> None:
    with Run(runs["naive"]) as run:
        facts = Measured.of_run(run).facts
    assert facts["power"] == "naive"
    assert facts["capping_success"] < 1
    assert sum(facts["violations"].values()) > 0


def test_a_new_run_takes_the_old_figures_of_power_away(tmp_path: Path) -> None:
    (tmp_path / "figures").mkdir()
    for name in ("power.svg", "energy.png", "learning.pdf", "mine.svg"):
        (tmp_path / "figures" / name).touch()
    forget_report(tmp_path)
    assert [path.name for path in (tmp_path / "figures").iterdir()] == ["mine.svg"]


# -- docs/power.md


@pytest.fixture
def _plugin(tmp_path: Path) -> Iterator[None]:
    (code,) = re.findall(r'```python\n("""frugal\.py""".*?)```', DOC, re.DOTALL)
    (tmp_path / "frugal.py").write_text(code)
    load_plugin(tmp_path / "frugal.py")
    yield
    forget_plugins("frugal")


@pytest.mark.usefixtures("_plugin")
def test_the_plug_in_of_the_page_runs_and_keeps_to_the_cap(tmp_path: Path) -> None:
    text = RUN.replace('"naive"', '"frugal"').replace('"10 kW"', '"15 kW"')
    (tmp_path / "frugal.toml").write_text(text)
    execute(RunOptions(tmp_path / "frugal.toml", tmp_path / "out", progress=False))
    with Run(tmp_path / "out") as run:
        assert run.power is not None
        assert run.power.capping_success == 1.0
        assert run.schedule.done.all()


def test_the_section_of_the_page_can_be_read() -> None:
    (section,) = re.findall(r"```toml\n(fidelity.*?)```", DOC, re.DOTALL)
    made = parse(section, "power.toml")
    assert tomllib.loads(section)["power"].keys() <= {
        key.removeprefix("power.") for key in made.written() if key.startswith("power.")
    }


def test_the_page_names_every_key_and_every_parameter() -> None:
    from odonata.experiment.experiment import KEYS
    from policies.power import POWERS

    keys = {key.name for key in KEYS if key.section == "power"} - {"communicating"}
    names = {it.name for entry in POWERS.values() if entry.home.startswith("policies.")
             for it in entry.parameters}  # fmt: skip
    missing = [name for name in sorted(keys | names) if f"`{name}`" not in DOC]
    assert missing == []
