"""`odonata regulate` on real traces, where they are there: the page about days of a market."""

from __future__ import annotations

import gzip
import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pages import DOCS, blocks

from odonata.commands.regulate import command

DATA = Path(__file__).parents[2].parent / "shared" / "data"
PAGE = DOCS / "howto" / "regulated-days.md"
LIMITS = ((4, "1-4"), (16, "5-16"), (64, "17-64"), (10**9, ">=65"))


def real(name: str) -> Path:
    if not (DATA / name).exists():
        pytest.skip(f"{name} is not there: nothing was shown on a real trace")
    return DATA / name


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the table and the prices of the page."""
    monkeypatch.chdir(tmp_path)
    found = blocks(PAGE)
    (tmp_path / "sizes.csv").write_text(found[0].text)
    exec(next(it.text for it in found if it.language == "python"), {})
    return tmp_path


def invoke(words: list[str]) -> str:
    result = CliRunner().invoke(command, words, env={"COLUMNS": "140"})
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def submitted(file: Path, since_h: float, until_h: float) -> dict[str, int]:
    """Counts the jobs of a trace by size that are submitted within some hours after the first."""
    with gzip.open(file, "rt") if file.suffix == ".gz" else file.open() as lines:
        rows = [line.split() for line in lines if line.strip() and not line.startswith(";")]
    jobs = [(float(row[1]), int(row[4])) for row in rows if float(row[3]) >= 0]
    first = min(time for time, _ in jobs)
    found = dict.fromkeys((name for _, name in LIMITS), 0)
    for time, nodes in jobs:
        if since_h * 3600 <= time - first < until_h * 3600:
            found[next(name for most, name in LIMITS if nodes <= most)] += 1
    return found


def commands() -> list[list[str]]:
    every = [it.text for it in blocks(PAGE) if it.language == "sh"]
    return [shlex.split(text.replace("\\\n", " "))[2:] for text in every]


@pytest.mark.parametrize(
    ("name", "words"),
    [("hpc2n-sample.swf", "--warm-up 100h --hours 20 --set market.exclude_after=2 "
      "--set market.exclude_for=5h"),
     ("nasa-ipsc-1993-cln.swf.gz", "--warm-up 4h --hours 12 --set market.exclude_after=1 "
      "--set market.exclude_for=3h")],
)  # fmt: skip
def test_hours_of_a_real_trace_add_up(name: str, words: str, place: Path) -> None:
    file, given = real(name), shlex.split(words)
    facts: dict[str, Any] = json.loads(invoke([
        "--trace", str(file), "--types", "sizes.csv", "--policy", "qoscap", "--prices",
        "hourly.csv,0.05,0.1", "--carbon", "40", "--qos", "mean", *given, "--json",
    ]))  # fmt: skip
    assert (facts["bidding"], facts["qos"]) == ("adaptive", "mean")
    warm, count = (int(given[at].rstrip("h")) for at in (1, 3))
    hours = facts["hours"]
    assert len(hours) == warm + count
    judged = hours[warm:]
    assert [hour["judged"] for hour in hours] == [False] * warm + [True] * count
    assert {type_: it["jobs"] for type_, it in facts["types"].items()} == submitted(
        file, warm, warm + count
    )
    for key in ("cost", "carbon_kg", "energy_kwh"):
        assert facts[key] == pytest.approx(sum(hour[key] for hour in judged))
    assert facts["carbon_kg"] == pytest.approx(0.04 * facts["energy_kwh"])
    assert facts["carbon_without_kg"] == pytest.approx(0.04 * facts["energy_without_kwh"])
    # The price is that of the hour, which changes with the time of day.
    prices = [float(row.split(",")[1]) for row in (place / "hourly.csv").read_text().split()[1:]]
    assert [hour["energy_price"] for hour in hours] == pytest.approx(
        [price / 1000 for price in prices[: len(hours)]]
    )
    # After so many failed hours within a day, those that follow are excluded.
    after, long = (int(given[at].partition("=")[2].rstrip("h")) for at in (5, 7))
    failed, until = list[int](), 0
    for at, hour in enumerate(hours):
        if len([it for it in failed if it >= at - 24]) >= after:
            failed, until = [], at + long
        assert hour["excluded"] is (at < until)
        failed += [at] if not hour["tracking_ok"] else []
    assert facts["hours_excluded"] == sum(hour["excluded"] for hour in judged)
    assert any(hour["excluded"] for hour in hours)


@pytest.mark.long
@pytest.mark.parametrize("number", [0, 1])
def test_the_page_shows_what_is_printed(number: int, place: Path) -> None:
    words = commands()[number]
    words[words.index("hpc2n.swf")] = str(real("hpc2n-sample.swf"))
    printed = {" ".join(line.split()) for line in invoke(words).split("\n")}
    shown = [it.text for it in blocks(PAGE) if it.language == "text"][1 + number]
    table = [" ".join(line.split()) for line in shown.split("\n") if "   " in line]
    assert len(table) > 7
    assert [line for line in table if line not in printed] == []
