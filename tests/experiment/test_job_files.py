"""Jobs in an experiment file: what they make, and what is wrong with them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from files import refusal
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odonata.agents.network import Network
from odonata.agents.patterns import PATTERNS
from odonata.agents.workload import Workload
from odonata.experiment.experiment import Experiment, folded, of
from odonata.experiment.reading import parse
from odonata.experiment.sections import (
    Metrics,
    NetworkSettings,
    NicSettings,
    RunSettings,
    SchedulerSettings,
)
from odonata.jobs.request import Job
from pdes.errors import Refused
from policies.allocation import ALLOCATIONS, allocation
from policies.register import OF_YOUR_OWN
from policies.scheduling import SCHEDULINGS
from topology import Dragonfly
from topology.presets import PRESETS

US = 10**6
DOC = Path(__file__).parents[2] / "docs" / "jobs.md"


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
    assert made.model() == Network(PRESETS["kim-72"].machine, workload=workload)
    assert made.run.end is None
    assert parse(text, "x.toml", ["run.duration=5 us"]).run.end == 5 * US
    assert json.loads(made.model().parameters()["workload.jobs"])[2]["nodes"] == 2


def test_changes_name_a_job_by_its_place_in_the_file() -> None:
    text = "[[jobs]]\nnodes = 4\n[[jobs]]\nnodes = 8"
    for change in ("jobs[1].nodes=32", "jobs.1.nodes=32"):
        made = parse(text, "x.toml", [change, "jobs[0].mapping=linear", "jobs[0].name=7",
                                      "scheduler.allocation=rdn"])  # fmt: skip
        assert [job.nodes for job in made.jobs] == [4, 32]
        assert made.jobs[0].mapping == "linear"
        assert made.jobs[0].name == "7"
        assert made.scheduler.allocation == "rdn"
    assert refusal(text, "jobs[2].nodes=1") == [
        "--set jobs[2].nodes=1: which job? demo.toml has jobs[0] to jobs[1], as jobs[1].nodes"
    ]
    assert refusal("", "jobs[0].nodes=1") == ["--set jobs[0].nodes=1: demo.toml has no [[jobs]]"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("pattern = 'fft3'", 'jobs[0].pattern = "fft3": one of all-to-all, broadcast, '
         "tree-broadcast, fft3d, halo2d, halo3d, halo3d26, allreduce, random-ring, incast, "
         f"uniform, permutation, halo4d; did you mean fft3d?{OF_YOUR_OWN}"),
        ("patern = 'fft3d'", "jobs[0].patern: unknown; did you mean jobs[0].pattern?"),
        ("colour = 3", "jobs[0].colour: unknown; one of name, nodes, count, pattern, message, "
         "iterations, exchange, compute, arrival, grid, mapping, requested, user, "
         "project, application, profile, on, sensitive, background, stages, number"),
        ("grid = [3, 3]\npattern = 'halo2d'",
         "jobs[0].grid = [3, 3]: it has 9 places for the job's 8 tasks (4 nodes, 2 tasks each)"),
        ("grid = [8]", "jobs[0].grid = [8]: all-to-all is on no grid; fft3d, halo2d, halo3d, "
                       "halo3d26, halo4d are"),
        ("grid = 3", "jobs[0].grid = 3: auto or a list of whole numbers, as [4, 4]"),
        ("mapping = 'liner'", 'jobs[0].mapping = "liner": random, linear or a list of whole '
                              "numbers, as [4, 4]; did you mean linear?"),
        ("mapping = [0, 0]", "jobs[0].mapping = [0, 0]: each of the job's 8 places once, 0 .. 7"),
        ("message = 1024", 'jobs[0].message = 1024: a bare number; a size with its unit, as '
                           '"4 KiB"'),
        ("iterations = 0", "jobs[0].iterations = 0: 1 .. 2**23 - 1"),
        ("count = 0", "jobs[0].count = 0: 1 .. 100,000"),
        ("count = 100_001", "jobs[0].count = 100001: 1 .. 100,000"),
        ('name = "a\\tb"', 'jobs[0].name = "a\\tb": at most 100 characters that can be printed'),
        ("[scheduler]\nallocation = 'levelspred'", 'scheduler.allocation = "levelspred": one of '
         f"{', '.join(ALLOCATIONS)}; did you mean level-spread?{OF_YOUR_OWN}"),
        ("[scheduler]\norder = 'sjf'",
         f'scheduler.order = "sjf": one of {", ".join(SCHEDULINGS)}; did you mean spf?'
         "; one of your own: --plugin FILE, or plugins = [...]"),
        ("[scheduler]\ntasks_per_node = 0", "scheduler.tasks_per_node = 0: 1 .. 128"),
        ("[nic]\nsend = '1e4 s'", 'nic.send = "1e4 s": 0 .. 1,000 s'),
        ("[nic]\nsned = '1 s'", "nic.sned: unknown; did you mean nic.send?"),
        ("[[traffic]]\nstop = '1 us'\n[[traffic]]\nload = 3\nmessages = 1",
         "traffic[1].load = 3: above 0, at most 1 (of a node's link)"),
    ],
)  # fmt: skip
def test_a_problem_is_told_with_file_key_value_and_rule(text: str, line: str) -> None:
    assert refusal(f"[[jobs]]\nnodes = 4\n{text}") == [f"demo.toml: {line}"]


def test_traffic_that_never_stops_ends_with_the_jobs_beside_it() -> None:
    made = parse("[[jobs]]\nnodes = 4\n[traffic]\nload = 0.1", "demo.toml")
    assert made.run.end is None
    assert not made.traffic[0].ends


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
         "needs two tasks that communicate, and 1 per node make 1"),
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
    problems = refusal(text, "jobs[2].iterations=0", "jobs[7].nodes=1")
    named = [line.removeprefix("demo.toml: ").split(" ")[0] for line in problems]
    assert [name.rstrip(":") for name in named] == [
        "--set", "machine.groups", "traffic.hot", "jobs[0].pattern", "jobs[1].nodes",
        "jobs[1].message", "jobs[1].compute", "--set", "scheduler.order", "run.seed",
    ]  # fmt: skip


def test_a_policy_that_was_registered_can_be_named() -> None:
    @allocation("ours-alone", about="the first that are idle", source="a test")
    def first(sight: Any, job: Any, rng: Any) -> Any:
        return sight.labels[: job.nodes]

    try:
        made = parse("[[jobs]]\nnodes = 4\n[scheduler]\nallocation = 'ours-alone'", "x.toml")
        assert made.scheduler.allocation == "ours-alone"
        assert parse(made.to_toml(), "x.toml") == made
    finally:
        del ALLOCATIONS["ours-alone"]


def test_the_file_in_the_documentation_is_one() -> None:
    text = DOC.read_text()
    made = parse(text.split("```toml\n")[1].split("```")[0], "x.toml")
    assert [job.name for job in made.jobs] == ["ocean 1", "ocean 2", "ocean 3", ""]


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
    made = Experiment(
        "x",
        machine=Dragonfly(2, 4, 2, 9),
        network=NetworkSettings("par"),
        jobs=tuple(some),
        scheduler=SchedulerSettings("rdg", "large-first", tasks_per_node=tasks, launch_ps=launch),
        nic=NicSettings(send_ps=1, match_ps=2, host_ps=3, ejection=1e9, duplex="half"),
        run=RunSettings(end, seed=5),
        metrics=Metrics(max(10**8, (end or 0) // 9)),
    )
    text = made.to_toml()
    assert parse(text, "x.toml") == made
    assert parse(text, "x.toml").to_toml() == text
    assert sum(count for _, count in folded(made.jobs)) == len(some)


def test_jobs_that_are_alike_are_written_once() -> None:
    made = parse("[[jobs]]\nname = 'a'\nnodes = 2\ncount = 5_000", "x.toml")
    text = made.to_toml()
    assert len(text) < 3000
    assert "[traffic]" not in text
    assert parse(text, "x.toml") == made


values = st.one_of(
    st.integers(-5, 2**70).map(str), st.booleans().map(lambda flag: str(flag).lower()),
    st.sampled_from(['"1 us"', '"4 KiB"', '"random"', '"halo3d"', '"auto"', "[]", "[4, 2]", "{}",
                     "[1.5]", "nan", '"x"', "[[1]]"]),
)  # fmt: skip


tables_of_jobs = given(
    st.lists(st.dictionaries(st.sampled_from([key.name for key in of("jobs")]), values,
                             max_size=5), min_size=1, max_size=3))  # fmt: skip


@settings(max_examples=20, deadline=None)
@tables_of_jobs
def test_whatever_jobs_hold_they_are_refused_in_words_or_right(
    tables: list[dict[str, str]],
) -> None:
    assert_refused_in_words_or_right(tables)


@pytest.mark.long
@settings(max_examples=1000, deadline=None)
@tables_of_jobs
def test_whatever_jobs_hold_they_are_refused_in_words_or_right_at_length(
    tables: list[dict[str, str]],
) -> None:
    assert_refused_in_words_or_right(tables)


def assert_refused_in_words_or_right(tables: list[dict[str, str]]) -> None:
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
