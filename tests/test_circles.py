"""No file imports another that imports it, directly or through others, at the top or in a function.

The source is read, not run. What is imported for types alone (`if TYPE_CHECKING`) does not count,
and what is named by a string, as by `importlib`, is not seen. Importing `a.b.c` runs the
`__init__` of `a` and of `a.b` too, unless the file that does it is inside of them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from importlib.util import resolve_name
from itertools import accumulate
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("pdes", "topology", "policies", "odonata")


def at_run_time(tree: ast.AST) -> Iterator[ast.AST]:
    """Returns all statements of a file, but those that are only there for types."""
    left = [tree]
    while left:
        node = left.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            left += node.orelse
        else:
            yield node
            left += (it for it in ast.iter_child_nodes(node) if not isinstance(it, ast.expr))


def imported(name: str, path: Path, known: set[str]) -> set[str]:
    """Returns the modules that a module imports, as far as they are known."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found = set()
    for node in at_run_time(ast.parse(path.read_text())):
        said = [alias.name for alias in getattr(node, "names", ()) if isinstance(alias, ast.alias)]
        if isinstance(node, ast.ImportFrom):
            home = resolve_name("." * node.level + (node.module or ""), package)
            said = [full if (full := f"{home}.{one}") in known else home for one in said]
        for one in said:
            above = accumulate(one.split("."), "{}.{}".format)
            found |= {one, *(it for it in above if not name.startswith(f"{it}."))}
    return found & known - {name}


def circle(root: Path, *packages: str) -> str:
    """Returns a circle of imports, "" where there is none: each module imports the next."""
    modules = {}
    for path in (path for package in packages for path in (root / package).rglob("*.py")):
        *above, last = path.relative_to(root).with_suffix("").parts
        modules[".".join(above if last == "__init__" else [*above, last])] = path
    graph = {name: imported(name, path, {*modules}) for name, path in modules.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return " -> ".join(reversed(error.args[1]))
    return ""


def test_no_file_imports_one_that_imports_it() -> None:
    assert circle(ROOT, *PACKAGES) == ""


APART = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p import b\n"


@pytest.mark.parametrize(
    ("files", "names"),
    [
        ({"a": "import p.b", "b": "def f():\n    from p.a import x"}, {"p.a", "p.b"}),
        ({"a": "from . import b", "b": "from .c import x", "c": "from p import a"},
         {"p.a", "p.b", "p.c"}),
        ({"q/__init__": "from p.q.x import f", "q/x": "from p.q import g"}, {"p.q", "p.q.x"}),
        ({"q/__init__": "import p.q.x", "q/x": "import p.r", "q/y": "", "r": "import p.q.y"},
         {"p.q", "p.q.x", "p.r"}),
        ({"a": APART, "b": "from p.a import x"}, set()),
        ({"q/__init__": "from p.q.x import f", "q/x": "from p.q import y", "q/y": ""}, set()),
    ],
)  # fmt: skip
def test_a_circle_is_found(tmp_path: Path, files: dict[str, str], names: set[str]) -> None:
    for name, text in {"__init__": "", **files}.items():
        (tmp_path / "p" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "p" / f"{name}.py").write_text(text)
    found = circle(tmp_path, "p")
    assert {*found.split(" -> ")} - {""} == names
