"""Traffic and jobs are parts of an experiment: either, both, or several of each."""

from __future__ import annotations

import pytest
from files import conforms, refusal
from hypothesis import given, settings
from hypothesis import strategies as st

from odonata.agents.network import Network
from odonata.agents.traffic import Traffic
from odonata.experiment.experiment import Experiment
from odonata.experiment.reading import parse
from odonata.experiment.sections import RunSettings
from odonata.jobs.request import Job
from topology import Dragonfly

US = 10**6
BOTH = """
[[jobs]]
nodes = 8
[[jobs]]
nodes = 4
pattern = "incast"
requested = "1 ms"
user = "ann"
project = "climate"
application = "ocean"
[[traffic]]
load = 0.1
stop = "20 us"
[[traffic]]
pattern = "hotspot"
load = 0.05
messages = 3
"""


def test_jobs_and_several_kinds_of_traffic_make_one_network() -> None:
    made = parse(BOTH, "x.toml")
    hotspot = Traffic("hotspot", 0.05, messages=3)
    assert made.traffic == (Traffic(load=0.1, stop_ps=20 * US), hotspot)
    late = Job(4, "incast", requested_ps=10**9, user="ann", project="climate", application="ocean")
    assert made.jobs == (Job(8), late)
    network = made.model()
    assert (network.traffic, network.jobs) == (made.traffic, made.jobs)
    assert parse(made.to_toml(), "x.toml") == made
    assert made.run.end is None


@pytest.mark.parametrize(
    ("text", "traffics", "jobs"),
    [("", 1, 0), ("[traffic]", 1, 0), ("[[traffic]]\n[[traffic]]", 2, 0),
     ("[[jobs]]\nnodes = 2", 0, 1), ("[[jobs]]\nnodes = 2\n[traffic]\nmessages = 1", 1, 1)],
)  # fmt: skip
def test_without_traffic_there_is_the_usual_one_but_beside_jobs_there_is_none(
    text: str, traffics: int, jobs: int
) -> None:
    made = parse(text, "x.toml")
    assert (len(made.traffic), len(made.jobs)) == (traffics, jobs)


def test_one_kind_of_traffic_is_written_as_a_section_and_several_as_a_list() -> None:
    assert "[traffic]" in parse("[[traffic]]\nload = 0.2", "x.toml").to_toml()
    assert parse("[[traffic]]\n[[traffic]]", "x.toml").to_toml().count("[[traffic]]") == 2


def test_changes_name_a_kind_of_traffic_by_its_place() -> None:
    made = parse(BOTH, "x.toml", ["traffic[1].load=0.2", "traffic.0.hot=0.5"])
    assert (made.traffic[1].load, made.traffic[0].hot) == (0.2, 0.5)
    for text in ("[traffic]", "[[traffic]]", ""):
        for change in ("traffic.load=0.2", "traffic[0].load=0.2"):
            assert parse(text, "x.toml", [change]).traffic[0].load == 0.2
    beside = parse("[[jobs]]\nnodes = 2", "x.toml", ["traffic.messages=1"])
    assert len(beside.traffic) == 1
    assert refusal(BOTH, "traffic.load=0.2", "traffic[2].load=0.2") == [
        "--set traffic.load=0.2: which traffic? demo.toml has traffic[0] to traffic[1], as "
        "traffic[1].load",
        "--set traffic[2].load=0.2: which traffic? demo.toml has traffic[0] to traffic[1], as "
        "traffic[1].load",
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[[traffic]]\n[[traffic]]\nload = 0", "traffic[1].load = 0: above 0, at most 1 (of a "
         "node's link)"),
        ("[[traffic]]\n[[traffic]]\nlod = 0", "traffic[1].lod: unknown; did you mean "
         "traffic[1].load?"),
        ("[[traffic]]\n[[traffic]]\nwarmup = '1 us'", 'traffic[1].warmup = "1 us": one for all: '
         "the same warmup and measure in every traffic"),
        ("traffic = []", "traffic = a list: [[traffic]], one for each kind of it"),
        ("traffic = [1]", "traffic[0] = 1: a table, [[traffic]]"),
        ("traffic = 1", "traffic = 1: a section, [traffic]"),
        ("run.duration = 'done'\n[[traffic]]\nmessages = 1\n[[traffic]]",
         'run.duration = "done": nodes would never stop sending: a time, or traffic[1].messages, '
         "or traffic[1].stop"),
        ("run.dedicated_scheduler = true", "run.dedicated_scheduler = true: there are no [[jobs]] "
         "that it could schedule"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_one_of_several_is_told_of_that_one(text: str, line: str) -> None:
    assert refusal(text) == [f"demo.toml: {line}"]


def test_the_scheduler_may_have_rank_0_to_itself() -> None:
    made = parse("[[jobs]]\nnodes = 2", "x.toml", ["run.dedicated_scheduler=true"])
    assert made.model().dedicated_scheduler
    assert parse(made.to_toml(), "x.toml") == made


def test_an_experiment_can_be_put_together_in_python() -> None:
    small = Dragonfly(2, 4, 2, 9)
    made = Experiment("mine", machine=small, jobs=(Job(4),), run=RunSettings(seed=3))
    assert made.model() == Network(small, (), workload=made.model().workload, seed=3)
    assert made.model() is made.model()
    assert Experiment("plain").traffic == (Traffic(),)
    assert Network(small, Traffic()).traffic == (Traffic(),)


traffics = st.builds(Traffic, load=st.floats(0.01, 1), stop_ps=st.integers(1, 10**9))


@settings(max_examples=30, deadline=None)
@given(st.lists(traffics, max_size=3), st.lists(st.builds(Job, st.integers(1, 9)), max_size=3))
def test_any_parts_are_the_same_after_writing_and_reading(
    some: list[Traffic], jobs: list[Job]
) -> None:
    made = Experiment("x", machine=Dragonfly(2, 4, 2, 9), traffic=tuple(some), jobs=tuple(jobs))
    again = parse(made.to_toml(), "x.toml")
    assert again == made
    conforms({"name": "x", "traffic": [{"load": 0.5}, {}], "jobs": [{"nodes": 2}]})
