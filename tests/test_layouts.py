"""The words of arrays: a name that two of them had would be the second one's place in both."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

HERE = Path(__file__).parent.parent
LAYOUTS = ("odonata/agents/layout.py", "odonata/cluster/layout.py", "odonata/jobs/board.py",
           "policies/scheduling/desk.py", "pdes/events.py")  # fmt: skip


def bound(tree: ast.Module) -> list[str]:
    """Returns the names that the statements of a module bind, once for each time."""
    targets = [it for statement in tree.body if isinstance(statement, ast.Assign)
               for it in statement.targets]  # fmt: skip
    return [node.id for target in targets for node in ast.walk(target)
            if isinstance(node, ast.Name)]  # fmt: skip


@pytest.mark.parametrize("path", LAYOUTS)
def test_no_word_of_a_layout_has_a_name_that_another_has(path: str) -> None:
    names = Counter(bound(ast.parse((HERE / path).read_text(encoding="utf-8"))))
    assert names, "it has words"
    assert [name for name, times in names.items() if times > 1] == []
