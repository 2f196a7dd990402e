"""`odonata trace`."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from odonata.commands.trace import command
from odonata.results.trace_facts import facts
from odonata.traces.reading import read
from odonata.traces.swf import clock_of
from odonata.traces.trace import SECOND, UNKNOWN, Account, Trace
from pdes.errors import Refused

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
HEADER = """; Computer: a [bold]small[/bold] one
; Installation: a test
; UnixStartTime: 749458803
; TimeZone: -28800
; TimeZoneString: US/Pacific
; MaxProcs: 8
"""
JOBS = (
    "1     0 10 3600 1 -1 -1 1 7200 -1 1 1 1 1 -1 -1 -1 -1",
    "2  3600 -1 7200 4 -1 -1 4 3600 -1 1 1 1 2 -1 -1 -1 -1",
    "3  7200 30    0 3 -1 -1 3   -1 -1 1 2 1 2 -1 -1 -1 -1",
    "4 86400 -1 3600 8 -1 -1 8   -1 -1 1 3 1 2 -1 -1 -1 -1",
    "5 90000 -1   -1 2 -1 -1 2   -1 -1 1 3 1 2 -1 -1 -1 -1",
)  # the last has no run time


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.swf"
    path.write_text(HEADER + "\n".join(JOBS) + "\n")
    return path


def run(*words: Any) -> str:
    result = CliRunner().invoke(command, [str(word) for word in words])
    if result.exception:
        raise result.exception
    return result.stdout


def ask(*words: Any) -> dict[str, Any]:
    def refuse(number: str) -> None:
        raise AssertionError(f"{number} is not JSON")

    told: dict[str, Any] = json.loads(run(*words, "--json"), parse_constant=refuse)
    return told


def test_programs_get_all_of_it(log: Path) -> None:
    told = ask(log)
    assert told["name"] == "log"
    assert told["installation"] == "a test"
    assert (told["records"], told["jobs"]) == (5, 4)
    assert told["dropped"] == {"run time unknown": 1}
    assert (told["total_dropped"], told["total_repaired"], told["repaired"]) == (1, 0, {})
    assert told["span_s"] == 86400
    assert told["first_submission"] == "1993-10-01 00:00"
    assert told["last_submission"] == "1993-10-02 00:00"
    assert (told["machine_nodes"], told["machine_nodes_from"]) == (8, "told by the trace")
    assert told["node_hours"] == 1 + 8 + 8
    assert told["load"] == pytest.approx(17 / (24 * 8))
    assert told["jobs_per_day"] == 4
    assert told["nodes"] == {"min": 1, "median": 3.5, "mean": 4, "p95": 8, "max": 8,
                             "one_node_share": 0.25, "power_of_two_share": 0.75}  # fmt: skip
    assert told["run_s"] == {"jobs": 4, "min": 0, "median": 3600, "mean": 3600, "p95": 7200,
                             "max": 7200}  # fmt: skip
    assert told["requested_s"] == {"jobs": 2, "min": 3600, "median": 5400, "mean": 5400,
                                   "p95": 7200, "max": 7200, "mean_accuracy": 1.25,
                                   "longer": 1}  # fmt: skip
    assert told["wait_s"] == {"jobs": 2, "min": 10, "median": 20, "mean": 20, "p95": 30, "max": 30}
    assert (told["users"], told["projects"], told["applications"]) == (3, 1, 2)
    first, *_, last = told["busiest_users"]
    assert first == {"name": "1", "jobs": 2, "node_hours": 9, "node_time_share": 9 / 17}
    assert last["name"] == "2"
    assert "Installation: a test" in told["header"]
    assert told["written"] is None


def test_people_get_a_table(log: Path) -> None:
    table = " ".join(run(log).split())
    for words in (
        "log computer a [bold]small[/bold] one installation a test records 5",
        "dropped 1: run time unknown repaired none",
        "jobs 4, 4 per day submitted within 24 h, from 1993-10-01 00:00 to 1993-10-02 00:00",
        "machine 8 nodes load 0.089",
        "25.0% of jobs have one node, 75.0% a power of two",
        "requested times 2 jobs; run times are 125% of them on average, 1 are longer",
        "recorded waits of 2 jobs users 3; the busiest is 1 with 52.9% of the node-time in 2 jobs",
        "least median mean 95 % most nodes 1 3.5 4 8 8 run time 0 s 1 h 1 h 2 h 2 h",
    ):
        assert words in table


def test_what_a_trace_does_not_tell_is_null(tmp_path: Path) -> None:
    path = tmp_path / "one.swf"
    path.write_text("1 5 -1 0 3 -1 -1 3 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n")
    told = ask(path)
    for name in ("computer", "installation", "first_submission", "time_zone", "load",
                 "jobs_per_day", "wait_s"):  # fmt: skip
        assert told[name] is None
    assert told["requested_s"]["jobs"] == 0
    assert told["requested_s"]["mean_accuracy"] is None
    assert (told["users"], told["projects"], told["applications"]) == (0, 0, 0)
    assert told["busiest_users"] == []
    assert (told["machine_nodes"], told["machine_nodes_from"]) == (3, "the largest job")
    table = " ".join(run(path).split())
    assert "3 nodes, as many as the largest job has: the trace does not tell" in table
    assert "load none: all jobs are submitted together" in table
    assert "users none" in table


@pytest.mark.parametrize(
    ("gap_s", "words"),
    [
        (1, "jobs 3 submitted within 2 s"),
        pytest.param(60, "jobs 3, 1.5 per minute submitted within 2 min", marks=pytest.mark.long),
        (3600, "jobs 3, 1.5 per hour submitted within 2 h"),
    ],
)
def test_a_short_trace_is_told_in_units_that_fit(tmp_path: Path, gap_s: int, words: str) -> None:
    path, line = tmp_path / "short.swf", "{} {} -1 120 4 -1 -1 4 -1 -1 1 1 1 1 -1 -1 -1 -1\n"
    path.write_text("".join(line.format(n + 1, n * gap_s) for n in range(3)))
    table = " ".join(run(path, "--plot", tmp_path / "short.png").split())
    assert words in table
    assert "0.4 node-hours" in table  # and not 0


def test_nobody_is_counted_who_was_left_out(log: Path) -> None:
    told = ask(log, "--first", 2)
    assert (told["jobs"], told["users"], told["applications"]) == (2, 1, 2)
    assert told["dropped"] == {"run time unknown": 1, "not among the first 2": 2}


def test_jobs_are_limited_to_a_time_and_keep_theirs(log: Path) -> None:
    told = ask(log, "--from", "1h", "--to", "2h")
    assert (told["jobs"], told["first_submission"]) == (1, "1993-10-01 01:00")
    assert ask(log, "--from", "1h")["jobs"] == 3
    assert ask(log, "--to", "1d")["jobs"] == 3


def test_what_is_written_reads_back_with_the_same_facts(log: Path, tmp_path: Path) -> None:
    for name in ("again.swf", "again.swf.gz"):
        out = tmp_path / name
        told = ask(log, "--nodes", 4, "--load", 0.5, "-o", out)
        assert told["written"] == str(out)
        assert told["load"] == pytest.approx(0.5)
        assert told["dropped"]["larger than the machine of 4 nodes"] == 1
        again = ask(out)
        changed = {"name", "records", "dropped", "total_dropped", "machine_nodes_from", "header",
                   "written"}  # fmt: skip
        for key in told.keys() - changed:
            assert again[key] == told[key], key
        assert (again["machine_nodes_from"], again["total_dropped"]) == ("told by the trace", 0)
    assert gzip.decompress(out.read_bytes()) == (tmp_path / "again.swf").read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"log.swf", "again.swf", "again.swf.gz"}


def test_requests_that_are_not_recorded_are_not_invented(log: Path, tmp_path: Path) -> None:
    run(log, "-o", tmp_path / "again.swf")
    before, after = read(log), read(tmp_path / "again.swf")
    for (name, column), (_, same) in zip(before.columns(), after.columns(), strict=True):
        assert column.tolist() == same.tolist(), name
    assert after.requested_us.tolist() == [7200 * SECOND, 3600 * SECOND, UNKNOWN, UNKNOWN]


def test_sizes_are_scaled_to_another_machine(log: Path) -> None:
    told = ask(log, "--nodes", 4, "--scale-sizes")
    assert (told["nodes"]["max"], told["jobs"], told["machine_nodes"]) == (4, 4, 4)


def test_a_file_is_replaced_only_when_asked(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.swf"
    out.write_text("mine")
    with pytest.raises(Refused, match=r"out\.swf: there is such a file: .* add --overwrite"):
        run(log, "-o", out)
    assert out.read_text() == "mine"
    assert f"written to {out}" in run(log, "-o", out, "--overwrite")
    assert len(read(out)) == 4
    run(log, "--first", 3, "-o", log, "--overwrite")
    assert len(read(log)) == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "which jobs\\? a FILE, or --model"),
        (("LOG", "--model", "mira"), "there is a file as well"),
        (("--model", "mirra"), "model = mirra: one of poisson, lublin, mira"),
        (("--model", "lublin"), "--model lublin: for a machine of how many nodes\\? --nodes N"),
        (("--model", "mira", "--format", "swf"), "format = swf: of a file"),
        (("LOG", "--jobs", "3"), "jobs = 3: of a model, and there is a file"),
        (("LOG", "--format", "xls"), "format = xls: one of swf"),
        (("LOG", "--scale-sizes"), "--scale-sizes: to a machine of how many nodes"),
        (("LOG", "--load", "nan"), "load = nan: a number, above 0, at most 20"),
        (("LOG", "--load", "inf"), "load = inf"),
        (("LOG", "--from", "2h", "--to", "2h"), "it ends before it begins"),
        (("LOG", "--from", "2d"), "--from 2 days: the last job is submitted at 24 h"),
        (("LOG", "--from", "4h", "--to", "5h"), "no job is left of 4"),
        (("LOG", "--first", "1", "--load", "0.5"), "all jobs are submitted together"),
        (("LOG", "--from", "1d", "--nodes", "7"), "no job is left of 1"),
        (("gone.swf",), "gone.swf: No such file"),
        ((".",), r"\.: Is a directory"),
        (("LOG", "-o", "."), "SWF is written: the name must end in .swf or .swf.gz"),
        (("LOG", "-o", "x.csv"), "SWF is written: the name must end in .swf or .swf.gz"),
        (("LOG", "-o", "FOLDER"), "this is a directory: name a file in it"),
        (("LOG", "-o", "no/such/x.swf"), "there is no directory no/such"),
        (("LOG", "--plot", "x.gif"), r"x\.gif: the name must end in \.png"),
        (("LOG", "--plot", "no/such/x.png"), "there is no directory no/such"),
    ],
)
def test_bad_requests_are_refused_in_a_line(
    words: tuple[str, ...], message: str, log: Path, tmp_path: Path
) -> None:
    (tmp_path / "folder.swf").mkdir()
    places = {"LOG": str(log), "FOLDER": str(tmp_path / "folder.swf")}
    with pytest.raises(Refused, match=message) as refused:
        run(*(places.get(word, word) for word in words))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("text", ["", ";\n", "; MaxProcs: 8\n", "1 2 3\n", "a b c\n", JOBS[-1]])
def test_a_file_without_jobs_is_no_success(text: str, tmp_path: Path) -> None:
    path, out = tmp_path / "broken.swf", tmp_path / "out.swf"
    path.write_text(text)
    with pytest.raises(Refused, match=re.escape(str(path))):
        run(path, "-o", out)
    assert not out.exists()


@pytest.mark.parametrize("option", ["--nodes", "--first", "--jobs", "--seed", "--from", "--load"])
def test_a_value_without_meaning_names_the_option(option: str, log: Path) -> None:
    result = CliRunner().invoke(command, [str(log), option, "-1x"])
    assert result.exit_code == 2
    assert option in result.output


def test_a_size_that_is_not_known_cannot_be_scaled_from(log: Path, tmp_path: Path) -> None:
    log.write_text(log.read_text().replace("; MaxProcs: 8\n", ""))
    with pytest.raises(Refused, match="does not tell the size of its own machine: write it with"):
        run(log, "--scale-sizes", "--nodes", 4)
    run(log, "--nodes", 16, "-o", tmp_path / "told.swf")
    assert ask(tmp_path / "told.swf", "--scale-sizes", "--nodes", 4)["nodes"]["max"] == 2


def test_a_model_makes_jobs_by_its_seed() -> None:
    words = ("--model", "lublin", "--nodes", 64, "--jobs", 300, "--load", 0.6)
    told = ask(*words)
    assert (told["jobs"], told["machine_nodes"]) == (300, 64)
    assert told["load"] == pytest.approx(0.6, rel=1e-6)
    assert told == ask(*words, "--seed", 1)
    assert told != ask(*words, "--seed", 2)
    assert ask("--model", "mira", "--load", 0.1, "--jobs", 5000)["machine_nodes"] == 49152


def test_other_ranks_are_silent(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMI_SIZE", "2")
    monkeypatch.setenv("PMI_RANK", "1")
    assert run(log) == ""
    monkeypatch.setenv("PMI_RANK", "0")
    assert run(log) != ""


# -- the time of day


def jobs(submit_s: Any, **more: Any) -> Trace:
    n = len(submit_s)
    ones = np.ones(n, np.int64)
    columns = {"number": np.arange(n), "submit_us": np.array(submit_s) * SECOND, "nodes": ones,
               "run_us": 60 * SECOND * ones, "requested_us": -ones, "wait_us": -ones,
               "user": 0 * ones, "project": 0 * ones, "application": 0 * ones}  # fmt: skip
    clock = clock_of(more.get("header", ()))
    return Trace("jobs", account=Account(n), clock=clock, **columns | more)


def header(**lines: Any) -> tuple[str, ...]:
    return tuple(f"{key}: {value}" for key, value in lines.items())


def test_clocks_are_put_back_in_autumn() -> None:
    begin = 749458803  # 1 October 1993, 0:00:03 in California
    trace = jobs([0, 40 * 86400], header=header(UnixStartTime=begin, TimeZoneString="US/Pacific"))
    clock = trace.clock
    assert clock is not None
    assert clock.words(trace.submit_us) == ["1993-10-01 00:00", "1993-11-09 23:00"]


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        ({"UnixStartTime": 86400}, "1970-01-02 00:00"),
        ({"UnixStartTime": 86400, "TimeZone": 3600}, "1970-01-02 01:00"),
        ({"UnixStartTime": 86400, "TimeZone": 3600, "TimeZoneString": "no/where"},
         "1970-01-02 01:00"),
        ({"UnixStartTime": 86400, "TimeZone": 10**6}, "1970-01-02 00:00"),
        ({"UnixStartTime": 86400, "TimeZoneString": "../../etc/passwd"}, "1970-01-02 00:00"),
        ({"UnixStartTime": 0}, None),
        ({"UnixStartTime": -1}, None),
        ({"UnixStartTime": "soon"}, None),
        ({"UnixStartTime": 10**12 - 1}, None),  # after the year 9999
        ({}, None),
    ],
)  # fmt: skip
def test_a_date_is_told_where_there_is_one(lines: dict[str, Any], shown: str | None) -> None:
    assert facts(jobs([0], header=header(**lines)), 1)["first_submission"] == shown


# -- the picture


@pytest.mark.parametrize("kind", ["png", pytest.param("svg", marks=pytest.mark.long)])
def test_the_picture_is_drawn(kind: str, log: Path, tmp_path: Path) -> None:
    path = tmp_path / f"trace.{kind}"
    assert "4 per day" in run(log, "--plot", path)
    assert {"png": b"\x89PNG", "svg": b"<svg"}[kind] in path.read_bytes()[:1000]
    assert path.stat().st_size > 20_000


@pytest.mark.long
def test_even_odd_traces_can_be_drawn() -> None:
    from odonata.figures.style import style
    from odonata.figures.trace import picture

    rng = np.random.default_rng(1)
    many = np.sort(rng.integers(0, 10**9, 1000))
    ones = np.ones(1000, np.int64)
    year = 365 * 86400 * SECOND
    traces = (
        jobs([7], run_us=[0]),
        jobs([0, 1], user=[0, 1], users=("$x_1$", "a" * 99), run_us=[1, 900 * year]),
        jobs([0, 0, 9 * 10**9], header=header(UnixStartTime=10**9)),
        jobs([0, 50, 100], header=header(UnixStartTime=10**9, TimeZone=-3600)),
        jobs(many, nodes=rng.integers(1, 10**9, 1000), run_us=rng.integers(0, year, 1000)),
        jobs(many, nodes=7 * ones, requested_us=rng.integers(1, year, 1000)),
    )
    with style():
        for trace in traces:
            figure = picture(trace, 10**9)
            figure.draw_without_rendering()
            assert len(figure.axes) >= 7


def test_bars_end_where_the_trace_does() -> None:
    from odonata.figures.trace import bars_of, step_of

    day = 86400
    assert bars_of(np.array([10, 3 * day]), day).tolist() == [10, day, 2 * day, 3 * day]
    assert bars_of(np.array([0, 2 * day + 60]), day).tolist() == [0, day, 2 * day + 60]
    assert bars_of(np.array([day - 60, 2 * day]), day).tolist() == [day - 60, 2 * day]
    assert bars_of(np.array([5, 90]), day).tolist() == [5, 90]
    assert step_of(0) == (1, "second")
    assert step_of(600) == (60, "minute")
    assert step_of(92 * day) == (day, "day")
    assert step_of(365 * day) == (7 * day, "week")
    assert step_of(10**10)[0] % day == 0


# -- real files


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nasa-ipsc-1993-cln.swf.gz", {"jobs": 18239, "machine_nodes": 128, "users": 69,
                                       "first_submission": "1993-10-01 00:00"}),
        ("hpc2n-sample.swf", {"jobs": 3145, "total_dropped": 25, "machine_nodes": 240,
                              "first_submission": "2002-07-28 09:04"}),
        ("krc2.csv", {"records": 9389, "machine_nodes_from": "the largest job", "users": 0}),
    ],
)  # fmt: skip
def test_real_files_are_told_of(name: str, expected: dict[str, Any]) -> None:
    if not (DATA / name).exists():
        pytest.skip(f"{DATA / name} is not there")
    told = ask(DATA / name)
    assert {key: told[key] for key in expected} == expected
    assert told["jobs"] + told["total_dropped"] == told["records"]
