"""The words of arrays: a name that two of them had would be the second one's place in both; and
each says what it is."""

from __future__ import annotations

import ast
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

from odonata.agents import layout as w
from odonata.agents import packet as p
from pdes.words import Row, declared

HERE = Path(__file__).parent.parent
ROWS = ("odonata/agents/layout.py", "odonata/agents/packet.py", "odonata/agents/tracing.py",
        "odonata/cluster/layout.py", "odonata/jobs/board.py", "odonata/jobs/trading.py",
        "policies/scheduling/desk.py")  # fmt: skip
LAYOUTS = (*ROWS, "pdes/events.py")


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


@pytest.mark.parametrize("path", ROWS)
def test_every_word_has_a_name_a_unit_and_a_meaning(path: str) -> None:
    module = import_module(path.removesuffix(".py").replace("/", "."))
    words = [*declared(module)]
    for _, name, word in words:
        assert word.unit.strip(), name
        assert word.meaning.strip(), name
    for row in vars(module).values():
        if isinstance(row, Row):
            own = [word for owner, _, word in words if owner is row]
            assert own, row.array
            assert row.words[-len(own) :] == own


def test_rows_are_as_wide_as_their_arrays() -> None:
    assert len(w.PORT) == len(w.CHANNEL) == w.LINE
    assert w.Q_HEAD == w.LINE - 1, "what an arbiter looks at is one cache line"
    assert len(w.QUEUE) <= w.QUEUE_WORDS == 3 * w.LINE
    assert len(p.PACKET) == p.PARCEL == w.LINE
    assert len(w.RATES) == 5


def test_words_of_several_places_have_room() -> None:
    assert (w.BASES, w.LAST_GLOBAL) == (8, 12)
    assert (w.C_FREE_AT, w.C_LAST, w.Q_LACKED) == (16, 18, 20)
