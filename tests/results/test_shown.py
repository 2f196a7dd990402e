"""What others have called their jobs and files is shown, and neither obeyed by a terminal nor
computed by a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odonata.commands.output import print_json, print_table
from odonata.jobs.board import DONE
from odonata.jobs.request import Job
from odonata.jobs.schedule import Schedule
from odonata.provisioning.table import sorted_table
from odonata.provisioning.table_file import read_tables, write_tables
from odonata.results import job_table, operator_table
from odonata.results.job_table import _quoted
from odonata.sweeps.outcomes import SweepOutcome
from odonata.sweeps.table import Swept
from pdes.shown import HIDDEN, csv_cell, csv_text, plain, say
from topology import Dragonfly

EVIL = "=cmd|'/C calc'!A0"
ESCAPES = "\x1b]0;owned\x07\x9b31m\u202e"
JOB = Job(2, "fft3d", name=EVIL, user="@SUM(1)", project="+1+1", application="-2+3")
TABLE = Schedule.of_board("w", [JOB], np.array([[DONE, 0, 10, 20]]), np.array([0, 1]),
                          Dragonfly(1, 2, 1, 2), 30)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "shown"),
    [(EVIL, "'" + EVIL), ("@x", "'@x"), ("+x", "'+x"), ("-x", "'-x"), ("\tx", "'\tx"),
     ("\r=x", "'\r=x"), ("\uff1dx", "'\uff1dx"), ("'=x", "''=x"), ("-1", "-1"), ("+2.5", "+2.5"),
     ("-1e-9", "-1e-9"), ("-.5", "-.5"), ("-1+2", "'-1+2"), ("fft3d", "fft3d"), ("", ""),
     ("it's =", "it's ="), (-1, -1), (-0.5, -0.5), (None, None)],
)  # fmt: skip
def test_a_cell_that_a_spreadsheet_would_compute_is_text(text: object, shown: object) -> None:
    assert csv_cell(text) == shown


@given(st.text(st.sampled_from("'=+-@\t\r\n1.ex \uff1d"), max_size=6))
def test_a_cell_says_what_it_was(text: str) -> None:
    assert csv_text(csv_cell(text)) == text
    assert csv_cell(text) == text or csv_cell(text)[0] == "'"


def test_tables_of_jobs_have_no_formulas_of_their_users() -> None:
    (row,) = csv.DictReader(io.StringIO(job_table.to_csv(TABLE, "=w")))
    assert (row["workload_name"], row["requested_time"]) == ("'=w", "-1")
    found = {column: row[column] for column in row if row[column].startswith("'")}
    assert [*found.values()] == ["'=w", f"'{EVIL}", "'@SUM(1)", "'+1+1", "'-2+3"]
    file = io.StringIO()
    operator_table.write_jobs(file, [(0, EVIL, 2, 1, -0.5, None)])
    assert next(csv.reader(file.getvalue().splitlines()[1:])) == [
        "0",
        f"'{EVIL}",
        "2",
        "1",
        "-0.5",
        "",
    ]
    assert _quoted(["=1+1", "ann", 'a "b", c']) == ["'=1+1", "ann", '"a ""b"", c"']


def test_tables_of_sweeps_have_no_formulas(tmp_path: Path) -> None:
    jobs: dict[str, dict[str, float | None]] = {EVIL: {"t": -1.5}}
    found = Swept({"=x": ("-1", "=1+1")}, (1,), ("a", "b"),
                  {key: SweepOutcome({"f": -2.0}, jobs, "d") for key in ("a", "b")})  # fmt: skip
    cells = [cell for path in found.write(tmp_path)
             for row in csv.reader(path.read_text().splitlines()) for cell in row]  # fmt: skip
    assert {"'=x", "-1", "'=1+1", f"'{EVIL}", "-1.5", "-2"} <= {*cells}
    assert not [cell for cell in cells if cell[:1] in ("=", "+", "@")]


def test_tables_of_applications_have_no_formulas_and_read_back(tmp_path: Path) -> None:
    names = ("=A1", "'=A1", "-1", "-fft", "plain")
    table = {name: sorted_table(name, *(np.ones(1, kind) for kind in "iifff")) for name in names}
    write_tables(tmp_path / "t.csv", table)
    lines = (tmp_path / "t.csv").read_text().splitlines()
    assert [line.partition(",")[0] for line in lines[-5:]] == [
        "'=A1", "''=A1", "-1", "'-fft", "plain"]  # fmt: skip
    assert [*read_tables(tmp_path / "t.csv").tables] == [*names]


def test_what_a_terminal_would_obey_is_written_out() -> None:
    assert plain(ESCAPES) == r"\x1b]0;owned\x07\x9b31m\u202e"
    assert plain("Zürich, µs, ✓\tx\ny") == "Zürich, µs, ✓\tx\ny"
    assert plain("\udcff\r\x7f") == r"\udcff\x0d\x7f"


def test_messages_tables_and_json_show_escapes(capsys: pytest.CaptureFixture[str]) -> None:
    (record,) = replace(TABLE, asked=(replace(JOB, name=ESCAPES),)).records()
    say(f"{ESCAPES}: is not there")
    print_table(job_table.job_table(Dragonfly(2, 2, 1, 3), [record]), least=200)
    print_table(f"[bold]{ESCAPES}", force_terminal=True, color_system="standard",
                highlight=False)  # fmt: skip
    shown, said = capsys.readouterr()
    assert said == r"odonata: \x1b]0;owned\x07\x9b31m\u202e: is not there" + "\n"
    assert shown.count(r"\x1b]0;") == 2
    assert shown.count("\x1b") == 2, "bold, and no longer bold"
    assert [found[0] for found in HIDDEN.finditer(shown)] == ["\x1b", "\x1b"]
    print_json({"name": ESCAPES})
    shown = capsys.readouterr().out
    assert not HIDDEN.search(shown)
    assert json.loads(shown)["name"] == ESCAPES


def test_a_file_whose_name_has_escapes_is_refused_in_plain_letters(
    odonata: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = odonata("run", "\x1b[31mnowhere.toml")
    assert done.returncode != 0
    assert r"\x1b[31mnowhere.toml" in done.stderr
    assert "\x1b" not in done.stderr + done.stdout
