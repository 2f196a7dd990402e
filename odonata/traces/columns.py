"""From what was read of a source, in its own order, to a trace: names, order, and an account.

Also the one way in which text becomes a time, so that all formats round alike.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from odonata.traces.clock import WallClock
from odonata.traces.lines import Where, name_of
from odonata.traces.trace import SECOND, UNKNOWN, Account, Trace, Whole
from pdes.errors import Refused

LONGEST_US = 1000 * 365 * 86400 * SECOND
"""A thousand years: a time beyond it is a mistake, and sums of some hundred times still fit."""
MOST_NODES = 10**9
"""A job beyond it is a mistake."""
OUT_OF_ORDER = "submitted before a job above it: put in order of submission"
NO_SIZE = "size unknown"
TOO_LARGE = f"size above {MOST_NODES:,}"
TOO_LONG = "a time of more than 1,000 years"
NO_REQUEST = "requested time of 0 or less: taken as unknown"
NO_WAIT = "wait time below 0: taken as unknown"

_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_US = Decimal("0.000001")


def microseconds(text: str) -> int | None:
    """Returns a time in seconds as whole us, halves away from 0; None where it is not a number. A
    time of more than 1,000 years is one us above that."""
    whole, _, part = text.partition(".")
    if text.isascii() and whole.isdigit() and len(whole) < 10 and len(part) < 7:
        if not part:
            return int(whole) * SECOND
        if part.isdigit():
            return int(whole) * SECOND + int(part.ljust(6, "0"))
    return rounded(Decimal(text)) if _DECIMAL.fullmatch(text) else None


def rounded(seconds: Decimal) -> int:
    """Returns the same of a finite number."""
    if seconds and seconds.adjusted() > 12:
        return LONGEST_US + 1 if seconds > 0 else -LONGEST_US - 1
    time_us = int(seconds.quantize(_US, ROUND_HALF_UP).scaleb(6))
    return min(max(time_us, -LONGEST_US - 1), LONGEST_US + 1)


class Rows:
    """The jobs of a source that is read one record at a time, and what became of the others."""

    def __init__(self) -> None:
        self.kept: list[tuple[int, int, int, int, int, int, str, str, str]] = []
        self.records = 0
        self.dropped: Counter[str] = Counter()
        self.repaired: Counter[str] = Counter()

    def add(
        self, number: int, submit_us: int, wait_us: int, run_us: int, nodes: int, requested_us: int,
        user: str = "", project: str = "", application: str = "",
    ) -> None:  # fmt: skip
        """Keep a job, unless its size or one of its times cannot be true."""
        if not 1 <= nodes <= MOST_NODES:
            self.dropped[NO_SIZE if nodes < 1 else TOO_LARGE] += 1
        elif max(abs(submit_us), run_us, requested_us, wait_us) > LONGEST_US:
            self.dropped[TOO_LONG] += 1
        else:
            if requested_us < 1 and requested_us != UNKNOWN:
                requested_us = UNKNOWN
                self.repaired[NO_REQUEST] += 1
            if wait_us < 0 and wait_us != UNKNOWN:
                wait_us = UNKNOWN
                self.repaired[NO_WAIT] += 1
            self.kept.append((number, submit_us, wait_us, run_us, nodes, requested_us,
                              user, project, application))  # fmt: skip

    def trace(
        self, path: Where, machine_nodes: int | None = None, header: Sequence[str] = (),
        clock: WallClock | None = None,
    ) -> Trace:  # fmt: skip
        """Returns the jobs as a trace."""
        *numbers, user, project, application = (
            zip(*self.kept, strict=True) if self.kept else [()] * 9
        )
        return trace_of(
            path,
            dict(zip(("number", "submit_us", "wait_us", "run_us", "nodes", "requested_us"),
                     (np.array(column, np.int64) for column in numbers), strict=True)),
            {"user": coded(user), "project": coded(project), "application": coded(application)},
            Account(self.records).but(self.dropped, self.repaired), machine_nodes, header, clock,
        )  # fmt: skip


Coded = tuple[Whole, Sequence[str]]
"""A position per job, and the names at these positions."""


def coded(names: Sequence[str]) -> Coded:
    """Returns the positions of names among those that differ."""
    place: dict[str, int] = {}
    return np.array([place.setdefault(n, len(place)) for n in names], np.int64), (*place,)


def trace_of(
    path: Where,
    columns: dict[str, Whole],
    names: dict[str, Coded],
    account: Account,
    machine_nodes: int | None = None,
    header: Sequence[str] = (),
    clock: WallClock | None = None,
) -> Trace:
    """Returns the trace of jobs that are in the order of their source; refused without a job. The
    columns are taken out of the dictionaries one by one, so that they are not held twice."""
    submit = columns["submit_us"]
    if not len(submit):
        raise Refused(no_job(path, account))
    late = int((submit < np.maximum.accumulate(submit)).sum())
    order: Any = np.argsort(submit, kind="stable") if late else slice(None)
    made: dict[str, Any] = {name: columns.pop(name)[order] for name in tuple(columns)}
    for name in tuple(names):
        positions, those = names.pop(name)
        made[name], made[f"{name}s"] = _in_order(positions[order], those)
    return Trace(name_of(path), **made, machine_nodes=machine_nodes, header=tuple(header),
                 account=account.but(repaired={OUT_OF_ORDER: late}), clock=clock)  # fmt: skip


def no_job(path: Where, account: Account) -> str:
    """Returns the sentence for a source of which no job is left."""
    if not account.records:
        return f"{os.fspath(path)}: it has no job: check that it is the whole file"
    return (f"{os.fspath(path)}: no job is left of {account.records:,} records "
            f"({'; '.join(account.lines())}): check the file and its format")  # fmt: skip


def _in_order(positions: Whole, names: Sequence[str]) -> tuple[Whole, tuple[str, ...]]:
    """Returns the same names in the order of their first appearance, without those that do not
    appear."""
    first = np.full(len(names), len(positions), np.int64)
    first[positions[::-1]] = np.arange(len(positions) - 1, -1, -1)
    order = np.argsort(first, kind="stable")[: int((first < len(positions)).sum())]
    place = np.zeros(len(names), np.int64)
    place[order] = np.arange(len(order))
    return place[positions], tuple(names[at] for at in order)


def numbered(values: Whole, names: Mapping[int, str] | None = None) -> Coded:
    """Returns the positions of numbers among those that differ, and their names: what `names` has,
    else the number as text; "" for one below 0, which stands for an unknown one."""
    least, most = int(values.min(initial=0)), int(values.max(initial=0))
    found: npt.NDArray[np.int64]
    if most - least <= 4 * len(values) + (1 << 16):
        there = np.zeros(most - least + 1, np.bool_)
        there[values - least] = True
        found = np.flatnonzero(there) + least
        positions = (np.cumsum(there) - 1)[values - least]
    else:
        found, positions = np.unique(values, return_inverse=True)
    known = names or {}
    texts = [known.get(value, str(value)) if value >= 0 else "" for value in found.tolist()]
    if len(set(texts)) < len(texts):  # several unknown ones, or several of one name
        places, texts_once = coded(texts)
        return places[positions], texts_once
    return positions, texts
