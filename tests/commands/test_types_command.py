"""`odonata types`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from odonata.commands.types import command
from odonata.traces.mix import MIXES
from odonata.traces.types import Types
from pdes.errors import Refused


def invoke(*words: Any) -> str:
    result = CliRunner().invoke(command, [str(word) for word in words])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def test_all_tables_and_mixes_are_listed() -> None:
    told = invoke()
    for name in (*Types.of("aqa").names, *Types.of("qosg").names, *MIXES):
        assert name in told
    assert "31 types of jobs, an idle node draws 169 W" in told
    assert "1022 .. 1370   402 .. 254" in told


def test_one_table_is_shown_with_its_mixes() -> None:
    told = invoke("qosg")
    assert "bt ×3" in told
    assert "bt.C.16" not in told


def test_types_to_which_caps_do_nothing_are_named(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("type,power_max_w,power_min_w,slowdown\n"
                                       "a,300,200,1.5\nb,300,320,1.5\nc,300,300,1\n")  # fmt: skip
    told = " ".join(invoke(tmp_path / "mine.csv").split())
    assert "Caps do nothing to b, c: the lowest is not below what a node draws" in told
    assert "Caps do nothing to cg.C.4: the lowest" in " ".join(invoke("aqa").split())
    assert "Caps do nothing" not in invoke("qosg")


def test_programs_get_all_of_it() -> None:
    told = json.loads(invoke("qosg", "--json"))
    (table,) = told["tables"]
    assert (table["name"], table["idle_w"], len(table["types"])) == ("qosg", 90, 7)
    assert table["types"][3]["delay_rate_per_s"] == 0.449
    assert table["types"][6]["q_threshold"] is None
    assert [it["mix"] for it in told["mixes"]] == ["qosg", "qosg-W1", "qosg-W3"]
    assert told["mixes"][0]["mean_power_w"] == pytest.approx(17025)
    assert told["mixes"][0]["shares"] == [1] * 6


def test_a_table_is_written_as_a_pattern_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    assert f"written to {path}" in invoke("aqa", "--csv", path).replace("\n", " ")
    assert Types.of(path).digest == Types.of("aqa").digest
    assert "# power_max_w: what a node draws without a cap, in W\n" in path.read_text()
    told = " ".join(invoke(path).split())  # lines are broken where the path is long
    assert "31 types" in told
    assert "mixes" not in told
    with pytest.raises(Refused, match="there is such a file"):
        invoke("qosg", "--csv", path)
    invoke("qosg", "--csv", path, "--overwrite")
    assert Types.of(path).digest == Types.of("qosg").digest


def test_types_by_user_or_size_say_so(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(
        "type,by,power_max_w,power_min_w,slowdown\n[b]x,user,300,200,1\n1-4,nodes,3,2,1\n"
    )
    told = invoke(path)
    assert "[b]x   user" in told
    assert "1-4    nodes" in told


@pytest.mark.parametrize(("words", "why"), [
    (("foo",), "foo: one of aqa, qosg"),
    (("--csv", "a.csv"), "which table"),
    (("aqa", "--csv", "a.txt"), "must end in .csv"),
    (("aqa", "--csv", "no/a.csv"), "there is no directory no"),
    (("aqa", "--overwrite"), "of which file"),
])  # fmt: skip
def test_what_cannot_be_is_refused(words: tuple[str, ...], why: str) -> None:
    with pytest.raises(Refused, match=why):
        invoke(*words)
