"""Prints the tree of the packages with one line per file: the first sentence of its docstring.

python scripts/tree.py            # print it
python scripts/tree.py --write    # put it into CONTRIBUTING.md, under "Where things are"
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("pdes", "topology", "policies", "odonata")
PAGE = ROOT / "CONTRIBUTING.md"
BLOCK = re.compile(r"(?<=<!-- tree -->\n```text\n).*?(?=```\n)", re.DOTALL)


def sources() -> Iterator[Path]:
    """Yield the Python files of the packages, relative to the root, folder by folder."""
    for package in PACKAGES:
        files = [path.relative_to(ROOT) for path in (ROOT / package).rglob("*.py")]
        yield from sorted(files, key=lambda path: (path.parent, path.name))


def first_sentence(path: Path) -> str:
    """Returns the first sentence of a file's docstring, without its full stop."""
    text = ast.get_docstring(ast.parse((ROOT / path).read_text())) or ""
    paragraph = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<! [A-Z])(?<!et al)\.(?:\s|$)", paragraph)[0]


def tree() -> str:
    """Returns the tree as text: a line per folder, and below it a line per file."""
    lines: list[str] = []
    folder = None
    for path in sources():
        if path.parent != folder:
            folder = path.parent
            lines.append(f"{folder.as_posix()}/")
        lines.append(f"  {path.name:<18} {first_sentence(path)}".rstrip())
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        PAGE.write_text(BLOCK.sub(lambda _: tree(), PAGE.read_text()))
    else:
        print(tree(), end="")
