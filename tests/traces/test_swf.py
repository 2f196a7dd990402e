"""The Standard Workload Format: what is kept, what is not and why; writing loses nothing."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import PATIENCE, clean_environment, examples
from hypothesis import given, settings
from hypothesis import strategies as st

from odonata.traces import swf
from odonata.traces.columns import LONGEST_US
from odonata.traces.reading import read
from odonata.traces.trace import COLUMNS, UNKNOWN, Account, Trace
from pdes.errors import Refused

DATA = Path(__file__).parents[3] / "shared" / "data"
JOB = "1 0 5 100 4 -1 -1 4 200 -1 1 7 8 9 1 1 -1 -1"


NAMES = ["number", "submit", "wait", "run", "allocated", "cpu", "memory", "requested", "limit",
         "asked_memory", "status", "user", "group", "executable", "queue", "partition", "preceding",
         "think"]  # fmt: skip


def data(name: str) -> Path:
    if not (DATA / name).exists():
        pytest.skip(f"{name} is not in shared/data beside the repository")
    return DATA / name


def line(**fields: object) -> str:
    """A job's line with some fields changed."""
    assert {*fields} <= {*NAMES}
    return " ".join(str(fields.get(name, given))
                    for name, given in zip(NAMES, JOB.split(), strict=True))  # fmt: skip


def trace(*lines: str) -> Trace:
    return swf.read(["\n".join(lines).encode()], "some.swf")


def times(text: str) -> int:
    return int(trace(line(run=text)).run_us[0])


def equal(one: Trace, other: Trace) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in COLUMNS)


# -- what is read


def test_every_field_that_counts_is_where_it_belongs() -> None:
    made = trace("; MaxNodes: 64", JOB)
    assert {name: int(column[0]) for name, column in made.columns()} == {
        "number": 1, "submit_us": 0, "wait_us": 5_000_000, "run_us": 100_000_000, "nodes": 4,
        "requested_us": 200_000_000, "user": 0, "project": 0, "application": 0,
    }  # fmt: skip
    assert (made.users, made.projects, made.applications) == (("7",), ("8",), ("9",))
    assert made.machine_nodes == 64
    assert made.account == Account(1)
    assert made.name == "some"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"run": -1}, "run time unknown"),
        ({"run": -7}, "run time unknown"),
        ({"requested": -1, "allocated": 0}, "size unknown"),
        ({"requested": 10**12}, "size above 1,000,000,000"),
        ({"submit": -1}, "time of submission unknown or below 0"),
        ({"status": 2}, "part of a checkpointed job (status 2, 3 or 4): only the whole job counts"),
        ({"status": 4}, "part of a checkpointed job (status 2, 3 or 4): only the whole job counts"),
        ({"status": 5, "run": 0}, "cancelled before it ran (status 5, run time 0)"),
        ({"run": "9" * 40}, "a time of more than 1,000 years"),
        ({"limit": "1e400"}, "a time of more than 1,000 years"),
        ({"submit": LONGEST_US // 10**6 + 1}, "a time of more than 1,000 years"),
        ({"user": "9" * 40}, "a fraction (or more than 18 digits) where a whole number belongs"),
        ({"number": "1.5"}, "a fraction (or more than 18 digits) where a whole number belongs"),
        ({"cpu": "nan"}, "a line with fields that are not numbers"),
        ({"run": "inf"}, "a line with fields that are not numbers"),
        ({"run": "1e"}, "a line with fields that are not numbers"),
        ({"run": "."}, "a line with fields that are not numbers"),
        ({"run": "--1"}, "a line with fields that are not numbers"),
        ({"think": "1.2.3"}, "a line with fields that are not numbers"),
        ({"think": ""}, "a line that has not 18 fields (or 21, or text after the 18th)"),
        ({"think": "1 2"}, "a line that has not 18 fields (or 21, or text after the 18th)"),
    ],
)
def test_what_cannot_be_a_job_is_dropped_with_its_reason(
    changes: dict[str, object], reason: str
) -> None:
    made = trace(JOB, line(**changes))
    assert made.account == Account(2, {reason: 1})
    assert len(made) == 1
    with pytest.raises(Refused, match=r"some\.swf: no job is left of 1 records \(1 dropped: "):
        trace(line(**changes))


@pytest.mark.parametrize(
    "more",
    ["-1 {1,1} q_1d 1:ppn=4", "-1 1 2 3", "-1 q_1d", "-1 {1,1} q_1d 1:ppn=4:mem=2gb x y", "-1 ; x"],
)
def test_fields_after_the_eighteenth_are_not_read_whatever_they_are(more: str) -> None:
    made = trace(JOB, line(number=2, submit=1, think=more), line(number=3, submit=2))
    assert made.account == Account(3)
    assert equal(made, trace(JOB, line(number=2, submit=1), line(number=3, submit=2)))


def test_a_file_without_a_header_whose_lines_end_in_text_is_swf(tmp_path: Path) -> None:
    (tmp_path / "it").write_text(f"{JOB} {{1,1}} q_1d 1:ppn=4\n")
    assert len(read(tmp_path / "it")) == 1


def test_what_may_be_a_job_is_kept() -> None:
    made = trace(line(run=0), line(run=0, status=0), line(status=5), line(think="-1 7 7.5 7"))
    assert made.account == Account(4)
    assert made.run_us.tolist() == [0, 0, 100_000_000, 100_000_000]


def test_a_size_is_what_was_requested_and_else_what_was_allocated() -> None:
    made = trace(line(requested=8), line(requested=-1), line(requested=0), line(requested="2.25"))
    assert made.nodes.tolist() == [8, 4, 4, 3]
    assert made.account.repaired == {"size a fraction: rounded up": 1}


def test_requested_and_wait_times_that_cannot_be_are_unknown_and_counted() -> None:
    made = trace(line(limit=-1, wait=-1), line(limit=0), line(limit=-3), line(wait=-20))
    assert made.requested_us.tolist() == [UNKNOWN, UNKNOWN, UNKNOWN, 200_000_000]
    assert made.wait_us.tolist() == [UNKNOWN, 5_000_000, 5_000_000, UNKNOWN]
    assert made.account.repaired == {
        "requested time of 0 or less: taken as unknown": 2,
        "wait time below 0: taken as unknown": 1,
    }


def test_jobs_out_of_order_are_sorted_stably_and_counted() -> None:
    made = trace(*(line(number=number, submit=submit, user=number)
                   for number, submit in enumerate([5, 9, 5, 3, 9])))  # fmt: skip
    assert made.number.tolist() == [3, 0, 2, 1, 4]
    assert made.account.repaired == {
        "submitted before a job above it: put in order of submission": 2
    }
    assert made.users == ("3", "0", "2", "1", "4")
    assert made.user.tolist() == [0, 1, 2, 3, 4]


def test_users_are_named_in_the_order_of_their_first_kept_job() -> None:
    made = trace(line(user=9, run=-1), line(user=4), line(user=-1), line(user=10**17),
                 line(user=4), line(user=-5))  # fmt: skip
    assert made.users == ("4", "", "1" + "0" * 17)
    assert made.user.tolist() == [0, 1, 2, 0, 1]


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("552.21", 552_210_000), ("0.1", 100_000), ("0.0000005", 1), ("0.00000049999", 0),
        (".5", 500_000), ("5.", 5_000_000), ("+5", 5_000_000), ("1e2", 100_000_000),
        ("1.5E-3", 1500), ("12e-1", 1_200_000), ("0e99999999999", 0), ("1e-99999999999", 0),
        ("31535999999.9999994", LONGEST_US - 1), ("31536000000", LONGEST_US),
        ("000000000000001", 10**6), ("-0", 0), ("0." + "3" * 400, 333_333),
        ("0" * 400 + "2.5", 2_500_000),
        ("123456789.123456499999999999999999", 123_456_789_123_456),
    ],
)  # fmt: skip
def test_decimals_are_exact_to_the_microsecond(text: str, us: int) -> None:
    assert times(text) == us


@given(st.decimals(0, 31_535_999_999, allow_nan=False, allow_infinity=False, places=6))
@examples(25)
def test_every_time_of_six_decimals_is_exact(value: object) -> None:
    assert times(str(value)) == int(value * 10**6)  # type: ignore[operator]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\n\n", " \t\n"])
def test_lines_may_end_in_any_way(end: str) -> None:
    text = end.join(["; MaxProcs: 9", "  ", JOB.replace(" ", "\t"), "", JOB])
    made = swf.read([text.encode()], "x.swf")
    assert (len(made), made.account, made.machine_nodes) == (2, Account(2), 9)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=30))
@settings(max_examples=30)
def test_where_pieces_of_the_text_end_does_not_matter(cuts: list[int]) -> None:
    text = ("; MaxProcs: 99\r\n" + "\r\n".join(line(number=n, submit=n) for n in range(9))).encode()
    pieces, at = [], 0
    for cut in cuts:
        pieces.append(text[at : at + cut])
        at += cut
    made = swf.read([*pieces, text[at:]], "x.swf")
    assert equal(made, swf.read([text], "x.swf"))
    assert made.header == ("MaxProcs: 99",)
    assert len(made) == 9


def test_comments_are_kept_whatever_their_encoding_and_number() -> None:
    text = b"; caf\xe9\n;\xc3\xa9\n" + b";c\n" * 3000 + JOB.encode() + b"\n;  end  "
    header = swf.read([text], "x.swf").header
    assert header[:2] == ("café", "é")
    assert len(header) == 3003
    assert header[-1] == " end"


@pytest.mark.parametrize(
    ("header", "nodes"),
    [
        (["MaxNodes: 64", "MaxProcs: 128"], 128), (["MaxProcs:  7 (some)"], 7),
        (["MaxProcs: -1"], None), (["MaxProcs: 0", "MaxNodes: 3"], 3), (["MaxProcs: many"], None),
        ([], None),
        (["MaxProcs: " + "9" * 30], None), (["Note: MaxProcs: 7"], None),
    ],
)  # fmt: skip
def test_the_size_of_the_machine_is_in_the_header(header: list[str], nodes: int | None) -> None:
    assert trace(*(f"; {each}" for each in header), JOB).machine_nodes == nodes


def test_many_lines_are_read_in_pieces() -> None:
    count = 200_000
    block = "".join(line(number=n, submit=n, user=n % 300) + "\n" for n in range(1000)).encode()
    made = swf.read((block for _ in range(count // 1000)), "x.swf")
    assert len(made) == made.account.records == count
    assert int(made.number.sum()) == sum(range(1000)) * count // 1000
    assert made.submit_us[-1] == 999_000_000
    assert made.nodes.sum() == 4 * count
    assert len(made.users) == 300


def test_a_line_without_end_is_refused() -> None:
    with pytest.raises(Refused, match=r"x\.swf: line 2 has more than 1,048,576 bytes"):
        swf.read([JOB.encode() + b"\n", *[b"1 " * 2**18] * 4], "x.swf")


def test_without_the_compiler_a_file_is_read_alike(tmp_path: Path) -> None:
    texts = ["552.21", "-1", "1e3", "nan", "0." + "7" * 30, "9" * 40, "-1.5", "4e-7", "", "x", "-0"]
    lines = [line(number=n, **{field: text}) for n, (field, text) in enumerate(
        (field, text) for text in texts for field in ("submit", "wait", "run", "requested", "limit",
                                                      "user", "status"))]  # fmt: skip
    path = tmp_path / "odd.swf"
    path.write_text("\n".join(["; MaxProcs: 4", *lines, "hello", ""]))
    code = (
        f"from odonata.traces.reading import read; t = read({str(path)!r}); from pdes import jit; "
        "print(jit.ENABLED, {n: c.tolist() for n, c in t.columns()}, t.account, t.users)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True,
        timeout=PATIENCE, check=False, env={**clean_environment(), "ODONATA_JIT": "0"},
    )  # fmt: skip
    made = read(path)
    columns = {name: column.tolist() for name, column in made.columns()}
    assert done.stdout.strip() == f"False {columns} {made.account} {made.users}", done.stderr
    assert made.account.total_dropped > 5


# -- real files


def test_the_nasa_log_is_read_whole() -> None:
    made = read(data("nasa-ipsc-1993-cln.swf.gz"))
    assert (len(made), made.account, made.machine_nodes) == (18_239, Account(18_239), 128)
    assert (made.requested_us == UNKNOWN).all()
    assert made.submit_us[-1] == 7_948_936 * 10**6
    assert made.header[1] == "Computer: Intel iPSC/860"
    assert made.name == "nasa-ipsc-1993-cln"
    assert made.load(128) == pytest.approx(0.467, abs=0.01)


def test_of_the_hpc2n_sample_all_but_unknown_run_times_are_kept() -> None:
    made = read(data("hpc2n-sample.swf"))
    assert made.account == Account(3170, {"run time unknown": 25})
    assert (len(made), made.machine_nodes) == (3145, 240)
    assert (made.requested_us > 0).all()


# -- what is written


def written(made: Trace, **options: object) -> str:
    file = io.StringIO()
    swf.write(file, made, **options)  # type: ignore[arg-type]
    return file.getvalue()


def again(made: Trace, **options: object) -> Trace:
    return swf.read([written(made, **options).encode()], made.name)


counts = st.integers(0, 3 * 10**9)
jobs = st.lists(
    st.tuples(st.integers(-1, 10**17), counts, counts, st.integers(1, 10**9), counts, counts,
              st.integers(0, 3)),
    min_size=1, max_size=20,
)  # fmt: skip


@given(jobs, st.sampled_from([1, 10**3, 10**6]), st.none() | st.integers(1, 10**6))
@examples(20)
def test_what_is_written_is_read_again(
    rows: list[tuple[int, ...]], unit: int, nodes: int | None
) -> None:
    rows = sorted(rows, key=lambda row: row[1])
    number, submit, run, size, request, wait, user = (np.array(c) for c in zip(*rows, strict=True))
    order = list(dict.fromkeys(user.tolist()))
    codes = [order.index(each) for each in user.tolist()]
    names = tuple(("", "17", "3", "1000000")[each] for each in order)
    made = Trace(
        "x", number, submit * unit, run * unit, size, np.where(request, request * unit, UNKNOWN),
        codes, codes, codes, np.where(wait % 3, wait * unit, UNKNOWN),
        names, names, names, nodes,
    )  # fmt: skip
    back = again(made)
    assert equal(made, back)
    assert (back.users, back.projects, back.applications) == (names,) * 3
    assert back.machine_nodes == nodes
    assert back.account == Account(len(made))


@pytest.mark.parametrize("name", ["nasa-ipsc-1993-cln.swf.gz", "hpc2n-sample.swf"])
@pytest.mark.parametrize("suffix", [".swf", ".swf.gz"])
def test_real_files_survive_being_written(name: str, suffix: str, tmp_path: Path) -> None:
    made = read(data(name))
    path = tmp_path / f"again{suffix}"
    swf.write(path, made)
    back = read(path)
    assert equal(made, back)
    assert (back.users, back.machine_nodes) == (made.users, made.machine_nodes)
    assert (path.read_bytes()[:2] == b"\x1f\x8b") == suffix.endswith("gz")


def test_two_packed_files_of_one_trace_have_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.swf.gz", "b.swf.gz"):
        swf.write(tmp_path / name, trace(JOB))
    assert (tmp_path / "a.swf.gz").read_bytes() == (tmp_path / "b.swf.gz").read_bytes()
    assert b"Odonata" in gzip.decompress((tmp_path / "a.swf.gz").read_bytes())


def test_waits_and_states_are_filled_in() -> None:
    text = written(trace(JOB, JOB), waits_us=[1_500_000, -1], status=[1, 0])
    assert text.splitlines()[-2:] == [
        "1 0 1.5 100 4 -1 -1 4 200 -1 1 7 8 9 -1 -1 -1 -1",
        "1 0 -1 100 4 -1 -1 4 200 -1 0 7 8 9 -1 -1 -1 -1",
    ]
    with pytest.raises(ValueError, match="waits_us"):
        written(trace(JOB), waits_us=[1, 2])


def test_of_the_header_only_what_is_still_true_is_kept() -> None:
    source = trace(
        "; Version: 2", ";", "; Computer: Seth", "; Note: one", ";       and more", "; MaxJobs: 99",
        "; Queue: 1 batch", ";    of the night", "; just words", "; Information: http://a.b/",
        ";     http://c.d/", "; MaxProcs: 32", JOB,
    )  # fmt: skip
    lines = [one for one in written(source, comments=["Note: two\nlines"]).splitlines()
             if one.startswith(";")]  # fmt: skip
    assert lines == [
        "; Version: 2", "; Computer: Seth", "; Note: one", ";       and more",
        "; Information: http://a.b/", ";     http://c.d/", "; MaxJobs: 1", "; MaxRecords: 1",
        "; MaxNodes: 32", "; MaxProcs: 32", "; Note: written by Odonata", "; Note: two lines",
    ]  # fmt: skip
    twice = written(again(source, comments=["Note: two\nlines"]), comments=["Note: two\nlines"])
    assert twice == written(source, comments=["Note: two\nlines"])


def test_names_that_are_not_numbers_survive_as_comments() -> None:
    names = ("", "alice", "1", "bob b", "007", "zoë")
    codes = range(6)
    ones = np.ones(6, np.int64)
    made = Trace("x", codes, ones, ones, ones, ones, codes, codes, codes, ones, names, names, names)
    back = again(made)
    assert (back.users, back.applications) == (names, names)
    assert equal(made, back)
    assert "; User: 2 alice\n" in written(made)
