"""The pages of the documentation, for tests: their blocks, their links, and their anchors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md",
         *sorted(DOCS.rglob("*.md"))]  # fmt: skip
FENCE = re.compile(r"^ *```")


class Block(NamedTuple):
    """A block of code: what stands between two fences."""

    page: Path
    line: int
    language: str
    text: str

    @property
    def file(self) -> str:
        """Returns the name of the file that it is, by its first line; empty if it is none."""
        named = re.match(r'"""([\w-]+\.py)"""|# ([\w-]+\.toml)\b', self.text)
        return (named[1] or named[2]) if named else ""

    def __str__(self) -> str:
        return f"{name_of(self.page)}:{self.line}"


class Link(NamedTuple):
    """A link to another place of the project: a path relative to its page, and an anchor."""

    page: Path
    path: str
    anchor: str

    @property
    def target(self) -> Path:
        return (self.page.parent / self.path).resolve() if self.path else self.page

    def __str__(self) -> str:
        return f"{name_of(self.page)}: {self.path}#{self.anchor}"


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[Block]:
    """Returns the blocks of a page, in order, without the indentation of their fences."""
    found: list[Block] = []
    fence, start, language, lines = "", 0, "", []
    for number, line in enumerate(page.read_text().split("\n"), 1):
        if fence and line == fence:
            found.append(Block(page, start, language, "".join(f"{it}\n" for it in lines)))
            fence = ""
        elif fence:
            lines.append(line.removeprefix(fence.removesuffix("```")))
        elif FENCE.match(line):
            before, _, language = line.partition("```")
            fence, start, lines = f"{before}```", number, []
    assert not fence, f"{page}:{start}: a block without an end"
    return found


def prose(page: Path) -> str:
    """Returns a page without its blocks and without code within lines."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    return re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", lambda code: "`" * len(code[0]), text)


def links(page: Path) -> Iterator[Link]:
    """Yields the links and the pictures of a page, without those that lead out of the project."""
    for target in re.findall(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)", prose(page)):
        if not re.match(r"[a-z]+:", target):
            path, _, anchor = target.partition("#")
            yield Link(page, path, anchor)


def anchors(page: Path) -> set[str]:
    """Returns the anchors of the headings of a page, as GitHub and the site name them."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    found: list[str] = []
    for heading in re.findall(r"^#+ +(.*?)(?: +#+)?$", text, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        again = sum(it == slug or re.fullmatch(rf"{re.escape(slug)}-\d+", it) is not None
                    for it in found)  # fmt: skip
        found.append(f"{slug}-{again}" if again else slug)
    return {*found}
