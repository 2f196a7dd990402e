"""What a page shows as the output of a command is what the command prints now."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pages import DOCS, PAGES, ROOT, Block, blocks, prose
from test_blocks import TUTORIAL, commands, put_files

from odonata.studies import STUDIES, named
from odonata.study import papers
from odonata.study.contract import Claim

SCRIPTS = str(ROOT / "scripts")
sys.path.append(SCRIPTS)
import tables  # noqa: E402

sys.path.remove(SCRIPTS)
DATA = ROOT.parent / "shared" / "data"
TRACES = {"nasa.swf.gz": "nasa-ipsc-1993-cln.swf.gz"}
"""Traces that pages tell their readers to download, as they are named beside this project."""
QUICK = ("buying.md", "power.md")
"""The pages whose commands take a second or two each; those of the others take longer."""


ON_PAGES = {
    "level-spread": "level-spread.md", "rmap": "rmap.md", "wallace": "power-wallace.md",
    "rumyantsev": "power-rumyantsev.md", "congestion": "congestion.md",
    "regulation": "regulation-study.md", "aqa": "aqa.md", "bidding": "bidding.md",
}  # fmt: skip
"""The pages of studies all of whose means are claims, but for tables of another command. (Of nedd
docs/papers has the part that the thesis has, which is one of five on its page.)"""
OTHERS = re.compile(r"<!-- of another command -->.*?<!-- end -->", re.DOTALL)


class Printed(NamedTuple):
    """A block of commands, and what the page shows below it."""

    commands: Block
    shown: str

    def __str__(self) -> str:
        return str(self.commands)


def directly(before: Block, block: Block) -> bool:
    """Tells whether there are no words between two blocks."""
    return block.line == before.line + before.text.count("\n") + 3


def printed(page: Path) -> Iterator[Printed]:
    """Yields what a page shows as printed: a `text` directly below `sh`, or a `console`."""
    every = blocks(page)
    for before, block in zip([None, *every], every, strict=False):
        if block.language == "console":
            yield Printed(block, re.sub(r"^\$ .*\n", "", block.text, flags=re.MULTILINE))
        elif (
            block.language == "text"
            and before
            and before.language == "sh"
            and directly(before, block)
        ):
            yield Printed(before, block.text)


ELSEWHERE = (TUTORIAL, DOCS / "howto" / "regulated-days.md")
"""Pages whose commands need what the page did before: `test_blocks.py` and
`tests/commands/test_regulated_days.py` compare what these print."""
EVERY = [pytest.param(it, id=str(it), marks=() if page.name in QUICK else pytest.mark.long)
         for page in PAGES if page not in ELSEWHERE for it in printed(page)]  # fmt: skip


def squeezed(text: str) -> str:
    return " ".join(text.split())


def missing(shown: str, said: str) -> list[str]:
    """Returns the lines that a page shows and a command did not print, in this order; `...` and
    `[...]` stand for lines that are left out."""
    left, lines = f" {squeezed(said)} ", []
    for line in shown.splitlines():
        words = squeezed(line)
        if words in ("", "...", "[...]"):
            continue
        _, found, after = left.partition(f" {words} ")
        if found:
            left = f" {after}"
        else:
            lines.append(line)
    return lines


@pytest.mark.parametrize("it", EVERY)
def test_a_page_shows_what_its_commands_print(
    it: Printed, tmp_path: Path, odonata: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    for name in TRACES.keys() & {*re.findall(r"[\w.-]+", it.commands.text)}:
        if not (DATA / TRACES[name]).exists():
            pytest.skip(f"{TRACES[name]} is not there: nothing was shown on a real trace")
        shutil.copy(DATA / TRACES[name], tmp_path / name)
    put_files(it.commands.page, tmp_path)
    (tmp_path / "scripts").symlink_to(ROOT / "scripts")
    said = ""
    for words in commands(it.commands):
        done: Any = (
            odonata(*words[1:])
            if words[0] == "odonata"
            else subprocess.run([sys.executable, *words[1:]], cwd=tmp_path, text=True,
                                capture_output=True, check=False)
        )  # fmt: skip
        said += done.stdout + done.stderr
    assert missing(it.shown, said) == []


def test_a_number_that_is_no_longer_printed_would_be_found() -> None:
    assert missing("a  1\n...\nc 3\n", "a 1\nb 2\nc 3\n") == []
    assert missing("a 1\nb 9\n", "a 1\nb 2\n") == ["b 9"]
    assert missing("c 3\na 1\n", "a 1\nc 3\n") == ["a 1"], "in another order"
    assert missing("jobs 2\n", "jobs 2000\n") == ["jobs 2"], "a part of a number"
    assert len(EVERY) >= 12


# -- tables that are made from results


def test_every_table_of_results_is_as_the_results_are() -> None:
    """`python scripts/tables.py --write` fills them."""
    assert [page for page, _ in tables.stale()] == []


@pytest.mark.parametrize("file", [*tables.KEPT.glob("*.json")], ids=lambda file: file.stem)
def test_kept_results_are_of_this_simulator(file: Path) -> None:
    """Where a mark differs, so may each number; `make claims` simulates the study anew."""
    name, _ = papers.summary(file)
    kept = tables.read(file)
    assert kept["completed"], "the whole study"
    assert kept["store"]["mark"] == named(name).mark(), "make claims"


MEAN = re.compile(r"(\d[\d,]*(?:\.(\d+))?) ± (\d[\d,]*(?:\.(\d+))?)")
"""A mean and half of its interval."""
UNITS = (1.0, 100.0, 0.001)
"""A claim's number may be shown as it is, as per cent, or as kW of its W."""


def number(text: str) -> float:
    return float(text.replace(",", ""))


def claimed(claim: Claim) -> Iterator[tuple[float, float]]:
    """Yields the means of a claim and half of their intervals, in every unit."""
    pairs = [(number(it[1]), number(it[3])) for it in MEAN.finditer(claim.ours)]
    if {"mean", "low", "high"} <= {*claim.values}:
        high, low = claim.values["high"], claim.values["low"]
        pairs.append((abs(claim.values["mean"]), (high - low) / 2))
    yield from ((mean * unit, half * unit) for mean, half in pairs for unit in UNITS)


def strangers(text: str, claims: list[Claim]) -> list[str]:
    """Returns what a text has of the form `a ± b` that none of the claims says, rounded likewise.
    (A claim's own words are rounded too: so a last digit may be off by a twentieth.)"""
    known = [pair for claim in claims for pair in claimed(claim)]

    def is_known(found: re.Match[str]) -> bool:
        near, wide = (0.551 / 10 ** len(digits or "") for digits in (found[2], found[4]))
        mean, half = number(found[1]), number(found[3])
        return any(abs(a - mean) <= near and abs(b - half) <= wide for a, b in known)

    return [it[0] for it in MEAN.finditer(OTHERS.sub("", text)) if not is_known(it)]


@pytest.mark.parametrize(("study", "page"), ON_PAGES.items())
def test_every_mean_on_the_page_of_a_study_is_one_that_it_claims(study: str, page: str) -> None:
    _, claims = papers.summary(tables.KEPT / f"{study}.json")
    assert strangers((DOCS / page).read_text(), claims) == []


def test_a_mean_that_nothing_claims_would_be_found() -> None:
    claims = [Claim("a", "", "12.3 ± 0.4 %"), Claim("b", "", "", values={
        "mean": 0.2468, "low": 0.2, "high": 0.2936})]  # fmt: skip
    text = "12.3 ± 0.4 %, 12 ± 0 points, 24.7 ± 4.7 %, 0.25 ± 0.05"
    assert strangers(text, claims) == []
    assert strangers("12.4 ± 0.4, 24.7 ± 4.8", claims) == ["12.4 ± 0.4", "24.7 ± 4.8"]


def test_the_page_of_papers_has_every_study_of_a_paper() -> None:
    assert {path.stem for path in tables.kept()} == {*STUDIES} - {"together"}
    assert "<!-- papers -->" in (DOCS / "papers.md").read_text()
    assert prose(DOCS / "papers.md").count("does not hold") > 9
