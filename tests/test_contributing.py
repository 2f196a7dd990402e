"""CONTRIBUTING.md lists every file of the packages."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def tree() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tree", ROOT / "scripts" / "tree.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def listed(block: str) -> list[str]:
    folder, paths = "", []
    for line in block.splitlines():
        if line.startswith(" "):
            paths.append(folder + line.split()[0])
        else:
            folder = line
    return paths


def test_every_file_is_listed_once_and_nothing_else_is(tree: ModuleType) -> None:
    (block,) = tree.BLOCK.findall(tree.PAGE.read_text())
    assert listed(block) == [path.as_posix() for path in tree.sources()]


def test_every_file_says_in_a_sentence_what_it_is(tree: ModuleType) -> None:
    assert [path for path in tree.sources() if len(tree.first_sentence(path).split()) < 2] == []
