"""The congestion study: its simulations, where their jobs run, and what it says of them."""

from __future__ import annotations

import doctest
import json
import re
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib.figure import Figure

from odonata.commands.cli import cli
from odonata.experiment.profiles import profile
from odonata.figures.style import style
from odonata.studies import named
from odonata.studies.congestion import (
    APPLICATIONS,
    CONGESTORS,
    PARTS,
    Congestion,
    figures,
    gpcnet,
    repeated,
    simulation,
)
from odonata.studies.congestion import claims as said
from odonata.studies.congestion.cases import (
    BUNDLED,
    CROWD,
    GPCNET_SHIFTS,
    REAL,
    TABLE,
    CongestionPlan,
    cases,
    has,
)
from odonata.studies.congestion.claims import Measured, correlation, impacts, slowdown
from odonata.studies.congestion.gpcnet import CANARIES, PART
from odonata.studies.congestion.simulation import (
    ALONE_ON,
    LIST,
    NODES,
    NONE,
    SETTINGS,
    SHIFTS,
    CongestionOutcome,
    Divided,
    Point,
    jobs_of,
    places,
    profile_of,
    simulate,
)
from odonata.study.contract import Claim, Verdict
from odonata.study.store import Answer, from_line, to_line
from pdes.errors import Refused

STUDY = Congestion()
SLOWER = {"I": 1.0, "II": 1.1, "III": 1.05, "IV": 2.0}
SOME = ("hacc", "hpcg")


def outcome(seconds: float, ratio: float, name: str = "") -> CongestionOutcome:
    """An outcome: the longer it takes, the fewer flits come, and fewer of them are refused. An
    application has what was measured of it."""
    table = profile(name).measured if name else None
    share, rate = (table.communication, table.node_bytes_per_s) if table else (0.5, 1e9)
    return CongestionOutcome(
        seconds, share, rate, 2e-6, 9e-6, 0.25, ratio, 1e8 * ratio, 3e7 / seconds, 1e8 / seconds,
        2e6 / seconds, {"allreduce": 0.25}, 7, "d",
    )  # fmt: skip


def ordinary(point: Point) -> CongestionOutcome:
    """Congestion slows hacc down, hpcg not at all, and canaries the more, the more nodes there are;
    no two shifts are the same."""
    aside = 1 + 0.01 * point.shift
    if not point.application:
        worse = point.nodes / 16 if point.congestor != NONE else 1.0
        return outcome(1e-4 * aside * worse, 0.02 * worse)
    slower = SLOWER[point.setting] if profile(point.application).sensitive else 1.0
    return outcome(1e-3 * aside * slower, 0.3 * slower * aside, point.application)


def invented(
    asked: CongestionPlan, give: Callable[[Point], CongestionOutcome] = ordinary
) -> dict[str, CongestionOutcome]:
    return {case.key: give(case) for case in cases(asked)}


@pytest.fixture
def some() -> CongestionPlan:
    return STUDY.ask(application=SOME, repetitions=3)


@pytest.fixture
def six() -> CongestionPlan:
    """As many repetitions as an interval of 95 % needs."""
    return STUDY.ask(application=SOME, repetitions=6)


def by_name(found: list[Claim]) -> dict[str, Claim]:
    return {one.name: one for one in found}


@pytest.mark.parametrize("module", [gpcnet, repeated, simulation, said, figures])
def test_examples_in_docstrings_are_so(module: ModuleType) -> None:
    failed, tried = doctest.testmod(module)
    assert (failed, tried > 0) == (0, True)


# -- which simulations


def test_a_study_of_that_name_is_listed() -> None:
    assert isinstance(named("congestion"), Congestion)


def test_every_application_runs_in_every_setting_and_gpcnet_with_and_without_congestors() -> None:
    counts = {part: len(cases(STUDY.ask(part=part))) for part in PARTS}
    alone = GPCNET_SHIFTS * len(ALONE_ON) * len(CANARIES) * 2
    assert counts == {"applications": 10 * 8 * 4, "gpcnet": alone, "table": 10 * 4 * 4,
                      "real": 6 * 8 * 4, "background": 6 * 2 * 2}  # fmt: skip
    assert (counts["applications"], counts["gpcnet"]) == (320, 180)
    every = STUDY.cases(STUDY.ask(), {})
    assert len({case.key for case in every}) == len(every) == 876
    few = STUDY.ask(application=("milc",), repetitions=2)
    assert len(STUDY.cases(few, {})) == 3 * 2 * 4 + 2 * 2 + 2 * 36
    assert [str(case) for case in cases(few)[:2]] == ["milc in setting I, shift 0",
                                                      "milc in setting II, shift 0"]  # fmt: skip


def test_what_time_is_left_for_comes_first_a_repetition_of_everything() -> None:
    shifts = [case.shift for case in cases(STUDY.ask(part="applications"))]
    assert shifts == sorted(shifts)
    assert {case.application for case in cases(STUDY.ask())[:32]} == set(APPLICATIONS)


def test_gpcnet_runs_beside_an_application_in_two_of_the_settings() -> None:
    of = {case.setting: case for case in cases(STUDY.ask(congestor="all-to-all"))[:4]}
    assert {setting: case.congestor for setting, case in of.items()} == {
        "I": NONE, "II": NONE, "III": "all-to-all", "IV": "all-to-all"}  # fmt: skip
    assert of["IV"].weight > of["II"].weight


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (r"application lammp: one of .*lammps", {"application": ("lammp",)}),
        (r"repetitions = 0: 1 \.\. 10", {"repetitions": 0}),
        (r"repetitions = 11: 1 \.\. 10", {"repetitions": 11}),
        (r"requests = 65: 1 \.\. 64", {"requests": 65}),
        (r"tasks = 0: 1 \.\. 16", {"tasks": 0}),
        (r"machine aries: one of .*aries-group", {"machine": "aries"}),
        (r"machine kim-72: it has 72 nodes, and 192 are needed", {"machine": "kim-72"}),
    ],
)
def test_what_makes_no_sense_is_refused(words: str, options: dict[str, Any]) -> None:
    with pytest.raises(Refused, match=words):
        STUDY.ask(**options)


# -- where jobs run


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("shift", range(SHIFTS))
def test_an_application_and_gpcnet_have_64_nodes_each_and_none_in_common(
    setting: str, shift: int
) -> None:
    mine, theirs = places(setting, shift)
    assert len(set(mine)) == len(mine) == NODES == 64
    assert len(set(theirs)) == len(theirs) == (NODES if setting in ("III", "IV") else 0)
    assert not set(mine) & set(theirs)
    assert set(mine) | set(theirs) <= set(range(LIST))


def test_nodes_are_in_a_row_or_every_other_one_and_gpcnet_is_apart_or_between() -> None:
    assert places("I", 0)[0] == places("III", 0)[0] == list(range(64))
    assert places("II", 0)[0] == places("IV", 0)[0] == list(range(0, 128, 2))
    assert places("III", 0)[1] == list(range(64, 192, 2))
    assert places("IV", 0)[1] == list(range(1, 128, 2))


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_repetition_shifts_everything_by_a_tenth_of_the_list(setting: str) -> None:
    firsts = [places(setting, shift)[0][0] for shift in range(SHIFTS)]
    assert firsts == [0, 19, 38, 57, 76, 96, 115, 134, 153, 172]
    for at, first in zip(places(setting, 0), places(setting, 7), strict=True):
        assert [(node + 134) % LIST for node in at] == first


def test_the_jobs_of_a_run_are_where_its_setting_says_and_the_first_is_measured() -> None:
    asked = STUDY.ask()
    (alone,) = jobs_of(asked.at("lammps", "II", 1))
    assert (alone.name, alone.on, alone.background) == ("lammps", tuple(places("II", 1)[0]), False)
    first, *others = jobs_of(asked.at("lammps", "IV", 1))
    assert first == alone
    assert all(job.background for job in others)
    assert sorted(node for job in others for node in job.on or ()) == sorted(places("IV", 1)[1])
    assert [job.name for job in others] == ["gpcnet-rma-broadcast", CANARIES["latency"]]


@pytest.mark.parametrize("nodes", ALONE_ON)
def test_gpcnet_alone_has_a_canary_on_the_same_nodes_with_and_without_congestors(
    nodes: int,
) -> None:
    asked = STUDY.ask(congestor=CONGESTORS[2])
    (quiet,) = jobs_of(asked.alone("allreduce", nodes, 2, congested=False))
    loud, congestor = jobs_of(asked.alone("allreduce", nodes, 2, congested=True))
    assert quiet == loud
    assert not loud.background
    assert congestor.background
    assert (congestor.nodes, congestor.name) == (int(PART * nodes), "gpcnet-p2p-incast")
    assert {*(loud.on or ()), *(congestor.on or ())} == {38 + place for place in range(nodes)}


# -- what is kept and said


def test_an_outcome_is_the_same_after_it_was_written_and_read(some: CongestionPlan) -> None:
    case = some.at("hacc", "IV", 2)
    kept = ordinary(case)
    assert STUDY.revive(json.loads(json.dumps(asdict(kept)))) == kept
    assert from_line(to_line(Answer(case, kept)), STUDY) == (case.key, kept)
    with pytest.raises(TypeError):
        STUDY.revive({"run_time_s": 1.0})


def test_what_the_thesis_says_holds_of_outcomes_that_are_so(six: CongestionPlan) -> None:
    found = by_name(STUDY.claims(six, invented(six)))
    slow = found["IV against II: hacc"]
    assert (slow.ours, slow.verdict, slow.of) == ("1.82 times (1.82 to 1.82)", Verdict.HOLDS, 6)
    assert (slow.paper, slow.source) == ("at least 1.4 times", "Zhang 3.6.2")
    assert found["IV against II: hpcg"].ours == "1.00 times (1.00 to 1.00)"
    assert found["IV against II: hpcg"].holds
    assert found["III against I: all others"].holds
    assert found["III against I: less than IV against II, each of the six"].holds
    share = found["setting I: hacc, time in MPI"]
    assert (share.ours, share.holds, share.calibrated) == ("67.1 ± 0.0 %", True, True)
    for what in ("flits per second", "stalls per second"):
        judged = found[f"run time and {what} of processor tiles: hacc"]
        assert judged.values["high"] < -0.9
        assert judged.holds
    assert found["run time and stall-to-flit of network tiles: hacc"].holds
    assert "run time and stall-to-flit of network tiles: hpcg" not in found, "it is constant"
    assert found["GPCNeT: impact on bandwidth and stall-to-flit"].values["low"] > 0.99


def test_what_it_says_does_not_hold_of_outcomes_that_are_otherwise(six: CongestionPlan) -> None:
    def otherwise(point: Point) -> CongestionOutcome:
        """Congestion slows hpcg down and not hacc, whose time is shorter the more it stalls; and
        the table's part of time in communication is missed."""
        kept = replace(ordinary(point), communication=0.2)
        if point.application == "hacc":
            return replace(kept, run_time_s=1e-3 / kept.stall_to_flit)
        slower = SLOWER[point.setting] if point.application else 1 / kept.run_time_s**2
        return replace(kept, run_time_s=kept.run_time_s * slower)

    found = by_name(STUDY.claims(six, invented(six, otherwise)))
    for name in ("setting I: hacc, time in MPI", "IV against II: hacc", "IV against II: hpcg",
                 "run time and stall-to-flit of network tiles: hacc",
                 "GPCNeT: impact on bandwidth and stall-to-flit"):  # fmt: skip
        assert found[name].verdict in (Verdict.NOT, Verdict.SIGN), name
    assert found["IV against II: hacc"].verdict is Verdict.NOT


def test_a_slowdown_that_is_not_sure_holds_in_sign_only(six: CongestionPlan) -> None:
    def unsure(point: Point) -> CongestionOutcome:
        """Half of the repetitions are slowed down much, the others hardly."""
        kept = ordinary(point)
        hardly = point.setting == "IV" and point.shift % 2
        return replace(kept, run_time_s=kept.run_time_s * (0.6 if hardly else 1.0))

    for asked in (six, replace(six, repetitions=3)):
        found = by_name(STUDY.claims(asked, invented(asked, unsure)))
        assert found["IV against II: hacc"].verdict is Verdict.SIGN


def test_what_a_paper_prints_has_its_source_and_what_differs_its_cause() -> None:
    asked = STUDY.ask()
    found = STUDY.claims(asked, invented(asked))
    assert len({one.name for one in found}) == len(found)
    judged = [one for one in found if one.source]
    assert {one.name for one in found if one.paper} - {one.name for one in judged} == {
        one.name for one in found if re.search(", (divided|real|among)", one.name) and one.paper
    }, "each printed number has its source once"
    assert all(one.source.startswith("Zhang ") and one.verdict for one in judged)
    page = (Path(__file__).parents[2] / "docs" / "congestion.md").read_text()
    anchors = {heading(line) for line in page.splitlines() if line.startswith("#")}
    assert {one.cause for one in judged} <= {f"congestion.md#{anchor}" for anchor in anchors}
    assert not any(one.source for one in found if one.verdict is None)


def heading(line: str) -> str:
    """The anchor of a heading, as renderers of Markdown make it."""
    words = line.lstrip("#").strip().lower()
    return "".join(c for c in words.replace(" ", "-") if c.isalnum() or c == "-")


def test_the_five_are_judged_by_the_least_and_the_most_of_them() -> None:
    asked = STUDY.ask(part="applications", repetitions=6)
    factors = {"hacc": 2.0, "lammps": 8.2, "milc": 3.0, "miniamr": 1.45, "minimd": 2.5}

    def as_printed(point: Point) -> CongestionOutcome:
        slower = factors.get(point.application, 1.0) if point.setting == "IV" else 1.0
        return outcome(1e-3 * slower, 0.3 * slower, point.application)

    found = by_name(STUDY.claims(asked, invented(asked, as_printed)))
    for which in ("least", "most"):
        assert found[f"IV against II: the {which} of the five"].holds
    assert found["IV against II: lammps"].holds
    factors["milc"] = 9.0
    other = by_name(STUDY.claims(asked, invented(asked, as_printed)))
    assert other["IV against II: the most of the five"].verdict is Verdict.NOT


def test_of_a_part_only_its_claims_are_made(some: CongestionPlan) -> None:
    assert STUDY.claims(some, {}) == []
    applications = replace(some, parts=("applications",))
    assert not any("GPCNeT:" in one.name for one in STUDY.claims(some, invented(applications)))
    alone = replace(some, parts=("gpcnet",))
    assert len(STUDY.claims(some, invented(alone))) == len(CANARIES)
    first = {some.at("hacc", "I", 0).key: ordinary(some.at("hacc", "I", 0))}
    assert len(STUDY.claims(some, first)) == 3, "what was measured of it alone"
    assert np.isnan(slowdown(STUDY.measured(some, first), "hacc", "IV", "II").mean)


# -- other profiles


@pytest.mark.parametrize(("profiles", "count"), [(TABLE, 4), (REAL, 8)])
def test_other_profiles_describe_the_same_applications(profiles: str, count: int) -> None:
    asked = STUDY.ask()
    names = [name for name in APPLICATIONS if has(profiles, name)]
    assert len(names) == count
    for name in names:
        other, usual = profile_of(asked.at(name, "I", 0, profiles)), profile(name)
        assert (other.measured, other.sensitive) == (usual.measured, usual.sensitive)
        assert other.stages != usual.stages
        assert other.stages[0].pattern == usual.stages[0].pattern


@pytest.mark.parametrize("shift", [0, 7])
def test_among_other_users_everybody_has_nodes_of_his_own(shift: int) -> None:
    asked = STUDY.ask()
    quiet, loud = (asked.at("milc", setting, shift, CROWD) for setting in ("I", "III"))
    first, *others = quiet.jobs()
    same, congestor, canary_, *others_too = loud.jobs()
    assert (first, others) == (same, others_too)
    everybody = [first, congestor, canary_, *others]
    nodes = [node for job in everybody for node in job.on or ()]
    assert len(set(nodes)) == len(nodes) == 2 * NODES + 384 - LIST
    assert all(job.background for job in everybody[1:])
    assert [job.name for job in (congestor, canary_)] == ["gpcnet-rma-broadcast",
                                                          CANARIES["latency"]]  # fmt: skip
    routers = np.unique(np.array(first.on) // 4)
    assert np.diff(routers).max() > 1, "in pieces"


def test_cases_by_other_profiles_are_other_cases_and_have_more_requests() -> None:
    asked = STUDY.ask()
    keys = {asked.at("milc", "IV", 0, profiles).key for profiles in (BUNDLED, TABLE, REAL)}
    assert len(keys) == 3
    assert type(asked.at("milc", "IV", 0)) is Point, "their keys are those of stores of before"
    real = asked.at("milc", "IV", 0, REAL)
    assert isinstance(real, Divided)
    assert real.requests == asked.requests == 16
    (quiet,) = jobs_of(asked.at("milc", "II", 0, REAL))
    first, loud, _ = jobs_of(real)
    assert first == quiet
    assert [stage.reply_bytes for stage in loud.stages] == [16 * 4096]
    assert len(loud.on or ()) == int(PART * NODES)


def test_correlation_is_none_where_nothing_varies() -> None:
    runs = [outcome(seconds, ratio) for seconds, ratio in ((1, 3), (2, 2), (3, 1))]
    assert correlation(runs, lambda it: it.stall_to_flit) == pytest.approx(-1)
    assert np.isnan(correlation(runs, lambda it: it.communication))
    assert np.isnan(correlation(runs[:2], lambda it: it.stall_to_flit))


def test_impact_is_the_time_with_congestors_over_that_without(some: CongestionPlan) -> None:
    found = impacts(STUDY.measured(some, invented(some)), "latency")
    assert [nodes for nodes, _, _ in found] == [nodes for nodes in ALONE_ON for _ in range(3)]
    for nodes, impact, stalls in found:
        assert impact == pytest.approx(nodes / 16)
        assert stalls == pytest.approx(0.02 * nodes / 16)
    quiet = {some.alone("latency", 16, 0, congested=False).key: outcome(1, 1)}
    assert impacts(STUDY.measured(some, quiet), "latency") == []


# -- what is drawn


def drawn(
    asked: CongestionPlan, outcomes: dict[str, CongestionOutcome], out: Path, pdf: bool = False
) -> list[str]:
    paths = STUDY.figures(asked, outcomes, out, pdf)
    assert all(path.stat().st_size > 5_000 for path in paths)
    return [path.name for path in paths]


@pytest.mark.long
def test_all_figures_are_drawn_of_all_outcomes(some: CongestionPlan, tmp_path: Path) -> None:
    files = [*(f"3.{number}.png" for number in (17, 18, 19, 20)), "real.png"]
    assert drawn(some, invented(some), tmp_path) == files


@pytest.mark.long
def test_what_there_is_nothing_for_is_not_drawn(some: CongestionPlan, tmp_path: Path) -> None:
    assert drawn(some, {}, tmp_path) == []
    alone = invented(replace(some, parts=("gpcnet",)))
    assert drawn(some, alone, tmp_path, pdf=True) == ["3.20.png", "3.20.pdf"]
    calm = STUDY.ask("applications", ("hpcg",), 1)
    assert drawn(calm, invented(calm), tmp_path) == ["3.17.png", "3.18.png"]
    one = some.at("hacc", "I", 0)
    only = {one.key: ordinary(one)}
    assert drawn(some, only, tmp_path) == ["3.17.png", "3.18.png", "3.19.png"]
    later = some.at("hacc", "IV", 0)
    assert drawn(some, {later.key: ordinary(later)}, tmp_path) == [], "there is no unit of time"


@pytest.mark.parametrize("make", figures.FIGURES.values(), ids=list(figures.FIGURES))
def test_the_legend_fits_also_where_there_is_one_application(
    make: Callable[[Measured], Figure | None],
) -> None:
    asked = STUDY.ask(application=("hacc",), repetitions=1)
    with style():
        figure = make(STUDY.measured(asked, invented(asked)))
        assert figure is not None
        figure.canvas.draw()
    box = figure.legends[0].get_window_extent()
    assert 0 <= box.x0 < box.x1 <= figure.bbox.width
    titles = [axes.title.get_window_extent().y1 for axes in figure.axes]
    assert box.y0 >= max(titles), "below it"


def test_applications_that_reach_far_have_a_panel_of_their_own(some: CongestionPlan) -> None:
    figure = figures.figure_3_17(STUDY.measured(some, invented(some)))
    assert figure is not None
    panels = [[label.get_text() for label in axes.get_xticklabels()] for axes in figure.axes]
    assert panels == [["hpcg"], ["hacc"]]
    one = replace(some, applications=("hpcg",))
    calm = figures.figure_3_17(STUDY.measured(one, invented(some)))
    assert calm is not None
    assert len(calm.axes) == 1


def test_boxes_reach_from_the_shortest_to_the_longest_run_over_the_median_alone(
    some: CongestionPlan,
) -> None:
    figure = figures.figure_3_17(STUDY.measured(some, invented(some)))
    assert figure is not None
    heights = np.concatenate([np.asarray(line.get_ydata()) for line in figure.axes[1].lines])
    expected = {slower * (1 + 0.01 * shift) / 1.01 for slower in SLOWER.values()
                for shift in range(3)}  # fmt: skip
    assert {round(value, 9) for value in expected} <= set(np.round(heights, 9).tolist())


def test_a_cross_is_the_mean_of_a_setting_and_r_stands_in_the_corner(some: CongestionPlan) -> None:
    outcomes = invented(some)
    figure = figures.figure_3_18(STUDY.measured(some, outcomes))
    assert figure is not None
    axes = figure.axes[0]
    marks = [line for line in axes.lines if line.get_marker() in ("x", "+")]
    crosses = np.array([np.ravel(line.get_xydata()) for line in marks])
    expected = [(0.3 * slower * 1.01, slower) for slower in SLOWER.values()]
    assert np.allclose(crosses, expected)
    assert [text.get_text() for text in axes.texts] == ["r = 1.00"]
    assert [text.get_text() for text in figure.axes[1].texts] == ["r = 1.00"]


def test_a_counter_without_a_value_or_without_a_change_is_drawn_without_a_fit(
    some: CongestionPlan, tmp_path: Path
) -> None:
    def dull(point: Point) -> CongestionOutcome:
        calm = point.setting == "I"
        return replace(ordinary(point), ptile_stalls_per_s=0.0, ntile_stalls_per_s=np.nan,
                       stall_to_flit=np.nan if calm else 0.1)  # fmt: skip

    few = replace(some, parts=("applications",))
    assert drawn(few, invented(few, dull), tmp_path) == ["3.17.png", "3.18.png", "3.19.png"]
    figure = figures.figure_3_19(STUDY.measured(few, invented(few, dull)))
    assert figure is not None
    assert [len(axes.texts) for axes in figure.axes] == [0, 0, 1]


def test_impacts_that_differ_much_are_on_a_logarithmic_axis(some: CongestionPlan) -> None:
    def steep(point: Point) -> CongestionOutcome:
        """Impacts are 1 to 2.8 times, those on latency 1 to 64 times."""
        power = 2 if point.canary == "latency" else 0.5
        worse = (point.nodes / 16) ** power if point.congestor != NONE else 1.0
        return outcome(1e-4 * worse, 0.1)

    figure = figures.figure_3_20(STUDY.measured(some, invented(some, steep)))
    assert figure is not None
    assert [axes.get_yscale() for axes in figure.axes] == ["linear", "log", "linear"]


# -- a real one


@pytest.mark.long  # a program of its own
def test_a_canary_beside_congestors_is_timed_and_its_counters_are_read() -> None:
    case = STUDY.ask().alone("latency", 16, 0, congested=True)
    found = simulate(case)
    assert 0 < found.mean_latency_s < found.p99_latency_s < found.run_time_s
    assert 0 < found.communication <= 1
    assert found.node_bytes_per_s > 0
    assert found.ptile_flits_per_s > 0
    assert found.stall_to_flit > 0
    assert from_line(to_line(Answer(case, found)), STUDY) == (case.key, found)


@pytest.mark.long
def test_the_command_prints_medians_over_several_choices_of_nodes() -> None:
    words = ["gpcnet", "--nodes", "10", "--repeat", "2", "--seed", "4", "--json"]
    done = CliRunner().invoke(cli, words, catch_exceptions=False)
    found = json.loads(done.output)
    assert found["seeds"] == [4, 5]
    assert {*found["canaries"]} == {*CANARIES}
    for canary in found["canaries"].values():
        for alone, congested, impact in zip(
            canary["alone_us"], canary["congested_us"], canary["impact"], strict=True
        ):
            assert impact == pytest.approx(congested / alone)
    few = CliRunner().invoke(cli, ["gpcnet", "--nodes", "3"])
    assert "nodes = 3: from 10 to the 384 of aries-group" in str(few.exception)
