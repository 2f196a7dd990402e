"""What `--set` adds to a file and drops of it, and what a file includes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from odonata.experiment.experiment import Experiment
from odonata.experiment.reading import load, parse
from pdes.errors import Refused

BASE = """
[machine]
preset = "kim-72"

[[jobs]]
name = "fft"
nodes = 16
pattern = "fft3d"

[[jobs]]
name = "halo"
nodes = 8
pattern = "halo3d"
count = 2

[scheduler]
allocation = "level-spread"
launch = "3 us"
"""


def packets(text: str, *changes: str) -> Experiment:
    made = parse(text, "base.toml", changes)
    assert isinstance(made, Experiment)
    return made


def named(*changes: str) -> list[str]:
    return [job.name for job in packets(BASE, *changes).jobs]


def problems(*changes: str) -> list[str]:
    with pytest.raises(Refused) as refusal:
        packets(BASE, *changes)
    return str(refusal.value).splitlines()


def test_a_job_is_dropped_by_its_number_or_by_its_name() -> None:
    assert named("jobs[0]=none") == ["halo 1", "halo 2"] == named("jobs[fft]=none")
    assert named("jobs.1=none") == ["fft"] == named("jobs[halo] = none")


def test_numbers_are_those_of_the_file_whatever_was_dropped_before() -> None:
    made = packets(BASE, "jobs[0]=none", "jobs[1].nodes=4", "jobs[1].count=1")
    assert [(job.name, job.nodes) for job in made.jobs] == [("halo", 4)]


def test_what_is_dropped_leaves_the_experiment_that_a_file_without_it_has() -> None:
    without = BASE.replace(BASE[BASE.index('[[jobs]]\nname = "fft"') : BASE.rindex("[[jobs]]")], "")
    assert packets(BASE, "jobs[0]=none") == packets(without)


def test_without_jobs_nothing_is_left_of_what_the_file_says_about_them() -> None:
    only_traffic = packets('[machine]\npreset = "kim-72"')
    assert packets(BASE, "jobs=none") == only_traffic
    assert packets(BASE, "jobs[0]=none", "jobs[1]=none") == only_traffic
    powered = BASE + '[power]\npolicy = "uniform"\ncap = "20 kW"\n'
    assert packets(powered, "jobs=none") == only_traffic
    assert packets(powered, "power=none") == packets(BASE)


def test_what_set_says_about_jobs_is_refused_where_there_are_none() -> None:
    (line,) = problems("jobs=none", "scheduler.order=easy")
    assert line.startswith("--set scheduler.order=easy: there are no [[jobs]]")


def test_a_whole_job_is_added_after_the_last_or_replaces_one() -> None:
    new = '{name="more", nodes=4}'
    assert named(f"jobs[2]={new}") == ["fft", "halo 1", "halo 2", "more"]
    assert named(f"jobs[+]={new}", f"jobs[+]={new}") == [*named(), "more", "more"]
    assert named(f"jobs[0]={new}") == ["more", "halo 1", "halo 2"]
    assert packets(BASE, f"jobs[0]={new}").jobs[0].pattern == "all-to-all"  # not that of the old
    assert named(f"jobs=[{new}]") == ["more"]
    assert named("jobs[0]=none", f"jobs[0]={new}") == ["more", "halo 1", "halo 2"]


def test_jobs_are_given_to_a_file_without_any() -> None:
    made = packets("", "jobs[+]={nodes=4}", "jobs[0].iterations=2", "scheduler.order=small-first")
    assert [(job.nodes, job.iterations) for job in made.jobs] == [(4, 2)]


def test_traffic_is_added_beside_jobs_and_dropped() -> None:
    both = packets(BASE, 'traffic=[{load=0.1}, {load=0.2, pattern="hotspot"}]')
    assert [traffic.load for traffic in both.traffic] == [0.1, 0.2]
    assert packets(BASE, "traffic[+]={load=0.1}").traffic[0].load == 0.1
    assert packets(BASE + "[traffic]\nload = 0.3", "traffic=none") == packets(BASE)
    two = BASE + "[[traffic]]\nload = 0.3\n[[traffic]]\nload = 0.4\n"
    assert [it.load for it in packets(two, "traffic[0]=none").traffic] == [0.4]
    assert packets(two, "traffic[0]=none", "traffic[1]=none") == packets(BASE)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("jobs[7]=none", "which job? base.toml has jobs[0] to jobs[1]"),
        ("jobs[2]=none", "has no jobs[2] that could be dropped"),
        ("jobs[0]=3", "a table, [[jobs]]"),
        ("jobs=[]", "[[jobs]], one for each job"),
        ("jobs[+]={nodes=999}", "jobs[2].nodes = 999: the machine has 72"),
        ("jobs[+]={nods=9, nodes=2}", "jobs[2].nods: unknown; did you mean jobs[2].nodes?"),
        ("jobs[nobody].nodes=2", "which job?"),
        ("network=3", "a section; set one of its keys"),
    ],
)
def test_what_cannot_be_changed_so_is_named(change: str, said: str) -> None:
    line = problems(change)[0]
    assert line.startswith(f"--set {change}: ")
    assert said in line


# -- include


def written(folder: Path, **texts: str) -> Path:
    for name, text in texts.items():
        path = folder / f"{name.replace('__', '/')}.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return folder / "mine.toml"


def read(path: Path, *changes: str) -> Any:
    return load(path, changes)


def test_a_file_has_what_it_includes_except_for_what_it_says_itself(tmp_path: Path) -> None:
    mine = written(tmp_path, base=BASE, mine='include = "base.toml"\n[scheduler]\norder = "easy"')
    whole = written(tmp_path / "whole", mine=BASE + 'order = "easy"')
    assert read(mine) == read(whole)
    over = written(tmp_path, mine='include = ["base.toml"]\nscheduler.launch = "5 us"')
    assert read(over).scheduler.launch_ps == 5_000_000
    assert read(over).scheduler.allocation == "level-spread"


def test_jobs_of_a_file_replace_those_that_it_includes(tmp_path: Path) -> None:
    mine = written(tmp_path, base=BASE, mine='include = "base.toml"\n[[jobs]]\nnodes = 2')
    assert [(job.name, job.nodes, job.pattern) for job in read(mine).jobs] == [
        ("", 2, "all-to-all")
    ]
    assert [job.nodes for job in read(mine, "jobs[0].nodes=4").jobs] == [4]


def test_one_traffic_replaces_several_and_several_replace_one(tmp_path: Path) -> None:
    several = "[[traffic]]\nload = 0.1\n[[traffic]]\nload = 0.2\n"
    one = "[traffic]\nload = 0.3\n"
    mine = written(tmp_path, base=several, mine=f'include = "base.toml"\n{one}')
    assert [it.load for it in read(mine).traffic] == [0.3]
    mine = written(tmp_path, base=one, mine=f'include = "base.toml"\n{several}')
    assert [it.load for it in read(mine).traffic] == [0.1, 0.2]


def test_later_files_count_more_and_files_include_others(tmp_path: Path) -> None:
    mine = written(
        tmp_path, a='about = "a"\nrun.seed = 1\nnetwork.routing = "valiant"',
        b='include = "a.toml"\nrun.seed = 2\nabout = "b"', c="run.seed = 3",
        mine='include = ["b.toml", "c.toml"]',
    )  # fmt: skip
    made = read(mine)
    assert (made.name, made.about, made.run.seed, made.network.routing) == (
        "mine", "b", 3, "valiant")  # fmt: skip


def test_what_an_included_file_names_is_relative_to_that_file(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "own.toml").write_text(
        '[[stages]]\npattern = "ring"\n'.replace("ring", "random-ring")
    )
    mine = written(
        tmp_path, far__base='[[jobs]]\nnodes = 4\nprofile = "own.toml"\n',
        mine='include = "far/base.toml"',
    )  # fmt: skip
    (job,) = read(mine).jobs
    assert Path(job.profile) == tmp_path / "far" / "own.toml"


def test_problems_name_the_file_that_has_them(tmp_path: Path) -> None:
    mine = written(tmp_path, base="[network]\nrooting = 1\npacket = 7",
                   mine='include = ["base.toml", "none.toml"]\nrun.seed = "x"')  # fmt: skip
    with pytest.raises(Refused) as refusal:
        read(mine)
    lines = str(refusal.value).splitlines()
    base = tmp_path / "base.toml"
    assert sum(line.startswith(f"{base}: network.") for line in lines) == 2
    assert any(line.startswith(f"{mine}: run.seed") for line in lines)
    assert any("none.toml: No such file" in line for line in lines)


def test_files_that_include_each_other_are_refused(tmp_path: Path) -> None:
    mine = written(tmp_path, base='include = "mine.toml"', mine='include = "base.toml"')
    with pytest.raises(Refused, match=r"include = \"mine.toml\": it includes this file in turn"):
        read(mine)
