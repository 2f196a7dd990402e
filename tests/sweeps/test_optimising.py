"""The best values of keys: found, the same however it is done, and resumed."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import odonata
from odonata.commands.cli import cli
from odonata.study.filling import fill
from odonata.sweeps.axes import Value
from odonata.sweeps.optimising import Search, Space, asked_of, figure_of
from odonata.sweeps.outcomes import SweepOutcome
from pdes.errors import Refused

FILE = """
[machine]
preset = "kim-72"
[traffic]
load = 0.2
[run]
duration = "1 us"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(FILE)
    return path


def sought(file: Path, *changes: str, figure: str = "mean_latency_ns", trials: int = 12) -> Search:
    return Search(asked_of(file, changes, (), 1, figure, "minimise", trials))


def test_a_change_is_a_list_of_words_a_range_or_fixed(file: Path) -> None:
    asked = sought(file, "network.routing=minimal,valiant", "traffic.load=0.1..0.9",
                   "network.vcs=hops", "machine.groups=3..9").asked  # fmt: skip
    assert asked.changes == ("network.vcs=hops",)
    assert asked.spaces == (
        Space("network.routing", (Value("minimal", ("network.routing=minimal",)),
                                  Value("valiant", ("network.routing=valiant",)))),
        Space("traffic.load", (), 0.1, 0.9, False),
        Space("machine.groups", (), 3.0, 9.0, True),
    )  # fmt: skip


def test_the_least_latency_is_found_at_the_least_load(file: Path) -> None:
    search = sought(file, "traffic.load=0.05..0.9", trials=16)
    _, kept = fill(search, search.asked, None, 1)
    ranked = search.ranked(kept.outcomes)
    assert len(search.done) == len(ranked) == 16
    loads = {number: float(trial.values["traffic.load"]) for number, trial, _ in ranked}
    assert loads[ranked[0][0]] == min(loads.values())
    means = [mean.mean for _, _, mean in ranked]
    assert means == sorted(means)


def test_a_latency_that_is_no_mean_of_a_steady_state_is_never_the_best(file: Path) -> None:
    """The least latency of all may be that of the few packets that got through."""
    search = sought(file, "traffic.load=0.1,0.5,0.9", trials=6)
    fill(search, search.asked, None, 1)
    loads = {point.key: trial.values["traffic.load"] for trial in search.done
             for point in trial.points}  # fmt: skip
    known = {
        key: SweepOutcome({"mean_latency_ns": latency}, {}, "d", verdict=verdict)
        for key, load in loads.items()
        for latency, verdict in [
            {"0.1": (700.0, "steady"), "0.5": (900.0, "steady"), "0.9": (600.0, "not settled")}[
                load
            ]
        ]
    }
    order = [trial.values["traffic.load"] for _, trial, _ in search.ranked(known)]
    assert order == sorted(order)
    rows = [*csv.DictReader(search.to_csv(known).splitlines())]
    assert {row["traffic.load"]: row["steady_state"] for row in rows} == {
        load: "not settled" if load == "0.9" else "steady" for load in loads.values()}  # fmt: skip


def test_a_search_suggests_the_same_when_it_is_resumed(file: Path, tmp_path: Path) -> None:
    changes = ("traffic.load=0.05..0.9", "network.routing=minimal,valiant")
    whole = sought(file, *changes)
    fill(whole, whole.asked, None, 1)
    begun = sought(file, *changes, trials=5)
    fill(begun, begun.asked, tmp_path / "s", 1)
    rest = sought(file, *changes, trials=12)
    ran, kept = fill(rest, rest.asked, tmp_path / "s", 2)
    assert [trial.values for trial in rest.done] == [trial.values for trial in whole.done]
    assert ran.simulated <= 7 + 3  # Optuna is told of the first batch once all of it is known
    rows = [*csv.DictReader(rest.to_csv(kept.outcomes).splitlines())]
    assert [row["traffic.load"] for row in rows] == [
        trial.values["traffic.load"] for trial in whole.done]  # fmt: skip


def test_values_that_no_experiment_can_have_are_passed_over(file: Path) -> None:
    search = sought(file, "machine.groups=8,9,10,99", trials=8)
    fill(search, search.asked, None, 1)
    assert {trial.values["machine.groups"] for trial in search.done if not trial.points} <= {
        "10", "99"}  # fmt: skip


def test_it_shows_the_best_trials(file: Path, tmp_path: Path) -> None:
    words = ["sweep", str(file), "--set", "traffic.load=0.1,0.5", "--optimise", "throughput",
             "--direction", "maximise", "--trials", "4", "--seeds", "2", "-o", str(tmp_path / "s"),
             "--jobs", "1"]  # fmt: skip
    shown = CliRunner().invoke(cli, words, catch_exceptions=False).output
    assert "of 4 trials" in shown
    facts = json.loads(CliRunner().invoke(cli, [*words, "--json"], catch_exceptions=False).output)
    assert facts["best"][0]["values"] == {"traffic.load": "0.5"}
    assert facts["best"][0]["of"] == 2
    with pytest.raises(Refused, match="holds a search; the command that made it shows it again"):
        odonata.open_sweep(tmp_path / "s")


def test_the_axes_and_seeds_of_the_file_are_searched_too(file: Path) -> None:
    file.write_text(
        FILE
        + """
[sweep]
seeds = 3
[sweep.size]
small = { "traffic.message" = "1 KiB" }
large = { "traffic.message" = "8 KiB", "traffic.load" = 0.1 }
"""
    )
    search = Search(asked_of(file, ["network.routing=minimal,valiant"], (), None,
                             "mean_latency_ns", "minimise", 2))  # fmt: skip
    assert [space.key for space in search.asked.spaces] == ["size", "network.routing"]
    assert search.asked.seeds == (1, 2, 3)
    trial = search._trial({"size": "large", "network.routing": "valiant"})
    made = trial.points[0].experiment()
    assert (made.traffic[0].load, made.network.routing) == (0.1, "valiant")
    assert len(trial.points) == 3
    fixed = asked_of(file, ["size=small", "traffic.load=0.1..0.2"], (), 1, "x", "minimise", 2)
    assert [len(space.values) for space in fixed.spaces] == [1, 0]


@pytest.mark.parametrize(
    "words", [("--check",), ("--plot", "a:b"), ("--share", "1/2"), ("--figure", "x"), ("--report",)]
)
def test_options_that_mean_nothing_to_a_search_are_refused(
    file: Path, words: tuple[str, ...]
) -> None:
    given = ["sweep", str(file), "--optimise", "throughput", "--set", "traffic.load=0.1..0.9"]
    with pytest.raises(Refused, match=f"{words[0]} cannot be used with it"):
        CliRunner().invoke(cli, [*given, *words], catch_exceptions=False, standalone_mode=False)


def test_what_cannot_be_looked_for_is_refused(file: Path) -> None:
    with pytest.raises(Refused, match="--seeds 5 gives each trial"):
        sought(file, "run.seed=1,2")
    with pytest.raises(Refused, match="over what"):
        sought(file, "traffic.load=0.1")
    with pytest.raises(Refused, match="the least number first"):
        sought(file, "traffic.load=0.9..0.1")
    search = sought(file, "traffic.load=0.1..0.9", figure="lateness", trials=1)
    with pytest.raises(Refused, match="no figure of this sweep"):
        fill(search, search.asked, None, 1)


def test_a_figure_may_be_of_one_job_or_of_all() -> None:
    outcome = SweepOutcome({"a": 1.0}, {"fft": {"run_time_ps": 2.0}, "halo": {"run_time_ps": 4.0}})
    assert figure_of(outcome, "a") == 1.0
    assert figure_of(outcome, "run_time_ps") == figure_of(outcome, "jobs.run_time_ps") == 3.0
    assert figure_of(outcome, "jobs.fft.run_time_ps") == 2.0
    assert figure_of(SweepOutcome(failed="deadlock"), "a") is None
