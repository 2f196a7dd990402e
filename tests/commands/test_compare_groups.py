"""`odonata compare` of several seeds: groups, means, and which changes are significant."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from odonata.commands.cli import cli
from odonata.results.execution import RunOptions, execute
from odonata.results.statistics import RESAMPLED, difference, interval

FILE = """
[machine]
preset = "kim-72"
[traffic]
load = 0.2
[run]
duration = "2 us"
"""
LOADS = (0.2, 0.3)
SEEDS = (1, 2, 3)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("groups")
    (home / "mine.toml").write_text(FILE)
    for load in LOADS:
        for seed in SEEDS:
            changes = [f"traffic.load={load}", f"run.seed={seed}"]
            execute(RunOptions(home / "mine.toml", home / f"at-{load}-{seed}", changes))
    return home


def invoke(*words: object) -> str:
    found = CliRunner().invoke(cli, ["compare", *map(str, words)], catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return found.output


def all_of(runs: Path, load: float) -> list[Path]:
    return [runs / f"at-{load}-{seed}" for seed in SEEDS]


def compared(*words: object) -> Any:
    return json.loads(invoke(*words, "--json"))


def test_runs_that_differ_only_in_the_seed_are_one_column(runs: Path) -> None:
    found = compared(*all_of(runs, 0.2), *all_of(runs, 0.3))
    first, second = found["groups"]
    assert (first["label"], second["label"]) == ("at-0.2 (3 seeds)", "at-0.3 (3 seeds)")
    assert first["seeds"] == [1, 2, 3]
    values = [[run["figures"]["throughput"] for run in found["runs"][at : at + 3]]
              for at in (0, 3)]  # fmt: skip
    assert first["figures"]["throughput"] == interval(values[0])._asdict()
    change = second["change"]["throughput"]
    assert change["part"] == pytest.approx(interval(values[1]).mean / interval(values[0]).mean - 1)
    assert change["significant"] == difference(*values, paired=True).excludes_zero is True
    shown = invoke(*all_of(runs, 0.2), *all_of(runs, 0.3))
    assert "traffic.load" in shown
    assert "1 … 3" in shown
    assert " ± " in shown


def test_a_change_that_may_be_chance_is_marked(runs: Path) -> None:
    mixed = [runs / "at-0.2-1", runs / "at-0.2-3"], [runs / "at-0.3-1", runs / "at-0.3-2"]
    found = compared(*mixed[0], *mixed[1])
    changes = found["groups"][1]["change"]
    assert any(it["significant"] is False for it in changes.values())
    assert " ~" in invoke(*mixed[0], *mixed[1])


def test_the_baseline_is_named_and_the_order_of_runs_changes_no_verdict(runs: Path) -> None:
    every = [*all_of(runs, 0.2), *all_of(runs, 0.3)]
    shown = invoke(*every, "--against", runs / "at-0.3-1")
    assert "against at-0.3 (3 seeds)" in shown
    assert invoke(*every[::-1], "--against", runs / "at-0.3-2") == shown


def test_groups_are_compared_on_the_seeds_that_they_have_in_common(runs: Path) -> None:
    found = compared(*all_of(runs, 0.2), *all_of(runs, 0.3)[1:])
    values = [[run["figures"]["throughput"] for run in found["runs"][at]]
              for at in (slice(1, 3), slice(3, 5))]  # fmt: skip
    expected = difference(*values, paired=True).excludes_zero
    assert found["groups"][1]["change"]["throughput"]["significant"] == expected


def test_runs_of_one_group_and_runs_apart_are_columns_of_their_own(runs: Path) -> None:
    assert "groups" not in compared(*all_of(runs, 0.2))
    assert "groups" not in compared(*all_of(runs, 0.2), *all_of(runs, 0.3), "--each")
    shown = invoke(*all_of(runs, 0.2))
    assert "at-0.2-1" in shown
    assert "run.seed" in shown


def test_one_run_beside_a_group_says_nothing_about_significance(runs: Path) -> None:
    found = compared(*all_of(runs, 0.2), runs / "at-0.3-1")
    assert {it["significant"] for it in found["groups"][1]["change"].values()} == {None}


JOBS = """
[machine]
preset = "kim-72"
[network]
routing = "adaptive"
[[jobs]]
name = "a"
nodes = 4
[[jobs]]
name = "b"
nodes = 8
"""


def test_a_job_that_only_one_run_has_is_one_difference(tmp_path: Path) -> None:
    (tmp_path / "jobs.toml").write_text(JOBS)
    execute(RunOptions(tmp_path / "jobs.toml", tmp_path / "both"))
    execute(RunOptions(tmp_path / "jobs.toml", tmp_path / "one", ["jobs[a]=none"]))
    found = compared(tmp_path / "both", tmp_path / "one")
    assert found["differences"] == {"jobs[a]": ["a", "none"]}
    (row,) = (line for line in invoke(tmp_path / "both", tmp_path / "one").splitlines()
              if line.startswith("jobs["))  # fmt: skip
    assert row.split() == ["jobs[a]", "a", "none"]


def test_a_picture_of_jobs_has_a_dot_for_each_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib.axes import Axes

    from odonata.figures.comparison import draw_runs
    from odonata.results.run import Run

    (tmp_path / "jobs.toml").write_text(JOBS)
    drawn: list[tuple[float, float]] = []
    usual: Callable[..., Any] = Axes.errorbar

    def noted(axes: Axes, x: Any, y: Any, *rest: Any, **how: Any) -> Any:
        drawn.append((x[0], y[0]))
        return usual(axes, x, y, *rest, **how)

    monkeypatch.setattr(Axes, "errorbar", noted)
    execute(RunOptions(tmp_path / "jobs.toml", tmp_path / "one", ["scheduler.allocation=simple"]))
    execute(RunOptions(tmp_path / "jobs.toml", tmp_path / "two", ["scheduler.allocation=rdn"]))
    with Run(tmp_path / "one") as one, Run(tmp_path / "two") as two:
        draw_runs({"one": {"one": one}, "two": {"two": two}}, tmp_path / "both.png")
        times = [(it.run_time_ps or 0) / 1e6 for run in (one, two) for it in run.job_records]
    assert [y for _, y in drawn] == pytest.approx(times)
    assert (tmp_path / "both.png").stat().st_size > 10_000


def test_replicates_of_a_trace_are_compared_by_their_spread(tmp_path: Path) -> None:
    jobs = "\n".join(f"{n} {n * 40000} 0 {n * n % 97}000 2 0 0 2 -1 0 1 1 1 1 1 1 0 0"
                     for n in range(1, 97))  # fmt: skip
    (tmp_path / "a.swf").write_text(f"; MaxProcs: 3\n{jobs}\n")
    (tmp_path / "mine.toml").write_text('fidelity = "job"\ntrace.file = "a.swf"\n')
    places = []
    for order in ("fcfs", "shortest-first"):
        for seed in SEEDS:
            places.append(tmp_path / f"{order}-{seed}")
            changes = ["trace.resample=7d", f"scheduler.order={order}", f"run.seed={seed}"]
            execute(RunOptions(tmp_path / "mine.toml", places[-1], changes))
    found = compared(*places)
    waits = [[run["figures"]["mean_turnaround_s"] for run in found["runs"][at : at + 3]]
             for at in (0, 3)]  # fmt: skip
    assert len({*waits[0]}) == 3
    mean = found["groups"][0]["figures"]["mean_turnaround_s"]
    assert mean == interval(waits[0], method=RESAMPLED)._asdict()
    apart = difference(*waits, paired=True, method=RESAMPLED)
    change = found["groups"][1]["change"]["mean_turnaround_s"]
    assert change["significant"] == apart.excludes_zero
