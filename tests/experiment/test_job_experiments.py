"""Jobs, from an experiment file to results and reports. All of it with adaptive routing, of which
kernels are compiled once."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from odonata.agents.network import Network
from odonata.agents.patterns import PATTERNS
from odonata.agents.workload import Workload
from odonata.commands.cli import cli
from odonata.commands.run import table, to_json
from odonata.commands.watch import frame
from odonata.experiment import keys
from odonata.experiment.reading import Experiment, Metrics, folded, load, parse
from odonata.figures import contents as pictures
from odonata.figures import jobs as job_figures
from odonata.figures.report import page
from odonata.jobs.record import JobRecord
from odonata.jobs.request import Job
from odonata.results import job_table as accounts
from odonata.results.derived import summary
from odonata.results.execution import Finished, Request, execute
from odonata.results.performance import job_records, performance
from odonata.results.run import Run
from odonata.results.run import open as open_run
from pdes.errors import Refused
from pdes.stream import RUNNING
from policies.allocation import ALLOCATIONS, allocation
from topology import Dragonfly
from topology.presets import PRESETS

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


def refusal(text: str, *changes: str) -> list[str]:
    with pytest.raises(Refused) as refused:
        parse(text, "demo.toml", changes)
    return str(refused.value).split("\n")


# -- what a file makes


def test_a_file_makes_jobs() -> None:
    text = """
        machine.preset = "kim-72"
        [[jobs]]
        name = "fft"
        count = 2
        nodes = 8
        pattern = "fft3d"
        message = "4 KiB"
        grid = [4, 4]
        [[jobs]]
        nodes = 2
        compute = "1 us"
        arrival = "3 us"
        iterations = 7
        mapping = [3, 1, 0, 2]
        exchange = "pairwise"
        [scheduler]
        allocation = "rdn"
        order = "small-first"
        launch = "1 us"
        [nic]
        send = "10 ns"
    """
    fft = Job(8, "fft3d", 4096, grid=(4, 4))
    other = Job(2, compute_ps=US, arrival_ps=3 * US, iterations=7, mapping=(3, 1, 0, 2),
                exchange="pairwise")  # fmt: skip
    jobs = (replace(fft, name="fft 1"), replace(fft, name="fft 2"), other)
    made = parse(text, "x.toml")
    workload = Workload(jobs, "rdn", "small-first", launch_ps=US, send_ps=10_000)
    assert made.network == Network(PRESETS["kim-72"].machine, workload=workload)
    assert made.end is None
    assert parse(text, "x.toml", ["run.duration=5 us"]).end == 5 * US
    assert json.loads(made.network.parameters()["workload.jobs"])[2]["nodes"] == 2


def test_changes_name_a_job_by_its_place_in_the_file() -> None:
    text = "[[jobs]]\nnodes = 4\n[[jobs]]\nnodes = 8"
    for change in ("jobs[1].nodes=32", "jobs.1.nodes=32"):
        made = parse(text, "x.toml", [change, "jobs[0].mapping=linear", "jobs[0].name=7",
                                      "scheduler.allocation=rdn"])  # fmt: skip
        assert [job.nodes for job in made.network.workload.jobs] == [4, 32]
        assert made.network.workload.jobs[0].mapping == "linear"
        assert made.network.workload.jobs[0].name == "7"
        assert made.network.workload.allocation == "rdn"
    assert refusal(text, "jobs[2].nodes=1") == [
        "--set jobs[2].nodes=1: which job? demo.toml has jobs[0] to jobs[1], as jobs[1].nodes"
    ]
    assert refusal("", "jobs[0].nodes=1") == ["--set jobs[0].nodes=1: demo.toml has no [[jobs]]"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("pattern = 'fft3'", 'jobs[0].pattern = "fft3": one of all-to-all, broadcast, '
         "tree-broadcast, fft3d, halo2d, halo3d, halo3d26, allreduce, random-ring, incast, "
         "uniform, permutation; did you mean fft3d?"),
        ("patern = 'fft3d'", "jobs[0].patern: unknown; did you mean jobs[0].pattern?"),
        ("colour = 3", "jobs[0].colour: unknown; one of name, nodes, count, pattern, message, "
         "iterations, exchange, compute, arrival, grid, mapping"),
        ("grid = [3, 3]\npattern = 'halo2d'",
         "jobs[0].grid = [3, 3]: it has 9 places for the job's 8 tasks (4 nodes, 2 tasks each)"),
        ("grid = [8]", "jobs[0].grid = [8]: all-to-all is on no grid; fft3d, halo2d, halo3d, "
                       "halo3d26 are"),
        ("grid = 3", "jobs[0].grid = 3: auto or a list of whole numbers, as [4, 4]"),
        ("mapping = 'liner'", 'jobs[0].mapping = "liner": random, linear or a list of whole '
                              "numbers, as [4, 4]; did you mean linear?"),
        ("mapping = [0, 0]", "jobs[0].mapping = [0, 0]: each of the job's 8 places once, 0 .. 7"),
        ("message = 1024", 'jobs[0].message = 1024: a bare number; a size with its unit, as '
                           '"4 KiB"'),
        ("iterations = 0", "jobs[0].iterations = 0: at least 1"),
        ("count = 0", "jobs[0].count = 0: at least 1"),
        ("count = 100_001", "jobs[0].count = 100001: 100,001 jobs in all; at most 100,000"),
        ('name = "a\\tb"', 'jobs[0].name = "a\\tb": at most 100 characters that can be printed'),
        ("[scheduler]\nallocation = 'levelspred'", 'scheduler.allocation = "levelspred": one of '
         f"{', '.join(ALLOCATIONS)}; did you mean level-spread?"),
        ("[scheduler]\norder = 'sjf'",
         'scheduler.order = "sjf": one of fcfs, small-first, large-first'),
        ("[scheduler]\ntasks_per_node = 0", "scheduler.tasks_per_node = 0: 1 .. 128"),
        ("[nic]\nsend = '1e4 s'", 'nic.send = "1e4 s": 0 .. 1,000 s'),
        ("[nic]\nsned = '1 s'", "nic.sned: unknown; did you mean nic.send?"),
        ("[traffic]\nload = 0.3", "traffic.load = 0.3: there are [[jobs]], and what they send is "
         "all the traffic there is: leave out [traffic], or them"),
        ("[traffic]", "[traffic]: there are [[jobs]], and what they send is all the traffic there "
                      "is: leave out [traffic], or them"),
    ],
)  # fmt: skip
def test_a_problem_is_told_with_file_key_value_and_rule(text: str, line: str) -> None:
    assert refusal(f"[[jobs]]\nnodes = 4\n{text}") == [f"demo.toml: {line}"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[[jobs]]", "jobs[0].nodes: must be given: how many it needs"),
        ("jobs = 3", "jobs = 3: [[jobs]], one for each job"),
        ("jobs = []", "jobs = a list: [[jobs]], one for each job"),
        ("[jobs]\nnodes = 3", "jobs = a table: [[jobs]], one for each job"),
        ("[[job]]\nnodes = 3", "[[job]]: unknown; did you mean [[jobs]]?"),
        ("[scheduler]\norder = 'fcfs'\nlaunch = '1 us'",
         'scheduler.order = "fcfs": there are no [[jobs]] that it could be about'),
        ("run.duration = 'done'", 'run.duration = "done": nodes would never stop sending: a time, '
                                  "or traffic.messages, or traffic.stop"),
        ("[[jobs]]\nnodes = 1\n[scheduler]\ntasks_per_node = 1", "jobs[0].nodes = 1: all-to-all "
         "needs two tasks to talk to each other, and 1 a node make 1"),
        ("[[jobs]]\nnodes = 2000\ncount = 3", "jobs[0].nodes = 2000: the machine has 1,056"),
    ],
)  # fmt: skip
def test_jobs_that_cannot_be_are_told_once(text: str, line: str) -> None:
    assert refusal(text) == [f"demo.toml: {line}"]


def test_everything_that_is_wrong_is_told_at_once_in_the_order_of_the_file() -> None:
    text = """
        [machine]
        groups = 40
        [[jobs]]
        nodes = 4
        pattern = "fft"
        [[jobs]]
        message = "0 B"
        compute = 3
        [[jobs]]
        nodes = 5000
        count = 2
        [traffic]
        load = 0.2
        hot = 3
        [scheduler]
        order = "best"
        [run]
        seed = -1
    """
    told = refusal(text, "jobs[2].iterations=0", "jobs[7].nodes=1")
    named = [line.removeprefix("demo.toml: ").split(" ")[0] for line in told]
    assert [name.rstrip(":") for name in named] == [
        "--set", "machine.groups", "traffic.load", "jobs[0].pattern", "jobs[1].nodes",
        "jobs[1].message", "jobs[1].compute", "--set", "scheduler.order", "run.seed",
    ]  # fmt: skip


def test_a_policy_that_was_registered_can_be_named() -> None:
    @allocation("ours-alone", about="the first that are idle", source="a test")
    def first(sight: Any, job: Any, rng: Any) -> Any:
        return sight.labels[: job.nodes]

    try:
        made = parse("[[jobs]]\nnodes = 4\n[scheduler]\nallocation = 'ours-alone'", "x.toml")
        assert made.network.workload.allocation == "ours-alone"
        assert parse(made.to_toml(), "x.toml") == made
    finally:
        del ALLOCATIONS["ours-alone"]


def test_the_file_in_the_documentation_is_one() -> None:
    text = (DOC.parent / "jobs.md").read_text()
    made = parse(text.split("```toml\n")[1].split("```")[0], "x.toml")
    assert [job.name for job in made.network.workload.jobs] == ["ocean 1", "ocean 2", "ocean 3", ""]


names = st.sampled_from(["", "", "a", "a 1", "a 2", "b 1", "é"])
jobs = st.builds(
    Job, st.integers(1, 9), st.sampled_from(PATTERNS), st.integers(1, 2**39), st.integers(1, 99),
    compute_ps=st.integers(0, 10**12), arrival_ps=st.integers(0, 2**60), name=names,
    mapping=st.sampled_from(["random", "linear"]),
)  # fmt: skip
few = jobs | st.builds(Job, st.just(2), name=names)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(few, min_size=1, max_size=9), st.integers(2, 5), st.integers(0, 10**15),
       st.none() | st.integers(10**9, 2**61))  # fmt: skip
def test_an_experiment_is_the_same_after_writing_and_reading(
    some: list[Job], tasks: int, launch: int, end: int | None
) -> None:
    some[0] = Job(some[0].nodes, mapping=tuple(reversed(range(some[0].nodes * tasks))))
    workload = Workload(tuple(some), "rdg", "large-first", tasks, launch, 1, 2, 3)
    network = Network(Dragonfly(2, 4, 2, 9), routing="par", seed=5, workload=workload)
    metrics = Metrics(max(10**8, (end or 0) // 9), True, False, 2.0)
    made = Experiment("x", "", network, end, "window", None, metrics)
    text = made.to_toml()
    assert parse(text, "x.toml") == made
    assert parse(text, "x.toml").to_toml() == text
    assert sum(count for _, count in folded(workload.jobs)) == len(some)


def test_jobs_that_are_alike_are_written_once() -> None:
    made = parse("[[jobs]]\nname = 'a'\nnodes = 2\ncount = 50_000", "x.toml")
    text = made.to_toml()
    assert len(text) < 3000
    assert "[traffic]" not in text
    assert parse(text, "x.toml") == made


values = st.one_of(
    st.integers(-5, 2**70).map(str), st.booleans().map(lambda flag: str(flag).lower()),
    st.sampled_from(['"1 us"', '"4 KiB"', '"random"', '"halo3d"', '"auto"', "[]", "[4, 2]", "{}",
                     "[1.5]", "nan", '"x"', "[[1]]"]),
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from([key.name for key in keys.JOB_KEYS]), values,
                                max_size=5), min_size=1, max_size=3))  # fmt: skip
def test_whatever_jobs_hold_they_are_refused_in_words_or_right(
    tables: list[dict[str, str]],
) -> None:
    text = "".join("[[jobs]]\n" + "".join(f"{k} = {v}\n" for k, v in table.items())
                   for table in tables)  # fmt: skip
    try:
        made = parse(text, "demo.toml")
    except Refused as refused:
        lines = str(refused).split("\n")
        assert all(line.startswith("demo.toml: jobs[") for line in lines)
        assert len(lines) == len(set(lines))
    else:
        assert parse(made.to_toml(), "demo.toml") == made


# -- what it leaves


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Finished]:
    home = tmp_path_factory.mktemp("runs")
    file = home / "queue.toml"
    file.write_text(QUEUE)
    kept: dict[str, Finished] = {}

    def made(name: str, *changes: str) -> Finished:
        if name not in kept:
            done = execute(Request(file, home / name, changes, progress=False))
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
    assert [it.name for it in queue.jobs] == ["fft 1", "fft 2", "job 2", "late <i>"]
    assert all(it.end_ps for it in queue.jobs)
    assert opened.complete
    last = accounts.makespan_ps(queue.jobs)
    assert last
    assert queue.result.time_ps == last <= opened.reached_ps == int(opened.time[-1])
    assert summary(opened) == performance(opened.network, queue.result)


def test_what_is_on_disk_says_what_became_of_each_job(queue: Finished, opened: Run) -> None:
    assert opened.job_records == queue.jobs == job_records(opened.network, queue.result)
    told = opened.jobs
    for i, it in enumerate(queue.jobs):
        row = told.isel(job=i)
        assert (str(row["name"].item()), int(row.nodes)) == (it.name, it.nodes)
        for name in ("arrival_ps", "start_ps", "end_ps", "waiting_ps", "communication_ps"):
            assert int(row[name]) == getattr(it, name)
        assert len(set(it.labels)) == it.nodes
    first, second, third, _ = queue.jobs
    assert not set(first.labels) & set(second.labels)
    ends = sorted((first.end_ps or 0, second.end_ps or 0))
    assert third.start_ps is not None
    assert ends[0] < third.start_ps  # 72 nodes: it had to wait


def test_a_run_that_goes_on_tells_who_waits_and_who_runs(queue: Finished, tmp_path: Path) -> None:
    """Cut where only the first two run: 72 nodes are not enough for the third."""
    for samples, words in ((1, "1 yet to come, 1 queued, 2 running"), (0, None)):
        died = shutil.copytree(queue.out, tmp_path / f"died-{samples}")
        (died / "run.h5").unlink()
        with h5py.File(died / "rank-0000.h5", "r+") as file:
            file["time_ps"].resize(samples, 0)
            file["status"][()] = RUNNING
        with open_run(died) as run:
            assert (run.jobs.end_ps == -1).all()
            assert (run.jobs.communication_ps == -1).all()
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
    assert [it.end_ps for it in cut.jobs] == [None] * 4
    assert cut.jobs[0].start_ps == 2 * US
    with open_run(cut.out) as run:
        assert run.reached_ps == 3 * US
        assert run.job_records == cut.jobs
    rows = [*csv.DictReader(StringIO((cut.out / "jobs.csv").read_text()))]
    states = [row["final_state"] for row in rows]
    assert states == ["RUNNING", "RUNNING", "SUBMITTED", "NOT_SUBMITTED"]
    assert [row["success"] for row in rows] == ["0"] * 4
    assert rows[0]["finish_time"] == rows[2]["allocated_resources"] == ""


def test_a_table_of_jobs_has_batsims_columns(queue: Finished) -> None:
    rows = [*csv.DictReader(StringIO((queue.out / "jobs.csv").read_text()))]
    for row, it in zip(rows, queue.jobs, strict=True):
        assert (row["job_id"], row["success"]) == (str(it.number), "1")
        assert int(row["requested_number_of_resources"]) == it.nodes
        finish, start, submitted, took, waited, round_trip = (
            round(float(row[name]) * 1e12)
            for name in ("finish_time", "starting_time", "submission_time", "execution_time",
                         "waiting_time", "turnaround_time")
        )  # fmt: skip
        assert (submitted, start, finish) == (it.arrival_ps, it.start_ps, it.end_ps)
        assert (took, waited) == (it.communication_ps, it.waiting_ps)
        assert round_trip == finish - submitted
        assert float(row["stretch"]) == pytest.approx(round_trip / took, abs=1e-6)
        nodes = [n for part in row["allocated_resources"].split(" ")
                 for first, _, last in [part.partition("-")]
                 for n in range(int(first), int(last or first) + 1)]  # fmt: skip
        assert nodes == sorted(it.labels)


def test_ranges_are_written_as_batsim_writes_them() -> None:
    record = JobRecord(0, "x", 5, "incast", 0, 1, 10**12, (8, 2, 1, 0, 3))
    line = accounts.to_csv([record], "w", 2 * 10**12).splitlines()[1]
    assert line.endswith(",0-3 8,x")
    assert "1.000000000000" in line


def test_a_table_for_people_and_json_have_the_jobs(queue: Finished) -> None:
    told = json.loads(to_json(queue))
    assert [job["name"] for job in told["jobs"]] == [it.name for it in queue.jobs]
    assert told["jobs"][0]["labels"] == list(queue.jobs[0].labels)
    assert told["jobs"][0]["groups"] == len({label // 8 for label in queue.jobs[0].labels})
    assert "offered" not in told
    console = Console(width=100, file=StringIO())
    console.print(table(queue), accounts.table(queue.experiment.network.machine, queue.jobs))
    said = console.file.getvalue()  # type: ignore[attr-defined]
    for words in ("4 of 4", "communication", "halo3d26", "late <i>"):
        assert words in said
    assert "throughput" not in said
    many = [queue.jobs[0]] * 30
    console.print(accounts.table(queue.experiment.network.machine, many))
    assert "and 10 more" in console.file.getvalue()  # type: ignore[attr-defined]


def test_the_documented_jobs_are_what_is_written(opened: Run) -> None:
    rows = re.findall(
        r"^\| `((?:jobs|starts|ends)/\w+)` \| ([\w, ]+) \| (\w+) \| (\w*) ?\|",
        DOC.read_text(),
        re.M,
    )
    documented = {name: (dims, unit, kind) for name, dims, unit, kind in rows}
    written = {}
    for group in ("jobs", "starts", "ends"):
        for name, dataset in opened.file[group].items():
            dims = ", ".join(dim.label for dim in dataset.dims)
            kind = str(dataset.attrs.get("kind", "")).split(" ")[0]
            written[f"{group}/{name}"] = (dims, dataset.attrs["unit"], kind)
    assert documented == written


def test_a_run_without_jobs_says_so(opened: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    other = parse("", "x.toml").network
    fresh = open_run(opened.path)
    monkeypatch.setattr(Run, "network", other)
    with pytest.raises(Refused, match="ran no jobs"):
        _ = fresh.jobs
    fresh.close()


# -- ranks


def test_one_and_three_ranks_leave_the_same_bits(
    odonata: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "queue.toml").write_text(QUEUE)
    for ranks in (1, 3):
        done = odonata("run", "queue.toml", "-o", f"r{ranks}", "--json", ranks=ranks)
        assert done.returncode == 0, done.stderr
    same = odonata("diff", "r1", "r3")
    assert same.stdout.startswith("the same, bit for bit: 40 datasets"), same.stdout
    texts = [(tmp_path / name / "jobs.csv").read_text() for name in ("r1", "r3")]
    assert texts[0] == texts[1]
    with h5py.File(tmp_path / "r3" / "rank-0002.h5") as file:
        assert len(file["starts/job"]) == len(file["jobs/name"]) == 0
    with h5py.File(tmp_path / "r3" / "run.h5") as file:
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
    told = json.loads(CliRunner().invoke(cli, [*words, "--json"]).stdout)
    assert told["differences"] == {"scheduler.allocation": ["level-spread", "rdn"]}
    for run, done in zip(told["runs"], (queue, other), strict=True):
        times = [it.communication_ps or 0 for it in done.jobs]
        assert run["figures"]["jobs.communication_us"] == pytest.approx(np.mean(times) / 1e6)
        assert run["figures"]["jobs.communication_us.fft3d"] == pytest.approx(
            np.mean(times[:2]) / 1e6
        )
        assert "offered" not in run["figures"]
    shown = CliRunner().invoke(cli, words).stdout
    assert "communication, mean (us)" in shown
    assert "saturated" not in shown


def test_a_directory_says_with_which_jobs_it_was_begun(queue: Finished) -> None:
    request = Request(queue.out.parent / "queue.toml", queue.out, ["jobs[0].nodes=31"], resume=True)
    with pytest.raises(Refused, match=r"jobs\[0\].nodes = 32, not 31"):
        execute(request)


def test_what_is_ready_made_runs_jobs() -> None:
    home = Path(__file__).parents[2] / "scripts" / "experiments"
    for name in ("jobs", "queue"):
        made = load(home / f"{name}.toml")
        assert made.network.jobs
        assert made.end is None


def test_a_run_that_replaces_another_takes_its_report_away_and_nothing_else(tmp_path: Path) -> None:
    from odonata.commands.report import write
    from odonata.commands.run import forget_report

    out = tmp_path / "out"
    file = tmp_path / "x.toml"
    file.write_text(
        'machine.preset = "kim-72"\n[network]\nrouting = "adaptive"\n[[jobs]]\nnodes = 4\n'
    )
    execute(Request(file, out))
    write(out, None, "html")
    mine, ours = out / "figures" / "mine.png", out / "figures" / "timeline.png"
    mine.parent.mkdir()
    for path in (mine, ours):
        path.write_bytes(b"")
    execute(Request(file, out, overwrite=True), forget_report)
    assert not (out / "report.html").exists()
    assert list(mine.parent.iterdir()) == [mine]
