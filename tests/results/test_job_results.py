"""What a run of jobs leaves, and what is made of it. All of it with adaptive routing, of which
kernels are compiled once."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from io import StringIO
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from click.testing import CliRunner
from files import forget_plugins
from machines import SMALL
from rich.console import Console

from odonata.commands.cli import cli
from odonata.commands.run import run_table
from odonata.commands.watch import frame
from odonata.experiment.reading import load, parse
from odonata.figures import contents as pictures
from odonata.figures import jobs as job_figures
from odonata.figures.report import page
from odonata.jobs.board import DONE
from odonata.jobs.request import Job
from odonata.jobs.schedule import Schedule
from odonata.results import job_table as accounts
from odonata.results.derived import summary
from odonata.results.execution import Finished, RunOptions, execute
from odonata.results.facts import run_facts
from odonata.results.kept_summary import Summary
from odonata.results.performance import job_records, performance
from odonata.results.run import Run
from odonata.results.run import open as open_run
from pdes.errors import Refused
from pdes.hdf5 import seal
from pdes.stream import RUNNING

US = 10**6
DOC = Path(__file__).parents[2] / "docs" / "results.md"
QUEUE = """
name = "queue <b> & co"
[machine]
preset = "kim-72"
[network]
routing = "adaptive"
[[jobs]]
name = "fft"
count = 2
nodes = 32
pattern = "fft3d"
[[jobs]]
nodes = 40
pattern = "halo3d26"
arrival = "1 us"
requested = "2 ms"
user = "ann"
project = "climate"
application = "ocean é"
[[jobs]]
name = "late <i>"
nodes = 4
pattern = "incast"
arrival = "40 us"
[scheduler]
launch = "2 us"
[metrics]
interval = "1 us"
"""


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Finished]:
    home = tmp_path_factory.mktemp("runs")
    file = home / "queue.toml"
    file.write_text(QUEUE)
    kept: dict[str, Finished] = {}

    def made(name: str, *changes: str) -> Finished:
        if name not in kept:
            done = execute(RunOptions(file, home / name, changes, progress=False))
            assert done
            kept[name] = done
        return kept[name]

    return made


@pytest.fixture(scope="module")
def queue(make: Callable[..., Finished]) -> Finished:
    return make("queue")


@pytest.fixture(scope="module")
def opened(queue: Finished) -> Run:
    return open_run(queue.out)


def test_a_run_ends_when_its_jobs_are_done(queue: Finished, opened: Run) -> None:
    assert queue.result.completed
    assert [it.name for it in queue.measured.records] == ["fft 1", "fft 2", "job 2", "late <i>"]
    assert all(it.end_ps for it in queue.measured.records)
    assert opened.complete
    last = accounts.makespan_ps(queue.measured.records)
    assert last
    assert queue.result.time_ps == last <= opened.reached_ps == int(opened.time[-1])
    assert summary(opened) == performance(opened.network, queue.result)


def test_what_is_on_disk_says_what_became_of_each_job(queue: Finished, opened: Run) -> None:
    assert opened.job_records == queue.measured.records == job_records(opened.network, queue.result)
    facts = opened.jobs
    for i, it in enumerate(queue.measured.records):
        row = facts.isel(job=i)
        assert (str(row["name"].item()), int(row.nodes)) == (it.name, it.nodes)
        for name in ("arrival_ps", "start_ps", "end_ps", "waiting_ps", "run_time_ps"):
            assert int(row[name]) == getattr(it, name)
        requested = -1 if it.requested_ps is None else it.requested_ps
        assert int(row.requested_ps) == opened.file["jobs/requested_ps"][i] == requested
        for name in ("user", "project", "application"):
            stored = opened.file[f"jobs/{name}"][i].decode()
            assert str(row[name].item()) == stored == getattr(it, name)
        assert len(set(it.labels)) == it.nodes
    first, second, third, _ = queue.measured.records
    assert not set(first.labels) & set(second.labels)
    ends = sorted((first.end_ps or 0, second.end_ps or 0))
    assert third.start_ps is not None
    assert ends[0] < third.start_ps  # 72 nodes: it had to wait
    asked = (third.requested_ps, third.user, third.project, third.application)
    assert asked == (2000 * US, "ann", "climate", "ocean é")


def test_a_file_without_the_later_columns_opens_and_says_who_asked(
    queue: Finished, tmp_path: Path
) -> None:
    old = shutil.copytree(queue.out, tmp_path / "old")
    (old / "run.h5").unlink()
    with h5py.File(old / "rank-0000.h5", "r+") as file:
        for name in ("requested_ps", "user", "project", "application"):
            del file[f"jobs/{name}"]
        file["status"][()] = RUNNING
        seal(file)
    with open_run(old) as run:
        assert run.jobs.user.data.tolist() == ["", "", "ann", ""]
        assert run.job_records[2].requested_ps == 2000 * US


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_run_that_goes_on_tells_who_waits_and_who_runs(
    queue: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    """Cut where only the first two run: 72 nodes are not enough for the third. Its page has the
    figures of jobs, and may lack those of the network."""
    if not whole:
        monkeypatch.setattr(pictures, "FIGURES", [])
    for samples, words in ((1, "1 yet to come, 1 queued, 2 running"), (0, None)):
        died = shutil.copytree(queue.out, tmp_path / f"died-{samples}")
        (died / "run.h5").unlink()
        with h5py.File(died / "rank-0000.h5", "r+") as file:
            file["time_ps"].resize(samples, 0)
            file["status"][()] = RUNNING
        with open_run(died) as run:
            assert (run.jobs.end_ps == -1).all()
            assert (run.jobs.run_time_ps == -1).all()
            if words:
                assert str(accounts.tally(run.job_records, run.reached_ps)) == words
                assert run.jobs.waiting_ps.data.tolist() == [2 * US, 2 * US, -1, -1]
                assert [len(it.labels) for it in run.job_records] == [32, 32, 0, 0]
            text = page(run)
            assert "INCOMPLETE" in text
            assert "some jobs are not done" in text
        console = Console(width=100, file=StringIO())
        console.print(frame(died).shown)
        said = console.file.getvalue()  # type: ignore[attr-defined]
        assert (words or "queued") in said


def test_a_duration_cuts_jobs_short(make: Callable[..., Finished]) -> None:
    cut = make("cut", "run.duration=3 us")
    assert [it.end_ps for it in cut.measured.records] == [None] * 4
    assert cut.measured.records[0].start_ps == 2 * US
    with open_run(cut.out) as run:
        assert run.reached_ps == 3 * US
        assert run.job_records == cut.measured.records
    rows = [*csv.DictReader(StringIO((cut.out / "jobs.csv").read_text()))]
    states = [row["final_state"] for row in rows]
    assert states == ["RUNNING", "RUNNING", "SUBMITTED", "NOT_SUBMITTED"]
    assert [row["success"] for row in rows] == ["0"] * 4
    assert rows[0]["finish_time"] == rows[2]["allocated_resources"] == ""


def test_a_table_of_jobs_has_batsims_columns(queue: Finished) -> None:
    rows = [*csv.DictReader(StringIO((queue.out / "jobs.csv").read_text()))]
    for row, it in zip(rows, queue.measured.records, strict=True):
        assert (row["job_id"], row["success"]) == (str(it.number), "1")
        asked = float(row["requested_time"])
        assert asked == (-1 if it.requested_ps is None else it.requested_ps / 1e12)
        assert [row[name] for name in ("user", "project", "application")] == [
            it.user, it.project, it.application
        ]  # fmt: skip
        assert int(row["requested_number_of_resources"]) == it.nodes
        finish, start, submitted, took, waited, round_trip = (
            round(float(row[name]) * 1e12)
            for name in ("finish_time", "starting_time", "submission_time", "execution_time",
                         "waiting_time", "turnaround_time")
        )  # fmt: skip
        assert (submitted, start, finish) == (it.arrival_ps, it.start_ps, it.end_ps)
        assert (took, waited) == (it.run_time_ps, it.waiting_ps)
        assert round_trip == finish - submitted
        assert float(row["stretch"]) == pytest.approx(round_trip / took, abs=1e-6)
        nodes = [n for part in row["allocated_resources"].split(" ")
                 for first, _, last in [part.partition("-")]
                 for n in range(int(first), int(last or first) + 1)]  # fmt: skip
        assert nodes == sorted(it.labels)


def test_ranges_are_written_as_batsim_writes_them() -> None:
    board = np.array([[DONE, 0, 1, 10**12]])
    schedule = Schedule.of_board("w", [Job(5, "incast", name="x")], board,
                                 np.array([8, 2, 1, 0, 3]), SMALL, 2 * 10**12)  # fmt: skip
    line = accounts.to_csv(schedule, "w").splitlines()[1]
    assert line.endswith(",0-3 8,x,,,")
    assert "1.000000000000" in line


def test_a_table_for_people_and_json_have_the_jobs(queue: Finished) -> None:
    facts = json.loads(json.dumps(run_facts(queue)))
    assert [job["name"] for job in facts["jobs"]] == [it.name for it in queue.measured.records]
    assert facts["jobs"][0]["labels"] == list(queue.measured.records[0].labels)
    groups = {label // 8 for label in queue.measured.records[0].labels}
    assert facts["jobs"][0]["groups"] == len(groups)
    assert facts["jobs"][2]["requested_ps"] == 2000 * US
    assert facts["jobs"][2]["user"] == "ann"
    assert "offered" not in facts
    console = Console(width=100, file=StringIO())
    console.print(
        run_table(Summary.of(queue)),
        accounts.job_table(queue.experiment.machine, queue.measured.records),
    )
    said = console.file.getvalue()  # type: ignore[attr-defined]
    for words in ("4 of 4", "run time", "halo3d26", "late <i>"):
        assert words in said
    assert "throughput" not in said
    many = [queue.measured.records[0]] * 30
    console.print(accounts.job_table(queue.experiment.machine, many))
    assert "and 10 more" in console.file.getvalue()  # type: ignore[attr-defined]


def test_the_documented_jobs_are_what_is_written(opened: Run) -> None:
    rows = re.findall(
        r"^\| `((?:jobs|stages|starts|ends)/\w+)` \| ([\w, ]+) \| (\w+) \| (\w*) ?\|",
        DOC.read_text(),
        re.M,
    )
    documented = {name: (dims, unit, kind) for name, dims, unit, kind in rows}
    written = {}
    for group in ("jobs", "stages", "starts", "ends"):
        for name, dataset in opened.file[group].items():
            dims = ", ".join(dim.label for dim in dataset.dims)
            kind = str(dataset.attrs.get("kind", "")).split(" ")[0]
            written[f"{group}/{name}"] = (dims, dataset.attrs["unit"], kind)
    assert documented == written


def test_a_run_without_jobs_says_so(opened: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = open_run(opened.path)
    monkeypatch.setattr(fresh, "experiment", parse("", "x.toml"))
    with pytest.raises(Refused, match="ran no jobs"):
        _ = fresh.jobs
    fresh.close()


# -- ranks


@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, 3])
def test_one_rank_and_several_leave_the_same_bits(
    odonata: Callable[..., Any], tmp_path: Path, ranks: int
) -> None:
    (tmp_path / "queue.toml").write_text(QUEUE)
    for number in (1, ranks):
        done = odonata("run", "queue.toml", "-o", f"r{number}", "--json", ranks=number)
        assert done.returncode == 0, done.stderr
    same = odonata("diff", "r1", f"r{ranks}")
    assert same.stdout.startswith("the same, bit for bit: 59 datasets"), same.stdout
    texts = [(tmp_path / name / "jobs.csv").read_text() for name in ("r1", f"r{ranks}")]
    assert texts[0] == texts[1]
    with h5py.File(tmp_path / f"r{ranks}" / f"rank-{ranks - 1:04d}.h5") as file:
        assert len(file["starts/job"]) == len(file["jobs/name"]) == 0
    with h5py.File(tmp_path / f"r{ranks}" / "run.h5") as file:
        assert file["jobs/name"][:].tolist()[3] == b"late <i>"


# -- reports


def test_a_page_has_a_section_of_jobs(opened: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "FIGURES", [it for it in pictures.FIGURES if it.name == "load"])
    text = page(opened)
    for name in ("jobs", "timeline", "seats", "talk", "held", "load"):
        assert text.count(f'id="{name}"') == 1
    assert "late &lt;i&gt;" in text
    assert "late <i>" not in text
    assert "saturated" not in text
    assert "What nodes sent and took in" in text
    assert "4 jobs, placed by level-spread, fcfs" in text


def test_the_moment_that_is_drawn_has_the_most_jobs(opened: Run) -> None:
    time, there = job_figures.fullest(opened)
    assert {it.name for it in there} >= {"fft 1", "fft 2"}
    for it in there:
        assert it.start_ps is not None
        assert it.end_ps is not None
        assert it.start_ps <= time < it.end_ps
    labels = np.concatenate([it.labels for it in there])
    assert len(np.unique(labels)) == len(labels)


def test_compare_tells_communication_times_by_pattern(
    make: Callable[..., Finished], queue: Finished
) -> None:
    other = make("random", "scheduler.allocation=rdn")
    words = ["compare", str(queue.out), str(other.out)]
    facts = json.loads(CliRunner().invoke(cli, [*words, "--json"]).stdout)
    assert facts["differences"] == {"scheduler.allocation": ["level-spread", "rdn"]}
    for run, done in zip(facts["runs"], (queue, other), strict=True):
        times = [it.run_time_ps or 0 for it in done.measured.records]
        assert run["figures"]["jobs.run_time_us"] == pytest.approx(np.mean(times) / 1e6)
        assert run["figures"]["jobs.run_time_us.fft3d"] == pytest.approx(np.mean(times[:2]) / 1e6)
        assert "offered" not in run["figures"]
    shown = CliRunner().invoke(cli, words).stdout
    assert "run time, mean (us)" in shown
    assert "saturated" not in shown


def test_a_directory_says_with_which_jobs_it_was_begun(queue: Finished) -> None:
    file, changes = queue.out.parent / "queue.toml", ["jobs[0].nodes=31"]
    with pytest.raises(Refused, match=r"jobs\[0\].nodes = 32, not 31"):
        execute(RunOptions(file, queue.out, changes, resume=True))


def test_what_is_ready_made_runs_jobs() -> None:
    home = Path(__file__).parents[2] / "scripts" / "experiments"
    for name in ("jobs", "queue"):
        made = load(home / f"{name}.toml")
        assert made.jobs
        assert made.run.end is None


@pytest.mark.long
def test_a_run_that_replaces_another_takes_its_report_away_and_nothing_else(tmp_path: Path) -> None:
    from odonata.commands.report import write
    from odonata.commands.run import forget_report

    out = tmp_path / "out"
    file = tmp_path / "x.toml"
    file.write_text(
        'machine.preset = "kim-72"\n[network]\nrouting = "adaptive"\n[[jobs]]\nnodes = 4\n'
    )
    execute(RunOptions(file, out))
    write(out, None, "html")
    mine, ours = out / "figures" / "mine.png", out / "figures" / "timeline.png"
    mine.parent.mkdir()
    for path in (mine, ours):
        path.write_bytes(b"")
    execute(RunOptions(file, out, overwrite=True), forget_report)
    assert not (out / "report.html").exists()
    assert list(mine.parent.iterdir()) == [mine]


@pytest.mark.long
def test_a_run_whose_plugin_is_gone_is_opened_compared_and_says_what_is_missing(
    tmp_path: Path,
) -> None:
    (tmp_path / "mine.py").write_text(
        "from odonata import allocation, discipline\n"
        '@allocation("first-ones", about="the first that are idle", source="a test")\n'
        "def first_ones(sight, job, rng):\n"
        "    return sight.labels[: job.nodes]\n"
        '@discipline("in-turn", about="as they came", source="a test")\n'
        "def in_turn(queue):\n"
        "    return list(range(len(queue)))\n"
    )
    (tmp_path / "queue.toml").write_text(QUEUE)
    changes = ("scheduler.allocation=first-ones", "scheduler.order=in-turn", "run.duration=15 us")
    plugins = (tmp_path / "mine.py",)
    try:
        execute(RunOptions(tmp_path / "queue.toml", tmp_path / "out", changes, progress=False,
                           plugins=plugins))  # fmt: skip
    finally:
        forget_plugins("first-ones", "in-turn")
    with open_run(tmp_path / "out") as run:
        assert run.missing == ""  # it is there, if anybody wants it
        assert len(run.job_records) == 4
    (tmp_path / "mine.py").unlink()
    both = "allocation 'first-ones', scheduling 'in-turn'"
    said = f"the plug-in ({tmp_path / 'mine.py'}) of {both} is missing"
    with open_run(tmp_path / "out") as run:
        assert run.missing.split(";")[0] == said
        assert f"the plug-in of {both} is missing" in repr(run)
    for words, runs in ((["report"], 1), (["diff", str(tmp_path / "out")], 2),
                        (["compare", str(tmp_path / "out")], 2)):  # fmt: skip
        done = CliRunner().invoke(cli, [*words, str(tmp_path / "out")], catch_exceptions=False)
        assert done.stderr.count(f"{tmp_path / 'out'}: {said}") == done.stderr.count("odonata:")
        assert done.stderr.count(said) == runs
        assert done.exit_code == 0
    report = unescape((tmp_path / "out" / "report.html").read_text())
    assert said.removeprefix("the ") in report
    with pytest.raises(Refused, match=r"plugins = .*: No such file"):
        execute(RunOptions(None, tmp_path / "out", resume=True))
    forget_plugins("first-ones", "in-turn")


def test_numbers_are_whole_beside_a_long_name(queue: Finished) -> None:
    long = "a name of many words that is long"
    record = replace(queue.measured.records[0], name=long, pattern="p" * 28)
    out = StringIO()
    Console(width=80, file=out).print(accounts.job_table(queue.experiment.machine, [record]))
    shown = out.getvalue()
    assert "ran (us)" in shown
    assert f"{(record.run_time_ps or 0) / 1e6:,.2f} " in shown
