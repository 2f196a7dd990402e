"""Files of jobs: their format is found, and whatever is wrong with one is said in one line."""

from __future__ import annotations

import gzip
import json
import os
import random
import threading
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st

from odonata.traces import lines
from odonata.traces.reading import FORMATS, format_of, read
from odonata.traces.trace import Trace
from pdes.errors import Refused

JOB = "1 0 5 100 4 -1 -1 4 200 -1 1 7 8 9 1 1 -1 -1\n"
SWF = f"; MaxProcs: 64\n{JOB}"
BATSIM = (
    '{"nb_res": 4, "jobs": [{"id": "w0!3", "subtime": 1.5, "res": 2, "profile": "p"}],'
    ' "profiles": {"p": {"type": "delay", "delay": 10}}}'
)
SACCT = """JobID|Submit|Start|End|Elapsed|NNodes
3|2024-01-01T00:00:00|2024-01-01T00:01:00|2024-01-01T00:11:00|00:10:00|2
"""
KARELIAN = "interarrival,delays,service,cores_used\n5.0,1.0,10.0,2.0\n"
TEXTS = {"swf": SWF, "batsim": BATSIM, "sacct": SACCT, "karelian": KARELIAN}


def file(folder: Path, content: str | bytes, name: str = "jobs") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def refusal(path: str | Path, format: str | None = None) -> str:
    """The one line that says what is wrong, and that it begins with the file's name."""
    with pytest.raises(Refused) as refused:
        read(path, format)
    words = str(refused.value)
    assert words.startswith(str(path))
    assert "\n" not in words
    return words.removeprefix(str(path))


# -- the format


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("before", ["", "\ufeff", "\n\n"])
def test_the_format_is_found_by_what_a_file_holds(
    name: str, packed: bool, before: str, tmp_path: Path
) -> None:
    content = (before + TEXTS[name]).encode()
    path = file(tmp_path, gzip.compress(content) if packed else content, "jobs.txt")
    made = read(path)
    assert len(made) == 1
    assert made.name == "jobs"
    assert made.account.records == 1
    assert (made.nodes[0], made.run_us[0] % 10_000_000) == (4 if name == "swf" else 2, 0)
    assert np.array_equal(read(path, name).submit_us, made.submit_us)


@pytest.mark.parametrize(
    ("text", "path", "found"),
    [
        ("1 0 5 100 4\n", "x", "swf"), ("words\n", "x.swf", "swf"), ("words\n", "x.SWF.gz", "swf"),
        ("a,b\n", "x.csv", "karelian"), ("[]", "x.json", "batsim"), ("a|b\n", "x.sacct", "sacct"),
        ("JobIDRaw|Submit", "x.csv", "sacct"), ("a|b\n", "x", None), ("words\n", "x.txt", None),
        ("", "", None), ('"interarrival","delays"', "", "karelian"), (" {", "x.swf", "batsim"),
    ],
)  # fmt: skip
def test_content_tells_the_format_before_the_suffix(
    text: str, path: str, found: str | None
) -> None:
    assert format_of(text.encode(), path) == found


def test_a_line_of_many_digits_does_not_take_for_ever() -> None:
    assert format_of(b"9" * 60_000 + b"x", "x") is None


def test_a_format_can_be_named(tmp_path: Path) -> None:
    path = file(tmp_path, "# odd\n" + JOB)
    assert "neither its text nor its suffix tells its format: known are SWF" in refusal(path)
    few = "a line that has not 18 fields (or 21, or text after the 18th)"
    assert read(path, "swf").account.dropped == {few: 1}
    with pytest.raises(Refused, match="format 'swv': known are swf, batsim, sacct, karelian"):
        read(path, "swv")


def test_the_name_of_a_trace_has_no_folders_and_suffixes() -> None:
    names = ["a/NASA-3.1-cln.swf.gz", "b.JSON", ".swf", "x.y", "c.gz", "/d/"]
    assert [lines.name_of(each) for each in names] == ["NASA-3.1-cln", "b", ".swf", "x.y", "c", "d"]


def test_a_pipe_is_read_like_a_file(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(gzip.compress(SWF.encode()),))
    writer.start()
    assert len(read(path)) == 1
    writer.join()


# -- what is refused


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "No such file" in refusal(tmp_path / "nothing.swf")
    assert "Is a directory" in refusal(tmp_path)
    with pytest.raises(Refused, match="check the path"):
        read("a\0b")


@pytest.mark.parametrize("content", [b"", b" \n\n", gzip.compress(b"", mtime=0), b"\xef\xbb\xbf"])
def test_an_empty_file_is_refused(content: bytes, tmp_path: Path) -> None:
    assert "the file is empty" in refusal(file(tmp_path, content, "x.swf"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\x7fELF\0\0\0", "a binary file"),
        (SWF.encode("utf-16"), "UTF-16 text: convert it"),
        (b"BZh91AY", "bunzip2"),
        (b"\xfd7zXZ\0", "unxz"),
        (b"\x28\xb5\x2f\xfd\0", "unzstd"),
        (b"PK\x03\x04", "unzip"),
        (gzip.compress(gzip.compress(b"1 2", mtime=0), mtime=0), "gzip twice"),
        (gzip.compress(b"a\0b", mtime=0), "a binary file"),
        (b"\x89HDF\r\n", "HDF5"),
    ],
)
def test_what_is_not_text_is_refused_with_a_cure(
    content: bytes, words: str, tmp_path: Path
) -> None:
    assert words in refusal(file(tmp_path, content))


def test_a_truncated_gzip_says_how_far_it_got(tmp_path: Path) -> None:
    text = "".join(JOB.replace("100", str(random.Random(n).random())) for n in range(2000)).encode()
    packed = gzip.compress(text)
    half = zlib.decompressobj(31).decompress(packed[: len(packed) // 2])
    words = refusal(file(tmp_path, packed[: len(packed) // 2]))
    count = half.count(b"\n")
    assert f"the gzip file is cut off after {count:,} lines" in words
    assert count > 500
    for left in (1, 4, 8):  # only its check and its length are not there
        assert "cut off after 2,000 lines" in refusal(file(tmp_path, packed[:-left]))
    assert "cut off after 0 lines" in refusal(file(tmp_path, packed[:9]))


def test_a_damaged_gzip_says_how_far_it_got(tmp_path: Path) -> None:
    text = "".join(JOB.replace("100", str(random.Random(n).random())) for n in range(9000)).encode()
    packed = bytearray(gzip.compress(text))
    packed[len(packed) * 3 // 4] ^= 0xFF
    words = refusal(file(tmp_path, bytes(packed)))
    assert "the gzip file is damaged after " in words
    assert int(words.split("after ")[1].split(" lines")[0].replace(",", "")) > 3000
    packed = bytearray(gzip.compress(text))
    packed[-6] ^= 1  # its check
    assert "is damaged after" in refusal(file(tmp_path, bytes(packed)))


def test_a_gzip_of_several_members_or_with_padding_is_read_whole(tmp_path: Path) -> None:
    member = gzip.compress(SWF.encode())
    assert len(read(file(tmp_path, member * 3))) == 3
    assert len(read(file(tmp_path, member + b"\0" * 1000))) == 1
    assert len(read(file(tmp_path, member + b"\0" * 1000 + member))) == 2
    assert "something else follows, after 2 lines" in refusal(file(tmp_path, member + b"mud"))


def test_without_a_job_the_account_is_told(tmp_path: Path) -> None:
    text = SWF.replace(" 100 ", " -1 ") + JOB.replace(" 100 ", " x ") * 2
    assert refusal(file(tmp_path, text)) == (
        ": no job is left of 3 records (2 dropped: a line with fields that are not numbers; "
        "1 dropped: run time unknown): check the file and its format"
    )
    assert "it has no job" in refusal(file(tmp_path, "; only a header\n"))
    assert "it has no job" in refusal(file(tmp_path, KARELIAN.split("\n")[0]))
    assert "it has no job" in refusal(file(tmp_path, '{"jobs": []}'))


def test_a_gzip_that_unpacks_to_much_does_not_fill_the_memory(tmp_path: Path) -> None:
    path = file(tmp_path, gzip.compress(JOB.encode() * 2 + b" " * 2**25, 1), "x.swf")
    tracemalloc.start()
    words = refusal(path)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "line 3 has more than 1,048,576 bytes" in words
    assert most < 2**25


# -- attacks


def attempt(path: Path, format: str | None = None) -> Trace | None:
    """What a file holds, or None where it is refused as it should be."""
    try:
        return read(path, format)
    except Refused as refused:
        words = str(refused)
    assert words.startswith(str(path))
    assert "\n" not in words
    return None


numbers = st.sampled_from(
    ["-1", "0", "1", "7", "552.21", "nan", "inf", "1e400", "-1e-400", "9" * 40, "-5", "1e5", "",
     "x", "2024-01-01T00:00:00", "1-00:00:00", "UNLIMITED", "Unknown", "\0", "\x85", "٣", "1_0",
     '"']
)  # fmt: skip
separators = st.sampled_from([" ", "\t", "|", ",", "\x0b"])
ends = st.sampled_from(["\n", "\r\n", "\r", "\n\n"])
heads = st.sampled_from(
    ["", "; MaxProcs: 9\n", SACCT, KARELIAN, SACCT.split("\n")[0] + "\n", "\ufeff"]
)


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """Files that are nearly right."""
    sep, end = draw(separators), draw(ends)
    width = draw(st.sampled_from([4, 6, 18, 18, 18, 21]))
    rows = draw(st.lists(st.lists(numbers, min_size=width, max_size=width), max_size=6))
    return (draw(heads) + end.join(sep.join(row) for row in rows)).encode()


@st.composite
def spoilt(draw: st.DrawFn) -> bytes:
    """Files that were right, with some bytes changed, cut out or added."""
    content = bytearray(draw(st.sampled_from([*TEXTS.values()])).encode() * draw(st.integers(1, 3)))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(content)))
        content[at : at + draw(st.integers(0, 4))] = draw(st.binary(max_size=4))
    return gzip.compress(content) if draw(st.booleans()) else bytes(content)


@pytest.mark.parametrize("format", [None, *FORMATS])
@given(content=st.one_of(files(), spoilt(), st.binary(max_size=400), st.text().map(str.encode)))
@examples(30)
def test_any_bytes_give_a_trace_or_a_refusal(
    format: str | None, content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = file(tmp_path_factory.getbasetemp(), content, "fuzz")
    made = attempt(path, format)
    if made is None:
        return
    assert isinstance(made, Trace)
    assert len(made) > 0
    assert made.account.records == len(made) + made.account.total_dropped


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5),
              st.sampled_from([-1, 1, 2.5, "p", "w!7", 10**400])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["type", "delay", "runtime"]), inner, max_size=3),
    max_leaves=4,
)  # fmt: skip
keys = st.sampled_from(["id", "subtime", "res", "profile", "walltime", "runtime", "user"])


@given(jobs=st.lists(st.dictionaries(keys, json_values), max_size=4), nodes=json_values,
       profile=json_values)  # fmt: skip
@examples(30)
def test_any_json_gives_a_trace_or_a_refusal(
    jobs: list[object], nodes: object, profile: object,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:  # fmt: skip
    content = json.dumps({"nb_res": nodes, "jobs": jobs, "profiles": {"p": profile}})
    path = file(tmp_path_factory.getbasetemp(), content, "fuzz.json")
    made = attempt(path)
    if made is None:
        return
    assert made.account.records == len(made) + made.account.total_dropped == len(jobs)
