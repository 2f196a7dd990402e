"""The points of a sweep: which there are, what makes two of them the same, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from odonata.sweeps.outcomes import simulate
from odonata.sweeps.plan import Plan, planned
from pdes.errors import Fault, Refused

FILE = """
[machine]
preset = "kim-72"
[traffic]
load = 0.2
[run]
duration = "1 us"
seed = 7
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(FILE)
    return path


def keys(plan: Plan) -> list[str]:
    return [point.key for point in plan.points]


def test_sweeps_that_were_begun_before_a_key_came_go_on(tmp_path: Path) -> None:
    """Points are known by what they were known by at 3405e55."""
    path = tmp_path / "old.toml"
    for text, key in (
        ('machine.preset = "kim-72"\nnetwork.routing = "adaptive"\n[[jobs]]\nname = "ring"\n'
         'nodes = 20\ncount = 2\npattern = "random-ring"\nmessage = "8 KiB"\n',
         "2fd79c436a0440d46dc8"),
        ('fidelity = "job"\n[trace]\nmodel = "lublin"\njobs = 50\nnodes = 16\n',
         "f745e77d8a7030fa8bd4"),
    ):  # fmt: skip
        path.write_text(text)
        assert keys(planned(path)) == [key]
        more = "jobs[0].number=5" if "[[jobs]]" in text else "trace.warmup=1 h"
        assert keys(planned(path, [more])) != [key]


def test_every_combination_has_every_seed(file: Path) -> None:
    plan = planned(file, ["network.routing=minimal,valiant", "traffic.load=0.1,0.2,0.3"],
                   wanted={"seeds": 2})  # fmt: skip
    assert len(plan.points) == 2 * 3 * 2 == len(set(keys(plan)))
    assert plan.seeds == (7, 8)
    assert [str(point) for point in plan.points[:3]] == [
        "network.routing=minimal, traffic.load=0.1, seed 7",
        "network.routing=minimal, traffic.load=0.1, seed 8",
        "network.routing=minimal, traffic.load=0.2, seed 7",
    ]
    made = plan.points[-1].experiment()
    assert (made.network.routing, made.traffic[0].load, made.run.seed) == ("valiant", 0.3, 8)
    assert [point.experiment().network.routing for point in plan.variants] == ["minimal", "valiant"]


def test_a_sweep_has_what_the_files_that_it_includes_vary(file: Path, tmp_path: Path) -> None:
    file.write_text(FILE + '[sweep]\nseeds = 2\ntraffic.load = [0.1, 0.2]\nplot = "a:b"\n')
    more = tmp_path / "more.toml"
    more.write_text(
        'include = "mine.toml"\n[sweep]\nseeds = 3\nnetwork.routing = ["minimal", "par"]'
    )
    plan = planned(more)
    assert [axis.name for axis in plan.axes] == ["traffic.load", "network.routing"]
    assert (plan.seeds, plan.wanted.plot) == ((7, 8, 9), "a:b")
    more.write_text('include = "mine.toml"\n[sweep]\ntraffic.load = [0.4]')
    assert [axis.labels for axis in planned(more).axes] == [("0.4",)]
    more.write_text('include = "nowhere.toml"')
    with pytest.raises(Refused, match=r"nowhere.toml: No such file"):
        planned(more)


def test_the_command_line_names_labels_of_an_axis_of_the_file(file: Path) -> None:
    file.write_text(
        FILE
        + """
[sweep.how]
slow = { "traffic.load" = 0.1 }
usual = {}
fast = { "traffic.load" = 0.5 }
"""
    )
    (axis,) = planned(file, ["how=fast"]).axes
    assert axis.labels == ("fast",)
    (axis,) = planned(file, ["how=fast,slow"]).axes
    assert axis.labels == ("slow", "fast")
    assert [it.experiment().traffic[0].load for it in planned(file, ["how=fast"]).points] == [0.5]
    with pytest.raises(Refused, match="--set how=quick: one of slow, usual, fast"):
        planned(file, ["how=quick"])


def test_labels_are_named_as_they_are_written(file: Path) -> None:
    file.write_text(
        FILE
        + """
[sweep.mode]
"a,b" = { "traffic.load" = 0.1 }
"1e3" = { "traffic.load" = 0.2 }
plain = {}
"""
    )

    def chosen(*changes: str) -> tuple[str, ...]:
        (axis,) = planned(file, changes).axes
        return axis.labels

    assert chosen("mode=a,b") == ("a,b",)
    assert chosen('mode="a,b"') == ("a,b",)
    assert chosen("mode=1e3,plain") == ("1e3", "plain")
    assert chosen('mode="plain","a,b"') == ("a,b", "plain")
    assert chosen("mode=plain", "mode=1e3") == ("1e3",)


def test_a_key_that_is_set_twice_is_refused(file: Path) -> None:
    file.write_text(FILE + '[sweep.mode]\nslow = { "traffic.load" = 0.1 }\nusual = {}\n')
    for change in ("traffic.load=0.3", "traffic.load=0.3,0.4"):
        with pytest.raises(Refused, match=r"traffic.load: .* sets it, and so does"):
            planned(file, [change])
    assert len(planned(file, ["traffic.load=0.3", "mode=usual"]).points) == 1


def test_how_many_seeds_and_which_are_not_both_asked_for(file: Path) -> None:
    with pytest.raises(Refused, match="which seeds, or how many"):
        planned(file, ["run.seed=3,7"], wanted={"seeds": 10})
    file.write_text(FILE + "[sweep]\nrun.seed = [3, 7]")
    assert planned(file).seeds == (3, 7)
    assert planned(file, wanted={"seeds": 2}).seeds == (7, 8)
    file.write_text(FILE + "[sweep.who]\na = { 'run.seed' = 3 }\nb = {}")
    with pytest.raises(Refused, match=r"who: run.seed cannot be changed with other keys"):
        planned(file)


def test_seeds_can_be_named(file: Path) -> None:
    assert planned(file, ["run.seed=3,9"]).seeds == (3, 9)
    assert planned(file, ["run.seed=3"], wanted={"seeds": 2}).seeds == (3, 4)
    with pytest.raises(Refused, match="whole numbers"):
        planned(file, ["run.seed=3,x"])


def test_the_command_line_replaces_what_the_file_varies(file: Path) -> None:
    file.write_text(FILE + "[sweep]\nseeds = 3\ntraffic.load = [0.1, 0.2]\n")
    plan = planned(file)
    assert (len(plan.points), plan.axes[0].labels) == (6, ("0.1", "0.2"))
    assert planned(file, ["traffic.load=0.5,0.6,0.7"]).axes[0].labels == ("0.5", "0.6", "0.7")
    assert planned(file, ["traffic.load=0.5"]).axes == ()
    assert len(planned(file, wanted={"seeds": 1}).points) == 2


def test_a_point_is_known_by_what_decides_its_outcome_and_nothing_else(file: Path) -> None:
    first = keys(planned(file))
    file.write_text("about = 'in other words'\n" + FILE + "[metrics]\ninterval = '50 ns'\n")
    assert keys(planned(file)) == first
    assert keys(planned(file, ["run.protocol=null", "name=other"])) == first
    assert keys(planned(file, ["traffic.load=0.200"])) == first
    assert keys(planned(file, ["traffic.load=0.21"])) != first
    assert keys(planned(file, ["run.seed=8"])) != first


def test_combinations_that_come_to_the_same_are_one_simulation(file: Path) -> None:
    file.write_text(FILE + "[sweep.how]\na = { traffic.load = 0.2 }\nb = {}\n")
    plan = planned(file)
    assert (len(plan.points), len(set(keys(plan)))) == (2, 1)


def test_a_point_depends_on_the_contents_of_the_files_that_it_names(tmp_path: Path) -> None:
    trace, file = tmp_path / "trace.swf", tmp_path / "jobs.toml"
    line = "{} {} 0 {} 4 -1 -1 4 60 -1 1 1 1 1 1 -1 -1 -1\n"
    trace.write_text("; MaxNodes: 8\n" + line.format(1, 0, 30))
    file.write_text('fidelity = "job"\ntrace.file = "trace.swf"\ntrace.nodes = 8\n')
    before = keys(planned(file))
    assert keys(planned(file)) == before
    other = tmp_path / "other.swf"
    other.write_text("; MaxNodes: 8\n" + line.format(1, 0, 31))
    assert keys(planned(file, ["trace.file=other.swf"])) != before


LINE = "1 0 -1 10 2 -1 -1 2 10 -1 1 -1 -1 -1 -1 -1 -1 -1\n"


@pytest.mark.parametrize(
    ("jobs", "changes", "seeded"),
    [
        ('file = "trace.swf"', ("scheduler.order=fcfs,easy",), False),
        ('file = "trace.swf"', ("machine.preset=kim-72", "scheduler.allocation=simple,rdn"), None),
        ('file = "trace.swf"', ("power.policy=none",), None),
        ('model = "lublin"', ("trace.jobs=9",), True),
        ('model = "lublin"', ("trace.jobs=9", "power.policy=none"), True),
    ],
)
def test_whether_the_seed_decides_anything_is_known_as_far_as_it_can_be(
    jobs: str, changes: tuple[str, ...], seeded: bool | None, tmp_path: Path
) -> None:
    (tmp_path / "trace.swf").write_text(LINE)
    file = tmp_path / "job.toml"
    file.write_text(f'fidelity = "job"\n[trace]\n{jobs}\nnodes = 8\n')
    assert planned(file, changes).facts()["seeded"] is seeded


def test_generated_traffic_is_random(file: Path) -> None:
    assert planned(file).seeded is True
    jobs = ["traffic=none", "jobs[+]={nodes=2, pattern='all-to-all'}"]
    assert planned(file, jobs).seeded is None


def test_what_is_wrong_in_any_combination_is_refused_before_anything_runs(file: Path) -> None:
    with pytest.raises(Refused) as refusal:
        planned(file, ["network.routing=minimal,maximal", "traffic.load=0.1,x"])
    lines = str(refusal.value).splitlines()
    assert len(lines) == len(set(lines)) == 2
    assert any(line.startswith("--set network.routing=maximal: one of ") for line in lines)
    with pytest.raises(Refused, match="points; at most"):
        planned(file, ["traffic.load=0.1,0.2"], wanted={"seeds": 900_000})


def test_values_and_names_that_cannot_be_told_apart_are_refused(file: Path) -> None:
    with pytest.raises(Refused, match="values that differ"):
        planned(file, ["traffic.load=0.1,0.10"])
    file.write_text(FILE + "[sweep.seed]\na = {}\nb = {}\n")
    with pytest.raises(Refused, match="no name for an axis"):
        planned(file)


def test_a_point_whose_file_was_edited_since_is_not_simulated(file: Path) -> None:
    (point,) = planned(file).points
    assert simulate(point).figures["events"]
    file.write_text(FILE.replace("0.2", "0.3"))
    with pytest.raises(Fault, match="has changed since this sweep began"):
        simulate(point)


def test_replicates_of_a_trace_have_intervals_of_their_own(tmp_path: Path) -> None:
    jobs = "\n".join(f"{n} {n * 86400} 0 9 1 0 0 1 9 0 1 1 1 1 1 1 0 0" for n in range(1, 30))
    (tmp_path / "a.swf").write_text(f"; MaxProcs: 4\n{jobs}\n")
    file = tmp_path / "mine.toml"
    file.write_text('fidelity = "job"\ntrace.file = "a.swf"\n')
    recorded, anew = planned(file), planned(file, ["trace.resample=7d"], wanted={"seeds": 3})
    assert (recorded.wanted.interval, recorded.seeded) == ("t", False)
    assert (anew.wanted.interval, anew.seeded) == ("resampled", True)
    assert planned(file, ["trace.resample=7d"], wanted={"interval": "resampled"})
    assert len({point.key for point in anew.points}) == 3
    for changes, asked, words in (
        (["trace.resample=none,7d"], "", "sweep them apart"),
        (["trace.resample=7d"], "t", "interval = t: of independent runs"),
        ([], "resampled", "interval = resampled: of replicates of a trace"),
    ):
        with pytest.raises(Refused, match=words):
            planned(file, changes, wanted={"interval": asked})
