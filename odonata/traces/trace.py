"""A trace: the jobs that a machine was asked to run, as columns, and an account of what was read.

Times are microseconds, int64. Jobs are in order of submission (jobs submitted together, in that of
their source), so a job's position in the columns is also its place in that order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from odonata.traces.clock import WallClock

Whole = npt.NDArray[np.int64]
UNKNOWN = -1
LONGEST_NAME = 200
SECOND = 10**6
"""Microseconds."""


@dataclass(frozen=True)
class Account:
    """What became of the records of a source: how many there were, how many of them were dropped or
    repaired, by reason, and what else is to be known of some that were not. A record that was
    dropped is not among the others."""

    records: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    repaired: Mapping[str, int] = field(default_factory=dict)
    """One record may have been repaired for several reasons."""
    noted: Mapping[str, int] = field(default_factory=dict)
    """By what is to be known of them: words that follow their number."""

    def but(
        self, dropped: Mapping[str, int] | None = None, repaired: Mapping[str, int] | None = None,
        noted: Mapping[str, int] | None = None,
    ) -> Account:  # fmt: skip
        """Returns the same with more records dropped, repaired or noted; reasons with 0 are left
        out."""
        return Account(self.records, _sum(self.dropped, dropped), _sum(self.repaired, repaired),
                       _sum(self.noted, noted))  # fmt: skip

    @property
    def total_dropped(self) -> int:
        return sum(self.dropped.values())

    @property
    def total_repaired(self) -> int:
        return sum(self.repaired.values())

    def lines(self) -> list[str]:
        """Returns a sentence per reason, the most frequent first."""
        return [f"{count:,} {what}: {reason}"
                for what, counts in (("dropped", self.dropped), ("repaired", self.repaired))
                for reason, count in sorted(counts.items(), key=lambda it: -it[1])
                ] + [f"{count:,} {words}" for words, count in self.noted.items()]  # fmt: skip


def _sum(there: Mapping[str, int], more: Mapping[str, int] | None) -> dict[str, int]:
    found = dict(there)
    for reason, count in (more or {}).items():
        if count:
            found[reason] = found.get(reason, 0) + int(count)
    return found


@dataclass(frozen=True, eq=False)
class Trace:
    """The jobs of a machine, column by column."""

    name: str
    """What it is called: its file without folders and suffixes, or the model that made it."""
    number: Whole
    """The number of each job in its source."""
    submit_us: Whole
    """When it joins the queue; ascending, the first at 0 or later."""
    run_us: Whole
    """How long it runs when nothing slows it down; 0 or more."""
    nodes: Whole
    """How many it needs; 1 or more."""
    requested_us: Whole
    """The run time that its user asked for, above 0; UNKNOWN where none is recorded."""
    user: Whole
    """Who submitted it: a position in `users`."""
    project: Whole
    """On whose account it runs: a position in `projects`."""
    application: Whole
    """The program that it runs: a position in `applications`."""
    wait_us: Whole
    """How long it waited on the real machine; UNKNOWN where that is not recorded."""
    users: tuple[str, ...] = ("",)
    """The names of users, in the order of their first appearance; "" stands for an unknown one."""
    projects: tuple[str, ...] = ("",)
    applications: tuple[str, ...] = ("",)
    machine_nodes: int | None = None
    """The nodes of the machine that it was recorded on, if the source says so."""
    header: tuple[str, ...] = ()
    """The header lines of its source, without the mark of a comment."""
    account: Account = Account()
    clock: WallClock | None = None
    """Which date time 0 has, and what clocks show then; None where nobody tells it."""
    rates: Mapping[str, float] | None = None
    """How many jobs are expected per hour, by application, where the model that made them knows."""

    def __post_init__(self) -> None:
        for name in COLUMNS:
            column = np.asarray(getattr(self, name), np.int64).view()  # read-only, without a copy
            if column.shape != (len(self.number),):
                raise ValueError(f"{name}: {column.shape} for {len(self.number)} jobs")
            column.flags.writeable = False
            object.__setattr__(self, name, column)
        for name in ("users", "projects", "applications"):
            object.__setattr__(self, name, tuple(map(_clean, getattr(self, name))))
        if len(self):
            wrong = {
                "submit_us, which ascends": (np.diff(self.submit_us, prepend=0) < 0).any(),
                "run_us, 0 or more": (self.run_us < 0).any(),
                "nodes, 1 or more": (self.nodes < 1).any(),
                "requested_us, above 0 or -1": ((self.requested_us < 1)
                                                & (self.requested_us != UNKNOWN)).any(),
            }  # fmt: skip
            for rule, broken in wrong.items():
                if broken:
                    raise ValueError(f"a trace has {rule}")

    def __len__(self) -> int:
        return len(self.number)

    def columns(self) -> Iterator[tuple[str, Whole]]:
        for name in COLUMNS:
            yield name, getattr(self, name)

    def where(self, kept: Any, account: Account | None = None, **changes: Any) -> Self:
        """Returns the jobs at these positions (a mask, a slice or indices that ascend), with other
        fields changed."""
        columns = {name: column[kept] for name, column in self.columns()}
        return replace(self, **columns | changes, account=account or self.account)

    @cached_property
    def alike(self) -> Whole:
        """[job]: the number of the set of jobs that it is alike with: those of one project, user
        and application or, where no application is known, of one size."""
        known = np.array([bool(name) for name in self.applications])[self.application]
        what = np.where(known, self.application, -1 - self.nodes)
        rows = np.stack([self.project, self.user, what], axis=1)
        _, first, number = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        rank = np.empty(len(first), np.int64)
        rank[np.argsort(first)] = np.arange(len(first))  # in order of first appearance
        found: Whole = rank[number.ravel()]
        return found

    @property
    def span_us(self) -> int:
        """Returns the time from the first submission to the last, in us; 0 without jobs."""
        return int(self.submit_us[-1] - self.submit_us[0]) if len(self) else 0

    def load(self, nodes: int) -> float:
        """Returns the offered load on so many nodes: node-time asked for per node-time there is
        between the first submission and the last. Above 1 a queue grows. nan where it has no
        length."""
        if not self.span_us:
            return float("nan")
        work = float((self.run_us.astype(np.float64) * self.nodes).sum())
        return work / (float(self.span_us) * nodes)


def _clean(name: str) -> str:
    """Returns a name that every format can hold: what cannot be printed is a question mark, and
    what is beyond LONGEST_NAME letters is cut off."""
    cut = name[:LONGEST_NAME]
    return cut if cut.isprintable() else "".join(c if c.isprintable() else "?" for c in cut)


COLUMNS = tuple(one.name for one in fields(Trace)
                if one.type == "Whole")  # fmt: skip
"""The fields that have a number per job."""
LEAST_JOB_BYTES = 2 * 8 * len(COLUMNS)
"""What a job takes at the least: its numbers, as they are made and in order."""
