"""`odonata schedule`: traces in, measures and files out, and what is refused."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from conftest import code_on_ranks
from files import forget_plugins

from odonata.cluster.model import Cluster
from odonata.cluster.simulation import simulate
from odonata.commands import schedule
from odonata.commands.cli import cli
from odonata.commands.output import beside
from odonata.experiment.reading import load
from odonata.figures import comparison
from odonata.results.facts import jobs_per_second
from odonata.results.measured import simulated_facts
from odonata.results.run import open as open_run
from odonata.sweeps.kept import sweep
from odonata.traces.reading import read
from odonata.traces.source import Source
from pdes.errors import Fault, Refused
from policies.scheduling import SCHEDULINGS
from topology import Dragonfly

SIX = """; MaxProcs: 10
1  0 -1 100  6 -1 -1  6 100 -1 1 1 1 -1 -1 -1 -1 -1
2 10 -1  50  8 -1 -1  8  50 -1 1 1 1 -1 -1 -1 -1 -1
3 20 -1  60  2 -1 -1  2  80 -1 1 2 1 -1 -1 -1 -1 -1
4 30 -1  20 10 -1 -1 10  20 -1 1 2 1 -1 -1 -1 -1 -1
5 40 -1 150  2 -1 -1  2 200 -1 1 3 1 -1 -1 -1 -1 -1
6 50 -1  30  1 -1 -1  1  30 -1 1 3 1 -1 -1 -1 -1 -1
"""
WANTED = {
    "jobs", "dropped", "repaired", "mean_wait_s", "mean_slowdown", "mean_bounded_slowdown",
    "utilisation", "makespan_s", "jobs_per_second", "digest",
}  # fmt: skip
STARTS = {
    "fcfs": [0, 100, 100, 160, 180, 180], "small-first": [0, 110, 20, 190, 40, 80],
    "large-first": [0, 120, 120, 100, 170, 170], "shortest-first": [0, 120, 150, 100, 170, 120],
    "longest-first": [0, 100, 20, 190, 40, 150], "first-fit": [0, 110, 20, 190, 40, 80],
    "easy": [0, 100, 20, 190, 40, 150], "easy-strict": [0, 100, 100, 160, 180, 50],
    "conservative": [0, 100, 20, 150, 170, 50], "wfp": [0, 110, 20, 190, 40, 80],
    "fair-share": [0, 110, 20, 190, 40, 80], "spf": [0, 120, 150, 100, 170, 120],
    "lpf": [0, 160, 100, 250, 100, 210], "lcfs-pr": [0, 10, 20, 30, 40, 50],
    "sensitive-first": [0, 100, 20, 190, 40, 150],
}  # fmt: skip
"""When each of the six starts, by hand: the table of docs/disciplines.md."""


@pytest.fixture
def six(tmp_path: Path) -> Path:
    path = tmp_path / "six.swf"
    path.write_text(SIX)
    return path


def ask(*words: Any) -> Result:
    return CliRunner().invoke(cli, ["schedule", *map(str, words)])


def facts(*words: Any) -> Any:
    done = ask(*words, "--json")
    assert done.exception is None, done.exception
    return json.loads(done.stdout, parse_constant=lambda word: pytest.fail(word))


def refused(*words: Any) -> str:
    done = ask(*words)
    assert isinstance(done.exception, Refused), done.output
    return str(done.exception)


def test_one_discipline_gives_one_object(six: Path) -> None:
    found = facts(six, "--nodes", 10, "--scheduling", "easy")
    assert found.keys() >= WANTED
    assert (found["jobs"], found["dropped"], found["repaired"]) == (6, 0, 0)
    assert found["mean_wait_s"] == pytest.approx(350 / 6)


@pytest.mark.parametrize("name", [it for it in SCHEDULINGS if not SCHEDULINGS.make(it).needs])
def test_the_six_jobs_of_the_page_start_when_the_page_says(name: str, six: Path) -> None:
    """The table of docs/disciplines.md was worked out by hand."""
    trace, nodes = Source(file=str(six)).trace()
    schedule, *_ = simulate(Cluster(trace, nodes, name))
    assert (schedule.start_us // 10**6).tolist() == STARTS[name]


def test_several_disciplines_give_a_column_each_and_files_by_name(
    six: Path, tmp_path: Path
) -> None:
    found = facts(six, "--scheduling", "fcfs,wfp:backfill=none", "--csv", tmp_path / "six.csv",
                  "--swf", tmp_path / "done.swf.gz", "--plot", tmp_path / "six.png")  # fmt: skip
    assert [run["scheduling"] for run in found["runs"]] == ["fcfs", "wfp"]
    assert len((tmp_path / "six-fcfs.csv").read_text().splitlines()) == 7
    back = read(tmp_path / "done-wfp-backfill-none.swf.gz")
    assert float(back.wait_us.mean()) / 1e6 == found["runs"][1]["mean_wait_s"]
    assert (tmp_path / "six.png").stat().st_size > 20_000
    shown = ask(six, "--scheduling", "fcfs,easy", "--by", "size", "--by", "user").stdout
    assert "six: 6 jobs on 10 nodes" in shown
    assert "mean wait, by user" in shown


@pytest.mark.parametrize(
    ("name", "written"),
    [("a-1.0.csv", "a-1.0-fcfs.csv"), ("v2.1", "v2-fcfs.1"), ("plain", "plain-fcfs")],
)
def test_a_name_with_dots_keeps_them_before_the_label(
    name: str, written: str, six: Path, tmp_path: Path
) -> None:
    facts(six, "--scheduling", "fcfs,easy", "--csv", tmp_path / name)
    assert (tmp_path / written).exists(), [*tmp_path.iterdir()]


def test_a_label_has_nothing_that_a_file_name_cannot() -> None:
    assert beside(Path("d.0/a-1.0.swf.gz"), "wfp:backfill=none, a/b").as_posix() == (
        "d.0/a-1.0-wfp-backfill-none-a-b.swf.gz"
    )


@pytest.mark.parametrize("word", ["project", "account", "group"])
def test_projects_are_shown_under_each_of_their_names(word: str, six: Path) -> None:
    shown = ask(six, "--by", word).stdout
    assert f"mean wait, by {word}" in shown
    assert [part["jobs"] for part in facts(six)["by_project"]] == [6]


def test_parts_that_no_trace_has_are_refused_with_the_reason(six: Path) -> None:
    told = " ".join(ask(six, "--by", "queue").output.split())
    assert "one of size, user, project, account, group, application; the simulated mac" in told


def test_a_short_trace_is_told_in_seconds(six: Path) -> None:
    assert "submitted within 50 s, offered load" in ask(six).stdout
    assert "they are submitted within 50 s" in refused(six, "--warmup", "40s", "--cooldown", "40s")


def test_jobs_that_are_left_out_are_told(six: Path) -> None:
    told = (
        "2 jobs are left out, as they are submitted in the warm-up or the cool-down; the makespan"
    )
    assert f"{told} is of the whole run" in ask(six, "--warmup", "11s").stdout
    shown = ask(six, "--warmup", "11s", "--power", "none").stdout
    assert f"{told}, energy and power are of the whole run" in shown
    assert "left out" not in ask(six).stdout


def test_every_policy_is_in_the_panel_of_power(
    six: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr(comparison, "draw_schedules", lambda *given: drawn.append(given))
    facts(six, "--power", "none,idle-sleep", "--plot", tmp_path / "both.png")
    ((schedules, _, power),) = drawn
    assert [*schedules] == [*power] == ["none", "idle-sleep"]


def test_the_speed_counts_only_jobs_that_were_simulated(six: Path) -> None:
    """Neither those that a run has not come to, nor those that it had done before it went on."""
    _, result, _ = simulate(Cluster(*Source(file=str(six)).trace(), "easy"), 155 * 10**6)
    assert (result.outcome["end_us"][:3] // 10**6).tolist() == [100, 150, 80]
    assert jobs_per_second(result) * result.wall_seconds == pytest.approx(3)
    rest = replace(result, resumed=100 * 10**6)
    assert jobs_per_second(rest) * rest.wall_seconds == pytest.approx(2)


def test_the_speed_is_that_of_the_simulation_alone(
    six: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Imports, reading and loading kernels are told, and not counted: they are of the process."""
    asked_of = schedule.power_keys

    def slowly(*words: Any) -> Any:
        time.sleep(0.3)  # as long as importing takes in a new process
        return asked_of(*words)

    monkeypatch.setattr(schedule, "power_keys", slowly)
    found = facts(six)
    assert found["jobs_per_second"] == pytest.approx(6 / found["wall_seconds"])
    assert found["read_seconds"] + found["wall_seconds"] < found["seconds"]
    assert found["read_seconds"] < 0.3
    shown = ask(six).stdout
    assert "simulated in" in shown
    assert "trace read in" in shown


def test_jobs_are_placed_where_a_machine_is_given(six: Path, tmp_path: Path) -> None:
    found = facts(six, "--nodes", 10, "--machine", "2,2,1,3", "--allocation", "simple,rdn",
                  "--plot", tmp_path / "spread.png")  # fmt: skip
    simple, random = found["runs"]
    assert simple["mean_wait_s"] == random["mean_wait_s"]
    assert simple["fewest_groups_per_job"] <= simple["groups_per_job"] <= random["groups_per_job"]
    counted = facts(six)
    assert counted["mean_wait_s"] == simple["mean_wait_s"]
    assert "groups_per_job" not in counted


def test_ranks_share_the_runs_and_tell_why_one_failed(six: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text(
        "from odonata import scheduling\n"
        "@scheduling('bad', about='a test', source='ours')\n"
        "def bad(view):\n    raise ValueError('of its own')\n"
    )
    code = "import sys; sys.argv = {!r}; from odonata.commands.cli import main; main()"
    words = ["odonata", "schedule", str(six), "--scheduling", "fcfs,easy,conservative", "--json"]
    done = code_on_ranks(2, code.format(words))
    assert done.returncode == 0, done.stderr
    runs = json.loads(done.stdout)["runs"]
    assert [run["digest"] for run in runs] == [
        run["digest"] for run in facts(*words[2:-1])["runs"]]  # fmt: skip
    words[3:] = ["--scheduling", "fcfs,bad", "--plugin", str(tmp_path / "bad.py")]
    failed = code_on_ranks(2, code.format(words))
    assert failed.returncode != 0
    assert "scheduling bad failed: ValueError: of its own" in failed.stderr


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "which jobs? a file, or a model"),
        (("none.swf",), "none.swf: No such file"),
        (("SIX", "--model", "mira"), "there is a file as well"),
        (("SIX", "--jobs", "4"), "jobs = 4: of a model, and there is a file"),
        (("--model", "lublin"), "for a machine of how many nodes"),
        (("--model", "lublin", "--nodes", "9", "--format", "swf"), "format = swf: of a file"),
        (("SIX", "--scheduling", "esay"), "did you mean easy"),
        (("SIX", "--scheduling", "easy,,fcfs"), "names with commas"),
        (("SIX", "--scheduling", "wfp:backfill=all"), "--scheduling backfill=all: one of none"),
        (("SIX", "--scheduling", "wfp:backfill"), "a name and a value"),
        (("SIX", "--allocation", "simple"), "on which machine? --machine PRESET"),
        (("SIX", "--machine", "kim-71"), "did you mean kim-72"),
        (("SIX", "--nodes", "10", "--machine", "2,2,1,2"), "nodes = 10: the machine has 8"),
        (("SIX", "--nodes", "1"), None),
        (("SIX", "--nodes", "0"), "nodes = 0: 1 .."),
        (("SIX", "--load", "90"), "load = 90: above 0, at most 20"),
        (("SIX", "--overrun", "ignore"), "overrun = ignore: one of kill, extend"),
        (("SIX", "--warmup", "3d"), "none of 6 jobs is left to be measured"),
        (("SIX", "--csv", "nowhere/x.csv"), "there is no directory nowhere"),
        (("SIX", "--plot", "x.foo"), "must end in"),
        (("x.toml",), "x.toml: an experiment file: odonata run x.toml"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_line(
    words: tuple[str, ...], complaint: str | None, six: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("x.toml").write_text("name = 'x'")
    given = [str(six) if word == "SIX" else word for word in words]
    if complaint is None:
        assert facts(*given)["dropped"] == 5
        return
    said = refused(*given)
    assert complaint in said
    assert "\n" not in said


def test_a_discipline_that_leaves_jobs_waiting_is_no_success(six: Path, tmp_path: Path) -> None:
    (tmp_path / "lazy.py").write_text(
        "from odonata import scheduling\n"
        "@scheduling('lazy', about='a test', source='ours')\n"
        "def lazy(view):\n    return [job.number for job in view.queue if job.nodes < 4]\n"
    )
    done = ask(six, "--plugin", tmp_path / "lazy.py", "--scheduling", "lazy")
    forget_plugins("lazy")
    assert isinstance(done.exception, Fault)
    assert "scheduling lazy: it has left 3 of 6 jobs waiting" in str(done.exception)


def test_seeds_give_means_with_intervals(tmp_path: Path) -> None:
    words = ("--model", "lublin", "--jobs", 60, "--nodes", 32, "--scheduling", "fcfs,easy")
    every = facts(*words, "--seeds", 3)
    assert [(run["label"], run["seed"]) for run in every["runs"]] == [
        (name, seed) for name in ("fcfs", "easy") for seed in (1, 2, 3)]  # fmt: skip
    assert every["runs"][4]["digest"] == facts(*words, "--seed", 2)["runs"][1]["digest"]
    waits = [run["mean_wait_s"] for run in every["runs"][:3]]
    (mean,) = [it for it in every["results"] if (it["policies"], it["figure"]) ==
               ("fcfs", "mean_wait_s")]  # fmt: skip
    assert mean["mean"] == pytest.approx(sum(waits) / 3)
    assert mean["low"] < mean["mean"] < mean["high"]
    shown = ask(*words, "--seeds", 3).stdout
    assert "± is half of the 95 % confidence interval of the mean over 3 seeds" in shown
    assert shown.count(" ± ") > 20


def test_what_is_written_gives_the_same_digests(six: Path, big: tuple[Path, Path],
                                                tmp_path: Path) -> None:  # fmt: skip
    """With a run, with a sweep, and with whatever of them there is."""
    one = facts(six, "--first", 5, "--requests", "exact", "--warmup", "11s", "--write",
                tmp_path / "one.toml")  # fmt: skip
    made = load(tmp_path / "one.toml")
    again = simulated_facts(made)
    for name in ("digest", "mean_wait_s", "left_out", "measured_jobs"):
        assert again[name] == one[name]
    asked = (big[0], "--scheduling", "fcfs,wfp:backfill=none", "--power", "none,rmap-adaptive",
             "--cap", "20kW", "--set", f"applications={big[1]}")  # fmt: skip
    runs = facts(*asked, "--write", tmp_path / "all.toml")["runs"]
    points = sweep(tmp_path / "all.toml")
    assert [it.digest for it in points.known] == [run["digest"] for run in runs]
    assert points.names == ("scheduler.order", "power.policy")


def test_runs_are_kept(six: Path, tmp_path: Path) -> None:
    asked = (six, "--scheduling", "fcfs,easy", "-o", tmp_path / "kept")
    runs = facts(*asked)["runs"]
    for name, run in zip(("fcfs", "easy"), runs, strict=True):
        with open_run(tmp_path / "kept" / name) as opened:
            assert opened.digest == run["digest"]
    assert [it["mean_wait_s"] for it in runs] == [
        it["mean_wait_s"] for it in facts(*asked[:-2])["runs"]]  # fmt: skip
    assert "there is something in it" in refused(*asked)
    assert "written to" in ask(*asked, "--overwrite").stdout


BIG = """; MaxNodes: 64
; Executable: 1 big
; Executable: 2 strange
1  0 -1 100  3 -1 -1  3 100 -1 1 1 1 1 -1 -1 -1 -1
2 10 -1 100 32 -1 -1 32 100 -1 1 1 1 1 -1 -1 -1 -1
3 20 -1  50 64 -1 -1 64  50 -1 1 2 1 2 -1 -1 -1 -1
4 30 -1  60  8 -1 -1  8  60 -1 1 2 1 2 -1 -1 -1 -1
"""
MEASURED = """application,nodes,cores,cap_w,seconds,watts
big,16,16,115,400,3200
big,16,16,65,560,2400
big,32,16,115,200,6400
"""


@pytest.fixture
def big(tmp_path: Path) -> tuple[Path, ...]:
    (tmp_path / "big.swf").write_text(BIG)
    (tmp_path / "big.csv").write_text(MEASURED)
    return tmp_path / "big.swf", tmp_path / "big.csv"


def test_jobs_that_fit_under_no_cap_are_dropped_in_their_column_only(
    big: tuple[Path, Path],
) -> None:
    """64 nodes of which 290 W each are assumed do not fit under 9 kW."""
    asked = (big[0], "--power", "none,rmap-traditional,rmap-adaptive", "--cap", "9kW", "--set",
             f"applications={big[1]}")  # fmt: skip
    none, *molded = facts(*asked)["runs"]
    assert (none["jobs"], none["dropped"], none["molded_jobs"]) == (4, 0, None)
    for one in molded:
        assert (one["jobs"], one["finished"], one["dropped"], one["molded_jobs"]) == (3, 3, 1, 1)
        (reason,) = one["dropped_by_reason"]
        assert reason.endswith("as their application was not measured (number 3)")
        assert sorted(one["noted"].values()) == [1, 1]
    shown = ask(*asked, "--by", "user", "--by", "application")
    assert shown.exit_code == 0
    said = shown.stdout
    assert said.startswith("big: 4 jobs on 64 nodes\n")
    assert (
        "rmap-traditional, rmap-adaptive: 1 dropped: their power policy could never start" in said
    )
    assert ("rmap-traditional, rmap-adaptive: 1 run as submitted, at up to 290 W per node, while "
            "others are molded: they ask for fewer nodes than") in said  # fmt: skip
    assert "Not all columns are of the same jobs" in said
    assert "molded                             -                 1              1" in said


def test_a_column_that_fails_is_told_when_the_others_have_been(big: tuple[Path, Path]) -> None:
    done = ask(big[0], "--power", "none,rmap-naive", "--cap", "300W", "--set",
               f"applications={big[1]}", "--set", "idle=0 W")  # fmt: skip
    assert isinstance(done.exception, Refused)
    assert "rmap-naive: big: no job is left to run; " in str(done.exception)
    assert "\nfinished                           4\n" in done.stdout


def test_odd_names_reach_every_file_in_one_piece(tmp_path: Path) -> None:
    names = ["a,b", 'say "x"', "new\nline", "\ud800", "Müller", "", "<script>", "x" * 5000]
    jobs = [{"id": n, "subtime": n, "walltime": 9, "res": 1, "profile": "p", "user": name}
            for n, name in enumerate(names)]  # fmt: skip
    path = tmp_path / "odd.json"
    path.write_text(json.dumps({"nb_res": 4, "jobs": jobs,
                                "profiles": {"p": {"type": "delay", "delay": 3}}}))  # fmt: skip
    assert facts(path, "--csv", tmp_path / "o.csv", "--swf", tmp_path / "o.swf")["jobs"] == 8
    import pandas

    table = pandas.read_csv(tmp_path / "o.csv", keep_default_na=False)
    assert len(table) == 8
    assert table.user.tolist()[:6] == ["a,b", 'say "x"', "new?line", "?", "Müller", ""]
    assert read(tmp_path / "o.swf").users[:2] == ("a,b", 'say "x"')


def test_a_slowdown_by_placement_makes_jobs_longer(six: Path) -> None:
    """The room for what a placement or a power cap may cause."""
    trace, nodes = Source(file=str(six), overrun="extend").trace()
    machine = Dragonfly(2, 2, 1, 3)
    plain, *_ = simulate(Cluster(trace, nodes, "fcfs", (), machine, overrun="extend"))
    slow, *_ = simulate(Cluster(trace, nodes, "fcfs", (), machine, overrun="extend",
                               slowdown=lambda job, labels: 1.5))  # fmt: skip
    run = plain.end_us - plain.start_us
    assert (run == trace.run_us).all()
    assert np.array_equal(slow.end_us - slow.start_us, run * 3 // 2)
