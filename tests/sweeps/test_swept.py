"""The results of a sweep: cells, baselines, CSV and xarray, from outcomes that are made up."""

from __future__ import annotations

import csv
import io
import itertools
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from odonata.figures.style import RUN_COLOURS
from odonata.jobs.request import Job
from odonata.results.statistics import interval
from odonata.sweeps import drawing as drawing_of_sweeps
from odonata.sweeps import page as page_of_sweeps
from odonata.sweeps.drawing import Drawing, draw, panels, parsed, picture, scale_of, usual, words_of
from odonata.sweeps.outcomes import SweepOutcome, outcome_of
from odonata.sweeps.page import page
from odonata.sweeps.table import Baseline, Swept
from odonata.sweeps.words import heads, notes, rows
from pdes.errors import Refused

AXES = {"network.routing": ("minimal", "par"), "traffic.load": ("0.1", "0.2", "0.3")}
SEEDS = (1, 2, 3)


def made(**changes: object) -> Swept:
    """Returns results whose figures are functions of their place."""
    keys, outcomes = [], {}
    for (r, _), (n, _), seed in itertools.product(*(enumerate(it) for it in AXES.values()), SEEDS):
        key = f"{r}{n}{seed}"
        keys.append(key)
        latency = 100.0 + 10 * n + 50 * r + seed
        outcomes[key] = SweepOutcome(
            {"mean_latency_ns": latency, "throughput": 0.1 * (n + 1)},
            {"fft": {"run_time_ps": 1e6 * latency}, "halo 1": {"run_time_ps": 1e6},
             "halo 2": {"run_time_ps": 3e6}},
            f"digest {key}", kinds={"halo 1": "halo", "halo 2": "halo"},
        )  # fmt: skip
    outcomes |= changes.get("outcomes", {})  # type: ignore[operator]
    for key in changes.get("without", ()):  # type: ignore[attr-defined]
        del outcomes[key]
    return Swept(AXES, SEEDS, tuple(keys), outcomes)


def test_a_cell_has_a_value_for_each_seed() -> None:
    cells = [*made().cells("mean_latency_ns")]
    assert len(cells) == 6
    assert cells[1].labels == ("minimal", "0.2")
    assert cells[1].values == (111.0, 112.0, 113.0)
    assert made().interval(cells[1]) == interval([111.0, 112.0, 113.0])


def test_jobs_of_one_section_are_shown_together() -> None:
    cells = [cell for cell in made().cells("run_time_ps") if cell.labels == ("par", "0.1")]
    assert [(cell.job, cell.values) for cell in cells] == [
        ("fft", (151e6, 152e6, 153e6)), ("halo (2)", (2e6, 2e6, 2e6))]  # fmt: skip


def test_jobs_of_sections_of_their_own_are_shown_apart_whatever_their_names() -> None:
    jobs: dict[str, dict[str, float | None]] = {
        "halo 8": {"run_time_ps": 1.0},
        "halo 32": {"run_time_ps": 2.0},
    }
    found = Swept({}, (1,), ("",), {"": SweepOutcome({}, jobs, "d")})
    assert [cell.job for cell in found.cells("run_time_ps")] == ["halo 8", "halo 32"]


def test_jobs_that_are_called_otherwise_at_another_point_are_not_mixed_up() -> None:
    """Without names of their own they are numbered, and the numbers shift where one is dropped."""
    alone = SweepOutcome({}, {"job 0": {"t": 5.0}}, "a", kinds={"job 0": "fft3d on 16 nodes"})
    kinds = {"job 0": "halo3d on 4 nodes", "job 1": "fft3d on 16 nodes"}
    shared = SweepOutcome({}, {"job 0": {"t": 1.0}, "job 1": {"t": 7.0}}, "b", kinds=kinds)
    found = Swept({"sharing": ("alone", "shared")}, (1,), ("a", "b"), {"a": alone, "b": shared})
    cells = {(cell.labels, cell.job): cell.values for cell in found.cells("t")}
    assert cells == {
        (("alone",), "fft3d on 16 nodes"): (5.0,),
        (("shared",), "fft3d on 16 nodes"): (7.0,),
        (("shared",), "halo3d on 4 nodes"): (1.0,),
    }


def test_every_section_of_jobs_has_a_name() -> None:
    jobs = (Job(4, "halo3d"), *(replace(Job(16, "fft3d"), name=f"a {n}") for n in (1, 2)),
            Job(4, "halo3d"), replace(Job(4, "halo3d"), name="b"))  # fmt: skip
    facts = {"digest": "d", "jobs": [{"name": name} for name in ("job 0", "a 1", "a 2", "x", "b")]}
    assert [*outcome_of(facts, jobs).kinds.values()] == [
        "halo3d on 4 nodes", "a", "a", "halo3d on 4 nodes #2", "b"
    ]  # fmt: skip


def test_how_many_jobs_there_were_is_said_of_all_points() -> None:
    def point(count: int) -> SweepOutcome:
        names = [f"halo {n + 1}" for n in range(count)]
        return SweepOutcome({}, {name: {"nodes": 2.0} for name in names}, "d",
                            kinds=dict.fromkeys(names, "halo"))  # fmt: skip

    found = Swept({"jobs[0].count": ("2", "3")}, (1,), ("a", "b"), {"a": point(2), "b": point(3)})
    assert [*found.kinds] == ["halo (2 to 3)"]


def test_seeds_that_change_nothing_are_told() -> None:
    same = {key: SweepOutcome({"throughput": 1.0}, {}, "d") for key in ("011", "012", "013")}
    found = made(outcomes=same)
    assert found.combinations_alike == [("minimal", "0.2")]
    assert "at 1 of 6 combinations" in notes(found, None)[1]
    assert not made().combinations_alike


def test_where_all_seeds_give_the_same_there_is_no_talk_of_intervals() -> None:
    same = {key: SweepOutcome({"mean_wait_s": 1.0}, {}, key[0]) for key in ("a1", "a2", "b1", "b2")}
    found = Swept({"scheduler.order": ("a", "b")}, (1, 2), tuple(same), same)
    (note,) = notes(found, None)
    assert note.startswith("All 2 seeds give the same run everywhere: nothing random")
    assert "trace.load" in note


@pytest.mark.parametrize(
    ("seeded", "words"),
    [(True, "--seeds 5 gives some."), (False, "other seeds would give the same runs"),
     (None, "--seeds 5 gives some, where the seed decides anything")],
)  # fmt: skip
def test_seeds_are_not_advised_where_nothing_is_random(seeded: bool | None, words: str) -> None:
    found = Swept({}, (1,), ("",), {"": SweepOutcome({"mean_wait_s": 1.0}, {}, "d")}, seeded=seeded)
    (note,) = notes(found, None)
    assert words in note
    assert ("--seeds" in note) == (seeded is not False)


def test_of_one_seed_there_is_neither_an_interval_nor_anything_alike() -> None:
    alike = {key: SweepOutcome({"throughput": 1.0}, {}, "d") for key in ("a", "b")}
    found = Swept({"x": ("a", "b")}, (1,), ("a", "b"), alike)
    (only,) = notes(found, None)
    assert only.startswith("One seed")
    assert "±" not in only
    assert found.combinations_alike == []
    cells = [*found.cells("throughput")]
    assert [found.interval(cell).half for cell in cells] == [
        pytest.approx(math.nan, nan_ok=True)
    ] * 2


def test_a_page_says_how_many_panels_it_leaves_out_and_a_drawing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing_of_sweeps, "MOST_PANELS", 2)
    monkeypatch.setattr(page_of_sweeps, "MOST_PANELS", 2)
    jobs: dict[str, dict[str, float | None]] = {f"job {n}": {"nodes": 2.0} for n in range(3)}
    found = Swept({"a": ("1", "2")}, (1,), ("x", "y"),
                  {key: SweepOutcome({}, jobs, key) for key in "xy"})  # fmt: skip
    drawing = Drawing("jobs.nodes", "a", "")
    assert len(panels(found, drawing)) == 3
    assert sum(axes.get_visible() for axes in picture(found, drawing).axes) == 2
    with pytest.raises(Refused, match="3 panels, at most 2"):
        draw(found, "nodes:a", tmp_path)
    told = "The first 2 of 3 panels"
    assert told in page(found, ["jobs.nodes"], None, tmp_path, "x.toml")
    assert told not in page(made(), ["throughput"], None, tmp_path, "x.toml")


def test_long_values_are_turned() -> None:
    labels = tuple(f"a value with a long name {n}" for n in range(4))
    outcomes = {label: SweepOutcome({"throughput": 1.0}, {}, label) for label in labels}
    found = Swept({"how": labels}, (1,), labels, outcomes)
    (axes,) = picture(found, Drawing("throughput", "how", "")).axes
    assert {label.get_rotation() for label in axes.get_xticklabels()} == {30.0}


def test_what_failed_or_is_missing_is_left_out_and_named() -> None:
    found = made(outcomes={"012": SweepOutcome(failed="deadlock of 4 ports")}, without=("013",))
    cell = [*found.cells("mean_latency_ns")][1]
    assert cell.values == (111.0, None, None)
    assert found.failures == [
        "network.routing=minimal, traffic.load=0.2, seed 2: deadlock of 4 ports"
    ]
    assert found.missing == 1
    assert notes(found, None)[1:] == [
        "INCOMPLETE: 1 of 18 points are missing.", f"failed: {found.failures[0]}"]  # fmt: skip
    assert np.isnan(found.data["mean_latency_ns"].sel({"traffic.load": 0.2}).values).sum() == 2


def test_a_baseline_is_the_run_that_differs_in_nothing_else() -> None:
    found = made()
    beside = found.against("mean_latency_ns", Baseline("network.routing", "minimal"))
    assert {cell.labels for cell in beside} == {("par", load) for load in AXES["traffic.load"]}
    for cell, compared in beside.items():
        assert compared.difference.mean == 50.0
        assert compared.difference.half == pytest.approx(0)
        assert compared.significant
        first = next(it for it in found.cells("mean_latency_ns")
                     if it.labels == ("minimal", cell.labels[1]))  # fmt: skip
        expected = np.mean(np.array(cell.values) / np.array(first.values))
        assert compared.ratio.mean == pytest.approx(expected)
    same = found.against("throughput", Baseline("network.routing", "minimal"))
    assert not any(compared.significant for compared in same.values())
    table = rows(found, ["throughput"], Baseline("network.routing", "minimal"))
    assert table[0] == ["minimal", "0.1", "0.1 ± 0", "", "3"]
    assert table[3] == ["par", "0.1", "0.1 ± 0", "1 ± 0 ~", "3"]
    assert heads(found, ["throughput"], None) == [*AXES, "throughput", "of"]


def test_a_dataset_has_the_axes_as_coordinates() -> None:
    data = made().data
    assert data["mean_latency_ns"].dims == ("network.routing", "traffic.load", "seed")
    at = data.sel({"network.routing": "par", "traffic.load": 0.3, "seed": 2})
    assert float(at["mean_latency_ns"]) == 172.0
    assert float(at["jobs.run_time_ps"].sel(job="halo 2")) == 3e6


def test_csv_files_have_all_of_it() -> None:
    found = made()
    points = [*csv.DictReader(io.StringIO(found.points_csv()))]
    assert len(points) == 18
    assert points[4]["mean_latency_ns"] == "112"
    assert points[4]["digest"] == "digest 012"
    assert len([*csv.DictReader(io.StringIO(found.jobs_csv()))]) == 18 * 3
    summary = [*csv.DictReader(io.StringIO(found.summary_csv()))]
    (row,) = (row for row in summary if row["figure"] == "mean_latency_ns"
              and (row["network.routing"], row["traffic.load"]) == ("minimal", "0.2"))  # fmt: skip
    assert float(row["mean"]) == 112.0
    assert float(row["high"]) == interval([111.0, 112.0, 113.0]).high
    assert row["of"] == "3"


def test_a_figure_that_is_not_there_is_refused_with_the_nearest() -> None:
    with pytest.raises(Refused, match="did you mean mean_latency_ns"):
        made().named("mean_latency")
    assert made().named("run_time_ps") == "jobs.run_time_ps"


def test_a_drawing_names_a_figure_and_axes() -> None:
    found = made()
    assert parsed(found, "run_time_ps:job:network.routing") == Drawing(
        "jobs.run_time_ps", "job", "network.routing")  # fmt: skip
    for text, said in (("throughput", "FIGURE:X"), ("throughput:job", "no axis of this sweep"),
                       ("nothing:traffic.load", "no figure")):  # fmt: skip
        with pytest.raises(Refused, match=said):
            parsed(found, text)
    assert usual(found, "throughput") == Drawing("throughput", "traffic.load", "network.routing")


def test_a_picture_has_the_means_their_intervals_and_a_panel_for_every_other_axis() -> None:
    found = made()
    figure = picture(found, Drawing("mean_latency_ns", "traffic.load", "network.routing"))
    (panel,) = figure.axes
    curves = [bars.lines[0] for bars in panel.containers]
    assert curves[0].get_xdata().tolist() == [0.1, 0.2, 0.3]
    assert curves[1].get_ydata().tolist() == [152.0, 162.0, 172.0]
    figure = picture(found, Drawing("jobs.run_time_ps", "network.routing", ""))
    shown = [panel.get_title() for panel in figure.axes if panel.get_visible()]
    assert len(shown) == 6
    assert shown[0] == "offered load 0.1, fft"


def test_the_page_has_every_number_and_escapes_what_a_user_wrote(tmp_path: Path) -> None:
    found = made()
    text = page(found, ["mean_latency_ns"], None, tmp_path, "<b>.toml")
    for row in rows(found, ["mean_latency_ns"], None):
        assert row[2] in text
    assert "<b>" not in text
    assert text.count("<svg") == 1


def test_figures_are_the_numbers_of_a_run_and_not_those_of_its_host() -> None:
    facts = {
        "digest": "abc", "wall_seconds": 3.0, "ranks": 2, "events": 7, "saturated": True,
        "mean_latency_ns": math.nan, "links": {"global": {"utilisation": 0.5}}, "model": "x",
        "jobs": [{"number": 0, "name": "a", "nodes": 2, "network": {"packets": 3}},
                 {"number": 1, "name": "a", "nodes": 4, "network": {"packets": 5}}],
    }  # fmt: skip
    found = outcome_of(facts)
    assert found.figures == {"events": 7.0, "saturated": 1.0, "mean_latency_ns": None,
                             "links.global.utilisation": 0.5}  # fmt: skip
    assert found.jobs == {
        "a": {"nodes": 2.0, "packets": 3.0},
        "a #2": {"nodes": 4.0, "packets": 5.0},
    }


def test_a_summary_has_the_ratios_to_a_baseline() -> None:
    found = made()
    text = found.summary_csv(Baseline("network.routing", "minimal"))
    rows = [row for row in csv.DictReader(io.StringIO(text)) if row["figure"] == "mean_latency_ns"]
    assert [row["ratio"] for row in rows[:3]] == [""] * 3
    expected = np.mean([151 / 101, 152 / 102, 153 / 103])
    assert float(rows[3]["ratio"]) == pytest.approx(expected)
    assert rows[3]["significant"] == "1"


def test_a_saturated_combination_is_marked() -> None:
    full = SweepOutcome({"mean_latency_ns": 1.0, "saturated": 1.0}, {}, "d", verdict="saturated")
    found = made(outcomes={"012": full})
    counts = [row[-1] for row in rows(found, ["mean_latency_ns"], None)]
    assert counts == ["3", "3 *", "3", "3", "3", "3"]
    assert notes(found, None)[1].startswith("* saturated")


def test_a_mean_over_seeds_is_marked_if_one_run_is_not_of_a_steady_state() -> None:
    outcomes = {key: replace(it, verdict="steady") for key, it in made().outcomes.items()}
    figures = {"mean_latency_ns": 1.0, "throughput": 0.5}
    found = made(outcomes=outcomes | {
        "012": SweepOutcome(figures, {}, "d", verdict="not settled", why="it still fills"),
        "022": SweepOutcome(figures, {}, "e", verdict="saturated", why="queues grow"),
    })  # fmt: skip
    assert found.judged(("minimal", "0.2")) == "1 of 3 not settled"
    assert found.judged(("minimal", "0.1")) == "steady"
    shown = rows(found, ["mean_latency_ns", "throughput"], None)
    assert [[cell.endswith("*") for cell in row[2:]] for row in shown[:3]] == [
        [False, False, False], [True, True, True], [True, False, True]]  # fmt: skip
    lines = [*csv.DictReader(io.StringIO(found.summary_csv()))]
    assert [row["steady_state"] for row in lines[:3]] == [
        "steady", "1 of 3 not settled", "1 of 3 saturated"]  # fmt: skip
    points = [*csv.DictReader(io.StringIO(found.points_csv()))]
    assert [row["why"] for row in points if row["why"]] == ["it still fills", "queues grow"]
    axes = picture(found, Drawing("mean_latency_ns", "traffic.load", "network.routing")).axes[0]
    hollow = [len(line.get_xdata()) for line in axes.lines if line.get_markerfacecolor() == "white"]
    assert sum(hollow) == 2


def test_of_one_seed_nothing_is_said_about_significance() -> None:
    found = replace(made(), seeds=(1,), keys=made().keys[::3])
    beside = found.against("mean_latency_ns", Baseline("network.routing", "minimal"))
    assert {compared.significant for compared in beside.values()} == {None}
    assert "~" not in rows(found, ["mean_latency_ns"], Baseline("network.routing", "minimal"))[3][3]


def test_a_latency_of_no_packet_is_unknown_and_a_figure_that_no_point_has_is_none() -> None:
    facts = {"digest": "d", "measured_packets": 0, "mean_latency_ns": 0.0, "throughput": math.inf}
    assert outcome_of(facts).figures == {"measured_packets": 0.0, "mean_latency_ns": None,
                                         "throughput": None}  # fmt: skip
    found = Swept({}, (1,), ("a",), {"a": outcome_of(facts)})
    assert found.figures == ("measured_packets",)


# -- pictures for a paper


def same() -> Swept:
    """Returns two routings with the same latencies at every load."""
    outcomes = {f"{r}{n}{seed}": SweepOutcome({"mean_latency_ns": 100.0 + 40 * n + seed}, {}, "d")
                for r in range(2) for n in range(3) for seed in SEEDS}  # fmt: skip
    return made(outcomes=outcomes)


def drawn(found: Swept, tmp_path: Path, **how: object) -> tuple[Path, bytes]:
    path = draw(found, "mean_latency_ns:traffic.load:network.routing", tmp_path, **how)  # type: ignore[arg-type]
    return path, path.read_bytes()


def test_curves_that_coincide_are_all_seen(tmp_path: Path) -> None:
    path, _ = drawn(same(), tmp_path)
    pixels = (imread(path)[:, :, :3] * 255).round().astype(int)
    panel = pixels[len(pixels) // 3 :]  # below the legend
    for colour in RUN_COLOURS[:2]:
        rgb = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
        assert (np.abs(panel - rgb).sum(axis=2) < 12).sum() > 300, colour


EYES = {
    "all cones": np.eye(3),
    "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
               [-0.003882, -0.048116, 1.051998]],
    "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                 [-0.011820, 0.042940, 0.968881]],
    "no blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                [0.004733, 0.691367, 0.303900]],
}  # fmt: skip
"""What is seen of linear red, green and blue (Machado, Oliveira and Fernandes 2009)."""


@pytest.mark.parametrize("eye", EYES)
def test_whoever_looks_can_tell_the_colours_of_curves(eye: str) -> None:
    rgb = np.array([to_rgb(colour) for colour in RUN_COLOURS])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ np.array(EYES[eye]).T, 0, 1)
    to_xyz = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    )
    x, y, z = np.cbrt(seen @ to_xyz.T / [0.9505, 1, 1.089]).T
    lab = np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], 1)
    apart = np.linalg.norm(lab[:, None] - lab, axis=2) + 1000 * np.eye(len(lab))
    assert apart.min() > 20  # 2.3 can just be noticed


@pytest.mark.parametrize(("kind", "begins"), [("png", b"\x89PNG"), ("pdf", b"%PDF"),
                                              ("svg", b"<?xml")])  # fmt: skip
def test_a_picture_is_of_the_kind_that_was_asked_for(
    tmp_path: Path, kind: str, begins: bytes
) -> None:
    path, first = drawn(made(), tmp_path, kind=kind)
    assert path.suffix == f".{kind}"
    assert first.startswith(begins)
    assert drawn(made(), tmp_path, kind=kind)[1] == first
    assert b"/Type3" not in first


def test_a_picture_is_as_wide_as_a_column_or_the_text_of_a_paper(tmp_path: Path) -> None:
    for width, inches in (("column", 3.4), ("text", 7.1)):
        found = Swept({**AXES, "way": ("there",)}, SEEDS, made().keys, made().outcomes)
        how = Drawing("jobs.run_time_ps", "traffic.load", "network.routing", width=width)
        assert picture(found, how).get_figwidth() == inches


def test_axes_are_called_in_words_with_the_unit_of_the_least_value() -> None:
    sizes = scale_of("traffic.message", ("64 B", "1 KiB", "4 KiB"))
    assert (sizes.at, sizes.unit) == ({"64 B": 64.0, "1 KiB": 1024.0, "4 KiB": 4096.0}, "B")
    assert scale_of("jobs[0].compute", ("2.5 us", "1 ms")).at["1 ms"] == 1000.0
    assert not scale_of("network.routing", ("minimal", "par")).numeric
    assert [words_of(name) for name in ("traffic.load", "run.seed.placement", "power.policy")] == [
        "offered load", "seed of placement", "power policy"]  # fmt: skip
    (panel,) = picture(made(), Drawing("mean_latency_ns", "traffic.load", "network.routing")).axes
    assert panel.get_xlabel() == "offered load (part of the nodes' links)"
    assert panel.get_ylabel() == "latency, mean (ns)"


def test_axes_are_logarithmic_where_that_is_asked_for_only() -> None:
    drawing = Drawing("mean_latency_ns", "traffic.load", "network.routing")
    scales = []
    for log in ("", "x", "x,y"):
        (panel,) = picture(made(), drawing._replace(log=log)).axes
        scales.append((panel.get_xscale(), panel.get_yscale()))
    assert scales == [("linear", "linear"), ("log", "linear"), ("log", "log")]
    with pytest.raises(Refused, match="--log x: not all values are numbers above 0"):
        picture(made(), Drawing("throughput", "network.routing", "", log="x"))


def test_ratios_are_drawn_beside_a_line_at_1() -> None:
    base = Baseline("network.routing", "minimal")
    drawing = Drawing("mean_latency_ns", "traffic.load", "network.routing", base)
    (panel,) = picture(made(), drawing).axes
    (bars,) = panel.containers
    made_of = made().against("mean_latency_ns", base)
    assert bars.lines[0].get_ydata().tolist() == [it.ratio.mean for it in made_of.values()]
    assert bars.lines[0].get_color() == RUN_COLOURS[1]  # as beside the baseline
    assert panel.get_ylabel() == "latency, mean (× that of minimal)"
    assert any([*line.get_ydata()] == [1.0, 1.0] for line in panel.lines)
    assert drawing.name.endswith("-ratio")


# -- a mean over an axis


def test_over_an_axis_its_values_and_all_seeds_are_repetitions() -> None:
    whole, found = made(), made().over("network.routing")
    assert [*found.axes] == ["traffic.load"]
    cell = [*found.cells("mean_latency_ns")][1]
    assert cell == (("0.2",), "", (111.0, 112.0, 113.0, 161.0, 162.0, 163.0))
    assert found.interval(cell) == interval(cell.values)
    assert rows(found, ["mean_latency_ns"], None)[0][-1] == "6"
    assert notes(found, None)[0] == (
        "± is half of the 95 % confidence interval of the mean over 3 seeds and 2 values of "
        "network.routing (6 runs) (Student's t).")  # fmt: skip
    assert len([*csv.DictReader(io.StringIO(found.summary_csv()))]) == 3 * 4
    assert found.data.equals(whole.data)
    assert whole.over("network.routing", "traffic.load").repetitions == 18


def test_over_an_axis_the_points_stay_as_they_are(tmp_path: Path) -> None:
    whole = made(outcomes={"012": SweepOutcome(failed="deadlock")})
    whole.over("traffic.load").write(tmp_path)
    assert (tmp_path / "points.csv").read_text() == whole.points_csv()
    assert whole.over("traffic.load").failures == whole.failures


def test_over_an_axis_ratios_are_taken_repetition_by_repetition() -> None:
    found = made().over("traffic.load")
    ((cell, beside),) = found.against(
        "mean_latency_ns", Baseline("network.routing", "minimal")).items()  # fmt: skip
    assert beside.ratio.of == 9
    base = next(iter(found.cells("mean_latency_ns")))
    assert beside.ratio == interval([b / a for a, b in zip(base.values, cell.values, strict=True)])  # type: ignore[operator]


def test_runs_that_are_the_same_are_told_where_they_count_as_repetitions() -> None:
    alike = {f"0{n}{seed}": SweepOutcome({"throughput": 1.0}, {}, f"d{seed}")
             for n in range(3) for seed in SEEDS}  # fmt: skip
    told = "some of these runs are the same to the last bit"
    assert any(told in line for line in notes(made(outcomes=alike).over("traffic.load"), None))
    assert not any(told in line for line in notes(made().over("traffic.load"), None))


def test_an_axis_is_named_in_full_or_by_its_end() -> None:
    found = Swept({"run.seed.placement": ("1",), "traffic[0].load": ("1",),
                   "traffic[1].load": ("1",)}, (1,), ("k",), {})  # fmt: skip
    assert found.axis("placement") == found.axis("run.seed.placement") == "run.seed.placement"
    for word, said in (("load", "several axes"), ("seed", "no axis")):
        with pytest.raises(Refused, match=said):
            found.axis(word)
