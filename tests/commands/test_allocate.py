"""`odonata allocate` and `odonata policies`."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from odonata.commands.allocate import command as allocate
from odonata.commands.allocate import parse_labels
from odonata.commands.policies import command as policies
from odonata.figures.placement import draw
from odonata.jobs.placement import place, ranges
from pdes.errors import Refused
from policies.allocation import ALLOCATIONS
from policies.register import ENVIRONMENT, PLUGINS, REGISTERS
from topology import Dragonfly
from topology.presets import PRESETS

Run = Callable[..., subprocess.CompletedProcess[str]]

FIGURE = ("--nodes", "4", "--routers", "4", "--groups", "9")


def run(*words: str, command: Any = allocate) -> str:
    result = CliRunner().invoke(command, words)
    if result.exception:
        raise result.exception
    return " ".join(result.stdout.split())


def ask(*words: str) -> list[list[int]]:
    printed = json.loads(run(*words, "--json"))
    assert set(printed) == {"jobs"}
    jobs: list[list[int]] = printed["jobs"]
    return jobs


def test_the_command_answers_as_promised(odonata: Run) -> None:
    words = (*FIGURE, "--policy", "level-spread", "--jobs", "4,8,54", "--json")
    done = odonata("allocate", *words)
    assert done.returncode == 0, done.stderr
    first, second, third = json.loads(done.stdout)["jobs"]
    assert first == [0, 1, 2, 3]
    assert second == [16, 20, 24, 28, 17, 21, 25, 29]
    assert [sum(label // 16 == group for label in third) for group in range(9)] == [6] * 9


def test_people_get_a_table() -> None:
    table = run(*FIGURE, "--jobs", "4,8,54", "--busy", "143")
    for words in ("level-spread: spread over the smallest level", "144 nodes; 1 busy before",
                  "77 idle afterwards", "1 4 1 1 4 0–3",
                  "2 8 4 1 8 16–17, 20–21, 24–25, 28–29", "3 54 19 9 6 4–9"):  # fmt: skip
        assert words in table


def test_jobs_are_taken_in_another_order_and_told_in_that_given() -> None:
    assert ask(*FIGURE, "--policy", "simple", "--jobs", "4,2,3") == [
        [0, 1, 2, 3], [4, 5], [6, 7, 8],
    ]  # fmt: skip
    assert ask(*FIGURE, "--policy", "simple", "--jobs", "4,2,3", "--order", "small-first") == [
        [5, 6, 7, 8], [0, 1], [2, 3, 4],
    ]  # fmt: skip
    assert ask(*FIGURE, "--policy", "simple", "--jobs", "2,4", "--order", "large-first") == [
        [4, 5], [0, 1, 2, 3],
    ]  # fmt: skip


def test_busy_nodes_are_left_alone() -> None:
    assert ask(*FIGURE, "--policy", "simple", "--busy", "0-15,17", "--jobs", "3") == [[16, 18, 19]]


def test_a_seed_decides_and_a_job_draws_its_own_numbers() -> None:
    words = (*FIGURE, "--policy", "rdn", "--jobs")
    assert ask(*words, "9,9") == ask(*words, "9,9", "--seed", "1")
    assert ask(*words, "9,9") != ask(*words, "9,9", "--seed", "2")
    one, other = ask(*words, "9,9")
    assert one != other
    assert ask(*words, "9,5")[0] == one


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--jobs", "60,64,54"], "^job 3 of 54 nodes: only 20 of 144 are idle$"),
        (["--jobs", "4", "--busy", "0-141"], "^job 1 of 4 nodes: only 2 of 144 are idle$"),
        (["--jobs", "3,0"], "^job 2 of 0 nodes: at least 1$"),
        (["--jobs", "-3"], "^job 1 of -3 nodes: at least 1$"),
        (["--jobs", "4,145"], "^job 2 of 145 nodes: the machine has 144$"),
        (["--jobs", "4", "--policy", "slrum"], "allocation 'slrum': .* did you mean slurm"),
        (["--jobs", "4", "--order", "first"], "scheduling 'first': one of fcfs, small-first"),
        (["--jobs", "4", "--busy", "144"], r"busy node 144: the machine has 0 … 143"),
        (["--jobs", "4", "--plot", "x.gif"], r"x\.gif: the name must end in \.png, \.svg"),
        (["--jobs", "4", "--plot", "no/such/x.png"], "there is no directory no/such"),
    ],
)
def test_bad_requests_are_refused(words: list[str], message: str) -> None:
    with pytest.raises(Refused, match=message):
        run(*FIGURE, *words)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--jobs", "4,x"),
        ("--jobs", ""),
        ("--jobs", "4,,5"),
        ("--jobs", "1.5"),
        ("--busy", "5-3"),
        ("--busy", "a-b"),
        ("--busy", "-4"),
        ("--seed", "-1"),
    ],
)
def test_a_value_without_meaning_names_the_option(option: str, value: str) -> None:
    jobs = () if option == "--jobs" else ("--jobs", "4")
    result = CliRunner().invoke(allocate, [*FIGURE, *jobs, option, value])
    assert result.exit_code == 2
    assert option in result.output


@pytest.mark.parametrize(
    "words",
    [
        ("--groups", "10"),
        ("--groups", "40"),
        ("--routers", "3", "--groups", "12"),
        ("--groups", "1"),
        ("--groups", "10", "--links-per-pair", "3"),
        ("--groups", "10", "--links-per-pair", "all"),
        ("--preset", "frontier", "--groups", "1"),
        ("--preset", "theta", "--groups", "100"),
    ],
)
def test_cables_that_nobody_asked_for_do_not_stand_in_the_way(words: tuple[str, ...]) -> None:
    assert ask(*words, "--policy", "simple", "--jobs", "2") == [[0, 1]]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--groups", "40", "--global-links", "4"], "groups = 40: at most"),
        (["--groups", "0"], "groups = 0: at least 1"),
        (["--routers", "0"], "routers = 0: at least 1"),
        (["--preset", "frontir"], "did you mean frontier"),
    ],
)
def test_but_a_machine_that_cannot_be_is_refused(words: list[str], message: str) -> None:
    with pytest.raises(Refused, match=message):
        run(*words, "--jobs", "1")


def test_parameters_of_a_policy_are_given_by_name(tmp_path: Path) -> None:
    file = tmp_path / "skip.py"
    file.write_text(
        "from odonata import allocation, parameter\n\n"
        "@allocation('skip', about='from there on', source='a test')\n"
        "def skip(sight, job, rng, *, first=0, pause=parameter(0, unit='time')):\n"
        "    return sight.labels[first : first + job.nodes]\n"
    )
    words = ("--preset", "kim-72", "--jobs", "3", "--policy", "skip", "--plugin", str(file))
    try:
        assert ask(*words, "--parameter", "first=5", "--parameter", "pause=2us") == [[5, 6, 7]]
        for given, message in (
            ("first", "--parameter first: a name and a value, as spare=2"),
            ("first=x", "--parameter first=x: a whole number"),
            ("frist=1", "allocation skip: frist: unknown; it has first, pause; did you mean first"),
        ):
            with pytest.raises(Refused, match=re.escape(message)):
                ask(*words, "--parameter", given)
    finally:
        PLUGINS.clear()
        REGISTERS["allocation"].pop("skip", None)
        os.environ.pop(ENVIRONMENT, None)


# -- counters of a file


SMALL = ("--nodes", "2", "--routers", "3", "--groups", "2", "--busy", "0,4,8,10-11")
"""The machine of the example in policies/allocation/network_data.py."""
BY_NODE = "node,sent\n0,5\n1,3\n3,2\n4,2\n6,5\n7,1\n8,9\n"
BY_ROUTER = "router,wait,stall\n 1,0,5\n2,9,1\n3,0,3\n4,0,1\n\n"


def written(path: Path, text: str) -> tuple[str, str]:
    path.write_text(text)
    return "--counters", str(path)


def test_a_policy_is_shown_the_counters_of_files_and_whether_jobs_are_sensitive(
    tmp_path: Path,
) -> None:
    told = (*written(tmp_path / "nodes.csv", BY_NODE), *written(tmp_path / "r.csv", BY_ROUTER))
    words = (*SMALL, *told, "--jobs", "3", "--policy")
    assert ask(*words, "nedd") == ask(*words, "nedd", "--sensitive") == [[2, 3, 5]]
    assert ask(*words, "nedd", "--insensitive") == [[9, 1, 6]]
    assert ask(*words, "nedd", "--parameter", "threshold=8", "--sensitive") == [[1, 2, 3]]
    assert ask(*words, "low-stall-router") == [[1, 5, 9]]
    assert ask(*words, "low-stall-router", "--parameter", "count=any") == [[1, 9, 6]]
    assert ask(*SMALL, "--policy", "nedd", "--jobs", "3") == [[1, 2, 3]]
    assert "nedd: sensitive jobs to the routers with least" in run(*words, "nedd")
    assert ALLOCATIONS.make("nedd").reads == 1


def test_the_columns_of_counters_may_be_in_several_files(tmp_path: Path) -> None:
    sent = written(tmp_path / "sent.csv", "node,sent\n2,7\n")
    received = written(tmp_path / "received.csv", "\ufeffnode,received\r\n1,8\r\n")
    words = (*SMALL, *sent, *received, "--policy", "high-traffic-router", "--jobs", "3")
    assert ask(*words) == [[1, 2, 3]]
    assert ask(*words, "--parameter", "count=sent") == [[2, 3, 1]]
    with pytest.raises(Refused, match=r"sent\.csv: sent is in another file as well"):
        ask(*words, *sent)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "its first line is node,sent,received or router,stall,wait, or a part of it"),
        ("node\n1\n", "its first line is"),
        ("node,stall\n1,2\n", "its first line is"),
        ("node,sent,sent\n1,2,2\n", "its first line is"),
        ("0,5\n1,3\n", "its first line is"),
        ("node,sent\n1\n", "row 2: 1: 2 whole numbers, at least 0"),
        ("node,sent\n1,2\n2,x\n", "row 3: 2,x: 2 whole numbers, at least 0"),
        ("node,sent\n1,-2\n", "row 2: 1,-2: 2 whole numbers"),
        ("node,sent\n1,2.5\n", "row 2: 1,2.5: 2 whole numbers"),
        ("node,sent\n12,5\n", "row 2: node 12: the machine has 0 … 11"),
        ("router,wait\n6,5\n", "row 2: router 6: the machine has 0 … 5"),
        ("node,sent\n1,5\n1,6\n", "row 3: node 1 was there before"),
        (f"node,sent\n1,{10**20}\n", f"row 2: {10**20}: at most {10**15}"),
        (None, "No such file or directory"),
    ],
)
def test_wrong_counters_are_refused(text: str | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "counters.csv"
    if text is not None:
        path.write_text(text)
    with pytest.raises(Refused) as refusal:
        ask(*SMALL, "--counters", str(path), "--jobs", "3", "--policy", "nedd")
    assert str(refusal.value).startswith(f"--counters {path}")
    assert message in str(refusal.value)


def test_counters_that_are_not_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "counters.csv"
    path.write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(Refused, match=r"counters\.csv: it is not a text file in UTF-8"):
        ask(*SMALL, "--counters", str(path), "--jobs", "3")


def test_who_reads_counters_says_that_it_has_none_and_who_reads_none_refuses_them(
    tmp_path: Path,
) -> None:
    asked = (*SMALL, "--jobs", "3", "--policy")
    assert "Without --counters, all routers are equal to nedd." in run(*asked, "nedd")
    assert "--counters" not in run(*asked, "fewer-router")
    with pytest.raises(Refused, match=r"--counters .*: fewer-router reads none"):
        run(*asked, "fewer-router", *written(tmp_path / "nodes.csv", BY_NODE))


def test_labels_are_shown_as_ranges() -> None:
    assert ranges(np.array([3, 1, 2, 9, 11, 12])) == "1–3, 9, 11–12"
    assert ranges(np.arange(0, 40, 2), most=3) == "0, 2, 4, … 17 more"
    assert parse_labels("0-15, 40") == [(0, 15), (40, 40)]
    assert parse_labels("") == []


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_the_command_draws_who_sits_where(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"seats.{kind}"
    assert "idle afterwards" in run(*FIGURE, "--jobs", "4,8,54", "--plot", str(path))
    assert {"png": b"\x89PNG", "svg": b"<svg", "pdf": b"%PDF"}[kind] in path.read_bytes()[:1000]


@pytest.mark.parametrize(
    ("machine", "sizes"),
    [
        pytest.param(PRESETS["kim-1056"].machine, [16] * 50, marks=pytest.mark.long),
        (PRESETS["frontier"].machine, [5000, 3]),
        (Dragonfly(1, 1, 0, 1), [1]),
        (Dragonfly(2, 60, 0, 1), [7, 7]),
    ],
)
def test_even_odd_machines_can_be_drawn(
    machine: Dragonfly, sizes: list[int], tmp_path: Path
) -> None:
    draw(place(machine, sizes), tmp_path / "seats.png")
    assert (tmp_path / "seats.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_is_the_same_each_time(tmp_path: Path) -> None:
    placed = place(PRESETS["kim-72"].machine, [3, 20], busy=[(60, 65)])
    for name in ("a.svg", "b.svg"):
        draw(placed, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_every_policy_is_listed_with_its_paper() -> None:
    table, printed = run(command=policies), json.loads(run("--json", command=policies))
    names = {kind: [entry["name"] for entry in entries] for kind, entries in printed.items()}
    assert names == {kind: [*register] for kind, register in REGISTERS.items() if register}
    assert {"routing", "allocation", "scheduling"} <= {*names}
    for kind, entries in printed.items():
        for entry in entries:
            assert entry["name"] in table
            if not REGISTERS[kind][entry["name"]].missing:  # which other tests may have left here
                assert entry["about"]
                assert entry["source"]


def test_one_policy_is_told_with_its_parameters_paper_memory_and_home() -> None:
    assert run("ugal-l", command=policies) == (
        "routing ugal-l: the shorter queue of this router, non-minimal paths counting double "
        "source Singh 2005; Kim et al., ISCA 2008 "
        "comes from built in, policies.routing.ugal.non_minimal "
        "memory none "
        "parameters threshold = 2.0 (a number, at least 0): how many times worse the minimal path "
        "may look bias = 4 (a whole number of packets): how much worse it may look in addition"
    )
    (entry,) = json.loads(run("ugal-l", "--json", command=policies))["routing"]
    assert [each["name"] for each in entry["parameters"]] == ["threshold", "bias"]
    assert entry["parameters"][1]["default"] == 4
    assert entry["plugin"] == ""


def test_a_pattern_of_traffic_tells_the_keys_that_are_about_it() -> None:
    printed = run("hotspot", command=policies)
    assert "settings traffic.hot = 0.1: " in printed
    assert " traffic.hot_every = 32: " in printed
    assert "parameters none" not in printed
    (entry,) = json.loads(run("hotspot", "--json", command=policies))["traffic"]
    assert [one["name"] for one in entry["settings"]] == ["hot", "hot_every"]
    assert "parameters none" in run("tornado", command=policies)


def test_a_policy_that_there_is_not_is_refused_with_those_near_it() -> None:
    with pytest.raises(Refused, match=r"policy 'levelspread': there is none.* mean level-spread"):
        run("levelspread", command=policies)


def test_a_plug_in_is_told_of_and_places_jobs(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "from odonata import allocation\n"
        "@allocation('from-behind', about='the last', source='ours',"
        " memory=lambda sizes: {'asked': [0]})\n"
        "def from_behind(sight, job, rng):\n"
        "    sight.memory.asked[0] += 1\n"
        "    return sight.labels[::-1][: job.nodes * int(sight.memory.asked[0] > 0)]\n"
    )
    try:
        printed = run("from-behind", "--plugin", str(path), command=policies)
        assert f"comes from {path}, " in printed
        assert "memory it remembers" in printed
        placed = run("--preset", "kim-72", "--jobs", "2,3", "--policy", "from-behind", "--plugin",
                     str(path), "--json")  # fmt: skip
        assert json.loads(placed)["jobs"] == [[71, 70], [69, 68, 67]]
    finally:
        ALLOCATIONS.pop("from-behind", None)
        PLUGINS.clear()
        os.environ.pop(ENVIRONMENT, None)
