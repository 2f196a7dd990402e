"""Fills the tables of docs that come from results, so that no page has a number of its own.

python scripts/tables.py            # say which pages are not as the results are
python scripts/tables.py --write    # fill them

What stands between `<!-- claims: STUDY PREFIX -->` and `<!-- end -->` are the claims of a study
whose names begin so, from docs/papers/STUDY.json: a copy of the summary.json that the whole study
wrote. `<!-- papers -->` is all of docs/papers.md but its words, and docs/overprovisioning.md has
the tables of `odonata.studies.rmap.pages`. `make claims` simulates all studies anew and compares.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from odonata.study import papers

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
KEPT = DOCS / "papers"
CLAIMS = re.compile(r"(<!-- claims: ([\w-]+)(?: ([^\n>]+))? -->\n).*?(<!-- end -->)", re.DOTALL)
ALL = re.compile(r"(<!-- papers -->\n).*?(<!-- end -->)", re.DOTALL)


def kept() -> list[Path]:
    """Returns the kept summaries of whole studies whose claims are on the page of all papers: of a
    study that was also asked otherwise, the one that has its name alone."""
    return sorted(path for path in KEPT.glob("*.json") if papers.summary(path)[0] == path.stem)


def read(path: Path) -> dict[str, Any]:
    """Returns a kept summary as it is."""
    return dict(json.loads(path.read_text()))


def filled(text: str) -> str:
    """Returns a page with its tables as the results are now."""

    def claims(found: re.Match[str]) -> str:
        _, those = papers.summary(KEPT / f"{found[2]}.json")
        return found[1] + papers.of_study(those, found[3] or "") + found[4]

    def every(found: re.Match[str]) -> str:
        return found[1] + papers.page([papers.summary(path) for path in kept()]) + found[2]

    text = ALL.sub(every, CLAIMS.sub(claims, text))
    if "<!-- points -->" in text:
        from odonata.studies.rmap import pages

        text = pages.filled(text)
    return text


def stale() -> Iterator[tuple[Path, str]]:
    """Yields the pages that are not as the results are, and what they should be."""
    for page in sorted(DOCS.rglob("*.md")):
        now = page.read_text()
        if (then := filled(now)) != now:
            yield page, then


if __name__ == "__main__":
    found = [*stale()]
    for page, then in found:
        if "--write" in sys.argv[1:]:
            page.write_text(then)
        print(page.relative_to(ROOT))
    if not found:
        print("every page has its results")
