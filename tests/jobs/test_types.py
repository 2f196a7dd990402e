"""Types of jobs: the tables there are, files of one's own, which jobs have which type, [power]."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odonata.jobs.power import Power
from odonata.traces.trace import UNKNOWN, Trace
from odonata.traces.types import JobType, Types
from pdes.errors import Refused

AQA, QOSG = Types.of("aqa"), Types.of("qosg")

# -- the tables that come with the package

T2 = """bt.C.16 1 73 339 86 249 2.5; bt.C.25 1 53 402 70 276 4.7; mg.D.16 1 84 380 105 266 2.8;
sp.C.16 1 54 375 62 267 7.1; ep.D.88 4 40 360 53 237 6.3; is.D.32 3 42 249 42 241 5.6;
bt.C.36 2 38 343 46 249 3.1; bt.D.49 2 551 391 729 250 5.6; ep.D.64 3 54 353 70 237 3.9;
sp.D.100 4 343 399 381 264 3.3; lu.D.224 8 89 400 119 250 7.6; ep.D.28 1 124 383 175 238 5.9;
cg.C.4 1 28 238 28 239 4.0; bt.D.25 1 1022 402 1370 254 3.2; lu.D.28 1 763 429 954 270 5.0;
mg.D.8 1 141 297 151 258 2.9; sp.D.16 1 1165 355 1302 270 5.5; is.D.4 1 122 204 123 194 7.3;
cg.D.16 1 743 326 823 253 7.3; ep.D.56 2 64 383 90 238 2.0; ft.D.64 3 284 321 313 247 3.1;
ft.D.128 6 165 321 179 242 7.7; sp.D.196 8 329 370 352 253 3.7; lu.C.28 1 29 413 43 255 6.9;
cg.D.128 6 231 336 242 246 4.0; cg.D.32 3 364 281 390 246 5.5; ep.D.100 4 36 366 49 238 4.5;
is.D.64 4 27 287 28 228 3.1; lu.D.112 4 164 405 222 251 4.1; mg.D.32 2 49 378 58 266 5.0;
sp.C.64 3 31 371 32 258 2.2"""
"""Table 2, in the order of its columns: m, T_min, p_max, T_max, p_min, Q_thres."""


def test_aqa_is_table_2() -> None:
    rows = [row.split() for row in T2.split(";")]
    assert AQA.names == tuple(row[0] for row in rows)
    assert AQA.idle_w == 169
    m, t_min, p_max, t_max, p_min, q = np.array([row[1:] for row in rows], float).T
    assert (AQA.nodes == m).all()
    assert (AQA.shortest_s == t_min).all()
    assert (AQA.most_w == p_max).all()
    assert (AQA.least_w == p_min).all()
    assert (AQA.slowdown == t_max / t_min).all()
    assert (AQA.threshold == q).all()
    assert np.isnan(AQA.delay_rate).all()


def test_qosg_is_table_2_2_with_what_the_printed_bid_implies() -> None:
    rows = {one.name: one for one in QOSG}
    assert QOSG.names == ("fs", "sc", "bt", "lu", "mg", "sp", "ft")
    assert QOSG.idle_w == 90
    lu = rows["lu"]
    assert (lu.shortest_s, lu.most_w, lu.least_w, lu.nodes) == (62.8, 262, 231, 1)
    assert lu.longest_s == pytest.approx(85.3)
    assert (rows["mg"].longest_s, rows["sc"].least_w) == (pytest.approx(161.2), 218)
    assert QOSG.threshold.tolist() == [0.52, 0.25, 0.55, 0.28, 0.46, 0.46, math.inf]
    assert [one.delay_rate for one in QOSG] == [0.0196, 0.311, 0.0163, 0.449, 0.0099, 0.038, None]


def test_a_type_that_draws_less_without_a_cap_is_never_made_to_draw_more() -> None:
    at = AQA.place("cg.C.4")
    assert (AQA.most_w[at], AQA.least_w[at], AQA.low_w[at]) == (238, 239, 238)
    assert (AQA.low_w <= AQA.most_w).all()


def test_columns_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        AQA.most_w[0] = 1


# -- tables of one's own

HEADER = "type,power_max_w,power_min_w,slowdown\n"


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "types.csv"
    path.write_text(text)
    return str(path)


def test_a_table_may_have_any_order_comments_and_another_separator(tmp_path: Path) -> None:
    path = written(tmp_path, "# mine\n\npower_min_w;type;power_max_w;slowdown;by\n"
                   "200; a ;300;1.5;\n180;>=64;320;2;nodes\n150;rest;310;1;any\n"
                   ";idle;95;;idle\n")  # fmt: skip
    table = Types.of(path)
    assert table.idle_w == 95
    assert table.rows == (
        JobType("a", 300, 200, 1.5), JobType(">=64", 320, 180, 2.0, by="nodes", fewest=64),
        JobType("rest", 310, 150, 1.0, by="any"),
    )  # fmt: skip


def test_a_file_that_changed_is_read_again(tmp_path: Path) -> None:
    one = Types.of(written(tmp_path, HEADER + "a,300,200,1.5\n"))
    two = Types.of(written(tmp_path, HEADER + "a,300,200,1.25\n"))
    assert (one[0].slowdown, two[0].slowdown) == (1.5, 1.25)
    assert one.digest != two.digest


def test_rows_in_an_experiment_are_as_those_of_a_file(tmp_path: Path) -> None:
    rows = [{"type": "a", "power_max_w": 300, "power_min_w": 200.0, "slowdown": 1.5}]
    of_file = Types.of(written(tmp_path, HEADER + "a,300,200,1.5\n"))
    assert Types.of(rows).digest == of_file.digest
    assert Types.of(tuple(tuple(row.items()) for row in rows)).rows == of_file.rows


numbers = st.floats(0.01, 1000, allow_nan=False)
names = st.from_regex(r"[A-Za-z0-9._=,\"'-]{1,12}", fullmatch=True)


@given(st.lists(st.builds(
    JobType, names, numbers, numbers, st.floats(1, 100), st.none() | st.integers(1, 10**6),
    st.none() | numbers, st.just(math.inf) | numbers, st.none() | numbers,
    st.sampled_from(["application", "user", "project"]),
), min_size=1, max_size=5, unique_by=lambda it: it.name), st.none() | numbers)  # fmt: skip
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[JobType], idle_w: float | None
) -> None:
    table = Types(tuple(rows), "x", idle_w)
    path = tmp_path_factory.mktemp("t") / "types.csv"
    path.write_text(table.csv(), encoding="utf-8")
    assert Types.of(path).digest == table.digest


@pytest.mark.parametrize("name", ["aqa", "qosg"])
def test_the_tables_that_come_with_the_package_are_a_pattern(name: str, tmp_path: Path) -> None:
    assert Types.of(written(tmp_path, Types.of(name).csv())).digest == Types.of(name).digest


FULL = "type,by,nodes,time_min_s,time_max_s,power_max_w,power_min_w,q_threshold,delay_rate_per_s\n"
ODD = {
    "": "it is empty: a header of type, by",
    "type,power_max_w,watt\n": "line 1: column 'watt': unknown; there are type, by",
    "type,type,power_max_w\n": "line 1: column type: there twice",
    "type,power_min_w,slowdown\n": r"line 1: a column is missing: power_max_w \(what a node "
    r"draws without a cap, in W\); there are type, power_min_w, slowdown$",
    "type,power_max_w\na,300\n": r"line 1: columns are missing: power_min_w \(the lowest .*\), "
    r"slowdown \(or time_min_s and time_max_s\); there are type, power_max_w$",
    "type,power_max_w,power_min_w,time_max_s\na,300,200,9\n": "a column is missing: slowdown",
    HEADER: "no row of a type",
    HEADER + "a,300,200\n": "line 2: 3 columns, and the header in line 1 has 4",
    HEADER + "a,0,200,1\n": "line 2, column power_max_w: 0: a number, 0.001 .. 1e",
    HEADER + "a,-3,200,1\n": "line 2, column power_max_w: -3: a number, 0.001 .. 1e",
    HEADER + "a,300,x,1\n": "line 2, column power_min_w: x: a number",
    HEADER + "a,300,nan,1\n": "line 2, column power_min_w: nan: a number",
    HEADER + "a,300 W,200,1\n": "column power_max_w: 300 W: a number, .*without a unit",
    HEADER + "a,300,,1\n": "line 2, column power_min_w: empty",
    HEADER + "a,300,200,0.9\n": "line 2, column slowdown: 0.9: a number, 1 .. 1,000",
    HEADER + "a,300,200,\n": "column slowdown: empty: .* is needed, or time_max_s",
    HEADER + ",300,200,1\n": "line 2, column type: '': a name",
    HEADER + "a,300,200,1\na,310,200,1\n": "line 3, column type: a: there twice",
    "type;power_max_w;power_min_w;slowdown\na;300,5;2;1\n": "its decimal sign must be a point",
    FULL + "a,,1,10,9,300,200,,\n": "column time_max_s: 9: at least time_min_s, 10 s",
    FULL + "a,,1,,9,300,200,,\n": "column time_max_s: 9: time_min_s is needed as well",
    FULL + "a,,0,10,11,300,200,,\n": "column nodes: 0: a whole number, 1 .. 1,000,000,000",
    FULL + "a,,1.5,10,11,300,200,,\n": "column nodes: 1.5: a whole number",
    FULL + "a,,1,10,11,300,200,0,\n": "column q_threshold: 0: a number, at least",
    FULL + "a,,1,10,11,300,200,,-1\n": "column delay_rate_per_s: -1: a number",
    FULL + "a,queue,1,10,11,300,200,,\n": "column by: 'queue': one of application, user",
    FULL + "4-1,nodes,1,10,11,300,200,,\n": "column type: '4-1': sizes of jobs, as 4, 1-4",
    FULL + "few,nodes,1,10,11,300,200,,\n": "column type: 'few': sizes of jobs",
    FULL + "2-4,nodes,1,10,11,300,200,,\n": "column nodes: 1: within the sizes of the type",
    FULL + "r,any,,1,1,3,2,,\na,,,1,1,3,2,,\n": "line 3, column type: a: below the row with by",
    FULL + "i,idle,,,,,,,\na,,,1,1,3,2,,\n": "line 2, column power_max_w: a number is needed",
    FULL + "i,idle,,,,9,,,\nj,idle,,,,9,,,\na,,,1,1,3,2,,\n": "line 3, .*idle: there twice",
}  # fmt: skip


@pytest.mark.parametrize("text", ODD)
def test_what_is_odd_in_a_file_is_refused_with_its_place(text: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    with pytest.raises(Refused, match=ODD[text]) as refusal:
        Types.of(path)
    assert "types.csv" in str(refusal.value)


def test_all_that_is_odd_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(Refused) as refusal:
        Types.of(written(tmp_path, HEADER + "a,0,200,1\nb,300,200,0\n"))
    assert len(str(refusal.value).splitlines()) == 2


def test_tables_that_are_none_are_refused(tmp_path: Path) -> None:
    known = "one of aqa, qosg, meggie-like, emmy-like, or a file"
    for odd, words in (("foo", known), ("no.csv", "No such file"),
                       (7, "aqa, qosg"), ([], "no row"), ([3], "row 1: a table"),
                       ([{"type": "a", "watt": 3}], "row 1: column 'watt': unknown")):  # fmt: skip
        with pytest.raises(Refused, match=words):
            Types.of(odd)
    (tmp_path / "latin.csv").write_bytes(b"type,power_max_w\n\xe9,3\n")
    with pytest.raises(Refused, match="not text in UTF-8"):
        Types.of(tmp_path / "latin.csv")


# -- which job has which type


def jobs(applications: list[str], users: list[str], nodes: list[int]) -> Trace:
    def codes(names: list[str]) -> tuple[Any, tuple[str, ...]]:
        known = tuple(dict.fromkeys(names))
        return np.array([known.index(name) for name in names]), known

    count = len(nodes)
    (application, known), (user, people) = codes(applications), codes(users)
    return Trace("few", np.arange(count), np.arange(count), np.full(count, 5), np.array(nodes),
                 np.full(count, 5), user, np.zeros(count), application, np.full(count, UNKNOWN),
                 users=people, applications=known)  # fmt: skip


ROW = {"power_max_w": 300, "power_min_w": 200, "slowdown": 1.5}
RULES = [{"type": "bt", **ROW}, {"type": "eve", "by": "user", **ROW},
         {"type": "1-4", "by": "nodes", **ROW}, {"type": "sp", **ROW},
         {"type": ">=64", "by": "nodes", **ROW}]  # fmt: skip
FEW = jobs(["bt", "lu", "sp", "sp", "lu", "lu"], ["al", "eve", "al", "al", "al", "al"],
           [1, 1, 4, 5, 64, 2])  # fmt: skip


def test_a_job_has_the_first_type_that_matches() -> None:
    found = Types.of(RULES).match(FEW)
    assert found.dtype == np.int64
    assert found.tolist() == [0, 1, 2, 3, 4, 2]


def test_jobs_of_no_type_are_refused_and_any_takes_them() -> None:
    with pytest.raises(Refused, match=r"few: 2 of 6 jobs have no type: jobs of application lu; "
                       r"user al\. Types inline has bt, user eve, sp; a last row with by = any"
                       ):  # fmt: skip
        Types.of([RULES[0], RULES[1], RULES[3]]).match(FEW)
    with pytest.raises(Refused, match=r"few: 3 of 6 jobs have no type: jobs of 1, 64 nodes\. Types"
                       ):  # fmt: skip
        Types.of([RULES[2] | {"type": "2-5"}]).match(FEW)
    rest = {"type": "rest", "by": "any", **ROW}
    assert Types.of([RULES[0], rest]).match(FEW).tolist() == [0, 1, 1, 1, 1, 1]


def test_types_are_matched_as_one_by_one() -> None:
    rng = np.random.default_rng(2)
    apps, users = (rng.choice(list("abcd"), 300).tolist() for _ in "12")
    trace = jobs(apps, users, rng.integers(1, 100, 300).tolist())
    table = Types.of([{"type": "a", **ROW}, {"type": "10-20", "by": "nodes", **ROW},
                      {"type": "b", "by": "user", **ROW}, {"type": "c", **ROW},
                      {"type": "<=5", "by": "nodes", **ROW},
                      {"type": "x", "by": "any", **ROW}])  # fmt: skip

    def first(app: str, user: str, nodes: int) -> int:
        rules = (app == "a", 10 <= nodes <= 20, user == "b", app == "c", nodes <= 5, True)
        return rules.index(True)

    assert table.match(trace).tolist() == [*map(first, apps, users, trace.nodes.tolist())]


# -- [power]


def test_power_takes_its_limits_from_types() -> None:
    power = Power(types="aqa")
    assert (power.idle, power.maximum, power.least, power.least_of_all) == (169, 429, 194, 194)
    assert power.sleep == 10
    assert power.kinds is not None
    assert power.kinds.name == "aqa"
    assert Power().kinds is None
    mine = Power(types=[{"type": "a", **ROW}], idle_w=150.0, maximum_w=400.0)
    assert (mine.idle, mine.maximum, mine.least) == (150, 400, 200)
    assert Power(types=[{"type": "a", **ROW}]).idle == 100


UNFIT: dict[str, tuple[dict[str, Any], str]] = {
    "demand": ({"demand": "constant"}, "demand = constant: .*types say what jobs demand"),
    "applications": ({"applications": "cab"}, "applications = cab: leave it out, or types"),
    "variation": ({"variation": 0.2}, "variation = 0.2: .*every node"),
    "active": ({"active_w": 300.0}, "active = 300.0: .*without a cap"),
    "least": ({"least_w": 100.0}, "least = 100.0: .*lowest cap"),
    "slowdown": ({"slowdown": 2.0}, "slowdown = 2.0: .*longer"),
    "idle": ({"idle_w": 200.0}, "idle = 200 W: at most 194 W, which a node of type is.D.4 draws"),
    "sleep": ({"sleep_w": 180.0}, "sleep = 180 W: at most idle, 169 W"),
    "maximum": ({"maximum_w": 300.0}, "maximum = 300 W: at least 429 W, .*lu.D.28"),
    "table": ({"types": "foo"}, "types: foo: one of aqa, qosg"),
    "row": (
        {"types": [{"type": "a", "power_max_w": 0}]},
        "types: row 1, power_min_w: empty.*\ntypes: row 1, power_max_w: 0",
    ),
}


@pytest.mark.parametrize("case", UNFIT)
def test_what_does_not_go_with_types_is_refused_by_name(case: str) -> None:
    given, words = UNFIT[case]
    with pytest.raises(Refused, match=words):
        Power(**{"types": "aqa"} | given)


def test_a_file_is_read_when_it_is_needed_and_blamed_by_its_key(tmp_path: Path) -> None:
    gone = Power(types=str(tmp_path / "gone.csv"))
    with pytest.raises(Refused, match=r"power.types: .*gone.csv: No such file"):
        gone.kinds  # noqa: B018
    hot = Power(types=written(tmp_path, HEADER + "a,300,200,1\n"), idle_w=250.0)
    with pytest.raises(Refused, match=r"power\.idle = 250 W: at most 200 W"):
        hot.kinds  # noqa: B018


def test_an_experiment_has_types_by_name_by_file_or_inline(tmp_path: Path) -> None:
    from odonata.experiment.reading import parse

    written(tmp_path, HEADER + "fs,142,137,1.03\nbt,279,241,1.3\n")
    base = 'fidelity = "job"\n[trace]\nmodel = "mix"\nmix = ["fs", "bt"]\nnodes = 50\n[power]\n'
    inline = 'types = [{ type = "fs", nodes = 1, time_min_s = 50, slowdown = 1.1, power_max_w = ' \
             '150, power_min_w = 140 }, { type = "bt", nodes = 2, time_min_s = 9, slowdown = 1, ' \
             'power_max_w = 250, power_min_w = 240 }]'  # fmt: skip
    made = parse(base + inline, "a.toml")
    assert made.power is not None
    assert made.power.kinds is not None
    assert made.power.kinds.names == ("fs", "bt")
    assert parse(made.to_toml(), "b.toml").power == made.power
    assert parse(base + 'types = "qosg"', "a.toml").power.kinds == QOSG
    with pytest.raises(Refused, match="fs: its type has no time_min_s"):
        parse(base + 'types = "types.csv"', str(tmp_path / "a.toml"))
    with pytest.raises(Refused, match=r"power.types.*a name, a CSV file, or tables"):
        parse(base + "types = 3", "a.toml")
    with pytest.raises(Refused, match=r"power.types.*row 1, power_min_w: empty"):
        parse(base + 'types = [{ type = "fs", power_max_w = 3, slowdown = 1 }]', "a.toml")
