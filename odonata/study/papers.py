"""One page of all papers: what each prints, what the studies found, and the verdict on it.

A study writes its claims into `summary.json`. Of these, `page` takes the claims that say where a
paper prints them and that were judged, or that a model was calibrated to, which are counted apart.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from odonata.study.contract import Claim, Verdict
from pdes.errors import Refused, require

PAPERS = {
    "Zhang": "Y. Zhang, Intelligent middleware for HPC systems, thesis, Boston University, 2021",
    "Patki": "T. Patki, The case for hardware overprovisioned supercomputers, thesis, University "
    "of Arizona, 2015",
    "Wallace": "S. Wallace et al., A data driven scheduling approach for power management on HPC "
    "systems, SC 2016",
    "AQA": "Y. Zhang et al., HPC data center participation in demand response, 2021",
    "Rumyantsev": "A. Rumyantsev et al., Discrete-event modeling of a high-performance computing "
    "cluster with service rate control, 2018",
}
"""The papers, by the word that the source of a claim begins with."""
CALIBRATED = "calibrated"
COLUMNS = (*Verdict, CALIBRATED)
SUMMARY = "summary.json"


@dataclass(frozen=True)
class Found:
    """A claim, and the study that found it."""

    study: str
    claim: Claim

    @property
    def paper(self) -> str:
        return self.claim.source.partition(" ")[0]

    @property
    def place(self) -> str:
        return self.claim.source.partition(" ")[2]

    @property
    def column(self) -> str:
        """Returns what it is counted as."""
        if self.claim.calibrated or self.claim.verdict is None:
            return CALIBRATED
        return str(self.claim.verdict)

    @property
    def why(self) -> str:
        """Returns a link to the cause, where there is something to explain."""
        wanted = self.claim.cause and self.claim.verdict is not Verdict.HOLDS
        return f"[why]({self.claim.cause})" if wanted else ""


def summary(path: Path) -> tuple[str, list[Claim]]:
    """Returns the name of a study and its claims, from its directory or from a file that is a copy
    of its summary."""
    file = path / SUMMARY if path.is_dir() else path
    try:
        read = json.loads(file.read_text())
        return str(read["study"]), [_claim(one) for one in read["claims"]]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refused(f"{file}: is no summary of a study ({error})") from error


def _claim(fields: dict[str, Any]) -> Claim:
    verdict = fields.pop("verdict")
    return Claim(**fields, verdict=None if verdict is None else Verdict(verdict))


def warnings(paths: Sequence[Path]) -> Iterator[str]:
    """Yields what is to be known before claims are counted: studies that are not complete, and
    those that say nothing of a paper. Raises Refused where a study is there twice."""
    seen: dict[str, Path] = {}
    for path in paths:
        study, claims = summary(path)
        require(study not in seen, f"{path}: {study} is in {seen.get(study)} too; one of them")
        seen[study] = path
        if not complete(path):
            yield f"{path}: some simulations of {study} are missing"
        if not printed([(study, claims)]):
            yield f"{path}: {study} has no claim there that a paper's number is beside"


def complete(path: Path) -> bool:
    file = path / SUMMARY if path.is_dir() else path
    return bool(json.loads(file.read_text()).get("completed"))


def printed(summaries: Iterable[tuple[str, Sequence[Claim]]]) -> list[Found]:
    """Returns the claims that belong on the page, by paper and place."""
    every = [Found(study, claim) for study, claims in summaries for claim in claims
             if claim.source and (claim.verdict is not None or claim.calibrated)]  # fmt: skip
    for one in every:
        require(one.paper in PAPERS, f"{one.study}: {one.claim.name}: source {one.claim.source!r}: "
                f"must begin with one of {', '.join(PAPERS)}")  # fmt: skip
    order = [*PAPERS]
    return sorted(every, key=lambda one: (order.index(one.paper), natural(one.place)))


def natural(text: str) -> list[tuple[int, str]]:
    """Returns what sorts a place by its numbers: 3.9 before 3.10.

    >>> sorted(["3.10", "3.9", "table 3"], key=natural)
    ['3.9', '3.10', 'table 3']
    """
    return [(int(part), "") if part.isdigit() else (10**9, part)
            for part in re.split(r"(\d+)|[. ]+", text) if part]  # fmt: skip


def counted(every: Iterable[Found]) -> Counter[str]:
    return Counter(one.column for one in every)


# -- as Markdown


def page(summaries: Sequence[tuple[str, Sequence[Claim]]]) -> str:
    """Returns the tables of the page: how many of each verdict, and every number by paper."""
    every = printed(summaries)
    by_paper = {name: [one for one in every if one.paper == name] for name in PAPERS}
    rows = [[f"[{name}](#{name.lower()})", *_numbers(mine)]
            for name, mine in by_paper.items() if mine]  # fmt: skip
    parts = [table(["", *COLUMNS], [*rows, ["**all**", *_numbers(every)]])]
    for name, mine in by_paper.items():
        if mine:
            parts += [f"## {name}\n", f"{PAPERS[name]}.\n", _of_paper(mine)]
    return "\n".join(parts)


def _numbers(every: Sequence[Found]) -> list[str]:
    count = counted(every)
    return [f"{count[column]}" for column in COLUMNS]


def _of_paper(every: Sequence[Found]) -> str:
    rows = [[one.place, one.claim.name, one.claim.paper, one.claim.ours, f"{one.claim.of:,}",
             one.column, one.why, one.study] for one in every]  # fmt: skip
    return table(["where", "what", "printed", "here", "of", "verdict", "", "study"], rows)


def of_study(claims: Iterable[Claim], prefix: str = "") -> str:
    """Returns a table of the claims of a study whose names begin so and that are about something
    printed."""
    rows = [[one.name, one.paper, one.ours, _word(one)] for one in claims
            if one.paper and one.name.startswith(prefix)]  # fmt: skip
    return table(["", "printed", "here", "verdict"], rows)


def _word(claim: Claim) -> str:
    words = [str(claim.verdict)] if claim.verdict else []
    return ", ".join([*words, *[CALIBRATED] * claim.calibrated])


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns a table in Markdown."""
    return "\n".join(_lines(head, rows)) + "\n"


def _lines(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    for line in (head, ["---"] * len(head), *rows):
        yield "| " + " | ".join(cell.strip().replace("|", "\\|") for cell in line) + " |"
