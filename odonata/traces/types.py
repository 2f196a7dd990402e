"""Tables of types of jobs, in the order in which they are tried on a job."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from odonata.traces.job_type import JobType
from odonata.traces.types_file import BUILT_IN, FILE, csv_of, of_file, of_rows
from pdes.errors import Refused

if TYPE_CHECKING:
    from odonata.traces.trace import Trace, Whole

__all__ = ["JobType", "Types"]

Numbers = npt.NDArray[np.float64]
ANY_ROW = "a last row with by = any takes the rest"


@dataclass(frozen=True)
class Types(Sequence[JobType]):
    """A table of types of jobs, in the order in which they are tried on a job."""

    rows: tuple[JobType, ...]
    name: str = "inline"
    """What it is called: aqa, qosg, or the path of its file."""
    idle_w: float | None = None
    """What a node without a job draws, where the table says so."""

    def __post_init__(self) -> None:
        if not self.rows:
            raise Refused(f"{self.name}: no type: at least one row is needed")

    @classmethod
    def of(cls, given: Any) -> Types:
        """Returns a table by its name or the path of a CSV file, or from rows: mappings whose keys
        are columns."""
        if isinstance(given, Types):
            return given
        if isinstance(given, str | Path):
            read, name = of_file(str(given)), str(given)
        elif isinstance(given, Mapping) or not isinstance(given, Sequence):
            raise Refused(f"{given!r}: {', '.join(BUILT_IN)}, a file that ends in {FILE}, or rows")
        else:
            read, name = of_rows(given), "inline"
        return cls(read.types, name, read.idle_w)

    @overload
    def __getitem__(self, at: int) -> JobType: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[JobType, ...]: ...
    def __getitem__(self, at: Any) -> Any:
        return self.rows[at]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[JobType]:
        return iter(self.rows)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(each.name for each in self.rows)

    @cached_property
    def most_w(self) -> Numbers:
        """[type]: watts per node without a cap."""
        return self._column("most_w")

    @cached_property
    def least_w(self) -> Numbers:
        """[type]: watts per node under the lowest cap, as the table has them."""
        return self._column("least_w")

    @cached_property
    def low_w(self) -> Numbers:
        """[type]: the least that a node draws: no cap makes it draw more than without one."""
        return _kept(np.minimum(self.least_w, self.most_w))

    @cached_property
    def slowdown(self) -> Numbers:
        """[type]: T_max / T_min."""
        return self._column("slowdown")

    @cached_property
    def threshold(self) -> Numbers:
        """[type]: the degradation that jobs are to stay below; infinite where there is none."""
        return self._column("threshold")

    @cached_property
    def nodes(self) -> Numbers:
        """[type]: nodes of a job that a model makes; nan where none are known."""
        return self._column("nodes")

    @cached_property
    def shortest_s(self) -> Numbers:
        """[type]: run time in s of a job that a model makes; nan where none is known."""
        return self._column("shortest_s")

    @cached_property
    def delay_rate(self) -> Numbers:
        """[type]: δ_D in 1/s; nan where none is stated."""
        return self._column("delay_rate")

    def _column(self, field: str) -> Numbers:
        values = (getattr(each, field) for each in self.rows)
        return _kept(np.array([math.nan if it is None else it for it in values], np.float64))

    @cached_property
    def digest(self) -> str:
        """Returns a hash of all that the table says; not of what it is called."""
        said = [str(self.idle_w), *(str(astuple(each)) for each in self.rows)]
        return hashlib.blake2b("\n".join(said).encode(), digest_size=16).hexdigest()

    def csv(self) -> str:
        """Returns the text of a CSV file that is read back as an equal table."""
        return csv_of(self.rows, self.idle_w)

    def place(self, name: str) -> int:
        """Returns the position of a type, by its name."""
        if name not in self.names:
            raise Refused(f"type {name!r}: {self.name} has {', '.join(self.names)}")
        return self.names.index(name)

    def match(self, trace: Trace) -> Whole:
        """Returns the position of each job's type: the first row that matches; refused where a job
        has none."""
        none = len(self.rows)
        found = np.full(len(trace), none, np.int64)
        for by in ("application", "user", "project"):
            places = {each.name: at for at, each in enumerate(self.rows) if each.by == by}
            if places:
                codes: Whole = getattr(trace, by)
                known: tuple[str, ...] = getattr(trace, f"{by}s")
                of = np.array([places.get(name, none) for name in known], np.int64)
                found = np.minimum(found, of[codes])
        for at, each in enumerate(self.rows):
            if each.by in ("nodes", "any"):
                fits = (trace.nodes >= each.fewest) & (trace.nodes <= each.most)
                found = np.where(fits, np.minimum(found, at), found)
        left = found == none
        if left.any():
            raise Refused(self._unmatched(trace, left))
        return np.asarray(found, np.int64)

    def _unmatched(self, trace: Trace, left: npt.NDArray[np.bool_]) -> str:
        ways = dict.fromkeys(each.by for each in self if each.by != "any")
        some = "; ".join(_most_frequent(trace, left, by) for by in ways)
        count = int(left.sum())
        rows = [
            each.name if each.by == "application" else f"{each.by} {each.name}" for each in self
        ]
        return (f"{trace.name}: {count:,} of {len(trace):,} jobs {'has' if count == 1 else 'have'} "
                f"no type: jobs of {some}. Types {self.name} has {_listed(rows)}; "
                f"{ANY_ROW}")  # fmt: skip


def _most_frequent(trace: Trace, some: npt.NDArray[np.bool_], by: str) -> str:
    """Returns whose some jobs are, or how large, those first that are most."""
    codes, counts = np.unique(getattr(trace, by)[some], return_counts=True)
    codes = codes[np.argsort(-counts, kind="stable")]
    if by == "nodes":
        return _listed([f"{size:,}" for size in codes.tolist()]) + " nodes"
    known: tuple[str, ...] = getattr(trace, f"{by}s")
    names = [known[code] or "no name" for code in codes.tolist()]
    return f"{by}{'s' * (len(names) > 1)} {_listed(names)}"


def _kept(column: Numbers) -> Numbers:
    column.flags.writeable = False
    return column


def _listed(names: Sequence[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if names[most:] else "")
