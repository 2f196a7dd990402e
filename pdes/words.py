"""Rows of arrays, declared word by word: what stands where in a row, in which unit.

    JOB = Row("State.jobs")
    NODES = JOB.word("1", "the nodes that it needs")
    SUBMIT = JOB.word("us", "when it joined the queue", hashed=True)

A word is its place, a plain number, so that a kernel reads `jobs[row, NODES]`. What is said of it
is the documentation (docs/site draws tables of it), and what is done with whole rows goes by it:
which words a fingerprint has, and which name parcels when a checkpoint is dealt to other ranks.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import NamedTuple


class Word(NamedTuple):
    """What is known of a word: its unit, its meaning, whether it is part of a fingerprint that does
    not have the whole row, and whether it is the number of the first or of the last parcel of a
    chain (head, tail)."""

    place: int
    unit: str
    meaning: str
    hashed: bool
    chain: str


class Row:
    """The words of the rows of an array; `after` are words that stand before these."""

    def __init__(self, array: str, after: Row | None = None) -> None:
        self.array = array
        self.words: list[Word] = [*after.words] if after else []

    def word(
        self, unit: str, meaning: str, hashed: bool = False, chain: str = "", at: int | None = None
    ) -> int:
        """Declares the next word, or the one at a place behind it. Returns its place."""
        place = len(self) if at is None else at
        assert place >= len(self), f"{self.array}: there is a word at {at}"
        self.words.append(Word(place, unit, meaning, hashed, chain))
        return place

    def __len__(self) -> int:
        return self.words[-1].place + 1 if self.words else 0

    @property
    def hashed(self) -> list[int]:
        """Returns the words that a fingerprint has."""
        return [word.place for word in self.words if word.hashed]

    def chains(self, which: str) -> list[int]:
        """Returns the words that are heads, or tails, of chains of parcels."""
        return [word.place for word in self.words if word.chain == which]


def declared(module: ModuleType) -> Iterator[tuple[Row, str, Word]]:
    """Yields the words that a module declares as above, in that order: the row, the name, and what
    is known of it."""
    for statement in ast.parse(inspect.getsource(module)).body:
        match statement:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(func=ast.Attribute(value=ast.Name(id=array), attr="word")),
            ):
                row, place = getattr(module, array), getattr(module, name)
                yield row, name, next(word for word in row.words if word.place == place)
