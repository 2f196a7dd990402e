"""Every link of every page leads somewhere, on GitHub and in the site."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pages import DOCS, PAGES, ROOT, anchors, links, name_of

INDEX = DOCS / "index.md"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_and_picture_is_there_with_its_anchor(page: Path) -> None:
    for link in links(page):
        assert link.target.exists(), link
        assert link.target.is_relative_to(ROOT), link
        if link.anchor:
            assert link.target.suffix == ".md", link
            assert link.anchor in anchors(link.target), link


def test_the_index_leads_to_every_page_once() -> None:
    """Its lists are the navigation of the site."""
    listed = re.findall(r"^- \[[^\]]+\]\(([^)#]+\.md)\)", INDEX.read_text(), re.MULTILINE)
    found = sorted((DOCS / path).resolve() for path in listed)
    assert found == sorted(page for page in PAGES if page != INDEX)


def test_readme_leads_to_the_index() -> None:
    assert INDEX in [link.target for link in links(ROOT / "README.md")]


def test_no_picture_is_left_over() -> None:
    shown = {link.target for page in PAGES for link in links(page)}
    assert {*DOCS.rglob("*.png")} <= shown


def test_a_link_that_leads_nowhere_would_be_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A `b`: c\n\n[x](none.md) `[y](code.md)` [z](#a-b-c)\n\n"
                    "```text\n[w](block.md)\n# not a heading\n```\n\n## A b c\n")  # fmt: skip
    assert [(link.path, link.anchor) for link in links(page)] == [("none.md", ""), ("", "a-b-c")]
    assert anchors(page) == {"a-b-c", "a-b-c-1"}
