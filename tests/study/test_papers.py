"""One page of all papers: what is counted, what is left out, and in which order."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from odonata.commands.papers import command
from odonata.results.statistics import Interval, interval
from odonata.study.contract import Claim, Verdict
from odonata.study.papers import of_study, page, printed, summary, warnings
from odonata.study.verdicts import Place, judged, near, near_share, placed, shown, verdict
from pdes.errors import Fault, Refused

HOLDS = Claim("a", "1 %", "1.0 ± 0.1 %", Verdict.HOLDS, 3, source="Zhang 3.10")
SIGN = Claim("b", "2 %", "9 %", Verdict.SIGN, 3, source="Zhang 3.9", cause="nedd.md#x")
NOT = Claim("c | d", "none", "some", Verdict.NOT, 3, source="Patki table 5.4")
FITTED = Claim("e", "5 W", "5 W", Verdict.HOLDS, 1, source="Patki 3.3", calibrated=True)
SHOWN = Claim("f", "7 W", "7 W", source="AQA 5.1")
OURS = Claim("g", "", "4", Verdict.HOLDS, 1)
EVERY = [HOLDS, SIGN, NOT, FITTED, SHOWN, OURS]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "one.json"
    path.write_text(json.dumps({"study": "one", "claims": [asdict(claim) for claim in EVERY]}))
    return path


def invoke(*words: str) -> str:
    done = CliRunner().invoke(command, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_summary_comes_back_as_it_was(file: Path) -> None:
    assert summary(file) == ("one", EVERY)
    (file.parent / "study").mkdir()
    file.rename(file.parent / "study" / "summary.json")
    assert summary(file.parent / "study") == ("one", EVERY)


@pytest.mark.parametrize("text", ["", "[]", '{"study": 1}', '{"study": "x", "claims": [{}]}'])
def test_what_is_no_summary_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(Refused, match="is no summary of a study"):
        summary(tmp_path / "x.json")


def test_claims_come_by_paper_and_place_and_only_if_judged_or_calibrated() -> None:
    names = [one.claim.name for one in printed([("one", EVERY)])]
    assert names == ["b", "a", "e", "c | d"], "3.9 is before 3.10, and f was not judged"
    with pytest.raises(Refused, match="must begin with one of Zhang, Patki"):
        printed([("one", [Claim("z", "1", "1", Verdict.NOT, source="Kim 4")])])


def test_what_a_model_was_made_with_is_counted_apart(file: Path) -> None:
    lines = [line.split() for line in invoke(str(file)).splitlines()]
    assert ["Zhang", "1", "1", "0", "0"] in lines
    assert ["Patki", "0", "0", "1", "1"] in lines
    assert ["all", "1", "1", "1", "1"] in lines
    told = json.loads(invoke(str(file), "--json"))
    assert [one["counted_as"] for one in told] == [
        "in sign only", "holds", "calibrated", "does not hold"
    ]  # fmt: skip


def test_the_page_has_every_number_and_where_its_cause_is_told(file: Path) -> None:
    text = invoke(str(file), "--markdown")
    assert text == page([("one", EVERY)])
    assert "| **all** | 1 | 1 | 1 | 1 |" in text
    assert "| 3.9 | b | 2 % | 9 % | 3 | in sign only | [why](nedd.md#x) | one |" in text
    assert "| table 5.4 | c \\| d | none | some | 3 | does not hold |" in text
    assert text.index("## Zhang") < text.index("## Patki")
    assert "AQA" not in text


def test_a_study_shows_what_is_printed_of_one_part() -> None:
    assert of_study(EVERY, "a").splitlines()[2:] == ["| a | 1 % | 1.0 ± 0.1 % | holds |"]
    assert "| e | 5 W | 5 W | holds, calibrated |" in of_study(EVERY)
    assert "| g |" not in of_study(EVERY)


# -- where claims have their places from


def test_a_claim_has_the_first_place_that_fits_and_no_cause_if_it_holds() -> None:
    places = (Place("^b", "Zhang 3.1", "nedd.md#x"), Place("", "Zhang 3.2", "nedd.md#y"))
    it = interval([1.0, 1.0])
    found = placed([judged("a", "1", "1", True, True, it), judged("b", "9", "1", False, True, it),
                    shown("c", "", "1", it), HOLDS], places)  # fmt: skip
    assert [(one.source, one.cause) for one in found] == [
        ("Zhang 3.2", ""), ("Zhang 3.1", "nedd.md#x"), ("", ""), ("Zhang 3.10", "")
    ]  # fmt: skip
    assert [one.verdict for one in found[:2]] == [Verdict.HOLDS, Verdict.SIGN]


def test_a_claim_without_a_place_is_a_mistake() -> None:
    with pytest.raises(Fault, match="where is '9' printed"):
        placed([shown("z", "9", "1", interval([1.0]))], [Place("^a", "Zhang 3.1")])


@pytest.mark.parametrize(("holds", "sign", "word"), [
    (True, False, "holds"), (True, True, "holds"), (False, True, "in sign only"),
    (False, False, "does not hold"),
])  # fmt: skip
def test_there_are_three_verdicts(holds: bool, sign: bool, word: str) -> None:
    assert verdict(holds, sign) == word


def test_every_claim_of_a_kept_study_says_where_it_is_printed() -> None:
    """And why it does not hold, if it does not."""
    kept: list[Any] = sorted((Path(__file__).parents[2] / "docs" / "papers").glob("*.json"))
    assert kept
    for path in kept:
        study, claims = summary(path)
        for claim in claims:
            judged_or_fitted = claim.verdict is not None or claim.calibrated
            if claim.paper and judged_or_fitted and claim.source:
                wrong = claim.verdict in (Verdict.SIGN, Verdict.NOT)
                assert claim.cause or not wrong, f"{study}: {claim.name}: why not?"


# -- before claims are counted


def test_what_is_counted_twice_is_refused_and_what_is_not_whole_is_said(file: Path) -> None:
    other = file.with_name("other.json")
    other.write_text(file.read_text())
    with pytest.raises(Refused, match=r"one is in .* too"):
        invoke(str(file), str(other))
    whole = json.loads(file.read_text()) | {"completed": True}
    other.write_text(json.dumps(whole))
    assert [*warnings([other])] == []
    assert [*warnings([file])] == [f"{file}: some simulations of one are missing"]
    other.write_text(json.dumps(whole | {"claims": [asdict(OURS)]}))
    assert [*warnings([other])] == [
        f"{other}: one has no claim there that a paper's number is beside"
    ]


@pytest.mark.parametrize(("mean", "half", "printed", "rounded", "holds"), [
    (10.9, 0.0, 10, 0, True), (11.1, 0.0, 10, 0, False), (11.1, 0.2, 10, 0, True),
    (11.1, 0.0, 10, 0.5, True), (10.0, 5.1, 10, 0, False), (10.0, 4.9, 10, 0, True),
    (-14.3, 0.5, -14.3, 0, True), (-11.2, 0.9, -14.3, 0, False), (14.3, 0.5, -14.3, 0, False),
])  # fmt: skip
def test_a_number_holds_within_a_tenth_whatever_its_sign(
    mean: float, half: float, printed: float, rounded: float, holds: bool
) -> None:
    assert near(Interval(mean, mean - half, mean + half, 9), printed, rounded) is holds


@pytest.mark.parametrize(("mean", "half", "printed", "holds"), [
    (0.623, 0.019, 0.59, True), (0.431, 0.031, 0.64, False), (0.005, 0.002, 0.03, False),
    (0.02, 0.001, 0.03, True), (0.001, 0.003, 0.01, False), (0.001, 0.002, 0.0, True),
])  # fmt: skip
def test_a_share_holds_within_two_points_or_half_of_it(
    mean: float, half: float, printed: float, holds: bool
) -> None:
    assert near_share(Interval(mean, mean - half, mean + half, 9), printed) is holds
