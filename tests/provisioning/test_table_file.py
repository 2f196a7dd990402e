"""Tables of configurations in CSV files."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st

from odonata.provisioning.table import Point, Table, sorted_table
from odonata.provisioning.table_checks import DIGITS, oddities, unlike
from odonata.provisioning.table_file import read_tables, write_tables
from pdes.errors import Refused

HEADER = "application,nodes,cores,cap_w,seconds,watts\n"
NODES, CORES, CAPS = (8, 10, 12, 14), (8, 12, 16), (51, 80, 115)


def grid(nodes: object = NODES, cores: object = CORES, caps: object = CAPS) -> dict[Point, Point]:
    """Returns the points of a well-behaved application, by configuration."""
    points = [
        Point(n, c, p, 9000 / (n * c**0.8 * p**0.3), 2 * n * (10 + min(0.9 * p, 5 * c)))
        for n in nodes  # type: ignore[attr-defined]
        for c in cores  # type: ignore[attr-defined]
        for p in caps  # type: ignore[attr-defined]
    ]
    return {point._replace(seconds=0, watts=0): point for point in points}


def rows(points: object, application: str = "A") -> str:
    cells = [(application, *point) for point in points]  # type: ignore[attr-defined]
    return "".join(",".join(map(str, row)) + "\n" for row in cells)


def at(nodes: int, cores: int, cap_w: float) -> Point:
    return Point(nodes, cores, cap_w, 0, 0)


def file(tmp_path: Path, text: str | bytes, name: str = "t.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refusal(path: Path, repair: bool = False) -> str:
    with pytest.raises(Refused) as refused:
        read_tables(path, repair)
    words = str(refused.value)
    assert "\n" not in words
    assert words.startswith(f"{path}: ")
    return words.removeprefix(f"{path}: ")


def same(one: Table, other: Table) -> bool:
    names = ("nodes", "cores", "cap_w", "seconds", "watts")
    columns = [(getattr(one, name), getattr(other, name)) for name in names]
    return one.application == other.application and all(
        left.dtype == right.dtype and np.array_equal(left, right) for left, right in columns
    )


# -- what is read


def test_a_sound_file_is_read_without_a_word(tmp_path: Path) -> None:
    points = list(grid().values())
    found = read_tables(file(tmp_path, HEADER + rows(reversed(points))))
    assert found.repairs == ()
    (table,) = found.tables.values()
    assert [table.point(place) for place in range(len(table))] == points


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_spreadsheets_of_any_country_are_read(tmp_path: Path, end: str) -> None:
    plain = "A,8,16,115,49.5,1200\nA,10,16,115,40.25,1500.5\n"
    expected = read_tables(file(tmp_path, HEADER + plain)).tables["A"]
    foreign = (HEADER + plain).replace(",", ";").replace(".", ",").replace("\n", end)
    texts = {
        "bom": "\ufeff" + HEADER + plain,
        "comments": "# measured\n\n" + HEADER + " # again\n" + plain + ",,,,,\n",
        "semicolons": foreign,
        "excel": f"sep=;{end}{foreign}",
        "tabs": (HEADER + plain).replace(",", "\t"),
        "whole floats": (HEADER + plain).replace(",16,", ",16.0,").replace("A,8", "A, 8.0"),
        "upper case": HEADER.upper() + plain,
        "trailing columns": (HEADER + plain).replace("\n", ",,\n"),
    }
    for name, text in texts.items():
        found = read_tables(file(tmp_path, text.replace("\n", end)))
        assert same(found.tables["A"], expected), name
        told = [line for line in found.repairs if "decimal" in line]
        assert bool(told) == (name in ("semicolons", "excel")), name
    assert told == []
    packed = read_tables(file(tmp_path, gzip.compress((HEADER + plain).encode()), "t.csv.gz"))
    assert same(packed.tables["A"], expected)


def test_decimal_commas_are_told(tmp_path: Path) -> None:
    text = HEADER.replace(",", ";") + "A;8;16;115;49,512;1200\n"
    found = read_tables(file(tmp_path, text))
    assert found.tables["A"].seconds[0] == 49.512
    assert found.repairs[0] == ("Commas in numbers were read as decimal points: '49,512' in line 2 "
                                "as 49.512.")  # fmt: skip


def test_columns_may_stand_in_any_order_and_have_the_names_of_rmap(tmp_path: Path) -> None:
    text = "id,tot_pkg,exec_time,pkg_cap,cores,nodes,job_id\n1,1200,49.5,115,16,8,A\n"
    found = read_tables(file(tmp_path, text))
    assert found.tables["A"].point(0) == Point(8, 16, 115, 49.5, 1200)
    assert not any("column" in words for words in found.repairs)  # id is one of RMAP's


def test_columns_that_are_not_read_are_named(tmp_path: Path) -> None:
    text = HEADER.replace("\n", ",host,date\n") + "A,8,16,115,49.5,1200,x,y\n"
    told = read_tables(file(tmp_path, text)).repairs
    assert told[0] == "The file has columns that are not read: host, date."


@examples(25)
@given(st.data())
def test_what_is_written_is_read_back(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
                                      ) -> None:  # fmt: skip
    letters = st.characters(exclude_categories=["C", "Z"], include_characters=" ")
    names = st.text(letters, min_size=1).filter(lambda name: name == name.strip())
    number = st.floats(0.001, 1e9, allow_subnormal=False)
    points = st.lists(
        st.tuples(st.integers(1, 100), st.integers(1, 64), number, number, number),
        min_size=1,
        max_size=8,
        unique_by=lambda it: it[:3],
    )
    tables = {}
    for name in data.draw(st.lists(names, min_size=1, max_size=3, unique=True)):
        columns = [np.array(column) for column in zip(*data.draw(points), strict=True)]
        tables[name] = sorted_table(name, *columns)
    suffix = data.draw(st.sampled_from((".csv", ".csv.gz")))
    path = tmp_path_factory.getbasetemp() / f"round{suffix}"
    write_tables(path, tables)
    found = read_tables(path).tables
    assert list(found) == list(tables)
    assert all(same(found[name], tables[name]) for name in tables)


@pytest.mark.parametrize("name", ["", " A", "A\n", "A\x1b[0m"])
def test_a_name_that_would_not_read_back_is_not_written(tmp_path: Path, name: str) -> None:
    table = sorted_table(name, *(np.ones(1, kind) for kind in "iifff"))
    with pytest.raises(Refused, match="cannot be written"):
        write_tables(tmp_path / "t.csv", {name: table})
    assert list(tmp_path.iterdir()) == []


# -- what is refused


@pytest.mark.parametrize(
    ("column", "text", "words"),
    [
        ("seconds", "-3", "'-3': seconds is a number, 1e-06 .. 3.1536e+10, without a unit"),
        ("seconds", "0", "'0': seconds is a number, 1e-06"),
        ("watts", "nan", "'nan' is not a number: watts is a number, 0.001 .. 1e+12"),
        ("watts", "inf", "'inf': watts is a number"),
        ("watts", "", "an empty cell: watts is a number, 0.001 .. 1e+12, without a unit; leave "
         "out the row of a configuration that was not measured"),
        ("watts", "12 W", "'12 W' is not a number: watts"),
        ("watts", "1_200", "'1_200' is not a number: watts"),
        ("watts", '"1,200"', "'1,200' is not a number: watts is a number, 0.001 .. 1e+12, "
         "without a unit; its decimal sign must be a point"),
        ("nodes", "8.5", "'8.5': nodes is a whole number, 1 .. 10,000,000, without a unit"),
        ("nodes", "0", "'0': nodes is a whole number"),
        ("cores", "-16", "'-16': cores is a whole number, 1 .. 100,000, without a unit"),
        ("cap_w", "turbo", "'turbo': cap_w is a number, 0.001 .. 1e+09, without a unit; for "
         "runs without a cap write the power that a socket is rated for, which must be the "
         "highest cap"),
        ("cap_w", "inf", "'inf': cap_w is a number"),
        ("application", "", "'': the name of an application is needed"),
        ("application", "\x1b[0m", r"'\x1b[0m': the name of an application is needed"),
    ],
)  # fmt: skip
def test_a_cell_that_is_not_sound_is_refused_by_line_column_and_value(
    tmp_path: Path, column: str, text: str, words: str
) -> None:
    sound = ("A", "8", "16", "115", "49.5", "1200")
    cells = dict(zip(HEADER.strip().split(","), sound, strict=True))
    cells[column] = text
    path = file(tmp_path, f"# a comment\n{HEADER}B,8,16,115,9,1000\n{','.join(cells.values())}\n")
    for repair in (False, True):
        assert refusal(path, repair).startswith(f"line 4, column {column}: {words}")


def test_a_column_is_named_as_the_file_names_it(tmp_path: Path) -> None:
    text = "job_id,nodes,cores,pkg_cap,exec_time,tot_pkg\nA,8,16,115,-1,1200\n"
    assert refusal(file(tmp_path, text)).startswith("line 2, column exec_time: '-1': seconds is")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it is empty: a header of application,nodes,cores,cap_w,seconds,watts, or"),
        ("# only this\n", "it is empty"),
        ("sep=;\n", "it has no header"),
        (HEADER, "it has a header only, in line 1: rows must follow"),
        ("A,8,16,115,49.5,1200\n", "line 1: 'a,8,16,115,49.5,1200' lacks application, nodes, "
         "cores, cap_w, seconds, watts: a header of"),
        ("application,nodes,cores,seconds,watts\n", "line 1: 'application,nodes,cores,seconds,watts"
         "' lacks cap_w: a header of"),
        (HEADER.replace("cores", "nodes"), "line 1: two columns of nodes, nodes and nodes"),
        (HEADER.replace("cores", "job_id"), "line 1: two columns of application, application and "
         "job_id: one of each is needed"),
        (f"{HEADER}A,8,16\n", "line 2: 3 columns, and the header in line 1 has 6"),
        (f'{HEADER}"A,8,16\n', "line 2: '\"A,8,16': unexpected end of data"),
        (f"{HEADER}".replace(",", ";") + "A;8;16;115;49,5;1200\nA;9;16;115;1.5;1200\n",
         "line 2: '49,5' has a comma, and '1.5' in line 3 a point: which is the decimal sign?"),
        (HEADER.encode() + b"caf\xe9,8,16,115,9,9\n", "line 2: it is not UTF-8: save it as CSV in"),
        (HEADER.encode("utf-16"), "line 1: it is not UTF-8"),
        (HEADER.encode("utf-16-le"), "line 1: it is no text: save it as CSV in UTF-8"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_table_is_refused(tmp_path: Path, text: str, words: str) -> None:
    assert refusal(file(tmp_path, text)).startswith(words)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    assert "No such file" in refusal(tmp_path / "none.csv")
    assert "a file is needed: name one in it" in refusal(tmp_path)
    packed = gzip.compress(f"{HEADER}A,8,16,115,9,9\n".encode())
    for damaged in (packed[:-9], packed[:20] + b"\0\0" + packed[22:]):
        words = refusal(file(tmp_path, damaged, "t.csv.gz"))
        assert words == "the gzip file is damaged or cut off: fetch it again"


def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    table = sorted_table("A", *(np.ones(1, kind) for kind in "iifff"))
    (tmp_path / "t.csv").mkdir()
    with pytest.raises(IsADirectoryError, match=r"t\.csv"):
        write_tables(tmp_path / "t.csv", {"A": table})
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


# -- twice


def test_equal_rows_are_kept_once_aloud(tmp_path: Path) -> None:
    points = list(grid().values())
    found = read_tables(file(tmp_path, HEADER + rows(points) + rows(points[:2])))
    assert len(found.tables["A"]) == len(points)
    assert found.repairs == ("A: 2 rows are given again, and kept once.",)


def test_unequal_results_are_refused_or_averaged_aloud(tmp_path: Path) -> None:
    path = file(tmp_path, f"{HEADER}A,8,16,115,49,1200\nA,8,16,115,51,1200\nA,8,16,115,50,1230\n")
    assert refusal(path) == (
        "line 3: (8×16, 115) of A took 51 s at 1200 W, and in line 2 49 s at 1200 W: give one row "
        "per configuration, or repair, which takes the mean"
    )
    found = read_tables(path, repair=True)
    assert found.tables["A"].point(0) == Point(8, 16, 115, 50, 1210)
    assert found.repairs[0] == (
        "A: 1 configuration had several results, of which the mean was taken; they differ by up to "
        "4.1%, at (8×16, 115) in lines 2, 3, 4."
    )


# -- holes


def test_missing_configurations_are_told_and_stay_missing(tmp_path: Path) -> None:
    points = grid()
    del points[at(10, 12, 80)], points[at(14, 16, 115)]
    found = read_tables(file(tmp_path, HEADER + rows(points.values())))
    assert len(found.tables["A"]) == 34
    assert found.repairs == ("A: 2 of 36 configurations are missing, (10×12, 80) first; what was "
                             "not measured is never chosen.",)  # fmt: skip


def test_a_hole_between_measured_configurations_is_interpolated_aloud(tmp_path: Path) -> None:
    points = grid()
    lost = points.pop(at(10, 12, 80))
    found = read_tables(file(tmp_path, HEADER + rows(points.values())), repair=True)
    point = found.tables["A"].find(10, 12, 80)
    assert point is not None
    assert point.seconds == pytest.approx(lost.seconds, rel=1e-5)  # a power law is a line there
    assert point.watts == pytest.approx(lost.watts, rel=0.05)
    assert point.seconds == float(f"{point.seconds:.{DIGITS}g}")
    assert found.repairs == ("A: 1 configuration that lacked between measured ones was "
                             "interpolated, (10×12, 80) first.",)  # fmt: skip


def test_nothing_is_extrapolated(tmp_path: Path) -> None:
    points = grid()
    del points[at(8, 8, 51)], points[at(14, 16, 115)]
    found = read_tables(file(tmp_path, HEADER + rows(points.values())), repair=True)
    assert len(found.tables["A"]) == 34
    assert found.repairs[0].startswith("A: 2 of 36 configurations are missing")


def test_a_scattered_table_is_read_at_once_and_not_filled(tmp_path: Path) -> None:
    scattered = [Point(n, n, n, 10 / n, 10 * n) for n in range(1, 2001)]
    found = read_tables(file(tmp_path, HEADER + rows(scattered)), repair=True)
    assert len(found.tables["A"]) == 2000
    assert "A: 7,999,998,000 of 8,000,000,000 configurations are missing" in found.repairs[0]


def test_a_gap_in_the_node_counts_is_told(tmp_path: Path) -> None:
    points = grid(nodes=(8, 10, 12, 16, 18))
    told = read_tables(file(tmp_path, HEADER + rows(points.values()))).repairs
    assert told == ("A: node counts are 2 apart, and between 12 and 16 there are none.",)
    doubling = grid(nodes=(1, 2, 4, 8, 16))
    assert read_tables(file(tmp_path, HEADER + rows(doubling.values()))).repairs == ()


# -- what goes against the rules


def changed(tmp_path: Path, repair: bool = False, **how: tuple[Point, float]) -> tuple[str, ...]:
    """Returns what is told of the table in which one value is another."""
    points = grid()
    for column, (which, factor) in how.items():
        value = getattr(points[which], column)
        points[which] = points[which]._replace(**{column: value * factor})
    return read_tables(file(tmp_path, HEADER + rows(points.values())), repair).repairs


def test_a_time_that_rises_with_the_cap_is_told_with_the_worst_case(tmp_path: Path) -> None:
    (told,) = changed(tmp_path, seconds=(at(10, 12, 115), 1.5))
    assert told == ("A: time rises where the cap rises, by more than 5% once; most from "
                    "(10×12, 80), 33.1109 s, to (10×12, 115), 44.543 s.")  # fmt: skip
    assert changed(tmp_path, seconds=(at(10, 12, 115), 1.15)) == ()  # within the tolerance


def test_power_that_falls_is_told_for_each_axis(tmp_path: Path) -> None:
    told = changed(tmp_path, watts=(at(12, 12, 80), 0.5))
    assert len(told) == 3
    assert told[0].startswith("A: power falls where nodes rise, by more than 5% once; most from "
                              "(10×12, 80), 1,400 W, to (12×12, 80), 840 W.")  # fmt: skip
    assert told[1].startswith("A: power falls where cores rise, by")
    assert told[2].startswith("A: power falls where the cap rises, by")


def test_repair_makes_times_fall_and_power_rise_with_the_cap(tmp_path: Path) -> None:
    points = grid()
    noisy = dict(points)
    noisy[at(10, 12, 115)] = points[at(10, 12, 115)]._replace(seconds=40.0)
    noisy[at(12, 8, 51)] = points[at(12, 8, 51)]._replace(watts=1300.0)
    found = read_tables(file(tmp_path, HEADER + rows(noisy.values())), repair=True)
    table = found.tables["A"]
    pooled = [table.find(10, 12, cap) for cap in (80, 115)]
    mean = (points[at(10, 12, 80)].seconds + 40.0) / 2
    assert [it.seconds for it in pooled if it] == [mean, mean]
    assert (
        "A: times that rose with the cap were averaged with their neighbours in"
        in (found.repairs[0])
    )
    assert found.repairs[1].startswith("A: watts that fell with the cap were averaged with their "
                                       "neighbours in 3 configurations, by up to")  # fmt: skip
    untouched = [place for place in range(len(table)) if table.nodes[place] in (8, 14)]
    assert all(table.point(place) in points.values() for place in untouched)


@given(st.lists(st.tuples(st.floats(1, 1e3), st.floats(1, 1e3)), min_size=1, max_size=9))
def test_repaired_tables_are_monotone_in_the_cap_and_keep_their_mean(
    tmp_path_factory: pytest.TempPathFactory, results: list[tuple[float, float]]
) -> None:
    points = [Point(8, 16, 50 + cap, *result) for cap, result in enumerate(results)]
    path = tmp_path_factory.getbasetemp() / "monotone.csv"
    path.write_text(HEADER + rows(points))
    table = read_tables(path, repair=True).tables["A"]
    assert (np.diff(table.seconds) <= 0).all()
    assert (np.diff(table.watts) >= 0).all()
    assert table.seconds.mean() == pytest.approx(np.mean([it.seconds for it in points]))
    assert not any("time rises" in words for words in oddities(table))


# -- what cannot be meant


def test_sockets_far_above_their_cap_are_told(tmp_path: Path) -> None:
    points = [it._replace(watts=it.nodes * 2 * (it.cap_w + 25)) for it in grid().values()]
    assert read_tables(file(tmp_path, HEADER + rows(points))).repairs == ()
    points[-1] = points[-1]._replace(watts=14 * 2 * 150.0)
    (told,) = read_tables(file(tmp_path, HEADER + rows(points))).repairs
    assert told.startswith("A: 1 configuration with sockets more than 30 W above their cap; most "
                           "at (14×16, 115), 150 W for each of 2 sockets per node. If watts are "
                           "those of whole nodes, with memory and boards, this is as")  # fmt: skip
    found = read_tables(file(tmp_path, HEADER + rows(points) + rows(points, "B")))
    (once,) = found.repairs
    assert once.startswith("A, B: 2 configurations with sockets more than 30 W above their cap; "
                           "most at (14×16, 115) of A")  # fmt: skip
    assert unlike(found.tables, sockets=4) == []


def test_watts_per_node_are_suspected(tmp_path: Path) -> None:
    points = [it._replace(watts=it.watts / it.nodes) for it in grid().values()]
    (told,) = read_tables(file(tmp_path, HEADER + rows(points))).repairs
    assert told == ("A: watts hardly grow with nodes: are they per node? Those of all nodes "
                    "together are needed.")  # fmt: skip


def test_a_table_without_packed_max_is_told(tmp_path: Path) -> None:
    points = [it for it in grid().values() if not (it.cores == 16 and it.cap_w == 115)]
    told = read_tables(file(tmp_path, HEADER + rows(points))).repairs
    assert told[1] == ("A: no configuration has both all 16 cores and the highest cap, 115 W: "
                       "packed-max and speed-ups over it are not known.")  # fmt: skip


def test_a_single_configuration_is_told(tmp_path: Path) -> None:
    told = read_tables(file(tmp_path, f"{HEADER}A,8,16,115,49.5,1200\n")).repairs
    assert told == ("A: a single configuration is known: there is no choice.",)


def test_an_application_measured_with_fewer_cores_or_caps_is_told(tmp_path: Path) -> None:
    few = grid(cores=(8, 12), caps=(51, 80)).values()
    told = read_tables(file(tmp_path, HEADER + rows(grid().values()) + rows(few, "B"))).repairs
    assert told == (
        "B: at most 12 cores per node, where others have 16: packed-max is with 12.",
        "B: at most 80 W as a cap, where others have 115: packed-max is with 80.",
    )
