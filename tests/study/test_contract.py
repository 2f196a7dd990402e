"""A study on the contract: kept, resumed, refused, judged and drawn, on processes and on ranks."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import NEEDED, PATIENCE, clean_environment
from dice import LOADED, Dice, DicePlan, Roll, Shown, UntilSix

from odonata.commands.doctor import find_mpiexec
from odonata.study import contract, store
from odonata.study.contract import Case, Claim, digest
from odonata.study.filling import Agenda, fill
from odonata.study.report import report, table
from odonata.study.store import Answer
from odonata.study.verdicts import yes_or_no
from pdes.errors import Fault, Refused
from pdes.signals import StopSignals

TESTS = Path(__file__).parent.parent
DICE = Dice()


def values(directory: Path) -> dict[str, int]:
    return {key: shown.value for key, shown in store.read(directory, DICE).outcomes.items()}


@pytest.fixture(scope="module")
def whole() -> dict[str, int]:
    """What an uninterrupted study of forty rolls with pauses finds."""
    every = DICE.cases(DicePlan(20, pause=0.05), {})
    return {case.key: DICE.simulate(Roll(case.sides, case.seed)).value for case in every}


# -- cases


def test_a_key_depends_on_all_fields_and_on_nothing_else() -> None:
    assert Roll(6, 1).key == Roll(6, 1).key
    assert len({Roll(6, 1).key, Roll(6, 2).key, Roll(20, 1).key, Roll(6, 1, 0.1).key}) == 4
    program = f"import sys; sys.path.insert(0, {str(TESTS)!r}); from dice import Roll; " \
              "print(Roll(6, 1).key)"  # fmt: skip
    again = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                           env=clean_environment(), check=True)  # fmt: skip
    assert again.stdout.strip() == Roll(6, 1).key


def test_a_case_needs_no_more_than_its_fields() -> None:
    @dataclass(frozen=True)
    class Plain(Case):
        number: int

    assert Plain(3).weight == 1
    assert "number=3" in str(Plain(3))


def test_the_example_of_the_contract_is_a_study() -> None:
    names: dict[str, Any] = {"dataclass": dataclass, "random": random, **vars(contract)}
    assert contract.__doc__
    block = contract.__doc__[contract.__doc__.index("    @dataclass") :]
    names["yes_or_no"] = yes_or_no
    exec(textwrap.dedent(block), names)
    study = names["Dice"]()
    asked = study.ask(rolls=20)
    ran, kept = fill(study, asked, None, 1)
    assert ran.simulated == 40
    (claim,) = study.claims(asked, kept.outcomes)
    assert (claim.paper, claim.holds, claim.of) == ("3.5", True, 20)
    assert len(study.mark()) == 12


# -- filling


@pytest.mark.parametrize("jobs", [1, 3])
def test_all_is_simulated_once_and_then_nothing(tmp_path: Path, jobs: int) -> None:
    ran, kept = fill(DICE, DicePlan(4), tmp_path, jobs)
    assert (ran.simulated, ran.missing, ran.stopped) == (8, 0, None)
    before = store.path_in(tmp_path).read_bytes()
    assert fill(DICE, DicePlan(4), tmp_path, jobs)[0].simulated == 0
    assert store.path_in(tmp_path).read_bytes() == before
    assert fill(DICE, DicePlan(5), tmp_path, jobs)[0].simulated == 2
    assert kept.outcomes == {case.key: DICE.simulate(case) for case in DICE.cases(DicePlan(4), {})}


def test_without_a_directory_it_is_kept_in_memory() -> None:
    ran, kept = fill(DICE, DicePlan(4), None, 1)
    assert ran.simulated == len(kept.outcomes) == 8
    assert kept.path is None


@pytest.mark.parametrize("jobs", [1, 4])
def test_a_sequential_study_stops_where_its_outcomes_say(jobs: int) -> None:
    study, asked = UntilSix(), DicePlan(500)
    ran, kept = fill(study, asked, None, jobs)
    rolls = study.cases(asked, kept.outcomes)
    shown = [kept.outcomes[roll.key].value for roll in rolls]
    assert shown[-1] == 6
    assert 6 not in shown[:-1]
    assert ran.missing == 0
    assert ran.simulated <= len(rolls) + study.AHEAD
    if jobs == 1:
        assert ran.simulated == len(rolls)


def test_what_takes_much_longer_than_the_rest_comes_first() -> None:
    asked = DicePlan(2, sides=(*range(2, 22), 10_000))
    agenda = Agenda(DICE, asked, store.Store(), StopSignals(listen=False))
    taken = [agenda.take() for _ in range(42)]
    assert taken == [Roll(10_000, 0), Roll(10_000, 1), *DICE.cases(asked, {})[:-2]]
    assert agenda.take() is None


def test_a_share_of_the_weight_is_done() -> None:
    agenda = Agenda(DICE, DicePlan(1, sides=(4, 12)), store.Store(), StopSignals(listen=False))
    assert (agenda.done, agenda.missing) == (0.0, 2)
    agenda.note(Answer(Roll(4, 0), Shown(1)))
    assert (agenda.done, agenda.missing) == (0.25, 1)


def test_a_signal_stops_the_dealing_and_the_rest_comes_later(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: Dice, case: Roll) -> Shown:
        os.kill(os.getpid(), signal.SIGTERM)
        return Shown(1)

    with monkeypatch.context() as patch:
        patch.setattr(Dice, "mark", lambda self: "abc")
        patch.setattr(Dice, "simulate", interrupted)
        ran, _ = fill(DICE, DicePlan(4), tmp_path, 1)
        assert (ran.simulated, ran.missing, ran.stopped) == (1, 7, "SIGTERM")
        assert "7 of 8 simulations are missing" in capsys.readouterr().err
    monkeypatch.setattr(Dice, "mark", lambda self: "abc")
    assert fill(DICE, DicePlan(4), tmp_path, 1)[0].simulated == 7


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_case_that_fails_is_named(tmp_path: Path, jobs: int) -> None:
    with pytest.raises(Fault, match="roll 0 of 13 sides: this die is loaded"):
        fill(DICE, DicePlan(1, sides=(6, LOADED)), tmp_path, jobs)


def test_what_was_done_before_a_failure_is_kept(tmp_path: Path) -> None:
    with pytest.raises(Fault):
        fill(DICE, DicePlan(1, sides=(6, LOADED)), tmp_path, 1)
    assert fill(DICE, DicePlan(1, sides=(6,)), tmp_path, 1)[0].simulated == 0


@pytest.mark.long
@pytest.mark.parametrize("ranks", [1, 2])
def test_killed_it_resumes_to_the_same_outcomes(
    tmp_path: Path, ranks: int, whole: dict[str, int]
) -> None:
    """On two processes, or on two ranks."""
    code = (
        f"import sys; sys.path.insert(0, {str(TESTS)!r}); from pathlib import Path; "
        "from dice import *; from odonata.study.filling import fill; "
        "from pdes.transport import world; "
        "ran = fill(Dice(), DicePlan(20, pause=0.05), Path('study'), 2)[0]; "
        "print(ran.simulated) if world().rank == 0 else None"
    )
    mpiexec = find_mpiexec()
    assert mpiexec, NEEDED
    prefix = [mpiexec, "-n", "2"] if ranks > 1 else []
    words = [*prefix, sys.executable, "-c", code]
    how: dict[str, Any] = {"cwd": tmp_path, "env": clean_environment(), "text": True,
                           "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}  # fmt: skip
    process = subprocess.Popen(words, start_new_session=True, **how)
    kept, deadline = tmp_path / "study" / "results.jsonl", time.monotonic() + PATIENCE
    while not (kept.exists() and kept.read_text().count("\n") > 4):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=PATIENCE)
    before = kept.read_text().count("\n") - 1
    assert 3 < before < 40
    again = subprocess.run(words, timeout=PATIENCE, check=False, **how)
    assert again.returncode == 0, again.stderr
    assert int(again.stdout) == 40 - before
    assert values(tmp_path / "study") == whole


# -- the store


def test_a_torn_last_line_is_dropped_with_a_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(DICE, DicePlan(4), tmp_path, 1)
    path = store.path_in(tmp_path)
    entire = path.read_bytes()
    path.write_bytes(entire[:-20])
    assert len(values(tmp_path)) == 7  # to look at, it is left alone
    assert path.stat().st_size == len(entire) - 20
    assert fill(DICE, DicePlan(4), tmp_path, 1)[0].simulated == 1
    assert "the last line was not finished" in capsys.readouterr().err
    assert path.read_bytes() == entire


DAMAGED = ("{}", "[]", "7", "not JSON", '{"key":"a","point":{}}', '{"key":1,"point":{},"value":1}',
           '{"key":"a","point":{},"value":1,"more":2}', "\udcff")  # fmt: skip


@pytest.mark.parametrize("line", DAMAGED)
def test_a_damaged_line_is_named(tmp_path: Path, line: str) -> None:
    fill(DICE, DicePlan(4), tmp_path, 1)
    path = store.path_in(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    damaged = line.encode(errors="surrogateescape") + b"\n"
    path.write_bytes(b"".join([*lines[:3], damaged, *lines[3:]]))
    for look in (lambda: fill(DICE, DicePlan(4), tmp_path, 1), lambda: store.read(tmp_path, DICE)):
        with pytest.raises(Refused, match=r"results.jsonl, line 4: damaged; delete that line"):
            look()


@pytest.mark.parametrize("place", ["key", "value", "sum"])
def test_a_changed_digit_of_a_line_is_not_believed(tmp_path: Path, place: str) -> None:
    fill(DICE, DicePlan(4), tmp_path, 1)
    path = store.path_in(tmp_path)
    lines = path.read_text().splitlines(keepends=True)
    fields = json.loads(lines[3])
    old = {"key": fields["key"], "value": f'"value":{fields["value"]}', "sum": fields["crc32"]}
    new = old[place][:-1] + ("1" if old[place][-1] != "1" else "2")
    lines[3] = lines[3].replace(old[place], new)
    path.write_text("".join(lines))
    assert json.loads(lines[3])["value"] in range(1, 7)  # what nothing but the checksum tells
    for look in (lambda: fill(DICE, DicePlan(4), tmp_path, 1), lambda: store.read(tmp_path, DICE)):
        with pytest.raises(Refused, match=r"line 4: damaged: its checksum is not .* delete"):
            look()
    path.write_text("".join([*lines[:3], *lines[4:]]))
    assert fill(DICE, DicePlan(4), tmp_path, 1)[0].simulated == 1


def test_the_first_line_has_a_checksum_too_and_tells_that_all_have(tmp_path: Path) -> None:
    fill(DICE, DicePlan(4), tmp_path, 1)
    path = store.path_in(tmp_path)
    head, *lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([head.replace('"format": 1', '"format": 1 '), *lines]))
    with pytest.raises(Refused, match=r"line 1: damaged: its checksum"):
        store.read(tmp_path, DICE)
    bare = lines[1][: lines[1].index(',"crc32"')] + "}\n"
    path.write_text("".join([head, lines[0], bare]))
    with pytest.raises(Refused, match="line 3: damaged; delete that line"):
        store.read(tmp_path, DICE)


def test_lines_of_a_store_from_before_checksums_are_read_and_new_ones_have_one(
    tmp_path: Path,
) -> None:
    fill(DICE, DicePlan(20), tmp_path, 1)
    before = values(tmp_path)
    path = store.path_in(tmp_path)
    head, *lines = (json.loads(line) for line in path.read_text().splitlines())
    for line in (head, *lines):
        del line["crc32"]
    del head["lines"]
    path.write_text("".join(json.dumps(line) + "\n" for line in (head, *lines[:30])))
    assert fill(DICE, DicePlan(20), tmp_path, 1)[0].simulated == 10
    assert values(tmp_path) == before
    assert path.read_text().count("crc32") == 10


def test_a_store_of_another_simulator_or_study_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(DICE, DicePlan(1), tmp_path, 1)
    with pytest.raises(Refused, match="results of the study dice, not of until-six"):
        fill(UntilSix(), DicePlan(1), tmp_path, 1)
    with monkeypatch.context() as patch:
        patch.setattr(Dice, "mark", lambda self: "xyz")
        with pytest.raises(Refused, match=r"answers otherwise \(its mark is \w{12}, this one's x"):
            fill(DICE, DicePlan(1), tmp_path, 1)
    monkeypatch.setattr(store, "__version__", "9.9")
    with pytest.raises(Refused, match=r"made by odonata .*, this is 9.9; use another -o"):
        fill(DICE, DicePlan(1), tmp_path, 1)


@pytest.mark.parametrize("head", ["tea leaves", '"dice"', '{"study": "dice"}', "{}"])
def test_what_is_no_store_is_refused(tmp_path: Path, head: str) -> None:
    store.path_in(tmp_path).write_text(head + "\n")
    with pytest.raises(Refused, match="no results of a study"):
        fill(DICE, DicePlan(1), tmp_path, 1)


def test_a_place_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="there is no study here"):
        store.read(tmp_path / "nowhere", DICE)
    (tmp_path / "file").write_text("")
    with pytest.raises(Refused, match=r"file/results.jsonl: cannot be written to"):
        fill(DICE, DicePlan(1), tmp_path / "file", 1)
    (tmp_path / "rank-0000.h5").write_text("")
    with pytest.raises(Refused, match="holds a run"):
        fill(DICE, DicePlan(1), tmp_path, 1)


def test_two_cannot_write_at_a_time(tmp_path: Path) -> None:
    with (
        store.opened(tmp_path, DICE, "abc"),
        pytest.raises(Refused, match="another study is writing there"),
        store.opened(tmp_path, DICE, "abc"),
    ):
        pass


# -- the report


def test_claims_and_figures_are_told_and_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    how: dict[str, Any] = {"only": False, "pdf": True, "as_json": True}
    report(DICE, DicePlan(50), tmp_path, 1, **how)
    found = json.loads(capsys.readouterr().out)
    assert found == json.loads((tmp_path / "summary.json").read_text())
    assert found["completed"] is True
    assert found["figures"] == ["figures/dice.png", "figures/dice.pdf"]
    assert (tmp_path / "figures" / "dice.png").read_text() == "100 rolls"
    (claim,) = found["claims"]
    assert (claim["name"], claim["paper"], claim["verdict"]) == ("mean of a die", "3.5", "holds")
    assert claim["of"] == 50
    assert (found["store"]["study"], found["asked"]["rolls"]) == ("dice", 50)

    report(DICE, DicePlan(51), tmp_path, 1, **how | {"only": True})
    found = json.loads(capsys.readouterr().out)
    assert (found["ran"], found["completed"]) == (None, False)
    report(DICE, DicePlan(50), tmp_path, 1, **how | {"as_json": False})
    shown = capsys.readouterr().out
    assert "mean of a die" in shown
    assert "✓" in shown
    assert "nothing was left to simulate" in shown


def test_a_claim_that_does_not_hold_says_so() -> None:
    from rich.console import Console

    claims = [Claim("one", "1 %", "9 %", yes_or_no(False), 3), Claim("two [b]", "", "5 %", None, 4)]
    console = Console(width=80, markup=False)
    with console.capture() as capture:
        console.print(table(DICE, claims))
    one, two = (next(line for line in capture.get().splitlines() if line.startswith(name))
                for name in ("one", "two"))  # fmt: skip
    assert one.split() == ["one", "1", "%", "9", "%", "✗", "3"]
    assert two.split() == ["two", "[b]", "5", "%", "4"]


def test_a_mark_stands_for_what_it_is_made_of() -> None:
    assert digest([1, 2]) == digest(["1", "2"]) != digest([1, 3])
    assert len(digest([])) == 12
